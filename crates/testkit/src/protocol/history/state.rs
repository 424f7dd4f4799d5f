//! What is stored, what the rules know, and what is true.

use super::{History, PATHS};

/// Members of an interval, as bits: time outside of every turn, the two sessions, the user's own saves.
pub(crate) const OUTSIDE: u8 = 1;
pub(crate) const LOCAL: u8 = 8;
pub(crate) const MEMBERS: [u8; 4] = [OUTSIDE, 2, 4, LOCAL];
/// The session of `rwd save`.
pub(crate) const SAVES: u8 = 2;

/// The bit of a session.
pub(crate) fn member(session: u8) -> u8 {
    MEMBERS[usize::from(session) + 1]
}

/// One value for each path.
pub(crate) type Each<T> = [T; PATHS];
/// For each path and member the place of the newest change.
pub(crate) type Newest = Each<[u8; 4]>;

/// What kind of record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    TurnStart,
    TurnEnd,
    Mutation,
    Manual,
    Guard,
}

/// When a path was last changed by hand; the moment of an edit that its maker saved is the saves' own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct ByHand {
    pub(crate) at: u8,
    pub(crate) saved: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Record {
    pub(crate) ord: u8,
    pub(crate) kind: Kind,
    pub(crate) session: u8,
    pub(crate) state: Each<u8>,
    pub(crate) walked: u8,
    pub(crate) by_hand: Each<ByHand>,
    /// Members of the interval that it closes, by path.
    pub(crate) interval: Each<u8>,
    pub(crate) newest: Newest,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Doing {
    Restore,
    /// Of the restore at this place of the list.
    Undo(usize),
    Redo(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Ended {
    Open,
    Done,
    RolledBack,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Operation {
    pub(crate) ord: u8,
    pub(crate) doing: Doing,
    /// Paths that it writes, as bits.
    pub(crate) paths: u8,
    pub(crate) before: Each<u8>,
    pub(crate) after: Each<u8>,
    pub(crate) ended: Ended,
    pub(crate) undone: bool,
    /// A restore that came later took the redo away.
    pub(crate) forgotten: bool,
    pub(crate) walked: u8,
    pub(crate) by_hand_before: Each<ByHand>,
    pub(crate) by_hand_after: Each<ByHand>,
    pub(crate) newest_before: Newest,
    pub(crate) newest_after: Newest,
    pub(crate) guard: Each<u8>,
    pub(crate) session: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Turn {
    #[default]
    None,
    Open,
    /// No end, and no record since.
    Interrupted,
    /// No end, and a record since.
    Stale,
}

/// What is known of the interval that is not closed yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Interval {
    /// Sessions with a turn open in it, as bits of members.
    pub(crate) sessions: u8,
    /// Time outside came before a turn whose start is a gap.
    pub(crate) before_gap: bool,
    /// There was time outside of every turn.
    pub(crate) outside: bool,
    /// Paths that changed after the end of the turn.
    pub(crate) after_end: Each<bool>,
}

/// A second process that has walked and not yet committed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Walk {
    pub(crate) state: Each<u8>,
    pub(crate) by_hand: Each<ByHand>,
    pub(crate) at: u8,
    pub(crate) follows: u8,
    pub(crate) interval: Option<Interval>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) turns: u8,
    pub(crate) edits: u8,
    pub(crate) writes: u8,
    pub(crate) operations: u8,
    pub(crate) saves: u8,
    pub(crate) start_gaps: u8,
    pub(crate) end_gaps: u8,
    pub(crate) drops: u8,
    pub(crate) interrupts: u8,
    pub(crate) late_ends: u8,
    pub(crate) crashes: u8,
    pub(crate) mutations: u8,
    pub(crate) overlaps: u8,
    pub(crate) named_undos: u8,
}

/// A state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub(crate) disk: Each<u8>,
    pub(crate) by_hand: Each<ByHand>,
    pub(crate) clock: u8,
    pub(crate) value: u8,
    pub(crate) ord: u8,
    pub(crate) records: Vec<Record>,
    pub(crate) operations: Vec<Operation>,
    /// The newest known state, and its place.
    pub(crate) latest: Each<u8>,
    pub(crate) latest_ord: u8,
    pub(crate) interval: Interval,
    pub(crate) turns: [Turn; 2],
    pub(crate) numbers: [u8; 2],
    /// The turn whose end is captured late; 0: none.
    pub(crate) pending: [u8; 2],
    pub(crate) newest: Newest,
    pub(crate) walk: Option<Walk>,
    /// What each turn left, by session and number.
    pub(crate) ends: [[Each<u8>; 3]; 2],
    pub(crate) counts: Counts,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            disk: [1; PATHS],
            by_hand: Default::default(),
            clock: 0,
            value: 1,
            ord: 0,
            records: Vec::new(),
            operations: Vec::new(),
            latest: [1; PATHS],
            latest_ord: 0,
            interval: Interval { outside: true, ..Interval::default() },
            turns: [Turn::None; 2],
            numbers: [0; 2],
            pending: [0; 2],
            newest: Default::default(),
            walk: None,
            ends: Default::default(),
            counts: Counts::default(),
        }
    }

    /// The operation whose intent is open.
    pub(crate) fn open(&self) -> Option<&Operation> {
        self.operations.last().filter(|operation| operation.ended == Ended::Open)
    }
}

/// The newer of two histories.
pub(crate) fn newer(a: [u8; 4], b: [u8; 4]) -> [u8; 4] {
    std::array::from_fn(|at| a[at].max(b[at]))
}

/// True when `bits` has the path.
pub(crate) fn has(bits: u8, path: usize) -> bool {
    bits & (1 << path) != 0
}

impl History {
    pub(crate) fn is_open(&self, turn: Turn) -> bool {
        match turn {
            Turn::None => false,
            Turn::Open | Turn::Interrupted => true,
            Turn::Stale => !self.interrupted_ends,
        }
    }

    pub(crate) fn any_open(&self, state: &State) -> bool {
        state.turns.iter().any(|turn| self.is_open(*turn))
    }

    /// A new interval begins.
    pub(crate) fn begin_interval(&self, state: &mut State) {
        let open = (0..2_u8).filter(|session| self.is_open(state.turns[usize::from(*session)]));
        let sessions = open.fold(0, |all, session| all | member(session));
        state.interval = Interval { sessions, outside: sessions == 0, ..Interval::default() };
    }

    /// A record of a walk that saw `seen`.
    pub(crate) fn commit(
        &self,
        state: &mut State,
        kind: Kind,
        session: u8,
        seen: Each<u8>,
        by_hand: Each<ByHand>,
        walked: u8,
    ) {
        // A walk under way began an interval of its own; what was before it belongs to this record.
        if let Some(before) = state.walk.as_mut().and_then(|walk| walk.interval.take()) {
            let now = &mut state.interval;
            now.sessions |= before.sessions;
            now.outside |= before.outside;
            now.before_gap |= before.before_gap;
            for path in 0..PATHS {
                now.after_end[path] |= before.after_end[path];
            }
        }
        state.ord += 1;
        let of = state.interval;
        let alone = if kind == Kind::Manual { LOCAL } else { OUTSIDE };
        let mut by = if of.sessions == 0 { alone } else { of.sessions };
        if self.time_before_gap && of.sessions != 0 && of.before_gap {
            by |= OUTSIDE;
        }
        let open = state.open().cloned();
        let mut interval = [0; PATHS];
        let mut stored = by_hand;
        for path in 0..self.paths {
            if seen[path] == state.latest[path] {
                continue;
            }
            let after = self.after_end && of.after_end[path] && of.sessions != 0;
            interval[path] = if after { by | OUTSIDE } else { by };
            if let Some(open) = open.as_ref().filter(|open| self.written_only && has(open.paths, path))
                && (seen[path] == open.before[path] || seen[path] == open.after[path])
            {
                interval[path] = 0;
            }
            for (at, bit) in MEMBERS.iter().enumerate() {
                if interval[path] & bit != 0 {
                    state.newest[path][at] = state.ord;
                }
            }
            // Whoever saves an edit knows of it: for a point of the saves it is no edit by hand.
            if by == LOCAL && interval[path] != 0 && by_hand[path].at > 0 {
                stored[path].saved = true;
                if state.by_hand[path].at == by_hand[path].at {
                    state.by_hand[path].saved = true;
                }
            }
        }
        let mut newest = state.newest;
        if let Some(open) = open.filter(|_| self.written_only) {
            for path in (0..self.paths).filter(|path| has(open.paths, *path)) {
                newest[path] = newer(newest[path], newer(open.newest_after[path], open.newest_before[path]));
            }
        }
        let ord = state.ord;
        state.records.push(Record { ord, kind, session, state: seen, walked, by_hand: stored, interval, newest });
        (state.latest, state.latest_ord) = (seen, ord);
        for turn in &mut state.turns {
            if *turn == Turn::Interrupted {
                *turn = Turn::Stale;
            }
        }
        self.begin_interval(state);
    }

    /// A record of now.
    pub(crate) fn record(&self, state: &mut State, kind: Kind, session: u8) {
        state.clock += 1;
        let (disk, by_hand, clock) = (state.disk, state.by_hand, state.clock);
        self.commit(state, kind, session, disk, by_hand, clock);
    }

    /// Whether the rules see a change by hand, or of an unrelated session, after `target`.
    pub(crate) fn asks(&self, state: &State, path: usize, target: u8, session: u8) -> bool {
        let of = state.interval;
        let wrote = |operation: &&Operation| has(operation.paths, path) && operation.ended != Ended::RolledBack;
        let last = state.operations.iter().filter(wrote).map(|operation| operation.ord).max().unwrap_or(0);
        let drifted = state.disk[path] != state.latest[path];
        let after = self.after_end && of.after_end[path];
        let mut by_hand = if self.lineage {
            state.newest[path][0] > target
        } else {
            state.records.iter().any(|r| r.ord > target.max(last) && r.interval[path] & OUTSIDE != 0)
        };
        by_hand |= drifted && !self.any_open(state) && (!self.after_end || of.sessions == 0 || of.after_end[path]);
        by_hand |= drifted && self.time_before_gap && of.sessions != 0 && of.before_gap;
        by_hand |= drifted && after;
        let own = member(session);
        let foreign = if self.lineage {
            (1..4).any(|at| MEMBERS[at] != own && state.newest[path][at] > target)
        } else {
            state.records.iter().any(|r| r.ord > target.max(last) && r.interval[path] & !OUTSIDE & !own != 0)
        };
        by_hand || foreign
    }

    /// The newest operation is over; `others` are its paths that hold neither of its states.
    pub(crate) fn close(&self, state: &mut State, ended: Ended, others: u8) {
        let Some(at) = state.operations.len().checked_sub(1) else { return };
        let operation = &mut state.operations[at];
        operation.ended = ended;
        let planned = operation.paths;
        if self.written_only {
            operation.paths &= !others;
        }
        let operation = operation.clone();
        let (left, newest) = match ended {
            Ended::Done => (operation.after, operation.newest_after),
            _ => (operation.before, operation.newest_before),
        };
        for path in 0..self.paths {
            if self.written_only && has(planned & others, path) {
                let both = newer(operation.newest_after[path], operation.newest_before[path]);
                state.newest[path] = newer(state.newest[path], both);
            }
            if has(operation.paths, path) {
                (state.latest[path], state.newest[path]) = (left[path], newest[path]);
            } else if !self.written_only {
                state.latest[path] = operation.guard[path];
            }
        }
        state.ord += 1;
        state.latest_ord = state.ord;
        let was = state.interval;
        self.begin_interval(state);
        if self.written_only && self.time_before_gap {
            let now = &mut state.interval;
            now.sessions |= was.sessions;
            now.outside |= was.outside;
            (now.before_gap, now.after_end) = (was.before_gap, was.after_end);
            if others == 0 && state.disk[..self.paths] == state.latest[..self.paths] {
                self.begin_interval(state);
            }
        }
        if ended == Ended::Done {
            match operation.doing {
                Doing::Restore => {
                    for other in state.operations.iter_mut().filter(|o| o.doing == Doing::Restore && o.undone) {
                        other.forgotten = true;
                    }
                }
                Doing::Undo(of) => state.operations[of].undone = true,
                Doing::Redo(of) => state.operations[of].undone = false,
            }
        }
    }
}
