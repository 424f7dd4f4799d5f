//! Looking addresses up (design § 6).

use crate::{
    Address, BoundaryRule, BoundarySeq, EngineError, Form, Name, Ord, Point, PointKind, PointQuery, Resolved, Seq,
    Session, SessionError, SessionKey, Step, Timestamp, Turn,
};

use super::Engine;
use super::lineage::{LazyLog, Sight};

/// Two sessions that were both at work within so many milliseconds: an unqualified address does not say whose it is.
const TOGETHER_MS: i64 = 10 * 60 * 1000;
/// Kinds of points that a person finds in a list.
const NOT_GUARDS: [PointKind; 7] = [
    PointKind::TurnStart,
    PointKind::TurnEnd,
    PointKind::Step,
    PointKind::Mutation,
    PointKind::Auto,
    PointKind::Manual,
    PointKind::Import,
];
/// So many of the newest places are looked at before all are.
const OF_LATE: u64 = 256;
/// So many choices are named in an error.
const CHOICES: usize = 10;

/// What the conversation is cut by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CutAt {
    EndOf(Turn),
    Before(Turn),
    AtOrBefore(Seq),
    Point,
    /// A cut that a name stores, with the digest of the log up to it.
    Stored(BoundarySeq, Option<String>),
}

/// What an address leads to.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) point: Option<Point>,
    pub(super) log: LazyLog<'a>,
    pub(super) cut: CutAt,
    pub(super) notes: Vec<String>,
}

impl Engine {
    /// Looks an address up, with the cut that the conversation would get.
    ///
    /// `session`: whose points unqualified addresses mean. A point need not exist where the session's log alone says
    /// where to cut (`point` is `None` then); whoever needs files refuses.
    ///
    /// # Errors
    /// What [`Engine::find`] says; where the session has a door also that the log refuses the cut (`OPEN_TURN`,
    /// `INVALID_BOUNDARY`) or was rewritten since (`PREFIX_CHANGED`).
    pub fn resolve(
        &self,
        session: Option<&SessionKey>,
        target: &str,
        boundary: Option<BoundaryRule>,
    ) -> Result<Resolved, EngineError> {
        let known = self.parts.index.sessions()?;
        let found = self.look_up(session, target, &known)?;
        let cut = match self.cut(&found, &known, boundary) {
            Err(EngineError::Session(SessionError::Unplaced { .. })) => None,
            cut => cut?,
        };
        Ok(Resolved { session: found.log.session().clone(), point: found.point, cut, notes: found.notes })
    }

    /// Looks an address up for its point alone: `cut` is `None`. The session's log is read only where the address is one
    /// of its positions, and may be damaged otherwise.
    pub fn find(&self, session: Option<&SessionKey>, target: &str) -> Result<Resolved, EngineError> {
        let found = self.look_up(session, target, &self.parts.index.sessions()?)?;
        Ok(Resolved { session: found.log.session().clone(), point: found.point, cut: None, notes: found.notes })
    }

    pub(super) fn look_up(
        &self,
        session: Option<&SessionKey>,
        target: &str,
        known: &[Session],
    ) -> Result<Found<'_>, EngineError> {
        let address = Address::parse(target)?;
        let qualified = match &address.session {
            Some(text) => Some(self.qualified(text, known)?),
            None => session.cloned(),
        };
        let mut found = match &address.form {
            Form::Id(prefix) => self.by_id(prefix, qualified, known, target)?,
            Form::Name(label) => self.by_name(label, target)?,
            Form::Now => self.found(None, qualified.unwrap_or_else(SessionKey::local), CutAt::Point),
            Form::Ago(millis) => {
                let at = Timestamp(self.parts.clock.now().0.saturating_sub(*millis));
                self.by_time(at, qualified, known, target)?
            }
            Form::Time(text) => {
                let at = self.parts.clock.read_local(text);
                self.by_time(at.ok_or_else(|| bad_time(target))?, qualified, known, target)?
            }
            form => {
                let mut notes = Vec::new();
                let session = match qualified {
                    Some(session) => session,
                    None => self.default_session(known, target, &mut notes)?,
                };
                let mut found = self.in_session(form, session, known, target)?;
                found.notes.splice(0..0, notes);
                found
            }
        };
        if let Some(point) = &found.point {
            found.notes.extend(head_note(point));
        }
        Ok(found)
    }

    fn found(&self, point: Option<Point>, session: SessionKey, cut: CutAt) -> Found<'_> {
        Found { point, log: LazyLog::new(self, session), cut, notes: Vec::new() }
    }

    /// The session that unqualified addresses mean: that of the newest harness record.
    fn default_session(
        &self,
        known: &[Session],
        target: &str,
        notes: &mut Vec<String>,
    ) -> Result<SessionKey, EngineError> {
        let mut harness: Vec<&Session> = Vec::new();
        for session in known.iter().filter(|s| !s.key.is_local()) {
            // A child that was only made has recorded nothing: its parent is still the one at work.
            if session.turn.is_some() || self.has_points(&session.key)? {
                harness.push(session);
            }
        }
        harness.sort_by_key(|s| std::cmp::Reverse(s.seen));
        let now = self.parts.clock.now().0;
        let at_work = harness.iter().filter(|s| now - s.seen.0 < TOGETHER_MS);
        // A subagent's work is its parent's.
        let mut active: Vec<SessionKey> = Vec::new();
        for session in at_work {
            let principal = self.principal(&session.key, known);
            if !active.contains(&principal) {
                active.push(principal);
            }
        }
        if active.len() > 1 {
            let choices = active.iter().take(CHOICES).map(|key| format!("{key}/{target}")).collect();
            return Err(EngineError::Ambiguous { given: target.to_owned(), choices });
        }
        let newest = match (active.pop(), harness.first()) {
            (Some(key), _) => key,
            (None, Some(session)) => self.principal(&session.key, known),
            (None, None) => return Ok(SessionKey::local()),
        };
        // With one conversation there is nothing to mistake.
        if harness.len() > 1 {
            notes.push(format!("session meant: {newest}"));
        }
        Ok(newest)
    }

    fn has_points(&self, session: &SessionKey) -> Result<bool, EngineError> {
        // Who is asked about has mostly worked of late.
        let query =
            PointQuery { sessions: vec![session.clone()], newest_first: true, limit: Some(1), ..PointQuery::default() };
        Ok(!self.parts.index.points(&query)?.is_empty())
    }

    fn by_id(
        &self,
        prefix: &str,
        session: Option<SessionKey>,
        known: &[Session],
        target: &str,
    ) -> Result<Found<'_>, EngineError> {
        let query = PointQuery { id_prefix: Some(prefix.to_owned()), ..PointQuery::default() };
        let mut points = self.parts.index.points(&query)?;
        if points.len() > 1 {
            points.sort_by_key(|p| p.id);
            let choices = points.iter().map(|p| p.id.to_string()).collect();
            return Err(EngineError::Ambiguous { given: target.to_owned(), choices });
        }
        let point = points.pop().ok_or_else(|| self.not_found(target, None))?;
        let session = self.whose(&point, session, known)?;
        Ok(self.found(Some(point), session, CutAt::Point))
    }

    /// The session whose conversation a point belongs to: the one that was named, if it sees the point, else the point's
    /// own, for a subagent its parent.
    fn whose(&self, point: &Point, named: Option<SessionKey>, known: &[Session]) -> Result<SessionKey, EngineError> {
        if let Some(named) = named.filter(|named| *named != point.session) {
            let log = LazyLog::new(self, named);
            if self.sight(&log, known, false)?.own.iter().any(|p| p.id == point.id) {
                return Ok(log.session().clone());
            }
        }
        Ok(self.principal(&point.session, known))
    }

    fn by_name(&self, label: &str, target: &str) -> Result<Found<'_>, EngineError> {
        let names = self.parts.index.names()?;
        let name = names
            .iter()
            .find(|n| n.label == *label)
            .or_else(|| names.iter().find(|n| n.label.eq_ignore_ascii_case(label)));
        let Some(Name { point, session, boundary, prefix, .. }) = name else {
            let choices = names.into_iter().take(CHOICES).map(|n| n.label).collect();
            return Err(EngineError::NotFound { given: target.to_owned(), choices });
        };
        let stored = self.parts.index.point(point)?.ok_or_else(|| self.not_found(target, None))?;
        let cut = boundary.map_or(CutAt::Point, |boundary| CutAt::Stored(boundary, prefix.clone()));
        Ok(self.found(Some(stored), session.clone(), cut))
    }

    fn by_time(
        &self,
        at: Timestamp,
        session: Option<SessionKey>,
        known: &[Session],
        target: &str,
    ) -> Result<Found<'_>, EngineError> {
        let query = PointQuery {
            sessions: session.into_iter().collect(),
            recorded_by: Some(at),
            // A guard is what an operation goes back to: nobody means that by a time.
            kinds: NOT_GUARDS.into_iter().filter(|kind| *kind != PointKind::Import).collect(),
            restorable: true,
            newest_first: true,
            limit: Some(1),
            ..PointQuery::default()
        };
        let own = self.parts.index.points(&query)?.pop();
        // The place of an import does not say when its state was.
        let query = PointQuery { kinds: vec![PointKind::Import], limit: None, ..query };
        let imported = self.parts.index.points(&query)?.into_iter().max_by_key(|p| (p.at, p.ord));
        let point = own.into_iter().chain(imported).max_by_key(|p| (p.at, p.kind != PointKind::Import));
        let point = point.ok_or_else(|| self.not_found(target, None))?;
        let session = self.principal(&point.session, known);
        Ok(self.found(Some(point), session, CutAt::Point))
    }

    fn in_session(
        &self,
        form: &Form,
        session: SessionKey,
        known: &[Session],
        target: &str,
    ) -> Result<Found<'_>, EngineError> {
        let log = LazyLog::new(self, session);
        if let Form::Latest(back) = form {
            return self.latest_of(*back, log, known, target);
        }
        if let Some(after) = self.of_late()? {
            // Who goes back mostly goes back a little: what was recorded of late answers that, however much there is.
            let points = self.sight_after(&log, known, false, Some(after))?.own;
            let mut notes = Vec::new();
            if let Some((point, cut)) = outright(form, &points, &mut notes) {
                return Ok(Found { point: Some(point), log, cut, notes });
            }
        }
        // Imports come last in the sequence and are from before: they stand in only where nothing of our own is there.
        let (imported, points): (Vec<Point>, Vec<Point>) =
            self.sight(&log, known, false)?.own.into_iter().partition(|p| p.kind == PointKind::Import);
        let newest = |wanted: &dyn Fn(&Point) -> bool| {
            let all = points.iter().rev().chain(imported.iter().rev());
            all.filter(|p| p.snapshot.is_some()).find(|p| wanted(p)).cloned()
        };
        let mut notes = Vec::new();
        let (point, cut) = match form {
            Form::TurnEnd(turn) => {
                let own = self.end_of_turn(*turn, &points, &mut notes)?;
                (own.or_else(|| imported_end(&imported, *turn)), CutAt::EndOf(*turn))
            }
            Form::TurnStart(turn) => {
                let mut point = self.start_of_turn(*turn, &points, &mut notes)?;
                if let (None, Some(before)) = (&point, turn.0.checked_sub(1)) {
                    point = imported_end(&imported, Turn(before));
                    notes.extend(point.as_ref().map(|point| {
                        let id = point.id.short();
                        format!(
                            "the start of turn {turn} was not captured; this is the imported end of turn {before}, {id}"
                        )
                    }));
                }
                (point, CutAt::Before(*turn))
            }
            Form::TurnStep(turn, step) => (newest(&|p| is_within(p, *turn, *step)), CutAt::Before(*turn)),
            Form::Step(step) => by_step(&log, *step, &[&imported[..], &points[..]].concat())?,
            Form::Seq(seq) => {
                let before = |p: &Point| p.position.as_ref().is_some_and(|position| position.seq <= *seq);
                let all = [&imported[..], &points[..]].concat();
                let by_log = log.if_readable().and_then(|map| map.nearest(&all, *seq)).cloned();
                (by_log.or_else(|| newest(&before)), CutAt::AtOrBefore(*seq))
            }
            _ => (None, CutAt::Point),
        };
        if point.is_none() && !log_knows(&log, &cut)? {
            return Err(self.not_found(target, Some(&[&imported[..], &points[..]].concat())));
        }
        Ok(Found { point, log, cut, notes })
    }

    /// The newest points of a session, its subagents' and those saved outside any harness among them.
    fn latest_of<'a>(
        &'a self,
        back: u32,
        log: LazyLog<'a>,
        known: &[Session],
        target: &str,
    ) -> Result<Found<'a>, EngineError> {
        let wanted = [PointKind::TurnStart, PointKind::Mutation, PointKind::Auto, PointKind::Manual];
        let among = |after: Option<Ord>| -> Result<_, EngineError> {
            let Sight { own, subagents } = self.sight_after(&log, known, true, after)?;
            let mut points = [own, subagents].concat();
            if !log.session().is_local() {
                let local = PointQuery { sessions: vec![SessionKey::local()], after, ..PointQuery::default() };
                points.extend(self.parts.index.points(&local)?);
            }
            points.sort_by_key(|point| point.ord);
            let mut all = points.iter().rev().filter(|p| p.snapshot.is_some() && wanted.contains(&p.kind));
            Ok((all.nth(back as usize).cloned(), points))
        };
        let of_late = match self.of_late()? {
            Some(after) => among(Some(after))?.0,
            None => None,
        };
        let point = if let Some(point) = of_late {
            point
        } else {
            let (point, points) = among(None)?;
            point.ok_or_else(|| self.not_found(target, Some(&points)))?
        };
        // A person's own save belongs to no conversation.
        let log = if point.session.is_local() { LazyLog::new(self, SessionKey::local()) } else { log };
        Ok(Found { point: Some(point), log, cut: CutAt::Point, notes: Vec::new() })
    }

    /// The place after which records are of late; `None` where that is all of them.
    fn of_late(&self) -> Result<Option<Ord>, EngineError> {
        Ok(self.parts.index.newest()?.0.checked_sub(OF_LATE).map(Ord))
    }

    fn end_of_turn(&self, turn: Turn, points: &[Point], notes: &mut Vec<String>) -> Result<Option<Point>, EngineError> {
        if let Some((point, _)) = outright(&Form::TurnEnd(turn), points, notes) {
            return Ok(Some(point));
        }
        // The end was not captured: the next record closed the turn, if the turn is over.
        // The report of its end may have come late, after records of others: it says nothing of where the turn ended.
        let of_turn = |p: &&Point| p.turn == Some(turn);
        let last = points.iter().rev().filter(of_turn).find(|p| p.missed != Some(PointKind::TurnEnd));
        let last = last.or_else(|| points.iter().find(of_turn));
        let over = points.iter().any(|p| {
            p.turn.is_some_and(|t| t > turn) || (p.turn == Some(turn) && p.missed == Some(PointKind::TurnEnd))
        });
        let Some(last) = last.filter(|_| over) else { return Ok(None) };
        let kinds = PointKind::ALL_BUT_IMPORTS.to_vec();
        let next =
            PointQuery { kinds, after: Some(last.ord), restorable: true, limit: Some(1), ..PointQuery::default() };
        let point = self.parts.index.points(&next)?.pop();
        if let Some(point) = &point {
            notes.push(format!(
                "the end of turn {turn} was not captured; this is the next record, {}",
                point.id.short()
            ));
        }
        Ok(point)
    }

    fn start_of_turn(
        &self,
        turn: Turn,
        points: &[Point],
        notes: &mut Vec<String>,
    ) -> Result<Option<Point>, EngineError> {
        if let Some((point, _)) = outright(&Form::TurnStart(turn), points, notes) {
            return Ok(Some(point));
        }
        let missed = |p: &&Point| p.turn == Some(turn) && p.missed == Some(PointKind::TurnStart);
        let Some(gap) = points.iter().rev().find(missed) else { return Ok(None) };
        let before = PointQuery {
            at_or_before: Some(gap.ord),
            kinds: PointKind::ALL_BUT_IMPORTS.to_vec(),
            restorable: true,
            newest_first: true,
            limit: Some(1),
            ..PointQuery::default()
        };
        let point = self.parts.index.points(&before)?.pop();
        if let Some(point) = &point {
            notes.push(format!(
                "the start of turn {turn} was not captured; this is the record before, {}",
                point.id.short()
            ));
        }
        Ok(point)
    }

    fn not_found(&self, target: &str, points: Option<&[Point]>) -> EngineError {
        let turns = points.into_iter().flatten().filter_map(|p| p.turn);
        let mut choices: Vec<String> = Vec::new();
        for turn in turns {
            let choice = format!("t{turn}^");
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        }
        if choices.is_empty() {
            let newest = PointQuery {
                kinds: NOT_GUARDS.to_vec(),
                restorable: true,
                newest_first: true,
                limit: Some(CHOICES),
                ..PointQuery::default()
            };
            choices = self.parts.index.points(&newest).unwrap_or_default().iter().map(|p| p.id.short()).collect();
        }
        choices.reverse();
        choices.truncate(CHOICES);
        EngineError::NotFound { given: target.to_owned(), choices }
    }

    /// The point before the `n`-th last turn of a session, for `back` (from 1).
    pub fn turn_back(&self, session: Option<&SessionKey>, n: u32) -> Result<String, EngineError> {
        let known = self.parts.index.sessions()?;
        let session = match session {
            Some(session) => session.clone(),
            None => self.default_session(&known, "", &mut Vec::new()).map_err(|error| match error {
                EngineError::Ambiguous { choices, .. } => {
                    let session = |choice: String| format!("--session {}", choice.trim_end_matches('/'));
                    EngineError::Ambiguous {
                        given: "back".to_owned(),
                        choices: choices.into_iter().map(session).collect(),
                    }
                }
                error => error,
            })?,
        };
        let log = LazyLog::new(self, session.clone());
        let mut turns: Vec<Turn> = self.sight(&log, &known, false)?.own.iter().filter_map(|p| p.turn).collect();
        if turns.is_empty() {
            turns = log.if_readable().map(crate::LogMap::turns).unwrap_or_default();
        }
        turns.sort();
        turns.dedup();
        let wanted = turns.len().checked_sub(n.max(1) as usize).and_then(|at| turns.get(at));
        match wanted {
            Some(turn) => Ok(format!("{session}/t{turn}^")),
            None if turns.is_empty() => Err(EngineError::Nothing {
                why: if session.is_local() {
                    "no agent has had a turn here yet".to_owned()
                } else {
                    format!("session {session} has no turn")
                },
                hint: Some("rwd log shows what there is".to_owned()),
            }),
            None => Err(EngineError::NotFound {
                given: format!("{n} turns back"),
                choices: turns.iter().map(|t| format!("t{t}^")).collect(),
            }),
        }
    }

    /// The session that `SESSION/` in front of an address means: a known one, by a unique beginning of its id, or one
    /// that only its harness knows, in full.
    fn qualified(&self, text: &str, known: &[Session]) -> Result<SessionKey, EngineError> {
        let full = SessionKey::parse(text).ok();
        if let Some(session) = known.iter().find(|s| Some(&s.key) == full.as_ref()) {
            return Ok(session.key.clone());
        }
        let (harness, id) = match text.split_once(':') {
            Some((harness, id)) => (Some(harness), id),
            None => (None, text),
        };
        let fits = |s: &&Session| s.key.id().starts_with(id) && harness.is_none_or(|h| s.key.harness() == h);
        let found: Vec<&Session> = known.iter().filter(fits).collect();
        match found.as_slice() {
            [one] => Ok(one.key.clone()),
            [] => match full {
                Some(key) if self.parts.sessions.can_fork(&key) => Ok(key),
                // It is there, and can only be read.
                Some(key) if !matches!(self.parts.sessions.header(&key), Err(SessionError::NotFound(_))) => {
                    Err(SessionError::Unsupported.into())
                }
                _ => Err(EngineError::NotFound {
                    given: format!("session {text}"),
                    choices: known.iter().take(CHOICES).map(|s| s.key.to_string()).collect(),
                }),
            },
            many => Err(EngineError::Ambiguous {
                given: format!("session {text}"),
                choices: many.iter().map(|s| s.key.to_string()).collect(),
            }),
        }
    }

    /// The newest place in the sequence, for callers that list.
    pub fn newest(&self) -> Result<Ord, EngineError> {
        Ok(self.parts.index.newest()?)
    }
}

/// The newest of these points that is what an address of a turn asks for, whatever older ones there are.
fn outright(form: &Form, points: &[Point], notes: &mut Vec<String>) -> Option<(Point, CutAt)> {
    let newest = |wanted: &dyn Fn(&Point) -> bool| {
        points.iter().rev().find(|p| p.kind != PointKind::Import && p.snapshot.is_some() && wanted(p)).cloned()
    };
    match *form {
        Form::TurnEnd(turn) => {
            let point = newest(&|p| p.turn == Some(turn) && p.kind == PointKind::TurnEnd)?;
            if !point.late.is_empty() {
                let late = paths(point.late.len());
                notes.push(format!("the end of turn {turn} was captured late: {late} changed after it"));
            }
            Some((point, CutAt::EndOf(turn)))
        }
        Form::TurnStart(turn) => {
            let point = newest(&|p| p.turn == Some(turn) && p.kind == PointKind::TurnStart)?;
            Some((point, CutAt::Before(turn)))
        }
        Form::TurnStep(turn, step) => Some((newest(&|p| is_within(p, turn, step))?, CutAt::Before(turn))),
        _ => None,
    }
}

/// True for a point at the start of a turn or at the end of one of its steps up to `step`.
fn is_within(point: &Point, turn: Turn, step: Step) -> bool {
    point.turn == Some(turn) && (point.kind == PointKind::TurnStart || point.step.is_some_and(|s| s <= step))
}

/// The imported state at the end of a turn: it names the turn and no step.
fn imported_end(imported: &[Point], turn: Turn) -> Option<Point> {
    imported.iter().rev().find(|p| p.turn == Some(turn) && p.step.is_none() && p.snapshot.is_some()).cloned()
}

/// 002-05: the latest end of a step of that number in the whole log, then the newest point at or before it.
fn by_step(log: &LazyLog<'_>, step: Step, points: &[Point]) -> Result<(Option<Point>, CutAt), EngineError> {
    let Some(map) = log.get()? else {
        let point = points.iter().rev().find(|p| p.snapshot.is_some() && p.step == Some(step)).cloned();
        return Ok((point, CutAt::Point));
    };
    let Some(end) = map.step_end(step) else {
        return Err(EngineError::NotFound {
            given: format!("step:{step}"),
            choices: vec![format!("step {step} has not ended or does not exist")],
        });
    };
    Ok((map.nearest(points, end).cloned(), CutAt::AtOrBefore(end)))
}

/// Does the session's log alone say where to cut? The end of a turn that is open is refused by name.
fn log_knows(log: &LazyLog<'_>, cut: &CutAt) -> Result<bool, EngineError> {
    let Some(map) = log.get()? else { return Ok(false) };
    match cut {
        CutAt::EndOf(turn) => match map.after_turn(log.session(), *turn) {
            Ok(_) => Ok(true),
            Err(SessionError::NoTurn { .. }) => Ok(false),
            Err(open) => Err(open.into()),
        },
        CutAt::Before(turn) => Ok(map.turn_start(*turn).is_some()),
        CutAt::AtOrBefore(seq) => Ok(map.has(*seq)),
        CutAt::Point | CutAt::Stored(..) => Ok(false),
    }
}

fn bad_time(target: &str) -> EngineError {
    EngineError::Address(crate::AddressError {
        given: target.to_owned(),
        why: "`@` takes a time, as `@14:05`, `@10m` or `@2026-11-30T14:05`",
    })
}

fn head_note(point: &Point) -> Option<String> {
    let state = point.head.as_ref()?.in_progress.as_ref()?;
    Some(format!("a {state} was in progress at that point"))
}

fn paths(count: usize) -> String {
    if count == 1 { "1 path".to_owned() } else { format!("{count} paths") }
}
