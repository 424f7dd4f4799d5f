//! Turns: steps, what the model streams, calls and what they give.

use super::{
    Answer, Call, Fault, Step, Turn, TurnEnd,
    build::{Builder, quoted},
};

impl Builder {
    /// `goes_on`: the next turn follows at once.
    pub(super) fn one_turn(&mut self, turn: &Turn, goes_on: bool) {
        self.turn += if self.wrong(Fault::TurnSkipped) { 2 } else { 1 };
        (self.step, self.headed) = (0, self.headed && !turn.header);
        let number = self.turn;
        if self.wrong(Fault::NoTurnNumber) {
            // The turn's number stays as it was, so the next event is the right one.
            self.push("turn/start", "{}".to_owned());
        }
        self.push("turn/start", format!(r#"{{"turn":{number}}}"#));
        for (at, step) in turn.steps.iter().enumerate() {
            self.one_step(turn, step, at + 1 == turn.steps.len());
        }
        if let Some(todos) = turn.todos {
            let todos: Vec<_> = (0..todos).map(|n| format!(r#"{{"content":"do {n}","status":"pending"}}"#)).collect();
            self.push("todo/write", format!(r#"{{"todos":[{}]}}"#, todos.join(",")));
        }
        if let Some(count) = turn.compaction {
            self.compaction(count, Some(number));
        }
        let end = format!(r#"{{"turn":{number},"reason":{}}}"#, turn.end.reason());
        if !(goes_on && self.wrong(Fault::TurnEndMissing)) {
            self.push("turn/end", end.clone());
        }
        if let Some(end) = self.late.take() {
            self.push("compaction/end", end);
        }
        if self.wrong(Fault::TurnEndTwice) {
            self.push("turn/end", end);
        }
    }

    fn one_step(&mut self, turn: &Turn, step: &Step, last: bool) {
        self.step += if self.wrong(Fault::StepSkipped) { 2 } else { 1 };
        let place = format!(r#""turn":{},"step":{}"#, self.turn, self.step);
        self.push("step/start", format!("{{{place}}}"));
        if self.step == 1 {
            let (id, text) = (self.id("prompt"), quoted(&turn.prompt));
            let message = format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"source":{{"kind":"user"}},"role":"user","id":"{id}"}}"#
            );
            let seq = self.append("user/message", message, None);
            self.human.push(seq);
            if turn.context {
                self.notice("Where you are.");
            }
        }
        if !self.headed {
            self.header(if self.turn == 1 { "initial" } else { "change" });
            let context = r#"{"provider":"deepseek-official","model":"deepseek-v4-flash","contextWindow":1000000}"#;
            self.push("request/context", context.to_owned());
            self.headed = true;
        }
        if self.wrong(Fault::LateSystem) {
            let data = format!(r#"{{{place},"message":{{"role":"system","id":"late","content":[]}}}}"#);
            self.append("system/message", data, None);
        }
        self.retries(step.retries, &place);
        let (chunks, blocks) = self.stream(step, &place);
        if last && turn.end == TurnEnd::Error && step.calls.is_empty() {
            // The provider failed in the stream: there is no message.
            self.end_step(&place, last);
            return;
        }
        self.answer(step, &place, chunks, &blocks, last && turn.end == TurnEnd::Aborted && step.calls.is_empty());
        let result = self.surface.iter().rposition(|(_, is_result)| *is_result);
        if let Some(at) = result.filter(|_| step.prune) {
            self.prune(at);
        }
        self.end_step(&place, last);
    }

    fn end_step(&mut self, place: &str, last: bool) {
        let missing = self.wrong(if last { Fault::StepEndMissing } else { Fault::StepInStep });
        if !missing {
            self.push("step/end", format!("{{{place}}}"));
        }
        if self.wrong(Fault::StepEndTwice) {
            self.push("step/end", format!("{{{place}}}"));
        }
        if self.wrong(Fault::ChunkOutside) {
            self.push("assistant/chunk", format!(r#"{{{place},"chunk":{{"type":"usage","usage":{{}}}}}}"#));
        }
    }

    fn retries(&mut self, count: u8, place: &str) {
        let id = self.id("retry");
        for number in 1..=u64::from(count) {
            let (mut id, mut number, mut provider) = (id.clone(), number, "deepseek-official");
            let other = format!(r#""turn":{},"step":{}"#, self.turn, self.step + 1);
            // Only the last one, or the next would be wrong as well.
            let last = number == u64::from(count);
            if last && number == 1 && self.wrong(Fault::RetryOfOther) {
                provider = "another";
            }
            if last && self.wrong(Fault::RetrySkipped) {
                number += 1;
            }
            if last && number > 1 && self.wrong(Fault::RetryRenamed) {
                id = self.id("retry");
            }
            let place_of_it = if last && self.wrong(Fault::RetryElsewhere) { &other } else { place };
            let failure = r#"{"message":"too many requests","code":"RATE_LIMIT","status":429}"#;
            self.push(
                "llm/retry",
                format!(
                    r#"{{"retryId":"{id}",{place_of_it},"provider":"{provider}","mode":"normal","policyKey":"rate","retry":{number},"maxRetries":9,"delayMs":500,"failure":{failure}}}"#
                ),
            );
            if place_of_it != place {
                continue;
            }
            let started = |number: u64| format!(r#"{{"retryId":"{id}",{place},"retry":{number}}}"#);
            if self.wrong(Fault::RetryUnscheduled) {
                self.push("llm/retry-started", started(number + 1));
            }
            self.push("llm/retry-started", started(number));
            if self.wrong(Fault::RetryStartedTwice) {
                self.push("llm/retry-started", started(number));
            }
        }
    }

    /// The chunks of a model's answer, and its blocks. The chunks' seqs go into the message.
    fn stream(&mut self, step: &Step, place: &str) -> (Vec<u64>, Vec<String>) {
        let (mut seqs, mut blocks, mut index) = (Vec::new(), Vec::new(), 0);
        let mut chunk = |builder: &mut Self, chunk: String| {
            let place_of_it = if builder.wrong(Fault::ChunkOfOtherStep) {
                format!(r#""turn":{},"step":{}"#, builder.turn, builder.step + 1)
            } else {
                place.to_owned()
            };
            let seq = builder.push("assistant/chunk", format!(r#"{{{place_of_it},"chunk":{chunk}}}"#));
            seqs.push(seq);
        };
        for (kind, pieces) in [("reasoning", &step.reasoning), ("text", &step.text)] {
            if pieces.is_empty() {
                continue;
            }
            chunk(self, format!(r#"{{"type":"block-start","index":{index},"blockType":"{kind}"}}"#));
            for piece in pieces {
                chunk(self, format!(r#"{{"type":"{kind}-delta","index":{index},"text":{}}}"#, quoted(piece)));
            }
            let block = format!(r#"{{"type":"{kind}","text":{}}}"#, quoted(&pieces.concat()));
            chunk(self, format!(r#"{{"type":"block-end","index":{index},"block":{block}}}"#));
            blocks.push(block);
            index += 1;
        }
        for (at, call) in step.calls.iter().enumerate() {
            let id = format!("call_{}_{}_{at}", self.turn, self.step);
            chunk(self, format!(r#"{{"type":"block-start","index":{index},"blockType":"tool-call"}}"#));
            for (n, piece) in call.pieces.iter().enumerate() {
                let name = if n == 0 { r#","name":"bash""# } else { "" };
                let piece = quoted(piece);
                chunk(
                    self,
                    format!(
                        r#"{{"type":"tool-call-delta","index":{index},"id":"{id}"{name},"argumentsDelta":{piece}}}"#
                    ),
                );
            }
            let block = asked(&id, call);
            chunk(self, format!(r#"{{"type":"block-end","index":{index},"block":{block}}}"#));
            blocks.push(block);
            index += 1;
        }
        chunk(self, r#"{"type":"usage","usage":{"inputTokens":41,"outputTokens":10}}"#.to_owned());
        chunk(self, r#"{"type":"finish","reason":{"kind":"stop"}}"#.to_owned());
        (seqs, blocks)
    }

    fn answer(&mut self, step: &Step, place: &str, chunks: Vec<u64>, blocks: &[String], interrupted: bool) {
        let mut blocks = blocks.to_vec();
        if !step.calls.is_empty() && self.wrong(Fault::AskedTwice) {
            blocks.extend(blocks.last().cloned());
        }
        let (id, content) = (self.id("answer"), blocks.join(","));
        let source = r#"{"kind":"model","provider":"deepseek-official","model":"deepseek-v4-flash"}"#;
        let message = format!(r#"{{"role":"assistant","content":[{content}],"source":{source},"id":"{id}"}}"#);
        let mark = if interrupted { r#","interrupted":true"# } else { "" };
        self.append("assistant/message", format!(r#"{{{place},"message":{message}{mark}}}"#), Some(chunks));
        let mut begun = Vec::new();
        for (at, call) in step.calls.iter().enumerate() {
            let id = format!("call_{}_{}_{at}", self.turn, self.step);
            if self.wrong(Fault::CallUnknown) {
                self.push("tool/call", begins(place, &format!("{id}x"), &call.pieces.concat()));
            }
            let seq = self.begin(place, &id, call);
            if step.parallel {
                begun.push((id, seq, call));
            } else {
                self.nested(&id, call, seq.is_some());
                self.result(place, &id, seq, call);
            }
        }
        for (id, seq, call) in begun {
            self.nested(&id, call, seq.is_some());
            self.result(place, &id, seq, call);
        }
    }

    fn begin(&mut self, place: &str, id: &str, call: &Call) -> Option<u64> {
        let arguments = call.pieces.concat();
        if call.answer == Answer::NeverStarted || call.nested == 0 && self.wrong(Fault::CallMissing) {
            return None;
        }
        let differs = self.wrong(Fault::CallDiffers);
        let data = begins(place, id, &if differs { format!("{arguments} ") } else { arguments });
        let seq = self.push("tool/call", data.clone());
        if self.wrong(Fault::CallTwice) {
            self.push("tool/call", data);
        }
        Some(seq)
    }

    fn nested(&mut self, root: &str, call: &Call, runs: bool) {
        if !runs {
            return;
        }
        let mut parent = root.to_owned();
        let mut open = Vec::new();
        for n in 0..call.nested {
            let id = format!("{root}:code:{n}");
            let named = if self.wrong(Fault::NestedElsewhere) { "nobody" } else { &parent };
            let ids = format!(r#""rootCallId":"{root}","parentCallId":"{named}","subCallId":"{id}""#);
            let data = |name: &str| format!(r#"{ids},"name":"{name}","arguments":{{"path":"a"}}"#);
            self.push("tool/code-dispatch-start", format!("{{{}}}", data("read")));
            if named == "nobody" {
                continue;
            }
            if self.wrong(Fault::NestedStartTwice) {
                self.push("tool/code-dispatch-start", format!("{{{}}}", data("read")));
            }
            let name = if self.wrong(Fault::NestedDiffers) { "write" } else { "read" };
            open.push(format!(r#"{{{},"isError":false,"content":[]}}"#, data(name)));
            // Every second one runs inside the one before; the others settle at once.
            if n % 2 == 0 {
                parent = id;
            } else {
                root.clone_into(&mut parent);
                self.settle(&mut open);
            }
        }
        self.settle(&mut open);
    }

    fn settle(&mut self, open: &mut Vec<String>) {
        while let Some(data) = open.pop() {
            if self.wrong(Fault::NestedEndMissing) {
                continue;
            }
            self.push("tool/code-dispatch", data.clone());
            if self.wrong(Fault::NestedEndTwice) {
                self.push("tool/code-dispatch", data);
            }
        }
    }

    fn result(&mut self, place: &str, call_id: &str, begun: Option<u64>, call: &Call) {
        if self.wrong(Fault::ResultUnknown) {
            self.append(
                "tool/result",
                answers(place, &format!("{call_id}x"), "unknown", "", false, "?"),
                Some(vec![0]),
            );
        }
        if self.wrong(Fault::ResultMissing) {
            return;
        }
        let (id, error, failed) = match call.answer {
            Answer::Fine => (self.id("result"), "", false),
            Answer::Failed => (self.id("result"), r#","error":{"name":"ToolError","code":"FAILED"}"#, true),
            Answer::NeverStarted => (
                format!("interrupted-tool-result-{call_id}-{}", self.next()),
                r#","error":{"name":"ToolNotStartedError","code":"TOOL_NOT_STARTED"}"#,
                true,
            ),
        };
        let data = answers(place, call_id, &id, error, failed, "done");
        let uncited = begun.is_some() && self.wrong(Fault::CitationMissing);
        let sources = begun.filter(|_| !uncited).map(|seq| vec![seq]);
        if self.surface.last().is_some() && !self.human.is_empty() && self.wrong(Fault::ResultReplacesPrompt) {
            let at = self.surface.iter().rposition(|(_, is_result)| !is_result).unwrap_or_default();
            let other = answers(place, call_id, "over-a-prompt", "", false, "done");
            self.replace("tool/result", other, at..at + 1);
        }
        self.append("tool/result", data.clone(), sources.clone());
        if self.wrong(Fault::ResultTwice) {
            self.append("tool/result", data, sources);
        }
    }

    /// The result at `at` loses its content.
    fn prune(&mut self, at: usize) {
        let old = self.surface[at].0;
        // The last event with that seq: a mistake may have left seqs out.
        let Some(data) = self.events.iter().rev().find(|event| event.seq.0 == old).map(|event| event.data.clone())
        else {
            return;
        };
        let data = data.get().replace(r#""text":"done""#, r#""text":"pruned""#);
        self.push(
            "compaction/prune",
            format!(
                r#"{{"shadowedRange":{{"start":{old},"end":{old}}},"shadowedSeqs":[{old}],"shadowedTokenCount":3}}"#
            ),
        );
        self.replace("tool/result", data, at..at + 1);
    }
}

fn asked(id: &str, call: &Call) -> String {
    let arguments = quoted(&call.pieces.concat());
    format!(r#"{{"type":"tool-call","id":"{id}","name":"bash","arguments":{arguments}}}"#)
}

fn begins(place: &str, id: &str, arguments: &str) -> String {
    format!(r#"{{{place},"callId":"{id}","name":"bash","arguments":{}}}"#, quoted(arguments))
}

fn answers(place: &str, call: &str, id: &str, error: &str, failed: bool, text: &str) -> String {
    let block = format!(
        r#"{{"type":"tool-result","toolCallId":"{call}","content":[{{"type":"text","text":"{text}"}}],"isError":{failed}}}"#
    );
    let message =
        format!(r#"{{"source":{{"kind":"tool","callId":"{call}"}},"content":[{block}],"role":"user","id":"{id}"}}"#);
    format!(r#"{{{place},"message":{message}{error}}}"#)
}
