//! The long run: a simulated month of sessions in a process that lives through all of it, with faults, crashes and killed
//! processes; what was lost, what grew, and the totals are told.

use std::time::Duration;

use crate::{
    Result,
    process::{Running, command},
    repo,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Turns, over five workspaces
    #[arg(long, default_value_t = 20_000)]
    turns: u64,
    /// Sessions that they are made of
    #[arg(long, help = "Sessions that they are made of [default: one for each 100 turns]")]
    sessions: Option<u64>,
    /// What is done, and where it goes wrong
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No new turn after so many minutes
    #[arg(long, default_value_t = 600)]
    minutes: u64,
}

/// Runs it; an error when anything was lost, grew, or was over the budget.
pub(crate) fn run(args: &Args) -> Result {
    let sessions = args.sessions.unwrap_or((args.turns / 100).max(5));
    let mut cargo = command(repo::cargo());
    cargo
        .args(["test", "--quiet", "--locked", "--package", "testkit", "--test", "it", "--"])
        .args(["soak::a_month_of_sessions", "--exact", "--nocapture"])
        // Optimised as a release, with every assertion of the engine.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("RWD_SOAK_TURNS", args.turns.to_string())
        .env("RWD_SOAK_SESSIONS", sessions.to_string())
        .env("RWD_SOAK_SEED", args.seed.to_string())
        .env("RWD_SOAK_MINUTES", args.minutes.to_string())
        .current_dir(repo::root());
    let limit = Duration::from_mins(args.minutes.saturating_add(60));
    match Running::start(&mut cargo, limit, None)?.wait()?.failure() {
        None => Ok(()),
        Some(how) => Err(format!("soak of seed {}: {how}", args.seed).into()),
    }
}
