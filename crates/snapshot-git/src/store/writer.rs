//! Writing one pack: compressed as objects come, in memory while it is small, then streamed to a temporary file.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use checkpoint_core::SnapshotError;
use gix::{ObjectId, objs::Kind};
use zlib_rs::{Deflate, DeflateFlush, Status};

use super::{
    idx::{self, Entry, Id},
    ops::{Ops, io_error},
    pack::{HEADER, hash_range, object_hasher},
};

/// A pack smaller than this is never written before it is finished.
const BUFFER: usize = 1 << 20;
/// A pack that has reached this gets no further object: collecting garbage rewrites whole packs.
const FULL: u64 = 256 << 20;
/// How much of a big object decides whether compressing it pays.
pub(crate) const PROBE: usize = 64 << 10;
const PIECE: usize = 64 << 10;

/// How hard an object is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Stored in zlib's frame.
    Store,
    /// Fastest.
    Fast,
}

impl Level {
    /// Whether compressing an object that begins with `start` pays. Only worth asking for big ones.
    pub(crate) fn probe(start: &[u8]) -> Self {
        let start = &start[..start.len().min(PROBE)];
        let mut out = vec![0; zlib_rs::compress_bound(start.len())];
        let (packed, _) = zlib_rs::compress_slice(&mut out, start, zlib_rs::DeflateConfig::new(1));
        if packed.len() * 20 > start.len() * 19 { Self::Store } else { Self::Fast }
    }
}

/// A pack on its way.
pub(crate) struct PackWriter {
    path: PathBuf,
    file: Option<File>,
    flushed: u64,
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    fast: Option<Deflate>,
    store: Option<Deflate>,
}

impl std::fmt::Debug for PackWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackWriter")
            .field("path", &self.path)
            .field("objects", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// An entry that is being written.
#[derive(Debug)]
pub(crate) struct Open {
    start: u64,
    level: Level,
    crc: crc32fast::Hasher,
}

impl Open {
    /// Where the entry begins.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }
}

/// A pack whose data is complete and synced under its temporary name, and its index.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) temporary: PathBuf,
    pub(crate) sum: Id,
    pub(crate) idx: Vec<u8>,
    pub(crate) len: u64,
}

impl PackWriter {
    /// A pack that goes to `path`, a temporary name, when it outgrows its buffer or is sealed.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            flushed: 0,
            buffer: b"PACK\0\0\0\x02\0\0\0\0".to_vec(),
            entries: Vec::new(),
            fast: None,
            store: None,
        }
    }

    /// The temporary name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True when it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True while no byte of it is on disk.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// True when further objects shall go to another pack.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= FULL
    }

    /// The header of an entry: kind and the low four bits of the size first, then seven bits a byte.
    fn header(&mut self, kind: Kind, size: u64) {
        let kind = match kind {
            Kind::Commit => 1u8,
            Kind::Tree => 2,
            Kind::Blob => 3,
            Kind::Tag => 4,
        };
        let mut byte = kind << 4 | (size & 15) as u8;
        let mut rest = size >> 4;
        while rest > 0 {
            self.buffer.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        self.buffer.push(byte);
    }

    /// Adds a whole object without compressing it: a compressor costs as much to begin anew as some kilobytes cost to
    /// compress. Returns the bytes it takes.
    pub(crate) fn put_framed(&mut self, ops: &Ops, kind: Kind, id: Id, body: &[u8]) -> Result<u64, SnapshotError> {
        if self.buffer.len() >= BUFFER {
            self.flush(ops)?;
        }
        let (start, at) = (self.len(), self.buffer.len());
        self.header(kind, body.len() as u64);
        self.buffer.extend_from_slice(&[0x78, 0x01]);
        // Blocks of at most 64 KiB as they are, each with its length twice; an empty object has one too.
        let blocks = body.chunks(0xffff).chain(body.is_empty().then_some(body));
        let last = body.len().div_ceil(0xffff).max(1) - 1;
        for (n, block) in blocks.enumerate() {
            let len = u16::try_from(block.len()).expect("at most 64 KiB");
            self.buffer.push(u8::from(n == last));
            self.buffer.extend_from_slice(&len.to_le_bytes());
            self.buffer.extend_from_slice(&(!len).to_le_bytes());
            self.buffer.extend_from_slice(block);
        }
        self.buffer.extend_from_slice(&zlib_rs::adler32::adler32(1, body).to_be_bytes());
        let crc = crc32fast::hash(self.buffer.get(at..).unwrap_or_default());
        self.entries.push(Entry { id, offset: start, crc });
        Ok(self.len() - start)
    }

    /// Starts an entry. Nothing else may be written before it is ended or abandoned.
    pub(crate) fn begin(&mut self, kind: Kind, size: u64, level: Level) -> Open {
        let (start, at) = (self.len(), self.buffer.len());
        self.header(kind, size);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&self.buffer[at..]);
        match level {
            Level::Store => self.store.get_or_insert_with(|| Deflate::new(0, true, 15)).reset(),
            Level::Fast => self.fast.get_or_insert_with(|| Deflate::new(1, true, 15)).reset(),
        }
        Open { start, level, crc }
    }

    /// Compresses more of the object; `last` ends the stream.
    pub(crate) fn feed(
        &mut self,
        ops: &Ops,
        open: &mut Open,
        mut bytes: &[u8],
        last: bool,
    ) -> Result<(), SnapshotError> {
        let flush = if last { DeflateFlush::Finish } else { DeflateFlush::NoFlush };
        loop {
            if self.buffer.len() >= BUFFER {
                self.flush(ops)?;
            }
            let deflate = match open.level {
                Level::Store => self.store.as_mut(),
                Level::Fast => self.fast.as_mut(),
            };
            let deflate = deflate.expect("begun");
            let at = self.buffer.len();
            let room = PIECE.min(zlib_rs::compress_bound(bytes.len()) + 64);
            self.buffer.resize(at + room, 0);
            let (taken, made) = (deflate.total_in(), deflate.total_out());
            let status = deflate.compress(bytes, &mut self.buffer[at..], flush);
            let taken = usize::try_from(deflate.total_in() - taken).expect("within the input");
            let made = usize::try_from(deflate.total_out() - made).expect("within the output");
            self.buffer.truncate(at + made);
            open.crc.update(&self.buffer[at..]);
            bytes = &bytes[taken..];
            match status {
                Ok(Status::StreamEnd) => return Ok(()),
                Ok(_) if !last && bytes.is_empty() && made < room => return Ok(()),
                Ok(_) if taken > 0 || made > 0 => {}
                Ok(_) if !last && bytes.is_empty() => return Ok(()),
                _ => {
                    return Err(SnapshotError::Other {
                        what: "compressing an object",
                        source: "zlib made no progress".into(),
                    });
                }
            }
        }
    }

    /// Ends an entry: the pack has the object now. Returns the bytes it takes.
    pub(crate) fn end(&mut self, open: Open, id: Id) -> u64 {
        self.entries.push(Entry { id, offset: open.start, crc: open.crc.finalize() });
        self.len() - open.start
    }

    /// Forgets an entry that was begun.
    pub(crate) fn abandon(&mut self, open: &Open) {
        // zlib-rs 0.6 keeps an open block over a reset, so a compressor that was stopped half-way is of no more use.
        (self.fast, self.store) = (None, None);
        if let Some(at) = open.start.checked_sub(self.flushed) {
            self.buffer.truncate(usize::try_from(at).expect("within the buffer"));
        } else {
            // What was flushed of it is overwritten, or cut off when the pack is sealed.
            self.buffer.clear();
            self.flushed = open.start;
        }
    }

    /// Takes over an entry as it is stored elsewhere.
    pub(crate) fn raw(&mut self, ops: &Ops, id: Id, crc: u32, bytes: &[u8], first: bool) -> Result<(), SnapshotError> {
        if self.buffer.len() >= BUFFER {
            self.flush(ops)?;
        }
        if first {
            self.entries.push(Entry { id, offset: self.len(), crc });
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Stores an object from `content` if that has the given id and size; false, and nothing written, if not.
    pub(crate) fn take_checked(
        &mut self,
        ops: &Ops,
        kind: Kind,
        id: ObjectId,
        size: u64,
        level: Level,
        content: &mut dyn Read,
    ) -> Result<bool, SnapshotError> {
        let mut open = self.begin(kind, size, level);
        let mut hasher = object_hasher(kind, size);
        let mut piece = vec![0; PIECE];
        let mut total = 0;
        loop {
            match content.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => {
                    total += n as u64;
                    hasher.update(&piece[..n]);
                    if let Err(e) = self.feed(ops, &mut open, &piece[..n], false) {
                        self.abandon(&open);
                        return Err(e);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.abandon(&open);
                    return Ok(false);
                }
            }
        }
        let same = total == size && hasher.try_finalize().is_ok_and(|found| found == id);
        if same {
            self.feed(ops, &mut open, &[], true)?;
            let ObjectId::Sha1(id) = id else { return Ok(false) };
            self.end(open, id);
        } else {
            self.abandon(&open);
        }
        Ok(same)
    }

    /// Takes over everything of another pack that is still in memory.
    pub(crate) fn absorb(&mut self, ops: &Ops, other: &Self) -> Result<(), SnapshotError> {
        if self.buffer.len() >= BUFFER {
            self.flush(ops)?;
        }
        let shift = self.len() - HEADER;
        self.buffer.extend_from_slice(&other.buffer[12..]);
        self.entries.extend(other.entries.iter().map(|e| Entry { offset: e.offset + shift, ..*e }));
        Ok(())
    }

    fn flush(&mut self, ops: &Ops) -> Result<(), SnapshotError> {
        let needed = self.buffer.len() as u64;
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(ops.create(&self.path).map_err(|e| io_error(&self.path, needed, e))?),
        };
        // The buffer is kept until it is written: after an error nothing is lost and the call may be repeated.
        ops.write_at(file, &self.buffer, self.flushed).map_err(|e| io_error(&self.path, needed, e))?;
        self.flushed += needed;
        self.buffer.clear();
        Ok(())
    }

    /// Completes the pack under its temporary name and syncs its data.
    pub(crate) fn seal(mut self, ops: &Ops) -> Result<Sealed, SnapshotError> {
        let path = self.path.clone();
        let fail = |e| io_error(&path, 0, e);
        let count = u32::try_from(self.entries.len())
            .map_err(|e| SnapshotError::Other { what: "counting objects", source: e.into() })?;
        let sum = if self.is_in_memory() {
            self.buffer[8..12].copy_from_slice(&count.to_be_bytes());
            idx::sha1(&self.buffer).map_err(fail)?
        } else {
            self.flush(ops)?;
            let file = self.file.as_ref().expect("not in memory");
            ops.write_at(file, &count.to_be_bytes(), 8).map_err(fail)?;
            // An abandoned entry may have left bytes behind the end.
            file.set_len(self.flushed).map_err(fail)?;
            // The count stands in the first block, so the hash can only be taken now, from the page cache.
            hash_range(file, self.flushed).map_err(fail)?
        };
        self.buffer.extend_from_slice(&sum);
        self.flush(ops)?;
        let file = self.file.as_ref().expect("flushed");
        ops.sync_data(file).map_err(fail)?;
        let idx = idx::encode(&mut self.entries, &sum).map_err(fail)?;
        Ok(Sealed { temporary: self.path, sum, idx, len: self.flushed })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{
        EntryReader,
        tests::{blob, noise},
    };

    /// Content that changes while it is read is abandoned in the middle of a stream. The compressor then kept its open
    /// block over a reset, and the next object of the same pack was stored as rubbish: it has to be made anew.
    #[test]
    fn an_abandoned_entry_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let ops = Ops::default();
        let mut writer = PackWriter::new(dir.path().join("pack"));
        let mut bodies = Vec::new();
        for (n, level) in [Level::Fast, Level::Store].into_iter().cycle().take(40).enumerate() {
            let body = noise(n as u64, 50 + 333 * n);
            let mut open = writer.begin(Kind::Blob, 1 << 20, level);
            writer.feed(&ops, &mut open, &body, false).unwrap();
            writer.abandon(&open);
            let mut open = writer.begin(Kind::Blob, body.len() as u64, level);
            writer.feed(&ops, &mut open, &body, true).unwrap();
            bodies.push((open.start(), body));
            writer.end(open, [0; 20]);
        }
        let sealed = writer.seal(&ops).unwrap();
        let file = Arc::new(File::open(&sealed.temporary).unwrap());
        for (at, body) in bodies {
            let read = EntryReader::new(Arc::clone(&file), at, sealed.len - 20, None).unwrap().whole();
            assert!(read.as_ref().is_ok_and(|r| *r == body), "{} bytes: {:?}", body.len(), read.map(|r| r.len()));
        }
    }

    /// Objects that are framed by hand read back, at every length around a block's.
    #[test]
    fn what_is_only_framed_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let ops = Ops::default();
        let mut writer = PackWriter::new(dir.path().join("pack"));
        let mut bodies = Vec::new();
        for len in [0, 1, 15, 16, 127, 128, 0xfffe, 0xffff, 0x1_0000, 0x1_fffe, 0x1_ffff, 300_000] {
            let body = noise(len as u64, len);
            let ObjectId::Sha1(id) = blob(&body) else { unreachable!() };
            let at = writer.len();
            let taken = writer.put_framed(&ops, Kind::Blob, id, &body).unwrap();
            assert_eq!(taken, writer.len() - at);
            bodies.push((at, id, body));
        }
        let sealed = writer.seal(&ops).unwrap();
        let idx = idx::Idx::from_bytes(sealed.idx).unwrap();
        let file = Arc::new(File::open(&sealed.temporary).unwrap());
        for (at, id, body) in bodies {
            let (offset, crc) = idx.entry(idx.find(&id).unwrap().unwrap()).unwrap();
            assert_eq!(offset, at);
            let read = EntryReader::new(Arc::clone(&file), at, sealed.len - 20, Some(crc)).unwrap().whole();
            assert!(read.is_ok_and(|read| read == body), "{} bytes", body.len());
        }
    }

    /// However content is cut into pieces, and whether or not it compresses, what is read back is what was fed.
    #[test]
    fn any_pieces_at_any_level_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let ops = Ops::default();
        let mut writer = PackWriter::new(dir.path().join("pack"));
        let text: Vec<u8> = (0..40_000u32).flat_map(|k| format!("{} ", k * k % 977).into_bytes()).collect();
        let mut bodies = Vec::new();
        for level in [Level::Store, Level::Fast] {
            for len in [0, 1, 100, 820, 5_000, 70_000, 150_000] {
                for body in [noise(len as u64, len), text[..len].to_vec()] {
                    for piece in [1 << 20, 64 << 10, 8 << 10, 1000] {
                        let mut open = writer.begin(Kind::Blob, len as u64, level);
                        for part in body.chunks(piece) {
                            writer.feed(&ops, &mut open, part, false).unwrap();
                        }
                        writer.feed(&ops, &mut open, &[], true).unwrap();
                        let ObjectId::Sha1(id) = blob(&body) else { unreachable!() };
                        let at = open.start();
                        writer.end(open, id);
                        bodies.push((level, len, piece, at, body.clone()));
                    }
                }
            }
        }
        let sealed = writer.seal(&ops).unwrap();
        let file = Arc::new(File::open(&sealed.temporary).unwrap());
        for (level, len, piece, at, body) in bodies {
            let read = EntryReader::new(Arc::clone(&file), at, sealed.len - 20, None).unwrap().whole();
            assert!(
                read.as_ref().is_ok_and(|r| *r == body),
                "{level:?} {len} in pieces of {piece}: {:?}",
                read.map(|r| r.len())
            );
        }
    }
}
