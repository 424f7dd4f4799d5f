//! What rwd knows of agent harnesses: how to tell that a process runs inside one, and how to read and cut their session
//! logs.
//!
//! ```
//! let vars = ["PATH", "CLAUDECODE"];
//! assert_eq!(harness_adapter::surrounding(vars), ["claude"]);
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests make the worlds they need"))]

mod agent;
pub mod barriers;
pub mod event_log;
pub mod hooks;
pub mod install;
mod logs;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod named_points;
pub mod older;
mod rpc;
pub mod sessions;
pub mod sidecar;
mod surroundings;
pub mod told;
mod turn_view;

pub use agent::Agent;
pub use logs::Logs;
pub use surroundings::surrounding;
pub use turn_view::{TurnRecord, TurnView, ViewError, turn_records, view_dir};
