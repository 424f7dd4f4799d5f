//! What a snapshot holds and what it left out.

use std::ops::ControlFlow;

use checkpoint_core::{PathState, RelPath, Skipped, Snapshot, SnapshotError};
use gix::ObjectId;

use super::node::{Here, Node, Side, left_out};
use crate::store::{Store, damaged, to_gix};

/// Visits every path of a snapshot in path order, directories included: all that lies below `under`, which is not
/// visited itself, or everything. An `under` that is no directory has nothing below it.
pub(crate) fn list(
    store: &Store,
    snapshot: &Snapshot,
    under: Option<&RelPath>,
    visit: &mut dyn FnMut(RelPath, PathState) -> ControlFlow<()>,
) -> Result<(), SnapshotError> {
    let mut side = Side::root(snapshot);
    for name in under.iter().flat_map(|p| p.components()) {
        match Node::load(store, side)?.children.get(name) {
            Some(child) if child.state.is_dir() => side = child.side,
            _ => return Ok(()),
        }
    }
    walk(store, side, &mut Here::at(under), visit).map(drop)
}

fn walk(
    store: &Store,
    side: Side,
    here: &mut Here,
    visit: &mut dyn FnMut(RelPath, PathState) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, SnapshotError> {
    for (name, child) in Node::load(store, side)?.children {
        if visit(here.join(&name, side)?, child.state).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if child.state.is_dir() && here.enter(&name, |here| walk(store, child.side, here, visit))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Everything the snapshot left out, in path order.
pub(crate) fn skipped(store: &Store, snapshot: &Snapshot) -> Result<Vec<Skipped>, SnapshotError> {
    let mut all = Vec::new();
    collect(store, &to_gix(&snapshot.meta), &mut Here::default(), &mut all)?;
    Ok(all)
}

fn collect(store: &Store, meta: &ObjectId, here: &mut Here, all: &mut Vec<Skipped>) -> Result<(), SnapshotError> {
    let (skipped, below) = left_out(store, meta)?;
    let names: std::collections::BTreeSet<&Vec<u8>> = skipped.keys().chain(below.keys()).collect();
    for name in names {
        if let Some(reason) = skipped.get(name) {
            // A `.git` may be named here, and only here.
            let path = RelPath::new_unreserved(here.with(name)).map_err(|e| damaged(meta, &e.to_string()))?;
            all.push(Skipped { path, reason: *reason });
        }
        if let Some(meta) = below.get(name) {
            here.enter(name, |here| collect(store, meta, here, all))?;
        }
    }
    Ok(())
}
