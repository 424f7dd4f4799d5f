//! Hooks in the settings of agents: what `rwd init`, `rwd uninstall` and `rwd doctor` share.

mod files;
mod receipt;
mod sweep;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use harness_adapter::install::{self as hooks, Agent, Scope, Surroundings};
use index_store::Registry;

pub(crate) use self::files::{Action, Change, Read, apply, in_the_way, read, remove_dirs};
pub(crate) use self::receipt::{Receipt, digest};
pub(crate) use self::sweep::{left, sweep};
use crate::compose;
use crate::error::CliError;
use crate::run::Run;

/// What settings of agents are looked for with.
pub(crate) struct Around<'a> {
    run: &'a Run,
    home: PathBuf,
    root: PathBuf,
}

impl<'a> Around<'a> {
    /// For the workspace here, or what would become one: nothing is written.
    pub(crate) fn new(run: &'a Run) -> Result<Self, CliError> {
        let (data, start) = (compose::data_dir(run)?, run.start()?);
        let root = Registry::new(data).find(&start)?.map_or(start, |found| found.root);
        let home = run.world.home().filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| CliError::usage("no-home", "there is no home directory: set HOME"))?;
        Ok(Self { run, home: home.to_owned(), root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Hands the surroundings to `ask`.
    pub(crate) fn with<T>(&self, ask: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let var = |name: &str| -> Option<OsString> { self.run.world.var(name).map(std::ffi::OsStr::to_owned) };
        let exists = |path: &Path| path.exists();
        ask(&Surroundings { home: &self.home, root: &self.root, var: &var, exists: &exists })
    }

    /// The settings of Codex that say which hooks are trusted.
    pub(crate) fn codex_config(&self) -> PathBuf {
        self.with(hooks::codex_config)
    }

    /// Where a file of the project may lead; elsewhere a link may lead anywhere.
    pub(crate) fn fence(&self, scope: Scope) -> Option<&Path> {
        (scope != Scope::User).then_some(self.root.as_path())
    }

    /// All places of an agent, with the scopes they are for.
    pub(crate) fn places(&self, agent: Agent) -> Vec<(Scope, hooks::Place)> {
        let mut scopes: Vec<Scope> = [Scope::Local, Scope::Project, Scope::User].map(|s| agent.effective(s)).to_vec();
        scopes.dedup();
        scopes.sort_unstable();
        scopes.dedup();
        let of =
            |scope: Scope| self.with(|around| hooks::places(agent, scope, around)).into_iter().map(move |p| (scope, p));
        scopes.into_iter().flat_map(of).collect()
    }

    /// True when a program that a hook names can be run now.
    pub(crate) fn usable(&self, program: &str) -> bool {
        if program.starts_with('/') { is_program(Path::new(program)) } else { self.on_path(program).is_some() }
    }

    fn on_path(&self, program: &str) -> Option<PathBuf> {
        let path = self.run.world.var("PATH")?;
        let mut dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
        dirs.find_map(|dir| Some(dir.join(program)).filter(|path| is_program(path)))
    }

    /// The rwd that hooks would run, where that is another program than this one.
    pub(crate) fn other_program(&self) -> Option<PathBuf> {
        let found = self.on_path("rwd")?;
        let this = std::env::current_exe().ok()?.canonicalize().ok()?;
        (found.canonicalize().ok()? != this).then_some(found)
    }

    /// How hooks name this program: `rwd` where the search path has one, since that stays the same over versions; else
    /// the path it was started by.
    pub(crate) fn program(&self) -> Result<String, CliError> {
        if self.on_path("rwd").is_some() {
            return Ok("rwd".to_owned());
        }
        let typed = self.run.world.args.first().map(PathBuf::from).filter(|path| path.components().count() > 1);
        let typed = typed.map(|path| self.run.absolute(&path)).transpose()?.filter(|path| is_program(path));
        let path = match typed {
            Some(path) => path,
            None => std::env::current_exe()
                .map_err(|source| CliError::failure("it cannot be told where this program is", source))?,
        };
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| unusable(format!("a hook cannot run {}: its path is no text", path.display())))
    }
}

/// The command of an agent's hooks.
pub(crate) fn command(program: &str, agent: Agent) -> Result<String, CliError> {
    hooks::hook_command(program, agent).map_err(|bad| unusable(bad.to_string()))
}

fn unusable(message: String) -> CliError {
    CliError::Usage {
        code: "bad-program",
        message,
        hint: Some("put rwd into a directory of PATH, so that hooks can call it by its name".to_owned()),
    }
}

/// True for a file that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// Settings that cannot be understood: nothing is written.
pub(crate) fn malformed(path: &Path, mistake: &hooks::Mistake) -> CliError {
    CliError::Coded {
        code: "bad-settings",
        message: format!("{}:{}: {}", path.display(), mistake.line, mistake.what),
        hints: vec!["put that right, or name the agents to go on with: --agent NAME".to_owned()],
        exit: crate::exit::DECISION,
    }
}
