//! The first capture of a git worktree: what the user's index and packs already know is neither read nor compressed.
//!
//! Two shortcuts, each of which only ever makes a capture faster. Packs of the user's repository become packs of our
//! store by a hard link, so that content which is in one is not compressed again. And where an index entry's stamps say
//! that a file is what git hashed, its id is taken from there and the file is not read.
//!
//! An id is believed only when all of this holds: the object is in a pack that was looked through and linked; its size
//! is the file's; size, both times and inode are the file's now; both times are older than the index file by more than
//! the racy window; no attribute can name a filter or an encoding for the path; the entry is no conflict and carries no
//! flag by which git hides changes. Line endings and `ident` need no rule: what they convert has another size. Whatever
//! does not fit is read, as any file is.

mod attributes;

use std::{
    fs, io,
    ops::Range,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use checkpoint_core::{CaptureRequest, ObjectId};
use gix::{
    bstr::ByteSlice,
    index::entry::{Flags, Mode, Stage},
};
use rustix::fs::FileType;

use crate::{
    GitSnapshots,
    rules::Tracked,
    store::{BIGGEST_INDEX, Candidate, Store, Vetted, Wanted},
    user_repo::{UserConfig, UserRepo},
    walk::{Facts, Trust},
};
use attributes::Conversions;

/// So many packs of a repository are looked at, the biggest first, and so many are linked: every lookup asks each.
const MOST_LOOKED_AT: usize = 64;
const MOST_LINKED: usize = 12;
/// The share of the store's ceiling that linked packs may take.
const SHARE: u64 = 4;
/// What git hides from itself says nothing about the file.
const HIDDEN: Flags = Flags::ASSUME_VALID.union(Flags::SKIP_WORKTREE).union(Flags::INTENT_TO_ADD);

/// What is known of the workspace's files before any is read.
pub(crate) struct Seed<'i> {
    index: &'i gix::index::File,
    /// By place in the index: may the entry's id be believed, as far as that does not depend on the file?
    proven: Vec<bool>,
    /// The entries below the root.
    all: Range<usize>,
    /// When the index was written.
    written: i64,
}

impl std::fmt::Debug for Seed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seed").field("entries", &self.all).finish_non_exhaustive()
    }
}

/// Makes the shortcuts ready, where the store is new and the repository one of which we know all that matters.
///
/// Nothing that fails here fails the capture.
pub(crate) fn prepare<'i>(
    this: &GitSnapshots,
    request: &CaptureRequest<'_>,
    repo: Option<&UserRepo>,
    tracked: &'i Tracked<'_>,
    start: i64,
    until: Option<Instant>,
) -> Option<Seed<'i>> {
    let wanted = request.write && request.policy.seed_from_git && request.base.is_none();
    // Once anything was collected or purged, nothing is taken over again: it would bring back what went.
    if !wanted || !this.store.is_new().unwrap_or(false) || this.options.epoch.current().ok() != Some(0) {
        return None;
    }
    let repo = repo?;
    if !repo.is_plain() {
        return None;
    }
    // The index and those of the packs are about as big, and neither needs the other.
    let most = request.policy.store_max_bytes / SHARE;
    let go_on = || until.is_none_or(|until| Instant::now() < until);
    let read = AtomicBool::new(false);
    let (wishes, candidates) = std::thread::scope(|scope| {
        let candidates = scope.spawn(|| {
            let candidates = candidates(&this.store, repo, most);
            // While the index is still being read, the biggest pack is likely to be wanted.
            if let Some(first) = candidates.first() {
                first.begin(&|| !read.load(Ordering::Relaxed) && go_on());
            }
            candidates
        });
        let wishes = Wishes::read(repo, tracked, &this.options.config);
        read.store(true, Ordering::Relaxed);
        (wishes, candidates.join().unwrap_or_default())
    });
    let wishes = wishes?;
    let packs = link(&this.store, candidates, &wishes, most, this.options.threads, &go_on);
    if packs.is_empty() || request.policy.verify_by_hash || wishes.written >= start {
        return None;
    }
    let Wishes { index, all, wanted, written, conversions, .. } = wishes;
    let conversions = conversions?;
    let mut proven = vec![false; index.entries().len()];
    for pack in packs {
        pack.each(&wanted, |one| {
            let touched = || {
                let entry = index.entries().get(one.at as usize);
                entry.is_none_or(|entry| entry.mode != Mode::SYMLINK && conversions.may_touch(entry.path(index)))
            };
            if let Some(proven) = proven.get_mut(one.at as usize) {
                *proven |= conversions.is_empty() || !touched();
            }
        });
    }
    Some(Seed { index, proven, all, written })
}

/// What the index knows.
struct Wishes<'i> {
    index: &'i gix::index::File,
    /// The entries below the root.
    all: Range<usize>,
    /// Those of them that may be believed at all, in order of their ids.
    wanted: Vec<Wanted>,
    /// Bytes of their files.
    bytes: u64,
    written: i64,
    conversions: Option<Conversions>,
}

impl<'i> Wishes<'i> {
    fn read(repo: &UserRepo, tracked: &'i Tracked<'_>, config: &UserConfig) -> Option<Self> {
        let (index, written) = read_index(repo, tracked)?;
        let entries = index.entries();
        let from = entries.partition_point(|entry| entry.path(index).as_bytes() < &repo.above[..]);
        let under = |entry: &gix::index::Entry| entry.path(index).starts_with(&repo.above);
        let all = from..from + entries[from..].partition_point(under);
        let mut bytes = 0;
        let mut wanted = Vec::with_capacity(all.len());
        for (entry, at) in entries[all.clone()].iter().zip(u32::try_from(from).ok()?..) {
            let ordinary = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK)
                && entry.stage() == Stage::Unconflicted
                && !entry.flags.intersects(HIDDEN);
            if let (true, Ok(id)) = (ordinary, entry.id.as_bytes().try_into()) {
                wanted.push(Wanted::new(id, at, entry.stat.size));
                bytes += u64::from(entry.stat.size);
            }
        }
        wanted.sort_unstable_by(Wanted::order);
        let conversions = Conversions::gather(index, &all, repo, config);
        Some(Self { index, all, wanted, bytes, written, conversions })
    }
}

/// The index with the time it was written, if nobody was writing it meanwhile.
fn read_index<'i>(repo: &UserRepo, tracked: &'i Tracked<'_>) -> Option<(&'i gix::index::File, i64)> {
    let facts = || {
        let facts = fs::symlink_metadata(repo.index_path()).ok().filter(fs::Metadata::is_file)?;
        let nanos = facts.mtime().checked_mul(1_000_000_000)?.checked_add(facts.mtime_nsec())?;
        Some((facts.dev(), facts.ino(), facts.size(), nanos, facts.ctime(), facts.ctime_nsec()))
    };
    let before = facts()?;
    let index = tracked.index()?;
    // Entries of a split index are as old as the part that holds them, which does not show any more.
    let usable = facts() == Some(before) && index.object_hash() == gix::hash::Kind::Sha1 && !repo.has_shared_index();
    usable.then_some((index, before.3))
}

/// The repository's packs of at most `most` bytes that could be linked.
fn candidates(store: &Store, repo: &UserRepo, most: u64) -> Vec<Candidate> {
    let Ok(owner) = fs::metadata(store.pack_dir()).map(|facts| facts.uid()) else { return Vec::new() };
    let open = |path: PathBuf| Candidate::open(&path, owner).inspect_err(|error| tell(&path, error)).ok();
    // However many there are, no more is kept in memory than the biggest may take.
    let mut left = BIGGEST_INDEX;
    let fits = |pack: &Candidate| {
        let rest = left.checked_sub(pack.index_len());
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    packs_of(repo, most).into_iter().take(MOST_LOOKED_AT).filter_map(open).filter(fits).collect()
}

/// Links the packs that hold most of what is wanted, all together no bigger than the files that want them.
fn link(
    store: &Store,
    candidates: Vec<Candidate>,
    wishes: &Wishes<'_>,
    most: u64,
    threads: usize,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Vec<Vetted> {
    let mut left = most.min(wishes.bytes);
    let mut useful: Vec<(usize, Candidate)> =
        candidates.into_iter().map(|pack| (pack.holds(&wishes.wanted), pack)).filter(|(held, _)| *held > 0).collect();
    useful.sort_by_key(|(held, _)| std::cmp::Reverse(*held));
    let mut linked = Vec::new();
    for (_, pack) in useful {
        let (len, path) = (pack.len(), pack.path().to_owned());
        if len > left || linked.len() == MOST_LINKED {
            continue;
        }
        let taken = take(store, pack, threads, go_on);
        match taken {
            Ok(vetted) => {
                left -= len;
                linked.push(vetted);
            }
            Err(error) => tell(&path, &error),
        }
    }
    linked
}

/// Looks through one pack and links it.
fn take(store: &Store, pack: Candidate, threads: usize, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<Vetted> {
    // Its index is on its way to the disk meanwhile.
    let (vetted, draft) = std::thread::scope(|scope| {
        let draft = scope.spawn(|| store.draft_index(&pack));
        let vetted = pack.vet(threads, go_on);
        (vetted, draft.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
    });
    let draft = draft?;
    match vetted {
        Ok(()) => {
            let vetted = pack.vetted();
            store.take_over(&vetted, &draft).map(|()| vetted)
        }
        Err(error) => {
            drop(fs::remove_file(draft));
            Err(error)
        }
    }
}

fn tell(path: &Path, error: &io::Error) {
    tracing::debug!(pack = %path.display(), %error, "a pack of the repository is not used");
}

/// The repository's own packs of at most `budget` bytes, the biggest first. Those that it borrows are left alone.
fn packs_of(repo: &UserRepo, budget: u64) -> Vec<PathBuf> {
    let Ok(names) = fs::read_dir(repo.common_dir.join("objects/pack")) else { return Vec::new() };
    let mut packs: Vec<(u64, PathBuf)> = names
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pack"))
        .filter_map(|path| Some((fs::symlink_metadata(&path).ok()?.len(), path)))
        .filter(|(len, _)| *len <= budget)
        .collect();
    packs.sort_unstable_by(|a, b| b.cmp(a));
    packs.into_iter().map(|(_, path)| path).collect()
}

impl Seed<'_> {
    /// The entries below the root.
    pub(crate) fn all(&self) -> Range<usize> {
        self.all.clone()
    }

    /// The entries below the directory `full`, a path from the repository's top with a slash at the end; `within` are
    /// those of a directory above it.
    pub(crate) fn below(&self, full: &[u8], within: Range<usize>) -> Range<usize> {
        let Some(entries) = self.index.entries().get(within.clone()) else { return 0..0 };
        let from = entries.partition_point(|entry| entry.path(self.index).as_bytes() < full);
        let count = entries[from..].partition_point(|entry| entry.path(self.index).starts_with(full));
        within.start + from..within.start + from + count
    }

    /// `dir` is the length of the directory's path, with its slash.
    fn find(&self, dir: usize, name: &[u8], within: Range<usize>) -> Option<usize> {
        let entries = self.index.entries().get(within.clone())?;
        let found = entries
            .binary_search_by(|entry| entry.path(self.index).as_bytes().get(dir..).unwrap_or_default().cmp(name));
        Some(within.start + found.ok()?)
    }

    /// Does the index know the name in the directory whose path from the top, with its slash, is `dir` bytes long and
    /// whose entries are `within`?
    pub(crate) fn knows(&self, dir: usize, name: &[u8], within: Range<usize>) -> bool {
        self.find(dir, name, within).is_some()
    }

    /// The id of the file `name` in such a directory, if that can be told from its stamps.
    pub(crate) fn id(
        &self,
        dir: usize,
        name: &[u8],
        within: Range<usize>,
        facts: &Facts,
        trust: Trust,
    ) -> Option<ObjectId> {
        let at = self.find(dir, name, within)?;
        let entry = self.index.entries().get(at).filter(|_| self.proven.get(at) == Some(&true))?;
        let (stat, stamp) = (&entry.stat, &facts.stamp);
        let nanos = |time: &gix::index::entry::stat::Time| i64::from(time.secs) * 1_000_000_000 + i64::from(time.nsecs);
        let is_link = entry.mode == Mode::SYMLINK;
        let same = facts.kind == if is_link { FileType::Symlink } else { FileType::RegularFile };
        let same = same
            && stamp.size == u64::from(stat.size)
            && stamp.mtime == nanos(&stat.mtime)
            && stamp.ctime == nanos(&stat.ctime)
            && stamp.ino & u64::from(u32::MAX) == u64::from(stat.ino);
        // A file that changed right after git had read it may have kept its stamp, as far as the index tells.
        (same && trust.local && !trust.is_racy(stamp, self.written))
            .then(|| entry.id.as_bytes().try_into().ok().map(ObjectId::from_bytes))
            .flatten()
    }
}
