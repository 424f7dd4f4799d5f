//! Questions at a terminal, put to the library in this process: a terminal is a promise of [`rwd::World`].

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::sandbox::Sandbox;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Runs with somebody at the terminal who types `typed`; gives the code and what was on standard error.
fn asked(sandbox: &Sandbox, typed: &str, args: &[&str]) -> (u8, String) {
    let (code, _, err) = run(sandbox, typed, args);
    (code, err)
}

/// The same, that goes well; what was on standard output and standard error.
fn told(sandbox: &Sandbox, typed: &str, args: &[&str]) -> (String, String) {
    let (code, out, err) = run(sandbox, typed, args);
    assert_eq!(code, 0, "{out}{err}");
    (out, err)
}

fn run(sandbox: &Sandbox, typed: &str, args: &[&str]) -> (u8, String, String) {
    let (out, err) = (Kept::default(), Kept::default());
    let mut world = rwd::World::of_process();
    world.args = std::iter::once("rwd").chain(args.iter().copied()).map(Into::into).collect();
    let bin = sandbox.top().join("bin").into();
    world.vars = BTreeMap::from([("HOME".into(), sandbox.home().into()), ("PATH".into(), bin)]);
    world.cwd = Some(sandbox.work());
    world.stdin = Box::new(std::io::Cursor::new(typed.to_owned()));
    world.stdout = Box::new(out.clone());
    world.stderr = Box::new(err.clone());
    world.can_ask = true;
    (world.stdout_is_terminal, world.stderr_is_terminal) = (false, false);
    let code = rwd::run(world);
    (code, out.text(), err.text())
}

fn turned() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.write("b", "one\n");
    sandbox.turn(1, |s| {
        s.write("a", "agent\n");
        s.write("b", "agent\n");
    });
    sandbox
}

/// Enter never destroys.
#[test]
fn enter_end_of_input_and_anything_but_yes_decline() {
    let sandbox = turned();
    let before = sandbox.tree();
    for typed in ["\n", "", "n\n", "yeah\n", "j\n"] {
        let (code, err) = asked(&sandbox, typed, &["to", "t1^"]);
        assert_eq!(code, 4, "{typed:?}: {err}");
        assert!(err.contains("overwrite 2") && err.contains("Go on? [y/N] "), "{err}");
        assert_eq!(sandbox.tree(), before);
    }
    assert_eq!(asked(&sandbox, "y\n", &["to", "t1^", "--no-input"]).0, 4);
    assert_eq!(asked(&sandbox, "y\n", &["to", "t1^", "--json"]).0, 4);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn yes_goes_on() {
    let sandbox = turned();
    assert_eq!(asked(&sandbox, "y\n", &["to", "t1^"]).0, 0);
    assert_eq!(sandbox.read("a"), "one\n");
    assert_eq!(asked(&sandbox, "YES\n", &["undo"]).0, 0);
    assert_eq!(sandbox.read("a"), "agent\n");
    assert_eq!(asked(&sandbox, "\n", &["redo"]).0, 4);
}

/// The names of what is written are read once: before the yes.
#[test]
fn whoever_was_asked_is_not_told_the_names_again() {
    let sandbox = turned();
    let (out, err) = told(&sandbox, "y\n", &["to", "t1^"]);
    assert!(err.contains("  a\n  b\n"), "{err}");
    assert!(out.contains("2 files: 2 restored") && !out.contains("restored:\n"), "{out}");
    // Nobody was asked: here they are.
    let undone = sandbox.ok(&["undo", "--yes"]).out;
    assert!(undone.contains("restored:\n  a\n  b\n"), "{undone}");
}

/// Hand-made paths: keep, overwrite or abort, and abort is the default.
#[test]
fn hand_made_paths_are_asked_about() {
    let edited = || {
        let sandbox = turned();
        std::thread::sleep(std::time::Duration::from_millis(20));
        sandbox.write("a", "mine\n");
        sandbox
    };
    let sandbox = edited();
    for typed in ["\n", "", "x\n"] {
        let (code, err) = asked(&sandbox, typed, &["to", "t1^"]);
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("changed outside this session") && err.contains("  a\n"), "{err}");
    }
    assert_eq!((sandbox.read("a"), sandbox.read("b")), ("mine\n".into(), "agent\n".into()));
    // The decision is not yet the confirmation.
    assert_eq!(asked(&sandbox, "k\n\n", &["to", "t1^"]).0, 4);
    assert_eq!(sandbox.read("b"), "agent\n");
    assert_eq!(asked(&sandbox, "k\ny\n", &["to", "t1^"]).0, 0);
    assert_eq!((sandbox.read("a"), sandbox.read("b")), ("mine\n".into(), "one\n".into()));
    let sandbox = edited();
    assert_eq!(asked(&sandbox, "o\ny\n", &["to", "t1^"]).0, 0);
    assert_eq!((sandbox.read("a"), sandbox.read("b")), ("one\n".into(), "one\n".into()));
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.read("a"), "mine\n");
    // A yes given beforehand is no decision.
    assert_eq!(asked(&sandbox, "o\ny\n", &["to", "t1^", "--yes"]).0, 3);
}

#[test]
fn dropping_asks_too() {
    let sandbox = turned();
    assert_eq!(asked(&sandbox, "\n", &["drop", "--all"]).0, 4);
    assert_eq!(sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 2);
    assert_eq!(asked(&sandbox, "y\n", &["drop", "--all"]).0, 0);
    assert_eq!(sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 0);
}

/// What would be added is shown before the question, and Enter is no yes.
#[test]
fn init_shows_what_it_would_add_and_asks() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.home().join(".gemini")).unwrap();
    std::fs::create_dir(sandbox.top().join("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rwd"), sandbox.top().join("bin/rwd")).unwrap();
    let settings = sandbox.home().join(".gemini/settings.json");
    for typed in ["\n", "n\n", ""] {
        let (code, told) = asked(&sandbox, typed, &["init"]);
        assert_eq!(code, 4, "{told}");
        assert!(told.contains("hooks that come: BeforeAgent, ") && told.contains("Go on? [y/N] "), "{told}");
        assert!(!told.contains("+    \"BeforeAgent\": ["), "{told}");
        assert!(!settings.exists() && !sandbox.data().exists());
    }
    let (code, told) = asked(&sandbox, "d\n\n", &["init"]);
    assert!(code == 4 && told.contains("+    \"BeforeAgent\": ["), "{told}");
    assert_eq!(asked(&sandbox, "y\n", &["init"]).0, 0);
    assert!(settings.exists());
    assert_eq!(asked(&sandbox, "\n", &["uninstall"]).0, 4);
    assert!(settings.exists());
    assert_eq!(asked(&sandbox, "yes\n", &["uninstall"]).0, 0);
    assert!(!settings.exists());
}
