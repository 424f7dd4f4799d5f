//! `rwd log`, and bare `rwd`.

use std::collections::{BTreeMap, BTreeSet};

use checkpoint_core::{Clock, Name, Operation, Point, PointKind, PointQuery, SessionKey, Timestamp};
use rwd_engine::SystemClock;

use super::OpenOperation;
use crate::args::LogArgs;
use crate::compose::Opened;
use crate::error::CliError;
use crate::output::Color;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, GapEntry, OperationEntry, PointEntry};
use crate::{exit, text};

/// How many points people see without asking for more.
const SHOWN: usize = 20;

pub(crate) fn log(run: &Run, args: &LogArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let session = opened.session(run)?;
    let names = opened.index.names()?;
    let limit = match args.limit {
        Some(n) => Some(n as usize),
        None if args.all || run.out.json => None,
        None => Some(SHOWN),
    };
    let query = PointQuery { sessions: session.iter().cloned().collect(), newest_first: true, ..PointQuery::default() };
    let mut points = Vec::new();
    let mut gaps = Vec::new();
    let mut more = false;
    let mut guards = 0;
    // A limit is on what is shown; guards and gaps are filtered out here, so the bounded query asks for some more.
    let bounded = limit.filter(|_| !args.named).map(|n| n * 4 + 16);
    for point in opened.index.points(&PointQuery { limit: bounded, ..query })? {
        guards += u64::from(point.kind == PointKind::Guard && !args.named);
        if point.kind == PointKind::Gap {
            gaps.push(point);
        } else if (args.all || (point.listed && point.kind != PointKind::Guard))
            && (!args.named || names.iter().any(|n| n.point == point.id))
        {
            more |= limit.is_some_and(|n| points.len() >= n);
            points.push(point);
        }
    }
    if let Some(n) = limit {
        more |= points.len() > n;
        points.truncate(n);
        // Gaps as far back as the points go.
        let oldest = points.last().map_or(checkpoint_core::Ord(0), |point| point.ord);
        gaps.retain(|gap| gap.ord >= oldest);
    }
    points.reverse();
    gaps.reverse();
    let mut operations = Vec::new();
    if args.ops {
        operations = opened.index.operations(&[], limit)?;
        operations.reverse();
        points.clear();
    }
    let unprotected = opened.engine.unprotected()?;
    let unfinished = super::open_operation(&opened)?;
    let answer = wire::Log {
        points: entries_of(
            &opened,
            &points,
            &names,
            opened.session(run)?.as_ref().filter(|_| run.global.session.is_some()),
        ),
        gaps: gaps.iter().map(gap).collect(),
        unprotected_since: unprotected.as_ref().map(|point| point.at.0),
        unprotected_reason: unprotected.as_ref().map(gap_reason),
        operations: operations.iter().map(operation).collect(),
        unfinished: super::operation_of(unfinished.as_ref().map(|open| &open.intent)),
    };
    let view = View {
        run,
        args,
        points: &points,
        gaps: &gaps,
        more,
        guards,
        unfinished,
        sessions: opened
            .index
            .sessions()?
            .into_iter()
            .map(|session| session.key)
            .filter(|key| !key.is_local())
            .collect(),
    };
    run.out.answer(&answer, |answer| view.text(answer))?;
    Ok(exit::OK)
}

/// Entries of points, with their names and cuts.
pub(crate) fn entries(opened: &Opened, points: &[Point], names: &[Name]) -> Vec<PointEntry> {
    entries_of(opened, points, names, None)
}

/// The same; of the session that was named on the command line also where its log is costly to read.
fn entries_of(opened: &Opened, points: &[Point], names: &[Name], asked: Option<&SessionKey>) -> Vec<PointEntry> {
    // Cuts are read from the sessions' logs: only machines are told.
    let cuts = if opened.json { opened.engine.cuts(points, asked).unwrap_or_default() } else { Vec::new() };
    let mut out = Vec::new();
    for (n, point) in points.iter().enumerate() {
        let cut = cuts.get(n).copied().unwrap_or_default();
        out.push(PointEntry {
            cut_before: cut.before.map(|seq| seq.0),
            cut_after: cut.after.map(|seq| seq.0),
            ..entry(opened, point, names)
        });
    }
    out
}

/// One entry without cuts.
pub(crate) fn entry(opened: &Opened, point: &Point, names: &[Name]) -> PointEntry {
    PointEntry {
        id: point.id.to_string(),
        session: point.session.to_string(),
        turn: point.turn.map(|turn| turn.0),
        step: point.step.map(|step| step.0),
        kind: point.kind.name(),
        tree: point.snapshot.map(|snapshot| snapshot.tree.to_string()),
        trigger: point.trigger.clone(),
        at: point.at.0,
        changed: point.changed,
        new_bytes: point.new_bytes,
        note: point.note.clone(),
        names: names.iter().filter(|name| name.point == point.id).map(|name| name.label.clone()).collect(),
        restorable: point.snapshot.is_some()
            && point.damaged.is_none()
            && point.incarnation == opened.located.incarnation(),
        cut_before: None,
        cut_after: None,
        damaged: point.damaged.clone(),
        operation: point.operation.map(|operation| operation.to_string()),
    }
}

fn gap(point: &Point) -> GapEntry {
    GapEntry {
        id: point.id.to_string(),
        session: point.session.to_string(),
        turn: point.turn.map(|turn| turn.0),
        kind: point.missed.map(PointKind::name),
        reason: gap_reason(point),
        at: point.at.0,
    }
}

/// Why a capture did not happen, in its stable word.
pub(crate) fn gap_reason(point: &Point) -> String {
    word(&point.gap)
}

/// The stable word of a value that is written as one.
fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

fn operation(op: &Operation) -> OperationEntry {
    OperationEntry {
        id: op.id.to_string(),
        kind: word(&op.kind),
        state: word(&op.state),
        session: op.session.to_string(),
        target: op.target.map(|point| point.to_string()),
        guard: op.guard.map(|point| point.to_string()),
        reverses: op.reverses.map(|op| op.to_string()),
        reversed_by: op.reversed_by.map(|op| op.to_string()),
        at: op.at.0,
        wrote: op.wrote,
        child_session_id: op.child.clone(),
        summary: op.summary.clone(),
        expired: op.expired,
    }
}

struct View<'a> {
    run: &'a Run,
    args: &'a LogArgs,
    points: &'a [Point],
    gaps: &'a [Point],
    more: bool,
    /// Guards among the points looked at.
    guards: u64,
    unfinished: Option<OpenOperation>,
    /// Conversations of the workspace: positions mean one of them.
    sessions: Vec<SessionKey>,
}

impl View<'_> {
    fn text(&self, answer: &wire::Log) -> String {
        let now = SystemClock.now();
        let mut out = String::new();
        if let (Some(since), Some(reason)) = (answer.unprotected_since, &answer.unprotected_reason) {
            let line = format!("not protected since {}: {reason}", text::minute(Timestamp(since), now));
            put!(out, "{}\n", self.run.out.paint(Color::Yellow, &line));
        }
        if let Some(open) = &self.unfinished {
            put!(out, "{}\n", self.run.out.paint(Color::Yellow, &open.line(self.run)));
        }
        if self.args.ops {
            self.operations(&mut out, answer, now);
        } else {
            self.timeline(&mut out, answer, now);
        }
        out
    }

    fn operations(&self, out: &mut String, answer: &wire::Log, now: Timestamp) {
        if answer.operations.is_empty() {
            out.push_str("no operations yet\n");
        }
        for op in &answer.operations {
            let id = self.run.out.paint(Color::Id, text::short(&op.id));
            let state = match (op.state.as_str(), &op.reversed_by) {
                (_, Some(by)) => format!("  undone by {}", text::short(by)),
                ("done", None) => String::new(),
                (other, None) => format!("  {other}"),
            };
            let when = text::time(Timestamp(op.at), now);
            put!(out, "{id}  {when}  {:<7}  {}{state}\n", op.kind, wire::shown(&op.summary));
        }
        let done = answer
            .operations
            .iter()
            .rev()
            .find(|op| op.state == "done" && op.reversed_by.is_none() && op.kind == "restore");
        if let Some(op) = done {
            put!(out, "to take the last one back: {}\n", self.run.typed.other(&["undo", text::short(&op.id)]));
        }
    }

    fn timeline(&self, out: &mut String, answer: &wire::Log, now: Timestamp) {
        if self.points.is_empty() && self.gaps.is_empty() {
            let what = if self.args.named { "no named points" } else { "no points yet" };
            put!(out, "{what}; to make one: {}\n", self.run.typed.other(&["save"]));
            return;
        }
        let mut lanes = Lanes::default();
        let sessions: BTreeSet<&SessionKey> =
            self.points.iter().chain(self.gaps).map(|point| &point.session).filter(|key| !key.is_local()).collect();
        let entries: BTreeMap<&str, &PointEntry> =
            answer.points.iter().map(|entry| (entry.id.as_str(), entry)).collect();
        let mut all: Vec<&Point> =
            self.points.iter().chain(self.gaps.iter().filter(|_| self.args.all || self.args.graph)).collect();
        all.sort_by_key(|point| point.ord);
        if self.more {
            out.push_str("…\n");
        }
        for point in &all {
            let lane = if self.args.graph { lanes.draw(&point.session) } else { String::new() };
            let entry = entries.get(point.id.to_string().as_str()).copied();
            out.push_str(&self.line(point, entry, &lane, sessions.len() > 1, now));
        }
        let listed = self.points.iter().filter(|point| point.kind != PointKind::Guard).count() as u64;
        let guards = text::count(self.guards, "guard");
        match (self.more, self.guards, self.args.all) {
            (true, ..) => put!(out, "the newest {}; to see all: {}\n", text::count(listed, "point"), self.all()),
            (false, 0, _) => put!(out, "{} listed\n", text::count(listed, "point")),
            (false, _, true) => put!(out, "{} and {guards} listed\n", text::count(listed, "point")),
            (false, _, false) => {
                put!(out, "{} listed, {guards} not shown: {}\n", text::count(listed, "point"), self.all());
            }
        }
        let whole = |p: &&Point| p.snapshot.is_some() && p.damaged.is_none();
        let start = self.points.iter().rev().filter(whole).find(|p| p.kind == PointKind::TurnStart);
        if let Some((start, turn)) = start.and_then(|start| Some((start, start.turn?))) {
            // Where another session could be meant, the target says which.
            let target = if self.sessions.iter().any(|key| *key != start.session) {
                format!("{}/t{turn}^", text::session(&start.session, &self.sessions))
            } else {
                format!("t{turn}^")
            };
            put!(out, "to see what changed since the last turn began: {}\n", self.run.typed.other(&["diff", &target]));
        } else if let Some(point) = self.points.iter().rev().find(whole) {
            put!(out, "to see what changed since: {}\n", self.run.typed.other(&["diff", &point.id.short()]));
        }
    }

    fn all(&self) -> String {
        self.run.typed.other(&["log", "--all"])
    }

    fn line(&self, point: &Point, entry: Option<&PointEntry>, lane: &str, sessions: bool, now: Timestamp) -> String {
        let out = &self.run.out;
        let mut row = format!("{lane}{}  {}  ", out.paint(Color::Id, &point.id.short()), text::time(point.at, now));
        let place = match (point.turn, point.step) {
            (Some(turn), Some(step)) => format!("t{turn}.{step}"),
            (Some(turn), None) => format!("t{turn}"),
            _ => "-".to_owned(),
        };
        put!(row, "{place:<5} {:<9}", text::kind(point.kind));
        if point.kind == PointKind::Gap {
            row.push_str(&out.paint(Color::Yellow, &format!("not captured: {}", gap_reason(point))));
        } else {
            put!(row, "{} changed", text::count(point.changed, "path"));
        }
        if let Some(entry) = entry {
            for name in &entry.names {
                put!(row, "  {}", out.paint(Color::Green, &format!("[{name}]")));
            }
            if !entry.restorable {
                let why = if entry.damaged.is_some() { "damaged" } else { "of a replaced directory" };
                put!(row, "  {}", out.paint(Color::Red, &format!("not restorable: {why}")));
            }
        }
        let about = point.note.as_ref().or(point.trigger.as_ref());
        if let Some(about) = about {
            let short: String = about.chars().take(60).collect();
            put!(row, "  {}", wire::shown(&short));
        }
        if sessions {
            put!(row, "  {}", out.paint(Color::Dim, &text::session(&point.session, &self.sessions)));
        }
        row.push('\n');
        row
    }
}

/// One column for each session.
#[derive(Default)]
struct Lanes(Vec<SessionKey>);

impl Lanes {
    fn draw(&mut self, session: &SessionKey) -> String {
        let at = self.0.iter().position(|known| known == session).unwrap_or_else(|| {
            self.0.push(session.clone());
            self.0.len() - 1
        });
        (0..self.0.len()).map(|lane| if lane == at { "* " } else { "| " }).collect()
    }
}
