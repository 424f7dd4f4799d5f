//! The error of everything that is given a path.

use std::{io, path::PathBuf};

/// A system call on a path failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}", path.display())]
pub struct Error {
    /// What was being done, as in "open" or "sync the directory".
    pub what: &'static str,
    /// To what.
    pub path: PathBuf,
    /// How it failed.
    pub source: io::Error,
}

impl Error {
    /// Names what was being done to which path.
    pub fn new(what: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self { what, path: path.into(), source: source.into() }
    }

    /// The kind of the underlying failure.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}
