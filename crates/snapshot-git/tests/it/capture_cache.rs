//! The change-detection cache: what it saves, and that it never hides a change.

use std::{
    fs::FileTimes,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use checkpoint_core::{BlobStore, LiveObjects, NoProgress, PathState, SnapshotBackend, VerifyLevel};
use snapshot_git::Epoch;

use crate::world::{World, path};

fn cache_len(world: &World) -> u64 {
    std::fs::metadata(world.cache()).map_or(0, |m| m.len())
}

fn content(world: &World, snapshot: &checkpoint_core::Snapshot, at: &str) -> String {
    let PathState::File { blob, .. } = world.backend.state(snapshot, &path(at)).unwrap() else { panic!("{at}") };
    let mut text = String::new();
    std::io::Read::read_to_string(&mut world.backend.open_blob(&blob).unwrap(), &mut text).unwrap();
    text
}

#[test]
fn nothing_changed_nothing_written() {
    let mut world = World::new();
    for n in 0..40 {
        world.put(&format!("d{}/e/f{n}", n % 7), n.to_string());
    }
    world.put(".gitignore", "*.o\n");
    world.put("d1/x.o", "ignored");
    World::settle();
    let first = world.capture_next();
    World::settle();
    world.reopen();
    let second = world.capture_next();
    let (len, store) = (cache_len(&world), world.backend.usage().unwrap().own_bytes);
    world.reopen();
    let third = world.capture_next();
    assert_eq!((second.snapshot, third.snapshot), (first.snapshot, first.snapshot));
    assert_eq!((second.new_bytes, third.new_bytes), (0, 0));
    assert_eq!(third.files, first.files);
    assert_eq!(third.skipped, first.skipped);
    assert_eq!(cache_len(&world), len);
    assert_eq!(world.backend.usage().unwrap().own_bytes, store);
    assert!(third.live.is_empty());
}

type Step<'s> = (&'s str, &'s dyn Fn(&World));

#[test]
fn every_kind_of_change_is_seen() {
    let mut world = World::new();
    for dir in ["a", "a/b", "c"] {
        for n in 0..5 {
            world.put(&format!("{dir}/f{n}"), format!("{dir}{n}"));
        }
    }
    World::settle();
    world.capture_next();
    World::settle();
    world.capture_next();
    let steps: &[Step<'_>] = &[
        ("same size", &|w| w.put("a/b/f1", "a/bX")),
        ("grown", &|w| w.put("a/f2", "longer than before")),
        ("new", &|w| w.put("a/b/new", "n")),
        ("removed", &|w| std::fs::remove_file(w.abs("c/f3")).unwrap()),
        ("new directory", &|w| w.put("c/d/e/f", "deep")),
        ("renamed", &|w| std::fs::rename(w.abs("a/f0"), w.abs("c/f0x")).unwrap()),
        ("file to link", &|w| {
            std::fs::remove_file(w.abs("a/f1")).unwrap();
            std::os::unix::fs::symlink("f3", w.abs("a/f1")).unwrap();
        }),
        ("file to directory", &|w| {
            std::fs::remove_file(w.abs("a/f3")).unwrap();
            w.put("a/f3/x", "x");
        }),
        ("directory to file", &|w| {
            std::fs::remove_dir_all(w.abs("c/d")).unwrap();
            w.put("c/d", "x");
        }),
        ("directory swapped", &|w| {
            std::fs::rename(w.abs("a"), w.abs("t")).unwrap();
            std::fs::rename(w.abs("c"), w.abs("a")).unwrap();
            std::fs::rename(w.abs("t"), w.abs("c")).unwrap();
        }),
        ("mode", &|w| w.chmod("a/f1", 0o755)),
    ];
    for (what, step) in steps {
        step(&world);
        world.reopen();
        let seen = world.capture_next();
        // What a capture that trusts nothing says is the truth.
        world.ask.policy.verify_by_hash = true;
        let truth = world.capture();
        world.ask.policy.verify_by_hash = false;
        assert_eq!(seen.snapshot, truth.snapshot, "{what}");
        if let Some(tree) = world.git_tree() {
            assert_eq!(seen.snapshot.tree.to_string(), tree, "{what}");
        }
        World::settle();
        assert_eq!(world.capture_next().snapshot, truth.snapshot, "{what}, settled");
    }
}

#[test]
fn a_write_in_the_same_instant_is_not_missed() {
    // Racy rule: size, and as far as the clock can tell the stamps, are the same.
    let mut world = World::new();
    for round in 0..20 {
        world.put("f", format!("{:04}", round * 2));
        world.capture_next();
        world.put("f", format!("{:04}", round * 2 + 1));
        let captured = world.capture_next();
        assert_eq!(content(&world, &captured.snapshot, "f"), format!("{:04}", round * 2 + 1));
    }
}

#[test]
fn a_restored_mtime_does_not_hide_a_change() {
    let mut world = World::new();
    world.put("f", "one");
    let old = SystemTime::now() - Duration::from_hours(1);
    let touch = |world: &World| {
        let file = std::fs::File::options().write(true).open(world.abs("f")).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
    };
    touch(&world);
    World::settle();
    world.capture_next();
    world.put("f", "two");
    touch(&world);
    let captured = world.capture_next();
    assert_eq!(content(&world, &captured.snapshot, "f"), "two");
}

#[test]
fn a_damaged_or_lost_cache_costs_time_and_nothing_else() {
    let mut world = World::new();
    for n in 0..20 {
        world.put(&format!("d{}/f{n}", n % 3), n.to_string());
    }
    World::settle();
    let first = world.capture_next();
    let whole = std::fs::read(world.cache()).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 23) {
        let mut bad = whole.clone();
        bad[at] ^= 0xff;
        std::fs::write(world.cache(), &bad).unwrap();
        assert_eq!(world.capture().snapshot, first.snapshot);
        std::fs::write(world.cache(), &whole[..at]).unwrap();
        assert_eq!(world.capture().snapshot, first.snapshot);
    }
    std::fs::remove_file(world.cache()).unwrap();
    assert_eq!(world.capture().snapshot, first.snapshot);
    // A directory in its place: no cache at all.
    std::fs::remove_file(world.cache()).unwrap();
    std::fs::create_dir(world.cache()).unwrap();
    assert_eq!(world.capture().snapshot, first.snapshot);
}

#[derive(Debug)]
struct TestEpoch(AtomicU64, AtomicBool);

impl Epoch for TestEpoch {
    fn current(&self) -> std::io::Result<u64> {
        if self.1.load(Ordering::SeqCst) {
            return Err(std::io::Error::other("damaged"));
        }
        Ok(self.0.load(Ordering::SeqCst))
    }
    fn bump(&self) -> std::io::Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn after_a_collection_nothing_cached_counts() {
    // F19: the cache must not vouch for objects that a collection removed.
    let mut world = World::new();
    let epoch = Arc::new(TestEpoch(AtomicU64::new(0), AtomicBool::new(false)));
    world.options.epoch = epoch.clone();
    world.reopen();
    world.put("d/f", "one");
    World::settle();
    let first = world.capture();
    World::settle();
    world.capture();
    let report = world.backend.gc(&LiveObjects::default(), false, &NoProgress).unwrap();
    assert!(report.dropped > 0);
    assert!(epoch.0.load(Ordering::SeqCst) > 0);
    let again = world.capture();
    assert_eq!(again.snapshot, first.snapshot);
    world.backend.verify(&again.snapshot, VerifyLevel::Rehash).unwrap();
    epoch.1.store(true, Ordering::SeqCst);
    let blind = world.capture();
    assert_eq!((blind.snapshot, blind.warnings.len()), (first.snapshot, 1));
}

/// Joining packs removes no object, so what is cached still counts: no file is read again, in this process and another.
#[test]
fn after_a_consolidation_everything_cached_counts() {
    let mut world = World::new();
    world.put("still", "never changes");
    for n in 0..40 {
        world.put("d/f", n.to_string());
        world.capture_next();
    }
    World::settle();
    world.capture_next();
    let mut resident = World::new();
    std::mem::swap(&mut world.backend, &mut resident.backend);
    world.reopen();
    assert!(world.backend.is_scattered().unwrap());
    let packs = world.backend.pack_count().unwrap() as u64;
    let went = world.backend.consolidate(&NoProgress).unwrap();
    assert_eq!(world.backend.pack_count().unwrap() as u64, packs - went);
    let cached = std::fs::read(world.cache()).unwrap();
    for backend in [&resident.backend, &world.backend] {
        let again = crate::world::capture_with(backend, &world.ask);
        assert_eq!(Some(again.snapshot), world.ask.base);
        assert_eq!(again.new_bytes, 0);
        backend.verify(&again.snapshot, VerifyLevel::Rehash).unwrap();
    }
    assert_eq!(std::fs::read(world.cache()).unwrap(), cached);
}

#[test]
fn a_store_that_lost_its_packs_is_filled_again() {
    let mut world = World::new();
    for n in 0..9 {
        world.put(&format!("d{}/f", n % 3), n.to_string());
    }
    World::settle();
    let first = world.capture();
    World::settle();
    world.capture();
    for entry in std::fs::read_dir(world.store().join("objects/pack")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    world.reopen();
    let again = world.capture();
    assert_eq!(again.snapshot, first.snapshot);
    world.backend.verify(&again.snapshot, VerifyLevel::Rehash).unwrap();
}

#[test]
fn captures_side_by_side_agree() {
    let world = World::new();
    for n in 0..200 {
        world.put(&format!("d{}/f{n}", n % 11), n.to_string());
    }
    let worlds: Vec<_> = (0..4).map(|_| world.options.clone()).collect();
    let snapshots: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = worlds
            .into_iter()
            .map(|options| {
                let world = &world;
                scope.spawn(move || {
                    let backend =
                        snapshot_git::GitSnapshots::open(&world.root, &world.store(), &world.cache(), options).unwrap();
                    (0..3).map(|_| crate::world::capture_with(&backend, &world.ask).snapshot).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    assert!(snapshots.iter().all(|s| *s == snapshots[0]));
    world.backend.verify(&snapshots[0], VerifyLevel::Rehash).unwrap();
    assert_eq!(world.capture().snapshot, snapshots[0]);
}

struct Meddler<'w>(&'w World);
impl checkpoint_core::Progress for Meddler<'_> {
    fn tick(&self, _: &'static str, _: u64, _: Option<u64>) -> std::ops::ControlFlow<()> {
        self.0.put("calm/late", "x");
        self.0.put("atroot", "x");
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn directories_that_change_under_the_walk_are_live() {
    // F21: a young directory is listed again; one that changes meanwhile proves nothing.
    let mut world = World::new();
    world.put("calm/f", "x");
    World::settle();
    world.put("young/f", "x");
    let captured = world.capture_next();
    assert!(captured.live.is_empty(), "{:?}", captured.live);
    world.put("future/f", "x");
    let file = std::fs::File::open(world.abs("future")).unwrap();
    file.set_times(FileTimes::new().set_modified(SystemTime::now() + Duration::from_hours(1))).unwrap();
    World::settle();
    let captured = world.capture_next();
    assert_eq!(captured.live, [Some(path("future"))]);

    // So many that whoever looks at them ticks after the directory was listed, in whatever order the others come.
    for n in 0..600 {
        world.put(&format!("calm/{n}"), "x");
    }
    World::settle();
    let captured = world.try_capture_with(&Meddler(&world)).unwrap();
    assert!(captured.live.contains(&None), "{:?}", captured.live);
    assert!(captured.live.contains(&Some(path("calm"))), "{:?}", captured.live);
}

/// A store and a cache that were copied from elsewhere: names, sizes and times of modification agree, and the cache's
/// objects are there, but these are other files.
#[test]
fn a_cache_from_another_place_vouches_for_nothing() {
    let (mut here, mut there) = (World::new(), World::new());
    let old = SystemTime::now() - Duration::from_hours(1);
    for (world, word) in [(&here, "aaaa"), (&there, "bbbb")] {
        for n in 0..12 {
            world.put(&format!("d{}/f{n}", n % 3), format!("{word} {n}"));
            let file = std::fs::File::open(world.abs(&format!("d{}/f{n}", n % 3))).unwrap();
            file.set_times(FileTimes::new().set_modified(old)).unwrap();
        }
    }
    World::settle();
    here.capture_next();
    World::settle();
    here.capture_next();
    let truth = there.capture_next();
    for entry in std::fs::read_dir(here.store().join("objects/pack")).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), there.store().join("objects/pack").join(entry.file_name())).unwrap();
    }
    std::fs::copy(here.cache(), there.cache()).unwrap();
    there.reopen();
    let captured = there.capture();
    assert_eq!(captured.snapshot, truth.snapshot);
    assert_eq!(content(&there, &captured.snapshot, "d0/f0"), "bbbb 0");
}

/// Changes a file and captures with another handle, once, in the middle of somebody else's capture.
struct Overtaker<'w>(&'w World, AtomicBool);
impl checkpoint_core::Progress for Overtaker<'_> {
    fn tick(&self, _: &'static str, _: u64, _: Option<u64>) -> std::ops::ControlFlow<()> {
        if !self.1.swap(true, Ordering::SeqCst) {
            let world = self.0;
            world.put("a/f1", "two");
            World::settle();
            let other =
                snapshot_git::GitSnapshots::open(&world.root, &world.store(), &world.cache(), world.options.clone());
            crate::world::capture_with(&other.unwrap(), &world.ask);
        }
        std::ops::ControlFlow::Continue(())
    }
}

/// Two processes on one cache: the record of an older state is appended after that of a newer one, and so it wins.
#[test]
fn an_older_record_that_is_written_last_hides_nothing() {
    for changes in 0..3 {
        let mut world = World::new();
        for n in 0..900 {
            world.put(&format!("{}/f{n}", ["a", "b", "c"][n % 3]), "one");
        }
        World::settle();
        world.capture_next();
        for n in 0..changes {
            world.put(&format!("a/f{}", 3 + 3 * n), "more");
        }
        World::settle();
        let overtaker = Overtaker(&world, AtomicBool::new(false));
        world.try_capture_with(&overtaker).unwrap();
        assert!(overtaker.1.load(Ordering::SeqCst), "nobody came in between");
        world.reopen();
        let seen = world.capture();
        world.ask.policy.verify_by_hash = true;
        assert_eq!(seen.snapshot, world.capture().snapshot);
        assert_eq!(content(&world, &seen.snapshot, "a/f1"), "two");
    }
}

/// A resident process knows packs and ids; another collects everything it stored. The next capture stores it again.
#[test]
fn a_collection_beside_a_resident_handle_takes_nothing_from_its_next_capture() {
    let mut world = World::new();
    for n in 0..9 {
        world.put(&format!("d{}/f", n % 3), n.to_string());
    }
    World::settle();
    let first = world.capture_next();
    World::settle();
    world.capture_next();
    let resident = &world.backend;
    let collector =
        snapshot_git::GitSnapshots::open(&world.root, &world.store(), &world.cache(), world.options.clone()).unwrap();
    assert!(collector.gc(&LiveObjects::default(), false, &NoProgress).unwrap().dropped > 0);
    // The snapshot it builds upon is gone as well.
    let again = crate::world::capture_with(resident, &world.ask);
    assert_eq!(again.snapshot, first.snapshot);
    for backend in [resident, &collector] {
        backend.verify(&again.snapshot, VerifyLevel::Rehash).unwrap();
    }
    world.reopen();
    world.backend.verify(&again.snapshot, VerifyLevel::Rehash).unwrap();
}
