//! Drafts made and synced many at a time, ahead of the changes that use them.
//!
//! A sync waits for the file system's journal, and one commit of that holds everything that was written before it. So
//! many drafts are written first and synced then: the first sync pays for all of them.

use std::{
    collections::HashMap,
    fs::File,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use checkpoint_core::{BlobStore, Change, FsError, PathState, Temporaries};
use durable_fs::Stat;

use crate::{
    RealWorkspace,
    check::{changes_mode_in_place, describable},
    metadata::Kept,
    work::Work,
};

/// So many are made or synced at a time.
const WORKERS: usize = 8;
/// Larger files are left to their change: one sync is little beside their bytes.
const LARGEST: u64 = 1 << 20;
/// Bytes of one batch, for they all take space on disk at once.
const BATCH: u64 = 64 << 20;

/// A draft that is complete and synced.
#[derive(Debug)]
struct Ready {
    /// What it holds.
    state: PathState,
    /// What it took over from the file it is to replace.
    kept: Option<Kept>,
    /// The draft itself: another file of its name is not used.
    stat: Stat,
}

/// Drafts that are ready, by name; names are of one change of one operation.
#[derive(Debug, Default)]
pub(crate) struct Drafts(Mutex<HashMap<Vec<u8>, Ready>>);

impl Drafts {
    fn all(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Ready>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work<'_> {
    /// True when the draft is what [`Work::write_draft`] would make now. Answers once.
    pub(crate) fn take_ready(&self, state: &PathState, kept: Option<&Kept>) -> Result<bool, FsError> {
        let Some(ready) = self.workspace.drafts.all().remove(&self.draft) else { return Ok(false) };
        Ok(ready.state == *state
            && ready.kept.as_ref() == kept
            && self.stat(&self.draft)?.is_some_and(|found| found.unchanged(&ready.stat)))
    }

    /// The draft of a change that writes a small file, not yet synced. `None`: it is left to the change, which also says
    /// what is wrong.
    fn make_ahead(&self, left: &AtomicU64) -> Option<(File, Option<Kept>)> {
        let PathState::File { blob, mode } = &self.change.after else { return None };
        let found = self.stat(self.name).ok()?;
        let kept = match &found {
            Some(stat) if self.same_mount(stat).is_err() || changes_mode_in_place(self.change, stat) => return None,
            Some(stat) => Some(self.kept(stat, true).ok()?),
            None if self.change.before.is_absent() => None,
            None => return None,
        };
        self.sweep_draft().ok()?;
        let room = left.load(Ordering::Relaxed).min(LARGEST);
        if let Ok(Some((file, len))) = self.draft_file(blob, *mode, kept.as_ref(), room) {
            // Workers may take a little more together than there was.
            let take = |left: u64| Some(left.saturating_sub(len));
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            return Some((file, kept));
        }
        // What stays is swept by the change, or by `settle`.
        drop(self.sweep_draft());
        None
    }

    fn sync_ahead(&self, file: &File, kept: Option<Kept>) {
        self.workspace.point("sync a draft");
        let synced = file.sync_all().and_then(|()| Stat::of(file));
        match synced {
            Ok(stat) => {
                let ready = Ready { state: self.change.after, kept, stat };
                self.workspace.drafts.all().insert(self.draft.clone(), ready);
            }
            Err(error) => tracing::debug!(path = %self.path, %error, "a draft is left to its change"),
        }
    }
}

/// Makes drafts for those of the changes that write a small file. What cannot be made ahead is left to `apply`.
pub(crate) fn prepare(
    workspace: &RealWorkspace,
    changes: &[(usize, &Change)],
    names: &Temporaries,
    blobs: &dyn BlobStore,
) {
    // Drafts of an earlier batch that no change asked for.
    workspace.drafts.all().clear();
    let left = AtomicU64::new(BATCH);
    let made = Mutex::new(Vec::new());
    in_parallel(changes, |(n, change)| {
        if describable(change).is_err() {
            return;
        }
        let Ok(place) = workspace.place_to_write(&change.path) else { return };
        let work = Work::new(place, change, names, *n, blobs);
        if let Some((file, kept)) = work.make_ahead(&left) {
            made.lock().unwrap_or_else(PoisonError::into_inner).push(Mutex::new(Some((work, file, kept))));
        }
    });
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    in_parallel(&made, |one| {
        let taken = one.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((work, file, kept)) = taken {
            work.sync_ahead(&file, kept);
        }
    });
}

/// Does something with each, several at a time. A panic of one is the caller's.
fn in_parallel<T: Sync>(all: &[T], one: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(item);
        }
    };
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..WORKERS.min(all.len())).map(|_| scope.spawn(work)).collect();
        work();
        for helper in helpers {
            helper.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        }
    });
}
