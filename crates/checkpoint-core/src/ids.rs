//! Identifiers and positions: validated at the edge, so that a tampered record cannot become a flag or a path.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what}: {given:?}")]
pub struct IdError {
    /// What was expected, as in "point id".
    pub what: &'static str,
    /// The text that was given.
    pub given: String,
}

macro_rules! random_id {
    ($($(#[$m:meta])* $name:ident = $what:literal),+ $(,)?) => {$(
        $(#[$m])*
        ///
        /// 16 random bytes, written as 32 lower-case hexadecimal digits (design § 4).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 16]);

        impl $name {
            /// Wraps 16 bytes from an [`IdSource`](crate::IdSource).
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Reads exactly 32 hexadecimal digits of either case.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let bad = || IdError { what: $what, given: text.to_owned() };
                let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).map_err(|_| bad())?;
                Ok(Self(bytes.try_into().map_err(|_| bad())?))
            }

            /// The bytes themselves.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// The first eight digits: what lists show. Unique prefixes of at least four are accepted as input.
            pub fn short(&self) -> String {
                let mut text = self.to_string();
                text.truncate(8);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&data_encoding::HEXLOWER.encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    )+};
}

random_id!(
    /// One point: a record of the workspace's state.
    PointId = "point id",
    /// One operation of the operation log.
    OpId = "operation id",
    /// One workspace root, stable across moves of the directory.
    WorkspaceId = "workspace id",
);

/// Identifies one conversation of a harness.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SessionKey {
    harness: String,
    id: String,
}

impl SessionKey {
    /// The harness name of points saved outside any harness.
    pub const LOCAL: &'static str = "local";

    /// Validates both parts: 1 to 128 bytes of `[A-Za-z0-9._:@+-]` with no leading `-` or `.`; the harness has no `:`.
    pub fn new(harness: &str, id: &str) -> Result<Self, IdError> {
        let sound = |part: &str| {
            !part.is_empty()
                && part.len() <= 128
                && !part.starts_with(['-', '.'])
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:@+-".contains(&b))
        };
        if !sound(harness) || harness.contains(':') {
            return Err(IdError { what: "harness name", given: harness.to_owned() });
        }
        if !sound(id) {
            return Err(IdError { what: "session id", given: id.to_owned() });
        }
        Ok(Self { harness: harness.to_owned(), id: id.to_owned() })
    }

    /// The session of points that no harness made.
    pub fn local() -> Self {
        Self { harness: Self::LOCAL.to_owned(), id: Self::LOCAL.to_owned() }
    }

    /// Reads `HARNESS:ID` or a bare `ID`, which belongs to no harness.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        match text.split_once(':') {
            Some((harness, id)) => Self::new(harness, id),
            None => Self::new(Self::LOCAL, text),
        }
    }

    /// The harness, as `claude` or `dsh`.
    pub fn harness(&self) -> &str {
        &self.harness
    }

    /// The harness's own id of the conversation.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// True for [`SessionKey::local`].
    pub fn is_local(&self) -> bool {
        self.harness == Self::LOCAL && self.id == Self::LOCAL
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.harness == Self::LOCAL { f.pad(&self.id) } else { f.pad(&format!("{}:{}", self.harness, self.id)) }
    }
}

macro_rules! number {
    ($($(#[$m:meta])* $name:ident($inner:ty)),+ $(,)?) => {$(
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )+};
}

number!(
    /// Place of a point or an operation in the workspace's one sequence, from 1. Order is this, never time.
    Ord(u64),
    /// Number of a user interaction within its session.
    Turn(u32),
    /// Number of a model call within its turn.
    Step(u32),
    /// Position of one event in a session log: dense, from 0.
    Seq(u64),
    /// UTC milliseconds since 1970, always from a [`Clock`](crate::Clock).
    Timestamp(i64),
    /// Counts the batches an index has applied.
    Revision(u64),
);

impl Ord {
    /// The place after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The text of a version 4 UUID made of these random bytes: how harnesses name sessions and messages.
pub fn uuid(mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let hex = data_encoding::HEXLOWER.encode(&random);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_refuse_what_is_no_hex() {
        let id = PointId::parse("00112233445566778899AABBCCDDEEFF").unwrap();
        assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
        assert_eq!(id.short(), "00112233");
        for bad in ["", "00", "zz112233445566778899aabbccddeeff", "--112233445566778899aabbccddeeff"] {
            assert!(PointId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn session_keys_refuse_flags_paths_and_control_bytes() {
        for bad in ["", "-x", ".x", "a/b", "a b", "a\nb", ":x", "x:"] {
            assert!(SessionKey::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(SessionKey::parse("dsh:abc").unwrap().to_string(), "dsh:abc");
        assert_eq!(SessionKey::parse("abc").unwrap().to_string(), "abc");
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
    }
}
