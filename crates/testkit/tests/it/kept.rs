//! What must be kept for others: content that an operation stored, changes that were half made, turns that end while a
//! capture runs, evidence while a neighbour is at work, the guard itself.

use std::fs;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use checkpoint_core::{
    Batch, BlobStore, Change, EngineError, Facts, FileVersion, FsError, IndexOp, IndexStore, LockError, ObjectId,
    OpState, Operation, Overlap, PathState, PointKind, Progress, Recovery, RelPath, SaveRequest, Session, SessionKey,
    Settled, SnapshotError, Temporaries, WorkspaceFs,
};

use crate::crash::{crash_at, silence_expected_panics};
use crate::scan::{differing, text};
use crate::world::{LocalLock, World, exactly, path, to};

fn put(world: &World, bytes: &[u8]) -> ObjectId {
    world.engine.snapshots().put_blob(bytes.len() as u64, &mut &*bytes).unwrap()
}

/// What somebody wrote to a path under an operation's hands and could not stay there has no other place than the
/// operation: a collection leaves it.
#[test]
fn content_stored_for_others_outlives_a_collection() {
    let world = World::plain();
    world.write("a", "one");
    let first = world.save();
    world.write("a", "two");
    world.save();
    let done = world.engine.restore(&to(first.point.id)).unwrap();
    let (theirs, nobodys) = (put(&world, b"theirs"), put(&world, b"nobody's"));
    let operation = world.engine.index().operation(&done.operation.unwrap()).unwrap().unwrap();
    let kept = Operation { stored: vec![(path("a"), theirs)], ..operation };
    let ops = vec![IndexOp::UpdateOperation { operation: Box::new(kept) }];
    world.engine.index().apply(&Batch { follows: None, ops }).unwrap();
    world.engine.gc(false).unwrap();
    let snapshots = world.engine.snapshots();
    assert!(snapshots.has_blob(&theirs).unwrap());
    snapshots.check_blob(&theirs).unwrap();
    assert!(!snapshots.has_blob(&nobodys).unwrap(), "the collection removed nothing at all");
}

type Apply =
    dyn Fn(&dyn WorkspaceFs, &Change, &Temporaries, usize, &dyn BlobStore) -> Result<(), FsError> + Send + Sync;

/// Files whose `apply` is another.
struct Meddled {
    inner: Arc<dyn WorkspaceFs>,
    apply: Box<Apply>,
}

impl Meddled {
    fn around(
        inner: Arc<dyn WorkspaceFs>,
        apply: impl Fn(&dyn WorkspaceFs, &Change, &Temporaries, usize, &dyn BlobStore) -> Result<(), FsError>
        + Send
        + Sync
        + 'static,
    ) -> Arc<dyn WorkspaceFs> {
        Arc::new(Self { inner, apply: Box::new(apply) })
    }
}

impl std::fmt::Debug for Meddled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meddled")
    }
}

#[deny(clippy::missing_trait_methods)]
impl WorkspaceFs for Meddled {
    fn facts(&self, path: &RelPath) -> Result<Option<Facts>, FsError> {
        self.inner.facts(path)
    }
    fn root_facts(&self) -> Result<Facts, FsError> {
        self.inner.root_facts()
    }
    fn observe(&self, path: &RelPath, blobs: &dyn BlobStore) -> Result<PathState, FsError> {
        self.inner.observe(path, blobs)
    }
    fn read_back(&self, change: &Change, blobs: &dyn BlobStore) -> Result<(PathState, Option<FileVersion>), FsError> {
        self.inner.read_back(change, blobs)
    }
    fn check(&self, change: &Change) -> Result<(), FsError> {
        self.inner.check(change)
    }
    fn prepare(&self, changes: &[(usize, &Change)], temporaries: &Temporaries, blobs: &dyn BlobStore) {
        self.inner.prepare(changes, temporaries, blobs);
    }
    fn apply(
        &self,
        change: &Change,
        temporaries: &Temporaries,
        n: usize,
        blobs: &dyn BlobStore,
    ) -> Result<(), FsError> {
        (self.apply)(&*self.inner, change, temporaries, n, blobs)
    }
    fn settle(
        &self,
        change: &Change,
        temporaries: &Temporaries,
        n: usize,
        blobs: &dyn BlobStore,
    ) -> Result<Settled, FsError> {
        self.inner.settle(change, temporaries, n, blobs)
    }
    fn sync(&self, paths: &[RelPath]) -> Result<(), FsError> {
        self.inner.sync(paths)
    }
}

/// Eight paths are written at a time: when two of them meet somebody else's bytes at once, both contents are kept, not
/// only that of the error which is told.
#[test]
fn content_of_two_others_at_once_is_kept_both_times() {
    let mut world = World::plain();
    for name in ["a", "b"] {
        world.write(name, "one");
    }
    let first = world.save();
    for name in ["a", "b"] {
        world.write(name, "two");
    }
    world.save();
    let blobs = [put(&world, b"a's"), put(&world, b"b's")];
    let both = Barrier::new(2);
    world.composed(
        |inner| {
            Meddled::around(inner, move |inner, change, temporaries, n, store| {
                // The way back goes through.
                if change.after.blob() == Some(testkit::blob_id(b"two")) {
                    return inner.apply(change, temporaries, n, store);
                }
                both.wait();
                let stored = blobs[usize::from(change.path == path("b"))];
                let found = PathState::Absent;
                Err(FsError::Changed { path: change.path.clone(), found, stored: Some(stored) })
            })
        },
        |builder| builder,
    );
    match world.engine.restore(&to(first.point.id)) {
        Err(EngineError::Changed { stored, .. }) => assert_eq!(stored.len(), 2, "{stored:?}"),
        other => panic!("{other:?}"),
    }
    let operation = world.engine.index().operations(&[], Some(1)).unwrap().remove(0);
    assert_eq!(operation.state, OpState::RolledBack);
    let mut kept: Vec<ObjectId> = operation.stored.into_iter().map(|(_, blob)| blob).collect();
    kept.sort();
    let mut all = blobs.to_vec();
    all.sort();
    assert_eq!(kept, all);
}

/// Drafts are made for many changes before the first is applied: where an early one fails, those of the others go too,
/// and paths whose change was never begun are not asked about.
#[test]
fn drafts_made_ahead_go_when_their_changes_are_never_begun() {
    let mut world = World::plain();
    let names: Vec<String> = (0..40).map(|n| format!("f{n:02}")).collect();
    for name in &names {
        world.write(name, "one");
    }
    let first = world.save();
    for name in &names {
        world.write(name, "two");
    }
    world.save();
    let before = world.scan();
    let drafts = Arc::new(AtomicU64::new(0));
    let (root, seen) = (world.root(), Arc::clone(&drafts));
    world.composed(
        |inner| {
            Meddled::around(inner, move |inner, change, temporaries, n, store| {
                if change.after.blob() == Some(testkit::blob_id(b"two")) {
                    return inner.apply(change, temporaries, n, store);
                }
                let made = fs::read_dir(&root)
                    .unwrap()
                    .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".rwd-"));
                seen.fetch_max(made.count() as u64, Ordering::Relaxed);
                Err(FsError::Changed { path: change.path.clone(), found: PathState::Absent, stored: None })
            })
        },
        |builder| builder,
    );
    match world.engine.restore(&to(first.point.id)) {
        Err(EngineError::Changed { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(drafts.load(Ordering::Relaxed), 40, "they were to be made together");
    assert_eq!(text(&differing(&world.scan(), &before)), Vec::<String>::new());
}

/// A change that failed in the middle, at whatever step, is taken back whole: the path as it was, no temporary, no intent.
#[test]
fn a_change_that_fails_half_made_is_taken_back() {
    for gone in [false, true] {
        let whole = half_made(gone, u64::MAX).unwrap();
        assert!(whole >= 3, "{whole} steps");
        // One more than there are: the change is whole, but its success was not told.
        for at in 1..=whole + 1 {
            assert_eq!(half_made(gone, at), None);
        }
    }
}

/// Restores one path, whose change fails before its step `at` or, past the last, after it. The number of its steps where
/// it did not fail. `gone`: the path is missing now and made again; else it is overwritten.
fn half_made(gone: bool, at: u64) -> Option<u64> {
    struct Stop;
    let mut world = World::plain();
    world.write("a", "one");
    world.write("stays", "x");
    let first = world.save();
    if gone {
        world.remove("a");
    } else {
        world.write("a", "two");
    }
    world.save();
    let before = world.scan();
    let steps = Arc::new(AtomicU64::new(0));
    let (trap, count, tried) = (Arc::clone(&world.trap), Arc::clone(&steps), AtomicBool::new(false));
    world.composed(
        |inner| {
            Meddled::around(inner, move |inner, change, temporaries, n, store| {
                // The way back goes through.
                if tried.swap(true, Ordering::SeqCst) {
                    return inner.apply(change, temporaries, n, store);
                }
                trap.set(at, || std::panic::resume_unwind(Box::new(Stop)));
                let ended = catch_unwind(AssertUnwindSafe(|| inner.apply(change, temporaries, n, store)));
                count.store(trap.steps(), Ordering::SeqCst);
                trap.disarm();
                if let (Ok(done), u64::MAX) = (ended, at) {
                    return done;
                }
                Err(FsError::Io { path: change.path.clone(), source: std::io::Error::other("no more") })
            })
        },
        |builder| builder,
    );
    match world.engine.restore(&to(first.point.id)) {
        Ok(_) => return Some(steps.load(Ordering::SeqCst)),
        Err(EngineError::Apply { .. }) => {}
        other => panic!("step {at}: {other:?}"),
    }
    assert_eq!(text(&differing(&world.scan(), &before)), Vec::<String>::new(), "step {at}");
    assert!(world.engine.unfinished().unwrap().is_none(), "step {at}");
    let operation = world.engine.index().operations(&[], Some(1)).unwrap().remove(0);
    assert_eq!(operation.state, OpState::RolledBack, "step {at}");
    None
}

struct Ticker<F>(F);

impl<F: Fn() + Send + Sync> Progress for Ticker<F> {
    fn tick(&self, _: &'static str, _: u64, _: Option<u64>) -> ControlFlow<()> {
        (self.0)();
        ControlFlow::Continue(())
    }
}

/// A capture writes sessions as it read them before its walk. Whoever changes a session meanwhile waits for it, so that
/// no capture takes back an interruption that was acknowledged.
#[test]
fn a_turn_is_not_changed_under_a_capture_that_read_it() {
    let mut world = World::plain();
    // More than a walk looks at between two ticks, whichever of its threads.
    for n in 0..700 {
        world.write(&format!("d/{n}"), "x");
    }
    world.turn_start("h:s", 1);
    let engine = world.engine.clone();
    let key = SessionKey::parse("h:s").unwrap();
    let tries = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&tries);
    let session = engine.index().sessions().unwrap().into_iter().find(|s| s.key == key).unwrap();
    let who = key.clone();
    world.composed(
        |files| files,
        |builder| {
            builder.progress(Arc::new(Ticker(move || {
                let parent = Some(SessionKey::parse("h:parent").unwrap());
                let registered = engine.register_session(Session { parent, ..session.clone() });
                list.lock().unwrap().push((engine.interrupt(&who).map(drop), registered));
            })))
        },
    );
    world.write("d/0", "y");
    world.engine.save(&SaveRequest::of(SessionKey::local(), PointKind::Manual)).unwrap();
    let tries = std::mem::take(&mut *tries.lock().unwrap());
    assert!(!tries.is_empty(), "the walk never ticked");
    for (interrupted, registered) in tries {
        assert!(matches!(interrupted, Err(EngineError::Lock(LockError::Busy))), "{interrupted:?}");
        assert!(matches!(registered, Err(EngineError::Lock(LockError::Busy))), "{registered:?}");
    }
    world.engine.interrupt(&key).unwrap();
    let session = world.engine.index().sessions().unwrap().into_iter().find(|s| s.key == key).unwrap();
    assert!(session.turn.unwrap().interrupted);
}

/// A record made while a neighbour's operation is unfinished may have seen a half of it: what is missing there proves
/// nothing, so nothing is removed for it.
#[test]
fn no_evidence_comes_from_under_a_neighbours_intent() {
    silence_expected_panics();
    for at_work in [false, true] {
        let mut world = World::plain();
        let mut neighbour = crate::transaction::wrecked();
        let overlap = Overlap {
            lock: Arc::new(LocalLock::default()),
            index: Arc::clone(&neighbour.memory) as Arc<dyn IndexStore>,
            before: false,
        };
        world.composed(|files| files, |builder| builder.overlaps(vec![overlap]));
        world.write("a", "one");
        // Directories must have aged: a young one proves nothing either.
        std::thread::sleep(std::time::Duration::from_millis(60));
        if at_work {
            assert!(crash_at(&mut neighbour, 12));
        }
        let first = world.save();
        assert_eq!(first.point.under_intent, at_work);
        if at_work {
            assert!(matches!(world.engine.restore(&to(first.point.id)), Err(EngineError::Unfinished { .. })));
            neighbour.engine.recover(Recovery::Back).unwrap();
        }
        world.write("new", "made since");
        world.save();
        let done = world.engine.restore(&exactly(first.point.id));
        assert_eq!(world.at("new").exists(), at_work, "{done:?}");
    }
}

/// Design § 7: every byte that a restore destroys can be read from the guard first. The store listing an object is not
/// enough: its last good copy may be the one in the workspace.
#[test]
fn a_guard_that_cannot_be_read_back_stops_everything_before_the_first_write() {
    let mut world = World::plain();
    let mut seed = 1u32;
    let mut noise = || {
        let next = |_| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + u8::try_from(seed >> 24).unwrap() % 26)
        };
        (0..100_000).map(next).collect::<String>()
    };
    let (one, two) = (noise(), noise());
    world.write("a", &one);
    let first = world.save();
    std::thread::sleep(std::time::Duration::from_millis(30));
    world.write("a", &two);
    world.save();
    // In the middle of the newest pack there is nothing but the content of `a`.
    let packs = fs::read_dir(world.base().join("store/git/objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let packs = packs.filter(|path| path.extension().is_some_and(|e| e == "pack"));
    let pack = packs.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap()).unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    // A pack is never written in place.
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, bytes).unwrap();
    world.reopen();
    let blob = testkit::blob_id(two.as_bytes());
    assert!(world.engine.snapshots().has_blob(&blob).unwrap(), "still listed");
    assert!(matches!(world.engine.snapshots().check_blob(&blob), Err(SnapshotError::Damaged { .. })));
    let before = world.scan();
    match world.engine.restore(&to(first.point.id)) {
        Err(EngineError::Guard { source: SnapshotError::Damaged { .. } }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(world.scan(), before);
    assert!(world.engine.unfinished().unwrap().is_none());
}

/// Model F10: a capture that walked before another one was recorded looks again, so that a later place in the log never
/// shows an earlier state.
#[test]
fn f10_a_capture_that_was_overtaken_walks_again() {
    let mut world = World::plain();
    // More than a walk looks at between two ticks, whichever of its threads.
    for n in 0..700 {
        world.write(&format!("d/{n}"), "x");
    }
    world.save();
    let (engine, root) = (world.engine.clone(), world.root());
    let other = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&other);
    world.composed(
        |files| files,
        |builder| {
            builder.progress(Arc::new(Ticker(move || {
                let mut slot = slot.lock().unwrap();
                if slot.is_none() {
                    for n in [0, 350, 699] {
                        std::fs::write(root.join(format!("d/{n}")), "typed while others walk").unwrap();
                    }
                    let request = SaveRequest::of(SessionKey::parse("h:s").unwrap(), PointKind::TurnStart);
                    *slot =
                        Some(engine.save(&SaveRequest { turn: Some(checkpoint_core::Turn(1)), ..request }).unwrap());
                }
            })))
        },
    );
    world.write("d/1", "y");
    let overtaken = world.engine.save(&SaveRequest::of(SessionKey::local(), PointKind::Manual)).unwrap();
    let first = other.lock().unwrap().take().expect("the walk never ticked");
    assert!(overtaken.point.ord > first.point.ord);
    for n in [0, 350, 699] {
        let path = crate::world::path(&format!("d/{n}"));
        let state =
            |point: &checkpoint_core::Point| world.engine.snapshots().state(&point.snapshot.unwrap(), &path).unwrap();
        let typed = testkit::blob_id(b"typed while others walk");
        assert_eq!(state(&overtaken.point).blob(), Some(typed), "d/{n} in the later point");
        assert_eq!(state(&first.point), state(&overtaken.point));
    }
}
