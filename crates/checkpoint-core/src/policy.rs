//! What is captured, how a restore behaves, how long points live.

use serde::{Deserialize, Serialize};

use crate::RelPath;

/// How nested repositories and submodules are captured (design § 5). Their `.git` is never touched in either case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nested {
    /// As any directory.
    Contents,
    /// Left out and listed as `nested-repo`.
    Boundary,
}

/// What a capture covers and what it may cost.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct CapturePolicy {
    /// Untracked files of this size and above are left out (design § 5, deviation 3).
    pub untracked_max_bytes: u64,
    /// Globs that are ignored, with the semantics of 002-27. `None`: the defaults outside git, nothing inside git.
    pub excludes: Option<Vec<String>>,
    /// Globs that are captured although a rule ignores them.
    pub include: Vec<String>,
    /// Nested repositories. `None`: `Boundary` where the root is a git worktree, else `Contents`.
    pub nested: Option<Nested>,
    /// Rehash every file, whatever the change-detection cache says.
    pub verify_by_hash: bool,
    /// Let the first capture of a git worktree take what the user's index and packs know (design § 4).
    pub seed_from_git: bool,
    /// In a process that stays, points before a tool and at a step's end may rest on what a watcher saw.
    pub watch: bool,
    /// Ceiling of the store's own bytes; near it new files are left out, largest first.
    pub store_max_bytes: u64,
    /// The store may grow past its limit, for the guard of a restore. A single file larger than the limit is left out even
    /// so: it could be sparse, and would be read to its end.
    pub over_budget: bool,
    /// Free bytes that must remain on the store's file system.
    pub free_space_floor: u64,
}

impl Default for CapturePolicy {
    fn default() -> Self {
        Self {
            untracked_max_bytes: 2 << 20,
            excludes: None,
            include: Vec::new(),
            nested: None,
            verify_by_hash: false,
            seed_from_git: true,
            watch: true,
            store_max_bytes: 2 << 30,
            over_budget: false,
            free_space_floor: 64 << 20,
        }
    }
}

/// `on_capture_failure`: whether a mutating tool may run without its point (design § 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureFailure {
    /// It may; a gap says that there is none.
    #[default]
    Allow,
    /// It may not.
    Block,
}

/// What happens when a path cannot be guarded (design § 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuardMode {
    /// Any planned path that cannot be guarded aborts.
    #[default]
    Require,
    /// What cannot be guarded is blocked; the rest goes on.
    Warn,
    /// The guard is not listed; it and its interval exist all the same.
    Off,
}

/// Which half of a rewind is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Both where the session has a door, else files with one line why.
    #[default]
    Default,
    /// Files only.
    Files,
    /// The conversation only.
    Chat,
    /// Both, or fail when there is no door.
    Both,
}

/// Where files are restored at all (deviation 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilesWhere {
    /// In every workspace.
    #[default]
    Everywhere,
    /// Only in git worktrees; elsewhere only the conversation goes back (000-16).
    GitOnly,
}

/// Which end of a turn the conversation is cut at, when the address's own rule is overridden.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundaryRule {
    /// Before the turn of the point.
    Before,
    /// After it.
    After,
}

/// What to do with hand-made paths that the plan would write or remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftPolicy {
    /// Refuse and name them (exit 3).
    #[default]
    Ask,
    /// Leave them as they are.
    Keep,
    /// Restore them too; the edit is in the guard.
    Overwrite,
}

/// How a restore behaves. Part of the plan id, so a preview and its application agree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RestorePolicy {
    /// Remove paths that the target did not have, on evidence.
    pub exact: bool,
    /// Hand-made paths.
    pub drift: DriftPolicy,
    /// Hand-made paths that are restored although `drift` says otherwise.
    pub overwrite: Vec<RelPath>,
    /// Restore what unrelated sessions changed.
    pub with_others: bool,
    /// Go on without blocked paths.
    pub skip_blocked: bool,
    /// Guard mode.
    pub guard: GuardMode,
    /// Only these paths and what lies below them; empty means all.
    pub selection: Vec<RelPath>,
}

/// Limits of retention (design § 8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Turn points and manual points a session keeps.
    pub max_turns: u32,
    /// Mutation, step and auto points a session keeps.
    pub max_checkpoints: u32,
    /// Gaps a session keeps.
    pub max_gaps: u32,
    /// Soft ceiling over the data directory's own bytes.
    pub max_bytes: u64,
    /// Operations whose before and after trees stay, whatever their age.
    pub operations_kept: u32,
    /// Milliseconds for which every operation's trees stay.
    pub operations_age_ms: i64,
    /// Milliseconds without a point after which a session counts as ended: its newest point may go for the byte limit.
    pub session_age_ms: i64,
    /// Looked at after each end of a turn too, not only from time to time (002 `pruneOnTurnEnd`).
    pub on_turn_end: bool,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            max_turns: 500,
            max_checkpoints: 50,
            max_gaps: 500,
            max_bytes: 512 << 20,
            operations_kept: 50,
            operations_age_ms: 30 * 24 * 3600 * 1000,
            session_age_ms: 30 * 24 * 3600 * 1000,
            on_turn_end: true,
        }
    }
}
