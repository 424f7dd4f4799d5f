//! Who changed what: intervals, histories, categories (design § 2; model F5 to F13). Pure functions over the index.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    History, IndexError, IndexStore, Member, OpKind, OpState, Operation, Ord, PointKind, RelPath, Session, SessionKey,
    Timestamp, Turn, TurnStatus,
};

/// The histories of `paths` as of the place `upto`, inclusive.
///
/// What a finished operation wrote replaces the history a path had by the one that came with the state it went to;
/// rolled-back operations change nothing (model F5). Looks at every record up to the place.
///
/// # Errors
/// Those of the index.
pub fn history_at(
    index: &dyn IndexStore,
    upto: Ord,
    paths: &BTreeSet<RelPath>,
) -> Result<BTreeMap<RelPath, History>, IndexError> {
    replay(index, Ord(0), Some(upto), paths)
}

/// Who changed `paths` after the place `after`, as their histories of now say it: all that [`Attribution::judge`] asks of
/// a target there. Older changes are left out, so only records and operations after the place are looked at, however many
/// there were before.
///
/// # Errors
/// Those of the index.
pub fn changes_after(
    index: &dyn IndexStore,
    after: Ord,
    paths: &BTreeSet<RelPath>,
) -> Result<BTreeMap<RelPath, History>, IndexError> {
    let mut now = replay(index, after, None, paths)?;
    for history in now.values_mut() {
        // An operation brings the history of the state it went to.
        history.retain(|_, ord| *ord > after);
    }
    Ok(now)
}

/// Follows records and operations between two places in the order of the places.
fn replay(
    index: &dyn IndexStore,
    after: Ord,
    upto: Option<Ord>,
    paths: &BTreeSet<RelPath>,
) -> Result<BTreeMap<RelPath, History>, IndexError> {
    let mut histories: BTreeMap<RelPath, History> = BTreeMap::new();
    if paths.is_empty() {
        return Ok(histories);
    }
    let mut operations = operations_after(index, after)?;
    operations.retain(|op| matches!(op.state, OpState::Done | OpState::Partial));
    operations.sort_by_key(|op| op.ord);
    let mut intervals = index.intervals(after)?.into_iter().peekable();
    let mut operations = operations.into_iter().peekable();
    loop {
        // Whichever of both is next.
        let ords = (intervals.peek().map(|(ord, _)| *ord), operations.peek().map(|op| op.ord));
        let Some(next) = ords.0.into_iter().chain(ords.1).min() else { break };
        if upto.is_some_and(|upto| next > upto) {
            break;
        }
        if let Some(op) = operations.next_if(|op| op.ord == next) {
            for written in index.written(&op.id)? {
                if paths.contains(&written.path) {
                    histories.insert(written.path, written.history.into_iter().collect());
                }
            }
        } else if let Some((ord, touches)) = intervals.next() {
            for touch in touches.into_iter().filter(|touch| paths.contains(&touch.path)) {
                let history: &mut History = histories.entry(touch.path).or_default();
                history.extend(touch.by.into_iter().map(|member| (member, ord)));
            }
        }
    }
    Ok(histories)
}

/// Operations on files after a place, newest first: as many are asked for as there turn out to be.
fn operations_after(index: &dyn IndexStore, after: Ord) -> Result<Vec<Operation>, IndexError> {
    let kinds = [OpKind::Restore, OpKind::Undo, OpKind::Redo];
    let mut limit = 16;
    loop {
        let mut found = index.operations(&kinds, Some(limit))?;
        if found.len() < limit || found.last().is_some_and(|oldest| oldest.ord <= after) {
            found.retain(|op| op.ord > after);
            return Ok(found);
        }
        limit *= 4;
    }
}

/// Merges two histories: the newer change of each member.
#[must_use]
pub fn newer_of(a: &History, b: &History) -> History {
    let mut merged = a.clone();
    for (member, ord) in b {
        let entry = merged.entry(member.clone()).or_insert(*ord);
        *entry = (*entry).max(*ord);
    }
    merged
}

/// Which sessions belong together: a session, its ancestors, its descendants and subagents on either side.
#[derive(Clone, Debug, Default)]
pub struct Family {
    members: BTreeSet<SessionKey>,
    /// A person's own restore of their own save: no session is foreign to it.
    everyone: bool,
}

impl Family {
    /// The family of `session`.
    ///
    /// Points that were saved outside any harness are a person's own: a person who goes back to one asks for the whole
    /// workspace, so no session is unrelated to [`SessionKey::local`].
    pub fn of(session: &SessionKey, known: &[Session]) -> Self {
        let link = |s: &Session| s.parent.clone().into_iter().chain(s.subagent_of.clone()).collect::<Vec<_>>();
        let up: BTreeMap<&SessionKey, Vec<SessionKey>> = known.iter().map(|s| (&s.key, link(s))).collect();
        let reach = |from: &SessionKey, next: &dyn Fn(&SessionKey) -> Vec<SessionKey>| {
            let (mut seen, mut todo) = (BTreeSet::from([from.clone()]), vec![from.clone()]);
            while let Some(at) = todo.pop() {
                todo.extend(next(&at).into_iter().filter(|key| seen.insert(key.clone())));
            }
            seen
        };
        let parents = |key: &SessionKey| up.get(key).cloned().unwrap_or_default();
        let children =
            |key: &SessionKey| known.iter().filter(|s| link(s).contains(key)).map(|s| s.key.clone()).collect();
        let mut members = reach(session, &parents);
        members.extend(reach(session, &children));
        Self { members, everyone: session.is_local() }
    }

    /// True when a change by `member` is no stranger's.
    pub fn includes(&self, member: &Member) -> bool {
        match member {
            Member::Outside => false,
            Member::Local => self.everyone,
            Member::Session(key) => self.everyone || self.members.contains(key),
        }
    }
}

/// Who may have changed what in the interval that ends now.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Sessions with a turn that was open all the time, or interrupted.
    open: Vec<Member>,
    /// Sessions whose turn ended since the latest record, with the time of the end.
    ended: Vec<(Member, Timestamp)>,
    /// Part of it lay outside any turn.
    outside: bool,
    /// Who stands for what lies outside any turn.
    otherwise: Member,
}

impl Interval {
    /// The interval since the latest record, to be closed by a record of `kind`. `ends`: the turn whose punctual end
    /// that record is.
    pub fn since_latest(sessions: &[Session], kind: PointKind, ends: Option<(&SessionKey, Turn)>) -> Self {
        let mut interval = Self {
            open: Vec::new(),
            ended: Vec::new(),
            outside: false,
            otherwise: if kind == PointKind::Manual { Member::Local } else { Member::Outside },
        };
        for session in sessions {
            let Some(status) = session.turn.as_ref().filter(|status| status.closed.is_none()) else { continue };
            let member = Member::Session(session.key.clone());
            // A turn whose start was not recorded: the time before it counts as outside too (model F6).
            interval.outside |= status.start.is_none();
            match status.ended {
                Some(at) if ends != Some((&session.key, status.turn)) => interval.ended.push((member, at)),
                _ => interval.open.push(member),
            }
        }
        if let Some((key, _)) = ends {
            // An end whose beginning nobody recorded: everything since the latest record may be either's.
            let member = Member::Session(key.clone());
            if !interval.open.contains(&member) {
                interval.open.push(member);
                interval.outside = true;
            }
        }
        interval
    }

    /// The members for a path that changed at `ctime_ms` (of its directory for a missing path; `None`: unknown).
    pub fn members(&self, ctime_ms: Option<i64>) -> Vec<Member> {
        let mut by = self.open.clone();
        let in_time = |end: &Timestamp| ctime_ms.is_none_or(|ctime| ctime <= end.0);
        by.extend(self.ended.iter().filter(|(_, end)| in_time(end)).map(|(member, _)| member.clone()));
        if by.is_empty() || self.outside {
            by.push(self.otherwise.clone());
        }
        by.sort();
        by.dedup();
        by
    }

    /// True when the time of a path's change matters.
    pub fn needs_times(&self) -> bool {
        !self.ended.is_empty()
    }
}

/// How sessions stand after a record at `ord` has closed the interval: interrupted turns, turns whose process is gone
/// and turns that ended without a record of their own end there (model F7, F9).
pub fn close_turns(status: &TurnStatus, ord: Ord, gone: bool) -> Option<TurnStatus> {
    let over = status.interrupted || gone || status.ended.is_some();
    (status.closed.is_none() && over).then(|| TurnStatus { closed: Some(ord), ..status.clone() })
}

/// What a path's history says about restoring it to a state of the place `target`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attribution {
    /// Somebody outside changed it since.
    pub hand_made: bool,
    /// An unrelated session changed it since.
    pub foreign: bool,
    /// It differs from the latest known state, and a turn of the family did that.
    pub uncaptured: bool,
}

impl Attribution {
    /// Judges a path.
    ///
    /// `since_latest`: who changed it after the latest known state, if anybody.
    pub fn judge(history: Option<&History>, since_latest: Option<&Vec<Member>>, target: Ord, family: &Family) -> Self {
        let recorded = history.into_iter().flatten().filter(|(_, ord)| **ord > target).map(|(member, _)| member);
        let mut verdict = Self::default();
        for member in recorded.chain(since_latest.into_iter().flatten()) {
            match member {
                Member::Outside => verdict.hand_made = true,
                other => verdict.foreign |= !family.includes(other),
            }
        }
        let turns = since_latest.into_iter().flatten().any(|member| matches!(member, Member::Session(_)));
        verdict.uncaptured = turns && !verdict.hand_made && !verdict.foreign;
        verdict
    }

    /// True when a decision is needed before the path may be written.
    pub const fn needs_decision(self) -> bool {
        self.hand_made || self.foreign
    }
}
