//! Session logs in memory, with a host that can be told to fail.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkpoint_core::{Beat, ForkRequest, Seq, SessionError, SessionHeader, SessionKey, SessionLog, Turn};

/// What the host does with the next fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Host {
    /// Makes the child.
    #[default]
    Works,
    /// Says no.
    Refuses,
    /// Dies before it makes the child.
    DiesBefore,
    /// Dies after it has made the child.
    DiesAfter,
}

/// One event: what it is, and which content of several that may stand at its position.
type Event = (Beat, u32);

#[derive(Clone, Debug, Default)]
struct Log {
    parent: Option<SessionKey>,
    subagent: bool,
    seed_length: u64,
    events: Vec<Event>,
    /// Counts how often the end was lost and written again.
    lives: u32,
    notice: Option<String>,
    /// What the harness itself calls its turns.
    anchors: BTreeMap<String, Turn>,
}

/// Logs of a harness that lives in this process.
#[derive(Default)]
pub struct MemoryLog {
    logs: Mutex<BTreeMap<SessionKey, Log>>,
    host: Mutex<Host>,
    during_fork: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    heads: AtomicU64,
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").field("logs", &self.logs).field("host", &self.host).finish_non_exhaustive()
    }
}

impl MemoryLog {
    /// How many heads of logs were read: with a real harness each is a look for a file and a read.
    pub fn heads_read(&self) -> u64 {
        self.heads.load(Ordering::Relaxed)
    }

    /// Starts a session.
    pub fn start(&self, session: &SessionKey) {
        self.logs().insert(session.clone(), Log { events: vec![(Beat::Other, 0)], ..Log::default() });
    }

    /// Starts a session that shares the first `seed_length` events of `parent`, as a fork by the host does.
    ///
    /// # Panics
    /// When the parent was not started.
    pub fn start_child(&self, session: &SessionKey, parent: &SessionKey, seed_length: u64) {
        let mut logs = self.logs();
        let events = logs.get(parent).expect("a session that was started").events.iter();
        let events = events.take(usize::try_from(seed_length).unwrap_or(usize::MAX)).copied().collect();
        let log = Log { parent: Some(parent.clone()), seed_length, events, ..Log::default() };
        logs.insert(session.clone(), log);
    }

    /// Starts a session that `parent` gave a task to.
    pub fn start_subagent(&self, session: &SessionKey, parent: &SessionKey) {
        let log =
            Log { parent: Some(parent.clone()), subagent: true, events: vec![(Beat::Other, 0)], ..Log::default() };
        self.logs().insert(session.clone(), log);
    }

    /// Changes what the head of a log says of its parent: no log that a host wrote does this.
    ///
    /// # Panics
    /// When the session was not started.
    pub fn forge_parent(&self, session: &SessionKey, parent: &SessionKey) {
        self.logs().get_mut(session).expect("a session that was started").parent = Some(parent.clone());
    }

    /// A crash loses everything from `from` on; what comes next takes those positions with other content.
    ///
    /// # Panics
    /// When the session was not started.
    pub fn lose(&self, session: &SessionKey, from: Seq) {
        let mut logs = self.logs();
        let log = logs.get_mut(session).expect("a session that was started");
        log.events.truncate(usize::try_from(from.0).unwrap_or(usize::MAX));
        log.lives += 1;
    }

    /// Appends an event and says where.
    ///
    /// # Panics
    /// When the session was not started.
    pub fn push(&self, session: &SessionKey, beat: Beat) -> Seq {
        let mut logs = self.logs();
        let log = logs.get_mut(session).expect("a session that was started");
        log.events.push((beat, log.lives));
        Seq(log.events.len() as u64 - 1)
    }

    /// Says which turn the harness itself calls `anchor`.
    ///
    /// # Panics
    /// When the session was not started.
    pub fn anchor(&self, session: &SessionKey, anchor: &str, turn: Turn) {
        let mut logs = self.logs();
        logs.get_mut(session).expect("a session that was started").anchors.insert(anchor.to_owned(), turn);
    }

    /// What the host does from now on.
    pub fn host(&self, host: Host) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = host;
    }

    /// What the host does while it makes a child, as its own hooks do.
    pub fn during_fork(&self, action: impl Fn() + Send + Sync + 'static) {
        *self.during_fork.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(action));
    }

    /// Sessions there are.
    pub fn sessions(&self) -> Vec<SessionKey> {
        self.logs().keys().cloned().collect()
    }

    /// Length of a log, and what its model was told at the end.
    pub fn tail(&self, session: &SessionKey) -> Option<(usize, Option<String>)> {
        self.logs().get(session).map(|log| (log.events.len(), log.notice.clone()))
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Log>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, session: &SessionKey) -> Result<Log, SessionError> {
        self.logs().get(session).cloned().ok_or_else(|| SessionError::NotFound(session.clone()))
    }

    fn child_key(request: &ForkRequest) -> SessionKey {
        SessionKey::new(request.source.harness(), &request.child).expect("the engine chooses sound ids")
    }

    fn make(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        let key = Self::child_key(request);
        let source = self.get(&request.source)?;
        let take = request.boundary.map_or(0, |boundary| boundary.seq().0 + 1);
        let seed = source.events.iter().take(usize::try_from(take).unwrap_or(usize::MAX)).copied().collect();
        let child = Log {
            parent: Some(request.source.clone()),
            seed_length: take,
            events: seed,
            notice: request.notice.clone(),
            ..Log::default()
        };
        if self.logs().contains_key(&key) {
            return Err(SessionError::AlreadyExists(request.child.clone()));
        }
        self.logs().insert(key.clone(), child);
        self.header(&key)
    }
}

impl SessionLog for MemoryLog {
    fn can_fork(&self, session: &SessionKey) -> bool {
        self.logs().contains_key(session)
    }

    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        self.heads.fetch_add(1, Ordering::Relaxed);
        let log = self.get(session)?;
        Ok(SessionHeader {
            key: session.clone(),
            parent: log.parent,
            seed_length: log.seed_length,
            cwd: PathBuf::from("/"),
            subagent: log.subagent,
        })
    }

    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        let events = self.get(session)?.events.into_iter().enumerate();
        Ok(events.map(|(at, (beat, _))| (Seq(at as u64), beat)).filter(|(seq, _)| *seq >= from).collect())
    }

    fn turn_of_anchor(&self, session: &SessionKey, anchor: &str) -> Result<Option<Turn>, SessionError> {
        Ok(self.get(session)?.anchors.get(anchor).copied())
    }

    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        let events = self.get(session)?.events;
        let upto = usize::try_from(seq.0).ok().and_then(|last| events.get(..=last));
        let upto = upto.ok_or_else(|| SessionError::InvalidBoundary { session: session.clone(), seq })?;
        Ok(format!("{upto:?}"))
    }

    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        let host = *self.host.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that it may fork too.
        let action = self.during_fork.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(action) = action {
            action();
            self.during_fork.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(action);
        }
        match host {
            Host::Works => self.make(request),
            Host::Refuses => Err(SessionError::Harness { source: "the host says no".into() }),
            Host::DiesBefore => std::panic::resume_unwind(Box::new("the host is gone")),
            Host::DiesAfter => {
                self.make(request)?;
                std::panic::resume_unwind(Box::new("the host is gone"))
            }
        }
    }

    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        let key = Self::child_key(request);
        let header = match self.header(&key) {
            Err(SessionError::NotFound(_)) => return Ok(None),
            header => header?,
        };
        let length = request.boundary.map_or(0, |boundary| boundary.seq().0 + 1);
        let mut same = header.parent.as_ref() == Some(&request.source) && header.seed_length == length;
        if let (true, Some(boundary)) = (same, request.boundary) {
            let seq = boundary.seq();
            same = self.prefix_digest(&key, seq)? == self.prefix_digest(&request.source, seq)?;
        }
        if same { Ok(Some(header)) } else { Err(SessionError::AlreadyExists(request.child.clone())) }
    }
}
