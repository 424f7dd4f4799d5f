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

/// TC02, TC08: sessions are counted apart, and each removal names its rule.
#[test]
fn sessions_are_counted_apart() {
    let points: Vec<Point> =
        (1..=6).map(|n| point(n, if n % 2 == 0 { "a" } else { "b" }, PointKind::Mutation, 1, 0)).collect();
    let quota = Quota { max_checkpoints: 2, ..Quota::default() };
    assert_eq!(pruned(&points, &[], 0, quota), [(4, Rule::Checkpoints), (3, Rule::Checkpoints)]);
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

/// TC03, TC06, TC11: the byte rule deletes oldest first and never the newest of a session.
#[test]
fn the_byte_rule_is_soft() {
    let points = [
        point(1, "a", PointKind::Manual, 1, 50),
        point(2, "a", PointKind::Manual, 1, 50),
        point(3, "b", PointKind::Manual, 1, 500),
    ];
    let quota = Quota { max_bytes: 100, ..Quota::default() };
    assert_eq!(pruned(&points, &[], 600, quota), [(1, Rule::Bytes)]);
    assert_eq!(pruned(&points, &[1], 600, quota), []);
}
