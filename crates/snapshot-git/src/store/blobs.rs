//! Single blobs: what `BlobStore` asks of the store.

use std::io::Read;

use checkpoint_core::{ObjectId, SnapshotError};
use gix::objs::Kind;

use super::{
    Store,
    batch::{expect_end, fill},
    idx::digest,
    pack::object_hasher,
    to_core, to_gix,
};

/// Blobs up to this size are taken into memory whole.
const IN_MEMORY: u64 = 1 << 20;

/// Reads a blob and hands errors on with the object's name.
struct Named<R> {
    id: ObjectId,
    inner: R,
}

impl<R: Read> Read for Named<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(to).map_err(|e| std::io::Error::new(e.kind(), format!("object {}: {e}", self.id)))
    }
}

impl Store {
    /// Opens a blob for streaming: `BlobStore::open_blob`.
    pub(crate) fn open_blob(&self, id: &ObjectId) -> Result<Box<dyn Read + Send + '_>, SnapshotError> {
        let (_, inner) = self.stream(&to_gix(id))?;
        Ok(Box::new(Named { id: *id, inner }))
    }

    /// The id of `len` bytes of `content`, storing nothing: `BlobStore::hash_blob`.
    pub(crate) fn hash_blob(len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        let mut hasher = object_hasher(Kind::Blob, len);
        let mut piece = vec![0; usize::try_from(len.clamp(1, 256 << 10)).expect("at most 256 KiB")];
        let mut left = len;
        while left > 0 {
            let got = fill(content, &mut piece, left)?;
            hasher.update(&piece[..got]);
            left -= got as u64;
        }
        expect_end(content)?;
        digest(hasher).map(ObjectId::from_bytes).map_err(|_| SnapshotError::Collision)
    }

    /// Stores a blob, durable on return: `BlobStore::put_blob`. Two syncs, one when the blob was there.
    pub(crate) fn put_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        // A stale list could vouch for what another process has collected.
        self.refresh()?;
        let batch = self.batch(true);
        let mut worker = batch.worker();
        let id = if len <= IN_MEMORY {
            let mut body = vec![0; usize::try_from(len).expect("at most 1 MiB")];
            fill(content, &mut body, len)?;
            expect_end(content)?;
            let id = super::object_id(Kind::Blob, &body)?;
            worker.add(Kind::Blob, id, &body)?;
            id
        } else {
            worker.put_stream(len, content)?
        };
        drop(worker);
        batch.finish()?;
        Ok(to_core(&id))
    }

    /// `BlobStore::has_blob`. Sees what other processes added.
    pub(crate) fn has_blob(&self, id: &ObjectId) -> Result<bool, SnapshotError> {
        let id = to_gix(id);
        if self.contains_on_disk(&id) {
            return Ok(true);
        }
        self.refresh()?;
        Ok(self.contains_on_disk(&id) || self.is_loose(&id))
    }
}
