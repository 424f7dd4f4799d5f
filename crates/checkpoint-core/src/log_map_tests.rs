use super::*;
use crate::Position;
use crate::record::sample_point;

fn key() -> SessionKey {
    SessionKey::new("h", "s").unwrap()
}

fn map(beats: &[Beat]) -> LogMap {
    LogMap::new(beats.iter().enumerate().map(|(at, beat)| (Seq(at as u64), *beat)).collect())
}

/// Two turns: steps 1 and 2 in the first, 1 and an open 2 in the second.
fn log() -> LogMap {
    let (one, two) = (Turn(1), Turn(2));
    map(&[
        Beat::Other,          // 0
        Beat::TurnStart(one), // 1
        Beat::StepStart(one, Step(1)),
        Beat::StepEnd(one, Step(1)), // 3
        Beat::StepStart(one, Step(2)),
        Beat::StepEnd(one, Step(2)), // 5
        Beat::TurnEnd(one),          // 6
        Beat::Other,
        Beat::TurnStart(two), // 8
        Beat::StepStart(two, Step(1)),
        Beat::StepEnd(two, Step(1)), // 10
        Beat::StepStart(two, Step(2)),
        Beat::Other, // 12
    ])
}

fn point(ord: u8, kind: PointKind, turn: Option<u32>, step: Option<u32>, seq: Option<u64>) -> Point {
    Point {
        turn: turn.map(Turn),
        step: step.map(Step),
        position: seq.map(|seq| Position { seq: Seq(seq), anchor: None, prefix: None }),
        ..sample_point(ord, key(), kind)
    }
}

fn within(ord: u8, turn: u32, step: u32) -> Point {
    point(ord, PointKind::Mutation, Some(turn), Some(step), None)
}

#[test]
fn tb02_the_nearest_is_the_one_that_lies_furthest_on() {
    let points = [within(1, 1, 1), within(2, 1, 2), within(3, 2, 1)];
    let ord = |at: u64| log().nearest(&points, Seq(at)).map(|p| p.ord.0);
    assert_eq!([ord(3), ord(4), ord(5), ord(9), ord(10)], [Some(1), Some(1), Some(2), Some(2), Some(3)]);
    // Whatever order they are given in, and of several at one place the newest.
    let shuffled = [within(3, 1, 2), within(4, 1, 2), within(1, 1, 1)];
    assert_eq!(log().nearest(&shuffled, Seq(6)).unwrap().ord.0, 4);
}

#[test]
fn tb04_points_of_a_step_that_has_not_ended_map_nowhere() {
    assert_eq!(log().place(&within(1, 2, 2)), None);
    assert!(log().nearest(&[within(1, 2, 2)], Seq(12)).is_none());
    let between = point(1, PointKind::Manual, None, None, None);
    assert_eq!(log().place(&between), None);
}

#[test]
fn tb05_nothing_at_or_before_gives_none() {
    assert!(log().nearest(&[within(1, 1, 2)], Seq(4)).is_none());
    assert!(log().nearest(&[], Seq(12)).is_none());
    let gap = Point { snapshot: None, ..within(1, 1, 1) };
    assert!(log().nearest(&[gap], Seq(12)).is_none());
}

#[test]
fn tb07_a_step_number_means_its_latest_end_across_turns() {
    assert_eq!(log().step_end(Step(1)), Some(Seq(10)));
    assert_eq!(log().step_end(Step(2)), Some(Seq(5)));
}

#[test]
fn tb08_a_step_that_never_ended_has_no_end() {
    assert_eq!(log().step_end(Step(3)), None);
    assert_eq!(map(&[Beat::TurnStart(Turn(1)), Beat::StepStart(Turn(1), Step(1))]).step_end(Step(1)), None);
}

#[test]
fn tb10_a_position_on_the_end_of_a_turn_is_that_end() {
    assert_eq!(boundary_before(log().beats(), Seq(6)).unwrap().seq(), Seq(6));
    assert_eq!(boundary_before(log().beats(), Seq(5)), None);
}

#[test]
fn tb11_tb13_before_the_first_turn_there_is_no_boundary() {
    assert_eq!(log().before_turn(&key(), Turn(1)).unwrap(), None);
    assert_eq!(log().before_turn(&key(), Turn(2)).unwrap().unwrap().seq(), Seq(6));
    assert!(matches!(log().before_turn(&key(), Turn(3)), Err(SessionError::NoTurn { .. })));
}

#[test]
fn tb14_the_turn_at_a_position_is_the_open_one_or_the_last_that_ended() {
    let turn = |at: u64| log().turn_at(Seq(at)).map(|turn| turn.0);
    assert_eq!(
        [turn(0), turn(1), turn(6), turn(7), turn(8), turn(12)],
        [None, Some(1), Some(1), Some(1), Some(2), Some(2)]
    );
}

#[test]
fn tb17_the_end_of_a_step_places_points_made_before_it() {
    let point = within(1, 2, 2);
    let mut beats = log().beats().to_vec();
    beats.push((Seq(13), Beat::StepEnd(Turn(2), Step(2))));
    assert_eq!(LogMap::new(beats).place(&point), Some(Seq(13)));
    // Where the conversation was is known better than by its step.
    let exact = Point { position: Some(Position { seq: Seq(12), anchor: None, prefix: None }), ..point };
    assert_eq!(log().place(&exact), Some(Seq(12)));
}

/// Two turns of one number lie in a log that was forked and went on: each point is placed by its own.
#[test]
fn tb19_the_numbers_of_a_child_do_not_collide_with_its_parents() {
    let parent_only = point(1, PointKind::TurnEnd, Some(3), None, Some(40));
    assert_eq!(log().place(&parent_only), Some(Seq(40)));
    assert!(log().nearest(&[parent_only], Seq(12)).is_none());
}

#[test]
fn tb20_only_turn_events_count_as_turns() {
    let steps = map(&[Beat::StepStart(Turn(4), Step(1)), Beat::StepEnd(Turn(4), Step(1))]);
    assert_eq!((steps.turn_at(Seq(1)), steps.turns()), (None, vec![]));
    assert_eq!(log().turns(), [Turn(1), Turn(2)]);
}

/// Contract 004-32, story 10: a turn that is open cannot be cut at its end.
#[test]
fn tn31_the_end_of_an_open_turn_is_refused_by_name() {
    let code = |turn| log().after_turn(&key(), Turn(turn)).unwrap_err().code();
    assert_eq!([code(2), code(9)], ["OPEN_TURN", "INVALID_BOUNDARY"]);
    assert_eq!(log().after_turn(&key(), Turn(1)).unwrap().seq(), Seq(6));
}

/// TJ34: a cut behind which something follows is never taken for the end, whatever follows.
#[test]
fn tj34_a_log_ends_where_nothing_follows() {
    let mut beats = vec![(Seq(0), Beat::TurnStart(Turn(1))), (Seq(1), Beat::TurnEnd(Turn(1)))];
    let end = LogMap::new(beats.clone()).turn_end(Turn(1));
    assert_eq!([end, None].map(|cut| LogMap::new(beats.clone()).ends_at(cut)), [true, false]);
    beats.push((Seq(2), Beat::Other));
    assert!(!LogMap::new(beats).ends_at(end));
    assert!(LogMap::default().ends_at(None));
}
