//! Integration tests of the indexes and the data directory.
#![expect(clippy::unwrap_used, reason = "tests")]

mod suite;
