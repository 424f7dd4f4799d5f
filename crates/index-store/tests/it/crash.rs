//! Processes that are killed: what was acknowledged is there.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use checkpoint_core::{IndexStore, PointQuery};
use index_store::{JsonIndex, JsonOptions, SqliteIndex, SqliteOptions};

use crate::scene::record;

const PATH: &str = "RWD_TEST_CRASH_PATH";
const COUNT: &str = "RWD_TEST_CRASH_COUNT";

fn open(path: &Path) -> Box<dyn IndexStore> {
    if path.extension().is_some_and(|end| end == "sqlite") {
        Box::new(SqliteIndex::create(path, SqliteOptions { log_above: 1 << 16, ..SqliteOptions::default() }).unwrap())
    } else {
        Box::new(JsonIndex::create(path, JsonOptions { compact_above: 1 << 12, ..JsonOptions::default() }).unwrap())
    }
}

/// The process that the tests below kill.
#[test]
#[ignore = "run by the other tests of this module"]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let count = std::env::var(COUNT).map_or(u64::MAX, |count| count.parse().unwrap());
    let index = open(Path::new(&path));
    for _ in 0..count {
        let place = record(&*index);
        eprintln!("ack {place}");
        if count > 1 {
            index.maintain().unwrap();
        }
    }
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
