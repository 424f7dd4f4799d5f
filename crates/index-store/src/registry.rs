//! Which directories are workspaces, and which workspace a directory is.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use checkpoint_core::{Timestamp, WorkspaceId};

use crate::{
    error::DataError,
    layout::DataDir,
    registry_file::{Entries, keep_root},
};

/// What tells one directory from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Birth time in nanoseconds since 1970, where the system reports one.
    pub born: Option<i64>,
}

impl Identity {
    /// Of the directory at `path`.
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = durable_fs::identity(path).map_err(|error| error.source)?;
        let born = found.birth_ns.and_then(|born| born.try_into().ok());
        Ok(Self { device: found.device, inode: found.inode, born })
    }

    /// True when both are of one directory, as far as can be told: a birth time counts where both have one.
    pub fn is(&self, other: &Self) -> bool {
        let same_birth = match (self.born, other.born) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        self.device == other.device && self.inode == other.inode && same_birth
    }
}

/// One registered workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workspace {
    /// Random id.
    pub id: WorkspaceId,
    /// Canonical path of its root.
    pub root: PathBuf,
    /// Identity of its root.
    pub identity: Identity,
    /// Canonical path of the git common directory, which helps to recognise a root that was moved.
    pub git_common_dir: Option<PathBuf>,
    /// How many directories have been its root, from 1.
    pub incarnation: u32,
    /// When it was registered.
    pub created: Timestamp,
}

/// How a directory stands to a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is the root.
    Known,
    /// It was registered just now.
    New,
    /// It has the root's path but is another directory: re-cloned, another container. Points of older incarnations
    /// give no evidence and need `--adopt`.
    NewIncarnation,
    /// It is the root, at another path; [`Registry::adopt`] makes that so.
    Moved,
}

/// A directory that is the root of a workspace, or claims to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The workspace as it is registered.
    pub workspace: Workspace,
    /// Canonical path of the directory.
    pub root: PathBuf,
    /// How they stand to each other.
    pub standing: Standing,
}

/// Why a directory is registered only with `--force`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is `/`.
    FileSystemRoot,
    /// It is a home directory, or holds one.
    Home,
    /// It holds the data directory, or lies in it.
    DataDirectory,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FileSystemRoot => "it is the root of the file system",
            Self::Home => "it is or holds a home directory",
            Self::DataDirectory => "it overlaps the data directory",
        })
    }
}

/// Why `root` should not be a workspace, if anything speaks against it. All paths may be relative or not exist.
pub fn refusal(root: &Path, data: &DataDir, home: Option<&Path>) -> Option<Refusal> {
    let root = resolve(root);
    let data = resolve(data.path());
    if root.parent().is_none() {
        Some(Refusal::FileSystemRoot)
    } else if home.is_some_and(|home| resolve(home).starts_with(&root)) {
        Some(Refusal::Home)
    } else if data.starts_with(&root) || root.starts_with(&data) {
        Some(Refusal::DataDirectory)
    } else {
        None
    }
}

/// The canonical path, as far as it exists.
fn resolve(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    for above in path.ancestors() {
        if let Ok(mut known) = above.canonicalize() {
            known.extend(missing.iter().rev());
            return known;
        }
        missing.extend(above.file_name());
    }
    path.clone()
}

/// What registering a root takes.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The id it gets if it is new, from an [`IdSource`](checkpoint_core::IdSource).
    pub id: WorkspaceId,
    /// Now.
    pub now: Timestamp,
    /// The git common directory of the root, where it has one.
    pub git_common_dir: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Register what [`refusal`] speaks against.
    pub force: bool,
    /// Register a root that seems to have been moved as a workspace of its own.
    pub as_new: bool,
}

/// The registered workspaces of a data directory, in `workspaces.json`.
#[derive(Clone, Debug)]
pub struct Registry {
    data: DataDir,
}

impl Registry {
    /// The registry of a data directory, which need not exist.
    pub fn new(data: DataDir) -> Self {
        Self { data }
    }

    /// All workspaces, in path order.
    pub fn list(&self) -> Result<Vec<Workspace>, DataError> {
        let mut all = Entries::load(&self.data)?.workspaces()?;
        all.sort_by(|one, two| one.root.cmp(&two.root));
        Ok(all)
    }

    /// One workspace.
    pub fn get(&self, id: &WorkspaceId) -> Result<Option<Workspace>, DataError> {
        Ok(self.list()?.into_iter().find(|workspace| workspace.id == *id))
    }

    /// The nearest registered workspace at or above `start`. Changes nothing: a [`Standing::NewIncarnation`] is
    /// counted when the root is registered again, a [`Standing::Moved`] root is its own after [`Registry::adopt`].
    pub fn find(&self, start: &Path) -> Result<Option<Found>, DataError> {
        let start = start.canonicalize().map_err(DataError::io(start))?;
        let all = self.list()?;
        if all.is_empty() {
            return Ok(None);
        }
        for root in start.ancestors() {
            let Ok(identity) = Identity::of(root) else {
                continue;
            };
            if let Some(found) = stand(&all, root, identity, None) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Workspaces whose root lies at, above or below `path`, in path order: what an operation there has to lock.
    pub fn overlapping(&self, path: &Path) -> Result<Vec<Workspace>, DataError> {
        let path = resolve(path);
        let mut all = self.list()?;
        all.retain(|workspace| workspace.root.starts_with(&path) || path.starts_with(&workspace.root));
        Ok(all)
    }

    /// Registers a root, or finds that it is registered. Atomic and durable. For [`Standing::Moved`] nothing is
    /// written, and [`Found::workspace`] names the path it had.
    pub fn register(&self, root: &Path, registration: &Registration) -> Result<Found, DataError> {
        let root = root.canonicalize().map_err(DataError::io(root))?;
        if !root.is_dir() {
            return Err(DataError::NoDirectory { root });
        }
        let git = registration.git_common_dir.as_deref().map(resolve);
        // Nearly always there is nothing to write, and then nothing to lock.
        let identity = Identity::of(&root).map_err(DataError::io(&root))?;
        let found = stand(&self.list()?, &root, identity, git.as_deref());
        match found {
            Some(found)
                if found.standing == Standing::Known
                    && found.workspace.git_common_dir == git
                    && self.data.workspace(&found.workspace.id).root_file().exists() =>
            {
                return Ok(found);
            }
            // What was forced once stays.
            Some(Found { standing: Standing::Known | Standing::NewIncarnation, .. }) => {}
            _ => {
                if !registration.force
                    && let Some(why) = refusal(&root, &self.data, registration.home.as_deref())
                {
                    return Err(DataError::Refused { root, why });
                }
            }
        }
        self.change(|entries| {
            let identity = Identity::of(&root).map_err(DataError::io(&root))?;
            let all = entries.workspaces()?;
            let known = stand(&all, &root, identity, git.as_deref())
                .filter(|found| !(registration.as_new && found.standing == Standing::Moved));
            let mut found = match known {
                Some(found) => found,
                None => match self.lost(entries, &root, &identity)? {
                    // The registry was lost; the points of this very directory are not.
                    Some(workspace) => Found { workspace, root: root.clone(), standing: Standing::Known },
                    None => Found {
                        workspace: Workspace {
                            id: registration.id,
                            root: root.clone(),
                            identity,
                            git_common_dir: git.clone(),
                            incarnation: 1,
                            created: registration.now,
                        },
                        root: root.clone(),
                        standing: Standing::New,
                    },
                },
            };
            let workspace = &mut found.workspace;
            match found.standing {
                Standing::Moved => return Ok(found),
                Standing::New => {}
                // `.git` comes and goes without making another directory of the root.
                Standing::Known => workspace.git_common_dir.clone_from(&git),
                Standing::NewIncarnation => {
                    workspace.incarnation += 1;
                    workspace.identity = identity;
                    workspace.git_common_dir.clone_from(&git);
                }
            }
            self.put(entries, workspace)?;
            Ok(found)
        })
    }

    /// Makes `root` the root of workspace `id`: it was moved there. Where it is another directory than before, as
    /// after a move between file systems, it is a new incarnation too.
    ///
    /// A workspace whose root was at that path and is no longer there is retired: it keeps its data and is listed no
    /// more. One that has its root there is [`DataError::Occupied`].
    pub fn adopt(&self, root: &Path, id: &WorkspaceId, git_common_dir: Option<&Path>) -> Result<Workspace, DataError> {
        let root = root.canonicalize().map_err(DataError::io(root))?;
        self.change(|entries| {
            let identity = Identity::of(&root).map_err(DataError::io(&root))?;
            let all = entries.workspaces()?;
            let mut workspace =
                all.iter().find(|workspace| workspace.id == *id).cloned().ok_or(DataError::Unknown(*id))?;
            for other in all.iter().filter(|other| other.root == root && other.id != *id) {
                if other.identity.is(&identity) {
                    return Err(DataError::Occupied { root: root.clone(), by: other.id });
                }
                entries.retire(&other.id);
            }
            if !workspace.identity.is(&identity) {
                workspace.incarnation += 1;
            }
            workspace.root.clone_from(&root);
            workspace.identity = identity;
            workspace.git_common_dir = git_common_dir.map(resolve);
            self.put(entries, &workspace)?;
            Ok(workspace)
        })
    }

    /// Puts a workspace on the list, after its own directory says so too: what is registered can be found again.
    pub(crate) fn put(&self, entries: &mut Entries, workspace: &Workspace) -> Result<(), DataError> {
        keep_root(&self.data.workspace(&workspace.id), workspace)?;
        entries.put(workspace)
    }

    pub(crate) fn data(&self) -> &DataDir {
        &self.data
    }

    /// Changes the registry under the lock of the data directory.
    fn change<T>(&self, change: impl FnOnce(&mut Entries) -> Result<T, DataError>) -> Result<T, DataError> {
        self.data.create()?;
        let _locked = self.data.lock()?;
        let mut entries = Entries::load(&self.data)?;
        let outcome = change(&mut entries)?;
        entries.save(&self.data)?;
        Ok(outcome)
    }
}

/// How the directory at `root` stands to the workspaces; `None` when it is none of them.
fn stand(all: &[Workspace], root: &Path, identity: Identity, git: Option<&Path>) -> Option<Found> {
    let found =
        |workspace: &Workspace, standing| Some(Found { workspace: workspace.clone(), root: root.to_owned(), standing });
    let by_path = all.iter().find(|workspace| workspace.root == root);
    if let Some(workspace) = by_path
        && workspace.identity.is(&identity)
    {
        return found(workspace, Standing::Known);
    }
    // Inode numbers are used again: without a birth time they do not outweigh a path that matches.
    let by_identity = all
        .iter()
        .filter(|workspace| workspace.root != root && workspace.identity.is(&identity))
        .find(|workspace| by_path.is_none() || (identity.born.is_some() && workspace.identity.born.is_some()));
    if let Some(workspace) = by_identity {
        // Still there as well: one directory under two paths, as a bind mount makes it.
        let still_there = Identity::of(&workspace.root).is_ok_and(|there| workspace.identity.is(&there));
        return found(workspace, if still_there { Standing::Known } else { Standing::Moved });
    }
    if let Some(workspace) = by_path {
        return found(workspace, Standing::NewIncarnation);
    }
    // A linked worktree that was moved to another file system: only its repository is left to know it by, and several
    // worktrees may share that.
    let git = git?;
    let mut gone = all.iter().filter(|workspace| {
        workspace.git_common_dir.as_deref() == Some(git)
            && matches!(workspace.root.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
    });
    match (gone.next(), gone.next()) {
        (Some(workspace), None) => found(workspace, Standing::Moved),
        _ => None,
    }
}
