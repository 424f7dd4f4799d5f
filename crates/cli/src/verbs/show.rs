//! `rwd show`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use checkpoint_core::{Clock, EngineError, ObjectId, OpId, PathState, Point, PointQuery, RelPath};
use rwd_engine::SystemClock;

use super::{changes, diff, log, save};
use crate::args::ShowArgs;
use crate::compose::Opened;
use crate::error::CliError;
use crate::paths::Paths;
use crate::run::Run;
use crate::text::put;
use crate::wire;
use crate::{exit, text};

pub(crate) fn show(run: &Run, args: &ShowArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let found = super::stored_point(run, &opened, &args.target);
    if let (Err(CliError::Engine(EngineError::NotFound { .. } | EngineError::Address(_))), None) = (&found, &args.path)
        && let Some(kept) = kept(&opened, &args.target)?
    {
        return show_kept(run, &opened, kept);
    }
    let (point, notes) = found?;
    match &args.path {
        None => {
            let of_turn = super::of_turn(run, &opened, &args.target);
            show_point(run, &opened, &point, notes, of_turn.as_deref())
        }
        Some(path) => {
            let base = run.start()?;
            let path = Paths { root: opened.located.root(), base: &base }.find(path)?;
            show_path(run, &opened, &point, &path)
        }
    }
}

/// Bytes of somebody else that an operation stored because they could not stay.
struct Kept {
    operation: OpId,
    path: RelPath,
    blob: ObjectId,
}

/// Shorter beginnings are no ids, as with points.
const SHORTEST: usize = 4;

/// The one stored content whose id begins like this.
fn kept(opened: &Opened, prefix: &str) -> Result<Option<Kept>, CliError> {
    let prefix = prefix.to_lowercase();
    if prefix.len() < SHORTEST || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let mut found: BTreeMap<String, Kept> = BTreeMap::new();
    for operation in opened.index.operations(&[], None)? {
        for (path, blob) in operation.stored {
            let id = blob.to_string();
            if id.starts_with(&prefix) {
                found.entry(id).or_insert(Kept { operation: operation.id, path, blob });
            }
        }
    }
    if found.len() > 1 {
        let choices = found.into_keys().collect();
        return Err(EngineError::Ambiguous { given: prefix, choices }.into());
    }
    Ok(found.into_values().next())
}

fn show_kept(run: &Run, opened: &Opened, kept: Kept) -> Result<u8, CliError> {
    let Kept { operation, path, blob } = kept;
    if !run.out.json {
        run.out.copy(&mut opened.snapshots.open_blob(&blob)?)?;
        return Ok(exit::OK);
    }
    let answer = wire::ShownBlob {
        blob: blob.to_string(),
        path: wire::paths(&[path]).remove(0),
        op: operation.to_string(),
        content: encoded(opened, &blob)?,
    };
    run.out.answer(&answer, |_| String::new())?;
    Ok(exit::OK)
}

/// Stored content in base64.
fn encoded(opened: &Opened, blob: &ObjectId) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut opened.snapshots.open_blob(blob)?, &mut bytes)
        .map_err(|source| CliError::failure(format!("cannot read object {blob}"), source))?;
    Ok(data_encoding::BASE64.encode(&bytes))
}

fn show_point(
    run: &Run,
    opened: &Opened,
    point: &Point,
    notes: Vec<String>,
    of_turn: Option<&str>,
) -> Result<u8, CliError> {
    let names = opened.index.names()?;
    let mut changed = Vec::new();
    let mut skipped = Vec::new();
    if let Some(snapshot) = &point.snapshot {
        skipped = wire::skipped(&opened.snapshots.skipped(snapshot)?);
        let before = PointQuery {
            at_or_before: Some(checkpoint_core::Ord(point.ord.0.saturating_sub(1))),
            restorable: true,
            newest_first: true,
            limit: Some(1),
            ..PointQuery::default()
        };
        if let Some(before) = opened.index.points(&before)?.pop().and_then(|before| before.snapshot) {
            let all = changes::between(opened, &before, snapshot, &[])?;
            changed = all.iter().map(|change| wire::change(&change.path, &change.before, &change.after)).collect();
        }
    }
    let head = point.head.clone().unwrap_or_default();
    let answer = wire::Shown {
        point: log::entries(opened, std::slice::from_ref(point), &names)
            .pop()
            .unwrap_or_else(|| log::entry(opened, point, &names)),
        consistency: save::consistency(point.consistency),
        files: point.files,
        skipped,
        branch: head.branch,
        commit: head.commit,
        changes: changed,
        notes,
    };
    run.out.answer(&answer, |answer| human(run, answer, point, of_turn))?;
    Ok(exit::OK)
}

fn human(run: &Run, answer: &wire::Shown, point: &Point, of_turn: Option<&str>) -> String {
    let now = SystemClock.now();
    let entry = &answer.point;
    let mut out = format!("{} changed, {}\n", text::count(entry.changed, "path"), text::count(answer.files, "file"));
    let mut field = |name: &str, value: String| put!(out, "{name:<10} {value}\n");
    field("point", entry.id.clone());
    field("made", format!("{}, {}", text::time(point.at, now), entry.kind));
    let turn = entry.turn.map(|turn| format!(", turn {turn}")).unwrap_or_default();
    let step = entry.step.map(|step| format!(", step {step}")).unwrap_or_default();
    field("session", format!("{}{turn}{step}", entry.session));
    for (name, value) in [("note", &entry.note), ("trigger", &entry.trigger), ("damaged", &entry.damaged)] {
        if let Some(value) = value {
            field(name, wire::shown(value));
        }
    }
    if !entry.names.is_empty() {
        field("names", entry.names.join(", "));
    }
    if let Some(tree) = &entry.tree {
        field("tree", tree.clone());
    }
    let commit = answer.commit.as_deref().map(|commit| text::short(commit).to_owned());
    if let Some(branch) = &answer.branch {
        let at = commit.map(|commit| format!(" at {commit}")).unwrap_or_default();
        field("branch", wire::shown(&format!("{}{at}", branch.trim_start_matches("refs/heads/"))));
    } else if let Some(commit) = commit {
        field("commit", commit);
    }
    for change in answer.changes.iter().take(30) {
        out.push_str(&diff::line(change, &change.line(run.out.below()), false));
    }
    if answer.changes.len() > 30 {
        put!(out, "  and {} more\n", answer.changes.len() - 30);
    }
    text::reasons(&mut out, run.out.below(), "left out:", &answer.skipped);
    for note in &answer.notes {
        put!(out, "{}\n", wire::shown(note));
    }
    out.push_str(of_turn.unwrap_or_default());
    if entry.restorable {
        put!(out, "to see what going there would do: {}\n", run.typed.other(&["preview", text::short(&entry.id)]));
    }
    out
}

fn show_path(run: &Run, opened: &Opened, point: &Point, path: &RelPath) -> Result<u8, CliError> {
    let gap =
        || EngineError::NotRestorable { point: point.id, why: "its capture did not happen".to_owned(), path: None };
    let snapshot = point.snapshot.ok_or_else(gap)?;
    let state = opened.snapshots.state(&snapshot, path)?;
    let missing = |why: &str| CliError::Coded {
        code: "not-found",
        message: format!("{path} {why} at point {}", point.id.short()),
        hints: Vec::new(),
        exit: exit::NOT_FOUND,
    };
    let (kind, mode) = match state {
        PathState::Absent => return Err(missing("is not there")),
        PathState::Opaque => return Err(missing("was left out")),
        PathState::File { mode, .. } => ("file", Some(mode)),
        PathState::Link { .. } => ("link", None),
        PathState::Fifo { mode } => ("fifo", Some(mode)),
        PathState::Dir { mode } => ("dir", Some(mode)),
    };
    if !run.out.json
        && let Some(blob) = state.blob()
    {
        let mut content = opened.snapshots.open_blob(&blob)?;
        run.out.copy(&mut content)?;
        return Ok(exit::OK);
    }
    let mut entries = Vec::new();
    if state.is_dir() {
        opened.snapshots.list(&snapshot, Some(path), &mut |below, _| {
            if below != *path {
                entries.push(below);
            }
            ControlFlow::Continue(())
        })?;
    }
    let content = state.blob().map(|blob| encoded(opened, &blob)).transpose()?;
    let answer = wire::ShownPath {
        point: point.id.to_string(),
        path: wire::paths(std::slice::from_ref(path)).remove(0),
        kind,
        mode: mode.map(|mode| format!("{:04o}", mode.0)),
        content,
        entries: wire::paths(&entries),
    };
    run.out.answer(&answer, |answer| match kind {
        "dir" => answer.entries.iter().map(|entry| entry.line_from(run.out.below()) + "\n").collect(),
        other => format!("{} is a {other}\n", answer.path.line_from(run.out.below())),
    })?;
    Ok(exit::OK)
}
