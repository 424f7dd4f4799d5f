//! Arguments of `rwd init`, `rwd uninstall` and `rwd run`.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use harness_adapter::install::{Agent, Scope};

/// One of [`Agent::ALL`], by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AgentChoice(pub(crate) Agent);

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScopeChoice {
    /// You, in this workspace; where an agent has no such settings: as user
    Local,
    /// Everybody who has this project: the settings are part of it
    Project,
    /// You, in every directory
    User,
}

impl ValueEnum for AgentChoice {
    fn value_variants<'a>() -> &'a [Self] {
        static CHOICES: LazyLock<[AgentChoice; Agent::ALL.len()]> = LazyLock::new(|| Agent::ALL.map(AgentChoice));
        &*CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.title()))
    }
}

impl ScopeChoice {
    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::Local => Scope::Local,
            Self::Project => Scope::Project,
            Self::User => Scope::User,
        }
    }
}

#[derive(Args, Debug, Clone)]
pub(crate) struct InitArgs {
    /// Set up this agent; repeatable
    #[arg(long, value_name = "NAME", help = "Set up this agent; repeatable [default: those that are found]")]
    pub(crate) agent: Vec<AgentChoice>,
    /// For whom
    #[arg(long, value_name = "SCOPE", help = "For whom [default: local]")]
    pub(crate) scope: Option<ScopeChoice>,
    /// Only show what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say in Codex's settings that you trust these hooks, so that it runs them without asking
    #[arg(long)]
    pub(crate) trust_codex: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct UninstallArgs {
    /// Only this agent; repeatable
    #[arg(long, value_name = "NAME", help = "Only this agent; repeatable [default: all]")]
    pub(crate) agent: Vec<AgentChoice>,
    /// Only what was set up for this scope
    #[arg(long, value_name = "SCOPE", help = "Only what was set up for this scope [default: all]")]
    pub(crate) scope: Option<ScopeChoice>,
    /// Only show what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the points of this workspace too
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) purge_data: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct RunArgs {
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
