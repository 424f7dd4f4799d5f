//! Entries that are lost without an error, and an index that is lost as a whole, are noticed.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use checkpoint_core::{Batch, IndexError, IndexStore, Revision, WorkspaceId};
use index_store::{
    DataDir, DataError, IndexKind, IndexOptions, Journal, JsonIndex, JsonOptions, SqliteIndex, SqliteOptions,
    WorkspaceDir,
};

use crate::{
    json::unmark,
    scene::{dump, play, record},
};

const NAMES: [&str; 2] = ["index.sqlite", "index.jsonl"];

fn open(path: &Path) -> Result<Box<dyn IndexStore>, IndexError> {
    if path.extension().is_some_and(|end| end == "sqlite") {
        SqliteIndex::create(path, SqliteOptions::default()).map(|index| Box::new(index) as _)
    } else {
        JsonIndex::create(path, JsonOptions::default()).map(|index| Box::new(index) as _)
    }
}

fn mark(path: &Path) -> PathBuf {
    path.with_extension("high")
}

fn log(path: &Path) -> PathBuf {
    path.with_extension("sqlite-wal")
}

/// Opens it both ways; `Err` holds what the damage is.
fn try_open(path: &Path) -> Result<Box<dyn IndexStore>, String> {
    let existing = if path.extension().is_some_and(|end| end == "sqlite") {
        SqliteIndex::open(path, SqliteOptions::default()).err()
    } else {
        JsonIndex::open(path, JsonOptions::default()).err()
    };
    match (existing, open(path)) {
        (None, Ok(index)) => Ok(index),
        (Some(IndexError::Damaged { .. }), Err(IndexError::Damaged { what, .. })) => Err(what),
        other => panic!("{other:?}"),
    }
}

/// An index with revisions 1 to 9, of which nobody has a handle.
fn sample(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let index = open(&path).unwrap();
    play(&*index);
    for _ in 0..3 {
        record(&*index);
    }
    assert_eq!(index.revision().unwrap(), Revision(9));
    path
}

/// The damage names both numbers and the way on, which then works.
fn goes_on_without_the_mark(path: &Path, what: &str) {
    assert!(what.starts_with("it lost its newest entries: "), "{what}");
    assert!(what.contains("had come to revision 9 (newest place 10)"), "{what}");
    assert!(what.contains(&format!("remove {} ", mark(path).display())), "{what}");
    unmark(path);
    let index = try_open(path).unwrap();
    let left = index.revision().unwrap();
    assert!(left < Revision(9) && what.contains(&format!("is at revision {} ", left.0)), "{what}");
    index.apply(&Batch::default()).unwrap();
    drop(index);
    assert!(mark(path).exists());
    assert_eq!(try_open(path).unwrap().revision().unwrap(), Revision(left.0 + 1));
}

#[test]
fn sqlite_without_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path(), "index.sqlite");
    fs::remove_file(log(&path)).unwrap();
    let what = try_open(&path).unwrap_err();
    goes_on_without_the_mark(&path, &what);
}

/// Another kind of journal must not fold what is left of the log into the database before anybody has seen it.
#[test]
fn sqlite_with_a_damaged_log_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path(), "index.sqlite");
    let mut content = fs::read(log(&path)).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(log(&path), &content).unwrap();
    let database = fs::read(&path).unwrap();
    for journal in [Journal::Delete, Journal::Wal] {
        let options = SqliteOptions { journal, ..SqliteOptions::default() };
        assert!(matches!(SqliteIndex::open(&path, options), Err(IndexError::Damaged { .. })));
        assert_eq!((fs::read(&path).unwrap(), fs::read(log(&path)).unwrap()), (database.clone(), content.clone()));
    }
    // The damage is reversible as long as nobody writes.
    content[middle] ^= 1;
    fs::write(log(&path), &content).unwrap();
    assert_eq!(try_open(&path).unwrap().revision().unwrap(), Revision(9));
}

/// Flipped or cut anywhere: everything is there, or it is damage.
#[test]
fn sqlite_with_a_log_that_is_flipped_or_cut_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path(), "index.sqlite");
    let expected = dump(&*open(&path).unwrap());
    let sound = fs::read(log(&path)).unwrap();
    let (database, marked) = (fs::read(&path).unwrap(), fs::read(mark(&path)).unwrap());
    let offsets = (0..32).chain((32..sound.len()).step_by(sound.len() / 100)).chain([sound.len() - 1]);
    let mut damaged = 0;
    for (n, at) in offsets.enumerate() {
        let mut flipped = sound.clone();
        flipped[at] ^= 0x10;
        for (content, how) in [(flipped, "flipped"), (sound[..at].to_vec(), "cut")] {
            let copy = directory.path().join(format!("{n}-{how}/index.sqlite"));
            fs::create_dir(copy.parent().unwrap()).unwrap();
            fs::write(&copy, &database).unwrap();
            fs::write(mark(&copy), &marked).unwrap();
            fs::write(log(&copy), content).unwrap();
            match try_open(&copy) {
                Ok(index) => assert_eq!(dump(&*index), expected, "{how} at {at}"),
                Err(_) => damaged += 1,
            }
        }
    }
    assert!(damaged > 200, "{damaged}");
}

#[test]
fn json_with_fewer_whole_lines() {
    for keep in 1..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = sample(directory.path(), "index.jsonl");
        let content = fs::read(&path).unwrap();
        let lines: Vec<&[u8]> = content.split_inclusive(|&b| b == b'\n').collect();
        assert_eq!(lines.len(), 10);
        // What is left of the next line is no excuse: it was acknowledged.
        for torn in [0, 1, lines[keep].len() / 2, lines[keep].len() - 1] {
            fs::write(&path, [&lines[..keep].concat(), &lines[keep][..torn]].concat()).unwrap();
            let what = try_open(&path).unwrap_err();
            assert!(what.contains(&format!("is at revision {} ", keep - 1)), "{what}");
        }
        fs::write(&path, lines[..keep].concat()).unwrap();
        let what = try_open(&path).unwrap_err();
        goes_on_without_the_mark(&path, &what);
    }
}

/// What another handle wrote and then lost is not cut off by the next batch of this one.
#[test]
fn json_with_a_torn_line_under_an_open_handle() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path(), "index.jsonl");
    let index = open(&path).unwrap();
    record(&*open(&path).unwrap());
    let mut content = fs::read(&path).unwrap();
    content.truncate(content.len() - 3);
    fs::write(&path, &content).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Damaged { .. })));
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Damaged { .. })));
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn sqlite_that_goes_back_under_an_open_handle() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index.sqlite");
    let options = SqliteOptions { journal: Journal::Delete, ..SqliteOptions::default() };
    let index = SqliteIndex::create(&path, options).unwrap();
    play(&index);
    let before = fs::read(&path).unwrap();
    record(&index);
    // Also without the mark: the handle itself has seen more.
    unmark(&path);
    fs::write(&path, &before).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Damaged { .. })));
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Damaged { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
    // Or not the handle, but the mark.
    let index = SqliteIndex::open(&path, options).unwrap();
    record(&SqliteIndex::open(&path, options).unwrap());
    fs::write(&path, &before).unwrap();
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Damaged { .. })));
}

/// SQLite would go on writing into a log that nobody can open any more.
#[test]
fn sqlite_that_loses_its_log_under_an_open_handle() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path(), "index.sqlite");
    let index = open(&path).unwrap();
    assert_eq!(index.revision().unwrap(), Revision(9));
    fs::remove_file(log(&path)).unwrap();
    assert!(matches!(index.newest(), Err(IndexError::Storage { .. })));
    assert!(matches!(index.apply(&Batch::default()), Err(IndexError::Storage { .. })));
    drop(index);
    try_open(&path).unwrap_err();
}

/// A mark that cannot be read claims nothing, and the next batch makes it anew.
#[test]
fn a_mark_that_is_torn_or_missing() {
    for name in NAMES {
        let directory = tempfile::tempdir().unwrap();
        let path = sample(directory.path(), name);
        let sound = fs::read(mark(&path)).unwrap();
        let expected = dump(&*open(&path).unwrap());
        for n in 0..sound.len() {
            let mut flipped = sound.clone();
            flipped[n] ^= 1;
            for content in [&sound[..n], &flipped] {
                fs::write(mark(&path), content).unwrap();
                assert_eq!(dump(&*try_open(&path).unwrap()), expected, "{name}, byte {n}");
            }
        }
        unmark(&path);
        let index = try_open(&path).unwrap();
        assert_eq!(dump(&*index), expected);
        assert!(!mark(&path).exists(), "reading marks nothing");
        fs::write(mark(&path), &sound[..20]).unwrap();
        index.apply(&Batch::default()).unwrap();
        let text = fs::read_to_string(mark(&path)).unwrap();
        assert!(text.starts_with("1.0 00000000000000000010 00000000000000000010 "), "{text}");
        assert_eq!(text.len(), sound.len());
    }
}

/// It is there to notice a loss; without it everything else works.
#[test]
fn a_mark_that_cannot_be_used_stops_nobody() {
    for name in NAMES {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let index = open(&path).unwrap();
        fs::create_dir(mark(&path)).unwrap();
        play(&*index);
        drop(index);
        assert_eq!(try_open(&path).unwrap().revision().unwrap(), Revision(6));
    }
}

/// Eight writers, each with its own handle, and readers that open it all the while: never damage, and the mark is
/// where the index is.
#[test]
fn writers_at_once() {
    for name in NAMES {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        drop(open(&path).unwrap());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let index = open(path).unwrap();
                    let mut last = Revision(0);
                    for _ in 0..10 {
                        let revision = index.apply(&Batch::default()).unwrap();
                        assert!(revision > last);
                        last = revision;
                        assert!(open(path).unwrap().revision().unwrap() >= last);
                        index.maintain().unwrap();
                    }
                });
            }
        });
        assert_eq!(open(&path).unwrap().revision().unwrap(), Revision(80));
        let text = fs::read_to_string(mark(&path)).unwrap();
        assert!(text.starts_with("1.0 00000000000000000080 "), "{name}: {text}");
    }
}

#[test]
fn maintenance_and_another_journal_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = sample(directory.path(), "index.sqlite");
    let eager = SqliteOptions { log_above: 0, ..SqliteOptions::default() };
    SqliteIndex::open(&path, eager).unwrap().maintain().unwrap();
    assert_eq!(try_open(&path).unwrap().revision().unwrap(), Revision(9));
    let delete = SqliteOptions { journal: Journal::Delete, ..SqliteOptions::default() };
    assert_eq!(SqliteIndex::open(&path, delete).unwrap().revision().unwrap(), Revision(9));
    let path = sample(directory.path(), "other.jsonl");
    JsonIndex::open(&path, JsonOptions { compact_above: 0, ..JsonOptions::default() }).unwrap().maintain().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    assert_eq!(try_open(&path).unwrap().revision().unwrap(), Revision(9));
}

fn workspace(directory: &Path) -> WorkspaceDir {
    let workspace = DataDir::new(directory).workspace(&WorkspaceId::from_bytes([5; 16]));
    workspace.create().unwrap();
    workspace
}

fn asked(kind: IndexKind) -> IndexOptions {
    IndexOptions { kind: Some(kind), ..IndexOptions::default() }
}

fn is_missing(workspace: &WorkspaceDir, trace: &Path) {
    let entries = || fs::read_dir(workspace.path()).unwrap().count();
    let before = entries();
    let check = |error: DataError| match error {
        DataError::Damaged { path, source } => {
            assert_eq!(path, workspace.path());
            let text = source.to_string();
            assert!(text.starts_with("its index is missing") && text.contains(trace.to_str().unwrap()), "{text}");
        }
        other => panic!("{other:?}: {:?}", other.source()),
    };
    check(workspace.index_kind().unwrap_err());
    for options in [IndexOptions::default(), asked(IndexKind::Sqlite), asked(IndexKind::Json)] {
        check(workspace.open_index(options).unwrap_err());
    }
    assert_eq!(entries(), before, "nothing is made");
}

#[test]
fn an_index_that_was_there_is_not_made_anew() {
    for kind in [IndexKind::Sqlite, IndexKind::Json] {
        let directory = tempfile::tempdir().unwrap();
        let workspace = workspace(directory.path());
        let file = workspace.index_file(kind);
        workspace.open_index(asked(kind)).unwrap().apply(&Batch::default()).unwrap();
        let kept = directory.path().join("kept");
        fs::rename(&file, &kept).unwrap();
        is_missing(&workspace, &mark(&file));
        // Nor by who knows the file only.
        for error in [
            SqliteIndex::create(&workspace.index_file(IndexKind::Sqlite), SqliteOptions::default()).unwrap_err(),
            JsonIndex::create(&workspace.index_file(IndexKind::Json), JsonOptions::default()).unwrap_err(),
        ] {
            match error {
                IndexError::Damaged { what, .. } => assert!(what.contains("is missing"), "{what}"),
                other => panic!("{other:?}"),
            }
        }
        // A torn mark claims no number, but somebody made it.
        fs::write(mark(&file), b"").unwrap();
        is_missing(&workspace, &mark(&file));
        fs::rename(&kept, &file).unwrap();
        assert_eq!(workspace.open_index(IndexOptions::default()).unwrap().revision().unwrap(), Revision(1));
    }
}

#[test]
fn a_store_with_packs_had_an_index() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = workspace(directory.path());
    let packs = workspace.git().join("objects/pack");
    fs::create_dir_all(&packs).unwrap();
    assert_eq!(workspace.index_kind().unwrap(), None);
    fs::write(packs.join("pack-1.idx"), b"").unwrap();
    drop(workspace.open_index(IndexOptions::default()).unwrap());
    assert!(!mark(&workspace.index_file(IndexKind::Sqlite)).exists(), "no batch, no mark");
    fs::write(packs.join("pack-1.pack"), b"").unwrap();
    drop(workspace.open_index(IndexOptions::default()).unwrap());
    for end in ["", "-wal", "-shm"] {
        let mut name = workspace.index_file(IndexKind::Sqlite).into_os_string();
        name.push(end);
        fs::remove_file(name).unwrap();
    }
    is_missing(&workspace, &packs.join("pack-1.pack"));
}
