//! Gemini CLI. Its calls and prompts have no ids.

use super::claude::{base, tool};
use super::reader::Reader;
use super::{Agent, HookEvent, What};

/// Events that only this harness has.
pub(super) const EVENTS: [&str; 8] = [
    "BeforeAgent",
    "AfterAgent",
    "BeforeTool",
    "AfterTool",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "PreCompress",
];

pub(super) fn read(reader: &Reader<'_>) -> HookEvent {
    let name = reader.text(&["hook_event_name"]).unwrap_or_default();
    let mut event = base(reader, Agent::Gemini, name);
    event.what = match name {
        "BeforeAgent" => {
            let prompt = reader.text(&["prompt"]).unwrap_or_default();
            let synthetic = prompt.trim_start().starts_with("<session_context>");
            What::Prompt { key: None, once: reader.id(&["timestamp"]), synthetic }
        }
        "BeforeTool" => What::BeforeTool(tool(reader, Agent::Gemini)),
        "AfterTool" => What::AfterTool(tool(reader, Agent::Gemini)),
        "AfterAgent" => What::Stop { waiting: false },
        "SessionStart" => What::SessionStart,
        "SessionEnd" => What::SessionEnd,
        // `PreCompress` comes before every call of the model, whether anything is compressed or not.
        _ => What::Other,
    };
    event
}
