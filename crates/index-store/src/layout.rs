//! The data directory: where everything of a user's workspaces lies.
//!
//! ```text
//! <data>/lock                          held while workspaces.json changes
//! <data>/workspaces.json               the registry
//! <data>/workspaces/<id>/root.json     the workspace's entry of the registry, in case that is lost
//! <data>/workspaces/<id>/git/          the object database
//! <data>/workspaces/<id>/stat.cache    change-detection cache
//! <data>/workspaces/<id>/restored.cache  what the last restore read back, until a capture has used it
//! <data>/workspaces/<id>/index.sqlite  or index.jsonl
//! <data>/workspaces/<id>/index.high    how far the index had come
//! <data>/workspaces/<id>/lock, epoch
//! <data>/workspaces/<id>/folds/        a lock file per session that was folded
//! <data>/workspaces/<id>/hooks/        what hooks know of sessions: a file and a lock file each; may be lost
//! ```

use std::os::unix::fs::MetadataExt as _;
use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use checkpoint_core::{IndexStore, Timestamp, WorkspaceId};
use durable_fs::{FileLock, LockFailure, LockMode, create_private_dirs};

use crate::{
    durable,
    epoch::Epoch,
    error::DataError,
    fold_locks::FileFolds,
    high::High,
    json::{JsonIndex, JsonOptions},
    lock::WorkspaceLock,
    sqlite::{Journal, SqliteIndex, SqliteOptions},
};

/// How long a change of the data directory waits for another one.
const WAIT: Duration = Duration::from_secs(10);

/// Age in milliseconds at which a temporary is nobody's any more.
const SWEPT_AFTER: i64 = 3_600_000;

/// One user's data directory, the same for all surfaces. Owner-only from its first byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// The data directory at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The one that applies: `explicit`, else `RWD_DATA_DIR`, else `$XDG_DATA_HOME/rwd`, else `~/.local/share/rwd`.
    /// `None` when there is not even a home directory.
    ///
    /// `variable` looks up the environment. Empty values count as unset, and a relative `XDG_DATA_HOME` too.
    pub fn locate(explicit: Option<&Path>, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Self> {
        let variable = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        explicit
            .map(Path::to_owned)
            .or_else(|| variable("RWD_DATA_DIR"))
            .or_else(|| variable("XDG_DATA_HOME").filter(|path| path.is_absolute()).map(|path| path.join("rwd")))
            .or_else(|| variable("HOME").map(|home| home.join(".local/share/rwd")))
            .map(Self::new)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of one workspace.
    pub fn workspace(&self, id: &WorkspaceId) -> WorkspaceDir {
        WorkspaceDir { path: self.path.join("workspaces").join(id.to_string()), data: self.clone() }
    }

    /// Removes what crashed processes left of changes of the registry and of the receipt of installed hooks, and in the
    /// workspaces' directories, an hour old and older, and gives its number. A workspace's directory that is empty, since
    /// it was never registered, goes too.
    pub fn sweep(&self, now: Timestamp) -> Result<u64, DataError> {
        let mut swept = sweep_with(&self.path, &["workspaces"], now)?;
        for id in self.workspace_ids()? {
            // Also those that were never registered: a crash came before. One that goes meanwhile has nothing left.
            let dir = self.workspace(&id);
            let changed = std::fs::metadata(dir.path()).map_or(i64::MAX, |facts| facts.mtime());
            swept += dir.sweep(now).unwrap_or(0);
            if changed < (now.0 - SWEPT_AFTER).div_euclid(1_000) {
                // Only an empty one goes.
                drop(std::fs::remove_dir(dir.path()));
            }
        }
        Ok(swept)
    }

    pub(crate) fn registry_file(&self) -> PathBuf {
        self.path.join("workspaces.json")
    }

    /// Ids that have a directory here, registered or not, in order.
    pub(crate) fn workspace_ids(&self) -> Result<Vec<WorkspaceId>, DataError> {
        let path = self.path.join("workspaces");
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(DataError::Io { path, source: error }),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(DataError::io(&path))?;
            ids.extend(entry.file_name().to_str().and_then(|name| WorkspaceId::parse(name).ok()));
        }
        ids.sort();
        Ok(ids)
    }

    /// Waits for the lock of the data directory; it is held until the value goes.
    pub(crate) fn lock(&self) -> Result<FileLock, DataError> {
        let path = self.path.join("lock");
        FileLock::acquire(&path, LockMode::Exclusive, WAIT).map_err(|error| match error {
            LockFailure::Io(error) => error.into(),
            _ => DataError::Busy { path },
        })
    }

    /// Creates the directory where it is missing.
    pub(crate) fn create(&self) -> Result<(), DataError> {
        Ok(create_private_dirs(&self.path)?)
    }
}

/// Sweeps a directory of ours and those below it, without those that somebody else sweeps.
fn sweep_with(dir: &Path, without: &[&str], now: Timestamp) -> Result<u64, DataError> {
    let mut swept = durable::sweep(dir, now.0 - SWEPT_AFTER).map_err(DataError::io(dir))?;
    for entry in std::fs::read_dir(dir).map_err(DataError::io(dir))? {
        let entry = entry.map_err(DataError::io(dir))?;
        let is_dir = entry.file_type().map_err(DataError::io(dir))?.is_dir();
        if is_dir && !without.iter().any(|name| entry.file_name() == *name) {
            swept += sweep_with(&entry.path(), &[], now)?;
        }
    }
    Ok(swept)
}

/// In what form a workspace keeps its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IndexKind {
    /// `index.sqlite`.
    #[default]
    Sqlite,
    /// `index.jsonl`.
    Json,
}

impl IndexKind {
    /// The stable name, as `--index` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Json => "json",
        }
    }

    /// Reads a stable name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Sqlite, Self::Json].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How an index is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexOptions {
    /// The form asked for; `None`: the existing one, else SQLite.
    pub kind: Option<IndexKind>,
    /// For SQLite: [`Journal::Delete`] where the data directory lies on a network file system or FUSE.
    pub journal: Journal,
}

/// The directory of one workspace. Nothing in it is created before it is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkspaceDir {
    path: PathBuf,
    data: DataDir,
}

impl WorkspaceDir {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates it where it is missing, durably. Nothing else of this type does.
    pub fn create(&self) -> Result<(), DataError> {
        Ok(create_private_dirs(&self.path)?)
    }

    /// Removes what crashed processes left of a new or compacted index, an epoch or a hook's state, an hour old and
    /// older, and gives its number. Never needed for correctness. The object database sweeps itself.
    pub fn sweep(&self, now: Timestamp) -> Result<u64, DataError> {
        sweep_with(&self.path, &["git"], now)
    }

    /// What the registry says of the workspace, once more: there the registry can be made from again.
    pub(crate) fn root_file(&self) -> PathBuf {
        self.path.join("root.json")
    }

    /// The object database.
    pub fn git(&self) -> PathBuf {
        self.path.join("git")
    }

    /// The change-detection cache.
    pub fn stat_cache(&self) -> PathBuf {
        self.path.join("stat.cache")
    }

    /// The workspace's advisory lock.
    pub fn lock(&self) -> WorkspaceLock {
        WorkspaceLock::new(self.path.join("lock"))
    }

    /// What keeps folds of one session apart, here and in every process.
    pub fn folds(&self) -> FileFolds {
        FileFolds::new(&self.path.join("folds"))
    }

    /// The counter of removals.
    pub fn epoch(&self) -> Epoch {
        Epoch::new(self.path.join("epoch"))
    }

    /// The file of an index of this kind.
    pub fn index_file(&self, kind: IndexKind) -> PathBuf {
        self.path.join(match kind {
            IndexKind::Sqlite => "index.sqlite",
            IndexKind::Json => "index.jsonl",
        })
    }

    /// The form in which the index exists, `None` in a new workspace. Both at once is damage: nobody can say which one
    /// is current. None is damage too where there was one: its packs or its mark are there.
    pub fn index_kind(&self) -> Result<Option<IndexKind>, DataError> {
        if let Some(kind) = self.kind_of_file()? {
            return Ok(Some(kind));
        }
        let Some(trace) = self.trace_of_index()? else { return Ok(None) };
        // Somebody else may have made the index meanwhile, and all that comes after it.
        if let Some(kind) = self.kind_of_file()? {
            return Ok(Some(kind));
        }
        let source = format!(
            "its index is missing, though {} is there; put the index back, or move the directory of the workspace away to \
             begin anew",
            trace.display()
        );
        Err(DataError::Damaged { path: self.path.clone(), source: source.into() })
    }

    fn kind_of_file(&self) -> Result<Option<IndexKind>, DataError> {
        let exists = |kind| {
            let file = self.index_file(kind);
            file.try_exists().map_err(DataError::io(file))
        };
        match (exists(IndexKind::Sqlite)?, exists(IndexKind::Json)?) {
            (false, false) => Ok(None),
            (true, false) => Ok(Some(IndexKind::Sqlite)),
            (false, true) => Ok(Some(IndexKind::Json)),
            (true, true) => Err(DataError::Damaged {
                path: self.path.clone(),
                source: "it has both an index.sqlite and an index.jsonl".into(),
            }),
        }
    }

    /// A file that is there only after an index was.
    fn trace_of_index(&self) -> Result<Option<PathBuf>, DataError> {
        let high = High::of(&self.index_file(IndexKind::default()));
        if high.exists().map_err(DataError::io(high.path()))? {
            return Ok(Some(high.path().to_owned()));
        }
        let packs = self.git().join("objects/pack");
        let entries = match std::fs::read_dir(&packs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(DataError::Io { path: packs, source: error }),
        };
        for entry in entries {
            let path = entry.map_err(DataError::io(&packs))?.path();
            if path.extension().is_some_and(|end| end == "pack") {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Opens the index, and creates it first in a new workspace; where [`Self::index_kind`] says that it is missing,
    /// that is an error. Asking for another form than the existing one is [`DataError::OtherIndex`].
    pub fn open_index(&self, options: IndexOptions) -> Result<Box<dyn IndexStore>, DataError> {
        let mut existing = self.index_kind()?;
        let mut _creating = None;
        if existing.is_none() {
            // Two processes that want different forms must not both get what they want.
            _creating = Some(self.data.lock()?);
            existing = self.index_kind()?;
        }
        let kind = match (existing, options.kind) {
            (Some(existing), Some(asked)) if existing != asked => {
                return Err(DataError::OtherIndex { existing, asked });
            }
            (existing, asked) => existing.or(asked).unwrap_or_default(),
        };
        let file = self.index_file(kind);
        // What was just there is never made anew.
        let new = existing.is_none();
        Ok(match kind {
            IndexKind::Sqlite => {
                let options = SqliteOptions { journal: options.journal, ..SqliteOptions::default() };
                let open = if new { SqliteIndex::create } else { SqliteIndex::open };
                Box::new(open(&file, options).map_err(DataError::Index)?)
            }
            IndexKind::Json => {
                let open = if new { JsonIndex::create } else { JsonIndex::open };
                Box::new(open(&file, JsonOptions::default()).map_err(DataError::Index)?)
            }
        })
    }
}
