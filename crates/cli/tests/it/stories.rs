//! What a user goes through, from end to end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::sandbox::{Sandbox, ended, listed, ran, tree};

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "# one\n");
    sandbox.write("src/a.rs", "a\n");
    sandbox.write("src/b.rs", "b\n");
    sandbox.write("old.txt", "old\n");
    sandbox
}

/// Story 2: edits two files, creates one, deletes one; to, undo, redo.
#[test]
fn plain_undo() {
    let sandbox = project();
    let before = sandbox.tree();
    sandbox.turn(1, |s| {
        s.write("src/a.rs", "A\n");
        s.write("src/b.rs", "B\n");
        s.write("new.rs", "new\n");
        s.remove("old.txt");
    });
    let after = sandbox.tree();
    let went = sandbox.json(0, &["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
    assert_eq!(listed(&went["restored"]), ["old.txt", "src/a.rs", "src/b.rs"]);
    assert_eq!(listed(&went["removed"]), ["new.rs"]);
    assert_eq!(went["status"], "restored");
    let undone = sandbox.json(0, &["undo", "--yes"]);
    assert_eq!(sandbox.tree(), after);
    assert_eq!(undone["schema"], "rwd.undo/1");
    sandbox.json(0, &["redo", "--yes"]);
    assert_eq!(sandbox.tree(), before);
    // The command that the answer says takes it back does.
    let again = sandbox.json(0, &["undo", "--yes"]);
    assert_eq!(sandbox.tree(), after);
    let words: Vec<&str> = again["undo"].as_str().unwrap().split(' ').skip(1).collect();
    sandbox.ok(&[words.as_slice(), &["--yes"]].concat());
    assert_eq!(sandbox.tree(), before);
}

/// Story 2 as people read it: counts first, the next command last.
#[test]
fn people_are_told_how_many_and_how_to_take_it_back() {
    let sandbox = project();
    sandbox.turn(1, |s| {
        s.write("src/a.rs", "A\n");
        s.write("new.rs", "new\n");
    });
    let kept = sandbox.ok(&["to", "t1^", "--yes"]);
    assert!(kept.out.starts_with("1 file: 1 restored, 0 removed\n"), "{}", kept.out);
    assert!(kept.out.contains("1 new file kept; --exact removes it\n"), "{}", kept.out);
    let last = kept.out.lines().last().unwrap();
    assert!(last.starts_with("to take it back: rwd undo ") && !last.ends_with('.'), "{last}");
    assert!(sandbox.has("new.rs"));
}

/// Story 3: what a shell does behind every tool's back.
#[test]
fn shell_damage() {
    let sandbox = project();
    sandbox.write("src/legacy/x y\nz.txt", "odd name\n");
    sandbox.write("src/legacy/empty", "");
    sandbox.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(sandbox.work().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(sandbox.work().join("src/legacy/empty"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(sandbox.work().join("src/hollow")).unwrap();
    symlink("../README.md", sandbox.work().join("src/legacy/link")).unwrap();
    let before = sandbox.tree();
    sandbox.turn(1, |s| {
        fs::remove_dir_all(s.work().join("src/legacy")).unwrap();
        fs::remove_dir(s.work().join("src/hollow")).unwrap();
        s.write("run.sh", "rm -rf /\n");
        fs::set_permissions(s.work().join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::rename(s.work().join("src/a.rs"), s.work().join("src/c.rs")).unwrap();
        s.remove("old.txt");
        s.write("old.txt/inside", "a file became a directory\n");
    });
    let after = sandbox.tree();
    let went = sandbox.json(0, &["to", "t1^", "--files", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before, "{went}");
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.tree(), after);
}

/// Story 4: no git binary, no repository.
#[test]
fn without_git() {
    let sandbox = project().with("PATH", "/nonexistent");
    let before = sandbox.tree();
    sandbox.turn(1, |s| s.write("src/a.rs", "A\n"));
    let status = sandbox.json(0, &["status"]);
    assert_eq!(status["git"], false);
    assert_eq!(status["points"], 2);
    let told = sandbox.ok(&["status"]);
    assert!(told.out.contains("no repository here"), "{}", told.out);
    sandbox.ok(&["back", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
}

/// Story 5: a preview writes nothing, neither in the workspace nor in the store.
#[test]
fn preview_touches_nothing() {
    let sandbox = project();
    sandbox.turn(1, |s| {
        s.write("src/a.rs", "A\n");
        s.write("new.rs", "new\n");
        s.remove("old.txt");
        fs::set_permissions(s.work().join("src/b.rs"), fs::Permissions::from_mode(0o600)).unwrap();
    });
    let stamps = |sandbox: &Sandbox| {
        let mut all: Vec<_> = sandbox.tree().into_keys().collect();
        all.push(Vec::new());
        let time = |name: &Vec<u8>| {
            let path = sandbox.work().join(std::str::from_utf8(name).unwrap());
            path.symlink_metadata().unwrap().modified().unwrap()
        };
        all.iter().map(time).collect::<Vec<_>>()
    };
    let (files, times, objects) = (sandbox.tree(), stamps(&sandbox), tree(&sandbox.store().join("git")));
    let first = sandbox.json(0, &["preview", "t1^", "--exact"]);
    let second = sandbox.json(0, &["preview", "t1^", "--exact"]);
    assert_eq!(first, second);
    assert_eq!((sandbox.tree(), stamps(&sandbox), tree(&sandbox.store().join("git"))), (files, times, objects));
    assert_eq!(listed(&first["overwrite"]), ["src/a.rs"]);
    assert_eq!(listed(&first["recreate"]), ["old.txt"]);
    assert_eq!(listed(&first["mode"]), ["src/b.rs"]);
    assert_eq!(listed(&first["remove"]), ["new.rs"]);
    assert_eq!(first["unchanged"], 1);
    assert_eq!(first["scope"], "files");
    assert!(first["cut"].is_null());
    // What it says to type does it.
    let words: Vec<&str> = first["apply"].as_str().unwrap().split(' ').skip(1).collect();
    assert!(words.contains(&"to"), "{words:?}");
    sandbox.json(0, &words.into_iter().filter(|word| *word != "--json").collect::<Vec<_>>());
    assert!(!sandbox.has("new.rs") && sandbox.has("old.txt"));
}

/// Story 6: what the user edited after the turn is never overwritten without a decision.
#[test]
fn your_edit_survives() {
    let sandbox = project();
    sandbox.turn(1, |s| {
        s.write("README.md", "# agent\n");
        s.write("src/a.rs", "A\n");
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    sandbox.write("README.md", "# mine\n");
    sandbox.write("notes.md", "mine\n");
    let edited = sandbox.tree();
    let refused = sandbox.json(3, &["to", "t1^", "--yes"]);
    assert_eq!(sandbox.tree(), edited);
    let error = &refused["error"];
    assert_eq!(error["code"], "decision-needed");
    assert_eq!(listed(&error["paths"]), ["README.md"]);
    assert_eq!(error["paths"][0]["reason"], "hand-made");

    sandbox.json(0, &["to", "t1^", "--keep-drift", "--yes"]);
    assert_eq!(sandbox.read("README.md"), "# mine\n");
    assert_eq!(sandbox.read("src/a.rs"), "a\n");
    assert!(sandbox.has("notes.md"));
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.tree(), edited);

    sandbox.json(0, &["to", "t1^", "--overwrite", "README.md", "--yes"]);
    assert_eq!(sandbox.read("README.md"), "# one\n");
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.tree(), edited);
}

/// Story 6, with a further agent turn between the hand edit and the restore.
#[test]
fn your_edit_survives_a_further_turn() {
    let sandbox = project();
    sandbox.turn(1, |s| s.write("README.md", "# agent\n"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    sandbox.write("README.md", "# mine\n");
    sandbox.turn(2, |s| s.write("README.md", "# mine, and the agent's\n"));
    let refused = sandbox.json(3, &["to", "t1^", "--yes"]);
    assert_eq!(listed(&refused["error"]["paths"]), ["README.md"]);
}

/// Story 6, after an interrupt: that turn's damage is restored without a question.
#[test]
fn an_interrupted_turn_is_its_own_damage() {
    let sandbox = project();
    let before = sandbox.tree();
    sandbox.ok(&["save", "--session", "agent", "--turn", "1", "--kind", "turn-start"]);
    sandbox.write("src/a.rs", "half done");
    let interrupted = sandbox.json(0, &["save", "--session", "agent", "--kind", "interrupt"]);
    assert_eq!(interrupted["created"], false);
    let went = sandbox.json(0, &["to", "t1^", "--yes"]);
    assert_eq!(listed(&went["uncaptured"]), ["src/a.rs"]);
    assert_eq!(sandbox.tree(), before);
    // Nothing is open any more: the ordinary object, and why.
    let nothing = sandbox.json(6, &["save", "--session", "nobody", "--kind", "interrupt"]);
    assert_eq!((nothing["schema"].clone(), nothing["created"].clone()), ("rwd.save/1".into(), false.into()));
}

/// Story 7: nobody to ask.
#[test]
fn non_interactive() {
    let sandbox = project();
    sandbox.turn(1, |s| s.write("src/a.rs", "A\n"));
    let edited = sandbox.tree();
    let asked = sandbox.rwd(&["to", "t1^"]);
    assert_eq!(asked.code, 4, "{asked:?}");
    assert_eq!(sandbox.tree(), edited);
    let command = asked.err.lines().find_map(|line| line.strip_prefix("hint: to confirm: rwd ")).unwrap().to_owned();
    let words: Vec<&str> = command.split(' ').collect();
    assert!(words.contains(&"--plan") && words.contains(&"--yes"), "{command}");

    sandbox.write("src/a.rs", "changed meanwhile\n");
    let meanwhile = sandbox.tree();
    let mut json = vec!["--json"];
    json.extend(&words);
    let stale = sandbox.rwd(&json);
    assert_eq!(stale.code, 3, "{stale:?}");
    assert_eq!(sandbox.tree(), meanwhile);
    sandbox.write("src/a.rs", "A\n");
    let preview = sandbox.json(0, &["preview", "t1^"]);
    let plan = preview["plan"].as_str().unwrap().to_owned();
    sandbox.write("src/b.rs", "another planned path\n");
    let stale = sandbox.json(3, &["to", "t1^", "--plan", &plan, "--yes", "--overwrite-drift"]);
    assert!(stale["error"]["message"].as_str().unwrap().contains("plan is stale"), "{stale}");
}

/// Story 8: a workspace in a subfolder never touches its neighbours, and is found from below.
#[test]
fn subfolder() {
    let sandbox = Sandbox::new();
    sandbox.write("packages/app/src/a.rs", "a\n");
    sandbox.write("packages/server/b.rs", "b\n");
    sandbox.ok(&["-C", "packages/app", "save"]);
    sandbox.write("packages/app/src/a.rs", "A\n");
    sandbox.write("packages/server/b.rs", "B\n");
    sandbox.ok(&["-C", "packages/app/src", "save"]);
    let went = sandbox.json(0, &["-C", "packages/app/src", "to", "latest~1", "--yes", "--", "a.rs"]);
    assert_eq!(listed(&went["restored"]), ["src/a.rs"]);
    assert_eq!(sandbox.read("packages/app/src/a.rs"), "a\n");
    assert_eq!(sandbox.read("packages/server/b.rs"), "B\n");
    sandbox.json(10, &["-C", "packages/server", "log"]);
    sandbox.json(10, &["log"]);
}

/// Story 9: literal paths, never patterns; an unknown one is refused before anything is written.
#[test]
fn per_file() {
    let sandbox = project();
    sandbox.write("a[1].txt", "brackets\n");
    sandbox.write("a1.txt", "plain\n");
    sandbox.turn(1, |s| {
        for path in ["a[1].txt", "a1.txt", "src/a.rs", "src/b.rs"] {
            s.write(path, "agent\n");
        }
    });
    let edited = sandbox.tree();
    sandbox.json(9, &["to", "t1^", "--yes", "--", "src/a.rs", "no/such/file"]);
    sandbox.json(2, &["to", "t1^", "--yes", "--", "src/a.rs", "../outside"]);
    sandbox.json(9, &["to", "t1^", "--yes", "--", "src/*.rs"]);
    assert_eq!(sandbox.tree(), edited);
    sandbox.json(0, &["to", "t1^", "--yes", "--", "a[1].txt"]);
    assert_eq!((sandbox.read("a[1].txt"), sandbox.read("a1.txt")), ("brackets\n".into(), "agent\n".into()));
    fs::write(sandbox.top().join("list"), b"src/a.rs\0").unwrap();
    sandbox.json(0, &["to", "t1^", "--yes", "--paths-from", "../list", "-0"]);
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), ("a\n".into(), "agent\n".into()));
}

/// Story 13: eight processes save in one workspace at the same time.
#[test]
fn several_at_once() {
    let sandbox = project();
    sandbox.ok(&["save"]);
    let children: Vec<_> = (0..8)
        .map(|n| {
            let session = format!("s{n}");
            let args = ["save", "--json", "--session", &session, "--turn", "1", "--kind", "turn-start"];
            sandbox
                .command(&args)
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut ids: Vec<String> = children
        .into_iter()
        .map(|child| {
            let ran = ended(child);
            assert_eq!(ran.code, 0, "{ran:?}");
            ran.json()["id"].as_str().unwrap().to_owned()
        })
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8);
    let log = sandbox.json(0, &["log", "--all"]);
    assert_eq!(log["points"].as_array().unwrap().len(), 9);
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["checkpoints"], 9);
}

/// Story 13: a save during an exclusive operation says busy.
#[test]
fn a_save_says_busy() {
    let sandbox = project().with("RWD_LOCK_WAIT_MS", "50");
    sandbox.ok(&["save"]);
    let file = fs::File::open(sandbox.store().join("lock")).unwrap();
    file.lock().unwrap();
    assert_eq!(sandbox.json(11, &["save"])["error"]["code"], "busy");
    assert_eq!(sandbox.json(11, &["to", "latest", "--yes"])["error"]["code"], "busy");
    drop(file);
    let log = sandbox.json(0, &["log"]);
    assert_eq!(log["gaps"][0]["reason"], "busy");
    assert_eq!(log["unprotectedReason"], "busy");
    let told = sandbox.ok(&[]);
    assert!(
        told.out.starts_with("not protected since ") && told.out.lines().next().unwrap().ends_with(": busy"),
        "{}",
        told.out
    );
    sandbox.write("src/a.rs", "A\n");
    sandbox.ok(&["save"]);
    assert!(sandbox.json(0, &["log"])["unprotectedSince"].is_null());
}

/// Story 15: a point whose content is gone refuses, everything else restores.
#[test]
fn doctor() {
    let sandbox = project();
    let packs = |sandbox: &Sandbox| {
        let files = tree(&sandbox.store().join("git")).into_keys();
        files.filter(|name| name.ends_with(b".pack")).map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>()
    };
    let good = sandbox.json(0, &["save"])["id"].as_str().unwrap().to_owned();
    let before = packs(&sandbox);
    sandbox.write("src/a.rs", "A\n");
    let bad = sandbox.json(0, &["save"])["id"].as_str().unwrap().to_owned();
    let new: Vec<String> = packs(&sandbox).into_iter().filter(|pack| !before.contains(pack)).collect();
    sandbox.write("src/a.rs", "later\n");
    sandbox.ok(&["save"]);
    let edited = sandbox.tree();
    for pack in &new {
        fs::remove_file(sandbox.store().join("git").join(pack)).unwrap();
    }
    // No more is claimed than was looked at.
    let told = sandbox.rwd(&["verify"]).out;
    assert!(
        told.ends_with("nothing that the others need is missing; to read every byte: rwd verify --rehash\n"),
        "{told}"
    );
    assert!(
        sandbox.rwd(&["verify", "--rehash"]).out.ends_with("every byte of the others was read and is as recorded\n")
    );
    let verified = sandbox.json(8, &["verify"]);
    assert_eq!(verified["damaged"][0]["id"], bad.as_str());
    assert_eq!(verified["damaged"].as_array().unwrap().len(), 1);
    let log = sandbox.json(0, &["log"]);
    let restorable: Vec<bool> =
        log["points"].as_array().unwrap().iter().map(|p| p["restorable"].as_bool().unwrap()).collect();
    assert_eq!(restorable, [true, false, true]);
    assert!(sandbox.ok(&[]).out.contains("not restorable: damaged"));
    sandbox.json(8, &["to", &bad, "--yes"]);
    assert_eq!(sandbox.tree(), edited);
    assert_eq!(sandbox.json(8, &["doctor"])["ok"], false);
    sandbox.json(0, &["to", &good, "--yes"]);
    assert_eq!(sandbox.read("src/a.rs"), "a\n");
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.tree(), edited);
}

/// The demonstration needs nothing and touches nothing.
#[test]
fn demo() {
    let sandbox = Sandbox::new();
    let demo = ran(&mut sandbox.command(&["demo", "--json"]));
    assert_eq!(demo.code, 0, "{demo:?}");
    let answer = demo.json();
    assert_eq!((answer["passed"].clone(), answer["comparisons"].clone()), (true.into(), 5.into()));
    assert!(!sandbox.data().exists() && sandbox.tree().is_empty());
    let told = ran(sandbox.command(&["demo"]).env("CLAUDECODE", "1").env("RWD_DATA_DIR", "/proc/nowhere"));
    assert!(told.code == 0 && told.out.contains("every byte as it should be"), "{told:?}");
}
