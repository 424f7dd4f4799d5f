//! Where something changed, as the system tells it to a process that stays: a hint that saves a capture before a tool
//! the walk (design § 10). Nothing but the hint is taken from it: a directory that is said to have changed is looked at
//! as in any capture, the others are taken over from the snapshot before.
//!
//! A watcher does not see everything: stores through a memory map, writes by another name of a file outside the
//! workspace. So a capture by hint proves nothing absent, and every
//! turn's start and end, every guard and every named point walks. In doubt of any kind a capture walks, too.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod inotify;
mod marks;
mod resident;

use std::{fmt, io, path::Path};

pub(crate) use marks::{Hint, Visit};
pub(crate) use resident::{Key, Resident, Walked, Went};

/// Makes watchers; the seam for other systems and for tests.
pub trait Watchers: fmt::Debug + Send + Sync {
    /// A watcher for what lies below `root`. It watches nothing yet.
    ///
    /// # Errors
    /// Where the system has none, or gives no more: then every capture walks.
    fn start(&self, root: &Path) -> io::Result<Box<dyn Watcher>>;
}

/// Watches directories, one by one, by their paths from the root; the root's own is empty.
pub trait Watcher: fmt::Debug + Send {
    /// Watches the entries of a directory from now on.
    ///
    /// # Errors
    /// When it cannot: it is gone, or the system's limit is reached.
    fn add(&mut self, dir: &[u8]) -> io::Result<()>;

    /// True when the directory of that path is watched.
    fn has(&self, dir: &[u8]) -> bool;

    /// Forgets a directory and all below it.
    fn forget(&mut self, dir: &[u8]);

    /// Hands over what happened since the last time, oldest first. Never waits.
    fn drain(&mut self, tell: &mut dyn FnMut(Event));
}

/// What a watcher saw. Paths are from the root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An entry that is no directory came, went or has other content or metadata.
    Entry {
        /// The directory that holds it.
        dir: Vec<u8>,
        /// Its name there.
        name: Vec<u8>,
        /// Whether somebody writes to it.
        writing: Writing,
    },
    /// A directory came, by whatever name it had before: nothing below it was watched.
    Came(Vec<u8>),
    /// A directory went.
    Went(Vec<u8>),
    /// A directory has other permission bits, or another owner.
    Touched(Vec<u8>),
    /// Something was not told.
    Lost,
}

/// What an event says of writers of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    /// Bytes were written, and whoever did may go on.
    Open,
    /// A writer has closed it.
    Closed,
    /// Nothing.
    Unsaid,
}

/// The system's own watchers: inotify.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SystemWatchers;

impl Watchers for SystemWatchers {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn start(&self, root: &Path) -> io::Result<Box<dyn Watcher>> {
        Ok(Box::new(inotify::Inotify::new(root)?))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn start(&self, _: &Path) -> io::Result<Box<dyn Watcher>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The path of a name in a directory.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// True for a path at or below another; everything is below the root.
fn is_at_or_below(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty() || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
