//! What a path holds, and what a capture left out.

use serde::{Deserialize, Serialize};

use crate::{ObjectId, RelPath};

/// Permission bits, `0o7777` at most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Mode(pub u16);

impl Mode {
    /// True when the owner may execute: the one bit that a git tree keeps.
    pub const fn is_executable(self) -> bool {
        self.0 & 0o100 != 0
    }
}

/// What one path holds, by content. Two equal states are the same for every purpose of a restore.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PathState {
    /// Nothing.
    Absent,
    /// A regular file: raw bytes, never converted.
    File {
        /// Id of the content.
        blob: ObjectId,
        /// Permission bits.
        mode: Mode,
    },
    /// A symbolic link, itself and never what it points at.
    Link {
        /// Id of the blob that holds the link's text.
        blob: ObjectId,
    },
    /// A FIFO.
    Fifo {
        /// Permission bits.
        mode: Mode,
    },
    /// A directory; what it holds are paths of their own.
    Dir {
        /// Permission bits.
        mode: Mode,
    },
    /// Something is there that a capture does not describe; see [`SkipReason`].
    Opaque,
}

impl PathState {
    /// True for [`PathState::Absent`].
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// True for a directory.
    pub const fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }

    /// The blob whose bytes are needed to bring this state about.
    pub const fn blob(&self) -> Option<ObjectId> {
        match self {
            Self::File { blob, .. } | Self::Link { blob } => Some(*blob),
            _ => None,
        }
    }

    /// True when both are the same but for permission bits.
    pub fn same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { blob: a, .. }, Self::File { blob: b, .. }) => a == b,
            (Self::Fifo { .. }, Self::Fifo { .. }) | (Self::Dir { .. }, Self::Dir { .. }) => true,
            _ => self == other,
        }
    }

    /// What became of a path between two states, in the word that every answer and protocol has for it: `added`,
    /// `removed`, `mode` (only permission bits), `modified` or `type`.
    pub fn change_to(&self, after: &Self) -> &'static str {
        if self.is_absent() {
            "added"
        } else if after.is_absent() {
            "removed"
        } else if self.same_content(after) {
            "mode"
        } else if std::mem::discriminant(self) == std::mem::discriminant(after) {
            "modified"
        } else {
            "type"
        }
    }
}

/// Why a capture left a path out (design § 5). A skipped path is never written or removed by a restore.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipReason {
    /// An ignore rule covers it; for a directory: all below it.
    IgnoredRoot,
    /// Untracked and at or over `untracked_max_bytes`.
    TooLarge,
    /// May not be read.
    Unreadable,
    /// A socket or device.
    Special,
    /// Another repository, left alone under `nested = boundary`; a `.git` itself.
    NestedRepo,
    /// Kept changing while it was read.
    ChangedWhileReading,
    /// The store's budget or free-space floor left no room.
    Budget,
    /// Its content is one half of a SHA-1 collision.
    Collision,
    /// rwd's own files: the data directory inside the workspace, `.dsh/memory`.
    Reserved,
    /// Its name cannot be kept in a git tree.
    Name,
    /// It was captured, and its content was taken out of the store since.
    Purged,
}

impl SkipReason {
    /// The stable code, as in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::IgnoredRoot => "ignored-root",
            Self::TooLarge => "too-large",
            Self::Unreadable => "unreadable",
            Self::Special => "special",
            Self::NestedRepo => "nested-repo",
            Self::ChangedWhileReading => "changed-while-reading",
            Self::Budget => "budget",
            Self::Collision => "collision",
            Self::Reserved => "reserved",
            Self::Name => "name",
            Self::Purged => "purged",
        }
    }
}

/// One path that a capture left out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// The path; what lies below it is left out too.
    pub path: RelPath,
    /// Why.
    pub reason: SkipReason,
}

/// One path that differs between two states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Where.
    pub path: RelPath,
    /// What it holds in the first state.
    pub before: PathState,
    /// What it holds in the second.
    pub after: PathState,
}

impl Change {
    /// The same seen from the other side.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self { path: self.path.clone(), before: self.after, after: self.before }
    }
}
