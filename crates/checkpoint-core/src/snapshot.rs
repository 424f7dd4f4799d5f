//! The seam to content-addressed storage of workspace states.

use std::{any::Any, collections::BTreeSet, fmt, io::Read, ops::ControlFlow, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    BoxError, CapturePolicy, Change, FileVersion, Mode, ObjectId, PathState, Progress, RelPath, Skipped, Snapshot,
};

/// Reads and writes single blobs. What a restore needs of a backend, without trees.
pub trait BlobStore: fmt::Debug + Send + Sync {
    /// Opens a blob for streaming. The id is not checked while reading; `verify` does that.
    fn open_blob(&self, id: &ObjectId) -> Result<Box<dyn Read + Send + '_>, SnapshotError>;

    /// The id that `len` bytes of `content` have as a blob, storing nothing.
    ///
    /// Fails when `content` yields fewer or more bytes: it changed while it was read.
    fn hash_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError>;

    /// Stores a blob. Durable on return, directory entry included, also where the blob was there before.
    fn put_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError>;

    /// How many bytes a stored blob has, as its entry says. Reads no content.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`] where there is none, or what keeps it from being read.
    fn blob_len(&self, id: &ObjectId) -> Result<u64, SnapshotError>;

    /// True when the blob is in this store now, whole as far as its index says. Not proof that it is durable.
    fn has_blob(&self, id: &ObjectId) -> Result<bool, SnapshotError>;

    /// Reads the whole blob and compares its content with its id.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`] where there is none, [`SnapshotError::Damaged`] where it cannot be read to its end or
    /// has another id.
    fn check_blob(&self, id: &ObjectId) -> Result<(), SnapshotError>;
}

/// What one capture shall cover.
pub struct CaptureRequest<'a> {
    /// The newest record's snapshot. What it holds stays covered, whatever rules say now.
    pub base: Option<Snapshot>,
    /// Further paths that stay covered: those that a stored point holds and `base` does not.
    pub held: &'a BTreeSet<RelPath>,
    /// Paths of `base` that are not held by any listed point: they lose their cover.
    pub not_held: &'a BTreeSet<RelPath>,
    /// Paths captured in this capture whatever their size or ignore rule: those a plan would overwrite.
    pub include: &'a BTreeSet<RelPath>,
    /// An open intent's temporaries: entries whose name has one of these prefixes are not there.
    pub temporaries: &'a [Vec<u8>],
    /// Rules and limits.
    pub policy: &'a CapturePolicy,
    /// `false`: hash and build trees, write nothing to disk. The trees stay readable through this handle.
    pub write: bool,
    /// The answer may rest on what a watcher saw instead of a walk: then it proves nothing absent, and may miss what
    /// watchers do not see until the next walk (design § 10).
    pub watched: bool,
    /// Gives up with [`SnapshotError::Deadline`] when the walk is not done by then.
    pub deadline: Option<Duration>,
    /// Told now and then; may break.
    pub progress: &'a dyn Progress,
}

/// What the user's repository had checked out, for information only: never moved by a restore.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// The branch's full name; `None` when detached.
    pub branch: Option<String>,
    /// The commit in hexadecimal; `None` when unborn.
    pub commit: Option<String>,
    /// `merge`, `rebase`, … when one is in progress.
    pub in_progress: Option<String>,
}

/// What a capture saw: never silently partial, every skipped path is named.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The state.
    pub snapshot: Snapshot,
    /// Everything left out, in path order. Also stored in `snapshot.meta`.
    pub skipped: Vec<Skipped>,
    /// Directories that may have changed while they were listed; `None` in the list means the root. What is absent
    /// below another directory is proven absent (design § 5).
    pub live: Vec<Option<RelPath>>,
    /// Files, links and FIFOs in the snapshot.
    pub files: u64,
    /// Bytes this capture added to the store.
    pub new_bytes: u64,
    /// What the user's repository had checked out.
    pub head: Option<Head>,
    /// True where the root lies in a git worktree.
    pub in_git: bool,
    /// Only directories were looked at of which a watcher told.
    pub watched: bool,
    /// Settings that could not be read and were taken as absent, for a warning.
    pub warnings: Vec<String>,
}

/// How thoroughly [`SnapshotBackend::verify`] looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerifyLevel {
    /// Every object that the snapshot reaches is in the store.
    Reachable,
    /// And its bytes have its id.
    Rehash,
}

/// What [`SnapshotBackend::gc`] did, or would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GcReport {
    /// Objects that stay.
    pub kept: u64,
    /// Objects removed.
    pub dropped: u64,
    /// Bytes given back.
    pub freed_bytes: u64,
    /// Left-over temporaries and torn packs removed.
    pub swept: u64,
    /// Damaged packs that had to stay because something that is missing may be in them.
    #[serde(default)]
    pub left_damaged: u64,
}

/// What a purge takes out of snapshots: paths, and content wherever it is.
pub struct Removal<'a> {
    /// True for a path that goes. Of a directory that goes, every path below goes too and must be picked as well.
    pub picks: &'a dyn Fn(&RelPath) -> bool,
    /// Files and links with this content go, whatever their path.
    pub blobs: &'a BTreeSet<ObjectId>,
}

impl fmt::Debug for Removal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Removal").field("blobs", &self.blobs.len()).finish_non_exhaustive()
    }
}

/// What one snapshot holds of a [`Removal`]: paths with their states, in path order.
pub type Holding = Vec<(RelPath, PathState)>;

/// One file or link of a state that comes from somewhere else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where.
    pub path: RelPath,
    /// What.
    pub kind: PartKind,
    /// The id of its content, where the source knows it: content that is stored already is not read again, other content
    /// must have this id.
    pub blob: Option<ObjectId>,
}

/// What a [`Part`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartKind {
    /// A regular file with these permission bits.
    File(Mode),
    /// A symbolic link; its content is its text.
    Link,
}

/// A state that comes from somewhere else: another tool's store. Directories are those that its parts lie in.
pub trait StateSource: fmt::Debug {
    /// Every file and link, in any order, and what the source left out.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], [`SnapshotError::Damaged`], or another that says why this state cannot be taken over.
    fn parts(&self) -> Result<(Vec<Part>, Vec<Skipped>), SnapshotError>;

    /// The content of a part, with its length. The reader fails at its end when the content is not what the source
    /// recorded.
    fn open(&self, part: &Part) -> Result<(u64, Box<dyn Read + '_>), SnapshotError>;
}

/// What a [`StateSource`] became.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assembled {
    /// The state.
    pub snapshot: Snapshot,
    /// Files and links in it.
    pub files: u64,
    /// Paths it leaves out.
    pub skipped: u64,
    /// Bytes it added to the store, about.
    pub new_bytes: u64,
}

/// Bytes a store occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Its own, as `du` counts them.
    pub own_bytes: u64,
    /// Hard links to somebody else's files.
    pub shared_bytes: u64,
}

/// Roots of a garbage collection.
#[derive(Clone, Debug, Default)]
pub struct LiveObjects {
    /// Snapshots: everything they reach stays.
    pub snapshots: Vec<Snapshot>,
    /// Single blobs: plans, host states, stored strangers.
    pub blobs: Vec<ObjectId>,
}

/// Content-addressed storage of workspace states. Reads the workspace, never writes it.
///
/// A backend is bound to one workspace root and one store. The caller holds the workspace's lock: shared for
/// `capture` and reads, exclusive for `gc`.
pub trait SnapshotBackend: BlobStore + Any {
    /// Its name in formats and messages, as `git`.
    fn name(&self) -> &'static str;

    /// Captures the workspace.
    ///
    /// With `write`, every object of the snapshot is durable on return, those that were there before included. One
    /// bad file never fails a capture; it is skipped with a reason. Nothing below the workspace or the user's `.git`
    /// is opened for writing, and no process is started.
    fn capture(&self, request: &CaptureRequest<'_>) -> Result<Captured, SnapshotError>;

    /// Told which files were just read whole: mode, content, version. A hint for the next capture, which need not read
    /// them again; promises nothing.
    fn remember(&self, read: &[(&RelPath, Mode, ObjectId, FileVersion)]) {
        let _ = read;
    }

    /// Visits every path that differs, in path order ([`RelPath`]'s `Ord`), skipping equal subtrees.
    ///
    /// Directories count as paths: one that is on one side only is reported itself, before what it holds. Permission
    /// bits of directories on both sides are not compared. A skipped path reads as absent.
    fn diff(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        visit: &mut dyn FnMut(Change) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError>;

    /// Visits every path of a snapshot in path order, directories included, below `under` or everywhere.
    fn list(
        &self,
        snapshot: &Snapshot,
        under: Option<&RelPath>,
        visit: &mut dyn FnMut(RelPath, PathState) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError>;

    /// What one path holds in a snapshot; a skipped path reads as [`PathState::Opaque`].
    fn state(&self, snapshot: &Snapshot, path: &RelPath) -> Result<PathState, SnapshotError>;

    /// Everything the snapshot left out, in path order.
    fn skipped(&self, snapshot: &Snapshot) -> Result<Vec<Skipped>, SnapshotError>;

    /// For each path: would the ignore rules and globs that were in force at `snapshot` have left it out?
    fn ignored_at(&self, snapshot: &Snapshot, paths: &[RelPath]) -> Result<Vec<bool>, SnapshotError>;

    /// Checks one snapshot. The error names the first object that is missing or damaged.
    fn verify(&self, snapshot: &Snapshot, level: VerifyLevel) -> Result<(), SnapshotError>;

    /// Checks many snapshots, one verdict each, in order. What they share need be looked at only once.
    fn verify_all(&self, snapshots: &[Snapshot], level: VerifyLevel) -> Vec<Result<(), SnapshotError>> {
        snapshots.iter().map(|snapshot| self.verify(snapshot, level)).collect()
    }

    /// Compares what holds the objects with how it was written, whatever the objects themselves say: one text for each file
    /// that changed, with its name. Reads the whole store.
    fn verify_store(&self) -> Result<Vec<String>, SnapshotError> {
        Ok(Vec::new())
    }

    /// Removes what `live` does not reach and repacks the rest. Bumps the store's epoch, synced, before the first
    /// removal; the new pack is synced before the first unlink. Needs the exclusive lock.
    fn gc(&self, live: &LiveObjects, dry_run: bool, progress: &dyn Progress) -> Result<GcReport, SnapshotError>;

    /// True when many small captures have left the store in so many pieces that [`SnapshotBackend::consolidate`] has
    /// work. Looks at what this handle knows already and touches no disk.
    fn is_scattered(&self) -> Result<bool, SnapshotError> {
        Ok(false)
    }

    /// Joins small pieces of the store. Removes no object, so whatever anybody knows of the store stays true, and looks
    /// at no tree. What replaces a piece is durable before that piece goes. Needs the exclusive lock. Returns how many
    /// pieces went. Stopped by `progress` or by an error, it leaves a sound store.
    fn consolidate(&self, _progress: &dyn Progress) -> Result<u64, SnapshotError> {
        Ok(0)
    }
    /// What each snapshot holds of `removal`, in the order of `snapshots`; an error for each that cannot be read.
    fn find(&self, snapshots: &[Snapshot], removal: &Removal<'_>) -> Vec<Result<Holding, SnapshotError>>;

    /// The snapshots without `removal`, in order: each path that goes is listed as [`SkipReason::Purged`] in the place
    /// where it was, so that it proves nothing and no restore touches it. Rules that a path held, or that are such
    /// content, count as leaving out everything below them. A snapshot that holds none of it stays what it is.
    ///
    /// The epoch moves on, synced, before anything is written, and the new objects are durable on return. Removes
    /// nothing: that is for the [`SnapshotBackend::gc`] that follows. Needs the exclusive lock.
    ///
    /// [`SkipReason::Purged`]: crate::SkipReason::Purged
    fn without(&self, snapshots: &[Snapshot], removal: &Removal<'_>) -> Result<Vec<Snapshot>, SnapshotError>;

    /// Puts snapshots together from states that come from somewhere else, in order, all content copied in; an error for
    /// each that cannot be taken over, which harms no other. At most about `budget` bytes are added to the store; what
    /// does not fit is [`SnapshotError::NoSpace`]. Directories get the usual permission bits.
    ///
    /// Everything is durable on return. An error of the whole leaves no snapshot behind.
    fn assemble(
        &self,
        sources: &[&dyn StateSource],
        budget: u64,
        progress: &dyn Progress,
    ) -> Result<Vec<Result<Assembled, SnapshotError>>, SnapshotError>;

    /// Bytes on disk.
    fn usage(&self) -> Result<Usage, SnapshotError>;
}

impl dyn SnapshotBackend {
    /// The concrete backend, where a caller knows it.
    pub fn downcast_ref<T: SnapshotBackend>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Why a backend could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// An object is not in the store.
    #[error("object {id} is missing from the store")]
    Missing {
        /// Which one.
        id: ObjectId,
    },
    /// An object's bytes are not what its id says.
    #[error("object {id} is damaged")]
    Damaged {
        /// Which one.
        id: ObjectId,
        /// How it showed.
        source: BoxError,
    },
    /// The store was written by a newer rwd.
    #[error("the store's format {found} is newer than {supported}")]
    TooNew {
        /// Format found.
        found: String,
        /// Newest format this version reads.
        supported: String,
    },
    /// The store itself cannot be made sense of.
    #[error("the store cannot be read: {what}")]
    BadStore {
        /// What is wrong.
        what: String,
    },
    /// Content changed while it was read.
    #[error("content changed while it was read")]
    ChangedWhileReading,
    /// One half of a SHA-1 collision was met.
    #[error("a SHA-1 collision was detected")]
    Collision,
    /// There is no room: the file system's, or the budget's.
    #[error("no space for {needed} more bytes")]
    NoSpace {
        /// Bytes that were to be written.
        needed: u64,
    },
    /// The walk was not done in time.
    #[error("the capture did not finish in time")]
    Deadline,
    /// The caller's `Progress` said stop.
    #[error("interrupted")]
    Interrupted,
    /// A system call failed.
    #[error("cannot access {}", path.display())]
    Io {
        /// On what.
        path: std::path::PathBuf,
        /// How.
        source: std::io::Error,
    },
    /// The rest.
    #[error("{what}")]
    Other {
        /// What was being done.
        what: &'static str,
        /// What went wrong.
        source: BoxError,
    },
}

impl SnapshotError {
    /// True where the store's file system may not be written.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
    }
}
