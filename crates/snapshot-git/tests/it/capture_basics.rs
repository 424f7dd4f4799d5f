//! What is captured: trees, modes, links, FIFOs, odd names, and what is left out for what it is.

use std::os::unix::{ffi::OsStringExt, fs::symlink};

use checkpoint_core::{PathState, SnapshotBackend};

use crate::world::{World, path, permissions_count, skipped};

#[test]
fn trees_equal_git_write_tree() {
    let world = World::new();
    world.put("a", "plain");
    world.put("bin", "#!/bin/sh\n");
    world.chmod("bin", 0o755);
    world.put("empty", "");
    world.put("crlf.txt", "a\r\nb\r\n");
    world.put("deep/er/file", [0u8, 255, 10, 13]);
    // Git sorts a directory as if its name ended in a slash.
    world.put("sort/x", "1");
    world.put("sort.d", "2");
    world.put("sort-d", "3");
    world.put("sort0", "4");
    world.put(".gitattributes", "* text=auto eol=crlf\n");
    symlink("a", world.abs("link")).unwrap();
    symlink("/nowhere/at/all", world.abs("dangling")).unwrap();
    symlink(".", world.abs("deep/loop")).unwrap();
    world.put("ü/ñ", "named");
    let odd = std::ffi::OsString::from_vec(b"odd\xff\xfename".to_vec());
    std::fs::write(world.root.join(odd), "bytes").unwrap();
    std::fs::create_dir(world.abs("hollow")).unwrap();
    let captured = world.capture();
    std::fs::remove_file(world.abs(".gitattributes")).unwrap();
    let without_attributes = world.capture();
    let Some(tree) = world.git_tree() else { return };
    assert_eq!(without_attributes.snapshot.tree.to_string(), tree);
    assert_ne!(captured.snapshot.tree.to_string(), tree);
    assert_eq!(captured.files, 15);
    crate::world::run_git(&world.store(), &["--git-dir", ".", "fsck", "--full", "--strict"], &[]);
}

#[test]
fn raw_bytes_whatever_the_attributes_say() {
    let world = World::new();
    world.put(".gitattributes", "* text eol=crlf ident filter=x working-tree-encoding=UTF-16\n");
    world.put("f", "a\r\nb\n$Id$\n");
    let captured = world.capture();
    let PathState::File { blob, .. } = world.backend.state(&captured.snapshot, &path("f")).unwrap() else { panic!() };
    let mut content = Vec::new();
    std::io::Read::read_to_end(
        &mut checkpoint_core::BlobStore::open_blob(&world.backend, &blob).unwrap(),
        &mut content,
    )
    .unwrap();
    assert_eq!(content, b"a\r\nb\n$Id$\n");
}

#[test]
fn modes_empty_directories_and_fifos_are_kept() {
    let world = World::new();
    world.put("secret", "x");
    world.chmod("secret", 0o600);
    world.put("run", "x");
    world.chmod("run", 0o4711);
    world.put("d/plain", "x");
    world.chmod("d/plain", 0o644);
    world.chmod("d", 0o1777);
    std::fs::create_dir_all(world.abs("e/f")).unwrap();
    world.chmod("e/f", 0o700);
    world.chmod("e", 0o755);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.abs("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o640),
        0,
    )
    .unwrap();
    world.chmod("pipe", 0o640);
    let captured = world.capture();
    let all: Vec<_> = world.list(&captured.snapshot).into_iter().map(|(p, s)| format!("{p}: {s}")).collect();
    assert_eq!(
        all,
        [
            "d: dir 1777",
            "d/plain: file 644",
            "e: dir 755",
            "e/f: dir 700",
            "pipe: fifo 640",
            "run: file 4711",
            "secret: file 600",
        ]
    );
    assert_eq!(captured.files, 4);
    assert!(captured.skipped.is_empty());
}

#[test]
fn a_change_of_mode_alone_is_a_change() {
    let mut world = World::new();
    world.put("d/f", "x");
    world.chmod("d/f", 0o644);
    let before = world.capture_next();
    world.chmod("d/f", 0o600);
    let after = world.capture_next();
    assert_eq!(before.snapshot.tree, after.snapshot.tree);
    assert_ne!(before.snapshot.meta, after.snapshot.meta);
    world.chmod("d", 0o700);
    let third = world.capture_next();
    assert_ne!(after.snapshot.meta, third.snapshot.meta);
    assert_eq!(world.list(&third.snapshot)["d"], "dir 700");
}

#[test]
fn sockets_are_listed_and_links_to_fifos_are_links() {
    let world = World::new();
    let _socket = std::os::unix::net::UnixListener::bind(world.abs("sock")).unwrap();
    symlink("/dev/zero", world.abs("zero")).unwrap();
    let captured = world.capture();
    assert_eq!(skipped(&captured), ["sock special"]);
    assert_eq!(world.files(&captured.snapshot), ["zero"]);
    assert_eq!(world.backend.skipped(&captured.snapshot).unwrap(), captured.skipped);
}

#[test]
fn one_bad_file_never_fails_a_capture() {
    if !permissions_count() {
        return;
    }
    let world = World::new();
    world.put("good", "x");
    world.put("bad", "x");
    world.chmod("bad", 0);
    world.put("closed/in", "x");
    world.chmod("closed", 0);
    world.put("blind/in", "x");
    world.chmod("blind", 0o600);
    let captured = world.capture();
    assert_eq!(skipped(&captured), ["bad unreadable", "blind/in unreadable", "closed unreadable"]);
    assert_eq!(world.files(&captured.snapshot), ["good"]);
    for dir in ["closed", "blind"] {
        world.chmod(dir, 0o755);
    }
    let again = world.capture();
    assert_eq!(skipped(&again), ["bad unreadable"]);
}

#[test]
fn names_that_spell_git_are_listed_not_captured() {
    let world = World::new();
    for name in [".GIT", "git~1", ".git.", "sub/.Git"] {
        world.put(&format!("{name}/x"), "x");
    }
    world.put("v1..v2.diff", "x"); // K-31
    world.put(".github/x", "x");
    let captured = world.capture();
    assert_eq!(skipped(&captured), [".GIT name", ".git. name", "git~1 name", "sub/.Git name"]);
    assert_eq!(world.files(&captured.snapshot), [".github/x", "v1..v2.diff"]);
}

#[test]
fn deep_paths_beyond_path_max_and_beyond_the_descriptor_limit() {
    let world = World::new();
    let depth = 1200;
    let mut dir = rustix::fs::open(&world.root, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    for n in 0..depth {
        rustix::fs::mkdirat(&dir, "dddddddd", rustix::fs::Mode::from(0o755)).unwrap();
        if n % 100 == 0 {
            let file = rustix::fs::openat(
                &dir,
                "file",
                rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY,
                rustix::fs::Mode::from(0o644),
            );
            rustix::io::write(file.unwrap(), n.to_string().as_bytes()).unwrap();
        }
        dir = rustix::fs::openat(&dir, "dddddddd", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    }
    let first = world.capture();
    assert_eq!((first.files, first.skipped.len()), (12, 0));
    World::settle();
    let second = world.capture();
    assert_eq!(second.snapshot, first.snapshot);
    let third = world.capture();
    assert_eq!((third.snapshot, third.new_bytes, third.live.len()), (first.snapshot, 0, 0));
    // Deeper than the recursion of the standard library's removal goes by path.
    drop(dir);
    std::process::Command::new("rm").arg("-rf").arg(&world.root).status().unwrap();
}

#[test]
fn a_wide_directory_is_shared_between_workers() {
    let world = World::new();
    for n in 0..3000 {
        world.put(&format!("wide/{n}"), n.to_string());
    }
    world.put("wide/.gitignore", "7*\n");
    let captured = world.capture();
    let ignored = (0..3000u64).filter(|n| n.to_string().starts_with('7')).count();
    assert_eq!(captured.files, 3001 - ignored as u64);
    assert_eq!(captured.skipped.len(), ignored);
    World::settle();
    assert_eq!(world.capture().snapshot, captured.snapshot);
    std::fs::remove_file(world.abs("wide/.gitignore")).unwrap();
    let all = world.capture();
    assert_eq!((all.files, all.skipped.len()), (3000, 0));
    if let Some(tree) = world.git_tree() {
        assert_eq!(all.snapshot.tree.to_string(), tree);
    }
}

#[test]
fn a_dry_capture_changes_nothing_on_disk_and_stays_readable() {
    let mut world = World::new();
    world.put("a/b", "one");
    world.capture_next();
    let look = |world: &World| {
        let mut all: Vec<_> = walk(&world.store()).into_iter().chain([world.cache()]).collect();
        all.sort();
        all.into_iter().map(|p| (p.clone(), std::fs::read(p).ok())).collect::<Vec<_>>()
    };
    let before = look(&world);
    world.put("a/c", "two");
    world.ask.write = false;
    let dry = world.capture();
    assert_eq!(world.files(&dry.snapshot), ["a/b", "a/c"]);
    assert_eq!(dry.new_bytes, 0);
    assert!(look(&world) == before, "a dry capture wrote");
    world.ask.write = true;
    let wet = world.capture();
    assert_eq!(wet.snapshot, dry.snapshot);
    world.backend.verify(&wet.snapshot, checkpoint_core::VerifyLevel::Rehash).unwrap();
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { out.extend(walk(&path)) } else { out.push(path) }
    }
    out
}

#[test]
fn an_empty_workspace_is_the_empty_tree() {
    let world = World::new();
    let captured = world.capture();
    assert_eq!(captured.snapshot.tree.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    world.backend.verify(&captured.snapshot, checkpoint_core::VerifyLevel::Rehash).unwrap();
    std::fs::create_dir(world.abs("d")).unwrap();
    assert_eq!(world.list(&world.capture().snapshot).into_keys().collect::<Vec<_>>(), ["d"]);
}

#[test]
fn big_files_are_streamed() {
    let mut world = World::new();
    world.ask.policy.untracked_max_bytes = u64::MAX;
    let mut body = vec![7u8; 9 << 20];
    for (n, chunk) in body.chunks_mut(8).enumerate() {
        chunk[0] = u8::try_from(n % 251).unwrap();
    }
    world.put("big", &body);
    world.put("d/same", &body);
    let captured = world.capture_next();
    world.backend.verify(&captured.snapshot, checkpoint_core::VerifyLevel::Rehash).unwrap();
    if let Some(tree) = world.git_tree() {
        assert_eq!(captured.snapshot.tree.to_string(), tree);
    }
    body[5] ^= 1;
    world.put("big", &body);
    let next = world.capture_next();
    assert_ne!(next.snapshot.tree, captured.snapshot.tree);
    world.backend.verify(&next.snapshot, checkpoint_core::VerifyLevel::Rehash).unwrap();
}
