//! `rwd sidecar` from outside (design § 10): what a harness in another language sees.

mod client;
mod faults;
mod shapes;

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, listed, tree};
use crate::schema::conforms;
use client::Client;

#[expect(clippy::needless_pass_by_value, reason = "calls are written with a literal")]
fn s1(more: Value) -> Value {
    let mut params = json!({"session": "s1"});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// The examples of the page are messages of the protocol.
#[test]
fn tl35_examples_of_the_page_conform_to_the_schema() {
    let page = include_str!("../../../../../docs/sidecar.md");
    let schemas = rwd::sidecar_schemas();
    let mut examples = 0;
    for block in page.split("```json\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let (name, value) = match message["method"].as_str() {
                Some(method) => (format!("{method}.params"), &message["params"]),
                None => ("error.data".to_owned(), &message["error"]["data"]),
            };
            conforms(value, &schemas["messages"][&name], &schemas["messages"][&name], &name);
            examples += 1;
        }
    }
    assert!(examples > 8, "{examples}");
    for method in ["methods", "callbacks"].iter().flat_map(|list| schemas[list].as_array().unwrap()) {
        assert!(page.contains(&format!("`{}`", method.as_str().unwrap())), "{method} is not on the page");
    }
}

#[test]
fn a_rewind_asks_for_consent_restores_forks_and_can_be_undone() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &["approval.ask", "session.fork", "session.flush"]);
    let opened = client.open(&sandbox, "s1");
    assert_eq!(
        (&opened["registered"], &opened["canFork"], &opened["provider"]),
        (&json!(true), &json!(true), &json!("copy"))
    );
    client.turn("s1", 1, || sandbox.write("a", "two"));
    client.turn("s1", 2, || sandbox.write("b", "new"));

    let order = Rc::new(RefCell::new(Vec::new()));
    let (asked, forked, flushed) = (Rc::clone(&order), Rc::clone(&order), Rc::clone(&order));
    let path = sandbox.work().join("a");
    client.on("approval.ask", move |params| {
        asked.borrow_mut().push(format!("ask {}", params["preview"]["overwrite"][0]["path"]));
        Ok(json!({"decision": "approved"}))
    });
    client.on("session.fork", move |params| {
        // Files first, then the conversation.
        let now = std::fs::read_to_string(&path).unwrap();
        forked.borrow_mut().push(format!("fork {} {now}", params["boundary"]));
        assert!(params["notice"].as_str().unwrap().contains("read a file again"));
        Ok(json!({"child": params["child"]}))
    });
    client.on("session.flush", move |_| {
        flushed.borrow_mut().push("flush".into());
        Ok(json!({}))
    });
    let preview = client.ok("preview", s1(json!({"target": "t1^", "policy": {"exact": true}})));
    assert_eq!((&preview["scope"], &preview["cut"]["seq"]), (&json!("both"), &Value::Null));
    assert_eq!(sandbox.read("a"), "two", "a preview writes nothing");
    let plan = preview["plan"].clone();
    let done = client.ok("restore", s1(json!({"target": "t1^", "policy": {"exact": true}, "plan": plan})));
    assert_eq!((sandbox.read("a").as_str(), sandbox.has("b")), ("one", false));
    assert_eq!((&done["status"], &done["nth"]), (&json!("restored"), &json!(1)));
    assert!(done["childSessionId"].is_string());
    assert_eq!(*order.borrow(), ["flush", "flush", "ask \"a\"", "fork null one"]);

    // A stale plan is refused, undo goes by its number, redo goes back again.
    sandbox.write("c", "by hand");
    assert_eq!(client.code("restore", s1(json!({"target": "t1", "plan": plan, "confirmed": true}))), "stale-plan");
    sandbox.remove("c");
    let undone = client.ok("undo", s1(json!({"nth": 1, "confirmed": true})));
    assert_eq!((sandbox.read("a").as_str(), sandbox.has("b")), ("two", true));
    assert_eq!(undone["reverses"], done["op"]);
    client.ok("redo", s1(json!({"confirmed": true})));
    assert_eq!(sandbox.read("a"), "one");
    let listed = client.ok("list", s1(json!({"turns": true, "cuts": true, "changedPaths": true})));
    assert_eq!(listed["operations"].as_array().unwrap().len(), 3);
    assert_eq!(listed["turns"][0]["changedCount"], 1);
    assert_eq!(listed["points"][1]["cutAfter"], 19);
    assert_eq!(listed["points"][1]["changedPaths"][0]["path"], "a");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn without_a_yes_nothing_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &["approval.ask"]);
    client.open(&sandbox, "s1");
    client.turn("s1", 1, || sandbox.write("a", "two"));
    for (answer, code) in [
        (Ok(json!({"decision": "rejected"})), "declined"),
        (Ok(json!({"decision": "unavailable"})), "confirmation-needed"),
        (Err(json!({"code": 1, "message": "no"})), "confirmation-needed"),
    ] {
        client.on("approval.ask", move |_| answer.clone());
        let error = client.call("restore", s1(json!({"target": "t1^", "scope": "files"}))).unwrap_err();
        assert_eq!(error["data"]["code"], code);
        assert_eq!(listed(&error["data"]["preview"]["overwrite"]), ["a"]);
        assert_eq!(sandbox.read("a"), "two");
    }
    assert_eq!(client.code("drop", s1(json!({"all": true}))), "confirmation-needed");
    assert_eq!(client.ok("list", s1(json!({})))["points"].as_array().unwrap().len(), 2);
    assert_eq!(client.end(), Some(0));
}

/// An agent that starts a sidecar of its own does not get past `agent.may_restore`.
#[test]
fn the_word_of_an_agent_is_not_a_persons() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &[]);
    let root = sandbox.work();
    let open = json!({"session": "s1", "harness": "claude", "roots": [root], "log": "none"});
    client.ok("session.open", open.clone());
    client.turn("s1", 1, || sandbox.write("a", "two"));
    assert_eq!(client.end(), Some(0));
    let sandbox = sandbox.with("CLAUDECODE", "1");
    let mut client = Client::start(&sandbox, &[]);
    client.ok("session.open", open);
    let asked = s1(json!({"target": "t1^", "confirmed": true}));
    assert_eq!(client.code("restore", asked), "agent-refused");
    assert_eq!(client.code("drop", s1(json!({"all": true, "confirmed": true}))), "agent-refused");
    assert_eq!(sandbox.read("a"), "two");
}

#[test]
fn what_other_processes_write_is_seen() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let (mut one, mut two) = (Client::start(&sandbox, &[]), Client::start(&sandbox, &[]));
    one.open(&sandbox, "s1");
    two.open(&sandbox, "s2");
    one.turn("s1", 1, || sandbox.write("a", "two"));
    sandbox.write("a", "three");
    let saved = sandbox.json(0, &["save", "-m", "beside"]);
    two.turn("s2", 1, || sandbox.write("b", "x"));
    for client in [&mut one, &mut two] {
        let session = if client.call("list", s1(json!({}))).is_ok() { "s1" } else { "s2" };
        let all = client.ok("list", json!({"session": session, "allSessions": true}));
        let ids: Vec<_> = all["points"].as_array().unwrap().iter().map(|p| p["id"].clone()).collect();
        assert!(ids.contains(&saved["id"]) && ids.len() == 5, "{ids:?}");
    }
    // And what is written here is seen there; gc by another process does not pull the store from under this one.
    assert_eq!(sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 5);
    sandbox.ok(&["gc"]);
    sandbox.write("a", "four");
    assert_eq!(one.ok("capture", s1(json!({"kind": "manual"})))["created"], true);
    let id = saved["id"].clone();
    one.ok("restore", s1(json!({"target": id, "scope": "files", "confirmed": true, "policy": {"drift": "overwrite", "withOthers": true}})));
    assert_eq!(sandbox.read("a"), "three");
}

#[test]
fn captures_of_a_session_keep_their_order_and_a_call_is_captured_once() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "0");
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    client.ok("turn.begin", s1(json!({"turn": 1})));
    let mut ids = Vec::new();
    for step in 1..=6 {
        let asked =
            json!({"kind": "mutation", "turn": 1, "step": step, "callId": format!("c{step}"), "besidesTurns": true});
        ids.push(client.send("capture", s1(asked)));
    }
    ids.push(client.send("turn.end", s1(json!({"turn": 1}))));
    let answers: Vec<Value> = ids.into_iter().map(|id| client.wait(id).unwrap()).collect();
    // The start of the turn does not stand for the first; the others hold the same state as that.
    let created: Vec<bool> = answers.iter().map(|a| a["created"].as_bool().unwrap()).collect();
    assert_eq!(created, [true, false, false, false, false, false, true]);
    let again = client.ok("capture", s1(json!({"kind": "mutation", "turn": 1, "callId": "c1"})));
    assert_eq!((&again["id"], &again["created"]), (&answers[0]["id"], &json!(false)));
}

#[test]
fn a_deadline_that_has_passed_leaves_a_gap_and_the_list_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "0");
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    let missed = client.ok("capture", s1(json!({"kind": "manual", "deadlineMs": 0})));
    assert_eq!((&missed["id"], &missed["gap"]["reason"]), (&Value::Null, &json!("deadline")), "{missed}");
    let all = client.ok("list", s1(json!({})));
    assert_eq!((&all["gaps"][0]["id"], &all["unprotectedReason"]), (&missed["gap"]["id"], &json!("deadline")));
}

#[test]
fn tm13_marks_are_kept_and_completed() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    assert_eq!(client.ok("mark", s1(json!({"logLength": 7, "turn": 1, "objective": "look"})))["id"], 1);
    assert_eq!(client.ok("hasActive", s1(json!({})))["active"], true);
    assert_eq!(client.ok("latestMark", s1(json!({})))["mark"]["logLength"], 7);
    assert!(client.ok("completeFold", s1(json!({"id": 1})))["mark"]["foldedAt"].is_i64());
    assert_eq!(client.ok("hasActive", s1(json!({})))["active"], false);
    assert_eq!(client.code("completeFold", s1(json!({"id": 9}))), "not-found");
}

#[test]
fn tq04_named_points_are_written_through_and_rewound_by_the_host() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["session.fork"]);
    client.open(&sandbox, "s1");
    assert_eq!(client.code("name.set", s1(json!({"label": "x"}))), "NO_COMPLETED_TURN");
    client.turn("s1", 1, || ());
    client.ok("turn.begin", s1(json!({"turn": 2, "position": {"ordinal": 20}})));
    let set = client.ok("name.set", s1(json!({"label": "before it", "note": "why"})));
    assert_eq!(set["seq"], 19);
    let file = sandbox.read(".dsh/memory/checkpoints.md");
    assert!(file.ends_with("] before it | session=s1 | seq=19 | why\n"), "{file}");
    client.ok("name.set", s1(json!({"kind": "auto-turn"})));
    assert_eq!(client.ok("name.list", s1(json!({})))["points"].as_array().unwrap().len(), 2);
    client.on("session.fork", |params| {
        assert_eq!(params["boundary"], 19);
        Ok(json!({"child": params["child"]}))
    });
    assert_eq!(client.ok("name.rewind", s1(json!({"label": "before it", "child": "c1"})))["child"], "c1");
    assert_eq!(client.code("name.rewind", s1(json!({"label": "none"}))), "LABEL_NOT_FOUND");
    client.on("session.fork", |_| {
        Err(json!({"code": 1, "message": "taken", "data": {"code": "SESSION_ALREADY_EXISTS"}}))
    });
    assert_eq!(client.code("name.rewind", s1(json!({"label": "before it"}))), "SESSION_ALREADY_EXISTS");
}

#[test]
fn a_fork_that_fails_leaves_files_restored_and_is_asked_for_again() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &["session.fork"]);
    client.open(&sandbox, "s1");
    client.turn("s1", 1, || sandbox.write("a", "two"));
    client.turn("s1", 2, || sandbox.write("a", "three"));
    client.on("session.fork", |_| Err(json!({"code": 1, "message": "busy"})));
    let error = client.call("restore", s1(json!({"target": "t2^", "confirmed": true}))).unwrap_err();
    assert_eq!(error["data"]["code"], "not-forked");
    assert_eq!(listed(&error["data"]["outcome"]["restored"]), ["a"]);
    assert_eq!(sandbox.read("a"), "two");
    let asked = client.seen.last().unwrap().1["child"].clone();
    assert_eq!(client.code("restore", s1(json!({"target": "t1^", "confirmed": true}))), "unfinished-operation");
    client.on("session.fork", |params| Ok(json!({"child": params["child"]})));
    let settled = client.ok("recover", s1(json!({"way": "finish"})));
    assert_eq!(settled["childSessionId"], asked);
    assert_eq!(client.ok("list", s1(json!({})))["unfinished"], Value::Null);
}

/// 002-39: the configuration of a point comes back only when it is asked for.
#[test]
fn c002_39_a_configuration_goes_back_through_the_host() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &["hostState.restore"]);
    client.open(&sandbox, "s1");
    client.ok("turn.begin", s1(json!({"turn": 1, "hostState": "theme=dark"})));
    sandbox.write("a", "two");
    client.ok("turn.end", s1(json!({"turn": 1, "hostState": "theme=light"})));
    client.on("hostState.restore", |_| Ok(json!({"durable": true})));
    client.ok("restore", s1(json!({"target": "t1^", "scope": "files", "confirmed": true, "config": true})));
    assert_eq!(client.seen.last().unwrap().1["state"], "theme=dark");
}

#[test]
fn points_are_compared_named_and_dropped() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    client.turn("s1", 1, || {
        sandbox.write("a", "two");
        sandbox.write("d/b", "x");
    });
    let diff = client.ok("diff", s1(json!({"from": "t1^", "to": "t1"})));
    assert_eq!(diff["changes"], json!([{"path": "a", "change": "modified"}, {"path": "d/b", "change": "added"}]));
    sandbox.remove("a");
    let now = client.ok("diff", s1(json!({"from": "t1"})));
    assert_eq!((&now["changes"], &now["to"]), (&json!([{"path": "a", "change": "removed"}]), &Value::Null));
    client.ok("point.name", s1(json!({"label": "good", "target": "t1"})));
    client.ok(
        "restore",
        s1(json!({"target": "good", "scope": "files", "confirmed": true, "policy": {"drift": "overwrite"}})),
    );
    assert_eq!(sandbox.read("a"), "two");
    let dropped = client.ok("drop", s1(json!({"kinds": ["turn-start", "guard"], "confirmed": true})));
    assert_eq!((dropped["dropped"].as_array().unwrap().len(), dropped["kept"].as_array().unwrap().len()), (1, 1));
    assert!(client.ok("gc", s1(json!({"dryRun": true})))["keptObjects"].as_u64().unwrap() > 0);
    let examined = client.ok("doctor", s1(json!({})));
    assert_eq!(examined["ok"], true, "{examined}");
}

/// A sidecar lives as long as its host: what every capture leaves is joined and thinned out meanwhile, as after `rwd save`.
#[test]
fn hundreds_of_captures_of_one_sidecar_leave_few_packs() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    client.ok("turn.begin", s1(json!({"turn": 1, "position": {"ordinal": 1}})));
    for n in 0..240 {
        sandbox.write("a", format!("state {n}"));
        let call = format!("call {n}");
        let capture = json!({"kind": "mutation", "turn": 1, "step": 1, "trigger": "bash", "callId": call});
        assert_eq!(client.ok("capture", s1(capture))["created"], true, "{n}");
    }
    // Retention keeps the first and the newest fifty of a turn, and looks after every sixteenth.
    let kept = client.ok("list", s1(json!({"limit": 400})))["points"].as_array().unwrap().len();
    assert!((50..=70).contains(&kept), "{kept} points");
    assert_eq!(client.end(), Some(0));
    let packs = tree(&sandbox.store()).into_keys().filter(|path| path.ends_with(b".pack")).count();
    assert!((1..=50).contains(&packs), "{packs} packs");
    sandbox.ok(&["verify", "--rehash"]);
}

fn notices(client: &Client) -> Vec<Value> {
    client.seen.iter().filter(|(method, _)| method == "notice").map(|(_, params)| params.clone()).collect()
}

/// Design § 11: no harness tells its model that files were put back under it.
#[test]
fn a_model_is_told_once_what_somebody_else_restored() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &[]);
    client.open(&sandbox, "s1");
    client.open(&sandbox, "s2");
    client.turn("s1", 1, || sandbox.write("a", "two"));
    assert!(client.seen.iter().all(|(method, _)| method != "notice"), "{:?}", client.seen);
    // By another session of the same sidecar: its own model knows, the other's does not.
    let asked = json!({"session": "s2", "target": "s1/t1^", "scope": "files", "confirmed": true, "policy": {"withOthers": true}});
    client.ok("restore", asked);
    assert_eq!(sandbox.read("a"), "one");
    client.turn("s2", 1, || ());
    client.turn("s1", 2, || ());
    client.turn("s1", 3, || ());
    let told = notices(&client);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["session"], &told[0]["kind"]), (&json!("s1"), &json!("restored")));
    assert!(told[0]["text"].as_str().unwrap().contains("1 path restored (a)"), "{told:?}");
    // By another process.
    sandbox.json(0, &["undo", "--yes", "--force"]);
    client.turn("s1", 4, || ());
    assert_eq!(notices(&client).len(), 2);
}

/// 000-04: what readers of the older form look at, while a session is open with `view`.
#[test]
fn c000_04_turns_are_shown_as_files_where_the_client_wants_it() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let mut client = Client::start(&sandbox, &[]);
    let open = |session: &str, view: &Value| json!({"session": session, "harness": "test", "roots": [sandbox.work()], "log": "none", "view": view});
    assert_eq!(client.code("session.open", open("s1", &json!("not/absolute"))), "usage");
    let at = sandbox.top().join("shown");
    client.ok("session.open", open("s1", &json!(at)));
    client.turn("s1", 1, || sandbox.write("a", "two"));
    client.turn("s1", 2, || sandbox.write("b", "x"));
    client.ok("list", s1(json!({})));
    let index = std::fs::read(at.join("checkpoint/s1/index.json")).unwrap();
    let records: Value = serde_json::from_slice(&index).unwrap();
    assert_eq!((&records[0]["changed"], &records[1]["changed"]), (&json!(["a"]), &json!(["b"])));
    // A session whose directory an older plugin has: told once, and nothing is written there.
    std::fs::create_dir_all(at.join("checkpoint/s2")).unwrap();
    std::fs::write(at.join("checkpoint/s2/index.json"), "[]").unwrap();
    client.ok("session.open", open("s2", &json!(at)));
    client.turn("s2", 1, || sandbox.write("a", "three"));
    client.turn("s2", 2, || sandbox.write("a", "four"));
    client.ok("list", json!({"session": "s2"}));
    let told = notices(&client);
    assert_eq!((told.len(), &told[0]["kind"]), (1, &json!("warning")), "{told:?}");
    assert_eq!(std::fs::read_to_string(at.join("checkpoint/s2/index.json")).unwrap(), "[]");
}
