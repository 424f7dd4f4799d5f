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
