//! Where things are, and which files belong to the project.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{Result, process};

/// The root of the workspace this task runner was built in.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies one level below the root").to_owned()
}

/// Where cargo puts what it builds, as the environment or the default says.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Files of the project, relative to the root: what git would track, or everything but build output without git.
pub(crate) fn files() -> Result<BTreeSet<PathBuf>> {
    let root = root();
    let listed = process::quiet("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"], &root);
    if let Ok(listed) = listed {
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let files = names.map(|name| PathBuf::from(OsStr::from_bytes(name)));
        return Ok(files.filter(|path| root.join(path).is_file()).collect());
    }
    let mut found = BTreeSet::new();
    let mut left = vec![PathBuf::new()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(root.join(&dir))? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if !matches!(entry.file_name().to_str(), Some("target" | ".git")) {
                    left.push(path);
                }
            } else {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

/// `cargo metadata` of the members.
pub(crate) fn metadata() -> Result<Value> {
    metadata_with(&["--no-deps"])
}

/// `cargo metadata` of every dependency that this machine builds; the others may not have been fetched.
pub(crate) fn metadata_of_dependencies() -> Result<Value> {
    let version = process::quiet("rustc", &["-vV"], &root())?;
    let version = String::from_utf8_lossy(&version);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    metadata_with(&["--filter-platform", host])
}

fn metadata_with(args: &[&str]) -> Result<Value> {
    let args = [&["metadata", "--format-version=1", "--offline"], args].concat();
    Ok(serde_json::from_slice(&process::quiet(&cargo(), &args, &root())?)?)
}

/// The cargo that runs this.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
