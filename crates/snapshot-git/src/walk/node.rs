//! A directory on its way through the walk.

use std::{
    ffi::CString,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicUsize},
};

use checkpoint_core::{ObjectId, SkipReason};
use rustix::fd::OwnedFd;

use crate::{
    cache::{Entry, Known, Record, Stamp, What},
    rules::{BaseNames, Level},
};

/// Tree and meta tree of a directory.
pub(crate) type Ids = (Option<ObjectId>, Option<ObjectId>);

/// A directory: made when its parent meets the name, finished when all below it is.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: Option<Arc<Node>>,
    pub(crate) name: CString,
    /// From the root; empty for the root itself.
    pub(crate) path: Vec<u8>,
    pub(crate) depth: usize,
    /// Set below something that a rule leaves out: only what somebody wants is captured here.
    pub(crate) closed: Option<SkipReason>,
    /// An include glob names it or a directory above.
    pub(crate) included: bool,
    /// Somebody wants this very directory, so that it stays even when it is empty.
    pub(crate) wanted: bool,
    /// Flags of its entry in its parent.
    pub(crate) entry_flags: u8,
    /// What the parent's record says of it.
    pub(crate) recorded: Option<Known>,
    /// The rules above it.
    pub(crate) above: Arc<Level>,
    /// Itself, its children and its chunks of files that are not done.
    pub(crate) pending: AtomicUsize,
    pub(crate) base: OnceLock<Option<Ids>>,
    pub(crate) base_names: OnceLock<BaseNames>,
    /// The entries of the user's index below it that may be believed, at a first capture.
    pub(crate) seed: OnceLock<Range<usize>>,
    /// Kept while something below is under way.
    pub(crate) record: OnceLock<Record>,
    /// What the last restore read in it; looked up when a file is met that the record does not know.
    pub(crate) restored: OnceLock<Option<Record>>,
    state: Mutex<State>,
}

/// What is known of a directory so far.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Its descriptor, while children need it and descriptors are not scarce.
    pub(crate) fd: Option<Arc<OwnedFd>>,
    pub(crate) dev: u64,
    pub(crate) stamp: Stamp,
    pub(crate) mode: u16,
    pub(crate) window: i64,
    /// `closed`, or the reason that its own `.git` gives.
    pub(crate) closed: Option<SkipReason>,
    pub(crate) level: Option<Arc<Level>>,
    /// More flags of its entry in its parent, found when it was entered.
    pub(crate) entry_flags: u8,
    /// Flags of the record to be written.
    pub(crate) flags: u8,
    /// True when `entries` are changes to the record; false when they are all there is.
    pub(crate) over_record: bool,
    /// Something differs from the record.
    pub(crate) dirty: bool,
    pub(crate) entries: Vec<Entry>,
    /// How it ended when it could not be walked.
    pub(crate) outcome: Option<Outcome>,
}

/// How a directory ends up in its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Captured.
    Captured(Ids),
    /// Left out as a whole.
    Skipped(SkipReason),
    /// Vanished.
    Gone,
    /// No directory any more.
    Swapped,
}

impl Node {
    pub(crate) fn root(level: Arc<Level>) -> Arc<Self> {
        Arc::new(Self {
            parent: None,
            name: c".".to_owned(),
            path: Vec::new(),
            depth: 0,
            closed: None,
            included: false,
            wanted: true,
            entry_flags: 0,
            recorded: None,
            above: level,
            pending: AtomicUsize::new(1),
            base: OnceLock::new(),
            base_names: OnceLock::new(),
            seed: OnceLock::new(),
            record: OnceLock::new(),
            restored: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    pub(crate) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// The path of a name in this directory.
    pub(crate) fn join(&self, name: &[u8]) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.path.len() + 1 + name.len());
        if !self.path.is_empty() {
            path.extend_from_slice(&self.path);
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }

    /// Its ids as the parent's record has them.
    pub(crate) fn recorded_ids(&self) -> Option<Ids> {
        match self.recorded?.what {
            What::Dir(tree, meta) => Some((tree, meta)),
            _ => None,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory below this one.
    pub(crate) fn child(self: &Arc<Self>, name: CString, path: Vec<u8>, level: Arc<Level>, how: Child) -> Arc<Self> {
        Arc::new(Self {
            parent: Some(self.clone()),
            name,
            path,
            depth: self.depth + 1,
            closed: how.closed,
            included: how.included,
            wanted: how.wanted,
            entry_flags: how.flags,
            recorded: how.recorded,
            above: level,
            pending: AtomicUsize::new(1),
            base: OnceLock::new(),
            base_names: OnceLock::new(),
            seed: OnceLock::new(),
            record: OnceLock::new(),
            restored: OnceLock::new(),
            state: Mutex::default(),
        })
    }
}

/// How a child is to be walked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Child {
    pub(crate) closed: Option<SkipReason>,
    pub(crate) included: bool,
    pub(crate) wanted: bool,
    pub(crate) flags: u8,
    pub(crate) recorded: Option<Known>,
}
