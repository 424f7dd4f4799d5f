//! Commands that are printed work where they are pasted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::sandbox::{Ran, Sandbox, ran};

/// Runs a printed command in a directory, through a shell.
fn pasted(sandbox: &Sandbox, dir: &Path, command: &str) -> Ran {
    let rest = command.strip_prefix("rwd").expect("a command of rwd");
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(format!("{}{rest}", env!("CARGO_BIN_EXE_rwd"))).current_dir(dir).env_clear();
    ran(shell.env("HOME", sandbox.home()).env("TZ", "UTC").stdin(std::process::Stdio::null()))
}

/// The command behind a hint.
fn behind<'a>(hints: &'a serde_json::Value, begins: &str) -> &'a str {
    let hints = hints.as_array().unwrap().iter().map(|hint| hint.as_str().unwrap());
    let hint = hints.clone().find(|hint| hint.starts_with(begins));
    let hint = hint.unwrap_or_else(|| panic!("no {begins:?} in {:?}", hints.collect::<Vec<_>>()));
    &hint[hint.find("rwd ").unwrap()..]
}

/// A path in a hint is relative to where it will be typed, whatever bytes it has.
#[test]
fn paths_in_hints_are_relative_to_the_current_directory() {
    for name in ["top", "sub/-dash", "sub/a b", "sub/deep/x", "other/'q"]
        .map(OsStr::new)
        .into_iter()
        .chain([OsStr::from_bytes(b"sub/\xff\n")])
    {
        let sandbox = Sandbox::new();
        sandbox.write("sub/deep/stay", "");
        sandbox.write(name, "one\n");
        sandbox.turn(1, |s| s.write(name, "two\n"));
        sandbox.write(name, "by hand\n");
        let dir = sandbox.work().join("sub/deep");
        let refused = ran(sandbox.command(&["to", "t1^", "--yes"]).current_dir(&dir));
        assert_eq!(refused.code, 3, "{refused:?}");
        let hint = refused.err.lines().find_map(|line| line.strip_prefix("hint: to restore one of them: ")).unwrap();
        assert_eq!(hint.matches("--overwrite").count(), 1, "{hint}");
        // `--yes` was given and stays given.
        let went = pasted(&sandbox, &dir, hint);
        assert_eq!(went.code, 0, "{hint}: {went:?}");
        assert_eq!(std::fs::read(sandbox.work().join(name)).unwrap(), b"one\n");
    }
}

/// No command is offered that would be refused, and "nothing to do" is said only where that is so.
#[test]
fn preview_offers_only_what_would_go_ahead() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.turn(1, |s| s.write("a", "two\n"));
    sandbox.write("a", "by hand\n");
    let undecided = sandbox.json(0, &["preview", "t1^"]);
    assert!(undecided.get("apply").is_none(), "{undecided}");
    let told = sandbox.ok(&["preview", "t1^"]).out;
    assert!(!told.contains("to do it") && !told.contains("nothing to do"), "{told}");
    assert!(told.contains("to leave them as they are: rwd to t1^ --keep-drift\n"), "{told}");
    let command = format!("{} --yes", behind(&undecided["decisions"], "to restore all").replace(" --json", ""));
    assert_eq!(pasted(&sandbox, &sandbox.work(), command.replace("rwd --json", "rwd").as_str()).code, 0);
    assert_eq!(sandbox.read("a"), "one\n");
    let nothing = sandbox.json(0, &["preview", "t1^"]);
    assert!(nothing.get("apply").is_none() && nothing["decisions"].as_array().unwrap().is_empty(), "{nothing}");
    assert!(sandbox.ok(&["preview", "t1^"]).out.ends_with("nothing to do\n"));
    // Blocked: a socket stands where a file belongs.
    sandbox.remove("a");
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.work().join("a")).unwrap();
    let blocked = sandbox.json(0, &["preview", "t1^"]);
    assert!(blocked.get("apply").is_none(), "{blocked}");
    behind(&blocked["decisions"], "to go on without them: ");
}

/// Going to a guard is an undo and says so; what brings it back is a redo, whichever way it was asked for.
#[test]
fn an_answer_says_what_it_came_to_be() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let went = sandbox.json(0, &["to", "latest~1", "--yes"]);
    let (op, guard) = (went["op"].as_str().unwrap(), went["guard"].as_str().unwrap());
    assert!(went["reverses"].is_null());
    let undone = sandbox.ok(&["to", guard, "--yes"]);
    assert!(undone.out.starts_with(&format!("undo of {}\n", &op[..8])), "{}", undone.out);
    assert!(undone.out.ends_with("to bring it back: rwd redo\n"), "{}", undone.out);
    assert_eq!(sandbox.read("a"), "two\n");
    let nothing = sandbox.json(6, &["undo", "--yes"]);
    assert!(nothing["notes"].to_string().contains("rwd redo"), "{nothing}");
    let ops = sandbox.json(0, &["log", "--ops"]);
    let undo = ops["operations"][1]["id"].as_str().unwrap().to_owned();
    let redone = sandbox.ok(&["undo", &undo[..8], "--yes"]);
    let next = redone.out.lines().last().unwrap().strip_prefix("to take it back: ").expect("an undo");
    assert_eq!(sandbox.read("a"), "one\n");
    assert_eq!(pasted(&sandbox, &sandbox.work(), &format!("{next} --yes")).code, 0, "{next}");
    assert_eq!(sandbox.read("a"), "two\n");
}

/// Where two sessions could be meant, what is listed can be typed.
#[test]
fn two_sessions() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.turn_of("dsh:one", 1, |s| s.write("a", "two\n"));
    sandbox.turn_of("dsh:two", 1, |s| s.write("a", "three\n"));
    for args in [&["back", "--yes"][..], &["diff"]] {
        let refused = sandbox.rwd(args);
        assert_eq!(refused.code, 9, "{refused:?}");
        let hint = refused.err.lines().find_map(|line| line.strip_prefix("hint: one of them: ")).unwrap();
        assert!(hint.contains("--session dsh:"), "{hint}");
        assert!(pasted(&sandbox, &sandbox.work(), hint).code == 0, "{hint}");
    }
    let log = sandbox.ok(&["log"]).out;
    let hint = log.lines().last().unwrap().split_once(": ").unwrap().1;
    assert_eq!(pasted(&sandbox, &sandbox.work(), hint).code, 0, "{hint}");
}

#[test]
fn scopes_and_settings() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let refused = sandbox.rwd(&["to", "latest~1", "--both", "--yes"]);
    let hint = refused.err.lines().find_map(|line| line.strip_prefix("hint: files alone: ")).unwrap();
    assert_eq!(hint, "rwd to latest~1 --files --yes");
    assert_eq!(pasted(&sandbox, &sandbox.work(), hint).code, 0);
    let bad = sandbox.json(2, &["config", "set", "restore.guard", "sometimes"]);
    assert_eq!(bad["error"]["hints"], serde_json::json!(["correct it"]), "{bad}");
    let log = sandbox.ok(&["log"]).out;
    assert!(log.contains("2 points listed, 1 guard not shown: rwd log --all\n"), "{log}");
    assert!(log.lines().last().unwrap().starts_with("to see what changed since: rwd diff "), "{log}");
    assert!(sandbox.ok(&["status"]).out.starts_with("2 points listed, 1 guard, "));
}

/// Hints of the engine carry the flags that lead here, too.
#[test]
fn the_place_stays() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    let told = ran(sandbox.command(&["-C", "work", "undo", "--yes"]).current_dir(sandbox.top()));
    assert!(told.code == 6 && told.out.contains("rwd -C work back"), "{told:?}");
}

/// What can be told by a program's reader alone.
#[test]
fn json_of_the_rest() {
    let sandbox = Sandbox::new();
    let completions = sandbox.json(0, &["completions", "bash"]);
    assert_eq!(completions["shell"], "bash");
    assert!(completions["script"].as_str().unwrap().contains("rwd"));
    let missing = sandbox.json(2, &["to"]);
    assert!(missing["error"]["message"].as_str().unwrap().contains("<T>"), "{missing}");
}

/// It makes no point and no workspace, and its answer is an ordinary one.
#[test]
fn an_interrupt() {
    let sandbox = Sandbox::new();
    sandbox.json(10, &["save", "--kind", "interrupt"]);
    assert!(!sandbox.data().exists(), "an interrupt registered a workspace");
    sandbox.write("a", "one\n");
    sandbox.ok(&["save", "--session", "agent", "--turn", "3", "--kind", "turn-start"]);
    sandbox.write("a", "two\n");
    let told = sandbox.ok(&["save", "--kind", "interrupt", "--session", "agent"]);
    assert_eq!(told.out, "turn 3 is marked interrupted; no point made\n");
    let again = sandbox.json(0, &["save", "--kind", "interrupt", "--session", "agent"]);
    assert_eq!(
        (again["created"].clone(), again["changed"].clone(), again["turn"].clone()),
        (false.into(), 0.into(), 3.into())
    );
    sandbox.json(6, &["save", "--kind", "interrupt", "--session", "nobody"]);
    sandbox.json(0, &["save"]);
    let same = sandbox.json(0, &["save"]);
    assert_eq!((same["created"].clone(), same["changed"].clone()), (false.into(), 0.into()));
}

/// What diff names in a directory can be typed there, and piped back in.
#[test]
fn diff_names_paths_from_the_current_directory() {
    let sandbox = Sandbox::new();
    sandbox.write("top", "one\n");
    sandbox.write("sub/a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("top", "two\n");
    sandbox.write("sub/a", "two\n");
    let dir = sandbox.work().join("sub");
    let run = |args: &[&str]| ran(sandbox.command(args).current_dir(&dir));
    assert_eq!(run(&["diff", "--name-only"]).out, "a\n../top\n");
    assert!(run(&["diff"]).out.contains("  modified  ../top\n"));
    assert_eq!(run(&["diff", "--name-only", "--", "../top"]).out, "../top\n");
    assert_eq!(crate::sandbox::listed(&run(&["diff", "--json"]).json()["changes"]), ["sub/a", "top"]);
    sandbox.ok(&["save"]);
    let piped = "rwd diff latest~1 --name-only > ../list; rwd to latest~1 --yes --paths-from ../list";
    let piped = piped.replace("; rwd", &format!("; {}", env!("CARGO_BIN_EXE_rwd")));
    assert_eq!(pasted(&sandbox, &dir, &piped).code, 0);
    assert_eq!((sandbox.read("top"), sandbox.read("sub/a")), ("one\n".into(), "one\n".into()));
}

/// Design § 9, "works from subdirectories": every list for people names paths so that they can be typed where they are
/// read; answers for machines name them from the root.
#[test]
fn all_lists_name_paths_from_the_current_directory() {
    let sandbox = Sandbox::new();
    for name in ["top", "sub/a"] {
        sandbox.write(name, "one\n");
    }
    sandbox.ok(&["save"]);
    for name in ["top", "sub/a"] {
        sandbox.write(name, "two\n");
    }
    let dir = sandbox.work().join("sub");
    let run = |args: &[&str]| ran(sandbox.command(args).current_dir(&dir));
    let lines = |text: &str, has: &[&str]| {
        for line in has {
            assert!(text.lines().any(|one| one == *line), "{line:?} in {text}");
        }
    };
    lines(&run(&["preview", "latest"]).out, &["  ../top", "  a"]);
    let refused = run(&["to", "latest", "--yes"]);
    assert_eq!(refused.code, 3);
    lines(&refused.err, &["  ../top  (hand-made)", "  a  (hand-made)"]);
    let refused = run(&["to", "latest", "--yes", "--json"]).json();
    assert_eq!(crate::sandbox::listed(&refused["error"]["paths"]), ["sub/a", "top"]);
    lines(&run(&["to", "latest", "--yes", "--overwrite-drift"]).out, &["  ../top", "  a"]);
    sandbox.write("sub/big", vec![0; 3 << 20]);
    lines(&run(&["save"]).out, &["  big  (too-large)"]);
    lines(&run(&["show", "latest"]).out, &["  big  (too-large)"]);
    // From the root they are what they were, and a single one is taken as it was printed.
    lines(&sandbox.ok(&["show", "latest"]).out, &["  sub/big  (too-large)"]);
}
