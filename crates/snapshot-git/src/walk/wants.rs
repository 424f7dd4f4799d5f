//! Who wants a path that a rule leaves out.

use std::sync::Arc;

use checkpoint_core::{RelPath, SkipReason};

use super::{
    Walk,
    node::{Ids, Node},
};
use crate::{
    cache::{Known, Record, flag},
    rules::BaseNames,
};

/// Whether somebody wants a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Want {
    /// Worth a look: the path itself, or something below it.
    pub(super) any: bool,
    /// The path itself.
    pub(super) this: bool,
    /// What the index says of it: bits of [`flag::LOOKED_UP`].
    pub(super) flags: u8,
}

fn looked_up(tracked: bool) -> u8 {
    if tracked { flag::LOOKED_UP } else { flag::JUDGED }
}

/// What the cache says of a name, with the record that says so.
pub(super) type Hint<'r> = Option<(&'r Record, Known)>;

impl Walk<'_> {
    /// Is a file, link or FIFO wanted although a rule leaves it out?
    pub(super) fn want_leaf(&self, node: &Node, path: &[u8], name: &[u8], hint: Hint<'_>) -> Want {
        let Ok(rel) = RelPath::new(path) else { return Want::default() };
        let tracked = self.known_tracked(hint).unwrap_or_else(|| self.s.tracked.contains(path));
        let this =
            tracked || self.s.cover.names(&rel) || (self.base_holds(node, name, hint) && !self.s.cover.released(&rel));
        Want { any: this, this, flags: looked_up(tracked) }
    }

    /// Is a directory, or something below it, wanted although a rule leaves it out for `why`?
    pub(super) fn want_dir(&self, node: &Node, path: &[u8], name: &[u8], why: SkipReason, hint: Hint<'_>) -> Want {
        let Ok(rel) = RelPath::new(path) else { return Want::default() };
        let tracked = self.known_tracked(hint).unwrap_or_else(|| self.s.tracked.contains_below(path));
        let held = self.base_holds(node, name, hint);
        let this = self.s.cover.names(&rel) || (held && !self.s.cover.released(&rel));
        let globs = &self.s.sources.rules.include;
        let any = this
            || tracked
            || held
            || self.s.cover.names_below(&rel)
            || (why == SkipReason::IgnoredRoot && globs.may_match_below(path));
        Want { any, this, flags: looked_up(tracked) }
    }

    /// What the last look at the same index found.
    fn known_tracked(&self, hint: Hint<'_>) -> Option<bool> {
        let (record, entry) = hint?;
        let digest = self.s.tracked.digest;
        let known = digest != 0 && record.head.index == digest && entry.flags & flag::JUDGED != 0;
        known.then_some(entry.flags & flag::TRACKED != 0)
    }

    fn base_holds(&self, node: &Node, name: &[u8], hint: Hint<'_>) -> bool {
        let Some(ids) = self.base_ids(node) else { return false };
        match hint {
            // The base is what the record describes, as it is whenever nothing else has been captured since.
            Some((record, entry)) if (record.head.tree, record.head.meta) == ids => entry.what.is_captured(),
            _ => self.base_names(node, ids).holds(name),
        }
    }

    fn base_names<'n>(&self, node: &'n Node, ids: Ids) -> &'n BaseNames {
        node.base_names.get_or_init(|| self.s.cover.base_names(ids.0, ids.1))
    }

    /// The directory's ids in the base snapshot; `None` where the base has no such directory.
    pub(super) fn base_ids(&self, node: &Node) -> Option<Ids> {
        // From the nearest ancestor that knows, downwards: a recursion would be as deep as the tree.
        let mut chain: Vec<&Node> = Vec::new();
        let mut at = Some(node);
        while let Some(here) = at.filter(|n| n.base.get().is_none()) {
            chain.push(here);
            at = here.parent.as_deref();
        }
        for here in chain.into_iter().rev() {
            let ids = match here.parent.as_ref() {
                None => self.s.base,
                Some(parent) => self.below_base(parent, here),
            };
            here.base.get_or_init(|| ids.filter(|ids| *ids != (None, None)));
        }
        node.base.get().copied().flatten()
    }

    fn below_base(&self, parent: &Arc<Node>, node: &Node) -> Option<Ids> {
        let ids = parent.base.get().copied().flatten()?;
        if let Some(record) = parent.record.get()
            && (record.head.tree, record.head.meta) == ids
        {
            return node.recorded_ids();
        }
        Some(self.base_names(parent, ids).dir(node.name.to_bytes()))
    }
}
