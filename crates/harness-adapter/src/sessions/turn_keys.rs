//! Which prompt of a transcript is which turn.

use std::path::Path;

use checkpoint_core::{Seq, SessionError, Turn};

use super::{claude, codex, door::DoorError, gemini, lines::Lines};

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
    let whole = || Lines::open(transcript).map_err(DoorError::io("open", transcript));
    let read = match harness {
        claude::HARNESS => whole().and_then(|mut lines| claude::keys(&mut lines, transcript)),
        codex::HARNESS => codex::keys(transcript),
        gemini::HARNESS => whole().and_then(|mut lines| gemini::keys(&mut lines, transcript)),
        _ => return Err(SessionError::Unsupported),
    };
    let keys = read.map_err(|error: DoorError| SessionError::Harness { source: error.into() })?;
    Ok(keys.into_iter().zip(1..).map(|(key, turn)| TurnKey { turn: Turn(turn), key }).collect())
}

/// The user's turns at the end of a transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewestKeys {
    /// The harness's own names of them, as in [`TurnKey::key`], in the order in which they were asked.
    pub keys: Vec<Option<String>>,
    /// True when these are all turns of it, so that the first is turn 1.
    pub whole: bool,
    /// So many bytes were read.
    pub read: u64,
}

/// The same of a transcript's last `most` bytes, for who may not wait until a long one is read. A log that it goes on from is
/// read too where both are no longer than that.
///
/// # Errors
///
/// As of [`turn_keys`].
pub fn newest_keys(harness: &str, transcript: &Path, most: u64) -> Result<NewestKeys, SessionError> {
    let look = || -> Result<NewestKeys, DoorError> {
        let (mut lines, all) = Lines::open_end(transcript, most).map_err(DoorError::io("open", transcript))?;
        let keys = match harness {
            claude::HARNESS => claude::keys(&mut lines, transcript)?,
            codex::HARNESS => codex::keys_in(&mut lines, transcript)?,
            _ => gemini::keys(&mut lines, transcript)?,
        };
        let (read, bases) = (lines.read(), if harness == codex::HARNESS { codex::before(transcript)? } else { 0 });
        if all && bases > 0 && read.saturating_add(bases) <= most {
            return Ok(NewestKeys { keys: codex::keys(transcript)?, whole: true, read: read + bases });
        }
        Ok(NewestKeys { keys, whole: all && bases == 0, read })
    };
    match harness {
        claude::HARNESS | codex::HARNESS | gemini::HARNESS => {
            look().map_err(|error| SessionError::Harness { source: error.into() })
        }
        _ => Err(SessionError::Unsupported),
    }
}

/// Where a turn begins, or ends, in a log in which every turn before it ended once: positions count beginnings and ends of
/// turns from 0 (docs/conversation-doors.md).
///
/// A client that went back inside its log has more ends, so this is only where the turn was expected: the harness's own
/// name of it, stored beside, goes before it.
pub fn expected_position(turn: Turn, ended: bool) -> Seq {
    Seq(u64::from(turn.0.saturating_sub(1)) * 2 + u64::from(ended))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use checkpoint_core::{Beat, SessionKey};

    use super::*;

    /// What hooks store and what the log says later are the same place.
    #[test]
    fn turns_are_expected_where_the_log_has_them() {
        let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("projects/p");
        std::fs::create_dir_all(&folder).unwrap();
        let mut rows = String::new();
        for n in 1..=3 {
            let parent = if n == 1 { "null".to_owned() } else { format!("\"a{}\"", n - 1) };
            writeln!(
                rows,
                r#"{{"type":"user","uuid":"u{n}","parentUuid":{parent},"sessionId":"{id}","promptId":"p{n}","message":{{"role":"user","content":"do it"}}}}"#
            )
            .unwrap();
            writeln!(
                rows,
                r#"{{"type":"assistant","uuid":"a{n}","parentUuid":"u{n}","sessionId":"{id}","message":{{"role":"assistant","stop_reason":"end_turn","content":[]}}}}"#
            )
            .unwrap();
        }
        std::fs::write(folder.join(format!("{id}.jsonl")), rows).unwrap();
        let logs = crate::sessions::client_logs("claude", scratch.path().to_owned()).unwrap();
        let beats = logs.beats(&SessionKey::new("claude", id).unwrap(), Seq(0)).unwrap();
        let expected = (1..=3).map(Turn).flat_map(|turn| {
            [(turn, Beat::TurnStart(turn)), (turn, Beat::TurnEnd(turn))]
                .map(|(turn, beat)| (expected_position(turn, matches!(beat, Beat::TurnEnd(_))), beat))
        });
        assert_eq!(beats, expected.collect::<Vec<_>>());
    }
}
