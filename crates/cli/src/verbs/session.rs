//! `rwd session`: session logs of a harness, straight from its own files. Needs no workspace, and never changes a log.

use std::path::{Path, PathBuf};

use checkpoint_core::{Clock, Seq, Timestamp, Turn};
use harness_adapter::sessions::dsh::strict::{Severity, Strict};
use harness_adapter::sessions::dsh::{
    Boundary, DshLogs, Encoding, HARNESS, Inspection, LogError, SessionSummary, Torn, TurnSpan,
};
use harness_adapter::sessions::{CLIENTS, opencode};

use super::plan_text::go_on;
use super::talks;
use crate::args::{LogsArgs, OneSession, SessionVerb};
use crate::error::{CliError, log_exit};
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, shown};
use crate::world::dsh_home;
use crate::{exit, text};
use rwd_engine::SystemClock;

/// So many ids are named in an error.
pub(super) const CHOICES: usize = 10;

pub(crate) fn session(run: &Run, verb: &SessionVerb) -> Result<u8, CliError> {
    if let Some(client) = talks::client(verb) {
        return talks::session(run, client, verb);
    }
    match verb {
        SessionVerb::List { logs } => list(run, logs),
        SessionVerb::Show(one) => show(run, one),
        SessionVerb::Boundaries(one) => boundaries(run, one),
        SessionVerb::Fork { session, at, turn, child } => fork(run, session, *at, *turn, child.as_deref()),
        SessionVerb::Verify(one) => verify(run, one),
        SessionVerb::Repair { session, to } => repair(run, session, to.as_deref()),
    }
}

/// The logs that flags and environment mean, and the directory they lie in.
struct Home {
    logs: DshLogs,
    dir: PathBuf,
    /// The flags that lead there, for other commands to paste.
    flags: Vec<String>,
}

impl Home {
    /// Another command for these logs.
    fn next(&self, run: &Run, words: &[&str]) -> String {
        let flags = self.flags.iter().map(String::as_str);
        run.typed.other(&std::iter::once("session").chain(words.iter().copied()).chain(flags).collect::<Vec<_>>())
    }
}

fn home(run: &Run, args: &LogsArgs) -> Result<Home, CliError> {
    if let Some(other) = args.harness.as_deref().filter(|name| *name != HARNESS) {
        return Err(CliError::Usage {
            code: "unknown-harness",
            message: format!("the session logs of {other} cannot be read"),
            hint: Some(format!("logs of these can be read: {HARNESS}, {}", CLIENTS.join(", "))),
        });
    }
    let dir = match &args.home {
        Some(home) => run.absolute(home)?,
        None => dsh_home(&run.world.vars)
            .ok_or_else(|| CliError::usage("no-home", "there is no home directory: say --home"))?,
    };
    // What is there must not depend on the current directory.
    let dir = run.absolute(&dir)?;
    let given = args.home.as_deref().map(|home| ["--home".to_owned(), home.to_string_lossy().into_owned()]);
    Ok(Home { logs: DshLogs::open(&dir), dir, flags: given.into_iter().flatten().collect() })
}

/// The session that an argument means: its id, `HARNESS:ID`, or a unique beginning of its id.
fn find(run: &Run, home: &Home, one: &OneSession) -> Result<String, CliError> {
    let id = one.id.strip_prefix(HARNESS).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&one.id);
    let list = home.logs.list()?;
    if id.is_empty() || list.iter().any(|entry| entry.id == id) {
        return Ok(id.to_owned());
    }
    let found: Vec<&str> = list.iter().map(|entry| entry.id.as_str()).filter(|known| known.starts_with(id)).collect();
    match found.as_slice() {
        [one] => Ok((*one).to_owned()),
        many => {
            let known = list.iter().map(|entry| entry.id.as_str());
            let choices: Vec<&str> = if many.is_empty() { known.take(CHOICES).collect() } else { many.to_vec() };
            let mut hints = Vec::new();
            if !choices.is_empty() {
                hints.push(format!("there is: {}", choices.join("  ")));
            }
            hints.push(home.next(run, &["list"]));
            if many.is_empty() {
                // What makes the harness refuse the whole folder may be why it is not found.
                if let Err(fault @ (LogError::FlatLayout { .. } | LogError::MixedEncodings { .. })) =
                    home.logs.host_list()
                {
                    return Err(fault.into());
                }
                let error = LogError::NotFound { id: id.to_owned(), sessions: home.logs.sessions() };
                return Err(CliError::Log { error: Box::new(error), hints });
            }
            let message = format!("{id:?} is the beginning of several ids");
            Err(CliError::Coded { code: "ambiguous", message, hints, exit: exit::NOT_FOUND })
        }
    }
}

fn millis(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

fn list(run: &Run, args: &LogsArgs) -> Result<u8, CliError> {
    let home = home(run, args)?;
    // A folder that was named and holds no logs is the wrong one.
    if args.home.is_some() && !home.logs.sessions().is_dir() {
        return Err(CliError::Coded {
            code: "no-sessions",
            message: format!("{} is not there", home.logs.sessions().display()),
            hints: vec!["--home is the directory that holds sessions/".to_owned()],
            exit: exit::NOT_FOUND,
        });
    }
    let mut sessions: Vec<wire::LogEntry> = home.logs.list()?.into_iter().map(entry).collect();
    sessions.sort_by_key(|entry| std::cmp::Reverse(entry.created_at));
    let answer = wire::SessionList { home: wire::absolute(&home.dir), sessions };
    run.out.answer(&answer, |answer| {
        let now = SystemClock.now();
        let mut out = String::new();
        for entry in &answer.sessions {
            let at = entry.created_at.map_or_else(|| "?".to_owned(), |at| text::time(Timestamp(at), now));
            put!(out, "{}  {at}", shown(&entry.id));
            if let Some(cwd) = &entry.cwd {
                put!(out, "  {}", shown(cwd));
            }
            match (&entry.parent, entry.subagent) {
                (Some(parent), true) => put!(out, "  subagent of {}", shown(parent)),
                (Some(parent), false) => put!(out, "  from {}", shown(parent)),
                (None, _) => {}
            }
            if let Some(problem) = &entry.problem {
                put!(out, "  {}", shown(problem));
            }
            out.push('\n');
        }
        put!(out, "{} in {}\n", text::count(answer.sessions.len() as u64, "session"), answer.home.line());
        if let Some(newest) = answer.sessions.first() {
            put!(out, "to see one: {}\n", home.next(run, &["show", &newest.id]));
        } else if args.harness.is_none() && args.home.is_none() {
            // Whoever uses another agent has none here, and would think that rwd knows none.
            let others = run.typed.other(&["session", "list", "--harness", "NAME"]);
            // What has no list is not offered as one.
            let listed: Vec<&str> = CLIENTS.into_iter().filter(|client| *client != opencode::HARNESS).collect();
            put!(out, "these are those of {HARNESS}; of {}: {others}\n", listed.join(", "));
        }
        out
    })?;
    Ok(exit::OK)
}

fn entry(summary: SessionSummary) -> wire::LogEntry {
    // Where the head cannot be read nothing of it is known.
    let known = summary.created_at > 0 || summary.key.is_some();
    wire::LogEntry {
        session: summary.key.map(|key| key.to_string()),
        id: summary.id,
        harness: HARNESS,
        path: wire::absolute(&summary.path),
        cwd: summary.cwd,
        created_at: known.then(|| millis(summary.created_at)),
        parent: summary.parent,
        seed_length: summary.seed_length,
        subagent: summary.subagent,
        version: known.then_some(summary.version),
        encoding: match summary.encoding {
            Encoding::Zstd => "zstd",
            Encoding::Plain => "plain",
        },
        problem: summary.problem.map(|problem| format!("{}: {}", problem.code, problem.message)),
    }
}

fn turn_entry(span: &TurnSpan) -> wire::TurnEntry {
    wire::TurnEntry {
        turn: span.turn.0,
        start: span.start.0,
        end: span.end.map(|end| end.0),
        reason: span.reason.clone(),
        at: span.end.map(|_| span.at),
        prompt: span.prompt.clone(),
    }
}

const fn torn_entry(torn: &Torn) -> wire::TornEntry {
    wire::TornEntry { offset: torn.offset, bytes: torn.bytes, recovered: torn.recovered }
}

fn show(run: &Run, one: &OneSession) -> Result<u8, CliError> {
    let home = home(run, &one.logs)?;
    let id = find(run, &home, one)?;
    let found = home.logs.inspect(&id)?;
    let answer = wire::SessionShown {
        harness: HARNESS,
        path: wire::absolute(&found.path),
        cwd: found.header.cwd.as_ref().map(ToString::to_string),
        created_at: Some(millis(found.header.created_at)),
        parent: found.header.parent.as_ref().map(ToString::to_string),
        seed_length: found.header.seed_length,
        subagent: found.header.subagent,
        version: Some(found.version),
        events: found.events,
        turns: found.turns.iter().map(turn_entry).collect(),
        open_turn: found.open_turn.map(|turn| turn.0),
        torn: found.torn.as_ref().map(torn_entry),
        loadable: found.loadable,
        id,
    };
    run.out.answer(&answer, |answer| {
        let now = SystemClock.now();
        let turns = text::count(answer.turns.len() as u64, "turn");
        let mut out = format!("{}: {turns}, {}\n", shown(&answer.id), text::count(answer.events, "event"));
        if let Some(parent) = &answer.parent {
            let shares =
                answer.seed_length.map(|n| format!(", shares {}", text::count(n, "event"))).unwrap_or_default();
            put!(out, "{} {}{shares}\n", if answer.subagent { "subagent of" } else { "from" }, shown(parent));
        }
        for turn in &answer.turns {
            let at = turn.at.map_or_else(|| "open".to_owned(), |at| text::time(Timestamp(at), now));
            put!(out, "t{:<4} {at}  {:<11}", turn.turn, turn.reason.as_deref().unwrap_or("-"));
            let prompt: String = turn.prompt.iter().flat_map(|prompt| prompt.chars()).take(60).collect();
            put!(out, "  {}\n", shown(&prompt));
        }
        problems_text(&mut out, run, &home, &found);
        put!(out, "{}\n", answer.path.line());
        out
    })?;
    Ok(exit::OK)
}

/// What a person should know of a log before it is used.
fn problems_text(out: &mut String, run: &Run, home: &Home, found: &Inspection) {
    if let Some(torn) = &found.torn {
        put!(out, "its end is torn: {} that the harness cuts off when it loads it\n", text::count(torn.bytes, "byte"));
    }
    if !found.loadable {
        let id = found.header.id.to_string();
        put!(out, "the harness refuses it: {}\n", home.next(run, &["verify", &id]));
    }
}

fn boundaries(run: &Run, one: &OneSession) -> Result<u8, CliError> {
    let home = home(run, &one.logs)?;
    let id = find(run, &home, one)?;
    let found = home.logs.inspect(&id)?;
    let boundary = |at: &Boundary| wire::BoundaryEntry {
        seq: at.seq.0,
        turn: at.turn.0,
        reason: Some(at.reason.clone()),
        at: Some(at.at),
    };
    let answer = wire::SessionBoundaries {
        id,
        harness: HARNESS,
        boundaries: found.boundaries.iter().map(boundary).collect(),
        open_turn: found.open_turn.map(|turn| turn.0),
    };
    boundaries_answer(run, &answer, &|words| home.next(run, words))
}

/// Writes the answer of `boundaries`; `next` makes another command for the same logs.
pub(super) fn boundaries_answer(
    run: &Run,
    answer: &wire::SessionBoundaries,
    next: &dyn Fn(&[&str]) -> String,
) -> Result<u8, CliError> {
    run.out.answer(answer, |answer| {
        let now = SystemClock.now();
        let mut out = String::new();
        for at in &answer.boundaries {
            let time = at.at.map_or_else(|| "-".to_owned(), |at| text::time(Timestamp(at), now));
            put!(out, "{:>6}  t{:<4} {time}  {}\n", at.seq, at.turn, shown(at.reason.as_deref().unwrap_or("-")));
        }
        if let Some(turn) = answer.open_turn {
            put!(out, "turn {turn} has not ended\n");
        }
        if let Some(last) = answer.boundaries.last() {
            let turn = last.turn.to_string();
            put!(out, "to make a session of what is before: {}\n", next(&["fork", &answer.id, "--turn", &turn]));
        } else {
            out.push_str("no turn has ended\n");
        }
        out
    })?;
    Ok(exit::OK)
}

/// The end of a turn, or why there is none.
fn end_of(found: &Inspection, id: &str, turn: Turn) -> Result<Seq, LogError> {
    if let Some(at) = found.boundaries.iter().rev().find(|at| at.turn == turn) {
        return Ok(at.seq);
    }
    let id = id.to_owned();
    match found.turns.iter().rev().find(|span| span.turn == turn) {
        Some(span) => Err(LogError::OpenTurn { id, seq: span.start, turn }),
        None => Err(LogError::InvalidBoundary { id, seq: Seq(0), last: None }),
    }
}

fn fork(run: &Run, one: &OneSession, at: Option<u64>, turn: Option<u32>, child: Option<&str>) -> Result<u8, CliError> {
    let home = home(run, &one.logs)?;
    let id = find(run, &home, one)?;
    let at = match turn {
        Some(turn) => {
            let found = home.logs.inspect(&id)?;
            let end = end_of(&found, &id, Turn(turn));
            Some(end.map_err(|error| refused(run, &home, &id, error, Some(turn)))?)
        }
        None => at.map(Seq),
    };
    let made = home.logs.fork_at(&id, at, child, None).map_err(|error| refused(run, &home, &id, error, None))?;
    let answer = wire::SessionForked {
        path: wire::absolute(&made.path),
        seed_length: made.seed_length,
        boundary: made.boundary.map(|seq| seq.0),
        closers: made.closers,
        go_on: go_on(HARNESS, &made.child),
        child: made.child,
    };
    fork_answer(run, &id, &answer)
}

/// Writes the answer of `fork`.
pub(super) fn fork_answer(run: &Run, id: &str, answer: &wire::SessionForked) -> Result<u8, CliError> {
    run.out.answer(answer, |answer| {
        let mut out = format!("{} shared with {}\n", text::count(answer.seed_length, "event"), shown(id));
        if let Some(go_on) = &answer.go_on {
            put!(out, "to go on: {go_on}\n");
        } else {
            put!(out, "to go on, open this session in its harness: {}\n", shown(&answer.child));
        }
        put!(out, "its log: {}\n", answer.path.line());
        out
    })?;
    Ok(exit::OK)
}

/// Where a cut is refused, what to do instead.
fn refused(run: &Run, home: &Home, id: &str, error: LogError, turn: Option<u32>) -> CliError {
    let see = format!("to see where it can be cut: {}", home.next(run, &["boundaries", id]));
    match (&error, turn) {
        (LogError::InvalidBoundary { .. }, Some(turn)) => CliError::Coded {
            code: error.code(),
            message: format!("session {id:?} has no turn {turn}"),
            hints: vec![see],
            exit: log_exit(&error),
        },
        (LogError::UnknownEvent { .. }, _) => {
            let hints = vec![error.advice().to_owned(), see];
            CliError::Log { error: Box::new(error), hints }
        }
        (LogError::InvalidBoundary { .. } | LogError::OpenTurn { .. }, _) => {
            CliError::Log { error: Box::new(error), hints: vec![see] }
        }
        _ => error.into(),
    }
}

fn verify(run: &Run, one: &OneSession) -> Result<u8, CliError> {
    let home = home(run, &one.logs)?;
    let id = find(run, &home, one)?;
    let answer = match home.logs.inspect(&id) {
        Ok(found) => checked(&home, id, &found)?,
        // A log that cannot even be opened is what was asked about.
        Err(error) if error.is_refusal() => wire::SessionVerified {
            path: unreadable(&home, &id),
            id,
            loadable: false,
            strict: false,
            version: None,
            events: 0,
            problems: vec![problem(error.code(), None, error.to_string(), "broken")],
        },
        Err(error) => return Err(error.into()),
    };
    run.out.answer(&answer, |answer| {
        let mut out = String::new();
        for problem in &answer.problems {
            let at = problem.seq.map(|seq| format!(" at event {seq}")).unwrap_or_default();
            put!(out, "{}{at}: {}\n", problem.code, shown(&problem.message));
        }
        // What cannot be read here may still load there.
        if answer.problems.iter().any(|problem| problem.code == "UNSUPPORTED_VERSION") {
            put!(out, "{}: nothing can be said of it here\n", shown(&answer.id));
            return out;
        }
        let load = if answer.loadable { "the harness can load it" } else { "the harness refuses it" };
        let strict = if answer.strict { "every rule is kept" } else { "rules are broken" };
        put!(out, "{}: {load}; {strict}; {}\n", shown(&answer.id), text::count(answer.events, "event"));
        if answer.loadable && !answer.strict {
            out.push_str("a later version of the harness may refuse it when it migrates the log\n");
        }
        out
    })?;
    Ok(if answer.loadable { exit::OK } else { exit::DAMAGED })
}

fn problem(code: &str, seq: Option<u64>, message: String, severity: &'static str) -> wire::ProblemEntry {
    wire::ProblemEntry { code: code.to_owned(), seq, message, severity }
}

/// Where the log of a session lies whose head cannot be read.
fn unreadable(home: &Home, id: &str) -> wire::PathEntry {
    let listed = home.logs.list().unwrap_or_default().into_iter().find(|entry| entry.id == id);
    wire::absolute(&listed.map_or_else(|| home.logs.sessions(), |entry| entry.path))
}

fn checked(home: &Home, id: String, found: &Inspection) -> Result<wire::SessionVerified, CliError> {
    let mut problems: Vec<wire::ProblemEntry> = found
        .problems
        .iter()
        .map(|at| problem(at.code, at.seq.map(|seq| seq.0), at.message.clone(), "broken"))
        .collect();
    let mut strict = Strict::new();
    let read = home.logs.for_each_event(&id, &mut |event| {
        strict.take(event);
        std::ops::ControlFlow::Continue(())
    });
    match read {
        // Where the log ends early what is open there says nothing.
        Err(error) if error.is_refusal() => {}
        Err(error) => return Err(error.into()),
        Ok(_) => {
            let word = |severity| if severity == Severity::Open { "open" } else { "broken" };
            let told = strict.finish().into_iter();
            problems.extend(told.map(|at| problem(at.code, at.seq, at.message, word(at.severity))));
        }
    }
    Ok(wire::SessionVerified {
        path: wire::absolute(&found.path),
        loadable: found.loadable,
        strict: found.loadable && problems.iter().all(|problem| problem.severity == "open"),
        version: Some(found.version),
        events: found.events,
        problems,
        id,
    })
}

fn repair(run: &Run, one: &OneSession, to: Option<&Path>) -> Result<u8, CliError> {
    let home = home(run, &one.logs)?;
    let id = find(run, &home, one)?;
    let to = if let Some(to) = to {
        run.absolute(to)?
    } else {
        let mut beside = home.logs.inspect(&id)?.path.into_os_string();
        beside.push(".repaired");
        PathBuf::from(beside)
    };
    let made = home.logs.repair(&id, &to)?;
    let answer = wire::SessionRepaired {
        id,
        path: wire::absolute(&made.path),
        events: made.events,
        closers: made.closers,
        torn: made.torn.as_ref().map(torn_entry),
    };
    run.out.answer(&answer, |answer| {
        let mut out = format!("{} in the copy", text::count(answer.events, "event"));
        if answer.closers > 0 {
            put!(out, ", {} to close what was open", answer.closers);
        }
        if let Some(torn) = &answer.torn {
            put!(out, ", {} left out", text::count(torn.bytes, "torn byte"));
        }
        put!(out, "\nthe log stays as it is; the copy: {}\n", answer.path.line());
        out
    })?;
    Ok(exit::OK)
}
