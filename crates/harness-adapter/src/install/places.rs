//! How an agent is recognised, and which files of it rwd uses.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::scripts;
use crate::agent::Agent;

/// For whom hooks are installed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// This workspace, this user.
    Local,
    /// This workspace, everybody who has it: the file is part of the project.
    Project,
    /// This user, every directory.
    User,
}

impl Agent {
    /// Programs that it is started by.
    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["claude"],
            Self::Codex => &["codex"],
            Self::Gemini => &["gemini"],
            Self::Opencode => &["opencode"],
            Self::Cursor => &["cursor-agent", "cursor"],
            Self::Cline => &["cline"],
        }
    }

    /// The scope that is used for the one asked for. Only Claude Code has settings of one user in one project.
    pub const fn effective(self, asked: Scope) -> Scope {
        match (self, asked) {
            (Self::Claude, scope) => scope,
            (_, Scope::Local | Scope::User) => Scope::User,
            (_, Scope::Project) => Scope::Project,
        }
    }
}

impl Scope {
    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// What the files of an agent depend on.
pub struct Surroundings<'a> {
    /// The user's home.
    pub home: &'a Path,
    /// The workspace.
    pub root: &'a Path,
    /// Environment variables that are set and not empty.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
    /// True when something is at a path.
    pub exists: &'a dyn Fn(&Path) -> bool,
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("home", &self.home).field("root", &self.root).finish_non_exhaustive()
    }
}

/// What a file of an agent is.
#[derive(Clone, Debug)]
pub enum Content {
    /// Settings in JSON, shared with others: hooks are entries in it.
    Settings,
    /// A file that is rwd's alone; the text is made from the program's path.
    Script {
        /// May be run.
        executable: bool,
        /// Makes the text.
        text: fn(program: &str) -> String,
    },
}

/// A file that hooks are in.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it is, if it is.
    pub path: PathBuf,
    /// What it is.
    pub content: Content,
}

impl Surroundings<'_> {
    fn dir(&self, variable: &str, default: &str) -> PathBuf {
        (self.var)(variable)
            .map(PathBuf::from)
            .filter(|dir| dir.is_absolute())
            .unwrap_or_else(|| self.home.join(default))
    }

    /// Directories that the agent keeps its things in.
    fn homes(&self, agent: Agent) -> Vec<PathBuf> {
        match agent {
            Agent::Claude => vec![self.dir("CLAUDE_CONFIG_DIR", ".claude")],
            Agent::Codex => vec![self.dir("CODEX_HOME", ".codex")],
            Agent::Gemini => vec![self.home.join(".gemini")],
            Agent::Opencode => vec![self.dir("XDG_CONFIG_HOME", ".config").join("opencode")],
            Agent::Cursor => vec![self.home.join(".cursor")],
            Agent::Cline => vec![self.home.join("Documents/Cline"), self.home.join(".cline")],
        }
    }
}

/// The settings of Codex that say which hooks are trusted.
pub fn codex_config(around: &Surroundings<'_>) -> PathBuf {
    around.dir("CODEX_HOME", ".codex").join("config.toml")
}

/// How an agent was found: its program, else a directory of its settings.
pub fn detected(agent: Agent, around: &Surroundings<'_>) -> Option<PathBuf> {
    let path = (around.var)("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    let programs = agent.programs().iter().flat_map(|program| dirs.iter().map(move |dir| dir.join(program)));
    let mut all = programs.chain(around.homes(agent));
    all.find(|path| (around.exists)(path))
}

/// The files that hold an agent's hooks in a scope, which must be one that [`Agent::effective`] gives.
pub fn places(agent: Agent, scope: Scope, around: &Surroundings<'_>) -> Vec<Place> {
    let settings = |path: PathBuf| vec![Place { path, content: Content::Settings }];
    let user = scope == Scope::User;
    let home = around.homes(agent).into_iter();
    // Where there are two, the one that is there.
    let home = home.clone().find(|dir| (around.exists)(dir)).or_else(|| around.homes(agent).pop()).unwrap_or_default();
    match agent {
        Agent::Claude => settings(match scope {
            Scope::Local => around.root.join(".claude/settings.local.json"),
            Scope::Project => around.root.join(".claude/settings.json"),
            Scope::User => home.join("settings.json"),
        }),
        Agent::Codex => settings(if user { home } else { around.root.join(".codex") }.join("hooks.json")),
        Agent::Gemini => settings(if user { home } else { around.root.join(".gemini") }.join("settings.json")),
        Agent::Cursor => settings(if user { home } else { around.root.join(".cursor") }.join("hooks.json")),
        Agent::Opencode => {
            let dir = if user { home } else { around.root.join(".opencode") };
            let content = Content::Script { executable: false, text: scripts::opencode };
            vec![Place { path: dir.join("plugin/rwd.js"), content }]
        }
        Agent::Cline => {
            let dir = match (user, home.ends_with("Documents/Cline")) {
                (true, true) => home.join("Hooks"),
                (true, false) => home.join("hooks"),
                (false, _) => around.root.join(".clinerules/hooks"),
            };
            let content = Content::Script { executable: true, text: scripts::cline };
            let file = |event: &&str| Place { path: dir.join(event), content: content.clone() };
            scripts::CLINE_EVENTS.iter().map(file).collect()
        }
    }
}
