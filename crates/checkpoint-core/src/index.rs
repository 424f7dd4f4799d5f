//! The seam to the index: everything that is not content.

use std::{any::Any, collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    BoxError, Intent, IntentState, Mark, Name, OpId, OpKind, Operation, Ord, Point, PointId, PointKind, RelPath,
    Revision, Session, SessionKey, Timestamp, Touch, Written,
};

/// One atomic change. A value, so that memory, JSON and SQLite all apply the same thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// The newest place in the sequence that the caller has seen. Another is newest by now: [`IndexError::Conflict`]
    /// and nothing is applied (model F10). `None`: do not check.
    pub follows: Option<Ord>,
    /// The changes, applied in order.
    pub ops: Vec<IndexOp>,
}

/// Why a point goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// Retention.
    Quota,
    /// Somebody asked.
    User,
}

/// One change of a batch. "Put" inserts or replaces as a whole; on a replacement, stored fields that this version
/// does not know are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IndexOp {
    /// A new point, at the place `point.ord`, which must be the one after the newest. `interval`: what it closes;
    /// touches that were waiting for the record to come (see [`IndexOp::DropPoint`]) are merged into it, unless the
    /// point is a gap or an import, which close nothing.
    PutPoint {
        /// The point.
        point: Box<Point>,
        /// What changed since the record before it.
        interval: Vec<Touch>,
    },
    /// Replaces a stored point of the same `id` and `ord`.
    UpdatePoint {
        /// The point.
        point: Box<Point>,
    },
    /// Removes a point and every name on it. Its interval is merged, per path and member, into the next record that
    /// is no gap and no import, without the paths that an operation between the two wrote; with no next record it waits for the
    /// record to come (design § 8, model F13).
    DropPoint {
        /// Which.
        id: PointId,
        /// Why.
        reason: DropReason,
    },
    /// A new operation, at the place `operation.ord`, which must be the one after the newest.
    PutOperation {
        /// The operation.
        operation: Box<Operation>,
    },
    /// Replaces a stored operation of the same `id` and `ord`.
    UpdateOperation {
        /// The operation.
        operation: Box<Operation>,
    },
    /// What an operation wrote; replaces what was stored.
    PutWritten {
        /// Which operation.
        operation: OpId,
        /// Its paths.
        written: Vec<Written>,
    },
    /// Opens a transaction. Fails when one is open.
    OpenIntent {
        /// The intent.
        intent: Box<Intent>,
    },
    /// Moves the open transaction on. Fails unless it is in state `from`.
    AdvanceIntent {
        /// Its operation.
        operation: OpId,
        /// The state it must be in.
        from: IntentState,
        /// The state it is in afterwards.
        to: IntentState,
    },
    /// Closes the open transaction.
    CloseIntent {
        /// Its operation.
        operation: OpId,
    },
    /// Inserts or replaces a session.
    PutSession {
        /// The session.
        session: Box<Session>,
    },
    /// Inserts or replaces a name.
    PutName {
        /// The name.
        name: Name,
    },
    /// Removes a name. Fails when there is none.
    DropName {
        /// Its label.
        label: String,
    },
    /// A new mark. Its number must be above every number given before, in whatever session (contract 001-02): fails
    /// when it is not, so that of two who took the same number only one gets it.
    NewMark {
        /// The mark.
        mark: Mark,
    },
    /// Inserts or replaces a mark. One that is folded cannot be changed.
    PutMark {
        /// The mark.
        mark: Mark,
    },
    /// Changes the set of held paths that the newest record does not hold (design § 5, "Covered").
    Held {
        /// Paths that a stored point holds and the newest record does not.
        add: Vec<RelPath>,
        /// Paths that the newest record holds again.
        remove: Vec<RelPath>,
    },
}

/// Which points a query wants. The default is: all, oldest first.
#[derive(Clone, Debug, Default)]
pub struct PointQuery {
    /// Of these sessions only; empty means all.
    pub sessions: Vec<SessionKey>,
    /// Of these kinds only; empty means all.
    pub kinds: Vec<PointKind>,
    /// Ids that begin with these lower-case hexadecimal digits.
    pub id_prefix: Option<String>,
    /// At this place or before.
    pub at_or_before: Option<Ord>,
    /// After this place.
    pub after: Option<Ord>,
    /// Recorded at this time or before.
    pub recorded_by: Option<Timestamp>,
    /// Only points with a snapshot: no gaps.
    pub restorable: bool,
    /// Newest first.
    pub newest_first: bool,
    /// At most so many, after everything else.
    pub limit: Option<usize>,
}

/// Points, intervals, operations, intents, sessions, names and marks of one workspace.
pub trait IndexStore: Any + fmt::Debug + Send + Sync {
    /// Its kind, as `sqlite`, `json` or `memory`.
    fn name(&self) -> &'static str;

    /// Counts applied batches; changes whenever anything did, by whatever process.
    fn revision(&self) -> Result<Revision, IndexError>;

    /// The newest place given to a point or an operation, dropped ones included; zero when there was none.
    fn newest(&self) -> Result<Ord, IndexError>;

    /// Applies a batch: all or nothing, durable before it returns, one at a time across processes. After an error
    /// the stored state is as before, except after [`IndexError::Poisoned`] and [`IndexError::Storage`], where it is
    /// either as before or as after and the store must be reopened.
    fn apply(&self, batch: &Batch) -> Result<Revision, IndexError>;

    /// Points that match.
    fn points(&self, query: &PointQuery) -> Result<Vec<Point>, IndexError>;

    /// One point.
    fn point(&self, id: &PointId) -> Result<Option<Point>, IndexError>;

    /// Intervals closed by records after `after`, oldest first, each with its record's place.
    fn intervals(&self, after: Ord) -> Result<Vec<(Ord, Vec<Touch>)>, IndexError>;

    /// Touches that wait for the record to come.
    fn waiting(&self) -> Result<Vec<Touch>, IndexError>;

    /// One operation.
    fn operation(&self, id: &OpId) -> Result<Option<Operation>, IndexError>;

    /// Operations, newest first, of these kinds or of all when empty.
    fn operations(&self, kinds: &[OpKind], limit: Option<usize>) -> Result<Vec<Operation>, IndexError>;

    /// What an operation wrote.
    fn written(&self, id: &OpId) -> Result<Vec<Written>, IndexError>;

    /// The open transaction.
    fn open_intent(&self) -> Result<Option<Intent>, IndexError>;

    /// All sessions.
    fn sessions(&self) -> Result<Vec<Session>, IndexError>;

    /// One session, if it is known.
    fn session(&self, key: &SessionKey) -> Result<Option<Session>, IndexError> {
        Ok(self.sessions()?.into_iter().find(|session| session.key == *key))
    }

    /// All names, by label.
    fn names(&self) -> Result<Vec<Name>, IndexError>;

    /// All marks of a session, oldest first.
    fn marks(&self, session: &SessionKey) -> Result<Vec<Mark>, IndexError>;

    /// The highest number of any mark of any session; zero when there is none.
    fn newest_mark(&self) -> Result<u64, IndexError>;

    /// Held paths that the newest record does not hold.
    fn held(&self) -> Result<BTreeSet<RelPath>, IndexError>;

    /// Reads all that is stored and fails with [`IndexError::Damaged`] at what is not as it was written, or is missing. What
    /// `verify` asks; costs a read of the whole index.
    fn check(&self) -> Result<(), IndexError>;

    /// Work that may wait until the answer is out: checkpointing a log, compacting. Never needed for correctness.
    fn maintain(&self) -> Result<(), IndexError>;
}

impl dyn IndexStore {
    /// The concrete store, where a caller knows it.
    pub fn downcast_ref<T: IndexStore>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Why an index could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Somebody else recorded something meanwhile. Look again and retry.
    #[error("the index moved from {expected} to {found}")]
    Conflict {
        /// What the caller had seen.
        expected: Ord,
        /// What is newest.
        found: Ord,
    },
    /// A batch does not fit the stored state: a fault of the caller.
    #[error("the change does not fit the index: {why}")]
    Misfit {
        /// How.
        why: String,
    },
    /// Written by a newer rwd.
    #[error("the index format {found} is newer than {supported}")]
    TooNew {
        /// Format found.
        found: String,
        /// Newest format this version reads.
        supported: String,
    },
    /// Written by an older major format, which needs `rwd doctor --migrate`.
    #[error("the index format {found} must be migrated")]
    TooOld {
        /// Format found.
        found: String,
    },
    /// Stored data cannot be read.
    #[error("the index is damaged: {what}")]
    Damaged {
        /// Where.
        what: String,
        /// How it showed.
        source: BoxError,
    },
    /// An earlier write failed; reopen the index.
    #[error("an earlier write failed; reopen the index")]
    Poisoned,
    /// Another process has held the index for too long.
    #[error("another process is writing the index")]
    Busy,
    /// No room.
    #[error("no space left for the index")]
    NoSpace,
    /// May not be written.
    #[error("the index may not be written")]
    ReadOnly,
    /// The rest.
    #[error("the index storage failed")]
    Storage {
        /// How.
        source: BoxError,
    },
}
