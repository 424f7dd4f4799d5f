//! Storage media of the host: marks of `tool-checkpoint`, records of `dsh-checkpoint-rewind`.
//!
//! A medium is a JSON file of the host whose envelope differs between versions, so records are known by their fields,
//! wherever in the file they lie.

use std::path::{Path, PathBuf};

use checkpoint_core::{Seq, SessionKey, Step, Timestamp, Turn};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Problem, json, millis, names, whole};
use crate::sessions::dsh;

/// A mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OlderMark {
    /// Its number.
    pub id: u64,
    /// Whose.
    pub session: SessionKey,
    /// Length of the log when it was set.
    pub log_length: u64,
    /// The open turn.
    pub turn: Option<Turn>,
    /// What the exploration is for.
    pub objective: Option<String>,
    /// When it was folded.
    pub folded: Option<Timestamp>,
    /// When it was set; zero where that is not recorded.
    pub at: Timestamp,
}

/// The marks of a medium, and those that make no sense.
pub type Marks = (Vec<OlderMark>, Vec<Problem>);

/// Who keeps the content of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provider {
    /// A commit in the user's repository.
    Git,
    /// A directory of copies.
    Copy,
}

/// A record of `dsh-checkpoint-rewind`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewindRecord {
    /// Its id, a UUID.
    pub id: String,
    /// Whose.
    pub session: SessionKey,
    /// The workspace.
    pub cwd: PathBuf,
    /// Where the log was.
    pub seq: Option<Seq>,
    /// When.
    pub at: Timestamp,
    /// Who keeps its content.
    pub provider: Provider,
    /// The tool that was about to run.
    pub trigger: Option<String>,
    /// The turn.
    pub turn: Option<Turn>,
    /// The step.
    pub step: Option<Step>,
    /// How many files had changed.
    pub files: u64,
    /// What the provider calls it; not checked yet.
    pub reference: String,
    /// A person's words.
    pub note: Option<String>,
}

/// Records deeper than this in a medium are not looked for.
const DEEPEST: usize = 12;

/// Calls `visit` with every object of a document and the key that it, or an object above it, lies under last.
fn objects<'v>(
    value: &'v Value,
    key: Option<&'v str>,
    depth: usize,
    visit: &mut dyn FnMut(&'v Map<String, Value>, Option<&'v str>) -> bool,
) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Array(all) => all.iter().for_each(|value| objects(value, key, depth + 1, visit)),
        Value::Object(object) => {
            if visit(object, key) {
                return;
            }
            for (name, value) in object {
                objects(value, Some(name), depth + 1, visit);
            }
        }
        _ => {}
    }
}

fn text(object: &Map<String, Value>, name: &str) -> Option<String> {
    object.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn number(object: &Map<String, Value>, name: &str) -> Option<u64> {
    object.get(name).and_then(whole)
}

fn time(object: &Map<String, Value>, names: &[&str]) -> Option<Timestamp> {
    names.iter().find_map(|name| object.get(*name).and_then(millis)).map(Timestamp)
}

/// The marks in one medium, by number. `None`: there is no such file.
///
/// # Errors
/// When the file cannot be read.
pub fn marks(path: &Path) -> Result<Option<Marks>, Problem> {
    let problem = |why| Problem { what: path.display().to_string(), why };
    let Some(document) = json(path).map_err(problem)? else { return Ok(None) };
    let (mut marks, mut problems) = (Vec::new(), Vec::new());
    objects(&document, None, 0, &mut |object, key| {
        if !object.contains_key("logLength") || !object.contains_key("id") {
            return false;
        }
        match mark(object, key) {
            Ok(mark) => marks.push(mark),
            Err(why) => {
                let id = object.get("id").map(ToString::to_string).unwrap_or_default();
                problems.push(Problem { what: format!("mark {id} in {}", path.display()), why });
            }
        }
        true
    });
    marks.sort_by_key(|mark| mark.id);
    Ok(Some((marks, problems)))
}

fn mark(object: &Map<String, Value>, key: Option<&str>) -> Result<OlderMark, String> {
    let id = number(object, "id").filter(|id| *id > 0).ok_or("its number makes no sense")?;
    let log_length = number(object, "logLength").ok_or("its place in the log makes no sense")?;
    let session = text(object, "sessionId").or_else(|| key.map(str::to_owned)).ok_or("it names no session")?;
    let session = SessionKey::new(dsh::HARNESS, &session).map_err(|error| error.to_string())?;
    let turn = number(object, "turn").and_then(|turn| u32::try_from(turn).ok()).map(Turn);
    let at = time(object, &["at", "time", "createdAt", "markedAt"]).unwrap_or(Timestamp(0));
    let folded = match object.get("foldedAt") {
        None | Some(Value::Null) => None,
        // However the time was written, it was folded.
        Some(folded) => Some(millis(folded).map_or(at, Timestamp)),
    };
    let objective = text(object, "objective").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Ok(OlderMark { id, session, log_length, turn, objective, folded, at })
}

/// The records in every medium beside a directory of snapshots: `*.json` in it, in `storages/` below and beside it.
///
/// # Errors
/// When a directory that is there cannot be listed.
pub fn rewind_records(snapshots: &Path) -> Result<(Vec<RewindRecord>, Vec<Problem>), Problem> {
    let (mut records, mut problems): (Vec<RewindRecord>, Vec<Problem>) = (Vec::new(), Vec::new());
    let beside = snapshots.parent().map(|parent| parent.join("storages"));
    for dir in [Some(snapshots.to_owned()), Some(snapshots.join("storages")), beside].into_iter().flatten() {
        for name in names(&dir)?.into_iter().filter(|name| Path::new(name).extension().is_some_and(|ext| ext == "json"))
        {
            let path = dir.join(name);
            let document = match json(&path) {
                Ok(Some(document)) => document,
                Ok(None) => continue,
                Err(why) => {
                    problems.push(Problem { what: path.display().to_string(), why });
                    continue;
                }
            };
            objects(&document, None, 0, &mut |object, _| {
                let is_record = ["id", "sessionId", "provider", "ref"].iter().all(|name| object.contains_key(*name));
                if !is_record {
                    return false;
                }
                match record(object) {
                    // The same record may be in a medium and in its older version.
                    Ok(record) if records.iter().any(|known| known.id == record.id) => {}
                    Ok(record) => records.push(record),
                    Err(why) => {
                        let id = object.get("id").map(ToString::to_string).unwrap_or_default();
                        problems.push(Problem { what: format!("record {id} in {}", path.display()), why });
                    }
                }
                true
            });
        }
    }
    records.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok((records, problems))
}

fn record(object: &Map<String, Value>) -> Result<RewindRecord, String> {
    let id = text(object, "id").filter(|id| super::is_uuid(id)).ok_or("its id is no UUID")?.to_ascii_lowercase();
    let session = text(object, "sessionId").ok_or("it names no session")?;
    let session = SessionKey::new(dsh::HARNESS, &session).map_err(|error| error.to_string())?;
    let provider = match text(object, "provider").as_deref() {
        Some("git") => Provider::Git,
        Some("copy") => Provider::Copy,
        _ => return Err("its provider is neither git nor copy".to_owned()),
    };
    let cwd = text(object, "cwd").ok_or("it names no workspace")?;
    let at = time(object, &["time"]).ok_or("it has no time")?;
    let counted = |name| number(object, name).filter(|n| *n > 0).and_then(|n| u32::try_from(n).ok());
    Ok(RewindRecord {
        id,
        session,
        cwd: PathBuf::from(cwd),
        seq: number(object, "seq").map(Seq),
        at,
        provider,
        trigger: text(object, "triggerTool").filter(|tool| !tool.is_empty()),
        turn: counted("turn").map(Turn),
        step: counted("step").map(Step),
        files: number(object, "files").unwrap_or(0),
        reference: text(object, "ref").ok_or("it has no reference")?,
        note: text(object, "note").filter(|note| !note.trim().is_empty()),
    })
}

/// The name of the directory that holds a workspace's copies (002-21).
pub fn workspace_dir(workspace: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut name = data_encoding::HEXLOWER.encode(&Sha256::digest(workspace.as_os_str().as_bytes()));
    name.truncate(16);
    name
}
