//! The files of Codex's logs, and how they point into one another.

use std::path::{Path, PathBuf};

use super::super::{
    claude::{dirs, entries, is_uuid},
    door::DoorError,
    fields::Fields,
    lines::{BEGINNING, Ending, Lines},
};

/// So many logs may point into one another.
const BASES: usize = 100;

/// One file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct File {
    /// The time in its name: the name's first 27 characters.
    name: String,
    pub(super) thread: String,
    pub(super) path: PathBuf,
}

/// Of `rollout-<time>-<thread>.jsonl` and `rollout-<time>-<thread>_<uuid>.jsonl`.
fn file(path: PathBuf) -> Option<File> {
    let name = path.file_name()?.to_str()?.to_owned();
    let rest = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let thread = rest.get(20..56).filter(|id| is_uuid(id))?.to_owned();
    let after = rest.get(56..)?;
    (after.is_empty() || after.starts_with('_')).then_some(File { name, thread, path })
}

/// Every log below the folder, in the order of their names: those of one thread oldest first.
pub(super) fn rollouts(sessions: &Path) -> Result<Vec<File>, DoorError> {
    let mut files = Vec::new();
    for year in dirs(sessions)? {
        for month in dirs(&year)? {
            for day in dirs(&month)? {
                files.extend(entries(&day)?.into_iter().filter_map(file));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The newest log of a thread.
pub(super) fn latest(sessions: &Path, thread: &str) -> Result<Option<File>, DoorError> {
    Ok(rollouts(sessions)?.into_iter().rev().find(|file| file.thread == thread))
}

/// The folder of a day, from a time as `2026-11-30T…`.
pub(super) fn day(sessions: &Path, time: &str) -> PathBuf {
    let date = time.split('T').next().unwrap_or_default();
    date.split('-').fold(sessions.to_owned(), |dir, part| dir.join(part))
}

/// Where a log goes on from another one.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Base {
    thread: String,
    /// The base is read up to this byte.
    bytes: u64,
    /// Its rows before there have smaller ordinals.
    ordinal: u64,
}

/// What the first line says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    pub(super) id: Option<String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) parent: Option<String>,
    pub(super) subagent: bool,
    /// How it keeps what was said.
    pub(super) mode: Option<String>,
    base: Option<Base>,
}

fn number(fields: &Fields<'_>, name: &str) -> Option<u64> {
    fields.get(name)?.get().parse().ok()
}

/// Reads the first line.
pub(super) fn head(path: &Path) -> Result<Head, DoorError> {
    let mut lines = Lines::open_begin(path, BEGINNING).map_err(DoorError::io("open", path))?;
    let first = lines.next().map_err(DoorError::io("read", path))?;
    let row = first.filter(|line| line.ending == Ending::Whole).and_then(|line| Fields::parse(line.text));
    let row = row.filter(|row| row.text("type").as_deref() == Some("session_meta"));
    let payload = row.and_then(|row| row.object("payload"));
    let payload = payload.ok_or_else(|| DoorError::corrupt(path, 1, "it is no head of a session"))?;
    let text = |name: &str| payload.text(name).map(std::borrow::Cow::into_owned);
    let base = match payload.get("history_base") {
        None => None,
        Some(raw) => {
            let base = Fields::of(raw).and_then(|base| {
                Some(Base {
                    thread: base.text("thread_id")?.into_owned(),
                    bytes: number(&base, "end_byte_offset")?,
                    ordinal: number(&base, "end_ordinal_exclusive")?,
                })
            });
            let why = || "what it says of the log that it goes on from is not understood".to_owned();
            Some(base.ok_or_else(|| DoorError::Unsupported { path: path.to_owned(), line: 1, why: why() })?)
        }
    };
    let spawned = payload.object("source").and_then(|source| source.object("subagent"));
    let subagent = spawned.is_some() || text("thread_source").as_deref() == Some("subagent");
    let by = spawned.and_then(|spawned| spawned.object("thread_spawn"));
    let by = by.and_then(|by| Some(by.text("parent_thread_id")?.into_owned()));
    Ok(Head {
        id: text("id"),
        cwd: text("cwd").map(PathBuf::from),
        parent: by.or_else(|| text("parent_thread_id").filter(|_| subagent)).or_else(|| text("forked_from_id")),
        subagent,
        mode: text("history_mode"),
        base,
    })
}

/// How many bytes of other logs a log goes on from. Only heads are read.
pub(super) fn before(sessions: &Path, path: &Path) -> Result<u64, DoorError> {
    let mut bytes = 0_u64;
    let mut next = head(path)?.base;
    for _ in 0..=BASES {
        let Some(base) = next else { return Ok(bytes) };
        bytes = bytes.saturating_add(base.bytes);
        next = match latest(sessions, &base.thread)? {
            Some(file) if file.path != path => head(&file.path)?.base,
            _ => None,
        };
    }
    // They go on from one another: nobody reads that.
    Ok(u64::MAX)
}

/// A part of a log: a file up to a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Part {
    path: PathBuf,
    thread: String,
    base: Option<Base>,
}

/// A log with those it goes on from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rollout {
    pub(super) path: PathBuf,
    pub(super) head: Head,
    /// Oldest first; the last is the log itself, the others end where the base says.
    parts: Vec<Part>,
}

impl Rollout {
    /// Opens a log and finds those it goes on from.
    pub(super) fn open(sessions: &Path, path: &Path) -> Result<Self, DoorError> {
        let own = head(path)?;
        let part = |path: &Path, head: &Head, base: Option<Base>| Part {
            path: path.to_owned(),
            thread: head.id.clone().unwrap_or_default(),
            base,
        };
        let mut parts = vec![part(path, &own, None)];
        let mut wanted = own.base.clone();
        while let Some(base) = wanted {
            if parts.len() > BASES {
                return Err(DoorError::corrupt(path, 1, "too many logs go on from one another"));
            }
            let mut fit = None;
            for file in rollouts(sessions)?.into_iter().filter(|file| file.thread == base.thread) {
                let known = parts.iter().any(|part| part.path == file.path);
                if !known && ends_a_row(&file.path, &base)? {
                    fit = Some(file);
                }
            }
            let missing = || {
                let why = format!("it goes on from thread {}, whose log is gone or is another one now", base.thread);
                DoorError::corrupt(path, 1, why)
            };
            let file = fit.ok_or_else(missing)?;
            let theirs = head(&file.path)?;
            parts.push(part(&file.path, &theirs, Some(base)));
            wanted = theirs.base;
        }
        parts.reverse();
        Ok(Self { path: path.to_owned(), head: own, parts })
    }

    pub(super) fn has_base(&self) -> bool {
        self.parts.len() > 1
    }

    /// The threads that rows of it may name.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.parts.iter().map(|part| part.thread.as_str()).collect()
    }

    /// Goes through the rows, the head first; `false` ends it. True when the end of the log is torn.
    pub(super) fn rows(
        &self,
        each: &mut dyn FnMut(&Fields<'_>, u64) -> Result<bool, DoorError>,
    ) -> Result<bool, DoorError> {
        let mut number = 1;
        let mut lines = Lines::open(&self.path).map_err(DoorError::io("open", &self.path))?;
        let first = lines.next().map_err(DoorError::io("read", &self.path))?;
        let head = first.as_ref().and_then(|line| Fields::parse(line.text));
        let head = head.ok_or_else(|| DoorError::corrupt(&self.path, 1, "it is no head of a session"))?;
        if !each(&head, number)? {
            return Ok(false);
        }
        for part in &self.parts {
            let mut lines = Lines::open(&part.path).map_err(DoorError::io("open", &part.path))?;
            let mut broken = None;
            while let Some(line) = lines.next().map_err(DoorError::io("read", &part.path))? {
                if part.base.as_ref().is_some_and(|base| line.offset >= base.bytes) {
                    break;
                }
                if let Some(broken) = broken {
                    return Err(DoorError::corrupt(&part.path, broken, "it is no JSON object"));
                }
                if line.ending == Ending::TooLong {
                    let why = "it is longer than can be read".to_owned();
                    return Err(DoorError::Unsupported { path: part.path.clone(), line: line.number, why });
                }
                if line.text.trim_ascii().is_empty() {
                    continue;
                }
                let Some(row) = Fields::parse(line.text) else {
                    broken = Some(line.number);
                    continue;
                };
                if line.ending == Ending::Torn {
                    return Ok(true);
                }
                if row.text("type").as_deref() == Some("session_meta") {
                    continue;
                }
                number += 1;
                if !each(&row, number)? {
                    return Ok(false);
                }
            }
            match broken {
                Some(line) if part.base.is_some() => {
                    return Err(DoorError::corrupt(&part.path, line, "it is no JSON object"));
                }
                Some(_) => return Ok(true),
                None => {}
            }
        }
        Ok(false)
    }

    /// Goes through the rows, and over whatever is broken.
    pub(super) fn lenient(&self, each: &mut dyn FnMut(&Fields<'_>)) -> Result<(), DoorError> {
        for part in &self.parts {
            let mut lines = Lines::open(&part.path).map_err(DoorError::io("open", &part.path))?;
            while let Some(line) = lines.next().map_err(DoorError::io("read", &part.path))? {
                if part.base.as_ref().is_some_and(|base| line.offset >= base.bytes) {
                    break;
                }
                if let Some(row) = Fields::parse(line.text) {
                    each(&row);
                }
            }
        }
        Ok(())
    }
}

/// True when a row ends where the base says, with the ordinal that it says.
fn ends_a_row(path: &Path, base: &Base) -> Result<bool, DoorError> {
    let mut lines = Lines::open(path).map_err(DoorError::io("open", path))?;
    while let Some(line) = lines.next().map_err(DoorError::io("read", path))? {
        let end = line.offset + line.text.len() as u64 + 1;
        if end < base.bytes && line.ending == Ending::Whole {
            continue;
        }
        let ordinal = Fields::parse(line.text).and_then(|row| number(&row, "ordinal"));
        // Rows of an older history have no numbers.
        return Ok(end == base.bytes && ordinal.is_none_or(|ordinal| ordinal + 1 == base.ordinal));
    }
    Ok(false)
}
