//! What each verb does.

mod adopt;
mod care;
mod changes;
mod diff;
mod doctor;
pub(crate) mod hook;
mod import;
mod init;
mod log;
mod marks;
#[cfg(feature = "mcp")]
mod mcp;
mod names;
pub(crate) mod plan_text;
mod purge;
mod restore;
mod run;
mod save;
mod session;
mod settings;
mod show;
mod sidecar;
mod status;
mod talks;
mod uninstall;

use std::sync::Arc;
use std::time::Duration;

use checkpoint_core::{Approver, Engine, IndexStore, Intent, IntentState, LockError, LockMode, Point, SnapshotBackend};

use crate::approve::{Asker, Consent, StopOnYes};
use crate::args::Verb;
use crate::compose::{self, Located, Opened};
use crate::config::{MayRestore, Settings};
use crate::error::CliError;
use crate::run::Run;
use crate::{demo, exit, wire};

/// Runs a verb; gives its exit code.
pub(crate) fn dispatch(run: &Run, verb: Verb) -> Result<u8, CliError> {
    tracing::debug!(verb = verb.name(), "begun");
    match verb {
        Verb::Log(args) => log::log(run, &args),
        Verb::Save(args) => save::save(run, &args),
        Verb::Show(args) => show::show(run, &args),
        Verb::Diff(args) => diff::diff(run, &args),
        Verb::Preview(args) => restore::preview(run, &args),
        Verb::To(args) => restore::to(run, &args),
        Verb::Back(args) => restore::back(run, &args),
        Verb::Undo(args) => restore::undo(run, &args),
        Verb::Redo(args) => restore::redo(run, &args),
        Verb::Recover(args) => restore::recover(run, &args),
        Verb::Name(args) => names::name(run, &args),
        Verb::Drop(args) => names::drop(run, &args),
        Verb::Mark(args) => marks::mark(run, &args),
        Verb::Fold(args) => marks::fold(run, &args),
        Verb::Status => status::status(run),
        Verb::Du => care::du(run),
        Verb::Gc(args) => care::gc(run, &args),
        Verb::Purge(args) => purge::purge(run, &args),
        Verb::Doctor(args) => doctor::doctor(run, &args),
        Verb::Verify(args) => care::verify(run, &args),
        Verb::Init(args) => init::init(run, &args),
        Verb::Uninstall(args) => uninstall::uninstall(run, &args),
        Verb::Run(args) => run::run(run, &args),
        Verb::Import(args) => import::import(run, &args),
        Verb::Adopt => adopt::adopt(run),
        Verb::Session(verb) => session::session(run, &verb),
        Verb::Config(verb) => settings::config(run, &verb),
        Verb::Sidecar => sidecar::sidecar(run),
        #[cfg(feature = "mcp")]
        Verb::Mcp => mcp::mcp(run),
        #[cfg(not(feature = "mcp"))]
        Verb::Mcp => Err(CliError::Usage {
            code: "not-built",
            message: "this rwd was built without MCP".to_owned(),
            hint: Some("build it with: cargo install --path crates/cli --features mcp".to_owned()),
        }),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::args::cli_command(), "rwd", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            run.out.answer(&wire::Completions { shell: shell.to_string(), script }, |answer| answer.script.clone())?;
            Ok(exit::OK)
        }
        Verb::Hook(args) => Ok(hook::hook(run, &args)),
        Verb::Demo(args) => demo::demo(run, &args),
    }
}

/// Opens the workspace here for a verb that restores nothing.
fn open(run: &Run) -> Result<Opened, CliError> {
    open_located(run, compose::find(run)?)
}

/// The same where the workspace is known.
fn open_located(run: &Run, located: Located) -> Result<Opened, CliError> {
    let settings = Settings::load(&run.world, Some(located.root()), run.global.force)?;
    compose::open(run, located, settings, &|_, _| Ok(asker(run, Consent::Nobody)))
}

/// Housekeeping of index and store, for after the answer: a failure here takes nothing back from it.
fn tidy_up(opened: &Opened) {
    tidy(&opened.engine, &*opened.index);
}

fn tidy(engine: &Engine, index: &dyn IndexStore) {
    if let Err(error) = index.maintain() {
        tracing::warn!(%error, "the index was not maintained");
    }
    if let Err(error) = engine.consolidate() {
        tracing::warn!(%error, "the store was not consolidated");
    }
}

/// Retention, then housekeeping: what follows every capture, whoever asked for it. A failure here takes nothing back
/// from the answer.
fn settle(engine: &Engine, index: &dyn IndexStore, snapshots: &dyn SnapshotBackend, turn_ended: bool) {
    let prune = || -> Result<(), CliError> {
        if engine.prune_is_due(turn_ended)? {
            engine.prune(snapshots.usage()?.own_bytes)?;
        }
        Ok(())
    };
    if let Err(error) = prune() {
        tracing::warn!(%error, "retention did not run");
    }
    tidy(engine, index);
}

/// The operation that `rwd recover` would settle. People are told on standard error.
fn unfinished(run: &Run, opened: &Opened) -> Result<Option<Intent>, CliError> {
    let open = open_operation(opened)?;
    if let Some(open) = &open {
        run.out.remark(&format!("warning: {}", open.line(run)));
    }
    Ok(open.map(|open| open.intent))
}

/// An operation that has begun and not ended.
struct OpenOperation {
    intent: Intent,
    /// Another process holds the workspace: it is probably the one that does it, so nobody needs to settle it.
    busy: bool,
}

/// The operation that is open: interrupted, or under way in another process.
fn open_operation(opened: &Opened) -> Result<Option<OpenOperation>, CliError> {
    let Some(intent) = opened.engine.unfinished()? else { return Ok(None) };
    match opened.lock.acquire(LockMode::Shared, Duration::ZERO) {
        Err(LockError::Busy) => Ok(Some(OpenOperation { intent, busy: true })),
        // It may have ended in between; with the lock held none can.
        Ok(_held) => {
            let still = opened.engine.unfinished()?;
            Ok(still.map(|intent| OpenOperation { intent, busy: false }))
        }
        // Whoever may only read is told all the same.
        Err(_) => Ok(Some(OpenOperation { intent, busy: false })),
    }
}

impl OpenOperation {
    fn line(&self, run: &Run) -> String {
        let operation = self.intent.operation.short();
        if self.busy {
            return format!("operation {operation} is under way in another process; look again when it is done");
        }
        let ways: Vec<String> =
            recover_ways(&self.intent).iter().map(|way| run.typed.other(&["recover", way])).collect();
        format!("operation {operation} is unfinished: {}", ways.join(" or "))
    }
}

/// The operation, as answers name it.
fn operation_of(intent: Option<&Intent>) -> Option<String> {
    intent.map(|intent| intent.operation.to_string())
}

/// How an operation can be settled: once the host was asked for the child, only forwards.
fn recover_ways(intent: &Intent) -> &'static [&'static str] {
    if intent.state == IntentState::Forking { &["--finish"] } else { &["--finish", "--back"] }
}

fn asker(run: &Run, consent: Consent) -> Arc<dyn Approver> {
    Arc::new(Asker { out: Arc::clone(&run.out), consent, stop: StopOnYes(run.stop.clone()) })
}

/// Refuses what no agent may do by itself, whatever it says (design § 7): history is what it cannot make up for.
fn refuse_agent(run: &Run, opened: &Opened, what: &str) -> Result<(), CliError> {
    let Some(agent) = opened.agents.first() else { return Ok(()) };
    if opened.settings.may_restore() == MayRestore::Allow && what == "recover" {
        return Ok(());
    }
    Err(CliError::Agent {
        message: format!("a process of an agent ({agent}) may not {what} here"),
        hint: format!("type it in a terminal of your own: {}", run.typed.with(&[])),
    })
}

/// The point that a target means; `None` for now.
fn point_at(run: &Run, opened: &Opened, target: &str) -> Result<(Option<Point>, Vec<String>), CliError> {
    let session = opened.session(run)?;
    let resolved = opened.engine.find(session.as_ref(), target)?;
    let address = checkpoint_core::Address::parse(target)?;
    if resolved.point.is_none() && address.form != checkpoint_core::Form::Now {
        // The session's log alone knows the position: there is no state to look at.
        return Err(checkpoint_core::EngineError::NotFound { given: target.to_owned(), choices: Vec::new() }.into());
    }
    Ok((resolved.point, resolved.notes))
}

/// How to see what a turn did, where the target names the end of one: a point by itself says only what came after.
fn of_turn(run: &Run, opened: &Opened, target: &str) -> Option<String> {
    let checkpoint_core::Form::TurnEnd(turn) = checkpoint_core::Address::parse(target).ok()?.form else { return None };
    let session = opened.session(run).ok()?;
    let start = format!("{target}^");
    opened.engine.find(session.as_ref(), &start).ok()?.point?;
    let flag = session.map(|key| ["--session".to_owned(), key.to_string()]);
    let words: Vec<&str> = flag.iter().flatten().map(String::as_str).chain(["diff", &start, target]).collect();
    Some(format!("to see what turn {turn} did: {}\n", run.typed.other(&words)))
}

/// The point that a target means, where now will not do.
fn stored_point(run: &Run, opened: &Opened, target: &str) -> Result<(Point, Vec<String>), CliError> {
    let (point, notes) = point_at(run, opened, target)?;
    let point = point.ok_or_else(|| CliError::Usage {
        code: "bad-target",
        message: "`@` is now, which is no point".to_owned(),
        hint: Some(format!("to make one: {}", run.typed.other(&["save"]))),
    })?;
    Ok((point, notes))
}
