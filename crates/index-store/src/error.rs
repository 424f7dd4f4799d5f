//! Why something in the data directory could not be used.

use std::{io, path::PathBuf};

use checkpoint_core::{BoxError, IndexError, WorkspaceId};

use crate::{layout::IndexKind, registry::Refusal};

/// Why the data directory or a workspace in it could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The root is one that only `--force` may register.
    #[error("{} may not be a workspace: {why}", root.display())]
    Refused {
        /// The root.
        root: PathBuf,
        /// Why.
        why: Refusal,
    },
    /// The root is no directory.
    #[error("{} is no directory", root.display())]
    NoDirectory {
        /// The root.
        root: PathBuf,
    },
    /// Another workspace has the root.
    #[error("{} is the root of workspace {by}", root.display())]
    Occupied {
        /// The root.
        root: PathBuf,
        /// Whose it is.
        by: WorkspaceId,
    },
    /// No workspace has the id.
    #[error("there is no workspace {0}")]
    Unknown(WorkspaceId),
    /// The workspace keeps its index in another form.
    #[error("the index of this workspace is {existing}, not {asked}")]
    OtherIndex {
        /// What it has.
        existing: IndexKind,
        /// What was asked for.
        asked: IndexKind,
    },
    /// Another process has held the data directory for too long.
    #[error("another process is changing {}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
    /// Written by another major version.
    #[error("the format {found} of {} cannot be used; this version uses {supported}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
        /// Newest format this version reads.
        supported: String,
    },
    /// A file cannot be understood.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How it showed.
        source: BoxError,
    },
    /// The index failed.
    #[error("the index cannot be opened")]
    Index(#[source] IndexError),
    /// A system call failed.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// How.
        source: io::Error,
    },
}

impl DataError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

impl From<durable_fs::Error> for DataError {
    fn from(error: durable_fs::Error) -> Self {
        Self::Io { path: error.path, source: error.source }
    }
}
