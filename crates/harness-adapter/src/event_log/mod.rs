//! Event logs of a host's own sessions (004-20): written behind its back, a barrier when it asks for one.
//!
//! For hosts in Rust that keep their sessions themselves. It writes version 0 of the DeepSeek Harness format in plain
//! text, which [`DshLogs`](crate::sessions::dsh::DshLogs) and that harness read. It opens only logs that it owns: one
//! process per session, held apart by a lock. Logs of a running harness are none of its business, they are never
//! appended to from outside.
//!
//! - Nothing is on disk before a session's first event. The first batch makes the file, header line first.
//! - An event waits for at most one fixed window from the first one that waits, however many follow. [`EventLogStore::tend`]
//!   writes what is due; [`Writer`] calls it from a thread.
//! - [`EventLogStore::flush`] is the barrier: everything appended before is synced when it returns. Flushes at the same
//!   time write once.
//! - A batch is on disk as a whole or not at all: what a failed write left is cut off again, and the batch is kept, in
//!   its order, for the next try.
//! - An event that the reader would refuse is refused before it is queued.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::{sync::Arc, time::Duration};
//! # use checkpoint_core::{Clock, LogEvent, Seq, Timestamp};
//! use harness_adapter::{event_log::{EventLogStore, JsonlStore, NewSession}, sessions::dsh::DshLogs};
//! # #[derive(Debug)] struct Fixed;
//! # impl Clock for Fixed {
//! #     fn now(&self) -> Timestamp { Timestamp(5) }
//! #     fn sleep(&self, _: Duration) {}
//! #     fn read_local(&self, _: &str) -> Option<Timestamp> { None }
//! # }
//! # let home = tempfile::tempdir()?;
//! let store = JsonlStore::new(home.path(), Arc::new(Fixed));
//! store.create(&NewSession::new("s1"))?;
//! let data = LogEvent::payload(&serde_json::json!({"turn": 1}))?;
//! let event = LogEvent { seq: Seq(0), time: 5, kind: "turn/start".into(), data, surface: None, sources: None, ignorable: false };
//! store.append("s1", event)?;
//! store.flush("s1")?;
//! assert_eq!(DshLogs::open(home.path()).events("s1")?.len(), 1);
//! # Ok(()) }
//! ```

mod error;
mod log;
mod medium;
mod store;
mod writer;

use std::fmt;

use checkpoint_core::{LogEvent, Seq, Timestamp};

pub use error::EventLogError;
pub use medium::LogMedium;
pub use store::JsonlStore;
pub use writer::Writer;

/// How long an event waits for company, in milliseconds, unless said otherwise.
pub const WINDOW_MS: i64 = 200;

/// The head of a session that is about to begin.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewSession {
    /// Its id: any text but the empty one. Whatever is in it, it names a folder and cannot leave its place.
    pub id: String,
    /// The directory it works in.
    pub cwd: Option<String>,
    /// The session it was forked from, and how many of its events it begins with.
    pub parent: Option<(String, u64)>,
    /// True for a subagent's session.
    pub subagent: bool,
    /// How deep it was delegated.
    pub delegation_depth: u64,
    /// The preset of its agent.
    pub agent_preset: Option<String>,
}

impl NewSession {
    /// A root session without anything else.
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }
}

/// A session that was opened again.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// Everything that is in its log now.
    pub events: Vec<LogEvent>,
    /// Bytes that a crash had left at its end and that were cut off.
    pub torn: u64,
    /// How many of the events were added just now, to close the turn that the crash left open (004-11).
    pub closers: usize,
}

/// Logs of the sessions of one host. All calls may come from any thread.
pub trait EventLogStore: fmt::Debug + Send + Sync {
    /// Takes a new session on. Nothing is written yet.
    ///
    /// # Errors
    /// [`EventLogError::AlreadyExists`] when it is open here or has a log, under whatever directory.
    fn create(&self, session: &NewSession) -> Result<(), EventLogError>;

    /// Opens a session that has a log: cuts a torn tail off, closes the turn that a crash left open, and syncs both.
    /// Only its owner may do that; [`EventLogStore::read`] changes nothing.
    ///
    /// # Errors
    /// A damaged log, or one of another version, is refused and left as it is.
    fn resume(&self, id: &str) -> Result<Resumed, EventLogError>;

    /// Queues an event. Writes nothing.
    ///
    /// # Errors
    /// The position must be the next one; one that is stored or queued already is refused (004-20), and so is an event
    /// that the reader of the log would refuse. After an error the log is as before.
    fn append(&self, id: &str, event: LogEvent) -> Result<(), EventLogError>;

    /// Returns when everything appended before is synced. After an error the batch waits, in its order.
    fn flush(&self, id: &str) -> Result<(), EventLogError>;

    /// Writes what is due. Gives the sessions for which that failed: their batches wait for another window.
    fn tend(&self) -> Vec<(String, EventLogError)>;

    /// When [`EventLogStore::tend`] has something to do next; `None` while nothing waits.
    fn due(&self) -> Option<Timestamp>;

    /// Position that the session's next event must have.
    fn next_seq(&self, id: &str) -> Result<Seq, EventLogError>;

    /// Events that are in the log, up to the last sound one. Works for sessions that are not open here too.
    fn read(&self, id: &str) -> Result<Vec<LogEvent>, EventLogError>;

    /// Flushes and lets the session go. Stays open when the flush fails.
    fn close(&self, id: &str) -> Result<(), EventLogError>;
}

#[cfg(test)]
mod tests;
