//! A workspace to try things in, and hooks that stop or disturb an operation at a chosen step.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt, fs,
    os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use checkpoint_core::{Change, Mode, OpId, PathState, RelPath, Temporaries, WorkspaceFs};
use tempfile::TempDir;
use testkit::MemoryBlobs;
use workspace_fs::{Crash, Options, RealWorkspace, Support};

pub(crate) const NAMES: Temporaries = Temporaries(OpId::from_bytes([0xab; 16]));

/// What a test puts at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thing {
    Nothing,
    File(&'static str, u16),
    /// With a second name outside the path under test.
    Linked(&'static str, u16),
    Link(&'static str),
    Fifo(u16),
    Dir(u16),
}

pub(crate) struct Scratch {
    dir: TempDir,
    pub(crate) blobs: MemoryBlobs,
}

pub(crate) fn rel(path: impl AsRef<[u8]>) -> RelPath {
    RelPath::new(path.as_ref()).unwrap()
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), blobs: MemoryBlobs::default() }
    }

    /// Where syncing costs nothing, if there is such a place: for tests of many thousand runs.
    pub(crate) fn quick() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self { dir, blobs: MemoryBlobs::default() }
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn open(&self) -> RealWorkspace {
        RealWorkspace::open(self.root()).unwrap()
    }

    pub(crate) fn open_with(&self, support: Support, crash: Arc<dyn Crash>) -> RealWorkspace {
        let options = Options { exchange: support, no_replace: support, crash, ..Options::default() };
        RealWorkspace::with_options(self.root(), options).unwrap()
    }

    /// The state a thing is, its bytes stored.
    pub(crate) fn state(&self, thing: Thing) -> PathState {
        match thing {
            Thing::Nothing => PathState::Absent,
            Thing::File(text, mode) | Thing::Linked(text, mode) => {
                PathState::File { blob: self.blobs.put(text.as_bytes()), mode: Mode(mode) }
            }
            Thing::Link(text) => PathState::Link { blob: self.blobs.put(text.as_bytes()) },
            Thing::Fifo(mode) => PathState::Fifo { mode: Mode(mode) },
            Thing::Dir(mode) => PathState::Dir { mode: Mode(mode) },
        }
    }

    pub(crate) fn change(&self, path: &str, before: Thing, after: Thing) -> Change {
        Change { path: rel(path), before: self.state(before), after: self.state(after) }
    }

    /// Makes a thing on disk, the plain way.
    pub(crate) fn put(&self, path: &str, thing: Thing) {
        let at = self.at(path);
        match thing {
            Thing::Nothing => {}
            Thing::File(text, mode) => {
                fs::write(&at, text).unwrap();
                set_mode(&at, mode.into());
            }
            Thing::Linked(text, mode) => {
                self.put(path, Thing::File(text, mode));
                fs::hard_link(&at, self.at("other-name")).unwrap();
            }
            Thing::Link(text) => symlink(text, &at).unwrap(),
            Thing::Fifo(mode) => {
                rustix::fs::mkfifoat(rustix::fs::CWD, &at, rustix::fs::Mode::from(0o600)).unwrap();
                set_mode(&at, mode.into());
            }
            Thing::Dir(mode) => {
                fs::create_dir(&at).unwrap();
                set_mode(&at, mode.into());
            }
        }
    }

    pub(crate) fn observe(&self, path: &str) -> PathState {
        self.open().observe(&rel(path), &self.blobs).unwrap()
    }

    /// Every path below the root with what it holds.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        visit(self.root(), "", &mut found);
        found
    }

    /// Fails when an operation left a temporary.
    pub(crate) fn assert_tidy(&self, context: &dyn fmt::Debug) {
        let tree = self.tree();
        assert!(!tree.keys().any(|path| path.contains(".rwd-")), "{context:?}: {tree:?}");
    }

    /// Fails unless these bytes are somewhere: in the tree or in the store.
    pub(crate) fn assert_kept(&self, bytes: &str, context: &dyn fmt::Debug) {
        let tree = self.tree();
        let kept = tree.values().any(|held| held == bytes) || self.blobs.holds(bytes.as_bytes());
        assert!(kept, "{context:?}: {bytes:?} is lost: {tree:?}");
    }
}

fn visit(dir: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().unwrap();
        let held = if kind.is_dir() {
            visit(&entry.path(), &format!("{name}/"), found);
            "(directory)".to_owned()
        } else if kind.is_symlink() {
            fs::read_link(entry.path()).unwrap().to_string_lossy().into_owned()
        } else if kind.is_fifo() {
            "(FIFO)".to_owned()
        } else {
            String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned()
        };
        found.insert(name, held);
    }
}

/// Counts steps, disturbs the disk at one, and dies at another.
#[derive(Default)]
pub(crate) struct Script {
    seen: Mutex<Vec<&'static str>>,
    crash_at: Option<usize>,
    edits: Vec<(usize, Box<dyn Fn() + Send + Sync>)>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script {{ crash_at: {:?} }}", self.crash_at)
    }
}

/// What a simulated kill unwinds with.
struct Killed;

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn crash_at(mut self, step: Option<usize>) -> Self {
        self.crash_at = step;
        self
    }

    pub(crate) fn edit_at(mut self, step: usize, edit: impl Fn() + Send + Sync + 'static) -> Self {
        self.edits.push((step, Box::new(edit)));
        self
    }

    pub(crate) fn steps(&self) -> Vec<&'static str> {
        self.seen.lock().unwrap().clone()
    }
}

impl Crash for Script {
    fn point(&self, what: &'static str) {
        let step = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(what);
            seen.len() - 1
        };
        for (at, edit) in &self.edits {
            if *at == step {
                edit();
            }
        }
        if self.crash_at == Some(step) {
            // Unlike a panic this prints nothing.
            resume_unwind(Box::new(Killed));
        }
    }
}

/// Runs until done or killed: `None`. Other panics go on.
pub(crate) fn until_killed<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(done) => Some(done),
        Err(cause) if is_kill(cause.as_ref()) => None,
        Err(cause) => resume_unwind(cause),
    }
}

fn is_kill(cause: &(dyn Any + Send)) -> bool {
    cause.is::<Killed>()
}
