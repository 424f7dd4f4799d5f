//! An index that fails when it is told to.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use checkpoint_core::{
    Batch, IndexError, IndexStore, Intent, Mark, Name, OpId, OpKind, Operation, Ord, Point, PointId, PointQuery,
    RelPath, Revision, Session, SessionKey, Touch, Written,
};

/// How one call of `apply` fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Somebody else recorded something meanwhile; nothing is applied.
    Conflict,
    /// Another process has the index; nothing is applied.
    Busy,
    /// No room; nothing is applied.
    NoSpace,
    /// The write failed and was not applied; the handle is poisoned.
    Lost,
    /// The write failed and was applied all the same; the handle is poisoned.
    Unsure,
}

/// Decides about every call of `apply`, so that one plan covers an index and what is beside it.
pub trait ApplyFaults: std::fmt::Debug + Send + Sync {
    /// How this call fails; `None`: it does not.
    fn next(&self) -> Option<Fault>;
}

/// Forwards everything to another index, counts calls of `apply`, and lets a chosen one fail.
#[derive(Debug)]
pub struct FaultyIndex {
    inner: Arc<dyn IndexStore>,
    applied: AtomicU64,
    next: Mutex<Option<(u64, Fault)>>,
    poisoned: Mutex<bool>,
    faults: Option<Arc<dyn ApplyFaults>>,
}

impl FaultyIndex {
    /// Asks `faults` at every call.
    pub fn with_faults(inner: Arc<dyn IndexStore>, faults: Arc<dyn ApplyFaults>) -> Self {
        Self { faults: Some(faults), ..Self::new(inner) }
    }

    /// Nothing fails yet.
    pub fn new(inner: Arc<dyn IndexStore>) -> Self {
        Self { inner, applied: AtomicU64::new(0), next: Mutex::new(None), poisoned: Mutex::new(false), faults: None }
    }

    /// Calls of `apply` so far, failed ones included: crash tests count first and then fail each in turn.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::SeqCst)
    }

    /// Lets the `n`-th call of `apply` from now on fail, the next one being the first.
    ///
    /// # Panics
    ///
    /// After a panic in another thread.
    pub fn fail(&self, n: u64, fault: Fault) {
        *self.next.lock().unwrap() = Some((self.applied() + n, fault));
    }

    fn sound(&self) -> Result<&dyn IndexStore, IndexError> {
        if *self.poisoned.lock().unwrap() { Err(IndexError::Poisoned) } else { Ok(&*self.inner) }
    }

    fn poison(&self) -> IndexError {
        *self.poisoned.lock().unwrap() = true;
        IndexError::Storage { source: "injected fault".into() }
    }
}

#[deny(clippy::missing_trait_methods)]
impl IndexStore for FaultyIndex {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn revision(&self) -> Result<Revision, IndexError> {
        self.sound()?.revision()
    }

    fn newest(&self) -> Result<Ord, IndexError> {
        self.sound()?.newest()
    }

    fn apply(&self, batch: &Batch) -> Result<Revision, IndexError> {
        let inner = self.sound()?;
        let call = self.applied.fetch_add(1, Ordering::SeqCst) + 1;
        let due = self.next.lock().unwrap().take_if(|(at, _)| *at == call);
        let asked = || self.faults.as_ref().and_then(|faults| faults.next());
        match due.map(|(_, fault)| fault).or_else(asked) {
            None => inner.apply(batch),
            Some(Fault::Conflict) => {
                let found = inner.newest()?;
                Err(IndexError::Conflict { expected: batch.follows.unwrap_or(found), found: found.next() })
            }
            Some(Fault::Busy) => Err(IndexError::Busy),
            Some(Fault::NoSpace) => Err(IndexError::NoSpace),
            Some(Fault::Lost) => Err(self.poison()),
            Some(Fault::Unsure) => {
                inner.apply(batch)?;
                Err(self.poison())
            }
        }
    }

    fn points(&self, query: &PointQuery) -> Result<Vec<Point>, IndexError> {
        self.sound()?.points(query)
    }

    fn point(&self, id: &PointId) -> Result<Option<Point>, IndexError> {
        self.sound()?.point(id)
    }

    fn intervals(&self, after: Ord) -> Result<Vec<(Ord, Vec<Touch>)>, IndexError> {
        self.sound()?.intervals(after)
    }

    fn waiting(&self) -> Result<Vec<Touch>, IndexError> {
        self.sound()?.waiting()
    }

    fn operation(&self, id: &OpId) -> Result<Option<Operation>, IndexError> {
        self.sound()?.operation(id)
    }

    fn operations(&self, kinds: &[OpKind], limit: Option<usize>) -> Result<Vec<Operation>, IndexError> {
        self.sound()?.operations(kinds, limit)
    }

    fn written(&self, id: &OpId) -> Result<Vec<Written>, IndexError> {
        self.sound()?.written(id)
    }

    fn open_intent(&self) -> Result<Option<Intent>, IndexError> {
        self.sound()?.open_intent()
    }

    fn sessions(&self) -> Result<Vec<Session>, IndexError> {
        self.sound()?.sessions()
    }

    fn session(&self, key: &SessionKey) -> Result<Option<Session>, IndexError> {
        self.sound()?.session(key)
    }

    fn names(&self) -> Result<Vec<Name>, IndexError> {
        self.sound()?.names()
    }

    fn marks(&self, session: &SessionKey) -> Result<Vec<Mark>, IndexError> {
        self.sound()?.marks(session)
    }

    fn newest_mark(&self) -> Result<u64, IndexError> {
        self.sound()?.newest_mark()
    }

    fn held(&self) -> Result<BTreeSet<RelPath>, IndexError> {
        self.sound()?.held()
    }

    fn check(&self) -> Result<(), IndexError> {
        self.sound()?.check()
    }

    fn maintain(&self) -> Result<(), IndexError> {
        self.sound()?.maintain()
    }
}
