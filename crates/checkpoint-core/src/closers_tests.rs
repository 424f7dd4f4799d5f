use super::*;

/// A log of these types and payloads, one millisecond apart.
fn log(events: &[(&str, &str)]) -> Vec<LogEvent> {
    let event = |(at, (kind, data)): (usize, &(&str, &str))| LogEvent {
        seq: Seq(at as u64),
        time: 1000 + i64::try_from(at).unwrap(),
        kind: (*kind).into(),
        data: RawValue::from_string((*data).to_owned()).unwrap().into(),
        surface: None,
        sources: None,
        ignorable: false,
    };
    events.iter().enumerate().map(event).collect()
}

const START: (&str, &str) = ("turn/start", r#"{"turn":3}"#);
const END: (&str, &str) = ("turn/end", r#"{"turn":3,"reason":{"kind":"completed"}}"#);
const STEP: (&str, &str) = ("step/start", r#"{"turn":3,"step":2}"#);
const STEP_END: (&str, &str) = ("step/end", r#"{"turn":3,"step":2}"#);
const ASKS: (&str, &str) = (
    "assistant/message",
    r#"{"turn":3,"step":2,"message":{"content":[{"type":"text","text":"x"},{"type":"tool-call","id":"a"},{"type":"tool-call","id":"b"}]}}"#,
);
const CALL_A: (&str, &str) = ("tool/call", r#"{"turn":3,"step":2,"callId":"a"}"#);
const RESULT_A: (&str, &str) = ("tool/result", r#"{"message":{"source":{"kind":"tool","callId":"a"}}}"#);
const RESULT_B: (&str, &str) = ("tool/result", r#"{"message":{"source":{"kind":"tool","callId":"b"}}}"#);

fn kinds(events: &[(&str, &str)]) -> Vec<String> {
    let closers = open_turn_closers(&log(events), ClosersCause::Interrupted);
    for (place, closer) in closers.iter().enumerate() {
        assert_eq!(closer.seq.0, (events.len() + place) as u64, "positions go on");
        assert_eq!(closer.time, 1000 + i64::try_from(events.len()).unwrap() - 1, "the time of the last event");
    }
    closers.iter().map(|closer| closer.kind.to_string()).collect()
}

#[test]
fn tn14_a_balanced_or_empty_log_needs_no_closers() {
    assert!(kinds(&[]).is_empty());
    assert!(kinds(&[START, STEP, STEP_END, END]).is_empty());
    assert!(kinds(&[START, END, ("session/title", "{}")]).is_empty());
}

#[test]
fn tn16_an_open_turn_alone_gets_its_end() {
    assert_eq!(kinds(&[START]), ["turn/end"]);
    assert_eq!(kinds(&[START, STEP, ASKS, STEP_END]), ["turn/end"]);
}

#[test]
fn tn17_an_open_step_ends_first() {
    assert_eq!(kinds(&[START, STEP]), ["step/end", "turn/end"]);
}

#[test]
fn tn19_an_answered_call_gets_nothing() {
    assert_eq!(kinds(&[START, STEP, ASKS, CALL_A, RESULT_A, RESULT_B]), ["step/end", "turn/end"]);
}

#[test]
fn tn20_calls_of_a_closed_step_or_an_earlier_turn_get_nothing() {
    assert_eq!(kinds(&[START, STEP, ASKS, STEP_END, STEP]), ["step/end", "turn/end"]);
    assert_eq!(kinds(&[START, STEP, ASKS, END, START, STEP]), ["step/end", "turn/end"]);
}

#[test]
fn c004_11_a_recorded_call_that_nobody_asked_for_gets_nothing() {
    assert_eq!(kinds(&[START, STEP, CALL_A]), ["step/end", "turn/end"]);
}

#[test]
fn tn22_unanswered_calls_are_closed_in_the_models_order() {
    let closers = open_turn_closers(&log(&[START, STEP, ASKS]), ClosersCause::Interrupted);
    let data: Vec<&str> = closers.iter().map(|closer| closer.data.get()).collect();
    assert!(data[0].contains(r#""callId":"a""#) && data[0].contains("interrupted-tool-result-a-3"), "{}", data[0]);
    assert!(data[1].contains(r#""callId":"b""#) && data[1].contains("interrupted-tool-result-b-4"), "{}", data[1]);
    assert!(data[0].contains("TOOL_NOT_STARTED") && closers[0].sources.is_none());
    assert_eq!(closers[2].kind.as_ref(), "step/end");
    assert_eq!(data[3], r#"{"turn":3,"reason":{"kind":"interrupted"}}"#);
}

#[test]
fn tn23_a_recorded_call_has_an_unknown_outcome_and_is_cited() {
    let closers = open_turn_closers(&log(&[START, STEP, ASKS, CALL_A, RESULT_B]), ClosersCause::Interrupted);
    assert_eq!(closers.len(), 3);
    assert!(closers[0].data.get().contains("TOOL_OUTCOME_UNKNOWN"));
    assert_eq!(closers[0].sources, Some(vec![Seq(3)]));
    assert_eq!(closers[0].surface, Some(SurfaceOp::Append));
}

/// FORMAT § 9: the shapes of version 4.
#[test]
fn a_fork_closes_with_results_of_the_role_tool() {
    let closers = open_turn_closers(&log(&[START, STEP, ASKS, CALL_A]), ClosersCause::Forked);
    let data: Vec<&str> = closers.iter().map(|closer| closer.data.get()).collect();
    assert!(data[0].contains(r#""id":"forked-tool-result-a-4","role":"tool""#), "{}", data[0]);
    assert!(data[0].contains("TOOL_OUTCOME_UNKNOWN") && data[1].contains("TOOL_NOT_STARTED"));
    assert_eq!(data[3], r#"{"turn":3,"reason":{"kind":"forked"}}"#);
}

/// Call ids come from models: quotes and lone surrogates in them must not break the closer.
#[test]
fn odd_call_ids_are_written_as_they_were() {
    let asks = r#"{"message":{"content":[{"type":"tool-call","id":"q\"\ud800"}]}}"#;
    let closers = open_turn_closers(&log(&[START, STEP, ("assistant/message", asks)]), ClosersCause::Interrupted);
    assert!(closers[0].data.get().contains(r#""callId":"q\"\ud800""#), "{}", closers[0].data.get());
    assert!(closers[0].data.get().contains(r#"interrupted-tool-result-q\"\ud800-3"#));
}
