//! `dsh-checkpoint`: one git object database and one `index.json` for each session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkpoint_core::{SessionKey, Timestamp, Turn};
use serde_json::Value;

use super::{Problem, json, millis, names, whole};
use crate::sessions::dsh;

/// What the plugin kept of one session.
#[derive(Clone, Debug)]
pub struct TurnStore {
    /// The session.
    pub session: SessionKey,
    /// Its object database.
    pub objects: PathBuf,
    /// Turns, oldest first.
    pub turns: Vec<TurnState>,
    /// Records that make no sense.
    pub problems: Vec<Problem>,
}

/// The state at the end of a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnState {
    /// Its number.
    pub turn: Turn,
    /// The tree, as it was written; `None` where files were not kept (000-10).
    pub tree: Option<String>,
    /// Paths that the turn changed.
    pub changed: u64,
    /// When.
    pub at: Timestamp,
}

/// Every session below `dir`: the data directory, or the directory `checkpoint` in it, once or twice (K-01).
///
/// `is_ours`: true for an object directory of rwd, whose view for programs of the older plugin lies in the same place and
/// is passed over.
///
/// # Errors
/// When a directory that is there cannot be listed.
pub fn turn_stores(dir: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<(Vec<TurnStore>, Vec<Problem>), Problem> {
    let (mut stores, mut problems) = (Vec::new(), Vec::new());
    let places = [dir.to_owned(), dir.join("checkpoint"), dir.join("checkpoint/checkpoint")];
    for place in places {
        for name in names(&place)? {
            let session = place.join(&name);
            if session.join("index.json").symlink_metadata().is_err() && !session.join("git/objects").is_dir() {
                continue;
            }
            if borrows(&session.join("git/objects")).iter().any(|from| is_ours(from)) {
                continue;
            }
            match SessionKey::new(dsh::HARNESS, &name) {
                Ok(key) => stores.push(read(key, &session)),
                Err(error) => problems.push(Problem { what: session.display().to_string(), why: error.to_string() }),
            }
        }
    }
    Ok((stores, problems))
}

/// The object directories that one borrows from.
fn borrows(objects: &Path) -> Vec<PathBuf> {
    let mut text = Vec::new();
    if let Ok(file) = durable_fs::open_regular(&objects.join("info/alternates")) {
        // What cannot be read borrows nothing that could be ours: ours can be read.
        drop(std::io::Read::read_to_end(&mut std::io::Read::take(file, 64 << 10), &mut text));
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().map(|line| objects.join(line.trim_matches('"'))).collect()
}

fn read(session: SessionKey, dir: &Path) -> TurnStore {
    let path = dir.join("index.json");
    let mut store = TurnStore { session, objects: dir.join("git/objects"), turns: Vec::new(), problems: Vec::new() };
    let records = match json(&path) {
        Ok(Some(Value::Array(records))) => records,
        Ok(None) => Vec::new(),
        Ok(Some(_)) => {
            store.problems.push(Problem { what: path.display().to_string(), why: "it is no list".to_owned() });
            Vec::new()
        }
        Err(why) => {
            store.problems.push(Problem { what: path.display().to_string(), why });
            Vec::new()
        }
    };
    // One record a turn: a later one replaces it (000-04).
    let mut turns = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        match state(record) {
            Ok(state) => drop(turns.insert(state.turn, state)),
            Err(why) => {
                store.problems.push(Problem { what: format!("{}, record {}", path.display(), at + 1), why });
            }
        }
    }
    store.turns = turns.into_values().collect();
    store
}

fn state(record: &Value) -> Result<TurnState, String> {
    let turn = whole(&record["turn"]).and_then(|turn| u32::try_from(turn).ok()).ok_or("it has no turn")?;
    let tree = match &record["treeHash"] {
        Value::Null => None,
        Value::String(tree) => Some(tree.clone()),
        _ => return Err(format!("turn {turn} has no tree")),
    };
    let at = millis(&record["capturedAt"]).ok_or_else(|| format!("turn {turn} has no time"))?;
    let changed = record["changed"].as_array().map_or(0, |changed| changed.len() as u64);
    Ok(TurnState { turn: Turn(turn), tree, changed, at: Timestamp(at) })
}
