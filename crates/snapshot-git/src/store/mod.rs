//! The private object store: packs of our own, readable by plain git, durable when we say so.
//!
//! Every object is found through the indexes of `objects/pack` and read by positioned reads, deltas in linked
//! packs too; gix is asked only for loose objects, which we never write.

mod batch;
mod blobs;
mod bridge;
mod delta;
mod idx;
mod layout;
mod ops;
mod pack;
mod soundness;
mod writer;

use std::{
    collections::{HashMap, VecDeque},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use checkpoint_core::SnapshotError;
use gix::{
    ObjectId,
    objs::{Find, Kind},
};

pub(crate) use batch::publish;
pub(crate) use batch::{Batch, Worker};
pub(crate) use bridge::{BIGGEST_INDEX, Candidate, Vetted, Wanted};
pub(crate) use delta::resolve;
use idx::Idx;
pub(crate) use idx::{Entry, Id};
pub(crate) use layout::{TEMPORARY, temporary};
pub use ops::{Fault, Faults};
pub(crate) use ops::{Ops, at, io_error};
use pack::scan;
pub(crate) use pack::{EntryKind, EntryReader, HEADER, Pack, TRAILER, object_hasher};
pub(crate) use writer::{Level, PackWriter};

/// Blobs up to this size are read whole when they are opened.
const READ_AHEAD: u64 = 1 << 20;
/// Dry captures whose trees stay readable; the oldest is forgotten first.
const OVERLAYS: usize = 8;

/// One workspace's object database (design § 4): a bare git directory with packs only.
///
/// Shared between threads by reference. Another process's packs are seen after [`Store::refresh`], and by any read
/// that would otherwise fail.
pub(crate) struct Store {
    dir: PathBuf,
    pack_dir: PathBuf,
    packs: RwLock<Option<Packs>>,
    /// Pack files kept open.
    open: Arc<AtomicUsize>,
    overlay: RwLock<VecDeque<Overlay>>,
    ops: Ops,
    /// Set when a directory could not be synced: what is durable is not known any more.
    poisoned: AtomicBool,
    /// Set when this handle has checked every index.
    checked: Mutex<bool>,
    foreign: OnceLock<Arc<gix::odb::Store>>,
}

type Packs = Arc<Vec<Arc<Pack>>>;
/// Trees and meta blobs of a dry capture.
type Overlay = HashMap<Id, (Kind, Vec<u8>)>;

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// An object that announces no more than this is read without asking whether it can be true.
const ANNOUNCED: u64 = 64 << 20;

/// Bytes that one stored byte may become: deflate makes 1,032 of it at most, and deltas of such content some more.
const DENSEST: u64 = 8192;

/// The id as the core has it.
pub(crate) fn to_core(id: &ObjectId) -> checkpoint_core::ObjectId {
    checkpoint_core::ObjectId::from_bytes(raw(id))
}

/// The id as gix has it.
pub(crate) fn to_gix(id: &checkpoint_core::ObjectId) -> ObjectId {
    ObjectId::Sha1(*id.as_bytes())
}

fn raw(id: &ObjectId) -> Id {
    match id {
        ObjectId::Sha1(bytes) => *bytes,
        // A sha256 repository is never seeded (design § 4), so such an id names nothing here.
        _ => [0xff; 20],
    }
}

/// The id of an object. A detected half of a SHA-1 collision is an error, never an id.
pub(crate) fn object_id(kind: Kind, body: &[u8]) -> Result<ObjectId, SnapshotError> {
    gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, body).map_err(|_| SnapshotError::Collision)
}

impl Store {
    /// Opens the store at `dir` (`…/workspaces/<id>/git`), creating it owner-only when it is not there.
    ///
    /// The first opening after a start of the machine checks every index and remakes those that a power loss tore.
    pub(crate) fn open(dir: &Path) -> Result<Self, SnapshotError> {
        let ops = Ops::default();
        layout::ensure(dir, &ops)?;
        let store = Self {
            dir: dir.to_owned(),
            pack_dir: layout::pack_dir(dir),
            packs: RwLock::new(None),
            open: Arc::default(),
            overlay: RwLock::default(),
            ops,
            poisoned: AtomicBool::new(false),
            checked: Mutex::new(false),
            foreign: OnceLock::new(),
        };
        if !layout::is_of_this_boot(dir) {
            store.check_indexes()?;
            layout::stamp_boot(dir, &store.ops);
        }
        Ok(store)
    }

    /// The git directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the packs are.
    pub(crate) fn pack_dir(&self) -> &Path {
        &self.pack_dir
    }

    /// Does and counts this store's disk operations.
    pub(crate) fn ops(&self) -> &Ops {
        &self.ops
    }

    /// Syncs made through this handle, of files and directories: a fact that tests and benchmarks hold us to.
    pub(crate) fn syncs(&self) -> u64 {
        self.ops.syncs()
    }

    /// Looks for packs that other processes added or removed. Call once per capture, after taking the lock.
    pub(crate) fn refresh(&self) -> Result<(), SnapshotError> {
        self.load(false).map(drop)
    }

    /// The packs, read from disk at first use.
    pub(crate) fn packs(&self) -> Result<Packs, SnapshotError> {
        if let Some(packs) = &*self.packs.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(packs));
        }
        self.load(false)
    }

    /// How many packs there are.
    pub(crate) fn pack_count(&self) -> Result<usize, SnapshotError> {
        Ok(self.packs()?.len())
    }

    /// Reads the list of packs again. `verify` also reads every index through and remakes the unsound.
    fn load(&self, verify: bool) -> Result<Packs, SnapshotError> {
        let mut held = self.packs.write().unwrap_or_else(PoisonError::into_inner);
        let mut known: HashMap<PathBuf, Arc<Pack>> = match &*held {
            Some(packs) if !verify => packs.iter().map(|p| (p.path().to_owned(), Arc::clone(p))).collect(),
            _ => HashMap::new(),
        };
        let mut packs = Vec::new();
        for entry in fs::read_dir(&self.pack_dir).map_err(at(&self.pack_dir))? {
            let path = entry.map_err(at(&self.pack_dir))?.path();
            if path.extension().is_none_or(|e| e != "pack") || !is_pack_name(&path) {
                continue;
            }
            if let Some(pack) = known.remove(&path) {
                packs.push(pack);
                continue;
            }
            match self.load_pack(&path, verify) {
                Ok(Some(pack)) => packs.push(Arc::new(pack)),
                Ok(None) => {}
                // Somebody with the exclusive lock has removed it meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(at(&path)(e)),
            }
        }
        // Big packs answer most questions; those that nobody relies on come last.
        packs.sort_by_key(|p| (p.is_damaged(), std::cmp::Reverse(p.idx().count())));
        let packs = Arc::new(packs);
        *held = Some(Arc::clone(&packs));
        Ok(packs)
    }

    fn load_pack(&self, path: &Path, verify: bool) -> io::Result<Option<Pack>> {
        let idx_path = path.with_extension("idx");
        let mut hints = Vec::new();
        if let Ok(idx) = Idx::open(&idx_path) {
            if !verify || (idx.is_sound().unwrap_or(false) && belongs(&idx, path)?) {
                // Every object may be whole and the pack damaged all the same: no other git reads it.
                let damaged = verify && soundness::frame_of(path, &idx)?.is_some();
                return Pack::new(path.to_owned(), idx, damaged, &self.open).map(Some);
            }
            // One by one, since one nonsensical offset must not hide the others.
            hints = (0..idx.count()).filter_map(|n| idx.entry(n).ok()).map(|(offset, _)| offset).collect();
            hints.sort_unstable();
        }
        let mut scan = scan(path, &hints)?;
        tracing::warn!(pack = %path.display(), whole = scan.whole, "remaking the index of a pack");
        if scan.entries.is_empty() {
            return Ok(None);
        }
        let bytes = idx::encode(&mut scan.entries, &scan.sum)?;
        if scan.whole {
            // On a read-only store the one in memory has to do.
            drop(self.write_idx(&bytes).and_then(|new| self.ops.rename(&new, &idx_path)));
            if !path.try_exists().unwrap_or(true) {
                // Its objects are in another pack by now: an index alone would only be litter.
                drop(self.ops.remove(&idx_path));
            }
        }
        Pack::new(path.to_owned(), Idx::from_bytes(bytes)?, !scan.whole, &self.open).map(Some)
    }

    /// Writes an index under a temporary name. Not synced: it can be made again from its pack.
    fn write_idx(&self, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = temporary(&self.pack_dir, ".idx");
        let file = self.ops.create(&path)?;
        self.ops.write_at(&file, bytes, 0).inspect_err(|_| drop(fs::remove_file(&path)))?;
        Ok(path)
    }

    /// Reads every index through and remakes those that are torn, from their packs.
    pub(crate) fn check_indexes(&self) -> Result<(), SnapshotError> {
        self.load(true).map(drop)
    }

    /// Adds or replaces packs in this handle's list.
    fn adopt(&self, new: Vec<Arc<Pack>>) {
        let mut held = self.packs.write().unwrap_or_else(PoisonError::into_inner);
        // Without a list there is nothing to keep up to date: the first use reads it from disk.
        if let Some(packs) = &*held {
            let mut all: Vec<_> = packs.iter().filter(|p| new.iter().all(|n| n.path() != p.path())).cloned().collect();
            all.extend(new);
            *held = Some(Arc::new(all));
        }
    }

    /// True when the object is in a pack of this store, or in the overlay of a dry capture. Does not refresh.
    pub(crate) fn contains(&self, id: &ObjectId) -> bool {
        let id = raw(id);
        self.is_stored(&id)
            || self.overlay.read().unwrap_or_else(PoisonError::into_inner).iter().any(|o| o.contains_key(&id))
    }

    /// True when the object is in a pack of this store: what a capture that writes may rely on. Does not refresh.
    pub(crate) fn contains_on_disk(&self, id: &ObjectId) -> bool {
        self.is_stored(&raw(id))
    }

    /// True when a pack that this store has written has the object: what trees are relied on by.
    pub(crate) fn has_written(&self, id: &ObjectId) -> bool {
        self.any_pack(&raw(id), |pack| !pack.is_seeded())
    }

    fn is_stored(&self, id: &Id) -> bool {
        self.any_pack(id, |_| true)
    }

    fn any_pack(&self, id: &Id, counts: impl Fn(&Pack) -> bool) -> bool {
        let Ok(packs) = self.packs() else { return false };
        packs.iter().filter(|pack| !pack.is_damaged() && counts(pack)).any(|pack| match pack.find(id) {
            Ok(Some((offset, _))) => (HEADER..pack.end()).contains(&offset),
            _ => false,
        })
    }

    /// A whole object, its kind checked. Trees and meta blobs; big blobs go through `stream`.
    ///
    /// The bytes have passed the checksum of their compressed form; only `verify` hashes them, and every read from a pack
    /// that is not ours.
    pub(crate) fn read(&self, id: &ObjectId, kind: Kind) -> Result<Vec<u8>, SnapshotError> {
        // As git does, the empty tree is known without being stored: gc drops it, whoever still refers to it.
        if id.is_empty_tree() && kind == Kind::Tree {
            return Ok(Vec::new());
        }
        if let Some((found, body)) = self.in_overlay(id) {
            return if found == kind { Ok(body) } else { Err(damaged(id, "an object of another kind")) };
        }
        match self.with_entry(id, |reader| {
            if reader.kind() == EntryKind::Whole(kind) {
                reader.whole()
            } else {
                Err(invalid("an object of another kind"))
            }
        })? {
            Found::Ours(body) => Ok(body),
            Found::Foreign(found, body) if found == kind => Ok(body),
            Found::Foreign(..) => Err(damaged(id, "an object of another kind")),
        }
    }

    /// A blob with its size, inflated while it is read when it is bigger than 1 MiB. Then a damaged one fails while
    /// reading, with `InvalidData` or `UnexpectedEof`, at the latest before its last bytes.
    pub(crate) fn stream(&self, id: &ObjectId) -> Result<(u64, Box<dyn Read + Send + '_>), SnapshotError> {
        if let Some((_, body)) = self.in_overlay(id) {
            return Ok((body.len() as u64, Box::new(io::Cursor::new(body))));
        }
        let found = self.with_entry(id, |reader| {
            if reader.kind() != EntryKind::Whole(Kind::Blob) {
                return Err(invalid("not a blob"));
            }
            let (size, reader) = (reader.size(), reader.without_crc());
            // A small one is read now: a damaged copy is found out here, while another can still be tried.
            let content: Box<dyn Read + Send> =
                if size <= READ_AHEAD { Box::new(io::Cursor::new(reader.whole()?)) } else { Box::new(reader) };
            Ok((size, content))
        })?;
        match found {
            Found::Ours(content) => Ok(content),
            Found::Foreign(Kind::Blob, body) => Ok((body.len() as u64, Box::new(io::Cursor::new(body)))),
            Found::Foreign(..) => Err(damaged(id, "not a blob")),
        }
    }

    /// Kind and size of an object, from its entry's header.
    pub(crate) fn header(&self, id: &ObjectId) -> Result<(Kind, u64), SnapshotError> {
        if let Some((kind, body)) = self.in_overlay(id) {
            return Ok((kind, body.len() as u64));
        }
        match self.with_entry(id, |reader| match reader.kind() {
            EntryKind::Whole(kind) => Ok((kind, reader.size())),
            EntryKind::Delta => Err(invalid("a delta")),
        })? {
            Found::Ours(header) => Ok(header),
            Found::Foreign(kind, body) => Ok((kind, body.len() as u64)),
        }
    }

    fn in_overlay(&self, id: &ObjectId) -> Option<(Kind, Vec<u8>)> {
        let overlay = self.overlay.read().unwrap_or_else(PoisonError::into_inner);
        overlay.iter().find_map(|o| o.get(&raw(id)).cloned())
    }

    /// Forgets the trees of dry captures.
    pub(crate) fn clear_overlay(&self) {
        self.overlay.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Gives `read` the entry of an object, in every pack that has it until one will do. What cannot be found is
    /// looked for again after a refresh, and once in a handle's life after every index was checked.
    pub(crate) fn with_entry<T>(
        &self,
        id: &ObjectId,
        read: impl Fn(EntryReader) -> io::Result<T>,
    ) -> Result<Found<T>, SnapshotError> {
        let key = raw(id);
        let mut packs = self.packs()?;
        let mut stage = 0;
        loop {
            let mut trouble: Option<io::Error> = None;
            let mut trouble_at = None;
            for pack in packs.iter() {
                let found = match pack.find(&key) {
                    Ok(None) => continue,
                    Ok(Some((offset, crc))) => pack.entry(offset, Some(crc)),
                    Err(e) => Err(e),
                };
                let result = match found {
                    Ok(entry) if entry.kind() == EntryKind::Delta => {
                        // A damaged header can look like a delta's: another pack may still have the object.
                        match pack
                            .find(&key)
                            .and_then(|at| at.map(|(at, _)| delta::resolve(pack, at, &key)).transpose())
                        {
                            Ok(Some((kind, body))) => return Ok(Found::Foreign(kind, body)),
                            Ok(None) | Err(_) => Err(invalid("a delta that cannot be resolved")),
                        }
                    }
                    Ok(entry) if pack.is_seeded() => read(entry.expecting(&key)),
                    Ok(entry) => read(entry),
                    Err(e) => Err(e),
                };
                match result {
                    Ok(value) => return Ok(Found::Ours(value)),
                    Err(e) => {
                        trouble = Some(e);
                        trouble_at = Some(pack.path().to_owned());
                    }
                }
            }
            stage += 1;
            packs = match stage {
                1 => self.load(false)?,
                2 if self.first_check() => self.load(true)?,
                _ => {
                    if self.is_loose(id)
                        && let Some((kind, body)) = self.foreign(id)?
                    {
                        return Ok(Found::Foreign(kind, body));
                    }
                    return Err(match trouble {
                        None => SnapshotError::Missing { id: to_core(id) },
                        Some(e) if e.kind() == io::ErrorKind::NotFound => SnapshotError::Missing { id: to_core(id) },
                        Some(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                            SnapshotError::Damaged { id: to_core(id), source: e.into() }
                        }
                        Some(source) => SnapshotError::Io { path: trouble_at.unwrap_or_default(), source },
                    });
                }
            };
        }
    }

    fn first_check(&self) -> bool {
        !std::mem::replace(&mut *self.checked.lock().unwrap_or_else(PoisonError::into_inner), true)
    }

    pub(crate) fn is_loose(&self, id: &ObjectId) -> bool {
        let hex = id.to_string();
        self.dir.join("objects").join(&hex[..2]).join(&hex[2..]).exists()
    }

    /// What gix finds: loose objects. It maps packs into memory, so it is asked last.
    pub(crate) fn foreign(&self, id: &ObjectId) -> Result<Option<(Kind, Vec<u8>)>, SnapshotError> {
        let objects = self.dir.join("objects");
        let store = if let Some(store) = self.foreign.get() {
            store
        } else {
            // The default of 32 slots fails at the 33rd pack.
            let slots = gix::odb::store::init::Slots::Given(1024);
            let options = gix::odb::store::init::Options { slots, ..Default::default() };
            let hash = gix::hash::Kind::Sha1;
            let store = gix::odb::Store::at_opts(objects.clone(), hash, &mut std::iter::empty(), options);
            let store = store.map_err(at(&objects))?;
            self.foreign.get_or_init(|| Arc::new(store))
        };
        let (handle, mut body) = (store.to_handle_arc(), Vec::new());
        // gix takes the memory that a header announces before it looks for the content.
        let announced = gix::objs::FindHeader::try_header(&handle, id).map_err(|e| damaged(id, &e.to_string()))?;
        if let Some(announced) = announced.filter(|announced| announced.size > ANNOUNCED) {
            let loose = objects.join(&id.to_string()[..2]).join(&id.to_string()[2..]);
            let packs: u64 = self.packs()?.iter().map(|pack| pack.len()).sum();
            let there = packs + std::fs::metadata(loose).map_or(0, |facts| facts.len());
            if announced.size > there.saturating_mul(DENSEST) {
                return Err(damaged(id, "its header announces more than there can be"));
            }
        }
        let found = handle.try_find(id, &mut body).map_err(|e| damaged(id, &e.to_string()))?;
        let Some(kind) = found.map(|data| data.kind) else { return Ok(None) };
        // Nothing that gix reads was written by us.
        if object_id(kind, &body)? != *id {
            return Err(damaged(id, "its content has another id"));
        }
        Ok(Some((kind, body)))
    }

    /// Starts collecting objects. `write == false`: blobs are dropped, trees and meta blobs go to an overlay in
    /// memory that `contains` and `read` of this handle see when the batch is finished.
    pub(crate) fn batch(&self, write: bool) -> Batch<'_> {
        Batch::new(self, write)
    }

    fn add_overlay(&self, objects: Overlay) {
        let mut overlay = self.overlay.write().unwrap_or_else(PoisonError::into_inner);
        overlay.push_front(objects);
        overlay.truncate(OVERLAYS);
    }

    /// Syncs the pack directory: before every record that relies on an object this capture did not write itself
    /// (model F18). After a failure this handle writes nothing more: what is durable is not known.
    pub(crate) fn sync_directory(&self) -> Result<(), SnapshotError> {
        self.check_poison()?;
        self.ops.sync_dir(&self.pack_dir).map_err(|e| {
            self.poisoned.store(true, Ordering::SeqCst);
            at(&self.pack_dir)(e)
        })
    }

    fn check_poison(&self) -> Result<(), SnapshotError> {
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(SnapshotError::Other {
                what: "the store must be reopened",
                source: "an earlier sync failed".into(),
            });
        }
        Ok(())
    }
}

/// What [`Store::with_entry`] came to.
#[derive(Debug)]
pub(crate) enum Found<T> {
    /// An entry of a pack, as `read` took it.
    Ours(T),
    /// A delta that was resolved, or a loose object.
    Foreign(Kind, Vec<u8>),
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The error for an object whose bytes are not what they have to be.
pub(crate) fn damaged(id: &ObjectId, how: &str) -> SnapshotError {
    SnapshotError::Damaged { id: to_core(id), source: how.to_owned().into() }
}

fn is_pack_name(path: &Path) -> bool {
    path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("pack-"))
}

/// Is this the index of that pack? By the pack's trailer, or by its name where the trailer was damaged: the objects
/// before it are still there, and each checks itself when it is read.
fn belongs(idx: &Idx, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let named = path.file_stem().and_then(|s| s.to_str()) == Some(&format!("pack-{}", ObjectId::Sha1(*idx.pack_sum())));
    let file = fs::File::open(path)?;
    let len = file.metadata()?.len();
    let mut sum = [0; 20];
    Ok(named || (len > TRAILER && file.read_exact_at(&mut sum, len - TRAILER).is_ok() && sum == *idx.pack_sum()))
}

#[cfg(test)]
pub(crate) mod tests;
