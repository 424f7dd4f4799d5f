//! The full lifecycle of a session log, checked event by event.
//!
//! The reader of format 0 looks at little more than seqs, envelopes and the surface; that of format 4 refuses a log whose
//! turns, steps, calls, compactions, commands or titles do not fit together. rwd checks all of it in every format, since a
//! log with a hole will be refused by the first host that migrates it. What is wrong is reported, never mended.
//!
//! The rules and their codes are in [`Rule`]. They are those of format 4's reader, which was read in sources and not run,
//! and stricter in five things: a result cites its call; a command reports once; nested calls run inside a call that runs;
//! they settle before it is answered normally; a retry starts in its own turn. The first holds in every recorded log; for
//! the others the host's own descriptions were followed, since no recorded log has nested calls, compactions or retries.
//!
//! Not checked here: types that nobody knows, envelopes and message shapes (the reader does that), and what is private
//! to a plugin: approvals, goals, teams, workflows.
//!
//! ```
//! use checkpoint_core::{LogEvent, Seq};
//! use harness_adapter::sessions::dsh::strict::{Severity, Strict};
//!
//! let mut strict = Strict::new();
//! strict.take(&LogEvent {
//!     seq: Seq(0),
//!     time: 0,
//!     kind: "turn/start".into(),
//!     data: LogEvent::payload(&std::collections::BTreeMap::from([("turn", 1)])).unwrap(),
//!     surface: None,
//!     sources: None,
//!     ignorable: false,
//! });
//! let problems = strict.finish();
//! assert_eq!(problems[0].code, "open-turn");
//! assert_eq!(problems[0].severity, Severity::Open);
//! ```

mod besides;
mod calls;
#[cfg(test)]
mod generated_tests;
mod payload;
mod rules;
mod surface;
#[cfg(test)]
mod tests;

use checkpoint_core::{LogEvent, Seq, SurfaceOp};
use serde::Deserialize;

use self::{
    besides::{Commands, Compactions, Retries, Titles},
    calls::Calls,
    payload::Place,
    surface::{Node, Surface},
};

pub use rules::{Rule, Severity};

/// Problems that are listed; of further ones only the number is told.
const LISTED: usize = 256;

/// One thing that does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The rule, in kebab case: see [`Rule`].
    pub code: &'static str,
    /// Whether it is a mistake or only not over yet.
    pub severity: Severity,
    /// The event at which it shows; for what is open, the event that opened it.
    pub seq: Option<u64>,
    /// What is wrong there.
    pub message: String,
}

/// A validator that is fed a log's events in order.
///
/// It keeps what is open and the messages on the surface; beside these eight bytes for each message of the user, each
/// command event and each chain of retries. It does not grow with the log otherwise.
#[derive(Debug, Default)]
pub struct Strict {
    next: u64,
    turn: Option<u64>,
    /// The last turn that was opened.
    last_turn: u64,
    step: Option<u64>,
    /// The last step of the open turn.
    last_step: u64,
    opened: (Seq, Seq),
    calls: Calls,
    surface: Surface,
    retries: Retries,
    commands: Commands,
    compactions: Compactions,
    titles: Titles,
    problems: Problems,
}

impl Strict {
    /// A validator that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next event. After a mistake it goes on as if the event meant what it most likely did, so that one
    /// mistake is not reported over and over.
    pub fn take(&mut self, event: &LogEvent) {
        if event.seq.0 != self.next {
            self.problems.add(Rule::SeqGap, event.seq, format!("event {} is due", self.next));
        }
        self.next = event.seq.0.saturating_add(1);
        match &*event.kind {
            "turn/start" => self.turn_start(event),
            "turn/end" => self.turn_end(event),
            "step/start" => self.step_start(event),
            "step/end" => self.step_end(event),
            "assistant/chunk" | "assistant/attempt" => self.in_step(event),
            "request/header" => {
                self.in_turn(event);
                self.retries.request(event, &mut self.problems);
            }
            "request/context" => self.in_turn(event),
            "user/message" | "assistant/message" | "tool/result" | "system/message" | "developer/message" => {
                self.message(event);
                return;
            }
            "tool/call" => {
                self.in_step(event);
                self.calls.begun(event, &mut self.problems);
            }
            "tool/code-dispatch-start" | "tool/ptc-dispatch-start" => {
                self.in_turn(event);
                self.calls.nested_start(event, &mut self.problems);
            }
            "tool/code-dispatch" | "tool/ptc-dispatch" => {
                self.in_turn(event);
                self.calls.nested_end(event, &mut self.problems);
            }
            "llm/retry" => {
                self.retries.schedule(event, self.turn, self.step.unwrap_or(self.last_step), &mut self.problems);
            }
            "llm/retry-started" => self.retries.start(event, self.turn, &mut self.problems),
            "session/title" | "session/title-llm-request" => self.titles.title(event, &mut self.problems),
            "command/run" => self.commands.run(event, &mut self.problems),
            "command/done" => self.commands.done(event, &mut self.problems),
            "compaction/start" => self.compactions.start(event, self.turn, &mut self.problems),
            "compaction/summary" => self.compactions.summary(event, self.turn, &self.surface, &mut self.problems),
            "compaction/prune" => Compactions::span(event, &self.surface, &mut self.problems),
            "compaction/end" => self.compactions.end(event, self.turn, &mut self.problems),
            "session/end-seed" => self.end_seed(event),
            _ => {}
        }
        if event.surface.is_some() || event.sources.is_some() {
            self.problems.add(Rule::SurfaceOp, event.seq, format!("{} is no message", event.kind));
        }
    }

    /// Says what was wrong, in the order of the events, and what is still open.
    #[must_use]
    pub fn finish(mut self) -> Vec<Problem> {
        if let Some(turn) = self.turn {
            self.problems.add(Rule::OpenTurn, self.opened.0, format!("turn {turn} has no end"));
        }
        if let Some(step) = self.step {
            self.problems.add(Rule::OpenStep, self.opened.1, format!("step {step} has no end"));
        }
        self.calls.finish(&mut self.problems);
        self.commands.finish(&mut self.problems);
        self.compactions.finish(&mut self.problems);
        self.problems.finish()
    }

    fn turn_start(&mut self, event: &LogEvent) {
        self.compactions.crossed(event.seq, false);
        let Some(payload::Turn { turn }) = self.problems.read(event) else { return };
        let due = self.last_turn.saturating_add(1);
        if let Some(open) = self.turn {
            self.problems.add(Rule::TurnInTurn, event.seq, format!("turn {turn} starts while turn {open} is open"));
        } else if turn != due {
            self.problems.add(Rule::TurnNumber, event.seq, format!("turn {turn} starts where turn {due} is due"));
        }
        (self.turn, self.last_turn, self.step, self.last_step) = (Some(turn), turn, None, 0);
        self.opened.0 = event.seq;
        self.calls = Calls::default();
        self.retries.close();
    }

    fn turn_end(&mut self, event: &LogEvent) {
        let Some(payload::TurnEnd { turn, reason }) = self.problems.read(event) else { return };
        self.compactions.crossed(event.seq, reason.kind == *"interrupted" || reason.kind == *"forked");
        if self.turn != Some(turn) {
            let message = self.turn.map_or_else(|| "no turn is open".to_owned(), |open| format!("turn {open} is open"));
            self.problems.add(Rule::TurnEndUnopened, event.seq, message);
        }
        if let Some(step) = self.step.take() {
            self.problems.add(Rule::TurnEndInStep, event.seq, format!("step {step} is open"));
        }
        self.calls.close(event.seq, &mut self.problems);
        self.retries.close();
        self.turn = None;
    }

    fn step_start(&mut self, event: &LogEvent) {
        let Some(Place { turn, step }) = self.problems.read(event) else { return };
        let due = self.last_step.saturating_add(1);
        if self.turn != Some(turn) {
            self.problems.add(Rule::OutsideTurn, event.seq, format!("turn {turn} is not open"));
            if self.turn.is_none() {
                return;
            }
        } else if let Some(open) = self.step {
            self.problems.add(Rule::StepInStep, event.seq, format!("step {step} starts while step {open} is open"));
        } else if step != due {
            self.problems.add(Rule::StepNumber, event.seq, format!("step {step} starts where step {due} is due"));
        }
        (self.step, self.last_step) = (Some(step), step);
        self.opened.1 = event.seq;
        self.calls = Calls::default();
    }

    fn step_end(&mut self, event: &LogEvent) {
        self.in_step(event);
        self.calls.close(event.seq, &mut self.problems);
        self.step = None;
    }

    fn message(&mut self, event: &LogEvent) {
        let append = !matches!(event.surface, Some(SurfaceOp::Replace { .. }));
        let node = match &*event.kind {
            "user/message" => {
                if let Some(data) = self.problems.read::<payload::UserMessage>(event) {
                    self.titles.message(event.seq, &data.source);
                    if matches!(event.surface, Some(SurfaceOp::Replace { .. })) {
                        self.compactions.checkpoint(event, &data.source, &mut self.problems);
                    }
                }
                Node::Other
            }
            "assistant/message" => {
                self.in_step(event);
                self.calls.asked(event, &mut self.problems);
                Node::Other
            }
            "tool/result" => {
                if append {
                    self.in_step(event);
                    self.calls.answered(event, &mut self.problems);
                } else {
                    self.in_turn(event);
                }
                let call = event.read::<payload::ToolResult>().ok();
                Node::Result(call.and_then(|data| data.message.call().map(besides::hash)).unwrap_or_default())
            }
            kind => {
                self.in_step(event);
                if kind == "system/message" { Node::System } else { Node::Other }
            }
        };
        self.surface.take(event, node, &mut self.problems);
    }

    fn end_seed(&mut self, event: &LogEvent) {
        if let Some(payload::EndSeed { inherited: Some(false) }) = self.problems.read(event) {
            self.problems.add(Rule::EndSeed, event.seq, "it says that nothing was inherited".to_owned());
        }
        self.commands.forget();
        self.compactions.forget();
    }

    fn in_turn(&mut self, event: &LogEvent) {
        if self.turn.is_none() {
            self.problems.add(Rule::OutsideTurn, event.seq, "no turn is open".to_owned());
        }
    }

    fn in_step(&mut self, event: &LogEvent) {
        let Some(place) = self.problems.read::<Place>(event) else { return };
        let open = self.turn.zip(self.step).map(|(turn, step)| Place { turn, step });
        if open != Some(place) {
            let message = format!("turn {}, step {} is not open", place.turn, place.step);
            self.problems.add(Rule::OutsideStep, event.seq, message);
        }
    }
}

/// The problems so far.
#[derive(Debug, Default)]
struct Problems {
    found: Vec<Problem>,
    more: u64,
}

impl Problems {
    fn add(&mut self, rule: Rule, at: Seq, message: String) {
        // What is open at the end is told in any case: there is one of each, or as many as are open.
        if self.found.len() >= LISTED && rule.severity() == Severity::Broken {
            self.more += 1;
            return;
        }
        self.found.push(Problem { code: rule.code(), severity: rule.severity(), seq: Some(at.0), message });
    }

    /// The payload of `event`, or `None` and a problem.
    fn read<'a, T: Deserialize<'a>>(&mut self, event: &'a LogEvent) -> Option<T> {
        match event.read() {
            Ok(data) => Some(data),
            Err(error) => {
                self.add(Rule::Malformed, event.seq, format!("{}: {error}", event.kind));
                None
            }
        }
    }

    fn finish(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| problem.seq);
        if self.more > 0 {
            let rule = Rule::MoreProblems;
            let message = format!("{} more problems are not listed", self.more);
            self.found.push(Problem { code: rule.code(), severity: rule.severity(), seq: None, message });
        }
        self.found
    }
}
