//! Files, links, FIFOs and the rest: everything that is no directory.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io::{self, Read, Seek},
    sync::{Arc, atomic::Ordering},
};

use checkpoint_core::{ObjectId, SkipReason, SnapshotError};
use gix::objs::Kind;
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    Hand, SMALL_FILE, Walk,
    facts::{Facts, Trust, stat_at, stat_fd},
    node::{Node, Outcome},
    wants::Hint,
};
use crate::{
    cache::{Entry, Known, Stamp, What, flag},
    rules::{GITIGNORE, RWDIGNORE},
    store::{Store, object_id, to_core, to_gix},
};

/// Larger files are streamed: hashed first, then stored if they are new.
pub(super) const BIG: u64 = 8 << 20;
/// How often a file may change while it is read before it is left out.
const TRIES: u32 = 4;

const FILE_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// A name that is to be looked at.
#[derive(Debug)]
pub(crate) struct LeafJob {
    pub(super) name: CString,
    /// [`flag`] bits that were decided by name.
    pub(super) flags: u8,
    /// What the directory's record says of it.
    pub(super) recorded: Option<Known>,
}

/// What a name turned out to be.
pub(super) enum Leaf {
    Is(What, u16, u8),
    /// A directory after all.
    Dir,
    /// To be stored after the others.
    Later,
}

enum Content {
    Stored(ObjectId, Facts),
    Skipped(SkipReason),
    Gone,
    /// It changed; look again.
    Again,
    Later,
}

impl<'a> Walk<'a> {
    /// A batch of names of one directory.
    pub(super) fn leaves(&self, hand: &mut Hand<'a>, node: &Arc<Node>, leaves: Vec<LeafJob>) {
        match self.dir_fd(node) {
            Ok(fd) => {
                for leaf in leaves {
                    if self.stop.load(Ordering::Relaxed) {
                        break;
                    }
                    self.leaf_entry(hand, node, &fd, &leaf.name, leaf.flags, leaf.recorded);
                }
            }
            // It was there a moment ago: gone, or replaced.
            Err(Errno::NOENT) => node.state().outcome = Some(Outcome::Gone),
            Err(errno) => self.fail(Self::io(&node.path, errno)),
        }
        self.done(hand, node);
    }

    /// Looks at a name and notes what it is. `recorded` is only given when the record's entry is to be compared.
    pub(super) fn leaf_entry(
        &self,
        hand: &mut Hand<'a>,
        node: &Arc<Node>,
        fd: &Arc<OwnedFd>,
        name: &CStr,
        flags: u8,
        recorded: Option<Known>,
    ) {
        let (what, mode, flags) = match self.leaf(hand, node, fd.as_fd(), name, flags, recorded) {
            Leaf::Is(what, mode, flags) => (what, mode, flags),
            Leaf::Later => return,
            // Swapped for a directory since it was listed: the stamp of its parent shows it, and the next capture
            // finds it.
            Leaf::Dir => (What::Skipped(SkipReason::ChangedWhileReading, true), 0, 0),
        };
        Self::note(hand, node, Entry { name: name.to_bytes().into(), what, mode, flags }, recorded);
    }

    /// Adds an entry to its directory, unless it is what the record says.
    pub(super) fn note(hand: &mut Hand<'a>, node: &Node, entry: Entry, recorded: Option<Known>) {
        if matches!(entry.what, What::File(..) | What::Link(..) | What::Fifo) {
            hand.found.files += 1;
        }
        let mut state = node.state();
        if state.over_record {
            let same = recorded.is_some_and(|r| (r.what, r.mode, r.flags) == (entry.what, entry.mode, entry.flags));
            if same {
                return;
            }
            state.dirty = true;
        } else if entry.what == What::Gone {
            return;
        }
        state.entries.push(entry);
    }

    pub(super) fn leaf(
        &self,
        hand: &mut Hand<'a>,
        node: &Arc<Node>,
        fd: BorrowedFd<'_>,
        name: &CStr,
        mut flags: u8,
        recorded: Option<Known>,
    ) -> Leaf {
        let skip = |why, flags: u8| Leaf::Is(What::Skipped(why, false), 0, flags & flag::LOOKED_UP);
        self.tick(hand);
        for _ in 0..TRIES {
            let facts = match stat_at(fd, name) {
                Ok(facts) => facts,
                Err(Errno::NOENT) => return Leaf::Is(What::Gone, 0, 0),
                Err(_) => return skip(SkipReason::Unreadable, flags),
            };
            match facts.kind {
                FileType::Directory => return Leaf::Dir,
                FileType::Fifo => return Leaf::Is(What::Fifo, facts.mode, flags & !flag::WANTED_SIZE),
                FileType::RegularFile | FileType::Symlink => {}
                _ => return skip(SkipReason::Special, flags),
            }
            let is_file = facts.kind == FileType::RegularFile;
            if is_file && flags & flag::WANTED_RULE == 0 && facts.stamp.size >= self.s.policy.untracked_max_bytes {
                let hint: Hint<'_> = node.record.get().zip(recorded);
                let want = self.want_leaf(node, &node.join(name.to_bytes()), name.to_bytes(), hint);
                flags |= want.flags;
                if !want.this {
                    return skip(SkipReason::TooLarge, flags);
                }
                flags |= flag::WANTED_SIZE;
            }
            let trust = self.trusts.of(facts.dev, fd);
            let known = self.cached(node, trust, &facts, recorded);
            let known = known.or_else(|| self.restored(node, trust, &facts, name));
            if let Some(id) = known.or_else(|| self.seeded(node, trust, &facts, name)) {
                let what = if is_file { What::File(facts.stamp, id) } else { What::Link(facts.stamp, id) };
                return Leaf::Is(what, facts.mode, flags | self.racy(trust, &facts.stamp));
            }
            let content =
                if is_file { self.file(hand, fd, name, facts.stamp.size) } else { self.link(hand, fd, name, &facts) };
            match content {
                Content::Stored(id, facts) => {
                    let what = if is_file { What::File(facts.stamp, id) } else { What::Link(facts.stamp, id) };
                    return Leaf::Is(what, facts.mode, flags | self.racy(trust, &facts.stamp));
                }
                Content::Skipped(why) => return skip(why, flags),
                Content::Gone => return Leaf::Is(What::Gone, 0, 0),
                Content::Later => {
                    self.push_late(node, facts.stamp.size, LeafJob { name: name.to_owned(), flags, recorded });
                    return Leaf::Later;
                }
                Content::Again if self.stop.load(Ordering::Relaxed) => break,
                Content::Again => {}
            }
        }
        skip(SkipReason::ChangedWhileReading, flags)
    }

    /// Stamps close to the start of the capture may hide a later change.
    pub(super) fn racy(&self, trust: Trust, stamp: &Stamp) -> u8 {
        if trust.is_racy(stamp, self.s.start) { flag::RACY } else { 0 }
    }

    /// The id from the cache, where the stamps vouch for it and the store has the object.
    fn cached(&self, node: &Node, trust: Trust, facts: &Facts, recorded: Option<Known>) -> Option<ObjectId> {
        let entry = recorded?;
        let record = node.record.get()?;
        let ((What::File(stamp, id), FileType::RegularFile) | (What::Link(stamp, id), FileType::Symlink)) =
            (entry.what, facts.kind)
        else {
            return None;
        };
        let trusted = !self.s.policy.verify_by_hash
            && entry.flags & flag::RACY == 0
            && (record.head.dev == facts.dev || !trust.local)
            && trust.same(&stamp, &facts.stamp);
        (trusted && self.has(&id)).then_some(id)
    }

    /// The id that the last restore read, under the conditions of an entry of the cache.
    fn restored(&self, node: &Node, trust: Trust, facts: &Facts, name: &CStr) -> Option<ObjectId> {
        if self.s.policy.verify_by_hash || facts.kind != FileType::RegularFile {
            return None;
        }
        let record = node.restored.get_or_init(|| self.s.restored.find(&node.path)).as_ref()?;
        let What::File(stamp, id) = record.entries().find(|entry| entry.name == name)?.known.what else { return None };
        let read_at = record.head.stamp.ctime;
        let trusted = (record.head.dev == facts.dev || !trust.local)
            && !trust.is_racy(&stamp, read_at)
            && trust.same(&stamp, &facts.stamp);
        (trusted && self.has(&id)).then_some(id)
    }

    /// The id from the user's index, where that can be believed.
    fn seeded(&self, node: &Node, trust: Trust, facts: &Facts, name: &CStr) -> Option<ObjectId> {
        let (seed, within) = (self.s.seed?, node.seed.get().filter(|within| !within.is_empty())?);
        let dir = self.s.sources.rules.above.len() + node.path.len() + usize::from(!node.path.is_empty());
        seed.id(dir, name.to_bytes(), within.clone(), facts, trust)
    }

    fn link(&self, hand: &mut Hand<'a>, fd: BorrowedFd<'_>, name: &CStr, before: &Facts) -> Content {
        let text = match rustix::fs::readlinkat(fd, name, Vec::new()) {
            Ok(text) => text,
            Err(Errno::NOENT) => return Content::Gone,
            Err(Errno::INVAL) => return Content::Again,
            Err(_) => return Content::Skipped(SkipReason::Unreadable),
        };
        match stat_at(fd, name) {
            Ok(after) if after.stamp == before.stamp => self.store_small(hand, text.as_bytes(), *before),
            _ => Content::Again,
        }
    }

    fn file(&self, hand: &mut Hand<'a>, dir: BorrowedFd<'_>, name: &CStr, size: u64) -> Content {
        // Rule files are decided about while their directory is.
        let rules = matches!(name.to_bytes(), GITIGNORE | RWDIGNORE);
        if size >= self.late_size && hand.late.is_none() && !rules {
            return Content::Later;
        }
        let fd = match rustix::fs::openat(dir, name, FILE_FLAGS, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Content::Gone,
            Err(Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Content::Again,
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                self.fail(Self::io(name.to_bytes(), errno));
                return Content::Again;
            }
            Err(_) => return Content::Skipped(SkipReason::Unreadable),
        };
        let Ok(before) = stat_fd(&fd) else { return Content::Skipped(SkipReason::Unreadable) };
        if before.kind != FileType::RegularFile {
            return Content::Again;
        }
        let mut file = File::from(fd);
        if before.stamp.size > BIG {
            // It has grown since it was looked at: it waits its turn like the others.
            return if hand.late.is_some() { self.big(hand, &mut file, before) } else { Content::Later };
        }
        let len = usize::try_from(before.stamp.size).unwrap_or(usize::MAX);
        let mut content = std::mem::take(&mut hand.content);
        content.clear();
        content.reserve(len + 1);
        let read = (&mut file).take(before.stamp.size + 1).read_to_end(&mut content);
        let result = match read {
            Err(_) => Content::Skipped(SkipReason::Unreadable),
            Ok(n) if n != len || !is_same(&file, &before) => Content::Again,
            Ok(_) => self.store_small(hand, &content, before),
        };
        hand.content = content;
        result
    }

    fn store_small(&self, hand: &mut Hand<'a>, content: &[u8], facts: Facts) -> Content {
        let Ok(id) = object_id(Kind::Blob, content) else { return Content::Skipped(SkipReason::Collision) };
        let needed = content.len() as u64;
        if !self.may_store(hand, needed) && !self.s.batch.contains(&id) {
            if needed > SMALL_FILE {
                return Content::Skipped(SkipReason::Budget);
            }
            self.fail(SnapshotError::NoSpace { needed });
        }
        match hand.pack.add(Kind::Blob, id, content) {
            Ok(_) => Content::Stored(to_core(&id), facts),
            Err(error) => {
                self.fail(error);
                Content::Again
            }
        }
    }

    /// Bounded memory: hashed once, and read a second time only when the store does not have it.
    fn big(&self, hand: &mut Hand<'a>, file: &mut File, before: Facts) -> Content {
        let len = before.stamp.size;
        // It cannot be in the store, nor ever get there: a sparse file of a terabyte would be read for nothing.
        if len > self.s.policy.store_max_bytes {
            return Content::Skipped(SkipReason::Budget);
        }
        let hashed = Store::hash_blob(len, &mut Watched { file, walk: self });
        let id = match self.judge(hashed) {
            Ok(id) => id,
            Err(content) => return content,
        };
        if !is_same(file, &before) {
            return Content::Again;
        }
        if self.has(&id) || !self.s.write {
            return Content::Stored(id, before);
        }
        if !self.may_store(hand, len) {
            return Content::Skipped(SkipReason::Budget);
        }
        if file.rewind().is_err() {
            return Content::Skipped(SkipReason::Unreadable);
        }
        let added = hand.pack.add_stream(to_gix(&id), len, &mut Watched { file, walk: self });
        match self.judge(added) {
            Ok(_) if is_same(file, &before) => Content::Stored(id, before),
            Ok(_) => Content::Again,
            Err(content) => content,
        }
    }

    fn judge<T>(&self, result: Result<T, SnapshotError>) -> Result<T, Content> {
        result.map_err(|error| match error {
            _ if self.stop.load(Ordering::Relaxed) => Content::Again,
            SnapshotError::ChangedWhileReading => Content::Again,
            SnapshotError::Collision => Content::Skipped(SkipReason::Collision),
            SnapshotError::NoSpace { .. } => Content::Skipped(SkipReason::Budget),
            // Reading failed: only this file is affected.
            SnapshotError::Other { .. } => Content::Skipped(SkipReason::Unreadable),
            other => {
                self.fail(other);
                Content::Again
            }
        })
    }

    /// May this much new content be stored? A late file has its claim; it may have grown since.
    fn may_store(&self, hand: &Hand<'a>, needed: u64) -> bool {
        hand.late.map_or_else(|| self.fits(needed), |claim| needed <= claim || !self.s.write)
    }

    pub(super) fn io(path: &[u8], errno: Errno) -> SnapshotError {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::OsStr::from_bytes(if path.is_empty() { b"." } else { path }).into();
        SnapshotError::Io { path, source: errno.into() }
    }
}

fn is_same(file: &File, before: &Facts) -> bool {
    stat_fd(file).is_ok_and(|after| after.stamp == before.stamp)
}

/// Reads a file and stops when the walk does.
struct Watched<'f, 'w, 'a> {
    file: &'f mut File,
    walk: &'w Walk<'a>,
}

impl Read for Watched<'_, '_, '_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.walk.check_time();
        if self.walk.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(to)
    }
}
