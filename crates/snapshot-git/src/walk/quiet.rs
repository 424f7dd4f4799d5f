//! Which directories stood still: only there a missing name proves that there was nothing (design § 5, model F21).

use std::{
    collections::BTreeMap,
    ffi::CStr,
    mem::MaybeUninit,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    fd::{BorrowedFd, OwnedFd},
    fs::Mode,
    io::Errno,
};

use super::{
    dir::{DIR_FLAGS, Listing},
    facts::{Facts, now, stat_at, stat_fd},
};
use crate::{cache::Stamp, rules::Digest};

/// Longer paths are opened name by name.
const MAX_PATH: usize = 4000;

/// A directory as it was when it was listed.
#[derive(Debug)]
pub(crate) struct SeenDir {
    pub(crate) path: Vec<u8>,
    dev: u64,
    stamp: Stamp,
    /// Its stamp was older than the racy window.
    settled: bool,
    window: i64,
    /// Digest of its names, where it was not settled.
    pub(super) names: Option<Digest>,
}

impl SeenDir {
    pub(super) fn new(path: Vec<u8>, facts: &Facts, settled: bool, window: i64) -> Self {
        Self { path, dev: facts.dev, stamp: facts.stamp, settled, window, names: None }
    }

    fn is_same(&self, facts: &Facts) -> bool {
        let (old, new) = (&self.stamp, &facts.stamp);
        facts.dev == self.dev && (old.ino, old.mtime, old.ctime) == (new.ino, new.mtime, new.ctime)
    }
}

/// The directories that may have changed while they were listed, after the whole walk.
///
/// A directory that was too young is listed again once its stamp has aged; `until` bounds that wait, and `counts`
/// tells which names belong to the capture.
pub(crate) fn unsettled<'d>(
    root: &OwnedFd,
    dirs: &'d [SeenDir],
    until: Option<Instant>,
    threads: usize,
    counts: &(dyn Fn(&[u8]) -> bool + Sync),
) -> Vec<&'d SeenDir> {
    let live = Mutex::new(BTreeMap::new());
    let mark = |dir: &'d SeenDir| {
        live.lock().unwrap_or_else(PoisonError::into_inner).insert(&dir.path[..], dir);
    };
    in_parallel(dirs, threads, &|dir| {
        if !find(root, &dir.path).is_ok_and(|facts| dir.is_same(&facts)) {
            mark(dir);
        }
    });
    let known = live.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect::<Vec<_>>();
    let young: Vec<&SeenDir> =
        dirs.iter().filter(|dir| !dir.settled && known.binary_search(&&dir.path[..]).is_err()).collect();
    let age = |dir: &SeenDir| now().saturating_sub(dir.stamp.newest());
    let wait = young.iter().map(|dir| dir.window.saturating_sub(age(dir)).clamp(0, dir.window)).max().unwrap_or(0);
    if wait > 0 {
        // One more tick of the coarse clock that stamps are taken from.
        let wait = Duration::from_nanos(wait.unsigned_abs()) + Duration::from_millis(1);
        let left = until.map_or(wait, |until| until.saturating_duration_since(Instant::now()) / 2);
        std::thread::sleep(wait.min(left));
    }
    in_parallel(&young, threads, &|dir| {
        let again = || -> Result<bool, Errno> {
            let fd = open(root, &dir.path)?;
            let aged = age(dir) > dir.window && dir.is_same(&stat_fd(&fd)?);
            let names = Listing::read(&fd, &mut vec![MaybeUninit::uninit(); 32 << 10])?.digest(counts);
            Ok(aged && dir.names == Some(names) && dir.is_same(&stat_fd(&fd)?))
        };
        if !again().unwrap_or(false) {
            mark(dir);
        }
    });
    live.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn in_parallel<'d, T: Sync>(all: &'d [T], threads: usize, each: &(dyn Fn(&'d T) + Sync)) {
    const STEP: usize = 128;
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let from = next.fetch_add(STEP, Ordering::Relaxed);
            let Some(part) = all.get(from..) else { return };
            part.iter().take(STEP).for_each(each);
            if part.len() <= STEP {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(all.len().div_ceil(STEP)) {
            scope.spawn(work);
        }
        work();
    });
}

/// Looks at a directory. A link on the way leads to another inode, which shows.
fn find(root: &OwnedFd, path: &[u8]) -> Result<Facts, Errno> {
    if path.is_empty() {
        return stat_fd(root);
    }
    if path.len() < MAX_PATH {
        return stat_at(root, path);
    }
    stat_fd(open(root, path)?)
}

/// Opens a directory name by name, following no link.
pub(super) fn open(root: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let next = |dir: BorrowedFd<'_>, name: &[u8]| rustix::fs::openat(dir, name, DIR_FLAGS, Mode::empty());
    let here: &CStr = c".";
    let mut fd = rustix::fs::openat(root, here, DIR_FLAGS, Mode::empty())?;
    for name in path.split(|&b| b == b'/').filter(|name| !name.is_empty()) {
        fd = next(rustix::fd::AsFd::as_fd(&fd), name)?;
    }
    Ok(fd)
}
