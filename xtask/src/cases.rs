//! Runs the conformance cases of `tests/cases` against a build of rwd, one runner per policy and index.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Result,
    process::{Running, command},
    repo,
};

/// One runner drives about a hundred cases; each of its calls has its own limit.
const LIMIT: Duration = Duration::from_mins(30);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The binary to drive; without it, rwd is built first
    #[arg(long, value_name = "FILE")]
    rwd: Option<PathBuf>,
    /// What a restore does with files that are new since the checkpoint
    #[arg(long, value_delimiter = ',', default_value = "exact,keep")]
    policy: Vec<String>,
    /// Where points are kept
    #[arg(long, value_delimiter = ',', default_value = "sqlite,json")]
    index: Vec<String>,
    /// Prove the cases themselves: each must fail without a restore and pass after an ideal one
    #[arg(long, conflicts_with = "rwd")]
    selftest: bool,
    /// Runners at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    jobs: u8,
    /// Cases, by number or name; all without
    cases: Vec<String>,
}

/// One runner: what it is called, and what it is called with.
struct Lane {
    label: String,
    script: &'static str,
    args: Vec<String>,
    /// `CASE_POLICY`; the runner sets its own.
    policy: &'static str,
}

/// A lane under way.
struct Active {
    label: String,
    running: Running,
    output: File,
    begun: Instant,
}

/// Runs what `args` asks for; an error when any case fails.
pub(crate) fn run(args: &Args) -> Result {
    let mut lanes = Vec::new();
    if args.selftest {
        for (policy, variable) in [("exact", ""), ("keep", "keep-new")] {
            lanes.push(Lane {
                label: format!("selftest, {policy}"),
                script: "selftest.sh",
                args: args.cases.clone(),
                policy: variable,
            });
        }
    } else {
        let rwd = match &args.rwd {
            Some(rwd) => fs::canonicalize(rwd).map_err(|error| format!("cannot use {}: {error}", rwd.display()))?,
            None => build(true)?,
        };
        for policy in &args.policy {
            for index in &args.index {
                let mut with: Vec<String> =
                    ["--rwd", &rwd.to_string_lossy(), "--policy", policy, "--index", index].map(str::to_owned).to_vec();
                with.extend(args.cases.iter().cloned());
                lanes.push(Lane { label: format!("{policy}, {index}"), script: "run.sh", args: with, policy: "" });
            }
        }
    }
    let failed = drive(lanes, usize::from(args.jobs))?;
    if failed.is_empty() { Ok(()) } else { Err(format!("cases failed: {}", failed.join("; ")).into()) }
}

/// Runs the lanes, `jobs` at a time, prints the output of each when it ends and returns those that failed.
fn drive(lanes: Vec<Lane>, jobs: usize) -> Result<Vec<String>> {
    let mut waiting = lanes.into_iter();
    let (mut active, mut failed): (Vec<Active>, Vec<String>) = (Vec::new(), Vec::new());
    loop {
        while active.len() < jobs
            && let Some(lane) = waiting.next()
        {
            active.push(start(lane)?);
        }
        if active.is_empty() {
            return Ok(failed);
        }
        let mut still = Vec::new();
        for mut lane in active {
            match lane.running.poll()? {
                None => still.push(lane),
                Some(end) => {
                    let mut text = String::new();
                    lane.output.seek(SeekFrom::Start(0))?;
                    lane.output.read_to_string(&mut text)?;
                    println!("--- cases ({}), {:.1} s", lane.label, lane.begun.elapsed().as_secs_f64());
                    print!("{text}");
                    failed.extend(end.failure().map(|how| format!("{} ({how})", lane.label)));
                }
            }
        }
        active = still;
        thread::sleep(Duration::from_millis(20));
    }
}

fn start(lane: Lane) -> Result<Active> {
    let output = tempfile::tempfile()?;
    let mut runner = command("bash");
    runner.arg(repo::root().join("tests/cases").join(lane.script)).args(&lane.args).current_dir(repo::root());
    runner.env("CASE_POLICY", lane.policy);
    let running = Running::start(&mut runner, LIMIT, Some(&output))?;
    Ok(Active { label: lane.label, running, output, begun: Instant::now() })
}

/// Builds rwd and says where it is.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let mut cargo = command(repo::cargo());
    cargo.args(["build", "--quiet", "--package", "rwd"]).current_dir(repo::root());
    if release {
        cargo.arg("--release");
    }
    if let Some(how) = Running::start(&mut cargo, LIMIT, None)?.wait()?.failure() {
        return Err(format!("rwd does not build: {how}").into());
    }
    Ok(repo::target_dir().join(if release { "release" } else { "debug" }).join("rwd"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// An engine that answers well and does nothing must fail every case that has something to restore.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a script in a scratch directory")]
    fn an_engine_that_only_talks_fails_the_cases() {
        let dir = tempfile::tempdir().unwrap();
        let talker = dir.path().join("talker");
        let id = "0123456789abcdef0123456789abcdef";
        fs::write(&talker, format!("#!/bin/sh\necho '{{\"id\":\"{id}\",\"plan\":\"{id}\"}}'\n")).unwrap();
        fs::set_permissions(&talker, fs::Permissions::from_mode(0o755)).unwrap();
        for case in ["10-bash-rm-restored", "69-hand-edit-under-agent-turn", "86-undo-and-redo-in-turn"] {
            let lane = Lane {
                label: case.to_owned(),
                script: "run.sh",
                args: ["--rwd", talker.to_str().unwrap(), "--policy", "exact", case].map(str::to_owned).to_vec(),
                policy: "",
            };
            assert_eq!(drive(vec![lane], 1).unwrap(), [format!("{case} (exit 1)")]);
        }
    }
}
