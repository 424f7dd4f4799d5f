//! What a crash leaves is named, blocks writing, and goes forward or back.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use checkpoint_core::{
    Batch, BlobStore, Change, IndexOp, Intent, IntentState, OpId, OpKind, OpState, Operation, PathState, Point,
    PointQuery, RelPath, SessionKey, Snapshot, SnapshotBackend, Timestamp, Written,
};
use index_store::{DataDir, IndexOptions, Registry};
use snapshot_git::{EpochFile, GitSnapshots, Options};

use crate::sandbox::Sandbox;

/// Leaves the intent of a restore to `target` open, with nothing applied, as a crash right after step 3 does.
fn crash_after_intent(sandbox: &Sandbox, path: &str) {
    let data = DataDir::new(sandbox.data());
    let workspace = Registry::new(data.clone()).list().unwrap().remove(0);
    let dir = data.workspace(&workspace.id);
    let index = dir.open_index(IndexOptions::default()).unwrap();
    let options = Options::new(Arc::new(EpochFile::new(dir.epoch().path())));
    let store = GitSnapshots::open(&workspace.root, &dir.git(), &dir.stat_cache(), options).unwrap();
    let points: Vec<Point> = index.points(&PointQuery::default()).unwrap();
    let (target, guard) = (&points[0], &points[1]);
    let state =
        |snapshot: &Option<Snapshot>, path: &RelPath| -> PathState { store.state(&snapshot.unwrap(), path).unwrap() };
    let path = RelPath::new(path).unwrap();
    let change =
        Change { path: path.clone(), before: state(&guard.snapshot, &path), after: state(&target.snapshot, &path) };
    let text = serde_json::to_vec(&[&change]).unwrap();
    let plan = store.put_blob(text.len() as u64, &mut text.as_slice()).unwrap();
    let id = OpId::from_bytes([7; 16]);
    let follows = index.newest().unwrap();
    let operation = Operation {
        id,
        ord: follows.next(),
        kind: OpKind::Restore,
        state: OpState::Open,
        session: SessionKey::local(),
        target: Some(target.id),
        reverses: None,
        reversed_by: None,
        guard: Some(guard.id),
        plan: Some(plan),
        at: Timestamp(1),
        wrote: 1,
        child: None,
        summary: "to a point".to_owned(),
        expired: false,
        stored: vec![(path.clone(), store.put_blob(6, &mut b"theirs".as_slice()).unwrap())],
    };
    let intent = Intent {
        operation: id,
        state: IntentState::Applying,
        guard: guard.id,
        before: guard.snapshot.unwrap(),
        plan,
        fork: None,
        host_state: None,
        at: Timestamp(1),
        prefix: None,
    };
    let written = Written { path, before: change.before, after: change.after, history: Vec::new() };
    let ops = vec![
        IndexOp::PutOperation { operation: Box::new(operation) },
        IndexOp::PutWritten { operation: id, written: vec![written] },
        IndexOp::OpenIntent { intent: Box::new(intent) },
    ];
    index.apply(&Batch { follows: Some(follows), ops }).unwrap();
}

pub(crate) fn crashed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    crash_after_intent(&sandbox, "a");
    sandbox
}

/// TJ25: the next command says what was interrupted and where the state before it is.
#[test]
fn tj25_an_unfinished_operation_is_7_and_named_everywhere() {
    let sandbox = crashed();
    for args in [&["to", "latest~1", "--yes"][..], &["to", "latest~1"], &["drop", "--all", "--yes"]] {
        let error = sandbox.json(7, args);
        assert_eq!(error["error"]["code"], "unfinished-operation");
        assert_eq!(error["error"]["op"], "07".repeat(16));
        assert!(error["error"]["hints"][0].as_str().unwrap().ends_with("rwd recover --finish"), "{error}");
    }
    assert_eq!(sandbox.read("a"), "two\n");
    assert_eq!(sandbox.json(0, &["status"])["unfinished"], "07".repeat(16));
    assert!(sandbox.ok(&[]).out.starts_with("operation 07070707 is unfinished"));
    let operation = sandbox.json(0, &["log", "--ops"])["operations"][0].clone();
    assert_eq!(operation["state"], "open");
    assert_eq!(sandbox.json(0, &["show", operation["guard"].as_str().unwrap(), "a"])["path"]["path"], "a");
    assert_eq!(sandbox.json(7, &["doctor"])["ok"], false);
    // No command is offered that would be refused.
    let preview = sandbox.json(0, &["preview", "latest~1"]);
    assert!(preview.get("apply").is_none(), "{preview}");
    assert!(preview["decisions"][0].as_str().unwrap().ends_with("rwd recover --finish"), "{preview}");
    // A capture goes on meanwhile.
    sandbox.json(0, &["save"]);
    for args in [&["save"][..], &["diff"], &["preview", "latest"], &["gc", "--dry-run"], &["log"], &["status"]] {
        assert_eq!(sandbox.json(0, args)["unfinished"], "07".repeat(16), "{args:?}");
        let told = sandbox.ok(args);
        let both = format!("{}{}", told.err, told.out);
        assert!(both.contains("rwd recover --finish or rwd recover --back"), "{args:?}: {both}");
    }
}

/// Whoever is at work on an operation ends it: a preview that waits for that offers nothing of it afterwards.
#[test]
fn a_preview_that_waited_for_an_operation_does_not_offer_to_settle_it() {
    let sandbox = crashed();
    let lock = std::fs::File::open(sandbox.store().join("lock")).unwrap();
    lock.lock().unwrap();
    let preview = std::thread::scope(|scope| {
        let preview = scope.spawn(|| sandbox.json(0, &["preview", "latest~1"]));
        // Long enough for it to have met the operation; where it has not, it finds none.
        std::thread::sleep(std::time::Duration::from_millis(700));
        let data = DataDir::new(sandbox.data());
        let workspace = Registry::new(data.clone()).list().unwrap().remove(0);
        let index = data.workspace(&workspace.id).open_index(IndexOptions::default()).unwrap();
        let id = OpId::from_bytes([7; 16]);
        let ended = Operation { state: OpState::Done, ..index.operation(&id).unwrap().unwrap() };
        let ops = vec![IndexOp::UpdateOperation { operation: Box::new(ended) }, IndexOp::CloseIntent { operation: id }];
        index.apply(&Batch { follows: None, ops }).unwrap();
        drop(lock);
        preview.join().unwrap()
    });
    assert_eq!(preview["unfinished"], serde_json::Value::Null, "{preview}");
    assert_eq!(preview["undecided"][0]["path"], "a", "{preview}");
    assert!(!preview.to_string().contains("recover"), "{preview}");
}

/// What an operation kept of somebody else's is shown by its id.
#[test]
fn kept_content_is_shown_by_its_id() {
    let sandbox = crashed();
    // git's own name for these bytes.
    let id = "228068dbe790983c15535164cd483eb77ade97e4";
    for prefix in [id, &id[..10]] {
        assert_eq!(sandbox.ok(&["show", prefix]).out, "theirs");
    }
    let shown = sandbox.json(0, &["show", id]);
    assert_eq!((shown["path"]["path"].clone(), shown["content"].clone()), ("a".into(), "dGhlaXJz".into()));
    sandbox.json(9, &["show", &id[..3]]);
    sandbox.json(9, &["show", "ffffffff"]);
}

#[test]
fn recover_goes_forward() {
    let sandbox = crashed();
    let done = sandbox.json(0, &["recover", "--finish"]);
    assert_eq!((done["status"].clone(), done["way"].clone()), ("restored".into(), "finish".into()));
    assert_eq!(sandbox.read("a"), "one\n");
    sandbox.json(6, &["recover", "--finish"]);
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.read("a"), "two\n");
}

#[test]
fn recover_goes_back() {
    let sandbox = crashed();
    sandbox.json(0, &["recover", "--back"]);
    assert_eq!(sandbox.read("a"), "two\n");
    sandbox.json(0, &["to", "latest~1", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
}

/// Killed wherever it happens to be: the next command knows, and both ways out are exact. When it is killed depends on
/// the machine; what must hold afterwards does not.
#[test]
fn killed_in_the_middle() {
    let sandbox = Sandbox::new();
    for n in 0..60 {
        sandbox.write(format!("d{}/f{n}", n % 6), "one\n");
    }
    sandbox.ok(&["save"]);
    let target = sandbox.tree();
    for n in (0..60).step_by(2) {
        sandbox.write(format!("d{}/f{n}", n % 6), "two\n");
    }
    for n in (1..60).step_by(12) {
        sandbox.remove(format!("d{}/f{n}", n % 6));
        sandbox.write(format!("d{}/new", n % 6), "new\n");
    }
    sandbox.ok(&["save"]);
    let before = sandbox.tree();
    let goes = ["to", "latest~1", "--exact", "--yes"];
    let begun = std::time::Instant::now();
    sandbox.ok(&goes);
    let whole = begun.elapsed();
    assert_eq!(sandbox.tree(), target);
    sandbox.ok(&["undo", "--yes"]);
    for part in 1..8 {
        let mut child = sandbox
            .command(&goes)
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole * part / 8);
        drop(child.kill());
        child.wait().unwrap();
        if sandbox.json(0, &["status"])["unfinished"].is_string() {
            sandbox.json(7, &goes);
            let (way, wanted) = if part % 2 == 0 { ("--finish", &target) } else { ("--back", &before) };
            sandbox.json(0, &["recover", way]);
            assert_eq!(&sandbox.tree(), wanted, "{way} after {part}/8");
        }
        let now = sandbox.tree();
        assert!(now == target || now == before, "half done after {part}/8");
        if now == target {
            sandbox.ok(&["undo", "--yes"]);
        }
        assert_eq!(sandbox.tree(), before);
    }
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"].as_array().unwrap().len(), 0);
}

/// Design § 4: the registry is one file, and without it no point can be found. `doctor` says so and makes it again.
#[test]
fn a_lost_or_damaged_registry_is_put_right_by_doctor() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.ok(&["save", "--name", "first"]);
    let registry = sandbox.data().join("workspaces.json");
    for damage in [None, Some("{\"format\": \"1.0\", \"workspaces\": [{}]}")] {
        match damage {
            None => std::fs::remove_file(&registry).unwrap(),
            Some(text) => std::fs::write(&registry, text).unwrap(),
        }
        let code = if damage.is_none() { 10 } else { 8 };
        let told = sandbox.rwd(&["to", "first"]);
        assert_eq!(told.code, code);
        assert!(told.err.contains("doctor"), "{}", told.err);
        let found = sandbox.json(code, &["doctor"]);
        let check = |found: &serde_json::Value, status: &str| {
            let all = found["checks"].as_array().unwrap();
            all.iter().any(|check| check["check"] == "registry" && check["status"] == status)
        };
        assert!(check(&found, "warning"), "{found}");
        let fixed = sandbox.json(0, &["doctor", "--fix"]);
        assert!(check(&fixed, "fixed") && fixed["ok"] == true, "{fixed}");
        sandbox.write("a", "two");
        sandbox.ok(&["save"]);
        sandbox.ok(&["to", "first", "--yes"]);
        assert_eq!(sandbox.read("a"), "one");
        assert!(check(&sandbox.json(0, &["doctor"]), "ok"));
    }
}

/// A save after the loss goes on with the points there were.
#[test]
fn a_save_without_a_registry_goes_on_with_the_points_there_were() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.ok(&["save", "--name", "first"]);
    std::fs::remove_file(sandbox.data().join("workspaces.json")).unwrap();
    sandbox.write("a", "two");
    sandbox.ok(&["save"]);
    sandbox.ok(&["to", "first", "--yes"]);
    assert_eq!(sandbox.read("a"), "one");
}

/// Story 15: what is gone from the store is named, the rest restores, and `doctor` does not send anybody to `doctor`.
#[test]
fn story_15_doctor_says_what_to_do_about_missing_content() {
    let sandbox = Sandbox::new();
    let packs = || -> BTreeSet<PathBuf> {
        let dir = sandbox.store().join("git/objects/pack");
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    sandbox.write("a", "one");
    sandbox.ok(&["save", "--name", "first"]);
    let before = packs();
    sandbox.write("a", "two");
    sandbox.ok(&["save", "--name", "second"]);
    for pack in packs().difference(&before) {
        std::fs::remove_file(pack).unwrap();
    }
    let found = sandbox.json(8, &["doctor"]);
    let failed: Vec<_> =
        found["checks"].as_array().unwrap().iter().filter(|check| check["status"] == "failed").collect();
    assert!(failed.iter().any(|check| check["check"] == "points"), "{found}");
    assert!(failed.iter().all(|check| !check["hint"].as_str().unwrap_or_default().ends_with(" doctor")), "{found}");
    assert_eq!(sandbox.json(8, &["to", "second", "--yes", "--overwrite-drift"])["error"]["code"], "not-restorable");
    assert_eq!(sandbox.read("a"), "two");
}
