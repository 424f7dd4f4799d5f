//! What a process that stays keeps between captures: a watcher, and the last snapshot with what goes with it.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
};

use checkpoint_core::{CaptureRequest, Nested, Skipped, Snapshot};

use super::{
    Watcher, Watchers,
    marks::{Hint, Marks},
};
use crate::{
    cache::Cache,
    rules::{Digest, Sources},
};

/// Directories that a walk found unwatched, in the midst of others: more of them, and the next walk is waited for.
const NEW_DIRS: usize = 64;
/// Records of a walk are kept in memory up to this many bytes; beyond, the cache is read again when it is needed.
const RECORDS: usize = 1 << 20;

/// What else decides about a capture's outcome. A hint holds only while it is the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    epoch: u64,
    rules: Digest,
    stored: u64,
    nested: Nested,
    tracked: u64,
    held: u64,
}

impl Key {
    /// `None` where a capture is to do with more than that, so that no hint can stand for a walk.
    pub(crate) fn of(request: &CaptureRequest<'_>, epoch: u64, sources: &Sources, tracked: u64) -> Option<Self> {
        let plain = request.write
            && request.include.is_empty()
            && request.not_held.is_empty()
            && request.temporaries.is_empty()
            && !request.policy.verify_by_hash
            // A git index that is too young to be told from the next one.
            && tracked != 0;
        plain.then(|| Self {
            epoch,
            rules: sources.level.digest,
            stored: hash(&sources.stored),
            nested: sources.nested,
            tracked,
            held: hash(request.held),
        })
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The last snapshot: a capture by hint starts from it.
#[derive(Debug)]
struct Memo {
    snapshot: Snapshot,
    key: Key,
    files: u64,
    skipped: Vec<Skipped>,
    /// Records of its directories. `None`: to be read again.
    cache: Option<Cache>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Resident {
    watchers: Arc<dyn Watchers>,
    watcher: Option<Box<dyn Watcher>>,
    /// Why there is no watcher, once that was tried.
    off: Option<String>,
    /// That is yet to be said.
    warning: Option<String>,
    marks: Marks,
    memo: Option<Memo>,
    /// Captures that went by a hint.
    pub(crate) hinted: u64,
}

/// A capture by hint, from the snapshot before.
pub(crate) struct Going {
    pub(crate) hint: Hint,
    pub(crate) cache: Cache,
    pub(crate) from: Snapshot,
}

/// What came of it.
pub(crate) struct Went<'a> {
    pub(crate) snapshot: Snapshot,
    /// Files that there are more than before, less those that there are fewer.
    pub(crate) more_files: i64,
    pub(crate) skipped: Vec<Skipped>,
    /// Framed records of directories that are not what they were.
    pub(crate) records: &'a [u8],
}

/// What a walk of everything came to.
pub(crate) struct Walked<'a> {
    pub(crate) snapshot: Snapshot,
    /// `None` where no hint could go on from it.
    pub(crate) key: Option<Key>,
    pub(crate) files: u64,
    pub(crate) skipped: &'a [Skipped],
    /// No walk of a part can stand for it: rule files that are left out themselves decide about it, or there are mounts
    /// in it whose changes nobody may tell.
    pub(crate) partial: bool,
}

impl Resident {
    pub(crate) fn new(watchers: Arc<dyn Watchers>) -> Self {
        Self { watchers, watcher: None, off: None, warning: None, marks: Marks::default(), memo: None, hinted: 0 }
    }

    /// Why every capture walks, where it is the system's doing.
    pub(crate) fn off(&self) -> Option<&str> {
        self.off.as_deref()
    }

    /// What was not said yet.
    pub(crate) fn warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    fn drain(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            let marks = &mut self.marks;
            watcher.drain(&mut |event| marks.note(event));
        }
    }

    /// Where to look, if a walk can be saved. Whoever got an answer reports back with [`Resident::went`] or
    /// [`Resident::failed`].
    pub(crate) fn go(
        &mut self,
        request: &CaptureRequest<'_>,
        key: &Key,
        load: impl FnOnce() -> Cache,
    ) -> Option<Going> {
        self.drain();
        let memo = self.memo.as_mut()?;
        if self.marks.doubt || request.base != Some(memo.snapshot) || memo.key != *key {
            return None;
        }
        let cache = memo.cache.take().unwrap_or_else(load);
        Some(Going { hint: self.marks.take(), cache, from: memo.snapshot })
    }

    /// The hint led to a snapshot. Says how many files there are, and what is left out.
    pub(crate) fn went(&mut self, going: Going, went: Went<'_>) -> Option<(u64, Vec<Skipped>)> {
        let Going { hint, mut cache, .. } = going;
        let memo = self.memo.as_mut()?;
        memo.snapshot = went.snapshot;
        memo.files = memo.files.saturating_add_signed(went.more_files);
        memo.skipped.retain(|one| !hint.covers(one.path.as_bytes()));
        memo.skipped.extend(went.skipped);
        memo.skipped.sort_unstable();
        memo.skipped.dedup();
        cache.remember(went.records);
        memo.cache = (cache.remembered() <= 4 * RECORDS).then_some(cache);
        self.hinted += 1;
        Some((memo.files, memo.skipped.clone()))
    }

    /// The hint led to nothing: all of it is to be looked at again, and a walk is needed.
    pub(crate) fn failed(&mut self, going: Going) {
        self.marks.put_back(going.hint);
        self.memo = None;
    }

    /// A walk is about to begin: what happens from now on is later than it.
    pub(crate) fn walks(&mut self, root: &Path) {
        self.memo = None;
        self.drain();
        if self.marks.lost {
            self.watcher = None;
        }
        if self.watcher.is_none() && self.off.is_none() {
            match self.watchers.start(root) {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => self.give_up(&error),
            }
        }
        self.marks.looked_everywhere();
    }

    /// A walk of everything came to its end. `records`: those it made, which `cache` has not read. `dirs`: the directories
    /// it looked into.
    pub(crate) fn walked(&mut self, walked: Walked<'_>, mut cache: Cache, records: &[u8], dirs: &[&[u8]]) {
        let Some(watcher) = &mut self.watcher else { return };
        let mut new = BTreeSet::new();
        for &dir in dirs {
            if watcher.has(dir) {
                continue;
            }
            match watcher.add(dir) {
                Ok(()) => drop(new.insert(dir.to_vec())),
                // Gone by now: whatever comes there is told by the directory above.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => drop(new.insert(dir.to_vec())),
                Err(error) => return self.give_up(&error),
            }
        }
        // Watched only since the walk was there: what changed in between was not told.
        if new.len() > NEW_DIRS || new.contains(&[][..]) || walked.partial {
            return;
        }
        for dir in new {
            self.marks.unknown(dir);
        }
        let Walked { snapshot, key: Some(key), files, skipped, .. } = walked else { return };
        let cache = (records.len() <= RECORDS).then(|| {
            cache.remember(records);
            cache
        });
        self.memo = Some(Memo { snapshot, key, files, skipped: skipped.to_vec(), cache });
    }

    fn give_up(&mut self, error: &std::io::Error) {
        tracing::warn!(%error, "this workspace cannot be watched, so every capture walks it");
        self.warning = Some(format!("this workspace cannot be watched, so every point walks it: {error}"));
        self.off = Some(error.to_string());
        self.watcher = None;
        self.memo = None;
    }
}
