//! Advisory locks.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use durable_fs::{FileLock, LockFailure, LockMode};

const NOW: Duration = Duration::ZERO;

#[test]
fn exclusive_keeps_everybody_out_and_shared_the_exclusive() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("lock");
    let held = FileLock::acquire(&path, LockMode::Exclusive, NOW).unwrap();
    for mode in [LockMode::Shared, LockMode::Exclusive] {
        assert!(matches!(FileLock::acquire(&path, mode, Duration::from_millis(5)), Err(LockFailure::Busy)));
    }
    drop(held);
    let first = FileLock::acquire(&path, LockMode::Shared, NOW).unwrap();
    let second = FileLock::acquire(&path, LockMode::Shared, NOW).unwrap();
    assert!(matches!(FileLock::acquire(&path, LockMode::Exclusive, NOW), Err(LockFailure::Busy)));
    drop((first, second));
    FileLock::acquire(&path, LockMode::Exclusive, NOW).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn waits_until_the_holder_is_done() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("lock");
    let held = FileLock::acquire(&path, LockMode::Exclusive, NOW).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| FileLock::acquire(&path, LockMode::Exclusive, Duration::from_mins(1)));
        drop(held);
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn a_lock_file_that_was_replaced_is_opened_anew() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("lock");
    let old = FileLock::acquire(&path, LockMode::Exclusive, NOW).unwrap();
    fs::remove_file(&path).unwrap();
    // The old holder keeps a lock on a file nobody can find; the new one excludes those that come by the name.
    let _new = FileLock::acquire(&path, LockMode::Exclusive, NOW).unwrap();
    drop(old);
    assert!(matches!(FileLock::acquire(&path, LockMode::Shared, NOW), Err(LockFailure::Busy)));
}

#[test]
fn errors_name_the_lock_file() {
    let scratch = tempfile::tempdir().unwrap();
    let failed = FileLock::acquire(&scratch.path().join("none/lock"), LockMode::Shared, NOW).unwrap_err();
    assert!(failed.to_string().contains("none/lock"), "{failed}");
}
