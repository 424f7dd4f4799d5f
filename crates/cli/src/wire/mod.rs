//! What `--json` prints (design § 9). Fields may be added, never removed or retyped.
//!
//! Every object has a `schema` field, `rwd.<verb>/1`, which [`crate::output`] puts in front. Times are UTC
//! milliseconds.

use schemars::JsonSchema;
use serde::Serialize;

mod care;
mod entries;
mod import;
mod init;
mod purge;
mod session;

pub(crate) use care::*;
pub(crate) use entries::*;
pub(crate) use import::*;
pub(crate) use init::*;
pub(crate) use purge::*;
pub(crate) use session::*;

/// An answer of a verb.
pub(crate) trait Answer: Serialize + JsonSchema {
    /// The verb, as in `rwd.<verb>/1`.
    const VERB: &'static str;
}

macro_rules! answers {
    ($($type:ident = $verb:literal),+ $(,)?) => {
        $(impl Answer for $type { const VERB: &'static str = $verb; })+

        /// The JSON schema of every answer, by name, as `rwd.save/1`.
        pub fn schemas() -> Vec<(String, serde_json::Value)> {
            vec![$(schema::<$type>()),+]
        }
    };
}

answers! {
    Saved = "save",
    Log = "log",
    Shown = "show",
    ShownPath = "show-path",
    Diff = "diff",
    Preview = "preview",
    Restored = "to",
    Recovered = "recover",
    Named = "name",
    Marked = "mark",
    Folded = "fold",
    Dropped = "drop",
    Status = "status",
    Du = "du",
    Gc = "gc",
    Purged = "purge",
    Doctor = "doctor",
    Verified = "verify",
    Initialised = "init",
    Uninstalled = "uninstall",
    Ran = "run",
    Imported = "import",
    Adopted = "adopt",
    ConfigList = "config",
    Demo = "demo",
    Completions = "completions",
    ShownBlob = "show-blob",
    SessionList = "session-list",
    SessionShown = "session-show",
    SessionBoundaries = "session-boundaries",
    SessionForked = "session-fork",
    SessionVerified = "session-verify",
    SessionRepaired = "session-repair",
    ErrorAnswer = "error",
}

/// The schemas of the sidecar's messages, as one document.
pub fn sidecar_schemas() -> serde_json::Value {
    harness_adapter::sidecar::schemas()
}

/// Verbs whose answer has the fields of another's.
pub(crate) const SAME_AS_TO: [&str; 3] = ["back", "undo", "redo"];

fn schema<T: Answer>() -> (String, serde_json::Value) {
    let name = format!("rwd.{}/1", T::VERB);
    let mut schema = schemars::generate::SchemaSettings::default()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    let names: Vec<String> = if T::VERB == "to" {
        std::iter::once("to").chain(SAME_AS_TO).map(|verb| format!("rwd.{verb}/1")).collect()
    } else {
        vec![name.clone()]
    };
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), name.clone().into());
        if let Some(properties) = object.get_mut("properties").and_then(|p| p.as_object_mut()) {
            properties.insert("schema".into(), serde_json::json!({ "type": "string", "enum": names }));
        }
        if let Some(required) = object.get_mut("required").and_then(|r| r.as_array_mut()) {
            required.insert(0, "schema".into());
        }
    }
    (name, schema)
}

/// `rwd save`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Saved {
    /// The point that holds the present state; for an interrupt the newest one, empty where there is none.
    pub(crate) id: String,
    pub(crate) tree: String,
    /// False when an existing point holds this state, and for an interrupt.
    pub(crate) created: bool,
    /// Paths that changed since the record before; 0 when no point was made.
    pub(crate) changed: u64,
    pub(crate) skipped: Vec<ReasonEntry>,
    pub(crate) new_bytes: u64,
    /// `quiet`; `live` when something may have changed during the walk; `watched` when a watcher stood for the walk, so
    /// that nothing is proven absent.
    pub(crate) consistency: &'static str,
    pub(crate) ms: u64,
    /// The workspace's root.
    pub(crate) root: PathEntry,
    /// True when this call registered the workspace.
    pub(crate) registered: bool,
    pub(crate) session: String,
    pub(crate) turn: Option<u32>,
    pub(crate) warnings: Vec<String>,
    /// The operation that `rwd recover` would settle.
    pub(crate) unfinished: Option<String>,
}

/// A point of `rwd log`.
#[derive(Serialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PointEntry {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) turn: Option<u32>,
    pub(crate) step: Option<u32>,
    pub(crate) kind: &'static str,
    pub(crate) tree: Option<String>,
    pub(crate) trigger: Option<String>,
    pub(crate) at: i64,
    pub(crate) changed: u64,
    pub(crate) new_bytes: u64,
    pub(crate) note: Option<String>,
    pub(crate) names: Vec<String>,
    pub(crate) restorable: bool,
    /// Last event that a conversation cut before this point's turn shares.
    pub(crate) cut_before: Option<u64>,
    /// The same for a cut after it.
    pub(crate) cut_after: Option<u64>,
    /// Why it cannot be restored.
    pub(crate) damaged: Option<String>,
    /// For a guard: its operation.
    pub(crate) operation: Option<String>,
}

/// A capture that did not happen.
#[derive(Serialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GapEntry {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) turn: Option<u32>,
    /// The kind of point that is missing.
    pub(crate) kind: Option<&'static str>,
    pub(crate) reason: String,
    pub(crate) at: i64,
}

/// An operation of `rwd log --ops`.
#[derive(Serialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperationEntry {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// `open`, `done`, `partial` or `rolled-back`.
    pub(crate) state: String,
    pub(crate) session: String,
    pub(crate) target: Option<String>,
    pub(crate) guard: Option<String>,
    pub(crate) reverses: Option<String>,
    pub(crate) reversed_by: Option<String>,
    pub(crate) at: i64,
    pub(crate) wrote: u64,
    pub(crate) child_session_id: Option<String>,
    pub(crate) summary: String,
    /// True once it can no longer be undone.
    pub(crate) expired: bool,
}

/// `rwd log`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    /// Oldest first.
    pub(crate) points: Vec<PointEntry>,
    pub(crate) gaps: Vec<GapEntry>,
    /// Since when nothing was captured, after a gap.
    pub(crate) unprotected_since: Option<i64>,
    pub(crate) unprotected_reason: Option<String>,
    /// With `--ops`; oldest first.
    pub(crate) operations: Vec<OperationEntry>,
    /// The operation that `rwd recover` would settle.
    pub(crate) unfinished: Option<String>,
}

/// `rwd show T`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    pub(crate) point: PointEntry,
    pub(crate) consistency: &'static str,
    /// Files, links and FIFOs it holds.
    pub(crate) files: u64,
    pub(crate) skipped: Vec<ReasonEntry>,
    /// The branch that was checked out.
    pub(crate) branch: Option<String>,
    /// The commit that was checked out.
    pub(crate) commit: Option<String>,
    /// Against the record before.
    pub(crate) changes: Vec<ChangeEntry>,
    pub(crate) notes: Vec<String>,
}

/// `rwd show T PATH --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownPath {
    pub(crate) point: String,
    pub(crate) path: PathEntry,
    /// `file`, `link`, `fifo` or `dir`.
    pub(crate) kind: &'static str,
    /// Permission bits, octal.
    pub(crate) mode: Option<String>,
    /// The content of a file or the text of a link, in base64.
    pub(crate) content: Option<String>,
    /// What a directory holds.
    pub(crate) entries: Vec<PathEntry>,
}

/// `rwd show BLOB --json`: bytes of somebody else that an operation stored.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownBlob {
    pub(crate) blob: String,
    /// Where they were.
    pub(crate) path: PathEntry,
    /// The operation that stored them.
    pub(crate) op: String,
    /// In base64.
    pub(crate) content: String,
}

/// `rwd diff`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diff {
    /// The point on the left.
    pub(crate) from: String,
    /// The point on the right; null for now.
    pub(crate) to: Option<String>,
    pub(crate) changes: Vec<ChangeEntry>,
    /// With `-p`.
    pub(crate) patch: Option<String>,
    pub(crate) notes: Vec<String>,
    /// The operation that `rwd recover` would settle.
    pub(crate) unfinished: Option<String>,
}

/// Where a conversation is cut.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CutEntry {
    /// Last event that the child shares; null for an empty child.
    pub(crate) seq: Option<u64>,
    pub(crate) rule: String,
    pub(crate) session: String,
}

/// `rwd preview`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Preview {
    /// For `--plan`.
    pub(crate) plan: String,
    /// The point.
    pub(crate) target: Option<String>,
    /// The operation that would be taken back.
    pub(crate) reverses: Option<String>,
    pub(crate) session: String,
    pub(crate) overwrite: Vec<PathEntry>,
    pub(crate) recreate: Vec<PathEntry>,
    pub(crate) mode: Vec<PathEntry>,
    pub(crate) remove: Vec<PathEntry>,
    pub(crate) unchanged: u64,
    pub(crate) kept_new: Vec<PathEntry>,
    pub(crate) hand_made: Vec<PathEntry>,
    pub(crate) uncaptured: Vec<PathEntry>,
    pub(crate) foreign: Vec<PathEntry>,
    pub(crate) blocked: Vec<ReasonEntry>,
    pub(crate) uncovered: Vec<ReasonEntry>,
    /// Hand-made and foreign paths that wait for a decision.
    pub(crate) undecided: Vec<PathEntry>,
    pub(crate) cut: Option<CutEntry>,
    /// `files`, `chat` or `both`.
    pub(crate) scope: &'static str,
    pub(crate) notes: Vec<String>,
    /// The command that does it; left out where there is nothing to do or where it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) apply: Option<String>,
    /// What to decide first, where it would be refused.
    pub(crate) decisions: Vec<String>,
    /// The operation that `rwd recover` would settle first.
    pub(crate) unfinished: Option<String>,
}

/// `rwd to`, `back`, `undo`, `redo`.
#[derive(Serialize, JsonSchema, Debug, Default)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(crate) struct Restored {
    /// The operation; null when there was nothing to do.
    pub(crate) op: Option<String>,
    /// `restored`, `partial` or `nothing`.
    pub(crate) status: &'static str,
    /// The point that was restored.
    pub(crate) target: Option<String>,
    /// The operation that this one took back.
    pub(crate) reverses: Option<String>,
    pub(crate) restored: Vec<PathEntry>,
    pub(crate) removed: Vec<PathEntry>,
    pub(crate) unchanged: u64,
    pub(crate) kept_new: Vec<PathEntry>,
    pub(crate) hand_made: Vec<PathEntry>,
    pub(crate) foreign: Vec<PathEntry>,
    pub(crate) uncaptured: Vec<PathEntry>,
    pub(crate) blocked: Vec<ReasonEntry>,
    pub(crate) uncovered: Vec<ReasonEntry>,
    /// The record of the state before.
    pub(crate) guard: Option<String>,
    pub(crate) child_session_id: Option<String>,
    /// The log of that session, where it is one file.
    pub(crate) child_path: Option<PathEntry>,
    /// True when only the conversation was cut.
    pub(crate) context_only: bool,
    /// Where the conversation was cut; null when only files went back.
    pub(crate) cut: Option<CutEntry>,
    /// The command that takes it back.
    pub(crate) undo: Option<String>,
    /// The command that goes on in the child; null where its harness has none.
    #[serde(rename = "continue")]
    pub(crate) go_on: Option<String>,
    /// Content of others that was stored because it could not stay.
    pub(crate) stored: Vec<StoredEntry>,
    pub(crate) notes: Vec<String>,
}

/// `rwd recover`.
#[derive(Serialize, JsonSchema, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recovered {
    pub(crate) op: Option<String>,
    /// `restored`, `partial` or `nothing`.
    pub(crate) status: &'static str,
    /// `finish` or `back`.
    pub(crate) way: &'static str,
    pub(crate) restored: Vec<PathEntry>,
    pub(crate) removed: Vec<PathEntry>,
    pub(crate) guard: Option<String>,
    pub(crate) child_session_id: Option<String>,
    /// The command that goes on in the child; null where its harness has none.
    #[serde(rename = "continue")]
    pub(crate) go_on: Option<String>,
    pub(crate) stored: Vec<StoredEntry>,
    pub(crate) notes: Vec<String>,
}

/// `rwd name`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    pub(crate) label: String,
    /// The point; null when the name was removed.
    pub(crate) id: Option<String>,
    pub(crate) deleted: bool,
}

/// `rwd mark`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Marked {
    /// Number within the workspace; never given twice.
    pub(crate) id: u64,
    /// Position of the first event after the mark.
    pub(crate) log_length: u64,
    pub(crate) session: String,
    /// The open turn; null when the session is idle.
    pub(crate) turn: Option<u32>,
    pub(crate) objective: Option<String>,
}

/// `rwd fold`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of contract 001-09")]
pub(crate) struct Folded {
    pub(crate) mark_id: u64,
    /// Messages that were replaced.
    pub(crate) folded_nodes: u64,
    /// Position of the first.
    pub(crate) start: u64,
    /// Position of the last.
    pub(crate) end: u64,
    /// Characters they had.
    pub(crate) folded_chars: u64,
    /// Characters of the report.
    pub(crate) report_chars: u64,
    /// The session that was folded; its log is as it was.
    pub(crate) session: String,
    /// The new session, with the report in it.
    pub(crate) child_session_id: String,
    /// Its log.
    pub(crate) child_path: Option<PathEntry>,
    /// The command that goes on in it; null where its harness has none.
    #[serde(rename = "continue")]
    pub(crate) go_on: Option<String>,
    /// True when an earlier call had made the child and this one only closed the mark.
    pub(crate) recovered: bool,
}

/// `rwd drop`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Dropped {
    pub(crate) dropped: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// One setting.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingEntry {
    pub(crate) key: &'static str,
    pub(crate) value: serde_json::Value,
    /// `default`, a file, or an environment variable.
    pub(crate) origin: String,
    /// What it means.
    pub(crate) about: &'static str,
}

/// `rwd config`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigList {
    pub(crate) settings: Vec<SettingEntry>,
    pub(crate) warnings: Vec<String>,
}

/// `rwd demo`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Demo {
    /// Comparisons of the whole tree, byte for byte.
    pub(crate) comparisons: u64,
    /// Files that differed.
    pub(crate) differing: Vec<PathEntry>,
    pub(crate) passed: bool,
    /// Where it is, with `--keep`.
    pub(crate) dir: Option<PathEntry>,
}

/// `rwd completions SHELL`.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Completions {
    pub(crate) shell: String,
    /// For the shell to read.
    pub(crate) script: String,
}

/// An error.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorAnswer {
    pub(crate) error: ErrorBody,
}

/// What went wrong.
#[derive(Serialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorBody {
    /// Stable.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    pub(crate) paths: Vec<ReasonEntry>,
    /// The operation it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) op: Option<String>,
    /// The record of the state before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) guard: Option<String>,
    /// The plan that waits for confirmation or for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) plan: Option<String>,
    /// What it was caused by, outermost first.
    pub(crate) causes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use checkpoint_core::RelPath;

    use super::*;

    /// Design § 9: `pathBytes` iff the path is not UTF-8.
    #[test]
    fn paths_that_are_not_utf8_carry_their_bytes() {
        let odd = RelPath::new(b"a/\xff".to_vec()).unwrap();
        let plain = RelPath::new("b").unwrap();
        let json = serde_json::to_value(paths(&[odd, plain])).unwrap();
        assert_eq!(json, serde_json::json!([{ "path": "a/\u{fffd}", "pathBytes": "YS//" }, { "path": "b" }]));
    }

    #[test]
    fn every_schema_names_its_verb() {
        for (name, schema) in schemas() {
            let names = &schema["properties"]["schema"]["enum"];
            assert!(names.as_array().unwrap().contains(&serde_json::json!(name)), "{name}: {names}");
            assert_eq!(schema["required"][0], "schema", "{name}");
        }
    }
}
