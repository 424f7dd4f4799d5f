//! Everything that can happen.

use super::super::{Model, Step};
use super::state::{
    ByHand, Doing, Each, Ended, Kind, LOCAL, Newest, OUTSIDE, Operation, Record, SAVES, State, Turn, Walk, has, member,
};
use super::{History, LATE, LOST_POSITION, PATHS, SILENT, SILENT_UNDO, UNDONE_UNDO};

type Push<'a> = dyn FnMut(&'static str, State, Option<&'static str>) + 'a;

/// Where an operation goes, and the history that it has there.
struct Target {
    doing: Doing,
    state: Each<u8>,
    by_hand: Each<ByHand>,
    newest: Newest,
    paths: u8,
    ord: u8,
    walked: u8,
    session: u8,
    asks: bool,
}

impl Target {
    fn of_record(record: &Record, paths: u8) -> Self {
        Self {
            doing: Doing::Restore,
            state: record.state,
            by_hand: record.by_hand,
            newest: record.newest,
            paths,
            ord: record.ord,
            walked: record.walked,
            session: record.session,
            asks: true,
        }
    }

    fn before(operation: &Operation, doing: Doing, asks: bool) -> Self {
        Self {
            doing,
            state: operation.before,
            by_hand: operation.by_hand_before,
            newest: operation.newest_before,
            paths: operation.paths,
            ord: operation.ord,
            walked: operation.walked,
            session: operation.session,
            asks,
        }
    }
}

impl History {
    fn operate(
        &self,
        state: &State,
        target: &Target,
        label: &'static str,
        known: Option<&'static str>,
        push: &mut Push<'_>,
    ) {
        let paths = (0..self.paths)
            .filter(|path| has(target.paths, *path) && state.disk[*path] != target.state[*path])
            .fold(0, |all, path| all | 1 << path);
        if paths == 0 {
            return;
        }
        let planned = || (0..self.paths).filter(|path| has(paths, *path));
        let drift = |path: usize| state.disk[path] != state.latest[path] && !self.any_open(state);
        let decided = planned()
            .any(|path| if target.asks { self.asks(state, path, target.ord, target.session) } else { drift(path) });
        let lost = planned().any(|path| {
            let by = state.by_hand[path];
            by.at > target.walked && !(target.session == SAVES && by.saved)
        });
        let silent = if target.doing == Doing::Restore { SILENT } else { SILENT_UNDO };
        let fault = if !decided && lost { Some(silent) } else { known };
        let mut next = state.clone();
        next.counts.operations += 1;
        let newest = next.newest;
        self.record(&mut next, Kind::Guard, target.session);
        let guard = next.latest;
        if !self.guard_closes {
            next.records.pop();
            next.newest = newest;
        }
        next.ord += 1;
        next.operations.push(Operation {
            ord: next.ord,
            doing: target.doing,
            paths,
            before: next.disk,
            after: target.state,
            ended: Ended::Open,
            undone: false,
            forgotten: false,
            walked: next.clock,
            by_hand_before: next.by_hand,
            by_hand_after: target.by_hand,
            newest_before: next.newest,
            newest_after: target.newest,
            guard,
            session: target.session,
        });
        let write = |state: &mut State, which: u8| {
            for path in planned().filter(|path| has(which, *path)) {
                (state.disk[path], state.by_hand[path]) = (target.state[path], target.by_hand[path]);
            }
        };
        if state.counts.crashes < self.budget.crashes {
            for written in (0..1_u8 << self.paths).filter(|written| written & !paths == 0) {
                let mut crashed = next.clone();
                crashed.counts.crashes += 1;
                write(&mut crashed, written);
                push("the same, and rwd is killed in the middle", crashed, fault);
            }
        }
        write(&mut next, paths);
        self.close(&mut next, Ended::Done, 0);
        push(label, next, fault);
    }

    fn operations(&self, state: &State, push: &mut Push<'_>) {
        if state.open().is_some() {
            for (label, ended) in [("rwd recover --finish", Ended::Done), ("rwd recover --back", Ended::RolledBack)] {
                self.recover(state, label, ended, push);
            }
            return;
        }
        if state.counts.operations >= self.budget.operations {
            return;
        }
        for record in state.records.iter().filter(|record| record.kind != Kind::Guard) {
            self.operate(state, &Target::of_record(record, u8::MAX), "rwd to a record", None, push);
            for path in (0..self.paths).filter(|_| self.selections) {
                self.operate(state, &Target::of_record(record, 1 << path), "rwd to a record, one path", None, push);
            }
        }
        let finished = |operation: &Operation| operation.ended == Ended::Done;
        let newest = state.operations.iter().filter(|o| finished(o)).map(|o| o.ord).max().unwrap_or(0);
        let changed = |record: &Record| record.ord > newest && record.interval[..self.paths].iter().any(|by| *by != 0);
        let refused = |of: &Operation| {
            let concerns = |record: &&Record| !self.session_undo || record.session == of.session;
            state.records.iter().filter(concerns).any(changed)
        };
        let candidate = |restores_only: bool| {
            state.operations.iter().rposition(|o| {
                finished(o)
                    && !o.undone
                    && if restores_only { o.doing == Doing::Restore } else { !matches!(o.doing, Doing::Redo(_)) }
            })
        };
        if let Some(at) = candidate(self.undo_is_none) {
            let operation = &state.operations[at];
            let wrong = (candidate(true) != Some(at)).then_some(UNDONE_UNDO);
            let doing = if let Doing::Undo(of) = operation.doing { Doing::Redo(of) } else { Doing::Undo(at) };
            if !refused(operation) {
                self.operate(state, &Target::before(operation, doing, self.undo_asks), "rwd undo", wrong, push);
            }
            if state.counts.named_undos < self.budget.named_undos {
                let mut counted = state.clone();
                counted.counts.named_undos += 1;
                let target = Target::before(operation, Doing::Undo(at), true);
                self.operate(&counted, &target, "rwd undo OP", None, push);
            }
        }
        let redoable = |o: &Operation| o.doing == Doing::Restore && o.undone && !o.forgotten && finished(o);
        if let Some(at) = state.operations.iter().position(redoable).filter(|at| !refused(&state.operations[*at]))
            && let Some(undo) = state.operations.iter().rfind(|o| o.doing == Doing::Undo(at) && finished(o))
        {
            let operation = &state.operations[at];
            let target = Target {
                state: operation.after,
                by_hand: operation.by_hand_after,
                newest: operation.newest_after,
                ord: undo.ord,
                walked: undo.walked,
                ..Target::before(operation, Doing::Redo(at), self.undo_asks)
            };
            self.operate(state, &target, "rwd redo", None, push);
        }
    }

    fn recover(&self, state: &State, label: &'static str, ended: Ended, push: &mut Push<'_>) {
        let Some(open) = state.open().cloned() else { return };
        let mut next = state.clone();
        let mut others = 0;
        let (want, expected, by_hand) = match ended {
            Ended::Done => (open.after, open.before, open.by_hand_after),
            _ => (open.before, open.after, open.by_hand_before),
        };
        for path in (0..self.paths).filter(|path| has(open.paths, *path)) {
            if state.disk[path] == expected[path] {
                (next.disk[path], next.by_hand[path]) = (want[path], by_hand[path]);
            } else if state.disk[path] != want[path] {
                others |= 1 << path;
            }
        }
        self.close(&mut next, ended, others);
        push(label, next, None);
    }

    fn edits(&self, state: &State, push: &mut Push<'_>) {
        if state.counts.edits >= self.budget.edits {
            return;
        }
        for path in 0..self.paths {
            let mut next = state.clone();
            next.counts.edits += 1;
            next.value += 1;
            next.clock += 1;
            next.disk[path] = next.value;
            // While a turn runs nobody can tell: the table of what comes back says so.
            if !state.turns.iter().any(|turn| matches!(turn, Turn::Open | Turn::Interrupted)) {
                next.by_hand[path] = ByHand { at: next.clock, saved: false };
            }
            if !self.any_open(&next) {
                next.interval.after_end[path] = true;
            }
            push("somebody edits a path", next, None);
        }
    }

    fn begin_turn(&self, state: &State, at: usize, push: &mut Push<'_>) {
        if state.turns[at] == Turn::Open || state.numbers[at] >= 3 || state.counts.turns >= self.budget.turns {
            return;
        }
        let session = u8::try_from(at).unwrap_or(0);
        let mut begun = state.clone();
        begun.counts.turns += 1;
        begun.numbers[at] += 1;
        if self.late_end_is_gap {
            begun.pending[at] = 0;
        }
        let mut next = begun.clone();
        if !self.own_record {
            next.interval.sessions |= member(session);
        }
        self.record(&mut next, Kind::TurnStart, session);
        next.turns[at] = Turn::Open;
        next.interval.sessions |= member(session);
        next.interval.outside = false;
        push("a turn begins and is captured", next, None);
        if state.counts.start_gaps < self.budget.start_gaps {
            let mut next = begun;
            next.counts.start_gaps += 1;
            next.interval.before_gap |= next.interval.outside;
            next.turns[at] = Turn::Open;
            next.interval.sessions |= member(session);
            push("a turn begins and is a gap", next, None);
        }
    }

    fn in_turn(&self, state: &State, at: usize, push: &mut Push<'_>) {
        if state.turns[at] != Turn::Open {
            return;
        }
        let session = u8::try_from(at).unwrap_or(0);
        for path in (0..self.paths).filter(|_| state.counts.writes < self.budget.writes) {
            let mut next = state.clone();
            next.counts.writes += 1;
            next.value += 1;
            next.disk[path] = next.value;
            next.interval.after_end[path] = false;
            push("the agent writes a path", next, None);
        }
        if state.counts.mutations < self.budget.mutations {
            self.mutation(state, session, push);
        }
        let number = usize::from(state.numbers[at]).saturating_sub(1);
        let mut ended = state.clone();
        ended.turns[at] = Turn::None;
        ended.ends[at][number] = state.disk;
        if !self.any_open(&ended) {
            ended.interval.outside = true;
        }
        let mut next = ended.clone();
        next.turns[at] = Turn::Open;
        self.record(&mut next, Kind::TurnEnd, session);
        next.turns[at] = Turn::None;
        self.begin_interval(&mut next);
        push("a turn ends and is captured", next, None);
        let uncaptured = |mut next: State| {
            if !state.interval.before_gap {
                next.interval.after_end = [false; PATHS];
            }
            next
        };
        if state.counts.late_ends < self.budget.late_ends {
            let mut next = uncaptured(ended.clone());
            next.counts.late_ends += 1;
            next.pending[at] = state.numbers[at];
            push("a turn ends, to be captured later", next, None);
        }
        if state.counts.end_gaps < self.budget.end_gaps {
            let mut next = uncaptured(ended);
            next.counts.end_gaps += 1;
            push("a turn ends and is a gap", next, None);
        }
        if state.counts.interrupts < self.budget.interrupts {
            let mut next = state.clone();
            next.counts.interrupts += 1;
            next.turns[at] = Turn::Interrupted;
            push("a turn is interrupted", next, None);
        }
    }

    fn mutation(&self, state: &State, session: u8, push: &mut Push<'_>) {
        let mut next = state.clone();
        next.counts.mutations += 1;
        let latest = state.records.last().filter(|r| r.ord == state.latest_ord && r.kind != Kind::Guard);
        let needless = state.disk == state.latest
            && (!self.own_duplicates || latest.is_some_and(|record| record.session == session));
        if !needless {
            self.record(&mut next, Kind::Mutation, session);
            push("a point before a tool", next, None);
            return;
        }
        // Whoever asks for the position gets the newest record of the session.
        let found = state.records.iter().rfind(|r| r.session == session && r.kind != Kind::Guard);
        if found.is_some_and(|record| record.state != state.disk) {
            push("a point before a tool, dropped as needless", next, Some(LOST_POSITION));
        }
    }

    fn late_end(&self, state: &State, at: usize, push: &mut Push<'_>) {
        let turn = state.pending[at];
        let Some(number) = turn.checked_sub(1).map(usize::from) else { return };
        let mut next = state.clone();
        next.pending[at] = 0;
        self.record(&mut next, Kind::TurnEnd, u8::try_from(at).unwrap_or(0));
        let differs = state.disk != state.ends[at][number];
        push("the end of a turn is captured late", next, (differs && state.numbers[at] > turn).then_some(LATE));
    }

    /// A second process: it walks, others act, it commits.
    fn overlap(&self, state: &State, push: &mut Push<'_>) {
        let Some(walk) = state.walk else {
            if state.counts.overlaps < self.budget.overlaps {
                let mut next = state.clone();
                next.counts.overlaps += 1;
                next.clock += 1;
                let interval = self.walk_again.then_some(next.interval);
                let (seen, by_hand) = (state.disk, state.by_hand);
                next.walk = Some(Walk { state: seen, by_hand, at: next.clock, follows: state.latest_ord, interval });
                if self.walk_again {
                    self.begin_interval(&mut next);
                }
                push("a second process walks", next, None);
            }
            return;
        };
        let mut next = state.clone();
        if self.walk_again && walk.follows != state.latest_ord {
            next.walk = None;
            if next.disk != next.latest {
                self.record(&mut next, Kind::Manual, SAVES);
            }
            push("the second process was overtaken and walks again", next, None);
            return;
        }
        next.walk = None;
        if let Some(before) = walk.interval {
            let now = next.interval;
            if walk.state == next.latest {
                next.interval.sessions |= before.sessions;
                next.interval.outside |= before.outside;
                next.interval.before_gap |= before.before_gap;
                for path in 0..PATHS {
                    next.interval.after_end[path] |= before.after_end[path];
                }
            } else {
                next.interval = before;
                self.commit(&mut next, Kind::Manual, SAVES, walk.state, walk.by_hand, walk.at);
                next.interval = now;
                if !self.any_open(&next) {
                    next.interval.outside = true;
                }
            }
        } else if walk.state != next.latest {
            self.commit(&mut next, Kind::Manual, SAVES, walk.state, walk.by_hand, walk.at);
        }
        push("the second process commits what it saw", next, None);
    }

    /// Retention: the interval of a dropped record goes to the next one.
    fn drops(&self, state: &State, push: &mut Push<'_>) {
        if state.counts.drops >= self.budget.drops || state.open().is_some() {
            return;
        }
        for (at, record) in state.records.iter().enumerate() {
            let after = &state.records[at + 1..];
            let newest = !after.iter().any(|r| r.session == record.session && r.kind != Kind::Guard);
            if newest || after.is_empty() || record.kind == Kind::Guard {
                continue;
            }
            let mut next = state.clone();
            next.counts.drops += 1;
            let dropped = next.records.remove(at);
            let ord = next.records[at].ord;
            let between = |o: &&Operation| o.ended == Ended::Done && o.ord > dropped.ord && o.ord < ord;
            let wrote = next.operations.iter().filter(between).fold(0, |all, o| all | o.paths);
            for path in (0..self.paths).filter(|path| !(self.lineage && has(wrote, *path))) {
                next.records[at].interval[path] |= dropped.interval[path];
            }
            push("a record is dropped", next, None);
        }
    }
}

impl Model for History {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let mut state = State::new();
        self.record(&mut state, Kind::TurnEnd, 0);
        debug_assert!(state.latest_ord > 0 && OUTSIDE != LOCAL);
        vec![state]
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let mut steps = Vec::new();
        let mut push = |label, state, fault| steps.push(Step { label, state, fault });
        self.edits(state, &mut push);
        for at in 0..self.sessions {
            self.begin_turn(state, at, &mut push);
            self.in_turn(state, at, &mut push);
            self.late_end(state, at, &mut push);
        }
        if state.counts.saves < self.budget.saves && state.disk != state.latest {
            let mut next = state.clone();
            next.counts.saves += 1;
            self.record(&mut next, Kind::Manual, SAVES);
            push("rwd save", next, None);
        }
        self.overlap(state, &mut push);
        // A walk that is under way holds the lock shared: operations wait for it.
        if !(self.walk_again && state.walk.is_some()) {
            self.operations(state, &mut push);
            self.drops(state, &mut push);
        }
        steps
    }
}
