//! Why an exploration was not folded.

use crate::{EngineError, ErrorKind, IndexError, LockError, SessionError, SessionKey, fold::SurfaceError};

/// Why an exploration was not folded. Unless it is [`FoldError::Unstamped`], nothing was written and the mark is as it
/// was, so that the same call may be made again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// The caller is in no session.
    #[error("there is no session to mark or fold")]
    NoSession,
    /// The session has no mark.
    #[error("session {session} has no mark to fold from")]
    NoCheckpoint {
        /// The session.
        session: SessionKey,
    },
    /// There is nothing to fold.
    #[error("there is nothing to fold: {why}")]
    EmptyRegion {
        /// In words.
        why: String,
    },
    /// No end of the region leaves every call together with its answer.
    #[error("there is nothing to fold yet: a call since the mark has no answer")]
    Unbalanced,
    /// Somebody folds this session right now.
    #[error("a fold of session {session} is under way")]
    InProgress {
        /// The session.
        session: SessionKey,
    },
    /// The messages to fold are no longer those that were reported on.
    #[error("the messages since the mark changed while the report was made")]
    Changed,
    /// The report is not shorter than what it is to replace.
    #[error("the report has {report} characters, the messages it would replace {region}")]
    Shrink {
        /// Characters of the report.
        report: u64,
        /// Characters of the region.
        region: u64,
    },
    /// A setting is wrong.
    #[error("setting {key} {why}")]
    BadConfig {
        /// Its name.
        key: &'static str,
        /// What it must be.
        why: String,
    },
    /// No model is known that could write the report.
    #[error("no model is known for the report: neither configured, nor in the log, nor from the agent")]
    NoRoute,
    /// The model answered without text, as often as it was asked.
    #[error("{}", no_text(*.attempts, .finish.as_deref(), *.output_tokens, *.reasoning_tokens))]
    NoReport {
        /// How often it was asked; 0 when an empty report was handed in.
        attempts: u32,
        /// Why the last answer ended.
        finish: Option<String>,
        /// Tokens of the last answer.
        output_tokens: Option<u64>,
        /// Tokens it thought with.
        reasoning_tokens: Option<u64>,
    },
    /// The model failed. Not tried again.
    #[error("the report could not be written")]
    Summariser {
        /// How.
        source: crate::BoxError,
    },
    /// Stopped by the caller.
    #[error("the fold was stopped")]
    Aborted,
    /// The log's surface cannot be read.
    #[error(transparent)]
    Surface(#[from] SurfaceError),
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The mark or the log cannot be read, or the log does not take the report.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The report is in the log, but its mark could not be stamped. The next call finds the report and does that.
    #[error("the report is in the log, but mark {mark} could not be stamped")]
    Unstamped {
        /// The mark.
        mark: u64,
        /// Why.
        #[source]
        source: Box<EngineError>,
    },
}

impl From<IndexError> for FoldError {
    fn from(error: IndexError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<SessionError> for FoldError {
    fn from(error: SessionError) -> Self {
        Self::Engine(error.into())
    }
}

impl FoldError {
    /// Stable machine code: the contract's for 001-13, ours for the rest.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSession => "NO_SESSION",
            Self::NoCheckpoint { .. } => "NO_CHECKPOINT",
            Self::EmptyRegion { .. } => "EMPTY_REGION",
            Self::Unbalanced => "UNBALANCED",
            Self::InProgress { .. } => "FOLD_IN_PROGRESS",
            Self::Changed => "CHANGED",
            Self::Shrink { .. } => "SHRINK",
            Self::BadConfig { .. } => "BAD_CONFIG",
            Self::NoRoute => "NO_MODEL",
            Self::NoReport { .. } => "NO_REPORT",
            Self::Summariser { .. } => "REPORT_FAILED",
            Self::Aborted => "ABORTED",
            Self::Surface(_) => "BROKEN_SURFACE",
            Self::Lock(LockError::Busy) => "busy",
            Self::Lock(_) => "lock-failed",
            Self::Engine(error) => error.code(),
            Self::Unstamped { .. } => "UNSTAMPED",
        }
    }

    /// What kind of ending it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoCheckpoint { .. }
            | Self::EmptyRegion { .. }
            | Self::Unbalanced
            | Self::InProgress { .. }
            | Self::Changed
            | Self::Shrink { .. } => ErrorKind::Decision,
            Self::NoSession | Self::BadConfig { .. } => ErrorKind::Usage,
            Self::Aborted => ErrorKind::Interrupted,
            Self::Surface(_) => ErrorKind::Damaged,
            Self::Lock(LockError::Busy) => ErrorKind::Busy,
            Self::NoRoute | Self::NoReport { .. } | Self::Summariser { .. } | Self::Lock(_) => ErrorKind::Failure,
            Self::Engine(error) => error.kind(),
            Self::Unstamped { .. } => ErrorKind::Unfinished,
        }
    }
}

fn no_text(attempts: u32, finish: Option<&str>, output: Option<u64>, reasoning: Option<u64>) -> String {
    if attempts == 0 {
        return "the report is empty".to_owned();
    }
    let mut facts: Vec<String> = finish.map(|reason| format!("finish reason {reason}")).into_iter().collect();
    facts.extend(output.map(|tokens| format!("{tokens} output tokens")));
    facts.extend(reasoning.map(|tokens| format!("{tokens} of them reasoning")));
    let times = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("the model wrote no report in {times}{facts}")
}
