//! What `rwd purge --json` prints.

use checkpoint_core::PurgedPath;
use schemars::JsonSchema;
use serde::Serialize;

use super::coded;

/// `rwd purge`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Purged {
    pub(crate) dry_run: bool,
    /// Its entry in the operation log; null where nothing was written.
    pub(crate) op: Option<String>,
    /// Paths that lose content, in path order.
    pub(crate) paths: Vec<PurgedEntry>,
    /// Points that lose something, oldest first; their other paths stay restorable.
    pub(crate) points: Vec<PurgedPoint>,
    /// Operations whose undo leaves these paths alone from now on.
    pub(crate) operations: Vec<String>,
    /// An earlier purge had not finished.
    pub(crate) pending: bool,
    pub(crate) dropped_objects: u64,
    pub(crate) freed_bytes: u64,
    /// True when none of the content is stored any more; false also where nothing was written.
    pub(crate) complete: bool,
    /// Why it is not complete: the points are rid of the content, the store may still have it.
    pub(crate) reason: Option<String>,
}

/// A path that loses content.
#[derive(Serialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PurgedEntry {
    pub(crate) path: String,
    /// The bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path_bytes: Option<String>,
    /// In how many points.
    pub(crate) points: u64,
    /// Not asked for: it has had the very same content.
    pub(crate) same_content: bool,
    /// Something is there in the workspace now, and stays.
    pub(crate) present: bool,
}

impl From<&PurgedPath> for PurgedEntry {
    fn from(path: &PurgedPath) -> Self {
        let PurgedPath { points, same_content, present, .. } = *path;
        let (path, path_bytes) = coded(path.path.as_bytes());
        Self { path, path_bytes, points, same_content, present }
    }
}

/// A point that loses something.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PurgedPoint {
    pub(crate) id: String,
    /// How many paths.
    pub(crate) paths: u64,
}
