//! Why a session log cannot be read, cut or copied: what, where and what next, with a stable code each.

use std::{fmt, io, path::PathBuf};

use checkpoint_core::{Seq, Turn};

/// A place in a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Place {
    /// The file as a whole.
    File,
    /// A byte of the file, from 0.
    Byte(u64),
    /// A row, from 1, as the host counts: the header before it is none.
    Row(u64),
    /// An event.
    Event(Seq),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("as a whole"),
            Self::Byte(byte) => write!(f, "at byte {byte}"),
            Self::Row(row) => write!(f, "at row {row}"),
            Self::Event(seq) => write!(f, "at event {seq}"),
        }
    }
}

/// Why a log, or the folder of logs, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// No session has this id.
    #[error("session {id:?} not found below {}", sessions.display())]
    NotFound {
        /// The id.
        id: String,
        /// The folder of logs.
        sessions: PathBuf,
    },
    /// The id asked for a child is taken, or its folder is.
    #[error("session {id:?} already exists: {}", path.display())]
    AlreadyExists {
        /// The id.
        id: String,
        /// Where it is.
        path: PathBuf,
    },
    /// The text can be no session's id here.
    #[error("{id:?} cannot be used as a session id")]
    BadId {
        /// The text.
        id: String,
    },
    /// The session has no such event.
    #[error("session {id:?} has no event {seq} to cut at; {}", last_text(*last))]
    InvalidBoundary {
        /// The session.
        id: String,
        /// The position asked for.
        seq: Seq,
        /// Its last event.
        last: Option<Seq>,
    },
    /// The cut would lie inside a turn.
    #[error("event {seq} of session {id:?} lies inside turn {turn}, before its end")]
    OpenTurn {
        /// The session.
        id: String,
        /// The position asked for.
        seq: Seq,
        /// The turn.
        turn: Turn,
    },
    /// One id under two projects: the host refuses that id, and its list of all sessions.
    #[error("session {id:?} occurs twice: {} and {}", first.display(), second.display())]
    Duplicate {
        /// The id.
        id: String,
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A log lies elsewhere than its header says: the host refuses it, and its list of all sessions.
    #[error("{}: its header belongs to {}", path.display(), expected.display())]
    Misplaced {
        /// Where it is.
        path: PathBuf,
        /// Where the host would look for it.
        expected: PathBuf,
    },
    /// Compressed and plain logs below one folder: the host refuses every session.
    #[error("compressed and plain logs are mixed: {} and {}", first.display(), second.display())]
    MixedEncodings {
        /// One of them.
        first: PathBuf,
        /// One of the other kind.
        second: PathBuf,
    },
    /// A log in the place of an older layout: the host refuses every session.
    #[error("{}: a log must have a folder of its own", path.display())]
    FlatLayout {
        /// Where it is.
        path: PathBuf,
    },
    /// A version of the format that this build cannot read, or cannot write.
    #[error("{}: log format {version} cannot be {} here", path.display(), if *write { "written" } else { "read" })]
    UnsupportedVersion {
        /// The log.
        path: PathBuf,
        /// Its version, as written.
        version: String,
        /// True when it can be read.
        write: bool,
    },
    /// A type of events that the host does not know, not marked as ignorable: the host refuses the log.
    #[error("{}: event {seq} has the type {kind:?}, which the host does not know", path.display())]
    UnknownEvent {
        /// The log.
        path: PathBuf,
        /// The event.
        seq: Seq,
        /// Its type.
        kind: String,
    },
    /// The first line is no header of a session.
    #[error("{}: the first line is not a session header: {why}", path.display())]
    NoHeader {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The header has the fields `sandboxMode` or `approvalPolicy`: the host refuses the log and its list.
    #[error("{}: the header has retired policy fields", path.display())]
    RetiredHeader {
        /// The log.
        path: PathBuf,
    },
    /// The log breaks a rule of its format: the host refuses it.
    #[error("{}: corrupt {place}: {why}", path.display())]
    Corrupt {
        /// The log.
        path: PathBuf,
        /// Where.
        place: Place,
        /// Which rule.
        why: String,
    },
    /// The child was written and did not read back as what was to be written. It was taken away again.
    #[error("the new log did not read back as it was written")]
    ReadBack {
        /// What is wrong with it.
        source: Box<LogError>,
    },
    /// The log changed while it was copied.
    #[error("{} changed while it was read", path.display())]
    Changed {
        /// The log.
        path: PathBuf,
    },
    /// The log up to the cut is another one than the cut was planned in.
    #[error("{} is another log up to event {seq} than it was", path.display())]
    OtherPrefix {
        /// The log.
        path: PathBuf,
        /// The last event of the cut.
        seq: Seq,
    },
    /// A repaired copy may not be put there.
    #[error("{}: {why}", path.display())]
    BadTarget {
        /// Where.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The system said no.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, as in "open".
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn last_text(last: Option<Seq>) -> String {
    last.map_or_else(|| "it has none".to_owned(), |last| format!("its last one is {last}"))
}

impl LogError {
    pub(super) fn corrupt(path: impl Into<PathBuf>, place: Place, why: impl Into<String>) -> Self {
        Self::Corrupt { path: path.into(), place, why: why.into() }
    }

    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    /// The stable code. Those of the contract (000-19) are spelt as it spells them.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "SESSION_NOT_FOUND",
            Self::AlreadyExists { .. } => "SESSION_ALREADY_EXISTS",
            Self::BadId { .. } => "BAD_SESSION_ID",
            Self::InvalidBoundary { .. } => "INVALID_BOUNDARY",
            Self::OpenTurn { .. } => "OPEN_TURN",
            Self::Duplicate { .. } => "DUPLICATE_SESSION",
            Self::Misplaced { .. } => "MISPLACED_LOG",
            Self::MixedEncodings { .. } => "MIXED_ENCODINGS",
            Self::FlatLayout { .. } => "FLAT_LAYOUT",
            Self::UnsupportedVersion { .. } => "UNSUPPORTED_VERSION",
            Self::UnknownEvent { .. } => "UNKNOWN_EVENT",
            Self::NoHeader { .. } => "NO_HEADER",
            Self::RetiredHeader { .. } => "RETIRED_HEADER",
            Self::Corrupt { .. } => "CORRUPT_LOG",
            Self::ReadBack { .. } => "READ_BACK_FAILED",
            Self::Changed { .. } => "LOG_CHANGED",
            Self::OtherPrefix { .. } => "PREFIX_CHANGED",
            Self::BadTarget { .. } => "BAD_TARGET",
            Self::Io { .. } => "io",
        }
    }

    /// What to do about it, as one line after `hint: `.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "list the sessions; a session without events has no log yet",
            Self::AlreadyExists { .. } => "choose another id for the child, or none",
            Self::BadId { .. } => "ids here are 1 to 128 of A-Z a-z 0-9 . _ : @ + -, and do not begin with . or -",
            Self::InvalidBoundary { .. } | Self::OpenTurn { .. } => {
                "list the session's boundaries and take one of them"
            }
            Self::Duplicate { .. } => "move one of the two folders out of the sessions folder",
            Self::Misplaced { .. } => "move the log's folder to where its header belongs",
            Self::MixedEncodings { .. } => "keep compressed and plain logs below different homes",
            Self::FlatLayout { .. } => "move the log into <project>/<session>/, or out of the sessions folder",
            Self::UnsupportedVersion { write: true, .. } => "let the harness that wrote it fork it",
            Self::UnsupportedVersion { .. } => "a newer harness wrote it: update rwd",
            Self::UnknownEvent { .. } => "fork at a boundary before that event: the child can be loaded",
            Self::NoHeader { .. } | Self::RetiredHeader { .. } => {
                "the log is no session of this harness: move it out of the sessions folder"
            }
            Self::Corrupt { .. } => "the log stays as it is; go on in a session that was forked from it before",
            Self::ReadBack { .. } => "nothing was left behind; check the disk and try again",
            Self::Changed { .. } => "nothing was left behind; try again when the harness is idle",
            Self::OtherPrefix { .. } => {
                "nothing was left behind; list the session's boundaries to see what it holds now"
            }
            Self::BadTarget { .. } => "choose a new file, best outside the sessions folder, with --to",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => "make room and try again",
            Self::Io { .. } => "check the path and its permissions",
        }
    }

    /// True when the log, or the folder it lies in, is one that its harness would not load, or that cannot be judged here.
    pub const fn is_refusal(&self) -> bool {
        self.breaks_list()
            || matches!(self, Self::UnsupportedVersion { .. } | Self::UnknownEvent { .. } | Self::NoHeader { .. })
    }

    /// True when the host's own list of all sessions fails while this is so.
    pub(super) const fn breaks_list(&self) -> bool {
        matches!(
            self,
            Self::Duplicate { .. }
                | Self::Misplaced { .. }
                | Self::MixedEncodings { .. }
                | Self::FlatLayout { .. }
                | Self::RetiredHeader { .. }
                | Self::Corrupt { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_a_wrong_path() {
        let advice = |kind: io::ErrorKind| LogError::io("write", "x")(kind.into()).advice();
        assert_eq!(advice(io::ErrorKind::StorageFull), "make room and try again");
        assert_eq!(advice(io::ErrorKind::PermissionDenied), "check the path and its permissions");
    }
}
