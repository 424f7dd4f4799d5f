//! Opening sessions, and what is told of them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use checkpoint_core::{Seq, Session, SessionHeader, SessionKey, SessionLog};

use super::super::live_log::{LiveSession, beat};
use super::super::problem::Failed;
use super::super::protocol::{
    BeatEntry, Done, ForkRecord, SessionBeats, SessionClose, SessionOpen, SessionOpened, coded,
};
use super::super::server::{Open, locked};
use super::super::shape::word;
use super::{Needs, Place};
use crate::turn_view::{TurnView, view_dir};

fn key(harness: &str, id: &str) -> Result<SessionKey, Failed> {
    SessionKey::new(harness, id).map_err(|error| Failed::params(error.to_string()))
}

fn misfit(entry: &BeatEntry) -> Failed {
    Failed::params(format!("the beat at {} names no turn, or no step", entry.seq))
}

pub(super) fn open(at: Place<'_>, asked: &SessionOpen) -> Result<SessionOpened, Failed> {
    let [root] = asked.roots.as_slice() else {
        return Err(Failed::params("roots must hold one directory"));
    };
    let dir = Path::new(root);
    if !dir.is_absolute() {
        return Err(Failed::params(format!("{root:?} is not absolute")));
    }
    let session = key(&asked.harness, &asked.session)?;
    let parent = asked.parent.as_deref().map(|id| key(&asked.harness, id)).transpose()?;
    let subagent_of = asked.subagent_of.as_deref().map(|id| key(&asked.harness, id)).transpose()?;
    let told = asked.beats.iter().map(|entry| beat(entry).ok_or_else(|| misfit(entry)));
    let beats = told.collect::<Result<_, _>>()?;
    let view = match asked.view.as_deref().map(Path::new) {
        Some(dir) if !dir.is_absolute() => {
            return Err(Failed::params(format!("view {} is not absolute", dir.display())));
        }
        Some(dir) => Some(Arc::new(TurnView::new(view_dir(dir, &asked.session)))),
        None => None,
    };
    let workspace = at.workspace(dir, true)?;
    let header = SessionHeader {
        key: session.clone(),
        parent: parent.clone(),
        seed_length: asked.seed_length.unwrap_or_default(),
        cwd: dir.to_owned(),
        subagent: subagent_of.is_some(),
    };
    let files = at.state.host.workspaces.logs(&asked.harness, asked.home.as_deref().map(Path::new));
    at.state.logs.open(LiveSession { name: asked.session.clone(), header, source: asked.log, files, beats });
    let open = Open {
        name: asked.session.clone(),
        key: session.clone(),
        dir: dir.to_owned(),
        host_state: Mutex::default(),
        view,
        seen: Mutex::default(),
    };
    locked(&at.state.sessions).insert(asked.session.clone(), Arc::new(open));
    let scene = at.scene(&asked.session, Needs::default())?;
    *locked(&scene.open.seen) = Some(scene.engine.index().newest()?.0);
    let known = scene.engine.index().session(&session)?;
    let now = Session {
        key: session.clone(),
        parent: parent.or_else(|| known.as_ref().and_then(|known| known.parent.clone())),
        seed_length: asked.seed_length.or_else(|| known.as_ref().and_then(|known| known.seed_length)),
        subagent_of: subagent_of.or_else(|| known.as_ref().and_then(|known| known.subagent_of.clone())),
        turn: None,
        seen: at.state.host.clock.now(),
    };
    let same = known.as_ref().is_some_and(|known| {
        (&known.parent, known.seed_length, &known.subagent_of) == (&now.parent, now.seed_length, &now.subagent_of)
    });
    if !same {
        scene.engine.register_session(now)?;
    }
    let (in_git, has_commit) = workspace.git();
    let (root, root_bytes) = coded(workspace.root().as_os_str().as_encoded_bytes());
    let last_turn = known.and_then(|known| known.turn).map(|status| status.turn.0);
    Ok(SessionOpened {
        session: session.to_string(),
        root,
        root_bytes,
        registered: workspace.is_new(),
        is_git_worktree: in_git,
        provider: if has_commit { "git" } else { "copy" }.to_owned(),
        files: word(&scene.rules.files),
        may_restore: scene.rules.may_restore.name().to_owned(),
        can_fork: at.state.logs.can_fork(&session),
        last_turn,
        unfinished: scene.engine.unfinished()?.map(|intent| intent.operation.to_string()),
        warnings: scene.rules.warnings,
    })
}

pub(super) fn close(at: Place<'_>, asked: &SessionClose) -> Result<Done, Failed> {
    let open = at.session(&asked.session)?;
    locked(&at.state.sessions).remove(&asked.session);
    at.state.logs.close(&open.key);
    at.state.end_lane(&asked.session);
    Ok(Done {})
}

pub(super) fn beats(at: Place<'_>, asked: &SessionBeats) -> Result<Done, Failed> {
    let open = at.session(&asked.session)?;
    let told: Vec<_> =
        asked.beats.iter().map(|entry| beat(entry).ok_or_else(|| misfit(entry))).collect::<Result<_, _>>()?;
    for (seq, beat) in told {
        at.state.logs.heard(&open.key, seq, beat);
    }
    Ok(Done {})
}

pub(super) fn fork_record(at: Place<'_>, asked: &ForkRecord) -> Result<Done, Failed> {
    let scene = at.scene(&asked.session, Needs::default())?;
    let seed = asked.position.as_ref().map_or(0, |position| Seq(position.ordinal).0.saturating_add(1));
    scene.engine.register_session(Session {
        key: key(scene.open.key.harness(), &asked.child)?,
        parent: Some(scene.open.key.clone()),
        seed_length: Some(seed),
        subagent_of: None,
        turn: None,
        seen: at.state.host.clock.now(),
    })?;
    Ok(Done {})
}
