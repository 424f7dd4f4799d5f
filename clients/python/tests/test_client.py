"""The client against the real program. RWD_BIN names it."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rwd_client import Gone, RwdError, Sidecar, Refused  # noqa: E402


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name, "work")
        self.root.mkdir()
        self.data = str(Path(scratch.name, "data"))
        self.env = {"HOME": scratch.name}

    def start(self, **more):
        sidecar = Sidecar(os.path.abspath(os.environ["RWD_BIN"]), data_dir=self.data, env=self.env, **more)
        self.addCleanup(sidecar.close)
        return sidecar

    def test_a_turn_is_played_and_taken_back(self) -> None:
        asked = []

        def fork(params):
            asked.append((params["boundary"], (self.root / "a").read_text()))
            return {"child": params["child"]}

        def approve(params):
            return {"decision": "approved"}

        with self.start(callbacks={"approval.ask": approve, "session.fork": fork}) as rwd:
            self.assertEqual(rwd.welcome["protocol"], 1)
            session = rwd.open("s1", harness="x", root=str(self.root), log="client")
            self.assertTrue(session.opened["registered"])
            for turn in (1, 2):
                session.begin_turn(turn, seq=10 * turn)
                session.before_tool("write", call_id=f"c{turn}")
                (self.root / "a").write_text(f"after {turn}")
                session.end_turn(turn, seq=10 * turn + 9)
            preview = session.preview("t2^")
            self.assertEqual([entry["path"] for entry in preview["overwrite"]], ["a"])
            done = session.restore("t2^", plan=preview["plan"])
            self.assertEqual((done["status"], asked), ("restored", [(19, "after 1")]))
            session.undo(confirmed=True)
            self.assertEqual((self.root / "a").read_text(), "after 2")
            self.assertEqual(len(session.list()["operations"]), 2)
        self.assertEqual(rwd.close(), 0)
        with self.assertRaises(Gone):
            session.list()

    def test_errors_carry_their_code(self) -> None:
        def fork(params):
            raise Refused("not here", "SESSION_NOT_LIVE")

        with self.start(callbacks={"session.fork": fork}) as rwd:
            session = rwd.open("s1", harness="x", root=str(self.root), log="client")
            for call, code in (
                (lambda: session.restore("t9", confirmed=True), "not-found"),
                (lambda: session.call("list", limt=3), "usage"),
                (lambda: rwd.call("nothing", {}), "unknown-method"),
            ):
                with self.assertRaises(RwdError) as caught:
                    call()
                self.assertEqual(caught.exception.code, code)
            session.begin_turn(1, seq=10)
            session.end_turn(1, seq=19)
            session.call("name.set", label="here")
            with self.assertRaises(RwdError) as caught:
                session.call("name.rewind", label="here")
            self.assertEqual(caught.exception.code, "SESSION_NOT_LIVE")

    def test_a_sidecar_that_is_killed_fails_what_is_open(self) -> None:
        rwd = self.start()
        rwd._process.kill()
        with self.assertRaises(Gone):
            rwd.call("doctor", {"session": "s1"})


if __name__ == "__main__":
    unittest.main()
