//! The rewind transaction (design § 7): approve → lock → guard → re-plan → intent → apply → fork → done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{
    Batch, BoxError, Change, Decision, EngineError, EngineEvent, FsError, GuardMode, IndexError, IndexOp, Intent,
    IntentState, LockMode, ObjectId, OpId, OpKind, OpState, Operation, Outcome, PathState, Plan, Point, PointId,
    PointKind, Preview, RelPath, SaveRequest, Session, SnapshotError, Status, Temporaries, Written,
};

use crate::parallel::{FOR_DISK, each_in_parallel, map_in_parallel};

use super::attribution::Walk;
use super::fork::fork_request;
use super::restore::{Draft, Goal, Order};
use super::{Engine, Locked};

/// How a batch that opens a transaction is made again when a gap was recorded meanwhile.
const ATTEMPTS: usize = 16;

/// So many are made ready together: each keeps a descriptor open until it is synced.
const TOGETHER: usize = 256;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why applying stopped; no errors: it was told to.
#[derive(Default)]
struct Stopped {
    /// Changes that were begun, done or not.
    begun: BTreeSet<usize>,
    /// Changes that something may have been made ready for.
    prepared: BTreeSet<usize>,
    errors: Vec<FsError>,
}

/// Somebody keeps writing the path: whatever it holds, it is theirs.
fn is_being_written(error: &FsError) -> bool {
    matches!(error, FsError::Blob { source, .. } if matches!(**source, SnapshotError::ChangedWhileReading))
}

fn changed_path(error: &FsError) -> Option<&RelPath> {
    match error {
        FsError::Changed { path, .. } | FsError::NotEmpty { path } => Some(path),
        _ => None,
    }
}

/// What rolling back or recovering had to leave to somebody else, and what it stored of theirs.
#[derive(Default)]
pub(super) struct Rest {
    pub(super) left: Vec<RelPath>,
    pub(super) stored: Vec<(RelPath, ObjectId)>,
}

impl Rest {
    /// Leaves a path that others have changed to them. Any other error is handed back.
    pub(super) fn leave(&mut self, change: &Change, error: FsError) -> Result<(), FsError> {
        match error {
            FsError::Changed { path, stored, .. } => {
                self.stored.extend(stored.map(|blob| (path.clone(), blob)));
                self.left.push(path);
            }
            FsError::NotEmpty { path } | FsError::ThroughLink { path } => self.left.push(path),
            error if is_being_written(&error) => self.left.push(change.path.clone()),
            error => return Err(error),
        }
        Ok(())
    }
}

/// A transaction whose intent is durable.
struct Open {
    operation: Operation,
    guard: Point,
    intent: Intent,
}

impl Engine {
    /// Runs an order from approval to its end.
    pub(super) fn carry_out(&self, order: &Order) -> Result<Outcome, EngineError> {
        let approved = if self.parts.approver.is_settled() { None } else { Some(self.approve(order)?) };
        let locked = self.lock(LockMode::Exclusive)?;
        self.refuse_unfinished()?;
        self.refuse_open_turn(order)?;
        let draft = match self.draft(order, true) {
            Err(EngineError::Snapshot(source)) => return Err(EngineError::Guard { source }),
            other => other?,
        };
        Self::admit(order, &draft.preview)?;
        if let Some(approved) = &approved {
            refuse_wider(&approved.plan, &draft.preview.plan)?;
        }
        if draft.preview.plan.is_empty() && draft.preview.cut.is_none() && order.host_state.is_none() {
            return Ok(nothing(draft.preview));
        }
        self.refuse_unreadable(order, &draft.preview.plan)?;
        if let Some(cut) = &order.cut {
            // The host may have gone on since the plan was made.
            self.refuse_rewritten(&cut.session, cut.boundary, cut.prefix.as_ref())?;
        }
        let open = self.begin(order, &draft)?;
        self.apply(draft, &open, locked)
    }

    /// Makes a preview and asks. Anything but yes and nothing happens.
    fn approve(&self, order: &Order) -> Result<Preview, EngineError> {
        let preview = {
            let _locked = self.lock(LockMode::Shared)?;
            self.refuse_unfinished()?;
            self.draft(order, false)?.preview
        };
        Self::admit(order, &preview)?;
        if preview.plan.is_empty() && preview.cut.is_none() && order.host_state.is_none() {
            return Ok(preview);
        }
        match self.parts.approver.decide(&preview) {
            Decision::Approved => Ok(preview),
            Decision::Rejected => Err(EngineError::NotApproved { declined: true, preview: Box::new(preview) }),
            Decision::Unavailable => Err(EngineError::NotApproved { declined: false, preview: Box::new(preview) }),
        }
    }

    /// Refuses another plan than the one that was asked for, and what needs a decision or stands in the way.
    fn admit(order: &Order, preview: &Preview) -> Result<(), EngineError> {
        if order.plan_id.as_ref().is_some_and(|id| *id != preview.plan_id) {
            return Err(EngineError::Stale { paths: Vec::new() });
        }
        if !preview.plan.undecided.is_empty() {
            return Err(EngineError::Undecided { preview: Box::new(preview.clone()) });
        }
        let lenient = order.policy.skip_blocked || order.policy.guard == GuardMode::Warn;
        if !preview.plan.blocked.is_empty() && !lenient {
            return Err(EngineError::Blocked { blocked: preview.plan.blocked.clone() });
        }
        Ok(())
    }

    /// A turn that is open and at work must not be restored under its feet (design § 7 step 1).
    fn refuse_open_turn(&self, order: &Order) -> Result<(), EngineError> {
        if order.force || matches!(order.goal, Goal::Chat) {
            return Ok(());
        }
        let at_work = |session: &&Session| {
            let status = session.turn.as_ref();
            status.is_some_and(|s| {
                let open = s.ended.is_none() && s.closed.is_none() && !s.interrupted;
                // Asked of open turns alone, however many there were.
                open && s.process.as_ref().is_none_or(|process| self.parts.processes.is_alive(process))
            })
        };
        let sessions = self.parts.index.sessions()?;
        let Some((session, turn)) =
            sessions.iter().find(at_work).and_then(|s| s.turn.as_ref().map(|turn| (s.key.clone(), turn.turn)))
        else {
            return Ok(());
        };
        let latest = self.latest()?;
        let first = self.walk(&latest, &Walk::default())?.snapshot;
        self.parts.clock.sleep(Duration::from_secs(1));
        let second = self.walk(&latest, &Walk::default())?.snapshot;
        if first == second { Ok(()) } else { Err(EngineError::TurnOpen { session, turn }) }
    }

    /// Every byte that is needed must be there, and be the recorded one, before anything is touched (K-07).
    fn refuse_unreadable(&self, order: &Order, plan: &Plan) -> Result<(), EngineError> {
        let whole = |blob: Option<ObjectId>| blob.map_or(Ok(()), |blob| self.parts.snapshots.check_blob(&blob));
        let read = map_in_parallel(&plan.changes, |change| (whole(change.after.blob()), whole(change.before.blob())));
        for (change, (after, before)) in plan.changes.iter().zip(read) {
            if let Some(blob) = change.after.blob()
                && let Err(error) = after
            {
                let how = match error {
                    SnapshotError::Missing { .. } => "missing from the store",
                    SnapshotError::Damaged { .. } => "damaged in the store",
                    other => return Err(other.into()),
                };
                let why = format!("the content of {} is {how}", change.path);
                return Err(match &order.goal {
                    Goal::Point(point) => {
                        EngineError::NotRestorable { point: point.id, why, path: Some(change.path.clone()) }
                    }
                    Goal::Reverse(operation) => EngineError::Expired { operation: operation.id },
                    Goal::Chat => EngineError::Snapshot(SnapshotError::Missing { id: blob }),
                });
            }
            // What is about to be destroyed must be readable from the store, byte for byte, not only be listed there: its
            // last good copy may be the one in the workspace.
            before.map_err(|source| EngineError::Guard { source })?;
        }
        Ok(())
    }

    /// Step 3: guard, operation and intent in one durable batch.
    fn begin(&self, order: &Order, draft: &Draft) -> Result<Open, EngineError> {
        let plan = self.write_plan(&draft.preview.plan.changes)?;
        let operation = self.fresh_operation_id();
        let child = order.cut.as_ref().map(|cut| self.child_id(cut));
        let host_state = self.keep_host_state(draft.latest.record.as_ref().and_then(|record| record.host_state));
        let host_state = host_state.map_err(|source| EngineError::Guard { source })?;
        let request = SaveRequest {
            trigger: Some(verb(order.kind).to_owned()),
            ..SaveRequest::of(order.session.clone(), PointKind::Guard)
        };
        let written = written(draft);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let follows = self.parts.index.newest()?;
            let mut guard = self.point(&request, None, follows.next(), draft.started, &draft.captured, &draft.since);
            guard.operation = Some(operation);
            guard.sensitive.clone_from(&draft.sensitive);
            guard.listed = order.policy.guard != GuardMode::Off;
            guard.host_state = host_state;
            let fork = child.as_ref().and_then(|child| fork_request(order, draft, operation, guard.id, child));
            let entry = Operation {
                id: operation,
                ord: guard.ord.next(),
                kind: order.kind,
                state: OpState::Open,
                session: order.session.clone(),
                target: match &order.goal {
                    Goal::Point(point) => Some(point.id),
                    Goal::Reverse(reversed) => reversed.target,
                    Goal::Chat => None,
                },
                reverses: match &order.goal {
                    Goal::Reverse(reversed) => Some(reversed.id),
                    _ => None,
                },
                reversed_by: None,
                guard: Some(guard.id),
                plan: Some(plan),
                at: self.parts.clock.now(),
                wrote: draft.preview.plan.touched() as u64,
                child: fork.as_ref().map(|f| f.child.clone()),
                summary: summary(order, &draft.preview.plan),
                expired: false,
                stored: Vec::new(),
            };
            let intent = Intent {
                operation,
                state: IntentState::Applying,
                guard: guard.id,
                before: draft.captured.snapshot,
                plan,
                fork,
                host_state: order.host_state,
                at: entry.at,
                prefix: order.cut.as_ref().and_then(|cut| cut.prefix.clone()),
            };
            let mut ops =
                vec![IndexOp::PutPoint { point: Box::new(guard.clone()), interval: draft.since.touches.clone() }];
            ops.extend(self.record_ops(&self.parts.index.sessions()?, &draft.since, &draft.latest, guard.ord));
            ops.push(IndexOp::PutOperation { operation: Box::new(entry.clone()) });
            ops.push(IndexOp::PutWritten { operation, written: written.clone() });
            ops.push(IndexOp::OpenIntent { intent: Box::new(intent.clone()) });
            match self.parts.index.apply(&Batch { follows: Some(follows), ops }) {
                Ok(_) => {
                    self.tell(&EngineEvent::Begun { operation });
                    return Ok(Open { operation: entry, guard, intent });
                }
                Err(error @ IndexError::Conflict { .. }) => last = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.unwrap_or(IndexError::Busy).into())
    }

    /// Steps 4 to 8.
    fn apply(&self, draft: Draft, open: &Open, locked: Locked) -> Result<Outcome, EngineError> {
        let changes = &draft.preview.plan.changes;
        if let Err(stopped) = self.apply_all(changes, &Temporaries(open.operation.id)) {
            let rest = self.roll_back(open, changes, &stopped)?;
            return Err(match stopped.errors.into_iter().next() {
                Some(error) => failure(open, error, rest),
                None => EngineError::Interrupted,
            });
        }
        let touched: Vec<RelPath> = changes.iter().map(|c| c.path.clone()).collect();
        if let Err(source) = self.parts.files.sync(&touched) {
            return Err(EngineError::Stuck { operation: open.operation.id, guard: open.guard.id, source });
        }
        self.finish(draft, open, locked)
    }

    /// Applies the changes in order. Those between two changes of directories are independent of each other and go in
    /// parallel: each waits for its own content to be durable, and waiting together is faster than in turn.
    ///
    /// On the first failure, or when told to stop, nothing more is begun; says which were.
    fn apply_all(&self, changes: &[Change], temporaries: &Temporaries) -> Result<(), Stopped> {
        let total = Some(changes.len() as u64);
        let begun = Mutex::new(BTreeSet::new());
        let mut prepared = BTreeSet::new();
        let stopped: Mutex<Option<Stopped>> = Mutex::new(None);
        let one = |n: usize, change: &Change| {
            let done = lock(&begun).len() as u64;
            if self.parts.progress.tick("restoring", done, total).is_break() {
                lock(&stopped).get_or_insert_default();
                return;
            }
            lock(&begun).insert(n);
            if let Err(error) = self.parts.files.apply(change, temporaries, n, &*self.parts.snapshots) {
                lock(&stopped).get_or_insert_default().errors.push(error);
            }
        };
        let numbered: Vec<(usize, &Change)> = changes.iter().enumerate().collect();
        let independent = |(_, change): &(usize, &Change)| !change.before.is_dir() && !change.after.is_dir();
        let runs = numbered.chunk_by(|a, b| independent(a) && independent(b));
        for run in runs.flat_map(|run| run.chunks(TOGETHER)) {
            if lock(&stopped).is_some() {
                break;
            }
            if run.len() > 1 {
                prepared.extend(run.iter().map(|(n, _)| *n));
                self.parts.files.prepare(run, temporaries, &*self.parts.snapshots);
            }
            each_in_parallel(run, FOR_DISK, |(n, change)| {
                if lock(&stopped).is_none() {
                    one(*n, change);
                }
            });
        }
        let stopped = lock(&stopped).take();
        match stopped {
            None => Ok(()),
            Some(stopped) => Err(Stopped { begun: std::mem::take(&mut *lock(&begun)), prepared, ..stopped }),
        }
    }

    /// Verifies, closes the files' half, forks.
    fn finish(&self, draft: Draft, open: &Open, locked: Locked) -> Result<Outcome, EngineError> {
        let plan = draft.preview.plan;
        let stuck = |source| EngineError::Stuck { operation: open.operation.id, guard: open.guard.id, source };
        let overtaken = self.overtaken(&plan.changes).map_err(stuck)?;
        let configured = self.configure(open.intent.host_state);
        let partial = !plan.blocked.is_empty() || !overtaken.is_empty() || configured.failed.is_some();
        let mut operation = open.operation.clone();
        operation.state = if partial { OpState::Partial } else { OpState::Done };
        let mut ops = self.closing_ops(&operation, &overtaken)?;
        ops.push(end_of_files(&open.intent));
        let (id, guard) = (operation.id, open.guard.id);
        let unrecorded = |source| EngineError::Unrecorded { operation: id, guard, source };
        self.parts.index.apply(&Batch { follows: None, ops }).map_err(unrecorded)?;
        drop(locked);
        let mut notes = draft.preview.notes;
        notes.extend(configured.notes);
        notes
            .extend(overtaken.iter().map(|path| format!("{path} was changed by somebody right after it was restored")));
        let mut outcome = Outcome {
            operation: Some(operation.id),
            status: if partial { Status::Partial } else { Status::Restored },
            restored: [&plan.overwrite, &plan.recreate, &plan.mode].into_iter().flatten().cloned().collect(),
            removed: plan.remove.clone(),
            guard: Some(open.guard.id),
            target: draft.preview.target,
            cut: draft.preview.cut,
            child: None,
            context_only: !draft.preview.files,
            notes,
            stored: Vec::new(),
            plan,
        };
        outcome.restored.sort();
        if open.intent.fork.is_some() {
            outcome = self.fork_and_close(&open.intent, outcome, false)?;
        } else {
            self.tell(&EngineEvent::Ended { operation: operation.id, state: operation.state });
        }
        settled(outcome, configured.failed)
    }

    /// Paths that no longer hold what was written.
    pub(super) fn overtaken(&self, changes: &[Change]) -> Result<Vec<RelPath>, FsError> {
        let read_back = |change: &Change| self.parts.files.read_back(change, &*self.parts.snapshots);
        let (mut overtaken, mut read) = (Vec::new(), Vec::new());
        for (change, found) in changes.iter().zip(map_in_parallel(changes, read_back)) {
            let (found, version) = match found {
                Err(error) if is_being_written(&error) => (PathState::Opaque, None),
                found => found?,
            };
            if let (PathState::File { blob, mode }, Some(version)) = (found, version) {
                read.push((&change.path, mode, blob, version));
            }
            let same = found == change.after || (found.is_dir() && change.after.is_dir());
            if !same {
                overtaken.push(change.path.clone());
            }
        }
        self.parts.snapshots.remember(&read);
        Ok(overtaken)
    }

    /// The operation's end: its state, what it wrote, and the link from what it took back.
    pub(super) fn closing_ops(
        &self,
        operation: &Operation,
        overtaken: &[RelPath],
    ) -> Result<Vec<IndexOp>, EngineError> {
        let mut ops = Vec::new();
        if !overtaken.is_empty() {
            // Only paths that hold the planned state count as written (design § 2, model F11).
            let mut written = self.parts.index.written(&operation.id)?;
            written.retain(|w| !overtaken.contains(&w.path));
            ops.push(IndexOp::PutWritten { operation: operation.id, written });
        }
        ops.push(IndexOp::UpdateOperation { operation: Box::new(operation.clone()) });
        if let Some(reversed) = operation.reverses
            && let Some(mut reversed) = self.parts.index.operation(&reversed)?
        {
            reversed.reversed_by = Some(operation.id);
            let original = reversed.reverses.filter(|_| operation.kind == OpKind::Redo);
            ops.push(IndexOp::UpdateOperation { operation: Box::new(reversed) });
            if let Some(mut original) = original.map(|id| self.parts.index.operation(&id)).transpose()?.flatten() {
                original.reversed_by = None;
                ops.push(IndexOp::UpdateOperation { operation: Box::new(original) });
            }
        }
        Ok(ops)
    }

    /// Puts back what was begun; says which paths somebody else changed meanwhile.
    ///
    /// A change that failed may have been half made: it is settled first, like after a crash.
    fn roll_back(&self, open: &Open, changes: &[Change], stopped: &Stopped) -> Result<Rest, EngineError> {
        let mut rest = Rest::default();
        for error in &stopped.errors {
            if let FsError::Changed { path, stored: Some(blob), .. } = error {
                rest.stored.push((path.clone(), *blob));
            }
        }
        if let Err(source) = self.put_back(open, changes, stopped, &mut rest) {
            // Whatever was stored for others is kept before anything else is said.
            self.keep_stored(&open.operation, &rest.stored)?;
            return Err(EngineError::Stuck { operation: open.operation.id, guard: open.guard.id, source });
        }
        // The path that stopped it all is named by itself.
        rest.left.retain(|path| !stopped.errors.iter().any(|error| changed_path(error) == Some(path)));
        self.close_rolled_back(&open.operation, &rest.stored)?;
        Ok(rest)
    }

    fn put_back(&self, open: &Open, changes: &[Change], stopped: &Stopped, rest: &mut Rest) -> Result<(), FsError> {
        let temporaries = Temporaries(open.operation.id);
        let (files, blobs) = (&self.parts.files, &*self.parts.snapshots);
        let (begun, others): (Vec<_>, Vec<_>) =
            changes.iter().enumerate().partition(|(n, _)| stopped.begun.contains(n));
        for (n, change) in others.into_iter().filter(|(n, _)| stopped.prepared.contains(n)) {
            files.settle(change, &temporaries, n, blobs)?;
        }
        for (n, change) in begun.iter().copied().rev() {
            let settled = files.settle(change, &temporaries, n, blobs)?;
            rest.stored.extend(settled.stored.map(|blob| (change.path.clone(), blob)));
            if let Err(error) = files.apply(&change.inverse(), &temporaries, n, blobs) {
                rest.leave(change, error)?;
            }
        }
        let touched: Vec<RelPath> = begun.iter().map(|(_, change)| change.path.clone()).collect();
        files.sync(&touched)
    }

    /// Writes down content of others that an operation stored, so that no collection removes it.
    pub(super) fn keep_stored(&self, operation: &Operation, stored: &[(RelPath, ObjectId)]) -> Result<(), EngineError> {
        if stored.is_empty() {
            return Ok(());
        }
        let stored = [operation.stored.as_slice(), stored].concat();
        let kept = Operation { stored, ..operation.clone() };
        let ops = vec![IndexOp::UpdateOperation { operation: Box::new(kept) }];
        self.parts.index.apply(&Batch { follows: None, ops })?;
        Ok(())
    }

    /// Closes a transaction that was taken back: it counts for nothing.
    ///
    /// `stored`: content of others that could not stay; the operation keeps it from being collected.
    pub(super) fn close_rolled_back(
        &self,
        operation: &Operation,
        stored: &[(RelPath, ObjectId)],
    ) -> Result<(), EngineError> {
        let stored = [operation.stored.as_slice(), stored].concat();
        let rolled = Operation { state: OpState::RolledBack, stored, ..operation.clone() };
        let ops = vec![
            IndexOp::UpdateOperation { operation: Box::new(rolled) },
            IndexOp::CloseIntent { operation: operation.id },
        ];
        self.parts.index.apply(&Batch { follows: None, ops })?;
        self.tell(&EngineEvent::Ended { operation: operation.id, state: OpState::RolledBack });
        Ok(())
    }

    fn write_plan(&self, changes: &[Change]) -> Result<ObjectId, EngineError> {
        let text = serde_json::to_vec(changes).map_err(|source| SnapshotError::Other {
            what: "the plan cannot be written down",
            source: source.into(),
        })?;
        let put = self.parts.snapshots.put_blob(text.len() as u64, &mut &*text);
        put.map_err(|source| EngineError::Guard { source })
    }

    pub(super) fn read_plan(&self, id: &ObjectId) -> Result<Vec<Change>, EngineError> {
        let mut text = Vec::new();
        let broken = |source: crate::BoxError| SnapshotError::Damaged { id: *id, source };
        let mut reader = self.parts.snapshots.open_blob(id)?;
        std::io::Read::read_to_end(&mut reader, &mut text).map_err(|e| broken(e.into()))?;
        Ok(serde_json::from_slice(&text).map_err(|e| broken(e.into()))?)
    }
}

/// An operation that did everything but the host's configuration is partial, whatever its other half came to.
pub(super) fn settled(outcome: Outcome, failed: Option<BoxError>) -> Result<Outcome, EngineError> {
    match failed {
        Some(source) => Err(EngineError::ConfigFailed { outcome: Box::new(outcome), source }),
        None => Ok(outcome),
    }
}

/// What the plan writes, one entry a path: a directory that is closed last appears twice in the plan.
fn written(draft: &Draft) -> Vec<Written> {
    let mut written: BTreeMap<&RelPath, Written> = BTreeMap::new();
    for change in &draft.preview.plan.changes {
        let first = || Written {
            path: change.path.clone(),
            before: change.before,
            after: change.after,
            history: draft.target_histories.get(&change.path).cloned().unwrap_or_default().into_iter().collect(),
        };
        written.entry(&change.path).or_insert_with(first).after = change.after;
    }
    written.into_values().collect()
}

/// Where the intent goes when the files' half is done.
pub(super) fn end_of_files(intent: &Intent) -> IndexOp {
    match &intent.fork {
        None => IndexOp::CloseIntent { operation: intent.operation },
        Some(_) => IndexOp::AdvanceIntent { operation: intent.operation, from: intent.state, to: IntentState::Forking },
    }
}

fn verb(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Undo => "undo",
        OpKind::Redo => "redo",
        _ => "restore",
    }
}

fn summary(order: &Order, plan: &Plan) -> String {
    let to = match &order.goal {
        Goal::Point(point) => format!("to {}", point.id.short()),
        Goal::Reverse(operation) => format!("of {}", operation.id.short()),
        Goal::Chat => "of the conversation".to_owned(),
    };
    format!("{} {to}: {}", verb(order.kind), count(plan.touched()))
}

pub(super) fn count(n: usize) -> String {
    if n == 1 { "1 path".to_owned() } else { format!("{n} paths") }
}

fn nothing(preview: Preview) -> Outcome {
    Outcome {
        operation: None,
        status: Status::Nothing,
        restored: Vec::new(),
        removed: Vec::new(),
        guard: None,
        target: preview.target,
        cut: None,
        child: None,
        context_only: false,
        notes: preview.notes,
        stored: Vec::new(),
        plan: preview.plan,
    }
}

/// Re-planned under the lock, a plan may only do what was approved, or less.
fn refuse_wider(approved: &Plan, now: &Plan) -> Result<(), EngineError> {
    let known: BTreeMap<&RelPath, (&PathState, &PathState)> =
        approved.changes.iter().map(|c| (&c.path, (&c.before, &c.after))).collect();
    let wider = |c: &&Change| known.get(&c.path) != Some(&(&c.before, &c.after));
    let paths: Vec<RelPath> = now.changes.iter().filter(wider).map(|c| c.path.clone()).collect();
    if paths.is_empty() { Ok(()) } else { Err(EngineError::Stale { paths }) }
}

fn failure(open: &Open, error: FsError, rest: Rest) -> EngineError {
    let (operation, guard): (OpId, PointId) = (open.operation.id, open.guard.id);
    let Rest { left, stored } = rest;
    match error {
        FsError::Changed { path, .. } | FsError::NotEmpty { path } => {
            EngineError::Changed { path, left, stored, operation, guard }
        }
        source => EngineError::Apply { operation, guard, source },
    }
}
