//! The plan of a restore: a pure function of two states, what is known about the paths, and the policy (design § 7).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Attribution, Blocked, Change, DriftPolicy, FsError, PathState, Plan, RelPath, RestorePolicy, SkipReason, Skipped,
    blocked_by_skip,
};

/// What is known about the target's claim that a path was absent.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// False for points made under an intent or in an older incarnation of the root: they prove nothing.
    pub usable: bool,
    /// Directories that may have changed while the target listed them; `None` is the root.
    pub live: BTreeSet<Option<RelPath>>,
    /// Paths that the rules of the target's time would have left out.
    pub ignored_then: BTreeSet<RelPath>,
}

/// What a plan is made from.
pub struct PlanInput<'a> {
    /// Every path that differs, `before` now and `after` at the target, in path order.
    pub changes: Vec<Change>,
    /// What the capture of now left out, in path order.
    pub skipped_now: &'a [Skipped],
    /// What the target left out, in path order.
    pub skipped_then: &'a [Skipped],
    /// Files, links and FIFOs of now.
    pub files_now: u64,
    /// What is known of the paths in `changes`.
    pub attribution: &'a BTreeMap<RelPath, Attribution>,
    /// Directories that the target did not have, those outside a selection included.
    pub new_dirs: &'a BTreeSet<RelPath>,
    /// Proof of absence; `None` for an undo or redo, which is exact by its own record.
    pub evidence: Option<&'a Evidence>,
    /// How.
    pub policy: &'a RestorePolicy,
    /// Would this change go through, as far as can be told?
    pub check: &'a dyn Fn(&Change) -> Result<(), FsError>,
}

/// Finds whether a path, or a directory above it, was left out. Built once, asked for many paths.
#[derive(Debug)]
pub(crate) struct Coverage<'a>(BTreeMap<&'a RelPath, SkipReason>);

impl<'a> Coverage<'a> {
    pub(crate) fn new(skipped: &'a [Skipped]) -> Self {
        Self(skipped.iter().map(|s| (&s.path, s.reason)).collect())
    }

    /// The skipped path at or above `path`.
    pub(crate) fn over(&self, path: &RelPath) -> Option<(RelPath, SkipReason)> {
        std::iter::once(path.clone()).chain(path.ancestors()).find_map(|at| self.0.get(&at).map(|reason| (at, *reason)))
    }

    /// The first skipped path at or below `dir`.
    pub(crate) fn below(&self, dir: &RelPath) -> Option<(RelPath, SkipReason)> {
        self.0
            .range::<&RelPath, _>(dir..)
            .take_while(|(path, _)| path.is_at_or_below(dir))
            .next()
            .map(|(path, reason)| ((*path).clone(), *reason))
    }
}

/// What becomes of one change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Write,
    Clear,
    Remove,
    Left,
}

/// Makes the plan. Nothing is written, nothing is read but through `check`.
pub fn plan(input: &PlanInput<'_>) -> Plan {
    Planner::new(input).run(input)
}

struct Planner<'a> {
    now: Coverage<'a>,
    then: Coverage<'a>,
    /// The change at hand is a directory that comes or goes and has others below it: it is decided by what becomes of
    /// those, not by who made it.
    frame: bool,
    new_dirs: &'a BTreeSet<RelPath>,
    /// A file or link that becomes a directory: what lies below it is reached through a link only until then.
    becoming_dir: Option<RelPath>,
    fate: Vec<Fate>,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(input: &'a PlanInput<'a>) -> Self {
        Self {
            now: Coverage::new(input.skipped_now),
            then: Coverage::new(input.skipped_then),
            new_dirs: input.new_dirs,
            frame: false,
            becoming_dir: None,
            fate: Vec::with_capacity(input.changes.len()),
            plan: Plan { uncovered: input.skipped_then.to_vec(), ..Plan::default() },
        }
    }

    fn run(mut self, input: &PlanInput<'_>) -> Plan {
        let differing = input.changes.iter().filter(|c| !c.before.is_absent() && !c.before.is_dir()).count() as u64;
        self.plan.unchanged = input.files_now.saturating_sub(differing);
        // A directory that must give way: everything below it goes, whatever the policy for new paths.
        let mut clearing: Option<RelPath> = None;
        // A path that stays although something must be made below it.
        let mut kept: Option<RelPath> = None;
        // A directory that had to give way and stays: so does all below it.
        let mut frozen: Option<RelPath> = None;
        for (at, change) in input.changes.iter().enumerate() {
            let next_below = input.changes.get(at + 1).is_some_and(|next| next.path.is_below(&change.path));
            self.frame = next_below && (change.before.is_absent() || change.after.is_absent());
            if clearing.as_ref().is_some_and(|dir| !change.path.is_below(dir)) {
                clearing = None;
            }
            if kept.as_ref().is_some_and(|dir| !change.path.is_below(dir)) {
                kept = None;
            }
            if frozen.as_ref().is_some_and(|dir| !change.path.is_below(dir)) {
                frozen = None;
            }
            let fate = match (&clearing, &kept) {
                (Some(_), _) => Fate::Clear,
                _ if frozen.is_some() => Fate::Left,
                (_, Some(_)) if change.after.is_absent() => self.new_path(change, input),
                // What was changed by hand and stays is no obstacle: it is left like the path above it.
                (_, Some(_)) if !self.frame && !self.is_decided(&change.path, input) => Fate::Left,
                (_, Some(_)) if self.frame => Fate::Left,
                (_, Some(above)) => {
                    self.plan.blocked.push(Blocked {
                        path: change.path.clone(),
                        reason: "parent-kept".into(),
                        cause: Some(above.clone()),
                    });
                    Fate::Left
                }
                _ => self.decide(change, input),
            };
            let gives_way = change.before.is_dir() && !change.after.is_dir() && !change.after.is_absent();
            match fate {
                Fate::Write if gives_way => clearing = Some(change.path.clone()),
                Fate::Left if gives_way => frozen = Some(change.path.clone()),
                _ => {}
            }
            // Something that is no directory stays, or a directory is not made: nothing can be made below.
            if fate == Fate::Left && change.after.is_dir() {
                kept = Some(change.path.clone());
            }
            self.fate.push(fate);
        }
        self.keep_directories_in_use(input);
        self.make_only_needed_directories(input);
        self.order(input);
        self.plan
    }

    /// The fate of a change that no swap above it has settled.
    fn decide(&mut self, change: &Change, input: &PlanInput<'_>) -> Fate {
        let path = &change.path;
        if change.before == PathState::Opaque || change.after == PathState::Opaque {
            return self.block(path, "special", None);
        }
        if change.before.is_absent()
            && let Some((cause, reason)) = self.now.over(path)
        {
            // Something is there that this capture did not describe, so it could not be guarded.
            let cause = (cause != *path).then_some(cause);
            self.plan.blocked.push(blocked_by_skip(path.clone(), reason, cause));
            return Fate::Left;
        }
        if change.after.is_absent() {
            return self.new_path(change, input);
        }
        if change.before.is_dir()
            && let Some(fate) = self.swap_away(change, input)
        {
            return fate;
        }
        if !self.frame && !is_only_a_directory_again(change, input) && !self.is_decided(path, input) {
            return Fate::Left;
        }
        if let Err(error) = (input.check)(change) {
            let until_then = self.becoming_dir.as_ref().is_some_and(|dir| path.is_below(dir));
            if !(until_then && matches!(error, FsError::ThroughLink { .. })) {
                return self.block(path, error.reason(), None);
            }
        }
        if change.after.is_dir() && !change.before.is_absent() {
            self.becoming_dir = Some(path.clone());
        }
        Fate::Write
    }

    /// A directory that must become something else: blocked when anything below it could not be brought back.
    fn swap_away(&mut self, change: &Change, input: &PlanInput<'_>) -> Option<Fate> {
        let path = &change.path;
        if let Some((cause, _)) = self.now.below(path) {
            return Some(self.block(path, "swap", Some(cause)));
        }
        let below = |c: &&Change| c.path.is_below(path);
        let start = input.changes.partition_point(|c| c.path <= *path);
        for child in input.changes.iter().skip(start).take_while(below) {
            let attribution = input.attribution.get(&child.path).copied().unwrap_or_default();
            if attribution.needs_decision() && !self.is_decided(&child.path, input) {
                return Some(if input.policy.drift == DriftPolicy::Keep {
                    self.block(path, "swap", Some(child.path.clone()))
                } else {
                    Fate::Left
                });
            }
            if let Err(error) = (input.check)(child) {
                return Some(self.block(path, error.reason(), Some(child.path.clone())));
            }
        }
        None
    }

    /// A path that the target did not have.
    fn new_path(&mut self, change: &Change, input: &PlanInput<'_>) -> Fate {
        let path = &change.path;
        if self.then.over(path).is_some() {
            // It was there and was left out: listed under `uncovered`, never touched.
            return Fate::Left;
        }
        let may_go = match input.evidence {
            None => true,
            Some(evidence) => input.policy.exact && self.proven_absent(path, evidence),
        };
        let attribution = input.attribution.get(path).copied().unwrap_or_default();
        // A path that somebody made by hand goes only when it is named; an undo has its own record and asks instead.
        let by_hand = !self.frame && attribution.hand_made && input.evidence.is_some() && !is_named(path, input);
        if may_go && by_hand {
            self.plan.hand_made.push(path.clone());
        }
        if !may_go || by_hand || (change.before.is_dir() && self.now.below(path).is_some()) {
            self.plan.kept_new.push(path.clone());
            return Fate::Left;
        }
        if !self.frame && attribution.needs_decision() && !self.is_decided(path, input) {
            return Fate::Left;
        }
        if let Err(error) = (input.check)(change) {
            return self.block(path, error.reason(), None);
        }
        Fate::Remove
    }

    fn proven_absent(&self, path: &RelPath, evidence: &Evidence) -> bool {
        evidence.usable
            && !evidence.ignored_then.contains(path)
            && self.now.over(path).is_none()
            && !evidence.live.contains(&self.witness(path))
    }

    /// The nearest directory above `path` that the target had: its listing says that the name below it was absent.
    fn witness(&self, path: &RelPath) -> Option<RelPath> {
        path.ancestors().find(|dir| !self.new_dirs.contains(dir))
    }

    /// Applies the rules for hand-made and foreign paths; true when the path may be written.
    fn is_decided(&mut self, path: &RelPath, input: &PlanInput<'_>) -> bool {
        let attribution = input.attribution.get(path).copied().unwrap_or_default();
        let named = is_named(path, input);
        let mut decided = true;
        if attribution.hand_made {
            self.plan.hand_made.push(path.clone());
            decided &= named || input.policy.drift == DriftPolicy::Overwrite;
        }
        if attribution.foreign {
            self.plan.foreign.push(path.clone());
            decided &= named || input.policy.with_others;
        }
        if attribution.uncaptured {
            self.plan.uncaptured.push(path.clone());
        }
        if !decided && input.policy.drift != DriftPolicy::Keep {
            self.plan.undecided.push(path.clone());
        }
        decided
    }

    fn block(&mut self, path: &RelPath, reason: &str, cause: Option<RelPath>) -> Fate {
        self.plan.blocked.push(Blocked { path: path.clone(), reason: reason.to_owned(), cause });
        Fate::Left
    }

    /// A directory goes only when everything in it goes.
    fn keep_directories_in_use(&mut self, input: &PlanInput<'_>) {
        let mut needed: BTreeSet<RelPath> = BTreeSet::new();
        for (change, fate) in input.changes.iter().zip(&mut self.fate).rev() {
            let stays = match fate {
                Fate::Left => !change.before.is_absent(),
                Fate::Remove if needed.contains(&change.path) => {
                    *fate = Fate::Left;
                    true
                }
                _ => false,
            };
            if stays {
                needed.extend(change.path.parent());
            }
        }
    }

    /// A missing directory that leads to something is made only when something in it is.
    fn make_only_needed_directories(&mut self, input: &PlanInput<'_>) {
        let mut needed: BTreeSet<RelPath> = BTreeSet::new();
        for (at, (change, fate)) in input.changes.iter().zip(&mut self.fate).enumerate().rev() {
            let leads = input.changes.get(at + 1).is_some_and(|next| next.path.is_below(&change.path));
            let frame = leads && change.before.is_absent() && change.after.is_dir();
            if *fate == Fate::Write {
                if frame && !needed.contains(&change.path) {
                    *fate = Fate::Left;
                } else {
                    needed.extend(change.path.parent());
                }
            }
        }
    }

    /// Puts the changes into the order of application and fills the categories.
    fn order(&mut self, input: &PlanInput<'_>) {
        let of = |wanted: Fate| {
            input.changes.iter().zip(&self.fate).filter(move |(_, fate)| **fate == wanted).map(|(change, _)| change)
        };
        // What stands in the way goes first, then writes, then the other removals. Directories are made before what
        // they hold and go after it, deepest first.
        let clear: Vec<&Change> = of(Fate::Clear).collect();
        let write: Vec<&Change> = of(Fate::Write).collect();
        let remove: Vec<&Change> = of(Fate::Remove).collect();
        let leaf = |all: &[&Change], at: usize| {
            let (Some(change), next) = (all.get(at), all.get(at + 1)) else { return false };
            let state = if change.after.is_absent() { &change.before } else { &change.after };
            !state.is_dir() || next.is_none_or(|next| !next.path.is_below(&change.path))
        };
        for group in [&clear, &remove] {
            self.plan.remove.extend(
                (0..group.len()).filter(|at| leaf(group, *at)).filter_map(|at| group.get(at)).map(|c| c.path.clone()),
            );
        }
        self.plan.remove.sort();
        for (at, change) in write.iter().enumerate() {
            if change.before.is_absent() {
                if leaf(&write, at) {
                    self.plan.recreate.push(change.path.clone());
                }
            } else if change.before.same_content(&change.after) {
                self.plan.mode.push(change.path.clone());
            } else {
                self.plan.overwrite.push(change.path.clone());
            }
        }
        // A directory is listed only where nothing below it is.
        let kept = std::mem::take(&mut self.plan.kept_new);
        self.plan.kept_new = kept
            .iter()
            .enumerate()
            .filter(|(at, path)| kept.get(at + 1).is_none_or(|next| !next.is_below(path)))
            .map(|(_, path)| path.clone())
            .collect();
        for list in
            [&mut self.plan.hand_made, &mut self.plan.foreign, &mut self.plan.uncaptured, &mut self.plan.undecided]
        {
            list.sort();
            list.dedup();
        }
        let (mut write, closing) = open_while_filling(&write);
        // Directories first, so that what is no directory comes in one run: those are independent of each other.
        write.sort_by_key(|change| !change.after.is_dir());
        let going = |group: &[&Change]| {
            let mut group: Vec<Change> = group.iter().rev().map(|c| (*c).clone()).collect();
            group.sort_by_key(|change| change.before.is_dir());
            group
        };
        self.plan.changes = [going(&clear), write, closing, going(&remove)].concat();
    }
}

/// A directory that its owner may not write gets its recorded mode only when everything in it is made: two changes of
/// one path, the second after all writes.
fn open_while_filling(write: &[&Change]) -> (Vec<Change>, Vec<Change>) {
    let mut closing = Vec::new();
    let mut first = Vec::with_capacity(write.len());
    for (at, change) in write.iter().enumerate() {
        let mut change = (*change).clone();
        let filled = write.get(at + 1).is_some_and(|next| next.path.is_below(&change.path));
        if let PathState::Dir { mode } = change.after
            && filled
            && mode.0 & 0o300 != 0o300
        {
            let open = PathState::Dir { mode: crate::Mode(mode.0 | 0o700) };
            closing.push(Change { path: change.path.clone(), before: open, after: change.after });
            change.after = open;
        }
        first.push(change);
    }
    closing.reverse();
    (first, closing)
}

/// A directory that somebody removed and that comes back: no byte of theirs is at stake, so nobody is asked. What was in
/// it is asked about by itself, and who keeps what was changed by hand keeps this too.
fn is_only_a_directory_again(change: &Change, input: &PlanInput<'_>) -> bool {
    let attribution = input.attribution.get(&change.path).copied().unwrap_or_default();
    change.before.is_absent() && change.after.is_dir() && input.policy.drift == DriftPolicy::Ask && !attribution.foreign
}

/// True when the caller named the path, or a directory above it, with `--overwrite`.
fn is_named(path: &RelPath, input: &PlanInput<'_>) -> bool {
    input.policy.overwrite.iter().any(|named| path.is_at_or_below(named))
}

/// Narrows changes to what a selection names: the paths themselves, what lies below them, and directories that must be
/// made for them.
pub fn select(changes: Vec<Change>, selection: &[RelPath]) -> Vec<Change> {
    if selection.is_empty() {
        return changes;
    }
    let wanted = |path: &RelPath| selection.iter().any(|named| path.is_at_or_below(named));
    let leads = |change: &Change| {
        change.after.is_dir() && !change.before.is_dir() && selection.iter().any(|named| named.is_below(&change.path))
    };
    changes.into_iter().filter(|change| wanted(&change.path) || leads(change)).collect()
}

/// Directories that go: the target did not have them.
pub fn new_directories(changes: &[Change]) -> BTreeSet<RelPath> {
    changes.iter().filter(|c| c.before.is_dir() && c.after.is_absent()).map(|c| c.path.clone()).collect()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
