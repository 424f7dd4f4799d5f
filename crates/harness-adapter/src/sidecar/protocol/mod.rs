//! The messages of the sidecar (docs/sidecar.md), as types: JSON-RPC 2.0, one object per line, both directions.
//!
//! Parameters refuse fields they do not know: a misspelt `paths` must not restore everything. Results may get more
//! fields, never fewer and never others of the same name. Times are UTC milliseconds.

mod care;
mod notes;
mod paths;
mod restore;
mod session;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use care::*;
pub use notes::*;
pub use paths::*;
pub use restore::*;
pub use session::*;

/// The protocol that is spoken here. It grows by methods and fields; another number means that something changed.
pub const PROTOCOL: u32 = 1;

/// Longest line in either direction, in bytes without its newline (design § 10).
pub const MAX_LINE: usize = 8 << 20;

/// A request of either side, or a notice when nobody waits for an answer.
pub trait Message: Serialize + DeserializeOwned + JsonSchema {
    /// Its name on the wire.
    const METHOD: &'static str;
    /// What is answered.
    type Answer: Serialize + DeserializeOwned + JsonSchema;
}

macro_rules! messages {
    ($(#[$doc:meta])* $table:ident, $schemas:ident: $($type:ident, $method:literal => $answer:ident;)+) => {
        $(impl Message for $type {
            const METHOD: &'static str = $method;
            type Answer = $answer;
        })+

        $(#[$doc])*
        pub const $table: &[&str] = &[$($method),+];

        /// Schemas of parameters and answers, by `METHOD.params` and `METHOD.result`.
        pub(super) fn $schemas(into: &mut Vec<(String, Value)>) {
            $(
                into.push((concat!($method, ".params").to_owned(), super::schema::of::<$type>(false)));
                into.push((concat!($method, ".result").to_owned(), super::schema::of::<$answer>(true)));
            )+
        }
    };
}

messages! {
    /// What a client may ask for, in the order of docs/sidecar.md.
    METHODS, method_schemas:
    Hello, "hello" => Welcome;
    SessionOpen, "session.open" => SessionOpened;
    SessionClose, "session.close" => Done;
    SessionBeats, "session.beats" => Done;
    ForkRecord, "fork.record" => Done;
    TurnBegin, "turn.begin" => Captured;
    TurnEnd, "turn.end" => Captured;
    TurnInterrupt, "turn.interrupt" => Interrupted;
    StepBegin, "step.begin" => Done;
    StepEnd, "step.end" => Done;
    Capture, "capture" => Captured;
    List, "list" => Listed;
    Diff, "diff" => Differences;
    PreviewAsk, "preview" => Preview;
    Restore, "restore" => Restored;
    UndoPreview, "undo.preview" => Preview;
    Undo, "undo" => Restored;
    Redo, "redo" => Restored;
    Recover, "recover" => Restored;
    Drop, "drop" => Dropped;
    MarkSet, "mark" => Marked;
    LatestMark, "latestMark" => MarkFound;
    HasActive, "hasActive" => Active;
    CompleteFold, "completeFold" => MarkFound;
    PointName, "point.name" => PointNamed;
    NameSet, "name.set" => NamedPoint;
    NameList, "name.list" => NamedPoints;
    NameFind, "name.find" => NamedPoint;
    NameRewind, "name.rewind" => NameRewound;
    Gc, "gc" => Collected;
    Doctor, "doctor" => Examined;
    Shutdown, "shutdown" => Done;
}

messages! {
    /// What a client may be asked for. It names those it answers in `hello.callbacks`.
    CALLBACKS, callback_schemas:
    ApprovalAsk, "approval.ask" => Approval;
    SessionFork, "session.fork" => Forked;
    SessionFind, "session.find" => Found;
    SessionFlush, "session.flush" => Done;
    HostStateRestore, "hostState.restore" => HostStateKept;
}

messages! {
    /// What is told without an answer: by the client `$/cancel`, to the client the rest.
    NOTICES, notice_schemas:
    Cancel, "$/cancel" => Done;
    Notice, "notice" => Done;
    Progressed, "progress" => Done;
}

/// Nothing more to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// The first request of a connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hello {
    /// The newest protocol the client speaks.
    pub protocol: u32,
    /// Who it is.
    pub client: Client,
    /// Callbacks it answers, of [`CALLBACKS`]. Names that are not known here are passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callbacks: Vec<String>,
}

/// A client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Client {
    /// What it is called.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The harness's process, when it is not the parent of the sidecar: once that process is gone, a turn it left open
    /// counts as interrupted (design § 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// The answer to [`Hello`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The protocol that is spoken from here on: the newest both know.
    pub protocol: u32,
    /// Who answers.
    pub engine: Client,
    /// Methods that may be called.
    pub capabilities: Vec<String>,
}

/// Ends the process after what runs is finished; the answer is the last line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {}

/// Gives up a request: what has not been written is not written, and the answer is the error `interrupted`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The request's id.
    pub id: Value,
}

/// Something a person should know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The session it is about, as the client calls it.
    pub session: Option<String>,
    /// For `restored` what its model should read before its next message; else one line for people.
    pub text: String,
    /// What it is about.
    pub kind: NoticeKind,
}

/// What a [`Notice`] is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// Somebody else put files back since the session's last turn. Sent while `turn.begin` is answered, once.
    Restored,
    /// Something works less than it should.
    Warning,
}

/// How far a request is. At most ten a second for one request, none before 300 ms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progressed {
    /// The request's id.
    pub id: Value,
    /// What is counted, as `files`.
    pub what: String,
    /// So many are done.
    pub done: u64,
    /// Of so many, where that is known.
    pub total: Option<u64>,
}

/// `error.data` of every error that is not about the envelope itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Stable: the codes of docs/cli.md and of the contract.
    pub code: String,
    /// What kind of ending it is; the words are those of the exit codes: `failure`, `usage`, `decision`,
    /// `confirmation`, `partial`, `nothing`, `unfinished`, `damaged`, `not-found`, `busy`, `interrupted`.
    pub kind: String,
    /// What to do about it.
    pub hints: Vec<String>,
    /// What it is about.
    pub paths: Vec<ReasonEntry>,
    /// Addresses that would do, for `not-found` and `ambiguous`.
    pub choices: Vec<String>,
    /// The operation it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The record of the state before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
    /// What would have been done, for `decision-needed`, `confirmation-needed` and `declined`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Box<Preview>>,
    /// What was done all the same, for `not-forked` and `CONFIG_RESTORE_FAILED`: files are restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Box<Restored>>,
    /// What it was caused by, outermost first.
    pub causes: Vec<String>,
}
