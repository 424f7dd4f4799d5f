//! What rwd knows of agent harnesses. So far: how to tell that a process runs inside one.
//!
//! ```
//! let vars = ["PATH", "CLAUDECODE"];
//! assert_eq!(harness_adapter::surrounding(vars), ["claude"]);
//! ```

pub mod barriers;
pub mod named_points;
mod surroundings;

pub use surroundings::surrounding;
