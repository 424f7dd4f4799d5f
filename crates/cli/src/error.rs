//! Every error a run can end with, and the one place that maps it to code, message, hints, paths and exit code.

mod guesses;
mod hints;

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use checkpoint_core::{BoxError, EngineError, FsError, LockError, RelPath};
use durable_fs::LockFailure;
use harness_adapter::sessions::dsh::LogError;
use index_store::DataError;

pub(crate) use self::guesses::guesses;
use self::hints::hints;
pub(crate) use self::hints::{blocked_hints, recover_hints, undecided_hints};
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

    /// A lock of ours that was not got: busy as the workspace's own lock is, or `what` failed.
    pub(crate) fn unlocked(failure: LockFailure, what: impl Into<String>) -> Self {
        match failure {
            LockFailure::Busy => Self::Engine(LockError::Busy.into()),
            other => Self::failure(what, other),
        }
    }

    /// A wait for a lock that a signal ended is an interrupt.
    pub(crate) fn settled(self) -> Self {
        let stopped = match self.engine().map(EngineError::innermost) {
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
        crate::paths::relative(&self.below, Path::new(OsStr::from_bytes(path.as_bytes())))
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
        let inner = engine.innermost();
        body.op = inner.operation().map(|id| id.to_string());
        body.guard = inner.guard().map(|id| id.to_string());
        if let EngineError::NotApproved { preview, .. } | EngineError::Undecided { preview } = inner {
            body.plan = Some(preview.plan_id.clone());
        }
    }
    Report { body, exit: exit_code(error) }
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

/// How a run ends that a session log has stopped: what the session or its harness refuses is a decision (design § 9).
pub(crate) fn log_exit(error: &LogError) -> u8 {
    match error {
        LogError::NotFound { .. } => exit::NOT_FOUND,
        LogError::AlreadyExists { .. } | LogError::InvalidBoundary { .. } | LogError::OpenTurn { .. } => exit::DECISION,
        LogError::BadId { .. } | LogError::BadTarget { .. } => exit::USAGE,
        error if error.is_refusal() => exit::DECISION,
        _ => exit::FAILURE,
    }
}

/// An error with its causes as a warning has it, for people, on one line.
pub(crate) fn one_line(error: &CliError) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        // Some messages have their cause in them.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    wire::shown(&text)
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
        CliError::Engine(engine) | CliError::Planned { engine, .. } => engine.innermost(),
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

/// The text for people: `error: …`, causes, paths, then `hint: …`.
///
/// Paths are named from the directory `below` the root.
pub(crate) fn human(report: &Report, below: &Path) -> String {
    const SHOWN: usize = 20;
    let body = &report.body;
    let mut text = format!("error: {}", wire::shown(&body.message));
    for cause in &body.causes {
        put!(text, "\n  caused by: {}", wire::shown(cause));
    }
    for entry in body.paths.iter().take(SHOWN) {
        put!(text, "\n  {}", entry.line(below));
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
