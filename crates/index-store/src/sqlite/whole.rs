//! Is the database whole? What `verify` asks: every row, that none is missing, and what SQLite keeps around them.

use checkpoint_core::IndexError;
use rusqlite::{Connection, OptionalExtension};

use super::{NAME, SqlRows, damaged, sql_error};
use crate::{
    digest::{self, DIGEST, Whole},
    document::load,
    query,
    rows::{KeyRange, Table},
};

/// What every table of ours begins and ends with. Between the two are columns that versions after 1.0 added.
fn frame(table: &str) -> (String, &'static str) {
    (format!("CREATE TABLE {table}(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL"), ") WITHOUT ROWID")
}

/// The column of the digests, as it stands in the definition of a table.
const COLUMN: &str = ", sum INTEGER";

/// Whether rows of a table can carry digests.
pub(super) fn has_digests(connection: &Connection, table: &str) -> Result<bool, IndexError> {
    match connection.prepare(&format!("SELECT sum FROM {table} LIMIT 0")) {
        Ok(_) => Ok(true),
        // No such column, or no such table, which is for others to say.
        Err(rusqlite::Error::SqlInputError { .. }) => Ok(false),
        Err(error) => Err(sql_error(error)),
    }
}

/// What is said of all rows; `None` in a database of an older version.
pub(super) fn said(rows: &SqlRows<'_>) -> Result<Option<Whole>, IndexError> {
    load(rows, Table::State, DIGEST)
}

/// How rows are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Fails at a row whose digest does not hold, or whose key is out of its order.
    Strict,
    /// By the digests that rows carry: a damaged row shall not keep a batch from being written that does not need it, and
    /// stays damaged.
    Carried,
}

/// Counts all rows. The revision is not told.
pub(super) fn count(rows: &SqlRows<'_>, counting: Counting) -> Result<Whole, IndexError> {
    let mut whole = Whole::default();
    let all = KeyRange::all();
    for table in Table::ALL {
        let (sql, values) = super::selection(table, &all, rows.summed);
        let mut statement = rows.connection.prepare(&sql).map_err(sql_error)?;
        let mut found = statement.query(values.as_slice()).map_err(sql_error)?;
        let mut last: Option<String> = None;
        while let Some(row) = found.next().map_err(sql_error)? {
            let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
            let (key, document) = (text(0).map_err(sql_error)?, text(1).map_err(sql_error)?);
            let sum: Option<i64> = row.get(2).map_err(sql_error)?;
            if counting == Counting::Strict {
                super::check_row(table, key, document, sum)?;
                // It would not be found when it is asked for.
                if last.as_deref().is_some_and(|last| last >= key) {
                    return Err(damaged(&format!("the order of table {} of {NAME} around {key:?}", table.name())));
                }
                last = Some(key.to_owned());
            }
            if digest::is_counted(table.name(), key) {
                whole.add(sum.map_or_else(|| digest::of_row(table.name(), key, document), i64::cast_unsigned));
            }
        }
    }
    Ok(whole)
}

/// Fails when anything is not as it was written.
pub(super) fn check(connection: &Connection, rows: &SqlRows<'_>) -> Result<(), IndexError> {
    let counted = count(rows, Counting::Strict)?;
    let said = said(rows)?;
    let tables = Table::ALL.map(Table::name);
    let defined = tables.iter().map(|table| check_definition(connection, table)).collect::<Result<Vec<_>, _>>()?;
    if defined.contains(&true) || said.is_some() {
        if defined.contains(&false) {
            return Err(damaged("a table of index.sqlite that lost its digests"));
        }
        let said = said.ok_or_else(|| damaged("index.sqlite, where the digest of all rows is missing"))?;
        let revision = query::revision(rows)?;
        // Of another revision: an older version, which knows no digests, has written since.
        if said.revision == revision && said != (Whole { revision, ..counted }) {
            return Err(IndexError::Damaged {
                what: NAME.to_owned(),
                source: format!("it has {} rows where {} were written, or others", counted.rows, said.rows).into(),
            });
        }
    }
    // Last, since it names pages, which say little to a reader.
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(sql_error)?;
    if found == "ok" {
        return Ok(());
    }
    Err(IndexError::Damaged { what: NAME.to_owned(), source: found.into() })
}

/// A definition that reads differently gives keys another order, or none. True when it has the column of the digests.
fn check_definition(connection: &Connection, table: &str) -> Result<bool, IndexError> {
    let sql = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND tbl_name = ?1";
    let found: Option<String> = connection.query_row(sql, [table], |row| row.get(0)).optional().map_err(sql_error)?;
    let (head, tail) = frame(table);
    let added = found.as_deref().and_then(|sql| sql.strip_prefix(&*head)?.strip_suffix(tail));
    match added {
        Some(added) if added.is_empty() || added.starts_with(", ") => Ok(added.contains(COLUMN)),
        _ => Err(damaged(&format!("the definition of table {table} of {NAME}"))),
    }
}
