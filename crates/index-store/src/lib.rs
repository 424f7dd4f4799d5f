//! Points, operations and intents in memory, JSON or SQLite; the data directory around them.
//!
//! What a [`Batch`](checkpoint_core::Batch) means is written once, over rows; the stores differ in where rows live and
//! how they become durable.
//!
//! ```
//! use checkpoint_core::{Batch, IndexOp, IndexStore, RelPath};
//! use index_store::MemoryIndex;
//!
//! let index = MemoryIndex::new();
//! let add = vec![RelPath::new("notes.md")?];
//! index.apply(&Batch { follows: None, ops: vec![IndexOp::Held { add, remove: Vec::new() }] })?;
//! assert_eq!(index.held()?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod digest;
mod document;
mod durable;
mod epoch;
mod error;
mod fold_locks;
mod format;
mod high;
mod json;
mod layout;
mod line;
mod lock;
mod memory;
mod query;
mod registry;
mod registry_file;
mod relink;
mod rows;
mod scan;
mod sqlite;
mod surface;
mod touches;
mod tree;

pub use epoch::Epoch;
pub use error::DataError;
pub use fold_locks::FileFolds;
pub use json::{JsonIndex, JsonOptions};
pub use layout::{DataDir, IndexKind, IndexOptions, WorkspaceDir};
pub use lock::WorkspaceLock;
pub use memory::MemoryIndex;
pub use registry::{Found, Identity, Refusal, Registration, Registry, Standing, Workspace, refusal};
pub use relink::{Orphan, Orphans, Relinked};
pub use sqlite::{Journal, SqliteIndex, SqliteOptions};
