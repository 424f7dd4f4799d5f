"""A thin client of ``rwd sidecar``: undo for coding agents, from Python.

The protocol is described in docs/sidecar.md; methods and fields are those of the page, in the same spelling. Standard
library only. One client may be used from several threads.

    from rwd_client import Sidecar

    with Sidecar() as rwd:
        session = rwd.open("s1", harness="my-harness", root="/home/me/project")
        session.begin_turn(1)
        session.before_tool("bash", call_id="call_7")
        session.end_turn(1)
        session.restore("t1^", confirmed=True)
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Callable, Mapping, Sequence

__all__ = ["Gone", "RwdError", "Session", "Sidecar"]

PROTOCOL = 1
MAX_LINE = 8 << 20

Json = dict[str, Any]
Callback = Callable[[Json], Json]
Listener = Callable[[str, Json], None]


class RwdError(Exception):
    """The sidecar said no. ``code`` is stable; ``data`` is what docs/sidecar.md says under "Errors"."""

    def __init__(self, message: str, code: str, data: Json) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @property
    def hints(self) -> list[str]:
        """What to do about it."""
        return list(self.data.get("hints", []))


class Gone(Exception):
    """The sidecar ended before it answered: the call may or may not have had an effect."""


class Refused(Exception):
    """Raise it in a callback to say no with a code of the contract, as ``SESSION_NOT_FOUND``."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Sidecar:
    """A running ``rwd sidecar``.

    ``callbacks`` answers what the sidecar asks (``approval.ask``, ``session.fork``, ...), each on a thread of its own;
    ``listener`` is told of ``notice`` and ``progress``. ``env`` is added to this process's environment.
    """

    def __init__(
        self,
        program: str | Sequence[str] | None = None,
        *,
        data_dir: str | None = None,
        callbacks: Mapping[str, Callback] | None = None,
        listener: Listener | None = None,
        env: Mapping[str, str] | None = None,
        name: str = "rwd-client-python",
    ) -> None:
        start = program or os.environ.get("RWD_BIN") or "rwd"
        argv = [start] if isinstance(start, str) else list(start)
        if data_dir is not None:
            argv += ["--data-dir", data_dir]
        self._callbacks = dict(callbacks or {})
        self._listener = listener
        self._lock = threading.Lock()
        self._pending: dict[int, Future[Any]] = {}
        self._next = 0
        self._gone: str | None = None
        # A workspace is not its directory: it may be removed.
        self._process = subprocess.Popen(
            [*argv, "sidecar"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=os.path.abspath(os.sep),
            env={**os.environ, **(env or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True, name="rwd-reader")
        self._reader.start()
        try:
            #: What the sidecar says of itself: ``protocol``, ``engine``, ``capabilities``.
            self.welcome: Json = self.call(
                "hello",
                {
                    "protocol": PROTOCOL,
                    "client": {"name": name, "pid": os.getpid()},
                    "callbacks": sorted(self._callbacks),
                },
            )
        except BaseException:
            self.close()
            raise

    # Calls

    def start(self, method: str, params: Json) -> tuple[int, Future[Any]]:
        """Sends a request; the future has its answer. The number is for :meth:`cancel`."""
        future: Future[Any] = Future()
        with self._lock:
            if self._gone is not None:
                raise Gone(self._gone)
            self._next += 1
            number = self._next
            self._pending[number] = future
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        except ValueError:
            with self._lock:
                self._pending.pop(number, None)
            raise
        return number, future

    def call(self, method: str, params: Json, timeout: float | None = None) -> Any:
        """Sends a request and waits. With ``timeout`` (seconds) it is given up then, and TimeoutError is raised."""
        number, future = self.start(method, params)
        try:
            return future.result(timeout)
        except TimeoutError:
            self.cancel(number)
            raise

    def cancel(self, number: int) -> None:
        """Gives a request up: what has not been written is not written."""
        self._send({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": number}})

    def open(self, session: str, *, harness: str, root: str, **more: Any) -> "Session":
        """Opens a session; ``more`` is what ``session.open`` takes (``parent``, ``home``, ``log``, ``beats``, ...)."""
        params = {"session": session, "harness": harness, "roots": [os.path.abspath(root)], **more}
        return Session(self, session, self.call("session.open", params))

    def close(self, timeout: float = 10.0) -> int:
        """Ends it in an orderly way: what runs is finished first. Gives its exit code."""
        process = self._process
        try:
            if process.stdin is not None:
                process.stdin.close()
        except OSError:
            pass
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self._reader.join(timeout)
        if process.stdout is not None:
            process.stdout.close()
        return code

    def __enter__(self) -> "Sidecar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The pipe

    def _send(self, message: Json) -> None:
        line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        if len(line) > MAX_LINE:
            raise ValueError("the request is longer than 8 MiB")
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with self._lock:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError) as error:
            self._leave(f"rwd does not read: {error}")

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        for line in stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self._take(message)
        self._leave("rwd ended before it answered")

    def _take(self, message: Json) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if number is None:
                if self._listener is not None:
                    self._listener(method, message.get("params", {}))
            else:
                worker = threading.Thread(target=self._answer, args=(number, method, message.get("params", {})))
                worker.daemon = True
                worker.start()
            return
        with self._lock:
            future = self._pending.pop(number, None) if isinstance(number, int) else None
        if future is None:
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
        else:
            data = error.get("data") or {}
            future.set_exception(RwdError(str(error.get("message")), str(data.get("code", "")), data))

    def _answer(self, number: Any, method: str, params: Json) -> None:
        callback = self._callbacks.get(method)
        answer: Json = {"jsonrpc": "2.0", "id": number}
        if callback is None:
            answer["error"] = {"code": -32601, "message": f"{method} is not answered"}
        else:
            try:
                answer["result"] = callback(params)
            except Exception as error:  # whatever it is, the sidecar must not wait for ever
                answer["error"] = {"code": -32000, "message": str(error) or type(error).__name__}
                if isinstance(error, Refused):
                    answer["error"]["data"] = {"code": error.code}
        self._send(answer)

    def _leave(self, why: str) -> None:
        with self._lock:
            self._gone = self._gone or why
            left, self._pending = list(self._pending.values()), {}
        for future in left:
            future.set_exception(Gone(why))


class Session:
    """An open session. Every method takes the fields of docs/sidecar.md as keywords, in their own spelling."""

    def __init__(self, sidecar: Sidecar, name: str, opened: Json) -> None:
        self.sidecar = sidecar
        self.name = name
        #: The answer to ``session.open``.
        self.opened = opened

    def call(self, method: str, **params: Any) -> Any:
        """Any method of the protocol for this session."""
        given = {key: value for key, value in params.items() if value is not None}
        return self.sidecar.call(method, {"session": self.name, **given})

    def begin_turn(self, turn: int, *, seq: int | None = None, **more: Any) -> Json:
        """Before the first model request of a turn."""
        return self.call("turn.begin", turn=turn, position=_at(seq), **more)

    def before_tool(self, trigger: str, *, call_id: str | None = None, seq: int | None = None, **more: Any) -> Json:
        """Before a tool that may change files."""
        return self.call("capture", kind="mutation", trigger=trigger, callId=call_id, position=_at(seq), **more)

    def end_turn(self, turn: int, *, seq: int | None = None, reason: str | None = None, **more: Any) -> Json:
        """After a turn, once its end is on the disk."""
        return self.call("turn.end", turn=turn, position=_at(seq), reason=reason, **more)

    def save(self, note: str | None = None, **more: Any) -> Json:
        """A point that somebody asked for."""
        return self.call("capture", kind="manual", note=note, **more)

    def list(self, **more: Any) -> Json:
        """Points, gaps, operations."""
        return self.call("list", **more)

    def preview(self, target: str, **more: Any) -> Json:
        """What :meth:`restore` would do."""
        return self.call("preview", target=target, **more)

    def restore(self, target: str, **more: Any) -> Json:
        """Goes back to a point."""
        return self.call("restore", target=target, **more)

    def undo(self, **more: Any) -> Json:
        """Takes the last restore back."""
        return self.call("undo", **more)


def _at(seq: int | None) -> Json | None:
    return None if seq is None else {"ordinal": seq}
