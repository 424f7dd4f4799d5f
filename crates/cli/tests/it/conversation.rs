//! Stories 10 and 11: the conversation goes back, alone or with the files, on logs of DeepSeek Harness.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use checkpoint_core::{
    Approver, Beat, Clock, Decision, Engine, ForkRequest, Held, IdSource, LockError, LockMode, Place, Preview,
    Required, Resident, RestoreRequest, Scope, Seq, SessionError, SessionHeader, SessionKey, SessionLog, StoreLock,
    Timestamp,
};
use harness_adapter::sessions::dsh::DshLogs;
use index_store::{DataDir, IndexOptions, Registry};
use serde_json::Value;
use snapshot_git::{EpochFile, GitSnapshots};
use testkit::dsh_logs::Encoding;
use workspace_fs::{Crash, RealWorkspace};

use crate::dsh_home::{DshHome, rows, six_turns};
use crate::sandbox::tree;

/// Six turns with a summary after the fourth, and a workspace that has no point of them.
fn talked(encoding: Encoding) -> DshHome {
    let mut home = DshHome::new();
    home.put("six", &six_turns(), encoding);
    home.sandbox.write("a", "one\n");
    home.sandbox.ok(&["save"]);
    home
}

fn path(of: &Value) -> PathBuf {
    PathBuf::from(of["path"].as_str().unwrap())
}

/// Story 10.
#[test]
fn story_10_the_log_alone_says_where_to_cut() {
    for encoding in [Encoding::Plain, Encoding::Zstd] {
        let home = talked(encoding);
        let sandbox = &home.sandbox;
        let before = sandbox.tree();
        // Without a yes nothing is made.
        let asked = sandbox.json(4, &["to", "t3", "--chat"]);
        assert!(home.new_logs().is_empty(), "{asked}");
        // No session is named: the one whose log says that it works here is meant.
        let went = sandbox.json(0, &["to", "t3", "--chat", "--yes"]);
        let end = home.end_of("six", 3);
        assert_eq!((went["contextOnly"].clone(), went["target"].clone()), (true.into(), Value::Null));
        assert_eq!(went["cut"], serde_json::json!({ "seq": end, "rule": "end of turn 3", "session": "dsh:six" }));
        let child = went["childSessionId"].as_str().unwrap();
        assert!(child.starts_with("session-"), "{child}");
        assert_eq!((went["restored"].as_array().unwrap().len(), sandbox.tree()), (0, before));
        home.unchanged();
        // One new log: the prefix byte for byte, the mark of its end, the notice, nothing else.
        let made = home.new_logs();
        assert_eq!(made, [path(&went["childPath"])]);
        let source = home.logs().location(&SessionKey::parse("dsh:six").unwrap()).unwrap();
        let (old, new) = (rows(&source), rows(&made[0]));
        let shared = usize::try_from(end).unwrap() + 1;
        assert_eq!(new[..shared], old[..shared]);
        assert_eq!(new.len(), shared + 2);
        assert!(new[shared].starts_with(r#"{"type":"session/end-seed""#));
        let notice = &new[shared + 1];
        assert!(notice.starts_with(r#"{"type":"user/message""#) && notice.contains("left as they are"), "{notice}");
        if encoding == Encoding::Plain {
            let lines = |path: &Path| fs::read_to_string(path).unwrap();
            let (old, new) = (lines(&source), lines(&made[0]));
            let events =
                |text: &str| text.split_inclusive('\n').skip(1).map(str::to_owned).collect::<Vec<_>>().concat();
            let (old, new) = (events(&old), events(&new));
            let end = new.find(r#"{"type":"session/end-seed""#).unwrap();
            assert_eq!(new[..end], old[..end], "bytes");
        }
        let checked = sandbox.json(0, &["session", "verify", child]);
        assert_eq!((checked["loadable"].clone(), checked["strict"].clone()), (true.into(), true.into()), "{checked}");
        // The child is a session like any other: it has the turns that it shares.
        let again = sandbox.json(0, &["to", "t2", "--chat", "--yes", "--session", &format!("dsh:{child}")]);
        assert_eq!(again["cut"]["seq"], home.end_of("six", 2));
        let shown = sandbox.json(0, &["session", "show", again["childSessionId"].as_str().unwrap()]);
        assert_eq!(shown["parent"], child);
    }
}

/// Story 10: the log alone will do. A directory without a workspace becomes one; what is refused makes none.
#[test]
fn story_10_no_workspace_is_needed() {
    let mut home = DshHome::new();
    home.put("six", &six_turns(), Encoding::Zstd);
    home.sandbox.write("a", "one\n");
    let sandbox = &home.sandbox;
    for (code, args) in [
        (10, &["to", "t3", "--both", "--yes"][..]),
        (10, &["to", "t3", "--yes"]),
        (10, &["to", "t3", "--chat", "--yes", "--session", "dsh:none"]),
        (10, &["undo", "--yes"]),
    ] {
        assert_eq!(sandbox.json(code, args)["error"]["code"], "no-workspace", "{args:?}");
    }
    assert!(!sandbox.data().exists());
    assert_eq!(sandbox.json(0, &["preview", "t3", "--chat"])["cut"]["seq"], home.end_of("six", 3));
    let other = home.sandbox.top().join("elsewhere");
    fs::create_dir_all(&other).unwrap();
    let went = sandbox.json(0, &["-C", other.to_str().unwrap(), "to", "t3", "--chat", "--yes", "--session", "dsh:six"]);
    assert_eq!((went["contextOnly"].clone(), home.new_logs()), (true.into(), vec![path(&went["childPath"])]));
    assert_eq!((sandbox.read("a"), fs::read_dir(other).unwrap().count()), ("one\n".into(), 0));
}

/// Story 10: a turn that is open, one that is not there, and files where there is no point.
#[test]
fn story_10_what_cannot_be_cut_is_refused_and_nothing_written() {
    let mut home = talked(Encoding::Zstd);
    let mut events = six_turns();
    let end = events.iter().rposition(|event| &*event.kind == "turn/end").unwrap();
    events.truncate(end);
    home.put("running", &events, Encoding::Zstd);
    let sandbox = &home.sandbox;
    let state = || (sandbox.tree(), tree(&home.path()));
    let before = state();
    for scope in ["--chat", "--both"] {
        let error = sandbox.json(3, &["to", "t6", scope, "--yes", "--session", "dsh:running"]);
        assert_eq!(error["error"]["code"], "OPEN_TURN", "{error}");
        assert_eq!(
            sandbox.json(3, &["preview", "t6", scope, "--session", "dsh:running"])["error"]["code"],
            "OPEN_TURN"
        );
    }
    assert_eq!(
        sandbox.json(9, &["to", "t9", "--chat", "--yes", "--session", "dsh:running"])["error"]["code"],
        "not-found"
    );
    let files = sandbox.json(9, &["to", "t3", "--yes", "--session", "dsh:running"]);
    assert!(files["error"]["hints"][0].as_str().unwrap().contains("--chat"), "{files}");
    // Two that were at work just now: nobody guesses which is meant.
    let both = sandbox.json(9, &["to", "t3", "--chat", "--yes"]);
    assert_eq!(both["error"]["code"], "ambiguous");
    assert!(both["error"]["hints"][0].as_str().unwrap().contains("dsh:six/t3"), "{both}");
    assert_eq!(state(), before);
    assert!(sandbox.json(0, &["log", "--ops"])["operations"].as_array().unwrap().is_empty());
    // An open tail keeps no earlier turn from being gone to (TN28).
    sandbox.json(0, &["to", "t5", "--chat", "--yes", "--session", "dsh:running"]);
}

/// What the harness would refuse afterwards is refused beforehand: an event of a type that it does not know, before the cut.
#[test]
fn an_unknown_event_before_the_cut_stops_both_halves() {
    let mut home = talked(Encoding::Plain);
    let mut events = six_turns();
    let third = events.iter().filter(|event| &*event.kind == "turn/start").nth(2).unwrap().seq;
    events.iter_mut().find(|event| event.seq.0 == third.0 + 1).unwrap().kind = "x-probe/event".into();
    home.put("noisy", &events, Encoding::Plain);
    let sandbox = &home.sandbox;
    let state = || (sandbox.tree(), tree(&home.path()));
    let before = state();
    for args in [&["preview", "t4", "--chat"][..], &["to", "t4", "--chat", "--yes"], &["to", "t4", "--both", "--yes"]] {
        let error = sandbox.json(3, &[args, &["--session", "dsh:noisy"]].concat());
        assert_eq!(error["error"]["code"], "UNSUPPORTED_FORMAT", "{error}");
        assert!(error["error"]["hints"][0].as_str().unwrap().contains("session verify dsh:noisy"), "{error}");
    }
    assert_eq!(state(), before);
    assert!(sandbox.json(0, &["log", "--ops"])["operations"].as_array().unwrap().is_empty());
    // What lies before it can be gone to.
    sandbox.json(0, &["to", "t2", "--chat", "--yes", "--session", "dsh:noisy"]);
}

/// Files alone go back whatever has become of the log: nobody asks it.
#[test]
fn a_damaged_log_does_not_keep_files_from_going_back() {
    let mut home = talked(Encoding::Plain);
    let mut events = six_turns();
    events[3].seq.0 += 1;
    home.put("broken", &events, Encoding::Plain);
    let sandbox = &home.sandbox;
    sandbox.write("a", "before");
    let point = ["--session", "dsh:broken", "save", "--turn", "1", "--kind"];
    sandbox.json(0, &[&point[..], &["turn-start"]].concat());
    sandbox.write("a", "after");
    sandbox.json(0, &[&point[..], &["turn-end"]].concat());
    let to = ["to", "t1^", "--yes", "--session", "dsh:broken"];
    assert_eq!(sandbox.json(3, &[&to[..], &["--both"]].concat())["error"]["code"], "CORRUPT_LOG");
    assert_eq!(sandbox.read("a"), "after");
    sandbox.json(0, &[&to[..], &["--files"]].concat());
    assert_eq!(sandbox.read("a"), "before");
}

/// A child that was made and has recorded nothing does not keep the logs from being asked again.
#[test]
fn story_10_a_second_time() {
    let home = talked(Encoding::Zstd);
    let sandbox = &home.sandbox;
    let told = sandbox.ok(&["to", "t3", "--chat", "--yes"]).out;
    assert!(told.contains("dsh:six stays as it is") && !told.contains("rwd undo"), "{told}");
    let child = sandbox.json(0, &["session", "list"])["sessions"][0]["session"].as_str().unwrap().to_owned();
    // Both logs were written just now.
    let error = sandbox.json(9, &["to", "t2", "--chat", "--yes"]);
    assert_eq!(error["error"]["code"], "ambiguous", "{error}");
    let hints = error["error"]["hints"][0].as_str().unwrap();
    assert!(hints.contains("dsh:six/t2") && hints.contains(&format!("{child}/t2")), "{error}");
    sandbox.json(0, &["to", &format!("{child}/t2"), "--chat", "--yes"]);
}

/// Where no log can be read, the refusal says where logs are looked for.
#[test]
fn without_a_log_both_is_refused_and_says_where_it_looked() {
    let home = talked(Encoding::Plain);
    home.sandbox.turn_of("dsh:elsewhere", 1, |s| s.write("a", "two\n"));
    for scope in ["--chat", "--both"] {
        let error = home.sandbox.json(3, &["to", "dsh:elsewhere/t1", scope, "--yes"]);
        assert_eq!(error["error"]["code"], "FORK_UNSUPPORTED", "{error}");
        assert!(error["error"]["hints"][0].as_str().unwrap().contains("$DSH_HOME"), "{error}");
    }
}

/// A log of a format that can only be read, or not even that, is there all the same: it is not called unknown.
#[test]
fn a_log_of_a_newer_format_is_not_unknown() {
    let home = talked(Encoding::Plain);
    let six = path(&home.sandbox.json(0, &["session", "show", "six"])["path"]);
    for (id, version, name) in [("new", 4, "session.v4.jsonl"), ("odd", 9, "session.jsonl")] {
        let dir = six.parent().unwrap().with_file_name(id);
        std::fs::create_dir(&dir).unwrap();
        let cwd = serde_json::to_string(&home.sandbox.work()).unwrap();
        let head = format!(
            r#"{{"type":"session","version":{version},"id":"{id}","createdAt":1,"isSeeded":false,"delegationDepth":0,"cwd":{cwd}}}"#
        );
        std::fs::write(dir.join(name), head + "\n").unwrap();
        let address = format!("dsh:{id}/t1");
        let session = format!("dsh:{id}");
        for args in [&["to", &address, "--chat", "--yes"][..], &["mark", "--session", &session]] {
            let error = home.sandbox.json(3, args);
            assert_eq!(error["error"]["code"], "FORK_UNSUPPORTED", "{args:?}: {error}");
            assert_eq!(error.to_string().contains("--files"), args[0] == "to", "{error}");
        }
    }
    let told = home.sandbox.rwd(&["session", "verify", "odd"]);
    assert_eq!(told.code, 8);
    assert!(told.out.contains("nothing can be said of it here") && !told.out.contains("refuses"), "{}", told.out);
}

/// The recorded session of three turns, with a workspace that went along and points of every turn.
pub(crate) fn played() -> DshHome {
    let home = DshHome::of("02-edits-3turn");
    play(&home);
    home
}

fn play(home: &DshHome) {
    let sandbox = &home.sandbox;
    sandbox.write("README.md", "# shop\n");
    sandbox.write("src/price.txt", "10\n");
    sandbox.turn_of("dsh:edits3", 1, |s| {
        s.write("src/app.txt", "alpha\n");
        s.write("notes.md", "notes\n");
    });
    sandbox.turn_of("dsh:edits3", 2, |s| s.write("src/app.txt", "beta\n"));
    sandbox.turn_of("dsh:edits3", 3, |s| {
        s.remove("notes.md");
        s.write("gen.txt", "gen\n");
        s.write("src/app.txt", "gamma\n");
    });
}

/// Story 11 and TJ06, without a crash.
#[test]
fn story_11_tj06_files_and_conversation_go_back_together() {
    let home = played();
    let sandbox = &home.sandbox;
    let preview = sandbox.json(0, &["preview", "t2", "--both"]);
    assert_eq!(preview["cut"]["seq"], 101);
    assert_eq!(preview["scope"], "both");
    assert!(home.new_logs().is_empty(), "a preview makes nothing");
    let went = sandbox.json(0, &["to", "t2", "--both", "--exact", "--yes"]);
    assert_eq!((sandbox.read("src/app.txt"), sandbox.has("gen.txt")), ("beta\n".into(), false));
    assert_eq!(sandbox.read("notes.md"), "notes\n");
    assert_eq!((went["contextOnly"].clone(), went["cut"]["rule"].as_str()), (false.into(), Some("end of turn 2")));
    let child = went["childSessionId"].as_str().unwrap().to_owned();
    let events = rows(&path(&went["childPath"]));
    let notice = events.last().unwrap();
    for part in ["src/app.txt", "gen.txt", "read a file again", &went["guard"].as_str().unwrap()[..8]] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    assert_eq!(events.len(), 102 + 2);
    let key = |id: &str| SessionKey::new("dsh", id).unwrap();
    assert_eq!(events[..102], rows(&home.logs().location(&key("edits3")).unwrap())[..102]);
    assert!(events[102].starts_with(r#"{"type":"session/end-seed""#), "{}", events[102]);
    let (header, source) = (home.logs().header(&key(&child)).unwrap(), home.logs().header(&key("edits3")).unwrap());
    assert_eq!((header.parent, header.seed_length, header.cwd), (Some(source.key), 102, source.cwd));
    home.unchanged();
    // People are told where to go on, and how to take it back.
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.read("src/app.txt"), "gamma\n");
    let told = sandbox.ok(&["to", "t1^", "--both", "--yes", "--session", "dsh:edits3"]).out;
    assert!(told.contains("conversation dsh:edits3: cut at its beginning"), "{told}");
    assert!(told.contains("open this session in its harness: session-") && told.contains("its log: "), "{told}");
    // Points say where they could be cut.
    let log = sandbox.json(0, &["log", "--session", "dsh:edits3"]);
    let point = |kind: &str, turn: u64| {
        let points = log["points"].as_array().unwrap();
        let found = points.iter().find(|p| p["kind"] == kind && p["turn"] == turn && p["session"] == "dsh:edits3");
        let found = found.unwrap();
        (found["cutBefore"].as_u64(), found["cutAfter"].as_u64())
    };
    assert_eq!(point("turn-end", 2), (Some(60), Some(101)));
    assert_eq!(point("turn-start", 1), (None, Some(60)));
    // The child finds its parent's points.
    let shown = sandbox.json(0, &["show", "t1", "--session", &format!("dsh:{child}")]);
    assert_eq!(shown["point"]["session"], "dsh:edits3");
}

/// A log that was rewritten at the cut stops both halves before anything is written; files alone still go back.
#[test]
fn a_rewritten_log_is_not_forked() {
    let mut home = DshHome::new();
    let events = six_turns();
    home.put("six", &events, Encoding::Plain);
    home.sandbox.write("a", "one\n");
    home.sandbox.turn_of("dsh:six", 1, |s| s.write("a", "two\n"));
    home.sandbox.ok(&["name", "dsh:six/t1", "good"]);
    home.sandbox.write("a", "three\n");
    home.sandbox.turn_of("dsh:six", 2, |s| s.write("a", "four\n"));
    home.sandbox.json(0, &["preview", "good", "--both"]);
    // The same turns, said otherwise.
    let mut other = six_turns();
    let first = other.iter().position(|event| &*event.kind == "user/message").unwrap();
    let said = other[first].data.get().replace("do part 1", "do another");
    other[first].data = serde_json::value::RawValue::from_string(said).unwrap().into();
    home.put("six", &other, Encoding::Plain);
    let before = home.sandbox.tree();
    for args in
        [&["preview", "good", "--both"][..], &["to", "good", "--both", "--yes"], &["to", "good", "--chat", "--yes"]]
    {
        let error = home.sandbox.json(3, args);
        assert_eq!(error["error"]["code"], "PREFIX_CHANGED", "{args:?}");
    }
    assert_eq!(home.sandbox.tree(), before);
    assert!(home.new_logs().is_empty());
    let hint = home.sandbox.rwd(&["to", "good", "--both", "--yes"]).err;
    assert!(hint.contains("files alone: rwd to good --yes --files") || hint.contains("--files --yes"), "{hint}");
    home.sandbox.json(0, &["to", "good", "--files", "--yes", "--overwrite-drift"]);
    assert_eq!(home.sandbox.read("a"), "two\n");
}

/// A point of `save` knows the log that it was made on, whatever its kind; one of a turn that the log shows only later
/// is cut by that turn all the same.
#[test]
fn k45_a_log_that_is_rewritten_after_a_save_is_noticed() {
    for (kind, target) in [("turn-end", "t2"), ("turn-start", "t2^"), ("manual", "t2")] {
        let mut home = DshHome::new();
        let events = six_turns();
        home.put("six", &events, Encoding::Plain);
        // The turn is not in the log when its start is saved.
        let upto = usize::try_from(home.end_of("six", if kind == "turn-start" { 1 } else { 2 })).unwrap() + 1;
        home.put("six", &events[..upto], Encoding::Plain);
        home.sandbox.write("a", "one\n");
        let saved = home.sandbox.json(0, &["save", "--session", "dsh:six", "--turn", "2", "--kind", kind]);
        home.sandbox.write("a", "two\n");
        home.put("six", &events, Encoding::Plain);
        let target =
            if kind == "manual" { saved["id"].as_str().unwrap().to_owned() } else { format!("dsh:six/{target}") };
        let cut = home.sandbox.json(0, &["preview", &target, "--both"])["cut"]["seq"].clone();
        let end = home.end_of("six", if kind == "turn-end" { 2 } else { 1 });
        assert_eq!(cut, end, "{kind}");
        let mut other = six_turns();
        let first = other.iter().position(|event| &*event.kind == "user/message").unwrap();
        let said = other[first].data.get().replace("do part 1", "do another");
        other[first].data = serde_json::value::RawValue::from_string(said).unwrap().into();
        home.put("six", &other, Encoding::Plain);
        let before = home.sandbox.tree();
        for args in [&["preview", &target, "--both"][..], &["to", &target, "--both", "--yes", "--overwrite-drift"]] {
            assert_eq!(home.sandbox.json(3, args)["error"]["code"], "PREFIX_CHANGED", "{kind}: {args:?}");
        }
        assert_eq!(home.sandbox.tree(), before);
        assert!(home.new_logs().is_empty());
    }
}

/// Logs whose harness dies when it is asked for a child.
#[derive(Debug)]
struct Dying {
    logs: DshLogs,
    /// The child was made by then.
    after: bool,
}

impl SessionLog for Dying {
    fn can_fork(&self, session: &SessionKey) -> bool {
        self.logs.can_fork(session)
    }
    fn header(&self, session: &SessionKey) -> Result<SessionHeader, SessionError> {
        self.logs.header(session)
    }
    fn beats(&self, session: &SessionKey, from: Seq) -> Result<Vec<(Seq, Beat)>, SessionError> {
        self.logs.beats(session, from)
    }
    fn prefix_digest(&self, session: &SessionKey, seq: Seq) -> Result<String, SessionError> {
        self.logs.prefix_digest(session, seq)
    }
    fn fork(&self, request: &ForkRequest) -> Result<SessionHeader, SessionError> {
        if self.after {
            self.logs.fork(request)?;
        }
        resume_unwind(Box::new("killed"))
    }
    fn find_child(&self, request: &ForkRequest) -> Result<Option<SessionHeader>, SessionError> {
        self.logs.find_child(request)
    }
    fn name_child(&self, source: &SessionKey, uuid: &str) -> String {
        self.logs.name_child(source, uuid)
    }
    fn working_in(&self, dir: &Path) -> Result<Vec<Resident>, SessionError> {
        self.logs.working_in(dir)
    }
    fn location(&self, session: &SessionKey) -> Option<PathBuf> {
        self.logs.location(session)
    }
}

/// Runs a command line in this process, with these logs.
fn run_with(home: &DshHome, sessions: Arc<dyn SessionLog>, args: &[&str]) -> std::thread::Result<u8> {
    let mut world = rwd::World::of_process();
    world.args = std::iter::once("rwd").chain(args.iter().copied()).map(Into::into).collect();
    let home_dir = home.sandbox.home();
    world.vars = [("HOME", home_dir.as_os_str()), ("DSH_HOME", home.path().as_os_str())]
        .map(|(name, value)| (name.into(), value.to_owned()))
        .into();
    world.cwd = Some(home.sandbox.work());
    world.stdin = Box::new(std::io::empty());
    world.stdout = Box::new(std::io::sink());
    world.stderr = Box::new(std::io::sink());
    (world.can_ask, world.stdout_is_terminal, world.stderr_is_terminal) = (false, false, false);
    world.sessions = sessions;
    catch_unwind(AssertUnwindSafe(|| rwd::run(world)))
}

/// Story 11: killed when the host was asked for the child, before or after it was there. The next command says so, only
/// forward is possible, and the child is the one that was chosen before.
#[test]
fn story_11_killed_in_the_fork_it_is_finished_with_the_child_chosen_before() {
    for after in [false, true] {
        let home = played();
        let sandbox = &home.sandbox;
        let dying = Arc::new(Dying { logs: home.logs(), after });
        assert!(run_with(&home, dying, &["to", "t2", "--both", "--exact", "--yes"]).is_err(), "it was to die");
        assert_eq!(sandbox.read("src/app.txt"), "beta\n", "the files were restored before");
        assert_eq!(home.new_logs().len(), usize::from(after));
        let operations = sandbox.json(0, &["log", "--ops"]);
        let chosen = operations["operations"][0]["childSessionId"].as_str().unwrap().to_owned();
        let unfinished = sandbox.json(7, &["to", "t1", "--yes"]);
        assert_eq!(unfinished["error"]["op"], operations["operations"][0]["id"]);
        // Nobody is sent on a way that is closed.
        let hints = unfinished["error"]["hints"].as_array().unwrap();
        assert_eq!(hints, &["to do the rest: rwd recover --finish"]);
        assert_eq!(sandbox.json(0, &["preview", "t1"])["decisions"].as_array().unwrap(), hints);
        for told in [sandbox.ok(&["status"]).out, sandbox.ok(&["log"]).out, sandbox.ok(&["diff"]).err] {
            assert!(told.contains("recover --finish") && !told.contains("--back"), "{told}");
        }
        let back = sandbox.json(3, &["recover", "--back"]);
        assert_eq!(back["error"]["code"], "only-forward");
        let done = sandbox.json(0, &["recover", "--finish"]);
        assert_eq!((done["childSessionId"].as_str(), done["status"].as_str()), (Some(&*chosen), Some("restored")));
        assert_eq!(home.new_logs().len(), 1, "one child, never two");
        let checked = sandbox.json(0, &["session", "verify", &chosen]);
        assert_eq!(checked["loadable"], true);
        assert_eq!(sandbox.json(0, &["session", "show", &chosen])["seedLength"], 102);
        // What the hint says puts the files back.
        sandbox.ok(&["undo", "--yes"]);
        assert_eq!(sandbox.read("src/app.txt"), "gamma\n");
        home.unchanged();
    }
}

#[derive(Debug, Default)]
pub(crate) struct Steps {
    seen: AtomicU64,
    dies_at: u64,
}

impl Crash for Steps {
    fn point(&self, _: &'static str) {
        if self.seen.fetch_add(1, Ordering::SeqCst) + 1 == self.dies_at {
            resume_unwind(Box::new("killed"));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Now;

impl Clock for Now {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp(i64::try_from(since.as_millis()).unwrap())
    }
    fn sleep(&self, _: std::time::Duration) {}
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

#[derive(Debug)]
struct Ids(AtomicU64);

impl IdSource for Ids {
    fn next(&self) -> [u8; 16] {
        let n = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let mut bytes = [7; 16];
        bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        bytes
    }
}

/// This test's process is the only one.
#[derive(Debug)]
struct Alone;

#[derive(Debug)]
struct Free;

impl Held for Free {}

impl StoreLock for Alone {
    fn acquire(&self, _: LockMode, _: std::time::Duration) -> Result<Box<dyn Held>, LockError> {
        Ok(Box::new(Free))
    }
}

#[derive(Debug)]
struct Yes;

impl Approver for Yes {
    fn decide(&self, _: &Preview) -> Decision {
        Decision::Approved
    }
}

/// An engine over what the command line has stored, whose files die at a step.
pub(crate) fn engine(home: &DshHome, steps: &Arc<Steps>) -> Engine {
    let data = DataDir::new(home.sandbox.data());
    let workspace = Registry::new(data.clone()).list().unwrap().remove(0);
    let dir = data.workspace(&workspace.id);
    let options = snapshot_git::Options::new(Arc::new(EpochFile::new(dir.epoch().path())));
    let crash = Arc::clone(steps) as Arc<dyn Crash>;
    let options_fs = workspace_fs::Options { crash, ..workspace_fs::Options::default() };
    Engine::builder(Required {
        place: Place { workspace: workspace.id, incarnation: workspace.incarnation },
        snapshots: Arc::new(GitSnapshots::open(&workspace.root, &dir.git(), &dir.stat_cache(), options).unwrap()),
        index: dir.open_index(IndexOptions::default()).unwrap().into(),
        files: Arc::new(RealWorkspace::with_options(&workspace.root, options_fs).unwrap()),
        lock: Arc::new(Alone),
        clock: Arc::new(Now),
        ids: Arc::new(Ids(AtomicU64::new(0))),
    })
    .sessions(Arc::new(home.logs()))
    .approver(Arc::new(Yes))
    .build()
}

/// Story 11: killed when every file is written and the host has not been asked yet. Both ways are open.
#[test]
fn story_11_killed_before_the_fork_both_ways_are_open() {
    let request = RestoreRequest { target: "t2".into(), scope: Scope::Both, force: true, ..RestoreRequest::default() };
    let last = {
        let home = played();
        let steps = Arc::new(Steps { seen: AtomicU64::new(0), dies_at: 0 });
        engine(&home, &steps).restore(&request).unwrap();
        steps.seen.load(Ordering::SeqCst)
    };
    for way in ["--finish", "--back"] {
        let home = played();
        let sandbox = &home.sandbox;
        let before = sandbox.tree();
        let steps = Arc::new(Steps { seen: AtomicU64::new(0), dies_at: last });
        let dies = engine(&home, &steps);
        assert!(catch_unwind(AssertUnwindSafe(|| dies.restore(&request))).is_err(), "it was to die");
        drop(dies);
        assert!(home.new_logs().is_empty());
        let chosen = sandbox.json(0, &["log", "--ops"])["operations"][0]["childSessionId"].as_str().unwrap().to_owned();
        assert!(sandbox.ok(&[]).out.contains("is unfinished"));
        assert_eq!(sandbox.json(7, &["undo", "--yes"])["error"]["code"], "unfinished-operation");
        let done = sandbox.json(0, &["recover", way]);
        if way == "--finish" {
            assert_eq!(done["childSessionId"], chosen);
            assert_eq!(sandbox.read("src/app.txt"), "beta\n");
            assert_eq!(sandbox.json(0, &["session", "show", &chosen])["seedLength"], 102);
        } else {
            assert_eq!((done["childSessionId"].clone(), sandbox.tree()), (Value::Null, before));
            assert!(home.new_logs().is_empty());
        }
        assert_eq!(sandbox.json(0, &["status"])["unfinished"], Value::Null);
    }
}
