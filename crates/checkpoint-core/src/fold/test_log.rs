//! Logs for the tests of this module.
#![expect(clippy::needless_pass_by_value, reason = "payloads are written in place")]

use serde_json::{Value, json};

use crate::{LogEvent, Seq, SurfaceOp};

/// A log under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Vec<LogEvent>);

impl Log {
    pub(crate) fn events(&self) -> &[LogEvent] {
        &self.0
    }

    pub(crate) fn push(&mut self, kind: &str, data: Value) -> Seq {
        self.event(kind, data, None, None)
    }

    pub(crate) fn event(
        &mut self,
        kind: &str,
        data: Value,
        surface: Option<SurfaceOp>,
        sources: Option<Vec<Seq>>,
    ) -> Seq {
        let seq = Seq(self.0.len() as u64);
        self.0.push(LogEvent {
            seq,
            time: 0,
            kind: kind.into(),
            data: LogEvent::payload(&data).unwrap(),
            surface,
            sources,
            ignorable: false,
        });
        seq
    }

    pub(crate) fn user(&mut self, text: &str) -> Seq {
        self.event("user/message", user(text), Some(SurfaceOp::Append), None)
    }

    pub(crate) fn replace(&mut self, text: &str, start: Seq, end: Seq) -> Seq {
        self.event("user/message", user(text), Some(SurfaceOp::Replace { start, end }), Some(vec![start, end]))
    }

    /// A message of the model with one text and calls of these ids.
    pub(crate) fn assistant(&mut self, text: &str, calls: &[&str]) -> Seq {
        let mut content = vec![json!({"type": "text", "text": text})];
        content.extend(calls.iter().map(|id| json!({"type": "tool-call", "id": id, "name": "t", "arguments": "{}"})));
        self.assistant_with(Value::Array(content))
    }

    pub(crate) fn assistant_with(&mut self, content: Value) -> Seq {
        let source = json!({"kind": "model", "provider": "p", "model": "m"});
        let message = json!({"role": "assistant", "content": content, "source": source, "id": "m"});
        let data = json!({"turn": 1, "step": 1, "message": message});
        self.event("assistant/message", data, Some(SurfaceOp::Append), Some(vec![]))
    }

    pub(crate) fn result(&mut self, call: &str, text: &str) -> Seq {
        self.result_with(call, json!([{"type": "text", "text": text}]))
    }

    pub(crate) fn result_with(&mut self, call: &str, content: Value) -> Seq {
        self.result_event(call, content, false, json!({}))
    }

    pub(crate) fn result_event(&mut self, call: &str, content: Value, failed: bool, meta: Value) -> Seq {
        let block = json!({"type": "tool-result", "toolCallId": call, "content": content, "isError": failed});
        let message =
            json!({"source": {"kind": "tool", "callId": call}, "content": [block], "role": "user", "id": "r"});
        let data = json!({"turn": 1, "step": 1, "message": message, "meta": meta});
        self.event("tool/result", data, Some(SurfaceOp::Append), None)
    }
}

fn user(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "source": {"kind": "user"}, "role": "user", "id": "u"})
}
