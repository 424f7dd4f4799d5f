//! Workspaces that lie in a git repository: what it tracks, what it ignores, and that it is never touched.

use std::{fs, path::Path};

use checkpoint_core::Head;

use crate::world::{World, run_git, skipped};

/// Everything below a directory, with content and times.
fn everything(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        out.push((
            path.clone(),
            if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() },
            meta.modified().unwrap(),
        ));
        if meta.is_dir() {
            out.extend(everything(&path));
        }
    }
    out.sort();
    out
}

fn commit(world: &World) -> String {
    world.run_git(&["add", "-A"]).unwrap();
    world.run_git(&["commit", "-q", "-m", "c"]).unwrap();
    world.run_git(&["rev-parse", "HEAD"]).unwrap()
}

fn check(world: &mut World, files: &[&str], left_out: &[&str]) {
    for round in 0..3 {
        let captured = world.capture();
        assert_eq!(world.files(&captured.snapshot), files, "round {round}");
        assert_eq!(skipped(&captured), left_out, "round {round}");
        assert_eq!(captured.warnings, [""; 0]);
        assert!(captured.in_git);
        World::settle();
        world.reopen();
    }
}

#[test]
fn tracked_files_are_covered_although_ignored_or_large() {
    let Some(mut world) = World::git() else { return };
    world.put("out/tracked", "x");
    world.put("big", vec![b'x'; 200]);
    world.put("node_modules/m", "inside git nothing is left out by default");
    commit(&world);
    world.put(".gitignore", "out/\n*.log\n");
    world.put("out/new", "x");
    world.put("a.log", "x");
    world.put("b.log", "x");
    world.run_git(&["add", "-f", "b.log"]).unwrap();
    world.put("big2", vec![b'x'; 200]);
    world.ask.policy.untracked_max_bytes = 100;
    let before = everything(&world.abs(".git"));
    let files = [".gitignore", "b.log", "big", "node_modules/m", "out/tracked"];
    check(&mut world, &files, &["a.log ignored-root", "big2 too-large", "out/new ignored-root"]);
    assert!(everything(&world.abs(".git")) == before, "the repository was touched");
    // The index changes, nothing else does.
    world.run_git(&["rm", "-q", "--cached", "b.log", "big"]).unwrap();
    world.run_git(&["add", "-f", "a.log"]).unwrap();
    let files = [".gitignore", "a.log", "node_modules/m", "out/tracked"];
    check(&mut world, &files, &["b.log ignored-root", "big too-large", "big2 too-large", "out/new ignored-root"]);
}

#[test]
fn info_exclude_and_local_excludes_file_count() {
    let Some(mut world) = World::git() else { return };
    fs::write(world.abs(".git/info/exclude"), "*.one\n").unwrap();
    fs::write(world.dir.path().join("ex"), "*.two\n*.one\n").unwrap();
    world.run_git(&["config", "core.excludesFile", world.dir.path().join("ex").to_str().unwrap()]).unwrap();
    for file in ["a.one", "a.two", "b"] {
        world.put(file, "x");
    }
    check(&mut world, &["b"], &["a.one ignored-root", "a.two ignored-root"]);
    fs::write(world.abs(".git/info/exclude"), "!a.one\n").unwrap();
    check(&mut world, &["a.one", "b"], &["a.two ignored-root"]);
}

#[test]
fn a_subfolder_sees_the_rules_and_the_index_above_it() {
    let Some(top) = World::git() else { return };
    top.put(".gitignore", "*.o\n/pkg/app/only\nsub/x\n");
    top.put("pkg/.gitignore", "!keep.o\n/app/anchored\n");
    top.put("pkg/app/.gitignore", "z\n");
    for file in ["a.o", "keep.o", "only", "anchored", "sub/x", "sub/y", "z", "tracked.o"] {
        top.put(&format!("pkg/app/{file}"), file);
    }
    top.run_git(&["add", "-f", "pkg/app/tracked.o"]).unwrap();
    let root = top.abs("pkg/app");
    let mut world = World::at(top.dir, root);
    check(
        &mut world,
        &[".gitignore", "keep.o", "sub/x", "sub/y", "tracked.o"],
        &["a.o ignored-root", "anchored ignored-root", "only ignored-root", "z ignored-root"],
    );
    let captured = world.capture();
    let paths = ["new.o", "keep.o", "only", "d/only"].map(crate::world::path);
    let answer = checkpoint_core::SnapshotBackend::ignored_at(&world.backend, &captured.snapshot, &paths).unwrap();
    assert_eq!(answer, [true, false, true, false]);
}

#[test]
fn the_rules_agree_with_git_check_ignore() {
    let Some(world) = World::git() else { return };
    let rules = "# c\n*.a\n!x.a\n/top\ndir/\n\\#lit\n\\!bang\nsp\\ \ntrail  \na/**/z\n**/any\nfoo/*\n!foo/keep\n[ab].c\n?.q\ncr\r\nd*/e\n";
    world.put(".gitignore", rules);
    world.put("n/.gitignore", "/top\n!y.a\n*\n!deep/\n");
    let names = [
        "p.a", "x.a", "top", "s/top", "dir/f", "s/dir/f", "#lit", "!bang", "sp ", "trail", "a/z", "a/b/z", "a/b/c/z",
        "s/a/z", "any", "q/any", "foo/x", "foo/keep", "foo/d/x", "a.c", "c.c", "k.q", "kk.q", "cr", "d1/e", "x/d1/e",
        "n/top", "n/y.a", "n/deep/f", "n/other",
    ];
    for name in names {
        world.put(name, name);
    }
    let captured = world.capture();
    let ours = world.files(&captured.snapshot);
    let theirs = world.run_git(&["ls-files", "-z", "--others", "--exclude-standard"]).unwrap();
    let mut theirs: Vec<_> = theirs.split('\0').filter(|n| !n.is_empty()).map(str::to_owned).collect();
    theirs.sort_by_key(|p| crate::world::path(p));
    let mut sorted = ours.clone();
    sorted.sort_by_key(|p| crate::world::path(p));
    assert_eq!(sorted, theirs);
}

#[test]
fn odd_indexes_are_read() {
    // 54: split index, versions 2 to 4; 27: skip-worktree and assume-unchanged hide nothing.
    for setup in [
        &["update-index", "--index-version", "2"][..],
        &["update-index", "--index-version", "3"],
        &["update-index", "--index-version", "4"],
        &["update-index", "--split-index"],
        &["update-index", "--assume-unchanged", "t.log"],
        &["update-index", "--skip-worktree", "t.log"],
    ] {
        let Some(mut world) = World::git() else { return };
        world.put("t.log", "x");
        world.put("d/t.log", "x");
        commit(&world);
        world.run_git(setup).unwrap();
        world.put(".gitignore", "*.log\n");
        world.put("u.log", "x");
        world.put("t.log", "edited");
        check(&mut world, &[".gitignore", "d/t.log", "t.log"], &["u.log ignored-root"]);
    }
}

#[test]
fn sparse_index_sha256_and_linked_worktrees() {
    let Some(mut world) = World::git() else { return };
    for file in ["in/f", "out/deep/f", "top"] {
        world.put(file, file);
    }
    commit(&world);
    world.run_git(&["sparse-checkout", "init", "--cone", "--sparse-index"]).unwrap();
    world.run_git(&["sparse-checkout", "set", "in"]).unwrap();
    world.put("out/deep/f", "put there by hand, outside the cone");
    fs::write(world.abs(".git/info/exclude"), "out\n").unwrap();
    check(&mut world, &["in/f", "out/deep/f", "top"], &[]);

    // 33: a linked worktree has its own index and HEAD, and shares info/exclude.
    let linked = world.dir.path().canonicalize().unwrap().join("linked");
    world.run_git(&["sparse-checkout", "disable"]).unwrap();
    world.run_git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]).unwrap();
    fs::write(world.abs(".git/info/exclude"), "*.x\n").unwrap();
    fs::write(linked.join("a.x"), "x").unwrap();
    let mut side = World::at(tempfile::tempdir().unwrap(), linked);
    check(&mut side, &["in/f", "out/deep/f", "top"], &["a.x ignored-root"]);
    assert_eq!(side.capture().head.unwrap().branch.as_deref(), Some("refs/heads/side"));

    let mut world = World::new();
    world.run_git(&["init", "-q", "--object-format=sha256"]).unwrap();
    world.put("t.log", "x");
    world.run_git(&["add", "t.log"]).unwrap();
    world.put(".gitignore", "*.log\n");
    check(&mut world, &[".gitignore", "t.log"], &[]);
}

#[test]
fn a_damaged_index_is_a_warning_and_a_held_lock_nothing() {
    let Some(mut world) = World::git() else { return };
    world.put("t.log", "x");
    world.run_git(&["add", "t.log"]).unwrap();
    world.put(".gitignore", "*.log\n");
    fs::write(world.abs(".git/index.lock"), "").unwrap(); // 29
    check(&mut world, &[".gitignore", "t.log"], &[]);
    let whole = fs::read(world.abs(".git/index")).unwrap();
    for damage in [&whole[..whole.len() / 2], b"", b"garbage", &[0; 100]] {
        fs::write(world.abs(".git/index"), damage).unwrap();
        let captured = world.capture();
        assert_eq!(captured.warnings.len(), 1);
        assert_eq!(skipped(&captured), ["t.log ignored-root"]);
    }
    fs::write(world.abs(".git/index"), &whole).unwrap();
    check(&mut world, &[".gitignore", "t.log"], &[]);
}

#[test]
fn head_is_told_and_unborn_is_fine() {
    let Some(world) = World::git() else { return };
    world.put("f", "one");
    assert_eq!(world.capture().head, Some(Head { branch: Some("refs/heads/main".into()), ..Head::default() })); // 31
    let first = commit(&world);
    let head = |world: &World| world.capture().head.unwrap();
    assert_eq!(head(&world).commit.as_deref(), Some(&first[..]));
    world.run_git(&["pack-refs", "--all"]).unwrap();
    assert_eq!(head(&world).commit.as_deref(), Some(&first[..]));
    world.run_git(&["checkout", "-q", "--detach"]).unwrap();
    assert_eq!(head(&world), Head { branch: None, commit: Some(first.clone()), in_progress: None });
    for (file, what) in [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ] {
        fs::write(world.abs(".git").join(file), &first).unwrap();
        assert_eq!(head(&world).in_progress.as_deref(), Some(what));
        fs::remove_file(world.abs(".git").join(file)).unwrap();
    }
}

#[test]
fn nested_repositories_keep_what_is_tracked_below_them() {
    // 35: in git the default is a boundary.
    let Some(mut world) = World::git() else { return };
    world.put("sub/tracked", "x");
    commit(&world);
    run_git(&world.root, &["init", "-q", "sub"], &[]).unwrap();
    run_git(&world.root, &["init", "-q", "other"], &[]).unwrap();
    world.put("sub/new", "x");
    world.put("other/new", "x");
    check(&mut world, &["sub/tracked"], &["other nested-repo", "sub/.git nested-repo", "sub/new nested-repo"]);
}

#[test]
fn hostile_repositories_run_nothing() {
    // 20: programs that git itself would run.
    let Some(mut world) = World::git() else { return };
    let marker = world.dir.path().join("ran");
    let script = world.dir.path().join("evil");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", marker.display())).unwrap();
    std::process::Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    world.put("f.bin", "x");
    world.put(".gitattributes", "* filter=evil\n");
    world.run_git(&["add", "-A"]).unwrap();
    for key in ["core.fsmonitor", "filter.evil.clean", "filter.evil.process", "filter.evil.smudge", "core.hooksPath"] {
        world.run_git(&["config", key, script.to_str().unwrap()]).unwrap();
    }
    world.put("f.bin", "changed");
    check(&mut world, &[".gitattributes", "f.bin"], &[]);
    assert!(!marker.exists());
}
