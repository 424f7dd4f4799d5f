//! Tasks of the workspace. `cargo xtask --help` lists them; `cargo xtask ci` is what every change has to pass.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to whoever runs it")]

mod bench;
mod cases;
mod ci;
mod crash_matrix;
mod e2e;
mod fuzz;
mod generate;
mod package;
mod process;
mod repo;
mod soak;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What went wrong, in words; tasks have no callers that could tell kinds apart.
type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the rwd workspace")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything a change has to pass
    Ci(ci::Args),
    /// The rules of the repository that no compiler checks
    Tidy,
    /// Man pages and shell completions from the command line's definition
    Gen(generate::Args),
    /// The conformance cases against a build of rwd
    Cases(cases::Args),
    /// The built program with the real hosts, from npm
    E2e(e2e::Args),
    /// Faults at every operation on the disk, and killed processes
    CrashMatrix(crash_matrix::Args),
    /// Every fuzz target for some minutes
    Fuzz(fuzz::Args),
    /// A simulated month of sessions, with faults
    Soak(soak::Args),
    /// The packages for npm: the plugin, and the program for this platform
    Package(package::Args),
    /// Times, memory and ratios on generated and real trees
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let task = Args::parse().task;
    let done = match task {
        Task::Ci(args) => ci::run(&args),
        Task::Tidy => tidy::run(),
        Task::Gen(args) => generate::run(&args),
        Task::Cases(args) => cases::run(&args),
        Task::E2e(args) => e2e::run(&args),
        Task::CrashMatrix(args) => crash_matrix::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Soak(args) => soak::run(&args),
        Task::Package(args) => package::run(&args),
        Task::Bench(args) => bench::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(source) = cause {
                eprintln!("  caused by: {source}");
                cause = source.source();
            }
            ExitCode::FAILURE
        }
    }
}
