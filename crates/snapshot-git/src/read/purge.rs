//! Snapshots without some of what they hold.
//!
//! A path that goes is listed as `purged` in its directory's meta blob, so that it reads as left out. Directories that
//! hold nothing of it keep their trees. What one snapshot's directory came to is remembered by path and trees, so many
//! snapshots of one workspace cost little more than one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use checkpoint_core::{Holding, RelPath, Removal, SkipReason, Snapshot, SnapshotError};
use gix::{
    ObjectId,
    objs::{Kind, tree::EntryKind},
};

use super::node::{Here, Node, Side, entries};
use crate::{
    meta::{BLOB, DIR_PREFIX, DirMeta},
    rules::{GITIGNORE, RWDIGNORE, file_key},
    store::{Store, Worker, damaged, object_id, to_core, to_gix},
    tree::{Line, TREE, tree_body},
};

/// What stands for rules that went: everything is left out, so that nothing counts as proven absent on their word.
const LEAVE_OUT_ALL: &[u8] = b"*\n";

/// Where a directory is and what it is: two snapshots that agree in this agree in all below.
type Key = (Vec<u8>, Side);

/// `SnapshotBackend::find`.
pub(crate) fn find(
    store: &Store,
    snapshots: &[Snapshot],
    removal: &Removal<'_>,
) -> Vec<Result<Holding, SnapshotError>> {
    let mut known = HashMap::new();
    let mut holding = |snapshot| {
        let found = find_below(store, removal, Side::root(snapshot), &mut Here::default(), &mut known)?;
        Ok(found.to_vec())
    };
    snapshots.iter().map(&mut holding).collect()
}

fn find_below(
    store: &Store,
    removal: &Removal<'_>,
    side: Side,
    here: &mut Here,
    known: &mut HashMap<Key, Arc<Holding>>,
) -> Result<Arc<Holding>, SnapshotError> {
    let key = (here.with(b""), side);
    if let Some(found) = known.get(&key) {
        return Ok(Arc::clone(found));
    }
    let mut holding = Holding::new();
    for (name, child) in Node::load(store, side)?.children {
        let path = here.join(&name, side)?;
        let goes = (removal.picks)(&path) || child.state.blob().is_some_and(|blob| removal.blobs.contains(&blob));
        if goes {
            holding.push((path, child.state));
        }
        if child.state.is_dir() {
            let below = here.enter(&name, |here| find_below(store, removal, child.side, here, known))?;
            holding.extend(below.iter().cloned());
        }
    }
    let holding = Arc::new(holding);
    known.insert(key, Arc::clone(&holding));
    Ok(holding)
}

/// `SnapshotBackend::without`, but for the epoch.
pub(crate) fn without(
    store: &Store,
    snapshots: &[Snapshot],
    removal: &Removal<'_>,
) -> Result<Vec<Snapshot>, SnapshotError> {
    store.refresh()?;
    let batch = store.batch(true);
    let mut rewrite = Rewrite { store, removal, worker: batch.worker(), known: HashMap::new() };
    let new = snapshots.iter().map(|snapshot| rewrite.root(snapshot)).collect::<Result<Vec<_>, _>>();
    drop(rewrite);
    let new = new?;
    batch.finish()?;
    Ok(new)
}

/// What became of a directory: its trees, and the rule files that went from it and from below.
type Rewritten = (Side, Arc<Vec<Vec<u8>>>);

struct Rewrite<'a, 'b, 's> {
    store: &'s Store,
    removal: &'a Removal<'a>,
    worker: Worker<'b, 's>,
    known: HashMap<Key, Rewritten>,
}

/// A directory as it is stored, to be written again.
struct Dir {
    /// Entries of the tree.
    tree: BTreeMap<Vec<u8>, (EntryKind, ObjectId)>,
    /// Meta trees of subdirectories, by name.
    below: BTreeMap<Vec<u8>, ObjectId>,
    /// Entries of the meta tree that this version does not know.
    unknown: Vec<(Vec<u8>, EntryKind, ObjectId)>,
    /// The meta blob as it was.
    blob: Option<Vec<u8>>,
    meta: DirMeta,
}

impl Dir {
    fn load(store: &Store, side: Side) -> Result<Self, SnapshotError> {
        let mut dir = Self {
            tree: BTreeMap::new(),
            below: BTreeMap::new(),
            unknown: Vec::new(),
            blob: None,
            meta: DirMeta::default(),
        };
        if let Some(tree) = side.tree {
            for (name, kind, id) in entries(store, &tree)? {
                if kind == EntryKind::Commit {
                    return Err(damaged(&tree, "a commit where only files and directories can be"));
                }
                dir.tree.insert(name, (kind, id));
            }
        }
        for (name, kind, id) in side.meta.map(|meta| entries(store, &meta)).transpose()?.unwrap_or_default() {
            match (kind, name.split_first()) {
                (EntryKind::Blob, _) if name == BLOB => {
                    dir.meta = super::node::dir_meta(store, &id)?;
                    dir.blob = Some(store.read(&id, Kind::Blob)?);
                }
                (EntryKind::Tree, Some((&DIR_PREFIX, name))) => drop(dir.below.insert(name.to_vec(), id)),
                _ => dir.unknown.push((name, kind, id)),
            }
        }
        Ok(dir)
    }

    /// Forgets an entry and lists it as purged.
    fn purge(&mut self, name: &[u8]) {
        self.tree.remove(name);
        self.below.remove(name);
        self.meta.modes.remove(name);
        self.meta.fifos.remove(name);
        self.meta.empty.retain(|empty| empty != name);
        self.meta.skipped.insert(name.to_vec(), SkipReason::Purged);
    }
}

impl Rewrite<'_, '_, '_> {
    fn root(&mut self, snapshot: &Snapshot) -> Result<Snapshot, SnapshotError> {
        let (side, _) = self.dir(Side::root(snapshot), &mut Here::default())?;
        let missing = || damaged(&to_gix(&snapshot.tree), "the root has no tree");
        Ok(Snapshot { tree: to_core(&side.tree.ok_or_else(missing)?), meta: to_core(&side.meta.ok_or_else(missing)?) })
    }

    /// Takes lost rules out of what the root keeps of rules; true when that changed something.
    fn rules(&self, dir: &mut Dir, lost: &[Vec<u8>]) -> Result<bool, SnapshotError> {
        let above = dir.meta.rules.get(&b"above"[..]).cloned().unwrap_or_default();
        let mut rules = dir.meta.rules.clone();
        for path in lost {
            rules.insert(file_key(&[&above[..], path].concat()), LEAVE_OUT_ALL.to_vec());
        }
        for (key, content) in &mut rules {
            if self.is_lost(key, &above, content)? {
                *content = LEAVE_OUT_ALL.to_vec();
            }
        }
        let changed = rules != dir.meta.rules;
        dir.meta.rules = rules;
        Ok(changed)
    }

    /// Are these rules content that goes, or those of a path that goes?
    fn is_lost(&self, key: &[u8], above: &[u8], content: &[u8]) -> Result<bool, SnapshotError> {
        let is_file = matches!(key, b"info-exclude" | b"excludes-file") || key.starts_with(b"file:");
        if !is_file {
            return Ok(false);
        }
        let path = key.strip_prefix(b"file:").and_then(|path| path.strip_prefix(above));
        let picked = path.and_then(|path| RelPath::new(path).ok()).is_some_and(|path| (self.removal.picks)(&path));
        Ok(picked || self.removal.blobs.contains(&to_core(&object_id(Kind::Blob, content)?)))
    }

    fn dir(&mut self, side: Side, here: &mut Here) -> Result<Rewritten, SnapshotError> {
        let key = (here.with(b""), side);
        if let Some((side, rules)) = self.known.get(&key) {
            return Ok((*side, Arc::clone(rules)));
        }
        let mut dir = Dir::load(self.store, side)?;
        let mut lost_rules = Vec::new();
        let mut changed = false;
        let fifos = dir.meta.fifos.keys().map(|name| (name.clone(), None));
        let empty = dir.meta.empty.iter().map(|name| (name.clone(), None));
        let tree = dir.tree.iter().map(|(name, entry)| (name.clone(), Some(*entry)));
        let all: Vec<_> = fifos.chain(empty).chain(tree).collect();
        for (name, entry) in all {
            let path = here.join(&name, side)?;
            let content = entry.filter(|(kind, _)| *kind != EntryKind::Tree).map(|(_, id)| to_core(&id));
            if (self.removal.picks)(&path) || content.is_some_and(|id| self.removal.blobs.contains(&id)) {
                dir.purge(&name);
                changed = true;
                if content.is_some() && (name == GITIGNORE || name == RWDIGNORE) {
                    lost_rules.push(path.as_bytes().to_vec());
                }
                continue;
            }
            let below = Side {
                tree: entry.filter(|(kind, _)| *kind == EntryKind::Tree).map(|(_, id)| id),
                meta: dir.below.get(&name).copied(),
            };
            if content.is_some() || dir.meta.fifos.contains_key(&name) || below == Side::default() {
                continue;
            }
            let (new, rules) = here.enter(&name, |here| self.dir(below, here))?;
            lost_rules.extend(rules.iter().cloned());
            if new == below {
                continue;
            }
            changed = true;
            match new.meta {
                Some(meta) => drop(dir.below.insert(name.clone(), meta)),
                None => drop(dir.below.remove(&name)),
            }
            match new.tree {
                Some(id) => drop(dir.tree.insert(name, (EntryKind::Tree, id))),
                // Nothing that a git tree can hold is left, so it is listed by name.
                None if dir.tree.remove(&name).is_some() => dir.meta.empty.push(name),
                None => {}
            }
        }
        let is_root = key.0.is_empty();
        changed |= is_root && self.rules(&mut dir, &lost_rules)?;
        let new = if changed { self.write(&dir, is_root)? } else { side };
        let lost_rules = Arc::new(lost_rules);
        self.known.insert(key, (new, Arc::clone(&lost_rules)));
        Ok((new, lost_rules))
    }

    fn write(&mut self, dir: &Dir, is_root: bool) -> Result<Side, SnapshotError> {
        let lines = dir.tree.iter().map(|(name, (kind, id))| line(*kind, name, id)).collect();
        let tree = self.tree(lines, is_root)?;
        let blob = dir.meta.encode_over(dir.blob.as_deref()).map(|body| self.add(Kind::Blob, &body)).transpose()?;
        let below: Vec<(Vec<u8>, ObjectId)> =
            dir.below.iter().map(|(name, id)| ([&[DIR_PREFIX], &name[..]].concat(), *id)).collect();
        let mut lines: Vec<Line<'_>> = below.iter().map(|(name, id)| line(EntryKind::Tree, name, id)).collect();
        lines.extend(blob.as_ref().map(|id| line(EntryKind::Blob, BLOB, id)));
        lines.extend(dir.unknown.iter().map(|(name, kind, id)| line(*kind, name, id)));
        Ok(Side { tree, meta: self.tree(lines, is_root)? })
    }

    fn tree(&mut self, lines: Vec<Line<'_>>, even_empty: bool) -> Result<Option<ObjectId>, SnapshotError> {
        if lines.is_empty() && !even_empty {
            return Ok(None);
        }
        self.add(Kind::Tree, &tree_body(lines)).map(Some)
    }

    fn add(&mut self, kind: Kind, body: &[u8]) -> Result<ObjectId, SnapshotError> {
        let id = object_id(kind, body)?;
        self.worker.add(kind, id, body)?;
        Ok(id)
    }
}

fn line<'n>(kind: EntryKind, name: &'n [u8], id: &ObjectId) -> Line<'n> {
    let mode: &'static [u8] = match kind {
        EntryKind::Tree => TREE,
        EntryKind::Blob => b"100644",
        EntryKind::BlobExecutable => b"100755",
        EntryKind::Link => b"120000",
        EntryKind::Commit => b"160000",
    };
    Line::new(mode, name, to_core(id))
}
