//! The digests of `index.sqlite`: nothing that was changed behind its back is believed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use checkpoint_core::{IndexError, IndexOp, IndexStore};
use index_store::{Journal, SqliteIndex, SqliteOptions};
use rusqlite::Connection;
use testkit::index_suite::build;

use crate::scene::{apply, dump, play};

fn delete() -> SqliteOptions {
    SqliteOptions { journal: Journal::Delete, ..SqliteOptions::default() }
}

fn fixture(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::write(&path, fs::read(from).unwrap()).unwrap();
    path
}

fn held(path: &str) -> IndexOp {
    IndexOp::Held { add: vec![build::path(path)], remove: vec![] }
}

fn text(connection: &Connection, sql: &str) -> String {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_database_of_1_0_is_upgraded_by_the_first_batch_and_reads_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = fixture(directory.path(), "index-1.0.sqlite");
    let before = fs::read(&path).unwrap();
    let index = SqliteIndex::open(&path, delete()).unwrap();
    index.check().unwrap();
    let old = dump(&index);
    drop(index);
    let reading = Connection::open(&path).unwrap();
    assert_eq!(text(&reading, "SELECT value FROM state WHERE key = 'format'"), "\"1.0\"", "reading upgrades nothing");
    assert!(reading.prepare("SELECT sum FROM point").is_err());
    drop(reading);
    let index = SqliteIndex::open(&path, delete()).unwrap();
    let undone = SqliteIndex::open(&path, delete()).unwrap();
    // A batch that is refused takes the upgrade back with it.
    assert!(
        index
            .apply(&checkpoint_core::Batch { follows: None, ops: vec![IndexOp::DropName { label: "no".into() }] })
            .is_err()
    );
    assert_eq!(dump(&undone), old);
    apply(&index, vec![held("new")]);
    index.check().unwrap();
    let after = Connection::open(&path).unwrap();
    assert_eq!(text(&after, "SELECT value FROM state WHERE key = 'format'"), "\"1.2\"");
    // Rows of the older version carry no digest, but are counted.
    assert_eq!(text(&after, "SELECT typeof(sum) FROM point LIMIT 1"), "null");
    after.execute("DELETE FROM point WHERE key = (SELECT max(key) FROM point)", []).unwrap();
    assert!(matches!(index.check(), Err(IndexError::Damaged { .. })));
    drop(index);
    assert_ne!(fs::read(&path).unwrap(), before);
}

/// 1.2 has another value and no other layout: the number alone changes, and every row stays covered.
#[test]
fn a_database_of_1_1_gets_the_number_with_the_first_batch() {
    let directory = tempfile::tempdir().unwrap();
    let path = fixture(directory.path(), "index-1.1.sqlite");
    let index = SqliteIndex::open(&path, delete()).unwrap();
    index.check().unwrap();
    let sql = "SELECT value FROM state WHERE key = 'format'";
    let format = || text(&Connection::open(&path).unwrap(), sql);
    assert_eq!(format(), "\"1.1\"");
    apply(&index, vec![held("new")]);
    index.check().unwrap();
    assert_eq!(format(), "\"1.2\"");
    let after = Connection::open(&path).unwrap();
    after.execute("DELETE FROM point WHERE key = (SELECT max(key) FROM point)", []).unwrap();
    assert!(matches!(index.check(), Err(IndexError::Damaged { .. })));
}

/// A version that knows no digests writes in between: what it wrote is taken as it is, and covered from the next batch on.
#[test]
fn an_older_version_may_write_in_between() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index = SqliteIndex::create(&path, delete()).unwrap();
    play(&index);
    index.check().unwrap();
    let older = Connection::open(&path).unwrap();
    older
        .execute_batch(
            "INSERT OR REPLACE INTO held(key, value) VALUES('old', 'true');
             INSERT OR REPLACE INTO state(key, value) SELECT key, value + 1 FROM state WHERE key = 'revision'",
        )
        .unwrap();
    index.check().unwrap();
    assert!(index.held().unwrap().contains(&build::path("old")));
    apply(&index, vec![held("new")]);
    index.check().unwrap();
    older.execute("DELETE FROM held WHERE key = 'old'", []).unwrap();
    assert!(matches!(index.check(), Err(IndexError::Damaged { .. })), "a row is missing");
}

#[test]
fn a_row_that_changed_is_not_believed_and_costs_only_what_needs_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let index = SqliteIndex::create(&path, delete()).unwrap();
    play(&index);
    let other = Connection::open(&path).unwrap();
    other.execute("UPDATE session SET value = replace(value, 'test', 'tesu')", []).unwrap();
    assert!(matches!(index.sessions(), Err(IndexError::Damaged { .. })));
    assert!(matches!(index.check(), Err(IndexError::Damaged { .. })));
    assert_eq!(index.names().unwrap().len(), 1);
    index.held().unwrap();
    // The row for all is damaged: it says nothing of any row, and the next batch makes it anew.
    let path = directory.path().join("other.sqlite");
    let index = SqliteIndex::create(&path, delete()).unwrap();
    play(&index);
    let other = Connection::open(&path).unwrap();
    other.execute("UPDATE state SET value = replace(value, 'rows\":', 'rows\":1') WHERE key = 'digest'", []).unwrap();
    assert!(matches!(index.check(), Err(IndexError::Damaged { .. })));
    apply(&index, vec![held("new")]);
    index.check().unwrap();
}

/// Each byte of a small database loses a bit, another one each time (`RWD_CRASH_MATRIX=full`: each bit): it is found, or
/// every answer is what it was.
#[test]
fn every_flipped_bit_of_a_database_is_found_or_changes_no_answer() {
    let full = std::env::var("RWD_CRASH_MATRIX").is_ok_and(|value| value == "full");
    let directory = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    let path = directory.path().join("index.sqlite");
    let index = SqliteIndex::create(&path, delete()).unwrap();
    play(&index);
    let truth = dump(&index);
    drop(index);
    // Small pages: the same structures, and fewer bytes between them that nobody uses.
    Connection::open(&path).unwrap().execute_batch("PRAGMA page_size = 512; VACUUM").unwrap();
    let good = fs::read(&path).unwrap();
    let mark = fs::read(path.with_extension("high")).unwrap();
    let (mut flips, mut found) = (0_u32, 0_u32);
    for bit in 0..good.len() * 8 {
        let byte = bit / 8;
        // Bytes that nobody uses: a sample.
        let unused = good[byte] == 0 && good[byte.saturating_sub(4)..good.len().min(byte + 5)].iter().all(|b| *b == 0);
        if !full && (bit % 8 != byte * 3 % 8 || (unused && byte % 17 != 0)) {
            continue;
        }
        let mut bad = good.clone();
        bad[byte] ^= 1 << (bit % 8);
        fs::write(&path, &bad).unwrap();
        fs::write(path.with_extension("high"), &mark).unwrap();
        flips += 1;
        let opened = SqliteIndex::open(&path, delete());
        match opened.and_then(|index| index.check().map(|()| index)) {
            Ok(index) => assert_eq!(dump(&index), truth, "bit {bit}"),
            Err(_) => found += 1,
        }
        for end in ["-wal", "-shm", "-journal"] {
            drop(fs::remove_file(format!("{}{end}", path.display())));
        }
    }
    assert!(found > 1_000, "{found}");
    println!("flips: {flips} bits of index.sqlite, {found} found, the others change no answer");
}

/// The same for the log, which has the newest entries: it is cut at a bad frame, and the mark says how far it had come.
#[test]
fn every_flipped_bit_of_a_log_is_found_or_changes_no_answer() {
    let directory = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    let path = directory.path().join("index.sqlite");
    let index = SqliteIndex::create(&path, SqliteOptions::default()).unwrap();
    apply(&index, vec![held("a")]);
    Connection::open(&path).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    apply(&index, vec![held("b")]);
    let truth = dump(&index);
    drop(index);
    let names = ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.high"];
    let good: Vec<Vec<u8>> = names.iter().map(|name| fs::read(directory.path().join(name)).unwrap()).collect();
    let (mut flips, mut found) = (0_u32, 0_u32);
    for (at, step) in [(1, 1), (2, 7), (3, 1)] {
        for byte in (0..good[at].len()).step_by(step) {
            let unused = good[at][byte] == 0 && good[at][byte.saturating_sub(4)..].iter().take(9).all(|b| *b == 0);
            if unused && byte % 61 != 0 {
                continue;
            }
            for (name, good) in names.iter().zip(&good) {
                fs::write(directory.path().join(name), good).unwrap();
            }
            let mut bad = good[at].clone();
            bad[byte] ^= 1 << (byte * 3 % 8);
            fs::write(directory.path().join(names[at]), &bad).unwrap();
            flips += 1;
            let opened = SqliteIndex::open(&path, SqliteOptions::default());
            match opened.and_then(|index| index.check().map(|()| index)) {
                Ok(index) => assert_eq!(dump(&index), truth, "byte {byte} of {}", names[at]),
                Err(_) => found += 1,
            }
        }
    }
    assert!(found > 100, "{found}");
    println!("flips: {flips} bits of the log, its index and the mark, {found} found, the others change no answer");
}
