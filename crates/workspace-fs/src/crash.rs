//! Where a test may stop the world.

use std::fmt;

/// Told before every system call that changes the file system, and after the last one of an operation.
///
/// A test may panic here, which leaves the disk as a killed process would, or change a file, as a user would.
pub trait Crash: fmt::Debug + Send + Sync {
    /// About to do `what`.
    fn point(&self, what: &'static str);
}

/// Lets everything pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCrash;

impl Crash for NoCrash {
    fn point(&self, _: &'static str) {}
}
