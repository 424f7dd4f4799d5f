//! Answers about a workspace and its store: how they stand, what they use, what was tidied or found damaged.

use schemars::JsonSchema;
use serde::Serialize;

use super::{PathEntry, PointEntry};

/// A session of `rwd status`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionEntry {
    pub(crate) session: String,
    pub(crate) turn: Option<u32>,
    /// True while a turn is open.
    pub(crate) open: bool,
    pub(crate) interrupted: bool,
    pub(crate) seen: i64,
    pub(crate) parent: Option<String>,
}

/// Why so many paths are left out.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkipCount {
    pub(crate) reason: &'static str,
    pub(crate) paths: u64,
}

/// A file that settings were read from.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigSource {
    pub(crate) origin: String,
    pub(crate) keys: Vec<String>,
}

/// `rwd status`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) workspace: String,
    pub(crate) root: PathEntry,
    pub(crate) data_dir: PathEntry,
    /// `sqlite` or `json`.
    pub(crate) index: String,
    /// True where the root lies in a git worktree.
    pub(crate) git: bool,
    pub(crate) incarnation: u32,
    /// All of them: `listed`, `guards`, and those that are on no list.
    pub(crate) points: u64,
    /// Points that `rwd log` lists.
    pub(crate) listed: u64,
    /// States before an operation, for its undo.
    pub(crate) guards: u64,
    pub(crate) newest: Option<PointEntry>,
    pub(crate) sessions: Vec<SessionEntry>,
    /// Of the newest point.
    pub(crate) skipped: Vec<SkipCount>,
    pub(crate) gaps: u64,
    pub(crate) unprotected_since: Option<i64>,
    pub(crate) unprotected_reason: Option<String>,
    pub(crate) unfinished: Option<String>,
    pub(crate) config: Vec<ConfigSource>,
    /// Other registered workspaces whose roots overlap this one.
    pub(crate) overlapping: Vec<PathEntry>,
    /// What an agent's process may do here: `ask`, `allow` or `never`.
    pub(crate) agent_may_restore: &'static str,
    pub(crate) warnings: Vec<String>,
}

/// Points of one kind.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KindUse {
    pub(crate) kind: &'static str,
    pub(crate) points: u64,
    /// Bytes their captures added.
    pub(crate) new_bytes: u64,
}

/// `rwd du`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Du {
    /// As the disk counts them.
    pub(crate) own_bytes: u64,
    /// Hard links to files of the user's repository.
    pub(crate) shared_bytes: u64,
    pub(crate) points: u64,
    pub(crate) by_kind: Vec<KindUse>,
}

/// `rwd gc`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gc {
    pub(crate) dry_run: bool,
    /// Points that retention removed.
    pub(crate) dropped_points: Vec<String>,
    pub(crate) kept_objects: u64,
    pub(crate) dropped_objects: u64,
    pub(crate) freed_bytes: u64,
    /// Left-over temporaries removed.
    pub(crate) swept: u64,
    /// The operation that `rwd recover` would settle; what it needs is kept.
    pub(crate) unfinished: Option<String>,
}

/// One check of `rwd doctor`.
#[derive(Serialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(crate) struct Check {
    pub(crate) check: &'static str,
    /// `ok`, `warning`, `failed` or `fixed`.
    pub(crate) status: &'static str,
    pub(crate) detail: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// `rwd doctor`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Doctor {
    pub(crate) ok: bool,
    pub(crate) version: &'static str,
    pub(crate) checks: Vec<Check>,
}

/// A point that cannot be restored.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DamageEntry {
    pub(crate) id: String,
    pub(crate) reason: String,
}

/// `rwd verify`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verified {
    /// Points looked at.
    pub(crate) checkpoints: u64,
    pub(crate) damaged: Vec<DamageEntry>,
    /// Files of the store that changed, each with what about it, whether a point is hit or not. Looked for with
    /// `--rehash`.
    pub(crate) store: Vec<String>,
    pub(crate) rehashed: bool,
}

/// `rwd adopt`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Adopted {
    pub(crate) workspace: String,
    pub(crate) root: PathEntry,
    /// Where it was before.
    pub(crate) from: Option<PathEntry>,
    pub(crate) incarnation: u32,
    /// False when there was nothing to adopt.
    pub(crate) changed: bool,
}
