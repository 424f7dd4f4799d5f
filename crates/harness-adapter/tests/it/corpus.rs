//! Every file of the fuzz targets' corpora, and many small changes of each, through the functions that the targets call:
//! the same ones every time, on a stable compiler.

use std::{collections::BTreeMap, fs, path::Path};

#[path = "../../../../fuzz/entry.rs"]
mod entry;

#[path = "../../../../fuzz/client_entry.rs"]
mod client_entry;

/// Changes of each file. More are for libfuzzer to find.
const CHANGES: u64 = 60;

/// A series of numbers that never changes.
struct Series(u64);

impl Series {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }
}

fn changed(of: &[u8], other: &[u8], series: &mut Series) -> Vec<u8> {
    let mut bytes = of.to_vec();
    for _ in 0..=series.below(3) {
        let at = series.below(bytes.len());
        let end = (at + 1 + series.below(16)).min(bytes.len());
        match series.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << series.below(8),
            1 if at < bytes.len() => bytes[at] = b"\"\\{}[],:0-9.e\n\xff\x00"[series.below(16)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => bytes.truncate(at),
            _ => {
                let from = series.below(other.len());
                let part = &other[from..(from + 1 + series.below(32)).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
        }
    }
    bytes
}

fn replay(target: &str, run: fn(&[u8])) {
    replay_with(target, CHANGES, run);
}

fn replay_with(target: &str, changes: u64, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files: BTreeMap<_, _> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    assert!(files.len() > 3, "the corpus of {target} is not there");
    let mut series = Series(1);
    for (path, bytes) in &files {
        assert!(bytes.len() <= 8192, "{} is too large", path.display());
        run(bytes);
        for _ in 0..changes {
            let other = files.values().nth(series.below(files.len())).unwrap();
            run(&changed(bytes, other, &mut series));
        }
    }
}

#[test]
fn frames() {
    replay("frames", entry::frames);
}

#[test]
fn rows() {
    replay("rows", entry::rows);
}

#[test]
fn headers() {
    replay("header", entry::header);
}

#[test]
fn points() {
    replay("checkpoints_md", entry::checkpoints_md);
}

#[test]
fn lines_of_a_host() {
    replay("rpc", client_entry::rpc);
}

#[test]
fn payloads_of_hooks() {
    replay("hook", client_entry::hook);
}

#[test]
fn settings_of_agents() {
    replay("settings", client_entry::settings);
}

#[test]
fn transcripts_of_clients() {
    replay_with("transcript", CHANGES / 2, client_entry::transcript);
}

#[test]
fn marks_of_an_older_program() {
    replay("marks", client_entry::marks);
}
