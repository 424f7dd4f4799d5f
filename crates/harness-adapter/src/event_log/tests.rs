//! 004-20 on real files, with time and failures made to order.
#![expect(clippy::needless_pass_by_value, reason = "payloads are written in place")]

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use checkpoint_core::{Clock, SessionKey, SurfaceOp, fold::Cancel};
use serde_json::{Value, json};

use super::*;
use crate::{
    barriers::{Barriers, FlushHub, ToolCall, ToolResult},
    sessions::dsh::DshLogs,
};

/// Moves only when told to.
#[derive(Debug, Default)]
struct Manual(AtomicI64);

impl Clock for Manual {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
    fn sleep(&self, _: Duration) {
        std::thread::yield_now();
    }
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

/// What the next writes do.
#[derive(Debug, Default)]
struct Plan {
    appends: AtomicU32,
    /// Writes half of the bytes and fails.
    fail_append: Mutex<bool>,
    fail_cut: Mutex<bool>,
}

#[derive(Debug)]
struct Flaky {
    file: File,
    plan: Arc<Plan>,
}

impl LogMedium for Flaky {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.plan.appends.fetch_add(1, Ordering::SeqCst);
        if *self.plan.fail_append.lock().unwrap() {
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(io::Error::other("disk full"));
        }
        self.file.append(bytes)
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        if *self.plan.fail_cut.lock().unwrap() {
            return Err(io::Error::other("cut refused"));
        }
        self.file.cut(len)
    }
}

struct Scene {
    home: tempfile::TempDir,
    clock: Arc<Manual>,
    plan: Arc<Plan>,
    store: JsonlStore,
}

const FOLDER: &str = "sessions/--home-user-shop--/s1";

impl Scene {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (clock, plan) = (Arc::new(Manual::default()), Arc::<Plan>::default());
        let store = Self::store(home.path(), &clock, &plan);
        Self { home, clock, plan, store }
    }
    /// With session `s1` open.
    fn open() -> Self {
        let scene = Self::new();
        scene.store.create(&shop("s1")).unwrap();
        scene
    }
    fn store(home: &Path, clock: &Arc<Manual>, plan: &Arc<Plan>) -> JsonlStore {
        let plan = Arc::clone(plan);
        JsonlStore::new(home, Arc::clone(clock) as Arc<dyn Clock>).with_medium(move |path| {
            let file = File::options().append(true).open(path)?;
            Ok(Box::new(Flaky { file, plan: Arc::clone(&plan) }))
        })
    }
    /// As a process that comes after this one would have it. This one dies with what it has queued.
    fn after_crash(&mut self) {
        self.store = Self::store(self.home.path(), &self.clock, &self.plan);
    }
    fn path(&self) -> PathBuf {
        self.home.path().join(FOLDER).join("session.jsonl")
    }
    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap_or_default()
    }
    fn append(&self, kind: &str, data: Value) -> Result<(), &'static str> {
        let seq = self.store.next_seq("s1").unwrap();
        self.store.append("s1", event(seq.0, kind, data)).map_err(|error| error.code())
    }
    fn flush(&self) -> Result<(), &'static str> {
        EventLogStore::flush(&self.store, "s1").map_err(|error| error.code())
    }
    fn loadable(&self) -> u64 {
        DshLogs::open(self.home.path()).load("s1").unwrap().events
    }
}

fn shop(id: &str) -> NewSession {
    NewSession { cwd: Some("/home/user/shop".into()), ..NewSession::new(id) }
}

fn event(seq: u64, kind: &str, data: Value) -> LogEvent {
    let surface = ["user/message", "assistant/message", "tool/result"].contains(&kind).then_some(SurfaceOp::Append);
    let sources = (kind == "assistant/message").then(Vec::new);
    let data = LogEvent::payload(&data).unwrap();
    LogEvent { seq: Seq(seq), time: 7, kind: kind.into(), data, surface, sources, ignorable: false }
}

fn turn(n: u32) -> Value {
    json!({"turn": n})
}

#[test]
fn c004_20_nothing_is_on_disk_before_the_first_batch_and_the_header_comes_first() {
    let scene = Scene::open();
    scene.clock.0.store(1_796_063_305_215, Ordering::SeqCst);
    assert_eq!(scene.flush(), Ok(()), "nothing waits");
    assert_eq!(std::fs::read_dir(scene.home.path()).unwrap().count(), 0);
    scene.append("turn/start", turn(1)).unwrap();
    assert_eq!(std::fs::read_dir(scene.home.path()).unwrap().count(), 0, "queued");
    scene.flush().unwrap();
    let header =
        r#"{"type":"session","version":0,"id":"s1","createdAt":0,"cwd":"/home/user/shop","delegationDepth":0}"#;
    assert_eq!(
        scene.text(),
        format!("{header}\n{{\"type\":\"turn/start\",\"seq\":0,\"time\":7,\"data\":{{\"turn\":1}}}}\n")
    );
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&scene.path()), mode(scene.path().parent().unwrap())), (0o600, 0o700));
    let mut names: Vec<_> =
        std::fs::read_dir(scene.path().parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["session.jsonl", "session.lock"]);
    assert_eq!(scene.loadable(), 1);
    let twice = scene.store.create(&shop("s1")).unwrap_err();
    assert_eq!(twice.code(), "SESSION_ALREADY_EXISTS");
    scene.store.close("s1").unwrap();
    // Also under another directory.
    let elsewhere = scene.store.create(&NewSession::new("s1")).unwrap_err();
    assert_eq!(elsewhere.code(), "SESSION_ALREADY_EXISTS");
}

#[test]
fn tn55_one_fixed_window_from_the_first_event_that_waits() {
    let scene = Scene::open();
    let at = |ms: i64| scene.clock.0.store(ms, Ordering::SeqCst);
    scene.append("turn/start", turn(1)).unwrap();
    at(150);
    scene.append("turn/end", json!({"turn": 1, "reason": {"kind": "completed"}})).unwrap();
    assert_eq!(scene.store.due(), Some(Timestamp(200)), "not moved by the second");
    at(199);
    assert!(scene.store.tend().is_empty());
    assert_eq!(scene.text(), "");
    at(200);
    assert!(scene.store.tend().is_empty());
    assert_eq!((scene.text().lines().count(), scene.store.due()), (3, None));
    at(1000);
    scene.append("turn/start", turn(2)).unwrap();
    assert_eq!(scene.store.due(), Some(Timestamp(1200)));
}

#[test]
fn tn55_flushes_at_the_same_time_write_once() {
    let scene = Scene::open();
    scene.append("turn/start", turn(1)).unwrap();
    scene.flush().unwrap();
    scene.append("step/start", json!({"turn": 1, "step": 1})).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| scene.flush().unwrap());
        }
    });
    assert_eq!((scene.plan.appends.load(Ordering::SeqCst), scene.loadable()), (1, 2));
}

/// Events that are appended while others are flushed are neither lost nor written twice.
#[test]
fn appending_and_flushing_from_many_threads_keeps_every_event_once() {
    let scene = Scene::open();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    scene.flush().unwrap();
                }
            });
        }
        for n in 0..100 {
            scene.append("todo/write", json!({"todos": [], "n": n})).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    scene.flush().unwrap();
    assert_eq!((scene.loadable(), scene.store.due()), (100, None));
}

#[test]
fn tn43_a_failed_append_leaves_no_partial_bytes_and_keeps_the_batch() {
    let scene = Scene::open();
    scene.append("turn/start", turn(1)).unwrap();
    scene.flush().unwrap();
    let before = scene.text();
    for step in 1..=2 {
        scene.append("step/start", json!({"turn": 1, "step": step})).unwrap();
    }
    *scene.plan.fail_append.lock().unwrap() = true;
    assert_eq!(scene.flush(), Err("WRITE_FAILED"));
    assert_eq!(scene.text(), before);
    // Behind the host's back it is tried again after another window.
    scene.clock.0.store(200, Ordering::SeqCst);
    let failed = scene.store.tend();
    assert_eq!((failed[0].0.as_str(), failed[0].1.code()), ("s1", "WRITE_FAILED"));
    assert_eq!((scene.text(), scene.store.due()), (before, Some(Timestamp(400))));
    *scene.plan.fail_append.lock().unwrap() = false;
    scene.append("step/end", json!({"turn": 1, "step": 2})).unwrap();
    scene.flush().unwrap();
    assert_eq!(scene.loadable(), 4);
    let seqs: Vec<u64> = scene.store.read("s1").unwrap().iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, [0, 1, 2, 3]);
}

#[test]
fn tn44_a_failed_rollback_is_reported_too_and_made_up_for() {
    let scene = Scene::open();
    scene.append("turn/start", turn(1)).unwrap();
    scene.flush().unwrap();
    let before = scene.text();
    scene.append("step/start", json!({"turn": 1, "step": 1})).unwrap();
    (*scene.plan.fail_append.lock().unwrap(), *scene.plan.fail_cut.lock().unwrap()) = (true, true);
    let error = EventLogStore::flush(&scene.store, "s1").unwrap_err();
    assert_eq!(error.code(), "ROLLBACK_FAILED");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().contains("disk full") && source.contains("cut refused"), "{error}: {source}");
    assert!(scene.text().len() > before.len(), "partial bytes are there");
    *scene.plan.fail_append.lock().unwrap() = false;
    assert_eq!(scene.flush(), Err("WRITE_FAILED"), "nothing is appended to a partial row");
    *scene.plan.fail_cut.lock().unwrap() = false;
    scene.flush().unwrap();
    assert!(scene.text().starts_with(&before));
    assert_eq!(scene.loadable(), 2);
}

#[test]
fn a_first_batch_that_fails_leaves_no_log_and_is_kept() {
    let scene = Scene::open();
    let project = scene.path().parent().unwrap().parent().unwrap().to_owned();
    std::fs::create_dir_all(project.parent().unwrap()).unwrap();
    File::create(&project).unwrap();
    scene.append("turn/start", turn(1)).unwrap();
    assert_eq!(scene.flush(), Err("WRITE_FAILED"));
    std::fs::remove_file(&project).unwrap();
    scene.flush().unwrap();
    assert_eq!(scene.loadable(), 1);
    // A log that somebody else made meanwhile is not written over.
    scene.store.create(&shop("s2")).unwrap();
    scene.store.append("s2", event(0, "turn/start", turn(1))).unwrap();
    let other = scene.path().parent().unwrap().with_file_name("s2");
    std::fs::create_dir(&other).unwrap();
    File::create(other.join("session.jsonl")).unwrap().write_all(b"theirs").unwrap();
    assert_eq!(EventLogStore::flush(&scene.store, "s2").unwrap_err().code(), "SESSION_ALREADY_EXISTS");
    assert_eq!(std::fs::read(other.join("session.jsonl")).unwrap(), b"theirs");
    assert!(std::fs::read_dir(&other).unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().ends_with(".tmp")));
}

#[test]
fn c004_20_a_stored_position_and_a_gap_are_refused() {
    let scene = Scene::open();
    for flushed in [false, true] {
        let next = scene.store.next_seq("s1").unwrap().0;
        scene.append("todo/write", json!({"todos": []})).unwrap();
        if flushed {
            scene.flush().unwrap();
        }
        let again = |seq| scene.store.append("s1", event(seq, "todo/write", json!({}))).unwrap_err().code();
        assert_eq!((again(next), again(next + 2)), ("SEQ_STORED", "SEQ_GAP"));
        assert_eq!(scene.store.next_seq("s1").unwrap(), Seq(next + 1));
    }
    assert_eq!(scene.store.append("s9", event(0, "todo/write", json!({}))).unwrap_err().code(), "SESSION_NOT_LIVE");
}

#[test]
fn tn46_no_id_leaves_its_folder() {
    for id in ["../../evil", "..", ".", "/etc/x", "a/b", "~", "c:\\x", "é\n\u{0}"] {
        let scene = Scene::new();
        scene.store.create(&shop(id)).unwrap();
        scene.store.append(id, event(0, "turn/start", turn(1))).unwrap();
        EventLogStore::flush(&scene.store, id).unwrap();
        let project = scene.home.path().join("sessions/--home-user-shop--");
        let folders: Vec<_> = std::fs::read_dir(&project).unwrap().collect();
        assert_eq!(folders.len(), 1, "{id:?}");
        assert!(folders[0].as_ref().unwrap().path().join("session.jsonl").is_file());
        assert_eq!(std::fs::read_dir(scene.home.path()).unwrap().count(), 1);
        assert_eq!(scene.store.read(id).unwrap().len(), 1);
    }
    assert_eq!(Scene::new().store.create(&shop("")).unwrap_err().code(), "BAD_SESSION_ID");
}

#[test]
fn tn53_what_the_reader_would_refuse_is_never_written() {
    let scene = Scene::open();
    assert_eq!(scene.append("x-probe/event", json!({})), Err("UNKNOWN_EVENT"));
    let ignorable = LogEvent { ignorable: true, ..event(0, "x-probe/event", json!({"a": 1})) };
    scene.store.append("s1", ignorable).unwrap();
    let message = json!({"content": [], "source": {"kind": "user"}, "role": "user", "id": "u"});
    let bad: [LogEvent; 4] = [
        LogEvent { surface: None, ..event(1, "user/message", message.clone()) },
        LogEvent { surface: Some(SurfaceOp::Append), ..event(1, "turn/start", turn(1)) },
        LogEvent {
            surface: Some(SurfaceOp::Replace { start: Seq(0), end: Seq(0) }),
            sources: Some(vec![Seq(0)]),
            ..event(1, "user/message", message.clone())
        },
        event(1, "user/message", json!({"content": []})),
    ];
    for event in bad {
        assert_eq!(scene.store.append("s1", event).unwrap_err().code(), "CORRUPT_LOG");
    }
    scene.append("user/message", message).unwrap();
    // A payload over several lines becomes one row.
    let spread = r#"{
        "todos": ["a\nb"] }"#;
    let data = serde_json::from_str::<Box<serde_json::value::RawValue>>(spread).unwrap().into();
    scene.store.append("s1", LogEvent { data, ..event(2, "todo/write", json!({})) }).unwrap();
    scene.flush().unwrap();
    assert_eq!((scene.loadable(), scene.text().lines().count()), (3, 4));
    assert!(scene.store.read("s1").unwrap()[2].data.get().contains(r#"["a\nb"]"#));
}

fn tear(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

#[test]
fn tn41_the_owner_cuts_a_torn_tail_and_closes_the_turn_and_a_reader_does_not() {
    let mut scene = Scene::open();
    scene.append("turn/start", turn(1)).unwrap();
    scene.append("step/start", json!({"turn": 1, "step": 1})).unwrap();
    scene.append("step/end", json!({"turn": 1, "step": 1})).unwrap();
    scene.flush().unwrap();
    tear(&scene.path(), 5);
    let torn = scene.text();
    assert_eq!(scene.store.resume("s1").unwrap_err().code(), "SESSION_ALREADY_EXISTS");
    let other = Scene::store(scene.home.path(), &scene.clock, &scene.plan);
    assert_eq!(other.resume("s1").unwrap_err().code(), "SESSION_LOCKED");
    assert_eq!(scene.store.read("s1").unwrap().len(), 2);
    assert_eq!(scene.text(), torn, "reading changes nothing");
    scene.after_crash();
    let resumed = scene.store.resume("s1").unwrap();
    let kinds: Vec<&str> = resumed.events.iter().map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["turn/start", "step/start", "step/end", "turn/end"]);
    assert!(resumed.closers == 2 && resumed.torn > 0);
    assert_eq!(scene.loadable(), 4, "and synced");
    // It goes on from there.
    scene.append("turn/start", turn(2)).unwrap();
    scene.store.close("s1").unwrap();
    assert_eq!(scene.loadable(), 5);
    let again = scene.store.resume("s1").unwrap();
    assert_eq!((again.events.len(), again.closers, again.torn), (6, 1, 0));
}

/// SIGKILL after the side effect: the barrier has made the call durable, the result was still waiting.
#[test]
fn tn13_a_call_that_began_is_found_with_an_unknown_outcome() {
    let mut scene = Scene::open();
    let (hub, key) = (FlushHub::default(), SessionKey::new("dsh", "s1").unwrap());
    let subscribed = hub.listen(Arc::new(scene.store.clone()));
    hub.open(&key);
    let (barriers, mounted) = Barriers::mount(Arc::new(hub));
    scene.append("turn/start", turn(1)).unwrap();
    scene.append("step/start", json!({"turn": 1, "step": 1})).unwrap();
    let block = json!({"type": "tool-call", "id": "c1", "name": "bash", "arguments": "{}"});
    let source = json!({"kind": "model", "provider": "p", "model": "m"});
    let message = json!({"role": "assistant", "content": [block], "source": source, "id": "m"});
    scene.append("assistant/message", json!({"turn": 1, "step": 1, "message": message})).unwrap();
    let call = json!({"turn": 1, "step": 1, "callId": "c1", "name": "bash", "arguments": "{}"});
    scene.append("tool/call", call).unwrap();
    let cancel = Cancel::default();
    let call = ToolCall {
        session: Some(&key),
        name: "bash",
        call_id: "c1",
        turn: None,
        step: None,
        nested: false,
        mutating: true,
        cancel: &cancel,
    };
    let answer = barriers.run_tool(&call, None, || {
        assert_eq!(scene.loadable(), 4, "the call is on disk before its body runs");
        ToolResult::text("done")
    });
    assert_eq!(answer, ToolResult::text("done"));
    scene.append("todo/write", json!({"todos": []})).unwrap();
    drop((subscribed, mounted, barriers));
    scene.after_crash();
    let resumed = scene.store.resume("s1").unwrap();
    let result = &resumed.events[4];
    assert_eq!((&*result.kind, result.sources.as_deref()), ("tool/result", Some(&[Seq(3)][..])));
    assert!(result.data.get().contains("TOOL_OUTCOME_UNKNOWN"));
    assert_eq!(scene.loadable(), 7);
}

#[test]
fn tn52_a_newer_log_is_unsupported_and_left_as_it_is() {
    let mut scene = Scene::open();
    scene.append("turn/start", turn(1)).unwrap();
    scene.store.close("s1").unwrap();
    for (from, to, code) in [
        ("\"version\":0", "\"version\":9", "UNSUPPORTED_VERSION"),
        ("\"seq\":0", "\"seq\":1", "ok"),
        ("turn/start\",\"seq\":0", "turn/end\",\"seq\":1", "CORRUPT_LOG"),
    ] {
        let sound = scene.text();
        let text = sound.replace(from, to);
        assert_ne!(text, sound);
        File::create(scene.path()).unwrap().write_all(text.as_bytes()).unwrap();
        scene.after_crash();
        let got = scene.store.resume("s1").map_or_else(|error| error.code(), |_| "ok");
        assert_eq!(got, code, "{to}");
        if code != "ok" {
            assert_eq!(scene.text(), text);
        }
        scene.after_crash();
        File::create(scene.path()).unwrap().write_all(sound.as_bytes()).unwrap();
    }
    assert_eq!(scene.store.resume("none").unwrap_err().code(), "SESSION_NOT_FOUND");
}

/// Two that write one log destroyed it for good in the harness itself.
#[test]
fn a_log_that_somebody_else_wrote_is_not_written_on() {
    let scene = Scene::open();
    scene.append("turn/start", turn(1)).unwrap();
    scene.flush().unwrap();
    File::options().append(true).open(scene.path()).unwrap().write_all(b"theirs\n").unwrap();
    let theirs = scene.text();
    scene.append("step/start", json!({"turn": 1, "step": 1})).unwrap();
    assert_eq!(scene.flush(), Err("LOG_CHANGED"));
    assert_eq!(scene.text(), theirs);
}

#[test]
fn the_writer_writes_what_waits_before_it_goes() {
    let scene = Scene::open();
    let writer = Writer::start(&scene.store).unwrap();
    scene.append("turn/start", turn(1)).unwrap();
    scene.clock.0.store(200, Ordering::SeqCst);
    while scene.store.due().is_some() {
        std::thread::yield_now();
    }
    assert_eq!(scene.loadable(), 1, "what is due");
    scene.append("step/start", json!({"turn": 1, "step": 1})).unwrap();
    drop(writer);
    assert_eq!(scene.loadable(), 2, "what is not due too");
}

/// Every event of a log of the real host, written by this store, gives that log byte for byte.
#[test]
fn tn40_a_real_log_is_written_byte_for_byte() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dsh/cases/12-plaintext-unpacked");
    let logs = DshLogs::open(&real);
    let session = logs.list().unwrap().remove(0);
    let events = logs.events(&session.id).unwrap();
    let scene = Scene::new();
    scene.clock.0.store(i64::try_from(session.created_at).unwrap(), Ordering::SeqCst);
    scene.store.create(&NewSession { cwd: session.cwd.clone(), ..NewSession::new(&session.id) }).unwrap();
    for event in events {
        scene.store.append(&session.id, event).unwrap();
    }
    EventLogStore::flush(&scene.store, &session.id).unwrap();
    let written = DshLogs::open(scene.home.path()).inspect(&session.id).unwrap();
    let [ours, theirs] = [&written.path, &session.path].map(|path| std::fs::read_to_string(path).unwrap());
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
