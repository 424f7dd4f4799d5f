//! Paths in answers: text, bytes where they are not text, and why they stand there.

use std::path::Path;

use checkpoint_core::{Blocked, PathState, RelPath, Skipped};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Typed;

/// A path. `pathBytes` is there only where the path is not UTF-8; then `path` has U+FFFD for what is not.
#[derive(Serialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PathEntry {
    path: String,
    /// The bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path_bytes: Option<String>,
}

/// A path with the reason why it stands here.
#[derive(Serialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReasonEntry {
    path: String,
    /// The bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path_bytes: Option<String>,
    reason: String,
    /// The path below it that is the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    cause: Option<String>,
}

impl ReasonEntry {
    /// For people: the path and the reason, on one line whatever the name holds; paths are named from the directory
    /// `below` the root.
    pub(crate) fn line(&self, below: &Path) -> String {
        let cause = self.cause.as_ref().map(|cause| format!(": {}", from(below, cause))).unwrap_or_default();
        format!("{}  ({}{cause})", from(below, &self.path), reason_word(&self.reason))
    }
}

/// A reason's stable word, for people: how deep an ignored path lies is nothing to them.
pub(crate) fn reason_word(reason: &str) -> &str {
    if reason == "ignored-root" { "ignored" } else { reason }
}

impl PathEntry {
    /// For people: the path on one line whatever it holds.
    pub(crate) fn line(&self) -> String {
        shown(&self.path)
    }

    /// The same for a path of the workspace, named from the directory `below` its root.
    pub(crate) fn line_from(&self, below: &Path) -> String {
        from(below, &self.path)
    }
}

impl StoredEntry {
    /// For people: where the bytes are now.
    pub(crate) fn line(&self, typed: &Typed) -> String {
        let show = typed.other(&["show", &self.blob]);
        format!("what somebody else wrote to {} is kept; to see it: {show}", shown(&self.path))
    }
}

impl ChangeEntry {
    /// What happened to it.
    pub(crate) fn word(&self) -> &'static str {
        self.change
    }

    /// For people: the path on one line whatever it holds, named from the directory `below` the root.
    pub(crate) fn line(&self, below: &Path) -> String {
        from(below, &self.path)
    }
}

/// A path of the workspace from the directory `below` its root. One that lies elsewhere stays as it is.
fn from(below: &Path, path: &str) -> String {
    let there = Path::new(path);
    if there.is_absolute() || there.components().any(|part| part == std::path::Component::ParentDir) {
        return shown(path);
    }
    shown(&crate::paths::relative(below, there).to_string_lossy())
}

/// A name without control characters: a file must not be able to forge a line or to steer a terminal.
pub(crate) fn shown(name: &str) -> String {
    if name.chars().any(char::is_control) { name.chars().map(visible).collect() } else { name.to_owned() }
}

fn visible(c: char) -> String {
    if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
}

/// A path with what happened to it.
#[derive(Serialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeEntry {
    path: String,
    /// The bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path_bytes: Option<String>,
    /// `added`, `removed`, `modified`, `mode` or `type`.
    change: &'static str,
    /// Lines added, for text, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(crate) added: Option<u64>,
    /// Lines removed, for text, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub(crate) removed: Option<u64>,
    /// True where the content is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(crate) binary: Option<bool>,
}

/// A path whose bytes of somebody else were stored.
#[derive(Serialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredEntry {
    path: String,
    /// The bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    path_bytes: Option<String>,
    blob: String,
}

/// The text of a path and, where it is not UTF-8, its bytes in base64.
pub(crate) fn coded(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(data_encoding::BASE64.encode(bytes))),
    }
}

/// Entries of paths.
pub(crate) fn paths(paths: &[RelPath]) -> Vec<PathEntry> {
    let entry = |path: &RelPath| {
        let (path, path_bytes) = coded(path.as_bytes());
        PathEntry { path, path_bytes }
    };
    paths.iter().map(entry).collect()
}

/// A path with a reason.
pub(crate) fn reason(path: &[u8], reason: &str, cause: Option<&RelPath>) -> ReasonEntry {
    let (path, path_bytes) = coded(path);
    ReasonEntry { path, path_bytes, reason: reason.to_owned(), cause: cause.map(RelPath::to_lossy) }
}

/// Entries of blocked paths.
pub(crate) fn blocked(blocked: &[Blocked]) -> Vec<ReasonEntry> {
    blocked.iter().map(|b| reason(b.path.as_bytes(), &b.reason, b.cause.as_ref())).collect()
}

/// Entries of paths that were left out.
pub(crate) fn skipped(skipped: &[Skipped]) -> Vec<ReasonEntry> {
    skipped.iter().map(|s| reason(s.path.as_bytes(), s.reason.code(), None)).collect()
}

/// Entries of stored strangers.
pub(crate) fn stored(stored: &[(RelPath, checkpoint_core::ObjectId)]) -> Vec<StoredEntry> {
    let entry = |(path, blob): &(RelPath, checkpoint_core::ObjectId)| {
        let (path, path_bytes) = coded(path.as_bytes());
        StoredEntry { path, path_bytes, blob: blob.to_string() }
    };
    stored.iter().map(entry).collect()
}

/// One changed path.
pub(crate) fn change(path: &RelPath, before: &PathState, after: &PathState) -> ChangeEntry {
    let change = before.change_to(after);
    let (path, path_bytes) = coded(path.as_bytes());
    ChangeEntry { path, path_bytes, change, added: None, removed: None, binary: None }
}

/// An absolute path.
pub(crate) fn absolute(path: &std::path::Path) -> PathEntry {
    use std::os::unix::ffi::OsStrExt;
    let (path, path_bytes) = coded(path.as_os_str().as_bytes());
    PathEntry { path, path_bytes }
}
