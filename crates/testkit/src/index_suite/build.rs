//! Short ways to write points, operations and batches.

use checkpoint_core::{
    Batch, Consistency, GapReason, IndexError, IndexOp, IndexStore, Intent, IntentState, Mark, Member, Name, ObjectId,
    OpId, OpKind, OpState, Operation, Ord, PathState, Point, PointId, PointKind, RelPath, Revision, Session,
    SessionKey, Snapshot, Timestamp, Touch, Turn, WorkspaceId, Written,
};

/// Id of point number `n`: its first digits are the number's own.
pub fn id(n: u64) -> PointId {
    PointId::from_bytes(wide(n))
}

/// Id of operation number `n`.
pub fn op(n: u64) -> OpId {
    OpId::from_bytes(wide(n))
}

fn wide(n: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    bytes.rotate_left(4); // so that small numbers differ in the first digits
    bytes
}

/// A path.
///
/// # Panics
///
/// When it is none.
pub fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).expect("a valid path")
}

/// Session `text` of the harness `test`.
///
/// # Panics
///
/// When it is none.
pub fn session(text: &str) -> SessionKey {
    SessionKey::new("test", text).expect("a valid session")
}

/// An object id of the byte `n`.
pub fn object(n: u8) -> ObjectId {
    ObjectId::from_bytes([n; 20])
}

/// One touch; members are session names, `-` for outside, `local` for local.
pub fn touch(at: &str, by: &[&str]) -> Touch {
    let by = by.iter().map(|who| match *who {
        "-" => Member::Outside,
        "local" => Member::Local,
        name => Member::Session(session(name)),
    });
    Touch { path: path(at), by: by.collect() }
}

/// A point with nothing special about it.
pub fn point(ord: u64, kind: PointKind) -> Point {
    let gap = kind == PointKind::Gap;
    Point {
        id: id(ord),
        ord: Ord(ord),
        workspace: WorkspaceId::from_bytes([7; 16]),
        incarnation: 1,
        session: session("s0"),
        turn: Some(Turn(1)),
        step: None,
        kind,
        snapshot: (!gap).then(|| Snapshot { tree: object(1), meta: object(2) }),
        gap: gap.then_some(GapReason::Deadline),
        missed: gap.then_some(PointKind::TurnStart),
        trigger: None,
        call_id: None,
        note: None,
        at: Timestamp(1_000 + i64::try_from(ord).unwrap_or(0)),
        walk_started: Timestamp(1_000 + i64::try_from(ord).unwrap_or(0)),
        changed: 0,
        files: 3,
        new_bytes: 40,
        skipped: 0,
        consistency: Consistency::Quiet,
        live: Vec::new(),
        head: None,
        position: None,
        listed: true,
        under_intent: false,
        late: Vec::new(),
        operation: None,
        sensitive: Vec::new(),
        damaged: None,
        host_state: None,
        coarse_modes: false,
    }
}

/// An operation with nothing special about it.
pub fn operation(ord: u64, state: OpState) -> Operation {
    Operation {
        id: op(ord),
        ord: Ord(ord),
        kind: OpKind::Restore,
        state,
        session: session("s0"),
        target: None,
        reverses: None,
        reversed_by: None,
        guard: None,
        plan: Some(object(9)),
        at: Timestamp(5),
        wrote: 1,
        child: None,
        summary: "to t1".to_owned(),
        expired: false,
        stored: Vec::new(),
    }
}

/// What an operation wrote at one path.
pub fn written(at: &str) -> Written {
    Written {
        path: path(at),
        before: PathState::Absent,
        after: PathState::Link { blob: object(3) },
        history: vec![(Member::Outside, Ord(1))],
    }
}

/// The intent of operation `of` with the guard `guard`.
pub fn intent(of: u64, guard: u64) -> Intent {
    Intent {
        operation: op(of),
        state: IntentState::Applying,
        guard: id(guard),
        before: Snapshot { tree: object(1), meta: object(2) },
        plan: object(9),
        fork: None,
        host_state: None,
        at: Timestamp(5),
        prefix: None,
    }
}

/// A name on point `of`.
pub fn name(label: &str, of: u64) -> Name {
    Name {
        label: label.to_owned(),
        point: id(of),
        session: session("s0"),
        boundary: None,
        note: None,
        at: Timestamp(1),
        prefix: None,
    }
}

/// A mark.
pub fn mark(of: &str, n: u64) -> Mark {
    Mark { id: n, session: session(of), log_length: 4, turn: None, objective: None, folded: None, at: Timestamp(1) }
}

/// A session.
pub fn session_row(of: &str) -> Session {
    Session { key: session(of), parent: None, seed_length: None, subagent_of: None, turn: None, seen: Timestamp(1) }
}

/// Puts and changes, with the places counted along.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The index.
    pub index: &'a dyn IndexStore,
    /// Its newest place.
    pub newest: u64,
}

impl<'a> Scene<'a> {
    /// At the beginning of an empty index.
    pub fn new(index: &'a dyn IndexStore) -> Self {
        Self { index, newest: 0 }
    }

    /// Applies changes that must fit.
    ///
    /// # Panics
    ///
    /// When they do not.
    pub fn apply(&self, ops: Vec<IndexOp>) -> Revision {
        self.try_apply(ops).expect("the batch fits")
    }

    /// Applies changes.
    pub fn try_apply(&self, ops: Vec<IndexOp>) -> Result<Revision, IndexError> {
        self.index.apply(&Batch { follows: Some(Ord(self.newest)), ops })
    }

    /// The change that puts the next point.
    pub fn next_point(&mut self, kind: PointKind, interval: Vec<Touch>) -> IndexOp {
        self.newest += 1;
        IndexOp::PutPoint { point: Box::new(point(self.newest, kind)), interval }
    }

    /// A record that closes `interval`; gives its place.
    pub fn record(&mut self, interval: Vec<Touch>) -> u64 {
        self.put(PointKind::Manual, interval)
    }

    /// A point; gives its place.
    ///
    /// # Panics
    ///
    /// When it does not fit.
    pub fn put(&mut self, kind: PointKind, interval: Vec<Touch>) -> u64 {
        let before = self.newest;
        let op = self.next_point(kind, interval);
        self.index.apply(&Batch { follows: Some(Ord(before)), ops: vec![op] }).expect("the point fits");
        self.newest
    }

    /// An operation without an intent that wrote `paths`; gives its place.
    ///
    /// # Panics
    ///
    /// When it does not fit.
    pub fn operation(&mut self, state: OpState, paths: &[&str]) -> u64 {
        let before = self.newest;
        self.newest += 1;
        let ops = vec![
            IndexOp::PutOperation { operation: Box::new(operation(self.newest, state)) },
            IndexOp::PutWritten { operation: op(self.newest), written: paths.iter().map(|p| written(p)).collect() },
        ];
        self.index.apply(&Batch { follows: Some(Ord(before)), ops }).expect("the operation fits");
        self.newest
    }

    /// Drops the point at `place`.
    pub fn drop(&self, place: u64) {
        self.apply(vec![IndexOp::DropPoint { id: id(place), reason: checkpoint_core::DropReason::Quota }]);
    }

    /// The interval that the record at `place` closes.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn interval(&self, place: u64) -> Vec<Touch> {
        let mut all = self.index.intervals(Ord(place - 1)).expect("intervals");
        assert_eq!(all[0].0, Ord(place), "the first interval after {}", place - 1);
        all.swap_remove(0).1
    }
}
