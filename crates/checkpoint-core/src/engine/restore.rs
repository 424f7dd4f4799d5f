//! Previews and restores: from an address to a plan. What follows is in `transaction`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::history::{Family, Interval, changes_after, history_at};
use crate::parallel::map_in_parallel;
use crate::plan::{Coverage, Evidence, PlanInput, new_directories, plan, select};
use crate::{
    Attribution, Captured, Change, Consistency, Cut, EngineError, FilesWhere, FsError, History, IndexError, Member,
    ObjectId, OpKind, Operation, Ord, Outcome, PathState, Plan, Point, PointKind, Preview, RelPath, RestorePolicy,
    RestoreRequest, ReverseRequest, Scope, SessionError, SessionKey, SkipReason, Snapshot, SnapshotError,
};

use super::Engine;
use super::attribution::{Latest, Since, Walk};

/// Records that may turn out damaged, one after the other, while a plan is made.
const LOOKS: usize = 64;

/// What is known of each planned path.
type Attributions = BTreeMap<RelPath, Attribution>;

/// Where an operation goes.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// To a point.
    Point(Box<Point>),
    /// Back from an operation: to what each path held before it.
    Reverse(Box<Operation>),
    /// Nowhere: only the conversation is cut.
    Chat,
}

/// Everything a restore needs to know besides the state of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) kind: OpKind,
    pub(super) goal: Goal,
    pub(super) session: SessionKey,
    pub(super) policy: RestorePolicy,
    pub(super) cut: Option<Cut>,
    pub(super) notes: Vec<String>,
    /// A plan id that the caller has seen.
    pub(super) plan_id: Option<String>,
    pub(super) force: bool,
    /// True when `--chat` asks for the fork even if files are left out.
    pub(super) fork_anyway: bool,
    /// The conversation ends at the cut already, and nobody asked for a child by name: without anything to restore there
    /// is nothing to do.
    pub(super) ends_there: bool,
    /// Where files are restored at all.
    pub(super) files: FilesWhere,
    /// The address, where only the session's log knows it: there are no files to restore.
    pub(super) by_log_alone: Option<String>,
    /// The host's configuration to restore, as a blob.
    pub(super) host_state: Option<ObjectId>,
}

/// A plan together with what it was made from.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) preview: Preview,
    pub(super) captured: Captured,
    pub(super) latest: Latest,
    pub(super) since: Since,
    /// The histories that come with the state the paths go to (model F5).
    pub(super) target_histories: BTreeMap<RelPath, History>,
    pub(super) started: crate::Timestamp,
    /// Paths whose content no rule covers and no listed point holds: only this guard has them.
    pub(super) sensitive: Vec<RelPath>,
}

impl Engine {
    /// Shows what [`Engine::restore`] would do. Nothing is stored.
    pub fn preview(&self, request: &RestoreRequest) -> Result<Preview, EngineError> {
        let order = self.order(request)?;
        let _locked = self.lock(crate::LockMode::Shared)?;
        Ok(self.draft(&order, false)?.preview)
    }

    /// Shows what [`Engine::undo`] would do. Nothing is stored.
    pub fn preview_undo(&self, request: &ReverseRequest) -> Result<Preview, EngineError> {
        let order = self.undo_order(request)?;
        let _locked = self.lock(crate::LockMode::Shared)?;
        Ok(self.draft(&order, false)?.preview)
    }

    /// Goes back to a point (design § 7).
    pub fn restore(&self, request: &RestoreRequest) -> Result<Outcome, EngineError> {
        self.refuse_interrupted()?;
        let order = self.order(request)?;
        self.carry_out(&order)
    }

    fn order(&self, request: &RestoreRequest) -> Result<Order, EngineError> {
        let known = self.parts.index.sessions()?;
        let found = self.look_up(request.session.as_ref(), &request.target, &known)?;
        let mut notes = found.notes.clone();
        // A log that is damaged or was rewritten does not keep files from going back alone.
        let mut cut = match request.scope {
            Scope::Files => None,
            wanted => match self.cut(&found, &known, request.boundary) {
                Err(EngineError::Session(why @ SessionError::Unplaced { .. })) if wanted == Scope::Default => {
                    notes.push(format!("files only: {why}"));
                    None
                }
                cut => cut?,
            },
        };
        // What the harness would refuse afterwards stops the operation before anything is written.
        let refused = cut.as_ref().map_or(Ok(()), |cut| self.parts.sessions.check_fork(&cut.session, cut.boundary));
        match refused {
            // There is no conversation to go back to; files are not kept from going back for that.
            Err(why @ SessionError::NothingLeft { .. }) if request.scope == Scope::Default => {
                notes.push(format!("files only: {why}: to begin anew, start a fresh session in its client"));
                cut = None;
            }
            refused => refused?,
        }
        // Asked only where there is a cut, which was read from the log: what goes back alone does not need it.
        let ends_there = match &cut {
            Some(cut) if request.scope == Scope::Default => {
                found.log.get()?.is_some_and(|map| map.ends_at(cut.boundary))
            }
            _ => false,
        };
        let (point, session) = (found.point, found.log.session().clone());
        let (cut, files) = scope(request.scope, cut, &session, &mut notes)?;
        let mut by_log_alone = None;
        let goal = match (point, files) {
            (_, false) => Goal::Chat,
            (None, true) if request.files == FilesWhere::GitOnly && cut.is_some() => {
                by_log_alone = Some(request.target.clone());
                Goal::Chat
            }
            (None, true) => return Err(only_chat(&request.target)),
            (Some(point), true) => {
                if let Some(operation) = self.guarded_operation(&point)? {
                    // Going to the state before an operation is taking it back, created files included.
                    let reverse = ReverseRequest {
                        operation: Some(operation.id.to_string()),
                        session: request.session.clone(),
                        policy: request.policy.clone(),
                        plan: request.plan.clone(),
                        force: request.force,
                        config: request.config,
                    };
                    return self.undo_order(&reverse);
                }
                self.restorable(&point, request.adopt)?;
                Goal::Point(Box::new(point))
            }
        };
        let host_state = if request.config { Some(self.host_state_of(&goal)?) } else { None };
        Ok(Order {
            kind: OpKind::Restore,
            goal,
            session,
            policy: request.policy.clone(),
            cut,
            notes,
            plan_id: request.plan.clone(),
            force: request.force,
            fork_anyway: matches!(request.scope, Scope::Chat | Scope::Both),
            ends_there,
            files: request.files,
            by_log_alone,
            host_state,
        })
    }

    fn guarded_operation(&self, point: &Point) -> Result<Option<Operation>, EngineError> {
        match (point.kind, point.operation) {
            (PointKind::Guard, Some(operation)) => {
                let found = self.parts.index.operation(&operation)?;
                Ok(found.filter(|op| matches!(op.state, crate::OpState::Done | crate::OpState::Partial)))
            }
            _ => Ok(None),
        }
    }

    fn restorable(&self, point: &Point, adopt: bool) -> Result<(), EngineError> {
        if let Some(why) = &point.damaged {
            return Err(EngineError::NotRestorable { point: point.id, why: why.clone(), path: None });
        }
        if point.snapshot.is_none() {
            return Err(EngineError::NotRestorable {
                point: point.id,
                why: "its capture did not happen".to_owned(),
                path: None,
            });
        }
        if point.incarnation != self.parts.place.incarnation && !adopt {
            return Err(EngineError::OtherIncarnation { point: point.id });
        }
        Ok(())
    }

    /// Makes the plan from the workspace as it is now. With `write`, everything that now holds is durable on return.
    pub(super) fn draft(&self, order: &Order, write: bool) -> Result<Draft, EngineError> {
        let mut looks = 0;
        loop {
            match self.draft_once(order, write) {
                Err(EngineError::Index(IndexError::Conflict { .. })) if looks < LOOKS => looks += 1,
                done => return done,
            }
        }
    }

    fn draft_once(&self, order: &Order, write: bool) -> Result<Draft, EngineError> {
        let latest = self.latest()?;
        let started = self.parts.clock.now();
        let mut how = Walk { write, ..Walk::default() };
        let mut captured = match self.walk(&latest, &how) {
            // A store at its ceiling must not stand in the way of going back.
            Err(EngineError::Snapshot(SnapshotError::NoSpace { .. })) => {
                how.over_budget = true;
                self.walk(&latest, &how)?
            }
            walked => walked?,
        };
        if let Some(target) = order.by_log_alone.as_ref().filter(|_| captured.in_git) {
            return Err(only_chat(target));
        }
        // Outside git the degraded mode of 000 leaves files alone (000-16).
        let degraded = order.files == FilesWhere::GitOnly && !captured.in_git;
        if degraded && order.cut.is_none() {
            return Err(EngineError::Session(SessionError::Unsupported));
        }
        let wanted = if degraded { Order { goal: Goal::Chat, ..order.clone() } } else { order.clone() };
        let order = &wanted;
        let mut in_use = Vec::new();
        let mut changes = self.changes(order, &captured.snapshot, &mut in_use)?;
        how.include = needs_including(&changes, &captured);
        if !how.include.is_empty() {
            how.over_budget |=
                captured.skipped.iter().any(|s| s.reason == SkipReason::Budget && how.include.contains(&s.path));
            captured = self.walk(&latest, &how)?;
            in_use.clear();
            changes = self.changes(order, &captured.snapshot, &mut in_use)?;
        }
        let new_dirs = new_directories(&changes);
        let changes = select(changes, &order.policy.selection);
        self.refuse_unknown_selection(order, &changes, &captured.snapshot)?;
        let interval = Interval::since_latest(&latest.sessions, PointKind::Guard, None);
        let since = self.since(&latest, &captured.snapshot, &interval, false)?;
        let paths: BTreeSet<RelPath> = changes.iter().map(|c| c.path.clone()).collect();
        let attribution = self.attribute(order, &latest, &since, &paths)?;
        // Only what is written needs the history that comes with the state it goes to.
        let target_histories = match history_of_goal(&order.goal).filter(|_| write) {
            Some((_, upto)) => history_at(&*self.parts.index, upto, &paths)?,
            None => BTreeMap::new(),
        };
        let evidence = self.evidence(order, &changes)?;
        let (skipped_then, target) = match &order.goal {
            Goal::Point(point) => (self.skipped_of(point.snapshot)?, Some((**point).clone())),
            Goal::Reverse(operation) => (self.purged_of(operation)?, None),
            Goal::Chat => (Vec::new(), None),
        };
        // Most of them will be asked about: together, and each again should it be asked about twice.
        let checked = map_in_parallel(&changes, |change| self.check(change));
        let checked: BTreeMap<RelPath, _> = changes.iter().map(|change| change.path.clone()).zip(checked).collect();
        let checked = RefCell::new(checked);
        let check = |change: &Change| {
            let known = checked.borrow_mut().remove(&change.path);
            known.unwrap_or_else(|| self.check(change))
        };
        let mut plan = plan(&PlanInput {
            changes,
            skipped_now: &captured.skipped,
            skipped_then: &skipped_then,
            new_dirs: &new_dirs,
            files_now: captured.files,
            attribution: &attribution,
            evidence: evidence.as_ref(),
            policy: &order.policy,
            check: &check,
        });
        // What stays because nothing covers it is named, whether it was there then or came since.
        plan.uncovered.extend(captured.skipped.iter().cloned());
        plan.uncovered.sort();
        plan.uncovered.dedup_by(|a, b| a.path == b.path);
        plan.kept_new.extend(in_use);
        plan.kept_new.sort();
        plan.kept_new.dedup();
        let mut notes = order.notes.clone();
        notes.extend(degraded.then(|| "outside git only the conversation goes back (files = git-only)".to_owned()));
        notes.extend(head_notes(target.as_ref(), &captured));
        let imported = target.as_ref().is_some_and(|point| point.kind == PointKind::Import);
        if imported && !plan.hand_made.is_empty() {
            let why = "who changed what since an imported state is not known: what differs counts as changed by hand";
            notes.push(why.to_owned());
        }
        let idle = order.ends_there && !degraded && plan.is_empty() && order.host_state.is_none();
        notes.extend(idle.then(|| "the conversation ends there already".to_owned()));
        let plan_id = self.plan_id(order, &plan)?;
        let reverses = match &order.goal {
            Goal::Reverse(operation) => Some(operation.id),
            _ => None,
        };
        let preview = Preview {
            plan_id,
            target,
            reverses,
            session: order.session.clone(),
            plan,
            files: !matches!(order.goal, Goal::Chat),
            cut: order.cut.clone().filter(|_| !idle),
            config: order.host_state.is_some(),
            notes,
        };
        // What a listed point holds is covered ever after; what only a guard holds goes with the guard (design § 7).
        let sensitive =
            if matches!(order.goal, Goal::Reverse(_)) { how.include.into_iter().collect() } else { Vec::new() };
        Ok(Draft { preview, captured, latest, since, target_histories, started, sensitive })
    }

    /// Would the change go through? What is missing in the listing may not answer to its name (design § 7, "Names").
    fn check(&self, change: &Change) -> Result<(), FsError> {
        self.parts.files.check(change)?;
        if change.before.is_absent() && self.parts.files.facts(&change.path)?.is_some() {
            return Err(FsError::NameTaken { path: change.path.clone() });
        }
        Ok(())
    }

    /// Every path that differs between now and the goal. `in_use`: what keeps directories that would go.
    fn changes(&self, order: &Order, now: &Snapshot, in_use: &mut Vec<RelPath>) -> Result<Vec<Change>, EngineError> {
        let mut changes = Vec::new();
        match &order.goal {
            Goal::Chat => {}
            Goal::Point(point) => {
                let target = point.snapshot.ok_or_else(|| EngineError::NotRestorable {
                    point: point.id,
                    why: "it is a gap".into(),
                    path: None,
                })?;
                self.parts.snapshots.diff(now, &target, &mut |change| {
                    let change = if point.coarse_modes { with_known_modes(change) } else { change };
                    if change.before != change.after {
                        changes.push(change);
                    }
                    ControlFlow::Continue(())
                })?;
            }
            Goal::Reverse(operation) => changes = self.reverse_changes(operation, now, in_use)?,
        }
        Ok(changes)
    }

    fn refuse_unknown_selection(&self, order: &Order, changes: &[Change], now: &Snapshot) -> Result<(), EngineError> {
        for path in order.policy.selection.iter().chain(&order.policy.overwrite) {
            let differs = changes.iter().any(|c| c.path.is_at_or_below(path));
            if !differs && self.parts.snapshots.state(now, path)?.is_absent() {
                return Err(EngineError::UnknownPath { path: path.clone() });
            }
        }
        Ok(())
    }

    fn attribute(
        &self,
        order: &Order,
        latest: &Latest,
        since: &Since,
        paths: &BTreeSet<RelPath>,
    ) -> Result<Attributions, EngineError> {
        let Some((target, _)) = history_of_goal(&order.goal) else { return Ok(Attributions::default()) };
        let now = changes_after(&*self.parts.index, target, paths)?;
        let recent: BTreeMap<&RelPath, &Vec<Member>> =
            since.touches.iter().map(|touch| (&touch.path, &touch.by)).collect();
        let recorded = paths.iter().filter_map(|path| now.get(path)).flat_map(History::keys);
        let judged = recorded.chain(recent.values().copied().flatten()).filter_map(|member| match member {
            Member::Session(key) => Some(key.clone()),
            Member::Outside | Member::Local => None,
        });
        let origins = self.with_origins(&order.session, judged.collect(), &latest.sessions);
        let family = Family::of(&order.session, &origins);
        let later = match &order.goal {
            Goal::Reverse(operation) => self.written_later(operation)?,
            _ => BTreeSet::new(),
        };
        let imported = matches!(&order.goal, Goal::Point(point) if point.kind == PointKind::Import);
        let judge = |path: &RelPath| {
            let mut verdict = Attribution::judge(now.get(path), recent.get(path).copied(), target, &family);
            // A path that a later restore wrote needs a decision too (model F15).
            verdict.foreign |= later.contains(path);
            // Nobody recorded who changed what between the imported state and the first record.
            verdict.hand_made |= imported;
            verdict.uncaptured &= !imported;
            verdict
        };
        Ok(paths.iter().map(|path| (path.clone(), judge(path))).collect())
    }

    fn evidence(&self, order: &Order, changes: &[Change]) -> Result<Option<Evidence>, EngineError> {
        let Goal::Point(point) = &order.goal else { return Ok(None) };
        let mut evidence = Evidence {
            usable: point.kind != PointKind::Import
                && !point.under_intent
                && point.consistency != Consistency::Watched
                && point.incarnation == self.parts.place.incarnation,
            live: point.live.iter().cloned().collect(),
            ignored_then: BTreeSet::new(),
        };
        if let (true, Some(snapshot)) = (order.policy.exact, &point.snapshot) {
            let new: Vec<RelPath> = changes.iter().filter(|c| c.after.is_absent()).map(|c| c.path.clone()).collect();
            let ignored = self.parts.snapshots.ignored_at(snapshot, &new)?;
            evidence.ignored_then =
                new.into_iter().zip(ignored).filter(|(_, ignored)| *ignored).map(|(path, _)| path).collect();
        }
        Ok(Some(evidence))
    }

    /// Paths that the operation wrote and whose state before was purged since.
    fn purged_of(&self, operation: &Operation) -> Result<Vec<crate::Skipped>, EngineError> {
        let written = self.parts.index.written(&operation.id)?.into_iter();
        let purged = written.filter(|written| written.before == PathState::Opaque);
        let mut paths: Vec<_> =
            purged.map(|written| crate::Skipped { path: written.path, reason: SkipReason::Purged }).collect();
        paths.sort();
        Ok(paths)
    }

    fn skipped_of(&self, snapshot: Option<Snapshot>) -> Result<Vec<crate::Skipped>, EngineError> {
        match snapshot {
            Some(snapshot) => Ok(self.parts.snapshots.skipped(&snapshot)?),
            None => Ok(Vec::new()),
        }
    }

    /// A hash of target, scope, cut, policy and each path with before and after.
    fn plan_id(&self, order: &Order, plan: &Plan) -> Result<String, EngineError> {
        let goal = match &order.goal {
            Goal::Point(point) => point.id.to_string(),
            Goal::Reverse(operation) => operation.id.to_string(),
            Goal::Chat => "chat".to_owned(),
        };
        let left = (&plan.kept_new, &plan.hand_made, &plan.foreign, &plan.blocked);
        let order = (&order.policy, &order.cut, &order.host_state);
        let text = serde_json::to_vec(&(goal, order, &plan.changes, left)).map_err(|source| {
            crate::SnapshotError::Other { what: "the plan cannot be written down", source: source.into() }
        })?;
        let id = self.parts.snapshots.hash_blob(text.len() as u64, &mut &*text)?;
        Ok(id.to_string())
    }
}

/// After which place a change is later than the goal, and as of which place the histories of the goal's states are.
fn history_of_goal(goal: &Goal) -> Option<(Ord, Ord)> {
    match goal {
        // An import's place says nothing of when its state was: everything recorded counts as later.
        Goal::Point(point) if point.kind == PointKind::Import => Some((Ord(0), Ord(0))),
        Goal::Point(point) => Some((point.ord, point.ord)),
        // The before-state of an operation is its guard's: its history includes what the guard closed.
        Goal::Reverse(operation) => Some((operation.ord, Ord(operation.ord.0.saturating_sub(1)))),
        Goal::Chat => None,
    }
}

/// The change where of the target's permission bits only the one for executing is known: the others stay, and who may
/// read may execute.
fn with_known_modes(mut change: Change) -> Change {
    if let (PathState::File { mode: now, .. }, PathState::File { mode, .. }) = (change.before, &mut change.after) {
        *mode = match (now.is_executable(), mode.is_executable()) {
            (false, true) => crate::Mode(now.0 | 0o100 | ((now.0 & 0o444) >> 2)),
            (true, false) => crate::Mode(now.0 & !0o111),
            _ => now,
        };
    }
    change
}

/// Paths that the goal writes and that a rule left out of the capture of now: they must be guarded whatever the rule.
fn needs_including(changes: &[Change], captured: &Captured) -> BTreeSet<RelPath> {
    let coverage = Coverage::new(&captured.skipped);
    let by_rule = |reason| matches!(reason, SkipReason::IgnoredRoot | SkipReason::TooLarge | SkipReason::Budget);
    let written =
        changes.iter().filter(|c| (c.before.is_absent() && !c.after.is_absent()) || c.before == PathState::Opaque);
    written
        .filter(|c| coverage.over(&c.path).is_some_and(|(_, reason)| by_rule(reason)))
        .map(|c| c.path.clone())
        .collect()
}

/// A target that only the conversation can go to.
fn only_chat(target: &str) -> EngineError {
    let choices = vec!["--chat".to_owned()];
    EngineError::NotFound { given: target.to_owned(), choices }
}

/// Which halves go, and a line for a half that cannot.
fn scope(
    wanted: Scope,
    cut: Option<Cut>,
    session: &SessionKey,
    notes: &mut Vec<String>,
) -> Result<(Option<Cut>, bool), EngineError> {
    match (wanted, cut) {
        (Scope::Files, _) => Ok((None, true)),
        (Scope::Default, None) => {
            if !session.is_local() && notes.iter().all(|note| !note.starts_with("files only")) {
                notes.push(format!("files only: the conversation of {session} cannot be forked from here"));
            }
            Ok((None, true))
        }
        (Scope::Chat | Scope::Both, None) => Err(EngineError::Session(SessionError::Unsupported)),
        (Scope::Chat, cut) => Ok((cut, false)),
        (Scope::Default | Scope::Both, cut) => Ok((cut, true)),
    }
}

fn head_notes(target: Option<&Point>, captured: &Captured) -> Vec<String> {
    let mut notes = Vec::new();
    let (Some(then), Some(now)) = (target.and_then(|p| p.head.as_ref()), &captured.head) else { return notes };
    if then.commit != now.commit || then.branch != now.branch {
        let name = |head: &crate::Head| {
            let commit = head.commit.as_deref().map_or("no commit", |c| c.get(..8).unwrap_or(c));
            head.branch
                .as_deref()
                .map_or_else(|| commit.to_owned(), |b| format!("{} at {commit}", b.trim_start_matches("refs/heads/")))
        };
        notes.push(format!("HEAD moved since, from {} to {}; it stays where it is", name(then), name(now)));
    }
    match (&then.in_progress, &now.in_progress) {
        (before, Some(now)) if before.as_ref() != Some(now) => {
            notes.push(format!("a {now} is in progress; only files go back"));
        }
        (Some(before), None) => notes.push(format!("a {before} was in progress at that point and has ended since")),
        (Some(_), Some(now)) => notes.push(format!("a {now} is in progress")),
        _ => {}
    }
    notes
}
