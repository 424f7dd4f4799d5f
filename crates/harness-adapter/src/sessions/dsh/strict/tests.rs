//! Smallest logs for what generated ones do not reach: repairs, format 4, and how much is reported.

use checkpoint_core::LogEvent;
use serde_json::value::RawValue;

use super::*;

/// Events from `(type, payload)`; messages are appended.
fn log(rows: &[(&str, &str)]) -> Vec<LogEvent> {
    let events = rows.iter().enumerate().map(|(at, (kind, data))| LogEvent {
        seq: Seq(at as u64),
        time: 0,
        kind: (*kind).into(),
        data: RawValue::from_string((*data).to_owned()).unwrap().into(),
        surface: (kind.ends_with("/message") || *kind == "tool/result").then_some(SurfaceOp::Append),
        sources: None,
        ignorable: false,
    });
    events.collect()
}

fn problems(events: &[LogEvent]) -> Vec<Problem> {
    let mut strict = Strict::new();
    for event in events {
        strict.take(event);
    }
    strict.finish()
}

fn codes(events: &[LogEvent]) -> Vec<(&'static str, Option<u64>)> {
    problems(events).iter().map(|problem| (problem.code, problem.seq)).collect()
}

const TURN: (&str, &str) = ("turn/start", r#"{"turn":1}"#);
const STEP: (&str, &str) = ("step/start", r#"{"turn":1,"step":1}"#);
const STEP_END: (&str, &str) = ("step/end", r#"{"turn":1,"step":1}"#);
const INTERRUPTED: (&str, &str) = ("turn/end", r#"{"turn":1,"reason":{"kind":"interrupted"}}"#);
const COMPLETED: (&str, &str) = ("turn/end", r#"{"turn":1,"reason":{"kind":"completed"}}"#);
const ASKS: (&str, &str) = (
    "assistant/message",
    r#"{"turn":1,"step":1,"message":{"content":[{"type":"tool-call","id":"c","name":"bash","arguments":"{}"}]}}"#,
);
const SEED_ENDS: (&str, &str) = ("session/end-seed", "{}");

#[test]
fn nothing_and_a_lone_end_of_a_seed_are_sound() {
    assert_eq!(codes(&[]), []);
    assert_eq!(codes(&log(&[SEED_ENDS, SEED_ENDS])), []);
}

#[test]
fn what_is_open_is_told_apart_from_what_is_broken() {
    let events = log(&[TURN, STEP, ASKS]);
    assert_eq!(codes(&events), [("open-turn", Some(0)), ("open-step", Some(1)), ("open-call", Some(2))]);
    assert!(problems(&events).iter().all(|problem| problem.severity == Severity::Open));
}

#[test]
fn a_call_that_never_began_is_answered_only_by_the_words_of_a_repair() {
    let result = |id: &str, code: &str| {
        format!(
            r#"{{"turn":1,"step":1,"message":{{"id":"{id}","role":"user","source":{{"kind":"tool","callId":"c"}},
            "content":[{{"type":"tool-result","toolCallId":"c","isError":true,"content":[]}}]}},
            "error":{{"name":"ToolNotStartedError","code":"{code}"}}}}"#
        )
    };
    let whole = |data: &str| codes(&log(&[TURN, STEP, ASKS, ("tool/result", data), STEP_END, INTERRUPTED]));
    assert_eq!(whole(&result("interrupted-tool-result-c-3", "TOOL_NOT_STARTED")), []);
    assert_eq!(whole(&result("forked-tool-result-c-3", "TOOL_NOT_STARTED")), []);
    for wrong in [result("interrupted-tool-result-d-3", "TOOL_NOT_STARTED"), result("interrupted-tool-result-c-3", "X")]
    {
        assert_eq!(whole(&wrong), [("result-before-call", Some(3))]);
    }
}

#[test]
fn format_4_names_the_call_in_the_message_and_has_one_word_for_nested_calls() {
    let dispatch = r#"{"rootCallId":"c","parentCallId":"c","subCallId":"c:ptc:1","name":"read","arguments":{"a":1}}"#;
    let settled = r#"{"rootCallId":"c","parentCallId":"c","subCallId":"c:ptc:1","name":"read","arguments":{ "a": 1 },
        "isError":false,"content":[]}"#;
    let mut events = log(&[
        ("system/message", r#"{"turn":1,"step":1,"message":{}}"#),
        TURN,
        STEP,
        ("system/message", r#"{"turn":1,"step":1,"message":{}}"#),
        ASKS,
        ("tool/call", r#"{"turn":1,"step":1,"callId":"c","name":"bash","arguments":"{}"}"#),
        ("tool/ptc-dispatch-start", dispatch),
        ("tool/ptc-dispatch", settled),
        ("tool/result", r#"{"turn":1,"step":1,"message":{"id":"r","role":"tool","toolCallId":"c","content":[]}}"#),
        STEP_END,
        COMPLETED,
    ]);
    events[8].sources = Some(vec![Seq(5)]);
    assert_eq!(codes(&events), [("outside-step", Some(0))], "format 4 has its system message inside a step");
    events[6].data = events[7].data.clone();
    events[7].kind = "goal/change".into();
    assert_eq!(codes(&events), [("outside-step", Some(0)), ("dispatch-unsettled", Some(8))]);
}

#[test]
fn the_system_message_stays_at_the_head() {
    let user = ("user/message", r#"{"source":{"kind":"user"}}"#);
    let system = ("system/message", r#"{"turn":1,"step":1}"#);
    let mut events = log(&[TURN, STEP, system, user, system, user, STEP_END, COMPLETED]);
    assert_eq!(codes(&events), []);
    let replace = |event: &mut LogEvent, start, end| {
        event.surface = Some(SurfaceOp::Replace { start: Seq(start), end: Seq(end) });
        event.sources = Some((start..=end).map(Seq).collect());
    };
    replace(&mut events[4], 2, 2);
    assert_eq!(codes(&events), [], "another one takes its place");
    replace(&mut events[5], 4, 4);
    assert_eq!(codes(&events), [("system-head", Some(5))]);
    replace(&mut events[4], 2, 3);
    replace(&mut events[5], 3, 3);
    assert_eq!(codes(&events), [("system-head", Some(4)), ("surface-node", Some(5))]);
    assert_eq!(codes(&log(&[TURN, STEP, user, system, STEP_END, COMPLETED])), [("system-head", Some(3))]);
}

#[test]
fn what_was_cut_off_by_a_crash_is_settled_by_the_end_of_the_seed() {
    let compaction = ("compaction/start", r#"{"compactionId":"k","turn":1}"#);
    let command = ("command/run", r#"{"commandId":"cmd-1","name":"compact","source":{"kind":"user"}}"#);
    let turn_2 = ("turn/start", r#"{"turn":2}"#);
    let turn_2_end = ("turn/end", r#"{"turn":2,"reason":{"kind":"completed"}}"#);
    let repaired = [command, TURN, compaction, INTERRUPTED];
    assert_eq!(codes(&log(&repaired)), [("open-command", Some(0)), ("open-compaction", Some(2))]);
    assert_eq!(codes(&log(&[&repaired[..], &[SEED_ENDS, turn_2, turn_2_end]].concat())), []);
    assert_eq!(
        codes(&log(&[&repaired[..], &[turn_2, turn_2_end]].concat())),
        [("open-command", Some(0)), ("compaction-crosses-turn", Some(4))],
        "without it the session went on over an open compaction"
    );
    let crossed = [TURN, compaction, COMPLETED];
    assert_eq!(codes(&log(&crossed)), [("compaction-crosses-turn", Some(2))]);
    assert_eq!(codes(&log(&[&crossed[..], &[SEED_ENDS]].concat())), [], "as format 4's reader has it");
}

#[test]
fn an_end_of_a_seed_inside_a_turn_leaves_the_turn_open() {
    let events = log(&[TURN, STEP, ("session/end-seed", r#"{"inherited":true}"#), STEP_END, INTERRUPTED]);
    assert_eq!(codes(&events), []);
    assert_eq!(codes(&log(&[("session/end-seed", r#"{"inherited":false}"#)])), [("end-seed", Some(0))]);
}

#[test]
fn a_replaced_message_is_gone_and_its_replacement_keeps_its_place() {
    let user = ("user/message", r#"{"source":{"kind":"user"}}"#);
    let mut events = log(&[user; 7]);
    let replace = |event: &mut LogEvent, start, end, sources: &[u64]| {
        event.surface = Some(SurfaceOp::Replace { start: Seq(start), end: Seq(end) });
        event.sources = Some(sources.iter().copied().map(Seq).collect());
    };
    // 0 1 2 | 3 replaces 0..1 | 4 replaces 3..2: start after end as numbers, not as positions.
    replace(&mut events[3], 0, 1, &[0, 1]);
    replace(&mut events[4], 3, 2, &[2, 3]);
    assert_eq!(codes(&events), []);
    replace(&mut events[5], 3, 4, &[3, 4]);
    replace(&mut events[6], 5, 4, &[4, 5]);
    assert_eq!(codes(&events), [("surface-node", Some(5)), ("surface-node", Some(6))]);
}

#[test]
fn one_mistake_is_told_once_and_many_are_counted() {
    let start = ("turn/start", r#"{"turn":7}"#);
    let end = ("turn/end", r#"{"turn":7,"reason":{"kind":"completed"}}"#);
    let next = ("turn/start", r#"{"turn":8}"#);
    assert_eq!(codes(&log(&[start, end, next])), [("turn-number", Some(0)), ("open-turn", Some(2))]);
    let found = problems(&log(&vec![COMPLETED; LISTED + 7]));
    assert_eq!(found.len(), LISTED + 1);
    let last = found.last().unwrap();
    assert_eq!((last.code, last.seq, last.message.as_str()), ("more-problems", None, "7 more problems are not listed"));
}

#[test]
fn payloads_of_any_shape_are_problems_and_never_a_panic() {
    let kinds = [
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "assistant/chunk",
        "assistant/message",
        "tool/call",
        "tool/result",
        "tool/code-dispatch-start",
        "tool/code-dispatch",
        "user/message",
        "request/header",
        "llm/retry",
        "llm/retry-started",
        "session/title",
        "command/run",
        "command/done",
        "compaction/start",
        "compaction/summary",
        "compaction/prune",
        "compaction/end",
    ];
    for kind in kinds {
        for data in ["null", "[]", "{}", "7", r#"{"turn":-1,"step":1e99}"#, r#"{"message":{"content":[null]}}"#] {
            let found = problems(&log(&[TURN, STEP, (kind, data)]));
            assert!(found.iter().any(|problem| problem.code == "malformed" && problem.seq == Some(2)), "{kind} {data}");
        }
    }
}

#[test]
fn half_a_character_in_a_call_is_no_mistake() {
    let asks = r#"{"turn":1,"step":1,"message":{"content":[{"type":"tool-call","id":"c","name":"bash","arguments":"\ud83d"}]}}"#;
    let call = |arguments: &str| {
        let data = format!(r#"{{"turn":1,"step":1,"callId":"c","name":"bash","arguments":"{arguments}"}}"#);
        codes(&log(&[TURN, STEP, ("assistant/message", asks), ("tool/call", &data)]))
    };
    let open = [("open-turn", Some(0)), ("open-step", Some(1)), ("open-call", Some(3))];
    assert_eq!(call(r"\uD83D"), open);
    assert_eq!(call(r"\ud83e")[2], ("call-mismatch", Some(3)));
}

/// The number after the largest one was computed without a check.
#[test]
fn the_largest_numbers_are_no_more_than_wrong() {
    let largest = u64::MAX;
    let header = ("request/header", r#"{"header":{"config":{"provider":"p","model":"m"}}}"#);
    let retry = format!(r#"{{"retryId":"r","turn":1,"step":1,"provider":"p","policyKey":"k","retry":{largest}}}"#);
    let retry = ("llm/retry", retry.as_str());
    assert_eq!(codes(&log(&[TURN, STEP, header, retry, retry, STEP_END, COMPLETED])), [("retry-sequence", Some(3))]);
    let turn = format!(r#"{{"turn":{largest}}}"#);
    let end = format!(r#"{{"turn":{largest},"reason":{{"kind":"completed"}}}}"#);
    let events = log(&[("turn/start", &turn), ("turn/end", &end), TURN]);
    assert_eq!(codes(&events)[..2], [("turn-number", Some(0)), ("turn-number", Some(2))]);
}
