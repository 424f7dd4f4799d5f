//! `rwd save`.

use std::time::Instant;

use checkpoint_core::{
    Consistency, EngineError, Intent, Point, PointKind, PointQuery, SaveRequest, SessionKey, Skipped, Step, Turn,
};
use index_store::Standing;

use crate::approve::Consent;
use crate::args::{SaveArgs, SaveKind};
use crate::compose::{self, Opened};
use crate::config::Settings;
use crate::error::CliError;
use crate::run::Run;
use crate::text::put;
use crate::{exit, text, wire};

pub(crate) fn save(run: &Run, args: &SaveArgs) -> Result<u8, CliError> {
    let begun = Instant::now();
    // Everything that is wrong about the request is found before anything is made.
    let key = match &run.global.session {
        Some(text) => SessionKey::parse(text).map_err(|error| CliError::usage("bad-session", error.to_string()))?,
        None => SessionKey::local(),
    };
    if let Some(label) = &args.name {
        checkpoint_core::check_name(label).map_err(|why| EngineError::BadName { label: label.clone(), why })?;
    }
    if args.turn == Some(0) || args.step == Some(0) {
        return Err(CliError::usage("usage", "turns and steps are counted from 1"));
    }
    // An interrupt is about points that exist: it makes none, nor a workspace.
    let located = if args.kind == SaveKind::Interrupt { compose::find(run)? } else { compose::find_or_register(run)? };
    let registered = located.standing == Standing::New;
    if registered {
        run.out.remark(&compose::registered(&located));
    } else if located.standing == Standing::NewIncarnation {
        run.out.remark(&format!(
            "{} was replaced since the last point; older points need --adopt",
            located.root().display()
        ));
    }
    let settings = Settings::load(&run.world, Some(located.root()), run.global.force)?;
    let opened = compose::open(run, located, settings, &|_, _| Ok(super::asker(run, Consent::Nobody)))?;
    let unfinished = super::unfinished(run, &opened)?;
    let Some(kind) = kind(args.kind) else { return interrupt(run, &opened, &key, begun, unfinished.as_ref()) };
    run.stop.listen();
    let taken = capture(&opened, args, kind, key)?;
    let Taken { point, created, skipped, warnings } = taken;
    for warning in &warnings {
        run.out.remark(&format!("warning: {}", crate::wire::shown(warning)));
    }
    let answer = wire::Saved {
        id: point.id.to_string(),
        tree: point.snapshot.map(|snapshot| snapshot.tree.to_string()).unwrap_or_default(),
        created,
        changed: if created { point.changed } else { 0 },
        skipped: wire::skipped(&skipped),
        new_bytes: if created { point.new_bytes } else { 0 },
        consistency: consistency(point.consistency),
        ms: milliseconds(begun),
        root: wire::absolute(opened.located.root()),
        registered,
        session: point.session.to_string(),
        turn: point.turn.map(|turn| turn.0),
        warnings,
        unfinished: super::operation_of(unfinished.as_ref()),
    };
    let ended = run.out.answer(&answer, |answer| human(run, answer, &point));
    // Only now: nobody waits for this.
    after(&opened, &point);
    ended.map(|()| exit::OK)
}

fn milliseconds(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

pub(crate) const fn consistency(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Watched => "watched",
        Consistency::Live => "live",
        Consistency::Quiet => "quiet",
    }
}

struct Taken {
    point: Point,
    created: bool,
    skipped: Vec<Skipped>,
    warnings: Vec<String>,
}

const fn kind(kind: SaveKind) -> Option<PointKind> {
    Some(match kind {
        SaveKind::TurnStart => PointKind::TurnStart,
        SaveKind::TurnEnd => PointKind::TurnEnd,
        SaveKind::Step => PointKind::Step,
        SaveKind::Mutation => PointKind::Mutation,
        SaveKind::Auto => PointKind::Auto,
        SaveKind::Manual => PointKind::Manual,
        SaveKind::Interrupt => return None,
    })
}

fn capture(opened: &Opened, args: &SaveArgs, kind: PointKind, key: SessionKey) -> Result<Taken, CliError> {
    let turn = args.turn.map(Turn);
    // Before the capture: what the log gains meanwhile is no part of this state.
    let position = opened.engine.position_now(&key, kind, turn);
    let request = SaveRequest {
        position,
        turn,
        step: args.step.map(Step),
        trigger: args.trigger.clone(),
        note: args.note.clone(),
        name: args.name.clone(),
        ..SaveRequest::of(key, kind)
    };
    let saved = opened.engine.save(&request)?;
    let mut warnings = saved.warnings;
    warnings.extend(opened.settings.warnings.iter().cloned());
    Ok(Taken { point: saved.point, created: saved.created, skipped: saved.skipped, warnings })
}

/// Marks the session's open turn as interrupted, without a capture. The answer names the newest point, where there is
/// one: `id` and `tree` are never null, so without a point they are empty.
fn interrupt(
    run: &Run,
    opened: &Opened,
    key: &SessionKey,
    begun: Instant,
    unfinished: Option<&Intent>,
) -> Result<u8, CliError> {
    let (turn, told, warnings, code) = match opened.engine.interrupt(key) {
        Ok(turn) => (Some(turn.0), format!("turn {turn} is marked interrupted; no point made"), Vec::new(), exit::OK),
        Err(EngineError::Nothing { why, .. }) => (None, format!("{why}; no point made"), vec![why], exit::NOTHING),
        Err(error) => return Err(error.into()),
    };
    let newest = PointQuery { restorable: true, newest_first: true, limit: Some(1), ..PointQuery::default() };
    let newest = opened.index.points(&newest)?.pop();
    let tree = newest.as_ref().and_then(|point| point.snapshot).map(|snapshot| snapshot.tree.to_string());
    let answer = wire::Saved {
        id: newest.as_ref().map(|point| point.id.to_string()).unwrap_or_default(),
        tree: tree.unwrap_or_default(),
        created: false,
        changed: 0,
        skipped: Vec::new(),
        new_bytes: 0,
        consistency: newest.as_ref().map_or("quiet", |point| consistency(point.consistency)),
        ms: milliseconds(begun),
        root: wire::absolute(opened.located.root()),
        registered: false,
        session: key.to_string(),
        turn,
        warnings,
        unfinished: super::operation_of(unfinished),
    };
    run.out.answer(&answer, |_| wire::shown(&told) + "\n")?;
    Ok(code)
}

/// Retention and housekeeping. A failure here takes nothing back from the answer.
fn after(opened: &Opened, point: &Point) {
    settle(opened, point.kind == PointKind::TurnEnd);
}

/// The same at the end of a turn or session, whatever its last point was.
pub(super) fn retain(opened: &Opened) {
    settle(opened, true);
}

fn settle(opened: &Opened, turn_ended: bool) {
    super::settle(&opened.engine, &*opened.index, &*opened.snapshots, turn_ended);
}

fn human(run: &Run, answer: &wire::Saved, point: &Point) -> String {
    let mut out = String::new();
    let id = text::short(&answer.id);
    if answer.created {
        put!(out, "{} changed, {}", text::count(answer.changed, "path"), text::count(point.files, "file"));
        if answer.new_bytes > 0 {
            put!(out, ", {} new", text::size(answer.new_bytes));
        }
        out.push('\n');
    } else {
        out.push_str("nothing changed: an existing point holds this state\n");
    }
    text::reasons(
        &mut out,
        run.out.below(),
        &format!("{} left out:", text::count(answer.skipped.len() as u64, "path")),
        &answer.skipped,
    );
    put!(out, "point {id}\n");
    out
}
