//! Opening a file that somebody else put there.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

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

/// Reads the regular file at `path`, links followed, without waiting for anybody.
///
/// # Errors
///
/// As [`open_regular`]; of kind `FileTooLarge` where there are more than `most` bytes, however many are announced.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.len() <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            return Ok(bytes);
        }
    }
    Err(io::ErrorKind::FileTooLarge.into())
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
        assert_eq!(read_regular(&at("link"), 1).unwrap(), b"x");
        assert_eq!(read_regular(&at("fifo"), 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read_regular(&at("file"), 0).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // One that tells no size.
        assert_eq!(read_regular(Path::new("/proc/self/status"), 8).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
