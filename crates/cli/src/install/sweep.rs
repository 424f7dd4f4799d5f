//! What a process that was killed while it changed settings left beside them.
//!
//! A change is written as `.rwd-PID-N.tmp` and then trades names with the settings (`durable_fs::replace_if`), so such a file
//! may hold all of the new content, a part of it, or what the user had. It goes once that process is gone and everything
//! in it is known to be elsewhere; otherwise it stays, and is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use harness_adapter::install::{Agent, Scope};

use super::{Around, Change, Receipt, read};
use crate::error::CliError;

/// Longer ones are not looked into.
const LONGEST: u64 = 8 << 20;

/// The number of the process that a temporary's name tells.
fn made_by(name: &str) -> Option<u32> {
    let (pid, n) = name.strip_prefix(".rwd-")?.strip_suffix(".tmp")?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits(n) && digits(pid) { pid.parse().ok() } else { None }
}

/// Every file of settings that `rwd init` may write, where it really is.
fn files(around: &Around<'_>) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut real = |path: &Path, scope: Scope| {
        let real = read(path, around.fence(scope)).map_or_else(|_| path.to_owned(), |now| now.real);
        files.insert(real);
    };
    for agent in Agent::ALL {
        for (scope, place) in around.places(agent) {
            real(&place.path, scope);
        }
    }
    real(&around.codex_config(), Scope::User);
    files
}

/// Temporaries of processes that are gone.
pub(crate) fn left(around: &Around<'_>) -> Vec<PathBuf> {
    let dirs: BTreeSet<PathBuf> = files(around).iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
    let mut left = Vec::new();
    for entry in dirs.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten() {
        let name = entry.file_name();
        let dead = name.to_str().and_then(made_by).is_some_and(|pid| durable_fs::Process::of(pid).is_err());
        if dead && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            left.push(entry.path());
        }
    }
    left.sort();
    left
}

/// Removes them, as far as what they hold is known to be elsewhere: in a backup, in the settings, or in `changes`, which
/// were made again. What stays is told.
pub(crate) fn sweep(around: &Around<'_>, data: &Path, changes: &[Change]) -> Result<Vec<String>, CliError> {
    let left = left(around);
    if left.is_empty() {
        return Ok(Vec::new());
    }
    // Whoever changes settings holds it.
    let receipt = Receipt::open(data)?;
    let mut known = receipt.backups();
    let texts = changes.iter().flat_map(|change| [change.before.text.clone(), change.after.clone()]);
    known.extend(texts.flatten().map(String::into_bytes));
    known.extend(files(around).iter().filter_map(|file| fs::read(file).ok()));
    let mut told = Vec::new();
    for path in left {
        let short = path.symlink_metadata().is_ok_and(|facts| facts.len() <= LONGEST);
        let held = if short { fs::read(&path).ok() } else { None };
        let elsewhere = held.is_some_and(|held| known.iter().any(|text| text.starts_with(&held)));
        if !elsewhere || fs::remove_file(&path).is_err() {
            told.push(format!(
                "{} was left by an rwd that was killed, and holds what is nowhere else: look at it, then remove it",
                path.display()
            ));
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_temporaries_are_known() {
        assert_eq!(made_by(".rwd-12-0.tmp"), Some(12));
        for name in [
            ".rwd-12.tmp",
            "rwd-1-2.tmp",
            ".rwd--1.tmp",
            ".rwd-1-.tmp",
            ".rwd-1-2-3.tmp",
            ".rwd-+1-2.tmp",
            ".rwd-x-2.tmp",
        ] {
            assert_eq!(made_by(name), None, "{name}");
        }
    }
}
