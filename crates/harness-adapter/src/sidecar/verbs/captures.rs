//! Turns, steps, captures.

use std::sync::Arc;

use checkpoint_core::{
    Beat, EngineError, PointKind, Position, SaveRequest, Saved, Seq, SessionKey, SessionLog, Step, Turn,
};

use super::super::problem::Failed;
use super::super::protocol::{
    self as wire, Capture, CaptureKind, Captured, Done, GapMade, Interrupted, Notice, NoticeKind, StepBegin, StepEnd,
    TurnBegin, TurnEnd, TurnInterrupt, skipped,
};
use super::super::server::locked;
use super::super::shape::{consistency, word};
use super::{Needs, Place, Scene};
use crate::told;

fn counted(what: &str, number: u32) -> Result<u32, Failed> {
    if number == 0 { Err(Failed::params(format!("{what}s are counted from 1"))) } else { Ok(number) }
}

fn position(given: Option<wire::Position>) -> Option<Position> {
    given.map(|given| Position { seq: Seq(given.ordinal), anchor: given.anchor, prefix: None })
}

fn heard(at: Place<'_>, session: &SessionKey, position: Option<&wire::Position>, beat: Beat) {
    if let Some(position) = position {
        at.state.logs.heard(session, Seq(position.ordinal), beat);
    }
}

pub(super) fn turn_begin(at: Place<'_>, asked: TurnBegin) -> Result<Captured, Failed> {
    let turn = Turn(counted("turn", asked.turn)?);
    let key = at.session(&asked.session)?.key.clone();
    heard(at, &key, asked.position.as_ref(), Beat::TurnStart(turn));
    let process = locked(&at.state.process).clone();
    let request = SaveRequest {
        turn: Some(turn),
        position: position(asked.position),
        process,
        ..SaveRequest::of(key, PointKind::TurnStart)
    };
    // A turn has its point whether or not this can be told, or its turns shown.
    if tell_of_restores(at, &asked.session).is_err() {
        tracing::warn!(session = asked.session, "what others restored could not be looked up");
    }
    take(at, &asked.session, request, asked.deadline_ms, asked.host_state)
}

/// What somebody else restored since the last turn is told once, before the turn begins: the model does not know of it.
fn tell_of_restores(at: Place<'_>, session: &str) -> Result<(), Failed> {
    let scene = at.scene(session, Needs::default())?;
    let index = scene.engine.index();
    let mut seen = locked(&scene.open.seen);
    let newest = index.newest()?.0;
    if let Some(text) = seen.map(|seen| told::since(index, seen, &scene.open.key)).transpose()?.flatten() {
        at.call.peer.tell(&Notice { session: Some(session.to_owned()), text, kind: NoticeKind::Restored });
    }
    *seen = Some(newest);
    Ok(())
}

pub(super) fn turn_end(at: Place<'_>, asked: TurnEnd) -> Result<Captured, Failed> {
    let turn = Turn(counted("turn", asked.turn)?);
    let key = at.session(&asked.session)?.key.clone();
    heard(at, &key, asked.position.as_ref(), Beat::TurnEnd(turn));
    let position = position(asked.position).map(|position| {
        // Without it less is checked when the conversation is cut there.
        let prefix = at.state.logs.prefix_digest(&key, position.seq).ok();
        Position { prefix, ..position }
    });
    let request =
        SaveRequest { turn: Some(turn), position, trigger: asked.reason, ..SaveRequest::of(key, PointKind::TurnEnd) };
    let captured = take(at, &asked.session, request, asked.deadline_ms, asked.host_state)?;
    if show_turns(at, &asked.session).is_err() {
        tracing::warn!(session = asked.session, "the turns are not shown as files");
    }
    Ok(captured)
}

/// After the answer the turns are shown as files, where the client wanted that.
fn show_turns(at: Place<'_>, session: &str) -> Result<(), Failed> {
    let Some(view) = at.session(session)?.view.clone() else { return Ok(()) };
    let scene = at.scene(session, Needs::default())?;
    let (workspace, rules, key) = (Arc::clone(&scene.workspace), scene.rules.clone(), scene.open.key.clone());
    let peer = Arc::clone(&at.call.peer);
    let name = scene.open.name.clone();
    at.call.later(move || {
        let engine = workspace.compose(&rules).build();
        if let Err(error) = view.update(&engine, &key, &workspace.objects())
            && view.is_news(&error)
        {
            let text = format!("the turns of {name} are not shown as files: {error}");
            peer.tell(&Notice { session: Some(name), text, kind: NoticeKind::Warning });
        }
    });
    Ok(())
}

pub(super) fn interrupt(at: Place<'_>, asked: &TurnInterrupt) -> Result<Interrupted, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    Ok(Interrupted { turn: scene.engine.interrupt(&scene.open.key)?.0 })
}

pub(super) fn step_begin(at: Place<'_>, asked: &StepBegin) -> Result<Done, Failed> {
    let open = at.session(&asked.session)?;
    let (turn, step) = (Turn(counted("turn", asked.turn)?), Step(counted("step", asked.step)?));
    heard(at, &open.key, asked.position.as_ref(), Beat::StepStart(turn, step));
    Ok(Done {})
}

pub(super) fn step_end(at: Place<'_>, asked: &StepEnd) -> Result<Done, Failed> {
    let open = at.session(&asked.session)?;
    let (turn, step) = (Turn(counted("turn", asked.turn)?), Step(counted("step", asked.step)?));
    heard(at, &open.key, asked.position.as_ref(), Beat::StepEnd(turn, step));
    Ok(Done {})
}

pub(super) fn capture(at: Place<'_>, asked: Capture) -> Result<Captured, Failed> {
    let kind = match asked.kind {
        CaptureKind::Step => PointKind::Step,
        CaptureKind::Mutation => PointKind::Mutation,
        CaptureKind::Auto => PointKind::Auto,
        CaptureKind::Manual => PointKind::Manual,
    };
    let request = SaveRequest {
        turn: asked.turn.map(|turn| counted("turn", turn)).transpose()?.map(Turn),
        step: asked.step.map(|step| counted("step", step)).transpose()?.map(Step),
        trigger: asked.trigger,
        call_id: asked.call_id,
        note: asked.note,
        name: asked.name,
        position: position(asked.position),
        besides_turns: asked.besides_turns,
        ..SaveRequest::of(at.session(&asked.session)?.key.clone(), kind)
    };
    take(at, &asked.session, request, asked.deadline_ms, asked.host_state)
}

fn take(
    at: Place<'_>,
    session: &str,
    request: SaveRequest,
    deadline_ms: Option<u64>,
    host_state: Option<String>,
) -> Result<Captured, Failed> {
    let scene = at.scene(session, Needs { host_state, budget: at.call.left(deadline_ms), ..Needs::default() })?;
    let request = SaveRequest { deadline: at.call.left(deadline_ms), ..request };
    match scene.engine.save(&request) {
        Ok(saved) => Ok(taken(at, &scene, saved)),
        Err(EngineError::Gap { point: Some(point), source }) if !at.call.is_cancelled() => {
            let recorded = scene.engine.index().point(&point)?;
            let why = source.innermost();
            Ok(Captured {
                id: None,
                tree: None,
                created: false,
                changed: 0,
                files: 0,
                skipped: Vec::new(),
                new_bytes: 0,
                consistency: "live".to_owned(),
                ms: at.call.ms(),
                warnings: scene.rules.warnings,
                gap: Some(GapMade {
                    id: Some(point.to_string()),
                    reason: recorded.map_or_else(|| "failed".to_owned(), |gap| word(&gap.gap)),
                    code: why.code().to_owned(),
                    message: why.to_string(),
                }),
            })
        }
        Err(EngineError::Gap { .. }) if at.call.is_cancelled() => Err(Failed::interrupted()),
        Err(error) => Err(at.failed(error)),
    }
}

fn taken(at: Place<'_>, scene: &Scene, saved: Saved) -> Captured {
    let Saved { point, created, skipped: left_out, warnings } = saved;
    let (workspace, rules, recorded) = (Arc::clone(&scene.workspace), scene.rules.clone(), point.clone());
    at.call.later(move || workspace.after(&rules, &recorded));
    Captured {
        id: Some(point.id.to_string()),
        tree: point.snapshot.map(|snapshot| snapshot.tree.to_string()),
        created,
        changed: if created { point.changed } else { 0 },
        files: point.files,
        skipped: skipped(&left_out),
        new_bytes: if created { point.new_bytes } else { 0 },
        consistency: consistency(point.consistency).to_owned(),
        ms: at.call.ms(),
        warnings: warnings.into_iter().chain(scene.rules.warnings.iter().cloned()).collect(),
        gap: None,
    }
}
