//! Answers of `rwd init`, `rwd uninstall` and `rwd run`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{PathEntry, ReasonEntry};

/// An agent and what came of it.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentEntry {
    /// As in `rwd hook NAME`.
    pub(crate) agent: &'static str,
    /// The program or the directory that it was found by; null when it was only named.
    pub(crate) found: Option<PathEntry>,
    /// `local`, `project` or `user`: whose settings are used.
    pub(crate) scope: &'static str,
    /// `installed`, `repaired`, `present`, `planned` (a dry run) or, when uninstalling, `removed`.
    pub(crate) status: &'static str,
    /// What else is to be known, as what must be done by hand.
    pub(crate) notes: Vec<String>,
}

/// A file that is changed.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileEntry {
    pub(crate) agent: &'static str,
    pub(crate) scope: &'static str,
    pub(crate) file: PathEntry,
    /// `create`, `change` or `remove`.
    pub(crate) action: &'static str,
    /// In unified form.
    pub(crate) diff: String,
    /// Where the earlier content is kept.
    pub(crate) backup: Option<PathEntry>,
}

/// The pinned first point.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FirstPoint {
    pub(crate) id: String,
    pub(crate) name: String,
    /// False when it was there before.
    pub(crate) created: bool,
    /// Files in it.
    pub(crate) files: u64,
}

/// `rwd init`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialised {
    /// The workspace's root.
    pub(crate) root: PathEntry,
    /// True when this call registered the workspace.
    pub(crate) registered: bool,
    pub(crate) dry_run: bool,
    pub(crate) agents: Vec<AgentEntry>,
    pub(crate) files: Vec<FileEntry>,
    /// Null in a dry run.
    pub(crate) point: Option<FirstPoint>,
    /// What no capture holds, and why.
    pub(crate) skipped: Vec<ReasonEntry>,
    pub(crate) warnings: Vec<String>,
    /// Commands to go on with.
    pub(crate) next: Vec<String>,
    pub(crate) ms: u64,
}

/// `rwd uninstall`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Uninstalled {
    pub(crate) root: PathEntry,
    pub(crate) dry_run: bool,
    pub(crate) agents: Vec<AgentEntry>,
    pub(crate) files: Vec<FileEntry>,
    /// Points that were removed, with `--purge-data`.
    pub(crate) dropped: u64,
    pub(crate) warnings: Vec<String>,
}

/// `rwd run`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ran {
    /// The session that its points belong to.
    pub(crate) session: String,
    /// The command's own; 128 and the signal's number when a signal ended it.
    pub(crate) exit: u8,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Points made: before, while it ran, after.
    pub(crate) points: Vec<String>,
    /// Paths that differ between before and after.
    pub(crate) changed: u64,
    pub(crate) warnings: Vec<String>,
    /// To go back to before it.
    pub(crate) back: Option<String>,
    pub(crate) ms: u64,
}
