//! The change-detection cache: what each directory held when it was last captured, so that unchanged files are not
//! read again (design § 4).
//!
//! One file: a header and checksummed records, one per directory, appended; the last record of a directory wins. It
//! may be lost, cut or damaged at any time: what cannot be read is hashed again. It names objects of the store only
//! after they are durable, and carries the store's epoch: after a collection nothing in it counts.

mod record;

use std::{
    collections::HashMap,
    fs::OpenOptions,
    hash::{DefaultHasher, Hasher},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

pub(crate) use record::{Entry, EntryRef, Head, Record, Stamp, What, dir_flag, encode, flag};

use record::Reader;

/// Changes with every change of the layout: another version is dropped, not converted.
const MAGIC: &[u8; 16] = b"rwd stat cache 1";
const HEADER: usize = 16 + 8 + 4;
/// Rewriting is not worth it below this size.
const SMALL: u64 = 64 << 10;

/// The cache as it was when a capture began.
#[derive(Debug)]
pub(crate) struct Cache {
    path: PathBuf,
    epoch: u64,
    data: Vec<u8>,
    index: HashMap<u64, usize>,
    /// Nothing but a rewrite makes the file usable again: another epoch, damage, or no file yet.
    rewrite: bool,
    off: bool,
}

fn key(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(path);
    hasher.finish()
}

fn header(epoch: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(epoch.to_le_bytes());
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

/// Appends one record: length and checksum of the body before it.
pub(crate) fn frame(out: &mut Vec<u8>, body: &[u8]) {
    out.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(crc32fast::hash(body).to_le_bytes());
    out.extend_from_slice(body);
}

impl Cache {
    /// Reads the cache. Never fails: what cannot be read, or belongs to another epoch, is empty.
    pub(crate) fn load(path: &Path, epoch: u64) -> Self {
        let mut cache =
            Self { path: path.to_owned(), epoch, data: Vec::new(), index: HashMap::new(), rewrite: true, off: false };
        let Ok(data) = std::fs::read(path) else { return cache };
        if data.get(..HEADER) != Some(&header(epoch)[..]) {
            return cache;
        }
        let mut at = Reader(&data[HEADER..]);
        let mut whole = true;
        while !at.0.is_empty() {
            let offset = data.len() - at.0.len() + 8;
            let body = at.u32().and_then(|len| {
                let sum = at.u32()?;
                at.take(len as usize).filter(|body| crc32fast::hash(body) == sum)
            });
            // The rest of the file cannot be framed any more: a torn append, or damage.
            let Some(body) = body else {
                whole = false;
                break;
            };
            if let Some((path, _)) = Record::parse(body) {
                cache.index.insert(key(path), offset);
            }
        }
        cache.rewrite = !whole;
        cache.data = data;
        cache
    }

    /// A cache that knows nothing and is never written.
    pub(crate) fn unusable(path: &Path) -> Self {
        Self { path: path.to_owned(), epoch: 0, data: Vec::new(), index: HashMap::new(), rewrite: true, off: true }
    }

    /// The newest record of a directory.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Record<'_>> {
        let offset = *self.index.get(&key(path))?;
        let len = Reader(self.data.get(offset - 8..)?).u32()? as usize;
        let (found, record) = Record::parse(self.data.get(offset..offset + len)?)?;
        (found == path).then_some(record)
    }

    /// Adds framed records to the file, or rewrites it when most of it is dead or it was unusable.
    ///
    /// `seen` are the directories that exist; the others are dropped by a rewrite. Another process that is writing
    /// wins: then nothing is written. Every error is ignored, for the same reason: the cache is only a hint.
    pub(crate) fn save(&self, records: &[u8], seen: &[&[u8]]) {
        if records.is_empty() || self.off {
            return;
        }
        if let Err(error) = self.try_save(records, seen) {
            tracing::debug!(path = %self.path.display(), %error, "the stat cache was not written");
        }
    }

    fn try_save(&self, records: &[u8], seen: &[&[u8]]) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(NOFOLLOW)
            .open(&self.path)?;
        if file.try_lock().is_err() {
            return Ok(());
        }
        // A rewrite by another process may have put a new file at the path between open and lock.
        let (ours, there) = (file.metadata()?, std::fs::symlink_metadata(&self.path)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Ok(());
        }
        let size = ours.len();
        let mut start = vec![0; HEADER];
        file.seek(SeekFrom::Start(0))?;
        let current = file.read_exact(&mut start).is_ok() && start == header(self.epoch);
        let live: u64 = seen.iter().filter_map(|path| self.find(path)).map(|r| r.body.len() as u64 + 8).sum();
        let wasteful = size + records.len() as u64 > SMALL + 2 * (live + records.len() as u64);
        if current && !self.rewrite && !wasteful {
            return file.write_all(records);
        }
        self.replace(records, seen)
    }

    /// Writes a new file beside the old one and renames it. The old file's lock is held.
    fn replace(&self, records: &[u8], seen: &[&[u8]]) -> std::io::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let fresh = PathBuf::from(name);
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        let mut out = std::io::BufWriter::new(&file);
        out.write_all(&header(self.epoch))?;
        let mut framed = Vec::new();
        for path in seen {
            if let Some(record) = self.find(path) {
                framed.clear();
                frame(&mut framed, record.body);
                out.write_all(&framed)?;
            }
        }
        out.write_all(records)?;
        out.flush()?;
        drop(out);
        std::fs::rename(&fresh, &self.path)
    }
}

const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Opens a cache for reading by [`Cache::load`]: only in tests, to look at its size.
#[cfg(test)]
fn size(path: &Path) -> u64 {
    std::fs::File::open(path).unwrap().metadata().unwrap().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(path: &[u8], mode: u16) -> Vec<u8> {
        let head = Head {
            flags: 0,
            mode,
            dev: 1,
            stamp: Stamp::default(),
            rules: [0; 16],
            extra: [0; 16],
            index: 0,
            tree: None,
            meta: None,
        };
        let mut out = Vec::new();
        encode(&mut out, path, &head, &[]);
        out
    }

    fn put(path: &Path, epoch: u64, dirs: &[(&[u8], u16)]) {
        let mut framed = Vec::new();
        for (dir, mode) in dirs {
            frame(&mut framed, &body(dir, *mode));
        }
        let seen: Vec<&[u8]> = dirs.iter().map(|(d, _)| *d).collect();
        Cache::load(path, epoch).save(&framed, &seen);
    }

    #[test]
    fn the_last_record_wins_and_another_epoch_drops_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        put(&path, 1, &[(b"a", 1), (b"b", 2)]);
        put(&path, 1, &[(b"a", 3)]);
        let cache = Cache::load(&path, 1);
        assert_eq!(cache.find(b"a").unwrap().head.mode, 3);
        assert_eq!(cache.find(b"b").unwrap().head.mode, 2);
        assert!(cache.find(b"c").is_none());
        assert!(Cache::load(&path, 2).find(b"a").is_none()); // F19
        put(&path, 2, &[(b"z", 4)]);
        let cache = Cache::load(&path, 2);
        assert_eq!(cache.find(b"z").unwrap().head.mode, 4);
        assert!(cache.find(b"a").is_none());
    }

    #[test]
    fn every_cut_and_every_flipped_byte_loses_records_but_never_invents_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        put(&path, 1, &[(b"a", 1), (b"b", 2), (b"c", 3)]);
        let whole = std::fs::read(&path).unwrap();
        let check = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let cache = Cache::load(&path, 1);
            for (name, mode) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
                assert!(cache.find(name).is_none_or(|r| r.head.mode == mode));
            }
        };
        for n in 0..whole.len() {
            check(&whole[..n]);
            let mut bad = whole.clone();
            bad[n] ^= 0x40;
            check(&bad);
        }
        // A torn tail does not stop the next record from being found.
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        put(&path, 1, &[(b"c", 9)]);
        assert_eq!(Cache::load(&path, 1).find(b"c").unwrap().head.mode, 9);
    }

    #[test]
    fn a_file_of_mostly_dead_records_is_rewritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        for n in 0..4000 {
            put(&path, 1, &[(b"a", n)]);
        }
        assert!(size(&path) < 3 * SMALL, "{}", size(&path));
        assert_eq!(Cache::load(&path, 1).find(b"a").unwrap().head.mode, 3999);
    }

    #[test]
    fn nothing_is_written_while_another_holds_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        put(&path, 1, &[(b"a", 1)]);
        let other = std::fs::File::open(&path).unwrap();
        other.lock().unwrap();
        put(&path, 1, &[(b"a", 2)]);
        drop(other);
        assert_eq!(Cache::load(&path, 1).find(b"a").unwrap().head.mode, 1);
        put(&path, 1, &[(b"a", 2)]);
        assert_eq!(Cache::load(&path, 1).find(b"a").unwrap().head.mode, 2);
    }
}
