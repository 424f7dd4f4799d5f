//! Every fuzz target for so many minutes, with libfuzzer and without a program beside cargo.
//!
//! Coverage needs a nightly compiler; without one a stable compiler is made to accept the same flags. The inputs that a
//! run finds worth keeping stay below the target directory; one that fails is printed and kept in `fuzz/artifacts`.
//! `cargo test` replays the corpora with either compiler.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    Result,
    process::{self, Running, command},
    repo,
};

/// What makes a program count where it has been, as libfuzzer wants it. No sanitizer: nothing of ours is `unsafe`.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Minutes for each target
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Only these targets
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
    /// Only say which there are
    #[arg(long)]
    list: bool,
}

/// Runs them one after the other; an error when one finds something.
pub(crate) fn run(args: &Args) -> Result {
    let all = targets()?;
    if args.list {
        println!("{}", all.join("\n"));
        return Ok(());
    }
    if let Some(unknown) = args.target.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no target {unknown}: {}", all.join(", ")).into());
    }
    let chosen: Vec<&String> = all.iter().filter(|name| args.target.is_empty() || args.target.contains(name)).collect();
    let built = build(&chosen)?;
    let (mut total, mut found) = (0, Vec::new());
    for name in chosen {
        let begun = Instant::now();
        let (inputs, failed) = one(&built, name, Duration::from_mins(args.minutes))?;
        total += inputs;
        let end = failed.as_deref().unwrap_or("no finding");
        println!("fuzz {name}: {inputs} inputs in {:.1} minutes, {end}", begun.elapsed().as_secs_f64() / 60.0);
        if failed.is_some() {
            found.push(name.as_str());
        }
    }
    println!("fuzz: {total} inputs, {} findings", found.len());
    if found.is_empty() { Ok(()) } else { Err(format!("findings: {}", found.join(", ")).into()) }
}

/// The programs of `fuzz/Cargo.toml`.
fn targets() -> Result<Vec<String>> {
    let manifest: toml::Table = fs::read_to_string(repo::root().join("fuzz/Cargo.toml"))?.parse()?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).ok_or("fuzz/Cargo.toml has no programs")?;
    let name = |program: &toml::Value| program.get("name").and_then(toml::Value::as_str).map(str::to_owned);
    Ok(programs.iter().filter_map(name).collect())
}

/// Builds them; gives the directory they are in.
fn build(names: &[&String]) -> Result<std::path::PathBuf> {
    let version = process::quiet("rustc", &["-vV"], &repo::root())?;
    let version = String::from_utf8_lossy(&version).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let target_dir = repo::target_dir().join("fuzz");
    let listed = process::quiet("rustup", &["toolchain", "list"], &repo::root()).unwrap_or_default();
    let has_nightly = String::from_utf8_lossy(&listed).lines().any(|line| line.starts_with("nightly"));
    // The proxy of rustup chooses the compiler; the variables of the one that runs this task would win over it.
    let mut cargo = command("cargo");
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(name);
    }
    if has_nightly {
        cargo.arg("+nightly");
    } else {
        println!("there is no nightly toolchain: a stable compiler is told to accept its flags");
        cargo.env("RUSTC_BOOTSTRAP", "1");
    }
    cargo.args(["build", "--release", "--locked", "--quiet", "--target", host, "--target-dir"]).arg(&target_dir);
    for name in names {
        cargo.args(["--bin", name.as_str()]);
    }
    cargo.env("RUSTFLAGS", FLAGS.join(" ")).env("CARGO_INCREMENTAL", "0").current_dir(repo::root().join("fuzz"));
    match Running::start(&mut cargo, Duration::from_hours(1), None)?.wait()?.failure() {
        None => Ok(target_dir.join(host).join("release")),
        Some(how) => Err(format!("the fuzz targets do not build: {how}").into()),
    }
}

/// Runs one; gives how many inputs it tried and what is wrong.
fn one(built: &Path, name: &str, time: Duration) -> Result<(u64, Option<String>)> {
    let fuzz = repo::root().join("fuzz");
    let (kept, found) = (repo::target_dir().join("fuzz-corpus").join(name), fuzz.join("artifacts").join(name));
    fs::create_dir_all(&kept)?;
    fs::create_dir_all(&found)?;
    let log_path = repo::target_dir().join(format!("fuzz-{name}.log"));
    let log = fs::File::create(&log_path)?;
    let mut program = command(built.join(name));
    program.arg(&kept).arg(fuzz.join("corpus").join(name)).arg(format!("-artifact_prefix={}/", found.display()));
    program.arg(format!("-max_total_time={}", time.as_secs()));
    program.args(["-timeout=30", "-rss_limit_mb=2048", "-max_len=16384", "-print_final_stats=1", "-verbosity=1"]);
    let end = Running::start(&mut program, time + Duration::from_mins(5), Some(&log))?.wait()?.failure();
    let told = String::from_utf8_lossy(&fs::read(&log_path)?).into_owned();
    let tried = told.lines().filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let tried = tried.filter_map(|number| number.trim().parse::<u64>().ok()).next_back().unwrap_or(0);
    let failed = end.map(|how| {
        let last: Vec<&str> = told.lines().rev().take(25).collect();
        println!("{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        format!("{how}; see {} and {}", log_path.display(), found.display())
    });
    Ok((tried, failed))
}
