//! Reading packs: one entry at a time, inflated while it is read, from plain positioned reads.
//!
//! Nothing is mapped into memory: a pack that is cut short under an open handle is an error, not a signal.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use gix::objs::Kind;
use zlib_rs::{Inflate, InflateFlush, Status};

use super::idx::{Entry, Id, Idx, digest};

/// Packs whose files stay open between reads; more are opened when needed.
const KEPT_OPEN: usize = 200;
const FIRST_READ: usize = 4 << 10;
const NEXT_READ: usize = 64 << 10;
/// Bytes of a pack's header.
pub(crate) const HEADER: u64 = 12;
/// Bytes of its trailer.
pub(crate) const TRAILER: u64 = 20;

/// What the header of an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A whole object.
    Whole(Kind),
    /// A delta: only in packs that we did not write.
    Delta,
}

/// One pack with its index.
#[derive(Debug)]
pub(crate) struct Pack {
    path: PathBuf,
    idx: Idx,
    len: u64,
    /// True when the file had another name as well when it was found: a bridge to another repository.
    linked: bool,
    /// True when the index was made from a pack whose checksum does not hold: readable, but nobody relies on it.
    damaged: bool,
    /// True when it was taken over from the user's repository: only git has hashed what it holds.
    seeded: bool,
    file: Mutex<Option<Arc<File>>>,
    open: Arc<AtomicUsize>,
}

impl Drop for Pack {
    fn drop(&mut self) {
        if self.file.get_mut().is_ok_and(|f| f.is_some()) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Pack {
    /// Takes the pack at `path` with its index. `open` counts files kept open, over all packs of a store.
    pub(crate) fn new(path: PathBuf, idx: Idx, damaged: bool, open: &Arc<AtomicUsize>) -> io::Result<Self> {
        let facts = path.metadata()?;
        let (len, linked) = (facts.len(), facts.nlink() > 1);
        let seeded = is_seeded_name(&path);
        Ok(Self { path, idx, len, linked, damaged, seeded, file: Mutex::new(None), open: Arc::clone(open) })
    }

    /// The pack file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The index.
    pub(crate) fn idx(&self) -> &Idx {
        &self.idx
    }

    /// Length of the pack file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Where its entries end. One that lost its end has no trailer either.
    pub(crate) fn end(&self) -> u64 {
        if self.damaged { self.len } else { self.len.saturating_sub(TRAILER) }
    }

    /// True when it is a link to another repository's pack, as far as was known when it was found.
    pub(crate) fn is_linked(&self) -> bool {
        self.linked
    }

    /// True when it is a pack of the user's repository, by its name: it may hold deltas and objects that no snapshot
    /// needs, and what is read from it is hashed. It stays so when the repository's own name for it goes.
    pub(crate) fn is_seeded(&self) -> bool {
        self.seeded
    }

    /// True when nobody may rely on it.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// The opened pack file.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        let mut kept = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*kept {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(&self.path)?);
        if self.open.fetch_add(1, Ordering::Relaxed) < KEPT_OPEN {
            *kept = Some(Arc::clone(&file));
        } else {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(file)
    }

    /// Where the object lies, if it is here.
    pub(crate) fn find(&self, id: &Id) -> io::Result<Option<(u64, u32)>> {
        self.idx.find(id)?.map(|at| self.idx.entry(at)).transpose()
    }

    /// Starts reading the entry at `offset`; with `crc`, its stored bytes are checked as well.
    pub(crate) fn entry(&self, offset: u64, crc: Option<u32>) -> io::Result<EntryReader> {
        EntryReader::new(self.file()?, offset, self.end(), crc)
    }
}

/// Name of the pack that was taken over from the user's repository, by its checksum. Any git reads it.
pub(crate) fn seeded_name(sum: &Id) -> String {
    format!("{SEEDED}{}.pack", gix::ObjectId::Sha1(*sum))
}

const SEEDED: &str = "pack-seed-";

fn is_seeded_name(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(SEEDED))
}

/// Inflates one entry while it is read. Fails where the data does not end exactly at the announced size, and before
/// handing out the last bytes when their checksum is wrong.
pub(crate) struct EntryReader {
    file: Arc<File>,
    start: u64,
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    kind: EntryKind,
    size: u64,
    given: u64,
    done: bool,
    inflate: Inflate,
    crc: Option<(u32, crc32fast::Hasher)>,
    /// The id that the content has to have.
    hash: Option<(Id, gix::hash::Hasher)>,
    /// What a delta rests on.
    base: Option<Base>,
}

/// The object that a delta rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The entry at this offset of the same pack, before the delta.
    At(u64),
    /// The object with this id.
    Named(Id),
}

impl std::fmt::Debug for EntryReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EntryReader").field("start", &self.start).field("size", &self.size).finish_non_exhaustive()
    }
}

impl EntryReader {
    /// Reads the header of the entry at `offset` of a file whose entries stop at `end`.
    pub(crate) fn new(file: Arc<File>, offset: u64, end: u64, crc: Option<u32>) -> io::Result<Self> {
        if offset < HEADER || offset >= end {
            return Err(damaged("an offset outside of the pack"));
        }
        let mut reader = Self {
            file,
            start: offset,
            next: offset,
            end,
            buffer: Vec::new(),
            used: 0,
            kind: EntryKind::Delta,
            size: 0,
            given: 0,
            done: false,
            inflate: Inflate::new(true, 15),
            crc: crc.map(|sum| (sum, crc32fast::Hasher::new())),
            hash: None,
            base: None,
        };
        reader.refill(FIRST_READ)?;
        let mut bytes = reader.buffer.iter();
        let mut take = || bytes.next().copied().ok_or_else(|| damaged("an entry header is cut short"));
        let first = take()?;
        let (mut size, mut shift, mut byte) = (u64::from(first & 15), 4u32, first);
        while byte & 0x80 != 0 {
            byte = take()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 60 || bits << shift >> shift != bits {
                return Err(damaged("an entry header announces too much"));
            }
            size |= bits << shift;
            shift += 7;
        }
        reader.kind = match first >> 4 & 7 {
            1 => EntryKind::Whole(Kind::Commit),
            2 => EntryKind::Whole(Kind::Tree),
            3 => EntryKind::Whole(Kind::Blob),
            4 => EntryKind::Whole(Kind::Tag),
            6 => {
                // The distance back, seven bits a byte, each byte but the last counting one more.
                let mut byte = take()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = take()?;
                    if back >= 1 << 50 {
                        return Err(damaged("a delta on nothing"));
                    }
                    back = ((back + 1) << 7) | u64::from(byte & 0x7f);
                }
                let at = offset.checked_sub(back).filter(|at| *at < offset);
                reader.base = Some(Base::At(at.ok_or_else(|| damaged("a delta on nothing"))?));
                EntryKind::Delta
            }
            7 => {
                let mut id = [0; 20];
                for byte in &mut id {
                    *byte = take()?;
                }
                reader.base = Some(Base::Named(id));
                EntryKind::Delta
            }
            _ => return Err(damaged("an entry of unknown kind")),
        };
        let header = reader.buffer.len() - bytes.as_slice().len();
        reader.size = size;
        reader.consume(header);
        Ok(reader)
    }

    /// What the entry is.
    pub(crate) fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Goes by the checksum of the content alone, which is in the pack itself: the one of the stored bytes is in the
    /// index, and a damaged index shall not make a good object unreadable.
    pub(crate) fn without_crc(mut self) -> Self {
        self.crc = None;
        self
    }

    /// Hashes the content while it is read, and fails before the last bytes are handed out when it has another id.
    pub(crate) fn expecting(mut self, id: &Id) -> Self {
        if let EntryKind::Whole(kind) = self.kind {
            self.hash = Some((*id, object_hasher(kind, self.size)));
        }
        self
    }

    /// Size of the object. Only announced: a damaged header can say anything.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Offset right behind the entry; right only after it was read to its end.
    pub(crate) fn stop(&self) -> u64 {
        self.next - (self.buffer.len() - self.used) as u64
    }

    fn refill(&mut self, most: usize) -> io::Result<()> {
        let want = usize::try_from((self.end - self.next).min(most as u64)).expect("at most a buffer");
        self.buffer.resize(want, 0);
        self.used = 0;
        self.file.read_exact_at(&mut self.buffer, self.next)?;
        self.next += want as u64;
        Ok(())
    }

    fn consume(&mut self, n: usize) {
        if let Some((_, crc)) = &mut self.crc {
            crc.update(&self.buffer[self.used..self.used + n]);
        }
        self.used += n;
    }

    /// One step of inflating into `to`; how many bytes came out, and whether the stream is over.
    fn step(&mut self, to: &mut [u8]) -> io::Result<(usize, bool)> {
        if self.used == self.buffer.len() && self.next < self.end {
            self.refill(NEXT_READ)?;
        }
        let inflate = &mut self.inflate;
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(&self.buffer[self.used..], to, InflateFlush::NoFlush);
        let taken = usize::try_from(inflate.total_in() - before_in).expect("within the buffer");
        let made = usize::try_from(inflate.total_out() - before_out).expect("within the buffer");
        self.consume(taken);
        let over = match status {
            Ok(Status::StreamEnd) => true,
            Ok(_) if taken == 0 && made == 0 => return Err(damaged("an entry is cut short")),
            Ok(_) => false,
            Err(_) => return Err(damaged("an entry does not inflate")),
        };
        Ok((made, over))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.done = true;
        if self.given != self.size {
            return Err(damaged("an entry is shorter than announced"));
        }
        if self.crc.take().is_some_and(|(sum, crc)| crc.finalize() != sum) {
            return Err(damaged("the stored bytes of an entry changed"));
        }
        if let Some((id, hasher)) = self.hash.take()
            && digest(hasher)? != id
        {
            return Err(damaged("the content of an entry has another id"));
        }
        Ok(())
    }

    /// The base of a delta, and the delta itself.
    pub(crate) fn delta(mut self) -> io::Result<(Base, Vec<u8>)> {
        let base = self.base.filter(|_| self.kind == EntryKind::Delta).ok_or_else(|| damaged("no delta"))?;
        // Its bytes are read as any content's are.
        self.kind = EntryKind::Whole(Kind::Blob);
        Ok((base, self.whole()?))
    }

    /// Reads all that is left. Memory follows what is there, not what the header announces.
    pub(crate) fn whole(mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::with_capacity(usize::try_from(self.size.min(1 << 20)).expect("at most 1 MiB"));
        self.read_to_end(&mut all)?;
        Ok(all)
    }
}

impl Read for EntryReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.kind == EntryKind::Delta {
            return Err(damaged("a delta where a whole object was expected"));
        }
        if to.is_empty() || self.done {
            return Ok(0);
        }
        let mut got = 0;
        while self.given < self.size {
            let (made, over) = self.step(to)?;
            self.given += made as u64;
            if self.given > self.size {
                return Err(damaged("an entry is longer than announced"));
            }
            got = made;
            if let Some((_, hasher)) = &mut self.hash {
                hasher.update(to.get(..made).unwrap_or_default());
            }
            if over {
                self.finish()?;
                return Ok(got);
            }
            if made > 0 {
                break;
            }
        }
        // The checksum follows the last byte: see it before the last bytes are believed.
        while self.given == self.size && !self.done {
            let (more, over) = self.step(&mut [0])?;
            if more > 0 {
                return Err(damaged("an entry is longer than announced"));
            }
            if over {
                self.finish()?;
            }
        }
        Ok(got)
    }
}

/// What a scan of a whole pack found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The objects up to the first that cannot be read.
    pub(crate) entries: Vec<Entry>,
    /// The pack's checksum as its trailer has it.
    pub(crate) sum: Id,
    /// True when count and checksum hold.
    pub(crate) whole: bool,
}

/// Reads a pack from end to end and hashes every object: what its index would have to say.
///
/// `hints` are offsets that an unsound index gives, in order: behind a damaged entry the scan goes on at the next.
pub(crate) fn scan(path: &Path, hints: &[u64]) -> io::Result<Scan> {
    let file = Arc::new(File::open(path)?);
    let len = file.metadata()?.len();
    let mut scan = Scan { entries: Vec::new(), sum: [0; 20], whole: false };
    if len < HEADER + TRAILER {
        return Ok(scan);
    }
    let mut head = [0; 12];
    file.read_exact_at(&mut head, 0)?;
    let count = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    file.read_exact_at(&mut scan.sum, len - TRAILER)?;
    let sound = head[..8] == *b"PACK\0\0\0\x02" && hash_range(&file, len - TRAILER)? == scan.sum;
    // Of a pack without its trailer every byte may be an entry's.
    let end = if sound { len - TRAILER } else { len };
    let mut at = HEADER;
    while at < end && head[..4] == *b"PACK" {
        if let Ok((entry, stop)) = scan_entry(&file, at, end) {
            scan.entries.push(entry);
            at = stop;
        } else if let Some(next) = hints.get(hints.partition_point(|hint| *hint <= at)) {
            at = *next;
        } else {
            break;
        }
    }
    scan.whole = sound && at == end && scan.entries.len() == count as usize;
    Ok(scan)
}

fn scan_entry(file: &Arc<File>, at: u64, end: u64) -> io::Result<(Entry, u64)> {
    let mut reader = EntryReader::new(Arc::clone(file), at, end, None)?;
    let EntryKind::Whole(kind) = reader.kind() else { return Err(damaged("a delta: not a pack of ours")) };
    let mut hasher = object_hasher(kind, reader.size());
    let mut part = vec![0; NEXT_READ];
    loop {
        match reader.read(&mut part)? {
            0 => break,
            n => hasher.update(&part[..n]),
        }
    }
    let stop = reader.stop();
    let mut crc = crc32fast::Hasher::new();
    let mut from = at;
    while from < stop {
        let n = usize::try_from((stop - from).min(NEXT_READ as u64)).expect("at most a buffer");
        file.read_exact_at(&mut part[..n], from)?;
        crc.update(&part[..n]);
        from += n as u64;
    }
    Ok((Entry { id: digest(hasher)?, offset: at, crc: crc.finalize() }, stop))
}

/// A hasher that has seen an object's header.
pub(crate) fn object_hasher(kind: Kind, size: u64) -> gix::hash::Hasher {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&gix::objs::encode::loose_header(kind, size));
    hasher
}

/// SHA-1 of the first `len` bytes of a file.
pub(crate) fn hash_range(file: &File, len: u64) -> io::Result<Id> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    let mut part = vec![0; usize::try_from(len.min(1 << 20)).expect("at most 1 MiB")];
    let mut at = 0;
    while at < len {
        let n = usize::try_from((len - at).min(1 << 20)).expect("at most 1 MiB");
        file.read_exact_at(&mut part[..n], at)?;
        hasher.update(&part[..n]);
        at += n as u64;
    }
    digest(hasher)
}
