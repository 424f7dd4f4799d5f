//! `rwd run -- CMD`: for whatever has no hooks. A point before, points while it runs, a point after: one turn of the
//! session `run:main`.
//!
//! The command gets the standard streams and stays in the process group of the terminal, so that job control works as
//! without us. No failure of a capture keeps it from running or changes how it ends.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use checkpoint_core::{EngineError, IdSource, PointKind, ProcessId, SaveRequest, SessionKey, Turn};
use durable_fs::{FileLock, LockMode};
use index_store::Standing;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rwd_engine::SystemIds;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use crate::approve::Consent;
use crate::args::RunArgs;
use crate::compose::{self, Opened};
use crate::config::Settings;
use crate::error::{CliError, one_line, quote_bytes};
use crate::exit;
use crate::output::Output;
use crate::run::Run;
use crate::text;
use crate::wire;

/// What is passed on to the command. The terminal's own reach it directly.
const PASSED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM];

pub(crate) fn run(run: &Run, args: &RunArgs) -> Result<u8, CliError> {
    let begun = Instant::now();
    let mut recorder = Recorder::open(run, &args.command)?;
    recorder.take(PointKind::TurnStart);
    // From here on a signal is the command's business.
    let mut signals = SignalsInfo::<WithOrigin>::new(PASSED)
        .map_err(|source| CliError::failure("signals cannot be passed on", source))?;
    let status = match spawn(run, &args.command) {
        Ok(child) => watched(child, &mut signals, &mut recorder)?,
        Err(error) => {
            recorder.take(PointKind::TurnEnd);
            return Err(error);
        }
    };
    // The command is done: a signal now is ours again, and ends a capture that takes too long.
    run.stop.listen();
    recorder.take(PointKind::TurnEnd);
    let code = code_of(status);
    let answer = wire::Ran {
        session: recorder.session.to_string(),
        exit: code,
        signal: status.signal(),
        back: recorder.known.then(|| {
            let target = format!("{}/t{}^", recorder.session, recorder.turn);
            run.typed.other(&["to", &target])
        }),
        points: recorder.points,
        changed: recorder.changed,
        warnings: recorder.warnings,
        ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    if run.out.json {
        run.out.answer(&answer, |_| String::new())?;
    } else {
        told(run, &answer);
    }
    if let Some(opened) = &recorder.opened {
        super::save::retain(opened);
    }
    Ok(code)
}

/// Said on standard error: standard output is the command's.
fn told(run: &Run, answer: &wire::Ran) {
    match &answer.back {
        Some(back) if answer.changed > 0 => {
            let paths = text::count(answer.changed, "path");
            run.out.remark(&format!("rwd: {paths} changed; to go back: {back}"));
        }
        _ if answer.points.is_empty() => {}
        _ => run.out.remark("rwd: nothing changed"),
    }
}

/// As a shell has it: 128 and the signal's number where one ended it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILURE)
}

#[expect(clippy::disallowed_methods, reason = "running a command is what this verb is for; no capture needs it")]
fn spawn(run: &Run, command: &[OsString]) -> Result<Child, CliError> {
    let Some((program, args)) = command.split_first() else {
        return Err(CliError::usage("usage", "a command is needed after --"));
    };
    let dir = run.start()?;
    Command::new(program).args(args).current_dir(dir).spawn().map_err(|source| {
        let missing = source.kind() == std::io::ErrorKind::NotFound;
        CliError::Coded {
            code: "not-started",
            message: format!("{} cannot be started: {source}", program.display()),
            hints: Vec::new(),
            // As a shell has it.
            exit: if missing { 127 } else { 126 },
        }
    })
}

/// Waits for the command, passes signals on to it and captures now and then.
fn watched(
    mut child: Child,
    signals: &mut SignalsInfo<WithOrigin>,
    recorder: &mut Recorder<'_>,
) -> Result<ExitStatus, CliError> {
    let failed = |source: std::io::Error| CliError::failure("the command cannot be waited for", source);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // A process that was waited for is gone, and its number may be another's: it is signalled only until then.
    let alive = Mutex::new(pid);
    let handle = signals.handle();
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for origin in signals {
                // What the terminal sends, it sends to the command as well.
                if origin.cause == Cause::Kernel {
                    continue;
                }
                let alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
                if let (Some(pid), Some(signal)) = (*alive, Signal::from_named_raw(origin.signal)) {
                    // It may have ended by itself meanwhile.
                    let _gone = kill_process(pid, signal);
                }
            }
        });
        scope.spawn(move || recorder.now_and_then(&ended));
        if let Some(pid) = pid {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        }
        let status = {
            let mut alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
            *alive = None;
            child.wait().map_err(failed)
        };
        drop(end);
        handle.close();
        status
    })
}

/// Makes the points of a run. A failure is told and changes nothing else.
struct Recorder<'a> {
    out: &'a Output,
    opened: Option<Opened>,
    session: SessionKey,
    /// Held while the session that runs share is this one's.
    only: Option<FileLock>,
    turn: Turn,
    command: String,
    interval: Duration,
    points: Vec<String>,
    changed: u64,
    /// There is a point to go back to.
    known: bool,
    warnings: Vec<String>,
}

impl<'a> Recorder<'a> {
    /// Only a request that is wrong is an error.
    fn open(run: &'a Run, command: &[OsString]) -> Result<Self, CliError> {
        use std::os::unix::ffi::OsStrExt;
        let named = match &run.global.session {
            Some(text) => {
                Some(SessionKey::parse(text).map_err(|error| CliError::usage("bad-session", error.to_string()))?)
            }
            None => None,
        };
        let words: Vec<String> = command.iter().map(|word| quote_bytes(word.as_bytes())).collect();
        let mut recorder = Self {
            out: &run.out,
            opened: None,
            session: SessionKey::local(),
            only: None,
            turn: Turn(1),
            command: words.join(" "),
            interval: Duration::ZERO,
            points: Vec::new(),
            changed: 0,
            known: false,
            warnings: Vec::new(),
        };
        match recorder.opened(run, named) {
            Ok(opened) => recorder.opened = Some(opened),
            // The user's mistake, not the system's: said before the command has done anything.
            Err(error @ (CliError::Usage { .. } | CliError::Config { .. } | CliError::Moved { .. })) => {
                return Err(error);
            }
            Err(error) => recorder.warn(&error),
        }
        Ok(recorder)
    }

    fn opened(&mut self, run: &Run, named: Option<SessionKey>) -> Result<Opened, CliError> {
        let located = compose::find_or_register(run)?;
        if located.standing == Standing::New {
            let root = located.root().display().to_string();
            self.out.remark(&format!("{root} is a workspace of rwd from now on"));
        }
        let settings = Settings::load(&run.world, Some(located.root()), run.global.force)?;
        self.interval = settings.run_interval();
        let opened = compose::open(run, located, settings, &|_, _| Ok(super::asker(run, Consent::Nobody)))?;
        self.session = match named {
            Some(key) => key,
            None => self.own_session(opened.located.dir.path())?,
        };
        let sessions = opened.index.sessions()?;
        let last = sessions.iter().find(|known| known.key == self.session).and_then(|known| known.turn.as_ref());
        self.turn = last.map_or(Turn(1), |last| Turn(last.turn.0.saturating_add(1)));
        Ok(opened)
    }

    /// Runs that follow each other are turns of one session; one beside another has a session of its own, since a
    /// session has one turn at a time.
    fn own_session(&mut self, store: &Path) -> Result<SessionKey, CliError> {
        self.only = FileLock::acquire(&store.join("run.lock"), LockMode::Exclusive, Duration::ZERO).ok();
        let id = data_encoding::HEXLOWER.encode(&SystemIds.next());
        let id = if self.only.is_some() { "main" } else { id.get(..8).unwrap_or(&id) };
        SessionKey::new("run", id).map_err(|error| CliError::usage("bad-session", error.to_string()))
    }

    fn warn(&mut self, error: &CliError) {
        let text = one_line(error);
        // The same again and again helps nobody.
        if self.warnings.last() != Some(&text) {
            self.out.note(&format!("rwd: warning: not captured: {text}"));
            self.warnings.push(text);
        }
    }

    fn take(&mut self, kind: PointKind) {
        let Some(opened) = &self.opened else { return };
        let process = (kind == PointKind::TurnStart).then(durable_fs::Process::current).and_then(Result::ok);
        let request = SaveRequest {
            turn: Some(self.turn),
            trigger: Some(self.command.clone()),
            process: process.map(|p| ProcessId { pid: p.pid, started: p.start, boot: p.boot }),
            ..SaveRequest::of(self.session.clone(), kind)
        };
        match opened.engine.save(&request) {
            Ok(saved) => {
                if saved.created {
                    self.points.push(saved.point.id.to_string());
                    if kind != PointKind::TurnStart {
                        self.changed += saved.point.changed;
                    }
                }
                self.known |= kind == PointKind::TurnStart;
            }
            Err(EngineError::Interrupted) => {}
            Err(error) => self.warn(&error.into()),
        }
    }

    fn now_and_then(&mut self, ended: &std::sync::mpsc::Receiver<()>) {
        if self.interval.is_zero() || self.opened.is_none() {
            return;
        }
        while ended.recv_timeout(self.interval) == Err(RecvTimeoutError::Timeout) {
            self.take(PointKind::Auto);
        }
    }
}
