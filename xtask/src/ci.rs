//! What every change has to pass, in the order in which a mistake is cheapest to learn of.
//!
//! A run depends on the clone alone: harness, git and XDG variables are dropped, `HOME` is an empty directory below
//! the target directory, and after the first step nothing asks the network.

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use crate::{
    Result,
    process::{self, Running, command},
    repo,
};

/// The steps, in order.
const STEPS: &[&str] = &[
    "fetch", "fmt", "tidy", "clippy", "test", "mcp", "doctest", "doc", "gen", "selftest", "build", "clients", "cases",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these steps, in the usual order
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(STEPS))]
    only: Vec<String>,
    /// All but these steps
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(STEPS))]
    skip: Vec<String>,
    /// Go on after a step has failed; the run fails all the same
    #[arg(long)]
    keep_going: bool,
}

/// Runs the steps; an error when one fails.
pub(crate) fn run(args: &Args) -> Result {
    let home = repo::target_dir().join("ci-home");
    fs::create_dir_all(&home)?;
    let begun = Instant::now();
    let (mut done, mut failed): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for step in STEPS {
        let wanted = args.only.is_empty() || args.only.iter().any(|it| it == step);
        if !wanted || args.skip.iter().any(|it| it == step) {
            continue;
        }
        println!("=== {step}");
        let at = Instant::now();
        let failure = one(step, &home)?;
        let took = at.elapsed().as_secs_f64();
        done.push(format!("{step:10} {took:8.1} s  {}", failure.as_deref().unwrap_or("ok")));
        println!("=== {step}: {} in {took:.1} s", failure.as_deref().unwrap_or("ok"));
        if process::interrupted().load(Relaxed) {
            return Err("interrupted".into());
        }
        if failure.is_some() {
            failed.push(step);
            if !args.keep_going {
                break;
            }
        }
    }
    println!("\n{}", done.join("\n"));
    println!("ci: {} of {} steps ok in {:.1} s", done.len() - failed.len(), done.len(), begun.elapsed().as_secs_f64());
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// Runs one step. `Some`: what is wrong.
fn one(step: &str, home: &PathBuf) -> Result<Option<String>> {
    let minutes = |minutes: u64| Duration::from_mins(minutes);
    let bounded = |args: &[&str], limit: Duration| end(cargo(home).args(args), limit);
    match step {
        // Nothing to fetch is the ordinary case, and then no network is needed either.
        "fetch" => match bounded(&["fetch", "--locked", "--offline", "--quiet"], minutes(5))? {
            None => Ok(None),
            Some(_) => end(cargo(home).env("CARGO_NET_OFFLINE", "false").args(["fetch", "--locked"]), minutes(15)),
        },
        "fmt" => bounded(&["fmt", "--all", "--check"], minutes(5)),
        "tidy" => itself(home, &["tidy"], minutes(5)),
        "clippy" => {
            bounded(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], minutes(30))
        }
        "test" if has_nextest(home) => bounded(
            &["nextest", "run", "--workspace", "--locked", "--profile", "ci", "--no-tests", "pass"],
            minutes(45),
        ),
        "test" => bounded(&["test", "--workspace", "--locked", "--lib", "--bins", "--tests"], minutes(45)),
        "mcp" => with_mcp(home),
        "doctest" => bounded(&["test", "--workspace", "--locked", "--doc", "--quiet"], minutes(15)),
        "doc" => end(
            cargo(home).env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps", "--locked"]),
            minutes(15),
        ),
        "gen" => itself(home, &["gen", "--check"], minutes(5)),
        "selftest" => itself(home, &["cases", "--selftest"], minutes(30)),
        "build" => bounded(&["build", "--release", "--package", "rwd", "--locked"], minutes(30)),
        "clients" => python_client(home),
        "cases" => {
            let rwd = repo::target_dir().join("release/rwd");
            itself(home, &["cases", "--rwd", &rwd.to_string_lossy()], minutes(90))
        }
        other => Err(format!("no step {other}").into()),
    }
}

/// The optional server: only the two crates that have it are built anew, and only its own tests run.
fn with_mcp(home: &PathBuf) -> Result<Option<String>> {
    let crates = ["--package", "rwd", "--package", "harness-adapter", "--locked"];
    let features = ["--features", "rwd/mcp,harness-adapter/mcp"];
    let lint = end(
        cargo(home).arg("clippy").args(crates).args(features).args(["--all-targets", "--", "-D", "warnings"]),
        Duration::from_mins(15),
    )?;
    if lint.is_some() {
        return Ok(lint);
    }
    let mut tests = cargo(home);
    tests.arg("test").args(crates).args(features).args(["--lib", "--tests", "mcp"]);
    end(&mut tests, Duration::from_mins(20))
}

/// The Python client against the build before. The TypeScript one needs a Node.js that `cargo xtask e2e` installs.
fn python_client(home: &PathBuf) -> Result<Option<String>> {
    if !command("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: there is no python3, so the Python client was not tested");
        return Ok(None);
    }
    let mut tests = isolated(command("python3"), home);
    tests.env("RWD_BIN", repo::target_dir().join("release/rwd")).env("PYTHONDONTWRITEBYTECODE", "1");
    end(tests.args(["-m", "unittest", "discover", "-s", "clients/python/tests"]), Duration::from_mins(5))
}

/// The task runner itself, in the environment of the other steps.
fn itself(home: &PathBuf, args: &[&str], limit: Duration) -> Result<Option<String>> {
    end(isolated(command(std::env::current_exe()?), home).args(args), limit)
}

fn end(command: &mut Command, limit: Duration) -> Result<Option<String>> {
    Ok(Running::start(command.current_dir(repo::root()), limit, None)?.wait()?.failure())
}

fn cargo(home: &PathBuf) -> Command {
    isolated(command(repo::cargo()), home)
}

fn has_nextest(home: &PathBuf) -> bool {
    cargo(home).args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
}

/// An empty home, with cargo and rustup where they are.
fn isolated(mut command: Command, home: &PathBuf) -> Command {
    let real = std::env::var_os("HOME").unwrap_or_default();
    let kept = |name: &str, below: &str| -> OsString {
        std::env::var_os(name).unwrap_or_else(|| PathBuf::from(&real).join(below).into_os_string())
    };
    command
        .env("CARGO_HOME", kept("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", kept("RUSTUP_HOME", ".rustup"))
        .env("HOME", home)
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TERM_COLOR", std::env::var_os("CARGO_TERM_COLOR").unwrap_or_else(|| "auto".into()))
        .env("PROPTEST_CASES", std::env::var_os("PROPTEST_CASES").unwrap_or_else(|| "256".into()));
    command
}
