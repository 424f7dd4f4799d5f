//! Nothing in a workspace or its repository makes rwd wait: every file that it may look at is replaced by a FIFO in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

/// Longer than anything takes that does not wait for ever.
const PATIENCE: Duration = Duration::from_mins(1);

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && entry.file_name() != "hooks" => files(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// A repository with a pack, loose objects, and every file of rules; `None` where there is no git.
fn repository() -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    sandbox.write("d/f", "one");
    sandbox.write(".gitattributes", "*.c text\n");
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(sandbox.work());
        let done = git.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", sandbox.home()).output();
        done.is_ok_and(|done| done.status.success())
    };
    let made = git(&["init", "-q"]) && git(&["add", "-A"]) && git(&["commit", "-qm", "x"]) && git(&["gc", "-q"]);
    sandbox.write("d/g", "two");
    if !(made && git(&["add", "-A"]) && git(&["commit", "-qm", "y"])) {
        return None;
    }
    for name in [".gitignore", ".rwdignore", ".rwd.toml", "d/.gitignore", ".git/info/attributes", ".git/info/exclude"] {
        sandbox.write(name, "");
    }
    for name in
        ["commondir", "config.worktree", "packed-refs", "objects/info/alternates", "MERGE_HEAD", "sharedindex.x"]
    {
        let at = sandbox.work().join(".git").join(name);
        if !at.exists() && name != "commondir" {
            fs::write(at, "").unwrap();
        }
    }
    Some(sandbox)
}

/// Runs it; panics when it does not come to an end.
fn ends(sandbox: &Sandbox, args: &[&str], what: &Path) -> Option<i32> {
    let mut child = sandbox.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("rwd {args:?} waits for {}", what.display());
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn nothing_in_a_workspace_is_waited_for() {
    let Some(sandbox) = repository() else { return };
    let mut all = vec![sandbox.work().join(".git/commondir"), sandbox.work().join(".git/shallow")];
    files(&sandbox.work(), &mut all);
    assert!(all.len() > 25, "{all:?}");
    for file in all {
        let held = fs::read(&file).ok();
        drop(fs::remove_file(&file));
        let dir = rustix::fs::open(file.parent().unwrap(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty());
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(dir.unwrap(), file.file_name().unwrap(), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for args in [&["-q", "save"][..], &["-q", "doctor"]] {
            let code = ends(&sandbox, args, &file);
            assert!(code.is_some_and(|code| code != 101), "rwd {args:?} with a FIFO at {}", file.display());
        }
        fs::remove_file(&file).unwrap();
        if let Some(held) = held {
            fs::write(&file, held).unwrap();
        }
    }
}
