//! Marks of explorations (001), names of points, named points of conversations (003).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sets a mark (001-01): durable, and in no log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MarkSet {
    /// Which session.
    pub session: String,
    /// Length of its log: position of the first event after the mark.
    pub log_length: u64,
    /// The open turn; left out when the session is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// What the exploration is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
}

/// A mark was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Marked {
    /// Number within the workspace, from 1; never given twice.
    pub id: u64,
    /// As it was given.
    pub log_length: u64,
}

/// Asks for the newest mark, folded or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LatestMark {
    /// Which session.
    pub session: String,
}

/// A mark, if there is one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkFound {
    /// The mark.
    pub mark: Option<MarkEntry>,
}

/// A mark.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkEntry {
    /// Its number.
    pub id: u64,
    /// Position of the first event after it.
    pub log_length: u64,
    /// The turn that was open.
    pub turn: Option<u32>,
    /// What the exploration is for.
    pub objective: Option<String>,
    /// When it was folded.
    pub folded_at: Option<i64>,
    /// When it was set.
    pub at: i64,
}

/// Asks whether the newest mark waits to be folded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HasActive {
    /// Which session.
    pub session: String,
}

/// The answer to [`HasActive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Active {
    /// True when it does.
    pub active: bool,
}

/// Stamps a mark as folded; again changes nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteFold {
    /// Which session.
    pub session: String,
    /// The mark.
    pub id: u64,
}

/// Pins a point with a label, or takes a label away.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PointName {
    /// Which session.
    pub session: String,
    /// The label.
    pub label: String,
    /// The point's address; left out: the label is removed, the point stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A label.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PointNamed {
    /// Which.
    pub label: String,
    /// The point; null when the label was removed.
    pub id: Option<String>,
}

/// Why a named point is set (003-06).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NameKind {
    /// Somebody asked for it: `label` counts.
    #[default]
    Manual,
    /// A turn was closed.
    AutoTurn,
    /// A turn failed.
    AutoError,
}

/// Names the end of the session's last completed turn, in the index and in `.dsh/memory/checkpoints.md` (003-01).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameSet {
    /// Which session.
    pub session: String,
    /// The label; for automatic kinds left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why.
    #[serde(default)]
    pub kind: NameKind,
    /// Lines that the file keeps; 200 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A named point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedPoint {
    /// Its label.
    pub label: String,
    /// The session's id, without its harness.
    pub session: String,
    /// Position of the `turn/end` after which the conversation is cut.
    pub seq: u64,
    /// When it was set, as its line has it.
    pub time: String,
    /// A person's words.
    pub note: Option<String>,
    /// Set by the end of a turn.
    pub automatic: bool,
}

/// Lists named points of the workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameList {
    /// A session of the workspace.
    pub session: String,
}

/// Named points, oldest first: the lines of the file, with what only the index has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedPoints {
    /// All of them.
    pub points: Vec<NamedPoint>,
}

/// Finds the newest point of a label of this session, and proves that its position is still the end of a turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameFind {
    /// Which session.
    pub session: String,
    /// The label.
    pub label: String,
}

/// Forks the conversation at a named point; files stay (003-03).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NameRewind {
    /// Which session.
    pub session: String,
    /// The label.
    pub label: String,
    /// The child's id; left out: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
}

/// A conversation was forked at a named point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameRewound {
    /// The point.
    pub point: NamedPoint,
    /// The child.
    pub child: String,
}
