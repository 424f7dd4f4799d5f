//! Taking content out of every point for good (design § 9, `purge`).
//!
//! Order: the lock, alone; which paths and which content, from every point and every stored state of an operation;
//! the points' snapshots written anew without them; one batch that moves every point and operation over and logs the
//! purge as unfinished; a collection, which removes what nothing refers to any more; the purge is finished. A crash
//! before the batch leaves all as it was. A crash after it leaves unreachable objects, which the next `gc` or `purge`
//! removes, and an operation that says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::{
    Batch, EngineError, GcReport, IndexOp, LockMode, ObjectId, OpId, OpKind, OpState, Operation, PathState, Point,
    PointId, PointQuery, RelPath, Removal, SessionKey, Snapshot, SnapshotError, Written,
};

use super::Engine;

/// What to purge.
#[derive(Clone)]
pub struct PurgeRequest {
    /// The request in a person's words, for the operation log; at most a line.
    pub what: String,
    /// True for a path that goes. It must be true for all that lies below a directory for which it is true.
    pub picks: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
    /// In which session it is asked for.
    pub session: SessionKey,
}

impl fmt::Debug for PurgeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PurgeRequest").field("what", &self.what).finish_non_exhaustive()
    }
}

/// A path that loses content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PurgedPath {
    /// The path.
    pub path: RelPath,
    /// In how many points it is lost.
    pub points: u64,
    /// It was not asked for, but has had the very same content: one object, which goes for both.
    pub same_content: bool,
    /// Something is there in the workspace now: it is not touched, and the next capture that covers it stores it again.
    pub present: bool,
}

/// What a purge takes away: none of it can be restored afterwards.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PurgePlan {
    /// Every path, in path order. Directories of which all goes are listed too.
    pub paths: Vec<PurgedPath>,
    /// Points that lose something, oldest first, with the number of paths. Their other paths stay restorable.
    pub points: Vec<(PointId, u64)>,
    /// Operations whose undo will leave some of these paths alone, newest first.
    pub operations: Vec<OpId>,
    /// An earlier purge was interrupted: its content may still be stored, and goes with this one.
    pub pending: bool,
}

impl PurgePlan {
    /// True when there is nothing to take away.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.operations.is_empty() && !self.pending
    }
}

/// How a purge ended.
#[derive(Debug)]
pub struct Purged {
    /// Its entry in the operation log; for one that only finished an earlier purge, that one.
    pub operation: OpId,
    /// What was taken away.
    pub plan: PurgePlan,
    /// What the collection did.
    pub collected: GcReport,
    /// Objects with purged content that are still stored.
    pub remaining: u64,
    /// Why it is not finished; the points no longer refer to the content, but the store may still have it.
    pub unfinished: Option<EngineError>,
}

/// What a look at everything stored came to.
#[derive(Default)]
struct Survey {
    plan: PurgePlan,
    points: Vec<Point>,
    /// What each point holds of it.
    holding: Vec<Vec<(RelPath, PathState)>>,
    blobs: BTreeSet<ObjectId>,
    /// Operations with what they are without the content.
    operations: Vec<(Operation, Option<Vec<Written>>)>,
}

impl Engine {
    /// What [`Engine::purge`] would take away. Nothing is written.
    ///
    /// # Errors
    /// As `purge`.
    pub fn purge_plan(&self, request: &PurgeRequest) -> Result<PurgePlan, EngineError> {
        let _locked = self.lock(LockMode::Shared)?;
        Ok(self.survey(request)?.plan)
    }

    /// Takes content out of every point, guard and operation, and out of the store. The workspace is not touched.
    ///
    /// Content that is stored once for several paths goes for all of them, except the empty file. Points stay; what
    /// they lost reads as left out ([`SkipReason::Purged`](crate::SkipReason::Purged)).
    ///
    /// # Errors
    /// Before anything is written: [`EngineError::Unfinished`] while an operation is open, [`EngineError::NotRestorable`]
    /// when a point cannot be read, since nobody can tell what it holds, [`EngineError::Stale`] when more would go than
    /// `approved` says, [`EngineError::Nothing`]. What fails after the points have been moved over is told in
    /// [`Purged::unfinished`].
    pub fn purge(&self, request: &PurgeRequest, approved: Option<&PurgePlan>) -> Result<Purged, EngineError> {
        let _locked = self.lock(LockMode::Exclusive)?;
        self.refuse_unfinished()?;
        let survey = self.survey(request)?;
        if let Some(approved) = approved {
            let known: BTreeSet<&RelPath> = approved.paths.iter().map(|path| &path.path).collect();
            let wider: Vec<RelPath> = survey.plan.paths.iter().map(|path| path.path.clone()).collect();
            let wider: Vec<RelPath> = wider.into_iter().filter(|path| !known.contains(path)).collect();
            if !wider.is_empty() {
                return Err(EngineError::Stale { paths: wider });
            }
        }
        if survey.plan.is_empty() {
            return Err(EngineError::Nothing { why: format!("no point holds {}", request.what), hint: None });
        }
        let operation = if survey.plan.paths.is_empty() && survey.plan.operations.is_empty() {
            self.pending_purges()?.first().map(|op| op.id)
        } else {
            Some(self.move_over(request, &survey)?)
        };
        let operation = operation.unwrap_or_else(|| self.fresh_operation_id());
        let mut purged =
            Purged { operation, plan: survey.plan, collected: GcReport::default(), remaining: 0, unfinished: None };
        match self.collect(false).and_then(|report| Ok((report, self.still_stored(&survey.blobs)?))) {
            Ok((report, remaining)) => {
                (purged.collected, purged.remaining) = (report, remaining);
                if report.left_damaged == 0 && remaining == 0 {
                    purged.unfinished = self.finish_purges().err();
                }
            }
            Err(error) => purged.unfinished = Some(error),
        }
        Ok(purged)
    }

    /// Looks at everything that is stored.
    fn survey(&self, request: &PurgeRequest) -> Result<Survey, EngineError> {
        let index = &self.parts.index;
        let snapshots = &self.parts.snapshots;
        let picks = &*request.picks;
        let mut survey = Survey {
            points: index.points(&PointQuery { restorable: true, ..PointQuery::default() })?,
            ..Survey::default()
        };
        let all: Vec<Snapshot> = survey.points.iter().filter_map(|point| point.snapshot).collect();
        let none = BTreeSet::new();
        survey.holding = self.holdings(&survey.points, &all, &Removal { picks, blobs: &none })?;
        survey.blobs.extend(survey.holding.iter().flatten().filter_map(|(_, state)| state.blob()));
        let operations = index.operations(&[], None)?;
        let mut written = Vec::with_capacity(operations.len());
        for operation in operations {
            let wrote = index.written(&operation.id)?;
            let picked = wrote.iter().filter(|w| picks(&w.path)).flat_map(|w| [w.before.blob(), w.after.blob()]);
            survey.blobs.extend(picked.flatten());
            survey.blobs.extend(operation.stored.iter().filter(|(path, _)| picks(path)).map(|(_, blob)| *blob));
            written.push((operation, wrote));
        }
        // The empty file has no content to take away, and every other empty file would go with it.
        survey.blobs.remove(&snapshots.hash_blob(0, &mut std::io::empty())?);
        if !survey.blobs.is_empty() {
            survey.holding = self.holdings(&survey.points, &all, &Removal { picks, blobs: &survey.blobs })?;
        }
        survey.plan.pending = written.iter().any(|(operation, _)| is_pending(operation));
        for (operation, wrote) in written {
            survey.add_operation(operation, wrote);
        }
        let mut counts: BTreeMap<&RelPath, u64> = BTreeMap::new();
        for (point, holding) in survey.points.iter().zip(&survey.holding).filter(|(_, holding)| !holding.is_empty()) {
            survey.plan.points.push((point.id, holding.len() as u64));
            for (path, _) in holding {
                *counts.entry(path).or_default() += 1;
            }
        }
        for (path, points) in counts {
            let present = self.parts.files.facts(path)?.is_some();
            survey.plan.paths.push(PurgedPath { path: path.clone(), points, same_content: !picks(path), present });
        }
        Ok(survey)
    }

    fn holdings(
        &self,
        points: &[Point],
        all: &[Snapshot],
        removal: &Removal<'_>,
    ) -> Result<Vec<Vec<(RelPath, PathState)>>, EngineError> {
        let found = self.parts.snapshots.find(all, removal);
        let whole = |(point, found): (&Point, Result<_, SnapshotError>)| {
            found.map_err(|error| match error {
                // Nobody can tell what it holds, so nobody could say that the content is gone.
                SnapshotError::Missing { .. } | SnapshotError::Damaged { .. } => {
                    EngineError::NotRestorable { point: point.id, why: error.to_string(), path: None }
                }
                other => other.into(),
            })
        };
        points.iter().zip(found).map(whole).collect()
    }

    /// Writes the snapshots anew and moves everything over to them in one batch; gives the operation.
    fn move_over(&self, request: &PurgeRequest, survey: &Survey) -> Result<OpId, EngineError> {
        let index = &self.parts.index;
        let removal = Removal { picks: &*request.picks, blobs: &survey.blobs };
        let touched: Vec<(&Point, &Vec<(RelPath, PathState)>)> =
            survey.points.iter().zip(&survey.holding).filter(|(_, holding)| !holding.is_empty()).collect();
        let old: Vec<Snapshot> = touched.iter().filter_map(|(point, _)| point.snapshot).collect();
        let new = self.parts.snapshots.without(&old, &removal)?;
        let newest = index.newest()?;
        let operation = Operation {
            id: self.fresh_operation_id(),
            ord: newest.next(),
            kind: OpKind::Purge,
            state: OpState::Partial,
            session: request.session.clone(),
            target: None,
            reverses: None,
            reversed_by: None,
            guard: None,
            plan: None,
            at: self.parts.clock.now(),
            wrote: survey.plan.paths.len() as u64,
            child: None,
            summary: format!("purged {} from {} points", request.what, survey.plan.points.len()),
            expired: false,
            stored: Vec::new(),
        };
        let id = operation.id;
        let mut ops = vec![IndexOp::PutOperation { operation: Box::new(operation) }];
        let mut moved: BTreeMap<PointId, Snapshot> = BTreeMap::new();
        for ((point, holding), snapshot) in touched.iter().zip(&new) {
            moved.insert(point.id, *snapshot);
            let leaves = holding.iter().filter(|(_, state)| !state.is_dir()).count() as u64;
            let point = Point {
                snapshot: Some(*snapshot),
                files: point.files.saturating_sub(leaves),
                skipped: point.skipped.saturating_add(tops(holding)),
                ..(*point).clone()
            };
            ops.push(IndexOp::UpdatePoint { point: Box::new(point) });
        }
        for (operation, written) in &survey.operations {
            ops.push(IndexOp::UpdateOperation { operation: Box::new(operation.clone()) });
            if let Some(written) = written {
                ops.push(IndexOp::PutWritten { operation: operation.id, written: written.clone() });
            }
        }
        let remove = self.no_longer_held(request, survey, &moved)?;
        if !remove.is_empty() {
            ops.push(IndexOp::Held { add: Vec::new(), remove });
        }
        index.apply(&Batch { follows: Some(newest), ops })?;
        Ok(id)
    }

    /// Held paths that no point holds any more: they lose their cover, so that an ignore rule counts for them.
    fn no_longer_held(
        &self,
        request: &PurgeRequest,
        survey: &Survey,
        moved: &BTreeMap<PointId, Snapshot>,
    ) -> Result<Vec<RelPath>, EngineError> {
        let lost: BTreeSet<&RelPath> = survey.plan.paths.iter().map(|path| &path.path).collect();
        let mut gone = Vec::new();
        for path in self.parts.index.held()? {
            if (request.picks)(&path) {
                gone.push(path);
            } else if lost.contains(&path) {
                let mut held = false;
                for point in &survey.points {
                    let snapshot = moved.get(&point.id).copied().or(point.snapshot);
                    let Some(snapshot) = snapshot else { continue };
                    let state = self.parts.snapshots.state(&snapshot, &path)?;
                    held |= !matches!(state, PathState::Absent | PathState::Opaque);
                }
                if !held {
                    gone.push(path);
                }
            }
        }
        Ok(gone)
    }

    fn still_stored(&self, blobs: &BTreeSet<ObjectId>) -> Result<u64, EngineError> {
        let mut remaining = 0;
        for blob in blobs {
            remaining += u64::from(self.parts.snapshots.has_blob(blob)?);
        }
        Ok(remaining)
    }

    fn pending_purges(&self) -> Result<Vec<Operation>, EngineError> {
        let all = self.parts.index.operations(&[OpKind::Purge], None)?;
        Ok(all.into_iter().filter(is_pending).collect())
    }

    /// Closes the purges that a collection has finished. Call with the exclusive lock held.
    pub(super) fn finish_purges(&self) -> Result<(), EngineError> {
        let done = |operation| Operation { state: OpState::Done, ..operation };
        let update = |operation| IndexOp::UpdateOperation { operation: Box::new(done(operation)) };
        let ops: Vec<IndexOp> = self.pending_purges()?.into_iter().map(update).collect();
        if !ops.is_empty() {
            self.parts.index.apply(&Batch { follows: None, ops })?;
        }
        Ok(())
    }
}

/// How many of these paths lie below no other: that many are listed as left out.
fn tops(holding: &[(RelPath, PathState)]) -> u64 {
    let mut top: Option<&RelPath> = None;
    let mut count = 0;
    for (path, state) in holding {
        if top.is_none_or(|dir| !path.is_below(dir)) {
            count += 1;
            top = state.is_dir().then_some(path);
        }
    }
    count
}

/// Its content may still be in the store.
fn is_pending(operation: &Operation) -> bool {
    operation.kind == OpKind::Purge && operation.state == OpState::Partial
}

impl Survey {
    /// What an operation keeps of the content, and what is left of it without.
    fn add_operation(&mut self, operation: Operation, wrote: Vec<Written>) {
        let blobs = &self.blobs;
        let goes = |state: &PathState| state.blob().is_some_and(|blob| blobs.contains(&blob));
        let is_hit = wrote.iter().any(|w| goes(&w.before) || goes(&w.after));
        let stored: Vec<_> = operation.stored.iter().filter(|(_, blob)| !blobs.contains(blob)).cloned().collect();
        if !is_hit && stored.len() == operation.stored.len() {
            return;
        }
        let without = |state: PathState| if goes(&state) { PathState::Opaque } else { state };
        let written = is_hit.then(|| {
            let each = |w: Written| Written { before: without(w.before), after: without(w.after), ..w };
            wrote.into_iter().map(each).collect()
        });
        self.plan.operations.push(operation.id);
        self.operations.push((Operation { stored, ..operation }, written));
    }
}
