//! What a run sees of its surroundings, taken once at the start, so that nothing else asks the environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoint_core::SessionLog;
use harness_adapter::Logs;
use harness_adapter::sessions::{
    self,
    dsh::{self, DshLogs},
};

/// Arguments, environment and standard streams of one run.
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of the surroundings")]
pub struct World {
    /// The command line, program name first.
    pub args: Vec<OsString>,
    /// The environment.
    pub vars: BTreeMap<OsString, OsString>,
    /// The current directory; `None` when it is gone.
    pub cwd: Option<PathBuf>,
    /// Where answers come from.
    pub stdin: Box<dyn BufRead + Send>,
    /// Where answers of ours go.
    pub stdout: Box<dyn Write + Send>,
    /// Where everything else goes.
    pub stderr: Box<dyn Write + Send>,
    /// True when somebody can be asked: standard input and standard error are terminals.
    pub can_ask: bool,
    /// True when standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// True when standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// Session logs of harnesses, by the harness in a session's key; without any only files go back. Nothing is read of
    /// them before a command needs it.
    pub sessions: Arc<dyn SessionLog>,
    /// True when the process does nothing but this run, with the arguments it was started with: one that is to stay may
    /// then begin once more with other settings.
    pub own_process: bool,
}

impl World {
    /// This process's own surroundings.
    pub fn of_process() -> Self {
        let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        Self {
            args: std::env::args_os().collect(),
            sessions: Arc::new(logs_of(&vars)),
            vars,
            cwd: std::env::current_dir().ok(),
            can_ask: stdin.is_terminal() && stderr.is_terminal(),
            stdout_is_terminal: stdout.is_terminal(),
            stderr_is_terminal: stderr.is_terminal(),
            stdin: Box::new(std::io::BufReader::new(stdin)),
            stdout: Box::new(std::io::BufWriter::new(stdout)),
            stderr: Box::new(stderr),
            own_process: false,
        }
    }

    /// A variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Names of harnesses whose environment this process has: then it is an agent's (design § 7, last paragraph).
    pub(crate) fn harnesses(&self) -> Vec<&'static str> {
        let set = self.vars.iter().filter(|(_, value)| !value.is_empty());
        harness_adapter::surrounding(set.filter_map(|(name, _)| name.to_str()))
    }

    /// The home directory.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.var("HOME").map(Path::new)
    }
}

/// The home of DeepSeek Harness that applies to these variables.
pub(crate) fn dsh_home(vars: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    DshLogs::default_home(|name| vars.get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::to_owned))
}

/// Where a client of another harness keeps its logs, by these variables.
pub(crate) fn client_home(client: &str, vars: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let var = |name: &str| vars.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(PathBuf::from);
    sessions::client_home(client, var)
}

/// The logs of every harness whose logs can be read. Looks at no file.
fn logs_of(vars: &BTreeMap<OsString, OsString>) -> Logs {
    let mut logs = match dsh_home(vars) {
        Some(home) => Logs::default().with(dsh::HARNESS, Arc::new(DshLogs::open(home))),
        None => Logs::default(),
    };
    for client in sessions::CLIENTS {
        let door = client_home(client, vars).and_then(|home| sessions::client_logs(client, home));
        if let Some(door) = door {
            logs = logs.with(client, door);
        }
    }
    logs
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("args", &self.args).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}
