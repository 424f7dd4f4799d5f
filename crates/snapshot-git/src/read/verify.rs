//! Is a snapshot whole?

use std::{
    collections::HashSet,
    io::{self, Read},
};

use checkpoint_core::{Snapshot, SnapshotError, VerifyLevel};
use gix::{
    ObjectId,
    objs::{Kind, tree::EntryKind as TreeEntry},
};

use super::node::{dir_meta, entries};
use crate::{
    meta::BLOB,
    store::{EntryKind, Found, Id, Store, damaged, object_hasher, object_id, to_core, to_gix},
};

/// Checks one snapshot; the error names the first object that is missing or damaged, in the order of a walk.
///
/// `Reachable` reads every tree and meta blob and the header of every other blob, so an index that promises too much
/// is found out. `Rehash` reads everything, compares the stored bytes with the checksum in the index and the content
/// with the id.
pub(crate) fn verify(store: &Store, snapshot: &Snapshot, level: VerifyLevel) -> Result<(), SnapshotError> {
    one(store, snapshot, level, &HashSet::new()).map(drop)
}

/// Checks many; an object that is part of a sound snapshot is not looked at again.
pub(crate) fn verify_all(store: &Store, snapshots: &[Snapshot], level: VerifyLevel) -> Vec<Result<(), SnapshotError>> {
    let mut sound = HashSet::new();
    let mut verdict = |snapshot| one(store, snapshot, level, &sound).map(|seen| sound.extend(seen));
    snapshots.iter().map(&mut verdict).collect()
}

type Seen = HashSet<(Id, bool)>;

fn one(store: &Store, snapshot: &Snapshot, level: VerifyLevel, sound: &Seen) -> Result<Seen, SnapshotError> {
    let mut check = Check { store, level, sound, seen: Seen::new() };
    check.tree(&to_gix(&snapshot.tree), false)?;
    check.tree(&to_gix(&snapshot.meta), true)?;
    Ok(check.seen)
}

struct Check<'a> {
    store: &'a Store,
    level: VerifyLevel,
    /// Objects of snapshots that are whole, with the role they were checked for.
    sound: &'a Seen,
    /// Objects of this snapshot that were looked at.
    seen: Seen,
}

impl Check<'_> {
    fn is_new(&mut self, id: &ObjectId, meta: bool) -> bool {
        let key = (*to_core(id).as_bytes(), meta);
        !self.sound.contains(&key) && self.seen.insert(key)
    }

    /// Walks a tree; the stack is ours, so that a deep one cannot exhaust the thread's.
    fn tree(&mut self, root: &ObjectId, meta: bool) -> Result<(), SnapshotError> {
        let mut stack = vec![*root];
        while let Some(id) = stack.pop() {
            if id.is_empty_tree() || !self.is_new(&id, meta) {
                continue;
            }
            if self.level == VerifyLevel::Rehash {
                let body = self.store.read(&id, Kind::Tree)?;
                if object_id(Kind::Tree, &body)? != id {
                    return Err(damaged(&id, "its content has another id"));
                }
            }
            let mut below = Vec::new();
            for (name, kind, child) in entries(self.store, &id)? {
                match kind {
                    TreeEntry::Tree => below.push(child),
                    TreeEntry::Commit => return Err(damaged(&id, "a commit where only files and directories can be")),
                    _ if meta && name == BLOB => {
                        drop(dir_meta(self.store, &child)?);
                        self.blob(&child)?;
                    }
                    _ => self.blob(&child)?,
                }
            }
            stack.extend(below.into_iter().rev());
        }
        Ok(())
    }

    fn blob(&mut self, id: &ObjectId) -> Result<(), SnapshotError> {
        if !self.is_new(id, false) {
            return Ok(());
        }
        if self.level == VerifyLevel::Reachable {
            return match self.store.header(id)? {
                (Kind::Blob, _) => Ok(()),
                _ => Err(damaged(id, "not a blob")),
            };
        }
        blob_is_whole(self.store, id)
    }
}

/// `BlobStore::check_blob`. Sees what other processes added.
pub(crate) fn check_blob(store: &Store, id: &checkpoint_core::ObjectId) -> Result<(), SnapshotError> {
    if !store.has_blob(id)? {
        return Err(SnapshotError::Missing { id: *id });
    }
    blob_is_whole(store, &to_gix(id))
}

/// Reads a blob once, from its first byte to its last, and compares the content with the id.
fn blob_is_whole(store: &Store, id: &ObjectId) -> Result<(), SnapshotError> {
    let found = store.with_entry(id, |mut entry| {
        if entry.kind() != EntryKind::Whole(Kind::Blob) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a blob"));
        }
        let mut hasher = object_hasher(Kind::Blob, entry.size());
        let mut piece = vec![0; 64 << 10];
        loop {
            match entry.read(&mut piece)? {
                0 => break,
                n => hasher.update(&piece[..n]),
            }
        }
        // A detected collision cannot have been stored by us.
        match hasher.try_finalize() {
            Ok(found) if found == *id => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "its content has another id")),
        }
    })?;
    match found {
        Found::Ours(()) => Ok(()),
        Found::Foreign(Kind::Blob, body) if object_id(Kind::Blob, &body)? == *id => Ok(()),
        Found::Foreign(..) => Err(damaged(id, "its content has another id")),
    }
}
