//! Folding offline (001): the report goes into a child; the log that it was made from stays as it is.

use std::fmt;

use checkpoint_core::{
    LogEvent, Mark, Seq, SessionError, SessionKey,
    fold::{FoldHost, Replacement},
    uuid,
};
use sha2::{Digest as _, Sha256};

use super::{ChildSpec, Cut, DshLogs, LogError, session_log::translate};

/// Puts reports into children of the sessions below one home. For sessions of which the host is not running: it would
/// append the report to the session itself.
///
/// The child of a mark always has the same id, so that it is found again when a crash came between it and the stamp of
/// the mark (K-15).
#[derive(Clone)]
pub struct ChildFolds(DshLogs);

impl fmt::Debug for ChildFolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChildFolds").field(&self.0).finish()
    }
}

impl ChildFolds {
    /// Of these logs.
    pub fn new(logs: DshLogs) -> Self {
        Self(logs)
    }

    /// The id of the child that holds, or will hold, the report of a mark.
    pub fn child_of(mark: &Mark) -> String {
        let digest =
            Sha256::digest(format!("rwd fold\n{}\n{}\n{}\n{}", mark.session, mark.id, mark.log_length, mark.at));
        let mut bytes = [0; 16];
        for (byte, from) in bytes.iter_mut().zip(digest) {
            *byte = from;
        }
        format!("session-{}", uuid(bytes))
    }
}

impl FoldHost for ChildFolds {
    fn events(&self, session: &SessionKey) -> Result<Vec<LogEvent>, SessionError> {
        self.0.events(session.id()).map_err(|error| translate(session, error))
    }

    fn put_report(&self, mark: &Mark, replacement: &Replacement) -> Result<Seq, SessionError> {
        let session = &mark.session;
        let event = replacement.event(Seq(0)).map_err(|error| SessionError::Harness { source: error.into() })?;
        let spec =
            ChildSpec { cut: Cut::End, child: Some(Self::child_of(mark)), events: vec![event], ..ChildSpec::default() };
        let made = self.0.write_child(session.id(), &spec).map_err(|error| translate(session, error))?;
        // Nothing is added after the report.
        Ok(Seq(made.events.saturating_sub(1)))
    }

    fn find_put(&self, mark: &Mark) -> Result<Option<(Seq, Replacement)>, SessionError> {
        let events = match self.0.events(&Self::child_of(mark)) {
            Err(LogError::NotFound { .. }) => return Ok(None),
            events => events.map_err(|error| translate(&mark.session, error))?,
        };
        let id = format!("rewind-report-{}-", mark.id);
        let report = |event: &LogEvent| Some((event.seq, Replacement::of_event(mark, event)?));
        let put = events.iter().rev().filter_map(report).find(|(_, report)| report.message_id.starts_with(&id));
        if put.is_some() {
            // The mark is stamped on the word of this call.
            let durable = self.0.find(&Self::child_of(mark)).and_then(|found| found.sync());
            durable.map_err(|error| translate(&mark.session, error))?;
        }
        Ok(put)
    }
}

#[cfg(test)]
mod tests {
    use checkpoint_core::Timestamp;

    use super::*;

    #[test]
    fn a_mark_has_one_child_and_different_marks_have_different_ones() {
        let mark = |id, at| Mark {
            id,
            session: SessionKey::new("dsh", "s").unwrap(),
            log_length: 4,
            turn: None,
            objective: None,
            folded: None,
            at: Timestamp(at),
        };
        assert_eq!(ChildFolds::child_of(&mark(1, 5)), ChildFolds::child_of(&mark(1, 5)));
        let mut all: Vec<String> =
            [(1, 5), (2, 5), (1, 6)].map(|(id, at)| ChildFolds::child_of(&mark(id, at))).to_vec();
        assert!(all.iter().all(|id| SessionKey::new("dsh", id).is_ok()));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 3);
    }
}
