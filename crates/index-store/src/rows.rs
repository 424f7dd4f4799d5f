//! Rows: what every index is made of, and the little that a store must be able to do with them.
//!
//! A row is a JSON document under a text key in one of a few tables. The meaning of a batch is written once, over
//! these traits; memory, JSON and SQLite differ only in where rows live and how they become durable.

use std::ops::{Bound, ControlFlow};

use checkpoint_core::{IndexError, Mark, OpId, Ord, PointId, RelPath, SessionKey};

use crate::format::Format;

/// The tables. Their names and keys are part of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// Place → point.
    Point,
    /// Id of a point → its place.
    PointId,
    /// Place of a record that is no gap → the touches of the interval it closes. Empty ones are stored too: the next
    /// row after a place is the next record.
    Interval,
    /// Place of a dropped record → its touches, waiting for the record to come.
    Waiting,
    /// Place → operation.
    Operation,
    /// Id of an operation → its place.
    OperationId,
    /// Place of an operation → what it wrote.
    Written,
    /// [`OPEN`] → the open transaction.
    Intent,
    /// Session → session.
    Session,
    /// Label → name.
    Name,
    /// Session and number → mark.
    Mark,
    /// Path → true.
    Held,
    /// [`FORMAT`], [`NEWEST`], [`REVISION`].
    State,
}

impl Table {
    pub(crate) const ALL: [Self; 13] = [
        Self::Point,
        Self::PointId,
        Self::Interval,
        Self::Waiting,
        Self::Operation,
        Self::OperationId,
        Self::Written,
        Self::Intent,
        Self::Session,
        Self::Name,
        Self::Mark,
        Self::Held,
        Self::State,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::PointId => "point_id",
            Self::Interval => "interval",
            Self::Waiting => "waiting",
            Self::Operation => "operation",
            Self::OperationId => "operation_id",
            Self::Written => "written",
            Self::Intent => "intent",
            Self::Session => "session",
            Self::Name => "name",
            Self::Mark => "mark",
            Self::Held => "held",
            Self::State => "state",
        }
    }
}

/// Key of the one row of [`Table::Intent`].
pub(crate) const OPEN: &str = "open";
/// The format, in [`Table::State`]; the JSON store keeps it in every line instead.
pub(crate) const FORMAT: &str = "format";
/// The newest place, in [`Table::State`].
pub(crate) const NEWEST: &str = "newest";
/// Applied batches, in [`Table::State`].
pub(crate) const REVISION: &str = "revision";

/// Twenty digits, so that the order of text is the order of places.
pub(crate) fn ord_key(ord: Ord) -> String {
    format!("{:020}", ord.0)
}

/// The place that a key of a table ordered by place names.
pub(crate) fn parse_ord(table: Table, key: &str) -> Result<Ord, IndexError> {
    key.parse().map(Ord).map_err(|source| IndexError::Damaged {
        what: format!("key {key:?} of table {}", table.name()),
        source: Box::new(source),
    })
}

pub(crate) fn point_key(id: &PointId) -> String {
    id.to_string()
}

pub(crate) fn op_key(id: &OpId) -> String {
    id.to_string()
}

/// `HARNESS:ID`, always with the harness; a harness name holds no colon.
pub(crate) fn session_key(key: &SessionKey) -> String {
    format!("{}:{}", key.harness(), key.id())
}

/// No part of a session key holds a slash.
pub(crate) fn marks_prefix(key: &SessionKey) -> String {
    format!("{}/", session_key(key))
}

pub(crate) fn mark_key(mark: &Mark) -> String {
    format!("{}{:020}", marks_prefix(&mark.session), mark.id)
}

/// The number at the end of a mark's key.
pub(crate) fn parse_mark(key: &str) -> Result<u64, IndexError> {
    key.rsplit_once('/').and_then(|(_, number)| number.parse().ok()).ok_or_else(|| IndexError::Damaged {
        what: format!("key {key:?} of table {}", Table::Mark.name()),
        source: "it does not end in a number".into(),
    })
}

/// The path as its JSON text has it: bytes that are not UTF-8 as NUL and base64.
pub(crate) fn path_key(path: &RelPath) -> Result<String, IndexError> {
    match serde_json::to_value(path) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        Ok(_) | Err(_) => Err(IndexError::Misfit { why: format!("path {path} has no text form") }),
    }
}

/// Part of a table, and the direction to read it in.
#[derive(Clone, Debug)]
pub(crate) struct KeyRange {
    pub(crate) from: Bound<String>,
    pub(crate) to: Bound<String>,
    pub(crate) backward: bool,
}

impl KeyRange {
    pub(crate) const fn all() -> Self {
        Self { from: Bound::Unbounded, to: Bound::Unbounded, backward: false }
    }

    /// Keys that begin with `prefix`, which is ASCII as are the keys themselves.
    pub(crate) fn prefix(prefix: &str) -> Self {
        Self {
            from: Bound::Included(prefix.to_owned()),
            to: Bound::Excluded(format!("{prefix}\u{10ffff}")),
            backward: false,
        }
    }

    /// Places after the first and before or at the second.
    pub(crate) fn ords(after: Option<Ord>, upto: Bound<Ord>) -> Self {
        Self {
            from: after.map_or(Bound::Unbounded, |ord| Bound::Excluded(ord_key(ord))),
            to: upto.map(ord_key),
            backward: false,
        }
    }

    #[must_use]
    pub(crate) fn backward(mut self, backward: bool) -> Self {
        self.backward = backward;
        self
    }
}

/// Called with key and document; breaks when it has seen enough.
pub(crate) type Visit<'a> = dyn FnMut(&str, &str) -> Result<ControlFlow<()>, IndexError> + 'a;

/// Reading. All calls on one value see one state.
pub(crate) trait Rows {
    /// Format of what is stored; it may have a newer minor number than this version.
    fn format(&self) -> Format;

    /// One document.
    fn get(&self, table: Table, key: &str) -> Result<Option<String>, IndexError>;

    /// Visits rows in the order of their keys' bytes, or against it, and reads no further once `visit` breaks.
    fn scan(&self, table: Table, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), IndexError>;
}

/// Writing, inside something that is undone as a whole when it fails.
pub(crate) trait RowsMut: Rows {
    /// Inserts or replaces.
    fn put(&mut self, table: Table, key: &str, document: String) -> Result<(), IndexError>;

    /// Removes; nothing there is no error.
    fn delete(&mut self, table: Table, key: &str) -> Result<(), IndexError>;
}
