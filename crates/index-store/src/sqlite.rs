//! The index in an SQLite database.

mod whole;

use std::{
    io,
    ops::{Bound, ControlFlow},
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use checkpoint_core::{Batch, IndexError, Revision};
use rusqlite::{
    Connection, ErrorCode, FileControl, OpenFlags, OptionalExtension, ToSql, TransactionBehavior, config::DbConfig,
};

use crate::{
    apply::apply,
    digest::{self, DIGEST, TENDED, Whole},
    document::{decode, encode},
    durable,
    format::Format,
    high::{High, Reached},
    query,
    rows::{FORMAT, KeyRange, Rows, RowsMut, Table, Visit},
    surface::index_store,
};

/// What errors call it.
const NAME: &str = "index.sqlite";

/// How SQLite makes a commit durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Journal {
    /// A write-ahead log that outlives the process: two syncs a commit in a new process, one in a resident one. Needs
    /// memory shared between processes, so local file systems only.
    #[default]
    Wal,
    /// A rollback journal: for network file systems and FUSE.
    Delete,
}

/// How a [`SqliteIndex`] behaves.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// How commits become durable.
    pub journal: Journal,
    /// How long to wait for another process before [`IndexError::Busy`].
    pub busy: Duration,
    /// Size in bytes above which `maintain` empties the write-ahead log.
    pub log_above: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { journal: Journal::Wal, busy: Duration::from_secs(10), log_above: 1 << 20 }
    }
}

/// An index in an SQLite database. Several handles, in one process or many, may be used on one file.
///
/// A database that is not as far as the mark beside it (`index.high`) says has lost entries of its log, about which
/// SQLite says nothing; it is [`IndexError::Damaged`].
#[derive(Debug)]
pub struct SqliteIndex {
    path: PathBuf,
    high: High,
    /// Device and inode: SQLite with a write-ahead log goes on with a file that has lost its name, into the void.
    file: (u64, u64),
    /// The same of the log; `None` where there is none.
    log: Option<(u64, u64)>,
    options: SqliteOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    /// How far the index was when this handle last looked.
    seen: Reached,
    poisoned: bool,
}

impl SqliteIndex {
    /// Opens an index that exists.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, IndexError> {
        let facts = path.metadata().map_err(io_error)?;
        if facts.len() == 0 {
            // To SQLite an empty file is an empty database; here it is an index that was lost.
            return Err(damaged("index.sqlite is empty"));
        }
        let high = High::of(path);
        let claimed = high.read();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(sql_error)?;
        prepare(&connection, options).map_err(sql_error)?;
        // Before anything is written: a newer format may mean something else by any of it, and a log that lost its end
        // is evidence.
        let transaction = connection.transaction().map_err(sql_error)?;
        let rows = SqlRows::of(&transaction)?;
        let seen = high.check(NAME, &rows, claimed)?;
        drop(transaction);
        if options.journal == Journal::Delete {
            keep_log(&connection, false).map_err(sql_error)?;
        }
        set_journal(&connection, options.journal)?;
        let log = number_of(&beside(path, "-wal"))?;
        let state = Mutex::new(State { connection, seen, poisoned: false });
        let index = Self { path: path.to_owned(), high, file: durable::number(&facts), log, options, state };
        index.check_names()?;
        Ok(index)
    }

    /// Opens an index, and creates it first when there is none. Two processes may do so at once.
    pub fn create(path: &Path, options: SqliteOptions) -> Result<Self, IndexError> {
        if !path.try_exists().map_err(io_error)? {
            High::of(path).check_new(path)?;
            for end in ["-wal", "-journal"] {
                if beside(path, end).try_exists().map_err(io_error)? {
                    // SQLite would take it for the log of the new database.
                    return Err(damaged("index.sqlite is gone but its log is there"));
                }
            }
            let temporary = durable::temporary(path).map_err(io_error)?;
            drop(durable::create_new(&temporary).map_err(io_error)?);
            build(&temporary, options.journal)
                .map_err(sql_error)
                .and_then(|()| durable::publish(&temporary, path).map_err(io_error))
                .inspect_err(|_| durable::discard(&temporary))?;
        }
        Self::open(path, options)
    }

    /// Fails when the file or its log was removed or replaced since it was opened.
    fn check_names(&self) -> Result<(), IndexError> {
        // By name and never by opening it: closing any descriptor of the file would drop SQLite's locks.
        let replaced = |name: &str| IndexError::Storage { source: format!("{name} was replaced; reopen it").into() };
        if number_of(&self.path)? != Some(self.file) {
            return Err(replaced(NAME));
        }
        if self.log.is_some() && number_of(&beside(&self.path, "-wal"))? != self.log {
            return Err(replaced("index.sqlite-wal"));
        }
        Ok(())
    }

    fn read<T>(&self, query: impl FnOnce(&dyn Rows) -> Result<T, IndexError>) -> Result<T, IndexError> {
        let mut guard = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        let state = &mut *guard;
        if state.poisoned {
            return Err(IndexError::Poisoned);
        }
        self.check_names()?;
        // One transaction, so that a query of several statements sees one state.
        let transaction = state.connection.transaction().map_err(sql_error)?;
        let rows = SqlRows::of(&transaction)?;
        state.seen = self.high.check(NAME, &rows, state.seen)?;
        query(&rows)
    }

    fn write(&self, batch: &Batch) -> Result<Revision, IndexError> {
        let mut guard = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        let state = &mut *guard;
        if state.poisoned {
            return Err(IndexError::Poisoned);
        }
        let transaction =
            state.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql_error)?;
        self.check_names()?;
        let mut rows = SqlRows::of(&transaction)?;
        let was = self.high.check(NAME, &rows, state.seen.or(self.high.read()))?;
        let applied = rows.upgrade().and_then(|()| apply(&mut rows, batch)).and_then(|revision| {
            rows.say_whole(was.revision, revision)?;
            Ok(Reached { revision, newest: query::newest(&rows)? })
        });
        let (failed, unsure) = match applied {
            Ok(reached) => match transaction.commit() {
                Ok(()) => {
                    state.seen = reached;
                    self.high.raise(reached);
                    return Ok(reached.revision);
                }
                // A commit that found no room or somebody else was rolled back as a whole; after any other failure,
                // of a sync above all, nothing is known about what is on the disk.
                Err(error) => match sql_error(error) {
                    sure @ (IndexError::Busy | IndexError::NoSpace | IndexError::ReadOnly) => (sure, false),
                    unsure => (unsure, true),
                },
            },
            Err(error) => {
                let unsure = matches!(error, IndexError::Storage { .. });
                // SQLite may have rolled back by itself; what counts is asked below.
                drop(transaction);
                (error, unsure)
            }
        };
        // A commit that failed because somebody else was reading leaves its transaction open.
        let stuck = !state.connection.is_autocommit() && state.connection.execute_batch("ROLLBACK").is_err();
        state.poisoned = unsure || stuck;
        Err(failed)
    }

    fn check_rows(&self) -> Result<(), IndexError> {
        let mut guard = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        let transaction = guard.connection.transaction().map_err(sql_error)?;
        whole::check(&transaction, &SqlRows::of(&transaction)?)
    }

    fn tend(&self) -> Result<(), IndexError> {
        let mut guard = self.state.lock().map_err(|_| IndexError::Poisoned)?;
        let state = &mut *guard;
        if state.poisoned {
            return Err(IndexError::Poisoned);
        }
        let length = beside(&self.path, "-wal").metadata().map_or(0, |facts| facts.len());
        if self.options.journal != Journal::Wal || length <= self.options.log_above {
            return Ok(());
        }
        let tended = empty_log(&state.connection, self.options.busy);
        if let Err(IndexError::Storage { .. }) = tended {
            state.poisoned = true;
        }
        tended
    }
}

/// Moves the log into the database and empties it, then writes a little: the first commit into an empty log costs one
/// more sync, which the next capture shall not pay. Somebody else at work: not now.
fn empty_log(connection: &Connection, busy: Duration) -> Result<(), IndexError> {
    connection.busy_timeout(Duration::from_millis(50)).map_err(sql_error)?;
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    connection.busy_timeout(busy).map_err(sql_error)?;
    match emptied {
        Ok(0) => {}
        Ok(_) => return Ok(()),
        Err(error) => {
            return match sql_error(error) {
                IndexError::Busy => Ok(()),
                error => Err(error),
            };
        }
    }
    let touch = format!(
        "INSERT INTO state(key, value) VALUES('{TENDED}', '1') \
         ON CONFLICT(key) DO UPDATE SET value = CAST(value + 1 AS TEXT)"
    );
    match connection.execute(&touch, []).map_err(sql_error) {
        Ok(_) | Err(IndexError::Busy) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Settings of a connection. Nothing of it is stored.
fn prepare(connection: &Connection, options: SqliteOptions) -> rusqlite::Result<()> {
    connection.busy_timeout(options.busy)?;
    // In a rollback journal a commit is the removal of the journal, so that its name must be durable too.
    let synchronous = match options.journal {
        Journal::Wal => "FULL",
        Journal::Delete => "EXTRA",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    if options.journal == Journal::Wal {
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    keep_log(connection, true)
}

/// Whether the log is left alone when the connection closes, or else moved into the database and removed.
fn keep_log(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    connection.file_control(Some("main"), FileControl::PersistWal(&mut i32::from(keep)))
}

/// Sees to it that the database has the kind of journal that is asked for; usually it has.
fn set_journal(connection: &Connection, journal: Journal) -> Result<(), IndexError> {
    let wanted = match journal {
        Journal::Wal => "wal",
        Journal::Delete => "delete",
    };
    let current: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(sql_error)?;
    if current == wanted {
        return Ok(());
    }
    let sql = format!("PRAGMA journal_mode={wanted}");
    let reached: String = connection.query_row(&sql, [], |row| row.get(0)).map_err(sql_error)?;
    if reached == wanted {
        return Ok(());
    }
    if journal == Journal::Delete {
        return Err(IndexError::Busy);
    }
    // Without shared memory between processes it stays with a rollback journal.
    connection.pragma_update(None, "synchronous", "EXTRA").map_err(sql_error)
}

/// Builds a new database under a name that nobody else knows, so nothing needs syncing before it is complete.
fn build(path: &Path, journal: Journal) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    let tables = Table::ALL.map(|table| {
        let name = table.name();
        format!("CREATE TABLE {name}(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, sum INTEGER) WITHOUT ROWID;")
    });
    let format = format!("\"{}\"", Format::CURRENT);
    let state = Table::State.name();
    let mut whole = Whole::default();
    whole.add(digest::of_row(state, FORMAT, &format));
    let whole = format!("{{\"revision\":0,\"rows\":{},\"sum\":{}}}", whole.rows, whole.sum);
    let row = |key: &str, document: &str| {
        let sum = digest::of_row(state, key, document).cast_signed();
        format!("INSERT INTO state(key, value, sum) VALUES('{key}', '{document}', {sum});")
    };
    let rows = row(FORMAT, &format) + &row(DIGEST, &whole);
    connection.execute_batch(&format!("BEGIN; {} {rows} COMMIT;", tables.concat()))?;
    if journal == Journal::Wal {
        connection.query_row("PRAGMA journal_mode=wal", [], |_| Ok(()))?;
    }
    connection.close().map_err(|(_, error)| error)
}

/// The format of the database, if this version can use it.
fn format_of(connection: &Connection) -> Result<Format, IndexError> {
    let tables = "SELECT value FROM state WHERE key = ?1";
    let found = connection.query_row(tables, [FORMAT], |row| row.get::<_, String>(0)).optional();
    let found = match found {
        Ok(found) => found,
        // No such table: a database, but not ours.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            return Err(IndexError::Damaged { what: "index.sqlite is no index".to_owned(), source: Box::new(error) });
        }
        Err(error) => return Err(sql_error(error)),
    };
    let document = found.ok_or_else(|| damaged("index.sqlite has no format"))?;
    let text: String = decode(Format::CURRENT, Table::State, FORMAT, &document)?;
    text.parse::<Format>()
        .map_err(|source| IndexError::Damaged {
            what: "the format of index.sqlite".to_owned(),
            source: Box::new(source),
        })?
        .check()
}

/// The statement that reads part of a table, and its values.
fn selection(table: Table, range: &KeyRange, summed: bool) -> (String, Vec<&dyn ToSql>) {
    let mut conditions = Vec::new();
    let mut values: Vec<&dyn ToSql> = Vec::new();
    for (bound, included, excluded) in [(&range.from, ">=", ">"), (&range.to, "<=", "<")] {
        let (operator, value) = match bound {
            Bound::Included(value) => (included, value),
            Bound::Excluded(value) => (excluded, value),
            Bound::Unbounded => continue,
        };
        values.push(value);
        conditions.push(format!("key {operator} ?{}", values.len()));
    }
    let filter = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    let order = if range.backward { "DESC" } else { "ASC" };
    let sum = if summed { "sum" } else { "NULL" };
    let sql = format!("SELECT key, value, {sum} FROM {} {filter} ORDER BY key {order}", table.name());
    (sql, values)
}

/// Rows of a transaction.
struct SqlRows<'a> {
    connection: &'a Connection,
    format: Format,
    /// True where rows carry digests: not in a database that an older version made, until this one writes to it.
    summed: bool,
    /// What was put and deleted, to be added to what is said of all rows.
    change: Whole,
    /// True when the digests of all rows must be added up anew.
    anew: bool,
}

impl<'a> SqlRows<'a> {
    fn of(connection: &'a Connection) -> Result<Self, IndexError> {
        let format = format_of(connection)?;
        let summed = whole::has_digests(connection, Table::State.name())?;
        Ok(Self { connection, format, summed, change: Whole::default(), anew: false })
    }

    /// Gives an older database what this version adds to every table. Its rows are not touched: one that carries no digest
    /// is counted all the same.
    fn upgrade(&mut self) -> Result<(), IndexError> {
        if !self.summed {
            for table in Table::ALL {
                let name = table.name();
                // A single table may have it: an older version has no use for the column, and may have been here since.
                if !whole::has_digests(self.connection, name)? {
                    let sql = format!("ALTER TABLE {name} ADD COLUMN sum INTEGER");
                    self.connection.execute_batch(&sql).map_err(sql_error)?;
                }
            }
            (self.summed, self.anew) = (true, true);
        }
        if self.format < Format::CURRENT {
            self.put(Table::State, FORMAT, encode(&Format::CURRENT.to_string())?)?;
            self.format = Format::CURRENT;
        }
        Ok(())
    }

    /// Says of all rows what they are after the batch that made revision `now` of `was`.
    fn say_whole(&mut self, was: Revision, now: Revision) -> Result<(), IndexError> {
        let said = whole::said(self).ok().flatten().filter(|said| said.revision == was && !self.anew);
        let whole = match said {
            Some(said) => said.changed(self.change, now),
            // An older version has written since, or what was said is damaged: it says nothing of a row.
            None => Whole { revision: now, ..whole::count(self, whole::Counting::Carried)? },
        };
        self.put(Table::State, DIGEST, encode(&whole)?)
    }

    /// Takes a row that is about to go out of the count.
    fn forget(&mut self, table: Table, key: &str) -> Result<(), IndexError> {
        if !self.summed || !digest::is_counted(table.name(), key) {
            return Ok(());
        }
        let sql = format!("SELECT value, sum FROM {} WHERE key = ?1", table.name());
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?));
        let old = self.connection.query_row(&sql, [key], read).optional().map_err(sql_error)?;
        if let Some((document, sum)) = old {
            // As it was counted: a damaged row that is replaced is no damage any more.
            self.change.take(sum.map_or_else(|| digest::of_row(table.name(), key, &document), i64::cast_unsigned));
        }
        Ok(())
    }
}

/// Fails when a row carries another digest than it has.
fn check_row(table: Table, key: &str, document: &str, sum: Option<i64>) -> Result<(), IndexError> {
    match sum {
        Some(sum) if sum.cast_unsigned() != digest::of_row(table.name(), key, document) => Err(IndexError::Damaged {
            what: format!("row {key:?} of table {} of {NAME}", table.name()),
            source: "its digest does not hold".into(),
        }),
        _ => Ok(()),
    }
}

impl Rows for SqlRows<'_> {
    fn format(&self) -> Format {
        self.format
    }

    fn get(&self, table: Table, key: &str) -> Result<Option<String>, IndexError> {
        let sum = if self.summed { "sum" } else { "NULL" };
        let sql = format!("SELECT value, {sum} FROM {} WHERE key = ?1", table.name());
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?));
        match self.connection.query_row(&sql, [key], read).optional().map_err(sql_error)? {
            Some((document, sum)) => check_row(table, key, &document, sum).map(|()| Some(document)),
            None => Ok(None),
        }
    }

    fn scan(&self, table: Table, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), IndexError> {
        let (sql, values) = selection(table, range, self.summed);
        let mut statement = self.connection.prepare(&sql).map_err(sql_error)?;
        let mut rows = statement.query(values.as_slice()).map_err(sql_error)?;
        while let Some(row) = rows.next().map_err(sql_error)? {
            let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let (key, document) = (text(0).map_err(sql_error)?, text(1).map_err(sql_error)?);
            check_row(table, key, document, row.get(2).map_err(sql_error)?)?;
            if visit(key, document)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

impl RowsMut for SqlRows<'_> {
    fn put(&mut self, table: Table, key: &str, document: String) -> Result<(), IndexError> {
        self.forget(table, key)?;
        let digest = digest::of_row(table.name(), key, &document);
        if digest::is_counted(table.name(), key) {
            self.change.add(digest);
        }
        let sql = format!("INSERT OR REPLACE INTO {}(key, value, sum) VALUES(?1, ?2, ?3)", table.name());
        self.connection.execute(&sql, (key, &document, digest.cast_signed())).map(drop).map_err(sql_error)
    }

    fn delete(&mut self, table: Table, key: &str) -> Result<(), IndexError> {
        self.forget(table, key)?;
        let sql = format!("DELETE FROM {} WHERE key = ?1", table.name());
        self.connection.execute(&sql, [key]).map(drop).map_err(sql_error)
    }
}

/// A file that SQLite keeps beside a database.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Device and inode of what has a name; `None` when nothing has.
fn number_of(path: &Path) -> Result<Option<(u64, u64)>, IndexError> {
    match path.metadata() {
        Ok(facts) => Ok(Some(durable::number(&facts))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(error)),
    }
}

fn damaged(what: &str) -> IndexError {
    IndexError::Damaged { what: what.to_owned(), source: "it cannot be used".into() }
}

fn io_error(error: io::Error) -> IndexError {
    if durable::is_full(&error) {
        IndexError::NoSpace
    } else if durable::is_read_only(&error) {
        IndexError::ReadOnly
    } else {
        IndexError::Storage { source: Box::new(error) }
    }
}

/// What a caller can do about it: wait, make room, give up writing, repair.
fn sql_error(error: rusqlite::Error) -> IndexError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => IndexError::Busy,
        Some(ErrorCode::DiskFull) => IndexError::NoSpace,
        Some(ErrorCode::ReadOnly) if error.sqlite_error().is_some_and(|e| e.extended_code == MOVED) => {
            IndexError::Storage { source: Box::new(error) }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => IndexError::ReadOnly,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            IndexError::Damaged { what: "index.sqlite".to_owned(), source: Box::new(error) }
        }
        Some(_) => IndexError::Storage { source: Box::new(error) },
        // A value that is no text.
        None => IndexError::Damaged { what: "a row of index.sqlite".to_owned(), source: Box::new(error) },
    }
}

/// `SQLITE_READONLY_DBMOVED`: the file was replaced or removed under an open connection.
const MOVED: i32 = 8 | (4 << 8);

index_store!(SqliteIndex, "sqlite");

#[cfg(test)]
mod tests {
    use checkpoint_core::Ord;

    use super::*;

    /// Every read goes down the tree of the key, in the order that is wanted: none looks at rows outside its range, and
    /// none sorts.
    #[test]
    fn every_query_goes_by_the_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index.sqlite");
        build(&path, Journal::Wal).unwrap();
        let connection = Connection::open(&path).unwrap();
        let plan = |sql: &str, values: &[&dyn ToSql]| -> String {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
        };
        for table in Table::ALL {
            for backward in [false, true] {
                for (range, how) in [
                    (KeyRange::all(), "SCAN"),
                    (KeyRange::prefix("ab"), "SEARCH"),
                    (KeyRange::ords(Some(Ord(7)), Bound::Unbounded), "SEARCH"),
                    (KeyRange::ords(None, Bound::Included(Ord(7))), "SEARCH"),
                ] {
                    let range = range.backward(backward);
                    let (sql, values) = selection(table, &range, true);
                    let found = plan(&sql, &values);
                    assert!(found.starts_with(&format!("{how} {}", table.name())), "{sql}: {found}");
                    assert!(!found.contains("TEMP") && !found.contains("; "), "{sql}: {found}");
                }
            }
        }
    }
}
