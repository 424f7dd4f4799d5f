//! opencode: what a plugin hands on, `{hook, sessionID, …}`, or its hooks' own `input` and `output`.

use super::reader::Reader;
use super::{Agent, HookEvent, Tool, What};

pub(super) fn read(reader: &Reader<'_>) -> HookEvent {
    let hook = reader.text(&["hook"]).unwrap_or_default();
    let kind = hook.strip_prefix("event.").or_else(|| reader.text(&["type"])).unwrap_or_default();
    let (input, output, properties) = (reader.inner("input"), reader.inner("output"), reader.inner("properties"));
    let (info, message) = (properties.inner("info"), output.inner("message"));
    let places = [reader, &input, &properties];
    let session = places.iter().find_map(|place| place.text(&["sessionID"]));
    let mut event = HookEvent::blank(Agent::Opencode, if hook.starts_with("event") { kind } else { hook });
    event.session = session.or_else(|| message.text(&["sessionID"])).or_else(|| info.text(&["id"])).map(str::to_owned);
    event.parent = reader.text(&["parentID"]).or_else(|| info.text(&["parentID"])).map(str::to_owned);
    event.project = reader.path(&["directory"]).or_else(|| info.path(&["directory"]));
    event.cwd.clone_from(&event.project);
    event.pid = reader.number("pid");
    let call = || -> Tool {
        let mut tool = if reader.has("tool") { reader } else { &input }.tool(
            Agent::Opencode,
            &["tool"],
            &["callID"],
            &["args", "input"],
        );
        if tool.paths.is_empty() {
            tool.paths = output.tool(Agent::Opencode, &["tool"], &["callID"], &["args"]).paths;
        }
        tool
    };
    event.what = match hook {
        "chat.message" => {
            let key = reader.id(&["messageID"]).or_else(|| message.id(&["id"])).or_else(|| input.id(&["messageID"]));
            event.key.clone_from(&key);
            What::Prompt { key, once: None, synthetic: false }
        }
        "tool.execute.before" => What::BeforeTool(call()),
        "tool.execute.after" => What::AfterTool(call()),
        _ if hook != "event" && !hook.starts_with("event.") => What::Other,
        // A task has a conversation of its own, which says whose it is only when it is made.
        _ => match kind {
            "session.created" if event.parent.is_some() => What::SubagentStart,
            "session.created" => What::SessionStart,
            "session.idle" => What::Stop { waiting: false },
            "session.deleted" => What::SessionEnd,
            "session.compacted" => What::Compact,
            _ => What::Other,
        },
    };
    event
}
