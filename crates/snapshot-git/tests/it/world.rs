//! A scratch workspace with its store, and shorthands to look at what was captured.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use checkpoint_core::{
    CapturePolicy, CaptureRequest, Captured, NoProgress, Progress, RelPath, Snapshot, SnapshotBackend, SnapshotError,
};
use snapshot_git::{EpochFile, GitSnapshots, Options, UserConfig};
use tempfile::TempDir;

/// What a capture is asked for, with owned parts.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) base: Option<Snapshot>,
    pub(crate) held: BTreeSet<RelPath>,
    pub(crate) not_held: BTreeSet<RelPath>,
    pub(crate) include: BTreeSet<RelPath>,
    pub(crate) temporaries: Vec<Vec<u8>>,
    pub(crate) policy: CapturePolicy,
    pub(crate) write: bool,
    pub(crate) watched: bool,
    pub(crate) deadline: Option<Duration>,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            base: None,
            held: BTreeSet::new(),
            not_held: BTreeSet::new(),
            include: BTreeSet::new(),
            temporaries: Vec::new(),
            policy: CapturePolicy { free_space_floor: 0, ..CapturePolicy::default() },
            write: true,
            watched: false,
            deadline: None,
        }
    }
}

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) ask: Ask,
    pub(crate) options: Options,
    pub(crate) backend: GitSnapshots,
}

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

impl World {
    /// An empty workspace, no git.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        Self::at(dir, root)
    }

    /// A workspace at `root`, which exists.
    pub(crate) fn at(dir: TempDir, root: PathBuf) -> Self {
        let epoch = Arc::new(EpochFile::new(dir.path().join("epoch")));
        let options = Options { config: UserConfig::none(), ..Options::new(epoch) };
        let backend = open(&dir, &root, options.clone());
        Self { dir, root, ask: Ask::default(), options, backend }
    }

    /// An empty workspace that is a git repository. `None`, with a note, where git is not installed.
    pub(crate) fn git() -> Option<Self> {
        let world = Self::new();
        world.run_git(&["init", "-q", "-b", "main"])?;
        Some(world)
    }

    /// A new handle, as a new process has it.
    pub(crate) fn reopen(&mut self) {
        self.backend = open(&self.dir, &self.root, self.options.clone());
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.path().join("stat.cache")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.dir.path().join("git")
    }

    pub(crate) fn abs(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Writes a file, with the directories above it.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.abs(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.abs(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn try_capture_with(&self, progress: &dyn Progress) -> Result<Captured, SnapshotError> {
        try_capture_with(&self.backend, &self.ask, progress)
    }

    pub(crate) fn try_capture(&self) -> Result<Captured, SnapshotError> {
        self.try_capture_with(&NoProgress)
    }

    pub(crate) fn capture(&self) -> Captured {
        self.try_capture().unwrap()
    }

    /// Captures on top of the last capture.
    pub(crate) fn capture_next(&mut self) -> Captured {
        let captured = self.capture();
        self.ask.base = Some(captured.snapshot);
        captured
    }

    /// Waits until what was written is older than the racy window.
    pub(crate) fn settle() {
        std::thread::sleep(Duration::from_millis(45));
    }

    /// Every path of a snapshot with what it holds, in short.
    pub(crate) fn list(&self, snapshot: &Snapshot) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        self.backend
            .list(snapshot, None, &mut |path, state| {
                let text = match state {
                    checkpoint_core::PathState::File { mode, .. } => format!("file {:o}", mode.0),
                    checkpoint_core::PathState::Link { .. } => "link".to_owned(),
                    checkpoint_core::PathState::Fifo { mode } => format!("fifo {:o}", mode.0),
                    checkpoint_core::PathState::Dir { mode } => format!("dir {:o}", mode.0),
                    other => format!("{other:?}"),
                };
                out.insert(path.to_lossy(), text);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        out
    }

    /// The files, links and FIFOs of a snapshot.
    pub(crate) fn files(&self, snapshot: &Snapshot) -> Vec<String> {
        let all = self.list(snapshot);
        all.into_iter().filter(|(_, what)| !what.starts_with("dir")).map(|(path, _)| path).collect()
    }

    /// Runs git in the workspace, with no configuration but the repository's own. `None` when it is not installed.
    pub(crate) fn run_git(&self, args: &[&str]) -> Option<String> {
        run_git(&self.root, args, &[])
    }

    /// What `git write-tree` gives for everything in the workspace, ignored or not, without conversions.
    pub(crate) fn git_tree(&self) -> Option<String> {
        let scratch = tempfile::tempdir_in(self.dir.path()).unwrap();
        let objects = scratch.path().join("objects");
        std::fs::create_dir(&objects).unwrap();
        let index = scratch.path().join("index");
        let git_dir = scratch.path().join("repo");
        run_git(scratch.path(), &["init", "-q", "--bare", "repo"], &[])?;
        let env = [
            ("GIT_INDEX_FILE", index.to_str().unwrap()),
            ("GIT_DIR", git_dir.to_str().unwrap()),
            ("GIT_WORK_TREE", self.root.to_str().unwrap()),
        ];
        run_git(&self.root, &["-c", "core.autocrlf=false", "-c", "core.bare=false", "add", "-A", "-f", "."], &env)?;
        run_git(&self.root, &["write-tree"], &env)
    }
}

fn try_capture_with(backend: &GitSnapshots, ask: &Ask, progress: &dyn Progress) -> Result<Captured, SnapshotError> {
    let Ask { base, held, not_held, include, temporaries, policy, write, watched, deadline } = ask;
    backend.capture(&CaptureRequest {
        base: *base,
        held,
        not_held,
        include,
        temporaries,
        policy,
        write: *write,
        watched: *watched,
        deadline: *deadline,
        progress,
    })
}

/// A capture through another handle.
pub(crate) fn capture_with(backend: &GitSnapshots, ask: &Ask) -> Captured {
    try_capture_with(backend, ask, &NoProgress).unwrap()
}

fn open(dir: &TempDir, root: &Path, options: Options) -> GitSnapshots {
    GitSnapshots::open(root, &dir.path().join("git"), &dir.path().join("stat.cache"), options).unwrap()
}

pub(crate) fn run_git(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Option<String> {
    let mut command = Command::new("git");
    command.current_dir(dir).args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", "/nonexistent");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "t").env(format!("GIT_{who}_EMAIL"), "t@example.invalid");
    }
    command.envs(env.iter().copied());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{error}"),
    };
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

/// True where permission bits stop us from reading.
pub(crate) fn permissions_count() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    std::fs::write(&file, "x").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o0)).unwrap();
    std::fs::read(&file).is_err()
}

/// The skipped paths with their reasons, as text.
pub(crate) fn skipped(captured: &Captured) -> Vec<String> {
    captured.skipped.iter().map(|s| format!("{} {}", s.path, s.reason.code())).collect()
}
