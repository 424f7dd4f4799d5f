//! Puts an engine together: which workspace, which store, which rules (design § 4).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkpoint_core::{
    Address, Approver, Clock, Engine, EngineError, Form, Held, IndexStore, LockError, LockMode, PointQuery, Scope,
    SessionError, SessionKey, SnapshotBackend, StoreLock, WorkspaceFs,
};
use index_store::{DataDir, Found, IndexKind, Registration, Registry, Standing, WorkspaceLock};
pub(crate) use rwd_engine::Located;
use rwd_engine::{SystemClock, SystemProcesses};
use workspace_fs::RealWorkspace;

use crate::args::IndexChoice;
use crate::config::Settings;
use crate::error::{CliError, Facts};
use crate::run::Run;
use crate::signals::Stop;

/// An engine with what it was made of.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) located: Located,
    pub(crate) settings: Settings,
    pub(crate) engine: Engine,
    pub(crate) index: Arc<dyn IndexStore>,
    pub(crate) snapshots: Arc<dyn SnapshotBackend>,
    pub(crate) files: Arc<RealWorkspace>,
    pub(crate) lock: Arc<dyn StoreLock>,
    /// Harnesses that this process runs in and that have a session here.
    pub(crate) agents: Vec<String>,
    /// One JSON object is wanted: what only machines are told is looked up too.
    pub(crate) json: bool,
}

/// The data directory that applies.
pub(crate) fn data_dir(run: &Run) -> Result<DataDir, CliError> {
    let explicit = run.global.data_dir.as_deref().map(|path| run.absolute(path)).transpose()?;
    let data = DataDir::locate(explicit.as_deref(), &|name| run.world.var(name).map(std::ffi::OsStr::to_owned));
    let data = data.ok_or_else(|| CliError::usage("no-data-dir", "there is no home directory: say --data-dir"))?;
    // What follows must not depend on the current directory.
    Ok(DataDir::new(run.absolute(data.path())?))
}

/// The workspace at or above the start directory. Changes nothing.
pub(crate) fn find(run: &Run) -> Result<Located, CliError> {
    let (data, start) = (data_dir(run)?, run.start()?);
    let registry = Registry::new(data.clone());
    let found = registry.find(&start)?.ok_or_else(|| none_at(&registry, start.clone()))?;
    refuse_moved(&found)?;
    stand(run, &found, &start);
    Ok(Located::new(found, registry, data))
}

/// The error for a directory that is in no workspace.
pub(crate) fn none_at(registry: &Registry, start: PathBuf) -> CliError {
    // Whether the registry lost one is asked only here, where it matters; what cannot be looked at says nothing.
    let orphans = registry.orphans().map(|found| found.orphans).unwrap_or_default();
    let roots = orphans.into_iter().filter(|orphan| orphan.exact).filter_map(|orphan| orphan.workspace);
    let lost = roots.map(|workspace| workspace.root).find(|root| start.starts_with(root));
    CliError::NoWorkspace { start, lost }
}

/// The workspace at or above the start directory; for a cut of the conversation alone, which needs no point, else the
/// start directory itself, registered now, where a session can be meant (story 10).
pub(crate) fn find_for(run: &Run, scope: Scope) -> Result<Located, CliError> {
    match find(run) {
        Err(CliError::NoWorkspace { start, lost: None }) if scope == Scope::Chat && talks_in(run, &start) => {
            let located = find_or_register(run)?;
            run.out.remark(&registered(&located));
            Ok(located)
        }
        found => found,
    }
}

/// What people are told about a workspace that was just registered.
pub(crate) fn registered(located: &Located) -> String {
    format!("{} is a workspace of rwd from now on", located.root().display())
}

/// Is a session named that has a log, or does one say that it works here?
fn talks_in(run: &Run, start: &Path) -> bool {
    let sessions = &run.world.sessions;
    match &run.global.session {
        Some(text) => SessionKey::parse(text).is_ok_and(|key| sessions.can_fork(&key)),
        None => sessions.working_in(start).is_ok_and(|here| !here.is_empty()),
    }
}

/// The workspace to save into: the nearest registered one, else the start directory itself, registered now.
pub(crate) fn find_or_register(run: &Run) -> Result<Located, CliError> {
    let (data, start) = (data_dir(run)?, run.start()?);
    let (found, located) = register_at(data, &start, run.world.home(), run.global.force)?;
    stand(run, &found, &start);
    Ok(located)
}

/// The same for a canonical directory, whatever run it is for.
pub(crate) fn register_at(
    data: DataDir,
    start: &Path,
    home: Option<&Path>,
    force: bool,
) -> Result<(Found, Located), CliError> {
    let registry = Registry::new(data.clone());
    let known = registry.find(start)?;
    // A moved root is its own only after `adopt`; with --force it becomes a workspace of its own.
    let root = known
        .filter(|found| found.standing != Standing::Moved || !force)
        .map_or_else(|| start.to_owned(), |found| found.root);
    let registration = Registration { force, as_new: force, ..Located::registration(&root, home.map(Path::to_owned)) };
    let found = registry.register(&root, &registration)?;
    refuse_moved(&found)?;
    let located = Located::new(found.clone(), registry, data);
    Ok((found, located))
}

/// People are shown paths from where they stand.
fn stand(run: &Run, found: &Found, start: &Path) {
    run.out.stands_at(start.strip_prefix(&found.root).map(Path::to_owned).unwrap_or_default());
}

fn refuse_moved(found: &Found) -> Result<(), CliError> {
    match found.standing {
        Standing::Moved => Err(CliError::Moved { root: found.root.clone(), before: found.workspace.root.clone() }),
        _ => Ok(()),
    }
}

pub(crate) fn kind(choice: IndexChoice) -> IndexKind {
    match choice {
        IndexChoice::Sqlite => IndexKind::Sqlite,
        IndexChoice::Json => IndexKind::Json,
    }
}

/// Opens the index of a workspace.
fn open_index(run: &Run, located: &Located, settings: &Settings) -> Result<Arc<dyn IndexStore>, CliError> {
    let asked = run.global.index.map(kind);
    // A setting is for new workspaces; the flag contradicts an existing one.
    let wanted = match (asked, located.dir.index_kind()?) {
        (None, None) => settings.index().map(kind),
        (asked, _) => asked,
    };
    Ok(located.open_index(wanted)?)
}

/// A lock that is waited for in slices, so that an interrupt ends the wait.
#[derive(Debug)]
struct Patient {
    lock: Box<dyn StoreLock>,
    stop: Stop,
}

/// Two sessions that were both at work within so many milliseconds: a position does not say whose it is (design § 6).
pub(crate) const TOGETHER_MS: i64 = 10 * 60 * 1000;

const SLICE: Duration = Duration::from_millis(50);

/// Why the wait for a lock ended: a signal came.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct StoppedWaiting;

impl StoreLock for Patient {
    fn acquire(&self, mode: LockMode, wait: Duration) -> Result<Box<dyn Held>, LockError> {
        let begun = Instant::now();
        loop {
            let left = wait.saturating_sub(begun.elapsed());
            match self.lock.acquire(mode, left.min(SLICE)) {
                Err(LockError::Busy) if self.stop.is_asked() => {
                    return Err(LockError::Failed { source: Box::new(StoppedWaiting) });
                }
                Err(LockError::Busy) if left > SLICE => {}
                ended => return ended,
            }
        }
    }
}

/// Who approves restores, once it is known whether this is a process of an agent.
pub(crate) type ChooseApprover<'a> = &'a dyn Fn(&Settings, &[String]) -> Result<Arc<dyn Approver>, CliError>;

/// Composes the engine.
pub(crate) fn open(
    run: &Run,
    located: Located,
    settings: Settings,
    approver: ChooseApprover<'_>,
) -> Result<Opened, CliError> {
    for warning in &settings.warnings {
        run.out.remark(&format!("warning: {}", crate::wire::shown(warning)));
    }
    let index = open_index(run, &located, &settings)?;
    let around = run.world.harnesses();
    let known = if around.is_empty() { Vec::new() } else { index.sessions()? };
    let agents: Vec<String> =
        around.into_iter().filter(|agent| known.iter().any(|s| s.key.harness() == *agent)).map(str::to_owned).collect();
    let approver = approver(&settings, &agents)?;
    let snapshots: Arc<dyn SnapshotBackend> = Arc::new(located.open_store()?);
    let files = Arc::new(located.open_files()?);
    let patient = |lock: WorkspaceLock| -> Arc<dyn StoreLock> {
        Arc::new(Patient { lock: Box::new(lock), stop: run.stop.clone() })
    };
    let lock = patient(located.dir.lock());
    let required = located.required(
        Arc::clone(&index),
        Arc::clone(&snapshots),
        Arc::clone(&files) as Arc<dyn WorkspaceFs>,
        Arc::clone(&lock),
    );
    let engine = Engine::builder(required)
        .sessions(Arc::clone(&run.world.sessions))
        .approver(approver)
        .processes(Arc::new(SystemProcesses))
        .progress(Arc::clone(&run.watch) as Arc<dyn checkpoint_core::Progress>)
        .overlaps(located.overlaps(&patient)?)
        .capture_policy(settings.capture())
        .quota(settings.quota())
        .lock_wait(settings.lock_wait())
        .fold_locks(Arc::new(located.dir.folds()))
        .build();

    tracing::debug!(root = %located.root().display(), index = index.name(), "opened");
    Ok(Opened { located, settings, engine, index, snapshots, files, lock, agents, json: run.out.json })
}

impl Opened {
    /// What hints about a plan need to know.
    pub(crate) fn facts(&self, run: &Run) -> Result<Facts, CliError> {
        let below = run.out.below().to_owned();
        let turns = self.index.sessions()?.iter().any(|session| session.turn.is_some());
        Ok(Facts { below, turns })
    }

    /// The session that `--session` names: as it is, or by a unique beginning of its id.
    pub(crate) fn session(&self, run: &Run) -> Result<Option<SessionKey>, CliError> {
        let Some(text) = &run.global.session else { return Ok(None) };
        let exact = SessionKey::parse(text).map_err(|error| CliError::usage("bad-session", error.to_string()))?;
        let known = self.index.sessions()?;
        if known.iter().any(|session| session.key == exact) {
            return Ok(Some(exact));
        }
        let (harness, id) = text.split_once(':').map_or((None, text.as_str()), |(harness, id)| (Some(harness), id));
        let fits = |key: &&SessionKey| key.id().starts_with(id) && harness.is_none_or(|h| key.harness() == h);
        let found: Vec<&SessionKey> = known.iter().map(|session| &session.key).filter(fits).collect();
        // One that only its harness knows must be named in full.
        if found.is_empty() && run.world.sessions.can_fork(&exact) {
            return Ok(Some(exact));
        }
        if found.is_empty() && !matches!(run.world.sessions.header(&exact), Err(SessionError::NotFound(_))) {
            return Err(EngineError::Session(SessionError::Unsupported).into());
        }
        let given = format!("session {text}");
        match found.as_slice() {
            [one] => Ok(Some((*one).clone())),
            [] => {
                let choices = known.iter().take(10).map(|session| session.key.to_string()).collect();
                Err(EngineError::NotFound { given, choices }.into())
            }
            many => {
                let choices = many.iter().map(ToString::to_string).collect();
                Err(EngineError::Ambiguous { given, choices }.into())
            }
        }
    }

    /// The session that a position means where none is named and no harness has recorded one here: the newest whose log
    /// says that it works in this workspace. Points come first: a position that has one is left to them.
    pub(crate) fn session_of_logs(&self, run: &Run, target: &str) -> Result<Option<SessionKey>, CliError> {
        let address = Address::parse(target)?;
        let position = matches!(
            address.form,
            Form::TurnEnd(_) | Form::TurnStart(_) | Form::TurnStep(..) | Form::Step(_) | Form::Seq(_)
        );
        if !position || address.session.is_some() {
            return Ok(None);
        }
        let mut sessions = self.index.sessions()?;
        sessions.retain(|session| !session.key.is_local());
        // A child that was only made has recorded nothing.
        let of = sessions.iter().map(|session| session.key.clone()).collect();
        let any = PointQuery { sessions: of, newest_first: true, limit: Some(1), ..PointQuery::default() };
        if sessions.iter().any(|session| session.turn.is_some())
            || (!sessions.is_empty() && !self.index.points(&any)?.is_empty())
        {
            return Ok(None);
        }
        if self.engine.find(None, target).is_ok() {
            return Ok(None);
        }
        let here = match run.world.sessions.working_in(self.located.root()) {
            Ok(here) => here,
            Err(error) => {
                tracing::warn!(%error, "the sessions of this workspace cannot be listed");
                return Ok(None);
            }
        };
        let now = Clock::now(&SystemClock).0;
        let together: Vec<_> = here.iter().filter(|resident| now - resident.seen.0 < TOGETHER_MS).collect();
        if together.len() > 1 {
            let choices = together.iter().take(10).map(|resident| format!("{}/{target}", resident.key)).collect();
            return Err(EngineError::Ambiguous { given: target.to_owned(), choices }.into());
        }
        Ok(here.into_iter().next().map(|resident| resident.key))
    }
}
