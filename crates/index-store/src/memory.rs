//! The index in memory.

use std::sync::{Arc, Mutex};

use checkpoint_core::{Batch, IndexError, Revision};

use crate::{
    apply::apply,
    format::Format,
    rows::Rows,
    surface::index_store,
    tree::{Journal, Tree},
};

/// An index that lives as long as its handles: for tests and for compositions that keep nothing.
///
/// Clones are handles on the same index.
#[derive(Clone, Debug)]
pub struct MemoryIndex {
    tree: Arc<Mutex<Tree>>,
}

impl MemoryIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self { tree: Arc::new(Mutex::new(Tree::new(Format::CURRENT))) }
    }

    /// Rows that were looked at through all handles, for queries and for batches. Every index asks for the same rows, so
    /// this is what tests hold the growth of a command's cost to.
    ///
    /// # Errors
    /// [`IndexError::Poisoned`] when another thread panicked with the index in hand.
    pub fn visited(&self) -> Result<u64, IndexError> {
        Ok(self.tree.lock().map_err(|_| IndexError::Poisoned)?.visited())
    }

    fn read<T>(&self, query: impl FnOnce(&dyn Rows) -> Result<T, IndexError>) -> Result<T, IndexError> {
        let tree = self.tree.lock().map_err(|_| IndexError::Poisoned)?;
        query(&*tree)
    }

    fn write(&self, batch: &Batch) -> Result<Revision, IndexError> {
        let mut tree = self.tree.lock().map_err(|_| IndexError::Poisoned)?;
        let mut journal = Journal::new(&mut tree);
        let result = apply(&mut journal, batch);
        if result.is_err() {
            journal.roll_back();
        }
        result
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the stores on disk have something to check")]
    fn check_rows(&self) -> Result<(), IndexError> {
        Ok(())
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the stores on disk have something to tend")]
    fn tend(&self) -> Result<(), IndexError> {
        Ok(())
    }
}

impl Default for MemoryIndex {
    fn default() -> Self {
        Self::new()
    }
}

index_store!(MemoryIndex, "memory");
