//! The state of a session, in a file of its own beside the index: `hooks/HARNESS-ID.json`, and a lock file.
//!
//! Two hooks of one session run one after the other. The file is not synced: it may be lost.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use checkpoint_core::SessionKey;
use durable_fs::{Access, Durability, FileLock, LockFailure, LockMode, create_private_dirs, replace};
use harness_adapter::hooks::state::SessionState;

use crate::error::CliError;

/// Files of sessions that did nothing for so long are removed.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Holds one session's state until dropped.
#[derive(Debug)]
pub(super) struct Kept {
    file: PathBuf,
    /// What is known.
    pub(super) state: SessionState,
    /// Nothing was known.
    pub(super) fresh: bool,
    _lock: FileLock,
}

impl Kept {
    /// Reads the state of a session, waiting at most `wait` for another hook of it.
    pub(super) fn open(dir: &Path, session: &SessionKey, wait: Duration) -> Result<Self, CliError> {
        let hooks = dir.join("hooks");
        create_private_dirs(&hooks).map_err(failed)?;
        let name = format!("{}-{}", session.harness(), session.id());
        let lock = FileLock::acquire(&hooks.join(format!("{name}.lock")), LockMode::Exclusive, wait);
        let lock = lock.map_err(|error| match error {
            LockFailure::Busy => CliError::Engine(checkpoint_core::LockError::Busy.into()),
            other => CliError::failure("the session's lock cannot be taken", other),
        })?;
        let file = hooks.join(format!("{name}.json"));
        let stored = std::fs::read(&file).ok().and_then(|bytes| SessionState::read(&bytes));
        let fresh = stored.is_none();
        Ok(Self { file, state: stored.unwrap_or_default(), fresh, _lock: lock })
    }

    /// Writes it.
    pub(super) fn keep(&self) -> Result<(), CliError> {
        replace(&self.file, &self.state.write(), Access::Private, Durability::Derived).map_err(failed)
    }
}

fn failed(error: durable_fs::Error) -> CliError {
    CliError::failure("the session's state cannot be kept", error)
}

/// Removes what is known of sessions that are long over.
pub(super) fn sweep(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir.join("hooks")) else { return };
    for entry in entries.flatten() {
        let old = entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| age(at) > KEPT);
        if old && let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "not removed");
        }
    }
}

/// How old a file is; a time in the future is no age.
fn age(at: SystemTime) -> Duration {
    at.elapsed().unwrap_or_default()
}
