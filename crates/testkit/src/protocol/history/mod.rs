//! Who changed what: records and their intervals, operations, undo and redo, recovery, late and missing captures,
//! retention. The question is always the same: does a restore overwrite an edit made by hand without a decision, and does
//! an undo undo what it should (design §§ 2, 5, 7; F5–F16)?
//!
//! The truth is kept beside: when each path was last changed by hand. The rules see only what a capture can see.

mod state;
mod steps;

pub use state::State;

/// At most so many paths.
pub(crate) const PATHS: usize = 2;

/// How often each thing may happen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    /// Turns that begin.
    pub turns: u8,
    /// Edits by hand.
    pub edits: u8,
    /// Writes of agents.
    pub writes: u8,
    /// Restores, undos, redos.
    pub operations: u8,
    /// `rwd save`.
    pub saves: u8,
    /// Turns whose start is a gap.
    pub start_gaps: u8,
    /// Turns whose end is a gap.
    pub end_gaps: u8,
    /// Records that are dropped.
    pub drops: u8,
    /// Turns that are interrupted.
    pub interrupts: u8,
    /// Turns whose end is captured late.
    pub late_ends: u8,
    /// Operations that crash.
    pub crashes: u8,
    /// Captures before a tool runs.
    pub mutations: u8,
    /// Captures of a second process that walk now and commit later.
    pub overlaps: u8,
    /// Undos of an operation by its name.
    pub named_undos: u8,
}

/// The rules and the bounds.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule that can be left out")]
pub struct History {
    /// Paths, at most two.
    pub paths: usize,
    /// Sessions, at most two.
    pub sessions: usize,
    /// How often.
    pub budget: Budget,
    /// Restores of single paths too.
    pub selections: bool,
    /// Undo and redo are asked for one session: only its own newer points refuse them.
    pub session_undo: bool,
    /// F5: what an operation wrote continues the history that the path had in the state it came from.
    pub lineage: bool,
    /// F6: a turn counts from its own record on.
    pub own_record: bool,
    /// F6: time outside before a turn whose start is a gap counts as well.
    pub time_before_gap: bool,
    /// F7: what changed after a turn's end is not that turn's.
    pub after_end: bool,
    /// F8: a late end of a turn is a gap once the next one began.
    pub late_end_is_gap: bool,
    /// F9: an interrupted turn counts up to the next record.
    pub interrupted_ends: bool,
    /// F10: a capture that was overtaken walks again, and an interval begins and ends where the walk began.
    pub walk_again: bool,
    /// F11: only paths that hold the planned state count as written, and records under an intent leave them out.
    pub written_only: bool,
    /// F12: a guard that is off closes its interval all the same.
    pub guard_closes: bool,
    /// F14: an undo asks too.
    pub undo_asks: bool,
    /// F15: an undo is no candidate for an undo.
    pub undo_is_none: bool,
    /// F16: only a record of the same session makes a capture needless.
    pub own_duplicates: bool,
}

impl Default for History {
    fn default() -> Self {
        Self {
            paths: 1,
            sessions: 1,
            budget: Budget::default(),
            selections: false,
            session_undo: false,
            lineage: true,
            own_record: true,
            time_before_gap: true,
            after_end: true,
            late_end_is_gap: true,
            interrupted_ends: true,
            walk_again: true,
            written_only: true,
            guard_closes: true,
            undo_asks: true,
            undo_is_none: true,
            own_duplicates: true,
        }
    }
}

/// An edit by hand is overwritten by a restore that asked nothing.
pub const SILENT: &str = "a restore overwrites an edit by hand and asks nothing";
/// The same by an undo or a redo.
pub const SILENT_UNDO: &str = "an undo overwrites an edit by hand and asks nothing";
/// The second undo does not go further back.
pub const UNDONE_UNDO: &str = "a second undo undoes the undo";
/// The record of a turn's end holds what the next turn wrote.
pub const LATE: &str = "the end of a turn holds writes of the next";
/// A position has an older state than the one that was there.
pub const LOST_POSITION: &str = "a position of a session holds an older state";
