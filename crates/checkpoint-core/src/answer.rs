//! What callers ask of the engine and what they get back. Plain data: surfaces turn it into JSON or text.

use serde::{Deserialize, Serialize};

use crate::{
    BoundaryRule, BoundarySeq, Change, FilesWhere, ObjectId, OpId, Point, PointId, PointKind, Position, ProcessId,
    RelPath, RestorePolicy, Scope, Seq, SessionKey, SkipReason, Skipped, Step, Timestamp, Turn,
};

/// Asks for a point.
#[derive(Clone, Debug)]
pub struct SaveRequest {
    /// The conversation; [`SessionKey::local`] outside any harness.
    pub session: SessionKey,
    /// What the point is for.
    pub kind: PointKind,
    /// The turn.
    pub turn: Option<Turn>,
    /// The step.
    pub step: Option<Step>,
    /// Tool or command that caused it.
    pub trigger: Option<String>,
    /// The harness's id of the tool call.
    pub call_id: Option<String>,
    /// A person's words; cut at 500 characters.
    pub note: Option<String>,
    /// A label to pin the point with.
    pub name: Option<String>,
    /// Where the conversation is.
    pub position: Option<Position>,
    /// The harness process, for a turn-start.
    pub process: Option<ProcessId>,
    /// When the turn ended, for a turn-end that is captured late; `None`: now.
    pub ended: Option<Timestamp>,
    /// Gives up, leaving a gap, when the walk is not done by then.
    pub deadline: Option<std::time::Duration>,
    /// The start or the end of a turn does not stand for it, even where it holds the same state: for surfaces that list
    /// turns elsewhere.
    pub besides_turns: bool,
}

impl SaveRequest {
    /// A manual point of no session.
    pub fn manual() -> Self {
        Self::of(SessionKey::local(), PointKind::Manual)
    }

    /// A point of `kind` in `session`, everything else left open.
    pub fn of(session: SessionKey, kind: PointKind) -> Self {
        Self {
            session,
            kind,
            turn: None,
            step: None,
            trigger: None,
            call_id: None,
            note: None,
            name: None,
            position: None,
            process: None,
            ended: None,
            deadline: None,
            besides_turns: false,
        }
    }
}

/// A point that holds the present state.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The point: a new one, or an existing one that holds this very state.
    pub point: Point,
    /// True when it is new.
    pub created: bool,
    /// Everything left out.
    pub skipped: Vec<Skipped>,
    /// Settings that could not be read and were taken as absent.
    pub warnings: Vec<String>,
}

/// Asks for a preview or a restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreRequest {
    /// The session that unqualified addresses mean; `None`: the default rule of design § 6.
    pub session: Option<SessionKey>,
    /// The address, as typed.
    pub target: String,
    /// How.
    pub policy: RestorePolicy,
    /// Which half.
    pub scope: Scope,
    /// Overrides the address's own rule for the cut.
    pub boundary: Option<BoundaryRule>,
    /// A plan id from a preview: anything else is stale.
    pub plan: Option<String>,
    /// Go on although a turn is open and at work.
    pub force: bool,
    /// Restore points of an older incarnation of the root.
    pub adopt: bool,
    /// Where files are restored at all.
    pub files: FilesWhere,
    /// Restore the host's configuration as it was at the point, too. Needs a [`HostState`](crate::HostState).
    pub config: bool,
}

/// Asks for an undo or a redo.
#[derive(Clone, Debug, Default)]
pub struct ReverseRequest {
    /// The operation, as typed (an id prefix or the id of its guard); `None`: the newest that qualifies.
    pub operation: Option<String>,
    /// Only operations and points of this session count.
    pub session: Option<SessionKey>,
    /// How; `exact` is implied.
    pub policy: RestorePolicy,
    /// A plan id from a preview.
    pub plan: Option<String>,
    /// Go on although a turn is open and at work.
    pub force: bool,
    /// Restore the host's configuration as it was before the operation, too.
    pub config: bool,
}

/// Which way an unfinished operation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Forward.
    Finish,
    /// Forward, and where the session still cannot be forked, without that: for a log that is gone for good.
    FinishFiles,
    /// Back. Not possible once the host has been asked for the child.
    Back,
}

/// A path that stands in the way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Blocked {
    /// Which.
    pub path: RelPath,
    /// Stable reason: a [`SkipReason`] code, an [`FsError`](crate::FsError) reason, or one of `swap`, `parent-kept`,
    /// `not-guarded`, `name-collision`.
    pub reason: String,
    /// The path below it that is the cause, where it is another.
    pub cause: Option<RelPath>,
}

/// What going somewhere would do: the plan, in the categories of design § 7. A pure value; preview and apply share it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// What is applied, in this order. `before` is always readable from the guard, `after` from the target.
    pub changes: Vec<Change>,
    /// Paths whose content is replaced.
    pub overwrite: Vec<RelPath>,
    /// Paths that are made again; a directory only where nothing is made below it.
    pub recreate: Vec<RelPath>,
    /// Paths of which only permission bits change.
    pub mode: Vec<RelPath>,
    /// Paths that are removed; a directory only where nothing is removed below it.
    pub remove: Vec<RelPath>,
    /// Files, links and FIFOs that stay because they are the same.
    pub unchanged: u64,
    /// Paths that the target did not have and that stay.
    pub kept_new: Vec<RelPath>,
    /// Paths that somebody outside changed since.
    pub hand_made: Vec<RelPath>,
    /// Paths that a turn changed after its last capture.
    pub uncaptured: Vec<RelPath>,
    /// Paths that an unrelated session changed since.
    pub foreign: Vec<RelPath>,
    /// Paths that cannot be restored.
    pub blocked: Vec<Blocked>,
    /// What the target left out: never written, never removed.
    pub uncovered: Vec<Skipped>,
    /// Hand-made and foreign paths that wait for a decision; they are not in `changes`.
    pub undecided: Vec<RelPath>,
}

impl Plan {
    /// True when applying it writes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Paths that a person would count: written or removed.
    pub fn touched(&self) -> usize {
        self.overwrite.len() + self.recreate.len() + self.mode.len() + self.remove.len()
    }
}

/// Where the conversation is cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cut {
    /// The session that is forked.
    pub session: SessionKey,
    /// Last event that the child shares; `None`: an empty child with a parent link.
    pub boundary: Option<BoundarySeq>,
    /// Which rule gave it, in words: `end of turn 7`, `event 12`, `empty`.
    pub rule: String,
    /// Digest of the session's log up to the boundary, when it was looked up.
    pub prefix: Option<String>,
}

/// Where the conversation could be cut around a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cuts {
    /// Before the point's turn: last event that a child would share.
    pub before: Option<Seq>,
    /// After it; `None` while the turn is open, too.
    pub after: Option<Seq>,
}

/// An address, resolved.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The point; `None` for `@`, now.
    pub point: Option<Point>,
    /// The session the address was read in.
    pub session: SessionKey,
    /// Where the conversation would be cut, where it has a door.
    pub cut: Option<Cut>,
    /// What a person should know, as that the turn's own end was not captured.
    pub notes: Vec<String>,
}

/// What a restore would do.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Hash of target, scope, cut, policy and each path with before and after.
    pub plan_id: String,
    /// The point that would be restored; `None` for an undo or redo.
    pub target: Option<Point>,
    /// The operation that would be taken back.
    pub reverses: Option<OpId>,
    /// The session.
    pub session: SessionKey,
    /// The plan.
    pub plan: Plan,
    /// True when files would be restored.
    pub files: bool,
    /// Where the conversation would be cut; `None` when only files go back.
    pub cut: Option<Cut>,
    /// True when the host's configuration would be restored, too.
    pub config: bool,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// All of it.
    Restored,
    /// Not all of it: see `blocked` and the notes.
    Partial,
    /// There was nothing to do; nothing was recorded.
    Nothing,
}

/// What an operation did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The operation; `None` when there was nothing to do.
    pub operation: Option<OpId>,
    /// How it ended.
    pub status: Status,
    /// The plan that was applied, with its categories.
    pub plan: Plan,
    /// Paths written.
    pub restored: Vec<RelPath>,
    /// Paths removed.
    pub removed: Vec<RelPath>,
    /// The record of the state before: `undo` goes back there.
    pub guard: Option<PointId>,
    /// The point that was restored.
    pub target: Option<Point>,
    /// Where the conversation was cut, or would have been.
    pub cut: Option<Cut>,
    /// The child session.
    pub child: Option<String>,
    /// True when only the conversation was cut.
    pub context_only: bool,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Content of others that could not stay where it was and was stored: path and blob.
    pub stored: Vec<(RelPath, ObjectId)>,
}

/// What an engine has done, told to the [`Observer`](crate::Observer) once it is durable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EngineEvent {
    /// A point was recorded.
    Captured {
        /// Which.
        point: PointId,
    },
    /// A capture ended without a record.
    Gap {
        /// The gap.
        point: PointId,
    },
    /// A point was removed.
    Dropped {
        /// Which.
        point: PointId,
    },
    /// An operation has begun: from here a crash leaves an intent.
    Begun {
        /// Which.
        operation: OpId,
    },
    /// An operation has ended.
    Ended {
        /// Which.
        operation: OpId,
        /// How.
        state: crate::OpState,
    },
}

/// A point whose snapshot cannot be read whole.
#[derive(Clone, Debug)]
pub struct Damage {
    /// Which.
    pub point: PointId,
    /// Why.
    pub reason: String,
}

/// What `verify` found.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Points looked at.
    pub checkpoints: u64,
    /// Those that cannot be restored.
    pub damaged: Vec<Damage>,
    /// Files of the store that changed, each with what about it, though no point may need the change. Asked for with
    /// [`VerifyLevel::Rehash`](crate::VerifyLevel::Rehash).
    pub store: Vec<String>,
}

/// How a skipped path reads in `blocked`.
pub(crate) fn blocked_by_skip(path: RelPath, reason: SkipReason, cause: Option<RelPath>) -> Blocked {
    Blocked { path, reason: reason.code().to_owned(), cause }
}
