//! An open directory: everything below it is reached by descriptor and name, and no link is ever followed.

use std::{fs::File, io, path::Path};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{self, Access, AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Uid},
    io::Errno,
};

use crate::{Error, Kind, Stat};

/// Whether a descent may cross into another mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mounts {
    /// Refuse with [`Descent::OtherMount`].
    Same,
    /// Go on.
    Any,
}

/// Why a directory below another could not be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Descent {
    /// A component is not there.
    #[error("a directory on the way does not exist")]
    Missing,
    /// A component is a symbolic link or anything else but a directory.
    #[error("something on the way is no directory")]
    NoDirectory,
    /// A component is a mount point.
    #[error("a directory on the way lies on another mount")]
    OtherMount,
    /// A system call failed.
    #[error("a directory on the way cannot be opened")]
    Io(#[source] io::Error),
}

/// A directory held open. Names given to its methods are single components.
///
/// The handle keeps meaning the same directory when somebody renames it. For that reason nothing here caches handles
/// from one call of [`Dir::descend`] to the next: a cached one could by then lie outside the tree.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// For descending only: needs search permission on the way, but none on the directory itself.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SEARCH: OFlags = OFlags::RDONLY;

const HANDLE: OFlags = SEARCH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The kernel takes paths of less than 4,096 bytes; longer ones are walked in pieces of at most this.
const PIECE: usize = 4000;

/// So many levels of `../` fit such a piece.
const LEVELS: usize = PIECE / 3;

/// The name of the directory so many levels up, at least one.
fn up(levels: usize) -> Vec<u8> {
    let mut name = b"../".repeat(levels);
    name.pop();
    name
}

impl Dir {
    /// Opens the directory at `path`, links in `path` followed: the place everything else is relative to.
    pub fn open_root(path: &Path) -> Result<Self, Error> {
        match fs::openat(CWD, path, HANDLE, Mode::empty()) {
            Ok(fd) => Ok(Self { fd }),
            Err(e) => Err(Error::new("open the directory", path, e)),
        }
    }

    /// Opens the directory that `relative` names below this one, `/` between components; empty means this one.
    ///
    /// Works for a `relative` of any length. The caller vouches that no component is empty, `.` or `..`; such a
    /// component is refused with an error of kind `InvalidInput`.
    pub fn descend(&self, relative: &[u8], mounts: Mounts) -> Result<Self, Descent> {
        if relative.is_empty() {
            return Ok(Self { fd: self.fd.try_clone().map_err(Descent::Io)? });
        }
        if relative.split(|&b| b == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
            return Err(Descent::Io(io::ErrorKind::InvalidInput.into()));
        }
        let (piece, mut rest) = split_piece(relative);
        let mut at = self.descend_piece(piece, mounts)?;
        while !rest.is_empty() {
            let piece;
            (piece, rest) = split_piece(rest);
            at = at.descend_piece(piece, mounts)?;
        }
        Ok(at)
    }

    fn descend_piece(&self, piece: &[u8], mounts: Mounts) -> Result<Self, Descent> {
        match self.open_beneath(piece, mounts) {
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => self.step(piece, mounts),
            opened => opened.map_err(sort),
        }
    }

    /// One system call for a whole piece: the kernel refuses links, `..` and, if asked, mounts.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn open_beneath(&self, piece: &[u8], mounts: Mounts) -> Result<Self, Errno> {
        use rustix::fs::ResolveFlags;
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        if mounts == Mounts::Same {
            resolve |= ResolveFlags::NO_XDEV;
        }
        let fd = fs::openat2(&self.fd, piece, HANDLE | OFlags::NOFOLLOW, Mode::empty(), resolve)?;
        Ok(Self { fd })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn open_beneath(&self, _: &[u8], _: Mounts) -> Result<Self, Errno> {
        Err(Errno::NOSYS)
    }

    /// The portable way: one component at a time.
    fn step(&self, piece: &[u8], mounts: Mounts) -> Result<Self, Descent> {
        let mut at = self.open(b".").map_err(Descent::Io)?;
        let home = at.stat().map_err(Descent::Io)?;
        for part in piece.split(|&b| b == b'/') {
            let next = fs::openat(&at.fd, part, HANDLE | OFlags::NOFOLLOW, Mode::empty()).map_err(sort)?;
            at = Self { fd: next };
            if mounts == Mounts::Same {
                let here = at.stat().map_err(Descent::Io)?;
                let same = match (here.mount, home.mount) {
                    (Some(a), Some(b)) => a == b,
                    _ => here.device == home.device,
                };
                if !same {
                    return Err(Descent::OtherMount);
                }
            }
        }
        Ok(at)
    }

    fn open(&self, name: &[u8]) -> io::Result<Self> {
        Ok(Self { fd: fs::openat(&self.fd, name, HANDLE | OFlags::NOFOLLOW, Mode::empty())? })
    }

    /// A handle that can be read and synced; needs read permission.
    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(fs::openat(&self.fd, ".", flags, Mode::empty())?)
    }

    /// Of the directory itself.
    pub fn stat(&self) -> io::Result<Stat> {
        Stat::of(&self.fd)
    }

    /// Of the directory `levels` above this one, as it lies now; 0 is this one.
    ///
    /// Goes by what holds this very directory, not by a name: what it says stays true of the handle, whoever renames
    /// what meanwhile. Needs permission to search this directory and those on the way.
    pub fn stat_above(&self, levels: usize) -> io::Result<Stat> {
        if levels > LEVELS {
            return self.open(&up(LEVELS))?.stat_above(levels - LEVELS);
        }
        if levels == 0 { self.stat() } else { Stat::at(&self.fd, &up(levels)) }
    }

    /// Of an entry; `None` when there is none.
    pub fn stat_at(&self, name: &[u8]) -> io::Result<Option<Stat>> {
        absent(Stat::at(&self.fd, name))
    }

    /// The text of a symbolic link, of any length.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(&self.fd, name, Vec::new())?.into_bytes())
    }

    /// Opens an entry for reading without waiting for anybody: a link is refused, a FIFO or device does not block.
    ///
    /// The caller looks at what it got ([`Stat::of`]) before reading: the entry may have been swapped.
    pub fn open_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(fs::openat(&self.fd, name, flags, Mode::empty())?.into())
    }

    /// Creates a file that was not there, readable and writable by its owner only, opened for both.
    pub fn create_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&self.fd, name, flags, Mode::from(0o600))?.into())
    }

    /// Creates a directory for its owner only.
    pub fn create_dir(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::mkdirat(&self.fd, name, Mode::from(0o700))?)
    }

    /// Creates a symbolic link.
    pub fn create_link(&self, name: &[u8], text: &[u8]) -> io::Result<()> {
        Ok(fs::symlinkat(text, &self.fd, name)?)
    }

    /// Creates a FIFO for its owner only.
    pub fn create_fifo(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::mkfifoat(&self.fd, name, Mode::from(0o600))?)
    }

    /// Gives an entry exactly these permission bits, whatever the umask.
    ///
    /// Goes through a handle that no link can stand in for, where the platform has such handles; elsewhere the name
    /// must be one that nobody else uses.
    pub fn chmod(&self, name: &[u8], mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(narrow(mode));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fd::AsRawFd;
            let handle = fs::openat(&self.fd, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            if Stat::of(&handle)?.kind == Kind::Link {
                return Err(Errno::LOOP.into());
            }
            match fs::chmodat(CWD, format!("/proc/self/fd/{}", handle.as_raw_fd()), mode, AtFlags::empty()) {
                // No /proc in this sandbox.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                other => return Ok(other?),
            }
        }
        Ok(fs::chmodat(&self.fd, name, mode, AtFlags::empty())?)
    }

    /// Gives an entry, never what a link points at, to an owner and a group.
    pub fn chown(&self, name: &[u8], uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        Ok(fs::chownat(&self.fd, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Renames, over whatever has the new name.
    pub fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Renames, or fails with `AlreadyExists`; see [`unsupported`](Self::is_unsupported) for file systems without.
    pub fn rename_no_replace(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE)?)
    }

    /// Swaps two entries in one step.
    pub fn exchange(&self, a: &[u8], b: &[u8]) -> io::Result<()> {
        Ok(fs::renameat_with(&self.fd, a, &self.fd, b, RenameFlags::EXCHANGE)?)
    }

    /// Gives a second name to an entry that is no directory; a link itself, never what it points at.
    pub fn hard_link(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty())?)
    }

    /// Gives a finished file its name, which it takes from nobody: fails with `AlreadyExists` where something has it.
    /// After that the temporary name is gone, or a leftover beside a file that is whole. Durable with [`Dir::sync`].
    pub fn publish(&self, temporary: &[u8], name: &[u8]) -> io::Result<()> {
        match self.hard_link(temporary, name) {
            // No second names on this file system.
            Err(error) if Self::is_unsupported(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
                self.rename_no_replace(temporary, name)
            }
            linked => {
                linked?;
                let _gone_or_left = self.unlink(temporary);
                Ok(())
            }
        }
    }

    /// Removes a name that is no directory's.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// True when the entry is a directory that holds nothing. Needs permission to read it.
    pub fn is_empty(&self, name: &[u8]) -> io::Result<bool> {
        let mut listing = fs::Dir::read_from(self.open(name)?.readable()?)?;
        while let Some(entry) = listing.read() {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fails unless entries may be created and removed here, by the rights of the effective user.
    pub fn check_writable(&self) -> io::Result<()> {
        Ok(fs::accessat(&self.fd, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
    }

    /// Makes entries created, renamed and removed here durable.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fs::fsync(self.readable()?)?)
    }

    /// True when an error of [`Dir::exchange`], [`Dir::rename_no_replace`] or [`Dir::hard_link`] says that this file
    /// system cannot do such a thing at all.
    pub fn is_unsupported(error: &io::Error) -> bool {
        let unsupported = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
        Errno::from_io_error(error).is_some_and(|errno| unsupported.contains(&errno))
    }
}

/// Permission bits in the type the platform has for them.
pub(crate) fn narrow(mode: u32) -> fs::RawMode {
    fs::RawMode::try_from(mode & 0o7777).expect("twelve bits fit every platform's mode type")
}

/// `None` for an entry that is not there.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn sort(errno: Errno) -> Descent {
    match errno {
        Errno::NOENT => Descent::Missing,
        Errno::LOOP | Errno::NOTDIR => Descent::NoDirectory,
        Errno::XDEV => Descent::OtherMount,
        other => Descent::Io(other.into()),
    }
}

/// Splits off at most [`PIECE`] bytes of whole components.
fn split_piece(path: &[u8]) -> (&[u8], &[u8]) {
    if path.len() <= PIECE {
        return (path, &[]);
    }
    match path[..=PIECE].iter().rposition(|&b| b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (path, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_between_components() {
        let long = vec![b"abc".as_slice(); 2000].join(&b'/');
        let (mut rest, mut seen) = (long.as_slice(), Vec::new());
        while !rest.is_empty() {
            let piece;
            (piece, rest) = split_piece(rest);
            assert!(piece.len() <= PIECE && piece.first() != Some(&b'/') && piece.last() != Some(&b'/'));
            seen.push(piece);
        }
        assert_eq!(seen.join(&b'/'), long);
    }

    /// What lies above is told of the directory that is open, not of the name it once had.
    #[test]
    fn what_is_above_goes_by_the_handle() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let root = Dir::open_root(scratch.path()).expect("a root");
        for dir in ["a", "a/b", "a/b/c", "other"] {
            std::fs::create_dir(scratch.path().join(dir)).expect("a directory");
        }
        let is = |dir: &Dir, levels, expected: &str| {
            let found = dir.stat_above(levels).expect("a directory above");
            let expected = Dir::open_root(&scratch.path().join(expected)).expect("a directory");
            found.same_file(&expected.stat().expect("what it is"))
        };
        let c = root.descend(b"a/b/c", Mounts::Same).expect("a directory");
        assert!(is(&c, 0, "a/b/c") && is(&c, 1, "a/b") && is(&c, 2, "a") && is(&c, 3, "."));
        std::fs::rename(scratch.path().join("a/b/c"), scratch.path().join("other/c")).expect("a move");
        std::fs::create_dir(scratch.path().join("a/b/c")).expect("another of its name");
        assert!(is(&c, 0, "other/c") && is(&c, 1, "other") && is(&c, 2, "."));
        let mut deep = root.descend(b"other", Mounts::Same).expect("a directory");
        for _ in 0..LEVELS + 10 {
            deep.create_dir(b"d").expect("a directory");
            deep = deep.descend(b"d", Mounts::Same).expect("a directory");
        }
        assert!(is(&deep, LEVELS + 10, "other") && is(&deep, LEVELS + 11, "."));
    }

    #[test]
    fn a_name_is_taken_from_nobody() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let dir = Dir::open_root(scratch.path()).expect("a root");
        drop(dir.create_file(b"new").expect("a file"));
        dir.create_link(b"taken", b"nowhere").expect("a link");
        let refused = dir.publish(b"new", b"taken").expect_err("the name is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(dir.stat_at(b"new").expect("a look").is_some(), "nothing is lost");
        dir.publish(b"new", b"free").expect("a name");
        assert!(dir.stat_at(b"new").expect("a look").is_none() && dir.open_file(b"free").is_ok());
    }

    /// The way taken where openat2 is missing keeps the same promises.
    #[test]
    fn component_by_component_no_link_is_followed_either() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let root = Dir::open_root(scratch.path()).expect("a root");
        root.create_dir(b"a").expect("a directory");
        root.step(b"a", Mounts::Same).and_then(|a| a.create_dir(b"b").map_err(Descent::Io)).expect("a directory");
        root.create_link(b"link", b"a").expect("a link");
        drop(root.create_file(b"file").expect("a file"));
        assert!(root.step(b"a/b", Mounts::Same).is_ok());
        for bad in ["link", "link/b", "file", "file/x"] {
            assert!(matches!(root.step(bad.as_bytes(), Mounts::Any), Err(Descent::NoDirectory)), "{bad}");
        }
        assert!(matches!(root.step(b"a/none", Mounts::Any), Err(Descent::Missing)));
        if Path::new("/proc/self").exists() {
            let top = Dir::open_root(Path::new("/")).expect("a root");
            assert!(matches!(top.step(b"proc", Mounts::Same), Err(Descent::OtherMount)));
            assert!(top.step(b"proc", Mounts::Any).is_ok());
        }
    }
}
