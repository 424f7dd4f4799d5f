//! Workspaces that the registry does not know any more: it was lost, damaged, or put back from an old copy.

use std::path::{Path, PathBuf};

use checkpoint_core::WorkspaceId;

use crate::{
    error::DataError,
    registry::{Identity, Registry, Workspace},
    registry_file::{Entries, kept_root},
};

/// A workspace directory with points that the registry does not name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orphan {
    /// The workspace.
    pub id: WorkspaceId,
    /// What its directory says of its root; `None` where that cannot be read.
    pub workspace: Option<Workspace>,
    /// The root is there, the same directory under the same path.
    pub exact: bool,
}

/// What [`Registry::orphans`] found.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Why the registry cannot be read; all workspaces are orphans then.
    pub damaged: Option<DataError>,
    /// How many workspaces are registered.
    pub registered: usize,
    /// In the order of their ids.
    pub orphans: Vec<Orphan>,
}

/// What [`Registry::relink`] did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Relinked {
    /// Registered again.
    pub relinked: Vec<Orphan>,
    /// Left alone: what their root was is not known, or another workspace has its path.
    pub left: Vec<Orphan>,
    /// Where the damaged registry is kept.
    pub set_aside: Option<PathBuf>,
}

impl Registry {
    /// Looks for workspaces that have points and are not registered. Changes nothing.
    ///
    /// # Errors
    /// When the data directory cannot be read, or the registry has another major version.
    pub fn orphans(&self) -> Result<Orphans, DataError> {
        let mut found = Orphans::default();
        let entries = match Entries::load(self.data()).and_then(|entries| Ok((entries.workspaces()?.len(), entries))) {
            Ok((registered, entries)) => {
                found.registered = registered;
                Some(entries)
            }
            Err(error @ DataError::Damaged { .. }) => {
                found.damaged = Some(error);
                None
            }
            Err(error) => return Err(error),
        };
        found.orphans = self.unknown_to(entries.as_ref())?;
        Ok(found)
    }

    /// Whether what the workspace's directory keeps of its entry (`root.json`) says the same as the registry.
    pub fn is_kept(&self, workspace: &Workspace) -> bool {
        kept_root(&self.data().workspace(&workspace.id), &workspace.id).as_ref() == Some(workspace)
    }

    /// Fails when a workspace that has no index yet is in truth one that has: when its entry lost its id, the points are in
    /// a directory that the registry does not name, of the very same root. A new index would hide them.
    ///
    /// # Errors
    /// [`DataError::Damaged`], and when the data directory cannot be read.
    pub fn check_new(&self, workspace: &Workspace) -> Result<(), DataError> {
        let entries = Entries::load(self.data())?;
        let mut hidden = self.unknown_to(Some(&entries))?.into_iter().filter(|orphan| {
            orphan.workspace.as_ref().is_some_and(|o| o.root == workspace.root && o.identity.is(&workspace.identity))
        });
        match hidden.next() {
            None => Ok(()),
            Some(hidden) => Err(DataError::Damaged {
                path: self.data().registry_file(),
                source: format!(
                    "it names workspace {} for {}, whose points are in workspace {}; put that id in its place",
                    workspace.id,
                    workspace.root.display(),
                    hidden.id
                )
                .into(),
            }),
        }
    }

    /// Registers orphans again, each with the root it had. Atomic and durable.
    ///
    /// One whose root is exactly there works at once. One whose root is gone, or is another directory now, stands as it
    /// would if the registry had never been lost: a moved root is taken over by [`Registry::adopt`]. A damaged registry
    /// is kept under another name.
    ///
    /// # Errors
    /// As [`Registry::orphans`], and where the registry cannot be written.
    pub fn relink(&self) -> Result<Relinked, DataError> {
        self.data().create()?;
        let _locked = self.data().lock()?;
        let mut done = Relinked::default();
        let loaded = Entries::load(self.data()).and_then(|entries| entries.workspaces().map(|_| entries));
        let mut entries = match loaded {
            Err(DataError::Damaged { .. }) => {
                let (entries, aside) = Entries::set_aside(self.data())?;
                done.set_aside = Some(aside);
                entries
            }
            other => other?,
        };
        let mut orphans = self.unknown_to(Some(&entries))?;
        // Where several had one path, the one that is there now comes first, then the newest.
        let age = |orphan: &Orphan| orphan.workspace.as_ref().map(|workspace| workspace.created.0);
        orphans.sort_by_key(|orphan| (!orphan.exact, std::cmp::Reverse(age(orphan))));
        for orphan in orphans {
            let root = orphan.workspace.as_ref().map(|workspace| &workspace.root);
            let taken = entries.workspaces()?.iter().any(|other| Some(&other.root) == root);
            match &orphan.workspace {
                Some(workspace) if !taken => {
                    self.put(&mut entries, workspace)?;
                    done.relinked.push(orphan);
                }
                _ => done.left.push(orphan),
            }
        }
        entries.save(self.data())?;
        Ok(done)
    }

    /// The workspace whose root `root` was before the registry forgot it.
    pub(crate) fn lost(
        &self,
        entries: &Entries,
        root: &Path,
        identity: &Identity,
    ) -> Result<Option<Workspace>, DataError> {
        let all = self.unknown_to(Some(entries))?.into_iter().filter(|orphan| orphan.exact);
        let mut all: Vec<Workspace> = all.filter_map(|orphan| orphan.workspace).collect();
        all.retain(|workspace| workspace.root == root && workspace.identity.is(identity));
        Ok(all.into_iter().max_by_key(|workspace| workspace.created.0))
    }

    fn unknown_to(&self, entries: Option<&Entries>) -> Result<Vec<Orphan>, DataError> {
        let mut orphans = Vec::new();
        for id in self.data().workspace_ids()? {
            let dir = self.data().workspace(&id);
            if entries.is_some_and(|entries| entries.knows(&id)) {
                continue;
            }
            // A registration that did not come to its end left nothing that anybody could miss. An index that is
            // damaged or missing is something.
            if matches!(dir.index_kind(), Ok(None)) {
                continue;
            }
            let workspace = kept_root(&dir, &id);
            let there = |workspace: &Workspace| Identity::of(&workspace.root).ok();
            let exact = workspace.as_ref().is_some_and(|w| there(w).is_some_and(|now| w.identity.is(&now)));
            orphans.push(Orphan { id, workspace, exact });
        }
        Ok(orphans)
    }
}
