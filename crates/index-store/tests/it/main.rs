//! Integration tests of the indexes and the data directory.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests make the worlds they need")]

mod crash;
mod data;
mod digest;
mod formats;
mod high;
mod json;
mod registry;
mod scene;
mod sqlite;
mod suite;
mod syncs;
