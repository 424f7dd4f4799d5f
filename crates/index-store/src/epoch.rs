//! The counter that tells holders of cached ids and open packs that objects were removed.

use std::{
    io,
    path::{Path, PathBuf},
};

use durable_fs::{Access, Durability, replace};

use crate::error::DataError;

/// The epoch of a store (design § 4, model F19).
///
/// Whoever removes objects bumps it, under the exclusive lock and before the first removal. Whoever has kept ids or
/// packs compares it after taking the lock, and forgets them when it differs.
#[derive(Clone, Debug)]
pub struct Epoch {
    path: PathBuf,
}

impl Epoch {
    /// The epoch in the file `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current number; zero where nothing was ever removed.
    pub fn read(&self) -> Result<u64, DataError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => {
                return Err(DataError::Io { path: self.path.clone(), source: error });
            }
        };
        text.trim_end()
            .parse()
            .map_err(|source| DataError::Damaged { path: self.path.clone(), source: Box::new(source) })
    }

    /// Counts on, durably before it returns, and gives the new number. The caller holds the exclusive lock.
    pub fn bump(&self) -> Result<u64, DataError> {
        let next = self.read()? + 1;
        replace(&self.path, format!("{next}\n").as_bytes(), Access::Private, Durability::Synced)?;
        Ok(next)
    }
}
