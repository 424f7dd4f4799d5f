//! One directory: by its record where its stamps say that no name has changed, else by listing it.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    fs::File,
    io::Read,
    sync::{Arc, atomic::Ordering},
};

use checkpoint_core::{Nested, ObjectId, SkipReason, is_git_name};
use gix::objs::Kind;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags, RawDir},
    io::Errno,
};

use super::{
    Hand, Job, MAX_OPEN, Walk,
    facts::{Trust, now, stat_at, stat_fd},
    leaf::LeafJob,
    lock,
    node::{Child, Node, Outcome},
    quiet::SeenDir,
    wants::Hint,
};
use crate::{
    cache::{Entry, EntryRef, Known, Record, What, dir_flag, flag},
    rules::{Digest, GITIGNORE, Level, MAX_RULE_FILE, RWDIGNORE, RuleFile, digest},
    seed::Seed,
    store::{object_id, to_core},
    watch::Visit,
};

pub(super) const DIR_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Directories with more files than this are shared between workers.
const CHUNK: usize = 256;

/// A directory under way.
struct Here<'n> {
    node: &'n Arc<Node>,
    fd: &'n Arc<OwnedFd>,
    /// Why only wanted paths are captured here.
    closed: Option<SkipReason>,
    level: Arc<Level>,
    /// Path of the directory from the repository's top, with a slash at the end.
    full: Vec<u8>,
    /// Its files are what they were, as the hint has it.
    passed: bool,
}

/// A rule file of the directory under way: its rules, and its content where that had to be read.
type Loaded = (Arc<RuleFile>, Option<Vec<u8>>);

/// What is to become of a name, judged by the name alone.
#[derive(Clone, Copy)]
enum Verdict {
    Skip(SkipReason, u8),
    Leaf(u8),
    Dir(Child),
}

impl<'a> Walk<'a> {
    pub(super) fn dir(&self, hand: &mut Hand<'a>, node: &Arc<Node>) {
        if let Err(outcome) = self.enter(hand, node) {
            node.state().outcome = Some(outcome);
        }
        self.done(hand, node);
    }

    /// The descriptor of a directory that has been entered; opened again where descriptors are scarce.
    pub(super) fn dir_fd(&self, node: &Node) -> Result<Arc<OwnedFd>, Errno> {
        let mut below = Vec::new();
        let mut at = node;
        let mut fd = loop {
            if let Some(fd) = at.state().fd.clone() {
                break fd;
            }
            below.push(at);
            match at.parent.as_deref() {
                Some(parent) => at = parent,
                None => break Arc::new(rustix::fs::openat(self.s.root, c".", DIR_FLAGS, Mode::empty())?),
            }
        };
        for next in below.into_iter().rev().filter(|n| !n.is_root()) {
            fd = Arc::new(rustix::fs::openat(&fd, &*next.name, DIR_FLAGS, Mode::empty())?);
            let facts = stat_fd(&fd)?;
            let state = next.state();
            // Another directory under the same name is not the one that was listed.
            if (facts.dev, facts.stamp.ino) != (state.dev, state.stamp.ino) {
                return Err(Errno::NOENT);
            }
        }
        Ok(fd)
    }

    fn open(&self, node: &Node) -> Result<OwnedFd, Outcome> {
        let opened = match node.parent.as_deref() {
            None => rustix::fs::openat(self.s.root, c".", DIR_FLAGS, Mode::empty()),
            Some(parent) => {
                self.dir_fd(parent).and_then(|fd| rustix::fs::openat(&fd, &*node.name, DIR_FLAGS, Mode::empty()))
            }
        };
        opened.map_err(|errno| match errno {
            Errno::NOENT => Outcome::Gone,
            Errno::NOTDIR | Errno::LOOP => Outcome::Swapped,
            // Taken for unreadable, half the workspace would be missing from the point.
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
                self.fail(Self::io(&node.path, errno));
                Outcome::Gone
            }
            _ => Outcome::Skipped(SkipReason::Unreadable),
        })
    }

    fn enter(&self, hand: &mut Hand<'a>, node: &Arc<Node>) -> Result<(), Outcome> {
        let fd = Arc::new(self.open(node)?);
        let unreadable = |_| Outcome::Skipped(SkipReason::Unreadable);
        let facts = stat_fd(&fd).map_err(unreadable)?;
        if self.s.reserved.ids.contains(&(facts.dev, facts.stamp.ino)) && !node.is_root() {
            return Err(Outcome::Skipped(SkipReason::Reserved));
        }
        let trust = self.trusts.of(facts.dev, fd.as_fd());
        if !trust.local || node.parent.as_ref().is_some_and(|parent| parent.state().dev != facts.dev) {
            self.foreign.store(true, Ordering::Release);
        }
        let settled = facts.stamp.newest() < now().saturating_sub(trust.window);
        {
            let mut state = node.state();
            state.dev = facts.dev;
            state.stamp = facts.stamp;
            state.mode = facts.mode;
            state.window = trust.window;
            state.closed = node.closed;
            state.flags = if settled && trust.local { dir_flag::SETTLED } else { 0 };
            // Where there are too many, only every 16th level keeps its descriptor: the others are reached from it.
            let open = self.open_dirs.load(Ordering::Relaxed);
            if open < MAX_OPEN || (open < 2 * MAX_OPEN && node.depth.is_multiple_of(16)) {
                self.open_dirs.fetch_add(1, Ordering::Relaxed);
                state.fd = Some(fd.clone());
            }
        }
        hand.found.dirs.push(SeenDir::new(node.path.clone(), &facts, settled, trust.window));
        if let Some(record) = self.s.cache.find(&node.path) {
            node.record.get_or_init(|| record);
        }
        let record = node.record.get();
        let visit = self.visit(&node.path);
        if visit != Visit::All && !self.is_base(node, record) {
            self.doubt();
            return Err(Outcome::Gone);
        }
        let passed = visit == Visit::Through;
        let known = record.filter(|r| {
            let (old, new) = (&r.head.stamp, &facts.stamp);
            trust.local
                && !self.s.policy.verify_by_hash
                && r.has(dir_flag::SETTLED)
                && !r.has(dir_flag::LOOSE_RULES)
                && r.head.dev == facts.dev
                && (old.ino, old.mtime, old.ctime) == (new.ino, new.mtime, new.ctime)
                && [r.head.tree, r.head.meta].iter().flatten().all(|id| self.has(id))
        });
        if let Some(record) = known
            && self.by_record(hand, node, &fd, record, passed)
        {
            return Ok(());
        }
        self.by_listing(hand, node, &fd, record, trust, settled)
    }

    /// Does the record describe the directory as the base has it? Only then can what is below it be taken over.
    fn is_base(&self, node: &Node, record: Option<&Record>) -> bool {
        let ids = if node.is_root() { self.s.base } else { node.recorded_ids() };
        let plain = |r: &&Record| !r.has(dir_flag::LOOSE_RULES) && !r.has(dir_flag::COLLAPSED);
        node.closed.is_none() && record.filter(plain).is_some_and(|r| Some((r.head.tree, r.head.meta)) == ids)
    }

    fn full(&self, node: &Node) -> Vec<u8> {
        let mut full = Vec::with_capacity(self.s.sources.rules.above.len() + node.path.len() + 64);
        full.extend_from_slice(&self.s.sources.rules.above);
        full.extend_from_slice(&node.path);
        if !node.path.is_empty() {
            full.push(b'/');
        }
        full
    }

    /// Digest of the rules below something that is left out: only the workspace's own settings matter there.
    fn closed_digest(&self, why: SkipReason) -> Digest {
        digest([&self.s.sources.level.digest[..], why.code().as_bytes()])
    }

    /// Is the directory a repository of its own? A directory that is merely called `.git` makes none.
    fn is_repository(fd: &OwnedFd, dot_git: &CStr) -> bool {
        match stat_at(fd, dot_git) {
            Ok(facts) if facts.kind == FileType::RegularFile => true,
            Ok(_) => {
                let head = [dot_git.to_bytes(), b"/HEAD"].concat();
                stat_at(fd, &head[..]).is_ok()
            }
            Err(_) => false,
        }
    }

    fn closed_by_itself(&self, node: &Node, fd: &OwnedFd) -> bool {
        self.s.sources.nested == Nested::Boundary && !node.is_root() && Self::is_repository(fd, c".git")
    }

    // ---- by record

    /// Walks by the record: known names only, without listing. False, with nothing done, when it does not apply.
    fn by_record(
        &self,
        hand: &mut Hand<'a>,
        node: &Arc<Node>,
        fd: &Arc<OwnedFd>,
        record: &Record,
        passed: bool,
    ) -> bool {
        // Entries are sorted by name, so that the names that matter beforehand come first.
        let mut looked: [Option<(&CStr, super::facts::Facts)>; 2] = [None; 2];
        let mut files = [None, None];
        let mut has_git = false;
        for entry in record.entries().take_while(|e| e.name.to_bytes() <= RWDIGNORE) {
            let at = match entry.name.to_bytes() {
                b".git" => {
                    has_git = true;
                    continue;
                }
                GITIGNORE => 0,
                RWDIGNORE => 1,
                _ => continue,
            };
            match entry.known.what {
                What::File(stamp, id) => {
                    let Ok(facts) = stat_at(fd, entry.name) else { return false };
                    let trust = self.trusts.of(facts.dev, fd.as_fd());
                    if entry.known.flags & flag::RACY != 0 || !trust.same(&stamp, &facts.stamp) {
                        return false;
                    }
                    looked[at] = Some((entry.name, facts));
                    files[at] = Some(RuleFile::stored(id, node.join(entry.name.to_bytes())));
                }
                What::Skipped(..) => return false,
                _ => {}
            }
        }
        let nested = has_git && self.closed_by_itself(node, fd);
        if nested != record.has(dir_flag::NESTED) || (nested && node.closed.is_none() && !self.wants_below(node)) {
            return false;
        }
        let closed = node.closed.or(nested.then_some(SkipReason::NestedRepo));
        let full = self.full(node);
        let level = if closed.is_some() {
            node.above.clone()
        } else {
            let [git, rwd] = files;
            node.above.enter(full.len(), git, rwd)
        };
        if closed.map_or(level.digest, |why| self.closed_digest(why)) != record.head.rules {
            return false;
        }
        let no_temporaries = self.s.temporaries.is_empty();
        if !no_temporaries && record.entries().any(|e| self.is_temporary(e.name.to_bytes())) {
            return false;
        }
        let here = Here { node, fd, closed, level, full, passed };
        {
            let mut state = node.state();
            state.over_record = true;
            state.closed = closed;
            state.level = Some(here.level.clone());
            state.flags |= record.head.flags & dir_flag::NESTED;
            let digest = self.s.tracked.digest;
            state.dirty = record.has(dir_flag::EXCEPTIONS) && digest != 0 && record.head.index != digest;
        }
        for entry in record.entries() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let seen = looked.iter().flatten().find(|(name, _)| *name == entry.name).map(|(_, facts)| facts);
            self.known_entry(hand, &here, record, entry, seen.copied());
        }
        true
    }

    fn known_entry(
        &self,
        hand: &mut Hand<'a>,
        here: &Here<'_>,
        record: &Record,
        entry: EntryRef<'_>,
        seen: Option<super::facts::Facts>,
    ) {
        let Here { node, fd, .. } = *here;
        let known = entry.known;
        let name = entry.name.to_bytes();
        match entry.known.what {
            What::File(stamp, _) | What::Link(stamp, _) if known.flags == 0 => {
                let kind = if matches!(known.what, What::File(..)) { FileType::RegularFile } else { FileType::Symlink };
                // Directories are only walked by record on local file systems, where every field of a stamp counts.
                let same = here.passed
                    || seen.map_or_else(|| stat_at(fd, entry.name), Ok).is_ok_and(|facts| {
                        facts.stamp == stamp
                            && facts.kind == kind
                            && facts.mode == known.mode
                            && facts.dev == record.head.dev
                    });
                if same {
                    self.tick(hand);
                    hand.found.files += 1;
                } else {
                    self.leaf_entry(hand, node, fd, entry.name, 0, Some(known));
                }
            }
            What::Skipped(SkipReason::Name | SkipReason::Reserved, _) => {}
            What::Skipped(SkipReason::NestedRepo, _) if name == b".git" => {}
            What::Skipped(SkipReason::NestedRepo, true) if here.closed.is_none() => {
                // A repository that is left alone: still one, and still nobody's wish?
                let dot_git = [name, b"/.git"].concat();
                let still = CString::new(dot_git).is_ok_and(|path| Self::is_repository(fd, &path));
                let hint: Hint<'_> = Some((record, known));
                let want = self.want_dir(node, &node.join(name), name, SkipReason::NestedRepo, hint);
                if !still || want.any {
                    self.by_name(hand, here, entry.name, true, Some(record), Some(known));
                }
            }
            // The rules are the same, so no rule leaves it out.
            What::Dir(..) if known.flags & flag::WANTED_RULE == 0 => {
                let path = node.join(name);
                let included = node.included || self.s.sources.rules.included(&path);
                let how = Child { included, recorded: Some(known), ..Child::default() };
                self.act(hand, here, entry.name, true, Verdict::Dir(how), Some(known));
            }
            // The rules are the same, so they leave it out; but somebody may want it now.
            What::Skipped(why @ (SkipReason::IgnoredRoot | SkipReason::NestedRepo), is_dir) => {
                let path = node.join(name);
                let verdict = self.judge_left_out(here, &path, name, is_dir, why, Some((record, known)));
                self.act(hand, here, entry.name, is_dir, verdict, Some(known));
            }
            // Everything else depends on more than its stamps.
            What::Dir(..) | What::Skipped(_, true) => {
                self.by_name(hand, here, entry.name, true, Some(record), Some(known));
            }
            _ => self.by_name(hand, here, entry.name, false, Some(record), Some(known)),
        }
    }

    // ---- by listing

    fn by_listing(
        &self,
        hand: &mut Hand<'a>,
        node: &Arc<Node>,
        fd: &Arc<OwnedFd>,
        record: Option<&Record>,
        trust: Trust,
        settled: bool,
    ) -> Result<(), Outcome> {
        let listing = Listing::read(fd, &mut hand.dirents).map_err(|errno| match errno {
            Errno::NOENT => Outcome::Gone,
            _ => Outcome::Skipped(SkipReason::Unreadable),
        })?;
        if !settled {
            let names = listing.digest(|name| !self.is_temporary(name));
            if let Some(dir) = hand.found.dirs.last_mut() {
                dir.names = Some(names);
            }
        }
        let recorded: HashMap<&[u8], Known> =
            record.into_iter().flat_map(Record::entries).map(|e| (e.name.to_bytes(), e.known)).collect();
        let has = |name: &[u8]| listing.has(name);
        let nested = has(b".git") && self.closed_by_itself(node, fd);
        let closed = node.closed.or(nested.then_some(SkipReason::NestedRepo));
        if nested && node.closed.is_none() && !self.wants_below(node) {
            return Err(Outcome::Skipped(SkipReason::NestedRepo));
        }
        let full = self.full(node);
        if let Some(seed) = self.s.seed {
            Self::narrow(seed, node, &full, has(b".gitattributes"));
        }
        let mut rule_files = Vec::new();
        let mut level = node.above.clone();
        if closed.is_none() {
            let mut load = |name: &'static [u8]| {
                let known = recorded.get(name).copied();
                let file = has(name).then(|| self.rule_file_at(node, fd, name, known, trust)).flatten()?;
                rule_files.push((name, file.clone()));
                Some(file.0)
            };
            let (git, rwd) = (load(GITIGNORE), load(RWDIGNORE));
            level = level.enter(full.len(), git, rwd);
        }
        let here = Here { node, fd, closed, level, full, passed: false };
        {
            let mut state = node.state();
            state.closed = closed;
            state.level = Some(here.level.clone());
            state.flags |= if nested { dir_flag::NESTED } else { 0 };
        }
        self.list(hand, &here, &listing, record, &recorded);
        // Chunks of the directory may still be under way, but what is left out is known by now.
        for (name, (file, content)) in rule_files {
            let left_out = {
                let state = node.state();
                state.entries.iter().any(|e| &*e.name == name && matches!(e.what, What::Skipped(..)))
            };
            if left_out {
                let content = content.unwrap_or_else(|| crate::rules::Blobs::rule_file(self, &file));
                lock(&self.loose_rules).insert(node.join(name), (file.id, content));
                node.state().flags |= dir_flag::LOOSE_RULES;
            }
        }
        Ok(())
    }

    /// Finds the entries of the user's index for this directory. One with attributes that the index does not know has
    /// none, nor has anything below it.
    fn narrow(seed: &Seed<'_>, node: &Node, full: &[u8], has_attributes: bool) {
        let within = node.parent.as_ref().map_or_else(|| Some(seed.all()), |parent| parent.seed.get().cloned());
        let own = seed.below(full, within.unwrap_or_default());
        let strange = has_attributes && !seed.knows(full.len(), b".gitattributes", own.clone());
        node.seed.get_or_init(|| if strange { 0..0 } else { own });
    }

    fn list(
        &self,
        hand: &mut Hand<'a>,
        here: &Here<'_>,
        listing: &Listing,
        record: Option<&Record>,
        recorded: &HashMap<&[u8], Known>,
    ) {
        let node = here.node;
        let wide = listing.count > CHUNK;
        let mut chunk = Vec::new();
        for (kind, name) in listing.names() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let bytes = name.to_bytes();
            if node.is_root() && bytes == b".git" {
                continue;
            }
            if self.is_temporary(bytes) {
                // The list is not all that is there, so it must not be taken for complete next time.
                node.state().flags &= !dir_flag::SETTLED;
                continue;
            }
            if bytes.len() > 255 {
                let path = String::from_utf8_lossy(&node.join(bytes)).into_owned();
                self.warn(format!("{path} has a name that is too long; it is not captured"));
                continue;
            }
            // Some file systems do not say what an entry is.
            let is_dir = match kind {
                FileType::Directory => true,
                FileType::Unknown => stat_at(here.fd, name).is_ok_and(|facts| facts.is_dir()),
                _ => false,
            };
            let old = recorded.get(bytes).copied();
            let is_rule_file = bytes == GITIGNORE || bytes == RWDIGNORE;
            if wide && !is_dir && !is_rule_file {
                let hint = record.zip(old);
                match self.judge_name(here, bytes, false, hint) {
                    Verdict::Leaf(flags) => chunk.push(LeafJob { name: name.to_owned(), flags, recorded: old }),
                    Verdict::Skip(why, flags) => Self::note_skip(hand, node, bytes, why, false, flags, None),
                    Verdict::Dir(_) => {}
                }
                if chunk.len() == CHUNK {
                    self.push(hand, node, Job::Leaves(node.clone(), std::mem::take(&mut chunk)));
                }
                continue;
            }
            self.by_name(hand, here, name, is_dir, record, old);
        }
        for leaf in chunk {
            self.leaf_entry(hand, node, here.fd, &leaf.name, leaf.flags, leaf.recorded);
        }
    }

    /// Decides about a name and does what is decided.
    fn by_name(
        &self,
        hand: &mut Hand<'a>,
        here: &Here<'_>,
        name: &CStr,
        is_dir: bool,
        record: Option<&Record>,
        recorded: Option<Known>,
    ) {
        let verdict = self.judge_name(here, name.to_bytes(), is_dir, record.zip(recorded));
        self.act(hand, here, name, is_dir, verdict, recorded);
    }

    fn act(
        &self,
        hand: &mut Hand<'a>,
        here: &Here<'_>,
        name: &CStr,
        is_dir: bool,
        verdict: Verdict,
        recorded: Option<Known>,
    ) {
        let node = here.node;
        match verdict {
            Verdict::Skip(why, flags) => Self::note_skip(hand, node, name.to_bytes(), why, is_dir, flags, recorded),
            Verdict::Leaf(flags) => self.leaf_entry(hand, node, here.fd, name, flags, recorded),
            Verdict::Dir(how) => {
                let path = node.join(name.to_bytes());
                if let Some(known) = recorded.filter(|known| self.is_passed(&path, how, *known)) {
                    let Known { what, mode, flags } = known;
                    return Self::note(hand, node, Entry { name: name.to_bytes().into(), what, mode, flags }, recorded);
                }
                let child = node.child(name.to_owned(), path, here.level.clone(), how);
                self.push(hand, node, Job::Dir(child));
            }
        }
    }

    /// True for a directory that is as the record above it says, with all that is below.
    fn is_passed(&self, path: &[u8], how: Child, known: Known) -> bool {
        matches!(known.what, What::Dir(..))
            && (known.flags, how.flags) == (0, 0)
            && how.closed.is_none()
            && self.visit(path) == Visit::Skip
    }

    fn note_skip(
        hand: &mut Hand<'a>,
        node: &Node,
        name: &[u8],
        why: SkipReason,
        is_dir: bool,
        flags: u8,
        recorded: Option<Known>,
    ) {
        Self::note(hand, node, Entry { name: name.into(), what: What::Skipped(why, is_dir), mode: 0, flags }, recorded);
    }

    fn judge_name(&self, here: &Here<'_>, name: &[u8], is_dir: bool, hint: Hint<'_>) -> Verdict {
        let node = here.node;
        if name == b".git" {
            return Verdict::Skip(SkipReason::NestedRepo, 0);
        }
        if is_git_name(name) {
            return Verdict::Skip(SkipReason::Name, 0);
        }
        let path = node.join(name);
        if self.s.reserved.covers(&path) {
            return Verdict::Skip(SkipReason::Reserved, 0);
        }
        let rules = &self.s.sources.rules;
        let included = node.included || rules.included(&path);
        let why = match here.closed {
            Some(SkipReason::IgnoredRoot) | None if included => None,
            Some(why) => Some(why),
            None => {
                let mut full = Vec::with_capacity(here.full.len() + name.len());
                full.extend_from_slice(&here.full);
                full.extend_from_slice(name);
                rules.ignored(&here.level, &full, is_dir, self).then_some(SkipReason::IgnoredRoot)
            }
        };
        let Some(why) = why else {
            let recorded = hint.map(|(_, entry)| entry);
            let plain = Child { included, recorded, ..Child::default() };
            return if is_dir { Verdict::Dir(plain) } else { Verdict::Leaf(0) };
        };
        self.judge_left_out(here, &path, name, is_dir, why, hint)
    }

    /// A rule leaves it out: does somebody want it all the same?
    fn judge_left_out(
        &self,
        here: &Here<'_>,
        path: &[u8],
        name: &[u8],
        is_dir: bool,
        why: SkipReason,
        hint: Hint<'_>,
    ) -> Verdict {
        let node = here.node;
        if is_dir {
            let want = self.want_dir(node, path, name, why, hint);
            if !want.any {
                return Verdict::Skip(why, want.flags);
            }
            let recorded = hint.map(|(_, entry)| entry);
            let flags = flag::WANTED_RULE | want.flags;
            return Verdict::Dir(Child { closed: Some(why), included: false, wanted: want.this, flags, recorded });
        }
        let want = self.want_leaf(node, path, name, hint);
        if want.this { Verdict::Leaf(flag::WANTED_RULE | want.flags) } else { Verdict::Skip(why, want.flags) }
    }

    /// Is something in this directory wanted although it is a repository of its own?
    fn wants_below(&self, node: &Arc<Node>) -> bool {
        let Some(parent) = node.parent.as_ref() else { return true };
        let hint = parent.record.get().zip(node.recorded);
        let want = self.want_dir(parent, &node.path, node.name.to_bytes(), SkipReason::NestedRepo, hint);
        node.state().entry_flags = want.flags;
        want.any
    }

    fn is_temporary(&self, name: &[u8]) -> bool {
        self.s.temporaries.iter().any(|prefix| name.starts_with(prefix))
    }

    /// The rules of one rule file, and its content when it had to be read. A link is no rule file, as in git.
    fn rule_file_at(
        &self,
        node: &Node,
        fd: &OwnedFd,
        name: &[u8],
        recorded: Option<Known>,
        trust: Trust,
    ) -> Option<Loaded> {
        let facts = stat_at(fd, name).ok().filter(|f| f.kind == FileType::RegularFile)?;
        if let Some(Known { what: What::File(stamp, id), flags, .. }) = recorded
            && flags & flag::RACY == 0
            && !self.s.policy.verify_by_hash
            && trust.same(&stamp, &facts.stamp)
            && self.has(&id)
        {
            return Some((RuleFile::stored(id, node.join(name)), None));
        }
        match read_rule_file(fd, name) {
            Ok((id, content)) => Some((RuleFile::read(id, &content), Some(content))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                self.warn_about_rules(&node.join(name), &error);
                None
            }
        }
    }
}

fn read_rule_file(fd: &OwnedFd, name: &[u8]) -> std::io::Result<(ObjectId, Vec<u8>)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(fd, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    let mut content = Vec::new();
    file.take(MAX_RULE_FILE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_RULE_FILE {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let id = object_id(Kind::Blob, &content).map_err(std::io::Error::other)?;
    Ok((to_core(&id), content))
}

/// Reads a rule file by its path from the root, following no link.
pub(super) fn read_rule_file_below(root: &OwnedFd, path: &[u8]) -> std::io::Result<Vec<u8>> {
    let at = path.iter().rposition(|&b| b == b'/');
    let fd = super::quiet::open(root, at.map_or(&[], |at| &path[..at]))?;
    read_rule_file(&fd, at.map_or(path, |at| &path[at + 1..])).map(|(_, content)| content)
}

/// The names of a directory in one buffer: kind, name, NUL.
pub(super) struct Listing {
    bytes: Vec<u8>,
    count: usize,
}

impl Listing {
    pub(super) fn read(fd: &OwnedFd, dirents: &mut [std::mem::MaybeUninit<u8>]) -> Result<Self, Errno> {
        let mut listing = Self { bytes: Vec::new(), count: 0 };
        let mut entries = RawDir::new(fd, dirents);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            listing.bytes.push(match entry.file_type() {
                FileType::Directory => b'd',
                FileType::Unknown => b'?',
                _ => b'f',
            });
            listing.bytes.extend_from_slice(name.to_bytes_with_nul());
            listing.count += 1;
        }
        Ok(listing)
    }

    fn names(&self) -> impl Iterator<Item = (FileType, &CStr)> {
        self.bytes.split_inclusive(|&b| b == 0).filter_map(|record| {
            let (kind, name) = record.split_first()?;
            let kind = match kind {
                b'd' => FileType::Directory,
                b'?' => FileType::Unknown,
                _ => FileType::RegularFile,
            };
            Some((kind, CStr::from_bytes_with_nul(name).ok()?))
        })
    }

    /// Is the name there? It begins with a dot, as few names do.
    fn has(&self, name: &[u8]) -> bool {
        let is = |record: &[u8]| record.get(1) == Some(&b'.') && record.get(1..record.len() - 1) == Some(name);
        self.bytes.split_inclusive(|&byte| byte == 0).any(is)
    }

    /// Identifies the set of names.
    pub(super) fn digest(&self, counts: impl Fn(&[u8]) -> bool) -> Digest {
        let mut names: Vec<_> = self.names().map(|(_, name)| name.to_bytes()).filter(|name| counts(name)).collect();
        names.sort_unstable();
        digest(names)
    }
}
