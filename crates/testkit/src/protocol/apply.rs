//! One path that is overwritten: temporaries, exchange, compare, crash, recovery, edits, and a parent that is swapped for
//! a link (design § 7, step 4).

use super::{Model, Step};

/// What a name holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// Nothing.
    Absent,
    /// The state that the guard holds.
    Before,
    /// The planned state.
    After,
    /// A half-written temporary.
    Torn,
    /// What somebody saved, by number.
    User(u8),
}

use Content::{Absent, After, Before, Torn, User};

/// Who is at work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Forward,
    /// Recovery towards the plan, or back from it.
    Finish,
    Back,
    /// The process is gone and its intent is open.
    Crashed,
    Over,
}

/// Where the program is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// Opens the parent.
    Open,
    /// Recovery looks at the temporaries.
    Sweep,
    Settle,
    Decide,
    Draft,
    Complete,
    Name,
    /// Without exchange: looks whether the path is as expected.
    Look,
    Replace,
    Exchange,
    Compare,
    ExchangeBack,
    CompareAgain,
    Unlink,
    Verify,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    path: Content,
    /// Temporary under its first name.
    draft: Content,
    /// Temporary under its exchange name.
    swap: Content,
    phase: Phase,
    at: At,
    /// Edits that were stored, as bits.
    stored: u8,
    edits: u8,
    crashes: u8,
    /// The parent was moved away and a link is in its place.
    moved: bool,
}

/// The rules, each of which can be left out, and the bounds.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule that can be left out")]
pub struct Apply {
    /// F1: what an exchange back brings out is compared too.
    pub compare_again: bool,
    /// F1: bytes that nobody has are stored before they are unlinked.
    pub store_unknown: bool,
    /// F2: a temporary has another name until it is complete.
    pub two_names: bool,
    /// A parent is opened once, without following links, and names are used below the open directory only.
    pub by_descriptor: bool,
    /// The file system can exchange two names.
    pub exchange: bool,
    /// Edits somebody may make.
    pub edits: u8,
    /// Crashes.
    pub crashes: u8,
    /// Whether the parent may be swapped.
    pub swaps: bool,
}

impl Default for Apply {
    fn default() -> Self {
        Self {
            compare_again: true,
            store_unknown: true,
            two_names: true,
            by_descriptor: true,
            exchange: true,
            edits: 3,
            crashes: 3,
            swaps: true,
        }
    }
}

/// An edit is in no object and under no name any more.
pub const LOST: &str = "an edit is lost";
/// Half a temporary is under the user's name.
pub const TORN: &str = "a torn file is under the user's name";
/// Something was written behind the link.
pub const OUTSIDE: &str = "something was written through a link";
/// The end is neither before nor after although nobody else did anything.
pub const WRONG: &str = "the path is wrong by our own doing";
/// A temporary is left.
pub const LITTER: &str = "a temporary is left";

impl Apply {
    fn knows(state: &State, content: Content) -> bool {
        match content {
            Absent | Before | After => true,
            Torn => false,
            User(n) => state.stored & (1 << n) != 0,
        }
    }

    /// What the program expects and what it wants.
    fn goal(state: &State) -> (Content, Content) {
        if state.phase == Phase::Back { (After, Before) } else { (Before, After) }
    }

    /// The fault of dropping `content`, if it is one.
    fn dropped(state: &State, content: Content) -> Option<&'static str> {
        (matches!(content, User(_)) && !Self::knows(state, content)).then_some(LOST)
    }

    /// Somebody else's content is met: rolled back as at the first interrupt.
    fn stop(mut state: State) -> State {
        if state.phase == Phase::Forward {
            state.phase = Phase::Back;
            state.at = At::Sweep;
        } else {
            state.at = At::Verify;
        }
        state
    }

    /// Stores what nobody has, then drops the exchange name.
    fn unlink(self, state: &State) -> (State, Option<&'static str>) {
        let mut next = *state;
        if self.store_unknown
            && let User(n) = state.swap
        {
            next.stored |= 1 << n;
        }
        next.swap = Absent;
        (next, Self::dropped(&next, state.swap))
    }

    /// The program's next step.
    fn work(self, state: &State) -> Step<State> {
        let mut next = *state;
        let (expected, wanted) = Self::goal(state);
        let mut fault = None;
        // Without the rule every step looks the name up anew, and gets behind the link.
        if state.moved && !self.by_descriptor && !matches!(state.at, At::Open | At::Verify | At::Look | At::Compare) {
            return Step { label: "rwd: writes below the parent's name", state: next, fault: Some(OUTSIDE) };
        }
        let label = match state.at {
            At::Open => {
                if state.moved {
                    next.at = At::Verify;
                    "rwd: the parent is a link, refused"
                } else {
                    next.at = if state.phase == Phase::Forward { At::Draft } else { At::Sweep };
                    "rwd: opens the parent"
                }
            }
            At::Sweep => {
                next.draft = Absent;
                next.at = At::Settle;
                "rwd: sweeps an unfinished temporary"
            }
            At::Settle => match (state.swap, state.path) {
                (Absent, _) => {
                    next.at = At::Decide;
                    "rwd: no temporary"
                }
                (swap, _) if Self::knows(state, swap) => {
                    next.swap = Absent;
                    "rwd: removes a temporary with known bytes"
                }
                (swap, Absent) => {
                    (next.path, next.swap) = (swap, Absent);
                    "rwd: puts a temporary back where nothing is"
                }
                (swap, path) if Self::knows(state, path) => {
                    (next.path, next.swap) = (swap, path);
                    "rwd: puts a temporary back by exchange"
                }
                _ => {
                    (next, fault) = self.unlink(state);
                    "rwd: stores and removes an unknown temporary"
                }
            },
            At::Decide => {
                next.at = if state.path == expected && state.path != wanted { At::Draft } else { At::Verify };
                "rwd: looks what is left to do"
            }
            At::Draft => {
                if self.two_names {
                    next.draft = Torn;
                } else {
                    next.swap = Torn;
                }
                next.at = At::Complete;
                "rwd: begins a temporary"
            }
            At::Complete => {
                if self.two_names {
                    next.draft = wanted;
                } else {
                    next.swap = wanted;
                }
                next.at = At::Name;
                "rwd: completes and syncs it"
            }
            At::Name => {
                if self.two_names {
                    (next.swap, next.draft) = (state.draft, Absent);
                }
                next.at = if self.exchange { At::Exchange } else { At::Look };
                "rwd: gives it its exchange name"
            }
            At::Look => {
                next.at = At::Replace;
                if state.path != expected {
                    (next, fault) = self.unlink(state);
                    next = Self::stop(next);
                }
                "rwd: compares the path"
            }
            At::Replace => {
                fault = Self::dropped(state, state.path);
                (next.path, next.swap, next.at) = (state.swap, Absent, At::Verify);
                "rwd: renames over the path"
            }
            At::Exchange if state.path == Absent => {
                (next, fault) = self.unlink(state);
                next = Self::stop(next);
                "rwd: nothing to exchange with"
            }
            At::Exchange => {
                (next.path, next.swap, next.at) = (state.swap, state.path, At::Compare);
                "rwd: exchanges"
            }
            At::Compare => {
                next.at = if state.swap == expected { At::Unlink } else { At::ExchangeBack };
                "rwd: compares what came out"
            }
            At::ExchangeBack if state.path == Absent => {
                (next.path, next.swap) = (state.swap, Absent);
                next = Self::stop(next);
                "rwd: puts it back where nothing is"
            }
            At::ExchangeBack => {
                (next.path, next.swap, next.at) = (state.swap, state.path, At::CompareAgain);
                "rwd: exchanges back"
            }
            At::CompareAgain => {
                if self.compare_again {
                    (next, fault) = self.unlink(state);
                } else {
                    fault = Self::dropped(state, state.swap);
                    next.swap = Absent;
                }
                next = Self::stop(next);
                "rwd: removes what came out"
            }
            At::Unlink => {
                fault = Self::dropped(state, state.swap);
                (next.swap, next.at) = (Absent, At::Verify);
                "rwd: removes what was there before"
            }
            At::Verify => {
                next.phase = Phase::Over;
                // What differs because of somebody else is named by the verification.
                let right = state.path == wanted || state.edits > 0 || state.moved;
                fault = match (state.path, right) {
                    (Torn, _) => Some(TORN),
                    (_, false) => Some(WRONG),
                    _ if !state.moved && (state.draft != Absent || state.swap != Absent) => Some(LITTER),
                    _ => None,
                };
                "rwd: verifies and closes"
            }
        };
        Step { label, state: next, fault }
    }
}

impl Model for Apply {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State {
            path: Before,
            draft: Absent,
            swap: Absent,
            phase: Phase::Forward,
            at: At::Open,
            stored: 0,
            edits: 0,
            crashes: 0,
            moved: false,
        }]
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let mut steps = Vec::new();
        let mut push = |label, state, fault| steps.push(Step { label, state, fault });
        match state.phase {
            Phase::Over => return steps,
            Phase::Crashed => {
                for (label, phase) in [("rwd recover --finish", Phase::Finish), ("rwd recover --back", Phase::Back)] {
                    push(label, State { phase, at: At::Open, ..*state }, None);
                }
            }
            _ => {
                let step = self.work(state);
                push(step.label, step.state, step.fault);
                if state.crashes < self.crashes {
                    let crashed = State { phase: Phase::Crashed, crashes: state.crashes + 1, ..*state };
                    push("the process is killed", crashed, None);
                }
            }
        }
        if state.edits < self.edits && !state.moved {
            let edits = state.edits + 1;
            push("somebody saves the file", State { path: User(edits), edits, ..*state }, None);
            push("somebody removes the file", State { path: Absent, edits, ..*state }, None);
        }
        if self.swaps && !state.moved {
            push("somebody puts a link in the parent's place", State { moved: true, ..*state }, None);
        }
        steps
    }
}
