//! Every operation by which the store changes its disk, in one place: syncs are counted, and tests can stop at any.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use checkpoint_core::SnapshotError;

/// Lets single operations on the store's disk fail, so that tests see what becomes of everything above.
pub trait Faults: fmt::Debug + Send + Sync {
    /// Called right before each operation that changes the store: `create`, `write`, `sync`, `rename`,
    /// `link` or `remove`.
    fn before(&self, operation: &'static str) -> Fault;
}

/// What becomes of an operation.
#[derive(Debug)]
pub enum Fault {
    /// It is carried out.
    None,
    /// It fails and does nothing.
    Fail(io::Error),
    /// Half of what is written reaches the file, then it fails; what writes nothing just fails.
    Torn(io::Error),
}

/// Does and counts the operations that change the store.
#[derive(Debug, Default)]
pub(crate) struct Ops {
    syncs: AtomicU64,
    faults: OnceLock<Arc<dyn Faults>>,
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

    /// Asks `faults` before every operation from now on; once per handle.
    pub(crate) fn set_faults(&self, faults: Arc<dyn Faults>) {
        drop(self.faults.set(faults));
    }

    fn step(&self, operation: &'static str) -> io::Result<()> {
        match self.ask(operation)? {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// An error that comes after half of the work is `Some`.
    fn ask(&self, operation: &'static str) -> io::Result<Option<io::Error>> {
        self.count()?;
        match self.faults.get().map_or(Fault::None, |faults| faults.before(operation)) {
            Fault::None => Ok(None),
            Fault::Fail(error) => Err(error),
            Fault::Torn(error) => Ok(Some(error)),
        }
    }

    #[cfg(test)]
    fn count(&self) -> io::Result<()> {
        let n = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        match self.fail_from.load(Ordering::SeqCst) {
            0 => Ok(()),
            from if n < from => Ok(()),
            _ => Err(io::Error::other("stopped by the test")),
        }
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the test build can fail here")]
    fn count(&self) -> io::Result<()> {
        Ok(())
    }

    /// Creates a file that must not be there, for its owner only.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        self.step("create")?;
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
    }

    /// Writes at a place in a file; after an error the same call may be made again.
    pub(crate) fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        if let Some(error) = self.ask("write")? {
            file.write_all_at(&bytes[..bytes.len() / 2], at)?;
            return Err(error);
        }
        file.write_all_at(bytes, at)
    }

    /// Syncs a file's data.
    pub(crate) fn sync_data(&self, file: &File) -> io::Result<()> {
        self.step("sync")?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        file.sync_data()
    }

    /// Syncs a directory's entries.
    pub(crate) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step("sync")?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        match File::open(path)?.sync_all() {
            // Some file systems have no such thing; git goes on there too.
            Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            done => done,
        }
    }

    /// Renames within a directory.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("rename")?;
        fs::rename(from, to)
    }

    /// Gives a file another name.
    pub(crate) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step("link")?;
        fs::hard_link(from, to)
    }

    /// Unlinks a file; one that is gone counts as unlinked.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step("remove")?;
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
