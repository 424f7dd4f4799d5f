//! The protocol's models, to exhaustion: no fault with every rule, and the fault back without any one of them.

use testkit::protocol::apply::{Apply, LOST, OUTSIDE, TORN};
use testkit::protocol::cache::{Cache, STALE, TORN as TORN_READ};
use testkit::protocol::evidence::{Evidence, WRONGLY_ABSENT};
use testkit::protocol::fork::{Fork, HALF, NO_CHILD, ORPHAN};
use testkit::protocol::history::{Budget, History, LATE, LOST_POSITION, SILENT, SILENT_UNDO, UNDONE_UNDO};
use testkit::protocol::locks::{Locks, STUCK};
use testkit::protocol::store::{GONE, NO_PLAN, Store};
use testkit::protocol::{Explored, Model, explore, find};

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
    let explored = find(model, LIMIT, fault);
    let trace = explored.faults.get(fault).unwrap_or_else(|| panic!("{model:?}: {:#?}", explored.faults));
    println!("{fault}, after {} steps: {trace:?}", trace.len());
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

#[test]
fn f17_f18_f19_what_is_recorded_is_there() {
    let rules = Store::default();
    clean(&rules);
    needed(&Store { sync_reused: false, ..rules }, GONE);
    needed(&Store { epoch_first: false, ..rules }, GONE);
    needed(&Store { epoch_synced: false, ..rules }, GONE);
    needed(&Store { exclusive: false, ..rules }, GONE);
    needed(&Store { plan_is_root: false, ..rules }, NO_PLAN);
    needed(&Store { plan_synced: false, ..rules }, NO_PLAN);
}

#[test]
fn f21_absence_is_proved_only_by_a_directory_at_rest() {
    let rules = Evidence::default();
    clean(&rules);
    for rules in [
        Evidence { stamps_always: false, ..rules },
        Evidence { racy: false, ..rules },
        Evidence { self_skipped: false, ..rules },
    ] {
        needed(&rules, WRONGLY_ABSENT);
    }
}

/// Contract of the stat cache: what it vouches for is what the file holds.
#[test]
fn a_cache_is_never_out_of_date() {
    let rules = Cache::default();
    clean(&rules);
    needed(&Cache { racy: false, ..rules }, STALE);
    needed(&Cache { change_time: false, ..rules }, STALE);
    needed(&Cache { look_again: false, ..rules }, TORN_READ);
}

/// The set-ups in which the faults were found, small enough to be searched to their end.
fn set_ups() -> Vec<(&'static str, History)> {
    let one = Budget { turns: 1, edits: 1, writes: 1, operations: 1, ..Budget::default() };
    let two = Budget { turns: 2, edits: 1, writes: 1, operations: 1, mutations: 1, ..Budget::default() };
    let of = |budget| History { budget, ..History::default() };
    vec![
        ("undo", of(Budget { operations: 3, ..one })),
        ("restores", of(Budget { turns: 2, writes: 2, operations: 2, ..one })),
        ("start gap", of(Budget { start_gaps: 1, ..two })),
        ("end gap", of(Budget { end_gaps: 1, ..two })),
        ("late end", of(Budget { late_ends: 1, ..two })),
        ("interrupt", of(Budget { edits: 2, saves: 1, interrupts: 1, mutations: 0, ..two })),
        ("interrupt, two sessions", History { sessions: 2, ..of(Budget { interrupts: 1, mutations: 0, ..two }) }),
        ("overlapping captures", of(Budget { saves: 1, overlaps: 1, ..one })),
        ("retention", of(Budget { operations: 2, drops: 2, mutations: 0, ..two })),
        ("crash", of(Budget { operations: 2, saves: 1, crashes: 1, mutations: 1, ..one })),
        ("duplicates", History { sessions: 2, ..of(Budget { edits: 0, writes: 2, mutations: 2, ..two }) }),
        (
            "undo of a session",
            History { sessions: 2, session_undo: true, ..of(Budget { operations: 2, mutations: 0, ..two }) },
        ),
        ("two paths", History { paths: 2, ..of(Budget { operations: 2, crashes: 1, named_undos: 1, ..one }) }),
        ("selection", History { paths: 2, selections: true, ..of(Budget { operations: 2, ..one }) }),
    ]
}

#[test]
fn f5_to_f16_no_edit_by_hand_is_overwritten_unasked() {
    let mut states = 0;
    for (name, model) in set_ups() {
        let explored = all(&model);
        states += explored.states;
        println!("model history, {name}: {} states", explored.states);
        assert!(explored.faults.is_empty(), "{name}: {:#?}", explored.faults);
    }
    println!("model history: {states} states");
}

#[test]
fn f5_to_f16_every_rule_of_history_is_needed() {
    let set_up = |name: &str| set_ups().into_iter().find(|(of, _)| *of == name).unwrap().1;
    needed(&History { lineage: false, ..set_up("undo") }, SILENT);
    // Where change times tell what came after a turn's end, they tell this too.
    let untimed = History { after_end: false, ..set_up("undo") };
    clean(&untimed);
    needed(&History { own_record: false, ..untimed }, SILENT);
    needed(&History { time_before_gap: false, ..set_up("start gap") }, SILENT);
    needed(&History { after_end: false, ..set_up("end gap") }, SILENT);
    needed(&History { late_end_is_gap: false, ..set_up("late end") }, LATE);
    needed(&History { interrupted_ends: false, ..set_up("interrupt, two sessions") }, SILENT);
    needed(&History { walk_again: false, ..set_up("overlapping captures") }, SILENT);
    needed(&History { written_only: false, ..set_up("crash") }, SILENT);
    needed(&History { guard_closes: false, ..set_up("selection") }, SILENT);
    needed(&History { undo_asks: false, ..set_up("undo of a session") }, SILENT_UNDO);
    needed(&History { undo_is_none: false, ..set_up("undo") }, UNDONE_UNDO);
    needed(&History { own_duplicates: false, ..set_up("duplicates") }, LOST_POSITION);
}
