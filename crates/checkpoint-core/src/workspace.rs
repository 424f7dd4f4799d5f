//! The seam to the user's files: the only way the engine touches them.

use std::fmt;

use crate::{BlobStore, BoxError, Change, OpId, PathState, RelPath, SnapshotError};

/// What `lstat` says of a path, without reading content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The type of what is there.
    pub kind: FileKind,
    /// Nanoseconds since 1970 of the last change of content or metadata.
    pub ctime_ns: i128,
    /// Size in bytes.
    pub size: u64,
}

/// Type of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Dir,
    /// A FIFO.
    Fifo,
    /// A socket, a device or something else.
    Special,
}

/// Which version of a file was read, by what `stat` said before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileVersion {
    /// The device it is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since 1970 of the last change of content.
    pub mtime_ns: i128,
    /// Nanoseconds since 1970 of the last change of content or metadata.
    pub ctime_ns: i128,
    /// Nanoseconds since 1970 when the reading began, by the clock that stamps are made with: a stamp that is hardly older
    /// may hide a later change.
    pub read_at_ns: i128,
}

/// The temporaries of one operation. Each planned change has two names in the directory it writes to.
///
/// A temporary is written under [`Temporaries::draft`], synced, and renamed to [`Temporaries::exchange`] when it is
/// complete (model F2): under the first name are only bytes of rwd, under the second there may be a user's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Temporaries(pub OpId);

impl Temporaries {
    /// Beginning of every name of this operation.
    pub fn prefix(&self) -> Vec<u8> {
        format!(".rwd-{}-", &self.0.to_string()[..16]).into_bytes()
    }

    /// Name of the unfinished temporary of change number `n`.
    pub fn draft(&self, n: usize) -> Vec<u8> {
        [self.prefix(), format!("{n}.part").into_bytes()].concat()
    }

    /// Name of the finished temporary, and of what an exchange or a removal takes out.
    pub fn exchange(&self, n: usize) -> Vec<u8> {
        [self.prefix(), format!("{n}.swap").into_bytes()].concat()
    }
}

/// What recovery found of one change and did about it (design § 7 row 4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// A user's content that was taken out was put back under its name.
    pub put_back: bool,
    /// Unknown bytes that were stored and named, because the path held others too.
    pub stored: Option<crate::ObjectId>,
}

/// Writes the user's files through directory handles. Never follows a link, never deletes a directory tree, never
/// overwrites a byte that is not in the blob store.
pub trait WorkspaceFs: fmt::Debug + Send + Sync {
    /// What is at `path`; `None` for nothing. Never follows a link: a link in an ancestor reads as nothing.
    fn facts(&self, path: &RelPath) -> Result<Option<Facts>, FsError>;

    /// What `lstat` says of the root itself.
    fn root_facts(&self) -> Result<Facts, FsError>;

    /// What `path` holds, by content: a file is read and hashed. Directories and their modes, links, FIFOs too;
    /// sockets, devices and what may not be read are [`PathState::Opaque`].
    fn observe(&self, path: &RelPath, blobs: &dyn BlobStore) -> Result<PathState, FsError>;

    /// What the path of a change that was applied holds, and of a regular file which version that was. A file that cannot
    /// be what was written, by a size that is not the content's, may read as [`PathState::Opaque`] without being read.
    fn read_back(&self, change: &Change, blobs: &dyn BlobStore) -> Result<(PathState, Option<FileVersion>), FsError> {
        Ok((self.observe(&change.path, blobs)?, None))
    }

    /// Would `change` go through, as far as can be told without writing? Checks links and mounts on the way,
    /// permissions of the parent, metadata that could not be kept. Does not compare content.
    fn check(&self, change: &Change) -> Result<(), FsError>;

    /// Makes `path` go from `before` to `after`, or fails with the path as it was.
    ///
    /// The new content is complete, has its mode and is synced before it gets its name. What stood there is taken
    /// out by exchange or rename, compared with `before`, and unlinked only if its bytes are `before` or in the blob
    /// store. Anything else at the path: [`FsError::Changed`], put back. A directory that is to go must be empty.
    /// Directory entries are not synced: [`WorkspaceFs::sync`] does that.
    fn apply(&self, change: &Change, temporaries: &Temporaries, n: usize, blobs: &dyn BlobStore)
    -> Result<(), FsError>;

    /// Told of changes that [`WorkspaceFs::apply`] is about to be asked for one by one, each with its number, so that
    /// what they need can be made ready together. Promises nothing: `apply` says what cannot be done. What it leaves of a
    /// change that is never applied [`WorkspaceFs::settle`] removes, as after a crash.
    fn prepare(&self, changes: &[(usize, &Change)], temporaries: &Temporaries, blobs: &dyn BlobStore) {
        let _ = (changes, temporaries, blobs);
    }

    /// Settles the temporaries that a crash of [`WorkspaceFs::apply`] of this very change may have left: afterwards
    /// neither name exists and no unknown byte is gone. Idempotent.
    fn settle(
        &self,
        change: &Change,
        temporaries: &Temporaries,
        n: usize,
        blobs: &dyn BlobStore,
    ) -> Result<Settled, FsError>;

    /// Syncs the directories that hold `paths`.
    fn sync(&self, paths: &[RelPath]) -> Result<(), FsError>;
}

/// Why a path could not be touched. In every case the path is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// An ancestor is a symbolic link or no directory.
    #[error("{path} passes through a symbolic link")]
    ThroughLink {
        /// The path.
        path: RelPath,
    },
    /// What is there is not what was planned for.
    #[error("{path} changed while it was being restored")]
    Changed {
        /// The path.
        path: RelPath,
        /// What it holds.
        found: PathState,
        /// Unknown bytes that could not be put back and were stored instead.
        stored: Option<crate::ObjectId>,
    },
    /// A directory that was to go holds something.
    #[error("{path} is a directory with content")]
    NotEmpty {
        /// The path.
        path: RelPath,
    },
    /// It lies on another mount than the root, or is a mount point.
    #[error("{path} lies on another file system")]
    OtherMount {
        /// The path.
        path: RelPath,
    },
    /// A directory of a lower overlay layer, which cannot be renamed.
    #[error("{path} belongs to a lower layer")]
    Layer {
        /// The path.
        path: RelPath,
    },
    /// Owner, group, ACL or extended attributes could not be kept.
    #[error("owner or attributes of {path} cannot be kept")]
    Metadata {
        /// The path.
        path: RelPath,
    },
    /// Something answers to the name although no listing has it: the file system folds case or normalises.
    #[error("{path} is another name for something that is there")]
    NameTaken {
        /// The path.
        path: RelPath,
    },
    /// The name is reserved.
    #[error("{path} names a reserved location")]
    Reserved {
        /// The path.
        path: RelPath,
    },
    /// A system call failed.
    #[error("cannot access {path}")]
    Io {
        /// The path.
        path: RelPath,
        /// How.
        source: std::io::Error,
    },
    /// The blob store failed.
    #[error("the content of {path} cannot be read or stored")]
    Blob {
        /// The path.
        path: RelPath,
        /// How.
        source: Box<SnapshotError>,
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

impl FsError {
    /// The stable reason, as `blocked` lists it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::ThroughLink { .. } => "through-link",
            Self::Changed { .. } => "changed",
            Self::NotEmpty { .. } => "not-empty",
            Self::OtherMount { .. } => "other-mount",
            Self::Layer { .. } => "layer",
            Self::Metadata { .. } => "metadata",
            Self::NameTaken { .. } => "name-collision",
            Self::Reserved { .. } => "reserved",
            Self::Io { .. } => "io",
            Self::Blob { .. } => "content",
            Self::Other { .. } => "other",
        }
    }
}
