//! `workspaces.json` and the `root.json` of each workspace: what they look like, and how they keep what a newer version
//! wrote into them.

use std::{
    ffi::OsString,
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use checkpoint_core::{BoxError, Timestamp, WorkspaceId};
use durable_fs::{Access, Durability, replace};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::{
    document::merge,
    durable,
    error::DataError,
    format::Format,
    layout::{DataDir, WorkspaceDir},
    registry::{Identity, Workspace},
};

/// An absolute path: text, or NUL and base64 where it is not UTF-8.
struct StoredPath(PathBuf);

impl Serialize for StoredPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => to.serialize_str(text),
            None => to.serialize_str(&format!("\0{}", data_encoding::BASE64.encode(self.0.as_os_str().as_bytes()))),
        }
    }
}

impl<'de> Deserialize<'de> for StoredPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let path = match text.strip_prefix('\0') {
            Some(coded) => {
                let bytes = data_encoding::BASE64.decode(coded.as_bytes()).map_err(de::Error::custom)?;
                PathBuf::from(OsString::from_vec(bytes))
            }
            None => PathBuf::from(text),
        };
        if path.is_absolute() && !path.as_os_str().as_bytes().contains(&0) {
            Ok(Self(path))
        } else {
            Err(de::Error::custom("a path is not absolute"))
        }
    }
}

/// A workspace as the file has it.
#[derive(Serialize, Deserialize)]
struct Entry {
    id: WorkspaceId,
    root: StoredPath,
    device: u64,
    inode: u64,
    born: Option<i64>,
    git_common_dir: Option<StoredPath>,
    incarnation: u32,
    created: Timestamp,
}

impl From<&Workspace> for Entry {
    fn from(workspace: &Workspace) -> Self {
        Self {
            id: workspace.id,
            root: StoredPath(workspace.root.clone()),
            device: workspace.identity.device,
            inode: workspace.identity.inode,
            born: workspace.identity.born,
            git_common_dir: workspace.git_common_dir.clone().map(StoredPath),
            incarnation: workspace.incarnation,
            created: workspace.created,
        }
    }
}

impl From<Entry> for Workspace {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            root: entry.root.0,
            identity: Identity { device: entry.device, inode: entry.inode, born: entry.born },
            git_common_dir: entry.git_common_dir.map(|path| path.0),
            incarnation: entry.incarnation,
            created: entry.created,
        }
    }
}

/// The file in memory.
pub(crate) struct Entries {
    path: PathBuf,
    document: Map<String, Value>,
    list: Vec<Value>,
    retired: Vec<Value>,
    changed: bool,
}

impl Entries {
    /// Reads the file. One that is not there has no workspaces; one that cannot be read is an error, never empty.
    pub(crate) fn load(data: &DataDir) -> Result<Self, DataError> {
        let path = data.registry_file();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut document = Map::new();
                document.insert("format".to_owned(), Format::FIRST.to_string().into());
                return Ok(Self { path, document, list: Vec::new(), retired: Vec::new(), changed: false });
            }
            Err(source) => return Err(DataError::Io { path, source }),
        };
        Self::parse(&path, &bytes)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, DataError> {
        let damaged = |source: BoxError| DataError::Damaged { path: path.to_owned(), source };
        let mut document: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| damaged(e.into()))?;
        let format =
            document.get("format").and_then(Value::as_str).ok_or_else(|| damaged("it has no format".into()))?;
        let format: Format = format.parse().map_err(|error: crate::format::NoFormat| damaged(error.into()))?;
        if format.check().is_err() {
            return Err(DataError::Format {
                path: path.to_owned(),
                found: format.to_string(),
                supported: Format::FIRST.to_string(),
            });
        }
        let mut take = |name: &str| match document.remove(name) {
            Some(Value::Array(list)) => Ok(Some(list)),
            None => Ok(None),
            Some(_) => Err(damaged(format!("{name} is no list").into())),
        };
        let list = take("workspaces")?.ok_or_else(|| damaged("it has no workspaces".into()))?;
        let retired = take("retired")?.unwrap_or_default();
        Ok(Self { path: path.to_owned(), document, list, retired, changed: false })
    }

    /// The file as if it were new, with what is there now moved to a name beside it.
    pub(crate) fn set_aside(data: &DataDir) -> Result<(Self, PathBuf), DataError> {
        let path = data.registry_file();
        let aside = durable::aside(&path).map_err(DataError::io(&path))?;
        std::fs::rename(&path, &aside).map_err(DataError::io(&path))?;
        durable::sync_dir(data.path()).map_err(DataError::io(data.path()))?;
        let mut new = Self::load(data)?;
        new.changed = true;
        Ok((new, aside))
    }

    /// True for a workspace that is on the list or was taken off it.
    pub(crate) fn knows(&self, id: &WorkspaceId) -> bool {
        self.list.iter().chain(&self.retired).any(|value| is(value, id))
    }

    /// What is registered, in the order of the file.
    pub(crate) fn workspaces(&self) -> Result<Vec<Workspace>, DataError> {
        self.list
            .iter()
            .map(|value| {
                let entry = Entry::deserialize(value);
                entry
                    .map(Workspace::from)
                    .map_err(|source| DataError::Damaged { path: self.path.clone(), source: Box::new(source) })
            })
            .collect()
    }

    /// Inserts or replaces.
    pub(crate) fn put(&mut self, workspace: &Workspace) -> Result<(), DataError> {
        let damaged = |source| DataError::Damaged { path: self.path.clone(), source: Box::new(source) };
        let new = serde_json::to_value(Entry::from(workspace)).map_err(damaged)?;
        if let Some(value) = self.list.iter_mut().find(|value| is(value, &workspace.id)) {
            let before = value.clone();
            *value = merge(value.take(), &Value::Null, new);
            self.changed |= *value != before;
        } else {
            self.list.push(new);
            self.changed = true;
        }
        Ok(())
    }

    /// Takes a workspace off the list; its entry and its data stay.
    pub(crate) fn retire(&mut self, id: &WorkspaceId) {
        let (gone, kept) = std::mem::take(&mut self.list).into_iter().partition(|value| is(value, id));
        self.list = kept;
        self.retired.extend::<Vec<Value>>(gone);
        self.changed = true;
    }

    /// Writes the file if anything changed. The caller holds the lock of the data directory.
    pub(crate) fn save(mut self, data: &DataDir) -> Result<(), DataError> {
        if !self.changed {
            return Ok(());
        }
        self.document.insert("workspaces".to_owned(), self.list.into());
        if !self.retired.is_empty() {
            self.document.insert("retired".to_owned(), self.retired.into());
        }
        let damaged = |source| DataError::Damaged { path: self.path.clone(), source: Box::new(source) };
        let mut bytes = serde_json::to_vec_pretty(&self.document).map_err(damaged)?;
        bytes.push(b'\n');
        let path = data.registry_file();
        Ok(replace(&path, &bytes, Access::Private, Durability::Synced)?)
    }
}

/// Writes down in the directory of a workspace what the registry is about to say of it. Durable; nothing is written
/// where it says so already.
pub(crate) fn keep_root(dir: &WorkspaceDir, workspace: &Workspace) -> Result<(), DataError> {
    let path = dir.root_file();
    let damaged = |source: serde_json::Error| DataError::Damaged { path: path.clone(), source: Box::new(source) };
    let before = std::fs::read(&path).unwrap_or_default();
    // It is a copy: where it cannot be read it is written anew.
    let mut document: Map<String, Value> = serde_json::from_slice(&before).unwrap_or_default();
    let new = serde_json::to_value(Entry::from(workspace)).map_err(damaged)?;
    let entry = match document.remove("workspace") {
        Some(old @ Value::Object(_)) => merge(old, &Value::Null, new),
        _ => new,
    };
    document.entry("format").or_insert_with(|| Format::FIRST.to_string().into());
    document.insert("workspace".to_owned(), entry);
    let mut bytes = serde_json::to_vec_pretty(&document).map_err(damaged)?;
    bytes.push(b'\n');
    if bytes == before {
        return Ok(());
    }
    dir.create()?;
    Ok(replace(&path, &bytes, Access::Private, Durability::Synced)?)
}

/// What [`keep_root`] wrote for `id`; `None` where there is nothing, or nothing that can be understood.
pub(crate) fn kept_root(dir: &WorkspaceDir, id: &WorkspaceId) -> Option<Workspace> {
    let bytes = std::fs::read(dir.root_file()).ok()?;
    let mut document: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
    let format: Format = document.get("format")?.as_str()?.parse().ok()?;
    format.check().ok()?;
    let entry = Entry::deserialize(document.remove("workspace")?).ok()?;
    // A directory that was copied is not the workspace whose copy it is.
    (entry.id == *id).then(|| entry.into())
}

fn is(value: &Value, id: &WorkspaceId) -> bool {
    value.get("id").and_then(Value::as_str).is_some_and(|text| text == id.to_string())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_that_is_not_utf8_survives() {
        for bytes in [b"/a/\xff\xfe b".as_slice(), "/é".as_bytes(), b"/"] {
            let path = PathBuf::from(OsStr::from_bytes(bytes));
            let text = serde_json::to_string(&StoredPath(path.clone())).unwrap();
            assert_eq!(serde_json::from_str::<StoredPath>(&text).unwrap().0, path);
        }
        for bad in ["\"a\"", "\"\"", "\"/a\\u0000b\"", "\"\\u0000YQ==\""] {
            assert!(serde_json::from_str::<StoredPath>(bad).is_err(), "{bad}");
        }
    }
}
