//! Every operation on a disk that can fail is made to fail, and processes are killed; totals are printed.
//!
//! The same tests run in CI with bounds: every third operation, 60 kills.

use std::time::Duration;

use crate::{
    Result,
    process::{Running, command},
    repo,
};

const LIMIT: Duration = Duration::from_hours(2);

/// Package and filter of the tests; each prints its totals.
const PARTS: &[(&str, &str)] = &[
    ("testkit", "disk::"),
    ("testkit", "crash::"),
    ("testkit", "flips::"),
    ("workspace-fs", "crash::"),
    ("rwd", "kills::"),
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Processes killed at random moments
    #[arg(long, default_value_t = 60)]
    kills: u32,
}

/// Runs all of it; an error when anything was lost.
pub(crate) fn run(args: &Args) -> Result {
    for (package, filter) in PARTS {
        let mut cargo = command(repo::cargo());
        cargo
            .args(["test", "--quiet", "--locked", "--package", package, "--test", "it", "--", filter, "--nocapture"])
            .env("RWD_CRASH_MATRIX", "full")
            .env("RWD_KILLS", args.kills.to_string())
            .current_dir(repo::root());
        println!("=== {package} {filter}");
        if let Some(how) = Running::start(&mut cargo, LIMIT, None)?.wait()?.failure() {
            return Err(format!("{package} {filter}: {how}").into());
        }
    }
    println!("crash-matrix: nothing lost");
    Ok(())
}
