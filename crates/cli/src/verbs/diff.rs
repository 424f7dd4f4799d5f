//! `rwd diff`.

use checkpoint_core::{Change, EngineError, PointQuery, Snapshot};

use super::changes::{self, Side};
use crate::args::DiffArgs;
use crate::compose::Opened;
use crate::error::{CliError, Facts};
use crate::paths::Paths;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, ChangeEntry};
use crate::{exit, text};

/// One side of a diff.
struct End {
    /// The point's id; `None` for now.
    point: Option<String>,
    snapshot: Snapshot,
}

pub(crate) fn diff(run: &Run, args: &DiffArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let base = run.start()?;
    let facts = opened.facts(run)?;
    let paths = Paths { root: opened.located.root(), base: &base };
    let selection = run.out.with_stdin(|stdin| paths.all(&args.paths, stdin))?;
    let mut notes = Vec::new();
    let unfinished = super::unfinished(run, &opened)?;
    let from = match &args.from {
        Some(target) => end(run, &opened, target, &mut notes)?,
        None => start_of_last_turn(run, &opened, &mut notes)?,
    };
    let to = match &args.to {
        Some(target) => end(run, &opened, target, &mut notes)?,
        None => End { point: None, snapshot: changes::now(&opened)? },
    };
    let changes = changes::between(&opened, &from.snapshot, &to.snapshot, &selection)?;
    let side = if to.point.is_some() { Side::Stored } else { Side::Disk };
    let compare = args.stat || args.patch || run.out.json && !args.name_only;
    let mut entries = Vec::new();
    let mut patch = Vec::new();
    for change in &changes {
        if compare {
            let compared = changes::compare(&opened, change, side, args.patch)?;
            entries.push(compared.entry);
            patch.extend(compared.patch);
        } else {
            entries.push(wire::change(&change.path, &change.before, &change.after));
        }
    }
    if args.patch && !run.out.json {
        run.out.bytes(&patch)?;
        return Ok(exit::OK);
    }
    if args.name_only && !run.out.json {
        run.out.bytes(names(&facts, &changes).as_bytes())?;
        return Ok(exit::OK);
    }
    let answer = wire::Diff {
        from: from.point.unwrap_or_else(|| "@".to_owned()),
        to: to.point,
        changes: entries,
        patch: args.patch.then(|| String::from_utf8_lossy(&patch).into_owned()),
        notes,
        unfinished: super::operation_of(unfinished.as_ref()),
    };
    let of_turn = match (&args.from, &args.to) {
        (Some(target), None) => super::of_turn(run, &opened, target),
        _ => None,
    };
    run.out.answer(&answer, |answer| human(answer, &changes, &facts, args.stat) + &of_turn.unwrap_or_default())?;
    Ok(exit::OK)
}

fn names(facts: &Facts, changes: &[Change]) -> String {
    changes.iter().map(|change| name(facts, change) + "\n").collect()
}

/// A path as it can be typed after `--` where the command was typed.
fn name(facts: &Facts, change: &Change) -> String {
    wire::shown(&facts.relative(&change.path).to_string_lossy())
}

fn end(run: &Run, opened: &Opened, target: &str, notes: &mut Vec<String>) -> Result<End, CliError> {
    let (point, more) = super::point_at(run, opened, target)?;
    notes.extend(more);
    let Some(point) = point else { return Ok(End { point: None, snapshot: changes::now(opened)? }) };
    let gap =
        || EngineError::NotRestorable { point: point.id, why: "its capture did not happen".to_owned(), path: None };
    Ok(End { point: Some(point.id.to_string()), snapshot: point.snapshot.ok_or_else(gap)? })
}

/// The default: from the start of the last turn; without a turn, from the newest point.
fn start_of_last_turn(run: &Run, opened: &Opened, notes: &mut Vec<String>) -> Result<End, CliError> {
    let session = opened.session(run)?;
    match opened.engine.turn_back(session.as_ref(), 1) {
        Ok(target) => return end(run, opened, &target, notes),
        Err(EngineError::Nothing { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let newest = PointQuery { restorable: true, newest_first: true, limit: Some(1), ..PointQuery::default() };
    let point = opened.index.points(&newest)?.pop();
    let point = point.ok_or_else(|| EngineError::NotFound { given: "a point".to_owned(), choices: Vec::new() })?;
    end(run, opened, &point.id.to_string(), notes)
}

fn human(answer: &wire::Diff, changes: &[Change], facts: &Facts, stat: bool) -> String {
    let to = answer.to.as_deref().map_or("now", text::short);
    let mut out = format!(
        "{} changed from {} to {to}\n",
        text::count(answer.changes.len() as u64, "path"),
        text::short(&answer.from)
    );
    for (entry, change) in answer.changes.iter().zip(changes) {
        out.push_str(&line(entry, &name(facts, change), stat));
    }
    let mut said: Vec<&String> = Vec::new();
    for note in &answer.notes {
        // Both ends may have the same to say.
        if said.contains(&note) {
            continue;
        }
        said.push(note);
        put!(out, "{}\n", wire::shown(note));
    }
    out
}

pub(super) fn line(change: &ChangeEntry, name: &str, stat: bool) -> String {
    let mut line = format!("  {:<8}  {name}", change.word());
    if stat {
        let counts = match (change.binary, change.added, change.removed) {
            (Some(true), ..) => "binary".to_owned(),
            (_, Some(added), Some(removed)) => format!("+{added} -{removed}"),
            _ => String::new(),
        };
        put!(line, "  {counts}");
    }
    line + "\n"
}
