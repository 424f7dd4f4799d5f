//! One check a contract sentence.

use std::collections::BTreeSet;

use checkpoint_core::{
    Batch, DropReason, IndexError, IndexOp, IndexStore, IntentState, OpState, Ord, PointKind, PointQuery, Revision,
};

use super::{
    Open,
    build::{Scene, id, intent, mark, name, op, operation, path, point, session, session_row, touch, written},
    intervals,
    queries::{self, places},
    tables, transactions,
};

type Check = (&'static str, fn(&Open));

pub(super) const ALL: &[Check] = &[
    ("an empty index", empty),
    ("points read back as they were put", points_read_back),
    ("another handle sees every batch", handles_agree),
    ("a batch that follows an older state conflicts", conflict),
    ("a batch that does not fit changes nothing", all_or_nothing),
    ("what does not fit is a misfit", misfits),
    ("queries select, order and limit", queries::queries),
    ("ids are found by prefix", queries::prefixes),
    ("a dropped record gives its interval to the next (F5)", intervals::drop_merges),
    ("the newest record's interval waits (F13)", intervals::drop_of_newest_waits),
    ("paths that an operation wrote are left out of a merge", intervals::drop_over_operation),
    ("what waits leaves out what operations wrote since", intervals::waiting_over_operation),
    ("gaps close nothing", intervals::gaps),
    ("imports close nothing", intervals::imports),
    ("a dropped point takes its names along", intervals::drop_takes_names),
    ("a transaction opens, advances and closes", transactions::intents),
    ("target and guard of an open transaction stay", transactions::open_transaction_pins),
    ("operations and what they wrote", transactions::operations),
    ("sessions, names and marks", tables::sessions_names_marks),
    ("held paths", tables::held),
    ("paths that are not UTF-8", tables::odd_paths),
    ("maintenance changes nothing", maintenance),
    ("eight threads on one index", threads),
];

fn empty(open: &Open) {
    let index = open();
    assert_eq!(index.revision().unwrap(), Revision(0));
    assert_eq!(index.newest().unwrap(), Ord(0));
    assert!(index.points(&PointQuery::default()).unwrap().is_empty());
    assert!(index.intervals(Ord(0)).unwrap().is_empty());
    assert!(index.waiting().unwrap().is_empty());
    assert!(index.operations(&[], None).unwrap().is_empty());
    assert!(index.open_intent().unwrap().is_none());
    assert!(index.point(&id(1)).unwrap().is_none());
    assert!(index.operation(&op(1)).unwrap().is_none());
    assert!(index.written(&op(1)).unwrap().is_empty());
    assert!(index.held().unwrap().is_empty());
    assert_eq!(index.newest_mark().unwrap(), 0);
    // A batch of nothing counts too.
    assert_eq!(index.apply(&Batch::default()).unwrap(), Revision(1));
    assert_eq!(index.newest().unwrap(), Ord(0));
}

fn points_read_back(open: &Open) {
    let index = open();
    let mut full = point(1, PointKind::TurnEnd);
    full.note = Some("naïve \"quoted\"\nnote \u{0} 🦀".into());
    full.late = vec![path("a b/c\nd")];
    full.live = vec![None, Some(path("src"))];
    full.damaged = Some("object gone".into());
    let put = IndexOp::PutPoint {
        point: Box::new(full.clone()),
        interval: vec![touch("b", &["s1", "-"]), touch("a", &["local"])],
    };
    let revision = index.apply(&Batch { follows: Some(Ord(0)), ops: vec![put] }).unwrap();
    assert_eq!(revision, index.revision().unwrap());
    assert_eq!(index.point(&full.id).unwrap().as_ref(), Some(&full));
    // An interval is in path order, each path once, members in order.
    assert_eq!(index.intervals(Ord(0)).unwrap(), [(Ord(1), vec![touch("a", &["local"]), touch("b", &["-", "s1"])])]);
    full.damaged = None;
    full.listed = false;
    index.apply(&Batch { follows: None, ops: vec![IndexOp::UpdatePoint { point: Box::new(full.clone()) }] }).unwrap();
    assert_eq!(index.point(&full.id).unwrap(), Some(full));
    assert_eq!(index.intervals(Ord(0)).unwrap().len(), 1);
    assert_eq!(index.newest().unwrap(), Ord(1));
}

fn handles_agree(open: &Open) {
    let (one, two) = (open(), open());
    for n in 1..=6_u64 {
        let (writer, reader) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let mut scene = Scene { index: &**writer, newest: n - 1 };
        scene.record(vec![touch("p", &["s0"])]);
        assert_eq!(reader.newest().unwrap(), Ord(n));
        assert_eq!(reader.revision().unwrap(), writer.revision().unwrap());
        assert_eq!(reader.points(&PointQuery::default()).unwrap().len() as u64, n);
        let third = open();
        assert_eq!(third.points(&PointQuery::default()).unwrap(), reader.points(&PointQuery::default()).unwrap());
    }
}

fn conflict(open: &Open) {
    let (index, other) = (open(), open());
    Scene::new(&*index).record(vec![]);
    let put = |ord| IndexOp::PutPoint { point: Box::new(point(ord, PointKind::Step)), interval: vec![] };
    let stale = Batch { follows: Some(Ord(0)), ops: vec![put(1)] };
    match other.apply(&stale) {
        Err(IndexError::Conflict { expected: Ord(0), found: Ord(1) }) => {}
        wrong => panic!("{wrong:?}"),
    }
    assert_eq!(other.revision().unwrap(), Revision(1));
    // The same change, made again on top of what is there now.
    other.apply(&Batch { follows: Some(Ord(1)), ops: vec![put(2)] }).unwrap();
    assert_eq!(index.newest().unwrap(), Ord(2));
}

/// Everything readable, for comparing before and after.
pub(super) fn everything(index: &dyn IndexStore) -> String {
    let points = index.points(&PointQuery::default()).unwrap();
    let operations = index.operations(&[], None).unwrap();
    let written: Vec<_> = operations.iter().map(|operation| index.written(&operation.id).unwrap()).collect();
    let marks: Vec<_> = ["s0", "s1"].map(|of| index.marks(&session(of)).unwrap()).into();
    format!(
        "{:#?}",
        (
            (index.newest().unwrap(), points, index.intervals(Ord(0)).unwrap(), index.waiting().unwrap()),
            (operations, written, index.open_intent().unwrap()),
            (index.sessions().unwrap(), index.names().unwrap(), marks, index.held().unwrap()),
        )
    )
}

fn all_or_nothing(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![touch("a", &["-"])]);
    let dropped = scene.record(vec![touch("b", &["s0"])]);
    scene.apply(vec![IndexOp::PutName { name: name("n", 1) }, IndexOp::Held { add: vec![path("h")], remove: vec![] }]);
    let (before, revision) = (everything(&*index), index.revision().unwrap());
    let mut ops = vec![
        IndexOp::PutPoint { point: Box::new(point(3, PointKind::Guard)), interval: vec![touch("c", &["-"])] },
        IndexOp::PutOperation { operation: Box::new(operation(4, OpState::Open)) },
        IndexOp::PutWritten { operation: op(4), written: vec![written("a")] },
        IndexOp::OpenIntent { intent: Box::new(intent(4, 3)) },
        IndexOp::PutSession { session: Box::new(session_row("s1")) },
        IndexOp::PutMark { mark: mark("s1", 1) },
        IndexOp::DropName { label: "n".into() },
        IndexOp::Held { add: vec![path("i")], remove: vec![path("h")] },
        IndexOp::DropPoint { id: id(dropped), reason: DropReason::User },
    ];
    ops.push(IndexOp::DropName { label: "none".into() });
    assert!(matches!(scene.try_apply(ops.clone()), Err(IndexError::Misfit { .. })));
    assert_eq!(everything(&*index), before);
    assert_eq!(everything(&*open()), before);
    assert_eq!(index.revision().unwrap(), revision);
    ops.pop();
    scene.apply(ops);
    assert_ne!(everything(&*index), before);
    assert_eq!(everything(&*open()), everything(&*index));
}

fn misfits(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    scene.put(PointKind::Gap, vec![]);
    scene.operation(OpState::Done, &[]);
    let put = |point| IndexOp::PutPoint { point: Box::new(point), interval: vec![] };
    let update = |point| IndexOp::UpdatePoint { point: Box::new(point) };
    let mut twice = point(4, PointKind::Manual);
    twice.id = id(1);
    let mut moved = point(1, PointKind::Manual);
    moved.ord = Ord(2);
    let mut empty = point(4, PointKind::Manual);
    empty.snapshot = None;
    let mut full_gap = point(4, PointKind::Gap);
    full_gap.snapshot = point(1, PointKind::Manual).snapshot;
    let mut op_twice = operation(4, OpState::Done);
    op_twice.id = op(3);
    let wrong = vec![
        ("a place ahead", put(point(5, PointKind::Manual))),
        ("a place that is taken", put(point(3, PointKind::Manual))),
        ("an id that is taken", put(twice)),
        ("a record without a snapshot", put(empty)),
        ("a gap with a snapshot", put(full_gap)),
        (
            "a gap with an interval",
            IndexOp::PutPoint { point: Box::new(point(4, PointKind::Gap)), interval: vec![touch("a", &["-"])] },
        ),
        ("an update of nothing", update(point(9, PointKind::Manual))),
        ("an update that moves", update(moved)),
        ("an update into a gap", update(point(1, PointKind::Gap))),
        ("an update out of a gap", update(point(2, PointKind::Manual))),
        ("a drop of nothing", IndexOp::DropPoint { id: id(9), reason: DropReason::User }),
        ("an operation ahead", IndexOp::PutOperation { operation: Box::new(operation(5, OpState::Done)) }),
        ("an operation id that is taken", IndexOp::PutOperation { operation: Box::new(op_twice) }),
        (
            "an operation that is not there",
            IndexOp::UpdateOperation { operation: Box::new(operation(9, OpState::Done)) },
        ),
        (
            "an operation that opens again",
            IndexOp::UpdateOperation { operation: Box::new(operation(3, OpState::Open)) },
        ),
        ("writing of no operation", IndexOp::PutWritten { operation: op(9), written: vec![] }),
        ("an intent of no operation", IndexOp::OpenIntent { intent: Box::new(intent(9, 1)) }),
        ("an intent of a finished operation", IndexOp::OpenIntent { intent: Box::new(intent(3, 1)) }),
        (
            "an advance without an intent",
            IndexOp::AdvanceIntent { operation: op(3), from: IntentState::Applying, to: IntentState::Applied },
        ),
        ("a close without an intent", IndexOp::CloseIntent { operation: op(3) }),
        ("a name on nothing", IndexOp::PutName { name: name("n", 9) }),
        ("a name that is not there", IndexOp::DropName { label: "n".into() }),
        ("a path both added and removed", IndexOp::Held { add: vec![path("a")], remove: vec![path("a")] }),
    ];
    let before = everything(&*index);
    for (what, op) in wrong {
        let outcome = scene.try_apply(vec![op]);
        assert!(matches!(outcome, Err(IndexError::Misfit { .. })), "{what}: {outcome:?}");
        assert_eq!(everything(&*index), before, "{what}");
    }
}

fn maintenance(open: &Open) {
    let (index, other) = (open(), open());
    let mut scene = Scene::new(&*index);
    for _ in 0..5 {
        scene.record(vec![touch("a", &["-"])]);
    }
    scene.drop(2);
    let (before, revision) = (everything(&*index), index.revision().unwrap());
    index.maintain().unwrap();
    assert_eq!(everything(&*index), before);
    assert_eq!(index.revision().unwrap(), revision);
    assert_eq!(everything(&*other), before);
    let mut scene = Scene { index: &*other, newest: 5 };
    scene.record(vec![]);
    index.maintain().unwrap();
    assert_eq!(everything(&*open()), everything(&*index));
}

/// K-43: eight at once, eight records, nothing torn. Each names what it follows and tries again.
fn threads(open: &Open) {
    const THREADS: u64 = 8;
    const EACH: u64 = 6;
    let index = open();
    std::thread::scope(|scope| {
        for worker in 0..THREADS {
            scope.spawn(move || {
                let own = open();
                for n in 0..EACH {
                    loop {
                        let newest = own.newest().unwrap();
                        let mut point = point(newest.next().0, PointKind::Mutation);
                        point.id = id(worker * EACH + n + 1_000);
                        let op = IndexOp::PutPoint { point: Box::new(point), interval: vec![touch("p", &["s0"])] };
                        match own.apply(&Batch { follows: Some(newest), ops: vec![op] }) {
                            Ok(_) => break,
                            Err(IndexError::Conflict { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if n % 3 == 0 {
                        own.maintain().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(places(&*index, &PointQuery::default()), (1..=THREADS * EACH).collect::<Vec<_>>());
    let ids: BTreeSet<_> = index.points(&PointQuery::default()).unwrap().iter().map(|point| point.id).collect();
    assert_eq!(ids.len() as u64, THREADS * EACH);
    assert_eq!(index.revision().unwrap(), Revision(THREADS * EACH));
    assert_eq!(everything(&*open()), everything(&*index));
}
