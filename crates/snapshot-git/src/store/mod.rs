//! The private object store: packs of our own, readable by plain git, durable when we say so.

use std::{io::Read, path::Path};

use checkpoint_core::SnapshotError;
use gix::{ObjectId, objs::Kind};

/// One workspace's object database (design § 4): a bare git directory with packs only.
#[derive(Debug)]
pub(crate) struct Store {}

impl Store {
    /// Opens the store at `dir` (`…/workspaces/<id>/git`), creating it owner-only when it is not there.
    pub(crate) fn open(_dir: &Path) -> Result<Self, SnapshotError> { todo!() }
    /// Looks for packs that other processes added. Call once per capture.
    pub(crate) fn refresh(&self) -> Result<(), SnapshotError> { todo!() }
    /// True when the object is in a pack of this store, or in the overlay of a dry capture. Does not refresh.
    pub(crate) fn contains(&self, _id: &ObjectId) -> bool { todo!() }
    /// A whole object, its kind checked. Trees and meta blobs; big blobs go through `stream`.
    pub(crate) fn read(&self, _id: &ObjectId, _kind: Kind) -> Result<Vec<u8>, SnapshotError> { todo!() }
    /// A blob, inflated while it is read, with its size.
    pub(crate) fn stream(&self, _id: &ObjectId) -> Result<(u64, Box<dyn Read + Send + '_>), SnapshotError> { todo!() }
    /// Starts collecting objects. `write == false`: blobs are dropped, trees and meta blobs go to an overlay in
    /// memory that `contains` and `read` of this handle see from then on.
    pub(crate) fn batch(&self, _write: bool) -> Batch<'_> { todo!() }
    /// Syncs the pack directory: before every record that relies on an object this capture did not write itself.
    pub(crate) fn sync_directory(&self) -> Result<(), SnapshotError> { todo!() }
}

/// Objects of one capture on their way into packs. Shared by its workers.
#[derive(Debug)]
pub(crate) struct Batch<'s> { _store: &'s Store }

impl<'s> Batch<'s> {
    /// A pack of one worker. Nothing is written until its first object is added.
    pub(crate) fn worker(&self) -> Worker<'_, 's> { todo!() }
    /// Makes everything durable: each pack's data synced, indexes written, then the pack directory synced, exactly
    /// once, also when nothing was added. Returns bytes added to the store. On an error nothing becomes visible.
    pub(crate) fn finish(self) -> Result<u64, SnapshotError> { todo!() }
}

/// Adds objects to one pack.
#[derive(Debug)]
pub(crate) struct Worker<'b, 's> { _batch: &'b Batch<'s> }

impl Worker<'_, '_> {
    /// Adds an object unless the store or another worker of the batch has it; true when it was added.
    pub(crate) fn add(&mut self, _kind: Kind, _id: ObjectId, _body: &[u8]) -> Result<bool, SnapshotError> { todo!() }
    /// Adds a big blob from a reader with bounded memory; hashes while it compresses and fails with
    /// `ChangedWhileReading`, leaving nothing behind, when length or id differ from what was announced.
    pub(crate) fn add_stream(&mut self, _id: ObjectId, _len: u64, _content: &mut dyn Read) -> Result<bool, SnapshotError> { todo!() }
}
