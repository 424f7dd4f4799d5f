//! Durable replacement and creation.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use durable_fs::{Access, Durability, create_private_dirs, replace};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replaces_in_one_step_and_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    for durability in [Durability::Synced, Durability::Derived] {
        for body in ["one", "", "three"] {
            replace(&path, body.as_bytes(), Access::Private, durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), body);
            assert_eq!(mode(&path), 0o600);
        }
    }
    assert_eq!(names(scratch.path()), ["f"]);
}

#[test]
fn keeps_the_mode_of_what_it_replaces_when_asked() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    replace(&path, b"new", Access::Keep, Durability::Synced).unwrap();
    assert_eq!(mode(&path), 0o664);
    replace(&path, b"new", Access::Private, Durability::Synced).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_link_is_replaced_and_not_written_through() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, target) = (scratch.path().join("link"), scratch.path().join("target"));
    fs::write(&target, "untouched").unwrap();
    symlink("target", &path).unwrap();
    replace(&path, b"new", Access::Private, Durability::Synced).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn a_failure_leaves_no_temporary_and_names_the_path() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    fs::create_dir(&path).unwrap();
    let failed = replace(&path, b"new", Access::Private, Durability::Synced).unwrap_err();
    assert!(failed.to_string().contains('f'), "{failed}");
    assert_eq!(names(scratch.path()), ["f"]);
}

#[test]
fn private_directories_are_private_from_the_start() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().join("top");
    fs::create_dir(&top).unwrap();
    fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
    create_private_dirs(&top.join("a/b/c")).unwrap();
    create_private_dirs(&top.join("a/b/c")).unwrap();
    for dir in ["a", "a/b", "a/b/c"] {
        assert_eq!(mode(&top.join(dir)), 0o700);
    }
    assert_eq!(mode(&top), 0o755);
    fs::write(top.join("file"), "").unwrap();
    assert!(create_private_dirs(&top.join("file/x")).is_err());
}
