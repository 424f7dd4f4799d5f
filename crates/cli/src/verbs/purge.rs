//! `rwd purge`: content that should never have been stored goes, from every point and from the store.

use std::sync::Arc;

use checkpoint_core::{EngineError, PurgePlan, PurgeRequest, RelPath, SessionKey};
use snapshot_git::Globs;

use super::names::confirm;
use crate::args::PurgeArgs;
use crate::compose::Opened;
use crate::error::CliError;
use crate::paths::Paths;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, shown};
use crate::{exit, text};

/// So many paths are named before a yes is asked for; `--dry-run` names all.
const NAMED: usize = 20;

pub(crate) fn purge(run: &Run, args: &PurgeArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let request = request(run, &opened, args)?;
    if args.dry_run {
        return dry(run, &opened, &request);
    }
    super::refuse_agent(run, &opened, "purge content")?;
    let plan = opened.engine.purge_plan(&request)?;
    let asked = if plan.is_empty() { None } else { Some(plan) };
    if let Some(plan) = &asked {
        if run.may_ask() && !run.global.yes {
            run.out.note(told(run, plan, NAMED).trim_end());
        }
        confirm(run, &format!("purging {} from {}", request.what, points(plan)))?;
    }
    run.stop.listen();
    let purged = match opened.engine.purge(&request, asked.as_ref()) {
        Ok(purged) => purged,
        Err(EngineError::Nothing { .. }) => {
            tell(run, &answer(&PurgePlan::default(), false), &request)?;
            return Ok(exit::NOTHING);
        }
        Err(error) => return Err(error.into()),
    };
    let reason = purged.unfinished.as_ref().map(ToString::to_string).or_else(|| {
        let damaged = "damaged packs had to stay: something that a point needs is missing and may be in them";
        let remaining = "something else that is kept has the very same content";
        let damaged = (purged.collected.left_damaged > 0).then_some(damaged);
        damaged.or_else(|| (purged.remaining > 0).then_some(remaining)).map(str::to_owned)
    });
    let answer = wire::Purged {
        op: Some(purged.operation.to_string()),
        dropped_objects: purged.collected.dropped,
        freed_bytes: purged.collected.freed_bytes,
        complete: reason.is_none(),
        reason,
        ..answer(&purged.plan, false)
    };
    tell(run, &answer, &request)?;
    if let Err(error) = opened.index.maintain() {
        tracing::warn!(%error, "the index was not maintained");
    }
    Ok(if answer.complete { exit::OK } else { exit::PARTIAL })
}

fn request(run: &Run, opened: &Opened, args: &PurgeArgs) -> Result<PurgeRequest, CliError> {
    let base = run.start()?;
    let find = Paths { root: opened.located.root(), base: &base };
    let paths = args.paths.iter().map(|path| find.find(path.as_os_str())).collect::<Result<Vec<RelPath>, _>>()?;
    let globs = Globs::new(&args.globs);
    if paths.is_empty() && globs.is_empty() {
        return Err(CliError::usage("no-paths", "an empty pattern matches nothing"));
    }
    let quoted = args.globs.iter().map(|glob| format!("{glob:?}"));
    let what: Vec<String> = paths.iter().map(|path| shown(&path.to_lossy())).chain(quoted).collect();
    let what = match &what[..] {
        [one] => one.clone(),
        many => format!("{} and {} more", many.first().map_or("", String::as_str), many.len().saturating_sub(1)),
    };
    let picks =
        move |path: &RelPath| paths.iter().any(|picked| path.is_at_or_below(picked)) || globs.covers(path.as_bytes());
    let session = opened.session(run)?.unwrap_or_else(SessionKey::local);
    Ok(PurgeRequest { what, picks: Arc::new(picks), session })
}

fn dry(run: &Run, opened: &Opened, request: &PurgeRequest) -> Result<u8, CliError> {
    super::unfinished(run, opened)?;
    let plan = opened.engine.purge_plan(request)?;
    tell(run, &answer(&plan, true), request)?;
    Ok(if plan.is_empty() { exit::NOTHING } else { exit::OK })
}

fn answer(plan: &PurgePlan, dry_run: bool) -> wire::Purged {
    wire::Purged {
        dry_run,
        op: None,
        paths: plan.paths.iter().map(Into::into).collect(),
        points: plan.points.iter().map(|(id, paths)| wire::PurgedPoint { id: id.to_string(), paths: *paths }).collect(),
        operations: plan.operations.iter().map(ToString::to_string).collect(),
        pending: plan.pending,
        dropped_objects: 0,
        freed_bytes: 0,
        complete: false,
        reason: None,
    }
}

fn points(plan: &PurgePlan) -> String {
    text::count(plan.points.len() as u64, "point")
}

/// What goes, for people: at most `most` paths.
fn told(run: &Run, plan: &PurgePlan, most: usize) -> String {
    let mut out = String::new();
    let below = run.out.below();
    for path in plan.paths.iter().take(most) {
        let entry = wire::paths(std::slice::from_ref(&path.path)).remove(0);
        let same = if path.same_content { "  the same content" } else { "" };
        put!(out, "  {}  in {}{same}\n", entry.line_from(below), text::count(path.points, "point"));
    }
    if plan.paths.len() > most {
        put!(out, "  and {} more: --dry-run names all\n", plan.paths.len() - most);
    }
    if !plan.paths.is_empty() {
        put!(out, "none of this can be restored afterwards; the rest of {} can\n", points(plan));
    }
    if !plan.operations.is_empty() {
        let count = text::count(plan.operations.len() as u64, "operation");
        put!(out, "the undo of {count} will leave these paths as they are\n");
    }
    if plan.pending {
        put!(out, "an earlier purge did not finish: its content goes now\n");
    }
    out
}

fn tell(run: &Run, answer: &wire::Purged, request: &PurgeRequest) -> Result<(), CliError> {
    run.out.answer(answer, |answer| {
        let mut out = String::new();
        if answer.paths.is_empty() && !answer.pending && answer.operations.is_empty() {
            put!(out, "no point holds {}\n", request.what);
            return out;
        }
        let count = |n: usize, what| text::count(n as u64, what);
        let would = if answer.dry_run { "would be " } else { "" };
        put!(out, "{} {would}purged from {}\n", count(answer.paths.len(), "path"), count(answer.points.len(), "point"));
        for path in &answer.paths {
            let same = if path.same_content { "  the same content" } else { "" };
            put!(out, "  {}  in {}{same}\n", shown(&path.path), text::count(path.points, "point"));
        }
        let present: Vec<&str> = answer.paths.iter().filter(|path| path.present).map(|path| &*path.path).collect();
        if !present.is_empty() {
            put!(out, "{} still in the workspace:", if present.len() == 1 { "one is" } else { "some are" });
            put!(out, " the next point stores it again unless a rule ignores it (.rwdignore)\n");
        }
        match &answer.reason {
            Some(reason) => {
                put!(out, "not finished, the content may still be stored: {}\n", shown(reason));
                put!(out, "to finish it: {}\n", run.typed.other(&["gc"]));
            }
            None if answer.complete => put!(out, "{} freed\n", text::size(answer.freed_bytes)),
            None => {}
        }
        out
    })
}
