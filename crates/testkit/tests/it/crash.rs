//! A crash at every single step of the application, then recovery either way (design § 7; model F2, F3, F11).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use checkpoint_core::{EngineError, LockError, LockMode, OpState, Recovery, Status, StoreLock};

use crate::scan::{differing, text};
use crate::transaction::wrecked;
use crate::world::{World, exactly, to, undo};

struct Crashed;

/// Runs a restore that dies right before step `at`; true when it got that far.
pub(crate) fn crash_at(world: &mut World, at: u64) -> bool {
    world.trap.set(at, || std::panic::panic_any(Crashed));
    let engine = world.engine.clone();
    let result = catch_unwind(AssertUnwindSafe(|| engine.restore(&exactly("h:s/t1^"))));
    world.trap.disarm();
    world.reopen();
    match result {
        Ok(result) => {
            result.unwrap();
            false
        }
        Err(payload) => {
            assert!(payload.is::<Crashed>(), "another panic");
            true
        }
    }
}

pub(crate) fn silence_expected_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<Crashed>().is_none() {
            default(info);
        }
    }));
}

fn leftovers(world: &World) -> Vec<String> {
    world.scan().keys().map(|p| String::from_utf8_lossy(p).into_owned()).filter(|p| p.contains(".rwd-")).collect()
}

#[test]
fn a_crash_at_every_step_goes_forward_or_back() {
    silence_expected_panics();
    let (original, steps) = {
        let world = wrecked();
        world.trap.disarm();
        world.engine.restore(&exactly("h:s/t1^")).unwrap();
        (world.scan(), world.trap.steps())
    };
    for how in [Recovery::Finish, Recovery::Back] {
        for at in 1..=steps {
            let mut world = wrecked();
            let wreck = world.scan();
            assert!(crash_at(&mut world, at), "step {at} was not reached");
            // Other commands refuse, captures go on and say that they are no evidence.
            assert!(matches!(world.engine.restore(&to("h:s/t1^")), Err(EngineError::Unfinished { .. })));
            let during = world.save();
            assert!(during.point.under_intent);
            let done = world.engine.recover(how).unwrap();
            assert_eq!(done.status, Status::Restored, "step {at} {how:?}: {:?}", done.notes);
            assert_eq!(leftovers(&world), Vec::<String>::new(), "step {at} {how:?}");
            let wanted = if how == Recovery::Finish { &original } else { &wreck };
            assert_eq!(text(&differing(&world.scan(), wanted)), Vec::<String>::new(), "step {at} {how:?}");
            assert!(world.engine.unfinished().unwrap().is_none());
            assert!(matches!(world.engine.recover(how), Err(EngineError::Nothing { .. })));
            if how == Recovery::Finish {
                // The record made meanwhile does not stand in the way of the undo.
                let op = done.operation.unwrap();
                let named = checkpoint_core::ReverseRequest { operation: Some(op.to_string()), ..undo() };
                world.engine.undo(&named).unwrap();
                assert_eq!(text(&differing(&world.scan(), &wreck)), Vec::<String>::new(), "undo after step {at}");
            }
        }
    }
}

/// A crash, then another in the middle of the recovery, then the other way.
#[test]
fn recovery_may_crash_too() {
    silence_expected_panics();
    let steps = {
        let mut world = wrecked();
        crash_at(&mut world, 20);
        world.engine.recover(Recovery::Finish).unwrap();
        world.trap.steps()
    };
    for at in (1..=steps).step_by(3) {
        let mut world = wrecked();
        let wreck = world.scan();
        assert!(crash_at(&mut world, 20));
        world.trap.set(at, || std::panic::panic_any(Crashed));
        let engine = world.engine.clone();
        let crashed = catch_unwind(AssertUnwindSafe(|| engine.recover(Recovery::Finish)));
        world.trap.disarm();
        world.reopen();
        if crashed.is_ok() {
            continue;
        }
        world.engine.recover(Recovery::Back).unwrap();
        assert_eq!(text(&differing(&world.scan(), &wreck)), Vec::<String>::new(), "step {at}");
        assert_eq!(leftovers(&world), Vec::<String>::new(), "step {at}");
    }
}

/// Model F11: what somebody writes while an intent is open stays, and does not count as written.
#[test]
fn an_edit_while_an_operation_is_unfinished_is_left_alone() {
    silence_expected_panics();
    for how in [Recovery::Finish, Recovery::Back] {
        let mut world = wrecked();
        assert!(crash_at(&mut world, 12));
        world.write("edit", "typed after the crash");
        let done = world.engine.recover(how).unwrap();
        assert_eq!(world.read("edit"), "typed after the crash");
        assert_eq!(done.status, Status::Partial);
        assert!(done.notes.iter().any(|note| note.starts_with("edit ")), "{:?}", done.notes);
        let op = world.engine.index().operation(&done.operation.unwrap()).unwrap().unwrap();
        assert_eq!(op.state, if how == Recovery::Finish { OpState::Partial } else { OpState::RolledBack });
        let asked = world.engine.restore(&to("h:s/t1^"));
        assert!(matches!(asked, Err(EngineError::Undecided { .. })), "{asked:?}");
    }
}

/// What another process is carrying out right now is not unfinished: it is waited for, and nobody is told to recover it.
#[test]
fn an_operation_under_way_elsewhere_is_busy_and_not_unfinished() {
    silence_expected_panics();
    let mut world = wrecked();
    assert!(crash_at(&mut world, 12));
    let elsewhere = world.lock.acquire(LockMode::Exclusive, Duration::ZERO).unwrap();
    for ended in [world.engine.restore(&to("h:s/t1^")), world.engine.undo(&undo()), world.engine.redo(&undo())] {
        assert!(matches!(ended, Err(EngineError::Lock(LockError::Busy))), "{ended:?}");
    }
    drop(elsewhere);
    for ended in [world.engine.restore(&to("h:s/t1^")), world.engine.undo(&undo()), world.engine.redo(&undo())] {
        assert!(matches!(ended, Err(EngineError::Unfinished { .. })), "{ended:?}");
    }
}

/// Model F17: a collection while an operation is open keeps its plan and everything that either way out needs.
#[test]
fn f17_a_collection_under_an_intent_keeps_both_ways_open() {
    silence_expected_panics();
    let original = {
        let world = wrecked();
        world.engine.restore(&exactly("h:s/t1^")).unwrap();
        world.scan()
    };
    for how in [Recovery::Finish, Recovery::Back] {
        let mut world = wrecked();
        let wreck = world.scan();
        assert!(crash_at(&mut world, 12));
        world.engine.gc(false).unwrap();
        world.reopen();
        world.engine.recover(how).unwrap();
        let wanted = if how == Recovery::Finish { &original } else { &wreck };
        assert_eq!(text(&differing(&world.scan(), wanted)), Vec::<String>::new(), "{how:?}");
    }
}
