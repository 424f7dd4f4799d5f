//! The data directory: paths, permissions, choice of index, lock, epoch.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::Duration,
};

use checkpoint_core::{LockError, LockMode, StoreLock, WorkspaceId};
use index_store::{DataDir, DataError, IndexKind, IndexOptions};

fn id() -> WorkspaceId {
    WorkspaceId::from_bytes([5; 16])
}

#[test]
fn where_it_is() {
    let locate = |explicit: Option<&str>, variables: &[(&str, &str)]| {
        let look = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        DataDir::locate(explicit.map(Path::new), &look).map(|data| data.path().to_str().unwrap().to_owned())
    };
    let all = [("RWD_DATA_DIR", "/r"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
    assert_eq!(locate(Some("/e"), &all).unwrap(), "/e");
    assert_eq!(locate(None, &all).unwrap(), "/r");
    assert_eq!(locate(None, &all[1..]).unwrap(), "/x/rwd");
    assert_eq!(locate(None, &all[2..]).unwrap(), "/h/.local/share/rwd");
    assert_eq!(
        locate(None, &[("RWD_DATA_DIR", ""), ("XDG_DATA_HOME", "rel"), ("HOME", "/h")]).unwrap(),
        "/h/.local/share/rwd"
    );
    assert_eq!(locate(None, &[]), None);
}

#[test]
fn everything_is_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let data = DataDir::new(directory.path().join("a/b"));
    let workspace = data.workspace(&id());
    workspace.create().unwrap();
    workspace.create().unwrap();
    drop(workspace.open_index(IndexOptions::default()).unwrap());
    drop(workspace.lock().acquire(LockMode::Shared, Duration::ZERO).unwrap());
    workspace.epoch().bump().unwrap();
    let mut pending = vec![directory.path().join("a")];
    let mut files = 0;
    while let Some(path) = pending.pop() {
        let facts = fs::symlink_metadata(&path).unwrap();
        if facts.is_dir() {
            assert_eq!(facts.mode() & 0o7777, 0o700, "{}", path.display());
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files += 1;
            assert_eq!(facts.mode() & 0o7777, 0o600, "{}", path.display());
        }
    }
    assert!(files >= 3);
    assert_eq!(workspace.path(), directory.path().join("a/b/workspaces/05050505050505050505050505050505"));
}

#[test]
fn one_form_of_index_a_workspace() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = DataDir::new(directory.path()).workspace(&id());
    workspace.create().unwrap();
    let asked = |kind| IndexOptions { kind, ..IndexOptions::default() };
    assert_eq!(workspace.index_kind().unwrap(), None);
    assert_eq!(workspace.open_index(asked(Some(IndexKind::Json))).unwrap().name(), "json");
    assert_eq!(workspace.open_index(asked(None)).unwrap().name(), "json");
    match workspace.open_index(asked(Some(IndexKind::Sqlite))) {
        Err(DataError::OtherIndex { existing: IndexKind::Json, asked: IndexKind::Sqlite }) => {}
        other => panic!("{other:?}"),
    }
    assert!(!workspace.index_file(IndexKind::Sqlite).exists());
    fs::write(workspace.index_file(IndexKind::Sqlite), b"").unwrap();
    assert!(matches!(workspace.open_index(asked(None)), Err(DataError::Damaged { .. })));
    fs::remove_file(workspace.index_file(IndexKind::Sqlite)).unwrap();
    fs::remove_file(workspace.index_file(IndexKind::Json)).unwrap();
    assert_eq!(workspace.open_index(asked(None)).unwrap().name(), "sqlite");
    assert_eq!(IndexKind::parse("json"), Some(IndexKind::Json));
    assert_eq!(IndexKind::parse("JSON"), None);
}

/// Eight processes that make the index at once, some wanting another form: one form, one index, nobody's batch lost.
#[test]
fn the_form_is_settled_once() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = DataDir::new(directory.path()).workspace(&id());
    workspace.create().unwrap();
    let opened = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|n| {
                let workspace = &workspace;
                scope.spawn(move || {
                    let kind = [None, Some(IndexKind::Json), Some(IndexKind::Sqlite)][n % 3];
                    match workspace.open_index(IndexOptions { kind, ..IndexOptions::default() }) {
                        Ok(index) => {
                            index.apply(&checkpoint_core::Batch::default()).unwrap();
                            1
                        }
                        Err(DataError::OtherIndex { .. }) => 0,
                        Err(error) => panic!("{error:?}"),
                    }
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>()
    });
    let index = workspace.open_index(IndexOptions::default()).unwrap();
    assert_eq!(index.revision().unwrap(), checkpoint_core::Revision(opened));
    assert!(opened >= 3);
}

#[test]
fn many_share_the_lock_or_one_has_it_alone() {
    let directory = tempfile::tempdir().unwrap();
    let lock = DataDir::new(directory.path()).workspace(&id());
    lock.create().unwrap();
    let lock = lock.lock();
    let busy = |mode| matches!(lock.acquire(mode, Duration::from_millis(5)), Err(LockError::Busy));
    let one = lock.acquire(LockMode::Shared, Duration::ZERO).unwrap();
    let two = lock.acquire(LockMode::Shared, Duration::ZERO).unwrap();
    assert!(busy(LockMode::Exclusive));
    drop(one);
    assert!(busy(LockMode::Exclusive));
    drop(two);
    let alone = lock.acquire(LockMode::Exclusive, Duration::ZERO).unwrap();
    assert!(busy(LockMode::Shared) && busy(LockMode::Exclusive));
    // Waiting ends when the lock is let go.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock.acquire(LockMode::Shared, Duration::from_mins(1)).map(drop));
        drop(alone);
        waiting.join().unwrap().unwrap();
    });
}

/// A lock file that was removed and made again does not let two in.
#[test]
fn a_lock_counts_only_on_the_file_that_has_the_name() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = DataDir::new(directory.path()).workspace(&id());
    workspace.create().unwrap();
    let lock = workspace.lock();
    let held = lock.acquire(LockMode::Exclusive, Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock.acquire(LockMode::Exclusive, Duration::from_mins(1)).unwrap());
        fs::remove_file(lock.path()).unwrap();
        drop(held);
        let got = waiting.join().unwrap();
        assert!(matches!(lock.acquire(LockMode::Exclusive, Duration::from_millis(5)), Err(LockError::Busy)));
        drop(got);
    });
    let missing = DataDir::new(directory.path().join("none")).workspace(&id()).lock();
    assert!(matches!(missing.acquire(LockMode::Shared, Duration::ZERO), Err(LockError::Failed { .. })));
}

#[test]
fn the_epoch_counts_removals() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = DataDir::new(directory.path()).workspace(&id());
    workspace.create().unwrap();
    let epoch = workspace.epoch();
    assert_eq!(epoch.read().unwrap(), 0);
    assert_eq!(epoch.bump().unwrap(), 1);
    assert_eq!(epoch.bump().unwrap(), 2);
    assert_eq!(workspace.epoch().read().unwrap(), 2);
    fs::write(epoch.path(), "many").unwrap();
    assert!(matches!(epoch.read(), Err(DataError::Damaged { .. })));
    assert!(epoch.bump().is_err());
    assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 1, "no temporary stays");
    let mode = fs::metadata(workspace.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
}
