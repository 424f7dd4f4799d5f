//! A tool's body behind its barriers (004-05 to 07), the durable point of a mutating tool among them (design § 5).

use std::fmt;

use checkpoint_core::{
    BoxError, CaptureFailure, Engine, PointKind, Position, SaveRequest, SessionKey, Step, Turn, fold::Cancel,
};
use serde::Serialize;

use super::{Barrier, Barriers};

/// A call that policy has allowed.
#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    /// The session of the calling agent; `None` for a call without one.
    pub session: Option<&'a SessionKey>,
    /// The tool.
    pub name: &'a str,
    /// The call's id: what the tool can recognise a repetition by (004-12).
    pub call_id: &'a str,
    /// The turn.
    pub turn: Option<Turn>,
    /// The step.
    pub step: Option<Step>,
    /// True for a call made by another call: no barrier of its own.
    pub nested: bool,
    /// True unless the tool is known to change nothing.
    pub mutating: bool,
    /// Tells that the call is no longer wanted.
    pub cancel: &'a Cancel,
}

/// Name and code of an error, as a log has them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErrorInfo {
    /// As `AbortError`.
    pub name: String,
    /// As `ABORTED_BEFORE_DISPATCH`.
    pub code: String,
}

/// What a call answers: text blocks, whether it failed, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolResult {
    /// Text blocks.
    pub content: Vec<String>,
    /// True when it failed.
    pub is_error: bool,
    /// Name and code, where there are any.
    pub error: Option<ErrorInfo>,
}

impl ToolResult {
    /// A successful answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![text.into()], is_error: false, error: None }
    }

    /// A failed answer of one text.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The answer of a call that was cancelled before its body ran (004-07).
    pub fn aborted_before_dispatch() -> Self {
        let info = ErrorInfo { name: "AbortError".to_owned(), code: "ABORTED_BEFORE_DISPATCH".to_owned() };
        Self { error: Some(info), ..Self::failure("The call was cancelled before the tool ran. It had no effect.") }
    }
}

/// Makes the point that lies before a mutating tool.
pub trait PointBarrier: fmt::Debug + Send + Sync {
    /// Returns when a point holds the present state, durably: its objects and its record (K-46).
    fn capture(&self, call: &ToolCall<'_>) -> Result<(), BoxError>;
}

/// Makes points with an engine.
#[derive(Clone, Debug)]
pub struct SavePoint {
    /// The engine.
    pub engine: Engine,
    /// Where the conversation is.
    pub position: Option<Position>,
    /// Gives up, leaving a gap, when the walk is not done by then.
    pub deadline: Option<std::time::Duration>,
}

impl PointBarrier for SavePoint {
    fn capture(&self, call: &ToolCall<'_>) -> Result<(), BoxError> {
        let session = call.session.cloned().unwrap_or_else(SessionKey::local);
        let request = SaveRequest {
            turn: call.turn,
            step: call.step,
            trigger: Some(call.name.to_owned()),
            call_id: Some(call.call_id.to_owned()),
            position: self.position.clone(),
            deadline: self.deadline,
            ..SaveRequest::of(session, PointKind::Mutation)
        };
        Ok(self.engine.save(&request).map(drop)?)
    }
}

/// The point before a mutating tool, and what happens without it.
#[derive(Clone, Copy, Debug)]
pub struct PointGuard<'a> {
    /// Makes it.
    pub points: &'a dyn PointBarrier,
    /// Whether the tool may run when it could not be made.
    pub on_failure: CaptureFailure,
}

impl Barriers {
    /// Runs a tool's body behind its barriers: what the session has recorded is durable, so is the point that the
    /// call's effects can be taken back to, and the call is still wanted.
    ///
    /// In this order, so that the point is made at a position that is on disk. Whatever stands in the way becomes the
    /// answer, and the body does not run. Calls without an agent and nested calls run at once, unless cancelled.
    pub fn run_tool(
        &self,
        call: &ToolCall<'_>,
        guard: Option<&PointGuard<'_>>,
        body: impl FnOnce() -> ToolResult,
    ) -> ToolResult {
        if let Err(error) = self.enforce(&Barrier::ToolBody { session: call.session, nested: call.nested }) {
            return ToolResult::failure(error.to_string());
        }
        let top_level = call.session.is_some() && !call.nested;
        if let Some(guard) = guard.filter(|_| top_level && call.mutating && !call.cancel.is_cancelled())
            && let Err(error) = guard.points.capture(call)
        {
            match guard.on_failure {
                CaptureFailure::Allow => {
                    tracing::warn!(tool = call.name, %error, "a tool runs without a point before it");
                }
                CaptureFailure::Block => {
                    return ToolResult::failure(format!(
                        "{} was not run: the workspace could not be recorded before it ({error})",
                        call.name
                    ));
                }
            }
        }
        if call.cancel.is_cancelled() {
            return ToolResult::aborted_before_dispatch();
        }
        body()
    }
}
