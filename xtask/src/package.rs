//! The packages for npm: the plugin for DeepSeek Harness, and the program for this platform, which the plugin finds by
//! the name of its package. Neither has a script that runs at installation.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{Result, cases, e2e::install::Node, process::Running, repo};

/// Pinned, as a newer compiler may find what is not wrong.
pub(crate) const TYPESCRIPT: &str = "5.9.3";
pub(crate) const NODE_TYPES: &str = "24.10.1";
const PATIENCE: Duration = Duration::from_mins(4);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to pack; without it, a release build is made
    #[arg(long, value_name = "FILE")]
    rwd: Option<PathBuf>,
}

/// Writes both archives to `target/packages`.
pub(crate) fn run(args: &Args) -> Result {
    let rwd = match &args.rwd {
        Some(rwd) => fs::canonicalize(rwd).map_err(|error| format!("cannot use {}: {error}", rwd.display()))?,
        None => cases::build(true)?,
    };
    let into = repo::target_dir().join("packages");
    fs::create_dir_all(&into)?;
    let scratch = tempfile::Builder::new().prefix("pack-").tempdir_in(&into)?;
    let node = Node::install()?;
    let program = platform(&node, &rwd, scratch.path())?;
    let plugin = plugin(&node, scratch.path(), &Wanted::Published)?;
    for archive in [program, plugin] {
        let to = into.join(archive.file_name().unwrap_or_default());
        fs::rename(&archive, &to)?;
        println!("{}", to.display());
    }
    Ok(())
}

/// The name of the package that carries the program for this machine: what the plugin looks for.
pub(crate) fn platform_name() -> Result<String> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => return Err(format!("npm has no word for {other}").into()),
    };
    Ok(format!("rwd-dsh-{}-{arch}", std::env::consts::OS))
}

/// Packs the program; gives the archive, below `scratch`.
pub(crate) fn platform(node: &Node, rwd: &Path, scratch: &Path) -> Result<PathBuf> {
    let name = platform_name()?;
    let dir = scratch.join(&name);
    fs::create_dir_all(dir.join("bin"))?;
    let program = dir.join("bin/rwd");
    copy(rwd, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let mut about = json!({
        "name": name,
        "version": version()?,
        "description": "The program rwd for one platform; installed with rwd-dsh, not by hand",
        "license": "MIT OR Apache-2.0",
        "os": [std::env::consts::OS],
        "cpu": [name.rsplit('-').next().unwrap_or_default()],
        "files": ["bin"],
    });
    if cfg!(target_env = "gnu") {
        about["libc"] = json!(["glibc"]);
    }
    write(&dir.join("package.json"), &format!("{about:#}\n"))?;
    pack(node, &dir)
}

/// Where the plugin's package says that the program is.
pub(crate) enum Wanted<'a> {
    /// In the registry, in the plugin's own version.
    Published,
    /// In this archive.
    Archive(&'a Path),
}

/// Builds the plugin from its sources and packs it; gives the archive, below `scratch`.
pub(crate) fn plugin(node: &Node, scratch: &Path, program: &Wanted<'_>) -> Result<PathBuf> {
    let sources = repo::root().join("integrations/dsh");
    let packed = scratch.join("package");
    // Built from the copy, so that the maps lead to the sources beside them.
    copy_tree(&sources.join("src"), &packed.join("src"))?;
    for file in ["cordis.patch.yml", "README.md", "README.zh.md"] {
        copy(&sources.join(file), &packed.join(file))?;
    }
    let mut about: Value = serde_json::from_slice(&fs::read(sources.join("package.json"))?)?;
    let version = match program {
        Wanted::Published => version()?,
        Wanted::Archive(archive) => format!("file:{}", archive.display()),
    };
    about["optionalDependencies"] = json!({ platform_name()?: version });
    write(&packed.join("package.json"), &format!("{about:#}\n"))?;
    let compiler = node.add("typescript", TYPESCRIPT, &[])?.join("typescript/bin/tsc");
    let types = node.add("@types/node", NODE_TYPES, &[])?.join("@types");
    let build = json!({
        "extends": sources.join("tsconfig.json"),
        "compilerOptions": { "typeRoots": [types], "rootDir": packed.join("src"), "outDir": packed.join("lib") },
        "include": [packed.join("src")],
    });
    let config = scratch.join("build.json");
    write(&config, &build.to_string())?;
    finish(node.command("node")?.arg(compiler).arg("-p").arg(config), "tsc")?;
    pack(node, &packed)
}

/// The version of the plugin, which that of the program's package follows.
fn version() -> Result<String> {
    let about: Value = serde_json::from_slice(&fs::read(repo::root().join("integrations/dsh/package.json"))?)?;
    Ok(about["version"].as_str().ok_or("the plugin has no version")?.to_owned())
}

fn pack(node: &Node, dir: &Path) -> Result<PathBuf> {
    let mut npm = node.command("npm")?;
    npm.args(["pack", "--silent"]).current_dir(dir).env("HOME", node.home());
    finish(&mut npm, "npm pack")?;
    let mut files = fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|end| end == "tgz")).ok_or_else(|| "no archive".into())
}

fn finish(command: &mut std::process::Command, what: &str) -> Result {
    match Running::start(command, PATIENCE, None)?.wait()?.failure() {
        Some(how) => Err(format!("{what}: {how}").into()),
        None => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "below the target directory, from our own files")]
fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "below the target directory")]
fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
