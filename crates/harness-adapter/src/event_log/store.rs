//! The logs of one host below one home.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use checkpoint_core::{BoxError, Clock, ClosersCause, LogEvent, Seq, SessionKey, Timestamp, open_turn_closers};

use super::{
    EventLogError, EventLogStore, LogMedium, NewSession, Resumed, WINDOW_MS,
    log::{OpenLog, own},
    medium::{Open, files},
};
use crate::{
    barriers::FlushListener,
    sessions::dsh::{DshLogs, Encoding, LogError, folder_of, header_line, new_header, taken},
};

/// Logs in plain text, one folder per session: `<home>/sessions/<project>/<session>/session.jsonl`.
#[derive(Clone)]
pub struct JsonlStore {
    logs: DshLogs,
    clock: Arc<dyn Clock>,
    window: i64,
    medium: Open,
    open: Arc<Mutex<BTreeMap<String, Arc<OpenLog>>>>,
}

impl fmt::Debug for JsonlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonlStore").field("logs", &self.logs).field("window", &self.window).finish_non_exhaustive()
    }
}

impl JsonlStore {
    /// Logs below `home`, the directory that holds `sessions/`. Nothing is made yet.
    pub fn new(home: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self { logs: DshLogs::open(home), clock, window: WINDOW_MS, medium: files(), open: Arc::default() }
    }

    /// Another window than [`WINDOW_MS`], in milliseconds.
    #[must_use]
    pub fn with_window(self, window: i64) -> Self {
        Self { window: window.max(0), ..self }
    }

    /// Opens logs through `open` instead of as plain files: for tests that let writing fail.
    #[must_use]
    pub fn with_medium(
        self,
        open: impl Fn(&Path) -> std::io::Result<Box<dyn LogMedium>> + Send + Sync + 'static,
    ) -> Self {
        Self { medium: Arc::new(open), ..self }
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Arc<OpenLog>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, id: &str) -> Result<Arc<OpenLog>, EventLogError> {
        self.sessions().get(id).cloned().ok_or_else(|| EventLogError::NotOpen { id: id.to_owned() })
    }

    /// Flushes every open session; gives those for which that failed.
    pub fn flush_all(&self) -> Vec<(String, EventLogError)> {
        let open: Vec<String> = self.sessions().keys().cloned().collect();
        let failed = |id: String| EventLogStore::flush(self, &id).err().map(|error| (id, error));
        open.into_iter().filter_map(failed).collect()
    }

    /// When what is queued now is due.
    fn window_end(&self) -> Timestamp {
        Timestamp(self.clock.now().0.saturating_add(self.window))
    }
}

impl EventLogStore for JsonlStore {
    fn create(&self, session: &NewSession) -> Result<(), EventLogError> {
        let id = session.id.as_str();
        let bad = || LogError::BadId { id: id.to_owned() };
        let mut header = new_header(id, u64::try_from(self.clock.now().0).unwrap_or(0));
        header.cwd = session.cwd.as_deref().map(Into::into);
        header.parent = session.parent.as_ref().map(|(parent, _)| parent.as_str().into());
        header.seed_length = session.parent.as_ref().map(|(_, length)| *length);
        header.subagent = session.subagent;
        header.delegation_depth = session.delegation_depth;
        header.agent_preset = session.agent_preset.as_deref().map(Into::into);
        let folder = folder_of(&self.logs.sessions(), &header).filter(|_| !id.is_empty()).ok_or_else(bad)?;
        // Looked at without the lock, which appending to other sessions waits for.
        let path = taken(&self.logs.sessions(), &header.id)?;
        let mut open = self.sessions();
        if path.is_some() || open.contains_key(id) {
            return Err(EventLogError::AlreadyExists { id: id.to_owned(), path });
        }
        let log = OpenLog::new(id, &folder, header_line(&header), Arc::clone(&self.medium));
        open.insert(id.to_owned(), Arc::new(log));
        Ok(())
    }

    fn resume(&self, id: &str) -> Result<Resumed, EventLogError> {
        if self.sessions().contains_key(id) {
            return Err(EventLogError::AlreadyExists { id: id.to_owned(), path: None });
        }
        let seen = self.logs.inspect(id)?;
        let path = seen.path;
        if seen.encoding != Encoding::Plain {
            return Err(EventLogError::Compressed { path });
        }
        let lock = own(path.parent().unwrap_or(&path))?;
        // Only what is read with the lock held counts.
        let summary = self.logs.load(id)?;
        if summary.header.version != 0 {
            let version = summary.header.version.to_string();
            return Err(LogError::UnsupportedVersion { path, version, write: true }.into());
        }
        let mut events = self.logs.events(id)?;
        let failed = |what| {
            let path = path.clone();
            move |source| EventLogError::Write { what, path, source }
        };
        let mut medium = (self.medium)(&path).map_err(failed("open"))?;
        let len = match &summary.torn {
            Some(torn) => torn.offset,
            None => medium.size().map_err(failed("look at"))?,
        };
        // Refuses what could not be continued: before anything is written.
        let log = OpenLog::resumed(id, &path, len, &events, lock, Arc::clone(&self.medium))?;
        if summary.torn.is_some() {
            medium.cut(len).map_err(failed("cut the torn end off"))?;
        }
        let closers = open_turn_closers(&events, ClosersCause::Interrupted);
        for closer in &closers {
            log.append(closer, self.window_end())?;
        }
        log.flush(self.window_end())?;
        self.sessions().insert(id.to_owned(), Arc::new(log));
        let resumed =
            Resumed { torn: summary.torn.map_or(0, |torn| torn.bytes), closers: closers.len(), events: Vec::new() };
        events.extend(closers);
        Ok(Resumed { events, ..resumed })
    }

    fn append(&self, id: &str, event: LogEvent) -> Result<(), EventLogError> {
        self.get(id)?.append(&event, self.window_end())
    }

    fn flush(&self, id: &str) -> Result<(), EventLogError> {
        self.get(id)?.flush(self.window_end())
    }

    fn tend(&self) -> Vec<(String, EventLogError)> {
        let now = self.clock.now();
        let open: Vec<(String, Arc<OpenLog>)> =
            self.sessions().iter().map(|(id, log)| (id.clone(), Arc::clone(log))).collect();
        let due = open.into_iter().filter(|(_, log)| log.due().is_some_and(|due| due <= now));
        due.filter_map(|(id, log)| Some((id, log.flush(self.window_end()).err()?))).collect()
    }

    fn due(&self) -> Option<Timestamp> {
        self.sessions().values().filter_map(|log| log.due()).min()
    }

    fn next_seq(&self, id: &str) -> Result<Seq, EventLogError> {
        Ok(self.get(id)?.next())
    }

    fn read(&self, id: &str) -> Result<Vec<LogEvent>, EventLogError> {
        Ok(self.logs.events(id)?)
    }

    fn close(&self, id: &str) -> Result<(), EventLogError> {
        let log = self.get(id)?;
        loop {
            log.flush(self.window_end())?;
            let mut open = self.sessions();
            if log.close_if_empty() {
                // Another call may have closed it, and the id may have been opened again since.
                if open.get(id).is_some_and(|now| Arc::ptr_eq(now, &log)) {
                    open.remove(id);
                }
                return Ok(());
            }
        }
    }
}

/// A store takes part in the flushes of the barriers.
impl FlushListener for JsonlStore {
    fn flush(&self, session: &SessionKey) -> Result<(), BoxError> {
        match EventLogStore::flush(self, session.id()) {
            // Another store's session.
            Ok(()) | Err(EventLogError::NotOpen { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
