//! What is particular to `index.sqlite`: its log, its locks, files that are no index.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoint_core::{Batch, IndexError, IndexStore, Revision};
use index_store::{Journal, SqliteIndex, SqliteOptions};
use rusqlite::Connection;

use crate::scene::{dump, play, record};

fn create(path: &Path) -> SqliteIndex {
    SqliteIndex::create(path, SqliteOptions::default()).unwrap()
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[test]
fn the_log_outlives_the_process_and_stays_small() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let log = beside(&path, "-wal");
    drop(create(&path));
    let mut largest = 0;
    for _ in 0..150 {
        let index = create(&path);
        record(&index);
        largest = largest.max(fs::metadata(&log).unwrap().len());
        index.maintain().unwrap();
    }
    assert!(largest > 1 << 20, "the test must reach the threshold");
    assert!(fs::metadata(&log).unwrap().len() < 1 << 20);
    assert!(largest < (1 << 20) + (1 << 17), "{largest}");
    let index = create(&path);
    assert_eq!(index.revision().unwrap(), Revision(150), "maintenance does not count");
    for file in [&path, &log, &beside(&path, "-shm")] {
        assert_eq!(fs::metadata(file).unwrap().mode() & 0o7777, 0o600, "{}", file.display());
    }
}

#[test]
fn nothing_is_lost_when_the_log_is_copied_along() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index = create(&path);
    play(&index);
    // As after a kill: the database without a checkpoint, and its log.
    let copy = directory.path().join("copy.sqlite");
    fs::copy(&path, &copy).unwrap();
    fs::copy(beside(&path, "-wal"), beside(&copy, "-wal")).unwrap();
    assert_eq!(dump(&create(&copy)), dump(&index));
}

#[test]
fn the_kind_of_journal_can_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index = create(&path);
    play(&index);
    let expected = dump(&index);
    drop(index);
    let delete = SqliteOptions { journal: Journal::Delete, ..SqliteOptions::default() };
    let index = SqliteIndex::open(&path, delete).unwrap();
    assert_eq!(dump(&index), expected);
    assert!(!beside(&path, "-wal").exists());
    let place = record(&index);
    index.maintain().unwrap();
    drop(index);
    let index = create(&path);
    assert_eq!(index.newest().unwrap(), place);
    assert!(beside(&path, "-wal").exists());
    // While another handle uses the log, it cannot be taken away.
    record(&index);
    let busy = SqliteOptions { busy: Duration::from_millis(20), ..delete };
    assert!(matches!(SqliteIndex::open(&path, busy), Err(IndexError::Busy)));
}

#[test]
fn files_that_are_no_index_are_damaged_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let refused = |what: &str| {
        let before = fs::read(&path).ok();
        for opened in
            [SqliteIndex::open(&path, SqliteOptions::default()), SqliteIndex::create(&path, SqliteOptions::default())]
        {
            assert!(matches!(opened, Err(IndexError::Damaged { .. })), "{what}: {opened:?}");
        }
        assert_eq!(fs::read(&path).ok(), before, "{what}");
    };
    fs::write(&path, b"").unwrap();
    refused("empty");
    fs::write(&path, b"this is no database, but long enough to be looked at".repeat(100)).unwrap();
    refused("garbage");
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    refused("somebody else's");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE state(key TEXT, value TEXT)").unwrap();
    refused("without a format");
}

/// A new database next to an old log would swallow it.
#[test]
fn a_log_without_its_database_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index = create(&path);
    play(&index);
    drop(index);
    fs::remove_file(&path).unwrap();
    let created = SqliteIndex::create(&path, SqliteOptions::default());
    assert!(matches!(created, Err(IndexError::Damaged { .. })));
    assert!(!path.exists());
}

#[test]
fn a_flipped_page_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let delete = SqliteOptions { journal: Journal::Delete, ..SqliteOptions::default() };
    let index = SqliteIndex::create(&path, delete).unwrap();
    play(&index);
    drop(index);
    let mut content = fs::read(&path).unwrap();
    for page in content.chunks_mut(4096).skip(1) {
        page[..8].fill(0xee);
    }
    fs::write(&path, content).unwrap();
    assert!(matches!(SqliteIndex::open(&path, delete), Err(IndexError::Damaged { .. })));
}

/// With a log SQLite would go on writing into a file that nobody can open any more.
#[test]
fn an_index_that_lost_its_name_takes_no_more_batches() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index = create(&path);
    record(&index);
    fs::rename(&path, directory.path().join("kept")).unwrap();
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Storage { .. })));
    assert!(matches!(index.newest(), Err(IndexError::Storage { .. })));
}

#[test]
fn somebody_else_at_work_is_busy_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index =
        SqliteIndex::create(&path, SqliteOptions { busy: Duration::from_millis(20), ..SqliteOptions::default() })
            .unwrap();
    record(&index);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Busy)));
    assert_eq!(index.revision().unwrap(), Revision(1), "readers do not wait");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(index.apply(&Batch::default()).unwrap(), Revision(2));
}
