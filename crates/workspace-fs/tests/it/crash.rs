//! Killed at every step of every change, and disturbed at every step: nothing is lost, nothing stays behind.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use checkpoint_core::{Change, FsError, WorkspaceFs};
use workspace_fs::Support;

use crate::{
    kinds::pairs,
    scratch::{NAMES, Scratch, Script, Thing, until_killed},
};

const SUPPORTS: [Support; 2] = [Support::Auto, Support::Never];

/// A fresh workspace that holds `before`.
fn prepared(before: Thing, after: Thing) -> (Scratch, Change) {
    let scratch = Scratch::quick();
    scratch.put("p", before);
    let change = scratch.change("p", before, after);
    (scratch, change)
}

/// How many steps an undisturbed application has, the point after the last one included.
fn steps(support: Support, before: Thing, after: Thing) -> usize {
    let (scratch, change) = prepared(before, after);
    let script = Arc::new(Script::new());
    scratch.open_with(support, script.clone()).apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    script.steps().len()
}

/// Applies, killed at `step`.
fn kill(scratch: &Scratch, support: Support, change: &Change, script: Script) {
    let workspace = scratch.open_with(support, Arc::new(script));
    // Not killed when an edit ended it before that step.
    drop(until_killed(|| workspace.apply(change, &NAMES, 0, &scratch.blobs)));
}

/// Settles, killed at every step of it in turn, until it gets through.
fn settle_with_kills(scratch: &Scratch, support: Support, change: &Change, context: &dyn std::fmt::Debug) {
    for step in 0.. {
        let script = Arc::new(Script::new().crash_at(Some(step)));
        let workspace = scratch.open_with(support, script);
        match until_killed(|| workspace.settle(change, &NAMES, 0, &scratch.blobs)) {
            // Said once, about something that was kept beside the path.
            None | Some(Err(FsError::Other { .. })) => {}
            Some(Err(e)) => panic!("{context:?}: {e:?}"),
            Some(Ok(_)) => break,
        }
    }
    scratch.assert_tidy(context);
}

#[test]
fn killed_at_every_step_it_goes_forward_and_back() {
    for support in SUPPORTS {
        for (before, after) in pairs() {
            for step in 0..steps(support, before, after) {
                for forward in [true, false] {
                    for kill_recovery in [true, false] {
                        let context = (support, before, after, step, forward, kill_recovery);
                        let (scratch, change) = prepared(before, after);
                        kill(&scratch, support, &change, Script::new().crash_at(Some(step)));
                        let workspace = scratch.open_with(support, Arc::new(Script::new()));
                        if kill_recovery {
                            settle_with_kills(&scratch, support, &change, &context);
                        } else {
                            let settled = workspace.settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
                            assert_eq!(settled, checkpoint_core::Settled::default(), "{context:?}");
                        }
                        let next = if forward { change.clone() } else { change.inverse() };
                        workspace
                            .apply(&next, &NAMES, 0, &scratch.blobs)
                            .unwrap_or_else(|e| panic!("{context:?}: {e:?}"));
                        assert_eq!(scratch.observe("p"), next.after, "{context:?}");
                        scratch.assert_tidy(&context);
                    }
                }
            }
        }
    }
}

/// A recovery that is killed while it goes forward or back is itself recovered from.
#[test]
fn a_recovery_that_goes_the_other_way_may_be_killed_too() {
    for support in SUPPORTS {
        for (before, after) in pairs() {
            for step in 0..steps(support, before, after) {
                let context = (support, before, after, step);
                let (scratch, change) = prepared(before, after);
                kill(&scratch, support, &change, Script::new().crash_at(Some(step)));
                for again in 0.. {
                    let script = Arc::new(Script::new().crash_at(Some(again)));
                    let workspace = scratch.open_with(support, script);
                    let done = until_killed(|| {
                        workspace.settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
                        workspace.apply(&change.inverse(), &NAMES, 0, &scratch.blobs).unwrap();
                    });
                    if done.is_some() {
                        break;
                    }
                }
                assert_eq!(scratch.observe("p"), change.before, "{context:?}");
                scratch.assert_tidy(&context);
            }
        }
    }
}

/// What a user does to the path at a bad moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edit {
    /// A new file under the old name, as editors save.
    Save,
    /// The file that is there, through its name.
    InPlace,
    /// A directory with something in it.
    Mkdir,
    /// A link.
    Relink,
    /// Nothing at all.
    Delete,
}

const EDITS: [Edit; 5] = [Edit::Save, Edit::InPlace, Edit::Mkdir, Edit::Relink, Edit::Delete];

fn clear(at: &Path) {
    match fs::symlink_metadata(at) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(at).unwrap(),
        Ok(_) => fs::remove_file(at).unwrap(),
        Err(_) => {}
    }
}

impl Edit {
    /// Does it, leaving `text` somewhere at the path. The bytes of the edit before it go, as the user wants.
    fn run(self, at: &Path, text: &str) {
        match self {
            Self::InPlace if fs::symlink_metadata(at).is_ok_and(|found| found.is_file()) => {
                fs::write(at, text).unwrap();
            }
            Self::Save | Self::InPlace => {
                clear(at);
                fs::write(at, text).unwrap();
            }
            Self::Mkdir => {
                clear(at);
                fs::create_dir(at).unwrap();
                fs::write(at.join("child"), text).unwrap();
            }
            Self::Relink => {
                clear(at);
                symlink(text, at).unwrap();
            }
            Self::Delete => clear(at),
        }
    }

    fn at(self, scratch: &Scratch, text: &'static str) -> impl Fn() + Send + Sync + 'static {
        let at = scratch.at("p");
        move || self.run(&at, text)
    }
}

/// A few pairs that among them take every way through the code.
fn telling_pairs() -> Vec<(Thing, Thing)> {
    let (file, other) = (Thing::File("one", 0o644), Thing::File("two, longer", 0o600));
    let (mode, dir, link) = (Thing::File("one", 0o755), Thing::Dir(0o750), Thing::Link("target"));
    vec![
        (file, other),
        (file, mode),
        (Thing::Nothing, file),
        (file, Thing::Nothing),
        (Thing::Nothing, dir),
        (dir, Thing::Nothing),
        (dir, file),
        (file, dir),
        (link, dir),
        (dir, link),
        (link, file),
        (Thing::Fifo(0o640), link),
        (Thing::Nothing, link),
        (Thing::Linked("linked", 0o664), Thing::Linked("linked", 0o600)),
    ]
}

/// One edit, at every step of an application that is not killed.
#[test]
fn an_edit_at_any_step_survives() {
    for support in SUPPORTS {
        for (before, after) in pairs() {
            for step in 0..steps(support, before, after) {
                for edit in EDITS {
                    let context = (support, before, after, step, edit);
                    let (scratch, change) = prepared(before, after);
                    kill(&scratch, support, &change, Script::new().edit_at(step, edit.at(&scratch, "U1")));
                    scratch.assert_tidy(&context);
                    if edit != Edit::Delete {
                        scratch.assert_kept("U1", &context);
                    }
                }
            }
        }
    }
}

/// One edit at every step, killed at every later one, settled, and carried on in either direction.
#[test]
fn an_edit_at_any_step_survives_a_kill_at_any_other() {
    for support in SUPPORTS {
        for (before, after) in telling_pairs() {
            let steps = steps(support, before, after);
            for edit in EDITS {
                for at in 0..steps {
                    // Steps that only a disturbed application takes come on top.
                    for killed in at..steps + 6 {
                        for forward in [true, false] {
                            let context = (support, before, after, edit, at, killed, forward);
                            let (scratch, change) = prepared(before, after);
                            let script = Script::new().edit_at(at, edit.at(&scratch, "U1")).crash_at(Some(killed));
                            kill(&scratch, support, &change, script);
                            settle_with_kills(&scratch, support, &change, &context);
                            let next = if forward { change.clone() } else { change.inverse() };
                            let workspace = scratch.open_with(support, Arc::new(Script::new()));
                            // Done, or refused because of the edit: either way the bytes are there.
                            drop(workspace.apply(&next, &NAMES, 0, &scratch.blobs));
                            scratch.assert_tidy(&context);
                            if edit != Edit::Delete {
                                scratch.assert_kept("U1", &context);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// True when the path itself, or a directory there, holds `text`.
fn holds(at: &Path, text: &str) -> bool {
    let read = |at: &Path| fs::read_to_string(at).is_ok_and(|held| held == text);
    fs::read_link(at).is_ok_and(|held| held == Path::new(text)) || read(at) || read(&at.join("child"))
}

/// Two edits: one while it is applied, then killed, then one at every step of settling (model F1, F2). Only what the
/// second edit itself did away with, because it was at the path again by then, may be gone.
#[test]
fn edits_while_applying_and_while_settling_survive() {
    for support in SUPPORTS {
        for (before, after) in telling_pairs() {
            let steps = steps(support, before, after);
            for (first, second) in EDITS.into_iter().flat_map(|a| EDITS.map(|b| (a, b))) {
                for at in 0..steps {
                    for settling in 0..4 {
                        let context = (support, before, after, first, second, at, settling);
                        let (scratch, change) = prepared(before, after);
                        let script = Script::new().edit_at(at, first.at(&scratch, "U1")).crash_at(Some(at + 1));
                        kill(&scratch, support, &change, script);
                        let (ran, overwrote) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
                        let script = Script::new().edit_at(settling, {
                            let (path, ran, overwrote) = (scratch.at("p"), ran.clone(), overwrote.clone());
                            move || {
                                overwrote.store(holds(&path, "U1"), Relaxed);
                                second.run(&path, "U2");
                                ran.store(true, Relaxed);
                            }
                        });
                        let workspace = scratch.open_with(support, Arc::new(script));
                        let settled = workspace.settle(&change, &NAMES, 0, &scratch.blobs);
                        assert!(matches!(settled, Ok(_) | Err(FsError::Other { .. })), "{context:?}: {settled:?}");
                        settle_with_kills(&scratch, support, &change, &context);
                        if first != Edit::Delete && !overwrote.load(Relaxed) {
                            scratch.assert_kept("U1", &context);
                        }
                        if second != Edit::Delete && ran.load(Relaxed) {
                            scratch.assert_kept("U2", &context);
                        }
                    }
                }
            }
        }
    }
}
