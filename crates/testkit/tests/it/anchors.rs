//! A point stores what the harness itself calls its turn. Where the log knows that name, it goes before the number.

use checkpoint_core::{PointKind, Position, SaveRequest, Seq, Turn};

use crate::fork::{both, child, key, talked};
use crate::world::{World, to};

/// A point of turn `turn`, which its harness calls `anchor`.
fn anchored(world: &World, kind: PointKind, turn: u32, anchor: &str) {
    let position = Some(Position { seq: Seq(0), anchor: Some(anchor.to_owned()), prefix: None });
    let request = SaveRequest { turn: Some(Turn(turn)), position, ..SaveRequest::of(key(), kind) };
    world.engine.save(&request).unwrap();
}

fn rule(world: &World, target: &str) -> String {
    world.engine.preview(&to(target)).unwrap().cut.unwrap().rule
}

#[test]
fn the_harness_s_own_name_goes_before_the_number() {
    let world = talked();
    world.write("a", "later");
    anchored(&world, PointKind::TurnEnd, 8, "first");
    world.write("a", "latest");
    anchored(&world, PointKind::TurnStart, 9, "second");
    // Nobody knows the names: the numbers count, and the log has no such turns.
    assert_eq!(world.engine.preview(&both("h:s/t9^")).unwrap_err().code(), "INVALID_BOUNDARY");
    assert_eq!(world.engine.preview(&both("h:s/t8")).unwrap_err().code(), "INVALID_BOUNDARY");
    world.sessions.anchor(&key(), "second", Turn(2));
    world.sessions.anchor(&key(), "first", Turn(1));
    assert_eq!(rule(&world, "h:s/t9^"), "end of turn 1");
    assert_eq!(rule(&world, "h:s/t8"), "end of turn 1");
    // The same by the point's id, and after it.
    let point = world.engine.find(None, "h:s/t9^").unwrap().point.unwrap();
    assert_eq!(rule(&world, &point.id.to_string()), "end of turn 1");
    let end = world.engine.find(None, "h:s/t8").unwrap().point.unwrap();
    assert_eq!(rule(&world, &end.id.to_string()), "end of turn 1");
}

/// A point that has a name but no position of its own is seen by a child when the child shares its turn.
#[test]
fn a_child_sees_the_points_whose_turns_it_shares() {
    let world = talked();
    anchored(&world, PointKind::TurnStart, 2, "second");
    world.sessions.anchor(&key(), "second", Turn(2));
    let made = child(&world.engine.restore(&both("h:s/t1")).unwrap().child.unwrap());
    let seen = |target: &str| world.engine.find(None, target).is_ok_and(|found| found.point.is_some());
    assert!(seen(&format!("{made}/t1")));
    assert!(!seen(&format!("{made}/t2^")), "turn 2 is not the child's");
}
