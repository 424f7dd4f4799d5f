//! Reading: every query of an index, over rows.

use std::{
    collections::BTreeSet,
    ops::{Bound, ControlFlow},
};

use checkpoint_core::{
    IndexError, Intent, Mark, Name, OpId, OpKind, Operation, Ord, Point, PointId, PointKind, PointQuery, RelPath,
    Revision, Session, SessionKey, Timestamp, Touch, Written,
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::{
    document::{decode, load},
    rows::{
        KeyRange, NEWEST, OPEN, REVISION, Rows, Table, marks_prefix, op_key, ord_key, parse_mark, parse_ord, point_key,
        session_key,
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

pub(crate) fn intervals(rows: &(impl Rows + ?Sized), after: Ord) -> Result<Vec<(Ord, Vec<Touch>)>, IndexError> {
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

pub(crate) fn session(rows: &(impl Rows + ?Sized), key: &SessionKey) -> Result<Option<Session>, IndexError> {
    load(rows, Table::Session, &session_key(key))
}

pub(crate) fn names(rows: &(impl Rows + ?Sized)) -> Result<Vec<Name>, IndexError> {
    list(rows, Table::Name, &KeyRange::all())
}

pub(crate) fn marks(rows: &(impl Rows + ?Sized), session: &SessionKey) -> Result<Vec<Mark>, IndexError> {
    list(rows, Table::Mark, &KeyRange::prefix(&marks_prefix(session)))
}

/// Keys end in the number, but begin with the session: every one is looked at.
pub(crate) fn newest_mark(rows: &(impl Rows + ?Sized)) -> Result<u64, IndexError> {
    let mut newest = 0;
    rows.scan(Table::Mark, &KeyRange::all(), &mut |key, _| {
        newest = newest.max(parse_mark(key)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(newest)
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{document::encode, format::Format, rows::Visit, tree::Tree};

    /// Counts the rows that were looked at.
    struct Counting {
        tree: Tree,
        visited: Cell<usize>,
    }

    impl Rows for Counting {
        fn format(&self) -> Format {
            self.tree.format()
        }
        fn get(&self, table: Table, key: &str) -> Result<Option<String>, IndexError> {
            self.visited.set(self.visited.get() + 1);
            self.tree.get(table, key)
        }
        fn scan(&self, table: Table, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), IndexError> {
            self.tree.scan(table, range, &mut |key, document| {
                self.visited.set(self.visited.get() + 1);
                visit(key, document)
            })
        }
    }

    /// However long the history: what a list shows is what is read.
    #[test]
    fn queries_read_no_more_than_they_give() {
        let point = r#"{"ord":ORD,"session":{"harness":"h","id":"s"},"kind":"manual","snapshot":{"tree":"TREE","meta":"TREE"},
            "id":"ID","workspace":"00000000000000000000000000000000","incarnation":1,"at":1,"walk_started":1,"changed":0,
            "files":0,"new_bytes":0,"skipped":0,"consistency":"quiet","live":[],"listed":true,"under_intent":false,
            "late":[],"sensitive":[]}"#
            .replace("TREE", &"0".repeat(40));
        let mut tree = Tree::new(Format::CURRENT);
        for n in 1..=10_000_u64 {
            let key = ord_key(Ord(n));
            let id = format!("{n:032x}");
            let document = point.replace("ORD", &n.to_string()).replace("ID", &id);
            tree.set(Table::Point.name(), &key, Some(document));
            tree.set(Table::Interval.name(), &key, Some("[]".to_owned()));
            tree.set(Table::PointId.name(), &id, Some(encode(&Ord(n)).unwrap()));
        }
        let rows = Counting { tree, visited: Cell::new(0) };
        let visited = |found: usize| {
            assert!(rows.visited.get() <= 2 * found + 1, "{} for {found}", rows.visited.get());
            rows.visited.set(0);
            found
        };
        let all = PointQuery::default;
        let newest = PointQuery { newest_first: true, limit: Some(20), ..all() };
        assert_eq!(visited(points(&rows, &newest).unwrap().len()), 20);
        let window = PointQuery { after: Some(Ord(5_000)), at_or_before: Some(Ord(5_010)), ..all() };
        assert_eq!(visited(points(&rows, &window).unwrap().len()), 10);
        let prefix = PointQuery { id_prefix: Some(format!("{:031x}", 0x123)), ..all() };
        assert_eq!(visited(points(&rows, &prefix).unwrap().len()), 16);
        assert_eq!(visited(intervals(&rows, Ord(9_990)).unwrap().len()), 10);
        assert_eq!(visited(usize::from(super::point(&rows, &PointId::from_bytes([9; 16])).unwrap().is_some())), 0);
    }
}
