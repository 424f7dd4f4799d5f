//! 000's own files, as a view of ours (contract 000-01, 000-04, 000-07).

use std::fs;
use std::sync::Arc;

use checkpoint_core::SessionKey;
use harness_adapter::{turn_records, view_dir, write_view};
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
    for _ in 0..2 {
        write_view(&dir, &records, &data.workspace(&workspace.id).git().join("objects")).unwrap();
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
