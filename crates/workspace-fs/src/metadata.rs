//! Owner, group, ACL and extended attributes of a file that is replaced.

use std::{fs::File, io};

use checkpoint_core::FsError;
use durable_fs::{Attribute, Kind, Stat, read_attributes, remove_attribute, write_attribute};
use rustix::process::{Gid, getegid, geteuid, getgroups};

use crate::place::{Opened, Place};

/// What a replacement takes over from what it replaces.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    uid: u32,
    gid: u32,
    /// Of a file that is replaced by a file; another kind of thing cannot carry them.
    attributes: Option<Vec<Attribute>>,
}

/// Signatures of content: they would be wrong for other content, and the kernel makes new ones.
fn is_signature(name: &[u8]) -> bool {
    matches!(name, b"security.ima" | b"security.evm")
}

impl Place<'_> {
    fn unkept(&self) -> FsError {
        FsError::Metadata { path: self.path.clone() }
    }

    /// Reads what is to be kept of what `stat` describes, and fails where it is plain that this user may not set it.
    /// `open`: that very file, where it is open already.
    pub(crate) fn kept(&self, stat: &Stat, open: Option<&File>, by_file: bool) -> Result<Kept, FsError> {
        let attributes = match open {
            _ if stat.kind != Kind::File || !by_file => None,
            Some(file) => Some(self.attributes(file)?),
            None => match self.open_file(self.name)? {
                Opened::File(file, _) => Some(self.attributes(&file)?),
                Opened::Other | Opened::Denied => return Err(self.unkept()),
            },
        };
        let kept = Kept { uid: stat.uid, gid: stat.gid, attributes };
        let dir = self.dir_stat().map_err(|e| self.failed(e))?;
        if self.may_set(&kept, &dir)? { Ok(kept) } else { Err(self.unkept()) }
    }

    fn attributes(&self, file: &File) -> Result<Vec<Attribute>, FsError> {
        let mut found = read_attributes(file).map_err(|e| self.failed(e))?;
        found.retain(|attribute| !is_signature(&attribute.name));
        Ok(found)
    }

    /// What only a superuser is allowed. A superuser of a container may yet fail, which shows when it is done.
    fn may_set(&self, kept: &Kept, dir: &Stat) -> Result<bool, FsError> {
        if geteuid().is_root() {
            return Ok(true);
        }
        let inherits = dir.mode & 0o2000 != 0 && dir.gid == kept.gid;
        let own_group = inherits || kept.gid == getegid().as_raw() || {
            let groups = getgroups().map_err(|e| self.failed(e.into()))?;
            groups.contains(&Gid::from_raw(kept.gid))
        };
        let privileged = |a: &Attribute| a.name.starts_with(b"trusted.") || a.name == b"security.capability";
        Ok(kept.uid == geteuid().as_raw() && own_group && !kept.attributes.iter().flatten().any(privileged))
    }

    /// True when this user may change the permission bits of what `stat` describes.
    pub(crate) fn may_chmod(stat: &Stat) -> bool {
        geteuid().is_root() || geteuid().as_raw() == stat.uid
    }

    /// Gives a temporary the owner and group that are kept.
    pub(crate) fn keep_owner(&self, name: &[u8], kept: &Kept) -> Result<(), FsError> {
        let Some(now) = self.stat(name)? else {
            return Err(self.failed(io::ErrorKind::NotFound.into()));
        };
        let (uid, gid) = ((now.uid != kept.uid).then_some(kept.uid), (now.gid != kept.gid).then_some(kept.gid));
        if uid.is_none() && gid.is_none() {
            return Ok(());
        }
        self.workspace.point("chown a draft");
        self.dir.chown(name, uid, gid).map_err(|e| self.sorted(e))
    }

    /// Gives a temporary file exactly the attributes that are kept, those it inherited from its directory removed.
    pub(crate) fn keep_attributes(&self, file: &File, kept: &Kept) -> Result<(), FsError> {
        let Some(wanted) = &kept.attributes else {
            return Ok(());
        };
        let now = self.attributes(file)?;
        for extra in now.iter().filter(|a| !wanted.iter().any(|w| w.name == a.name)) {
            self.workspace.point("remove an attribute of a draft");
            remove_attribute(file, &extra.name).map_err(|e| self.sorted(e))?;
        }
        for missing in wanted.iter().filter(|a| !now.contains(a)) {
            self.workspace.point("set an attribute of a draft");
            write_attribute(file, missing).map_err(|e| self.sorted(e))?;
        }
        Ok(())
    }

    /// A full disk is no reason to call a file's metadata unkeepable.
    fn sorted(&self, e: io::Error) -> FsError {
        match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem => {
                self.failed(e)
            }
            _ => self.unkept(),
        }
    }
}
