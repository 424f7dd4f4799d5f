//! Where the conversation is cut, and whether the log still is the one that points were made on (design §§ 6, 7).
//!
//! A host may lose the end of its log in a crash and use the same positions again for something else. So a digest of the
//! log is stored with points and names, and compared before anything is written.

use std::collections::BTreeMap;

use crate::{
    BoundaryRule, BoundarySeq, Cut, Cuts, EngineError, LogMap, Ord, Point, PointKind, Position, Seq, Session,
    SessionError, SessionKey, Turn, boundary_at, boundary_before,
};

use super::Engine;
use super::lineage::LazyLog;
use super::resolve::{CutAt, Found};

impl Engine {
    /// Where the conversation is cut, verified against every digest that was stored for that part of the log; `None`
    /// where the session has no door.
    pub(super) fn cut(
        &self,
        found: &Found<'_>,
        known: &[Session],
        boundary: Option<BoundaryRule>,
    ) -> Result<Option<Cut>, EngineError> {
        let Some(map) = found.log.get()? else { return Ok(None) };
        let at = self.boundary(found, map, known, boundary)?;
        let prefix = match at {
            Some(at) => Some(self.verified_prefix(found, known, at.seq())?),
            None => None,
        };
        let session = found.log.session().clone();
        Ok(Some(Cut { session, boundary: at, rule: rule(map, at), prefix }))
    }

    /// Where the conversation could be cut around each point, without asking whether the log was rewritten. Each
    /// session's log is read once; nothing is said of one that is costly to read, unless somebody `named` it.
    pub fn cuts(&self, points: &[Point], named: Option<&SessionKey>) -> Result<Vec<Cuts>, EngineError> {
        let known = self.parts.index.sessions()?;
        let mut logs: BTreeMap<SessionKey, Found<'_>> = BTreeMap::new();
        let mut all = Vec::new();
        for point in points {
            let found = logs.entry(point.session.clone()).or_insert_with(|| Found {
                point: None,
                log: LazyLog::new(self, point.session.clone()),
                cut: CutAt::Point,
                notes: Vec::new(),
            });
            found.point = Some(point.clone());
            let costly = named != Some(&point.session) && self.parts.sessions.is_costly(&point.session);
            let cut = |rule| -> Option<Seq> {
                if costly {
                    return None;
                }
                let map = found.log.if_readable()?;
                self.boundary(found, map, &known, Some(rule)).ok()?.map(BoundarySeq::seq)
            };
            all.push(Cuts { before: cut(BoundaryRule::Before), after: cut(BoundaryRule::After) });
        }
        Ok(all)
    }

    /// Where a point of `kind` that is made now could cut its session, with a digest of the log up to there: what shows
    /// later that the log was rewritten. For callers that are not told a position by the host.
    ///
    /// Reads the whole log. `None` where there is no door or only a costly one, nothing to cut off, or a log that cannot be read or does not
    /// show yet what came before `turn`: hosts write late, and no position is better than that of an earlier turn.
    pub fn position_now(&self, session: &SessionKey, kind: PointKind, turn: Option<Turn>) -> Option<Position> {
        if self.parts.sessions.is_costly(session) {
            return None;
        }
        let log = LazyLog::new(self, session.clone());
        let map = log.if_readable()?;
        let last = map.beats().last()?.0;
        let at = match turn {
            Some(turn) if map.turn_start(turn).is_some() => {
                let end = map.turn_end(turn).filter(|_| kind == PointKind::TurnEnd);
                end.or(map.before_turn(session, turn).ok()?)
            }
            Some(turn) if map.turns().last().is_some_and(|last| *last > turn || map.turn_end(*last).is_none()) => None,
            _ => boundary_before(map.beats(), last),
        }?;
        match self.parts.sessions.prefix_digest(session, at.seq()) {
            Ok(prefix) => Some(Position { seq: at.seq(), anchor: None, prefix: Some(prefix) }),
            Err(error) => {
                tracing::debug!(%error, %session, "the point stores no position");
                None
            }
        }
    }

    fn boundary(
        &self,
        found: &Found<'_>,
        map: &LogMap,
        known: &[Session],
        rule: Option<BoundaryRule>,
    ) -> Result<Option<BoundarySeq>, EngineError> {
        let session = found.log.session();
        // Numbers of turns may have moved since the point was made; what the harness itself calls its turn has not.
        let anchored = found.point.as_ref().map_or(Ok(None), |point| self.anchored(point, found))?;
        let told = found.point.as_ref().and_then(|point| point.turn);
        let renumbered = |turn: Turn| anchored.filter(|_| told == Some(turn)).unwrap_or(turn);
        let at = match &found.cut {
            CutAt::EndOf(turn) => CutAt::EndOf(renumbered(*turn)),
            CutAt::Before(turn) => CutAt::Before(renumbered(*turn)),
            other => other.clone(),
        };
        // A point of a subagent lies in another log: what counts is where its parent was by then.
        let place = match &found.point {
            Some(point) if at == CutAt::Point => Some(self.place_in(point, found, known)?),
            _ => None,
        };
        let turn = match (&at, &place) {
            (CutAt::EndOf(turn) | CutAt::Before(turn), _) => Some(*turn),
            (CutAt::AtOrBefore(seq), _) => map.turn_at(*seq),
            (CutAt::Stored(boundary, _), _) => map.turn_at(boundary.seq()),
            // What a point says of its turn goes before what is read from its position, which may lie before that turn.
            (CutAt::Point, Some(place)) => {
                let own = found.point.as_ref().filter(|p| p.session == *session).and_then(|p| p.turn);
                anchored.or(own).or_else(|| place.turn(map))
            }
            (CutAt::Point, None) => None,
        };
        match (rule, turn) {
            (Some(BoundaryRule::Before), Some(turn)) => return Ok(map.before_turn(session, turn)?),
            (Some(BoundaryRule::After), Some(turn)) => return Ok(Some(map.after_turn(session, turn)?)),
            _ => {}
        }
        match (&at, place) {
            (CutAt::EndOf(turn), _) => Ok(Some(map.after_turn(session, *turn)?)),
            (CutAt::Before(turn), _) => Ok(map.before_turn(session, *turn)?),
            (CutAt::AtOrBefore(seq), _) => Ok(boundary_before(map.beats(), *seq)),
            // The log may have been replaced since the name was set (K-45).
            (CutAt::Stored(boundary, _), _) => Ok(Some(boundary_at(session, map.beats(), boundary.seq())?)),
            (CutAt::Point, Some(Place::End(turn))) => Ok(Some(map.after_turn(session, turn)?)),
            (CutAt::Point, Some(Place::In(turn))) => Ok(map.before_turn(session, turn)?),
            (CutAt::Point, Some(Place::At(seq))) => Ok(boundary_before(map.beats(), seq)),
            (CutAt::Point, None) => Ok(None),
        }
    }

    /// The turn that a point's anchor names in the log of `found`; `None` where it has none or the log does not know it.
    fn anchored(&self, point: &Point, found: &Found<'_>) -> Result<Option<Turn>, EngineError> {
        let anchor = point.position.as_ref().and_then(|position| position.anchor.as_deref());
        // A log that has no door cannot be asked.
        let Some(anchor) = anchor.filter(|_| found.log.get().is_ok_and(|map| map.is_some())) else { return Ok(None) };
        Ok(self.parts.sessions.turn_of_anchor(found.log.session(), anchor)?)
    }

    /// Where the conversation of `found` was when `point` was made.
    fn place_in(&self, point: &Point, found: &Found<'_>, known: &[Session]) -> Result<Place, EngineError> {
        // A position before the point's turn is the cut that there was; the log may show the turn by now.
        let map = found.log.get()?;
        let began = |turn, seq| map.is_some_and(|map| map.turn_at(seq) != Some(turn) && map.turn_start(turn).is_some());
        let numbered = |point: &Point| match (&point.position, point.turn) {
            (_, Some(turn)) if point.kind == PointKind::TurnEnd => Some(Place::End(turn)),
            (Some(position), Some(turn)) if began(turn, position.seq) => Some(Place::In(turn)),
            (Some(position), _) => Some(Place::At(position.seq)),
            (None, Some(turn)) => Some(Place::In(turn)),
            (None, None) => None,
        };
        let direct = |point: &Point| match self.anchored(point, found) {
            Ok(Some(turn)) if point.kind == PointKind::TurnEnd => Some(Place::End(turn)),
            Ok(Some(turn)) => Some(Place::In(turn)),
            _ => numbered(point),
        };
        let session = found.log.session();
        if point.session == *session
            && let Some(place) = direct(point)
        {
            return Ok(place);
        }
        let seen = self.sight(&found.log, known, false)?.own;
        if point.session != *session
            && seen.iter().any(|p| p.id == point.id)
            && let Some(place) = direct(point)
        {
            return Ok(place);
        }
        // It says nothing itself: the newest point before it that does.
        let mut before = seen.iter().rev().filter(|p| p.ord < point.ord && p.kind != PointKind::Guard);
        before.find_map(direct).ok_or_else(|| SessionError::Unplaced { session: session.clone() }.into())
    }

    /// The digest of the log up to `at`, after it was compared with what was stored about that part of it.
    ///
    /// A stored digest of a position at or after the cut proves the whole of it when it is right; one at or before the
    /// cut disproves it when it is wrong. A log that was rewritten and went on has points of both, so the newest word
    /// counts, but none that is newer than the target: that point was made on the log as it was then. Where something
    /// beyond the cut is wrong, the log was rewritten nobody knows from where on: the cut then has to be proven.
    fn verified_prefix(&self, found: &Found<'_>, known: &[Session], at: Seq) -> Result<String, EngineError> {
        let session = found.log.session();
        let now = self.parts.sessions.prefix_digest(session, at)?;
        let changed = |seq| Err(SessionError::PrefixChanged { session: session.clone(), seq }.into());
        if let CutAt::Stored(_, Some(stored)) = &found.cut {
            return if *stored == now { Ok(now) } else { changed(at) };
        }
        let seen = self.sight(&found.log, known, false)?.own;
        let target = found.point.as_ref().filter(|point| seen.iter().any(|p| p.id == point.id));
        let upto = target.map_or(Ord(u64::MAX), |point| point.ord);
        let told = || {
            let told = seen.iter().rev();
            told.filter_map(|p| p.position.as_ref().filter(|position| position.prefix.is_some()).map(|at| (p.ord, at)))
        };
        let stored = || told().filter(|(ord, _)| *ord <= upto);
        let right = |position: &Position| {
            if position.seq == at {
                return position.prefix.as_ref() == Some(&now);
            }
            let then = self.parts.sessions.prefix_digest(session, position.seq);
            then.is_ok_and(|digest| position.prefix.as_ref() == Some(&digest))
        };
        let nearest = |(ord, position): &(Ord, &Position)| (position.seq, std::cmp::Reverse(*ord));
        // Each comparison reads the log: those that say most will do.
        let mut witnesses: Vec<(Ord, &Position)> = Vec::new();
        witnesses.extend(stored().find(|(ord, _)| *ord == upto));
        witnesses.extend(stored().find(|(_, position)| position.seq == at));
        witnesses.extend(stored().find(|(_, position)| position.seq > at));
        witnesses.extend(stored().filter(|(_, position)| position.seq > at).min_by_key(nearest));
        witnesses.extend(stored().filter(|(_, p)| p.seq < at).max_by_key(|(ord, p)| (p.seq, *ord)));
        witnesses.sort_by_key(|(ord, _)| std::cmp::Reverse(*ord));
        witnesses.dedup();
        let mut doubtful = None;
        for (_, position) in witnesses {
            match right(position) {
                true if position.seq >= at => return Ok(now),
                false if position.seq <= at => return changed(position.seq),
                false => doubtful = doubtful.or(Some(position.seq)),
                true => {}
            }
        }
        if let Some(seq) = doubtful {
            return changed(seq);
        }
        // Nothing proves the cut. What was told later proves nothing of the target, but shows a log that was rewritten
        // after all that, unless it stayed beyond the cut.
        let newer = || told().filter(|(ord, _)| *ord > upto);
        match newer().next() {
            Some((_, newest)) if !right(newest) => {
                let stayed = newer().filter(|(_, position)| position.seq >= at).min_by_key(nearest);
                if stayed.is_some_and(|(_, position)| right(position)) { Ok(now) } else { changed(newest.seq) }
            }
            _ => Ok(now),
        }
    }

    /// Refuses a log that was rewritten below a cut since that was looked up.
    pub(super) fn refuse_rewritten(
        &self,
        session: &SessionKey,
        boundary: Option<BoundarySeq>,
        prefix: Option<&String>,
    ) -> Result<(), SessionError> {
        let (Some(boundary), Some(prefix)) = (boundary, prefix) else { return Ok(()) };
        let changed = || SessionError::PrefixChanged { session: session.clone(), seq: boundary.seq() };
        match self.parts.sessions.prefix_digest(session, boundary.seq()) {
            Ok(now) if now == *prefix => Ok(()),
            Ok(_) | Err(SessionError::InvalidBoundary { .. }) => Err(changed()),
            Err(error) => Err(error),
        }
    }

    /// What a name stores of a point's place in its conversation; nothing where that cannot be told.
    pub(super) fn name_cut(&self, point: &Point) -> Option<Cut> {
        let known = self.parts.index.sessions().ok()?;
        let log = LazyLog::new(self, point.session.clone());
        let found = Found { point: Some(point.clone()), log, cut: CutAt::Point, notes: Vec::new() };
        match self.cut(&found, &known, None) {
            Ok(cut) => cut,
            Err(error) => {
                tracing::debug!(%error, point = %point.id, "the name stores no cut");
                None
            }
        }
    }
}

/// Where the conversation was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// At the end of a turn.
    End(Turn),
    /// In a turn, nobody knows where.
    In(Turn),
    /// At a position.
    At(Seq),
}

impl Place {
    fn turn(self, map: &LogMap) -> Option<Turn> {
        match self {
            Self::End(turn) | Self::In(turn) => Some(turn),
            Self::At(seq) => map.turn_at(seq),
        }
    }
}

/// The rule, in words.
fn rule(map: &LogMap, at: Option<BoundarySeq>) -> String {
    let Some(at) = at else { return "empty".to_owned() };
    let ended = map.turn_at(at.seq()).filter(|turn| map.turn_end(*turn) == Some(at));
    ended.map_or_else(|| format!("event {}", at.seq()), |turn| format!("end of turn {turn}"))
}
