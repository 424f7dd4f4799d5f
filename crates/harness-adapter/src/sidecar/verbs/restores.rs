//! Going back and taking that back.

use checkpoint_core::{
    BoundaryRule, DriftPolicy, EngineError, ErrorKind, FilesWhere, GuardMode, Outcome, Recovery, RelPath,
    RestorePolicy, RestoreRequest, ReverseRequest, Scope, Session,
};

use super::super::host::MayRestore;
use super::super::problem::Failed;
use super::super::protocol::{
    BoundaryWord, DriftWord, FilesWord, GuardWord, PathEntry, Policy, Preview, PreviewAsk, Recover, Redo, Restore,
    Restored, ScopeWord, Undo, UndoPreview, Way,
};
use super::super::server::locked;
use super::super::shape;
use super::listing::{nth, operations};
use super::{Needs, Place, Scene};

fn selected(entries: &[PathEntry]) -> Result<Vec<RelPath>, Failed> {
    let path = |entry: &PathEntry| entry.to_path().map_err(|error| EngineError::from(error).into());
    entries.iter().map(path).collect()
}

fn policy(scene: &Scene, asked: &Policy, exact: bool) -> Result<RestorePolicy, Failed> {
    Ok(RestorePolicy {
        exact,
        drift: match asked.drift {
            DriftWord::Ask => DriftPolicy::Ask,
            DriftWord::Keep => DriftPolicy::Keep,
            DriftWord::Overwrite => DriftPolicy::Overwrite,
        },
        overwrite: selected(&asked.overwrite)?,
        with_others: asked.with_others,
        skip_blocked: asked.skip_blocked,
        guard: match asked.guard {
            None => scene.rules.guard,
            Some(GuardWord::Require) => GuardMode::Require,
            Some(GuardWord::Warn) => GuardMode::Warn,
            Some(GuardWord::Off) => GuardMode::Off,
        },
        selection: selected(&asked.paths)?,
    })
}

fn files(scene: &Scene, asked: &Policy) -> FilesWhere {
    if asked.files == Some(FilesWord::GitOnly) { FilesWhere::GitOnly } else { scene.rules.files }
}

const fn scope(word: ScopeWord) -> Scope {
    match word {
        ScopeWord::Default => Scope::Default,
        ScopeWord::Files => Scope::Files,
        ScopeWord::Chat => Scope::Chat,
        ScopeWord::Both => Scope::Both,
    }
}

/// Whether open turns are no obstacle: a call from inside its own turn waits for no one, but others' turns count.
fn force(scene: &Scene, inside_turn: bool) -> Result<bool, Failed> {
    let at_work = |session: &Session| {
        let open = session.turn.as_ref().is_some_and(|turn| turn.ended.is_none() && turn.closed.is_none());
        open && session.key != scene.open.key
    };
    Ok(inside_turn && !scene.engine.index().sessions()?.iter().any(at_work))
}

fn refuse_never(scene: &Scene) -> Result<(), Failed> {
    let (may, by_agent) = (scene.rules.may_restore, scene.rules.by_agent);
    if may == MayRestore::Never || (by_agent && may == MayRestore::Ask) {
        let message = format!("agents may not restore here by themselves (agent.may_restore = {})", may.name());
        let hint = Some("a person can: rwd to, on a terminal");
        return Err(Failed::refused("agent-refused", ErrorKind::Confirmation, message, hint));
    }
    Ok(())
}

fn request(scene: &Scene, asked: PreviewAsk) -> Result<RestoreRequest, Failed> {
    Ok(RestoreRequest {
        session: Some(scene.open.key.clone()),
        policy: policy(scene, &asked.policy, asked.policy.exact)?,
        files: files(scene, &asked.policy),
        target: asked.target,
        scope: scope(asked.scope),
        boundary: asked.boundary.map(|word| match word {
            BoundaryWord::Before => BoundaryRule::Before,
            BoundaryWord::After => BoundaryRule::After,
        }),
        plan: None,
        force: false,
        adopt: asked.adopt,
        config: asked.config,
    })
}

pub(super) fn preview(at: Place<'_>, asked: PreviewAsk) -> Result<Preview, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    if asked.scope != ScopeWord::Files {
        at.flush(&asked.session)?;
    }
    let request = request(&scene, asked)?;
    let preview = scene.engine.preview(&request).map_err(|error| at.failed(error))?;
    Ok(shape::preview(&preview))
}

pub(super) fn restore(at: Place<'_>, asked: Restore) -> Result<Restored, Failed> {
    let Restore { session, target, policy, scope, boundary, config, adopt, plan, confirmed, inside_turn, host_state } =
        asked;
    let scene = at.scene(&session, Needs { confirmed, host_state, budget: None })?;
    refuse_never(&scene)?;
    if scope != ScopeWord::Files {
        at.flush(&session)?;
    }
    let asked = PreviewAsk { session, target, policy, scope, boundary, config, adopt };
    let force = force(&scene, inside_turn)?;
    let request = RestoreRequest { plan, force, ..request(&scene, asked)? };
    ended(at, &scene, scene.engine.restore(&request))
}

/// The operation that is meant: as it is named, or the session's k-th.
fn operation(scene: &Scene, named: Option<String>, number: Option<u32>) -> Result<Option<String>, Failed> {
    let Some(number) = number else { return Ok(named) };
    if named.is_some() {
        return Err(Failed::params("operation and nth cannot both be given"));
    }
    let all = operations(scene, &scene.open.key)?;
    let found = (number as usize).checked_sub(1).and_then(|at| all.get(at));
    let none = || EngineError::NotFound {
        given: format!("operation {number} of session {}", scene.open.key),
        choices: (1..=all.len()).rev().take(10).map(|n| n.to_string()).collect(),
    };
    Ok(Some(found.ok_or_else(none)?.id.to_string()))
}

pub(super) fn undo_preview(at: Place<'_>, asked: UndoPreview) -> Result<Preview, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let request = ReverseRequest {
        operation: operation(&scene, asked.operation, asked.nth)?,
        session: Some(scene.open.key.clone()),
        policy: policy(&scene, &asked.policy, false)?,
        plan: None,
        force: false,
        config: asked.config,
    };
    let preview = scene.engine.preview_undo(&request).map_err(|error| at.failed(error))?;
    Ok(shape::preview(&preview))
}

pub(super) fn undo(at: Place<'_>, asked: Undo) -> Result<Restored, Failed> {
    let needs = Needs { confirmed: asked.confirmed, host_state: asked.host_state, budget: None };
    let scene = at.scene(&asked.session, needs)?;
    refuse_never(&scene)?;
    let request = ReverseRequest {
        operation: operation(&scene, asked.operation, asked.nth)?,
        session: Some(scene.open.key.clone()),
        policy: policy(&scene, &asked.policy, false)?,
        plan: asked.plan,
        force: force(&scene, asked.inside_turn)?,
        config: asked.config,
    };
    ended(at, &scene, scene.engine.undo(&request))
}

pub(super) fn redo(at: Place<'_>, asked: Redo) -> Result<Restored, Failed> {
    let needs = Needs { confirmed: asked.confirmed, host_state: asked.host_state, budget: None };
    let scene = at.scene(&asked.session, needs)?;
    refuse_never(&scene)?;
    let request = ReverseRequest {
        operation: None,
        session: Some(scene.open.key.clone()),
        policy: policy(&scene, &asked.policy, false)?,
        plan: None,
        force: force(&scene, asked.inside_turn)?,
        config: asked.config,
    };
    ended(at, &scene, scene.engine.redo(&request))
}

pub(super) fn recover(at: Place<'_>, asked: &Recover) -> Result<Restored, Failed> {
    let scene = at.scene(&asked.session, Needs { confirmed: true, ..Needs::default() })?;
    let way = match asked.way {
        Way::Finish => Recovery::Finish,
        Way::FinishFiles => Recovery::FinishFiles,
        Way::Back => Recovery::Back,
    };
    ended(at, &scene, scene.engine.recover(way))
}

/// Nothing to do is an ordinary answer; everything else that is no outcome is an error.
fn ended(at: Place<'_>, scene: &Scene, ended: Result<Outcome, EngineError>) -> Result<Restored, Failed> {
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(EngineError::Nothing { why, hint }) => return Ok(shape::nothing(&why, hint.as_ref())),
        Err(error) => return Err(at.failed(error)),
    };
    let index = scene.engine.index();
    // Whoever asked for it tells its own model, and a child is told in its conversation.
    *locked(&scene.open.seen) = Some(index.newest()?.0);
    let done = outcome.operation.map(|op| index.operation(&op)).transpose()?.flatten();
    let all = done.as_ref().map(|op| operations(scene, &op.session)).transpose()?.unwrap_or_default();
    let place = done.as_ref().and_then(|op| nth(&all, op));
    Ok(shape::restored(&outcome, done.as_ref(), place))
}
