//! The engine: captures, plans, restores, undoes. Composed from the seams; holds no state of its own, so that any number
//! of processes may work on one workspace.

mod attribution;
mod care;
mod cut;
mod fork;
mod host;
mod import;
mod lineage;
mod marks;
mod notice;
mod purge;
mod recover;
mod resolve;
mod restore;
mod reverse;
mod save;
mod transaction;

pub use care::DropWhich;
pub use import::{ImportItem, ImportMark, ImportRequest, Imported, ImportedMark, ItemOutcome};
pub use notice::files_notice;
pub use purge::{PurgePlan, PurgeRequest, Purged, PurgedPath};

use std::sync::Arc;
use std::time::Duration;

use crate::fold::{FoldLocks, LocalFolds};
use crate::{
    Approver, CapturePolicy, Clock, Decision, EngineError, EngineEvent, Held, HostState, IdSource, IndexStore,
    IntentState, LockMode, NoProgress, NoSessions, Observer, OpId, PointId, Preview, ProcessId, Progress, Quota,
    SessionLog, SnapshotBackend, StoreLock, WorkspaceFs, WorkspaceId,
};

/// Tells whether a harness process is still there (design § 2, "interrupted turn").
pub trait Processes: std::fmt::Debug + Send + Sync {
    /// True unless the process is known to be gone.
    fn is_alive(&self, process: &ProcessId) -> bool;
}

/// What one workspace is called and which incarnation of its root is there (design § 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Counts replacements of the root directory.
    pub incarnation: u32,
}

/// Another registered workspace whose root overlaps this one: its lock is taken and its open intent respected too.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// Its lock.
    pub lock: Arc<dyn StoreLock>,
    /// Its index.
    pub index: Arc<dyn IndexStore>,
    /// True when its root sorts before this one: locks are taken in path order.
    pub before: bool,
}

/// Undo for one workspace. Cheap to clone; safe to share.
#[derive(Clone, Debug)]
pub struct Engine {
    parts: Arc<Parts>,
}

struct Parts {
    place: Place,
    snapshots: Arc<dyn SnapshotBackend>,
    index: Arc<dyn IndexStore>,
    files: Arc<dyn WorkspaceFs>,
    lock: Arc<dyn StoreLock>,
    overlaps: Vec<Overlap>,
    sessions: Arc<dyn SessionLog>,
    host: Option<Arc<dyn HostState>>,
    approver: Arc<dyn Approver>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    processes: Arc<dyn Processes>,
    progress: Arc<dyn Progress>,
    observer: Option<Arc<dyn Observer>>,
    capture: CapturePolicy,
    quota: Quota,
    lock_wait: Duration,
    folds: Arc<dyn FoldLocks>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts")
            .field("place", &self.place)
            .field("snapshots", &self.snapshots)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// Composes an [`Engine`].
#[derive(Debug)]
#[must_use]
pub struct EngineBuilder {
    parts: Parts,
}

#[derive(Debug)]
struct NobodyToAsk;

impl Approver for NobodyToAsk {
    fn decide(&self, _: &Preview) -> Decision {
        Decision::Unavailable
    }
}

#[derive(Debug)]
struct AllAlive;

impl Processes for AllAlive {
    fn is_alive(&self, _: &ProcessId) -> bool {
        true
    }
}

/// What an engine cannot do without.
#[derive(Debug)]
pub struct Required {
    /// Which workspace.
    pub place: Place,
    /// Content.
    pub snapshots: Arc<dyn SnapshotBackend>,
    /// Everything else that is stored.
    pub index: Arc<dyn IndexStore>,
    /// The user's files.
    pub files: Arc<dyn WorkspaceFs>,
    /// The workspace's lock.
    pub lock: Arc<dyn StoreLock>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub ids: Arc<dyn IdSource>,
}

impl EngineBuilder {
    /// Session logs; without them only files go back.
    pub fn sessions(mut self, sessions: Arc<dyn SessionLog>) -> Self {
        self.parts.sessions = sessions;
        self
    }
    /// Whose configuration is kept with each point; without one none is.
    pub fn host_state(mut self, host: Arc<dyn HostState>) -> Self {
        self.parts.host = Some(host);
        self
    }
    /// Who approves restores; without one nothing is ever approved.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.parts.approver = approver;
        self
    }
    /// Who knows whether harness processes live; without one all do.
    pub fn processes(mut self, processes: Arc<dyn Processes>) -> Self {
        self.parts.processes = processes;
        self
    }
    /// Whom to tell how far it is, and who may stop it.
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.parts.progress = progress;
        self
    }
    /// Whom to tell what was done.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.parts.observer = Some(observer);
        self
    }
    /// Other registered workspaces whose roots overlap this one.
    pub fn overlaps(mut self, overlaps: Vec<Overlap>) -> Self {
        self.parts.overlaps = overlaps;
        self
    }
    /// What captures cover.
    pub fn capture_policy(mut self, policy: CapturePolicy) -> Self {
        self.parts.capture = policy;
        self
    }
    /// How long points live.
    pub fn quota(mut self, quota: Quota) -> Self {
        self.parts.quota = quota;
        self
    }
    /// How long to wait for the lock; 10 s unless said otherwise.
    pub fn lock_wait(mut self, wait: Duration) -> Self {
        self.parts.lock_wait = wait;
        self
    }
    /// Keeps two folds of one session apart; without it only folds by this engine and its clones are.
    pub fn fold_locks(mut self, folds: Arc<dyn FoldLocks>) -> Self {
        self.parts.folds = folds;
        self
    }
    /// The engine.
    pub fn build(self) -> Engine {
        Engine { parts: Arc::new(self.parts) }
    }
}

/// Locks of the workspace and of those that overlap it, held until dropped.
#[derive(Debug)]
struct Locked(#[expect(dead_code, reason = "held, not read")] Vec<Box<dyn Held>>);

impl Engine {
    /// Starts composing.
    pub fn builder(required: Required) -> EngineBuilder {
        EngineBuilder {
            parts: Parts {
                place: required.place,
                snapshots: required.snapshots,
                index: required.index,
                files: required.files,
                lock: required.lock,
                overlaps: Vec::new(),
                sessions: Arc::new(NoSessions),
                host: None,
                approver: Arc::new(NobodyToAsk),
                clock: required.clock,
                ids: required.ids,
                processes: Arc::new(AllAlive),
                progress: Arc::new(NoProgress),
                observer: None,
                capture: CapturePolicy::default(),
                quota: Quota::default(),
                lock_wait: Duration::from_secs(10),
                folds: Arc::new(LocalFolds::default()),
            },
        }
    }

    /// The workspace it works on.
    pub fn place(&self) -> Place {
        self.parts.place
    }

    /// Its index.
    pub fn index(&self) -> &dyn IndexStore {
        &*self.parts.index
    }

    /// Its backend.
    pub fn snapshots(&self) -> &dyn SnapshotBackend {
        &*self.parts.snapshots
    }

    fn lock(&self, mode: LockMode) -> Result<Locked, EngineError> {
        let mut held = Vec::new();
        let wait = self.parts.lock_wait;
        // A capture of one root does not write user files: only its own lock is needed.
        let others = |before: bool| {
            self.parts.overlaps.iter().filter(move |o| mode == LockMode::Exclusive && o.before == before)
        };
        for other in others(true) {
            held.push(other.lock.acquire(mode, wait)?);
        }
        held.push(self.parts.lock.acquire(mode, wait)?);
        for other in others(false) {
            held.push(other.lock.acquire(mode, wait)?);
        }
        Ok(Locked(held))
    }

    /// Fails when this workspace or one that overlaps it has an unfinished operation. Call with the locks held.
    fn refuse_unfinished(&self) -> Result<(), EngineError> {
        let overlapping = self.parts.overlaps.iter().map(|o| &o.index);
        for index in std::iter::once(&self.parts.index).chain(overlapping) {
            if let Some(intent) = index.open_intent()? {
                let forking = intent.state == IntentState::Forking;
                return Err(EngineError::Unfinished { operation: intent.operation, forking });
            }
        }
        Ok(())
    }

    /// The same without a lock held: an operation that is under way in another process is waited for first, since only
    /// one that nobody carries out any more is unfinished.
    fn refuse_interrupted(&self) -> Result<(), EngineError> {
        match self.refuse_unfinished() {
            Err(EngineError::Unfinished { .. }) => {
                let _locked = self.lock(LockMode::Shared)?;
                self.refuse_unfinished()
            }
            checked => checked,
        }
    }

    fn fresh_point_id(&self) -> PointId {
        PointId::from_bytes(self.parts.ids.next())
    }

    fn fresh_operation_id(&self) -> OpId {
        OpId::from_bytes(self.parts.ids.next())
    }

    fn tell(&self, event: &EngineEvent) {
        if let Some(observer) = &self.parts.observer {
            observer.on(event);
        }
    }
}
