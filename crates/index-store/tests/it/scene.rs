//! A little history that fills every table.

use std::fmt::Write;

use checkpoint_core::{
    Batch, DropReason, IndexOp, IndexStore, Member, OpState, Ord, PointKind, PointQuery, ProcessId, RelPath, Timestamp,
    Touch, Turn, TurnStatus,
};
use testkit::index_suite::build;

pub(crate) fn apply(index: &dyn IndexStore, ops: Vec<IndexOp>) {
    index.apply(&Batch { follows: Some(index.newest().unwrap()), ops }).unwrap();
}

/// One more record.
pub(crate) fn record(index: &dyn IndexStore) -> Ord {
    let next = index.newest().unwrap().next();
    let interval = vec![build::touch("a", &["s0"])];
    apply(index, vec![IndexOp::PutPoint { point: Box::new(build::point(next.0, PointKind::Manual)), interval }]);
    next
}

/// Fills an empty index: points 1 to 4 and 7 (dropped, waiting), operations 5 and 6.
pub(crate) fn play(index: &dyn IndexStore) {
    let put = |ord, kind, interval| IndexOp::PutPoint { point: Box::new(build::point(ord, kind)), interval };
    let odd = RelPath::new(b"\xff".to_vec()).unwrap();
    apply(index, vec![put(1, PointKind::TurnStart, vec![])]);
    let touches = vec![build::touch("a", &["s0", "-"]), Touch { path: odd.clone(), by: vec![Member::Local] }];
    apply(index, vec![put(2, PointKind::Mutation, touches)]);
    apply(index, vec![put(3, PointKind::Gap, vec![])]);
    let mut guard = build::point(4, PointKind::Guard);
    guard.operation = Some(build::op(6));
    guard.late = vec![odd.clone()];
    let mut session = build::session_row("s0");
    session.turn = Some(TurnStatus {
        turn: Turn(1),
        start: Some(Ord(1)),
        began: Timestamp(1),
        ended: None,
        interrupted: false,
        closed: None,
        process: Some(ProcessId { pid: 7, started: 8, boot: "b".into() }),
    });
    apply(
        index,
        vec![
            IndexOp::PutPoint { point: Box::new(guard), interval: vec![build::touch("b", &["s1"])] },
            IndexOp::PutOperation { operation: Box::new(build::operation(5, OpState::Done)) },
            IndexOp::PutWritten { operation: build::op(5), written: vec![build::written("b")] },
            IndexOp::PutOperation { operation: Box::new(build::operation(6, OpState::Open)) },
            IndexOp::OpenIntent { intent: Box::new(build::intent(6, 4)) },
            IndexOp::PutSession { session: Box::new(session) },
            IndexOp::PutName { name: build::name("before the refactoring", 2) },
            IndexOp::PutMark { mark: build::mark("s0", 1) },
            IndexOp::Held { add: vec![odd, build::path("x")], remove: vec![] },
        ],
    );
    apply(index, vec![put(7, PointKind::Step, vec![build::touch("c", &["-"])])]);
    apply(index, vec![IndexOp::DropPoint { id: build::id(7), reason: DropReason::User }]);
}

/// Everything that can be read, as text.
pub(crate) fn dump(index: &dyn IndexStore) -> String {
    let mut text = String::new();
    let operations = index.operations(&[], None).unwrap();
    writeln!(text, "{:?} {:?}", index.revision().unwrap(), index.newest().unwrap()).unwrap();
    writeln!(text, "{:#?}", index.points(&PointQuery::default()).unwrap()).unwrap();
    writeln!(text, "{:#?} {:#?}", index.intervals(Ord(0)).unwrap(), index.waiting().unwrap()).unwrap();
    for operation in operations {
        writeln!(text, "{operation:#?} {:#?}", index.written(&operation.id).unwrap()).unwrap();
    }
    writeln!(text, "{:#?} {:#?}", index.open_intent().unwrap(), index.sessions().unwrap()).unwrap();
    let marks = index.marks(&build::session("s0")).unwrap();
    writeln!(text, "{:#?} {marks:#?} {:#?}", index.names().unwrap(), index.held().unwrap()).unwrap();
    text
}
