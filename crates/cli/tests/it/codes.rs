//! Every exit code, and that a refusal leaves everything as it was. Codes 0, 3, 4, 9, 10 and 11 are in the stories too.

use std::fs;

use crate::sandbox::Sandbox;

fn saved() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox
}

#[test]
fn failure_is_1() {
    let sandbox = saved();
    let error = sandbox.json(1, &["to", "latest", "--yes", "--paths-from", "/nonexistent/list"]);
    assert_eq!(error["error"]["code"], "io");
    assert_eq!(error["error"]["causes"].as_array().unwrap().len(), 1);
    fs::write(sandbox.top().join("file"), "").unwrap();
    let ran = sandbox.rwd(&["--data-dir", "../file/x", "save"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("caused by: "), "{}", ran.err);
}

#[test]
fn usage_is_2_also_as_json_and_writes_nothing() {
    let sandbox = Sandbox::new();
    for args in [
        &["--no-such-flag"][..],
        &["run"],
        &["to"],
        &["to", "t1", "--files", "--chat"],
        &["recover"],
        &["save", "--turn", "x"],
        &["save", "--turn", "0"],
        &["save", "--name", "t7"],
        &["save", "--session", "a b"],
        &["to", "t7^^"],
        &["to", "@"],
        &["-C", "no/such/dir", "save"],
    ] {
        let error = sandbox.json(2, args);
        assert_eq!(error["schema"], "rwd.error/1");
    }
    assert!(!sandbox.data().exists(), "a usage error registered something");
    let told = sandbox.rwd(&["to"]);
    assert!(told.code == 2 && told.out.is_empty() && told.err.contains("Usage: "), "{told:?}");
}

#[test]
fn partly_done_is_5() {
    let sandbox = saved();
    sandbox.write("b", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.remove("b");
    sandbox.ok(&["save"]);
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.work().join("b")).unwrap();
    let blocked = sandbox.json(3, &["to", "latest~1", "--yes"]);
    assert_eq!(blocked["error"]["code"], "blocked");
    assert_eq!(sandbox.read("a"), "two\n");
    let went = sandbox.json(5, &["to", "latest~1", "--yes", "--skip-blocked"]);
    assert_eq!(went["status"], "partial");
    assert_eq!(went["blocked"][0]["path"], "b");
    assert_eq!(sandbox.read("a"), "one\n");
}

/// Design § 9: the ordinary object with exit 6; preview exits 0.
#[test]
fn nothing_to_do_is_6() {
    let sandbox = saved();
    let went = sandbox.json(6, &["to", "latest", "--yes"]);
    assert_eq!((went["schema"].clone(), went["status"].clone()), ("rwd.to/1".into(), "nothing".into()));
    sandbox.json(6, &["to", "latest"]);
    sandbox.json(0, &["preview", "latest"]);
    assert_eq!(sandbox.json(6, &["undo", "--yes"])["schema"], "rwd.undo/1");
    assert_eq!(sandbox.json(6, &["redo", "--yes"])["schema"], "rwd.redo/1");
    assert_eq!(sandbox.json(6, &["back", "--yes"])["schema"], "rwd.back/1");
    assert_eq!(sandbox.json(6, &["recover", "--back"])["schema"], "rwd.recover/1");
    assert_eq!(sandbox.json(6, &["adopt"])["changed"], false);
}

/// Design § 7: bare undo after further work of the agent says what to type instead.
#[test]
fn undo_after_newer_work_is_6_and_points_at_back() {
    let sandbox = saved();
    sandbox.turn(7, |s| s.write("a", "agent\n"));
    let told = sandbox.rwd(&["undo", "--yes"]);
    assert_eq!(told.code, 6, "{told:?}");
    assert_eq!(told.out, "nothing of rwd to undo since turn 7\nto take the agent's last turn back: rwd back\n");
}

#[test]
fn a_newer_store_is_8() {
    let sandbox = saved();
    let registry = sandbox.data().join("workspaces.json");
    let text = fs::read_to_string(&registry).unwrap();
    fs::write(&registry, text.replace("\"format\": \"1.", "\"format\": \"9.")).unwrap();
    assert_eq!(sandbox.json(8, &["log"])["error"]["code"], "newer-store");
    fs::write(&registry, "{").unwrap();
    assert_eq!(sandbox.json(8, &["save"])["error"]["code"], "damaged-index");
    fs::write(&registry, text).unwrap();
    fs::write(sandbox.store().join("index.sqlite"), "this is no database, however long it is said to be").unwrap();
    for beside in ["index.sqlite-wal", "index.sqlite-shm"] {
        drop(fs::remove_file(sandbox.store().join(beside)));
    }
    assert_eq!(sandbox.json(8, &["log"])["error"]["code"], "damaged-index");
    assert_eq!(sandbox.json(8, &["to", "latest", "--yes"])["error"]["code"], "damaged-index");
    assert_eq!(sandbox.json(8, &["doctor"])["ok"], false);
    assert_eq!(sandbox.read("a"), "one\n");
}

#[test]
fn not_found_and_ambiguous_are_9() {
    let sandbox = saved();
    for target in ["t9", "t9^", "latest~7", "ffffffff", "no-such-name", "nobody/t1", "@2001-01-01T00:00", "step:4"] {
        assert_eq!(sandbox.json(9, &["preview", target])["error"]["code"], "not-found", "{target}");
    }
    sandbox.turn_of("one", 1, |s| s.write("a", "x"));
    sandbox.turn_of("two", 1, |s| s.write("a", "y"));
    let error = sandbox.json(9, &["preview", "t1^"]);
    assert_eq!(error["error"]["code"], "ambiguous");
    assert!(error["error"]["hints"][0].as_str().unwrap().contains("one/t1^"), "{error}");
    sandbox.json(0, &["preview", "one/t1^", "--with-others"]);
    sandbox.json(0, &["preview", "t1^", "--session", "tw"]);
    sandbox.json(9, &["preview", "t1^", "--session", "nobody"]);
}

#[test]
fn no_workspace_is_10() {
    let sandbox = Sandbox::new();
    for args in [
        &["log"][..],
        &["show", "t1"],
        &["diff"],
        &["preview", "t1"],
        &["to", "t1", "--yes"],
        &["back"],
        &["undo"],
        &["redo"],
        &["recover", "--back"],
        &["name", "t1", "x"],
        &["drop", "--all", "--yes"],
        &["status"],
        &["du"],
        &["gc"],
        &["verify"],
        &["doctor"],
        &["adopt"],
    ] {
        let mut json = vec!["--json"];
        json.extend(args);
        assert_eq!(sandbox.rwd(&json).code, 10, "{args:?}");
    }
    assert!(!sandbox.data().exists(), "asking made a data directory");
    let told = sandbox.rwd(&[]);
    assert!(told.err.contains("\nhint: to protect this directory from now on: rwd init"), "{}", told.err);
}

/// A pipe that nobody reads is no error.
#[test]
fn a_broken_pipe_is_0() {
    let sandbox = saved();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = sandbox.command(&["log"]).stdout(writer).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A set of signals of a process, as the kernel tells it.
fn signals(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(field));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Waits until the process catches signals: SIGHUP is the last it asks for, so SIGINT is settled by then.
fn listening(pid: u32) {
    while signals(pid, "SigCgt:") & 1 == 0 {
        std::thread::yield_now();
    }
}

fn interrupt(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// A signal ends the wait for a lock that somebody else holds, and nothing was written.
#[test]
fn interrupted_is_130() {
    let sandbox = saved().with("RWD_LOCK_WAIT_MS", "600000");
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let lock = fs::File::open(sandbox.store().join("lock")).unwrap();
    lock.lock().unwrap();
    for args in [&["to", "latest~1", "--yes", "--json"][..], &["save", "--json"]] {
        let child = sandbox.command(args).stdout(std::process::Stdio::piped()).spawn().unwrap();
        listening(child.id());
        interrupt(child.id());
        let ran = crate::sandbox::ended(child);
        assert_eq!(ran.code, 130, "{ran:?}");
        assert_eq!(ran.json()["error"]["code"], "interrupted");
    }
    lock.unlock().unwrap();
    assert_eq!(sandbox.read("a"), "two\n");
    sandbox.json(6, &["recover", "--back"]);
    sandbox.json(0, &["to", "latest~1", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
}

/// The second signal ends the process wherever it is: here it waits for somebody to write into a FIFO.
#[test]
fn interrupted_twice_is_130_at_once() {
    let sandbox = saved();
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let fifo = sandbox.top().join("list");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let args = ["to", "latest~1", "--yes", "--paths-from", fifo.to_str().unwrap()];
    let mut child = sandbox.command(&args).spawn().unwrap();
    listening(child.id());
    interrupt(child.id());
    // Two that wait together count as one.
    while signals(child.id(), "ShdPnd:") & 2 != 0 {
        std::thread::yield_now();
    }
    assert!(child.try_wait().unwrap().is_none(), "the first signal ended it");
    interrupt(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(sandbox.read("a"), "two\n");
}
