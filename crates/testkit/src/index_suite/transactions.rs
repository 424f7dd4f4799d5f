//! Operations, what they wrote, and their intents.

use checkpoint_core::{DropReason, IndexError, IndexOp, IntentState, OpKind, OpState, PathState, PointKind};

use super::{
    Open,
    build::{Scene, id, intent, op, operation, written},
};

pub(super) fn intents(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    scene.operation(OpState::Open, &[]);
    scene.operation(OpState::Open, &[]);
    scene.put(PointKind::Gap, vec![]);
    let advance = |of, from, to| vec![IndexOp::AdvanceIntent { operation: op(of), from, to }];
    let misfit = |ops: Vec<IndexOp>| {
        assert!(matches!(scene.try_apply(ops), Err(IndexError::Misfit { .. })));
    };
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

/// K-21: retention must not take the target or the guard of a restore that is under way.
pub(super) fn open_transaction_pins(open: &Open) {
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

pub(super) fn operations(open: &Open) {
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
