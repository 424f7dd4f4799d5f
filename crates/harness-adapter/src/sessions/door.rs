//! What the logs of the clients have in common: a conversation as turns that begin and end, and the seam to the engine.
//!
//! The clients keep no positions of their own, so a position here counts the beginnings and ends of turns: the first turn
//! begins at 0, and so on. The last turn has no end while it is open. A client that went back inside a log has one more
//! end there, so that what lies before the next turn is where it went back to. Positions never move while a log grows.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use checkpoint_core::{
    Beat, BoundarySeq, ForkRequest, Resident, Seq, SessionError, SessionHeader, SessionKey, SessionLog, Timestamp, Turn,
};

use super::{claude::is_uuid, opencode::ProgramError};

/// Why a log of a client could not be read, or no new one be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// There is no log of that session.
    #[error("no log of session {id:?} below {}", below.display())]
    NotFound {
        /// The session.
        id: String,
        /// Where was looked.
        below: PathBuf,
    },
    /// The name of the new session is taken.
    #[error("session {id:?} is there already")]
    AlreadyExists {
        /// The session.
        id: String,
    },
    /// No session of this client can have that name.
    #[error("{id:?} is no id of this client's sessions: {why}")]
    BadId {
        /// The name.
        id: String,
        /// What one looks like.
        why: &'static str,
    },
    /// The log breaks the format, other than by a torn end.
    #[error("{} line {line}: {why}", path.display())]
    Corrupt {
        /// Which log.
        path: PathBuf,
        /// Where, from 1; 0 for the log as a whole.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The log may be whole, but cannot be understood.
    #[error("{} line {line}: {why}", path.display())]
    Unsupported {
        /// Which log.
        path: PathBuf,
        /// Where, from 1; 0 for the log as a whole.
        line: u64,
        /// What is not understood.
        why: String,
    },
    /// The client does not resume a session without a prompt.
    #[error("nothing is left of session {id:?} before its first prompt, and its client opens no empty session")]
    Empty {
        /// The session.
        id: String,
    },
    /// The log has no such position.
    #[error("session {id:?} has no position {seq}")]
    NoPosition {
        /// The session.
        id: String,
        /// The position.
        seq: Seq,
    },
    /// What was written is not what was meant, or the log changed under the reader.
    #[error("{} was not written as it was meant", path.display())]
    ReadBack {
        /// The new log, which is gone again.
        path: PathBuf,
    },
    /// The client's own program, which alone reads and writes its sessions, gave no answer.
    #[error("the client's program gave no session")]
    Program {
        /// What it did.
        source: ProgramError,
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

impl DoorError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "SESSION_NOT_FOUND",
            Self::AlreadyExists { .. } => "SESSION_ALREADY_EXISTS",
            Self::BadId { .. } => "BAD_SESSION_ID",
            Self::Corrupt { .. } => "CORRUPT_LOG",
            Self::Unsupported { .. } => "UNSUPPORTED_FORMAT",
            Self::Empty { .. } => "NOTHING_LEFT",
            Self::NoPosition { .. } => "INVALID_BOUNDARY",
            Self::ReadBack { .. } => "READ_BACK_FAILED",
            Self::Program { .. } => "FORK_FAILED",
            Self::Io { .. } => "io",
        }
    }

    /// The error that the engine knows, of a session.
    pub fn of(self, session: &SessionKey) -> SessionError {
        translate(session, self)
    }

    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }

    pub(super) fn corrupt(path: &Path, line: u64, why: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), line, why: why.into() }
    }
}

fn translate(session: &SessionKey, error: DoorError) -> SessionError {
    let session = session.clone();
    match error {
        DoorError::NotFound { .. } => SessionError::NotFound(session),
        DoorError::AlreadyExists { id } => SessionError::AlreadyExists(id),
        DoorError::NoPosition { seq, .. } => SessionError::InvalidBoundary { session, seq },
        DoorError::Empty { .. } => SessionError::NothingLeft { session },
        DoorError::Corrupt { .. } => SessionError::Corrupt { session, source: error.into() },
        DoorError::Unsupported { .. } => SessionError::UnsupportedFormat { session, source: error.into() },
        _ => SessionError::Harness { source: error.into() },
    }
}

/// A turn as its log shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TurnSeen {
    /// The client's own name of it.
    pub key: Option<String>,
    /// The beginning of what was asked.
    pub prompt: Option<String>,
    /// When, as the log writes it.
    pub at: Option<String>,
}

/// So much of a prompt is kept for people to recognise it.
pub(super) const PROMPT_CHARS: usize = 200;

/// The beginning or the end of a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub(super) beat: Beat,
    /// Digest of the conversation up to here.
    pub(super) digest: String,
    /// Where the log is cut to end here, in a unit of the client's own.
    pub(super) cut: u64,
}

/// A log that was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Talked {
    /// The file.
    pub path: PathBuf,
    /// Where the session works.
    pub cwd: Option<PathBuf>,
    /// The session it was forked from.
    pub parent: Option<String>,
    /// True for the session of a sub-agent.
    pub subagent: bool,
    /// How many turns came from its parent.
    pub seed_turns: usize,
    /// Its turns, in the order in which they were asked.
    pub turns: Vec<TurnSeen>,
    /// True when its last line is not whole: a crash, or a client that is writing.
    pub torn: bool,
    pub(super) marks: Vec<Mark>,
    /// Where the last turn would end as far as was read, while nothing says that it has.
    pub(super) rest: Option<Mark>,
}

/// Up to where a child holds its parent's conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upto {
    /// In the unit of [`Mark::cut`].
    pub(super) cut: u64,
    /// The end of the last turn that is kept; `None` where nothing is.
    end: Option<Mark>,
}

impl Upto {
    /// Refuses a child, named by `path`, that does not hold exactly this: the parent may have been replaced or
    /// rewritten between two looks at it.
    pub(super) fn check(&self, child: &Talked, path: &Path) -> Result<(), DoorError> {
        let turns = u32::try_from(child.turns.len()).unwrap_or(u32::MAX);
        let same = match &self.end {
            None => turns == 0,
            Some(end) => {
                let last = child.rest.as_ref().or(child.marks.last());
                end.beat == Beat::TurnEnd(Turn(turns)) && last.is_some_and(|last| last.digest == end.digest)
            }
        };
        if same && !child.torn { Ok(()) } else { Err(DoorError::ReadBack { path: path.to_owned() }) }
    }
}

impl Talked {
    /// What a fork shares was cut at an end, also where the client was killed in the last turn and its log shows none.
    pub(super) fn end_what_is_shared(&mut self) {
        let only_shared = self.parent.is_some() && !self.subagent && self.turns.len() == self.seed_turns;
        if let Some(rest) = self.rest.take_if(|_| only_shared) {
            self.marks.push(rest);
        }
    }

    /// Positions of beginnings and ends of turns.
    pub fn beats(&self) -> Vec<(Seq, Beat)> {
        self.marks.iter().zip(0..).map(|(mark, seq)| (Seq(seq), mark.beat)).collect()
    }

    /// Turns with where they begin and, once they have ended, end; in the order in which they were asked.
    pub fn spans(&self) -> Vec<(&TurnSeen, Turn, Seq, Option<Seq>)> {
        let beats = self.beats();
        let at = |wanted: Beat| beats.iter().find_map(|(seq, beat)| (*beat == wanted).then_some(*seq));
        let spans = self.turns.iter().zip(1..).filter_map(|(seen, turn)| {
            let turn = Turn(turn);
            Some((seen, turn, at(Beat::TurnStart(turn))?, at(Beat::TurnEnd(turn))))
        });
        spans.collect()
    }

    /// The turn that has not ended.
    pub fn open_turn(&self) -> Option<Turn> {
        match self.marks.last()?.beat {
            Beat::TurnStart(turn) => Some(turn),
            _ => None,
        }
    }

    fn mark(&self, seq: Seq, id: &str) -> Result<&Mark, DoorError> {
        let at = usize::try_from(seq.0).ok().and_then(|at| self.marks.get(at));
        at.ok_or_else(|| DoorError::NoPosition { id: id.to_owned(), seq })
    }

    /// How many positions the first `turns` turns have.
    pub fn seed_length(&self) -> u64 {
        let last = self.marks.iter().position(|mark| match mark.beat {
            Beat::TurnStart(turn) => turn.0 as usize > self.seed_turns,
            _ => false,
        });
        last.unwrap_or(self.marks.len()) as u64
    }
}

/// The format of one client's logs.
pub trait Format: fmt::Debug + Send + Sync + 'static {
    /// The name in session keys.
    fn harness(&self) -> &'static str;
    /// Reads the log of a session.
    fn read(&self, id: &str) -> Result<Talked, DoorError>;
    /// The file of a session's log, which is there; cheap.
    fn find(&self, id: &str) -> Result<PathBuf, DoorError>;
    /// True when there is something to read, whole or not.
    fn has(&self, id: &str) -> bool {
        !matches!(self.find(id), Err(DoorError::NotFound { .. }))
    }
    /// The same where nothing that stands in the way of the answer is taken for a no.
    fn is_there(&self, id: &str) -> Result<bool, DoorError> {
        match self.find(id) {
            Ok(_) => Ok(true),
            Err(DoorError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
    /// See [`SessionLog::is_costly`].
    fn is_costly(&self, id: &str) -> bool {
        let _ = id;
        false
    }
    /// Makes a log durable that somebody else may have written.
    fn sync(&self, path: &Path) -> Result<(), DoorError> {
        super::child::sync(path)
    }
    /// Whether the client opens a session without a prompt.
    fn opens_empty(&self) -> bool;
    /// Refuses what cannot be the id of a child: most clients name sessions by UUIDs.
    fn check_id(&self, id: &str) -> Result<(), DoorError> {
        let why = "they are UUIDs";
        if is_uuid(id) { Ok(()) } else { Err(DoorError::BadId { id: id.to_owned(), why }) }
    }
    /// The id of a child, from a fresh version 4 UUID.
    fn name(&self, uuid: &str) -> String {
        uuid.to_owned()
    }
    /// The directory that a child's log would be made in or below; `None` where that is the client's own affair.
    fn folder(&self, log: &Talked) -> Option<PathBuf> {
        log.path.parent().map(Path::to_owned)
    }
    /// Writes the child's log, durable on return: the conversation of `log` up to there and nothing else, or no log.
    fn write(&self, id: &str, log: &Talked, upto: &Upto, child: &str) -> Result<PathBuf, DoorError>;
    /// Every session's id with the file of its log, without sub-agents.
    fn all(&self) -> Result<Vec<(String, PathBuf)>, DoorError>;
    /// The directory of a session, from the beginning of its log.
    fn cwd(&self, log: &Path) -> Option<PathBuf>;
    /// See [`ClientLogs::listed`]; in any order.
    fn listed(&self, within: &Path) -> Result<Vec<Listed>, DoorError> {
        let _ = within;
        let one = |(id, path): (String, PathBuf)| {
            let (cwd, written) = (self.cwd(&path), written(&path));
            Listed { id, path, cwd, written }
        };
        Ok(self.all()?.into_iter().map(one).collect())
    }
}

/// The session logs of one client.
#[derive(Debug)]
pub struct Door<F>(pub F);

impl<F: Format> Door<F> {
    fn ours(&self, session: &SessionKey) -> Result<(), SessionError> {
        if session.harness() == self.0.harness() { Ok(()) } else { Err(SessionError::NotFound(session.clone())) }
    }

    fn talk(&self, session: &SessionKey) -> Result<Talked, SessionError> {
        self.ours(session)?;
        self.0.read(session.id()).map_err(|error| translate(session, error))
    }

    fn head(&self, session: &SessionKey, log: &Talked) -> SessionHeader {
        let parent = log.parent.as_ref().and_then(|id| SessionKey::new(self.0.harness(), id).ok());
        let seed_length = if parent.is_some() && !log.subagent { log.seed_length() } else { 0 };
        let cwd = log.cwd.clone().unwrap_or_default();
        SessionHeader { key: session.clone(), parent, seed_length, cwd, subagent: log.subagent }
    }

    /// Where a log is cut. A client that went back has two ends of one turn, which are the same cut.
    fn cut(&self, id: &str, log: &Talked, boundary: Option<BoundarySeq>) -> Result<Upto, DoorError> {
        let end = boundary.map(|boundary| log.mark(boundary.seq(), id).cloned()).transpose()?;
        let cut = end.as_ref().map_or(0, |end| end.cut);
        if cut == 0 && !self.0.opens_empty() {
            return Err(DoorError::Empty { id: id.to_owned() });
        }
        Ok(Upto { cut, end: end.filter(|end| end.beat != Beat::TurnEnd(Turn(0))) })
    }

    /// The child, from the log as it is read once here; see [`SessionLog::fork_exactly`].
    fn make(&self, request: &ForkRequest, prefix: Option<&str>) -> Result<SessionHeader, SessionError> {
        let source = &request.source;
        self.ours(source)?;
        let failed = |error| translate(source, error);
        self.0.check_id(&request.child).map_err(failed)?;
        if self.0.is_there(&request.child).map_err(failed)? {
            return Err(SessionError::AlreadyExists(request.child.clone()));
        }
        let log = self.0.read(source.id()).map_err(failed)?;
        let upto = match (self.cut(source.id(), &log, request.boundary), prefix, request.boundary) {
            (Err(DoorError::NoPosition { seq, .. }), Some(_), _) => Err(seq),
            (Ok(Upto { end: Some(end), .. }), Some(prefix), Some(at)) if end.digest != prefix => Err(at.seq()),
            (upto, ..) => Ok(upto.map_err(failed)?),
        };
        let upto = upto.map_err(|seq| SessionError::PrefixChanged { session: source.clone(), seq })?;
        self.0.write(source.id(), &log, &upto, &request.child).map_err(failed)?;
        // By the child alone: the parent may be another one by now, and this one holds what was asked for.
        let child = SessionKey::new(self.0.harness(), &request.child);
        let child = child.map_err(|_| SessionError::AlreadyExists(request.child.clone()))?;
        Ok(self.head(&child, &self.talk(&child)?))
    }
}

/// A session in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// The file that holds its log.
    pub path: PathBuf,
    /// Where it works, where that is told.
    pub cwd: Option<PathBuf>,
    /// When it was written last, in milliseconds since 1970.
    pub written: Option<Timestamp>,
}

/// Logs of a client, with what people are shown of them.
pub trait ClientLogs: SessionLog {
    /// Every session, the one written last first. Of a client that tells those of one project alone: of the one that has
    /// the directory `within`.
    fn listed(&self, within: &Path) -> Result<Vec<Listed>, DoorError>;
    /// Reads a session's log.
    fn talked(&self, id: &str) -> Result<Talked, DoorError>;
    /// Every session's id with the file of its log, the one written last first.
    fn sessions(&self) -> Result<Vec<(String, PathBuf)>, DoorError>;
    /// The directory of a session, from the beginning of its log; `None` also for that of a sub-agent.
    fn cwd_of(&self, log: &Path) -> Option<PathBuf>;
}

impl<F: Format> ClientLogs for Door<F> {
    fn listed(&self, within: &Path) -> Result<Vec<Listed>, DoorError> {
        let mut all = self.0.listed(within)?;
        all.sort_by_cached_key(|one| (std::cmp::Reverse(one.written), one.id.clone()));
        Ok(all)
    }

    fn talked(&self, id: &str) -> Result<Talked, DoorError> {
        self.0.read(id)
    }

    fn sessions(&self) -> Result<Vec<(String, PathBuf)>, DoorError> {
        let mut all = self.0.all()?;
        all.sort_by_cached_key(|(id, path)| (std::cmp::Reverse(written(path)), id.clone()));
        Ok(all)
    }

    fn cwd_of(&self, log: &Path) -> Option<PathBuf> {
        self.0.cwd(log)
    }
}

/// Refuses a directory, or the first one above it that is there, in which nothing can be made: files would go back and
/// the conversation could not.
fn takes_files(folder: &Path) -> Result<(), DoorError> {
    let there = folder.ancestors().find(|dir| dir.symlink_metadata().is_ok()).unwrap_or(folder);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let able = if there.is_dir() { rustix::fs::access(there, access) } else { Err(rustix::io::Errno::NOTDIR) };
    able.map_err(|error| DoorError::io("make a log in", there)(error.into()))
}

/// When a file was last written.
pub fn written(path: &Path) -> Option<Timestamp> {
    let time = path.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(time.as_millis()).ok()?))
}

impl<F: Format> SessionLog for Door<F> {
    fn can_fork(&self, session: &SessionKey) -> bool {
        self.ours(session).is_ok() && self.0.has(session.id())
    }

    fn is_costly(&self, session: &SessionKey) -> bool {
        self.ours(session).is_ok() && self.0.is_costly(session.id())
    }

    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        Ok(self.head(session, &self.talk(session)?))
    }

    /// See the module: only beginnings and ends of turns are positions.
    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        let mut beats = self.talk(session)?.beats();
        beats.retain(|(seq, _)| *seq >= from);
        Ok(beats)
    }

    /// Over what was said, without what the client writes anew when it resumes a session: see each client's module.
    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        let log = self.talk(session)?;
        log.mark(seq, session.id()).map(|mark| mark.digest.clone()).map_err(|error| translate(session, error))
    }

    fn turn_of_anchor(&self, session: &SessionKey, anchor: &str) -> Result<Option<Turn>, SessionError> {
        let turns = self.talk(session)?.turns;
        let at = turns.iter().zip(1..).find(|(turn, _)| turn.key.as_deref() == Some(anchor));
        Ok(at.map(|(_, turn)| Turn(turn)))
    }

    fn check_fork(&self, session: &SessionKey, boundary: Option<BoundarySeq>) -> Result<(), SessionError> {
        let log = self.talk(session)?;
        let look = || {
            self.cut(session.id(), &log, boundary)?;
            self.0.folder(&log).map_or(Ok(()), |folder| takes_files(&folder))
        };
        look().map_err(|error| translate(session, error))
    }

    /// The notice is not written: no client was seen to take a row of ours at the end of a log. What was restored is
    /// told by the hook of the next prompt.
    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        self.make(request, None)
    }

    fn fork_exactly(&self, request: &ForkRequest, prefix: &str) -> Result<SessionHeader, SessionError> {
        self.make(request, Some(prefix))
    }

    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        let source = &request.source;
        self.ours(source)?;
        if !self.0.is_there(&request.child).map_err(|error| translate(source, error))? {
            return Ok(None);
        }
        let taken = || SessionError::AlreadyExists(request.child.clone());
        let key = SessionKey::new(self.0.harness(), &request.child).map_err(|_| taken())?;
        let log = self.talk(&key)?;
        let head = self.head(&key, &log);
        if head.parent.as_ref() != Some(source) {
            return Err(taken());
        }
        self.0.sync(&log.path).map_err(|error| translate(&key, error))?;
        let Some(boundary) = request.boundary else {
            return if head.seed_length == 0 { Ok(Some(head)) } else { Err(taken()) };
        };
        let parent = self.talk(source)?;
        let wanted = parent.mark(boundary.seq(), source.id()).map_err(|error| translate(source, error))?;
        let last = usize::try_from(head.seed_length).ok().and_then(|length| log.marks.get(length.checked_sub(1)?));
        if last.is_some_and(|last| last.beat == wanted.beat && last.digest == wanted.digest) {
            Ok(Some(head))
        } else {
            Err(taken())
        }
    }

    fn name_child(&self, _: &SessionKey, uuid: &str) -> String {
        self.0.name(uuid)
    }

    fn working_in(&self, dir: &Path) -> Result<Vec<Resident>, SessionError> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let dir = real(dir);
        let mut here = Vec::new();
        for (id, path) in self.0.all().map_err(|error| SessionError::Harness { source: error.into() })? {
            let Ok(key) = SessionKey::new(self.0.harness(), &id) else { continue };
            if self.0.cwd(&path).is_some_and(|cwd| real(&cwd) == dir) {
                here.push(Resident { key, seen: written(&path).unwrap_or(Timestamp(0)) });
            }
        }
        here.sort_by_key(|resident| std::cmp::Reverse(resident.seen));
        Ok(here)
    }

    fn location(&self, session: &SessionKey) -> Option<PathBuf> {
        self.ours(session).ok()?;
        self.0.find(session.id()).ok()
    }
}
