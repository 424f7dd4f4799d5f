//! Themes E, F and G of the test lines: what two providers of an older system, one that called git and one that copied,
//! promise about bytes on disk. There is one store here; the promises are the same.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use checkpoint_core::{
    CapturePolicy, DriftPolicy, EngineError, LockMode, PathState, PointKind, PointQuery, Quota, RestorePolicy,
    RestoreRequest, SkipReason, Status, StoreLock, VerifyLevel,
};

use crate::world::{Kind, World, exactly, names, path, to, undo};

fn with(policy: CapturePolicy) -> World {
    World::new(Kind::Sqlite, false, policy)
}

/// Back to a point, over what was changed by hand since.
fn over(target: impl ToString) -> RestoreRequest {
    RestoreRequest { policy: RestorePolicy { drift: DriftPolicy::Overwrite, ..RestorePolicy::default() }, ..to(target) }
}

/// Files, links and FIFOs of a point.
fn held(world: &World, point: &checkpoint_core::Point) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    world
        .engine
        .snapshots()
        .list(&point.snapshot.unwrap(), None, &mut |path, state| {
            if !state.is_dir() {
                found.insert(path.to_lossy());
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    found
}

#[test]
fn te05_te07_te08_te10_tf03_tf05_bytes_are_those_of_what_changed() {
    let world = World::plain();
    world.write("big", &"x".repeat(5000));
    world.write("a", "1");
    let first = world.save();
    assert!(first.created && first.point.files == 2 && first.point.new_bytes > 0);
    let same = world.save();
    assert!(!same.created && same.point.id == first.point.id, "nothing changed is no new point");
    world.write("a", "2");
    let second = world.save();
    assert!(second.created && second.point.id != first.point.id && second.point.snapshot != first.point.snapshot);
    assert!(second.point.new_bytes > 0 && second.point.new_bytes < first.point.new_bytes + 5000);
    assert_eq!(second.point.changed, 1);
    // A turn's point of an unchanged tree is a record and no content.
    assert_eq!(world.turn_end("h:s", 1).point.new_bytes, 0);
}

#[test]
fn te11_te23_tf17_tf26_what_is_no_reference_is_refused_before_anything_happens() {
    let world = World::plain();
    world.write("a", "1");
    world.save();
    world.write("a", "2");
    let before = world.scan();
    for target in ["--upload-pack=touch /tmp/x", "../../outside/victim", "HEAD", "refs/heads/main", "", "0", "^{tree}"]
    {
        for refused in [
            world.engine.preview(&to(target)).map(drop),
            world.engine.restore(&to(target)).map(drop),
            world.engine.restore(&exactly(target)).map(drop),
        ] {
            let code = refused.unwrap_err().code();
            assert!(matches!(code, "bad-target" | "not-found"), "{target:?}: {code}");
        }
    }
    assert_eq!(world.scan(), before);
}

#[test]
fn te13_te29_hundreds_of_paths_go_back_in_one_operation() {
    let world = World::plain();
    for n in 0..250 {
        world.write(&format!("d{}/f{n}", n % 9), "one");
    }
    let one = world.save().point;
    for n in 0..250 {
        world.write(&format!("d{}/f{n}", n % 9), "two");
    }
    let two = world.save().point;
    let mut differ = 0;
    let snapshots = world.engine.snapshots();
    let mut count = |_| {
        differ += 1;
        std::ops::ControlFlow::Continue(())
    };
    snapshots.diff(&one.snapshot.unwrap(), &two.snapshot.unwrap(), &mut count).unwrap();
    assert_eq!(differ, 250);
    let outcome = world.engine.restore(&to(one.id)).unwrap();
    assert_eq!((outcome.status, outcome.restored.len()), (Status::Restored, 250));
    assert_eq!(world.read("d8/f8"), "one");
}

#[test]
fn te16_tf24_a_preview_says_what_would_go_back_stay_and_be_left_and_writes_nothing() {
    let world = World::plain();
    for file in ["over", "same", "gone"] {
        world.write(file, "1");
    }
    let point = world.save().point;
    world.write("over", "2");
    world.remove("gone");
    world.write("new", "n");
    let (before, newest) = (world.scan(), world.engine.index().newest().unwrap());
    let plan = world.engine.preview(&over(point.id)).unwrap().plan;
    assert_eq!((names(&plan.overwrite), names(&plan.recreate)), (vec!["over".to_owned()], vec!["gone".to_owned()]));
    assert_eq!((names(&plan.kept_new), plan.unchanged), (vec!["new".to_owned()], 1));
    assert_eq!((world.scan(), world.engine.index().newest().unwrap()), (before, newest));
}

#[test]
fn te22_te25_te26_te28_tf11_new_files_stay_and_are_named_and_head_stays_where_it_is() {
    let world = World::new(Kind::Sqlite, true, CapturePolicy::default());
    world.write("a", "1");
    let point = world.save().point;
    world.write("a", "2");
    assert!(world.engine.preview(&to(point.id)).unwrap().plan.kept_new.is_empty());
    world.write("untracked", "mine");
    let head = world.read(".git/HEAD");
    let outcome = world.engine.restore(&over(point.id)).unwrap();
    assert_eq!(names(&outcome.plan.kept_new), ["untracked"]);
    assert_eq!((world.read("a"), world.read("untracked"), world.read(".git/HEAD")), ("1".into(), "mine".into(), head));
}

#[test]
fn te31_only_the_chosen_path_goes_back_and_an_unknown_one_fails_closed() {
    let world = World::plain();
    for file in ["a", "b"] {
        world.write(file, "1");
    }
    let point = world.save().point;
    for file in ["a", "b"] {
        world.write(file, "2");
    }
    let only = |name: &str| RestoreRequest {
        policy: RestorePolicy {
            selection: vec![path(name)],
            drift: DriftPolicy::Overwrite,
            ..RestorePolicy::default()
        },
        ..to(point.id)
    };
    let before = world.scan();
    assert!(matches!(world.engine.restore(&only("c")), Err(EngineError::UnknownPath { .. })));
    assert_eq!(world.scan(), before);
    world.engine.restore(&only("a")).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("1".into(), "2".into()));
}

#[test]
fn te32_tf09_tf36_a_point_whose_content_is_damaged_fails_loudly_and_touches_nothing() {
    let world = World::plain();
    world.write("a", &"content that is not short ".repeat(40));
    let point = world.save().point;
    let packs = world.base().join("store/git/objects/pack");
    for entry in fs::read_dir(packs).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|end| end == "pack") {
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            fs::write(file, bytes).unwrap();
        }
    }
    let mut world = world;
    world.reopen();
    assert_eq!(world.engine.verify(VerifyLevel::Rehash).unwrap().damaged.len(), 1);
    world.write("a", "now");
    let before = world.scan();
    let refused = world.engine.restore(&to(point.id)).unwrap_err();
    assert!(matches!(refused.code(), "not-restorable" | "damaged-store" | "guard-failed"), "{refused:?}");
    assert_eq!(world.scan(), before);
}

#[test]
fn te34_te35_te37_files_come_back_new_ones_go_and_an_empty_point_clears() {
    let world = World::plain();
    let empty = world.turn_start("h:s", 1).point;
    world.write("a", "1");
    world.turn_end("h:s", 1);
    let second = world.turn_start("h:s", 2).point;
    world.write("a", "2");
    world.write("dir/b", "made in turn 2");
    world.turn_end("h:s", 2);
    std::thread::sleep(Duration::from_millis(60));
    world.engine.restore(&exactly(second.id)).unwrap();
    assert_eq!(world.read("a"), "1");
    assert!(!world.at("dir").exists());
    world.engine.restore(&exactly(empty.id)).unwrap();
    assert_eq!(fs::read_dir(world.root()).unwrap().count(), 0);
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "1");
}

#[test]
fn te40_a_worktree_inside_is_left_out_rather_than_failing() {
    let world = World::new(Kind::Sqlite, true, CapturePolicy::default());
    world.write("a", "1");
    world.write("linked/.git", "gitdir: ../.git/worktrees/linked\n");
    world.write("linked/b", "theirs");
    let saved = world.save();
    assert!(saved.skipped.iter().any(|one| one.path == path("linked") && one.reason == SkipReason::NestedRepo));
    assert_eq!(held(&world, &saved.point), BTreeSet::from(["a".to_owned()]));
}

#[test]
fn tf02_tf23_tg01_tg03_tg04_tg06_tg07_globs_and_what_is_never_stored() {
    let files = ["src/a.tmp", "a.tmp", "x/y/z/b.tmp", "keep", "build/out", "sub/build/out", "A.TMP", "p/q/r/s", "p/s"];
    let cases: &[(&[&str], &[&str])] = &[
        // At any depth, also without a slash; as it is written, and no other way.
        (&["**/*.tmp"], &["A.TMP", "build/out", "keep", "p/q/r/s", "p/s", "sub/build/out"]),
        (&["*.tmp"], &["A.TMP", "build/out", "keep", "p/q/r/s", "p/s", "sub/build/out"]),
        (&["build"], &["A.TMP", "a.tmp", "keep", "p/q/r/s", "p/s", "src/a.tmp", "x/y/z/b.tmp"]),
        // With a slash from the root.
        (&["build/**"], &["A.TMP", "a.tmp", "keep", "p/q/r/s", "p/s", "src/a.tmp", "sub/build/out", "x/y/z/b.tmp"]),
        (&["/keep"], &["A.TMP", "a.tmp", "build/out", "p/q/r/s", "p/s", "src/a.tmp", "sub/build/out", "x/y/z/b.tmp"]),
        // None or more directories between.
        (&["p/**/s"], &["A.TMP", "a.tmp", "build/out", "keep", "src/a.tmp", "sub/build/out", "x/y/z/b.tmp"]),
    ];
    for (globs, kept) in cases {
        let excludes = Some(globs.iter().map(|glob| (*glob).to_owned()).collect());
        let world = with(CapturePolicy { excludes, ..CapturePolicy::default() });
        for file in files {
            world.write(file, "x");
        }
        world.write(".git/config", "never stored");
        let point = world.save().point;
        let mut expected: BTreeSet<String> = kept.iter().map(|file| (*file).to_owned()).collect();
        let found = held(&world, &point);
        assert!(found.iter().all(|file| !file.starts_with(".git")), "{globs:?}");
        expected.retain(|file| files.contains(&&**file));
        assert_eq!(found, expected, "{globs:?}");
    }
}

#[test]
fn tf06_tf08_stamps_that_lie_make_no_point_and_hide_no_change() {
    for verify_by_hash in [true, false] {
        let world = with(CapturePolicy { verify_by_hash, ..CapturePolicy::default() });
        world.write("a", "same size");
        let first = world.save();
        let before = fs::metadata(world.at("a")).unwrap().modified().unwrap();
        let set = |time: SystemTime| fs::File::options().write(true).open(world.at("a")).unwrap().set_modified(time);
        set(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(world.save().point.id, first.point.id, "other stamps, same content");
        // Same size, and the old time put back: what copies by time and size cannot see.
        world.write("a", "SAME SIZE");
        set(before).unwrap();
        let second = world.save();
        assert!(second.created);
        world.engine.restore(&to(first.point.id)).unwrap();
        assert_eq!(world.read("a"), "same size");
    }
}

#[test]
fn tf18_tf20_tf27_links_are_kept_as_links_and_never_followed() {
    let world = World::plain();
    world.write("a", "file");
    world.write("dir/b", "below");
    symlink("../outside/victim", world.at("out")).unwrap();
    let saved = world.save();
    let snapshot = saved.point.snapshot.unwrap();
    assert!(matches!(world.engine.snapshots().state(&snapshot, &path("out")).unwrap(), PathState::Link { .. }));
    let victim = world.base().join("outside/victim");
    // What was a file is a link out of the workspace now, and so is a directory.
    world.remove("a");
    symlink(&victim, world.at("a")).unwrap();
    world.remove("dir");
    symlink(world.base().join("outside"), world.at("dir")).unwrap();
    world.remove("out");
    let outcome = world.engine.restore(&over(saved.point.id)).unwrap();
    assert_eq!(outcome.status, Status::Restored);
    assert_eq!((world.read("a"), world.read("dir/b")), ("file".into(), "below".into()));
    assert_eq!(fs::read_link(world.at("out")).unwrap().to_str(), Some("../outside/victim"));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "outside");
    assert_eq!(fs::read_dir(world.base().join("outside")).unwrap().count(), 1);
}

#[test]
fn tf21_missing_directories_are_made_again() {
    let world = World::plain();
    world.write("a/b/c/d", "deep");
    let point = world.save().point;
    world.remove("a");
    world.engine.restore(&over(point.id)).unwrap();
    assert_eq!(world.read("a/b/c/d"), "deep");
}

#[test]
fn tf35_what_is_overwritten_is_kept_first_and_the_record_is_complete() {
    let world = World::plain();
    world.write("a", "1");
    let point = world.save().point;
    world.write("a", "never captured by anybody");
    world.write("new", "n");
    let outcome = world.engine.restore(&over(point.id)).unwrap();
    let operation = world.engine.index().operation(&outcome.operation.unwrap()).unwrap().unwrap();
    assert_eq!((operation.guard, operation.wrote), (outcome.guard, 1));
    assert!(world.engine.index().open_intent().unwrap().is_none());
    assert_eq!((world.read("a"), world.read("new")), ("1".into(), "n".into()));
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "never captured by anybody");
}

#[test]
fn td12_an_automatic_point_of_what_is_there_already_is_none() {
    let world = World::plain();
    world.write("a", "1");
    let first = world.event("h:s", 1, PointKind::Auto);
    assert!(first.created);
    assert!(!world.event("h:s", 1, PointKind::Auto).created);
    world.write("a", "2");
    assert!(world.event("h:s", 1, PointKind::Auto).created);
}

#[test]
fn ta10_ta13_ta15_ta28_points_are_found_by_beginnings_and_recency() {
    let world = World::plain();
    let mut ids = Vec::new();
    for n in 1..=3 {
        world.write("a", &n.to_string());
        ids.push(world.event("h:s", n, PointKind::TurnStart).point.id);
    }
    let find = |target: &str| world.engine.find(None, target).map(|found| found.point.unwrap().id);
    let full = ids[1].to_string();
    assert_eq!(find(&full).unwrap(), ids[1]);
    assert_eq!(find(&full.to_uppercase()).unwrap(), ids[1]);
    assert_eq!(find(&ids[1].short()).unwrap(), ids[1], "as the list shows it");
    assert_eq!(find("latest").unwrap(), ids[2]);
    assert_eq!(find("latest~2").unwrap(), ids[0]);
    assert_eq!(find("latest~3").unwrap_err().code(), "not-found");
    assert_eq!(find("t2^").unwrap(), ids[1]);
}

#[test]
fn to08_to09_to11_to12_to15_operations_go_back_and_forth_and_older_ones_ask() {
    let world = World::plain();
    let mut points = Vec::new();
    for n in 1..=3 {
        world.write("a", &n.to_string());
        points.push(world.save().point.id);
    }
    let second = world.engine.restore(&to(points[1])).unwrap().operation.unwrap();
    assert_eq!(world.read("a"), "2");
    // Clean: back, forth, and back again.
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "3");
    let reversed = world.engine.index().operation(&second).unwrap().unwrap();
    assert!(reversed.reversed_by.is_some());
    world.engine.redo(&undo()).unwrap();
    assert_eq!(world.read("a"), "2");
    // A newer one on top: undoing the older one asks, naming what stands in the way.
    world.engine.restore(&to(points[0])).unwrap();
    let older = checkpoint_core::ReverseRequest { operation: Some(second.to_string()), ..undo() };
    let asks = world.engine.undo(&older).unwrap_err();
    let EngineError::Undecided { preview } = &asks else { panic!("{asks:?}") };
    assert_eq!(names(&preview.plan.undecided), ["a"]);
    assert_eq!(world.read("a"), "1");
}

#[test]
fn tf15_points_made_at_once_are_each_complete() {
    let world = World::plain();
    for n in 0..40 {
        world.write(&format!("f{n}"), "1");
    }
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let world = &world;
                scope.spawn(move || {
                    world.write(&format!("own{n}"), "x");
                    world.event(&format!("h:s{n}"), 1, PointKind::TurnStart).point
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (n, point) in ids.iter().enumerate() {
        let files = held(&world, point);
        assert!(files.contains(&format!("own{n}")) && files.len() >= 41, "{n}");
    }
    assert_eq!(world.engine.verify(VerifyLevel::Rehash).unwrap().checkpoints, 4);
}

#[test]
fn tc09_what_is_over_a_limit_goes_with_its_content_oldest_first() {
    let mut world = World::plain();
    let quota = Quota { max_checkpoints: 3, max_turns: 2, ..Quota::default() };
    world.composed(|files| files, |builder| builder.quota(quota));
    let mut made = Vec::new();
    for n in 0..6_u32 {
        world.write("a", &format!("content of round {n} ").repeat(400));
        made.push(world.event("h:s", 1, PointKind::Auto).point.id);
    }
    for n in 2..6 {
        world.write("a", &format!("content of turn {n} ").repeat(400));
        made.push(world.event("h:s", n, PointKind::TurnStart).point.id);
    }
    let before = world.engine.snapshots().usage().unwrap().own_bytes;
    {
        // Who has the workspace for himself works on the points that he has read.
        let _held = world.lock.acquire(LockMode::Exclusive, Duration::ZERO).unwrap();
        assert!(world.engine.prune(before).unwrap().is_empty());
    }
    let dropped = world.engine.prune(before).unwrap();
    // Both limits count, each for its own kind, and what is left are the newest; the first of a turn goes last.
    let left: BTreeSet<_> =
        world.engine.index().points(&PointQuery::default()).unwrap().into_iter().map(|point| point.id).collect();
    assert_eq!((dropped.len(), left.len()), (5, 5));
    assert!(made[8..].iter().chain(&made[4..6]).all(|id| left.contains(id)), "the newest stay");
    world.engine.gc(false).unwrap();
    assert!(world.engine.snapshots().usage().unwrap().own_bytes < before);
    assert!(world.engine.verify(VerifyLevel::Rehash).unwrap().damaged.is_empty());
    assert_eq!(world.engine.restore(&to(dropped[0])).unwrap_err().code(), "not-found");
}
