//! The seam to a harness's session logs.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{BoxError, ForkRequest, Seq, SessionKey, Step, Timestamp, Turn};

/// What matters of one event of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beat {
    /// A turn begins.
    TurnStart(Turn),
    /// A step begins.
    StepStart(Turn, Step),
    /// A step ends.
    StepEnd(Turn, Step),
    /// A turn ends.
    TurnEnd(Turn),
    /// Anything else.
    Other,
}

/// The head of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionHeader {
    /// Which session.
    pub key: SessionKey,
    /// The session it was forked from.
    pub parent: Option<SessionKey>,
    /// How many of the parent's events it shares.
    pub seed_length: u64,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// True for a session that its parent gave a task to: it counts as its parent, and shares none of its events.
    pub subagent: bool,
}

/// A session that works in some directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resident {
    /// Which.
    pub key: SessionKey,
    /// When its log was last written.
    pub seen: Timestamp,
}

/// Session logs of one harness. A log that exists is never modified.
pub trait SessionLog: fmt::Debug + Send + Sync {
    /// True when [`SessionLog::fork`] can work for this session.
    fn can_fork(&self, session: &SessionKey) -> bool;

    /// True when reading this session now starts a program of its harness, which takes seconds. Then it is read only where
    /// a conversation is cut or shown, never for a capture or to judge whose points are whose.
    fn is_costly(&self, session: &SessionKey) -> bool {
        let _ = session;
        false
    }

    /// The head.
    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError>;

    /// Every event from `from` on, in order, each with its position.
    ///
    /// What a crash tore off the end of the log is left out; a log that its harness would refuse to read is an error.
    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError>;

    /// Digest of the events up to and including `seq`: equal exactly when these events are the same, however the log is
    /// stored, so that a child's prefix has the digest of its parent's.
    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError>;

    /// The turn that the harness itself calls `anchor`: what a point stores when its number may be another by now.
    /// `None` where the log has no such turn or its harness has no names for turns; then the number counts.
    fn turn_of_anchor(&self, session: &SessionKey, anchor: &str) -> Result<Option<Turn>, SessionError> {
        let _ = (session, anchor);
        Ok(None)
    }

    /// Would [`SessionLog::fork`] at `boundary` be refused because of the log as it is? Reads only, and is asked before
    /// anything is written; `None` is the empty prefix.
    ///
    /// An implementation that cannot tell says nothing, and the fork itself fails.
    fn check_fork(&self, session: &SessionKey, boundary: Option<BoundarySeq>) -> Result<(), SessionError> {
        let _ = (session, boundary);
        Ok(())
    }

    /// Copies the inclusive prefix into a new session, durable on return. Appends nothing to the source.
    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError>;

    /// The same, only of a log whose digest up to the cut is `prefix`: a log may be replaced at any moment, also between a
    /// comparison and the copy. An implementation that reads the log once for both refuses with
    /// [`SessionError::PrefixChanged`] and makes nothing; one that cannot makes what [`SessionLog::fork`] does.
    fn fork_exactly(&self, request: &ForkRequest, prefix: &str) -> Result<SessionHeader, SessionError> {
        let _ = prefix;
        self.fork(request)
    }

    /// The child of a [`ForkRequest`], if it exists: how recovery finds out whether the fork happened.
    ///
    /// A session of that id with another parent, another cut or other events before the cut is
    /// [`SessionError::AlreadyExists`], never success.
    ///
    /// A session of that id and with that parent is durable on return, whatever else is said of it: who made it may have
    /// crashed before it was, and the operation is closed on the word of this call.
    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError>;

    /// The id for a child of `source`, as its harness names sessions. `uuid` is a fresh version 4 UUID.
    ///
    /// Asked before the transaction begins, so it may touch nothing.
    fn name_child(&self, source: &SessionKey, uuid: &str) -> String {
        let _ = source;
        uuid.to_owned()
    }

    /// Sessions whose directory is `dir`, newest first, without subagents. Empty where the logs do not say.
    fn working_in(&self, dir: &Path) -> Result<Vec<Resident>, SessionError> {
        let _ = dir;
        Ok(Vec::new())
    }

    /// The file that holds the log, where it is one file. For people to look at.
    fn location(&self, session: &SessionKey) -> Option<PathBuf> {
        let _ = session;
        None
    }
}

/// The log of a composition that has none: files only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSessions;

impl SessionLog for NoSessions {
    fn can_fork(&self, _: &SessionKey) -> bool {
        false
    }
    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        Err(SessionError::NotFound(session.clone()))
    }
    fn beats(&self, session: &SessionKey, _: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        Err(SessionError::NotFound(session.clone()))
    }
    fn prefix_digest(&self, session: &SessionKey, _: Seq) -> Result<String, SessionError> {
        Err(SessionError::NotFound(session.clone()))
    }
    fn fork(&self, _: &ForkRequest) -> Result<SessionHeader, SessionError> {
        Err(SessionError::Unsupported)
    }
    fn find_child(&self, _: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        Ok(None)
    }
}

/// Why a session could not be read or cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No such session.
    #[error("session {0} not found")]
    NotFound(SessionKey),
    /// It is not running.
    #[error("session {0} is not live")]
    NotLive(SessionKey),
    /// The child's id is taken.
    #[error("session {0} already exists")]
    AlreadyExists(String),
    /// There is no such event.
    #[error("session {session} has no event {seq}")]
    InvalidBoundary {
        /// The session.
        session: SessionKey,
        /// The position asked for.
        seq: Seq,
    },
    /// The position lies inside a turn.
    #[error("event {seq} of session {session} lies inside turn {turn}, before its end")]
    OpenTurn {
        /// The session.
        session: SessionKey,
        /// The position asked for.
        seq: Seq,
        /// The turn.
        turn: Turn,
    },
    /// The log has no such turn.
    #[error("session {session} has no turn {turn}")]
    NoTurn {
        /// The session.
        session: SessionKey,
        /// The turn asked for.
        turn: Turn,
    },
    /// The child would have no prompt, and its harness opens no such session.
    #[error("nothing of session {session} is left before its first prompt, and its harness opens no empty session")]
    NothingLeft {
        /// The session.
        session: SessionKey,
    },
    /// Nothing says where the conversation was.
    #[error("nothing says where session {session} was at that point")]
    Unplaced {
        /// The session.
        session: SessionKey,
    },
    /// Parents and children contradict each other.
    #[error("the lineage of session {session} cannot be followed: {why}")]
    Lineage {
        /// The session.
        session: SessionKey,
        /// In words.
        why: String,
    },
    /// The log is no longer the one a point was made on.
    #[error("session {session} was rewritten before event {seq}")]
    PrefixChanged {
        /// The session.
        session: SessionKey,
        /// The position.
        seq: Seq,
    },
    /// The log has a format, or holds an event, that cannot be understood: it may be whole.
    #[error("the log of session {session} has an unsupported format")]
    UnsupportedFormat {
        /// The session.
        session: SessionKey,
        /// What is not understood, and where.
        source: BoxError,
    },
    /// The log breaks the rules of its format: its own harness would refuse it too.
    #[error("the log of session {session} is corrupt")]
    Corrupt {
        /// The session.
        session: SessionKey,
        /// Which rule, and where.
        source: BoxError,
    },
    /// There is no door.
    #[error("no log of this conversation can be read and cut here")]
    Unsupported,
    /// The harness said no or broke.
    #[error("the harness failed")]
    Harness {
        /// How.
        source: BoxError,
    },
}

impl SessionError {
    /// The contract's code (000-19, 004-30 to 33).
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "SESSION_NOT_FOUND",
            Self::NotLive(_) => "SESSION_NOT_LIVE",
            Self::AlreadyExists(_) => "SESSION_ALREADY_EXISTS",
            Self::InvalidBoundary { .. } | Self::NoTurn { .. } | Self::Unplaced { .. } => "INVALID_BOUNDARY",
            Self::OpenTurn { .. } => "OPEN_TURN",
            Self::NothingLeft { .. } => "NOTHING_LEFT",
            Self::PrefixChanged { .. } => "PREFIX_CHANGED",
            Self::Lineage { .. } => "BAD_LINEAGE",
            Self::UnsupportedFormat { .. } => "UNSUPPORTED_FORMAT",
            Self::Corrupt { .. } => "CORRUPT_LOG",
            Self::Unsupported => "FORK_UNSUPPORTED",
            Self::Harness { .. } => "FORK_FAILED",
        }
    }
}

impl SessionError {
    /// True when asking again cannot help: the child that was asked for will never exist.
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::AlreadyExists(_)
                | Self::InvalidBoundary { .. }
                | Self::NoTurn { .. }
                | Self::OpenTurn { .. }
                | Self::NothingLeft { .. }
                | Self::PrefixChanged { .. }
                | Self::Lineage { .. }
        )
    }
}

/// A [`Seq`] proven to lie outside any open turn. Only the functions of this module construct it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BoundarySeq(Seq);

impl BoundarySeq {
    /// The position.
    pub const fn seq(self) -> Seq {
        self.0
    }
}

/// Proves that `at` lies outside any open turn: the only constructor of [`BoundarySeq`].
///
/// `beats` is the log from its first event on.
pub fn boundary_at(session: &SessionKey, beats: &[(Seq, Beat)], at: Seq) -> Result<BoundarySeq, SessionError> {
    let upto = beats.partition_point(|(seq, _)| *seq <= at);
    if beats.get(upto.wrapping_sub(1)).is_none_or(|(seq, _)| *seq != at) {
        return Err(SessionError::InvalidBoundary { session: session.clone(), seq: at });
    }
    let open = beats.iter().take(upto).rev().find_map(|(_, beat)| match beat {
        Beat::TurnStart(turn) => Some(Some(*turn)),
        Beat::TurnEnd(_) => Some(None),
        _ => None,
    });
    match open.flatten() {
        Some(turn) => Err(SessionError::OpenTurn { session: session.clone(), seq: at, turn }),
        None => Ok(BoundarySeq(at)),
    }
}

/// The last end of a turn at or before `at`: where the conversation is cut for what lies in a turn.
pub fn boundary_before(beats: &[(Seq, Beat)], at: Seq) -> Option<BoundarySeq> {
    let upto = beats.partition_point(|(seq, _)| *seq <= at);
    beats.iter().take(upto).rev().find_map(|(seq, beat)| matches!(beat, Beat::TurnEnd(_)).then_some(BoundarySeq(*seq)))
}

/// The end of `turn`, inclusive: where the conversation is cut for `tN`.
pub fn boundary_of_turn(beats: &[(Seq, Beat)], turn: Turn) -> Option<BoundarySeq> {
    beats.iter().rev().find_map(|(seq, beat)| (*beat == Beat::TurnEnd(turn)).then_some(BoundarySeq(*seq)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Vec<(Seq, Beat)> {
        [
            Beat::Other,
            Beat::TurnStart(Turn(1)),
            Beat::StepEnd(Turn(1), Step(1)),
            Beat::TurnEnd(Turn(1)),
            Beat::TurnStart(Turn(2)),
            Beat::Other,
        ]
        .into_iter()
        .enumerate()
        .map(|(at, beat)| (Seq(at as u64), beat))
        .collect()
    }

    /// TB10, TB11, TB20 and 004-30 to 33.
    #[test]
    fn boundaries_lie_outside_open_turns() {
        let key = SessionKey::local();
        assert_eq!(boundary_at(&key, &log(), Seq(3)).unwrap().seq(), Seq(3));
        assert_eq!(boundary_at(&key, &log(), Seq(0)).unwrap().seq(), Seq(0));
        assert_eq!(boundary_at(&key, &log(), Seq(2)).unwrap_err().code(), "OPEN_TURN");
        assert_eq!(boundary_at(&key, &log(), Seq(5)).unwrap_err().code(), "OPEN_TURN");
        assert_eq!(boundary_at(&key, &log(), Seq(9)).unwrap_err().code(), "INVALID_BOUNDARY");
        assert_eq!(boundary_before(&log(), Seq(2)), None);
        assert_eq!(boundary_before(&log(), Seq(5)).unwrap().seq(), Seq(3));
        assert_eq!(boundary_of_turn(&log(), Turn(2)), None);
    }
}
