//! Lines of a log that somebody else may be writing: read one after the other, each of bounded length.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom, Take},
    path::Path,
};

use durable_fs::open_regular;
use serde_json::value::RawValue;

use crate::hooks::mend;

/// Longer lines are not held in memory. Clients put whole files and pictures into one line, but not this much.
pub(super) const LONGEST: usize = 256 << 20;

/// What is looked for at the beginning of a log is found in so many bytes, or is not there.
pub(super) const BEGINNING: u64 = 8 << 20;

/// How a line ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// With a line feed, which is not part of it.
    Whole,
    /// With the file: whoever wrote it may not be done, or died.
    Torn,
    /// Beyond [`LONGEST`]: its text is left out.
    TooLong,
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    /// Of its first byte.
    pub(super) offset: u64,
    /// Without the line feed.
    pub(super) text: &'a [u8],
    pub(super) ending: Ending,
}

/// The lines of a file as it was when it was opened: what is appended later is not seen.
#[derive(Debug)]
pub(super) struct Lines {
    from: BufReader<Take<File>>,
    longest: usize,
    number: u64,
    offset: u64,
    line: Vec<u8>,
}

impl Lines {
    /// Opens a regular file, and nothing else: a FIFO would be waited for.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let length = file.metadata()?.len();
        let from = BufReader::with_capacity(1 << 17, file.take(length));
        Ok(Self { from, longest: LONGEST, number: 0, offset: 0, line: Vec::new() })
    }

    /// The same of its first `most` bytes: the line that goes beyond them is torn.
    pub(super) fn open_begin(path: &Path, most: u64) -> io::Result<Self> {
        let mut lines = Self::open(path)?;
        let all = lines.from.get_ref().limit();
        lines.from.get_mut().set_limit(all.min(most));
        Ok(lines)
    }

    /// The same of its last `most` bytes, from the first line that begins in them; and whether that is all of it. Lines
    /// are numbered and placed from there.
    pub(super) fn open_end(path: &Path, most: u64) -> io::Result<(Self, bool)> {
        let mut file = open_regular(path)?;
        let length = file.metadata()?.len();
        let skipped = length.saturating_sub(most);
        // One byte more: the line before it may end there.
        file.seek(SeekFrom::Start(skipped.saturating_sub(1)))?;
        let from = BufReader::with_capacity(1 << 17, file.take(length.min(most.saturating_add(1))));
        let mut lines = Self { from, longest: LONGEST, number: 0, offset: 0, line: Vec::new() };
        if skipped > 0 {
            lines.next()?;
        }
        Ok((lines, skipped == 0))
    }

    /// How many bytes were asked for so far.
    pub(super) const fn read(&self) -> u64 {
        self.offset
    }

    /// The next line, if there is one.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let offset = self.offset;
        let mut ending = Ending::Torn;
        let mut too_long = false;
        loop {
            let part = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                part => part?,
            };
            if part.is_empty() {
                break;
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(part.len(), |end| end + 1);
            let text = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            too_long |= self.line.len() + text.len() > self.longest;
            if too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(text);
            }
            self.from.consume(taken);
            self.offset += taken as u64;
            if end.is_some() {
                ending = Ending::Whole;
                break;
            }
        }
        if self.offset == offset {
            return Ok(None);
        }
        self.number += 1;
        if too_long && ending == Ending::Whole {
            ending = Ending::TooLong;
        }
        Ok(Some(Line { number: self.number, offset, text: &self.line, ending }))
    }
}

/// A text of JSON; `None` for another kind of value.
pub(super) fn text<'a>(raw: Option<&'a RawValue>) -> Option<Cow<'a, str>> {
    let raw = raw?.get();
    // Most texts have no escapes: they need no copy.
    serde_json::from_str::<&'a str>(raw)
        .map(Cow::Borrowed)
        .or_else(|_| serde_json::from_str::<String>(raw).map(Cow::Owned))
        // Clients cut texts in the middle of a character.
        .or_else(|_| serde_json::from_str::<String>(&mend(raw)).map(Cow::Owned))
        .ok()
}

/// A value that is there and not `null`.
pub(super) fn given(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], longest: usize) -> Vec<(u64, u64, Vec<u8>, Ending)> {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(scratch.path(), bytes).unwrap();
        let mut lines = Lines::open(scratch.path()).unwrap();
        lines.longest = longest;
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.offset, line.text.to_vec(), line.ending));
        }
        all
    }

    #[test]
    fn lines_are_whole_torn_or_too_long() {
        let read = read(b"one\n\nmuch too long\nx\ntor", 4);
        let texts: Vec<(&[u8], Ending)> = read.iter().map(|line| (&line.2[..], line.3)).collect();
        let whole = Ending::Whole;
        assert_eq!(
            texts,
            [(&b"one"[..], whole), (b"", whole), (b"", Ending::TooLong), (b"x", whole), (b"tor", Ending::Torn)]
        );
        assert_eq!(
            read.iter().map(|line| (line.0, line.1)).collect::<Vec<_>>(),
            [(1, 0), (2, 4), (3, 5), (4, 19), (5, 21)]
        );
    }

    #[test]
    fn the_end_of_a_file_begins_with_a_line_of_its_own() {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(scratch.path(), b"one\ntwo\nthree\n").unwrap();
        for (most, first, all) in [
            (99, "one", true),
            (14, "one", true),
            (13, "two", false),
            (10, "two", false),
            (9, "three", false),
            (6, "three", false),
        ] {
            let (mut lines, whole) = Lines::open_end(scratch.path(), most).unwrap();
            let line = lines.next().unwrap().unwrap();
            assert_eq!((str::from_utf8(line.text).unwrap(), whole), (first, all), "{most}");
            while lines.next().unwrap().is_some() {}
            assert!(lines.read() <= most + 1, "{most}");
        }
        assert!(Lines::open_end(scratch.path(), 3).unwrap().0.next().unwrap().is_none());
    }

    #[test]
    fn the_beginning_of_a_file_ends_where_it_was_said() {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(scratch.path(), b"one\ntwo\nthree\n").unwrap();
        for (most, wanted) in [(99, vec!["one", "two", "three"]), (6, vec!["one", "tw"]), (4, vec!["one"]), (0, vec![])]
        {
            let mut lines = Lines::open_begin(scratch.path(), most).unwrap();
            let mut texts = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                texts.push(String::from_utf8(line.text.to_vec()).unwrap());
            }
            assert_eq!(texts, wanted, "{most}");
            assert!(lines.read() <= most, "{most}");
        }
    }

    #[test]
    fn an_empty_file_has_no_line() {
        assert!(read(b"", 4).is_empty());
    }

    #[test]
    fn texts_with_escapes_are_read_too() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(text(Some(&raw(r#""a\"b""#))).as_deref(), Some("a\"b"));
        assert_eq!(text(Some(&raw(r#""plain""#))).as_deref(), Some("plain"));
        assert_eq!(text(Some(&raw(r#""a\ud83d""#))).as_deref(), Some("a\u{fffd}"));
        assert_eq!(text(Some(&raw("7"))), None);
    }
}
