//! What the host's own functions give.

use std::{fs, path::Path};

use checkpoint_core::{ClosersCause, JsonText, open_turn_closers};
use harness_adapter::sessions::dsh::{DshLogs, encode_segment, project_key, row_of};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::world::fixture;

fn lines(path: &str) -> Vec<String> {
    fs::read_to_string(fixture(path)).unwrap().lines().map(ToOwned::to_owned).collect()
}

#[derive(Deserialize)]
struct Named {
    r#fn: String,
    r#in: Box<RawValue>,
    out: Option<String>,
}

#[test]
fn tn46_paths_are_those_of_the_host() {
    let lines = lines("vectors/paths.jsonl");
    assert_eq!(lines.len(), 41);
    for line in lines {
        let named: Named = serde_json::from_str(&line).unwrap();
        let given = JsonText::from_json(named.r#in.get()).unwrap();
        let got = if named.r#fn == "projectKey" { project_key(&given) } else { encode_segment(&given) };
        assert_eq!(got, named.out, "{line}");
    }
}

#[derive(Deserialize)]
struct Packing {
    events: Vec<Box<RawValue>>,
    rows: Vec<Box<RawValue>>,
}

/// Every packed row of the host stands for exactly the events it was made from.
#[test]
fn packed_rows_expand_to_the_hosts_events() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for line in lines("vectors/pack.jsonl") {
        let packing: Packing = serde_json::from_str(&line).unwrap();
        // Some runs have a gap on purpose, to end a packed row: no log has one.
        let path = dir.path().join("session.jsonl");
        let mut text =
            String::from("{\"type\":\"session\",\"version\":0,\"id\":\"x\",\"createdAt\":1,\"delegationDepth\":0}\n");
        for row in &packing.rows {
            text.push_str(row.get());
            text.push('\n');
        }
        fs::write(&path, text).unwrap();
        let expected: Vec<&str> = packing.events.iter().map(|event| event.get()).collect();
        let got = DshLogs::events_of_file(&path).unwrap();
        let got: Vec<String> = got.iter().map(row_of).collect();
        let whole = expected.windows(2).all(|pair| seq(pair[0]) + 1 == seq(pair[1]));
        let upto = if whole { expected.len() } else { 1 };
        assert_eq!(got, expected[..upto], "{line}");
        seen += 1;
    }
    assert_eq!(seen, 13);
}

fn seq(event: &str) -> u64 {
    #[derive(Deserialize)]
    struct Event {
        seq: u64,
    }
    serde_json::from_str::<Event>(event).unwrap().seq
}

#[derive(Deserialize)]
struct Closed {
    events: usize,
    closers: Vec<Box<RawValue>>,
}

/// The vectors have closers as the host holds them in memory, `surfaceOp` before `sourceEventSeqs`. Its rows have them the
/// other way round.
fn stored(closer: &str) -> String {
    let surface = r#","surfaceOp":"append""#;
    match closer.split_once(&format!(r#"{surface},"sourceEventSeqs":"#)) {
        Some((before, sources)) => {
            let sources = sources.strip_suffix('}').unwrap();
            format!(r#"{before},"sourceEventSeqs":{sources}{surface}}}"#)
        }
        None => closer.to_owned(),
    }
}

fn closers_match(vectors: &str, log: &Path, of: usize) {
    let events = DshLogs::events_of_file(log).unwrap();
    let mut expected = vec![Vec::new(); events.len() + 1];
    let lines = lines(vectors);
    assert_eq!(lines.len(), of);
    for line in &lines {
        let closed: Closed = serde_json::from_str(line).unwrap();
        expected[closed.events] = closed.closers.iter().map(|closer| stored(closer.get())).collect();
    }
    for (length, expected) in expected.iter().enumerate() {
        let closers = open_turn_closers(&events[..length], ClosersCause::Interrupted);
        let got: Vec<String> = closers.iter().map(row_of).collect();
        assert_eq!(&got, expected, "after {length} events");
    }
}

/// Byte for byte but for the order of two keys, after every event of a log.
#[test]
fn c004_11_closers_are_those_of_the_host() {
    let log = "cases/02-edits-3turn/sessions/--home-user-shop--/edits3/session.jsonl.zstd";
    closers_match("vectors/closers-02-edits-3turn.jsonl", &fixture(log), count("vectors/closers-02-edits-3turn.jsonl"));
    let log = "cases/08-cancelled-by-user/sessions/--home-user-shop--/cancelled/session.jsonl.zstd";
    closers_match("vectors/closers-08-cancelled.jsonl", &fixture(log), count("vectors/closers-08-cancelled.jsonl"));
}

fn count(path: &str) -> usize {
    lines(path).len()
}
