//! `rwd sidecar`: the engine behind a pipe, with the settings, the data directory and the session logs of the command
//! line.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkpoint_core::{
    Engine, EngineBuilder, ErrorKind, IndexStore, Overlap, Point, PointKind, SessionLog, SnapshotBackend, StoreLock,
    WorkspaceFs,
};
use harness_adapter::sessions::dsh::{self, DshLogs};
use harness_adapter::sidecar::protocol::Check;
use harness_adapter::sidecar::{Failure, MayRestore, Parts, Rules, Sidecar, Workspace, Workspaces};
use index_store::{DataDir, IndexKind, Standing};
use rwd_engine::{Located, SystemClock, SystemProcesses};

use crate::compose;
use crate::config::{self, Settings};
use crate::error::{CliError, Typed, report};
use crate::exit;
use crate::lasting;
use crate::run::Run;
use crate::world::World;

pub(crate) fn sidecar(run: &Run) -> Result<u8, CliError> {
    lasting::start_with_limits(&run.world);
    // A host that ends may signal its children while it has something to say still: the first signal ends nothing, the
    // end of input does; a second signal ends at once.
    run.stop.listen();
    let (input, output) = run.out.take_pipes();
    let shop = Shop {
        // What one process sees does not change; the files it names are read anew.
        world: Arc::new(Mutex::new(quiet_world(run))),
        data: compose::data_dir(run)?,
        index: run.global.index.map(compose::kind),
        around: run.world.harnesses(),
    };
    let sidecar = Sidecar {
        workspaces: Arc::new(shop),
        logs: Arc::clone(&run.world.sessions),
        clock: Arc::new(SystemClock),
        version: env!("CARGO_PKG_VERSION"),
        parent: Some(std::os::unix::process::parent_id()),
    };
    sidecar.serve(input, output);
    Ok(exit::OK)
}

/// The same surroundings without streams.
pub(super) fn quiet_world(run: &Run) -> World {
    World {
        args: Vec::new(),
        vars: run.world.vars.clone(),
        cwd: run.world.cwd.clone(),
        stdin: Box::new(io::empty()),
        stdout: Box::new(io::sink()),
        stderr: Box::new(io::sink()),
        can_ask: false,
        stdout_is_terminal: false,
        stderr_is_terminal: false,
        sessions: Arc::clone(&run.world.sessions),
        own_process: false,
    }
}

/// Opens workspaces.
#[derive(Debug)]
struct Shop {
    world: Arc<Mutex<World>>,
    data: DataDir,
    index: Option<IndexKind>,
    around: Vec<&'static str>,
}

/// An open workspace.
#[derive(Debug)]
struct Shelf {
    located: Located,
    data: DataDir,
    is_new: bool,
    identity: Option<(u64, u64)>,
    world: Arc<Mutex<World>>,
    around: Vec<&'static str>,
    index: Arc<dyn IndexStore>,
    snapshots: Arc<dyn SnapshotBackend>,
    files: Arc<dyn WorkspaceFs>,
    lock: Arc<dyn StoreLock>,
    overlaps: Vec<Overlap>,
    /// Registered roots that overlap this one, with and without an index.
    others: usize,
}

fn locked(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A failure beside the engine, as the command line would tell it.
fn failure(error: impl Into<CliError>) -> Failure {
    let typed = Typed { words: vec!["rwd".to_owned()], ..Typed::default() };
    let report = report(&error.into(), &typed);
    let kind = match report.exit {
        exit::USAGE => ErrorKind::Usage,
        exit::DECISION => ErrorKind::Decision,
        exit::CONFIRMATION => ErrorKind::Confirmation,
        exit::UNFINISHED => ErrorKind::Unfinished,
        exit::DAMAGED => ErrorKind::Damaged,
        exit::NOT_FOUND | exit::NO_WORKSPACE => ErrorKind::NotFound,
        exit::BUSY => ErrorKind::Busy,
        _ => ErrorKind::Failure,
    };
    let body = report.body;
    Failure { code: body.code, kind, message: body.message, hints: body.hints, causes: body.causes }
}

/// What tells one directory from another that took its name.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

impl Workspaces for Shop {
    fn open(&self, dir: &Path, register: bool) -> Result<Arc<dyn Workspace>, Failure> {
        let start = dir.canonicalize().map_err(|source| {
            failure(CliError::Usage {
                code: "no-directory",
                message: format!("{} cannot be entered: {source}", dir.display()),
                hint: None,
            })
        })?;
        if !start.is_dir() {
            return Err(failure(CliError::usage("no-directory", format!("{} is no directory", start.display()))));
        }
        let home = locked(&self.world).home().map(Path::to_owned);
        let registry = index_store::Registry::new(self.data.clone());
        if !register && registry.find(&start).map_err(failure)?.is_none() {
            return Err(failure(compose::none_at(&registry, start)));
        }
        let (_, located) = compose::register_at(self.data.clone(), &start, home.as_deref(), false).map_err(failure)?;
        let index = located.open_index(self.index).map_err(failure)?;
        let snapshots = Arc::new(located.open_resident_store().map_err(failure)?);
        let files = Arc::new(located.open_files().map_err(failure)?);
        let lock = Arc::new(located.dir.lock());
        let others = located.overlapping().map_err(failure)?.len();
        let overlaps = located.overlaps(&|lock| Arc::new(lock)).map_err(failure)?;
        Ok(Arc::new(Shelf {
            is_new: located.standing == Standing::New,
            identity: identity(located.root()),
            data: self.data.clone(),
            world: Arc::clone(&self.world),
            around: self.around.clone(),
            located,
            index,
            snapshots,
            files,
            lock,
            overlaps,
            others,
        }))
    }

    fn logs(&self, harness: &str, home: Option<&Path>) -> Option<Arc<dyn SessionLog>> {
        match (harness, home) {
            (dsh::HARNESS, Some(home)) => Some(Arc::new(DshLogs::open(home))),
            // Whoever else has logs here is among those of the command line.
            _ => Some(Arc::clone(&locked(&self.world).sessions)),
        }
    }
}

impl Workspace for Shelf {
    fn root(&self) -> &Path {
        self.located.root()
    }

    fn is_new(&self) -> bool {
        self.is_new
    }

    fn incarnation(&self) -> u32 {
        self.located.incarnation()
    }

    fn is_current(&self) -> bool {
        let same_root = self.identity.is_some() && identity(self.located.root()) == self.identity;
        let same_entry = || {
            let found = self.located.registry.find(self.located.root()).ok().flatten();
            found.is_some_and(|found| {
                let now = (found.workspace.id, found.workspace.incarnation);
                now == (self.located.workspace.id, self.located.incarnation()) && found.standing == Standing::Known
            })
        };
        // A workspace that overlaps this one may have come or gone.
        let same_overlaps = || self.located.overlapping().is_ok_and(|others| others.len() == self.others);
        same_root && same_entry() && same_overlaps()
    }

    fn git(&self) -> (bool, bool) {
        let in_git = Located::git_common_dir(self.located.root()).is_some();
        let has_commit =
            in_git && gix::discover(self.located.root()).is_ok_and(|repository| repository.head_id().is_ok());
        (in_git, has_commit)
    }

    fn rules(&self) -> Result<Rules, Failure> {
        let settings = Settings::load(&locked(&self.world), Some(self.located.root()), false).map_err(failure)?;
        let by_agent = !self.around.is_empty() && {
            let known = self.index.sessions().map_err(checkpoint_core::EngineError::from).map_err(failure)?;
            known.iter().any(|session| self.around.contains(&session.key.harness()))
        };
        Ok(Rules {
            files: settings.files(),
            guard: settings.guard(),
            may_restore: match settings.may_restore() {
                config::MayRestore::Allow => MayRestore::Allow,
                config::MayRestore::Ask => MayRestore::Ask,
                config::MayRestore::Never => MayRestore::Never,
            },
            by_agent,
            lock_wait: settings.lock_wait(),
            capture: settings.capture(),
            quota: settings.quota(),
            warnings: settings.warnings,
        })
    }

    fn compose(&self, rules: &Rules) -> EngineBuilder {
        let required = self.located.required(
            Arc::clone(&self.index),
            Arc::clone(&self.snapshots),
            Arc::clone(&self.files),
            Arc::clone(&self.lock),
        );
        Engine::builder(required)
            .processes(Arc::new(SystemProcesses))
            .overlaps(self.overlaps.clone())
            .capture_policy(rules.capture.clone())
            .quota(rules.quota)
            .lock_wait(rules.lock_wait)
            .fold_locks(Arc::new(self.located.dir.folds()))
    }

    fn parts(&self) -> Parts<'_> {
        Parts { index: &*self.index, snapshots: &*self.snapshots, lock: &*self.lock }
    }

    fn objects(&self) -> PathBuf {
        self.data.workspace(&self.located.workspace.id).git().join("objects")
    }

    fn after(&self, rules: &Rules, point: &Point) {
        let engine = self.compose(rules).build();
        super::settle(&engine, &*self.index, &*self.snapshots, point.kind == PointKind::TurnEnd);
    }

    /// What `rwd doctor` says.
    fn examine(&self) -> Vec<Check> {
        let out = Shared::default();
        let (vars, cwd, sessions) = {
            let world = locked(&self.world);
            (world.vars.clone(), world.cwd.clone(), Arc::clone(&world.sessions))
        };
        let args = ["rwd", "-C"].map(OsString::from).into_iter();
        let args = args.chain([self.located.root().into(), "--data-dir".into(), self.data.path().into()]);
        let world = World {
            args: args.chain(["--json", "--no-input", "doctor"].map(Into::into)).collect(),
            vars,
            cwd,
            stdin: Box::new(io::empty()),
            stdout: Box::new(out.clone()),
            stderr: Box::new(io::sink()),
            can_ask: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            sessions,
            own_process: false,
        };
        crate::run(world);
        checks(&out.taken()).unwrap_or_else(|| {
            vec![Check {
                name: "doctor".into(),
                status: "failed".into(),
                detail: "rwd doctor gave no answer".into(),
                hint: Some(format!("rwd -C {} doctor", self.located.root().display())),
            }]
        })
    }
}

/// The checks of an answer of `rwd doctor`.
fn checks(answer: &[u8]) -> Option<Vec<Check>> {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let text = |check: &serde_json::Value, field: &str| check.get(field)?.as_str().map(str::to_owned);
    let check = |check: &serde_json::Value| {
        Some(Check {
            name: text(check, "check")?,
            status: text(check, "status")?,
            detail: text(check, "detail")?,
            hint: text(check, "hint"),
        })
    };
    answer.get("checks")?.as_array()?.iter().map(check).collect()
}

/// Output that is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(super) fn taken(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
