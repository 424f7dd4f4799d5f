//! What a batch means: the one interpreter, over rows.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Bound, ControlFlow},
};

use checkpoint_core::{
    Batch, DropReason, IndexError, IndexOp, Intent, IntentState, Mark, Name, OpId, OpState, Operation, Ord, Point,
    PointId, PointKind, RelPath, Revision, Session, Touch, Written,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    document::{decode, encode, load, merge, replace},
    query,
    rows::{
        KeyRange, NEWEST, OPEN, REVISION, RowsMut, Table, mark_key, op_key, ord_key, parse_ord, path_key, point_key,
        session_key,
    },
    touches::{self, Touches},
};

/// Applies a batch and counts it. After an error `rows` may hold part of it: the caller takes everything back.
pub(crate) fn apply(rows: &mut dyn RowsMut, batch: &Batch) -> Result<Revision, IndexError> {
    let newest = query::newest(rows)?;
    if let Some(expected) = batch.follows
        && expected != newest
    {
        return Err(IndexError::Conflict { expected, found: newest });
    }
    let mut applying = Applying { rows, newest };
    for op in &batch.ops {
        applying.op(op)?;
    }
    let reached = applying.newest;
    if reached != newest {
        rows.put(Table::State, NEWEST, encode(&reached)?)?;
    }
    let revision = Revision(query::revision(rows)?.0 + 1);
    rows.put(Table::State, REVISION, encode(&revision)?)?;
    Ok(revision)
}

fn misfit<T>(why: String) -> Result<T, IndexError> {
    Err(IndexError::Misfit { why })
}

struct Applying<'a> {
    rows: &'a mut dyn RowsMut,
    newest: Ord,
}

impl Applying<'_> {
    fn op(&mut self, op: &IndexOp) -> Result<(), IndexError> {
        match op {
            IndexOp::PutPoint { point, interval } => self.put_point(point, interval),
            IndexOp::UpdatePoint { point } => self.update_point(point),
            // Both reasons remove the same; the operation log tells them apart.
            IndexOp::DropPoint { id, reason: DropReason::Quota | DropReason::User } => self.drop_point(id),
            IndexOp::PutOperation { operation } => self.put_operation(operation),
            IndexOp::UpdateOperation { operation } => self.update_operation(operation),
            IndexOp::PutWritten { operation, written } => self.put_written(operation, written),
            IndexOp::OpenIntent { intent } => self.open_intent(intent),
            IndexOp::AdvanceIntent { operation, from, to } => self.advance_intent(operation, *from, *to),
            IndexOp::CloseIntent { operation } => self.close_intent(operation),
            IndexOp::PutSession { session } => self.put_session(session),
            IndexOp::PutName { name } => self.put_name(name),
            IndexOp::DropName { label } => self.drop_name(label),
            IndexOp::NewMark { mark } => self.new_mark(mark),
            IndexOp::PutMark { mark } => self.put_mark(mark),
            IndexOp::Held { add, remove } => self.held(add, remove),
            _ => misfit("it holds a change that this index does not know".to_owned()),
        }
    }

    /// Takes the next place for a new point or operation.
    fn take(&mut self, ord: Ord, what: &str) -> Result<(), IndexError> {
        if ord != self.newest.next() {
            return misfit(format!("{what} is for place {ord}, but the newest is {}", self.newest));
        }
        self.newest = ord;
        Ok(())
    }

    fn put<T: Serialize>(&mut self, table: Table, key: &str, value: &T) -> Result<(), IndexError> {
        let document = encode(value)?;
        self.rows.put(table, key, document)
    }

    /// Inserts, or replaces what is there without losing what a newer version wrote into it.
    fn put_over<T: Serialize + DeserializeOwned>(
        &mut self,
        table: Table,
        key: &str,
        value: &T,
    ) -> Result<(), IndexError> {
        let document = match self.rows.get(table, key)? {
            Some(old) => replace(self.rows.format(), table, key, &old, value)?,
            None => encode(value)?,
        };
        self.rows.put(table, key, document)
    }

    fn place_of_point(&self, id: &PointId) -> Result<Ord, IndexError> {
        let place = load(&*self.rows, Table::PointId, &point_key(id))?;
        place.map_or_else(|| misfit(format!("there is no point {id}")), Ok)
    }

    fn place_of_operation(&self, id: &OpId) -> Result<Ord, IndexError> {
        let place = load(&*self.rows, Table::OperationId, &op_key(id))?;
        place.map_or_else(|| misfit(format!("there is no operation {id}")), Ok)
    }

    fn put_point(&mut self, point: &Point, interval: &[Touch]) -> Result<(), IndexError> {
        check_point(point)?;
        if self.rows.get(Table::PointId, &point_key(&point.id))?.is_some() {
            return misfit(format!("there is a point {} already", point.id));
        }
        self.take(point.ord, "a point")?;
        let key = ord_key(point.ord);
        if point.kind.closes_interval() {
            let mut touches = Touches::of(interval);
            touches.merge(touches::waiting(&*self.rows)?);
            self.rows.put(Table::Interval, &key, touches.document()?)?;
            self.clear_waiting()?;
        } else if !interval.is_empty() {
            return misfit(format!("a point of kind {} closes no interval", point.kind.name()));
        }
        self.put(Table::PointId, &point_key(&point.id), &point.ord)?;
        self.put(Table::Point, &key, point)
    }

    fn clear_waiting(&mut self) -> Result<(), IndexError> {
        let mut keys = Vec::new();
        self.rows.scan(Table::Waiting, &KeyRange::all(), &mut |key, _| {
            keys.push(key.to_owned());
            Ok(ControlFlow::Continue(()))
        })?;
        keys.iter().try_for_each(|key| self.rows.delete(Table::Waiting, key))
    }

    fn update_point(&mut self, point: &Point) -> Result<(), IndexError> {
        check_point(point)?;
        let place = self.place_of_point(&point.id)?;
        if place != point.ord {
            return misfit(format!("point {} is at place {place}, not {}", point.id, point.ord));
        }
        let key = ord_key(place);
        let closes = self.rows.get(Table::Interval, &key)?.is_some();
        if closes != point.kind.closes_interval() {
            return misfit(format!("point {} cannot turn into a gap or an import, or out of one", point.id));
        }
        self.put_over(Table::Point, &key, point)
    }

    /// See [`IndexOp::DropPoint`]. A union over records after any surviving record stays what it was, so no target can
    /// lose the news that somebody changed a path after it.
    fn drop_point(&mut self, id: &PointId) -> Result<(), IndexError> {
        let place = self.place_of_point(id)?;
        self.check_not_needed(id)?;
        if let Some(mut touches) = Touches::load(&*self.rows, Table::Interval, place)?
            && !touches.is_empty()
        {
            match self.record_after(place)? {
                Some(next) => {
                    touches.without(&touches::written_over(&*self.rows, place, Bound::Excluded(next))?);
                    if !touches.is_empty() {
                        let mut merged = Touches::load(&*self.rows, Table::Interval, next)?.unwrap_or_default();
                        merged.merge(touches);
                        self.rows.put(Table::Interval, &ord_key(next), merged.document()?)?;
                    }
                }
                // What operations write before the record comes is left out when it comes.
                None => self.rows.put(Table::Waiting, &ord_key(place), touches.document()?)?,
            }
        }
        let key = ord_key(place);
        self.rows.delete(Table::Interval, &key)?;
        self.rows.delete(Table::Point, &key)?;
        self.rows.delete(Table::PointId, &point_key(id))?;
        for name in query::names(&*self.rows)?.iter().filter(|name| name.point == *id) {
            self.rows.delete(Table::Name, &name.label)?;
        }
        Ok(())
    }

    /// Target and guard of an open transaction stay, whatever a plan of retention says.
    fn check_not_needed(&self, id: &PointId) -> Result<(), IndexError> {
        let Some(intent) = query::open_intent(&*self.rows)? else {
            return Ok(());
        };
        let target = query::operation(&*self.rows, &intent.operation)?.and_then(|operation| operation.target);
        if intent.guard == *id || target == Some(*id) {
            return misfit(format!("point {id} belongs to the open operation {}", intent.operation));
        }
        Ok(())
    }

    /// The next record that is no gap.
    fn record_after(&self, place: Ord) -> Result<Option<Ord>, IndexError> {
        let mut next = None;
        let range = KeyRange::ords(Some(place), Bound::Unbounded);
        self.rows.scan(Table::Interval, &range, &mut |key, _| {
            next = Some(parse_ord(Table::Interval, key)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(next)
    }

    fn put_operation(&mut self, operation: &Operation) -> Result<(), IndexError> {
        if self.rows.get(Table::OperationId, &op_key(&operation.id))?.is_some() {
            return misfit(format!("there is an operation {} already", operation.id));
        }
        self.take(operation.ord, "an operation")?;
        self.put(Table::OperationId, &op_key(&operation.id), &operation.ord)?;
        self.put(Table::Operation, &ord_key(operation.ord), operation)
    }

    fn update_operation(&mut self, operation: &Operation) -> Result<(), IndexError> {
        let place = self.place_of_operation(&operation.id)?;
        if place != operation.ord {
            return misfit(format!("operation {} is at place {place}, not {}", operation.id, operation.ord));
        }
        let key = ord_key(place);
        let stored: Option<Operation> = load(&*self.rows, Table::Operation, &key)?;
        if operation.state == OpState::Open && stored.is_some_and(|stored| stored.state != OpState::Open) {
            return misfit(format!("operation {} is finished and cannot be open again", operation.id));
        }
        self.put_over(Table::Operation, &key, operation)
    }

    fn put_written(&mut self, operation: &OpId, written: &[Written]) -> Result<(), IndexError> {
        let key = ord_key(self.place_of_operation(operation)?);
        let table = Table::Written;
        let mut documents = Vec::with_capacity(written.len());
        let old = self.rows.get(table, &key)?;
        let format = self.rows.format();
        let known: Vec<Written> = old.as_deref().map_or(Ok(Vec::new()), |old| decode(format, table, &key, old))?;
        let stored: Vec<Value> = old.as_deref().map_or(Ok(Vec::new()), |old| decode(format, table, &key, old))?;
        let mut stored: BTreeMap<RelPath, (Written, Value)> =
            known.into_iter().zip(stored).map(|(known, stored)| (known.path.clone(), (known, stored))).collect();
        for one in written {
            let new = to_value(one)?;
            documents.push(match stored.remove(&one.path) {
                Some((known, stored)) => merge(stored, &to_value(&known)?, new),
                None => new,
            });
        }
        self.put(table, &key, &documents)
    }

    fn open_intent(&mut self, intent: &Intent) -> Result<(), IndexError> {
        if let Some(open) = query::open_intent(&*self.rows)? {
            return misfit(format!("operation {} is open", open.operation));
        }
        let place = self.place_of_operation(&intent.operation)?;
        let operation: Option<Operation> = load(&*self.rows, Table::Operation, &ord_key(place))?;
        if operation.is_none_or(|operation| operation.state != OpState::Open) {
            return misfit(format!("operation {} is finished and cannot have an intent", intent.operation));
        }
        let guard = self.place_of_point(&intent.guard)?;
        if self.rows.get(Table::Interval, &ord_key(guard))?.is_none() {
            return misfit(format!("the guard {} is a gap", intent.guard));
        }
        self.put(Table::Intent, OPEN, intent)
    }

    /// The open intent as stored, if it is the one of `operation`.
    fn intent_of(&self, operation: &OpId) -> Result<(Intent, String), IndexError> {
        let Some(document) = self.rows.get(Table::Intent, OPEN)? else {
            return misfit(format!("operation {operation} has no intent: none is open"));
        };
        let intent: Intent = decode(self.rows.format(), Table::Intent, OPEN, &document)?;
        if intent.operation != *operation {
            return misfit(format!("the open intent is that of operation {}, not {operation}", intent.operation));
        }
        Ok((intent, document))
    }

    fn advance_intent(&mut self, operation: &OpId, from: IntentState, to: IntentState) -> Result<(), IndexError> {
        let (mut intent, document) = self.intent_of(operation)?;
        if intent.state != from {
            return misfit(format!("the intent is {:?}, not {from:?}", intent.state));
        }
        if from == IntentState::Forking && to != from {
            // The host has been asked for the child, so there is no way back (model F20).
            return misfit("an intent that is forking can only be closed".to_owned());
        }
        intent.state = to;
        let document = replace(self.rows.format(), Table::Intent, OPEN, &document, &intent)?;
        self.rows.put(Table::Intent, OPEN, document)
    }

    fn close_intent(&mut self, operation: &OpId) -> Result<(), IndexError> {
        self.intent_of(operation)?;
        self.rows.delete(Table::Intent, OPEN)
    }

    fn put_session(&mut self, session: &Session) -> Result<(), IndexError> {
        self.put_over(Table::Session, &session_key(&session.key), session)
    }

    fn put_name(&mut self, name: &Name) -> Result<(), IndexError> {
        self.place_of_point(&name.point)?;
        self.put_over(Table::Name, &name.label, name)
    }

    fn drop_name(&mut self, label: &str) -> Result<(), IndexError> {
        if self.rows.get(Table::Name, label)?.is_none() {
            return misfit(format!("there is no name {label:?}"));
        }
        self.rows.delete(Table::Name, label)
    }

    fn new_mark(&mut self, mark: &Mark) -> Result<(), IndexError> {
        let newest = query::newest_mark(&*self.rows)?;
        if mark.id <= newest {
            return misfit(format!("mark {} is not new: the newest is {newest}", mark.id));
        }
        self.put(Table::Mark, &mark_key(mark), mark)
    }

    fn put_mark(&mut self, mark: &Mark) -> Result<(), IndexError> {
        let key = mark_key(mark);
        let stored: Option<Mark> = load(&*self.rows, Table::Mark, &key)?;
        if stored.is_some_and(|stored| stored.folded.is_some() && stored != *mark) {
            // Marks take no place, so `follows` cannot tell two folds of one mark apart.
            return misfit(format!("mark {} of session {} is folded", mark.id, mark.session));
        }
        self.put_over(Table::Mark, &key, mark)
    }

    fn held(&mut self, add: &[RelPath], remove: &[RelPath]) -> Result<(), IndexError> {
        let removed: BTreeSet<&RelPath> = remove.iter().collect();
        for path in &removed {
            self.rows.delete(Table::Held, &path_key(path)?)?;
        }
        for path in add {
            if removed.contains(path) {
                return misfit(format!("{path} is both added to and removed from the held paths"));
            }
            let key = path_key(path)?;
            if self.rows.get(Table::Held, &key)?.is_none() {
                self.rows.put(Table::Held, &key, "true".to_owned())?;
            }
        }
        Ok(())
    }
}

/// A gap is a point without a snapshot and with a reason; every other point is the opposite.
fn check_point(point: &Point) -> Result<(), IndexError> {
    let gap = point.kind == PointKind::Gap;
    if gap != point.snapshot.is_none() || gap != point.gap.is_some() {
        return misfit(format!("a point of kind {} with or without snapshot and reason", point.kind.name()));
    }
    Ok(())
}

fn to_value<T: Serialize>(value: &T) -> Result<Value, IndexError> {
    serde_json::to_value(value)
        .map_err(|source| IndexError::Misfit { why: format!("it cannot be written as JSON: {source}") })
}
