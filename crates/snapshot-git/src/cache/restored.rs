//! What a restore read back when it was done: the next capture need not read it again.
//!
//! A file beside the stat cache, of the same format: one record for each directory, with the files that were read. It is
//! a hint of its own and not merged into the cache, whose records say of a directory that its trees are whole. Each restore
//! writes a new one, the next capture that has used it removes it. What it says of a file is as true later as when it was
//! written; it counts under the same conditions as an entry of the cache: this epoch, this device, the very stamp, and a
//! stamp that was old enough when the file was read.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use checkpoint_core::{FileVersion, Mode, ObjectId, RelPath};

use super::{Cache, Entry, Head, Record, Stamp, What, encode, frame, header};

/// What the last restore read back, looked at when a capture meets something that its cache does not know.
#[derive(Debug)]
pub(crate) struct Restored {
    path: PathBuf,
    /// Without an epoch nothing counts.
    epoch: Option<u64>,
    loaded: OnceLock<Cache>,
}

fn place(cache: &Path) -> PathBuf {
    cache.with_file_name("restored.cache")
}

/// Nanoseconds as stamps have them; what does not fit is no stamp of ours.
fn nanos(wide: i128) -> Option<i64> {
    i64::try_from(wide).ok()
}

impl Restored {
    /// Beside this cache. Opens nothing yet.
    pub(crate) fn beside(cache: &Path, epoch: Option<u64>) -> Self {
        Self { path: place(cache), epoch, loaded: OnceLock::new() }
    }

    /// What was read in a directory.
    pub(crate) fn find(&self, dir: &[u8]) -> Option<Record> {
        let epoch = self.epoch?;
        self.loaded.get_or_init(|| Cache::load(&self.path, epoch)).find(dir)
    }

    /// The cache knows it all by now.
    pub(crate) fn used(&self) {
        if self.loaded.get().is_some_and(Cache::has_file) {
            forget(&self.path);
        }
    }
}

/// Puts down what was read, instead of what was there. Every error is ignored: it is a hint.
pub(crate) fn remember(cache: &Path, epoch: u64, read: &[(&RelPath, Mode, ObjectId, FileVersion)]) {
    let path = place(cache);
    let written = records(read).map_or(Ok(()), |records| write(&path, epoch, &records));
    if let Err(error) = written {
        tracing::debug!(path = %path.display(), %error, "what was restored will be read again");
    }
}

/// Removes what is beside a cache: it names paths.
pub(crate) fn forget_beside(cache: &Path) {
    forget(&place(cache));
}

fn forget(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(path = %path.display(), %error, "a used hint could not be removed");
    }
}

/// Framed records, one a directory; `None` where there is nothing to say.
fn records(read: &[(&RelPath, Mode, ObjectId, FileVersion)]) -> Option<Vec<u8>> {
    let mut dirs: BTreeMap<&[u8], (Head, Vec<Entry>)> = BTreeMap::new();
    for (path, mode, id, version) in read {
        let (Some(mtime), Some(ctime), Some(read_at)) =
            (nanos(version.mtime_ns), nanos(version.ctime_ns), nanos(version.read_at_ns))
        else {
            continue;
        };
        let bytes = path.as_bytes();
        let (dir, name) = bytes.iter().rposition(|byte| *byte == b'/').map_or((&[][..], bytes), |at| {
            (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default())
        });
        let stamp = Stamp { mtime, ctime, size: version.size, ino: version.inode };
        let own = Stamp { mtime: read_at, ctime: read_at, ..Stamp::default() };
        let (head, entries) = dirs.entry(dir).or_insert_with(|| (head(version.device, own), Vec::new()));
        if head.dev != version.device {
            continue;
        }
        // The earliest of the directory holds for all of it.
        head.stamp.ctime = head.stamp.ctime.min(read_at);
        entries.push(Entry { name: name.into(), what: What::File(stamp, *id), mode: mode.0, flags: 0 });
    }
    let mut out = Vec::new();
    for (dir, (head, entries)) in &dirs {
        let mut body = Vec::new();
        encode(&mut body, dir, head, entries);
        frame(&mut out, &body);
    }
    (!out.is_empty()).then_some(out)
}

/// A head that says nothing but where the files were, and when they were read: its `ctime`.
fn head(dev: u64, stamp: Stamp) -> Head {
    Head { flags: 0, mode: 0, dev, stamp, rules: [0; 16], extra: [0; 16], index: 0, tree: None, meta: None }
}

fn write(path: &Path, epoch: u64, records: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fresh = PathBuf::from(name);
    forget(&fresh);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&header(epoch)).and_then(|()| file.write_all(records));
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| forget(&fresh))
}
