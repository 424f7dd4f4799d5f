//! One request that is under way, and the seams of the engine that lead back to its client.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use checkpoint_core::{Approver, BoxError, Decision, HostKept, HostState, Preview, Progress};
use serde_json::Value;

use super::peer::Peer;
use super::protocol::{Answer, ApprovalAsk, HostStateRestore, Progressed};
use super::shape;

/// Nothing is told of a request before it has taken so long.
const PATIENCE: Duration = Duration::from_millis(300);
/// Nor more often than that.
const PACE: Duration = Duration::from_millis(100);

type Later = Box<dyn FnOnce() + Send>;

/// A request.
pub(super) struct Call {
    pub(super) id: Value,
    pub(super) peer: Arc<Peer>,
    arrived: Instant,
    cancelled: AtomicBool,
    told: Mutex<Option<Instant>>,
    later: Mutex<Vec<Later>>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Call {
    pub(super) fn new(id: Value, peer: Arc<Peer>) -> Self {
        Self {
            id,
            peer,
            arrived: Instant::now(),
            cancelled: AtomicBool::new(false),
            told: Mutex::default(),
            later: Mutex::default(),
        }
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Since it arrived.
    pub(super) fn elapsed(&self) -> Duration {
        self.arrived.elapsed()
    }

    pub(super) fn ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// What is left of a deadline that counts from the arrival.
    pub(super) fn left(&self, deadline_ms: Option<u64>) -> Option<Duration> {
        deadline_ms.map(|ms| Duration::from_millis(ms).saturating_sub(self.elapsed()))
    }

    /// Does something after the answer.
    pub(super) fn later(&self, job: impl FnOnce() + Send + 'static) {
        self.later.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(job));
    }

    pub(super) fn take_later(&self) -> Vec<Later> {
        std::mem::take(&mut *self.later.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Progress for Call {
    fn tick(&self, what: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()> {
        if self.is_cancelled() {
            return ControlFlow::Break(());
        }
        if self.elapsed() < PATIENCE {
            return ControlFlow::Continue(());
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() >= PACE) {
            *told = Some(Instant::now());
            drop(told);
            self.peer.tell(&Progressed { id: self.id.clone(), what: what.to_owned(), done, total });
        }
        ControlFlow::Continue(())
    }
}

/// Asks the client, unless it has said so beforehand.
#[derive(Debug)]
pub(super) struct AskClient {
    pub(super) call: Arc<Call>,
    pub(super) session: String,
    pub(super) confirmed: bool,
}

impl Approver for AskClient {
    fn decide(&self, preview: &Preview) -> Decision {
        if self.confirmed {
            return Decision::Approved;
        }
        let ask = ApprovalAsk { session: self.session.clone(), preview: shape::preview(preview) };
        match self.call.peer.call(&ask, &|| !self.call.is_cancelled()) {
            Ok(answer) => match answer.decision {
                Answer::Approved if !self.call.is_cancelled() => Decision::Approved,
                Answer::Unavailable => Decision::Unavailable,
                _ => Decision::Rejected,
            },
            Err(error) => {
                tracing::debug!(%error, "nobody approved");
                Decision::Unavailable
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.confirmed
    }
}

/// The configuration that came with the request, and the client that takes one back.
#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) call: Arc<Call>,
    pub(super) session: String,
    pub(super) now: Option<String>,
}

impl HostState for ClientState {
    fn save(&self) -> Result<Option<Vec<u8>>, BoxError> {
        Ok(self.now.as_ref().map(|state| state.clone().into_bytes()))
    }

    fn restore(&self, state: &[u8]) -> Result<HostKept, BoxError> {
        let state = String::from_utf8(state.to_vec())?;
        let asked = HostStateRestore { session: self.session.clone(), state };
        let kept = self.call.peer.call(&asked, &|| true)?;
        Ok(if kept.durable { HostKept::Durable } else { HostKept::ThisProcess })
    }
}
