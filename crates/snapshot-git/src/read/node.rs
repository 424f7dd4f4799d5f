//! One directory of a snapshot, put together from its tree and its meta tree.

use std::collections::BTreeMap;

use checkpoint_core::{PathState, RelPath, SkipReason, Snapshot, SnapshotError};
use gix::{
    ObjectId,
    objs::{Kind, TreeRefIter, tree::EntryKind},
};

use crate::{
    meta::{BLOB, DIR_PREFIX, DirMeta, ModeClass},
    store::{Store, damaged, to_core, to_gix},
};

/// Deeper than any path that a system call takes: a store that says so is damaged.
const DEEPEST: usize = 4096;

/// True for a path of so many bytes: no system call takes it.
pub(crate) const fn is_deepest(bytes: usize) -> bool {
    bytes >= DEEPEST
}

/// The two trees of a directory. Either can be absent: a directory without captured files has no tree, one about which
/// there is nothing to say has no meta tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Side {
    pub(super) tree: Option<ObjectId>,
    pub(super) meta: Option<ObjectId>,
}

impl Side {
    pub(super) fn root(snapshot: &Snapshot) -> Self {
        Self { tree: Some(to_gix(&snapshot.tree)), meta: Some(to_gix(&snapshot.meta)) }
    }
}

/// An entry of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Child {
    pub(super) state: PathState,
    /// For a directory, its own trees.
    pub(super) side: Side,
}

/// What a snapshot says about one directory.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// What is in it, by plain name bytes: the order of paths, not of git's trees.
    pub(super) children: BTreeMap<Vec<u8>, Child>,
    /// What was left out of it.
    pub(super) skipped: BTreeMap<Vec<u8>, SkipReason>,
    /// Meta trees of subdirectories, also of those that are not in the snapshot.
    pub(super) below: Below,
}

/// The entries of a tree, in its own order. The empty tree needs no object.
pub(super) fn entries(store: &Store, id: &ObjectId) -> Result<Vec<(Vec<u8>, EntryKind, ObjectId)>, SnapshotError> {
    if id.is_empty_tree() {
        return Ok(Vec::new());
    }
    let body = store.read(id, Kind::Tree)?;
    TreeRefIter::from_bytes(&body, gix::hash::Kind::Sha1)
        .map(|entry| {
            let entry = entry.map_err(|e| damaged(id, &e.to_string()))?;
            Ok((entry.filename.to_vec(), entry.mode.kind(), entry.oid.to_owned()))
        })
        .collect()
}

/// Meta trees of subdirectories, by name.
pub(super) type Below = BTreeMap<Vec<u8>, ObjectId>;

/// The meta tree's own blob and the meta trees below.
fn meta_entries(store: &Store, id: &ObjectId) -> Result<(Option<ObjectId>, Below), SnapshotError> {
    let (mut own, mut below) = (None, BTreeMap::new());
    for (name, kind, id) in entries(store, id)? {
        match (kind, name.split_first()) {
            (EntryKind::Blob, _) if name == BLOB => own = Some(id),
            (EntryKind::Tree, Some((&DIR_PREFIX, name))) => drop(below.insert(name.to_vec(), id)),
            // A newer minor format may have more to say.
            _ => {}
        }
    }
    Ok((own, below))
}

/// A meta blob.
pub(super) fn dir_meta(store: &Store, id: &ObjectId) -> Result<DirMeta, SnapshotError> {
    let blob = store.read(id, Kind::Blob)?;
    DirMeta::decode(&blob).map_err(|e| match e {
        SnapshotError::Other { source, .. } => SnapshotError::Damaged { id: to_core(id), source },
        other => other,
    })
}

/// The meta blob of the root, where the outside ignore rules are.
pub(crate) fn root_meta(store: &Store, snapshot: &Snapshot) -> Result<DirMeta, SnapshotError> {
    match meta_entries(store, &to_gix(&snapshot.meta))?.0 {
        Some(id) => dir_meta(store, &id),
        None => Ok(DirMeta::default()),
    }
}

/// What a meta tree says was left out of its directory, and the meta trees below.
pub(super) fn left_out(
    store: &Store,
    meta: &ObjectId,
) -> Result<(BTreeMap<Vec<u8>, SkipReason>, Below), SnapshotError> {
    let (own, below) = meta_entries(store, meta)?;
    let skipped = own.map(|id| dir_meta(store, &id)).transpose()?.unwrap_or_default().skipped;
    Ok((skipped, below))
}

impl Node {
    /// Reads both trees of a directory.
    pub(super) fn load(store: &Store, side: Side) -> Result<Self, SnapshotError> {
        let mut node = Self::default();
        let mut meta = DirMeta::default();
        if let Some(id) = side.meta {
            let (own, below) = meta_entries(store, &id)?;
            node.below = below;
            if let Some(own) = own {
                meta = dir_meta(store, &own)?;
            }
        }
        for name in &meta.empty {
            let mode = meta.mode(name, ModeClass::Dir);
            let side = Side { tree: None, meta: node.below.get(name).copied() };
            node.children.insert(name.clone(), Child { state: PathState::Dir { mode }, side });
        }
        for (name, mode) in &meta.fifos {
            let child = Child { state: PathState::Fifo { mode: *mode }, side: Side::default() };
            node.children.insert(name.clone(), child);
        }
        if let Some(tree) = side.tree {
            for (name, kind, id) in entries(store, &tree)? {
                let blob = to_core(&id);
                let mut below = Side::default();
                let state = match kind {
                    EntryKind::Blob => PathState::File { blob, mode: meta.mode(&name, ModeClass::File) },
                    EntryKind::BlobExecutable => {
                        PathState::File { blob, mode: meta.mode(&name, ModeClass::Executable) }
                    }
                    EntryKind::Link => PathState::Link { blob },
                    EntryKind::Tree => {
                        below = Side { tree: Some(id), meta: node.below.get(&name).copied() };
                        PathState::Dir { mode: meta.mode(&name, ModeClass::Dir) }
                    }
                    EntryKind::Commit => {
                        return Err(damaged(&tree, "a commit where only files and directories can be"));
                    }
                };
                node.children.insert(name, Child { state, side: below });
            }
        }
        node.skipped = meta.skipped;
        Ok(node)
    }
}

/// The path that a walk is at.
#[derive(Clone, Debug, Default)]
pub(super) struct Here {
    bytes: Vec<u8>,
    depth: usize,
}

impl Here {
    /// A walk that begins at `path`, or at the root.
    pub(super) fn at(path: Option<&RelPath>) -> Self {
        Self { bytes: path.map(|p| p.as_bytes().to_vec()).unwrap_or_default(), depth: 0 }
    }

    /// The path of `name` in this directory, which two trees gave; the first is blamed for a name that is none.
    pub(super) fn join(&self, name: &[u8], side: Side) -> Result<RelPath, SnapshotError> {
        RelPath::new(self.with(name)).map_err(|e| {
            let blame = side.tree.or(side.meta).unwrap_or(ObjectId::null(gix::hash::Kind::Sha1));
            damaged(&blame, &e.to_string())
        })
    }

    /// The bytes of that path.
    pub(super) fn with(&self, name: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 1 + name.len());
        bytes.extend_from_slice(&self.bytes);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        bytes
    }

    /// Goes into `name` for as long as `walk` runs.
    pub(super) fn enter<T>(
        &mut self,
        name: &[u8],
        walk: impl FnOnce(&mut Self) -> Result<T, SnapshotError>,
    ) -> Result<T, SnapshotError> {
        if self.depth == DEEPEST {
            return Err(SnapshotError::Other {
                what: "walking a snapshot",
                source: "it is deeper than any path".into(),
            });
        }
        let len = self.bytes.len();
        self.bytes = self.with(name);
        self.depth += 1;
        let done = walk(self);
        self.depth -= 1;
        self.bytes.truncate(len);
        done
    }
}
