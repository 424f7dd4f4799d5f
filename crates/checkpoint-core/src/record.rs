//! What is stored: points, intervals, operations, intents, sessions, names, marks.
//!
//! Every type here is written as JSON by the index stores. Fields may be added, never removed or retyped; readers
//! ignore and writers keep what they do not know (design § 4, "Formats"). Every field is always written.

use serde::{Deserialize, Serialize};

use crate::{
    Head, ObjectId, OpId, Ord, PathState, PointId, RelPath, Seq, SessionKey, Snapshot, Step, Timestamp, Turn,
    WorkspaceId,
};

/// What a point is for (design § 2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PointKind {
    /// A turn begins. Always a record.
    TurnStart,
    /// A turn has ended. Always a record.
    TurnEnd,
    /// A step has ended.
    Step,
    /// A mutating tool is about to run.
    Mutation,
    /// Made by a timer.
    Auto,
    /// Asked for by a person.
    Manual,
    /// The state right before an operation. Always a record.
    Guard,
    /// Taken over from another tool.
    Import,
    /// A capture that did not happen.
    Gap,
}

impl PointKind {
    /// The stable name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TurnStart => "turn-start",
            Self::TurnEnd => "turn-end",
            Self::Step => "step",
            Self::Mutation => "mutation",
            Self::Auto => "auto",
            Self::Manual => "manual",
            Self::Guard => "guard",
            Self::Import => "import",
            Self::Gap => "gap",
        }
    }

    /// Every kind but [`PointKind::Import`]: an import's place says when it was taken over, not when its state was.
    pub const ALL_BUT_IMPORTS: [Self; 8] =
        [Self::TurnStart, Self::TurnEnd, Self::Step, Self::Mutation, Self::Auto, Self::Manual, Self::Guard, Self::Gap];

    /// True for records of this workspace as it was at their place: each closes the interval since the one before. A gap
    /// saw nothing, and an import is a state of an earlier time.
    pub const fn closes_interval(self) -> bool {
        !matches!(self, Self::Gap | Self::Import)
    }

    /// True for kinds that write a record even when nothing changed.
    pub const fn always_recorded(self) -> bool {
        matches!(self, Self::TurnStart | Self::TurnEnd | Self::Guard | Self::Import | Self::Gap)
    }
}

/// Why a capture did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GapReason {
    /// Another process held the workspace.
    Busy,
    /// The hook's time was up.
    Deadline,
    /// The disk or the budget is full.
    NoSpace,
    /// The root may not be captured.
    Refused,
    /// Something else failed.
    Failed,
}

/// Was the workspace still while it was walked?
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consistency {
    /// Only directories of which a watcher told were looked at: nothing is proven absent.
    Watched,
    /// Something may have changed during the walk; see [`Point::live`].
    Live,
    /// No directory changed.
    Quiet,
}

/// A position in a session log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Position {
    /// Dense ordinal.
    pub seq: Seq,
    /// The harness's own anchor, authoritative where it exists.
    pub anchor: Option<String>,
    /// Digest of the log up to and including `seq`, where it can be a cut.
    pub prefix: Option<String>,
}

/// One record: state of the workspace and position in the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Random id.
    pub id: PointId,
    /// Place in the workspace's sequence, given by the batch that commits it.
    pub ord: Ord,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The root's incarnation (design § 4): points of an older one give no evidence and need `--adopt`.
    pub incarnation: u32,
    /// The conversation; [`SessionKey::local`] outside any harness.
    pub session: SessionKey,
    /// The turn it belongs to.
    pub turn: Option<Turn>,
    /// The step it belongs to.
    pub step: Option<Step>,
    /// What it is for.
    pub kind: PointKind,
    /// The state; `None` for a gap.
    pub snapshot: Option<Snapshot>,
    /// Why there is none.
    pub gap: Option<GapReason>,
    /// For a gap: what the point would have been.
    pub missed: Option<PointKind>,
    /// Tool or command that caused it.
    pub trigger: Option<String>,
    /// The harness's id of the tool call: part of the idempotency key.
    pub call_id: Option<String>,
    /// A person's words, at most 500 characters.
    pub note: Option<String>,
    /// When it was recorded.
    pub at: Timestamp,
    /// When its walk started: intervals begin and end here.
    pub walk_started: Timestamp,
    /// Paths that changed in the interval it closes.
    pub changed: u64,
    /// Files, links and FIFOs it holds.
    pub files: u64,
    /// Bytes its capture added to the store.
    pub new_bytes: u64,
    /// Paths it left out.
    pub skipped: u64,
    /// Whether the workspace was still.
    pub consistency: Consistency,
    /// Directories that may have changed while they were listed; `None` is the root. No evidence of absence there.
    pub live: Vec<Option<RelPath>>,
    /// What the user's repository had checked out.
    pub head: Option<Head>,
    /// Where the conversation was.
    pub position: Option<Position>,
    /// False for a guard under `guard = off`.
    pub listed: bool,
    /// Made while an intent was open: no evidence.
    pub under_intent: bool,
    /// For a turn-end captured late: paths that changed after the turn's end and are not its work.
    pub late: Vec<RelPath>,
    /// For a guard: its operation. For a point made while an operation was unfinished: that one.
    pub operation: Option<OpId>,
    /// Paths that only a plan put into this snapshot, whatever the rules: they give no cover to later captures.
    pub sensitive: Vec<RelPath>,
    /// Set by `verify`: why it cannot be restored.
    pub damaged: Option<String>,
    /// The host's configuration at that time, as a blob that only its adapter reads.
    #[serde(default)]
    pub host_state: Option<ObjectId>,
    /// For an import: of its files' permission bits only the one for executing is known, as in a git tree. A restore
    /// leaves the other bits of a file that is there as they are. Written only where it is so: it never changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coarse_modes: bool,
}

/// Who may have changed something in an interval (design § 2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "who", content = "session", rename_all = "kebab-case")]
pub enum Member {
    /// Nobody rwd knows: a person, another program.
    Outside,
    /// A manual save outside any turn took responsibility.
    Local,
    /// A session with a turn open.
    Session(SessionKey),
}

/// One changed path of an interval, with everybody who may have changed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Touch {
    /// The path.
    pub path: RelPath,
    /// Who.
    pub by: Vec<Member>,
}

/// Newest change of a path per member: the place of the record that closed the interval with it.
pub type History = std::collections::BTreeMap<Member, Ord>;

/// What an operation left at one path, and the history that came with it (design § 2, model F5).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Written {
    /// The path.
    pub path: RelPath,
    /// What it held before.
    pub before: PathState,
    /// What it holds since.
    pub after: PathState,
    /// Newest change per member, in the state it came from.
    pub history: Vec<(Member, Ord)>,
}

/// What an entry of the operation log did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OpKind {
    /// Went to a point.
    Restore,
    /// Took a restore back.
    Undo,
    /// Took an undo back.
    Redo,
    /// Removed points.
    Drop,
    /// Took points over.
    Import,
    /// Removed content.
    Purge,
}

/// How an operation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpState {
    /// Its intent is open.
    Open,
    /// Finished.
    Done,
    /// Finished, but not all of it.
    Partial,
    /// Taken back; counts for nothing.
    RolledBack,
}

/// One entry of the operation log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// Random id.
    pub id: OpId,
    /// Place in the workspace's sequence.
    pub ord: Ord,
    /// What it did.
    pub kind: OpKind,
    /// How it stands.
    pub state: OpState,
    /// The session it was asked for in.
    pub session: SessionKey,
    /// The point it went to.
    pub target: Option<PointId>,
    /// The operation that it takes back: a restore for an undo, an undo for a redo.
    pub reverses: Option<OpId>,
    /// The undo that took it back, while it stands.
    pub reversed_by: Option<OpId>,
    /// The record of the state before.
    pub guard: Option<PointId>,
    /// The plan, as a blob.
    pub plan: Option<ObjectId>,
    /// When it was begun.
    pub at: Timestamp,
    /// Paths it wrote.
    pub wrote: u64,
    /// The child session it made.
    pub child: Option<String>,
    /// One line for people.
    pub summary: String,
    /// True once the trees are no longer kept: undo says "expired".
    pub expired: bool,
    /// Content of others that could not stay where it was: kept as long as the operation is.
    #[serde(default)]
    pub stored: Vec<(RelPath, ObjectId)>,
}

/// Where an open transaction stands (design § 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntentState {
    /// Files are being written. Recovery goes forward or back.
    Applying,
    /// Files are written and synced.
    Applied,
    /// The host has been asked for the child. From here only forward.
    Forking,
}

/// What a harness is asked for when a conversation is cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForkRequest {
    /// The session that is cut. Never modified.
    pub source: SessionKey,
    /// Last event that the child shares; `None` for an empty child with a parent link.
    pub boundary: Option<crate::BoundarySeq>,
    /// Id of the child, chosen before the call so that a crash between request and answer can be settled.
    pub child: String,
    /// What the child's model is told.
    pub notice: Option<String>,
}

/// An open transaction: enough to finish it or take it back after a crash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// Its operation.
    pub operation: OpId,
    /// How far it is.
    pub state: IntentState,
    /// The guard.
    pub guard: PointId,
    /// The guard's snapshot.
    pub before: Snapshot,
    /// The plan: a JSON array of changes in the order of application, as a synced blob.
    pub plan: ObjectId,
    /// Cut of the conversation, if any.
    pub fork: Option<ForkRequest>,
    /// Opaque configuration state to restore, as a blob.
    pub host_state: Option<ObjectId>,
    /// When it was begun.
    pub at: Timestamp,
    /// Digest of the source's log up to the cut: a log that was rewritten meanwhile is not forked.
    #[serde(default)]
    pub prefix: Option<String>,
}

/// Identifies a process across reboots and reuse of its number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessId {
    /// Number.
    pub pid: u32,
    /// Its start time, in the unit of the system.
    pub started: u64,
    /// The boot it belongs to.
    pub boot: String,
}

/// How a session's latest turn stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TurnStatus {
    /// Its number.
    pub turn: Turn,
    /// Its turn-start record; `None` when that capture was a gap: the time before counts as outside too.
    pub start: Option<Ord>,
    /// When it began.
    pub began: Timestamp,
    /// When it ended; `None` while it is open.
    pub ended: Option<Timestamp>,
    /// Interrupted: it counts up to the next record of the workspace.
    pub interrupted: bool,
    /// The last record that counts as its own, set by the record that closes it.
    pub closed: Option<Ord>,
    /// The harness process; `None` for a turn that was played by hand.
    pub process: Option<ProcessId>,
}

/// A session that is known to a workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Which.
    pub key: SessionKey,
    /// The session it was forked from.
    pub parent: Option<SessionKey>,
    /// How many of the parent's events it shares.
    pub seed_length: Option<u64>,
    /// The session whose subagent it is.
    pub subagent_of: Option<SessionKey>,
    /// Its latest turn.
    pub turn: Option<TurnStatus>,
    /// When it last recorded something.
    pub seen: Timestamp,
}

/// A label on a boundary (003).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Name {
    /// The label, unique in the workspace.
    pub label: String,
    /// The point there.
    pub point: PointId,
    /// The session.
    pub session: SessionKey,
    /// The stored cut.
    pub boundary: Option<crate::BoundarySeq>,
    /// A person's words.
    pub note: Option<String>,
    /// When it was set.
    pub at: Timestamp,
    /// Digest of the session's log up to the stored cut.
    #[serde(default)]
    pub prefix: Option<String>,
}

/// A position from which an exploration will be folded (001).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Number within the workspace, over all its sessions, from 1 (contract 001-02). Never given twice.
    pub id: u64,
    /// The session.
    pub session: SessionKey,
    /// Length of the log when it was set.
    pub log_length: u64,
    /// The turn.
    pub turn: Option<Turn>,
    /// What the exploration is for.
    pub objective: Option<String>,
    /// When it was folded; refused ever after.
    pub folded: Option<Timestamp>,
    /// When it was set.
    pub at: Timestamp,
}

/// A record of an empty workspace, for tests: its place, its time and its ids are all made of `n`.
#[cfg(test)]
pub(crate) fn sample_point(n: u8, session: SessionKey, kind: PointKind) -> Point {
    let object = ObjectId::from_bytes([n; 20]);
    Point {
        id: PointId::from_bytes([n; 16]),
        ord: Ord(u64::from(n)),
        workspace: WorkspaceId::from_bytes([0; 16]),
        incarnation: 0,
        session,
        turn: None,
        step: None,
        kind,
        snapshot: Some(Snapshot { tree: object, meta: object }),
        gap: None,
        missed: None,
        trigger: None,
        call_id: None,
        note: None,
        at: Timestamp(i64::from(n)),
        walk_started: Timestamp(i64::from(n)),
        changed: 0,
        files: 0,
        new_bytes: 0,
        skipped: 0,
        consistency: Consistency::Quiet,
        live: Vec::new(),
        head: None,
        position: None,
        listed: true,
        under_intent: false,
        late: Vec::new(),
        operation: None,
        sensitive: Vec::new(),
        damaged: None,
        host_state: None,
        coarse_modes: false,
    }
}
