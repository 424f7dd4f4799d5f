//! What the system says of one directory entry or handle.

use std::io;

use rustix::{
    fd::AsFd,
    fs::{AtFlags, FileType},
};

/// Type of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A directory.
    Dir,
    /// A FIFO.
    Fifo,
    /// A socket, a device or something else.
    Special,
}

/// Result of one `statx` (elsewhere: `fstatat`) that follows no link and triggers no automount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Type.
    pub kind: Kind,
    /// Permission bits, `0o7777` at most.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
    /// Number of names.
    pub links: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device, opaque.
    pub device: u64,
    /// Inode on the device.
    pub inode: u64,
    /// Nanoseconds since 1970 of the last change of content.
    pub mtime_ns: i128,
    /// Nanoseconds since 1970 of the last change of content or metadata.
    pub ctime_ns: i128,
    /// Nanoseconds since 1970 of creation, where the file system keeps it.
    pub birth_ns: Option<i128>,
    /// Mount the entry lies on; for a mount point: what is mounted there. `None` where the kernel does not tell.
    pub mount: Option<u64>,
    /// Marked immutable or append-only: nobody may rename or remove it.
    pub locked: bool,
}

impl Stat {
    /// True when both describe the same file, whatever its content.
    pub fn same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// True when nothing of content or metadata was changed between the two, as far as stamps can tell.
    pub fn unchanged(&self, other: &Self) -> bool {
        self.same_file(other)
            && (self.size, self.mtime_ns, self.ctime_ns) == (other.size, other.mtime_ns, other.ctime_ns)
    }

    /// Of an entry of a directory, no link followed.
    pub(crate) fn at(dir: impl AsFd, name: &[u8]) -> io::Result<Self> {
        read(dir, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Of an open descriptor.
    pub fn of(handle: impl AsFd) -> io::Result<Self> {
        read(handle, b"", AtFlags::EMPTY_PATH)
    }
}

fn kind(mode: u32) -> Kind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        FileType::Directory => Kind::Dir,
        FileType::Fifo => Kind::Fifo,
        _ => Kind::Special,
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn read(at: impl AsFd, name: &[u8], flags: AtFlags) -> io::Result<Stat> {
    use rustix::fs::{StatxAttributes, StatxFlags, StatxTimestamp, statx};

    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    let found = match statx(at.as_fd(), name, flags | AtFlags::NO_AUTOMOUNT, wanted) {
        // A kernel or sandbox without statx.
        Err(rustix::io::Errno::NOSYS) => return read_plain(at, name, flags),
        other => other?,
    };
    let ns = |t: StatxTimestamp| i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec);
    let has = |what: StatxFlags| found.stx_mask & what.bits() != 0;
    let mode = u32::from(found.stx_mode);
    Ok(Stat {
        kind: kind(mode),
        mode: mode & 0o7777,
        size: found.stx_size,
        links: found.stx_nlink.into(),
        uid: found.stx_uid,
        gid: found.stx_gid,
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        mtime_ns: ns(found.stx_mtime),
        ctime_ns: ns(found.stx_ctime),
        birth_ns: has(StatxFlags::BTIME).then(|| ns(found.stx_btime)),
        mount: has(StatxFlags::MNT_ID).then_some(found.stx_mnt_id),
        locked: found.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn read(at: impl AsFd, name: &[u8], flags: AtFlags) -> io::Result<Stat> {
    read_plain(at, name, flags)
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    clippy::cast_sign_loss,
    clippy::useless_conversion,
    reason = "field types differ by platform"
)]
fn read_plain(at: impl AsFd, name: &[u8], flags: AtFlags) -> io::Result<Stat> {
    let found = if name.is_empty() { rustix::fs::fstat(at)? } else { rustix::fs::statat(at, name, flags)? };
    let mode = u32::from(found.st_mode);
    Ok(Stat {
        kind: kind(mode),
        mode: mode & 0o7777,
        size: found.st_size as u64,
        links: found.st_nlink as u64,
        uid: found.st_uid,
        gid: found.st_gid,
        device: found.st_dev as u64,
        inode: found.st_ino as u64,
        mtime_ns: found.st_mtime as i128 * 1_000_000_000 + found.st_mtime_nsec as i128,
        ctime_ns: found.st_ctime as i128 * 1_000_000_000 + found.st_ctime_nsec as i128,
        birth_ns: None,
        mount: None,
        locked: false,
    })
}
