//! What a fold needs of whoever holds the log, and what it answers.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{Held, LockError, LogEvent, Mark, Seq, SessionError, SessionKey};

use super::{Cancel, RegionEnd, Replacement, ReportConfig, ReportLanguage, ReportRoute, Summariser};

/// Who holds the log that is folded.
///
/// A running host appends the report to its own session. Offline nothing may be appended to a log that exists: there
/// the host is one that writes a child with the report in it.
pub trait FoldHost: fmt::Debug + Send + Sync {
    /// Every event of the session, from the first on, as the host has it now.
    fn events(&self, session: &SessionKey) -> Result<Vec<LogEvent>, SessionError>;

    /// Puts the report into the log and gives its position. All or nothing: after an error no part of it is there.
    fn put_report(&self, mark: &Mark, replacement: &Replacement) -> Result<Seq, SessionError>;

    /// Where the report of this mark is, if an earlier call has put it somewhere that [`FoldHost::events`] does not
    /// show: a child. Gives its position, and the report with what it replaced. What is found is durable on return.
    fn find_put(&self, _mark: &Mark) -> Result<Option<(Seq, Replacement)>, SessionError> {
        Ok(None)
    }
}

/// One fold at a time per session (001-13, `FOLD_IN_PROGRESS`).
pub trait FoldLocks: fmt::Debug + Send + Sync {
    /// Takes the session's lock or fails with [`LockError::Busy`] at once.
    fn try_hold(&self, session: &SessionKey) -> Result<Box<dyn Held>, LockError>;
}

/// Locks within one process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LocalFolds(Arc<Mutex<BTreeSet<SessionKey>>>);

#[derive(Debug)]
struct LocalHeld {
    folds: LocalFolds,
    session: SessionKey,
}

impl Held for LocalHeld {}

impl Drop for LocalHeld {
    fn drop(&mut self) {
        self.folds.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.session);
    }
}

impl FoldLocks for LocalFolds {
    fn try_hold(&self, session: &SessionKey) -> Result<Box<dyn Held>, LockError> {
        if !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(session.clone()) {
            return Err(LockError::Busy);
        }
        Ok(Box::new(LocalHeld { folds: self.clone(), session: session.clone() }))
    }
}

/// Where the report comes from.
#[derive(Debug)]
pub enum ReportSource<'a> {
    /// It is here.
    Given(&'a str),
    /// From the log alone, see [`extract`](super::extract).
    Extract,
    /// From a model.
    Model {
        /// Which can be asked.
        summariser: &'a dyn Summariser,
        /// How.
        config: &'a ReportConfig,
        /// The agent's own provider and model.
        agent: Option<&'a ReportRoute>,
    },
}

/// What is to be folded.
#[derive(Clone, Debug)]
pub struct FoldRequest {
    /// The session.
    pub session: SessionKey,
    /// Where the region ends at the latest.
    pub end: RegionEnd,
    /// Language of the report.
    pub language: ReportLanguage,
    /// Stops it, up to the moment in which the report is put into the log.
    pub cancel: Cancel,
}

/// The answer of a fold (001-09).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Folded {
    /// The mark.
    pub mark_id: u64,
    /// Messages that were replaced.
    pub folded_nodes: u64,
    /// Position of the first.
    pub start: Seq,
    /// Position of the last.
    pub end: Seq,
    /// Characters they had.
    pub folded_chars: u64,
    /// Characters of the report.
    pub report_chars: u64,
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = if self.folded_nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", self.folded_nodes) };
        let Self { mark_id, start, end, folded_chars, report_chars, .. } = self;
        write!(
            f,
            "folded {nodes} since mark {mark_id} ({start}..{end}): {folded_chars} characters became {report_chars}"
        )
    }
}

/// How a fold went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldOutcome {
    /// The answer.
    pub folded: Folded,
    /// Position of the report's event.
    pub report: Seq,
    /// True when an earlier call had put the report into the log and this one only stamped the mark (K-15).
    pub recovered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tm34_one_node_and_two_nodes() {
        let mut folded =
            Folded { mark_id: 1, folded_nodes: 1, start: Seq(4), end: Seq(4), folded_chars: 25, report_chars: 15 };
        assert_eq!(folded.to_string(), "folded 1 node since mark 1 (4..4): 25 characters became 15");
        folded.folded_nodes = 2;
        assert!(folded.to_string().starts_with("folded 2 nodes "));
        let json = serde_json::to_value(&folded).unwrap();
        let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["end", "foldedChars", "foldedNodes", "markId", "reportChars", "start"]);
    }

    #[test]
    fn c001_13_a_session_is_folded_by_one_at_a_time() {
        let folds = LocalFolds::default();
        let held = folds.try_hold(&SessionKey::local()).unwrap();
        assert!(matches!(folds.clone().try_hold(&SessionKey::local()), Err(LockError::Busy)));
        drop(folds.try_hold(&SessionKey::parse("other").unwrap()).unwrap());
        drop(held);
        drop(folds.try_hold(&SessionKey::local()).unwrap());
    }
}
