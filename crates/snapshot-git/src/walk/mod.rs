//! The walk: lists, stats, hashes and stores a workspace in one pass, with work stealing over directories.
//!
//! Every directory is opened from its parent's descriptor without following links, so that no component can be
//! swapped for a link; trees are made bottom-up by whoever finishes the last child.

mod dir;
mod facts;
mod finish;
mod leaf;
mod node;
mod quiet;
mod wants;

use std::{
    collections::BTreeMap,
    mem::MaybeUninit,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use checkpoint_core::{CapturePolicy, ObjectId, Progress, Skipped, SnapshotError};
use crossbeam_deque::{Steal, Stealer, Worker as Queue};
use gix::objs::Kind;
use rustix::fd::OwnedFd;

use crate::{
    cache::{Cache, Restored},
    rules::{Blobs, Cover, RuleFile, Sources, Tracked},
    seed::Seed,
    store::{Batch, Store, Worker, object_id, to_core, to_gix},
    watch::{Hint, Visit},
};

pub(crate) use facts::{Facts, Trust, WINDOW, now};
use leaf::LeafJob;
pub(crate) use node::Ids;
use node::Outcome;
pub(crate) use quiet::{SeenDir, unsettled};

use facts::Trusts;
use node::Node;

/// Directories whose descriptors stay open for their children; beyond, they are opened again on demand.
const MAX_OPEN: usize = 256;
/// Bytes that files leave to the trees, when the room is short.
const TREES_RESERVE: u64 = 256 << 10;
/// What does not fit in this much room ends the capture; anything larger is left out instead.
const SMALL_FILE: u64 = 4 << 10;

/// Paths that are never captured: rwd's own.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    /// Paths below the root, with all below them.
    pub(crate) paths: Vec<Vec<u8>>,
    /// Directories by identity, whatever they are called.
    pub(crate) ids: Vec<(u64, u64)>,
}

impl Reserved {
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        self.paths.iter().any(|p| path.strip_prefix(&p[..]).is_some_and(|rest| rest.is_empty() || rest[0] == b'/'))
    }
}

/// Everything a walk needs to know beforehand.
pub(crate) struct Setup<'a> {
    pub(crate) root: &'a OwnedFd,
    pub(crate) store: &'a Store,
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) cache: &'a Cache,
    /// What the last restore read back.
    pub(crate) restored: &'a Restored,
    pub(crate) sources: &'a Sources,
    pub(crate) tracked: &'a Tracked<'a>,
    pub(crate) cover: &'a Cover<'a>,
    /// What is known of files that were never read, at a first capture.
    pub(crate) seed: Option<&'a Seed<'a>>,
    /// Ids of the base snapshot.
    pub(crate) base: Option<Ids>,
    pub(crate) policy: &'a CapturePolicy,
    pub(crate) temporaries: &'a [Vec<u8>],
    pub(crate) reserved: &'a Reserved,
    pub(crate) write: bool,
    /// When the capture began, as stamps count.
    pub(crate) start: i64,
    pub(crate) until: Option<Instant>,
    pub(crate) progress: &'a dyn Progress,
    /// Bytes that the store may still grow by.
    pub(crate) room: u64,
    pub(crate) threads: usize,
    /// Where to look; `None`: everywhere. What is not looked at is taken over from the base, whose records the cache has.
    pub(crate) hint: Option<&'a Hint>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) ids: Ids,
    pub(crate) files: u64,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) dirs: Vec<SeenDir>,
    /// Framed records for the cache.
    pub(crate) records: Vec<u8>,
    pub(crate) warnings: Vec<String>,
    /// Rule files that are left out themselves decide about something.
    pub(crate) loose: bool,
    /// Some of it lies on another mount than the root, or on no ordinary local file system.
    pub(crate) foreign: bool,
    /// The hint cannot be followed: what was found counts for nothing.
    pub(crate) doubt: bool,
}

/// Whether the files are in order, and the files: size, directory, name.
type Late = (bool, Vec<(u64, Arc<Node>, LeafJob)>);

/// By path from the root: id and content.
type LooseRules = BTreeMap<Vec<u8>, (ObjectId, Vec<u8>)>;

enum Job {
    Dir(Arc<Node>),
    Leaves(Arc<Node>, Vec<LeafJob>),
}

/// A walk under way, shared by its workers.
pub(crate) struct Walk<'a> {
    s: Setup<'a>,
    trusts: Trusts,
    /// Jobs that are queued or running, late ones excepted.
    active: AtomicUsize,
    /// All jobs that are not done.
    left: AtomicUsize,
    open_dirs: AtomicUsize,
    looked_at: AtomicU64,
    /// Files that wait until all others are stored, the smallest last.
    late: Mutex<Late>,
    /// Files of this size and above are stored late.
    late_size: u64,
    /// Bytes set aside for late files that are being stored.
    claimed: AtomicU64,
    /// Rule files that are not captured.
    loose_rules: Mutex<LooseRules>,
    stop: AtomicBool,
    doubt: AtomicBool,
    foreign: AtomicBool,
    failure: Mutex<Option<SnapshotError>>,
    root: Mutex<Option<Outcome>>,
    warnings: Mutex<Vec<String>>,
}

/// What one worker holds.
struct Hand<'a> {
    pack: Worker<'a, 'a>,
    queue: Queue<Job>,
    dirents: Vec<MaybeUninit<u8>>,
    content: Vec<u8>,
    found: Found,
    /// Room that was claimed for the late file under way; 0 where there was none.
    late: Option<u64>,
    ticks: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Walks the workspace. On an error nothing of it counts; the batch must be dropped.
pub(crate) fn run(setup: Setup<'_>) -> Result<Found, SnapshotError> {
    let threads = setup.threads.max(1);
    let late_size = match setup.room {
        0..0x80_0000 => SMALL_FILE,
        0x80_0000..0x1000_0000 => 64 << 10,
        0x1000_0000..0x2_0000_0000 => 1 << 20,
        _ => leaf::BIG,
    };
    let walk = Walk {
        trusts: Trusts::default(),
        active: AtomicUsize::new(1),
        left: AtomicUsize::new(1),
        open_dirs: AtomicUsize::new(0),
        looked_at: AtomicU64::new(0),
        late: Mutex::default(),
        late_size: late_size.min(leaf::BIG),
        claimed: AtomicU64::new(0),
        loose_rules: Mutex::default(),
        stop: AtomicBool::new(false),
        doubt: AtomicBool::new(false),
        foreign: AtomicBool::new(false),
        failure: Mutex::default(),
        root: Mutex::default(),
        warnings: Mutex::default(),
        s: setup,
    };
    let queues: Vec<Queue<Job>> = (0..threads).map(|_| Queue::new_lifo()).collect();
    let stealers: Vec<_> = queues.iter().map(Queue::stealer).collect();
    queues[0].push(Job::Dir(Node::root(walk.s.sources.level.clone())));
    let mut founds: Vec<Found> = std::thread::scope(|scope| {
        let mut queues = queues.into_iter().enumerate();
        let own = queues.next();
        let (walk, stealers) = (&walk, &stealers[..]);
        let others: Vec<_> = queues.map(|(me, queue)| scope.spawn(move || walk.work(me, queue, stealers))).collect();
        // The calling thread is one of the workers.
        let first = own.map(|(me, queue)| walk.work(me, queue, stealers));
        let rest = others.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| {
                walk.fail(SnapshotError::Other { what: "walking the workspace", source: "a worker panicked".into() });
                Found::default()
            })
        });
        first.into_iter().chain(rest).collect()
    });
    if walk.doubt.load(Ordering::Acquire) {
        return Ok(Found { doubt: true, ..Found::default() });
    }
    if let Some(error) = lock(&walk.failure).take() {
        return Err(error);
    }
    let mut all = founds.pop().unwrap_or_default();
    for found in founds {
        all.files += found.files;
        all.skipped.extend(found.skipped);
        all.dirs.extend(found.dirs);
        all.records.extend(found.records);
    }
    all.skipped.sort_unstable();
    all.loose = !lock(&walk.loose_rules).is_empty();
    all.foreign = walk.foreign.load(Ordering::Acquire);
    all.warnings = std::mem::take(&mut *lock(&walk.warnings));
    match lock(&walk.root).take() {
        Some(Outcome::Captured(ids)) => all.ids = ids,
        _ => {
            return Err(SnapshotError::Other {
                what: "walking the workspace",
                source: "the root went away or may not be read".into(),
            });
        }
    }
    Ok(all)
}

impl<'a> Walk<'a> {
    fn work(&self, me: usize, queue: Queue<Job>, stealers: &[Stealer<Job>]) -> Found {
        let mut hand = Hand {
            pack: self.s.batch.worker(),
            queue,
            dirents: vec![MaybeUninit::uninit(); 32 << 10],
            content: Vec::new(),
            found: Found::default(),
            late: None,
            ticks: 0,
        };
        let mut idle = 0u32;
        // If this worker panics, the others must not wait for its jobs.
        let guard = StopOnPanic(self);
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(job) = hand.queue.pop().or_else(|| steal(me, stealers)) {
                idle = 0;
                self.check_time();
                match job {
                    Job::Dir(node) => self.dir(&mut hand, &node),
                    Job::Leaves(node, leaves) => self.leaves(&mut hand, &node, leaves),
                }
                self.active.fetch_sub(1, Ordering::AcqRel);
                self.left.fetch_sub(1, Ordering::AcqRel);
            } else if self.left.load(Ordering::Acquire) == 0 {
                break;
            } else if self.active.load(Ordering::Acquire) == 0
                && let Some((claim, node, leaf)) = self.next_late()
            {
                idle = 0;
                hand.late = Some(claim);
                self.check_time();
                self.leaves(&mut hand, &node, vec![leaf]);
                hand.late = None;
                self.claimed.fetch_sub(claim, Ordering::AcqRel);
                self.left.fetch_sub(1, Ordering::AcqRel);
            } else {
                idle += 1;
                match idle {
                    0..64 => std::hint::spin_loop(),
                    64..256 => std::thread::yield_now(),
                    _ => std::thread::sleep(std::time::Duration::from_micros(50)),
                }
            }
        }
        drop(guard);
        hand.found
    }

    /// The smallest file that was put off, with the room that is set aside for it: when room is short, the largest
    /// are left out. Claimed in order, so that it does not matter which worker is faster.
    fn next_late(&self) -> Option<(u64, Arc<Node>, LeafJob)> {
        let mut late = lock(&self.late);
        let (sorted, files) = &mut *late;
        if !*sorted {
            files.sort_unstable_by(|a, b| (b.0, &b.1.path, &b.2.name).cmp(&(a.0, &a.1.path, &a.2.name)));
            *sorted = true;
        }
        let (size, node, leaf) = files.pop()?;
        let claim = if self.fits(size) { size } else { 0 };
        self.claimed.fetch_add(claim, Ordering::AcqRel);
        Some((claim, node, leaf))
    }

    fn push(&self, hand: &Hand<'a>, node: &Node, job: Job) {
        node.pending.fetch_add(1, Ordering::AcqRel);
        self.active.fetch_add(1, Ordering::AcqRel);
        self.left.fetch_add(1, Ordering::AcqRel);
        hand.queue.push(job);
    }

    fn push_late(&self, node: &Arc<Node>, size: u64, leaf: LeafJob) {
        node.pending.fetch_add(1, Ordering::AcqRel);
        self.left.fetch_add(1, Ordering::AcqRel);
        let mut late = lock(&self.late);
        late.0 = false;
        late.1.push((size, node.clone(), leaf));
    }

    /// Ends a walk that goes by a hint: what it was to start from is not what it was taken for.
    fn doubt(&self) {
        self.doubt.store(true, Ordering::Release);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What the hint says of a directory; without one everything is looked at.
    fn visit(&self, dir: &[u8]) -> Visit {
        self.s.hint.map_or(Visit::All, |hint| hint.at(dir))
    }

    /// Ends the walk; the first error is the one that is reported.
    fn fail(&self, error: SnapshotError) {
        lock(&self.failure).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn check_time(&self) {
        if self.s.until.is_some_and(|until| Instant::now() >= until) {
            self.fail(SnapshotError::Deadline);
        }
    }

    /// Called for every file that is looked at.
    fn tick(&self, hand: &mut Hand<'a>) {
        hand.ticks += 1;
        if hand.ticks.is_multiple_of(256) {
            let done = self.looked_at.fetch_add(256, Ordering::Relaxed) + 256;
            if self.s.progress.tick("files", done, None).is_break() {
                self.fail(SnapshotError::Interrupted);
            }
            self.check_time();
        }
    }

    /// Is the object there for this capture to rely on?
    fn has(&self, id: &ObjectId) -> bool {
        self.s.batch.contains(&to_gix(id))
    }

    fn room(&self) -> u64 {
        self.s.room.saturating_sub(self.s.batch.bytes())
    }

    /// Is there room for this much content, next to what is claimed and what the trees will need?
    fn fits(&self, needed: u64) -> bool {
        let aside = self.claimed.load(Ordering::Acquire).saturating_add(TREES_RESERVE.min(self.s.room / 8));
        !self.s.write || needed.saturating_add(aside) <= self.room()
    }

    /// Stores a tree or a meta blob.
    fn add(&self, hand: &mut Hand<'a>, kind: Kind, body: &[u8]) -> Result<ObjectId, SnapshotError> {
        let id = object_id(kind, body)?;
        if self.s.write && self.room() < body.len() as u64 && !self.s.batch.contains(&id) {
            return Err(SnapshotError::NoSpace { needed: body.len() as u64 });
        }
        hand.pack.add(kind, id, body)?;
        Ok(to_core(&id))
    }

    fn warn(&self, text: String) {
        lock(&self.warnings).push(text);
    }

    fn warn_about_rules(&self, path: &[u8], error: &std::io::Error) {
        let path = String::from_utf8_lossy(path);
        self.warn(format!("cannot read {path}: {error}; its rules do not count"));
    }
}

impl Blobs for Walk<'_> {
    fn rule_file(&self, file: &RuleFile) -> Vec<u8> {
        if let Ok(content) = self.s.store.read(&to_gix(&file.id), Kind::Blob) {
            return content;
        }
        // A damaged store must not end every capture from now on: the file itself is there.
        dir::read_rule_file_below(self.s.root, &file.path).unwrap_or_else(|error| {
            self.warn_about_rules(&file.path, &error);
            Vec::new()
        })
    }
}

fn steal(me: usize, stealers: &[Stealer<Job>]) -> Option<Job> {
    (1..stealers.len()).find_map(|k| {
        loop {
            match stealers[(me + k) % stealers.len()].steal() {
                Steal::Success(job) => return Some(job),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    })
}

struct StopOnPanic<'w, 'a>(&'w Walk<'a>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
        }
    }
}
