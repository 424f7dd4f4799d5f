//! The number of a turn: that of its prompt in the harness's own transcript.

use harness_adapter::hooks::HookEvent;
use harness_adapter::hooks::state::SessionState;
use harness_adapter::sessions::turn_keys;

/// The number of the turn that begins with the prompt `key`, in a session of which `state` is known.
///
/// The prompt may be in the transcript already or not yet. A transcript that knows a prompt of this session is believed:
/// a prompt that it does not have is the next. One that knows none may lag behind, or be written in words that are not
/// understood, so that no number is given again. Where it cannot be read, turns are counted.
pub(super) fn number(event: &HookEvent, key: Option<&str>, state: &SessionState) -> u32 {
    let last = state.last_turn;
    // A path of a payload can be anything: nothing but a file is opened, and nothing is waited for.
    let transcript = event.transcript.as_deref().filter(|path| path.is_absolute() && path.is_file());
    let Some(transcript) = transcript else { return last + 1 };
    let keys = match turn_keys(event.harness, transcript) {
        Ok(keys) => keys,
        Err(error) => {
            tracing::debug!(%error, transcript = %transcript.display(), "turns are counted");
            return last + 1;
        }
    };
    if let Some(own) = keys.iter().rev().find(|turn| key.is_some() && turn.key.as_deref() == key) {
        return own.turn.0;
    }
    let known = keys.iter().rev().filter_map(|turn| turn.key.as_deref()).any(|key| state.turn_of(key).is_some());
    let newest = keys.last().map_or(0, |turn| turn.turn.0);
    if known { newest + 1 } else { newest.max(last) + 1 }
}

#[cfg(test)]
mod tests {
    use harness_adapter::hooks::{Agent, parse};

    use super::*;

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
}
