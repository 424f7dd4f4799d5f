//! Pack indexes (version 2): written, checked, looked up. Nothing here trusts a byte it has not bounded.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
};

use gix::ObjectId;

/// Raw id of an object.
pub(crate) type Id = [u8; 20];

const HEAD: usize = 8;
const FAN: usize = 1024;
const IDS: usize = HEAD + FAN;
const TAIL: usize = 40;
/// Larger indexes are not kept in memory but read where a lookup needs them.
const KEPT_IN_MEMORY: u64 = 4 << 20;
/// Ids read at once when looking up in a file.
const WINDOW: u32 = 200;

/// Where an object lies in its pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: Id,
    pub(crate) offset: u64,
    pub(crate) crc: u32,
}

/// SHA-1 of bytes, as used by trailers; a collision in a trailer is of no interest.
pub(crate) fn sha1(bytes: &[u8]) -> io::Result<Id> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(bytes);
    digest(hasher)
}

/// The end of a hash.
pub(crate) fn digest(hasher: gix::hash::Hasher) -> io::Result<Id> {
    match hasher.try_finalize().map_err(|e| io::Error::other(e.to_string()))? {
        ObjectId::Sha1(id) => Ok(id),
        _ => Err(io::Error::other("not a SHA-1")),
    }
}

/// The index of a pack that holds `entries` and ends in `pack_sum`.
pub(crate) fn encode(entries: &mut [Entry], pack_sum: &Id) -> io::Result<Vec<u8>> {
    entries.sort_unstable_by_key(|e| e.id);
    let mut out = Vec::with_capacity(IDS + 28 * entries.len() + TAIL);
    out.extend_from_slice(b"\xfftOc\0\0\0\x02");
    let mut upto = 0usize;
    for first in 0..=255u8 {
        upto += entries[upto..].iter().take_while(|e| e.id[0] <= first).count();
        out.extend_from_slice(&u32::try_from(upto).map_err(io::Error::other)?.to_be_bytes());
    }
    for entry in &*entries {
        out.extend_from_slice(&entry.id);
    }
    for entry in &*entries {
        out.extend_from_slice(&entry.crc.to_be_bytes());
    }
    let mut far = Vec::new();
    for entry in &*entries {
        let word = match u32::try_from(entry.offset) {
            Ok(near) if near < 1 << 31 => near,
            _ => {
                far.push(entry.offset);
                1 << 31 | u32::try_from(far.len() - 1).map_err(io::Error::other)?
            }
        };
        out.extend_from_slice(&word.to_be_bytes());
    }
    for offset in far {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out.extend_from_slice(pack_sum);
    let sum = sha1(&out)?;
    out.extend_from_slice(&sum);
    Ok(out)
}

/// An opened index.
#[derive(Debug)]
pub(crate) struct Idx {
    bytes: Bytes,
    len: u64,
    fan: Vec<u32>,
    pack_sum: Id,
}

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    File(File),
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |b| u32::from_be_bytes(*b))
}

impl Idx {
    /// Opens an index, checking its shape but not its checksum: that is [`Idx::is_sound`]'s, and costs a full read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        if len > KEPT_IN_MEMORY {
            return Self::of(Bytes::File(file), len);
        }
        let mut all = Vec::new();
        file.read_to_end(&mut all)?;
        Self::from_bytes(all)
    }

    /// Takes an index that is in memory.
    pub(crate) fn from_bytes(all: Vec<u8>) -> io::Result<Self> {
        let len = all.len() as u64;
        Self::of(Bytes::Memory(all), len)
    }

    fn of(bytes: Bytes, len: u64) -> io::Result<Self> {
        let mut idx = Self { bytes, len, fan: Vec::new(), pack_sum: [0; 20] };
        let head = idx.slice(0, IDS)?;
        if head[..HEAD] != *b"\xfftOc\0\0\0\x02" {
            return Err(damaged("not an index of version 2"));
        }
        let fan: Vec<u32> = head[HEAD..].chunks_exact(4).map(word).collect();
        let least = IDS as u64 + 28 * u64::from(fan[255]) + TAIL as u64;
        if !fan.is_sorted() || len < least || !(len - least).is_multiple_of(8) {
            return Err(damaged("an index of the wrong shape"));
        }
        let sum = idx.slice(len - TAIL as u64, 20)?.into_owned();
        idx.pack_sum.copy_from_slice(&sum);
        idx.fan = fan;
        Ok(idx)
    }

    fn slice(&self, at: u64, len: usize) -> io::Result<Cow<'_, [u8]>> {
        match &self.bytes {
            Bytes::Memory(all) => {
                let at = usize::try_from(at).map_err(io::Error::other)?;
                let part = at.checked_add(len).and_then(|end| all.get(at..end));
                part.map(Cow::Borrowed).ok_or_else(|| damaged("an index ends too early"))
            }
            Bytes::File(file) => {
                let mut part = vec![0; len];
                file.read_exact_at(&mut part, at)?;
                Ok(Cow::Owned(part))
            }
        }
    }

    /// All of it, where it was taken from memory.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Memory(all) => Some(all),
            Bytes::File(_) => None,
        }
    }

    /// How many objects it names.
    pub(crate) fn count(&self) -> u32 {
        self.fan[255]
    }

    /// Checksum of the pack that it belongs to.
    pub(crate) fn pack_sum(&self) -> &Id {
        &self.pack_sum
    }

    /// Does its own checksum hold? A torn or zeroed index only makes objects vanish, so nobody else would notice.
    pub(crate) fn is_sound(&self) -> io::Result<bool> {
        let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
        let mut at = 0;
        while at < self.len - 20 {
            let part = self.slice(at, usize::try_from((self.len - 20 - at).min(1 << 16)).expect("at most 64 KiB"))?;
            hasher.update(&part);
            at += part.len() as u64;
        }
        Ok(digest(hasher)?[..] == self.slice(self.len - 20, 20)?[..])
    }

    /// Place of an object among the sorted ids.
    pub(crate) fn find(&self, id: &Id) -> io::Result<Option<u32>> {
        let first = usize::from(id[0]);
        let mut low = if first == 0 { 0 } else { self.fan[first - 1] };
        let mut high = self.fan[first];
        // Ids are uniform: where the next two bytes point to is right but for a few places.
        let guess = u64::from(u16::from_be_bytes([id[1], id[2]]));
        while low < high {
            let (from, to) = if high - low <= WINDOW || matches!(self.bytes, Bytes::Memory(_)) {
                (low, high)
            } else {
                let middle = low + u32::try_from((u64::from(high - low) * guess) >> 16).expect("below high");
                let from = middle.saturating_sub(WINDOW / 2).max(low).min(high - WINDOW);
                (from, from + WINDOW)
            };
            let ids = self.slice(IDS as u64 + 20 * u64::from(from), 20 * (to - from) as usize)?;
            let (ids, _) = ids.as_chunks::<20>();
            match ids.binary_search(id) {
                Ok(at) => return Ok(Some(from + u32::try_from(at).expect("within the window"))),
                Err(0) => high = from,
                Err(at) if at == ids.len() => low = to,
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Offset and checksum of the object at a place.
    pub(crate) fn entry(&self, at: u32) -> io::Result<(u64, u32)> {
        if at >= self.count() {
            return Err(damaged("no such place in the index"));
        }
        let n = u64::from(self.count());
        let table = IDS as u64 + 20 * n;
        let crc = word(&self.slice(table + 4 * u64::from(at), 4)?);
        let near = word(&self.slice(table + 4 * n + 4 * u64::from(at), 4)?);
        if near < 1 << 31 {
            return Ok((u64::from(near), crc));
        }
        let far = table + 8 * n + 8 * u64::from(near & !(1 << 31));
        if far + 8 > self.len - TAIL as u64 {
            return Err(damaged("an offset outside of the index"));
        }
        let bytes = self.slice(far, 8)?;
        Ok((bytes.first_chunk().map_or(0, |b| u64::from_be_bytes(*b)), crc))
    }

    /// Every object, by id.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let n = self.count() as usize;
        let all = match &self.bytes {
            Bytes::Memory(all) => Cow::Borrowed(&all[..]),
            Bytes::File(_) => self.slice(0, usize::try_from(self.len).map_err(io::Error::other)?)?,
        };
        let (ids, rest) = all[IDS..].split_at(20 * n);
        let (crcs, rest) = rest.split_at(4 * n);
        let (near, rest) = rest.split_at(4 * n);
        let (far, _) = rest[..rest.len() - TAIL].as_chunks::<8>();
        let words = crcs.as_chunks::<4>().0.iter().zip(near.as_chunks::<4>().0);
        ids.as_chunks::<20>()
            .0
            .iter()
            .zip(words)
            .map(|(id, (crc, near))| {
                let near = u32::from_be_bytes(*near);
                let offset = if near < 1 << 31 {
                    u64::from(near)
                } else {
                    let bytes = far.get((near & !(1 << 31)) as usize);
                    u64::from_be_bytes(*bytes.ok_or_else(|| damaged("an offset outside of the index"))?)
                };
                Ok(Entry { id: *id, offset, crc: u32::from_be_bytes(*crc) })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(n: u32) -> Vec<Entry> {
        (0..n)
            .map(|k| Entry {
                id: sha1(&k.to_be_bytes()).unwrap(),
                offset: if k % 7 == 3 { (1 << 31) + u64::from(k) * 5 } else { u64::from(k) },
                crc: k,
            })
            .collect()
    }

    #[test]
    fn finds_every_object_in_memory_and_in_a_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        for n in [0, 1, 2, 255, 3_000, 60_000] {
            let mut all = entries(n);
            let bytes = encode(&mut all, &[7; 20]).unwrap();
            let path = dir.path().join(n.to_string());
            std::io::Write::write_all(&mut File::create(&path).unwrap(), &bytes).unwrap();
            let file = Idx::of(Bytes::File(File::open(&path).unwrap()), bytes.len() as u64).unwrap();
            for idx in [Idx::from_bytes(bytes).unwrap(), file, Idx::open(&path).unwrap()] {
                assert!(idx.is_sound().unwrap());
                assert_eq!((idx.count(), idx.pack_sum()), (n, &[7; 20]));
                assert_eq!(idx.entries().unwrap(), all);
                for entry in all.iter().step_by(if n > 10_000 { 17 } else { 1 }) {
                    let at = idx.find(&entry.id).unwrap().expect("in it");
                    assert_eq!(idx.entry(at).unwrap(), (entry.offset, entry.crc));
                }
                for k in 0..500u32 {
                    assert_eq!(idx.find(&sha1(&(k + 1_000_000).to_be_bytes()).unwrap()).unwrap(), None);
                }
            }
        }
    }

    #[test]
    fn a_torn_zeroed_or_flipped_index_is_not_sound_and_never_panics() {
        let bytes = encode(&mut entries(300), &[7; 20]).unwrap();
        let sound = |b: &[u8]| Idx::from_bytes(b.to_vec()).is_ok_and(|i| i.is_sound().unwrap_or(false));
        assert!(sound(&bytes));
        assert!(!sound(&[]) && !sound(&bytes[..bytes.len() / 2]) && !sound(&vec![0; bytes.len()]));
        for at in (0..bytes.len()).step_by(13) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x80;
            assert!(!sound(&bad), "{at}");
            if let Ok(idx) = Idx::from_bytes(bad) {
                // errors or nonsense, but no panic
                drop(idx.entries());
                for k in 0..300u32 {
                    drop(idx.find(&sha1(&k.to_be_bytes()).unwrap()).map(|at| at.map(|at| idx.entry(at))));
                }
            }
        }
    }
}
