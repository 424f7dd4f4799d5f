use super::*;
use crate::Turn;
use crate::record::sample_point;

fn point(n: u8, session: &str, kind: PointKind, turn: u32, new_bytes: u64) -> Point {
    let session = SessionKey::parse(session).unwrap();
    Point { turn: Some(Turn(turn)), new_bytes, ..sample_point(n, session, kind) }
}

fn pruned(points: &[Point], pinned: &[u8], bytes: u64, quota: Quota) -> Vec<(u8, Rule)> {
    let pinned = pinned.iter().map(|n| PointId::from_bytes([*n; 16])).collect();
    let stock = Stock { points, operations: &[], pinned: &pinned, bytes, now: Timestamp(1000) };
    prune(&stock, &quota).points.into_iter().map(|(id, rule)| (id.as_bytes()[0], rule)).collect()
}

/// Sessions are counted apart, and each removal names its rule.
#[test]
fn tc02_tc08_sessions_are_counted_apart() {
    let points: Vec<Point> =
        (1..=6).map(|n| point(n, if n % 2 == 0 { "a" } else { "b" }, PointKind::Mutation, 1, 0)).collect();
    let quota = Quota { max_checkpoints: 2, ..Quota::default() };
    assert_eq!(pruned(&points, &[], 0, quota), [(4, Rule::Checkpoints), (3, Rule::Checkpoints)]);
}

/// The oldest turns of the very session that is over its limit go, and nothing of another's.
#[test]
fn tc14_tc15_turns_go_oldest_first_and_only_of_their_session() {
    let of = |n: u8, session: &str| point(n, session, PointKind::TurnEnd, u32::from(n), 0);
    let points: Vec<Point> = (1..=9).map(|n| of(n, if n % 3 == 0 { "b" } else { "a" })).collect();
    let quota = Quota { max_turns: 3, ..Quota::default() };
    assert_eq!(pruned(&points, &[], 0, quota), [(1, Rule::Turns), (2, Rule::Turns), (4, Rule::Turns)]);
    assert_eq!(pruned(&points, &[1], 0, quota), [(2, Rule::Turns), (4, Rule::Turns), (5, Rule::Turns)]);
}

fn operation(guard: &Point) -> Operation {
    Operation {
        id: crate::OpId::from_bytes(*guard.id.as_bytes()),
        ord: guard.ord,
        kind: crate::OpKind::Restore,
        state: OpState::Done,
        session: guard.session.clone(),
        target: None,
        reverses: None,
        reversed_by: None,
        guard: Some(guard.id),
        plan: None,
        at: Timestamp(0),
        wrote: 1,
        child: None,
        summary: String::new(),
        expired: false,
        stored: Vec::new(),
    }
}

/// What a restore would have destroyed lies in its guard: the newest are kept, those of older operations go.
#[test]
fn tc17_the_newest_guards_are_kept_and_older_ones_go() {
    let points: Vec<Point> = (1..=4).map(|n| point(n, "a", PointKind::Guard, 1, 0)).collect();
    let operations: Vec<Operation> = points.iter().rev().map(operation).collect();
    let stock =
        Stock { points: &points, operations: &operations, pinned: &BTreeSet::new(), bytes: 0, now: Timestamp(1000) };
    let quota = Quota { operations_kept: 2, operations_age_ms: 1000, ..Quota::default() };
    let pruning = prune(&stock, &quota);
    assert_eq!(pruning.points, [(points[0].id, Rule::Guard), (points[1].id, Rule::Guard)]);
    assert_eq!(pruning.expired, [operations[2].id, operations[3].id]);
    // Young ones are kept, however many.
    assert!(prune(&stock, &Quota { operations_age_ms: 1001, ..quota }).points.is_empty());
}

#[test]
fn tc18_of_nothing_nothing_goes() {
    let quota = Quota { max_turns: 0, max_checkpoints: 0, max_gaps: 0, max_bytes: 0, ..Quota::default() };
    assert_eq!(pruned(&[], &[], u64::MAX, quota), []);
}

/// K-19: last points of sessions that have ended go when nothing else is left, those of live ones do not.
#[test]
fn tc12_k19_the_last_point_of_a_session_that_has_ended_goes_for_bytes_alone() {
    let at = |n, session, at, bytes| Point { at: Timestamp(at), ..point(n, session, PointKind::TurnEnd, 1, bytes) };
    let points = [
        at(1, "ended", 0, 10),
        at(2, "ended", 5, 100),
        at(3, "named", 6, 100),
        at(4, "live", 901, 100),
        at(5, "newest", 7, 100),
    ];
    let quota = Quota { max_bytes: 50, max_turns: 1, session_age_ms: 100, ..Quota::default() };
    // The number of points is no reason, and bytes are one only when everything else has gone.
    assert_eq!(pruned(&points, &[3], 50, quota), [(1, Rule::Turns)]);
    let quota = Quota { max_turns: 9, ..quota };
    assert_eq!(pruned(&points, &[3], 60, quota), [(1, Rule::Bytes)]);
    assert_eq!(pruned(&points, &[3], 999, quota), [(1, Rule::Bytes), (2, Rule::Bytes)]);
    assert_eq!(pruned(&points, &[], 999, quota), [(1, Rule::Bytes), (2, Rule::Bytes), (3, Rule::Bytes)]);
}

/// A point that either limit hits goes, each with the rule that hit it first.
#[test]
fn tc05_both_limits_count() {
    let points: Vec<Point> = (1..=5).map(|n| point(n, "a", PointKind::TurnEnd, u32::from(n), 30)).collect();
    let quota = Quota { max_turns: 4, max_bytes: 100, ..Quota::default() };
    // What the first rule takes counts for the second.
    assert_eq!(pruned(&points, &[], 150, quota), [(1, Rule::Turns), (2, Rule::Bytes)]);
    assert_eq!(pruned(&points, &[], 130, quota), [(1, Rule::Turns)]);
    assert_eq!(pruned(&points, &[], 131, Quota { max_turns: 5, ..quota }), [(1, Rule::Bytes), (2, Rule::Bytes)]);
}

/// Deviation 15: one busy turn does not evict turns.
#[test]
fn turn_points_are_counted_apart_from_mutations() {
    let mut points = vec![point(1, "a", PointKind::TurnStart, 1, 0)];
    points.extend((2..=5).map(|n| point(n, "a", PointKind::Mutation, 1, 0)));
    let quota = Quota { max_checkpoints: 1, max_turns: 1, ..Quota::default() };
    let gone = pruned(&points, &[], 0, quota);
    assert!(!gone.iter().any(|(n, _)| *n == 1 || *n == 5), "{gone:?}");
    // The first of the turn goes last.
    assert_eq!(gone.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 4, 2]);
}

/// Every so often, in proportion to the number of points, whatever the rhythm of the history.
#[test]
fn a_look_at_all_points_comes_the_less_often_the_more_there_are() {
    let due = |sample, turn_ended, step| {
        let times = (1..=40_000_u64).map(|n| {
            let id = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&(id ^ id >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_be_bytes());
            bytes[8..].copy_from_slice(&id.to_be_bytes());
            let like = point(1, "a", PointKind::Mutation, 1, 0);
            Point { ord: crate::Ord(n * step + 1), id: PointId::from_bytes(bytes), ..like }
        });
        times.filter(|newest| is_due(sample, turn_ended, newest)).count()
    };
    assert_eq!((due(0, true, 2), due(1, false, 1)), (40_000, 40_000 / 16));
    for sample in [2, 8, 40] {
        let expected = 40_000 / 16 / usize::try_from(sample).unwrap();
        for step in [1, 2, 16, 64] {
            assert!((expected / 2..=expected * 2).contains(&due(sample, false, step)), "{sample} {step}");
            assert!((expected * 2..=expected * 8).contains(&due(sample, true, step)), "{sample} {step}");
        }
    }
}

/// The byte rule deletes oldest first and never the newest of a session.
#[test]
fn tc03_tc06_tc11_the_byte_rule_is_soft() {
    let points = [
        point(1, "a", PointKind::Manual, 1, 50),
        point(2, "a", PointKind::Manual, 1, 50),
        point(3, "b", PointKind::Manual, 1, 500),
    ];
    let quota = Quota { max_bytes: 100, ..Quota::default() };
    assert_eq!(pruned(&points, &[], 600, quota), [(1, Rule::Bytes)]);
    assert_eq!(pruned(&points, &[1], 600, quota), []);
}
