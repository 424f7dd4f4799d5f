//! Random histories.

use std::collections::{BTreeMap, BTreeSet};

use checkpoint_core::{
    Batch, DropReason, IndexError, IndexOp, IndexStore, IntentState, Member, OpState, Ord, PointKind, PointQuery,
    RelPath, Touch, changes_after, history_at,
};
use proptest::{prelude::*, sample::select, test_runner::TestRunner};

use super::{
    Open,
    build::{id, intent, mark, name, op, operation, path, point, session, session_row, written},
    checks::everything,
};

/// One step, in terms of what the index holds by then: numbers wrap around.
#[derive(Clone, Debug)]
enum Act {
    Record(Vec<(u8, u8)>),
    Gap,
    Drop(u8),
    Operation(OpState, Vec<u8>),
    Finish(u8, OpState),
    Written(u8, Vec<u8>),
    Open(u8, u8),
    Advance(u8),
    Close(u8),
    Name(u8, u8),
    DropName(u8),
    Mark(u8, bool),
    Session(u8, i64),
    Held(Vec<u8>, Vec<u8>),
    Update(u8),
    Reopen,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let some = || prop::collection::vec(0..5_u8, 0..4);
    let state = || select(vec![OpState::Open, OpState::Done, OpState::Partial, OpState::RolledBack]);
    let act = prop_oneof![
        6 => prop::collection::vec((0..5_u8, 0..4_u8), 0..4).prop_map(Act::Record),
        1 => Just(Act::Gap),
        4 => any::<u8>().prop_map(Act::Drop),
        3 => (state(), some()).prop_map(|(state, paths)| Act::Operation(state, paths)),
        1 => (any::<u8>(), state()).prop_map(|(which, state)| Act::Finish(which, state)),
        1 => (any::<u8>(), some()).prop_map(|(which, paths)| Act::Written(which, paths)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(of, guard)| Act::Open(of, guard)),
        1 => (0..3_u8).prop_map(Act::Advance),
        1 => any::<u8>().prop_map(Act::Close),
        1 => (0..3_u8, any::<u8>()).prop_map(|(label, of)| Act::Name(label, of)),
        1 => (0..3_u8).prop_map(Act::DropName),
        1 => (0..3_u8, any::<bool>()).prop_map(|(n, folded)| Act::Mark(n, folded)),
        1 => (0..2_u8, any::<i64>()).prop_map(|(n, seen)| Act::Session(n, seen)),
        1 => (some(), some()).prop_map(|(add, remove)| Act::Held(add, remove)),
        1 => any::<u8>().prop_map(Act::Update),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 1..30)
}

fn place(n: u8) -> RelPath {
    path(["a", "a/b", "b", "c", "d"][usize::from(n) % 5])
}

fn touches(of: &[(u8, u8)]) -> Vec<Touch> {
    let member = |n: u8| match n {
        0 => Member::Outside,
        1 => Member::Local,
        n => Member::Session(session(&format!("s{n}"))),
    };
    of.iter().map(|(at, by)| Touch { path: place(*at), by: vec![member(*by)] }).collect()
}

/// Turns an act into changes, looking at the index for what there is.
fn changes(index: &dyn IndexStore, act: &Act) -> Vec<IndexOp> {
    let next = index.newest().unwrap().next().0;
    let points = index.points(&PointQuery::default()).unwrap();
    let operations = index.operations(&[], None).unwrap();
    let a_point = |n: u8| points.get(usize::from(n) % points.len().max(1)).cloned();
    let an_operation = |n: u8| operations.get(usize::from(n) % operations.len().max(1)).cloned();
    let op_id = |n: u8| an_operation(n).map_or_else(|| op(999), |operation| operation.id);
    let point_id = |n: u8| a_point(n).map_or_else(|| id(999), |point| point.id);
    let wrote = |paths: &[u8]| {
        let paths: BTreeSet<RelPath> = paths.iter().map(|n| place(*n)).collect();
        paths.iter().map(|path| written(&path.to_lossy())).collect()
    };
    match act {
        Act::Record(of) => {
            vec![IndexOp::PutPoint { point: Box::new(point(next, PointKind::Manual)), interval: touches(of) }]
        }
        Act::Gap => vec![IndexOp::PutPoint { point: Box::new(point(next, PointKind::Gap)), interval: vec![] }],
        Act::Drop(n) => vec![IndexOp::DropPoint { id: point_id(*n), reason: DropReason::Quota }],
        Act::Operation(state, paths) => vec![
            IndexOp::PutOperation { operation: Box::new(operation(next, *state)) },
            IndexOp::PutWritten { operation: op(next), written: wrote(paths) },
        ],
        Act::Finish(n, state) => {
            let mut operation = an_operation(*n).unwrap_or_else(|| operation(999, *state));
            operation.state = *state;
            vec![IndexOp::UpdateOperation { operation: Box::new(operation) }]
        }
        Act::Written(n, paths) => vec![IndexOp::PutWritten { operation: op_id(*n), written: wrote(paths) }],
        Act::Open(of, guard) => {
            let mut intent = intent(1, 1);
            intent.operation = op_id(*of);
            intent.guard = point_id(*guard);
            vec![IndexOp::OpenIntent { intent: Box::new(intent) }]
        }
        Act::Advance(n) => {
            let (from, to) = match n {
                0 => (IntentState::Applying, IntentState::Applied),
                1 => (IntentState::Applied, IntentState::Forking),
                _ => (IntentState::Forking, IntentState::Applying),
            };
            let operation = index.open_intent().unwrap().map_or_else(|| op(999), |intent| intent.operation);
            vec![IndexOp::AdvanceIntent { operation, from, to }]
        }
        Act::Close(n) => {
            let open = index.open_intent().unwrap().map(|intent| intent.operation);
            vec![IndexOp::CloseIntent { operation: open.unwrap_or_else(|| op_id(*n)) }]
        }
        Act::Name(label, of) => {
            let mut name = name(&format!("n{label}"), 1);
            name.point = point_id(*of);
            vec![IndexOp::PutName { name }]
        }
        Act::DropName(label) => vec![IndexOp::DropName { label: format!("n{label}") }],
        Act::Mark(n, folded) => {
            let mut mark = mark("s0", u64::from(*n) + 1);
            mark.folded = folded.then_some(checkpoint_core::Timestamp(5));
            vec![IndexOp::PutMark { mark }]
        }
        Act::Session(n, seen) => {
            let mut session = session_row(&format!("s{n}"));
            session.seen = checkpoint_core::Timestamp(*seen);
            vec![IndexOp::PutSession { session: Box::new(session) }]
        }
        Act::Held(add, remove) => {
            let list = |of: &[u8]| of.iter().map(|n| place(*n)).collect();
            vec![IndexOp::Held { add: list(add), remove: list(remove) }]
        }
        Act::Update(n) => {
            let mut point = a_point(*n).unwrap_or_else(|| point(999, PointKind::Manual));
            point.damaged = Some(format!("seen at {next}"));
            vec![IndexOp::UpdatePoint { point: Box::new(point) }]
        }
        Act::Reopen => Vec::new(),
    }
}

fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
}

/// Whatever happens, the index reads as the model does, errors included, and also after it was opened again.
pub(super) fn read_the_same(fresh: &dyn Fn() -> Open, model: &dyn Fn() -> Box<dyn IndexStore>) {
    let outcome = runner(24).run(&acts(), |acts| {
        let (open, model) = (fresh(), model());
        let mut handles = [open(), open()];
        for (n, act) in acts.iter().enumerate() {
            if matches!(act, Act::Reopen) {
                handles = [open(), open()];
                continue;
            }
            let batch = Batch { follows: None, ops: changes(&*model, act) };
            let (expected, found) = (model.apply(&batch), handles[n % 2].apply(&batch));
            prop_assert_eq!(format!("{expected:?}"), format!("{found:?}"), "{:?}", act);
            prop_assert_eq!(everything(&*model), everything(&*handles[n / 2 % 2]), "{:?}", act);
        }
        prop_assert_eq!(everything(&*model), everything(&*open()));
        prop_assert_eq!(model.revision().unwrap(), open().revision().unwrap());
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Who changed each path after a target, as planning asks it: touches after the target and after the last operation
/// that wrote the path.
fn seen_from(index: &dyn IndexStore, target: Ord) -> BTreeMap<RelPath, BTreeSet<Member>> {
    let mut wrote: BTreeMap<RelPath, Ord> = BTreeMap::new();
    for operation in index.operations(&[], None).unwrap() {
        if matches!(operation.state, OpState::Done | OpState::Partial) {
            for one in index.written(&operation.id).unwrap() {
                let newest = wrote.entry(one.path).or_default();
                *newest = (*newest).max(operation.ord);
            }
        }
    }
    let mut seen: BTreeMap<RelPath, BTreeSet<Member>> = BTreeMap::new();
    let to_come = (index.newest().unwrap().next(), index.waiting().unwrap());
    for (ord, touches) in index.intervals(target).unwrap().into_iter().chain([to_come]) {
        for touch in touches {
            if wrote.get(&touch.path).is_none_or(|at| ord > *at) {
                seen.entry(touch.path).or_default().extend(touch.by);
            }
        }
    }
    seen
}

/// What is read after a place says of what came after it the same as everything does.
fn reads_only_what_is_later(index: &dyn IndexStore) -> Result<(), TestCaseError> {
    let paths = (0..5).map(place).collect();
    let newest = index.newest().unwrap();
    let all = history_at(index, newest, &paths).unwrap();
    for target in 0..=newest.0 {
        let mut later = all.clone();
        for history in later.values_mut() {
            history.retain(|_, ord| ord.0 > target);
        }
        later.retain(|_, history| !history.is_empty());
        let mut found = changes_after(index, Ord(target), &paths).unwrap();
        found.retain(|_, history| !history.is_empty());
        prop_assert_eq!(later, found, "after {}", target);
    }
    Ok(())
}

/// F5, F13: dropping records changes nothing about who changed what after any record that is left.
pub(super) fn no_drop_launders(fresh: &dyn Fn() -> Open) {
    let some = || prop::collection::vec(0..5_u8, 0..4);
    let act = prop_oneof![
        5 => prop::collection::vec((0..5_u8, 0..4_u8), 0..4).prop_map(Act::Record),
        1 => Just(Act::Gap),
        2 => (select(vec![OpState::Done, OpState::Partial, OpState::RolledBack]), some())
            .prop_map(|(state, paths)| Act::Operation(state, paths)),
        4 => any::<u8>().prop_map(Act::Drop),
    ];
    let outcome = runner(32).run(&prop::collection::vec(act, 1..25), |acts| {
        let open = fresh();
        let index = open();
        for act in acts {
            let batch = Batch { follows: None, ops: changes(&*index, &act) };
            let views = |index: &dyn IndexStore| -> BTreeMap<Ord, _> {
                let records = index.points(&PointQuery { restorable: true, ..PointQuery::default() }).unwrap();
                records.iter().map(|point| (point.ord, seen_from(index, point.ord))).collect()
            };
            let before = views(&*index);
            match index.apply(&batch) {
                Ok(_) => {}
                Err(IndexError::Misfit { .. }) if matches!(act, Act::Drop(_)) => continue, // nothing to drop
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
            reads_only_what_is_later(&*index)?;
            if matches!(act, Act::Drop(_)) {
                for (target, after) in views(&*index) {
                    prop_assert_eq!(&before[&target], &after, "from {}", target);
                }
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
