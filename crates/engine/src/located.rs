//! A registered workspace, where its data lies, and the parts that are opened from there (design § 4).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoint_core::{
    Clock, IdSource, IndexStore, Overlap, Place, Required, SnapshotBackend, StoreLock, WorkspaceFs, WorkspaceId,
};
use index_store::{
    DataDir, DataError, Found, Identity, IndexKind, IndexOptions, Journal, Registration, Registry, Standing, Workspace,
    WorkspaceDir, WorkspaceLock,
};
use snapshot_git::{EpochFile, GitSnapshots};
use workspace_fs::RealWorkspace;

use crate::{OpenError, SystemClock, SystemIds};

/// A registered workspace and where its data lies.
#[derive(Clone, Debug)]
pub struct Located {
    /// As it is registered.
    pub workspace: Workspace,
    /// How its root stands to that.
    pub standing: Standing,
    /// Where it is registered.
    pub registry: Registry,
    /// The data directory.
    pub data: DataDir,
    /// Its part of that.
    pub dir: WorkspaceDir,
}

impl Located {
    /// What the registry of `data` found.
    pub fn new(found: Found, registry: Registry, data: DataDir) -> Self {
        let dir = data.workspace(&found.workspace.id);
        Self { workspace: found.workspace, standing: found.standing, registry, data, dir }
    }

    /// Registers `root`, or finds that it is registered. `home` is what may not be a workspace.
    ///
    /// # Errors
    /// Those of [`Registry::register`], and [`OpenError::Moved`].
    pub fn register(root: &Path, data: DataDir, home: Option<PathBuf>) -> Result<Self, OpenError> {
        let registry = Registry::new(data.clone());
        let registration = Self::registration(root, home);
        let found = registry.register(root, &registration)?;
        if found.standing == Standing::Moved {
            return Err(OpenError::Moved { root: found.root, before: found.workspace.root });
        }
        Ok(Self::new(found, registry, data))
    }

    /// What registering `root` takes, without any force.
    pub fn registration(root: &Path, home: Option<PathBuf>) -> Registration {
        Registration {
            id: WorkspaceId::from_bytes(SystemIds.next()),
            now: SystemClock.now(),
            git_common_dir: Self::git_common_dir(root),
            home,
            force: false,
            as_new: false,
        }
    }

    /// The git common directory of a root, where it lies in a worktree: it helps to recognise a moved root.
    pub fn git_common_dir(root: &Path) -> Option<PathBuf> {
        snapshot_git::git_common_dir(root)
    }

    /// The root, canonical.
    pub fn root(&self) -> &Path {
        &self.workspace.root
    }

    /// The incarnation that is there now: one that is not registered yet counts already.
    pub fn incarnation(&self) -> u32 {
        // Registering it counts it, and it stays a new one for whoever asked.
        let counted = || Identity::of(self.root()).is_ok_and(|root| self.workspace.identity.is(&root));
        match self.standing {
            Standing::NewIncarnation if !counted() => self.workspace.incarnation + 1,
            _ => self.workspace.incarnation,
        }
    }

    /// Other registered workspaces whose roots overlap this one and still exist.
    ///
    /// # Errors
    /// When the registry cannot be read.
    pub fn overlapping(&self) -> Result<Vec<Workspace>, DataError> {
        let mut others = self.registry.overlapping(self.root())?;
        others.retain(|other| other.id != self.workspace.id && other.root.is_dir());
        Ok(others)
    }

    /// Opens the index, made first in a new workspace: of `kind`, else as it is, else SQLite.
    ///
    /// # Errors
    /// Those of [`WorkspaceDir::open_index`].
    pub fn open_index(&self, kind: Option<IndexKind>) -> Result<Arc<dyn IndexStore>, DataError> {
        if self.dir.index_kind()?.is_none() {
            self.registry.check_new(&self.workspace)?;
        }
        self.dir.create()?;
        Ok(self.dir.open_index(IndexOptions { kind, journal: journal(self.dir.path()) })?.into())
    }

    /// Opens the object store, made first in a new workspace.
    ///
    /// # Errors
    /// Those of [`GitSnapshots::open`].
    pub fn open_store(&self) -> Result<GitSnapshots, OpenError> {
        self.open_store_with(None)
    }

    /// The same for a process that stays: it watches the workspace, so that a capture before a tool need not walk it.
    ///
    /// # Errors
    /// Those of [`GitSnapshots::open`].
    pub fn open_resident_store(&self) -> Result<GitSnapshots, OpenError> {
        self.open_store_with(Some(Arc::new(snapshot_git::SystemWatchers)))
    }

    fn open_store_with(&self, watchers: Option<Arc<dyn snapshot_git::Watchers>>) -> Result<GitSnapshots, OpenError> {
        self.dir.create()?;
        let epoch = Arc::new(EpochFile::new(self.dir.epoch().path()));
        let mut options = snapshot_git::Options::new(epoch);
        options.data_dir = Some(self.data.path().to_owned());
        options.watchers = watchers;
        Ok(GitSnapshots::open(self.root(), &self.dir.git(), &self.dir.stat_cache(), options)?)
    }

    /// Opens the user's files.
    ///
    /// # Errors
    /// Those of [`RealWorkspace::with_options`].
    pub fn open_files(&self) -> Result<RealWorkspace, OpenError> {
        let reserved = vec![self.data.path().to_owned()];
        let options = workspace_fs::Options { reserved, ..workspace_fs::Options::default() };
        Ok(RealWorkspace::with_options(self.root(), options)?)
    }

    /// Other workspaces that an operation here must respect; `lock` says how their locks are waited for.
    ///
    /// # Errors
    /// When the registry or one of their indexes cannot be read.
    pub fn overlaps(&self, lock: &dyn Fn(WorkspaceLock) -> Arc<dyn StoreLock>) -> Result<Vec<Overlap>, DataError> {
        let mut overlaps = Vec::new();
        for other in self.overlapping()? {
            let dir = self.data.workspace(&other.id);
            if dir.index_kind()?.is_none() {
                continue;
            }
            let options = IndexOptions { kind: None, journal: journal(dir.path()) };
            let index: Arc<dyn IndexStore> = dir.open_index(options)?.into();
            tracing::debug!(root = %other.root.display(), "overlaps");
            overlaps.push(Overlap { lock: lock(dir.lock()), index, before: other.root < self.workspace.root });
        }
        Ok(overlaps)
    }

    /// The parts with the system's clock and randomness.
    pub fn required(
        &self,
        index: Arc<dyn IndexStore>,
        snapshots: Arc<dyn SnapshotBackend>,
        files: Arc<dyn WorkspaceFs>,
        lock: Arc<dyn StoreLock>,
    ) -> Required {
        Required {
            place: Place { workspace: self.workspace.id, incarnation: self.incarnation() },
            snapshots,
            index,
            files,
            lock,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        }
    }
}

/// How SQLite keeps its journal in `dir`: not with shared memory where the file system may not have it.
pub fn journal(dir: &Path) -> Journal {
    let facts = std::fs::File::open(dir).and_then(durable_fs::fs_facts);
    match facts {
        Ok(facts) if facts.local || facts.name == "unknown" => Journal::Wal,
        _ => Journal::Delete,
    }
}
