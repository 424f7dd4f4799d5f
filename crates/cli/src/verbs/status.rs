//! `rwd status`.

use std::collections::BTreeMap;
use std::path::Path;

use checkpoint_core::{Clock, Intent, Point, PointKind, PointQuery, Timestamp};
use rwd_engine::SystemClock;

use super::{OpenOperation, log};
use crate::compose::Opened;
use crate::config::Origin;
use crate::error::CliError;
use crate::output::Color;
use crate::run::Run;
use crate::text::put;
use crate::wire;
use crate::{exit, text};

pub(crate) fn status(run: &Run) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let unfinished = super::open_operation(&opened)?;
    let answer = gather(&opened, unfinished.as_ref().map(|open| &open.intent))?;
    run.out.answer(&answer, |answer| human(run, answer, unfinished.as_ref()))?;
    Ok(exit::OK)
}

fn gather(opened: &Opened, unfinished: Option<&Intent>) -> Result<wire::Status, CliError> {
    let located = &opened.located;
    let names = opened.index.names()?;
    let points = opened.index.points(&PointQuery::default())?;
    let gaps = points.iter().filter(|point| point.kind == PointKind::Gap).count() as u64;
    // A guard is reached through its operation; the newest point is one that a person can name.
    let newest = points.iter().rev().find(|point| {
        point.snapshot.is_some()
            && point.listed
            && !matches!(point.kind, PointKind::Guard | PointKind::Import)
            && point.damaged.is_none()
    });
    let mut skipped: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut warnings = opened.settings.warnings.clone();
    if let Some(snapshot) = newest.and_then(|point| point.snapshot.as_ref()) {
        match opened.snapshots.skipped(snapshot) {
            Ok(all) => all.iter().for_each(|one| *skipped.entry(one.reason.code()).or_default() += 1),
            Err(error) => warnings.push(format!("the newest point cannot be read: {error}")),
        }
    }
    let sessions = opened.index.sessions()?.into_iter().map(|session| {
        let turn = session.turn.as_ref();
        wire::SessionEntry {
            session: session.key.to_string(),
            turn: turn.map(|turn| turn.turn.0),
            open: turn.is_some_and(|turn| turn.ended.is_none() && turn.closed.is_none() && !turn.interrupted),
            interrupted: turn.is_some_and(|turn| turn.interrupted),
            seen: session.seen.0,
            parent: session.parent.map(|parent| parent.to_string()),
        }
    });
    let unprotected = opened.engine.unprotected()?;
    let count = |wanted: &dyn Fn(&Point) -> bool| {
        points.iter().filter(|point| point.snapshot.is_some() && wanted(point)).count() as u64
    };
    Ok(wire::Status {
        workspace: located.workspace.id.to_string(),
        root: wire::absolute(located.root()),
        data_dir: wire::absolute(located.data.path()),
        index: opened.index.name().to_owned(),
        git: in_git(located.root()),
        incarnation: located.incarnation(),
        points: count(&|_| true),
        listed: count(&|point| point.listed && point.kind != PointKind::Guard),
        guards: count(&|point| point.kind == PointKind::Guard),
        newest: newest.map(|point| log::entry(opened, point, &names)),
        sessions: sessions.collect(),
        skipped: skipped.into_iter().map(|(reason, paths)| wire::SkipCount { reason, paths }).collect(),
        gaps,
        unprotected_since: unprotected.as_ref().map(|point| point.at.0),
        unprotected_reason: unprotected.as_ref().map(log::gap_reason),
        unfinished: super::operation_of(unfinished),
        config: sources(opened),
        overlapping: located.overlapping()?.iter().map(|other| wire::absolute(&other.root)).collect(),
        agent_may_restore: opened.settings.may_restore().name(),
        warnings,
    })
}

/// True where the root lies in a git worktree: something called `.git` at or above it.
pub(super) fn in_git(root: &Path) -> bool {
    root.ancestors().any(|dir| dir.join(".git").symlink_metadata().is_ok())
}

/// What was set, by where.
fn sources(opened: &Opened) -> Vec<wire::ConfigSource> {
    let mut by: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value, origin) in opened.settings.all() {
        if *origin != Origin::Default {
            by.entry(origin.to_string()).or_default().push(format!("{key} = {value}"));
        }
    }
    by.into_iter().map(|(origin, keys)| wire::ConfigSource { origin, keys }).collect()
}

fn human(run: &Run, answer: &wire::Status, unfinished: Option<&OpenOperation>) -> String {
    let now = SystemClock.now();
    let mut out = String::new();
    let open = answer.sessions.iter().filter(|session| session.open).count() as u64;
    put!(
        out,
        "{} listed, {}, {}, {} open\n",
        text::count(answer.listed, "point"),
        text::count(answer.guards, "guard"),
        text::count(answer.sessions.len() as u64, "session"),
        text::count(open, "turn")
    );
    if let (Some(since), Some(reason)) = (answer.unprotected_since, &answer.unprotected_reason) {
        let line = format!("not protected since {}: {reason}", text::minute(Timestamp(since), now));
        put!(out, "{}\n", run.out.paint(Color::Yellow, &line));
    }
    if let Some(open) = unfinished {
        put!(out, "{}\n", run.out.paint(Color::Yellow, &open.line(run)));
    }
    let mut field = |name: &str, value: String| put!(out, "{name:<10} {value}\n");
    field("root", answer.root.line());
    field(
        "git",
        if answer.git { "a worktree".to_owned() } else { "none: no repository here, and none is needed".to_owned() },
    );
    field("data", format!("{} ({})", answer.data_dir.line(), answer.index));
    match &answer.newest {
        Some(point) => field(
            "newest",
            format!("{} at {}, {}", text::short(&point.id), text::time(Timestamp(point.at), now), point.kind),
        ),
        None => field("newest", "no point yet".to_owned()),
    }
    for session in &answer.sessions {
        let turn = session.turn.map(|turn| format!(", turn {turn}")).unwrap_or_default();
        let state = if session.open {
            " (open)"
        } else if session.interrupted {
            " (interrupted)"
        } else {
            ""
        };
        field("session", format!("{}{turn}{state}", session.session));
    }
    if !answer.skipped.is_empty() {
        let counts: Vec<String> =
            answer.skipped.iter().map(|skip| format!("{} {}", skip.paths, wire::reason_word(skip.reason))).collect();
        field("left out", counts.join(", "));
    }
    if answer.gaps > 0 {
        field("gaps", answer.gaps.to_string());
    }
    for other in &answer.overlapping {
        field("overlaps", other.line());
    }
    field("agents", format!("may restore: {}", answer.agent_may_restore));
    for source in &answer.config {
        field("config", source.origin.clone());
        for key in &source.keys {
            field("", wire::shown(key));
        }
    }
    if answer.points == 0 {
        put!(out, "to make a point: {}\n", run.typed.other(&["save"]));
    } else {
        put!(out, "to see them: {}\n", run.typed.other(&["log"]));
    }
    out
}
