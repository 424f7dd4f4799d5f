//! Snapshots of states that were not captured here: content is copied in, trees are built from the list of paths.
//!
//! Nothing is known of such a state but what it lists, so the meta tree has only the permission bits of files that
//! differ from the usual ones, and what was left out; there are no rules.

use std::collections::BTreeMap;

use checkpoint_core::{
    Assembled, Mode, Part, PartKind, Progress, RelPath, SkipReason, Snapshot, SnapshotError, StateSource,
};
use gix::{
    ObjectId,
    objs::{Kind, tree::EntryKind},
};

use crate::{
    meta::{BLOB, DIR_PREFIX, DirMeta, ModeClass},
    read::is_deepest,
    store::{Batch, Store, Worker, object_id, to_core, to_gix},
    tree::{Line, TREE, tree_body},
};

/// `SnapshotBackend::assemble`.
pub(crate) fn assemble(
    store: &Store,
    sources: &[&dyn StateSource],
    budget: u64,
    progress: &dyn Progress,
) -> Result<Vec<Result<Assembled, SnapshotError>>, SnapshotError> {
    // A stale list could vouch for what another process has collected.
    store.refresh()?;
    let batch = store.batch(true);
    let mut results = Vec::with_capacity(sources.len());
    for (at, source) in sources.iter().enumerate() {
        if progress.tick("taking states over", at as u64, Some(sources.len() as u64)).is_break() {
            return Err(SnapshotError::Interrupted);
        }
        results.push(one(&batch, *source, budget));
    }
    batch.finish()?;
    Ok(results)
}

fn one(batch: &Batch<'_>, source: &dyn StateSource, budget: u64) -> Result<Assembled, SnapshotError> {
    let before = batch.bytes();
    let mut top = Dir::default();
    let (parts, skipped) = source.parts()?;
    for skipped in &skipped {
        let dir = top.dir_of(&skipped.path)?;
        dir.skipped.insert(skipped.path.name().to_vec(), skipped.reason);
    }
    let mut worker = batch.worker();
    for part in &parts {
        let id = content(batch, &mut worker, source, part, budget)?;
        top.put(part, id)?;
    }
    let (tree, meta) = top.write(&mut worker, true)?;
    let root = |id: Option<ObjectId>| id.map(|id| to_core(&id)).ok_or_else(|| refused("the root has no tree"));
    Ok(Assembled {
        snapshot: Snapshot { tree: root(tree)?, meta: root(meta)? },
        files: parts.len() as u64,
        skipped: skipped.len() as u64,
        new_bytes: batch.bytes().saturating_sub(before),
    })
}

/// Copies the content of one part in.
fn content(
    batch: &Batch<'_>,
    worker: &mut Worker<'_, '_>,
    source: &dyn StateSource,
    part: &Part,
    budget: u64,
) -> Result<ObjectId, SnapshotError> {
    let known = part.blob.as_ref().map(to_gix);
    if let Some(id) = known.filter(|id| batch.contains(id)) {
        return Ok(id);
    }
    let (len, mut bytes) = source.open(part)?;
    if batch.bytes().saturating_add(len) > budget {
        return Err(SnapshotError::NoSpace { needed: len });
    }
    match known {
        Some(id) => worker.add_stream(id, len, &mut bytes).map(|_| id).map_err(|error| match error {
            // It is what it is called by, so it cannot have changed.
            SnapshotError::ChangedWhileReading => {
                SnapshotError::Damaged { id: to_core(&id), source: "its content is not what its id says".into() }
            }
            other => other,
        }),
        None => worker.put_stream(len, &mut bytes),
    }
}

fn refused(why: &str) -> SnapshotError {
    SnapshotError::Other { what: "the state makes no sense", source: why.into() }
}

/// A directory on its way.
#[derive(Debug, Default)]
struct Dir {
    leaves: BTreeMap<Vec<u8>, (PartKind, ObjectId)>,
    dirs: BTreeMap<Vec<u8>, Dir>,
    skipped: BTreeMap<Vec<u8>, SkipReason>,
}

impl Dir {
    /// The directory that holds `path`, made where it is missing.
    fn dir_of(&mut self, path: &RelPath) -> Result<&mut Self, SnapshotError> {
        if is_deepest(path.as_bytes().len()) {
            return Err(refused("a path is longer than any that a system call takes"));
        }
        let mut dir = self;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                break;
            }
            if dir.leaves.contains_key(name) {
                return Err(clash(path));
            }
            dir = dir.dirs.entry(name.to_vec()).or_default();
        }
        Ok(dir)
    }

    fn put(&mut self, part: &Part, id: ObjectId) -> Result<(), SnapshotError> {
        let name = part.path.name();
        let dir = self.dir_of(&part.path)?;
        if dir.dirs.contains_key(name) || dir.skipped.contains_key(name) || dir.leaves.contains_key(name) {
            return Err(clash(&part.path));
        }
        dir.leaves.insert(name.to_vec(), (part.kind, id));
        Ok(())
    }

    /// Its tree and its meta tree; those of the root always exist.
    fn write(
        &self,
        worker: &mut Worker<'_, '_>,
        is_root: bool,
    ) -> Result<(Option<ObjectId>, Option<ObjectId>), SnapshotError> {
        let mut own = DirMeta { skipped: self.skipped.clone(), ..DirMeta::default() };
        let (mut trees, mut metas) = (Vec::new(), Vec::new());
        for (name, dir) in &self.dirs {
            let (tree, meta) = dir.write(worker, false)?;
            trees.extend(tree.map(|id| (name, id)));
            metas.extend(meta.map(|id| ([&[DIR_PREFIX], &name[..]].concat(), id)));
        }
        let modes: Vec<(&[u8], ModeClass, Mode)> =
            self.leaves.iter().filter_map(|(name, (kind, _))| mode(name, *kind)).collect();
        own.set_modes(modes.into_iter());
        let leaves = self.leaves.iter().map(|(name, (kind, id))| {
            let mode: &'static [u8] = match kind {
                PartKind::File(mode) if mode.is_executable() => b"100755",
                PartKind::File(_) => b"100644",
                PartKind::Link => b"120000",
            };
            Line::new(mode, name, to_core(id))
        });
        let dirs = trees.iter().map(|(name, id)| Line::new(TREE, name, to_core(id)));
        let tree = add_tree(worker, leaves.chain(dirs).collect(), is_root)?;
        let blob = own.encode().map(|body| add(worker, Kind::Blob, &body)).transpose()?;
        let mut lines: Vec<Line<'_>> = metas.iter().map(|(name, id)| Line::new(TREE, name, to_core(id))).collect();
        lines.extend(blob.map(|id| Line::new(b"100644", BLOB, to_core(&id))));
        Ok((tree, add_tree(worker, lines, is_root)?))
    }
}

fn mode(name: &[u8], kind: PartKind) -> Option<(&[u8], ModeClass, Mode)> {
    match kind {
        PartKind::File(mode) if mode.is_executable() => Some((name, ModeClass::Executable, mode)),
        PartKind::File(mode) => Some((name, ModeClass::File, mode)),
        PartKind::Link => None,
    }
}

fn clash(path: &RelPath) -> SnapshotError {
    SnapshotError::Other { what: "the state makes no sense", source: format!("{path} is there twice").into() }
}

fn add_tree(
    worker: &mut Worker<'_, '_>,
    lines: Vec<Line<'_>>,
    even_empty: bool,
) -> Result<Option<ObjectId>, SnapshotError> {
    if lines.is_empty() && !even_empty {
        return Ok(None);
    }
    add(worker, Kind::Tree, &tree_body(lines)).map(Some)
}

fn add(worker: &mut Worker<'_, '_>, kind: Kind, body: &[u8]) -> Result<ObjectId, SnapshotError> {
    let id = object_id(kind, body)?;
    worker.add(kind, id, body)?;
    Ok(id)
}

/// What a git tree says of an entry, as a part; `None` for one that is no file and no link.
pub(crate) const fn part_kind(kind: EntryKind) -> Option<PartKind> {
    match kind {
        EntryKind::Blob => Some(PartKind::File(Mode(0o644))),
        EntryKind::BlobExecutable => Some(PartKind::File(Mode(0o755))),
        EntryKind::Link => Some(PartKind::Link),
        EntryKind::Tree | EntryKind::Commit => None,
    }
}
