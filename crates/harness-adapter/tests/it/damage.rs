//! Damaged logs: no panic, no event that was never written, nothing changed.

use std::{fs, ops::ControlFlow, path::PathBuf};

use harness_adapter::sessions::dsh::{DshLogs, LogError, row_of};
use proptest::prelude::*;

use crate::{
    fork::logs,
    world::{Home, PROJECT, fixture},
};

const ZSTD: &str = "cases/15-torn-zstd/whole/sessions/--home-user-shop--/torn/session.jsonl.zstd";
const PLAIN: &str = "cases/15-torn-plaintext/whole/sessions/--home-user-shop--/torn/session.jsonl";

/// A log in a temporary directory that is written anew again and again.
struct Scratch {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        Self { _dir: dir, path }
    }

    /// Everything that reads, on these bytes: the rows up to where the log can be followed.
    fn read(&self, bytes: &[u8]) -> (Vec<String>, Result<bool, LogError>) {
        fs::write(&self.path, bytes).unwrap();
        let mut rows = Vec::new();
        let read = DshLogs::for_each_event_of_file(&self.path, &mut |event| {
            rows.push(row_of(event));
            ControlFlow::Continue(())
        });
        let inspected = DshLogs::inspect_file(&self.path);
        let loadable = inspected.map(|seen| {
            assert!(seen.events >= rows.len() as u64);
            seen.loadable
        });
        if let Ok(summary) = &read {
            assert_eq!(summary.events, rows.len() as u64);
            assert_eq!(loadable.as_ref().unwrap(), &summary.problems.is_empty());
        }
        (rows, loadable)
    }
}

fn name(fixture: &str) -> &'static str {
    if fixture.ends_with("zstd") { "session.jsonl.zstd" } else { "session.jsonl" }
}

/// Cut off at every byte: always a prefix of the events, and never refused once the header is whole, for a crash may stop
/// a write anywhere. `last` is how many events are there without the last byte.
fn truncated_everywhere(log: &str, last: usize) {
    let whole = fs::read(fixture(log)).unwrap();
    let scratch = Scratch::new(name(log));
    let (all, loadable) = scratch.read(&whole);
    assert!(loadable.unwrap() && all.len() == 66);
    let file = fs::File::options().write(true).open(&scratch.path).unwrap();
    let mut before = all.len();
    for length in (0..whole.len()).rev() {
        file.set_len(length as u64).unwrap();
        let mut rows = 0;
        let read = DshLogs::for_each_event_of_file(&scratch.path, &mut |event| {
            assert!(all.get(rows).is_some_and(|row| *row == row_of(event)), "{log} {length}");
            rows += 1;
            ControlFlow::Continue(())
        });
        assert!(rows <= before, "less of the file, more events: {log} {length}");
        if length + 1 == whole.len() {
            assert_eq!(rows, last);
        }
        before = rows;
        match read {
            Ok(summary) => assert!(summary.problems.is_empty() && summary.events == rows as u64, "{log} {length}"),
            Err(error) => assert_eq!((error.code(), rows), ("NO_HEADER", 0), "{log} {length}"),
        }
    }
    assert_eq!(before, 0);
}

/// The last bytes of a frame are its checksum: without them its rows are recovered.
#[test]
fn c004_20_frames_cut_off_at_every_byte_leave_a_prefix() {
    truncated_everywhere(ZSTD, 66);
}

#[test]
fn c004_20_rows_cut_off_at_every_byte_leave_a_prefix() {
    truncated_everywhere(PLAIN, 65);
}

/// A frame has a checksum: a flipped bit is found, or changes nothing that is read.
#[test]
fn flipped_bits_in_frames_are_found() {
    let whole = fs::read(fixture(ZSTD)).unwrap();
    let scratch = Scratch::new(name(ZSTD));
    let (all, _) = scratch.read(&whole);
    let mut found = 0;
    // A prime, so that every bit of a byte and every part of the file has its turn.
    for bit in (0..whole.len() * 8).step_by(31) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (rows, loadable) = scratch.read(&bytes);
        if loadable.is_ok_and(|loadable| loadable) {
            assert_eq!(rows, all[..rows.len()], "bit {bit}");
        } else {
            found += 1;
        }
    }
    assert!(found > whole.len() * 8 / 31 * 9 / 10, "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes changed, put in, taken out: no panic, and a parent that still loads gives a child that loads.
    #[test]
    fn any_damage_is_survived(
        plain in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let log = if plain { PLAIN } else { ZSTD };
        let mut bytes = fs::read(fixture(log)).unwrap();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => {
                    bytes.remove(at);
                }
            }
        }
        let mut home = Home::of(&[]);
        home.put(PROJECT, "torn", name(log), &bytes);
        let seen = home.logs().inspect("torn");
        let load = home.logs().load("torn");
        home.logs().list().unwrap();
        if let (Ok(seen), Ok(_)) = (&seen, &load) {
            for boundary in &seen.boundaries {
                let forked = logs(&home).fork_at("torn", Some(boundary.seq), None, None);
                if let Ok(forked) = forked {
                    prop_assert!(home.logs().load(&forked.child).is_ok());
                }
            }
        }
        let dir = tempfile::tempdir().unwrap();
        if let Ok(repaired) = logs(&home).repair("torn", &dir.path().join("copy")) {
            prop_assert!(load.is_ok());
            prop_assert!(DshLogs::inspect_file(&repaired.path).unwrap().loadable);
        }
    }

    /// Any text as a row behind a sound log: no panic.
    #[test]
    fn any_row_is_survived(row in r#"(\{|\[|"|,|:|\}|\]|type|seq|66|data|time|text-chunks|null|-0|1e999|\\ud800|turn/end|\n){0,24}"#) {
        let mut bytes = fs::read(fixture(PLAIN)).unwrap();
        bytes.extend_from_slice(row.as_bytes());
        bytes.push(b'\n');
        let (rows, _) = Scratch::new("session.jsonl").read(&bytes);
        prop_assert!(rows.len() >= 66);
    }
}

/// Opening a pipe waits for somebody who writes into it: one among the logs would hold up every list for ever.
#[test]
fn a_pipe_is_no_log_and_nobody_waits_for_it() {
    let home = Home::of(&["01-plain-2turn"]);
    let folder = home.sessions().join(PROJECT).join("pipe");
    std::fs::create_dir(&folder).unwrap();
    durable_fs::Dir::open_root(&folder).unwrap().create_fifo(b"session.jsonl.zstd").unwrap();
    let list = home.logs().list().unwrap();
    let problems = list.iter().map(|entry| entry.problem.is_some()).collect::<Vec<_>>();
    assert_eq!((list.len(), problems.iter().filter(|problem| **problem).count()), (2, 1));
    assert_eq!(home.logs().inspect("pipe").unwrap_err().code(), "io");
    let path = folder.join("session.jsonl.zstd");
    assert_eq!(DshLogs::inspect_file(&path).unwrap_err().code(), "io");
    std::fs::remove_file(path).unwrap();
}
