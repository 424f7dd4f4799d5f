//! Selecting, ordering and finding points.

use checkpoint_core::{Batch, IndexOp, IndexStore, Ord, PointId, PointKind, PointQuery, Timestamp};

use super::{
    Open,
    build::{point, session},
};

pub(super) fn places(index: &dyn IndexStore, query: &PointQuery) -> Vec<u64> {
    index.points(query).unwrap().iter().map(|point| point.ord.0).collect()
}

pub(super) fn queries(open: &Open) {
    let index = open();
    let kinds = [PointKind::TurnStart, PointKind::Mutation, PointKind::Gap, PointKind::TurnEnd, PointKind::Manual];
    for n in 1..=20 {
        let mut point = point(n, kinds[usize::try_from(n).unwrap() % kinds.len()]);
        point.session = session(if n % 3 == 0 { "s1" } else { "s0" });
        // Clocks go back: order is the place, never time.
        point.at = Timestamp(i64::try_from(1_000 - n % 4).unwrap());
        index
            .apply(&Batch {
                follows: Some(Ord(n - 1)),
                ops: vec![IndexOp::PutPoint { point: Box::new(point), interval: vec![] }],
            })
            .unwrap();
    }
    let index = &*index;
    let all = PointQuery::default;
    assert_eq!(places(index, &all()), (1..=20).collect::<Vec<_>>());
    assert_eq!(places(index, &PointQuery { newest_first: true, limit: Some(3), ..all() }), [20, 19, 18]);
    assert_eq!(places(index, &PointQuery { limit: Some(2), ..all() }), [1, 2]);
    assert_eq!(places(index, &PointQuery { limit: Some(0), ..all() }), [0; 0]);
    let window = PointQuery { after: Some(Ord(4)), at_or_before: Some(Ord(7)), ..all() };
    assert_eq!(places(index, &window), [5, 6, 7]);
    assert_eq!(places(index, &PointQuery { newest_first: true, limit: Some(2), ..window }), [7, 6]);
    assert_eq!(places(index, &PointQuery { after: Some(Ord(9)), at_or_before: Some(Ord(3)), ..all() }), [0; 0]);
    assert_eq!(places(index, &PointQuery { after: Some(Ord(20)), ..all() }), [0; 0]);
    assert_eq!(places(index, &PointQuery { sessions: vec![session("s1")], ..all() }), [3, 6, 9, 12, 15, 18]);
    assert_eq!(
        places(index, &PointQuery { kinds: vec![PointKind::TurnStart, PointKind::TurnEnd], limit: Some(3), ..all() }),
        [3, 5, 8]
    );
    assert_eq!(places(index, &PointQuery { restorable: true, limit: Some(3), ..all() }), [1, 3, 4]);
    assert_eq!(places(index, &PointQuery { kinds: vec![PointKind::Gap], restorable: true, ..all() }), [0; 0]);
    assert_eq!(
        places(index, &PointQuery { recorded_by: Some(Timestamp(998)), newest_first: true, limit: Some(2), ..all() }),
        [19, 18]
    );
}

pub(super) fn prefixes(open: &Open) {
    let index = open();
    for (n, first) in [0xab, 0xac, 0xab, 0xff].into_iter().enumerate() {
        let ord = n as u64 + 1;
        let mut point = point(ord, PointKind::Manual);
        let mut bytes = [first; 16];
        bytes[15] = u8::try_from(4 - n).unwrap();
        point.id = PointId::from_bytes(bytes);
        index
            .apply(&Batch { follows: None, ops: vec![IndexOp::PutPoint { point: Box::new(point), interval: vec![] }] })
            .unwrap();
    }
    let find = |prefix: &str| places(&*index, &PointQuery { id_prefix: Some(prefix.into()), ..PointQuery::default() });
    assert_eq!(find("ab"), [1, 3], "by place, not by id");
    assert_eq!(find("abab"), [1, 3]);
    assert_eq!(find("a"), [1, 2, 3]);
    assert_eq!(find("ffff"), [4]);
    assert_eq!(find(""), [1, 2, 3, 4]);
    for none in ["0", "abc", "AB", "g", "%", "_", "a\u{10ffff}"] {
        assert_eq!(find(none), [0; 0], "{none:?}");
    }
    let newest =
        PointQuery { id_prefix: Some("ab".into()), newest_first: true, limit: Some(1), ..PointQuery::default() };
    assert_eq!(places(&*index, &newest), [3]);
    let whole = index.points(&newest).unwrap()[0].id;
    assert_eq!(find(&whole.to_string()), [3]);
}
