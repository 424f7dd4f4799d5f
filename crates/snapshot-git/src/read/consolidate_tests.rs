//! What joining packs must hold to: few packs, few bytes, nothing lost, nobody disturbed.
#![expect(clippy::disallowed_methods, reason = "tests damage files and ask plain git")]

use std::{fs, io::Read, ops::ControlFlow, os::unix::fs::MetadataExt};

use checkpoint_core::{LiveObjects, NoProgress, Snapshot, VerifyLevel};
use proptest::prelude::*;

use super::*;
use crate::{
    read::{
        gc,
        tests::{Model, check_reads, one_file, save},
        usage, verify,
    },
    store::tests::{blob, files, git_is_content, noise, put, read_blob, store},
};

/// What the design asks for (design § 4).
const PROMISED: usize = 50;

/// Plays captures that leave packs of these lengths and are consolidated one by one. Returns bytes copied.
fn play(captures: impl IntoIterator<Item = u64>) -> u64 {
    let mut packs: Vec<u64> = Vec::new();
    let mut copied = 0;
    for length in captures {
        packs.push(length);
        packs.sort_unstable();
        loop {
            let due = due(&packs);
            if due.is_empty() {
                break;
            }
            assert!(due.start == 0 && due.len() >= 2, "each step makes them fewer");
            let joined: u64 = packs.drain(due).sum();
            copied += joined;
            packs.push(joined);
            packs.sort_unstable();
        }
        assert!(packs.len() < PROMISED, "{} packs", packs.len());
    }
    copied
}

/// Ten thousand small captures: what is copied is a small multiple of what was captured, and each step little.
#[test]
fn ten_thousand_captures_stay_few_packs_by_the_policy() {
    for length in [300, 2_500, 40_000] {
        let copied = play(std::iter::repeat_n(length, 10_000));
        assert!(copied < 14 * 10_000 * length, "{} times", copied / (10_000 * length));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]
    /// Whatever captures add, from nothing much to packs as big as they get.
    #[test]
    fn packs_stay_few_whatever_is_captured(
        captures in prop::collection::vec((0u32..21, 0u64..1000).prop_map(|(bits, more)| (200 + more) << bits), 0..400),
    ) {
        play(captures);
    }
}

fn consolidated(store: &Store) -> u64 {
    assert!(is_scattered(store).unwrap());
    let went = consolidate(store, &NoProgress).unwrap();
    assert!(went > 0 && !is_scattered(store).unwrap());
    went
}

fn captures(store: &Store, n: u64) -> Vec<(Snapshot, Model)> {
    (0..n)
        .map(|k| {
            let model = one_file("src/deep/er/still/file.rs", &noise(k, 120));
            (save(store, &model), model)
        })
        .collect()
}

/// One file at depth four changes each time; the limits are those of the design, in blocks as the disk counts them.
#[test]
fn six_hundred_captures_stay_few_packs_and_small_and_git_reads_them() {
    let (_top, store) = store();
    let empty = usage(&store).unwrap().own_bytes;
    let mut points = Vec::new();
    for k in 0..600 {
        let model = one_file("src/deep/er/still/file.rs", &noise(k, 120));
        points.push((save(&store, &model), model));
        if is_scattered(&store).unwrap() {
            consolidated(&store);
        }
        assert!(store.pack_count().unwrap() <= MOST + 1);
    }
    let each = (usage(&store).unwrap().own_bytes - empty) / 600;
    assert!(each <= 4096, "{each} bytes a capture");
    for store in [&store, &Store::open(store.dir()).unwrap()] {
        for (snapshot, model) in points.iter().step_by(37) {
            check_reads(store, model, snapshot);
        }
        for (snapshot, _) in &points {
            verify(store, snapshot, VerifyLevel::Rehash).unwrap();
        }
    }
    git_is_content(&store);
    assert_eq!(files(&store, "pack").len(), files(&store, "idx").len());
    assert!(files(&store, "tmp").is_empty());
    // What is copied costs two syncs, not two an object.
    let syncs = store.syncs();
    captures(&store, 1);
    while !is_scattered(&store).unwrap() {
        put(&store, &[&noise(store.syncs() + 10_000, 40)]);
    }
    let before = store.syncs();
    consolidated(&store);
    assert!(before > syncs);
    assert_eq!(store.syncs() - before, 2);
}

/// Every step fails in turn: each point is whole afterwards, for this handle and for a new one, and the next
/// consolidation finishes.
#[test]
fn a_stop_at_every_step_loses_nothing() {
    let few = MOST as u64 + 1;
    let (_top, whole) = store();
    captures(&whole, few);
    whole.ops().fail_from(0);
    consolidated(&whole);
    let steps = whole.ops().steps();
    assert!(steps > 2 * few, "{steps}");
    // Unlinking repeats itself: its beginning and its end are enough of it.
    for n in (1..=12).chain(steps - 2..=steps) {
        let (_top, store) = store();
        let points = captures(&store, few);
        store.ops().fail_from(n);
        assert!(consolidate(&store, &NoProgress).is_err(), "step {n} of {steps}");
        store.ops().fail_from(0);
        let after = Store::open(store.dir()).unwrap();
        for store in [&store, &after] {
            for (snapshot, model) in &points {
                check_reads(store, model, snapshot);
            }
        }
        let again = consolidate(&after, &NoProgress).unwrap();
        assert!(after.pack_count().unwrap() <= MOST, "{again} went after step {n}");
        for (snapshot, _) in &points {
            verify(&after, snapshot, VerifyLevel::Rehash).unwrap();
        }
        git_is_content(&after);
        let roots = LiveObjects { snapshots: points.iter().map(|(s, _)| *s).collect(), blobs: vec![] };
        gc(&after, &roots, false, &NoProgress, &|| Ok(())).unwrap();
        assert!(files(&after, "tmp").is_empty());
        assert_eq!(files(&after, "pack").len(), files(&after, "idx").len());
    }
}

/// A resident process has the old packs in its list, some of them open, and knows of no other.
#[test]
fn a_handle_that_knows_only_the_old_packs_goes_on() {
    let (_top, store) = store();
    let points = captures(&store, 40);
    put(&store, &[&noise(7, 3 << 20)]);
    let resident = Store::open(store.dir()).unwrap();
    assert_eq!(resident.pack_count().unwrap(), 41);
    let (size, mut half_read) = resident.stream(&blob(&noise(7, 3 << 20))).unwrap();
    check_reads(&resident, &points[3].1, &points[3].0);
    consolidated(&store);
    // What it was reading it reads on, and what it knew to be there is there.
    let mut rest = Vec::new();
    half_read.read_to_end(&mut rest).unwrap();
    assert!(rest.len() as u64 == size && rest == noise(7, 3 << 20));
    for (k, (snapshot, model)) in points.iter().enumerate() {
        assert!(resident.contains_on_disk(&blob(&noise(k as u64, 120))));
        check_reads(&resident, model, snapshot);
    }
    // A capture looks again and writes nothing twice, and the other sees what it adds.
    resident.refresh().unwrap();
    assert_eq!(save(&resident, &points[5].1), points[5].0);
    assert_eq!(resident.pack_count().unwrap(), store.pack_count().unwrap());
    put(&resident, &[b"new"]);
    assert_eq!(read_blob(&store, &blob(b"new")).unwrap(), b"new");
}

/// Readers take no lock: while one handle consolidates, others always find what is there.
#[test]
fn readers_beside_it_always_find_what_is_there() {
    let (_top, store) = store();
    let bodies: Vec<Vec<u8>> = (0..200).map(|k| noise(k, 60)).collect();
    let known = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let reader = Store::open(store.dir()).unwrap();
                loop {
                    let known = known.load(std::sync::atomic::Ordering::SeqCst);
                    for body in &bodies[..known] {
                        assert_eq!(read_blob(&reader, &blob(body)).unwrap(), *body);
                    }
                    if known == bodies.len() {
                        break;
                    }
                }
            });
        }
        for (k, body) in bodies.iter().enumerate() {
            put(&store, &[body]);
            known.store(k + 1, std::sync::atomic::Ordering::SeqCst);
            if is_scattered(&store).unwrap() {
                consolidated(&store);
            }
        }
    });
}

/// What is not whole is left where it is, byte for byte: it is a repair's business. Nor is a tree needed.
#[test]
fn damaged_and_linked_packs_and_missing_trees_are_left_alone() {
    let (top, store) = store();
    let points = captures(&store, 34);
    let names = files(&store, "pack");
    // One stored byte, an index that leaves an object out, and a bridge.
    let mut bytes = fs::read(&names[0]).unwrap();
    let at = bytes.len() - 30;
    bytes[at] ^= 1;
    fs::write(&names[0], &bytes).unwrap();
    fs::hard_link(&names[1], top.path().join("elsewhere.pack")).unwrap();
    let only = |name: &str, bodies: &[&[u8]]| {
        let other = Store::open(&top.path().join(name)).unwrap();
        put(&other, bodies);
        files(&other, "pack").remove(0)
    };
    let (two, one) = (only("two", &[b"one", b"two"]), only("one", &[b"one"]));
    let liar = store.pack_dir().join(two.file_name().unwrap());
    // A dead tree whose entries are nowhere.
    let (id, body) = crate::store::tests::write_tree(vec![gix::objs::tree::Entry {
        mode: gix::objs::tree::EntryKind::Blob.into(),
        filename: "gone".into(),
        oid: blob(b"nowhere"),
    }]);
    let batch = store.batch(true);
    batch.worker().add(gix::objs::Kind::Tree, id, &body).unwrap();
    batch.finish().unwrap();

    let readable = |store: &Store| points.iter().filter(|(s, _)| verify(store, s, VerifyLevel::Rehash).is_ok()).count();
    let before = readable(&store);
    fs::copy(&two, &liar).unwrap();
    fs::copy(one.with_extension("idx"), liar.with_extension("idx")).unwrap();
    let store = Store::open(store.dir()).unwrap();
    consolidate(&store, &NoProgress).unwrap();
    assert_eq!(fs::read(&names[0]).unwrap(), bytes);
    assert_eq!(names[1].metadata().unwrap().nlink(), 2);
    assert!(liar.exists());
    assert_eq!(store.read(&id, gix::objs::Kind::Tree).unwrap(), body);
    assert_eq!(readable(&Store::open(store.dir()).unwrap()), before);
    // And it does not try for ever.
    let left = files(&store, "pack");
    consolidate(&store, &NoProgress).unwrap();
    assert_eq!(files(&store, "pack"), left);
}

#[test]
fn it_can_be_interrupted() {
    struct Stop;
    impl Progress for Stop {
        fn tick(&self, _: &'static str, _: u64, _: Option<u64>) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    let (_top, store) = store();
    captures(&store, 40);
    assert!(matches!(consolidate(&store, &Stop), Err(SnapshotError::Interrupted)));
    assert_eq!(store.pack_count().unwrap(), 40);
}
