//! The meta tree: what a git tree cannot say, one blob per directory that has something to say (design § 4).

use std::collections::BTreeMap;

use checkpoint_core::{Mode, SkipReason, SnapshotError};

/// What the meta blob of one directory holds. Names are single components, any bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct DirMeta {
    /// Permission bits of entries that differ from the defaults: 0644 for files, 0755 for executable files and for
    /// directories. Keys are files and directories of this directory.
    pub(crate) modes: BTreeMap<Vec<u8>, Mode>,
    /// Directories of this directory that are captured and have no captured file anywhere below: a git tree cannot
    /// hold them. (They may have a meta tree of their own, for FIFOs and what was skipped below.)
    pub(crate) empty: Vec<Vec<u8>>,
    /// FIFOs with their permission bits.
    pub(crate) fifos: BTreeMap<Vec<u8>, Mode>,
    /// Entries left out, with the reason.
    pub(crate) skipped: BTreeMap<Vec<u8>, SkipReason>,
    /// At the root only: ignore sources that lie outside the tree, caps and globs, as (name, content).
    pub(crate) rules: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl DirMeta {
    /// The blob, versioned and sorted by name bytes; `None` when there is nothing to say.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> { todo!() }
    /// Reads a blob of this or a newer minor format.
    pub(crate) fn decode(_blob: &[u8]) -> Result<Self, SnapshotError> { todo!() }
}

/// Name of a directory's own blob in its meta tree.
pub(crate) const BLOB: &[u8] = b"meta";
/// Put before a subdirectory's name in its parent's meta tree, so that no name collides with [`BLOB`].
pub(crate) const DIR_PREFIX: u8 = b'+';
