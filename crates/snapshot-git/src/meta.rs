//! The meta tree: what a git tree cannot say, one blob per directory that has something to say (design § 4).
//!
//! A blob is the line `rwd meta 1.0` and then records, each `TAG LENGTH:` with that many bytes and a newline, so that
//! a reader can step over a tag it does not know. `docs/format-store.md` lists the tags.

use std::collections::BTreeMap;

use checkpoint_core::{Mode, SkipReason, SnapshotError};

/// How every meta blob begins, whatever its version.
pub(crate) const MAGIC: &[u8] = b"rwd meta ";
const VERSION: &[u8] = b"1.0";

/// Name of a directory's own blob in its meta tree.
pub(crate) const BLOB: &[u8] = b"meta";
/// Put before a subdirectory's name in its parent's meta tree, so that no name collides with [`BLOB`].
pub(crate) const DIR_PREFIX: u8 = b'+';

/// Which of a directory's default modes applies to an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ModeClass {
    /// A file that a git tree calls 100644.
    File,
    /// A file that a git tree calls 100755.
    Executable,
    /// A directory.
    Dir,
}

/// Permission bits of the entries of one directory that are not named in its `modes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Defaults {
    /// Files.
    pub(crate) file: Mode,
    /// Executable files.
    pub(crate) executable: Mode,
    /// Directories.
    pub(crate) dir: Mode,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { file: Mode(0o644), executable: Mode(0o755), dir: Mode(0o755) }
    }
}

impl Defaults {
    /// The default of a class.
    pub(crate) const fn of(self, class: ModeClass) -> Mode {
        match class {
            ModeClass::File => self.file,
            ModeClass::Executable => self.executable,
            ModeClass::Dir => self.dir,
        }
    }
}

/// What the meta blob of one directory holds. Names are single components, any bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct DirMeta {
    /// Permission bits of entries that `modes` does not name. [`DirMeta::set_modes`] chooses them, so that a
    /// directory under an unusual umask does not list every file.
    pub(crate) defaults: Defaults,
    /// Permission bits of entries that differ from the defaults: 0644 for files, 0755 for executable files and for
    /// directories. Keys are files and directories of this directory.
    pub(crate) modes: BTreeMap<Vec<u8>, Mode>,
    /// Directories of this directory that are captured and have no captured file anywhere below: a git tree cannot
    /// hold them. (They may have a meta tree of their own, for FIFOs and what was skipped below.)
    pub(crate) empty: Vec<Vec<u8>>,
    /// FIFOs with their permission bits.
    pub(crate) fifos: BTreeMap<Vec<u8>, Mode>,
    /// Entries left out, with the reason.
    pub(crate) skipped: BTreeMap<Vec<u8>, SkipReason>,
    /// At the root only: ignore sources that lie outside the tree, caps and globs, as (name, content).
    pub(crate) rules: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl DirMeta {
    /// Takes the permission bits of all files and directories of the directory: the most frequent of each class
    /// becomes the default, the others are named. The same entries always give the same result.
    pub(crate) fn set_modes<'n>(&mut self, entries: impl Iterator<Item = (&'n [u8], ModeClass, Mode)> + Clone) {
        let mut counts: BTreeMap<(ModeClass, Mode), u64> = BTreeMap::new();
        for (_, class, mode) in entries.clone() {
            *counts.entry((class, mode)).or_default() += 1;
        }
        let usual = Defaults::default();
        // At equal counts the usual default wins, then the lower bits.
        let best = |class: ModeClass| {
            let of_class = counts.iter().filter(|((c, _), _)| *c == class);
            let best = of_class.max_by_key(|((_, mode), n)| (**n, *mode == usual.of(class), std::cmp::Reverse(*mode)));
            best.map_or(usual.of(class), |((_, mode), _)| *mode)
        };
        self.defaults = Defaults {
            file: best(ModeClass::File),
            executable: best(ModeClass::Executable),
            dir: best(ModeClass::Dir),
        };
        let defaults = self.defaults;
        self.modes = entries
            .filter(|(_, class, mode)| defaults.of(*class) != *mode)
            .map(|(name, _, mode)| (name.to_vec(), mode))
            .collect();
    }

    /// Permission bits of an entry.
    pub(crate) fn mode(&self, name: &[u8], class: ModeClass) -> Mode {
        self.modes.get(name).copied().unwrap_or_else(|| self.defaults.of(class))
    }

    /// The blob, versioned and sorted by name bytes; `None` when there is nothing to say.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        if *self == Self::default() {
            return None;
        }
        let mut out = [MAGIC, VERSION, b"\n"].concat();
        let mut record = |tag: &str, parts: &[&[u8]]| {
            let len: usize = parts.iter().map(|p| p.len()).sum();
            out.extend_from_slice(format!("{tag} {len}:").as_bytes());
            for part in parts {
                out.extend_from_slice(part);
            }
            out.push(b'\n');
        };
        let octal = |mode: &Mode| format!("{:04o} ", mode.0);
        if self.defaults != Defaults::default() {
            let Defaults { file, executable, dir } = self.defaults;
            record("default", &[format!("{:04o} {:04o} {:04o}", file.0, executable.0, dir.0).as_bytes()]);
        }
        for (name, mode) in &self.modes {
            record("mode", &[octal(mode).as_bytes(), name]);
        }
        let mut empty: Vec<_> = self.empty.iter().collect();
        empty.sort_unstable();
        empty.dedup();
        for name in empty {
            record("empty", &[name]);
        }
        for (name, mode) in &self.fifos {
            record("fifo", &[octal(mode).as_bytes(), name]);
        }
        for (name, reason) in &self.skipped {
            record("skipped", &[reason.code().as_bytes(), b" ", name]);
        }
        for (name, content) in &self.rules {
            record("rule", &[format!("{}:", name.len()).as_bytes(), name, content]);
        }
        Some(out)
    }

    /// [`DirMeta::encode`] for a directory that has the blob `old`: its version, where that is a newer one, and records
    /// that this version does not know stay.
    pub(crate) fn encode_over(&self, old: Option<&[u8]>) -> Option<Vec<u8>> {
        let body = self.encode();
        let Some(old) = old.and_then(|old| old.strip_prefix(MAGIC)) else { return body };
        let end = old.iter().position(|b| *b == b'\n')?;
        let (version, mut rest) = (&old[..end], &old[end + 1..]);
        let mut unknown = Vec::new();
        while let Some((tag, _, after)) = record(rest) {
            if !matches!(tag, b"default" | b"mode" | b"fifo" | b"empty" | b"skipped" | b"rule") {
                unknown.extend_from_slice(&rest[..rest.len() - after.len()]);
            }
            rest = after;
        }
        if unknown.is_empty() && body.is_none() {
            return None;
        }
        let head = [MAGIC, VERSION, b"\n"].concat();
        let known = body.unwrap_or_else(|| head.clone());
        Some([MAGIC, version, b"\n", &known[head.len()..], &unknown].concat())
    }

    /// Reads a blob of this or a newer minor format.
    pub(crate) fn decode(blob: &[u8]) -> Result<Self, SnapshotError> {
        let wrong =
            |why: &'static str| SnapshotError::Other { what: "reading a directory's meta blob", source: why.into() };
        let rest = blob.strip_prefix(MAGIC).ok_or_else(|| wrong("it does not begin as one"))?;
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(|| wrong("its first line does not end"))?;
        let (version, mut rest) = (&rest[..end], &rest[end + 1..]);
        let major = version.split(|b| *b == b'.').next().and_then(number).ok_or_else(|| wrong("it has no version"))?;
        if major > 1 {
            let found = String::from_utf8_lossy(version).into_owned();
            return Err(SnapshotError::TooNew { found, supported: "1.0".to_owned() });
        }
        let mut meta = Self::default();
        while !rest.is_empty() {
            let (tag, payload, after) = record(rest).ok_or_else(|| wrong("a record is cut short"))?;
            rest = after;
            let bad = || wrong("a record makes no sense");
            match tag {
                b"default" => {
                    let modes: Vec<Mode> =
                        payload.split(|b| *b == b' ').map(octal).collect::<Option<_>>().ok_or_else(bad)?;
                    let [file, executable, dir] = modes[..] else { return Err(bad()) };
                    meta.defaults = Defaults { file, executable, dir };
                }
                b"mode" | b"fifo" => {
                    let (mode, name) = word(payload).ok_or_else(bad)?;
                    let mode = octal(mode).ok_or_else(bad)?;
                    let map = if tag == b"mode" { &mut meta.modes } else { &mut meta.fifos };
                    map.insert(checked(name).ok_or_else(bad)?, mode);
                }
                b"empty" => meta.empty.push(checked(payload).ok_or_else(bad)?),
                b"skipped" => {
                    let (code, name) = word(payload).ok_or_else(bad)?;
                    meta.skipped.insert(checked(name).ok_or_else(bad)?, reason(code));
                }
                b"rule" => {
                    let at = payload.iter().position(|b| *b == b':').ok_or_else(bad)?;
                    let len = number(&payload[..at]).ok_or_else(bad)?;
                    let (name, content) = payload[at + 1..].split_at_checked(len).ok_or_else(bad)?;
                    meta.rules.insert(name.to_vec(), content.to_vec());
                }
                _ => {}
            }
        }
        Ok(meta)
    }
}

/// Splits off the first record: its tag, its payload, what follows.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (tag, rest) = word(bytes)?;
    let at = rest.iter().take(20).position(|b| *b == b':')?;
    let len = number(&rest[..at])?;
    let (payload, rest) = rest[at + 1..].split_at_checked(len)?;
    Some((tag, payload, rest.strip_prefix(b"\n")?))
}

fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|b| *b == b' ')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn octal(digits: &[u8]) -> Option<Mode> {
    let text = std::str::from_utf8(digits).ok().filter(|t| t.len() == 4 && t.bytes().all(|b| b.is_ascii_digit()))?;
    u16::from_str_radix(text, 8).ok().map(Mode)
}

/// A name that is one component and stays in its directory.
fn checked(name: &[u8]) -> Option<Vec<u8>> {
    let fine = !name.is_empty() && name != b"." && name != b".." && !name.iter().any(|b| matches!(b, b'/' | 0));
    fine.then(|| name.to_vec())
}

/// A reason of a newer minor format is still a reason to keep off; `special` comes nearest.
fn reason(code: &[u8]) -> SkipReason {
    use SkipReason as R;
    let known = [
        R::IgnoredRoot,
        R::TooLarge,
        R::Unreadable,
        R::Special,
        R::NestedRepo,
        R::ChangedWhileReading,
        R::Budget,
        R::Collision,
        R::Reserved,
        R::Name,
        R::Purged,
    ];
    known.into_iter().find(|r| r.code().as_bytes() == code).unwrap_or(R::Special)
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::{btree_map, vec},
        prelude::*,
        sample::select,
    };

    use super::*;

    fn name() -> impl Strategy<Value = Vec<u8>> {
        vec(any::<u8>().prop_filter("a component", |b| !matches!(b, b'/' | 0)), 1..12)
            .prop_filter("a name", |n| n != b"." && n != b"..")
    }

    fn mode() -> impl Strategy<Value = Mode> {
        (0..=0o7777u16).prop_map(Mode)
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            modes in btree_map(name(), mode(), 0..5),
            fifos in btree_map(name(), mode(), 0..3),
            empty in btree_map(name(), Just(()), 0..4),
            skipped in btree_map(name(), select(vec![SkipReason::IgnoredRoot, SkipReason::Name, SkipReason::Budget]), 0..4),
            rules in btree_map(vec(any::<u8>(), 0..9), vec(any::<u8>(), 0..40), 0..3),
            defaults in (mode(), mode(), mode()),
        ) {
            let meta = DirMeta {
                defaults: Defaults { file: defaults.0, executable: defaults.1, dir: defaults.2 },
                modes, fifos, empty: empty.into_keys().collect(), skipped, rules,
            };
            match meta.encode() {
                None => prop_assert_eq!(meta, DirMeta::default()),
                Some(blob) => {
                    prop_assert_eq!(DirMeta::decode(&blob).unwrap(), meta);
                    for cut in 0..blob.len() {
                        drop(DirMeta::decode(&blob[..cut])); // an error or less, never a panic
                    }
                }
            }
        }

        #[test]
        fn rubbish_never_panics(rest in vec(any::<u8>(), 0..60)) {
            drop(DirMeta::decode(&rest));
            drop(DirMeta::decode(&[&b"rwd meta 1.0\n"[..], &rest].concat()));
        }
    }

    #[test]
    fn nothing_to_say_is_no_blob() {
        assert_eq!(DirMeta::default().encode(), None);
    }

    #[test]
    fn a_newer_minor_is_read_without_what_it_adds_and_a_newer_major_is_not() {
        let blob = b"rwd meta 1.9\nxattr 7:a\nb\n\0c!\nempty 1:d\nskipped 12:bad-weather \n\n";
        let blob = blob.strip_suffix(b"skipped 12:bad-weather \n\n").unwrap();
        let meta = DirMeta::decode(&[blob, b"skipped 13:bad-weather x\n"].concat()).unwrap();
        assert_eq!(meta.empty, [b"d".to_vec()]);
        assert_eq!(meta.skipped[&b"x"[..]], SkipReason::Special);
        assert!(matches!(DirMeta::decode(b"rwd meta 2.0\n"), Err(SnapshotError::TooNew { .. })));
    }

    #[test]
    fn what_a_newer_minor_says_outlives_a_rewrite() {
        let old = b"rwd meta 1.9\nxattr 7:a\nb\n\0c!\nempty 1:d\n";
        let mut meta = DirMeta::decode(old).unwrap();
        meta.empty.clear();
        meta.skipped.insert(b"s".to_vec(), SkipReason::Purged);
        let new = meta.encode_over(Some(old)).unwrap();
        assert_eq!(new, b"rwd meta 1.9\nskipped 8:purged s\nxattr 7:a\nb\n\0c!\n");
        assert_eq!(DirMeta::decode(&new).unwrap(), meta);
        assert_eq!(DirMeta::default().encode_over(Some(old)).unwrap(), b"rwd meta 1.9\nxattr 7:a\nb\n\0c!\n");
        assert_eq!(DirMeta::default().encode_over(Some(b"rwd meta 1.0\nempty 1:d\n")), None);
        assert_eq!(DirMeta::default().encode_over(None), None);
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for name in ["..", ".", "", "a/b", "a\0"] {
            let blob = format!("rwd meta 1.0\nempty {}:{name}\n", name.len());
            assert!(DirMeta::decode(blob.as_bytes()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_frequent_mode_is_the_default_and_ties_are_decided() {
        use ModeClass::{Dir, Executable, File};
        let mut meta = DirMeta::default();
        let all = [
            (&b"a"[..], File, Mode(0o664)),
            (b"b", File, Mode(0o664)),
            (b"c", File, Mode(0o644)),
            (b"x", Executable, Mode(0o700)),
            (b"y", Executable, Mode(0o755)),
            (b"d", Dir, Mode(0o2775)),
        ];
        meta.set_modes(all.iter().copied());
        assert_eq!(meta.defaults, Defaults { file: Mode(0o664), executable: Mode(0o755), dir: Mode(0o2775) });
        assert_eq!(meta.modes.len(), 2);
        for (name, class, mode) in all {
            assert_eq!(meta.mode(name, class), mode);
        }
        let mut usual = DirMeta::default();
        usual.set_modes([(&b"a"[..], File, Mode(0o644))].into_iter());
        assert_eq!(usual.encode(), None);
    }
}
