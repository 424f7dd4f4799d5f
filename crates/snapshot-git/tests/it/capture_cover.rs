//! What stays covered although a rule leaves it out, and what never is.

use checkpoint_core::{Nested, RelPath};

use crate::world::{World, path, skipped};

fn round(world: &World) -> (Vec<String>, Vec<String>) {
    let captured = world.capture();
    (world.files(&captured.snapshot), skipped(&captured))
}

#[test]
fn what_the_base_holds_stays_covered() {
    // 05: an ignore rule that appears later must not take cover away.
    let mut world = World::new();
    for file in ["a.log", "deep/er/b.log", "logs/x/y", "plain"] {
        world.put(file, file);
    }
    world.put("big", vec![b'x'; 100]);
    std::fs::create_dir_all(world.abs("logs/hollow")).unwrap();
    World::settle();
    world.capture_next();
    world.put(".gitignore", "*.log\nlogs/\n");
    world.put("new.log", "x");
    world.put("logs/new", "x");
    world.ask.policy.untracked_max_bytes = 50;
    world.put("big2", vec![b'x'; 100]);
    for n in 0..4 {
        let captured = world.capture_next();
        let files = world.files(&captured.snapshot);
        assert_eq!(files, [".gitignore", "a.log", "big", "deep/er/b.log", "logs/x/y", "plain"], "round {n}");
        assert_eq!(
            skipped(&captured),
            ["big2 too-large", "logs/new ignored-root", "new.log ignored-root"],
            "round {n}"
        );
        assert!(world.list(&captured.snapshot).contains_key("logs/hollow"));
        World::settle();
        world.reopen();
        if n == 2 {
            world.put("a.log", "edited since");
        }
    }
    // Nothing listed holds them any more: the cover goes.
    world.ask.not_held = ["a.log", "big", "logs", "logs/x", "logs/x/y", "logs/hollow"].map(path).into();
    let captured = world.capture_next();
    assert_eq!(world.files(&captured.snapshot), [".gitignore", "deep/er/b.log", "plain"]);
    assert_eq!(
        skipped(&captured),
        ["a.log ignored-root", "big too-large", "big2 too-large", "logs ignored-root", "new.log ignored-root"]
    );
}

#[test]
fn held_and_included_paths_are_captured_wherever_they_lie() {
    let mut world = World::new();
    world.put(".gitignore", "ign/\n*.env\n");
    for file in ["ign/a/keep", "ign/a/drop", "ign/b/drop", "x.env", "y.env"] {
        world.put(file, file);
    }
    let left = ["ign ignored-root", "x.env ignored-root", "y.env ignored-root"];
    for _ in 0..2 {
        assert_eq!(round(&world), (vec![".gitignore".to_owned()], left.map(str::to_owned).to_vec()));
        World::settle();
    }
    world.ask.held = [path("ign/a/keep"), path("gone/x")].into();
    world.ask.include = [path("x.env"), path("ign/missing")].into();
    for _ in 0..3 {
        let (files, left) = round(&world);
        assert_eq!(files, [".gitignore", "ign/a/keep", "x.env"]);
        assert_eq!(left, ["ign/a/drop ignored-root", "ign/b ignored-root", "y.env ignored-root"]);
        World::settle();
    }
    // Nobody asks any more, nothing on disk has changed: back to before.
    world.ask.held.clear();
    world.ask.include.clear();
    assert_eq!(round(&world), (vec![".gitignore".to_owned()], left.map(str::to_owned).to_vec()));
}

#[test]
fn td24_exactly_at_the_cap_is_left_out_and_named() {
    // Deviation 3: exactly the cap is skipped too.
    let mut world = World::new();
    world.ask.policy.untracked_max_bytes = 10;
    world.put("nine", "123456789");
    world.put("ten", "1234567890");
    assert_eq!(round(&world), (vec!["nine".to_owned()], vec!["ten too-large".to_owned()]));
    World::settle();
    round(&world);
    world.put("nine", "123456789+");
    world.put("ten", "1");
    assert_eq!(round(&world), (vec!["ten".to_owned()], vec!["nine too-large".to_owned()]));
    world.ask.policy.untracked_max_bytes = 11;
    assert_eq!(round(&world), (vec!["nine".to_owned(), "ten".to_owned()], vec![]));
}

#[test]
fn nested_repositories_are_a_boundary_or_contents() {
    let mut world = World::new();
    world.put("repo/.git/HEAD", "ref: refs/heads/main\n");
    world.put("repo/src/f", "x");
    world.put("module/.git", "gitdir: ../elsewhere\n");
    world.put("module/f", "x");
    world.put("merely/.git/x", "a directory of that name");
    world.put("merely/f", "x");
    world.put("plain/f", "x");
    world.ask.policy.nested = Some(Nested::Boundary);
    for _ in 0..3 {
        let (files, left) = round(&world);
        assert_eq!(files, ["merely/f", "plain/f"]);
        assert_eq!(left, ["merely/.git nested-repo", "module nested-repo", "repo nested-repo"]);
        World::settle();
    }
    // It was covered before its `.git` came: it stays.
    let base = world.capture_next();
    world.put("plain/.git/HEAD", "x");
    world.put("plain/new", "x");
    for _ in 0..3 {
        let captured = world.capture_next();
        assert_eq!(world.files(&captured.snapshot), ["merely/f", "plain/f"]);
        assert_eq!(captured.snapshot.tree, base.snapshot.tree);
        assert_eq!(skipped(&captured)[2..], ["plain/.git nested-repo", "plain/new nested-repo", "repo nested-repo"]);
        World::settle();
    }
    // And back: no repository any more.
    std::fs::remove_dir_all(world.abs("plain/.git")).unwrap();
    std::fs::remove_dir_all(world.abs("repo/.git")).unwrap();
    let (files, left) = round(&world);
    assert_eq!(files, ["merely/f", "plain/f", "plain/new", "repo/src/f"]);
    assert_eq!(left, ["merely/.git nested-repo", "module nested-repo"]);
    world.ask.policy.nested = None; // outside git: contents
    let (files, left) = round(&world);
    assert_eq!(files, ["merely/f", "module/f", "plain/f", "plain/new", "repo/src/f"]);
    assert_eq!(left, ["merely/.git nested-repo", "module/.git nested-repo"]);
}

#[test]
fn rwds_own_files_are_reserved() {
    // 57: the store inside the workspace.
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut world = World::at(dir, root.clone());
    world.options.data_dir = Some(root.join("data"));
    world.options.leave_out = vec![path("own")];
    world.reopen();
    world.put("data/index", "x");
    world.put("own/x", "x");
    world.put(".dsh/memory/notes", "x");
    world.put(".dsh/other", "x");
    world.put("f", "x");
    world.ask.policy.excludes = Some(vec!["stat.cache".into(), "epoch".into()]);
    world.ask.include = [path("data/index"), path(".dsh/memory/notes")].into();
    let (files, left) = round(&world);
    assert_eq!(files, [".dsh/other", "f"]);
    let reserved: Vec<_> = left.into_iter().filter(|l| !l.starts_with("stat.cache")).collect();
    assert_eq!(reserved, [".dsh/memory reserved", "data reserved", "git reserved", "own reserved"]);
}

#[test]
fn an_intents_temporaries_are_not_there() {
    let mut world = World::new();
    world.put("d/.rwd-0123-1.swap", "x");
    world.put("d/f", "x");
    world.ask.temporaries = vec![b".rwd-0123-".to_vec()];
    World::settle();
    for _ in 0..2 {
        assert_eq!(round(&world), (vec!["d/f".to_owned()], vec![]));
        World::settle();
    }
    // Without the intent it is a file like any other, although no stamp has changed.
    world.ask.temporaries.clear();
    for _ in 0..2 {
        assert_eq!(round(&world).0, ["d/.rwd-0123-1.swap", "d/f"]);
        World::settle();
    }
    world.ask.temporaries = vec![b".rwd-0123-".to_vec()];
    assert_eq!(round(&world).0, ["d/f"]);
}

#[test]
fn a_base_that_cannot_be_read_is_a_warning() {
    let mut world = World::new();
    world.put(".gitignore", "x\n");
    world.put("x", "x");
    let id = checkpoint_core::ObjectId::from_bytes([7; 20]);
    world.ask.base = Some(checkpoint_core::Snapshot { tree: id, meta: id });
    let captured = world.capture();
    assert_eq!((captured.warnings.len(), world.files(&captured.snapshot).len()), (1, 1));
    assert_eq!(captured.skipped[0].path, RelPath::new("x").unwrap());
}

#[test]
fn a_rule_that_appears_later_leaves_tracked_files_covered_without_any_base() {
    // The cache knows the file, the index is the same, and whether it is tracked was never asked before.
    let Some(mut world) = World::git() else { return };
    world.put(".gitignore", "*.tmp\n");
    world.put("x.tmp", "so that the directory's record depends on the index");
    world.put("d/x.tmp", "x");
    world.put("a.log", "x");
    world.put("d/b.log", "x");
    world.put("d/c.log", "x");
    world.run_git(&["add", "a.log", "d/b.log"]).unwrap();
    World::settle();
    world.capture();
    World::settle();
    world.capture();
    world.put(".gitignore", "*.tmp\n*.log\nd/\n");
    for _ in 0..3 {
        let (files, left) = round(&world);
        assert_eq!(files, [".gitignore", "a.log", "d/b.log"]);
        assert_eq!(left, ["d/c.log ignored-root", "d/x.tmp ignored-root", "x.tmp ignored-root"]);
        World::settle();
        world.reopen();
    }
    // A tracked file comes back where a repository has come into being.
    std::fs::remove_file(world.abs("d/b.log")).unwrap();
    world.put("d/.git/HEAD", "x");
    World::settle();
    round(&world);
    World::settle();
    round(&world);
    world.put("d/b.log", "again");
    assert_eq!(round(&world).0, [".gitignore", "a.log", "d/b.log"]);
}
