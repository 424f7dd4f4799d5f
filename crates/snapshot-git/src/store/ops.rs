//! Every operation by which the store changes its disk, in one place: syncs are counted, and tests can stop at any.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use checkpoint_core::SnapshotError;

/// Does and counts the operations that change the store.
#[derive(Debug, Default)]
pub(crate) struct Ops {
    syncs: AtomicU64,
    #[cfg(test)]
    steps: AtomicU64,
    /// The step from which on every operation fails, as after a crash; 0 for none.
    #[cfg(test)]
    fail_from: AtomicU64,
}

impl Ops {
    /// Syncs made so far, of files and of directories.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Makes all operations from the `n`-th from now on fail (`0`: none), and counts anew.
    #[cfg(test)]
    pub(crate) fn fail_from(&self, n: u64) {
        self.steps.store(0, Ordering::SeqCst);
        self.fail_from.store(n, Ordering::SeqCst);
    }

    /// Operations since `fail_from` was called.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    fn step(&self) -> io::Result<()> {
        let n = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        match self.fail_from.load(Ordering::SeqCst) {
            0 => Ok(()),
            from if n < from => Ok(()),
            _ => Err(io::Error::other("stopped by the test")),
        }
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the test build can fail here")]
    fn step(&self) -> io::Result<()> {
        Ok(())
    }

    /// Creates a file that must not be there, for its owner only.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        self.step()?;
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
    }

    /// Writes at a place in a file; after an error the same call may be made again.
    pub(crate) fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        self.step()?;
        file.write_all_at(bytes, at)
    }

    /// Syncs a file's data.
    pub(crate) fn sync_data(&self, file: &File) -> io::Result<()> {
        self.step()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        file.sync_data()
    }

    /// Syncs a directory's entries.
    pub(crate) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        match File::open(path)?.sync_all() {
            // Some file systems have no such thing; git goes on there too.
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            done => done,
        }
    }

    /// Renames within a directory.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        fs::rename(from, to)
    }

    /// Unlinks a file; one that is gone counts as unlinked.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        match fs::remove_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// A failed system call on `path`; a full disk becomes `NoSpace` for the `needed` bytes.
pub(crate) fn io_error(path: &Path, needed: u64, source: io::Error) -> SnapshotError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            SnapshotError::NoSpace { needed }
        }
        _ => SnapshotError::Io { path: path.to_owned(), source },
    }
}

/// [`io_error`] for `map_err` where nothing was to be written.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
    move |source| io_error(path, 0, source)
}
