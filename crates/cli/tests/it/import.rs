//! `rwd import` (design § 9, § 13 row 16): stores of older plugins come in as points, and are only read.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::sandbox::{Sandbox, Tree, listed, tree};

/// A sandbox with a home of DeepSeek Harness. Dropped, it fails the test when the older store was changed.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    first: Option<Tree>,
}

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let home = sandbox.top().join("dsh");
        fs::create_dir(&home).unwrap();
        let sandbox = sandbox.with("DSH_HOME", home.to_str().unwrap());
        sandbox.write("a", "now\n");
        sandbox.ok(&["save"]);
        Self { sandbox, first: None }
    }

    fn home(&self) -> PathBuf {
        self.sandbox.top().join("dsh")
    }

    fn settle(&mut self) {
        self.first = Some(tree(&self.home()));
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let (false, Some(first)) = (std::thread::panicking(), &self.first) {
            assert_eq!(&tree(&self.home()), first, "the older store was written to");
        }
    }
}

/// Real git with a git directory of its own, as the plugin of 000 calls it (000-01); `None` where git is not there.
fn git(dir: &Path, work: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.args(args).current_dir(work).stdin(Stdio::null());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_DIR", dir).env("GIT_WORK_TREE", work).env("GIT_OPTIONAL_LOCKS", "0");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "e");
    }
    let output = command.output().ok()?;
    assert!(output.status.success(), "{args:?}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// What a turn leaves, and the tree that the plugin would have recorded.
fn turn(world: &World, dir: &Path, play: impl FnOnce(&Sandbox)) -> Option<String> {
    let sandbox = &world.sandbox;
    play(sandbox);
    git(dir, &sandbox.work(), &["add", "--all"])?;
    git(dir, &sandbox.work(), &["write-tree"])
}

/// Two turns of the session `s-one` as the plugin of 000 keeps them, at `place`; the workspace is left as after a third
/// that nobody recorded. `None` where git is not there.
fn two_turns(world: &World, place: &str) -> Option<[String; 2]> {
    let session = world.home().join(place).join("s-one");
    let dir = session.join("git");
    fs::create_dir_all(&dir).unwrap();
    git(&dir, &world.sandbox.work(), &["init", "-q"])?;
    let one = turn(world, &dir, |s| {
        s.write("a", "one\n");
        s.write("bin/run", "#!/bin/sh\n");
        fs::set_permissions(s.work().join("bin/run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a", s.work().join("link")).unwrap();
        s.write(std::ffi::OsStr::new("odd \u{fc} name"), "odd");
    })?;
    let two = turn(world, &dir, |s| {
        s.write("a", "two\n");
        s.write("private", "unchanged");
        fs::set_permissions(s.work().join("private"), fs::Permissions::from_mode(0o600)).unwrap();
    })?;
    index(
        world,
        place,
        &json!([
            {"turn": 1, "treeHash": one, "changed": ["a", "bin/run", "link"], "capturedAt": 1_760_000_000_000_i64},
            {"turn": 2, "treeHash": two, "changed": ["a"], "capturedAt": 1_760_000_060_000_i64},
            {"turn": 3, "treeHash": null, "changed": [], "capturedAt": 1_760_000_120_000_i64},
        ]),
    );
    world.sandbox.write("a", "three\n");
    fs::remove_file(world.sandbox.work().join("link")).unwrap();
    Some([one, two])
}

/// A store of the plugin of 000 that can come in; `None` where git is not there.
pub(crate) fn importable() -> Option<World> {
    let world = World::new();
    two_turns(&world, "checkpoint")?;
    Some(world)
}

fn index(world: &World, place: &str, records: &Value) {
    world.put(&format!("{place}/s-one/index.json"), records.to_string());
}

fn column<'v>(list: &'v Value, field: &str) -> Vec<&'v Value> {
    list.as_array().unwrap().iter().map(|entry| &entry[field]).collect()
}

#[test]
fn c000_01_states_of_turns_come_in_once_and_restore() {
    let mut world = World::new();
    let Some([one, two]) = two_turns(&world, "checkpoint") else { return };
    world.settle();
    let import = ["import", "--from", "dsh-checkpoint", "--session", "dsh:s-one"];
    // Nobody knows where a session without a log worked: it is taken only where it is named.
    let unnamed = world.sandbox.json(6, &import[..3]);
    assert_eq!((unnamed["points"].clone(), unnamed["elsewhere"].clone()), (json!([]), json!(3)));
    let dry = world.sandbox.json(0, &[&import[..], &["--dry-run"]].concat());
    assert_eq!(column(&dry["points"], "source"), [&json!(one), &json!(two)]);
    assert_eq!((dry["op"].clone(), dry["points"][0]["id"].clone()), (Value::Null, Value::Null));
    assert_eq!(world.sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 1, "a dry run writes nothing");
    let done = world.sandbox.json(0, &import);
    assert_eq!(column(&done["points"], "turn"), [&json!(1), &json!(2)]);
    assert_eq!(column(&done["points"], "files"), [&json!(4), &json!(5)]);
    assert_eq!((done["withoutFiles"].clone(), done["skipped"].clone()), (json!(1), json!([])));
    let ops = world.sandbox.json(0, &["log", "--ops"]);
    assert_eq!(ops["operations"][0]["kind"], "import");
    // Again brings nothing twice.
    let again = world.sandbox.json(6, &import);
    assert_eq!((again["op"].clone(), column(&again["points"], "new")), (Value::Null, vec![&json!(false); 2]));
    assert_eq!(column(&again["points"], "id"), column(&done["points"], "id"));
    // K-07: the store is gone, and so is everything that it borrowed.
    let away = world.sandbox.top().join("away");
    fs::rename(world.home().join("checkpoint"), &away).unwrap();
    let verified = world.sandbox.json(0, &["verify", "--rehash"]);
    assert_eq!(verified["damaged"], json!([]));
    let private = || fs::metadata(world.sandbox.work().join("private")).unwrap().permissions().mode() & 0o777;
    // Who changed what since is not known: that needs a decision, and nothing is written without.
    let target = "dsh:s-one/t1";
    let asked = world.sandbox.json(3, &["to", target, "--files", "--yes"]);
    assert!(asked["error"]["paths"].to_string().contains("\"a\""), "{asked}");
    assert_eq!(world.sandbox.read("a"), "three\n");
    // What is new stays, also with --exact: an imported state proves no absence.
    let back = world.sandbox.json(0, &["to", target, "--files", "--exact", "--overwrite-drift", "--yes"]);
    assert_eq!((world.sandbox.read("a"), listed(&back["removed"])), ("one\n".to_owned(), Vec::new()));
    assert_eq!(fs::read_link(world.sandbox.work().join("link")).unwrap(), Path::new("a"));
    assert_eq!((world.sandbox.has("private"), private()), (true, 0o600));
    let done = world.sandbox.json(0, &["to", "dsh:s-one/t2", "--files", "--overwrite-drift", "--yes"]);
    assert_eq!(
        (listed(&done["restored"]), private()),
        (vec!["a"], 0o600),
        "a git tree knows no more than one bit of a mode"
    );
    world.sandbox.ok(&["undo", "--yes"]);
    assert_eq!(world.sandbox.read("a"), "one\n");
    fs::rename(away, world.home().join("checkpoint")).unwrap();
}

/// The code of the older plugin doubled a segment of its default place.
#[test]
fn k01_a_doubled_segment_is_found_and_our_own_view_is_not() {
    let world = World::new();
    let Some([_, two]) = two_turns(&world, "checkpoint/checkpoint") else { return };
    // What rwd itself writes for readers of the older form borrows from rwd's own store.
    let view = world.home().join("checkpoint/s-two/git/objects/info");
    fs::create_dir_all(&view).unwrap();
    let ours = world.sandbox.store().join("git/objects");
    fs::write(view.join("alternates"), format!("{}\n", ours.display())).unwrap();
    let records = json!([{"turn": 1, "treeHash": two, "changed": [], "capturedAt": 1}]);
    world.put("checkpoint/s-two/index.json", records.to_string());
    let done = world.sandbox.json(0, &["import", "--from", "dsh-checkpoint", "--session", "s-one"]);
    assert_eq!(done["points"].as_array().unwrap().len(), 2);
    let none = world.sandbox.json(6, &["import", "--from", "dsh-checkpoint", "--session", "s-two"]);
    assert_eq!(none["points"], json!([]));
}

/// An import is no record of its place: what happens next is told from the newest record of our own.
#[test]
fn an_import_changes_nobodys_history() {
    let world = World::new();
    if two_turns(&world, "checkpoint").is_none() {
        return;
    }
    world.sandbox.turn(1, |s| s.write("a", "by the agent\n"));
    world.sandbox.ok(&["import", "--from", "dsh-checkpoint", "--session", "s-one"]);
    // Nothing changed since the end of the turn, so a turn back needs no decision.
    let back = world.sandbox.json(0, &["back", "--session", "agent", "--yes"]);
    assert_eq!((world.sandbox.read("a"), listed(&back["restored"])), ("three\n".to_owned(), vec!["a"]));
    let latest = world.sandbox.json(0, &["show", "latest"]);
    assert_ne!(latest["kind"], "import");
    let newest = world.sandbox.json(0, &["show", "@0m"]);
    assert_ne!(newest["kind"], "import", "an import's time is that of its state");
}

#[test]
fn k07_what_is_missing_or_makes_no_sense_is_named_and_the_rest_comes_in() {
    let world = World::new();
    let Some([one, two]) = two_turns(&world, "checkpoint") else { return };
    let dir = world.home().join("checkpoint/s-one/git");
    let work = world.sandbox.work();
    // The content of turn 1 alone.
    let blob = git(&dir, &work, &["rev-parse", &format!("{one}:a")]).unwrap();
    let loose = |id: &str| dir.join("objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(loose(&blob)).unwrap();
    // A tree that leads outside.
    let mut body = Vec::new();
    body.extend_from_slice(b"100644 ..\0");
    let good = git(&dir, &work, &["rev-parse", &format!("{two}:a")]).unwrap();
    body.extend((0..20).map(|at| u8::from_str_radix(&good[at * 2..at * 2 + 2], 16).unwrap()));
    let bad = world.sandbox.top().join("tree");
    fs::write(&bad, body).unwrap();
    let args = ["hash-object", "-t", "tree", "--literally", "-w", bad.to_str().unwrap()];
    let outside = git(&dir, &work, &args).unwrap();
    index(
        &world,
        "checkpoint",
        &json!([
            {"turn": 1, "treeHash": one, "changed": [], "capturedAt": 1},
            {"turn": 2, "treeHash": two, "changed": [], "capturedAt": 2},
            {"turn": 3, "treeHash": outside, "changed": [], "capturedAt": 3},
            {"turn": 4, "treeHash": "--output=/etc/passwd", "changed": [], "capturedAt": 4},
            {"turn": 5, "treeHash": "ab".repeat(32), "changed": [], "capturedAt": 5},
            {"turn": 6, "treeHash": "ab".repeat(20), "changed": [], "capturedAt": 6},
            {"turn": -7, "treeHash": null, "changed": [], "capturedAt": 7},
            {"turn": 8, "treeHash": [], "changed": [], "capturedAt": "soon"},
            "nine",
        ]),
    );
    let done = world.sandbox.json(5, &["import", "--from", "dsh-checkpoint", "--session", "s-one"]);
    assert_eq!(column(&done["points"], "turn"), [&json!(2)]);
    let mut reasons: Vec<&str> =
        column(&done["skipped"], "reason").into_iter().map(|reason| reason.as_str().unwrap()).collect();
    reasons.sort_unstable();
    let wanted = ["missing", "missing", "refused", "refused", "refused", "unreadable", "unreadable", "unreadable"];
    assert_eq!(reasons, wanted, "{done}");
    assert_eq!(world.sandbox.json(0, &["verify", "--rehash"])["damaged"], json!([]));
    // Everything that is wrong with an index as a whole.
    for broken in ["", "{", "{}", "null", "[[[]]]", "[{\"turn\":1e999}]"] {
        world.put("checkpoint/s-one/index.json", broken);
        world.sandbox.json(5, &["import", "--from", "dsh-checkpoint", "--session", "s-one"]);
    }
}

/// A snapshot of the copy provider, by hand.
fn copied(world: &World, id: &str, files: &Value, contents: &[(&str, &str)]) -> String {
    let work = world.sandbox.work();
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(work.to_str().unwrap().as_bytes()));
    let dir = format!("dsh-checkpoint-rewind/{}/{id}", &hash[..16]);
    world.put(&format!("{dir}/manifest.json"), json!({"id": id, "base": null, "files": files, "bytes": 3}).to_string());
    for (path, content) in contents {
        world.put(&format!("{dir}/{path}"), content);
    }
    dir
}

fn uuid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

fn record(world: &World, n: u32, provider: &str, reference: &str) -> Value {
    json!({
        "id": uuid(n), "sessionId": "s-two", "cwd": world.sandbox.work(), "seq": 40 + n, "time": 1_760_000_000_000_i64,
        "provider": provider, "triggerTool": "bash", "turn": 2, "step": n, "files": 1, "bytes": 3, "ref": reference,
        "note": "before the change", "kind": "manual",
    })
}

fn medium(world: &World, records: &[Value]) {
    let medium = json!({"version": 1, "domain": "rewind", "tables": {"records": records}});
    world.put("storages/rewind.json", medium.to_string());
}

#[test]
fn c002_21_copies_come_in_with_their_records() {
    let mut world = World::new();
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(b"old"));
    let files = json!([
        {"rel": "a", "size": 3, "mtimeMs": 1_750_000_000_000.5, "mode": 33152, "hash": hash},
        {"rel": "d/b", "size": 1, "mtimeMs": 1, "mode": 33261},
    ]);
    copied(&world, &uuid(1), &files, &[("a", "old"), ("d/b", "b")]);
    // No record tells of this one; its copies lie one directory further down.
    copied(&world, &uuid(2), &json!([{"rel": "a", "size": 2, "mtimeMs": 9, "mode": 33188}]), &[("files/a", "or")]);
    let mut other = record(&world, 3, "copy", &uuid(3));
    other["cwd"] = json!("/somewhere/else");
    medium(&world, &[record(&world, 1, "copy", &uuid(1)), other]);
    world.settle();
    let done = world.sandbox.json(0, &["import", "--from", "dsh-checkpoint-rewind"]);
    assert_eq!(column(&done["points"], "session"), [&json!("dsh:unknown"), &json!("dsh:s-two")]);
    assert_eq!((done["elsewhere"].clone(), done["skipped"].clone()), (json!(1), json!([])));
    let id = done["points"][1]["id"].as_str().unwrap();
    assert_eq!((&done["points"][1]["step"], &done["points"][1]["note"]), (&json!(1), &json!("before the change")));
    world.sandbox.json(0, &["to", id, "--files", "--overwrite-drift", "--yes"]);
    assert_eq!((world.sandbox.read("a"), world.sandbox.read("d/b")), ("old".to_owned(), "b".to_owned()));
    let mode = |path: &str| fs::metadata(world.sandbox.work().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("d/b")), (0o600, 0o755), "002-23: recorded modes come back");
    world.sandbox.json(6, &["import", "--from", "dsh-checkpoint-rewind"]);
    // One session only.
    let one = world.sandbox.json(6, &["import", "--from", "dsh-checkpoint-rewind", "--session", "s-two"]);
    assert_eq!(one["points"].as_array().unwrap().len(), 1);
}

#[test]
fn c002_24_what_leads_outside_is_refused() {
    let world = World::new();
    let file = |rel: &str| json!({"rel": rel, "size": 1, "mtimeMs": 1, "mode": 33188});
    let secret = world.sandbox.top().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("x"), "s").unwrap();
    let cases: Vec<Value> = vec![
        json!([file("../x")]),
        json!([file("/etc/x")]),
        json!([file("")]),
        json!([file("a/./x")]),
        json!([file("x"), file("x")]),
        json!([file("x"), file("x/y")]),
        json!([{"rel": "x", "size": -1, "mtimeMs": 1, "mode": 33188}]),
        json!([{"rel": "x", "size": 1, "mtimeMs": "now", "mode": 33188}]),
        json!([{"rel": "x", "size": 1, "mtimeMs": 1, "mode": 33188, "hash": "../x"}]),
        json!([{"rel": "x", "size": 1, "mtimeMs": 1, "mode": 33188, "hash": "0".repeat(64)}]),
        json!([{"rel": "x", "size": 2, "mtimeMs": 1, "mode": 33188}]),
        json!([file("missing")]),
        json!([file(".git/config")]),
        json!([file(&"d/".repeat(9000))]),
        json!("none"),
    ];
    let mut n = 0;
    let mut records = Vec::new();
    for files in &cases {
        n += 1;
        copied(&world, &uuid(n), files, &[("x", "1")]);
        records.push(record(&world, n, "copy", &uuid(n)));
    }
    // Links: to the file, on the way to it, the manifest, the whole snapshot.
    for case in 0..4 {
        n += 1;
        let dir = copied(&world, &uuid(n), &json!([file("d/x")]), &[]);
        let dir = world.home().join(dir);
        match case {
            0 => {
                fs::create_dir(dir.join("d")).unwrap();
                symlink(secret.join("x"), dir.join("d/x")).unwrap();
            }
            1 => symlink(&secret, dir.join("d")).unwrap(),
            2 => {
                fs::create_dir(dir.join("d")).unwrap();
                fs::write(dir.join("d/x"), "1").unwrap();
                fs::rename(dir.join("manifest.json"), secret.join("manifest.json")).unwrap();
                symlink(secret.join("manifest.json"), dir.join("manifest.json")).unwrap();
            }
            _ => {
                fs::rename(&dir, secret.join("whole")).unwrap();
                symlink(secret.join("whole"), &dir).unwrap();
            }
        }
        records.push(record(&world, n, "copy", &uuid(n)));
    }
    // References that are no UUID and no object id never become a path.
    for (provider, reference) in [("copy", "../../secret"), ("git", "--output=x"), ("copy", ""), ("git", "HEAD")] {
        n += 1;
        records.push(record(&world, n, provider, reference));
    }
    n += 1;
    copied(&world, &uuid(n), &json!([file("x")]), &[("x", "1")]);
    records.push(record(&world, n, "copy", &uuid(n)));
    records.push(json!({"id": "../x", "sessionId": "s", "provider": "copy", "ref": "x"}));
    medium(&world, &records);
    let done = world.sandbox.json(5, &["import", "--from", "dsh-checkpoint-rewind"]);
    assert_eq!(column(&done["points"], "source"), [&json!(uuid(n))], "{done}");
    assert_eq!(done["skipped"].as_array().unwrap().len(), records.len() - 1, "{done}");
    let text = done.to_string();
    assert!(!text.contains(char::is_control), "{text}");
}

#[test]
fn c002_15_commits_in_the_users_repository_come_in_while_they_exist() {
    let world = World::new();
    let work = world.sandbox.work();
    let dir = work.join(".git");
    if git(&dir, &work, &["init", "-q"]).is_none() {
        return;
    }
    world.sandbox.write("a", "committed\n");
    git(&dir, &work, &["add", "--all"]).unwrap();
    git(&dir, &work, &["commit", "-q", "-m", "c"]).unwrap();
    world.sandbox.write("a", "stashed\n");
    let stash = git(&dir, &work, &["stash", "create"]).unwrap();
    world.sandbox.write("a", "later\n");
    medium(&world, &[record(&world, 1, "git", &stash), record(&world, 2, "git", &"cd".repeat(20))]);
    let before = tree(&dir);
    let done = world.sandbox.json(5, &["import", "--from", "dsh-checkpoint-rewind"]);
    assert_eq!(column(&done["skipped"], "reason"), [&json!("missing")]);
    assert_eq!(tree(&dir), before, "the user's repository was written to");
    fs::remove_dir_all(&dir).unwrap();
    let id = done["points"][0]["id"].as_str().unwrap();
    world.sandbox.json(0, &["to", id, "--files", "--overwrite-drift", "--yes"]);
    assert_eq!(world.sandbox.read("a"), "stashed\n");
}

#[test]
fn c001_01_marks_keep_their_numbers_where_those_are_free() {
    let mut world = World::new();
    let at = 1_760_000_000_000_i64;
    world.put(
        "storages/checkpoint.json",
        json!({"version": 1, "data": {"s-one": [
        {"id": 1, "logLength": 12, "turn": 2, "objective": "look around", "foldedAt": at, "createdAt": at},
        {"id": 3, "logLength": 40, "turn": null, "foldedAt": null},
        {"id": "four", "logLength": 41},
        {"id": 5, "logLength": -1},
    ], "../s": [{"id": 6, "logLength": 1}]}})
        .to_string(),
    );
    world.settle();
    let import = ["import", "--from", "tool-checkpoint", "--session", "s-one"];
    let done = world.sandbox.json(5, &import);
    assert_eq!(
        (column(&done["marks"], "id"), column(&done["marks"], "was")),
        (vec![&json!(1), &json!(3)], vec![&json!(1), &json!(3)])
    );
    assert_eq!(column(&done["marks"], "folded"), [&json!(true), &json!(false)]);
    assert_eq!(done["skipped"].as_array().unwrap().len(), 3, "{done}");
    let again = world.sandbox.json(5, &import);
    assert_eq!((again["op"].clone(), column(&again["marks"], "new")), (Value::Null, vec![&json!(false); 2]));
    // A number that is taken is given anew, above all others.
    let path = world.sandbox.top().join("other.json");
    fs::write(&path, json!([{"sessionId": "s-two", "id": 3, "logLength": 7}]).to_string()).unwrap();
    let args = ["import", "--from", "tool-checkpoint", "--session", "s-two", "--path", path.to_str().unwrap()];
    assert_eq!(column(&world.sandbox.json(0, &args)["marks"], "id"), [&json!(4)]);
}

#[test]
fn nothing_there_is_nothing_to_do_and_a_wrong_path_is_said() {
    let world = World::new();
    for from in ["dsh-checkpoint", "dsh-checkpoint-rewind", "tool-checkpoint"] {
        let none = world.sandbox.json(6, &["import", "--from", from]);
        assert_eq!((none["points"].clone(), none["skipped"].clone()), (json!([]), json!([])));
        assert_eq!(
            world.sandbox.json(2, &["import", "--from", from, "--path", "nowhere"])["error"]["code"],
            "no-directory"
        );
    }
    assert_eq!(world.sandbox.rwd(&["import", "--from", "other"]).code, 2);
    assert_eq!(world.sandbox.rwd(&["import"]).code, 2);
}

/// TJ16: a host imports at every mount; what the user dropped since must not come back, and two hosts mount at once.
#[test]
fn tj16_once_is_once_whatever_became_of_it() {
    let mut world = World::new();
    if two_turns(&world, "checkpoint").is_none() {
        return;
    }
    world.settle();
    let import = ["import", "--once", "--from", "dsh-checkpoint", "--session", "dsh:s-one"];
    let runs: Vec<_> = (0..4).map(|_| world.sandbox.command(&import).spawn().unwrap()).collect();
    for run in runs {
        assert!([0, 6].contains(&run.wait_with_output().unwrap().status.code().unwrap()));
    }
    let points = world.sandbox.json(0, &["log", "--session", "dsh:s-one"])["points"].as_array().unwrap().clone();
    assert_eq!(points.len(), 2, "{points:?}");
    assert_eq!(world.sandbox.json(0, &["log", "--ops"])["operations"].as_array().unwrap().len(), 1);
    for point in &points {
        world.sandbox.ok(&["drop", point["id"].as_str().unwrap(), "--yes"]);
    }
    let again = world.sandbox.json(6, &import);
    assert_eq!((again["points"].clone(), again["op"].clone()), (json!([]), Value::Null));
    // Another store is another matter, and without the word it comes in again.
    assert_eq!(world.sandbox.json(6, &["import", "--once", "--from", "tool-checkpoint"])["marks"], json!([]));
    let asked = world.sandbox.json(0, &["import", "--from", "dsh-checkpoint", "--session", "dsh:s-one"]);
    assert_eq!(asked["points"].as_array().unwrap().len(), 2);
}
