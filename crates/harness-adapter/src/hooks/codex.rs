//! `OpenAI` Codex: Claude's format with turn ids and two events more.

use super::claude::{base, common};
use super::reader::Reader;
use super::{Agent, HookEvent, What};

pub(super) fn read(reader: &Reader<'_>) -> HookEvent {
    let name = reader.text(&["hook_event_name"]).unwrap_or_default();
    let mut event = base(reader, Agent::Codex, name);
    event.key = reader.id(&["turn_id"]);
    event.what = match name {
        "UserPromptSubmit" => What::Prompt { key: event.key.clone(), once: None, synthetic: false },
        "Stop" | "StopFailure" if event.subagent.is_none() => What::Stop { waiting: false },
        "Stop" | "StopFailure" => What::SubagentStop,
        "Interrupt" => What::Interrupt,
        _ => common(reader, Agent::Codex, name),
    };
    event
}
