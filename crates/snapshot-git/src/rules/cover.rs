//! What stays covered although a rule leaves it out: what a stored point holds, what a plan would overwrite.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use checkpoint_core::{CaptureRequest, ObjectId, RelPath, SnapshotError};
use gix::objs::Kind;

use crate::{
    meta::{BLOB, DIR_PREFIX, DirMeta},
    store::{Store, to_core, to_gix},
};

/// The request's sets of paths.
pub(crate) struct Cover<'a> {
    store: &'a Store,
    held: &'a BTreeSet<RelPath>,
    not_held: &'a BTreeSet<RelPath>,
    include: &'a BTreeSet<RelPath>,
    warnings: Mutex<Vec<String>>,
}

/// What the base snapshot holds in one directory.
#[derive(Debug, Default)]
pub(crate) struct BaseNames {
    names: BTreeMap<Vec<u8>, (Option<ObjectId>, Option<ObjectId>)>,
    dirs: BTreeSet<Vec<u8>>,
}

impl BaseNames {
    /// Does the base hold something of this name?
    pub(crate) fn holds(&self, name: &[u8]) -> bool {
        self.names.contains_key(name)
    }

    /// Does it hold a directory of this name?
    pub(crate) fn holds_dir(&self, name: &[u8]) -> bool {
        self.dirs.contains(name)
    }

    /// Tree and meta tree of a subdirectory.
    pub(crate) fn dir(&self, name: &[u8]) -> (Option<ObjectId>, Option<ObjectId>) {
        if self.holds_dir(name) { self.names.get(name).copied().unwrap_or_default() } else { (None, None) }
    }
}

impl<'a> Cover<'a> {
    pub(crate) fn new(request: &CaptureRequest<'a>, store: &'a Store) -> Self {
        let CaptureRequest { held, not_held, include, .. } = *request;
        Self { store, held, not_held, include, warnings: Mutex::default() }
    }

    /// Is this very path named by the request?
    pub(crate) fn names(&self, path: &RelPath) -> bool {
        self.include.contains(path) || self.held.contains(path)
    }

    /// Is something below it named?
    pub(crate) fn names_below(&self, path: &RelPath) -> bool {
        has_below(self.include, path) || has_below(self.held, path)
    }

    /// Has it lost the cover that the base gives?
    pub(crate) fn released(&self, path: &RelPath) -> bool {
        self.not_held.contains(path)
    }

    /// What the base holds in a directory; nothing, with a warning, when it cannot be read.
    pub(crate) fn base_names(&self, tree: Option<ObjectId>, meta: Option<ObjectId>) -> BaseNames {
        self.read(tree, meta).unwrap_or_else(|error| {
            let mut warnings = self.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if warnings.is_empty() {
                warnings.push(format!("cannot read the latest point, so it gives no cover: {error}"));
            }
            BaseNames::default()
        })
    }

    fn read(&self, tree: Option<ObjectId>, meta: Option<ObjectId>) -> Result<BaseNames, SnapshotError> {
        let mut out = BaseNames::default();
        for entry in tree.map(|id| tree_entries(self.store, &id)).transpose()?.unwrap_or_default() {
            if entry.is_tree() {
                out.dirs.insert(entry.name.clone());
                out.names.insert(entry.name, (Some(entry.id), None));
            } else {
                out.names.insert(entry.name, (None, None));
            }
        }
        let Some(meta) = meta else { return Ok(out) };
        let own = dir_meta(self.store, &meta)?;
        for name in own.empty {
            out.dirs.insert(name.clone());
            out.names.entry(name).or_default();
        }
        for name in own.fifos.into_keys() {
            out.names.entry(name).or_default();
        }
        for entry in tree_entries(self.store, &meta)? {
            if entry.is_tree()
                && let Some(slot) = entry.name.strip_prefix(&[DIR_PREFIX]).and_then(|name| out.names.get_mut(name))
            {
                slot.1 = Some(entry.id);
            }
        }
        Ok(out)
    }

    /// What could not be read.
    pub(crate) fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Does the set hold a path below `dir`? Paths below follow their directory in the order of [`RelPath`].
pub(crate) fn has_below(set: &BTreeSet<RelPath>, dir: &RelPath) -> bool {
    use std::ops::Bound::{Excluded, Unbounded};
    !set.is_empty() && set.range((Excluded(dir), Unbounded)).next().is_some_and(|next| next.is_below(dir))
}

/// One line of a git tree.
#[derive(Debug)]
pub(crate) struct TreeEntry {
    mode: u16,
    pub(crate) name: Vec<u8>,
    pub(crate) id: ObjectId,
}

impl TreeEntry {
    pub(crate) fn is_tree(&self) -> bool {
        self.mode == 0o40000
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// Reads a tree of the store.
pub(crate) fn tree_entries(store: &Store, id: &ObjectId) -> Result<Vec<TreeEntry>, SnapshotError> {
    let body = store.read(&to_gix(id), Kind::Tree)?;
    gix::objs::TreeRefIter::from_bytes(&body, gix::hash::Kind::Sha1)
        .map(|entry| {
            let entry = entry.map_err(|e| SnapshotError::Damaged { id: *id, source: e.to_string().into() })?;
            Ok(TreeEntry {
                mode: entry.mode.value(),
                name: entry.filename.to_vec(),
                id: to_core(&entry.oid.to_owned()),
            })
        })
        .collect()
}

/// Reads what the meta tree of a directory says of the directory itself.
pub(crate) fn dir_meta(store: &Store, meta: &ObjectId) -> Result<DirMeta, SnapshotError> {
    match tree_entries(store, meta)?.into_iter().find(|e| e.name == BLOB) {
        Some(entry) => DirMeta::decode(&store.read(&to_gix(&entry.id), Kind::Blob)?),
        None => Ok(DirMeta::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_lies_below_and_not_what_merely_begins_alike() {
        let path = |text: &str| RelPath::new(text.as_bytes()).unwrap();
        let set: BTreeSet<_> = [path("a-b/x"), path("a/b/c"), path("d")].into();
        assert!(has_below(&set, &path("a")));
        assert!(has_below(&set, &path("a/b")));
        assert!(!has_below(&set, &path("a/b/c")));
        assert!(!has_below(&set, &path("d")));
        assert!(!has_below(&set, &path("c")));
        assert!(has_below(&set, &path("a-b")));
    }
}
