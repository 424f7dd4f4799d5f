//! Models, strategies, conformance suites and fault decorators for rwd.

mod memory_blobs;
pub mod workspace_suite;

pub use memory_blobs::{MemoryBlobs, blob_id};
