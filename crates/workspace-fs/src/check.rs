//! Would a change go through?

use std::io;

use checkpoint_core::{Change, FsError, PathState, RelPath};
use durable_fs::Stat;
use rustix::process::geteuid;

use crate::{RealWorkspace, place::Place, real::Unreached};

/// Looks at everything that can be told without writing, except at content.
pub(crate) fn check(workspace: &RealWorkspace, change: &Change) -> Result<(), FsError> {
    describable(change)?;
    let place = match workspace.place_to_write(&change.path) {
        Ok(place) => place,
        Err(Unreached::Missing) => return nearest(workspace, &change.path),
        Err(unreached) => return Err(unreached.into_error(&change.path)),
    };
    let found = place.entry().map_err(|e| place.failed(e))?;
    if let Some(found) = &found {
        place.same_mount(found)?;
    }
    let dir = place.writable()?;
    let Some(found) = found else {
        return Ok(());
    };
    place.movable(&found, &dir)?;
    if change.before.is_absent() || change.after.is_absent() {
        return Ok(());
    }
    if changes_mode_in_place(change, &found) {
        return if Place::may_chmod(&found) { Ok(()) } else { Err(FsError::Metadata { path: change.path.clone() }) };
    }
    place.kept(&found, None, is_file(&change.after)).map(drop)
}

/// A state that no capture describes can be neither compared nor made.
pub(crate) fn describable(change: &Change) -> Result<(), FsError> {
    if matches!(change.before, PathState::Opaque) || matches!(change.after, PathState::Opaque) {
        let what = "what a capture does not describe is never written or removed";
        return Err(FsError::Other { what, source: change.path.to_lossy().into() });
    }
    Ok(())
}

pub(crate) fn is_file(state: &PathState) -> bool {
    matches!(state, PathState::File { .. })
}

/// True when a change is one of permission bits alone and nobody else's name leads to them.
pub(crate) fn changes_mode_in_place(change: &Change, found: &Stat) -> bool {
    let only_mode = change.before.same_content(&change.after) && !change.before.is_absent();
    only_mode && (!is_file(&change.before) || found.links == 1)
}

/// The directory is missing: an earlier change of the plan may make it, in the nearest one that exists.
fn nearest(workspace: &RealWorkspace, path: &RelPath) -> Result<(), FsError> {
    for above in path.ancestors() {
        match workspace.place_to_write(&above) {
            Ok(place) => return place.writable().map(drop),
            Err(Unreached::Missing) => {}
            Err(unreached) => return Err(unreached.into_error(path)),
        }
    }
    Ok(())
}

impl Place<'_> {
    /// Entries can be created and removed in the directory.
    fn writable(&self) -> Result<Stat, FsError> {
        self.dir.check_writable().map_err(|e| self.failed(e))?;
        let dir = self.dir_stat().map_err(|e| self.failed(e))?;
        if dir.locked { Err(self.failed(io::ErrorKind::PermissionDenied.into())) } else { Ok(dir) }
    }

    /// This very entry can be renamed and removed.
    fn movable(&self, found: &Stat, dir: &Stat) -> Result<(), FsError> {
        let user = geteuid();
        let sticky = dir.mode & 0o1000 != 0 && !user.is_root() && ![found.uid, dir.uid].contains(&user.as_raw());
        if sticky || found.locked { Err(self.failed(io::ErrorKind::PermissionDenied.into())) } else { Ok(()) }
    }

    /// The entry is no mount point.
    pub(crate) fn same_mount(&self, found: &Stat) -> Result<(), FsError> {
        let dir = self.dir_stat().map_err(|e| self.failed(e))?;
        let same = match (found.mount, dir.mount) {
            (Some(a), Some(b)) => a == b,
            _ => found.device == dir.device,
        };
        if same { Ok(()) } else { Err(FsError::OtherMount { path: self.path.clone() }) }
    }
}
