//! Every kind of thing becomes every other, exactly, and nothing else changes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    process::Command,
    sync::Arc,
};

use checkpoint_core::{BlobStore, FsError, Mode, PathState, WorkspaceFs};
use workspace_fs::{NoCrash, Support};

use crate::scratch::{NAMES, Scratch, Thing, mode, rel, set_mode};

pub(crate) const THINGS: [Thing; 8] = [
    Thing::Nothing,
    Thing::File("one", 0o644),
    Thing::File("two, longer", 0o600),
    Thing::File("one", 0o755),
    Thing::Linked("linked", 0o664),
    Thing::Link("target"),
    Thing::Fifo(0o640),
    Thing::Dir(0o750),
];

/// Other modes of what `THINGS` holds, so that a change of the mode alone is among the pairs.
const MODES: [Thing; 3] = [Thing::Linked("linked", 0o600), Thing::Fifo(0o600), Thing::Dir(0o711)];

pub(crate) fn pairs() -> impl Iterator<Item = (Thing, Thing)> {
    let all = || THINGS.into_iter().chain(MODES);
    all().flat_map(move |before| all().map(move |after| (before, after))).filter(|(before, after)| before != after)
}

#[test]
fn every_kind_becomes_every_other() {
    for support in [Support::Auto, Support::Never] {
        for (before, after) in pairs() {
            let scratch = Scratch::quick();
            scratch.put("p", before);
            scratch.put("bystander", Thing::File("untouched", 0o640));
            let workspace = scratch.open_with(support, Arc::new(NoCrash));
            let change = scratch.change("p", before, after);
            for again in [false, true] {
                workspace.check(&change).unwrap();
                workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
                assert_eq!(scratch.observe("p"), change.after, "{support:?} {before:?} {after:?} {again}");
            }
            workspace.sync(&[rel("p")]).unwrap();
            workspace.apply(&change.inverse(), &NAMES, 0, &scratch.blobs).unwrap();
            assert_eq!(scratch.observe("p"), change.before, "{support:?} {before:?} {after:?}");
            let mut expected = vec!["bystander"];
            expected.extend((before != Thing::Nothing).then_some("p"));
            if matches!(before, Thing::Linked(..)) {
                expected.insert(1, "other-name");
                // K-35: a hard link is replaced, never written through.
                assert_eq!(fs::read_to_string(scratch.at("other-name")).unwrap(), "linked");
                assert_eq!(
                    mode(&scratch.at("other-name")),
                    if let Thing::Linked(_, m) = before { m.into() } else { 0 }
                );
            }
            assert_eq!(scratch.tree().keys().collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn what_was_not_planned_for_is_left_alone() {
    for support in [Support::Auto, Support::Never] {
        for (before, after) in pairs() {
            for found in THINGS {
                let scratch = Scratch::quick();
                let change = scratch.change("p", before, after);
                let there = scratch.state(found);
                if there == change.before || there == change.after {
                    continue;
                }
                scratch.put("p", found);
                let (tree, stat) =
                    (scratch.tree(), fs::symlink_metadata(scratch.at("p")).ok().map(|m| (m.ino(), m.mode())));
                let workspace = scratch.open_with(support, Arc::new(NoCrash));
                match workspace.apply(&change, &NAMES, 0, &scratch.blobs) {
                    Err(FsError::Changed { found, stored: None, .. }) => assert_eq!(found, there),
                    other => panic!("{before:?} {after:?} {found:?}: {other:?}"),
                }
                assert_eq!(scratch.tree(), tree);
                assert_eq!(fs::symlink_metadata(scratch.at("p")).ok().map(|m| (m.ino(), m.mode())), stat);
            }
        }
    }
}

#[test]
fn a_directory_with_content_is_never_removed_or_replaced() {
    for support in [Support::Auto, Support::Never] {
        for after in THINGS.into_iter().filter(|thing| !matches!(thing, Thing::Dir(_))) {
            let scratch = Scratch::quick();
            scratch.put("p", Thing::Dir(0o755));
            scratch.put("p/child", Thing::File("precious", 0o644));
            let change = scratch.change("p", Thing::Dir(0o755), after);
            let workspace = scratch.open_with(support, Arc::new(NoCrash));
            let refused = workspace.apply(&change, &NAMES, 0, &scratch.blobs);
            assert!(matches!(refused, Err(FsError::NotEmpty { .. })), "{after:?}: {refused:?}");
            assert_eq!(scratch.tree().len(), 2);
        }
    }
}

/// Two directories deep, nothing exists: what the plan makes first is the parent.
#[test]
fn a_missing_parent_is_no_obstacle_for_check_but_for_apply() {
    let scratch = Scratch::new();
    let workspace = scratch.open();
    let change = scratch.change("a/b/c", Thing::Nothing, Thing::File("x", 0o644));
    workspace.check(&change).unwrap();
    assert!(matches!(workspace.apply(&change, &NAMES, 0, &scratch.blobs), Err(FsError::Io { .. })));
    let gone = scratch.change("a/b/c", Thing::File("x", 0o644), Thing::Nothing);
    workspace.apply(&gone, &NAMES, 0, &scratch.blobs).unwrap();
    let lost = scratch.change("a/b/c", Thing::File("x", 0o644), Thing::File("y", 0o644));
    let refused = workspace.apply(&lost, &NAMES, 0, &scratch.blobs);
    assert!(matches!(refused, Err(FsError::Changed { found: PathState::Absent, .. })), "{refused:?}");
    assert!(scratch.tree().is_empty());
    // All of it removed again: the nearest directory that is left is synced.
    workspace.sync(&[rel("a/b/c"), rel("a/b"), rel("a")]).unwrap();
}

#[test]
fn facts_and_states_follow_no_link() {
    let scratch = Scratch::new();
    scratch.put("dir", Thing::Dir(0o755));
    scratch.put("dir/file", Thing::File("content", 0o644));
    symlink("dir", scratch.at("link")).unwrap();
    let workspace = scratch.open();
    assert_eq!(workspace.facts(&rel("link/file")).unwrap(), None);
    assert_eq!(workspace.facts(&rel("dir/file/below")).unwrap(), None);
    assert_eq!(workspace.facts(&rel("dir/file")).unwrap().unwrap().size, 7);
    assert_eq!(scratch.observe("link/file"), PathState::Absent);
    assert!(matches!(scratch.observe("link"), PathState::Link { .. }));
    assert_eq!(scratch.observe("none/at/all"), PathState::Absent);
    let _socket = std::os::unix::net::UnixListener::bind(scratch.at("socket")).unwrap();
    assert_eq!(scratch.observe("socket"), PathState::Opaque);
}

/// K-22: a path is bytes, whatever they are, and of any length.
#[test]
fn names_of_any_bytes_and_paths_of_any_length() {
    let scratch = Scratch::new();
    let workspace = scratch.open();
    for name in [b"\xff\xfe \n\t\"".to_vec(), vec![b'x'; 255], "n\u{e4}me".into(), b"-rf".to_vec(), b"*".to_vec()] {
        let mut change = scratch.change("p", Thing::Nothing, Thing::File("x", 0o644));
        change.path = rel(name);
        workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
        change = checkpoint_core::Change { before: change.after, after: scratch.state(Thing::Link("y")), ..change };
        workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
        assert_eq!(workspace.observe(&change.path, &scratch.blobs).unwrap(), change.after);
    }
    for target in [1_400, 5_000] {
        let mut path = Vec::new();
        while path.len() < target {
            path.extend_from_slice(if path.is_empty() { b"" } else { b"/" });
            path.extend_from_slice(&[b'd'; 180]);
            let change = checkpoint_core::Change {
                path: rel(&path),
                before: PathState::Absent,
                after: PathState::Dir { mode: Mode(0o755) },
            };
            workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
        }
        path.extend_from_slice(b"/file");
        let mut change = scratch.change("p", Thing::Nothing, Thing::File("deep", 0o604));
        change.path = rel(&path);
        workspace.check(&change).unwrap();
        workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
        workspace.settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
        workspace.sync(std::slice::from_ref(&change.path)).unwrap();
        assert_eq!(workspace.observe(&change.path, &scratch.blobs).unwrap(), change.after);
        workspace.apply(&change.inverse(), &NAMES, 0, &scratch.blobs).unwrap();
    }
}

#[test]
fn large_content_is_streamed() {
    let scratch = Scratch::new();
    let bytes: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    let blob = scratch.blobs.put_blob(bytes.len() as u64, &mut bytes.as_slice()).unwrap();
    let mut change = scratch.change("p", Thing::Nothing, Thing::Nothing);
    change.after = PathState::File { blob, mode: Mode(0o444) };
    scratch.open().apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(fs::read(scratch.at("p")).unwrap(), bytes);
    assert_eq!(mode(&scratch.at("p")), 0o444);
}

#[test]
fn damaged_or_missing_content_takes_the_place_of_nothing() {
    let scratch = Scratch::new();
    scratch.put("p", Thing::File("sound", 0o644));
    for after in [Thing::File("wanted", 0o644), Thing::Link("wanted")] {
        let change = scratch.change("p", Thing::File("sound", 0o644), after);
        let id = change.after.blob().unwrap();
        scratch.blobs.damage(&id, b"wantec");
        let refused = scratch.open().apply(&change, &NAMES, 0, &scratch.blobs);
        assert!(matches!(refused, Err(FsError::Blob { .. })), "{refused:?}");
        scratch.blobs.remove(&id);
        let refused = scratch.open().apply(&change, &NAMES, 0, &scratch.blobs);
        assert!(matches!(refused, Err(FsError::Blob { .. })), "{refused:?}");
        assert_eq!(scratch.tree().into_iter().collect::<Vec<_>>(), [("p".into(), "sound".into())]);
    }
}

/// Modes are exact under any umask. It belongs to the whole process, so another one is started.
#[test]
fn the_umask_does_not_matter() {
    for umask in ["0", "027", "0777"] {
        let scratch = Scratch::new();
        let status = Command::new("sh")
            .args(["-c", &format!("umask {umask}; exec \"$0\" --exact kinds::under_a_umask --ignored --quiet")])
            .arg(std::env::current_exe().unwrap())
            .env("UNDER_UMASK", scratch.root())
            .output()
            .unwrap();
        assert!(status.status.success(), "{umask}: {}", String::from_utf8_lossy(&status.stdout));
        assert_eq!(scratch.tree().len(), 7, "the inner test has run");
    }
}

#[test]
#[ignore = "started by the_umask_does_not_matter"]
fn under_a_umask() {
    let Some(root) = std::env::var_os("UNDER_UMASK") else {
        return;
    };
    let root = Path::new(&root);
    let blobs = testkit::MemoryBlobs::default();
    let workspace = workspace_fs::RealWorkspace::open(root).unwrap();
    let blob = blobs.put(b"x");
    let states = |mode| {
        [
            PathState::File { blob, mode: Mode(mode) },
            PathState::Dir { mode: Mode(mode) },
            PathState::Fifo { mode: Mode(mode) },
        ]
    };
    for (n, after) in states(0o666).into_iter().chain(states(0o4751)).chain([PathState::Link { blob }]).enumerate() {
        let path = rel(format!("p{n}"));
        let change = checkpoint_core::Change { path: path.clone(), before: PathState::Absent, after };
        workspace.apply(&change, &NAMES, n, &blobs).unwrap();
        assert_eq!(workspace.observe(&path, &blobs).unwrap(), after);
    }
}

#[test]
fn bits_inherited_from_a_set_gid_directory_do_not_stay() {
    let scratch = Scratch::new();
    scratch.put("g", Thing::Dir(0o755));
    set_mode(&scratch.at("g"), 0o2775);
    for (n, after) in [Thing::Dir(0o700), Thing::File("x", 0o640), Thing::Fifo(0o600)].into_iter().enumerate() {
        let path = format!("g/{n}");
        let change = scratch.change(&path, Thing::Nothing, after);
        scratch.open().apply(&change, &NAMES, n, &scratch.blobs).unwrap();
        assert_eq!(scratch.observe(&path), change.after);
    }
}
