//! Session logs of live hosts: read from the harness's own files or from what the client tells, cut by the host itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use checkpoint_core::{
    Beat, BoundarySeq, ForkRequest, Resident, Seq, SessionError, SessionHeader, SessionKey, SessionLog, Step, Turn,
};
use sha2::{Digest, Sha256};

use super::peer::{CallError, Peer};
use super::protocol::{BeatEntry, BeatKind, LogSource, SessionFind, SessionFork};

/// What is known of the log of an open session.
#[derive(Clone, Debug)]
pub(super) struct LiveSession {
    /// As the client calls it.
    pub(super) name: String,
    pub(super) header: SessionHeader,
    pub(super) source: LogSource,
    /// The harness's own files.
    pub(super) files: Option<Arc<dyn SessionLog>>,
    /// What the client told, by position.
    pub(super) beats: BTreeMap<Seq, Beat>,
}

/// The logs of a connection's sessions.
#[derive(Debug)]
pub(super) struct LiveLogs {
    peer: Arc<Peer>,
    /// Of sessions that are not open here.
    others: Arc<dyn SessionLog>,
    open: RwLock<BTreeMap<SessionKey, LiveSession>>,
    /// Children that the host made for us.
    children: RwLock<BTreeMap<SessionKey, SessionHeader>>,
}

/// A beat as the client tells it; `None` when its turn or step is missing.
pub(super) fn beat(entry: &BeatEntry) -> Option<(Seq, Beat)> {
    let beat = match entry.beat {
        BeatKind::TurnStart => Beat::TurnStart(Turn(entry.turn?)),
        BeatKind::TurnEnd => Beat::TurnEnd(Turn(entry.turn?)),
        BeatKind::StepStart => Beat::StepStart(Turn(entry.turn?), Step(entry.step?)),
        BeatKind::StepEnd => Beat::StepEnd(Turn(entry.turn?), Step(entry.step?)),
        BeatKind::Other => Beat::Other,
    };
    Some((Seq(entry.seq), beat))
}

/// Where a session's log is looked up at the moment.
enum Door {
    Files(Arc<dyn SessionLog>),
    Told(Box<LiveSession>),
    Closed,
}

impl LiveLogs {
    pub(super) fn new(peer: Arc<Peer>, others: Arc<dyn SessionLog>) -> Self {
        Self { peer, others, open: RwLock::default(), children: RwLock::default() }
    }

    pub(super) fn open(&self, session: LiveSession) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(session.header.key.clone(), session);
    }

    pub(super) fn close(&self, session: &SessionKey) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// Keeps what was told of a log. A turn that is known already is not begun a second time.
    pub(super) fn heard(&self, session: &SessionKey, at: Seq, beat: Beat) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let Some(live) = open.get_mut(session) else { return };
        if beat == Beat::Other || !live.beats.values().any(|known| *known == beat) {
            live.beats.insert(at, beat);
        }
    }

    fn live(&self, session: &SessionKey) -> Option<LiveSession> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(session).cloned()
    }

    fn name(&self, session: &SessionKey) -> String {
        self.live(session).map_or_else(|| session.id().to_owned(), |live| live.name)
    }

    fn door(&self, session: &SessionKey) -> Door {
        let Some(live) = self.live(session) else { return Door::Files(Arc::clone(&self.others)) };
        match (live.source, &live.files) {
            (LogSource::None, _) => Door::Closed,
            // A log that is there and damaged is an error, not a reason to believe something else.
            (LogSource::Files, Some(files)) if !matches!(files.header(session), Err(SessionError::NotFound(_))) => {
                Door::Files(Arc::clone(files))
            }
            _ => Door::Told(Box::new(live)),
        }
    }

    /// The harness's files, for what only they can do.
    fn files(&self, session: &SessionKey) -> Arc<dyn SessionLog> {
        let live = self.live(session).and_then(|live| live.files);
        live.unwrap_or_else(|| Arc::clone(&self.others))
    }
}

/// What the host says, as the engine knows it (000-19).
fn host_error(error: CallError, request: &ForkRequest) -> SessionError {
    let CallError::Refused { code, .. } = &error else { return SessionError::Harness { source: Box::new(error) } };
    let session = request.source.clone();
    let seq = request.boundary.map_or(Seq(0), BoundarySeq::seq);
    match code.as_str() {
        "SESSION_NOT_FOUND" => SessionError::NotFound(session),
        "SESSION_NOT_LIVE" => SessionError::NotLive(session),
        "SESSION_ALREADY_EXISTS" => SessionError::AlreadyExists(request.child.clone()),
        "INVALID_BOUNDARY" => SessionError::InvalidBoundary { session, seq },
        _ => SessionError::Harness { source: Box::new(error) },
    }
}

impl LiveLogs {
    /// Has the host make the child.
    fn ask_for_child(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        let asked = SessionFork {
            session: self.name(&request.source),
            boundary: request.boundary.map(|boundary| boundary.seq().0),
            child: request.child.clone(),
            notice: request.notice.clone(),
        };
        let made = self.peer.call(&asked, &|| true).map_err(|error| host_error(error, request))?;
        if made.child != request.child {
            let source = format!("the host made {} instead of {}", made.child, request.child).into();
            return Err(SessionError::Harness { source });
        }
        let key = SessionKey::new(request.source.harness(), &request.child)
            .map_err(|error| SessionError::Harness { source: Box::new(error) })?;
        let cwd = self.header(&request.source).map_or_else(|_| PathBuf::new(), |header| header.cwd);
        let header = SessionHeader {
            key: key.clone(),
            parent: Some(request.source.clone()),
            seed_length: request.boundary.map_or(0, |boundary| boundary.seq().0 + 1),
            cwd,
            subagent: false,
        };
        self.children.write().unwrap_or_else(PoisonError::into_inner).insert(key, header.clone());
        Ok(header)
    }
}

#[deny(clippy::missing_trait_methods, reason = "a method that is not passed on would answer for no harness")]
impl SessionLog for LiveLogs {
    fn can_fork(&self, session: &SessionKey) -> bool {
        match self.door(session) {
            Door::Files(files) => files.can_fork(session),
            Door::Told(_) => self.peer.offers::<SessionFork>(),
            Door::Closed => false,
        }
    }

    fn is_costly(&self, session: &SessionKey) -> bool {
        matches!(self.door(session), Door::Files(files) if files.is_costly(session))
    }

    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        let child = self.children.read().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        match (self.door(session), child) {
            (Door::Told(live), _) => Ok(live.header),
            (Door::Files(files), None) => files.header(session),
            (_, Some(child)) => Ok(child),
            (Door::Closed, None) => Err(SessionError::Unsupported),
        }
    }

    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        match self.door(session) {
            Door::Files(files) => files.beats(session, from),
            Door::Told(live) => Ok(live.beats.range(from..).map(|(seq, beat)| (*seq, *beat)).collect()),
            Door::Closed => Err(SessionError::Unsupported),
        }
    }

    /// Of what the client told, starts and ends of turns count: these it can tell again after a restart.
    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        let live = match self.door(session) {
            Door::Files(files) => return files.prefix_digest(session, seq),
            Door::Closed => return Err(SessionError::Unsupported),
            Door::Told(live) => live,
        };
        if !live.beats.contains_key(&seq) {
            return Err(SessionError::InvalidBoundary { session: session.clone(), seq });
        }
        let mut digest = Sha256::new();
        for (at, beat) in live.beats.range(..=seq) {
            let (word, turn) = match beat {
                Beat::TurnStart(turn) => ("start", turn),
                Beat::TurnEnd(turn) => ("end", turn),
                _ => continue,
            };
            digest.update(format!("{at} {word} {turn}\n"));
        }
        Ok(format!("told:{}", data_encoding::HEXLOWER.encode(&digest.finalize())))
    }

    /// A client that tells its log tells turns by number.
    fn turn_of_anchor(&self, session: &SessionKey, anchor: &str) -> Result<Option<Turn>, SessionError> {
        match self.door(session) {
            Door::Files(files) => files.turn_of_anchor(session, anchor),
            Door::Told(_) | Door::Closed => Ok(None),
        }
    }

    fn check_fork(&self, session: &SessionKey, boundary: Option<BoundarySeq>) -> Result<(), SessionError> {
        match self.door(session) {
            Door::Files(files) => files.check_fork(session, boundary),
            Door::Told(_) => Ok(()),
            Door::Closed => Err(SessionError::Unsupported),
        }
    }

    /// The host's own door comes first: a session that it has in its memory is its own to cut.
    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        match self.door(&request.source) {
            _ if self.peer.offers::<SessionFork>() => self.ask_for_child(request),
            Door::Files(files) => files.fork(request),
            _ => Err(SessionError::Unsupported),
        }
    }

    /// What the host cuts is what the host has: it is not told the digest.
    fn fork_exactly(&self, request: &ForkRequest, prefix: &str) -> Result<SessionHeader, SessionError> {
        match self.door(&request.source) {
            Door::Files(files) if !self.peer.offers::<SessionFork>() => files.fork_exactly(request, prefix),
            _ => self.fork(request),
        }
    }

    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        let key = SessionKey::new(request.source.harness(), &request.child)
            .map_err(|error| SessionError::Harness { source: Box::new(error) })?;
        if let Some(made) = self.children.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Some(made.clone()));
        }
        if self.peer.offers::<SessionFind>() {
            let asked = SessionFind {
                session: self.name(&request.source),
                boundary: request.boundary.map(|boundary| boundary.seq().0),
                child: request.child.clone(),
            };
            let found = self.peer.call(&asked, &|| true).map_err(|error| host_error(error, request))?;
            let header = SessionHeader {
                key,
                parent: Some(request.source.clone()),
                seed_length: request.boundary.map_or(0, |boundary| boundary.seq().0 + 1),
                cwd: PathBuf::new(),
                subagent: false,
            };
            return Ok(found.exists.then_some(header));
        }
        match self.door(&request.source) {
            Door::Files(files) => files.find_child(request),
            _ => Ok(None),
        }
    }

    fn name_child(&self, source: &SessionKey, uuid: &str) -> String {
        self.files(source).name_child(source, uuid)
    }

    fn working_in(&self, dir: &Path) -> Result<Vec<Resident>, SessionError> {
        self.others.working_in(dir)
    }

    fn location(&self, session: &SessionKey) -> Option<PathBuf> {
        self.files(session).location(session)
    }
}
