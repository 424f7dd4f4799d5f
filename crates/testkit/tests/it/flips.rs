//! Every byte of a small store is changed by a bit, one at a time (issue 6, part 8); every bit with `cargo xtask
//! crash-matrix`.
//!
//! Either it is noticed, or everything still reads as it was. What is noticed costs the points that need the byte and
//! no others, and a restore from one of those refuses before it touches anything.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use checkpoint_core::{EngineError, IndexStore, PathState, Point, PointQuery, RelPath, SnapshotError, VerifyLevel};

use crate::world::{Kind, World, exactly};

/// What a point holds, byte for byte.
type Content = Vec<(RelPath, PathState, Vec<u8>)>;

fn content(world: &World, point: &Point) -> Result<Content, SnapshotError> {
    let snapshots = world.engine.snapshots();
    let mut paths = Vec::new();
    snapshots.list(&point.snapshot.unwrap(), None, &mut |path, state| {
        paths.push((path, state));
        ControlFlow::Continue(())
    })?;
    let mut all = Vec::new();
    for (path, state) in paths {
        let mut bytes = Vec::new();
        if let Some(blob) = state.blob() {
            let read = snapshots.open_blob(&blob)?.read_to_end(&mut bytes);
            read.map_err(|source| SnapshotError::Other { what: "reading", source: source.into() })?;
        }
        all.push((path, state, bytes));
    }
    Ok(all)
}

/// Two points that share little; the index is one file, so that each of its bits can be flipped.
fn small() -> World {
    let world = World::new(Kind::Json, false, checkpoint_core::CapturePolicy::default());
    world.write("a", "first content");
    world.save();
    world.write("a", "second content");
    world.write("d/b", "more");
    world.chmod("d/b", 0o600);
    world.save();
    world
}

fn points(world: &World) -> Vec<Point> {
    world.engine.index().points(&PointQuery::default()).unwrap()
}

fn packs(world: &World, ending: &str) -> Vec<PathBuf> {
    let dir = world.base().join("store/git/objects/pack");
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|end| end == ending)).collect();
    found.sort();
    found
}

/// One bit of each byte, another one each time; all of them in the long form.
fn bits(bytes: usize) -> impl Iterator<Item = usize> {
    let full = std::env::var("RWD_CRASH_MATRIX").is_ok_and(|value| value == "full");
    (0..bytes * 8).filter(move |bit| full || bit % 8 == (bit / 8) * 3 % 8)
}

#[test]
fn every_flipped_bit_of_a_pack_is_found_and_costs_only_what_needs_it() {
    let mut world = small();
    let before = points(&world);
    let truth: Vec<Content> = before.iter().map(|point| content(&world, point).unwrap()).collect();
    let work = world.scan();
    let (mut flips, mut found, mut framing) = (0, 0, 0);
    for file in packs(&world, "pack") {
        let good = fs::read(&file).unwrap();
        let idx = file.with_extension("idx");
        let good_idx = fs::read(&idx).unwrap();
        for bit in bits(good.len()) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &bad).unwrap();
            world.reopen();
            flips += 1;
            let here = format!("bit {bit} of {}", file.display());
            let all: Vec<_> = before.iter().map(|point| point.snapshot.unwrap()).collect();
            let verdicts = world.engine.snapshots().verify_all(&all, VerifyLevel::Rehash);
            let whole = world.engine.snapshots().verify_store().unwrap();
            assert_eq!(whole.len(), 1, "{here}: not found");
            assert!(whole[0].contains(file.file_stem().unwrap().to_str().unwrap()), "{here}: {whole:?}");
            if verdicts.iter().all(Result::is_ok) {
                framing += 1;
                // The pack's own checksum is over no object: nothing else may cost no point.
                assert!(bit / 8 >= good.len() - 20 || bit / 8 < 12, "{here}");
            } else {
                found += 1;
                // One object is hit, and only what needs it fails.
                let hit: BTreeSet<_> = verdicts
                    .iter()
                    .filter_map(|verdict| match verdict {
                        Err(SnapshotError::Damaged { id, .. } | SnapshotError::Missing { id }) => Some(*id),
                        Err(error) => panic!("{here}: {error}"),
                        Ok(()) => None,
                    })
                    .collect();
                assert_eq!(hit.len(), 1, "{here}: {hit:?}");
            }
            for ((point, verdict), truth) in before.iter().zip(&verdicts).zip(&truth) {
                if verdict.is_ok() {
                    assert_eq!(&content(&world, point).unwrap(), truth, "{here}");
                } else if bit % 13 == 0 {
                    let refused = world.engine.restore(&exactly(point.id));
                    assert!(
                        matches!(refused, Err(EngineError::NotRestorable { .. } | EngineError::Snapshot(_))) || {
                            // The present state may need none of it.
                            matches!(&refused, Ok(outcome) if outcome.restored.is_empty())
                        },
                        "{here}: {refused:?}"
                    );
                    assert_eq!(world.scan(), work, "{here}: a refused restore wrote something");
                }
            }
            fs::write(&file, &good).unwrap();
            fs::write(&idx, &good_idx).unwrap();
        }
    }
    assert!(found > 0);
    println!("flips: {flips} bits of packs, all found: {found} in objects, {framing} in headers and trailers");
}

/// An index of a pack can be derived: a flip in it is found, and changes nothing that is read.
#[test]
fn every_flipped_bit_of_a_pack_index_is_found_and_changes_nothing() {
    let mut world = small();
    let before = points(&world);
    let truth: Vec<Content> = before.iter().map(|point| content(&world, point).unwrap()).collect();
    let all: Vec<_> = before.iter().map(|point| point.snapshot.unwrap()).collect();
    let mut flips = 0;
    for file in packs(&world, "idx") {
        let good = fs::read(&file).unwrap();
        // The fan-out table is long and says little: a part of it stands for the rest.
        for bit in bits(good.len()).filter(|bit| bit / 8 >= 8 + 1024 || bit % 61 == 0) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, &bad).unwrap();
            world.reopen();
            flips += 1;
            let here = format!("bit {bit} of {}", file.display());
            // Asked first: a read that fails makes the index anew.
            let whole = world.engine.snapshots().verify_store().unwrap();
            // One that has no shape any more was made anew when the store was read.
            assert!(whole.len() == 1 || fs::read(&file).unwrap() == good, "{here}: not found");
            let verdicts = world.engine.snapshots().verify_all(&all, VerifyLevel::Rehash);
            for ((point, verdict), truth) in before.iter().zip(verdicts).zip(&truth) {
                if verdict.is_ok() {
                    assert_eq!(&content(&world, point).unwrap(), truth, "{here}");
                }
            }
            fs::write(&file, &good).unwrap();
        }
    }
    println!("flips: {flips} bits of pack indexes, all found, no wrong byte read");
}

/// A line of the index has a checksum, and the mark beside it says how far the index had come.
#[test]
fn tf12_tf30_every_flipped_bit_of_the_json_index_is_found() {
    let world = small();
    let file = world.base().join("store/index.jsonl");
    let good = fs::read(&file).unwrap();
    let before = points(&world);
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &bad).unwrap();
        let opened = index_store::JsonIndex::open(&file, index_store::JsonOptions::default());
        let read = opened.and_then(|index| index.points(&PointQuery::default()));
        if let Ok(read) = read {
            // A version that is newer by a minor number is read all the same, and says the same.
            assert_eq!(read, before, "bit {bit}: {:?}", String::from_utf8_lossy(&bad[bit / 8..][..1]));
        }
    }
    fs::write(&file, &good).unwrap();
    println!("flips: {} bits of the index, none believed", good.len() * 8);
}

/// What else lies in a data directory, flipped: nothing that a capture or a restore answers changes, or it is an error.
#[test]
fn every_flipped_bit_of_caches_and_markers_changes_no_answer() {
    let mut world = World::new(Kind::Sqlite, false, checkpoint_core::CapturePolicy::default());
    world.write("a", "first content");
    world.write("d/b", "more");
    // Older than the racy window, so that the cache is believed.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let first = world.save().point.snapshot;
    world.save();
    let store = world.base().join("store");
    fs::write(store.join("epoch"), "3\n").unwrap();
    world.reopen();
    world.save();
    let (mut flips, mut refused) = (0, 0);
    for name in ["stat.cache", "epoch", "git/HEAD", "git/config", "git/format", "git/boot"] {
        let file = store.join(name);
        let good = fs::read(&file).unwrap();
        let cache = fs::read(store.join("stat.cache")).unwrap();
        for bit in bits(good.len()) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(store.join("stat.cache"), &cache).unwrap();
            fs::write(&file, &bad).unwrap();
            flips += 1;
            if !world.opens() {
                refused += 1;
                assert_eq!(name, "git/format", "bit {bit}");
                continue;
            }
            world.reopen();
            let saved = world.save();
            assert_eq!(saved.point.snapshot, first, "bit {bit} of {name}");
        }
        fs::write(&file, &good).unwrap();
    }
    assert!(refused > 0);
    println!("flips: {flips} bits of cache, epoch and markers, {refused} refused, no answer changed");
}
