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

use checkpoint_core::{Approver, Intent, IntentState, Point};

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
    if let Err(error) = opened.index.maintain() {
        tracing::warn!(%error, "the index was not maintained");
    }
    if let Err(error) = opened.engine.consolidate() {
        tracing::warn!(%error, "the store was not consolidated");
    }
}

/// The operation that `rwd recover` would settle. People are told on standard error.
fn unfinished(run: &Run, opened: &Opened) -> Result<Option<Intent>, CliError> {
    let open = opened.engine.unfinished()?;
    if let Some(intent) = &open {
        run.out.remark(&format!("warning: {}", unfinished_line(run, intent)));
    }
    Ok(open)
}

/// The operation, as answers name it.
fn operation_of(intent: Option<&Intent>) -> Option<String> {
    intent.map(|intent| intent.operation.to_string())
}

fn unfinished_line(run: &Run, intent: &Intent) -> String {
    let ways: Vec<String> = recover_ways(intent).iter().map(|way| run.typed.other(&["recover", way])).collect();
    format!("operation {} is unfinished: {}", intent.operation.short(), ways.join(" or "))
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
