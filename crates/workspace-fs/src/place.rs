//! One path: the directory that holds it, open, and its name there.

use std::{cell::OnceCell, fs::File, io};

use checkpoint_core::{BlobStore, FsError, Mode, ObjectId, PathState, RelPath, SnapshotError};
use durable_fs::{Dir, Kind, Stat};
use rustix::io::Errno;

use crate::RealWorkspace;

/// How often a file that keeps changing is read before that is reported.
const READ_ATTEMPTS: usize = 5;
/// A file of this size is not hashed to find out that it is something else: a sparse one has more bytes than can be read
/// in a day.
const HUGE: u64 = 1 << 30;

/// Where a path is.
pub(crate) struct Place<'a> {
    pub(crate) workspace: &'a RealWorkspace,
    pub(crate) path: &'a RelPath,
    pub(crate) dir: Dir,
    pub(crate) name: &'a [u8],
    dir_stat: OnceCell<Stat>,
    entry: OnceCell<Option<Stat>>,
    /// The contents that matter here; `None`: whatever there is.
    expected: Option<Vec<ObjectId>>,
}

/// What a name holds, and the file it was when that was read.
pub(crate) struct Seen {
    pub(crate) state: PathState,
    pub(crate) stat: Option<Stat>,
    /// The very file that was read, where it is one.
    pub(crate) file: Option<File>,
}

impl Seen {
    const NOTHING: Self = Self { state: PathState::Absent, stat: None, file: None };
}

/// Permission bits as the core has them.
pub(crate) fn mode_of(stat: &Stat) -> Mode {
    Mode(u16::try_from(stat.mode & 0o7777).expect("twelve bits fit"))
}

impl<'a> Place<'a> {
    pub(crate) fn new(workspace: &'a RealWorkspace, path: &'a RelPath, dir: Dir, name: &'a [u8]) -> Self {
        Self { workspace, path, dir, name, dir_stat: OnceCell::new(), entry: OnceCell::new(), expected: None }
    }

    /// The same, where only these contents matter: a huge file that is none of them by its size alone is not read.
    pub(crate) fn expecting(mut self, contents: [Option<ObjectId>; 2]) -> Self {
        self.expected = Some(contents.into_iter().flatten().collect());
        self
    }
}

impl Place<'_> {
    /// What the directory was when this was first asked: its identity, mount and mode are not asked for twice.
    pub(crate) fn dir_stat(&self) -> io::Result<Stat> {
        if let Some(known) = self.dir_stat.get() {
            return Ok(*known);
        }
        let found = self.dir.stat()?;
        Ok(*self.dir_stat.get_or_init(|| found))
    }

    /// What stood under the path's own name when this was first asked: for the first look at a place that was just
    /// opened. Whatever comes later asks the directory anew.
    pub(crate) fn entry(&self) -> io::Result<Option<Stat>> {
        if let Some(known) = self.entry.get() {
            return Ok(*known);
        }
        let found = self.dir.stat_at(self.name)?;
        Ok(*self.entry.get_or_init(|| found))
    }

    pub(crate) fn failed(&self, source: io::Error) -> FsError {
        let path = self.path.clone();
        // All names are in one directory on one mount: only layers can come between them.
        if source.kind() == io::ErrorKind::CrossesDevices {
            FsError::Layer { path }
        } else {
            FsError::Io { path, source }
        }
    }

    pub(crate) fn content_failed(&self, source: SnapshotError) -> FsError {
        FsError::Blob { path: self.path.clone(), source: Box::new(source) }
    }

    pub(crate) fn stat(&self, name: &[u8]) -> Result<Option<Stat>, FsError> {
        self.dir.stat_at(name).map_err(|e| self.failed(e))
    }

    /// Reads what `name`, which is the path's own or a temporary's, holds.
    pub(crate) fn observe(&self, name: &[u8], blobs: &dyn BlobStore) -> Result<Seen, FsError> {
        self.observe_from(self.stat(name)?, name, blobs)
    }

    /// The same of the path's own name, in a place that was just opened.
    pub(crate) fn observe_entry(&self, blobs: &dyn BlobStore) -> Result<Seen, FsError> {
        self.observe_from(self.entry().map_err(|e| self.failed(e))?, self.name, blobs)
    }

    fn observe_from(&self, first: Option<Stat>, name: &[u8], blobs: &dyn BlobStore) -> Result<Seen, FsError> {
        let mut first = Some(first);
        for _ in 0..READ_ATTEMPTS {
            let found = match first.take() {
                Some(first) => first,
                None => self.stat(name)?,
            };
            let Some(stat) = found else {
                return Ok(Seen::NOTHING);
            };
            let mode = mode_of(&stat);
            let state = match stat.kind {
                Kind::File => match self.hash_file(name, blobs)? {
                    Read::Done(seen) => return Ok(seen),
                    Read::Denied => PathState::Opaque,
                    Read::Again => continue,
                },
                Kind::Link => match self.dir.read_link(name) {
                    Ok(text) => PathState::Link { blob: self.hash(&text, blobs)? },
                    // No longer a link, or no longer there.
                    Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                        continue;
                    }
                    Err(e) => return Err(self.failed(e)),
                },
                Kind::Dir => PathState::Dir { mode },
                Kind::Fifo => PathState::Fifo { mode },
                Kind::Special => PathState::Opaque,
            };
            return Ok(Seen { state, stat: Some(stat), file: None });
        }
        Err(self.content_failed(SnapshotError::ChangedWhileReading))
    }

    fn hash(&self, bytes: &[u8], blobs: &dyn BlobStore) -> Result<checkpoint_core::ObjectId, FsError> {
        blobs.hash_blob(bytes.len() as u64, &mut &*bytes).map_err(|e| self.content_failed(e))
    }

    fn hash_file(&self, name: &[u8], blobs: &dyn BlobStore) -> Result<Read, FsError> {
        let (mut file, stat) = match self.open_file(name)? {
            Opened::File(file, stat) => (file, stat),
            Opened::Other => return Ok(Read::Again),
            Opened::Denied => return Ok(Read::Denied),
        };
        if stat.size >= HUGE && !self.may_be_expected(stat.size, blobs) {
            return Ok(Read::Done(Seen { state: PathState::Opaque, stat: Some(stat), file: Some(file) }));
        }
        let blob = match blobs.hash_blob(stat.size, &mut file) {
            Ok(blob) => blob,
            Err(SnapshotError::ChangedWhileReading) => return Ok(Read::Again),
            Err(e) => return Err(self.content_failed(e)),
        };
        // Bytes swapped for as many others while they were read: the stamps tell.
        if !Stat::of(&file).map_err(|e| self.failed(e))?.unchanged(&stat) {
            return Ok(Read::Again);
        }
        let state = PathState::File { blob, mode: mode_of(&stat) };
        Ok(Read::Done(Seen { state, stat: Some(stat), file: Some(file) }))
    }

    /// Can a file of this size be something that matters here?
    fn may_be_expected(&self, size: u64, blobs: &dyn BlobStore) -> bool {
        let Some(expected) = &self.expected else { return true };
        // Of content whose size is not known the file has to be read.
        expected.iter().any(|id| blobs.blob_len(id).map_or(true, |len| len == size))
    }

    /// Opens a regular file for reading. Whatever else is there is not touched.
    pub(crate) fn open_file(&self, name: &[u8]) -> Result<Opened, FsError> {
        let file = match self.dir.open_file(name) {
            Ok(file) => file,
            Err(e) => {
                return match Errno::from_io_error(&e) {
                    Some(Errno::ACCESS | Errno::PERM) => Ok(Opened::Denied),
                    // Gone or a link by now.
                    Some(Errno::NOENT | Errno::LOOP) => Ok(Opened::Other),
                    // A socket, or a device without a driver, cannot be opened at all.
                    _ => match self.stat(name)? {
                        Some(stat) if stat.kind == Kind::File => Err(self.failed(e)),
                        _ => Ok(Opened::Other),
                    },
                };
            }
        };
        let stat = Stat::of(&file).map_err(|e| self.failed(e))?;
        Ok(if stat.kind == Kind::File { Opened::File(file, stat) } else { Opened::Other })
    }
}

enum Read {
    Done(Seen),
    Denied,
    Again,
}

/// Result of [`Place::open_file`].
pub(crate) enum Opened {
    File(File, Stat),
    /// There is no regular file.
    Other,
    /// It may not be read.
    Denied,
}
