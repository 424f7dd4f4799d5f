//! Claude Code, and others that run hooks of its format (Qwen Code, VS Code).

use serde_json::Value;

use super::reader::Reader;
use super::{Agent, HookEvent, Tool, What};

/// Where a call's name, id and input are.
pub(super) const NAME: [&str; 2] = ["tool_name", "toolName"];
pub(super) const CALL: [&str; 2] = ["tool_use_id", "toolUseId"];
pub(super) const INPUT: [&str; 2] = ["tool_input", "toolInput"];

pub(super) fn read(reader: &Reader<'_>) -> HookEvent {
    let name = reader.text(&["hook_event_name", "hookEventName"]).unwrap_or_default();
    let key = reader.id(&["prompt_id"]);
    let mut event = base(reader, Agent::Claude, name);
    event.key.clone_from(&key);
    event.what = match name {
        "UserPromptSubmit" => What::Prompt { key, once: reader.id(&["timestamp"]), synthetic: is_synthetic(reader) },
        "PostToolUseFailure" => What::AfterTool(tool(reader, Agent::Claude)),
        // A task that runs in the background outlives the stop; so does a sub-agent.
        "Stop" | "StopFailure" if event.subagent.is_none() => {
            What::Stop { waiting: !reader.list("background_tasks").is_empty() }
        }
        "Stop" | "StopFailure" => What::SubagentStop,
        _ => common(reader, Agent::Claude, name),
    };
    event
}

/// What Claude's format and Codex's have in common.
pub(super) fn base(reader: &Reader<'_>, agent: Agent, name: &str) -> HookEvent {
    let mut event = HookEvent::blank(agent, name);
    event.session = reader.text(&["session_id", "sessionId"]).map(str::to_owned);
    event.subagent = reader.id(&["agent_id"]);
    event.cwd = reader.path(&["cwd"]);
    event.transcript = reader.path(&["transcript_path"]);
    event
}

/// Events that are called the same in both formats.
pub(super) fn common(reader: &Reader<'_>, agent: Agent, name: &str) -> What {
    match name {
        "SessionStart" => What::SessionStart,
        "SessionEnd" => What::SessionEnd,
        "PreToolUse" => What::BeforeTool(tool(reader, agent)),
        "PostToolUse" => What::AfterTool(tool(reader, agent)),
        "PostToolBatch" => What::BatchEnd(batch(reader, agent)),
        "SubagentStart" => What::SubagentStart,
        "SubagentStop" => What::SubagentStop,
        "PreCompact" | "PostCompact" => What::Compact,
        _ => What::Other,
    }
}

pub(super) fn tool(reader: &Reader<'_>, agent: Agent) -> Tool {
    reader.tool(agent, &NAME, &CALL, &INPUT)
}

pub(super) fn batch(reader: &Reader<'_>, agent: Agent) -> Vec<Tool> {
    let calls = reader.list("tool_calls").iter().filter_map(Value::as_object);
    calls.map(|call| tool(&Reader::new(call, Vec::new()), agent)).collect()
}

/// The end of a background task is told to the model as a prompt that nobody wrote.
fn is_synthetic(reader: &Reader<'_>) -> bool {
    let by_person = reader.text(&["source"]).is_none_or(|source| matches!(source, "user" | "sdk"));
    !by_person || reader.text(&["prompt"]).is_some_and(|prompt| prompt.trim_start().starts_with("<task-notification>"))
}
