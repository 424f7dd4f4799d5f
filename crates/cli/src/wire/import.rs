//! What `rwd import --json` prints.

use schemars::JsonSchema;
use serde::Serialize;

/// `rwd import`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Imported {
    /// The kind of store.
    pub(crate) from: String,
    /// Where it was looked for; read, never written.
    pub(crate) path: String,
    pub(crate) dry_run: bool,
    /// Its entry in the operation log; null where nothing new came in.
    pub(crate) op: Option<String>,
    /// States, oldest first: those that came in (or would), and those that came in before.
    pub(crate) points: Vec<ImportedPoint>,
    /// Marks.
    pub(crate) marks: Vec<ImportedMark>,
    /// Records that cannot be taken over; everything else came in all the same.
    pub(crate) skipped: Vec<ImportSkipped>,
    /// Records that hold no files: the plugin kept none outside git.
    pub(crate) without_files: u64,
    /// Records of other workspaces, or of sessions of which nobody knows where they worked.
    pub(crate) elsewhere: u64,
}

/// A state.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportedPoint {
    /// The point; null in a dry run for one that would be made.
    pub(crate) id: Option<String>,
    /// False for one that came in before.
    pub(crate) new: bool,
    pub(crate) session: String,
    pub(crate) turn: Option<u32>,
    pub(crate) step: Option<u32>,
    /// When it was recorded there.
    pub(crate) at: i64,
    pub(crate) note: Option<String>,
    /// What the older store calls it: a tree, a commit, a UUID.
    pub(crate) source: String,
    /// Files and links in it; null for one that came in before.
    pub(crate) files: Option<u64>,
}

/// A mark.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportedMark {
    /// Its number here.
    pub(crate) id: u64,
    /// Its number in the older store.
    pub(crate) was: u64,
    pub(crate) new: bool,
    pub(crate) session: String,
    pub(crate) folded: bool,
}

/// A record that is not taken over.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImportSkipped {
    /// Which.
    pub(crate) record: String,
    /// `missing`: content is not there any more; `damaged`; `no-space`; `refused`: it makes no sense, or leads outside;
    /// `unreadable`: the file that lists it.
    pub(crate) reason: String,
    pub(crate) message: String,
}
