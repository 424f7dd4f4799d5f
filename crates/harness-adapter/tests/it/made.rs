//! Logs that no case has: made here, each for one rule.

use std::{fs, io::Write, ops::ControlFlow};

use checkpoint_core::{LogEvent, Seq, SessionKey, SessionLog, SurfaceOp};
use harness_adapter::sessions::dsh::{ChildSpec, Cut, DshLogs, LogError};

use crate::{
    fork::logs,
    world::{Home, PROJECT, decoded, fixture, frames},
};

const HEADER: &str = "{\"type\":\"session\",\"version\":0,\"id\":\"made\",\"createdAt\":1,\"cwd\":\"/home/user/shop\",\"delegationDepth\":0}\n";

/// A plain log of these rows.
fn made(rows: &[String]) -> Home {
    let mut home = Home::of(&[]);
    home.put(PROJECT, "made", "session.jsonl", format!("{HEADER}{}\n", rows.join("\n")).as_bytes());
    home
}

fn event(seq: usize, kind: &str, data: &str, more: &str) -> String {
    format!(r#"{{"type":"{kind}","seq":{seq},"time":{seq},"data":{data}{more}}}"#)
}

fn user(seq: usize, more: &str) -> String {
    let data = format!(r#"{{"id":"m{seq}","role":"user","source":{{"kind":"user"}},"content":[]}}"#);
    event(seq, "user/message", &data, more)
}

fn result(seq: usize, call: &str, text: &str, more: &str) -> String {
    let data = format!(
        r#"{{"turn":1,"step":1,"message":{{"id":"r","role":"user","source":{{"kind":"tool","callId":"{call}"}},"content":[{{"type":"tool-result","toolCallId":"{call}","content":[{{"type":"text","text":"{text}"}}]}}]}}}}"#
    );
    event(seq, "tool/result", &data, more)
}

const APPEND: &str = r#","surfaceOp":"append""#;

fn replace(start: usize, end: usize, sources: &str) -> String {
    format!(r#","surfaceOp":{{"op":"replace","start":{start},"end":{end}}},"sourceEventSeqs":{sources}"#)
}

/// What the loader says of these rows: `Ok`, or the event it refuses.
fn verdict(rows: &[String]) -> Result<(), String> {
    let home = made(rows);
    home.logs().load("made").map(drop).map_err(|error| {
        assert_eq!(error.code(), "CORRUPT_LOG");
        error.to_string().split(": ").last().unwrap().to_owned()
    })
}

/// The surface: what may take the place of what.
#[test]
fn replacements_follow_the_rules_of_the_surface() {
    let base = [user(0, APPEND), user(1, APPEND), user(2, APPEND)];
    let with = |last: String| verdict(&[&base[..], &[last]].concat());
    assert_eq!(with(user(3, &replace(0, 1, "[0,1]"))), Ok(()));
    assert_eq!(with(user(3, &replace(1, 1, "[1]"))), Ok(()));
    assert!(with(user(3, &replace(0, 1, "[0]"))).unwrap_err().contains("lack a replaced message"));
    assert!(with(user(3, &replace(1, 0, "[0,1]"))).unwrap_err().contains("ends before it starts"));
    assert!(with(user(3, &replace(0, 7, "[0,1]"))).unwrap_err().contains("no message is there"));
    assert!(with(user(3, &replace(0, 0, "[0,0]"))).unwrap_err().contains("different earlier events"));
    assert!(with(user(3, &replace(0, 0, "[0,3]"))).unwrap_err().contains("different earlier events"));
    assert!(with(user(3, &replace(0, 0, "[]"))).unwrap_err().contains("empty"));
    assert!(with(user(3, r#","surfaceOp":{"op":"replace","start":0,"end":0,"x":1}"#)).is_err());
    assert!(with(user(3, r#","surfaceOp":"prepend""#)).is_err());
    // The node is the replacement from then on.
    let twice = [&base[..], &[user(3, &replace(0, 1, "[0,1]")), user(4, &replace(3, 2, "[3,2]"))]].concat();
    assert_eq!(verdict(&twice), Ok(()));
    let gone = [&base[..], &[user(3, &replace(0, 1, "[0,1]")), user(4, &replace(0, 2, "[0,2]"))]].concat();
    assert!(verdict(&gone).is_err());
}

#[test]
fn a_result_may_only_change_its_own_content() {
    let base = [result(0, "a", "long", APPEND), result(1, "b", "x", APPEND)];
    let with = |last: String| verdict(&[&base[..], &[last]].concat());
    assert_eq!(with(result(2, "a", "short", &replace(0, 0, "[0]"))), Ok(()));
    assert!(with(result(2, "b", "x", &replace(0, 0, "[0]"))).is_err(), "another call");
    assert!(with(result(2, "a", "x", &replace(0, 1, "[0,1]"))).is_err(), "two of them");
    assert_eq!(with(user(2, &replace(0, 1, "[0,1]"))), Ok(()), "a summary may");
}

/// Shapes of messages and request headers.
#[test]
fn shapes_are_checked() {
    let message = |kind: &str, data: &str| verdict(&[event(0, kind, data, APPEND)]);
    let assistant = r#"{"turn":1,"step":1,"message":{"id":"a","role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"}}}"#;
    assert_eq!(message("assistant/message", assistant), Ok(()));
    for (from, to) in [
        ("\"m\"", "\"\""),
        ("\"a\"", "\"\""),
        ("\"assistant\"", "\"user\""),
        ("[]", "{}"),
        ("\"model\",\"p", "\"user\",\"p"),
    ] {
        assert!(message("assistant/message", &assistant.replacen(from, to, 1)).is_err(), "{from} {to}");
    }
    let header = |data: &str| verdict(&[event(0, "request/header", data, "")]);
    let good = r#"{"header":{"config":{"provider":"p","model":"m","maxTokens":5},"adapterDefaults":{"maxTokens":true}},"reason":"initial"}"#;
    assert_eq!(header(good), Ok(()));
    for (from, to) in [
        ("\"p\"", "\"\""),
        ("true", "false"),
        ("maxTokens\":true", "reasoningEffort\":true"),
        ("maxTokens\":true", "other\":true"),
        ("initial", "fallback"),
        ("\"maxTokens\":5", "\"reasoningEffort\":\"\""),
    ] {
        assert!(header(&good.replacen(from, to, 1)).is_err(), "{from} {to}");
    }
}

/// Integers are JavaScript's: the value counts, not the spelling.
#[test]
fn numbers_are_read_as_the_host_reads_them() {
    let row =
        |seq: &str, time: &str| verdict(&[format!(r#"{{"type":"todo/write","seq":{seq},"time":{time},"data":null}}"#)]);
    assert_eq!(row("0", "1e3"), Ok(()));
    assert_eq!(row("0.0", "-5"), Ok(()));
    assert!(row("0", "9007199254740992").is_err());
    assert!(row("0", "\"5\"").is_err());
    assert!(row("0", "1e999").is_err());
}

/// TN49: what is torn or out of order after the last end of a turn is a torn tail, in a plain log.
#[test]
fn tn49_a_gap_after_the_last_end_is_a_torn_tail() {
    let whole = [
        event(0, "turn/start", "{\"turn\":1}", ""),
        event(1, "turn/end", "{\"turn\":1,\"reason\":{\"kind\":\"completed\"}}", ""),
    ];
    for tail in
        [event(7, "todo/write", "{}", ""), "garbage".into(), String::new(), r#"{"type":"todo/write","data":{}}"#.into()]
    {
        let home = made(&[&whole[..], &[tail]].concat());
        let summary = home.logs().load("made").unwrap();
        assert_eq!(summary.events, 2);
        assert!(summary.torn.is_some());
    }
    let end = event(9, "turn/end", "{\"turn\":2}", "");
    assert!(made(&[&whole[..], &[end]].concat()).logs().load("made").is_err(), "the row itself ends a turn");
}

/// A streamed piece may end inside a surrogate pair: nothing is refused, and nothing is changed.
#[test]
fn lone_surrogates_go_through() {
    let packed = r#"{"type":"text-chunks","seq0":0,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[0,-1],"texts":["\ud83d","\ude00","x"]}}"#;
    let home = made(&[packed.to_owned(), event(3, "todo/write", r#"{"x":"\udfff"}"#, "")]);
    let events = home.logs().events("made").unwrap();
    assert_eq!(events[1].data.get(), r#"{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"\ude00"}}"#);
    assert_eq!((events[2].time, events[3].data.get()), (0, r#"{"x":"\udfff"}"#));
    // A cut inside the packed row: its events up to there.
    let forked = logs(&home).fork_at("made", Some(Seq(1)), Some("child"), None).unwrap();
    let rows: Vec<String> = decoded(&forked.path).lines().skip(1).map(ToOwned::to_owned).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        rows[1],
        r#"{"type":"assistant/chunk","seq":1,"time":1,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"\ude00"}}}"#
    );
    let key = |id| SessionKey::new("dsh", id).unwrap();
    let digest = |id| home.logs().prefix_digest(&key(id), Seq(1)).unwrap();
    assert_eq!(digest("made"), digest("child"));
}

/// Ids that no key can have are shown, and said to be out of reach.
#[test]
fn odd_ids_are_listed() {
    let mut home = Home::of(&[]);
    for (id, folder) in [("a b", "a~0020b"), ("\\ud800", "~D800"), ("ü", "~00FC")] {
        let header = HEADER.replace("\"made\"", &format!("\"{id}\""));
        home.put(PROJECT, folder, "session.jsonl", header.as_bytes());
    }
    let list = home.logs().list().unwrap();
    assert_eq!(list.len(), 3);
    assert!(list.iter().all(|entry| entry.key.is_none() && entry.problem.is_none()), "{list:?}");
    assert_eq!(home.logs().load("a b").unwrap().events, 0);
    assert_eq!(home.logs().host_list().unwrap(), 3);
}

/// One frame that holds everything is decoded row by row, and a cut in its middle is written anew.
#[test]
fn a_single_huge_frame_is_read_row_by_row() {
    let mut rows = Vec::new();
    for turn in 0..40 {
        let at = turn * 3;
        rows.push(event(at, "turn/start", &format!("{{\"turn\":{turn}}}"), ""));
        rows.push(event(at + 1, "todo/write", &format!("{{\"x\":\"{}\"}}", "y".repeat(300_000)), ""));
        rows.push(event(at + 2, "turn/end", &format!("{{\"turn\":{turn},\"reason\":{{\"kind\":\"completed\"}}}}"), ""));
    }
    let mut bytes = zstd::encode_all(HEADER.as_bytes(), 1).unwrap();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(format!("{}\n", rows.join("\n")).as_bytes()).unwrap();
    bytes.extend(encoder.finish().unwrap());
    let mut home = Home::of(&[]);
    home.put(PROJECT, "made", "session.jsonl.zstd", &bytes);
    let mut seen = 0;
    let broken_off = home.logs().for_each_event("made", &mut |_| {
        seen += 1;
        if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((broken_off.unwrap().events, seen), (5, 5));
    let forked = logs(&home).fork_at("made", Some(Seq(59)), Some("child"), None).unwrap();
    assert_eq!((forked.seed_length, home.logs().load("child").unwrap().events), (60, 61));
    assert_eq!(frames(&fs::read(forked.path).unwrap()).len(), 3, "the header, and frames of at least 4 MiB");

    // Torn in its middle: what is before the tear is kept.
    let mut home = Home::of(&[]);
    bytes.truncate(bytes.len() / 2);
    home.put(PROJECT, "made", "session.jsonl.zstd", &bytes);
    let torn = home.logs().load("made").unwrap();
    assert!(torn.torn.unwrap().recovered == torn.events && torn.events > 30, "{torn:?}");
    let last = home.logs().inspect("made").unwrap().boundaries.last().unwrap().seq;
    let forked = logs(&home).fork_at("made", Some(last), Some("child"), None).unwrap();
    assert_eq!(home.logs().load(&forked.child).unwrap().events, last.0 + 2);
    let dir = tempfile::tempdir().unwrap();
    let repaired = logs(&home).repair("made", &dir.path().join("copy")).unwrap();
    assert!(repaired.events >= torn.events);
}

/// Versions 2 to 4, by their documents alone: the newest generation is read, nothing is written.
#[test]
fn newer_versions_are_read_only() {
    let mut home = Home::of(&["01-plain-2turn"]);
    let header = r#"{"type":"session","version":4,"id":"plain2","createdAt":1,"cwd":"/home/user/shop","parentSession":"p","isSeeded":true,"delegationDepth":0}"#;
    let rows = [
        header.to_owned(),
        event(0, "turn/start", "{\"turn\":1}", ""),
        event(1, "system/message", "{}", APPEND),
        event(2, "turn/end", "{\"turn\":1,\"reason\":{\"kind\":\"completed\"}}", ""),
        event(3, "session/end-seed", "{\"inherited\":true}", ""),
        event(4, "user/message", "{}", r#","surfaceOp":"append","sourceEventSeqs":[[0,2],3]"#),
    ];
    let text = format!("{}\n", rows.join("\n"));
    let bytes: Vec<u8> =
        text.split_inclusive('\n').flat_map(|row| zstd::encode_all(row.as_bytes(), 1).unwrap()).collect();
    home.put(PROJECT, "plain2", "session.v4.jsonl.zstd", &bytes);
    let seen = home.logs().inspect("plain2").unwrap();
    assert_eq!((seen.version, seen.events, seen.loadable), (4, 5, true), "{:?}", seen.problems);
    let events = home.logs().events("plain2").unwrap();
    assert_eq!(events[4].sources, Some(vec![Seq(0), Seq(1), Seq(2), Seq(3)]));
    let key = SessionKey::new("dsh", "plain2").unwrap();
    assert_eq!(home.logs().header(&key).unwrap().seed_length, 3);
    assert!(!home.logs().can_fork(&key));
    let error = logs(&home).fork_at("plain2", Some(Seq(2)), None, None).unwrap_err();
    assert_eq!(error.code(), "UNSUPPORTED_VERSION");
    assert!(error.to_string().contains("log format 4 cannot be written"), "{error}");
    assert_eq!(home.logs().list().unwrap().len(), 1);

    home.put(PROJECT, "plain2", "session.v5.jsonl.zstd", &bytes);
    assert_eq!(home.logs().load("plain2").unwrap_err().code(), "UNSUPPORTED_VERSION");
}

/// A range over messages that took the places of others follows the surface, not the numbers.
#[test]
fn c004_20_replacements_go_by_places_on_the_surface() {
    let replace = |seq, start: u64, end: u64, sources: &str| {
        let op =
            format!(r#","surfaceOp":{{"op":"replace","start":{start},"end":{end}}},"sourceEventSeqs":[{sources}]"#);
        user(seq, &op)
    };
    // 0 1 2 3, then 4 in the place of 1 and 2: 0 4 3.
    let first: Vec<String> = (0..4).map(|seq| user(seq, APPEND)).chain([replace(4, 1, 2, "1,2")]).collect();
    let loads = |last: String| {
        let rows: Vec<String> = first.iter().cloned().chain([last]).collect();
        made(&rows).logs().load("made").is_ok()
    };
    assert!(loads(replace(5, 4, 3, "3,4")) && loads(replace(5, 0, 4, "0,4")) && loads(replace(5, 0, 3, "0,3,4")));
    assert!(!loads(replace(5, 3, 4, "3,4")), "it ends before it starts");
    assert!(!loads(replace(5, 0, 3, "0,3")), "4 lies between");
    assert!(!loads(replace(5, 1, 3, "1,3")) && !loads(replace(5, 0, 2, "0,2,4")), "1 and 2 are gone");
}

/// What a look at a log of format 4 says, and whether its events can be read.
fn newer(version: u64, more: &str) -> (bool, Result<Vec<LogEvent>, LogError>) {
    let head = format!(
        r#"{{"type":"session","version":{version},"id":"new","createdAt":1,"isSeeded":false,"delegationDepth":0}}"#
    );
    let kind = if version == 4 { "system/message" } else { "user/message" };
    let rows = [head, event(0, "user/message", "{}", APPEND), event(1, kind, "{}", more)];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("session.v{version}.jsonl"));
    fs::write(&path, format!("{}\n", rows.join("\n"))).unwrap();
    (DshLogs::inspect_file(&path).unwrap().loadable, DshLogs::events_of_file(&path))
}

/// Found by reading every log in all ways: a log must not be called sound whose events cannot be handed over.
#[test]
fn what_can_be_loaded_in_newer_versions_can_be_walked() {
    for bad in [
        r#","surfaceOp":"""#,
        r#","surfaceOp":{"op":"replace","startSeq":0}"#,
        r#","surfaceOp":{"op":"replace","startSeq":0,"endSeq":0,"end":0}"#,
        r#","surfaceOp":"append","sourceEventSeqs":[1]"#,
        r#","surfaceOp":"append","sourceEventSeqs":[0,0]"#,
        r#","surfaceOp":"append","sourceEventSeqs":[[0,0]]"#,
        r#","surfaceOp":"append","sourceEventSeqs":{}"#,
    ] {
        for version in 2..=4 {
            let (loadable, events) = newer(version, bad);
            assert!(!loadable && events.is_err(), "{version} {bad}");
        }
    }
}

#[test]
fn replacements_are_read_by_the_names_of_their_version() {
    let seqs = r#","surfaceOp":{"op":"replace","startSeq":0,"endSeq":0},"sourceEventSeqs":[0]"#;
    for version in 3..=4 {
        let (loadable, events) = newer(version, seqs);
        let replaced = Some(SurfaceOp::Replace { start: Seq(0), end: Seq(0) });
        assert_eq!((loadable, events.unwrap()[1].surface), (true, replaced), "{version}");
    }
    let (loadable, events) = newer(2, seqs);
    assert!(!loadable && events.is_err());
}

#[test]
fn homes_without_sessions_are_empty() {
    let dir = tempfile::tempdir().unwrap();
    let logs = DshLogs::open(dir.path().join("missing"));
    assert!(logs.list().unwrap().is_empty());
    assert_eq!(logs.host_list().unwrap(), 0);
    assert_eq!(logs.inspect("x").unwrap_err().code(), "SESSION_NOT_FOUND");
    assert_eq!(logs.inspect("").unwrap_err().code(), "BAD_SESSION_ID");
    let spec = ChildSpec { cut: Cut::Empty, ..ChildSpec::default() };
    assert_eq!(logs.write_child("x", &spec).unwrap_err().code(), "SESSION_NOT_FOUND");
}

/// Directories, links to nowhere and FIFOs in a log's place are an error, not a wait.
#[test]
fn a_log_must_be_a_file() {
    let home = Home::of(&[]);
    fs::create_dir_all(home.sessions().join(PROJECT).join("made/session.jsonl")).unwrap();
    assert_eq!(home.logs().inspect("made").unwrap_err().code(), "io");
    assert!(home.logs().list().unwrap()[0].problem.is_some());
    assert_eq!(DshLogs::inspect_file(&fixture("nothing")).unwrap_err().code(), "io");
    let fifo = home.sessions().join(PROJECT).join("fifo");
    fs::create_dir(&fifo).unwrap();
    durable_fs::Dir::open_root(&fifo).unwrap().create_fifo(b"session.jsonl").unwrap();
    assert_eq!(home.logs().inspect("fifo").unwrap_err().code(), "io");
    assert_eq!(DshLogs::inspect_file(&fifo.join("session.jsonl")).unwrap_err().code(), "io");
    let list = home.logs().list().unwrap();
    assert!(list.len() == 2 && list.iter().all(|entry| entry.problem.is_some()));
    fs::remove_dir_all(fifo).unwrap();
}

/// Ids that differ in a lone surrogate are shown as the same text and are no twins.
#[test]
fn ids_that_look_alike_are_no_twins() {
    let mut home = Home::of(&[]);
    for (unit, folder) in [("ud800", "a~D800"), ("ud801", "a~D801")] {
        let head = HEADER.replace(r#""id":"made""#, &format!(r#""id":"a\{unit}""#));
        home.put(PROJECT, folder, "session.jsonl", head.as_bytes());
    }
    let list = home.logs().list().unwrap();
    assert_eq!((list.len(), list[0].id == list[1].id), (2, true));
    assert!(list.iter().all(|entry| entry.problem.is_none()), "{list:?}");
    assert_eq!(home.logs().host_list().unwrap(), 2);
}

/// A link in a circle, in the place of a project or of a session, is no session and hides none.
#[test]
fn links_that_lead_nowhere_hide_no_session() {
    let home = Home::of(&["01-plain-2turn"]);
    for place in ["circle".to_owned(), format!("{PROJECT}/circle")] {
        std::os::unix::fs::symlink("circle", home.sessions().join(&place)).unwrap();
        assert_eq!(home.logs().list().unwrap().len(), 1, "{place}");
        home.logs().load("plain2").unwrap();
        fs::remove_file(home.sessions().join(&place)).unwrap();
    }
}
