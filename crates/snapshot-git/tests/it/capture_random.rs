//! Random histories: a capture with the cache always says what a capture without one says.

use std::{fs, sync::Arc};

use checkpoint_core::{Nested, SnapshotBackend, VerifyLevel};
use snapshot_git::{GitSnapshots, SystemWatchers};

use crate::world::{World, capture_with, path};

/// Reproducible choices.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }

    fn path(&mut self) -> String {
        let depth = self.roll(3);
        let mut out = String::new();
        for _ in 0..depth {
            out += self.pick(&["a", "b", "out", "nest"]);
            out.push('/');
        }
        out + self.pick(&["f", "g.o", "h", "big", "a", "out"])
    }
}

const RULES: &[&str] = &["", "*.o\n", "out/\n", "/a/out\n!g.o\n", "*\n", "f\n!a/\n", "nest\n*.o\n!g.o\n", "h\nbig\n"];

fn change(world: &mut World, dice: &mut Dice, git: bool) -> String {
    let (one, two) = (dice.path(), dice.path());
    let at = world.abs(&one);
    // What does not work, because something else is in the way, is no change.
    let try_put = |at: &std::path::Path, content: &[u8]| {
        drop(fs::create_dir_all(at.parent().unwrap()));
        drop(fs::write(at, content));
    };
    match dice.roll(if git { 16 } else { 13 }) {
        0..4 => try_put(&at, format!("{}", dice.roll(1000)).as_bytes()),
        4 => try_put(&at, &[b'x'; 60]),
        5 => drop(fs::remove_file(&at)),
        6 => drop(fs::remove_dir_all(&at)),
        7 => drop(fs::rename(&at, world.abs(&two))),
        8 => drop(std::os::unix::fs::symlink(&two, &at)),
        9 => drop(fs::create_dir_all(&at)),
        10 => {
            let dir = at.parent().unwrap().join(dice.pick(&[".gitignore", ".gitignore", ".rwdignore"]));
            try_put(&dir, dice.pick(RULES).as_bytes());
        }
        11 => match dice.roll(2) {
            0 => try_put(&at.parent().unwrap().join("sub/.git/HEAD"), b"x"),
            _ => drop(fs::remove_dir_all(at.parent().unwrap().join("sub/.git"))),
        },
        12 => match dice.roll(5) {
            0 => drop(world.ask.held.insert(path(&one))),
            1 => world.ask.held.clear(),
            2 => drop(world.ask.include.insert(path(&one))),
            3 => world.ask.include.clear(),
            _ => world.ask.not_held = [path(&one), path(&two)].into(),
        },
        13 if at.exists() => drop(world.run_git(&["add", "-f", "--ignore-errors", "--", &one])),
        14 => drop(world.run_git(&["rm", "-rq", "--cached", "--ignore-unmatch", "--", &one])),
        _ => drop(fs::write(world.abs(".git/info/exclude"), dice.pick(RULES))),
    }
    one
}

fn play(world: World, seed: u64, git: bool) {
    play_with(world, seed, git, false);
}

/// `watched`: in a process that stays, where a watcher saves most captures the walk. Says how many.
fn play_with(mut world: World, seed: u64, git: bool, watched: bool) -> u64 {
    let mut dice = Dice(seed);
    let blind_options = world.options.clone();
    if watched {
        world.options.watchers = Some(Arc::new(SystemWatchers));
        world.reopen();
    }
    world.ask.policy.untracked_max_bytes = 50;
    world.ask.policy.nested = Some(Nested::Boundary);
    let blind_cache = world.dir.path().join("blind.cache");
    for step in 0..70 {
        let what = change(&mut world, &mut dice, git);
        if dice.roll(3) == 0 {
            World::settle();
        }
        if dice.roll(4) == 0 && !watched {
            world.reopen();
        }
        world.ask.watched = watched && dice.roll(8) > 0;
        let known = world.capture();
        drop(fs::remove_file(&blind_cache));
        let blind = GitSnapshots::open(&world.root, &world.store(), &blind_cache, blind_options.clone()).unwrap();
        let mut ask = world.ask.clone();
        (ask.write, ask.watched) = (false, false);
        let truth = capture_with(&blind, &ask);
        let context = format!("seed {seed}, step {step}, {what}");
        assert_eq!(known.skipped, truth.skipped, "{context}");
        assert_eq!(known.snapshot, truth.snapshot, "{context}");
        assert_eq!(known.files, truth.files, "{context}");
        assert_eq!(world.backend.skipped(&known.snapshot).unwrap(), known.skipped, "{context}");
        world.backend.verify(&known.snapshot, VerifyLevel::Rehash).unwrap();
        if dice.roll(if watched { 20 } else { 3 }) > 0 {
            world.ask.base = Some(known.snapshot);
        }
    }
    world.backend.hinted()
}

#[test]
fn outside_git() {
    for seed in 1..9 {
        play(World::new(), seed, false);
    }
}

#[test]
fn inside_git() {
    for seed in 101..107 {
        let Some(world) = World::git() else { return };
        play(world, seed, true);
    }
}

/// What a watcher tells and what a walk finds is the same, as long as the watcher tells everything.
#[test]
fn watched_outside_git() {
    let hinted: u64 = (201..209).map(|seed| play_with(World::new(), seed, false, true)).sum();
    assert!(hinted > 80 || !cfg!(target_os = "linux"), "{hinted}");
}

#[test]
fn watched_inside_git() {
    let mut hinted = 0;
    for seed in 301..307 {
        let Some(world) = World::git() else { return };
        hinted += play_with(world, seed, true, true);
    }
    assert!(hinted > 20 || !cfg!(target_os = "linux"), "{hinted}");
}
