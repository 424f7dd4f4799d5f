//! The store's epoch: a number that moves whenever objects are removed (design § 4, model F19).

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

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
        // A damaged number is replaced by one that no cache can carry: the next after the largest by time.
        let next = match self.current() {
            Ok(now) => now.wrapping_add(1),
            Err(error) if error.kind() == io::ErrorKind::Other => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            }
            Err(error) => return Err(error),
        };
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let fresh = PathBuf::from(name);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        writeln!(file, "{next}")?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()
    }
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
