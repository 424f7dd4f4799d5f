//! A workspace with an engine over the real crates, and the means to break them.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use checkpoint_core::{
    Approver, CapturePolicy, Clock, Decision, Engine, EngineBuilder, Held, HostState, IdSource, IndexStore, LockError,
    LockMode, Place, PointKind, Preview, RelPath, Required, RestorePolicy, RestoreRequest, ReverseRequest, SaveRequest,
    Saved, SessionKey, SessionLog, SnapshotBackend, StoreLock, Timestamp, Turn, WorkspaceFs, WorkspaceId,
};
use workspace_fs::{Crash, RealWorkspace};

/// Real time, but sleeping returns at once.
#[derive(Debug, Default)]
pub(crate) struct TestClock {
    ahead: AtomicI64,
    /// A file that somebody goes on writing while others sleep.
    busy_file: Mutex<Option<PathBuf>>,
}

impl TestClock {
    /// How far it is ahead, in milliseconds.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Turns the clock by so many milliseconds.
    pub(crate) fn turn(&self, by: i64) {
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }

    /// From now on somebody writes `file` whenever others sleep; `None`: no longer.
    pub(crate) fn busy_on(&self, file: Option<PathBuf>) {
        *self.busy_file.lock().unwrap() = file;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let real = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        Timestamp(i64::try_from(real).unwrap() + self.ahead.load(Ordering::Relaxed))
    }
    fn sleep(&self, time: Duration) {
        self.turn(i64::try_from(time.as_millis()).unwrap());
        if let Some(file) = &*self.busy_file.lock().unwrap() {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            std::fs::write(file, text + ".").unwrap();
        }
    }
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

/// Ids that differ from the first digit on.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// The ids after the `first`.
    fn after(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }
}

impl IdSource for Counter {
    fn next(&self) -> [u8; 16] {
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        bytes[8..].copy_from_slice(&n.to_be_bytes());
        bytes
    }
}

/// A lock within this process.
#[derive(Debug, Default)]
pub(crate) struct LocalLock(Arc<Mutex<i64>>);

#[derive(Debug)]
struct LocalHeld(Arc<Mutex<i64>>, LockMode);

impl Held for LocalHeld {}

impl Drop for LocalHeld {
    fn drop(&mut self) {
        let mut count = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match self.1 {
            LockMode::Shared => *count -= 1,
            LockMode::Exclusive => *count = 0,
        }
    }
}

impl StoreLock for LocalLock {
    fn acquire(&self, mode: LockMode, _: Duration) -> Result<Box<dyn Held>, LockError> {
        let mut count = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match mode {
            LockMode::Shared if *count >= 0 => *count += 1,
            LockMode::Exclusive if *count == 0 => *count = -1,
            _ => return Err(LockError::Busy),
        }
        Ok(Box::new(LocalHeld(Arc::clone(&self.0), mode)))
    }
}

type Action = Box<dyn FnOnce() + Send>;

/// Runs an action at the n-th step of `workspace-fs`.
#[derive(Default)]
pub(crate) struct Trap {
    at: AtomicU64,
    seen: AtomicU64,
    action: Mutex<Option<Action>>,
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trap")
    }
}

impl Trap {
    /// Sets the trap: `action` runs right before step `at`, counted from 1.
    pub(crate) fn set(&self, at: u64, action: impl FnOnce() + Send + 'static) {
        self.seen.store(0, Ordering::SeqCst);
        self.at.store(at, Ordering::SeqCst);
        *self.action.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Box::new(action));
    }
    /// Counts steps only.
    pub(crate) fn disarm(&self) {
        self.set(u64::MAX, || {});
    }
    pub(crate) fn steps(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }
}

impl Crash for Trap {
    fn point(&self, _: &'static str) {
        let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        if seen == self.at.load(Ordering::SeqCst) {
            let action = self.action.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            if let Some(action) = action {
                action();
            }
        }
    }
}

/// Approves; runs an action first when there is one: an edit between preview and application.
#[derive(Default)]
pub(crate) struct Yes {
    action: Mutex<Option<Action>>,
    other: Mutex<Option<Decision>>,
}

impl Yes {
    /// Says something else from now on.
    pub(crate) fn says(&self, decision: Decision) {
        *self.other.lock().unwrap() = Some(decision);
    }

    pub(crate) fn after(&self, action: impl FnOnce() + Send + 'static) {
        *self.action.lock().unwrap() = Some(Box::new(action));
    }
}

impl fmt::Debug for Yes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yes")
    }
}

impl Approver for Yes {
    fn decide(&self, _: &Preview) -> Decision {
        let action = self.action.lock().unwrap().take();
        if let Some(action) = action {
            action();
        }
        self.other.lock().unwrap().clone().unwrap_or(Decision::Approved)
    }
}

/// How an operation on the disk goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// It fails once.
    Error,
    /// It fails once because the disk is full.
    NoSpace,
    /// It and all after it fail, as after a kill.
    Stop,
    /// The same, but half of it was written.
    Torn,
}

/// One count over every operation that changes the store, the epoch and the index; one of them goes wrong.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    seen: AtomicU64,
    plan: Mutex<Option<(u64, Wrong)>>,
}

impl Disk {
    /// Operation `at`, counted from 1 from now on, goes wrong.
    pub(crate) fn arm(&self, at: u64, wrong: Wrong) {
        self.seen.store(0, Ordering::SeqCst);
        *self.plan.lock().unwrap() = Some((at, wrong));
    }
    /// Counts only.
    pub(crate) fn disarm(&self) {
        self.seen.store(0, Ordering::SeqCst);
        *self.plan.lock().unwrap() = None;
    }
    pub(crate) fn steps(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }
    /// The next operation: what goes wrong with it.
    fn next(&self) -> Option<Wrong> {
        let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        let (at, wrong) = (*self.plan.lock().unwrap())?;
        match wrong {
            _ if seen < at => None,
            Wrong::Error | Wrong::NoSpace if seen > at => None,
            Wrong::Torn if seen > at => Some(Wrong::Stop),
            wrong => Some(wrong),
        }
    }
}

fn failure(wrong: Wrong) -> std::io::Error {
    match wrong {
        Wrong::NoSpace => std::io::ErrorKind::StorageFull.into(),
        _ => std::io::Error::other("injected fault"),
    }
}

impl snapshot_git::Faults for Disk {
    fn before(&self, _: &'static str) -> snapshot_git::Fault {
        match self.next() {
            None => snapshot_git::Fault::None,
            Some(Wrong::Torn) => snapshot_git::Fault::Torn(failure(Wrong::Torn)),
            Some(wrong) => snapshot_git::Fault::Fail(failure(wrong)),
        }
    }
}

impl testkit::index_suite::ApplyFaults for Disk {
    /// Two steps: before anything was written, and after all was but before it was said.
    fn next(&self) -> Option<testkit::index_suite::Fault> {
        use testkit::index_suite::Fault;
        let (before, after) = (Disk::next(self), Disk::next(self));
        match (before, after) {
            (Some(Wrong::NoSpace), _) => Some(Fault::NoSpace),
            (Some(_), _) => Some(Fault::Lost),
            (None, Some(_)) => Some(Fault::Unsure),
            (None, None) => None,
        }
    }
}

/// The epoch on that disk.
#[derive(Debug)]
struct FaultyEpoch(snapshot_git::EpochFile, Arc<Disk>);

impl snapshot_git::Epoch for FaultyEpoch {
    fn current(&self) -> std::io::Result<u64> {
        self.0.current()
    }
    fn bump(&self) -> std::io::Result<()> {
        match self.1.next() {
            None => self.0.bump(),
            Some(wrong) => Err(failure(wrong)),
        }
    }
}

/// Which index the engine is composed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Memory,
    Json,
    Sqlite,
}

/// A workspace under test.
pub(crate) struct World {
    dir: PathBuf,
    /// Removes it in the end, unless it is somebody else's.
    _owned: Option<tempfile::TempDir>,
    kind: Kind,
    pub(crate) memory: Arc<index_store::MemoryIndex>,
    pub(crate) trap: Arc<Trap>,
    pub(crate) disk: Arc<Disk>,
    pub(crate) approver: Arc<Yes>,
    pub(crate) clock: Arc<TestClock>,
    ids: Arc<Counter>,
    pub(crate) lock: Arc<LocalLock>,
    pub(crate) sessions: Arc<testkit::MemoryLog>,
    pub(crate) host: Arc<testkit::FakeHost>,
    pub(crate) policy: CapturePolicy,
    pub(crate) engine: Engine,
}

impl World {
    /// A git repository is at the root when `git` is set.
    pub(crate) fn new(kind: Kind, git: bool, policy: CapturePolicy) -> Self {
        let base = ["/dev/shm", "/tmp"].iter().find(|p| Path::new(p).is_dir()).unwrap();
        let dir = tempfile::Builder::new().prefix("rwd-world-").tempdir_in(base).unwrap();
        let root = dir.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/victim"), "outside").unwrap();
        if git {
            std::fs::create_dir_all(root.join(".git/objects")).unwrap();
            std::fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
            std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            std::fs::write(root.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
                .unwrap();
        }
        Self::on(dir.path().to_owned(), Some(dir), kind, policy, 0)
    }

    /// The world in a directory that another process made and owns. Its ids begin after `first`, so that the two never
    /// give the same.
    pub(crate) fn of_another(dir: PathBuf, kind: Kind, policy: CapturePolicy, first: u64) -> Self {
        Self::on(dir, None, kind, policy, first)
    }

    fn on(dir: PathBuf, owned: Option<tempfile::TempDir>, kind: Kind, policy: CapturePolicy, first: u64) -> Self {
        let memory = Arc::new(index_store::MemoryIndex::new());
        let (trap, disk, approver, clock) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        let (lock, sessions, host) = (Arc::default(), Arc::default(), Arc::default());
        let ids = Arc::new(Counter::after(first));
        let compose = compose(
            &dir,
            kind,
            &memory,
            &trap,
            &disk,
            &approver,
            &clock,
            &ids,
            &lock,
            &sessions,
            &host,
            &policy,
            |files| files,
        );
        let engine = compose.build();
        Self {
            dir,
            _owned: owned,
            kind,
            memory,
            trap,
            disk,
            approver,
            clock,
            ids,
            lock,
            sessions,
            host,
            policy,
            engine,
        }
    }

    pub(crate) fn plain() -> Self {
        Self::new(Kind::Memory, false, CapturePolicy::default())
    }

    /// A new process: nothing but what is stored survives.
    pub(crate) fn reopen(&mut self) {
        // A lock dies with its process.
        self.lock = Arc::default();
        self.composed(|files| files, |builder| builder);
    }

    /// Another engine on the same parts, with something put around the files and more said to the builder.
    pub(crate) fn composed(
        &mut self,
        around: impl FnOnce(Arc<dyn WorkspaceFs>) -> Arc<dyn WorkspaceFs>,
        more: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) {
        let builder = compose(
            &self.dir,
            self.kind,
            &self.memory,
            &self.trap,
            &self.disk,
            &self.approver,
            &self.clock,
            &self.ids,
            &self.lock,
            &self.sessions,
            &self.host,
            &self.policy,
            around,
        );
        self.engine = more(builder).build();
    }

    /// Whether the store can be opened as it lies there.
    pub(crate) fn opens(&self) -> bool {
        let store = self.base().join("store");
        let epoch = Arc::new(snapshot_git::EpochFile::new(store.join("epoch")));
        let config = snapshot_git::UserConfig::none();
        let options = snapshot_git::Options { config, ..snapshot_git::Options::new(epoch) };
        snapshot_git::GitSnapshots::open(&self.root(), &store.join("git"), &store.join("stat.cache"), options).is_ok()
    }

    pub(crate) fn base(&self) -> &Path {
        &self.dir
    }
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join("ws")
    }
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }
    pub(crate) fn write(&self, path: &str, text: &str) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, text).unwrap();
    }
    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap_or_else(|e| format!("<{:?}>", e.kind()))
    }
    pub(crate) fn remove(&self, path: &str) {
        let at = self.at(path);
        if at.symlink_metadata().unwrap().is_dir() {
            std::fs::remove_dir_all(at).unwrap();
        } else {
            std::fs::remove_file(at).unwrap();
        }
    }
    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    pub(crate) fn scan(&self) -> crate::scan::Scan {
        crate::scan::scan(&self.root(), false)
    }

    pub(crate) fn save(&self) -> Saved {
        self.engine.save(&SaveRequest::manual()).unwrap()
    }
    pub(crate) fn turn_start(&self, session: &str, turn: u32) -> Saved {
        self.event(session, turn, PointKind::TurnStart)
    }
    pub(crate) fn turn_end(&self, session: &str, turn: u32) -> Saved {
        self.event(session, turn, PointKind::TurnEnd)
    }
    pub(crate) fn event(&self, session: &str, turn: u32, kind: PointKind) -> Saved {
        let request =
            SaveRequest { turn: Some(Turn(turn)), ..SaveRequest::of(SessionKey::parse(session).unwrap(), kind) };
        self.engine.save(&request).unwrap()
    }
}

/// A restore to `target` with the defaults.
#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub(crate) fn to(target: impl ToString) -> RestoreRequest {
    RestoreRequest { target: target.to_string(), force: true, ..RestoreRequest::default() }
}

/// The same, exact.
pub(crate) fn exactly(target: impl ToString) -> RestoreRequest {
    RestoreRequest { policy: RestorePolicy { exact: true, ..RestorePolicy::default() }, ..to(target) }
}

pub(crate) fn undo() -> ReverseRequest {
    ReverseRequest { force: true, ..ReverseRequest::default() }
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

pub(crate) fn names(paths: &[RelPath]) -> Vec<String> {
    paths.iter().map(RelPath::to_lossy).collect()
}

#[expect(clippy::too_many_arguments, reason = "one place, all parts of one test world")]
fn compose(
    base: &Path,
    kind: Kind,
    memory: &Arc<index_store::MemoryIndex>,
    trap: &Arc<Trap>,
    disk: &Arc<Disk>,
    approver: &Arc<Yes>,
    clock: &Arc<TestClock>,
    ids: &Arc<Counter>,
    lock: &Arc<LocalLock>,
    sessions: &Arc<testkit::MemoryLog>,
    host: &Arc<testkit::FakeHost>,
    policy: &CapturePolicy,
    around: impl FnOnce(Arc<dyn WorkspaceFs>) -> Arc<dyn WorkspaceFs>,
) -> EngineBuilder {
    let root = base.join("ws");
    let store = base.join("store");
    std::fs::create_dir_all(&store).unwrap();
    let epoch = Arc::new(FaultyEpoch(snapshot_git::EpochFile::new(store.join("epoch")), Arc::clone(disk)));
    let config = snapshot_git::UserConfig::none();
    let faults = Some(Arc::clone(disk) as Arc<dyn snapshot_git::Faults>);
    let watchers = Some(Arc::new(snapshot_git::SystemWatchers) as Arc<dyn snapshot_git::Watchers>);
    let options = snapshot_git::Options { config, faults, watchers, ..snapshot_git::Options::new(epoch) };
    let snapshots =
        snapshot_git::GitSnapshots::open(&root, &store.join("git"), &store.join("stat.cache"), options).unwrap();
    let index: Arc<dyn IndexStore> = match kind {
        Kind::Memory => Arc::clone(memory) as Arc<dyn IndexStore>,
        Kind::Json => {
            let (path, options) = (store.join("index.jsonl"), index_store::JsonOptions::default());
            let opened = if path.exists() {
                index_store::JsonIndex::open(&path, options)
            } else {
                index_store::JsonIndex::create(&path, options)
            };
            Arc::new(opened.unwrap())
        }
        Kind::Sqlite => {
            let (path, options) = (store.join("index.sqlite"), index_store::SqliteOptions::default());
            let opened = if path.exists() {
                index_store::SqliteIndex::open(&path, options)
            } else {
                index_store::SqliteIndex::create(&path, options)
            };
            Arc::new(opened.unwrap())
        }
    };
    let faults = Arc::clone(disk) as Arc<dyn testkit::index_suite::ApplyFaults>;
    let index = Arc::new(testkit::index_suite::FaultyIndex::with_faults(index, faults)) as Arc<dyn IndexStore>;
    let options =
        workspace_fs::Options { crash: Arc::clone(trap) as Arc<dyn Crash>, ..workspace_fs::Options::default() };
    let files = RealWorkspace::with_options(&root, options).unwrap();
    Engine::builder(Required {
        place: Place { workspace: WorkspaceId::from_bytes([7; 16]), incarnation: 0 },
        snapshots: Arc::new(snapshots) as Arc<dyn SnapshotBackend>,
        index,
        files: around(Arc::new(files)),
        lock: Arc::clone(lock) as Arc<dyn StoreLock>,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        ids: Arc::clone(ids) as Arc<dyn IdSource>,
    })
    .approver(Arc::clone(approver) as Arc<dyn Approver>)
    .sessions(Arc::clone(sessions) as Arc<dyn SessionLog>)
    .host_state(Arc::clone(host) as Arc<dyn HostState>)
    .capture_policy(policy.clone())
}
