//! What is remembered of a session from one hook to the next.
//!
//! It may be lost at any time: what was recorded is in the index, and a turn that is not known is begun at the first
//! tool that may change something.

use serde::{Deserialize, Serialize};

/// The version of the stored form. Fields may be added; another number is not read.
pub const VERSION: u32 = 1;

/// So many prompts are remembered, so that one that is reported again makes no second turn.
const KEYS: usize = 64;
/// So many calls are remembered that began and did not end, or that ended.
const CALLS: usize = 64;

/// What is known of one session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// [`VERSION`].
    pub version: u32,
    /// The newest turn's number; 0 before the first.
    pub last_turn: u32,
    /// Its prompt, as the harness's transcript calls it.
    pub anchor: Option<String>,
    /// Steps that ended in that turn.
    pub last_step: u32,
    /// It, while it is open.
    pub turn: Option<OpenTurn>,
    /// Keys of prompts with the number of their turn, newest last.
    pub keys: Vec<(String, u32)>,
    /// Operations of rwd up to this place are known to the model; `None` for a session that has recorded nothing.
    pub seen: Option<u64>,
    /// What is to be told to the user as soon as an event can carry it.
    pub pending: Option<String>,
    /// True once the user was told of a capture that did not happen.
    pub gap_told: bool,
    /// True once the user was told of a payload that was not understood.
    pub problems_told: bool,
    /// The session whose sub-agent this one is.
    pub child_of: Option<String>,
    /// Captures since retention ran.
    pub unswept: u32,
}

/// A turn that is open.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct OpenTurn {
    /// Its number.
    pub number: u32,
    /// Something may have changed since the last capture.
    pub dirty: bool,
    /// Something of it works without saying so: what is captured may be old at once.
    pub loose: bool,
    /// Calls that began and did not end.
    pub running: Vec<String>,
    /// Calls and batches that ended.
    pub ended: Vec<String>,
    /// Sub-agents at work.
    pub agents: Vec<String>,
    /// The agent stopped, and what it began still works.
    pub stopped: bool,
    /// The harness will take the turn up again by itself.
    pub waiting: bool,
}

impl SessionState {
    /// Reads a stored state; what cannot be read is nothing known.
    pub fn read(stored: &[u8]) -> Option<Self> {
        serde_json::from_slice(stored).ok().filter(|state: &Self| state.version == VERSION)
    }

    /// As it is stored.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(&Self { version: VERSION, ..self.clone() }).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The turn of a prompt.
    pub fn turn_of(&self, key: &str) -> Option<u32> {
        self.keys.iter().rev().find(|(known, _)| known == key).map(|(_, turn)| *turn)
    }

    /// Remembers whose turn a prompt is.
    pub fn remember(&mut self, key: &str, turn: u32) {
        push(&mut self.keys, (key.to_owned(), turn), KEYS);
    }

    /// A capture did not happen: the next one is needed all the more.
    pub fn missed(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.dirty = true;
        }
    }
}

impl OpenTurn {
    /// Notes that a call began; false when it had.
    pub fn begin(&mut self, call: Option<&str>) -> bool {
        let Some(call) = call else { return true };
        let new = !self.running.iter().any(|known| known == call) && !self.ended.iter().any(|known| known == call);
        if new {
            push(&mut self.running, call.to_owned(), CALLS);
        }
        new
    }

    /// Notes that calls ended; false when all of them had.
    pub fn end(&mut self, calls: &[&str]) -> bool {
        self.running.retain(|known| !calls.contains(&known.as_str()));
        let mut new = calls.is_empty();
        for call in calls {
            if !self.ended.iter().any(|known| known == call) {
                new = true;
                push(&mut self.ended, (*call).to_owned(), CALLS);
            }
        }
        new
    }
}

/// Adds to a list that forgets its oldest.
pub(super) fn push<T>(list: &mut Vec<T>, item: T, most: usize) {
    if list.len() >= most {
        list.drain(..=list.len() - most);
    }
    list.push(item);
}
