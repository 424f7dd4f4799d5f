//! What is particular to `index.jsonl`: torn and damaged lines, locks, compaction.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoint_core::{Batch, IndexError, IndexStore, Revision};
use index_store::{JsonIndex, JsonOptions};

use crate::scene::{dump, play, record};

fn open(path: &Path) -> JsonIndex {
    JsonIndex::open(path, JsonOptions::default()).unwrap()
}

fn eager() -> JsonOptions {
    JsonOptions { compact_above: 0, ..JsonOptions::default() }
}

/// Removes the mark: the process died between the line and the mark.
pub(crate) fn unmark(path: &Path) {
    fs::remove_file(path.with_extension("high")).unwrap();
}

/// A file with a history, without its mark, and that history before and after its last line.
fn sample(directory: &Path) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let path = directory.join("index.jsonl");
    let index = JsonIndex::create(&path, JsonOptions::default()).unwrap();
    play(&index);
    let before = fs::read(&path).unwrap();
    record(&index);
    let after = fs::read(&path).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    unmark(&path);
    (path, before, after)
}

fn line_named_by(error: &IndexError) -> String {
    match error {
        IndexError::Damaged { what, .. } => what.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_line_torn_at_any_byte_reads_as_the_state_before_and_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let (path, before, after) = sample(directory.path());
    fs::write(&path, &before).unwrap();
    let expected = dump(&open(&path));
    for cut in before.len()..after.len() {
        fs::write(&path, &after[..cut]).unwrap();
        let index = open(&path);
        assert_eq!(dump(&index), expected, "cut at {cut}");
        // Reading alone repairs nothing.
        assert_eq!(fs::metadata(&path).unwrap().len(), cut as u64);
        // Syncs are slow: not at every byte.
        if cut % 16 == 0 || cut + 2 > after.len() || cut < before.len() + 20 {
            record(&index);
            assert_eq!(fs::read(&path).unwrap(), after, "cut at {cut}");
            assert_eq!(dump(&open(&path)), dump(&index));
            unmark(&path);
        }
    }
}

/// After a power loss the length may have reached the disk and some blocks not.
#[test]
fn a_last_line_with_blocks_of_zeros_is_torn_too() {
    let directory = tempfile::tempdir().unwrap();
    let (path, before, after) = sample(directory.path());
    fs::write(&path, &before).unwrap();
    let expected = dump(&open(&path));
    let last = before.len();
    for (from, to) in [(last, after.len()), (last, last + 200), (last + 100, after.len()), (last + 50, last + 60)] {
        let mut torn = after.clone();
        torn[from..to].fill(0);
        fs::write(&path, &torn).unwrap();
        let index = open(&path);
        assert_eq!(dump(&index), expected);
        record(&index);
        assert_eq!(fs::read(&path).unwrap(), after);
        unmark(&path);
    }
}

#[test]
fn a_damaged_line_is_named_the_last_one_too() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _, content) = sample(directory.path());
    let mut start = 0;
    for (n, line) in content.split_inclusive(|&b| b == b'\n').enumerate() {
        for at in [0, 3, 9, 25, line.len() / 2, line.len() - 2] {
            let mut damaged = content.clone();
            damaged[start + at] ^= 0x04;
            fs::write(&path, damaged).unwrap();
            let error = JsonIndex::open(&path, JsonOptions::default()).unwrap_err();
            assert_eq!(line_named_by(&error), format!("line {} of index.jsonl", n + 1), "byte {at}");
        }
        start += line.len();
    }
}

#[test]
fn lines_that_are_missing_twice_or_out_of_order_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _, content) = sample(directory.path());
    let lines: Vec<&[u8]> = content.split_inclusive(|&b| b == b'\n').collect();
    let mut without = lines.clone();
    without.remove(3);
    let mut twice = lines.clone();
    twice.insert(3, lines[2]);
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    for (wrong, at) in [(without, 4), (twice, 4), (swapped, 3)] {
        fs::write(&path, wrong.concat()).unwrap();
        let error = JsonIndex::open(&path, JsonOptions::default()).unwrap_err();
        assert_eq!(line_named_by(&error), format!("line {at} of index.jsonl"));
    }
}

#[test]
fn a_file_without_a_whole_first_line_is_never_taken_for_an_empty_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.jsonl");
    drop(JsonIndex::create(&path, JsonOptions::default()).unwrap());
    let first = fs::read(&path).unwrap();
    for cut in 0..first.len() {
        fs::write(&path, &first[..cut]).unwrap();
        for opened in [JsonIndex::open(&path, eager()), JsonIndex::create(&path, eager())] {
            assert!(matches!(opened.unwrap_err(), IndexError::Damaged { .. }), "cut at {cut}");
        }
    }
    fs::write(&path, vec![0; first.len()]).unwrap();
    assert!(matches!(JsonIndex::open(&path, eager()), Err(IndexError::Damaged { .. })));
}

#[test]
fn an_index_that_goes_back_under_an_open_handle_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let (path, before, after) = sample(directory.path());
    let index = open(&path);
    fs::write(&path, &before).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Damaged { .. })));
    // The same by a rename.
    fs::write(&path, &after).unwrap();
    let index = open(&path);
    let old = path.with_extension("old");
    fs::write(&old, &before).unwrap();
    fs::rename(&old, &path).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Damaged { .. })));
    fs::remove_file(&path).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Storage { .. })));
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Storage { .. })));
    assert!(!path.exists(), "a lost index is not made anew");
}

#[test]
fn compaction_keeps_everything_and_other_handles_follow() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _, content) = sample(directory.path());
    let (reader, writer, index) = (open(&path), open(&path), JsonIndex::open(&path, eager()).unwrap());
    let expected = dump(&index);
    index.maintain().unwrap();
    let compacted = fs::read(&path).unwrap();
    assert!(compacted.len() < content.len());
    assert_eq!(compacted.split_inclusive(|&b| b == b'\n').count(), 1);
    assert_eq!([dump(&index), dump(&reader), dump(&open(&path))], [&*expected; 3]);
    // Nothing to gain: left alone.
    let inode = fs::metadata(&path).unwrap().ino();
    index.maintain().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    // This handle still has the old file open, and its line must not go there.
    let place = record(&writer);
    assert_eq!([index.newest().unwrap(), reader.newest().unwrap(), open(&path).newest().unwrap()], [place; 3]);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.iter().all(|name| name == "index.jsonl" || name == "index.high"), "{files:?}");
}

/// A crash before the rename leaves a temporary, which nobody reads.
#[test]
fn what_a_crashed_compaction_leaves_is_no_index() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _, _) = sample(directory.path());
    let expected = dump(&open(&path));
    fs::write(directory.path().join("index.jsonl.0011223344556677.tmp"), b"{\"crc\":\"").unwrap();
    let index = JsonIndex::create(&path, eager()).unwrap();
    assert_eq!(dump(&index), expected);
    index.maintain().unwrap();
    assert_eq!(dump(&index), expected);
}

#[test]
fn somebody_else_at_work_is_busy_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _, content) = sample(directory.path());
    let options = JsonOptions { busy: Duration::from_millis(20), ..JsonOptions::default() };
    let index = JsonIndex::open(&path, options).unwrap();
    let revision = index.revision().unwrap();
    let other = File::open(&path).unwrap();
    other.lock().unwrap();
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Busy)));
    assert!(matches!(JsonIndex::open(&path, options), Err(IndexError::Busy)));
    // What was read stays readable while nobody has written.
    assert_eq!(index.revision().unwrap(), revision);
    assert_eq!(fs::read(&path).unwrap(), content);
    other.unlock().unwrap();
    assert_eq!(index.apply(&Batch::default()).unwrap(), Revision(revision.0 + 1));
}

/// What a writer has appended and not yet synced can still be taken back: it is not read before the writer lets go.
#[test]
fn a_reader_waits_for_a_writer_that_has_appended() {
    let directory = tempfile::tempdir().unwrap();
    let (path, before, after) = sample(directory.path());
    fs::write(&path, &before).unwrap();
    let index =
        JsonIndex::open(&path, JsonOptions { busy: Duration::from_millis(20), ..JsonOptions::default() }).unwrap();
    let mut writer = OpenOptions::new().append(true).open(&path).unwrap();
    writer.lock().unwrap();
    writer.write_all(&after[before.len()..]).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Busy)));
    writer.unlock().unwrap();
    assert_eq!(dump(&index), dump(&open(&path)));
}
