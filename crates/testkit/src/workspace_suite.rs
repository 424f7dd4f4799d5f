//! What every [`WorkspaceFs`] must do, told through the trait alone.

use checkpoint_core::{
    BlobStore, Change, FileKind, FsError, Mode, OpId, PathState, RelPath, Settled, Temporaries, WorkspaceFs,
};

use crate::MemoryBlobs;

/// Runs the whole suite. `make` gives an empty workspace each time it is called.
///
/// # Panics
///
/// Where the implementation does not keep the contract.
pub fn run(make: &dyn Fn() -> Box<dyn WorkspaceFs>) {
    every_state_follows_every_other(make().as_ref());
    what_was_not_planned_for_stays(make().as_ref());
    a_directory_with_content_stays(make().as_ref());
    parents_are_made_by_earlier_changes(make().as_ref());
    undescribed_states_are_refused(make().as_ref());
}

const NAMES: Temporaries = Temporaries(OpId::from_bytes([0x5a; 16]));

fn path(text: &str) -> RelPath {
    RelPath::new(text).expect("a valid path")
}

fn states(blobs: &MemoryBlobs) -> Vec<PathState> {
    let (one, two) = (blobs.put(b"one"), blobs.put(b"two, longer"));
    vec![
        PathState::Absent,
        PathState::File { blob: one, mode: Mode(0o644) },
        PathState::File { blob: two, mode: Mode(0o600) },
        PathState::File { blob: one, mode: Mode(0o755) },
        PathState::Link { blob: one },
        PathState::Link { blob: two },
        PathState::Fifo { mode: Mode(0o640) },
        PathState::Dir { mode: Mode(0o755) },
        PathState::Dir { mode: Mode(0o700) },
    ]
}

fn holds(fs: &dyn WorkspaceFs, path: &RelPath, blobs: &dyn BlobStore) -> PathState {
    fs.observe(path, blobs).expect("a readable path")
}

fn apply(fs: &dyn WorkspaceFs, change: &Change, blobs: &dyn BlobStore) {
    fs.check(change).unwrap_or_else(|e| panic!("check of {change:?}: {e:?}"));
    fs.apply(change, &NAMES, 0, blobs).unwrap_or_else(|e| panic!("{change:?}: {e:?}"));
    assert_eq!(holds(fs, &change.path, blobs), change.after);
    let kind = fs.facts(&change.path).expect("facts").map(|facts| facts.kind);
    let expected = match change.after {
        PathState::Absent | PathState::Opaque => None,
        PathState::File { .. } => Some(FileKind::File),
        PathState::Link { .. } => Some(FileKind::Link),
        PathState::Fifo { .. } => Some(FileKind::Fifo),
        PathState::Dir { .. } => Some(FileKind::Dir),
    };
    assert_eq!(kind, expected);
}

fn every_state_follows_every_other(fs: &dyn WorkspaceFs) {
    let blobs = MemoryBlobs::default();
    for before in states(&blobs) {
        for after in states(&blobs) {
            let start = Change { path: path("p"), before: holds(fs, &path("p"), &blobs), after: before };
            apply(fs, &start, &blobs);
            let change = Change { path: path("p"), before, after };
            apply(fs, &change, &blobs);
            // Once more is no harm: recovery does it.
            apply(fs, &change, &blobs);
            assert_eq!(fs.settle(&change, &NAMES, 0, &blobs).expect("nothing to settle"), Settled::default());
            assert_eq!(holds(fs, &path("p"), &blobs), after);
            fs.sync(&[path("p")]).expect("a directory that can be synced");
        }
    }
}

fn what_was_not_planned_for_stays(fs: &dyn WorkspaceFs) {
    let blobs = MemoryBlobs::default();
    for there in states(&blobs) {
        let start = Change { path: path("p"), before: holds(fs, &path("p"), &blobs), after: there };
        apply(fs, &start, &blobs);
        for before in states(&blobs).into_iter().filter(|before| *before != there) {
            for after in states(&blobs).into_iter().filter(|after| *after != there && *after != before) {
                let change = Change { path: path("p"), before, after };
                match fs.apply(&change, &NAMES, 0, &blobs) {
                    Err(FsError::Changed { found, stored: None, .. }) => assert_eq!(found, there),
                    other => panic!("{change:?} where {there:?} is: {other:?}"),
                }
                assert_eq!(holds(fs, &path("p"), &blobs), there);
            }
        }
    }
}

fn a_directory_with_content_stays(fs: &dyn WorkspaceFs) {
    let blobs = MemoryBlobs::default();
    let dir = PathState::Dir { mode: Mode(0o755) };
    let child = PathState::Link { blob: blobs.put(b"text") };
    apply(fs, &Change { path: path("d"), before: PathState::Absent, after: dir }, &blobs);
    apply(fs, &Change { path: path("d/child"), before: PathState::Absent, after: child }, &blobs);
    for after in states(&blobs).into_iter().filter(|after| !after.is_dir()) {
        let change = Change { path: path("d"), before: dir, after };
        let refused = fs.apply(&change, &NAMES, 0, &blobs);
        assert!(matches!(refused, Err(FsError::NotEmpty { .. })), "{change:?}: {refused:?}");
        assert_eq!(holds(fs, &path("d"), &blobs), dir);
        assert_eq!(holds(fs, &path("d/child"), &blobs), child);
    }
}

fn parents_are_made_by_earlier_changes(fs: &dyn WorkspaceFs) {
    let blobs = MemoryBlobs::default();
    let file = PathState::File { blob: blobs.put(b"x"), mode: Mode(0o644) };
    let change = Change { path: path("a/b"), before: PathState::Absent, after: file };
    fs.check(&change).expect("a missing parent is no reason to refuse");
    assert!(fs.apply(&change, &NAMES, 0, &blobs).is_err());
    let link = PathState::Link { blob: blobs.put(b"elsewhere") };
    apply(fs, &Change { path: path("a"), before: PathState::Absent, after: link }, &blobs);
    for refused in [fs.check(&change), fs.apply(&change, &NAMES, 0, &blobs)] {
        assert!(matches!(refused, Err(FsError::ThroughLink { .. })), "{refused:?}");
    }
    assert_eq!(fs.facts(&path("a/b")).expect("facts"), None);
    apply(fs, &Change { path: path("a"), before: link, after: PathState::Dir { mode: Mode(0o755) } }, &blobs);
    apply(fs, &change, &blobs);
    assert!(fs.facts(&path("a/b/c")).expect("facts").is_none(), "a file has nothing below it");
}

fn undescribed_states_are_refused(fs: &dyn WorkspaceFs) {
    let blobs = MemoryBlobs::default();
    let change = Change { path: path("p"), before: PathState::Opaque, after: PathState::Absent };
    for change in [change.inverse(), change] {
        assert!(fs.check(&change).is_err() && fs.apply(&change, &NAMES, 0, &blobs).is_err());
    }
}
