//! What must hold for any bytes in rwd's own files and arguments, one function for each target. The fuzz targets call them
//! with what libfuzzer makes up, a test of `testkit` with every file of the corpora and many small changes of each.

use std::{collections::BTreeSet, fs, sync::Arc};

use checkpoint_core::{
    Address, CapturePolicy, CaptureRequest, IndexStore, NoProgress, Ord, PointQuery, RelPath, Snapshot, SnapshotBackend,
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
            deadline: None,
            progress: &NoProgress,
        });
        captured.expect("a capture").snapshot
    };
    let truth = capture(None);
    assert_eq!(capture(Some(data)), truth, "a cache decides nothing");
}
