//! Contract § 3 theme J, the lines that no other page here tests, and TB01: one test for each, named after it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use checkpoint_core::{
    Beat, CapturePolicy, Decision, DropWhich, EngineError, EngineEvent, ErrorKind, GuardMode, LockMode, Observer,
    OpState, PointKind, PointQuery, Recovery, RestorePolicy, RestoreRequest, Scope, SessionLog, Status, StoreLock,
    Turn,
};
use testkit::Host;

use crate::fork::{both, capture_in, child, key, talked, talked_in};
use crate::scan::scan;
use crate::world::{Kind, World, exactly, names, path, to, undo};

fn with(request: RestoreRequest, policy: RestorePolicy) -> RestoreRequest {
    RestoreRequest { policy, ..request }
}

/// One turn of `h:s` that does `work`.
fn turn(world: &World, number: u32, work: impl FnOnce(&World)) {
    world.turn_start("h:s", number);
    work(world);
    world.turn_end("h:s", number);
}

fn operations(world: &World) -> usize {
    world.engine.index().operations(&[], None).unwrap().len()
}

/// TB01: points are listed oldest first by their place, though the clock went back between them.
#[test]
fn tb01_points_are_oldest_first_whatever_the_clock_says() {
    for kind in [Kind::Memory, Kind::Json, Kind::Sqlite] {
        let world = World::new(kind, false, CapturePolicy::default());
        let mut made = Vec::new();
        for n in 1..=4 {
            world.write("a", &format!("v{n}"));
            made.push(world.save().point.id);
            world.clock.turn(-3_600_000);
        }
        let points = world.engine.index().points(&PointQuery::default()).unwrap();
        assert!(points.is_sorted_by(|a, b| a.at > b.at), "{kind:?}: the clock went back");
        assert_eq!(points.iter().map(|point| point.id).collect::<Vec<_>>(), made, "{kind:?}");
        assert_eq!(world.engine.find(None, "latest").unwrap().point.unwrap().id, made[3], "{kind:?}");
    }
}

/// TJ01.
#[test]
fn tj01_denied_nothing_is_restored_or_forked_and_the_point_stays() {
    for (decision, code) in [(Decision::Rejected, "declined"), (Decision::Unavailable, "confirmation-needed")] {
        let world = talked();
        world.host.set("now");
        let (before, points) = (world.scan(), world.engine.index().points(&PointQuery::default()).unwrap());
        world.approver.says(decision);
        assert_eq!(world.engine.restore(&both("h:s/t2^")).unwrap_err().code(), code);
        assert_eq!((world.scan(), operations(&world)), (before, 0));
        assert_eq!(world.engine.index().points(&PointQuery::default()).unwrap(), points, "no guard, nothing dropped");
        assert_eq!((world.sessions.sessions(), world.host.get().1), (vec![key()], 0));
    }
}

/// TJ07, deviation 12: what cannot be guarded is left as it is and named, the rest goes on.
#[test]
fn tj07_guard_warn_goes_on_without_what_cannot_be_guarded() {
    let socket = |world: &World| {
        world.write("b", "v2");
        world.remove("a");
        drop(std::os::unix::net::UnixListener::bind(world.at("a")).unwrap());
    };
    let world = World::plain();
    world.write("a", "v1");
    world.write("b", "v1");
    turn(&world, 1, socket);
    let before = world.scan();
    let asked = |guard| with(to("h:s/t1^"), RestorePolicy { guard, ..RestorePolicy::default() });
    assert_eq!(world.engine.restore(&asked(GuardMode::Require)).unwrap_err().code(), "blocked");
    assert_eq!(world.scan(), before);
    let done = world.engine.restore(&asked(GuardMode::Warn)).unwrap();
    assert_eq!((done.status, names(&done.restored)), (Status::Partial, vec!["b".to_owned()]));
    assert_eq!(done.plan.blocked.iter().map(|b| b.path.to_lossy()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(world.read("b"), "v1");
    assert_eq!(world.scan().get(&b"a"[..]), before.get(&b"a"[..]), "the socket stays");
}

/// TJ09, deviation 12: the guard is on no list, and its bytes are there all the same.
#[test]
fn tj09_guard_off_is_not_listed_and_still_holds_the_bytes() {
    for (guard, listed) in [(GuardMode::Off, false), (GuardMode::Require, true)] {
        let world = World::plain();
        world.write("a", "v1");
        turn(&world, 1, |w| w.write("a", "v2"));
        world.engine.restore(&with(to("h:s/t1^"), RestorePolicy { guard, ..RestorePolicy::default() })).unwrap();
        let guards = PointQuery { kinds: vec![PointKind::Guard], ..PointQuery::default() };
        let guards: Vec<bool> = world.engine.index().points(&guards).unwrap().iter().map(|p| p.listed).collect();
        assert_eq!(guards, [listed], "{guard:?}");
        world.engine.undo(&undo()).unwrap();
        assert_eq!(world.read("a"), "v2", "{guard:?}");
    }
}

/// TJ10.
#[test]
fn tj10_files_alone_make_no_session_and_leave_the_configuration() {
    let world = World::plain();
    world.host.set("one");
    let world = talked_in(world);
    world.host.set("two");
    let done = world.engine.restore(&RestoreRequest { scope: Scope::Files, ..to("h:s/t2^") }).unwrap();
    assert_eq!((world.read("a").as_str(), done.child, done.cut.is_none()), ("v1", None, true));
    assert_eq!((world.sessions.sessions(), world.host.get()), (vec![key()], ("two".into(), 0)));
}

/// TJ12: a host that cannot store its configuration takes it for its own lifetime, and the answer says so.
#[test]
fn tj12_a_configuration_that_is_not_durable_is_said_to_be_so() {
    for (forgets, said) in [(true, true), (false, false)] {
        let world = World::plain();
        world.host.set("one");
        let world = talked_in(world);
        world.host.set("two");
        world.save();
        world.host.forget(forgets);
        let done = world.engine.restore(&RestoreRequest { config: true, ..to("h:s/t2^") }).unwrap();
        assert_eq!(world.host.get(), ("one".into(), 1));
        assert_eq!(done.notes.iter().any(|note| note.contains("not durable")), said, "{:?}", done.notes);
    }
}

/// TJ13: an address alone means both halves.
#[test]
fn tj13_an_address_alone_is_both() {
    let world = talked();
    let (bare, all) = (world.engine.preview(&to("h:s/t2^")).unwrap(), world.engine.preview(&both("h:s/t2^")).unwrap());
    assert!(bare.files && bare.cut.is_some());
    assert_eq!((bare.plan_id, bare.plan, bare.cut), (all.plan_id, all.plan, all.cut));
    let made = world.engine.restore(&to("h:s/t2^")).unwrap().child.unwrap();
    assert_eq!(world.sessions.header(&child(&made)).unwrap().seed_length, 3);
    assert_eq!(world.read("a"), "v1");
}

/// A git repository whose branch stands at a commit of this digit, with the reflog that led there.
fn committed(world: &World, digit: char) {
    let (git, id) = (world.at(".git"), digit.to_string().repeat(40));
    fs::create_dir_all(git.join("logs")).unwrap();
    fs::write(git.join("refs/heads/main"), format!("{id}\n")).unwrap();
    let mut log = fs::read_to_string(git.join("logs/HEAD")).unwrap_or_default();
    log += &[&"0".repeat(40), " ", &id, " A <a@b> 1796000000 +0000\tcommit\n"].concat();
    fs::write(git.join("logs/HEAD"), log).unwrap();
}

fn in_git() -> World {
    let world = World::new(Kind::Memory, true, CapturePolicy::default());
    committed(&world, '1');
    world.write("a", "v1");
    world
}

/// TJ15: HEAD, the branch and the reflog are what they were, byte for byte.
#[test]
fn tj15_head_and_reflog_stay_as_they_are() {
    let world = in_git();
    turn(&world, 1, |w| {
        w.write("a", "v2");
        committed(w, '2');
    });
    let git = scan(&world.at(".git"), true);
    world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert_eq!(world.read("a"), "v1");
    assert_eq!(scan(&world.at(".git"), true), git);
    world.engine.undo(&undo()).unwrap();
    world.engine.redo(&undo()).unwrap();
    assert_eq!(scan(&world.at(".git"), true), git);
}

/// TJ19: a plan is good for the state it was made of; what it leaves alone may change.
#[test]
fn tj19_a_plan_is_stale_when_a_selected_path_has_changed() {
    let plan = |world: &World| {
        let policy = RestorePolicy { selection: vec![path("a")], ..RestorePolicy::default() };
        let request = with(to("h:s/t1^"), policy);
        let plan = Some(world.engine.preview(&request).unwrap().plan_id);
        RestoreRequest { plan, ..request }
    };
    let made = || {
        let world = World::plain();
        world.write("a", "v1");
        world.write("b", "v1");
        world.turn_start("h:s", 1);
        world.write("a", "v2");
        world.write("b", "v2");
        world
    };
    let world = made();
    let request = plan(&world);
    world.write("a", "v3");
    let before = world.scan();
    assert!(matches!(world.engine.restore(&request), Err(EngineError::Stale { .. })));
    assert_eq!((world.scan(), operations(&world)), (before, 0));
    let world = made();
    let request = plan(&world);
    world.write("b", "v3");
    world.engine.restore(&request).unwrap();
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("v1", "v3"));
}

/// TJ22: HEAD is never moved, so it blocks nothing; who approves is told that it has moved.
#[test]
fn tj22_a_moved_head_is_said_before_and_after() {
    let world = in_git();
    turn(&world, 1, |w| w.write("a", "v2"));
    let moved = |notes: &[String]| notes.iter().find(|note| note.starts_with("HEAD moved since")).cloned();
    assert_eq!(moved(&world.engine.preview(&to("h:s/t1^")).unwrap().notes), None);
    committed(&world, '2');
    let said = moved(&world.engine.preview(&to("h:s/t1^")).unwrap().notes).unwrap();
    assert!(said.contains("from main at 11111111 to main at 22222222"), "{said}");
    let done = world.engine.restore(&to("h:s/t1^")).unwrap();
    assert_eq!((moved(&done.notes), world.read("a").as_str()), (Some(said), "v1"));
}

/// TJ30: while an agent is at work in the workspace nothing is taken from under it.
#[test]
fn tj30_an_agent_at_work_keeps_restores_out() {
    let world = World::plain();
    world.write("a", "v1");
    world.turn_start("h:s", 1);
    world.write("a", "v2");
    world.clock.busy_on(Some(world.at("log")));
    let request = RestoreRequest { force: false, ..to("h:s/t1^") };
    let error = world.engine.restore(&request).unwrap_err();
    assert!(matches!(&error, EngineError::TurnOpen { session, turn } if *session == key() && *turn == Turn(1)));
    assert_eq!((error.kind(), world.read("a").as_str(), operations(&world)), (ErrorKind::Busy, "v2", 0));
    // It waits for something: nothing changes, and its files may go back.
    world.clock.busy_on(None);
    world.engine.restore(&request).unwrap();
    assert_eq!(world.read("a"), "v1");
}

/// TJ34: where neither the files nor the conversation would go back there is no second conversation.
#[test]
fn tj34_a_restore_to_where_all_is_already_forks_nothing() {
    let world = talked();
    let request = to("h:s/t2");
    let preview = world.engine.preview(&request).unwrap();
    assert!(preview.plan.is_empty() && preview.cut.is_none(), "{preview:?}");
    assert!(preview.notes.iter().any(|note| note == "the conversation ends there already"), "{:?}", preview.notes);
    for request in [request.clone(), RestoreRequest { scope: Scope::Files, ..request.clone() }] {
        let done = world.engine.restore(&request).unwrap();
        assert_eq!((done.status, done.child, done.operation), (Status::Nothing, None, None));
    }
    assert_eq!((world.sessions.sessions(), operations(&world)), (vec![key()], 0));
    // Whatever was said since is something to take back, and so is a file; and who asks for a child gets one.
    world.sessions.push(&key(), Beat::Other);
    assert!(world.engine.restore(&request).unwrap().child.is_some());
    let world = talked();
    world.write("a", "by hand");
    let policy = RestorePolicy { overwrite: vec![path("a")], ..RestorePolicy::default() };
    assert!(world.engine.restore(&with(request, policy)).unwrap().child.is_some());
    assert!(world.engine.restore(&both("h:s/t2")).unwrap().child.is_some());
}

/// TJ39.
#[test]
fn tj39_a_second_run_restores_nothing() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, 1, |w| {
        w.write("a", "v2");
        w.write("new", "new");
    });
    world.engine.restore(&exactly("h:s/t1^")).unwrap();
    let stamp = || {
        let facts = fs::metadata(world.at("a")).unwrap();
        (facts.ino(), facts.ctime(), facts.ctime_nsec())
    };
    let first = (stamp(), operations(&world));
    let again = world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert_eq!((again.status, again.guard, again.operation), (Status::Nothing, None, None));
    assert!(again.restored.is_empty() && again.removed.is_empty());
    assert_eq!((stamp(), operations(&world)), first, "nothing was written, nothing was recorded");
}

/// TJ40: a new file that somebody has edited since is removed only when it is named, and never lost.
#[test]
fn tj40_a_divergent_new_file_is_kept_by_the_guard() {
    let world = World::plain();
    turn(&world, 1, |w| w.write("new", "agent"));
    world.write("new", "edited by hand");
    let kept = world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert_eq!((kept.status, names(&kept.plan.hand_made)), (Status::Nothing, vec!["new".to_owned()]));
    assert_eq!(world.read("new"), "edited by hand");
    let policy = RestorePolicy { exact: true, overwrite: vec![path("new")], ..RestorePolicy::default() };
    let done = world.engine.restore(&with(to("h:s/t1^"), policy)).unwrap();
    assert_eq!((names(&done.removed), world.at("new").exists()), (vec!["new".to_owned()], false));
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("new"), "edited by hand");
}

/// TJ42: a file of a later turn stays by default; removed on demand it is in the guard.
#[test]
fn tj42_a_later_file_is_kept_in_its_place_or_in_the_guard() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, 1, |w| w.write("a", "v2"));
    turn(&world, 2, |w| w.write("later", "turn 2"));
    let kept = world.engine.restore(&to("h:s/t1^")).unwrap();
    assert_eq!((names(&kept.plan.kept_new), world.read("later").as_str()), (vec!["later".to_owned()], "turn 2"));
    let done = world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert_eq!((names(&done.removed), world.at("later").exists()), (vec!["later".to_owned()], false));
    let guard = world.engine.index().point(&done.guard.unwrap()).unwrap().unwrap();
    assert_eq!(world.engine.index().operation(&done.operation.unwrap()).unwrap().unwrap().guard, Some(guard.id));
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("later"), "turn 2");
}

#[derive(Debug, Default)]
struct Journal(Mutex<Vec<EngineEvent>>);

impl Observer for Journal {
    fn on(&self, event: &EngineEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// TJ43: whatever becomes of an operation, it is on record before the first write and closed after the last.
#[test]
fn tj43_every_operation_is_recorded_and_closed() {
    let mut world = talked();
    let journal = Arc::new(Journal::default());
    let seen = Arc::clone(&journal);
    world.composed(|files| files, |builder| builder.observer(seen));
    let (engine, open) = (world.engine.clone(), Arc::new(Mutex::new(Vec::new())));
    let list = Arc::clone(&open);
    // Before the first step there is an open entry; then the restore fails and is put back.
    let target = world.at("a");
    world.trap.set(1, move || {
        list.lock().unwrap().extend(engine.index().operations(&[], None).unwrap().iter().map(|op| op.state));
        fs::write(target, "typed").unwrap();
    });
    assert!(matches!(world.engine.restore(&both("h:s/t2^")), Err(EngineError::Changed { .. })));
    assert_eq!(*open.lock().unwrap(), [OpState::Open]);
    world.trap.disarm();
    world.write("a", "v2");
    let forced = with(both("h:s/t2^"), RestorePolicy { overwrite: vec![path("a")], ..RestorePolicy::default() });
    world.engine.restore(&forced).unwrap();
    world.engine.undo(&undo()).unwrap();
    world.engine.redo(&undo()).unwrap();
    world.engine.undo(&undo()).unwrap();
    world.sessions.host(Host::Refuses);
    assert!(matches!(world.engine.restore(&forced), Err(EngineError::NotForked { .. })));
    assert!(matches!(world.engine.recover(Recovery::FinishFiles), Err(EngineError::NotForked { closed: true, .. })));
    // A process that dies in the middle leaves the entry open, and whoever recovers closes it.
    for how in [Recovery::Finish, Recovery::Back] {
        world.trap.set(3, || std::panic::resume_unwind(Box::new("killed")));
        let engine = world.engine.clone();
        let files = RestoreRequest { scope: Scope::Files, target: "h:s/t1^".into(), ..forced.clone() };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.restore(&files))).is_err());
        world.trap.disarm();
        world.reopen();
        let seen = Arc::clone(&journal);
        world.composed(|files| files, |builder| builder.observer(seen));
        world.engine.recover(how).unwrap();
        world.write("a", "v1");
        world.save();
    }
    let newest_first = world.engine.index().operations(&[], None).unwrap();
    let states: Vec<OpState> = newest_first.iter().rev().map(|op| op.state).collect();
    let (done, partial, back) = (OpState::Done, OpState::Partial, OpState::RolledBack);
    assert_eq!(states, [back, done, done, done, done, partial, done, back]);
    let events = journal.0.lock().unwrap();
    let begun = events.iter().filter_map(|event| match event {
        EngineEvent::Begun { operation } => Some(*operation),
        _ => None,
    });
    let ended = events.iter().filter_map(|event| match event {
        EngineEvent::Ended { operation, .. } => Some(*operation),
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), ended.collect::<Vec<_>>());
    assert!(world.engine.unfinished().unwrap().is_none());
}

/// TJ51: on demand what was made in the target's turn and after it goes, and nothing older.
#[test]
fn tj51_files_made_at_or_after_the_target_are_removed() {
    let world = World::plain();
    turn(&world, 1, |w| w.write("first", "1"));
    turn(&world, 2, |w| w.write("at/file", "2"));
    turn(&world, 3, |w| w.write("after", "3"));
    let done = world.engine.restore(&exactly("h:s/t2^")).unwrap();
    assert_eq!(names(&done.removed), ["after", "at/file"]);
    assert!(!world.at("at").exists() && !world.at("after").exists());
    assert_eq!(world.read("first"), "1");
}

/// TJ52.
#[test]
fn tj52_a_deleted_file_comes_back() {
    let world = World::plain();
    world.write("run.sh", "#!/bin/sh\n");
    world.chmod("run.sh", 0o750);
    turn(&world, 1, |w| w.remove("run.sh"));
    let done = world.engine.restore(&to("h:s/t1^")).unwrap();
    assert_eq!((names(&done.plan.recreate), world.read("run.sh").as_str()), (vec!["run.sh".into()], "#!/bin/sh\n"));
    assert_eq!(fs::metadata(world.at("run.sh")).unwrap().permissions().mode() & 0o7777, 0o750);
}

/// TJ54: `t1` includes turn 1, in the files and in the conversation; `t2^` is the same place.
#[test]
fn tj54_the_end_of_a_turn_is_inclusive() {
    for target in ["h:s/t1", "h:s/t2^"] {
        let world = talked();
        let made = world.engine.restore(&both(target)).unwrap().child.unwrap();
        assert_eq!(world.read("a"), "v1", "{target}");
        let last = world.sessions.beats(&child(&made), checkpoint_core::Seq(0)).unwrap().pop().unwrap();
        assert_eq!(last.1, Beat::TurnEnd(Turn(1)), "{target}");
    }
}

/// TJ58.
#[test]
fn tj58_deleted_parents_are_made_again() {
    let world = World::plain();
    world.write("p/q/file", "deep");
    world.write("p/other", "other");
    world.chmod("p/q", 0o700);
    turn(&world, 1, |w| w.remove("p"));
    let only = RestorePolicy { selection: vec![path("p/q/file")], ..RestorePolicy::default() };
    world.engine.restore(&with(to("h:s/t1^"), only)).unwrap();
    assert_eq!((world.read("p/q/file").as_str(), world.at("p/other").exists()), ("deep", false));
    assert_eq!(fs::metadata(world.at("p/q")).unwrap().permissions().mode() & 0o7777, 0o700);
}

/// TJ60: what was made and is gone again is no part of any plan.
#[test]
fn tj60_a_new_file_that_is_gone_already_is_no_impact() {
    let world = World::plain();
    world.write("a", "v1");
    turn(&world, 1, |w| w.write("ghost/file", "boo"));
    turn(&world, 2, |w| w.remove("ghost"));
    let preview = world.engine.preview(&exactly("h:s/t1^")).unwrap();
    assert!(preview.plan.is_empty() && preview.plan.kept_new.is_empty() && preview.plan.blocked.is_empty());
    assert_eq!(world.engine.restore(&exactly("h:s/t1^")).unwrap().status, Status::Nothing);
}

/// TJ61: the same bytes in a file that was written anew are no difference.
#[test]
fn tj61_identical_content_is_no_impact() {
    let world = World::plain();
    world.write("a", "same");
    world.write("b", "v1");
    turn(&world, 1, |w| {
        w.remove("a");
        w.write("a", "same");
        w.write("b", "v2");
    });
    let inode = fs::metadata(world.at("a")).unwrap().ino();
    let done = world.engine.restore(&exactly("h:s/t1^")).unwrap();
    assert_eq!((names(&done.restored), done.plan.unchanged), (vec!["b".to_owned()], 1));
    assert_eq!(fs::metadata(world.at("a")).unwrap().ino(), inode, "it was not written");
}

/// TJ66: while somebody holds the workspace for a collection nothing is changed by anybody.
#[test]
fn tj66_a_busy_owner_keeps_every_change_out() {
    let world = talked();
    world.engine.restore(&to("h:s/t2^")).unwrap();
    let point = world.save().point.id;
    let state = || (world.scan(), operations(&world), world.sessions.sessions().len());
    let before = state();
    let held = world.lock.acquire(LockMode::Exclusive, Duration::ZERO).unwrap();
    let kinds = [
        world.engine.restore(&both("h:s/t1^")).unwrap_err().kind(),
        world.engine.undo(&undo()).unwrap_err().kind(),
        world.engine.drop_points(&DropWhich::Points(vec![point])).unwrap_err().kind(),
        world.engine.gc(false).unwrap_err().kind(),
        world.engine.save(&checkpoint_core::SaveRequest::manual()).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Busy; 5]);
    assert_eq!(state(), before);
    assert!(world.engine.index().point(&point).unwrap().is_some());
    drop(held);
    world.engine.undo(&undo()).unwrap();
    assert_eq!(world.read("a"), "v2");
}

type Fails = fn(&World) -> EngineError;

/// TJ67: whatever fails lets the workspace go.
#[test]
fn tj67_the_lock_is_free_after_every_failure() {
    let fails: [(&str, Fails); 4] = [
        ("a collection around what is missing", |world| {
            let objects = world.base().join("store/git/objects");
            fs::rename(&objects, objects.with_extension("away")).unwrap();
            let error = world.engine.gc(false).unwrap_err();
            fs::rename(objects.with_extension("away"), objects).unwrap();
            error
        }),
        ("a restore that is put back", |world| {
            let target = world.at("a");
            world.trap.set(2, move || fs::write(target, "typed").unwrap());
            world.engine.restore(&both("h:s/t2^")).unwrap_err()
        }),
        ("a plan that is stale", |world| {
            world.engine.restore(&RestoreRequest { plan: Some("0".repeat(40)), ..to("h:s/t2^") }).unwrap_err()
        }),
        ("a child that is refused", |world| {
            world.sessions.host(Host::Refuses);
            world.engine.restore(&both("h:s/t2^")).unwrap_err()
        }),
    ];
    for (what, fail) in fails {
        let world = talked();
        capture_in(&world, &key(), 3, PointKind::TurnStart, Beat::TurnStart(Turn(3)));
        let error = fail(&world);
        assert_ne!(error.kind(), ErrorKind::Busy, "{what}: {error:?}");
        assert!(world.lock.acquire(LockMode::Exclusive, Duration::ZERO).is_ok(), "{what}: {error:?}");
    }
}
