//! A workspace on a real file system.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use checkpoint_core::{
    BlobStore, Change, Facts, FileKind, FileVersion, FsError, PathState, RelPath, Settled, Temporaries, WorkspaceFs,
    parallel::{FOR_DISK, each_in_parallel},
};
use durable_fs::{Descent, Dir, Kind, Mounts, Stat};

use crate::{Crash, NoCrash, place::Place, ready::Drafts};

/// Whether to use something that not every file system has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Support {
    /// Use it where it works.
    #[default]
    Auto,
    /// Do as if it never worked.
    Never,
}

/// How a workspace is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Exchanging two names in one step.
    pub exchange: Support,
    /// Renaming without replacing.
    pub no_replace: Support,
    /// Files and directories that are never written, nor what is below them: recognised by identity, whatever name
    /// leads there. Those that do not exist are ignored. The `.git` of the root is always among them.
    pub reserved: Vec<PathBuf>,
    /// Told of every step.
    pub crash: Arc<dyn Crash>,
}

impl Default for Options {
    fn default() -> Self {
        Self { exchange: Support::Auto, no_replace: Support::Auto, reserved: Vec::new(), crash: Arc::new(NoCrash) }
    }
}

/// The user's files below one root directory.
///
/// The root is held open: it keeps meaning the same directory when somebody renames it. Methods may be called from
/// several threads at once for different paths.
#[derive(Debug)]
pub struct RealWorkspace {
    root: Dir,
    reserved: Vec<(u64, u64)>,
    overlay: bool,
    /// Learned once for the mount, which all writable paths share.
    exchange: AtomicBool,
    no_replace: AtomicBool,
    crash: Arc<dyn Crash>,
    pub(crate) drafts: Drafts,
}

/// Why a path's directory was not reached.
pub(crate) enum Unreached {
    Missing,
    NoDirectory,
    Failed(FsError),
}

impl Unreached {
    pub(crate) fn into_error(self, path: &RelPath) -> FsError {
        match self {
            Self::Missing => FsError::Io { path: path.clone(), source: io::ErrorKind::NotFound.into() },
            Self::NoDirectory => FsError::ThroughLink { path: path.clone() },
            Self::Failed(error) => error,
        }
    }
}

impl RealWorkspace {
    /// Opens the workspace at `root`, which the caller has made canonical.
    pub fn open(root: &Path) -> Result<Self, FsError> {
        Self::with_options(root, Options::default())
    }

    /// Opens the workspace at `root` with other than the default options.
    pub fn with_options(root: &Path, options: Options) -> Result<Self, FsError> {
        let failed = |source| FsError::Other { what: "the workspace's root cannot be opened", source };
        let dir = Dir::open_root(root).map_err(|e| failed(e.into()))?;
        let facts = durable_fs::fs_facts(&dir).map_err(|e| failed(e.into()))?;
        let mut reserved = Vec::new();
        for path in options.reserved.iter().chain([&root.join(".git")]) {
            match durable_fs::identity(path) {
                Ok(found) => reserved.push((found.device, found.inode)),
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                // A name of a reserved place that cannot be looked at cannot be protected by identity.
                Err(e) => return Err(failed(e.into())),
            }
        }
        Ok(Self {
            root: dir,
            reserved,
            overlay: facts.name == "overlay",
            exchange: AtomicBool::new(options.exchange == Support::Auto),
            no_replace: AtomicBool::new(options.no_replace == Support::Auto),
            crash: options.crash,
            drafts: Drafts::default(),
        })
    }

    /// False once the mount is known not to exchange names: there a restore compares, then renames, which leaves a
    /// window of microseconds for somebody else's write.
    pub fn can_exchange(&self) -> bool {
        self.exchange.load(Ordering::Relaxed)
    }

    pub(crate) fn cannot_exchange(&self) {
        self.exchange.store(false, Ordering::Relaxed);
    }

    pub(crate) fn can_rename_no_replace(&self) -> bool {
        self.no_replace.load(Ordering::Relaxed)
    }

    pub(crate) fn cannot_rename_no_replace(&self) {
        self.no_replace.store(false, Ordering::Relaxed);
    }

    /// True where directories of a lower layer may be met, which cannot be renamed.
    pub(crate) fn is_overlay(&self) -> bool {
        self.overlay
    }

    pub(crate) fn point(&self, what: &'static str) {
        self.crash.point(what);
    }

    /// Where `path` is to be written: its directory on the root's own mount, and no reserved place on the way.
    pub(crate) fn place_to_write<'a>(&'a self, path: &'a RelPath) -> Result<Place<'a>, Unreached> {
        let reserved = || Unreached::Failed(FsError::Reserved { path: path.clone() });
        if path.components().any(checkpoint_core::is_git_name) {
            return Err(reserved());
        }
        let place = self.place(path, Mounts::Same)?;
        if !self.reserved.is_empty() && self.is_reserved(&place).map_err(|e| Unreached::Failed(place.failed(e)))? {
            return Err(reserved());
        }
        Ok(place)
    }

    /// Looks at what the entry and every directory above it are, not at how they are spelled; and at those that hold the
    /// directory which was opened, so that nothing can be swapped between this look and the write.
    fn is_reserved(&self, place: &Place<'_>) -> io::Result<bool> {
        let is = |found: &Stat| self.reserved.contains(&(found.device, found.inode));
        if place.entry()?.is_some_and(|found| is(&found)) {
            return Ok(true);
        }
        let below_root = place.path.components().count().saturating_sub(1);
        if below_root == 0 {
            return Ok(false);
        }
        if is(&place.dir_stat()?) {
            return Ok(true);
        }
        for levels in 1..below_root {
            if is(&place.dir.stat_above(levels)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The directory that holds `path`, no link followed.
    pub(crate) fn place<'a>(&'a self, path: &'a RelPath, mounts: Mounts) -> Result<Place<'a>, Unreached> {
        let name = path.name();
        let bytes = path.as_bytes();
        let above = bytes.get(..bytes.len() - name.len()).unwrap_or_default();
        let above = above.strip_suffix(b"/").unwrap_or(above);
        match self.root.descend(above, mounts) {
            Ok(dir) => Ok(Place::new(self, path, dir, name)),
            Err(e) => Err(unreached(path, e)),
        }
    }

    /// Syncs the directory that holds `path`, or the nearest one above that is left.
    fn sync_above(&self, path: &RelPath) -> Result<(), FsError> {
        let mut at = path.clone();
        loop {
            match self.place(&at, Mounts::Same) {
                Ok(place) => return place.dir.sync().map_err(|e| place.failed(e)),
                Err(Unreached::Failed(e)) => return Err(e),
                // Removed, or made a file, by the same plan: then the change to be synced is further up.
                Err(Unreached::Missing | Unreached::NoDirectory) => match at.parent() {
                    Some(parent) => at = parent,
                    None => return Err(Unreached::Missing.into_error(path)),
                },
            }
        }
    }
}

fn unreached(path: &RelPath, descent: Descent) -> Unreached {
    match descent {
        Descent::Missing => Unreached::Missing,
        Descent::NoDirectory => Unreached::NoDirectory,
        Descent::OtherMount => Unreached::Failed(FsError::OtherMount { path: path.clone() }),
        Descent::Io(source) => Unreached::Failed(FsError::Io { path: path.clone(), source }),
        other => Unreached::Failed(FsError::Other { what: "a directory cannot be reached", source: other.into() }),
    }
}

fn facts(found: Stat) -> Facts {
    let kind = match found.kind {
        Kind::File => FileKind::File,
        Kind::Link => FileKind::Link,
        Kind::Dir => FileKind::Dir,
        Kind::Fifo => FileKind::Fifo,
        Kind::Special => FileKind::Special,
    };
    Facts { kind, ctime_ns: found.ctime_ns, size: found.size }
}

fn version(stat: &Stat, read_at_ns: i128) -> FileVersion {
    FileVersion {
        device: stat.device,
        inode: stat.inode,
        size: stat.size,
        mtime_ns: stat.mtime_ns,
        ctime_ns: stat.ctime_ns,
        read_at_ns,
    }
}

/// Now, in nanoseconds since 1970; a clock before that makes every stamp look young.
#[expect(clippy::disallowed_methods, reason = "stamps of files are compared with the system's own clock")]
fn now() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(i128::MIN, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MIN))
}

impl WorkspaceFs for RealWorkspace {
    fn facts(&self, path: &RelPath) -> Result<Option<Facts>, FsError> {
        let place = match self.place(path, Mounts::Any) {
            Ok(place) => place,
            Err(Unreached::Failed(e)) => return Err(e),
            Err(_) => return Ok(None),
        };
        Ok(place.entry().map_err(|e| place.failed(e))?.map(facts))
    }

    fn root_facts(&self) -> Result<Facts, FsError> {
        let failed =
            |e: std::io::Error| FsError::Other { what: "the workspace's root cannot be read", source: e.into() };
        self.root.stat().map(facts).map_err(failed)
    }

    fn observe(&self, path: &RelPath, blobs: &dyn BlobStore) -> Result<PathState, FsError> {
        match self.place(path, Mounts::Any) {
            Ok(place) => Ok(place.observe_entry(blobs)?.state),
            Err(Unreached::Failed(e)) => Err(e),
            Err(_) => Ok(PathState::Absent),
        }
    }

    fn read_back(&self, change: &Change, blobs: &dyn BlobStore) -> Result<(PathState, Option<FileVersion>), FsError> {
        let place = match self.place(&change.path, Mounts::Any) {
            Ok(place) => place.expecting([change.after.blob(), None]),
            Err(Unreached::Failed(e)) => return Err(e),
            Err(_) => return Ok((PathState::Absent, None)),
        };
        let read_at_ns = now();
        let seen = place.observe_entry(blobs)?;
        let stat = seen.stat.filter(|stat| stat.kind == Kind::File && seen.file.is_some());
        Ok((seen.state, stat.map(|stat| version(&stat, read_at_ns))))
    }

    fn check(&self, change: &Change) -> Result<(), FsError> {
        crate::check::check(self, change)
    }

    fn prepare(&self, changes: &[(usize, &Change)], temporaries: &Temporaries, blobs: &dyn BlobStore) {
        crate::ready::prepare(self, changes, temporaries, blobs);
    }

    fn apply(
        &self,
        change: &Change,
        temporaries: &Temporaries,
        n: usize,
        blobs: &dyn BlobStore,
    ) -> Result<(), FsError> {
        let result = crate::apply::apply(self, change, temporaries, n, blobs);
        self.point("return");
        result
    }

    fn settle(
        &self,
        change: &Change,
        temporaries: &Temporaries,
        n: usize,
        blobs: &dyn BlobStore,
    ) -> Result<Settled, FsError> {
        let result = crate::settle::settle(self, change, temporaries, n, blobs);
        self.point("return");
        result
    }

    fn sync(&self, paths: &[RelPath]) -> Result<(), FsError> {
        // Any path of a directory will do: only its parent is looked at.
        let above: BTreeMap<Option<RelPath>, &RelPath> = paths.iter().map(|path| (path.parent(), path)).collect();
        let above: Vec<&RelPath> = above.into_values().collect();
        let failed = Mutex::new(None);
        each_in_parallel(&above, FOR_DISK, |path| {
            if let Err(error) = self.sync_above(path) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}
