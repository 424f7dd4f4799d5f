//! A new log on its way: written under a temporary name in its own folder, synced, read back, and only then given its
//! name, which it takes from nobody. Dropped before that, it leaves nothing behind.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use durable_fs::{Dir, Mounts};
use zstd::stream::write::Encoder;

use super::{container::Encoding, error::LogError, root};

/// Decoded bytes after which a frame ends at the next end of a row: damage to one frame costs this much.
const FRAME: usize = 4 << 20;

/// The level of the library's own default.
const LEVEL: i32 = 3;

enum Out {
    /// Between frames, and for plain logs always.
    Bare(BufWriter<File>),
    Frame(Box<Encoder<'static, BufWriter<File>>>, usize),
    /// Only while one of the others is made into the other.
    Moving,
}

/// The folder above a session's.
struct Above {
    dir: Dir,
    segment: String,
    /// True when this draft made the session's folder.
    made: bool,
}

/// A new log.
pub(super) struct Draft {
    dir: Dir,
    above: Option<Above>,
    temp: String,
    name: String,
    folder: PathBuf,
    encoding: Encoding,
    out: Out,
    published: bool,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft").field("temp", &self.temp()).finish_non_exhaustive()
    }
}

fn durable(error: durable_fs::Error, path: &Path) -> LogError {
    LogError::Io { doing: "open", path: path.to_owned(), source: io::Error::other(error) }
}

impl Draft {
    /// Begins the log of a new session, in the folder `segment` of `project`, which is made if it is not there. A folder
    /// that is there may hold no log: then it is what a crash left before a log got its name.
    pub(super) fn of_session(
        project: &Path,
        segment: &str,
        encoding: Encoding,
        random: [u8; 16],
        id: &str,
    ) -> Result<Self, LogError> {
        let folder = project.join(segment);
        let above = Dir::open_root(project).map_err(|error| durable(error, project))?;
        let taken = || LogError::AlreadyExists { id: id.to_owned(), path: folder.clone() };
        let made = match above.create_dir(segment.as_bytes()) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(LogError::io("create", &folder)(error)),
        };
        let dir = above.descend(segment.as_bytes(), Mounts::Any).map_err(|_| taken())?;
        if !made && root::any_log(&folder)?.is_some() {
            return Err(taken());
        }
        let name = format!("session{}", encoding.suffix());
        let above = Above { dir: above, segment: segment.to_owned(), made };
        Self::begin(dir, Some(above), folder, name, encoding, random)
    }

    /// Begins a log at `path`, whose folder is there.
    pub(super) fn at(path: &Path, encoding: Encoding, random: [u8; 16]) -> Result<Self, LogError> {
        let bad = || LogError::BadTarget { path: path.to_owned(), why: "it names no file".into() };
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(bad)?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = Dir::open_root(folder).map_err(|error| durable(error, folder))?;
        Self::begin(dir, None, folder.to_owned(), name, encoding, random)
    }

    fn begin(
        dir: Dir,
        above: Option<Above>,
        folder: PathBuf,
        name: String,
        encoding: Encoding,
        random: [u8; 16],
    ) -> Result<Self, LogError> {
        // The host's own pattern, which every reader of it passes over.
        let temp = format!("{name}.{}.tmp", HEXLOWER.encode(&random[..6]));
        let mut draft = Self { dir, above, temp, name, folder, encoding, out: Out::Moving, published: false };
        let file = draft.dir.create_file(draft.temp.as_bytes()).map_err(LogError::io("create", draft.temp()))?;
        draft.out = Out::Bare(BufWriter::with_capacity(1 << 17, file));
        Ok(draft)
    }

    /// Where it is for now.
    pub(super) fn temp(&self) -> PathBuf {
        self.folder.join(&self.temp)
    }

    /// Where it will be.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn io(&self) -> impl FnOnce(io::Error) -> LogError + use<> {
        LogError::io("write", self.temp())
    }

    /// Writes a row, or a part of one.
    pub(super) fn row(&mut self, row: &[u8]) -> Result<(), LogError> {
        self.try_row(row).map_err(|error| self.io()(error))
    }

    /// Ends a row that was written without its end.
    pub(super) fn row_end(&mut self) -> Result<(), LogError> {
        self.row(b"\n")
    }

    fn try_row(&mut self, row: &[u8]) -> io::Result<()> {
        if self.encoding == Encoding::Zstd {
            self.out = match std::mem::replace(&mut self.out, Out::Moving) {
                Out::Bare(file) => {
                    let mut encoder = Encoder::new(file, LEVEL)?;
                    encoder.include_checksum(true)?;
                    Out::Frame(Box::new(encoder), 0)
                }
                out => out,
            };
        }
        match &mut self.out {
            Out::Bare(file) => file.write_all(row)?,
            Out::Frame(encoder, held) => {
                encoder.write_all(row)?;
                *held += row.len();
                if *held >= FRAME && row.ends_with(b"\n") {
                    self.try_end_frame()?;
                }
            }
            Out::Moving => return Err(io::Error::other("a write failed before")),
        }
        Ok(())
    }

    /// Ends the frame, if one is begun.
    pub(super) fn end_frame(&mut self) -> Result<(), LogError> {
        let wrong = self.io();
        self.try_end_frame().map_err(wrong)
    }

    fn try_end_frame(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.out, Out::Moving) {
            Out::Frame(encoder, _) => self.out = Out::Bare(encoder.finish()?),
            out => self.out = out,
        }
        Ok(())
    }

    /// Copies the bytes `from..to` of another log as they are: whole rows in whole frames.
    pub(super) fn raw(&mut self, mut file: &File, from: u64, to: u64) -> Result<(), LogError> {
        self.end_frame()?;
        let wrong = self.io();
        let mut copy = || {
            let Out::Bare(out) = &mut self.out else { return Err(io::Error::other("a write failed before")) };
            file.seek(SeekFrom::Start(from))?;
            if io::copy(&mut file.take(to - from), out)? < to - from {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(())
        };
        copy().map_err(wrong)
    }

    /// Makes everything written so far durable under the temporary name.
    pub(super) fn sync(&mut self) -> Result<(), LogError> {
        self.end_frame()?;
        let wrong = self.io();
        let Out::Bare(out) = &mut self.out else { return Err(wrong(io::Error::other("a write failed before"))) };
        out.flush().and_then(|()| out.get_ref().sync_all()).map_err(wrong)
    }

    /// Gives the log its name, durably. `Ok(false)`: something else has the name; the log is gone.
    pub(super) fn publish(mut self) -> Result<bool, LogError> {
        let (temp, name) = (self.temp.as_bytes(), self.name.as_bytes());
        match self.dir.publish(temp, name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            named => named.map_err(LogError::io("create", self.path()))?,
        }
        // Also for a folder that was there: whoever made it may have crashed before it was durable.
        let above = self.above.as_ref().map_or(Ok(()), |above| above.dir.sync());
        let durable = self.dir.sync().and(above);
        // A log that may be gone after a crash is none. Where its name cannot be taken back it stays, and is whole.
        self.published = durable.is_ok() || self.dir.unlink(name).is_err();
        durable.map_err(LogError::io("sync", &self.folder))?;
        Ok(true)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        drop(self.dir.unlink(self.temp.as_bytes()));
        if let Some(above) = self.above.as_ref().filter(|above| above.made) {
            // Fails when somebody else has put something there, which stays.
            drop(above.dir.remove_dir(above.segment.as_bytes()));
        }
    }
}
