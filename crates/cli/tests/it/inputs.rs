//! Input that is odd, hostile or wrong.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::sandbox::{Sandbox, ran};

/// Roots that would capture far too much, or rwd itself, are refused without `--force`.
#[test]
fn refused_roots() {
    let sandbox = Sandbox::new();
    for dir in ["/", sandbox.home().to_str().unwrap(), sandbox.top().to_str().unwrap()] {
        let error = sandbox.json(2, &["-C", dir, "save"]);
        assert_eq!(error["error"]["code"], "refused-root", "{dir}");
    }
    let inside = sandbox.work().join("data");
    let error = sandbox.json(2, &["--data-dir", inside.to_str().unwrap(), "save"]);
    assert_eq!(error["error"]["code"], "refused-root");
    assert!(!sandbox.data().exists() && !inside.exists(), "a refusal left something behind");
}

/// Forced, a data directory inside the workspace is left out of captures and never restored.
#[test]
fn a_data_directory_inside_the_workspace_is_left_out() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    let data = sandbox.work().join("data");
    let data = data.to_str().unwrap();
    let saved = sandbox.json(0, &["--data-dir", data, "save", "--force"]);
    assert!(
        saved["skipped"].as_array().unwrap().iter().any(|s| s["path"] == "data" && s["reason"] == "reserved"),
        "{saved}"
    );
    sandbox.write("a", "two\n");
    sandbox.json(0, &["--data-dir", data, "save", "--force"]);
    sandbox.json(0, &["--data-dir", data, "to", "latest~1", "--exact", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
    sandbox.json(0, &["--data-dir", data, "undo", "--yes"]);
    assert_eq!(sandbox.read("a"), "two\n");
}

/// Design § 9: a path is a string with U+FFFD, and its bytes beside it.
#[test]
fn names_that_are_not_utf8() {
    let sandbox = Sandbox::new();
    let name = OsStr::from_bytes(b"\xff\xfe.txt");
    sandbox.write(name, "one\n");
    sandbox.ok(&["save"]);
    sandbox.write(name, "two\n");
    sandbox.ok(&["save"]);
    let preview = sandbox.json(0, &["preview", "latest~1"]);
    assert_eq!(preview["overwrite"], serde_json::json!([{ "path": "\u{fffd}\u{fffd}.txt", "pathBytes": "//4udHh0" }]));
    let args = ["to", "latest~1", "--yes", "--"].map(OsStr::new);
    let went = ran(&mut sandbox.command_os(&[&args[..], &[name]].concat()));
    assert_eq!(went.code, 0, "{went:?}");
    assert_eq!(fs::read(sandbox.work().join(name)).unwrap(), b"one\n");
}

/// A root whose own name is not UTF-8.
#[test]
fn a_root_that_is_not_utf8() {
    let sandbox = Sandbox::new();
    let root = sandbox.work().join(OsStr::from_bytes(b"r\xff"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "one\n").unwrap();
    let saved = ran(sandbox.command(&["save", "--json"]).current_dir(&root));
    assert_eq!(saved.code, 0, "{saved:?}");
    assert!(saved.json()["root"]["pathBytes"].is_string());
    assert_eq!(ran(sandbox.command(&["status", "--json"]).current_dir(&root)).code, 0);
}

/// A file name must neither forge a line nor steer the terminal.
#[test]
fn names_with_control_characters_stay_on_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write("x\n\u{1b}[31mroot removed\n", "one\n");
    sandbox.ok(&["save"]);
    sandbox.remove("x\n\u{1b}[31mroot removed\n");
    sandbox.ok(&["save"]);
    let told = sandbox.ok(&["preview", "latest~1"]);
    assert!(!told.out.contains('\u{1b}') && told.out.contains("x\\n\\u{1b}[31mroot removed"), "{}", told.out);
    let name = "x\n\u{1b}[31mroot removed\n";
    sandbox.turn(1, |s| s.write(name, "agent\n"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    sandbox.write(name, "by hand\n");
    let refused = sandbox.rwd(&["to", "t1^", "--yes", "--exact"]);
    let asked = sandbox.rwd(&["to", "latest~2", "--yes"]);
    for ran in [&refused, &asked] {
        assert!(!ran.err.contains('\u{1b}') && !ran.out.contains('\u{1b}'), "{ran:?}");
    }
    let patch = sandbox.ok(&["diff", "latest~1", "-p"]);
    assert!(!patch.out.contains('\u{1b}'), "{}", patch.out);
}

/// A directory that was made anew under the same path: older points say so and need --adopt.
#[test]
fn a_replaced_root() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    let old = sandbox.json(0, &["save"])["id"].as_str().unwrap().to_owned();
    fs::rename(sandbox.work(), sandbox.top().join("away")).unwrap();
    fs::create_dir(sandbox.work()).unwrap();
    sandbox.write("a", "two\n");
    // The old directory is still there under another name, so that its inode cannot be used again.
    let saved = ran(sandbox.command(&["save", "--json"]).current_dir(sandbox.work()));
    assert_eq!(saved.code, 0, "{saved:?}");
    let error = sandbox.json(3, &["to", &old, "--yes"]);
    assert_eq!(error["error"]["code"], "other-incarnation");
    assert_eq!(sandbox.json(0, &["log"])["points"][0]["restorable"], false);
    // The point that found the directory replaced belongs to what is there now: it needs no consent to go back to.
    assert_eq!(sandbox.json(0, &["log"])["points"][1]["restorable"], true);
    sandbox.write("a", "three\n");
    sandbox.json(0, &["to", "latest", "--overwrite-drift", "--yes"]);
    assert_eq!(sandbox.read("a"), "two\n");
    let went = sandbox.rwd(&["to", &old, "--yes", "--adopt", "--json"]);
    assert!(went.code == 0 || went.code == 3, "{went:?}");
    // The one that was moved away is recognised, and taken over only when asked.
    let away = sandbox.top().join("away");
    let moved = ran(sandbox.command(&["log", "--json"]).current_dir(&away));
    assert!(moved.code == 10, "{moved:?}");
}

#[test]
fn a_moved_root_is_adopted() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let moved = sandbox.top().join("moved");
    fs::rename(sandbox.work(), &moved).unwrap();
    let run = |args: &[&str]| {
        let mut all = vec!["--json"];
        all.extend(args);
        ran(sandbox.command(&all).current_dir(&moved))
    };
    assert_eq!(run(&["log"]).json()["error"]["code"], "moved-workspace");
    assert_eq!(run(&["save"]).code, 10);
    let adopted = run(&["adopt"]).json();
    assert_eq!((adopted["changed"].clone(), adopted["incarnation"].clone()), (true.into(), 1.into()));
    let went = run(&["to", "latest~1", "--yes"]);
    assert_eq!(went.code, 0, "{went:?}");
    assert_eq!(fs::read(moved.join("a")).unwrap(), b"one\n");
}

/// Names, drop, gc: pins hold, confirmation is needed, guards of operations stay.
#[test]
fn names_and_drops() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save", "--name", "first", "-m", "a note"]);
    sandbox.write("a", "two\n");
    let second = sandbox.json(0, &["save"])["id"].as_str().unwrap().to_owned();
    sandbox.json(0, &["name", &second, "second"]);
    let named = sandbox.json(0, &["log", "--named"]);
    let labels: Vec<_> = named["points"].as_array().unwrap().iter().map(|p| p["names"][0].as_str().unwrap()).collect();
    assert_eq!(labels, ["first", "second"]);
    sandbox.json(0, &["to", "first", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
    sandbox.ok(&["undo", "--yes"]);
    sandbox.json(0, &["name", "--delete", "second"]);
    sandbox.json(9, &["name", "--delete", "second"]);
    sandbox.json(4, &["drop", "first"]);
    assert_eq!(sandbox.json(0, &["drop", "first", "--yes"])["dropped"].as_array().unwrap().len(), 1);
    sandbox.json(9, &["to", "first", "--yes"]);
    sandbox.json(0, &["gc", "--dry-run"]);
    sandbox.json(0, &["gc"]);
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"].as_array().unwrap().len(), 0);
    let du = sandbox.json(0, &["du"]);
    assert!(du["ownBytes"].as_u64().unwrap() > 0);
    sandbox.json(0, &["drop", "--all", "--yes"]);
}

/// Design § 4: an operation locks every registered root that overlaps its paths, and respects their open operations.
#[test]
fn overlapping_workspaces_wait_for_each_other() {
    let sandbox = Sandbox::new().with("RWD_LOCK_WAIT_MS", "50");
    sandbox.write("app/a", "one\n");
    let app = sandbox.json(0, &["-C", "app", "save"])["root"]["path"].as_str().unwrap().to_owned();
    assert!(app.ends_with("/app"));
    let inner = sandbox.store();
    sandbox.ok(&["save"]);
    assert_eq!(sandbox.json(0, &["status"])["overlapping"][0]["path"], app.as_str());
    sandbox.write("app/a", "two\n");
    sandbox.ok(&["save"]);
    let lock = fs::File::open(inner.join("lock")).unwrap();
    lock.lock_shared().unwrap();
    assert_eq!(sandbox.json(11, &["to", "latest~1", "--yes"])["error"]["code"], "busy");
    assert_eq!(sandbox.read("app/a"), "two\n");
    // A capture writes nothing of the user's and does not wait.
    sandbox.ok(&["save"]);
    lock.unlock().unwrap();
    sandbox.json(0, &["to", "latest~1", "--yes"]);
    assert_eq!(sandbox.read("app/a"), "one\n");
    // The nearest root is meant.
    sandbox.json(0, &["-C", "app", "log"]);
}

/// A store that may not be written can still be looked at. Only an ordinary user can be kept out.
#[test]
fn a_read_only_store() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let everything = |mode: u32| {
        for (name, (kind, ..)) in crate::sandbox::tree(&sandbox.data()) {
            let path = sandbox.data().join(OsStr::from_bytes(&name));
            let mode = if kind == 'd' { mode | 0o100 } else { mode };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    everything(0o400);
    let kept_out = fs::File::create(sandbox.store().join("probe")).is_err();
    if kept_out {
        for args in [&["log"][..], &["status"], &["verify"], &["preview", "latest~1"], &["diff", "latest~1"]] {
            sandbox.json(0, args);
        }
        sandbox.write("a", "three\n");
        let error = sandbox.json(1, &["save"]);
        assert!(!error["error"]["causes"].as_array().unwrap().is_empty(), "{error}");
        sandbox.json(1, &["to", "latest~1", "--yes", "--overwrite-drift"]);
        assert_eq!(sandbox.read("a"), "three\n");
        assert_eq!(sandbox.json(1, &["doctor"])["ok"], false);
    }
    everything(0o600);
}

/// The kernel takes no path of 4096 bytes; content below such a one is compared all the same, and no link is followed.
#[test]
fn paths_longer_than_the_kernel_takes() {
    let sandbox = Sandbox::new();
    let part = "d".repeat(250);
    let deep = vec![part.as_str(); 17].join("/");
    // Made from below: no path of this length can be named at once.
    let make = |content: &str| {
        let script = "for i in $(seq 17); do mkdir -p \"$1\" && cd \"$1\" || exit 1; done; printf %s \"$2\" > f";
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", script, "-", &part, content]).current_dir(sandbox.work());
        assert!(shell.status().unwrap().success());
    };
    make("one\n");
    sandbox.ok(&["save"]);
    make("two\nthree\n");
    let diff = sandbox.json(0, &["diff"]);
    assert_eq!(diff["changes"][0]["path"].as_str().unwrap(), format!("{deep}/f"));
    assert_eq!((diff["changes"][0]["added"].clone(), diff["changes"][0]["removed"].clone()), (2.into(), 1.into()));
    assert!(sandbox.ok(&["diff", "--stat"]).out.contains("+2 -1"));
}
