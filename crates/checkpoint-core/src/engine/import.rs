//! Taking over what an older tool recorded (design § 9, `import`; § 13 row 16).
//!
//! An imported state is a point that anybody can go back to, and it is no record of this workspace as it was at the
//! point's place: it closes no interval, is never the latest known state, proves no absence, and says nothing of who
//! changed what since (`docs/reliability.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::{
    Assembled, Batch, BoxError, Consistency, EngineError, IndexError, IndexOp, LockMode, Mark, OpId, OpKind, OpState,
    Operation, Ord, PathState, Point, PointId, PointKind, PointQuery, Position, RelPath, Session, SessionKey,
    SnapshotError, StateSource, Step, Timestamp, Turn,
};

use super::Engine;

/// Tries, when others record something meanwhile.
const ATTEMPTS: usize = 16;

/// One state to take over.
#[derive(Debug)]
pub struct ImportItem<'a> {
    /// What tells it from every other state of every source: kept as the point's `call_id`, so that it comes in once.
    pub key: String,
    /// Whose it is.
    pub session: SessionKey,
    /// The turn it belongs to; without a step it is the state at that turn's end.
    pub turn: Option<Turn>,
    /// The step it belongs to.
    pub step: Option<Step>,
    /// Where the conversation was.
    pub position: Option<Position>,
    /// When it was recorded there.
    pub at: Timestamp,
    /// A person's words.
    pub note: Option<String>,
    /// The tool that caused it.
    pub trigger: Option<String>,
    /// Paths that the source says had changed.
    pub changed: u64,
    /// See [`Point::coarse_modes`].
    pub coarse_modes: bool,
    /// The state itself.
    pub source: &'a dyn StateSource,
}

/// A mark to take over (001).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportMark {
    /// As it was; its number is kept where no mark of the workspace has it.
    pub mark: Mark,
}

/// What to take over.
#[derive(Debug)]
pub struct ImportRequest<'a> {
    /// From where, in a word, for the operation log.
    pub from: String,
    /// In which session it is asked for.
    pub session: SessionKey,
    /// States, oldest first.
    pub items: Vec<ImportItem<'a>>,
    /// Marks, oldest first.
    pub marks: Vec<ImportMark>,
    /// Look at what each source lists, and write nothing; content is not read.
    pub dry_run: bool,
}

/// What became of one state.
#[derive(Debug)]
pub enum ItemOutcome {
    /// A point was made.
    Imported {
        /// Which.
        point: PointId,
        /// What it holds.
        assembled: Assembled,
    },
    /// It would be made; so many files.
    Would {
        /// Files and links.
        files: u64,
    },
    /// It came in before.
    Already {
        /// As this point.
        point: PointId,
    },
    /// It cannot be taken over.
    Refused {
        /// Why.
        why: SnapshotError,
    },
}

/// What became of one mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportedMark {
    /// Its number here: for one that came in before, as it was found; for a dry run, as it would be.
    pub id: u64,
    /// False when it was there before.
    pub new: bool,
}

/// What an import came to; the lists go with those of the request.
#[derive(Debug, Default)]
pub struct Imported {
    /// Its entry in the operation log; `None` when nothing new came in.
    pub operation: Option<OpId>,
    /// By state.
    pub items: Vec<ItemOutcome>,
    /// By mark.
    pub marks: Vec<ImportedMark>,
}

impl Engine {
    /// Takes states and marks over from another tool's store. Sources are read, never written.
    ///
    /// One state that cannot be read harms no other. Everything that comes in does so in one batch, with one entry in
    /// the operation log; what came in before is left as it is.
    ///
    /// # Errors
    /// Those of the lock, the store and the index: nothing came in then.
    pub fn import(&self, request: &ImportRequest<'_>) -> Result<Imported, EngineError> {
        let _locked = self.lock(LockMode::Shared)?;
        let before = self.imported_before()?;
        let mut items: Vec<Option<ItemOutcome>> = Vec::with_capacity(request.items.len());
        let mut seen = BTreeSet::new();
        let mut wanted = Vec::new();
        for (at, item) in request.items.iter().enumerate() {
            match before.get(&item.key) {
                Some(point) => items.push(Some(ItemOutcome::Already { point: *point })),
                None if !seen.insert(&item.key) => {
                    let source: BoxError = "another record has the same identity".into();
                    let why = SnapshotError::Other { what: "two records in one", source };
                    items.push(Some(ItemOutcome::Refused { why }));
                }
                None if request.dry_run => items.push(Some(match item.source.parts() {
                    Ok((parts, _)) => ItemOutcome::Would { files: parts.len() as u64 },
                    Err(why) => ItemOutcome::Refused { why },
                })),
                None => {
                    items.push(None);
                    wanted.push((at, item));
                }
            }
        }
        let mut held = BTreeSet::new();
        let mut points: Vec<(usize, Point, Assembled)> = Vec::new();
        let ceiling = self.parts.capture.store_max_bytes;
        if !wanted.is_empty() {
            let budget = ceiling.saturating_sub(self.parts.snapshots.usage()?.own_bytes);
            let sources: Vec<&dyn StateSource> = wanted.iter().map(|(_, item)| item.source).collect();
            let assembled = self.parts.snapshots.assemble(&sources, budget, &*self.parts.progress)?;
            for ((at, item), result) in wanted.into_iter().zip(assembled) {
                match result {
                    Ok(assembled) => {
                        self.collect_paths(&assembled, &mut held)?;
                        points.push((at, self.imported_point(item, &assembled), assembled));
                    }
                    Err(why) => {
                        if let Some(slot) = items.get_mut(at) {
                            *slot = Some(ItemOutcome::Refused { why });
                        }
                    }
                }
            }
        }
        let (operation, marks) = self.commit_import(request, &mut points, &held)?;
        for (at, point, assembled) in points {
            if let Some(slot) = items.get_mut(at) {
                *slot = Some(ItemOutcome::Imported { point: point.id, assembled });
            }
        }
        Ok(Imported { operation, items: items.into_iter().flatten().collect(), marks })
    }

    /// True when an import from there brought something in before, whatever became of it since.
    ///
    /// # Errors
    /// Those of the index.
    pub fn has_imported(&self, from: &str) -> Result<bool, EngineError> {
        let end = origin(from);
        let operations = self.parts.index.operations(&[], None)?;
        Ok(operations.iter().any(|op| op.kind == OpKind::Import && op.summary.ends_with(&end)))
    }

    /// The points that earlier imports made, by key.
    fn imported_before(&self) -> Result<BTreeMap<String, PointId>, EngineError> {
        let query = PointQuery { kinds: vec![PointKind::Import], ..PointQuery::default() };
        let points = self.parts.index.points(&query)?;
        Ok(points.into_iter().filter_map(|point| Some((point.call_id?, point.id))).collect())
    }

    /// What a listed point holds stays covered (design § 5), so it must be in the newest record or among the held paths.
    fn collect_paths(&self, assembled: &Assembled, held: &mut BTreeSet<RelPath>) -> Result<(), EngineError> {
        self.parts.snapshots.list(&assembled.snapshot, None, &mut |path, state| {
            if !state.is_dir() {
                held.insert(path);
            }
            ControlFlow::Continue(())
        })?;
        Ok(())
    }

    fn imported_point(&self, item: &ImportItem<'_>, assembled: &Assembled) -> Point {
        Point {
            id: self.fresh_point_id(),
            ord: Ord(0),
            workspace: self.parts.place.workspace,
            incarnation: self.parts.place.incarnation,
            session: item.session.clone(),
            turn: item.turn,
            step: item.step,
            kind: PointKind::Import,
            snapshot: Some(assembled.snapshot),
            gap: None,
            missed: None,
            trigger: item.trigger.clone(),
            call_id: Some(item.key.clone()),
            note: item.note.as_ref().map(|note| note.trim().chars().take(500).collect()),
            at: item.at,
            walk_started: item.at,
            changed: item.changed,
            files: assembled.files,
            new_bytes: assembled.new_bytes,
            skipped: assembled.skipped,
            consistency: Consistency::Live,
            live: Vec::new(),
            head: None,
            position: item.position.clone(),
            listed: true,
            under_intent: false,
            late: Vec::new(),
            operation: None,
            sensitive: Vec::new(),
            damaged: None,
            host_state: None,
            coarse_modes: item.coarse_modes,
        }
    }

    /// Writes points, marks and the operation in one batch.
    fn commit_import(
        &self,
        request: &ImportRequest<'_>,
        points: &mut Vec<(usize, Point, Assembled)>,
        held: &BTreeSet<RelPath>,
    ) -> Result<(Option<OpId>, Vec<ImportedMark>), EngineError> {
        let id = self.fresh_operation_id();
        let mut last = IndexError::Busy;
        for _ in 0..ATTEMPTS {
            let follows = self.parts.index.newest()?;
            // Another import may have brought the same in meanwhile.
            let before = self.imported_before()?;
            points.retain(|(_, point, _)| point.call_id.as_ref().is_none_or(|key| !before.contains_key(key)));
            let (marks, mark_ops) = self.place_marks(request)?;
            let new_marks = marks.iter().filter(|mark| mark.new).count();
            if request.dry_run || (points.is_empty() && new_marks == 0) {
                return Ok((None, marks));
            }
            let mut ops = Vec::new();
            let mut place = follows;
            for (_, point, _) in points.iter_mut() {
                place = place.next();
                point.ord = place;
                ops.push(IndexOp::PutPoint { point: Box::new(point.clone()), interval: Vec::new() });
            }
            ops.extend(self.hold(held)?);
            ops.extend(mark_ops);
            ops.extend(self.unknown_sessions(request, points)?);
            let operation = self.import_operation(request, id, place.next(), points.len(), new_marks);
            ops.push(IndexOp::PutOperation { operation: Box::new(operation) });
            match self.parts.index.apply(&Batch { follows: Some(follows), ops }) {
                Ok(_) => return Ok((Some(id), marks)),
                Err(conflict @ IndexError::Conflict { .. }) => last = conflict,
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.into())
    }

    fn import_operation(
        &self,
        request: &ImportRequest<'_>,
        id: OpId,
        ord: Ord,
        points: usize,
        marks: usize,
    ) -> Operation {
        let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let what = match (points, marks) {
            (points, 0) => count(points, "point"),
            (0, marks) => count(marks, "mark"),
            (points, marks) => format!("{} and {}", count(points, "point"), count(marks, "mark")),
        };
        Operation {
            id,
            ord,
            kind: OpKind::Import,
            state: OpState::Done,
            session: request.session.clone(),
            target: None,
            reverses: None,
            reversed_by: None,
            guard: None,
            plan: None,
            at: self.parts.clock.now(),
            wrote: 0,
            child: None,
            summary: format!("imported {what}{}", origin(&request.from)),
            expired: false,
            stored: Vec::new(),
        }
    }

    /// Holds what the newest record does not.
    fn hold(&self, paths: &BTreeSet<RelPath>) -> Result<Option<IndexOp>, EngineError> {
        let latest = self.latest()?.record.and_then(|record| record.snapshot);
        let mut add = Vec::new();
        for path in paths {
            let state = latest.map(|latest| self.parts.snapshots.state(&latest, path)).transpose()?;
            if state.is_none_or(|state| matches!(state, PathState::Absent | PathState::Opaque | PathState::Dir { .. }))
            {
                add.push(path.clone());
            }
        }
        Ok((!add.is_empty()).then_some(IndexOp::Held { add, remove: Vec::new() }))
    }

    /// Sessions that this workspace did not know, so that they can be named by a part of their id.
    fn unknown_sessions(
        &self,
        request: &ImportRequest<'_>,
        points: &[(usize, Point, Assembled)],
    ) -> Result<Vec<IndexOp>, EngineError> {
        let known: BTreeSet<SessionKey> = self.parts.index.sessions()?.into_iter().map(|s| s.key).collect();
        let mut seen: BTreeMap<&SessionKey, Timestamp> = BTreeMap::new();
        let of_points = points.iter().map(|(_, point, _)| (&point.session, point.at));
        let of_marks = request.marks.iter().map(|import| (&import.mark.session, import.mark.at));
        for (key, at) in of_points.chain(of_marks).filter(|(key, _)| !known.contains(*key)) {
            let latest = seen.entry(key).or_insert(at);
            *latest = (*latest).max(at);
        }
        let session = |(key, seen): (&SessionKey, Timestamp)| Session {
            key: key.clone(),
            parent: None,
            seed_length: None,
            subagent_of: None,
            turn: None,
            seen,
        };
        Ok(seen.into_iter().map(|found| IndexOp::PutSession { session: Box::new(session(found)) }).collect())
    }

    /// Gives each mark its number: its own where that is free.
    fn place_marks(&self, request: &ImportRequest<'_>) -> Result<(Vec<ImportedMark>, Vec<IndexOp>), EngineError> {
        let index = &self.parts.index;
        let (mut placed, mut ops) = (Vec::new(), Vec::new());
        if request.marks.is_empty() {
            return Ok((placed, ops));
        }
        let mut sessions: BTreeSet<SessionKey> = index.sessions()?.into_iter().map(|s| s.key).collect();
        sessions.extend(request.marks.iter().map(|import| import.mark.session.clone()));
        let mut stored: Vec<Mark> = Vec::new();
        for session in &sessions {
            stored.extend(index.marks(session)?);
        }
        let mut newest = index.newest_mark()?;
        for ImportMark { mark } in &request.marks {
            let same = |known: &&Mark| {
                known.session == mark.session
                    && known.log_length == mark.log_length
                    && known.objective == mark.objective
            };
            if let Some(known) = stored.iter().find(same) {
                placed.push(ImportedMark { id: known.id, new: false });
                continue;
            }
            let is_free = mark.id > 0 && stored.iter().all(|known| known.id != mark.id);
            let id = if is_free { mark.id } else { newest.saturating_add(1) };
            newest = newest.max(id);
            let mark = Mark { id, ..mark.clone() };
            stored.push(mark.clone());
            placed.push(ImportedMark { id, new: true });
            ops.push(IndexOp::PutMark { mark });
        }
        Ok((placed, ops))
    }
}

/// How the summary of an import ends.
fn origin(from: &str) -> String {
    format!(" from {from}")
}
