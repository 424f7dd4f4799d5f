//! Objects, records, the lock, the stat cache, the epoch, collections and an open intent, under crashes and power losses
//! (design §§ 4, 8; F17–F19).

use super::{Model, Step};

/// Two objects that captures want, and the plan of an operation.
const OBJECTS: usize = 3;
const PLAN: usize = 2;

/// How far an object is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Object {
    Gone,
    /// Its pack has its name, but the directory is not synced.
    Named,
    Durable,
}

/// Where a capture is, and what its cache vouches for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Capture {
    Idle,
    /// Holds the lock shared.
    Locked {
        wants: usize,
    },
    /// Has read the cache; bits of the objects that it believes in.
    Read {
        wants: usize,
        known: u8,
    },
    Wrote {
        wants: usize,
        known: u8,
        own: bool,
    },
    Synced {
        wants: usize,
        known: u8,
    },
    Recorded {
        wants: usize,
        known: u8,
    },
}

/// Where the collection is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Collection {
    Idle,
    /// Bits of what is live.
    Marked {
        live: u8,
    },
    Removing {
        live: u8,
    },
}

/// Where the operation is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Operation {
    Idle,
    Locked,
    Planned,
    Intended,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    objects: [Object; OBJECTS],
    /// Records of the first two objects, as bits. They are durable: the index syncs by itself.
    records: u8,
    /// An intent that names the plan is open.
    intent: bool,
    epoch: u8,
    epoch_on_disk: u8,
    /// Objects that the cache vouches for, and the epoch that it is of.
    cache: (u8, u8),
    captures: [Capture; 2],
    collection: Collection,
    operation: Operation,
    begun: [u8; 2],
    dropped: u8,
    crashes: u8,
    losses: u8,
    operations: u8,
}

/// The rules and the bounds.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule that can be left out")]
pub struct Store {
    /// F18: the directory is synced before every record that relies on an object this capture did not sync itself.
    pub sync_reused: bool,
    /// F19: the epoch moves before the first removal.
    pub epoch_first: bool,
    /// F19: and that is durable.
    pub epoch_synced: bool,
    /// F17: the plan of an open intent is a root.
    pub plan_is_root: bool,
    /// F17: the plan is synced before the batch that names it.
    pub plan_synced: bool,
    /// A collection excludes captures: nobody is between "it is there" and the record.
    pub exclusive: bool,
    /// Captures, and collections.
    pub begun: [u8; 2],
    /// Records that retention drops.
    pub dropped: u8,
    /// Processes that are killed.
    pub crashes: u8,
    /// Power losses.
    pub losses: u8,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            sync_reused: true,
            epoch_first: true,
            epoch_synced: true,
            plan_is_root: true,
            plan_synced: true,
            exclusive: true,
            begun: [2, 2],
            dropped: 1,
            crashes: 1,
            losses: 1,
        }
    }
}

/// A record refers to an object that is not there.
pub const GONE: &str = "a record refers to an object that is gone";
/// The plan of an open intent is not there: neither way of recovery is left.
pub const NO_PLAN: &str = "the plan of an open intent is gone";

/// What is wrong with a state.
fn fault(state: &State) -> Option<&'static str> {
    if (0..PLAN).any(|object| state.records & (1 << object) != 0 && state.objects[object] == Object::Gone) {
        return Some(GONE);
    }
    (state.intent && state.objects[PLAN] == Object::Gone).then_some(NO_PLAN)
}

/// Everything that has its name is durable.
fn sync(state: &mut State) {
    for object in &mut state.objects {
        if *object == Object::Named {
            *object = Object::Durable;
        }
    }
}

impl Store {
    fn is_captured(state: &State) -> bool {
        state.captures.iter().any(|capture| *capture != Capture::Idle)
    }

    /// True when somebody may take the lock exclusively.
    fn is_free(self, state: &State) -> bool {
        state.collection == Collection::Idle
            && state.operation == Operation::Idle
            && !(self.exclusive && Self::is_captured(state))
    }

    fn capture(self, state: &State, at: usize, push: &mut dyn FnMut(&'static str, State)) {
        let mut next = *state;
        let label = match state.captures[at] {
            Capture::Idle => {
                let busy = state.collection != Collection::Idle || state.operation != Operation::Idle;
                if state.begun[0] < self.begun[0] && !(busy && self.exclusive) {
                    for wants in 0..PLAN {
                        let mut next = *state;
                        next.begun[0] += 1;
                        next.captures[at] = Capture::Locked { wants };
                        push("a capture takes the lock shared", next);
                    }
                }
                return;
            }
            Capture::Locked { wants } => {
                let (known, of) = state.cache;
                next.captures[at] = Capture::Read { wants, known: if of == state.epoch { known } else { 0 } };
                "a capture compares the epoch with its cache"
            }
            Capture::Read { wants, known } => {
                let own = known & (1 << wants) == 0 && state.objects[wants] == Object::Gone;
                if own {
                    next.objects[wants] = Object::Named;
                }
                next.captures[at] = Capture::Wrote { wants, known, own };
                if own { "a capture writes its object" } else { "a capture finds its object there" }
            }
            Capture::Wrote { wants, known, own } => {
                if own || self.sync_reused {
                    sync(&mut next);
                }
                next.captures[at] = Capture::Synced { wants, known };
                "a capture has synced what it must"
            }
            Capture::Synced { wants, known } => {
                next.records |= 1 << wants;
                next.captures[at] = Capture::Recorded { wants, known };
                "a capture commits its record"
            }
            Capture::Recorded { wants, known } => {
                next.cache = (known | 1 << wants, state.epoch);
                next.captures[at] = Capture::Idle;
                "a capture writes the cache and is done"
            }
        };
        push(label, next);
        if state.crashes < self.crashes {
            let mut crashed = *state;
            crashed.crashes += 1;
            crashed.captures[at] = Capture::Idle;
            push("a capture is killed", crashed);
        }
    }

    fn move_epoch(self, state: &mut State) {
        state.epoch += 1;
        if self.epoch_synced {
            state.epoch_on_disk = state.epoch;
        }
    }

    fn collection(self, state: &State, push: &mut dyn FnMut(&'static str, State)) {
        let mut next = *state;
        match state.collection {
            Collection::Idle => {
                if state.begun[1] < self.begun[1] && self.is_free(state) {
                    next.begun[1] += 1;
                    let live = state.records | if state.intent && self.plan_is_root { 1 << PLAN } else { 0 };
                    next.collection =
                        if self.epoch_first { Collection::Marked { live } } else { Collection::Removing { live } };
                    push("a collection takes the lock and marks what is live", next);
                }
                return;
            }
            Collection::Marked { live } => {
                self.move_epoch(&mut next);
                next.collection = Collection::Removing { live };
                push("a collection moves the epoch on", next);
            }
            Collection::Removing { live } => {
                let dead = |object: &usize| state.objects[*object] != Object::Gone && live & (1 << object) == 0;
                let mut done = true;
                for object in (0..OBJECTS).filter(dead) {
                    let mut next = *state;
                    next.objects[object] = Object::Gone;
                    push("a collection removes an object", next);
                    done = false;
                }
                if done {
                    if !self.epoch_first {
                        self.move_epoch(&mut next);
                    }
                    next.collection = Collection::Idle;
                    push("a collection is done", next);
                }
            }
        }
        if state.crashes < self.crashes {
            push(
                "a collection is killed",
                State { collection: Collection::Idle, crashes: state.crashes + 1, ..*state },
            );
        }
    }

    fn operation(self, state: &State, push: &mut dyn FnMut(&'static str, State)) {
        let mut next = *state;
        match state.operation {
            Operation::Idle => {
                if state.intent && self.is_free(state) {
                    push("recovery reads the plan and closes the intent", State { intent: false, ..*state });
                } else if state.operations == 0 && self.is_free(state) {
                    (next.operations, next.operation) = (1, Operation::Locked);
                    push("an operation takes the lock", next);
                }
                return;
            }
            Operation::Locked => {
                (next.objects[PLAN], next.operation) = (Object::Named, Operation::Planned);
                push("an operation writes its plan", next);
            }
            Operation::Planned => {
                if self.plan_synced {
                    sync(&mut next);
                }
                (next.intent, next.operation) = (true, Operation::Intended);
                push("an operation commits its intent", next);
            }
            Operation::Intended => {
                (next.intent, next.operation) = (false, Operation::Idle);
                push("an operation is done", next);
            }
        }
        if state.crashes < self.crashes {
            push("an operation is killed", State { operation: Operation::Idle, crashes: state.crashes + 1, ..*state });
        }
    }

    fn power(self, state: &State, push: &mut dyn FnMut(&'static str, State)) {
        if state.losses >= self.losses {
            return;
        }
        let named: Vec<usize> = (0..OBJECTS).filter(|object| state.objects[*object] == Object::Named).collect();
        // Any part of what was not synced may have reached the disk.
        for reached in 0..1_u8 << named.len() {
            for epoch in [state.epoch, state.epoch_on_disk] {
                let mut lost = State {
                    captures: [Capture::Idle; 2],
                    collection: Collection::Idle,
                    operation: Operation::Idle,
                    epoch,
                    epoch_on_disk: epoch,
                    losses: state.losses + 1,
                    ..*state
                };
                for (bit, object) in named.iter().enumerate() {
                    lost.objects[*object] = if reached & (1 << bit) == 0 { Object::Gone } else { Object::Durable };
                }
                push("the power fails", lost);
                if epoch == state.epoch_on_disk {
                    break;
                }
            }
        }
    }
}

impl Model for Store {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State {
            objects: [Object::Gone; OBJECTS],
            records: 0,
            intent: false,
            epoch: 0,
            epoch_on_disk: 0,
            cache: (0, 0),
            captures: [Capture::Idle; 2],
            collection: Collection::Idle,
            operation: Operation::Idle,
            begun: [0; 2],
            dropped: 0,
            crashes: 0,
            losses: 0,
            operations: 0,
        }]
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let mut steps = Vec::new();
        let mut push = |label, state: State| steps.push(Step { label, fault: fault(&state), state });
        for at in 0..state.captures.len() {
            self.capture(state, at, &mut push);
        }
        self.collection(state, &mut push);
        self.operation(state, &mut push);
        if state.dropped < self.dropped {
            for object in (0..PLAN).filter(|object| state.records & (1 << object) != 0) {
                let (records, dropped) = (state.records & !(1 << object), state.dropped + 1);
                push("retention drops a record", State { records, dropped, ..*state });
            }
        }
        self.power(state, &mut push);
        steps
    }
}
