//! Versions of stored formats: `major.minor`.

use std::{fmt, str::FromStr};

use checkpoint_core::IndexError;

/// The version of a stored format. Minor versions are additive: readers ignore and writers keep what they do not know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Format {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Format {
    /// What the registry and the mark are written in; neither has changed since.
    pub(crate) const FIRST: Self = Self { major: 1, minor: 0 };
    /// What an index is written in. 1.1 added the digests of `index.sqlite`, 1.2 points whose consistency is `watched`.
    pub(crate) const CURRENT: Self = Self { major: 1, minor: 2 };

    /// Fails unless this version can read and write it.
    pub(crate) fn check(self) -> Result<Self, IndexError> {
        match self.major.cmp(&Self::CURRENT.major) {
            std::cmp::Ordering::Equal => Ok(self),
            std::cmp::Ordering::Greater => Err(self.too_new()),
            std::cmp::Ordering::Less => Err(IndexError::TooOld { found: self.to_string() }),
        }
    }

    /// The error for something of a newer format that cannot be understood.
    pub(crate) fn too_new(self) -> IndexError {
        IndexError::TooNew { found: self.to_string(), supported: Self::CURRENT.to_string() }
    }

    /// True when it may hold what this version does not know.
    pub(crate) fn is_newer(self) -> bool {
        self > Self::CURRENT
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Not `MAJOR.MINOR`.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no format version")]
pub(crate) struct NoFormat(pub(crate) String);

impl FromStr for Format {
    type Err = NoFormat;

    fn from_str(text: &str) -> Result<Self, NoFormat> {
        let bad = || NoFormat(text.to_owned());
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if plain { part.parse().map_err(|_| bad()) } else { Err(bad()) }
        };
        let (major, minor) = text.split_once('.').ok_or_else(bad)?;
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_major_number_decides() {
        let check = |text: &str| text.parse::<Format>().unwrap().check();
        assert!(check("1.0").is_ok() && check("1.1").is_ok());
        assert!(check("1.9").unwrap().is_newer());
        assert!(matches!(check("2.0"), Err(IndexError::TooNew { .. })));
        assert!(matches!(check("0.9"), Err(IndexError::TooOld { .. })));
        for bad in ["", "1", "1.", ".1", "1.0.0", "+1.0", "1.x"] {
            assert!(bad.parse::<Format>().is_err(), "{bad:?}");
        }
    }
}
