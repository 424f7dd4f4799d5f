//! Cline, in its newer and its older words.

use super::reader::Reader;
use super::{Agent, HookEvent, Tool, What};

pub(super) fn read(reader: &Reader<'_>) -> HookEvent {
    let name = reader.text(&["hookName", "hook_event_name"]).unwrap_or_default();
    let info = reader.inner("workspaceInfo");
    let mut event = HookEvent::blank(Agent::Cline, name);
    event.session = reader.text(&["taskId"]).map(str::to_owned);
    if event.session.is_none() {
        event.session = reader.inner("sessionContext").text(&["rootSessionId"]).map(str::to_owned);
    }
    if reader.has("parent_agent_id") {
        event.subagent = reader.id(&["agent_id"]);
    }
    event.project = reader.first_path("workspaceRoots").or_else(|| info.path(&["rootPath"]));
    event.cwd.clone_from(&event.project);
    event.what = match name {
        "prompt_submit" | "UserPromptSubmit" => What::Prompt { key: None, once: stamp(reader), synthetic: false },
        "tool_call" | "PreToolUse" => What::BeforeTool(tool(reader, &["tool_call", "preToolUse"])),
        "tool_result" | "PostToolUse" => What::AfterTool(tool(reader, &["tool_result", "tool_call", "postToolUse"])),
        "agent_start" | "agent_resume" | "TaskStart" | "TaskResume" => What::SessionStart,
        "agent_end" | "agent_error" | "TaskComplete" | "TaskError" if event.subagent.is_some() => What::SubagentStop,
        "agent_end" | "agent_error" | "TaskComplete" | "TaskError" => What::Stop { waiting: false },
        "agent_abort" | "TaskCancel" => What::Interrupt,
        "session_shutdown" | "SessionShutdown" => What::SessionEnd,
        "pre_compact" | "PreCompact" => What::Compact,
        _ => What::Other,
    };
    event
}

/// The time is a text in one version and a number in another.
fn stamp(reader: &Reader<'_>) -> Option<String> {
    reader.peek("timestamp").map(super::reader::short).or_else(|| reader.whole("timestamp").map(|ms| ms.to_string()))
}

fn tool(reader: &Reader<'_>, places: &[&str]) -> Tool {
    let inner = places.iter().find(|place| reader.has(place)).map(|place| reader.inner(place));
    let place = inner.as_ref().unwrap_or(reader);
    place.tool(Agent::Cline, &["name", "toolName", "tool"], &["id", "callId"], &["input", "parameters"])
}
