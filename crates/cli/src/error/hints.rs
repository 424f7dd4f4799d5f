//! What to do about an error: commands to paste first of all.

use checkpoint_core::{Blocked, EngineError, LockError, Preview, RelPath, SessionError};
use index_store::DataError;

use super::{CliError, Facts, Typed, guesses, quote};

/// What to do about an error, one line each.
pub(super) fn hints(error: &CliError, typed: &Typed) -> Vec<String> {
    match error {
        CliError::Clap(error) => clap_hints(error, typed),
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
            vec![
                format!("to make points here without any agent's hooks: {}", typed.other(&["save"])),
                format!("to protect this directory from now on: {}", typed.other(&["init"])),
            ]
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
        CliError::Engine(engine) => engine_hints(engine.innermost(), typed, &Facts { turns: true, ..Facts::default() }),
        CliError::Planned { engine, facts } => engine_hints(engine.innermost(), typed, facts),
        CliError::Data(DataError::Refused { .. }) => {
            vec!["a project's own directory is meant; --force goes on all the same".into()]
        }
        CliError::Data(DataError::OtherIndex { existing, .. }) => {
            vec![format!("leave --index out, or say --index {existing}")]
        }
        CliError::Data(DataError::Index(checkpoint_core::IndexError::ReadOnly)) => read_only_hints(),
        CliError::Data(DataError::Damaged { .. } | DataError::Index(_)) => vec![typed.other(&["doctor"])],
        CliError::Data(DataError::Format { .. }) => vec!["a newer rwd wrote it: update rwd".into()],
        CliError::Data(DataError::Busy { .. }) => vec!["try again when it is done".into()],
        _ if super::code(error) == "read-only-store" => read_only_hints(),
        _ => Vec::new(),
    }
}

fn read_only_hints() -> Vec<String> {
    vec!["the data directory may not be written: make it writable, or use another with --data-dir DIR".into()]
}

fn clap_hints(error: &clap::Error, typed: &Typed) -> Vec<String> {
    let text = error.to_string();
    let tips = text.lines().map(str::trim).filter_map(|line| line.strip_prefix("tip: ")).map(str::to_owned);
    tips.chain(guesses(error, typed)).chain(["rwd --help".to_owned()]).collect()
}

fn engine_hints(error: &EngineError, typed: &Typed, facts: &Facts) -> Vec<String> {
    match error {
        EngineError::NotFound { given, choices } | EngineError::Ambiguous { given, choices } => {
            let mut hints = Vec::new();
            if !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit()) {
                hints.push(format!("the end of turn {given} is t{given}, the moment before it t{given}^"));
            }
            if choices.iter().any(|choice| choice == "--chat") {
                let chat = typed.decided(&["--chat"], None);
                return vec![format!("no point was made there; the conversation alone can go: {chat}")];
            }
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
            let log: &[&str] = if given.starts_with("operation ") { &["log", "--ops"] } else { &["log"] };
            hints.push(typed.other(log));
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
        EngineError::Unfinished { forking, .. } => recover_hints(typed, *forking),
        EngineError::Stuck { .. } | EngineError::Unrecorded { .. } => recover_hints(typed, false),
        EngineError::OnlyForward { operation } => vec![
            format!("to finish it: {}", typed.other(&["recover", "--finish"])),
            format!("to put the files back after that: {}", typed.other(&["undo", &operation.short()])),
        ],
        EngineError::NotForked { outcome, closed, source } => {
            let mut hints = session_hints(source, typed);
            // The files have gone back already.
            hints.retain(|hint| !hint.starts_with("files alone:"));
            if !closed {
                hints.push(format!("to ask for the fork again: {}", typed.other(&["recover", "--finish"])));
                hints.push(format!("to go on without it: {}", typed.other(&["recover", "--finish", "--force"])));
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
        EngineError::Guard { source } if source.is_read_only() => read_only_hints(),
        EngineError::Index(checkpoint_core::IndexError::ReadOnly) => read_only_hints(),
        EngineError::Snapshot(error) if error.is_read_only() => read_only_hints(),
        EngineError::UnknownPath { .. } => vec!["paths are literal and relative to the current directory".into()],
        EngineError::Guard { source: checkpoint_core::SnapshotError::NoSpace { .. } }
        | EngineError::Snapshot(checkpoint_core::SnapshotError::NoSpace { .. })
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
    if outcome.restored.is_empty() && outcome.removed.is_empty() {
        return None;
    }
    let operation = outcome.operation?;
    Some(format!("to put the files back: {}", typed.other(&["undo", &operation.short()])))
}

/// What can be done where a session refuses.
fn session_hints(error: &SessionError, typed: &Typed) -> Vec<String> {
    let files = || format!("files alone: {}", typed.decided(&["--files"], None));
    let show = |what: &str, session: &checkpoint_core::SessionKey| {
        format!("to see {what}: {}", typed.other(&["session", "boundaries", &session.to_string()]))
    };
    // Other commands have no files to put back.
    let goes_back = || typed.words.iter().any(|word| matches!(&**word, "to" | "preview" | "back"));
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
        SessionError::NotFound(session) => {
            vec![format!(
                "no log of {session} is where its harness keeps them: {}",
                match session.harness() {
                    "claude" => "below $CLAUDE_CONFIG_DIR, else ~/.claude",
                    "codex" => "below $CODEX_HOME, else ~/.codex",
                    "gemini" => "below $GEMINI_CLI_HOME/.gemini, else ~/.gemini",
                    "opencode" => "in the database of opencode ($XDG_DATA_HOME/opencode, else ~/.local/share/opencode)",
                    _ => "for dsh that is below $DSH_HOME, else ~/.dsh",
                }
            )]
        }
        SessionError::Unsupported => vec![
            "rwd cuts session logs of dsh (format 0, below $DSH_HOME, else ~/.dsh), claude ($CLAUDE_CONFIG_DIR, else \
             ~/.claude), codex ($CODEX_HOME, else ~/.codex), gemini ($GEMINI_CLI_HOME/.gemini, else ~/.gemini) and \
             opencode (by the program opencode: $OPENCODE_BIN, else on PATH)"
                .into(),
            format!("to see which there are: {}", typed.other(&["session", "list"])),
        ]
        .into_iter()
        .chain(goes_back().then(files))
        .collect(),
        SessionError::UnsupportedFormat { session, .. } | SessionError::Corrupt { session, .. } => {
            let why = format!("to see why: {}", typed.other(&["session", "verify", &session.to_string()]));
            std::iter::once(why).chain(goes_back().then(files)).collect()
        }
        SessionError::NothingLeft { .. } => {
            let anew = "to begin anew, start a fresh session in its client".to_owned();
            std::iter::once(anew).chain(goes_back().then(files)).collect()
        }
        SessionError::Unplaced { .. } | SessionError::Lineage { .. } => vec![files()],
        SessionError::Harness { .. } if goes_back() => vec![files()],
        _ => Vec::new(),
    }
}

/// The ways out of an unfinished operation; once the host was asked for the child there is only one.
pub(crate) fn recover_hints(typed: &Typed, forking: bool) -> Vec<String> {
    let mut hints = vec![format!("to do the rest: {}", typed.other(&["recover", "--finish"]))];
    if !forking {
        hints.push(format!("to take it back: {}", typed.other(&["recover", "--back"])));
    }
    hints
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
