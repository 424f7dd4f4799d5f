//! Exit codes (design § 9). Scripts and harnesses rely on them: a code is never reused for something else.

use checkpoint_core::ErrorKind;

/// Done.
pub const OK: u8 = 0;
/// Something failed: an input or output error, a full disk, a store that may not be written.
pub const FAILURE: u8 = 1;
/// The request itself is wrong: flags, targets, paths outside the workspace, a refused root, a malformed setting.
pub const USAGE: u8 = 2;
/// A decision is needed, the plan is stale, or the session refuses. Nothing was written.
pub const DECISION: u8 = 3;
/// Confirmation is needed or was declined. Nothing was written.
pub const CONFIRMATION: u8 = 4;
/// Done, but not all of it.
pub const PARTIAL: u8 = 5;
/// There was nothing to do.
pub const NOTHING: u8 = 6;
/// An operation is unfinished: `rwd recover`.
pub const UNFINISHED: u8 = 7;
/// Damaged, expired, of a newer version, or not restorable for another reason.
pub const DAMAGED: u8 = 8;
/// Not found, or ambiguous.
pub const NOT_FOUND: u8 = 9;
/// No workspace is registered here.
pub const NO_WORKSPACE: u8 = 10;
/// Another process is at work.
pub const BUSY: u8 = 11;
/// Interrupted; nothing is left half done after the first signal.
pub const INTERRUPTED: u8 = 130;

/// The code of an engine error's kind.
pub const fn of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Failure => FAILURE,
        ErrorKind::Usage => USAGE,
        ErrorKind::Decision => DECISION,
        ErrorKind::Confirmation => CONFIRMATION,
        ErrorKind::Partial => PARTIAL,
        ErrorKind::Nothing => NOTHING,
        ErrorKind::Unfinished => UNFINISHED,
        ErrorKind::Damaged => DAMAGED,
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::Busy => BUSY,
        ErrorKind::Interrupted => INTERRUPTED,
    }
}
