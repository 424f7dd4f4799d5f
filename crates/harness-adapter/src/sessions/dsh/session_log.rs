//! The seam to the engine.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use checkpoint_core::{
    Beat, BoundarySeq, ForkRequest, JsonText, Resident, Seq, SessionError, SessionHeader, SessionKey, SessionLog, Step,
    Timestamp, Turn,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    ChildSpec, Cut, DshLogs, HARNESS, LogError, LogHeader, digest::Prefix, inspect::turn_data, json::integer, no_event,
    read::Log, rows::Row, vocabulary::WRITTEN,
};

/// The error that the engine knows, by the session it is about.
pub(super) fn translate(session: &SessionKey, error: LogError) -> SessionError {
    match error {
        LogError::NotFound { .. } => SessionError::NotFound(session.clone()),
        LogError::AlreadyExists { id, .. } => SessionError::AlreadyExists(id),
        LogError::InvalidBoundary { seq, .. } => SessionError::InvalidBoundary { session: session.clone(), seq },
        LogError::OtherPrefix { seq, .. } => SessionError::PrefixChanged { session: session.clone(), seq },
        LogError::OpenTurn { seq, turn, .. } => SessionError::OpenTurn { session: session.clone(), seq, turn },
        LogError::UnsupportedVersion { .. } | LogError::UnknownEvent { .. } => {
            SessionError::UnsupportedFormat { session: session.clone(), source: error.into() }
        }
        error if error.is_refusal() => SessionError::Corrupt { session: session.clone(), source: error.into() },
        _ => SessionError::Harness { source: error.into() },
    }
}

#[derive(Deserialize)]
struct StepData<'a> {
    #[serde(borrow)]
    step: &'a RawValue,
}

/// What marks the end of a seed from version 2 on.
#[derive(Deserialize)]
struct Mark {
    inherited: bool,
}

fn step(row: &Row<'_>) -> (Turn, Step) {
    let read = row.data().and_then(|data| serde_json::from_str::<StepData<'_>>(data.get()).ok());
    let step = read.and_then(|read| integer(read.step)).and_then(|step| u32::try_from(step).ok());
    (turn_data(row.data()).0, Step(step.unwrap_or(0)))
}

fn beat(row: &Row<'_>) -> Beat {
    match row.kind() {
        "turn/start" => Beat::TurnStart(turn_data(row.data()).0),
        "turn/end" => Beat::TurnEnd(turn_data(row.data()).0),
        "step/start" => {
            let (turn, step) = step(row);
            Beat::StepStart(turn, step)
        }
        "step/end" => {
            let (turn, step) = step(row);
            Beat::StepEnd(turn, step)
        }
        _ => Beat::Other,
    }
}

/// The digest of the events up to and including `seq`; `None` when the log ends before.
pub(super) fn digest(log: &mut Log, seq: u64) -> Result<Option<String>, LogError> {
    let mut prefix = Prefix::new();
    let mut whole = false;
    let path = log.path.clone();
    let end = log.rows(&mut |row, _, _| {
        prefix.add(row, seq).ok_or_else(|| no_event(&path, row.first()))?;
        whole = row.first() + row.count() > seq;
        Ok(if whole { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    match end.broken {
        Some(error) => Err(error),
        None => Ok(whole.then(|| prefix.finish())),
    }
}

impl DshLogs {
    fn key(id: &JsonText) -> Option<SessionKey> {
        SessionKey::new(HARNESS, &id.to_text()?).ok()
    }

    /// The head as the engine knows it. A parent whose id no key can have is left out.
    pub(super) fn head(session: &SessionKey, header: &LogHeader, seed_length: u64) -> SessionHeader {
        SessionHeader {
            key: session.clone(),
            parent: header.parent.as_ref().and_then(Self::key),
            seed_length,
            cwd: header.cwd.as_ref().map(|cwd| PathBuf::from(cwd.to_string())).unwrap_or_default(),
            subagent: header.subagent,
        }
    }

    fn open_log(&self, session: &SessionKey) -> Result<Log, LogError> {
        if session.harness() != HARNESS {
            return Err(LogError::NotFound { id: session.to_string(), sessions: self.sessions() });
        }
        self.find(session.id())?.open()
    }

    /// The child, only of a log whose digest up to the cut is `prefix`, where that is given.
    fn fork_of(&self, request: &ForkRequest, prefix: Option<&str>) -> Result<SessionHeader, SessionError> {
        let source = &request.source;
        let child = SessionKey::new(HARNESS, &request.child)
            .map_err(|_| translate(source, LogError::BadId { id: request.child.clone() }))?;
        let spec = ChildSpec {
            cut: Self::cut_at(request.boundary),
            child: Some(request.child.clone()),
            notice: request.notice.clone(),
            prefix: prefix.map(ToOwned::to_owned),
            ..ChildSpec::default()
        };
        if source.harness() != HARNESS {
            return Err(SessionError::NotFound(source.clone()));
        }
        self.write_child(source.id(), &spec).map_err(|error| translate(source, error))?;
        self.header(&child)
    }

    fn cut_at(boundary: Option<BoundarySeq>) -> Cut {
        boundary.map_or(Cut::Empty, |boundary| Cut::At(boundary.seq()))
    }

    /// How many events of a log came from its parent. From version 2 on the last mark of an inherited seed tells.
    pub(super) fn seed_length(log: &mut Log) -> Result<u64, LogError> {
        if log.header.version == WRITTEN || !log.header.seeded {
            return Ok(log.header.seed_length.unwrap_or(0));
        }
        let mut length = 0;
        let end = log.rows(&mut |row, _, _| {
            let inherited = |data: &RawValue| serde_json::from_str(data.get()).is_ok_and(|mark: Mark| mark.inherited);
            if row.kind() == "session/end-seed" && row.data().is_some_and(inherited) {
                length = row.first();
            }
            Ok(ControlFlow::Continue(()))
        })?;
        end.broken.map_or(Ok(length), Err)
    }
}

/// The harness name of the sessions is `dsh`.
impl SessionLog for DshLogs {
    /// True for sessions whose log has the version that can be written.
    fn can_fork(&self, session: &SessionKey) -> bool {
        self.open_log(session).is_ok_and(|log| log.header.version == WRITTEN)
    }

    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        let read = || {
            let mut log = self.open_log(session)?;
            let seed_length = Self::seed_length(&mut log)?;
            Ok(Self::head(session, &log.header, seed_length))
        };
        read().map_err(|error| translate(session, error))
    }

    /// Events of types that the host does not know count as [`Beat::Other`]: what lies before them can still be cut.
    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        let mut beats = Vec::new();
        let mut read = || {
            let end = self.open_log(session)?.rows(&mut |row, _, _| {
                let beat = beat(row);
                let events = row.first().max(from.0)..row.first() + row.count();
                beats.extend(events.map(|seq| (Seq(seq), beat)));
                Ok(ControlFlow::Continue(()))
            })?;
            end.broken.map_or(Ok(()), Err)
        };
        read().map_err(|error| translate(session, error))?;
        Ok(beats)
    }

    /// SHA-256 over the events, see the module `digest` for the bytes; 64 hexadecimal digits.
    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        let read = || digest(&mut self.open_log(session)?, seq.0);
        let digest = read().map_err(|error| translate(session, error))?;
        digest.ok_or_else(|| SessionError::InvalidBoundary { session: session.clone(), seq })
    }

    fn check_fork(&self, session: &SessionKey, boundary: Option<BoundarySeq>) -> Result<(), SessionError> {
        if session.harness() != HARNESS {
            return Err(SessionError::NotFound(session.clone()));
        }
        let spec = ChildSpec { cut: Self::cut_at(boundary), ..ChildSpec::default() };
        self.check_child(session.id(), &spec).map_err(|error| translate(session, error))
    }

    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        self.fork_of(request, None)
    }

    fn fork_exactly(&self, request: &ForkRequest, prefix: &str) -> Result<SessionHeader, SessionError> {
        self.fork_of(request, Some(prefix))
    }

    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        let source = &request.source;
        let child = SessionKey::new(HARNESS, &request.child)
            .map_err(|_| translate(source, LogError::BadId { id: request.child.clone() }))?;
        if source.harness() != HARNESS {
            return Ok(None);
        }
        let found = match self.find(child.id()) {
            Err(LogError::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| translate(&child, error))?,
        };
        let mut log = found.open().map_err(|error| translate(&child, error))?;
        let length = request.boundary.map_or(0, |boundary| boundary.seq().0 + 1);
        let seed_length = Self::seed_length(&mut log).map_err(|error| translate(&child, error))?;
        let head = Self::head(&child, &log.header, seed_length);
        let mut same = head.parent.as_ref() == Some(source) && seed_length == length;
        if head.parent.as_ref() == Some(source) {
            found.sync().map_err(|error| translate(&child, error))?;
        }
        if let (true, Some(boundary)) = (same, request.boundary) {
            let own = digest(&mut log, boundary.seq().0).map_err(|error| translate(&child, error))?;
            same = own == Some(self.prefix_digest(source, boundary.seq())?);
        }
        if same { Ok(Some(head)) } else { Err(SessionError::AlreadyExists(request.child.clone())) }
    }

    /// As the host itself names them.
    fn name_child(&self, _: &SessionKey, uuid: &str) -> String {
        format!("session-{uuid}")
    }

    /// By the directory in the head of each log, compared as real paths; logs with a problem are passed over.
    fn working_in(&self, dir: &Path) -> Result<Vec<Resident>, SessionError> {
        let list = self.list().map_err(|error| SessionError::Harness { source: error.into() })?;
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let dir = real(dir);
        let mut here = Vec::new();
        for entry in list.into_iter().filter(|entry| !entry.subagent && entry.problem.is_none()) {
            let (Some(key), Some(cwd)) = (entry.key, entry.cwd) else { continue };
            if real(Path::new(&cwd)) == dir {
                here.push(Resident { key, seen: written(&entry.path).unwrap_or(millis(entry.created_at)) });
            }
        }
        here.sort_by_key(|resident| std::cmp::Reverse(resident.seen));
        Ok(here)
    }

    fn location(&self, session: &SessionKey) -> Option<PathBuf> {
        let ours = Some(session).filter(|session| session.harness() == HARNESS)?;
        self.find(ours.id()).ok().map(|found| found.path)
    }
}

fn millis(time: u64) -> Timestamp {
    Timestamp(i64::try_from(time).unwrap_or(i64::MAX))
}

/// When a log was last written.
fn written(path: &Path) -> Option<Timestamp> {
    let time = path.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(millis(u64::try_from(time.as_millis()).ok()?))
}
