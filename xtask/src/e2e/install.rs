//! Hosts from npm, once, below the target directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Result,
    process::{Running, command},
    repo,
};

use super::write;

/// A Node.js that the hosts run on, with pnpm.
pub(crate) struct Node {
    /// Directories for `PATH`.
    bins: [PathBuf; 2],
    home: PathBuf,
}

/// The release line that the hosts ask for.
const NODE: &str = "24";
/// The version whose solver was seen to get through the hosts' peer dependencies.
const PNPM: &str = "11.7.0";
/// Installing waits for the network.
const PATIENCE: Duration = Duration::from_mins(20);

impl Node {
    /// Installs it if it is not there yet, with whatever npm the machine has.
    pub(crate) fn install() -> Result<Self> {
        let root = repo::target_dir().join("e2e");
        let arch = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => return Err(format!("no Node.js package is known for {other}").into()),
        };
        let package = format!("node-linux-{arch}");
        let home = root.join("home");
        once(&root.join(format!("node-{NODE}")), |dir| {
            fs::create_dir_all(&home)?;
            write(&dir.join("package.json"), "{ \"private\": true }\n")?;
            let mut npm = command("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
            npm.args([format!("{package}@{NODE}"), format!("pnpm@{PNPM}")]);
            end(npm.current_dir(dir), "npm install of Node.js")
        })?;
        let modules = root.join(format!("node-{NODE}/node_modules"));
        Ok(Self { bins: [modules.join(package).join("bin"), modules.join(".bin")], home })
    }

    /// A command that finds this Node.js first.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(self.bins.iter().cloned().chain(std::env::split_paths(&rest)))?;
        let mut command = command(program);
        command.env("PATH", path);
        Ok(command)
    }

    /// Installs a package with pnpm into a directory of its own and says where its modules are.
    ///
    /// `overrides`: versions that its ranges admit but that break it, pinned.
    pub(crate) fn add(&self, name: &str, version: &str, overrides: &[(&str, &str)]) -> Result<PathBuf> {
        let dir = repo::target_dir().join("e2e").join(format!("{}-{version}", name.replace(['@', '/'], "_")));
        once(&dir, |dir| {
            write(&dir.join("package.json"), "{ \"private\": true }\n")?;
            let pins: Vec<String> =
                overrides.iter().map(|(name, version)| format!("  \"{name}\": \"{version}\"\n")).collect();
            write(&dir.join("pnpm-workspace.yaml"), &format!("overrides:\n{}", pins.concat()))?;
            let mut pnpm = self.command("pnpm")?;
            pnpm.args(["add", &format!("{name}@{version}"), "--ignore-scripts", "--reporter=silent"]);
            end(pnpm.current_dir(dir).env("CI", "true"), &format!("pnpm add {name}@{version}"))
        })?;
        Ok(dir.join("node_modules"))
    }

    /// Installs a package with npm, which runs the scripts that fetch a program for this machine, into a directory of its
    /// own; says where its programs are.
    pub(crate) fn add_with_scripts(&self, name: &str, version: &str) -> Result<PathBuf> {
        let dir = repo::target_dir().join("e2e").join(format!("{}-{version}", name.replace(['@', '/'], "_")));
        once(&dir, |dir| {
            write(&dir.join("package.json"), "{ \"private\": true }\n")?;
            let mut npm = self.command("npm")?;
            npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", &format!("{name}@{version}")]);
            end(npm.current_dir(dir), &format!("npm install {name}@{version}"))
        })?;
        Ok(dir.join("node_modules/.bin"))
    }

    /// Directories for `PATH`, this Node.js's first.
    pub(crate) fn bins(&self) -> &[PathBuf] {
        &self.bins
    }

    /// An empty home for hosts that look for one.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }
}

/// Fills `dir` unless it was filled before; a half-filled one is begun again.
fn once(dir: &Path, fill: impl FnOnce(&Path) -> Result) -> Result {
    let done = dir.join(".complete");
    if done.exists() {
        return Ok(());
    }
    if dir.exists() {
        remove(dir)?;
    }
    fs::create_dir_all(dir)?;
    fill(dir)?;
    write(&done, "")
}

#[expect(clippy::disallowed_methods, reason = "below the target directory")]
fn remove(dir: &Path) -> Result {
    fs::remove_dir_all(dir).map_err(|error| format!("cannot empty {}: {error}", dir.display()).into())
}

fn end(command: &mut Command, what: &str) -> Result {
    match Running::start(command, PATIENCE, None)?.wait()?.failure() {
        None => Ok(()),
        Some(why) => Err(format!("{what}: {why}").into()),
    }
}
