//! The answers of a hook, as each harness takes them.
//!
//! Nothing said is the strictest answer: no output, or an empty object where a harness wants one. A field that a harness
//! does not know can make it drop the answer (Codex) or show it (Gemini), so each gets only what it documents, and text
//! that is no JSON is never printed: Claude Code would hand it to the model.

use serde_json::{Value, json};

use super::{Agent, HookEvent, What};

/// What a hook has to say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// To the person.
    pub user: Option<String>,
    /// To the model.
    pub model: Option<String>,
    /// Why the tool may not run: the one veto.
    pub deny: Option<String>,
}

/// True when the answer to this event can tell the model something, in a way that was seen to reach it.
pub const fn reaches_model(event: &HookEvent) -> bool {
    matches!(event.what, What::Prompt { .. }) && !matches!(event.agent, Agent::Cursor)
}

/// True when the answer to this event can tell the person something.
pub const fn reaches_user(event: &HookEvent) -> bool {
    match event.agent {
        Agent::Claude | Agent::Codex | Agent::Gemini => !matches!(
            event.what,
            What::SessionEnd
                | What::SessionStart
                | What::Interrupt
                | What::SubagentStart
                | What::SubagentStop
                | What::Other
        ),
        // These show nothing of a hook; what the model is told it can pass on.
        Agent::Opencode | Agent::Cline => reaches_model(event),
        Agent::Cursor => false,
    }
}

/// The answer on standard output; without any text nothing is to be printed.
pub fn render(event: &HookEvent, answer: &Answer) -> String {
    let user = answer.user.as_deref().filter(|_| reaches_user(event));
    let model = answer.model.as_deref().filter(|_| reaches_model(event));
    let deny = answer.deny.as_deref().filter(|_| matches!(event.what, What::BeforeTool(_)));
    let value = match event.agent {
        Agent::Claude | Agent::Codex => {
            let mut object = json!({});
            put(&mut object, "systemMessage", user.map(Value::from));
            let specific = match (deny, model) {
                (Some(deny), _) => Some(json!({
                    "hookEventName": event.name, "permissionDecision": "deny", "permissionDecisionReason": deny,
                })),
                (None, Some(model)) => Some(json!({"hookEventName": event.name, "additionalContext": model})),
                (None, None) => None,
            };
            put(&mut object, "hookSpecificOutput", specific);
            object
        }
        Agent::Gemini => {
            let mut object = json!({});
            put(&mut object, "systemMessage", user.map(Value::from));
            put(&mut object, "decision", deny.map(|_| "deny".into()));
            put(&mut object, "reason", deny.map(Value::from));
            let context = model.map(|model| json!({"hookEventName": event.name, "additionalContext": model}));
            put(&mut object, "hookSpecificOutput", context);
            object
        }
        Agent::Opencode => {
            let mut object = json!({});
            put(&mut object, "note", both(user, model).map(Value::from));
            put(&mut object, "deny", deny.map(Value::from));
            object
        }
        Agent::Cursor => match deny {
            Some(deny) => json!({"permission": "deny", "user_message": deny, "agent_message": deny}),
            None => json!({}),
        },
        Agent::Cline => {
            let mut object = json!({"cancel": deny.is_some()});
            put(&mut object, "errorMessage", deny.map(Value::from));
            put(&mut object, "contextModification", both(user, model).map(Value::from));
            object
        }
    };
    let silent = value.as_object().is_some_and(serde_json::Map::is_empty)
        && matches!(event.agent, Agent::Claude | Agent::Codex | Agent::Gemini);
    if silent { String::new() } else { format!("{value}\n") }
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
        object.insert(name.to_owned(), value);
    }
}

fn both(user: Option<&str>, model: Option<&str>) -> Option<String> {
    let texts: Vec<&str> = user.into_iter().chain(model).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
