//! Why an event was not taken, or is not on disk.

use std::{io, path::PathBuf};

use checkpoint_core::Seq;

use crate::sessions::dsh::LogError;

/// Why an event was not taken, or is not on disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventLogError {
    /// The session is not open here.
    #[error("session {id:?} is not open")]
    NotOpen {
        /// The session.
        id: String,
    },
    /// The session is open here, or has a log.
    #[error("session {id:?} already exists")]
    AlreadyExists {
        /// The session.
        id: String,
        /// Its log, where it has one.
        path: Option<PathBuf>,
    },
    /// Another process has the session open.
    #[error("{} is open in another process", path.display())]
    Locked {
        /// The log.
        path: PathBuf,
    },
    /// The position is taken.
    #[error("event {seq} of session {id:?} is stored already; the next one is {next}")]
    Stored {
        /// The session.
        id: String,
        /// The position.
        seq: Seq,
        /// The next free one.
        next: Seq,
    },
    /// The position would leave a gap.
    #[error("event {seq} of session {id:?} would leave a gap; the next one is {next}")]
    Gap {
        /// The session.
        id: String,
        /// The position.
        seq: Seq,
        /// The next free one.
        next: Seq,
    },
    /// The log cannot be read, or could not be if this event were in it.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log is compressed, and only plain ones are written here.
    #[error("{} is compressed; only plain logs can be continued here", path.display())]
    Compressed {
        /// The log.
        path: PathBuf,
    },
    /// Somebody else wrote the log.
    #[error("{} was written by somebody else: {found} bytes, not {expected}", path.display())]
    Changed {
        /// The log.
        path: PathBuf,
        /// Bytes it should have.
        expected: u64,
        /// Bytes it has.
        found: u64,
    },
    /// The batch could not be written. Nothing of it is in the log.
    #[error("cannot {what} {}; the batch is kept", path.display())]
    Write {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
    /// The batch could not be written, and what was written of it could not be cut off again. The next try begins with
    /// that.
    #[error("cannot write {} ({write}), nor cut off what was written", path.display())]
    Rollback {
        /// The log.
        path: PathBuf,
        /// Why the batch was not written.
        write: io::Error,
        /// Why the rest stays.
        source: io::Error,
    },
}

impl EventLogError {
    /// Stable machine code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotOpen { .. } => "SESSION_NOT_LIVE",
            Self::AlreadyExists { .. } => "SESSION_ALREADY_EXISTS",
            Self::Locked { .. } => "SESSION_LOCKED",
            Self::Stored { .. } => "SEQ_STORED",
            Self::Gap { .. } => "SEQ_GAP",
            Self::Log(error) => error.code(),
            Self::Compressed { .. } => "COMPRESSED_LOG",
            Self::Changed { .. } => "LOG_CHANGED",
            Self::Write { .. } => "WRITE_FAILED",
            Self::Rollback { .. } => "ROLLBACK_FAILED",
        }
    }
}
