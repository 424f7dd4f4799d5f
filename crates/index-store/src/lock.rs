//! The advisory lock of a workspace.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoint_core::{Held, LockError, LockMode, StoreLock};
use durable_fs::{FileLock, LockFailure};

use crate::durable::leaf_mode;

/// The lock file of a workspace: `flock`, so held by an open file and released with it, also when the process dies.
///
/// Two locks taken through one value exclude each other like those of two processes.
#[derive(Clone, Debug)]
pub struct WorkspaceLock {
    path: PathBuf,
}

/// A lock that is held. The descriptor is closed on `exec`, so no child of ours keeps it.
#[derive(Debug)]
struct HeldFile(#[expect(dead_code, reason = "held, not read")] FileLock);

impl Held for HeldFile {}

impl WorkspaceLock {
    /// The lock on the file `path`, which is created when it is first taken.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl StoreLock for WorkspaceLock {
    fn acquire(&self, mode: LockMode, wait: Duration) -> Result<Box<dyn Held>, LockError> {
        match FileLock::acquire(&self.path, leaf_mode(mode), wait) {
            Ok(lock) => Ok(Box::new(HeldFile(lock))),
            Err(LockFailure::Busy) => Err(LockError::Busy),
            Err(error) => Err(LockError::Failed { source: Box::new(error) }),
        }
    }
}
