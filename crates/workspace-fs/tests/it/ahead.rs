//! Drafts that are made ahead: used where they are what would be made now, never else, and never left behind.

use std::{fs, sync::Arc};

use checkpoint_core::{Change, WorkspaceFs};
use workspace_fs::Support;

use crate::{
    kinds::pairs,
    scratch::{NAMES, Scratch, Script, Thing, set_mode, until_killed},
};

const BEFORE: Thing = Thing::File("before", 0o644);
const AFTER: Thing = Thing::File("after", 0o640);

fn name_of_draft() -> String {
    String::from_utf8(NAMES.draft(0)).unwrap()
}

/// One journal commit for all of them: everything is written before the first is synced, and no change syncs again.
#[test]
fn all_are_written_before_the_first_is_synced() {
    let scratch = Scratch::quick();
    let paths = ["a", "b", "c"];
    let made = [("a", BEFORE), ("b", Thing::Nothing), ("c", BEFORE)];
    for (path, thing) in made {
        scratch.put(path, thing);
    }
    let changes: Vec<Change> = made.iter().map(|(path, before)| scratch.change(path, *before, AFTER)).collect();
    let script = Arc::new(Script::new());
    let workspace = scratch.open_with(Support::Auto, script.clone());
    let numbered: Vec<(usize, &Change)> = changes.iter().enumerate().collect();
    workspace.prepare(&numbered, &NAMES, &scratch.blobs);
    let steps = script.steps();
    let (syncs, writes): (Vec<_>, Vec<_>) = steps.iter().enumerate().partition(|(_, step)| **step == "sync a draft");
    assert_eq!(syncs.len(), 3, "{steps:?}");
    assert!(writes.iter().all(|(n, _)| *n < syncs[0].0), "{steps:?}");
    for (n, change) in &numbered {
        workspace.apply(change, &NAMES, *n, &scratch.blobs).unwrap();
    }
    let after = script.steps();
    for step in ["sync a draft", "create a draft"] {
        assert_eq!(after.iter().filter(|s| **s == step).count(), 3, "{step}: {after:?}");
    }
    for path in paths {
        assert_eq!(scratch.observe(path), scratch.state(AFTER));
    }
    scratch.assert_tidy(&"ahead");
}

/// What the change meets decides, not what was met when its draft was made.
#[test]
fn a_draft_that_is_no_longer_right_is_not_used() {
    type Spoil<'a> = (&'a str, &'a dyn Fn(&Scratch));
    let draft = name_of_draft();
    let other = |scratch: &Scratch| {
        fs::remove_file(scratch.at(&draft)).unwrap();
        fs::write(scratch.at(&draft), "other").unwrap();
    };
    let spoilt: [Spoil<'_>; 5] = [
        ("written to", &|scratch| fs::write(scratch.at(&draft), "spoilt").unwrap()),
        ("another file", &other),
        ("another mode", &|scratch| set_mode(&scratch.at(&draft), 0o777)),
        ("gone", &|scratch| fs::remove_file(scratch.at(&draft)).unwrap()),
        ("a link", &|scratch| {
            fs::remove_file(scratch.at(&draft)).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", scratch.at(&draft)).unwrap();
        }),
    ];
    for (what, spoil) in spoilt {
        for before in [BEFORE, Thing::Nothing] {
            let scratch = Scratch::new();
            scratch.put("p", before);
            let change = scratch.change("p", before, AFTER);
            let workspace = scratch.open();
            workspace.prepare(&[(0, &change)], &NAMES, &scratch.blobs);
            assert!(scratch.at(&draft).exists());
            spoil(&scratch);
            workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
            assert_eq!(scratch.observe("p"), change.after, "{what}");
            scratch.assert_tidy(&what);
        }
    }
}

/// Attributes that the file gets in between are kept.
#[test]
fn metadata_set_in_between_is_kept() {
    let scratch = Scratch::new();
    scratch.put("p", BEFORE);
    let change = scratch.change("p", BEFORE, AFTER);
    let workspace = scratch.open();
    workspace.prepare(&[(0, &change)], &NAMES, &scratch.blobs);
    let note = durable_fs::Attribute { name: b"user.note".to_vec(), value: b"late".to_vec() };
    let file = fs::File::options().write(true).open(scratch.at("p")).unwrap();
    if durable_fs::write_attribute(&file, &note).is_err() {
        eprintln!("this file system keeps no attributes: not tested");
        return;
    }
    workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    let file = fs::File::open(scratch.at("p")).unwrap();
    assert!(durable_fs::read_attributes(&file).unwrap().contains(&note));
    assert_eq!(scratch.observe("p"), change.after);
}

/// The draft of a change is not that of its inverse, though both have one name.
#[test]
fn a_draft_is_of_one_direction() {
    let scratch = Scratch::quick();
    scratch.put("p", BEFORE);
    let change = scratch.change("p", BEFORE, AFTER);
    let workspace = scratch.open();
    workspace.apply(&change, &NAMES, 1, &scratch.blobs).unwrap();
    workspace.prepare(&[(0, &change)], &NAMES, &scratch.blobs);
    workspace.apply(&change.inverse(), &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(scratch.observe("p"), change.before);
    scratch.assert_tidy(&"inverse");
}

/// Large content is left to its change, which streams it.
#[test]
fn large_files_are_left_to_their_change() {
    let scratch = Scratch::quick();
    let large = vec![b'x'; (1 << 20) + 1];
    let after =
        checkpoint_core::PathState::File { blob: scratch.blobs.put(&large), mode: checkpoint_core::Mode(0o644) };
    let change = Change { path: crate::scratch::rel("p"), before: scratch.state(Thing::Nothing), after };
    let workspace = scratch.open();
    workspace.prepare(&[(0, &change)], &NAMES, &scratch.blobs);
    scratch.assert_tidy(&"large");
    workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(fs::read(scratch.at("p")).unwrap(), large);
}

/// Killed anywhere, or never applied: `settle` leaves what was there, and the change can be made after all.
#[test]
fn killed_at_every_step_nothing_stays_behind() {
    for (before, after) in pairs() {
        for step in 0.. {
            let scratch = Scratch::quick();
            scratch.put("p", before);
            let change = scratch.change("p", before, after);
            let script = Arc::new(Script::new().crash_at(Some(step)));
            let workspace = scratch.open_with(Support::Auto, script);
            let done = until_killed(|| workspace.prepare(&[(0, &change)], &NAMES, &scratch.blobs)).is_some();
            let again = scratch.open();
            again.settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
            scratch.assert_tidy(&(before, after, step));
            assert_eq!(scratch.observe("p"), change.before, "{before:?} {after:?} {step}");
            // A way of preparing that was not finished is no obstacle.
            again.prepare(&[(0, &change)], &NAMES, &scratch.blobs);
            again.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
            assert_eq!(scratch.observe("p"), change.after, "{before:?} {after:?} {step}");
            if done {
                break;
            }
        }
    }
}
