//! The change-detection cache: what each directory held when it was last captured, so that unchanged files are not
//! read again (design § 4).
//!
//! One file: a header and checksummed records, one per directory, appended; the last record of a directory wins. It
//! may be lost, cut or damaged at any time: what cannot be read is hashed again. It names objects of the store only
//! after they are durable, and carries the store's epoch: after a collection nothing in it counts.
//!
//! It is never held in memory as a whole: one pass through a small buffer finds where each record lies, and a record is
//! read when the walk comes to its directory.

mod record;
mod restored;

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    hash::{DefaultHasher, Hasher},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

pub(crate) use record::{Entry, EntryRef, Head, Known, Record, Stamp, What, dir_flag, encode, flag};
pub(crate) use restored::{Restored, forget_beside, remember};

/// Changes with every change of the layout: another version is dropped, not converted.
const MAGIC: &[u8; 16] = b"rwd stat cache 1";
const HEADER: usize = 16 + 8 + 4;
/// Length and checksum before each body.
const FRAME: usize = 8;
/// Dead records are not worth a rewrite below this size.
const SMALL: u64 = 64 << 10;
/// What the pass over the file holds of it at a time; a longer record is read whole.
const AT_A_TIME: usize = 128 << 10;

/// The cache as it was when a capture began.
#[derive(Debug)]
pub(crate) struct Cache {
    path: PathBuf,
    epoch: u64,
    /// The file as it was opened: another process may put a new one in its place, but never changes what is there.
    file: Option<File>,
    index: HashMap<u64, Place>,
    /// Bodies of newer records that the file need not have.
    newer: HashMap<u64, Box<[u8]>>,
    /// Nothing but a rewrite makes the file usable again: another epoch, damage, or no file yet.
    rewrite: bool,
    off: bool,
}

/// Where a record's frame lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    /// Of the body.
    len: u32,
    sum: u32,
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
    /// Looks through the cache. Never fails: what cannot be read, or belongs to another epoch, is empty.
    pub(crate) fn load(path: &Path, epoch: u64) -> Self {
        let mut cache = Self {
            path: path.to_owned(),
            epoch,
            file: None,
            index: HashMap::new(),
            newer: HashMap::new(),
            rewrite: true,
            off: false,
        };
        let Ok(file) = File::open(path) else { return cache };
        let mut through = Window::new(&file, AT_A_TIME);
        if !through.take(HEADER).is_ok_and(|start| start == Some(&header(epoch)[..])) {
            return cache;
        }
        cache.rewrite = loop {
            match next_record(&mut through) {
                Ok(Some((key, place))) => drop(cache.index.insert(key, place)),
                Ok(None) => break false,
                // The rest of the file cannot be framed any more: a torn append, or damage.
                Err(_) => break true,
            }
        };
        cache.file = Some(file);
        cache
    }

    /// A cache that knows nothing and is never written.
    pub(crate) fn unusable(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            epoch: 0,
            file: None,
            index: HashMap::new(),
            newer: HashMap::new(),
            rewrite: true,
            off: true,
        }
    }

    /// True where a file was there and could be looked through, in part at least.
    pub(crate) const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Takes framed records for newer than those of the file, for a process that goes on with this cache.
    pub(crate) fn remember(&mut self, mut records: &[u8]) {
        while let Some((frame, rest)) = records.split_at_checked(FRAME) {
            let Some(len) = record::Reader(frame).u32() else { return };
            let Some((body, rest)) = rest.split_at_checked(len as usize) else { return };
            if let Some(path) = Record::path_of(body) {
                self.newer.insert(key(path), body.into());
            }
            records = rest;
        }
    }

    /// Bytes of records that are held in memory.
    pub(crate) fn remembered(&self) -> usize {
        self.newer.values().map(|body| body.len()).sum()
    }

    /// The newest record of a directory.
    pub(crate) fn find(&self, path: &[u8]) -> Option<Record> {
        if let Some(body) = self.newer.get(&key(path)) {
            return Record::parse(body.clone()).filter(|record| record.path() == path);
        }
        let place = self.index.get(&key(path))?;
        let mut body = vec![0; place.len as usize];
        self.file.as_ref()?.read_exact_at(&mut body, place.at + FRAME as u64).ok()?;
        // It is read a second time, so it is checked a second time.
        let record = Record::parse(body.into()).filter(|record| crc32fast::hash(record.body()) == place.sum)?;
        (record.path() == path).then_some(record)
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
        let live = seen.iter().filter_map(|path| self.index.get(&key(path)));
        let live: u64 = live.map(|place| u64::from(place.len) + FRAME as u64).sum();
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
                frame(&mut framed, record.body());
                out.write_all(&framed)?;
            }
        }
        out.write_all(records)?;
        out.flush()?;
        drop(out);
        std::fs::rename(&fresh, &self.path)
    }
}

/// A file read from front to back, some of it at a time.
struct Window<'f> {
    file: &'f File,
    buffer: Vec<u8>,
    /// What of the buffer is filled, and what of that has been taken.
    filled: usize,
    taken: usize,
    /// Where in the file the taken part ends.
    at: u64,
}

impl<'f> Window<'f> {
    fn new(file: &'f File, size: usize) -> Self {
        Self { file, buffer: vec![0; size], filled: 0, taken: 0, at: 0 }
    }

    /// The next `n` bytes; `None` at the end of the file.
    fn take(&mut self, n: usize) -> io::Result<Option<&[u8]>> {
        if self.filled - self.taken < n {
            self.fill(n)?;
        }
        let from = self.taken;
        if from == self.filled && n > 0 {
            return Ok(None);
        }
        let bytes = self.buffer.get(from..from + n).filter(|_| from + n <= self.filled);
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.taken += n;
        self.at += n as u64;
        Ok(Some(bytes))
    }

    fn fill(&mut self, n: usize) -> io::Result<()> {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        if n > self.buffer.len() {
            // A damaged length must not take memory that the file does not fill.
            let left = self.file.metadata()?.len().saturating_sub(self.at);
            if n as u64 > left {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.resize(n, 0);
        }
        while self.filled < n {
            let (mut file, free) = (self.file, &mut self.buffer[self.filled..]);
            match file.read(free) {
                Ok(0) => break,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The next record of the file: whose it is and where it lies. `None` at the end; an error for what is no record.
fn next_record(through: &mut Window<'_>) -> io::Result<Option<(u64, Place)>> {
    let at = through.at;
    let Some(frame) = through.take(FRAME)? else { return Ok(None) };
    let mut frame = record::Reader(frame);
    let (Some(len), Some(sum)) = (frame.u32(), frame.u32()) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    let body = through.take(len as usize)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if crc32fast::hash(body) != sum {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let path = Record::path_of(body).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((key(path), Place { at, len, sum })))
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

    /// Sound in every checksum, but of another version: it is dropped, and the next capture that has something to say
    /// puts a file of this version in its place.
    #[test]
    fn a_cache_of_another_version_is_as_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        put(&path, 1, &[(b"a", 1)]);
        let mut newer = std::fs::read(&path).unwrap();
        newer[15] = b'2';
        let sum = crc32fast::hash(&newer[..HEADER - 4]).to_le_bytes();
        newer[HEADER - 4..HEADER].copy_from_slice(&sum);
        std::fs::write(&path, &newer).unwrap();
        assert!(Cache::load(&path, 1).find(b"a").is_none());
        put(&path, 1, &[(b"b", 2)]);
        let cache = Cache::load(&path, 1);
        assert!(cache.find(b"a").is_none());
        assert_eq!(cache.find(b"b").unwrap().head.mode, 2);
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

    /// Records of every size around the buffer's: cut by its end, as long as it, longer, and one after that.
    #[test]
    fn records_are_found_wherever_the_buffer_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        let mut names: Vec<Vec<u8>> = (0..40).map(|n| vec![b'a' + n % 26; 9000 + usize::from(n)]).collect();
        for n in [AT_A_TIME - 200, AT_A_TIME - 1, AT_A_TIME, AT_A_TIME + 1, 3 * AT_A_TIME] {
            names.extend([vec![b'x'; n], vec![b'y'; n % 251]]);
        }
        let dirs: Vec<(&[u8], u16)> = names.iter().zip(1..).map(|(name, mode)| (&name[..], mode)).collect();
        put(&path, 1, &dirs);
        let cache = Cache::load(&path, 1);
        assert!(!cache.rewrite);
        for (name, _) in &dirs {
            let last = dirs.iter().rfind(|(other, _)| other == name).unwrap().1;
            assert_eq!(cache.find(name).unwrap().head.mode, last, "a name of {} bytes", name.len());
        }
    }

    /// The file is looked through first and read later: what changed in between is no record.
    #[test]
    fn a_record_that_is_damaged_after_the_first_pass_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat.cache");
        put(&path, 1, &[(b"a", 1), (b"b", 2)]);
        let cache = Cache::load(&path, 1);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0xff], size(&path) - 1).unwrap();
        assert!(cache.find(b"b").is_none());
        assert_eq!(cache.find(b"a").unwrap().head.mode, 1);
        file.set_len(40).unwrap();
        assert!(cache.find(b"a").is_none());
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
