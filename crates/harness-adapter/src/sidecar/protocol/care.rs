//! Dropping points, freeing space, looking after things.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Removes points. Exactly one of `ids`, `kinds` and `all`. The client has asked its user: `confirmed` must be true.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drop {
    /// Which session.
    pub session: String,
    /// These: ids, whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// The session's points of these kinds; guards that an undo needs stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// All of the session's points but guards.
    #[serde(default)]
    pub all: bool,
    /// With `kinds` or `all`: of every session of the workspace.
    #[serde(default)]
    pub all_sessions: bool,
    /// Somebody said yes.
    #[serde(default)]
    pub confirmed: bool,
}

/// Points are gone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// Their ids.
    pub dropped: Vec<String>,
    /// Points that were meant and stay, because an operation goes back there.
    pub kept: Vec<String>,
}

/// Applies retention and removes what nothing needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gc {
    /// A session of the workspace.
    pub session: String,
    /// Only counts.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was removed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    /// Points that retention removed.
    pub dropped_points: Vec<String>,
    /// Objects that are needed.
    pub kept_objects: u64,
    /// Objects that were not.
    pub dropped_objects: u64,
    /// Bytes they took.
    pub freed_bytes: u64,
}

/// Looks at what protection depends on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Doctor {
    /// A session of the workspace.
    pub session: String,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Examined {
    /// Nothing failed.
    pub ok: bool,
    /// One entry for each thing that was looked at.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What.
    pub name: String,
    /// `ok`, `warning` or `failed`.
    pub status: String,
    /// In words.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}
