//! The loop over pipes in memory: no store is needed to see that every line is answered and that faults stay where they are.

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use checkpoint_core::{Clock, ErrorKind, NoSessions, SessionLog, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::host::{Workspace, Workspaces};
use super::problem::Failure;
use super::protocol::METHODS;
use super::server::Sidecar;

/// Opens nothing; `/panic` is a fault of ours.
#[derive(Debug)]
struct Nowhere;

impl Workspaces for Nowhere {
    fn open(&self, dir: &Path, _: bool) -> Result<Arc<dyn Workspace>, Failure> {
        assert!(dir != Path::new("/panic"), "a fault");
        Err(Failure {
            code: "no-directory".into(),
            kind: ErrorKind::Usage,
            message: "nowhere".into(),
            hints: Vec::new(),
            causes: Vec::new(),
        })
    }

    fn logs(&self, _: &str, _: Option<&Path>) -> Option<Arc<dyn SessionLog>> {
        None
    }
}

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
    fn sleep(&self, _: std::time::Duration) {}
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is answered to `input`, once everything is done.
fn served(input: Vec<u8>) -> Vec<Value> {
    let out = Kept::default();
    let sidecar = Sidecar {
        workspaces: Arc::new(Nowhere),
        logs: Arc::new(NoSessions),
        clock: Arc::new(Stopped),
        version: "0",
        parent: None,
    };
    sidecar.serve(Box::new(Cursor::new(input)), Box::new(out.clone()));
    let bytes = out.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
}

fn hello() -> String {
    request(0, "hello", &json!({"protocol": 1, "client": {"name": "t"}}))
}

#[test]
fn a_fault_inside_is_an_error_answer_and_the_next_request_is_served() {
    let open = |id, root| request(id, "session.open", &json!({"session": "s", "harness": "x", "roots": [root]}));
    let answers = served([hello(), open(1, "/panic"), open(2, "/elsewhere")].concat().into_bytes());
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!((&of(1)["error"]["code"], &of(1)["error"]["data"]["code"]), (&json!(-32603), &json!("internal")));
    assert_eq!(of(2)["error"]["data"]["code"], "no-directory");
}

#[test]
fn every_method_is_handled() {
    let lines: String = METHODS
        .iter()
        .zip(1..)
        .filter(|(method, _)| !["hello", "shutdown"].contains(*method))
        .map(|(method, id)| {
            let open = request(1000 + id, "session.open", &json!({"session": "s", "harness": "x", "roots": ["/x"]}));
            open + &request(id, method, &json!({"session": "s", "nonsense": 1}))
        })
        .collect();
    let answers = served((hello() + &lines).into_bytes());
    for answer in answers.iter().filter(|answer| answer["id"] != 0) {
        assert_ne!(answer["error"]["data"]["code"], "internal", "{answer}");
        assert!(answer["error"]["data"]["code"].is_string(), "{answer}");
    }
    assert_eq!(answers.len(), 1 + 2 * (METHODS.len() - 2));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/]{0,5}".prop_map(Value::from),
        Just(json!("s")),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let fields = prop_oneof!["session", "harness", "roots", "turn", "target", "policy", "id", "client", "protocol"];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(fields, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![proptest::sample::select(METHODS).prop_map(str::to_owned), "[a-z.$/]{0,6}"];
    prop_oneof![
        proptest::collection::vec(any::<u8>().prop_filter("newline", |byte| *byte != b'\n'), 0..30),
        (any::<u8>(), method, value()).prop_filter("an end", |(_, method, _)| method != "shutdown").prop_map(
            |(id, method, params)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
                .to_string()
                .into_bytes()
        ),
        (any::<u8>(), value())
            .prop_map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string().into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes: no more than one answer to a line, none of them a fault inside, and an end.
    #[test]
    fn any_lines_are_served_to_the_end(lines in proptest::collection::vec(line(), 0..12)) {
        let mut input = hello().into_bytes();
        for line in &lines {
            input.extend_from_slice(line);
            input.push(b'\n');
        }
        let answers = served(input);
        prop_assert!(!answers.is_empty() && answers.len() <= lines.len() + 1);
        for answer in &answers {
            prop_assert_eq!(&answer["jsonrpc"], "2.0");
            prop_assert_ne!(&answer["error"]["code"], &json!(-32603), "{}", answer);
        }
    }
}
