//! Processes that are killed: what was acknowledged is there.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use checkpoint_core::{Batch, IndexError, IndexOp, IndexStore, PointKind, PointQuery};
use index_store::{Journal, JsonIndex, JsonOptions, SqliteIndex, SqliteOptions};
use testkit::index_suite::build;

use crate::scene::record;

pub(crate) const PATH: &str = "RWD_TEST_CRASH_PATH";
pub(crate) const COUNT: &str = "RWD_TEST_CRASH_COUNT";

/// An index as its name says, with thresholds low enough to be reached.
pub(crate) fn open(path: &Path) -> Box<dyn IndexStore> {
    if path.extension().is_some_and(|end| end == "sqlite") {
        let rollback = path.file_stem().is_some_and(|stem| stem == "rollback");
        let journal = if rollback { Journal::Delete } else { Journal::Wal };
        let options = SqliteOptions { journal, log_above: 1 << 18, ..SqliteOptions::default() };
        Box::new(SqliteIndex::create(path, options).unwrap())
    } else {
        Box::new(JsonIndex::create(path, JsonOptions { compact_above: 1 << 14, ..JsonOptions::default() }).unwrap())
    }
}

/// The process that the tests below kill.
#[test]
#[ignore = "run by the other tests of this module"]
fn child() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let count = std::env::var(COUNT).map_or(u64::MAX, |count| count.parse().unwrap());
    let index = open(Path::new(&path));
    for _ in 0..count {
        let place = record(&*index);
        writeln!(std::io::stderr(), "ack {place}").unwrap();
        if count == u64::MAX {
            index.maintain().unwrap();
        }
    }
}

/// Records until that fails, and says how.
#[test]
#[ignore = "run by the other tests of this module"]
fn child_without_room() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let index = open(Path::new(&path));
    loop {
        let next = index.newest().unwrap().next();
        let interval = vec![build::touch("a", &["s0"])];
        let point = Box::new(build::point(next.0, PointKind::Manual));
        let batch = Batch { follows: None, ops: vec![IndexOp::PutPoint { point, interval }] };
        match index.apply(&batch) {
            Ok(_) => writeln!(std::io::stderr(), "ack {next}").unwrap(),
            Err(error) => {
                writeln!(std::io::stderr(), "failed {error:?}").unwrap();
                match error {
                    // As before, and usable.
                    IndexError::NoSpace => assert_eq!(index.newest().unwrap().next(), next),
                    _ => assert!(matches!(index.newest(), Err(IndexError::Poisoned))),
                }
                return;
            }
        }
    }
}

/// No file may grow past 128 KiB: what was acknowledged stays, what was not is not there or whole.
fn out_of_room(name: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    drop(open(&path));
    let output = Command::new("sh")
        // Ignored signals stay ignored in the program that is run, so writing fails instead of killing.
        .args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_without_room", "--ignored", "--nocapture"])
        .env(PATH, &path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let acknowledged = said.lines().filter(|line| line.starts_with("ack ")).count() as u64;
    assert!(acknowledged > 5, "{said}");
    let index = open(&path);
    let newest = index.newest().unwrap().0;
    assert!(newest == acknowledged || newest == acknowledged + 1, "{newest} after {acknowledged}");
    assert_eq!(index.points(&PointQuery::default()).unwrap().len() as u64, newest);
    record(&*index);
    said.lines().find_map(|line| line.strip_prefix("failed ")).unwrap().to_owned()
}

#[test]
fn json_out_of_room() {
    assert_eq!(out_of_room("index.jsonl"), "NoSpace");
}

#[test]
fn sqlite_out_of_room() {
    out_of_room("index.sqlite");
}

fn killed_again_and_again(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let mut acknowledged = 0;
    for round in 1..=4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--ignored", "--nocapture"])
            .env(PATH, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let acks = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("ack ")?.parse::<u64>().ok());
        // The kill comes at whatever the child is doing after so many answers.
        acknowledged = acks.take(round * 7).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let index = open(&path);
        let newest = index.newest().unwrap().0;
        assert!(newest >= acknowledged, "{newest} after {acknowledged}");
        let places: Vec<u64> = index.points(&PointQuery::default()).unwrap().iter().map(|point| point.ord.0).collect();
        assert_eq!(places, (1..=newest).collect::<Vec<_>>());
    }
    assert!(acknowledged >= 70);
}

#[test]
fn json() {
    killed_again_and_again("index.jsonl");
}

#[test]
fn sqlite() {
    killed_again_and_again("index.sqlite");
}

#[test]
fn sqlite_with_rollback_journal() {
    killed_again_and_again("rollback.sqlite");
}
