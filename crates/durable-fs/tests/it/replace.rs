//! Durable replacement and creation.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use durable_fs::{Access, Durability, create_private_dirs, replace, replace_if};

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

/// Nothing is looked at beforehand: the content that differs is found in what the change brought out, as one that an
/// editor wrote a moment ago would be.
#[test]
fn what_is_not_as_expected_stays_as_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    let now = || fs::read_to_string(&path).ok();
    assert!(!replace_if(&path, Some(b"1"), Some(b"2")).unwrap());
    assert!(!replace_if(&path, Some(b"1"), None).unwrap());
    assert_eq!((now(), names(scratch.path())), (None, vec![]));
    assert!(replace_if(&path, None, Some(b"1")).unwrap());
    assert!(!replace_if(&path, None, Some(b"2")).unwrap());
    assert!(!replace_if(&path, Some(b"x"), Some(b"2")).unwrap());
    assert!(!replace_if(&path, Some(b"x"), None).unwrap());
    assert!(!replace_if(&path, Some(b""), None).unwrap());
    assert_eq!((now().as_deref(), names(scratch.path())), (Some("1"), vec!["f".to_owned()]));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(replace_if(&path, Some(b"1"), Some(b"2")).unwrap());
    assert_eq!((now().as_deref(), mode(&path)), (Some("2"), 0o640));
    assert!(replace_if(&path, Some(b"2"), None).unwrap());
    assert_eq!(names(scratch.path()), [""; 0]);
    // What is no file is not what was expected.
    fs::create_dir(&path).unwrap();
    assert!(!replace_if(&path, Some(b""), Some(b"2")).unwrap());
    assert!(!replace_if(&path, Some(b""), None).unwrap());
    symlink("f2", scratch.path().join("l")).unwrap();
    assert!(!replace_if(&scratch.path().join("l"), Some(b""), Some(b"2")).unwrap());
    assert_eq!(names(scratch.path()), ["f", "l"]);
}
