use super::*;
use crate::{Mode, ObjectId};

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn file(n: u8) -> PathState {
    PathState::File { blob: ObjectId::from_bytes([n; 20]), mode: Mode(0o644) }
}

const DIR: PathState = PathState::Dir { mode: Mode(0o755) };
const NOTHING: PathState = PathState::Absent;

struct Set {
    changes: Vec<Change>,
    now: Vec<Skipped>,
    then: Vec<Skipped>,
    attribution: BTreeMap<RelPath, Attribution>,
    evidence: Option<Evidence>,
    policy: RestorePolicy,
}

impl Set {
    fn new(changes: &[(&str, PathState, PathState)]) -> Self {
        Self {
            changes: changes
                .iter()
                .map(|(p, before, after)| Change { path: path(p), before: *before, after: *after })
                .collect(),
            now: Vec::new(),
            then: Vec::new(),
            attribution: BTreeMap::new(),
            evidence: Some(Evidence { usable: true, ..Evidence::default() }),
            policy: RestorePolicy::default(),
        }
    }
    fn exact(mut self) -> Self {
        self.policy.exact = true;
        self
    }
    fn hand_made(mut self, p: &str) -> Self {
        self.attribution.insert(path(p), Attribution { hand_made: true, ..Attribution::default() });
        self
    }
    fn skipped_now(mut self, p: &str, reason: SkipReason) -> Self {
        self.now.push(Skipped { path: path(p), reason });
        self
    }
    fn skipped_then(mut self, p: &str, reason: SkipReason) -> Self {
        self.then.push(Skipped { path: path(p), reason });
        self
    }
    fn live(mut self, p: Option<&str>) -> Self {
        self.evidence.as_mut().unwrap().live.insert(p.map(path));
        self
    }
    fn plan(&self) -> Plan {
        plan(&PlanInput {
            changes: self.changes.clone(),
            skipped_now: &self.now,
            new_dirs: &new_directories(&self.changes),
            skipped_then: &self.then,
            files_now: 10,
            attribution: &self.attribution,
            evidence: self.evidence.as_ref(),
            policy: &self.policy,
            check: &|_| Ok(()),
        })
    }
}

fn names(paths: &[RelPath]) -> Vec<String> {
    paths.iter().map(RelPath::to_lossy).collect()
}

fn order(plan: &Plan) -> Vec<String> {
    plan.changes.iter().map(|c| c.path.to_lossy()).collect()
}

#[test]
fn new_paths_stay_unless_exact() {
    let set = Set::new(&[("gen", DIR, NOTHING), ("gen/a", file(1), NOTHING), ("top", file(2), NOTHING)]);
    let kept = set.plan();
    assert!(kept.is_empty());
    assert_eq!(names(&kept.kept_new), ["gen/a", "top"]);
    let exact = set.exact().plan();
    assert_eq!(names(&exact.remove), ["gen/a", "top"]);
    assert_eq!(order(&exact), ["top", "gen/a", "gen"], "deepest first");
}

/// Model F21: no evidence where the directory was live, where a rule left the path out, or where the target skipped it.
#[test]
fn removal_needs_evidence() {
    let new = [("d/x", file(1), NOTHING)];
    assert_eq!(names(&Set::new(&new).exact().live(Some("d")).plan().kept_new), ["d/x"]);
    assert_eq!(
        names(&Set::new(&new).exact().live(None).plan().remove),
        ["d/x"],
        "the root's listing says nothing of d"
    );
    assert!(Set::new(&new).exact().skipped_then("d/x", SkipReason::TooLarge).plan().is_empty());
    assert!(Set::new(&new).exact().skipped_then("d", SkipReason::Unreadable).plan().is_empty());
    let mut ignored = Set::new(&new).exact();
    ignored.evidence.as_mut().unwrap().ignored_then.insert(path("d/x"));
    assert!(ignored.plan().is_empty());
    let mut useless = Set::new(&new).exact();
    useless.evidence.as_mut().unwrap().usable = false;
    assert!(useless.plan().is_empty());
    // The target did not have `d`: the root's listing is the witness.
    let new = [("d", DIR, NOTHING), ("d/x", file(1), NOTHING)];
    assert!(Set::new(&new).exact().live(None).plan().is_empty());
}

#[test]
fn a_directory_with_something_left_in_it_stays() {
    let set = Set::new(&[("d", DIR, NOTHING), ("d/hand", file(1), NOTHING), ("d/x", file(2), NOTHING)])
        .exact()
        .hand_made("d/hand");
    let plan = set.plan();
    assert_eq!(names(&plan.remove), ["d/x"]);
    assert_eq!(names(&plan.kept_new), ["d/hand"]);
    assert_eq!(names(&plan.hand_made), ["d/hand"]);
    assert!(plan.undecided.is_empty());
    let ignored = Set::new(&[("d", DIR, NOTHING), ("d/x", file(2), NOTHING)])
        .exact()
        .skipped_now("d/secret", SkipReason::IgnoredRoot)
        .plan();
    assert_eq!(names(&ignored.remove), ["d/x"]);
}

/// K-24: content below a directory that must become a file goes into the plan, or blocks it.
#[test]
fn a_directory_gives_way_only_when_all_of_it_is_covered() {
    let swap =
        [("foo", DIR, file(1)), ("foo/deep", DIR, NOTHING), ("foo/deep/x", file(2), NOTHING), ("z", file(3), file(4))];
    let plan = Set::new(&swap).plan();
    assert_eq!(order(&plan), ["foo/deep/x", "foo/deep", "foo", "z"]);
    assert_eq!(names(&plan.remove), ["foo/deep/x"]);
    assert_eq!(names(&plan.overwrite), ["foo", "z"]);
    let blocked = Set::new(&swap).exact().skipped_now("foo/deep/.env", SkipReason::IgnoredRoot).plan();
    assert_eq!(order(&blocked), ["z"]);
    assert_eq!(blocked.blocked[0].cause, Some(path("foo/deep/.env")));
    let asked = Set::new(&swap).hand_made("foo/deep/x").plan();
    assert_eq!(names(&asked.undecided), ["foo/deep/x"]);
    assert_eq!(order(&asked), ["z"]);
}

#[test]
fn a_file_gives_way_to_a_directory_unless_it_is_kept() {
    let swap = [("d", file(1), DIR), ("d/x", NOTHING, file(2))];
    assert_eq!(order(&Set::new(&swap).plan()), ["d", "d/x"]);
    let mut keep = Set::new(&swap).hand_made("d");
    keep.policy.drift = DriftPolicy::Keep;
    let plan = keep.plan();
    assert!(plan.is_empty());
    assert_eq!(plan.blocked, [Blocked { path: path("d/x"), reason: "parent-kept".into(), cause: Some(path("d")) }]);
}

#[test]
fn hand_made_paths_wait_for_a_decision() {
    let set = Set::new(&[("a", file(1), file(2)), ("b", file(1), file(2))]).hand_made("a");
    let ask = set.plan();
    assert_eq!((names(&ask.undecided), order(&ask)), (vec!["a".to_owned()], vec!["b".to_owned()]));
    let mut keep = Set::new(&[("a", file(1), file(2))]).hand_made("a");
    keep.policy.drift = DriftPolicy::Keep;
    assert!(keep.plan().undecided.is_empty() && keep.plan().is_empty());
    let mut named = Set::new(&[("a", file(1), file(2))]).hand_made("a");
    named.policy.overwrite.push(path("a"));
    assert_eq!(names(&named.plan().overwrite), ["a"]);
}

#[test]
fn tj64_what_could_not_be_read_now_is_blocked() {
    let plan = Set::new(&[("a", NOTHING, file(1)), ("s/x", NOTHING, file(1))])
        .skipped_now("a", SkipReason::Unreadable)
        .skipped_now("s", SkipReason::NestedRepo)
        .plan();
    assert!(plan.is_empty());
    assert_eq!(plan.blocked.iter().map(|b| b.reason.as_str()).collect::<Vec<_>>(), ["unreadable", "nested-repo"]);
}

#[test]
fn an_undo_is_exact_by_its_own_record() {
    let mut set = Set::new(&[("new", file(1), NOTHING)]);
    set.evidence = None;
    assert_eq!(names(&set.plan().remove), ["new"]);
    let mut edited = Set::new(&[("new", file(1), NOTHING)]).hand_made("new");
    edited.evidence = None;
    assert_eq!(names(&edited.plan().undecided), ["new"]);
}

#[test]
fn only_permission_bits() {
    let other = PathState::File { blob: ObjectId::from_bytes([1; 20]), mode: Mode(0o755) };
    let plan = Set::new(&[("run.sh", file(1), other)]).plan();
    assert_eq!(names(&plan.mode), ["run.sh"]);
    assert_eq!(plan.unchanged, 9);
}

/// TJ18, design § 7 "Selection": the path itself, what lies below, and the directories that lead there.
#[test]
fn tj18_selection_is_literal() {
    let changes = Set::new(&[
        ("a[1].txt", file(1), file(2)),
        ("a1.txt", file(1), file(2)),
        ("d", NOTHING, DIR),
        ("d/e", NOTHING, file(1)),
        ("d/f", NOTHING, file(1)),
    ])
    .changes;
    let chosen: Vec<_> =
        select(changes, &[path("a[1].txt"), path("d/e")]).into_iter().map(|c| c.path.to_lossy()).collect();
    assert_eq!(chosen, ["a[1].txt", "d", "d/e"]);
}

/// A read-only directory can be filled by an ordinary user: its mode comes last, and first on the way back.
#[test]
fn a_read_only_directory_is_closed_after_it_is_filled() {
    let closed = PathState::Dir { mode: Mode(0o555) };
    let plan = Set::new(&[("d", NOTHING, closed), ("d/x", NOTHING, file(1)), ("e", NOTHING, closed)]).plan();
    assert_eq!(order(&plan), ["d", "e", "d/x", "d"]);
    assert_eq!(plan.changes[0].after, PathState::Dir { mode: Mode(0o755) });
    assert_eq!(plan.changes[3].before, plan.changes[0].after);
    assert_eq!(plan.changes[3].after, closed);
}

#[test]
fn what_lies_below_a_link_that_becomes_a_directory_is_no_obstacle() {
    let link = PathState::Link { blob: ObjectId::from_bytes([9; 20]) };
    let set = Set::new(&[("d", link, DIR), ("d/x", NOTHING, file(1)), ("e/y", NOTHING, file(1))]);
    let plan = plan(&PlanInput {
        changes: set.changes.clone(),
        skipped_now: &[],
        new_dirs: &BTreeSet::new(),
        skipped_then: &[],
        files_now: 1,
        attribution: &set.attribution,
        evidence: set.evidence.as_ref(),
        policy: &set.policy,
        check: &|c| if c.path == path("d") { Ok(()) } else { Err(FsError::ThroughLink { path: c.path.clone() }) },
    });
    assert_eq!(order(&plan), ["d", "d/x"]);
    assert_eq!(plan.blocked[0].path, path("e/y"));
}

/// Who removed a directory by hand decides about what was in it, not about the directory.
#[test]
fn a_directory_that_leads_somewhere_is_decided_by_what_it_leads_to() {
    let gone = [("d", NOTHING, DIR), ("d/x", NOTHING, file(1)), ("d/y", NOTHING, file(2))];
    let set = || Set::new(&gone).hand_made("d").hand_made("d/x").hand_made("d/y");
    let asked = set().plan();
    assert_eq!(names(&asked.undecided), ["d/x", "d/y"]);
    assert!(asked.blocked.is_empty() && asked.is_empty());
    let mut keep = set();
    keep.policy.drift = DriftPolicy::Keep;
    assert!(keep.plan().blocked.is_empty() && keep.plan().is_empty());
    let mut one = set();
    one.policy.overwrite.push(path("d/y"));
    one.policy.drift = DriftPolicy::Keep;
    assert_eq!(order(&one.plan()), ["d", "d/y"]);
}

/// A selection does not turn a new directory into a witness for what it holds.
#[test]
fn a_selection_changes_no_evidence() {
    let all = Set::new(&[("d", DIR, NOTHING), ("d/f", file(1), NOTHING)]).exact().live(None);
    let plan = plan(&PlanInput {
        changes: select(all.changes.clone(), &[path("d/f")]),
        skipped_now: &[],
        skipped_then: &[],
        new_dirs: &new_directories(&all.changes),
        files_now: 1,
        attribution: &all.attribution,
        evidence: all.evidence.as_ref(),
        policy: &all.policy,
        check: &|_| Ok(()),
    });
    assert!(plan.is_empty());
    assert_eq!(names(&plan.kept_new), ["d/f"]);
}

/// Removing an empty directory by hand is no reason to ask; the files that were in it are asked about by themselves.
#[test]
fn a_directory_that_comes_back_needs_no_decision() {
    let mut set = Set::new(&[("a", file(1), file(2)), ("dir", NOTHING, DIR)]).hand_made("dir");
    let free = set.plan();
    assert_eq!((order(&free), names(&free.undecided)), (vec!["dir".to_owned(), "a".to_owned()], Vec::new()));
    set.policy.drift = DriftPolicy::Keep;
    assert_eq!((order(&set.plan()), names(&set.plan().hand_made)), (vec!["a".to_owned()], vec!["dir".to_owned()]));
    let full = Set::new(&[("dir", NOTHING, DIR), ("dir/f", NOTHING, file(1))]).hand_made("dir").hand_made("dir/f");
    assert_eq!(names(&full.plan().undecided), ["dir/f"]);
    let other = Attribution { foreign: true, ..Attribution::default() };
    let mut set = Set::new(&[("dir", NOTHING, DIR)]);
    set.attribution.insert(path("dir"), other);
    assert_eq!(names(&set.plan().undecided), ["dir"]);
}
