//! Tool calls of the open step, and the calls nested in them.

use std::collections::{BTreeMap, BTreeSet};

use checkpoint_core::{JsonText, LogEvent, Seq};
use serde_json::{Value, value::RawValue};

use super::{Problems, Rule, payload};

#[derive(Debug)]
struct Call {
    asked: Seq,
    begun: Option<Seq>,
    name: JsonText,
    arguments: JsonText,
    nested: Vec<JsonText>,
}

#[derive(Debug)]
struct Nested {
    root: JsonText,
    parent: JsonText,
    name: JsonText,
    arguments: Option<String>,
    started: Seq,
    settled: bool,
}

/// The calls that the assistant messages of the open step asked for.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: BTreeMap<JsonText, Call>,
    answered: BTreeSet<JsonText>,
    nested: BTreeMap<JsonText, Nested>,
}

impl Calls {
    /// An assistant message asks for calls.
    pub(super) fn asked(&mut self, event: &LogEvent, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::AssistantMessage>(event) else { return };
        for block in data.message.content.into_iter().filter(|block| block.kind == *"tool-call") {
            let (Some(id), Some(name), Some(arguments)) = (block.id, block.name, block.arguments) else {
                problems.add(Rule::Malformed, event.seq, "a call lacks its id, name or arguments".to_owned());
                continue;
            };
            if id.is_empty() || self.open.contains_key(&id) || self.answered.contains(&id) {
                problems.add(Rule::RepeatedCall, event.seq, format!("call \"{id}\" is asked for again"));
                continue;
            }
            let call = Call { asked: event.seq, begun: None, name, arguments, nested: Vec::new() };
            self.open.insert(id, call);
        }
    }

    /// A call begins.
    pub(super) fn begun(&mut self, event: &LogEvent, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::ToolCall>(event) else { return };
        let id = &data.call_id;
        let Some(call) = self.open.get_mut(id) else {
            let rule = if self.answered.contains(id) { Rule::CallTwice } else { Rule::UnknownCall };
            problems.add(rule, event.seq, format!("no message of this step still waits for call \"{id}\""));
            return;
        };
        if let Some(begun) = call.begun {
            problems.add(Rule::CallTwice, event.seq, format!("call \"{id}\" began at {begun}"));
        } else if call.name != data.name || call.arguments != data.arguments {
            let message = format!("call \"{id}\" differs from what message {} asked for", call.asked);
            problems.add(Rule::CallMismatch, event.seq, message);
        }
        call.begun.get_or_insert(event.seq);
    }

    /// A call is answered. Not for results that replace one.
    pub(super) fn answered(&mut self, event: &LogEvent, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::ToolResult>(event) else { return };
        let Some(id) = data.message.call() else {
            problems.add(Rule::Malformed, event.seq, "the result does not name one call".to_owned());
            return;
        };
        let Some(call) = self.open.remove(id) else {
            let (rule, what) = if self.answered.contains(id) {
                (Rule::AnsweredTwice, "has its result already")
            } else {
                (Rule::UnknownCall, "was not asked for in this step")
            };
            problems.add(rule, event.seq, format!("call \"{id}\" {what}"));
            return;
        };
        self.answered.insert(id.clone());
        match call.begun {
            Some(begun) => {
                if !event.sources.as_ref().is_some_and(|sources| sources.contains(&begun)) {
                    let message = format!("the result of call \"{id}\" does not cite its tool/call at {begun}");
                    problems.add(Rule::ResultCitation, event.seq, message);
                }
            }
            None if says_never_started(event, &data, id) => {}
            None => {
                let message = format!("call \"{id}\" has a result but never began");
                problems.add(Rule::ResultBeforeCall, event.seq, message);
            }
        }
        // What ran inside a call that was interrupted is as unknown as the call itself.
        let unknown = data.error.as_ref().is_some_and(|error| error.code == *"TOOL_OUTCOME_UNKNOWN");
        for nested in call.nested {
            let Some(it) = self.nested.remove(&nested) else { continue };
            if !it.settled && !unknown {
                let message =
                    format!("nested call \"{nested}\" of {}, begun at {}, never settled", it.name, it.started);
                problems.add(Rule::DispatchUnsettled, event.seq, message);
            }
        }
    }

    /// A nested call starts.
    pub(super) fn nested_start(&mut self, event: &LogEvent, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Dispatch>(event) else { return };
        let (root, parent, id) = (&data.root_call_id, &data.parent_call_id, &data.sub_call_id);
        if self.nested.contains_key(id) {
            problems.add(Rule::DispatchTwice, event.seq, format!("nested call \"{id}\" starts again"));
            return;
        }
        let parent_known = parent == root || self.nested.get(parent).is_some_and(|it| it.root == *root);
        let running = self.open.get_mut(root).filter(|call| call.begun.is_some());
        let Some(call) = running.filter(|_| parent_known && !id.is_empty()) else {
            let message = format!("nested call \"{id}\" runs in \"{parent}\" of call \"{root}\", which does not run");
            problems.add(Rule::DispatchPlace, event.seq, message);
            return;
        };
        call.nested.push(id.clone());
        let nested = Nested {
            root: root.clone(),
            parent: parent.clone(),
            name: data.name,
            arguments: data.arguments.map(|raw| raw.get().to_owned()),
            started: event.seq,
            settled: false,
        };
        self.nested.insert(data.sub_call_id, nested);
    }

    /// A nested call settles.
    pub(super) fn nested_end(&mut self, event: &LogEvent, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Dispatch>(event) else { return };
        let id = &data.sub_call_id;
        let Some(nested) = self.nested.get_mut(id) else {
            problems.add(Rule::DispatchMismatch, event.seq, format!("nested call \"{id}\" does not run"));
            return;
        };
        if nested.settled {
            problems.add(Rule::DispatchTwice, event.seq, format!("nested call \"{id}\" settles again"));
        } else if nested.root != data.root_call_id
            || nested.parent != data.parent_call_id
            || nested.name != data.name
            || !same_json(nested.arguments.as_deref(), data.arguments.map(RawValue::get))
        {
            let message = format!("nested call \"{id}\" differs from its start at {}", nested.started);
            problems.add(Rule::DispatchMismatch, event.seq, message);
        }
        nested.settled = true;
    }

    /// The step ends, at `at`.
    pub(super) fn close(&mut self, at: Seq, problems: &mut Problems) {
        for (id, call) in &self.open {
            let message = format!("call \"{id}\", asked for at {}, has no result", call.asked);
            problems.add(Rule::UnansweredCall, at, message);
        }
        *self = Self::default();
    }

    /// The log ends.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (id, call) in self.open {
            problems.add(Rule::OpenCall, call.begun.unwrap_or(call.asked), format!("call \"{id}\" has no result"));
        }
        for (id, nested) in self.nested.into_iter().filter(|(_, nested)| !nested.settled) {
            problems.add(Rule::OpenDispatch, nested.started, format!("nested call \"{id}\" has not settled"));
        }
    }
}

/// Whether the result is the one that the host's repair or a fork writes for a call that never began: exactly that error,
/// an id made of the cause and the call, and no sources.
fn says_never_started(event: &LogEvent, data: &payload::ToolResult, call: &JsonText) -> bool {
    let ids = ["interrupted", "forked"].map(|cause| JsonText::from(&*format!("{cause}-tool-result-")));
    let known = ids.iter().any(|start| {
        let rest = data.message.id.units().strip_prefix(start.units()).and_then(|id| id.strip_prefix(call.units()));
        rest.is_some_and(|rest| rest.first() == Some(&u16::from(b'-')))
    });
    let error = |e: &payload::ResultError| e.name == *"ToolNotStartedError" && e.code == *"TOOL_NOT_STARTED";
    known && event.sources.is_none() && data.message.failed() && data.error.as_ref().is_some_and(error)
}

/// Whether two texts are the same JSON value; absent is only like absent.
fn same_json(a: Option<&str>, b: Option<&str>) -> bool {
    let parse = |text| serde_json::from_str::<Value>(text).ok();
    match (a, b) {
        (Some(a), Some(b)) => a == b || parse(a).is_some_and(|a| Some(a) == parse(b)),
        (None, None) => true,
        _ => false,
    }
}
