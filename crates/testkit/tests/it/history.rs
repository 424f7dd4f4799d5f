//! Whose change is it? The traces of the protocol model, each with the sentence it belongs to (design § 2).

use checkpoint_core::{DriftPolicy, EngineError, PointKind, RestorePolicy, RestoreRequest, SessionKey};

use crate::world::{World, names, path, to, undo};

/// Expects a refusal that names exactly these paths, and an untouched workspace.
fn refused(world: &World, request: &RestoreRequest, paths: &[&str]) {
    let before = world.scan();
    match world.engine.restore(request) {
        Err(EngineError::Undecided { preview }) => assert_eq!(names(&preview.plan.undecided), paths),
        other => panic!("expected a refusal naming {paths:?}, got {other:?}"),
    }
    assert_eq!(world.scan(), before);
}

fn overwriting(request: RestoreRequest) -> RestoreRequest {
    let policy = RestorePolicy { drift: DriftPolicy::Overwrite, with_others: true, ..request.policy };
    RestoreRequest { policy, ..request }
}

/// One turn of `session` that writes `text` into `file`.
fn turn(world: &World, session: &str, number: u32, file: &str, text: &str) {
    world.turn_start(session, number);
    world.write(file, text);
    world.turn_end(session, number);
}

#[test]
fn a_turn_goes_back_without_a_question() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "a", "agent");
    let done = world.engine.restore(&to("h:s/t1^")).unwrap();
    assert_eq!(names(&done.restored), ["a"]);
    assert!(done.plan.uncaptured.is_empty());
    assert_eq!(world.read("a"), "v1");
}

#[test]
fn an_edit_after_the_turn_is_hand_made() {
    let world = World::plain();
    world.write("a", "v1");
    world.write("b", "v1");
    turn(&world, "h:s", 1, "a", "agent");
    world.write("a", "hand");
    world.write("notes", "mine");
    refused(&world, &to("h:s/t1^"), &["a"]);
    let keep = RestoreRequest {
        policy: RestorePolicy { drift: DriftPolicy::Keep, ..RestorePolicy::default() },
        ..to("h:s/t1^")
    };
    let kept = world.engine.restore(&keep).unwrap();
    assert_eq!((names(&kept.plan.hand_made), kept.operation), (vec!["a".into()], None));
    assert_eq!(world.read("a"), "hand");
    let named = RestoreRequest {
        policy: RestorePolicy { overwrite: vec![path("a")], ..RestorePolicy::default() },
        ..to("h:s/t1^")
    };
    world.engine.restore(&named).unwrap();
    assert_eq!((world.read("a").as_str(), world.read("notes").as_str()), ("v1", "mine"));
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "hand");
}

#[test]
fn a_hand_edit_stays_hand_made_when_an_agent_edits_on_top() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "a", "agent 1");
    world.write("a", "hand");
    turn(&world, "h:s", 2, "a", "agent on hand");
    refused(&world, &to("h:s/t1^"), &["a"]);
    // Back to the start of the second turn the edit is there: nothing is lost, nothing is asked.
    world.engine.restore(&to("h:s/t2^")).unwrap();
    assert_eq!(world.read("a"), "hand");
}

/// Model F5: what an operation wrote continues the history of the state it came from.
#[test]
fn f5_an_undo_does_not_launder_a_hand_edit() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "b", "agent");
    world.write("a", "hand");
    world.engine.restore(&overwriting(to("h:s/t1^"))).unwrap();
    assert_eq!(world.read("a"), "v1");
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "hand");
    refused(&world, &to("h:s/t1^"), &["a"]);
}

/// Model F5, second trace: a restore that puts the edit back does not launder it either.
#[test]
fn f5_a_restore_does_not_launder_a_hand_edit() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "b", "agent");
    world.write("a", "hand");
    turn(&world, "h:s", 2, "a", "agent on hand");
    world.engine.restore(&to("h:s/t2^")).unwrap();
    assert_eq!(world.read("a"), "hand");
    refused(&world, &to("h:s/t1^"), &["a"]);
}

/// Model F6: an edit between two turns is outside, though the second turn's start records it.
#[test]
fn f6_a_turn_counts_from_its_own_record_on() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "a", "agent");
    world.write("a", "hand");
    world.turn_start("h:s", 2);
    refused(&world, &to("h:s/t1^"), &["a"]);
}

/// Model F9: an interrupted turn counts up to the next record, whoever makes it, and no further.
#[test]
fn f9_an_interrupted_turn_does_not_claim_everything() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s0", 1);
    world.write("a", "s0");
    world.engine.interrupt(&SessionKey::parse("h:s0").unwrap()).unwrap();
    // Story 6: the damage of an interrupted turn is listed, guarded and restored without a question.
    let preview = world.engine.preview(&to("h:s0/t1^")).unwrap();
    assert_eq!(names(&preview.plan.uncaptured), ["a"]);
    assert!(preview.plan.undecided.is_empty());
    world.turn_start("h:s1", 1);
    world.turn_end("h:s1", 1);
    world.write("a", "hand");
    refused(&world, &to("h:s0/t1^"), &["a"]);
}

/// Model F12: with `guard = off` the record is not listed, but its interval exists.
#[test]
fn f12_a_guard_that_is_off_still_closes_its_interval() {
    let world = World::plain();
    world.write("a", "v1");
    world.write("b", "v1");
    turn(&world, "h:s", 1, "b", "agent");
    world.write("a", "hand");
    let off = RestorePolicy {
        drift: DriftPolicy::Keep,
        guard: checkpoint_core::GuardMode::Off,
        selection: vec![path("b")],
        ..RestorePolicy::default()
    };
    world.engine.restore(&RestoreRequest { policy: off, ..to("h:s/t1^") }).unwrap();
    assert_eq!(world.read("b"), "v1");
    refused(&world, &to("h:s/t1^"), &["a"]);
}

/// Model F13 and design § 8: removing a record does not remove what it says about who changed what.
#[test]
fn f13_dropping_the_newest_record_keeps_its_interval() {
    let world = World::plain();
    world.write("a", "v1");
    let first = world.save();
    turn(&world, "h:s", 1, "b", "agent");
    world.write("a", "hand");
    let second = world.turn_start("h:s", 2);
    world.engine.drop_points(&checkpoint_core::DropWhich::Points(vec![second.point.id])).unwrap();
    turn(&world, "h:s", 3, "a", "agent on hand");
    refused(&world, &to(first.point.id), &["a"]);
}

/// Model F14: every undo follows the rules for hand-made paths.
#[test]
fn f14_an_undo_asks_too() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "a", "agent");
    world.engine.restore(&to("h:s/t1^")).unwrap();
    world.write("a", "hand after the restore");
    match world.engine.undo(&undo()) {
        Err(EngineError::Undecided { preview }) => assert_eq!(names(&preview.plan.undecided), ["a"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.read("a"), "hand after the restore");
}

/// Model F16: a record of another session does not stand for this one's.
#[test]
fn f16_deduplication_keeps_each_sessions_position() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s0", 1);
    world.write("a", "s0");
    world.turn_start("h:s1", 1);
    let own = world.event("h:s0", 1, PointKind::Mutation);
    assert!(own.created);
    let again = world.event("h:s0", 1, PointKind::Mutation);
    assert!(!again.created);
    assert_eq!(again.point.id, own.point.id);
}

#[test]
fn another_sessions_work_is_foreign() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s1", 1, "b", "s1");
    turn(&world, "h:s2", 1, "a", "s2");
    match world.engine.restore(&to("h:s1/t1^")) {
        Err(EngineError::Undecided { preview }) => {
            assert_eq!(names(&preview.plan.foreign), ["a"]);
            assert!(preview.plan.hand_made.is_empty());
        }
        other => panic!("{other:?}"),
    }
    let with = RestorePolicy { with_others: true, ..RestorePolicy::default() };
    world.engine.restore(&RestoreRequest { policy: with, ..to("h:s1/t1^") }).unwrap();
    assert_eq!(world.read("a"), "v1");
}

/// K-40: a subagent's work is its parent's.
#[test]
fn k40_subagents_and_children_are_no_strangers() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:parent", 1);
    world.turn_end("h:parent", 1);
    let sub = checkpoint_core::Session {
        key: SessionKey::parse("h:sub").unwrap(),
        parent: None,
        seed_length: None,
        subagent_of: Some(SessionKey::parse("h:parent").unwrap()),
        turn: None,
        seen: checkpoint_core::Timestamp(0),
    };
    world.engine.register_session(sub).unwrap();
    turn(&world, "h:sub", 1, "a", "by the subagent");
    world.engine.restore(&to("h:parent/t1^")).unwrap();
    assert_eq!(world.read("a"), "v1");
}

/// A person's saves: what `rwd save` recorded is not hand-made for a point that `rwd save` made.
#[test]
fn a_persons_own_saves_need_no_decision_until_something_is_unsaved() {
    let world = World::plain();
    world.write("a", "v1");
    let first = world.save();
    world.write("a", "v2");
    world.save();
    world.engine.restore(&to(first.point.id)).unwrap();
    assert_eq!(world.read("a"), "v1");
    world.engine.undo(&undo()).unwrap();
    world.write("a", "unsaved");
    refused(&world, &to(first.point.id), &["a"]);
}

/// Model F8: the end of a turn that comes after the next one has begun is a gap, and changes nothing about that one.
#[test]
fn f8_a_late_end_of_a_turn_is_a_gap() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "turn 1");
    world.turn_start("h:s", 2);
    world.write("a", "turn 2");
    let late = checkpoint_core::SaveRequest {
        turn: Some(checkpoint_core::Turn(1)),
        ..checkpoint_core::SaveRequest::of(SessionKey::parse("h:s").unwrap(), PointKind::TurnEnd)
    };
    assert!(matches!(world.engine.save(&late), Err(EngineError::Gap { .. })));
    // `t1` is the record that closed the turn, and says so.
    let found = world.engine.resolve(None, "h:s/t1", None).unwrap();
    assert_eq!(found.point.unwrap().kind, PointKind::TurnStart);
    assert!(found.notes.iter().any(|note| note.contains("was not captured")), "{:?}", found.notes);
    // Turn 2 is still open: its work is its own.
    let preview = world.engine.preview(&to("h:s/t2^")).unwrap();
    assert_eq!((names(&preview.plan.uncaptured), preview.plan.undecided.len()), (vec!["a".to_owned()], 0));
}

/// Model F13, second half: what the dropped newest record said counts before there is a record to come.
#[test]
fn f13_a_dropped_record_still_speaks_while_a_turn_is_open() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, "h:s", 1, "b", "agent");
    world.write("a", "hand");
    let second = world.turn_start("h:s", 2);
    world.engine.drop_points(&checkpoint_core::DropWhich::Points(vec![second.point.id])).unwrap();
    refused(&world, &to("h:s/t1^"), &["a"]);
}

/// Model F7: a turn has ended and its end was not captured. What changed after it is nobody's turn; what changed before
/// is that turn's, and asks nothing.
#[test]
fn f7_an_edit_after_a_turn_whose_end_was_not_captured_is_hand_made() {
    let world = World::plain();
    world.write("a", "v1");
    world.write("b", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "agent");
    let end = checkpoint_core::SaveRequest {
        turn: Some(checkpoint_core::Turn(1)),
        ..checkpoint_core::SaveRequest::of(SessionKey::parse("h:s").unwrap(), PointKind::TurnEnd)
    };
    world.disk.arm(1, crate::world::Wrong::NoSpace);
    assert!(matches!(world.engine.save(&end), Err(EngineError::Gap { point: Some(_), .. })));
    world.disk.disarm();
    // Times of files are finer than those of records.
    std::thread::sleep(std::time::Duration::from_millis(10));
    world.write("b", "hand");
    refused(&world, &to("h:s/t1^"), &["b"]);
    let preview = world.engine.preview(&to("h:s/t1^")).unwrap();
    assert_eq!(names(&preview.plan.hand_made), ["b"]);
    world.turn_start("h:s", 2);
    refused(&world, &to("h:s/t1^"), &["b"]);
}
