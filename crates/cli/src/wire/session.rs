//! Answers of `rwd session`.

use schemars::JsonSchema;
use serde::Serialize;

use super::PathEntry;

/// One session of `rwd session list`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogEntry {
    /// The harness's own id.
    pub(crate) id: String,
    /// As `--session` takes it; null for an id that cannot be one.
    pub(crate) session: Option<String>,
    pub(crate) harness: &'static str,
    pub(crate) path: PathEntry,
    /// The directory it works in.
    pub(crate) cwd: Option<String>,
    pub(crate) created_at: Option<i64>,
    /// The session it was forked from.
    pub(crate) parent: Option<String>,
    /// How many of the parent's events it shares.
    pub(crate) seed_length: Option<u64>,
    /// True for a session that its parent gave a task to.
    pub(crate) subagent: bool,
    /// Version of the log's format.
    pub(crate) version: Option<u64>,
    /// `zstd` or `plain`.
    pub(crate) encoding: &'static str,
    /// What is wrong with it, where that shows without reading it whole.
    pub(crate) problem: Option<String>,
}

/// `rwd session list`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionList {
    /// The directory that holds the logs.
    pub(crate) home: PathEntry,
    /// Newest first.
    pub(crate) sessions: Vec<LogEntry>,
}

/// One turn of a session.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnEntry {
    pub(crate) turn: u32,
    /// Position of its first event.
    pub(crate) start: u64,
    /// Position of its last event; null while it is open.
    pub(crate) end: Option<u64>,
    /// How it ended, in the harness's own word.
    pub(crate) reason: Option<String>,
    /// When it ended.
    pub(crate) at: Option<i64>,
    /// The beginning of what was asked.
    pub(crate) prompt: Option<String>,
}

/// The end of a log that a crash cut short.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TornEntry {
    /// Where it begins: the byte that the harness would cut the file at.
    pub(crate) offset: u64,
    /// How many bytes it takes.
    pub(crate) bytes: u64,
    /// Events that could still be read from it; they count as the session's own.
    pub(crate) recovered: u64,
}

/// `rwd session show ID`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionShown {
    pub(crate) id: String,
    pub(crate) harness: &'static str,
    pub(crate) path: PathEntry,
    pub(crate) cwd: Option<String>,
    pub(crate) created_at: Option<i64>,
    pub(crate) parent: Option<String>,
    pub(crate) seed_length: Option<u64>,
    pub(crate) subagent: bool,
    /// Version of the log's format; null where the format has none.
    pub(crate) version: Option<u64>,
    pub(crate) events: u64,
    pub(crate) turns: Vec<TurnEntry>,
    /// The turn that has not ended.
    pub(crate) open_turn: Option<u32>,
    pub(crate) torn: Option<TornEntry>,
    /// As the harness's own reader decides.
    pub(crate) loadable: bool,
}

/// A place to cut at.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BoundaryEntry {
    /// Last event that a new session would share.
    pub(crate) seq: u64,
    /// The turn that ends there.
    pub(crate) turn: u32,
    /// How it ended, in the harness's own word; null where the log has none.
    pub(crate) reason: Option<String>,
    /// When; null where the log does not say.
    pub(crate) at: Option<i64>,
}

/// `rwd session boundaries ID`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionBoundaries {
    pub(crate) id: String,
    pub(crate) harness: &'static str,
    /// Oldest first.
    pub(crate) boundaries: Vec<BoundaryEntry>,
    /// The turn that has not ended.
    pub(crate) open_turn: Option<u32>,
}

/// `rwd session fork ID`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionForked {
    /// Id of the new session.
    pub(crate) child: String,
    /// Its log.
    pub(crate) path: PathEntry,
    /// How many events it shares.
    pub(crate) seed_length: u64,
    /// The last of them; null for none.
    pub(crate) boundary: Option<u64>,
    /// Events added to close what was open.
    pub(crate) closers: u64,
    /// The command that goes on in it; null where its harness has none.
    #[serde(rename = "continue")]
    pub(crate) go_on: Option<String>,
}

/// Something that is wrong with a log.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemEntry {
    /// Stable.
    pub(crate) code: String,
    /// The event it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(crate) seq: Option<u64>,
    pub(crate) message: String,
    /// `broken`, or `open` for what was begun and has no end yet.
    pub(crate) severity: &'static str,
}

/// `rwd session verify ID`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionVerified {
    pub(crate) id: String,
    pub(crate) path: PathEntry,
    /// As the harness's own reader decides.
    pub(crate) loadable: bool,
    /// True when no rule of a session's life is broken, too: what is open yet is listed, and breaks none.
    pub(crate) strict: bool,
    /// Version of the log's format; null where it cannot be told.
    pub(crate) version: Option<u64>,
    /// Events that can be read.
    pub(crate) events: u64,
    pub(crate) problems: Vec<ProblemEntry>,
}

/// `rwd session repair ID`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRepaired {
    pub(crate) id: String,
    /// The copy.
    pub(crate) path: PathEntry,
    /// Events of the copy.
    pub(crate) events: u64,
    /// Events added to close what was open.
    pub(crate) closers: u64,
    /// The end of the log that the copy leaves out, but for the events that could be read from it.
    pub(crate) torn: Option<TornEntry>,
}
