//! Captures: one record, or a gap that says why there is none (design § 5).

use std::collections::BTreeSet;

use crate::history::{Interval, close_turns};
use crate::{
    Batch, Captured, Consistency, EngineError, EngineEvent, GapReason, IndexError, IndexOp, LockError, LockMode, Name,
    Ord, Point, PointId, PointKind, PointQuery, RelPath, SaveRequest, Saved, Session, SessionKey, SnapshotError,
    Timestamp, Turn, TurnStatus, check_name,
};

use super::Engine;
use super::attribution::{Latest, Since, Walk};

/// Walks that are begun again because somebody else recorded something meanwhile.
const ATTEMPTS: usize = 16;
/// A harness that tells an event twice does so at once: only so many places back is its record looked for, however long
/// the history is.
const REPEATED_WITHIN: u64 = 256;

impl Engine {
    /// Captures the workspace. A capture that ends without a record leaves a gap ([`EngineError::Gap`]).
    pub fn save(&self, request: &SaveRequest) -> Result<Saved, EngineError> {
        if let Some(label) = &request.name {
            check_name(label).map_err(|why| EngineError::BadName { label: label.clone(), why })?;
        }
        if let Some(why) = self.overtaken_turn(request)? {
            let error = EngineError::Nothing { why, hint: None };
            return Err(EngineError::Gap { point: self.record_gap(request, &error), source: Box::new(error) });
        }
        match self.try_save(request) {
            Err(error) => Err(EngineError::Gap { point: self.record_gap(request, &error), source: Box::new(error) }),
            done => done,
        }
    }

    /// The end of a turn that the start of a later one has closed: that record stands for it (model F8).
    fn overtaken_turn(&self, request: &SaveRequest) -> Result<Option<String>, EngineError> {
        let (PointKind::TurnEnd, Some(turn)) = (request.kind, request.turn) else { return Ok(None) };
        let status = self.parts.index.session(&request.session)?.and_then(|session| session.turn);
        Ok(status.filter(|status| status.turn > turn).map(|later| {
            format!("turn {turn} of session {} was closed by the start of turn {}", request.session, later.turn)
        }))
    }

    fn try_save(&self, request: &SaveRequest) -> Result<Saved, EngineError> {
        let _locked = self.lock(LockMode::Shared)?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.save_once(request) {
                Err(EngineError::Index(error @ IndexError::Conflict { .. })) => last = Some(error),
                done => return done,
            }
        }
        Err(last.map_or(EngineError::Lock(LockError::Busy), EngineError::Index))
    }

    fn save_once(&self, request: &SaveRequest) -> Result<Saved, EngineError> {
        let follows = self.parts.index.newest()?;
        let latest = self.latest()?;
        if let Some(point) = self.same_event(request, follows)? {
            return Ok(Saved { point, created: false, skipped: Vec::new(), warnings: Vec::new() });
        }
        let started = self.parts.clock.now();
        // A turn's start and end, and what somebody asks for, prove what they say: only these do not.
        let watched = matches!(request.kind, PointKind::Mutation | PointKind::Step) && self.parts.capture.watch;
        let how = Walk { write: true, deadline: request.deadline, watched, ..Walk::default() };
        let captured = self.walk(&latest, &how)?;
        let host_state = self.keep_host_state(latest.record.as_ref().and_then(|record| record.host_state))?;
        if let Some(point) = self.duplicate(request, &latest, &captured)?.filter(|p| p.host_state == host_state) {
            let mut ops = Vec::new();
            let mut point = point;
            if let (None, Some(note)) = (&point.note, note_of(request)) {
                point.note = Some(note);
                ops.push(IndexOp::UpdatePoint { point: Box::new(point.clone()) });
            }
            ops.extend(self.name_op(request, &point));
            if !ops.is_empty() {
                self.parts.index.apply(&Batch { follows: None, ops })?;
            }
            return Ok(Saved { point, created: false, skipped: captured.skipped, warnings: captured.warnings });
        }
        let turn = turn_of(request, &latest.sessions);
        let punctual = request.kind == PointKind::TurnEnd && request.ended.is_none();
        let mut sessions = latest.sessions.clone();
        if let Some(at) = request.ended {
            end_turn(&mut sessions, &request.session, turn, at);
        }
        let ends = turn.filter(|_| punctual).map(|turn| (&request.session, turn));
        let interval = Interval::since_latest(&sessions, request.kind, ends);
        let since = self.since(&latest, &captured.snapshot, &interval, request.ended.is_some())?;
        let mut point = self.point(request, turn, follows.next(), started, &captured, &since);
        point.under_intent = latest.intent.is_some() || self.overlap_is_unfinished()?;
        point.operation = latest.intent.as_ref().map(|intent| intent.operation);
        point.host_state = host_state;
        let mut ops = vec![IndexOp::PutPoint { point: Box::new(point.clone()), interval: since.touches.clone() }];
        ops.extend(self.record_ops(&sessions, &since, &latest, point.ord));
        ops.push(self.session_op(request, &sessions, turn, Some(point.ord)));
        ops.extend(self.name_op(request, &point));
        self.parts.index.apply(&Batch { follows: Some(follows), ops })?;
        self.tell(&EngineEvent::Captured { point: point.id });
        Ok(Saved { point, created: true, skipped: captured.skipped, warnings: captured.warnings })
    }

    /// True when a workspace that overlaps this one has an unfinished operation.
    fn overlap_is_unfinished(&self) -> Result<bool, EngineError> {
        for other in &self.parts.overlaps {
            if other.index.open_intent()?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Marks the session's open turn as interrupted: it counts up to the next record (design § 2).
    pub fn interrupt(&self, session: &SessionKey) -> Result<Turn, EngineError> {
        // A capture writes sessions as it read them: none may be under way.
        let _locked = self.lock(LockMode::Exclusive)?;
        let known = self.parts.index.session(session)?;
        let open = known
            .and_then(|s| s.turn.clone().map(|turn| (s, turn)))
            .filter(|(_, turn)| turn.ended.is_none() && turn.closed.is_none());
        let Some((mut session, status)) = open else {
            return Err(EngineError::Nothing { why: format!("session {session} has no open turn"), hint: None });
        };
        let turn = status.turn;
        session.turn = Some(TurnStatus { interrupted: true, ..status });
        self.parts
            .index
            .apply(&Batch { follows: None, ops: vec![IndexOp::PutSession { session: Box::new(session) }] })?;
        Ok(turn)
    }

    /// Says that the session's turn of that number, which had ended or was interrupted, goes on: what changes from the
    /// latest record on is its work again. False when that is not the session's newest turn, or when it is open.
    ///
    /// # Errors
    /// Those of the lock and the index.
    pub fn reopen(&self, session: &SessionKey, turn: Turn) -> Result<bool, EngineError> {
        // As for an interrupt: a capture writes sessions as it read them.
        let _locked = self.lock(LockMode::Exclusive)?;
        let known = self.parts.index.session(session)?;
        let ended = |status: &TurnStatus| status.ended.is_some() || status.interrupted || status.closed.is_some();
        let over = known
            .and_then(|s| s.turn.clone().map(|status| (s, status)))
            .filter(|(_, status)| status.turn == turn && ended(status));
        let Some((mut session, status)) = over else { return Ok(false) };
        session.turn = Some(TurnStatus { ended: None, interrupted: false, closed: None, ..status });
        self.parts
            .index
            .apply(&Batch { follows: None, ops: vec![IndexOp::PutSession { session: Box::new(session) }] })?;
        Ok(true)
    }

    /// Registers a session, its parent and whose subagent it is.
    pub fn register_session(&self, session: Session) -> Result<(), EngineError> {
        let _locked = self.lock(LockMode::Exclusive)?;
        let known = self.parts.index.session(&session.key)?;
        let turn = session.turn.clone().or(known.and_then(|s| s.turn));
        let session = Session { turn, ..session };
        self.parts
            .index
            .apply(&Batch { follows: None, ops: vec![IndexOp::PutSession { session: Box::new(session) }] })?;
        Ok(())
    }

    /// The record of this very event (design § 11, idempotency key).
    fn same_event(&self, request: &SaveRequest, newest: Ord) -> Result<Option<Point>, EngineError> {
        if request.call_id.is_none() {
            return Ok(None);
        }
        let query = PointQuery {
            sessions: vec![request.session.clone()],
            kinds: vec![request.kind],
            restorable: true,
            newest_first: true,
            after: Some(Ord(newest.0.saturating_sub(REPEATED_WITHIN))),
            ..PointQuery::default()
        };
        Ok(self
            .parts
            .index
            .points(&query)?
            .into_iter()
            .find(|p| (request.turn.is_none() || p.turn == request.turn) && p.call_id == request.call_id))
    }

    /// The latest record, when it holds this very state and may stand for it (design § 5, model F16).
    ///
    /// After a gap a record is made all the same: it says that protection is back.
    fn duplicate(
        &self,
        request: &SaveRequest,
        latest: &Latest,
        captured: &Captured,
    ) -> Result<Option<Point>, EngineError> {
        let Some(record) = &latest.record else { return Ok(None) };
        let quiet = consistency(captured);
        let same = !request.kind.always_recorded()
            && latest.intent.is_none()
            && latest.operation.is_none()
            && record.snapshot == Some(captured.snapshot)
            && record.listed
            && record.kind != PointKind::Guard
            && !(request.besides_turns && matches!(record.kind, PointKind::TurnStart | PointKind::TurnEnd))
            && record.damaged.is_none()
            && !record.under_intent
            && record.incarnation == self.parts.place.incarnation
            && record.session == request.session
            && (record.note.is_none() || note_of(request).is_none() || record.note == note_of(request))
            && record.consistency >= quiet;
        let gaps = PointQuery {
            kinds: vec![PointKind::Gap],
            after: Some(record.ord),
            limit: Some(1),
            ..PointQuery::default()
        };
        let stands = same && self.parts.index.points(&gaps)?.is_empty();
        Ok(stands.then(|| record.clone()))
    }

    pub(super) fn point(
        &self,
        request: &SaveRequest,
        turn: Option<Turn>,
        ord: Ord,
        started: Timestamp,
        captured: &Captured,
        since: &Since,
    ) -> Point {
        Point {
            snapshot: Some(captured.snapshot),
            walk_started: started,
            changed: since.touches.len() as u64,
            files: captured.files,
            new_bytes: captured.new_bytes,
            skipped: captured.skipped.len() as u64,
            consistency: consistency(captured),
            live: captured.live.clone(),
            head: captured.head.clone(),
            late: since.late.clone(),
            ..self.empty_point(request, turn, ord)
        }
    }

    /// A point of this request that holds nothing yet.
    fn empty_point(&self, request: &SaveRequest, turn: Option<Turn>, ord: Ord) -> Point {
        let now = self.parts.clock.now();
        Point {
            id: self.fresh_point_id(),
            ord,
            workspace: self.parts.place.workspace,
            incarnation: self.parts.place.incarnation,
            session: request.session.clone(),
            turn,
            step: request.step,
            kind: request.kind,
            snapshot: None,
            gap: None,
            missed: None,
            trigger: request.trigger.clone(),
            call_id: request.call_id.clone(),
            note: note_of(request),
            at: now,
            walk_started: now,
            changed: 0,
            files: 0,
            new_bytes: 0,
            skipped: 0,
            consistency: Consistency::Live,
            live: Vec::new(),
            head: None,
            position: request.position.clone(),
            listed: true,
            under_intent: false,
            late: Vec::new(),
            operation: None,
            sensitive: Vec::new(),
            damaged: None,
            host_state: None,
            coarse_modes: false,
        }
    }

    /// What every record does besides itself: the held set, and the turns that it closes.
    pub(super) fn record_ops(&self, sessions: &[Session], since: &Since, latest: &Latest, ord: Ord) -> Vec<IndexOp> {
        let mut ops = Vec::new();
        let sensitive: BTreeSet<&RelPath> = latest.record.iter().flat_map(|point| &point.sensitive).collect();
        let add: Vec<RelPath> = since.departed.iter().filter(|path| !sensitive.contains(path)).cloned().collect();
        if !add.is_empty() || !since.arrived.is_empty() {
            ops.push(IndexOp::Held { add, remove: since.arrived.clone() });
        }
        for session in sessions {
            if let Some(turn) = self.after_record(session, ord) {
                ops.push(IndexOp::PutSession { session: Box::new(Session { turn: Some(turn), ..session.clone() }) });
            }
        }
        ops
    }

    /// How a session's turn stands after a record at `ord`; `None` when it did not change.
    fn after_record(&self, session: &Session, ord: Ord) -> Option<TurnStatus> {
        // Whose turn is closed need not be looked at, however many there were.
        let status = session.turn.as_ref().filter(|status| status.closed.is_none())?;
        let gone = status.process.as_ref().is_some_and(|process| !self.parts.processes.is_alive(process));
        if let Some(closed) = close_turns(status, ord, gone) {
            return Some(closed);
        }
        // A turn whose start was not recorded begins to count at the first record after it.
        status.start.is_none().then(|| TurnStatus { start: Some(ord), ..status.clone() })
    }

    /// The session as it stands after this request. Applied after [`Engine::record_ops`], so it wins.
    fn session_op(&self, request: &SaveRequest, sessions: &[Session], turn: Option<Turn>, ord: Option<Ord>) -> IndexOp {
        let now = self.parts.clock.now();
        let known = sessions.iter().find(|s| s.key == request.session);
        let mut session = known.cloned().unwrap_or_else(|| Session {
            key: request.session.clone(),
            parent: None,
            seed_length: None,
            subagent_of: None,
            turn: None,
            seen: now,
        });
        session.seen = now;
        session.turn = match (request.kind, turn) {
            (PointKind::TurnStart, Some(turn)) => Some(TurnStatus {
                turn,
                start: ord,
                began: now,
                ended: None,
                interrupted: false,
                closed: None,
                process: request.process.clone(),
            }),
            (PointKind::TurnEnd, Some(turn)) if session.turn.as_ref().is_none_or(|status| status.turn <= turn) => {
                let began = session.turn.as_ref().filter(|status| status.turn == turn);
                Some(TurnStatus {
                    turn,
                    start: began.and_then(|status| status.start).or(ord),
                    began: began.map_or(now, |status| status.began),
                    ended: Some(request.ended.unwrap_or(now)),
                    interrupted: false,
                    closed: ord,
                    process: began.and_then(|status| status.process.clone()),
                })
            }
            _ => match ord {
                Some(ord) => self.after_record(&session, ord).or(session.turn),
                None => session.turn,
            },
        };
        IndexOp::PutSession { session: Box::new(session) }
    }

    fn name_op(&self, request: &SaveRequest, point: &Point) -> Option<IndexOp> {
        let name = Name {
            label: request.name.clone()?,
            point: point.id,
            session: request.session.clone(),
            boundary: None,
            note: request.note.clone(),
            at: self.parts.clock.now(),
            prefix: None,
        };
        Some(IndexOp::PutName { name })
    }

    /// Best effort: a gap that cannot be recorded changes nothing about the error.
    fn record_gap(&self, request: &SaveRequest, error: &EngineError) -> Option<PointId> {
        let reason = match error {
            EngineError::Lock(LockError::Busy) | EngineError::Index(IndexError::Busy | IndexError::Conflict { .. }) => {
                GapReason::Busy
            }
            EngineError::Snapshot(SnapshotError::Deadline) => GapReason::Deadline,
            EngineError::Snapshot(SnapshotError::NoSpace { .. }) | EngineError::Index(IndexError::NoSpace) => {
                GapReason::NoSpace
            }
            EngineError::BadName { .. } => return None,
            _ => GapReason::Failed,
        };
        for _ in 0..ATTEMPTS {
            match self.record_gap_once(request, reason) {
                Ok(point) => {
                    self.tell(&EngineEvent::Gap { point });
                    return Some(point);
                }
                Err(EngineError::Index(IndexError::Conflict { .. })) => {}
                Err(error) => {
                    tracing::warn!(%error, "a gap could not be recorded");
                    return None;
                }
            }
        }
        None
    }

    fn record_gap_once(&self, request: &SaveRequest, reason: GapReason) -> Result<PointId, EngineError> {
        let follows = self.parts.index.newest()?;
        let sessions: Vec<Session> = self.parts.index.session(&request.session)?.into_iter().collect();
        let turn = turn_of(request, &sessions);
        let point = Point {
            kind: PointKind::Gap,
            gap: Some(reason),
            missed: Some(request.kind),
            ..self.empty_point(request, turn, follows.next())
        };
        let ops = vec![
            IndexOp::PutPoint { point: Box::new(point.clone()), interval: Vec::new() },
            self.session_op(request, &sessions, turn, None),
        ];
        self.parts.index.apply(&Batch { follows: Some(follows), ops })?;
        Ok(point.id)
    }
}

/// A person's words, as they are kept.
fn note_of(request: &SaveRequest) -> Option<String> {
    request.note.as_ref().map(|note| note.trim().chars().take(500).collect())
}

fn consistency(captured: &Captured) -> Consistency {
    if captured.watched {
        return Consistency::Watched;
    }
    if captured.live.is_empty() { Consistency::Quiet } else { Consistency::Live }
}

/// The turn a request belongs to: as it says, else the session's open one, else for a turn-start the next.
fn turn_of(request: &SaveRequest, sessions: &[Session]) -> Option<Turn> {
    let status = sessions.iter().find(|s| s.key == request.session).and_then(|s| s.turn.as_ref());
    request.turn.or_else(|| match (request.kind, status) {
        (PointKind::TurnStart, Some(status)) => Some(Turn(status.turn.0 + 1)),
        (PointKind::TurnStart, None) => Some(Turn(1)),
        (_, Some(status)) if status.ended.is_none() && status.closed.is_none() => Some(status.turn),
        _ => None,
    })
}

fn end_turn(sessions: &mut [Session], key: &SessionKey, turn: Option<Turn>, at: Timestamp) {
    for session in sessions.iter_mut().filter(|s| s.key == *key) {
        if let Some(status) = session.turn.as_mut().filter(|status| Some(status.turn) == turn) {
            status.ended = Some(at);
        }
    }
}
