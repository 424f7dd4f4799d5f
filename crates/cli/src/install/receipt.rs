//! What was put into which file, so that it can be taken out byte for byte: `<data>/install/receipt.json`, with the
//! earlier contents beside it in `backups/`.
//!
//! Format 1.0: `{"format": "1.0", "files": {PATH: {agent, scope, before, after, backup, dirs, created}}}`. A path is written as a
//! shell reads it back. `before` and `after` are SHA-256 of the contents, `before` null for a file that was not there;
//! `dirs` counts the directories that were made for it; `created`: it was not there before the first change. What a newer minor version adds is kept.
//!
//! A backup's name holds digests of the path and of the content: one is written once and never over another.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durable_fs::{Access, Durability, FileLock, LockMode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::{CliError, quote_bytes};
use crate::exit;

/// What was done to a file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Entry {
    pub(crate) agent: String,
    pub(crate) scope: String,
    pub(crate) before: Option<String>,
    pub(crate) after: String,
    pub(crate) backup: Option<String>,
    pub(crate) dirs: u32,
    /// The file was not there before the first change.
    pub(crate) created: bool,
}

/// The receipt of a data directory, locked while it is held for changes.
#[derive(Debug)]
pub(crate) struct Receipt {
    dir: PathBuf,
    all: Map<String, Value>,
    _lock: Option<FileLock>,
}

/// SHA-256 in hex.
pub(crate) fn digest(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn key(path: &Path) -> String {
    quote_bytes(path.as_os_str().as_bytes())
}

impl Receipt {
    /// Reads it. Nothing is made.
    pub(crate) fn look(data: &Path) -> Result<Self, CliError> {
        let dir = data.join("install");
        let file = dir.join("receipt.json");
        let all = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Map<String, Value>>(&bytes).map_err(|source| {
                CliError::failure(format!("{} is damaged; move it away to go on", file.display()), source)
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
            Err(source) => return Err(CliError::failure(format!("cannot read {}", file.display()), source)),
        };
        let format = all.get("format").and_then(Value::as_str).unwrap_or("1.0");
        if format.split('.').next() != Some("1") {
            return Err(CliError::Coded {
                code: "newer-store",
                message: format!("{} has format {format}", file.display()),
                hints: vec!["a newer rwd wrote it: update rwd".to_owned()],
                exit: exit::DAMAGED,
            });
        }
        Ok(Self { dir, all, _lock: None })
    }

    /// Reads it for changes: nobody else changes it until this is dropped.
    pub(crate) fn open(data: &Path) -> Result<Self, CliError> {
        let dir = data.join("install");
        let failed = |source: durable_fs::Error| CliError::failure(format!("cannot use {}", dir.display()), source);
        durable_fs::create_private_dirs(&dir.join("backups")).map_err(failed)?;
        let lock = FileLock::acquire(&dir.join("lock"), LockMode::Exclusive, Duration::from_secs(10));
        let lock = lock.map_err(|failure| CliError::unlocked(failure, format!("cannot lock {}", dir.display())))?;
        Ok(Self { _lock: Some(lock), ..Self::look(data)? })
    }

    /// What it says of a file.
    pub(crate) fn get(&self, path: &Path) -> Option<Entry> {
        let entry = self.all.get("files")?.get(key(path))?;
        serde_json::from_value(entry.clone()).ok()
    }

    /// Settings that belong to one workspace, but not to the one at `root`: as a shell reads their paths.
    pub(crate) fn local(&self, root: &Path) -> Vec<String> {
        let Some(Value::Object(files)) = self.all.get("files") else { return Vec::new() };
        let here = key(root);
        // A quoted path ends with its quote.
        let here = format!("{}/", here.trim_end_matches('\''));
        let elsewhere = |(path, entry): &(&String, &Value)| {
            entry.get("scope").is_some_and(|scope| scope != "user") && !path.starts_with(&here)
        };
        files.iter().filter(elsewhere).map(|(path, _)| path.clone()).collect()
    }

    /// Notes what was done. What was before the first change stays known: a repair of our own hooks is none of the
    /// user's states.
    pub(crate) fn put(&mut self, path: &Path, mut entry: Entry) {
        if let Some(earlier) = self.get(path) {
            if entry.before.as_ref() == Some(&earlier.after) {
                entry.before = earlier.before;
                entry.backup = earlier.backup;
            }
            entry.dirs = entry.dirs.max(earlier.dirs);
            entry.created |= earlier.created;
        }
        if let (Some(files), Ok(entry)) = (self.files(), serde_json::to_value(entry)) {
            files.insert(key(path), entry);
        }
    }

    /// What it says, to be put back.
    pub(crate) fn clone_content(&self) -> Map<String, Value> {
        self.all.clone()
    }

    /// Puts back what it said.
    pub(crate) fn set_content(&mut self, all: Map<String, Value>) {
        self.all = all;
    }

    /// Forgets a file.
    pub(crate) fn forget(&mut self, path: &Path) {
        if let Some(files) = self.files() {
            files.remove(&key(path));
        }
    }

    fn files(&mut self) -> Option<&mut Map<String, Value>> {
        let files = self.all.entry("files").or_insert_with(|| Value::Object(Map::new()));
        files.as_object_mut()
    }

    /// Keeps a content; gives where.
    pub(crate) fn back_up(&self, path: &Path, text: &str) -> Result<PathBuf, CliError> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let short = |digest: String| digest.get(..12).unwrap_or_default().to_owned();
        let file = format!("{}-{}-{name}", short(digest(&key(path))), short(digest(text)));
        let backup = self.dir.join("backups").join(file);
        if !backup.exists() {
            durable_fs::replace(&backup, text.as_bytes(), Access::Private, Durability::Synced)
                .map_err(|source| CliError::failure(format!("cannot keep a copy of {}", path.display()), source))?;
        }
        Ok(backup)
    }

    /// The content that a file had before, as kept.
    pub(crate) fn backup(&self, entry: &Entry) -> Option<String> {
        let text = fs::read_to_string(self.dir.join("backups").join(entry.backup.as_ref()?)).ok()?;
        (Some(digest(&text)) == entry.before).then_some(text)
    }

    /// All contents that are kept.
    pub(crate) fn backups(&self) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(self.dir.join("backups")).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read(entry.path()).ok()).collect()
    }

    /// Writes it down.
    pub(crate) fn save(&mut self) -> Result<(), CliError> {
        self.all.entry("format").or_insert_with(|| "1.0".into());
        let file = self.dir.join("receipt.json");
        let text = serde_json::to_string_pretty(&self.all)
            .map_err(|source| CliError::failure("the receipt cannot be written as JSON", source))?;
        durable_fs::replace(&file, (text + "\n").as_bytes(), Access::Private, Durability::Synced)
            .map_err(|source| CliError::failure(format!("cannot write {}", file.display()), source))
    }
}
