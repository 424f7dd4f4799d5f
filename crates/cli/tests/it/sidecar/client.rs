//! A client of `rwd sidecar` for tests: what it sends and gets is checked against the published schema.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::schema::conforms;

/// Longer than anything takes that does not hang.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the client answers when it is asked.
type Handler = Box<dyn FnMut(&Value) -> Result<Value, Value>>;

/// A running sidecar.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    handlers: HashMap<String, Handler>,
    kept: HashMap<u64, Value>,
    /// Requests and notices that came, in order.
    pub(crate) seen: Vec<(String, Value)>,
    methods: HashMap<u64, String>,
    schema: Value,
}

impl Client {
    /// Starts one and greets it.
    pub(crate) fn start(sandbox: &Sandbox, callbacks: &[&str]) -> Self {
        let mut client = Self::start_raw(sandbox);
        let hello =
            json!({"protocol": 1, "client": {"name": "test", "pid": std::process::id()}, "callbacks": callbacks});
        assert_eq!(client.ok("hello", hello)["protocol"], 1);
        client
    }

    /// Starts one.
    pub(crate) fn start_raw(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command(&["sidecar"]);
        // A workspace is not its directory.
        command.current_dir(sandbox.top()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if line.map_or(true, |line| sender.send(line).is_err()) {
                    break;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            next: 0,
            handlers: HashMap::new(),
            kept: HashMap::new(),
            seen: Vec::new(),
            methods: HashMap::new(),
            schema: rwd::sidecar_schemas(),
        }
    }

    /// Answers a callback from now on.
    pub(crate) fn on(&mut self, method: &str, handler: impl FnMut(&Value) -> Result<Value, Value> + 'static) {
        self.handlers.insert(method.to_owned(), Box::new(handler));
    }

    fn check(&self, message: &str, value: &Value) {
        let schema = &self.schema["messages"][message];
        assert!(schema.is_object(), "{message} has no schema");
        conforms(value, schema, schema, message);
    }

    pub(crate) fn raw(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a request without waiting.
    #[expect(clippy::needless_pass_by_value, reason = "calls are written with a literal")]
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}).to_string() + "\n";
        self.methods.insert(self.next, method.to_owned());
        self.raw(line.as_bytes());
        self.next
    }

    /// The next line that is not a callback or a notice.
    pub(crate) fn answer(&mut self) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            let Some(method) = message["method"].as_str().map(str::to_owned) else { return message };
            self.check(&format!("{method}.params"), &message["params"]);
            self.seen.push((method.clone(), message["params"].clone()));
            let Some(id) = message.get("id") else { continue };
            let handler = self.handlers.get_mut(&method).unwrap_or_else(|| panic!("nobody answers {method}"));
            let ended = handler(&message["params"]);
            let answer = match ended {
                Ok(result) => {
                    self.check(&format!("{method}.result"), &result);
                    json!({"jsonrpc": "2.0", "id": id, "result": result})
                }
                Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
            };
            self.raw((answer.to_string() + "\n").as_bytes());
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn wait(&mut self, id: u64) -> Result<Value, Value> {
        let answer = loop {
            if let Some(answer) = self.kept.remove(&id) {
                break answer;
            }
            let answer = self.answer();
            self.kept.insert(answer["id"].as_u64().unwrap_or_else(|| panic!("{answer}")), answer);
        };
        if let Some(error) = answer.get("error") {
            self.check("error.data", &error["data"]);
            return Err(error.clone());
        }
        let method = self.methods[&id].clone();
        self.check(&format!("{method}.result"), &answer["result"]);
        Ok(answer["result"].clone())
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.wait(id)
    }

    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The code of the error that a request must end with.
    pub(crate) fn code(&mut self, method: &str, params: Value) -> String {
        let error = self.call(method, params).expect_err(method);
        error["data"]["code"].as_str().unwrap().to_owned()
    }

    /// Opens a session of the sandbox's workspace whose log the client tells.
    pub(crate) fn open(&mut self, sandbox: &Sandbox, session: &str) -> Value {
        let root = sandbox.work();
        self.ok("session.open", json!({"session": session, "harness": "x", "roots": [root], "log": "client"}))
    }

    /// Plays a turn: its events have the positions `10 * turn` to `10 * turn + 9`.
    pub(crate) fn turn(&mut self, session: &str, turn: u64, play: impl FnOnce()) {
        let at = |n: u64| json!({"ordinal": 10 * turn + n});
        self.ok("turn.begin", json!({"session": session, "turn": turn, "position": at(0)}));
        play();
        self.ok("step.end", json!({"session": session, "turn": turn, "step": 1, "position": at(5)}));
        self.ok("turn.end", json!({"session": session, "turn": turn, "position": at(9)}));
    }

    /// Closes its input and waits: 0 is an orderly end.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}
