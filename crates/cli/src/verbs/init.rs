//! `rwd init`: hooks into the agents that are here, and the first point.
//!
//! Everything is read and worked out before anything is written: a file that cannot be understood stops all of it.

use std::time::Instant;

use checkpoint_core::{PointKind, SaveRequest, SessionKey};
use harness_adapter::install::{self as hooks, Agent, Content, Installed, Place, Scope};
use index_store::{DataError, Registry, Standing};

use crate::approve::Consent;
use crate::args::{InitArgs, ScopeChoice};
use crate::compose::{self, Opened};
use crate::config::Settings;
use crate::error::CliError;
use crate::install::{
    Action, Around, Change, Read, Receipt, apply, command, in_the_way, is_program, malformed, read, sweep,
};
use crate::output::Color;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, AgentEntry};
use crate::{exit, text};

/// What the first point is called.
const NAME: &str = "init";

/// What would be done.
struct Plan {
    agents: Vec<AgentEntry>,
    changes: Vec<Change>,
    warnings: Vec<String>,
}

pub(crate) fn init(run: &Run, args: &InitArgs) -> Result<u8, CliError> {
    let begun = Instant::now();
    if args.trust_codex && !run.world.harnesses().is_empty() {
        return Err(CliError::Agent {
            message: "a process of an agent may not say that hooks are trusted".to_owned(),
            hint: format!("type it in a terminal of your own: {}", run.typed.with(&[])),
        });
    }
    let around = Around::new(run)?;
    refuse_root(run, &around)?;
    let mut plan = plan(&around, args)?;
    let mut answer = wire::Initialised {
        root: wire::absolute(around.root()),
        registered: false,
        dry_run: args.dry_run,
        agents: Vec::new(),
        files: entries(&plan.changes),
        point: None,
        skipped: Vec::new(),
        warnings: std::mem::take(&mut plan.warnings),
        next: Vec::new(),
        ms: 0,
    };
    if args.dry_run {
        for agent in plan.agents.iter_mut().filter(|agent| agent.status != "present") {
            agent.status = "planned";
        }
        answer.agents = plan.agents;
        answer.next = vec![run.typed.with(&[]).replace(" --dry-run", "")];
        answer.ms = milliseconds(begun);
        run.out.answer(&answer, |answer| human(run, answer))?;
        return Ok(exit::OK);
    }
    consent(run, &plan.changes, &answer.files, "changing these files")?;
    let located = compose::find_or_register(run)?;
    answer.registered = located.standing == Standing::New;
    let settings = Settings::load(&run.world, Some(located.root()), run.global.force)?;
    if !plan.changes.is_empty() {
        let mut receipt = Receipt::open(located.data.path())?;
        let backups = apply(&plan.changes, &mut receipt)?;
        for (file, backup) in answer.files.iter_mut().zip(backups) {
            file.backup = backup.as_deref().map(wire::absolute);
        }
    }
    answer.warnings.extend(sweep(&around, located.data.path(), &plan.changes)?);
    let opened = compose::open(run, located, settings, &|_, _| Ok(super::asker(run, Consent::Nobody)))?;
    super::unfinished(run, &opened)?;
    if let Err(error) = first_point(&opened, &mut answer) {
        if !plan.changes.is_empty() {
            run.out.remark("the hooks are set up; the first point is missing");
        }
        return Err(error);
    }
    answer.agents = plan.agents;
    answer.next = next(run, &answer);
    answer.ms = milliseconds(begun);
    run.out.answer(&answer, |answer| human(run, answer))?;
    Ok(exit::OK)
}

fn milliseconds(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Refuses what could not be registered, before anything is written.
fn refuse_root(run: &Run, around: &Around<'_>) -> Result<(), CliError> {
    let data = compose::data_dir(run)?;
    let known = Registry::new(data.clone()).find(around.root())?;
    match known {
        Some(found) if found.standing == Standing::Moved && !run.global.force => {
            Err(CliError::Moved { root: found.root, before: found.workspace.root })
        }
        Some(_) => Ok(()),
        None if run.global.force => Ok(()),
        None => match index_store::refusal(around.root(), &data, run.world.home()) {
            Some(why) => Err(DataError::Refused { root: around.root().to_owned(), why }.into()),
            None => Ok(()),
        },
    }
}

/// Says what would be changed and asks, where something would be; every line of it for whoever wants to read that.
pub(super) fn consent(run: &Run, changes: &[Change], files: &[wire::FileEntry], what: &str) -> Result<(), CliError> {
    if files.is_empty() || run.global.yes {
        return Ok(());
    }
    for (change, file) in changes.iter().zip(files).filter(|_| !run.out.json) {
        run.out.note(&summary(change, &file.diff));
    }
    if !run.may_ask() {
        if !run.out.json {
            run.out.note(&format!("every line of it: {}", run.typed.with(&["--dry-run"])));
        }
        return Err(CliError::NeedsYes { what: what.to_owned(), declined: false });
    }
    loop {
        match run.out.ask("To read every line: d. Go on? [y/N] ").as_deref() {
            Some("y" | "yes") => return Ok(()),
            Some("d" | "diff") => files.iter().for_each(|file| run.out.note(&shown_diff(&file.diff))),
            _ => return Err(CliError::NeedsYes { what: what.to_owned(), declined: true }),
        }
    }
}

/// A change in a few lines: how much of which file, for what, and the command that would run from then on.
fn summary(change: &Change, diff: &str) -> String {
    let marked = |mark: char, head: &str| {
        let lines = diff.lines().skip(2).filter(|line| line.starts_with(mark) && !line.starts_with(head));
        crate::text::count(lines.count() as u64, "line")
    };
    let amount = match change.action() {
        Action::Create => marked('+', "+++ "),
        Action::Change => format!("{} added, {} removed", marked('+', "+++ "), marked('-', "--- ")),
        Action::Remove => marked('-', "--- "),
    };
    let mut out = format!(
        "{} {} ({}): {amount}",
        change.action().name(),
        wire::absolute(&change.path).line(),
        change.agent.name()
    );
    let hooks_in = |text: Option<&String>| {
        let text = text.map(String::as_str).unwrap_or_default();
        hooks::inspect(change.agent, text, "").unwrap_or_default().present
    };
    let (before, after) = (hooks_in(change.before.text.as_ref()), hooks_in(change.after.as_ref()));
    let names = |of: &[hooks::Present], without: &[hooks::Present]| {
        let mut names: Vec<&str> = of.iter().filter(|hook| !without.contains(hook)).map(|hook| &*hook.event).collect();
        names.dedup();
        names.join(", ")
    };
    let (new, gone) = (names(&after, &before), names(&before, &after));
    if !gone.is_empty() {
        put!(out, "\n  hooks that go: {}", wire::shown(&gone));
    }
    if !new.is_empty() {
        put!(out, "\n  hooks that come: {}", wire::shown(&new));
        let programs: std::collections::BTreeSet<&str> =
            after.iter().filter(|hook| !before.contains(hook)).filter_map(|hook| hook.program.as_deref()).collect();
        for command in programs.into_iter().filter_map(|program| command(program, change.agent).ok()) {
            put!(out, "\n  each runs: {}", wire::shown(&command));
        }
    }
    out
}

/// A change as people see it: settings may hold what would steer a terminal.
pub(super) fn shown_diff(diff: &str) -> String {
    diff.trim_end().split('\n').map(|line| wire::shown(line.trim_end_matches('\r'))).collect::<Vec<_>>().join("\n")
}

pub(super) fn entries(changes: &[Change]) -> Vec<wire::FileEntry> {
    let entry = |change: &Change| wire::FileEntry {
        agent: change.agent.name(),
        scope: change.scope.name(),
        file: wire::absolute(&change.path),
        action: change.action().name(),
        diff: change.diff(),
        backup: None,
    };
    changes.iter().map(entry).collect()
}

fn plan(around: &Around<'_>, args: &InitArgs) -> Result<Plan, CliError> {
    let named: Vec<Agent> = args.agent.iter().map(|choice| choice.0).collect();
    let mut plan = Plan { agents: Vec::new(), changes: Vec::new(), warnings: Vec::new() };
    for agent in Agent::ALL {
        let found = around.with(|around| hooks::detected(agent, around));
        if if named.is_empty() { found.is_some() } else { named.contains(&agent) } {
            let asked = args.scope.map(ScopeChoice::scope);
            let program = around.program()?;
            let mut entry = of_agent(around, agent, asked, &program, &mut plan)?;
            if found.is_none() {
                entry.notes.push("it was not found on this machine".to_owned());
            }
            entry.found = found.as_deref().map(wire::absolute);
            if agent == Agent::Codex {
                trust(around, args.trust_codex, &mut entry, &mut plan)?;
            }
            plan.agents.push(entry);
        }
    }
    if let (false, Some(other)) = (plan.agents.is_empty(), around.other_program()) {
        plan.warnings.push(format!("hooks run the rwd of PATH, {}, which is not this program", other.display()));
    }
    if args.trust_codex && !plan.agents.iter().any(|entry| entry.agent == Agent::Codex.name()) {
        plan.warnings.push("--trust-codex does nothing: Codex is not set up".to_owned());
    }
    Ok(plan)
}

/// Hooks of ours in the settings at a place.
pub(super) fn installed(agent: Agent, place: &Place, text: &str) -> Result<Installed, CliError> {
    let found = hooks::inspect(agent, text, &place.path.to_string_lossy());
    found.map_err(|mistake| malformed(&place.path, &mistake))
}

/// Plans one agent. What is complete in another scope is left to that, where no scope was asked for.
fn of_agent(
    around: &Around<'_>,
    agent: Agent,
    asked: Option<Scope>,
    program: &str,
    plan: &mut Plan,
) -> Result<AgentEntry, CliError> {
    let scope = agent.effective(asked.unwrap_or(Scope::Local));
    let entry = |scope: Scope, status| AgentEntry {
        agent: agent.name(),
        found: None,
        scope: scope.name(),
        status,
        notes: Vec::new(),
    };
    if asked.is_none() {
        for other in [Scope::Local, Scope::Project, Scope::User].into_iter().filter(|s| *s != scope) {
            if agent.effective(other) == other && complete(around, agent, other, program) {
                return Ok(entry(other, "present"));
            }
        }
    }
    let command = command(program, agent)?;
    let usable = |program: &str| around.usable(program);
    let mut status = "present";
    for place in around.with(|around| hooks::places(agent, scope, around)) {
        let now = read(&place.path, around.fence(scope))?;
        let (after, executable) = match &place.content {
            Content::Settings => {
                let before = now.text.as_deref().unwrap_or_default();
                let ours = !installed(agent, &place, before)?.present.is_empty();
                let after = hooks::install(agent, before, &command, &usable);
                let after = after.map_err(|mistake| malformed(&place.path, &mistake))?;
                if now.text.as_ref() != Some(&after) {
                    status = if ours { "repaired" } else { "installed" };
                }
                (after, false)
            }
            Content::Script { executable, text } => {
                let after = text(program);
                match &now.text {
                    Some(before) if !hooks::is_our_script(before) => {
                        return Err(in_the_way(
                            &place.path,
                            "is somebody else's, and there can be only one",
                            "move it away, or name the agents to go on with: --agent NAME",
                        ));
                    }
                    // A script that may not be run is none.
                    Some(before) if *before == after && (!executable || is_program(&now.real)) => {}
                    Some(_) => status = "repaired",
                    None if status == "present" => status = "installed",
                    None => {}
                }
                (after, *executable)
            }
        };
        if now.text.as_ref() != Some(&after) || executable && !is_program(&now.real) {
            let change =
                Change { agent, scope, path: place.path, before: now, after: Some(after), executable, keep: true };
            plan.changes.push(change);
        }
    }
    let mut entry = entry(scope, status);
    notes(around, agent, scope, asked, plan, &mut entry)?;
    Ok(entry)
}

/// True when an agent's hooks are all there in a scope and can run.
fn complete(around: &Around<'_>, agent: Agent, scope: Scope, program: &str) -> bool {
    let places = around.with(|around| hooks::places(agent, scope, around));
    !places.is_empty()
        && places.iter().all(|place| {
            let Ok(Read { text: Some(now), real }) = read(&place.path, around.fence(scope)) else { return false };
            match &place.content {
                Content::Settings => hooks::inspect(agent, &now, "")
                    .is_ok_and(|found| !found.disabled && found.is_complete(&|program| around.usable(program))),
                Content::Script { text, executable } => now == text(program) && (!executable || is_program(&real)),
            }
        })
}

/// What must be known or done by hand.
fn notes(
    around: &Around<'_>,
    agent: Agent,
    scope: Scope,
    asked: Option<Scope>,
    plan: &mut Plan,
    entry: &mut AgentEntry,
) -> Result<(), CliError> {
    if asked.is_none_or(|asked| asked == Scope::Local) && scope == Scope::User {
        entry.notes.push(format!(
            "{} has no settings for one person in one project: your own are used, so it is captured in every directory you start it in",
            agent.name()
        ));
    }
    if scope == Scope::Project {
        entry.notes.push("these settings are part of the project: git shows them as changed".to_owned());
    }
    match agent {
        Agent::Claude if scope == Scope::Local => ignore_locally(around, plan, entry)?,
        Agent::Opencode if entry.status != "present" => entry.notes.push(
            "opencode fetches @opencode-ai/plugin when it starts with any plugin; without the package registry each start waits over a minute: have it once online"
                .to_owned(),
        ),
        Agent::Codex if scope == Scope::Project => {
            entry.notes.push("Codex reads them only in a directory that you trust: start codex here once".to_owned());
        }
        Agent::Gemini if scope == Scope::Project => {
            entry.notes.push("Gemini CLI asks before it runs hooks of a project".to_owned());
        }
        _ => {}
    }
    for place in around.with(|around| hooks::places(agent, scope, around)) {
        if let (Content::Settings, Some(text)) = (&place.content, read(&place.path, around.fence(scope))?.text)
            && installed(agent, &place, &text)?.disabled
        {
            entry.notes.push(format!("hooks are turned off in {}", place.path.display()));
        }
    }
    Ok(())
}

/// What keeps git from showing a settings file of one person: it hides itself too.
pub(super) const HIDDEN: &str = "/.gitignore\n/settings.local.json\n";

/// The file that hides Claude Code's local settings from git.
pub(super) fn ignore_file(around: &Around<'_>) -> std::path::PathBuf {
    around.root().join(".claude/.gitignore")
}

/// Claude Code hides its local settings from git when it makes them itself. Where we make them, a file beside them does,
/// since nothing writes into `.git`. It hides them from captures too, so that no restore takes the hooks away.
fn ignore_locally(around: &Around<'_>, plan: &mut Plan, entry: &mut AgentEntry) -> Result<(), CliError> {
    let creates = plan.changes.iter().any(|change| change.agent == Agent::Claude && change.before.text.is_none());
    if !creates {
        return Ok(());
    }
    let path = ignore_file(around);
    let before = read(&path, Some(around.root()))?;
    if before.text.as_deref() == Some(HIDDEN) {
        return Ok(());
    }
    if before.text.is_some() {
        entry
            .notes
            .push(".claude/settings.local.json is new: if git shows it, add it to .claude/.gitignore".to_owned());
        return Ok(());
    }
    plan.changes.push(Change {
        agent: Agent::Claude,
        scope: Scope::Local,
        path,
        before,
        after: Some(HIDDEN.to_owned()),
        executable: false,
        keep: true,
    });
    Ok(())
}

/// Codex runs only hooks that were trusted: says so, or has it trust these.
fn trust(around: &Around<'_>, give: bool, entry: &mut AgentEntry, plan: &mut Plan) -> Result<(), CliError> {
    let scope = if entry.scope == Scope::Project.name() { Scope::Project } else { Scope::User };
    let Some(place) = around.with(|around| hooks::places(Agent::Codex, scope, around)).into_iter().next() else {
        return Ok(());
    };
    let planned = plan.changes.iter().find(|change| change.path == place.path).and_then(|change| change.after.clone());
    let text = match planned {
        Some(text) => text,
        None => read(&place.path, around.fence(scope))?.text.unwrap_or_default(),
    };
    let wanted = installed(Agent::Codex, &place, &text)?.trust;
    let path = around.codex_config();
    let config = read(&path, None)?;
    let now = config.text.clone().unwrap_or_default();
    let trusted = |entry: &hooks::TrustEntry| hooks::trust_state(&now, entry).is_ok_and(|t| t == hooks::Trust::Trusted);
    if wanted.iter().all(trusted) {
        return Ok(());
    }
    if !give {
        entry.notes.push(
            "Codex runs no hook that you have not trusted, and says nothing: start codex, type /hooks and trust these, or: rwd init --trust-codex"
                .to_owned(),
        );
        return Ok(());
    }
    let after = hooks::with_trust(&now, &wanted).map_err(|mistake| malformed(&path, &mistake))?;
    if entry.status == "present" {
        entry.status = "repaired";
    }
    plan.changes.push(Change {
        agent: Agent::Codex,
        scope: Scope::User,
        path,
        before: config,
        after: Some(after),
        executable: false,
        keep: true,
    });
    Ok(())
}

/// The pinned first point; the one of an earlier call stays.
fn first_point(opened: &Opened, answer: &mut wire::Initialised) -> Result<(), CliError> {
    let names = opened.index.names()?;
    let first = names.iter().find(|name| name.label == NAME);
    if let Some(point) = first.map(|name| opened.index.point(&name.point)).transpose()?.flatten() {
        let whole = point.snapshot.as_ref().filter(|_| point.damaged.is_none());
        if let Some(snapshot) = whole.filter(|_| point.incarnation == opened.located.incarnation()) {
            answer.point = Some(wire::FirstPoint {
                id: point.id.to_string(),
                name: NAME.to_owned(),
                created: false,
                files: point.files,
            });
            answer.skipped = wire::skipped(&opened.snapshots.skipped(snapshot)?);
            return Ok(());
        }
        // The directory was replaced, or the point is broken: it stays pinned under another name.
        let taken = |label: &String| names.iter().any(|name| name.label == *label);
        if let Some(label) = (1..=u32::MAX).map(|n| format!("{NAME}-{n}")).find(|label| !taken(label)) {
            opened.engine.name(&point, &label, None)?;
            answer.warnings.push(format!("the first point of an earlier time here is called {label} now"));
        }
    }
    let request = SaveRequest {
        name: Some(NAME.to_owned()),
        trigger: Some("rwd init".to_owned()),
        ..SaveRequest::of(SessionKey::local(), PointKind::Manual)
    };
    let saved = opened.engine.save(&request)?;
    answer.warnings.extend(saved.warnings);
    answer.warnings.extend(opened.settings.warnings.iter().cloned());
    answer.skipped = wire::skipped(&saved.skipped);
    answer.point = Some(wire::FirstPoint {
        id: saved.point.id.to_string(),
        name: NAME.to_owned(),
        created: saved.created,
        files: saved.point.files,
    });
    Ok(())
}

fn next(run: &Run, answer: &wire::Initialised) -> Vec<String> {
    if answer.agents.is_empty() {
        vec![run.typed.other(&["run"]) + " -- CMD", run.typed.other(&["init", "--agent", "NAME"])]
    } else {
        vec![run.typed.other(&[])]
    }
}

pub(super) fn agent_lines(run: &Run, out: &mut String, agents: &[AgentEntry], files: &[wire::FileEntry]) {
    for agent in agents {
        let name = run.out.paint(Color::Id, &format!("{:<9}", agent.agent));
        let status = if agent.status == "present" { "nothing to change" } else { agent.status };
        put!(out, "{name} {:<8} {status}\n", agent.scope);
        for file in files.iter().filter(|file| file.agent == agent.agent) {
            put!(out, "  {:<7} {}\n", file.action, file.file.line());
        }
        for note in &agent.notes {
            put!(out, "  note: {note}\n");
        }
    }
}

fn human(run: &Run, answer: &wire::Initialised) -> String {
    let mut out = String::new();
    if answer.registered {
        put!(out, "{} is a workspace of rwd from now on\n", answer.root.line());
    }
    if answer.agents.is_empty() {
        out.push_str("no agent was found on this machine\n");
    }
    agent_lines(run, &mut out, &answer.agents, &answer.files);
    if answer.dry_run {
        for file in &answer.files {
            put!(out, "\n{}\n", shown_diff(&file.diff));
        }
        put!(out, "nothing was changed; to do it: {}\n", answer.next.join(" "));
        return out;
    }
    if !answer.files.is_empty() {
        out.push_str("an agent that is running reads this when it is started again\n");
    }
    if answer.files.iter().any(|file| file.backup.is_some()) {
        out.push_str("earlier contents are kept; rwd uninstall puts them back\n");
    }
    for warning in &answer.warnings {
        put!(out, "warning: {}\n", wire::shown(warning));
    }
    text::reasons(
        &mut out,
        run.out.below(),
        &format!("{} left out:", text::count(answer.skipped.len() as u64, "path")),
        &answer.skipped,
    );
    if let Some(point) = &answer.point {
        let files = text::count(point.files, "file");
        let there = if point.created { "" } else { " is there already" };
        put!(out, "first point {}{there}, called {}: {files}\n", text::short(&point.id), point.name);
    }
    if answer.agents.is_empty() {
        put!(out, "to capture what a command does: {} -- CMD\n", run.typed.other(&["run"]));
    } else {
        put!(out, "to see the timeline, now and after the next turn: {}\n", run.typed.other(&[]));
    }
    out
}
