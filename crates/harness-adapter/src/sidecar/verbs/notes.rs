//! Marks, names of points, named points of conversations.

use checkpoint_core::{EngineError, ErrorKind, Seq, SessionError, SessionLog, Turn, check_name, uuid};

use super::super::problem::Failed;
use super::super::protocol::{
    Active, CompleteFold, HasActive, LatestMark, MarkFound, MarkSet, Marked, NameFind, NameKind, NameList, NameRewind,
    NameRewound, NameSet, NamedPoint, NamedPoints as Listed, PointName, PointNamed,
};
use super::super::shape;
use super::{Needs, Place, Scene};
use crate::named_points::{AUTO_ERROR, AUTO_TURN, DEFAULT_LIMIT, DurablePoints, NamedPoints, merge};

pub(super) fn mark(at: Place<'_>, asked: MarkSet) -> Result<Marked, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let turn = asked.turn.map(Turn);
    let mark = scene.engine.mark(&scene.open.key, asked.log_length, turn, asked.objective)?;
    Ok(Marked { id: mark.id, log_length: mark.log_length })
}

pub(super) fn latest_mark(at: Place<'_>, asked: &LatestMark) -> Result<MarkFound, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    Ok(MarkFound { mark: scene.engine.latest_mark(&scene.open.key)?.as_ref().map(shape::mark) })
}

pub(super) fn has_active(at: Place<'_>, asked: &HasActive) -> Result<Active, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    Ok(Active { active: scene.engine.has_active(&scene.open.key)? })
}

pub(super) fn complete_fold(at: Place<'_>, asked: &CompleteFold) -> Result<MarkFound, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let mark = scene.engine.complete_fold(&scene.open.key, asked.id)?;
    Ok(MarkFound { mark: Some(shape::mark(&mark)) })
}

pub(super) fn point_name(at: Place<'_>, asked: PointName) -> Result<PointNamed, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let label = asked.label;
    let Some(target) = asked.target else {
        scene.engine.unname(&label)?;
        return Ok(PointNamed { label, id: None });
    };
    check_name(&label).map_err(|why| EngineError::BadName { label: label.clone(), why })?;
    let found = scene.engine.find(Some(&scene.open.key), &target)?;
    let none = || EngineError::NotFound { given: target.clone(), choices: Vec::new() };
    let point = found.point.filter(|point| point.snapshot.is_some()).ok_or_else(none)?;
    scene.engine.name(&point, &label, asked.note)?;
    Ok(PointNamed { label, id: Some(point.id.to_string()) })
}

/// The named points of a scene's workspace.
fn with_points<T>(
    at: Place<'_>,
    scene: &Scene,
    limit: Option<u32>,
    job: impl FnOnce(&NamedPoints<'_>) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let file = DurablePoints::new(scene.workspace.root()).with_wait(scene.rules.lock_wait);
    let limit = limit.map_or(DEFAULT_LIMIT, |limit| limit as usize);
    job(&NamedPoints::new(&file, &*at.state.logs, &*at.state.host.clock).with_limit(limit))
}

pub(super) fn name_set(at: Place<'_>, asked: NameSet) -> Result<NamedPoint, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    at.flush(&asked.session)?;
    let label = match (asked.kind, asked.label) {
        (NameKind::Manual, Some(label)) => label,
        (NameKind::Manual, None) => return Err(Failed::params("a label is needed")),
        (_, Some(_)) => return Err(Failed::params("an automatic name has its own label")),
        (NameKind::AutoTurn, None) => AUTO_TURN.to_owned(),
        (NameKind::AutoError, None) => AUTO_ERROR.to_owned(),
    };
    let (line, boundary) = with_points(at, &scene, asked.limit, |points| {
        Ok(points.checkpoint(&scene.open.key, &label, asked.note.as_deref())?)
    })?;
    // The line is what counts; the index keeps with it what a line cannot hold.
    if !line.is_automatic()
        && let Err(error) = scene.engine.name_boundary(&scene.open.key, boundary, &line.label, line.note.clone())
    {
        tracing::warn!(%error, "the name is in the file alone");
    }
    Ok(shape::named(line))
}

pub(super) fn name_list(at: Place<'_>, asked: &NameList) -> Result<Listed, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let lines = with_points(at, &scene, None, |points| Ok(points.list()?))?;
    let all = merge(&lines, &scene.engine.index().names()?);
    Ok(Listed { points: all.into_iter().map(shape::named).collect() })
}

pub(super) fn name_find(at: Place<'_>, asked: &NameFind) -> Result<NamedPoint, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    at.flush(&asked.session)?;
    let (line, _) = with_points(at, &scene, None, |points| Ok(points.find(&scene.open.key, &asked.label)?))?;
    Ok(shape::named(line))
}

pub(super) fn name_rewind(at: Place<'_>, asked: &NameRewind) -> Result<NameRewound, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    at.flush(&asked.session)?;
    let key = &scene.open.key;
    let child = if let Some(child) = &asked.child {
        child.clone()
    } else {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| Failed::internal(error.to_string()))?;
        at.state.logs.name_child(key, &uuid(random))
    };
    if !at.state.logs.can_fork(key) {
        let error = SessionError::Unsupported;
        return Err(Failed::refused(error.code(), ErrorKind::Decision, error.to_string(), None));
    }
    let names = scene.engine.index().names()?;
    let (line, header) =
        with_points(at, &scene, None, |points| Ok(points.rewind(key, &asked.label, &child, &names)?))?;
    let seed = Seq(line.seq.0).0.saturating_add(1);
    scene.engine.register_session(checkpoint_core::Session {
        key: header.key.clone(),
        parent: Some(key.clone()),
        seed_length: Some(seed),
        subagent_of: None,
        turn: None,
        seen: at.state.host.clock.now(),
    })?;
    Ok(NameRewound { point: shape::named(line), child: header.key.id().to_owned() })
}
