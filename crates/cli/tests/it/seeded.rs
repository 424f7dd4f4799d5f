//! A first capture that took over what git had, as the user meets it: it goes back, it is counted, it is purged.

use std::process::Command;

use crate::purge::{holders, secret};
use crate::sandbox::Sandbox;

/// A worktree at rest: committed and packed, with deltas. False where git is not installed.
fn packed(sandbox: &Sandbox) -> bool {
    let lines: Vec<String> = (0..300).map(|line| format!("line {line}\n")).collect();
    for n in 0..12 {
        sandbox.write(format!("src/f{n}"), lines.concat().replace("line 150\n", &format!("line of {n}\n")));
    }
    sandbox.write("conf/key", secret());
    std::thread::sleep(std::time::Duration::from_millis(60));
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=u", "-c", "user.email=u@example.invalid", "-c", "gc.auto=0"]).args(args);
        git.current_dir(sandbox.work()).env("HOME", sandbox.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        git.status().is_ok_and(|status| status.success())
    };
    [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "c"], &["repack", "-adfq"]].into_iter().all(git)
}

fn seeded_packs(sandbox: &Sandbox) -> usize {
    let names =
        std::fs::read_dir(sandbox.store().join("git/objects/pack")).unwrap().map(|name| name.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with("pack-seed-")).count()
}

#[test]
fn a_seeded_point_goes_back_without_the_repository_and_forgets_what_is_purged() {
    let sandbox = Sandbox::new();
    if !packed(&sandbox) {
        return;
    }
    let first = sandbox.json(0, &["save"]);
    assert_eq!(seeded_packs(&sandbox), 2, "a pack and its index");
    assert!(sandbox.json(0, &["du"])["sharedBytes"].as_u64().unwrap() > 0);
    let before = sandbox.tree();
    for n in 0..12 {
        sandbox.write(format!("src/f{n}"), "all gone\n");
    }
    sandbox.json(0, &["save"]);
    std::fs::remove_dir_all(sandbox.work().join(".git")).unwrap();
    let target = first["id"].as_str().unwrap();
    sandbox.json(0, &["to", target, "--files", "--yes", "--overwrite-drift"]);
    let mut without_git = before;
    without_git.retain(|path, _| !path.starts_with(b".git"));
    assert_eq!(sandbox.tree(), without_git);
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], serde_json::json!([]));
    assert!(!holders(&sandbox.data()).is_empty(), "the test would not see it");
    sandbox.json(0, &["purge", "conf/key", "--yes"]);
    assert_eq!((holders(&sandbox.data()), seeded_packs(&sandbox)), (Vec::new(), 0));
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], serde_json::json!([]));
    // What the purge left out is of another workspace state, and everything else is as it was.
    assert_eq!(sandbox.tree(), without_git);
}

#[test]
fn a_setting_keeps_the_store_from_linking_anything() {
    let sandbox = Sandbox::new().with("RWD_CAPTURE_SEED_FROM_GIT", "false");
    if !packed(&sandbox) {
        return;
    }
    sandbox.json(0, &["save"]);
    assert_eq!(seeded_packs(&sandbox), 0);
    assert_eq!(sandbox.json(0, &["du"])["sharedBytes"], 0);
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], serde_json::json!([]));
}
