//! One workspace of the long run, what is done in it, and what must hold after each deed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use checkpoint_core::{
    CapturePolicy, DriftPolicy, DropWhich, EngineError, Outcome, PointId, PointKind, PointQuery, Quota, Recovery,
    RelPath, RestorePolicy, RestoreRequest, ReverseRequest, SaveRequest, SessionKey, Status, Turn, VerifyLevel,
};

use super::oracle::{Oracle, Truth, is_ignored, truth};
use super::{BUDGET, Dice, child};
use crate::scan::{Scan, differing, text};
use crate::world::{Kind, World, Wrong};

/// How long histories get.
pub(super) const QUOTA: Quota = Quota {
    max_turns: 120,
    max_checkpoints: 40,
    max_gaps: 40,
    max_bytes: BUDGET / 5,
    operations_kept: 20,
    operations_age_ms: 24 * 3600 * 1000,
    session_age_ms: 7 * 24 * 3600 * 1000,
    on_turn_end: true,
};

pub(super) fn policy() -> CapturePolicy {
    CapturePolicy {
        excludes: Some(vec!["*.log".to_owned()]),
        store_max_bytes: BUDGET,
        free_space_floor: 1 << 20,
        ..CapturePolicy::default()
    }
}

/// A session at work.
struct Live {
    key: String,
    turn: u32,
}

pub(super) struct Place {
    name: &'static str,
    pub(super) world: World,
    pub(super) kind: Kind,
    dice: Dice,
    oracle: Oracle,
    live: Vec<Live>,
    /// Sessions so far, turns of each, and how many there may be.
    pub(super) sessions: u32,
    turns_of_each: u32,
    /// The state before the last operation, when it can be taken back.
    last: Option<Scan>,
    /// And the one after it, when it was taken back.
    taken_back: Option<Scan>,
    next_child: u64,
    pub(super) counts: BTreeMap<String, u64>,
    /// Captures since the last look, and what they cost.
    pub(super) captures: u64,
    pub(super) writes: u64,
    pub(super) micros: u64,
    pub(super) peak: u64,
}

impl Place {
    pub(super) fn new(
        name: &'static str,
        kind: Kind,
        seed: u64,
        turns_of_each: u32,
        oracles: &std::path::Path,
    ) -> Self {
        let oracle = Oracle(oracles.join(name));
        fs::create_dir(&oracle.0).unwrap();
        let mut place = Self {
            name,
            world: World::new(kind, seed.is_multiple_of(2), policy()),
            kind,
            dice: Dice(seed),
            oracle,
            live: Vec::new(),
            sessions: 0,
            turns_of_each,
            last: None,
            taken_back: None,
            next_child: 1,
            counts: BTreeMap::new(),
            captures: 0,
            writes: 0,
            micros: 0,
            peak: 0,
        };
        place.reopen();
        for _ in 0..40 {
            place.edit();
        }
        place.open_session();
        place.open_session();
        place
    }

    /// A new process, as far as one process can be: nothing but what is stored survives.
    fn reopen(&mut self) {
        self.world.lock = std::sync::Arc::default();
        self.world.composed(|files| files, |builder| builder.quota(QUOTA));
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    fn open_session(&mut self) {
        self.sessions += 1;
        self.live.push(Live { key: format!("h:{}-{}", self.name, self.sessions), turn: 0 });
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.dice.roll(of) == 0
    }

    fn file(&mut self) -> PathBuf {
        let (d, f) = (self.dice.roll(6), self.dice.roll(16));
        let name = match self.dice.roll(5) {
            0 => format!("f{f}"),
            1 => format!("d{d}/deep/er/f{f}"),
            2 if f < 2 => format!("d{d}/run{f}.log"),
            _ => format!("d{d}/f{f}"),
        };
        self.world.at(&name)
    }

    /// Changes something, as an agent does.
    fn edit(&mut self) {
        let file = self.file();
        let is_file = file.symlink_metadata().is_ok_and(|facts| facts.is_file());
        match self.dice.roll(12) {
            0 if is_file => fs::remove_file(&file).unwrap(),
            1 if is_file => {
                let mode = [0o644, 0o755, 0o600][usize::try_from(self.dice.roll(3)).unwrap()];
                fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            }
            2 if is_file => {
                let to = self.file();
                if room_for(&to, &self.world.root()) && !to.is_dir() {
                    fs::rename(&file, to).unwrap();
                }
            }
            3 if is_file => {
                let mut bytes = fs::read(&file).unwrap();
                bytes.extend(format!("more {}\n", self.dice.roll(1 << 30)).bytes());
                fs::write(&file, bytes).unwrap();
            }
            4 => {
                // A directory where a file was, or the other way round.
                if is_file {
                    fs::remove_file(&file).unwrap();
                    fs::create_dir(&file).unwrap();
                } else if file.is_dir() && !file.is_symlink() {
                    fs::remove_dir_all(&file).unwrap();
                }
            }
            5 if file.symlink_metadata().is_err() && room_for(&file, &self.world.root()) => {
                std::os::unix::fs::symlink(format!("f{}", self.dice.roll(16)), &file).unwrap();
            }
            _ => {
                if file.is_symlink() {
                    fs::remove_file(&file).unwrap();
                }
                if !file.is_dir() && room_for(&file, &self.world.root()) {
                    let lines = if self.one_in(20) { 800 } else { self.dice.roll(40) };
                    let seed = self.dice.roll(1 << 40);
                    let line = |n: u64| format!("line {n} of {}\n", seed.wrapping_mul(n + 1) % 10_007);
                    fs::write(&file, (0..lines).map(line).collect::<String>()).unwrap();
                }
            }
        }
    }

    /// A capture; what it gives is noted outside.
    fn save(&mut self, key: &str, turn: u32, kind: PointKind) {
        let request = SaveRequest { turn: Some(Turn(turn)), ..SaveRequest::of(SessionKey::parse(key).unwrap(), kind) };
        self.world.disk.disarm();
        let begun = std::time::Instant::now();
        let saved = self.world.engine.save(&request).unwrap();
        self.micros += u64::try_from(begun.elapsed().as_micros()).unwrap();
        self.captures += 1;
        self.writes += self.world.disk.steps();
        let out_of_room = saved.skipped.iter().any(|skipped| !is_ignored(skipped.path.as_bytes()));
        assert!(!out_of_room, "{}: {:?}", self.name, saved.skipped);
        self.oracle.note(&saved.point.id, &truth(&self.world.scan()));
        self.count("captures");
    }

    /// Turns, edits in them, and what comes between them.
    pub(super) fn turn(&mut self) -> u32 {
        let both = self.live.len() > 1 && self.one_in(3);
        let who: Vec<usize> = if both { vec![0, 1] } else { vec![self.dice.below(self.live.len())] };
        let mut at = Vec::new();
        for n in &who {
            self.live[*n].turn += 1;
            at.push((self.live[*n].key.clone(), self.live[*n].turn));
        }
        for (key, turn) in &at {
            self.save(key, *turn, PointKind::TurnStart);
            self.edit();
        }
        for _ in 0..=self.dice.roll(3) {
            let (key, turn) = at[self.dice.below(at.len())].clone();
            self.save(&key, turn, PointKind::Mutation);
            for _ in 0..=self.dice.roll(2) {
                self.edit();
            }
        }
        for (key, turn) in &at {
            self.save(key, *turn, PointKind::TurnEnd);
            self.settle();
        }
        (self.last, self.taken_back) = (None, None);
        if self.one_in(8) {
            self.edit();
            self.count("edits by hand");
        }
        self.close_sessions();
        u32::try_from(at.len()).unwrap()
    }

    fn close_sessions(&mut self) {
        for n in (0..self.live.len()).rev() {
            if self.live[n].turn < self.turns_of_each {
                continue;
            }
            let ended = self.live.remove(n);
            if self.one_in(4) {
                let which = DropWhich::Session(SessionKey::parse(&ended.key).unwrap());
                match self.world.engine.drop_points(&which) {
                    Ok(_) => self.count("sessions dropped"),
                    Err(error) => assert_eq!(error.code(), "nothing-to-do", "{error}"),
                }
            }
            self.open_session();
        }
    }

    /// What follows every capture.
    fn settle(&mut self) {
        if self.world.engine.prune_is_due(true).unwrap() {
            let own = self.world.engine.snapshots().usage().unwrap().own_bytes;
            let gone = self.world.engine.prune(own).unwrap().len();
            *self.counts.entry("points pruned".into()).or_default() += gone as u64;
        }
        self.world.engine.index().maintain().unwrap();
        self.world.engine.consolidate().unwrap();
    }

    /// Within the budget, at this moment.
    pub(super) fn budget(&mut self) {
        let own = self.world.engine.snapshots().usage().unwrap().own_bytes;
        self.peak = self.peak.max(own);
        assert!(own <= BUDGET, "{}: {own} bytes of {BUDGET}", self.name);
    }

    fn points(&self) -> Vec<PointId> {
        let query = PointQuery { restorable: true, ..PointQuery::default() };
        self.world.engine.index().points(&query).unwrap().into_iter().map(|point| point.id).collect()
    }

    /// A point of which is known what it held.
    fn some_point(&mut self) -> Option<(PointId, Truth)> {
        let all = self.points();
        for _ in 0..8 {
            let id = *all.get(self.dice.below(all.len().max(1)))?;
            if let Some(held) = self.oracle.get(&id) {
                return Some((id, held));
            }
        }
        None
    }

    fn request(id: &PointId) -> RestoreRequest {
        let policy =
            RestorePolicy { exact: true, drift: DriftPolicy::Overwrite, with_others: true, ..RestorePolicy::default() };
        RestoreRequest { target: id.to_string(), policy, force: true, ..RestoreRequest::default() }
    }

    /// Everything that the point held is there to the byte. What it did not hold is gone, but for what the answer names
    /// as kept (`None`: an answer that names nothing), which is as it was.
    fn is_at(&mut self, held: &Truth, before: &Scan, kept: Option<&[RelPath]>, what: &str) {
        let (now, before) = (truth(&self.world.scan()), truth(before));
        let wrong: Vec<_> = held.iter().filter(|(path, digest)| now.get(*path) != Some(*digest)).collect();
        assert!(wrong.is_empty(), "{} {what}: {wrong:?}", self.name);
        let within = |path: &str, dir: &str| path == dir || path.starts_with(&format!("{dir}/"));
        let is_kept = |path: &str| {
            kept.is_none_or(|kept| {
                kept.iter().map(RelPath::to_lossy).any(|kept| within(path, &kept) || within(&kept, path))
            })
        };
        let mut more = 0;
        for (path, digest) in now.iter().filter(|(path, _)| !held.contains_key(*path)) {
            // A directory that still holds something ignored cannot go.
            let stays = is_kept(path) || self.holds_ignored(path);
            assert!(stays && before.get(path) == Some(digest), "{} {what}: {path} is there", self.name);
            more += 1;
        }
        *self.counts.entry("paths kept that the target did not have".into()).or_default() += more;
    }

    fn holds_ignored(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.world.scan().keys().any(|other| other.starts_with(below.as_bytes()) && is_ignored(other))
    }

    /// To some point, and perhaps back and there again.
    pub(super) fn restore(&mut self) {
        let Some((id, held)) = self.some_point() else { return };
        let before = self.world.scan();
        match self.world.engine.restore(&Self::request(&id)) {
            Ok(done) => self.went(&id, &held, &before, &done),
            Err(error) => self.refused(&before, &error),
        }
        while self.last.is_some() && self.one_in(2) {
            self.back_and_forth();
        }
    }

    fn went(&mut self, id: &PointId, held: &Truth, before: &Scan, done: &Outcome) {
        match done.status {
            Status::Restored => {
                self.is_at(held, before, Some(&done.plan.kept_new), &format!("restored {id}: {:?}", done.notes));
                (self.last, self.taken_back) = (Some(before.clone()), None);
                self.count("restores");
            }
            Status::Nothing => {
                self.is_at(held, before, Some(&done.plan.kept_new), "nothing to do");
                self.count("restores with nothing to do");
            }
            Status::Partial => panic!("{}: {:?}", self.name, done.notes),
        }
    }

    /// Refused: then nothing was written.
    fn refused(&mut self, before: &Scan, error: &EngineError) {
        let code = error.code();
        assert!(["blocked", "decision-needed", "nothing-to-do"].contains(&code), "{}: {code} {error}", self.name);
        assert_eq!(text(&differing(before, &self.world.scan())), Vec::<String>::new(), "{code}: something was written");
        self.count(&format!("refused: {code}"));
    }

    /// Takes the last operation back, or what was taken back again.
    fn back_and_forth(&mut self) {
        let Some(before) = self.last.take() else { return };
        let now = self.world.scan();
        let policy = RestorePolicy { drift: DriftPolicy::Overwrite, with_others: true, ..RestorePolicy::default() };
        let request = ReverseRequest { policy, force: true, ..ReverseRequest::default() };
        let forth = self.taken_back.take();
        let done = if forth.is_some() { self.world.engine.redo(&request) } else { self.world.engine.undo(&request) };
        let done = done.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert_eq!(done.status, Status::Restored, "{:?}", done.notes);
        let wrong = differing(&before, &self.world.scan());
        assert_eq!(text(&wrong), Vec::<String>::new(), "{}: not taken back to the byte", self.name);
        self.count(if forth.is_some() { "redone" } else { "undone" });
        if forth.is_none() {
            (self.last, self.taken_back) = (Some(now), Some(before));
        }
    }

    /// A restore that dies at some step; then one of the ways out.
    pub(super) fn crash(&mut self) {
        let Some((id, held)) = self.some_point() else { return };
        let before = self.world.scan();
        let step = 1 + self.dice.roll(60);
        self.world.trap.set(step, || std::panic::resume_unwind(Box::new("a crash")));
        let engine = self.world.engine.clone();
        let ended = catch_unwind(AssertUnwindSafe(|| engine.restore(&Self::request(&id))));
        drop(engine);
        self.world.trap.disarm();
        self.reopen();
        match ended {
            Ok(Ok(done)) => self.went(&id, &held, &before, &done),
            Ok(Err(error)) => self.refused(&before, &error),
            Err(_) => self.recover(&held, &before, "crashes"),
        }
        (self.last, self.taken_back) = (None, None);
    }

    /// What is open goes one of the two ways, and is exactly there.
    fn recover(&mut self, held: &Truth, before: &Scan, what: &str) {
        if self.world.engine.unfinished().unwrap().is_none() {
            let now = self.world.scan();
            if differing(before, &now).iter().any(|path| !is_ignored(path)) {
                self.is_at(held, before, None, what);
            }
            self.count(&format!("{what} before or after"));
            return;
        }
        let way = if self.one_in(2) { Recovery::Finish } else { Recovery::Back };
        let done = self.world.engine.recover(way).unwrap();
        assert_eq!(done.status, Status::Restored, "{}: {:?}", self.name, done.notes);
        if way == Recovery::Finish {
            self.is_at(held, before, None, "finished");
        } else {
            let wrong = differing(before, &self.world.scan());
            assert_eq!(text(&wrong), Vec::<String>::new(), "{}: not back to the byte", self.name);
        }
        self.count(&format!("{what}, {way:?}"));
    }

    /// Something on the disk goes wrong in the middle of a deed.
    pub(super) fn fault(&mut self) {
        let Some((id, held)) = self.some_point() else { return };
        let before = self.world.scan();
        let wrong =
            [Wrong::Error, Wrong::NoSpace, Wrong::Stop, Wrong::Torn][usize::try_from(self.dice.roll(4)).unwrap()];
        let (at, deed) = (1 + self.dice.roll(24), self.dice.roll(3));
        self.world.disk.arm(at, wrong);
        let ended = match deed {
            0 => self.world.engine.save(&SaveRequest::manual()).map(drop),
            1 => self.world.engine.gc(false).map(drop),
            _ => self.world.engine.restore(&Self::request(&id)).map(drop),
        };
        self.world.disk.disarm();
        self.reopen();
        self.count(if ended.is_err() { "faults that were told" } else { "faults that were not met" });
        self.recover(&held, &before, "faults");
        (self.last, self.taken_back) = (None, None);
    }

    /// Another process is at work and is killed.
    pub(super) fn kill(&mut self) {
        let Some((id, held)) = self.some_point() else { return };
        let before = self.world.scan();
        let deed = ["restore", "restore", "save", "gc"][usize::try_from(self.dice.roll(4)).unwrap()];
        let after = std::time::Duration::from_micros(self.dice.roll(25_000));
        let first = self.next_child << 32;
        self.next_child += 1;
        let order = child::Order {
            dir: self.world.base().to_owned(),
            kind: self.kind,
            deed: deed.to_owned(),
            target: id.to_string(),
            ahead: self.world.clock.ahead(),
            first,
        };
        let finished = child::killed(&order, after);
        self.reopen();
        self.count(if finished { "processes that were done before the kill" } else { "processes killed" });
        self.recover(&held, &before, "kills");
        (self.last, self.taken_back) = (None, None);
    }

    /// The end of a day: what nobody needs goes, and the oracle forgets it too.
    pub(super) fn day(&mut self, deep: bool) {
        self.reopen();
        let own = self.world.engine.snapshots().usage().unwrap().own_bytes;
        self.world.engine.prune(own).unwrap();
        self.world.engine.gc(false).unwrap();
        let points = self.points();
        let names: BTreeSet<String> = points.iter().map(ToString::to_string).collect();
        self.oracle.keep(&names);
        let level = if deep { VerifyLevel::Rehash } else { VerifyLevel::Reachable };
        let verified = self.world.engine.verify(level).unwrap();
        assert!(verified.damaged.is_empty(), "{}: {:?}", self.name, verified.damaged);
        let label = format!("day-{}", self.dice.roll(4));
        if let Some((id, _)) = self.some_point() {
            let point = self.world.engine.index().point(&id).unwrap().unwrap();
            self.world.engine.name(&point, &label, None).unwrap();
        }
        self.count(if deep { "stores rehashed" } else { "stores checked" });
    }

    /// In the end: every so many points, each to the byte.
    pub(super) fn finish(&mut self, most: usize) -> usize {
        self.day(true);
        let points = self.points();
        let mut tried = 0;
        for id in points.iter().rev().step_by((points.len() / most).max(1)) {
            let Some(held) = self.oracle.get(id) else { continue };
            let before = self.world.scan();
            match self.world.engine.restore(&Self::request(id)) {
                Ok(done) => {
                    assert!(matches!(done.status, Status::Restored | Status::Nothing), "{:?}", done.notes);
                    self.is_at(&held, &before, Some(&done.plan.kept_new), "in the end");
                    tried += 1;
                }
                Err(error) => assert_eq!(error.code(), "blocked", "{}: {error}", self.name),
            }
        }
        let litter = self.world.scan().into_keys().filter(|path| path.windows(5).any(|part| part == b".rwd-"));
        assert_eq!(text(&litter.collect::<Vec<_>>()), Vec::<String>::new(), "temporaries");
        tried
    }
}

/// Nothing but directories is above it; they are made.
fn room_for(file: &std::path::Path, root: &std::path::Path) -> bool {
    let above: Vec<_> = file.ancestors().skip(1).take_while(|dir| *dir != root).collect();
    let free = above.iter().all(|dir| dir.symlink_metadata().map_or(true, |facts| facts.is_dir()));
    free && fs::create_dir_all(file.parent().unwrap()).is_ok()
}
