//! Joining the packs of small captures, so that a lookup asks few and a block of disk is shared by many.
//!
//! Every object is copied, dead ones included: no tree is read, and nothing that anybody knows of the store becomes
//! untrue. So the epoch stays, and with it the change-detection cache. A handle that has an old pack in its list finds
//! the object when it looks again, which every read does before it gives up.

use std::{collections::HashSet, io, os::unix::fs::FileExt, path::PathBuf, sync::Arc};

use checkpoint_core::{Progress, SnapshotError};

use super::gc::{GROUP, PIECE, Source, crc_of, replace, sized, tick};
use crate::store::{HEADER, Pack, Store, at, io_error};

/// So many packs that are not big are left alone. With the big ones, fewer than [`BIG_SHARE`], that is below 50.
const MOST: usize = 32;
/// A pack that is bigger than this, and than its share of the store, stays as it is.
const BIG: u64 = 64 << 20;
const BIG_SHARE: u64 = 16;
/// A pack stays as it is while it is so many times as big as all smaller ones together: so each object is copied a
/// number of times that grows with the logarithm of the store.
const RATIO: u64 = 2;

/// True when [`consolidate`] has work, as far as this handle knows the store.
pub(crate) fn is_scattered(store: &Store) -> Result<bool, SnapshotError> {
    Ok(!due(&lengths(&candidates(store, &HashSet::new())?)).is_empty())
}

/// Joins small packs until there are few. The caller holds the exclusive lock. Returns how many packs went.
///
/// A pack that is damaged, linked or not wholly accounted for by its index is left alone.
pub(crate) fn consolidate(store: &Store, progress: &dyn Progress) -> Result<u64, SnapshotError> {
    let mut gone = 0;
    let mut unsound = HashSet::new();
    store.refresh()?;
    loop {
        let packs = candidates(store, &unsound)?;
        let due = due(&lengths(&packs));
        if due.is_empty() {
            return Ok(gone);
        }
        tick(progress, "consolidating", gone, None)?;
        let mut group = Vec::new();
        let mut taken = HashSet::new();
        for pack in &packs[due] {
            match whole(pack) {
                Ok(Some(mut kept)) => {
                    // Two captures at once, or a stop half-way, can leave an object here twice.
                    kept.retain(|(entry, _)| taken.insert(entry.id));
                    let bytes = kept.iter().map(|(_, n)| n).sum();
                    group.push(Source { pack: Arc::clone(pack), kept, bytes, linked: false, keep_as_is: false });
                }
                Ok(None) => drop(unsound.insert(pack.path().to_owned())),
                Err(source) => return Err(io_error(pack.path(), 0, source)),
            }
        }
        if group.len() > 1 {
            let before = store.pack_count()?;
            has_room(store, group.iter().map(|source| source.bytes).sum())?;
            let joined = replace(store, &group, &mut || Ok(()));
            // Also after an error: the handle's list has to be what is there now.
            store.refresh()?;
            joined?;
            let went = before.saturating_sub(store.pack_count()?);
            if went == 0 {
                return Ok(gone);
            }
            gone += went as u64;
        } else if unsound.is_empty() {
            return Ok(gone);
        }
    }
}

/// Packs that may be joined, smallest first.
fn candidates(store: &Store, unsound: &HashSet<PathBuf>) -> Result<Vec<Arc<Pack>>, SnapshotError> {
    let ours = |pack: &&Arc<Pack>| {
        !pack.is_damaged() && !pack.is_linked() && !pack.is_seeded() && !unsound.contains(pack.path())
    };
    let mut packs: Vec<_> = store.packs()?.iter().filter(ours).cloned().collect();
    packs.sort_by(|a, b| (a.len(), a.path()).cmp(&(b.len(), b.path())));
    Ok(packs)
}

fn lengths(packs: &[Arc<Pack>]) -> Vec<u64> {
    packs.iter().map(|pack| pack.len()).collect()
}

/// Which packs, by length and smallest first, become one: a range from the start, empty when all may stay.
fn due(lengths: &[u64]) -> std::ops::Range<usize> {
    let total: u64 = lengths.iter().sum();
    let big = BIG.max(total / BIG_SHARE);
    let small = lengths.partition_point(|len| *len <= big);
    if small <= MOST {
        return 0..0;
    }
    let mut below: u64 = lengths[..small].iter().sum();
    let mut end = small;
    // Those at the upper end stay that are big beside all below them, but never so many that there is soon work again.
    while end > small - MOST / 2 && lengths[end - 1] >= RATIO.saturating_mul(below - lengths[end - 1]) {
        end -= 1;
        below -= lengths[end];
    }
    // The room that is needed is bounded, as a collection's is.
    while end > 2 && below > GROUP {
        end -= 1;
        below -= lengths[end];
    }
    0..end
}

/// The entries of a pack, if its index accounts for all of it and every stored byte is as it was written.
fn whole(pack: &Pack) -> io::Result<Option<Vec<(crate::store::Entry, u64)>>> {
    let file = pack.file()?;
    let mut count = [0; 4];
    file.read_exact_at(&mut count, HEADER - 4)?;
    if u32::from_be_bytes(count) != pack.idx().count() || !pack.idx().is_sound()? {
        return Ok(None);
    }
    let entries = sized(pack)?;
    let mut piece = vec![0; PIECE];
    let mut next = HEADER;
    for (entry, len) in &entries {
        let as_written = crc_of(&file, entry.offset, *len, &mut piece).is_ok_and(|crc| crc == entry.crc);
        if entry.offset != next || !as_written {
            return Ok(None);
        }
        next += len;
    }
    Ok((next == pack.end()).then_some(entries))
}

/// Fails early where the copy would come near to filling the disk.
fn has_room(store: &Store, bytes: u64) -> Result<(), SnapshotError> {
    let dir = store.pack_dir();
    let disk = rustix::fs::statvfs(dir).map_err(|errno| at(dir)(errno.into()))?;
    let needed = bytes.saturating_mul(2);
    if disk.f_bavail.saturating_mul(disk.f_frsize) < needed { Err(SnapshotError::NoSpace { needed }) } else { Ok(()) }
}

#[cfg(test)]
#[path = "consolidate_tests.rs"]
mod tests;
