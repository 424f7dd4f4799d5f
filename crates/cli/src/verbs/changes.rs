//! What differs between two states, and the content on both sides, for `show` and `diff`. Reads only.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use checkpoint_core::{
    CaptureRequest, Change, LockMode, NoProgress, ObjectId, PathState, PointQuery, RelPath, Snapshot, Temporaries,
};
use durable_fs::{Dir, Mounts};

use crate::compose::Opened;
use crate::error::CliError;
use crate::text::put;
use crate::wire::{self, ChangeEntry};

/// Larger content is not compared line by line.
const MAX_TEXT: u64 = 8 << 20;
/// A NUL byte so early says that content is no text.
const LOOKED_AT: usize = 8000;

/// The workspace as it is now, captured without writing anything.
pub(super) fn now(opened: &Opened) -> Result<Snapshot, CliError> {
    let _held = opened.lock.acquire(LockMode::Shared, opened.settings.lock_wait())?;
    let newest = PointQuery { restorable: true, newest_first: true, limit: Some(1), ..PointQuery::default() };
    let latest = opened.index.points(&newest)?.pop();
    let held = opened.index.held()?;
    let not_held: BTreeSet<RelPath> = latest.iter().flat_map(|point| point.sensitive.iter().cloned()).collect();
    let temporaries: Vec<Vec<u8>> =
        opened.index.open_intent()?.iter().map(|i| Temporaries(i.operation).prefix()).collect();
    let captured = opened.snapshots.capture(&CaptureRequest {
        base: latest.and_then(|point| point.snapshot),
        held: &held,
        not_held: &not_held,
        include: &BTreeSet::new(),
        temporaries: &temporaries,
        policy: &opened.settings.capture(),
        write: false,
        watched: false,
        deadline: None,
        progress: &NoProgress,
    })?;
    Ok(captured.snapshot)
}

/// All changes between two states, narrowed to a selection. Directories that only hold others are left out.
pub(super) fn between(
    opened: &Opened,
    before: &Snapshot,
    after: &Snapshot,
    selection: &[RelPath],
) -> Result<Vec<Change>, CliError> {
    let mut changes: Vec<Change> = Vec::new();
    opened.snapshots.diff(before, after, &mut |change| {
        let wanted = selection.is_empty() || selection.iter().any(|named| change.path.is_at_or_below(named));
        if wanted {
            changes.push(change);
        }
        ControlFlow::Continue(())
    })?;
    let listed = |at: usize| {
        let change = changes.get(at)?;
        let is_dir = |state: &PathState| state.is_dir() || state.is_absent();
        let only_dir = is_dir(&change.before) && is_dir(&change.after);
        let holds = changes.get(at + 1).is_some_and(|next| next.path.is_below(&change.path));
        (!only_dir || !holds).then(|| change.clone())
    };
    Ok((0..changes.len()).filter_map(listed).collect())
}

/// Where content is read from.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// The store.
    Stored,
    /// The disk: what is there now was not stored.
    Disk,
}

/// The content of one side; `None` where it is too large to compare.
fn content(opened: &Opened, path: &RelPath, state: &PathState, side: Side) -> Result<Option<Vec<u8>>, CliError> {
    let Some(blob) = state.blob() else { return Ok(Some(Vec::new())) };
    match side {
        Side::Stored => stored(opened, &blob),
        Side::Disk if opened.snapshots.has_blob(&blob)? => stored(opened, &blob),
        Side::Disk => on_disk(opened, path, state),
    }
}

fn stored(opened: &Opened, blob: &ObjectId) -> Result<Option<Vec<u8>>, CliError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let reader = opened.snapshots.open_blob(blob)?;
    let read = reader.take(MAX_TEXT + 1).read_to_end(&mut bytes);
    read.map_err(|source| CliError::failure(format!("cannot read object {blob}"), source))?;
    Ok((bytes.len() as u64 <= MAX_TEXT).then_some(bytes))
}

/// Reads a file of the workspace through no link at all, however long its path is.
fn on_disk(opened: &Opened, path: &RelPath, state: &PathState) -> Result<Option<Vec<u8>>, CliError> {
    use std::io::Read;
    let failed = |source: std::io::Error| CliError::failure(format!("cannot read {path}"), source);
    let whole = path.as_bytes();
    let slash = whole.iter().rposition(|byte| *byte == b'/');
    let (above, name) = slash.map_or((&whole[..0], whole), |at| (&whole[..at], &whole[at + 1..]));
    let root = Dir::open_root(opened.located.root());
    let root = root.map_err(|source| CliError::failure(format!("cannot read {path}"), source))?;
    let dir = root.descend(above, Mounts::Any);
    let dir = dir.map_err(|source| CliError::failure(format!("cannot read {path}"), source))?;
    if matches!(state, PathState::Link { .. }) {
        return dir.read_link(name).map(Some).map_err(failed);
    }
    let file = dir.open_file(name).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes.len() as u64 <= MAX_TEXT).then_some(bytes))
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

/// One change with its content compared.
pub(super) struct Compared {
    pub(super) entry: ChangeEntry,
    /// The unified patch, as bytes: files need not be UTF-8.
    pub(super) patch: Vec<u8>,
}

/// Compares the content of one change line by line.
pub(super) fn compare(opened: &Opened, change: &Change, after_side: Side, patch: bool) -> Result<Compared, CliError> {
    let mut entry = wire::change(&change.path, &change.before, &change.after);
    let old = content(opened, &change.path, &change.before, Side::Stored)?;
    let new = content(opened, &change.path, &change.after, after_side)?;
    let mut out = if patch { header(change) } else { Vec::new() };
    let (Some(old), Some(new)) = (&old, &new) else {
        entry.binary = Some(true);
        return Ok(Compared { entry, patch: binary(out, change, patch) });
    };
    if !is_text(old) || !is_text(new) {
        entry.binary = Some(true);
        return Ok(Compared { entry, patch: binary(out, change, patch) });
    }
    let diff = similar::TextDiff::from_lines(old.as_slice(), new.as_slice());
    let count = |wanted| diff.iter_all_changes().filter(|line| line.tag() == wanted).count() as u64;
    entry.added = Some(count(similar::ChangeTag::Insert));
    entry.removed = Some(count(similar::ChangeTag::Delete));
    if patch && old != new {
        let name = |prefix: &str, state: &PathState| {
            if state.is_absent() || state.is_dir() { "/dev/null".to_owned() } else { quoted(prefix, &change.path) }
        };
        let (from, to) = (name("a/", &change.before), name("b/", &change.after));
        diff.unified_diff()
            .header(&from, &to)
            .to_writer(&mut out)
            .map_err(|source| CliError::failure("the patch cannot be made", source))?;
    }
    Ok(Compared { entry, patch: out })
}

fn binary(mut out: Vec<u8>, change: &Change, patch: bool) -> Vec<u8> {
    if patch && !change.before.same_content(&change.after) {
        out.extend_from_slice(b"Binary content differs\n");
    }
    out
}

/// The lines that say what a patch is about.
fn header(change: &Change) -> Vec<u8> {
    let mode = |state: &PathState| match state {
        PathState::File { mode, .. } => format!("100{:03o}", mode.0 & 0o777),
        PathState::Link { .. } => "120000".to_owned(),
        PathState::Dir { .. } => "040000".to_owned(),
        PathState::Fifo { .. } => "fifo".to_owned(),
        PathState::Absent | PathState::Opaque => "none".to_owned(),
    };
    let (old, new) = (mode(&change.before), mode(&change.after));
    let mut out = format!("diff --rwd {} {}\n", quoted("a/", &change.path), quoted("b/", &change.path));
    match (change.before.is_absent(), change.after.is_absent()) {
        (true, _) => put!(out, "new file mode {new}\n"),
        (_, true) => put!(out, "deleted file mode {old}\n"),
        _ if old != new => put!(out, "old mode {old}\nnew mode {new}\n"),
        _ => {}
    }
    out.into_bytes()
}

/// A name in a patch: one line whatever it holds.
fn quoted(prefix: &str, path: &RelPath) -> String {
    let name = path.to_lossy();
    let whole = format!("{prefix}{name}");
    if name.chars().any(|c| c.is_control() || c == '"' || c == '\\') { format!("{whole:?}") } else { whole }
}
