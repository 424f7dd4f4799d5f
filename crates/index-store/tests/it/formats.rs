//! Stored formats: what versions 1.0, 1.1 and 1.2 wrote is read for ever, what a newer minor version added is kept.

use std::{
    fs,
    path::{Path, PathBuf},
};

use checkpoint_core::{Batch, DropReason, IndexError, IndexOp, IndexStore, IntentState, PointKind, Timestamp};
use index_store::{JsonIndex, JsonOptions, MemoryIndex, SqliteIndex, SqliteOptions};
use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::index_suite::build;

use crate::scene::{apply, dump, play};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A writable copy of a fixture.
fn copy(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, fs::read(fixture(name)).unwrap()).unwrap();
    path
}

fn open(path: &Path) -> Result<Box<dyn IndexStore>, IndexError> {
    if path.extension().is_some_and(|end| end == "sqlite") {
        SqliteIndex::open(path, SqliteOptions::default()).map(|index| Box::new(index) as _)
    } else {
        let options = JsonOptions { compact_above: 0, ..JsonOptions::default() };
        JsonIndex::open(path, options).map(|index| Box::new(index) as _)
    }
}

/// Adds a field to every object of a document.
fn add_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_fields);
            fields.insert("future".to_owned(), json!({"kept": true}));
        }
        Value::Array(values) => values.iter_mut().for_each(add_fields),
        _ => {}
    }
}

/// Writes a line of `index.jsonl` as `docs/format-index.md` describes it, without the code under test.
fn line(mut body: Value, format: &str) -> String {
    body["format"] = format.into();
    body.as_object_mut().unwrap().remove("crc");
    let covered = body.to_string()[1..].to_owned();
    format!("{{\"crc\":\"{:08x}\",{covered}\n", crc32fast::hash(covered.as_bytes()))
}

/// How the fixtures are made, those that are missing: `cargo test -p index-store --test it -- --ignored write_fixtures`.
/// Until 1.0 is released they may be removed and made again; afterwards a change of what is written is a new minor
/// version with fixtures of its own.
#[test]
#[ignore = "writes the fixtures"]
fn write_fixtures() {
    let directory = tempfile::tempdir().unwrap();
    let json_path = directory.path().join("index-1.2.jsonl");
    play(&JsonIndex::create(&json_path, JsonOptions::default()).unwrap());
    let old = fs::read_to_string(&json_path).unwrap();
    let mut new = String::new();
    for text in old.lines() {
        let mut body: Value = serde_json::from_str(text).unwrap();
        for row in body["rows"].as_array_mut().unwrap() {
            add_fields(&mut row["document"]);
            row["future"] = json!("row");
        }
        if new.is_empty() {
            body["rows"] = json!([{"table": "dream", "key": "k", "document": {"of": "tables"}}]);
        }
        body["future"] = json!("line");
        new.push_str(&line(body, "1.9"));
    }
    let directory = tempfile::tempdir().unwrap();
    let sqlite_path = directory.path().join("index-1.2.sqlite");
    play(&SqliteIndex::create(&sqlite_path, SqliteOptions::default()).unwrap());
    let fold = |path: &Path| {
        let connection = Connection::open(path).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        fs::read(path).unwrap()
    };
    let sqlite_old = fold(&sqlite_path);
    let connection = Connection::open(&sqlite_path).unwrap();
    connection.execute_batch("CREATE TABLE dream(x); INSERT INTO dream VALUES('tables')").unwrap();
    connection.execute_batch("ALTER TABLE point ADD COLUMN future TEXT").unwrap();
    for table in ["point", "interval", "waiting", "operation", "written", "intent", "session", "name", "mark"] {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let mut select = connection.prepare(&format!("SELECT key, value FROM {table}")).unwrap();
        let rows: Vec<_> = select.query_map([], read).unwrap().map(Result::unwrap).collect();
        for (key, document) in rows {
            let mut document: Value = serde_json::from_str(&document).unwrap();
            add_fields(&mut document);
            let update = format!("UPDATE {table} SET value = ?2 WHERE key = ?1");
            connection.execute(&update, [key, document.to_string()]).unwrap();
        }
    }
    connection.execute("UPDATE state SET value = '\"1.9\"' WHERE key = 'format'", []).unwrap();
    drop(connection);
    let sqlite_new = fold(&sqlite_path);
    let files = [
        ("index-1.2.jsonl", old.into_bytes()),
        ("index-1.9.jsonl", new.into_bytes()),
        ("index-1.2.sqlite", sqlite_old),
        ("index-1.9.sqlite", sqlite_new),
    ];
    for (name, content) in files {
        if !fixture(name).exists() {
            fs::write(fixture(name), content).unwrap();
        }
    }
}

#[test]
fn every_fixture_reads_as_what_was_put_in() {
    let memory = MemoryIndex::new();
    play(&memory);
    let directory = tempfile::tempdir().unwrap();
    let names = ["index-1.0.jsonl", "index-1.1.jsonl", "index-1.2.jsonl", "index-1.9.jsonl"];
    for name in
        names.into_iter().chain(["index-1.0.sqlite", "index-1.1.sqlite", "index-1.2.sqlite", "index-1.9.sqlite"])
    {
        let index = open(&copy(directory.path(), name)).unwrap();
        assert_eq!(dump(&*index), dump(&memory), "{name}");
    }
}

/// Batches that replace, move or merge every kind of document that a newer version may have added fields to.
fn rewrite_everything(index: &dyn IndexStore) {
    let mut point = index.point(&build::id(2)).unwrap().unwrap();
    point.damaged = Some("gone".into());
    let mut session = index.sessions().unwrap().remove(0);
    session.seen = Timestamp(99);
    let mut name = index.names().unwrap().remove(0);
    name.note = Some("again".into());
    let mut mark = index.marks(&build::session("s0")).unwrap().remove(0);
    mark.folded = Some(Timestamp(99));
    let mut operation = index.operation(&build::op(5)).unwrap().unwrap();
    operation.expired = true;
    let written = index.written(&build::op(5)).unwrap();
    apply(
        index,
        vec![
            IndexOp::UpdatePoint { point: Box::new(point) },
            IndexOp::PutSession { session: Box::new(session) },
            IndexOp::PutName { name },
            IndexOp::PutMark { mark },
            IndexOp::UpdateOperation { operation: Box::new(operation) },
            IndexOp::PutWritten { operation: build::op(5), written },
            IndexOp::AdvanceIntent { operation: build::op(6), from: IntentState::Applying, to: IntentState::Applied },
            IndexOp::PutPoint {
                point: Box::new(build::point(8, PointKind::Manual)),
                interval: vec![build::touch("d", &["s0"])],
            },
            IndexOp::DropPoint { id: build::id(1), reason: DropReason::Quota },
        ],
    );
    index.maintain().unwrap();
}

/// Documents of the rows that [`rewrite_everything`] wrote, each with what must still be in it.
fn check_kept(document: &dyn Fn(&str, &str) -> Value) {
    let place = |ord: u64| format!("{ord:020}");
    let kept = json!({"kept": true});
    let point = document("point", &place(2));
    assert_eq!((&point["damaged"], &point["future"]), (&json!("gone"), &kept));
    assert_eq!(point["snapshot"]["future"], kept, "inside a field that did not change");
    assert_eq!(document("session", "test:s0")["turn"]["process"]["future"], kept);
    assert_eq!(document("name", "before the refactoring")["future"], kept);
    assert_eq!(document("mark", "test:s0/00000000000000000001")["future"], kept);
    assert_eq!(document("operation", &place(5))["future"], kept);
    assert_eq!(document("written", &place(5))[0]["after"]["future"], kept);
    let intent = document("intent", "open");
    assert_eq!((&intent["state"], &intent["before"]["future"]), (&json!("applied"), &kept));
    // A touch that waited, merged into the record that came: the one it was merged with had nothing.
    let interval = document("interval", &place(8));
    assert_eq!((&interval[0]["path"], &interval[0]["future"]), (&json!("c"), &kept));
    assert_eq!((&interval[1]["path"], interval[1].get("future")), (&json!("d"), None));
    assert_eq!(document("interval", &place(2))[0]["future"], kept);
}

#[test]
fn json_keeps_what_a_newer_minor_version_added() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "index-1.9.jsonl");
    let index = open(&path).unwrap();
    rewrite_everything(&*index);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1, "compacted");
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["format"], "1.9");
    let rows = body["rows"].as_array().unwrap();
    let document = |table: &str, key: &str| {
        rows.iter().find(|row| row["table"] == table && row["key"] == key).map(|row| row["document"].clone()).unwrap()
    };
    check_kept(&document);
    assert_eq!(document("dream", "k"), json!({"of": "tables"}));
    apply(&*index, vec![]);
    let text = fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["format"], "1.9");
    assert_eq!(dump(&*open(&path).unwrap()), dump(&*index));
}

#[test]
fn sqlite_keeps_what_a_newer_minor_version_added() {
    let directory = tempfile::tempdir().unwrap();
    let path = copy(directory.path(), "index-1.9.sqlite");
    let index = open(&path).unwrap();
    rewrite_everything(&*index);
    let connection = Connection::open(&path).unwrap();
    let document = |table: &str, key: &str| -> Value {
        let sql = format!("SELECT value FROM {table} WHERE key = ?1");
        let text: String = connection.query_row(&sql, [key], |row| row.get(0)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    check_kept(&document);
    assert_eq!(document("state", "format"), "1.9");
    let dream: String = connection.query_row("SELECT x FROM dream", [], |row| row.get(0)).unwrap();
    assert_eq!(dream, "tables");
}

/// What cannot be understood in a store of a newer minor version is not damage.
#[test]
fn a_value_that_a_newer_minor_version_invented_is_too_new_and_in_an_own_store_damaged() {
    let directory = tempfile::tempdir().unwrap();
    for (name, newer) in [("index-1.0.jsonl", false), ("index-1.9.jsonl", true)] {
        let path = copy(directory.path(), name);
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|text| {
            let format = if newer { "1.9" } else { "1.2" };
            line(serde_json::from_str(&text.replace("\"kind\":\"gap\"", "\"kind\":\"wish\"")).unwrap(), format)
        });
        fs::write(&path, lines.collect::<String>()).unwrap();
        let index = open(&path).unwrap();
        let error = index.points(&checkpoint_core::PointQuery::default()).unwrap_err();
        assert_eq!(matches!(error, IndexError::TooNew { .. }), newer, "{error:?}");
        assert_eq!(matches!(error, IndexError::Damaged { .. }), !newer, "{error:?}");
        // What does not need that point still works.
        assert_eq!(index.operations(&[], None).unwrap().len(), 2);
    }
}

#[test]
fn other_major_versions_are_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |path: &Path, format: &str| {
        let before = fs::read(path).unwrap();
        match (open(path).unwrap_err(), format) {
            (IndexError::TooNew { found, supported }, "2.0") => {
                assert_eq!((&*found, &*supported), ("2.0", "1.2"));
            }
            (IndexError::TooOld { found }, "0.9") => assert_eq!(found, "0.9"),
            (error, _) => panic!("{format}: {error:?}"),
        }
        assert_eq!(fs::read(path).unwrap(), before);
    };
    for format in ["2.0", "0.9"] {
        let path = copy(directory.path(), "index-1.0.sqlite");
        let connection = Connection::open(&path).unwrap();
        connection.execute("UPDATE state SET value = ?1 WHERE key = 'format'", [format!("\"{format}\"")]).unwrap();
        drop(connection);
        refused(&path, format);
        // Even a line that means something else altogether.
        let path = directory.path().join("foreign.jsonl");
        fs::write(&path, line(json!({"layout": "unheard of"}), format)).unwrap();
        refused(&path, format);
    }
    // A running process meets a file that was migrated meanwhile.
    let path = copy(directory.path(), "index-1.0.jsonl");
    let index = open(&path).unwrap();
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&line(json!({"layout": "unheard of"}), "2.0"));
    fs::write(&path, text).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::TooNew { .. })));
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::TooNew { .. })));
}

/// Byte for byte: a change of what is written shows here.
#[test]
fn the_format_is_still_written_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.jsonl");
    play(&JsonIndex::create(&path, JsonOptions::default()).unwrap());
    let (found, expected) =
        (fs::read_to_string(&path).unwrap(), fs::read_to_string(fixture("index-1.2.jsonl")).unwrap());
    assert_eq!(found, expected, "a new field? see write_fixtures");
}
