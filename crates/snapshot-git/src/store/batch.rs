//! Collecting the objects of one capture and making them durable together.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{self, Read},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use checkpoint_core::SnapshotError;
use gix::{ObjectId, objs::Kind};

use super::{
    Store, at,
    idx::{Id, Idx, digest},
    io_error, layout,
    pack::{Pack, object_hasher},
    raw,
    writer::{Level, PROBE, PackWriter, Sealed},
};

/// Objects below this size are not compressed: it would save a few bytes of each, for more time than writing them takes.
const TINY: usize = 128;
/// Claims are spread over this many locks.
const SHARDS: usize = 16;
/// From this size on a look at the start decides whether an object is compressed.
const WORTH_PROBING: usize = 128 << 10;
const PIECE: usize = 256 << 10;
/// Bytes that an entry takes more than its content when it is only framed, about.
const FRAME: u64 = 16;

/// Objects of one capture on their way into packs. Shared by its workers.
///
/// Dropped without [`Batch::finish`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Batch<'s> {
    store: &'s Store,
    write: bool,
    /// Trees are not compressed: there are many, and nothing else takes time.
    plain_trees: bool,
    claims: [Mutex<HashSet<Id>>; SHARDS],
    writers: Mutex<Vec<PackWriter>>,
    sealed: Mutex<Vec<Sealed>>,
    overlay: Mutex<HashMap<Id, (Kind, Vec<u8>)>>,
    bytes: AtomicU64,
    /// An object that another worker may rely on could not be written.
    failed: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> Batch<'s> {
    pub(super) fn new(store: &'s Store, write: bool) -> Self {
        Self {
            store,
            write,
            plain_trees: false,
            claims: Default::default(),
            writers: Mutex::default(),
            sealed: Mutex::default(),
            overlay: Mutex::default(),
            bytes: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Trees are stored as they are, as befits a capture that compresses nothing else.
    #[must_use]
    pub(crate) fn with_plain_trees(mut self, plain: bool) -> Self {
        self.plain_trees = plain;
        self
    }

    /// A pack of one worker. Nothing is written until its first object is added.
    pub(crate) fn worker(&self) -> Worker<'_, 's> {
        Worker { batch: self, writer: None }
    }

    /// Bytes collected so far, compressed: what a budget is compared with.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True when the object was there before or is in this batch.
    pub(crate) fn contains(&self, id: &ObjectId) -> bool {
        self.is_claimed(&raw(id)) || if self.write { self.store.contains_on_disk(id) } else { self.store.contains(id) }
    }

    fn shard(&self, id: &Id) -> &Mutex<HashSet<Id>> {
        &self.claims[usize::from(id[19]) % SHARDS]
    }

    fn claim(&self, id: &Id) -> bool {
        lock(self.shard(id)).insert(*id)
    }

    fn is_claimed(&self, id: &Id) -> bool {
        lock(self.shard(id)).contains(id)
    }

    fn new_writer(&self) -> PackWriter {
        PackWriter::new(layout::temporary(&self.store.pack_dir, ".pack"))
    }

    /// Makes everything durable: each pack's data synced, indexes written, then the pack directory synced, exactly
    /// once, also when nothing was added. Returns bytes added to the store.
    ///
    /// Packs that never outgrew memory become one. On an error before the first rename nothing becomes visible; after
    /// it, whole packs may stay, whose objects nobody relies on yet.
    pub(crate) fn finish(self) -> Result<u64, SnapshotError> {
        let store = self.store;
        if self.failed.load(Ordering::SeqCst) {
            return Err(SnapshotError::Other {
                what: "finishing a capture",
                source: "an object could not be written".into(),
            });
        }
        if !self.write {
            store.add_overlay(std::mem::take(&mut *lock(&self.overlay)));
            return Ok(0);
        }
        store.check_poison()?;
        self.seal_all()?;
        let sealed = std::mem::take(&mut *lock(&self.sealed));
        if !sealed.is_empty() {
            // The list is read before the packs appear, so that they are added to it and not read back.
            store.packs()?;
        }
        let bytes = publish(store, sealed)?;
        store.sync_directory()?;
        Ok(bytes)
    }

    fn seal_all(&self) -> Result<(), SnapshotError> {
        let ops = &self.store.ops;
        let mut open: Vec<PackWriter> = Vec::new();
        let (small, mut big): (Vec<_>, Vec<_>) = std::mem::take(&mut *lock(&self.writers))
            .into_iter()
            .filter(|w| !w.is_empty())
            .partition(PackWriter::is_in_memory);
        for writer in small {
            match big.last_mut().or(open.last_mut()) {
                Some(first) => {
                    let done = first.absorb(ops, &writer);
                    if done.is_err() {
                        let mut writers = lock(&self.writers);
                        writers.append(&mut big);
                        writers.append(&mut open);
                        drop(writers);
                        done?;
                    }
                }
                None => open.push(writer),
            }
        }
        open.append(&mut big);
        // Hashing and syncing big packs takes as long as the disk does: side by side.
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = open
                .into_iter()
                .map(|writer| {
                    let path = writer.path().to_owned();
                    (path, scope.spawn(move || writer.seal(ops)))
                })
                .collect();
            threads.into_iter().map(|(path, thread)| (path, thread.join())).collect::<Vec<_>>()
        });
        let mut first_error = None;
        for (path, result) in results {
            let error = match result {
                Ok(Ok(sealed)) => {
                    lock(&self.sealed).push(sealed);
                    continue;
                }
                Ok(Err(e)) => e,
                Err(_) => SnapshotError::Other { what: "sealing a pack", source: "a thread panicked".into() },
            };
            drop(fs::remove_file(&path));
            first_error.get_or_insert(error);
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for writer in std::mem::take(&mut *lock(&self.writers)) {
            if !writer.is_in_memory() {
                drop(fs::remove_file(writer.path()));
            }
        }
        for sealed in std::mem::take(&mut *lock(&self.sealed)) {
            drop(fs::remove_file(sealed.temporary));
        }
    }
}

/// Gives sealed packs their names: the pack first, since a reader goes by the index. Does not sync the directory.
/// Returns the bytes of packs and indexes.
pub(crate) fn publish(store: &Store, sealed: Vec<Sealed>) -> Result<u64, SnapshotError> {
    let mut leftovers = Leftovers(sealed.iter().map(|s| s.temporary.clone()).collect());
    let mut ready = Vec::new();
    for pack in sealed {
        let idx = store.write_idx(&pack.idx).map_err(|e| io_error(&store.pack_dir, pack.idx.len() as u64, e))?;
        leftovers.0.push(idx.clone());
        ready.push((pack, idx));
    }
    let mut bytes = 0;
    let mut packs = Vec::new();
    for (pack, idx) in ready {
        let path = store.pack_dir.join(format!("pack-{}.pack", ObjectId::Sha1(pack.sum)));
        let idx_path = path.with_extension("idx");
        store.ops.rename(&pack.temporary, &path).map_err(at(&path))?;
        store.ops.rename(&idx, &idx_path).map_err(at(&idx_path))?;
        bytes += pack.len + pack.idx.len() as u64;
        let opened = Idx::open(&idx_path).and_then(|idx| Pack::new(path.clone(), idx, false, &store.open));
        packs.push(Arc::new(opened.map_err(at(&idx_path))?));
    }
    leftovers.0.clear();
    store.adopt(packs);
    Ok(bytes)
}

/// Temporary files that go when this is dropped.
struct Leftovers(Vec<PathBuf>);

impl Drop for Leftovers {
    fn drop(&mut self) {
        for path in &self.0 {
            drop(fs::remove_file(path));
        }
    }
}

/// Adds objects to one pack.
#[derive(Debug)]
pub(crate) struct Worker<'b, 's> {
    batch: &'b Batch<'s>,
    writer: Option<PackWriter>,
}

impl Worker<'_, '_> {
    /// Adds an object unless the store or another worker of the batch has it; true when it was added.
    ///
    /// After an error the whole batch fails: another worker may have left the object to this one.
    pub(crate) fn add(&mut self, kind: Kind, id: ObjectId, body: &[u8]) -> Result<bool, SnapshotError> {
        debug_assert_eq!(super::object_id(kind, body).ok(), Some(id), "the id is the body's");
        let batch = self.batch;
        let key = raw(&id);
        if !batch.write {
            let keep = kind == Kind::Tree || (kind == Kind::Blob && body.starts_with(crate::meta::MAGIC));
            if !keep || batch.store.contains_on_disk(&id) {
                return Ok(false);
            }
            return Ok(lock(&batch.overlay).insert(key, (kind, body.to_vec())).is_none());
        }
        // Trees are read again and again: a copy of our own needs no delta to be resolved, and no hash to be believed.
        let stored =
            |id| if kind == Kind::Tree { batch.store.has_written(id) } else { batch.store.contains_on_disk(id) };
        if batch.is_claimed(&key) || stored(&id) || !batch.claim(&key) {
            return Ok(false);
        }
        if body.len() < TINY || (batch.plain_trees && kind == Kind::Tree) {
            let stored = self.writer()?.put_framed(&batch.store.ops, kind, key, body);
            let stored = stored.inspect_err(|_| batch.failed.store(true, Ordering::SeqCst))?;
            batch.bytes.fetch_add(stored, Ordering::Relaxed);
            return Ok(true);
        }
        let level = if body.len() >= WORTH_PROBING { Level::probe(body) } else { Level::Fast };
        let writer = self.writer()?;
        let mut open = writer.begin(kind, body.len() as u64, level);
        if let Err(e) = writer.feed(&batch.store.ops, &mut open, body, true) {
            writer.abandon(&open);
            batch.failed.store(true, Ordering::SeqCst);
            return Err(e);
        }
        // What fast compression made bigger is stored instead.
        if level == Level::Fast && writer.len() - open.start() > body.len() as u64 + FRAME {
            writer.abandon(&open);
            open = writer.begin(kind, body.len() as u64, Level::Store);
            writer
                .feed(&batch.store.ops, &mut open, body, true)
                .inspect_err(|_| batch.failed.store(true, Ordering::SeqCst))?;
        }
        let stored = writer.end(open, key);
        batch.bytes.fetch_add(stored, Ordering::Relaxed);
        Ok(true)
    }

    /// Adds a big blob from a reader with bounded memory; hashes while it compresses and fails with
    /// `ChangedWhileReading`, leaving nothing behind, when length or id differ from what was announced.
    ///
    /// No error of this call harms the batch, a full disk included: the blob is simply not in it.
    pub(crate) fn add_stream(&mut self, id: ObjectId, len: u64, content: &mut dyn Read) -> Result<bool, SnapshotError> {
        if !self.batch.write || self.batch.contains(&id) {
            return Ok(false);
        }
        self.stream(Some(id), len, content).map(|(_, added)| added)
    }

    /// Adds a blob whose id is not known yet.
    pub(crate) fn put_stream(&mut self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        self.stream(None, len, content).map(|(id, _)| id)
    }

    fn stream(
        &mut self,
        want: Option<ObjectId>,
        len: u64,
        content: &mut dyn Read,
    ) -> Result<(ObjectId, bool), SnapshotError> {
        let batch = self.batch;
        let ops = &batch.store.ops;
        let mut hasher = object_hasher(Kind::Blob, len);
        let mut piece = vec![0; PIECE.max(PROBE)];
        let mut got = fill(content, &mut piece, len)?;
        let level = if len >= WORTH_PROBING as u64 { Level::probe(&piece[..got]) } else { Level::Fast };
        let writer = self.writer()?;
        let mut open = writer.begin(Kind::Blob, len, level);
        let mut left = len;
        let result = loop {
            left -= got as u64;
            hasher.update(&piece[..got]);
            if let Err(e) = writer.feed(ops, &mut open, &piece[..got], left == 0) {
                break Err(e);
            }
            if left == 0 {
                break expect_end(content);
            }
            got = match fill(content, &mut piece, left) {
                Ok(got) => got,
                Err(e) => break Err(e),
            };
        };
        let id = result.and_then(|()| digest(hasher).map_err(|_| SnapshotError::Collision)).and_then(|id| match want {
            Some(want) if raw(&want) != id => Err(SnapshotError::ChangedWhileReading),
            _ => Ok(id),
        });
        // Claimed only now: nobody may rely on a blob that might not come about. Who loses the race drops his copy.
        match id {
            Ok(id) if !batch.store.is_stored(&id) && batch.claim(&id) => {
                let stored = writer.end(open, id);
                batch.bytes.fetch_add(stored, Ordering::Relaxed);
                Ok((ObjectId::Sha1(id), true))
            }
            Ok(id) => {
                writer.abandon(&open);
                Ok((ObjectId::Sha1(id), false))
            }
            Err(e) => {
                writer.abandon(&open);
                Err(e)
            }
        }
    }

    fn writer(&mut self) -> Result<&mut PackWriter, SnapshotError> {
        if let Some(full) = self.writer.take_if(|w| w.is_full()) {
            let path = full.path().to_owned();
            match full.seal(&self.batch.store.ops) {
                Ok(sealed) => lock(&self.batch.sealed).push(sealed),
                Err(e) => {
                    drop(fs::remove_file(path));
                    self.batch.failed.store(true, Ordering::SeqCst);
                    return Err(e);
                }
            }
        }
        Ok(self.writer.get_or_insert_with(|| self.batch.new_writer()))
    }
}

impl Drop for Worker<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.batch.failed.store(true, Ordering::SeqCst);
        }
        if let Some(writer) = self.writer.take() {
            lock(&self.batch.writers).push(writer);
        }
    }
}

/// Reads a full piece, or all `left` bytes; ending earlier means that the content changed.
pub(super) fn fill(content: &mut dyn Read, piece: &mut [u8], left: u64) -> Result<usize, SnapshotError> {
    let want = usize::try_from(left.min(piece.len() as u64)).expect("at most a piece");
    let mut got = 0;
    while got < want {
        match content.read(&mut piece[got..want]) {
            Ok(0) => return Err(SnapshotError::ChangedWhileReading),
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(SnapshotError::Other { what: "reading content", source: e.into() }),
        }
    }
    Ok(got)
}

/// Fails when there is more content than was announced.
pub(super) fn expect_end(content: &mut dyn Read) -> Result<(), SnapshotError> {
    loop {
        match content.read(&mut [0]) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err(SnapshotError::ChangedWhileReading),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(SnapshotError::Other { what: "reading content", source: e.into() }),
        }
    }
}
