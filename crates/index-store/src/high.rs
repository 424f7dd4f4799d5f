//! The high-water mark: how far the index beside it had come.
//!
//! SQLite takes a log with a bad checksum, or none, for the end of what was ever written, and says nothing. What was
//! lost that way shows only against something that is kept elsewhere.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use checkpoint_core::{IndexError, LockMode, Ord, Revision};

use crate::{durable, format::Format, query, rows::Rows};

/// Bytes of a mark: version, revision, place, checksum.
const SIZE: usize = 55;

/// Where the checksum begins.
const SUMMED: usize = SIZE - 9;

/// How long a committed batch waits to be marked. Nobody who runs holds the lock for longer than a write takes.
const WAIT: Duration = Duration::from_secs(1);

/// A state that an index was in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reached {
    pub(crate) revision: Revision,
    pub(crate) newest: Ord,
}

impl Reached {
    pub(crate) fn of(rows: &(impl Rows + ?Sized)) -> Result<Self, IndexError> {
        Ok(Self { revision: query::revision(rows)?, newest: query::newest(rows)? })
    }

    /// The later of two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.revision > self.revision { other } else { self }
    }

    fn line(self) -> String {
        let text = format!("{} {:020} {:020} ", Format::FIRST, self.revision.0, self.newest.0);
        format!("{text}{:08x}\n", crc32fast::hash(text.as_bytes()))
    }

    fn parse(line: &[u8; SIZE]) -> Option<Self> {
        let (summed, sum) = line.split_at_checked(SUMMED)?;
        if sum != format!("{:08x}\n", crc32fast::hash(summed)).as_bytes() {
            return None;
        }
        let mut words = std::str::from_utf8(summed).ok()?.split(' ');
        let mut word = || words.next();
        word()?.parse::<Format>().ok()?.check().ok()?;
        Some(Self { revision: Revision(word()?.parse().ok()?), newest: Ord(word()?.parse().ok()?) })
    }
}

/// The mark of one index, whatever its form.
///
/// It is written after a batch was synced and is itself never synced, so it costs no sync and is never ahead of a
/// sound index. One that is torn or missing claims nothing. It is read before the index that it is compared with:
/// afterwards it may name a batch that was applied meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct High {
    path: PathBuf,
}

impl High {
    /// The mark of the index in the file `index`.
    pub(crate) fn of(index: &Path) -> Self {
        Self { path: index.with_extension("high") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True when a batch was ever marked, also when it can no longer be read which one.
    pub(crate) fn exists(&self) -> io::Result<bool> {
        self.path.try_exists()
    }

    /// What it claims; the beginning where it claims nothing.
    pub(crate) fn read(&self) -> Reached {
        let read = File::open(&self.path).and_then(|file| read(&file));
        match read {
            Ok(claimed) => claimed.unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Reached::default(),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the mark of the index cannot be read");
                Reached::default()
            }
        }
    }

    /// Moves it up to a state that is durable. The batch is applied whatever comes of this: without the mark only a
    /// later loss of it would go unnoticed.
    pub(crate) fn raise(&self, reached: Reached) {
        if let Err(error) = self.try_raise(reached) {
            tracing::warn!(path = %self.path.display(), %error, "the mark of the index stays behind");
        }
    }

    fn try_raise(&self, reached: Reached) -> io::Result<()> {
        let file = Arc::new(durable::open_or_create(&self.path)?);
        // Whoever committed first may come here last.
        let _locked = durable::lock(&file, LockMode::Exclusive, WAIT)?.ok_or(io::ErrorKind::WouldBlock)?;
        match read(&file)? {
            Some(claimed) if claimed.revision >= reached.revision => Ok(()),
            _ => file.write_all_at(reached.line().as_bytes(), 0),
        }
    }

    /// How far the index `name` with these rows is; fails when that is not as far as it `was`.
    pub(crate) fn check(&self, name: &str, rows: &(impl Rows + ?Sized), was: Reached) -> Result<Reached, IndexError> {
        let is = Reached::of(rows)?;
        if is.revision >= was.revision {
            return Ok(is);
        }
        let what = format!(
            "it lost its newest entries: {name} is at revision {} (newest place {}), but had come to revision {} (newest \
             place {}); remove {} to go on with what is left",
            is.revision.0,
            is.newest,
            was.revision.0,
            was.newest,
            self.path.display()
        );
        Err(IndexError::Damaged { what, source: "what was recorded is gone".into() })
    }

    /// Fails when the index `index`, found missing, was there before: a new one in its place would hide that.
    pub(crate) fn check_new(&self, index: &Path) -> Result<(), IndexError> {
        let failed = |source: io::Error| IndexError::Storage { source: Box::new(source) };
        // Somebody else may have made the index and marked it meanwhile.
        if !self.exists().map_err(failed)? || index.try_exists().map_err(failed)? {
            return Ok(());
        }
        let what = format!(
            "{} is missing; put it back, or remove {} to begin anew",
            index.file_name().unwrap_or_default().display(),
            self.path.display()
        );
        Err(IndexError::Damaged { what, source: "what was recorded is gone".into() })
    }
}

/// `None` where it claims nothing.
fn read(file: &File) -> io::Result<Option<Reached>> {
    let mut line = [0; SIZE];
    match file.read_exact_at(&mut line, 0) {
        Ok(()) => Ok(Reached::parse(&line)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Reached {
        Reached { revision: Revision(number), newest: Ord(number / 2) }
    }

    #[test]
    fn it_only_goes_up() {
        let directory = tempfile::tempdir().unwrap();
        let high = High::of(&directory.path().join("index.sqlite"));
        assert_eq!((high.exists().unwrap(), high.read()), (false, Reached::default()));
        for (next, stands) in [(3, 3), (2, 3), (3, 3), (u64::MAX, u64::MAX), (4, u64::MAX)] {
            high.raise(at(next));
            assert_eq!(high.read(), at(stands));
            assert_eq!(high.path().metadata().unwrap().len(), SIZE as u64);
        }
    }

    #[test]
    fn writers_at_once_leave_the_highest() {
        let directory = tempfile::tempdir().unwrap();
        let high = High::of(&directory.path().join("index.sqlite"));
        std::thread::scope(|scope| {
            for first in 0..8 {
                let high = &high;
                scope.spawn(move || {
                    let mut last = 0;
                    for number in (first..400).step_by(8) {
                        high.try_raise(at(number)).unwrap();
                        let now = high.read().revision.0;
                        // A read in the middle of a write may claim nothing.
                        assert!(now >= number.max(last) || now == 0, "{now} after {number}, {last}");
                        last = now;
                    }
                });
            }
        });
        assert_eq!(high.read(), at(399));
    }

    #[test]
    fn torn_or_flipped_anywhere_it_claims_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let high = High::of(&directory.path().join("index.sqlite"));
        high.raise(at(7));
        let sound = std::fs::read(high.path()).unwrap();
        let other = at(1_234_567_890_123).line().into_bytes();
        for n in 0..SIZE {
            let mut flipped = sound.clone();
            flipped[n] ^= 0x01;
            let mut zeros = sound.clone();
            zeros[n..].fill(0);
            let mixed = [&sound[..n], &other[n..]].concat();
            for wrong in [sound[..n].to_vec(), flipped, zeros, mixed] {
                if wrong == sound || wrong == other {
                    continue;
                }
                let file = durable::open_or_create(high.path()).unwrap();
                file.set_len(0).and_then(|()| file.write_all_at(&wrong, 0)).unwrap();
                assert_eq!(high.read(), Reached::default(), "{n}: {wrong:?}");
                high.raise(at(5));
                assert_eq!(high.read(), at(5), "the next batch marks anew");
            }
        }
    }
}
