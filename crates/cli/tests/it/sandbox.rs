//! A home, a workspace and a data directory that nobody else uses, and the program run in them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::schema;

/// One closed world.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
    vars: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) raw: Vec<u8>,
}

/// Everything below a directory: kind, permission bits, content.
pub(crate) type Tree = BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>;

impl Sandbox {
    /// A plain directory as workspace.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir, vars: Vec::new() }
    }

    /// The same with a variable for every run.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn top(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.top().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.top().join("home")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home().join(".local/share/rwd")
    }

    /// The directory of the only workspace.
    pub(crate) fn store(&self) -> PathBuf {
        let mut all = fs::read_dir(self.data().join("workspaces")).unwrap();
        let only = all.next().unwrap().unwrap().path();
        assert!(all.next().is_none(), "more than one workspace");
        only
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(fs::read(self.work().join(path)).unwrap()).unwrap()
    }

    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.work().join(path).symlink_metadata().is_ok()
    }

    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        fs::remove_file(self.work().join(path)).unwrap();
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.work())
    }

    /// The program, not yet run.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_os(&args.iter().map(OsStr::new).collect::<Vec<_>>())
    }

    pub(crate) fn command_os(&self, args: &[&OsStr]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rwd"));
        command.args(args).current_dir(self.work()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1").env("TZ", "UTC");
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn rwd(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    /// A run that must end with 0.
    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.rwd(args);
        assert_eq!(ran.code, 0, "rwd {args:?}: {ran:?}");
        ran
    }

    /// A run with `--json` that must end with `code`; the answer is checked against its schema.
    pub(crate) fn json(&self, code: i32, args: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(args);
        let ran = self.rwd(&all);
        assert_eq!(ran.code, code, "rwd {args:?}: {ran:?}");
        ran.json()
    }

    /// A turn of the session `agent`: a record before and one after `play`.
    pub(crate) fn turn(&self, turn: u32, play: impl FnOnce(&Self)) {
        self.turn_of("agent", turn, play);
    }

    pub(crate) fn turn_of(&self, session: &str, turn: u32, play: impl FnOnce(&Self)) {
        let number = turn.to_string();
        self.ok(&["save", "--session", session, "--turn", &number, "--kind", "turn-start"]);
        play(self);
        self.ok(&["save", "--session", session, "--turn", &number, "--kind", "turn-end"]);
    }
}

/// Runs to the end.
pub(crate) fn ran(command: &mut Command) -> Ran {
    ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Waits for the end.
pub(crate) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        raw: output.stdout,
    }
}

impl Ran {
    /// The one JSON object on standard output, as its schema says.
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        schema::check(&value);
        value
    }
}

/// Paths of a list of a JSON answer.
pub(crate) fn listed(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

pub(crate) fn tree(top: &Path) -> Tree {
    let mut all = Tree::new();
    collect(top, top, &mut all);
    all
}

fn collect(top: &Path, dir: &Path, all: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let facts = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec();
        let mode = facts.permissions().mode() & 0o7777;
        if facts.is_dir() {
            all.insert(name, ('d', mode, Vec::new()));
            collect(top, &path, all);
        } else if facts.is_symlink() {
            all.insert(name, ('l', 0, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
        } else if facts.is_file() {
            all.insert(name, ('f', mode, fs::read(&path).unwrap()));
        } else {
            all.insert(name, ('s', mode, Vec::new()));
        }
    }
}
