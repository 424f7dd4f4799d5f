//! `rwd name` and `rwd drop`.

use checkpoint_core::{DropWhich, EngineError, PointKind, PointQuery};

use crate::args::{DropArgs, NameArgs};
use crate::compose::Opened;
use crate::error::CliError;
use crate::run::Run;
use crate::text::put;
use crate::wire;
use crate::{exit, text};

pub(crate) fn name(run: &Run, args: &NameArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let answer = if let Some(label) = &args.delete {
        opened.engine.unname(label)?;
        wire::Named { label: label.clone(), id: None, deleted: true }
    } else {
        let (Some(target), Some(label)) = (&args.target, &args.label) else {
            return Err(CliError::usage("usage", "a target and a name are needed"));
        };
        checkpoint_core::check_name(label).map_err(|why| EngineError::BadName { label: label.clone(), why })?;
        let (point, _) = super::stored_point(run, &opened, target)?;
        if point.snapshot.is_none() {
            return Err(EngineError::NotRestorable {
                point: point.id,
                why: "its capture did not happen".to_owned(),
                path: None,
            }
            .into());
        }
        opened.engine.name(&point, label, None)?;
        wire::Named { label: label.clone(), id: Some(point.id.to_string()), deleted: false }
    };
    run.out.answer(&answer, |answer| match &answer.id {
        Some(id) => format!("{} names point {}\n", answer.label, text::short(id)),
        None => format!("the name {} is gone; its point stays\n", answer.label),
    })?;
    Ok(exit::OK)
}

pub(crate) fn drop(run: &Run, args: &DropArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    super::refuse_agent(run, &opened, "drop points")?;
    let (which, what) = which(run, &opened, args)?;
    confirm(run, &what)?;
    run.stop.listen();
    let answer = match opened.engine.drop_points(&which) {
        Ok(dropped) => wire::Dropped { dropped: dropped.iter().map(ToString::to_string).collect(), notes: Vec::new() },
        Err(EngineError::Nothing { why, .. }) => wire::Dropped { dropped: Vec::new(), notes: vec![why] },
        Err(error) => return Err(error.into()),
    };
    run.out.answer(&answer, |answer| {
        let mut out = format!("{} dropped\n", text::count(answer.dropped.len() as u64, "point"));
        for note in &answer.notes {
            put!(out, "{}\n", wire::shown(note));
        }
        if !answer.dropped.is_empty() {
            put!(out, "to free the space: {}\n", run.typed.other(&["gc"]));
        }
        out
    })?;
    Ok(if answer.dropped.is_empty() { exit::NOTHING } else { exit::OK })
}

fn which(run: &Run, opened: &Opened, args: &DropArgs) -> Result<(DropWhich, String), CliError> {
    if args.all {
        return Ok((DropWhich::All, "dropping all points of this workspace".to_owned()));
    }
    if args.targets.is_empty() {
        let session = opened.session(run)?;
        let session = session.ok_or_else(|| CliError::usage("usage", "name points, a session or --all"))?;
        let what = format!("dropping all points of session {session}");
        return Ok((DropWhich::Session(session), what));
    }
    let mut ids = Vec::new();
    for target in &args.targets {
        // A gap has an id too, and no state: it can be dropped all the same.
        let by_prefix =
            PointQuery { id_prefix: Some(target.to_lowercase()), kinds: vec![PointKind::Gap], ..PointQuery::default() };
        let is_hex = target.len() >= 4 && target.bytes().all(|b| b.is_ascii_hexdigit());
        let gap = if is_hex { opened.index.points(&by_prefix)?.pop() } else { None };
        let point = match super::stored_point(run, opened, target) {
            Ok((point, _)) => point,
            Err(error) => gap.ok_or(error)?,
        };
        ids.push(point.id);
    }
    ids.sort();
    ids.dedup();
    // A name pins its point against retention: whoever drops it all the same should see that.
    let names = opened.index.names()?;
    let called: Vec<String> =
        names.iter().filter(|name| ids.contains(&name.point)).map(|name| wire::shown(&name.label)).collect();
    let called = if called.is_empty() { String::new() } else { format!(" (called {})", called.join(", ")) };
    let what = format!("dropping {}{called}", text::count(ids.len() as u64, "point"));
    Ok((DropWhich::Points(ids), what))
}

/// What destroys needs a yes; Enter is none.
pub(super) fn confirm(run: &Run, what: &str) -> Result<(), CliError> {
    if run.global.yes {
        return Ok(());
    }
    if !run.may_ask() {
        return Err(CliError::NeedsYes { what: what.to_owned(), declined: false });
    }
    match run.out.ask(&format!("{what}: this cannot be undone. Go on? [y/N] ")).as_deref() {
        Some("y" | "yes") => Ok(()),
        _ => Err(CliError::NeedsYes { what: what.to_owned(), declined: true }),
    }
}
