//! States in git object databases that are not ours, read only: what another tool kept, and the user's own repository.
//!
//! No `git` is run, no configuration is read, nothing is written. Alternates are followed, so that a state is read while
//! the objects it borrows are still there.

use std::{
    io::{Cursor, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use checkpoint_core::{Part, RelPath, SkipReason, Skipped, SnapshotError, StateSource};
use gix::{
    ObjectId,
    objs::{CommitRefIter, Find, Kind, TreeRefIter, tree::EntryKind},
};

use crate::{
    assemble::part_kind,
    read::is_deepest,
    store::{damaged, to_core, to_gix},
    user_repo::UserRepo,
};

/// More paths than any workspace has: trees that name each other many times over must not fill the memory.
const MOST: usize = 4_000_000;

/// An object database of somebody else.
#[derive(Clone)]
pub struct OtherObjects {
    dir: PathBuf,
    store: Arc<gix::odb::Store>,
    /// Path of the workspace's root from the top of the trees, with a slash at the end, or empty.
    above: Vec<u8>,
}

impl std::fmt::Debug for OtherObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherObjects").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl OtherObjects {
    /// Opens the directory `objects` of a git repository. Trees begin at the workspace's root.
    ///
    /// # Errors
    /// When it is no directory, or its alternates cannot be made sense of.
    pub fn open(objects: &Path) -> Result<Self, SnapshotError> {
        Self::with(objects.to_owned(), Vec::new())
    }

    /// The objects of the repository that the workspace at `root` lies in; `None` where there is none. Trees begin at the
    /// top of its worktree, and only what lies below `root` is read.
    ///
    /// # Errors
    /// As [`OtherObjects::open`].
    pub fn of_workspace(root: &Path) -> Result<Option<Self>, SnapshotError> {
        let Some(repo) = UserRepo::discover(root) else { return Ok(None) };
        Self::with(repo.common_dir.join("objects"), repo.above).map(Some)
    }

    fn with(dir: PathBuf, above: Vec<u8>) -> Result<Self, SnapshotError> {
        let io = |source| SnapshotError::Io { path: dir.clone(), source };
        if !std::fs::metadata(&dir).map_err(io)?.is_dir() {
            return Err(io(std::io::ErrorKind::NotADirectory.into()));
        }
        let slots = gix::odb::store::init::Slots::Given(1024);
        let options = gix::odb::store::init::Options { slots, ..Default::default() };
        let hash = gix::hash::Kind::Sha1;
        let store = gix::odb::Store::at_opts(dir.clone(), hash, &mut std::iter::empty(), options).map_err(io)?;
        Ok(Self { dir, store: Arc::new(store), above })
    }

    /// The state that the tree or commit `id` holds, 40 hexadecimal digits. Looks at nothing yet.
    ///
    /// # Errors
    /// When `id` is no such thing (contract 002-19).
    pub fn state(&self, id: &str) -> Result<OtherState, SnapshotError> {
        let refused = |why: &'static str| SnapshotError::Other { what: "the id is refused", source: why.into() };
        let hex = id.bytes().all(|b| b.is_ascii_hexdigit());
        match id.len() {
            40 if hex => {}
            64 if hex => return Err(refused("it is one of SHA-256, which is not supported")),
            _ => return Err(refused("it is no object id of 40 hexadecimal digits")),
        }
        let id = ObjectId::from_hex(id.to_ascii_lowercase().as_bytes()).map_err(|_| refused("it is no object id"))?;
        Ok(OtherState { objects: self.clone(), id })
    }

    fn read(&self, id: &ObjectId) -> Result<(Kind, Vec<u8>), SnapshotError> {
        if id.is_empty_tree() {
            return Ok((Kind::Tree, Vec::new()));
        }
        let mut body = Vec::new();
        let found = self.store.to_handle_arc().try_find(id, &mut body).map_err(|e| damaged(id, &chain(&e)))?;
        let kind = found.map(|data| data.kind).ok_or_else(|| SnapshotError::Missing { id: to_core(id) })?;
        Ok((kind, body))
    }

    fn tree(&self, id: &ObjectId) -> Result<Vec<(Vec<u8>, EntryKind, ObjectId)>, SnapshotError> {
        let (kind, body) = self.read(id)?;
        if kind != Kind::Tree {
            return Err(damaged(id, "it is no tree"));
        }
        // Trees decide which paths there are: they are believed only when they are what they are called by.
        if crate::store::object_id(Kind::Tree, &body)? != *id {
            return Err(damaged(id, "its content is not what its id says"));
        }
        let entry = |entry: Result<gix::objs::tree::EntryRef<'_>, _>| {
            let entry = entry.map_err(|_| damaged(id, "it cannot be read as a tree"))?;
            Ok((entry.filename.to_vec(), entry.mode.kind(), entry.oid.to_owned()))
        };
        TreeRefIter::from_bytes(&body, gix::hash::Kind::Sha1).map(entry).collect()
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

/// A state in an [`OtherObjects`].
#[derive(Clone, Debug)]
pub struct OtherState {
    objects: OtherObjects,
    id: ObjectId,
}

impl OtherState {
    /// The tree of the workspace's root; `None` when it did not exist.
    fn root(&self) -> Result<Option<ObjectId>, SnapshotError> {
        let (kind, body) = self.objects.read(&self.id)?;
        let mut tree = match kind {
            Kind::Tree => self.id,
            Kind::Commit => CommitRefIter::from_bytes(&body, gix::hash::Kind::Sha1)
                .tree_id()
                .map_err(|_| damaged(&self.id, "it cannot be read as a commit"))?,
            _ => return Err(damaged(&self.id, "it is neither a tree nor a commit")),
        };
        for name in self.objects.above.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            let below = self.objects.tree(&tree)?.into_iter().find(|(entry, _, _)| entry == name);
            match below {
                Some((_, EntryKind::Tree, id)) => tree = id,
                _ => return Ok(None),
            }
        }
        Ok(Some(tree))
    }
}

impl StateSource for OtherState {
    fn parts(&self) -> Result<(Vec<Part>, Vec<Skipped>), SnapshotError> {
        let (mut parts, mut skipped) = (Vec::new(), Vec::new());
        let mut todo: Vec<(Option<RelPath>, ObjectId)> = self.root()?.map(|tree| (None, tree)).into_iter().collect();
        let mut met = 0_usize;
        while let Some((dir, tree)) = todo.pop() {
            for (name, kind, id) in self.objects.tree(&tree)? {
                met += 1;
                // A name with a slash is no name, and would be read as a path here.
                let path = if name.contains(&b'/') {
                    Err(None)
                } else {
                    match &dir {
                        Some(dir) => dir.join(&name),
                        None => RelPath::new(name.clone()),
                    }
                    .map_err(Some)
                };
                let path = path.map_err(|error| {
                    let why = error.map_or_else(|| "a name holds a slash".to_owned(), |error| error.to_string());
                    SnapshotError::Other { what: "a path is refused", source: why.into() }
                })?;
                if met > MOST || is_deepest(path.as_bytes().len()) {
                    return Err(damaged(&tree, "it holds more, or deeper, than any workspace"));
                }
                match part_kind(kind) {
                    Some(kind) => parts.push(Part { path, kind, blob: Some(to_core(&id)) }),
                    None if kind == EntryKind::Tree => todo.push((Some(path), id)),
                    None => skipped.push(Skipped { path, reason: SkipReason::NestedRepo }),
                }
            }
        }
        Ok((parts, skipped))
    }

    fn open(&self, part: &Part) -> Result<(u64, Box<dyn Read + '_>), SnapshotError> {
        let refused = || SnapshotError::Other { what: "the content has no id", source: part.path.to_lossy().into() };
        let id = to_gix(&part.blob.ok_or_else(refused)?);
        let (kind, body) = self.objects.read(&id)?;
        if kind != Kind::Blob {
            return Err(damaged(&id, "it is no file"));
        }
        Ok((body.len() as u64, Box::new(Cursor::new(body))))
    }
}
