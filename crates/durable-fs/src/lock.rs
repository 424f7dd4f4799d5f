//! Advisory locks that the system releases when their process dies.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
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

/// Holds a lock until dropped.
///
/// The lock belongs to the open file: the file is opened once per acquisition, with close-on-exec, and the handle is
/// not given away, so that no child process can keep it. It cannot be upgraded: two holders that tried would wait for
/// each other.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

impl FileLock {
    /// Locks the file at `path`, created for its owner only when missing, waiting for at most `wait`.
    ///
    /// Where the file may not be written, a handle for reading does as well. A lock file that is removed or replaced
    /// while it is waited for is opened anew: a lock on a file that nobody else can find would protect nothing.
    pub fn acquire(path: &Path, mode: LockMode, wait: Duration) -> Result<Self, LockFailure> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut file = open(path)?;
        loop {
            let tried = match mode {
                LockMode::Shared => file.try_lock_shared(),
                LockMode::Exclusive => file.try_lock(),
            };
            match tried {
                Ok(()) if still_there(path, &file)? => return Ok(Self { _file: file }),
                Ok(()) => {
                    file = open(path)?;
                    continue;
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(Error::new("lock", path, e).into()),
            }
            let left = wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(LockFailure::Busy);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
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
