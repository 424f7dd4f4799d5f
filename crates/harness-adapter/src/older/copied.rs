//! Copies of `dsh-checkpoint-rewind`: a directory with a manifest for each record (002-21 to 24).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use checkpoint_core::{Mode, Part, PartKind, RelPath, Skipped, SnapshotError, StateSource};
use durable_fs::{Dir, Kind, Mounts, Stat};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Problem, json, millis, names, refused, whole};

const NOT_OURS: &str = "the snapshot is refused";
/// The manifest's name.
const MANIFEST: &str = "manifest.json";
/// Where the copies may lie in a snapshot's directory.
const LAYOUTS: [&str; 2] = ["files", ""];

/// True for text in the form of a UUID: what else is in a record must not become a path (002-24).
pub fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths = parts.iter().map(|part| part.len());
    lengths.eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// One snapshot made of copies. Nothing of it has been read yet.
#[derive(Clone, Debug)]
pub struct CopiedState {
    snapshots: PathBuf,
    /// The snapshot's directory from there.
    dir: String,
    /// Read once.
    manifest: OnceLock<BTreeMap<RelPath, Entry>>,
}

/// What a manifest says of a file besides its path.
#[derive(Clone, Debug)]
struct Entry {
    size: u64,
    mode: u32,
    /// SHA-256, in lower-case hexadecimal.
    hash: Option<String>,
}

/// The snapshots of a workspace's directory below `snapshots`, by their ids.
///
/// # Errors
/// When the directory is there and cannot be listed.
pub fn copied_ids(snapshots: &Path, workspace_dir: &str) -> Result<Vec<String>, Problem> {
    Ok(names(&snapshots.join(workspace_dir))?.into_iter().filter(|name| is_uuid(name)).collect())
}

/// The snapshot `id` of a workspace.
///
/// # Errors
/// When `id` is no UUID.
pub fn copied_state(snapshots: &Path, workspace_dir: &str, id: &str) -> Result<CopiedState, SnapshotError> {
    if !is_uuid(id) {
        return Err(refused(NOT_OURS, format!("{id:?} is no UUID")));
    }
    Ok(CopiedState { snapshots: snapshots.to_owned(), dir: format!("{workspace_dir}/{id}"), manifest: OnceLock::new() })
}

impl CopiedState {
    fn open_dir(&self) -> Result<Dir, SnapshotError> {
        let at = self.snapshots.join(&self.dir);
        let root = Dir::open_root(&self.snapshots).map_err(|error| refused(NOT_OURS, error.to_string()))?;
        root.descend(self.dir.as_bytes(), Mounts::Any)
            .map_err(|error| refused(NOT_OURS, format!("{}: {error}", at.display())))
    }

    /// When its files were last changed, at the latest: for snapshots that no record tells of.
    pub fn newest_ms(&self) -> i64 {
        let manifest = json(&self.snapshots.join(&self.dir).join(MANIFEST)).ok().flatten();
        let files = manifest.as_ref().and_then(|m| m["files"].as_array()).into_iter().flatten();
        files.filter_map(|file| millis(&file["mtimeMs"])).max().unwrap_or(0)
    }

    fn manifest(&self) -> Result<&BTreeMap<RelPath, Entry>, SnapshotError> {
        if let Some(manifest) = self.manifest.get() {
            return Ok(manifest);
        }
        let read = self.read_manifest()?;
        Ok(self.manifest.get_or_init(|| read))
    }

    fn read_manifest(&self) -> Result<BTreeMap<RelPath, Entry>, SnapshotError> {
        self.open_dir()?;
        let path = self.snapshots.join(&self.dir).join(MANIFEST);
        let bad = |why: String| refused(NOT_OURS, format!("{}: {why}", path.display()));
        let link = path.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
        if link {
            return Err(bad("it is a link".to_owned()));
        }
        let manifest = json(&path).map_err(bad)?.ok_or_else(|| bad("it is missing".to_owned()))?;
        let Value::Array(files) = &manifest["files"] else { return Err(bad("it lists no files".to_owned())) };
        let mut entries = BTreeMap::new();
        for file in files {
            let rel = file["rel"].as_str().ok_or_else(|| bad("a file has no path".to_owned()))?;
            let entry = entry(file).ok_or_else(|| bad(format!("what it says of {rel:?} makes no sense")))?;
            let rel = RelPath::new(rel).map_err(|error| bad(error.to_string()))?;
            if entries.contains_key(&rel) {
                return Err(bad(format!("{rel} is listed twice")));
            }
            entries.insert(rel, entry);
        }
        Ok(entries)
    }

    /// Where in the snapshot's directory the copies lie: where the first of them is.
    fn layout(dir: &Dir, first: Option<&RelPath>) -> &'static str {
        let Some(first) = first else { return "" };
        let is_there = |layout: &&&str| {
            let below = parent_of(layout, first);
            let found = dir.descend(&below, Mounts::Any).ok();
            found.is_some_and(|dir| dir.stat_at(first.name()).ok().flatten().is_some())
        };
        LAYOUTS.iter().find(is_there).copied().unwrap_or("")
    }
}

/// The directory of a copy from its snapshot's directory.
fn parent_of(layout: &str, path: &RelPath) -> Vec<u8> {
    let parent = path.parent();
    let parent = parent.as_ref().map_or(&b""[..], RelPath::as_bytes);
    let slash: &[u8] = if layout.is_empty() || parent.is_empty() { b"" } else { b"/" };
    [layout.as_bytes(), slash, parent].concat()
}

fn entry(file: &Value) -> Option<Entry> {
    let mode = match &file["mode"] {
        Value::Null => 0o644,
        mode => u32::try_from(whole(mode)? & 0o7777).ok()?,
    };
    millis(&file["mtimeMs"])?;
    let hash = match &file["hash"] {
        Value::Null => None,
        hash => {
            let hash = hash.as_str()?.trim_start_matches("sha256:").to_ascii_lowercase();
            let sound = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
            Some(hash).filter(|_| sound).map(Some)?
        }
    };
    Some(Entry { size: whole(&file["size"])?, mode, hash })
}

/// A file whose bytes must have a hash: reading its end fails when they have another.
struct Checked {
    file: File,
    hasher: Sha256,
    wanted: Option<String>,
}

impl Read for Checked {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let got = self.file.read(to)?;
        self.hasher.update(to.get(..got).unwrap_or_default());
        if got == 0
            && let Some(wanted) = self.wanted.take()
            && data_encoding::HEXLOWER.encode(&std::mem::take(&mut self.hasher).finalize()) != wanted
        {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the copy is not what the manifest recorded"));
        }
        Ok(got)
    }
}

impl StateSource for CopiedState {
    fn parts(&self) -> Result<(Vec<Part>, Vec<Skipped>), SnapshotError> {
        let entries = self.manifest()?;
        // A path that is a file in one line and a directory in another is neither.
        let paths: BTreeSet<&RelPath> = entries.keys().collect();
        if let Some(path) = entries.keys().find(|path| path.ancestors().any(|dir| paths.contains(&dir))) {
            return Err(refused(NOT_OURS, format!("{path} lies below a file")));
        }
        let mode = |entry: &Entry| Mode(u16::try_from(entry.mode).unwrap_or(0o644));
        let part = |(path, entry): (&RelPath, &Entry)| Part {
            path: path.clone(),
            kind: PartKind::File(mode(entry)),
            blob: None,
        };
        Ok((entries.iter().map(part).collect(), Vec::new()))
    }

    fn open(&self, part: &Part) -> Result<(u64, Box<dyn Read + '_>), SnapshotError> {
        let entries = self.manifest()?;
        let bad = |why: String| refused(NOT_OURS, format!("{}: {why}", part.path));
        let entry = entries.get(&part.path).ok_or_else(|| bad("it is not in the manifest".to_owned()))?;
        let dir = self.open_dir()?;
        let layout = Self::layout(&dir, entries.keys().next());
        let below = parent_of(layout, &part.path);
        let dir = dir.descend(&below, Mounts::Any).map_err(|error| bad(error.to_string()))?;
        let file = dir.open_file(part.path.name()).map_err(|error| bad(error.to_string()))?;
        let facts = Stat::of(&file).map_err(|error| bad(error.to_string()))?;
        if facts.kind != Kind::File {
            return Err(bad("it is no regular file".to_owned()));
        }
        if facts.size != entry.size {
            return Err(bad(format!("it has {} bytes and should have {}", facts.size, entry.size)));
        }
        let checked = Checked { file, hasher: Sha256::new(), wanted: entry.hash.clone() };
        Ok((entry.size, Box::new(checked)))
    }
}
