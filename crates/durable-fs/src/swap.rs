//! Changing a file that somebody else may be changing at the same moment.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, Mode};

use crate::dir::narrow;
use crate::replace::{create_temporary, kept_mode, parent_of};
use crate::{Dir, Error};

/// Replaces, creates (`expected` is `None`) or removes (`bytes` is `None`) the file at `path`, only if it holds
/// `expected`; false where it does not, and then it is as it was. Durable on return; who may read it stays as it was.
///
/// What is compared is what the change brought out, so that nothing is lost that an editor writes in between. Where a
/// file system cannot exchange names it is compared just before. A process that is killed in the middle can leave
/// `.rwd-PID-N.tmp` beside the file, with one of the two contents.
///
/// # Errors
///
/// Also where somebody writes faster than this can put things back: the error names the file that holds the other content.
pub fn replace_if(path: &Path, expected: Option<&[u8]>, bytes: Option<&[u8]>) -> Result<bool, Error> {
    let parent = parent_of(path);
    let Some(name) = path.file_name().map(OsStrExt::as_bytes) else {
        return Err(Error::new("replace", path, io::ErrorKind::InvalidInput));
    };
    let dir = Dir::open_root(&parent)?;
    let (temporary, mut file) = create_temporary(&parent)?;
    let spare = temporary.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let names = Names { dir: &dir, path, name, temporary: &temporary, spare };
    let prepared = prepare(path, &temporary, &mut file, bytes);
    let done = prepared.and_then(|()| match (expected, bytes) {
        (None, None) => Ok(fs::lstat(path).is_err()),
        (None, Some(_)) => match dir.publish(spare, name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(names.failed(error)),
        },
        (Some(expected), Some(bytes)) => names.exchange(expected, bytes),
        (Some(expected), None) => names.take(expected),
    });
    if done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
        // The temporary may hold what is nowhere else.
        return done;
    }
    // Gone already where it got its name.
    drop(dir.unlink(spare));
    dir.sync().map_err(|e| Error::new("sync the directory", parent, e))?;
    done
}

fn prepare(path: &Path, temporary: &Path, file: &mut File, bytes: Option<&[u8]>) -> Result<(), Error> {
    let Some(bytes) = bytes else { return Ok(()) };
    file.write_all(bytes).map_err(|e| Error::new("write", temporary, e))?;
    fs::fchmod(&*file, Mode::from_raw_mode(narrow(kept_mode(path)?)))
        .map_err(|e| Error::new("set the mode of", temporary, e))?;
    file.sync_all().map_err(|e| Error::new("sync", temporary, e))
}

/// The two names of a change.
struct Names<'a> {
    dir: &'a Dir,
    path: &'a Path,
    name: &'a [u8],
    temporary: &'a Path,
    spare: &'a [u8],
}

impl Names<'_> {
    fn failed(&self, error: io::Error) -> Error {
        Error::new("replace", self.path, error)
    }

    fn holds(&self, name: &[u8], wanted: &[u8]) -> bool {
        held(self.dir, name, wanted.len() as u64).is_ok_and(|bytes| bytes.as_deref() == Some(wanted))
    }

    /// For a file system that has no way to see what a change brings out.
    fn at_once(&self, expected: &[u8], change: impl FnOnce() -> io::Result<()>) -> Result<bool, Error> {
        if !self.holds(self.name, expected) {
            return Ok(false);
        }
        change().map(|()| true).map_err(|error| self.failed(error))
    }

    /// The temporary and the file trade names; both as before where something else comes out.
    fn exchange(&self, expected: &[u8], ours: &[u8]) -> Result<bool, Error> {
        match self.dir.exchange(self.spare, self.name) {
            Ok(()) if self.holds(self.spare, expected) => Ok(true),
            Ok(()) => {
                let back = self.dir.exchange(self.spare, self.name);
                if back.is_ok() && self.holds(self.spare, ours) { Ok(false) } else { Err(self.stuck()) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if Dir::is_unsupported(&error) => {
                self.at_once(expected, || self.dir.rename(self.spare, self.name))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The file gets the temporary's name, and its own again where it is something else.
    fn take(&self, expected: &[u8]) -> Result<bool, Error> {
        self.dir.unlink(self.spare).map_err(|error| self.failed(error))?;
        match self.dir.rename_no_replace(self.name, self.spare) {
            Ok(()) if self.holds(self.spare, expected) => Ok(true),
            Ok(()) => {
                let back = self.dir.rename_no_replace(self.spare, self.name);
                if back.is_ok() { Ok(false) } else { Err(self.stuck()) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if Dir::is_unsupported(&error) => self.at_once(expected, || self.dir.unlink(self.name)),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn stuck(&self) -> Error {
        Error::new("put back", self.temporary, io::ErrorKind::ResourceBusy)
    }
}

/// What a regular file holds, as far as it takes to tell it from `len` bytes; `None` where there is none.
fn held(dir: &Dir, name: &[u8], len: u64) -> io::Result<Option<Vec<u8>>> {
    match dir.open_file(name) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(len.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_became_a_sparse_terabyte_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(!replace_if(&path, Some(b"old"), Some(b"new")).unwrap());
        assert!(!replace_if(&path, Some(b"old"), None).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 1 << 40);
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
    }
}
