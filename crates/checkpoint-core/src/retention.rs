//! How long points live: a pure plan (design § 8, contract 002-43).

use std::collections::{BTreeMap, BTreeSet};

use crate::{OpState, Operation, Point, PointId, PointKind, Quota, SessionKey, Timestamp};

/// Which rule removes a point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Too many turn or manual points in its session.
    Turns,
    /// Too many mutation, step or auto points in its session.
    Checkpoints,
    /// Too many gaps in its session.
    Gaps,
    /// The data directory is too large.
    Bytes,
    /// A guard whose operation is no longer kept.
    Guard,
}

/// What retention removes.
#[derive(Clone, Debug, Default)]
pub struct Pruning {
    /// Points, oldest first within each rule, with the rule that hit.
    pub points: Vec<(PointId, Rule)>,
    /// Operations whose trees are no longer kept.
    pub expired: Vec<crate::OpId>,
}

/// What retention needs to know.
#[derive(Debug)]
pub struct Stock<'a> {
    /// All points, oldest first.
    pub points: &'a [Point],
    /// All operations, newest first.
    pub operations: &'a [Operation],
    /// Points that must stay: named, target and guard of an open operation, marks that owe a fold.
    pub pinned: &'a BTreeSet<PointId>,
    /// Own bytes of the data directory.
    pub bytes: u64,
    /// Now.
    pub now: Timestamp,
}

/// Plans what goes.
///
/// Pinned points, guards of kept operations and the newest point of each session never go; of a session that has ended
/// even that goes when nothing else is left and the byte limit is not kept, or sessions that nobody uses any more would
/// keep content out of new points (K-19, TC12). The newest of all stays. The byte rule counts what each point's own
/// capture added (002-44): an estimate that the next `gc` makes good.
pub fn prune(stock: &Stock<'_>, quota: &Quota) -> Pruning {
    let mut pruning = Pruning::default();
    let age = |op: &Operation| stock.now.0 - op.at.0;
    let with_trees = stock.operations.iter().filter(|op| op.guard.is_some());
    let mut kept_guards = BTreeSet::new();
    for (at, op) in with_trees.enumerate() {
        if op.state == OpState::Open || at < quota.operations_kept as usize || age(op) < quota.operations_age_ms {
            kept_guards.extend(op.guard);
        } else if !op.expired {
            pruning.expired.push(op.id);
        }
    }
    let mut newest: BTreeMap<&SessionKey, PointId> = BTreeMap::new();
    // A point that can be restored, where there is one.
    let whole = |p: &&Point| p.snapshot.is_some() && p.kind != PointKind::Guard;
    for damaged in [true, false] {
        for point in stock.points.iter().filter(whole).filter(|p| p.damaged.is_some() == damaged) {
            newest.insert(&point.session, point.id);
        }
    }
    let newest: BTreeSet<PointId> = newest.into_values().collect();
    let needed = |p: &Point| stock.pinned.contains(&p.id) || kept_guards.contains(&p.id);
    let stays = |p: &Point| needed(p) || newest.contains(&p.id);
    let mut gone: BTreeSet<PointId> = BTreeSet::new();
    for point in stock.points.iter().filter(|p| p.kind == PointKind::Guard && !stays(p)) {
        gone.insert(point.id);
        pruning.points.push((point.id, Rule::Guard));
    }
    let class = |p: &Point| match p.kind {
        PointKind::TurnStart | PointKind::TurnEnd | PointKind::Manual | PointKind::Import => Some(Rule::Turns),
        PointKind::Mutation | PointKind::Step | PointKind::Auto => Some(Rule::Checkpoints),
        PointKind::Gap => Some(Rule::Gaps),
        PointKind::Guard => None,
    };
    // One pass: a look at every point for each session would grow with the square of a long history.
    let mut by_session: BTreeMap<(Rule, &SessionKey), Vec<&Point>> = BTreeMap::new();
    for point in stock.points {
        if let Some(rule) = class(point) {
            by_session.entry((rule, &point.session)).or_default().push(point);
        }
    }
    for ((rule, _), mine) in by_session {
        let limit = match rule {
            Rule::Turns => quota.max_turns,
            Rule::Checkpoints => quota.max_checkpoints,
            _ => quota.max_gaps,
        };
        let surplus = mine.len().saturating_sub(limit as usize);
        for point in order_of_removal(&mine, rule).into_iter().filter(|p| !stays(p)).take(surplus) {
            gone.insert(point.id);
            pruning.points.push((point.id, rule));
        }
    }
    // What went for its number makes room too.
    let freed = |p: &&Point| gone.contains(&p.id);
    let mut bytes = stock.points.iter().filter(freed).fold(stock.bytes, |left, p| left.saturating_sub(p.new_bytes));
    // What was imported is older than everything else, whatever its place.
    let (imports, own): (Vec<&Point>, Vec<&Point>) = stock.points.iter().partition(|p| p.kind == PointKind::Import);
    let mut last_of_sessions: Vec<&Point> = stock.points.iter().filter(|p| newest.contains(&p.id)).collect();
    last_of_sessions.pop();
    last_of_sessions.retain(|p| !needed(p) && stock.now.0 - p.at.0 >= quota.session_age_ms);
    let ordinary = imports.into_iter().chain(own).filter(|p| p.kind != PointKind::Gap && !stays(p));
    for point in ordinary.chain(last_of_sessions) {
        if bytes <= quota.max_bytes {
            break;
        }
        if point.kind != PointKind::Guard && gone.insert(point.id) {
            bytes = bytes.saturating_sub(point.new_bytes);
            pruning.points.push((point.id, Rule::Bytes));
        }
    }
    pruning
}

/// Places between two looks at all points, while there are few.
const EVERY: u64 = 16;

/// Whether retention shall look at all points now that `newest` is the newest of about 256 times `sample`.
///
/// With many points an end of a turn counts as four places. The choice falls by the point's id, which is random: a
/// history whose turns all have the same length must not miss it for ever.
pub(crate) fn is_due(sample: u64, turn_ended: bool, newest: &Point) -> bool {
    if sample < 2 {
        return turn_ended || newest.ord.0.is_multiple_of(EVERY);
    }
    let random =
        newest.id.as_bytes().iter().fold(0_u64, |all, byte| all.wrapping_mul(257).wrapping_add(u64::from(*byte)));
    random.is_multiple_of(if turn_ended { EVERY / 4 * sample } else { EVERY * sample })
}

/// Oldest first, imports before everything; of mutation, step and auto points the first of each turn last.
fn order_of_removal<'a>(points: &[&'a Point], rule: Rule) -> Vec<&'a Point> {
    if rule != Rule::Checkpoints {
        let (imports, own): (Vec<&Point>, Vec<&Point>) =
            points.iter().copied().partition(|p| p.kind == PointKind::Import);
        return imports.into_iter().chain(own).collect();
    }
    let mut seen = BTreeSet::new();
    let (first, rest): (Vec<&Point>, Vec<&Point>) =
        points.iter().copied().partition(|p| p.turn.is_some_and(|turn| seen.insert(turn)));
    rest.into_iter().chain(first).collect()
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
