//! The protocol over pipes in memory.

use std::io::{self, BufReader, Cursor, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// `ask` asks, `panic` is a fault of ours, `fail` refuses.
#[derive(Debug)]
struct Test;

impl Desk for Test {
    fn tools(&self) -> Vec<Tool> {
        let tool = |name| Tool {
            name,
            title: "T",
            about: "a",
            input: json!({"type": "object"}),
            output: json!({"type": "object"}),
            reads_only: true,
            destroys: false,
            repeatable: true,
        };
        ["ask", "panic", "fail"].map(tool).to_vec()
    }

    fn call(&self, name: &str, _: Map<String, Value>, request: &Arc<Request>) -> Answer {
        assert!(name != "panic", "a fault");
        if name == "fail" {
            return Answer { text: "no".into(), structured: None, error: Some(json!({"code": "c"})) };
        }
        let said = format!("{:?}", request.ask("sure?"));
        Answer { text: said.clone(), structured: Some(json!({ "said": said })), error: None }
    }

    fn resources(&self) -> (Vec<Resource>, Vec<Resource>) {
        let of = |uri| vec![Resource { uri, name: "n", about: "a" }];
        (of("rwd://timeline"), of("rwd://point/{id}"))
    }

    fn read(&self, uri: &str, _: &Arc<Request>) -> Option<Document> {
        (uri == "rwd://timeline").then(|| Document { text: "{}".into() })
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

fn server() -> Server {
    Server { desk: Arc::new(Test), version: "0", instructions: "i", stopped: Box::new(|| false) }
}

fn served(input: Vec<u8>) -> Vec<Value> {
    let out = Kept::default();
    server().serve(Box::new(Cursor::new(input)), Box::new(out.clone()));
    let bytes = out.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(message: &Value) -> String {
    message.to_string() + "\n"
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn greet(version: &str, capabilities: &Value) -> String {
    let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t"}});
    line(&request(0, "initialize", &params))
}

fn of(answers: &[Value], id: u64) -> &Value {
    answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("{id} in {answers:?}"))
}

#[test]
fn a_revision_that_is_spoken_is_agreed_on_and_another_answered_with_the_newest() {
    for version in VERSIONS {
        assert_eq!(served(greet(version, &json!({})).into_bytes())[0]["result"]["protocolVersion"], version);
    }
    let answer = &served(greet("1999-01-01", &json!({})).into_bytes())[0]["result"];
    assert_eq!((&answer["protocolVersion"], &answer["serverInfo"]["name"]), (&json!(VERSIONS[0]), &json!("rwd")));
    let bad = request(0, "initialize", &json!({"protocolVersion": 7}));
    assert_eq!(served(line(&bad).into_bytes())[0]["error"]["code"], -32602);
}

#[test]
fn nothing_but_a_ping_comes_before_the_greeting_and_the_greeting_comes_once() {
    let lines = [
        line(&request(1, "ping", &json!({}))),
        line(&request(2, "tools/list", &json!({}))),
        greet("2025-06-18", &json!({})),
        line(&request(3, "initialize", &json!({"protocolVersion": "2025-06-18"}))),
        line(&request(4, "nonsense", &json!({}))),
    ];
    let answers = served(lines.concat().into_bytes());
    assert_eq!(of(&answers, 1)["result"], json!({}));
    assert_eq!(of(&answers, 2)["error"]["code"], -32600);
    assert_eq!(of(&answers, 3)["error"]["code"], -32600);
    assert_eq!(of(&answers, 4)["error"]["code"], -32601);
}

#[test]
fn structured_answers_are_told_to_revisions_that_have_them() {
    for (version, there) in [("2025-06-18", true), ("2025-03-26", false)] {
        let call = request(1, "tools/call", &json!({"name": "ask"}));
        let list = request(2, "tools/list", &json!({}));
        let answers = served([greet(version, &json!({})), line(&call), line(&list)].concat().into_bytes());
        assert_eq!(of(&answers, 1)["result"].get("structuredContent").is_some(), there, "{version}");
        assert_eq!(of(&answers, 1)["result"]["content"][0]["text"], "Nothing");
        let tool = &of(&answers, 2)["result"]["tools"][0];
        assert_eq!(tool.get("outputSchema").is_some(), there);
        assert_eq!(tool["annotations"]["openWorldHint"], false);
    }
}

#[test]
fn faults_stay_where_they_are() {
    let calls = [
        request(1, "tools/call", &json!({"name": "panic"})),
        request(2, "tools/call", &json!({"name": "fail"})),
        request(3, "tools/call", &json!({"name": "nothing"})),
        request(4, "tools/call", &json!({"name": "ask", "arguments": [1]})),
        request(5, "resources/read", &json!({"uri": "rwd://nowhere"})),
        request(6, "resources/read", &json!({"uri": "rwd://timeline"})),
        request(7, "resources/templates/list", &json!({})),
    ];
    let lines: String = calls.iter().map(line).collect();
    let answers = served((greet("2025-06-18", &json!({})) + &lines).into_bytes());
    assert_eq!(of(&answers, 1)["error"]["code"], -32603);
    let failed = &of(&answers, 2)["result"];
    assert_eq!((&failed["isError"], &failed["_meta"]["rwd/error"]["code"]), (&json!(true), &json!("c")));
    assert_eq!(
        (&of(&answers, 3)["error"]["code"], &of(&answers, 4)["error"]["code"]),
        (&json!(-32602), &json!(-32602))
    );
    assert_eq!(of(&answers, 5)["error"]["code"], -32002);
    assert_eq!(of(&answers, 6)["result"]["contents"][0]["text"], "{}");
    assert_eq!(of(&answers, 7)["result"]["resourceTemplates"][0]["uriTemplate"], "rwd://point/{id}");
}

#[test]
fn several_messages_on_a_line_are_answered_on_a_line_by_the_revision_that_has_that() {
    let several = json!([
        request(1, "ping", &json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", &json!({"name": "ask"})),
        7,
    ]);
    let answers = served((greet("2025-03-26", &json!({})) + &line(&several) + "[]\n").into_bytes());
    let together = answers.iter().find_map(Value::as_array).unwrap();
    assert_eq!(together.len(), 3, "{together:?}");
    assert_eq!(of(together, 1)["result"], json!({}));
    assert!(answers.iter().any(|answer| answer["error"]["code"] == -32600), "{answers:?}");
    let alone = served((greet("2025-06-18", &json!({})) + &line(&several)).into_bytes());
    assert_eq!(alone[1]["error"]["code"], -32600);
}

/// Input that comes as it is sent.
struct Piped(Receiver<Vec<u8>>, Cursor<Vec<u8>>);

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.1.read(buffer)?;
            if n > 0 {
                return Ok(n);
            }
            match self.0.recv() {
                Ok(bytes) => self.1 = Cursor::new(bytes),
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Output that is read line by line.
struct Told(Sender<Value>, Vec<u8>);

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.extend_from_slice(bytes);
        if self.1.ends_with(b"\n") {
            let message = serde_json::from_slice(&std::mem::take(&mut self.1)).unwrap();
            self.0.send(message).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Asks through a tool; `reply` gives what the client says to the question: the whole answer, or nothing and the end.
fn said(capabilities: &Value, reply: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    let (send, receive) = channel();
    let (told, answers) = channel();
    let run = std::thread::spawn(move || {
        let input = BufReader::new(Piped(receive, Cursor::new(Vec::new())));
        server().serve(Box::new(input), Box::new(Told(told, Vec::new())));
    });
    let call = request(1, "tools/call", &json!({"name": "ask"}));
    send.send((greet("2025-06-18", capabilities) + &line(&call)).into_bytes()).unwrap();
    let mut send = Some(send);
    let mut found = None;
    while let Ok(message) = answers.recv_timeout(Duration::from_mins(1)) {
        if message["method"] == "elicitation/create" {
            match reply(&message) {
                Some(answer) => send.as_ref().unwrap().send(line(&answer).into_bytes()).unwrap(),
                None => send = None,
            }
        } else if message["id"] == 1 {
            found = Some(message["result"]["content"][0]["text"].clone());
            send = None;
        } else if message["method"] == "notifications/cancelled" {
            send = None;
        }
    }
    run.join().unwrap();
    found
}

#[test]
fn only_accept_is_a_yes() {
    let asks = json!({"elicitation": {}});
    let reply =
        |result: Value| move |asked: &Value| Some(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    assert_eq!(said(&asks, reply(json!({"action": "accept", "content": {}}))), Some(json!("Yes")));
    for other in
        [json!({"action": "decline"}), json!({"action": "cancel"}), json!({"action": 7}), json!({}), json!(null)]
    {
        assert_eq!(said(&asks, reply(other.clone())), Some(json!("No")), "{other}");
    }
    let error =
        |asked: &Value| Some(json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "m"}}));
    assert_eq!(said(&asks, error), Some(json!("Nothing")));
    assert_eq!(said(&json!({"elicitation": {"url": {}}}), error), Some(json!("Nothing")), "no forms, no question");
    assert_eq!(said(&asks, |_| None), Some(json!("Nothing")), "the client left");
    let cancelled =
        |_: &Value| Some(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    assert_eq!(said(&asks, cancelled), None, "nobody waits for the answer to a cancelled call");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes: an end, no more than one answer to a line, and none of them a fault inside.
    #[test]
    fn any_lines_are_served_to_the_end(
        lines in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>().prop_filter("newline", |byte| *byte != b'\n'), 0..30),
                r#"\[?\{"jsonrpc":"2.0",("id":(7|"x"|null),)?"method":"(ping|tools/list|tools/call|resources/read|initialize)"(,"params":(\{"name":"ask"\}|\{"uri":""\}|\[\]|7))?\}\]?"#
                    .prop_map(String::into_bytes),
            ],
            0..12,
        ),
        version in proptest::sample::select(&VERSIONS[..]),
    ) {
        let mut input = greet(version, &json!({"elicitation": {}})).into_bytes();
        for line in &lines {
            input.extend_from_slice(line);
            input.push(b'\n');
        }
        let answers = served(input);
        prop_assert!(answers.len() <= lines.len() + 1);
        for answer in answers.iter().flat_map(|one| one.as_array().cloned().unwrap_or_else(|| vec![one.clone()])) {
            // A question that nobody is left to answer may stand among them.
            prop_assert_eq!(&answer["jsonrpc"], "2.0");
            prop_assert_ne!(&answer["error"]["code"], &json!(-32603), "{}", answer);
        }
    }
}
