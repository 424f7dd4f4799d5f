//! Every operation on a disk that can fail is made to fail, and processes are killed; totals are printed.
//!
//! A second form strikes every system call by which the real program changes anything (`--syscalls`), and a third fills
//! small file systems (`--disks`). The same tests run in CI with bounds: every third operation, 60 kills, some strikes.

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

/// The form below every seam of ours.
const SYSCALLS: &[(&str, &str)] = &[("rwd", "syscalls::")];

/// The form with file systems that are full or may not be written.
const DISKS: &[(&str, &str)] = &[("rwd", "full_disk::")];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Processes killed at random moments
    #[arg(long, default_value_t = 60)]
    kills: u32,
    /// Only this form: every system call of the real program that changes something (needs strace)
    #[arg(long)]
    syscalls: bool,
    /// Only this form: disks that are full or read-only (needs a mount namespace)
    #[arg(long)]
    disks: bool,
}

/// Runs all of it; an error when anything was lost.
pub(crate) fn run(args: &Args) -> Result {
    let parts = match (args.syscalls, args.disks) {
        (false, false) => PARTS.to_vec(),
        (syscalls, disks) => [(syscalls, SYSCALLS), (disks, DISKS)]
            .into_iter()
            .filter(|(wanted, _)| *wanted)
            .flat_map(|(_, parts)| parts.to_vec())
            .collect(),
    };
    for (package, filter) in parts {
        let mut cargo = command(repo::cargo());
        cargo
            .args(["test", "--quiet", "--locked", "--package", package, "--test", "it", "--", filter, "--nocapture"])
            .env("RWD_CRASH_MATRIX", "full")
            // Here a machine that cannot trace or mount is a failure.
            .env("RWD_SYSCALLS", "full")
            .env("RWD_MOUNTS", "required")
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
