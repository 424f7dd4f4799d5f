//! What rwd knows of agent harnesses. So far: how to tell that a process runs inside one.
//!
//! ```
//! let vars = ["PATH", "CLAUDECODE"];
//! assert_eq!(harness_adapter::surrounding(vars), ["claude"]);
//! ```

mod surroundings;

/// Session logs of harnesses.
pub mod sessions {
    /// DeepSeek Harness.
    pub mod dsh {
        pub mod strict;
    }
}

pub use surroundings::surrounding;
