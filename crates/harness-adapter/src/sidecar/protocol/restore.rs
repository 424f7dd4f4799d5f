//! Going back: previews, restores, undo, redo, recovery, and what the client is asked meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PathEntry, ReasonEntry, StoredEntry};

/// Which half of a rewind is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeWord {
    /// Both where the conversation can be cut, else files, with one line why.
    #[default]
    Default,
    /// Files only.
    Files,
    /// The conversation only.
    Chat,
    /// Both, or fail.
    Both,
}

/// Which end of a turn the conversation is cut at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoundaryWord {
    /// Before the point's turn.
    Before,
    /// After it.
    After,
}

/// What to do with paths that were changed by hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftWord {
    /// Refuse and name them.
    #[default]
    Ask,
    /// Leave them.
    Keep,
    /// Restore them too; the edit is in the guard.
    Overwrite,
}

/// What happens when a path cannot be guarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardWord {
    /// Nothing is done.
    Require,
    /// It is left out, the rest goes on.
    Warn,
    /// The guard is on no list.
    Off,
}

/// Where files are restored at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilesWord {
    /// Everywhere.
    Everywhere,
    /// In git worktrees; elsewhere only the conversation goes back (000-16).
    GitOnly,
}

/// How a restore behaves. Part of the plan: a preview and its restore must agree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Remove paths that the target did not have, on evidence. An undo always does.
    #[serde(default)]
    pub exact: bool,
    /// Hand-made paths.
    #[serde(default)]
    pub drift: DriftWord,
    /// Hand-made paths that are restored whatever `drift` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overwrite: Vec<PathEntry>,
    /// Restore what unrelated sessions changed.
    #[serde(default)]
    pub with_others: bool,
    /// Go on without blocked paths.
    #[serde(default)]
    pub skip_blocked: bool,
    /// The settings say, if this does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardWord>,
    /// `git-only` where this or the settings say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesWord>,
    /// Only these and what lies below them; empty means all. Literal paths below the root, never patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathEntry>,
}

/// Shows what [`Restore`] would do. Nothing is stored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewAsk {
    /// Which session.
    pub session: String,
    /// The address: `t7`, `t7^`, `t7.3`, `step:3`, `seq:87`, `latest~2`, `@10m`, an id's beginning or a name.
    pub target: String,
    /// How.
    #[serde(default)]
    pub policy: Policy,
    /// Which half.
    #[serde(default)]
    pub scope: ScopeWord,
    /// Overrides the address's own rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<BoundaryWord>,
    /// The host's configuration too, through `hostState.restore`.
    #[serde(default)]
    pub config: bool,
    /// Points of an older incarnation of the root as well.
    #[serde(default)]
    pub adopt: bool,
}

/// Goes back to a point.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Restore {
    /// Which session.
    pub session: String,
    /// The address, as for `preview`.
    pub target: String,
    /// How.
    #[serde(default)]
    pub policy: Policy,
    /// Which half.
    #[serde(default)]
    pub scope: ScopeWord,
    /// Overrides the address's own rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<BoundaryWord>,
    /// The host's configuration too.
    #[serde(default)]
    pub config: bool,
    /// Points of an older incarnation of the root as well.
    #[serde(default)]
    pub adopt: bool,
    /// The plan of a preview: anything else is `stale-plan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The client has asked its user, or its own policy allows it. Without it `approval.ask` decides; where that is not
    /// answered either, nothing is written (`confirmation-needed`).
    #[serde(default)]
    pub confirmed: bool,
    /// The call comes from inside this session's own open turn, which is therefore not in the way.
    #[serde(default)]
    pub inside_turn: bool,
    /// The host's configuration now, for the guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_state: Option<String>,
}

/// Shows what [`Undo`] would do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UndoPreview {
    /// Which session.
    pub session: String,
    /// An operation's id, its beginning, or its guard; left out: the newest restore of the session that qualifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The session's operation of that number, from 1 (000's −k).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// How.
    #[serde(default)]
    pub policy: Policy,
    /// The host's configuration too.
    #[serde(default)]
    pub config: bool,
}

/// Takes a restore back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Undo {
    /// Which session.
    pub session: String,
    /// As for `undo.preview`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// As for `undo.preview`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// How.
    #[serde(default)]
    pub policy: Policy,
    /// The host's configuration too.
    #[serde(default)]
    pub config: bool,
    /// As for `restore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// As for `restore`.
    #[serde(default)]
    pub confirmed: bool,
    /// As for `restore`.
    #[serde(default)]
    pub inside_turn: bool,
    /// As for `restore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_state: Option<String>,
}

/// Restores what the last undo took back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Redo {
    /// Which session.
    pub session: String,
    /// How.
    #[serde(default)]
    pub policy: Policy,
    /// The host's configuration too.
    #[serde(default)]
    pub config: bool,
    /// As for `restore`.
    #[serde(default)]
    pub confirmed: bool,
    /// As for `restore`.
    #[serde(default)]
    pub inside_turn: bool,
    /// As for `restore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_state: Option<String>,
}

/// Which way an unfinished operation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Forward.
    Finish,
    /// Forward, and where the conversation still cannot be forked, without that.
    FinishFiles,
    /// Back. Not possible once the host has been asked for the child.
    Back,
}

/// Settles an unfinished operation. The call is the decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Recover {
    /// A session of the workspace.
    pub session: String,
    /// Which way.
    pub way: Way,
}

/// Where the conversation is cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CutEntry {
    /// Last event that the child shares; null for an empty child.
    pub seq: Option<u64>,
    /// In words: `end of turn 7`, `event 12`, `empty`.
    pub rule: String,
    /// `HARNESS:ID`.
    pub session: String,
}

/// What would be done: the fields of `rwd preview --json`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// For `restore.plan`.
    pub plan: String,
    /// The point.
    pub target: Option<String>,
    /// The operation that would be taken back.
    pub reverses: Option<String>,
    /// `HARNESS:ID`.
    pub session: String,
    /// Content replaced.
    pub overwrite: Vec<PathEntry>,
    /// Made again.
    pub recreate: Vec<PathEntry>,
    /// Permission bits only.
    pub mode: Vec<PathEntry>,
    /// Removed.
    pub remove: Vec<PathEntry>,
    /// The same already.
    pub unchanged: u64,
    /// New since, and kept.
    pub kept_new: Vec<PathEntry>,
    /// Changed by hand since.
    pub hand_made: Vec<PathEntry>,
    /// Changed by a turn after its last capture.
    pub uncaptured: Vec<PathEntry>,
    /// Changed by an unrelated session since.
    pub foreign: Vec<PathEntry>,
    /// Cannot be restored.
    pub blocked: Vec<ReasonEntry>,
    /// What the target left out.
    pub uncovered: Vec<ReasonEntry>,
    /// Wait for a decision.
    pub undecided: Vec<PathEntry>,
    /// Null when only files go back.
    pub cut: Option<CutEntry>,
    /// `files`, `chat` or `both`.
    pub scope: String,
    /// True when the host's configuration would be restored, too.
    pub config: bool,
    /// For people.
    pub notes: Vec<String>,
}

/// What was done: the fields of `rwd to --json`, without its commands to paste.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The operation; null when there was nothing to do.
    pub op: Option<String>,
    /// Which of the session's operations it is, from 1 (000's −k).
    pub nth: Option<u32>,
    /// `restored`, `partial` or `nothing`.
    pub status: String,
    /// The point that was restored.
    pub target: Option<String>,
    /// The operation that this one took back.
    pub reverses: Option<String>,
    /// Written.
    pub restored: Vec<PathEntry>,
    /// Removed.
    pub removed: Vec<PathEntry>,
    /// The same already.
    pub unchanged: u64,
    /// New since, and kept.
    pub kept_new: Vec<PathEntry>,
    /// Changed by hand since.
    pub hand_made: Vec<PathEntry>,
    /// Changed by an unrelated session since.
    pub foreign: Vec<PathEntry>,
    /// Changed by a turn after its last capture.
    pub uncaptured: Vec<PathEntry>,
    /// Cannot be restored.
    pub blocked: Vec<ReasonEntry>,
    /// What the target left out.
    pub uncovered: Vec<ReasonEntry>,
    /// The record of the state before.
    pub guard: Option<String>,
    /// The child.
    pub child_session_id: Option<String>,
    /// True when only the conversation was cut.
    pub context_only: bool,
    /// Where the conversation was cut; null when only files went back.
    pub cut: Option<CutEntry>,
    /// Content of others that was stored because it could not stay.
    pub stored: Vec<StoredEntry>,
    /// For people.
    pub notes: Vec<String>,
}

/// Asks whether to go on. Without a `yes` nothing is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAsk {
    /// The session, as the client calls it.
    pub session: String,
    /// What would be done.
    pub preview: Preview,
}

/// What was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Go on.
    Approved,
    /// No.
    Rejected,
    /// There is nobody to ask.
    Unavailable,
}

/// The answer to [`ApprovalAsk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// What.
    pub decision: Answer,
}

/// Asks the host for a child with the inclusive prefix, durable when it answers. Asked after the files are restored; it
/// may be asked again with the same id after a crash. Errors: with the host's code in `error.data.code`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionFork {
    /// The source, as the client calls it. Never modified.
    pub session: String,
    /// Last event that the child shares; null for an empty child with a parent link.
    pub boundary: Option<u64>,
    /// The child's id, chosen before. It must be used.
    pub child: String,
    /// What the child's model is told, at the tail.
    pub notice: Option<String>,
}

/// A child was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// Its id: the one that was asked for.
    pub child: String,
}

/// Asks whether the child of an earlier `session.fork` exists and is durable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionFind {
    /// The source.
    pub session: String,
    /// As it was asked for.
    pub boundary: Option<u64>,
    /// The child's id.
    pub child: String,
}

/// The answer to [`SessionFind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// True when it is there.
    pub exists: bool,
}

/// Asks the host to bring the session's log to the disk: asked before the log is read for a cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionFlush {
    /// Which.
    pub session: String,
}

/// Asks the host to take a configuration back. It may be asked twice for one operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostStateRestore {
    /// The session.
    pub session: String,
    /// As it was given with a capture.
    pub state: String,
}

/// The answer to [`HostStateRestore`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostStateKept {
    /// True when it outlives the host's process.
    pub durable: bool,
}
