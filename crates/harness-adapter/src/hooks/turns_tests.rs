use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::hooks::parse;

/// A session with its reports, as Claude Code words them.
#[derive(Default)]
struct Session {
    state: SessionState,
}

fn next(state: &SessionState, _: Option<&str>) -> u32 {
    state.last_turn + 1
}

impl Session {
    fn tell(&mut self, agent: Agent, payload: &serde_json::Value) -> Vec<String> {
        let event = parse(Some(agent), &|_| None, payload.to_string().as_bytes());
        step(&mut self.state, &event, &mut next).iter().map(word).collect()
    }

    fn claude(&mut self, event: &str, more: serde_json::Value) -> Vec<String> {
        self.tell(Agent::Claude, &with(json!({"session_id": "s", "hook_event_name": event}), more))
    }

    fn prompt(&mut self, key: &str) -> Vec<String> {
        self.claude("UserPromptSubmit", json!({"prompt_id": key, "prompt": "do it"}))
    }

    fn before(&mut self, key: &str, tool: &str, call: &str) -> Vec<String> {
        self.claude("PreToolUse", json!({"prompt_id": key, "tool_name": tool, "tool_use_id": call}))
    }

    fn batch(&mut self, key: &str, tool: &str, call: &str) -> Vec<String> {
        let calls = json!([{"tool_name": tool, "tool_use_id": call}]);
        self.claude("PostToolBatch", json!({"prompt_id": key, "tool_calls": calls}))
    }

    fn stop(&mut self, key: &str, tasks: &serde_json::Value) -> Vec<String> {
        self.claude("Stop", json!({"prompt_id": key, "background_tasks": tasks}))
    }
}

fn with(mut one: serde_json::Value, more: serde_json::Value) -> serde_json::Value {
    if let (Some(one), serde_json::Value::Object(more)) = (one.as_object_mut(), more) {
        one.extend(more);
    }
    one
}

fn word(action: &Action) -> String {
    match action {
        Action::Save(capture) => {
            let step = capture.step.map(|step| format!(".{step}")).unwrap_or_default();
            format!("{} t{}{step}", capture.kind.name(), capture.turn)
        }
        Action::Interrupt => "interrupt".to_owned(),
        Action::Reopen(turn) => format!("reopen t{turn}"),
        Action::Retain => "retain".to_owned(),
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_turn_is_captured_before_it_between_its_tools_and_after_it() {
    let mut s = Session::default();
    assert_eq!(s.prompt("p1"), ["turn-start t1"]);
    assert_eq!(s.before("p1", "Read", "c0"), NOTHING);
    // Nothing has changed since the turn began.
    assert_eq!(s.before("p1", "Write", "c1"), NOTHING);
    assert_eq!(s.batch("p1", "Write", "c1"), ["step t1.1"]);
    assert_eq!(s.before("p1", "Bash", "c2"), NOTHING);
    // A second tool of the batch, while the first may have changed something.
    assert_eq!(s.before("p1", "Edit", "c3"), ["mutation t1.2"]);
    assert_eq!(s.batch("p1", "Bash", "c2"), ["step t1.2"]);
    assert_eq!(s.stop("p1", &json!([])), ["turn-end t1"]);
    assert_eq!(s.claude("SessionEnd", json!({"prompt_id": "p1"})), ["retain"]);
    assert_eq!(s.prompt("p2"), ["turn-start t2"]);
}

#[test]
fn what_is_reported_twice_is_done_once() {
    let mut s = Session::default();
    s.prompt("p1");
    assert_eq!(s.prompt("p1"), NOTHING);
    s.before("p1", "Write", "c1");
    assert_eq!(s.before("p1", "Write", "c1"), NOTHING);
    s.batch("p1", "Write", "c1");
    assert_eq!(s.batch("p1", "Write", "c1"), NOTHING);
    s.stop("p1", &json!([]));
    assert_eq!(s.stop("p1", &json!([])), NOTHING);
    assert_eq!(s.prompt("p1"), NOTHING);
    // The end of an older turn that comes late ends no newer one.
    s.prompt("p2");
    assert_eq!(s.stop("p1", &json!([])), NOTHING);
    assert_eq!(s.stop("p2", &json!([])), ["turn-end t2"]);
}

/// What a real run showed: the sub-agent writes after the main agent's stop, and a prompt that nobody wrote follows.
#[test]
fn a_stop_is_no_end_while_something_works() {
    let mut s = Session::default();
    let sub = json!({"prompt_id": "p1", "agent_id": "a1"});
    s.prompt("p1");
    s.before("p1", "Agent", "c1");
    s.claude("SubagentStart", sub.clone());
    s.batch("p1", "Agent", "c1");
    let tool = json!({"tool_name": "Write", "tool_use_id": "c2"});
    assert_eq!(s.claude("PreToolUse", with(sub.clone(), tool.clone())), NOTHING);
    let tasks = json!([{"id": "a1", "status": "running"}]);
    assert_eq!(s.stop("p1", &tasks), ["auto t1"]);
    assert_eq!(s.claude("PostToolBatch", with(sub.clone(), json!({"tool_calls": [tool]}))), ["step t1.2"]);
    assert_eq!(s.claude("SubagentStop", sub), NOTHING);
    let note = json!({"prompt_id": "p9", "prompt": "<task-notification>\n<task-id>a1"});
    assert_eq!(s.claude("UserPromptSubmit", note), NOTHING);
    assert_eq!(s.stop("p9", &json!([])), ["turn-end t1"]);
    assert_eq!(s.prompt("p2"), ["turn-start t2"]);
}

#[test]
fn a_sub_agent_of_codex_holds_the_end_until_it_stops() {
    let mut s = Session::default();
    let mut codex = |event: &str, more| {
        s.tell(Agent::Codex, &with(json!({"session_id": "s", "turn_id": "u1", "hook_event_name": event}), more))
    };
    assert_eq!(codex("UserPromptSubmit", json!({})), ["turn-start t1"]);
    assert_eq!(codex("SubagentStart", json!({"agent_id": "a1"})), NOTHING);
    assert_eq!(codex("UserPromptSubmit", json!({"agent_id": "a1", "turn_id": "u7"})), NOTHING);
    assert_eq!(codex("Stop", json!({})), NOTHING);
    assert_eq!(codex("SubagentStop", json!({"agent_id": "a1"})), ["turn-end t1"]);
}

#[test]
fn calls_of_codex_that_never_end_lead_to_more_captures_not_to_fewer() {
    let mut s = Session::default();
    let mut codex = |event: &str, tool: &str, call: &str| {
        let base = json!({"session_id": "s", "turn_id": "u1", "hook_event_name": event});
        s.tell(Agent::Codex, &with(base, json!({"tool_name": tool, "tool_use_id": call})))
    };
    codex("UserPromptSubmit", "", "");
    assert_eq!(codex("PreToolUse", "Bash", "exec-1"), NOTHING);
    assert_eq!(codex("PreToolUse", "apply_patch", "exec-2"), ["mutation t1.1"]);
    assert_eq!(codex("PostToolUse", "apply_patch", "exec-2"), ["step t1.1"]);
    assert_eq!(codex("PreToolUse", "apply_patch", "exec-3"), ["mutation t1.2"]);
}

#[test]
fn a_turn_without_an_end_is_interrupted_when_that_is_told_and_closed_by_the_next_when_not() {
    let mut s = Session::default();
    s.prompt("p1");
    s.before("p1", "Bash", "c1");
    assert_eq!(s.claude("SessionEnd", json!({"prompt_id": "p1"})), ["interrupt", "retain"]);
    s.prompt("p2");
    s.before("p2", "Bash", "c2");
    assert_eq!(s.prompt("p3"), ["turn-start t3"]);
    let codex = json!({"session_id": "s", "turn_id": "p3", "hook_event_name": "Interrupt"});
    assert_eq!(s.tell(Agent::Codex, &codex), ["interrupt"]);
    assert_eq!(s.tell(Agent::Codex, &codex), NOTHING);
}

#[test]
fn a_turn_that_goes_on_after_its_end_is_taken_up_again_and_begins_no_other() {
    let mut s = Session::default();
    s.prompt("p1");
    s.stop("p1", &json!([]));
    // Another hook forbade the stop.
    assert_eq!(s.before("p1", "Write", "c1"), ["auto t1", "reopen t1"]);
    assert_eq!(s.batch("p1", "Write", "c1"), ["step t1.1"]);
    assert_eq!(s.stop("p1", &json!([])), ["turn-end t1"]);
    let note = json!({"prompt_id": "p9", "prompt": "<task-notification>"});
    assert_eq!(s.claude("UserPromptSubmit", note), ["auto t1", "reopen t1"]);
    assert_eq!(s.stop("p9", &json!([])), ["turn-end t1"]);
}

#[test]
fn a_turn_whose_prompt_was_not_seen_begins_at_its_first_tool() {
    let mut s = Session::default();
    assert_eq!(s.before("p1", "Read", "c0"), NOTHING);
    assert_eq!(s.before("p1", "Write", "c1"), ["turn-start t1"]);
    assert_eq!(s.prompt("p1"), NOTHING);
    assert_eq!(s.batch("p1", "Write", "c1"), ["step t1.1"]);
}

#[test]
fn gemini_and_cline_have_neither_keys_nor_calls() {
    let mut s = Session::default();
    let mut gemini =
        |event: &str, more| s.tell(Agent::Gemini, &with(json!({"session_id": "s", "hook_event_name": event}), more));
    let prompt = json!({"prompt": "do it", "timestamp": "2026-11-30T18:34:32.855Z"});
    assert_eq!(gemini("BeforeAgent", json!({"prompt": "<session_context>\nx", "timestamp": "1"})), NOTHING);
    assert_eq!(gemini("BeforeAgent", prompt.clone()), ["turn-start t1"]);
    assert_eq!(gemini("BeforeAgent", prompt), NOTHING);
    assert_eq!(gemini("PreCompress", json!({"trigger": "auto"})), NOTHING);
    assert_eq!(gemini("BeforeTool", json!({"tool_name": "replace"})), NOTHING);
    assert_eq!(gemini("AfterTool", json!({"tool_name": "replace"})), ["step t1.1"]);
    assert_eq!(gemini("BeforeTool", json!({"tool_name": "glob"})), NOTHING);
    assert_eq!(gemini("AfterAgent", json!({})), ["turn-end t1"]);
    let mut s = Session::default();
    let mut cline = |event: &str, more| s.tell(Agent::Cline, &with(json!({"taskId": "s", "hookName": event}), more));
    assert_eq!(cline("prompt_submit", json!({"timestamp": 5})), ["turn-start t1"]);
    assert_eq!(cline("prompt_submit", json!({"timestamp": 5})), NOTHING);
    assert_eq!(cline("tool_call", json!({"tool_call": {"id": "c", "name": "write_to_file"}})), NOTHING);
    assert_eq!(cline("agent_abort", json!({})), ["interrupt"]);
}

#[test]
fn a_state_is_read_as_it_was_written_and_another_version_is_not() {
    let mut s = Session::default();
    s.prompt("p1");
    s.before("p1", "Write", "c1");
    let stored = s.state.write();
    let read = SessionState::read(&stored).unwrap();
    assert_eq!(read, SessionState { version: 1, ..s.state });
    let newer = String::from_utf8(stored).unwrap().replace("\"version\":1", "\"version\":2");
    assert_eq!(SessionState::read(newer.as_bytes()), None);
    assert_eq!(SessionState::read(b"{\"version\":1,\"later\":[1]}").map(|state| state.last_turn), Some(0));
    assert_eq!(SessionState::read(b"{"), None);
}

/// A report, in whatever order.
#[derive(Clone, Debug)]
enum Report {
    Prompt(u8),
    Note(u8),
    Before(u8, u8, Option<u8>, bool),
    Batch(u8, u8, Option<u8>),
    Stop(u8, bool),
    SubStart(u8),
    SubStop(u8),
    Interrupt(u8),
    End,
}

fn reports() -> impl Strategy<Value = Vec<Report>> {
    let key = || 0..4_u8;
    let agent = || proptest::option::of(0..2_u8);
    let one = prop_oneof![
        3 => key().prop_map(Report::Prompt),
        1 => (10..12_u8).prop_map(Report::Note),
        4 => (key(), 0..8_u8, agent(), any::<bool>()).prop_map(|(k, c, a, m)| Report::Before(k, c, a, m)),
        4 => (key(), 0..8_u8, agent()).prop_map(|(k, c, a)| Report::Batch(k, c, a)),
        3 => (key(), any::<bool>()).prop_map(|(k, w)| Report::Stop(k, w)),
        1 => (0..2_u8).prop_map(Report::SubStart),
        1 => (0..2_u8).prop_map(Report::SubStop),
        1 => key().prop_map(Report::Interrupt),
        1 => Just(Report::End),
    ];
    proptest::collection::vec(one, 1..40)
}

impl Report {
    fn event(&self) -> HookEvent {
        let mut event = HookEvent { session: Some("s".into()), ..HookEvent::blank(Agent::Claude, "E") };
        let key = |n: &u8| Some(format!("p{n}"));
        let sub = |n: &u8| Some(format!("a{n}"));
        let tool = |call: &u8, reads: bool| Tool {
            name: "T".into(),
            call: Some(format!("c{call}")),
            effect: if reads { Effect::Reads } else { Effect::Writes },
            background: false,
            paths: Vec::new(),
        };
        event.what = match self {
            Self::Prompt(k) => What::Prompt { key: key(k), once: None, synthetic: false },
            Self::Note(k) => What::Prompt { key: key(k), once: None, synthetic: true },
            Self::Before(_, call, _, reads) => What::BeforeTool(tool(call, *reads)),
            Self::Batch(_, call, _) => What::BatchEnd(vec![tool(call, false)]),
            Self::Stop(_, waiting) => What::Stop { waiting: *waiting },
            Self::SubStart(_) => What::SubagentStart,
            Self::SubStop(_) => What::SubagentStop,
            Self::Interrupt(_) => What::Interrupt,
            Self::End => What::SessionEnd,
        };
        match self {
            Self::Prompt(k) | Self::Note(k) | Self::Stop(k, _) | Self::Interrupt(k) => event.key = key(k),
            Self::Before(k, _, agent, _) | Self::Batch(k, _, agent) => {
                event.key = key(k);
                event.subagent = agent.as_ref().and_then(sub);
            }
            Self::SubStart(agent) | Self::SubStop(agent) => event.subagent = sub(agent),
            Self::End => {}
        }
        event
    }
}

proptest! {
    /// Whatever comes in whatever order: one start a prompt, an end only of an open turn with nothing at work, numbers
    /// that only grow, and no tool that may change something outside a turn.
    #[test]
    fn the_rules_hold_in_any_order(reports in reports()) {
        let mut state = SessionState::default();
        let (mut started, mut open, mut working) = (BTreeSet::new(), None::<u32>, BTreeSet::new());
        let mut waiting = false;
        for report in &reports {
            let event = report.event();
            match report {
                Report::SubStart(agent) if open.is_some() => drop(working.insert(*agent)),
                Report::SubStop(agent) => drop(working.remove(agent)),
                Report::Stop(_, told) => waiting = *told,
                _ => {}
            }
            let actions = step(&mut state, &event, &mut next);
            for action in &actions {
                match action {
                    Action::Save(capture) if capture.kind == PointKind::TurnStart => {
                        let key = event.key.clone().unwrap_or_default();
                        if let Some(call) = &capture.call {
                            prop_assert!(started.insert(call.clone()), "{key} begins twice: {reports:?}");
                        }
                        prop_assert!(capture.turn > 0 && state.last_turn == capture.turn);
                        open = Some(capture.turn);
                        working.clear();
                    }
                    Action::Save(capture) if capture.kind == PointKind::TurnEnd => {
                        prop_assert_eq!(open, Some(capture.turn));
                        let over = matches!(report, Report::End);
                        prop_assert!(over || working.is_empty(), "{:?} works: {:?}", working, reports);
                        prop_assert!(over || !waiting || !matches!(report, Report::Stop(..)));
                        open = None;
                    }
                    Action::Save(capture) => {
                        let reopens = actions.iter().any(|action| matches!(action, Action::Reopen(_)));
                        prop_assert!(open == Some(capture.turn) || reopens, "{reports:?}");
                    }
                    Action::Interrupt => {
                        prop_assert!(open.take().is_some());
                    }
                    Action::Reopen(turn) => {
                        prop_assert!(open.is_none());
                        open = Some(*turn);
                        working.clear();
                    }
                    Action::Retain => prop_assert!(matches!(report, Report::End)),
                }
            }
            prop_assert_eq!(state.turn.as_ref().map(|turn| turn.number), open);
            if let Report::Before(_, _, _, reads) = report {
                prop_assert!(*reads || open.is_some(), "a tool runs outside a turn: {:?}", reports);
                prop_assert!(!*reads || actions.is_empty());
            }
            // The same report again does nothing more.
            let stepless = state.clone();
            let again = step(&mut state, &event, &mut next);
            let saves = again.iter().any(|action| matches!(action, Action::Save(_)));
            prop_assert!(!saves, "{report:?} again: {again:?} after {reports:?}");
            if !matches!(report, Report::Before(..) | Report::Batch(..) | Report::Stop(..)) {
                prop_assert_eq!(&state, &stepless);
            }
            prop_assert_eq!(SessionState::read(&state.write()).map(|read| read.last_turn), Some(state.last_turn));
        }
    }
}
