//! Which paths the user's index tracks. Read only when a rule would leave a path out, or when the index has changed.

use std::sync::{Mutex, OnceLock};

use gix::{bstr::ByteSlice, index::entry::Mode};

use crate::user_repo::UserRepo;

/// The tracked paths of the repository that the root lies in.
#[derive(Debug)]
pub(crate) struct Tracked<'r> {
    repo: Option<&'r UserRepo>,
    index: OnceLock<Option<gix::index::File>>,
    warning: Mutex<Option<String>>,
    /// Identifies the index file; 0 when it is too young to be told apart from the next version.
    pub(crate) digest: u64,
}

impl<'r> Tracked<'r> {
    /// `young`: times from here on are too close to be trusted.
    pub(crate) fn new(repo: Option<&'r UserRepo>, young: i64) -> Self {
        let digest = repo.map_or(1, |r| r.index_digest(young));
        Self { repo, index: OnceLock::new(), warning: Mutex::new(None), digest }
    }

    /// The index, read at first use.
    pub(crate) fn index(&self) -> Option<&gix::index::File> {
        let read = || {
            let repo = self.repo?;
            repo.read_index().unwrap_or_else(|error| {
                let text = format!("cannot read the git index, so tracked files count as untracked: {error:#}");
                *self.warning.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(text);
                None
            })
        };
        self.index.get_or_init(read).as_ref()
    }

    fn full(&self, path: &[u8]) -> Vec<u8> {
        [self.repo.map_or(&[][..], |r| &r.above), path].concat()
    }

    /// Is this very path a tracked file or link? A submodule is none.
    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        let Some(index) = self.index() else { return false };
        let full = self.full(path);
        let entries = index.entries();
        let at = entries.partition_point(|e| e.path(index).as_bytes() < &full[..]);
        let exact = entries.get(at).is_some_and(|e| e.path(index).as_bytes() == full && e.mode != Mode::COMMIT);
        exact || in_sparse_dir(index, &full)
    }

    /// Is anything below this directory tracked?
    pub(crate) fn contains_below(&self, dir: &[u8]) -> bool {
        let Some(index) = self.index() else { return false };
        let mut full = self.full(dir);
        full.push(b'/');
        let entries = index.entries();
        let at = entries.partition_point(|e| e.path(index).as_bytes() < &full[..]);
        let below = entries[at..].iter().take_while(|e| e.path(index).starts_with(&full));
        below.into_iter().any(|e| e.mode != Mode::COMMIT) || in_sparse_dir(index, &full)
    }

    /// What could not be read.
    pub(crate) fn warning(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// In a sparse index a directory outside the cone is one entry, and all below it is tracked.
fn in_sparse_dir(index: &gix::index::File, full: &[u8]) -> bool {
    let mut slashes = full.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &full[..=at]);
    index.is_sparse()
        && slashes.any(|dir| {
            let entries = index.entries();
            let at = entries.partition_point(|e| e.path(index).as_bytes() < dir);
            entries.get(at).is_some_and(|e| e.path(index).as_bytes() == dir && e.mode == Mode::DIR)
        })
}
