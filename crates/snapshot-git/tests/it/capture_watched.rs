//! Captures by hint: what a watcher did not tell is missed by a point before a tool and by no other, and in doubt of any
//! kind every capture walks.

use std::{
    collections::VecDeque,
    fs, io,
    io::Write,
    path::Path,
    sync::{Arc, Mutex},
};

use checkpoint_core::{Captured, NoProgress, SnapshotBackend, VerifyLevel};
use snapshot_git::{Event, SystemWatchers, Watcher, Watchers, Writing};

use crate::world::{World, path};

/// A watcher that tells what a test says it tells.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    dirs: Vec<Vec<u8>>,
    /// No more than so many directories.
    limit: Option<usize>,
}

impl Told {
    fn tell(&self, event: Event) {
        self.0.lock().unwrap().events.push_back(event);
    }
    fn changed(&self, dir: &str, name: &str) {
        self.tell(Event::Entry { dir: dir.into(), name: name.into(), writing: Writing::Unsaid });
    }
}

impl Watchers for Told {
    fn start(&self, _: &Path) -> io::Result<Box<dyn Watcher>> {
        self.0.lock().unwrap().dirs.clear();
        Ok(Box::new(self.clone()))
    }
}

impl Watcher for Told {
    fn add(&mut self, dir: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.limit.is_some_and(|limit| state.dirs.len() >= limit) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.dirs.push(dir.to_vec());
        Ok(())
    }
    fn has(&self, dir: &[u8]) -> bool {
        self.0.lock().unwrap().dirs.iter().any(|known| known == dir)
    }
    fn forget(&mut self, dir: &[u8]) {
        self.0.lock().unwrap().dirs.retain(|known| known != dir && !known.starts_with(&[dir, b"/"].concat()));
    }
    fn drain(&mut self, tell: &mut dyn FnMut(Event)) {
        while let Some(event) = { self.0.lock().unwrap().events.pop_front() } {
            tell(event);
        }
    }
}

/// A workspace under watch, walked twice: directories are watched, and what is known of them is from after that.
fn watched(world: World, watchers: Arc<dyn Watchers>) -> World {
    let mut world = world;
    for file in ["a/f", "a/b/g", "c/h", "c/x.o", "quiet/q", "top"] {
        world.put(file, file);
    }
    world.put(".gitignore", "*.o\n");
    World::settle();
    world.options.watchers = Some(watchers);
    world.reopen();
    let first = world.capture_next();
    assert_eq!(first.warnings.len(), usize::from(world.backend.unwatched().is_some()));
    World::settle();
    world.capture_next();
    world.ask.watched = true;
    world
}

fn told() -> (World, Told) {
    let told = Told::default();
    (watched(World::new(), Arc::new(told.clone())), told)
}

/// What a capture says that walks, without writing anything.
fn truth(world: &World) -> Captured {
    let mut ask = world.ask.clone();
    (ask.watched, ask.write) = (false, false);
    crate::world::capture_with(&world.backend, &ask)
}

fn same(a: &Captured, b: &Captured) -> bool {
    (a.snapshot, a.files, &a.skipped) == (b.snapshot, b.files, &b.skipped)
}

#[test]
fn only_what_was_told_is_looked_at_and_a_walk_brings_the_rest() {
    let (mut world, told) = told();
    let before = world.ask.base;
    world.put("a/f", "changed");
    world.put("c/h", "changed too");
    told.changed("a", "f");
    let captured = world.capture_next();
    assert!(captured.watched && world.backend.hinted() == 1);
    assert_eq!(captured.live, [None], "nothing is proven absent");
    assert_ne!(Some(captured.snapshot), before);
    assert!(!same(&captured, &truth(&world)), "what nobody told of was missed");
    world.ask.watched = false;
    let walked = world.capture_next();
    assert!(!walked.watched && same(&walked, &truth(&world)));
    // From there it goes on.
    world.ask.watched = true;
    world.put("a/b/new", "n");
    told.changed("a/b", "new");
    let captured = world.capture_next();
    assert!(captured.watched && same(&captured, &truth(&world)));
    world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
}

#[test]
fn nothing_told_is_nothing_changed() {
    let (mut world, _) = told();
    let before = world.ask.base;
    for _ in 0..3 {
        let captured = world.capture_next();
        assert!(captured.watched && captured.new_bytes == 0 && Some(captured.snapshot) == before);
        assert!(same(&captured, &truth(&world)));
    }
    assert_eq!(world.backend.hinted(), 3);
}

type Doubt<'d> = (&'d str, &'d dyn Fn(&mut World, &Told));

/// Each of these makes the next capture walk, so that even what nobody told of is found.
#[test]
fn every_doubt_makes_a_capture_walk() {
    let doubts: &[Doubt<'_>] = &[
        ("lost", &|_, told| told.tell(Event::Lost)),
        ("rules", &|_, told| told.changed("a", ".gitignore")),
        ("rules of rwd", &|_, told| told.changed("", ".rwd.toml")),
        ("a repository", &|_, told| told.tell(Event::Came(b"a/.git".to_vec()))),
        ("a disguised one", &|_, told| told.changed("a", ".GIT")),
        ("another base", &|world, _| world.ask.base = None),
        ("held", &|world, _| world.ask.held = [path("c/x.o")].into()),
        ("not held", &|world, _| world.ask.not_held = [path("a/f")].into()),
        ("included", &|world, _| world.ask.include = [path("c/x.o")].into()),
        ("temporaries", &|world, _| world.ask.temporaries.push(b".rwd-1-".to_vec())),
        ("hashing", &|world, _| world.ask.policy.verify_by_hash = true),
        ("a limit", &|world, _| world.ask.policy.untracked_max_bytes = 7),
        ("globs", &|world, _| world.ask.policy.excludes = Some(vec!["nothing".into()])),
        ("a collection", &|world, _| world.options.epoch.bump().unwrap()),
        ("another capture's point", &|world, _| {
            world.put("top", "by somebody else");
            let other = snapshot_git::GitSnapshots::open(
                &world.root,
                &world.store(),
                &world.dir.path().join("other.cache"),
                snapshot_git::Options { watchers: None, ..world.options.clone() },
            );
            world.ask.base = Some(crate::world::capture_with(&other.unwrap(), &world.ask).snapshot);
        }),
        ("a storm", &|_, told| {
            for n in 0..5000 {
                told.changed(&format!("d{n}"), "f");
            }
        }),
    ];
    for (what, doubt) in doubts {
        let (mut world, told) = told();
        world.put("a/f", "silently");
        doubt(&mut world, &told);
        let captured = world.capture();
        assert!(!captured.watched, "{what}");
        assert!(same(&captured, &truth(&world)), "{what}");
    }
}

/// A directory that came is looked through at every capture until a walk has it watched.
#[test]
fn new_and_moved_directories_are_looked_through_until_they_are_watched() {
    let (mut world, told) = told();
    world.put("n/deep/er/f", "1");
    told.tell(Event::Came(b"n".to_vec()));
    fs::rename(world.abs("a"), world.abs("moved")).unwrap();
    told.tell(Event::Went(b"a".to_vec()));
    told.tell(Event::Came(b"moved".to_vec()));
    for n in 0..3 {
        // Nobody is told of these.
        world.put("n/deep/er/f", format!("silently {n}"));
        world.put("moved/b/g", format!("silently {n}"));
        let captured = world.capture_next();
        assert!(captured.watched && same(&captured, &truth(&world)), "{n}");
    }
    world.ask.watched = false;
    world.capture_next();
    world.capture_next();
    world.ask.watched = true;
    world.put("n/deep/er/f", "missed");
    assert!(!same(&world.capture_next(), &truth(&world)));
}

/// What is left out below a directory that went is left out no more.
#[test]
fn what_was_left_out_goes_with_its_directory() {
    let (mut world, told) = told();
    fs::remove_dir_all(world.abs("c")).unwrap();
    told.tell(Event::Went(b"c".to_vec()));
    let captured = world.capture_next();
    assert!(captured.watched && captured.skipped.is_empty() && same(&captured, &truth(&world)));
}

#[test]
fn modes_of_directories_are_seen() {
    let (mut world, told) = told();
    world.chmod("a/b", 0o700);
    told.tell(Event::Touched(b"a/b".to_vec()));
    let captured = world.capture_next();
    assert!(captured.watched && same(&captured, &truth(&world)));
}

#[test]
fn a_system_that_gives_no_more_watches_means_walks() {
    let told = Told::default();
    told.0.lock().unwrap().limit = Some(2);
    let mut world = watched(World::new(), Arc::new(told));
    world.put("c/h", "silently");
    let captured = world.capture_next();
    assert!(!captured.watched && same(&captured, &truth(&world)));
    assert!(world.backend.unwatched().is_some());
    assert_eq!(captured.warnings, Vec::<String>::new(), "that was said before");
}

/// A capture that fails has used nothing up.
#[test]
fn a_failed_capture_uses_nothing_up() {
    let (mut world, told) = told();
    world.put("a/f", "changed");
    told.changed("a", "f");
    world.ask.deadline = Some(std::time::Duration::ZERO);
    assert!(world.try_capture().is_err());
    world.ask.deadline = None;
    let captured = world.capture_next();
    assert!(same(&captured, &truth(&world)));
}

#[test]
fn the_git_index_decides_too() {
    let Some(world) = World::git() else { return };
    let told = Told::default();
    let mut world = watched(world, Arc::new(told));
    world.run_git(&["add", "-f", "c/x.o"]);
    world.put("c/h", "silently");
    let captured = world.capture_next();
    assert!(!captured.watched && same(&captured, &truth(&world)));
}

/// The system's own: what it tells, what it cannot, and what a walk makes of that.
#[cfg(target_os = "linux")]
#[test]
fn the_systems_watcher_tells_of_what_happens() {
    let mut world = watched(World::new(), Arc::new(SystemWatchers));
    let held = {
        let mut file = fs::OpenOptions::new().append(true).open(world.abs("a/f")).unwrap();
        write!(file, "and more").unwrap();
        file
    };
    let steps: &[&dyn Fn(&World)] = &[
        &|_| {},
        &|_| {
            (&held).write_all(b"still open").unwrap();
        },
        &|world| fs::rename(world.abs("a"), world.abs("z")).unwrap(),
        &|world| world.put("z/b/g", "below a moved directory"),
        &|world| fs::remove_file(world.abs("c/h")).unwrap(),
        &|world| std::os::unix::fs::symlink("nowhere", world.abs("c/l")).unwrap(),
        &|world| world.chmod("top", 0o755),
        &|world| world.chmod("c", 0o700),
        &|world| world.put("c/x.o", "ignored as before"),
        &|world| fs::remove_dir_all(world.abs("z")).unwrap(),
        &|world| world.put("z", "a file now"),
    ];
    for (n, step) in steps.iter().enumerate() {
        step(&world);
        let captured = world.capture_next();
        assert!(captured.watched, "{n}");
        assert!(same(&captured, &truth(&world)), "{n}");
    }
    // By another name of the file no directory of the workspace is told.
    let outside = world.dir.path().join("outside");
    fs::hard_link(world.abs("quiet/q"), &outside).unwrap();
    world.capture_next();
    fs::write(&outside, "by its other name").unwrap();
    let missed = world.capture_next();
    assert!(missed.watched && !same(&missed, &truth(&world)));
    world.ask.watched = false;
    assert!(same(&world.capture_next(), &truth(&world)));
}

/// Tells some of what the system tells: not all, some twice, some late, in any order.
#[derive(Debug)]
struct Liars;

#[derive(Debug)]
struct Liar {
    honest: Box<dyn Watcher>,
    late: Vec<Event>,
    dice: u64,
}

impl Watchers for Liars {
    fn start(&self, root: &Path) -> io::Result<Box<dyn Watcher>> {
        Ok(Box::new(Liar { honest: SystemWatchers.start(root)?, late: Vec::new(), dice: 7 }))
    }
}

impl Watcher for Liar {
    fn add(&mut self, dir: &[u8]) -> io::Result<()> {
        self.honest.add(dir)
    }
    fn has(&self, dir: &[u8]) -> bool {
        self.honest.has(dir)
    }
    fn forget(&mut self, dir: &[u8]) {
        self.honest.forget(dir);
    }
    fn drain(&mut self, tell: &mut dyn FnMut(Event)) {
        let mut all = std::mem::take(&mut self.late);
        self.honest.drain(&mut |event| all.push(event));
        for event in all {
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match (self.dice >> 33) % 6 {
                0 => {}
                1 => self.late.insert(0, event),
                2 => {
                    tell(event.clone());
                    tell(event);
                }
                _ => tell(event),
            }
        }
    }
}

/// No point that walks misses anything, whatever the watcher told; one that does not walk holds for each path what was
/// there before or what is there now.
#[cfg(target_os = "linux")]
#[test]
fn a_watcher_that_lies_misleads_no_walk() {
    let mut world = watched(World::new(), Arc::new(Liars));
    let mut dice = 11_u64;
    let mut roll = |below: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(dice >> 33).unwrap() % below
    };
    let names = ["a", "b", "c", "f", "g", "n"];
    let mut hinted = 0;
    for step in 0..300 {
        let mut at = String::new();
        for _ in 0..=roll(3) {
            at = format!("{at}{}{}", if at.is_empty() { "" } else { "/" }, names[roll(6)]);
        }
        let full = world.abs(&at);
        match roll(6) {
            0 => drop(fs::remove_dir_all(&full)),
            1 => drop(fs::remove_file(&full)),
            2 => drop(fs::rename(&full, world.abs(names[roll(6)]))),
            _ => {
                drop(fs::create_dir_all(full.parent().unwrap()));
                drop(fs::write(&full, format!("{step}")));
            }
        }
        world.ask.watched = roll(4) > 0;
        let before = world.list(&world.ask.base.unwrap());
        let captured = world.try_capture_with(&NoProgress).unwrap();
        let now = truth(&world);
        hinted += u32::from(captured.watched);
        if captured.watched {
            world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
            let (known, real) = (world.list(&captured.snapshot), world.list(&now.snapshot));
            for (path, state) in &known {
                let either = before.get(path) == Some(state) || real.get(path) == Some(state);
                assert!(either, "step {step}: {path} is {state}");
            }
        } else {
            assert!(same(&captured, &now), "step {step}");
        }
        world.ask.base = Some(captured.snapshot);
    }
    assert!(hinted > 60, "{hinted}");
}
