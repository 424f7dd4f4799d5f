//! Points that rest on what a watcher saw (design § 10): what they say, and what they do not.

use checkpoint_core::{CapturePolicy, Consistency, Point, PointKind, SaveRequest, SessionKey, Turn};

use crate::world::{Kind, World, exactly};

fn event(world: &World, kind: PointKind) -> Point {
    let session = SessionKey::parse("claude:here").unwrap();
    world.engine.save(&SaveRequest { turn: Some(Turn(1)), ..SaveRequest::of(session, kind) }).unwrap().point
}

/// Waits until what was written is older than the window in which stamps are not trusted.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(60));
}

/// A turn under way in a world that was walked twice.
fn turn(policy: CapturePolicy) -> (World, Point) {
    let world = World::new(Kind::Sqlite, false, policy);
    for file in ["a/f", "b/g", "top"] {
        world.write(file, "0");
    }
    settle();
    world.save();
    settle();
    let start = event(&world, PointKind::TurnStart);
    assert_eq!(start.consistency, Consistency::Quiet);
    (world, start)
}

/// What a point before a tool does not have is not proven absent: going back exactly keeps it. The turn's start walked.
#[cfg(target_os = "linux")]
#[test]
fn a_watched_point_proves_nothing_absent() {
    let (world, start) = turn(CapturePolicy::default());
    world.write("a/f", "1");
    let before_tool = event(&world, PointKind::Mutation);
    assert_eq!((before_tool.consistency, before_tool.changed), (Consistency::Watched, 1));
    world.write("a/f", "2");
    world.write("b/new", "made by the tool");
    settle();
    let plan = world.engine.preview(&exactly(before_tool.id)).unwrap().plan;
    assert_eq!((plan.overwrite.len(), plan.remove.len(), plan.kept_new.len()), (1, 0, 1));
    world.engine.restore(&exactly(before_tool.id)).unwrap();
    assert_eq!((world.read("a/f"), world.read("b/new")), ("1".to_owned(), "made by the tool".to_owned()));
    world.engine.restore(&exactly(start.id)).unwrap();
    assert_eq!(world.read("a/f"), "0");
    assert!(!world.root().join("b/new").exists());
}

/// A person's save, a turn's end and every guard walk, whatever a watcher saw; and all do where it is switched off.
#[test]
fn all_else_walks() {
    let (world, _) = turn(CapturePolicy::default());
    world.write("a/f", "1");
    settle();
    for kind in [PointKind::Manual, PointKind::Auto, PointKind::TurnEnd] {
        assert_ne!(event(&world, kind).consistency, Consistency::Watched, "{kind:?}");
    }
    let outcome = world.engine.restore(&exactly("claude:here/t1^")).unwrap();
    let guard = world.engine.index().point(&outcome.guard.unwrap()).unwrap().unwrap();
    assert_ne!(guard.consistency, Consistency::Watched);
    let (world, _) = turn(CapturePolicy { watch: false, ..CapturePolicy::default() });
    world.write("a/f", "1");
    settle();
    assert_eq!(event(&world, PointKind::Mutation).consistency, Consistency::Quiet);
}

/// Nothing changed: no record, as after a walk.
#[cfg(target_os = "linux")]
#[test]
fn nothing_changed_is_no_record() {
    let (world, _) = turn(CapturePolicy::default());
    let before = world.engine.index().newest().unwrap();
    for _ in 0..3 {
        event(&world, PointKind::Mutation);
    }
    assert_eq!(world.engine.index().newest().unwrap(), before);
}
