//! The number of a turn: that of its prompt in the harness's own transcript.

use super::HookEvent;
use super::state::SessionState;
use crate::sessions::{NewestKeys, newest_keys};

/// So much of a transcript is read at most: an agent waits for its hook. A longer one is read from its end.
const END: u64 = 4 << 20;
/// So much is read where no turn of the session is known yet, which is so once.
const AT_FIRST: u64 = 24 << 20;

/// The number of the turn that begins with the prompt `key`, in a session of which `state` is known.
///
/// The prompt may be in the transcript already or not yet. A transcript that knows a prompt of this session is believed:
/// a prompt that it does not have is the next. One that knows none may lag behind, or be written in words that are not
/// understood, so that no number is given again. Where it cannot be read, turns are counted.
///
/// At most the transcript's last 4 MiB are read, 24 MiB where the session is new here: turns that lie before them are counted
/// from one whose number is known. Where none is known, all are counted as they come.
pub fn number(event: &HookEvent, key: Option<&str>, state: &SessionState) -> u32 {
    let most = if state.last_turn == 0 { AT_FIRST } else { END };
    let next = state.last_turn + 1;
    // A path of a payload can be anything: nothing but a file is opened, and nothing is waited for.
    let transcript = event.transcript.as_deref().filter(|path| path.is_absolute() && path.is_file());
    let Some(transcript) = transcript else { return next };
    match newest_keys(event.harness, transcript, most) {
        Ok(newest) => among(&newest, key, state),
        Err(error) => {
            tracing::debug!(%error, transcript = %transcript.display(), "turns are counted");
            next
        }
    }
}

/// The number of the prompt `key` by the prompts at the end of its transcript.
fn among(newest: &NewestKeys, key: Option<&str>, state: &SessionState) -> u32 {
    let count = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let keys = || newest.keys.iter().map(Option::as_deref).enumerate().rev();
    let own = keys().find_map(|(at, known)| (key.is_some() && known == key).then_some(at));
    let known = keys().find_map(|(at, known)| Some((at, state.turn_of(known?)?)));
    let there = own.unwrap_or(newest.keys.len());
    if newest.whole {
        let next = count(there) + 1;
        return if own.is_some() || known.is_some() { next } else { next.max(state.last_turn + 1) };
    }
    // Only how far it is from one whose number is known can be told.
    match known {
        Some((at, turn)) if there > at => turn + count(there - at),
        _ => state.last_turn + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{Agent, parse};

    /// The rows of two prompts, as Claude Code writes them.
    #[test]
    fn a_turn_has_the_number_of_its_prompt_in_the_transcript() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("s.jsonl");
        let row = |key: &str, parent: &str| {
            format!(
                r#"{{"type":"user","uuid":"u-{key}","parentUuid":{parent},"sessionId":"s","promptId":"{key}","isSidechain":false,"timestamp":"2026-11-30T18:00:00.000Z","cwd":"/srv","message":{{"role":"user","content":"do it"}}}}"#
            )
        };
        let text = format!("{}\n{}\n", row("p1", "null"), row("p2", "\"u-p1\""));
        durable_fs::replace(&file, text.as_bytes(), durable_fs::Access::Private, durable_fs::Durability::Derived)
            .unwrap();
        let event = |path: &str| {
            let payload = serde_json::json!({"session_id": "s", "prompt_id": "p", "transcript_path": path,
                "hook_event_name": "UserPromptSubmit"});
            parse(Some(Agent::Claude), &|_| None, payload.to_string().as_bytes())
        };
        let told = event(file.to_str().unwrap());
        let last = |last_turn| SessionState { last_turn, ..SessionState::default() };
        assert_eq!(number(&told, Some("p2"), &last(0)), 2);
        assert_eq!(number(&told, Some("p1"), &last(7)), 1);
        assert_eq!(number(&told, Some("p3"), &last(0)), 3);
        assert_eq!(number(&told, Some("p3"), &last(5)), 6);
        assert_eq!(number(&told, None, &last(0)), 3);
        assert_eq!(number(&event("/nowhere/s.jsonl"), Some("p2"), &last(4)), 5);
        assert_eq!(number(&event("s.jsonl"), Some("p2"), &last(4)), 5);
        // A prompt that another hook blocked is in no transcript, and has no number there.
        let mut blocked = last(3);
        blocked.remember("p2", 2);
        blocked.remember("p3", 3);
        assert_eq!(number(&told, Some("p4"), &blocked), 3);
    }

    /// Long transcripts are read from their end, and no further than that.
    #[test]
    fn a_long_transcript_is_read_from_its_end() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("s.jsonl");
        let row = |n: u32| {
            format!(
                r#"{{"type":"user","uuid":"u{n}","sessionId":"s","promptId":"p{n}","message":{{"role":"user","content":"do it"}}}}"#
            )
        };
        let blob = format!(r#"{{"type":"api-request-blob","text":"{}"}}"#, "x".repeat(1 << 20));
        let mut text = String::new();
        for n in 1..=40 {
            text.extend([&row(n), "\n", &blob, "\n"]);
        }
        std::fs::write(&file, &text).unwrap();
        let newest = newest_keys("claude", &file, END).unwrap();
        assert!(!newest.whole && newest.read <= END + 1 && newest.keys.len() == 3, "{} {:?}", newest.read, newest.keys);
        let payload = serde_json::json!({"session_id": "s", "prompt_id": "p", "transcript_path": file,
            "hook_event_name": "UserPromptSubmit"});
        let event = parse(Some(Agent::Claude), &|_| None, payload.to_string().as_bytes());
        let mut state = SessionState { last_turn: 38, ..SessionState::default() };
        state.remember("p38", 38);
        // By one that is known: another one blocked, or not written yet.
        assert_eq!(number(&event, Some("p40"), &state), 40);
        assert_eq!(number(&event, Some("p41"), &state), 41);
        // None is known: counted, and no number is given again.
        let counted = SessionState { last_turn: 50, ..SessionState::default() };
        assert_eq!(number(&event, Some("p41"), &counted), 51);
        // New here, and short enough once.
        std::fs::write(&file, &text[..text.len() / 2]).unwrap();
        assert_eq!(number(&event, Some("p21"), &SessionState::default()), 21);
        // The end of a line that is longer than that has no turn.
        std::fs::write(&file, format!("{}\n{{\"x\":\"{}\"}}\n", row(1), "y".repeat(6 << 20))).unwrap();
        assert_eq!(newest_keys("claude", &file, END).unwrap().keys.len(), 0);
        assert_eq!(number(&event, Some("p2"), &SessionState { last_turn: 1, ..SessionState::default() }), 2);
    }
}
