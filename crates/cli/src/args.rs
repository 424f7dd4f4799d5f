//! The command line (design § 9).

mod frequent;
mod hook;
mod import;
mod init;
mod purge;

use std::ffi::OsString;
use std::path::PathBuf;

use checkpoint_core::{BoundaryRule, DriftPolicy, GuardMode, Scope};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::frequent::frequent;
pub(crate) use self::hook::HookArgs;
pub(crate) use self::import::{ImportArgs, ImportKind};
pub(crate) use self::init::{InitArgs, RunArgs, ScopeChoice, UninstallArgs};
pub(crate) use self::purge::PurgeArgs;

/// Undo for coding agents: take back what an agent did to a workspace, and take the taking back back
#[derive(Parser, Debug)]
#[command(name = "rwd", version, propagate_version = false, disable_help_subcommand = true, max_term_width = 100)]
#[command(
    after_help = "Targets: t7 (end of turn 7)  t7^ (just before it)  t7.3  step:3  seq:87  latest~2  @14:05  @10m  \
an id or a name  SESSION/t7\nExit codes: 0 ok  1 failure  2 usage  3 decision needed  4 confirmation needed  5 partly done  \
6 nothing to do  7 unfinished operation  8 damaged  9 not found  10 no workspace  11 busy  130 interrupted"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Everywhere")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Global {
    /// Work as if started in DIR
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Where points are kept
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = "Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// The conversation meant by targets that name none
    #[arg(long, global = true, value_name = "[HARNESS:]ID")]
    pub(crate) session: Option<String>,
    /// Kind of index for a new workspace
    #[arg(long, global = true, value_name = "KIND")]
    pub(crate) index: Option<IndexChoice>,
    /// Answer with one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only what was asked for
    #[arg(short = 'q', long, global = true)]
    pub(crate) quiet: bool,
    /// Say what is being done; twice: in detail
    #[arg(short = 'v', long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Confirm beforehand
    #[arg(short = 'y', long, global = true)]
    pub(crate) yes: bool,
    /// Never ask
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Go on where rwd refuses as a precaution
    #[arg(long, global = true)]
    pub(crate) force: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IndexChoice {
    Sqlite,
    Json,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum Verb {
    /// Show the timeline of this workspace (also: bare rwd)
    Log(LogArgs),
    /// Make a point now
    Save(SaveArgs),
    /// Show a point, or the content of a path in it
    Show(ShowArgs),
    /// Show what differs between two points, or a point and now
    Diff(DiffArgs),
    /// Show what `rwd to` would do, and change nothing
    Preview(ToArgs),
    /// Go to a point
    #[command(alias = "restore")]
    To(ToArgs),
    /// Go to the start of the last turn, or of the N-th last
    Back(BackArgs),
    /// Take the last restore back, or the one named
    Undo(UndoArgs),
    /// Take the last undo back
    Redo(RedoArgs),
    /// Finish an interrupted operation or take it back
    Recover(RecoverArgs),
    /// Pin a point with a name
    Name(NameArgs),
    /// Remove points
    Drop(DropArgs),
    /// Mark where an exploration begins, so that it can be folded
    Mark(MarkArgs),
    /// Replace what followed the mark by a short report, in a new session
    Fold(FoldArgs),
    /// Show how this workspace is protected
    Status,
    /// Show how much is stored
    Du,
    /// Remove what is no longer needed
    Gc(GcArgs),
    /// Take content out of every point for good, as a secret that was stored
    Purge(PurgeArgs),
    /// Check the installation and this workspace's store
    Doctor(DoctorArgs),
    /// Check that every point can be restored
    Verify(VerifyArgs),
    /// Set up the agents that are here, and make the first point
    Init(InitArgs),
    /// Take out of the agents' settings what `rwd init` put there; points stay
    Uninstall(UninstallArgs),
    /// Run a command, with points before, while it runs, and after
    Run(RunArgs),
    /// Take over what an older plugin recorded, as points; its store is only read
    Import(ImportArgs),
    /// Take over a workspace that moved, or whose directory was replaced
    Adopt,
    /// Look at session logs of a harness, fork them, check them; needs no workspace
    #[command(subcommand)]
    Session(SessionVerb),
    /// Show or change settings
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Serve a harness: JSON-RPC on standard input and output (docs/sidecar.md)
    Sidecar,
    /// Serve an agent's model: MCP on standard input and output (docs/mcp.md)
    Mcp,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Take in what an agent reports on standard input; called by its hooks
    Hook(HookArgs),
    /// Show in a temporary directory what rwd does, and check every byte
    Demo(DemoArgs),
}

impl Verb {
    /// Its name, as in the schema of its answer.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Log(_) => "log",
            Self::Save(_) => "save",
            Self::Show(_) => "show",
            Self::Diff(_) => "diff",
            Self::Preview(_) => "preview",
            Self::To(_) => "to",
            Self::Back(_) => "back",
            Self::Undo(_) => "undo",
            Self::Redo(_) => "redo",
            Self::Recover(_) => "recover",
            Self::Name(_) => "name",
            Self::Drop(_) => "drop",
            Self::Mark(_) => "mark",
            Self::Fold(_) => "fold",
            Self::Sidecar => "sidecar",
            Self::Mcp => "mcp",
            Self::Status => "status",
            Self::Du => "du",
            Self::Gc(_) => "gc",
            Self::Purge(_) => "purge",
            Self::Doctor(_) => "doctor",
            Self::Verify(_) => "verify",
            Self::Init(_) => "init",
            Self::Uninstall(_) => "uninstall",
            Self::Run(_) => "run",
            Self::Import(_) => "import",
            Self::Adopt => "adopt",
            Self::Session(_) => "session",
            Self::Config(_) => "config",
            Self::Completions { .. } => "completions",
            Self::Hook(_) => "hook",
            Self::Demo(_) => "demo",
        }
    }
}

#[derive(Args, Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct LogArgs {
    /// Everything: guards, gaps, and no limit
    #[arg(long)]
    pub(crate) all: bool,
    /// At most N, the newest
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Draw sessions as lanes
    #[arg(long)]
    pub(crate) graph: bool,
    /// Only points with a name
    #[arg(long, conflicts_with = "ops")]
    pub(crate) named: bool,
    /// Operations instead of points
    #[arg(long)]
    pub(crate) ops: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SaveKind {
    /// A turn begins
    TurnStart,
    /// A turn has ended
    TurnEnd,
    /// A step has ended
    Step,
    /// A mutating tool is about to run
    Mutation,
    /// Made by a timer
    Auto,
    /// Asked for by a person
    Manual,
    /// The session's open turn was interrupted: no point is made
    Interrupt,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct SaveArgs {
    /// A note for people
    #[arg(short = 'm', value_name = "NOTE")]
    pub(crate) note: Option<String>,
    /// Pin the point with a name
    #[arg(long, value_name = "LABEL")]
    pub(crate) name: Option<String>,
    /// The turn it belongs to
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// The step it belongs to
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<u32>,
    /// What it is for
    #[arg(long, value_name = "KIND", default_value = "manual")]
    pub(crate) kind: SaveKind,
    /// The tool or command that caused it
    #[arg(long, value_name = "TEXT")]
    pub(crate) trigger: Option<String>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct ShowArgs {
    /// The point, or the id of content that an operation kept
    #[arg(value_name = "T")]
    pub(crate) target: String,
    /// A file, printed as it is; a directory, listed
    pub(crate) path: Option<OsString>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DiffArgs {
    /// From this point [default: the start of the last turn]
    #[arg(value_name = "A")]
    pub(crate) from: Option<String>,
    /// To this point [default: now]
    #[arg(value_name = "B")]
    pub(crate) to: Option<String>,
    /// Count lines
    #[arg(long, group = "form")]
    pub(crate) stat: bool,
    /// Only names
    #[arg(long, group = "form")]
    pub(crate) name_only: bool,
    /// As a patch
    #[arg(short = 'p', long, group = "form")]
    pub(crate) patch: bool,
    #[command(flatten)]
    pub(crate) paths: PathArgs,
}

/// Paths: literal, never patterns, relative to the current directory.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct PathArgs {
    /// Only these paths and what lies below them
    #[arg(last = true, value_name = "PATHS")]
    pub(crate) paths: Vec<OsString>,
    /// Read further paths from FILE, one a line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) paths_from: Option<PathBuf>,
    /// Paths in FILE end with a NUL byte
    #[arg(short = '0', requires = "paths_from")]
    pub(crate) nul: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BoundaryChoice {
    /// Before the turn of the point
    Before,
    /// After it
    After,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GuardChoice {
    /// Abort when something cannot be guarded
    Require,
    /// Leave out what cannot be guarded
    Warn,
    /// Do not list the guard
    Off,
}

/// How a restore behaves: shared by `to`, `preview`, `back`, `undo` and `redo`.
#[derive(Args, Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct HowArgs {
    /// Leave alone what was changed by hand
    #[arg(long, conflicts_with = "overwrite_drift")]
    pub(crate) keep_drift: bool,
    /// Restore what was changed by hand, too
    #[arg(long)]
    pub(crate) overwrite_drift: bool,
    /// Restore this path although it was changed by hand
    #[arg(long, value_name = "PATH")]
    pub(crate) overwrite: Vec<OsString>,
    /// Restore what other sessions changed, too
    #[arg(long)]
    pub(crate) with_others: bool,
    /// Go on without paths that cannot be restored
    #[arg(long)]
    pub(crate) skip_blocked: bool,
    /// What to do when a path cannot be guarded
    #[arg(long, value_name = "MODE")]
    pub(crate) guard: Option<GuardChoice>,
    /// Only if the plan is still this one
    #[arg(long, value_name = "ID")]
    pub(crate) plan: Option<String>,
    #[command(flatten)]
    pub(crate) paths: PathArgs,
}

impl HowArgs {
    pub(crate) const fn drift(&self) -> DriftPolicy {
        match (self.keep_drift, self.overwrite_drift) {
            (true, _) => DriftPolicy::Keep,
            (_, true) => DriftPolicy::Overwrite,
            _ => DriftPolicy::Ask,
        }
    }

    pub(crate) fn guard(&self) -> Option<GuardMode> {
        self.guard.map(|guard| match guard {
            GuardChoice::Require => GuardMode::Require,
            GuardChoice::Warn => GuardMode::Warn,
            GuardChoice::Off => GuardMode::Off,
        })
    }
}

/// Which half goes back, and how far.
#[derive(Args, Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct WhatArgs {
    /// Only files
    #[arg(long, group = "scope")]
    pub(crate) files: bool,
    /// Only the conversation
    #[arg(long, group = "scope")]
    pub(crate) chat: bool,
    /// Files and conversation, or nothing
    #[arg(long, group = "scope")]
    pub(crate) both: bool,
    /// Remove what the target did not have
    #[arg(long)]
    pub(crate) exact: bool,
    /// Cut the conversation before or after the point's turn
    #[arg(long, value_name = "WHERE")]
    pub(crate) boundary: Option<BoundaryChoice>,
    /// Also points made before this directory was replaced
    #[arg(long)]
    pub(crate) adopt: bool,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

impl WhatArgs {
    pub(crate) const fn scope(&self) -> Scope {
        match (self.files, self.chat, self.both) {
            (true, ..) => Scope::Files,
            (_, true, _) => Scope::Chat,
            (.., true) => Scope::Both,
            _ => Scope::Default,
        }
    }

    pub(crate) fn boundary(&self) -> Option<BoundaryRule> {
        self.boundary.map(|at| match at {
            BoundaryChoice::Before => BoundaryRule::Before,
            BoundaryChoice::After => BoundaryRule::After,
        })
    }
}

#[derive(Args, Debug, Clone)]
pub(crate) struct ToArgs {
    /// The point: t7, t7^, latest~1, an id, a name, …
    #[arg(value_name = "T")]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct BackArgs {
    /// How many turns
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) turns: u32,
    #[command(flatten)]
    pub(crate) what: WhatArgs,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct UndoArgs {
    /// The operation, or its guard
    #[arg(value_name = "OP")]
    pub(crate) operation: Option<String>,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct RedoArgs {
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

#[derive(Args, Debug, Clone)]
#[command(group = clap::ArgGroup::new("way").required(true))]
pub(crate) struct RecoverArgs {
    /// Forward: do the rest
    #[arg(long, group = "way")]
    pub(crate) finish: bool,
    /// Back: as it was before
    #[arg(long, group = "way")]
    pub(crate) back: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct NameArgs {
    /// The point
    #[arg(value_name = "T", required_unless_present = "delete")]
    pub(crate) target: Option<String>,
    /// The name
    #[arg(value_name = "LABEL", required_unless_present = "delete")]
    pub(crate) label: Option<String>,
    /// Remove this name; the point stays
    #[arg(long, value_name = "LABEL", conflicts_with_all = ["target", "label"])]
    pub(crate) delete: Option<String>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DropArgs {
    /// These points; without any, all points of the session that `--session` names
    #[arg(value_name = "T", required_unless_present_any = ["all", "session"])]
    pub(crate) targets: Vec<String>,
    /// All points of this workspace
    #[arg(long, conflicts_with_all = ["targets", "session"])]
    pub(crate) all: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct MarkArgs {
    /// What the exploration is for; the report says it
    pub(crate) objective: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LanguageChoice {
    /// English
    En,
    /// Chinese
    Zh,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct FoldArgs {
    /// The report, as text in FILE
    #[arg(long, value_name = "FILE", conflicts_with = "extract")]
    pub(crate) report: Option<PathBuf>,
    /// Make the report from the log alone: paths, commands, errors, the last words [default]
    #[arg(long)]
    pub(crate) extract: bool,
    /// Language of a report that is made from the log
    #[arg(long, value_name = "LANG", default_value = "en")]
    pub(crate) language: LanguageChoice,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct GcArgs {
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DoctorArgs {
    /// Put right what can be put right safely
    #[arg(long)]
    pub(crate) fix: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct VerifyArgs {
    /// Read every byte
    #[arg(long)]
    pub(crate) rehash: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DemoArgs {
    /// Leave the directory there
    #[arg(long)]
    pub(crate) keep: bool,
}

/// Whose logs, and where they are.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct LogsArgs {
    /// Which harness's logs
    #[arg(long, value_name = "NAME")]
    pub(crate) harness: Option<String>,
    /// Where they are
    #[arg(
        long,
        value_name = "DIR",
        help = "Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]"
    )]
    pub(crate) home: Option<PathBuf>,
}

/// One session.
#[derive(Args, Debug, Clone)]
pub(crate) struct OneSession {
    /// Its id, or HARNESS:ID
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) logs: LogsArgs,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum SessionVerb {
    /// List sessions
    List {
        #[command(flatten)]
        logs: LogsArgs,
    },
    /// Show a session and its turns
    Show(OneSession),
    /// Show where a session can be cut
    Boundaries(OneSession),
    /// Make a new session of the beginning of one; the old one stays as it is
    Fork {
        #[command(flatten)]
        session: OneSession,
        /// Last event that the new session shares
        #[arg(long, value_name = "SEQ", group = "cut")]
        at: Option<u64>,
        /// Last turn that the new session shares
        #[arg(
            long,
            value_name = "N",
            group = "cut",
            help = "Last turn that the new session shares [default: all of them, which must have ended]"
        )]
        turn: Option<u32>,
        /// Id of the new session
        #[arg(long, value_name = "ID")]
        child: Option<String>,
    },
    /// Check that the harness can load a session, and that its log keeps every rule
    Verify(OneSession),
    /// Write a repaired copy of a session's log beside it; the log itself stays as it is
    Repair {
        #[command(flatten)]
        session: OneSession,
        /// The file to write
        #[arg(
            long,
            value_name = "FILE",
            help = "The file to write [default: beside the log, its name with .repaired]"
        )]
        to: Option<PathBuf>,
    },
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum ConfigVerb {
    /// Show all settings
    List {
        /// And where each comes from
        #[arg(long)]
        origin: bool,
    },
    /// Show one setting
    Get {
        /// Its name, as capture.excludes
        key: String,
    },
    /// Change a setting of yours
    Set {
        /// Its name
        key: String,
        /// Its value, in TOML; a bare word is a text
        value: String,
    },
}

/// The definition of the command line, for man pages and completions.
pub fn cli_command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        cli_command().debug_assert();
    }

    fn parse(line: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("rwd").chain(line.iter().copied()))
    }

    #[test]
    fn global_flags_stand_anywhere_and_a_target_of_two_words_is_one_argument() {
        let cli = parse(&["to", "turn 7", "--json", "-C", "x", "--exact", "--yes", "--", "-odd", "a[1].txt"]).unwrap();
        assert!(cli.global.json && cli.global.yes);
        let Some(Verb::To(to)) = cli.verb else { panic!("not to") };
        assert_eq!(to.target, "turn 7");
        assert_eq!(to.what.how.paths.paths, ["-odd", "a[1].txt"]);
        assert!(matches!(parse(&["restore", "t1"]).unwrap().verb, Some(Verb::To(_))));
        assert!(parse(&[]).unwrap().verb.is_none());
    }

    #[test]
    fn contradictions_are_usage_errors() {
        for bad in [
            &["to"][..],
            &["to", "t1", "--files", "--chat"],
            &["to", "t1", "--keep-drift", "--overwrite-drift"],
            &["to", "t1", "-0"],
            &["recover"],
            &["recover", "--finish", "--back"],
            &["name", "t1"],
            &["name", "t1", "x", "--delete", "y"],
            &["drop"],
            &["drop", "t1", "--all"],
            &["log", "-n", "0"],
            &["back", "0"],
            &["save", "--kind", "guard"],
            &["session"],
            &["session", "show"],
            &["session", "fork", "x", "--at", "1", "--turn", "1"],
            &["session", "fork", "x", "--at", "-1"],
            &["run"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
