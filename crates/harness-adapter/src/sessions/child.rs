//! A new log on its way: written under a temporary name in its own folder, synced, and only then given its name, which it
//! takes from nobody. Dropped before that, it leaves nothing behind.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use data_encoding::HEXLOWER;
use durable_fs::Dir;
use sha2::{Digest as _, Sha256};

use super::door::DoorError;

/// A new log.
pub(super) struct Child {
    dir: Dir,
    folder: PathBuf,
    temp: String,
    name: String,
    out: BufWriter<File>,
    sum: Sha256,
    published: bool,
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("folder", &self.folder).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Fresh randomness.
pub(super) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// How the name of a log on its way ends.
const TEMPORARY: &str = ".rwd-tmp";
/// A log is written in seconds: one that was begun so long ago is nobody's any more.
const ABANDONED: Duration = Duration::from_hours(1);

/// Removes what processes that were killed left in a folder.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let hex = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(TEMPORARY));
        let ours = hex.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let old = || {
            let facts = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            facts.modified().ok()?.elapsed().ok()
        };
        if ours
            && old().is_some_and(|age| age > ABANDONED)
            && let Err(error) = std::fs::remove_file(entry.path())
        {
            tracing::debug!(%error, path = %entry.path().display(), "not removed");
        }
    }
}

impl Child {
    /// Begins a log in `folder`, which is there.
    pub(super) fn begin(folder: &Path, name: &str) -> Result<Self, DoorError> {
        let dir = Dir::open_root(folder).map_err(|error| DoorError::io("open", folder)(io::Error::other(error)))?;
        sweep(folder);
        // A name that no client takes for a log.
        let temp = format!(".{}{TEMPORARY}", HEXLOWER.encode(&random()[..8]));
        let file = dir.create_file(temp.as_bytes()).map_err(DoorError::io("create", folder.join(&temp)))?;
        let out = BufWriter::with_capacity(1 << 17, file);
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Ok(Self { dir, folder, temp, name, out, sum: Sha256::new(), published: false })
    }

    /// Writes one line.
    pub(super) fn line(&mut self, text: &[u8]) -> Result<(), DoorError> {
        self.sum.update(text);
        self.sum.update(b"\n");
        let written = self.out.write_all(text).and_then(|()| self.out.write_all(b"\n"));
        written.map_err(DoorError::io("write", self.folder.join(&self.temp)))
    }

    /// Reads back what was written, has it looked at under the name that it has so far, and gives the log its own name,
    /// durably. What `check` refuses never had it.
    pub(super) fn publish(
        mut self,
        id: &str,
        check: impl FnOnce(&Path) -> Result<(), DoorError>,
    ) -> Result<PathBuf, DoorError> {
        let (temp, path) = (self.folder.join(&self.temp), self.folder.join(&self.name));
        let synced = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        synced.map_err(DoorError::io("write", &temp))?;
        if self.reread().map_err(DoorError::io("read", &temp))? != self.sum.clone().finalize()[..] {
            return Err(DoorError::ReadBack { path });
        }
        check(&temp)?;
        match self.dir.publish(self.temp.as_bytes(), self.name.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(DoorError::AlreadyExists { id: id.to_owned() });
            }
            named => named.map_err(DoorError::io("create", &path))?,
        }
        let durable = self.dir.sync();
        // A log that may be gone after a crash is none. Where its name cannot be taken back it stays, and is whole.
        self.published = durable.is_ok() || self.dir.unlink(self.name.as_bytes()).is_err();
        durable.map_err(DoorError::io("sync", &self.folder))?;
        Ok(path)
    }

    fn reread(&mut self) -> io::Result<Vec<u8>> {
        let mut file = self.dir.open_file(self.temp.as_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        let mut sum = Sha256::new();
        let mut part = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut part)?;
            if read == 0 {
                return Ok(sum.finalize().to_vec());
            }
            sum.update(part.get(..read).unwrap_or_default());
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.published {
            drop(self.dir.unlink(self.temp.as_bytes()));
        }
    }
}

/// Makes a log and its name durable: whoever made it may have crashed before that.
pub(super) fn sync(path: &Path) -> Result<(), DoorError> {
    let file = durable_fs::open_regular(path).and_then(|file| file.sync_all());
    file.map_err(DoorError::io("sync", path))?;
    let folder = path.parent().unwrap_or(path);
    durable_fs::sync_dir(folder).map_err(|error| DoorError::io("sync", folder)(error.source))
}

/// The time, for names of new logs.
pub(super) fn now() -> checkpoint_core::Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a new log is named by the time, as its client names it")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    checkpoint_core::Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
