//! The engine of rwd as a library: undo for one directory, without the command line.
//!
//! [`open`] composes the real parts: the git-backed store, the index, the user's files, the lock, the system's clock and
//! process table, in the same data directory that `rwd` uses, so that both see each other's points. What it gives is an
//! [`EngineBuilder`], to which an integrator adds session logs, an approver and an observer.
//!
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! Whoever needs other parts (another store, an index elsewhere) composes [`Engine`](checkpoint_core::Engine) from
//! `checkpoint-core`'s seams, with [`SystemClock`], [`SystemIds`] and [`SystemProcesses`] for what no core may take itself.

mod error;
mod host;
mod located;
mod system;

use std::path::Path;
use std::sync::Arc;

use checkpoint_core::{Approver, Decision, EngineBuilder, Preview};
use index_store::DataDir;

pub use error::OpenError;
pub use host::{Host, HostSession, ToolCall};
pub use located::{Located, journal};
pub use system::{SystemClock, SystemIds, SystemProcesses};

/// Opens undo for the directory `root`, with its data in `data`; the directory is registered as a workspace if it is
/// none yet.
///
/// Without an approver nothing is ever restored, and without session logs only files go back.
///
/// # Errors
/// [`OpenError::Data`] where `root` may not be a workspace (`/`, a home directory that `HOME` names, the data directory)
/// or the data directory cannot be used, [`OpenError::Moved`] where it is the root of a workspace that was elsewhere
/// before, else what kept the store, the index or the root from being opened.
pub fn open(root: &Path, data: &Path) -> Result<EngineBuilder, OpenError> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(Into::into);
    let located = Located::register(root, DataDir::new(data), home)?;
    let parts = located.required(
        located.open_index(None)?,
        Arc::new(located.open_resident_store()?),
        Arc::new(located.open_files()?),
        Arc::new(located.dir.lock()),
    );
    let overlaps = located.overlaps(&|lock| Arc::new(lock))?;
    let builder = checkpoint_core::Engine::builder(parts).processes(Arc::new(SystemProcesses)).overlaps(overlaps);
    Ok(builder.fold_locks(Arc::new(located.dir.folds())))
}

/// Approves everything: for a caller that has decided before it asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decided;

impl Approver for Decided {
    fn decide(&self, _: &Preview) -> Decision {
        Decision::Approved
    }

    fn is_settled(&self) -> bool {
        true
    }
}
