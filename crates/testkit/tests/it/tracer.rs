//! A capture and a preview open nothing for writing below the workspace or the user's `.git`: the kernel says so.

use std::mem::MaybeUninit;
use std::os::unix::fs::symlink;
use std::path::Path;

use checkpoint_core::CapturePolicy;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::world::{Kind, World, exactly};

/// Anything but reading. `CLOSE_WRITE` comes for every descriptor that was open for writing, written to or not.
const WRITES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

struct Tracer(rustix::fd::OwnedFd);

impl Tracer {
    fn over(root: &Path) -> Self {
        let tracer = Self(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap());
        tracer.watch(root);
        tracer
    }

    fn watch(&self, dir: &Path) {
        inotify::add_watch(&self.0, dir, WRITES).unwrap();
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                self.watch(&entry.path());
            }
        }
    }

    fn events(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut seen = Vec::new();
        while let Ok(event) = reader.next() {
            seen.push(format!("{:?} {:?}", event.events(), event.file_name()));
        }
        seen
    }
}

#[test]
fn captures_and_previews_open_nothing_for_writing() {
    let world = World::new(Kind::Sqlite, true, CapturePolicy::default());
    world.write("a", "v1");
    world.write("d/e/f", "deep");
    world.write(".gitignore", "*.log\n");
    world.write("x.log", "ignored");
    world.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    world.write("nested/in", "side");
    world.write("big", &"x".repeat(9 << 20));
    symlink("a", world.at("link")).unwrap();
    let tracer = Tracer::over(&world.root());
    let first = world.save();
    world.engine.preview(&exactly(first.point.id)).unwrap();
    world.engine.gc(false).unwrap();
    assert_eq!(tracer.events(), Vec::<String>::new());
    // The tracer does see a write.
    world.write("a", "v2");
    assert!(!tracer.events().is_empty());
    world.save();
    world.engine.preview(&exactly(first.point.id)).unwrap();
    assert_eq!(tracer.events(), Vec::<String>::new());
}
