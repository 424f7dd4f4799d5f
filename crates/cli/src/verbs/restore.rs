//! `rwd preview`, `to`, `back`, `undo`, `redo`, `recover`.

use std::sync::Arc;

use checkpoint_core::{
    DriftPolicy, EngineError, Outcome, Preview, Recovery, RestorePolicy, RestoreRequest, ReverseRequest, Scope, Status,
};

use super::plan_text::{go_on, outcome_text, plan_text, preview_answer, restored, status_word};
use crate::approve::{Consent, consent};
use crate::args::{BackArgs, HowArgs, RecoverArgs, RedoArgs, ToArgs, UndoArgs, WhatArgs};
use crate::compose::{self, Opened};
use crate::config::{MayRestore, Settings};
use crate::error::CliError;
use crate::paths::Paths;
use crate::run::Run;
use crate::text::put;
use crate::wire;
use crate::{exit, text};

/// What is asked of the engine.
enum Wanted {
    Restore(RestoreRequest),
    Undo(ReverseRequest),
    Redo(ReverseRequest),
}

impl Wanted {
    fn policy(&mut self) -> &mut RestorePolicy {
        match self {
            Self::Restore(request) => &mut request.policy,
            Self::Undo(request) | Self::Redo(request) => &mut request.policy,
        }
    }

    fn has_plan(&self) -> bool {
        match self {
            Self::Restore(request) => request.plan.is_some(),
            Self::Undo(request) | Self::Redo(request) => request.plan.is_some(),
        }
    }

    fn run(&self, opened: &Opened) -> Result<Outcome, EngineError> {
        match self {
            Self::Restore(request) => opened.engine.restore(request),
            Self::Undo(request) => opened.engine.undo(request),
            Self::Redo(request) => opened.engine.redo(request),
        }
    }
}

pub(crate) fn preview(run: &Run, args: &ToArgs) -> Result<u8, CliError> {
    refuse_now(&args.target)?;
    let located = compose::find_for(run, args.what.scope())?;
    let opened = super::open_located(run, located)?;
    let request = restore_request(run, &opened, &args.target, &args.what)?;
    let preview = opened.engine.preview(&request)?;
    if request.plan.as_ref().is_some_and(|plan| *plan != preview.plan_id) {
        return Err(EngineError::Stale { paths: Vec::new() }.into());
    }
    let facts = opened.facts(run)?;
    // Last, since the plan may have waited for whoever was at work.
    let open = super::open_operation(&opened)?;
    if let Some(open) = &open {
        run.out.remark(&format!("warning: {}", open.line(run)));
    }
    let answer = preview_answer(run, &preview, &request.policy, &facts, open.as_ref());
    run.out.answer(&answer, |answer| {
        let mut out = plan_text(answer, run.out.below());
        for decision in &answer.decisions {
            put!(out, "{}\n", wire::shown(decision));
        }
        match &answer.apply {
            Some(apply) => put!(out, "to do it: {apply}\n"),
            None if answer.decisions.is_empty() => out.push_str("nothing to do\n"),
            None => {}
        }
        out
    })?;
    Ok(exit::OK)
}

pub(crate) fn to(run: &Run, args: &ToArgs) -> Result<u8, CliError> {
    refuse_now(&args.target)?;
    restore_to(run, "to", &|_, _| Ok(args.target.clone()), &args.what)
}

pub(crate) fn back(run: &Run, args: &BackArgs) -> Result<u8, CliError> {
    let target = |run: &Run, opened: &Opened| {
        let named = opened.session(run)?;
        let session = if named.is_none() { opened.session_of_logs(run, "t1")? } else { named };
        Ok(opened.engine.turn_back(session.as_ref(), args.turns)?)
    };
    restore_to(run, "back", &target, &args.what)
}

fn restore_to(
    run: &Run,
    verb: &'static str,
    target: &dyn Fn(&Run, &Opened) -> Result<String, CliError>,
    what: &WhatArgs,
) -> Result<u8, CliError> {
    let opened = open_to_write(run, what.how.plan.is_some(), what.scope())?;
    let target = match target(run, &opened) {
        Ok(target) => target,
        Err(error) => return nothing_or(run, verb, error),
    };
    let request = restore_request(run, &opened, &target, what)?;
    carry_out(run, verb, &opened, Wanted::Restore(request))
}

pub(crate) fn undo(run: &Run, args: &UndoArgs) -> Result<u8, CliError> {
    let opened = open_to_write(run, args.how.plan.is_some(), Scope::Default)?;
    let request = reverse_request(run, &opened, args.operation.clone(), &args.how)?;
    carry_out(run, "undo", &opened, Wanted::Undo(request))
}

pub(crate) fn redo(run: &Run, args: &RedoArgs) -> Result<u8, CliError> {
    let opened = open_to_write(run, args.how.plan.is_some(), Scope::Default)?;
    let request = reverse_request(run, &opened, None, &args.how)?;
    carry_out(run, "redo", &opened, Wanted::Redo(request))
}

/// Opens the workspace with an approver; an agent's process goes by `agent.may_restore`.
fn open_to_write(run: &Run, planned: bool, scope: Scope) -> Result<Opened, CliError> {
    let located = compose::find_for(run, scope)?;
    let settings = Settings::load(&run.world, Some(located.root()), run.global.force)?;
    compose::open(run, located, settings, &|settings, agents| {
        let by_agent = !agents.is_empty() || run.host.is_some();
        if by_agent && settings.may_restore() == MayRestore::Never {
            return Err(CliError::Agent {
                message: "agents may not restore here (agent.may_restore = never)".to_owned(),
                hint: format!("type it in a terminal of your own: {}", run.typed.with(&[])),
            });
        }
        let consent = consent(run, settings, planned, by_agent);
        if consent == Consent::Given {
            run.stop.listen();
        } else if let Some(host) = &run.host {
            return Ok(Arc::clone(host));
        }
        Ok(super::asker(run, consent))
    })
}

fn refuse_now(target: &str) -> Result<(), CliError> {
    let address = checkpoint_core::Address::parse(target)?;
    if address.form == checkpoint_core::Form::Now {
        return Err(CliError::usage("bad-target", "`@` is now: there is nowhere to go"));
    }
    Ok(())
}

fn restore_request(run: &Run, opened: &Opened, target: &str, what: &WhatArgs) -> Result<RestoreRequest, CliError> {
    let mut policy = policy(run, opened, &what.how)?;
    policy.exact = what.exact;
    let named = opened.session(run)?;
    let session = if named.is_none() { opened.session_of_logs(run, target)? } else { named };
    Ok(RestoreRequest {
        session,
        target: target.to_owned(),
        policy,
        scope: what.scope(),
        boundary: what.boundary(),
        plan: what.how.plan.clone(),
        force: run.global.force,
        adopt: what.adopt,
        files: opened.settings.files(),
        config: false,
    })
}

fn reverse_request(
    run: &Run,
    opened: &Opened,
    operation: Option<String>,
    how: &HowArgs,
) -> Result<ReverseRequest, CliError> {
    Ok(ReverseRequest {
        operation,
        session: opened.session(run)?,
        policy: policy(run, opened, how)?,
        plan: how.plan.clone(),
        force: run.global.force,
        config: false,
    })
}

fn policy(run: &Run, opened: &Opened, how: &HowArgs) -> Result<RestorePolicy, CliError> {
    let base = run.start()?;
    let paths = Paths { root: opened.located.root(), base: &base };
    let selection = run.out.with_stdin(|stdin| paths.all(&how.paths, stdin))?;
    let overwrite = how.overwrite.iter().map(|path| paths.find(path)).collect::<Result<_, _>>()?;
    Ok(RestorePolicy {
        exact: false,
        drift: how.drift(),
        overwrite,
        with_others: how.with_others,
        skip_blocked: how.skip_blocked,
        guard: how.guard().unwrap_or_else(|| opened.settings.guard()),
        selection,
    })
}

/// Runs it, asking on a terminal what to do with hand-made paths, and answers.
fn carry_out(run: &Run, verb: &'static str, opened: &Opened, mut wanted: Wanted) -> Result<u8, CliError> {
    let mut ended = wanted.run(opened);
    if let Err(EngineError::Undecided { preview }) = &ended
        && run.may_ask()
        && !run.global.yes
        && !wanted.has_plan()
        && let Some(drift) = ask_about_drift(run, preview)
    {
        let policy = wanted.policy();
        policy.drift = drift;
        policy.with_others |= drift == DriftPolicy::Overwrite;
        ended = wanted.run(opened);
    }
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(EngineError::NotApproved { declined: false, preview })
            if !opened.agents.is_empty() || run.host.is_some() =>
        {
            return Err(CliError::Agent {
                message: format!(
                    "{} would be written or removed, which an agent may not decide here",
                    touched(&preview)
                ),
                hint: format!(
                    "type it in a terminal of your own: {}",
                    run.typed.with(&["--plan", &preview.plan_id, "--yes"])
                ),
            });
        }
        Err(engine) => {
            return nothing_or(run, verb, CliError::Planned { engine, facts: Box::new(opened.facts(run)?) });
        }
    };
    // What it came to be: going to an operation's guard is its undo, and the undo of an undo is a redo.
    let done = outcome.operation.map(|op| opened.index.operation(&op)).transpose()?.flatten();
    let answer = restored(run, &outcome, done.as_ref());
    let ended = run.out.answer_as(verb, &answer, |answer| outcome_text(run, answer, &outcome, done.as_ref()));
    super::tidy_up(opened);
    ended?;
    Ok(match outcome.status {
        Status::Restored => exit::OK,
        Status::Partial => exit::PARTIAL,
        Status::Nothing => exit::NOTHING,
    })
}

fn touched(preview: &Preview) -> String {
    text::count(preview.plan.touched() as u64, "path")
}

/// Nothing to do is an ordinary answer with exit 6; everything else is an error.
fn nothing_or(run: &Run, verb: &str, error: CliError) -> Result<u8, CliError> {
    let Some(EngineError::Nothing { why, hint }) = error.engine() else { return Err(error) };
    // The engine's hints know nothing of the flags that lead here.
    let hint = hint.as_deref().map(|hint| run.typed.placed(hint));
    let notes = std::iter::once(why.clone()).chain(hint).collect();
    let answer = wire::Restored { status: "nothing", notes, ..wire::Restored::default() };
    run.out.answer_as(verb, &answer, |answer| answer.notes.join("\n") + "\n")?;
    Ok(exit::NOTHING)
}

/// Keep, overwrite or neither.
fn ask_about_drift(run: &Run, preview: &Preview) -> Option<DriftPolicy> {
    let mut out = String::new();
    text::paths(
        &mut out,
        run.out.below(),
        "changed outside this session since then:",
        &wire::paths(&preview.plan.undecided),
    );
    run.out.note(out.trim_end());
    let question = "[k]eep them as they are, [o]verwrite them (undo brings them back), or abort? [abort] ";
    match run.out.ask(question).as_deref() {
        Some("k" | "keep") => Some(DriftPolicy::Keep),
        Some("o" | "overwrite") => Some(DriftPolicy::Overwrite),
        _ => None,
    }
}

pub(crate) fn recover(run: &Run, args: &RecoverArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    super::refuse_agent(run, &opened, "recover")?;
    let (way, word) = match (args.finish, run.global.force) {
        (true, false) => (Recovery::Finish, "finish"),
        (true, true) => (Recovery::FinishFiles, "finish"),
        (false, _) => (Recovery::Back, "back"),
    };
    let outcome = match opened.engine.recover(way) {
        Ok(outcome) => outcome,
        Err(EngineError::Nothing { why, .. }) => {
            let answer =
                wire::Recovered { status: "nothing", way: word, notes: vec![why], ..wire::Recovered::default() };
            run.out.answer(&answer, |answer| answer.notes.join("\n") + "\n")?;
            return Ok(exit::NOTHING);
        }
        Err(error) => return Err(error.into()),
    };
    let done = outcome.operation.map(|op| opened.index.operation(&op)).transpose()?.flatten();
    let answer = wire::Recovered {
        op: outcome.operation.map(|op| op.to_string()),
        status: status_word(outcome.status),
        way: word,
        restored: wire::paths(&outcome.restored),
        removed: wire::paths(&outcome.removed),
        guard: outcome.guard.map(|point| point.to_string()),
        child_session_id: outcome.child.clone(),
        go_on: done.as_ref().zip(outcome.child.as_deref()).and_then(|(op, child)| go_on(op.session.harness(), child)),
        stored: wire::stored(&outcome.stored),
        notes: outcome.notes.clone(),
    };
    let ended = run.out.answer(&answer, |answer| {
        let done = if word == "finish" { "the operation is finished" } else { "the operation is taken back" };
        let mut out =
            format!("{done}: {}\n", text::count((answer.restored.len() + answer.removed.len()) as u64, "file"));
        for entry in &answer.stored {
            put!(out, "{}\n", entry.line(&run.typed));
        }
        for note in &answer.notes {
            put!(out, "{}\n", wire::shown(note));
        }
        match (&answer.go_on, &answer.child_session_id) {
            (Some(go_on), _) => put!(out, "to go on: {go_on}\n"),
            (None, Some(child)) => put!(out, "to go on, open this session in its harness: {child}\n"),
            (None, None) => {}
        }
        out
    });
    super::tidy_up(&opened);
    ended?;
    Ok(if outcome.status == Status::Partial { exit::PARTIAL } else { exit::OK })
}
