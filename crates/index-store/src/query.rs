//! Reading: every query of an index, over rows.

use std::{
    collections::BTreeSet,
    ops::{Bound, ControlFlow},
};

use checkpoint_core::{
    IndexError, Intent, Mark, Name, OpId, OpKind, Operation, Ord, Point, PointId, PointKind, PointQuery, RelPath, Revision,
    Session, SessionKey, Timestamp, Touch, Written,
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::{
    document::{decode, load},
    rows::{
        KeyRange, NEWEST, OPEN, REVISION, Rows, Table, marks_prefix, op_key, ord_key, parse_ord, point_key,
    },
    touches,
};

pub(crate) fn revision(rows: &(impl Rows + ?Sized)) -> Result<Revision, IndexError> {
    Ok(load(rows, Table::State, REVISION)?.unwrap_or_default())
}

pub(crate) fn newest(rows: &(impl Rows + ?Sized)) -> Result<Ord, IndexError> {
    Ok(load(rows, Table::State, NEWEST)?.unwrap_or_default())
}

/// What a filter looks at. Reading only this is several times cheaper than reading the whole point.
#[derive(Deserialize)]
struct Face {
    ord: Ord,
    session: SessionKey,
    kind: PointKind,
    snapshot: Option<IgnoredAny>,
    at: Timestamp,
}

impl Face {
    fn fits(&self, query: &PointQuery) -> bool {
        (query.sessions.is_empty() || query.sessions.contains(&self.session))
            && (query.kinds.is_empty() || query.kinds.contains(&self.kind))
            && query.at_or_before.is_none_or(|ord| self.ord <= ord)
            && query.after.is_none_or(|ord| self.ord > ord)
            && query.recorded_by.is_none_or(|at| self.at <= at)
            && !(query.restorable && self.snapshot.is_none())
    }
}

pub(crate) fn points(rows: &(impl Rows + ?Sized), query: &PointQuery) -> Result<Vec<Point>, IndexError> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut take = |key: &str, document: &str| {
        if found.len() >= limit {
            return Ok(ControlFlow::Break(()));
        }
        let face: Face = decode(rows.format(), Table::Point, key, document)?;
        if face.fits(query) {
            found.push(decode(rows.format(), Table::Point, key, document)?);
        }
        Ok(if found.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    if let Some(prefix) = &query.id_prefix {
        let mut places = places_of(rows, prefix)?;
        if query.newest_first {
            places.reverse();
        }
        for place in places {
            let key = ord_key(place);
            if let Some(document) = rows.get(Table::Point, &key)?
                && take(&key, &document)? == ControlFlow::Break(())
            {
                break;
            }
        }
    } else if limit > 0 {
        let upto = query.at_or_before.map_or(Bound::Unbounded, Bound::Included);
        let range = KeyRange::ords(query.after, upto).backward(query.newest_first);
        rows.scan(Table::Point, &range, &mut take)?;
    }
    Ok(found)
}

/// Places of the points whose id begins with `prefix`, in order.
fn places_of(rows: &(impl Rows + ?Sized), prefix: &str) -> Result<Vec<Ord>, IndexError> {
    let mut places = Vec::new();
    if !prefix.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return Ok(places);
    }
    rows.scan(Table::PointId, &KeyRange::prefix(prefix), &mut |key, document| {
        places.push(decode::<Ord>(rows.format(), Table::PointId, key, document)?);
        Ok(ControlFlow::Continue(()))
    })?;
    places.sort_unstable();
    Ok(places)
}

pub(crate) fn point(rows: &(impl Rows + ?Sized), id: &PointId) -> Result<Option<Point>, IndexError> {
    match load::<Ord>(rows, Table::PointId, &point_key(id))? {
        Some(place) => load(rows, Table::Point, &ord_key(place)),
        None => Ok(None),
    }
}

pub(crate) fn intervals(
    rows: &(impl Rows + ?Sized),
    after: Ord,
) -> Result<Vec<(Ord, Vec<Touch>)>, IndexError> {
    let mut found = Vec::new();
    let range = KeyRange::ords(Some(after), Bound::Unbounded);
    rows.scan(Table::Interval, &range, &mut |key, document| {
        let touches = decode(rows.format(), Table::Interval, key, document)?;
        found.push((parse_ord(Table::Interval, key)?, touches));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

pub(crate) fn waiting(rows: &(impl Rows + ?Sized)) -> Result<Vec<Touch>, IndexError> {
    Ok(touches::waiting(rows)?.list())
}

pub(crate) fn operation(rows: &(impl Rows + ?Sized), id: &OpId) -> Result<Option<Operation>, IndexError> {
    match load::<Ord>(rows, Table::OperationId, &op_key(id))? {
        Some(place) => load(rows, Table::Operation, &ord_key(place)),
        None => Ok(None),
    }
}

pub(crate) fn operations(
    rows: &(impl Rows + ?Sized),
    kinds: &[OpKind],
    limit: Option<usize>,
) -> Result<Vec<Operation>, IndexError> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    rows.scan(Table::Operation, &KeyRange::all().backward(true), &mut |key, document| {
        let operation: Operation = decode(rows.format(), Table::Operation, key, document)?;
        if kinds.is_empty() || kinds.contains(&operation.kind) {
            found.push(operation);
        }
        Ok(if found.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

pub(crate) fn written(rows: &(impl Rows + ?Sized), id: &OpId) -> Result<Vec<Written>, IndexError> {
    match load::<Ord>(rows, Table::OperationId, &op_key(id))? {
        Some(place) => Ok(load(rows, Table::Written, &ord_key(place))?.unwrap_or_default()),
        None => Ok(Vec::new()),
    }
}

pub(crate) fn open_intent(rows: &(impl Rows + ?Sized)) -> Result<Option<Intent>, IndexError> {
    load(rows, Table::Intent, OPEN)
}

pub(crate) fn sessions(rows: &(impl Rows + ?Sized)) -> Result<Vec<Session>, IndexError> {
    list(rows, Table::Session, &KeyRange::all())
}

pub(crate) fn names(rows: &(impl Rows + ?Sized)) -> Result<Vec<Name>, IndexError> {
    list(rows, Table::Name, &KeyRange::all())
}

pub(crate) fn marks(rows: &(impl Rows + ?Sized), session: &SessionKey) -> Result<Vec<Mark>, IndexError> {
    list(rows, Table::Mark, &KeyRange::prefix(&marks_prefix(session)))
}

pub(crate) fn held(rows: &(impl Rows + ?Sized)) -> Result<BTreeSet<RelPath>, IndexError> {
    let mut paths = BTreeSet::new();
    rows.scan(Table::Held, &KeyRange::all(), &mut |key, _| {
        let path = RelPath::deserialize(serde::de::value::StrDeserializer::<serde_json::Error>::new(key));
        paths.insert(path.map_err(|source| IndexError::Damaged {
            what: format!("key {key:?} of table {}", Table::Held.name()),
            source: Box::new(source),
        })?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(paths)
}

fn list<T: DeserializeOwned>(
    rows: &(impl Rows + ?Sized),
    table: Table,
    range: &KeyRange,
) -> Result<Vec<T>, IndexError> {
    let mut found = Vec::new();
    rows.scan(table, range, &mut |key, document| {
        found.push(decode(rows.format(), table, key, document)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
