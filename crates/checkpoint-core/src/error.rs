//! Why the engine could not do what was asked.

use crate::{
    AddressError, Blocked, BoxError, FsError, IndexError, LockError, ObjectId, OpId, Outcome, PathError, PointId,
    Preview, RelPath, SessionError, SessionKey, SnapshotError, Turn,
};

/// What kind of ending an error is. The command line maps each to an exit code (design § 9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// 1: something failed.
    Failure,
    /// 2: the request itself is wrong.
    Usage,
    /// 3: a decision is needed, or the plan is stale. Nothing was written.
    Decision,
    /// 4: confirmation needed or declined. Nothing was written.
    Confirmation,
    /// 5: partly done.
    Partial,
    /// 6: nothing to do.
    Nothing,
    /// 7: an operation is unfinished.
    Unfinished,
    /// 8: damaged, expired or not restorable.
    Damaged,
    /// 9: not found or ambiguous.
    NotFound,
    /// 11: busy.
    Busy,
    /// 130: interrupted; nothing was left half done.
    Interrupted,
}

/// Why the engine could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The address cannot be read.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Nothing has this address.
    #[error("{}", nothing_at(given))]
    NotFound {
        /// As typed.
        given: String,
        /// What there is instead, for a hint.
        choices: Vec<String>,
    },
    /// More than one thing has this address.
    #[error("{given:?} is ambiguous")]
    Ambiguous {
        /// As typed.
        given: String,
        /// Addresses that would do.
        choices: Vec<String>,
    },
    /// A selected path is neither there nor in the target.
    #[error("{path} is neither in the workspace nor in the target")]
    UnknownPath {
        /// As typed.
        path: RelPath,
    },
    /// A path is none of this workspace.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A name may not look like an address.
    #[error("{label:?} cannot be a name: {why}")]
    BadName {
        /// As typed.
        label: String,
        /// The rule.
        why: &'static str,
    },
    /// The point is gone, damaged or a gap.
    #[error("point {point} cannot be restored: {why}")]
    NotRestorable {
        /// Which.
        point: PointId,
        /// Why.
        why: String,
        /// The path whose content is gone, where it is that.
        path: Option<RelPath>,
    },
    /// The operation's states are no longer kept.
    #[error("operation {operation} has expired")]
    Expired {
        /// Which.
        operation: OpId,
    },
    /// The point belongs to an older incarnation of the root.
    #[error("point {point} was made before this directory was replaced")]
    OtherIncarnation {
        /// Which.
        point: PointId,
    },
    /// Hand-made or foreign paths wait for a decision.
    #[error("{} changed outside this session and would be overwritten", count(&preview.plan.undecided))]
    Undecided {
        /// What would be done otherwise.
        preview: Box<Preview>,
    },
    /// Paths stand in the way.
    #[error("{} cannot be restored", blocked_count(.blocked))]
    Blocked {
        /// Which.
        blocked: Vec<Blocked>,
    },
    /// The workspace is not as it was when the plan was approved.
    #[error("the plan is stale: the workspace changed since it was made")]
    Stale {
        /// Paths that are new in the plan or differ.
        paths: Vec<RelPath>,
    },
    /// Nobody said yes.
    #[error("not confirmed, so nothing was written")]
    NotApproved {
        /// True when somebody said no, false when there was nobody to ask.
        declined: bool,
        /// What was asked.
        preview: Box<Preview>,
    },
    /// An operation is unfinished.
    #[error("operation {operation} is unfinished")]
    Unfinished {
        /// Which.
        operation: OpId,
        /// True once the host was asked for the child: then it can only be finished.
        forking: bool,
    },
    /// A turn is open and at work.
    #[error("turn {turn} of session {session} is at work in this workspace")]
    TurnOpen {
        /// Whose.
        session: SessionKey,
        /// Which.
        turn: Turn,
    },
    /// Nothing qualifies.
    #[error("{why}")]
    Nothing {
        /// In words.
        why: String,
        /// What to do instead.
        hint: Option<String>,
    },
    /// No guard could be taken, so nothing was written.
    #[error("the present state cannot be guarded, so nothing was written")]
    Guard {
        /// Why.
        source: SnapshotError,
    },
    /// Somebody changed a path in the middle of the operation, which was rolled back.
    #[error("{path} changed while it was being restored; everything was put back")]
    Changed {
        /// Which.
        path: RelPath,
        /// Paths that could not be put back because somebody changed them too.
        left: Vec<RelPath>,
        /// Content of others that was stored.
        stored: Vec<(RelPath, ObjectId)>,
        /// The operation.
        operation: OpId,
        /// Its guard.
        guard: PointId,
    },
    /// A path could not be written; the operation was rolled back.
    #[error("restoring files failed; everything was put back")]
    Apply {
        /// The operation.
        operation: OpId,
        /// Its guard.
        guard: PointId,
        /// Why.
        source: FsError,
    },
    /// A path could not be written and rolling back failed too. The intent is open.
    #[error("restoring files failed and could not be taken back")]
    Stuck {
        /// The operation.
        operation: OpId,
        /// Its guard.
        guard: PointId,
        /// Why.
        source: FsError,
    },
    /// It is done, but the index could not be told. The operation may show as unfinished.
    #[error("it was done, but the end of the operation could not be recorded")]
    Unrecorded {
        /// The operation.
        operation: OpId,
        /// Its guard.
        guard: PointId,
        /// Why.
        source: IndexError,
    },
    /// What there was to restore is restored, the conversation is not forked.
    #[error("{}", not_forked(outcome))]
    NotForked {
        /// What was done.
        outcome: Box<Outcome>,
        /// True when the operation is over as it is; else recovery can ask for the same child again.
        closed: bool,
        /// Why.
        source: SessionError,
    },
    /// Files are restored, the host's configuration is not.
    #[error("files were restored but the configuration was not")]
    ConfigFailed {
        /// What was done.
        outcome: Box<Outcome>,
        /// Why.
        source: BoxError,
    },
    /// Recovery cannot go back once the host has been asked for the child.
    #[error("the session may have been forked already: this operation can only be finished")]
    OnlyForward {
        /// Which.
        operation: OpId,
    },
    /// Interrupted before anything was written, or rolled back.
    #[error("interrupted")]
    Interrupted,
    /// The capture did not happen; a gap was left.
    #[error("no point was made")]
    Gap {
        /// The gap, where it could be recorded.
        point: Option<PointId>,
        /// Why.
        source: Box<EngineError>,
    },
    /// The session log said no.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The lock was not got.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The snapshot backend failed.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The workspace cannot be read.
    #[error(transparent)]
    Fs(#[from] FsError),
}

fn count(paths: &[RelPath]) -> String {
    match paths {
        [one] => one.to_lossy(),
        many => format!("{} paths", many.len()),
    }
}

fn blocked_count(blocked: &[Blocked]) -> String {
    match blocked {
        [one] => one.path.to_lossy(),
        many => format!("{} paths", many.len()),
    }
}

/// A session that nobody knows is named as one.
fn nothing_at(given: &str) -> String {
    match given.strip_prefix("session ") {
        Some(session) => format!("no session {session:?} is known here"),
        None => format!("nothing is at {given:?}"),
    }
}

fn not_forked(outcome: &Outcome) -> &'static str {
    if outcome.restored.is_empty() && outcome.removed.is_empty() {
        "the session was not forked; no file was changed"
    } else {
        "files were restored but the session was not forked"
    }
}

impl EngineError {
    /// Stable machine code, shared by every surface.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address(_) => "bad-target",
            Self::NotFound { .. } => "not-found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::UnknownPath { .. } => "unknown-path",
            Self::Path(_) => "bad-path",
            Self::BadName { .. } => "bad-name",
            Self::NotRestorable { .. } => "not-restorable",
            Self::Expired { .. } => "expired",
            Self::OtherIncarnation { .. } => "other-incarnation",
            Self::Undecided { .. } => "decision-needed",
            Self::Blocked { .. } => "blocked",
            Self::Stale { .. } => "stale-plan",
            Self::NotApproved { declined: true, .. } => "declined",
            Self::NotApproved { .. } => "confirmation-needed",
            Self::Unfinished { .. } => "unfinished-operation",
            Self::TurnOpen { .. } => "turn-open",
            Self::Nothing { .. } => "nothing-to-do",
            Self::Guard { .. } => "guard-failed",
            Self::Changed { .. } => "changed-meanwhile",
            Self::Apply { .. } => "restore-failed",
            Self::Stuck { .. } => "restore-stuck",
            Self::Unrecorded { .. } => "unrecorded",
            Self::NotForked { .. } => "not-forked",
            Self::ConfigFailed { .. } => "CONFIG_RESTORE_FAILED",
            Self::OnlyForward { .. } => "only-forward",
            Self::Gap { source, .. } => source.code(),
            Self::Session(error) => error.code(),
            Self::Lock(LockError::Busy) | Self::Index(IndexError::Busy) => "busy",
            Self::Lock(_) => "lock-failed",
            Self::Index(IndexError::TooNew { .. }) | Self::Snapshot(SnapshotError::TooNew { .. }) => "newer-store",
            Self::Index(IndexError::TooOld { .. }) => "older-store",
            Self::Index(IndexError::Damaged { .. }) => "damaged-index",
            Self::Index(IndexError::NoSpace) | Self::Snapshot(SnapshotError::NoSpace { .. }) => "no-space",
            Self::Index(IndexError::ReadOnly) => "read-only-store",
            Self::Snapshot(error) if error.is_read_only() => "read-only-store",
            Self::Index(_) => "index-failed",
            Self::Snapshot(
                SnapshotError::Missing { .. } | SnapshotError::Damaged { .. } | SnapshotError::BadStore { .. },
            ) => "damaged-store",
            Self::Snapshot(SnapshotError::Deadline) => "deadline",
            Self::Interrupted | Self::Snapshot(SnapshotError::Interrupted) => "interrupted",
            Self::Fs(_) | Self::Snapshot(SnapshotError::Io { .. }) => "io",
            Self::Snapshot(_) => "snapshot-failed",
        }
    }

    /// What kind of ending it is.
    #[expect(clippy::match_same_arms, reason = "grouped by the layer that fails")]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Address(_) | Self::Path(_) | Self::BadName { .. } => ErrorKind::Usage,
            Self::NotFound { .. }
            | Self::Ambiguous { .. }
            | Self::UnknownPath { .. }
            | Self::Session(SessionError::NotFound(_)) => ErrorKind::NotFound,
            Self::NotRestorable { .. } | Self::Expired { .. } => ErrorKind::Damaged,
            Self::OtherIncarnation { .. }
            | Self::Undecided { .. }
            | Self::Blocked { .. }
            | Self::Stale { .. }
            | Self::Changed { .. }
            | Self::OnlyForward { .. } => ErrorKind::Decision,
            Self::NotApproved { .. } => ErrorKind::Confirmation,
            Self::Unfinished { .. } | Self::Stuck { .. } | Self::Unrecorded { .. } => ErrorKind::Unfinished,
            Self::TurnOpen { .. }
            | Self::Lock(LockError::Busy)
            | Self::Index(IndexError::Busy | IndexError::Conflict { .. }) => ErrorKind::Busy,
            Self::Nothing { .. } => ErrorKind::Nothing,
            Self::NotForked { .. } | Self::ConfigFailed { .. } => ErrorKind::Partial,
            Self::Interrupted | Self::Snapshot(SnapshotError::Interrupted) => ErrorKind::Interrupted,
            Self::Session(
                SessionError::OpenTurn { .. }
                | SessionError::NothingLeft { .. }
                | SessionError::InvalidBoundary { .. }
                | SessionError::NoTurn { .. }
                | SessionError::Unplaced { .. }
                | SessionError::Lineage { .. }
                | SessionError::AlreadyExists(_)
                | SessionError::NotLive(_)
                | SessionError::Unsupported
                | SessionError::UnsupportedFormat { .. }
                | SessionError::Corrupt { .. }
                | SessionError::PrefixChanged { .. },
            ) => ErrorKind::Decision,
            Self::Index(IndexError::TooNew { .. } | IndexError::TooOld { .. } | IndexError::Damaged { .. })
            | Self::Snapshot(
                SnapshotError::TooNew { .. }
                | SnapshotError::Missing { .. }
                | SnapshotError::Damaged { .. }
                | SnapshotError::BadStore { .. },
            ) => ErrorKind::Damaged,
            Self::Gap { source, .. } => source.kind(),
            Self::Guard { .. }
            | Self::Apply { .. }
            | Self::Session(_)
            | Self::Lock(_)
            | Self::Index(_)
            | Self::Snapshot(_)
            | Self::Fs(_) => ErrorKind::Failure,
        }
    }

    /// What went wrong: a capture's gap stands for what caused it.
    pub fn innermost(&self) -> &Self {
        match self {
            Self::Gap { source, .. } => source.innermost(),
            other => other,
        }
    }

    /// The operation it is about.
    pub fn operation(&self) -> Option<OpId> {
        match self {
            Self::Expired { operation }
            | Self::Unfinished { operation, .. }
            | Self::Changed { operation, .. }
            | Self::Apply { operation, .. }
            | Self::Stuck { operation, .. }
            | Self::Unrecorded { operation, .. }
            | Self::OnlyForward { operation } => Some(*operation),
            Self::NotForked { outcome, .. } | Self::ConfigFailed { outcome, .. } => outcome.operation,
            _ => None,
        }
    }

    /// The guard that holds the state before.
    pub fn guard(&self) -> Option<PointId> {
        match self {
            Self::Changed { guard, .. }
            | Self::Apply { guard, .. }
            | Self::Stuck { guard, .. }
            | Self::Unrecorded { guard, .. } => Some(*guard),
            Self::NotForked { outcome, .. } | Self::ConfigFailed { outcome, .. } => outcome.guard,
            _ => None,
        }
    }
}
