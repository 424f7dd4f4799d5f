//! The sidecar: the engine behind a pipe, for harnesses in any language (design § 10, docs/sidecar.md).

pub mod protocol;
mod schema;

pub use schema::schemas;
