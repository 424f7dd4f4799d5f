//! Content ids.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::IdError;

/// Content id of a blob or a tree: 20 bytes, hexadecimal in text formats.
///
/// The store is SHA-1 whatever the user's repository uses (design § 4); an id therefore never crosses backends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// Wraps the bytes of an id.
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// Reads exactly 40 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bad = || IdError { what: "object id", given: text.to_owned() };
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| bad())?;
        Ok(Self(bytes.try_into().map_err(|_| bad())?))
    }

    /// The bytes themselves.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TryFrom<String> for ObjectId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.to_string()
    }
}

/// The whole captured state of a workspace: two trees of the same shape (design § 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// What `git write-tree` would give for the captured files.
    pub tree: ObjectId,
    /// What a git tree cannot say: empty directories, permission bits, FIFOs, the skipped list, outside ignore rules.
    pub meta: ObjectId,
}
