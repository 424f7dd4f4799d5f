//! The transaction: guard, undo, redo, stale plans, edits at every step (design § 7).

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use checkpoint_core::{
    CapturePolicy, DriftPolicy, EngineError, RestorePolicy, RestoreRequest, ReverseRequest, SkipReason, Status,
    VerifyLevel,
};

use crate::scan::{differing, scan, text};
use crate::world::{Kind, World, exactly, names, path, to, undo};

/// A workspace with one of everything, and a turn that wrecks all of it.
pub(crate) fn wrecked() -> World {
    let world = World::plain();
    world.write("keep", "same");
    world.write("edit", "v1");
    world.write("dir/deep/file", "deep");
    world.write("tool", "#!/bin/sh\n");
    world.chmod("tool", 0o755);
    world.write("private/key", "secret");
    world.chmod("private/key", 0o600);
    world.chmod("private", 0o700);
    fs::create_dir(world.at("empty")).unwrap();
    symlink("edit", world.at("link")).unwrap();
    symlink("../outside/victim", world.at("out")).unwrap();
    world.write("to-dir", "a file");
    world.write("to-file/x", "x");
    world.write("odd \n name", "odd");
    world.turn_start("h:s", 1);
    world.write("edit", "agent");
    world.remove("dir");
    world.chmod("tool", 0o644);
    world.remove("private/key");
    world.remove("empty");
    world.remove("link");
    symlink("elsewhere", world.at("link")).unwrap();
    world.remove("out");
    world.write("out", "now a file");
    world.remove("to-dir");
    world.write("to-dir/a/b", "ab");
    world.remove("to-file");
    world.write("to-file", "a file now");
    fs::rename(world.at("odd \n name"), world.at("moved")).unwrap();
    world.write("new/one", "new");
    world.turn_end("h:s", 1);
    world
}

fn originals(world: &World) -> crate::scan::Scan {
    // A second world, built the same way up to the turn, would differ in nothing but time.
    let done = world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert_eq!(done.status, Status::Restored);
    world.scan()
}

/// TJ63: what would be touched is previewed, and nothing else is.
#[test]
fn tj63_what_differs_is_planned_comes_back_and_goes_again() {
    let world = wrecked();
    let wreck = world.scan();
    let preview = world.engine.preview(&exactly("h:s/t1^")).unwrap();
    assert_eq!(world.scan(), wreck, "a preview writes nothing");
    let original = originals(&world);
    assert_eq!(world.read("edit"), "v1");
    assert_eq!(world.read("dir/deep/file"), "deep");
    assert_eq!(world.read("odd \n name"), "odd");
    assert_eq!(world.read("to-file/x"), "x");
    assert_eq!(world.read("to-dir"), "a file");
    assert_eq!(fs::metadata(world.at("tool")).unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(fs::metadata(world.at("private/key")).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(world.at("empty").is_dir());
    assert_eq!(fs::read_link(world.at("link")).unwrap().to_str(), Some("edit"));
    assert!(!world.at("new").exists() && !world.at("moved").exists());
    let touched = differing(&wreck, &original);
    let mut planned: Vec<Vec<u8>> = preview.plan.changes.iter().map(|c| c.path.as_bytes().to_vec()).collect();
    planned.sort();
    planned.dedup();
    assert_eq!(text(&planned), text(&touched));
    world.engine.undo(&undo()).unwrap();
    assert_eq!(differing(&world.scan(), &wreck), Vec::<Vec<u8>>::new());
    world.engine.redo(&undo()).unwrap();
    assert_eq!(differing(&world.scan(), &original), Vec::<Vec<u8>>::new());
    world.engine.undo(&undo()).unwrap();
    assert_eq!(differing(&world.scan(), &wreck), Vec::<Vec<u8>>::new());
    assert_eq!(fs::read_to_string(world.base().join("outside/victim")).unwrap(), "outside");
    assert!(world.engine.verify(VerifyLevel::Rehash).unwrap().damaged.is_empty());
}

#[test]
fn keeping_is_the_default_and_says_how_to_remove() {
    let world = wrecked();
    let done = world.engine.restore(&to("h:s/t1^")).unwrap();
    assert_eq!(names(&done.plan.kept_new), ["moved", "new/one"]);
    assert_eq!(world.read("new/one"), "new");
    assert_eq!(world.read("edit"), "v1");
}

/// TJ55.
#[test]
fn tj55_all_three_indexes_survive_a_restart() {
    for kind in [Kind::Memory, Kind::Json, Kind::Sqlite] {
        let mut world = World::new(kind, false, CapturePolicy::default());
        world.write("a", "v1");
        world.turn_start("h:s", 1);
        world.write("a", "v2");
        world.write("b", "new");
        world.turn_end("h:s", 1);
        world.reopen();
        let done = world.engine.restore(&exactly("h:s/t1^")).unwrap();
        assert_eq!((names(&done.restored), names(&done.removed)), (vec!["a".into()], vec!["b".into()]), "{kind:?}");
        world.reopen();
        world.engine.undo(&undo()).unwrap();
        assert_eq!((world.read("a"), world.read("b")), ("v2".into(), "new".into()), "{kind:?}");
    }
}

/// Model F15: the newest restore that finished and is not undone; `undo OP` of an undo redoes.
#[test]
fn f15_undo_walks_back_through_restores() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "v2");
    world.turn_end("h:s", 1);
    world.turn_start("h:s", 2);
    world.write("a", "v3");
    world.turn_end("h:s", 2);
    let first = world.engine.restore(&to("h:s/t2^")).unwrap();
    let second = world.engine.restore(&to("h:s/t1^")).unwrap();
    assert_eq!(world.read("a"), "v1");
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "v2");
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "v3");
    assert!(matches!(world.engine.undo(&undo()), Err(EngineError::Nothing { .. })));
    world.engine.redo(&undo()).unwrap();
    assert_eq!(world.read("a"), "v2");
    assert!(first.operation.is_some() && second.guard.is_some());
}

/// A path that a later restore wrote needs a decision when an older one is undone.
#[test]
fn f15_undoing_an_older_operation_asks_about_what_a_newer_one_wrote() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "v2");
    world.turn_end("h:s", 1);
    world.turn_start("h:s", 2);
    world.write("a", "v3");
    world.turn_end("h:s", 2);
    let first = world.engine.restore(&to("h:s/t2^")).unwrap().operation.unwrap();
    world.engine.restore(&to("h:s/t1^")).unwrap();
    let named = ReverseRequest { operation: Some(first.to_string()), ..undo() };
    assert!(matches!(world.engine.undo(&named), Err(EngineError::Undecided { .. })));
    assert_eq!(world.read("a"), "v1");
}

#[test]
fn bare_undo_points_to_back_when_an_agent_worked_since() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "v2");
    world.turn_end("h:s", 1);
    world.engine.restore(&to("h:s/t1^")).unwrap();
    world.turn_start("h:s", 2);
    world.write("a", "v4");
    world.turn_end("h:s", 2);
    match world.engine.undo(&undo()) {
        Err(EngineError::Nothing { why, hint }) => {
            assert!(why.contains("turn 2"), "{why}");
            assert!(hint.unwrap().contains("rwd back"));
        }
        other => panic!("{other:?}"),
    }
    let target = world.engine.turn_back(None, 1).unwrap();
    world.engine.restore(&to(target)).unwrap();
    assert_eq!(world.read("a"), "v1");
}

/// TJ28: an edit between preview and application makes the plan stale; nothing is written.
#[test]
fn tj28_an_edit_after_the_approval_makes_the_plan_stale() {
    let world = wrecked();
    let root = world.root();
    world.approver.after(move || fs::write(root.join("edit"), "typed while the question was open").unwrap());
    let before = world.scan();
    let overwrite = RestorePolicy { drift: DriftPolicy::Overwrite, ..RestorePolicy::default() };
    match world.engine.restore(&RestoreRequest { policy: overwrite, ..to("h:s/t1^") }) {
        Err(EngineError::Stale { paths }) => assert_eq!(names(&paths), ["edit"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(text(&differing(&world.scan(), &before)), ["edit"]);
}

/// Story 7: `--plan ID` recomputes and compares.
#[test]
fn a_plan_id_is_good_for_one_state_only() {
    let world = wrecked();
    let preview = world.engine.preview(&to("h:s/t1^")).unwrap();
    let stale = RestoreRequest { plan: Some("0".repeat(40)), ..to("h:s/t1^") };
    assert!(matches!(world.engine.restore(&stale), Err(EngineError::Stale { .. })));
    let good = RestoreRequest { plan: Some(preview.plan_id), ..to("h:s/t1^") };
    world.engine.restore(&good).unwrap();
}

/// TJ21, model F1 and F11 at the level of the transaction: at whatever step somebody writes a planned path, their bytes stay
/// and everything else is put back.
#[test]
fn tj21_an_edit_at_any_step_survives_and_the_rest_is_put_back() {
    let steps = {
        let world = wrecked();
        world.trap.disarm();
        world.engine.restore(&exactly("h:s/t1^")).unwrap();
        world.trap.steps()
    };
    assert!(steps > 30, "{steps} steps");
    for at in 1..=steps {
        let world = wrecked();
        let before = world.scan();
        let target = world.at("edit");
        let hit = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&hit);
        world.trap.set(at, move || {
            // As an editor saves: a new file renamed over the old one.
            let side = target.with_file_name("../side");
            fs::write(&side, "typed by hand").unwrap();
            fs::rename(side, &target).unwrap();
            flag.store(true, Ordering::SeqCst);
        });
        let result = world.engine.restore(&exactly("h:s/t1^"));
        assert!(hit.load(Ordering::SeqCst));
        let now = world.scan();
        let leftovers: Vec<_> = now.keys().filter(|p| String::from_utf8_lossy(p).contains(".rwd-")).collect();
        assert!(leftovers.is_empty(), "step {at}: {leftovers:?}");
        assert_eq!(world.read("edit"), "typed by hand", "step {at}: {result:?}");
        match result {
            Ok(done) => assert!(matches!(done.status, Status::Partial | Status::Restored), "step {at}"),
            Err(EngineError::Changed { .. }) => assert_eq!(text(&differing(&now, &before)), ["edit"], "step {at}"),
            Err(other) => panic!("step {at}: {other:?}"),
        }
        assert!(world.engine.unfinished().unwrap().is_none(), "step {at}");
    }
}

/// TJ49, K-07: a missing object is noticed before anything is touched.
#[test]
fn tj49_k07_a_missing_object_is_named_before_the_first_write() {
    let mut world = wrecked();
    let before = world.scan();
    let packs = world.base().join("store/git/objects/pack");
    for entry in fs::read_dir(&packs).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    world.reopen();
    let error = world.engine.restore(&to("h:s/t1^")).unwrap_err();
    assert_eq!(error.kind(), checkpoint_core::ErrorKind::Damaged, "{error:?}");
    assert_eq!(world.scan(), before);
    assert!(!world.engine.verify(VerifyLevel::Reachable).unwrap().damaged.is_empty());
}

/// TJ18: only what was selected, however its name reads.
#[test]
fn tj18_selection_touches_nothing_else_and_knows_no_patterns() {
    let world = World::plain();
    for name in ["a[1].txt", "a1.txt", "d/x", "d/y"] {
        world.write(name, "v1");
    }
    world.turn_start("h:s", 1);
    for name in ["a[1].txt", "a1.txt", "d/x", "d/y"] {
        world.write(name, "v2");
    }
    world.remove("d");
    world.turn_end("h:s", 1);
    let only = |names: &[&str]| RestorePolicy {
        selection: names.iter().map(|n| path(n)).collect(),
        ..RestorePolicy::default()
    };
    world.engine.restore(&RestoreRequest { policy: only(&["a[1].txt"]), ..to("h:s/t1^") }).unwrap();
    assert_eq!((world.read("a[1].txt"), world.read("a1.txt")), ("v1".into(), "v2".into()));
    world.engine.restore(&RestoreRequest { policy: only(&["d/x"]), ..to("h:s/t1^") }).unwrap();
    assert_eq!(world.read("d/x"), "v1");
    assert!(!world.at("d/y").exists());
    let before = world.scan();
    let unknown = RestoreRequest { policy: only(&["d/x", "nowhere"]), ..to("h:s/t1^") };
    assert!(matches!(world.engine.restore(&unknown), Err(EngineError::UnknownPath { .. })));
    assert_eq!(world.scan(), before);
}

/// What a stored point holds stays covered, though a rule ignores it or it has grown past the cap since.
#[test]
fn what_a_point_holds_stays_covered() {
    let world = World::new(Kind::Memory, false, CapturePolicy { untracked_max_bytes: 100, ..CapturePolicy::default() });
    world.write("grows", "small");
    world.write("later.log", "captured before the rule");
    let first = world.save();
    world.write("grows", &"x".repeat(500));
    world.write(".gitignore", "*.log\n");
    world.write("later.log", "changed after the rule");
    world.write("other.log", "never captured");
    let second = world.save();
    assert!(
        second.skipped.iter().all(|s| s.path != path("grows") && s.path != path("later.log")),
        "{:?}",
        second.skipped
    );
    assert!(second.skipped.iter().any(|s| s.path == path("other.log") && s.reason == SkipReason::IgnoredRoot));
    world.engine.restore(&exactly(first.point.id)).unwrap();
    assert_eq!((world.read("grows"), world.read("later.log")), ("small".into(), "captured before the rule".into()));
    assert_eq!(world.read("other.log"), "never captured");
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("grows").len(), 500);
    // Also when the path was gone for a while.
    world.remove("later.log");
    world.save();
    world.write("later.log", "back again");
    let third = world.save();
    assert!(third.skipped.iter().all(|s| s.path != path("later.log")), "{:?}", third.skipped);
}

/// TJ57, design § 7: hard links are replaced, never written through, not even for a change of mode.
#[test]
fn tj57_hard_links_are_never_written_through() {
    let world = World::plain();
    world.write("a", "v1");
    world.chmod("a", 0o755);
    let first = world.save();
    world.remove("a");
    fs::hard_link(world.base().join("outside/victim"), world.at("a")).unwrap();
    world.save();
    world.engine.restore(&to(first.point.id)).unwrap();
    assert_eq!(fs::read_to_string(world.base().join("outside/victim")).unwrap(), "outside");
    assert_eq!(world.read("a"), "v1");
    // Same bytes, other mode, two names.
    world.chmod("a", 0o644);
    world.save();
    fs::hard_link(world.at("a"), world.base().join("outside/twin")).unwrap();
    world.engine.restore(&to(first.point.id)).unwrap();
    assert_eq!(fs::metadata(world.base().join("outside/twin")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(fs::metadata(world.at("a")).unwrap().mode() & 0o777, 0o755);
}

/// A capture is a reader: nothing in the workspace, nothing in `.git` changes.
#[test]
fn captures_and_previews_are_read_only() {
    let world = World::new(Kind::Memory, true, CapturePolicy::default());
    world.write("a", "v1");
    fs::create_dir(world.at("d")).unwrap();
    let before = scan(&world.root(), true);
    let stamps = |w: &World| fs::metadata(w.root()).unwrap().ctime_nsec();
    let stamp = stamps(&world);
    let first = world.save();
    world.engine.preview(&to(first.point.id)).unwrap();
    assert_eq!(scan(&world.root(), true), before);
    assert_eq!(stamps(&world), stamp);
}

/// Moves the packs that hold what only the newest capture added out of the store, and back.
fn newest_pack(world: &World) -> std::path::PathBuf {
    let packs = world.base().join("store/git/objects/pack");
    let all = fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path());
    let packs = all.filter(|path| path.extension().is_some_and(|e| e == "pack"));
    packs.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap()).unwrap()
}

/// One unreadable record must not take protection away, nor stand in the way of the points that are whole.
#[test]
fn a_damaged_newest_record_is_set_aside() {
    let mut world = World::plain();
    world.write("p", "1");
    let first = world.save();
    std::thread::sleep(std::time::Duration::from_millis(30));
    world.write("p", "2");
    world.write("d/f", "new directory, new tree");
    world.save();
    let pack = newest_pack(&world);
    for extension in ["pack", "idx"] {
        fs::remove_file(pack.with_extension(extension)).unwrap();
    }
    world.reopen();
    world.write("p", "3");
    let third = world.save();
    assert!(third.created);
    // Nobody knows who changed what between the first point and the third: that takes a decision.
    match world.engine.restore(&to(first.point.id)) {
        Err(EngineError::Undecided { preview }) => assert_eq!(names(&preview.plan.hand_made), ["p"]),
        other => panic!("{other:?}"),
    }
    let decided = RestorePolicy { drift: DriftPolicy::Overwrite, ..RestorePolicy::default() };
    world.engine.restore(&RestoreRequest { policy: decided, ..to(first.point.id) }).unwrap();
    assert_eq!(world.read("p"), "1");
}

/// A collection around a missing tree would drop what is left of a point: it refuses, and nothing is lost when the
/// tree comes back.
#[test]
fn gc_refuses_around_a_missing_tree() {
    let mut world = World::plain();
    world.write("a", "one");
    world.save();
    std::thread::sleep(std::time::Duration::from_millis(30));
    world.write("b", "two");
    world.save();
    let pack = newest_pack(&world);
    let away = world.base().join("away");
    fs::create_dir(&away).unwrap();
    for extension in ["pack", "idx"] {
        let from = pack.with_extension(extension);
        fs::rename(&from, away.join(from.file_name().unwrap())).unwrap();
    }
    world.reopen();
    assert!(world.engine.gc(false).is_err());
    for extension in ["pack", "idx"] {
        let to = pack.with_extension(extension);
        fs::rename(away.join(to.file_name().unwrap()), &to).unwrap();
    }
    world.reopen();
    assert!(world.engine.verify(VerifyLevel::Rehash).unwrap().damaged.is_empty());
}

/// A directory that an undo leaves because something is in it is named by what is in it.
#[test]
fn an_undo_names_what_keeps_a_directory() {
    let world = World::plain();
    world.write("d/f", "1");
    let first = world.save();
    world.remove("d");
    world.save();
    world.engine.restore(&to(first.point.id)).unwrap();
    world.write("d/mine", "mine");
    let done = world.engine.undo(&undo()).unwrap();
    assert_eq!(names(&done.plan.kept_new), ["d/mine"]);
    assert_eq!(world.read("d/mine"), "mine");
    assert!(!world.at("d/f").exists());
}

#[test]
fn an_unknown_path_to_overwrite_is_refused_and_what_is_left_out_is_named() {
    let world = World::new(Kind::Memory, false, CapturePolicy { untracked_max_bytes: 100, ..CapturePolicy::default() });
    world.write("a", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "v2");
    world.write("big", &"x".repeat(200));
    world.turn_end("h:s", 1);
    let typo = RestorePolicy { overwrite: vec![path("nosuch")], ..RestorePolicy::default() };
    assert!(matches!(
        world.engine.restore(&RestoreRequest { policy: typo, ..to("h:s/t1^") }),
        Err(EngineError::UnknownPath { .. })
    ));
    let done = world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert!(done.plan.uncovered.iter().any(|s| s.path == path("big") && s.reason == SkipReason::TooLarge));
}

/// Deduplication does not swallow words, and a gap is followed by a record.
#[test]
fn a_note_on_an_unchanged_state_is_kept() {
    let world = World::plain();
    world.write("a", "v1");
    let first = world.save();
    let noted =
        |note: &str| checkpoint_core::SaveRequest { note: Some(note.into()), ..checkpoint_core::SaveRequest::manual() };
    let same = world.engine.save(&noted("before the refactoring")).unwrap();
    assert_eq!((same.created, same.point.id), (false, first.point.id));
    assert_eq!(same.point.note.as_deref(), Some("before the refactoring"));
    assert!(world.engine.save(&noted("another thought")).unwrap().created);
}

/// Found by random histories. A directory that comes back with what lies below it is decided by that: its place was
/// cleared by hand, and nothing of the hand's is overwritten.
#[test]
fn a_directory_comes_back_with_what_it_holds_where_a_hand_cleared_its_place() {
    let world = World::plain();
    std::fs::create_dir_all(world.at("d/x")).unwrap();
    let start = world.event("h:s", 1, checkpoint_core::PointKind::TurnStart);
    std::fs::remove_dir_all(world.at("d")).unwrap();
    std::os::unix::fs::symlink("a", world.at("d")).unwrap();
    world.event("h:s", 1, checkpoint_core::PointKind::TurnEnd);
    std::fs::remove_file(world.at("d")).unwrap();
    let target = to(start.point.id.to_string());
    world.engine.restore(&target).unwrap();
    assert!(world.at("d/x").is_dir());
    // What a hand puts there instead is no place to make a directory in, unasked.
    std::fs::remove_dir_all(world.at("d")).unwrap();
    world.write("d", "by hand");
    assert!(matches!(world.engine.restore(&target), Err(EngineError::Undecided { .. })));
    assert_eq!(world.read("d"), "by hand");
}
