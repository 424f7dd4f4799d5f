//! The directory of a store: how it is made, recognised and stamped.

use std::{
    fs::{self, DirBuilder},
    hash::{BuildHasher, Hasher},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use checkpoint_core::SnapshotError;

use super::ops::{Ops, at};

/// Major format: another one is not read.
const MAJOR: u32 = 1;
/// Minor format: what a newer one adds is ignored.
const MINOR: u32 = 0;
const HEAD: &str = "ref: refs/heads/none\n";
// No automatic packing by a git that somebody runs here: it would drop what no ref names.
const CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
/// Beginning of every file that is not finished. Nobody reads them; `gc` sweeps them.
pub(crate) const TEMPORARY: &str = "tmp-";

/// Where the packs are.
pub(crate) fn pack_dir(dir: &Path) -> PathBuf {
    dir.join("objects/pack")
}

/// A name in `dir` that no other process uses.
pub(crate) fn temporary(dir: &Path, ending: &str) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Processes in different containers can have one id, so chance has to tell them apart.
    let chance = std::hash::RandomState::new().build_hasher().finish();
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    dir.join(format!("{TEMPORARY}{}-{n}-{chance:016x}{ending}", std::process::id()))
}

/// Makes what is missing of a store at `dir` and checks its format.
///
/// Every step can be repeated, so a crash half-way and two processes at once do no harm. Costs three directory syncs
/// when something had to be made and none otherwise.
pub(crate) fn ensure(dir: &Path, ops: &Ops) -> Result<(), SnapshotError> {
    let format = dir.join("format");
    let found = read_small(&format)?;
    check_format(&found)?;
    let made = [&dir.join("HEAD"), &dir.join("config")].into_iter().all(|p| p.metadata().is_ok_and(|m| m.len() > 0));
    if !found.is_empty() && made && pack_dir(dir).is_dir() {
        return Ok(());
    }
    for part in ["objects/pack", "objects/info", "refs/heads"] {
        let part = dir.join(part);
        DirBuilder::new().recursive(true).mode(0o700).create(&part).map_err(at(&part))?;
    }
    for (name, content) in [("HEAD", HEAD), ("config", CONFIG), ("format", &format!("{MAJOR}.{MINOR}\n"))] {
        let path = dir.join(name);
        // An empty file is what a power loss leaves of one that was not synced.
        if path.metadata().is_ok_and(|m| m.len() > 0) {
            continue;
        }
        replace(ops, &path, content.as_bytes())?;
    }
    let objects = dir.join("objects");
    for part in [Some(&*objects), Some(dir), dir.parent()].into_iter().flatten() {
        ops.sync_dir(part).map_err(at(part))?;
    }
    Ok(())
}

/// Replaces a small file by rename, without syncing.
fn replace(ops: &Ops, path: &Path, content: &[u8]) -> Result<(), SnapshotError> {
    let new = temporary(path.parent().unwrap_or(Path::new(".")), "");
    let file = ops.create(&new).map_err(at(&new))?;
    let done = ops.write_at(&file, content, 0).and_then(|()| ops.rename(&new, path));
    done.map_err(|e| {
        drop(fs::remove_file(&new));
        at(path)(e)
    })
}

fn read_small(path: &Path) -> Result<String, SnapshotError> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(at(path)(e)),
    }
}

fn check_format(found: &str) -> Result<(), SnapshotError> {
    let text = found.trim_end();
    if text.is_empty() {
        return Ok(());
    }
    match text.split_once('.').and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)))
    {
        Some((MAJOR, _)) => Ok(()),
        Some((major, _)) if major > MAJOR => {
            Err(SnapshotError::TooNew { found: text.to_owned(), supported: format!("{MAJOR}.{MINOR}") })
        }
        _ => Err(SnapshotError::BadStore { what: format!("{text:?} is no format") }),
    }
}

/// True when the indexes were checked, or written, since the machine started.
pub(crate) fn is_of_this_boot(dir: &Path) -> bool {
    boot_id().is_some_and(|now| fs::read_to_string(dir.join("boot")).is_ok_and(|then| then.trim_end() == now))
}

/// Remembers that the indexes were checked. Not being able to costs the next process the check, nothing else.
pub(crate) fn stamp_boot(dir: &Path, ops: &Ops) {
    if let Some(now) = boot_id() {
        drop(replace(ops, &dir.join("boot"), format!("{now}\n").as_bytes()));
    }
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_store_is_its_owners_only_and_made_once() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("git");
        let ops = Ops::default();
        ensure(&dir, &ops).unwrap();
        assert_eq!(ops.syncs(), 3);
        ensure(&dir, &ops).unwrap();
        assert_eq!(ops.syncs(), 3, "nothing was to be made");
        let mode = |p: &str| dir.join(p).metadata().unwrap().permissions().mode() & 0o7777;
        for part in ["", "objects", "objects/pack", "refs/heads"] {
            assert_eq!(mode(part), 0o700, "{part}");
        }
        for part in ["HEAD", "config", "format"] {
            assert_eq!(mode(part), 0o600, "{part}");
        }
    }

    #[test]
    fn formats_minor_is_additive_and_a_newer_major_is_refused() {
        check_format("").unwrap();
        check_format("1.0\n").unwrap();
        check_format("1.77\n").unwrap();
        assert!(matches!(check_format("2.0\n"), Err(SnapshotError::TooNew { found, .. }) if found == "2.0"));
        assert!(check_format("rubbish").is_err());
    }

    #[test]
    fn making_a_store_survives_a_stop_at_every_step() {
        let top = tempfile::tempdir().unwrap();
        let ops = Ops::default();
        ops.fail_from(0);
        ensure(&top.path().join("whole"), &ops).unwrap();
        for n in 1..=ops.steps() {
            let dir = top.path().join(n.to_string());
            ops.fail_from(n);
            ensure(&dir, &ops).unwrap_err();
            ops.fail_from(0);
            ensure(&dir, &ops).unwrap();
            assert_eq!(fs::read_to_string(dir.join("format")).unwrap(), "1.0\n");
        }
    }
}
