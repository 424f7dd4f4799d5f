//! Sessions, turns and captures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PathEntry, ReasonEntry};

/// Where the positions of a session are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogSource {
    /// In the harness's own files, where they can be read here; else as `client`.
    #[default]
    Files,
    /// From what the client tells: `beats`, and the positions of turns and steps.
    Client,
    /// Nowhere: only files go back.
    None,
}

/// One event of a log that matters for cutting it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BeatEntry {
    /// Its dense ordinal.
    pub seq: u64,
    /// What happened.
    pub beat: BeatKind,
    /// The turn; not for `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The step; for steps only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
}

/// What an event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BeatKind {
    /// A turn begins.
    TurnStart,
    /// A step begins.
    StepStart,
    /// A step ends.
    StepEnd,
    /// A turn ends.
    TurnEnd,
    /// Anything else.
    Other,
}

/// Opens a session. Opening it again replaces what was said of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionOpen {
    /// Its id, as the harness has it. Later requests name it so.
    pub session: String,
    /// The harness, as `dsh`.
    pub harness: String,
    /// The directory it works in. One, for now; absolute.
    pub roots: Vec<String>,
    /// The session it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many of the parent's events it shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_length: Option<u64>,
    /// The session that gave it its task: it counts as that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_of: Option<String>,
    /// The harness's home, for `log = files`: for `dsh` the directory that holds `sessions/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// Where positions are looked up.
    #[serde(default)]
    pub log: LogSource,
    /// A directory, absolute: after each turn `checkpoint/SESSION/index.json` below it says what the turns changed, in the
    /// form of `dsh-checkpoint` (000-04). A directory there that is not rwd's stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// For `log = client`: the log so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beats: Vec<BeatEntry>,
}

/// A session is open.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    /// The session as points name it: `HARNESS:ID`.
    pub session: String,
    /// The root of its workspace.
    pub root: String,
    /// Its bytes in base64, where they are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_bytes: Option<String>,
    /// True when this call made it a workspace.
    pub registered: bool,
    /// True where the root lies in a git worktree (000's `isGitRepo`).
    pub is_git_worktree: bool,
    /// `git` in a git worktree with a commit, else `copy` (002-14).
    pub provider: String,
    /// Where files are restored at all, by the settings: `everywhere` or `git-only`.
    pub files: String,
    /// What an agent may do by itself, by the settings: `ask`, `allow` or `never`.
    pub may_restore: String,
    /// The conversation can be cut.
    pub can_fork: bool,
    /// The latest turn that is known.
    pub last_turn: Option<u32>,
    /// The operation that `recover` would settle; until then nothing is restored here.
    pub unfinished: Option<String>,
    /// Settings that could not be read or were not allowed.
    pub warnings: Vec<String>,
}

/// Forgets an open session. Its points stay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionClose {
    /// Which.
    pub session: String,
}

/// Tells more of a log, for `log = client`. Turns and steps that are told otherwise need not be repeated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionBeats {
    /// Which.
    pub session: String,
    /// In order.
    pub beats: Vec<BeatEntry>,
}

/// Tells of a child that was made without us.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkRecord {
    /// The source.
    pub session: String,
    /// The child's id.
    pub child: String,
    /// Last event that it shares; left out for an empty child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// A position in a log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Position {
    /// Dense ordinal; for DSH the `seq`.
    pub ordinal: u64,
    /// The harness's own anchor, authoritative where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
}

/// A turn begins. The capture is the state before it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnBegin {
    /// Which session.
    pub session: String,
    /// Which turn, from 1.
    pub turn: u32,
    /// Where the conversation is: the turn's own first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Gives up after so many milliseconds from its arrival on, waiting included, and leaves a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The host's configuration, opaque; kept with the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_state: Option<String>,
}

/// A turn has ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnEnd {
    /// Which session.
    pub session: String,
    /// Which turn.
    pub turn: u32,
    /// The position of its last event, which must be on the disk: the conversation is cut there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// How it ended, in the harness's words; kept as the point's trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// As for `turn.begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// As for `turn.begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_state: Option<String>,
}

/// The open turn was broken off: it counts up to the next record. No capture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnInterrupt {
    /// Which session.
    pub session: String,
}

/// A turn was marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    /// Which.
    pub turn: u32,
}

/// A step begins. No capture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepBegin {
    /// Which session.
    pub session: String,
    /// Which turn.
    pub turn: u32,
    /// Which step, from 1.
    pub step: u32,
    /// Its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// A step has ended, so that `step:N` finds it. No capture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepEnd {
    /// Which session.
    pub session: String,
    /// Which turn.
    pub turn: u32,
    /// Which step.
    pub step: u32,
    /// Its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// What a capture is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureKind {
    /// A step has ended.
    Step,
    /// A mutating tool is about to run.
    Mutation,
    /// Made by a timer.
    Auto,
    /// Asked for by a person or by the model.
    Manual,
}

/// Captures now. With a `callId`, the same call is captured once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capture {
    /// Which session.
    pub session: String,
    /// What for.
    pub kind: CaptureKind,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Where the conversation is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The tool or command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The harness's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// A person's words; cut at 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// A label that pins the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Make a point even where the start or the end of a turn holds the same state.
    #[serde(default)]
    pub besides_turns: bool,
    /// As for `turn.begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// As for `turn.begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_state: Option<String>,
}

/// What became of a capture. A gap is an answer: the turn goes on without protection, and the list says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Captured {
    /// The point that holds the present state; null for a gap.
    pub id: Option<String>,
    /// Its tree.
    pub tree: Option<String>,
    /// False when an existing point holds this state.
    pub created: bool,
    /// Paths that changed since the record before; 0 when no point was made.
    pub changed: u64,
    /// Files, links and FIFOs it holds.
    pub files: u64,
    /// Paths that were left out.
    pub skipped: Vec<ReasonEntry>,
    /// Bytes it added to the store.
    pub new_bytes: u64,
    /// `quiet`; `live` when something may have changed during the walk; `watched` when a watcher stood for the walk, so
    /// that nothing is proven absent.
    pub consistency: String,
    /// From arrival to answer.
    pub ms: u64,
    /// Settings that could not be read and were taken as absent.
    pub warnings: Vec<String>,
    /// No point was made.
    pub gap: Option<GapMade>,
}

/// Why no point was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GapMade {
    /// The gap in the list.
    pub id: Option<String>,
    /// `busy`, `deadline`, `no-space`, `refused` or `failed`.
    pub reason: String,
    /// The error's own stable code.
    pub code: String,
    /// In words.
    pub message: String,
}

/// Lists what there is.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct List {
    /// Which session.
    pub session: String,
    /// Points of every session of the workspace.
    #[serde(default)]
    pub all_sessions: bool,
    /// Only these kinds of point: `turn-start`, `turn-end`, `step`, `mutation`, `auto`, `manual`, `guard`, `import`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// At most so many points, the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// With `cutBefore` and `cutAfter`, for which the session's log is read.
    #[serde(default)]
    pub cuts: bool,
    /// With the paths that each point's interval changed.
    #[serde(default)]
    pub changed_paths: bool,
    /// With the session's closed turns.
    #[serde(default)]
    pub turns: bool,
}

/// What there is. Everything oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Points, without guards unless `kinds` names them.
    pub points: Vec<PointEntry>,
    /// Points that `limit` left out.
    pub older: u64,
    /// Captures that did not happen.
    pub gaps: Vec<GapEntry>,
    /// The session's closed turns, as 000 lists them, where they were asked for.
    pub turns: Vec<TurnEntry>,
    /// Operations of the session.
    pub operations: Vec<OperationEntry>,
    /// Since when nothing was captured, after a gap.
    pub unprotected_since: Option<i64>,
    /// Why.
    pub unprotected_reason: Option<String>,
    /// The operation that `recover` would settle.
    pub unfinished: Option<String>,
}

/// A point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PointEntry {
    /// Its id: 32 hexadecimal digits.
    pub id: String,
    /// `HARNESS:ID`.
    pub session: String,
    /// The turn.
    pub turn: Option<u32>,
    /// The step.
    pub step: Option<u32>,
    /// What it is for.
    pub kind: String,
    /// The tree of the workspace.
    pub tree: Option<String>,
    /// The tool or command.
    pub trigger: Option<String>,
    /// The harness's id of the call.
    pub call_id: Option<String>,
    /// When it was recorded.
    pub at: i64,
    /// Paths that changed since the record before.
    pub changed: u64,
    /// Those paths, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_paths: Option<Vec<PathEntry>>,
    /// Files, links and FIFOs it holds.
    pub files: u64,
    /// Bytes its capture added to the store.
    pub new_bytes: u64,
    /// A person's words.
    pub note: Option<String>,
    /// Labels on it.
    pub names: Vec<String>,
    /// False for one that is damaged or of an older incarnation of the root.
    pub restorable: bool,
    /// Why it is damaged.
    pub damaged: Option<String>,
    /// Position of the conversation.
    pub seq: Option<u64>,
    /// Last event that a conversation cut before this point's turn shares.
    pub cut_before: Option<u64>,
    /// The same for a cut after it.
    pub cut_after: Option<u64>,
    /// For a guard: its operation.
    pub operation: Option<String>,
    /// True when a configuration was kept with it.
    pub config: bool,
}

/// A closed turn: from its start to its end, whatever was recorded in between (000-04).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEntry {
    /// Its number.
    pub turn: u32,
    /// Paths that were added, changed or removed in it.
    pub changed_count: u64,
    /// When its end was recorded.
    pub captured_at: i64,
    /// The tree at its end; null where nothing was captured.
    pub tree_hash: Option<String>,
}

/// A capture that did not happen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GapEntry {
    /// Its id.
    pub id: String,
    /// `HARNESS:ID`.
    pub session: String,
    /// The turn.
    pub turn: Option<u32>,
    /// The kind of point that is missing.
    pub kind: Option<String>,
    /// `busy`, `deadline`, `no-space`, `refused` or `failed`.
    pub reason: String,
    /// When.
    pub at: i64,
}

/// A restore, an undo or a redo.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationEntry {
    /// Its id.
    pub id: String,
    /// Which of the session's operations it is, from 1: for `undo.nth` (000's −k).
    pub nth: u32,
    /// `restore`, `undo` or `redo`.
    pub kind: String,
    /// `open`, `done`, `partial` or `rolled-back`.
    pub state: String,
    /// `HARNESS:ID`.
    pub session: String,
    /// The point it went to.
    pub target: Option<String>,
    /// The record of the state before.
    pub guard: Option<String>,
    /// The operation it took back.
    pub reverses: Option<String>,
    /// The operation that took it back, while that stands.
    pub reversed_by: Option<String>,
    /// When.
    pub at: i64,
    /// Paths it wrote.
    pub wrote: u64,
    /// The session it made.
    pub child_session_id: Option<String>,
    /// One line for people.
    pub summary: String,
    /// True once it can no longer be undone.
    pub expired: bool,
}

/// Compares two points.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Diff {
    /// Which session.
    pub session: String,
    /// The older one: an address as for `restore`.
    pub from: String,
    /// The newer one; left out: the workspace as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// What differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    /// The point on the left.
    pub from: String,
    /// The point on the right; null for now.
    pub to: Option<String>,
    /// Sorted by path.
    pub changes: Vec<ChangeEntry>,
}

/// A path that differs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeEntry {
    /// Which.
    pub path: String,
    /// Its bytes in base64, where they are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// `added`, `removed`, `modified`, `mode` or `type`.
    pub change: String,
}
