//! What a restore read back is not read again, and never hides a change: each condition has a lie that it must not
//! believe. The lie is a wrong id for the right file: with all conditions met it is taken, so each test can fail.

use std::{
    os::unix::fs::MetadataExt,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::world::{World, path};
use checkpoint_core::{BlobStore, FileVersion, Mode, ObjectId, PathState, SnapshotBackend};

const HINT: &str = "restored.cache";

fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().try_into().unwrap()
}

/// The version of a file that was read now.
fn version(world: &World, at: &str) -> FileVersion {
    let found = std::fs::symlink_metadata(world.abs(at)).unwrap();
    let nanos = |secs: i64, nanos: i64| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
    FileVersion {
        device: found.dev(),
        inode: found.ino(),
        size: found.len(),
        mtime_ns: nanos(found.mtime(), found.mtime_nsec()),
        ctime_ns: nanos(found.ctime(), found.ctime_nsec()),
        read_at_ns: now(),
    }
}

fn captured_id(world: &World, at: &str) -> ObjectId {
    let captured = world.capture();
    let PathState::File { blob, .. } = world.backend.state(&captured.snapshot, &path(at)).unwrap() else { panic!() };
    blob
}

/// A file `d/f` that was captured, then written again and is at rest; and the id of other content, which is stored.
fn rewritten() -> (World, ObjectId, ObjectId) {
    let mut world = World::new();
    world.put("d/f", "one");
    world.put("d/g", "beside");
    World::settle();
    world.capture_next();
    world.put("d/f", "two");
    World::settle();
    let truth = world.backend.hash_blob(3, &mut &b"two"[..]).unwrap();
    let lie = world.backend.put_blob(3, &mut &b"lie"[..]).unwrap();
    (world, truth, lie)
}

fn remember(world: &World, at: &str, id: ObjectId, version: FileVersion) {
    world.backend.remember(&[(&path(at), Mode(0o644), id, version)]);
}

#[test]
fn what_was_read_back_is_not_read_again() {
    let (mut world, _, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    world.reopen();
    assert_eq!(captured_id(&world, "d/f"), lie, "it was read again");
    // The cache has it now: the hint has done its work.
    assert!(!world.dir.path().join(HINT).exists());
    world.reopen();
    assert_eq!(captured_id(&world, "d/f"), lie);
}

/// A preview takes it too, and leaves it for the capture.
#[test]
fn a_capture_that_writes_nothing_leaves_it() {
    let (mut world, _, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    world.ask.write = false;
    assert_eq!(captured_id(&world, "d/f"), lie);
    assert!(world.dir.path().join(HINT).exists());
}

/// One thing about it is different.
type Bend = fn(FileVersion) -> FileVersion;

#[test]
fn another_version_is_not_believed() {
    let bends: [(&str, Bend); 7] = [
        ("device", |v| FileVersion { device: v.device + 1, ..v }),
        ("inode", |v| FileVersion { inode: v.inode + 1, ..v }),
        ("size", |v| FileVersion { size: v.size + 1, ..v }),
        ("mtime", |v| FileVersion { mtime_ns: v.mtime_ns + 1, ..v }),
        ("ctime", |v| FileVersion { ctime_ns: v.ctime_ns - 1, ..v }),
        // The file was hardly older than the look at it: what came after may have the same stamps.
        ("read too early", |v| FileVersion { read_at_ns: v.ctime_ns + 1_000_000, ..v }),
        ("no such time", |v| FileVersion { read_at_ns: i128::MAX, ..v }),
    ];
    for (what, bend) in bends {
        let (world, truth, lie) = rewritten();
        remember(&world, "d/f", lie, bend(version(&world, "d/f")));
        assert_eq!(captured_id(&world, "d/f"), truth, "{what}");
    }
}

/// The earliest look counts for a whole directory.
#[test]
fn a_young_file_beside_an_old_one_is_read_again() {
    let (world, truth, lie) = rewritten();
    let (f, g) = (version(&world, "d/f"), version(&world, "d/g"));
    let early = FileVersion { read_at_ns: f.ctime_ns + 1, ..g };
    world.backend.remember(&[(&path("d/f"), Mode(0o644), lie, f), (&path("d/g"), Mode(0o644), lie, early)]);
    assert_eq!(captured_id(&world, "d/f"), truth);
}

#[test]
fn a_file_that_was_written_since_is_read() {
    let (world, _, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    world.put("d/f", "new");
    assert_eq!(captured_id(&world, "d/f"), world.backend.hash_blob(3, &mut &b"new"[..]).unwrap());
}

#[test]
fn nothing_counts_after_a_collection_without_the_object_or_by_hash() {
    let (world, truth, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    world.options.epoch.bump().unwrap();
    assert_eq!(captured_id(&world, "d/f"), truth, "another epoch");

    let (world, truth, _) = rewritten();
    remember(&world, "d/f", ObjectId::from_bytes([7; 20]), version(&world, "d/f"));
    assert_eq!(captured_id(&world, "d/f"), truth, "an object that is not there");

    let (mut world, truth, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    world.ask.policy.verify_by_hash = true;
    assert_eq!(captured_id(&world, "d/f"), truth, "everything is read");
}

/// Cut or flipped at any byte it says the same or nothing.
#[test]
fn a_damaged_hint_invents_nothing() {
    let (mut world, truth, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    world.ask.write = false;
    let hint = world.dir.path().join(HINT);
    let whole = std::fs::read(&hint).unwrap();
    for n in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[n] ^= 0x11;
        for bytes in [&whole[..n], &flipped] {
            std::fs::write(&hint, bytes).unwrap();
            assert_eq!(captured_id(&world, "d/f"), truth, "byte {n}");
        }
    }
}

/// It names paths: what is taken out of the store must not stay there.
#[test]
fn a_collection_removes_it() {
    let (world, _, lie) = rewritten();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    let nothing = checkpoint_core::LiveObjects::default();
    world.backend.gc(&nothing, false, &checkpoint_core::NoProgress).unwrap();
    assert!(!world.dir.path().join(HINT).exists());
}

/// Whatever is in its place, a capture goes on.
#[test]
fn a_directory_in_its_place_is_as_none() {
    let (world, truth, lie) = rewritten();
    std::fs::create_dir(world.dir.path().join(HINT)).unwrap();
    remember(&world, "d/f", lie, version(&world, "d/f"));
    assert_eq!(captured_id(&world, "d/f"), truth);
}
