//! Who waits for whom: two operations on two workspaces, retention over both, a host whose hook captures (design § 7,
//! steps 7 and 8).

use super::{Model, Step};

/// Where an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    Apply,
    AwaitHost,
    Retention,
    EndRetention,
    Unlock,
    Over,
}

/// Where the host is with the fork that the first operation asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Host {
    Idle,
    Asked,
    InHook,
    Captured,
    Answered,
}

/// A state: who holds each workspace's lock exclusively, and whether the hook's capture holds the first one shared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    exclusive: [Option<u8>; 2],
    shared: bool,
    at: [At; 2],
    host: Host,
}

/// The rules.
#[derive(Clone, Copy, Debug)]
pub struct Locks {
    /// F22: another workspace's lock is taken only if it is free at once.
    pub try_other: bool,
    /// F22: no lock is held while the host is asked.
    pub fork_unlocked: bool,
}

/// Nobody can go on.
pub const STUCK: &str = "everybody waits";

impl Locks {
    fn operation(self, state: State, me: usize) -> Option<(&'static str, State)> {
        let other = 1 - me;
        let id = Some(u8::try_from(me).unwrap_or(u8::MAX));
        let is_free = |at: usize| state.exclusive[at].is_none() && !(at == 0 && state.shared);
        let mut next = state;
        let label = match state.at[me] {
            At::Start if is_free(me) => {
                (next.exclusive[me], next.at[me]) = (id, At::Apply);
                "an operation locks its workspace"
            }
            At::Apply if me == 0 => {
                if self.fork_unlocked {
                    next.exclusive[me] = None;
                }
                (next.host, next.at[me]) = (Host::Asked, At::AwaitHost);
                "an operation asks its host for a child"
            }
            At::Apply => {
                next.at[me] = At::Retention;
                "an operation has written its files"
            }
            At::AwaitHost if state.host == Host::Answered => {
                next.at[me] = if self.fork_unlocked { At::Over } else { At::Retention };
                "an operation has its child"
            }
            At::Retention if is_free(other) => {
                (next.exclusive[other], next.at[me]) = (id, At::EndRetention);
                "retention locks the other workspace"
            }
            At::Retention if self.try_other => {
                next.at[me] = At::Unlock;
                "retention skips a busy workspace"
            }
            At::EndRetention => {
                (next.exclusive[other], next.at[me]) = (None, At::Unlock);
                "retention is done"
            }
            At::Unlock => {
                (next.exclusive[me], next.at[me]) = (None, At::Over);
                "an operation unlocks"
            }
            At::Start | At::AwaitHost | At::Retention | At::Over => return None,
        };
        Some((label, next))
    }

    fn host(state: State) -> Option<(&'static str, State)> {
        let mut next = state;
        let label = match state.host {
            Host::Asked => {
                next.host = Host::InHook;
                "the host starts the child and runs its hook"
            }
            Host::InHook if !state.shared && state.exclusive[0].is_none() => {
                next.shared = true;
                "the hook captures"
            }
            Host::InHook if state.shared => {
                (next.shared, next.host) = (false, Host::Captured);
                "the hook is done"
            }
            Host::Captured => {
                next.host = Host::Answered;
                "the host answers"
            }
            Host::InHook | Host::Idle | Host::Answered => return None,
        };
        Some((label, next))
    }
}

impl Model for Locks {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State { exclusive: [None; 2], shared: false, at: [At::Start; 2], host: Host::Idle }]
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let moves = (0..2).filter_map(|me| self.operation(*state, me)).chain(Self::host(*state));
        let mut steps: Vec<_> = moves.map(|(label, state)| Step { label, state, fault: None }).collect();
        if steps.is_empty() && state.at != [At::Over; 2] {
            steps.push(Step { label: "nobody can go on", state: *state, fault: Some(STUCK) });
        }
        steps
    }
}
