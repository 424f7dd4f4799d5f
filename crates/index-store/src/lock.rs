//! The advisory lock of a workspace.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use checkpoint_core::{Held, LockError, LockMode, StoreLock};

use crate::durable::{self, Locked};

/// The lock file of a workspace: `flock`, so held by an open file and released with it, also when the process dies.
///
/// Two locks taken through one value exclude each other like those of two processes.
#[derive(Clone, Debug)]
pub struct WorkspaceLock {
    path: PathBuf,
}

/// A lock that is held. The descriptor is closed on `exec`, so no child of ours keeps it.
#[derive(Debug)]
struct HeldFile {
    _locked: Locked,
}

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

    fn open(&self) -> io::Result<File> {
        match durable::open_or_create(&self.path) {
            // A store that may not be written can still be read, under the same lock.
            Err(error) if durable::is_read_only(&error) => File::open(&self.path),
            other => other,
        }
    }
}

impl StoreLock for WorkspaceLock {
    fn acquire(&self, mode: LockMode, wait: Duration) -> Result<Box<dyn Held>, LockError> {
        let failed = |source: io::Error| LockError::Failed { source: Box::new(source) };
        let begun = Instant::now();
        loop {
            let file = self.open().map_err(failed)?;
            if !durable::lock(&file, mode, wait.saturating_sub(begun.elapsed())).map_err(failed)? {
                return Err(LockError::Busy);
            }
            let file = Arc::new(file);
            let locked = Locked::new(Arc::clone(&file));
            // A lock on a file that lost its name excludes nobody.
            if durable::is_at(&file, &self.path).map_err(failed)? {
                return Ok(Box::new(HeldFile { _locked: locked }));
            }
        }
    }
}
