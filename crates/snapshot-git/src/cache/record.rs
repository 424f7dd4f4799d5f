//! The bytes of one record: a directory as it was last seen.
//!
//! A record is only ever trusted field by field against fresh stamps; a record that cannot be read is no record.

use std::ffi::CStr;

use checkpoint_core::{ObjectId, SkipReason};

use crate::rules::Digest;

/// What distinguishes two versions of a file without reading it. Times are nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) size: u64,
    pub(crate) ino: u64,
}

impl Stamp {
    /// The later of both times.
    pub(crate) fn newest(&self) -> i64 {
        self.mtime.max(self.ctime)
    }
}

/// What one name of a directory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A regular file with its content.
    File(Stamp, ObjectId),
    /// A symbolic link with its text.
    Link(Stamp, ObjectId),
    /// A FIFO.
    Fifo,
    /// A directory with its tree and its meta tree, where it has them.
    Dir(Option<ObjectId>, Option<ObjectId>),
    /// Left out; `true` when it is a directory.
    Skipped(SkipReason, bool),
    /// Vanished: only in memory, as a change to a record.
    Gone,
}

impl What {
    /// True for what a snapshot holds.
    pub(crate) const fn is_captured(&self) -> bool {
        matches!(self, Self::File(..) | Self::Link(..) | Self::Fifo | Self::Dir(..))
    }
}

/// Flags of an entry.
pub(crate) mod flag {
    /// A rule leaves the entry out, and somebody wants it all the same.
    pub(crate) const WANTED_RULE: u8 = 1;
    /// It is over the size cap, and somebody wants it all the same.
    pub(crate) const WANTED_SIZE: u8 = 2;
    /// Its stamp was too young to be trusted.
    pub(crate) const RACY: u8 = 4;
    /// It, or something below it, was tracked at the record's index digest. Says something only with [`JUDGED`].
    pub(crate) const TRACKED: u8 = 8;
    /// Whether it is tracked was looked up.
    pub(crate) const JUDGED: u8 = 16;
    /// What is remembered of the look-up.
    pub(crate) const LOOKED_UP: u8 = TRACKED | JUDGED;
}

/// One name of a directory, owned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Box<[u8]>,
    pub(crate) what: What,
    pub(crate) mode: u16,
    pub(crate) flags: u8,
}

/// What a record says of one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub(crate) what: What,
    pub(crate) mode: u16,
    pub(crate) flags: u8,
}

/// One name of a directory inside a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRef<'r> {
    pub(crate) name: &'r CStr,
    pub(crate) known: Known,
}

impl EntryRef<'_> {
    pub(crate) fn to_entry(self) -> Entry {
        let Known { what, mode, flags } = self.known;
        Entry { name: self.name.to_bytes().into(), what, mode, flags }
    }
}

/// Flags of a record.
pub(crate) mod dir_flag {
    /// The directory's stamp was older than the racy window when it was listed.
    pub(crate) const SETTLED: u8 = 1;
    /// A repository of its own.
    pub(crate) const NESTED: u8 = 2;
    /// It holds nothing that was captured, and a rule leaves it out as a whole.
    pub(crate) const COLLAPSED: u8 = 4;
    /// Some entry is skipped.
    pub(crate) const HAS_SKIPPED: u8 = 8;
    /// Some entry depends on what is tracked, held or wanted.
    pub(crate) const EXCEPTIONS: u8 = 16;
    /// A rule file of this directory is not captured: it must be read each time.
    pub(crate) const LOOSE_RULES: u8 = 32;
}

/// A directory's own facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) flags: u8,
    pub(crate) mode: u16,
    pub(crate) dev: u64,
    /// Its own stamp; the size does not count.
    pub(crate) stamp: Stamp,
    /// Everything that the ignore decisions rest on.
    pub(crate) rules: Digest,
    /// At the root: rule files that are not captured.
    pub(crate) extra: Digest,
    /// The user's index when tracked paths were looked up; 0 never matches.
    pub(crate) index: u64,
    pub(crate) tree: Option<ObjectId>,
    pub(crate) meta: Option<ObjectId>,
}

/// The record of one directory.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) head: Head,
    body: Box<[u8]>,
    /// Where the path ends and where the entries begin.
    path_end: usize,
    entries: usize,
}

impl Record {
    /// Reads a body. `None` for anything that does not fit.
    pub(crate) fn parse(body: Box<[u8]>) -> Option<Self> {
        let mut at = Reader(&body);
        let path_len = at.u32()? as usize;
        at.take(path_len)?;
        let path_end = body.len() - at.0.len();
        let head = Head {
            flags: at.u8()?,
            mode: at.u16()?,
            dev: at.u64()?,
            stamp: Stamp { ino: at.u64()?, mtime: at.i64()?, ctime: at.i64()?, size: 0 },
            rules: at.array()?,
            extra: at.array()?,
            index: at.u64()?,
            tree: at.id()?,
            meta: at.id()?,
        };
        let entries = body.len() - at.0.len();
        Some(Self { head, body, path_end, entries })
    }

    /// The path that begins a body, without the rest.
    pub(crate) fn path_of(body: &[u8]) -> Option<&[u8]> {
        let mut at = Reader(body);
        let len = at.u32()? as usize;
        at.take(len)
    }

    /// The directory, from the root.
    pub(crate) fn path(&self) -> &[u8] {
        self.body.get(4..self.path_end).unwrap_or_default()
    }

    /// All of it, to tell an unchanged record.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The entries in the order they were written, up to the first that cannot be read.
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries(Reader(self.body.get(self.entries..).unwrap_or_default()))
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.head.flags & flag != 0
    }
}

/// Iterates over a record's entries.
#[derive(Debug)]
pub(crate) struct Entries<'r>(Reader<'r>);

impl<'r> Iterator for Entries<'r> {
    type Item = EntryRef<'r>;

    fn next(&mut self) -> Option<EntryRef<'r>> {
        let at = &mut self.0;
        let len = usize::from(at.u8()?);
        let name = CStr::from_bytes_with_nul(at.take(len + 1)?).ok()?;
        let kind = at.u8()?;
        let flags = at.u8()?;
        let mode = at.u16()?;
        let what = match kind {
            1 | 2 => {
                let stamp = Stamp { mtime: at.i64()?, ctime: at.i64()?, size: at.u64()?, ino: at.u64()? };
                let id = ObjectId::from_bytes(at.array()?);
                if kind == 1 { What::File(stamp, id) } else { What::Link(stamp, id) }
            }
            3 => What::Fifo,
            4 => What::Dir(at.id()?, at.id()?),
            _ => What::Skipped(reason(kind & 0x7f)?, kind & 0x80 != 0),
        };
        Some(EntryRef { name, known: Known { what, mode, flags } })
    }
}

/// Writes a body.
pub(crate) fn encode(out: &mut Vec<u8>, path: &[u8], head: &Head, entries: &[Entry]) {
    out.extend(u32::try_from(path.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(path);
    out.push(head.flags);
    out.extend(head.mode.to_le_bytes());
    out.extend(head.dev.to_le_bytes());
    out.extend(head.stamp.ino.to_le_bytes());
    out.extend(head.stamp.mtime.to_le_bytes());
    out.extend(head.stamp.ctime.to_le_bytes());
    out.extend_from_slice(&head.rules);
    out.extend_from_slice(&head.extra);
    out.extend(head.index.to_le_bytes());
    put_id(out, head.tree);
    put_id(out, head.meta);
    for entry in entries {
        // A longer name cannot be a path of a workspace; it has been dropped before.
        let Ok(len) = u8::try_from(entry.name.len()) else { continue };
        let kind = match entry.what {
            What::File(..) => 1,
            What::Link(..) => 2,
            What::Fifo => 3,
            What::Dir(..) => 4,
            What::Skipped(why, is_dir) => code(why) | if is_dir { 0x80 } else { 0 },
            What::Gone => continue,
        };
        out.push(len);
        out.extend_from_slice(&entry.name);
        out.extend([0, kind, entry.flags]);
        out.extend(entry.mode.to_le_bytes());
        match entry.what {
            What::File(stamp, id) | What::Link(stamp, id) => {
                out.extend(stamp.mtime.to_le_bytes());
                out.extend(stamp.ctime.to_le_bytes());
                out.extend(stamp.size.to_le_bytes());
                out.extend(stamp.ino.to_le_bytes());
                out.extend_from_slice(id.as_bytes());
            }
            What::Dir(tree, meta) => {
                put_id(out, tree);
                put_id(out, meta);
            }
            What::Fifo | What::Skipped(..) | What::Gone => {}
        }
    }
}

fn put_id(out: &mut Vec<u8>, id: Option<ObjectId>) {
    out.extend_from_slice(&id.map_or([0; 20], |id| *id.as_bytes()));
}

/// Codes of skip reasons: part of the format, never reused.
const REASONS: [(u8, SkipReason); 11] = [
    (16, SkipReason::IgnoredRoot),
    (17, SkipReason::TooLarge),
    (18, SkipReason::Unreadable),
    (19, SkipReason::Special),
    (20, SkipReason::NestedRepo),
    (21, SkipReason::ChangedWhileReading),
    (22, SkipReason::Budget),
    (23, SkipReason::Collision),
    (24, SkipReason::Reserved),
    (25, SkipReason::Name),
    (26, SkipReason::Purged),
];

fn code(why: SkipReason) -> u8 {
    // An unknown reason is looked at afresh each time, as an unreadable file is.
    REASONS.iter().find(|(_, r)| *r == why).map_or(18, |(c, _)| *c)
}

fn reason(code: u8) -> Option<SkipReason> {
    REASONS.iter().find(|(c, _)| *c == code).map(|(_, r)| *r)
}

/// Reads little-endian fields; `None` past the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'c>(pub(crate) &'c [u8]);

impl<'c> Reader<'c> {
    pub(crate) fn take(&mut self, n: usize) -> Option<&'c [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    #[expect(clippy::option_option, reason = "past the end, and no id: two different answers")]
    fn id(&mut self) -> Option<Option<ObjectId>> {
        let bytes = self.array()?;
        Some((bytes != [0; 20]).then(|| ObjectId::from_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Head, Vec<Entry>) {
        let id = |n| ObjectId::from_bytes([n; 20]);
        let stamp = Stamp { mtime: -5, ctime: i64::MAX, size: u64::MAX, ino: 7 };
        let entry = |name: &[u8], what, mode, flags| Entry { name: name.into(), what, mode, flags };
        let entries = vec![
            entry(b"a", What::File(stamp, id(1)), 0o644, flag::RACY),
            entry(b"\xff\xfe", What::Link(stamp, id(2)), 0o777, 0),
            entry(b"fifo", What::Fifo, 0o600, 0),
            entry(b"d", What::Dir(Some(id(3)), None), 0o755, 0),
            entry(b"t", What::Skipped(SkipReason::IgnoredRoot, true), 0, flag::TRACKED),
            entry(&[b'x'; 255], What::Skipped(SkipReason::Name, false), 0, 0),
        ];
        let head = Head {
            flags: dir_flag::SETTLED,
            mode: 0o750,
            dev: 9,
            stamp: Stamp { size: 0, ..stamp },
            rules: [4; 16],
            extra: [5; 16],
            index: 6,
            tree: Some(id(7)),
            meta: None,
        };
        (head, entries)
    }

    #[test]
    fn what_is_written_is_read() {
        let (head, entries) = sample();
        let mut body = Vec::new();
        encode(&mut body, b"some/dir", &head, &entries);
        let record = Record::parse(body.clone().into()).unwrap();
        assert_eq!((record.path(), record.head, record.body()), (&b"some/dir"[..], head, &body[..]));
        assert_eq!(Record::path_of(&body), Some(&b"some/dir"[..]));
        assert_eq!(record.entries().map(EntryRef::to_entry).collect::<Vec<_>>(), entries);
    }

    #[test]
    fn a_cut_body_is_no_record_or_has_fewer_entries() {
        let (head, entries) = sample();
        let mut body = Vec::new();
        encode(&mut body, b"d", &head, &entries);
        for n in 0..body.len() {
            if let Some(record) = Record::parse(body[..n].into()) {
                assert!(record.entries().count() < entries.len());
            }
        }
    }

    #[test]
    fn every_reason_has_a_code_of_its_own() {
        for (number, why) in REASONS {
            assert_eq!((code(why), reason(number)), (number, Some(why)));
        }
    }
}
