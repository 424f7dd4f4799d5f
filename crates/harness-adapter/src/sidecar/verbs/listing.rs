//! What there is, and what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use checkpoint_core::{
    Address, CaptureRequest, EngineError, Form, LockMode, OpKind, Operation, Ord, Point, PointKind, PointQuery,
    RelPath, SessionKey, Snapshot, Temporaries,
};

use super::super::problem::Failed;
use super::super::protocol::{ChangeEntry, Diff, Differences, List, Listed, TurnEntry, coded, paths};
use super::super::shape;
use super::{Needs, Place, Scene};

/// What [`Operation`]s of a session count for its −k.
const COUNTED: [OpKind; 3] = [OpKind::Restore, OpKind::Undo, OpKind::Redo];

/// The session's operations, oldest first: the k-th of them is its −k.
pub(super) fn operations(scene: &Scene, session: &SessionKey) -> Result<Vec<Operation>, Failed> {
    let mut all = scene.engine.index().operations(&COUNTED, None)?;
    all.retain(|op| op.session == *session);
    all.sort_by_key(|op| op.ord);
    Ok(all)
}

/// Which of its session's operations one is.
pub(super) fn nth(all: &[Operation], op: &Operation) -> Option<u32> {
    let place = all.iter().position(|other| other.id == op.id)?;
    u32::try_from(place + 1).ok()
}

pub(super) fn kinds(words: &[String]) -> Result<Vec<PointKind>, Failed> {
    let read = |word: &String| {
        serde_json::from_value::<PointKind>(serde_json::Value::String(word.clone()))
            .map_err(|_| Failed::params(format!("{word:?} is no kind of point")))
    };
    words.iter().map(read).collect()
}

pub(super) fn list(at: Place<'_>, asked: &List) -> Result<Listed, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let wanted = kinds(&asked.kinds)?;
    let session = &scene.open.key;
    let sessions = if asked.all_sessions { Vec::new() } else { vec![session.clone()] };
    let all = scene.engine.index().points(&PointQuery { sessions, ..PointQuery::default() })?;
    let (gaps, mut points): (Vec<Point>, Vec<Point>) = all.into_iter().partition(|p| p.kind == PointKind::Gap);
    points.retain(|point| {
        if wanted.is_empty() { point.listed && point.kind != PointKind::Guard } else { wanted.contains(&point.kind) }
    });
    points.sort_by_key(|point| point.ord);
    let shown = asked.limit.map_or(points.len(), |limit| (limit as usize).min(points.len()));
    let older = points.len() - shown;
    let points = points.split_off(older);
    let oldest = points.first().map_or(Ord(0), |point| point.ord);
    let names = scene.engine.index().names()?;
    let cuts =
        if asked.cuts { scene.engine.cuts(&points, (!asked.all_sessions).then_some(session))? } else { Vec::new() };
    let changed: BTreeMap<Ord, Vec<RelPath>> = if asked.changed_paths {
        let intervals = scene.engine.index().intervals(Ord(oldest.0.saturating_sub(1)))?;
        intervals.into_iter().map(|(ord, touches)| (ord, touches.into_iter().map(|t| t.path).collect())).collect()
    } else {
        BTreeMap::new()
    };
    let incarnation = scene.workspace.incarnation();
    let entry = |(n, point): (usize, &Point)| {
        let labels = names.iter().filter(|name| name.point == point.id).map(|name| name.label.clone()).collect();
        let mut entry = shape::point(point, labels, incarnation);
        let cut = cuts.get(n).copied().unwrap_or_default();
        (entry.cut_before, entry.cut_after) = (cut.before.map(|seq| seq.0), cut.after.map(|seq| seq.0));
        entry.changed_paths =
            asked.changed_paths.then(|| changed.get(&point.ord).map(|all| paths(all)).unwrap_or_default());
        entry
    };
    let operations = operations(&scene, session)?;
    let numbered = operations.iter().zip(1u32..).map(|(op, nth)| shape::operation(op, nth)).collect();
    let unprotected = scene.engine.unprotected()?;
    Ok(Listed {
        points: points.iter().enumerate().map(entry).collect(),
        older: older as u64,
        gaps: gaps.iter().filter(|gap| asked.limit.is_none() || gap.ord >= oldest).map(shape::gap).collect(),
        turns: if asked.turns { turns(&scene)? } else { Vec::new() },
        operations: numbered,
        unprotected_since: unprotected.as_ref().map(|gap| gap.at.0),
        unprotected_reason: unprotected.as_ref().map(|gap| shape::word(&gap.gap)),
        unfinished: scene.engine.unfinished()?.map(|intent| intent.operation.to_string()),
    })
}

fn turns(scene: &Scene) -> Result<Vec<TurnEntry>, Failed> {
    let records = crate::turn_records(&scene.engine, &scene.open.key).map_err(|error| match error {
        crate::ViewError::Engine(error) => Failed::from(error),
        other => Failed::internal(other.to_string()),
    })?;
    let entry = |record: crate::TurnRecord| TurnEntry {
        turn: record.turn,
        changed_count: record.changed.len() as u64,
        captured_at: record.captured_at,
        tree_hash: record.tree_hash,
    };
    Ok(records.into_iter().map(entry).collect())
}

pub(super) fn diff(at: Place<'_>, asked: &Diff) -> Result<Differences, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let (from, before) = state(at, &scene, &asked.from)?;
    let (to, after) = match &asked.to {
        Some(to) => state(at, &scene, to)?,
        None => (None, now(at, &scene)?),
    };
    let mut changes = Vec::new();
    let snapshots = scene.workspace.parts().snapshots;
    snapshots
        .diff(&before, &after, &mut |change| {
            // Directories that only hold others say nothing that these do not say.
            let is_dir = |state: &checkpoint_core::PathState| state.is_dir() || state.is_absent();
            if !(is_dir(&change.before) && is_dir(&change.after)) {
                let (path, path_bytes) = coded(change.path.as_bytes());
                let change = change.before.change_to(&change.after).to_owned();
                changes.push(ChangeEntry { path, path_bytes, change });
            }
            if at.call.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(EngineError::from)?;
    if at.call.is_cancelled() {
        return Err(Failed::interrupted());
    }
    Ok(Differences { from: from.unwrap_or_default(), to, changes })
}

fn state(at: Place<'_>, scene: &Scene, target: &str) -> Result<(Option<String>, Snapshot), Failed> {
    let address = Address::parse(target).map_err(EngineError::from)?;
    if address.form == Form::Now {
        return Ok((None, now(at, scene)?));
    }
    let found = scene.engine.find(Some(&scene.open.key), target)?;
    let none = || EngineError::NotFound { given: target.to_owned(), choices: Vec::new() };
    let point = found.point.ok_or_else(none)?;
    let gap =
        || EngineError::NotRestorable { point: point.id, why: "its capture did not happen".to_owned(), path: None };
    let snapshot = point.snapshot.ok_or_else(gap)?;
    Ok((Some(point.id.to_string()), snapshot))
}

/// The workspace as it is now, captured without writing anything.
fn now(at: Place<'_>, scene: &Scene) -> Result<Snapshot, Failed> {
    let parts = scene.workspace.parts();
    let _held = parts.lock.acquire(LockMode::Shared, scene.rules.lock_wait).map_err(EngineError::from)?;
    let newest = PointQuery { restorable: true, newest_first: true, limit: Some(1), ..PointQuery::default() };
    let latest = parts.index.points(&newest)?.pop();
    let held = parts.index.held()?;
    let not_held: BTreeSet<RelPath> = latest.iter().flat_map(|point| point.sensitive.iter().cloned()).collect();
    let temporaries: Vec<Vec<u8>> =
        parts.index.open_intent()?.iter().map(|i| Temporaries(i.operation).prefix()).collect();
    let captured = parts.snapshots.capture(&CaptureRequest {
        base: latest.and_then(|point| point.snapshot),
        held: &held,
        not_held: &not_held,
        include: &BTreeSet::new(),
        temporaries: &temporaries,
        policy: &scene.rules.capture,
        write: false,
        watched: false,
        deadline: None,
        progress: &**at.call,
    });
    captured.map(|captured| captured.snapshot).map_err(|error| at.failed(error.into()))
}
