//! A host may lose the end of its log and use the same positions again. A cut is made only where the log still is the one
//! that points were made on (design § 7, contract K-45): else `PREFIX_CHANGED`, and nothing is written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use checkpoint_core::{
    Beat, EngineError, ErrorKind, PointKind, Recovery, RestoreRequest, Scope, Seq, SessionLog, Step, Turn,
};
use testkit::Host;

use crate::fork::{both, capture_in, child, key, talked, turn_of};
use crate::world::{World, to};

/// The end of turn 2 is lost and comes back as something else at the same position.
fn rewritten() -> World {
    let world = talked();
    world.sessions.lose(&key(), Seq(4));
    assert_eq!(world.sessions.push(&key(), Beat::TurnEnd(Turn(2))), Seq(4));
    world
}

fn refused(world: &World, target: &str) {
    let before = (world.scan(), world.sessions.sessions());
    for scope in [Scope::Default, Scope::Both, Scope::Chat] {
        let request = RestoreRequest { scope, ..to(target) };
        for error in [world.engine.preview(&request).unwrap_err(), world.engine.restore(&request).unwrap_err()] {
            assert_eq!((error.code(), error.kind()), ("PREFIX_CHANGED", ErrorKind::Decision), "{target} {scope:?}");
        }
    }
    assert_eq!((world.scan(), world.sessions.sessions()), before, "nothing was written");
    assert!(world.engine.unfinished().unwrap().is_none());
}

#[test]
fn a_position_that_was_used_again_is_no_cut() {
    let world = rewritten();
    refused(&world, "h:s/t2");
    // What was not touched by the loss is as good as ever, though the newest word on it is of the lost part.
    assert_eq!(world.engine.preview(&to("h:s/t1")).unwrap().cut.unwrap().rule, "end of turn 1");
    assert_eq!(world.engine.preview(&to("h:s/t2^")).unwrap().cut.unwrap().rule, "end of turn 1");
    // Files alone ask no log.
    let files = RestoreRequest { scope: Scope::Files, ..to("h:s/t2^") };
    assert!(world.engine.restore(&files).unwrap().child.is_none());
    assert_eq!(world.read("a"), "v1");
}

/// After the loss the session goes on: points of the new part are proven by their own digests.
#[test]
fn a_log_that_went_on_is_judged_by_its_newest_points() {
    let world = rewritten();
    turn_of(&world, &key(), 3, "v3");
    assert_eq!(world.engine.preview(&to("h:s/t3^")).unwrap().cut.unwrap().rule, "end of turn 2");
    assert_eq!(world.engine.preview(&both("h:s/t3")).unwrap().cut.unwrap().rule, "end of turn 3");
    refused(&world, "h:s/t2");
}

/// The whole beginning is another conversation's: nothing that was stored fits, whatever is asked for.
#[test]
fn a_replaced_log_fits_no_point() {
    let world = talked();
    world.sessions.lose(&key(), Seq(0));
    for beat in [
        Beat::Other,
        Beat::TurnStart(Turn(1)),
        Beat::TurnEnd(Turn(1)),
        Beat::TurnStart(Turn(2)),
        Beat::TurnEnd(Turn(2)),
        Beat::TurnStart(Turn(3)),
        Beat::TurnEnd(Turn(3)),
    ] {
        world.sessions.push(&key(), beat);
    }
    for target in ["h:s/t1", "h:s/t2^", "h:s/t2"] {
        refused(&world, target);
    }
    // By the log alone, too: the nearest point below the cut says what was there.
    let chat = RestoreRequest { scope: Scope::Chat, ..to("h:s/t3") };
    assert_eq!(world.engine.restore(&chat).unwrap_err().code(), "PREFIX_CHANGED");
}

/// K-45: a name's boundary is checked like any other, and so is that it still is one.
#[test]
fn k45_a_name_stores_its_cut_and_a_digest_of_the_log_up_to_it() {
    let world = talked();
    let point = world.engine.find(None, "h:s/t2").unwrap().point.unwrap();
    let name = world.engine.name(&point, "good", None).unwrap();
    assert_eq!(name.boundary.unwrap().seq(), Seq(4));
    assert_eq!(world.engine.preview(&both("good")).unwrap().cut.unwrap().rule, "end of turn 2");
    world.sessions.lose(&key(), Seq(4));
    let gone = world.engine.preview(&to("good")).unwrap_err();
    assert_eq!((gone.code(), gone.kind()), ("INVALID_BOUNDARY", ErrorKind::Decision));
    world.sessions.push(&key(), Beat::StepStart(Turn(2), checkpoint_core::Step(1)));
    assert_eq!(world.engine.preview(&to("good")).unwrap_err().code(), "OPEN_TURN");
    world.sessions.lose(&key(), Seq(4));
    world.sessions.push(&key(), Beat::TurnEnd(Turn(2)));
    refused(&world, "good");
}

/// What a child sees of its parent is checked in the child's own log.
#[test]
fn points_found_by_lineage_are_checked_too() {
    let world = talked();
    let made = child(&world.engine.restore(&both("h:s/t2")).unwrap().child.unwrap());
    let target = format!("{made}/t1");
    assert_eq!(world.engine.preview(&to(&target)).unwrap().cut.unwrap().session, made);
    // The parent may lose its end: the child has what it shares.
    world.sessions.lose(&key(), Seq(2));
    assert_eq!(world.engine.preview(&to(&target)).unwrap().cut.unwrap().rule, "end of turn 1");
    world.sessions.lose(&made, Seq(2));
    world.sessions.push(&made, Beat::TurnEnd(Turn(1)));
    refused(&world, &target);
}

/// The log is looked at again under the lock, after somebody has said yes.
#[test]
fn a_log_that_is_rewritten_while_somebody_is_asked_is_noticed() {
    let world = talked();
    let sessions = std::sync::Arc::clone(&world.sessions);
    world.approver.after(move || {
        sessions.lose(&key(), Seq(2));
        sessions.push(&key(), Beat::TurnEnd(Turn(1)));
    });
    let before = world.scan();
    assert_eq!(world.engine.restore(&both("h:s/t2^")).unwrap_err().code(), "PREFIX_CHANGED");
    assert_eq!(world.scan(), before);
    assert!(world.engine.unfinished().unwrap().is_none());
}

/// Between a crash and its recovery the host may go on: what is finished then is the operation, not another fork.
#[test]
fn recovery_does_not_fork_a_log_that_was_rewritten_meanwhile() {
    let mut world = talked();
    world.sessions.host(Host::DiesBefore);
    let engine = world.engine.clone();
    assert!(catch_unwind(AssertUnwindSafe(|| engine.restore(&both("h:s/t2^")))).is_err());
    world.reopen();
    world.sessions.host(Host::Works);
    world.sessions.lose(&key(), Seq(2));
    world.sessions.push(&key(), Beat::TurnEnd(Turn(1)));
    match world.engine.recover(Recovery::Finish) {
        Err(EngineError::NotForked { source, outcome, closed: true }) => {
            assert_eq!(source.code(), "PREFIX_CHANGED");
            assert!(outcome.guard.is_some());
        }
        other => panic!("{other:?}"),
    }
    // Asking again could never help: the operation is closed, and what it did can be taken back.
    assert!(world.engine.unfinished().unwrap().is_none());
    assert_eq!((world.read("a").as_str(), world.sessions.sessions().len()), ("v1", 1));
    world.engine.undo(&crate::world::undo()).unwrap();
    assert_eq!(world.read("a"), "v2");
}

/// The child was made before the crash, and the crash took the end of the log that it was made from: it is the child that
/// was asked for all the same, and an operation that forgot it would leave it to nobody.
#[test]
fn k45_recovery_finds_a_child_whose_source_was_lost_since() {
    let mut world = talked();
    world.sessions.host(Host::DiesAfter);
    let engine = world.engine.clone();
    assert!(catch_unwind(AssertUnwindSafe(|| engine.restore(&both("h:s/t2^")))).is_err());
    world.reopen();
    world.sessions.host(Host::Works);
    world.sessions.lose(&key(), Seq(2));
    let made = world.engine.recover(Recovery::Finish).unwrap().child.unwrap();
    assert_eq!(world.sessions.tail(&child(&made)).unwrap().0, 3);
    assert!(world.engine.unfinished().unwrap().is_none());
    assert_eq!(world.sessions.sessions().len(), 2);
}

/// A point that was made without a digest is cut by what others say of the same part of the log.
#[test]
fn a_point_without_a_digest_is_checked_by_its_neighbours() {
    let world = talked();
    world.sessions.push(&key(), Beat::TurnStart(Turn(3)));
    let request = checkpoint_core::SaveRequest {
        turn: Some(Turn(3)),
        ..checkpoint_core::SaveRequest::of(key(), PointKind::TurnStart)
    };
    world.engine.save(&request).unwrap();
    assert_eq!(world.engine.preview(&to("h:s/t3^")).unwrap().cut.unwrap().rule, "end of turn 2");
    world.sessions.lose(&key(), Seq(4));
    for beat in [Beat::TurnEnd(Turn(2)), Beat::TurnStart(Turn(3))] {
        world.sessions.push(&key(), beat);
    }
    refused(&world, "h:s/t3^");
    capture_in(&world, &key(), 3, PointKind::TurnEnd, Beat::TurnEnd(Turn(3)));
    assert_eq!(world.engine.preview(&both("h:s/t3")).unwrap().cut.unwrap().rule, "end of turn 3");
}

/// What was stored beyond the cut is wrong, and nothing that is right reaches as far as the cut: where the rewriting began
/// nobody knows, so the cut may be of another conversation.
#[test]
fn a_rewritten_log_is_cut_only_where_something_proves_the_cut() {
    let world = World::plain();
    world.sessions.start(&key());
    for turn in 1..=3 {
        world.sessions.push(&key(), Beat::TurnStart(Turn(turn)));
        world.write("a", &format!("v{turn}"));
        capture_in(&world, &key(), turn, PointKind::Mutation, Beat::StepStart(Turn(turn), Step(1)));
        world.sessions.push(&key(), Beat::TurnEnd(Turn(turn)));
    }
    let cut = |target: &str| {
        let request = RestoreRequest { scope: Scope::Chat, ..to(target) };
        world.engine.preview(&request).map(|preview| preview.cut.unwrap().rule).map_err(|error| error.code())
    };
    assert_eq!(cut("h:s/t2").unwrap(), "end of turn 2");
    // From the step of turn 2 on nothing is as it was, or only from the one of turn 3 on: t2 looks the same.
    for from in [6, 8] {
        world.sessions.lose(&key(), Seq(from));
        for at in from..=9 {
            let turn = Turn(u32::try_from(u64::div_ceil(at, 3)).unwrap());
            let beats = [Beat::TurnEnd(turn), Beat::TurnStart(turn), Beat::StepStart(turn, Step(1))];
            world.sessions.push(&key(), beats[usize::try_from(at % 3).unwrap()]);
        }
        assert_eq!(cut("h:s/t2"), Err("PREFIX_CHANGED"), "{from}");
        assert_eq!(cut("h:s/t1").unwrap(), "end of turn 1", "the step of turn 2 proves it");
    }
}

/// The digest does not depend on who reads it.
#[test]
fn the_digest_of_a_shared_prefix_is_the_same_in_parent_and_child() {
    let world = talked();
    let made = child(&world.engine.restore(&both("h:s/t2^")).unwrap().child.unwrap());
    assert_eq!(
        world.sessions.prefix_digest(&key(), Seq(2)).unwrap(),
        world.sessions.prefix_digest(&made, Seq(2)).unwrap()
    );
}
