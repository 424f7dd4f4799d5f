//! Workspace snapshots in a private git object store: walk, change-detection cache, packs.
#![allow(dead_code, reason = "being built")]

mod cache;
mod capture;
mod epoch;
mod meta;
mod rules;
mod store;
mod user_repo;
mod walk;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use checkpoint_core::{CaptureRequest, Captured, RelPath, Snapshot, SnapshotError};

pub use epoch::{Epoch, EpochFile};
pub use user_repo::UserConfig;

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
}

impl Options {
    /// Two workers, the user's git settings from the environment, nothing left out.
    #[must_use]
    pub fn new(epoch: Arc<dyn Epoch>) -> Self {
        Self { data_dir: None, leave_out: Vec::new(), config: UserConfig::from_env(), epoch, threads: 2 }
    }
}

/// Snapshots of one workspace in one private store.
#[derive(Debug)]
pub struct GitSnapshots {
    root: PathBuf,
    store: Store,
    cache: PathBuf,
    options: Options,
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
        Ok(Self { root, store: Store::open(store_dir)?, cache: cache.to_owned(), options })
    }
    pub fn capture(&self, request: &CaptureRequest<'_>) -> Result<Captured, SnapshotError> {
        capture::capture(self, request)
    }
    pub fn ignored_at(&self, snapshot: &Snapshot, paths: &[RelPath]) -> Result<Vec<bool>, SnapshotError> {
        rules::ignored_at(&self.store, snapshot, paths)
    }
}
