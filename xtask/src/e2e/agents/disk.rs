//! Looking at files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::Result;

/// Every file below a directory with its bytes.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Lines of a log that a failure prints.
const TAIL: usize = 15;

/// Everything below `dir` that is no directory, in order; links to directories are not followed.
pub(super) fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { &mut left } else { &mut found }.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The one thing in a directory.
pub(super) fn only_entry(dir: &Path) -> Result<PathBuf> {
    let entries: Vec<_> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    match entries.as_slice() {
        [only] => Ok(only.clone()),
        all => Err(format!("{} has {} entries", dir.display(), all.len()).into()),
    }
}

/// The last lines of a file, long ones cut.
pub(super) fn tail(path: &Path) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(TAIL));
    last.map(|line| line.chars().take(600).collect::<String>()).collect::<Vec<_>>().join("\n")
}
