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
    let mut check = Check { store, level, seen: HashSet::new() };
    check.tree(&to_gix(&snapshot.tree), false)?;
    check.tree(&to_gix(&snapshot.meta), true)
}

struct Check<'a> {
    store: &'a Store,
    level: VerifyLevel,
    /// Objects that were found sound, with the role they were checked for.
    seen: HashSet<(Id, bool)>,
}

impl Check<'_> {
    fn is_new(&mut self, id: &ObjectId, meta: bool) -> bool {
        self.seen.insert((*to_core(id).as_bytes(), meta))
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
        let found = self.store.with_entry(id, |mut entry| {
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
}
