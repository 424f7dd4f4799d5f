//! Stores of the older plugins of DeepSeek Harness, read and never written (contract 000-01 to 06, 001-01 to 06, 002-01
//! and 002-13 to 29).
//!
//! What is read here was written by other programs and may be damaged or made to mislead: every id is checked before it
//! becomes a path, every size before it becomes memory, and a record that makes no sense is named and passed over.

mod checkpoint;
mod copied;
mod media;

use std::io::Read;
use std::path::Path;

use checkpoint_core::SnapshotError;

pub use checkpoint::{TurnState, TurnStore, turn_stores};
pub use copied::{CopiedState, copied_ids, copied_state, is_uuid};
pub use media::{Marks, OlderMark, Provider, RewindRecord, marks, rewind_records, workspace_dir};

/// A record that is not taken over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Which: a file, or how the record calls itself.
    pub what: String,
    /// Why.
    pub why: String,
}

/// No index and no medium of any of these stores is larger.
const LARGEST: u64 = 256 << 20;

/// Reads a JSON file; `None` when there is none.
fn json(path: &Path) -> Result<Option<serde_json::Value>, String> {
    let file = match durable_fs::open_regular(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(format!("it cannot be opened: {error}")),
    };
    let mut text = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut text).map_err(|error| format!("it cannot be read: {error}"))?;
    if text.len() as u64 > LARGEST {
        return Err("it is larger than any such file".to_owned());
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| format!("it is no JSON: {error}"))
}

/// The names in a directory, sorted; none when there is no such directory.
fn names(dir: &Path) -> Result<Vec<String>, Problem> {
    let problem = |error: std::io::Error| Problem { what: dir.display().to_string(), why: error.to_string() };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(problem(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(problem)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// A whole number that is not negative, whether it was written as one or as `3.0`.
fn whole(value: &serde_json::Value) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole);
    }
    let float = value.as_f64()?;
    // Up to here every whole number has a double of its own.
    let fits = float.is_finite() && float >= 0.0 && float.fract() == 0.0 && float <= 9_007_199_254_740_992.0;
    fits.then(|| format!("{float:.0}").parse().ok()).flatten()
}

/// Milliseconds since 1970.
fn millis(value: &serde_json::Value) -> Option<i64> {
    match value.as_f64() {
        Some(float) if value.as_u64().is_none() && float.is_finite() && float >= 0.0 => {
            whole(&serde_json::Value::from(float.trunc())).and_then(|ms| i64::try_from(ms).ok())
        }
        _ => whole(value).and_then(|ms| i64::try_from(ms).ok()),
    }
}

fn refused(what: &'static str, why: impl Into<String>) -> SnapshotError {
    SnapshotError::Other { what, source: why.into().into() }
}
