//! Advisory locks that the system releases when their process dies.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fs::{self, Mode, OFlags};

use crate::{Error, Stat};

/// Whether others may hold the lock too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Others may hold it shared.
    Shared,
    /// Nobody else holds it.
    Exclusive,
}

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockFailure {
    /// Somebody else holds it, and did so until the deadline.
    #[error("the lock is held by another process")]
    Busy,
    /// The lock file cannot be used.
    #[error(transparent)]
    Io(#[from] Error),
}

/// Holds the lock of a file that its owner has open until dropped.
///
/// The lock belongs to the open file, not to this value: two of the same file are one lock.
#[derive(Debug)]
pub struct OpenLock(Arc<File>);

/// Closing the file is not enough: a process that another thread is just starting has a copy of every descriptor until
/// it runs its program, and would keep the lock that long.
impl Drop for OpenLock {
    fn drop(&mut self) {
        // If this fails, closing the file is what is left.
        let _closed_instead = self.0.unlock();
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

impl OpenLock {
    /// Locks an open file, waiting for at most `wait`; `None` when somebody else kept it that long.
    ///
    /// # Errors
    /// When the file cannot be locked at all.
    pub fn acquire(file: &Arc<File>, mode: LockMode, wait: Duration) -> io::Result<Option<Self>> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let tried = match mode {
                LockMode::Shared => file.try_lock_shared(),
                LockMode::Exclusive => file.try_lock(),
            };
            match tried {
                Ok(()) => return Ok(Some(Self(Arc::clone(file)))),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let left = wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Holds the lock of a lock file until dropped.
///
/// The file is opened once per acquisition, with close-on-exec, and the handle is not given away, so that no child
/// process can keep it. It cannot be upgraded: two holders that tried would wait for each other.
#[derive(Debug)]
pub struct FileLock(#[cfg_attr(not(test), expect(dead_code, reason = "held, not read"))] OpenLock);

impl FileLock {
    /// Locks the file at `path`, created for its owner only when missing, waiting for at most `wait`.
    ///
    /// Where the file may not be written, a handle for reading does as well. A lock file that is removed or replaced
    /// while it is waited for is opened anew: a lock on a file that nobody else can find would protect nothing.
    ///
    /// # Errors
    /// [`LockFailure`].
    pub fn acquire(path: &Path, mode: LockMode, wait: Duration) -> Result<Self, LockFailure> {
        let start = Instant::now();
        loop {
            let file = Arc::new(open(path)?);
            let lock = OpenLock::acquire(&file, mode, wait.saturating_sub(start.elapsed()))
                .map_err(|e| Error::new("lock", path, e))?
                .ok_or(LockFailure::Busy)?;
            if still_there(path, &lock.0)? {
                return Ok(Self(lock));
            }
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut opened = fs::open(path, flags | OFlags::RDWR | OFlags::CREATE, Mode::from(0o600));
    if let Err(rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) = opened {
        opened = fs::open(path, flags | OFlags::RDONLY, Mode::empty());
    }
    opened.map(File::from).map_err(|e| Error::new("open the lock file", path, e))
}

fn still_there(path: &Path, file: &File) -> Result<bool, Error> {
    let failed = |e: io::Error| Error::new("look at the lock file", path, e);
    let held = Stat::of(file).map_err(failed)?;
    match Stat::at(fs::CWD, path.as_os_str().as_encoded_bytes()) {
        Ok(named) => Ok(named.same_file(&held)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second descriptor of the same open file is what a child has between its fork and its exec.
    #[test]
    fn a_lock_that_was_let_go_is_free_though_a_child_has_the_descriptor_still() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            let held = FileLock::acquire(&path, mode, Duration::ZERO).unwrap();
            let child = held.0.0.try_clone().unwrap();
            let taken = || FileLock::acquire(&path, LockMode::Exclusive, Duration::ZERO);
            assert!(matches!(taken(), Err(LockFailure::Busy)));
            drop(held);
            drop(taken().unwrap());
            drop(child);
        }
    }
}
