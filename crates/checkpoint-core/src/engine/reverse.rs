//! Undo and redo: back from an operation to what each path held before it (design § 7, "Undo").

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::{
    Change, EngineError, FilesWhere, OpId, OpKind, OpState, Operation, Outcome, PathState, PointKind, PointQuery,
    RelPath, ReverseRequest, SessionKey, Snapshot,
};

use super::Engine;
use super::restore::{Goal, Order};

impl Engine {
    /// Takes the newest restore back that finished and is not undone, or the one that is named.
    pub fn undo(&self, request: &ReverseRequest) -> Result<Outcome, EngineError> {
        self.refuse_interrupted()?;
        let order = self.undo_order(request)?;
        self.carry_out(&order)
    }

    /// Restores what the last undo took back. A new restore clears it.
    pub fn redo(&self, request: &ReverseRequest) -> Result<Outcome, EngineError> {
        self.refuse_interrupted()?;
        let order = self.redo_order(request)?;
        self.carry_out(&order)
    }

    pub(super) fn undo_order(&self, request: &ReverseRequest) -> Result<Order, EngineError> {
        let operation = match &request.operation {
            Some(text) => self.find_operation(text)?,
            None => self.newest_restore(request.session.as_ref())?,
        };
        if let Some(by) = operation.reversed_by {
            return Err(EngineError::Nothing {
                why: format!("operation {} is undone already, by {}", operation.id.short(), by.short()),
                hint: Some("rwd redo brings it back".to_owned()),
            });
        }
        let kind = if operation.kind == OpKind::Undo { OpKind::Redo } else { OpKind::Undo };
        self.reverse_order(kind, operation, request)
    }

    fn redo_order(&self, request: &ReverseRequest) -> Result<Order, EngineError> {
        let nothing = || EngineError::Nothing { why: "nothing to redo".to_owned(), hint: None };
        let all = self.parts.index.operations(&[OpKind::Restore, OpKind::Undo, OpKind::Redo], None)?;
        let mine = |op: &&Operation| request.session.as_ref().is_none_or(|s| op.session == *s);
        let finished = all.iter().filter(mine).filter(|op| matches!(op.state, OpState::Done | OpState::Partial));
        let newest = finished
            .into_iter()
            .find(|op| op.kind == OpKind::Restore || (op.kind == OpKind::Undo && op.reversed_by.is_none()));
        let undo = newest.filter(|op| op.kind == OpKind::Undo).ok_or_else(nothing)?;
        self.reverse_order(OpKind::Redo, undo.clone(), request)
    }

    fn reverse_order(
        &self,
        kind: OpKind,
        operation: Operation,
        request: &ReverseRequest,
    ) -> Result<Order, EngineError> {
        match operation.state {
            // The intent says how far it is; without one there is nothing to go by.
            OpState::Open => {
                self.refuse_unfinished()?;
                return Err(EngineError::Unfinished { operation: operation.id, forking: false });
            }
            OpState::RolledBack => {
                return Err(EngineError::Nothing {
                    why: format!("operation {} was rolled back", operation.id.short()),
                    hint: None,
                });
            }
            OpState::Done | OpState::Partial => {}
        }
        if operation.expired {
            return Err(EngineError::Expired { operation: operation.id });
        }
        let mut policy = request.policy.clone();
        policy.exact = true;
        let stays = |child| {
            format!("the child session {child} stays; to go on where it was forked: session {}", operation.session)
        };
        let notes = operation.child.iter().map(stays).collect();
        let session = request.session.clone().unwrap_or_else(|| operation.session.clone());
        let goal = Goal::Reverse(Box::new(operation));
        let host_state = if request.config { Some(self.host_state_of(&goal)?) } else { None };
        Ok(Order {
            kind,
            session,
            goal,
            policy,
            cut: None,
            notes,
            plan_id: request.plan.clone(),
            force: request.force,
            fork_anyway: false,
            ends_there: false,
            files: FilesWhere::Everywhere,
            by_log_alone: None,
            host_state,
        })
    }

    /// The operation that bare `undo` means; refuses where an agent's work is newer (design § 7).
    fn newest_restore(&self, session: Option<&SessionKey>) -> Result<Operation, EngineError> {
        let all = self.parts.index.operations(&[OpKind::Restore, OpKind::Undo, OpKind::Redo], None)?;
        let mine = |op: &&Operation| session.is_none_or(|s| op.session == *s);
        let done: Vec<&Operation> =
            all.iter().filter(mine).filter(|op| matches!(op.state, OpState::Done | OpState::Partial)).collect();
        let newest = done.first().map(|op| op.ord);
        let work = PointQuery {
            after: newest,
            // What was imported is older than its place.
            kinds: PointKind::ALL_BUT_IMPORTS.to_vec(),
            sessions: session.cloned().into_iter().collect(),
            restorable: true,
            newest_first: true,
            ..PointQuery::default()
        };
        let back = |what: String| EngineError::Nothing {
            why: format!("nothing of rwd to undo{what}"),
            hint: Some("to take the agent's last turn back: rwd back".to_owned()),
        };
        let newer = self.parts.index.points(&work)?.into_iter().find(|p| p.changed > 0 && p.kind != PointKind::Guard);
        if let Some(point) = newer {
            let since =
                point.turn.map_or_else(|| format!(" since {}", point.id.short()), |turn| format!(" since turn {turn}"));
            return Err(back(since));
        }
        let candidate = done.iter().copied().find(|op| op.kind == OpKind::Restore && op.reversed_by.is_none());
        candidate.cloned().ok_or_else(|| {
            let undone = done.iter().any(|op| op.kind == OpKind::Undo && op.reversed_by.is_none());
            match back(String::new()) {
                EngineError::Nothing { why, .. } if undone => {
                    EngineError::Nothing { why, hint: Some("to bring back what was undone: rwd redo".to_owned()) }
                }
                other => other,
            }
        })
    }

    /// An operation by a unique prefix of its id, or by its guard's.
    fn find_operation(&self, text: &str) -> Result<Operation, EngineError> {
        let prefix = text.to_lowercase();
        let known = self.parts.index.operations(&[], None)?;
        let mut found: Vec<&Operation> = known.iter().filter(|op| op.id.to_string().starts_with(&prefix)).collect();
        if found.is_empty() {
            found = known
                .iter()
                .filter(|op| op.guard.is_some_and(|guard| guard.to_string().starts_with(&prefix)))
                .collect();
        }
        match found.as_slice() {
            [one] if prefix.len() >= 4 => Ok((*one).clone()),
            [] | [_] => {
                let choices = known.iter().take(10).map(|op| op.id.short()).collect();
                Err(EngineError::NotFound { given: format!("operation {text}"), choices })
            }
            many => Err(EngineError::Ambiguous {
                given: text.to_owned(),
                choices: many.iter().map(|op| op.id.to_string()).collect(),
            }),
        }
    }

    /// Paths that an operation after `operation` wrote and that still stand as it left them.
    pub(super) fn written_later(&self, operation: &Operation) -> Result<BTreeSet<RelPath>, EngineError> {
        let mut paths = BTreeSet::new();
        let mut undone: BTreeSet<OpId> = BTreeSet::new();
        for op in self.parts.index.operations(&[OpKind::Restore, OpKind::Undo, OpKind::Redo], None)? {
            if op.ord <= operation.ord {
                break;
            }
            // An operation that was taken back, and the one that took it back, cancel out.
            undone.extend(op.reverses.filter(|_| op.reversed_by.is_none()));
            let cancelled = op.reversed_by.is_some() || undone.contains(&op.id) || op.kind != OpKind::Restore;
            if !cancelled && matches!(op.state, OpState::Done | OpState::Partial) {
                paths.extend(self.parts.index.written(&op.id)?.into_iter().map(|w| w.path));
            }
        }
        Ok(paths)
    }

    /// From now to what each path that `operation` wrote held before it, in path order. A directory that holds something
    /// by now stays; what it holds is added to `in_use`.
    pub(super) fn reverse_changes(
        &self,
        operation: &Operation,
        now: &Snapshot,
        in_use: &mut Vec<RelPath>,
    ) -> Result<Vec<Change>, EngineError> {
        let snapshots = &self.parts.snapshots;
        let mut goal: BTreeMap<RelPath, PathState> = BTreeMap::new();
        for written in self.parts.index.written(&operation.id)? {
            // Purged content cannot come back, and what is there now stays.
            if written.before != PathState::Opaque {
                goal.insert(written.path, written.before);
            }
        }
        let guard = match operation.guard {
            Some(guard) => self.parts.index.point(&guard)?.and_then(|point| point.snapshot),
            None => None,
        };
        self.add_parents(&mut goal, now, guard.as_ref())?;
        // A directory that must give way takes what is in it along; one that must go stays when something is in it.
        let mut changes = BTreeMap::new();
        for (path, after) in &goal {
            let before = snapshots.state(now, path)?;
            if before.is_dir() && !after.is_dir() {
                let mut more = Vec::new();
                snapshots.list(now, Some(path), &mut |below, state| {
                    if below != *path && !goal.contains_key(&below) {
                        more.push((below, state));
                    }
                    ControlFlow::Continue(())
                })?;
                if after.is_absent() && !more.is_empty() {
                    in_use.extend(more.into_iter().filter(|(_, state)| !state.is_dir()).map(|(path, _)| path));
                    continue;
                }
                for (below, state) in more {
                    changes.insert(below.clone(), Change { path: below, before: state, after: PathState::Absent });
                }
            }
            let same = before == *after || (before.is_dir() && after.is_dir());
            if !same {
                changes.insert(path.clone(), Change { path: path.clone(), before, after: *after });
            }
        }
        Ok(changes.into_values().collect())
    }

    /// Directories that are gone by now and lead to a path that comes back.
    fn add_parents(
        &self,
        goal: &mut BTreeMap<RelPath, PathState>,
        now: &Snapshot,
        guard: Option<&Snapshot>,
    ) -> Result<(), EngineError> {
        let coming: Vec<RelPath> =
            goal.iter().filter(|(_, state)| !state.is_absent()).map(|(path, _)| path.clone()).collect();
        for path in coming {
            for dir in path.ancestors() {
                if goal.contains_key(&dir) || !self.parts.snapshots.state(now, &dir)?.is_absent() {
                    continue;
                }
                let then = match guard {
                    Some(guard) => self.parts.snapshots.state(guard, &dir)?,
                    None => PathState::Absent,
                };
                let state = if then.is_dir() { then } else { PathState::Dir { mode: crate::Mode(0o755) } };
                goal.insert(dir, state);
            }
        }
        Ok(())
    }
}
