//! What becomes of the temporaries: after a crash, and when an exchange took out something unexpected.

use std::io;

use checkpoint_core::{BlobStore, Change, FsError, ObjectId, PathState, Settled, SnapshotError, Temporaries};

use crate::{
    RealWorkspace,
    place::{Opened, Seen},
    real::Unreached,
    work::Work,
};

/// How often somebody else may change the path while it is being settled.
const ATTEMPTS: usize = 16;

/// Settles what a crash of this change may have left.
pub(crate) fn settle(
    workspace: &RealWorkspace,
    change: &Change,
    names: &Temporaries,
    n: usize,
    blobs: &dyn BlobStore,
) -> Result<Settled, FsError> {
    let place = match workspace.place_to_write(&change.path) {
        Ok(place) => place,
        // A temporary lies beside its path. Without that directory there is none.
        Err(Unreached::Missing | Unreached::NoDirectory) => return Ok(Settled::default()),
        Err(unreached) => return Err(unreached.into_error(&change.path)),
    };
    let work = Work::new(place, change, names, n, blobs);
    work.sweep_probes().map_err(|e| work.failed(e))?;
    work.sweep_draft()?;
    work.resolve()
}

impl Work<'_> {
    /// Empties the exchange name without losing a byte that is not known to be elsewhere (model F1, F2).
    pub(crate) fn resolve(&self) -> Result<Settled, FsError> {
        let mut settled = Settled::default();
        for _ in 0..ATTEMPTS {
            let out = self.readable(&self.swap)?;
            if out.state.is_absent() {
                return Ok(settled);
            }
            let at = self.readable(self.name)?;
            if self.is_one_file(&out, &at) {
                // Both names of one file: the crash came between making the one and removing the other.
                self.discard(&self.swap).map_err(|e| self.failed(e))?;
                return Ok(settled);
            }
            if self.is_known(&out.state) {
                if at.state.is_absent() && self.leaves_gap()? {
                    match self.publish(&self.swap) {
                        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                        done => done.map_err(|e| self.failed(e))?,
                    }
                    return Ok(settled);
                }
                match self.discard(&self.swap) {
                    Ok(()) => return Ok(settled),
                    // A directory with something in it is not the one that was known.
                    Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                    Err(e) => return Err(self.failed(e)),
                }
            }
            if at.state.is_absent() {
                match self.publish(&self.swap) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                    done => done.map_err(|e| self.failed(e))?,
                }
                settled.put_back = true;
                return Ok(settled);
            }
            if self.is_known(&at.state) {
                match self.exchange() {
                    Some(Ok(())) => {
                        settled.put_back = true;
                        continue;
                    }
                    Some(Err(e)) if e.kind() == io::ErrorKind::NotFound => continue,
                    Some(Err(e)) => return Err(self.failed(e)),
                    // Cannot be put back in one step: stored and named instead.
                    None => {}
                }
            }
            match self.store_and_discard(&out.state)? {
                Stored::Bytes(id) => settled.stored = Some(id),
                Stored::Nothing => {}
                Stored::Moved => continue,
            }
            return Ok(settled);
        }
        Err(self.changed_storing(settled.stored))
    }

    /// As [`Place::observe`](crate::place::Place::observe), but what cannot be read is merely unknown.
    fn readable(&self, name: &[u8]) -> Result<Seen, FsError> {
        match self.observe(name, self.blobs) {
            Err(FsError::Blob { .. } | FsError::Io { .. }) => {
                Ok(Seen { state: PathState::Opaque, stat: self.stat(name)?, file: None })
            }
            seen => seen,
        }
    }

    fn is_known(&self, state: &PathState) -> bool {
        !state.is_absent() && (*state == self.change.before || *state == self.change.after)
    }

    #[expect(clippy::unused_self, reason = "reads as a question to the work under way")]
    fn is_one_file(&self, a: &Seen, b: &Seen) -> bool {
        matches!((a.stat, b.stat), (Some(a), Some(b)) if a.same_file(&b))
    }

    /// True where the change is one between a directory and something else, and is made in two steps: then a crash
    /// leaves nothing at the path and one of the two states, complete, under the exchange name.
    fn leaves_gap(&self) -> Result<bool, FsError> {
        let Change { before, after, .. } = self.change;
        if before.is_absent() || after.is_absent() || before.is_dir() == after.is_dir() {
            return Ok(false);
        }
        if self.workspace.is_overlay() || !self.workspace.can_exchange() {
            return Ok(true);
        }
        // Nothing was tried yet in this process.
        let works = self.probe_exchange().map_err(|e| self.failed(e))?;
        if !works {
            self.workspace.cannot_exchange();
        }
        Ok(!works)
    }

    /// Stores what is under the exchange name and removes it.
    fn store_and_discard(&self, state: &PathState) -> Result<Stored, FsError> {
        let stored = match state {
            PathState::File { blob, .. } => {
                let Opened::File(mut file, stat) = self.open_file(&self.swap)? else {
                    return Ok(Stored::Moved);
                };
                match self.blobs.put_blob(stat.size, &mut file) {
                    Ok(id) if id == *blob => Stored::Bytes(id),
                    Ok(_) | Err(SnapshotError::ChangedWhileReading) => return Ok(Stored::Moved),
                    Err(e) => return Err(self.content_failed(e)),
                }
            }
            PathState::Link { .. } => {
                let text = self.dir.read_link(&self.swap).map_err(|e| self.failed(e))?;
                let put = self.blobs.put_blob(text.len() as u64, &mut text.as_slice());
                Stored::Bytes(put.map_err(|e| self.content_failed(e))?)
            }
            // Nothing in them that could be lost.
            PathState::Fifo { .. } | PathState::Dir { .. } => Stored::Nothing,
            PathState::Absent => return Ok(Stored::Moved),
            PathState::Opaque => return Err(self.keep_beside(&self.swap)),
        };
        match self.discard(&self.swap) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                return Err(self.keep_beside(&self.swap));
            }
            done => done.map_err(|e| self.failed(e))?,
        }
        Ok(stored)
    }
}

/// Result of [`Work::store_and_discard`].
enum Stored {
    Bytes(ObjectId),
    /// There were no bytes.
    Nothing,
    /// It is not what it was a moment ago.
    Moved,
}
