//! What a capture may say is absent, and `--exact` may remove: a path `p` in a directory, a walk over it, an editor, rules
//! that come and go, a file system whose clock has granules (design § 5; F21).

use super::{Model, Step};

/// Why the walk did not take `p`, or that it did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Seen {
    Nothing,
    Taken,
    /// The directory was skipped as a nested repository.
    AncestorSkipped,
    Ignored,
    Unreadable,
}

/// Where the capture is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    Listed,
    Walked,
    Checked,
    Recorded,
    Asked,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "what is there, and what was seen of it")]
pub struct State {
    at: At,
    exists: bool,
    readable: bool,
    ignored: bool,
    repository: bool,
    /// The agent is held by its hook.
    held: bool,
    granule: u8,
    stamp: u8,
    listed_stamp: u8,
    listed_in: u8,
    seen: Seen,
    ignored_when_recorded: bool,
    existed_at_check: bool,
    quiet: bool,
    edits: u8,
}

/// The rules.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// F21: a directory is at rest by its stamp alone; that the agent is held is not enough.
    pub stamps_always: bool,
    /// F21: and only if that stamp was older than a granule when it was listed.
    pub racy: bool,
    /// F21: what was skipped itself is not proved absent, not only what lies below something skipped. The rules as they
    /// were stored say less: they may have changed since the directory was listed.
    pub self_skipped: bool,
    /// Edits that somebody makes.
    pub edits: u8,
}

impl Default for Evidence {
    fn default() -> Self {
        Self { stamps_always: true, racy: true, self_skipped: true, edits: 2 }
    }
}

/// `p` was there and counts as proved absent.
pub const WRONGLY_ABSENT: &str = "a path that was there is proved absent";

impl Evidence {
    fn walk(self, state: &State) -> Option<Step<State>> {
        let mut next = *state;
        let mut fault = None;
        let label = match state.at {
            At::Start => {
                next.at = At::Listed;
                (next.listed_stamp, next.listed_in) = (state.stamp, state.granule);
                next.seen = match state {
                    _ if state.repository => Seen::AncestorSkipped,
                    _ if !state.exists => Seen::Nothing,
                    _ if state.ignored => Seen::Ignored,
                    _ if !state.readable => Seen::Unreadable,
                    _ => Seen::Taken,
                };
                "a capture lists the directory"
            }
            At::Listed => {
                (next.at, next.ignored_when_recorded) = (At::Walked, state.ignored);
                "a capture walks the rest and stores the rules"
            }
            At::Walked => {
                let still = state.stamp == state.listed_stamp && (!self.racy || state.listed_stamp < state.listed_in);
                (next.at, next.existed_at_check) = (At::Checked, state.exists);
                next.quiet = still || (state.held && !self.stamps_always);
                "a capture looks at the stamp again"
            }
            At::Checked => {
                next.at = At::Recorded;
                "a capture commits its record"
            }
            At::Recorded => {
                next.at = At::Asked;
                let skipped = matches!(state.seen, Seen::Ignored | Seen::Unreadable);
                let proved = state.quiet
                    && state.seen != Seen::Taken
                    && state.seen != Seen::AncestorSkipped
                    && !(self.self_skipped && skipped)
                    && !state.ignored_when_recorded
                    && !state.ignored
                    && !state.repository;
                // What comes after the check is after the point.
                fault = (proved && state.exists && state.existed_at_check).then_some(WRONGLY_ABSENT);
                "a restore to the point asks whether the path may go"
            }
            At::Asked => return None,
        };
        Some(Step { label, state: next, fault })
    }
}

impl Model for Evidence {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let mut all = Vec::new();
        let both = [false, true];
        for (held, ignored, repository) in
            both.into_iter().flat_map(|a| both.map(|b| (a, b))).flat_map(|(a, b)| both.map(|c| (a, b, c)))
        {
            for (exists, readable) in [(false, true), (true, true), (true, false)] {
                all.push(State {
                    at: At::Start,
                    exists,
                    readable,
                    ignored,
                    repository,
                    held,
                    granule: 1,
                    stamp: 0,
                    listed_stamp: 0,
                    listed_in: 0,
                    seen: Seen::Nothing,
                    ignored_when_recorded: false,
                    existed_at_check: false,
                    quiet: false,
                    edits: 0,
                });
            }
        }
        all
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let mut steps: Vec<_> = self.walk(state).into_iter().collect();
        let mut push = |label, state| steps.push(Step { label, state, fault: None });
        if state.at == At::Asked {
            return steps;
        }
        if state.granule < 3 {
            push("the clock goes on", State { granule: state.granule + 1, ..*state });
        }
        if state.edits < self.edits {
            let edits = state.edits + 1;
            if !state.exists {
                let stamp = state.granule;
                push("somebody makes the path", State { exists: true, readable: true, stamp, edits, ..*state });
            } else if !state.readable {
                push("the path becomes readable", State { readable: true, edits, ..*state });
            }
            push("a rule is switched in place", State { ignored: !state.ignored, edits, ..*state });
            let (repository, stamp) = (!state.repository, state.granule);
            push("a repository appears or goes", State { repository, stamp, edits, ..*state });
        }
        steps
    }
}
