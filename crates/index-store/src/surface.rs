//! The trait of the index over "read rows" and "apply a batch", once for all stores.

/// Implements [`checkpoint_core::IndexStore`] for a type that has `read(&self, FnOnce(&dyn Rows) -> Result<T>)`,
/// `write(&self, &Batch)`,
/// `check_rows(&self)` and `tend(&self)`.
macro_rules! index_store {
    ($store:ty, $name:literal) => {
        impl checkpoint_core::IndexStore for $store {
            fn name(&self) -> &'static str {
                $name
            }
            fn revision(&self) -> Result<checkpoint_core::Revision, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::revision(rows))
            }
            fn newest(&self) -> Result<checkpoint_core::Ord, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::newest(rows))
            }
            fn apply(
                &self,
                batch: &checkpoint_core::Batch,
            ) -> Result<checkpoint_core::Revision, checkpoint_core::IndexError> {
                self.write(batch)
            }
            fn points(
                &self,
                query: &checkpoint_core::PointQuery,
            ) -> Result<Vec<checkpoint_core::Point>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::points(rows, query))
            }
            fn point(
                &self,
                id: &checkpoint_core::PointId,
            ) -> Result<Option<checkpoint_core::Point>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::point(rows, id))
            }
            fn intervals(
                &self,
                after: checkpoint_core::Ord,
            ) -> Result<Vec<(checkpoint_core::Ord, Vec<checkpoint_core::Touch>)>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::intervals(rows, after))
            }
            fn waiting(&self) -> Result<Vec<checkpoint_core::Touch>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::waiting(rows))
            }
            fn operation(
                &self,
                id: &checkpoint_core::OpId,
            ) -> Result<Option<checkpoint_core::Operation>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::operation(rows, id))
            }
            fn operations(
                &self,
                kinds: &[checkpoint_core::OpKind],
                limit: Option<usize>,
            ) -> Result<Vec<checkpoint_core::Operation>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::operations(rows, kinds, limit))
            }
            fn written(
                &self,
                id: &checkpoint_core::OpId,
            ) -> Result<Vec<checkpoint_core::Written>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::written(rows, id))
            }
            fn open_intent(&self) -> Result<Option<checkpoint_core::Intent>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::open_intent(rows))
            }
            fn sessions(&self) -> Result<Vec<checkpoint_core::Session>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::sessions(rows))
            }
            fn session(
                &self,
                key: &checkpoint_core::SessionKey,
            ) -> Result<Option<checkpoint_core::Session>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::session(rows, key))
            }
            fn names(&self) -> Result<Vec<checkpoint_core::Name>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::names(rows))
            }
            fn marks(
                &self,
                session: &checkpoint_core::SessionKey,
            ) -> Result<Vec<checkpoint_core::Mark>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::marks(rows, session))
            }
            fn newest_mark(&self) -> Result<u64, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::newest_mark(rows))
            }
            fn held(
                &self,
            ) -> Result<std::collections::BTreeSet<checkpoint_core::RelPath>, checkpoint_core::IndexError> {
                self.read(|rows| $crate::query::held(rows))
            }
            fn check(&self) -> Result<(), checkpoint_core::IndexError> {
                self.check_rows()
            }
            fn maintain(&self) -> Result<(), checkpoint_core::IndexError> {
                self.tend()
            }
        }
    };
}

pub(crate) use index_store;
