//! Packs of the user's repository, taken over by a hard link: a bridge until a collection has copied what is live.
//!
//! A pack is looked through before it gets a name here. What git has hashed when it wrote the pack is not hashed again,
//! but every stored byte is compared with the checksum that git's index keeps of it, every delta has its base in the
//! same pack, and every read from such a pack hashes what it gives.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use checkpoint_core::SnapshotError;
use zlib_rs::{Inflate, InflateFlush};

use super::{
    EntryKind, Store,
    delta::number,
    idx::{Entry, Id, Idx},
    pack::{EntryReader, HEADER, Pack, TRAILER, seeded_name},
    temporary,
};

/// What is read of a pack at a time.
const WINDOW: usize = 256 << 10;
/// Entries that one worker looks through before it takes more.
const STEP: usize = 4096;
/// An index that is bigger, of two million objects, is not read into memory for this.
pub(crate) const BIGGEST_INDEX: u64 = 64 << 20;

/// A pack of another repository as it was found: nothing of it is relied on yet.
pub(crate) struct Candidate {
    path: PathBuf,
    file: Arc<File>,
    len: u64,
    /// Device and inode.
    identity: (u64, u64),
    idx: Idx,
    /// By id.
    entries: Vec<Entry>,
    /// Offset and place among `entries`, by offset.
    order: Vec<(u64, u32)>,
    /// As far as it was looked through, by place: the size of each object, [`NO_BLOB`] for what is none. Of a delta only
    /// its base knows what it is.
    sizes: Vec<AtomicU64>,
    /// How many of `order` somebody has begun with, and how many are done.
    next: AtomicUsize,
    done: AtomicUsize,
    trouble: Mutex<Option<io::Error>>,
}

/// A pack that is whole.
pub(crate) struct Vetted(Candidate);

/// No object is that big.
const NO_BLOB: u64 = u64::MAX;

/// An id that somebody looks for, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The beginning of the id, as a number: most comparisons end with it.
    start: u64,
    id: Id,
    /// Place in whatever it comes from.
    pub(crate) at: u32,
    /// The size that it shall have.
    size: u32,
}

impl Wanted {
    pub(crate) fn new(id: Id, at: u32, size: u32) -> Self {
        Self { start: start(&id), id, at, size }
    }

    /// The order that [`Candidate::holds`] and [`Vetted::each`] expect.
    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.start.cmp(&other.start).then_with(|| self.id.cmp(&other.id))
    }

    fn compared_with(&self, id: &Id) -> std::cmp::Ordering {
        self.start.cmp(&start(id)).then_with(|| self.id.cmp(id))
    }
}

fn start(id: &Id) -> u64 {
    id.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate").field("path", &self.path).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Vetted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vetted").field("path", &self.0.path).finish_non_exhaustive()
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

impl Candidate {
    /// Opens the pack at `path` and reads its index.
    ///
    /// # Errors
    /// When it is not a pack of `owner`'s that nobody else may write and nobody writes, or has no sound index.
    pub(crate) fn open(path: &Path, owner: u32) -> io::Result<Self> {
        let file = open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.uid() != owner || facts.mode() & 0o022 != 0 {
            return Err(refused("others may change it"));
        }
        // A partial clone's packs refer to objects that are elsewhere.
        if path.with_extension("promisor").exists() {
            return Err(refused("it is of a partial clone"));
        }
        let index = open(&path.with_extension("idx"))?;
        if index.metadata()?.len() > BIGGEST_INDEX {
            return Err(refused("its index is too big"));
        }
        let mut bytes = Vec::new();
        index.take(BIGGEST_INDEX).read_to_end(&mut bytes)?;
        let idx = Idx::from_bytes(bytes)?;
        let entries = idx.entries()?;
        if !idx.is_sound()? || !entries.is_sorted_by(|a, b| a.id < b.id) {
            return Err(refused("its index is damaged"));
        }
        let mut order: Vec<(u64, u32)> = entries.iter().zip(0..).map(|(entry, at)| (entry.offset, at)).collect();
        order.sort_unstable();
        let len = facts.len();
        let mut sum = [0; 20];
        if len < HEADER + TRAILER {
            return Err(refused("it is cut short"));
        }
        file.read_exact_at(&mut sum, len - TRAILER)?;
        let mut head = [0; 12];
        file.read_exact_at(&mut head, 0)?;
        if sum != *idx.pack_sum() || head[..8] != *b"PACK\0\0\0\x02" || head[8..] != idx.count().to_be_bytes() {
            return Err(refused("its index belongs to another"));
        }
        let identity = (facts.dev(), facts.ino());
        let sizes = std::iter::repeat_with(|| AtomicU64::new(NO_BLOB)).take(entries.len()).collect();
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file),
            len,
            identity,
            idx,
            entries,
            order,
            sizes,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            trouble: Mutex::new(None),
        })
    }

    /// Where it was found.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of its index.
    pub(crate) fn index_len(&self) -> u64 {
        self.idx.in_memory().map_or(0, <[u8]>::len) as u64
    }

    /// Bytes of the pack.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// How many of these, which are in order, it holds.
    pub(crate) fn holds(&self, wanted: &[Wanted]) -> usize {
        let mut count = 0;
        self.join(wanted, |_, _| count += 1);
        count
    }

    /// Tells of each that is here, and where among the entries: one pass through both.
    fn join(&self, wanted: &[Wanted], mut found: impl FnMut(&Wanted, usize)) {
        let mut at = 0;
        for one in wanted {
            while let Some(entry) = self.entries.get(at) {
                match one.compared_with(&entry.id) {
                    std::cmp::Ordering::Greater => at += 1,
                    std::cmp::Ordering::Equal => {
                        found(one, at);
                        break;
                    }
                    std::cmp::Ordering::Less => break,
                }
            }
        }
    }

    /// Looks through the pack for as long as `go_on` says; [`Candidate::vet`] does the rest.
    pub(crate) fn begin(&self, go_on: &(dyn Fn() -> bool + Sync)) {
        if self.is_accounted_for() {
            self.work(go_on);
        }
    }

    /// Looks through what is left of the pack with `threads` workers, for as long as `go_on` says.
    ///
    /// # Errors
    /// When a byte differs from what the index says, the index does not account for all of it, or a delta rests on
    /// something that is not in it.
    pub(crate) fn vet(&self, threads: usize, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        if !self.is_accounted_for() {
            return Err(refused("its index does not account for all of it"));
        }
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work(go_on));
            }
            self.work(go_on);
        });
        if let Some(error) = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        // Each took what it began to its end, unless it panicked.
        if self.done.load(Ordering::Acquire) == self.order.len() { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    fn is_accounted_for(&self) -> bool {
        let end = self.len - TRAILER;
        self.order.first().map_or(end, |(offset, _)| *offset) == HEADER
            && self.order.is_sorted_by(|a, b| a.0 < b.0)
            && self.order.last().is_none_or(|(offset, _)| *offset < end)
    }

    fn work(&self, go_on: &(dyn Fn() -> bool + Sync)) {
        let mut reader = Reader { pack: self, buffer: Vec::new(), at: 0, inflate: Inflate::new(true, 15) };
        let mut some = || -> io::Result<bool> {
            let from = self.next.fetch_add(STEP, Ordering::Relaxed);
            let Some(part) = self.order.get(from..).filter(|part| !part.is_empty()) else { return Ok(false) };
            let stops = part.iter().skip(1).map(|(offset, _)| *offset).chain([self.len - TRAILER]);
            let count = part.len().min(STEP);
            for ((_, at), stop) in part.iter().zip(stops).take(count) {
                let (entry, size) = (self.entries.get(*at as usize), self.sizes.get(*at as usize));
                let (entry, size) = entry.zip(size).ok_or_else(|| refused("no such entry"))?;
                size.store(reader.check(entry, stop)?.unwrap_or(NO_BLOB), Ordering::Relaxed);
            }
            self.done.fetch_add(count, Ordering::Release);
            Ok(true)
        };
        while go_on() {
            match some() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.next.store(self.order.len(), Ordering::Relaxed);
                    self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        }
    }

    /// The pack, now that it is known to be whole.
    pub(crate) fn vetted(self) -> Vetted {
        Vetted(self)
    }
}

impl Vetted {
    /// Tells of each of `wanted`, which are in order, that may be a blob of its size here.
    pub(crate) fn each(&self, wanted: &[Wanted], mut found: impl FnMut(&Wanted)) {
        self.0.join(wanted, |one, at| {
            let size = self.0.sizes.get(at).map(|size| size.load(Ordering::Relaxed));
            // In an index the sizes of bigger files are cut off.
            if one.size < u32::MAX && size == Some(u64::from(one.size)) {
                found(one);
            }
        });
    }
}

/// Reads through a pack, a window at a time.
struct Reader<'p> {
    pack: &'p Candidate,
    buffer: Vec<u8>,
    /// Where in the pack the buffer begins.
    at: u64,
    inflate: Inflate,
}

impl Reader<'_> {
    /// Compares the entry's bytes, which end before `end`, with their checksum; the size of the object if it may be a
    /// blob.
    fn check(&mut self, entry: &Entry, end: u64) -> io::Result<Option<u64>> {
        let start = entry.offset;
        let len = usize::try_from(end - start).map_err(io::Error::other)?;
        if start < self.at || end > self.at + self.buffer.len() as u64 {
            self.fill(start)?;
        }
        let from = usize::try_from(start - self.at).map_err(io::Error::other)?;
        let mut crc = crc32fast::Hasher::new();
        let first = len.min(self.buffer.len() - from);
        let size = self.size(entry, from, first)?;
        crc.update(&self.buffer[from..from + first]);
        let mut done = first;
        while done < len {
            self.fill(start + done as u64)?;
            let more = (len - done).min(self.buffer.len());
            crc.update(&self.buffer[..more]);
            done += more;
        }
        if crc.finalize() == entry.crc { Ok(size) } else { Err(refused("a stored byte changed")) }
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        let left = self.pack.len - TRAILER - at;
        self.buffer.resize(WINDOW.min(usize::try_from(left).unwrap_or(WINDOW)), 0);
        self.at = at;
        self.pack.file.read_exact_at(&mut self.buffer, at)
    }

    /// What the header of an entry says, which begins at `from` of the buffer and has at least `len` bytes there.
    fn size(&mut self, entry: &Entry, from: usize, len: usize) -> io::Result<Option<u64>> {
        let bytes = &self.buffer[from..from + len];
        let mut rest = bytes.iter();
        let mut take = || rest.next().copied().ok_or_else(|| refused("an entry header is cut short"));
        let first = take()?;
        let (mut size, mut shift, mut byte) = (u64::from(first & 15), 4u32, first);
        while byte & 0x80 != 0 {
            byte = take()?;
            if shift > 56 {
                return Err(refused("an entry header announces too much"));
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        match first >> 4 & 7 {
            1 | 2 | 4 => return Ok(None),
            3 => return Ok(Some(size)),
            6 => {
                // The distance back to the base, seven bits a byte, each but the last counting one more.
                let mut byte = take()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = take()?;
                    if back >= 1 << 50 {
                        return Err(refused("a delta on nothing"));
                    }
                    back = ((back + 1) << 7) | u64::from(byte & 0x7f);
                }
                let base = entry.offset.checked_sub(back).filter(|base| *base < entry.offset);
                if base.is_none_or(|base| self.pack.order.binary_search_by_key(&base, |(offset, _)| *offset).is_err()) {
                    return Err(refused("a delta on nothing"));
                }
            }
            7 => {
                let mut base = [0; 20];
                for byte in &mut base {
                    *byte = take()?;
                }
                // Only whole bases by name: so there is no circle, and none is elsewhere.
                let found =
                    self.pack.idx.find(&base)?.ok_or_else(|| refused("a delta on an object that is elsewhere"))?;
                let (offset, _) = self.pack.idx.entry(found)?;
                let base = EntryReader::new(Arc::clone(&self.pack.file), offset, self.pack.len - TRAILER, None)?;
                if base.kind() == EntryKind::Delta {
                    return Err(refused("a delta on a delta that it names"));
                }
            }
            _ => return Err(refused("an entry of unknown kind")),
        }
        let header = len - rest.as_slice().len();
        // The delta begins with the sizes of its base and of what it makes, at most ten bytes each.
        let mut start = [0; 20];
        self.inflate.reset(true);
        let done = self.inflate.decompress(&bytes[header..], &mut start, InflateFlush::NoFlush);
        done.map_err(|_| refused("a delta does not inflate"))?;
        let got = usize::try_from(self.inflate.total_out()).map_err(io::Error::other)?;
        let mut start = start[..got.min(20)].iter();
        number(&mut start)?;
        number(&mut start).map(Some)
    }
}

impl Store {
    /// True when nothing is stored but what was taken over from the user's repository.
    pub(crate) fn is_new(&self) -> Result<bool, SnapshotError> {
        Ok(self.packs()?.iter().all(|pack| pack.is_seeded()))
    }

    /// Writes a copy of a pack's index under a temporary name and syncs it: it can only be made again by reading every
    /// delta.
    pub(crate) fn draft_index(&self, of: &Candidate) -> io::Result<PathBuf> {
        let path = temporary(&self.pack_dir, ".idx");
        let file = self.ops.create(&path)?;
        let written = self.ops.write_at(&file, of.idx.in_memory().unwrap_or_default(), 0);
        written.and_then(|()| self.ops.sync_data(&file)).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(path)
    }

    /// Takes over a vetted pack with the draft of its index: a link, its data synced. The directory is not synced; the
    /// batch that relies on it does that.
    ///
    /// # Errors
    /// When it cannot be linked: another file system, another owner, or it is gone. Then nothing of it stays.
    pub(crate) fn take_over(&self, pack: &Vetted, draft: &Path) -> io::Result<()> {
        let from = &pack.0;
        let path = self.pack_dir.join(seeded_name(from.idx.pack_sum()));
        let idx_path = path.with_extension("idx");
        // An index without a pack says nothing to anybody; a pack without an index is read from end to end.
        let named = self.ops.rename(draft, &idx_path).inspect_err(|_| drop(std::fs::remove_file(draft)));
        let linked = named.and_then(|()| self.link(from, &path)).and_then(|()| {
            let idx = Idx::open(&idx_path)?;
            Pack::new(path.clone(), idx, false, &self.open)
        });
        match linked {
            Ok(pack) => {
                self.adopt(vec![Arc::new(pack)]);
                Ok(())
            }
            Err(error) => {
                if !path.exists() {
                    drop(std::fs::remove_file(&idx_path));
                }
                Err(error)
            }
        }
    }

    fn link(&self, from: &Candidate, path: &Path) -> io::Result<()> {
        let ours = match self.ops.link(&from.path, path) {
            // Two first captures at once, or one that was given up, have linked it already: others may rely on that.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            done => done.map(|()| true)?,
        };
        // By now another file may have had the name.
        let facts = std::fs::symlink_metadata(path)?;
        let is_same = (facts.dev(), facts.ino()) == from.identity && facts.len() == from.len;
        let synced = if is_same { self.ops.sync_data(&from.file) } else { Err(refused("it was replaced meanwhile")) };
        synced.inspect_err(|_| {
            if ours {
                drop(std::fs::remove_file(path));
            }
        })
    }
}
