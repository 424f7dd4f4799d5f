use proptest::prelude::*;
use serde_json::{Value, json};

use super::answer::{Answer, render};
use super::*;

fn read(named: Agent, payload: &Value) -> HookEvent {
    parse(Some(named), &|_| None, payload.to_string().as_bytes())
}

/// One payload of each event, of the shape that was seen.
fn samples() -> Vec<(Agent, Value)> {
    let file = include_str!("../../tests/fixtures/hooks/payloads.jsonl");
    let lines = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (Agent::named(line["agent"].as_str().unwrap()).unwrap(), line["payload"].clone())).collect()
}

#[test]
fn each_payload_is_read_as_what_happened() {
    let file = include_str!("../../tests/fixtures/hooks/payloads.jsonl");
    for line in file.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let agent = Agent::named(line["agent"].as_str().unwrap()).unwrap();
        let event = read(agent, &line["payload"]);
        let what = match &event.what {
            What::Prompt { synthetic: true, .. } => "note".to_owned(),
            What::Prompt { key, .. } => format!("prompt {}", key.as_deref().unwrap_or("-")),
            What::BeforeTool(tool) => format!("before {} {:?}", tool.name, tool.effect),
            What::AfterTool(tool) => format!("after {} {:?}", tool.name, tool.effect),
            What::BatchEnd(tools) => format!("batch {}", tools.len()),
            What::Stop { waiting } => format!("stop {waiting}"),
            other => format!("{other:?}"),
        };
        assert_eq!(what, line["what"].as_str().unwrap(), "{line}");
        assert_eq!(event.agent, agent, "{line}");
        assert_eq!(event.session.as_deref(), Some("s-1"), "{line}");
        assert_eq!(event.problems, [], "{line}");
    }
}

#[test]
fn the_sender_shows_in_the_payload() {
    for (agent, payload) in samples() {
        for named in Agent::ALL {
            let event = read(named, &payload);
            // The only events that all of Claude's, Codex's and Gemini's formats write alike have nothing of their own.
            let plain = matches!(read(agent, &payload).what, What::SessionStart | What::SessionEnd);
            assert!(event.agent == agent || plain, "{payload} to {named:?}: {:?}", event.agent);
        }
    }
    let dsh = json!({"session_id": "d1", "hook_event_name": "Stop", "transcript_path": ""});
    let env = |name: &str| (name == "DSH_SESSION_ID").then(|| "d1".to_owned());
    assert_eq!(parse(Some(Agent::Claude), &env, dsh.to_string().as_bytes()).session_key().to_string(), "dsh:d1");
}

#[test]
fn fields_of_wrong_types_are_named_and_the_rest_is_used() {
    let payload = json!({"session_id": 7, "cwd": ["x"], "hook_event_name": "PreToolUse", "tool_name": null,
        "tool_input": "rm", "tool_use_id": {}, "prompt_id": "p"});
    let event = read(Agent::Claude, &payload);
    assert!(matches!(&event.what, What::BeforeTool(tool) if tool.mutates()), "{event:?}");
    let told: Vec<String> = event.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "session_id is no text",
            "cwd is no text",
            "tool_name is missing",
            "tool_input is no object",
            "tool_use_id is no text",
            "the session's id is missing"
        ]
    );
    for (bytes, why) in [(&b""[..], "is empty"), (b"{", "is no JSON"), (b"[]", "is no object"), (b"\xff", "is no JSON")]
    {
        let event = parse(Some(Agent::Gemini), &|_| None, bytes);
        assert!(event.is_idle() && event.problems.iter().any(|problem| problem.why == why), "{event:?}");
    }
}

#[test]
fn a_text_that_was_cut_inside_a_character_is_no_reason_to_lose_the_rest() {
    let payload = br#"{"session_id":"s","prompt_id":"p","hook_event_name":"UserPromptSubmit","prompt":"a\ud83d \\ud83d \ud83d\ude00"}"#;
    let event = parse(None, &|_| None, payload);
    assert!(matches!(event.what, What::Prompt { .. }) && event.problems.is_empty(), "{event:?}");
    assert_eq!(mend(r"\ud83d\ude00 \udc00 \\ud800 \é \u00e9 \"), r"\ud83d\ude00 \ufffd \\ud800 \é \u00e9 \");
}

#[test]
fn ids_that_no_key_can_hold_are_represented() {
    let odd = session_key("claude", Some("../../x y"));
    assert!(odd.id().starts_with("x-") && odd == session_key("claude", Some("../../x y")));
    assert_ne!(odd, session_key("claude", Some("../../x z")));
    assert_eq!(session_key("codex", None).to_string(), "codex:unknown");
}

#[test]
fn a_conversation_of_a_task_counts_as_its_parents() {
    let payload = json!({"hook": "chat.message", "sessionID": "c", "messageID": "m"});
    let event = read(Agent::Opencode, &payload).of_subagent("p");
    assert_eq!((event.session.as_deref(), event.subagent.as_deref()), (Some("p"), Some("c")));
    assert!(event.is_idle());
    let idle = json!({"hook": "event", "type": "session.idle", "sessionID": "c"});
    assert_eq!(read(Agent::Opencode, &idle).of_subagent("p").what, What::SubagentStop);
}

#[test]
fn answers_say_only_what_the_harness_knows() {
    let nothing = Answer::default();
    let all = Answer { user: Some("u".into()), model: Some("m".into()), deny: Some("d".into()) };
    for (agent, payload) in samples() {
        let event = read(agent, &payload);
        let silent = render(&event, &nothing);
        let expected = match agent {
            Agent::Claude | Agent::Codex | Agent::Gemini => "",
            Agent::Opencode | Agent::Cursor => "{}\n",
            Agent::Cline => "{\"cancel\":false}\n",
        };
        assert_eq!(silent, expected);
        let loud = render(&event, &all);
        if !loud.is_empty() {
            assert!(serde_json::from_str::<Value>(&loud).unwrap().is_object() && loud.ends_with("}\n"), "{loud}");
        }
        // Only a tool that has not run can be denied, and only a prompt carries words to the model.
        assert_eq!(loud.contains("\"d\""), matches!(event.what, What::BeforeTool(_)), "{payload}: {loud}");
    }
    let prompt =
        read(Agent::Claude, &json!({"session_id": "s", "prompt_id": "p", "hook_event_name": "UserPromptSubmit"}));
    let told = Answer { model: Some("m".into()), ..Answer::default() };
    assert_eq!(
        render(&prompt, &told),
        "{\"hookSpecificOutput\":{\"additionalContext\":\"m\",\"hookEventName\":\"UserPromptSubmit\"}}\n"
    );
}

/// A value that a mutation puts somewhere.
fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("*** Begin Patch\n*** Add File: \n*** Move to: x")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("[a-z_]{1,8}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Replaces, removes or adds at the place `at`, counted over the members of the tree.
fn mutate(value: &mut Value, at: &mut usize, new: Option<&Value>) {
    let Value::Object(map) = value else { return };
    let keys: Vec<String> = map.keys().cloned().collect();
    for key in keys {
        if *at == 0 {
            *at = usize::MAX;
            match new {
                Some(new) => drop(map.insert(key, new.clone())),
                None => drop(map.remove(&key)),
            }
            return;
        }
        *at -= 1;
        if let Some(inner) = map.get_mut(&key) {
            mutate(inner, at, new);
        }
    }
}

proptest! {
    /// No payload panics, and no answer to one is malformed.
    #[test]
    fn mutated_payloads_are_read(
        pick in any::<proptest::sample::Index>(),
        named in any::<proptest::sample::Index>(),
        changes in proptest::collection::vec((0..24_usize, proptest::option::of(odd())), 1..5),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let samples = samples();
        let (_, mut payload) = samples[pick.index(samples.len())].clone();
        for (mut at, new) in changes {
            mutate(&mut payload, &mut at, new.as_ref());
        }
        let mut bytes = payload.to_string().into_bytes();
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let event = parse(Some(Agent::ALL[named.index(6)]), &|_| None, &bytes);
        let mut state = state::SessionState::default();
        let actions = turns::step(&mut state, &event, &mut |state, _| state.last_turn + 1);
        prop_assert!(!event.is_idle() || actions.is_empty());
        let told = Answer { user: Some("u".into()), model: Some("m".into()), deny: None };
        let text = render(&event, &told);
        prop_assert!(text.is_empty() || serde_json::from_str::<Value>(&text).is_ok());
        prop_assert!(!event.session_key().is_local());
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let event = parse(None, &|_| None, &bytes);
        prop_assert!(!event.problems.is_empty() || !event.name.is_empty());
    }

    #[test]
    fn mending_leaves_sound_json_alone(text in any::<String>()) {
        let json = Value::from(text).to_string();
        prop_assert_eq!(mend(&json), json);
    }
}
