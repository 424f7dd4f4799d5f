//! Generated logs, read back from files that were written in every way that the format allows.

use std::{fs, ops::ControlFlow, path::PathBuf};

use checkpoint_core::{LogEvent, Seq};
use harness_adapter::sessions::dsh::{
    DshLogs,
    strict::{Problem, Severity, Strict},
};
use proptest::{prelude::*, sample::Index};
use tempfile::TempDir;
use testkit::dsh_logs::{Encoding, Header, Layout, events, file, frames, layouts, rows, sessions};

use crate::world::fixture;

/// Few, since each writes files; raise it to look for more.
const CASES: u32 = 48;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) }
}

fn head() -> Header {
    let (id, cwd) = ("one".to_owned(), "/home/user/shop".to_owned());
    Header { id, cwd, created_at: 1_796_063_287_000, parent: None }
}

fn name(layout: &Layout) -> &'static str {
    match layout.encoding {
        Encoding::Zstd => "session.jsonl.zstd",
        Encoding::Plain => "session.jsonl",
    }
}

fn written(dir: &TempDir, layout: &Layout, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name(layout));
    fs::write(&path, bytes).unwrap();
    path
}

fn strict(events: &[LogEvent]) -> Vec<Problem> {
    let mut strict = Strict::new();
    for event in events {
        strict.take(event);
    }
    strict.finish()
}

/// Everything of an event, to compare and to show.
fn text(event: &LogEvent) -> String {
    let LogEvent { seq, time, kind, data, surface, sources, ignorable } = event;
    format!("{seq} {time} {kind} {data} {surface:?} {sources:?} {ignorable}")
}

fn texts(events: &[LogEvent]) -> Vec<String> {
    events.iter().map(text).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_was_written_is_read_back(session in sessions(), layout in layouts()) {
        let events = events(&session);
        let dir = tempfile::tempdir().unwrap();
        let bytes = file(&head(), &events, &layout);
        let path = written(&dir, &layout, &bytes);
        let read = DshLogs::events_of_file(&path).unwrap();
        prop_assert_eq!(texts(&read), texts(&events));

        let seen = DshLogs::inspect_file(&path).unwrap();
        prop_assert_eq!(&seen.problems, &[]);
        prop_assert!(seen.loadable && seen.torn.is_none() && seen.open_turn.is_none());
        prop_assert_eq!(seen.events, events.len() as u64);
        let of = |kind: &str| -> Vec<u64> { events.iter().filter(|event| &*event.kind == kind).map(|event| event.seq.0).collect() };
        prop_assert_eq!(seen.boundaries.iter().map(|it| it.seq.0).collect::<Vec<_>>(), of("turn/end"));
        prop_assert_eq!(seen.turns.iter().map(|it| it.start.0).collect::<Vec<_>>(), of("turn/start"));
        prop_assert_eq!(strict(&read), []);
        prop_assert_eq!(fs::read(&path).unwrap(), bytes, "reading leaves a log as it is");
    }

    #[test]
    fn tn14_a_torn_tail_gives_the_rows_before_it_and_nothing_else(
        session in sessions(), layout in layouts(), cut in any::<Index>(),
    ) {
        let events = events(&session);
        let pieces = frames(&head(), &events, &layout);
        let first = pieces[0].len();
        let whole: Vec<u8> = pieces.concat();
        let cut = first + cut.index(whole.len() - first + 1);
        let dir = tempfile::tempdir().unwrap();
        let path = written(&dir, &layout, &whole[..cut]);
        let read = DshLogs::events_of_file(&path).unwrap();
        prop_assert_eq!(texts(&read), texts(&events[..read.len()]));
        prop_assert!(strict(&read).iter().all(|problem| problem.severity == Severity::Open));
        // What was whole before the cut is there.
        let least = match layout.encoding {
            Encoding::Plain => {
                let ended = whole[..cut].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
                let path = dir.path().join("whole.jsonl");
                fs::write(&path, &whole[..ended]).unwrap();
                DshLogs::events_of_file(&path).unwrap().len()
            }
            Encoding::Zstd => {
                let sizes = pieces.iter().scan(0, |end, piece| { *end += piece.len(); Some(*end) });
                let batches = sizes.take_while(|end| *end <= cut).count() - 1;
                let mut lengths = layout.batches.iter().map(|size| usize::from(*size)).cycle();
                let counted: usize = (0..batches).map(|_| lengths.next().unwrap_or(events.len())).sum();
                counted.min(events.len())
            }
        };
        prop_assert!(read.len() >= least, "{} events of at least {}", read.len(), least);
        let seen = DshLogs::inspect_file(&path).unwrap();
        prop_assert!(seen.loadable, "{:?}", seen.problems);
        prop_assert_eq!(seen.events, read.len() as u64);
        let ends_well = cut == whole.len() || pieces.iter().scan(0, |end, piece| { *end += piece.len(); Some(*end) }).any(|end| end == cut);
        if ends_well {
            prop_assert!(seen.torn.is_none());
        }
    }

    #[test]
    fn a_head_that_is_cut_off_is_an_error(cut in any::<Index>(), layout in layouts()) {
        let whole = file(&head(), &[], &layout);
        let cut = cut.index(whole.len());
        let dir = tempfile::tempdir().unwrap();
        let path = written(&dir, &layout, &whole[..cut]);
        prop_assert!(DshLogs::inspect_file(&path).is_err());
        prop_assert!(DshLogs::for_each_event_of_file(&path, &mut |_| ControlFlow::Continue(())).is_err());
    }

    #[test]
    fn a_changed_byte_is_never_a_panic(session in sessions(), layout in layouts(), at in any::<Index>(), to in any::<u8>()) {
        let mut bytes = file(&head(), &events(&session), &layout);
        let at = at.index(bytes.len());
        bytes[at] = to;
        let dir = tempfile::tempdir().unwrap();
        let path = written(&dir, &layout, &bytes);
        let mut strict = Strict::new();
        let mut next = 0;
        let read = DshLogs::for_each_event_of_file(&path, &mut |event| {
            assert_eq!(event.seq.0, next);
            next += 1;
            strict.take(event);
            ControlFlow::Continue(())
        });
        drop(strict.finish());
        if let Ok(seen) = DshLogs::inspect_file(&path) {
            prop_assert!(!seen.loadable || read.is_ok_and(|summary| summary.events == seen.events));
        }
        prop_assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

/// The renderer is checked against what the host itself wrote for the same events.
#[test]
fn the_model_writes_rows_as_the_host_does() {
    #[derive(serde::Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type")]
        kind: String,
        seq: u64,
        time: i64,
        #[serde(borrow)]
        data: &'a serde_json::value::RawValue,
        #[serde(flatten)]
        rest: std::collections::BTreeMap<String, serde_json::Value>,
    }
    #[derive(serde::Deserialize)]
    struct Vector<'a> {
        #[serde(borrow)]
        events: Vec<&'a serde_json::value::RawValue>,
        #[serde(borrow)]
        rows: Vec<&'a serde_json::value::RawValue>,
    }
    let mut packed = 0;
    for line in fs::read_to_string(fixture("vectors/pack.jsonl")).unwrap().lines() {
        let vector: Vector<'_> = serde_json::from_str(line).unwrap();
        // Halves of characters cannot be told in Rust's strings, which the model is made of.
        if line.contains("\\ud") || line.contains("\\uD") {
            continue;
        }
        let read: Option<Vec<LogEvent>> = vector
            .events
            .iter()
            .map(|event| {
                let event: Event<'_> = serde_json::from_str(event.get()).unwrap();
                let plain = event.rest.is_empty();
                plain.then(|| LogEvent {
                    seq: Seq(event.seq),
                    time: event.time,
                    kind: event.kind.as_str().into(),
                    data: event.data.to_owned().into(),
                    surface: None,
                    sources: None,
                    ignorable: false,
                })
            })
            .collect();
        let Some(events) = read else { continue };
        let due: Vec<_> = vector.rows.iter().map(|row| row.get()).collect();
        let ours = rows(&events, true);
        if line.contains("\\u") {
            // The vectors escape more than the host does.
            let values = |rows: &[&str]| -> Vec<serde_json::Value> {
                rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
            };
            assert_eq!(values(&ours.iter().map(String::as_str).collect::<Vec<_>>()), values(&due));
        } else {
            assert_eq!(ours, due);
        }
        packed += 1;
    }
    assert!(packed > 3, "{packed} vectors were compared");
}
