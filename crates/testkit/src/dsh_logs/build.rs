//! From what happened to the events of a log, with the host's payloads and, on wish, one mistake.

use std::{collections::BTreeMap, sync::Arc};

use checkpoint_core::{LogEvent, Seq, SurfaceOp};
use serde_json::value::RawValue;

use super::{Between, Fault, Session};

/// How often each mistake could be made in a session.
pub type Places = BTreeMap<Fault, usize>;

/// Events, and where the mistake is.
#[derive(Clone, Debug)]
pub struct Built {
    /// The log.
    pub events: Vec<LogEvent>,
    /// The seq of the first event that is wrong or comes after what is missing; `None` without a mistake.
    pub wrong: Option<u64>,
    places: Places,
}

/// The events of a session without a mistake.
pub fn events(session: &Session) -> Vec<LogEvent> {
    build(session, None).events
}

/// How often each mistake could be made.
pub fn places(session: &Session) -> Places {
    build(session, None).places
}

/// The events of a session; with `(fault, n)`, the mistake is made at the `n`th occasion, counted from 0.
pub fn build(session: &Session, fault: Option<(Fault, usize)>) -> Built {
    let mut builder = Builder { fault, ticks: session.ticks.clone(), time: 1_796_063_287_565, ..Builder::default() };
    builder.session(session);
    Built { events: builder.events, wrong: builder.wrong, places: builder.places }
}

#[derive(Default)]
pub(super) struct Builder {
    pub(super) events: Vec<LogEvent>,
    fault: Option<(Fault, usize)>,
    pub(super) places: Places,
    pub(super) wrong: Option<u64>,
    ticks: Vec<i16>,
    time: i64,
    skipped: u64,
    pub(super) turn: u64,
    pub(super) step: u64,
    ids: u64,
    /// The surface in order, and whether a message is a result.
    pub(super) surface: Vec<(u64, bool)>,
    pub(super) human: Vec<u64>,
    pub(super) plugin: Vec<u64>,
    pub(super) headed: bool,
    commands: u64,
    /// The end of a compaction that comes too late.
    pub(super) late: Option<String>,
}

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn raw(text: String) -> Arc<RawValue> {
    RawValue::from_string(text).unwrap().into()
}

fn listed(seqs: &[u64]) -> String {
    let seqs: Vec<_> = seqs.iter().map(ToString::to_string).collect();
    format!("[{}]", seqs.join(","))
}

impl Builder {
    /// Counts an occasion for `fault`; true when the mistake is to be made here.
    pub(super) fn wrong(&mut self, fault: Fault) -> bool {
        let place = self.places.entry(fault).or_default();
        let here = self.fault == Some((fault, *place));
        *place += 1;
        if here {
            self.wrong = Some(self.next());
        }
        here
    }

    pub(super) fn next(&self) -> u64 {
        self.events.len() as u64 + self.skipped
    }

    pub(super) fn id(&mut self, what: &str) -> String {
        self.ids += 1;
        format!("{what}-{}", self.ids)
    }

    pub(super) fn push(&mut self, kind: &str, data: String) -> u64 {
        self.event(kind, data, None, None)
    }

    pub(super) fn event(
        &mut self,
        kind: &str,
        data: String,
        surface: Option<SurfaceOp>,
        sources: Option<Vec<u64>>,
    ) -> u64 {
        if self.wrong(Fault::SeqSkipped) {
            self.skipped += 1;
        }
        let message = surface.is_some();
        let surface = match surface {
            Some(SurfaceOp::Append) if self.wrong(Fault::OpMissing) => None,
            None if self.wrong(Fault::OpElsewhere) => Some(SurfaceOp::Append),
            surface => surface,
        };
        let seq = self.next();
        let sources = sources.map(|mut sources| {
            if !sources.is_empty() && message {
                if self.wrong(Fault::SourceTwice) {
                    sources.push(sources[0]);
                }
                if self.wrong(Fault::SourceLater) {
                    sources.push(seq);
                }
            }
            sources.into_iter().map(Seq).collect()
        });
        let tick = self.ticks.get(self.events.len() % self.ticks.len().max(1)).copied().unwrap_or(1);
        self.time += i64::from(tick);
        let (time, kind, data) = (self.time, kind.into(), raw(data));
        self.events.push(LogEvent { seq: Seq(seq), time, kind, data, surface, sources, ignorable: false });
        seq
    }

    /// A message that comes last on the surface.
    pub(super) fn append(&mut self, kind: &str, data: String, sources: Option<Vec<u64>>) -> u64 {
        let seq = self.event(kind, data, Some(SurfaceOp::Append), sources);
        if self.events.last().unwrap().surface.is_some() {
            self.surface.push((seq, kind == "tool/result"));
        }
        seq
    }

    /// A message in the place of the first `count` ones, or of the one at `at`.
    pub(super) fn replace(&mut self, kind: &str, data: String, range: std::ops::Range<usize>) {
        let mut sources: Vec<u64> = self.surface[range.clone()].iter().map(|(seq, _)| *seq).collect();
        let (start, end) = (Seq(sources[0]), Seq(sources[sources.len() - 1]));
        if self.wrong(Fault::ReplacesNothing) {
            // Every session begins with a policy, so that is no message.
            self.event(kind, data, Some(SurfaceOp::Replace { start: Seq(0), end }), Some(sources));
            return;
        }
        if self.wrong(Fault::ReplacedUncited) {
            sources[0] = 0;
        }
        let seq = self.event(kind, data, Some(SurfaceOp::Replace { start, end }), Some(sources));
        self.surface.splice(range, [(seq, kind == "tool/result")]);
    }

    fn session(&mut self, session: &Session) {
        self.push("permission/preset", r#"{"preset":"workspace-write"}"#.to_owned());
        self.push("sandbox/mode", r#"{"mode":"workspace-write"}"#.to_owned());
        self.push("approval/policy", r#"{"policy":"on-request"}"#.to_owned());
        for at in 0..=session.turns.len().max(session.between.len()) {
            for between in session.between.get(at).into_iter().flatten() {
                self.between(between);
            }
            if let Some(turn) = session.turns.get(at) {
                let goes_on = at + 1 < session.turns.len() && session.between.get(at + 1).is_none_or(Vec::is_empty);
                self.one_turn(turn, goes_on);
            }
        }
    }

    fn between(&mut self, between: &Between) {
        if self.wrong(Fault::HeaderOutside) {
            self.header("change");
        }
        if self.wrong(Fault::StepOutside) {
            let (turn, step) = (self.turn, self.step + 1);
            self.push("step/start", format!(r#"{{"turn":{turn},"step":{step}}}"#));
        }
        match between {
            Between::Title(own) => self.title(*own),
            Between::TitleRequest if self.human.is_empty() => {}
            Between::TitleRequest => {
                let seqs = listed(&self.human);
                let message = r#"{"role":"user","source":{"kind":"title"},"content":[{"type":"text","text":"?"}]}"#;
                let data = format!(r#"{{"titleProvider":"first","messageSeqs":{seqs},"messages":[{message}]}}"#);
                self.push("session/title-llm-request", data);
            }
            Between::Command(fine) => self.command(*fine),
            Between::Compact(count) => self.compaction(*count, None),
            Between::Queued(text) => {
                let id = self.id("queued");
                let text = quoted(text);
                let message = format!(
                    r#"{{"content":[{{"type":"text","text":{text}}}],"source":{{"kind":"user"}},"role":"user","id":"{id}"}}"#
                );
                let data = format!(r#"{{"target":"next-turn","start":0,"inserted":[{message}]}}"#);
                self.push("agent/inbox/spliced", data);
            }
            Between::Goal => {
                let id = self.id("goal");
                self.push(
                    "goal/change",
                    format!(r#"{{"kind":"goal/change","operation":"create","goal":{{"id":"{id}"}}}}"#),
                );
            }
            Between::Resume => self.resume(),
            Between::Crash => {
                let command = self.command_run();
                let id = self.id("compaction");
                let source = quoted(&command);
                self.push(
                    "compaction/start",
                    format!(r#"{{"compactionId":"{id}","sourceCommandId":{source},"turn":null}}"#),
                );
                self.resume();
            }
            Between::Notice(text) => self.notice(text),
            Between::Foreign => {
                self.push("somebody/else", r#"{"seq":3}"#.to_owned());
                self.events.last_mut().unwrap().ignorable = true;
            }
        }
    }

    fn resume(&mut self) {
        let data = if self.wrong(Fault::SeedOfNothing) { r#"{"inherited":false}"# } else { "{}" };
        self.push("session/end-seed", data.to_owned());
    }

    pub(super) fn notice(&mut self, text: &str) {
        let (id, text) = (self.id("notice"), quoted(text));
        let source = r#"{"kind":"plugin","plugin":"rewind","form":"notice"}"#;
        let data =
            format!(r#"{{"content":[{{"type":"text","text":{text}}}],"source":{source},"role":"user","id":"{id}"}}"#);
        let seq = self.append("user/message", data, None);
        self.plugin.push(seq);
    }

    fn title(&mut self, own: bool) {
        let own = own || self.human.is_empty();
        let mut seqs = if own { Vec::new() } else { vec![self.human[self.human.len() - 1]] };
        if !own && self.wrong(Fault::TitleFromNothing) {
            seqs.clear();
        }
        if !own && !self.plugin.is_empty() && self.wrong(Fault::TitleFromPlugin) {
            seqs.push(self.plugin[0]);
        }
        let (seqs, kind) = (listed(&seqs), if own { "user" } else { "fallback" });
        self.push("session/title", format!(r#"{{"title":"a","messageSeqs":{seqs},"source":{{"kind":"{kind}"}}}}"#));
    }

    fn command_run(&mut self) -> String {
        self.commands += 1;
        let same = self.commands > 1 && self.wrong(Fault::CommandTwice);
        let id = format!("cmd-{}", if same { self.commands - 1 } else { self.commands });
        let data = format!(r#"{{"commandId":"{id}","name":"goal","args":" x","source":{{"kind":"user"}}}}"#);
        self.push("command/run", data);
        id
    }

    fn command(&mut self, fine: bool) {
        if self.wrong(Fault::CommandUnknown) {
            self.push("command/done", r#"{"commandId":"cmd-0","kind":"success"}"#.to_owned());
        }
        let id = self.command_run();
        let run = self.next() - 1;
        let data = if fine {
            let changed = self.push("goal/change", r#"{"kind":"goal/change","operation":"create"}"#.to_owned());
            let source = if self.wrong(Fault::CommandCitesItself) { run } else { changed };
            format!(r#"{{"commandId":"{id}","kind":"success","text":"ok","sourceEventSeq":{source}}}"#)
        } else {
            format!(r#"{{"commandId":"{id}","kind":"error","text":"no"}}"#)
        };
        self.push("command/done", data);
    }

    /// The first `count` messages are replaced by a summary. `turn`: the open one.
    pub(super) fn compaction(&mut self, count: u8, turn: Option<u64>) {
        let count = usize::from(count).min(self.surface.len());
        if count == 0 {
            return;
        }
        let id = self.id("compaction");
        let owner = |turn: Option<u64>| turn.map_or_else(|| "null".to_owned(), |turn| turn.to_string());
        let named = if self.wrong(Fault::CompactionElsewhere) { Some(turn.unwrap_or(7) + 1) } else { turn };
        let start = format!(r#"{{"compactionId":"{id}","turn":{}}}"#, owner(named));
        self.push("compaction/start", start);
        if named != turn {
            // The rest of it would be wrong as well.
            self.push("session/end-seed", "{}".to_owned());
            return;
        }
        if self.wrong(Fault::CompactionTwice) {
            self.push("compaction/start", format!(r#"{{"compactionId":"{id}","turn":{}}}"#, owner(turn)));
        }
        let mut seqs: Vec<u64> = self.surface[..count].iter().map(|(seq, _)| *seq).collect();
        let (first, last) = (seqs[0], seqs[count - 1]);
        if count > 2 && self.wrong(Fault::SummaryDiffers) {
            seqs.remove(1);
        }
        if !self.wrong(Fault::SummaryMissing) {
            let seqs = listed(&seqs);
            let data = format!(
                r#"{{"compactionId":"{id}","summary":[{{"type":"text","text":"s"}}],"shadowedRange":{{"start":{first},"end":{last}}},"shadowedSeqs":{seqs},"shadowedTokenCount":9,"provider":"deepseek-official","model":"m"}}"#
            );
            self.push("compaction/summary", data);
        }
        let message = self.id("summary");
        let source = format!(r#"{{"kind":"plugin","plugin":"compact","compactionId":"{id}"}}"#);
        let data =
            format!(r#"{{"content":[{{"type":"text","text":"s"}}],"source":{source},"role":"user","id":"{message}"}}"#);
        self.replace("user/message", data, 0..count);
        if turn.is_some() && self.wrong(Fault::CompactionEndMissing) {
            self.late = Some(format!(r#"{{"compactionId":"{id}","turn":{}}}"#, owner(turn)));
            return;
        }
        let other = self.wrong(Fault::CompactionDiffers);
        if other {
            let data = format!(r#"{{"compactionId":"other","turn":{}}}"#, owner(turn));
            self.push("compaction/end", data);
        }
        self.push("compaction/end", format!(r#"{{"compactionId":"{id}","turn":{}}}"#, owner(turn)));
    }

    pub(super) fn header(&mut self, reason: &str) {
        let config = r#"{"provider":"deepseek-official","model":"deepseek-v4-flash","maxTokens":256000}"#;
        let header = format!(r#"{{"config":{config},"adapterDefaults":{{"maxTokens":true}},"system":"You help."}}"#);
        self.push("request/header", format!(r#"{{"header":{header},"reason":"{reason}"}}"#));
    }
}
