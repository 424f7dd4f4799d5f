//! Named points of a conversation (003), kept in the workspace as lines of `.dsh/memory/checkpoints.md`.
//!
//! A line is `- [TIME] LABEL | session=ID | seq=N`, with ` | NOTE` where there is one; `seq` is the position of the
//! `turn/end` after which the conversation is cut. Everything else in the file belongs to whoever wrote it and stays
//! where it is.
//!
//! ```
//! use harness_adapter::named_points::parse_line;
//!
//! let line = parse_line(b"- [2026-11-30T14:05:00.000Z] before the refactoring | session=s1 | seq=60").unwrap();
//! assert_eq!((line.label.as_str(), line.session.as_str(), line.seq.0), ("before the refactoring", "s1", 60));
//! ```

mod book;
mod file;
mod line;
mod time;

use std::fmt;

use checkpoint_core::{
    Beat, BoundarySeq, Clock, ForkRequest, Name, Seq, SessionError, SessionHeader, SessionKey, SessionLog, boundary_at,
    boundary_before,
};

pub use book::{DEFAULT_LIMIT, append, lines};
pub use file::{DurablePoints, POINTS_PATH, PointsFile, PointsFileError};
pub use line::{AUTO_ERROR, AUTO_TURN, Line, check_label, check_note, parse_line};
pub use time::iso;

/// How often a line is added anew to a file that somebody saved meanwhile.
const ATTEMPTS: usize = 16;

/// Why a named point could not be set or used. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PointsError {
    /// A label or a note could be taken for another part of its line.
    #[error("{what} {given:?} cannot be used: {why}")]
    BadText {
        /// `label` or `note`.
        what: &'static str,
        /// As given.
        given: String,
        /// The rule.
        why: &'static str,
    },
    /// There is no turn to name the end of.
    #[error("session {session} has no completed turn yet: a named point is the end of one")]
    NoCompletedTurn {
        /// The session.
        session: SessionKey,
    },
    /// No line has this label.
    #[error("no point is named {label:?}")]
    Unknown {
        /// As given.
        label: String,
    },
    /// Only other sessions have this label.
    #[error("the point named {label:?} belongs to another session, not to {session}")]
    OtherSession {
        /// As given.
        label: String,
        /// The session asked for.
        session: SessionKey,
    },
    /// The session's log says no: its position is gone, or lies in a turn now (K-45).
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] PointsFileError),
}

impl PointsError {
    /// Stable machine code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BadText { .. } => "BAD_LABEL",
            Self::NoCompletedTurn { .. } => "NO_COMPLETED_TURN",
            Self::Unknown { .. } => "LABEL_NOT_FOUND",
            Self::OtherSession { .. } => "LABEL_OF_OTHER_SESSION",
            Self::Session(error) => error.code(),
            Self::File(error) => error.code(),
        }
    }
}

/// How a turn was closed (003-06).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnClose {
    /// As turns are.
    Normal,
    /// With an error.
    Failed,
}

/// The tools of 003 over one workspace's file and one harness's logs.
#[derive(Clone, Copy)]
pub struct NamedPoints<'a> {
    file: &'a dyn PointsFile,
    logs: &'a dyn SessionLog,
    clock: &'a dyn Clock,
    limit: usize,
}

impl fmt::Debug for NamedPoints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedPoints").field("file", &self.file).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<'a> NamedPoints<'a> {
    /// Keeps [`DEFAULT_LIMIT`] lines.
    pub fn new(file: &'a dyn PointsFile, logs: &'a dyn SessionLog, clock: &'a dyn Clock) -> Self {
        Self { file, logs, clock, limit: DEFAULT_LIMIT }
    }

    /// Keeps `limit` lines, at least one (003-05).
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit: limit.max(1), ..self }
    }

    /// `agent_checkpoint`: names the end of the session's last completed turn, whether or not another one is open
    /// (003-01). Durable on return. The boundary is what the index keeps with the name.
    pub fn checkpoint(
        &self,
        session: &SessionKey,
        label: &str,
        note: Option<&str>,
    ) -> Result<(Line, BoundarySeq), PointsError> {
        let label = check_label(label)?;
        let note = note.map(str::trim).filter(|note| !note.is_empty()).map(check_note).transpose()?;
        let beats = self.logs.beats(session, Seq(0))?;
        let boundary = boundary_before(&beats, Seq(u64::MAX))
            .ok_or_else(|| PointsError::NoCompletedTurn { session: session.clone() })?;
        let line = Line {
            time: iso(self.clock.now()),
            label: label.to_owned(),
            session: session.id().to_owned(),
            seq: boundary.seq(),
            note: note.map(str::to_owned),
        };
        let _held = self.file.lock()?;
        for _ in 0..ATTEMPTS {
            let before = self.file.read()?;
            let after = append(before.as_deref().unwrap_or_default(), &line, self.limit);
            if self.file.replace(before.as_deref(), &after)? {
                return Ok((line, boundary));
            }
        }
        Err(PointsFileError::Busy { path: POINTS_PATH.into() }.into())
    }

    /// Names the end of a turn that was just closed, for root sessions only (003-06). A failure is told to the
    /// diagnostics and to nobody else: the end of a turn must not depend on it.
    pub fn turn_closed(&self, session: &SessionKey, close: TurnClose, is_root: bool) -> Option<Line> {
        if !is_root {
            return None;
        }
        let label = match close {
            TurnClose::Normal => AUTO_TURN,
            TurnClose::Failed => AUTO_ERROR,
        };
        match self.checkpoint(session, label, None) {
            Ok((line, _)) => Some(line),
            Err(error) => {
                tracing::warn!(%session, %error, "the end of a turn could not be named");
                None
            }
        }
    }

    /// `agent_checkpoint_list`: every line in the present format, oldest first; others are passed over (003-04).
    pub fn list(&self) -> Result<Vec<Line>, PointsError> {
        Ok(lines(&self.file.read()?.unwrap_or_default()))
    }

    /// Finds the newest line of this label of this session and proves that its position is the end of a turn still
    /// (003-03, K-45).
    pub fn find(&self, session: &SessionKey, label: &str) -> Result<(Line, BoundarySeq), PointsError> {
        let label = label.trim();
        let mut named: Vec<Line> = self.list()?;
        named.retain(|line| line.label == label);
        if named.is_empty() {
            return Err(PointsError::Unknown { label: label.to_owned() });
        }
        let Some(line) = named.into_iter().rev().find(|line| line.session == session.id()) else {
            return Err(PointsError::OtherSession { label: label.to_owned(), session: session.clone() });
        };
        let beats = self.logs.beats(session, Seq(0))?;
        let boundary = boundary_at(session, &beats, line.seq)?;
        // Only ends of turns are ever named. Another event there means that the log is another one by now.
        let ends = beats.iter().any(|(seq, beat)| *seq == line.seq && matches!(beat, Beat::TurnEnd(_)));
        if !ends {
            return Err(SessionError::InvalidBoundary { session: session.clone(), seq: line.seq }.into());
        }
        Ok((line, boundary))
    }

    /// `agent_rewind`: forks a child at a named point; the source is left alone (003-03). `child` is the new
    /// session's id. Fails before anything is made where the label is not this session's or its position is gone.
    ///
    /// `names`: what the index keeps. A line has no digest of the log; a name that was set with it or later has, and a
    /// log that is another one by now is [`SessionError::PrefixChanged`] (K-45).
    pub fn rewind(
        &self,
        session: &SessionKey,
        label: &str,
        child: &str,
        names: &[Name],
    ) -> Result<(Line, SessionHeader), PointsError> {
        let (line, boundary) = self.find(session, label)?;
        let kept = names.iter().filter(|name| {
            name.label == line.label
                && name.session == *session
                && name.boundary == Some(boundary)
                && iso(name.at) >= line.time
        });
        let digests: Vec<&String> = kept.filter_map(|name| name.prefix.as_ref()).collect();
        if !digests.is_empty() {
            let now = self.logs.prefix_digest(session, boundary.seq())?;
            if digests.iter().any(|digest| **digest != now) {
                return Err(SessionError::PrefixChanged { session: session.clone(), seq: boundary.seq() }.into());
            }
        }
        let request =
            ForkRequest { source: session.clone(), boundary: Some(boundary), child: child.to_owned(), notice: None };
        Ok((line, self.logs.fork(&request)?))
    }
}

/// Lines of the file together with names of the index that the file does not have: what a person or another tool
/// removed from one stays in the other (design § 13). Oldest first; where both have a label of a session, the file's
/// newest line of it stands. Names without a boundary are points of files alone and have no line.
pub fn merge(lines: &[Line], names: &[Name]) -> Vec<Line> {
    let missing = names.iter().filter_map(|name| {
        let known = lines.iter().any(|line| line.label == name.label && line.session == name.session.id());
        let boundary = name.boundary.filter(|_| !known)?;
        Some(Line {
            time: iso(name.at),
            label: name.label.clone(),
            session: name.session.id().to_owned(),
            seq: boundary.seq(),
            note: name.note.clone(),
        })
    });
    let mut merged: Vec<Line> = lines.iter().cloned().chain(missing).collect();
    // Stable: lines of the file keep their order wherever times are equal.
    merged.sort_by(|a, b| a.time.cmp(&b.time));
    merged
}

#[cfg(test)]
mod tests;
