//! Linux: inotify. No thread: the kernel's queue is read when a capture begins. A queue that is full says so.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    io,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

use super::{Event, Watcher, Writing, is_at_or_below, join};

const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// One inotify instance for a root.
#[derive(Debug)]
pub(super) struct Inotify {
    fd: OwnedFd,
    root: PathBuf,
    paths: HashMap<i32, Vec<u8>>,
    watches: BTreeMap<Vec<u8>, i32>,
}

impl Inotify {
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { fd, root: root.to_owned(), paths: HashMap::new(), watches: BTreeMap::new() })
    }

    fn tell(&mut self, wd: i32, flags: ReadFlags, name: &[u8], tell: &mut dyn FnMut(Event)) {
        if flags.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
            return tell(Event::Lost);
        }
        let Some(dir) = self.paths.get(&wd) else { return };
        if flags.contains(ReadFlags::IGNORED) {
            let dir = dir.clone();
            self.paths.remove(&wd);
            if self.watches.get(&dir) == Some(&wd) {
                self.watches.remove(&dir);
            }
            return;
        }
        if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF) {
            // Of any other the directory above tells.
            if dir.is_empty() {
                tell(Event::Lost);
            }
            return;
        }
        if name.is_empty() {
            return tell(Event::Touched(dir.clone()));
        }
        let path = join(dir, name);
        if !flags.contains(ReadFlags::ISDIR) {
            let writing = match flags {
                _ if flags.contains(ReadFlags::MODIFY) => Writing::Open,
                _ if flags.contains(ReadFlags::CLOSE_WRITE) => Writing::Closed,
                _ => Writing::Unsaid,
            };
            return tell(Event::Entry { dir: dir.clone(), name: name.to_vec(), writing });
        }
        if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            self.forget(&path);
            tell(Event::Went(path));
        } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            tell(Event::Came(path));
        } else {
            tell(Event::Touched(path));
        }
    }
}

impl Watcher for Inotify {
    fn add(&mut self, dir: &[u8]) -> io::Result<()> {
        let wd = inotify::add_watch(&self.fd, self.root.join(OsStr::from_bytes(dir)), WANTED)?;
        // One watch for one directory, whatever it is called.
        if let Some(old) = self.paths.insert(wd, dir.to_vec()).filter(|old| old != dir) {
            self.watches.remove(&old);
        }
        self.watches.insert(dir.to_vec(), wd);
        Ok(())
    }

    fn has(&self, dir: &[u8]) -> bool {
        self.watches.contains_key(dir)
    }

    fn forget(&mut self, dir: &[u8]) {
        let below: Vec<Vec<u8>> = if dir.is_empty() {
            self.watches.keys().cloned().collect()
        } else {
            let from = self.watches.range(dir.to_vec()..);
            // `dir-x` comes between `dir` and `dir/x`.
            from.take_while(|(path, _)| path.starts_with(dir))
                .filter(|(path, _)| is_at_or_below(path, dir))
                .map(|(path, _)| path.clone())
                .collect()
        };
        for path in below {
            if let Some(wd) = self.watches.remove(&path) {
                self.paths.remove(&wd);
                // One that the kernel has dropped already is as good.
                let _gone = inotify::remove_watch(&self.fd, wd);
            }
        }
    }

    fn drain(&mut self, tell: &mut dyn FnMut(Event)) {
        let mut read = Vec::new();
        let mut failed = false;
        {
            let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
            let mut reader = Reader::new(&self.fd, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map(|name| name.to_bytes().to_vec()).unwrap_or_default();
                        read.push((event.wd(), event.events(), name));
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(_) => {
                        failed = true;
                        break;
                    }
                }
            }
        }
        for (wd, flags, name) in read {
            self.tell(wd, flags, &name, tell);
        }
        if failed {
            tell(Event::Lost);
        }
    }
}
