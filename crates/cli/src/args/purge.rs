//! Arguments of `rwd purge`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug, Clone)]
pub(crate) struct PurgeArgs {
    /// These paths, with all below them; literal
    #[arg(value_name = "PATH", required_unless_present = "globs")]
    pub(crate) paths: Vec<PathBuf>,
    /// Paths that match GLOB, with all below them; from the workspace's root, as capture.excludes
    #[arg(long = "match", value_name = "GLOB")]
    pub(crate) globs: Vec<String>,
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}
