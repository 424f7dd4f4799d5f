//! Sessions, names, marks, held paths.

use std::collections::BTreeSet;

use checkpoint_core::{Batch, IndexError, IndexOp, Member, OpState, PathState, RelPath, Session, Timestamp, Touch};

use super::{
    Open,
    build::{Scene, mark, name, op, path, session, session_row, written},
};

pub(super) fn sessions_names_marks(open: &Open) {
    let index = open();
    let mut scene = Scene::new(&*index);
    scene.record(vec![]);
    let mut one = session_row("s1");
    let put = |session: &Session| IndexOp::PutSession { session: Box::new(session.clone()) };
    scene.apply(vec![put(&one), put(&session_row("s0"))]);
    one.seen = Timestamp(99);
    one.parent = Some(session("s0"));
    scene.apply(vec![put(&one)]);
    assert_eq!(open().session(&one.key).unwrap().as_ref(), Some(&one));
    assert_eq!(index.session(&session("s")).unwrap(), None);
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
    // 001-02: numbers count up over all sessions, and of two who take the same only one gets it.
    assert_eq!(index.newest_mark().unwrap(), 10);
    for taken in [mark("s2", 10), mark("s2", 9), mark("s1", 10), mark("s1", 2)] {
        assert!(matches!(scene.try_apply(vec![IndexOp::NewMark { mark: taken }]), Err(IndexError::Misfit { .. })));
    }
    assert!(index.marks(&session("s2")).unwrap().is_empty());
    scene.apply(vec![IndexOp::NewMark { mark: mark("s2", 11) }]);
    assert_eq!((open().newest_mark().unwrap(), open().marks(&session("s2")).unwrap().len()), (11, 1));
}

pub(super) fn held(open: &Open) {
    let index = open();
    let change = |add: &[&str], remove: &[&str]| {
        let list = |texts: &[&str]| texts.iter().map(|text| path(text)).collect();
        index
            .apply(&Batch { follows: None, ops: vec![IndexOp::Held { add: list(add), remove: list(remove) }] })
            .unwrap();
    };
    change(&["a/b", "a", "c"], &[]);
    change(&["a"], &["c", "never"]);
    assert_eq!(open().held().unwrap(), BTreeSet::from([path("a"), path("a/b")]));
}

pub(super) fn odd_paths(open: &Open) {
    let index = open();
    let odd = [b"\xff/\xfe".as_slice(), b"a\nb", b"tab\tquote\"back\\", "é".as_bytes(), "e\u{301}".as_bytes(), b" "];
    let odd: Vec<RelPath> = odd.into_iter().map(|bytes| RelPath::new(bytes).unwrap()).collect();
    let mut scene = Scene::new(&*index);
    let interval: Vec<Touch> = odd.iter().map(|path| Touch { path: path.clone(), by: vec![Member::Outside] }).collect();
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
