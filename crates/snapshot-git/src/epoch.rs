//! The store's epoch: a number that moves whenever objects are removed (design § 4, model F19).

use std::{fmt, io, path::PathBuf};

use durable_fs::{Access, Durability, replace};

use crate::walk::now;

/// Tells holders of cached ids whether objects may have gone since.
pub trait Epoch: fmt::Debug + Send + Sync {
    /// The present epoch.
    ///
    /// # Errors
    /// When it cannot be told: then nothing cached counts.
    fn current(&self) -> io::Result<u64>;

    /// Moves on, durable before it returns. Called under the exclusive lock, before the first removal.
    ///
    /// # Errors
    /// Then nothing may be removed.
    fn bump(&self) -> io::Result<()>;
}

/// An epoch kept in a small file, replaced as a whole.
#[derive(Clone, Debug)]
pub struct EpochFile {
    path: PathBuf,
}

impl EpochFile {
    /// The epoch at `path`, whose directory exists. A missing file is epoch 0.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Epoch for EpochFile {
    fn current(&self) -> io::Result<u64> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => text.trim_end().parse().map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn bump(&self) -> io::Result<()> {
        // A damaged number cannot be moved on: any other would do, but an equal one must never come again.
        let next = match self.current() {
            Ok(now) => now.wrapping_add(1),
            Err(error) if error.kind() == io::ErrorKind::Other => fresh(),
            Err(error) => return Err(error),
        };
        replace(&self.path, format!("{next}\n").as_bytes(), Access::Private, Durability::Synced)
            .map_err(io::Error::other)
    }
}

/// A number far above any that counting reaches.
fn fresh() -> u64 {
    u64::try_from(now()).unwrap_or(0) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_on_and_survives_damage() {
        let dir = tempfile::tempdir().unwrap();
        let epoch = EpochFile::new(dir.path().join("epoch"));
        assert_eq!(epoch.current().unwrap(), 0);
        epoch.bump().unwrap();
        epoch.bump().unwrap();
        assert_eq!(epoch.current().unwrap(), 2);
        std::fs::write(dir.path().join("epoch"), "x").unwrap();
        assert!(epoch.current().is_err());
        epoch.bump().unwrap();
        assert!(epoch.current().unwrap() > 2);
    }
}
