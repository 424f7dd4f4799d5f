//! Descents and what a handle can do.

use std::{fs, io::ErrorKind, os::unix::fs::symlink};

use durable_fs::{Descent, Dir, Kind, Mounts, Stat, read_attributes, remove_attribute, write_attribute};

#[test]
fn no_link_is_followed_at_any_component() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir_all(at("a/b")).unwrap();
    symlink("a", at("link")).unwrap();
    symlink("b", at("a/last")).unwrap();
    fs::write(at("file"), "x").unwrap();
    let root = Dir::open_root(scratch.path()).unwrap();
    for mounts in [Mounts::Same, Mounts::Any] {
        assert!(root.descend(b"a/b", mounts).unwrap().stat().unwrap().kind == Kind::Dir);
        assert!(root.descend(b"", mounts).is_ok());
        for bad in ["link", "link/b", "a/last", "file", "file/x"] {
            assert!(matches!(root.descend(bad.as_bytes(), mounts), Err(Descent::NoDirectory)), "{bad}");
        }
        assert!(matches!(root.descend(b"a/none/x", mounts), Err(Descent::Missing)));
        for bad in ["..", "a/..", "a/./b", "/a", "a//b", "a/"] {
            assert!(
                matches!(root.descend(bad.as_bytes(), mounts), Err(Descent::Io(e)) if e.kind() == ErrorKind::InvalidInput),
                "{bad}"
            );
        }
    }
}

#[test]
fn a_root_may_be_reached_through_a_link() {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("real")).unwrap();
    symlink("real", scratch.path().join("link")).unwrap();
    assert!(Dir::open_root(&scratch.path().join("link")).is_ok());
    let missing = Dir::open_root(&scratch.path().join("none")).unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
}

#[test]
fn paths_longer_than_the_kernel_takes_are_reached() {
    let scratch = tempfile::tempdir().unwrap();
    let root = Dir::open_root(scratch.path()).unwrap();
    let name = vec![b'n'; 200];
    let mut path = Vec::new();
    let mut at = root.descend(b"", Mounts::Same).unwrap();
    while path.len() < 5000 {
        at.create_dir(&name).unwrap();
        at = at.descend(&name, Mounts::Same).unwrap();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(&name);
    }
    at.create_link(b"here", b"text").unwrap();
    let found = root.descend(&path, Mounts::Same).unwrap();
    assert!(found.stat().unwrap().same_file(&at.stat().unwrap()));
    assert_eq!(found.read_link(b"here").unwrap(), b"text");
    assert!(found.stat_at(b"none").unwrap().is_none());
}

#[test]
fn renames_without_replacing_and_exchanges() {
    let scratch = tempfile::tempdir().unwrap();
    let root = Dir::open_root(scratch.path()).unwrap();
    drop(root.create_file(b"a").unwrap());
    root.create_dir(b"b").unwrap();
    assert_eq!(root.create_file(b"a").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(root.rename_no_replace(b"a", b"b").unwrap_err().kind(), ErrorKind::AlreadyExists);
    root.exchange(b"a", b"b").unwrap();
    assert_eq!(root.stat_at(b"a").unwrap().unwrap().kind, Kind::Dir);
    assert!(root.is_empty(b"a").unwrap());
    fs::write(scratch.path().join("a/x"), "").unwrap();
    assert!(!root.is_empty(b"a").unwrap());
    assert_eq!(root.remove_dir(b"a").unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    root.sync().unwrap();
}

#[test]
fn modes_are_exact_and_never_set_through_a_link() {
    let scratch = tempfile::tempdir().unwrap();
    let root = Dir::open_root(scratch.path()).unwrap();
    let file = root.create_file(b"file").unwrap();
    root.create_fifo(b"fifo").unwrap();
    root.create_link(b"link", b"file").unwrap();
    assert_eq!(Stat::of(&file).unwrap().mode & 0o077, 0);
    root.chmod(b"file", 0o666).unwrap();
    root.chmod(b"fifo", 0o604).unwrap();
    assert_eq!(Stat::of(&file).unwrap().mode, 0o666);
    assert_eq!(root.stat_at(b"fifo").unwrap().unwrap().mode, 0o604);
    assert!(root.chmod(b"link", 0o600).is_err());
    assert_eq!(Stat::of(&file).unwrap().mode, 0o666);
    assert!(root.open_file(b"link").is_err());
    // Must not wait for a writer.
    drop(root.open_file(b"fifo").unwrap());
}

#[test]
fn attributes_round_trip_where_the_file_system_has_them() {
    let scratch = tempfile::tempdir().unwrap();
    let root = Dir::open_root(scratch.path()).unwrap();
    let file = root.create_file(b"file").unwrap();
    let note = durable_fs::Attribute { name: b"user.note".to_vec(), value: vec![7; 3000] };
    if write_attribute(&file, &note).is_err() {
        return;
    }
    assert!(read_attributes(&file).unwrap().contains(&note));
    remove_attribute(&file, b"user.note").unwrap();
    remove_attribute(&file, b"user.note").unwrap();
    assert!(!read_attributes(&file).unwrap().contains(&note));
}
