//! Reading a log from its first row to its last, the way the host does when it loads one, without writing anything.

use std::{
    fs::File,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use checkpoint_core::Seq;

use super::{
    check::{Checker, Fault},
    container::{self, Encoding, Frames, Lines},
    error::{LogError, Place},
    header::{self, LogHeader},
    rows::{self, Row},
};

/// What a crash left at the end of a log. The host cuts it off when it loads the log; nothing here does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Torn {
    /// Where it begins: the byte that the host would cut the file at.
    pub offset: u64,
    /// How many bytes of the file it takes.
    pub bytes: u64,
    /// Events that could still be read from it. They count as the log's own.
    pub recovered: u64,
}

/// A log that is open for reading, its header read.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) encoding: Encoding,
    pub(super) header: LogHeader,
    /// The header as it stands, with its end.
    pub(super) line: Vec<u8>,
    /// Where the rows begin.
    pub(super) body: u64,
    /// Length of the file when it was opened: what is appended later is not seen.
    pub(super) len: u64,
    frames: Option<Frames>,
}

/// Where a row stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Everything in the file before this is rows before this one, in whole frames.
    pub(super) clean: u64,
}

/// How a log ends.
#[derive(Debug)]
pub(super) struct End {
    /// How many events it has.
    pub(super) events: u64,
    pub(super) torn: Option<Torn>,
    /// Everything in the file before this is whole rows in whole frames.
    pub(super) clean: u64,
    /// Rows that cannot be told apart, or the container: nothing after it is read.
    pub(super) broken: Option<LogError>,
    /// The first event of a type that the host does not know.
    pub(super) unknown: Option<LogError>,
    /// The first event that breaks a rule.
    pub(super) bad: Option<LogError>,
}

impl End {
    /// What the host's loader says, if it refuses.
    pub(super) fn into_fault(self) -> Option<LogError> {
        self.broken.or(self.unknown).or(self.bad)
    }
}

/// What [`Log::rows`] calls back with.
pub(super) type Visit<'v> = dyn FnMut(&Row<'_>, &[u8], At) -> Result<ControlFlow<()>, LogError> + 'v;

/// What [`Log::again`] calls back with: how many rows were before, and the row's line without its end.
pub(super) type Again<'v> = dyn FnMut(u64, &[u8]) -> Result<(), LogError> + 'v;

/// Which version a file name stands for; `None` for a file that is no log.
pub(super) fn named(name: &str) -> Option<(Option<u64>, Encoding)> {
    let rest = name.strip_prefix("session")?;
    let (rest, encoding) = match rest.strip_suffix(Encoding::Zstd.suffix()) {
        Some(rest) => (rest, Encoding::Zstd),
        None => (rest.strip_suffix(Encoding::Plain.suffix())?, Encoding::Plain),
    };
    if rest.is_empty() {
        return Some((None, encoding));
    }
    let digits = rest.strip_prefix(".v")?;
    let canonical = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    canonical.then(|| digits.parse().ok().map(|version| (Some(version), encoding)))?
}

/// Opens the log at `path`.
pub(super) fn open(path: &Path, encoding: Encoding, version: Option<u64>) -> Result<Log, LogError> {
    let (file, len, line, body) = open_head(path, encoding)?;
    let header = header::parse(path, &line, version)?;
    Ok(Log { path: path.to_owned(), file, encoding, header, line, body, len, frames: None })
}

/// Opens the log at `path`, as far as its first line.
pub(super) fn open_head(path: &Path, encoding: Encoding) -> Result<(File, u64, Vec<u8>, u64), LogError> {
    let file = container::open(path)?;
    let facts = file.metadata().map_err(LogError::io("read", path))?;
    let (line, body) = container::header_line(path, &file, facts.len(), encoding)?.ok_or_else(|| {
        LogError::NoHeader { path: path.to_owned(), why: "the file ends before its first line does".into() }
    })?;
    Ok((file, facts.len(), line, body))
}

/// The row at which the log could no longer be followed.
struct Stop {
    place: Place,
    why: String,
    clean: u64,
    torn: bool,
}

impl Log {
    fn scan(&mut self) -> Result<(), LogError> {
        if self.encoding == Encoding::Zstd && self.frames.is_none() {
            self.frames = Some(container::scan(&self.path, &self.file, self.len, usize::MAX)?);
        }
        Ok(())
    }

    fn torn_frame(&self) -> Option<u64> {
        self.frames.as_ref().and_then(|frames| frames.torn)
    }

    /// Reads every row that the host would accept, checks it and calls `visit` with it and its line, without the line's
    /// end. A visitor that breaks off gets an [`End`] of what was read so far.
    ///
    /// The first row that cannot be read, or has not the next position, ends the log. If a `turn/end` follows, or is that
    /// row, the log is corrupt; else the rest is a torn tail, in a compressed log only inside a frame that is torn itself
    /// (004-20).
    pub(super) fn rows(&mut self, visit: &mut Visit<'_>) -> Result<End, LogError> {
        let mut end = End { events: 0, torn: None, clean: self.body, broken: None, unknown: None, bad: None };
        match self.scan() {
            Ok(()) => {}
            Err(error @ LogError::Corrupt { .. }) => {
                end.broken = Some(error);
                return Ok(end);
            }
            Err(error) => return Err(error),
        }
        let mut lines = Lines::new(&self.path, &self.file, self.frames.as_ref(), self.body, self.len, 0)?;
        let mut checker = Checker::new(self.header.version);
        let (mut stop, mut recovered): (Option<Stop>, u64) = (None, 0);
        loop {
            let line = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error @ LogError::Corrupt { .. }) => {
                    end.broken = Some(error);
                    return Ok(end);
                }
                Err(error) => return Err(error),
            };
            let at = At { clean: line.clean };
            let place = Place::Row(line.number);
            if !line.ended {
                let stopped = Stop { place, why: "the row has no end".into(), clean: line.clean, torn: line.torn };
                stop.get_or_insert(stopped);
                break;
            }
            let read = rows::fields(line.bytes);
            let ends_turn = read.as_ref().and_then(rows::Fields::kind).is_some_and(|kind| kind == "turn/end");
            if stop.is_none() {
                let why = match read.and_then(|fields| rows::row(fields, self.header.version)) {
                    Some(row) if row.first() == end.events => {
                        judge(&mut checker, &row, &self.path, &mut end);
                        end.events += row.count();
                        recovered += if line.torn { row.count() } else { 0 };
                        if visit(&row, line.bytes, at)?.is_break() {
                            return Ok(end);
                        }
                        continue;
                    }
                    Some(row) => format!("expected event {}, got {}", end.events, row.first()),
                    None => "the row cannot be read".into(),
                };
                stop = Some(Stop { place, why, clean: line.clean, torn: line.torn });
            }
            if let (true, Some(stop)) = (ends_turn, &stop) {
                let why = format!("{}, and turns end after it", stop.why);
                end.broken = Some(LogError::corrupt(&self.path, stop.place, why));
                // Damage of a frame further on would be told first; either way the log is refused.
                return Ok(end);
            }
        }
        end.clean = stop.as_ref().map_or(lines.clean(), |stop| stop.clean);
        match (self.torn_frame(), stop) {
            (Some(_), Some(stop)) if !stop.torn => {
                end.broken = Some(LogError::corrupt(&self.path, stop.place, format!("{} in a whole frame", stop.why)));
            }
            (Some(offset), _) => {
                end.clean = offset;
                end.torn = Some(Torn { offset, bytes: self.len - offset, recovered });
            }
            (None, Some(stop)) if self.encoding == Encoding::Zstd => {
                end.broken = Some(LogError::corrupt(&self.path, stop.place, format!("{} in a whole frame", stop.why)));
            }
            (None, Some(stop)) => {
                end.torn = Some(Torn { offset: stop.clean, bytes: self.len - stop.clean, recovered: 0 });
            }
            (None, None) => {}
        }
        Ok(end)
    }

    /// The first `count` rows from `from` on, where a row and, in a compressed log, a frame begins. They have been read and
    /// accepted before.
    pub(super) fn again(&self, from: u64, count: u64, visit: &mut Again<'_>) -> Result<(), LogError> {
        if count == 0 {
            return Ok(());
        }
        let mut lines = Lines::new(&self.path, &self.file, self.frames.as_ref(), from, self.len, 0)?;
        for number in 0..count {
            let line = lines.next()?.filter(|line| line.ended);
            let line = line.ok_or_else(|| LogError::Changed { path: self.path.clone() })?;
            visit(number, line.bytes)?;
        }
        Ok(())
    }
}

/// Checks a row; keeps the first fault of each kind.
fn judge(checker: &mut Checker, row: &Row<'_>, path: &Path, end: &mut End) {
    // After a fault the surface is no longer known; types still are.
    match checker.check(row) {
        Err(Fault::Unknown) if end.unknown.is_none() => {
            let kind = row.kind().to_owned();
            end.unknown = Some(LogError::UnknownEvent { path: path.to_owned(), seq: Seq(row.first()), kind });
        }
        Err(Fault::Bad(why)) if end.bad.is_none() => {
            end.bad = Some(LogError::corrupt(path, Place::Event(Seq(row.first())), why));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_carry_the_version() {
        assert_eq!(named("session.jsonl"), Some((None, Encoding::Plain)));
        assert_eq!(named("session.jsonl.zstd"), Some((None, Encoding::Zstd)));
        assert_eq!(named("session.v4.jsonl.zstd"), Some((Some(4), Encoding::Zstd)));
        for other in [
            "session.jsonl.zstd.0123456789ab.tmp",
            "session.v04.jsonl",
            "session.vx.jsonl",
            "checkpoint.json",
            "session.lock",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
