//! Drafts made and synced many at a time, ahead of the changes that use them.
//!
//! A sync waits for the file system's journal, and one commit of that holds everything that was written before it. So
//! many drafts are written first and synced then: the first sync pays for all of them.

use std::{
    collections::HashMap,
    fs::File,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use checkpoint_core::{
    BlobStore, Change, FsError, PathState, RelPath, Temporaries,
    parallel::{FOR_DISK, each_in_parallel},
};
use durable_fs::Stat;
use rustix::fs::{Advice, fadvise};

use crate::{
    RealWorkspace,
    check::{changes_mode_in_place, describable},
    metadata::Kept,
    work::Work,
};

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
        let found = self.entry().ok()?;
        let kept = match &found {
            Some(stat) if self.same_mount(stat).is_err() || changes_mode_in_place(self.change, stat) => return None,
            Some(stat) => Some(self.kept(stat, None, true).ok()?),
            None if self.change.before.is_absent() => None,
            None => return None,
        };
        let room = left.load(Ordering::Relaxed).min(LARGEST);
        if let Ok(Some((file, len))) = self.draft_file(blob, *mode, kept.as_ref(), room) {
            // Workers may take a little more together than there was.
            let take = |left: u64| Some(left.saturating_sub(len));
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            return Some((file, kept));
        }
        // Something has its name already, or it cannot be made. What stays is swept by the change, or by `settle`.
        drop(self.sweep_draft());
        None
    }
}

/// A draft that is complete but not synced, its directory no longer open.
struct Made<'a> {
    path: &'a RelPath,
    draft: Vec<u8>,
    state: PathState,
    kept: Option<Kept>,
    file: File,
}

impl Made<'_> {
    fn sync(self, workspace: &RealWorkspace) {
        workspace.point("sync a draft");
        match self.file.sync_all().and_then(|()| Stat::of(&self.file)) {
            Ok(stat) => {
                let ready = Ready { state: self.state, kept: self.kept, stat };
                workspace.drafts.all().insert(self.draft, ready);
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
    each_in_parallel(changes, FOR_DISK, |(n, change)| {
        if describable(change).is_err() {
            return;
        }
        let Ok(place) = workspace.place_to_write(&change.path) else { return };
        let work = Work::new(place, change, names, *n, blobs);
        if let Some((file, kept)) = work.make_ahead(&left) {
            // Blocks are given out now and for all, so that one commit of the journal can hold what is said of them.
            let _only_a_hint = fadvise(&file, 0, None, Advice::DontNeed);
            let one = Made { path: &change.path, draft: work.draft, state: change.after, kept, file };
            made.lock().unwrap_or_else(PoisonError::into_inner).push(Mutex::new(Some(one)));
        }
    });
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    each_in_parallel(&made, FOR_DISK, |one| {
        let taken = one.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(made) = taken {
            made.sync(workspace);
        }
    });
}
