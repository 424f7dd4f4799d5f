//! What kind of file system a path lies on, and which file it is.

use std::{path::Path, time::Duration};

use rustix::{
    fd::AsFd,
    fs::{self, Mode, OFlags},
};

use crate::{Error, Stat};

/// How far stamps and inode numbers of a file system can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsFacts {
    /// Its name, `unknown` for one not in the list.
    pub name: &'static str,
    /// Served by this machine's kernel from its own storage: locks, renames and memory maps work as documented.
    pub local: bool,
    /// A stamp younger than this may hide a later change.
    pub racy_window: Duration,
    /// The same file keeps its inode number, across remounts too.
    pub stable_inode: bool,
}

const fn ordinary(name: &'static str) -> FsFacts {
    FsFacts { name, local: true, racy_window: Duration::from_millis(20), stable_inode: true }
}

const fn doubtful(name: &'static str) -> FsFacts {
    FsFacts { name, local: false, racy_window: Duration::from_secs(2), stable_inode: false }
}

/// Of a file-system type by its number, as `fstatfs` gives it.
const fn by_magic(magic: u32) -> FsFacts {
    match magic {
        0xef53 => ordinary("ext4"),
        0x5846_5342 => ordinary("xfs"),
        0x9123_683e => ordinary("btrfs"),
        0x0102_1994 => ordinary("tmpfs"),
        0x794c_7630 => ordinary("overlay"),
        0x6969 => doubtful("nfs"),
        0xff53_4d42 | 0xfe53_4d42 => doubtful("smb"),
        0x0102_1997 => doubtful("9p"),
        // virtiofs reports the number of FUSE, which it is built on.
        0x6573_5546 => doubtful("fuse"),
        _ => doubtful("unknown"),
    }
}

/// Facts of the file system that holds an open descriptor; unknown ones are doubted.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn fs_facts(handle: impl AsFd) -> std::io::Result<FsFacts> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the kernel's numbers have 32 bits, in a field whose type differs by architecture"
    )]
    let magic = fs::fstatfs(handle)?.f_type as u32;
    Ok(by_magic(magic))
}

/// Facts of the file system that holds an open descriptor: not known on this platform, hence doubted.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn fs_facts(_: impl AsFd) -> std::io::Result<FsFacts> {
    Ok(by_magic(0))
}

/// Recognises a file or directory again when it is met later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Nanoseconds since 1970 of its creation, where the file system keeps it: tells a reused inode number apart.
    pub birth_ns: Option<i128>,
}

/// Identity of what is at `path`, links followed.
pub fn identity(path: &Path) -> Result<Identity, Error> {
    let stat = stat(path)?;
    Ok(Identity { device: stat.device, inode: stat.inode, birth_ns: stat.birth_ns })
}

/// The mount that `path` lies on, links followed; `None` where the kernel does not tell.
pub fn mount_id(path: &Path) -> Result<Option<u64>, Error> {
    Ok(stat(path)?.mount)
}

fn stat(path: &Path) -> Result<Stat, Error> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    fs::open(path, flags, Mode::empty())
        .map_err(Into::into)
        .and_then(Stat::of)
        .map_err(|e| Error::new("look at", path, e))
}

/// Bytes that an unprivileged process may still write to the file system of `path`.
pub fn free_bytes(path: &Path) -> Result<u64, Error> {
    let found = fs::statvfs(path).map_err(|e| Error::new("ask for the free space of", path, e))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_remote_file_systems_are_doubted() {
        for magic in [0, 0x6969, 0x6573_5546, 0x0102_1997] {
            let facts = by_magic(magic);
            assert!(!facts.stable_inode && !facts.local && facts.racy_window == Duration::from_secs(2), "{facts:?}");
        }
        assert_eq!(by_magic(0xef53).racy_window, Duration::from_millis(20));
    }
}
