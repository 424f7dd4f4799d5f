//! Test lines of themes A, E, G, K and L that are about what the program prints and where it looks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;

use crate::sandbox::{Sandbox, listed, ran};

/// Turns are counted from the newest: 1 is the last one. Beyond the first there is nothing.
#[test]
fn ta21_ta28_ta31_turns_are_counted_back_from_the_last() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "0");
    // Points that belong to no turn are none to go back to.
    sandbox.ok(&["save"]);
    sandbox.json(6, &["back", "--yes"]);
    for turn in 1..=3 {
        sandbox.turn(turn, |s| s.write("a", turn.to_string()));
    }
    for refused in ["0", "-1", "x", "1.5"] {
        assert_eq!(sandbox.rwd(&["back", refused, "--yes"]).code, 2, "{refused}");
    }
    assert_eq!(sandbox.rwd(&["back", "4", "--yes"]).code, 9, "there are three");
    assert_eq!(sandbox.read("a"), "3");
    sandbox.ok(&["back", "1", "--yes"]);
    assert_eq!(sandbox.read("a"), "2");
    sandbox.ok(&["undo", "--yes"]);
    sandbox.ok(&["back", "3", "--yes"]);
    assert_eq!(sandbox.read("a"), "0");
}

/// Blanks at the end of a name are part of it.
#[test]
fn te41_a_root_whose_name_ends_in_blanks() {
    let sandbox = Sandbox::new();
    for name in ["work ", "work  ", " "] {
        let root = sandbox.top().join(name);
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join("a"), name).unwrap();
        let run = |args: &[&str]| ran(sandbox.command(args).current_dir(&root));
        assert_eq!(run(&["save", "--name", "good"]).code, 0);
        fs::write(root.join("a"), "other").unwrap();
        let done = run(&["to", "good", "--overwrite-drift", "--yes"]);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(fs::read_to_string(root.join("a")).unwrap(), name);
    }
    assert!(!sandbox.has("a"), "nothing went to the directory without blanks");
}

/// One directory is one workspace, by whatever path it is reached.
#[test]
fn tg10_tg16_a_directory_is_one_workspace_whatever_leads_to_it() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "1");
    sandbox.write("d/b", "1");
    let first = sandbox.json(0, &["save"])["id"].clone();
    symlink(sandbox.work(), sandbox.top().join("link")).unwrap();
    let same = |dir: &Path, more: &[&str]| {
        let mut args = vec!["--json"];
        args.extend(more);
        args.push("save");
        let answer = ran(sandbox.command(&args).current_dir(dir)).json();
        assert_eq!(
            (answer["id"].clone(), answer["created"].clone()),
            (first.clone(), false.into()),
            "{dir:?} {more:?}"
        );
    };
    for dir in ["work", "work/d", "link", "link/d", "home/../work", "link/d/../../work"] {
        same(&sandbox.top().join(dir), &[]);
    }
    for root in ["../work", "../link", "../home/../link/d/.."] {
        same(&sandbox.home(), &["-C", root]);
    }
    sandbox.store();
}

/// People see the beginning of a long list and how much more there is; programs get all of it.
#[test]
fn tk40_a_long_preview_is_cut_for_people_and_whole_as_json() {
    let sandbox = Sandbox::new();
    let paths: Vec<String> = (10..60).map(|n| format!("f{n}")).collect();
    for path in &paths {
        sandbox.write(path, "1");
    }
    sandbox.ok(&["save", "--name", "good"]);
    for path in &paths {
        sandbox.write(path, "2");
    }
    sandbox.ok(&["save"]);
    let shown = sandbox.ok(&["preview", "good"]).out;
    let named = paths.iter().filter(|path| shown.lines().any(|line| line.trim() == path.as_str())).count();
    assert!((1..50).contains(&named), "{shown}");
    assert!(shown.contains(&format!("and {} more\n", 50 - named)) && shown.contains("overwrite 50"), "{shown}");
    assert_eq!(listed(&sandbox.json(0, &["preview", "good"])["overwrite"]), paths);
}

/// Without a number people get the newest twenty; a number counts from 1; everything is there on demand.
#[test]
fn tl26_tl27_tl29_the_timeline_has_a_limit() {
    let sandbox = Sandbox::new();
    for n in 0..23 {
        sandbox.write("a", n.to_string());
        sandbox.ok(&["save"]);
    }
    let rows = |args: &[&str]| sandbox.ok(args).out.lines().filter(|line| line.contains("  manual  ")).count();
    assert_eq!(
        [rows(&["log"]), rows(&["log", "-n", "3"]), rows(&["log", "-n", "22"]), rows(&["log", "--all"])],
        [20, 3, 22, 23]
    );
    for refused in ["0", "-1", "x", "4294967296"] {
        assert_eq!(sandbox.rwd(&["log", &format!("-n{refused}")]).code, 2, "{refused}");
    }
    assert_eq!(sandbox.json(0, &["log", "-n", "4294967295"])["points"].as_array().unwrap().len(), 23);
}

/// Two versions of a text, in lines.
fn texts() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let line = prop_oneof![Just("same".to_owned()), "[a-c]{0,2}"];
    let lines = || proptest::collection::vec(line.clone(), 0..40);
    (lines(), lines())
}

/// What a patch makes of the old lines, and the most lines of context in a row. Line numbers of both sides are checked.
fn applied(old: &[String], patch: &str) -> (Vec<String>, usize) {
    let (mut out, mut at, mut context, mut longest) = (Vec::new(), 0, 0, 0);
    for line in patch.lines().skip_while(|line| !line.starts_with("@@ ")) {
        if let Some(head) = line.strip_prefix("@@ -") {
            let (start, rest) = head.split_once(" +").unwrap();
            let (first, count) = start.split_once(',').unwrap_or((start, "1"));
            let start: usize = first.parse().unwrap();
            let begin = if count == "0" { start } else { start - 1 };
            out.extend_from_slice(&old[at..begin]);
            at = begin;
            let new: usize = rest.split([',', ' ']).next().unwrap().parse().unwrap();
            let none_new = rest.split_once(' ').unwrap().0.ends_with(",0");
            assert_eq!(out.len(), if none_new { new } else { new - 1 }, "{line}");
            context = 0;
        } else if let Some(text) = line.strip_prefix(' ') {
            assert_eq!(text, old[at], "context is what both sides have");
            out.push(text.to_owned());
            at += 1;
            context += 1;
        } else if let Some(text) = line.strip_prefix('-') {
            assert_eq!(text, old[at]);
            at += 1;
            context = 0;
        } else if let Some(text) = line.strip_prefix('+') {
            out.push(text.to_owned());
            context = 0;
        } else {
            assert!(line.starts_with('\\'), "{line}");
        }
        longest = longest.max(context);
    }
    out.extend_from_slice(&old[at..]);
    (out, longest)
}

fn patch_of(old: &[String], new: &[String]) -> String {
    let sandbox = Sandbox::new();
    let text = |lines: &[String]| lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
    sandbox.write("f", text(old));
    sandbox.ok(&["save", "--name", "old"]);
    sandbox.write("f", text(new));
    sandbox.ok(&["diff", "old", "-p"]).out
}

fn lines(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Changes in between, everything removed, everything added; three lines around a change and no more.
#[test]
fn tk22_tk23_tk25_tk29_a_patch_says_what_changed_and_three_lines_around_it() {
    let rows = |old: &str, new: &str| {
        let patch = patch_of(&lines(old), &lines(new));
        patch.lines().skip_while(|line| !line.starts_with("@@")).map(str::to_owned).collect::<Vec<_>>()
    };
    let middle = rows("1 2 3 4 5 6 7 8 9", "1 2 3 4 x 6 7 8 9");
    assert_eq!(middle, ["@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+x", " 6", " 7", " 8"]);
    assert_eq!(rows("1 2 3", "1 x 3 y"), ["@@ -1,3 +1,4 @@", " 1", "-2", "+x", " 3", "+y"]);
    assert_eq!(rows("1 2", ""), ["@@ -1,2 +0,0 @@", "-1", "-2"]);
    assert_eq!(rows("", "1 2"), ["@@ -0,0 +1,2 @@", "+1", "+2"]);
    // Far apart: two places, each with its own lines around it.
    let apart = rows("x 1 2 3 4 5 6 7 8 y", "a 1 2 3 4 5 6 7 8 b");
    assert_eq!(apart.iter().filter(|row| row.starts_with("@@")).count(), 2, "{apart:?}");
    assert_eq!(rows("1 2", "1 2"), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever changed: the patch makes the new text of the old one, and its context is in both.
    #[test]
    fn tk22_tk25_tk31_a_patch_makes_the_new_of_the_old((old, new) in texts()) {
        let (made, context) = applied(&old, &patch_of(&old, &new));
        prop_assert_eq!(made, new);
        prop_assert!(context <= 6, "{}", context);
    }
}
