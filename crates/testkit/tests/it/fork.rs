//! Both halves: files and conversation go to one boundary, or the answer says which did not (contract 002-35 to 38).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use checkpoint_core::{
    Beat, EngineError, ErrorKind, FilesWhere, IntentState, LockMode, PointKind, Position, Recovery, RestoreRequest,
    SaveRequest, Scope, SessionKey, SessionLog, Status, StoreLock, Turn, boundary_of_turn,
};
use testkit::Host;

use crate::world::{World, to, undo};

pub(crate) fn key() -> SessionKey {
    SessionKey::parse("h:s").unwrap()
}

/// Appends an event and makes the point that goes with it.
pub(crate) fn capture_in(world: &World, session: &SessionKey, turn: u32, kind: PointKind, beat: Beat) {
    let seq = world.sessions.push(session, beat);
    let prefix = Some(world.sessions.prefix_digest(session, seq).unwrap());
    let position = Some(Position { seq, anchor: None, prefix });
    let request = SaveRequest { turn: Some(Turn(turn)), position, ..SaveRequest::of(session.clone(), kind) };
    world.engine.save(&request).unwrap();
}

/// A turn that writes `a`.
pub(crate) fn turn_of(world: &World, session: &SessionKey, turn: u32, content: &str) {
    capture_in(world, session, turn, PointKind::TurnStart, Beat::TurnStart(Turn(turn)));
    world.write("a", content);
    capture_in(world, session, turn, PointKind::TurnEnd, Beat::TurnEnd(Turn(turn)));
}

/// A conversation of two turns, each of which writes `a`.
pub(crate) fn talked() -> World {
    talked_in(World::plain())
}

pub(crate) fn talked_in(world: World) -> World {
    world.write("a", "v0");
    world.sessions.start(&key());
    for turn in 1..=2 {
        turn_of(&world, &key(), turn, &format!("v{turn}"));
    }
    world
}

pub(crate) fn both(target: &str) -> RestoreRequest {
    RestoreRequest { scope: Scope::Both, ..to(target) }
}

pub(crate) fn child(id: &str) -> SessionKey {
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
    let notice = notice.unwrap();
    assert!(notice.contains("1 path restored (a)") && notice.contains("read a file again"), "{notice}");
    assert!(notice.contains(&done.guard.unwrap().short()), "002-38: the guard is named: {notice}");
    assert_eq!(world.sessions.header(&child(&made)).unwrap().parent, Some(key()));
    assert_eq!(world.sessions.tail(&key()), before, "the source is never modified");
    // 000: `t1` is inclusive.
    let end = world.engine.preview(&to("h:s/t1")).unwrap();
    assert_eq!(end.cut.unwrap().rule, "end of turn 1");
}

/// The child that was just made has recorded nothing yet: an address that names no session still means its parent's.
#[test]
fn a_child_that_was_only_made_is_not_at_work() {
    let world = talked();
    let made = world.engine.restore(&both("t2^")).unwrap().child.unwrap();
    assert_eq!(world.engine.find(None, "t1").unwrap().session, key());
    capture_in(&world, &child(&made), 2, PointKind::TurnStart, Beat::TurnStart(Turn(2)));
    assert!(matches!(world.engine.find(None, "t1"), Err(EngineError::Ambiguous { .. })));
}

/// TJ31, contract C7: before the first turn there is nothing to keep: an empty child with a parent link.
#[test]
fn tj31_c7_the_first_turn_gives_an_empty_child_after_the_files() {
    let world = talked();
    let (file, seen) = (world.at("a"), Arc::new(Mutex::new(Vec::new())));
    let list = Arc::clone(&seen);
    world.sessions.during_fork(move || list.lock().unwrap().push(std::fs::read_to_string(&file).unwrap()));
    let done = world.engine.restore(&both("h:s/t1^")).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["v0"], "the files go first");
    let header = world.sessions.header(&child(&done.child.unwrap())).unwrap();
    assert_eq!((header.parent, header.seed_length), (Some(key()), 0));
}

/// Contract § 1.2: files only, chat only, and no door.
#[test]
fn scope_narrows_and_both_needs_a_door() {
    let world = talked();
    let chat = world.engine.restore(&RestoreRequest { scope: Scope::Chat, ..to("h:s/t1") }).unwrap();
    assert!(chat.context_only);
    assert_eq!(world.read("a"), "v2");
    let (_, notice) = world.sessions.tail(&child(&chat.child.unwrap())).unwrap();
    assert!(notice.unwrap().contains("left as they are"));
    let files = world.engine.restore(&RestoreRequest { scope: Scope::Files, ..to("h:s/t1") }).unwrap();
    assert!(files.child.is_none());
    assert_eq!(world.read("a"), "v1");
    let plain = world.save();
    assert!(matches!(world.engine.restore(&both(&plain.point.id.to_string())), Err(EngineError::Session(_))));
}

/// TJ33, 002-37: a failed fork leaves the files, says so, and can be asked for again.
#[test]
fn tj33_a_refused_fork_is_partial_and_finishes_later() {
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

/// A log that is gone for good must not keep everybody out for good.
#[test]
fn a_fork_that_never_succeeds_can_be_given_up() {
    let mut world = talked();
    world.sessions.host(Host::Refuses);
    assert!(matches!(world.engine.restore(&both("h:s/t2^")), Err(EngineError::NotForked { closed: false, .. })));
    world.reopen();
    assert!(matches!(world.engine.recover(Recovery::Finish), Err(EngineError::NotForked { closed: false, .. })));
    assert!(world.engine.unfinished().unwrap().is_some());
    match world.engine.recover(Recovery::FinishFiles) {
        Err(error @ EngineError::NotForked { closed: true, .. }) => assert_eq!(error.kind(), ErrorKind::Partial),
        other => panic!("{other:?}"),
    }
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

/// The operation is seen as unfinished while its child is being made, and somebody finishes it: both get the one child,
/// and neither is told of an error.
#[test]
fn f20_a_recovery_beside_the_fork_is_no_failure_of_either() {
    let world = talked();
    let before = world.sessions.sessions().len();
    let (engine, found, first) = (world.engine.clone(), Arc::new(Mutex::new(None)), AtomicBool::new(true));
    let list = Arc::clone(&found);
    world.sessions.during_fork(move || {
        if first.swap(false, Ordering::SeqCst) {
            *list.lock().unwrap() = Some(engine.recover(Recovery::Finish).unwrap().child);
        }
    });
    let done = world.engine.restore(&both("h:s/t2^")).unwrap();
    assert!(done.child.is_some());
    assert_eq!(*found.lock().unwrap(), Some(done.child));
    assert_eq!(world.sessions.sessions().len(), before + 1);
    assert!(world.engine.unfinished().unwrap().is_none());
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "v2");
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

/// 003: a label is kept with its boundary where a point was recorded there; the file of 003 has it in any case.
#[test]
fn c003_01_a_label_is_kept_on_the_point_at_its_boundary() {
    let world = talked();
    let beats = world.sessions.beats(&key(), checkpoint_core::Seq(0)).unwrap();
    let ends: Vec<_> = (1..=2).map(|turn| boundary_of_turn(&beats, Turn(turn)).unwrap()).collect();
    let name = world.engine.name_boundary(&key(), ends[0], "green", Some("n".into())).unwrap().unwrap();
    assert_eq!((name.boundary, name.note.as_deref()), (Some(ends[0]), Some("n")));
    assert_eq!(world.engine.index().point(&name.point).unwrap().unwrap().turn, Some(Turn(1)));
    assert_eq!(world.engine.index().names().unwrap(), [name]);
    // It moves with the session that set it, and no other session takes it away.
    assert_eq!(world.engine.name_boundary(&key(), ends[1], "green", None).unwrap().unwrap().boundary, Some(ends[1]));
    assert_eq!(world.engine.name_boundary(&child("x"), ends[0], "green", None).unwrap(), None);
    assert_eq!(world.engine.name_boundary(&key(), ends[0], "t7", None).unwrap(), None, "an address");
    assert_eq!(world.engine.name_boundary(&child("x"), ends[0], "free", None).unwrap(), None, "no point there");
    assert_eq!(world.engine.index().names().unwrap().len(), 1);
}

/// A turn that only talked has its two records like any other, and can be gone back to.
#[test]
fn every_turn_has_its_records_whether_it_wrote_or_not() {
    let world = talked();
    capture_in(&world, &key(), 3, PointKind::TurnStart, Beat::TurnStart(Turn(3)));
    capture_in(&world, &key(), 3, PointKind::TurnEnd, Beat::TurnEnd(Turn(3)));
    for (target, kind) in [("h:s/t3^", PointKind::TurnStart), ("h:s/t3", PointKind::TurnEnd)] {
        let found = world.engine.find(None, target).unwrap().point.unwrap();
        assert_eq!((found.kind, found.turn, found.changed), (kind, Some(Turn(3)), 0));
    }
}

/// 004-32, story 10: the end of a turn that is open is no place to cut at. An open turn at the end of the log does not
/// keep earlier ends from being cut at.
#[test]
fn tn28_tn31_an_open_turn_is_refused_and_earlier_ends_are_not() {
    let world = talked();
    capture_in(&world, &key(), 3, PointKind::TurnStart, Beat::TurnStart(Turn(3)));
    world.write("a", "half");
    let before = (world.scan(), world.sessions.sessions().len());
    for scope in [Scope::Default, Scope::Both, Scope::Chat, Scope::Files] {
        let request = RestoreRequest { scope, ..to("h:s/t3") };
        for error in [world.engine.restore(&request).unwrap_err(), world.engine.preview(&request).unwrap_err()] {
            assert_eq!((error.code(), error.kind()), ("OPEN_TURN", ErrorKind::Decision), "{scope:?}");
        }
    }
    let after = RestoreRequest { boundary: Some(checkpoint_core::BoundaryRule::After), ..to("h:s/t3^") };
    assert_eq!(world.engine.restore(&after).unwrap_err().code(), "OPEN_TURN");
    assert_eq!((world.scan(), world.sessions.sessions().len()), before, "nothing was written");
    assert!(world.engine.unfinished().unwrap().is_none());
    let done = world.engine.restore(&RestoreRequest { scope: Scope::Chat, ..to("h:s/t1") }).unwrap();
    assert_eq!(world.sessions.header(&child(&done.child.unwrap())).unwrap().seed_length, 3);
}

/// Story 10: a position that only the log knows needs no point, where only the conversation goes there.
#[test]
fn the_log_alone_says_where_to_cut() {
    let world = World::plain();
    world.write("a", "v0");
    world.save();
    world.sessions.start(&key());
    for turn in 1..=6 {
        world.sessions.push(&key(), Beat::TurnStart(Turn(turn)));
        world.sessions.push(&key(), Beat::TurnEnd(Turn(turn)));
    }
    for (target, seed) in [("h:s/t3", 7), ("h:s/t4^", 7), ("h:s/t1^", 0), ("h:s/seq:9", 9)] {
        let done = world.engine.restore(&RestoreRequest { scope: Scope::Chat, ..to(target) }).unwrap();
        assert!(done.context_only, "{target}");
        assert_eq!(world.sessions.header(&child(&done.child.unwrap())).unwrap().seed_length, seed, "{target}");
        let error = world.engine.restore(&to(target)).unwrap_err();
        assert_eq!(error.code(), "not-found", "files cannot go where there is no point: {target}");
    }
    for missing in ["h:s/t9", "h:s/t9^", "h:s/seq:99", "h:s/step:2"] {
        let error = world.engine.restore(&RestoreRequest { scope: Scope::Chat, ..to(missing) }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{missing}");
    }
}

/// A point that says nothing of its place belongs to where the conversation was when it was made.
#[test]
fn a_point_without_a_position_is_cut_by_the_one_before_it() {
    let world = talked();
    let manual =
        world.engine.save(&SaveRequest { note: Some("x".into()), ..SaveRequest::of(key(), PointKind::Manual) });
    let cut = world.engine.preview(&both(&manual.unwrap().point.id.to_string())).unwrap().cut.unwrap();
    assert_eq!(cut.rule, "end of turn 2");
    // With nothing before it files go back alone, and it is said; the conversation is never cut at random.
    let other = SessionKey::parse("h:o").unwrap();
    world.sessions.start(&other);
    let lone = world.engine.save(&SaveRequest::of(other, PointKind::Manual)).unwrap().point.id;
    let preview = world.engine.preview(&to(lone)).unwrap();
    assert!(preview.cut.is_none() && preview.notes.iter().any(|note| note.starts_with("files only: nothing says")));
    assert_eq!(world.engine.preview(&both(&lone.to_string())).unwrap_err().code(), "INVALID_BOUNDARY");
}

/// The locks are released while the host makes the child, so somebody may recover the operation at that moment: both ask
/// for one child, and both find it.
#[test]
fn an_operation_that_is_recovered_while_it_forks_has_one_child() {
    let world = talked();
    let (engine, recovered) = (world.engine.clone(), Arc::new(Mutex::new(None)));
    let other = Arc::clone(&recovered);
    world.sessions.during_fork(move || {
        let child = engine.recover(Recovery::Finish).unwrap().child;
        other.lock().unwrap().get_or_insert(child);
    });
    let done = world.engine.restore(&both("h:s/t2^")).unwrap();
    assert_eq!(recovered.lock().unwrap().take(), Some(done.child));
    assert_eq!(world.sessions.sessions().len(), 2);
    assert!(world.engine.unfinished().unwrap().is_none());
}

/// 000-16, deviation 7: with `files = git-only` a workspace outside git keeps its files, and only there.
#[test]
fn c000_16_outside_git_only_the_conversation_goes_back() {
    let plain = talked();
    let request = RestoreRequest { files: FilesWhere::GitOnly, ..to("h:s/t1") };
    let preview = plain.engine.preview(&request).unwrap();
    assert!(!preview.files && preview.plan.is_empty());
    let done = plain.engine.restore(&request).unwrap();
    assert!(done.context_only && done.restored.is_empty() && done.child.is_some());
    assert_eq!(plain.read("a"), "v2");
    let files = RestoreRequest { scope: Scope::Files, ..request.clone() };
    assert_eq!(plain.engine.restore(&files).unwrap_err().code(), "FORK_UNSUPPORTED");
    let git = talked_in(World::new(crate::world::Kind::Memory, true, checkpoint_core::CapturePolicy::default()));
    let done = git.engine.restore(&request).unwrap();
    assert!(!done.context_only);
    assert_eq!(git.read("a"), "v1");
}
