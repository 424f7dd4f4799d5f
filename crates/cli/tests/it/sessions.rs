//! `rwd session`: logs of the real host, read, cut, checked and repaired without it, and never changed.

use std::fs;

use serde_json::Value;
use testkit::dsh_logs::Encoding;

use crate::dsh_home::{DshHome, cases, rows, six_turns};

fn session(home: &DshHome, code: i32, args: &[&str]) -> Value {
    let answer = home.sandbox.json(code, &[&["session"], args].concat());
    home.unchanged();
    answer
}

/// It needs no workspace, and registers none.
#[test]
fn list_and_show_need_no_workspace() {
    let mut home = DshHome::new();
    home.add(&cases("04-fork-live-store/after-fork/sessions"));
    let list = session(&home, 0, &["list"]);
    let ids: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "{list}");
    let fork = list["sessions"].as_array().unwrap().iter().find(|entry| entry["id"] == "fork-live").unwrap();
    assert_eq!((fork["seedLength"].as_u64(), fork["session"].as_str()), (Some(102), Some("dsh:fork-live")));
    assert_eq!(fork["cwd"], "/home/user/shop");
    let parent = fork["parent"].as_str().unwrap();
    assert!(ids.contains(&parent));
    let shown = session(&home, 0, &["show", &format!("dsh:{parent}")]);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 3);
    assert_eq!((shown["openTurn"].clone(), shown["loadable"].clone()), (Value::Null, true.into()));
    assert!(shown["turns"][0]["prompt"].as_str().unwrap().starts_with("Turn one: create files."));
    assert!(!home.sandbox.data().exists(), "nothing was registered");
    let text = home.sandbox.ok(&["session", "list"]).out;
    assert!(text.contains("3 sessions in ") && text.contains(&format!("  from {parent}")), "{text}");
}

/// A folder that was named and holds no logs is told from one without sessions.
#[test]
fn a_home_that_is_none() {
    let home = DshHome::new();
    assert!(session(&home, 0, &["list"])["sessions"].as_array().unwrap().is_empty());
    let inside = home.path().join("sessions");
    let error = session(&home, 9, &["list", "--home", inside.to_str().unwrap()]);
    assert_eq!(error["error"]["code"], "no-sessions", "{error}");
    assert!(error["error"]["hints"][0].as_str().unwrap().contains("holds sessions/"), "{error}");
}

#[test]
fn boundaries_are_the_ends_of_turns() {
    let home = DshHome::of("02-edits-3turn");
    let found = session(&home, 0, &["boundaries", "edits3"]);
    let seqs: Vec<(u64, u64)> = found["boundaries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| (at["seq"].as_u64().unwrap(), at["turn"].as_u64().unwrap()))
        .collect();
    assert_eq!(seqs, [(60, 1), (101, 2), (147, 3)]);
    assert!(found["boundaries"].as_array().unwrap().iter().all(|at| at["reason"] == "completed" && at["at"].is_i64()));
}

/// 004-30 to 33: the child has the parent's events and is a session that loads.
#[test]
fn c004_33_a_fork_shares_the_prefix() {
    let home = DshHome::of("02-edits-3turn");
    let made = session(&home, 0, &["fork", "edits3", "--turn", "2", "--child", "mine"]);
    assert_eq!((made["child"].as_str(), made["seedLength"].as_u64()), (Some("mine"), Some(102)));
    assert_eq!((made["boundary"].as_u64(), made["closers"].as_u64()), (Some(101), Some(0)));
    assert!(made.as_object().unwrap().contains_key("continue"));
    let (parent, child) = (session(&home, 0, &["show", "edits3"]), session(&home, 0, &["show", "mine"]));
    assert_eq!((child["parent"].as_str(), child["cwd"].clone()), (Some("edits3"), parent["cwd"].clone()));
    let path = |of: &Value| std::path::PathBuf::from(of["path"]["path"].as_str().unwrap());
    let (old, new) = (rows(&path(&parent)), rows(&path(&child)));
    assert_eq!(path(&made), path(&child));
    assert_eq!(new[..102], old[..102]);
    assert!(new[102].starts_with(r#"{"type":"session/end-seed""#) && new.len() == 103, "{:?}", &new[102..]);
    let checked = session(&home, 0, &["verify", "mine"]);
    assert_eq!((checked["loadable"].clone(), checked["strict"].clone()), (true.into(), true.into()));
    // By position, and of everything.
    assert_eq!(session(&home, 0, &["fork", "edits3", "--at", "60"])["seedLength"], 61);
    assert_eq!(session(&home, 0, &["fork", "edits3"])["seedLength"], 148);
}

/// 004-30 to 32, TN31, TN37, TN38: refusals have the harness's own codes, end with 3, and make nothing.
#[test]
fn tn31_tn37_refusals_have_the_harnesses_codes_and_make_nothing() {
    let home = DshHome::of("02-edits-3turn");
    for (args, code) in [
        (&["fork", "edits3", "--at", "70"][..], "OPEN_TURN"),
        (&["fork", "edits3", "--at", "148"], "INVALID_BOUNDARY"),
        (&["fork", "edits3", "--turn", "4"], "INVALID_BOUNDARY"),
        // The id of the child is looked at first.
        (&["fork", "edits3", "--at", "70", "--child", "edits3"], "SESSION_ALREADY_EXISTS"),
    ] {
        let error = session(&home, 3, args);
        assert_eq!(error["error"]["code"], code, "{args:?}");
        assert!(!error["error"]["hints"].as_array().unwrap().is_empty(), "{args:?}");
    }
    for (args, code) in
        [(&["show", "nobody"][..], "SESSION_NOT_FOUND"), (&["fork", "x", "--at", "1"], "SESSION_NOT_FOUND")]
    {
        let error = session(&home, 9, args);
        assert_eq!(error["error"]["code"], code);
        assert_eq!(error["error"]["hints"][0], "there is: edits3");
    }
    let error = session(&home, 2, &["fork", "edits3", "--child", "../x"]);
    assert_eq!(error["error"]["code"], "BAD_SESSION_ID");
    assert_eq!(session(&home, 2, &["list", "--harness", "cursor"])["error"]["code"], "unknown-harness");
    assert!(home.new_logs().is_empty());
    // What a hint says can be pasted, with the flags that lead here.
    let elsewhere = DshHome::new();
    let at = home.path();
    let refused = elsewhere.sandbox.rwd(&["session", "fork", "edits3", "--at", "70", "--home", at.to_str().unwrap()]);
    let hint = refused.err.lines().last().unwrap().rsplit_once("cut: ").unwrap().1.to_owned();
    let words: Vec<&str> = hint.split(' ').skip(1).collect();
    assert!(elsewhere.sandbox.ok(&words).out.contains("t2"), "{hint}");
}

/// An open turn at the end is refused by default, and no reason to refuse an earlier cut (TN28).
#[test]
fn tn28_an_open_turn_is_refused_and_an_earlier_end_is_not() {
    let mut home = DshHome::new();
    let mut events = six_turns();
    let end = events.iter().rposition(|event| &*event.kind == "turn/end").unwrap();
    events.truncate(end);
    home.put("running", &events, Encoding::Zstd);
    for args in [&["fork", "running"][..], &["fork", "running", "--turn", "6"]] {
        assert_eq!(session(&home, 3, args)["error"]["code"], "OPEN_TURN", "{args:?}");
    }
    assert_eq!(session(&home, 0, &["show", "running"])["openTurn"], 6);
    let checked = session(&home, 0, &["verify", "running"]);
    assert_eq!((checked["loadable"].clone(), checked["strict"].clone()), (true.into(), true.into()));
    let open: Vec<&str> =
        checked["problems"].as_array().unwrap().iter().map(|at| at["severity"].as_str().unwrap()).collect();
    assert!(!open.is_empty() && open.iter().all(|severity| *severity == "open"), "{checked}");
    assert!(home.new_logs().is_empty());
    assert_eq!(session(&home, 0, &["fork", "running", "--turn", "5"])["boundary"], home.end_of("running", 5));
}

/// Every log that the real host was shown: `verify` says of each what the host said.
#[test]
fn verify_agrees_with_the_host() {
    let verdicts = fs::read_to_string(cases("16-forged/VERDICTS.tsv")).unwrap();
    let mut seen = 0;
    for line in verdicts.lines().skip(1) {
        let mut fields = line.split('\t');
        let (variant, load) = (fields.next().unwrap(), fields.next().unwrap());
        // An empty directory is not kept by version control, and a session that occurs twice has no file of its own.
        if variant == "v-emptydir" {
            continue;
        }
        let mut home = DshHome::of("16-forged/parent");
        home.add(&cases("16-forged/forged").join(variant));
        let found = home.sandbox.rwd(&["--json", "session", "verify", variant]);
        let answer = found.json();
        if load == "ok" {
            assert_eq!((found.code, answer["loadable"].clone()), (0, true.into()), "{variant}: {answer}");
        } else {
            // A verdict, or a folder in which no session of that name can be found.
            let code = if answer["error"].is_object() { 3 } else { 8 };
            assert_eq!(found.code, code, "{variant}: {answer}");
            let said = answer["loadable"] == false && !answer["problems"].as_array().unwrap().is_empty();
            assert!(said || answer["error"]["code"].is_string(), "{variant}: {answer}");
        }
        home.unchanged();
        seen += 1;
    }
    assert!(seen > 30);
    for (case, id, loads) in
        [("03-unknown-event", None, false), ("09-two-processes", None, false), ("01-plain-2turn", None, true)]
    {
        let home = DshHome::of(case);
        let list = session(&home, 0, &["list"]);
        let id = id.unwrap_or_else(|| list["sessions"][0]["id"].as_str().unwrap());
        let answer = session(&home, if loads { 0 } else { 8 }, &["verify", id]);
        assert_eq!(answer["loadable"], loads, "{case}: {answer}");
    }
}

/// 004-20: a torn tail is no damage. The log keeps it, the copy does without, and has its turn closed.
#[test]
fn c004_11_repair_writes_a_copy_and_leaves_the_log() {
    for (case, suffix) in [("15-torn-plaintext", ".jsonl"), ("15-torn-zstd", ".jsonl.zstd")] {
        let mut home = DshHome::new();
        home.add(&cases(case).join("before/sessions"));
        let list = session(&home, 0, &["list"]);
        let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
        assert!(session(&home, 0, &["show", &id])["torn"]["bytes"].as_u64().unwrap() > 0);
        let made = session(&home, 0, &["repair", &id]);
        let path = made["path"]["path"].as_str().unwrap();
        assert!(path.ends_with(&format!("{suffix}.repaired")), "{path}");
        assert!(made["closers"].as_u64().unwrap() > 0 && made["torn"]["bytes"].as_u64().unwrap() > 0, "{made}");
        let end = rows(std::path::Path::new(path)).pop().unwrap();
        assert!(end.starts_with(r#"{"type":"turn/end""#) && end.contains("interrupted"), "{end}");
        // Never over anything, never over the log itself.
        session(&home, 2, &["repair", &id]);
        let own = list["sessions"][0]["path"]["path"].as_str().unwrap();
        session(&home, 2, &["repair", &id, "--to", own]);
        let to = home.sandbox.top().join("copy.jsonl");
        assert_eq!(
            session(&home, 0, &["repair", &id, "--to", to.to_str().unwrap()])["path"]["path"],
            to.to_str().unwrap()
        );
        // The copy beside the log does not disturb the session.
        assert_eq!(session(&home, 0, &["verify", &id])["loadable"], true);
    }
    let home = DshHome::of("09-two-processes");
    let list = session(&home, 0, &["list"]);
    let id = list["sessions"][0]["id"].as_str().unwrap();
    assert_eq!(session(&home, 3, &["repair", id])["error"]["code"], "CORRUPT_LOG");
    assert!(home.new_logs().is_empty());
}

/// Nothing is read of logs before a command needs them: a home that cannot be read stops neither save nor restore.
#[test]
fn saving_pays_nothing_for_logs() {
    let home = DshHome::new();
    let sessions = home.path().join("sessions");
    fs::remove_dir(&sessions).unwrap();
    fs::write(&sessions, "no directory").unwrap();
    let sandbox = &home.sandbox;
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    sandbox.ok(&["to", "latest~1", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
    sandbox.json(0, &["log"]);
}
