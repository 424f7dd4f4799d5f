//! Objects that a pack holds as deltas: what git packs so, and we never do.

use std::{io, sync::Arc};

use gix::objs::Kind;

use super::{
    idx::Id,
    pack::{Base, EntryKind, Pack, object_hasher},
};

/// Longer chains are nothing that git makes.
const DEEPEST: usize = 4096;
/// An object that announces no more than this is made without asking whether it can be true.
const ANNOUNCED: u64 = 64 << 20;
/// Bytes that one byte of a pack may become: deflate makes 1,032 of it at most, and deltas of such content some more.
const DENSEST: u64 = 8192;

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The object `id`, a delta at `offset` of the pack: kind and content, which is hashed.
///
/// # Errors
/// When anything that it rests on cannot be read, or what comes out has another id.
pub(crate) fn resolve(pack: &Arc<Pack>, offset: u64, id: &Id) -> io::Result<(Kind, Vec<u8>)> {
    let mut deltas = Vec::new();
    let mut at = offset;
    let (kind, mut body) = loop {
        let entry = pack.entry(at, None)?;
        if entry.size() > ANNOUNCED.max(pack.len().saturating_mul(DENSEST)) {
            return Err(damaged("an entry announces more than there can be"));
        }
        if let EntryKind::Whole(kind) = entry.kind() {
            break (kind, entry.whole()?);
        }
        if deltas.len() == DEEPEST {
            return Err(damaged("a chain of deltas without an end"));
        }
        let (base, delta) = entry.delta()?;
        deltas.push(delta);
        at = match base {
            Base::At(at) => at,
            Base::Named(id) => pack.find(&id)?.ok_or_else(|| damaged("a delta on an object that is elsewhere"))?.0,
        };
    };
    while let Some(delta) = deltas.pop() {
        body = apply(&body, &delta, pack.len())?;
    }
    let mut hasher = object_hasher(kind, body.len() as u64);
    hasher.update(&body);
    match super::idx::digest(hasher) {
        Ok(found) if found == *id => Ok((kind, body)),
        _ => Err(damaged("the content of an entry has another id")),
    }
}

/// Makes an object of its base and a delta, which lies in a pack of `pack` bytes.
fn apply(base: &[u8], delta: &[u8], pack: u64) -> io::Result<Vec<u8>> {
    let mut rest = delta.iter();
    let from = number(&mut rest)?;
    let size = number(&mut rest)?;
    if from != base.len() as u64 {
        return Err(damaged("a delta on another base"));
    }
    if size > ANNOUNCED.max(pack.saturating_mul(DENSEST)) {
        return Err(damaged("a delta announces more than there can be"));
    }
    let size = usize::try_from(size).map_err(io::Error::other)?;
    let mut out = Vec::with_capacity(size.min(1 << 20));
    while let Some(&code) = rest.next() {
        let part = if code & 0x80 != 0 {
            // Copied from the base: which bytes of place and length follow is in the code.
            let mut numbers = [0_usize; 2];
            for bit in 0..7 {
                if code & (1 << bit) != 0 {
                    let byte = usize::from(*rest.next().ok_or_else(|| damaged("a delta is cut short"))?);
                    numbers[usize::from(bit >= 4)] |= byte << (8 * (bit % 4));
                }
            }
            let [place, len] = numbers;
            let len = if len == 0 { 0x10000 } else { len };
            base.get(place..place + len)
        } else {
            let all = rest.as_slice();
            let len = usize::from(code);
            rest = all.get(len..).unwrap_or_default().iter();
            all.get(..len).filter(|part| !part.is_empty())
        };
        let part = part.ok_or_else(|| damaged("a delta copies what is not there"))?;
        if out.len() + part.len() > size {
            return Err(damaged("a delta makes more than announced"));
        }
        out.extend_from_slice(part);
    }
    if out.len() == size { Ok(out) } else { Err(damaged("a delta makes less than announced")) }
}

/// A size, seven bits a byte, the lowest first.
pub(super) fn number(bytes: &mut std::slice::Iter<'_, u8>) -> io::Result<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let byte = *bytes.next().ok_or_else(|| damaged("a delta is cut short"))?;
        if shift > 56 {
            return Err(damaged("a delta announces too much"));
        }
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_copies_and_inserts() {
        let base: Vec<u8> = (0..70_000_u32).flat_map(u32::to_le_bytes).collect();
        let size = |n: u32| {
            let mut out = Vec::new();
            let mut left = n;
            loop {
                let low = u8::try_from(left & 0x7f).unwrap();
                left >>= 7;
                out.push(if left > 0 { low | 0x80 } else { low });
                if left == 0 {
                    return out;
                }
            }
        };
        // Four bytes at 0x1_0203, 64 KiB from the start, three of its own.
        let codes = [&[0x97, 3, 2, 1, 4][..], &[0x80], &[3, b'a', b'b', b'c']].concat();
        let made = [&base[0x1_0203..0x1_0207], &base[..0x1_0000], b"abc"].concat();
        let whole = [size(280_000), size(u32::try_from(made.len()).unwrap()), codes].concat();
        assert_eq!(apply(&base, &whole, 1 << 20).unwrap(), made);
        assert!(apply(&base[1..], &whole, 1 << 20).is_err());
        for n in 0..whole.len() {
            assert!(apply(&base, &whole[..n], 1 << 20).is_err(), "{n}");
            for bit in 0..8 {
                let mut bad = whole.clone();
                bad[n] ^= 1 << bit;
                // Wrong or refused, but no panic and no more than was announced.
                drop(apply(&base, &bad, 1 << 20));
            }
        }
        let huge = [size(280_000), vec![0xff; 8], vec![1]].concat();
        assert!(apply(&base, &huge, 1 << 10).is_err());
    }
}
