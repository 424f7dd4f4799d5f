//! Names, removal, retention, verification, garbage collection.

use std::{collections::BTreeSet, time::Duration};

use crate::retention::{Stock, is_due, prune};
use crate::{
    Batch, BoundarySeq, Damage, DropReason, EngineError, EngineEvent, GcReport, IndexError, IndexOp, LiveObjects,
    LockError, LockMode, Name, OpState, Operation, Point, PointId, PointKind, PointQuery, SessionKey, Snapshot,
    SnapshotError, Verified, VerifyLevel, check_name,
};

use super::Engine;

/// How often retention plans anew when others drop the same points.
const ATTEMPTS: usize = 8;

/// Which points to drop.
#[derive(Clone, Debug)]
pub enum DropWhich {
    /// These.
    Points(Vec<PointId>),
    /// All of a session.
    Session(SessionKey),
    /// All of the workspace.
    All,
}

impl Engine {
    /// Pins a point with a label, or moves the label there. Where the point's session has a door, the name stores where
    /// its conversation would be cut, and a digest of the log up to there.
    pub fn name(&self, point: &Point, label: &str, note: Option<String>) -> Result<Name, EngineError> {
        check_name(label).map_err(|why| EngineError::BadName { label: label.to_owned(), why })?;
        let cut = self.name_cut(point);
        let name = Name {
            label: label.to_owned(),
            point: point.id,
            session: point.session.clone(),
            boundary: cut.as_ref().and_then(|cut| cut.boundary),
            note,
            at: self.parts.clock.now(),
            prefix: cut.and_then(|cut| cut.prefix),
        };
        self.parts.index.apply(&Batch { follows: None, ops: vec![IndexOp::PutName { name: name.clone() }] })?;
        Ok(name)
    }

    /// Keeps a label of 003 on the point that was recorded at the boundary it names, with that boundary. Gives `None`
    /// where there is none, where the label is no name of ours, or where it stands on another session's point: names
    /// are the workspace's, labels of 003 a session's own.
    pub fn name_boundary(
        &self,
        session: &SessionKey,
        boundary: BoundarySeq,
        label: &str,
        note: Option<String>,
    ) -> Result<Option<Name>, EngineError> {
        if check_name(label).is_err() {
            return Ok(None);
        }
        if self.parts.index.names()?.iter().any(|name| name.label == label && name.session != *session) {
            return Ok(None);
        }
        let ends = PointQuery {
            sessions: vec![session.clone()],
            kinds: vec![PointKind::TurnEnd],
            restorable: true,
            newest_first: true,
            ..PointQuery::default()
        };
        let at = |point: &Point| point.position.as_ref().is_some_and(|position| position.seq == boundary.seq());
        let Some(point) = self.parts.index.points(&ends)?.into_iter().find(at) else { return Ok(None) };
        let name = Name {
            label: label.to_owned(),
            point: point.id,
            session: session.clone(),
            boundary: Some(boundary),
            note,
            at: self.parts.clock.now(),
            // Without it the name is used all the same, only less is checked then.
            prefix: self.parts.sessions.prefix_digest(session, boundary.seq()).ok(),
        };
        self.parts.index.apply(&Batch { follows: None, ops: vec![IndexOp::PutName { name: name.clone() }] })?;
        Ok(Some(name))
    }

    /// Removes a label. The point stays.
    pub fn unname(&self, label: &str) -> Result<(), EngineError> {
        let names = self.parts.index.names()?;
        if !names.iter().any(|n| n.label == label) {
            return Err(EngineError::NotFound {
                given: label.to_owned(),
                choices: names.into_iter().take(10).map(|n| n.label).collect(),
            });
        }
        self.parts.index.apply(&Batch { follows: None, ops: vec![IndexOp::DropName { label: label.to_owned() }] })?;
        Ok(())
    }

    /// Removes points. Guards of kept operations stay, unless they are damaged: dropping them would make an undo impossible.
    pub fn drop_points(&self, which: &DropWhich) -> Result<Vec<PointId>, EngineError> {
        let _locked = self.lock(LockMode::Exclusive)?;
        self.refuse_unfinished()?;
        let points = self.parts.index.points(&PointQuery::default())?;
        let wanted = |p: &&Point| match which {
            DropWhich::Points(ids) => ids.contains(&p.id),
            DropWhich::Session(session) => p.session == *session && p.kind != PointKind::Guard,
            DropWhich::All => p.kind != PointKind::Guard,
        };
        let operations = self.parts.index.operations(&[], None)?;
        let mut dropped = Vec::new();
        let mut ops = Vec::new();
        for point in points.iter().filter(wanted) {
            let guards = operations.iter().find(|op| {
                op.guard == Some(point.id) && point.damaged.is_none() && !op.expired && op.state != OpState::RolledBack
            });
            if let Some(operation) = guards {
                let why = format!("it is what operation {} goes back to", operation.id.short());
                return Err(EngineError::Nothing {
                    why: format!("point {} stays: {why}", point.id.short()),
                    hint: None,
                });
            }
            ops.push(IndexOp::DropPoint { id: point.id, reason: DropReason::User });
            dropped.push(point.id);
        }
        if ops.is_empty() {
            return Err(EngineError::Nothing { why: "there is nothing to drop".to_owned(), hint: None });
        }
        self.parts.index.apply(&Batch { follows: None, ops })?;
        for point in &dropped {
            self.tell(&EngineEvent::Dropped { point: *point });
        }
        Ok(dropped)
    }

    /// Whether it is time for [`Engine::prune`], after a capture or at the end of a turn: with few points at each end
    /// of a turn (unless [`Quota::on_turn_end`](crate::Quota) says no) and every 16th place; with many less often, so that the captures between two looks at all points grow
    /// with their number.
    pub fn prune_is_due(&self, turn_ended: bool) -> Result<bool, EngineError> {
        let newest = PointQuery { newest_first: true, limit: Some(1), ..PointQuery::default() };
        let Some(newest) = self.parts.index.points(&newest)?.pop() else { return Ok(false) };
        // Ids are random, so this is one point in 256.
        let sample = PointQuery { id_prefix: Some("00".to_owned()), limit: Some(256), ..PointQuery::default() };
        let sample = self.parts.index.points(&sample)?.len() as u64;
        Ok(is_due(sample, turn_ended && self.parts.quota.on_turn_end, &newest))
    }

    /// Applies retention (design § 8). Cheap when nothing is over a limit; never part of a transaction, and nothing
    /// while somebody has the workspace for himself: a purge or a restore works on the points that it has read.
    pub fn prune(&self, own_bytes: u64) -> Result<Vec<PointId>, EngineError> {
        let _held = match self.parts.lock.acquire(LockMode::Shared, Duration::ZERO) {
            Err(LockError::Busy) => return Ok(Vec::new()),
            held => held?,
        };
        for _ in 1..ATTEMPTS {
            match self.prune_once(own_bytes) {
                // Another process has dropped one of them meanwhile.
                Err(EngineError::Index(IndexError::Misfit { .. })) => {}
                done => return done,
            }
        }
        self.prune_once(own_bytes)
    }

    fn prune_once(&self, own_bytes: u64) -> Result<Vec<PointId>, EngineError> {
        if self.parts.index.open_intent()?.is_some() {
            return Ok(Vec::new());
        }
        let points = self.parts.index.points(&PointQuery::default())?;
        let operations = self.parts.index.operations(&[], None)?;
        let pinned: BTreeSet<PointId> = self.parts.index.names()?.into_iter().map(|name| name.point).collect();
        let stock = Stock {
            points: &points,
            operations: &operations,
            pinned: &pinned,
            bytes: own_bytes,
            now: self.parts.clock.now(),
        };
        let pruning = prune(&stock, &self.parts.quota);
        let mut ops: Vec<IndexOp> =
            pruning.points.iter().map(|(id, _)| IndexOp::DropPoint { id: *id, reason: DropReason::Quota }).collect();
        for operation in operations.into_iter().filter(|op| pruning.expired.contains(&op.id)) {
            ops.push(IndexOp::UpdateOperation { operation: Box::new(Operation { expired: true, ..operation }) });
        }
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        self.parts.index.apply(&Batch { follows: None, ops })?;
        let dropped: Vec<PointId> = pruning.points.into_iter().map(|(id, _)| id).collect();
        for point in &dropped {
            self.tell(&EngineEvent::Dropped { point: *point });
        }
        Ok(dropped)
    }

    /// Removes objects that nothing needs any more. With `dry_run` only counts them.
    ///
    /// Refuses, before anything is removed, when a tree that a point needs is missing: what is left of that point may
    /// still be worth something. `verify` names such points, `drop_points` gives them up.
    pub fn gc(&self, dry_run: bool) -> Result<GcReport, EngineError> {
        let _locked = self.lock(if dry_run { LockMode::Shared } else { LockMode::Exclusive })?;
        let report = self.collect(dry_run)?;
        if !dry_run && report.left_damaged == 0 {
            // Nothing that no root needs is left, so what a purge could not finish is finished.
            self.finish_purges()?;
        }
        Ok(report)
    }

    /// [`Engine::gc`] with the lock held.
    pub(super) fn collect(&self, dry_run: bool) -> Result<GcReport, EngineError> {
        if self.parts.index.newest()? == crate::Ord(0) {
            // An index that knows of nothing gives no leave to remove anything.
            return Ok(GcReport::default());
        }
        let mut live = LiveObjects::default();
        for point in self.parts.index.points(&PointQuery { restorable: true, ..PointQuery::default() })? {
            live.snapshots.extend(point.snapshot);
            live.blobs.extend(point.host_state);
        }
        live.blobs.extend(
            self.parts.index.operations(&[], None)?.into_iter().filter(|op| !op.expired).filter_map(|op| op.plan),
        );
        // An open intent keeps what it needs to go either way (model F17).
        if let Some(intent) = self.parts.index.open_intent()? {
            live.blobs.push(intent.plan);
            live.blobs.extend(intent.host_state);
            live.snapshots.push(intent.before);
            for change in self.read_plan(&intent.plan)? {
                live.blobs.extend(change.before.blob());
                live.blobs.extend(change.after.blob());
            }
        }
        for operation in self.parts.index.operations(&[], None)?.into_iter().filter(|op| !op.expired) {
            live.blobs.extend(operation.stored.iter().map(|(_, blob)| *blob));
            for written in self.parts.index.written(&operation.id)? {
                live.blobs.extend(written.before.blob());
                live.blobs.extend(written.after.blob());
            }
        }
        Ok(self.parts.snapshots.gc(&live, dry_run, &*self.parts.progress)?)
    }

    /// Joins small pieces of the store when captures have left too many (design § 4), and says how many went. For after
    /// the answer: with nothing to do it costs nothing, and while anybody else works on the workspace it does nothing.
    /// Only objects are moved, so an open intent is no obstacle.
    pub fn consolidate(&self) -> Result<u64, EngineError> {
        if !self.parts.snapshots.is_scattered()? {
            return Ok(0);
        }
        let _held = match self.parts.lock.acquire(LockMode::Exclusive, Duration::ZERO) {
            Err(LockError::Busy) => return Ok(0),
            held => held?,
        };
        Ok(self.parts.snapshots.consolidate(&*self.parts.progress)?)
    }

    /// Checks the index and every point, and remembers which cannot be restored. A damaged index is an error.
    pub fn verify(&self, level: VerifyLevel) -> Result<Verified, EngineError> {
        let _locked = self.lock(LockMode::Shared)?;
        self.parts.index.check()?;
        let mut verified = Verified::default();
        let mut ops = Vec::new();
        let points = self.parts.index.points(&PointQuery { restorable: true, ..PointQuery::default() })?;
        let snapshots: Vec<Snapshot> = points.iter().filter_map(|point| point.snapshot).collect();
        let verdicts = self.parts.snapshots.verify_all(&snapshots, level);
        for (point, verdict) in points.into_iter().filter(|point| point.snapshot.is_some()).zip(verdicts) {
            verified.checkpoints += 1;
            let reason = match verdict {
                Ok(()) => None,
                Err(error @ (SnapshotError::Missing { .. } | SnapshotError::Damaged { .. })) => Some(error.to_string()),
                Err(error) => return Err(error.into()),
            };
            if let Some(reason) = &reason {
                verified.damaged.push(Damage { point: point.id, reason: reason.clone() });
            }
            if point.damaged != reason {
                ops.push(IndexOp::UpdatePoint { point: Box::new(Point { damaged: reason, ..point }) });
            }
        }
        if level == VerifyLevel::Rehash {
            // Last: to tell which objects are hit, the points are asked first.
            verified.store = self.parts.snapshots.verify_store()?;
        }
        if !ops.is_empty() {
            // A store that may not be written can be verified all the same.
            if let Err(error) = self.parts.index.apply(&Batch { follows: None, ops }) {
                tracing::warn!(%error, "the result could not be recorded");
            }
        }
        Ok(verified)
    }

    /// When protection was lost: the newest gap, if nothing was captured since.
    pub fn unprotected(&self) -> Result<Option<Point>, EngineError> {
        let kinds = PointKind::ALL_BUT_IMPORTS.to_vec();
        let newest = PointQuery { kinds, newest_first: true, limit: Some(1), ..PointQuery::default() };
        let newest = self.parts.index.points(&newest)?.pop();
        Ok(newest.filter(|point| point.kind == PointKind::Gap))
    }
}
