//! Errors of the engine and of what is beside it, as a client sees them.

use std::error::Error;

use checkpoint_core::{EngineError, ErrorKind, IndexError, RelPath, SnapshotError};

use super::protocol::{Problem, ReasonEntry, blocked, reason};
use super::shape;
use crate::named_points::PointsError;
use crate::rpc::envelope::{INTERNAL, PARAMS, REFUSED};

/// An error answer.
#[derive(Debug)]
pub(super) struct Failed {
    /// JSON-RPC's number.
    pub(super) number: i64,
    pub(super) message: String,
    pub(super) problem: Option<Box<Problem>>,
}

/// Why something beside the engine failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Stable.
    pub code: String,
    /// What kind of ending it is.
    pub kind: ErrorKind,
    /// One line.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
    /// What it was caused by, outermost first.
    pub causes: Vec<String>,
}

/// The word of a kind on the wire.
pub(super) const fn kind_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Failure => "failure",
        ErrorKind::Usage => "usage",
        ErrorKind::Decision => "decision",
        ErrorKind::Confirmation => "confirmation",
        ErrorKind::Partial => "partial",
        ErrorKind::Nothing => "nothing",
        ErrorKind::Unfinished => "unfinished",
        ErrorKind::Damaged => "damaged",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Busy => "busy",
        ErrorKind::Interrupted => "interrupted",
    }
}

impl Failed {
    /// The engine or something beside it said no.
    pub(super) fn refused(code: &str, kind: ErrorKind, message: impl Into<String>, hint: Option<&str>) -> Self {
        let problem = Problem {
            code: code.to_owned(),
            kind: kind_word(kind).to_owned(),
            hints: hint.map(str::to_owned).into_iter().collect(),
            ..Problem::default()
        };
        Self { number: REFUSED, message: message.into(), problem: Some(Box::new(problem)) }
    }

    /// The parameters do not fit.
    pub(super) fn params(message: impl Into<String>) -> Self {
        let failed = Self::refused("usage", ErrorKind::Usage, message, None);
        Self { number: PARAMS, ..failed }
    }

    /// A fault of ours.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        let hint = "report it; what was answered before is safe";
        let failed = Self::refused("internal", ErrorKind::Failure, message, Some(hint));
        Self { number: INTERNAL, ..failed }
    }

    pub(super) fn interrupted() -> Self {
        Self::refused("interrupted", ErrorKind::Interrupted, "interrupted", None)
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        let problem = Problem {
            code: failure.code,
            kind: kind_word(failure.kind).to_owned(),
            hints: failure.hints,
            causes: failure.causes,
            ..Problem::default()
        };
        Self { number: REFUSED, message: failure.message, problem: Some(Box::new(problem)) }
    }
}

fn causes(error: &dyn Error) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        next = cause.source();
    }
    causes
}

fn plain(paths: &[RelPath], why: &str) -> Vec<ReasonEntry> {
    paths.iter().map(|path| reason(path, why, None)).collect()
}

fn paths(error: &EngineError) -> Vec<ReasonEntry> {
    match error {
        EngineError::Undecided { preview } => {
            let plan = &preview.plan;
            let why = |path: &RelPath| if plan.hand_made.contains(path) { "hand-made" } else { "foreign" };
            plan.undecided.iter().map(|path| reason(path, why(path), None)).collect()
        }
        EngineError::Blocked { blocked: all } => blocked(all),
        EngineError::Stale { paths } => plain(paths, "changed"),
        EngineError::NotRestorable { path, .. } => plain(path.as_slice(), "missing"),
        EngineError::UnknownPath { path } => plain(std::slice::from_ref(path), "unknown"),
        EngineError::Changed { path, left, .. } => {
            let mut all = plain(std::slice::from_ref(path), "changed");
            all.extend(plain(left, "left"));
            all
        }
        _ => Vec::new(),
    }
}

/// What to do, in words of this protocol.
fn hints(error: &EngineError) -> Vec<String> {
    let hint: &str = match error {
        EngineError::NotFound { .. } => "list shows what there is",
        EngineError::Address(_) => "a target is as t7, t7^, t7.3, latest~1, @10m, an id or a name",
        EngineError::Undecided { .. } => {
            "policy.drift = keep or overwrite, policy.overwrite or policy.withOthers decides"
        }
        EngineError::Blocked { .. } => "policy.skipBlocked goes on without them",
        EngineError::Stale { .. } => "preview again",
        EngineError::NotApproved { declined: false, .. } => {
            "ask somebody, then confirmed = true; or answer approval.ask"
        }
        EngineError::Unfinished { .. } | EngineError::Stuck { .. } | EngineError::Unrecorded { .. } => {
            "recover with way = finish or back"
        }
        EngineError::OnlyForward { .. } => "recover with way = finish, then undo",
        EngineError::NotForked { closed: false, .. } => "recover with way = finish asks for the same child again",
        EngineError::NotForked { .. } | EngineError::ConfigFailed { .. } => "undo puts the files back",
        EngineError::OtherIncarnation { .. } => "adopt = true, if it is the same project all the same",
        EngineError::TurnOpen { .. } => "wait until the turn has ended; insideTurn = true for a call from within it",
        EngineError::Lock(_) | EngineError::Index(IndexError::Busy) => "try again when it is done",
        EngineError::Snapshot(SnapshotError::NoSpace { .. }) | EngineError::Index(IndexError::NoSpace) => {
            "gc makes room"
        }
        EngineError::Index(IndexError::ReadOnly) => "the data directory may not be written",
        EngineError::Snapshot(source) | EngineError::Guard { source } if source.is_read_only() => {
            "the data directory may not be written"
        }
        EngineError::Nothing { hint: Some(hint), .. } => return vec![hint.clone()],
        _ => return Vec::new(),
    };
    vec![hint.to_owned()]
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        let inner = error.innermost();
        let mut problem = Problem {
            code: inner.code().to_owned(),
            kind: kind_word(inner.kind()).to_owned(),
            hints: hints(inner),
            paths: paths(inner),
            op: inner.operation().map(|id| id.to_string()),
            guard: inner.guard().map(|id| id.to_string()),
            causes: causes(inner),
            ..Problem::default()
        };
        match inner {
            EngineError::NotFound { choices, .. } | EngineError::Ambiguous { choices, .. } => {
                problem.choices.clone_from(choices);
            }
            EngineError::NotApproved { preview, .. } | EngineError::Undecided { preview } => {
                problem.preview = Some(Box::new(shape::preview(preview)));
            }
            EngineError::NotForked { outcome, .. } | EngineError::ConfigFailed { outcome, .. } => {
                problem.outcome = Some(Box::new(shape::restored(outcome, None, None)));
            }
            _ => {}
        }
        Self { number: REFUSED, message: inner.to_string(), problem: Some(Box::new(problem)) }
    }
}

impl From<IndexError> for Failed {
    fn from(error: IndexError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<PointsError> for Failed {
    fn from(error: PointsError) -> Self {
        let kind = match &error {
            PointsError::BadText { .. } => ErrorKind::Usage,
            PointsError::Unknown { .. } | PointsError::OtherSession { .. } => ErrorKind::NotFound,
            PointsError::NoCompletedTurn { .. } | PointsError::Session(_) => ErrorKind::Decision,
            PointsError::File(_) => ErrorKind::Failure,
        };
        let causes = causes(&error);
        let failed = Self::refused(error.code(), kind, error.to_string(), None);
        let problem = failed.problem.map(|problem| Box::new(Problem { causes, ..*problem }));
        Self { problem, ..failed }
    }
}
