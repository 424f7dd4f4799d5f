//! Random histories of a workspace: edits by turns and by hand, captures, restores, undo, redo, crashes, gc, reopening.
//!
//! What is compared with is the directory itself, scanned byte for byte at every point. `PROPTEST_CASES` sets how many.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use checkpoint_core::{
    CapturePolicy, DriftPolicy, EngineError, Outcome, Plan, Point, PointKind, Recovery, RelPath, RestorePolicy,
    RestoreRequest, Skipped, Status, VerifyLevel,
};
use proptest::prelude::*;

use crate::scan::{Entry, Scan, differing, scan, text};
use crate::world::{Kind, World, undo};

/// Small enough that files grow past it.
const CAP: u64 = 64;
const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"d",
    b"d/x",
    b"d/e",
    b"d/e/y",
    b"d/x/z",
    b"log.log",
    b"build",
    b"build/o",
    b"sp ace",
    b"-dash",
    b"new\nline",
    b"\xff",
    b"d/.gitignore",
];
const RULES: &[&str] = &["", "*.log\n", "build/\n", "*.log\nbuild/\n", "a\n"];
const MODES: &[u32] = &[0o644, 0o600, 0o755, 0o700, 0o640, 0o444, 0o4755];

#[derive(Clone, Debug)]
enum Edit {
    Write(usize, u8, usize),
    Remove(usize),
    Dir(usize),
    Link(usize, usize),
    Fifo(usize),
    Mode(usize, usize),
    Rename(usize, usize),
    Rules(usize),
}

#[derive(Clone, Debug)]
enum Action {
    Edit(Edit),
    TurnStart,
    TurnEnd,
    Interrupt,
    Mutation,
    Save,
    To { pick: usize, exact: bool, ask: bool, during: Option<Edit> },
    Undo { ask: bool },
    Redo,
    Crash { pick: usize, at: u64, back: bool },
    Gc,
    Reopen,
    LoseGit,
}

fn edits() -> impl Strategy<Value = Edit> {
    let name = 0..NAMES.len();
    prop_oneof![
        6 => (name.clone(), any::<u8>(), prop_oneof![Just(0usize), 1..20usize, 60..70usize]).prop_map(|(n, c, len)| Edit::Write(n, c, len)),
        3 => name.clone().prop_map(Edit::Remove),
        2 => name.clone().prop_map(Edit::Dir),
        2 => (name.clone(), 0..5usize).prop_map(|(n, t)| Edit::Link(n, t)),
        1 => name.clone().prop_map(Edit::Fifo),
        2 => (name.clone(), 0..MODES.len()).prop_map(|(n, m)| Edit::Mode(n, m)),
        2 => (name.clone(), name).prop_map(|(a, b)| Edit::Rename(a, b)),
        1 => (0..RULES.len()).prop_map(Edit::Rules),
    ]
}

/// What comes after a turn: operations, and what they must survive.
fn operations() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (any::<usize>(), any::<bool>(), any::<bool>(), proptest::option::weighted(0.2, edits()))
            .prop_map(|(pick, exact, ask, during)| Action::To { pick, exact, ask, during }),
        4 => any::<bool>().prop_map(|ask| Action::Undo { ask }),
        2 => Just(Action::Redo),
        5 => (any::<usize>(), 1..40u64, any::<bool>()).prop_map(|(pick, at, back)| Action::Crash { pick, at, back }),
        1 => Just(Action::Save),
        1 => Just(Action::Gc),
        1 => Just(Action::Reopen),
        1 => Just(Action::LoseGit),
        2 => edits().prop_map(Action::Edit),
    ]
}

fn some_edits(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Action>> {
    proptest::collection::vec(edits().prop_map(Action::Edit), range)
}

/// Edits by hand, a turn with its edits and its end or an interrupt or none, edits by hand, operations.
fn round() -> impl Strategy<Value = Vec<Action>> {
    let ends = prop_oneof![6 => Just(vec![Action::TurnEnd]), 2 => Just(vec![Action::Interrupt]), 1 => Just(vec![])];
    let starts = prop_oneof![5 => Just(Action::TurnStart), 2 => Just(Action::Save)];
    let middle = prop_oneof![3 => Just(vec![]), 1 => Just(vec![Action::Mutation])];
    let parts = (some_edits(0..4), starts, some_edits(1..5), middle, some_edits(0..3), ends, some_edits(0..2));
    (parts, proptest::collection::vec(operations(), 1..4)).prop_map(
        |((hand, start, work, middle, more, end, late), operations)| {
            [hand, vec![start], work, middle, more, end, late, operations].concat()
        },
    )
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    (some_edits(3..8), proptest::collection::vec(round(), 1..5))
        .prop_map(|(first, rounds)| [first, rounds.concat()].concat())
}

fn at(root: &Path, n: usize) -> PathBuf {
    root.join(OsString::from_vec(NAMES[n].to_vec()))
}

/// Does what it can: an edit that makes no sense where things stand does nothing.
fn perform(root: &Path, edit: &Edit) {
    let clear = |path: &Path| match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).is_ok(),
        Ok(_) => fs::remove_file(path).is_ok(),
        Err(_) => true,
    };
    match edit {
        Edit::Write(n, c, len) => {
            let path = at(root, *n);
            let blocked = path.symlink_metadata().is_ok_and(|meta| !meta.is_file());
            if !blocked || clear(&path) {
                if let Some(parent) = path.parent() {
                    drop(fs::create_dir_all(parent));
                }
                // A comment where it becomes a `.gitignore`: a random rule there would leave out what no oracle expects.
                let mut content = vec![*c; *len];
                if let Some(first) = content.first_mut() {
                    *first = b'#';
                }
                drop(fs::write(&path, content));
            }
        }
        Edit::Remove(n) => {
            clear(&at(root, *n));
        }
        Edit::Dir(n) => {
            let path = at(root, *n);
            if path.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
                clear(&path);
            }
            drop(fs::create_dir(&path));
        }
        Edit::Link(n, to) => {
            let path = at(root, *n);
            let target = ["a", "../outside/victim", "nowhere", ".", "d"][*to];
            if clear(&path) {
                drop(symlink(target, &path));
            }
        }
        Edit::Fifo(n) => {
            let path = at(root, *n);
            if clear(&path) && path.parent().is_some_and(Path::is_dir) {
                drop(
                    std::process::Command::new("mkfifo")
                        .arg("-m")
                        .arg("640")
                        .arg("--")
                        .arg(&path)
                        .stderr(std::process::Stdio::null())
                        .status(),
                );
            }
        }
        Edit::Mode(n, mode) => {
            let path = at(root, *n);
            if let Ok(meta) = path.symlink_metadata() {
                let mode = if meta.is_dir() { MODES[*mode] & 0o777 | 0o700 } else { MODES[*mode] };
                if !meta.is_symlink() {
                    drop(fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
                }
            }
        }
        Edit::Rename(a, b) => {
            drop(fs::rename(at(root, *a), at(root, *b)));
        }
        Edit::Rules(n) => {
            let path = root.join(".gitignore");
            if clear(&path) {
                drop(fs::write(path, RULES[*n]));
            }
        }
    }
}

/// A point with what the directory held when it was made.
struct Shadow {
    point: Point,
    skipped: Vec<Skipped>,
    scan: Scan,
    /// Length of the edit log when it was made.
    edits: usize,
}

/// Somebody outside any turn changed a path.
struct ByHand {
    number: usize,
    path: Vec<u8>,
    /// A manual save has taken responsibility since.
    saved: bool,
    closed: bool,
    /// An operation has written it since.
    overwritten: bool,
}

struct Machine {
    world: World,
    points: Vec<Shadow>,
    by_hand: Vec<ByHand>,
    edits_made: usize,
    /// Scan before the operation, plan of it.
    last: Option<(Scan, Plan, usize)>,
    turn: u32,
    open: bool,
    interrupted: bool,
    outside: Scan,
    /// What the latest record held: an edit that was taken back before anybody looked never was.
    recorded: Scan,
}

impl Machine {
    fn new(kind: Kind, git: bool) -> Self {
        let policy = CapturePolicy { untracked_max_bytes: CAP, ..CapturePolicy::default() };
        let world = World::new(kind, git, policy);
        let outside = scan(&world.base().join("outside"), true);
        Self {
            world,
            points: Vec::new(),
            by_hand: Vec::new(),
            edits_made: 0,
            last: None,
            turn: 0,
            open: false,
            interrupted: false,
            outside,
            recorded: Scan::new(),
        }
    }

    fn edit(&mut self, edit: &Edit) {
        let before = self.world.scan();
        perform(&self.world.root(), edit);
        let after = self.world.scan();
        self.note_edits(&before, &after);
    }

    fn note_edits(&mut self, before: &Scan, after: &Scan) {
        if !self.open && !self.interrupted {
            // Modes of directories on both sides are nobody's change: a restore leaves them.
            let counts = |path: &Vec<u8>| {
                !matches!((before.get(path), after.get(path)), (Some(Entry::Dir(_)), Some(Entry::Dir(_))))
            };
            for path in differing(before, after).into_iter().filter(counts) {
                self.edits_made += 1;
                self.by_hand.push(ByHand {
                    number: self.edits_made - 1,
                    path,
                    saved: false,
                    closed: false,
                    overwritten: false,
                });
            }
        }
    }

    fn record(&mut self, kind: PointKind) {
        let before = scan(&self.world.root(), true);
        let (session, turn) = match kind {
            PointKind::Manual => ("local", 0),
            _ => ("h:s", self.turn),
        };
        let saved = if kind == PointKind::Manual { self.world.save() } else { self.world.event(session, turn, kind) };
        assert_eq!(
            text(&differing(&before, &scan(&self.world.root(), true))),
            Vec::<String>::new(),
            "a capture changed something"
        );
        let before_git_less = self.world.scan();
        let manual = kind == PointKind::Manual && !self.open && !self.interrupted;
        if saved.created {
            self.close_edits(manual, &before_git_less);
            self.interrupted = false;
            self.recorded.clone_from(&before_git_less);
        }
        self.points.push(Shadow {
            point: saved.point,
            skipped: saved.skipped,
            scan: self.world.scan(),
            edits: self.edits_made,
        });
    }

    fn close_edits(&mut self, manual: bool, now: &Scan) {
        let recorded = &self.recorded;
        // What a rule leaves out and no point holds is invisible to a capture: it reads as absent.
        let seen = |scan: &Scan, path: &Vec<u8>| {
            let left_out = |entry: &Entry| {
                matches!(entry, Entry::File { bytes, .. } if bytes.len() as u64 >= CAP) || ignorable(path)
            };
            scan.get(path).filter(|entry| !left_out(entry)).cloned()
        };
        self.by_hand.retain(|edit| edit.closed || seen(recorded, &edit.path) != seen(now, &edit.path));
        for edit in self.by_hand.iter_mut().filter(|edit| !edit.closed) {
            edit.closed = true;
            edit.saved = manual;
        }
    }

    fn policy(exact: bool, ask: bool) -> RestorePolicy {
        let drift = if ask { DriftPolicy::Ask } else { DriftPolicy::Overwrite };
        RestorePolicy { exact, drift, with_others: !ask, skip_blocked: !ask, ..RestorePolicy::default() }
    }

    fn restore(&mut self, pick: usize, exact: bool, ask: bool, during: Option<Edit>) {
        let Some(at) = pick.checked_rem(self.points.len()) else { return };
        let request = RestoreRequest {
            target: self.points[at].point.id.to_string(),
            policy: Self::policy(exact, ask),
            force: true,
            ..RestoreRequest::default()
        };
        let mut before = self.world.scan();
        let edited = Arc::new(Mutex::new(None));
        if let Some(edit) = during {
            // The question is answered only after this; what it changes is by hand or by the turn like any edit.
            let (root, edited) = (self.world.root(), Arc::clone(&edited));
            self.world.approver.after(move || {
                perform(&root, &edit);
                *edited.lock().unwrap() = Some(scan(&root, false));
            });
        }
        let result = self.world.engine.restore(&request);
        self.world.approver.after(|| {});
        if let Some(edited) = edited.lock().unwrap().take() {
            self.note_edits(&before, &edited);
            before = edited;
        }
        tally(&format!("to ask={ask} {}", label(&result)));
        match result {
            Ok(done) if done.status == Status::Nothing => {
                assert_eq!(text(&differing(&before, &self.world.scan())), Vec::<String>::new());
            }
            Ok(done) => self.restored(at, &before, &done, exact, ask),
            Err(error) => self.refused(&before, &error),
        }
    }

    fn refused(&self, before: &Scan, error: &EngineError) {
        let fine = matches!(
            error,
            EngineError::Stale { .. }
                | EngineError::Undecided { .. }
                | EngineError::Blocked { .. }
                | EngineError::Nothing { .. }
                | EngineError::Changed { .. }
        );
        assert!(fine, "{error:?}");
        if !matches!(error, EngineError::Changed { .. }) {
            assert_eq!(
                text(&differing(before, &self.world.scan())),
                Vec::<String>::new(),
                "refused, yet something was written"
            );
        }
    }

    fn restored(&mut self, at: usize, before: &Scan, done: &Outcome, exact: bool, ask: bool) {
        // The guard looked: what had been taken back by then never was.
        self.close_edits(false, before);
        let after = self.world.scan();
        let touched = differing(before, &after);
        let planned: BTreeSet<&[u8]> = done.plan.changes.iter().map(|c| c.path.as_bytes()).collect();
        for path in &touched {
            assert!(
                planned.contains(path.as_slice()),
                "{:?} was touched and not planned",
                text(std::slice::from_ref(path))
            );
        }
        let shadow = &self.points[at];
        Self::holds_target(shadow, before, &after, done, exact);
        if ask {
            let local = shadow.point.session.is_local();
            // There are no bytes in a directory: one that comes back is nobody's question, and one that goes with what
            // lies below it is decided by that.
            let is_frame = |path: &Vec<u8>| match (before.get(path), after.get(path)) {
                (None, Some(Entry::Dir(_))) => true,
                (Some(Entry::Dir(_)), None) => touched.iter().any(|other| other != path && at_or_below(other, path)),
                _ => false,
            };
            let counts = |e: &&ByHand| e.number >= shadow.edits && !e.overwritten && !(local && e.saved);
            for edit in self.by_hand.iter().filter(counts).filter(|e| !is_frame(&e.path)) {
                assert!(
                    !touched.contains(&edit.path),
                    "{:?} was changed by hand and overwritten unasked: {:?} -> {:?}\n{:#?}",
                    text(std::slice::from_ref(&edit.path)),
                    before.get(&edit.path),
                    after.get(&edit.path),
                    done.plan
                );
            }
        }
        self.after_operation(before, &touched);
        self.last = Some((before.clone(), done.plan.clone(), self.edits_made));
    }

    /// An operation's guard closes the interval, and what it wrote is no longer the hand's.
    fn after_operation(&mut self, before: &Scan, touched: &[Vec<u8>]) {
        self.close_edits(false, before);
        self.recorded = self.world.scan();
        self.interrupted = false;
        for edit in &mut self.by_hand {
            edit.overwritten |= touched.contains(&edit.path);
        }
    }

    /// Every covered path of the target holds what it held then; what is new was kept with a reason.
    fn holds_target(shadow: &Shadow, before: &Scan, after: &Scan, done: &Outcome, exact: bool) {
        let skipped = |path: &[u8]| shadow.skipped.iter().any(|s| at_or_below(path, s.path.as_bytes()));
        let blocked = |path: &[u8]| {
            let all = done
                .plan
                .blocked
                .iter()
                .map(|b| b.path.as_bytes())
                .chain(done.plan.hand_made.iter().map(RelPath::as_bytes));
            all.into_iter().any(|b| at_or_below(path, b))
        };
        for (path, then) in &shadow.scan {
            if skipped(path) || blocked(path) {
                continue;
            }
            let same = match (then, after.get(path)) {
                // Directories that the restore did not make keep their mode.
                (Entry::Dir(_), Some(Entry::Dir(_))) => true,
                (then, now) => Some(then) == now,
            };
            assert!(
                same,
                "{:?} should hold {then:?} and holds {:?}",
                text(std::slice::from_ref(path)),
                after.get(path)
            );
        }
        for (path, now) in after.iter().filter(|(path, _)| !shadow.scan.contains_key(*path)) {
            assert_eq!(before.get(path), Some(now), "{:?} is new and was changed", text(std::slice::from_ref(path)));
            let kept =
                done.plan.kept_new.iter().any(|k| at_or_below(path, k.as_bytes()) || at_or_below(k.as_bytes(), path));
            let left_out = ignorable(path)
                || skipped(path)
                || matches!(now, Entry::File { bytes, .. } if bytes.len() as u64 >= CAP);
            let holds_something = matches!(now, Entry::Dir(_));
            assert!(
                kept || left_out || holds_something || blocked(path) || !exact,
                "{:?} stayed without a word",
                text(std::slice::from_ref(path))
            );
        }
    }

    fn undo(&mut self, ask: bool) {
        let before = self.world.scan();
        let request = checkpoint_core::ReverseRequest { policy: Self::policy(true, ask), ..undo() };
        let result = self.world.engine.undo(&request);
        tally(&format!("undo ask={ask} {}", label(&result)));
        match result {
            Ok(done) if done.status == Status::Nothing => {}
            Ok(done) => {
                self.close_edits(false, &before);
                let after = self.world.scan();
                let touched = differing(&before, &after);
                let planned: BTreeSet<&[u8]> = done.plan.changes.iter().map(|c| c.path.as_bytes()).collect();
                assert!(touched.iter().all(|path| planned.contains(path.as_slice())), "touched {:?}", text(&touched));
                if let Some((original, plan, edits)) = self.last.take() {
                    if ask {
                        let comes_back =
                            |path: &Vec<u8>| matches!((before.get(path), after.get(path)), (None, Some(Entry::Dir(_))));
                        let counts = |e: &&ByHand| e.number >= edits && !e.overwritten && !comes_back(&e.path);
                        for edit in self.by_hand.iter().filter(counts) {
                            assert!(
                                !touched.contains(&edit.path),
                                "{:?} was changed by hand and undone",
                                text(std::slice::from_ref(&edit.path))
                            );
                        }
                    }
                    for change in plan.changes.iter().filter(|c| !c.before.is_dir() && !c.after.is_dir()) {
                        let path = change.path.as_bytes();
                        if !done.plan.blocked.iter().any(|b| at_or_below(path, b.path.as_bytes())) {
                            assert_eq!(after.get(path), original.get(path), "{:?} after undo", text(&[path.to_vec()]));
                        }
                    }
                }
                self.after_operation(&before, &touched);
                self.last = None;
            }
            Err(error) => self.refused(&before, &error),
        }
    }

    fn redo(&mut self) {
        let before = self.world.scan();
        let request = checkpoint_core::ReverseRequest { policy: Self::policy(true, false), ..undo() };
        let result = self.world.engine.redo(&request);
        tally(&format!("redo {}", label(&result)));
        match result {
            Ok(_) => {
                let touched = differing(&before, &self.world.scan());
                self.after_operation(&before, &touched);
                self.last = None;
            }
            Err(error) => self.refused(&before, &error),
        }
    }

    fn crash(&mut self, pick: usize, step: u64, back: bool) {
        let Some(at) = pick.checked_rem(self.points.len()) else { return };
        let request = RestoreRequest {
            target: self.points[at].point.id.to_string(),
            policy: Self::policy(true, false),
            force: true,
            ..RestoreRequest::default()
        };
        let before = self.world.scan();
        self.world.trap.set(step, || std::panic::resume_unwind(Box::new("crash")));
        let engine = self.world.engine.clone();
        let result = catch_unwind(AssertUnwindSafe(|| engine.restore(&request)));
        self.world.trap.disarm();
        self.world.reopen();
        match result {
            Ok(Ok(done)) if done.status != Status::Nothing => self.restored(at, &before, &done, true, false),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => self.refused(&before, &error),
            Err(_) => {
                tally(&format!("crash back={back}"));
                let how = if back { Recovery::Back } else { Recovery::Finish };
                let done = self.world.engine.recover(how).unwrap();
                let after = self.world.scan();
                assert_eq!(done.status, Status::Restored, "{:?}", done.notes);
                if back {
                    assert_eq!(text(&differing(&before, &after)), Vec::<String>::new());
                } else {
                    let shadow = &self.points[at];
                    for change in &done.plan.changes {
                        let path = change.path.as_bytes();
                        let same = match (shadow.scan.get(path), after.get(path)) {
                            (Some(Entry::Dir(_)), Some(Entry::Dir(_))) => true,
                            (then, now) => then == now,
                        };
                        assert!(same, "{:?} after a finished crash", text(&[path.to_vec()]));
                    }
                }
                self.after_operation(&before, &differing(&before, &after));
                self.last = None;
            }
        }
    }

    fn step(&mut self, action: Action) {
        match action {
            Action::Edit(edit) => self.edit(&edit),
            Action::TurnStart => {
                self.turn += 1;
                self.record(PointKind::TurnStart);
                self.open = true;
            }
            Action::TurnEnd if self.open => {
                self.record(PointKind::TurnEnd);
                self.open = false;
            }
            Action::Interrupt if self.open => {
                self.world.engine.interrupt(&checkpoint_core::SessionKey::parse("h:s").unwrap()).unwrap();
                self.open = false;
                self.interrupted = true;
            }
            Action::Mutation if self.open => self.record(PointKind::Mutation),
            Action::TurnEnd | Action::Interrupt | Action::Mutation => {}
            Action::Save => self.record(PointKind::Manual),
            Action::To { pick, exact, ask, during } => self.restore(pick, exact, ask, during),
            Action::Undo { ask } => self.undo(ask),
            Action::Redo => self.redo(),
            Action::Crash { pick, at, back } => self.crash(pick, at, back),
            Action::Gc => {
                self.world.engine.gc(false).unwrap();
                self.verify();
            }
            Action::Reopen => self.world.reopen(),
            Action::LoseGit => {
                let git = self.world.root().join(".git");
                if git.exists() {
                    fs::remove_dir_all(git).unwrap();
                }
            }
        }
        let leftovers: Vec<_> = self.world.scan().into_keys().filter(|p| p.windows(5).any(|w| w == b".rwd-")).collect();
        assert_eq!(text(&leftovers), Vec::<String>::new(), "temporaries");
        assert_eq!(
            scan(&self.world.base().join("outside"), true),
            self.outside,
            "something outside the workspace changed"
        );
    }

    fn verify(&self) {
        let verified = self.world.engine.verify(VerifyLevel::Rehash).unwrap();
        assert!(verified.damaged.is_empty(), "{:?}", verified.damaged);
    }
}

/// Counts what happened, so that a run can be seen to have exercised what it claims.
static TALLY: Mutex<std::collections::BTreeMap<String, u32>> = Mutex::new(std::collections::BTreeMap::new());

fn tally(what: &str) {
    *TALLY.lock().unwrap().entry(what.to_owned()).or_default() += 1;
}

fn label(result: &Result<Outcome, EngineError>) -> String {
    match result {
        Ok(done) => format!("{:?}", done.status),
        Err(error) => error.code().to_owned(),
    }
}

fn at_or_below(path: &[u8], dir: &[u8]) -> bool {
    path == dir || path.strip_prefix(dir).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Some rule of the alphabet may ignore it.
fn ignorable(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').any(|part| part.ends_with(b".log"))
        || at_or_below(path, b"build")
        || at_or_below(path, b"dist")
        || path == b"a"
        || path.starts_with(b"a/")
        || path.ends_with(b"/a")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 400, ..ProptestConfig::default() })]

    /// Round trip, read-only captures, exact undo, touched ⊆ previewed, nothing through links, hand-made never
    /// overwritten undecided, removal only on evidence, gc loses nothing, every crash recovers.
    #[test]
    fn any_history_keeps_every_promise(
        kind in prop_oneof![4 => Just(Kind::Memory), 1 => Just(Kind::Json), 1 => Just(Kind::Sqlite)],
        git in any::<bool>(),
        actions in actions(),
    ) {
        let mut machine = Machine::new(kind, git);
        for action in actions {
            machine.step(action);
        }
        machine.world.engine.gc(false).unwrap();
        machine.verify();
    }
}

/// Found by chance: each was a fault once.
#[test]
fn histories_that_once_broke_a_promise() {
    let to = |pick, exact, ask| Action::To { pick, exact, ask, during: None };
    let edit = Action::Edit;
    let histories = [vec![
        edit(Edit::Write(7, 0, 0)),
        edit(Edit::Link(3, 0)),
        Action::TurnStart,
        edit(Edit::Write(3, 0, 0)),
        Action::Mutation,
        Action::TurnEnd,
        to(0, true, false),
        to(1, false, false),
        edit(Edit::Write(2, 0, 64)),
        Action::TurnStart,
        edit(Edit::Write(0, 0, 0)),
        edit(Edit::Dir(2)),
        Action::TurnEnd,
        to(0, true, true),
    ]];
    for history in histories {
        for git in [false, true] {
            let mut machine = Machine::new(Kind::Memory, git);
            for action in history.clone() {
                machine.step(action);
            }
        }
    }
}

#[test]
fn zz_the_histories_were_worth_running() {
    // Runs on its own too: then there is nothing to count.
    let tally = TALLY.lock().unwrap().clone();
    if std::env::var_os("RWD_SHOW_TALLY").is_some() {
        eprintln!("{tally:#?}");
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(256)
}
