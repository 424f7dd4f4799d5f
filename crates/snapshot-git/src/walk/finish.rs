//! Bottom-up: from the entries of a finished directory to its tree, its meta tree and its record.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use checkpoint_core::{Mode, ObjectId, RelPath, SkipReason, Skipped, SnapshotError};
use gix::objs::Kind;

use super::{
    Hand, Walk,
    facts::Trust,
    leaf::Leaf,
    lock,
    node::{Ids, Node, Outcome, State},
};
use crate::{
    cache::{Entry, Head, Record, Stamp, What, dir_flag, encode, flag, frame},
    meta::{BLOB, DIR_PREFIX, DirMeta, ModeClass},
    rules::{Digest, digest, file_key},
    tree::{Line, TREE, tree_body},
};

impl<'a> Walk<'a> {
    /// One part of a directory is done: itself, a chunk of its files, a directory below. The last one finishes it,
    /// and so on upwards.
    pub(super) fn done(&self, hand: &mut Hand<'a>, node: &Arc<Node>) {
        let mut node = node.clone();
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            let outcome = self.finish(hand, &node);
            let Some(parent) = node.parent.clone() else {
                *lock(&self.root) = Some(outcome);
                return;
            };
            self.deliver(hand, &parent, &node, outcome);
            node = parent;
        }
    }

    /// Tells a directory how one below it ended.
    fn deliver(&self, hand: &mut Hand<'a>, parent: &Arc<Node>, node: &Node, outcome: Outcome) {
        let name = node.name.to_bytes();
        let all = node.entry_flags | node.state().entry_flags;
        let kept = all & flag::LOOKED_UP;
        let (what, mode, flags) = match outcome {
            Outcome::Captured((tree, meta)) => (What::Dir(tree, meta), node.state().mode, all),
            Outcome::Skipped(why) => (What::Skipped(why, true), 0, kept),
            Outcome::Gone => (What::Gone, 0, 0),
            Outcome::Swapped => {
                let found = match self.dir_fd(parent) {
                    Ok(fd) => {
                        let fd: &rustix::fd::OwnedFd = &fd;
                        self.leaf(hand, parent, rustix::fd::AsFd::as_fd(fd), &node.name, node.entry_flags, None)
                    }
                    Err(_) => Leaf::Is(What::Gone, 0, 0),
                };
                match found {
                    Leaf::Is(what, mode, flags) => (what, mode, flags),
                    Leaf::Later => return,
                    Leaf::Dir => (What::Skipped(SkipReason::ChangedWhileReading, true), 0, kept),
                }
            }
        };
        Self::note(hand, parent, Entry { name: name.into(), what, mode, flags }, node.recorded);
    }

    fn finish(&self, hand: &mut Hand<'a>, node: &Node) -> Outcome {
        let mut state = std::mem::take(&mut *node.state());
        // What the parent and directories below still ask for.
        {
            let mut kept = node.state();
            kept.mode = state.mode;
            kept.dev = state.dev;
            kept.stamp = state.stamp;
            kept.entry_flags = state.entry_flags;
        }
        if state.fd.take().is_some() {
            self.open_dirs.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(outcome) = state.outcome {
            return outcome;
        }
        if self.stop.load(Ordering::Relaxed) {
            return Outcome::Gone;
        }
        self.build(hand, node, state).unwrap_or_else(|error| {
            self.fail(error);
            Outcome::Gone
        })
    }

    fn build(&self, hand: &mut Hand<'a>, node: &Node, mut state: State) -> Result<Outcome, SnapshotError> {
        let record = node.record.get();
        let extra = if node.is_root() { self.loose_digest() } else { [0; 16] };
        let same = |record: &&Record| {
            // Whether it is wanted for its own sake is no matter of its stamps.
            let hollow = || !record.entries().any(|e| e.known.what.is_captured());
            let collapses = state.closed.is_some() && !node.wanted && hollow();
            state.over_record
                && !state.dirty
                && record.head.extra == extra
                && record.has(dir_flag::COLLAPSED) == collapses
        };
        if let Some(record) = record.filter(same) {
            return Ok(Self::unchanged(hand, node, record, state.closed));
        }
        let mut entries = std::mem::take(&mut state.entries);
        if let Some(record) = record.filter(|_| state.over_record) {
            entries = merge(record, entries);
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        // A late file and a swap may have told of the same name twice.
        entries.dedup_by(|a, b| a.name == b.name);
        self.mark_racy(&mut entries, state.window);
        let captured = entries.iter().any(|e| e.what.is_captured());
        let collapsed = state.closed.filter(|_| !captured && !node.wanted);
        let ids = if collapsed.is_some() {
            (None, None)
        } else {
            Self::emit_skipped(hand, node, entries.iter().map(|e| (&*e.name, e.what)));
            let tree = self.tree(hand, &entries, node.is_root())?;
            (tree, self.meta(hand, node, &entries)?)
        };
        if self.s.write {
            self.record(hand, node, &state, &entries, ids, extra, collapsed.is_some());
        }
        Ok(collapsed.map_or(Outcome::Captured(ids), Outcome::Skipped))
    }

    /// A directory that is what its record says.
    fn unchanged(hand: &mut Hand<'a>, node: &Node, record: &Record, closed: Option<SkipReason>) -> Outcome {
        if let Some(why) = closed.filter(|_| record.has(dir_flag::COLLAPSED)) {
            return Outcome::Skipped(why);
        }
        if record.has(dir_flag::HAS_SKIPPED) {
            Self::emit_skipped(hand, node, record.entries().map(|e| (e.name.to_bytes(), e.known.what)));
        }
        Outcome::Captured((record.head.tree, record.head.meta))
    }

    fn emit_skipped<'n>(hand: &mut Hand<'a>, node: &Node, entries: impl Iterator<Item = (&'n [u8], What)>) {
        for (name, what) in entries {
            if let What::Skipped(reason, _) = what
                && let Ok(path) = RelPath::new_unreserved(node.join(name))
            {
                hand.found.skipped.push(Skipped { path, reason });
            }
        }
    }

    fn mark_racy(&self, entries: &mut [Entry], window: i64) {
        let trust = Trust { local: false, window };
        for entry in entries {
            if let What::File(stamp, _) | What::Link(stamp, _) = entry.what {
                entry.flags = entry.flags & !flag::RACY | self.racy(trust, &stamp);
            }
        }
    }

    fn tree(&self, hand: &mut Hand<'a>, entries: &[Entry], is_root: bool) -> Result<Option<ObjectId>, SnapshotError> {
        let lines = entries.iter().filter_map(|entry| match entry.what {
            What::File(_, id) if Mode(entry.mode).is_executable() => Some(Line::new(b"100755", &entry.name, id)),
            What::File(_, id) => Some(Line::new(b"100644", &entry.name, id)),
            What::Link(_, id) => Some(Line::new(b"120000", &entry.name, id)),
            What::Dir(Some(tree), _) => Some(Line::new(TREE, &entry.name, tree)),
            _ => None,
        });
        self.write_tree(hand, lines.collect(), is_root)
    }

    fn write_tree(
        &self,
        hand: &mut Hand<'a>,
        lines: Vec<Line<'_>>,
        even_empty: bool,
    ) -> Result<Option<ObjectId>, SnapshotError> {
        if lines.is_empty() && !even_empty {
            return Ok(None);
        }
        let body = tree_body(lines);
        self.add(hand, Kind::Tree, &body).map(Some)
    }

    fn meta(&self, hand: &mut Hand<'a>, node: &Node, entries: &[Entry]) -> Result<Option<ObjectId>, SnapshotError> {
        let mut own = DirMeta::default();
        own.set_modes(entries.iter().filter_map(|entry| {
            let mode = Mode(entry.mode);
            let class = match entry.what {
                What::File(..) if mode.is_executable() => ModeClass::Executable,
                What::File(..) => ModeClass::File,
                What::Dir(..) => ModeClass::Dir,
                _ => return None,
            };
            Some((&*entry.name, class, mode))
        }));
        for entry in entries {
            match entry.what {
                What::Fifo => drop(own.fifos.insert(entry.name.to_vec(), Mode(entry.mode))),
                What::Skipped(why, _) => drop(own.skipped.insert(entry.name.to_vec(), why)),
                What::Dir(None, _) => own.empty.push(entry.name.to_vec()),
                _ => {}
            }
        }
        if node.is_root() {
            own.rules = self.rules_to_keep();
        }
        let blob = own.encode().map(|body| self.add(hand, Kind::Blob, &body)).transpose()?;
        let names: Vec<(Vec<u8>, ObjectId)> = entries
            .iter()
            .filter_map(|entry| match entry.what {
                What::Dir(_, Some(meta)) => Some(([&[DIR_PREFIX], &*entry.name].concat(), meta)),
                _ => None,
            })
            .collect();
        let mut lines: Vec<Line<'_>> = names.iter().map(|(name, id)| Line::new(TREE, name, *id)).collect();
        lines.extend(blob.map(|id| Line::new(b"100644", BLOB, id)));
        self.write_tree(hand, lines, node.is_root())
    }

    fn rules_to_keep(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut rules = self.s.sources.stored.clone();
        for (path, (_, content)) in &*lock(&self.loose_rules) {
            let full = [&self.s.sources.rules.above[..], path].concat();
            rules.insert(file_key(&full), content.clone());
        }
        rules
    }

    fn loose_digest(&self) -> Digest {
        let loose = lock(&self.loose_rules);
        if loose.is_empty() {
            [0; 16]
        } else {
            digest(loose.iter().flat_map(|(path, (id, _))| [&path[..], id.as_bytes()]))
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one record")]
    fn record(
        &self,
        hand: &mut Hand<'a>,
        node: &Node,
        state: &State,
        entries: &[Entry],
        ids: Ids,
        extra: Digest,
        collapsed: bool,
    ) {
        let skipped = entries.iter().any(|e| matches!(e.what, What::Skipped(..)));
        let exceptions = entries.iter().any(|e| {
            let by_rule = SkipReason::IgnoredRoot;
            e.flags & (flag::WANTED_RULE | flag::WANTED_SIZE | flag::JUDGED) != 0
                || matches!(e.what, What::Skipped(why, _) if why == by_rule || why == SkipReason::TooLarge)
                || (matches!(e.what, What::Skipped(SkipReason::NestedRepo, _)) && &*e.name != b".git")
        });
        let set = |on: bool, flag: u8| if on { flag } else { 0 };
        let rules = match (&state.level, state.closed) {
            (_, Some(why)) => digest([&self.s.sources.level.digest[..], why.code().as_bytes()]),
            (Some(level), None) => level.digest,
            // Never entered: there is nothing to remember.
            (None, None) => return,
        };
        let head = Head {
            flags: state.flags
                | set(collapsed, dir_flag::COLLAPSED)
                | set(skipped, dir_flag::HAS_SKIPPED)
                | set(exceptions, dir_flag::EXCEPTIONS),
            mode: state.mode,
            dev: state.dev,
            stamp: Stamp { size: 0, ..state.stamp },
            rules,
            extra,
            index: if exceptions { self.s.tracked.digest } else { 1 },
            tree: ids.0,
            meta: ids.1,
        };
        let mut body = Vec::new();
        encode(&mut body, &node.path, &head, entries);
        // Nothing changed, nothing written.
        if node.record.get().is_none_or(|old| old.body() != body) {
            frame(&mut hand.found.records, &body);
        }
    }
}

/// A record's entries with changes on top.
fn merge(record: &Record, changes: Vec<Entry>) -> Vec<Entry> {
    let mut all: BTreeMap<Box<[u8]>, Entry> =
        record.entries().map(|e| (e.name.to_bytes().into(), e.to_entry())).collect();
    for change in changes {
        match change.what {
            What::Gone => drop(all.remove(&change.name)),
            _ => drop(all.insert(change.name.clone(), change)),
        }
    }
    all.into_values().collect()
}
