//! The conformance suite over all three indexes.

use std::{path::PathBuf, sync::Arc};

use checkpoint_core::{Batch, IndexError, IndexStore, Revision};
use index_store::{Journal, JsonIndex, JsonOptions, MemoryIndex, SqliteIndex, SqliteOptions};
use testkit::index_suite::{self, Fault, FaultyIndex, Open};

fn model() -> Box<dyn IndexStore> {
    Box::new(MemoryIndex::new())
}

/// A fresh directory that lives as long as what opens indexes in it.
fn in_directory(open: fn(PathBuf) -> Box<dyn IndexStore>) -> Open {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    Box::new(move || open(directory.path().join("index")))
}

#[test]
fn memory() {
    index_suite::run(
        &|| {
            let index = MemoryIndex::new();
            Box::new(move || Box::new(index.clone()))
        },
        &model,
    );
}

#[test]
fn json() {
    index_suite::run(
        &|| in_directory(|path| Box::new(JsonIndex::create(&path, JsonOptions::default()).unwrap())),
        &model,
    );
}

/// Compacted at every chance.
#[test]
fn json_compacting() {
    let eager = |path: PathBuf| -> Box<dyn IndexStore> {
        let options = JsonOptions { compact_above: 0, ..JsonOptions::default() };
        Box::new(JsonIndex::create(&path, options).unwrap())
    };
    index_suite::run(&|| in_directory(eager), &model);
}

#[test]
fn sqlite() {
    index_suite::run(
        &|| in_directory(|path| Box::new(SqliteIndex::create(&path, SqliteOptions::default()).unwrap())),
        &model,
    );
}

/// On file systems without shared memory; and the log emptied at every chance is covered below.
#[test]
fn sqlite_with_rollback_journal() {
    let open = |path: PathBuf| -> Box<dyn IndexStore> {
        let options = SqliteOptions { journal: Journal::Delete, ..SqliteOptions::default() };
        Box::new(SqliteIndex::create(&path, options).unwrap())
    };
    index_suite::run(&|| in_directory(open), &model);
}

#[test]
fn sqlite_emptying_its_log() {
    let eager = |path: PathBuf| -> Box<dyn IndexStore> {
        let options = SqliteOptions { log_above: 0, ..SqliteOptions::default() };
        Box::new(SqliteIndex::create(&path, options).unwrap())
    };
    index_suite::run(&|| in_directory(eager), &model);
}

/// The decorator is an index like any other until it is told to fail.
#[test]
fn faults_come_when_they_are_due() {
    let inner: Arc<dyn IndexStore> = Arc::new(MemoryIndex::new());
    index_suite::run(
        &|| {
            let inner: Arc<dyn IndexStore> = Arc::new(MemoryIndex::new());
            Box::new(move || Box::new(FaultyIndex::new(Arc::clone(&inner))))
        },
        &model,
    );
    let index = FaultyIndex::new(Arc::clone(&inner));
    let apply = || index.apply(&Batch::default());
    index.fail(2, Fault::NoSpace);
    assert_eq!(apply().unwrap(), Revision(1));
    assert!(matches!(apply(), Err(IndexError::NoSpace)));
    assert_eq!(apply().unwrap(), Revision(2));
    index.fail(1, Fault::Unsure);
    assert!(matches!(apply(), Err(IndexError::Storage { .. })));
    assert!(matches!(apply(), Err(IndexError::Poisoned)));
    assert!(matches!(index.newest(), Err(IndexError::Poisoned)));
    assert_eq!(inner.revision().unwrap(), Revision(3));
    assert_eq!(index.applied(), 4);
}
