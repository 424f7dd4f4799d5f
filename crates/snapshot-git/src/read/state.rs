//! What one path of a snapshot holds.

use std::sync::{Mutex, PoisonError};

use checkpoint_core::{PathState, RelPath, Snapshot, SnapshotError};

use super::node::{Node, Side};
use crate::store::Store;

/// The directories that the last question went through: whoever asks for one path asks for its neighbours next.
#[derive(Debug, Default)]
pub(crate) struct Descent(Mutex<Option<Way>>);

/// From the root of one snapshot to a directory.
#[derive(Debug)]
struct Way {
    root: Side,
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    /// Its name in the directory above; empty for the root.
    name: Vec<u8>,
    node: Node,
    /// It, or a directory above it, was left out.
    left_out: bool,
}

impl Descent {
    /// Forgets it: what it goes through may be gone from the store.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What one path holds. What was skipped, and what lies below something skipped without being captured itself, reads
/// as opaque.
pub(crate) fn state(
    store: &Store,
    descent: &Descent,
    snapshot: &Snapshot,
    path: &RelPath,
) -> Result<PathState, SnapshotError> {
    let mut held = descent.0.lock().unwrap_or_else(PoisonError::into_inner);
    let root = Side::root(snapshot);
    let way = match held.take() {
        Some(way) if way.root == root => way,
        _ => Way { root, levels: vec![Level { name: Vec::new(), node: Node::load(store, root)?, left_out: false }] },
    };
    held.insert(way).state(store, path)
}

/// Where a name leads.
enum Step {
    Is(PathState),
    Below(Side),
}

impl Level {
    fn step(&self, name: &[u8], left_out: bool) -> Step {
        match self.node.children.get(name) {
            Some(child) if child.state.is_dir() => Step::Below(child.side),
            // A file has nothing below it; what was skipped can have.
            Some(_) => Step::Is(PathState::Absent),
            None if left_out => Step::Is(PathState::Opaque),
            // A directory with nothing but skipped entries may be known by its meta tree only.
            None => match self.node.below.get(name) {
                Some(meta) => Step::Below(Side { tree: None, meta: Some(*meta) }),
                None => Step::Is(PathState::Absent),
            },
        }
    }
}

impl Way {
    fn state(&mut self, store: &Store, path: &RelPath) -> Result<PathState, SnapshotError> {
        let mut names: Vec<&[u8]> = path.components().collect();
        let Some(last) = names.pop() else { return Ok(PathState::Absent) };
        let known = names.iter().zip(self.levels.iter().skip(1)).take_while(|(name, level)| **name == level.name);
        let known = known.count();
        self.levels.truncate(known + 1);
        for name in names.into_iter().skip(known) {
            let Some(level) = self.levels.last() else { return Ok(PathState::Absent) };
            let left_out = level.left_out || level.node.skipped.contains_key(name);
            match level.step(name, left_out) {
                Step::Is(state) => return Ok(state),
                Step::Below(side) => {
                    let node = Node::load(store, side)?;
                    self.levels.push(Level { name: name.to_vec(), node, left_out });
                }
            }
        }
        let Some(level) = self.levels.last() else { return Ok(PathState::Absent) };
        let left_out = level.left_out || level.node.skipped.contains_key(last);
        Ok(match level.node.children.get(last) {
            Some(child) => child.state,
            None if left_out => PathState::Opaque,
            None => PathState::Absent,
        })
    }
}
