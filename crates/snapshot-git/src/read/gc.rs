//! Garbage collection: what is dead goes, what lives is never at risk.
//!
//! A pack is immutable. One that holds dead objects is replaced: its survivors are copied as they are stored into a new
//! pack, that pack and the directory are synced, the epoch is bumped, and only then is the old one unlinked. Packs are
//! replaced in groups of bounded size, so the store never needs room for itself twice.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use checkpoint_core::{GcReport, LiveObjects, Progress, SnapshotError};
use gix::{ObjectId, objs::tree::EntryKind as TreeEntry};

use super::node::entries;
use crate::store::{
    Entry, EntryKind, Id, Level, Pack, PackWriter, Store, TEMPORARY, TRAILER, at, io_error, publish, resolve,
    temporary, to_gix,
};

/// More packs than this are merged, since every lookup asks each.
const MOST_PACKS: usize = 50;
/// Packs below this size are merged first.
const SMALL: u64 = 16 << 20;
/// Survivors that one new pack takes, and so the room a collection needs.
pub(super) const GROUP: u64 = 128 << 20;
pub(super) const PIECE: usize = 256 << 10;

/// Removes what `live` does not reach and repacks the rest. The caller holds the exclusive lock.
///
/// `bump` moves the store's epoch on, synced; it is called once, before the first removal, and not at all when nothing
/// is removed. A tree of `live` that is missing or damaged fails the collection before anything is touched. A blob that
/// is missing or damaged cannot be saved, but then packs that are damaged are left where they are. `dry_run` reports
/// the same numbers and writes nothing. Stopped by `progress`, it leaves a sound store that is only partly collected.
pub(crate) fn gc(
    store: &Store,
    live: &LiveObjects,
    dry_run: bool,
    progress: &dyn Progress,
    bump: &dyn Fn() -> Result<(), SnapshotError>,
) -> Result<GcReport, SnapshotError> {
    // Nothing is thrown away on the word of an index that nobody has checked.
    store.check_indexes()?;
    let live = mark(store, live, progress)?;
    let plan = Plan::make(store, &live)?;
    if !dry_run {
        plan.carry_out(store, progress, bump)?;
    }
    Ok(plan.report)
}

/// The entries of a pack by offset, each with the bytes that it takes.
pub(super) fn sized(pack: &Pack) -> io::Result<Vec<(Entry, u64)>> {
    let mut entries = pack.idx().entries()?;
    entries.sort_unstable_by_key(|e| e.offset);
    let ends: Vec<u64> = entries.iter().skip(1).map(|e| e.offset).chain([pack.end()]).collect();
    Ok(entries.into_iter().zip(ends).map(|(e, end)| (e, end.saturating_sub(e.offset))).collect())
}

/// Ids of everything that is reachable.
fn mark(store: &Store, live: &LiveObjects, progress: &dyn Progress) -> Result<HashSet<Id>, SnapshotError> {
    let mut seen: HashSet<Id> = live.blobs.iter().map(|b| *b.as_bytes()).collect();
    let roots = live.snapshots.iter().flat_map(|s| [s.tree, s.meta]);
    let mut stack: Vec<ObjectId> = roots.map(|id| to_gix(&id)).collect();
    while let Some(tree) = stack.pop() {
        if !seen.insert(key(&tree)) {
            continue;
        }
        if seen.len().is_multiple_of(1024) {
            tick(progress, "marking", seen.len() as u64, None)?;
        }
        for (_, kind, id) in entries(store, &tree)? {
            match kind {
                TreeEntry::Tree => stack.push(id),
                TreeEntry::Commit => {}
                _ => drop(seen.insert(key(&id))),
            }
        }
    }
    Ok(seen)
}

fn key(id: &ObjectId) -> Id {
    id.as_slice().try_into().unwrap_or([0; 20])
}

pub(super) fn tick(
    progress: &dyn Progress,
    what: &'static str,
    done: u64,
    total: Option<u64>,
) -> Result<(), SnapshotError> {
    if progress.tick(what, done, total).is_break() { Err(SnapshotError::Interrupted) } else { Ok(()) }
}

/// A pack and what of it has to be kept.
pub(super) struct Source {
    pub(super) pack: Arc<Pack>,
    /// Entries that live here, by offset, with the bytes each takes.
    pub(super) kept: Vec<(Entry, u64)>,
    pub(super) bytes: u64,
    /// Hard-linked from elsewhere: its bytes are not ours.
    pub(super) linked: bool,
    pub(super) keep_as_is: bool,
}

impl Source {
    /// Disk bytes of the pack and its index, if they are ours.
    fn own_bytes(&self) -> u64 {
        if self.linked { 0 } else { self.pack.len() + idx_len(&self.pack.path().with_extension("idx")) }
    }
}

/// All ids, and those that more than one pack has: two captures at once can do that.
fn stored_ids(packs: &[Arc<Pack>]) -> Result<(HashSet<Id>, HashSet<Id>), SnapshotError> {
    let (mut once, mut twice) = (HashSet::new(), HashSet::new());
    for pack in packs {
        for entry in pack.idx().entries().map_err(at(pack.path()))? {
            if !once.insert(entry.id) {
                twice.insert(entry.id);
            }
        }
    }
    Ok((once, twice))
}

fn idx_len(path: &Path) -> u64 {
    path.metadata().map_or(0, |m| m.len())
}

#[derive(Default)]
struct Plan {
    /// Each becomes one new pack, or none when nothing of it is kept.
    groups: Vec<Vec<Source>>,
    /// Left-overs to unlink.
    sweep: Vec<PathBuf>,
    report: GcReport,
}

impl Plan {
    fn make(store: &Store, live: &HashSet<Id>) -> Result<Self, SnapshotError> {
        let mut plan = Self::default();
        let mut missing = live.clone();
        let packs = store.packs()?;
        missing.remove(&key(&ObjectId::empty_tree(gix::hash::Kind::Sha1)));
        let mut sources = Vec::new();
        // Damaged packs and links come last: what is also elsewhere is not kept for their sake.
        let mut order: Vec<(bool, bool, &Arc<Pack>)> = Vec::new();
        for pack in packs.iter() {
            let linked = pack.path().metadata().map_err(at(pack.path()))?.nlink() > 1;
            order.push((pack.is_damaged(), linked, pack));
        }
        order.sort_by_key(|(damaged, linked, pack)| {
            (*damaged, *linked || pack.is_seeded(), std::cmp::Reverse(pack.idx().count()))
        });
        let (all, twice) = stored_ids(&packs)?;
        for (damaged, linked, pack) in order {
            let entries = sized(pack).map_err(at(pack.path()))?;
            let file = pack.file().map_err(at(pack.path()))?;
            let mut piece = vec![0; PIECE];
            let count = entries.len();
            // Of an object that is here twice, the copy that stays must be the one that is sound.
            let mut sound = |e: &Entry, len| {
                !twice.contains(&e.id) || crc_of(&file, e.offset, len, &mut piece).is_ok_and(|crc| crc == e.crc)
            };
            let mut kept = entries;
            kept.retain(|(e, len)| missing.contains(&e.id) && sound(e, *len) && missing.remove(&e.id));
            let whole = kept.len() == count;
            let bytes = kept.iter().map(|(_, n)| n).sum();
            let keep_as_is = whole && !damaged && !linked && !pack.is_seeded();
            sources.push(Source { pack: Arc::clone(pack), kept, bytes, linked, keep_as_is });
        }
        if !missing.is_empty() {
            // Whatever is lost may still be in a pack that cannot be read now: leave that to a repair.
            for source in &mut sources {
                let has_lost = |id: &Id| source.pack.find(id).is_ok_and(|found| found.is_some());
                source.keep_as_is |= source.pack.is_damaged() || missing.iter().any(has_lost);
            }
        }
        plan.report.left_damaged =
            sources.iter().filter(|source| source.keep_as_is && source.pack.is_damaged()).count() as u64;
        plan.report.kept = all.iter().filter(|id| live.contains(*id)).count() as u64;
        plan.report.dropped = all.len() as u64 - plan.report.kept;
        merge_many(&mut sources);
        let damaged_too = missing.is_empty();
        plan.find_leftovers(store, &packs, damaged_too)?;
        let (mut freed, mut needed) = (0u64, 0u64);
        for path in &plan.sweep {
            freed += idx_len(path);
        }
        let mut group: Vec<Source> = Vec::new();
        // Small ones together; a big one alone.
        sources.retain(|s| !s.keep_as_is);
        sources.sort_by_key(|s| s.bytes);
        let mut dead_too = true;
        for source in sources {
            if source.pack.is_damaged() {
                plan.report.swept += 1;
            }
            freed += source.own_bytes();
            let so_far: u64 = group.iter().map(|s| s.bytes).sum();
            // What is dead as a whole goes first: that needs no room, and makes some.
            let first_living = std::mem::replace(&mut dead_too, source.bytes == 0) && source.bytes > 0;
            if !group.is_empty() && (first_living || so_far + source.bytes > GROUP) {
                plan.groups.push(std::mem::take(&mut group));
            }
            group.push(source);
        }
        if !group.is_empty() {
            plan.groups.push(group);
        }
        for group in &plan.groups {
            needed += new_pack_bytes(group);
        }
        plan.report.freed_bytes = freed.saturating_sub(needed);
        Ok(plan)
    }

    /// Temporaries, indexes without a pack, and packs of which nothing can be read.
    fn find_leftovers(&mut self, store: &Store, packs: &[Arc<Pack>], damaged_too: bool) -> Result<(), SnapshotError> {
        let known: HashSet<&Path> = packs.iter().map(|p| p.path()).collect();
        for dir in [store.dir(), store.pack_dir()] {
            for entry in fs::read_dir(dir).map_err(at(dir))? {
                let path = entry.map_err(at(dir))?.path();
                let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                let packed = dir == store.pack_dir() && name.starts_with("pack-");
                // The second kind is what a git that somebody ran here has left.
                let temporary = name.starts_with(TEMPORARY) || name.starts_with("tmp_");
                let ends_in = |ending| path.extension().is_some_and(|e| e == ending);
                let torn = packed && ends_in("pack") && !known.contains(&*path);
                let orphan = packed && ends_in("idx") && !path.with_extension("pack").exists();
                if temporary || orphan || (torn && damaged_too) {
                    self.sweep.push(path);
                } else if torn {
                    self.report.left_damaged += 1;
                }
            }
        }
        self.sweep.sort();
        self.report.swept += self.sweep.len() as u64;
        Ok(())
    }

    fn carry_out(
        &self,
        store: &Store,
        progress: &dyn Progress,
        bump: &dyn Fn() -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        if self.groups.is_empty() && self.sweep.is_empty() {
            return Ok(());
        }
        let total = self.groups.len() as u64;
        let mut bumped = false;
        let mut bump_once = || {
            if std::mem::replace(&mut bumped, true) { Ok(()) } else { bump() }
        };
        let mut result = Ok(());
        for (n, group) in self.groups.iter().enumerate() {
            result = tick(progress, "collecting", n as u64, Some(total))
                .and_then(|()| replace(store, group, &mut bump_once));
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() {
            result = self.sweep.iter().try_for_each(|path| {
                bump_once()?;
                store.ops().remove(path).map_err(at(path))
            });
        }
        // Also after an error: the handle's list has to be what is there now.
        store.refresh()?;
        result?;
        // What was purged shall not come back after a power loss.
        store.sync_directory()
    }
}

/// With too many packs left, the smallest go into the groups as well.
fn merge_many(sources: &mut [Source]) {
    let mut whole: Vec<&mut Source> = sources.iter_mut().filter(|s| s.keep_as_is && !s.pack.is_damaged()).collect();
    if whole.len() <= MOST_PACKS {
        return;
    }
    whole.sort_by_key(|s| s.bytes);
    let too_many = whole.len() - MOST_PACKS / 2;
    for (n, source) in whole.into_iter().enumerate() {
        if n < too_many || source.bytes < SMALL {
            source.keep_as_is = false;
        }
    }
}

/// Length of the pack and index that take a group's survivors.
fn new_pack_bytes(group: &[Source]) -> u64 {
    let objects: u64 = group.iter().map(|s| s.kept.len() as u64).sum();
    let bytes: u64 = group.iter().map(|s| s.bytes).sum();
    if objects == 0 { 0 } else { 12 + bytes + TRAILER + 8 + 1024 + 28 * objects + 40 }
}

/// Copies what is kept of a group into a new pack, makes that durable, and removes the old packs.
pub(super) fn replace(
    store: &Store,
    group: &[Source],
    bump: &mut dyn FnMut() -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    let ops = store.ops();
    let mut writer = PackWriter::new(temporary(store.pack_dir(), ".pack"));
    let path = writer.path().to_owned();
    let mut spared: HashSet<&Path> = HashSet::new();
    let copied = group.iter().try_for_each(|source| {
        if !copy(store, source, &mut writer)? {
            spared.insert(source.pack.path());
        }
        Ok(())
    });
    if let Err(e) = copied {
        drop(fs::remove_file(&path));
        return Err(e);
    }
    let mut made = None;
    if !writer.is_empty() {
        let sealed = writer.seal(ops).inspect_err(|_| drop(fs::remove_file(&path)))?;
        made = Some(store.pack_dir().join(format!("pack-{}.pack", ObjectId::Sha1(sealed.sum))));
        publish(store, vec![sealed])?;
        store.sync_directory()?;
    }
    for source in group {
        let old = source.pack.path();
        // A pack copied whole is its own successor, by name.
        if spared.contains(old) || made.as_deref() == Some(old) {
            continue;
        }
        bump()?;
        // The index first: a pack without one is only read again, an index without a pack promises what is gone.
        let idx = old.with_extension("idx");
        ops.remove(&idx).map_err(at(&idx))?;
        ops.remove(old).map_err(at(old))?;
        for companion in ["keep", "rev", "bitmap", "mtimes"] {
            let companion = old.with_extension(companion);
            if companion.exists() {
                ops.remove(&companion).map_err(at(&companion))?;
            }
        }
    }
    Ok(())
}

/// Copies the kept entries of one pack. False when one of them cannot be read anywhere: then the pack has to stay.
fn copy(store: &Store, source: &Source, writer: &mut PackWriter) -> Result<bool, SnapshotError> {
    let path = source.pack.path();
    let file = source.pack.file().map_err(at(path))?;
    let mut piece = vec![0; PIECE];
    let mut complete = true;
    for (entry, len) in &source.kept {
        let whole = source.pack.entry(entry.offset, None).is_ok_and(|e| matches!(e.kind(), EntryKind::Whole(_)));
        // What becomes ours is believed from then on, so it is hashed now.
        let whole = whole && (!source.pack.is_seeded() || has_its_id(&source.pack, entry));
        if whole && crc_of(&file, entry.offset, *len, &mut piece).is_ok_and(|crc| crc == entry.crc) {
            let mut at = 0;
            while at < *len {
                let n = usize::try_from((*len - at).min(PIECE as u64)).expect("at most a piece");
                file.read_exact_at(&mut piece[..n], entry.offset + at).map_err(|e| io_error(path, 0, e))?;
                writer.raw(store.ops(), entry.id, entry.crc, &piece[..n], at == 0)?;
                at += n as u64;
            }
            continue;
        }
        // A delta of a linked pack, or damaged here: take it from wherever it can be read, and hash it.
        complete &= re_encode(store, &ObjectId::Sha1(entry.id), writer)?;
    }
    Ok(complete)
}

/// Reads an object to its end: has it the id that the index gives it?
fn has_its_id(pack: &Pack, entry: &Entry) -> bool {
    let read =
        pack.entry(entry.offset, None).and_then(|found| io::copy(&mut found.expecting(&entry.id), &mut io::sink()));
    read.is_ok()
}

pub(super) fn crc_of(file: &fs::File, offset: u64, len: u64, piece: &mut [u8]) -> io::Result<u32> {
    let mut crc = crc32fast::Hasher::new();
    let mut at = 0;
    while at < len {
        let n = usize::try_from((len - at).min(piece.len() as u64)).expect("at most a piece");
        file.read_exact_at(&mut piece[..n], offset + at)?;
        crc.update(&piece[..n]);
        at += n as u64;
    }
    Ok(crc.finalize())
}

/// Stores an object anew from any sound copy; false when there is none.
fn re_encode(store: &Store, id: &ObjectId, writer: &mut PackWriter) -> Result<bool, SnapshotError> {
    for pack in store.packs()?.iter() {
        let Ok(Some((offset, _))) = pack.find(&key(id)) else { continue };
        let Ok(mut entry) = pack.entry(offset, None) else { continue };
        if let EntryKind::Whole(kind) = entry.kind() {
            let size = entry.size();
            if writer.take_checked(store.ops(), kind, *id, size, Level::Fast, &mut entry)? {
                return Ok(true);
            }
        }
    }
    let resolved = store.packs()?.iter().find_map(|pack| {
        let (offset, _) = pack.find(&key(id)).ok()??;
        resolve(pack, offset, &key(id)).ok()
    });
    let found = match resolved {
        Some(found) => Ok(Some(found)),
        None => store.foreign(id),
    };
    let (kind, body) = match found {
        Ok(Some(found)) => found,
        Ok(None) | Err(SnapshotError::Missing { .. } | SnapshotError::Damaged { .. }) => return Ok(false),
        Err(e) => return Err(e),
    };
    writer.take_checked(store.ops(), kind, *id, body.len() as u64, Level::Fast, &mut &body[..])
}
