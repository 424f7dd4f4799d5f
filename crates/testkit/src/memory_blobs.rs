//! Blobs in memory, with the ids that git gives them.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    sync::{Mutex, MutexGuard, PoisonError},
};

use checkpoint_core::{BlobStore, ObjectId, SnapshotError};

/// A [`BlobStore`] for tests of what uses one.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<ObjectId, Vec<u8>>>,
}

impl MemoryBlobs {
    /// Stores a blob, as [`BlobStore::put_blob`] does.
    pub fn put(&self, bytes: &[u8]) -> ObjectId {
        let id = blob_id(bytes);
        self.all().insert(id, bytes.to_vec());
        id
    }

    /// The bytes of a blob.
    pub fn get(&self, id: &ObjectId) -> Option<Vec<u8>> {
        self.all().get(id).cloned()
    }

    /// True when some blob has exactly these bytes.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.all().contains_key(&blob_id(bytes))
    }

    /// Gives a blob other bytes than its id says.
    pub fn damage(&self, id: &ObjectId, bytes: &[u8]) {
        self.all().insert(*id, bytes.to_vec());
    }

    /// Takes a blob away.
    pub fn remove(&self, id: &ObjectId) {
        self.all().remove(id);
    }

    /// A test that panics while it holds the lock leaves whole blobs all the same.
    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectId, Vec<u8>>> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing in a test has so many bytes: whoever asks for them reads a sparse file that nobody should read.
const TOO_MUCH: u64 = 1 << 30;

/// Reads exactly `len` bytes, up to the end.
fn read(len: u64, content: &mut dyn Read) -> Result<Vec<u8>, SnapshotError> {
    if len >= TOO_MUCH {
        return Err(SnapshotError::NoSpace { needed: len });
    }
    let mut bytes = Vec::new();
    let failed = |e: io::Error| SnapshotError::Other { what: "content cannot be read", source: e.into() };
    content.take(len + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(SnapshotError::ChangedWhileReading) }
}

impl BlobStore for MemoryBlobs {
    fn open_blob(&self, id: &ObjectId) -> Result<Box<dyn Read + Send + '_>, SnapshotError> {
        let bytes = self.get(id).ok_or(SnapshotError::Missing { id: *id })?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn hash_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        Ok(blob_id(&read(len, content)?))
    }

    fn put_blob(&self, len: u64, content: &mut dyn Read) -> Result<ObjectId, SnapshotError> {
        Ok(self.put(&read(len, content)?))
    }

    fn blob_len(&self, id: &ObjectId) -> Result<u64, SnapshotError> {
        self.get(id).map(|bytes| bytes.len() as u64).ok_or(SnapshotError::Missing { id: *id })
    }

    fn has_blob(&self, id: &ObjectId) -> Result<bool, SnapshotError> {
        Ok(self.all().contains_key(id))
    }

    fn check_blob(&self, id: &ObjectId) -> Result<(), SnapshotError> {
        let bytes = self.get(id).ok_or(SnapshotError::Missing { id: *id })?;
        let damaged = || SnapshotError::Damaged { id: *id, source: "its content has another id".into() };
        (blob_id(&bytes) == *id).then_some(()).ok_or_else(damaged)
    }
}

/// The id git gives a blob of these bytes.
pub fn blob_id(bytes: &[u8]) -> ObjectId {
    let mut message = format!("blob {}\0", bytes.len()).into_bytes();
    message.extend_from_slice(bytes);
    ObjectId::from_bytes(sha1(message))
}

/// SHA-1 as FIPS 180-4 defines it, short rather than fast: tests must not need a backend to name a blob.
#[expect(clippy::many_single_char_names, reason = "the standard's own names")]
fn sha1(mut message: Vec<u8>) -> [u8; 20] {
    let bits = message.len() as u64 * 8;
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&bits.to_be_bytes());
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.chunks_exact(64) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |w, &b| w << 8 | u32::from(b));
        }
        for t in 16..80 {
            words[t] = (words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (t, word) in words.iter().enumerate() {
            let (f, k) = match t {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6u32),
            };
            let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        assert_eq!(blob_id(b"").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(blob_id(b"hello\n").to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(blob_id(&[b'a'; 1000]).to_string(), "a50be72b20f0e3f078d252e8e56b11b4bec67509");
    }

    #[test]
    fn content_of_another_length_is_refused() {
        let blobs = MemoryBlobs::default();
        for len in [0, 2, 4] {
            assert!(matches!(blobs.put_blob(len, &mut b"abc".as_slice()), Err(SnapshotError::ChangedWhileReading)));
        }
        assert!(!blobs.holds(b"abc"));
    }
}
