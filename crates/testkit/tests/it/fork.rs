//! Both halves: files and conversation go to one boundary, or the answer says which did not (contract 002-35 to 38).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use checkpoint_core::{
    Beat, EngineError, ErrorKind, IntentState, LockMode, PointKind, Position, Recovery, RestoreRequest, SaveRequest,
    Scope, SessionKey, SessionLog, Status, StoreLock, Turn,
};
use testkit::Host;

use crate::world::{World, to, undo};

fn key() -> SessionKey {
    SessionKey::parse("h:s").unwrap()
}

fn capture(world: &World, turn: u32, kind: PointKind, beat: Beat) {
    let seq = world.sessions.push(&key(), beat);
    let position =
        Some(Position { seq, anchor: None, prefix: Some(world.sessions.prefix_digest(&key(), seq).unwrap()) });
    let request = SaveRequest { turn: Some(Turn(turn)), position, ..SaveRequest::of(key(), kind) };
    world.engine.save(&request).unwrap();
}

/// A conversation of two turns, each of which writes `a`.
fn talked() -> World {
    let world = World::plain();
    world.write("a", "v0");
    world.sessions.start(&key());
    for turn in 1..=2 {
        capture(&world, turn, PointKind::TurnStart, Beat::TurnStart(Turn(turn)));
        world.write("a", &format!("v{turn}"));
        capture(&world, turn, PointKind::TurnEnd, Beat::TurnEnd(Turn(turn)));
    }
    world
}

fn both(target: &str) -> RestoreRequest {
    RestoreRequest { scope: Scope::Both, ..to(target) }
}

fn child(id: &str) -> SessionKey {
    SessionKey::new("h", id).unwrap()
}

#[test]
fn files_and_conversation_go_to_one_boundary() {
    let world = talked();
    let before = world.sessions.tail(&key());
    let done = world.engine.restore(&to("h:s/t2^")).unwrap();
    assert_eq!(world.read("a"), "v1");
    let made = done.child.unwrap();
    // Cut at the end of turn 1: events 0, 1 and 2.
    let (length, notice) = world.sessions.tail(&child(&made)).unwrap();
    assert_eq!(length, 3);
    assert!(notice.unwrap().contains("Read files again"));
    assert_eq!(world.sessions.header(&child(&made)).unwrap().parent, Some(key()));
    assert_eq!(world.sessions.tail(&key()), before, "the source is never modified");
    // 000: `t1` is inclusive.
    let end = world.engine.preview(&to("h:s/t1")).unwrap();
    assert_eq!(end.cut.unwrap().rule, "end of turn 1");
}

/// Contract C7: before the first turn there is nothing to keep: an empty child with a parent link.
#[test]
fn c7_the_first_turn_gives_an_empty_child() {
    let world = talked();
    let done = world.engine.restore(&both("h:s/t1^")).unwrap();
    assert_eq!(world.read("a"), "v0");
    let header = world.sessions.header(&child(&done.child.unwrap())).unwrap();
    assert_eq!((header.parent, header.seed_length), (Some(key()), 0));
}

/// Contract § 1.2: files only, chat only, and no door.
#[test]
fn scope_narrows_and_both_needs_a_door() {
    let world = talked();
    let chat = world.engine.restore(&RestoreRequest { scope: Scope::Chat, ..to("h:s/t1") }).unwrap();
    assert!(chat.context_only && chat.child.is_some());
    assert_eq!(world.read("a"), "v2");
    let files = world.engine.restore(&RestoreRequest { scope: Scope::Files, ..to("h:s/t1") }).unwrap();
    assert!(files.child.is_none());
    assert_eq!(world.read("a"), "v1");
    let plain = world.save();
    assert!(matches!(world.engine.restore(&both(&plain.point.id.to_string())), Err(EngineError::Session(_))));
}

/// 002-37: a failed fork leaves the files, says so, and can be asked for again.
#[test]
fn a_refused_fork_is_partial_and_finishes_later() {
    let mut world = talked();
    world.sessions.host(Host::Refuses);
    match world.engine.restore(&both("h:s/t2^")) {
        Err(error @ EngineError::NotForked { .. }) => {
            assert_eq!((error.kind(), error.code()), (ErrorKind::Partial, "not-forked"));
            assert!(error.guard().is_some());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.read("a"), "v1");
    assert!(matches!(world.engine.recover(Recovery::Back), Err(EngineError::OnlyForward { .. })), "model F20");
    world.reopen();
    world.sessions.host(Host::Works);
    let done = world.engine.recover(Recovery::Finish).unwrap();
    assert!(world.sessions.tail(&child(&done.child.unwrap())).is_some());
    assert!(world.engine.unfinished().unwrap().is_none());
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "v2");
}

/// Model F20: whether the host died before or after it made the child, there is one child in the end.
#[test]
fn f20_a_crash_around_the_fork_leaves_one_child() {
    for host in [Host::DiesBefore, Host::DiesAfter] {
        let mut world = talked();
        world.sessions.host(host);
        let engine = world.engine.clone();
        assert!(catch_unwind(AssertUnwindSafe(|| engine.restore(&both("h:s/t2^")))).is_err());
        world.reopen();
        assert_eq!(world.engine.unfinished().unwrap().unwrap().state, IntentState::Forking);
        assert!(matches!(world.engine.restore(&both("h:s/t2^")), Err(EngineError::Unfinished { .. })));
        // Model F22: captures are ordinary while the host is at it; the files' half is done.
        world.save();
        world.sessions.host(Host::Works);
        let done = world.engine.recover(Recovery::Finish).unwrap();
        assert_eq!(done.status, Status::Restored);
        assert_eq!(world.sessions.sessions().len(), 2, "{host:?}");
        assert_eq!(world.read("a"), "v1");
    }
}

/// Model F22: the host's own hooks capture while it makes the child, so no lock is held then, in a recovery no more than
/// in a restore; and nobody else may begin an operation meanwhile.
#[test]
fn f22_forking_holds_no_lock_in_a_restore_or_a_recovery() {
    let mut world = talked();
    let watch = |world: &World| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (lock, engine, list) = (Arc::clone(&world.lock), world.engine.clone(), Arc::clone(&seen));
        world.sessions.during_fork(move || {
            let free = lock.acquire(LockMode::Exclusive, Duration::ZERO).is_ok();
            let saved = engine.save(&SaveRequest::of(key(), PointKind::Manual)).is_ok();
            let refused = matches!(engine.restore(&to("h:s/t1^")), Err(EngineError::Unfinished { .. }));
            list.lock().unwrap().push((free, saved, refused));
        });
        seen
    };
    let seen = watch(&world);
    world.sessions.host(Host::Refuses);
    assert!(matches!(world.engine.restore(&both("h:s/t2^")), Err(EngineError::NotForked { .. })));
    assert_eq!(*seen.lock().unwrap(), [(true, true, true)]);
    world.reopen();
    let seen = watch(&world);
    world.sessions.host(Host::Works);
    world.engine.recover(Recovery::Finish).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(true, true, true)]);
}

/// TJ04: a failed restore never forks.
#[test]
fn tj04_a_restore_that_is_put_back_does_not_fork() {
    let world = talked();
    let target = world.at("a");
    world.trap.set(3, move || std::fs::write(target, "typed").unwrap());
    assert!(matches!(world.engine.restore(&both("h:s/t2^")), Err(EngineError::Changed { .. })));
    assert_eq!((world.read("a").as_str(), world.sessions.sessions().len()), ("typed", 1));
}

/// Contract gap 11: a child finds its ancestors' points below its seed length, and not beyond.
#[test]
fn a_child_finds_its_ancestors_points() {
    let world = talked();
    let made = world.engine.restore(&both("h:s/t2^")).unwrap().child.unwrap();
    let found = world.engine.resolve(Some(&child(&made)), "t1^", None).unwrap();
    assert_eq!(found.point.unwrap().session, key());
    assert!(matches!(world.engine.resolve(Some(&child(&made)), "t2^", None), Err(EngineError::NotFound { .. })));
}
