//! Opening a file that somebody else put there.

use std::{fs::File, io, path::Path};

use rustix::fs::{self, Mode, OFlags};

/// Opens the regular file at `path` for reading, links followed, without waiting for anybody.
///
/// # Errors
///
/// What has the name but is no regular file is refused with an error of kind `InvalidInput`: opened in the plain way, a
/// FIFO would wait for a writer, and a device may do anything.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::Dir;

    #[test]
    fn only_files_are_opened_and_nothing_is_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        File::create(at("file")).unwrap().write_all(b"x").unwrap();
        let dir = Dir::open_root(scratch.path()).unwrap();
        dir.create_fifo(b"fifo").unwrap();
        dir.create_link(b"link", b"file").unwrap();
        dir.create_link(b"loop", b"loop").unwrap();
        open_regular(&at("file")).unwrap();
        open_regular(&at("link")).unwrap();
        for other in ["fifo", "."] {
            assert_eq!(open_regular(&at(other)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{other}");
        }
        open_regular(Path::new("/dev/null")).unwrap_err();
        open_regular(&at("loop")).unwrap_err();
    }
}
