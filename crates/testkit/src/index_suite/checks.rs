//! One check a contract sentence.

use std::collections::BTreeSet;

use checkpoint_core::{
    Batch, DropReason, IndexError, IndexOp, IndexStore, IntentState, OpKind, OpState, Ord, PathState, PointKind, PointQuery,
    RelPath, Revision, Timestamp, Touch, Turn,
};

use super::{Open, build::*};

type Check = (&'static str, fn(&Open));

pub(super) const ALL: &[Check] = &[
    ("an empty index", empty),
    ("points read back as they were put", points_read_back),
    ("another handle sees every batch", handles_agree),
    ("a batch that follows an older state conflicts", conflict),
    ("a batch that does not fit changes nothing", all_or_nothing),
    ("what does not fit is a misfit", misfits),
    ("queries select, order and limit", queries),
    ("ids are found by prefix", prefixes),
    ("a dropped record gives its interval to the next (F5)", drop_merges),
    ("the newest record's interval waits (F13)", drop_of_newest_waits),
    ("paths that an operation wrote are left out of a merge", drop_over_operation),
    ("what waits leaves out what operations wrote since", waiting_over_operation),
    ("gaps close nothing", gaps),
    ("a dropped point takes its names along", drop_takes_names),
    ("a transaction opens, advances and closes", intents),
    ("target and guard of an open transaction stay", open_transaction_pins),
    ("operations and what they wrote", operations),
    ("sessions, names and marks", sessions_names_marks),
    ("held paths", held),
    ("paths that are not UTF-8", odd_paths),
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
    let put = IndexOp::PutPoint { point: Box::new(full.clone()), interval: vec![touch("b", &["s1", "-"]), touch("a", &["local"])] };
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
        ("an operation that is not there", IndexOp::UpdateOperation { operation: Box::new(operation(9, OpState::Done)) }),
        ("an operation that opens again", IndexOp::UpdateOperation { operation: Box::new(operation(3, OpState::Open)) }),
        ("writing of no operation", IndexOp::PutWritten { operation: op(9), written: vec![] }),
        ("an intent of no operation", IndexOp::OpenIntent { intent: Box::new(intent(9, 1)) }),
        ("an intent of a finished operation", IndexOp::OpenIntent { intent: Box::new(intent(3, 1)) }),
        ("an advance without an intent", IndexOp::AdvanceIntent { operation: op(3), from: IntentState::Applying, to: IntentState::Applied }),
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

fn places(index: &dyn IndexStore, query: &PointQuery) -> Vec<u64> {
    index.points(query).unwrap().iter().map(|point| point.ord.0).collect()
}

fn queries(open: &Open) {
    let index = open();
    let kinds = [PointKind::TurnStart, PointKind::Mutation, PointKind::Gap, PointKind::TurnEnd, PointKind::Manual];
    for n in 1..=20 {
        let mut point = point(n, kinds[usize::try_from(n).unwrap() % kinds.len()]);
        point.session = session(if n % 3 == 0 { "s1" } else { "s0" });
        // Clocks go back: order is the place, never time.
        point.at = Timestamp(i64::try_from(1_000 - n % 4).unwrap());
        index.apply(&Batch { follows: Some(Ord(n - 1)), ops: vec![IndexOp::PutPoint { point: Box::new(point), interval: vec![] }] }).unwrap();
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
    assert_eq!(places(index, &PointQuery { kinds: vec![PointKind::TurnStart, PointKind::TurnEnd], limit: Some(3), ..all() }), [3, 5, 8]);
    assert_eq!(places(index, &PointQuery { restorable: true, limit: Some(3), ..all() }), [1, 3, 4]);
    assert_eq!(places(index, &PointQuery { kinds: vec![PointKind::Gap], restorable: true, ..all() }), [0; 0]);
    assert_eq!(places(index, &PointQuery { recorded_by: Some(Timestamp(998)), newest_first: true, limit: Some(2), ..all() }), [19, 18]);
}

fn prefixes(open: &Open) {
    let index = open();
    for (n, first) in [0xab, 0xac, 0xab, 0xff].into_iter().enumerate() {
        let ord = n as u64 + 1;
        let mut point = point(ord, PointKind::Manual);
        let mut bytes = [first; 16];
        bytes[15] = u8::try_from(4 - n).unwrap();
        point.id = checkpoint_core::PointId::from_bytes(bytes);
        index.apply(&Batch { follows: None, ops: vec![IndexOp::PutPoint { point: Box::new(point), interval: vec![] }] }).unwrap();
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
    let newest = PointQuery { id_prefix: Some("ab".into()), newest_first: true, limit: Some(1), ..PointQuery::default() };
    assert_eq!(places(&*index, &newest), [3]);
    let whole = index.points(&newest).unwrap()[0].id;
    assert_eq!(find(&whole.to_string()), [3]);
}

fn drop_merges(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    let first = scene.record(vec![touch("both", &["-"]), touch("one", &["s0"])]);
    let second = scene.record(vec![touch("both", &["s0", "s1"]), touch("two", &["s1"])]);
    let third = scene.record(vec![touch("one", &["-"])]);
    scene.drop(first);
    // A session's change on top of the hand edit does not hide it: per path and member.
    assert_eq!(
        scene.interval(second),
        [touch("both", &["-", "s0", "s1"]), touch("one", &["s0"]), touch("two", &["s1"])]
    );
    assert_eq!(scene.interval(third), [touch("one", &["-"])]);
    assert!(index.point(&id(first)).unwrap().is_none());
    assert_eq!(index.newest().unwrap(), Ord(third));
    scene.drop(second);
    assert_eq!(
        scene.interval(third),
        [touch("both", &["-", "s0", "s1"]), touch("one", &["-", "s0"]), touch("two", &["s1"])]
    );
    assert!(index.waiting().unwrap().is_empty());
}

fn drop_of_newest_waits(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    let second = scene.record(vec![touch("a", &["s0"])]);
    let third = scene.record(vec![touch("a", &["-"]), touch("b", &["-"])]);
    scene.drop(third);
    assert_eq!(index.waiting().unwrap(), [touch("a", &["-"]), touch("b", &["-"])]);
    assert_eq!(index.newest().unwrap(), Ord(third), "dropped places stay taken");
    scene.drop(second);
    assert_eq!(index.waiting().unwrap(), [touch("a", &["-", "s0"]), touch("b", &["-"])]);
    assert_eq!(open().waiting().unwrap(), index.waiting().unwrap());
    // A gap closes nothing, so it takes nothing.
    scene.put(PointKind::Gap, vec![]);
    assert_eq!(index.waiting().unwrap().len(), 2);
    let record = scene.record(vec![touch("b", &["s1"]), touch("c", &["s1"])]);
    assert_eq!(scene.interval(record), [touch("a", &["-", "s0"]), touch("b", &["-", "s1"]), touch("c", &["s1"])]);
    assert!(index.waiting().unwrap().is_empty());
}

fn drop_over_operation(open: &Open) {
    let all = || vec![touch("kept", &["-"]), touch("open", &["-"]), touch("rolled", &["-"]), touch("wrote", &["-"])];
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.operation(OpState::Done, &["kept"]); // before the record: not between
    let first = scene.record(all());
    scene.operation(OpState::Done, &["wrote", "elsewhere"]);
    scene.operation(OpState::RolledBack, &["rolled"]);
    scene.operation(OpState::Open, &["open"]);
    let second = scene.record(vec![touch("wrote", &["s1"])]);
    scene.operation(OpState::Done, &["kept"]); // after the next record: not between
    scene.drop(first);
    assert_eq!(
        scene.interval(second),
        [touch("kept", &["-"]), touch("open", &["-"]), touch("rolled", &["-"]), touch("wrote", &["s1"])]
    );
}

fn waiting_over_operation(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    let first = scene.record(vec![touch("a", &["-"]), touch("b", &["-"]), touch("c", &["-"])]);
    scene.drop(first);
    let place = scene.operation(OpState::Open, &["b"]);
    assert_eq!(index.waiting().unwrap().len(), 3, "an open operation may yet be rolled back");
    scene.operation(OpState::Partial, &["a"]);
    assert_eq!(index.waiting().unwrap(), [touch("b", &["-"]), touch("c", &["-"])]);
    scene.apply(vec![IndexOp::UpdateOperation { operation: Box::new(operation(place, OpState::RolledBack)) }]);
    assert_eq!(index.waiting().unwrap(), [touch("b", &["-"]), touch("c", &["-"])]);
    let record = scene.record(vec![]);
    assert_eq!(scene.interval(record), [touch("b", &["-"]), touch("c", &["-"])]);
}

fn gaps(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    let first = scene.record(vec![touch("a", &["-"])]);
    let gap = scene.put(PointKind::Gap, vec![]);
    let next = scene.record(vec![touch("b", &["s0"])]);
    let intervals = index.intervals(Ord(0)).unwrap();
    assert_eq!(intervals.iter().map(|(ord, _)| ord.0).collect::<Vec<_>>(), [first, next]);
    scene.drop(first);
    assert_eq!(scene.interval(next), [touch("a", &["-"]), touch("b", &["s0"])], "merged past the gap");
    scene.drop(gap);
    assert_eq!(scene.interval(next).len(), 2);
    assert!(index.waiting().unwrap().is_empty());
}

fn drop_takes_names(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    let (first, second) = (scene.record(vec![]), scene.record(vec![]));
    let names = [("x", first), ("y", first), ("z", second)];
    scene.apply(names.map(|(label, of)| IndexOp::PutName { name: name(label, of) }).into());
    scene.drop(first);
    assert_eq!(index.names().unwrap(), [name("z", second)]);
    // Its id does not come back as a stranger's.
    assert!(places(&*index, &PointQuery { id_prefix: Some(id(first).to_string()), ..PointQuery::default() }).is_empty());
}

fn intents(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    scene.operation(OpState::Open, &[]);
    scene.operation(OpState::Open, &[]);
    scene.put(PointKind::Gap, vec![]);
    let advance = |of, from, to| vec![IndexOp::AdvanceIntent { operation: op(of), from, to }];
    let misfit = |ops: Vec<IndexOp>| assert!(matches!(scene.try_apply(ops), Err(IndexError::Misfit { .. })));
    misfit(vec![IndexOp::OpenIntent { intent: Box::new(intent(2, 4)) }]);
    misfit(vec![IndexOp::OpenIntent { intent: Box::new(intent(2, 9)) }]);
    scene.apply(vec![IndexOp::OpenIntent { intent: Box::new(intent(2, 1)) }]);
    assert_eq!(open().open_intent().unwrap(), Some(intent(2, 1)));
    misfit(vec![IndexOp::OpenIntent { intent: Box::new(intent(3, 1)) }]);
    misfit(advance(3, IntentState::Applying, IntentState::Applied));
    misfit(advance(2, IntentState::Applied, IntentState::Forking));
    scene.apply(advance(2, IntentState::Applying, IntentState::Applied));
    misfit(advance(2, IntentState::Applying, IntentState::Applied));
    scene.apply(advance(2, IntentState::Applied, IntentState::Forking));
    assert_eq!(open().open_intent().unwrap().unwrap().state, IntentState::Forking);
    misfit(advance(2, IntentState::Forking, IntentState::Applying)); // F20: only forward
    misfit(vec![IndexOp::CloseIntent { operation: op(3) }]);
    scene.apply(vec![IndexOp::CloseIntent { operation: op(2) }]);
    assert_eq!(open().open_intent().unwrap(), None);
    scene.apply(vec![IndexOp::OpenIntent { intent: Box::new(intent(3, 1)) }]);
}

fn open_transaction_pins(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    let (target, guard, other) = (scene.record(vec![]), scene.record(vec![]), scene.record(vec![]));
    let mut operation = operation(4, OpState::Open);
    operation.target = Some(id(target));
    scene.apply(vec![
        IndexOp::PutOperation { operation: Box::new(operation.clone()) },
        IndexOp::OpenIntent { intent: Box::new(intent(4, guard)) },
    ]);
    scene.newest = 4;
    let drop = |n| IndexOp::DropPoint { id: id(n), reason: DropReason::Quota };
    for pinned in [target, guard] {
        assert!(matches!(scene.try_apply(vec![drop(pinned)]), Err(IndexError::Misfit { .. })));
    }
    scene.apply(vec![drop(other)]);
    operation.state = OpState::Done;
    scene.apply(vec![
        IndexOp::UpdateOperation { operation: Box::new(operation) },
        IndexOp::CloseIntent { operation: op(4) },
        drop(target),
        drop(guard),
    ]);
}

fn operations(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    for n in 1..=5 {
        scene.operation(OpState::Done, &["a", "b"]);
        if n == 3 {
            let mut undo = operation(3, OpState::Done);
            undo.kind = OpKind::Undo;
            undo.reverses = Some(op(2));
            scene.apply(vec![IndexOp::UpdateOperation { operation: Box::new(undo) }]);
        }
    }
    let list = |kinds: &[OpKind], limit| -> Vec<u64> {
        index.operations(kinds, limit).unwrap().iter().map(|operation| operation.ord.0).collect()
    };
    assert_eq!(list(&[], None), [5, 4, 3, 2, 1]);
    assert_eq!(list(&[], Some(2)), [5, 4]);
    assert_eq!(list(&[], Some(0)), [0; 0]);
    assert_eq!(list(&[OpKind::Restore], Some(3)), [5, 4, 2]);
    assert_eq!(list(&[OpKind::Undo, OpKind::Redo], None), [3]);
    assert_eq!(index.operation(&op(3)).unwrap().unwrap().reverses, Some(op(2)));
    assert_eq!(index.written(&op(2)).unwrap(), [written("a"), written("b")]);
    let mut other = written("b");
    other.after = PathState::Absent;
    scene.apply(vec![IndexOp::PutWritten { operation: op(2), written: vec![other.clone()] }]);
    assert_eq!(index.written(&op(2)).unwrap(), [other], "replaced, not merged");
    // Points and operations share one sequence.
    let place = scene.record(vec![]);
    assert_eq!(place, 6);
}

fn sessions_names_marks(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    let mut one = session_row("s1");
    let put = |session: &checkpoint_core::Session| IndexOp::PutSession { session: Box::new(session.clone()) };
    scene.apply(vec![put(&one), put(&session_row("s0"))]);
    one.seen = Timestamp(99);
    one.parent = Some(session("s0"));
    scene.apply(vec![put(&one)]);
    assert_eq!(open().sessions().unwrap(), [session_row("s0"), one]);

    let mut label = name("Bb", 1);
    scene.apply(vec![
        IndexOp::PutName { name: label.clone() },
        IndexOp::PutName { name: name("a%_'\"", 1) },
        IndexOp::PutName { name: name("é", 1) },
    ]);
    label.note = Some("again".into());
    scene.apply(vec![IndexOp::PutName { name: label.clone() }]);
    assert_eq!(open().names().unwrap(), [label, name("a%_'\"", 1), name("é", 1)]);
    scene.apply(vec![IndexOp::DropName { label: "é".into() }]);
    assert_eq!(index.names().unwrap().len(), 2);

    for n in [2, 10, 1] {
        scene.apply(vec![IndexOp::PutMark { mark: mark("s1", n) }]);
    }
    scene.apply(vec![IndexOp::PutMark { mark: mark("s11", 3) }]);
    let mut folded = mark("s1", 2);
    folded.folded = Some(Timestamp(7));
    scene.apply(vec![IndexOp::PutMark { mark: folded.clone() }]);
    assert_eq!(open().marks(&session("s1")).unwrap(), [mark("s1", 1), folded.clone(), mark("s1", 10)]);
    assert!(index.marks(&session("s")).unwrap().is_empty());
    // 001: a mark is folded once; two folds at once cannot both succeed.
    let mut again = folded.clone();
    again.folded = Some(Timestamp(8));
    assert!(matches!(scene.try_apply(vec![IndexOp::PutMark { mark: again }]), Err(IndexError::Misfit { .. })));
    scene.apply(vec![IndexOp::PutMark { mark: folded }]);
    assert_eq!(one_turn(&*index), None);
}

fn one_turn(index: &dyn IndexStore) -> Option<Turn> {
    index.sessions().unwrap().iter().find_map(|session| session.turn.as_ref().map(|turn| turn.turn))
}

fn held(open: &Open) {
    let index = open();
    let change = |add: &[&str], remove: &[&str]| {
        let list = |texts: &[&str]| texts.iter().map(|text| path(text)).collect();
        index.apply(&Batch { follows: None, ops: vec![IndexOp::Held { add: list(add), remove: list(remove) }] }).unwrap();
    };
    change(&["a/b", "a", "c"], &[]);
    change(&["a"], &["c", "never"]);
    assert_eq!(open().held().unwrap(), BTreeSet::from([path("a"), path("a/b")]));
}

fn odd_paths(open: &Open) {
    let index = open();
    let odd = [b"\xff/\xfe".as_slice(), b"a\nb", b"tab\tquote\"back\\", "é".as_bytes(), "e\u{301}".as_bytes(), b" "];
    let odd: Vec<RelPath> = odd.into_iter().map(|bytes| RelPath::new(bytes).unwrap()).collect();
    let mut scene = Scene::new(&*index);
    let interval: Vec<Touch> = odd.iter().map(|path| Touch { path: path.clone(), by: vec![checkpoint_core::Member::Outside] }).collect();
    let first = scene.record(interval);
    scene.operation(OpState::Done, &[]);
    let mut wrote = written("x");
    wrote.path = odd[0].clone();
    wrote.before = PathState::Opaque;
    scene.apply(vec![
        IndexOp::PutWritten { operation: op(2), written: vec![wrote.clone()] },
        IndexOp::Held { add: odd.clone(), remove: vec![] },
    ]);
    let index = open();
    assert_eq!(index.held().unwrap(), odd.iter().cloned().collect());
    assert_eq!(index.written(&op(2)).unwrap(), [wrote]);
    scene.drop(first);
    let left: BTreeSet<RelPath> = index.waiting().unwrap().into_iter().map(|touch| touch.path).collect();
    assert_eq!(left, odd[1..].iter().cloned().collect());
    scene.apply(vec![IndexOp::Held { add: vec![], remove: odd }]);
    assert!(index.held().unwrap().is_empty());
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

/// K-21: eight at once, eight records, nothing torn. Each names what it follows and tries again.
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
