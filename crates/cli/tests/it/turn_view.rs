//! 000's own files, as a view of ours (contract 000-01, 000-04, 000-07).

use std::fs;
use std::sync::Arc;

use checkpoint_core::SessionKey;
use harness_adapter::{TurnView, ViewError, turn_records, view_dir};
use index_store::{DataDir, Registry};
use serde_json::Value;

use crate::conversation::{Steps, engine, played};

#[test]
fn c000_04_one_record_a_closed_turn_and_a_git_directory_that_finds_its_tree() {
    let home = played();
    let sandbox = &home.sandbox;
    // A turn that only talked, and one that is still open.
    sandbox.turn_of("dsh:edits3", 4, |_| {});
    sandbox.ok(&["save", "--session", "dsh:edits3", "--turn", "5", "--kind", "turn-start"]);
    let engine = engine(&home, &Arc::new(Steps::default()));
    let session = SessionKey::parse("dsh:edits3").unwrap();
    let records = turn_records(&engine, &session).unwrap();
    let changed: Vec<(u32, Vec<&str>)> =
        records.iter().map(|record| (record.turn, record.changed.iter().map(String::as_str).collect())).collect();
    assert_eq!(
        changed,
        [
            (1, vec!["notes.md", "src/app.txt"]),
            (2, vec!["src/app.txt"]),
            (3, vec!["gen.txt", "notes.md", "src/app.txt"]),
            (4, vec![]),
        ]
    );
    let data = DataDir::new(sandbox.data());
    let workspace = Registry::new(data.clone()).list().unwrap().remove(0);
    let dir = view_dir(&home.path(), "edits3");
    assert_eq!(dir, home.path().join("checkpoint/edits3"));
    let objects = data.workspace(&workspace.id).git().join("objects");
    let view = TurnView::new(dir.clone());
    for _ in 0..2 {
        view.update(&engine, &session, &objects).unwrap();
    }
    let index: Value = serde_json::from_slice(&fs::read(dir.join("index.json")).unwrap()).unwrap();
    assert_eq!(index.as_array().unwrap().len(), 4);
    for record in index.as_array().unwrap() {
        let fields: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(fields.len(), 4);
        assert!(record["capturedAt"].as_i64().unwrap() > 0);
    }
    // Plain git finds every tree there, and nothing else is in it.
    let repo = gix::open_opts(dir.join("git"), gix::open::Options::isolated()).unwrap();
    for record in &records {
        let id = gix::ObjectId::from_hex(record.tree_hash.as_ref().unwrap().as_bytes()).unwrap();
        let tree = repo.find_object(id).unwrap();
        assert_eq!(tree.kind, gix::object::Kind::Tree);
    }
    let objects = fs::read_dir(dir.join("git/objects")).unwrap().count();
    assert_eq!(objects, 1, "only info/ is there");
    // Of a tree before: what turn 1 left is what the record says.
    let points = sandbox.json(0, &["log", "--session", "dsh:edits3"]);
    let ends = points["points"].as_array().unwrap().iter().filter(|point| point["kind"] == "turn-end");
    let trees: Vec<&str> = ends.map(|point| point["tree"].as_str().unwrap()).collect();
    assert_eq!(trees, records.iter().map(|record| record.tree_hash.as_deref().unwrap()).collect::<Vec<_>>());
}

/// Only what ended since is looked at again, and the result is the same as from the beginning.
#[test]
fn c000_04_a_view_that_is_kept_up_is_the_one_that_is_made_anew() {
    let home = played();
    let engine = engine(&home, &Arc::new(Steps::default()));
    let session = SessionKey::parse("dsh:edits3").unwrap();
    let view = TurnView::new(view_dir(&home.path(), "edits3"));
    let read = || fs::read_to_string(home.path().join("checkpoint/edits3/index.json")).unwrap();
    view.update(&engine, &session, &home.path()).unwrap();
    for turn in 4..7 {
        home.sandbox.turn_of("dsh:edits3", turn, |sandbox| sandbox.write("notes.md", format!("turn {turn}\n")));
        view.update(&engine, &session, &home.path()).unwrap();
        let kept_up = read();
        TurnView::new(view_dir(&home.path(), "edits3")).update(&engine, &session, &home.path()).unwrap();
        assert_eq!(kept_up, read());
        assert!(kept_up.contains(&format!("\"turn\": {turn}")), "{kept_up}");
    }
}

/// 000's own directory, at the same place, holds records that exist nowhere else.
#[test]
fn tj16_the_directory_of_an_older_plugin_stays_as_it_is() {
    let home = played();
    let engine = engine(&home, &Arc::new(Steps::default()));
    let session = SessionKey::parse("dsh:edits3").unwrap();
    let dir = view_dir(&home.path(), "edits3");
    for file in ["index.json", "git/HEAD", "anything"] {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "theirs").unwrap();
        let view = TurnView::new(dir.clone());
        let refused = view.update(&engine, &session, &home.path()).unwrap_err();
        assert!(matches!(&refused, ViewError::Foreign(at) if *at == dir), "{refused}");
        assert_eq!((view.is_news(&refused), view.is_news(&refused)), (true, false));
        let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [file.split('/').next().unwrap()]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        fs::remove_dir_all(&dir).unwrap();
    }
    fs::write(&dir, "a file").unwrap();
    assert!(TurnView::new(dir.clone()).update(&engine, &session, &home.path()).is_err());
    assert_eq!(fs::read_to_string(&dir).unwrap(), "a file");
}
