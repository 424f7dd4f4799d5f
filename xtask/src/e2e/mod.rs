//! The built program against the real hosts, which this installs from npm below the target directory. Their models are
//! scripts on loopback.

mod agents;
mod clients;
mod dsh;
pub(crate) mod install;
mod isolation;
mod model;
mod plugin;

use crate::{Result, process, repo};

/// Hosts, in the order in which they are run; `clients` are ours for the sidecar.
const HOSTS: &[&str] = &["clients", "dsh", "claude", "codex", "gemini", "opencode"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these hosts
    #[arg(value_name = "HOST", value_parser = clap::builder::PossibleValuesParser::new(HOSTS))]
    hosts: Vec<String>,
    /// This build of rwd instead of a fresh release build
    #[arg(long, value_name = "FILE")]
    rwd: Option<std::path::PathBuf>,
    /// Keep the scratch directory and say where it is
    #[arg(long)]
    keep: bool,
    /// Play in this scratch directory, where there is no network: how this program calls itself
    #[arg(long, value_name = "DIR", hide = true, requires = "rwd")]
    inside: Option<std::path::PathBuf>,
}

/// Builds rwd and runs it with every host that was asked for; a host that cannot be installed is a failure.
pub(crate) fn run(args: &Args) -> Result {
    let rwd = match &args.rwd {
        Some(rwd) => rwd.canonicalize()?,
        None => build()?,
    };
    if let (Some(scratch), [host]) = (&args.inside, args.hosts.as_slice()) {
        return agents::run_inside(host, &rwd, scratch);
    }
    let mut failed = Vec::new();
    for host in HOSTS.iter().filter(|host| args.hosts.is_empty() || args.hosts.iter().any(|asked| asked == **host)) {
        println!("=== {host}");
        let scratch = tempfile::Builder::new().prefix("rwd-e2e-").tempdir()?;
        let done = match *host {
            "clients" => clients::run(&rwd),
            "dsh" => dsh::run(&rwd, scratch.path()),
            agent => agents::run(agent, &rwd, scratch.path()),
        };
        match &done {
            Ok(()) => println!("=== {host}: ok"),
            Err(error) => {
                println!("=== {host}: {error}");
                failed.push(*host);
            }
        }
        if args.keep {
            println!("kept {}", scratch.keep().display());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// The program under test, as it is shipped.
fn build() -> Result<std::path::PathBuf> {
    let cargo = repo::cargo();
    process::quiet(&cargo, &["build", "--release", "--package", "rwd", "--locked", "--quiet"], &repo::root())?;
    Ok(repo::target_dir().join("release/rwd"))
}

#[expect(clippy::disallowed_methods, reason = "scratch files, where nothing needs to be durable")]
fn write(path: &std::path::Path, content: &str) -> Result {
    std::fs::write(path, content).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
