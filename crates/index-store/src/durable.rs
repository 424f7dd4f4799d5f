//! What this crate needs of files and `durable-fs` does not have: new files that replace nothing, and the litter of
//! crashed processes.
//!
//! Everything made here is owner-only from its first byte: files 0600, directories 0700.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use checkpoint_core::LockMode;
use durable_fs::OpenLock;
use rustix::fs::{CWD, RenameFlags};

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    durable_fs::sync_dir(path).map_err(|error| error.source)
}

/// The directory that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(up) if up.as_os_str().is_empty() => Path::new("."),
        Some(up) => up,
        None => path,
    }
}

/// Opens a file for reading and writing, creating it when it is missing.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Creates a file that must not be there.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A name beside `path` that nobody else uses.
pub(crate) fn temporary(path: &Path) -> io::Result<PathBuf> {
    beside::<8>(path, |random| format!(".{random}.tmp"))
}

/// A name beside `path` for a file that is kept because it is damaged.
pub(crate) fn aside(path: &Path) -> io::Result<PathBuf> {
    beside::<4>(path, |random| format!(".damaged-{random}"))
}

/// The name of `path` with an ending made of so many random bytes, as hexadecimal digits.
fn beside<const BYTES: usize>(path: &Path, ending: impl FnOnce(&str) -> String) -> io::Result<PathBuf> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(ending(&data_encoding::HEXLOWER.encode(&random)));
    Ok(path.with_file_name(name))
}

/// Gives a complete file its name unless that is taken; `false` when it is, and the file is gone then.
pub(crate) fn publish(temporary: &Path, path: &Path) -> io::Result<bool> {
    File::open(temporary)?.sync_all()?;
    let renamed = match rustix::fs::renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        // Not every file system can rename without replacing; a second link cannot replace anything either.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            std::fs::hard_link(temporary, path)
        }
        other => other.map_err(io::Error::from),
    };
    let published = match renamed {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => {
            discard(temporary);
            return Err(error);
        }
    };
    discard(temporary);
    sync_dir(parent(path))?;
    Ok(published)
}

/// Removes temporaries that crashed processes left in a directory: those last written before `before`, in
/// milliseconds since 1970. Gives their number.
pub(crate) fn sweep(dir: &Path, before: i64) -> io::Result<u64> {
    let mut swept = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        if facts.is_file() && is_temporary(&entry.file_name()) && facts.mtime() < before.div_euclid(1_000) {
            std::fs::remove_file(entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// `NAME.0123456789abcdef.tmp` and what SQLite puts beside it, and `.rwd-PID-N.tmp` of `durable-fs`.
fn is_temporary(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let Some((stem, "" | "-journal" | "-wal" | "-shm")) = name.rsplit_once(".tmp") else { return false };
    if let Some(numbers) = stem.strip_prefix(".rwd-") {
        return !numbers.is_empty() && numbers.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    }
    stem.rsplit_once('.').is_some_and(|(name, digits)| {
        let sound = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        !name.is_empty() && digits.len() == 16 && sound
    })
}

/// Removes a temporary of ours; one that cannot be removed is only litter.
pub(crate) fn discard(temporary: &Path) {
    if let Err(error) = std::fs::remove_file(temporary)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(path = %temporary.display(), %error, "a temporary stays behind");
    }
}

/// Waits up to `wait` for an advisory lock on an open file; `None` when somebody else kept it.
pub(crate) fn lock(file: &Arc<File>, mode: LockMode, wait: Duration) -> io::Result<Option<OpenLock>> {
    OpenLock::acquire(file, leaf_mode(mode), wait)
}

/// The same distinction, as the leaf makes it.
pub(crate) const fn leaf_mode(mode: LockMode) -> durable_fs::LockMode {
    match mode {
        LockMode::Shared => durable_fs::LockMode::Shared,
        LockMode::Exclusive => durable_fs::LockMode::Exclusive,
    }
}

/// True when `path` names the very file that is open.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok(number(&file.metadata()?) == number(&named)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Device and inode.
pub(crate) fn number(facts: &std::fs::Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

/// True for errors that say "may not be written".
pub(crate) fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// True for errors that say "no room".
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_temporaries_are_swept_and_only_old_ones() {
        let directory = tempfile::tempdir().unwrap();
        let ours = temporary(&directory.path().join("index.sqlite")).unwrap();
        let mut beside = ours.clone().into_os_string();
        beside.push("-journal");
        let others = [
            "index.sqlite",
            "index.jsonl.tmp",
            "x.0011223344556677.tmpx",
            ".0011223344556677.tmp",
            "a.0011223344xx6677.tmp",
            ".rwd-x.tmp",
        ];
        for path in others.iter().map(|name| directory.path().join(name)).chain([ours, beside.into()]) {
            drop(create_new(&path).unwrap());
        }
        assert_eq!(sweep(directory.path(), 0).unwrap(), 0);
        assert_eq!(sweep(directory.path(), i64::MAX).unwrap(), 2);
        assert!(others.iter().all(|name| directory.path().join(name).exists()));
    }
}
