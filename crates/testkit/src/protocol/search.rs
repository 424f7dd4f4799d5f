//! Breadth first over all states; the first trace to a fault is a shortest one.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
};

/// One thing that can happen.
#[derive(Clone, Debug)]
pub struct Step<S> {
    /// Who does what.
    pub label: &'static str,
    /// What is then.
    pub state: S,
    /// The promise that this breaks.
    pub fault: Option<&'static str>,
}

/// A state machine with everything that may happen in each state.
pub trait Model {
    /// A state.
    type State: Clone + Eq + Hash + Debug;

    /// Where it begins.
    fn initial(&self) -> Vec<Self::State>;

    /// Everything that can happen next; nothing when it is over.
    fn steps(&self, state: &Self::State) -> Vec<Step<Self::State>>;
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Explored {
    /// States seen.
    pub states: usize,
    /// True when there are no others.
    pub exhausted: bool,
    /// A shortest trace to each fault, as labels.
    pub faults: BTreeMap<&'static str, Vec<&'static str>>,
}

/// A state, with the one before it and the step that led there.
type Reached<S> = (S, Option<(usize, &'static str)>);

/// Looks at all states, at most `limit`.
pub fn explore<M: Model>(model: &M, limit: usize) -> Explored {
    search(model, limit, None)
}

/// Looks at states, at most `limit`, until `fault` is found. Breadth first, so its trace is a shortest one.
pub fn find<M: Model>(model: &M, limit: usize, fault: &str) -> Explored {
    search(model, limit, Some(fault))
}

fn search<M: Model>(model: &M, limit: usize, wanted: Option<&str>) -> Explored {
    let mut known: HashMap<M::State, usize> = HashMap::new();
    let mut found: Vec<Reached<M::State>> = Vec::new();
    let mut explored = Explored { exhausted: true, ..Explored::default() };
    for state in model.initial() {
        if known.insert(state.clone(), found.len()).is_none() {
            found.push((state, None));
        }
    }
    let mut at = 0;
    while let Some((state, _)) = found.get(at) {
        if found.len() > limit || wanted.is_some_and(|fault| explored.faults.contains_key(fault)) {
            explored.exhausted = false;
            break;
        }
        for step in model.steps(&state.clone()) {
            if let Some(fault) = step.fault {
                // What comes after a fault says nothing new.
                explored.faults.entry(fault).or_insert_with(|| trace(&found, at, step.label));
            } else if !known.contains_key(&step.state) {
                known.insert(step.state.clone(), found.len());
                found.push((step.state, Some((at, step.label))));
            }
        }
        at += 1;
    }
    explored.states = found.len();
    explored
}

fn trace<S>(found: &[Reached<S>], mut at: usize, last: &'static str) -> Vec<&'static str> {
    let mut labels = vec![last];
    while let Some((before, label)) = found.get(at).and_then(|(_, from)| *from) {
        labels.push(label);
        at = before;
    }
    labels.reverse();
    labels
}
