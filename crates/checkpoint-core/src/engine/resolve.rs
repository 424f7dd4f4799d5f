//! Looking addresses up (design § 6).

use crate::{
    Address, Beat, BoundaryRule, BoundarySeq, Cut, EngineError, Form, Name, Ord, Point, PointKind, PointQuery,
    Resolved, Seq, Session, SessionError, SessionKey, Step, Timestamp, Turn, boundary_before, boundary_of_turn,
};

use super::Engine;

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
/// So many choices are named in an error.
const CHOICES: usize = 10;

/// What the conversation is cut by.
enum CutAt {
    EndOf(Turn),
    Before(Turn),
    AtOrBefore(Seq),
    Point,
    Stored(Option<BoundarySeq>),
}

/// What an address leads to.
struct Found {
    point: Option<Point>,
    session: SessionKey,
    cut: CutAt,
    notes: Vec<String>,
}

impl Engine {
    /// Looks an address up.
    ///
    /// `session`: whose points unqualified addresses mean. A point need not exist where the session's log alone says
    /// where to cut (`point` is `None` then); whoever needs files refuses.
    pub fn resolve(
        &self,
        session: Option<&SessionKey>,
        target: &str,
        boundary: Option<BoundaryRule>,
    ) -> Result<Resolved, EngineError> {
        let address = Address::parse(target)?;
        let known = self.parts.index.sessions()?;
        let qualified = match &address.session {
            Some(text) => Some(qualified(text, &known)?),
            None => session.cloned(),
        };
        let mut found = match &address.form {
            Form::Id(prefix) => self.by_id(prefix, target)?,
            Form::Name(label) => self.by_name(label, target)?,
            Form::Now => Found {
                point: None,
                session: qualified.unwrap_or_else(SessionKey::local),
                cut: CutAt::Point,
                notes: Vec::new(),
            },
            Form::Ago(millis) => {
                self.by_time(Timestamp(self.parts.clock.now().0.saturating_sub(*millis)), qualified, target)?
            }
            Form::Time(text) => {
                let at = self.parts.clock.read_local(text);
                self.by_time(at.ok_or_else(|| bad_time(target))?, qualified, target)?
            }
            form => {
                let mut notes = Vec::new();
                let session = match qualified {
                    Some(session) => session,
                    None => self.default_session(&known, target, &mut notes)?,
                };
                let mut found = self.in_session(form, &session, &known, target)?;
                found.notes.splice(0..0, notes);
                found
            }
        };
        let cut = self.cut(&found, boundary)?;
        if let Some(point) = &found.point {
            found.notes.extend(head_note(point));
        }
        Ok(Resolved { point: found.point, session: found.session, cut, notes: found.notes })
    }

    /// The session that unqualified addresses mean: that of the newest harness record.
    fn default_session(
        &self,
        known: &[Session],
        target: &str,
        notes: &mut Vec<String>,
    ) -> Result<SessionKey, EngineError> {
        let mut harness: Vec<&Session> =
            known.iter().filter(|s| !s.key.is_local() && s.subagent_of.is_none()).collect();
        harness.sort_by_key(|s| std::cmp::Reverse(s.seen));
        let now = self.parts.clock.now().0;
        let active: Vec<&&Session> = harness.iter().filter(|s| now - s.seen.0 < TOGETHER_MS).collect();
        if active.len() > 1 {
            let choices = active.iter().take(CHOICES).map(|s| format!("{}/{target}", s.key)).collect();
            return Err(EngineError::Ambiguous { given: target.to_owned(), choices });
        }
        let Some(newest) = harness.first() else { return Ok(SessionKey::local()) };
        notes.push(format!("session {}", newest.key));
        Ok(newest.key.clone())
    }

    fn by_id(&self, prefix: &str, target: &str) -> Result<Found, EngineError> {
        let query = PointQuery { id_prefix: Some(prefix.to_owned()), ..PointQuery::default() };
        let mut points = self.parts.index.points(&query)?;
        if points.len() > 1 {
            points.sort_by_key(|p| p.id);
            let choices = points.iter().map(|p| p.id.to_string()).collect();
            return Err(EngineError::Ambiguous { given: target.to_owned(), choices });
        }
        let point = points.pop().ok_or_else(|| self.not_found(target, None))?;
        Ok(Found { session: point.session.clone(), point: Some(point), cut: CutAt::Point, notes: Vec::new() })
    }

    fn by_name(&self, label: &str, target: &str) -> Result<Found, EngineError> {
        let names = self.parts.index.names()?;
        let name = names
            .iter()
            .find(|n| n.label == *label)
            .or_else(|| names.iter().find(|n| n.label.eq_ignore_ascii_case(label)));
        let Some(Name { point, session, boundary, .. }) = name else {
            let choices = names.into_iter().take(CHOICES).map(|n| n.label).collect();
            return Err(EngineError::NotFound { given: target.to_owned(), choices });
        };
        let stored = self.parts.index.point(point)?.ok_or_else(|| self.not_found(target, None))?;
        Ok(Found { point: Some(stored), session: session.clone(), cut: CutAt::Stored(*boundary), notes: Vec::new() })
    }

    fn by_time(&self, at: Timestamp, session: Option<SessionKey>, target: &str) -> Result<Found, EngineError> {
        let query = PointQuery {
            sessions: session.into_iter().collect(),
            recorded_by: Some(at),
            // A guard is what an operation goes back to: nobody means that by a time.
            kinds: NOT_GUARDS.to_vec(),
            restorable: true,
            newest_first: true,
            limit: Some(1),
            ..PointQuery::default()
        };
        let point = self.parts.index.points(&query)?.pop().ok_or_else(|| self.not_found(target, None))?;
        Ok(Found { session: point.session.clone(), point: Some(point), cut: CutAt::Point, notes: Vec::new() })
    }

    fn in_session(
        &self,
        form: &Form,
        session: &SessionKey,
        known: &[Session],
        target: &str,
    ) -> Result<Found, EngineError> {
        let points = self.points_of(session, known, matches!(form, Form::Latest(_)))?;
        let newest =
            |wanted: &dyn Fn(&Point) -> bool| points.iter().rev().find(|p| p.snapshot.is_some() && wanted(p)).cloned();
        let mut notes = Vec::new();
        let (point, cut) = match form {
            Form::TurnEnd(turn) => (self.end_of_turn(*turn, &points, &mut notes)?, CutAt::EndOf(*turn)),
            Form::TurnStart(turn) => (self.start_of_turn(*turn, &points, &mut notes)?, CutAt::Before(*turn)),
            Form::TurnStep(turn, step) => {
                let within = |p: &Point| {
                    p.turn == Some(*turn) && (p.kind == PointKind::TurnStart || p.step.is_some_and(|s| s <= *step))
                };
                (newest(&within), CutAt::Before(*turn))
            }
            Form::Step(step) => self.by_step(session, *step, &points)?,
            Form::Seq(seq) => {
                let before = |p: &Point| p.position.as_ref().is_some_and(|position| position.seq <= *seq);
                (newest(&before), CutAt::AtOrBefore(*seq))
            }
            Form::Latest(back) => {
                let wanted = [PointKind::TurnStart, PointKind::Mutation, PointKind::Auto, PointKind::Manual];
                let mut all = points.iter().rev().filter(|p| p.snapshot.is_some() && wanted.contains(&p.kind));
                (all.nth(*back as usize).cloned(), CutAt::Point)
            }
            _ => (None, CutAt::Point),
        };
        let by_log_alone = point.is_none() && self.log_knows(session, &cut);
        if point.is_none() && !by_log_alone {
            return Err(self.not_found(target, Some(&points)));
        }
        let session = point.as_ref().map_or_else(
            || session.clone(),
            |p| if matches!(form, Form::Latest(_)) { p.session.clone() } else { session.clone() },
        );
        Ok(Found { point, session, cut, notes })
    }

    /// The points that a session sees, oldest first: its own, its subagents', and its ancestors' below each seed length.
    fn points_of(&self, session: &SessionKey, known: &[Session], with_local: bool) -> Result<Vec<Point>, EngineError> {
        let mut sessions = vec![(session.clone(), None::<u64>)];
        let mut at = 0;
        while let Some((key, limit)) = sessions.get(at).cloned() {
            at += 1;
            if let Some(Session { parent: Some(parent), seed_length, .. }) = known.iter().find(|s| s.key == key) {
                let below = [limit, *seed_length].into_iter().flatten().min();
                if !sessions.iter().any(|(k, _)| k == parent) {
                    sessions.push((parent.clone(), Some(below.unwrap_or(0))));
                }
            }
            for sub in known.iter().filter(|s| s.subagent_of.as_ref() == Some(&key)) {
                if !sessions.iter().any(|(k, _)| *k == sub.key) {
                    sessions.push((sub.key.clone(), limit));
                }
            }
        }
        if with_local && !sessions.iter().any(|(key, _)| key.is_local()) {
            sessions.push((SessionKey::local(), None));
        }
        let query =
            PointQuery { sessions: sessions.iter().map(|(key, _)| key.clone()).collect(), ..PointQuery::default() };
        let limit_of = |key: &SessionKey| sessions.iter().find(|(k, _)| k == key).and_then(|(_, limit)| *limit);
        let mut points = self.parts.index.points(&query)?;
        points.retain(|p| {
            limit_of(&p.session).is_none_or(|limit| p.position.as_ref().is_some_and(|position| position.seq.0 < limit))
        });
        Ok(points)
    }

    fn end_of_turn(&self, turn: Turn, points: &[Point], notes: &mut Vec<String>) -> Result<Option<Point>, EngineError> {
        let own = |p: &&Point| p.turn == Some(turn) && p.kind == PointKind::TurnEnd;
        if let Some(point) = points.iter().rev().find(own) {
            if !point.late.is_empty() {
                notes.push(format!(
                    "the end of turn {turn} was captured late: {} changed after it",
                    paths(point.late.len())
                ));
            }
            return Ok(Some(point.clone()));
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
        let next = PointQuery { after: Some(last.ord), restorable: true, limit: Some(1), ..PointQuery::default() };
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
        let own = |p: &&Point| p.turn == Some(turn) && p.kind == PointKind::TurnStart;
        if let Some(point) = points.iter().rev().find(own) {
            return Ok(Some(point.clone()));
        }
        let missed = |p: &&Point| p.turn == Some(turn) && p.missed == Some(PointKind::TurnStart);
        let Some(gap) = points.iter().rev().find(missed) else { return Ok(None) };
        let before = PointQuery {
            at_or_before: Some(gap.ord),
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

    /// 002-05: the latest end of a step of that number in the whole log, then the newest point at or before it.
    fn by_step(
        &self,
        session: &SessionKey,
        step: Step,
        points: &[Point],
    ) -> Result<(Option<Point>, CutAt), EngineError> {
        if !self.parts.sessions.can_fork(session) {
            let point = points.iter().rev().find(|p| p.snapshot.is_some() && p.step == Some(step)).cloned();
            return Ok((point, CutAt::Point));
        }
        let beats = self.parts.sessions.beats(session, Seq(0))?;
        let end = beats
            .iter()
            .rev()
            .find_map(|(seq, beat)| matches!(beat, Beat::StepEnd(_, s) if *s == step).then_some(*seq));
        let Some(end) = end else {
            return Err(EngineError::NotFound {
                given: format!("step:{step}"),
                choices: vec![format!("step {step} has not ended or does not exist")],
            });
        };
        let before =
            |p: &&Point| p.snapshot.is_some() && p.position.as_ref().is_some_and(|position| position.seq <= end);
        Ok((points.iter().rev().find(before).cloned(), CutAt::AtOrBefore(end)))
    }

    fn log_knows(&self, session: &SessionKey, cut: &CutAt) -> bool {
        let turn = match cut {
            CutAt::EndOf(turn) | CutAt::Before(turn) => *turn,
            _ => return false,
        };
        let Ok(beats) = self.parts.sessions.beats(session, Seq(0)) else { return false };
        beats.iter().any(|(_, beat)| match cut {
            CutAt::EndOf(_) => *beat == Beat::TurnEnd(turn),
            _ => *beat == Beat::TurnStart(turn),
        })
    }

    /// Where the conversation is cut; `None` where the session has no door.
    fn cut(&self, found: &Found, boundary: Option<BoundaryRule>) -> Result<Option<Cut>, EngineError> {
        let session = &found.session;
        if !self.parts.sessions.can_fork(session) {
            return Ok(None);
        }
        let beats = self.parts.sessions.beats(session, Seq(0))?;
        let before = |turn: Turn| {
            let start = beats.iter().find_map(|(seq, beat)| (*beat == Beat::TurnStart(turn)).then_some(*seq));
            start.and_then(|seq| boundary_before(&beats, seq))
        };
        let end = |turn: Turn| boundary_of_turn(&beats, turn);
        let point = found.point.as_ref();
        let turn = match found.cut {
            CutAt::EndOf(turn) | CutAt::Before(turn) => Some(turn),
            _ => point.and_then(|p| p.turn),
        };
        let at = match (boundary, turn) {
            (Some(BoundaryRule::Before), Some(turn)) => before(turn),
            (Some(BoundaryRule::After), Some(turn)) => {
                let pending = || SessionError::OpenTurn { session: session.clone(), seq: Seq(0), turn };
                Some(end(turn).ok_or_else(pending)?)
            }
            _ => match &found.cut {
                CutAt::EndOf(turn) => {
                    let pending = || SessionError::OpenTurn { session: session.clone(), seq: Seq(0), turn: *turn };
                    Some(end(*turn).ok_or_else(pending)?)
                }
                CutAt::Before(turn) => before(*turn),
                CutAt::AtOrBefore(seq) => boundary_before(&beats, *seq),
                CutAt::Stored(Some(boundary)) => Some(*boundary),
                CutAt::Point | CutAt::Stored(None) => match point {
                    Some(p) if p.kind == PointKind::TurnEnd => p.turn.and_then(end),
                    Some(p) => match (&p.position, p.turn) {
                        (Some(position), _) => boundary_before(&beats, position.seq),
                        (None, Some(turn)) => before(turn),
                        (None, None) => None,
                    },
                    None => None,
                },
            },
        };
        let rule = match at {
            None => "empty".to_owned(),
            Some(at) => {
                let ended = beats.iter().find_map(|(seq, beat)| match beat {
                    Beat::TurnEnd(turn) if *seq == at.seq() => Some(*turn),
                    _ => None,
                });
                ended.map_or_else(|| format!("event {}", at.seq()), |turn| format!("end of turn {turn}"))
            }
        };
        Ok(Some(Cut { session: session.clone(), boundary: at, rule }))
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
        let mut turns: Vec<Turn> = self.points_of(&session, &known, false)?.iter().filter_map(|p| p.turn).collect();
        turns.sort();
        turns.dedup();
        let wanted = turns.len().checked_sub(n.max(1) as usize).and_then(|at| turns.get(at));
        match wanted {
            Some(turn) => Ok(format!("{session}/t{turn}^")),
            None if turns.is_empty() => Err(EngineError::Nothing {
                why: format!("session {session} has no turn"),
                hint: Some("rwd log shows what there is".to_owned()),
            }),
            None => Err(EngineError::NotFound {
                given: format!("{n} turns back"),
                choices: turns.iter().map(|t| format!("t{t}^")).collect(),
            }),
        }
    }

    /// The newest place in the sequence, for callers that list.
    pub fn newest(&self) -> Result<Ord, EngineError> {
        Ok(self.parts.index.newest()?)
    }
}

fn qualified(text: &str, known: &[Session]) -> Result<SessionKey, EngineError> {
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
        [] => Err(EngineError::NotFound {
            given: format!("session {text}"),
            choices: known.iter().take(CHOICES).map(|s| s.key.to_string()).collect(),
        }),
        many => Err(EngineError::Ambiguous {
            given: format!("session {text}"),
            choices: many.iter().map(|s| s.key.to_string()).collect(),
        }),
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
