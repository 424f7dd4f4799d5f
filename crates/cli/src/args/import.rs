//! Arguments of `rwd import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ImportKind {
    /// States at the end of turns
    DshCheckpoint,
    /// States before tools ran
    DshCheckpointRewind,
    /// Marks of explorations
    ToolCheckpoint,
}

impl ImportKind {
    /// As it is typed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DshCheckpoint => "dsh-checkpoint",
            Self::DshCheckpointRewind => "dsh-checkpoint-rewind",
            Self::ToolCheckpoint => "tool-checkpoint",
        }
    }
}

#[derive(Args, Debug, Clone)]
pub(crate) struct ImportArgs {
    /// Which plugin's store
    #[arg(long, value_name = "KIND")]
    pub(crate) from: ImportKind,
    /// Where its store is, if not in its default place below the home of DeepSeek Harness
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// Do nothing if this workspace took something from such a store before
    #[arg(long)]
    pub(crate) once: bool,
    /// Only say what would come in
    #[arg(long)]
    pub(crate) dry_run: bool,
}
