//! Which sessions' points a session sees: its own, its ancestors' below each seed length, its subagents' (design § 6).
//!
//! What the index does not know of a session's origin is read from the head of its log.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;

use crate::{EngineError, LogMap, Ord, Point, PointQuery, Seq, Session, SessionError, SessionKey};

use super::Engine;

/// So many generations are followed.
const GENERATIONS: usize = 1000;

/// Where a session comes from.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// The session it was forked from, and how many of its events it shares.
    parent: Option<(SessionKey, u64)>,
    /// The session whose subagent it is.
    subagent_of: Option<SessionKey>,
}

/// A session's log, read when it is first needed; `None` where there is no door.
#[derive(Debug)]
pub(super) struct LazyLog<'a> {
    engine: &'a Engine,
    session: SessionKey,
    read: OnceCell<Option<LogMap>>,
    /// It could not be read, and that was said.
    failed: Cell<bool>,
}

impl<'a> LazyLog<'a> {
    pub(super) const fn new(engine: &'a Engine, session: SessionKey) -> Self {
        Self { engine, session, read: OnceCell::new(), failed: Cell::new(false) }
    }

    pub(super) const fn session(&self) -> &SessionKey {
        &self.session
    }

    pub(super) fn get(&self) -> Result<Option<&LogMap>, SessionError> {
        if let Some(read) = self.read.get() {
            return Ok(read.as_ref());
        }
        let logs = &self.engine.parts.sessions;
        let read =
            if logs.can_fork(&self.session) { Some(LogMap::new(logs.beats(&self.session, Seq(0))?)) } else { None };
        Ok(self.read.get_or_init(|| read).as_ref())
    }

    /// The same where a log that cannot be read is as good as none: for what needs only files.
    pub(super) fn if_readable(&self) -> Option<&LogMap> {
        if self.failed.get() {
            return None;
        }
        match self.get() {
            Ok(map) => map,
            Err(error) => {
                self.failed.set(true);
                tracing::warn!(%error, session = %self.session, "the session's log cannot be read");
                None
            }
        }
    }
}

/// What a log says of a turn by the harness's own name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Anchored {
    /// It begins there.
    At(Seq),
    /// The log does not have it: it is not this session's, whatever its number.
    Absent,
    /// There is no name, or no log to ask.
    Unasked,
}

/// The points that a session sees, oldest first.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Its own and its ancestors': their turns and positions are its own.
    pub(super) own: Vec<Point>,
    /// Its subagents', whose turns and positions are of other logs.
    pub(super) subagents: Vec<Point>,
}

impl Engine {
    fn origin(&self, session: &SessionKey, known: &[Session]) -> Origin {
        if session.is_local() {
            return Origin::default();
        }
        let row = known.iter().find(|s| s.key == *session);
        if let Some(row) = row.filter(|row| row.parent.is_some() || row.subagent_of.is_some()) {
            let parent = row.parent.clone().map(|parent| (parent, row.seed_length.unwrap_or(0)));
            return Origin { parent, subagent_of: row.subagent_of.clone() };
        }
        // What a capture or rwd itself has seen of it is in the row.
        if self.parts.sessions.is_costly(session) {
            return Origin::default();
        }
        match self.parts.sessions.header(session) {
            Ok(header) if header.subagent => Origin { parent: None, subagent_of: header.parent },
            Ok(header) => {
                Origin { parent: header.parent.map(|parent| (parent, header.seed_length)), subagent_of: None }
            }
            Err(error) => {
                tracing::debug!(%error, %session, "no origin is known");
                Origin::default()
            }
        }
    }

    /// The session and its ancestors, each with the number of events below which its points count.
    ///
    /// A session that is its own ancestor is refused: no point of such a line can be trusted.
    fn ancestry(&self, session: &SessionKey, known: &[Session]) -> Result<Vec<(SessionKey, Option<u64>)>, EngineError> {
        let mut line: Vec<(SessionKey, Option<u64>)> = vec![(session.clone(), None)];
        while let Some((key, limit)) = line.last().cloned() {
            let Some((parent, seed)) = self.origin(&key, known).parent else { break };
            if line.len() >= GENERATIONS || line.iter().any(|(k, _)| *k == parent) {
                let why = format!("{parent} would be its own ancestor");
                return Err(SessionError::Lineage { session: session.clone(), why }.into());
            }
            line.push((parent, Some(limit.map_or(seed, |limit| limit.min(seed)))));
        }
        Ok(line)
    }

    /// The session that counts for it: a subagent's parent, and that one's if it is a subagent too.
    pub(super) fn principal(&self, session: &SessionKey, known: &[Session]) -> SessionKey {
        let mut at = session.clone();
        let mut seen = BTreeSet::from([at.clone()]);
        while let Some(parent) = self.origin(&at, known).subagent_of {
            if !seen.insert(parent.clone()) {
                break;
            }
            at = parent;
        }
        at
    }

    /// Known sessions that are subagents of `session`, or of such a one.
    fn subagents(&self, session: &SessionKey, known: &[Session]) -> BTreeSet<SessionKey> {
        let others = known.iter().map(|s| &s.key).filter(|key| *key != session && key.harness() == session.harness());
        others.filter(|key| self.principal(key, known) == *session).cloned().collect()
    }

    /// What a session sees. `with_subagents`: also the points of its subagents.
    pub(super) fn sight(
        &self,
        log: &LazyLog<'_>,
        known: &[Session],
        with_subagents: bool,
    ) -> Result<Sight, EngineError> {
        self.sight_after(log, known, with_subagents, None)
    }

    /// The same of what was recorded after a place.
    pub(super) fn sight_after(
        &self,
        log: &LazyLog<'_>,
        known: &[Session],
        with_subagents: bool,
        after: Option<Ord>,
    ) -> Result<Sight, EngineError> {
        let line = self.ancestry(log.session(), known)?;
        let subs = if with_subagents { self.subagents(log.session(), known) } else { BTreeSet::new() };
        let sessions = line.iter().map(|(key, _)| key.clone()).chain(subs.iter().cloned()).collect();
        let mut sight = Sight::default();
        for point in self.parts.index.points(&PointQuery { sessions, after, ..PointQuery::default() })? {
            match line.iter().find(|(key, _)| *key == point.session) {
                None => sight.subagents.push(point),
                Some((_, None)) => sight.own.push(point),
                Some((_, Some(limit))) => {
                    // The child's log holds the shared events too: a point without a position is placed by them.
                    let told = point.position.as_ref().map(|position| position.seq);
                    let place = match self.anchored_in(&point, log) {
                        Anchored::At(seq) => Some(seq),
                        Anchored::Absent => None,
                        Anchored::Unasked => told.or_else(|| log.if_readable().and_then(|map| map.place(&point))),
                    };
                    if place.is_some_and(|seq| seq.0 < *limit) {
                        sight.own.push(point);
                    }
                }
            }
        }
        Ok(sight)
    }

    /// Where the turn begins that a point's anchor names.
    fn anchored_in(&self, point: &Point, log: &LazyLog<'_>) -> Anchored {
        let anchor = point.position.as_ref().and_then(|position| position.anchor.as_deref());
        let (Some(anchor), Some(map)) = (anchor, log.if_readable()) else { return Anchored::Unasked };
        match self.parts.sessions.turn_of_anchor(log.session(), anchor) {
            Err(_) => Anchored::Unasked,
            Ok(turn) => turn.and_then(|turn| map.turn_start(turn)).map_or(Anchored::Absent, Anchored::At),
        }
    }

    /// Sessions with the origins that only logs know, for judging whose work a change is: those of `judged`, of `session`,
    /// and of all that they come from. Of the others no log is read, however many there were.
    pub(super) fn with_origins(
        &self,
        session: &SessionKey,
        judged: BTreeSet<SessionKey>,
        known: &[Session],
    ) -> Vec<Session> {
        let mut all = known.to_vec();
        let mut todo: Vec<SessionKey> = judged.into_iter().collect();
        todo.push(session.clone());
        let mut seen = BTreeSet::new();
        while let Some(key) = todo.pop() {
            if !seen.insert(key.clone()) {
                continue;
            }
            let Origin { parent, subagent_of } = self.origin(&key, known);
            todo.extend(parent.iter().map(|(parent, _)| parent.clone()).chain(subagent_of.clone()));
            let seed_length = parent.as_ref().map(|(_, seed)| *seed);
            let parent = parent.map(|(parent, _)| parent);
            if let Some(row) = all.iter_mut().find(|s| s.key == key) {
                row.parent = parent;
                row.seed_length = seed_length;
                row.subagent_of = subagent_of;
            } else {
                let seen = self.parts.clock.now();
                all.push(Session { key, parent, seed_length, subagent_of, turn: None, seen });
            }
        }
        all
    }
}
