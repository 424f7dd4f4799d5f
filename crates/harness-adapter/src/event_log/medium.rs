//! The bytes of one log, so that tests can let writing fail.

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

/// The file of a log, open for appending.
pub trait LogMedium: fmt::Debug + Send {
    /// Bytes it has.
    fn size(&self) -> io::Result<u64>;

    /// Appends and syncs. After an error any beginning of `bytes` may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts it to `len` bytes and syncs.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

impl LogMedium for File {
    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|facts| facts.len())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)?;
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.sync_data()
    }
}

/// Opens the medium of a log that exists.
pub(super) type Open = Arc<dyn Fn(&Path) -> io::Result<Box<dyn LogMedium>> + Send + Sync>;

/// Real files.
pub(super) fn files() -> Open {
    Arc::new(|path| Ok(Box::new(File::options().append(true).open(path)?)))
}
