//! Workspace snapshots in a private git object store: walk, change-detection cache, packs.
//!
//! A capture reads the workspace in one parallel pass, hashes what its stamps do not vouch for, and leaves two trees
//! in a store of its own: one that is what `git write-tree` would give, one for what a git tree cannot say. Nothing
//! below the workspace or the user's `.git` is opened for writing, and no program is run.
//!
//! ```
//! use std::{collections::BTreeSet, sync::Arc};
//!
//! use checkpoint_core::{CapturePolicy, CaptureRequest, NoProgress, PathState, RelPath, SnapshotBackend};
//! use snapshot_git::{EpochFile, GitSnapshots, Options};
//!
//! let dir = tempfile::tempdir()?;
//! let root = dir.path().join("work");
//! std::fs::create_dir(&root)?;
//! std::fs::write(root.join("a.txt"), "one")?;
//! let epoch = Arc::new(EpochFile::new(dir.path().join("epoch")));
//! let snapshots = GitSnapshots::open(&root, &dir.path().join("git"), &dir.path().join("stat.cache"), Options::new(epoch))?;
//! let captured = snapshots.capture(&CaptureRequest {
//!     base: None,
//!     held: &BTreeSet::new(),
//!     not_held: &BTreeSet::new(),
//!     include: &BTreeSet::new(),
//!     temporaries: &[],
//!     policy: &CapturePolicy::default(),
//!     write: true,
//!     watched: false,
//!     deadline: None,
//!     progress: &NoProgress,
//! })?;
//! let state = snapshots.state(&captured.snapshot, &RelPath::new("a.txt")?)?;
//! assert!(matches!(state, PathState::File { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make the worlds they need"))]

mod assemble;
mod cache;
mod capture;
mod epoch;
mod meta;
mod other;
mod read;
mod rules;
mod seed;
mod store;
mod tree;
mod user_repo;
mod walk;
mod watch;

use std::{
    io::Read,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use checkpoint_core::{
    Assembled, BlobStore, CaptureRequest, Captured, Change, FileVersion, GcReport, Holding, LiveObjects, Mode,
    ObjectId, PathState, Progress, RelPath, Removal, Skipped, Snapshot, SnapshotBackend, SnapshotError, StateSource,
    Usage, VerifyLevel,
};

pub use epoch::{Epoch, EpochFile};
pub use other::{OtherObjects, OtherState};
pub use rules::Globs;
pub use store::{Fault, Faults};
pub use user_repo::{UserConfig, git_common_dir};
pub use watch::{Event, SystemWatchers, Watcher, Watchers, Writing};

use store::Store;

/// How a [`GitSnapshots`] works, beyond what each capture is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// rwd's data directory: left out, and listed as reserved, where it lies inside the root.
    pub data_dir: Option<PathBuf>,
    /// Further paths that are never captured, with all below them.
    pub leave_out: Vec<RelPath>,
    /// The user's own git settings.
    pub config: UserConfig,
    /// The store's epoch.
    pub epoch: Arc<dyn Epoch>,
    /// Workers of a walk, at least one.
    pub threads: usize,
    /// For tests: lets operations on the store fail.
    pub faults: Option<Arc<dyn Faults>>,
    /// For a process that stays: watches the workspace, so that a capture that is allowed to
    /// ([`CaptureRequest::watched`]) looks only where something changed.
    pub watchers: Option<Arc<dyn Watchers>>,
}

impl Options {
    /// Two workers, the user's git settings from the environment, nothing left out.
    #[must_use]
    pub fn new(epoch: Arc<dyn Epoch>) -> Self {
        Self {
            data_dir: None,
            leave_out: Vec::new(),
            config: UserConfig::from_env(),
            epoch,
            threads: 2,
            faults: None,
            watchers: None,
        }
    }
}

/// Snapshots of one workspace in one private store.
#[derive(Debug)]
pub struct GitSnapshots {
    root: PathBuf,
    store: Store,
    cache: PathBuf,
    options: Options,
    resident: Option<Mutex<watch::Resident>>,
    descent: read::Descent,
}

impl GitSnapshots {
    /// Binds the workspace at `root` to the store at `store_dir`, which is made when it is not there.
    ///
    /// `cache` is the change-detection cache, a file that may be lost at any time.
    ///
    /// # Errors
    /// When the root is no directory or the store cannot be opened.
    pub fn open(root: &Path, store_dir: &Path, cache: &Path, options: Options) -> Result<Self, SnapshotError> {
        let root = root.canonicalize().map_err(|source| SnapshotError::Io { path: root.to_owned(), source })?;
        let store = Store::open(store_dir)?;
        if let Some(faults) = &options.faults {
            store.ops().set_faults(Arc::clone(faults));
        }
        let resident = options.watchers.clone().map(|watchers| Mutex::new(watch::Resident::new(watchers)));
        Ok(Self { root, store, cache: cache.to_owned(), options, resident, descent: read::Descent::default() })
    }

    /// How many packs the store has, as far as this handle has looked. [`SnapshotBackend::consolidate`] keeps those of
    /// small captures few.
    ///
    /// # Errors
    /// When the store cannot be listed.
    pub fn pack_count(&self) -> Result<usize, SnapshotError> {
        self.store.pack_count()
    }

    /// Syncs of files and directories that this handle has made in the store.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.store.syncs()
    }

    /// Captures of this handle that a watcher saved the walk.
    #[must_use]
    pub fn hinted(&self) -> u64 {
        self.watch(|resident| resident.hinted).unwrap_or(0)
    }

    /// Why the workspace cannot be watched, where this handle was to and has tried.
    #[must_use]
    pub fn unwatched(&self) -> Option<String> {
        self.watch(|resident| resident.off().map(str::to_owned)).flatten()
    }

    fn watch<T>(&self, of: impl FnOnce(&watch::Resident) -> T) -> Option<T> {
        self.resident.as_ref().map(|resident| of(&resident.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Forgets the trees of dry captures, which are kept in memory until then.
    pub fn forget_dry_captures(&self) {
        self.descent.forget();
        self.store.clear_overlay();
    }

    fn bump_epoch(&self) -> Result<(), SnapshotError> {
        let failed = |source: std::io::Error| SnapshotError::Other {
            what: "moving the store's epoch on",
            source: source.into(),
        };
        self.options.epoch.bump().map_err(failed)?;
        cache::forget_beside(&self.cache);
        self.descent.forget();
        Ok(())
    }

    /// The workspace's root, without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl BlobStore for GitSnapshots {
    fn open_blob(&self, id: &ObjectId) -> Result<Box<dyn Read + Send + '_>, SnapshotError> {
        self.store.open_blob(id)
    }

    fn hash_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        Store::hash_blob(len, content)
    }

    fn put_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        self.store.put_blob(len, content)
    }

    fn blob_len(&self, id: &ObjectId) -> Result<u64, SnapshotError> {
        match self.store.header(&store::to_gix(id))? {
            (gix::objs::Kind::Blob, len) => Ok(len),
            _ => Err(store::damaged(&store::to_gix(id), "not a blob")),
        }
    }

    fn has_blob(&self, id: &ObjectId) -> Result<bool, SnapshotError> {
        self.store.has_blob(id)
    }

    fn check_blob(&self, id: &ObjectId) -> Result<(), SnapshotError> {
        read::check_blob(&self.store, id)
    }
}

impl SnapshotBackend for GitSnapshots {
    fn name(&self) -> &'static str {
        "git"
    }

    fn capture(&self, request: &CaptureRequest<'_>) -> Result<Captured, SnapshotError> {
        capture::capture(self, request)
    }

    fn diff(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        visit: &mut dyn FnMut(Change) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        read::diff(&self.store, before, after, visit)
    }

    fn list(
        &self,
        snapshot: &Snapshot,
        under: Option<&RelPath>,
        visit: &mut dyn FnMut(RelPath, PathState) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        read::list(&self.store, snapshot, under, visit)
    }

    fn state(&self, snapshot: &Snapshot, path: &RelPath) -> Result<PathState, SnapshotError> {
        read::state(&self.store, &self.descent, snapshot, path)
    }

    fn skipped(&self, snapshot: &Snapshot) -> Result<Vec<Skipped>, SnapshotError> {
        read::skipped(&self.store, snapshot)
    }

    fn ignored_at(&self, snapshot: &Snapshot, paths: &[RelPath]) -> Result<Vec<bool>, SnapshotError> {
        rules::ignored_at(&self.store, snapshot, paths)
    }

    fn verify(&self, snapshot: &Snapshot, level: VerifyLevel) -> Result<(), SnapshotError> {
        read::verify(&self.store, snapshot, level)
    }

    fn verify_all(&self, snapshots: &[Snapshot], level: VerifyLevel) -> Vec<Result<(), SnapshotError>> {
        read::verify_all(&self.store, snapshots, level)
    }

    fn verify_store(&self) -> Result<Vec<String>, SnapshotError> {
        self.store.unsound_files()
    }

    fn gc(&self, live: &LiveObjects, dry_run: bool, progress: &dyn Progress) -> Result<GcReport, SnapshotError> {
        read::gc(&self.store, live, dry_run, progress, &|| self.bump_epoch())
    }

    fn find(&self, snapshots: &[Snapshot], removal: &Removal<'_>) -> Vec<Result<Holding, SnapshotError>> {
        read::find(&self.store, snapshots, removal)
    }

    fn without(&self, snapshots: &[Snapshot], removal: &Removal<'_>) -> Result<Vec<Snapshot>, SnapshotError> {
        // A cache that knows of the old trees must not bring them back, even if this ends half-way.
        self.bump_epoch()?;
        read::without(&self.store, snapshots, removal)
    }

    fn assemble(
        &self,
        sources: &[&dyn StateSource],
        budget: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<Result<Assembled, SnapshotError>>, SnapshotError> {
        assemble::assemble(&self.store, sources, budget, progress)
    }

    fn is_scattered(&self) -> Result<bool, SnapshotError> {
        read::is_scattered(&self.store)
    }

    fn consolidate(&self, progress: &dyn Progress) -> Result<u64, SnapshotError> {
        read::consolidate(&self.store, progress)
    }

    fn remember(&self, read: &[(&RelPath, Mode, ObjectId, FileVersion)]) {
        if let Ok(epoch) = self.options.epoch.current() {
            cache::remember(&self.cache, epoch, read);
        }
    }

    fn usage(&self) -> Result<Usage, SnapshotError> {
        read::usage(&self.store)
    }
}
