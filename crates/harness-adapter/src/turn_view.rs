//! The files that 000 keeps for a session, as a view of ours: one record a closed turn, and a git directory that finds every
//! tree (contract 000-01, 000-04; design § 4).
//!
//! ```text
//! <dataDir>/checkpoint/<session>/index.json   [{"turn","treeHash","changed","capturedAt"}, …]
//! <dataDir>/checkpoint/<session>/git/         objects/info/alternates names the workspace's store
//! ```
//!
//! Derived: written after the record is durable, by renaming, and never read back. Losing it loses nothing. A file `rwd`
//! says that the directory is ours: without it the directory belongs to the plugin that had this place before, and
//! nothing in it is touched.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use checkpoint_core::{
    Engine, EngineError, ErrorKind, JsonText, PathState, Point, PointKind, PointQuery, SessionKey, Snapshot, Turn,
};
use durable_fs::{Access, Durability};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::sessions::dsh::encode_segment;

/// One closed turn. The fields, their names and their order are 000's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRecord {
    /// Its number.
    pub turn: u32,
    /// The tree of the workspace at its end, as `git write-tree` would name it; `None` where nothing was captured.
    pub tree_hash: Option<String>,
    /// Paths that were added, changed or removed in it, sorted. Bytes that are no text read as U+FFFD.
    pub changed: Vec<String>,
    /// When that was recorded: UTC milliseconds.
    pub captured_at: i64,
}

/// Why a view could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The points cannot be read.
    #[error("the turns of the session cannot be read")]
    Engine(#[from] EngineError),
    /// The view cannot be written.
    #[error("the view cannot be written")]
    Write(#[from] durable_fs::Error),
    /// Something else is in its place.
    #[error("{} holds something that is not rwd's; it stays as it is", .0.display())]
    Foreign(PathBuf),
}

/// A session's view, with the records that it was last given: a closed turn does not change.
#[derive(Debug)]
pub struct TurnView {
    dir: PathBuf,
    known: Mutex<Vec<TurnRecord>>,
    failed: Mutex<Option<String>>,
}

impl TurnView {
    /// The view in `dir`, which [`view_dir`] named. Nothing is read or written yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, known: Mutex::default(), failed: Mutex::default() }
    }

    /// True for an error that is not the one of the last time: each is worth telling once.
    pub fn is_news(&self, error: &ViewError) -> bool {
        let told = error.to_string();
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.replace(told.clone()) != Some(told)
    }

    /// Looks at the turns that ended since the last time, and writes the view.
    ///
    /// # Errors
    /// [`ViewError::Foreign`] where the directory is not ours; nothing was written then.
    pub fn update(&self, engine: &Engine, session: &SessionKey, objects: &Path) -> Result<(), ViewError> {
        if !is_ours(&self.dir)? {
            return Err(ViewError::Foreign(self.dir.clone()));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = records_after(engine, session, &known)?;
        write_view(&self.dir, &known, objects)
    }
}

/// The file that makes a directory a view of ours.
const OURS: &str = "rwd";

/// True where the directory is a view of ours, or nothing is there.
fn is_ours(dir: &Path) -> Result<bool, ViewError> {
    let failed = |error| ViewError::Write(durable_fs::Error::new("read", dir, error));
    match std::fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none() || dir.join(OURS).try_exists().map_err(failed)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(failed(error)),
    }
}

/// The closed turns of a session, in order: its own, not those that it shares with its parent.
pub fn turn_records(engine: &Engine, session: &SessionKey) -> Result<Vec<TurnRecord>, ViewError> {
    records_after(engine, session, &[])
}

/// The same, where those before the last of `known` need no second look.
fn records_after(engine: &Engine, session: &SessionKey, known: &[TurnRecord]) -> Result<Vec<TurnRecord>, ViewError> {
    let query = PointQuery { sessions: vec![session.clone()], ..PointQuery::default() };
    let points = engine.index().points(&query).map_err(EngineError::from)?;
    let mut turns: Vec<Turn> = points.iter().filter_map(|point| point.turn).collect();
    turns.sort();
    turns.dedup();
    let mut records = Vec::new();
    let mut last: Option<Snapshot> = None;
    // The last one may have been recorded again; one that came in before the others puts all in doubt.
    if let Some((_, before @ [.., latest])) = known.split_last()
        && turns.iter().zip(before).all(|(turn, record)| turn.0 == record.turn)
        && turns.len() > before.len()
    {
        last = found(engine, session, &format!("t{}", latest.turn))?.and_then(|point| point.snapshot);
        records.extend_from_slice(before);
        turns.drain(..before.len());
    }
    for turn in turns {
        let Some(end) = found(engine, session, &format!("t{turn}"))? else { continue };
        let begin = found(engine, session, &format!("t{turn}^"))?.and_then(|point| point.snapshot);
        let changed = match end.snapshot {
            Some(after) => changed(engine, begin.or(last), &after)?,
            None => Vec::new(),
        };
        // A turn's end that was not captured is stood in for by the next record.
        let at = own_end(&points, turn).unwrap_or(&end).at;
        records.push(TurnRecord {
            turn: turn.0,
            tree_hash: end.snapshot.map(|snapshot| snapshot.tree.to_string()),
            changed,
            captured_at: at.0,
        });
        last = end.snapshot.or(last);
    }
    Ok(records)
}

fn own_end(points: &[Point], turn: Turn) -> Option<&Point> {
    points.iter().rev().find(|point| point.turn == Some(turn) && point.kind == PointKind::TurnEnd)
}

/// The point at an address; `None` while the turn is open.
fn found(engine: &Engine, session: &SessionKey, address: &str) -> Result<Option<Point>, EngineError> {
    match engine.find(Some(session), address) {
        Ok(found) => Ok(found.point),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Decision) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names of files that differ; with nothing before, all of them (000-07).
fn changed(engine: &Engine, before: Option<Snapshot>, after: &Snapshot) -> Result<Vec<String>, EngineError> {
    let mut names = Vec::new();
    let snapshots = engine.snapshots();
    match before {
        Some(before) => snapshots.diff(&before, after, &mut |change| {
            let dir = |state: &PathState| state.is_dir() || state.is_absent();
            if !(dir(&change.before) && dir(&change.after)) {
                names.push(change.path.to_lossy());
            }
            ControlFlow::Continue(())
        })?,
        None => snapshots.list(after, None, &mut |path, state| {
            if !state.is_dir() {
                names.push(path.to_lossy());
            }
            ControlFlow::Continue(())
        })?,
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The directory of a session's view. `data_dir` is 000's setting of that name; one that ends in `checkpoint` already is
/// not asked to do so twice (K-01).
///
/// The name is the host's own for the session, with a piece of a hash where two ids could share a name: where the file
/// system may fold case, or would cut.
pub fn view_dir(data_dir: &Path, session_id: &str) -> PathBuf {
    const LONGEST: usize = 200;
    let base = if data_dir.file_name().is_some_and(|name| name == "checkpoint") {
        data_dir.to_owned()
    } else {
        data_dir.join("checkpoint")
    };
    let mut name = encode_segment(&JsonText::from(session_id)).unwrap_or_else(|| "_".to_owned());
    if name.len() > LONGEST || session_id.is_empty() || session_id.chars().any(|c| c.is_ascii_uppercase()) {
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(session_id.as_bytes()));
        name.truncate(LONGEST);
        name = format!("{name}-{}", digest.get(..16).unwrap_or_default());
    }
    base.join(name)
}

/// Writes a view: the records, and once the git directory. `objects`: the object directory of the workspace's store,
/// absolute.
fn write_view(dir: &Path, records: &[TurnRecord], objects: &Path) -> Result<(), ViewError> {
    let derived = |path: PathBuf, bytes: &[u8]| durable_fs::replace(&path, bytes, Access::Private, Durability::Derived);
    durable_fs::create_private_dirs(dir)?;
    derived(dir.join(OURS), b"written by rwd, which overwrites it\n")?;
    let mut index = serde_json::to_vec_pretty(records)
        .map_err(|error| durable_fs::Error::new("write", dir.join("index.json"), std::io::Error::from(error)))?;
    index.push(b'\n');
    derived(dir.join("index.json"), &index)?;
    let git = dir.join("git");
    for part in ["objects/info", "refs"] {
        durable_fs::create_private_dirs(&git.join(part))?;
    }
    // No branch is there, nor ever will be: trees are found by their ids.
    derived(git.join("HEAD"), b"ref: refs/heads/none\n")?;
    derived(git.join("config"), b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
    derived(git.join("objects/info/alternates"), &alternates(objects))?;
    Ok(())
}

/// A line of `objects/info/alternates`, quoted where git would read it otherwise.
fn alternates(objects: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let path = objects.as_os_str().as_bytes();
    let plain = !path.starts_with(b"\"") && !path.starts_with(b"#") && !path.contains(&b'\n');
    let mut line = Vec::with_capacity(path.len() + 1);
    if plain {
        line.extend_from_slice(path);
    } else {
        line.push(b'"');
        for &byte in path {
            match byte {
                b'"' | b'\\' => line.extend([b'\\', byte]),
                b'\n' => line.extend(*b"\\n"),
                other => line.push(other),
            }
        }
        line.push(b'"');
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 000-05, K-01: one `checkpoint`, never two.
    #[test]
    fn k01_the_directory_has_one_checkpoint() {
        let dir = |data: &str, id: &str| view_dir(Path::new(data), id).to_str().unwrap().to_owned();
        assert_eq!(dir("/h/.dsh", "abc"), "/h/.dsh/checkpoint/abc");
        assert_eq!(dir("/h/.dsh/checkpoint", "abc"), "/h/.dsh/checkpoint/abc");
        assert_eq!(dir("/h", "a/b"), "/h/checkpoint/a~002Fb");
        assert_eq!(dir("/h", ".."), "/h/checkpoint/~002E~002E");
    }

    #[test]
    fn ids_that_a_file_system_could_take_for_each_other_get_names_of_their_own() {
        let name = |id: &str| view_dir(Path::new("/h"), id).file_name().unwrap().to_str().unwrap().to_owned();
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        for (a, b) in [("Abc", "abc"), ("ABC", "Abc"), (&*long, &*longer)] {
            assert_ne!(name(a).to_lowercase(), name(b).to_lowercase());
            assert!(name(a).len() < 255 && name(b).len() < 255);
        }
        assert!(name("").len() > 1);
    }

    /// 000-04: an array of exactly these, in this order.
    #[test]
    fn c000_04_records_have_four_fields() {
        let record = TurnRecord { turn: 1, tree_hash: None, changed: vec!["a".into()], captured_at: 5 };
        let text = serde_json::to_string(&[record]).unwrap();
        assert_eq!(text, r#"[{"turn":1,"treeHash":null,"changed":["a"],"capturedAt":5}]"#);
    }

    #[test]
    fn odd_paths_are_quoted_for_git() {
        let line = |path: &str| String::from_utf8(alternates(Path::new(path))).unwrap();
        assert_eq!(line("/a b/objects"), "/a b/objects\n");
        assert_eq!(line("/a\nb"), "\"/a\\nb\"\n");
    }
}
