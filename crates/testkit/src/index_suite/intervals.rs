//! What becomes of an interval when its record is dropped.

use checkpoint_core::{IndexOp, OpState, Ord, PointKind, PointQuery};

use super::{
    Open,
    build::{Scene, id, name, operation, touch},
    queries::places,
};

pub(super) fn drop_merges(open: &Open) {
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

pub(super) fn drop_of_newest_waits(open: &Open) {
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

pub(super) fn drop_over_operation(open: &Open) {
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

pub(super) fn waiting_over_operation(open: &Open) {
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

pub(super) fn gaps(open: &Open) {
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

/// What was imported is from an earlier time: it closes nothing, and what is dropped is merged past it.
pub(super) fn imports(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    let first = scene.record(vec![touch("a", &["-"])]);
    let import = scene.put(PointKind::Import, vec![]);
    scene.drop(first);
    assert_eq!(index.waiting().unwrap(), [touch("a", &["-"])], "the import is no record to come");
    let another = scene.put(PointKind::Import, vec![]);
    let next = scene.record(vec![touch("b", &["s0"])]);
    let intervals = index.intervals(Ord(0)).unwrap();
    assert_eq!(intervals.iter().map(|(ord, _)| ord.0).collect::<Vec<_>>(), [next]);
    assert_eq!(scene.interval(next), [touch("a", &["-"]), touch("b", &["s0"])]);
    scene.drop(import);
    scene.drop(another);
    assert_eq!(scene.interval(next).len(), 2);
}

pub(super) fn drop_takes_names(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    let (first, second) = (scene.record(vec![]), scene.record(vec![]));
    let names = [("x", first), ("y", first), ("z", second)];
    scene.apply(names.map(|(label, of)| IndexOp::PutName { name: name(label, of) }).into());
    scene.drop(first);
    assert_eq!(index.names().unwrap(), [name("z", second)]);
    // Its id does not come back as a stranger's.
    assert!(
        places(&*index, &PointQuery { id_prefix: Some(id(first).to_string()), ..PointQuery::default() }).is_empty()
    );
}
