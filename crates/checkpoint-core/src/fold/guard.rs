//! Keeps a turn from ending with an exploration that is not folded (001-18).

use std::collections::BTreeMap;

use crate::{EngineError, Turn};

/// What the model is told once when a turn is about to end with an active mark.
const WARNING: &str = "An exploration that you marked is still open. Fold it into a report before you finish this turn, \
     or say why it should stay as it is.";

/// Remembers which turns were warned: once each, so that a fold that keeps failing cannot hold a turn for ever.
#[derive(Clone, Debug, Default)]
pub struct TurnGuard {
    /// The latest warned turn per agent: turns only go up.
    warned: BTreeMap<String, Turn>,
}

impl TurnGuard {
    /// Asked when a turn is about to stop. Gives the text to put into the next step's inbox, or `None` to let it end.
    ///
    /// `active` is [`Engine::has_active`](crate::Engine::has_active); when that failed the turn ends all the same, and
    /// the failure goes to the diagnostics.
    pub fn at_turn_stop(
        &mut self,
        agent: &str,
        turn: Turn,
        active: Result<bool, &EngineError>,
    ) -> Option<&'static str> {
        let active = active.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether an exploration is open could not be read");
            false
        });
        if !active || self.warned.get(agent).is_some_and(|warned| *warned >= turn) {
            return None;
        }
        self.warned.insert(agent.to_owned(), turn);
        Some(WARNING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tm39_warns_once_per_turn_and_agent_and_is_quiet_after_the_fold() {
        let mut guard = TurnGuard::default();
        assert!(guard.at_turn_stop("a", Turn(1), Ok(true)).is_some());
        assert!(guard.at_turn_stop("a", Turn(1), Ok(true)).is_none(), "a failing fold cannot trap the turn");
        assert!(guard.at_turn_stop("b", Turn(1), Ok(true)).is_some(), "another agent");
        assert!(guard.at_turn_stop("a", Turn(2), Ok(false)).is_none(), "folded meanwhile");
        assert!(guard.at_turn_stop("a", Turn(3), Ok(true)).is_some(), "a new mark, a new turn");
    }

    #[test]
    fn c001_18_an_error_of_the_guard_only_warns() {
        let error = EngineError::Interrupted;
        let mut guard = TurnGuard::default();
        assert!(guard.at_turn_stop("a", Turn(1), Err(&error)).is_none());
        assert!(guard.at_turn_stop("a", Turn(1), Ok(true)).is_some(), "and counts for nothing");
    }
}
