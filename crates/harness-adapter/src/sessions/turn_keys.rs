//! Which prompt of a transcript is which turn.

use std::path::Path;

use checkpoint_core::{SessionError, Turn};

use super::{claude, codex, door::DoorError, gemini};

/// A user's turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnKey {
    /// Its number: the first is 1, and none is given twice, also where a client went back and asked anew.
    pub turn: Turn,
    /// The harness's own name of it: Claude Code `promptId`, Codex `turn_id`, Gemini CLI the message's id.
    pub key: Option<String>,
}

/// The user's turns of a transcript, in the order in which they were asked.
///
/// What a client writes as a prompt although nobody typed it is left out: results of tools, notices of background work,
/// summaries, the preamble of a session, what a sub-agent is told (docs/conversation-doors.md). A line that is torn,
/// broken or longer than can be held is passed over: a transcript is read here while its client writes it.
///
/// # Errors
///
/// [`SessionError::Unsupported`] for a harness whose transcripts are no files that can be read here,
/// [`SessionError::Harness`] when the file cannot be read.
pub fn turn_keys(harness: &str, transcript: &Path) -> Result<Vec<TurnKey>, SessionError> {
    let read = match harness {
        claude::HARNESS => claude::keys(transcript),
        codex::HARNESS => codex::keys(transcript),
        gemini::HARNESS => gemini::keys(transcript),
        _ => return Err(SessionError::Unsupported),
    };
    let keys = read.map_err(|error: DoorError| SessionError::Harness { source: error.into() })?;
    Ok(keys.into_iter().zip(1..).map(|(key, turn)| TurnKey { turn: Turn(turn), key }).collect())
}
