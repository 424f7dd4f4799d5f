//! Marks and folds (contract 001) through the engine, over real indexes.

use std::sync::{Arc, Mutex};

use checkpoint_core::fold::{
    Cancel, Completion, FoldHost, FoldOutcome, FoldRequest, Message, RegionEnd, Replacement, ReportConfig,
    ReportLanguage, ReportRequest, ReportSource, Summariser, SummariserError, Surface, log_length,
};
use checkpoint_core::{
    DropWhich, EngineError, IndexOp, LogEvent, Mark, Seq, SessionError, SessionKey, SurfaceOp, Turn,
};
use harness_adapter::sessions::dsh::{ChildFolds, ChildSpec, Cut, DshLogs};
use serde_json::json;

use crate::world::{Kind, World};

fn key() -> SessionKey {
    SessionKey::parse("h:s").unwrap()
}

/// A host with one session, whose log can be made to fail.
#[derive(Debug, Default)]
struct Host {
    log: Mutex<Vec<LogEvent>>,
    refuses: Mutex<bool>,
}

impl Host {
    fn push(&self, kind: &str, data: &serde_json::Value, surface: Option<SurfaceOp>) -> Seq {
        let mut log = self.log.lock().unwrap();
        let seq = Seq(log.len() as u64);
        let data = LogEvent::payload(data).unwrap();
        log.push(LogEvent { seq, time: 0, kind: kind.into(), data, surface, sources: None, ignorable: false });
        seq
    }
    fn user(&self, text: &str) -> Seq {
        let data = json!({"content": [{"type": "text", "text": text}], "source": {"kind": "user"}});
        self.push("user/message", &data, Some(SurfaceOp::Append))
    }
    fn assistant(&self, text: &str, call: &str) -> Seq {
        let content =
            json!([{"type": "text", "text": text}, {"type": "tool-call", "id": call, "name": "t", "arguments": "{}"}]);
        self.push("assistant/message", &json!({"message": {"content": content}}), Some(SurfaceOp::Append))
    }
    fn result(&self, call: &str, text: &str) -> Seq {
        let block = json!({"type": "tool-result", "toolCallId": call, "content": [{"type": "text", "text": text}]});
        self.push("tool/result", &json!({"message": {"content": [block]}}), Some(SurfaceOp::Append))
    }
    fn events(&self) -> Vec<LogEvent> {
        self.log.lock().unwrap().clone()
    }
    fn length(&self) -> u64 {
        log_length(&self.events())
    }
}

impl FoldHost for Host {
    fn events(&self, _: &SessionKey) -> Result<Vec<LogEvent>, SessionError> {
        Ok(self.events())
    }
    fn put_report(&self, _: &Mark, replacement: &Replacement) -> Result<Seq, SessionError> {
        if *self.refuses.lock().unwrap() {
            return Err(SessionError::Harness { source: "the log is full".into() });
        }
        let mut log = self.log.lock().unwrap();
        let seq = Seq(log.len() as u64);
        log.push(replacement.event(seq).unwrap());
        Ok(seq)
    }
}

/// A session in which the model marked at event 2 and then explored: nodes 4 and 5 hold 25 characters.
fn explored(world: &World) -> (Host, Mark) {
    let host = Host::default();
    host.push("turn/start", &json!({"turn": 1}), None);
    host.user("find out");
    host.assistant("I mark", "mark");
    let mark = world.engine.mark(&key(), host.length(), Some(Turn(1)), Some(" learn ".into())).unwrap();
    host.result("mark", "marked");
    host.assistant("look around", "a");
    host.result("a", "seen it all!");
    host.assistant("I fold", "fold");
    (host, mark)
}

fn request() -> FoldRequest {
    FoldRequest { session: key(), end: RegionEnd::default(), language: ReportLanguage::En, cancel: Cancel::default() }
}

fn fold(world: &World, host: &Host, report: &str) -> Result<FoldOutcome, &'static str> {
    world.engine.fold(&request(), host, &ReportSource::Given(report)).map_err(|error| error.code())
}

fn each(test: impl Fn(&World)) {
    for kind in [Kind::Memory, Kind::Json, Kind::Sqlite] {
        test(&World::new(kind, false, checkpoint_core::CapturePolicy::default()));
    }
}

#[test]
fn c001_01_to_05_a_mark_is_durable_numbered_from_one_and_no_event() {
    each(|world| {
        let (host, mark) = explored(world);
        assert_eq!((mark.id, mark.log_length, mark.turn), (1, 3, Some(Turn(1))));
        assert_eq!((mark.objective.as_deref(), mark.folded), (Some("learn"), None));
        assert_eq!(world.engine.index().marks(&key()).unwrap(), [mark]);
        assert!(host.events().iter().all(|event| !event.kind.contains("mark")));
        // Over all sessions of the workspace.
        let other = SessionKey::parse("h:other").unwrap();
        assert_eq!(world.engine.mark(&other, 0, None, Some("  ".into())).unwrap().id, 2);
        let third = world.engine.mark(&key(), 9, None, None).unwrap();
        assert_eq!((third.id, third.turn, third.objective), (3, None, None));
        assert_eq!(world.engine.latest_mark(&key()).unwrap().unwrap().id, 3);
    });
}

#[test]
fn c001_02_numbers_never_repeat_among_many_at_once() {
    each(|world| {
        let ids: Vec<u64> = std::thread::scope(|scope| {
            let mark = |n: usize| {
                let session = SessionKey::new("h", &format!("s{n}")).unwrap();
                (0..4).map(|_| world.engine.mark(&session, 0, None, None).unwrap().id).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || mark(n % 2))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=16).collect::<Vec<u64>>());
    });
}

#[test]
fn c001_06_completing_an_older_mark_leaves_the_session_active() {
    each(|world| {
        assert!(!world.engine.has_active(&key()).unwrap());
        let [a, b] = [0, 1].map(|n| world.engine.mark(&key(), n, None, None).unwrap());
        world.engine.complete_fold(&key(), a.id).unwrap();
        assert!(world.engine.has_active(&key()).unwrap());
        let stamped = world.engine.complete_fold(&key(), b.id).unwrap();
        assert!(stamped.folded.is_some() && !world.engine.has_active(&key()).unwrap());
        assert_eq!(world.engine.complete_fold(&key(), b.id).unwrap(), stamped, "again changes nothing");
        let missing = world.engine.complete_fold(&key(), 9).unwrap_err();
        assert!(matches!(missing, EngineError::NotFound { choices, .. } if choices == ["2", "1"]));
    });
}

#[test]
fn tm12_tm13_a_fold_counts_appends_one_message_and_stamps_the_mark() {
    each(|world| {
        let (host, mark) = explored(world);
        let before = host.events();
        assert!(world.engine.has_active(&key()).unwrap());
        let done = fold(world, &host, "a short report.").unwrap();
        let folded = &done.folded;
        assert_eq!((folded.mark_id, folded.folded_nodes, folded.start, folded.end), (mark.id, 2, Seq(4), Seq(5)));
        assert_eq!((folded.folded_chars, folded.report_chars, done.recovered), (25, 15, false));
        let after = host.events();
        assert_eq!(after.len(), before.len() + 1);
        let report = after.last().unwrap();
        assert_eq!((done.report, &*report.kind), (report.seq, "user/message"));
        assert_eq!(report.surface, Some(SurfaceOp::Replace { start: Seq(4), end: Seq(5) }));
        assert_eq!(report.sources, Some(vec![Seq(4), Seq(5)]));
        assert!(!world.engine.has_active(&key()).unwrap());
        assert!(world.engine.latest_mark(&key()).unwrap().unwrap().folded.is_some());
    });
}

/// Upstream refused the second fold only in the same step: one step later it folded the report and the first call.
#[test]
fn c001_19_a_folded_mark_is_refused_ever_after() {
    let world = World::plain();
    let (host, _) = explored(&world);
    fold(&world, &host, "short").unwrap();
    let length = host.length();
    assert_eq!(fold(&world, &host, "short"), Err("EMPTY_REGION"));
    host.result("fold", "folded");
    host.assistant("one step later I fold again", "fold2");
    assert_eq!(fold(&world, &host, "short"), Err("EMPTY_REGION"));
    assert_eq!(host.length(), length + 2, "nothing was written");
    // A new mark opens a new region.
    host.result("fold2", "refused");
    host.assistant("I mark", "mark2");
    world.engine.mark(&key(), host.length(), None, None).unwrap();
    host.result("mark2", "marked");
    let first = host.assistant("look around again", "b");
    host.result("b", "seen");
    host.assistant("I fold", "fold3");
    assert_eq!(fold(&world, &host, "short").unwrap().folded.start, first);
}

#[test]
fn tm16_without_a_mark_there_is_no_checkpoint() {
    let world = World::plain();
    assert_eq!(fold(&world, &Host::default(), "x"), Err("NO_CHECKPOINT"));
    // Marks of another session do not count.
    world.engine.mark(&SessionKey::parse("h:other").unwrap(), 0, None, None).unwrap();
    assert_eq!(fold(&world, &Host::default(), "x"), Err("NO_CHECKPOINT"));
}

#[test]
fn tm18_a_report_that_is_not_shorter_is_refused() {
    let world = World::plain();
    let (host, _) = explored(&world);
    let length = host.length();
    assert_eq!(fold(&world, &host, &"x".repeat(25)), Err("SHRINK"));
    assert_eq!(fold(&world, &host, " \n"), Err("NO_REPORT"));
    assert_eq!(host.length(), length);
    assert!(world.engine.has_active(&key()).unwrap());
    assert_eq!(fold(&world, &host, &"x".repeat(24)).unwrap().folded.report_chars, 24);
}

#[test]
fn c001_14_a_region_without_text_skips_the_check() {
    let world = World::plain();
    let host = Host::default();
    world.engine.mark(&key(), 0, None, None).unwrap();
    host.push("user/message", &json!({"content": [{"type": "image", "data": "AAAA"}]}), Some(SurfaceOp::Append));
    let done = fold(&world, &host, "a picture of a cat").unwrap();
    assert_eq!((done.folded.folded_chars, done.folded.report_chars), (0, 18));
}

#[test]
fn tm21_a_failure_writes_nothing_and_the_mark_stays_active() {
    let world = World::plain();
    let (host, _) = explored(&world);
    let length = host.length();
    *host.refuses.lock().unwrap() = true;
    assert_eq!(fold(&world, &host, "short"), Err("FORK_FAILED"));
    let stopped = FoldRequest { cancel: Cancel::default(), ..request() };
    stopped.cancel.cancel();
    let error = world.engine.fold(&stopped, &host, &ReportSource::Given("short")).unwrap_err();
    assert_eq!(error.code(), "ABORTED");
    assert_eq!(host.length(), length);
    assert!(world.engine.has_active(&key()).unwrap());
    *host.refuses.lock().unwrap() = false;
    fold(&world, &host, "short").unwrap();
}

/// K-15: a crash between the report and the stamp left an active mark whose region was folded.
#[test]
fn k15_a_report_that_is_in_the_log_is_only_stamped() {
    each(|world| {
        let (host, mark) = explored(world);
        let done = fold(world, &host, "a short report.").unwrap();
        // As after the crash: the same log, the mark not stamped.
        let again = World::new(Kind::Memory, false, checkpoint_core::CapturePolicy::default());
        again.engine.mark(&key(), mark.log_length, mark.turn, None).unwrap();
        let length = host.length();
        let settled = fold(&again, &host, "another report").unwrap();
        assert_eq!((settled.folded, settled.recovered, settled.report), (done.folded, true, done.report));
        assert_eq!(host.length(), length);
        assert!(!again.engine.has_active(&key()).unwrap());
        // Also when the conversation went on since.
        let later = World::plain();
        later.engine.mark(&key(), mark.log_length, mark.turn, None).unwrap();
        host.result("fold", "lost");
        host.assistant("look again, at length", "z");
        host.result("z", "nothing new");
        host.assistant("I fold", "fold2");
        assert!(fold(&later, &host, "short").unwrap().recovered);
        assert_eq!(fold(&later, &host, "short"), Err("EMPTY_REGION"));
    });
}

/// Writes what it is told while the fold waits for it.
struct Meanwhile<'a>(Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>);

impl std::fmt::Debug for Meanwhile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Summariser for Meanwhile<'_> {
    fn summarise(&self, _: &ReportRequest, _: &Cancel) -> Result<Completion, SummariserError> {
        if let Some(action) = self.0.lock().unwrap().take() {
            action();
        }
        Ok(Completion { text: "short".into(), ..Completion::default() })
    }
}

fn fold_while<'a>(world: &World, host: &Host, action: impl FnOnce() + Send + 'a) -> Result<FoldOutcome, &'static str> {
    let model = Meanwhile(Mutex::new(Some(Box::new(action))));
    let config = ReportConfig { provider: Some("p".into()), model: Some("m".into()), ..ReportConfig::default() };
    let source = ReportSource::Model { summariser: &model, config: &config, agent: None };
    world.engine.fold(&request(), host, &source).map_err(|error| error.code())
}

#[test]
fn c001_13_what_happens_while_the_report_is_written() {
    let world = World::plain();
    let (host, _) = explored(&world);
    // The region is compacted.
    let compact = || {
        host.push(
            "user/message",
            &json!({"content": [{"type": "text", "text": "summary"}], "source": {"kind": "plugin", "plugin": "c"}}),
            Some(SurfaceOp::Replace { start: Seq(4), end: Seq(5) }),
        );
    };
    assert_eq!(fold_while(&world, &host, compact), Err("CHANGED"));
    assert!(world.engine.has_active(&key()).unwrap());
    // A second fold of the session.
    let second = || assert_eq!(fold(&world, &host, "x"), Err("FOLD_IN_PROGRESS"));
    let folded = fold_while(&world, &host, second).unwrap().folded;
    assert_eq!((folded.folded_nodes, folded.folded_chars), (1, 7), "001-20: what remains on the surface");

    // Another mark.
    let world = World::plain();
    let (host, _) = explored(&world);
    let length = host.length();
    let mark = || drop(world.engine.mark(&key(), length, None, None).unwrap());
    assert_eq!(fold_while(&world, &host, mark), Err("CHANGED"));
    // Somebody stamps it.
    let world = World::plain();
    let (host, mark) = explored(&world);
    let stamp = || drop(world.engine.complete_fold(&key(), mark.id).unwrap());
    assert_eq!(fold_while(&world, &host, stamp), Err("EMPTY_REGION"));
    assert_eq!(host.length(), length, "and no report was written");
}

#[test]
fn tm27_tm28_a_model_that_fails_or_is_stopped_leaves_mark_and_log() {
    #[derive(Debug)]
    struct Broken(Arc<Cancel>);
    impl Summariser for Broken {
        fn summarise(&self, _: &ReportRequest, cancel: &Cancel) -> Result<Completion, SummariserError> {
            if Arc::strong_count(&self.0) > 1 {
                cancel.cancel();
                return Ok(Completion { text: "too late".into(), ..Completion::default() });
            }
            Err(SummariserError::Failed { source: "stream broke".into() })
        }
    }
    let world = World::plain();
    let (host, _) = explored(&world);
    let length = host.length();
    let config = ReportConfig { provider: Some("p".into()), model: Some("m".into()), ..ReportConfig::default() };
    let stops = Arc::new(Cancel::default());
    for (model, code) in [(Broken(Arc::clone(&stops)), "ABORTED"), (Broken(Arc::default()), "REPORT_FAILED")] {
        let source = ReportSource::Model { summariser: &model, config: &config, agent: None };
        assert_eq!(world.engine.fold(&request(), &host, &source).unwrap_err().code(), code);
        assert!(world.engine.has_active(&key()).unwrap());
        assert_eq!(host.length(), length);
    }
}

#[test]
fn marks_that_owe_a_fold_outlive_every_removal_of_points() {
    each(|world| {
        let (host, mark) = explored(world);
        world.write("a", "1");
        world.engine.save(&checkpoint_core::SaveRequest::of(key(), checkpoint_core::PointKind::Manual)).unwrap();
        world.engine.drop_points(&DropWhich::All).unwrap();
        assert_eq!(world.engine.latest_mark(&key()).unwrap(), Some(mark.clone()));
        assert_eq!(fold(world, &host, "short").unwrap().folded.mark_id, mark.id);
        // 001-19 holds in the index itself.
        let op = IndexOp::PutMark { mark };
        world.engine.index().apply(&checkpoint_core::Batch { follows: None, ops: vec![op] }).unwrap_err();
    });
}

/// A log of the real host, the files of which must not change.
struct Recorded {
    home: tempfile::TempDir,
    before: Vec<u8>,
}

const RECORDED: &str = "sessions/--home-user-shop--/edits3/session.jsonl.zstd";

impl Recorded {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../harness-adapter/tests/fixtures/dsh/cases/02-edits-3turn")
            .join(RECORDED);
        let before = std::fs::read(fixture).unwrap();
        std::fs::create_dir_all(home.path().join(RECORDED).parent().unwrap()).unwrap();
        std::fs::write(home.path().join(RECORDED), &before).unwrap();
        Self { home, before }
    }
    fn logs(&self) -> DshLogs {
        DshLogs::open(self.home.path())
    }
    fn session() -> SessionKey {
        SessionKey::new("dsh", "edits3").unwrap()
    }
    fn unchanged(&self) -> bool {
        std::fs::read(self.home.path().join(RECORDED)).unwrap() == self.before
    }
}

/// Turns 2 and 3 become a report in a child that the host would load; the log itself stays as it is.
#[test]
fn c001_15_a_real_log_is_folded_into_a_child() {
    each(|world| {
        let recorded = Recorded::new();
        let mark = world.engine.mark(&Recorded::session(), 61, None, Some("change the files".into())).unwrap();
        let host = ChildFolds::new(recorded.logs());
        let request = FoldRequest { session: Recorded::session(), end: RegionEnd::Tail, ..request() };
        let done = world.engine.fold(&request, &host, &ReportSource::Extract).unwrap();
        assert_eq!((done.folded.start, done.folded.end, done.recovered), (Seq(65), Seq(145), false));
        assert!(done.folded.report_chars < done.folded.folded_chars);
        let child = ChildFolds::child_of(&mark);
        let loaded = recorded.logs().load(&child).unwrap();
        assert_eq!(loaded.events, done.report.0 + 1);
        let events = recorded.logs().events(&child).unwrap();
        let surface = Surface::fold(&events).unwrap();
        let report = surface.nodes.last().unwrap();
        assert_eq!(report.seq, done.report);
        let text = Message::of(&events[report.index]).unwrap().text();
        for said in ["src/app.txt", "rm notes.md", "missing.txt", "Turn three done.", "change the files"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(recorded.unchanged());
        let again = world.engine.fold(&request, &host, &ReportSource::Extract).unwrap_err();
        assert_eq!(again.code(), "EMPTY_REGION");
        assert_eq!(recorded.logs().list().unwrap().len(), 2);
    });
}

/// K-15 offline: the child is there, the stamp is not.
#[test]
fn k15_a_child_that_a_crash_left_is_found_again() {
    let world = World::plain();
    let recorded = Recorded::new();
    let mark = world.engine.mark(&Recorded::session(), 61, None, None).unwrap();
    let host = ChildFolds::new(recorded.logs());
    let request = FoldRequest { session: Recorded::session(), end: RegionEnd::Tail, ..request() };
    let dying = Dying(ChildFolds::new(recorded.logs()));
    let error = world.engine.fold(&request, &dying, &ReportSource::Given("a short report")).unwrap_err();
    assert_eq!(error.code(), "FORK_FAILED");
    assert!(world.engine.has_active(&Recorded::session()).unwrap());
    let done = world.engine.fold(&request, &host, &ReportSource::Given("another report")).unwrap();
    assert!(done.recovered && !world.engine.has_active(&Recorded::session()).unwrap());
    assert_eq!((done.folded.mark_id, done.folded.start, done.folded.end), (mark.id, Seq(65), Seq(145)));
    assert_eq!(done.folded.report_chars, "a short report".len() as u64);
    assert_eq!(recorded.logs().list().unwrap().len(), 2, "one child");
    assert!(recorded.unchanged());
}

/// Makes the child and then fails, as a process that dies right after.
#[derive(Debug)]
struct Dying(ChildFolds);

impl FoldHost for Dying {
    fn events(&self, session: &SessionKey) -> Result<Vec<LogEvent>, SessionError> {
        self.0.events(session)
    }
    fn put_report(&self, mark: &Mark, replacement: &Replacement) -> Result<Seq, SessionError> {
        self.0.put_report(mark, replacement)?;
        Err(SessionError::Harness { source: "the process is gone".into() })
    }
}

/// A log with an open turn is not folded from outside: its agent may be at work.
#[test]
fn an_open_turn_is_not_folded_offline() {
    let world = World::plain();
    let recorded = Recorded::new();
    let logs = recorded.logs();
    let spec = ChildSpec { cut: Cut::At(Seq(101)), child: Some("open".into()), ..ChildSpec::default() };
    logs.write_child("edits3", &ChildSpec { events: vec![turn_start()], ..spec }).unwrap();
    let session = SessionKey::new("dsh", "open").unwrap();
    world.engine.mark(&session, 61, None, None).unwrap();
    let request = FoldRequest { session: session.clone(), end: RegionEnd::Tail, ..request() };
    let error = world.engine.fold(&request, &ChildFolds::new(logs), &ReportSource::Extract).unwrap_err();
    assert_eq!(error.code(), "OPEN_TURN");
    assert!(world.engine.has_active(&session).unwrap());
}

fn turn_start() -> LogEvent {
    let data = LogEvent::payload(&json!({"turn": 3})).unwrap();
    LogEvent { seq: Seq(0), time: 0, kind: "turn/start".into(), data, surface: None, sources: None, ignorable: false }
}
