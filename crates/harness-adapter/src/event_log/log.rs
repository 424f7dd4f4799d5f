//! One open log: what waits, and what is on disk.

use std::{
    collections::VecDeque,
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use checkpoint_core::{LogEvent, Seq, Timestamp};
use durable_fs::{Dir, FileLock, LockFailure, LockMode, create_private_dirs};

use super::{EventLogError, LogMedium, medium::Open};
use crate::sessions::dsh::Admission;

/// Held by the process that owns the session. The harness of this format passes over such files.
const LOCK: &str = "session.lock";
const NAME: &str = "session.jsonl";

/// What waits. Held for moments only, so that appending never waits for the disk.
#[derive(Debug)]
struct Queue {
    admission: Admission,
    next: u64,
    rows: VecDeque<String>,
    /// Set when the session is let go: whoever still has it must not queue what nobody would write.
    closed: bool,
    /// When the first one that waits has waited long enough.
    due: Option<Timestamp>,
}

/// What is on disk. Held while something is written, so that flushes come one after the other.
#[derive(Debug)]
struct Disk {
    /// The header line, until the file is made.
    header: String,
    medium: Option<Box<dyn LogMedium>>,
    /// Bytes of the log that are whole batches; 0 before it is made.
    len: u64,
    /// True when a write failed and what it left could not be cut off, or removed where that is the whole log.
    dirty: bool,
    lock: Option<FileLock>,
}

/// One open log. The disk is locked before the queue.
pub(super) struct OpenLog {
    id: String,
    path: PathBuf,
    queue: Mutex<Queue>,
    disk: Mutex<Disk>,
    open: Open,
}

impl fmt::Debug for OpenLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenLog").field("path", &self.path).field("queue", &self.queue).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the owner's lock of a session's folder, which exists.
pub(super) fn own(folder: &Path) -> Result<FileLock, EventLogError> {
    FileLock::acquire(&folder.join(LOCK), LockMode::Exclusive, Duration::ZERO).map_err(|failure| match failure {
        LockFailure::Io(error) => EventLogError::Write { what: error.what, path: error.path, source: error.source },
        _ => EventLogError::Locked { path: folder.join(NAME) },
    })
}

impl OpenLog {
    /// A session without a log yet.
    pub(super) fn new(id: &str, folder: &Path, header: String, open: Open) -> Self {
        let queue = Queue { admission: Admission::new(), next: 0, rows: VecDeque::new(), closed: false, due: None };
        let disk = Disk { header, medium: None, len: 0, dirty: false, lock: None };
        Self { id: id.to_owned(), path: folder.join(NAME), queue: Mutex::new(queue), disk: Mutex::new(disk), open }
    }

    /// A session whose log is there, `len` sound bytes with these events.
    pub(super) fn resumed(
        id: &str,
        path: &Path,
        len: u64,
        events: &[LogEvent],
        lock: FileLock,
        open: Open,
    ) -> Result<Self, EventLogError> {
        let mut admission = Admission::new();
        for event in events {
            admission.row(path, event)?;
        }
        let queue = Queue { admission, next: events.len() as u64, rows: VecDeque::new(), closed: false, due: None };
        let disk = Disk { header: String::new(), medium: None, len, dirty: false, lock: Some(lock) };
        Ok(Self { id: id.to_owned(), path: path.to_owned(), queue: Mutex::new(queue), disk: Mutex::new(disk), open })
    }

    pub(super) fn next(&self) -> Seq {
        Seq(lock(&self.queue).next)
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        lock(&self.queue).due
    }

    /// The window begins with the first event that waits and is not moved by later ones.
    pub(super) fn append(&self, event: &LogEvent, due: Timestamp) -> Result<(), EventLogError> {
        let mut queue = lock(&self.queue);
        let (id, seq, next) = (self.id.clone(), event.seq, Seq(queue.next));
        if queue.closed {
            return Err(EventLogError::NotOpen { id });
        }
        if seq < next {
            return Err(EventLogError::Stored { id, seq, next });
        }
        if seq > next {
            return Err(EventLogError::Gap { id, seq, next });
        }
        let row = queue.admission.row(&self.path, event)?;
        queue.rows.push_back(row);
        queue.next += 1;
        queue.due.get_or_insert(due);
        Ok(())
    }

    /// Takes no more events if none waits; says whether.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut queue = lock(&self.queue);
        queue.closed |= queue.rows.is_empty();
        queue.closed
    }

    /// Writes everything that waits as one batch and syncs it. What fails goes on waiting until `retry`.
    pub(super) fn flush(&self, retry: Timestamp) -> Result<(), EventLogError> {
        let mut disk = lock(&self.disk);
        let (batch, count) = {
            let queue = lock(&self.queue);
            (queue.rows.iter().map(String::as_str).collect::<String>(), queue.rows.len())
        };
        if count == 0 {
            // Everything is on disk: a flush that came before has written it.
            return Ok(());
        }
        let written = if disk.len == 0 { self.make(&mut disk, &batch) } else { self.write(&mut disk, &batch) };
        let mut queue = lock(&self.queue);
        if let Err(error) = written {
            queue.due = Some(retry);
            return Err(error);
        }
        queue.rows.drain(..count);
        // What came meanwhile has a window of its own, which began no earlier than now.
        queue.due = (!queue.rows.is_empty()).then_some(retry);
        Ok(())
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(io::Error) -> EventLogError {
        let path = self.path.clone();
        move |source| EventLogError::Write { what, path, source }
    }

    /// Makes the log with its first batch: complete and synced before it has its name, and never over another.
    fn make(&self, disk: &mut Disk, batch: &str) -> Result<(), EventLogError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let wrote = |error: durable_fs::Error| EventLogError::Write {
            what: error.what,
            path: error.path,
            source: error.source,
        };
        create_private_dirs(folder).map_err(wrote)?;
        if disk.lock.is_none() {
            disk.lock = Some(own(folder)?);
        }
        if disk.dirty {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed("remove what a failed write left of")(error));
                }
                _ => disk.dirty = false,
            }
        }
        let dir = Dir::open_root(folder).map_err(wrote)?;
        let temporary = format!("{NAME}.{}.tmp", twelve_digits()?);
        let written = (|| {
            let mut file = dir.create_file(temporary.as_bytes()).map_err(self.failed("create"))?;
            file.write_all(disk.header.as_bytes())
                .and_then(|()| file.write_all(batch.as_bytes()))
                .and_then(|()| file.sync_all())
                .map_err(self.failed("write"))?;
            dir.publish(temporary.as_bytes(), NAME.as_bytes()).map_err(|error| {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    EventLogError::AlreadyExists { id: self.id.clone(), path: Some(self.path.clone()) }
                } else {
                    self.failed("create")(error)
                }
            })?;
            // Until the name is durable the log counts as not made, and the next try makes it anew.
            dir.sync().map_err(|write| match dir.unlink(NAME.as_bytes()) {
                Ok(()) => self.failed("sync the directory of")(write),
                Err(source) => {
                    disk.dirty = true;
                    EventLogError::Rollback { path: self.path.clone(), write, source }
                }
            })
        })();
        if written.is_err() {
            // Holds nothing that is not in the queue.
            let _gone_or_left_behind = dir.unlink(temporary.as_bytes());
        }
        written?;
        disk.len = (disk.header.len() + batch.len()) as u64;
        Ok(())
    }

    fn write(&self, disk: &mut Disk, batch: &str) -> Result<(), EventLogError> {
        let mut medium = match disk.medium.take() {
            Some(medium) => medium,
            None => (self.open)(&self.path).map_err(self.failed("open"))?,
        };
        if disk.dirty {
            medium.cut(disk.len).map_err(self.failed("cut off what a failed write left of"))?;
            disk.dirty = false;
        }
        let found = medium.size().map_err(self.failed("look at"))?;
        if found != disk.len {
            return Err(EventLogError::Changed { path: self.path.clone(), expected: disk.len, found });
        }
        match medium.append(batch.as_bytes()) {
            Ok(()) => {
                disk.len += batch.len() as u64;
                disk.medium = Some(medium);
                Ok(())
            }
            // The next try opens the file anew: after a failed sync this handle may not tell of a second failure.
            Err(write) => match medium.cut(disk.len) {
                Ok(()) => Err(self.failed("write")(write)),
                Err(source) => {
                    disk.dirty = true;
                    Err(EventLogError::Rollback { path: self.path.clone(), write, source })
                }
            },
        }
    }
}

/// Of a temporary's name, as the harness names its own.
fn twelve_digits() -> Result<String, EventLogError> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|error| EventLogError::Write {
        what: "name",
        path: PathBuf::from(NAME),
        source: io::Error::other(error),
    })?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}
