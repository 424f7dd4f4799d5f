//! The new content of a path, made complete before it gets any name that counts.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
};

use checkpoint_core::{FsError, Mode, ObjectId, PathState, SnapshotError};
use durable_fs::Stat;
use rustix::fs::fchmod;

use crate::{metadata::Kept, place::mode_of, work::Work};

const CHUNK: usize = 128 << 10;

/// Content up to so many bytes is compared with its id before it is written; larger content is read back.
const IN_MEMORY: u64 = 256 << 10;

/// The kernel takes no longer text for a link.
const LONGEST_LINK: u64 = 4096;

impl Work<'_> {
    /// Makes `state` under the draft's name: content checked against its id, owner, attributes and mode set, synced.
    /// After an error there is no draft.
    pub(crate) fn write_draft(&self, state: &PathState, kept: Option<&Kept>) -> Result<(), FsError> {
        if self.take_ready(state, kept)? {
            return Ok(());
        }
        self.sweep_draft()?;
        let made = self.make_draft(state, kept);
        if made.is_err() {
            // The first failure is what the caller needs. What stays is swept by `settle`.
            drop(self.sweep_draft());
        }
        made
    }

    fn make_draft(&self, state: &PathState, kept: Option<&Kept>) -> Result<(), FsError> {
        let draft = self.draft.as_slice();
        let failed = |e| self.failed(e);
        match state {
            PathState::File { blob, mode } => {
                if let Some((file, _)) = self.draft_file(blob, *mode, kept, u64::MAX)? {
                    self.workspace.point("sync a draft");
                    file.sync_all().map_err(failed)?;
                }
                return Ok(());
            }
            PathState::Link { blob } => {
                let text = self.link_text(blob)?;
                self.workspace.point("create a link");
                self.dir.create_link(draft, &text).map_err(failed)?;
            }
            PathState::Fifo { .. } => {
                self.workspace.point("create a FIFO");
                self.dir.create_fifo(draft).map_err(failed)?;
            }
            PathState::Dir { .. } => {
                self.workspace.point("create a directory");
                self.dir.create_dir(draft).map_err(failed)?;
            }
            PathState::Absent | PathState::Opaque => {
                return Err(self.failed(io::ErrorKind::InvalidInput.into()));
            }
        }
        if let Some(kept) = kept {
            self.keep_owner(draft, kept)?;
        }
        if let PathState::Fifo { mode } | PathState::Dir { mode } = state {
            self.workspace.point("set the mode of a draft");
            self.dir.chmod(draft, u32::from(mode.0)).map_err(failed)?;
            self.has_mode(self.stat(draft)?, *mode)?;
        }
        Ok(())
    }

    /// A draft that is complete but not synced, and its length; `None` where the content is longer than `room`.
    pub(crate) fn draft_file(
        &self,
        blob: &ObjectId,
        mode: Mode,
        kept: Option<&Kept>,
        room: u64,
    ) -> Result<Option<(File, u64)>, FsError> {
        let mut from = self.blobs.open_blob(blob).map_err(|e| self.content_failed(e))?;
        let mut head = Vec::new();
        from.by_ref()
            .take(room.min(IN_MEMORY).saturating_add(1))
            .read_to_end(&mut head)
            .map_err(|e| self.unreadable(e))?;
        let whole = head.len() as u64 <= IN_MEMORY;
        if head.len() as u64 > room {
            return Ok(None);
        }
        if whole {
            self.is_content(blob, head.len() as u64, &mut head.as_slice())?;
        }
        self.workspace.point("create a draft");
        let mut file = self.dir.create_file(&self.draft).map_err(|e| self.failed(e))?;
        self.write(&head, &mut file)?;
        let mut len = head.len() as u64;
        if !whole {
            drop(head);
            let Some(rest) = self.copy(&mut from, &mut file, room - len)? else { return Ok(None) };
            len += rest;
            file.rewind().map_err(|e| self.failed(e))?;
            self.is_content(blob, len, &mut file)?;
        }
        if let Some(kept) = kept {
            self.keep_owner(&self.draft, kept)?;
            self.keep_attributes(&file, kept)?;
        }
        // Last: a change of owner clears the set-id bits, an ACL changes those of the group.
        self.set_mode(&file, mode)?;
        Ok(Some((file, len)))
    }

    /// The store does not check what it reads. Damaged content must not take the place of sound content.
    fn is_content(&self, blob: &ObjectId, len: u64, bytes: &mut dyn Read) -> Result<(), FsError> {
        if self.blobs.hash_blob(len, bytes).map_err(|e| self.content_failed(e))? == *blob {
            return Ok(());
        }
        let source = "its bytes do not have its id".into();
        Err(self.content_failed(SnapshotError::Damaged { id: *blob, source }))
    }

    fn write(&self, bytes: &[u8], to: &mut File) -> Result<(), FsError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.workspace.point("write a draft");
        to.write_all(bytes).map_err(|e| self.failed(e))
    }

    /// Copies what is left, and says how much it was; `None` where it is more than `room`.
    fn copy(&self, from: &mut dyn Read, to: &mut File, room: u64) -> Result<Option<u64>, FsError> {
        let mut chunk = vec![0; CHUNK];
        let mut len = 0;
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => return Ok(Some(len)),
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.unreadable(e)),
            };
            if read as u64 > room - len {
                return Ok(None);
            }
            self.write(chunk.get(..read).unwrap_or_default(), to)?;
            len += read as u64;
        }
    }

    fn link_text(&self, blob: &ObjectId) -> Result<Vec<u8>, FsError> {
        let mut text = Vec::new();
        let from = self.blobs.open_blob(blob).map_err(|e| self.content_failed(e))?;
        from.take(LONGEST_LINK).read_to_end(&mut text).map_err(|e| self.unreadable(e))?;
        let id = self.blobs.hash_blob(text.len() as u64, &mut text.as_slice()).map_err(|e| self.content_failed(e))?;
        if id != *blob {
            let source = "its bytes do not have its id, or are too many for a link".into();
            return Err(self.content_failed(SnapshotError::Damaged { id: *blob, source }));
        }
        Ok(text)
    }

    fn unreadable(&self, e: io::Error) -> FsError {
        self.content_failed(SnapshotError::Other { what: "a blob cannot be read", source: e.into() })
    }

    /// Gives an open file exactly these permission bits, or fails.
    pub(crate) fn set_mode(&self, file: &File, mode: Mode) -> Result<(), FsError> {
        self.workspace.point("set the mode of a file");
        let raw = rustix::fs::Mode::from_raw_mode(mode.0.into());
        fchmod(file, raw).map_err(|e| self.failed(e.into()))?;
        self.has_mode(Stat::of(file).map(Some).map_err(|e| self.failed(e))?, mode)
    }

    /// The kernel drops bits it does not like without a word, as set-gid for a group one is not in.
    pub(crate) fn has_mode(&self, found: Option<Stat>, mode: Mode) -> Result<(), FsError> {
        match found {
            Some(stat) if mode_of(&stat) == mode => Ok(()),
            _ => Err(FsError::Metadata { path: self.path.clone() }),
        }
    }
}
