//! What comes over the pipe is not always what it should be, and the pipe does not always stay.

use std::io::Write;

use serde_json::{Value, json};

use super::client::Client;
use super::s1;
use crate::sandbox::Sandbox;

#[test]
fn whatever_comes_gets_an_answer_and_the_next_request_is_served() {
    let sandbox = Sandbox::new();
    let mut client = Client::start_raw(&sandbox);
    assert_eq!(client.code("list", s1(json!({}))), "hello-first");
    client.ok("hello", json!({"protocol": 99, "client": {"name": "t"}, "callbacks": ["unheard.of"]}));
    let long = [vec![b'x'; (8 << 20) + 1], vec![b'\n']].concat();
    for (line, code) in [
        (&b"garbage\n"[..], -32700),
        (b"\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"li\xff\"}\n", -32700),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list\"}]\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"list\"}\n", -32600),
        (&long, -32600),
    ] {
        client.raw(line);
        let answer = client.answer();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{answer}");
    }
    assert_eq!(client.code("nothing", json!({})), "unknown-method");
    assert_eq!(client.code("list", json!({})), "usage");
    assert_eq!(client.code("list", json!({"session": 7})), "usage");
    assert_eq!(client.code("list", s1(json!({}))), "session-not-open");
    client.open(&sandbox, "s1");
    assert_eq!(client.code("list", s1(json!({"limt": 7}))), "usage");
    assert_eq!(client.code("restore", s1(json!({"target": "t1", "path": []}))), "usage");
    assert_eq!(client.code("restore", s1(json!({"target": "a b", "confirmed": true}))), "bad-target");
    assert_eq!(client.code("restore", s1(json!({"target": "t7", "confirmed": true}))), "not-found");
    let outside = json!({"target": "t1", "policy": {"paths": [{"path": "../x"}]}});
    assert_eq!(client.code("preview", s1(outside)), "bad-path");
    assert_eq!(client.code("turn.begin", s1(json!({"turn": 0}))), "usage");
    // An answer to nothing and a notice nobody knows are passed over.
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"rwd-77\",\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"what\"}\n");
    client.ok("list", s1(json!({})));
    assert_eq!(client.ok("shutdown", json!({})), json!({}));
    assert_eq!(client.child.wait().unwrap().code(), Some(0), "its input is still open");
}

#[test]
fn the_root_of_a_session_is_checked() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    let home = sandbox.home();
    for (roots, code) in [
        (json!([]), "usage"),
        (json!(["relative"]), "usage"),
        (json!([home.join("none")]), "no-directory"),
        (json!([home]), "refused-root"),
        (json!(["/"]), "refused-root"),
    ] {
        let open = json!({"session": "s1", "harness": "x", "roots": roots});
        assert_eq!(client.code("session.open", open), code, "{roots}");
    }
    // Its root may be replaced while the session is open: the new one is another incarnation.
    client.open(&sandbox, "s1");
    sandbox.write("a", "one");
    client.turn("s1", 1, || ());
    std::fs::remove_dir_all(sandbox.work()).unwrap();
    std::fs::create_dir(sandbox.work()).unwrap();
    sandbox.write("a", "two");
    client.turn("s1", 2, || sandbox.write("a", "three"));
    assert_eq!(
        client.code("restore", s1(json!({"target": "t1", "scope": "files", "confirmed": true}))),
        "other-incarnation"
    );
    client.ok("restore", s1(json!({"target": "t2^", "scope": "files", "confirmed": true})));
    assert_eq!(sandbox.read("a"), "two");
}

#[test]
fn a_request_can_be_given_up_while_a_question_is_open() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &["approval.ask"]);
    client.open(&sandbox, "s1");
    client.turn("s1", 1, || sandbox.write("a", "two"));
    let id = client.send("restore", s1(json!({"target": "t1^", "scope": "files"})));
    // The question comes and is not answered; the request is given up instead.
    let cancel = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{{\"id\":{id}}}}}\n");
    client.raw(cancel.as_bytes());
    client.on("approval.ask", |_| Ok(json!({"decision": "approved"})));
    assert_eq!(client.wait(id).unwrap_err()["data"]["code"], "interrupted");
    assert_eq!(sandbox.read("a"), "two");
    client.ok("capture", s1(json!({"kind": "manual"})));
}

/// A client that dies in the middle of a line, with requests under way: these are finished, then it ends.
#[test]
fn the_end_of_input_is_an_orderly_end() {
    let sandbox = Sandbox::new();
    for n in 0..200 {
        sandbox.write(format!("d{}/f{n}", n % 7), vec![b'x'; 2000 + n]);
    }
    let mut client = Client::start(&sandbox, &["approval.ask"]);
    client.open(&sandbox, "s1");
    client.send("turn.begin", s1(json!({"turn": 1})));
    client.send("capture", s1(json!({"kind": "manual", "note": "last"})));
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"met");
    assert_eq!(client.end(), Some(0));
    let points = sandbox.json(0, &["log"]);
    assert_eq!(points["points"].as_array().unwrap().len(), 1, "the start of the turn stands for the capture: {points}");
    assert_eq!(points["points"][0]["note"], "last");
}

#[test]
fn a_question_that_nobody_can_answer_any_more_is_a_no() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &["approval.ask"]);
    client.open(&sandbox, "s1");
    client.turn("s1", 1, || sandbox.write("a", "two"));
    client.send("restore", s1(json!({"target": "t1^", "scope": "files"})));
    assert_eq!(client.end(), Some(0));
    assert_eq!(sandbox.read("a"), "two");
    assert_eq!(sandbox.json(0, &["status"])["unfinished"], Value::Null);
}

/// A client that does not read any more is gone: what it asked for is done all the same.
#[test]
fn a_closed_output_ends_nothing_that_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut command = sandbox.command(&["sidecar"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let root = sandbox.work();
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol": 1, "client": {"name": "t"}}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "session.open", "params": {"session": "s1", "harness": "x", "roots": [root]}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "capture", "params": {"session": "s1", "kind": "manual"}}),
    ];
    for line in lines {
        stdin.write_all((line.to_string() + "\n").as_bytes()).unwrap();
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 1);
}

/// A host signals its children before it has said how its last turn ended.
#[test]
fn the_first_signal_does_not_lose_the_last_turn() {
    use rustix::process::{Pid, Signal, kill_process};
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    client.ok("turn.begin", s1(json!({"turn": 1})));
    let pid = Pid::from_child(&client.child);
    kill_process(pid, Signal::TERM).unwrap();
    // What is no longer pending was taken, whatever came of it.
    let status = format!("/proc/{}/status", client.child.id());
    let pending = || {
        std::fs::read_to_string(&status)
            .unwrap()
            .lines()
            .any(|l| l.strip_prefix("ShdPnd:").is_some_and(|mask| mask.trim().bytes().any(|digit| digit != b'0')))
    };
    while pending() {
        std::thread::yield_now();
    }
    assert_eq!(client.ok("turn.end", s1(json!({"turn": 1})))["created"], true);
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(client.child.wait().unwrap().code(), Some(130));
}

/// Killed at some instant of a capture: what was answered is there, and the store is whole.
#[test]
fn kill_in_the_middle_of_a_capture_loses_nothing_that_was_answered() {
    let sandbox = Sandbox::new();
    for n in 0..400 {
        sandbox.write(format!("d{}/f{n}", n % 7), vec![b'x'; 3000 + n]);
    }
    let mut answered = 0;
    for round in 0..6_u64 {
        let mut client = Client::start(&sandbox, &[]);
        client.open(&sandbox, "s1");
        client.ok("turn.begin", s1(json!({"turn": round + 1})));
        answered += 1;
        for n in 0..400 {
            sandbox.write(format!("d{}/f{n}", n % 7), format!("{round} {n}").repeat(100));
        }
        client.send("capture", s1(json!({"kind": "manual"})));
        std::thread::sleep(std::time::Duration::from_millis(round * 9));
        client.child.kill().unwrap();
        client.child.wait().unwrap();
    }
    let log = sandbox.json(0, &["log"]);
    let starts = log["points"].as_array().unwrap().iter().filter(|point| point["kind"] == "turn-start");
    assert_eq!(starts.count(), answered);
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], json!([]));
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    assert_eq!(client.ok("capture", s1(json!({"kind": "manual"})))["gap"], Value::Null);
}

/// It stays for days: the C library must not keep for it what it once needed. It is still the child that was started.
#[cfg(target_env = "gnu")]
#[test]
fn it_runs_with_limits_of_the_allocator() {
    let sandbox = Sandbox::new().with("GLIBC_TUNABLES", "glibc.malloc.tcache_count=3");
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    let environment = std::fs::read(format!("/proc/{}/environ", client.child.id())).unwrap();
    let of = |name| {
        let mut lines = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        lines.find_map(|line| line.strip_prefix(name).map(str::to_owned)).unwrap()
    };
    // The library cuts its variable up where it lies, so only the first setting is to be seen.
    assert_eq!(of("GLIBC_TUNABLES="), "glibc.malloc.tcache_count=3");
    assert_eq!(of("RWD_STARTED_AGAIN="), client.child.id().to_string());
    let words = std::fs::read(format!("/proc/{}/cmdline", client.child.id())).unwrap();
    assert!(words.windows(9).any(|word| word == b"\0sidecar\0"), "{}", String::from_utf8_lossy(&words));
    assert_eq!(client.ok("capture", s1(json!({"kind": "manual"})))["gap"], Value::Null);
}
