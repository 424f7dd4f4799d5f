//! 004-01 to 12, each order observed.

use std::sync::{Barrier as Meet, Mutex};

use checkpoint_core::{BoxError, CaptureFailure, fold::Cancel};

use super::*;

/// What happened, in order.
#[derive(Clone, Debug, Default)]
struct Trace(Arc<Mutex<Vec<&'static str>>>);

impl Trace {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }
    fn seen(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Debug)]
struct Store {
    trace: Trace,
    fails: Option<&'static str>,
    cancels: Option<Cancel>,
}

impl FlushListener for Store {
    fn flush(&self, _: &SessionKey) -> Result<(), BoxError> {
        self.trace.note("flush:start");
        if let Some(cancel) = &self.cancels {
            cancel.cancel();
        }
        self.trace.note("flush:end");
        self.fails.map_or(Ok(()), |why| Err(why.into()))
    }
}

fn key() -> SessionKey {
    SessionKey::new("dsh", "s").unwrap()
}

struct Scene {
    trace: Trace,
    barriers: Barriers,
    mounted: Option<Mounted>,
    _subscribed: Subscription,
}

fn scene_with(fails: Option<&'static str>, cancels: Option<Cancel>) -> Scene {
    let (trace, hub) = (Trace::default(), FlushHub::default());
    let subscribed = hub.listen(Arc::new(Store { trace: trace.clone(), fails, cancels }));
    hub.open(&key());
    let (barriers, mounted) = Barriers::mount(Arc::new(hub.clone()));
    Scene { trace, barriers, mounted: Some(mounted), _subscribed: subscribed }
}

fn scene() -> Scene {
    scene_with(None, None)
}

const FLUSHED: [&str; 2] = ["flush:start", "flush:end"];

/// Pulls a whole stream of two parts; gives the parts, or how the first pull failed.
fn stream(scene: &Scene, session: Option<&SessionKey>) -> Result<Vec<u32>, &'static str> {
    let trace = scene.trace.clone();
    let stream = BarrierStream::new(&scene.barriers, session, move || {
        trace.note("adapter");
        [1, 2].into_iter()
    });
    stream.collect::<Result<_, _>>().map_err(|error| error.code())
}

#[test]
fn tn01_the_flush_is_complete_before_the_adapter_is_constructed() {
    let scene = scene();
    let session = key();
    let lazy = BarrierStream::new(&scene.barriers, Some(&session), || [0].into_iter());
    assert_eq!(scene.trace.seen(), [""; 0], "nothing happens before the first pull");
    drop(lazy);
    assert_eq!(stream(&scene, Some(&session)), Ok(vec![1, 2]));
    assert_eq!(scene.trace.seen(), ["flush:start", "flush:end", "adapter"]);
}

#[test]
fn tn02_without_a_session_or_with_one_that_is_not_live_nothing_is_flushed() {
    let scene = scene();
    let other = SessionKey::new("dsh", "other").unwrap();
    for session in [None, Some(&other)] {
        assert_eq!(stream(&scene, session), Ok(vec![1, 2]));
    }
    assert_eq!(scene.trace.seen(), ["adapter", "adapter"]);
}

#[test]
fn tn04_a_failed_flush_leaves_the_adapter_alone() {
    let scene = scene_with(Some("disk full"), None);
    assert_eq!(stream(&scene, Some(&key())), Err("FLUSH_FAILED"));
    assert_eq!(scene.trace.seen(), FLUSHED);
    let mut over = BarrierStream::new(&scene.barriers, Some(&key()), || [0].into_iter());
    assert!(over.next().unwrap().unwrap_err().to_string().contains("disk full"));
    assert!(over.next().is_none(), "and the stream is over");
}

fn call<'a>(session: Option<&'a SessionKey>, cancel: &'a Cancel) -> ToolCall<'a> {
    ToolCall { session, name: "bash", call_id: "c1", turn: None, step: None, nested: false, mutating: true, cancel }
}

fn run(scene: &Scene, call: &ToolCall<'_>, guard: Option<&PointGuard<'_>>) -> ToolResult {
    scene.barriers.run_tool(call, guard, || {
        scene.trace.note("body");
        ToolResult::text("done")
    })
}

#[test]
fn tn05_the_flush_is_complete_before_the_body() {
    let scene = scene();
    assert_eq!(run(&scene, &call(Some(&key()), &Cancel::default()), None), ToolResult::text("done"));
    assert_eq!(scene.trace.seen(), ["flush:start", "flush:end", "body"]);
}

#[test]
fn tn07_a_failed_flush_is_the_answer_and_the_body_does_not_run() {
    let scene = scene_with(Some("disk full"), None);
    let answer = run(&scene, &call(Some(&key()), &Cancel::default()), None);
    assert!(answer.is_error && answer.content.len() == 1 && answer.content[0].contains("disk full"), "{answer:?}");
    assert_eq!(scene.trace.seen(), FLUSHED);
}

#[test]
fn tn08_nested_calls_and_calls_without_an_agent_pass() {
    let scene = scene_with(Some("disk full"), None);
    let (session, cancel) = (key(), Cancel::default());
    let nested = ToolCall { nested: true, ..call(Some(&session), &cancel) };
    for passing in [nested, call(None, &cancel)] {
        let points = Points { trace: scene.trace.clone(), fails: true };
        let guard = PointGuard { points: &points, on_failure: CaptureFailure::Block };
        assert_eq!(run(&scene, &passing, Some(&guard)), ToolResult::text("done"));
    }
    assert_eq!(scene.trace.seen(), ["body", "body"]);
}

#[test]
fn c004_07_a_call_that_is_cancelled_during_the_flush_does_not_run() {
    let cancel = Cancel::default();
    let scene = scene_with(None, Some(cancel.clone()));
    let answer = run(&scene, &call(Some(&key()), &cancel), None);
    assert!(answer.is_error && answer.content.len() == 1);
    let info = answer.error.unwrap();
    assert_eq!((info.name.as_str(), info.code.as_str()), ("AbortError", "ABORTED_BEFORE_DISPATCH"));
    assert_eq!(scene.trace.seen(), FLUSHED);
}

#[test]
fn tn10_barriers_that_were_taken_away_let_later_calls_pass() {
    let mut scene = scene_with(Some("disk full"), None);
    drop(scene.mounted.take());
    assert_eq!(stream(&scene, Some(&key())), Ok(vec![1, 2]));
    assert_eq!(run(&scene, &call(Some(&key()), &Cancel::default()), None), ToolResult::text("done"));
    assert_eq!(scene.barriers.enforce(&Barrier::PreStep { session: &key() }).unwrap(), Passage::NotNeeded);
    assert_eq!(scene.trace.seen(), ["adapter", "body"]);
}

#[test]
fn c004_08_09_a_step_does_not_begin_after_a_failed_flush_and_the_end_of_a_turn_only_reports() {
    let scene = scene_with(Some("disk full"), None);
    let error = scene.barriers.enforce(&Barrier::PreStep { session: &key() }).unwrap_err();
    assert_eq!(error.code(), "FLUSH_FAILED");
    let end = scene.barriers.enforce(&Barrier::TurnEnd { session: &key() }).unwrap();
    assert!(matches!(end, Passage::FailedAtEnd(error) if error.to_string().contains("disk full")));
    let scene = self::scene();
    for barrier in [Barrier::PreStep { session: &key() }, Barrier::TurnEnd { session: &key() }] {
        assert_eq!(scene.barriers.enforce(&barrier).unwrap(), Passage::Flushed { any: true });
    }
}

/// Two listeners that can only finish together, and of which the later one fails first.
#[derive(Debug)]
struct Together {
    meet: Arc<Meet>,
    trace: Trace,
    name: &'static str,
}

impl FlushListener for Together {
    fn flush(&self, _: &SessionKey) -> Result<(), BoxError> {
        self.meet.wait();
        self.trace.note(self.name);
        if self.name == "panics" {
            std::panic::resume_unwind(Box::new("gone"));
        }
        Err(self.name.into())
    }
}

#[test]
fn c004_10_all_listeners_are_started_and_waited_for_and_the_first_failure_is_thrown() {
    let (hub, trace, meet) = (FlushHub::default(), Trace::default(), Arc::new(Meet::new(3)));
    hub.open(&key());
    assert!(!hub.flush(&key()).unwrap(), "nobody took part");
    let listen = |name| hub.listen(Arc::new(Together { meet: Arc::clone(&meet), trace: trace.clone(), name }));
    let subscribed = ["first", "second", "panics"].map(listen);
    // Each waits for the others: were they not all started, this would never end.
    let error = hub.flush(&key()).unwrap_err();
    assert!(error.to_string().ends_with("first"), "{error}");
    let mut seen = trace.seen();
    seen.sort_unstable();
    assert_eq!(seen, ["first", "panics", "second"]);
    drop(subscribed);
    assert!(!hub.flush(&key()).unwrap(), "listeners go with their subscription");
    hub.close(&key());
    assert_eq!(hub.flush(&key()).unwrap_err().code(), "SESSION_NOT_LIVE");
    assert_eq!(hub.flush(&SessionKey::local()).unwrap_err().code(), "SESSION_NOT_LIVE");
}

/// Waits in its first flush until it is let go, and counts.
#[derive(Debug)]
struct Slow {
    begun: Arc<Meet>,
    go: Arc<Meet>,
    count: Mutex<u32>,
}

impl FlushListener for Slow {
    fn flush(&self, _: &SessionKey) -> Result<(), BoxError> {
        let nth = {
            let mut count = self.count.lock().unwrap();
            *count += 1;
            *count
        };
        if nth == 1 {
            self.begun.wait();
            self.go.wait();
        }
        Err(format!("flush {nth}").into())
    }
}

#[test]
fn c004_10_calls_during_a_flush_share_the_next_one() {
    let (hub, begun, go) = (FlushHub::default(), Arc::new(Meet::new(2)), Arc::new(Meet::new(2)));
    let slow = Arc::new(Slow { begun: Arc::clone(&begun), go: Arc::clone(&go), count: Mutex::default() });
    let _subscribed = hub.listen(Arc::clone(&slow) as Arc<dyn FlushListener>);
    hub.open(&key());
    let flush = || hub.flush(&key()).unwrap_err().to_string();
    let errors: Vec<String> = std::thread::scope(|scope| {
        let first = scope.spawn(flush);
        begun.wait();
        let later = [(); 3].map(|()| scope.spawn(flush));
        while hub.waiting(&key()) < 3 {
            std::thread::yield_now();
        }
        go.wait();
        std::iter::once(first).chain(later).map(|thread| thread.join().unwrap()).collect()
    });
    assert!(errors[0].ends_with("flush 1"));
    // None of the later ones is told of the flush that began before it.
    assert!(errors[1..].iter().all(|error| error.ends_with("flush 2")), "{errors:?}");
    assert_eq!(*slow.count.lock().unwrap(), 2);
}

#[derive(Debug)]
struct Points {
    trace: Trace,
    fails: bool,
}

impl PointBarrier for Points {
    fn capture(&self, _: &ToolCall<'_>) -> Result<(), BoxError> {
        self.trace.note("point");
        if self.fails { Err("no space".into()) } else { Ok(()) }
    }
}

/// K-46: the point is there before the body, after what the log must show.
#[test]
fn k46_the_point_is_durable_before_a_mutating_body() {
    let scene = scene();
    let points = Points { trace: scene.trace.clone(), fails: false };
    let guard = PointGuard { points: &points, on_failure: CaptureFailure::Block };
    let (session, cancel) = (key(), Cancel::default());
    run(&scene, &call(Some(&session), &cancel), Some(&guard));
    assert_eq!(scene.trace.seen(), ["flush:start", "flush:end", "point", "body"]);
    let reads = ToolCall { mutating: false, ..call(Some(&session), &cancel) };
    run(&scene, &reads, Some(&guard));
    assert_eq!(scene.trace.seen()[4..], ["flush:start", "flush:end", "body"]);
}

#[test]
fn a_point_that_cannot_be_made_blocks_the_body_only_where_that_is_wanted() {
    for (on_failure, runs) in [(CaptureFailure::Allow, true), (CaptureFailure::Block, false)] {
        let scene = scene();
        let points = Points { trace: scene.trace.clone(), fails: true };
        let answer =
            run(&scene, &call(Some(&key()), &Cancel::default()), Some(&PointGuard { points: &points, on_failure }));
        assert_eq!(scene.trace.seen().contains(&"body"), runs);
        assert_eq!(answer.is_error, !runs);
        assert!(runs || answer.content[0].contains("no space"));
    }
    assert_eq!(CaptureFailure::default(), CaptureFailure::Allow);
}

/// What panics in the flush, and when nobody holds it any more.
#[derive(Debug)]
struct Panics {
    in_flush: bool,
    subscribed: Mutex<Option<Subscription>>,
}

impl FlushListener for Panics {
    fn flush(&self, _: &SessionKey) -> Result<(), BoxError> {
        if self.in_flush {
            std::panic::resume_unwind(Box::new("the listener is gone"));
        }
        drop(self.subscribed.lock().unwrap().take());
        Ok(())
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if !self.in_flush {
            std::panic::resume_unwind(Box::new("the listener goes"));
        }
    }
}

#[test]
fn c004_10_a_listener_that_panics_fails_the_flush_and_traps_nobody() {
    for in_flush in [true, false] {
        let hub = FlushHub::default();
        hub.open(&key());
        let listener = Arc::new(Panics { in_flush, subscribed: Mutex::default() });
        let subscribed = hub.listen(Arc::clone(&listener) as Arc<dyn FlushListener>);
        *listener.subscribed.lock().unwrap() = Some(subscribed);
        // The hub's copies are the last ones.
        let kept = in_flush.then(|| Arc::clone(&listener));
        drop(listener);
        let flush = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hub.flush(&key())));
        match (in_flush, flush()) {
            (true, Ok(outcome)) => assert_eq!(outcome.unwrap_err().code(), "FLUSH_FAILED"),
            (false, Err(_)) => {}
            (_, other) => panic!("{other:?}"),
        }
        drop(kept.and_then(|listener| listener.subscribed.lock().unwrap().take()));
        assert!(!flush().unwrap().unwrap(), "nobody is left, and nobody waits for the flush before");
    }
}
