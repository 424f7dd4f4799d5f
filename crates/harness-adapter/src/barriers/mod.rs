//! Durability barriers (004): what a harness has recorded is on disk before it acts on it. Intent is durable before
//! effects; effects do not happen exactly once, and a call's id is what a tool can recognise a repetition by (004-12).
//!
//! No settings, no prompt, no tool schema: the host calls these functions where it would have called the adapter, the
//! tool's body or the next step. Everything blocks, and nothing here spawns more than the listeners of one flush. An
//! asynchronous host runs each call on a thread that may block (`spawn_blocking` or its like) and awaits that; a
//! [`BarrierStream`] is moved there as a whole and pulled from there, so that its first pull does the waiting.
//!
//! ```
//! use checkpoint_core::SessionKey;
//! use harness_adapter::barriers::{Barrier, Barriers, FlushHub, Passage};
//! use std::sync::Arc;
//!
//! let hub = Arc::new(FlushHub::default());
//! let session = SessionKey::new("dsh", "s1")?;
//! hub.open(&session);
//! let (barriers, mounted) = Barriers::mount(hub);
//! let request = Barrier::ModelRequest { session: Some(&session) };
//! assert_eq!(barriers.enforce(&request)?, Passage::Flushed { any: false });
//! drop(mounted);
//! assert_eq!(barriers.enforce(&request)?, Passage::NotNeeded);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod flush;
mod stream;
mod tool;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use checkpoint_core::SessionKey;

pub use flush::{FlushError, FlushHub, FlushListener, Subscription};
pub use stream::BarrierStream;
pub use tool::{ErrorInfo, PointBarrier, PointGuard, SavePoint, ToolCall, ToolResult};

/// Who makes a session durable. [`FlushHub`] is the one of this crate.
pub trait DurabilityPolicy: fmt::Debug + Send + Sync {
    /// True while the session can be flushed.
    fn is_live(&self, session: &SessionKey) -> bool;

    /// Returns when everything that was recorded before the call is durable, and says whether anybody took part.
    fn flush(&self, session: &SessionKey) -> Result<bool, FlushError>;
}

/// A place in the harness's course at which recorded events must be durable.
#[derive(Clone, Copy, Debug)]
pub enum Barrier<'a> {
    /// A request to a model is about to be made. One without a session, or with one that is not live, passes: title
    /// and other auxiliary requests (004-03).
    ModelRequest {
        /// The session it belongs to.
        session: Option<&'a SessionKey>,
    },
    /// The body of a tool is about to run, after policy has said yes. Calls without an agent and nested calls pass:
    /// the outer call's barrier has covered them (004-05).
    ToolBody {
        /// The session of the calling agent.
        session: Option<&'a SessionKey>,
        /// True for a call made by another call.
        nested: bool,
    },
    /// The next step is about to be derived from what is recorded; a failure must fail the turn (004-08).
    PreStep {
        /// The session.
        session: &'a SessionKey,
    },
    /// A turn has ended and queued work goes on whatever comes of this (004-09).
    TurnEnd {
        /// The session.
        session: &'a SessionKey,
    },
}

/// How a barrier was passed.
#[derive(Clone, Debug)]
pub enum Passage {
    /// What was recorded is durable.
    Flushed {
        /// False when nobody listens for flushes.
        any: bool,
    },
    /// It does not apply here.
    NotNeeded,
    /// At the end of a turn only: the flush failed. To be reported; nothing stops.
    FailedAtEnd(FlushError),
}

impl PartialEq for Passage {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Flushed { any }, Self::Flushed { any: other }) => any == other,
            (Self::NotNeeded, Self::NotNeeded) => true,
            // Failures have no equality: their causes have none.
            _ => false,
        }
    }
}

/// Passes a barrier: flushes where it applies (004-02 to 09).
///
/// # Errors
/// The flush failed: what the barrier stands before must not happen. Never for [`Barrier::TurnEnd`].
pub fn enforce(policy: &dyn DurabilityPolicy, barrier: &Barrier<'_>) -> Result<Passage, FlushError> {
    let session = match *barrier {
        Barrier::ModelRequest { session } => session.filter(|session| policy.is_live(session)),
        Barrier::ToolBody { session, nested } => session.filter(|_| !nested),
        Barrier::PreStep { session } | Barrier::TurnEnd { session } => Some(session),
    };
    let Some(session) = session else { return Ok(Passage::NotNeeded) };
    match (policy.flush(session), barrier) {
        (Ok(any), _) => Ok(Passage::Flushed { any }),
        (Err(error), Barrier::TurnEnd { .. }) => {
            tracing::warn!(%session, %error, "what the last turn recorded may not be durable");
            Ok(Passage::FailedAtEnd(error))
        }
        (Err(error), _) => Err(error),
    }
}

/// The barriers of a mounted policy. Clones share it; once its owner has dropped [`Mounted`], later calls pass
/// without a flush, while those under way are not affected (004-01).
#[derive(Clone, Debug)]
pub struct Barriers {
    policy: Arc<dyn DurabilityPolicy>,
    mounted: Arc<AtomicBool>,
}

/// Keeps the barriers of a policy in place until dropped.
#[derive(Debug)]
#[must_use = "dropping it takes the barriers away"]
pub struct Mounted(Arc<AtomicBool>);

impl Drop for Mounted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Barriers {
    /// Puts the barriers of a policy in place.
    pub fn mount(policy: Arc<dyn DurabilityPolicy>) -> (Self, Mounted) {
        let mounted = Arc::new(AtomicBool::new(true));
        (Self { policy, mounted: Arc::clone(&mounted) }, Mounted(mounted))
    }

    /// See [`enforce`].
    pub fn enforce(&self, barrier: &Barrier<'_>) -> Result<Passage, FlushError> {
        if !self.mounted.load(Ordering::SeqCst) {
            return Ok(Passage::NotNeeded);
        }
        enforce(&*self.policy, barrier)
    }
}

#[cfg(test)]
mod tests;
