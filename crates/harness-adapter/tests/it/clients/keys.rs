//! Which prompt is which turn.

use std::path::Path;

use checkpoint_core::Turn;
use harness_adapter::sessions::{TurnKey, turn_keys};
use proptest::prelude::*;
use testkit::transcripts::{self, Told, id_of, key_of};

fn three() -> Vec<Told> {
    vec![
        Told { batches: vec![1, 2], ..Told::plain("first") },
        Told::plain("second"),
        Told { ended: false, ..Told::plain("third") },
    ]
}

fn keys_of(harness: &str, lines: &[String]) -> Vec<TurnKey> {
    let scratch = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(scratch.path(), lines.join("\n") + "\n").unwrap();
    turn_keys(harness, scratch.path()).unwrap()
}

fn expected(turns: u32) -> Vec<TurnKey> {
    (1..=turns).map(|turn| TurnKey { turn: Turn(turn), key: Some(key_of(turn as usize)) }).collect()
}

#[test]
fn every_client_s_prompts_are_its_turns() {
    let id = id_of(1, 1);
    assert_eq!(keys_of("claude", &transcripts::claude(&id, "/w", &three())), expected(3));
    assert_eq!(keys_of("codex", &transcripts::codex(&id, "/w", &three())), expected(3));
    assert_eq!(keys_of("gemini", &transcripts::gemini(&id, &three(), &[])), expected(3));
    assert_eq!(keys_of("gemini", &transcripts::gemini(&id, &three(), &[2, 3])), expected(3));
}

#[test]
fn what_nobody_typed_is_no_turn_of_claude() {
    let mut lines = transcripts::claude(&id_of(1, 1), "/w", &three()[..2]);
    for row in [
        r#"{"type":"user","uuid":"x1","promptId":"n","message":{"role":"user","content":"<task-notification>\n<task-id>a</task-id>"}}"#,
        r#"{"type":"user","uuid":"x2","isMeta":true,"message":{"role":"user","content":"meta"}}"#,
        r#"{"type":"user","uuid":"x3","isSidechain":true,"message":{"role":"user","content":"for a sub-agent"}}"#,
        r#"{"type":"user","uuid":"x4","isCompactSummary":true,"message":{"role":"user","content":"summary"}}"#,
        r#"{"type":"user","uuid":"x5","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#,
        r#"{"type":"user","uuid":"x6","message":{"role":"user","content":"<local-command-stdout>ok</local-command-stdout>"}}"#,
        r#"{"type":"user","uuid":"x7","message":7}"#,
        r#"{"type":7,"uuid":[]}"#,
    ] {
        lines.push(row.to_owned());
    }
    assert_eq!(keys_of("claude", &lines), expected(2));
}

#[test]
fn a_sub_agent_of_codex_has_no_turns_of_the_user() {
    let lines = transcripts::codex(&id_of(1, 1), "/w", &three());
    let head =
        lines[0].replace(r#""source":"exec""#, r#""source":{"subagent":{"thread_spawn":{"parent_thread_id":"p"}}}"#);
    let mut lines = lines;
    lines[0] = head;
    assert_eq!(keys_of("codex", &lines), []);
}

#[test]
fn gemini_goes_back_and_replaces() {
    let mut lines = transcripts::gemini(&id_of(1, 1), &three()[..2], &[]);
    lines.push(format!(r#"{{"$rewindTo":"{}"}}"#, key_of(2)));
    assert_eq!(keys_of("gemini", &lines), expected(1));
    lines.push(r#"{"$rewindTo":"nobody knows"}"#.to_owned());
    assert_eq!(keys_of("gemini", &lines), []);
}

#[test]
fn torn_and_broken_lines_are_passed_over() {
    let id = id_of(1, 1);
    for (harness, mut lines) in [
        ("claude", transcripts::claude(&id, "/w", &three())),
        ("codex", transcripts::codex(&id, "/w", &three())),
        ("gemini", transcripts::gemini(&id, &three(), &[])),
    ] {
        lines.insert(2, "{\"type\":".to_owned());
        lines.insert(3, String::new());
        let scratch = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(scratch.path(), lines.join("\n") + "\n{\"type\":\"user\",\"mess").unwrap();
        assert_eq!(turn_keys(harness, scratch.path()).unwrap(), expected(3), "{harness}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for harness in ["claude", "codex", "gemini"] {
        let error = turn_keys(harness, Path::new("/nowhere/at/all.jsonl")).unwrap_err();
        assert_eq!(error.code(), "FORK_FAILED", "{harness}");
        assert!(turn_keys(harness, Path::new("/")).is_err(), "{harness}");
    }
    assert_eq!(turn_keys("opencode", Path::new("/nowhere")).unwrap_err().code(), "FORK_UNSUPPORTED");
}

proptest! {
    /// No bytes make it panic, and what is cut off a transcript never makes up a turn.
    #[test]
    fn any_bytes_are_read(cut in any::<prop::sample::Index>(), junk in proptest::collection::vec(any::<u8>(), 0..40), at in any::<prop::sample::Index>()) {
        let id = id_of(1, 1);
        for (harness, lines) in [
            ("claude", transcripts::claude(&id, "/w", &three())),
            ("codex", transcripts::codex(&id, "/w", &three())),
            ("gemini", transcripts::gemini(&id, &three(), &[2])),
        ] {
            let scratch = tempfile::NamedTempFile::new().unwrap();
            let whole = (lines.join("\n") + "\n").into_bytes();
            let mut bytes = whole[..cut.index(whole.len() + 1)].to_vec();
            std::fs::write(scratch.path(), &bytes).unwrap();
            if let Ok(keys) = turn_keys(harness, scratch.path()) {
                prop_assert!(keys.len() <= 3);
            }
            let place = at.index(bytes.len() + 1);
            bytes.splice(place..place, junk.iter().copied());
            std::fs::write(scratch.path(), &bytes).unwrap();
            drop(turn_keys(harness, scratch.path()));
        }
    }
}
