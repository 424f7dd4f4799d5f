//! Files and conversation: the host is asked for a child, may answer late, refuse or crash (design § 7, steps 7 and 8).

use super::{Model, Step};

/// How far the intent is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
enum Intent {
    Applying,
    Applied,
    Forking,
    Done,
    RolledBack,
    Partial,
}

/// The child's log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Child {
    None,
    Written,
    Synced,
}

/// What the program does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Nothing,
    Forward,
    Back,
}

/// A state; two files stand for all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    files: u8,
    intent: Intent,
    child: Child,
    asked: bool,
    refused: bool,
    doing: Doing,
    crashes: u8,
    losses: u8,
}

/// The rules and the bounds.
#[derive(Clone, Copy, Debug)]
pub struct Fork {
    /// F20: before the host is asked the intent says so, durably, and from then on there is no way back.
    pub forking_first: bool,
    /// F20: the child's log is synced before the operation is done.
    pub sync_child: bool,
    /// Crashes of the program.
    pub crashes: u8,
    /// Power losses.
    pub losses: u8,
}

impl Default for Fork {
    fn default() -> Self {
        Self { forking_first: true, sync_child: true, crashes: 3, losses: 2 }
    }
}

/// A child exists that assumes files which are not there.
pub const ORPHAN: &str = "a child assumes files that were rolled back";
/// The host made the child over half of the files.
pub const HALF: &str = "the session is forked over a half restore";
/// The operation says that there is a child, and there is none.
pub const NO_CHILD: &str = "the operation is done and its child is lost";

impl Fork {
    fn forward(self, state: State) -> (&'static str, State) {
        let mut next = state;
        let label = if state.files < 2 {
            next.files += 1;
            "rwd: writes a file"
        } else if state.intent == Intent::Applying {
            next.intent = Intent::Applied;
            "rwd: syncs, intent applied"
        } else if state.intent == Intent::Applied && self.forking_first {
            next.intent = Intent::Forking;
            "rwd: intent forking"
        } else if state.child == Child::Written && self.sync_child {
            next.child = Child::Synced;
            "rwd: syncs the child"
        } else if state.child != Child::None {
            (next.intent, next.doing) = (Intent::Done, Doing::Nothing);
            "rwd: done"
        } else if state.refused {
            (next.intent, next.doing) = (Intent::Partial, Doing::Nothing);
            "rwd: not forked"
        } else {
            next.asked = true;
            "rwd: asks the host"
        };
        (label, next)
    }
}

impl Model for Fork {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State {
            files: 0,
            intent: Intent::Applying,
            child: Child::None,
            asked: false,
            refused: false,
            doing: Doing::Forward,
            crashes: 0,
            losses: 0,
        }]
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let mut steps = Vec::new();
        let mut push = |label, next: State, fault: Option<&'static str>| {
            let end = match next.intent {
                Intent::RolledBack if next.child != Child::None => Some(ORPHAN),
                Intent::Done if next.child == Child::None => Some(NO_CHILD),
                _ => None,
            };
            steps.push(Step { label, state: next, fault: fault.or(end) });
        };
        match state.doing {
            Doing::Forward if !(state.asked && state.child == Child::None) => {
                let (label, next) = self.forward(*state);
                push(label, next, None);
            }
            Doing::Back if state.files > 0 => {
                push("rwd: puts a file back", State { files: state.files - 1, ..*state }, None);
            }
            Doing::Back => {
                let over = State { intent: Intent::RolledBack, doing: Doing::Nothing, ..*state };
                push("rwd: rolled back", over, None);
            }
            Doing::Nothing if state.intent < Intent::Done => {
                let again = State { doing: Doing::Forward, refused: false, ..*state };
                push("rwd recover --finish", again, None);
                if state.intent < Intent::Forking {
                    push("rwd recover --back", State { doing: Doing::Back, ..*state }, None);
                }
            }
            Doing::Forward | Doing::Nothing => {}
        }
        if state.asked {
            let half = (state.files != 2).then_some(HALF);
            let child = if state.child == Child::None { Child::Written } else { state.child };
            push("the host makes the child", State { asked: false, child, ..*state }, half);
            push("the host refuses", State { asked: false, refused: true, ..*state }, None);
        }
        if state.doing != Doing::Nothing && state.crashes < self.crashes {
            let crashed = State { doing: Doing::Nothing, crashes: state.crashes + 1, ..*state };
            push("the process is killed", crashed, None);
        }
        if state.losses < self.losses {
            let lost =
                State { doing: Doing::Nothing, asked: false, refused: false, losses: state.losses + 1, ..*state };
            if state.child == Child::Written {
                push("the power fails, the child's log is lost", State { child: Child::None, ..lost }, None);
                push("the power fails, the child's log survives", State { child: Child::Synced, ..lost }, None);
            } else {
                push("the power fails", lost, None);
            }
        }
        steps
    }
}
