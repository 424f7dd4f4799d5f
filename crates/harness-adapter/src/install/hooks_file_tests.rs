use proptest::prelude::*;
use serde_json::Value;

use super::super::command::hook_command;
use super::*;

const AGENTS: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Cursor];

fn command(agent: Agent) -> String {
    hook_command("rwd", agent).unwrap()
}

fn installed(agent: Agent, before: &str) -> String {
    install(agent, before, &command(agent), &|_| true).unwrap()
}

/// The value without comments, as the agent reads it.
fn value(text: &str) -> Value {
    let mut out = String::new();
    let node = jsonc::parse(text).unwrap().unwrap();
    plain(text, &node, &mut out);
    serde_json::from_str(&out).unwrap()
}

fn plain(text: &str, node: &Node, out: &mut String) {
    match &node.kind {
        Kind::Object(members) => {
            out.push('{');
            for (n, member) in members.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                out.push_str(&Value::from(member.key.as_str()).to_string());
                out.push(':');
                plain(text, &member.value, out);
            }
            out.push('}');
        }
        Kind::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                plain(text, item, out);
            }
            out.push(']');
        }
        _ => out.push_str(&text[node.span.clone()]),
    }
}

#[test]
fn a_new_file_holds_every_event_and_nothing_else() {
    for agent in AGENTS {
        let text = installed(agent, "");
        let found = inspect(agent, &text, "/h/hooks.json").unwrap();
        assert!(found.is_complete(&|program| program == "rwd"), "{agent:?}: {text}");
        assert_eq!(installed(agent, &text), text);
        assert!(uninstall(agent, &text).unwrap().1, "{agent:?}");
        assert!(!text.contains("async"), "an agent would not wait for it");
    }
    assert_eq!(
        serde_json::from_str::<Value>(&installed(Agent::Claude, "")).unwrap()["hooks"]["Stop"],
        serde_json::json!([{ "hooks": [{ "type": "command", "command": command(Agent::Claude), "timeout": 20 }] }])
    );
    let cursor: Value = serde_json::from_str(&installed(Agent::Cursor, "")).unwrap();
    assert_eq!(cursor["version"], 1);
    assert_eq!(cursor["hooks"]["stop"][0]["command"], command(Agent::Cursor));
    let gemini: Value = serde_json::from_str(&installed(Agent::Gemini, "")).unwrap();
    assert_eq!(gemini["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"], 20_000);
    assert_eq!(inspect(Agent::Codex, &installed(Agent::Codex, ""), "/h/hooks.json").unwrap().trust.len(), 8);
}

#[test]
fn hooks_of_others_stay_and_so_does_every_comment() {
    let before = "// mine\n{\n\t\"model\": \"x\", // fast\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }, // keep\n\t\t],\n\t},\n}";
    let after = installed(Agent::Claude, before);
    assert!(after.contains("\t\"model\": \"x\", // fast\n") && after.contains("}, // keep\n"), "{after}");
    assert_eq!(value(&after)["hooks"]["Stop"][0], value(before)["hooks"]["Stop"][0]);
    assert_eq!(value(&after)["hooks"]["Stop"].as_array().unwrap().len(), 2);
    assert_eq!(uninstall(Agent::Claude, &after).unwrap(), (before.to_owned(), false));
}

#[test]
fn what_is_half_removed_is_repaired_and_what_works_is_left_alone() {
    let whole = installed(Agent::Claude, "");
    let mut half: Value = serde_json::from_str(&whole).unwrap();
    half["hooks"].as_object_mut().unwrap().remove("PreToolUse");
    half["hooks"]["Stop"][0]["hooks"][0]["async"] = true.into();
    half["hooks"]["SessionEnd"][0]["hooks"][0]["command"] = "/gone/rwd hook claude".into();
    let half = serde_json::to_string_pretty(&half).unwrap();
    let found = inspect(Agent::Claude, &half, "").unwrap();
    assert_eq!(found.missing, ["PreToolUse"]);
    assert!(found.present.iter().any(|hook| hook.event == "Stop" && hook.detached));
    assert!(found.present.iter().any(|hook| hook.event == "SessionEnd" && hook.program.is_none()));
    let again = installed(Agent::Claude, &half);
    assert!(inspect(Agent::Claude, &again, "").unwrap().is_complete(&|_| true), "{again}");
    // A path that works stays: Codex trusts the text of the command.
    let with_path = install(Agent::Codex, "", &hook_command("/x/rwd", Agent::Codex).unwrap(), &|_| true).unwrap();
    assert_eq!(installed(Agent::Codex, &with_path), with_path);
    let moved = install(Agent::Codex, &with_path, &command(Agent::Codex), &|program| program == "rwd").unwrap();
    assert!(inspect(Agent::Codex, &moved, "").unwrap().is_complete(&|program| program == "rwd"));
}

#[test]
fn what_is_not_as_expected_is_refused_by_its_line() {
    for (text, line, what) in [
        ("[]", 1, "the file must be an object"),
        ("{\n\"hooks\": []}", 2, "\"hooks\" must be an object"),
        ("{\"hooks\": {\n\n\"Stop\": {}}}", 3, "\"hooks.Stop\" must be a list"),
        ("{\"hooks\": {\"Stop\": [\n1]}}", 2, "each element of \"hooks.Stop\" must be an object"),
        ("{\"hooks\": {\"Stop\": [{\"hooks\":\n 1}]}}", 2, "\"hooks\" in an element of \"hooks.Stop\" must be a list"),
        ("{\"hooks\": {},\n\"hooks\": {}}", 2, "\"hooks\" stands there twice"),
        ("{\"hooks\": {\"Stop\": [],\n\"Stop\": []}}", 2, "\"Stop\" stands there twice"),
        ("{\n", 2, "the file ends in the middle of an object"),
    ] {
        let error = install(Agent::Claude, text, "x", &|_| true).unwrap_err();
        assert_eq!((error.line, error.what.as_str()), (line, what), "{text}");
    }
    // What we do not touch is nobody's business.
    for text in ["{\"a\": 1, \"a\": 2}", "{\"hooks\": {\"Other\": 7}}", "{\"hooks\": {\"Other\": [{\"hooks\": 1}]}}"] {
        assert!(install(Agent::Claude, text, "x", &|_| true).is_ok(), "{text}");
    }
}

#[test]
fn hooks_that_are_turned_off_are_noticed() {
    assert!(inspect(Agent::Claude, "{\"disableAllHooks\": true}", "").unwrap().disabled);
    assert!(inspect(Agent::Gemini, "{\"hooksConfig\": {\"enabled\": false}}", "").unwrap().disabled);
    assert!(!inspect(Agent::Claude, "{\"disableAllHooks\": false}", "").unwrap().disabled);
}

/// What somebody wrote around our hooks is no part of them.
#[test]
fn a_comment_around_our_hooks_stays_when_they_go() {
    for before in [
        "{\"hooks\": { /* a */ }}",
        "{\"hooks\": {\n  // a\n  \"Stop\": [ // b\n  ]\n}}",
        "{\"hooks\": {\"Stop\": [/* a */]}, \"k\": 1}",
    ] {
        let (after, empty) = uninstall(Agent::Claude, &installed(Agent::Claude, before)).unwrap();
        assert!(!empty);
        assert!(!after.contains("rwd"), "{after}");
        assert_eq!(after.matches(['a', 'b']).count(), before.matches(['a', 'b']).count(), "{before} -> {after}");
    }
    let ours = command(Agent::Claude);
    let text = format!(r#"{{"hooks":{{"Stop":[{{/* a */"hooks":[{{"type":"command","command":{ours:?}}}]}}]}}}}"#);
    assert_eq!(uninstall(Agent::Claude, &text).unwrap().0, r#"{"hooks":{"Stop":[{/* a */"hooks":[]}]}}"#);
}

/// White space, comments and line ends that may stand between two things.
fn gap(line_end: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        2 => Just(" ".to_owned()),
        3 => (0usize..3).prop_map(move |n| format!("{line_end}{}", "  ".repeat(n))),
        1 => Just(format!(" // a, \"b\" }} ]{line_end}")),
        1 => Just("/* [ , */".to_owned()),
        1 => Just(format!("{line_end}\t")),
    ]
}

/// A list of parts between brackets, with gaps everywhere and perhaps a comma at the end.
fn list(open: char, close: char, parts: Vec<String>, line_end: &'static str) -> impl Strategy<Value = String> {
    let n = parts.len();
    (prop::collection::vec((gap(line_end), gap(line_end)), n + 1), any::<bool>()).prop_map(move |(gaps, trailing)| {
        let mut out = String::from(open);
        for (n, part) in parts.iter().enumerate() {
            let last = n + 1 == parts.len();
            let comma = if last && !trailing { "" } else { "," };
            out.extend([gaps[n].0.as_str(), part, &gaps[n].1, comma]);
        }
        out + &gaps[parts.len()].0 + &close.to_string()
    })
}

fn hook(line_end: &'static str) -> impl Strategy<Value = String> {
    (0u8..9).prop_flat_map(move |n| {
        let parts = vec!["\"type\":\"command\"".to_owned(), format!("\"command\": \"other {n} \\\" hook\"")];
        list('{', '}', parts, line_end)
    })
}

fn event(line_end: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(hook(line_end), 0..3)
        .prop_flat_map(move |hooks| list('[', ']', hooks, line_end))
        .prop_flat_map(move |hooks| {
            list('{', '}', vec!["\"matcher\": \"a|b\"".to_owned(), format!("\"hooks\":{hooks}")], line_end)
        })
        .prop_flat_map(move |group| list('[', ']', vec![group], line_end))
}

fn settings() -> impl Strategy<Value = String> {
    prop_oneof![Just("\n"), Just("\r\n")].prop_flat_map(|line_end| {
        let events = prop::sample::subsequence(vec!["Stop", "PreToolUse", "BeforeTool", "Other"], 0..4);
        let hooks = (events, prop::collection::vec(event(line_end), 4)).prop_flat_map(move |(names, lists)| {
            let parts = names.iter().zip(&lists).map(|(name, list)| format!("\"{name}\" : {list}")).collect();
            list('{', '}', parts, line_end)
        });
        (prop::option::of(hooks), 0usize..3, gap(line_end), gap(line_end), any::<bool>()).prop_flat_map(
            move |(hooks, more, head, tail, mark)| {
                let mut parts: Vec<String> = (0..more).map(|n| format!("\"k{n}\": [1, {{\"x\": null}}]")).collect();
                parts.extend(hooks.map(|hooks| format!("\"hooks\": {hooks}")));
                let mark = if mark { "\u{feff}" } else { "" };
                list('{', '}', parts, line_end).prop_map(move |body| format!("{mark}{head}{body}{tail}"))
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Installing twice is installing once; what others have stays, in its order; and taking ours out again leaves what
    /// was there, byte for byte where no brackets were empty.
    #[test]
    fn install_and_uninstall_keep_everything_else(before in settings(), which in 0usize..3) {
        let agent = AGENTS[which];
        let after = installed(agent, &before);
        prop_assert_eq!(&installed(agent, &after), &after);
        prop_assert!(inspect(agent, &after, "").unwrap().is_complete(&|_| true));
        // Nothing of before is lost, and all in its order: what was added are insertions.
        let mut rest = after.chars();
        let empty = ["{}", "[]"].iter().any(|brackets| squeezed(&before).contains(brackets));
        if !empty {
            prop_assert!(before.chars().all(|c| rest.any(|other| other == c)), "{}\n->\n{}", before, after);
        }
        let (out, _) = uninstall(agent, &after).unwrap();
        let kept = without_empty(value(&before));
        prop_assert_eq!(without_empty(value(&out)), kept);
        if !empty {
            prop_assert_eq!(out, before);
        }
    }

    /// Any text at all gives a text or a mistake.
    #[test]
    fn no_text_panics(text in "[\\[\\]{}\",:/* a\\\\\n1]{0,40}") {
        for agent in AGENTS {
            let done = install(agent, &text, "x", &|_| true);
            if let Ok(after) = &done {
                prop_assert!(jsonc::parse(after).is_ok());
            }
            drop(uninstall(agent, &text));
        }
    }
}

fn squeezed(text: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        let next = jsonc::skip(text, at);
        if next > at {
            at = next;
            continue;
        }
        let c = text[at..].chars().next().unwrap();
        out.push(c);
        at += c.len_utf8();
    }
    out
}

/// Lists of events that hold nothing are as good as none.
fn without_empty(mut value: Value) -> Value {
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        if hooks.is_empty() {
            value.as_object_mut().unwrap().remove("hooks");
        }
    }
    value
}
