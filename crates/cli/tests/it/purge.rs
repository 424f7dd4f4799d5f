//! `rwd purge` (design § 9): afterwards the bytes are nowhere below the data directory.

use std::path::Path;

use crate::recovery::crashed;
use crate::sandbox::{Sandbox, listed};

/// Bytes that no compression makes smaller, so that they lie in a pack as they are.
pub(crate) fn secret() -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..400).map(|_| next()).collect()
}

/// Files below `dir` that hold a part of the secret.
pub(crate) fn holders(dir: &Path) -> Vec<String> {
    let part = &secret()[100..140];
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holders(&path));
        } else if std::fs::read(&path).unwrap().windows(part.len()).any(|window| window == part) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Two turns; the secret is in both points of the first, at two paths, and in the guard of a restore.
fn leaked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.write("conf/key", secret());
    sandbox.turn(1, |s| {
        s.write("a", "two");
        s.write("copy of key", secret());
    });
    sandbox.turn(2, |s| {
        s.write("a", "three");
        s.write("conf/key", "no secret");
    });
    assert!(!holders(&sandbox.data()).is_empty(), "the test would not see it");
    sandbox
}

#[test]
fn purged_bytes_are_nowhere_and_the_rest_restores() {
    let sandbox = leaked();
    let dry = sandbox.json(0, &["purge", "conf/key", "--dry-run"]);
    assert_eq!(listed(&dry["paths"]), ["conf/key", "copy of key"]);
    assert_eq!(
        (dry["paths"][0]["sameContent"].clone(), dry["paths"][1]["sameContent"].clone()),
        (false.into(), true.into())
    );
    assert_eq!((dry["op"].clone(), dry["complete"].clone()), (serde_json::Value::Null, false.into()));
    // Nobody said yes, so nothing was written.
    let asked = sandbox.json(4, &["purge", "conf/key"]);
    assert_eq!(asked["error"]["code"], "confirmation-needed");
    assert!(!holders(&sandbox.data()).is_empty());
    let work = sandbox.tree();
    let done = sandbox.json(0, &["purge", "conf/key", "--yes"]);
    assert_eq!((done["paths"].clone(), done["points"].clone()), (dry["paths"].clone(), dry["points"].clone()));
    assert_eq!(done["complete"], true);
    assert_eq!(holders(&sandbox.data()), Vec::<String>::new());
    assert_eq!(sandbox.tree(), work, "the workspace is not touched");
    let verified = sandbox.json(0, &["verify", "--rehash"]);
    assert_eq!((verified["checkpoints"].clone(), verified["damaged"].clone()), (4.into(), serde_json::json!([])));
    let ops = sandbox.json(0, &["log", "--ops"]);
    let last = ops["operations"].as_array().unwrap().iter().find(|op| op["id"] == done["op"]).unwrap();
    assert_eq!((last["kind"].clone(), last["state"].clone()), ("purge".into(), "done".into()));
    // The other paths go back; what was purged is left as it is, and named.
    let back = sandbox.json(0, &["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.read("a"), "one");
    assert_eq!(sandbox.read("conf/key"), "no secret");
    let uncovered = back["uncovered"].as_array().unwrap();
    assert!(uncovered.iter().any(|left| left["path"] == "conf/key" && left["reason"] == "purged"), "{back}");
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.read("a"), "three");
    // There is nothing left to purge but what is there anew.
    let again = sandbox.json(6, &["purge", "copy*"]);
    assert_eq!(again["paths"], serde_json::json!([]));
}

/// Content that only a guard and its operation hold goes too; the undo then leaves that path alone.
#[test]
fn a_purge_reaches_guards_and_operations() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.write("key", "harmless");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two");
    sandbox.write("key", secret());
    sandbox.ok(&["to", "latest", "--yes", "--overwrite-drift"]);
    assert!(!holders(&sandbox.data()).is_empty());
    let done = sandbox.json(0, &["purge", "--match", "k?y", "--yes"]);
    assert_eq!(done["operations"].as_array().unwrap().len(), 1);
    assert_eq!(holders(&sandbox.data()), Vec::<String>::new());
    let undone = sandbox.json(0, &["undo", "--yes"]);
    assert_eq!((sandbox.read("a"), sandbox.read("key")), ("two".into(), "harmless".into()));
    assert!(undone["uncovered"].as_array().unwrap().iter().any(|left| left["path"] == "key"), "{undone}");
    sandbox.ok(&["redo", "--yes"]);
    assert_eq!(sandbox.read("a"), "one");
    sandbox.json(0, &["verify", "--rehash"]);
}

/// What is still there is stored again by the next point, unless a rule ignores it: a purged path has no cover left.
#[test]
fn a_purged_path_is_covered_by_rules_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("key", secret());
    sandbox.ok(&["save"]);
    // Held by a point, so an ignore rule does not end its cover.
    sandbox.write(".rwdignore", "key\n");
    sandbox.ok(&["save"]);
    let told = sandbox.ok(&["purge", "key", "--yes"]);
    assert!(told.out.contains("still in the workspace"), "{told:?}");
    sandbox.write("other", "x");
    sandbox.ok(&["save"]);
    assert_eq!(holders(&sandbox.data()), Vec::<String>::new());
    sandbox.remove(".rwdignore");
    sandbox.ok(&["save"]);
    assert!(!holders(&sandbox.data()).is_empty());
}

#[test]
fn a_purge_refuses_what_it_cannot_do_whole() {
    let sandbox = crashed();
    assert_eq!(sandbox.json(7, &["purge", "a", "--yes"])["error"]["code"], "unfinished-operation");
    sandbox.json(0, &["purge", "a", "--dry-run"]);
    sandbox.ok(&["recover", "--back"]);
    assert_eq!(sandbox.json(2, &["purge", "../x", "--yes"])["error"]["code"], "outside-workspace");
    assert_eq!(sandbox.json(2, &["purge", "--match", "", "--yes"])["error"]["code"], "no-paths");
    sandbox.json(2, &["purge", "--yes"]);
    // A point that cannot be read may hold it: nobody could say that it is gone.
    for entry in std::fs::read_dir(sandbox.store().join("git/objects/pack")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let refused = sandbox.json(8, &["purge", "a", "--yes"]);
    assert_eq!(refused["error"]["code"], "not-restorable");
}
