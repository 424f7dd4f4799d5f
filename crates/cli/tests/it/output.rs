//! What looking looks like: show, diff, log, and the text of refusals.

use crate::sandbox::Sandbox;

fn two_points() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\ntwo\nthree\n");
    sandbox.write("bin", [0, 1, 2]);
    sandbox.write("d/x", "x\n");
    sandbox.ok(&["save", "--name", "first"]);
    sandbox.write("a.txt", "one\n2\nthree\n");
    sandbox.write("bin", [0, 1, 3]);
    sandbox.write("new", "n\n");
    sandbox.ok(&["save", "--name", "second"]);
    sandbox
}

/// Text with ids, times and sizes replaced by what does not change.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let bare = word.trim_end();
        let hex = bare.len() >= 8 && bare.bytes().all(|b| b.is_ascii_hexdigit());
        let time = bare.len() == 8 && bare.bytes().filter(|b| *b == b':').count() == 2;
        out.push_str(&match (hex, time) {
            (true, _) => word.replace(bare, "[ID]"),
            (_, true) => word.replace(bare, "[TIME]"),
            _ => word.to_owned(),
        });
    }
    out
}

#[test]
fn diff_as_list_stat_and_patch() {
    let sandbox = two_points();
    insta::assert_snapshot!(plain(&sandbox.ok(&["diff", "first", "second"]).out), @r"
    3 paths changed from [ID] to [ID]
      modified  a.txt
      modified  bin
      added     new
    ");
    insta::assert_snapshot!(plain(&sandbox.ok(&["diff", "first", "second", "--stat"]).out), @r"
    3 paths changed from [ID] to [ID]
      modified  a.txt  +1 -1
      modified  bin  binary
      added     new  +1 -0
    ");
    insta::assert_snapshot!(sandbox.ok(&["diff", "first", "-p", "--", "a.txt", "bin"]).out, @r"
    diff --rwd a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    diff --rwd a/bin b/bin
    Binary content differs
    ");
    assert_eq!(sandbox.ok(&["diff", "first", "--name-only"]).out, "a.txt\nbin\nnew\n");
    // Without arguments and without a turn: from the newest point to now, read from the disk.
    sandbox.write("a.txt", "one\n2\nTHREE\n");
    let now = sandbox.json(0, &["diff"]);
    assert_eq!((now["changes"][0]["added"].clone(), now["to"].clone()), (1.into(), serde_json::Value::Null));
    assert!(sandbox.ok(&["diff", "-p"]).out.contains("+THREE\n"));
}

/// The default of diff: what the last turn did.
#[test]
fn diff_of_the_last_turn() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.turn(1, |s| s.write("a", "two\n"));
    sandbox.turn(2, |s| s.write("b", "new\n"));
    assert_eq!(sandbox.ok(&["diff", "--name-only"]).out, "b\n");
    assert_eq!(sandbox.ok(&["diff", "t1^", "t1", "--name-only"]).out, "a\n");
}

#[test]
fn show_a_point_a_file_and_a_directory() {
    let sandbox = two_points();
    assert_eq!(sandbox.ok(&["show", "first", "a.txt"]).out, "one\ntwo\nthree\n");
    assert_eq!(sandbox.ok(&["show", "first", "bin"]).raw, [0, 1, 2]);
    assert_eq!(sandbox.ok(&["show", "first", "d"]).out, "d/x\n");
    sandbox.json(9, &["show", "first", "new"]);
    let shown = sandbox.json(0, &["show", "second", "a.txt"]);
    assert_eq!((shown["kind"].clone(), shown["content"].clone()), ("file".into(), "b25lCjIKdGhyZWUK".into()));
    let point = sandbox.json(0, &["show", "second"]);
    let changed: Vec<_> = point["changes"].as_array().unwrap().iter().map(|c| c["change"].as_str().unwrap()).collect();
    assert_eq!(changed, ["modified", "modified", "added"]);
    assert!(sandbox.ok(&["show", "second"]).out.starts_with("3 paths changed, 4 files\n"));
}

#[test]
fn the_timeline() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save", "--name", "start", "-m", "before the agent"]);
    sandbox.turn(1, |s| s.write("a", "two\n"));
    insta::assert_snapshot!(plain(&sandbox.ok(&[]).out), @r"
    [ID]  [TIME]  -     manual   0 paths changed  [start]  before the agent
    [ID]  [TIME]  t1    start    0 paths changed
    [ID]  [TIME]  t1    end      1 path changed
    3 points listed
    to see what changed since the last turn began: rwd diff t1^
    ");
    let last = sandbox.json(0, &["log", "-n", "1"]);
    assert_eq!((last["points"].as_array().unwrap().len(), last["points"][0]["kind"].clone()), (1, "turn-end".into()));
    sandbox.ok(&["to", "agent/t1^", "--yes"]);
    let ops = sandbox.ok(&["log", "--ops"]).out;
    assert!(ops.lines().last().unwrap().starts_with("to take the last one back: rwd undo "), "{ops}");
    assert_eq!(sandbox.json(0, &["log", "--ops"])["operations"][0]["kind"], "restore");
    assert!(sandbox.ok(&["log", "--graph"]).out.contains("| * "));
    // Guards are shown only when everything is asked for.
    let kinds = |args: &[&str]| {
        sandbox.json(0, args)["points"].as_array().unwrap().iter().filter(|p| p["kind"] == "guard").count()
    };
    assert_eq!((kinds(&["log"]), kinds(&["log", "--all"])), (0, 1));
}

#[test]
fn a_refusal_names_paths_then_hints() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.turn(1, |s| s.write("a", "two\n"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    sandbox.write("a", "mine\n");
    insta::assert_snapshot!(sandbox.rwd(&["to", "t1^", "--yes"]).err, @r"
    error: a changed outside this session and would be overwritten
      a  (hand-made)

    hint: to leave them as they are: rwd to t1^ --keep-drift --yes
    hint: to restore one of them: rwd to t1^ --overwrite a --yes
    hint: to restore all of them (undo brings the edits back): rwd to t1^ --overwrite-drift --yes
    ");
}

#[test]
fn colors_only_when_wanted() {
    let sandbox = two_points();
    assert!(!sandbox.ok(&["log"]).out.contains('\u{1b}'));
    assert!(sandbox.ok(&["log", "--color", "always"]).out.contains('\u{1b}'));
}

#[test]
fn completions_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(sandbox.ok(&["completions", shell]).out.contains("preview"), "{shell}");
    }
    assert!(sandbox.ok(&["--help"]).out.contains("Exit codes:"));
    assert!(sandbox.ok(&["--version"]).out.starts_with("rwd "));
}
