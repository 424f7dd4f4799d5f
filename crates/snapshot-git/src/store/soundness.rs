//! Are the packs and their indexes as they were written? Objects check themselves; the header and the trailer of a pack, and
//! the checksum of an index, are no object's.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use checkpoint_core::SnapshotError;
use gix::ObjectId;

use super::{
    Store, at,
    idx::Idx,
    pack::{HEADER, Pack, TRAILER, hash_range},
};

/// What is wrong with the header or the trailer of a pack, given its index. Reads both and nothing else.
pub(super) fn frame_of(path: &Path, idx: &Idx) -> io::Result<Option<&'static str>> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    if len < HEADER + TRAILER {
        return Ok(Some("it is cut short"));
    }
    let mut head = [0; 12];
    file.read_exact_at(&mut head, 0)?;
    if head[..8] != *b"PACK\0\0\0\x02" || head[8..] != idx.count().to_be_bytes() {
        return Ok(Some("its header changed"));
    }
    let mut sum = [0; 20];
    file.read_exact_at(&mut sum, len - TRAILER)?;
    Ok((sum != *idx.pack_sum()).then_some("its trailer changed"))
}

impl Store {
    /// Reads every pack and index through; one line for each that is not as it was written.
    pub(crate) fn unsound_files(&self) -> Result<Vec<String>, SnapshotError> {
        let mut found = Vec::new();
        for pack in self.packs()?.iter() {
            match unsound(pack) {
                Ok(None) => {}
                Ok(Some((end, how))) => {
                    let name = pack.path().with_extension(end);
                    found.push(format!("{}: {how}", name.file_name().unwrap_or_default().display()));
                }
                // Collected meanwhile, or joined with others.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(at(pack.path())(error)),
            }
        }
        Ok(found)
    }
}

/// The ending of the file and what is wrong with it.
fn unsound(pack: &Pack) -> io::Result<Option<(&'static str, &'static str)>> {
    let path = pack.path();
    // From the disk once more: the handle may have remade it in memory.
    match Idx::open(&path.with_extension("idx")) {
        Ok(idx) if idx.is_sound()? => {
            if let Some(how) = frame_of(path, &idx)? {
                return Ok(Some(("pack", how)));
            }
        }
        // Deltas are only found by it: such a pack counts as damaged, and its files are read again.
        Ok(_) if pack.is_seeded() => return Ok(Some(("idx", "its checksum does not hold"))),
        Ok(_) => return Ok(Some(("idx", "its checksum does not hold; it can be made again from its pack"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => return Ok(Some(("idx", "it cannot be read; it can be made again from its pack"))),
    }
    let file = pack.file()?;
    let len = file.metadata()?.len();
    if len < HEADER + TRAILER {
        return Ok(Some(("pack", "it is cut short")));
    }
    let mut sum = [0; 20];
    file.read_exact_at(&mut sum, len - TRAILER)?;
    if hash_range(&file, len - TRAILER)? != sum {
        return Ok(Some(("pack", "its checksum does not hold")));
    }
    // A link to another repository's pack may have any name.
    let named = format!("pack-{}", ObjectId::Sha1(sum));
    let is_named = pack.is_linked() || pack.is_seeded() || path.file_stem().is_some_and(|stem| *stem == *named);
    Ok((!is_named).then_some(("pack", "it has another name than its checksum")))
}
