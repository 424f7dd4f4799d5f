//! Cursor, whose editor also runs hooks of Claude's format.

use super::claude::{CALL, INPUT, NAME, batch, tool};
use super::reader::Reader;
use super::tools::Effect;
use super::{Agent, HookEvent, Tool, What};

pub(super) fn read(reader: &Reader<'_>) -> HookEvent {
    let name = reader.text(&["hook_event_name", "hookEventName"]).unwrap_or_default();
    let mut event = HookEvent::blank(Agent::Cursor, name);
    event.session = reader.text(&["conversation_id", "session_id"]).map(str::to_owned);
    event.key = reader.id(&["generation_id"]);
    event.subagent = reader.id(&["subagent_id", "agent_id"]);
    event.project = reader.first_path("workspace_roots");
    event.cwd = reader.path(&["cwd"]);
    event.transcript = reader.path(&["transcript_path"]);
    // Its own names begin with a small letter.
    event.what = match name.to_ascii_lowercase().as_str() {
        "sessionstart" => What::SessionStart,
        "sessionend" => What::SessionEnd,
        "beforesubmitprompt" | "userpromptsubmit" => {
            What::Prompt { key: event.key.clone(), once: None, synthetic: false }
        }
        "pretooluse" => What::BeforeTool(call(reader)),
        "beforeshellexecution" => What::BeforeTool(named(reader, "Shell", Effect::Runs)),
        "beforemcpexecution" => What::BeforeTool(named(reader, "mcp", Effect::Writes)),
        "posttooluse" | "posttoolusefailure" => What::AfterTool(call(reader)),
        "aftershellexecution" => What::AfterTool(named(reader, "Shell", Effect::Runs)),
        "aftermcpexecution" => What::AfterTool(named(reader, "mcp", Effect::Writes)),
        "afterfileedit" => What::AfterTool(named(reader, "edit", Effect::Writes)),
        "posttoolbatch" => What::BatchEnd(batch(reader, Agent::Cursor)),
        "stop" if reader.text(&["status"]) == Some("aborted") => What::Interrupt,
        "stop" => What::Stop { waiting: false },
        "subagentstart" => What::SubagentStart,
        "subagentstop" => What::SubagentStop,
        "precompact" => What::Compact,
        _ => What::Other,
    };
    event
}

fn call(reader: &Reader<'_>) -> Tool {
    tool(reader, Agent::Cursor)
}

/// A call that the event itself names.
fn named(reader: &Reader<'_>, name: &str, effect: Effect) -> Tool {
    let told = reader.has("tool_name").then(|| reader.tool(Agent::Cursor, &NAME, &CALL, &INPUT));
    Tool {
        name: told.as_ref().map_or_else(|| name.to_owned(), |tool| tool.name.clone()),
        call: reader.id(&CALL),
        effect,
        background: false,
        paths: reader.path(&["file_path"]).into_iter().collect(),
    }
}
