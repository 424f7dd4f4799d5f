//! Paths on the wire: text, and bytes where they are no text (design § 9).

use checkpoint_core::{Blocked, ObjectId, PathError, RelPath, Skipped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A path below the root. `pathBytes` is there only where the path is not UTF-8; then `path` has U+FFFD for what is not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathEntry {
    /// The text.
    pub path: String,
    /// The bytes, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

/// A path with the reason why it stands here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonEntry {
    /// The text.
    pub path: String,
    /// The bytes, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// Stable.
    pub reason: String,
    /// The path below it that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A path whose bytes of somebody else were stored because they could not stay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredEntry {
    /// The text.
    pub path: String,
    /// The bytes of the path, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// For `rwd show BLOB`.
    pub blob: String,
}

/// The text of a path and, where it is not UTF-8, its bytes in base64.
pub fn coded(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(data_encoding::BASE64.encode(bytes))),
    }
}

impl PathEntry {
    /// The path that is meant: its bytes where they are given, else its text.
    ///
    /// # Errors
    /// What [`RelPath::new`] says, and the bytes when they are no base64.
    pub fn to_path(&self) -> Result<RelPath, PathError> {
        let bytes = self.path_bytes.as_ref().and_then(|text| data_encoding::BASE64.decode(text.as_bytes()).ok());
        RelPath::new(bytes.unwrap_or_else(|| self.path.clone().into_bytes()))
    }
}

impl From<&RelPath> for PathEntry {
    fn from(path: &RelPath) -> Self {
        let (path, path_bytes) = coded(path.as_bytes());
        Self { path, path_bytes }
    }
}

/// Entries of paths.
pub fn paths(paths: &[RelPath]) -> Vec<PathEntry> {
    paths.iter().map(PathEntry::from).collect()
}

/// A path with a reason.
pub fn reason(path: &RelPath, reason: &str, cause: Option<&RelPath>) -> ReasonEntry {
    let (path, path_bytes) = coded(path.as_bytes());
    ReasonEntry { path, path_bytes, reason: reason.to_owned(), cause: cause.map(RelPath::to_lossy) }
}

/// Entries of blocked paths.
pub fn blocked(blocked: &[Blocked]) -> Vec<ReasonEntry> {
    blocked.iter().map(|b| reason(&b.path, &b.reason, b.cause.as_ref())).collect()
}

/// Entries of paths that were left out.
pub fn skipped(skipped: &[Skipped]) -> Vec<ReasonEntry> {
    skipped.iter().map(|s| reason(&s.path, s.reason.code(), None)).collect()
}

/// Entries of stored strangers.
pub fn stored(stored: &[(RelPath, ObjectId)]) -> Vec<StoredEntry> {
    let entry = |(path, blob): &(RelPath, ObjectId)| {
        let (path, path_bytes) = coded(path.as_bytes());
        StoredEntry { path, path_bytes, blob: blob.to_string() }
    };
    stored.iter().map(entry).collect()
}
