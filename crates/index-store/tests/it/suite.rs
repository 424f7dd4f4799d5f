//! The conformance suite over all three indexes.

use std::{path::PathBuf, sync::Arc};

use checkpoint_core::IndexStore;
use index_store::{Journal, JsonIndex, JsonOptions, MemoryIndex, SqliteIndex, SqliteOptions};
use testkit::index_suite::{self, Open};

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
        &|| {
            in_directory(|path| Box::new(JsonIndex::create(&path, JsonOptions::default()).unwrap()))
        },
        &model,
    );
}

/// Compacted at every chance.
#[test]
fn json_compacting() {
    let eager = |path: PathBuf| -> Box<dyn IndexStore> {
        let options = JsonOptions {
            compact_above: 0,
            ..JsonOptions::default()
        };
        Box::new(JsonIndex::create(&path, options).unwrap())
    };
    index_suite::run(&|| in_directory(eager), &model);
}

#[test]
fn sqlite() {
    index_suite::run(
        &|| {
            in_directory(|path| {
                Box::new(SqliteIndex::create(&path, SqliteOptions::default()).unwrap())
            })
        },
        &model,
    );
}

/// On file systems without shared memory; and the log emptied at every chance is covered below.
#[test]
fn sqlite_with_rollback_journal() {
    let open = |path: PathBuf| -> Box<dyn IndexStore> {
        let options = SqliteOptions {
            journal: Journal::Delete,
            ..SqliteOptions::default()
        };
        Box::new(SqliteIndex::create(&path, options).unwrap())
    };
    index_suite::run(&|| in_directory(open), &model);
}

#[test]
fn sqlite_emptying_its_log() {
    let eager = |path: PathBuf| -> Box<dyn IndexStore> {
        let options = SqliteOptions {
            log_above: 0,
            ..SqliteOptions::default()
        };
        Box::new(SqliteIndex::create(&path, options).unwrap())
    };
    index_suite::run(&|| in_directory(eager), &model);
}
