//! What each method does.

mod captures;
mod care;
mod listing;
mod notes;
mod restores;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use checkpoint_core::{Engine, EngineError, ErrorKind, SessionLog};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::{AskClient, Call, ClientState};
use super::host::{Rules, Workspace};
use super::problem::Failed;
use super::protocol::{HostStateRestore, Message, SessionFlush};
use super::server::{Open, State, locked};

/// Reads parameters.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failed> {
    serde_json::from_value(params).map_err(|error| Failed::params(error.to_string()))
}

pub(super) fn not_open(name: &str) -> Failed {
    let message = format!("session {name:?} is not open");
    Failed::refused("session-not-open", ErrorKind::Usage, message, Some("open it with session.open"))
}

fn run<M: Message>(params: Value, job: impl FnOnce(M) -> Result<M::Answer, Failed>) -> Result<Value, Failed> {
    let answer = job(read(params)?)?;
    serde_json::to_value(answer).map_err(|error| Failed::internal(error.to_string()))
}

/// Carries a request out.
pub(super) fn handle(state: &Arc<State>, call: &Arc<Call>, method: &str, params: Value) -> Result<Value, Failed> {
    let at = Place { state, call };
    match method {
        "session.open" => run(params, |p| sessions::open(at, &p)),
        "session.close" => run(params, |p| sessions::close(at, &p)),
        "session.beats" => run(params, |p| sessions::beats(at, &p)),
        "fork.record" => run(params, |p| sessions::fork_record(at, &p)),
        "turn.begin" => run(params, |p| captures::turn_begin(at, p)),
        "turn.end" => run(params, |p| captures::turn_end(at, p)),
        "turn.interrupt" => run(params, |p| captures::interrupt(at, &p)),
        "step.begin" => run(params, |p| captures::step_begin(at, &p)),
        "step.end" => run(params, |p| captures::step_end(at, &p)),
        "capture" => run(params, |p| captures::capture(at, p)),
        "list" => run(params, |p| listing::list(at, &p)),
        "diff" => run(params, |p| listing::diff(at, &p)),
        "preview" => run(params, |p| restores::preview(at, p)),
        "restore" => run(params, |p| restores::restore(at, p)),
        "undo.preview" => run(params, |p| restores::undo_preview(at, p)),
        "undo" => run(params, |p| restores::undo(at, p)),
        "redo" => run(params, |p| restores::redo(at, p)),
        "recover" => run(params, |p| restores::recover(at, &p)),
        "drop" => run(params, |p| care::drop(at, &p)),
        "gc" => run(params, |p| care::gc(at, &p)),
        "doctor" => run(params, |p| care::doctor(at, &p)),
        "mark" => run(params, |p| notes::mark(at, p)),
        "latestMark" => run(params, |p| notes::latest_mark(at, &p)),
        "hasActive" => run(params, |p| notes::has_active(at, &p)),
        "completeFold" => run(params, |p| notes::complete_fold(at, &p)),
        "point.name" => run(params, |p| notes::point_name(at, p)),
        "name.set" => run(params, |p| notes::name_set(at, p)),
        "name.list" => run(params, |p| notes::name_list(at, &p)),
        "name.find" => run(params, |p| notes::name_find(at, &p)),
        "name.rewind" => run(params, |p| notes::name_rewind(at, &p)),
        other => Err(Failed::internal(format!("{other} is listed and not handled"))),
    }
}

/// Where a request is carried out.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    state: &'a Arc<State>,
    call: &'a Arc<Call>,
}

/// A session with its workspace and an engine for this request.
#[derive(Debug)]
struct Scene {
    open: Arc<Open>,
    workspace: Arc<dyn Workspace>,
    rules: Rules,
    engine: Engine,
}

/// How the engine of a request differs.
#[derive(Clone, Debug, Default)]
struct Needs {
    /// Somebody said yes already.
    confirmed: bool,
    /// The host's configuration now.
    host_state: Option<String>,
    /// Waits for the lock no longer than this.
    budget: Option<Duration>,
}

impl Place<'_> {
    fn session(&self, name: &str) -> Result<Arc<Open>, Failed> {
        locked(&self.state.sessions).get(name).cloned().ok_or_else(|| not_open(name))
    }

    /// The workspace of a session, opened again where its root was replaced.
    fn workspace(&self, dir: &std::path::Path, register: bool) -> Result<Arc<dyn Workspace>, Failed> {
        let mut roots = locked(&self.state.roots);
        if let Some(known) = roots.get(dir).filter(|known| known.is_current()) {
            return Ok(Arc::clone(known));
        }
        let opened = self.state.host.workspaces.open(dir, register)?;
        roots.insert(dir.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    fn scene(&self, session: &str, needs: Needs) -> Result<Scene, Failed> {
        let open = self.session(session)?;
        let workspace = self.workspace(&open.dir, true)?;
        let rules = workspace.rules()?;
        let host_state = {
            let mut known = locked(&open.host_state);
            if needs.host_state.is_some() {
                *known = needs.host_state;
            }
            known.clone()
        };
        let wait = needs.budget.map_or(rules.lock_wait, |budget| budget.min(rules.lock_wait));
        let mut builder = workspace
            .compose(&rules)
            .sessions(Arc::clone(&self.state.logs) as Arc<dyn SessionLog>)
            .progress(Arc::clone(self.call) as Arc<dyn checkpoint_core::Progress>)
            .approver(Arc::new(AskClient {
                call: Arc::clone(self.call),
                session: open.name.clone(),
                confirmed: needs.confirmed,
            }))
            .lock_wait(wait);
        if host_state.is_some() || self.call.peer.offers::<HostStateRestore>() {
            builder = builder.host_state(Arc::new(ClientState {
                call: Arc::clone(self.call),
                session: open.name.clone(),
                now: host_state,
            }));
        }
        let engine = builder.build();
        Ok(Scene { open, workspace, rules, engine })
    }

    /// Has the host bring its log to the disk, where it can: a cut is read from there.
    fn flush(&self, session: &str) -> Result<(), Failed> {
        if !self.call.peer.offers::<SessionFlush>() {
            return Ok(());
        }
        let asked = SessionFlush { session: session.to_owned() };
        self.call.peer.call(&asked, &|| !self.call.is_cancelled()).map(drop).map_err(|error| {
            let message = format!("the session could not be flushed: {error}");
            Failed::refused("flush-failed", ErrorKind::Failure, message, Some("scope = files does without"))
        })
    }

    /// An error of the engine; one that comes of being given up says so.
    fn failed(&self, error: EngineError) -> Failed {
        if self.call.is_cancelled() && matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Confirmation) {
            return Failed::interrupted();
        }
        error.into()
    }
}
