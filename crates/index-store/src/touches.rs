//! Intervals: merging touches per path and member, and finding what operations wrote over.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Bound, ControlFlow},
};

use checkpoint_core::{IndexError, Member, OpState, Ord, RelPath, Touch};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    document::{decode, encode, load},
    rows::{KeyRange, Rows, Table, ord_key, parse_ord},
};

/// Touches of one interval: a path at most once, each member at most once, both in order, with the fields of a newer
/// format kept.
#[derive(Debug, Default)]
pub(crate) struct Touches(BTreeMap<RelPath, Entry>);

#[derive(Debug, Default)]
struct Entry {
    by: BTreeSet<Member>,
    rest: Map<String, Value>,
}

impl Touches {
    /// From what a caller gives.
    pub(crate) fn of(touches: &[Touch]) -> Self {
        let mut all = Self::default();
        for touch in touches {
            all.0.entry(touch.path.clone()).or_default().by.extend(touch.by.iter().cloned());
        }
        all
    }

    /// From a row.
    pub(crate) fn load(rows: &(impl Rows + ?Sized), table: Table, ord: Ord) -> Result<Option<Self>, IndexError> {
        let key = ord_key(ord);
        let Some(document) = rows.get(table, &key)? else {
            return Ok(None);
        };
        Self::parse(rows, table, &key, &document).map(Some)
    }

    fn parse(rows: &(impl Rows + ?Sized), table: Table, key: &str, document: &str) -> Result<Self, IndexError> {
        let known: Vec<Touch> = decode(rows.format(), table, key, document)?;
        let stored: Vec<Map<String, Value>> = decode(rows.format(), table, key, document)?;
        let mut all = Self::default();
        for (touch, mut rest) in known.into_iter().zip(stored) {
            rest.remove("path");
            rest.remove("by");
            let entry = all.0.entry(touch.path).or_default();
            entry.by.extend(touch.by);
            entry.rest.append(&mut rest);
        }
        Ok(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `other`, per path and member.
    pub(crate) fn merge(&mut self, other: Self) {
        for (path, entry) in other.0 {
            let own = self.0.entry(path).or_default();
            own.by.extend(entry.by);
            for (name, value) in entry.rest {
                own.rest.entry(name).or_insert(value);
            }
        }
    }

    /// Leaves out `paths`.
    pub(crate) fn without(&mut self, paths: &BTreeSet<RelPath>) {
        self.0.retain(|path, _| !paths.contains(path));
    }

    /// As a row.
    pub(crate) fn document(self) -> Result<String, IndexError> {
        let touches = self.0.into_iter().map(|(path, entry)| {
            let known = Touch { path, by: entry.by.into_iter().collect() };
            let mut fields = entry.rest;
            if let Ok(Value::Object(known)) = serde_json::to_value(known) {
                fields.extend(known);
            }
            fields
        });
        encode(&touches.collect::<Vec<_>>())
    }

    /// As a caller wants them.
    pub(crate) fn list(self) -> Vec<Touch> {
        let touch = |(path, entry): (RelPath, Entry)| Touch { path, by: entry.by.into_iter().collect() };
        self.0.into_iter().map(touch).collect()
    }
}

/// What waits for the record to come: the intervals of dropped records that had none after them, each without what an
/// operation wrote since.
pub(crate) fn waiting(rows: &(impl Rows + ?Sized)) -> Result<Touches, IndexError> {
    let mut dropped = Vec::new();
    rows.scan(Table::Waiting, &KeyRange::all(), &mut |key, document| {
        let touches = Touches::parse(rows, Table::Waiting, key, document)?;
        dropped.push((parse_ord(Table::Waiting, key)?, touches));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut all = Touches::default();
    for (ord, mut touches) in dropped {
        touches.without(&written_over(rows, ord, Bound::Unbounded)?);
        all.merge(touches);
    }
    Ok(all)
}

/// Paths that finished operations between two places wrote.
///
/// What an operation wrote continues the history of the state it came from, which the operation stores (model F5), so
/// a touch that is older must not move past it. A rolled-back operation counts for nothing. One that is still open
/// does not count either: it may yet be rolled back, and a touch that stays where it need not asks a needless
/// question, while one that is gone lets a hand edit be overwritten without any.
pub(crate) fn written_over(
    rows: &(impl Rows + ?Sized),
    after: Ord,
    before: Bound<Ord>,
) -> Result<BTreeSet<RelPath>, IndexError> {
    #[derive(Deserialize)]
    struct State {
        state: OpState,
    }
    #[derive(Deserialize)]
    struct Place {
        path: RelPath,
    }
    let mut finished = Vec::new();
    rows.scan(Table::Operation, &KeyRange::ords(Some(after), before), &mut |key, document| {
        let operation: State = decode(rows.format(), Table::Operation, key, document)?;
        if matches!(operation.state, OpState::Done | OpState::Partial) {
            finished.push(key.to_owned());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut paths = BTreeSet::new();
    for key in finished {
        let written: Vec<Place> = load(rows, Table::Written, &key)?.unwrap_or_default();
        paths.extend(written.into_iter().map(|place| place.path));
    }
    Ok(paths)
}
