//! What differs between two snapshots.

use std::{collections::VecDeque, iter::Peekable, ops::ControlFlow};

use checkpoint_core::{Change, PathState, Snapshot, SnapshotError, parallel::map_each_in_parallel};

use super::node::{Child, Here, Node, Side};
use crate::store::Store;

/// Entries of a directory that are looked into before the first of their changes is visited: a visit may end it all.
const AT_A_TIME: usize = 256;
/// With fewer differing directories than this the threads cost more than they save.
const WORTH_IT: usize = 4;

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
    Walk { store, visit, here: Here::default(), together: true }.dir(sides).map(drop)
}

/// A directory on both sides; `None` where there is none.
type Sides = (Option<Side>, Option<Side>);

struct Walk<'a> {
    store: &'a Store,
    visit: &'a mut dyn FnMut(Change) -> ControlFlow<()>,
    here: Here,
    /// Many directories may be looked into at a time.
    together: bool,
}

impl Walk<'_> {
    fn dir(&mut self, (before, after): Sides) -> Result<ControlFlow<()>, SnapshotError> {
        if before == after {
            return Ok(ControlFlow::Continue(()));
        }
        let load = |side: Option<Side>| side.map(|s| Node::load(self.store, s)).transpose();
        let (old, new) = (load(before)?.unwrap_or_default(), load(after)?.unwrap_or_default());
        let blame = before.or(after).unwrap_or_default();
        let pairs: Vec<Pair> =
            merge(old.children.into_iter().peekable(), new.children.into_iter().peekable()).collect();
        for some in pairs.chunks(AT_A_TIME) {
            let mut looked = self.look(some);
            for pair in some {
                let (was, is) = pair.states();
                // Bits of directories on both sides are not compared.
                if was != is && !(was.is_dir() && is.is_dir()) {
                    let path = self.here.join(&pair.0, blame)?;
                    if (self.visit)(Change { path, before: was, after: is }).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                let Some(below) = pair.below() else { continue };
                let flow = match looked.pop_front() {
                    Some(changes) => changes?.into_iter().try_for_each(&mut *self.visit),
                    None => self.enter(&pair.0, below)?,
                };
                if flow.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn enter(&mut self, name: &[u8], below: Sides) -> Result<ControlFlow<()>, SnapshotError> {
        let mut here = std::mem::take(&mut self.here);
        let flow = here.enter(name, |here| {
            std::mem::swap(&mut self.here, here);
            let flow = self.dir(below);
            std::mem::swap(&mut self.here, here);
            flow
        });
        self.here = here;
        flow
    }

    /// What changed below those directories that differ, each by itself and several at a time; nothing where they are too
    /// few to be worth it.
    fn look(&self, some: &[Pair]) -> VecDeque<Result<Vec<Change>, SnapshotError>> {
        let differing: Vec<(&[u8], Sides)> = some.iter().filter_map(|pair| Some((&*pair.0, pair.below()?))).collect();
        if !self.together || differing.len() < WORTH_IT {
            return VecDeque::new();
        }
        let (store, here) = (self.store, &self.here);
        let look = |(name, below): &(&[u8], Sides)| {
            let mut changes = Vec::new();
            let mut visit = |change| {
                changes.push(change);
                ControlFlow::Continue(())
            };
            let mut walk = Walk { store, visit: &mut visit, here: here.clone(), together: false };
            walk.enter(name, *below).map(|_never_ended| changes)
        };
        map_each_in_parallel(&differing, look).into()
    }
}

/// An entry of a directory on both sides.
struct Pair(Vec<u8>, Option<Child>, Option<Child>);

impl Pair {
    fn states(&self) -> (PathState, PathState) {
        let state = |child: &Option<Child>| child.map_or(PathState::Absent, |c| c.state);
        (state(&self.1), state(&self.2))
    }

    /// The directories, where something below them may differ.
    fn below(&self) -> Option<Sides> {
        let below = |child: &Option<Child>| child.filter(|c| c.state.is_dir()).map(|c| c.side);
        let (old, new) = (below(&self.1), below(&self.2));
        (old != new).then_some((old, new))
    }
}

type Children = Peekable<std::collections::btree_map::IntoIter<Vec<u8>, Child>>;

/// Pairs the entries of two directories by name.
fn merge(mut old: Children, mut new: Children) -> impl Iterator<Item = Pair> {
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
        Some(Pair(name, first.map(|(_, c)| c), second.map(|(_, c)| c)))
    })
}
