//! Keeps folds of one session apart across processes (001-13).

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoint_core::{Held, LockError, SessionKey, fold::FoldLocks};
use data_encoding::HEXLOWER;
use durable_fs::{FileLock, LockFailure, LockMode, create_private_dirs};
use sha2::{Digest as _, Sha256};

/// One lock file per session in a directory of ours. The files stay: a lock that is removed while somebody waits for it
/// protects nothing.
#[derive(Clone, Debug)]
pub struct FileFolds {
    directory: PathBuf,
}

#[derive(Debug)]
struct Locked(#[expect(dead_code, reason = "held, not read")] FileLock);

impl Held for Locked {}

impl FileFolds {
    /// Locks in `directory`, which is made when the first one is taken.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }
}

impl FoldLocks for FileFolds {
    fn try_hold(&self, session: &SessionKey) -> Result<Box<dyn Held>, LockError> {
        let failed = |error: durable_fs::Error| LockError::Failed { source: error.into() };
        create_private_dirs(&self.directory).map_err(failed)?;
        // Ids may be longer than a name can be, and differ in case alone.
        let name = Sha256::digest(format!("{}:{}", session.harness(), session.id()));
        let name = HEXLOWER.encode(name.get(..16).unwrap_or(&name));
        let path = self.directory.join(format!("fold-{name}.lock"));
        match FileLock::acquire(&path, LockMode::Exclusive, Duration::ZERO) {
            Ok(lock) => Ok(Box::new(Locked(lock))),
            Err(LockFailure::Busy) => Err(LockError::Busy),
            Err(LockFailure::Io(error)) => Err(failed(error)),
            Err(other) => Err(LockError::Failed { source: other.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two openings of one file stand for two processes.
    #[test]
    fn c001_13_another_process_folds_the_session_at_the_same_time() {
        let scratch = tempfile::tempdir().unwrap();
        let [a, b] = [(); 2].map(|()| FileFolds::new(&scratch.path().join("folds")));
        let [s, t] = ["s", "S"].map(|id| SessionKey::new("dsh", id).unwrap());
        let held = a.try_hold(&s).unwrap();
        assert!(matches!(b.try_hold(&s), Err(LockError::Busy)));
        drop(b.try_hold(&t).unwrap());
        drop(held);
        drop(b.try_hold(&s).unwrap());
        drop(std::fs::File::create(scratch.path().join("file")).unwrap());
        let nowhere = FileFolds::new(&scratch.path().join("file/folds"));
        assert!(matches!(nowhere.try_hold(&s), Err(LockError::Failed { .. })));
    }
}
