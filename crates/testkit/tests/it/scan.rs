//! What a directory holds, byte for byte: the truth that tests compare with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

/// One entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    File { mode: u32, bytes: Vec<u8> },
    Link(Vec<u8>),
    Dir(u32),
    Fifo(u32),
    Other,
}

/// Everything below a directory by relative path, `.git` left out unless asked for.
pub(crate) type Scan = BTreeMap<Vec<u8>, Entry>;

pub(crate) fn scan(root: &Path, with_git: bool) -> Scan {
    let mut result = Scan::new();
    go(root, &[], with_git, &mut result);
    result
}

fn go(root: &Path, rel: &[u8], with_git: bool, result: &mut Scan) {
    let here = root.join(OsString::from_vec(rel.to_vec()));
    for entry in std::fs::read_dir(&here).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !with_git && name.as_bytes() == b".git" {
            continue;
        }
        let mut path = rel.to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        let meta = entry.path().symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let kind = meta.file_type();
        let found = if kind.is_dir() {
            Entry::Dir(mode)
        } else if kind.is_symlink() {
            Entry::Link(std::fs::read_link(entry.path()).unwrap().into_os_string().into_vec())
        } else if kind.is_fifo() {
            Entry::Fifo(mode)
        } else if kind.is_file() {
            Entry::File { mode, bytes: std::fs::read(entry.path()).unwrap() }
        } else {
            Entry::Other
        };
        let descend = matches!(found, Entry::Dir(_));
        result.insert(path.clone(), found);
        if descend {
            go(root, &path, with_git, result);
        }
    }
}

/// Paths that differ between two scans.
pub(crate) fn differing(a: &Scan, b: &Scan) -> Vec<Vec<u8>> {
    let mut paths: Vec<Vec<u8>> =
        a.keys().chain(b.keys()).filter(|path| a.get(*path) != b.get(*path)).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

/// The same, as text for messages.
pub(crate) fn text(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|p| String::from_utf8_lossy(p).into_owned()).collect()
}
