//! Bytes a store occupies.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use checkpoint_core::{SnapshotError, Usage};

use crate::store::{Store, at};

/// Bytes as `du` counts them, blocks and not lengths. A file with more than one name is somebody else's too.
pub(crate) fn usage(store: &Store) -> Result<Usage, SnapshotError> {
    let mut usage = Usage::default();
    add(store.dir(), &mut usage)?;
    Ok(usage)
}

fn add(path: &Path, usage: &mut Usage) -> Result<(), SnapshotError> {
    let facts = match fs::symlink_metadata(path) {
        // Another process's temporary, or a pack that was collected meanwhile.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        facts => facts.map_err(at(path))?,
    };
    let bytes = facts.blocks() * 512;
    if !facts.is_dir() {
        let to = if facts.nlink() > 1 { &mut usage.shared_bytes } else { &mut usage.own_bytes };
        *to += bytes;
        return Ok(());
    }
    usage.own_bytes += bytes;
    for entry in fs::read_dir(path).map_err(at(path))? {
        add(&entry.map_err(at(path))?.path(), usage)?;
    }
    Ok(())
}
