//! From one state to another.

use std::{fs::File, io};

use checkpoint_core::{BlobStore, Change, FsError, Mode, ObjectId, PathState, Temporaries};
use durable_fs::{Mounts, Stat};

use crate::{
    RealWorkspace,
    check::{changes_mode_in_place, describable, is_file},
    place::{Opened, Seen},
    real::Unreached,
    work::Work,
};

/// Makes the path go from `before` to `after`.
pub(crate) fn apply(
    workspace: &RealWorkspace,
    change: &Change,
    names: &Temporaries,
    n: usize,
    blobs: &dyn BlobStore,
) -> Result<(), FsError> {
    describable(change)?;
    let place = match workspace.place_to_write(&change.path) {
        Ok(place) => place,
        Err(Unreached::Failed(e)) => return Err(e),
        // Nothing can be there: that is what was wanted,
        Err(_) if change.after.is_absent() => return Ok(()),
        // or what was planned for, but it cannot be made,
        Err(unreached) if change.before.is_absent() => {
            return Err(unreached.into_error(&change.path));
        }
        // or not what was planned for.
        Err(_) => {
            return Err(FsError::Changed { path: change.path.clone(), found: PathState::Absent, stored: None });
        }
    };
    let work = Work::new(place, change, names, n, blobs);
    let seen = work.observe_entry(blobs)?;
    if seen.state == change.after {
        return Ok(());
    }
    if seen.state != change.before {
        return Err(FsError::Changed { path: change.path.clone(), found: seen.state, stored: None });
    }
    let Seen { stat: Some(stat), file, .. } = seen else {
        return work.create();
    };
    work.same_mount(&stat)?;
    match (&change.before, &change.after) {
        (PathState::Dir { .. }, PathState::Absent) => work.remove_dir(),
        (_, PathState::Absent) => work.remove(),
        (_, PathState::File { mode, .. }) if changes_mode_in_place(change, &stat) => {
            work.change_file_mode(*mode, &stat)
        }
        (_, PathState::Dir { mode } | PathState::Fifo { mode }) if changes_mode_in_place(change, &stat) => {
            work.change_mode(*mode, &stat)
        }
        _ => work.replace(&stat, file),
    }
}

impl Work<'_> {
    /// Nothing → something.
    fn create(&self) -> Result<(), FsError> {
        self.write_draft(&self.change.after, None)?;
        self.publish_or_sweep(&self.draft)
    }

    /// Publishes a temporary that holds `after`, or removes it.
    fn publish_or_sweep(&self, temporary: &[u8]) -> Result<(), FsError> {
        match self.publish(temporary) {
            Ok(()) => Ok(()),
            Err(e) => {
                self.discard(temporary).map_err(|e| self.failed(e))?;
                Err(self.taken_or_failed(e))
            }
        }
    }

    fn taken_or_failed(&self, e: io::Error) -> FsError {
        match e.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
                self.changed()
            }
            _ => self.unmovable(e),
        }
    }

    /// An empty directory → nothing. The kernel itself makes sure that it holds nothing.
    fn remove_dir(&self) -> Result<(), FsError> {
        self.workspace.point("remove a directory");
        match self.dir.remove_dir(self.name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(self.dir_stays(e)),
            Ok(()) => Ok(()),
        }
    }

    fn dir_stays(&self, e: io::Error) -> FsError {
        let path = self.path.clone();
        match e.kind() {
            io::ErrorKind::DirectoryNotEmpty => FsError::NotEmpty { path },
            io::ErrorKind::ResourceBusy => FsError::OtherMount { path },
            io::ErrorKind::NotADirectory | io::ErrorKind::NotFound => self.changed(),
            _ => self.failed(e),
        }
    }

    /// File, link or FIFO → nothing.
    fn remove(&self) -> Result<(), FsError> {
        match self.rename_aside(self.name, &self.swap, "take out") {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(self.unmovable(e)),
            Ok(()) => {}
        }
        self.compare_out()
    }

    fn unmovable(&self, e: io::Error) -> FsError {
        let path = self.path.clone();
        match e.kind() {
            io::ErrorKind::ResourceBusy => FsError::OtherMount { path },
            io::ErrorKind::NotFound => self.changed(),
            _ => self.failed(e),
        }
    }

    /// What was taken out is `before`: gone. Anything else, or a failure: back.
    fn compare_out(&self) -> Result<(), FsError> {
        let failure = match self.observe(&self.swap, self.blobs) {
            Ok(Seen { state, .. }) if state == self.change.before => match self.remove_as(&self.swap, state.is_dir()) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => FsError::NotEmpty { path: self.path.clone() },
                Err(e) => {
                    // It is what it should be, so `resolve` would try to remove it again.
                    if let Some(Err(e)) = self.exchange() {
                        return Err(self.failed(e));
                    }
                    self.failed(e)
                }
            },
            Ok(_) => return Err(self.changed_storing(self.put_back()?)),
            Err(e) => e,
        };
        match self.put_back()? {
            None => Err(failure),
            stored => Err(self.changed_storing(stored)),
        }
    }

    /// Puts back what was taken out. Returns what had to be stored instead, because the name was taken again.
    fn put_back(&self) -> Result<Option<ObjectId>, FsError> {
        Ok(self.resolve()?.stored)
    }

    /// One thing → another.
    fn replace(&self, stat: &Stat, file: Option<File>) -> Result<(), FsError> {
        let Change { before, after, .. } = self.change;
        if before.is_dir() && !self.dir.is_empty(self.name).unwrap_or(true) {
            return Err(FsError::NotEmpty { path: self.path.clone() });
        }
        let kept = self.kept(stat, file.as_ref(), is_file(after))?;
        drop(file);
        self.write_draft(after, Some(&kept))?;
        if self.workspace.can_exchange() && self.replace_by_exchange()? {
            return Ok(());
        }
        match (before.is_dir(), after.is_dir()) {
            (true, false) => self.replace_dir(),
            (false, true) => self.replace_by_dir(),
            _ => self.replace_plainly(),
        }
    }

    /// One side of the change is a directory, the other is not.
    fn makes_or_ends_dir(&self) -> bool {
        self.change.before.is_dir() != self.change.after.is_dir()
    }

    /// False: this cannot be exchanged; the draft is as it was.
    fn replace_by_exchange(&self) -> Result<bool, FsError> {
        if let Err(e) = self.rename_aside(&self.draft, &self.swap, "finish a draft") {
            self.sweep_draft()?;
            return Err(self.failed(e));
        }
        match self.exchange() {
            Some(Ok(())) => return self.compare_out().map(|()| true),
            None => {}
            // A directory of a lower layer, or one that would hide it: in two steps it works.
            Some(Err(e)) if e.kind() == io::ErrorKind::CrossesDevices && self.makes_or_ends_dir() => {}
            Some(Err(e)) => {
                self.discard(&self.swap).map_err(|e| self.failed(e))?;
                return Err(self.unmovable(e));
            }
        }
        self.rename_aside(&self.swap, &self.draft, "take a draft back").map_err(|e| self.failed(e))?;
        Ok(false)
    }

    /// File, link or FIFO → one of these, without exchange: compare, then rename.
    fn replace_plainly(&self) -> Result<(), FsError> {
        self.workspace.point("compare and replace");
        let replaced = match self.look() {
            Ok(seen) if seen.state == self.change.before => {
                self.dir.rename(&self.draft, self.name).map_err(|e| self.unmovable(e))
            }
            Ok(_) => Err(self.changed()),
            Err(e) => Err(e),
        };
        if replaced.is_err() {
            self.sweep_draft()?;
        }
        replaced
    }

    /// Empty directory → something else, without exchange.
    fn replace_dir(&self) -> Result<(), FsError> {
        // Under the exchange name, so that after a crash in the gap `settle` knows it is complete.
        if let Err(e) = self.rename_aside(&self.draft, &self.swap, "finish a draft") {
            self.sweep_draft()?;
            return Err(self.failed(e));
        }
        self.workspace.point("remove a directory");
        if let Err(e) = self.dir.remove_dir(self.name) {
            self.discard(&self.swap).map_err(|e| self.failed(e))?;
            return Err(self.dir_stays(e));
        }
        match self.publish(&self.swap) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                self.discard(&self.swap).map_err(|e| self.failed(e))?;
                Err(self.changed())
            }
            Err(e) => {
                self.discard(&self.swap).map_err(|e| self.failed(e))?;
                self.write_draft(&self.change.before, None)?;
                self.publish_or_sweep(&self.draft)?;
                Err(self.failed(e))
            }
        }
    }

    /// File, link or FIFO → directory, without exchange.
    fn replace_by_dir(&self) -> Result<(), FsError> {
        let taken = self.rename_aside(self.name, &self.swap, "take out").map_err(|e| self.unmovable(e));
        let out = taken.and_then(|()| self.observe(&self.swap, self.blobs));
        let failure = match out {
            Ok(Seen { state, .. }) if state == self.change.before => match self.publish(&self.draft) {
                Ok(()) => return self.discard(&self.swap).map_err(|e| self.failed(e)),
                Err(e) => self.taken_or_failed(e),
            },
            Ok(_) => self.changed(),
            Err(e) => e,
        };
        self.sweep_draft()?;
        match (self.put_back()?, failure) {
            (None, FsError::Changed { .. }) => Err(self.changed()),
            (None, failure) => Err(failure),
            (stored, _) => Err(self.changed_storing(stored)),
        }
    }

    /// Permission bits of a file that has one name, through a handle: no link and no other file can come in between.
    fn change_file_mode(&self, mode: Mode, compared: &Stat) -> Result<(), FsError> {
        let (file, now) = match self.open_file(self.name)? {
            Opened::File(file, now) => (file, now),
            Opened::Other | Opened::Denied => return Err(self.changed()),
        };
        if !now.unchanged(compared) {
            return Err(self.changed());
        }
        let undo = |failure: FsError| {
            let old = rustix::fs::Mode::from_raw_mode(now.mode);
            match rustix::fs::fchmod(&file, old) {
                Ok(()) => failure,
                Err(e) => self.failed(e.into()),
            }
        };
        self.set_mode(&file, mode).map_err(undo)?;
        let named = self.stat(self.name)?;
        let then = Stat::of(&file).map_err(|e| self.failed(e))?;
        let same = named.is_some_and(|named| named.same_file(&now));
        if !same || (then.size, then.mtime_ns) != (now.size, now.mtime_ns) {
            let failure = undo(self.changed());
            // With the mode undone, say what is there now.
            return Err(if matches!(failure, FsError::Changed { .. }) { self.changed() } else { failure });
        }
        self.workspace.point("sync a mode");
        file.sync_all().map_err(|e| self.failed(e))
    }

    /// Permission bits of a directory or FIFO.
    fn change_mode(&self, mode: Mode, compared: &Stat) -> Result<(), FsError> {
        self.workspace.point("set a mode");
        let now = self.stat(self.name)?;
        if !now.is_some_and(|now| now.same_file(compared) && now.kind == compared.kind) {
            return Err(self.changed());
        }
        self.dir.chmod(self.name, u32::from(mode.0)).map_err(|e| self.failed(e))?;
        let changed = self.stat(self.name)?;
        if !changed.is_some_and(|found| found.same_file(compared)) {
            return Err(self.changed());
        }
        if let Err(unkept) = self.has_mode(changed, mode) {
            self.dir.chmod(self.name, compared.mode).map_err(|e| self.failed(e))?;
            return Err(unkept);
        }
        if self.change.after.is_dir() {
            self.sync_below()?;
        }
        Ok(())
    }

    /// Syncs the directory at the path itself, where it may be read.
    fn sync_below(&self) -> Result<(), FsError> {
        let synced = match self.dir.descend(self.name, Mounts::Same) {
            Ok(dir) => dir.sync(),
            Err(_) => return Err(self.changed()),
        };
        match synced {
            Err(e) if e.kind() != io::ErrorKind::PermissionDenied => Err(self.failed(e)),
            _ => Ok(()),
        }
    }
}
