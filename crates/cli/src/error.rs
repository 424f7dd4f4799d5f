//! Every error a run can end with, and the one place that maps it to code, message, hints, paths and exit code.

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use checkpoint_core::{Blocked, BoxError, EngineError, FsError, LockError, Preview, RelPath, SessionError};
use harness_adapter::sessions::dsh::LogError;
use index_store::DataError;

use crate::compose::StoppedWaiting;
use crate::exit;
use crate::text::put;
use crate::wire::{self, ErrorBody, ReasonEntry};

/// Why a run ended without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line cannot be read, or asks for help, which is none.
    #[error("{}", first_line(.0))]
    Clap(#[from] clap::Error),
    /// The request is wrong.
    #[error("{message}")]
    Usage {
        /// Stable.
        code: &'static str,
        message: String,
        hint: Option<String>,
    },
    /// A path of the command line lies outside the workspace, or cannot be named.
    #[error("{} {why}", given.display())]
    OutsidePath { given: PathBuf, why: String },
    /// No workspace is registered here.
    #[error("no workspace is registered at or above {}", start.display())]
    NoWorkspace {
        start: PathBuf,
        /// A root at or above it whose points are there, though the registry does not name it.
        lost: Option<PathBuf>,
    },
    /// The workspace here was registered at another path.
    #[error("the workspace at {} was at {} before", root.display(), before.display())]
    Moved { root: PathBuf, before: PathBuf },
    /// A setting is malformed.
    #[error("{key}: {why} ({origin})")]
    Config { key: String, why: String, origin: String },
    /// An agent's process may not do this.
    #[error("{message}")]
    Agent { message: String, hint: String },
    /// Something that destroys needs a yes.
    #[error("{what} needs confirmation")]
    NeedsYes { what: String, declined: bool },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine, about a plan for this workspace.
    #[error("{engine}")]
    Planned { engine: EngineError, facts: Box<Facts> },
    /// The data directory.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Nobody reads the answer any more: no error.
    #[error("nobody reads the answer")]
    BrokenPipe,
    /// The rest.
    #[error("{what}")]
    Failure { what: String, source: BoxError },
    /// A session log, by itself.
    #[error("{error}")]
    Log { error: Box<LogError>, hints: Vec<String> },
    /// A second error under a message of ours.
    #[error("{message}")]
    Coded { code: &'static str, message: String, hints: Vec<String>, exit: u8 },
}

impl From<rwd_engine::OpenError> for CliError {
    fn from(error: rwd_engine::OpenError) -> Self {
        use rwd_engine::OpenError;
        match error {
            OpenError::Data(data) => Self::Data(data),
            OpenError::Snapshot(source) => Self::Engine(source.into()),
            OpenError::Fs(source) => Self::Engine(source.into()),
            OpenError::Moved { root, before } => Self::Moved { root, before },
            other => Self::failure("the workspace cannot be opened", other),
        }
    }
}

impl CliError {
    pub(crate) fn failure(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Failure { what: what.into(), source: source.into() }
    }

    /// A wait for a lock that a signal ended is an interrupt.
    pub(crate) fn settled(self) -> Self {
        let stopped = match self.engine().map(innermost) {
            Some(EngineError::Lock(LockError::Failed { source })) => source.is::<StoppedWaiting>(),
            _ => false,
        };
        if stopped { Self::Engine(EngineError::Interrupted) } else { self }
    }

    /// The engine's error in it, if it is one.
    pub(crate) const fn engine(&self) -> Option<&EngineError> {
        match self {
            Self::Engine(engine) | Self::Planned { engine, .. } => Some(engine),
            _ => None,
        }
    }

    pub(crate) fn usage(code: &'static str, message: impl Into<String>) -> Self {
        Self::Usage { code, message: message.into(), hint: None }
    }
}

macro_rules! through_engine {
    ($($from:ty),+) => {$(
        impl From<$from> for CliError {
            fn from(error: $from) -> Self {
                Self::Engine(error.into())
            }
        }
    )+};
}

impl From<LogError> for CliError {
    fn from(error: LogError) -> Self {
        Self::Log { error: Box::new(error), hints: Vec::new() }
    }
}

through_engine!(
    checkpoint_core::IndexError,
    checkpoint_core::SnapshotError,
    checkpoint_core::LockError,
    checkpoint_core::FsError,
    checkpoint_core::AddressError
);

/// The message of a usage error on one line: clap lists missing arguments on lines of their own.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let listed: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    if listed.is_empty() { line.to_owned() } else { format!("{line} {}", listed.join(", ")) }
}

/// What hints about a plan need to know of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The directory that paths of the command line are relative to, below the root.
    pub(crate) below: PathBuf,
    /// True when a turn was recorded: else every change since the last point counts as somebody's own.
    pub(crate) turns: bool,
}

impl Facts {
    /// A path of the workspace as an argument, for a shell to read back.
    fn argument(&self, path: &RelPath) -> String {
        let bytes = self.relative(path).into_os_string().into_vec();
        // A flag's value must not look like a flag.
        if bytes.starts_with(b"-") { quote_bytes(&[b"./", &bytes[..]].concat()) } else { quote_bytes(&bytes) }
    }

    /// A path of the workspace as it is named from the current directory.
    pub(crate) fn relative(&self, path: &RelPath) -> PathBuf {
        let there = Path::new(OsStr::from_bytes(path.as_bytes()));
        let shared = self.below.components().zip(there.components()).take_while(|(a, b)| a == b).count();
        let mut relative = PathBuf::new();
        relative.extend(self.below.components().skip(shared).map(|_| Component::ParentDir));
        relative.extend(there.components().skip(shared));
        if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative }
    }
}

/// What a run knows when it reports an error: how the command was typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typed {
    /// `rwd` and its arguments up to `--`, without `--yes`, `--no-input` and `--plan`.
    pub(crate) words: Vec<String>,
    /// `--` and what follows.
    pub(crate) rest: Vec<String>,
    /// The flags that lead to this workspace, for other commands to paste.
    pub(crate) place: Vec<String>,
    /// True when `--yes` was given.
    pub(crate) yes: bool,
}

/// Flags that exclude each other.
const EXCLUSIVE: [&[&str]; 2] = [&["--keep-drift", "--overwrite-drift"], &["--files", "--chat", "--both"]];

impl Typed {
    /// The same command with more flags. One that is there already is not said twice, and one that excludes a new one
    /// makes room for it.
    pub(crate) fn with(&self, more: &[&str]) -> String {
        self.joined(&more.iter().map(|word| quote(word)).collect::<Vec<_>>())
    }

    /// The same command with a decision: consent that was given beforehand stays given.
    fn decided(&self, flags: &[&str], value: Option<String>) -> String {
        let mut more: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        more.extend(value);
        if self.yes {
            more.push("--yes".to_owned());
        }
        self.joined(&more)
    }

    fn joined(&self, more: &[String]) -> String {
        let excluded = |word: &String| {
            EXCLUSIVE.iter().any(|set| {
                set.contains(&word.as_str()) && more.iter().any(|new| new != word && set.contains(&new.as_str()))
            })
        };
        let kept: Vec<&String> = self.words.iter().filter(|word| !excluded(word)).collect();
        // A flag with a value may stand there more than once.
        let said = |word: &&String| word.starts_with("--") && *word != "--overwrite" && kept.contains(word);
        let new: Vec<&String> = more.iter().filter(|word| !said(word)).collect();
        let all = kept.into_iter().chain(new).chain(&self.rest);
        all.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The same command under another verb.
    pub(crate) fn as_verb(&self, from: &str, to: &str) -> Self {
        let mut verb = None;
        let mut words = self.words.iter().enumerate().skip(1);
        while let Some((at, word)) = words.next() {
            if ["-C", "--data-dir", "--session", "--index", "--color"].contains(&word.as_str()) {
                words.next();
            } else if word == from {
                verb = Some(at);
                break;
            }
        }
        let mut typed = self.clone();
        if let Some(word) = verb.and_then(|at| typed.words.get_mut(at)) {
            to.clone_into(word);
        }
        typed
    }

    /// A hint of the engine's, with the flags that lead to this workspace.
    pub(crate) fn placed(&self, hint: &str) -> String {
        if self.place.is_empty() { hint.to_owned() } else { hint.replace("rwd ", &(self.other(&[]) + " ")) }
    }

    /// Another command for this workspace.
    pub(crate) fn other(&self, words: &[&str]) -> String {
        let words = words.iter().map(|word| quote(word));
        std::iter::once("rwd".to_owned()).chain(self.place.iter().cloned()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// Bytes as a shell reads them back: also such as are no text, or would steer a terminal.
pub(crate) fn quote_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(word) if !word.chars().any(char::is_control) => quote(word),
        _ => {
            let mut out = "$'".to_owned();
            for byte in bytes {
                match byte {
                    b'\'' | b'\\' => put!(out, "\\{}", char::from(*byte)),
                    b' '..=b'~' => out.push(char::from(*byte)),
                    other => put!(out, "\\{other:03o}"),
                }
            }
            out + "'"
        }
    }
}

/// A word as a shell reads it back.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,^~".contains(c);
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// An error as people and machines get it.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) body: ErrorBody,
    pub(crate) exit: u8,
}

/// Maps an error.
pub(crate) fn report(error: &CliError, typed: &Typed) -> Report {
    let mut body = ErrorBody {
        code: code(error).to_owned(),
        message: error.to_string(),
        hints: hints(error, typed),
        paths: paths(error),
        op: None,
        guard: None,
        plan: None,
        causes: causes(error),
    };
    if let Some(engine) = error.engine() {
        let inner = innermost(engine);
        body.op = inner.operation().map(|id| id.to_string());
        body.guard = inner.guard().map(|id| id.to_string());
        if let EngineError::NotApproved { preview, .. } | EngineError::Undecided { preview } = inner {
            body.plan = Some(preview.plan_id.clone());
        }
    }
    Report { body, exit: exit_code(error) }
}

/// A capture's gap stands for what caused it.
fn innermost(error: &EngineError) -> &EngineError {
    match error {
        EngineError::Gap { source, .. } => innermost(source),
        other => other,
    }
}

fn code(error: &CliError) -> &'static str {
    match error {
        CliError::Clap(_) => "usage",
        CliError::Usage { code, .. } | CliError::Coded { code, .. } => code,
        CliError::OutsidePath { .. } => "outside-workspace",
        CliError::NoWorkspace { .. } => "no-workspace",
        CliError::Moved { .. } => "moved-workspace",
        CliError::Config { .. } => "bad-config",
        CliError::Agent { .. } => "agent-refused",
        CliError::NeedsYes { declined: true, .. } => "declined",
        CliError::NeedsYes { .. } => "confirmation-needed",
        CliError::Engine(engine) | CliError::Planned { engine, .. } => engine.code(),
        CliError::Data(data) => match data {
            DataError::Refused { .. } => "refused-root",
            DataError::NoDirectory { .. } => "no-directory",
            DataError::Occupied { .. } => "occupied",
            DataError::Unknown(_) => "unknown-workspace",
            DataError::OtherIndex { .. } => "other-index",
            DataError::Busy { .. } => "busy",
            DataError::Format { .. } => "newer-store",
            DataError::Damaged { .. } => "damaged-index",
            DataError::Index(_) => as_engine_code(data),
            DataError::Io { source, .. } => io_code(source),
            _ => "data-directory",
        },
        CliError::Log { error, .. } => error.code(),
        CliError::BrokenPipe => "broken-pipe",
        CliError::Failure { source, .. } => source.downcast_ref::<std::io::Error>().map_or("failure", io_code),
    }
}

fn as_engine_code(error: &DataError) -> &'static str {
    match error {
        DataError::Index(checkpoint_core::IndexError::TooNew { .. }) => "newer-store",
        DataError::Index(checkpoint_core::IndexError::TooOld { .. }) => "older-store",
        DataError::Index(checkpoint_core::IndexError::Damaged { .. }) => "damaged-index",
        DataError::Index(checkpoint_core::IndexError::Busy) => "busy",
        DataError::Index(checkpoint_core::IndexError::NoSpace) => "no-space",
        DataError::Index(checkpoint_core::IndexError::ReadOnly) => "read-only-store",
        _ => "index-failed",
    }
}

fn io_code(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "no-space",
        std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => "read-only-store",
        _ => "io",
    }
}

fn exit_code(error: &CliError) -> u8 {
    match error {
        CliError::Clap(error) if !error.use_stderr() => exit::OK,
        CliError::Clap(_) | CliError::Usage { .. } | CliError::OutsidePath { .. } | CliError::Config { .. } => {
            exit::USAGE
        }
        CliError::NoWorkspace { .. } | CliError::Moved { .. } => exit::NO_WORKSPACE,
        CliError::Agent { .. } | CliError::NeedsYes { .. } => exit::CONFIRMATION,
        CliError::Engine(engine) | CliError::Planned { engine, .. } => exit::of(engine.kind()),
        CliError::Data(data) => match data {
            DataError::Refused { .. } | DataError::OtherIndex { .. } | DataError::NoDirectory { .. } => exit::USAGE,
            DataError::Occupied { .. } => exit::DECISION,
            DataError::Unknown(_) => exit::NOT_FOUND,
            DataError::Format { .. } | DataError::Damaged { .. } => exit::DAMAGED,
            DataError::Busy { .. } => exit::BUSY,
            DataError::Index(_) => match as_engine_code(data) {
                "newer-store" | "older-store" | "damaged-index" => exit::DAMAGED,
                "busy" => exit::BUSY,
                _ => exit::FAILURE,
            },
            _ => exit::FAILURE,
        },
        CliError::Log { error, .. } => log_exit(error),
        CliError::BrokenPipe => exit::OK,
        CliError::Failure { .. } => exit::FAILURE,
        CliError::Coded { exit, .. } => *exit,
    }
}

/// How a run ends that a session log has stopped. What the session refuses is a decision; a log that cannot be followed
/// is damage.
pub(crate) fn log_exit(error: &LogError) -> u8 {
    match error {
        LogError::NotFound { .. } => exit::NOT_FOUND,
        LogError::AlreadyExists { .. } | LogError::InvalidBoundary { .. } | LogError::OpenTurn { .. } => exit::DECISION,
        LogError::BadId { .. } | LogError::BadTarget { .. } => exit::USAGE,
        LogError::Duplicate { .. }
        | LogError::Misplaced { .. }
        | LogError::MixedEncodings { .. }
        | LogError::FlatLayout { .. }
        | LogError::UnsupportedVersion { .. }
        | LogError::UnknownEvent { .. }
        | LogError::NoHeader { .. }
        | LogError::RetiredHeader { .. }
        | LogError::Corrupt { .. } => exit::DAMAGED,
        _ => exit::FAILURE,
    }
}

fn causes(error: &CliError) -> Vec<String> {
    let mut causes = Vec::new();
    let mut next = match error {
        CliError::Planned { engine, .. } => engine.source(),
        CliError::Log { error, .. } => error.source(),
        other => other.source(),
    };
    while let Some(cause) = next {
        let text = cause.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        next = cause.source();
    }
    causes
}

fn plain(paths: &[RelPath], reason: &str) -> Vec<ReasonEntry> {
    paths.iter().map(|path| wire::reason(path.as_bytes(), reason, None)).collect()
}

fn paths(error: &CliError) -> Vec<ReasonEntry> {
    let engine = match error {
        CliError::Engine(engine) | CliError::Planned { engine, .. } => innermost(engine),
        CliError::OutsidePath { given, why } => {
            return vec![wire::reason(given.as_os_str().as_encoded_bytes(), why, None)];
        }
        _ => return Vec::new(),
    };
    match engine {
        EngineError::Undecided { preview } => {
            let plan = &preview.plan;
            let why = |path: &RelPath| if plan.hand_made.contains(path) { "hand-made" } else { "foreign" };
            plan.undecided.iter().map(|path| wire::reason(path.as_bytes(), why(path), None)).collect()
        }
        EngineError::Blocked { blocked } => wire::blocked(blocked),
        EngineError::Stale { paths } => plain(paths, "changed"),
        EngineError::NotRestorable { path, .. } => plain(path.as_slice(), "missing"),
        EngineError::UnknownPath { path } => plain(std::slice::from_ref(path), "unknown"),
        EngineError::Changed { path, left, .. } => {
            let mut all = plain(std::slice::from_ref(path), "changed");
            all.extend(plain(left, "left"));
            all
        }
        EngineError::NotForked { outcome, .. } | EngineError::ConfigFailed { outcome, .. } => {
            plain(&outcome.restored, "restored")
        }
        EngineError::Apply { source, .. } | EngineError::Stuck { source, .. } | EngineError::Fs(source) => {
            path_of(source).map(|path| plain(std::slice::from_ref(path), source.reason())).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn path_of(error: &FsError) -> Option<&RelPath> {
    match error {
        FsError::ThroughLink { path }
        | FsError::Changed { path, .. }
        | FsError::NotEmpty { path }
        | FsError::OtherMount { path }
        | FsError::Layer { path }
        | FsError::Metadata { path }
        | FsError::Reserved { path }
        | FsError::Io { path, .. }
        | FsError::Blob { path, .. } => Some(path),
        _ => None,
    }
}

fn hints(error: &CliError, typed: &Typed) -> Vec<String> {
    match error {
        CliError::Clap(error) => clap_hints(error),
        CliError::Usage { hint, .. } => hint.iter().cloned().collect(),
        CliError::Log { error, hints } if hints.is_empty() => vec![error.advice().to_owned()],
        CliError::Coded { hints, .. } | CliError::Log { hints, .. } => hints.clone(),
        CliError::OutsidePath { .. } => {
            vec!["paths are relative to the current directory and lie in the workspace".into()]
        }
        CliError::NoWorkspace { lost: Some(root), .. } => vec![
            format!("{} has points, but the registry of workspaces does not name it", root.display()),
            format!("to register it again: {}", typed.other(&["doctor", "--fix"])),
        ],
        CliError::NoWorkspace { .. } => {
            vec![format!("to protect this directory from now on: {}", typed.other(&["save"]))]
        }
        CliError::Moved { .. } => vec![
            format!("if it was moved, take it over: {}", typed.other(&["adopt"])),
            format!("if it is something new: {}", typed.other(&["save", "--force"])),
        ],
        // Only the workspace's file, which an agent may have written, can be left out.
        CliError::Config { origin, .. } if origin.ends_with(crate::config::WORKSPACE_FILE) => {
            vec!["correct it, or leave the file of the workspace out with --force".into()]
        }
        CliError::Config { .. } => vec!["correct it".into()],
        CliError::Agent { hint, .. } => vec![hint.clone()],
        CliError::NeedsYes { declined: false, .. } => vec![format!("to confirm: {}", typed.with(&["--yes"]))],
        CliError::Engine(engine) => engine_hints(innermost(engine), typed, &Facts { turns: true, ..Facts::default() }),
        CliError::Planned { engine, facts } => engine_hints(innermost(engine), typed, facts),
        CliError::Data(DataError::Refused { .. }) => {
            vec!["a project's own directory is meant; --force goes on all the same".into()]
        }
        CliError::Data(DataError::OtherIndex { existing, .. }) => {
            vec![format!("leave --index out, or say --index {existing}")]
        }
        CliError::Data(DataError::Damaged { .. } | DataError::Index(_)) => vec![typed.other(&["doctor"])],
        CliError::Data(DataError::Format { .. }) => vec!["a newer rwd wrote it: update rwd".into()],
        CliError::Data(DataError::Busy { .. }) => vec!["try again when it is done".into()],
        _ => Vec::new(),
    }
}

fn clap_hints(error: &clap::Error) -> Vec<String> {
    let text = error.to_string();
    let tips = text.lines().map(str::trim).filter_map(|line| line.strip_prefix("tip: ")).map(str::to_owned);
    tips.chain(["rwd --help".to_owned()]).collect()
}

fn engine_hints(error: &EngineError, typed: &Typed, facts: &Facts) -> Vec<String> {
    match error {
        EngineError::NotFound { choices, .. } | EngineError::Ambiguous { choices, .. } => {
            let mut hints = Vec::new();
            let (sessions, others): (Vec<&String>, Vec<&String>) =
                choices.iter().partition(|choice| choice.starts_with("--session "));
            if !others.is_empty() {
                let others: Vec<&str> = others.into_iter().map(String::as_str).collect();
                hints.push(format!("there is: {}", others.join("  ")));
            }
            let session = |choice: &&String| {
                choice.strip_prefix("--session ").map(|key| typed.decided(&["--session"], Some(quote(key))))
            };
            hints.extend(sessions.iter().filter_map(session).map(|command| format!("one of them: {command}")));
            hints.push(typed.other(&["log"]));
            hints
        }
        EngineError::Address(_) => vec!["a target is as t7, t7^, t7.3, latest~1, @14:05, an id or a name".into()],
        EngineError::BadName { .. } => {
            vec!["a name is a word that reads as no position or id, as before-refactor".into()]
        }
        EngineError::Undecided { preview } => undecided_hints(preview, typed, facts),
        EngineError::Blocked { blocked } => blocked_hints(blocked, typed),
        EngineError::Stale { .. } => vec![format!("to plan again: {}", typed.with(&[]))],
        EngineError::NotApproved { declined: false, preview } => {
            vec![format!("to confirm: {}", typed.with(&["--plan", &preview.plan_id, "--yes"]))]
        }
        EngineError::Unfinished { .. } | EngineError::Stuck { .. } | EngineError::Unrecorded { .. } => {
            recover_hints(typed)
        }
        EngineError::OnlyForward { operation } => vec![
            format!("to finish it: {}", typed.other(&["recover", "--finish"])),
            format!("to put the files back after that: {}", typed.other(&["undo", &operation.short()])),
        ],
        EngineError::NotForked { outcome, source } => {
            let mut hints = session_hints(source, typed);
            if !source.is_final() {
                hints.push(format!("to ask for the fork again: {}", typed.other(&["recover", "--finish"])));
            }
            hints.extend(undo_hint(outcome, typed));
            hints
        }
        EngineError::ConfigFailed { outcome, .. } => undo_hint(outcome, typed).into_iter().collect(),
        EngineError::OtherIncarnation { .. } => {
            vec![format!("if it is the same project all the same: {}", typed.decided(&["--adopt"], None))]
        }
        EngineError::TurnOpen { .. } => vec![
            "stop the agent first, or wait until it is done".into(),
            format!("to go on all the same: {}", typed.decided(&["--force"], None)),
        ],
        EngineError::NotRestorable { .. } => {
            vec![format!("to see which points are whole: {}", typed.other(&["verify"])), typed.other(&["log"])]
        }
        EngineError::Nothing { hint, .. } => hint.iter().map(|hint| typed.placed(hint)).collect(),
        EngineError::Lock(LockError::Busy) | EngineError::Index(checkpoint_core::IndexError::Busy) => {
            vec!["try again when it is done".into()]
        }
        EngineError::UnknownPath { .. } => vec!["paths are literal and relative to the current directory".into()],
        EngineError::Snapshot(checkpoint_core::SnapshotError::NoSpace { .. })
        | EngineError::Index(checkpoint_core::IndexError::NoSpace) => {
            vec![format!("to make room: {}", typed.other(&["gc"]))]
        }
        EngineError::Snapshot(
            checkpoint_core::SnapshotError::Missing { .. } | checkpoint_core::SnapshotError::Damaged { .. },
        )
        | EngineError::Index(checkpoint_core::IndexError::Damaged { .. }) => vec![typed.other(&["doctor"])],
        EngineError::Index(checkpoint_core::IndexError::TooNew { .. })
        | EngineError::Snapshot(checkpoint_core::SnapshotError::TooNew { .. }) => {
            vec!["a newer rwd wrote it: update rwd".into()]
        }
        EngineError::Changed { stored, .. } => stored
            .iter()
            .map(|(path, blob)| {
                format!(
                    "what somebody else wrote to {path} is kept; to see it: {}",
                    typed.other(&["show", &blob.to_string()])
                )
            })
            .collect(),
        EngineError::Session(session) => session_hints(session, typed),
        _ => Vec::new(),
    }
}

/// How what was done to the files can be taken back.
fn undo_hint(outcome: &checkpoint_core::Outcome, typed: &Typed) -> Option<String> {
    let operation = outcome.operation?;
    Some(format!("to put the files back: {}", typed.other(&["undo", &operation.short()])))
}

/// What can be done where a session refuses.
fn session_hints(error: &SessionError, typed: &Typed) -> Vec<String> {
    let files = || format!("files alone: {}", typed.decided(&["--files"], None));
    let show = |what: &str, session: &checkpoint_core::SessionKey| {
        format!("to see {what}: {}", typed.other(&["session", "boundaries", &session.to_string()]))
    };
    match error {
        SessionError::OpenTurn { session, .. } => {
            vec!["wait until the turn has ended, or go to an earlier one".into(), show("where it can be cut", session)]
        }
        SessionError::InvalidBoundary { session, .. } | SessionError::NoTurn { session, .. } => {
            vec![show("where it can be cut", session)]
        }
        SessionError::PrefixChanged { session, .. } => vec![
            "the host lost the end of this log in a crash, or somebody replaced it: what was said there is gone".into(),
            show("what it holds now", session),
            files(),
        ],
        SessionError::Unsupported | SessionError::Unplaced { .. } | SessionError::Lineage { .. } => vec![files()],
        _ => Vec::new(),
    }
}

/// The two ways out of an unfinished operation.
pub(crate) fn recover_hints(typed: &Typed) -> Vec<String> {
    vec![
        format!("to do the rest: {}", typed.other(&["recover", "--finish"])),
        format!("to take it back: {}", typed.other(&["recover", "--back"])),
    ]
}

/// How hand-made and foreign paths can be decided about.
pub(crate) fn undecided_hints(preview: &Preview, typed: &Typed, facts: &Facts) -> Vec<String> {
    let plan = &preview.plan;
    let mut hints = Vec::new();
    if !facts.turns {
        // After a save, `latest` is another point: the id stays.
        let goal = preview.target.as_ref().map(|point| format!(" and go to {}", point.id.short())).unwrap_or_default();
        hints.push(format!(
            "nothing recorded who made these changes: run {} first{goal}, or add --overwrite-drift; undo brings them back",
            typed.other(&["save"])
        ));
    }
    hints.push(format!("to leave them as they are: {}", typed.decided(&["--keep-drift"], None)));
    let hand: Vec<&RelPath> = plan.undecided.iter().filter(|path| plan.hand_made.contains(path)).collect();
    if let Some(path) = hand.first() {
        let one = typed.decided(&["--overwrite"], Some(facts.argument(path)));
        hints.push(format!("to restore one of them: {one}"));
        let all = typed.decided(&["--overwrite-drift"], None);
        hints.push(format!("to restore all of them (undo brings the edits back): {all}"));
    }
    if plan.undecided.iter().any(|path| plan.foreign.contains(path)) {
        hints.push(format!("to restore what other sessions changed: {}", typed.decided(&["--with-others"], None)));
    }
    hints
}

/// What can be done about blocked paths.
pub(crate) fn blocked_hints(blocked: &[Blocked], typed: &Typed) -> Vec<String> {
    let on = format!("to go on without them: {}", typed.decided(&["--skip-blocked"], None));
    blocked_hint(blocked).into_iter().chain([on]).collect()
}

fn blocked_hint(blocked: &[Blocked]) -> Option<String> {
    let first = blocked.first()?;
    let what = match first.reason.as_str() {
        "swap" => "something below it is not covered by any point",
        "through-link" => "a symbolic link stands on the way to it",
        "other-mount" => "it lies on another file system",
        "metadata" => "its owner or attributes could not be kept",
        "not-guarded" => "its present content cannot be stored",
        "budget" => "its present content does not fit into the store; raise capture.store_max_bytes, or rwd gc",
        "too-large" | "ignored-root" => "a rule leaves it out now, and its present content cannot be stored",
        "special" => "a socket or device stands there now",
        "unreadable" => "its present content may not be read",
        "nested-repo" => "it belongs to a repository of its own",
        "name-collision" => "its name is another path's on this file system",
        "parent-kept" => "what stands in its way is kept",
        "layer" => "it belongs to a lower layer of an overlay",
        _ => return None,
    };
    Some(format!("{}: {what}", first.path))
}

/// The text for people: `error: …`, causes, paths, then `hint: …`.
pub(crate) fn human(report: &Report) -> String {
    const SHOWN: usize = 20;
    let body = &report.body;
    let mut text = format!("error: {}", wire::shown(&body.message));
    for cause in &body.causes {
        put!(text, "\n  caused by: {}", wire::shown(cause));
    }
    for entry in body.paths.iter().take(SHOWN) {
        put!(text, "\n  {}", entry.line());
    }
    if body.paths.len() > SHOWN {
        put!(text, "\n  and {} more", body.paths.len() - SHOWN);
    }
    if !body.hints.is_empty() {
        text.push('\n');
    }
    for hint in &body.hints {
        put!(text, "\nhint: {}", wire::shown(hint));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_paste_survive_a_shell() {
        let typed = Typed {
            words: vec!["rwd".into(), "to".into(), "t1^".into()],
            rest: vec!["--".into(), "'a b'".into()],
            place: vec!["-C".into(), "x".into()],
            yes: false,
        };
        assert_eq!(typed.with(&["--plan", "ab", "--yes"]), "rwd to t1^ --plan ab --yes -- 'a b'");
        let odd = Typed {
            words: ["rwd", "-C", "preview", "preview", "preview"].map(Into::into).to_vec(),
            ..Typed::default()
        };
        assert_eq!(odd.as_verb("preview", "to").with(&["--yes"]), "rwd -C preview to preview --yes");
        assert_eq!(typed.other(&["recover", "--finish"]), "rwd -C x recover --finish");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("~x"), "'~x'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote_bytes(b"a \xff'\n"), r"$'a \377\'\012'");
    }

    #[test]
    fn flags_are_neither_repeated_nor_contradicted() {
        let words = ["rwd", "to", "t1", "--overwrite-drift", "--both"].map(Into::into).to_vec();
        let typed = Typed { words, yes: true, ..Typed::default() };
        assert_eq!(typed.decided(&["--overwrite-drift"], None), "rwd to t1 --overwrite-drift --both --yes");
        assert_eq!(typed.decided(&["--keep-drift"], None), "rwd to t1 --both --keep-drift --yes");
        assert_eq!(typed.decided(&["--files"], None), "rwd to t1 --overwrite-drift --files --yes");
    }

    /// What a hint names is read relative to the current directory.
    #[test]
    fn paths_as_arguments() {
        let argument =
            |below: &str, path: &str| Facts { below: below.into(), turns: true }.argument(&RelPath::new(path).unwrap());
        assert_eq!(argument("", "a/b"), "a/b");
        assert_eq!(argument("a", "a/b c"), "'b c'");
        assert_eq!(argument("a/x", "a/b"), "../b");
        assert_eq!(argument("a/x", "a"), "..");
        assert_eq!(argument("a", "a"), ".");
        assert_eq!(argument("", "-b"), "./-b");
    }

    #[test]
    fn causes_are_told_once_each() {
        let inner = std::io::Error::other("inner");
        let error = CliError::failure("outer", inner);
        assert_eq!(causes(&error), ["inner"]);
        assert_eq!(report(&error, &Typed::default()).exit, exit::FAILURE);
    }

    /// A path that the message names is among the paths, too.
    #[test]
    fn missing_content_is_named() {
        let point = checkpoint_core::PointId::from_bytes([1; 16]);
        let of = |path| paths(&EngineError::NotRestorable { point, why: String::new(), path }.into());
        assert_eq!(of(RelPath::new("a b").ok()), [wire::reason(b"a b", "missing", None)]);
        assert_eq!(of(None), []);
    }

    /// Design § 9: each kind of ending has its code.
    #[test]
    fn exit_codes() {
        let engine = |error: EngineError| exit_code(&CliError::Engine(error));
        assert_eq!(engine(EngineError::Nothing { why: String::new(), hint: None }), 6);
        assert_eq!(engine(EngineError::Lock(LockError::Busy)), 11);
        assert_eq!(engine(EngineError::NotFound { given: "x".into(), choices: vec![] }), 9);
        assert_eq!(engine(EngineError::Stale { paths: vec![] }), 3);
        let gap = EngineError::Gap { point: None, source: Box::new(EngineError::Interrupted) };
        assert_eq!(engine(gap), 130);
        assert_eq!(exit_code(&CliError::BrokenPipe), 0);
        assert_eq!(exit_code(&CliError::NoWorkspace { start: "/x".into(), lost: None }), 10);
        let agent = CliError::Agent { message: String::new(), hint: String::new() };
        assert_eq!(exit_code(&agent), 4);
    }
}
