//! What must hold for any bytes in rwd's own files and arguments, one function for each target. The fuzz targets call them
//! with what libfuzzer makes up, a test of `testkit` with every file of the corpora and many small changes of each.

use std::{
    collections::BTreeSet,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use checkpoint_core::{
    Address, BlobStore as _, CapturePolicy, CaptureRequest, IndexStore, NoProgress, Ord, PathState, PointQuery,
    RelPath, Snapshot, SnapshotBackend, SnapshotError, VerifyLevel,
};
use index_store::{JsonIndex, JsonOptions};
use snapshot_git::{EpochFile, GitSnapshots, Options, UserConfig};

/// An address as it is typed. What is accepted is accepted in any case of its letters.
pub(crate) fn address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(address) = Address::parse(&text) {
        assert!(!text.trim().is_empty(), "nothing is no address");
        assert_eq!(Address::parse(&text), Ok(address), "an address always means the same");
    }
    if checkpoint_core::check_name(&text).is_ok() {
        assert!(!text.is_empty() && !text.chars().any(char::is_control), "a name can be printed");
    }
    if let Ok(path) = RelPath::new(data) {
        assert!(!data.starts_with(b"/") && !path.components().any(|part| part == b".." || part == b"."));
        let stored = serde_json::to_string(&path).expect("every path is stored");
        assert_eq!(serde_json::from_str::<RelPath>(&stored).expect("and read"), path);
    }
}

/// An index file. It is read or refused as a whole, twice the same, and reading does not change it.
pub(crate) fn index_json(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let path = dir.path().join("index.jsonl");
    fs::write(&path, data).expect("a scratch file");
    let look = || {
        let index = JsonIndex::open(&path, JsonOptions::default()).ok()?;
        let points = index.points(&PointQuery::default()).ok()?;
        let operations = index.operations(&[], None).ok()?;
        for operation in &operations {
            drop(index.written(&operation.id));
        }
        drop((index.intervals(Ord(0)), index.waiting(), index.open_intent(), index.sessions(), index.names()));
        drop((index.held(), index.newest_mark(), index.newest(), index.revision()));
        Some((points, operations))
    };
    assert_eq!(look(), look());
    assert_eq!(fs::read(&path).expect("it is still there"), data, "reading changes nothing");
}

/// A stat cache that says anything at all: a capture with it may be slower, and is the same.
pub(crate) fn stat_cache(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let root = dir.path().join("work");
    fs::create_dir_all(root.join("d")).expect("a workspace");
    for (name, content) in [("a", "one"), ("d/b", "two"), ("d/.rwdignore", "no")] {
        fs::write(root.join(name), content).expect("a file");
    }
    let capture = |cache: Option<&[u8]>| -> Snapshot {
        let path = dir.path().join("stat.cache");
        if let Some(cache) = cache {
            fs::write(&path, cache).expect("a cache");
        }
        let epoch = Arc::new(EpochFile::new(dir.path().join("epoch")));
        let options = Options { config: UserConfig::none(), threads: 1, ..Options::new(epoch) };
        let snapshots = GitSnapshots::open(&root, &dir.path().join("git"), &path, options).expect("a store");
        let none = BTreeSet::new();
        let captured = snapshots.capture(&CaptureRequest {
            base: None,
            held: &none,
            not_held: &none,
            include: &none,
            temporaries: &[],
            policy: &CapturePolicy { free_space_floor: 0, ..CapturePolicy::default() },
            write: true,
            watched: false,
            deadline: None,
            progress: &NoProgress,
        });
        captured.expect("a capture").snapshot
    };
    let truth = capture(None);
    assert_eq!(capture(Some(data)), truth, "a cache decides nothing");
}

/// A store with one snapshot, made once; its files are lent to one input after the other.
struct Stock {
    dir: tempfile::TempDir,
    snapshot: Snapshot,
    /// What the snapshot holds.
    truth: Vec<(RelPath, PathState, Vec<u8>)>,
    pack: PathBuf,
}

thread_local! {
    static STOCK: Stock = Stock::new();
}

impl Stock {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a scratch directory");
        fs::create_dir_all(dir.path().join("work/d")).expect("a workspace");
        for (name, content) in [("a", "one".to_owned()), ("d/b", "two\n".repeat(400)), ("d/c", String::new())] {
            fs::write(dir.path().join("work").join(name), content).expect("a file");
        }
        let snapshots = store_of(dir.path());
        let none = BTreeSet::new();
        let captured = snapshots.capture(&CaptureRequest {
            base: None,
            held: &none,
            not_held: &none,
            include: &none,
            temporaries: &[],
            policy: &CapturePolicy { free_space_floor: 0, ..CapturePolicy::default() },
            write: true,
            watched: false,
            deadline: None,
            progress: &NoProgress,
        });
        let snapshot = captured.expect("a capture").snapshot;
        let truth = held(&snapshots, &snapshot).expect("a sound store");
        let packs = fs::read_dir(dir.path().join("git/objects/pack")).expect("packs");
        let pack = packs
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.extension().is_some_and(|end| end == "pack"));
        Self { snapshot, truth, pack: pack.expect("a pack"), dir }
    }

    /// With `data` as the file of that ending, whatever still reads is as it was.
    fn with(&self, ending: &str, data: &[u8]) {
        let file = self.pack.with_extension(ending);
        let good = fs::read(&file).expect("the file");
        replace(&file, data);
        let snapshots = store_of(self.dir.path());
        let sound = snapshots.verify(&self.snapshot, VerifyLevel::Rehash).is_ok();
        match held(&snapshots, &self.snapshot) {
            Ok(found) => assert_eq!(found, self.truth, "what reads is what was stored"),
            Err(_) => assert!(!sound, "what was called sound cannot be read"),
        }
        drop(snapshots.usage());
        drop(snapshots);
        // The index of a pack is made again from the pack where it is damaged; a pack never changes.
        let now = fs::read(&file).expect("it is still there");
        assert!(now == data || (ending == "idx" && now == good), "reading changes nothing");
        replace(&file, &good);
    }
}

/// A new file in its place: files of a store are never written to.
fn replace(file: &Path, data: &[u8]) {
    let new = file.with_extension("new");
    fs::write(&new, data).expect("a scratch file");
    fs::rename(new, file).expect("it goes there");
}

fn store_of(dir: &Path) -> GitSnapshots {
    let epoch = Arc::new(EpochFile::new(dir.join("epoch")));
    let options = Options { config: UserConfig::none(), threads: 1, ..Options::new(epoch) };
    GitSnapshots::open(&dir.join("work"), &dir.join("git"), &dir.join("stat.cache"), options).expect("a store")
}

fn held(snapshots: &GitSnapshots, snapshot: &Snapshot) -> Result<Vec<(RelPath, PathState, Vec<u8>)>, SnapshotError> {
    let mut paths = Vec::new();
    snapshots.list(snapshot, None, &mut |path, state| {
        paths.push((path, state));
        ControlFlow::Continue(())
    })?;
    let mut all = Vec::new();
    for (path, state) in paths {
        let mut bytes = Vec::new();
        if let Some(blob) = state.blob() {
            let read = snapshots.open_blob(&blob)?.read_to_end(&mut bytes);
            read.map_err(|source| SnapshotError::Other { what: "reading", source: source.into() })?;
        }
        all.push((path, state, bytes));
    }
    Ok(all)
}

/// A pack of the store.
pub(crate) fn pack(data: &[u8]) {
    STOCK.with(|stock| stock.with("pack", data));
}

/// The index of a pack.
pub(crate) fn pack_index(data: &[u8]) {
    STOCK.with(|stock| stock.with("idx", data));
}
