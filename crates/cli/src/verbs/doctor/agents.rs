//! What `rwd doctor` says of hooks: one check for each agent and scope that has any.

use std::path::Path;

use harness_adapter::install::{self as hooks, Agent, Content, Installed, Place, Scope, Trust};

use super::Doctor;
use crate::install::{Around, is_program, left, read};

/// What was found of an agent in one scope.
struct Found {
    /// Something of ours is there.
    ours: bool,
    problems: Vec<String>,
    /// What `rwd init` cannot put right.
    by_hand: Vec<String>,
}

impl Doctor<'_> {
    /// Looks at the settings of every agent. One without hooks of ours is not mentioned.
    pub(super) fn agents(&mut self) {
        // Without a home or a directory there is nothing to look for; the other checks say so.
        let Ok(around) = Around::new(self.run) else { return };
        let left: Vec<String> = left(&around).iter().map(|path| path.display().to_string()).collect();
        if !left.is_empty() {
            let detail = format!("left by an rwd that was killed: {}", left.join(", "));
            self.say("settings", "warning", detail, Some(self.run.typed.other(&["init"])));
        }
        for agent in Agent::ALL {
            let places = around.places(agent);
            for scope in [Scope::Local, Scope::Project, Scope::User] {
                let here: Vec<&Place> = places.iter().filter(|(s, _)| *s == scope).map(|(_, place)| place).collect();
                let Some(first) = here.first() else { continue };
                let found = look(&around, agent, scope, &here);
                if !found.ours {
                    continue;
                }
                let place = match here.as_slice() {
                    [one] => one.path.display().to_string(),
                    _ => first.path.parent().unwrap_or_else(|| Path::new("/")).display().to_string(),
                };
                if found.problems.is_empty() && found.by_hand.is_empty() {
                    self.ok(agent.name(), format!("all hooks are in {place}"));
                    continue;
                }
                let mut init = vec!["init", "--agent", agent.name()];
                if scope != agent.effective(Scope::Local) {
                    init.extend(["--scope", scope.name()]);
                }
                let hint = (!found.problems.is_empty()).then(|| self.run.typed.other(&init));
                let all: Vec<String> = found.problems.into_iter().chain(found.by_hand).collect();
                self.say(agent.name(), "warning", format!("{place}: {}", all.join("; ")), hint);
            }
        }
    }
}

fn look(around: &Around<'_>, agent: Agent, scope: Scope, places: &[&Place]) -> Found {
    let mut found = Found { ours: false, problems: Vec::new(), by_hand: Vec::new() };
    let mut missing = Vec::new();
    for place in places {
        let name = place.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (real, text) = match read(&place.path, around.fence(scope)) {
            Ok(now) => (now.real, now.text),
            Err(error) => {
                found.by_hand.push(error.to_string());
                continue;
            }
        };
        let Some(text) = text else {
            missing.push(name);
            continue;
        };
        match &place.content {
            Content::Settings => match hooks::inspect(agent, &text, &place.path.to_string_lossy()) {
                Ok(installed) => settings(around, agent, &installed, &mut found),
                // Settings that nobody can read, the agent included, may hold ours.
                Err(mistake) => {
                    found.ours |= text.contains(&format!("hook {}", agent.name()));
                    found.by_hand.push(mistake.to_string());
                }
            },
            Content::Script { text: made, executable } if hooks::is_our_script(&text) => {
                found.ours = true;
                if *executable && !is_program(&real) {
                    found.problems.push(format!("{name} may not be run"));
                }
                let program = hooks::program_of_script(&text);
                match program {
                    Some(program) if made(&program) == text => gone(around, &program, &mut found.problems),
                    _ => found.problems.push(format!("{name} was changed, or is of another version")),
                }
            }
            Content::Script { .. } => found.by_hand.push(format!("{name} is somebody else's")),
        }
    }
    if !missing.is_empty() {
        found.problems.push(format!("missing: {}", missing.join(", ")));
    }
    found.problems.sort();
    found.problems.dedup();
    found
}

/// Says when the program that hooks run cannot be run.
fn gone(around: &Around<'_>, program: &str, problems: &mut Vec<String>) {
    if !around.usable(program) {
        let where_ = if program.starts_with('/') { "not there" } else { "not on PATH" };
        problems.push(format!("{program} is {where_}: the hooks do nothing"));
    }
}

fn settings(around: &Around<'_>, agent: Agent, installed: &Installed, found: &mut Found) {
    if installed.present.is_empty() {
        return;
    }
    found.ours = true;
    if !installed.missing.is_empty() {
        found.problems.push(format!("no hook for {}", installed.missing.join(", ")));
    }
    for hook in &installed.present {
        match &hook.program {
            Some(program) => gone(around, program, &mut found.problems),
            None => found.problems.push(format!("the hook for {} runs another command than rwd wrote", hook.event)),
        }
        if hook.detached {
            let event = &hook.event;
            found.problems.push(format!("the hook for {event} is not waited for (async): its capture may be lost"));
        }
        if hook.narrowed {
            found.by_hand.push(format!("the hook for {} has a matcher: other tools are not captured", hook.event));
        }
    }
    if installed.disabled {
        found.by_hand.push("all hooks are turned off there".to_owned());
    }
    if agent == Agent::Codex {
        trust(around, installed, found);
    }
}

/// Codex leaves out what is not trusted and says nothing.
fn trust(around: &Around<'_>, installed: &Installed, found: &mut Found) {
    let path = around.codex_config();
    let config = match read(&path, None) {
        Ok(config) => config.text.unwrap_or_default(),
        Err(error) => return found.by_hand.push(error.to_string()),
    };
    let mut counts = [0u64; 2];
    for entry in &installed.trust {
        match hooks::trust_state(&config, entry) {
            Ok(Trust::Trusted) => {}
            Ok(Trust::Untrusted) => counts[0] += 1,
            Ok(Trust::Modified) => counts[1] += 1,
            Err(mistake) => {
                return found.by_hand.push(format!("{}:{}: {}", path.display(), mistake.line, mistake.what));
            }
        }
    }
    for (count, what) in counts.into_iter().zip(["not trusted", "changed since you trusted them"]) {
        if count > 0 {
            let hooks = crate::text::count(count, "hook");
            found.by_hand.push(format!("{hooks} {what}, so Codex does not run them: in codex, /hooks"));
        }
    }
    if hooks::hooks_are_off(&config) {
        found.by_hand.push("hooks are turned off in config.toml".to_owned());
    }
}
