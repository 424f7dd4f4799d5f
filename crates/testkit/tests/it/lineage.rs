//! Whose points a session sees: its ancestors' below each seed length, its subagents' as its own (design § 6, contract
//! gap 11, K-40). What the index was never told is read from the head of the log.

use checkpoint_core::{
    Beat, EngineError, ErrorKind, PointKind, RestoreRequest, SaveRequest, Scope, Seq, Session, SessionKey, SessionLog,
    Step, Turn,
};

use crate::fork::{child, key, talked, turn_of};
use crate::world::to;

#[test]
fn tj36_a_child_that_the_index_never_saw_finds_its_ancestors_points() {
    let world = talked();
    let (one, two) = (child("one"), child("two"));
    // Made by the host: a child of turn 1, and a child of that one, whose own turn 2 writes something else.
    world.sessions.start_child(&one, &key(), 3);
    turn_of(&world, &one, 2, "other");
    world.sessions.start_child(&two, &one, 5);
    let find = |session: &SessionKey, target: &str| world.engine.find(Some(session), target).map(|r| r.point.unwrap());
    assert_eq!(find(&one, "t1").unwrap().session, key());
    assert_eq!(find(&two, "t1").unwrap().session, key());
    // The number of a turn is not enough: turn 2 is the child's own, the grandchild shares it.
    assert_eq!(find(&one, "t2").unwrap().session, one);
    assert_eq!(find(&two, "t2").unwrap().session, one);
    // Cut in the session that was asked for, not where the point was made.
    let done =
        world.engine.restore(&RestoreRequest { session: Some(two.clone()), scope: Scope::Both, ..to("t1") }).unwrap();
    assert_eq!(world.read("a"), "v1");
    let header = world.sessions.header(&child(&done.child.unwrap())).unwrap();
    assert_eq!((header.parent, header.seed_length), (Some(two), 3));
}

#[test]
fn tj36_points_above_the_seed_are_not_the_childs() {
    let world = talked();
    let one = child("one");
    world.sessions.start_child(&one, &key(), 3);
    world.sessions.push(&one, Beat::TurnStart(Turn(2)));
    // Both have a turn 2; only the parent made points in its own.
    let error = world.engine.find(Some(&one), "t2^").map(|r| r.point);
    assert!(matches!(error, Ok(None)), "{error:?}");
    // A fence below holds for everything above it: the grandchild shares less than its parent did.
    let two = child("two");
    world.sessions.start_child(&two, &one, 1);
    assert!(world.engine.find(Some(&two), "t1").is_err());
}

#[test]
fn tj36_a_line_that_runs_in_a_circle_is_refused() {
    let world = talked();
    let (one, two) = (child("one"), child("two"));
    world.sessions.start_child(&one, &key(), 3);
    world.sessions.start_child(&two, &one, 3);
    world.sessions.forge_parent(&one, &two);
    let error = world.engine.find(Some(&two), "t1").unwrap_err();
    assert_eq!((error.code(), error.kind()), ("BAD_LINEAGE", ErrorKind::Decision));
    let itself = child("itself");
    world.sessions.start_child(&itself, &key(), 3);
    world.sessions.forge_parent(&itself, &itself);
    assert_eq!(world.engine.find(Some(&itself), "t1").unwrap_err().code(), "BAD_LINEAGE");
}

/// K-40: a subagent's points are found where its parent's are listed, but its turns and positions are of its own log.
#[test]
fn td25_k40_a_subagent_counts_as_its_parent() {
    let world = talked();
    let sub = child("sub");
    world.sessions.push(&key(), Beat::TurnStart(Turn(3)));
    world.engine.save(&SaveRequest { turn: Some(Turn(3)), ..SaveRequest::of(key(), PointKind::TurnStart) }).unwrap();
    world.sessions.start_subagent(&sub, &key());
    turn_of(&world, &sub, 1, "by the subagent");
    world.write("a", "later");
    world.engine.save(&SaveRequest::of(sub.clone(), PointKind::Mutation)).unwrap();
    // The default session is the parent, though the newest record is the subagent's.
    let found = world.engine.find(None, "t1").unwrap();
    assert_eq!((found.session, found.point.unwrap().session), (key(), key()));
    // Its points are among the latest; the conversation is cut where the parent was.
    let latest = world.engine.find(None, "latest").unwrap();
    assert_eq!((latest.session, latest.point.as_ref().unwrap().session.clone()), (key(), sub.clone()));
    let cut = world.engine.preview(&to("latest")).unwrap().cut.unwrap();
    assert_eq!((cut.session, cut.rule.as_str()), (key(), "end of turn 2"));
    let by_id = world.engine.preview(&to(latest.point.unwrap().id)).unwrap().cut.unwrap();
    assert_eq!((by_id.session, by_id.rule.as_str()), (key(), "end of turn 2"));
    // What it wrote is no stranger's work.
    assert!(world.engine.preview(&to("h:s/t1")).unwrap().plan.foreign.is_empty());
    // Asked for by itself it has its own turns.
    assert_eq!(world.engine.find(Some(&sub), "t1").unwrap().point.unwrap().session, sub);
}

/// What the index says of a session's origin counts; its log is asked only where the index knows nothing.
#[test]
fn a_registered_parent_needs_no_log() {
    let world = talked();
    let one = child("one");
    let session = Session {
        key: one.clone(),
        parent: Some(key()),
        seed_length: Some(3),
        subagent_of: None,
        turn: None,
        seen: checkpoint_core::Timestamp(0),
    };
    world.engine.register_session(session).unwrap();
    assert_eq!(world.engine.find(Some(&one), "t1").unwrap().point.unwrap().session, key());
    assert!(matches!(world.engine.find(Some(&one), "t2"), Err(EngineError::NotFound { .. })));
}

/// TA16, TB17, 002-05: a point that was made in a step is found by the step's number once the log shows its end.
#[test]
fn ta16_tb17_a_point_within_a_step_is_found_when_the_step_has_ended() {
    let world = talked();
    let (turn, step) = (Turn(3), Step(4));
    world.sessions.push(&key(), Beat::TurnStart(turn));
    world.sessions.push(&key(), Beat::StepStart(turn, step));
    world.write("a", "within");
    let request = SaveRequest { turn: Some(turn), step: Some(step), ..SaveRequest::of(key(), PointKind::Mutation) };
    let made = world.engine.save(&request).unwrap().point;
    let missing = world.engine.find(None, "h:s/step:4").unwrap_err();
    assert!(matches!(&missing, EngineError::NotFound { choices, .. } if choices[0].contains("has not ended")));
    let end = world.sessions.push(&key(), Beat::StepEnd(turn, step));
    assert_eq!(world.engine.find(None, "h:s/step:4").unwrap().point.unwrap().id, made.id);
    // The conversation is cut at the last end of a turn before it.
    assert_eq!(world.engine.preview(&to("h:s/step:4")).unwrap().cut.unwrap().rule, "end of turn 2");
    assert_eq!(world.engine.find(None, &format!("h:s/seq:{end}")).unwrap().point.unwrap().id, made.id);
    assert_ne!(world.engine.find(None, &format!("h:s/seq:{}", Seq(end.0 - 1))).unwrap().point.unwrap().id, made.id);
    // A later step without a point of its own: the nearest before its end.
    world.sessions.push(&key(), Beat::StepStart(turn, Step(5)));
    world.sessions.push(&key(), Beat::StepEnd(turn, Step(5)));
    assert_eq!(world.engine.find(None, "h:s/step 5").unwrap().point.unwrap().id, made.id);
}
