//! Why a directory could not be opened.

use std::path::PathBuf;

use checkpoint_core::{FsError, SnapshotError};
use index_store::DataError;

/// Why a directory could not be opened for undo.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The registry, the data directory or the index.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The object store.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The workspace itself.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// It is the root of a workspace that was at another path; [`Registry::adopt`](index_store::Registry::adopt) takes it
    /// over.
    #[error("{} seems to be the workspace that was at {}", root.display(), before.display())]
    Moved {
        /// The directory.
        root: PathBuf,
        /// Where the workspace was.
        before: PathBuf,
    },
}
