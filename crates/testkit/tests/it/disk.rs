//! The crash matrix: every operation that changes the store, the epoch or the index goes wrong, in each way, once.
//!
//! Then a new process: what is open is settled, alternately forward and back. Every path is as before or as after, the
//! index says only what is there, every point it lists restores, nothing is left behind, and the same command again
//! does what it should have done. `cargo xtask crash-matrix` runs all of it and prints the totals; without
//! `RWD_CRASH_MATRIX=full` every third operation goes wrong.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use checkpoint_core::{
    DropWhich, EngineError, PointId, PointQuery, PurgeRequest, Recovery, RelPath, SaveRequest, SessionKey, VerifyLevel,
};

use crate::scan::{differing, text};
use crate::world::{Kind, World, Wrong, exactly, undo};

const WAYS: [Wrong; 4] = [Wrong::Error, Wrong::NoSpace, Wrong::Stop, Wrong::Torn];

/// A workspace with points to lose: two turns and content that only dropped points held.
fn prepared(kind: Kind) -> World {
    let world = World::new(kind, false, checkpoint_core::CapturePolicy::default());
    world.write("a", "one");
    world.write("deep/er/b", "b");
    world.write("secret/key", "hush, hush");
    world.turn_start("h:s", 1);
    world.write("a", "only in a point that goes");
    let gone = world.save().point.id;
    world.write("a", "two");
    world.write("copy", "hush, hush");
    world.turn_end("h:s", 1);
    world.turn_start("h:s", 2);
    world.write("a", "three");
    world.remove("deep");
    world.write("new", "n");
    world.turn_end("h:s", 2);
    world.engine.drop_points(&DropWhich::Points(vec![gone])).unwrap();
    world
}

/// What is done, and whether it may change the workspace.
struct Deed {
    name: &'static str,
    /// What makes it possible.
    before: fn(&World),
    run: fn(&World) -> Result<(), EngineError>,
    /// Points that may be gone afterwards.
    drops: bool,
}

fn purge_request() -> PurgeRequest {
    let picks = |path: &RelPath| path.to_lossy().starts_with("secret");
    PurgeRequest { what: "secret".into(), picks: Arc::new(picks), session: SessionKey::local() }
}

/// A purge, or the end of one.
fn purge(world: &World) -> Result<(), EngineError> {
    match world.engine.purge(&purge_request(), None) {
        Ok(purged) => purged.unfinished.map_or(Ok(()), Err),
        Err(EngineError::Nothing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn drop_turn(world: &World) -> Result<(), EngineError> {
    match world.engine.drop_points(&DropWhich::Session(SessionKey::parse("h:s").unwrap())) {
        Ok(_) | Err(EngineError::Nothing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn name(world: &World) -> Result<(), EngineError> {
    let newest = PointQuery { restorable: true, newest_first: true, limit: Some(1), ..PointQuery::default() };
    let point = world.engine.index().points(&newest)?.remove(0);
    world.engine.name(&point, "label", None)?;
    world.engine.unname("label")
}

const DEEDS: [Deed; 7] = [
    Deed {
        name: "save",
        before: |world| world.write("fresh", "never seen before"),
        run: |world| world.engine.save(&SaveRequest::manual()).map(drop),
        drops: false,
    },
    Deed {
        name: "restore",
        before: |_| {},
        run: |world| world.engine.restore(&exactly("h:s/t1")).map(drop),
        drops: false,
    },
    Deed {
        name: "undo",
        before: |world| drop(world.engine.restore(&exactly("h:s/t1")).unwrap()),
        run: |world| match world.engine.undo(&undo()) {
            Err(EngineError::Nothing { .. }) => Ok(()),
            done => done.map(drop),
        },
        drops: false,
    },
    Deed { name: "gc", before: |_| {}, run: |world| world.engine.gc(false).map(drop), drops: false },
    Deed { name: "purge", before: |_| {}, run: purge, drops: false },
    Deed { name: "drop", before: |_| {}, run: drop_turn, drops: true },
    Deed { name: "name", before: |_| {}, run: name, drops: false },
];

fn ids(world: &World) -> BTreeSet<PointId> {
    world.engine.index().points(&PointQuery::default()).unwrap().into_iter().map(|point| point.id).collect()
}

/// Files of the store that nobody reads.
fn litter(world: &World) -> Vec<String> {
    let dir = world.base().join("store/git/objects/pack");
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("tmp")).collect()
}

/// One operation of a deed goes wrong; then everything must be as promised.
fn broken(deed: &Deed, kind: Kind, at: u64, wrong: Wrong, done: &crate::scan::Scan) {
    let here = format!("{} on {kind:?}, operation {at}, {wrong:?}", deed.name);
    let mut world = prepared(kind);
    (deed.before)(&world);
    let before = world.scan();
    let points = ids(&world);
    world.disk.arm(at, wrong);
    let ended = catch_unwind(AssertUnwindSafe(|| (deed.run)(&world)));
    world.disk.disarm();
    drop(ended.unwrap_or_else(|_| panic!("{here}: a panic")));
    world.reopen();
    if world.engine.unfinished().unwrap().is_some() {
        let way = if at.is_multiple_of(2) { Recovery::Finish } else { Recovery::Back };
        world.engine.recover(way).unwrap_or_else(|error| panic!("{here}: {way:?}: {error}"));
        assert!(world.engine.unfinished().unwrap().is_none(), "{here}");
    }
    let now = world.scan();
    let half = (text(&differing(&now, &before)), text(&differing(&now, done)));
    assert!(half.0.is_empty() || half.1.is_empty(), "{here}: half done: {half:?}");
    let left = ids(&world);
    assert!(deed.drops || left.is_superset(&points), "{here}: points are gone");
    let verified = world.engine.verify(VerifyLevel::Rehash).unwrap();
    assert!(verified.damaged.is_empty(), "{here}: {:?}", verified.damaged);
    // The same again, undisturbed.
    let again = (deed.run)(&world);
    assert!(again.is_ok(), "{here}: again: {again:?}");
    world.engine.gc(false).unwrap_or_else(|error| panic!("{here}: gc: {error}"));
    assert_eq!(litter(&world), Vec::<String>::new(), "{here}");
    assert!(world.engine.verify(VerifyLevel::Rehash).unwrap().damaged.is_empty(), "{here}: after gc");
    if deed.name == "purge" {
        let plan = world.engine.purge_plan(&purge_request()).unwrap();
        assert!(plan.is_empty(), "{here}: {plan:?}");
        let hush = testkit::blob_id(b"hush, hush");
        assert!(!world.engine.snapshots().has_blob(&hush).unwrap(), "{here}: still stored");
    }
}

/// Issue 6, part 1: error, full disk, stop and torn write at every operation.
fn matrix(kind: Kind) {
    let full = std::env::var("RWD_CRASH_MATRIX").is_ok_and(|value| value == "full");
    let mut total = 0;
    for deed in &DEEDS {
        let (steps, done) = {
            let world = prepared(kind);
            (deed.before)(&world);
            world.disk.disarm();
            (deed.run)(&world).unwrap();
            (world.disk.steps(), world.scan())
        };
        assert!(steps >= 2, "{}: {steps}", deed.name);
        for (n, wrong) in WAYS.into_iter().enumerate() {
            let stride = if full { 1 } else { 3 };
            for at in (1 + n as u64 % stride..=steps).step_by(usize::try_from(stride).unwrap()) {
                broken(deed, kind, at, wrong, &done);
                total += 1;
            }
        }
        println!("crash-matrix {kind:?} {}: {steps} operations", deed.name);
    }
    println!("crash-matrix {kind:?}: {total} faults, nothing lost");
}

#[test]
fn tf14_tf29_every_operation_goes_wrong_json() {
    matrix(Kind::Json);
}

#[test]
fn tf14_tf29_every_operation_goes_wrong_sqlite() {
    matrix(Kind::Sqlite);
}
