//! How many syncs a batch costs (design § 4): counted from outside, where a tracer may be used.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use index_store::Journal;

use crate::{
    crash::{COUNT, PATH, open},
    scene::record,
};

/// Syncs of a new process that applies `batches` batches to the index at `path`; `None` where nothing can be traced.
fn syncs(path: &Path, batches: u32) -> Option<usize> {
    let trace = path.with_extension("trace");
    let status = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync,msync,sync_file_range,syncfs,sync", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--ignored", "--nocapture"])
        .env(PATH, path)
        .env(COUNT, batches.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(trace).unwrap();
    Some(text.lines().filter(|line| line.contains("sync") && line.contains("= 0")).count())
}

fn check(name: &str, one_shot: usize, each_more: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    record(&*open(&path));
    let Some(found) = syncs(&path, 1) else { return };
    assert_eq!(found, one_shot, "in a new process");
    assert_eq!(syncs(&path, 11).unwrap(), one_shot + 10 * each_more, "resident");
    // Also after the log was emptied, which pays for the next one.
    let index = open(&path);
    for _ in 0..40 {
        record(&*index);
        index.maintain().unwrap();
    }
    drop(index);
    assert_eq!(syncs(&path, 1).unwrap(), one_shot, "after maintenance");
}

#[test]
fn sqlite() {
    assert_eq!(Journal::default(), Journal::Wal);
    check("index.sqlite", 2, 1);
}

#[test]
fn json() {
    check("index.jsonl", 2, 1);
}

/// Two of the journal, one of the database, and the directory when the journal appears and when it goes.
#[test]
fn sqlite_with_rollback_journal() {
    check("rollback.sqlite", 5, 5);
}
