//! Child processes: bounded in time, ended as a group, ended with us.

use std::{
    fs::File,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use crate::Result;

/// Variables that would make a run depend on where it happens: harnesses around us, git's own, and ours.
const FOREIGN: &[&str] =
    &["RWD_", "GIT_", "XDG_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "CURSOR", "CLINE", "CRUSH", "DSH", "AI_AGENT"];

/// A command without the variables that change what a run means.
#[expect(clippy::disallowed_methods, reason = "the one place of the task runner that makes commands")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| FOREIGN.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(&name);
        }
    }
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    command
}

/// Output of a short command that must succeed.
pub(crate) fn quiet(program: &str, args: &[&str], dir: &Path) -> Result<Vec<u8>> {
    let output = command(program).args(args).current_dir(dir).output()?;
    if !output.status.success() {
        let last = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
        return Err(format!("{program} {} failed: {last}", args.join(" ")).into());
    }
    Ok(output.stdout)
}

/// How a bounded command ended.
pub(crate) enum End {
    /// By itself.
    Exit(ExitStatus),
    /// It was still running at its limit and was killed with everything it started.
    Timeout,
    /// We were asked to stop.
    Interrupted,
}

impl End {
    /// `None` when all is well, else what to say.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Exit(status) if status.success() => None,
            Self::Exit(status) => Some(match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            }),
            Self::Timeout => Some("over its time limit".to_owned()),
            Self::Interrupted => Some("interrupted".to_owned()),
        }
    }
}

/// Set by the first SIGINT or SIGTERM.
pub(crate) fn interrupted() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without a handler an interrupt ends only us and leaves the group running; that is no reason to stop.
            drop(signal_hook::flag::register(signal, Arc::clone(&flag)));
        }
        flag
    })
}

/// A command that runs in a process group of its own, so that ending it ends what it started.
pub(crate) struct Running {
    child: Child,
    deadline: Instant,
}

impl Running {
    /// Starts `command` with at most `limit` to live; `output`, if any, takes both its streams.
    pub(crate) fn start(command: &mut Command, limit: Duration, output: Option<&File>) -> Result<Self> {
        interrupted();
        if let Some(file) = output {
            command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        }
        let child = command.process_group(0).spawn()?;
        Ok(Self { child, deadline: Instant::now() + limit })
    }

    /// `Some` once it has ended; kills it when its time is over.
    pub(crate) fn poll(&mut self) -> Result<Option<End>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(End::Exit(status)));
        }
        let end = if interrupted().load(Relaxed) {
            End::Interrupted
        } else if Instant::now() >= self.deadline {
            End::Timeout
        } else {
            return Ok(None);
        };
        self.kill();
        Ok(Some(end))
    }

    /// Sends a signal to the command alone, not to what it started.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) -> Result {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).ok_or("no process")?;
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Result<End> {
        loop {
            if let Some(end) = self.poll()? {
                return Ok(end);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // Politely first, so that cargo and the case runner can clean up after themselves.
            for (signal, grace) in [(rustix::process::Signal::TERM, 100), (rustix::process::Signal::KILL, 100)] {
                // An error means that nothing of the group is left.
                if rustix::process::kill_process_group(group, signal).is_err() {
                    break;
                }
                for _ in 0..grace {
                    if !matches!(self.child.try_wait(), Ok(None)) {
                        break;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
        // Reaps it; the status of a killed child says nothing new.
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_over_its_limit_ends_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let script = format!("(sleep 1; : > '{}') & sleep 60", mark.display());
        let begun = Instant::now();
        let running = Running::start(command("sh").args(["-c", &script]), Duration::from_millis(100), None).unwrap();
        assert!(matches!(running.wait().unwrap(), End::Timeout));
        assert!(begun.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(1500));
        assert!(!mark.exists(), "a grandchild outlived its group");
    }

    #[test]
    fn the_environment_of_a_harness_is_not_handed_on() {
        let names: Vec<_> =
            command("true").get_envs().map(|(name, value)| (name.to_owned(), value.is_some())).collect();
        for (name, set) in names {
            let name = name.to_string_lossy().into_owned();
            assert!(!set || name.starts_with("GIT_"), "{name}");
        }
    }

    #[test]
    fn a_failure_says_how() {
        let end = Running::start(command("sh").args(["-c", "exit 7"]), Duration::from_secs(20), None).unwrap().wait();
        assert_eq!(end.unwrap().failure().as_deref(), Some("exit 7"));
    }
}
