//! Ignore rules: every source, their order, and that a snapshot can tell them afterwards.

use checkpoint_core::SnapshotBackend;
use snapshot_git::UserConfig;

use crate::world::{World, path, skipped};

fn settle_and_check(world: &mut World, files: &[&str], left_out: &[&str]) {
    // Fresh, by record, and by a new handle: always the same.
    for round in 0..3 {
        let captured = world.capture();
        assert_eq!(world.files(&captured.snapshot), files, "round {round}");
        assert_eq!(skipped(&captured), left_out, "round {round}");
        assert_eq!(world.backend.skipped(&captured.snapshot).unwrap(), captured.skipped);
        World::settle();
        world.reopen();
    }
}

#[test]
fn outside_git_the_defaults_and_gitignore_files_count() {
    let mut world = World::new();
    for file in ["node_modules/x", "a/node_modules/y", "dist/x", "build/x", ".dsh/x", "src/x", "src/x.o", "src/keep.o"]
    {
        world.put(file, file);
    }
    world.put(".gitignore", "*.o\n");
    world.put("src/.gitignore", "!keep.o\n");
    settle_and_check(
        &mut world,
        &[".gitignore", "src/.gitignore", "src/keep.o", "src/x"],
        &[
            ".dsh ignored-root",
            "a/node_modules ignored-root",
            "build ignored-root",
            "dist ignored-root",
            "node_modules ignored-root",
            "src/x.o ignored-root",
        ],
    );
    world.ask.policy.excludes = Some(vec!["src/**".into(), "*.x".into()]);
    world.put("build/f.x", "x");
    let captured = world.capture();
    assert_eq!(
        world.files(&captured.snapshot),
        [".dsh/x", ".gitignore", "a/node_modules/y", "build/x", "dist/x", "node_modules/x"]
    );
    assert_eq!(skipped(&captured), ["build/f.x ignored-root", "src ignored-root"]); // 002-27: `src/**` covers `src`
}

#[test]
fn rwdignore_is_stronger_and_include_is_strongest() {
    let mut world = World::new();
    world.put(".gitignore", "*.log\nout/\n");
    world.put(".rwdignore", "!important.log\nprivate/\n");
    world.put("sub/.rwdignore", "local\n");
    for file in [
        "a.log",
        "important.log",
        "private/x",
        "sub/local",
        "sub/other",
        "out/deep/keep.txt",
        "out/deep/drop.txt",
        "dist/x",
    ] {
        world.put(file, file);
    }
    world.ask.policy.include = vec!["out/deep/keep.txt".into(), "private".into()];
    settle_and_check(
        &mut world,
        &[".gitignore", ".rwdignore", "important.log", "out/deep/keep.txt", "private/x", "sub/.rwdignore", "sub/other"],
        &["a.log ignored-root", "dist ignored-root", "out/deep/drop.txt ignored-root", "sub/local ignored-root"],
    );
}

#[test]
fn changing_any_rule_is_noticed_at_once() {
    let mut world = World::new();
    world.put("a/b/x.tmp", "x");
    world.put("a/b/y", "y");
    World::settle();
    world.capture();
    World::settle();
    assert_eq!(world.files(&world.capture().snapshot), ["a/b/x.tmp", "a/b/y"]);
    world.put(".gitignore", "*.tmp\n");
    World::settle();
    assert_eq!(world.files(&world.capture().snapshot), [".gitignore", "a/b/y"]);
    World::settle();
    world.capture();
    world.put(".gitignore", "*.tnp\n"); // same size
    assert_eq!(world.files(&world.capture().snapshot), [".gitignore", "a/b/x.tmp", "a/b/y"]);
    World::settle();
    world.capture();
    world.ask.policy.excludes = Some(vec!["b".into()]);
    assert_eq!(world.files(&world.capture().snapshot), [".gitignore"]);
    world.ask.policy.excludes = None;
    world.put("a/.rwdignore", "y\n");
    assert_eq!(world.files(&world.capture().snapshot), [".gitignore", "a/.rwdignore", "a/b/x.tmp"]);
    std::fs::remove_file(world.abs("a/.rwdignore")).unwrap();
    assert_eq!(world.files(&world.capture().snapshot), [".gitignore", "a/b/x.tmp", "a/b/y"]);
}

#[test]
fn the_excludes_file_counts_outside_git_too_and_trouble_is_a_warning() {
    let mut world = World::new();
    let excludes = world.dir.path().join("excludes");
    std::fs::write(&excludes, "*.bak\n").unwrap();
    world.options.config = UserConfig { default_excludes: Some(excludes.clone()), ..UserConfig::none() };
    world.reopen();
    world.put("a.bak", "x");
    world.put("b", "x");
    settle_and_check(&mut world, &["b"], &["a.bak ignored-root"]);
    std::fs::remove_file(&excludes).unwrap();
    assert!(world.capture().warnings.is_empty());
    std::fs::create_dir(&excludes).unwrap();
    let captured = world.capture();
    assert_eq!((captured.warnings.len(), world.files(&captured.snapshot).len()), (1, 2));
}

#[test]
fn a_link_is_no_rule_file() {
    let world = World::new();
    world.put("rules", "f\n");
    std::os::unix::fs::symlink("rules", world.abs(".gitignore")).unwrap();
    world.put("f", "x");
    assert_eq!(world.files(&world.capture().snapshot), [".gitignore", "f", "rules"]);
}

#[test]
fn the_snapshot_alone_tells_what_was_ignored() {
    let mut world = World::new();
    world.options.config =
        UserConfig { default_excludes: Some(world.dir.path().join("excludes")), ..UserConfig::none() };
    std::fs::write(world.dir.path().join("excludes"), "*.bak\n").unwrap();
    world.reopen();
    world.put(".gitignore", "*.o\n/only/\nlogs/*\n!logs/keep\n");
    world.put("sub/.rwdignore", "!yes.o\n");
    // A rule file that ignores itself is in no tree: the snapshot keeps it apart.
    world.put("cache/.gitignore", "*\n");
    world.put("cache/junk", "x");
    world.ask.policy.include = vec!["vip.o".into()];
    let asked = [
        "a.o",
        "sub/a.o",
        "sub/yes.o",
        "only",
        "only/x",
        "sub/only",
        "logs/a",
        "logs/keep",
        "x.bak",
        "vip.o",
        "cache/new",
        "cache/.gitignore",
        "fresh",
        "node_modules/x",
        "a/b/dist",
        ".dsh/memory/x",
        "cache",
    ];
    let wanted =
        [true, true, false, true, true, false, true, false, true, false, true, true, false, true, true, true, false];
    let paths: Vec<_> = asked.iter().map(|p| path(p)).collect();
    for _ in 0..3 {
        let captured = world.capture();
        // Whatever the workspace says since.
        std::fs::write(world.dir.path().join("excludes"), "").unwrap();
        world.put(".gitignore", "");
        let answer = world.backend.ignored_at(&captured.snapshot, &paths).unwrap();
        for ((path, got), want) in asked.iter().zip(answer).zip(wanted) {
            assert_eq!(got, want, "{path}");
        }
        std::fs::write(world.dir.path().join("excludes"), "*.bak\n").unwrap();
        world.put(".gitignore", "*.o\n/only/\nlogs/*\n!logs/keep\n");
        World::settle();
    }
}

#[test]
fn a_changed_rule_file_that_ignores_itself_changes_the_snapshot() {
    let mut world = World::new();
    world.put("cache/.gitignore", "*\n");
    world.put("cache/junk", "x");
    World::settle();
    let first = world.capture_next();
    World::settle();
    assert_eq!(world.capture_next().snapshot, first.snapshot);
    world.put("cache/.gitignore", "*\n# other words\n");
    let second = world.capture_next();
    assert_eq!(first.snapshot.tree, second.snapshot.tree);
    assert_ne!(first.snapshot.meta, second.snapshot.meta);
}

#[test]
fn a_store_that_lost_a_rule_file_does_not_end_captures() {
    let mut world = World::new();
    world.put(".gitignore", "*.o\n");
    world.put("d/a.o", "x");
    world.put("d/f", "x");
    World::settle();
    let first = world.capture();
    World::settle();
    world.capture();
    // The one blob: packs are replaced by one that holds everything else.
    let checkpoint_core::PathState::File { blob, .. } =
        world.backend.state(&first.snapshot, &path(".gitignore")).unwrap()
    else {
        panic!()
    };
    let pack = world.store().join("objects/pack");
    let file = std::fs::read_dir(&pack)
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .find(|p| p.extension().is_some_and(|e| e == "pack"));
    let file = file.unwrap();
    let Some(listing) = crate::world::run_git(&pack, &["verify-pack", "-v", file.to_str().unwrap()], &[]) else {
        return;
    };
    let line = listing.lines().find(|l| l.starts_with(&blob.to_string())).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[usize::try_from(numbers[2] + 5).unwrap()] ^= 0xff;
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, bytes).unwrap();
    world.reopen();
    world.put("d/new.o", "x");
    world.put("e/x.o", "x");
    let captured = world.capture();
    assert_eq!(world.files(&captured.snapshot), [".gitignore", "d/f"]);
    // But nothing is claimed of what the rules were.
    assert!(world.backend.ignored_at(&captured.snapshot, &[path("q.o")]).is_err());
}
