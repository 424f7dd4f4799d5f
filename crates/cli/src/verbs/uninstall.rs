//! `rwd uninstall`: takes out what `rwd init` put in, and nothing else.
//!
//! A file that is still as `init` left it becomes what it was, byte for byte, from the copy that was kept; one that
//! changed since loses our entries alone.

use checkpoint_core::{DropWhich, EngineError};
use harness_adapter::install::{self as hooks, Agent, Content, Scope};

use super::init::{HIDDEN, agent_lines, consent, entries, ignore_file, installed, shown_diff};
use super::names;
use crate::args::{ScopeChoice, UninstallArgs};
use crate::compose;
use crate::error::CliError;
use crate::exit;
use crate::install::{Around, Change, Read, Receipt, apply, command, digest, malformed, read, remove_dirs, sweep};
use crate::run::Run;
use crate::text;
use crate::text::put;
use crate::wire::{self, AgentEntry};

pub(crate) fn uninstall(run: &Run, args: &UninstallArgs) -> Result<u8, CliError> {
    if let (Some(agent), false) = (run.world.harnesses().first(), args.dry_run) {
        return Err(CliError::Agent {
            message: format!("a process of an agent ({agent}) may not turn its own capture off"),
            hint: format!("type it in a terminal of your own: {}", run.typed.with(&[])),
        });
    }
    let around = Around::new(run)?;
    let data = compose::data_dir(run)?;
    let receipt = Receipt::look(data.path())?;
    let changes = changes(&around, args, &receipt)?;
    let mut answer = wire::Uninstalled {
        root: wire::absolute(around.root()),
        dry_run: args.dry_run,
        agents: agents(&changes, args.dry_run),
        files: entries(&changes),
        dropped: 0,
        warnings: Vec::new(),
    };
    if !args.dry_run {
        consent(run, &changes, &answer.files, "changing these files")?;
        let purge = if args.purge_data { Some(purge(run)?) } else { None };
        if !changes.is_empty() {
            let mut receipt = Receipt::open(data.path())?;
            let backups = apply(&changes, &mut receipt)?;
            for (file, backup) in answer.files.iter_mut().zip(backups) {
                file.backup = backup.as_deref().map(wire::absolute);
            }
        }
        if data.path().is_dir() {
            forget_what_is_gone(&around, args, data.path())?;
            answer.warnings.extend(sweep(&around, data.path(), &changes)?);
        }
        if let Some(dropped) = purge {
            answer.dropped = dropped;
        }
    }
    // The file that hides the settings from git is no hook.
    let hooks = |file: &String| !file.trim_end_matches('\'').ends_with("/.gitignore");
    for other in Receipt::look(data.path())?.local(around.root()).into_iter().filter(hooks) {
        answer.warnings.push(format!("hooks stay in {other}, which belongs to another workspace: rwd uninstall there"));
    }
    run.out.answer(&answer, |answer| human(run, answer, &data.path().display().to_string()))?;
    Ok(if answer.files.is_empty() && answer.dropped == 0 { exit::NOTHING } else { exit::OK })
}

/// What the receipt says of files that are not there: of an `init` or `uninstall` that was killed, directories are left.
fn forget_what_is_gone(around: &Around<'_>, args: &UninstallArgs, data: &std::path::Path) -> Result<(), CliError> {
    let named = |agent: Agent| args.agent.is_empty() || args.agent.iter().any(|choice| choice.0 == agent);
    let asked = args.scope.map(ScopeChoice::scope);
    let mut gone = Vec::new();
    let receipt = Receipt::look(data)?;
    for agent in Agent::ALL.into_iter().filter(|agent| named(*agent)) {
        let hidden = (agent == Agent::Claude).then(|| (Scope::Local, ignore_file(around)));
        let places = around.places(agent).into_iter().map(|(scope, place)| (scope, place.path));
        for (scope, path) in
            places.chain(hidden).filter(|(s, _)| asked.is_none_or(|asked| agent.effective(asked) == *s))
        {
            let Ok(Read { real, text: None }) = read(&path, around.fence(scope)) else { continue };
            if let Some(entry) = receipt.get(&real) {
                gone.push((real, entry.dirs));
            }
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    let mut receipt = Receipt::open(data)?;
    for (real, dirs) in gone {
        remove_dirs(&real, dirs);
        receipt.forget(&real);
    }
    receipt.save()
}

fn agents(changes: &[Change], dry_run: bool) -> Vec<AgentEntry> {
    let mut all: Vec<AgentEntry> = Vec::new();
    for change in changes {
        if all.iter().any(|entry| entry.agent == change.agent.name() && entry.scope == change.scope.name()) {
            continue;
        }
        all.push(AgentEntry {
            agent: change.agent.name(),
            found: None,
            scope: change.scope.name(),
            status: if dry_run { "planned" } else { "removed" },
            notes: Vec::new(),
        });
    }
    all
}

fn changes(around: &Around<'_>, args: &UninstallArgs, receipt: &Receipt) -> Result<Vec<Change>, CliError> {
    let named: Vec<Agent> = args.agent.iter().map(|choice| choice.0).collect();
    let asked = args.scope.map(ScopeChoice::scope);
    let mut changes = Vec::new();
    for agent in Agent::ALL.into_iter().filter(|agent| named.is_empty() || named.contains(agent)) {
        for (scope, place) in around.places(agent) {
            if asked.is_some_and(|asked| agent.effective(asked) != scope) {
                continue;
            }
            // What cannot be read here was not written by `init` either, unless it was damaged since: then it is said.
            let now = match read(&place.path, around.fence(scope)) {
                Ok(now) => now,
                Err(error) if receipt.get(&place.path).is_some() => return Err(error),
                Err(_) => continue,
            };
            let Some(text) = &now.text else { continue };
            let after = match &place.content {
                Content::Settings => match settings(agent, &place, &now, text, receipt)? {
                    Becomes::Same => continue,
                    Becomes::Gone => None,
                    Becomes::Text(after) => Some(after),
                },
                Content::Script { .. } if hooks::is_our_script(text) => None,
                Content::Script { .. } => continue,
            };
            if agent == Agent::Codex {
                changes.extend(distrust(around, &place, text, receipt)?);
            }
            if agent == Agent::Claude && scope == Scope::Local && after.is_none() {
                changes.extend(unhide(around, receipt)?);
            }
            changes.push(Change { agent, scope, path: place.path, before: now, after, executable: false, keep: false });
        }
    }
    Ok(changes)
}

/// What a file becomes.
enum Becomes {
    /// Nothing of ours is in it.
    Same,
    Gone,
    Text(String),
}

/// What a settings file becomes.
fn settings(
    agent: Agent,
    place: &hooks::Place,
    now: &Read,
    text: &str,
    receipt: &Receipt,
) -> Result<Becomes, CliError> {
    // Settings that nobody can read hold no hook that would run.
    let Ok(found) = hooks::inspect(agent, text, "") else {
        return match receipt.get(&now.real) {
            Some(_) => installed(agent, place, text).map(|_| Becomes::Same),
            None => Ok(Becomes::Same),
        };
    };
    if found.present.is_empty() {
        return Ok(Becomes::Same);
    }
    let entry = receipt.get(&now.real);
    if let Some(entry) = &entry
        && entry.after == digest(text)
    {
        if entry.before.is_none() {
            return Ok(Becomes::Gone);
        }
        let before = receipt.backup(entry);
        let clean = |text: &String| hooks::inspect(agent, text, "").is_ok_and(|found| found.present.is_empty());
        if let Some(before) = before.filter(clean) {
            return Ok(Becomes::Text(before));
        }
    }
    // The list of what was done may be lost. A file that holds what `init` makes where there is none, and nothing else, is
    // one that it made.
    let programs: std::collections::BTreeSet<_> = found.present.iter().map(|hook| hook.program.as_deref()).collect();
    if let (None, 1, Some(Some(program))) = (&entry, programs.len(), programs.first()) {
        let made = hooks::install(agent, "", &command(program, agent)?, &|_| true);
        if made.is_ok_and(|made| made == text) {
            return Ok(Becomes::Gone);
        }
    }
    let (after, empty) = hooks::uninstall(agent, text).map_err(|mistake| malformed(&place.path, &mistake))?;
    let created = entry.is_some_and(|entry| entry.created);
    Ok(if empty && created { Becomes::Gone } else { Becomes::Text(after) })
}

/// What `--trust-codex` wrote goes too.
fn distrust(
    around: &Around<'_>,
    place: &hooks::Place,
    text: &str,
    receipt: &Receipt,
) -> Result<Option<Change>, CliError> {
    let path = around.codex_config();
    let before = read(&path, None)?;
    let Some(now) = &before.text else { return Ok(None) };
    let without =
        |ours: &[hooks::TrustEntry]| hooks::without_trust(now, ours).map_err(|mistake| malformed(&path, &mistake));
    let after = match receipt.get(&before.real) {
        Some(entry) if entry.after == digest(now) => {
            if entry.before.is_none() {
                None
            } else {
                receipt.backup(&entry)
            }
        }
        Some(_) => Some(without(&installed(Agent::Codex, place, text)?.trust)?),
        // Nobody knows who said it; it is of hooks that go.
        None => {
            let mut ours = installed(Agent::Codex, place, text)?.trust;
            ours.retain(|entry| hooks::trust_state(now, entry).is_ok_and(|state| state == hooks::Trust::Trusted));
            if ours.is_empty() {
                return Ok(None);
            }
            Some(without(&ours)?).filter(|after| !after.trim().is_empty())
        }
    };
    let change =
        Change { agent: Agent::Codex, scope: Scope::User, path, before, after, executable: false, keep: false };
    Ok(Some(change))
}

/// What hid the local settings from git.
fn unhide(around: &Around<'_>, receipt: &Receipt) -> Result<Option<Change>, CliError> {
    let path = ignore_file(around);
    let before = read(&path, Some(around.root()))?;
    let ours = match receipt.get(&before.real) {
        Some(entry) => entry.before.is_none() && Some(entry.after) == before.text.as_deref().map(digest),
        // Nobody else writes this.
        None => before.text.as_deref() == Some(HIDDEN),
    };
    let change =
        Change { agent: Agent::Claude, scope: Scope::Local, path, before, after: None, executable: false, keep: false };
    Ok(ours.then_some(change))
}

/// Removes the points of this workspace.
fn purge(run: &Run) -> Result<u64, CliError> {
    let opened = super::open(run)?;
    names::confirm(run, "dropping all points of this workspace")?;
    let dropped = match opened.engine.drop_points(&DropWhich::All) {
        Ok(dropped) => dropped.len() as u64,
        Err(EngineError::Nothing { .. }) => 0,
        Err(error) => return Err(error.into()),
    };
    opened.engine.gc(false)?;
    Ok(dropped)
}

fn human(run: &Run, answer: &wire::Uninstalled, data: &str) -> String {
    let mut out = String::new();
    if answer.files.is_empty() {
        out.push_str("no hooks of rwd are installed here\n");
    }
    agent_lines(run, &mut out, &answer.agents, &answer.files);
    if answer.dry_run {
        for file in &answer.files {
            put!(out, "\n{}\n", shown_diff(&file.diff));
        }
        out.push_str("nothing was changed\n");
        return out;
    }
    for warning in &answer.warnings {
        put!(out, "note: {}\n", wire::shown(warning));
    }
    if answer.dropped > 0 {
        put!(out, "{} dropped\n", text::count(answer.dropped, "point"));
    }
    put!(out, "what rwd keeps of all workspaces is in {data}\n");
    out
}
