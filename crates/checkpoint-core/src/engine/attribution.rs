//! What is known of the workspace's state: the latest record, what a later operation left, what changed since.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::history::Interval;
use crate::{
    Batch, CaptureRequest, Captured, Change, EngineError, IndexError, IndexOp, Intent, Member, OpKind, OpState,
    Operation, PathState, Point, PointKind, PointQuery, RelPath, Session, Snapshot, SnapshotError, Temporaries, Touch,
    VerifyLevel, Written,
};

use super::Engine;

/// The latest known state (design § 2): the newest record, with what a later operation left at the paths it wrote.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) record: Option<Point>,
    /// What that operation left: the planned states, or after a rollback those before.
    pub(super) left: Vec<(RelPath, PathState)>,
    pub(super) operation: Option<Operation>,
    pub(super) intent: Option<Intent>,
    pub(super) sessions: Vec<Session>,
    /// A newer record cannot be read: who changed what since this one is unknown.
    pub(super) degraded: bool,
}

impl Latest {
    fn snapshot(&self) -> Option<Snapshot> {
        self.record.as_ref().and_then(|point| point.snapshot)
    }
}

/// How a walk is made.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Paths captured whatever a rule says.
    pub(super) include: BTreeSet<RelPath>,
    /// Whether objects are stored.
    pub(super) write: bool,
    /// Whether a watcher may stand for the walk.
    pub(super) watched: bool,
    /// When to give up.
    pub(super) deadline: Option<std::time::Duration>,
    /// What a plan destroys is guarded even where the store's own ceiling is reached; the disk's floor holds.
    pub(super) over_budget: bool,
}

/// What changed since the latest known state, and who may have done it.
#[derive(Clone, Debug, Default)]
pub(super) struct Since {
    /// By path: from the latest known state to now.
    pub(super) touches: Vec<Touch>,
    /// Paths that the latest record held and that are gone.
    pub(super) departed: Vec<RelPath>,
    /// Paths that the latest record did not hold and that are there.
    pub(super) arrived: Vec<RelPath>,
    /// Paths that changed after the end of the turn that is being closed.
    pub(super) late: Vec<RelPath>,
}

impl Engine {
    /// Reads the latest known state. Call with a lock held.
    pub(super) fn latest(&self) -> Result<Latest, EngineError> {
        let index = &self.parts.index;
        let (record, degraded) = self.newest_sound_record()?;
        let operation = self.later_operation(record.as_ref())?;
        let left = match &operation {
            Some(op) => {
                let rolled_back = op.state == OpState::RolledBack;
                let state = |w: Written| if rolled_back { (w.path, w.before) } else { (w.path, w.after) };
                index.written(&op.id)?.into_iter().map(state).collect()
            }
            None => Vec::new(),
        };
        Ok(Latest { record, left, operation, intent: index.open_intent()?, sessions: index.sessions()?, degraded })
    }

    /// The newest record that can be read, and whether a newer one cannot.
    fn newest_sound_record(&self) -> Result<(Option<Point>, bool), EngineError> {
        let mut query = PointQuery {
            kinds: PointKind::ALL_BUT_IMPORTS.to_vec(),
            restorable: true,
            newest_first: true,
            limit: Some(1),
            ..PointQuery::default()
        };
        let first = self.parts.index.points(&query)?.pop();
        if first.as_ref().is_none_or(|point| point.damaged.is_none()) {
            return Ok((first, false));
        }
        query.limit = None;
        Ok((self.parts.index.points(&query)?.into_iter().find(|point| point.damaged.is_none()), true))
    }

    /// What changed since cannot be told because the record before cannot be read: it is marked as damaged, and whoever
    /// asked looks again, with the record before that.
    fn set_aside(&self, record: &Point, error: SnapshotError) -> EngineError {
        let (SnapshotError::Missing { .. } | SnapshotError::Damaged { .. }) = error else { return error.into() };
        // The other side of the comparison may be the one that cannot be read.
        let Err(error) = record.snapshot.map_or(Ok(()), |s| self.parts.snapshots.verify(&s, VerifyLevel::Reachable))
        else {
            return error.into();
        };
        let damaged = Point { damaged: Some(error.to_string()), ..record.clone() };
        let ops = vec![IndexOp::UpdatePoint { point: Box::new(damaged) }];
        match self.parts.index.apply(&Batch { follows: None, ops }) {
            Ok(_) => EngineError::Index(IndexError::Conflict { expected: record.ord, found: record.ord }),
            Err(failed) => {
                tracing::warn!(%failed, "a damaged record could not be marked");
                error.into()
            }
        }
    }

    /// The operation that ended after the newest record was made: a record made while it was unfinished saw only a part
    /// of what it did.
    fn later_operation(&self, record: Option<&Point>) -> Result<Option<Operation>, EngineError> {
        let newest = self.parts.index.operations(&[OpKind::Restore, OpKind::Undo, OpKind::Redo], Some(1))?.pop();
        Ok(newest.filter(|op| {
            let later =
                record.is_none_or(|point| op.ord > point.ord || (point.under_intent && point.operation == Some(op.id)));
            later && op.state != OpState::Open
        }))
    }

    /// Walks the workspace.
    pub(super) fn walk(&self, latest: &Latest, how: &Walk) -> Result<Captured, EngineError> {
        let mut policy = self.parts.capture.clone();
        policy.over_budget = how.over_budget;
        let held = self.parts.index.held()?;
        let not_held: BTreeSet<RelPath> =
            latest.record.iter().flat_map(|point| point.sensitive.iter().cloned()).collect();
        let mut temporaries: Vec<Vec<u8>> = latest.intent.iter().map(|i| Temporaries(i.operation).prefix()).collect();
        for other in &self.parts.overlaps {
            temporaries.extend(other.index.open_intent()?.map(|i| Temporaries(i.operation).prefix()));
        }
        Ok(self.parts.snapshots.capture(&CaptureRequest {
            base: latest.snapshot(),
            held: &held,
            not_held: &not_held,
            include: &how.include,
            temporaries: &temporaries,
            policy: &policy,
            write: how.write,
            watched: how.watched,
            deadline: how.deadline,
            progress: &*self.parts.progress,
        })?)
    }

    /// What changed between the latest known state and `now`, each path with those who may have changed it.
    pub(super) fn since(
        &self,
        latest: &Latest,
        now: &Snapshot,
        interval: &Interval,
        late: bool,
    ) -> Result<Since, EngineError> {
        let Some((record, before)) = latest.record.as_ref().and_then(|point| Some((point, point.snapshot?))) else {
            // The first record: there is nothing before it to tell from.
            return Ok(Since::default());
        };
        let mut waiting: BTreeMap<RelPath, Vec<Member>> = BTreeMap::new();
        for touch in self.parts.index.waiting()? {
            waiting.entry(touch.path).or_default().extend(touch.by);
        }
        let mut since = Since::default();
        let mut changes: BTreeMap<RelPath, Change> = BTreeMap::new();
        self.parts
            .snapshots
            .diff(&before, now, &mut |change| {
                if change.after.is_absent() && !change.before.is_dir() {
                    since.departed.push(change.path.clone());
                } else if change.before.is_absent() && !change.after.is_dir() {
                    since.arrived.push(change.path.clone());
                }
                changes.insert(change.path.clone(), change);
                ControlFlow::Continue(())
            })
            .map_err(|error| self.set_aside(record, error))?;
        self.overlay_operation(latest, now, &mut changes)?;
        self.leave_out_planned(latest, &mut changes)?;
        for (path, change) in changes {
            let ctime = if interval.needs_times() { self.changed_at(&path, &change.after)? } else { None };
            let mut by = interval.members(ctime);
            // What a record that was dropped said of the path has no other place yet (model F13).
            by.extend(waiting.get(&path).into_iter().flatten().cloned());
            by.extend(latest.degraded.then_some(Member::Outside));
            by.sort();
            by.dedup();
            if late && by.contains(&Member::Outside) {
                since.late.push(path.clone());
            }
            since.touches.push(Touch { path, by });
        }
        Ok(since)
    }

    /// What the latest operation left is known: only what differs from that has changed.
    fn overlay_operation(
        &self,
        latest: &Latest,
        now: &Snapshot,
        changes: &mut BTreeMap<RelPath, Change>,
    ) -> Result<(), EngineError> {
        for (path, left) in &latest.left {
            if *left == PathState::Opaque {
                // What it left was purged: there is nothing to compare with.
                continue;
            }
            let present = match changes.get(path) {
                Some(change) => change.after,
                None => self.parts.snapshots.state(now, path)?,
            };
            if present == *left || (present.is_dir() && left.is_dir()) {
                changes.remove(path);
            } else {
                changes.insert(path.clone(), Change { path: path.clone(), before: *left, after: present });
            }
        }
        Ok(())
    }

    /// A record made under an open intent does not list planned paths that hold before or after (model F11).
    fn leave_out_planned(&self, latest: &Latest, changes: &mut BTreeMap<RelPath, Change>) -> Result<(), EngineError> {
        if let Some(intent) = &latest.intent {
            for planned in self.read_plan(&intent.plan)? {
                if changes.get(&planned.path).is_some_and(|c| c.after == planned.before || c.after == planned.after) {
                    changes.remove(&planned.path);
                }
            }
        }
        Ok(())
    }

    /// When a path changed, in milliseconds; for a missing path its directory's time.
    fn changed_at(&self, path: &RelPath, present: &PathState) -> Result<Option<i64>, EngineError> {
        let millis = |ns: i128| i64::try_from(ns.div_euclid(1_000_000)).unwrap_or(i64::MAX);
        if !present.is_absent()
            && let Some(facts) = self.parts.files.facts(path)?
        {
            return Ok(Some(millis(facts.ctime_ns)));
        }
        for dir in path.ancestors() {
            if let Some(facts) = self.parts.files.facts(&dir)? {
                return Ok(Some(millis(facts.ctime_ns)));
            }
        }
        Ok(Some(millis(self.parts.files.root_facts()?.ctime_ns)))
    }
}
