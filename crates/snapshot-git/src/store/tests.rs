//! The store as a capture uses it, and as a crash, a full disk or plain git meets it.
#![expect(clippy::disallowed_methods, reason = "tests damage files and ask plain git")]

use std::{fs, io::Cursor, path::Path, process::Command};

use gix::objs::{Tree, WriteTo, tree};
use tempfile::TempDir;

use super::*;

pub(crate) fn store() -> (TempDir, Store) {
    let top = tempfile::tempdir().unwrap();
    let store = Store::open(&top.path().join("git")).unwrap();
    (top, store)
}

pub(crate) fn blob(body: &[u8]) -> ObjectId {
    object_id(Kind::Blob, body).unwrap()
}

/// Bytes that do not compress, the same for the same seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        out.extend_from_slice(&next());
    }
    out.truncate(len);
    out
}

pub(crate) fn put(store: &Store, bodies: &[&[u8]]) -> u64 {
    let batch = store.batch(true);
    let mut worker = batch.worker();
    for body in bodies {
        worker.add(Kind::Blob, blob(body), body).unwrap();
    }
    drop(worker);
    batch.finish().unwrap()
}

pub(crate) fn write_tree(entries: Vec<tree::Entry>) -> (ObjectId, Vec<u8>) {
    let mut entries = entries;
    entries.sort();
    let mut bytes = Vec::new();
    Tree { entries }.write_to(&mut bytes).unwrap();
    (object_id(Kind::Tree, &bytes).unwrap(), bytes)
}

/// Files of the pack directory by ending; temporaries under "tmp".
pub(crate) fn files(store: &Store, ending: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(store.pack_dir()).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<_> = names
        .filter(|p| {
            let tmp = p.file_name().unwrap().to_str().unwrap().starts_with(TEMPORARY);
            if ending == "tmp" { tmp } else { !tmp && p.extension().is_some_and(|e| e == ending) }
        })
        .collect();
    all.sort();
    all
}

/// What git says; `None` where there is no git.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(dir).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env("LC_ALL", "C");
    let out = command.output().ok()?;
    let text = [out.stdout, out.stderr].concat();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&text));
    Some(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Plain git finds nothing wrong.
pub(crate) fn git_is_content(store: &Store) {
    let Some(said) = git(store.dir(), &["fsck", "--full", "--strict", "--no-dangling"]) else { return };
    assert!(said.is_empty() || said.lines().all(|l| l.starts_with("notice:")), "{said}");
    for idx in files(store, "idx") {
        git(store.dir(), &["verify-pack", idx.to_str().unwrap()]);
    }
}

pub(crate) fn read_blob(store: &Store, id: &ObjectId) -> io::Result<Vec<u8>> {
    let (size, mut reader) = store.stream(id).map_err(io::Error::other)?;
    let mut all = Vec::new();
    reader.read_to_end(&mut all)?;
    assert_eq!(all.len() as u64, size);
    Ok(all)
}

#[test]
fn a_batch_is_one_pack_with_two_syncs_and_git_reads_it() {
    let (_top, store) = store();
    let before = store.syncs();
    let batch = store.batch(true);
    let mut ids = Vec::new();
    std::thread::scope(|scope| {
        for worker in 0..2u32 {
            let batch = &batch;
            scope.spawn(move || {
                let mut w = batch.worker();
                for k in 0..200u32 {
                    let body = format!("worker {worker} object {k}");
                    assert!(w.add(Kind::Blob, blob(body.as_bytes()), body.as_bytes()).unwrap());
                }
            });
        }
    });
    let mut worker = batch.worker();
    let entries = (0..200).map(|k| {
        let oid = blob(format!("worker 0 object {k}").as_bytes());
        ids.push(oid);
        tree::Entry { mode: tree::EntryKind::Blob.into(), filename: format!("f{k}").into(), oid }
    });
    let (root, body) = write_tree(entries.collect());
    worker.add(Kind::Tree, root, &body).unwrap();
    drop(worker);
    assert!(batch.bytes() > 0);
    let bytes = batch.finish().unwrap();
    assert_eq!(store.syncs() - before, 2, "one pack, one directory");
    assert_eq!((files(&store, "pack").len(), files(&store, "idx").len(), files(&store, "tmp").len()), (1, 1, 0));
    let on_disk: u64 =
        [files(&store, "pack"), files(&store, "idx")].concat().iter().map(|p| p.metadata().unwrap().len()).sum();
    assert_eq!(bytes, on_disk);
    assert!(ids.iter().all(|id| store.contains(id)));
    assert_eq!(store.read(&root, Kind::Tree).unwrap(), body);
    assert_eq!(store.header(&root).unwrap(), (Kind::Tree, body.len() as u64));
    assert!(matches!(store.read(&root, Kind::Blob), Err(SnapshotError::Damaged { .. })));
    git_is_content(&store);
    if let Some(listed) = git(store.dir(), &["ls-tree", "-r", &root.to_string()]) {
        assert_eq!(listed.lines().count(), 200);
    }
    // A second handle, as of another process.
    let other = Store::open(store.dir()).unwrap();
    assert_eq!(read_blob(&other, &ids[7]).unwrap(), b"worker 0 object 7");
}

#[test]
fn a_store_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Store>();
    shared::<Batch<'_>>();
    sent::<Worker<'_, '_>>();
}

#[test]
fn nothing_is_stored_twice_and_an_empty_batch_still_syncs_the_directory_f18() {
    let (_top, store) = store();
    put(&store, &[b"a", b"b", b"a"]);
    let before = store.syncs();
    assert_eq!(put(&store, &[b"a", b"b"]), 0);
    assert_eq!(store.syncs() - before, 1);
    assert_eq!(files(&store, "pack").len(), 1);
    let batch = store.batch(true);
    let (mut one, mut two) = (batch.worker(), batch.worker());
    assert!(one.add(Kind::Blob, blob(b"c"), b"c").unwrap());
    assert!(!two.add(Kind::Blob, blob(b"c"), b"c").unwrap());
    assert!(!two.add_stream(blob(b"c"), 1, &mut Cursor::new(b"c")).unwrap());
}

#[test]
fn a_dropped_batch_leaves_nothing() {
    let (_top, store) = store();
    let body = noise(1, 3 << 20);
    let batch = store.batch(true);
    let mut worker = batch.worker();
    assert!(worker.add_stream(blob(&body), body.len() as u64, &mut Cursor::new(&body)).unwrap());
    assert_eq!(files(&store, "tmp").len(), 1, "it outgrew the buffer");
    drop(worker);
    drop(batch);
    assert!(files(&store, "tmp").is_empty() && files(&store, "pack").is_empty());
    assert!(!store.contains(&blob(&body)));
}

#[test]
fn big_blobs_stream_through_and_incompressible_ones_are_only_framed() {
    let (_top, store) = store();
    let hard = noise(2, 5 << 20);
    let soft = b"some text that repeats itself\n".repeat(200_000);
    let batch = store.batch(true);
    let mut worker = batch.worker();
    for body in [&hard, &soft, &hard] {
        worker.add_stream(blob(body), body.len() as u64, &mut Cursor::new(body)).unwrap();
    }
    worker.add(Kind::Blob, blob(b"small"), b"small").unwrap();
    drop(worker);
    let bytes = batch.finish().unwrap();
    assert!(bytes > hard.len() as u64 && bytes < hard.len() as u64 + soft.len() as u64 / 10, "{bytes}");
    for body in [&hard[..], &soft, b"small"] {
        assert!(read_blob(&store, &blob(body)).unwrap() == body);
    }
    git_is_content(&store);
}

#[test]
fn content_that_changes_while_it_is_read_leaves_nothing_behind() {
    let (_top, store) = store();
    let body = noise(3, 2 << 20);
    let batch = store.batch(true);
    let mut worker = batch.worker();
    worker.add(Kind::Blob, blob(b"before"), b"before").unwrap();
    let changed = |r| matches!(r, Err(SnapshotError::ChangedWhileReading));
    let len = body.len() as u64;
    assert!(changed(worker.add_stream(blob(&body), len + 1, &mut Cursor::new(&body))), "shorter");
    assert!(changed(worker.add_stream(blob(&body), len - 1, &mut Cursor::new(&body))), "longer");
    assert!(changed(worker.add_stream(blob(b"other"), len, &mut Cursor::new(&body))), "other bytes");
    assert!(changed(worker.add_stream(blob(b"x"), 0, &mut Cursor::new(b"x"))), "no longer empty");
    worker.add(Kind::Blob, blob(b"after"), b"after").unwrap();
    drop(worker);
    let bytes = batch.finish().unwrap();
    assert!(bytes < 4096, "{bytes}");
    assert!(!store.contains(&blob(&body)));
    assert_eq!(read_blob(&store, &blob(b"before")).unwrap(), b"before");
    assert_eq!(read_blob(&store, &blob(b"after")).unwrap(), b"after");
    git_is_content(&store);
}

#[test]
fn blobs_are_put_and_hashed_and_found() {
    let (_top, store) = store();
    let big = noise(4, (1 << 20) + 77);
    for body in [&b""[..], b"x", &big] {
        let len = body.len() as u64;
        let id = Store::hash_blob(len, &mut Cursor::new(body)).unwrap();
        assert_eq!(to_gix(&id), blob(body));
        assert!(!store.has_blob(&id).unwrap());
        let before = store.syncs();
        assert_eq!(store.put_blob(len, &mut Cursor::new(body)).unwrap(), id);
        assert_eq!(store.syncs() - before, 2);
        assert_eq!(store.put_blob(len, &mut Cursor::new(body)).unwrap(), id);
        assert_eq!(store.syncs() - before, 3, "durable also where it was there before");
        assert!(store.has_blob(&id).unwrap());
        let mut back = Vec::new();
        store.open_blob(&id).unwrap().read_to_end(&mut back).unwrap();
        assert!(back == body);
        assert!(matches!(Store::hash_blob(len + 1, &mut Cursor::new(body)), Err(SnapshotError::ChangedWhileReading)));
        assert!(matches!(store.put_blob(len + 1, &mut Cursor::new(body)), Err(SnapshotError::ChangedWhileReading)));
    }
    assert_eq!(files(&store, "pack").len(), 3);
    git_is_content(&store);
}

#[test]
fn a_dry_batch_writes_nothing_and_a_real_one_does_not_rely_on_it() {
    let (_top, store) = store();
    let (root, body) = write_tree(vec![]);
    let meta = [crate::meta::MAGIC, b"1.0\n"].concat();
    let before = store.syncs();
    let batch = store.batch(false);
    let mut worker = batch.worker();
    worker.add(Kind::Tree, root, &body).unwrap();
    worker.add(Kind::Blob, blob(&meta), &meta).unwrap();
    worker.add(Kind::Blob, blob(b"content"), b"content").unwrap();
    worker.add_stream(blob(b"content"), 7, &mut Cursor::new(b"content")).unwrap();
    drop(worker);
    assert_eq!(batch.finish().unwrap(), 0);
    assert_eq!(store.syncs(), before);
    assert!(files(&store, "pack").is_empty());
    assert!(store.contains(&root) && !store.contains_on_disk(&root) && !store.contains(&blob(b"content")));
    assert_eq!(store.read(&root, Kind::Tree).unwrap(), body);
    assert_eq!(store.read(&blob(&meta), Kind::Blob).unwrap(), meta);
    let batch = store.batch(true);
    assert!(batch.worker().add(Kind::Tree, root, &body).unwrap(), "only the overlay has it");
    batch.finish().unwrap();
    assert!(store.contains_on_disk(&root));
    for k in 0..2 * OVERLAYS {
        let batch = store.batch(false);
        let meta = [&meta[..], format!("{k}").as_bytes()].concat();
        batch.worker().add(Kind::Blob, blob(&meta), &meta).unwrap();
        batch.finish().unwrap();
    }
    assert!(!store.contains(&blob(&meta)), "old dry captures are forgotten");
}

#[test]
fn what_another_process_adds_is_seen_after_a_refresh_or_by_a_read() {
    let (_top, store) = store();
    put(&store, &[b"mine"]);
    let other = Store::open(store.dir()).unwrap();
    assert!(other.contains(&blob(b"mine")));
    put(&store, &[b"later"]);
    assert!(!other.contains(&blob(b"later")));
    assert_eq!(read_blob(&other, &blob(b"later")).unwrap(), b"later");
    assert!(other.contains(&blob(b"later")));
    put(&store, &[b"latest"]);
    other.refresh().unwrap();
    assert!(other.contains(&blob(b"latest")));
}

#[test]
fn sixty_packs_are_read_by_us_and_by_git() {
    let (_top, store) = store();
    let other = Store::open(store.dir()).unwrap();
    for k in 0..60u32 {
        put(&store, &[&k.to_be_bytes()]);
    }
    for k in 0..60u32 {
        let id = blob(&k.to_be_bytes());
        assert!(store.contains(&id));
        assert!(store.contains_on_disk(&id) && !store.contains_on_disk(&blob(b"no")));
        assert_eq!(read_blob(&other, &id).unwrap(), k.to_be_bytes());
    }
    assert_eq!(files(&store, "pack").len(), 60);
    git_is_content(&store);
}

/// An index is written without a sync, so a power loss can leave it missing, empty, half or zeroed. Then objects would
/// silently vanish, and with them every point that names them: the first opening after a boot remakes it.
#[test]
fn a_torn_index_is_remade_from_its_pack() {
    let (_top, store) = store();
    let bodies: Vec<Vec<u8>> = (0..400u32).map(|k| noise(u64::from(k), 50 + k as usize)).collect();
    put(&store, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let path = files(&store, "idx").remove(0);
    let good = fs::read(&path).unwrap();
    let n = good.len();
    let zeroed_ids = [&good[..1032], &vec![0; 20 * 400][..], &good[1032 + 20 * 400..]].concat();
    let mut flipped = good.clone();
    flipped[n - 30] ^= 1;
    for (what, bad) in [
        ("missing", None),
        ("empty", Some(vec![])),
        ("half", Some(good[..n / 2].to_vec())),
        ("zeros", Some(vec![0; n])),
        ("zeroed ids", Some(zeroed_ids)),
        ("flipped", Some(flipped)),
    ] {
        match &bad {
            None => fs::remove_file(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
        // Another boot: everything is checked when the store is opened.
        fs::write(store.dir().join("boot"), "another\n").unwrap();
        let opened = Store::open(store.dir()).unwrap();
        assert!(bodies.iter().all(|b| opened.contains(&blob(b))), "{what}");
        assert!(fs::read(&path).unwrap() == good, "{what}");
        // The same boot: a read that fails has it checked.
        match &bad {
            None => fs::remove_file(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
        let opened = Store::open(store.dir()).unwrap();
        assert_eq!(read_blob(&opened, &blob(&bodies[399])).unwrap(), bodies[399], "{what}");
        // A flip that no lookup met waits for the next boot.
        assert!(what == "flipped" || fs::read(&path).unwrap() == good, "{what}");
        fs::write(&path, &good).unwrap();
    }
    git_is_content(&store);
}

/// A pack that lost its end keeps what stands before the loss readable, but no capture relies on it.
#[test]
fn a_torn_pack_is_not_relied_on_and_its_beginning_still_reads() {
    let (_top, store) = store();
    let bodies: Vec<Vec<u8>> = (0..50u32).map(|k| noise(u64::from(k), 1000)).collect();
    put(&store, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let pack = files(&store, "pack").remove(0);
    let whole = fs::read(&pack).unwrap();
    fs::write(&pack, &whole[..whole.len() / 2]).unwrap();
    fs::remove_file(pack.with_extension("idx")).unwrap();
    let store = Store::open(store.dir()).unwrap();
    assert!(!store.contains(&blob(&bodies[0])));
    assert_eq!(read_blob(&store, &blob(&bodies[0])).unwrap(), bodies[0]);
    assert!(matches!(store.stream(&blob(&bodies[49])).err(), Some(SnapshotError::Missing { .. })));
    put(&store, &[&bodies[0], &bodies[49]]);
    assert_eq!(read_blob(&store, &blob(&bodies[49])).unwrap(), bodies[49]);
    assert!(store.contains(&blob(&bodies[0])));
}

#[test]
fn a_damaged_trailer_costs_no_object_and_is_not_relied_on() {
    let (_top, store) = store();
    put(&store, &[b"one", b"two"]);
    let pack = files(&store, "pack").remove(0);
    let mut bytes = fs::read(&pack).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&pack, &bytes).unwrap();
    fs::write(store.dir().join("boot"), "another\n").unwrap();
    let store = Store::open(store.dir()).unwrap();
    assert_eq!(read_blob(&store, &blob(b"two")).unwrap(), b"two");
    // No other git would read it: what is captured again goes into a pack of its own.
    assert!(!store.contains(&blob(b"two")));
    put(&store, &[b"two"]);
    assert!(store.contains(&blob(b"two")));
    assert_eq!(read_blob(&store, &blob(b"one")).unwrap(), b"one");
}

#[test]
fn a_deleted_pack_is_missing_and_the_same_object_elsewhere_is_found() {
    let (_top, store) = store();
    put(&store, &[b"one"]);
    let pack = files(&store, "pack").remove(0);
    let other = Store::open(store.dir()).unwrap();
    assert!(other.contains(&blob(b"one")));
    fs::remove_file(&pack).unwrap();
    fs::remove_file(pack.with_extension("idx")).unwrap();
    assert!(matches!(other.stream(&blob(b"one")).err(), Some(SnapshotError::Missing { .. })));
    put(&other, &[b"one"]);
    assert_eq!(read_blob(&other, &blob(b"one")).unwrap(), b"one");
}

/// Loose objects and deltas are nothing we write; a linked pack or somebody's git may bring them.
#[test]
fn deltas_and_loose_objects_of_others_are_read() {
    let (top, store) = store();
    let work = top.path().join("work");
    fs::create_dir(&work).unwrap();
    let text = (0..3000).map(|k| format!("line {k} of a long file")).collect::<Vec<_>>().join("\n");
    let near = text.replace("line 1500", "line fifteen hundred");
    let dot_git = work.join(".git");
    if git(&dot_git, &["init", "--quiet", "--bare"]).is_none() {
        return;
    }
    let mut ids = Vec::new();
    for body in [&text, &near] {
        fs::write(work.join("f"), body).unwrap();
        let id = git(&dot_git, &["hash-object", "-w", work.join("f").to_str().unwrap()]).unwrap();
        ids.push(id);
    }
    let list = top.path().join("list");
    fs::write(&list, ids.join("\n") + "\n").unwrap();
    let status = Command::new("git")
        .arg("--git-dir")
        .arg(&dot_git)
        .args(["pack-objects", "-q", "--window=10"])
        .arg(store.pack_dir().join("pack"))
        .stdin(fs::File::open(&list).unwrap())
        .output()
        .unwrap();
    assert!(status.status.success());
    store.refresh().unwrap();
    for (id, body) in ids.iter().zip([&text, &near]) {
        let id = ObjectId::from_hex(id.as_bytes()).unwrap();
        assert!(store.contains(&id));
        assert!(read_blob(&store, &id).unwrap() == body.as_bytes());
        assert_eq!(store.header(&id).unwrap(), (Kind::Blob, body.len() as u64));
    }
    fs::write(work.join("f"), "loose").unwrap();
    git(store.dir(), &["hash-object", "-w", work.join("f").to_str().unwrap()]).unwrap();
    assert!(!store.contains(&blob(b"loose")), "only packs are relied on");
    assert_eq!(read_blob(&store, &blob(b"loose")).unwrap(), b"loose");
}

/// Every step of writing a batch fails in turn. Whatever stays must be whole, and what was there must still be.
#[test]
fn a_stop_at_every_step_of_a_batch_leaves_a_sound_store() {
    let bodies: Vec<Vec<u8>> = (0..3u64).map(|k| noise(k, 700_000)).collect();
    let run = |store: &Store| {
        let batch = store.batch(true);
        for body in &bodies {
            let mut worker = batch.worker();
            worker.add(Kind::Blob, blob(body), body)?;
            worker.add_stream(blob(&body[1..]), body.len() as u64 - 1, &mut Cursor::new(&body[1..]))?;
        }
        batch.finish()
    };
    let (_top, whole) = store();
    whole.ops().fail_from(0);
    run(&whole).unwrap();
    let steps = whole.ops().steps();
    assert!(steps >= 8, "{steps}");
    for n in 1..=steps {
        let (_top, store) = store();
        put(&store, &[b"from before"]);
        store.ops().fail_from(n);
        run(&store).unwrap_err();
        store.ops().fail_from(0);
        // Sweeping is plain std in the clean-up paths, so nothing temporary stays behind an error.
        assert!(files(&store, "tmp").is_empty(), "step {n}");
        let after = Store::open(store.dir()).unwrap();
        assert_eq!(read_blob(&after, &blob(b"from before")).unwrap(), b"from before");
        let packs = files(&after, "pack").len();
        let visible: Vec<&Vec<u8>> = bodies.iter().filter(|b| after.contains(&blob(b))).collect();
        // Each worker's pack is all or nothing, and nothing before the first rename.
        assert_eq!(visible.len(), packs - 1, "step {n}");
        assert!(visible.is_empty() || n > steps - 7, "step {n} of {steps}");
        assert!(visible.iter().all(|b| read_blob(&after, &blob(b)).unwrap() == **b));
        git_is_content(&after);
        run(&after).unwrap();
        assert!(bodies.iter().all(|b| read_blob(&after, &blob(b)).unwrap() == *b));
    }
}

#[test]
fn after_a_failed_directory_sync_the_handle_writes_no_more() {
    let (_top, store) = store();
    store.packs().unwrap();
    store.ops().fail_from(1);
    store.sync_directory().unwrap_err();
    store.ops().fail_from(0);
    assert!(matches!(store.sync_directory(), Err(SnapshotError::Other { .. })));
    assert!(store.batch(true).finish().is_err());
    Store::open(store.dir()).unwrap().sync_directory().unwrap();
}

#[test]
fn a_full_disk_is_no_space() {
    let full = io::Error::from(io::ErrorKind::StorageFull);
    assert!(matches!(io_error(Path::new("x"), 7, full), SnapshotError::NoSpace { needed: 7 }));
    let other = io::Error::from(io::ErrorKind::PermissionDenied);
    assert!(matches!(io_error(Path::new("x"), 7, other), SnapshotError::Io { .. }));
}

mod damage {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]
        /// Any flipped bytes in pack or index: an object reads as it was or not at all, and nothing panics.
        #[test]
        fn flipped_bytes_never_panic_and_never_give_wrong_bytes(
            flips in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 1u8..), 1..6),
            cut in proptest::option::of(any::<prop::sample::Index>()),
            boot in any::<bool>(),
        ) {
            let (_top, store) = store();
            let bodies: Vec<Vec<u8>> = (0..30u8).map(|k| if k % 2 == 0 { noise(u64::from(k), 300) } else { vec![k; 9000] }).collect();
            put(&store, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let pack = files(&store, "pack").remove(0);
            let idx = pack.with_extension("idx");
            for (in_pack, at, mask) in flips {
                let path = if in_pack { &pack } else { &idx };
                let mut bytes = fs::read(path).unwrap();
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
                fs::write(path, bytes).unwrap();
            }
            if let Some(cut) = cut {
                let bytes = fs::read(&pack).unwrap();
                fs::write(&pack, &bytes[..cut.index(bytes.len())]).unwrap();
            }
            if boot {
                fs::write(store.dir().join("boot"), "another\n").unwrap();
            }
            let opened = Store::open(store.dir()).unwrap();
            for body in &bodies {
                if let Ok(read) = read_blob(&opened, &blob(body)) {
                    prop_assert!(read == *body);
                }
                if let Err(e) = opened.read(&blob(body), Kind::Blob) {
                    let expected = matches!(e, SnapshotError::Missing { .. } | SnapshotError::Damaged { .. });
                    prop_assert!(expected, "{:?}", e);
                }
            }
            // What was lost can be captured again.
            let again: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            put(&opened, &again);
        }
    }
}

/// An object that announces far more than there can be is refused before anybody takes the memory: a store of a few
/// hundred bytes once cost gix two gigabytes.
#[test]
fn an_object_that_announces_the_impossible_costs_no_memory() {
    let (dir, store) = store();
    let body = format!("blob {}\0tiny", 2_u64 << 30);
    let mut room = vec![0; zlib_rs::compress_bound(body.len())];
    let (packed, _) = zlib_rs::compress_slice(&mut room, body.as_bytes(), zlib_rs::DeflateConfig::new(1));
    let id = blob(b"what it should have been");
    let hex = id.to_string();
    let at = dir.path().join("git/objects").join(&hex[..2]);
    fs::create_dir_all(&at).unwrap();
    fs::write(at.join(&hex[2..]), packed).unwrap();
    let refused = store.foreign(&id).unwrap_err();
    let causes = format!("{refused:?}");
    assert!(matches!(refused, SnapshotError::Damaged { .. }) && causes.contains("announces more"), "{causes}");
}
