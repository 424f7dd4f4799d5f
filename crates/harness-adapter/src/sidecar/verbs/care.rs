//! Dropping points, freeing space, looking after things.

use checkpoint_core::{DropWhich, EngineError, ErrorKind, OpState, PointId, PointKind, PointQuery};

use super::super::problem::Failed;
use super::super::protocol::{Collected, Doctor, Drop, Dropped, Examined, Gc};
use super::listing::kinds;
use super::{Needs, Place, Scene};

/// History is what an agent cannot make up for (design § 7).
fn refuse_agent(scene: &Scene, what: &str) -> Result<(), Failed> {
    if !scene.rules.by_agent {
        return Ok(());
    }
    let message = format!("a process of an agent may not {what} here");
    Err(Failed::refused("agent-refused", ErrorKind::Confirmation, message, Some("a person can, on a terminal")))
}

pub(super) fn drop(at: Place<'_>, asked: &Drop) -> Result<Dropped, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    if [!asked.ids.is_empty(), !asked.kinds.is_empty(), asked.all].iter().filter(|given| **given).count() != 1 {
        return Err(Failed::params("exactly one of ids, kinds and all must be given"));
    }
    let kinds = kinds(&asked.kinds)?;
    refuse_agent(&scene, "drop points")?;
    if !asked.confirmed {
        let message = "dropping points needs confirmation";
        let hint = Some("ask somebody, then confirmed = true");
        return Err(Failed::refused("confirmation-needed", ErrorKind::Confirmation, message, hint));
    }
    let id = |text: &String| PointId::parse(text).map_err(|error| Failed::params(error.to_string()));
    let named: Vec<PointId> = asked.ids.iter().map(id).collect::<Result<_, _>>()?;
    let sessions = if asked.all_sessions { Vec::new() } else { vec![scene.open.key.clone()] };
    let index = scene.engine.index();
    // Names and the guards of operations that can be undone are not in the way of the rest.
    let live: Vec<PointId> = index
        .operations(&[], None)?
        .into_iter()
        .filter(|op| !op.expired && op.state != OpState::RolledBack)
        .filter_map(|op| op.guard)
        .collect();
    let mut answer = Dropped::default();
    let mut ids = Vec::new();
    for point in index.points(&PointQuery { sessions, ..PointQuery::default() })? {
        let meant =
            named.contains(&point.id) || kinds.contains(&point.kind) || (asked.all && point.kind != PointKind::Guard);
        if !meant {
            continue;
        }
        if point.damaged.is_none() && live.contains(&point.id) {
            answer.kept.push(point.id.to_string());
        } else {
            ids.push(point.id);
        }
    }
    let known = |id: &&PointId| !ids.contains(id) && !answer.kept.contains(&id.to_string());
    if let Some(unknown) = named.iter().find(known) {
        return Err(EngineError::NotFound { given: unknown.to_string(), choices: Vec::new() }.into());
    }
    match scene.engine.drop_points(&DropWhich::Points(ids)) {
        Ok(dropped) => answer.dropped = dropped.iter().map(ToString::to_string).collect(),
        Err(EngineError::Nothing { .. }) => {}
        Err(error) => return Err(at.failed(error)),
    }
    Ok(answer)
}

pub(super) fn gc(at: Place<'_>, asked: &Gc) -> Result<Collected, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let mut dropped = Vec::new();
    if !asked.dry_run {
        refuse_agent(&scene, "collect garbage")?;
        let usage = scene.workspace.parts().snapshots.usage().map_err(EngineError::from)?;
        dropped = scene.engine.prune(usage.own_bytes)?;
    }
    let report = scene.engine.gc(asked.dry_run).map_err(|error| at.failed(error))?;
    Ok(Collected {
        dropped_points: dropped.iter().map(ToString::to_string).collect(),
        kept_objects: report.kept,
        dropped_objects: report.dropped,
        freed_bytes: report.freed_bytes,
    })
}

pub(super) fn doctor(at: Place<'_>, asked: &Doctor) -> Result<Examined, Failed> {
    let open = at.session(&asked.session)?;
    let checks = at.workspace(&open.dir, true)?.examine();
    Ok(Examined { ok: checks.iter().all(|check| check.status != "failed"), checks })
}
