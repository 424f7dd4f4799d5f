//! What harnesses tell their hooks, read into one shape. Pure: bytes in, values out.
//!
//! [`parse`] reads a payload; [`turns::step`] says what is to be done about it, given what is known of the session;
//! [`answer::render`] words the answer as that harness wants it. Nothing here may fail: a payload that cannot be
//! understood is an event without meaning and a [`Problem`].
//!
//! ```
//! use harness_adapter::hooks::{Agent, What, parse};
//!
//! let payload = br#"{"session_id":"s","prompt_id":"p1","hook_event_name":"UserPromptSubmit","prompt":"do it"}"#;
//! let event = parse(Some(Agent::Claude), &|_| None, payload);
//! assert_eq!(event.session.as_deref(), Some("s"));
//! assert!(matches!(event.what, What::Prompt { synthetic: false, .. }));
//! ```

pub mod answer;
mod claude;
mod cline;
mod codex;
mod cursor;
mod gemini;
pub mod number;
mod opencode;
mod reader;
pub mod state;
pub mod tools;
pub mod turns;

use std::fmt;
use std::path::PathBuf;

use checkpoint_core::SessionKey;
use sha2::{Digest, Sha256};

pub use crate::agent::Agent;
use reader::Reader;
pub use reader::mend;
pub use tools::Effect;

/// A part of a payload that could not be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Which; `payload` for all of it.
    pub field: String,
    /// Why not.
    pub why: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.why)
    }
}

/// A call of a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tool {
    /// As the harness calls it; cut at 100 characters, on one line.
    pub name: String,
    /// The harness's id of the call, the same before and after. Not everywhere that of the transcript (Codex).
    pub call: Option<String>,
    /// What it can do to files.
    pub effect: Effect,
    /// True when it goes on after its end was told.
    pub background: bool,
    /// Files that it names.
    pub paths: Vec<PathBuf>,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A process took the session up.
    SessionStart,
    /// It lets it go.
    SessionEnd,
    /// Somebody said something.
    Prompt {
        /// The harness's id of the prompt or its turn, as in the transcript.
        key: Option<String>,
        /// Tells a repeated report of one prompt where there is no key.
        once: Option<String>,
        /// True when no person did: the harness reports to the model, and the turn goes on.
        synthetic: bool,
    },
    /// A tool is about to run.
    BeforeTool(Tool),
    /// It ran, or failed.
    AfterTool(Tool),
    /// All tools of one answer of the model ran.
    BatchEnd(Vec<Tool>),
    /// The agent stopped.
    Stop {
        /// True when something of its turn still runs.
        waiting: bool,
    },
    /// A sub-agent begins.
    SubagentStart,
    /// It ends.
    SubagentStop,
    /// A person stopped the agent.
    Interrupt,
    /// The conversation is summarised.
    Compact,
    /// Anything else.
    Other,
}

/// One report of a harness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookEvent {
    /// Who reports.
    pub agent: Agent,
    /// As the harness calls the event.
    pub name: String,
    /// The harness that keeps the conversation, as in session keys: that of [`HookEvent::agent`], unless the hooks of
    /// one harness are run by another.
    pub harness: &'static str,
    /// The conversation; a sub-agent's is its parent's, where the harness says so.
    pub session: Option<String>,
    /// The conversation that gave this one a task.
    pub parent: Option<String>,
    /// The sub-agent that this is about.
    pub subagent: Option<String>,
    /// The prompt or turn that this belongs to, as in [`What::Prompt`].
    pub key: Option<String>,
    /// Where the agent works now. It may move.
    pub cwd: Option<PathBuf>,
    /// The project that the harness declares. It stays.
    pub project: Option<PathBuf>,
    /// The file of the conversation.
    pub transcript: Option<PathBuf>,
    /// The harness's process, where it says so.
    pub pid: Option<u32>,
    /// What happened.
    pub what: What,
    /// What could not be used.
    pub problems: Vec<Problem>,
}

impl HookEvent {
    /// The key of its session. An id that no key can hold is represented by its digest; without one all such events
    /// of a harness are one session.
    pub fn session_key(&self) -> SessionKey {
        session_key(self.harness, self.session.as_deref())
    }

    /// True when nothing can follow from it, whatever is known of the session.
    pub fn is_idle(&self) -> bool {
        match &self.what {
            What::SessionStart | What::Compact | What::Other => true,
            What::BeforeTool(tool) | What::AfterTool(tool) => tool.effect == Effect::Reads,
            What::BatchEnd(tools) => tools.iter().all(|tool| tool.effect == Effect::Reads),
            What::Prompt { .. }
            | What::Stop { .. }
            | What::SubagentStart
            | What::SubagentStop
            | What::Interrupt
            | What::SessionEnd => false,
        }
    }

    /// The same event as one of a sub-agent of `parent`: for harnesses that give sub-agents sessions of their own.
    #[must_use]
    pub fn of_subagent(mut self, parent: &str) -> Self {
        self.subagent = self.session.replace(parent.to_owned());
        self.key = None;
        self.what = match self.what {
            What::Prompt { .. } | What::SessionStart | What::Interrupt => What::Other,
            What::Stop { .. } | What::SessionEnd => What::SubagentStop,
            other => other,
        };
        self
    }
}

/// The key of a harness's session, also for an id that no key can hold.
pub fn session_key(harness: &str, id: Option<&str>) -> SessionKey {
    let id = id.unwrap_or("unknown");
    SessionKey::new(harness, id).unwrap_or_else(|_| {
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(id.as_bytes()));
        SessionKey::new(harness, &format!("x-{digest}")).unwrap_or_else(|_| SessionKey::local())
    })
}

/// Reads a payload. `named`: whose hook was called; who calls it shows in the payload and wins. `env` looks up the
/// environment, of which only what harnesses set for hooks is asked.
pub fn parse(named: Option<Agent>, env: &dyn Fn(&str) -> Option<String>, payload: &[u8]) -> HookEvent {
    let (value, mut problems) = reader::value(payload);
    let empty = serde_json::Map::new();
    let map = value.as_ref().and_then(serde_json::Value::as_object).unwrap_or(&empty);
    if value.as_ref().is_some_and(|value| !value.is_object()) {
        problems.push(Problem { field: "payload".to_owned(), why: "is no object" });
    }
    let reader = Reader::new(map, problems);
    let agent = detect(&reader).or(named).unwrap_or(Agent::Claude);
    let mut event = match agent {
        Agent::Claude => claude::read(&reader),
        Agent::Codex => codex::read(&reader),
        Agent::Gemini => gemini::read(&reader),
        Agent::Opencode => opencode::read(&reader),
        Agent::Cursor => cursor::read(&reader),
        Agent::Cline => cline::read(&reader),
    };
    event.problems = reader.into_problems();
    if event.session.is_none() && !event.is_idle() {
        event.problems.push(Problem { field: "the session's id".to_owned(), why: "is missing" });
    }
    surround(&mut event, env);
    event
}

/// What the environment of a hook says.
fn surround(event: &mut HookEvent, env: &dyn Fn(&str) -> Option<String>) {
    let declared = match event.agent {
        Agent::Claude | Agent::Cursor => &["CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR"][..],
        Agent::Gemini => &["GEMINI_PROJECT_DIR"][..],
        Agent::Codex | Agent::Opencode | Agent::Cline => &[][..],
    };
    let mut declared =
        declared.iter().filter_map(|name| env(name)).map(PathBuf::from).filter(|path| path.is_absolute());
    event.project = event.project.take().or_else(|| declared.next());
    if event.agent == Agent::Claude {
        event.pid = event.pid.or_else(|| env("CLAUDE_PID").and_then(|pid| pid.parse().ok()));
        // DeepSeek Harness runs hooks of this format for conversations of its own.
        if event.session.is_some() && env("DSH_SESSION_ID") == event.session {
            event.harness = "dsh";
        }
    }
}

/// Who sent it, as far as that shows. Cursor runs hooks of Claude's format; so may others.
fn detect(reader: &Reader<'_>) -> Option<Agent> {
    let has = |name| reader.has(name);
    if has("hookName") && (has("taskId") || has("clineVersion")) {
        return Some(Agent::Cline);
    }
    if has("cursor_version") || (has("conversation_id") && has("generation_id")) {
        return Some(Agent::Cursor);
    }
    let name = reader.peek("hook_event_name");
    if name.is_some_and(|name| gemini::EVENTS.contains(&name)) {
        return Some(Agent::Gemini);
    }
    if has("hook") && name.is_none() {
        return Some(Agent::Opencode);
    }
    let rollout = reader.peek("transcript_path").and_then(|path| path.rsplit('/').next());
    let rollout = rollout.is_some_and(|file| file.starts_with("rollout-"));
    if name.is_some() && !has("prompt_id") && (rollout || has("turn_id")) {
        return Some(Agent::Codex);
    }
    (name.is_some() && has("prompt_id")).then_some(Agent::Claude)
}

#[cfg(test)]
mod tests;
