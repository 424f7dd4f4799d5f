//! Where the lines are kept (K-43): one file in the user's workspace, replaced as a whole under a lock.

use std::{
    fmt,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoint_core::Held;
use durable_fs::{Descent, Dir, FileLock, Kind, LockFailure, LockMode, Mounts, Stat};

/// The file, below the workspace's root.
pub const POINTS_PATH: &str = ".dsh/memory/checkpoints.md";

const DIRECTORIES: [&[u8]; 2] = [b".dsh", b"memory"];
const DIRECTORY: &[u8] = b".dsh/memory";
const NAME: &[u8] = b"checkpoints.md";
/// Only the holder of the lock uses it, so one that is there was left by a process that died.
const TEMPORARY: &[u8] = b".checkpoints.md.tmp";
const LOCK: &str = ".dsh/memory/.checkpoints.md.lock";
/// A file of 200 lines has some 30 KiB.
const LARGEST: u64 = 8 << 20;
const WAIT: Duration = Duration::from_secs(10);

/// Reading and replacing the file. Implemented over the workspace by [`DurablePoints`].
pub trait PointsFile: fmt::Debug + Send + Sync {
    /// Keeps every other process and thread out until dropped. Waits for them.
    fn lock(&self) -> Result<Box<dyn Held>, PointsFileError>;

    /// The whole file; `None` where there is none. Never a half-written one.
    fn read(&self) -> Result<Option<Vec<u8>>, PointsFileError>;

    /// Replaces the whole file in one step, durable on return, if it still is `before`. `Ok(false)`: it is not, for
    /// instance because an editor saved it, which knows no lock; what is there stays. Call with the lock held. After an
    /// error the old content stands, except that after a failed sync the new one may be seen.
    fn replace(&self, before: Option<&[u8]>, bytes: &[u8]) -> Result<bool, PointsFileError>;
}

/// Why the file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PointsFileError {
    /// Something else has the name: a link, a directory, a device. It is neither followed nor replaced.
    #[error("{} is no regular file in a directory of the workspace", path.display())]
    InTheWay {
        /// Where.
        path: PathBuf,
    },
    /// Larger than anything that rwd writes there.
    #[error("{} is larger than 8 MiB", path.display())]
    TooLarge {
        /// Where.
        path: PathBuf,
    },
    /// Somebody else has held the lock for too long.
    #[error("another process is writing {}", path.display())]
    Busy {
        /// Where.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
}

impl PointsFileError {
    /// Stable machine code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InTheWay { .. } => "POINTS_FILE_IN_THE_WAY",
            Self::TooLarge { .. } => "POINTS_FILE_TOO_LARGE",
            Self::Busy { .. } => "busy",
            Self::Io { .. } => "io",
        }
    }
}

/// The file of one workspace. Every component below the root is reached without following links.
#[derive(Clone, Debug)]
pub struct DurablePoints {
    root: PathBuf,
    wait: Duration,
}

#[derive(Debug)]
struct Locked(#[expect(dead_code, reason = "held, not read")] FileLock);

impl Held for Locked {}

impl DurablePoints {
    /// Of the workspace at `root`. Touches nothing.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), wait: WAIT }
    }

    /// Waits this long for the lock instead of 10 s.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.root.join(POINTS_PATH)
    }

    fn io(&self, what: &'static str) -> impl Fn(io::Error) -> PointsFileError {
        let path = self.path();
        move |source| PointsFileError::Io { what, path: path.clone(), source }
    }

    fn root(&self) -> Result<Dir, PointsFileError> {
        Dir::open_root(&self.root).map_err(|error| PointsFileError::Io {
            what: error.what,
            path: error.path,
            source: error.source,
        })
    }

    /// The directory of the file; `None` where it is not there yet.
    fn directory(&self) -> Result<Option<Dir>, PointsFileError> {
        match self.root()?.descend(DIRECTORY, Mounts::Any) {
            Ok(dir) => Ok(Some(dir)),
            Err(Descent::Missing) => Ok(None),
            Err(Descent::Io(source)) => Err(self.io("open the directory of")(source)),
            Err(_) => Err(PointsFileError::InTheWay { path: self.path() }),
        }
    }

    /// The directory of the file, made and made durable where it is not there yet.
    fn make_directory(&self) -> Result<Dir, PointsFileError> {
        if let Some(dir) = self.directory()? {
            return Ok(dir);
        }
        let mut at = self.root()?;
        for name in DIRECTORIES {
            match at.create_dir(name) {
                Ok(()) => at.sync().map_err(self.io("sync the directory of"))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.io("create the directory of")(error)),
            }
            at = at.descend(name, Mounts::Any).map_err(|error| match error {
                Descent::Io(source) => self.io("open the directory of")(source),
                _ => PointsFileError::InTheWay { path: self.path() },
            })?;
        }
        Ok(at)
    }

    /// The file's facts where it is one, `None` where there is none.
    fn regular(&self, dir: &Dir) -> Result<Option<Stat>, PointsFileError> {
        match dir.stat_at(NAME).map_err(self.io("look at"))? {
            Some(stat) if stat.kind != Kind::File => Err(PointsFileError::InTheWay { path: self.path() }),
            found => Ok(found),
        }
    }
}

impl PointsFile for DurablePoints {
    fn lock(&self) -> Result<Box<dyn Held>, PointsFileError> {
        drop(self.make_directory()?);
        match FileLock::acquire(&self.root.join(LOCK), LockMode::Exclusive, self.wait) {
            Ok(lock) => Ok(Box::new(Locked(lock))),
            Err(LockFailure::Busy) => Err(PointsFileError::Busy { path: self.path() }),
            Err(LockFailure::Io(error)) => {
                Err(PointsFileError::Io { what: error.what, path: error.path, source: error.source })
            }
            Err(other) => Err(self.io("lock")(io::Error::other(other))),
        }
    }

    fn read(&self) -> Result<Option<Vec<u8>>, PointsFileError> {
        let Some(dir) = self.directory()? else { return Ok(None) };
        if self.regular(&dir)?.is_none() {
            return Ok(None);
        }
        let bytes = content(&dir, NAME).map_err(self.io("read"))?;
        let bytes = bytes.ok_or_else(|| PointsFileError::InTheWay { path: self.path() })?;
        if bytes.len() as u64 > LARGEST {
            return Err(PointsFileError::TooLarge { path: self.path() });
        }
        Ok(Some(bytes))
    }

    fn replace(&self, before: Option<&[u8]>, bytes: &[u8]) -> Result<bool, PointsFileError> {
        if bytes.len() as u64 > LARGEST {
            // It could not be read again.
            return Err(PointsFileError::TooLarge { path: self.path() });
        }
        let dir = self.make_directory()?;
        let stat = self.regular(&dir)?;
        let replaced = write(&dir, bytes, stat.as_ref()).and_then(|()| put(&dir, before, bytes));
        if !matches!(replaced, Ok(true)) {
            // The first failure is what the caller needs; a temporary that stays is taken by the next writer.
            let _gone_or_not = dir.unlink(TEMPORARY);
        }
        replaced.map_err(self.io("replace"))
    }
}

/// A file of the directory, one byte more of it than can be used at most; `None` for what is no regular file.
fn content(dir: &Dir, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let file = dir.open_file(name)?;
    if Stat::of(&file)?.kind != Kind::File {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// True when the file is there with exactly this content.
fn holds(dir: &Dir, name: &[u8], bytes: &[u8]) -> bool {
    content(dir, name).is_ok_and(|found| found.as_deref() == Some(bytes))
}

/// Gives the temporary the real name in the place of `before`; false when something else is there, which stays.
fn put(dir: &Dir, before: Option<&[u8]>, bytes: &[u8]) -> io::Result<bool> {
    let Some(before) = before else {
        match dir.rename_no_replace(TEMPORARY, NAME) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) if Dir::is_unsupported(&error) && dir.stat_at(NAME)?.is_none() => dir.rename(TEMPORARY, NAME)?,
            renamed => renamed?,
        }
        return dir.sync().map(|()| true);
    };
    match dir.exchange(TEMPORARY, NAME) {
        Ok(()) if holds(dir, TEMPORARY, before) => dir.unlink(TEMPORARY)?,
        Ok(()) => {
            // Saved by somebody else between the look and the exchange: theirs goes back. If they saved once more by
            // now, that is what came out, and it is the one that counts.
            dir.exchange(TEMPORARY, NAME)?;
            if !holds(dir, TEMPORARY, bytes) {
                dir.exchange(TEMPORARY, NAME)?;
            }
            return Ok(false);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        // No exchange on this file system: a moment stays in which a save is lost.
        Err(error) if Dir::is_unsupported(&error) => {
            if !holds(dir, NAME, before) {
                return Ok(false);
            }
            dir.rename(TEMPORARY, NAME)?;
        }
        Err(error) => return Err(error),
    }
    dir.sync().map(|()| true)
}

/// Writes the file under its temporary name, complete and with its mode. Its owner and group stay as far as this process
/// may give files away: a superuser must not take a user's file from them.
fn write(dir: &Dir, bytes: &[u8], before: Option<&Stat>) -> io::Result<()> {
    let mut file = match dir.create_file(TEMPORARY) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            dir.unlink(TEMPORARY)?;
            dir.create_file(TEMPORARY)?
        }
        created => created?,
    };
    file.write_all(bytes)?;
    if let Some(kept) = before {
        let now = Stat::of(&file)?;
        let (uid, gid) = ((now.uid != kept.uid).then_some(kept.uid), (now.gid != kept.gid).then_some(kept.gid));
        let given = if uid.or(gid).is_some() { dir.chown(TEMPORARY, uid, gid) } else { Ok(()) };
        given.or_else(|error| if error.kind() == io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) })?;
    }
    // After the owner: giving a file away takes bits off it.
    dir.chmod(TEMPORARY, before.map_or(0o644, |kept| kept.mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn put(path: &Path, text: &str) {
        std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn the_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let scratch = tempfile::tempdir().unwrap();
        let points = DurablePoints::new(scratch.path());
        assert_eq!(points.read().unwrap(), None, "reading makes nothing");
        assert!(!scratch.path().join(".dsh").exists());
        assert!(points.replace(None, b"one").unwrap());
        let mode = || std::fs::metadata(points.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!((points.read().unwrap().unwrap(), mode()), (b"one".to_vec(), 0o644));
        std::fs::set_permissions(points.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
        // Left by a process that died.
        put(&scratch.path().join(".dsh/memory/.checkpoints.md.tmp"), "half");
        assert!(points.replace(Some(b"one"), b"two").unwrap());
        assert_eq!((points.read().unwrap().unwrap(), mode()), (b"two".to_vec(), 0o600));
        let left: Vec<_> = std::fs::read_dir(scratch.path().join(".dsh/memory")).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    /// Only a superuser can give a file away; for others the two are the same from the start.
    #[test]
    fn the_file_keeps_its_owner() {
        let scratch = tempfile::tempdir().unwrap();
        let points = DurablePoints::new(scratch.path());
        assert!(points.replace(None, b"one").unwrap());
        let dir = points.directory().unwrap().unwrap();
        let (uid, gid) = match dir.chown(NAME, Some(12_345), Some(54_321)) {
            Ok(()) => (12_345, 54_321),
            Err(_) => dir.stat_at(NAME).unwrap().map(|stat| (stat.uid, stat.gid)).unwrap(),
        };
        dir.chmod(NAME, 0o640).unwrap();
        assert!(points.replace(Some(b"one"), b"two").unwrap());
        let after = dir.stat_at(NAME).unwrap().unwrap();
        assert_eq!((after.uid, after.gid, after.mode & 0o7777), (uid, gid, 0o640));
    }

    #[test]
    fn nothing_outside_is_reached_through_a_link_and_nothing_else_is_replaced() {
        for place in [".dsh", ".dsh/memory", POINTS_PATH] {
            for what in ["link", "other"] {
                let scratch = tempfile::tempdir().unwrap();
                let (root, outside) = (scratch.path().join("w"), scratch.path().join("outside"));
                std::fs::create_dir(&outside).unwrap();
                std::fs::create_dir_all(root.join(place).parent().unwrap()).unwrap();
                let there = root.join(place);
                match (what, place == POINTS_PATH) {
                    ("link", false) => symlink(&outside, &there).unwrap(),
                    ("link", true) => {
                        put(&outside.join("victim"), "keep");
                        symlink(outside.join("victim"), &there).unwrap();
                    }
                    (_, false) => put(&there, "a file"),
                    (_, true) => std::fs::create_dir(&there).unwrap(),
                }
                let points = DurablePoints::new(&root);
                let codes = [points.read().map(drop), points.replace(None, b"x").map(drop)]
                    .map(|done| done.unwrap_err().code());
                assert_eq!(codes, ["POINTS_FILE_IN_THE_WAY"; 2], "{place} {what}");
                let names: Vec<_> = std::fs::read_dir(&outside).unwrap().map(|e| e.unwrap().file_name()).collect();
                assert!(names.iter().all(|name| name == "victim"), "{place} {what}: {names:?}");
                if let Some(name) = names.first() {
                    assert_eq!(std::fs::read(outside.join(name)).unwrap(), b"keep");
                }
            }
        }
    }

    #[test]
    fn a_file_too_large_to_be_ours_is_not_read() {
        let scratch = tempfile::tempdir().unwrap();
        let points = DurablePoints::new(scratch.path());
        assert!(points.replace(None, b"").unwrap());
        std::fs::File::options().write(true).open(points.path()).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(points.read().unwrap_err().code(), "POINTS_FILE_TOO_LARGE");
        let large = vec![b'x'; usize::try_from(LARGEST).unwrap() + 1];
        assert_eq!(points.replace(Some(b""), &large).unwrap_err().code(), "POINTS_FILE_TOO_LARGE");
    }

    #[test]
    fn what_somebody_else_saved_meanwhile_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let points = DurablePoints::new(scratch.path());
        assert!(!points.replace(Some(b"gone"), b"x").unwrap());
        assert_eq!(points.read().unwrap(), None);
        assert!(points.replace(None, b"one").unwrap());
        for before in [None, Some(&b"other"[..]), Some(b"one more"), Some(b"")] {
            assert!(!points.replace(before, b"x").unwrap(), "{before:?}");
            assert_eq!(points.read().unwrap().unwrap(), b"one");
        }
        let left: Vec<_> = std::fs::read_dir(scratch.path().join(".dsh/memory")).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn a_lock_that_somebody_holds_is_waited_for_and_then_named() {
        let scratch = tempfile::tempdir().unwrap();
        let points = DurablePoints::new(scratch.path()).with_wait(Duration::ZERO);
        let held = points.lock().unwrap();
        assert_eq!(points.clone().lock().unwrap_err().code(), "busy");
        drop(held);
        drop(points.lock().unwrap());
    }
}
