//! What the sidecar is composed with: where workspaces come from, and by which settings.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checkpoint_core::{
    CapturePolicy, EngineBuilder, FilesWhere, GuardMode, IndexStore, Point, Quota, SessionLog, SnapshotBackend,
    StoreLock,
};

use super::problem::Failure;
use super::protocol::Check;

/// What an agent may do by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MayRestore {
    /// The same as a person.
    Allow,
    /// Somebody must say yes.
    #[default]
    Ask,
    /// Nothing.
    Never,
}

impl MayRestore {
    /// As in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }
}

/// Settings of a workspace, as they are now.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Where files are restored at all.
    pub files: FilesWhere,
    /// What happens when a path cannot be guarded.
    pub guard: GuardMode,
    /// What an agent may do.
    pub may_restore: MayRestore,
    /// The sidecar runs inside an agent that works in this workspace: its word is not a person's.
    pub by_agent: bool,
    /// How long to wait for the lock.
    pub lock_wait: Duration,
    /// What captures cover.
    pub capture: CapturePolicy,
    /// How long points live.
    pub quota: Quota,
    /// What could not be read or was not allowed.
    pub warnings: Vec<String>,
}

/// Opens workspaces.
pub trait Workspaces: fmt::Debug + Send + Sync {
    /// The workspace at or above `dir`; where there is none and `register` says so, `dir` becomes one.
    fn open(&self, dir: &Path, register: bool) -> Result<Arc<dyn Workspace>, Failure>;

    /// The logs of a harness, in `home` where that is given; `None` where they cannot be read here.
    fn logs(&self, harness: &str, home: Option<&Path>) -> Option<Arc<dyn SessionLog>>;
}

/// An open workspace: its parts stay open between requests.
pub trait Workspace: fmt::Debug + Send + Sync {
    /// Its root, canonical.
    fn root(&self) -> &Path;

    /// True when opening it made it one.
    fn is_new(&self) -> bool;

    /// The incarnation of the root that it was opened on.
    fn incarnation(&self) -> u32;

    /// True as long as the parts are those of what is at the root now: not after the root was replaced, moved or adopted.
    /// Cheap; asked before every request.
    fn is_current(&self) -> bool;

    /// Whether the root lies in a git worktree, and whether that has a commit.
    fn git(&self) -> (bool, bool);

    /// The settings, read anew.
    fn rules(&self) -> Result<Rules, Failure>;

    /// Starts composing an engine of the open parts. Cheap; done for every request.
    fn compose(&self, rules: &Rules) -> EngineBuilder;

    /// The parts that reads without an engine need.
    fn parts(&self) -> Parts<'_>;

    /// The directory of its store's objects, absolute.
    fn objects(&self) -> PathBuf;

    /// Retention and housekeeping after a point, when nobody waits.
    fn after(&self, rules: &Rules, point: &Point);

    /// Looks at what protection depends on.
    fn examine(&self) -> Vec<Check>;
}

/// Parts of an open workspace.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Its index.
    pub index: &'a dyn IndexStore,
    /// Its store.
    pub snapshots: &'a dyn SnapshotBackend,
    /// Its lock.
    pub lock: &'a dyn StoreLock,
}
