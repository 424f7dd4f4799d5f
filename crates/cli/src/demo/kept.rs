//! What a whole tree holds, independent of everything that rwd does.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::CliError;

/// Type, permission bits and content of every path, git directory included.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Kept(BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>);

impl Kept {
    pub(super) fn of(top: &Path) -> Result<Self, CliError> {
        let mut all = BTreeMap::new();
        read(top, top, &mut all)
            .map_err(|source| CliError::failure("the demonstration's tree cannot be read", source))?;
        Ok(Self(all))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Paths that are not the same in both.
    pub(super) fn differing(&self, other: &Self) -> Vec<Vec<u8>> {
        let names = self.0.keys().chain(other.0.keys());
        let mut differing: Vec<Vec<u8>> =
            names.filter(|name| self.0.get(*name) != other.0.get(*name)).cloned().collect();
        differing.sort();
        differing.dedup();
        differing
    }
}

fn read(top: &Path, dir: &Path, all: &mut BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let facts = path.symlink_metadata()?;
        let name = path.strip_prefix(top).unwrap_or(&path).as_os_str().as_bytes().to_vec();
        let mode = facts.permissions().mode() & 0o7777;
        if facts.is_dir() {
            all.insert(name, ('d', mode, Vec::new()));
            read(top, &path, all)?;
        } else if facts.is_symlink() {
            all.insert(name, ('l', 0, std::fs::read_link(&path)?.as_os_str().as_bytes().to_vec()));
        } else {
            let mut hash = Sha256::new();
            std::io::copy(&mut std::fs::File::open(&path)?, &mut hash)?;
            all.insert(name, ('f', mode, hash.finalize().to_vec()));
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write files")]
mod tests {
    use super::*;

    /// A demonstration that cannot fail would show nothing.
    #[test]
    fn a_single_byte_mode_or_link_text_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "one").unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("l")).unwrap();
        let before = Kept::of(dir.path()).unwrap();
        assert!(before.differing(&Kept::of(dir.path()).unwrap()).is_empty());
        std::fs::write(&file, "onf").unwrap();
        assert_eq!(before.differing(&Kept::of(dir.path()).unwrap()), [b"a".to_vec()]);
        std::fs::write(&file, "one").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::remove_file(dir.path().join("l")).unwrap();
        std::fs::create_dir(dir.path().join("new")).unwrap();
        assert_eq!(before.differing(&Kept::of(dir.path()).unwrap()).len(), 3);
    }
}
