//! What the engine answers, in the shapes of the protocol.

use checkpoint_core::{Consistency, Cut, Mark, Operation, Outcome, Point, PointKind, Preview, Status};
use serde::Serialize;

use super::protocol::{
    self as wire, CutEntry, GapEntry, MarkEntry, NamedPoint, OperationEntry, PointEntry, blocked, paths, skipped,
    stored,
};
use crate::named_points::Line;

/// The stable word of a value that is written as one.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "unknown".to_owned(),
    }
}

fn cut_entry(cut: &Cut) -> CutEntry {
    CutEntry {
        seq: cut.boundary.map(|boundary| boundary.seq().0),
        rule: cut.rule.clone(),
        session: cut.session.to_string(),
    }
}

pub(super) const fn consistency(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Watched => "watched",
        Consistency::Live => "live",
        Consistency::Quiet => "quiet",
    }
}

pub(super) fn preview(preview: &Preview) -> wire::Preview {
    let plan = &preview.plan;
    wire::Preview {
        plan: preview.plan_id.clone(),
        target: preview.target.as_ref().map(|point| point.id.to_string()),
        reverses: preview.reverses.map(|op| op.to_string()),
        session: preview.session.to_string(),
        overwrite: paths(&plan.overwrite),
        recreate: paths(&plan.recreate),
        mode: paths(&plan.mode),
        remove: paths(&plan.remove),
        unchanged: plan.unchanged,
        kept_new: paths(&plan.kept_new),
        hand_made: paths(&plan.hand_made),
        uncaptured: paths(&plan.uncaptured),
        foreign: paths(&plan.foreign),
        blocked: blocked(&plan.blocked),
        uncovered: skipped(&plan.uncovered),
        undecided: paths(&plan.undecided),
        cut: preview.cut.as_ref().map(cut_entry),
        scope: match (preview.files, &preview.cut) {
            (true, Some(_)) => "both",
            (true, None) => "files",
            (false, _) => "chat",
        }
        .to_owned(),
        config: preview.config,
        notes: preview.notes.clone(),
    }
}

/// `done`: the operation as it is recorded; `nth`: which of its session's it is.
pub(super) fn restored(outcome: &Outcome, done: Option<&Operation>, nth: Option<u32>) -> wire::Restored {
    let plan = &outcome.plan;
    wire::Restored {
        op: outcome.operation.map(|op| op.to_string()),
        nth,
        status: match outcome.status {
            Status::Restored => "restored",
            Status::Partial => "partial",
            Status::Nothing => "nothing",
        }
        .to_owned(),
        target: outcome.target.as_ref().map(|point| point.id.to_string()),
        reverses: done.and_then(|op| op.reverses).map(|op| op.to_string()),
        restored: paths(&outcome.restored),
        removed: paths(&outcome.removed),
        unchanged: plan.unchanged,
        kept_new: paths(&plan.kept_new),
        hand_made: paths(&plan.hand_made),
        foreign: paths(&plan.foreign),
        uncaptured: paths(&plan.uncaptured),
        blocked: blocked(&plan.blocked),
        uncovered: skipped(&plan.uncovered),
        guard: outcome.guard.map(|point| point.to_string()),
        child_session_id: outcome.child.clone(),
        context_only: outcome.context_only,
        cut: outcome.cut.as_ref().map(cut_entry),
        stored: stored(&outcome.stored),
        notes: outcome.notes.clone(),
    }
}

/// Nothing to do is an ordinary answer.
pub(super) fn nothing(why: &str, hint: Option<&String>) -> wire::Restored {
    wire::Restored {
        status: "nothing".to_owned(),
        notes: std::iter::once(why.to_owned()).chain(hint.cloned()).collect(),
        ..wire::Restored::default()
    }
}

pub(super) fn point(point: &Point, names: Vec<String>, incarnation: u32) -> PointEntry {
    PointEntry {
        id: point.id.to_string(),
        session: point.session.to_string(),
        turn: point.turn.map(|turn| turn.0),
        step: point.step.map(|step| step.0),
        kind: point.kind.name().to_owned(),
        tree: point.snapshot.map(|snapshot| snapshot.tree.to_string()),
        trigger: point.trigger.clone(),
        call_id: point.call_id.clone(),
        at: point.at.0,
        changed: point.changed,
        changed_paths: None,
        files: point.files,
        new_bytes: point.new_bytes,
        note: point.note.clone(),
        names,
        restorable: point.snapshot.is_some() && point.damaged.is_none() && point.incarnation == incarnation,
        damaged: point.damaged.clone(),
        seq: point.position.as_ref().map(|position| position.seq.0),
        cut_before: None,
        cut_after: None,
        operation: point.operation.map(|operation| operation.to_string()),
        config: point.host_state.is_some(),
    }
}

pub(super) fn gap(point: &Point) -> GapEntry {
    GapEntry {
        id: point.id.to_string(),
        session: point.session.to_string(),
        turn: point.turn.map(|turn| turn.0),
        kind: point.missed.map(|kind| PointKind::name(kind).to_owned()),
        reason: word(&point.gap),
        at: point.at.0,
    }
}

pub(super) fn operation(op: &Operation, nth: u32) -> OperationEntry {
    OperationEntry {
        id: op.id.to_string(),
        nth,
        kind: word(&op.kind),
        state: word(&op.state),
        session: op.session.to_string(),
        target: op.target.map(|point| point.to_string()),
        guard: op.guard.map(|point| point.to_string()),
        reverses: op.reverses.map(|op| op.to_string()),
        reversed_by: op.reversed_by.map(|op| op.to_string()),
        at: op.at.0,
        wrote: op.wrote,
        child_session_id: op.child.clone(),
        summary: op.summary.clone(),
        expired: op.expired,
    }
}

pub(super) fn mark(mark: &Mark) -> MarkEntry {
    MarkEntry {
        id: mark.id,
        log_length: mark.log_length,
        turn: mark.turn.map(|turn| turn.0),
        objective: mark.objective.clone(),
        folded_at: mark.folded.map(|at| at.0),
        at: mark.at.0,
    }
}

pub(super) fn named(line: Line) -> NamedPoint {
    NamedPoint {
        automatic: line.is_automatic(),
        label: line.label,
        session: line.session,
        seq: line.seq.0,
        time: line.time,
        note: line.note,
    }
}
