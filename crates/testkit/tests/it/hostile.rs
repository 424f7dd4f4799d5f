//! Workspaces made to hurt (issue 6, part 4): links swapped in while we work, names and sizes at every limit, files that
//! are no files, files that may not be touched.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use checkpoint_core::{
    CapturePolicy, DriftPolicy, EngineError, Point, RestorePolicy, RestoreRequest, SkipReason, VerifyLevel,
};

use crate::world::{Kind, World, exactly, path, to};

/// A restore of whatever changed, whoever changed it.
fn decided(target: checkpoint_core::PointId) -> RestoreRequest {
    let policy = RestorePolicy { drift: DriftPolicy::Overwrite, with_others: true, ..exactly(target).policy };
    RestoreRequest { policy, ..to(target) }
}

/// Every path of a point with its content, where that is small.
fn contents(world: &World, point: &Point) -> Vec<(String, Vec<u8>)> {
    let snapshots = world.engine.snapshots();
    let mut found = Vec::new();
    snapshots
        .list(&point.snapshot.unwrap(), None, &mut |path, state| {
            found.push((path, state));
            ControlFlow::Continue(())
        })
        .unwrap();
    let read = |blob: &checkpoint_core::ObjectId| {
        let mut bytes = Vec::new();
        snapshots.open_blob(blob).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    found
        .into_iter()
        .map(|(path, state)| (path.to_lossy(), state.blob().map(|b| read(&b)).unwrap_or_default()))
        .collect()
}

/// Somebody swaps each directory on the way for a link out of the workspace and back, as fast as it goes, while points are
/// made and restored: nothing outside is read, written or removed.
#[test]
fn links_swapped_in_at_every_component_lead_nowhere() {
    let world = World::new(Kind::Memory, false, CapturePolicy::default());
    let outside = world.base().join("outside");
    // What a walk through the link would find: the same names as inside.
    for dir in ["b/c", "c", "a/b/c"] {
        fs::create_dir_all(outside.join(dir)).unwrap();
    }
    for file in ["f", "b/c/f", "c/f", "a/b/c/f", "b/f"] {
        fs::write(outside.join(file), "outside").unwrap();
    }
    let before = crate::scan::scan(&outside, false);
    world.write("a/b/c/f", "one");
    world.write("a/b/g", "one");
    let one = world.save().point;
    world.write("a/b/c/f", "two");
    world.write("a/b/c/new", "two");
    let two = world.save().point;
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut refused, mut done) = (0, 0);
    std::thread::scope(|scope| {
        let (root, lure, stop, swaps) = (world.root(), outside.clone(), &stop, &swaps);
        scope.spawn(move || {
            for (n, dir) in ["a", "a/b", "a/b/c"].iter().cycle().enumerate() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (dir, aside) = (root.join(dir), root.join(format!("aside{n}")));
                if fs::rename(&dir, &aside).is_ok() {
                    let linked = symlink(&lure, &dir).is_ok();
                    std::thread::yield_now();
                    // The link goes; what the engine may have put there meanwhile stays beside what was moved.
                    if linked {
                        drop(fs::remove_file(&dir));
                    }
                    if fs::rename(&aside, &dir).is_err() {
                        drop(fs::rename(&dir, root.join(format!("theirs{n}"))));
                        drop(fs::rename(&aside, &dir));
                    }
                    swaps.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        for n in 0..120_u64 {
            // At least one swap in each round.
            let seen = swaps.load(Ordering::SeqCst);
            while swaps.load(Ordering::SeqCst) == seen {
                std::thread::yield_now();
            }
            let saved = world.engine.save(&checkpoint_core::SaveRequest::manual());
            if let Ok(saved) = saved {
                let leaked = |(path, bytes): &(String, Vec<u8>)| bytes == b"outside" && !path.is_empty();
                assert!(
                    !contents(&world, &saved.point).iter().any(leaked),
                    "round {n}: content from outside was stored"
                );
            }
            let target = if n % 2 == 0 { one.id } else { two.id };
            let policy = RestorePolicy {
                drift: DriftPolicy::Overwrite,
                with_others: true,
                skip_blocked: n % 3 == 0,
                exact: true,
                ..RestorePolicy::default()
            };
            match world.engine.restore(&RestoreRequest { policy, ..to(target) }) {
                Ok(_) => done += 1,
                Err(_) => refused += 1,
            }
            drop(world.engine.recover(checkpoint_core::Recovery::Back));
            assert_eq!(crate::scan::scan(&outside, false), before, "round {n}");
        }
        stop.store(true, Ordering::SeqCst);
    });
    println!(
        "links: {} swaps, {done} restores, {refused} refused, nothing outside touched",
        swaps.load(Ordering::SeqCst)
    );
    for point in [one, two] {
        world.engine.snapshots().verify(&point.snapshot.unwrap(), VerifyLevel::Rehash).unwrap();
    }
}

/// The longest path that a system call takes, made of the longest names.
#[test]
fn a_path_of_four_thousand_bytes_comes_back() {
    let world = World::plain();
    let mut long = String::new();
    while world.at(&long).as_os_str().len() + 201 < 3_900 {
        long.push_str(&"n".repeat(199));
        long.push('/');
    }
    long.push_str(&"f".repeat(100));
    world.write(&long, "one");
    let first = world.save();
    assert!(first.skipped.is_empty(), "{:?}", first.skipped);
    let before = world.scan();
    world.write(&long, "two");
    world.turn_start("test:s", 1);
    world.remove(&long[..199]);
    world.turn_end("test:s", 1);
    world.engine.restore(&decided(first.point.id)).unwrap();
    assert_eq!(world.scan(), before);
}

/// `RWD_ENTRIES=1000000` by hand.
#[test]
fn a_directory_with_very_many_entries_is_captured_and_comes_back() {
    let entries: usize = std::env::var("RWD_ENTRIES").map_or(3_000, |text| text.parse().unwrap());
    let world = World::plain();
    world.write("many/0", "first");
    for n in 1..entries {
        fs::write(world.at(&format!("many/{n}")), "").unwrap();
    }
    let first = world.save();
    assert_eq!(first.point.files, entries as u64);
    world.turn_start("test:s", 1);
    for n in (0..entries).step_by(100) {
        fs::remove_file(world.at(&format!("many/{n}"))).unwrap();
    }
    world.turn_end("test:s", 1);
    let restored = world.engine.restore(&decided(first.point.id)).unwrap();
    assert_eq!(restored.restored.len(), entries.div_ceil(100));
    assert_eq!(fs::read_dir(world.at("many")).unwrap().count(), entries);
    assert_eq!(world.read("many/0"), "first");
}

/// A file that says it has a terabyte is left out by its size: what git does not know by the limit for that, what is in an
/// older point because no store could ever take it.
#[test]
fn a_sparse_terabyte_is_left_out_and_never_read() {
    let world = World::plain();
    world.write("f", "small");
    world.save();
    world.turn_start("test:s", 1);
    let huge = fs::File::options().write(true).open(world.at("f")).unwrap();
    if huge.set_len(1 << 40).is_err() {
        return;
    }
    let untracked = fs::File::create(world.at("g")).unwrap();
    untracked.set_len(1 << 40).unwrap();
    let saved = world.turn_end("test:s", 1);
    let left_out: Vec<_> = saved.skipped.iter().map(|s| (s.path.to_lossy(), s.reason)).collect();
    assert!(left_out.contains(&("g".to_owned(), SkipReason::TooLarge)), "{left_out:?}");
    assert!(left_out.contains(&("f".to_owned(), SkipReason::Budget)), "{left_out:?}");
    assert_eq!(fs::metadata(world.at("f")).unwrap().len(), 1 << 40);
    assert_eq!(fs::metadata(world.at("g")).unwrap().len(), 1 << 40);
    assert!(fs::metadata(world.at("g")).unwrap().blocks() < 1_000);
}

/// Devices, where this user may make them: listed, never opened, never written; in the way they block.
#[test]
fn a_device_is_listed_and_blocks_what_needs_its_place() {
    let world = World::plain();
    world.write("f", "one");
    world.write("h", "one");
    let first = world.save();
    world.turn_start("test:s", 1);
    world.remove("f");
    // One that would never end to be read.
    let made = Command::new("mknod").arg(world.at("f")).args(["c", "1", "5"]).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("devices: not tried, this user may not make any");
        return;
    }
    world.write("h", "two");
    let saved = world.turn_end("test:s", 1);
    assert!(saved.skipped.iter().any(|s| s.path == path("f") && s.reason == SkipReason::Special));
    let refused = world.engine.restore(&decided(first.point.id));
    assert!(matches!(refused, Err(EngineError::Blocked { .. })), "{refused:?}");
    assert_eq!(world.read("h"), "two", "a refused restore writes nothing");
    let policy = RestorePolicy { skip_blocked: true, ..decided(first.point.id).policy };
    world.engine.restore(&RestoreRequest { policy, ..to(first.point.id) }).unwrap();
    assert_eq!(world.read("h"), "one");
    assert_eq!(fs::symlink_metadata(world.at("f")).unwrap().mode() & 0o170_000, 0o020_000);
}

/// A file that nobody may change (`chattr +i`): the restore says which, and everything is as before.
#[test]
fn an_immutable_file_stops_a_restore_and_nothing_is_half_done() {
    let chattr = |flag: &str, at: &Path| Command::new("chattr").arg(flag).arg(at).status().is_ok_and(|s| s.success());
    let world = World::plain();
    for name in ["a", "f", "z"] {
        world.write(name, "one");
    }
    let first = world.save();
    world.turn_start("test:s", 1);
    for name in ["a", "f", "z"] {
        world.write(name, "two");
    }
    world.turn_end("test:s", 1);
    if !chattr("+i", &world.at("f")) {
        println!("immutable files: not tried, this file system or user has none");
        return;
    }
    let before = world.scan();
    let refused = world.engine.restore(&decided(first.point.id));
    let open = world.engine.index().open_intent().unwrap();
    let after = world.scan();
    assert!(chattr("-i", &world.at("f")));
    let error = refused.unwrap_err();
    assert!(format!("{error:?}").contains('f'), "{error:?}");
    assert_eq!(open, None);
    assert_eq!(after, before);
    world.engine.restore(&decided(first.point.id)).unwrap();
    assert_eq!(world.read("f"), "one");
}

/// Somebody makes a planned file a sparse terabyte, at whatever step of a restore, in place or by a rename: it is told from
/// what was planned by its size, kept, and everything else is as before or after. Read to its end it would take hours.
fn a_terabyte_at_every_step(git: bool, in_place: bool) {
    let staged = || {
        let world = World::new(Kind::Memory, git, CapturePolicy::default());
        world.write("big", "v1");
        world.write("other", "v1");
        if git {
            let added = Command::new("git").args(["add", "."]).current_dir(world.root()).status().unwrap();
            assert!(added.success());
        }
        world.turn_start("h:s", 1);
        world.write("big", "agent");
        world.write("other", "agent");
        world.write("new", "agent");
        world.turn_end("h:s", 1);
        world
    };
    let world = staged();
    world.trap.disarm();
    world.engine.restore(&exactly("h:s/t1^")).unwrap();
    let steps = world.trap.steps();
    assert!(steps > 8, "{steps} steps");
    // Step 0: between the preview and the first write.
    for at in 0..=steps {
        for name in ["big", "new"] {
            let world = staged();
            let (target, side) = (world.at(name), world.base().join("side"));
            let grow = move || {
                // What is gone already may come back.
                let (path, moved) = if in_place { (&target, false) } else { (&side, true) };
                let file = fs::File::options().write(true).create(true).truncate(false).open(path).unwrap();
                file.set_len(1 << 40).unwrap();
                if moved {
                    fs::rename(&side, &target).unwrap();
                }
            };
            if at == 0 {
                world.approver.after(grow);
            } else {
                world.trap.set(at, grow);
            }
            let result = world.engine.restore(&exactly("h:s/t1^"));
            let about = format!("git {git}, in place {in_place}, step {at}, {name}: {result:?}");
            let found = fs::metadata(world.at(name)).expect(&about);
            assert_eq!(found.len(), 1 << 40, "{about}");
            assert!(found.blocks() < 1_000, "{about}");
            match &result {
                Ok(done) => assert_eq!(world.read("other"), "v1", "{about}: {:?}", done.status),
                Err(EngineError::Changed { .. } | EngineError::Blocked { .. }) => {
                    assert_eq!(world.read("other"), "agent", "{about}");
                }
                Err(other) => panic!("{other:?}: {about}"),
            }
            assert!(world.engine.unfinished().unwrap().is_none(), "{about}");
            let left = fs::read_dir(world.root()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
            let left: Vec<_> = left.filter(|name| name.contains("rwd-")).collect();
            assert!(left.is_empty(), "{about}: {left:?}");
        }
    }
}

#[test]
fn a_terabyte_that_comes_in_at_any_step_of_a_restore_is_told_by_its_size() {
    for git in [false, true] {
        for in_place in [false, true] {
            a_terabyte_at_every_step(git, in_place);
        }
    }
}
