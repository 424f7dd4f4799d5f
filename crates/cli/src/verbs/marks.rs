//! `rwd mark` and `rwd fold`: an exploration that becomes a report in a child of its session (001). The session's own log
//! is read and never written.

use std::io::Read;
use std::path::Path;

use checkpoint_core::fold::{
    Cancel, FoldError, FoldHost, FoldRequest, RegionEnd, ReportLanguage, ReportSource, log_length, open_turn,
};
use checkpoint_core::{Clock, EngineError, SessionKey};
use harness_adapter::sessions::dsh::{ChildFolds, DshLogs, HARNESS};

use super::plan_text::go_on;
use super::session::CHOICES;
use crate::args::{FoldArgs, LanguageChoice, MarkArgs};
use crate::compose::{Opened, TOGETHER_MS};
use crate::error::CliError;
use crate::exit;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, shown};
use crate::world::dsh_home;
use rwd_engine::SystemClock;

/// A report is no longer than what it replaces; nothing sensible is longer than this.
const LARGEST_REPORT: u64 = 4 << 20;

pub(crate) fn mark(run: &Run, args: &MarkArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let session = session(run, &opened)?;
    let events = host(run, &session)?.events(&session).map_err(EngineError::from)?;
    let mark = opened.engine.mark(&session, log_length(&events), open_turn(&events), args.objective.clone())?;
    let answer = wire::Marked {
        id: mark.id,
        log_length: mark.log_length,
        session: session.to_string(),
        turn: mark.turn.map(|turn| turn.0),
        objective: mark.objective,
    };
    run.out.answer(&answer, |answer| {
        let mut out = format!("mark {} in {} at event {}\n", answer.id, shown(&answer.session), answer.log_length);
        put!(out, "to fold what follows: {}\n", run.typed.other(&["fold", "--session", &answer.session]));
        out
    })?;
    Ok(exit::OK)
}

pub(crate) fn fold(run: &Run, args: &FoldArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let session = session(run, &opened)?;
    let host = host(run, &session)?;
    let given = args.report.as_deref().map(|path| read_report(run, path)).transpose()?;
    let source = given.as_deref().map_or(ReportSource::Extract, ReportSource::Given);
    let request = FoldRequest {
        session: session.clone(),
        // The call of an agent that runs rwd is no message of its own to keep: what follows the mark goes as a whole.
        end: RegionEnd::Tail,
        language: match args.language {
            LanguageChoice::En => ReportLanguage::En,
            LanguageChoice::Zh => ReportLanguage::Zh,
        },
        cancel: Cancel::default(),
    };
    let outcome = opened.engine.fold(&request, &host, &source).map_err(|error| refused(run, error))?;
    let mark = opened.engine.latest_mark(&session)?.filter(|mark| mark.id == outcome.folded.mark_id);
    let child = mark.map(|mark| ChildFolds::child_of(&mark)).unwrap_or_default();
    let key = SessionKey::new(session.harness(), &child).ok();
    let folded = &outcome.folded;
    let answer = wire::Folded {
        mark_id: folded.mark_id,
        folded_nodes: folded.folded_nodes,
        start: folded.start.0,
        end: folded.end.0,
        folded_chars: folded.folded_chars,
        report_chars: folded.report_chars,
        session: session.to_string(),
        go_on: go_on(session.harness(), &child),
        child_path: key.and_then(|key| run.world.sessions.location(&key)).map(|path| wire::absolute(&path)),
        child_session_id: child,
        recovered: outcome.recovered,
    };
    run.out.answer(&answer, |answer| {
        let mut out = format!("{folded}\n");
        if answer.recovered {
            put!(out, "the report was there already; only its mark was not\n");
        }
        if let Some(go_on) = &answer.go_on {
            put!(out, "to go on: {go_on}\n");
        } else {
            put!(out, "to go on, open this session in its harness: {}\n", shown(&answer.child_session_id));
        }
        if let Some(path) = &answer.child_path {
            put!(out, "its log: {}\n", path.line());
        }
        out
    })?;
    Ok(exit::OK)
}

/// The session meant: the one named, else the newest whose log says that it works here.
fn session(run: &Run, opened: &Opened) -> Result<SessionKey, CliError> {
    if let Some(session) = opened.session(run)? {
        return Ok(session);
    }
    let here = run.world.sessions.working_in(opened.located.root()).map_err(EngineError::from)?;
    let now = Clock::now(&SystemClock).0;
    let together: Vec<String> = here
        .iter()
        .filter(|resident| now - resident.seen.0 < TOGETHER_MS)
        .map(|resident| resident.key.to_string())
        .collect();
    if together.len() > 1 {
        let one_of = |key: &String| format!("one of them: {}", run.typed.with(&["--session", key]));
        return Err(CliError::Coded {
            code: "ambiguous",
            message: "several sessions are at work here".to_owned(),
            hints: together.iter().take(CHOICES).map(one_of).collect(),
            exit: exit::NOT_FOUND,
        });
    }
    here.into_iter().next().map(|resident| resident.key).ok_or_else(|| CliError::Coded {
        code: "SESSION_NOT_FOUND",
        message: "no session with a log that can be read works in this workspace".to_owned(),
        hints: vec![
            format!("to see all sessions: {}", run.typed.other(&["session", "list"])),
            "name one with --session HARNESS:ID".to_owned(),
        ],
        exit: exit::NOT_FOUND,
    })
}

/// Who writes the child.
fn host(run: &Run, session: &SessionKey) -> Result<ChildFolds, CliError> {
    let home = (session.harness() == HARNESS).then(|| dsh_home(&run.world.vars)).flatten();
    let home = home.ok_or_else(|| CliError::Coded {
        code: "FORK_UNSUPPORTED",
        message: format!("the log of session {session} cannot be read and cut here"),
        hints: vec![format!("sessions of these can be folded: {HARNESS}")],
        exit: exit::DECISION,
    })?;
    Ok(ChildFolds::new(DshLogs::open(run.absolute(&home)?)))
}

fn read_report(run: &Run, path: &Path) -> Result<String, CliError> {
    let failed = |error: std::io::Error| CliError::failure(format!("cannot read the report {}", path.display()), error);
    let file = std::fs::File::open(run.absolute(path)?).map_err(failed)?;
    let mut report = String::new();
    file.take(LARGEST_REPORT + 1).read_to_string(&mut report).map_err(failed)?;
    if report.len() as u64 > LARGEST_REPORT {
        return Err(CliError::usage("report-too-large", "the report is larger than 4 MiB"));
    }
    Ok(report)
}

fn refused(run: &Run, error: FoldError) -> CliError {
    let hints = match &error {
        FoldError::NoCheckpoint { session } => {
            let session = session.to_string();
            vec![format!("to set one: {}", run.typed.other(&["mark", "--session", &session]))]
        }
        FoldError::Shrink { .. } => {
            vec!["a report replaces what it reports on: make it shorter, or let it be".to_owned()]
        }
        FoldError::InProgress { .. } => vec!["try again when it is done".to_owned()],
        FoldError::NoReport { .. } => vec!["write the report into the file, or leave --report out".to_owned()],
        FoldError::Unstamped { .. } => vec!["the same command again settles it".to_owned()],
        _ => Vec::new(),
    };
    let (code, exit, message) = (error.code(), exit::of(error.kind()), error.to_string());
    match error {
        FoldError::Engine(error) => error.into(),
        _ => CliError::Coded { code, message, hints, exit },
    }
}
