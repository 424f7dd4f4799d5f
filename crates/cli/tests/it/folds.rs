//! `rwd mark` and `rwd fold` on a log of the real host (contract 001). The log is never changed.

use std::fs;

use checkpoint_core::{LogEvent, Turn};
use serde_json::Value;
use testkit::dsh_logs::Encoding;

use crate::dsh_home::{DshHome, rows};

/// Three recorded turns.
fn recorded() -> Vec<LogEvent> {
    DshHome::of("02-edits-3turn").logs().events("edits3").unwrap()
}

/// A workspace that has a point, and a session in it of which the host has recorded so much.
fn talked(events: &[LogEvent]) -> DshHome {
    let mut home = DshHome::new();
    home.put("s", events, Encoding::Zstd);
    home.sandbox.write("a", "one\n");
    home.sandbox.ok(&["save"]);
    home
}

/// A mark at the end of turn 1, and then two more turns.
fn explored() -> DshHome {
    let events = recorded();
    let mut home = talked(&events[..61]);
    let marked = home.sandbox.json(0, &["mark", "change the files"]);
    assert_eq!((marked["id"].as_u64(), marked["logLength"].as_u64()), (Some(1), Some(61)));
    assert_eq!((marked["session"].as_str(), marked["turn"].clone()), (Some("dsh:s"), Value::Null));
    home.unchanged();
    assert!(home.new_logs().is_empty());
    home.put("s", &events, Encoding::Zstd);
    home
}

#[test]
fn c001_09_a_fold_makes_a_child_with_the_report_and_leaves_the_log() {
    let home = explored();
    let folded = home.sandbox.json(0, &["fold"]);
    let numbers = ["markId", "foldedNodes", "start", "end"].map(|key| folded[key].as_u64().unwrap());
    assert_eq!(numbers, [1, 12, 65, 145]);
    assert!(folded["reportChars"].as_u64() < folded["foldedChars"].as_u64());
    assert_eq!(folded["recovered"], false);
    home.unchanged();
    let made = home.new_logs();
    assert_eq!(made, [std::path::PathBuf::from(folded["childPath"]["path"].as_str().unwrap())]);
    let report = rows(&made[0]).pop().unwrap();
    assert!(report.contains(r#""source":{"kind":"plugin","plugin":"rewind"}"#), "{report}");
    assert!(report.contains(r#"{"op":"replace","start":65,"end":145}"#) && report.contains("rm notes.md"), "{report}");
    let child = folded["childSessionId"].as_str().unwrap();
    let checked = home.sandbox.json(0, &["session", "verify", child]);
    assert_eq!((checked["loadable"].clone(), checked["strict"].clone()), (true.into(), true.into()), "{checked}");
    // 001-19: never again, and nothing is made.
    let again = home.sandbox.json(3, &["fold", "--session", "dsh:s"]);
    assert_eq!(again["error"]["code"], "EMPTY_REGION");
    assert_eq!(home.new_logs().len(), 1);
}

#[test]
fn c001_13_refusals_have_the_contracts_codes_and_make_nothing() {
    let events = recorded();
    let code = |home: &DshHome, code: i32, args: &[&str]| {
        let answer = home.sandbox.json(code, args);
        assert!(home.new_logs().is_empty());
        home.unchanged();
        answer["error"]["code"].as_str().unwrap().to_owned()
    };
    let home = talked(&events);
    assert_eq!(code(&home, 3, &["fold"]), "NO_CHECKPOINT");
    home.sandbox.ok(&["mark"]);
    assert_eq!(code(&home, 3, &["fold"]), "EMPTY_REGION");
    let home = explored();
    let report = |text: &str| {
        let path = home.sandbox.top().join("report.md");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    assert_eq!(code(&home, 3, &["fold", "--report", &report(&"x".repeat(100_000))]), "SHRINK");
    assert_eq!(code(&home, 1, &["fold", "--report", &report(" \n")]), "NO_REPORT");
    code(&home, 1, &["fold", "--report", "/none/report.md"]);
    code(&home, 2, &["fold", "--report", "x", "--extract"]);
    code(&home, 2, &["fold", "--language", "de"]);
    assert_eq!(code(&home, 9, &["mark", "--session", "claude:x"]), "not-found");
}

#[test]
fn a_given_report_and_one_in_chinese() {
    let home = explored();
    let path = home.sandbox.top().join("report.md");
    fs::write(&path, "## Findings\nall is well\n").unwrap();
    let text = home.sandbox.ok(&["fold", "--report", path.to_str().unwrap()]).out;
    assert!(text.starts_with("folded 12 nodes since mark 1 (65..145): "), "{text}");
    assert!(rows(&home.new_logs()[0]).pop().unwrap().contains("all is well"));
    let home = explored();
    home.sandbox.ok(&["fold", "--extract", "--language", "zh"]);
    assert!(rows(&home.new_logs()[0]).pop().unwrap().contains("## 文件与产物"));
}

/// An open turn may be its agent's: nothing is folded from outside before it ends.
#[test]
fn an_open_turn_can_be_marked_and_not_folded() {
    let events = recorded();
    let mut home = talked(&events[..110]);
    let marked = home.sandbox.json(0, &["mark"]);
    assert_eq!(marked["turn"], Turn(3).0);
    home.put("s", &events[..124], Encoding::Zstd);
    let report = home.sandbox.top().join("report.md");
    fs::write(&report, "done").unwrap();
    let fold = ["fold", "--report", report.to_str().unwrap()];
    assert_eq!(home.sandbox.json(3, &fold)["error"]["code"], "OPEN_TURN");
    assert!(home.new_logs().is_empty());
    home.put("s", &events, Encoding::Zstd);
    home.sandbox.json(0, &fold);
}

/// Nobody guesses which of two sessions is meant; each has a command.
#[test]
fn several_sessions_at_work_are_a_question() {
    let mut home = talked(&recorded());
    home.put("other", &recorded(), Encoding::Plain);
    for verb in ["mark", "fold"] {
        let error = home.sandbox.json(9, &[verb]);
        assert_eq!(error["error"]["code"], "ambiguous", "{error}");
        let hints = error["error"]["hints"].as_array().unwrap();
        assert!(hints.iter().any(|hint| hint.as_str().unwrap().ends_with("--session dsh:other")), "{error}");
    }
}

#[test]
fn c001_01_marks_need_a_workspace_and_a_log() {
    let home = DshHome::new();
    assert_eq!(home.sandbox.json(10, &["mark"])["error"]["code"], "no-workspace");
    home.sandbox.write("a", "one\n");
    home.sandbox.ok(&["save"]);
    for verb in ["mark", "fold"] {
        assert_eq!(home.sandbox.json(9, &[verb])["error"]["code"], "SESSION_NOT_FOUND");
        assert_eq!(home.sandbox.json(3, &[verb, "--session", "local"])["error"]["code"], "FORK_UNSUPPORTED");
    }
}
