//! What rwd costs: times, memory and counts on generated and real trees, beside the yardstick and git.
//!
//! Absolute times move from run to run and from machine to machine. Every round runs each subject once, one after the
//! other, so that a slow moment meets all of them; the minimum over the rounds is compared, as a ratio. Nothing here
//! is a test: a time never fails a build.

mod agent;
mod peer;
mod report;
mod subject;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
    time::Duration,
};

use crate::{
    Result, cases,
    process::{Running, command, interrupted},
    repo,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these workloads
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(["W1", "W2", "W3", "W4", "W5", "W6"]))]
    only: Vec<String>,
    /// Rounds; first captures and restores run in at most three of them
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Trees of at most so many files, for a quick look
    #[arg(long, value_name = "N", default_value_t = u32::MAX)]
    max_files: u32,
    /// Write everything that was measured to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The binary to measure; without it, a release build is made
    #[arg(long, value_name = "FILE")]
    rwd: Option<PathBuf>,
    /// Where trees and stores are kept; on the file system that is to be measured, outside any repository
    #[arg(long, value_name = "DIR", default_value = "~/.cache/rwd-bench")]
    dir: PathBuf,
    /// Leave git out
    #[arg(long)]
    no_git: bool,
    /// Leave the other tools out
    #[arg(long)]
    no_peers: bool,
    /// Only the inner parts: criterion in the crates
    #[arg(long, exclusive = true)]
    inner: bool,
}

/// The helper programs of `bench/limit`.
pub(crate) struct Tools {
    /// Lists and stats everything.
    pub(crate) limit: PathBuf,
    /// Runs a command and says what it cost.
    pub(crate) measure: PathBuf,
    /// `gix status`, where it could be built.
    pub(crate) gix_status: Option<PathBuf>,
}

/// Measures every workload and prints a table for each.
pub(crate) fn run(args: &Args) -> Result {
    if args.inner {
        return inner();
    }
    let tools = tools(!args.no_git)?;
    let rwd = match &args.rwd {
        Some(rwd) => fs::canonicalize(rwd).map_err(|error| format!("cannot use {}: {error}", rwd.display()))?,
        None => cases::build(true)?,
    };
    // Not below the target directory: the ignore rules of the repository above would hold in the trees.
    let base = match args.dir.strip_prefix("~") {
        Ok(below) => PathBuf::from(std::env::var_os("HOME").ok_or("HOME is not set; name a --dir")?).join(below),
        Err(_) => args.dir.clone(),
    };
    fs::create_dir_all(&base)?;
    let base = fs::canonicalize(base)?;
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for workload in tree::WORKLOADS {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == workload.name) {
            continue;
        }
        eprintln!("{}: preparing", workload.name);
        // One workload that cannot be measured does not take the others' figures along.
        match one(workload, args, &base, &tools, &rwd) {
            Ok(figures) => all.push(figures),
            Err(error) => failed.push(format!("{}: {error}", workload.name)),
        }
        if interrupted().load(Relaxed) {
            break;
        }
    }
    if let Some(file) = &args.json {
        let whole = serde_json::json!({
            "schema": "rwd.bench/1",
            "cpus": std::thread::available_parallelism().map_or(0, usize::from),
            "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
            "workloads": all,
        });
        save(file, format!("{whole:#}\n"))?;
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

/// Prepares and measures one workload and prints its table.
fn one(
    workload: &'static tree::Workload,
    args: &Args,
    base: &Path,
    tools: &Tools,
    rwd: &Path,
) -> Result<serde_json::Value> {
    let tree = tree::prepare(workload, base, args.max_files)?;
    let scratch = tempfile::Builder::new().prefix("run-").tempdir_in(base)?;
    let setting = subject::Setting { tree: &tree, tools, rwd, scratch: scratch.path() };
    let measured = subject::measure(&setting, args.runs, !args.no_git, !args.no_peers)?;
    println!("{}", report::table(&measured));
    Ok(report::json(&measured))
}

/// Builds the helpers: packages of their own. The yardstick needs what the lints of this workspace forbid, `gix status`
/// features that rwd does not have; without the network it may not build, and is left out.
fn tools(with_gix: bool) -> Result<Tools> {
    let limit = build("limit")?;
    let gix_status = with_gix.then(|| build("gix-status")).and_then(|built| {
        built.inspect_err(|error| eprintln!("gix status is left out: {error}")).ok().map(|dir| dir.join("gix-status"))
    });
    Ok(Tools { limit: limit.join("limit"), measure: limit.join("measure"), gix_status })
}

/// Builds a package of `bench` and says where its programs are.
fn build(name: &str) -> Result<PathBuf> {
    let target = repo::target_dir().join(format!("bench-{name}"));
    let mut cargo = command(repo::cargo());
    cargo
        .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(repo::root().join("bench").join(name).join("Cargo.toml"));
    cargo.arg("--target-dir").arg(&target);
    if let Some(how) = Running::start(&mut cargo, Duration::from_mins(10), None)?.wait()?.failure() {
        return Err(format!("bench/{name} does not build: {how}").into());
    }
    Ok(target.join("release"))
}

/// Runs the benches of the crates.
fn inner() -> Result {
    let mut cargo = command(repo::cargo());
    cargo
        .args(["bench", "--quiet", "--workspace", "--bench", "capture", "--bench", "restore", "--bench", "records"])
        .current_dir(repo::root());
    match Running::start(&mut cargo, Duration::from_hours(1), None)?.wait()?.failure() {
        Some(how) => Err(format!("cargo bench: {how}").into()),
        None => Ok(()),
    }
}

/// Writes a file of ours, which nobody would miss.
#[expect(clippy::disallowed_methods, reason = "generated trees and figures can be made again")]
fn save(path: &Path, content: impl AsRef<[u8]>) -> Result {
    fs::write(path, content).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Removes a directory of ours below the bench directory.
#[expect(clippy::disallowed_methods, reason = "only what the bench made itself")]
fn discard(path: &Path) -> Result {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
