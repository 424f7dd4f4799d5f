//! One change under way: its temporaries, and the steps that move names about.

use std::{io, ops::Deref};

use checkpoint_core::{BlobStore, Change, FsError, PathState, Temporaries};
use durable_fs::{Dir, Kind};

use crate::place::{Place, Seen};

/// A change, its place, and the names only this change of this operation uses.
///
/// - `draft` holds bytes of rwd and nothing else, complete or not;
/// - `swap` holds something complete: a draft that is to be exchanged, or what an exchange or a removal took out.
pub(crate) struct Work<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) change: &'a Change,
    pub(crate) blobs: &'a dyn BlobStore,
    pub(crate) draft: Vec<u8>,
    pub(crate) swap: Vec<u8>,
}

impl<'a> Deref for Work<'a> {
    type Target = Place<'a>;
    fn deref(&self) -> &Place<'a> {
        &self.place
    }
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        place: Place<'a>,
        change: &'a Change,
        names: &Temporaries,
        n: usize,
        blobs: &'a dyn BlobStore,
    ) -> Self {
        let place = place.expecting([change.before.blob(), change.after.blob()]);
        Self { place, change, blobs, draft: names.draft(n), swap: names.exchange(n) }
    }

    /// What stands under the path's own name.
    pub(crate) fn look(&self) -> Result<Seen, FsError> {
        self.observe(self.name, self.blobs)
    }

    /// The error for a path that holds something else than `before`.
    pub(crate) fn changed(&self) -> FsError {
        self.changed_storing(None)
    }

    /// The same, naming bytes that were stored because the path holds other ones.
    pub(crate) fn changed_storing(&self, stored: Option<checkpoint_core::ObjectId>) -> FsError {
        // A path that cannot be read just now has changed all the same.
        let found = self.look().map_or(PathState::Opaque, |seen| seen.state);
        FsError::Changed { path: self.path.clone(), found, stored }
    }

    /// Renames to a name that nobody else uses.
    pub(crate) fn rename_aside(&self, from: &[u8], to: &[u8], what: &'static str) -> io::Result<()> {
        if self.workspace.can_rename_no_replace() {
            self.workspace.point(what);
            match self.dir.rename_no_replace(from, to) {
                Err(e) if Dir::is_unsupported(&e) => self.workspace.cannot_rename_no_replace(),
                done => return done,
            }
        }
        if self.dir.stat_at(to)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.workspace.point(what);
        self.dir.rename(from, to)
    }

    /// Gives a temporary the path's own name, which must be free: `AlreadyExists` otherwise.
    ///
    /// Where the system cannot rename without replacing, a second name is made and the first one removed; a crash in
    /// between leaves two names of one file. A directory is simply renamed: over a file or a directory that holds
    /// anything the kernel refuses that.
    pub(crate) fn publish(&self, from: &[u8]) -> io::Result<()> {
        if self.workspace.can_rename_no_replace() {
            self.workspace.point("publish");
            match self.dir.rename_no_replace(from, self.name) {
                Err(e) if Dir::is_unsupported(&e) => self.workspace.cannot_rename_no_replace(),
                done => return done,
            }
        }
        let is_dir = self.dir.stat_at(from)?.is_some_and(|found| found.kind == Kind::Dir);
        if !is_dir {
            self.workspace.point("publish by a second name");
            match self.dir.hard_link(from, self.name) {
                Ok(()) => {
                    self.workspace.point("remove the first name");
                    return self.dir.unlink(from);
                }
                // No hard links here either: what is left is a look and a rename.
                Err(e) if Dir::is_unsupported(&e) || e.kind() == io::ErrorKind::PermissionDenied => {}
                Err(e) => return Err(e),
            }
        }
        self.workspace.point("publish by a plain rename");
        if self.dir.stat_at(self.name)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.dir.rename(from, self.name)
    }

    /// Swaps the path and its finished temporary. `None`: this file system cannot do it, now known.
    pub(crate) fn exchange(&self) -> Option<io::Result<()>> {
        if !self.workspace.can_exchange() {
            return None;
        }
        self.workspace.point("exchange");
        match self.dir.exchange(&self.swap, self.name) {
            Err(e) if Dir::is_unsupported(&e) => match self.probe_exchange() {
                Ok(true) => Some(Err(e)),
                Ok(false) => {
                    self.workspace.cannot_exchange();
                    None
                }
                Err(e) => Some(Err(e)),
            },
            done => Some(done),
        }
    }

    /// Does exchanging two files of our own work here?
    pub(crate) fn probe_exchange(&self) -> io::Result<bool> {
        let [a, b] = self.probes();
        let probed = (|| {
            for name in [&a, &b] {
                self.workspace.point("create a probe");
                drop(self.dir.create_file(name)?);
            }
            self.workspace.point("exchange the probes");
            match self.dir.exchange(&a, &b) {
                Ok(()) => Ok(true),
                Err(e) if Dir::is_unsupported(&e) => Ok(false),
                Err(e) => Err(e),
            }
        })();
        self.sweep_probes()?;
        probed
    }

    fn probes(&self) -> [Vec<u8>; 2] {
        [b".a", b".b"].map(|suffix| [self.draft.as_slice(), suffix].concat())
    }

    pub(crate) fn sweep_probes(&self) -> io::Result<()> {
        for name in self.probes() {
            if self.dir.stat_at(&name)?.is_some() {
                self.workspace.point("remove a probe");
                self.dir.unlink(&name)?;
            }
        }
        Ok(())
    }

    /// Removes a temporary whose content is known to be elsewhere. A directory goes only when it holds nothing.
    pub(crate) fn discard(&self, name: &[u8]) -> io::Result<()> {
        let Some(found) = self.dir.stat_at(name)? else {
            return Ok(());
        };
        self.remove_as(name, found.kind == Kind::Dir)
    }

    /// The same for one that was just looked at. What has become a directory meanwhile stays.
    pub(crate) fn remove_as(&self, name: &[u8], dir: bool) -> io::Result<()> {
        self.workspace.point("remove a temporary");
        match if dir { self.dir.remove_dir(name) } else { self.dir.unlink(name) } {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Removes the draft, finished or not.
    pub(crate) fn sweep_draft(&self) -> Result<(), FsError> {
        match self.discard(&self.draft) {
            // Somebody put something into a directory that was to become theirs in a moment.
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Err(self.keep_beside(&self.draft)),
            done => done.map_err(|e| self.failed(e)),
        }
    }

    /// Moves a temporary that may not be removed and cannot be put back to a name where its owner will find it.
    ///
    /// Returns the error that names it: nothing else would tell.
    pub(crate) fn keep_beside(&self, temporary: &[u8]) -> FsError {
        // `.rwd-<operation>-<n>.swap` becomes `rwd-kept-<operation>-<n>`.
        let stem = self.swap.strip_suffix(b".swap").unwrap_or(&self.swap);
        let stem = stem.strip_prefix(b".rwd-").unwrap_or(stem);
        for attempt in 0..100 {
            let mut name = [b"rwd-kept-", stem].concat();
            if attempt > 0 {
                name.extend_from_slice(format!("-{attempt}").as_bytes());
            }
            match self.rename_aside(temporary, &name, "keep a temporary beside its path") {
                Ok(()) => {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    tracing::warn!(path = %self.path, kept_as = name, "kept what could not be put back");
                    let what = "what was found could be neither put back nor stored, and was kept beside the path";
                    return FsError::Other { what, source: name.into() };
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return self.failed(e),
            }
        }
        self.failed(io::ErrorKind::AlreadyExists.into())
    }
}
