//! The events that close an open turn: what DeepSeek Harness appends when it loads a log that a crash cut short
//! (004-11), and what a child needs whose cut lies inside a turn (003-07).

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonText, LogEvent, Seq, Step, SurfaceOp, Turn};

/// Why a turn is closed by somebody else than its agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClosersCause {
    /// The harness died: the log goes on after this.
    Interrupted,
    /// A child was cut off inside the turn, while the parent may have gone on. In the shapes of log format 4, which
    /// were read in sources and not tried with a host.
    Forked,
}

/// A call of a tool that the model asked for and that has no result.
#[derive(Clone, Debug)]
struct Pending {
    call: JsonText,
    /// The event that recorded its start.
    started: Option<Seq>,
}

/// What is open at the end of a log, found by looking at every event once, in order.
///
/// Takes memory for the open step only, so that a log of any length can be read through.
#[derive(Clone, Debug, Default)]
pub struct OpenTurn {
    last: Option<(Seq, i64)>,
    turn: Option<Turn>,
    step: Option<Step>,
    pending: Vec<Pending>,
}

#[derive(Deserialize)]
struct InTurn {
    turn: u32,
}

#[derive(Deserialize)]
struct InStep {
    step: u32,
}

#[derive(Deserialize)]
struct Called {
    #[serde(rename = "callId")]
    call: JsonText,
}

#[derive(Deserialize)]
struct Messaged<T> {
    message: T,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Sourced {
    source: Called,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: JsonText,
}

#[derive(Deserialize)]
struct Identified {
    id: JsonText,
}

/// The calls that an assistant's message asks for, in its order.
fn calls(event: &LogEvent) -> Vec<JsonText> {
    let Ok(read) = event.read::<Messaged<Content<'_>>>() else { return Vec::new() };
    let call = |block: &&RawValue| {
        let kind: Kind = serde_json::from_str(block.get()).ok()?;
        (kind.kind == *"tool-call").then(|| serde_json::from_str::<Identified>(block.get()).ok())?.map(|block| block.id)
    };
    read.message.content.iter().filter_map(call).collect()
}

impl OpenTurn {
    /// Looks at the next event. A payload of an unknown shape counts as one that says nothing.
    pub fn observe(&mut self, event: &LogEvent) {
        self.last = Some((event.seq, event.time));
        match &*event.kind {
            "turn/start" => {
                let turn = event.read::<InTurn>().map_or(0, |read| read.turn);
                *self = Self { last: self.last, turn: Some(Turn(turn)), ..Self::default() };
            }
            "turn/end" => *self = Self { last: self.last, ..Self::default() },
            "step/start" => {
                self.step = event.read::<InStep>().ok().map(|read| Step(read.step));
                self.pending.clear();
            }
            "step/end" => {
                self.step = None;
                self.pending.clear();
            }
            "assistant/message" if self.turn.is_some() && self.step.is_some() => {
                self.pending.extend(calls(event).into_iter().map(|call| Pending { call, started: None }));
            }
            "tool/call" if !self.pending.is_empty() => {
                let Ok(read) = event.read::<Called>() else { return };
                if let Some(pending) = self.pending.iter_mut().find(|pending| pending.call == read.call) {
                    pending.started = Some(event.seq);
                }
            }
            "tool/result" if !self.pending.is_empty() => {
                let Ok(read) = event.read::<Messaged<Sourced>>() else { return };
                self.pending.retain(|pending| pending.call != read.message.source.call);
            }
            _ => {}
        }
    }

    /// Passes over events that open and close nothing, up to and including `seq`.
    pub fn skip_to(&mut self, seq: Seq, time: i64) {
        self.last = Some((seq, time));
    }

    /// The turn that is open.
    pub fn turn(&self) -> Option<Turn> {
        self.turn
    }

    /// The events that close the open turn, none when there is none (004-11): for each unanswered call of the open step
    /// a result, in the model's order; the end of the step; the end of the turn. Positions go on after the last event
    /// seen, times are that event's.
    ///
    /// # Panics
    ///
    /// Never: what it writes is JSON.
    pub fn closers(&self, cause: ClosersCause) -> Vec<LogEvent> {
        let (Some(turn), Some((last, time))) = (self.turn, self.last) else { return Vec::new() };
        let mut seq = last.0;
        let mut closers = Vec::new();
        let mut close = |kind: &str, data: String, surface, sources| {
            closers.push(LogEvent {
                seq: Seq(seq + 1),
                time,
                kind: kind.into(),
                data: RawValue::from_string(data).expect("the texts above are JSON").into(),
                surface,
                sources,
                ignorable: false,
            });
            seq += 1;
        };
        if let Some(step) = self.step {
            for (place, pending) in self.pending.iter().enumerate() {
                let at = last.0 + 1 + place as u64;
                let data = result(turn, step, pending, at, cause);
                close("tool/result", data, Some(SurfaceOp::Append), pending.started.map(|seq| vec![seq]));
            }
            close("step/end", format!(r#"{{"turn":{turn},"step":{step}}}"#), None, None);
        }
        let kind = match cause {
            ClosersCause::Interrupted => "interrupted",
            ClosersCause::Forked => "forked",
        };
        close("turn/end", format!(r#"{{"turn":{turn},"reason":{{"kind":"{kind}"}}}}"#), None, None);
        closers
    }
}

/// The payload of the result of a call that has none. Key order and texts are the host's.
fn result(turn: Turn, step: Step, pending: &Pending, at: u64, cause: ClosersCause) -> String {
    const UNKNOWN: &str = "The tool call was interrupted after it was recorded, but no result was durably recorded. Its \
         outcome is unknown. Decide whether to retry from the tool semantics: retry only if the operation is read-only \
         or idempotent; if it may have side effects, first verify external state or ask the user. Do not retry blindly.";
    const NOT_STARTED: &str = "The tool call was interrupted before the Harness recorded it as started. Retry it if it \
         is still needed.";
    const FORKED_UNKNOWN: &str = "This conversation was forked after the tool call was recorded and before its result: \
         the call may have been completed by the conversation it was forked from. Its outcome is unknown here. Retry \
         only if the operation is read-only or idempotent; otherwise verify external state or ask the user first.";
    const FORKED_NOT_STARTED: &str =
        "This conversation was forked before the tool call was recorded as started. Retry it if it is still needed.";
    let started = pending.started.is_some();
    let (name, code) = if started {
        ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN")
    } else {
        ("ToolNotStartedError", "TOOL_NOT_STARTED")
    };
    let call = pending.call.to_json();
    let mut id = String::new();
    pending.call.write_escaped(&mut id);
    let mut data = format!(r#"{{"turn":{turn},"step":{step},"message":"#);
    let written = match cause {
        ClosersCause::Interrupted => {
            let text = if started { UNKNOWN } else { NOT_STARTED };
            write!(
                data,
                r#"{{"id":"interrupted-tool-result-{id}-{at}","role":"user","source":{{"kind":"tool","callId":{call}}},"content":[{{"type":"tool-result","toolCallId":{call},"isError":true,"content":[{{"type":"text","text":"{text}"}}]}}]}}"#
            )
        }
        ClosersCause::Forked => {
            let text = if started { FORKED_UNKNOWN } else { FORKED_NOT_STARTED };
            write!(
                data,
                r#"{{"id":"forked-tool-result-{id}-{at}","role":"tool","source":{{"kind":"tool","callId":{call}}},"toolCallId":{call},"isError":true,"content":[{{"type":"text","text":"{text}"}}]}}"#
            )
        }
    };
    written.expect("a text takes what is written to it");
    data + &format!(r#","error":{{"name":"{name}","code":"{code}"}}}}"#)
}

/// The events that close the turn that is open at the end of `events`: [`OpenTurn`] over a whole log.
pub fn open_turn_closers<'a>(events: impl IntoIterator<Item = &'a LogEvent>, cause: ClosersCause) -> Vec<LogEvent> {
    let mut open = OpenTurn::default();
    for event in events {
        open.observe(event);
    }
    open.closers(cause)
}

#[cfg(test)]
#[path = "closers_tests.rs"]
mod tests;
