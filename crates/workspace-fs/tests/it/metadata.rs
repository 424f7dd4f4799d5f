//! Owner, group, ACL and extended attributes of what is replaced.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, chown},
};

use checkpoint_core::WorkspaceFs;
use durable_fs::{Attribute, read_attributes, write_attribute};

use crate::scratch::{NAMES, Scratch, Thing, mode};

const BEFORE: Thing = Thing::File("before", 0o640);
const AFTER: Thing = Thing::File("after", 0o664);

/// An ACL in the kernel's form: version 2, then (tag, permissions, id) each.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend_from_slice(&tag.to_le_bytes());
        bytes.extend_from_slice(&permissions.to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    bytes
}

const NO_ID: u32 = u32::MAX;

/// Owner, user 1234, group, mask, others.
fn named_user() -> Vec<u8> {
    acl(&[(1, 6, NO_ID), (2, 4, 1234), (4, 4, NO_ID), (16, 4, NO_ID), (32, 0, NO_ID)])
}

#[test]
fn attributes_and_acl_are_kept_when_a_file_is_replaced() {
    let scratch = Scratch::new();
    scratch.put("p", BEFORE);
    let wanted = [
        Attribute { name: b"system.posix_acl_access".to_vec(), value: named_user() },
        Attribute { name: b"user.note".to_vec(), value: b"kept".to_vec() },
    ];
    let file = File::open(scratch.at("p")).unwrap();
    if wanted.iter().any(|attribute| write_attribute(&file, attribute).is_err()) {
        // This file system has no such thing.
        return;
    }
    let change = scratch.change("p", BEFORE, AFTER);
    scratch.open().check(&change).unwrap();
    scratch.open().apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    let found = read_attributes(File::open(scratch.at("p")).unwrap()).unwrap();
    assert!(found.contains(&wanted[1]));
    let acl_now = found.iter().find(|attribute| attribute.name == wanted[0].name).unwrap();
    // The mask is the group's part of the mode, which is the new one's.
    assert_eq!(acl_now.value, acl(&[(1, 6, NO_ID), (2, 4, 1234), (4, 4, NO_ID), (16, 6, NO_ID), (32, 4, NO_ID)]));
    assert_eq!(mode(&scratch.at("p")), 0o664);
    scratch.open().apply(&change.inverse(), &NAMES, 0, &scratch.blobs).unwrap();
    let found = read_attributes(File::open(scratch.at("p")).unwrap()).unwrap();
    assert!(wanted.iter().all(|attribute| found.contains(attribute)), "{found:?}");
}

/// A directory's default ACL is for new files. One that had none when it was replaced gets none.
#[test]
fn a_default_acl_does_not_get_into_a_replaced_file() {
    let scratch = Scratch::new();
    scratch.put("p", BEFORE);
    let default = Attribute { name: b"system.posix_acl_default".to_vec(), value: named_user() };
    if write_attribute(File::open(scratch.root()).unwrap(), &default).is_err() {
        return;
    }
    let change = scratch.change("p", BEFORE, AFTER);
    scratch.open().apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    let found = read_attributes(File::open(scratch.at("p")).unwrap()).unwrap();
    assert!(found.iter().all(|attribute| !attribute.name.starts_with(b"system.")), "{found:?}");
    assert_eq!(scratch.observe("p"), change.after);
    // A file made anew gets it as any new file would, under exactly the recorded mode.
    let new = scratch.change("new", Thing::Nothing, AFTER);
    scratch.open().apply(&new, &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(scratch.observe("new"), new.after);
}

#[test]
fn owner_and_group_are_kept_whatever_replaces_what() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (before, after) in [
        (BEFORE, AFTER),
        (BEFORE, Thing::File("after", 0o4755)),
        (BEFORE, Thing::Link("t")),
        (Thing::Link("t"), BEFORE),
        (BEFORE, Thing::Dir(0o2750)),
        (Thing::Dir(0o755), Thing::Fifo(0o600)),
    ] {
        let scratch = Scratch::new();
        scratch.put("p", before);
        std::os::unix::fs::lchown(scratch.at("p"), Some(1234), Some(4321)).unwrap();
        let change = scratch.change("p", before, after);
        scratch.open().apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
        let found = fs::symlink_metadata(scratch.at("p")).unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 4321), "{before:?} {after:?}");
        assert_eq!(scratch.observe("p"), change.after);
    }
}

#[test]
fn a_mode_alone_is_changed_in_place_when_the_file_has_one_name() {
    let scratch = Scratch::new();
    scratch.put("p", Thing::File("x", 0o644));
    scratch.put("q", Thing::Linked("y", 0o644));
    let inode = |path: &str| fs::metadata(scratch.at(path)).unwrap().ino();
    let (p, q) = (inode("p"), inode("q"));
    for (path, text) in [("p", "x"), ("q", "y")] {
        let change = scratch.change(path, Thing::File(text, 0o644), Thing::File(text, 0o700));
        scratch.open().apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
        assert_eq!(mode(&scratch.at(path)), 0o700);
    }
    assert_eq!(inode("p"), p);
    assert_ne!(inode("q"), q);
    assert_eq!(mode(&scratch.at("other-name")), 0o644);
}

/// A file whose group is not one's own loses set-gid without a word; that is noticed.
#[test]
fn set_id_bits_survive_a_change_of_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = Scratch::new();
    scratch.put("p", BEFORE);
    chown(scratch.at("p"), Some(1234), Some(4321)).unwrap();
    let change = scratch.change("p", BEFORE, Thing::File("after", 0o6755));
    scratch.open().apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(mode(&scratch.at("p")), 0o6755);
}
