//! The index as one append-only file of checksummed lines.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use checkpoint_core::{Batch, IndexError, LockMode, Revision};
use durable_fs::OpenLock;

use crate::{
    apply::apply,
    durable,
    format::Format,
    high::{High, Reached},
    line::{self, LineError},
    query,
    rows::Rows,
    surface::index_store,
    tree::{Journal, Tree},
};

/// How a [`JsonIndex`] behaves.
#[derive(Clone, Copy, Debug)]
pub struct JsonOptions {
    /// How long to wait for another process before [`IndexError::Busy`].
    pub busy: Duration,
    /// Size in bytes above which `maintain` compacts a file of which at least half is history.
    pub compact_above: u64,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self { busy: Duration::from_secs(10), compact_above: 1 << 20 }
    }
}

/// An index in a text file: one checksummed batch a line.
///
/// A batch is one appended line and one sync. An unfinished line at the end is what a crash leaves: it reads as if it
/// were not there, and the next batch cuts it off. Anything else that does not read is [`IndexError::Damaged`].
/// Several handles, in one process or many, may be used on one file; an advisory lock on it orders them. A file that
/// is not as far as the mark beside it (`index.high`) says has lost lines and is damaged too.
#[derive(Debug)]
pub struct JsonIndex {
    path: PathBuf,
    options: JsonOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: Log,
    poisoned: bool,
}

/// The file as far as it has been read.
#[derive(Debug)]
struct Log {
    file: Arc<File>,
    writable: bool,
    tree: Tree,
    revision: u64,
    lines: usize,
    /// Bytes read, all of them whole lines.
    read: u64,
    /// Length of the first line: what a compacted file begins with.
    base: u64,
    /// The name is known to be durable.
    named: bool,
}

impl JsonIndex {
    /// Opens an index that exists.
    pub fn open(path: &Path, options: JsonOptions) -> Result<Self, IndexError> {
        let (log, locked) = Log::open_locked(path, LockMode::Shared, options.busy)?;
        drop(locked);
        Ok(Self { path: path.to_owned(), options, state: Mutex::new(State { log, poisoned: false }) })
    }

    /// Opens an index, and creates it first when there is none. Two processes may do so at once.
    pub fn create(path: &Path, options: JsonOptions) -> Result<Self, IndexError> {
        if !path.try_exists().map_err(io_error)? {
            High::of(path).check_new(path)?;
            let line = line::write(Format::CURRENT, 0, std::iter::empty()).map_err(|source| unwritable(&source))?;
            let temporary = durable::temporary(path).map_err(io_error)?;
            durable::create_new(&temporary)
                .and_then(|mut file| file.write_all(&line))
                .and_then(|()| durable::publish(&temporary, path))
                .inspect_err(|_| durable::discard(&temporary))
                .map_err(io_error)?;
        }
        Self::open(path, options)
    }

    fn read<T>(&self, query: impl FnOnce(&dyn Rows) -> Result<T, IndexError>) -> Result<T, IndexError> {
        let mut state = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        if state.poisoned {
            return Err(IndexError::Poisoned);
        }
        if !state.log.is_current(&self.path).map_err(io_error)? {
            // Under the lock: what somebody has written and not yet synced may still be taken back.
            drop(self.lock(&mut state.log, LockMode::Shared)?);
        }
        query(&state.log.tree)
    }

    /// Locks the file that has the name now and reads what others appended.
    fn lock(&self, log: &mut Log, mode: LockMode) -> Result<OpenLock, IndexError> {
        let locked = durable::lock(&log.file, mode, self.options.busy).map_err(io_error)?.ok_or(IndexError::Busy)?;
        if durable::is_at(&log.file, &self.path).map_err(io_error)? {
            log.catch_up()?;
            log.check(&self.path)?;
            return Ok(locked);
        }
        // Compacted by somebody else meanwhile.
        drop(locked);
        let (fresh, locked) = Log::open_locked(&self.path, mode, self.options.busy)?;
        if fresh.revision < log.revision {
            return Err(damaged("the file was replaced by an older one", "its revision went back"));
        }
        *log = fresh;
        Ok(locked)
    }

    fn write(&self, batch: &Batch) -> Result<Revision, IndexError> {
        let mut guard = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        let state = &mut *guard;
        if state.poisoned {
            return Err(IndexError::Poisoned);
        }
        if !state.log.writable {
            return Err(IndexError::ReadOnly);
        }
        let _locked = self.lock(&mut state.log, LockMode::Exclusive)?;
        let log = &mut state.log;
        if !log.named {
            // Whoever gave the file its name may have died before that was durable.
            durable::sync_dir(durable::parent(&self.path)).map_err(io_error)?;
            log.named = true;
        }
        let format = log.tree.format.max(Format::CURRENT);
        let mut journal = Journal::new(&mut log.tree);
        let made = apply(&mut journal, batch).and_then(|revision| {
            let line = line::write(format, revision.0, journal.changes()).map_err(|source| unwritable(&source))?;
            Ok((revision, line))
        });
        let (revision, line) = match made {
            Ok(made) => made,
            Err(error) => {
                journal.roll_back();
                return Err(error);
            }
        };
        if let Err((error, clean)) = append(&log.file, log.read, &line) {
            journal.roll_back();
            state.poisoned = !clean;
            return Err(error);
        }
        log.read += line.len() as u64;
        log.lines += 1;
        log.revision = revision.0;
        High::of(&self.path).raise(Reached { revision, newest: query::newest(&log.tree)? });
        Ok(revision)
    }

    /// Every line has a checksum, which was compared when the line was read; nothing that is asked for goes past that.
    fn check_rows(&self) -> Result<(), IndexError> {
        self.read(|_| Ok(()))
    }

    fn tend(&self) -> Result<(), IndexError> {
        let mut guard = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        let state = &mut *guard;
        if state.poisoned {
            return Err(IndexError::Poisoned);
        }
        let due = |log: &Log| log.writable && log.read > self.options.compact_above && log.read > 2 * log.base;
        if !due(&state.log) {
            return Ok(());
        }
        let _locked = self.lock(&mut state.log, LockMode::Exclusive)?;
        if due(&state.log) { self.compact(&mut state.log) } else { Ok(()) }
    }

    /// Replaces the file by one line that holds every row. The caller holds the exclusive lock of the file, so nobody
    /// can append to it; whoever waits for that lock finds the name moved and opens the new file.
    fn compact(&self, log: &mut Log) -> Result<(), IndexError> {
        let rows = log.tree.tables.iter().flat_map(|(table, content)| {
            content.iter().map(move |(key, document)| (table.as_str(), key.as_str(), Some(document.as_str())))
        });
        let line = line::write(log.tree.format, log.revision, rows).map_err(|source| unwritable(&source))?;
        let temporary = durable::temporary(&self.path).map_err(io_error)?;
        let written = durable::create_new(&temporary).and_then(|file| {
            let file = Arc::new(file);
            // Locked before it has its name: nobody appends to it before the name is durable.
            let locked = durable::lock(&file, LockMode::Exclusive, Duration::ZERO)?;
            (&*file).write_all(&line)?;
            file.sync_data()?;
            std::fs::rename(&temporary, &self.path)?;
            Ok((file, locked))
        });
        let (file, _locked) = match written {
            Ok(written) => written,
            Err(error) => {
                durable::discard(&temporary);
                return Err(io_error(error));
            }
        };
        let length = line.len() as u64;
        (log.file, log.lines, log.read, log.base, log.named) = (file, 1, length, length, false);
        durable::sync_dir(durable::parent(&self.path)).map_err(io_error)?;
        log.named = true;
        Ok(())
    }
}

/// Writes a line at `at`, cutting off what is there, and syncs it. The error says whether the file is as it was.
fn append(mut file: &File, at: u64, line: &[u8]) -> Result<(), (IndexError, bool)> {
    let cut = || file.set_len(at);
    let written = cut().and_then(|()| file.seek(SeekFrom::Start(at))).and_then(|_| file.write_all(line));
    if let Err(error) = written {
        let clean = cut().is_ok();
        return Err(if clean { (io_error(error), true) } else { (storage(error), false) });
    }
    file.sync_data().map_err(|error| {
        // Nothing is known now about what is on the disk. Taking the line back is the better of two guesses, because
        // others would build on it.
        if let Err(second) = cut().and_then(|()| file.sync_data()) {
            tracing::warn!(error = %second, "an unsynced line stays in the index");
        }
        (storage(error), false)
    })
}

impl Log {
    /// Opens the file that has the name, locks it and reads it.
    fn open_locked(path: &Path, mode: LockMode, wait: Duration) -> Result<(Self, OpenLock), IndexError> {
        loop {
            let (file, writable) = match OpenOptions::new().read(true).write(true).open(path) {
                Ok(file) => (file, true),
                Err(error) if durable::is_read_only(&error) => (File::open(path).map_err(io_error)?, false),
                Err(error) => return Err(io_error(error)),
            };
            let file = Arc::new(file);
            let locked = durable::lock(&file, mode, wait).map_err(io_error)?.ok_or(IndexError::Busy)?;
            if !durable::is_at(&file, path).map_err(io_error)? {
                continue;
            }
            let mut log = Self {
                file,
                writable,
                tree: Tree::new(Format { major: Format::CURRENT.major, minor: 0 }),
                revision: 0,
                lines: 0,
                read: 0,
                base: 0,
                named: false,
            };
            log.catch_up()?;
            if log.lines == 0 {
                // A file gets its name only with its first line complete.
                return Err(damaged("the file has no first line", "it is empty or cut off"));
            }
            log.check(path)?;
            return Ok((log, locked));
        }
    }

    /// Fails when lines are gone that somebody has written. The caller holds the lock and has read everything.
    fn check(&self, path: &Path) -> Result<(), IndexError> {
        let high = High::of(path);
        high.check("index.jsonl", &self.tree, high.read()).map(drop)
    }

    /// True when there is nothing to read: same file, same length.
    fn is_current(&self, path: &Path) -> io::Result<bool> {
        Ok(durable::is_at(&self.file, path)? && self.file.metadata()?.len() == self.read)
    }

    /// Reads the lines that were appended. The caller holds the lock.
    fn catch_up(&mut self) -> Result<(), IndexError> {
        let length = self.file.metadata().map_err(io_error)?.len();
        if length < self.read {
            return Err(damaged("the file was cut short", "lines that were read are gone"));
        }
        if length == self.read {
            return Ok(());
        }
        let mut content = Vec::new();
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.read)).map_err(io_error)?;
        file.read_to_end(&mut content).map_err(io_error)?;
        let mut rest = content.as_slice();
        while let Some(end) = rest.iter().position(|&b| b == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            match line::read(line).and_then(|line| self.follows(line)) {
                Ok(line) => line.apply(&mut self.tree),
                Err(LineError::Foreign(format)) => return Err(foreign(format)),
                // Blocks of the last write that never reached the disk read as zeros, also before ones that did.
                Err(_) if after.is_empty() && line.contains(&0) && self.lines > 0 => return Ok(()),
                Err(error) => {
                    let what = format!("line {} of {}", self.lines + 1, "index.jsonl");
                    return Err(IndexError::Damaged { what, source: Box::new(error) });
                }
            }
            let length = end as u64 + 1;
            if self.lines == 0 {
                self.base = length;
            }
            self.lines += 1;
            self.read += length;
            rest = after;
        }
        Ok(())
    }

    /// Lines that are whole but lost or twice show in the revisions.
    fn follows(&mut self, line: line::Line) -> Result<line::Line, LineError> {
        if self.lines > 0 && line.revision != self.revision + 1 {
            return Err(LineError::Sequence { before: self.revision, found: line.revision });
        }
        self.revision = line.revision;
        Ok(line)
    }
}

fn foreign(format: Format) -> IndexError {
    match format.check() {
        Err(error) => error,
        Ok(format) => format.too_new(),
    }
}

fn damaged(what: &str, how: &'static str) -> IndexError {
    IndexError::Damaged { what: what.to_owned(), source: how.into() }
}

fn storage(source: io::Error) -> IndexError {
    IndexError::Storage { source: Box::new(source) }
}

fn unwritable(source: &serde_json::Error) -> IndexError {
    IndexError::Misfit { why: format!("it cannot be written as JSON: {source}") }
}

/// For failures that left the file as it was.
fn io_error(error: io::Error) -> IndexError {
    if durable::is_full(&error) {
        IndexError::NoSpace
    } else if durable::is_read_only(&error) {
        IndexError::ReadOnly
    } else {
        storage(error)
    }
}

index_store!(JsonIndex, "json");

#[cfg(test)]
mod tests {
    use checkpoint_core::IndexStore;

    use super::*;

    /// A write that fails and cannot be taken back: nothing is known, so nothing more is said.
    #[test]
    fn a_failed_write_poisons_the_handle_until_it_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index.jsonl");
        let index = JsonIndex::create(&path, JsonOptions::default()).unwrap();
        index.apply(&Batch::default()).unwrap();
        index.state.lock().unwrap().log.file = Arc::new(File::open(&path).unwrap());
        assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Storage { .. })));
        assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Poisoned)));
        assert!(matches!(index.newest(), Err(IndexError::Poisoned)));
        assert!(matches!(index.maintain(), Err(IndexError::Poisoned)));
        assert_eq!(JsonIndex::open(&path, JsonOptions::default()).unwrap().revision().unwrap(), Revision(1));
    }
}
