//! Models, strategies, conformance suites and fault decorators for rwd.

mod memory_blobs;

pub use memory_blobs::{MemoryBlobs, blob_id};
