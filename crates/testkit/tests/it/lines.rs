//! Test lines of themes D, E, H and O that are about the engine as a whole: what hands do between turns, whose plan it
//! is, what an undo reaches, and that records are not the workspace.

use std::sync::Barrier;

use checkpoint_core::{DropWhich, PointQuery, RestorePolicy, RestoreRequest, ReverseRequest, Status};

use crate::world::{Kind, World, exactly, path, to, undo};

/// What was edited and removed by hand between two turns is the state that the second turn begins with.
#[test]
fn td27_td28_what_hands_did_between_turns_is_in_the_next_turns_point() {
    let world = World::plain();
    world.write("edited", "1");
    world.write("removed", "1");
    world.turn_start("h:s", 1);
    world.write("edited", "by turn 1");
    world.write("removed", "by turn 1");
    world.turn_end("h:s", 1);
    world.write("edited", "by hand");
    world.remove("removed");
    let start = world.turn_start("h:s", 2).point;
    assert_eq!(start.changed, 2);
    world.write("edited", "by turn 2");
    world.write("removed", "by turn 2");
    world.turn_end("h:s", 2);
    let outcome = world.engine.restore(&exactly("h:s/t2^")).unwrap();
    assert_eq!(outcome.status, Status::Restored);
    assert_eq!(world.read("edited"), "by hand");
    assert!(!world.at("removed").exists());
}

/// A plan is good for the state it was made of, so of several who hold it one gets to apply it.
#[test]
fn th17_a_plan_is_applied_once_however_many_hold_it() {
    let world = World::plain();
    world.write("a", "1");
    let point = world.save().point;
    world.write("a", "2");
    world.save();
    let plan = world.engine.preview(&to(point.id)).unwrap().plan_id;
    let request = RestoreRequest { plan: Some(plan), ..to(point.id) };
    let start = Barrier::new(4);
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    world.engine.restore(&request)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1, "{ends:?}");
    for refused in ends.into_iter().filter_map(Result::err) {
        assert!(matches!(refused.code(), "busy" | "stale-plan"), "{refused:?}");
    }
    assert_eq!(world.read("a"), "1");
    assert_eq!(world.engine.index().operations(&[], None).unwrap().len(), 1);
    assert_eq!(world.engine.restore(&request).unwrap_err().code(), "stale-plan");
}

/// Undoing an older operation reaches the paths that it wrote and no others.
#[test]
fn to05_an_undo_takes_back_what_its_operation_wrote_and_nothing_else() {
    let world = World::plain();
    for file in ["a", "b"] {
        world.write(file, "1");
    }
    let point = world.save().point;
    for file in ["a", "b"] {
        world.write(file, "2");
    }
    world.save();
    let only = |name: &str| {
        let policy = RestorePolicy { selection: vec![path(name)], ..RestorePolicy::default() };
        world.engine.restore(&RestoreRequest { policy, ..to(point.id) }).unwrap().operation.unwrap()
    };
    let (first, second) = (only("a"), only("b"));
    assert_eq!((world.read("a"), world.read("b")), ("1".into(), "1".into()));
    world.engine.undo(&ReverseRequest { operation: Some(first.to_string()), ..undo() }).unwrap();
    assert_eq!((world.read("a"), world.read("b")), ("2".into(), "1".into()));
    let newer = world.engine.index().operation(&second).unwrap().unwrap();
    assert!(newer.reversed_by.is_none());
}

/// Records go without a byte of the workspace, or of what git keeps in it.
#[test]
fn te19_dropping_records_touches_neither_files_nor_git() {
    let world = World::new(Kind::Sqlite, true, checkpoint_core::CapturePolicy::default());
    for content in ["1", "2", "3"] {
        world.write("a", content);
        world.save();
    }
    let all = || crate::scan::scan(&world.root(), true);
    let before = all();
    assert!(before.keys().any(|path| path.starts_with(b".git/")), "git's own files are looked at");
    assert_eq!(world.engine.drop_points(&DropWhich::All).unwrap().len(), 3);
    world.engine.gc(false).unwrap();
    assert_eq!(all(), before);
    assert!(world.engine.index().points(&PointQuery::default()).unwrap().is_empty());
}
