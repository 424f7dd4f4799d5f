//! The state of a session, in a file of its own beside the index: `hooks/HARNESS-ID.json`, and a lock file.
//!
//! Two hooks of one session run one after the other. The file is not synced: it may be lost.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use checkpoint_core::SessionKey;
use durable_fs::{Access, Durability, FileLock, LockMode, create_private_dirs, replace};
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
        let lock = lock.map_err(|failure| CliError::unlocked(failure, "the session's lock cannot be taken"))?;
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
///
/// A lock file goes only while it is held here: one that another hook holds would keep nobody out any more. It is not
/// written when it is taken, so that its age says nothing while there is a state.
pub(super) fn sweep(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir.join("hooks")) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let old = entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|at| age(at) > KEPT);
        let (state, lock) = (path.with_extension("json"), path.with_extension("lock"));
        let goes_with_state = path == lock && state.exists();
        if !old || goes_with_state {
            continue;
        }
        if path != state && path != lock {
            // What a write that was killed left behind.
            remove(&path);
        } else if let Ok(_held) = FileLock::acquire(&lock, LockMode::Exclusive, Duration::ZERO) {
            remove(&state);
            remove(&lock);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "not removed");
    }
}

/// How old a file is; a time in the future is no age.
fn age(at: SystemTime) -> Duration {
    at.elapsed().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of one session, with how many days ago each was written.
    fn written(dir: &Path, files: &[(&str, u64)]) {
        for (name, days) in files {
            let file = std::fs::File::create(dir.join("hooks").join(name)).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - Duration::from_hours(24 * days)).unwrap();
        }
    }

    /// A lock that was removed under its holder let a second hook of the session in.
    #[test]
    fn only_sessions_that_are_over_and_at_rest_are_forgotten() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        create_private_dirs(&dir.join("hooks")).unwrap();
        let over = [("claude-over.json", 40), ("claude-over.lock", 50), ("claude-none.lock", 40), (".rwd-1-1.tmp", 40)];
        let kept = [("a-at.work.json", 40), ("a-at.work.lock", 50), ("a-long.json", 1), ("a-long.lock", 50)];
        written(dir, &over);
        written(dir, &kept);
        let held = FileLock::acquire(&dir.join("hooks/a-at.work.lock"), LockMode::Exclusive, Duration::ZERO).unwrap();
        sweep(dir);
        let mut left: Vec<_> = std::fs::read_dir(dir.join("hooks")).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, kept.map(|(name, _)| name));
        drop(held);
        sweep(dir);
        assert!(!dir.join("hooks/a-at.work.json").exists() && !dir.join("hooks/a-at.work.lock").exists());
    }
}
