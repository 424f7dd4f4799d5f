//! Facts of files, file systems and processes.

use std::{fs, process::Command};

use durable_fs::{Dir, Process, boot_id, free_bytes, fs_facts, identity, mount_id};

#[test]
fn identity_tells_files_apart_and_recognises_them_after_a_rename() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("a")).unwrap();
    fs::create_dir(at("b")).unwrap();
    let (a, b) = (identity(&at("a")).unwrap(), identity(&at("b")).unwrap());
    assert_ne!(a, b);
    fs::rename(at("a"), at("c")).unwrap();
    assert_eq!(identity(&at("c")).unwrap(), a);
    let missing = identity(&at("a")).unwrap_err();
    assert!(missing.to_string().ends_with("/a"), "{missing}");
}

#[test]
fn facts_are_to_be_had() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(free_bytes(scratch.path()).unwrap() > 0);
    assert_eq!(mount_id(scratch.path()).unwrap(), mount_id(scratch.path()).unwrap());
    let facts = fs_facts(Dir::open_root(scratch.path()).unwrap()).unwrap();
    assert_eq!(facts.local, facts.stable_inode);
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_recognised_until_it_ends() {
    assert_eq!(boot_id().unwrap().len(), 36);
    let me = Process::current().unwrap();
    assert!(me.is_alive());
    assert!(!Process { start: me.start + 1, ..me.clone() }.is_alive());
    assert!(!Process { boot: "another".into(), ..me }.is_alive());
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let seen = Process::of(child.id()).unwrap();
    assert!(seen.is_alive());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!seen.is_alive());
}
