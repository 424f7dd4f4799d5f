//! A model's stream behind its barrier (004-02 to 04).

use std::fmt;

use checkpoint_core::SessionKey;

use super::{Barrier, Barriers, FlushError};

enum State<I, F> {
    /// Nothing was asked for yet.
    Waiting(F),
    Running(I),
    Over,
}

/// A stream that is not even constructed before what the session has recorded is durable.
///
/// Lazy: making it does nothing. The first pull flushes and then constructs the adapter's stream. When the flush
/// fails, that pull gives the error, the adapter's stream is never constructed, and the stream is over.
pub struct BarrierStream<I, F> {
    barriers: Barriers,
    session: Option<SessionKey>,
    state: State<I, F>,
}

impl<I, F> fmt::Debug for BarrierStream<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierStream").field("session", &self.session).finish_non_exhaustive()
    }
}

impl<I, F> BarrierStream<I, F>
where
    I: Iterator,
    F: FnOnce() -> I,
{
    /// Wraps the construction of an adapter's stream. A request without a session, or with one that is not live,
    /// passes without a flush.
    pub fn new(barriers: &Barriers, session: Option<&SessionKey>, construct: F) -> Self {
        Self { barriers: barriers.clone(), session: session.cloned(), state: State::Waiting(construct) }
    }
}

impl<I, F> Iterator for BarrierStream<I, F>
where
    I: Iterator,
    F: FnOnce() -> I,
{
    type Item = Result<I::Item, FlushError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return None,
                State::Waiting(construct) => {
                    if let Err(error) = self.barriers.enforce(&Barrier::ModelRequest { session: self.session.as_ref() })
                    {
                        return Some(Err(error));
                    }
                    self.state = State::Running(construct());
                }
                State::Running(mut stream) => {
                    let item = stream.next()?;
                    self.state = State::Running(stream);
                    return Some(Ok(item));
                }
            }
        }
    }
}
