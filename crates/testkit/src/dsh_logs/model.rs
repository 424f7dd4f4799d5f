//! What happened in a session.

/// A whole session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// What came before the first turn and after each: `between.len()` may be anything; missing ones are empty.
    pub between: Vec<Vec<Between>>,
    /// The turns.
    pub turns: Vec<Turn>,
    /// Milliseconds from one event to the next, in turn and over again; clocks may go back. Empty: always 1.
    pub ticks: Vec<i16>,
}

/// One request of the user, up to its end.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What the user asked.
    pub prompt: String,
    /// Whether a plugin added a message of its own.
    pub context: bool,
    /// Whether the request's header changed, and is logged again. The first turn always logs one.
    pub header: bool,
    /// A list of things to do, with as many entries.
    pub todos: Option<u8>,
    /// A summary takes the place of the first so many messages; as many as there are at most.
    pub compaction: Option<u8>,
    /// The steps; a turn may be blocked before its first.
    pub steps: Vec<Step>,
    /// How it ended.
    pub end: TurnEnd,
}

/// One request to the model.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Pieces of reasoning, as they streamed.
    pub reasoning: Vec<String>,
    /// Pieces of text.
    pub text: Vec<String>,
    /// Retries before the model answered; none of them logs a stream.
    pub retries: u8,
    /// What the model asked for, in its order.
    pub calls: Vec<Call>,
    /// Whether all calls begin before the first is answered.
    pub parallel: bool,
    /// The content of the last result is pruned later in the turn.
    pub prune: bool,
}

/// One tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The argument, in pieces as it streamed.
    pub pieces: Vec<String>,
    /// Calls that its program made; every second one inside the one before.
    pub nested: u8,
    /// How it went.
    pub answer: Answer,
}

/// How a call went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// With a result.
    Fine,
    /// With an error.
    Failed,
    /// With the result that a repair writes for a call that never began.
    NeverStarted,
}

/// How a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnEnd {
    /// The model was done.
    Completed,
    /// The user stopped it.
    Aborted,
    /// A plugin refused it.
    Blocked,
    /// The provider failed.
    Error,
    /// The model ran out of tokens.
    MaxTokens,
    /// A repair closed it.
    Interrupted,
}

impl TurnEnd {
    /// The payload's `reason`.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Completed => r#"{"kind":"completed"}"#,
            Self::Aborted => r#"{"kind":"aborted","reason":{"kind":"user"}}"#,
            Self::Blocked => r#"{"kind":"blocked"}"#,
            Self::Error => r#"{"kind":"error","error":{"message":"no answer","code":"SERVER"}}"#,
            Self::MaxTokens => r#"{"kind":"max-tokens"}"#,
            Self::Interrupted => r#"{"kind":"interrupted"}"#,
        }
    }
}

/// What happens between turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Between {
    /// A title out of the user's messages; the user's own when there is none, or with `true`.
    Title(bool),
    /// A request for a title. Nothing when there is no message to take it from.
    TitleRequest,
    /// A command; `true`: it succeeds, and names what it changed.
    Command(bool),
    /// A summary by a command of the user, of the first so many messages. Nothing when there are none.
    Compact(u8),
    /// Work that waits in the inbox.
    Queued(String),
    /// A feature's record: a goal, a policy.
    Goal,
    /// The session was closed and taken up again.
    Resume,
    /// The process died in the middle of a command and a summary; then it was taken up again.
    Crash,
    /// A plugin says something to the model.
    Notice(String),
    /// An event of a type that the host may skip.
    Foreign,
}
