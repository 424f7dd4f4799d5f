//! Small seams: time, ids, locks, progress, approval.

use std::{fmt, ops::ControlFlow, time::Duration};

use crate::{BoxError, EngineEvent, Preview, Timestamp};

/// The only source of time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now, in UTC milliseconds.
    fn now(&self) -> Timestamp;
    /// Waits. A test's clock returns at once and moves itself on.
    fn sleep(&self, time: Duration);
    /// Reads a local time as a person types it, `14:05` or `2026-11-30T14:05`: the newest such instant that is not in
    /// the future. `None` where the text is none, or where the owner knows no time zone.
    fn read_local(&self, text: &str) -> Option<Timestamp>;
}

/// The only source of randomness.
pub trait IdSource: fmt::Debug + Send + Sync {
    /// 16 fresh bytes.
    fn next(&self) -> [u8; 16];
}

/// Whether others may hold the lock too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Captures.
    Shared,
    /// Restore, undo, recover, gc, purge.
    Exclusive,
}

/// Holds a lock until dropped.
pub trait Held: fmt::Debug + Send + Sync {}

/// The workspace's advisory lock (design § 4): released by the system when its process dies.
pub trait StoreLock: fmt::Debug + Send + Sync {
    /// Waits up to `wait`. One open per call: never upgraded, never handed to a child process.
    fn acquire(&self, mode: LockMode, wait: Duration) -> Result<Box<dyn Held>, LockError>;
}

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it.
    #[error("another process is working on this workspace")]
    Busy,
    /// The lock file cannot be used.
    #[error("cannot lock the workspace")]
    Failed {
        /// How.
        source: BoxError,
    },
}

/// What an approver says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Go on.
    Approved,
    /// No.
    Rejected,
    /// There is nobody to ask.
    Unavailable,
}

/// Asked once per restore. Anything but [`Decision::Approved`] means nothing is touched.
pub trait Approver: fmt::Debug + Send + Sync {
    /// Shows the preview to whoever decides. `None` means approved before: no separate preview is made.
    fn decide(&self, preview: &Preview) -> Decision;
    /// True when the decision was given beforehand, as by `--yes`.
    fn is_settled(&self) -> bool {
        false
    }
}

/// Told how far a long operation is.
pub trait Progress: Send + Sync {
    /// `done` of `total` of `what`. Break to stop at the next safe place.
    fn tick(&self, what: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()>;
}

/// Shows nothing and never stops anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn tick(&self, _: &'static str, _: u64, _: Option<u64>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// How well a configuration was brought back (002-39).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKept {
    /// It outlives the host's process.
    Durable,
    /// It holds until the host ends.
    ThisProcess,
}

/// The configuration of a host, kept with each point and restored only on request (002-35, 002-39).
///
/// Both methods are called with the workspace's lock held: they must not call back into the engine.
pub trait HostState: fmt::Debug + Send + Sync {
    /// The configuration as it is now, in bytes that only this adapter reads; `None` when there is nothing to keep.
    ///
    /// A failure costs the point its configuration and nothing else.
    fn save(&self) -> Result<Option<Vec<u8>>, BoxError>;

    /// Brings a configuration back. Called after the files are restored, and again when recovery finishes the
    /// operation, so doing it twice must be the same as doing it once.
    ///
    /// After an error the files stay restored, the conversation is still forked, and the operation counts as partial.
    fn restore(&self, state: &[u8]) -> Result<HostKept, BoxError>;
}

/// Told what the engine has done, after it is durable.
pub trait Observer: fmt::Debug + Send + Sync {
    /// One event.
    fn on(&self, event: &EngineEvent);
}
