//! The protocol's models, to exhaustion: no fault with every rule, and the fault back without any one of them.

use testkit::protocol::apply::{Apply, LOST, OUTSIDE, TORN};
use testkit::protocol::fork::{Fork, HALF, NO_CHILD, ORPHAN};
use testkit::protocol::locks::{Locks, STUCK};
use testkit::protocol::{Explored, Model, explore};

const LIMIT: usize = 2_000_000;

fn all<M: Model>(model: &M) -> Explored {
    let explored = explore(model, LIMIT);
    assert!(explored.exhausted, "more than {LIMIT} states");
    explored
}

fn clean<M: Model + std::fmt::Debug>(model: &M) {
    let explored = all(model);
    println!("model {model:?}: {} states", explored.states);
    assert!(explored.faults.is_empty(), "{model:?}: {:#?}", explored.faults);
}

/// Without the rule there is this fault; the shortest way there is so long.
fn needed<M: Model + std::fmt::Debug>(model: &M, fault: &str) {
    let explored = all(model);
    assert!(explored.faults.contains_key(fault), "{model:?}: {:#?}", explored.faults);
}

#[test]
fn a_path_is_before_or_after_and_no_edit_is_lost() {
    clean(&Apply::default());
}

#[test]
fn every_rule_of_applying_is_needed() {
    let rules = Apply::default();
    needed(&Apply { compare_again: false, ..rules }, LOST);
    needed(&Apply { store_unknown: false, ..rules }, LOST);
    needed(&Apply { two_names: false, ..rules }, TORN);
    needed(&Apply { by_descriptor: false, ..rules }, OUTSIDE);
}

/// Where names cannot be exchanged one fault is left, the window that `docs/reliability.md` names, and no other: a save
/// between the comparison and the rename, two steps of ours.
#[test]
fn without_exchange_there_is_one_window_and_no_more() {
    let explored = all(&Apply { exchange: false, ..Apply::default() });
    assert_eq!(explored.faults.keys().copied().collect::<Vec<_>>(), [LOST]);
    let trace = &explored.faults[LOST];
    let at = trace.iter().position(|label| *label == "rwd: compares the path").unwrap();
    assert_eq!(trace[at + 1..], ["somebody saves the file", "rwd: renames over the path"]);
    // With nobody at work in between there is none.
    clean(&Apply { exchange: false, edits: 0, ..Apply::default() });
}

#[test]
fn f20_files_and_conversation_agree() {
    let rules = Fork::default();
    clean(&rules);
    needed(&Fork { forking_first: false, ..rules }, ORPHAN);
    needed(&Fork { forking_first: false, ..rules }, HALF);
    let unsynced = all(&Fork { sync_child: false, ..rules });
    assert!(unsynced.faults.contains_key(NO_CHILD), "{:#?}", unsynced.faults);
}

#[test]
fn f22_nobody_waits_for_ever() {
    clean(&Locks { try_other: true, fork_unlocked: true });
    needed(&Locks { try_other: true, fork_unlocked: false }, STUCK);
    needed(&Locks { try_other: false, fork_unlocked: false }, STUCK);
}
