//! The sidecar: the engine behind a pipe, for harnesses in any language (design § 10, docs/sidecar.md).
//!
//! [`Sidecar::serve`] speaks over any reader and writer. Where workspaces come from and by which settings is left to
//! whoever composes it ([`Workspaces`]), so that nothing here knows the store, the index or the command line.

mod call;
mod host;
mod live_log;
mod peer;
mod problem;
pub mod protocol;
mod schema;
mod server;
#[cfg(test)]
mod server_tests;
mod shape;
mod verbs;

pub use host::{MayRestore, Parts, Rules, Workspace, Workspaces};
pub use problem::Failure;
pub use schema::schemas;
pub use server::Sidecar;
