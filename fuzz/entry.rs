//! What must hold for any bytes at all, one function for each target. The fuzz targets call them with what libfuzzer makes up,
//! a test of `harness-adapter` with every file of the corpora.

use std::{fs, ops::ControlFlow, path::PathBuf};

use harness_adapter::{
    named_points::{DEFAULT_LIMIT, append, lines, parse_line},
    sessions::dsh::{
        DshLogs,
        strict::{Severity, Strict},
    },
};

const HEAD: &[u8] = b"{\"type\":\"session\",\"version\":0,\"id\":\"one\",\"createdAt\":1,\"delegationDepth\":0}\n";

thread_local! {
    static SCRATCH: tempfile::TempDir = tempfile::tempdir().expect("a scratch directory");
}

/// A compressed log.
pub(crate) fn frames(data: &[u8]) {
    read("session.jsonl.zstd", data);
}

/// The rows of a log in plain lines, and again as those of format 4.
pub(crate) fn rows(data: &[u8]) {
    read("session.jsonl", &[HEAD, data].concat());
    let head = String::from_utf8_lossy(HEAD).replace("\"version\":0", "\"version\":4,\"isSeeded\":false");
    read("session.v4.jsonl", &[head.as_bytes(), data].concat());
}

/// The first line of a log, under a name of every format.
pub(crate) fn header(data: &[u8]) {
    let line = [data, b"\n{\"type\":\"turn/start\",\"seq\":0,\"time\":1,\"data\":{\"turn\":1}}\n"].concat();
    for name in ["session.jsonl", "session.v2.jsonl", "session.v4.jsonl", "anything"] {
        read(name, &line);
    }
}

/// A file of named points.
pub(crate) fn checkpoints_md(data: &[u8]) {
    let read = lines(data);
    let printed = read.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(printed.as_bytes()), read, "what is printed is read as what it was");
    let kept = foreign(data);
    for limit in [1, 3, DEFAULT_LIMIT] {
        let Some(line) = read.last() else { continue };
        let added = append(data, line, limit);
        assert!(lines(&added).len() <= limit.max(1), "there are never too many");
        assert_eq!(foreign(&added), kept, "what is not ours stays as it is");
    }
}

/// The lines of the file that are no points. An end that is missing may be put there.
fn foreign(file: &[u8]) -> Vec<&[u8]> {
    let file = file.strip_suffix(b"\n").unwrap_or(file);
    file.split(|byte| *byte == b'\n').filter(|line| parse_line(line).is_none()).collect()
}

/// Reads a log in all ways and compares what they say.
fn read(name: &str, bytes: &[u8]) {
    let path: PathBuf = SCRATCH.with(|dir| dir.path().join(name));
    fs::write(&path, bytes).expect("a scratch file");
    let (mut next, mut strict, mut ends) = (0, Strict::new(), Vec::new());
    let walked = DshLogs::for_each_event_of_file(&path, &mut |event| {
        assert_eq!(event.seq.0, next, "events are dense");
        next += 1;
        if &*event.kind == "turn/end" {
            ends.push(event.seq);
        }
        strict.take(event);
        ControlFlow::Continue(())
    });
    let problems = strict.finish();
    let broken = problems.iter().filter(|problem| problem.severity == Severity::Broken).count();
    assert!(broken <= 257, "problems are bounded");
    match (DshLogs::inspect_file(&path), walked) {
        (Ok(seen), Ok(walked)) => {
            assert_eq!((seen.events, walked.events), (next, next));
            assert_eq!(seen.boundaries.iter().map(|boundary| boundary.seq).collect::<Vec<_>>(), ends);
            assert_eq!(seen.loadable, seen.problems.is_empty());
            assert!(seen.torn.as_ref().is_none_or(|torn| torn.offset + torn.bytes == bytes.len() as u64));
        }
        (Ok(seen), Err(_)) => assert!(!seen.loadable, "what cannot be walked cannot be loaded"),
        (Err(_), walked) => assert!(walked.is_err(), "what cannot be looked at cannot be walked"),
    }
    assert_eq!(fs::read(&path).expect("the log is still there"), bytes, "a log is never modified");
}
