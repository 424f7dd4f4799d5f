//! Hooks as entries of a JSON settings file: Claude Code, Codex, Gemini CLI (an event holds groups of hooks) and Cursor
//! (an event holds hooks).

use super::codex_trust::{self, TrustEntry};
use super::command::{is_ours, program_of};
use super::edit::{self, Json};
use super::jsonc::{self, Kind, Mistake, Node, mistake};
use crate::agent::Agent;

/// How an agent writes hooks down.
struct Format {
    /// What the receiver needs to hear of, and nothing that comes for each word of an answer.
    events: &'static [&'static str],
    /// An event's list holds groups, and a group's `hooks` the hooks.
    groups: bool,
    /// The limit that is written, in the agent's own unit.
    timeout: Option<u64>,
    /// Gemini CLI shows and remembers hooks by name.
    named: bool,
    /// A member that the file must have.
    version: Option<u64>,
}

/// Seconds an agent waits for a hook at most. A capture gives up long before.
const LIMIT_S: u64 = 20;

impl Format {
    const fn of(agent: Agent) -> Option<Self> {
        // `Stop` waits for its hook: with `async` the agent ends first and kills it in the middle of the capture.
        Some(match agent {
            Agent::Claude => Self {
                events: &[
                    "UserPromptSubmit",
                    "PreToolUse",
                    "PostToolBatch",
                    "SubagentStart",
                    "SubagentStop",
                    "Stop",
                    "StopFailure",
                    "SessionEnd",
                ],
                groups: true,
                timeout: Some(LIMIT_S),
                named: false,
                version: None,
            },
            Agent::Codex => Self {
                events: &[
                    "UserPromptSubmit",
                    "PreToolUse",
                    "PostToolUse",
                    "SubagentStart",
                    "SubagentStop",
                    "Stop",
                    "Interrupt",
                    "SessionEnd",
                ],
                groups: true,
                timeout: Some(LIMIT_S),
                named: false,
                version: None,
            },
            Agent::Gemini => Self {
                events: &["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"],
                groups: true,
                // Milliseconds.
                timeout: Some(LIMIT_S * 1000),
                named: true,
                version: None,
            },
            Agent::Cursor => Self {
                events: &[
                    "beforeSubmitPrompt",
                    "preToolUse",
                    "afterFileEdit",
                    "afterShellExecution",
                    "subagentStart",
                    "subagentStop",
                    "stop",
                    "sessionEnd",
                ],
                groups: false,
                timeout: None,
                named: false,
                version: Some(1),
            },
            Agent::Opencode | Agent::Cline => return None,
        })
    }

    fn hook(&self, agent: Agent, event: &str, command: &str) -> Json {
        let mut members = Vec::new();
        if self.groups {
            members.push(("type", Json::Text("command".to_owned())));
        }
        if self.named {
            members.push(("name", Json::Text("rwd".to_owned())));
        }
        members.push(("command", Json::Text(command.to_owned())));
        let limit = codex_trust::limit(event).filter(|_| agent == Agent::Codex);
        if let Some(timeout) = limit.or(self.timeout) {
            members.push(("timeout", Json::Number(timeout)));
        }
        Json::Object(members)
    }

    /// An element of an event's list.
    fn element(&self, agent: Agent, event: &str, command: &str) -> Json {
        let hook = self.hook(agent, event, command);
        if self.groups { Json::Object(vec![("hooks", Json::Array(vec![hook]))]) } else { hook }
    }

    fn whole(&self, agent: Agent, command: &str) -> Json {
        let list = |event| Json::Array(vec![self.element(agent, event, command)]);
        let events = self.events.iter().map(|event| (*event, list(event))).collect();
        let version = self.version.map(|version| ("version", Json::Number(version)));
        Json::Object(version.into_iter().chain([("hooks", Json::Object(events))]).collect())
    }
}

/// A hook of ours in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Present {
    /// The event it is for.
    pub event: String,
    /// The program it runs, where its command is one that we write; else it was written or changed by hand.
    pub program: Option<String>,
    /// True when the agent does not wait for it.
    pub detached: bool,
    /// True for one that only some tools call.
    pub narrowed: bool,
}

/// What a file holds of ours.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Installed {
    /// Hooks of ours.
    pub present: Vec<Present>,
    /// Events without one.
    pub missing: Vec<&'static str>,
    /// True when the file turns all hooks off.
    pub disabled: bool,
    /// For Codex: what must be trusted, in the order of the events. `hooks_json` must have been given.
    pub trust: Vec<TrustEntry>,
}

impl Installed {
    /// True when every event has a hook of ours that runs as it should.
    pub fn is_complete(&self, usable: Usable<'_>) -> bool {
        let good = |hook: &Present| !hook.detached && hook.program.as_deref().is_some_and(usable);
        self.missing.is_empty() && !self.present.is_empty() && self.present.iter().all(good)
    }
}

/// Says whether a program that a hook names can be run.
pub type Usable<'a> = &'a dyn Fn(&str) -> bool;

/// One hook and the way to it.
struct Found<'a> {
    event: &'a str,
    /// Place in the event's list, and in its group's.
    at: (usize, usize),
    list: &'a Node,
    /// The element of the list that holds it.
    element: &'a Node,
    group: Option<(&'a Node, &'a Node)>,
    hook: &'a Node,
    command: &'a Node,
    text: &'a str,
}

fn typed<'a>(text: &str, node: &'a Node, what: &str, is: fn(&Kind) -> bool, wanted: &str) -> Result<&'a Node, Mistake> {
    if is(&node.kind) { Ok(node) } else { Err(mistake(text, node.span.start, format!("{what} must be {wanted}"))) }
}

fn object<'a>(text: &str, node: &'a Node, what: &str) -> Result<&'a Node, Mistake> {
    typed(text, node, what, |kind| matches!(kind, Kind::Object(_)), "an object")
}

fn array<'a>(text: &str, node: &'a Node, what: &str) -> Result<&'a Node, Mistake> {
    typed(text, node, what, |kind| matches!(kind, Kind::Array(_)), "a list")
}

/// The document's root, which must be an object; `None` for an empty file.
fn root_of(text: &str) -> Result<Option<Node>, Mistake> {
    let root = jsonc::parse(text)?;
    if let Some(root) = &root {
        object(text, root, "the file")?;
    }
    Ok(root)
}

fn hooks_of<'a>(text: &str, root: &'a Node) -> Result<Option<&'a Node>, Mistake> {
    root.get(text, "hooks")?.map(|hooks| object(text, hooks, "\"hooks\"")).transpose()
}

/// All hooks of ours, and the types on the way to them checked.
fn ours<'a>(text: &str, format: &Format, agent: Agent, hooks: &'a Node) -> Result<Vec<Found<'a>>, Mistake> {
    let Kind::Object(events) = &hooks.kind else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for member in events {
        // One that we use must be as we know it; others are looked through as far as they are alike.
        let used = format.events.contains(&member.key.as_str());
        if used {
            hooks.get(text, &member.key)?;
            array(text, &member.value, &format!("\"hooks.{}\"", member.key))?;
        }
        for (n, element) in member.value.children().into_iter().enumerate() {
            if used {
                object(text, element, &format!("each element of \"hooks.{}\"", member.key))?;
            }
            let (group, list) = if format.groups {
                let Some(inner) = element.get(text, "hooks")? else { continue };
                if used {
                    array(text, inner, &format!("\"hooks\" in an element of \"hooks.{}\"", member.key))?;
                }
                (Some((element, inner)), inner.children())
            } else {
                (None, vec![element])
            };
            for (m, hook) in list.into_iter().enumerate() {
                let Some(command) = hook.get(text, "command")? else { continue };
                let Some(words) = command.as_text().filter(|words| is_ours(words, agent)) else { continue };
                let found_one = Found {
                    event: &member.key,
                    at: (n, m),
                    list: &member.value,
                    element,
                    group,
                    hook,
                    command,
                    text: words,
                };
                found.push(found_one);
            }
        }
    }
    Ok(found)
}

fn flag(text: &str, node: Option<&Node>, key: &str) -> Result<Option<bool>, Mistake> {
    let Some(value) = node.map(|node| node.get(text, key)).transpose()?.flatten() else { return Ok(None) };
    Ok(match value.kind {
        Kind::Bool(value) => Some(value),
        _ => None,
    })
}

/// Looks for hooks of `agent` in the text of its settings. `hooks_json`: the path of the file as Codex has it.
///
/// # Errors
/// [`Mistake`] where the text is no JSON (comments and trailing commas are), names one of our keys twice, or has another
/// type on the way to our entries.
pub fn inspect(agent: Agent, text: &str, hooks_json: &str) -> Result<Installed, Mistake> {
    let Some(format) = Format::of(agent) else { return Ok(Installed::default()) };
    let mut installed = Installed::default();
    let root = root_of(text)?;
    if let Some(root) = &root {
        let config = root.get(text, "hooksConfig")?;
        installed.disabled = match agent {
            Agent::Claude => flag(text, Some(root), "disableAllHooks")? == Some(true),
            Agent::Gemini => flag(text, config, "enabled")? == Some(false),
            _ => false,
        };
        if let Some(hooks) = hooks_of(text, root)? {
            for found in ours(text, &format, agent, hooks)? {
                installed.present.push(Present {
                    event: found.event.to_owned(),
                    program: program_of(found.text, agent).map(str::to_owned),
                    detached: flag(text, Some(found.hook), "async")? == Some(true),
                    narrowed: matcher(text, &found)?.is_some(),
                });
                if agent == Agent::Codex {
                    installed.trust.push(trust(text, &found, hooks_json)?);
                }
            }
        }
    }
    let has = |event: &&&str| !installed.present.iter().any(|hook| hook.event == **event);
    installed.missing = format.events.iter().filter(has).copied().collect();
    Ok(installed)
}

fn matcher<'a>(text: &str, found: &Found<'a>) -> Result<Option<&'a str>, Mistake> {
    let Some(node) = found.group.map_or(found.hook, |(group, _)| group).get(text, "matcher")? else { return Ok(None) };
    Ok(node.as_text().map(String::as_str).filter(|matcher| !["", "*"].contains(matcher)))
}

fn trust(text: &str, found: &Found<'_>, hooks_json: &str) -> Result<TrustEntry, Mistake> {
    let timeout = found.hook.get(text, "timeout")?.and_then(|node| text.get(node.span.clone())?.parse().ok());
    let matcher = found.group.map(|(group, _)| group.get(text, "matcher")).transpose()?.flatten();
    let matcher = matcher.and_then(Node::as_text).map(String::as_str);
    Ok(TrustEntry::new(hooks_json, found.event, found.at, found.text, matcher, timeout.unwrap_or(600)))
}

/// The settings of `agent` with its hooks in them: `before` where nothing is missing. What was there of ours and works
/// stays as it is, also where `command` would name the program in another way.
///
/// # Errors
/// As of [`inspect`].
pub fn install(agent: Agent, before: &str, command: &str, usable: Usable<'_>) -> Result<String, Mistake> {
    let Some(format) = Format::of(agent) else { return Ok(before.to_owned()) };
    if root_of(before)?.is_none() {
        return Ok(format.whole(agent, command).file());
    }
    let mut text = repaired(agent, &format, before, command, usable)?;
    if let Some(version) = format.version
        && let Some(root) = root_of(&text)?
        && root.get(&text, "version")?.is_none()
    {
        text = edit::insert(&text, &root, &root, Some("version"), &Json::Number(version));
    }
    for event in inspect(agent, &text, "")?.missing {
        let Some(root) = root_of(&text)? else { break };
        let element = format.element(agent, event, command);
        text = match hooks_of(&text, &root)? {
            None => {
                let hooks = Json::Object(vec![(event, Json::Array(vec![element]))]);
                edit::insert(&text, &root, &root, Some("hooks"), &hooks)
            }
            Some(hooks) => match hooks.get(&text, event)? {
                None => edit::insert(&text, &root, hooks, Some(event), &Json::Array(vec![element])),
                Some(list) => edit::insert(&text, &root, list, None, &element),
            },
        };
    }
    Ok(text)
}

/// The text with hooks of ours that would not run, or not be waited for, put right.
fn repaired(agent: Agent, format: &Format, before: &str, command: &str, usable: Usable<'_>) -> Result<String, Mistake> {
    let mut text = before.to_owned();
    // Each turn changes one value and reads again, since places move.
    loop {
        let Some(root) = root_of(&text)? else { return Ok(text) };
        let Some(hooks) = hooks_of(&text, &root)? else { return Ok(text) };
        let mut next = None;
        for found in ours(&text, format, agent, hooks)? {
            let detached = found.hook.get(&text, "async")?.filter(|node| node.kind == Kind::Bool(true));
            if let Some(detached) = detached {
                next = Some(edit::replace(&text, detached, "false"));
                break;
            }
            if !program_of(found.text, agent).is_some_and(usable) && found.text != command {
                let quoted = serde_json::Value::from(command).to_string();
                next = Some(edit::replace(&text, found.command, &quoted));
                break;
            }
        }
        match next {
            Some(changed) => text = changed,
            None => return Ok(text),
        }
    }
}

/// True when no comment stands in `outer` around `inner`, which would go with it. What only looks like one counts too.
fn is_bare(text: &str, outer: &Node, inner: &Node) -> bool {
    let around = [outer.span.start..inner.span.start, inner.span.end..outer.span.end];
    let mut around = around.into_iter().filter_map(|range| text.get(range));
    !around.any(|part| part.contains("//") || part.contains("/*"))
}

/// The settings without hooks of ours, and what that leaves empty; and whether nothing else is in them.
///
/// # Errors
/// As of [`inspect`].
pub fn uninstall(agent: Agent, before: &str) -> Result<(String, bool), Mistake> {
    let Some(format) = Format::of(agent) else { return Ok((before.to_owned(), false)) };
    let mut text = before.to_owned();
    loop {
        let Some(root) = root_of(&text)? else { return Ok((text, true)) };
        let hooks = hooks_of(&text, &root)?;
        let all = hooks.map(|hooks| ours(&text, &format, agent, hooks)).transpose()?.unwrap_or_default();
        let (Some(hooks), Some(found)) = (hooks, all.first()) else {
            let rest =
                root.children().len() - usize::from(root.get(&text, "version")?.is_some() && format.version.is_some());
            let comments = text.contains("//") || text.contains("/*");
            return Ok((text, rest == 0 && !comments));
        };
        // The outermost thing that holds nothing else, no comment either, goes as a whole.
        let (n, m) = found.at;
        let member = |of: &Node, key: &str| match &of.kind {
            Kind::Object(members) => members.iter().position(|member| member.key == key),
            _ => None,
        };
        let within = |outer: &Node, inner: &Node| is_bare(&text, outer, inner);
        let event = member(hooks, found.event).unwrap_or_default();
        text = match found.group {
            Some((group, inner)) if inner.children().len() > 1 || !within(group, found.hook) => {
                edit::remove(&text, inner, m)
            }
            _ if found.list.children().len() > 1 || !within(found.list, found.element) => {
                edit::remove(&text, found.list, n)
            }
            _ if hooks.children().len() > 1 || !within(hooks, found.list) => edit::remove(&text, hooks, event),
            _ => edit::remove(&text, &root, member(&root, "hooks").unwrap_or_default()),
        };
    }
}

#[cfg(test)]
#[path = "hooks_file_tests.rs"]
mod tests;
