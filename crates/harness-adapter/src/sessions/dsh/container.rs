//! The container of a log: plain lines, or lines in a series of independent Zstandard frames.
//!
//! Frames are found by their structure before anything is decoded, so that offsets are exact and a torn last frame is told
//! from damage. Lines are then decoded one by one: memory is one line and the decoder's window, whatever a frame holds.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use serde::Serialize;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::error::{LogError, Place};

/// How the lines of a log are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// As a series of Zstandard frames.
    Zstd,
    /// As they are.
    Plain,
}

impl Encoding {
    /// What the file's name ends with.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Zstd => ".jsonl.zstd",
            Self::Plain => ".jsonl",
        }
    }
}

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Longer lines cannot be strings of the host's runtime, which ends at 2^29 - 24 code units.
const LONGEST_LINE: usize = 1 << 29;

/// Longest header: ten times what the longest path and ids make.
const LONGEST_HEADER: usize = 1 << 20;

const CHUNK: usize = 1 << 17;

/// Where a whole frame lies in the file.
#[derive(Clone, Copy, Debug)]
struct Frame {
    start: u64,
    end: u64,
}

/// The frames of a file.
#[derive(Debug, Default)]
pub(super) struct Frames {
    whole: Vec<Frame>,
    /// Start of a last frame that the file does not hold to its end.
    pub(super) torn: Option<u64>,
    /// Where the file ended when it was looked at.
    len: u64,
}

/// Finds the frames in the first `len` bytes of a file, or only the first `most`, without decoding anything.
pub(super) fn scan(path: &Path, file: &File, len: u64, most: usize) -> Result<Frames, LogError> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    reader.seek(SeekFrom::Start(0)).map_err(LogError::io("read", path))?;
    let mut frames = Frames { len, ..Frames::default() };
    let mut start = 0;
    while start < len && frames.whole.len() < most {
        let mut at = Cursor { path, reader: &mut reader, at: start, len };
        let Some(end) = at.frame()? else {
            frames.torn = Some(start);
            break;
        };
        frames.whole.push(Frame { start, end });
        start = end;
    }
    Ok(frames)
}

/// A place in the structure of frames.
struct Cursor<'a, 'f> {
    path: &'a Path,
    reader: &'a mut BufReader<&'f File>,
    at: u64,
    len: u64,
}

impl Cursor<'_, '_> {
    /// The next bytes; `None` when the file ends before.
    fn take<const N: usize>(&mut self) -> Result<Option<[u8; N]>, LogError> {
        if self.at + N as u64 > self.len {
            return Ok(None);
        }
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(LogError::io("read", self.path))?;
        self.at += N as u64;
        Ok(Some(bytes))
    }

    fn skip(&mut self, bytes: u64) -> Result<bool, LogError> {
        if self.at + bytes > self.len {
            return Ok(false);
        }
        self.reader.seek_relative(bytes.cast_signed()).map_err(LogError::io("read", self.path))?;
        self.at += bytes;
        Ok(true)
    }

    /// The end of the frame that begins here; `None` when the file ends inside it.
    fn frame(&mut self) -> Result<Option<u64>, LogError> {
        let start = self.at;
        let Some(magic) = self.take::<4>()? else { return Ok(None) };
        if magic != MAGIC {
            return Err(LogError::corrupt(self.path, Place::Byte(start), "no frame begins here"));
        }
        let Some([descriptor]) = self.take::<1>()? else { return Ok(None) };
        if descriptor & 0b1_1000 != 0 {
            return Err(LogError::corrupt(self.path, Place::Byte(start), "the frame has an unknown descriptor"));
        }
        let single = descriptor & 0b10_0000 != 0;
        let dictionary = [0, 1, 2, 4][usize::from(descriptor & 0b11)];
        let content = match descriptor >> 6 {
            0 => u64::from(single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        if !self.skip(u64::from(!single) + dictionary + content)? {
            return Ok(None);
        }
        loop {
            let Some([a, b, c]) = self.take::<3>()? else { return Ok(None) };
            let block = u32::from_le_bytes([a, b, c, 0]);
            let size = match block >> 1 & 0b11 {
                1 => 1,
                3 => {
                    let why = "the frame has a block of an unknown type";
                    return Err(LogError::corrupt(self.path, Place::Byte(start), why));
                }
                _ => u64::from(block >> 3),
            };
            if !self.skip(size)? {
                return Ok(None);
            }
            if block & 1 == 1 {
                break;
            }
        }
        let checksum = if descriptor & 0b100 == 0 { 0 } else { 4 };
        Ok(self.skip(checksum)?.then_some(self.at))
    }
}

/// Reads the header's line, with its end, and says where the rows begin. `Err` names what is wrong with the first frame;
/// `Ok(None)`: the file has no complete first line.
pub(super) fn header_line(
    path: &Path,
    file: &File,
    len: u64,
    encoding: Encoding,
) -> Result<Option<(Vec<u8>, u64)>, LogError> {
    let mut line = Vec::new();
    if encoding == Encoding::Plain {
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(0)).map_err(LogError::io("read", path))?;
        let most = len.min(LONGEST_HEADER as u64);
        reader.take(most).read_until(b'\n', &mut line).map_err(LogError::io("read", path))?;
        let at = line.len() as u64;
        return Ok(line.ends_with(b"\n").then_some((line, at)));
    }
    let frames = scan(path, file, len, 1)?;
    let Some(first) = frames.whole.first().copied() else { return Ok(None) };
    let mut decoded = Decoded::new(path, file, Frames { whole: vec![first], torn: None, len })?;
    while decoded.fill(true)? {
        line.extend_from_slice(decoded.chunk());
        decoded.used = decoded.filled;
        if line.len() > LONGEST_HEADER {
            break;
        }
    }
    if line.iter().position(|byte| *byte == b'\n') != Some(line.len().wrapping_sub(1)) {
        return Err(LogError::corrupt(path, Place::Byte(0), "the first frame is not exactly one header line"));
    }
    Ok(Some((line, first.end)))
}

/// A line of a log.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Without its end.
    pub(super) bytes: &'a [u8],
    /// From 1, the header not counted.
    pub(super) number: u64,
    /// False for a last line that is not ended.
    pub(super) ended: bool,
    /// True when it comes from a torn frame.
    pub(super) torn: bool,
    /// Everything in the file before this offset is lines before this one, in whole frames.
    pub(super) clean: u64,
}

/// The lines of a log from some offset on.
pub(super) struct Lines<'a> {
    path: &'a Path,
    source: Source<'a>,
    line: Vec<u8>,
    number: u64,
    clean: u64,
}

enum Source<'a> {
    Plain { reader: io::Take<BufReader<&'a File>>, at: u64 },
    Zstd(Box<Decoded<'a>>),
}

impl<'a> Lines<'a> {
    /// `from` is the start of a line, in a compressed log also that of a frame; `number` is the line before it.
    pub(super) fn new(
        path: &'a Path,
        file: &'a File,
        frames: Option<&Frames>,
        from: u64,
        len: u64,
        number: u64,
    ) -> Result<Self, LogError> {
        let source = if let Some(frames) = frames {
            let whole = frames.whole.iter().filter(|frame| frame.start >= from).copied().collect();
            Source::Zstd(Box::new(Decoded::new(path, file, Frames { whole, torn: frames.torn, len: frames.len })?))
        } else {
            let mut reader = BufReader::with_capacity(CHUNK, file);
            reader.seek(SeekFrom::Start(from)).map_err(LogError::io("read", path))?;
            Source::Plain { reader: reader.take(len.saturating_sub(from)), at: from }
        };
        Ok(Self { path, source, line: Vec::new(), number, clean: from })
    }

    /// The offset before which everything is whole frames of the lines so far; after the last line, of all lines but those
    /// of a torn frame.
    pub(super) fn clean(&self) -> u64 {
        self.clean
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, LogError> {
        self.line.clear();
        self.number += 1;
        let mut torn = false;
        // Where the line began: more of it may come from further frames.
        let clean;
        match &mut self.source {
            Source::Plain { reader, at } => {
                let most = LONGEST_LINE as u64 + 1;
                let read = reader.by_ref().take(most).read_until(b'\n', &mut self.line);
                let read = read.map_err(LogError::io("read", self.path))?;
                clean = *at;
                *at += read as u64;
                self.clean = *at;
            }
            Source::Zstd(decoded) => {
                let mut began = None;
                while !self.line.ends_with(b"\n") && self.line.len() <= LONGEST_LINE {
                    let mut rest = decoded.chunk();
                    if rest.is_empty() {
                        if !decoded.fill(self.line.is_empty())? {
                            break;
                        }
                        continue;
                    }
                    began.get_or_insert(decoded.clean);
                    torn |= decoded.in_torn;
                    // Reading from a slice cannot fail.
                    let read = rest.read_until(b'\n', &mut self.line).map_err(LogError::io("read", self.path))?;
                    decoded.used += read;
                }
                clean = began.unwrap_or(decoded.clean);
                self.clean = decoded.clean;
            }
        }
        if self.line.len() > LONGEST_LINE {
            let why = "the line is longer than the host can read";
            return Err(LogError::corrupt(self.path, Place::Row(self.number), why));
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        let ended = self.line.ends_with(b"\n");
        let bytes = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok(Some(Line { bytes, number: self.number, ended, torn, clean }))
    }
}

/// The text of frames, piece by piece.
struct Decoded<'a> {
    path: &'a Path,
    file: &'a File,
    frames: Frames,
    /// The next frame to begin.
    next: usize,
    /// The frame at work: where it ends, and whether its end is missing.
    frame: Option<(Frame, bool)>,
    /// True once the torn frame has begun: it is the last.
    in_torn: bool,
    decoder: Decoder<'static>,
    input: Box<[u8]>,
    /// What of `input` is not decoded yet, and its place in the file.
    start: usize,
    end: usize,
    at: u64,
    output: Box<[u8]>,
    used: usize,
    filled: usize,
    clean: u64,
}

impl<'a> Decoded<'a> {
    fn new(path: &'a Path, file: &'a File, frames: Frames) -> Result<Self, LogError> {
        Ok(Self {
            path,
            file,
            clean: frames.whole.first().map(|frame| frame.start).or(frames.torn).unwrap_or(0),
            frames,
            next: 0,
            frame: None,
            in_torn: false,
            decoder: Decoder::new().map_err(LogError::io("decode", path))?,
            input: vec![0; CHUNK].into(),
            start: 0,
            end: 0,
            at: u64::MAX,
            output: vec![0; CHUNK].into(),
            used: 0,
            filled: 0,
        })
    }

    fn chunk(&self) -> &[u8] {
        &self.output[self.used..self.filled]
    }

    /// Decodes on once everything is used up; false at the end. `between`: no line is begun, a frame may begin as well.
    fn fill(&mut self, between: bool) -> Result<bool, LogError> {
        loop {
            let Some((frame, torn)) = self.frame else {
                if !self.begin(between)? {
                    return Ok(false);
                }
                continue;
            };
            if self.start == self.end && self.at < frame.end {
                let most = self.input.len().min(usize::try_from(frame.end - self.at).unwrap_or(usize::MAX));
                let read = self.file.read(&mut self.input[..most]).map_err(LogError::io("read", self.path))?;
                if read == 0 {
                    return Err(LogError::Changed { path: self.path.to_owned() });
                }
                (self.start, self.end) = (0, read);
            }
            let mut input = InBuffer::around(&self.input[self.start..self.end]);
            let mut output = OutBuffer::around(&mut *self.output);
            let result = self.decoder.run(&mut input, &mut output);
            let (read, written) = (input.pos(), output.pos());
            self.start += read;
            self.at += read as u64;
            (self.used, self.filled) = (0, written);
            let bad =
                || LogError::corrupt(self.path, Place::Byte(frame.start), "the frame's data or checksum is wrong");
            match result {
                // What a torn frame still gives is kept; the rest of it is what a crash left.
                Err(_) if torn => self.frame = None,
                Ok(0) if self.at == frame.end && !torn => self.frame = None,
                Ok(0) | Err(_) => return Err(bad()),
                Ok(_) if read == 0 && written == 0 && self.at == frame.end => {
                    if !torn {
                        return Err(bad());
                    }
                    self.frame = None;
                }
                Ok(_) => {}
            }
            if self.filled > 0 {
                return Ok(true);
            }
        }
    }

    /// Begins the next frame; false when there is none.
    fn begin(&mut self, between: bool) -> Result<bool, LogError> {
        let (frame, torn) = match (self.frames.whole.get(self.next), self.frames.torn) {
            (Some(frame), _) => (*frame, false),
            (None, Some(start)) if self.next == self.frames.whole.len() => {
                (Frame { start, end: self.frames.len }, true)
            }
            _ => {
                if let (true, None, Some(last)) = (between, self.frames.torn, self.frames.whole.last()) {
                    self.clean = last.end;
                }
                return Ok(false);
            }
        };
        if torn && !between {
            return Err(LogError::corrupt(self.path, Place::Byte(frame.start), "a complete frame ends inside a row"));
        }
        if between {
            self.clean = frame.start;
        }
        self.next += 1;
        self.frame = Some((frame, torn));
        self.in_torn = torn;
        self.decoder.reinit().map_err(LogError::io("decode", self.path))?;
        if self.at != frame.start {
            let mut file = self.file;
            file.seek(SeekFrom::Start(frame.start)).map_err(LogError::io("read", self.path))?;
            (self.at, self.start, self.end) = (frame.start, 0, 0);
        }
        Ok(true)
    }
}

/// Opens a log for reading. Looks first: to open a pipe would wait for whoever writes into it.
pub(super) fn open(path: &Path) -> Result<File, LogError> {
    let regular = |facts: &fs::Metadata| {
        let other = || LogError::io("read", path)(io::ErrorKind::InvalidInput.into());
        if facts.is_file() { Ok(()) } else { Err(other()) }
    };
    regular(&fs::metadata(path).map_err(LogError::io("open", path))?)?;
    let file = File::open(path).map_err(LogError::io("open", path))?;
    regular(&file.metadata().map_err(LogError::io("read", path))?)?;
    Ok(file)
}

/// How a log is stored, by its first bytes.
pub(super) fn guess(path: &Path) -> Result<Encoding, LogError> {
    let mut start = Vec::new();
    let file = open(path)?;
    file.take(4).read_to_end(&mut start).map_err(LogError::io("read", path))?;
    Ok(if start == MAGIC { Encoding::Zstd } else { Encoding::Plain })
}
