//! Models, strategies, conformance suites and fault decorators for rwd. Never published.
#![expect(clippy::unwrap_used, reason = "a failing assertion is how a test kit speaks")]

pub mod dsh_logs;
mod fake_host;
pub mod index_suite;
mod memory_blobs;
mod memory_log;
pub mod protocol;
pub mod transcripts;
pub mod workspace_suite;

pub use fake_host::FakeHost;
pub use memory_blobs::{MemoryBlobs, blob_id};
pub use memory_log::{Host, MemoryLog};
