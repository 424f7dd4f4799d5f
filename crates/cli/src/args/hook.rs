//! `rwd hook`.

use std::ffi::OsString;

use clap::Args;

#[derive(Args, Debug, Clone)]
pub(crate) struct HookArgs {
    /// Whose hook it is: claude, codex, gemini, opencode, cursor or cline
    #[arg(value_name = "AGENT")]
    pub(crate) agent: Option<OsString>,
    /// What a harness may add
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}
