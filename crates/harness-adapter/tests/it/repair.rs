//! Repaired copies.

use std::fs;

use harness_adapter::sessions::dsh::{DshLogs, row_of};

use crate::{
    fork::logs,
    world::{Home, PROJECT, fixture},
};

/// The copy holds what the host made of the log itself when it loaded it.
#[test]
fn tn41_repaired_copies_are_what_the_host_makes_of_the_log() {
    for (case, id) in [("15-torn-zstd", "torn"), ("15-torn-plaintext", "torn"), ("06-killed-mid-stream", "killstream")]
    {
        let home = Home::of(&[&format!("{case}/before")]);
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("copy");
        let repaired = logs(&home).repair(id, &to).unwrap();
        assert!(repaired.closers > 0);
        assert_eq!(repaired.torn.is_some(), case != "06-killed-mid-stream");
        let after = if case == "06-killed-mid-stream" { "after-resume" } else { "after-load" };
        let theirs = Home::of(&[&format!("{case}/{after}")]);
        let theirs: Vec<String> = theirs.logs().events(id).unwrap().iter().map(row_of).collect();
        let own: Vec<String> = DshLogs::events_of_file(&to).unwrap().iter().map(row_of).collect();
        assert_eq!(own, theirs[..own.len()], "{case}");
        let seen = DshLogs::inspect_file(&to).unwrap();
        assert!(seen.loadable && seen.torn.is_none() && seen.open_turn.is_none());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }
}

#[test]
fn a_copy_may_lie_beside_the_log_under_a_name_that_no_log_has() {
    let home = Home::of(&["15-torn-zstd/before"]);
    let folder = home.sessions().join(PROJECT);
    let beside = folder.join("torn/session.jsonl.zstd.repaired");
    logs(&home).repair("torn", &beside).unwrap();
    assert!(home.logs().load("torn").is_ok());
    assert_eq!(home.logs().host_list().unwrap(), 1);
    for bad in [
        beside,
        folder.join("torn/session.jsonl.zstd"),
        folder.join("torn/session.jsonl"),
        folder.join("torn/session.v4.jsonl"),
        folder.join("copy.jsonl.zstd"),
        home.sessions().join("copy"),
    ] {
        assert_eq!(logs(&home).repair("torn", &bad).unwrap_err().code(), "BAD_TARGET", "{}", bad.display());
    }
}

#[test]
fn corrupt_logs_are_not_repaired() {
    let home = Home::of(&["09-two-processes", "03-unknown-event"]);
    let dir = tempfile::tempdir().unwrap();
    for (id, code) in [("shared", "CORRUPT_LOG"), ("noisy", "UNKNOWN_EVENT"), ("nobody", "SESSION_NOT_FOUND")] {
        assert_eq!(logs(&home).repair(id, &dir.path().join("copy")).unwrap_err().code(), code);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Found by random damage: a header that belongs into another folder. The host loads no such log, so there is nothing that
/// it would make of it.
#[test]
fn a_log_in_the_wrong_folder_is_not_repaired() {
    let log = "cases/15-torn-plaintext/whole/sessions/--home-user-shop--/torn/session.jsonl";
    let text = fs::read_to_string(fixture(log)).unwrap().replacen("/home/user/shop", "/home/user/shoq", 1);
    let mut home = Home::of(&[]);
    home.put(PROJECT, "torn", "session.jsonl", text.as_bytes());
    assert_eq!(home.logs().load("torn").unwrap_err().code(), "MISPLACED_LOG");
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(logs(&home).repair("torn", &dir.path().join("copy")).unwrap_err().code(), "MISPLACED_LOG");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
