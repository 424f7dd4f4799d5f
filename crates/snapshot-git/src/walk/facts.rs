//! What `stat` says, in the form that the cache keeps, and how far a file system's stamps can be trusted.

use std::{
    sync::{Mutex, OnceLock},
    time::{SystemTime, UNIX_EPOCH},
};

use durable_fs::FsFacts;
use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{AtFlags, FileType, Stat},
    io::Errno,
    path::Arg,
};

use crate::cache::Stamp;

/// Now, in nanoseconds since 1970: the clock that stamps are compared with.
#[expect(clippy::disallowed_methods, reason = "stamps of files are compared with the system's own clock")]
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// What is at a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) kind: FileType,
    /// Permission bits.
    pub(crate) mode: u16,
    pub(crate) dev: u64,
    pub(crate) stamp: Stamp,
}

impl Facts {
    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }
}

#[cfg_attr(
    target_os = "linux",
    expect(clippy::unnecessary_cast, clippy::cast_possible_wrap, reason = "the fields' types differ between targets")
)]
impl From<&Stat> for Facts {
    fn from(st: &Stat) -> Self {
        let nanos = |secs: i64, nanos: i64| secs.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            kind: FileType::from_raw_mode(st.st_mode),
            mode: (st.st_mode & 0o7777) as u16,
            dev: st.st_dev as u64,
            stamp: Stamp {
                mtime: nanos(st.st_mtime as i64, st.st_mtime_nsec as i64),
                ctime: nanos(st.st_ctime as i64, st.st_ctime_nsec as i64),
                size: st.st_size.cast_unsigned(),
                ino: st.st_ino as u64,
            },
        }
    }
}

/// Looks at a name without following it.
pub(crate) fn stat_at(dir: impl AsFd, name: impl Arg) -> Result<Facts, Errno> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|st| Facts::from(&st))
}

/// Looks at an open file.
pub(crate) fn stat_fd(fd: impl AsFd) -> Result<Facts, Errno> {
    rustix::fs::fstat(fd).map(|st| Facts::from(&st))
}

/// What a file system's stamps are worth (design § 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trust {
    /// An ordinary local file system: inode numbers are stable, and names cannot change without the directory's
    /// stamp.
    pub(crate) local: bool,
    /// A stamp this close to now may still hide a change, in nanoseconds.
    pub(crate) window: i64,
}

/// The racy window of ordinary local file systems.
pub(crate) const WINDOW: i64 = 20_000_000;
/// The racy window of all others.
const WIDE_WINDOW: i64 = 2_000_000_000;

impl Trust {
    fn of(facts: FsFacts) -> Self {
        let window = i64::try_from(facts.racy_window.as_nanos()).unwrap_or(i64::MAX);
        Self { local: facts.local && facts.stable_inode, window }
    }

    /// Is a stamp so close to the start of a capture, or so far after it, that a later change may have the same?
    pub(crate) fn is_racy(self, stamp: &Stamp, start: i64) -> bool {
        stamp.newest() >= start.saturating_sub(self.window)
    }

    /// Are two stamps the same version of a file?
    pub(crate) fn same(self, a: &Stamp, b: &Stamp) -> bool {
        a.mtime == b.mtime && a.ctime == b.ctime && a.size == b.size && (a.ino == b.ino || !self.local)
    }
}

/// Trust by device: a workspace has one or two. The first is asked for once a file, so it is found without a lock.
#[derive(Debug, Default)]
pub(crate) struct Trusts(OnceLock<(u64, Trust)>, Mutex<Vec<(u64, Trust)>>);

impl Trusts {
    pub(crate) fn of(&self, dev: u64, fd: BorrowedFd<'_>) -> Trust {
        let ask = || {
            // What cannot be asked is doubted.
            let doubted = Trust { local: false, window: WIDE_WINDOW };
            durable_fs::fs_facts(fd).map_or(doubted, Trust::of)
        };
        let (first, trust) = self.0.get_or_init(|| (dev, ask()));
        if *first == dev {
            return *trust;
        }
        let mut known = self.1.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, trust)) = known.iter().find(|(d, _)| *d == dev) {
            return *trust;
        }
        let trust = ask();
        known.push((dev, trust));
        trust
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stamp equal to the capture's start, one from before a clock that was set back, and what lies at the limit.
    #[test]
    fn a_stamp_is_trusted_only_when_it_is_older_than_the_window() {
        let start = 1_000 * WINDOW;
        for window in [WINDOW, WIDE_WINDOW] {
            let trust = Trust { local: true, window };
            let racy = |mtime: i64, ctime: i64| trust.is_racy(&Stamp { mtime, ctime, ..Stamp::default() }, start);
            assert!(racy(0, start) && racy(start, 0));
            assert!(racy(0, start - window) && !racy(0, start - window - 1));
            assert!(racy(start - window, 0) && !racy(start - window - 1, 0));
            assert!(racy(0, start + 3_600_000_000_000) && racy(i64::MAX, i64::MIN));
            assert!(trust.is_racy(&Stamp::default(), i64::MIN), "a clock at its beginning");
        }
    }

    #[test]
    fn doubtful_file_systems_have_a_wide_window_and_no_inode() {
        let facts = |local, ms| FsFacts {
            name: "x",
            local,
            racy_window: std::time::Duration::from_millis(ms),
            stable_inode: local,
        };
        let doubtful = Trust::of(facts(false, 2000));
        assert_eq!(doubtful, Trust { local: false, window: WIDE_WINDOW });
        let a = Stamp { ino: 1, ..Stamp::default() };
        assert!(doubtful.same(&a, &Stamp { ino: 2, ..a }));
        assert!(!doubtful.same(&a, &Stamp { size: 1, ..a }));
        let ordinary = Trust::of(facts(true, 20));
        assert_eq!(ordinary.window, WINDOW);
        assert!(!ordinary.same(&a, &Stamp::default()));
    }
}
