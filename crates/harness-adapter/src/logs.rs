//! The session logs of several harnesses behind one door: whose a session is, its key says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoint_core::{
    Beat, BoundarySeq, ForkRequest, Resident, Seq, SessionError, SessionHeader, SessionKey, SessionLog, Turn,
};

/// Session logs by harness. Empty, no session has a door.
///
/// ```
/// use std::sync::Arc;
/// use checkpoint_core::{SessionKey, SessionLog};
/// use harness_adapter::{Logs, sessions::dsh};
///
/// let logs = Logs::default().with(dsh::HARNESS, Arc::new(dsh::DshLogs::open("/nowhere")));
/// assert!(!logs.can_fork(&SessionKey::parse("dsh:abc")?));
/// # Ok::<(), checkpoint_core::IdError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Logs {
    doors: BTreeMap<String, Arc<dyn SessionLog>>,
}

impl Logs {
    /// Adds the logs of a harness, by the name its session keys have.
    #[must_use]
    pub fn with(mut self, harness: &str, logs: Arc<dyn SessionLog>) -> Self {
        self.doors.insert(harness.to_owned(), logs);
        self
    }

    fn door(&self, session: &SessionKey) -> Result<&dyn SessionLog, SessionError> {
        let door = self.doors.get(session.harness());
        door.map(|door| &**door).ok_or_else(|| SessionError::NotFound(session.clone()))
    }
}

#[deny(clippy::missing_trait_methods, reason = "a method that is not passed on would answer for no harness")]
impl SessionLog for Logs {
    fn can_fork(&self, session: &SessionKey) -> bool {
        self.door(session).is_ok_and(|door| door.can_fork(session))
    }

    fn is_costly(&self, session: &SessionKey) -> bool {
        self.door(session).is_ok_and(|door| door.is_costly(session))
    }

    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        self.door(session)?.header(session)
    }

    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        self.door(session)?.beats(session, from)
    }

    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        self.door(session)?.prefix_digest(session, seq)
    }

    fn turn_of_anchor(&self, session: &SessionKey, anchor: &str) -> Result<Option<Turn>, SessionError> {
        self.door(session)?.turn_of_anchor(session, anchor)
    }

    fn check_fork(&self, session: &SessionKey, boundary: Option<BoundarySeq>) -> Result<(), SessionError> {
        self.door(session)?.check_fork(session, boundary)
    }

    /// A harness that is not there cannot fork; it may be there the next time.
    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        self.door(&request.source)?.fork(request)
    }

    fn fork_exactly(&self, request: &ForkRequest, prefix: &str) -> Result<SessionHeader, SessionError> {
        self.door(&request.source)?.fork_exactly(request, prefix)
    }

    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        self.door(&request.source)?.find_child(request)
    }

    fn name_child(&self, source: &SessionKey, uuid: &str) -> String {
        self.door(source).map_or_else(|_| uuid.to_owned(), |door| door.name_child(source, uuid))
    }

    /// Of every harness, newest first. One whose logs cannot be listed hides only its own, unless there are no others.
    fn working_in(&self, dir: &Path) -> Result<Vec<Resident>, SessionError> {
        let (mut all, mut failed) = (Vec::new(), None);
        for (harness, door) in &self.doors {
            match door.working_in(dir) {
                Ok(here) => all.extend(here),
                Err(error) => {
                    tracing::warn!(%error, harness, "its sessions cannot be listed");
                    failed = Some(error);
                }
            }
        }
        if let Some(error) = failed.filter(|_| all.is_empty()) {
            return Err(error);
        }
        all.sort_by_key(|resident| std::cmp::Reverse(resident.seen));
        Ok(all)
    }

    fn location(&self, session: &SessionKey) -> Option<PathBuf> {
        self.door(session).ok()?.location(session)
    }
}

#[cfg(test)]
mod tests {
    use checkpoint_core::{Timestamp, Turn};
    use testkit::MemoryLog;

    use super::*;

    #[test]
    fn a_session_is_its_harnesses() {
        let (one, two) = (Arc::new(MemoryLog::default()), Arc::new(MemoryLog::default()));
        let key = |text| SessionKey::parse(text).unwrap();
        one.start(&key("one:s"));
        two.start(&key("two:s"));
        let end = two.push(&key("two:s"), Beat::TurnEnd(Turn(1)));
        let logs = Logs::default().with("one", one).with("two", Arc::clone(&two) as Arc<dyn SessionLog>);
        assert!(logs.can_fork(&key("one:s")) && logs.can_fork(&key("two:s")));
        assert!(!logs.can_fork(&key("three:s")) && !logs.can_fork(&key("one:t")));
        assert_eq!(logs.beats(&key("two:s"), end).unwrap(), [(end, Beat::TurnEnd(Turn(1)))]);
        let (source, child) = (key("three:s"), "c".to_owned());
        let request = ForkRequest { source, boundary: None, child, notice: None };
        assert_eq!(logs.fork(&request).unwrap_err().code(), "SESSION_NOT_FOUND");
        let made = logs.fork(&ForkRequest { source: key("two:s"), ..request }).unwrap();
        assert_eq!((made.parent, two.sessions().len()), (Some(key("two:s")), 2));
    }

    #[test]
    fn residents_of_all_harnesses_come_newest_first() {
        #[derive(Debug)]
        struct Of(i64);
        impl SessionLog for Of {
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
            fn working_in(&self, _: &Path) -> Result<Vec<Resident>, SessionError> {
                let key = SessionKey::new("h", &self.0.to_string()).unwrap();
                Ok(vec![Resident { key, seen: Timestamp(self.0) }])
            }
        }
        let logs = Logs::default().with("a", Arc::new(Of(1))).with("b", Arc::new(Of(2)));
        let here = logs.working_in(Path::new("/")).unwrap();
        assert_eq!(here.iter().map(|resident| resident.seen.0).collect::<Vec<_>>(), [2, 1]);
    }
}
