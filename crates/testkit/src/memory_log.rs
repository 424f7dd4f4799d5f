//! Session logs in memory, with a host that can be told to fail.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use checkpoint_core::{Beat, ForkRequest, Seq, SessionError, SessionHeader, SessionKey, SessionLog};

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

#[derive(Clone, Debug)]
struct Log {
    parent: Option<SessionKey>,
    seed_length: u64,
    beats: Vec<Beat>,
    notice: Option<String>,
}

/// Logs of a harness that lives in this process.
#[derive(Default)]
pub struct MemoryLog {
    logs: Mutex<BTreeMap<SessionKey, Log>>,
    host: Mutex<Host>,
    during_fork: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog").field("logs", &self.logs).field("host", &self.host).finish_non_exhaustive()
    }
}

impl MemoryLog {
    /// Starts a session.
    pub fn start(&self, session: &SessionKey) {
        let log = Log { parent: None, seed_length: 0, beats: vec![Beat::Other], notice: None };
        self.logs().insert(session.clone(), log);
    }

    /// Appends an event and says where.
    ///
    /// # Panics
    /// When the session was not started.
    pub fn push(&self, session: &SessionKey, beat: Beat) -> Seq {
        let mut logs = self.logs();
        let beats = &mut logs.get_mut(session).expect("a session that was started").beats;
        beats.push(beat);
        Seq(beats.len() as u64 - 1)
    }

    /// What the host does from now on.
    pub fn host(&self, host: Host) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = host;
    }

    /// What the host does while it makes a child, as its own hooks do.
    pub fn during_fork(&self, action: impl Fn() + Send + Sync + 'static) {
        *self.during_fork.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    }

    /// Sessions there are.
    pub fn sessions(&self) -> Vec<SessionKey> {
        self.logs().keys().cloned().collect()
    }

    /// Length of a log, and what its model was told at the end.
    pub fn tail(&self, session: &SessionKey) -> Option<(usize, Option<String>)> {
        self.logs().get(session).map(|log| (log.beats.len(), log.notice.clone()))
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
        let seed: Vec<Beat> = source.beats.iter().take(usize::try_from(take).unwrap_or(usize::MAX)).copied().collect();
        let child = Log {
            parent: Some(request.source.clone()),
            seed_length: take,
            beats: seed,
            notice: request.notice.clone(),
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
        let log = self.get(session)?;
        Ok(SessionHeader {
            key: session.clone(),
            parent: log.parent,
            seed_length: log.seed_length,
            cwd: PathBuf::from("/"),
        })
    }

    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        let beats = self.get(session)?.beats;
        Ok(beats
            .into_iter()
            .enumerate()
            .map(|(at, beat)| (Seq(at as u64), beat))
            .filter(|(seq, _)| *seq >= from)
            .collect())
    }

    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        let beats = self.beats(session, Seq(0))?;
        Ok(format!("{:?}", beats.into_iter().filter(|(at, _)| *at <= seq).collect::<Vec<_>>()))
    }

    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        let host = *self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(action) = &*self.during_fork.lock().unwrap_or_else(PoisonError::into_inner) {
            action();
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
        match self.header(&Self::child_key(request)) {
            Ok(header) => Ok(Some(header)),
            Err(SessionError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
