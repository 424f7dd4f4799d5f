//! `rwd session` for the logs of Claude Code, Codex, Gemini CLI and opencode. Never changes a log that is there.

use std::path::PathBuf;
use std::sync::Arc;

use checkpoint_core::{
    BoundarySeq, Clock as _, EngineError, ForkRequest, IdSource as _, Seq, Session, SessionError, SessionHeader,
    SessionKey, Timestamp, Turn, boundary_at, boundary_of_turn, uuid,
};
use harness_adapter::sessions::{self, CLIENTS, ClientLogs, DoorError, Talked, opencode};
use index_store::{Registry, Standing};

use super::plan_text::go_on;
use super::session::{CHOICES, boundaries_answer, fork_answer};
use crate::approve::Consent;
use crate::args::{LogsArgs, OneSession, SessionVerb};
use crate::compose::{self, Located};
use crate::config::Settings;
use crate::error::CliError;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, shown};
use crate::world::client_home;
use crate::{exit, text};
use rwd_engine::{SystemClock, SystemIds};

/// The client whose logs are meant: by `--harness`, or by the beginning of `HARNESS:ID`.
pub(super) fn client(verb: &SessionVerb) -> Option<&'static str> {
    let (logs, id) = match verb {
        SessionVerb::List { logs } => (logs, None),
        SessionVerb::Show(one) | SessionVerb::Boundaries(one) | SessionVerb::Verify(one) => (&one.logs, Some(&one.id)),
        SessionVerb::Fork { session, .. } | SessionVerb::Repair { session, .. } => (&session.logs, Some(&session.id)),
    };
    let named = logs.harness.as_deref().or_else(|| id?.split_once(':').map(|(harness, _)| harness))?;
    CLIENTS.into_iter().find(|client| *client == named)
}

pub(super) fn session(run: &Run, client: &'static str, verb: &SessionVerb) -> Result<u8, CliError> {
    match verb {
        SessionVerb::List { logs } => list(run, &Home::open(run, client, logs)?),
        SessionVerb::Show(one) => show(run, &One::open(run, client, one)?),
        SessionVerb::Boundaries(one) => boundaries(run, &One::open(run, client, one)?),
        SessionVerb::Fork { session, at, turn, child } => {
            fork(run, &One::open(run, client, session)?, *at, *turn, child.as_deref())
        }
        SessionVerb::Verify(one) => verify(run, &One::open(run, client, one)?),
        SessionVerb::Repair { session, .. } => {
            let id = One::open(run, client, session)?.key;
            Err(CliError::Coded {
                code: "NO_REPAIR",
                message: format!("there is no repair for logs of {client}"),
                hints: vec![format!(
                    "its client reads over what is torn; to see where it can be cut: {}",
                    run.typed.other(&["session", "boundaries", &id.to_string()])
                )],
                exit: exit::DECISION,
            })
        }
    }
}

/// A client's logs, and where they lie.
struct Home {
    client: &'static str,
    logs: Arc<dyn ClientLogs>,
    dir: PathBuf,
    /// The flags that lead there, for other commands to paste.
    flags: Vec<String>,
}

impl Home {
    fn open(run: &Run, client: &'static str, args: &LogsArgs) -> Result<Self, CliError> {
        let dir = match &args.home {
            Some(home) => run.absolute(home)?,
            None => client_home(client, &run.world.vars)
                .ok_or_else(|| CliError::usage("no-home", "there is no home directory: say --home"))?,
        };
        // What is there must not depend on the current directory.
        let dir = run.absolute(&dir)?;
        let given = args.home.as_deref().map(|home| ["--home".to_owned(), home.to_string_lossy().into_owned()]);
        let unknown = || CliError::usage("unknown-harness", format!("the session logs of {client} cannot be read"));
        let logs = sessions::client_logs(client, dir.clone()).ok_or_else(unknown)?;
        Ok(Self { client, logs, dir, flags: given.into_iter().flatten().collect() })
    }

    /// Another command for these logs.
    fn next(&self, run: &Run, words: &[&str]) -> String {
        let flags = self.flags.iter().map(String::as_str);
        run.typed.other(&std::iter::once("session").chain(words.iter().copied()).chain(flags).collect::<Vec<_>>())
    }

    fn failed(&self, id: &str, error: DoorError) -> CliError {
        match SessionKey::new(self.client, id) {
            Ok(key) => EngineError::Session(error.of(&key)).into(),
            Err(error) => CliError::usage("bad-session", error.to_string()),
        }
    }
}

/// One session of a client.
struct One {
    home: Home,
    key: SessionKey,
}

impl One {
    /// The session that an argument means: its id, `HARNESS:ID`, or a unique beginning of its id.
    fn open(run: &Run, client: &'static str, one: &OneSession) -> Result<Self, CliError> {
        let home = Home::open(run, client, &one.logs)?;
        let id = one.id.strip_prefix(client).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&one.id);
        let key =
            |id: &str| SessionKey::new(client, id).map_err(|error| CliError::usage("bad-session", error.to_string()));
        let exact = key(id)?;
        if home.logs.can_fork(&exact) {
            return Ok(Self { home, key: exact });
        }
        let known: Vec<String> =
            home.logs.sessions().map_err(|error| home.failed(id, error))?.into_iter().map(|(id, _)| id).collect();
        let found: Vec<&String> = known.iter().filter(|known| known.starts_with(id)).collect();
        if let [one] = found.as_slice() {
            let key = key(one)?;
            return Ok(Self { home, key });
        }
        let none = found.is_empty();
        let choices: Vec<&String> = if none { known.iter().take(CHOICES).collect() } else { found };
        let mut hints = Vec::new();
        if !choices.is_empty() {
            let choices: Vec<&str> = choices.into_iter().map(String::as_str).collect();
            hints.push(format!("there is: {}", choices.join("  ")));
        }
        hints.push(home.next(run, &["list", "--harness", client]));
        // It may be there and broken.
        if none
            && let Err(error) = home.logs.header(&exact)
            && !matches!(error, SessionError::NotFound(_))
        {
            return Err(EngineError::Session(error).into());
        }
        let (code, message) = if none {
            ("SESSION_NOT_FOUND", format!("no log of session {id:?} below {}", home.dir.display()))
        } else {
            ("ambiguous", format!("{id:?} is the beginning of several ids"))
        };
        Err(CliError::Coded { code, message, hints, exit: exit::NOT_FOUND })
    }

    fn talked(&self) -> Result<Talked, CliError> {
        self.home.logs.talked(self.key.id()).map_err(|error| self.home.failed(self.key.id(), error))
    }

    /// As other commands take it.
    fn name(&self) -> String {
        self.key.to_string()
    }
}

fn list(run: &Run, home: &Home) -> Result<u8, CliError> {
    // opencode tells the sessions of one project alone: of the one that is here.
    let all = home.logs.listed(&run.start()?).map_err(|error| home.failed("all", error))?;
    let entries = all.into_iter().filter_map(|one| {
        let session = SessionKey::new(home.client, &one.id).ok()?.to_string();
        Some(wire::LogEntry {
            session: Some(session),
            id: one.id,
            harness: home.client,
            cwd: one.cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
            created_at: one.written.map(|at| at.0),
            path: wire::absolute(&one.path),
            parent: None,
            seed_length: None,
            subagent: false,
            version: None,
            encoding: "plain",
            problem: None,
        })
    });
    let answer = wire::SessionList { home: wire::absolute(&home.dir), sessions: entries.collect() };
    run.out.answer(&answer, |answer| {
        let now = SystemClock.now();
        let mut out = String::new();
        for entry in &answer.sessions {
            let at = entry.created_at.map_or_else(|| "?".to_owned(), |at| text::time(Timestamp(at), now));
            put!(out, "{}  {at}", shown(&entry.id));
            if let Some(cwd) = &entry.cwd {
                put!(out, "  {}", shown(cwd));
            }
            out.push('\n');
        }
        let of = if home.client == opencode::HARNESS { " of the project here" } else { "" };
        put!(out, "{}{of} in {}\n", text::count(answer.sessions.len() as u64, "session"), answer.home.line());
        if let Some(newest) = answer.sessions.first().and_then(|newest| newest.session.as_deref()) {
            put!(out, "to see one: {}\n", home.next(run, &["show", newest]));
        }
        out
    })?;
    Ok(exit::OK)
}

fn show(run: &Run, one: &One) -> Result<u8, CliError> {
    let talked = one.talked()?;
    let turns = talked.spans().into_iter().map(|(seen, turn, start, end)| wire::TurnEntry {
        turn: turn.0,
        start: start.0,
        end: end.map(|end| end.0),
        reason: None,
        at: None,
        prompt: seen.prompt.clone(),
    });
    let answer = wire::SessionShown {
        id: one.key.id().to_owned(),
        harness: one.home.client,
        path: wire::absolute(&talked.path),
        cwd: talked.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
        created_at: None,
        parent: talked.parent.clone(),
        seed_length: talked.parent.as_ref().map(|_| talked.seed_length()),
        subagent: talked.subagent,
        version: None,
        events: talked.beats().len() as u64,
        turns: turns.collect(),
        open_turn: talked.open_turn().map(|turn| turn.0),
        torn: None,
        loadable: true,
    };
    run.out.answer(&answer, |answer| {
        let mut out = format!("{}: {}\n", shown(&answer.id), text::count(answer.turns.len() as u64, "turn"));
        if let Some(parent) = &answer.parent {
            put!(out, "{} {}\n", if answer.subagent { "subagent of" } else { "from" }, shown(parent));
        }
        for turn in &answer.turns {
            let state = if turn.end.is_some() { "" } else { "(open) " };
            let prompt: String = turn.prompt.iter().flat_map(|prompt| prompt.chars()).take(60).collect();
            put!(out, "t{:<4} {state}{}\n", turn.turn, shown(&prompt));
        }
        if talked.torn {
            out.push_str("its last line is not whole: its client is writing, or was killed\n");
        }
        put!(out, "{}\n", answer.path.line());
        out
    })?;
    Ok(exit::OK)
}

fn boundaries(run: &Run, one: &One) -> Result<u8, CliError> {
    let talked = one.talked()?;
    let boundary = |(_, turn, _, end): (_, Turn, _, Option<Seq>)| {
        Some(wire::BoundaryEntry { seq: end?.0, turn: turn.0, reason: None, at: None })
    };
    let answer = wire::SessionBoundaries {
        id: one.key.id().to_owned(),
        harness: one.home.client,
        boundaries: talked.spans().into_iter().filter_map(boundary).collect(),
        open_turn: talked.open_turn().map(|turn| turn.0),
    };
    boundaries_answer(run, &answer, &|words| {
        let named: Vec<String> =
            words.iter().map(|word| if *word == one.key.id() { one.name() } else { (*word).to_owned() }).collect();
        one.home.next(run, &named.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

/// Where the session is cut: by default after its last turn, which must have ended.
fn cut(one: &One, talked: &Talked, at: Option<u64>, turn: Option<u32>) -> Result<BoundarySeq, SessionError> {
    let (session, beats) = (one.key.clone(), talked.beats());
    if let Some(turn) = turn.map(Turn) {
        let start = talked.spans().into_iter().find(|(_, known, ..)| *known == turn).map(|(_, _, start, _)| start);
        return boundary_of_turn(&beats, turn).ok_or_else(|| match start {
            Some(seq) => SessionError::OpenTurn { session: session.clone(), seq, turn },
            None => SessionError::NoTurn { session: session.clone(), turn },
        });
    }
    let last = || beats.last().map(|(seq, _)| *seq).ok_or(SessionError::NothingLeft { session: session.clone() });
    let at = at.map(Seq).map_or_else(last, Ok)?;
    boundary_at(&session, &beats, at)
}

fn fork(run: &Run, one: &One, at: Option<u64>, turn: Option<u32>, child: Option<&str>) -> Result<u8, CliError> {
    let talked = one.talked()?;
    let made_up = || one.home.logs.name_child(&one.key, &uuid(SystemIds.next()));
    let child = child.map_or_else(made_up, ToOwned::to_owned);
    let made = cut(one, &talked, at, turn).and_then(|boundary| {
        let request =
            ForkRequest { source: one.key.clone(), boundary: Some(boundary), child: child.clone(), notice: None };
        Ok((boundary, one.home.logs.fork(&request)?))
    });
    let (boundary, made) = made.map_err(EngineError::Session)?;
    if let Err(error) = remember(run, &one.key, &made) {
        tracing::warn!(%error, "the workspace does not know the new session yet");
    }
    let answer = wire::SessionForked {
        path: wire::absolute(&one.home.logs.location(&made.key).unwrap_or_default()),
        seed_length: made.seed_length,
        boundary: Some(boundary.seq().0),
        closers: 0,
        go_on: go_on(one.home.client, &child),
        child,
    };
    fork_answer(run, one.key.id(), &answer)
}

/// Tells the workspace that the session works in whose child the new one is, where there is one: it sees the points of the
/// turns that it shares then, and its next turn is numbered after them.
fn remember(run: &Run, source: &SessionKey, made: &SessionHeader) -> Result<(), CliError> {
    let data = compose::data_dir(run)?;
    let registry = Registry::new(data.clone());
    let found = if made.cwd.is_dir() { registry.find(&made.cwd)? } else { None };
    let Some(found) = found.filter(|found| found.standing == Standing::Known) else { return Ok(()) };
    let located = Located::new(found, registry, data);
    let settings = Settings::load(&run.world, Some(located.root()), run.global.force)?;
    let opened = compose::open(run, located, settings, &|_, _| Ok(super::asker(run, Consent::Nobody)))?;
    opened.engine.register_session(Session {
        key: made.key.clone(),
        parent: Some(source.clone()),
        seed_length: Some(made.seed_length),
        subagent_of: None,
        turn: None,
        seen: SystemClock.now(),
    })?;
    Ok(())
}

/// A log that can be read here can be cut; what its client thinks of it only the client knows.
fn verify(run: &Run, one: &One) -> Result<u8, CliError> {
    let (path, events, problems) = match one.home.logs.talked(one.key.id()) {
        Ok(talked) => (talked.path.clone(), talked.beats().len() as u64, Vec::new()),
        Err(error @ (DoorError::Corrupt { .. } | DoorError::Unsupported { .. })) => {
            let told = wire::ProblemEntry {
                code: error.code().to_owned(),
                seq: None,
                message: error.to_string(),
                severity: "broken",
            };
            (one.home.logs.location(&one.key).unwrap_or_else(|| one.home.dir.clone()), 0, vec![told])
        }
        Err(error) => return Err(one.home.failed(one.key.id(), error)),
    };
    let sound = problems.is_empty();
    let answer = wire::SessionVerified {
        id: one.key.id().to_owned(),
        path: wire::absolute(&path),
        loadable: sound,
        strict: sound,
        version: None,
        events,
        problems,
    };
    run.out.answer(&answer, |answer| {
        let mut out = String::new();
        for problem in &answer.problems {
            put!(out, "{}: {}\n", problem.code, shown(&problem.message));
        }
        let word = if answer.loadable { "it can be read and cut" } else { "it cannot be cut here" };
        put!(out, "{}: {word}\n", shown(&answer.id));
        out
    })?;
    Ok(if sound { exit::OK } else { exit::DAMAGED })
}
