//! Flushing a session: everybody who holds recorded events back is asked at once (004-10).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
};

use checkpoint_core::{BoxError, SessionKey};

use super::DurabilityPolicy;

/// Holds events back until it is asked to make them durable.
pub trait FlushListener: fmt::Debug + Send + Sync {
    /// Makes everything durable that was recorded for the session before the call. Called on a thread of its own;
    /// several sessions may be flushed at a time, one session never twice at a time.
    fn flush(&self, session: &SessionKey) -> Result<(), BoxError>;
}

/// Why what was recorded may not be durable. Cheap to clone: everybody who waited for one flush gets its error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlushError {
    /// The session is not open here: it was closed, or never opened.
    #[error("session {0} is not live")]
    NotLive(SessionKey),
    /// A listener failed. Where several did, this is the first in the order in which they were added.
    #[error("the session could not be made durable: {source}")]
    Listener {
        /// How.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl FlushError {
    /// Stable machine code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotLive(_) => "SESSION_NOT_LIVE",
            Self::Listener { .. } => "FLUSH_FAILED",
        }
    }
}

type Outcome = Result<bool, FlushError>;

/// One flush, for everybody who asked for it before it began.
#[derive(Debug, Default)]
struct Round {
    outcome: OnceLock<Outcome>,
}

/// What is under way for one session.
#[derive(Debug, Default)]
struct Rounds {
    running: bool,
    next: Option<Arc<Round>>,
}

#[derive(Debug, Default)]
struct State {
    listeners: BTreeMap<u64, Arc<dyn FlushListener>>,
    added: u64,
    live: BTreeSet<SessionKey>,
    rounds: BTreeMap<SessionKey, Rounds>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    settled: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing of ours panics while it is held, and every change is complete at every moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A round that is run. Dropped without an end, because something of a listener's panicked here, it has failed: nobody
/// who waits for it may wait for ever.
struct Running<'a> {
    shared: &'a Shared,
    session: &'a SessionKey,
    round: &'a Round,
}

impl Running<'_> {
    fn end(self, outcome: Outcome) -> Self {
        let _set_once = self.round.outcome.set(outcome);
        self
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let panicked = || Err(FlushError::Listener { source: Arc::from(BoxError::from("a flush listener panicked")) });
        self.round.outcome.get_or_init(panicked);
        let mut state = self.shared.state();
        let idle = state.rounds.get_mut(self.session).is_none_or(|rounds| {
            rounds.running = false;
            rounds.next.is_none()
        });
        if idle {
            state.rounds.remove(self.session);
        }
        self.shared.settled.notify_all();
    }
}

/// Live sessions and those who hold their events back. A listener may not flush the session that it is flushing: it would
/// wait for itself.
///
/// Calls that come while a flush of the session runs share the one after it: the running one may have begun before
/// their events were recorded.
#[derive(Clone, Debug, Default)]
pub struct FlushHub {
    shared: Arc<Shared>,
}

/// Keeps a listener in place until dropped.
#[derive(Debug)]
#[must_use = "dropping it removes the listener"]
pub struct Subscription {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.state().listeners.remove(&self.id);
    }
}

impl FlushHub {
    /// Adds a listener.
    pub fn listen(&self, listener: Arc<dyn FlushListener>) -> Subscription {
        let mut state = self.shared.state();
        state.added += 1;
        let id = state.added;
        state.listeners.insert(id, listener);
        Subscription { shared: Arc::clone(&self.shared), id }
    }

    /// Makes a session live.
    pub fn open(&self, session: &SessionKey) {
        self.shared.state().live.insert(session.clone());
    }

    /// The session is live no longer: further flushes are refused.
    pub fn close(&self, session: &SessionKey) {
        self.shared.state().live.remove(session);
    }

    /// How many calls wait for the flush after the one that runs.
    #[cfg(test)]
    pub(super) fn waiting(&self, session: &SessionKey) -> usize {
        let state = self.shared.state();
        let next = state.rounds.get(session).and_then(|rounds| rounds.next.as_ref());
        next.map_or(0, |round| Arc::strong_count(round) - 1)
    }

    fn run(&self, session: &SessionKey) -> Outcome {
        let listeners: Vec<Arc<dyn FlushListener>> = self.shared.state().listeners.values().map(Arc::clone).collect();
        // All are started before any is waited for, and all are waited for even when one has failed.
        let settled: Vec<Result<(), BoxError>> = std::thread::scope(|scope| {
            let begin = |listener: &Arc<dyn FlushListener>| {
                let listener = Arc::clone(listener);
                std::thread::Builder::new().spawn_scoped(scope, move || listener.flush(session))
            };
            let started: Vec<_> = listeners.iter().map(begin).collect();
            started
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| Err("a flush listener panicked".into())),
                    Err(error) => Err(error.into()),
                })
                .collect()
        });
        let any = !settled.is_empty();
        match settled.into_iter().find_map(Result::err) {
            Some(source) => Err(FlushError::Listener { source: source.into() }),
            None => Ok(any),
        }
    }
}

impl DurabilityPolicy for FlushHub {
    fn is_live(&self, session: &SessionKey) -> bool {
        self.shared.state().live.contains(session)
    }

    fn flush(&self, session: &SessionKey) -> Outcome {
        let mut state = self.shared.state();
        if !state.live.contains(session) {
            return Err(FlushError::NotLive(session.clone()));
        }
        let round = Arc::clone(state.rounds.entry(session.clone()).or_default().next.get_or_insert_default());
        loop {
            if let Some(outcome) = round.outcome.get() {
                return outcome.clone();
            }
            let rounds = state.rounds.entry(session.clone()).or_default();
            if !rounds.running {
                // It is this call that runs the round for all that wait for it.
                rounds.running = true;
                rounds.next = None;
                drop(state);
                let running = Running { shared: &self.shared, session, round: &round };
                let outcome = self.run(session);
                drop(running.end(outcome));
                state = self.shared.state();
                continue;
            }
            state = self.shared.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
