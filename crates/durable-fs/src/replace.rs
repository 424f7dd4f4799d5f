//! Durable replacement of small files, durable creation of directories.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{self, Mode, OFlags};

use crate::{Error, dir::narrow};

/// Who may read a replaced file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Its owner only (0600), from the first byte.
    Private,
    /// Those who could read the file that is replaced; where there was none: as the umask says.
    Keep,
}

/// Whether a replacement outlives a power loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Content and name are on disk on return.
    Synced,
    /// Old or new after a crash of the process; after a power loss anything. For what can be derived again.
    Derived,
}

/// Distinguishes the temporaries of one process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Replaces the file at `path` by one that holds `bytes`, in one step: readers see the old file or the new one.
///
/// A symbolic link at `path` is replaced itself. After an error the old file stands and no temporary is left, except
/// that with a failed sync of the directory the new file may already be seen.
pub fn replace(path: &Path, bytes: &[u8], access: Access, durability: Durability) -> Result<(), Error> {
    let parent = parent_of(path);
    let (temporary, mut file) = create_temporary(&parent)?;
    let written = (|| {
        file.write_all(bytes).map_err(|e| Error::new("write", &temporary, e))?;
        if access == Access::Keep {
            let mode = kept_mode(path)?;
            fs::fchmod(&file, Mode::from_raw_mode(narrow(mode)))
                .map_err(|e| Error::new("set the mode of", &temporary, e))?;
        }
        if durability == Durability::Synced {
            file.sync_all().map_err(|e| Error::new("sync", &temporary, e))?;
        }
        fs::rename(&temporary, path).map_err(|e| Error::new("replace", path, e))
    })();
    if written.is_err() {
        // The first failure is what the caller needs; the temporary is ours and holds nothing else.
        let _ = fs::unlink(&temporary);
        return written;
    }
    if durability == Durability::Synced {
        sync_dir(&parent)?;
    }
    Ok(())
}

/// Makes entries created, renamed and removed in a directory durable.
pub fn sync_dir(path: &Path) -> Result<(), Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::empty()).and_then(fs::fsync).map_err(|e| Error::new("sync the directory", path, e))
}

/// Creates a directory and those above it that are missing, each for its owner only (0700), and makes them durable.
///
/// Directories that exist keep their mode. Fine when two processes do it at the same time.
pub fn create_private_dirs(path: &Path) -> Result<(), Error> {
    let mut missing: Vec<&Path> = Vec::new();
    for dir in path.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
        match fs::stat(dir) {
            Ok(found) if fs::FileType::from_raw_mode(found.st_mode).is_dir() => break,
            Ok(_) => {
                return Err(Error::new("create a directory at", dir, io::ErrorKind::NotADirectory));
            }
            Err(rustix::io::Errno::NOENT) => missing.push(dir),
            Err(e) => return Err(Error::new("look at", dir, e)),
        }
    }
    for dir in missing.into_iter().rev() {
        match fs::mkdir(dir, Mode::from(0o700)) {
            // Created by another process just now; it must be durable before anything below is relied on.
            Ok(()) | Err(rustix::io::Errno::EXIST) => sync_dir(&parent_of(dir))?,
            Err(e) => return Err(Error::new("create the directory", dir, e)),
        }
    }
    Ok(())
}

pub(crate) fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

pub(crate) fn create_temporary(parent: &Path) -> Result<(PathBuf, File), Error> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".rwd-{}-{n}.tmp", std::process::id()));
        match fs::open(&path, flags, Mode::from(0o600)) {
            Ok(fd) => return Ok((path, fd.into())),
            // Left by a dead process that had our number; it may also live in another container. Never reuse.
            Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(Error::new("create", path, e)),
        }
    }
}

/// Permission bits that a replacement of `path` gets.
pub(crate) fn kept_mode(path: &Path) -> Result<u32, Error> {
    match fs::stat(path) {
        Ok(found) => Ok(found.st_mode & 0o7777),
        Err(rustix::io::Errno::NOENT) => Ok(0o666 & !current_umask()),
        Err(e) => Err(Error::new("look at", path, e)),
    }
}

/// Reads the umask without a moment in which it is another one, where the system tells.
fn current_umask() -> u32 {
    let told = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
        u32::from_str_radix(line.trim(), 8).ok()
    });
    told.unwrap_or(0o022)
}
