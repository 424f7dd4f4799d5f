//! What differs between two snapshots.

use std::{iter::Peekable, ops::ControlFlow};

use checkpoint_core::{Change, PathState, Snapshot, SnapshotError};

use super::node::{Child, Here, Node, Side};
use crate::store::Store;

/// Visits every path that differs, in path order, without looking into subtrees that are equal in both trees and meta.
///
/// `SnapshotBackend::diff` is the contract. A path that changes its kind is one change; where a directory is involved
/// its content follows as changes of its own. A skipped path reads as absent.
pub(crate) fn diff(
    store: &Store,
    before: &Snapshot,
    after: &Snapshot,
    visit: &mut dyn FnMut(Change) -> ControlFlow<()>,
) -> Result<(), SnapshotError> {
    let sides = (Some(Side::root(before)), Some(Side::root(after)));
    Walk { store, visit, here: Here::default() }.dir(sides).map(drop)
}

struct Walk<'a> {
    store: &'a Store,
    visit: &'a mut dyn FnMut(Change) -> ControlFlow<()>,
    here: Here,
}

impl Walk<'_> {
    fn dir(&mut self, (before, after): (Option<Side>, Option<Side>)) -> Result<ControlFlow<()>, SnapshotError> {
        if before == after {
            return Ok(ControlFlow::Continue(()));
        }
        let load = |side: Option<Side>| side.map(|s| Node::load(self.store, s)).transpose();
        let (old, new) = (load(before)?.unwrap_or_default(), load(after)?.unwrap_or_default());
        let blame = before.or(after).unwrap_or_default();
        for (name, old, new) in merge(old.children.into_iter().peekable(), new.children.into_iter().peekable()) {
            let state = |child: &Option<Child>| child.map_or(PathState::Absent, |c| c.state);
            let below = |child: &Option<Child>| child.filter(|c| c.state.is_dir()).map(|c| c.side);
            let (was, is) = (state(&old), state(&new));
            // Bits of directories on both sides are not compared.
            if was != is && !(was.is_dir() && is.is_dir()) {
                let path = self.here.join(&name, blame)?;
                if (self.visit)(Change { path, before: was, after: is }).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let below = (below(&old), below(&new));
            if below.0 != below.1 {
                let mut here = std::mem::take(&mut self.here);
                let flow = here.enter(&name, |here| {
                    std::mem::swap(&mut self.here, here);
                    let flow = self.dir(below);
                    std::mem::swap(&mut self.here, here);
                    flow
                });
                self.here = here;
                if flow?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

type Children = Peekable<std::collections::btree_map::IntoIter<Vec<u8>, Child>>;

/// Pairs the entries of two directories by name.
fn merge(mut old: Children, mut new: Children) -> impl Iterator<Item = (Vec<u8>, Option<Child>, Option<Child>)> {
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        let first = if order.is_le() { old.next() } else { None };
        let second = if order.is_ge() { new.next() } else { None };
        let name = first.as_ref().or(second.as_ref()).map(|(name, _)| name.clone())?;
        Some((name, first.map(|(_, c)| c), second.map(|(_, c)| c)))
    })
}
