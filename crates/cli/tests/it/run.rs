//! `rwd run -- CMD`: what it captures, and that the command notices nothing of it.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use crate::sandbox::{Sandbox, ran};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new().with("PATH", "/usr/bin:/bin");
    sandbox.write("a", "one\n");
    sandbox.write("gone", "gone\n");
    sandbox
}

#[test]
fn what_a_command_did_can_be_taken_back() {
    let sandbox = sandbox();
    let before = sandbox.tree();
    let told = sandbox.ok(&["run", "--", "sh", "-c", "echo two > a; rm gone; echo new > new; echo said"]);
    assert_eq!(told.out, "said\n");
    assert!(told.err.contains("3 paths changed; to go back: rwd to run:main/t1^"), "{}", told.err);
    let after = sandbox.tree();
    sandbox.ok(&["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.tree(), after);
    // The command that was printed does it too.
    let back = told.err.split("to go back: rwd ").nth(1).unwrap().trim();
    let words: Vec<&str> = back.split(' ').collect();
    sandbox.ok(&[&words[..], &["--exact", "--yes"]].concat());
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn the_way_a_command_ends_is_passed_on() {
    let sandbox = sandbox();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        assert_eq!(sandbox.rwd(&["run", "--", "sh", "-c", script]).code, code, "{script}");
    }
    let answer = sandbox.json(143, &["run", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!((&answer["exit"], &answer["signal"]), (&143.into(), &15.into()));
    assert_eq!(sandbox.json(127, &["run", "--", "no-such-program"])["error"]["code"], "not-started");
    sandbox.write("no-program", "text");
    assert_eq!(sandbox.json(126, &["run", "--", "./no-program"])["error"]["code"], "not-started");
    assert_eq!(sandbox.rwd(&["run"]).code, 2);
}

#[test]
fn the_streams_are_the_commands_own() {
    let sandbox = sandbox();
    let mut command = sandbox.command(&["run", "-q", "--", "sh", "-c", "cat; echo err >&2"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"raw \xff\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"raw \xff\n"[..], &b"err\n"[..]));
}

/// A signal that somebody sends goes to the command, and the point after is made all the same.
#[test]
fn signals_are_passed_on() {
    let sandbox = sandbox();
    for (name, signal) in [("TERM", rustix::process::Signal::TERM), ("INT", rustix::process::Signal::INT)] {
        let script = format!("trap 'echo {name} > a; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = sandbox.command(&["run", "--", "sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(9));
        assert_eq!(sandbox.read("a"), format!("{name}\n"));
        sandbox.ok(&["back", "--yes"]);
        assert_ne!(sandbox.read("a"), format!("{name}\n"));
    }
}

#[test]
fn points_are_made_while_it_runs() {
    let sandbox = sandbox().with("RWD_RUN_INTERVAL_MS", "10");
    // It ends when the store has seen its first change: the point is there before the second.
    // Each change is one rename: `>` empties the file first, and that state may be captured too.
    sandbox.write("second", "two\n");
    sandbox.write("third", "three\n");
    let script = "mv second a; until [ -e stop ]; do sleep 0.02; done; mv third a";
    let child = sandbox.command(&["run", "--", "sh", "-c", script]).spawn().unwrap();
    loop {
        let log = sandbox.rwd(&["--json", "log"]);
        if log.code == 0 && log.json()["points"].as_array().unwrap().iter().any(|point| point["kind"] == "auto") {
            break;
        }
    }
    sandbox.write("stop", "");
    assert_eq!(crate::sandbox::ended(child).code, 0);
    sandbox.ok(&["to", "latest", "--files", "--yes"]);
    assert_eq!(sandbox.read("a"), "two\n");
}

/// What cannot be captured is told, and the command runs.
#[test]
fn a_store_that_cannot_be_used_stops_no_command() {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.data().parent().unwrap()).unwrap();
    fs::write(sandbox.data(), "in the way").unwrap();
    let told = sandbox.rwd(&["run", "--", "sh", "-c", "echo done > a; exit 5"]);
    assert_eq!((told.code, sandbox.read("a").as_str()), (5, "done\n"), "{told:?}");
    assert!(told.err.contains("not captured"), "{}", told.err);
    // A home directory is no workspace; commands run there all the same.
    let home = ran(sandbox.command(&["run", "--", "sh", "-c", "exit 6"]).current_dir(sandbox.home()));
    assert_eq!(home.code, 6, "{home:?}");
}

/// So that `rwd back` and `t2^` mean what they seem to: no session of many is to be named.
#[test]
fn runs_that_follow_each_other_are_turns_of_one_session_and_one_beside_another_is_not() {
    let sandbox = sandbox();
    for turn in [1, 2] {
        let ran = sandbox.json(0, &["run", "--", "sh", "-c", &format!("echo {turn} > a")]);
        assert_eq!(ran["back"], format!("rwd to run:main/t{turn}^"));
        assert_eq!((ran["points"].as_array().unwrap().len(), &ran["changed"]), (2, &1.into()));
    }
    sandbox.ok(&["back", "--yes"]);
    assert_eq!(sandbox.read("a"), "1\n");
    sandbox.ok(&["to", "t1^", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
    let mut outer =
        sandbox.command(&["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = outer.stdin.take().unwrap();
    input.write_all(b"x").unwrap();
    outer.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let beside = sandbox.json(0, &["run", "--", "true"]);
    assert_ne!(beside["session"], "run:main");
    drop(input);
    assert!(outer.wait().unwrap().success());
    let named = sandbox.json(0, &["--session", "run:mine", "run", "--", "true"]);
    assert_eq!(named["session"], "run:mine");
}
