//! What other tools run for a checkpoint and a way back: their command sequences, as scripts in `bench/peers`.
//!
//! A script takes `init`, `capture` or `restore`, the workspace, a directory for its state, and for `restore` what a
//! capture printed last. They work on a copy of the tree, since several of them write to the user's repository.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
    process::Stdio,
};

use super::{
    discard,
    subject::{Cost, Setting, run},
};
use crate::{Result, process::command, repo};

/// Every script, by the name of its tool.
pub(crate) const PEERS: &[&str] = &["cline", "codex", "gemini", "hermes", "opencode", "perrylink", "roo", "zed"];

/// What of a tool is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Act {
    /// A capture with nothing changed.
    Nothing,
    /// A capture after one file changed.
    One,
    /// A restore of one file.
    Restore,
    /// The first capture, what sets the tool up included.
    First,
}

impl Act {
    /// As the table calls it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Nothing => "nothing changed",
            Self::One => "one change",
            Self::Restore => "restore of one file",
            Self::First => "first capture",
        }
    }
}

/// A tool, its copy of the tree, and where it keeps its state.
struct Peer<'a> {
    name: &'static str,
    setting: &'a Setting<'a>,
}

impl Peer<'_> {
    fn tree(&self) -> PathBuf {
        self.setting.scratch.join("peers/tree")
    }

    fn argv(&self, verb: &str, state: &str, id: Option<&str>) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec!["env".into()];
        for whose in ["AUTHOR", "COMMITTER"] {
            argv.push(format!("GIT_{whose}_NAME=u").into());
            argv.push(format!("GIT_{whose}_EMAIL=u@example.invalid").into());
        }
        argv.push("bash".into());
        argv.push(repo::root().join(format!("bench/peers/{}.sh", self.name)).into());
        argv.extend([verb.into(), self.tree().into(), self.setting.scratch.join("peers").join(state).into()]);
        argv.extend(id.map(OsString::from));
        argv
    }

    /// What a capture printed last, which names it.
    fn capture(&self) -> Result<String> {
        let argv = self.argv("capture", self.name, None);
        let (program, rest) = argv.split_first().ok_or("an empty command")?;
        let done = command(program).args(rest).current_dir(self.setting.scratch).stderr(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&done.stdout).trim().lines().last().unwrap_or_default().to_owned();
        if done.status.success() && !said.is_empty() { Ok(said) } else { Err("a capture names nothing".into()) }
    }

    fn touch(&self) -> Result<PathBuf> {
        let some = &self.setting.tree.some;
        let path = self.tree().join(&some[some.len() / 2]);
        writeln!(OpenOptions::new().append(true).open(&path)?, "// a change")?;
        Ok(path)
    }
}

/// The copy of the tree that the tools work on, with everything at rest.
pub(crate) fn prepare(setting: &Setting<'_>) -> Result {
    let peers = setting.scratch.join("peers");
    fs::create_dir_all(&peers)?;
    let copied = command("cp").arg("-a").arg(&setting.tree.root).arg(peers.join("tree")).status()?;
    if !copied.success() {
        return Err("the tree cannot be copied".into());
    }
    // A copy has new inodes: the user's index learns them, and forgets that they are young.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    command("git").arg("-C").arg(peers.join("tree")).args(["status", "-s"]).output()?;
    Ok(())
}

/// Sets up `name` and takes its first capture; an error says why it is left out.
pub(crate) fn begin(setting: &Setting<'_>, name: &'static str) -> Result {
    let peer = Peer { name, setting };
    run(setting, &peer.argv("init", name, None))?;
    peer.capture().map(drop)
}

/// Runs one act of a tool that [`begin`] took in, and checks what a restore did.
pub(crate) fn one(setting: &Setting<'_>, name: &'static str, act: Act) -> Result<Cost> {
    let peer = Peer { name, setting };
    match act {
        Act::Nothing => {
            peer.capture()?;
            run(setting, &peer.argv("capture", name, None))
        }
        Act::One => {
            peer.capture()?;
            peer.touch()?;
            run(setting, &peer.argv("capture", name, None))
        }
        Act::Restore => {
            let id = peer.capture()?;
            let (path, before) = {
                let some = &setting.tree.some;
                let path = peer.tree().join(&some[some.len() / 2]);
                let before = fs::read(&path)?;
                (path, before)
            };
            peer.touch()?;
            peer.capture()?;
            let cost = run(setting, &peer.argv("restore", name, Some(&id)))?;
            if fs::read(path)? == before { Ok(cost) } else { Err("its restore does not restore".into()) }
        }
        Act::First => {
            let state = setting.scratch.join("peers/first");
            discard(&state)?;
            let set_up = run(setting, &peer.argv("init", "first", None))?;
            let capture = run(setting, &peer.argv("capture", "first", None))?;
            Ok(Cost {
                wall_ms: set_up.wall_ms + capture.wall_ms,
                cpu_ms: set_up.cpu_ms + capture.cpu_ms,
                peak_kb: set_up.peak_kb.max(capture.peak_kb),
            })
        }
    }
}
