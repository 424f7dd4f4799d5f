//! The engine as an embedder uses it.
#![allow(clippy::disallowed_methods, reason = "tests make the worlds they need")]

use std::{fs, sync::Arc};

use checkpoint_core::fold::{Cancel, FoldHost, FoldRequest, RegionEnd, Replacement, ReportLanguage, ReportSource};
use checkpoint_core::{
    Engine, EngineError, LogEvent, Mark, PointKind, RestoreRequest, SaveRequest, Seq, SessionError, SessionKey,
};
use rwd_engine::{Decided, OpenError};

/// Design § 1: under 20 lines, and what the README shows is what runs: the documentation test of the crate runs it.
#[test]
fn the_readme_shows_the_example() {
    let code = include_str!("../../examples/embed.rs");
    let readme = include_str!("../../../../README.md");
    let main = &code[code.find("use std").unwrap()..];
    assert!(readme.contains(main.trim_end()), "README.md does not show examples/embed.rs");
    let body = main.lines().skip_while(|line| !line.starts_with("fn main")).filter(|line| !line.trim().is_empty());
    assert!(body.count() < 20);
}

fn save() -> SaveRequest {
    SaveRequest::of(SessionKey::local(), PointKind::Manual)
}

#[test]
fn two_engines_on_one_directory_see_each_others_points() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, data) = (scratch.path().join("w"), scratch.path().join("data"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "1").unwrap();
    let open = || rwd_engine::open(&root, &data).unwrap().approver(Arc::new(Decided)).build();
    let (one, two) = (open(), open());
    let point = one.save(&save()).unwrap().point.id;
    fs::write(root.join("a"), "2").unwrap();
    two.save(&save()).unwrap();
    two.restore(&RestoreRequest { target: point.to_string(), ..RestoreRequest::default() }).unwrap();
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "1");
    assert_eq!(one.place(), two.place());
}

/// 001-13 across processes: the engines share nothing but the data directory.
#[test]
fn c001_13_two_engines_do_not_fold_one_session_at_once() {
    #[derive(Debug)]
    struct Meanwhile(Option<(Engine, FoldRequest)>);
    impl FoldHost for Meanwhile {
        fn events(&self, _: &SessionKey) -> Result<Vec<LogEvent>, SessionError> {
            let (other, request) = self.0.as_ref().expect("the other one never comes as far as this");
            let refused = other.fold(request, &Self(None), &ReportSource::Given("x")).unwrap_err();
            assert_eq!(refused.code(), "FOLD_IN_PROGRESS");
            Err(SessionError::Unsupported)
        }
        fn put_report(&self, _: &Mark, _: &Replacement) -> Result<Seq, SessionError> {
            Err(SessionError::Unsupported)
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let (root, data) = (scratch.path().join("w"), scratch.path().join("data"));
    fs::create_dir(&root).unwrap();
    let [one, two] = [(); 2].map(|()| rwd_engine::open(&root, &data).unwrap().build());
    let session = SessionKey::parse("dsh:s").unwrap();
    one.mark(&session, 0, None, None).unwrap();
    let (language, cancel) = (ReportLanguage::En, Cancel::default());
    let request = FoldRequest { session, end: RegionEnd::Tail, language, cancel };
    let host = Meanwhile(Some((two, request.clone())));
    let error = one.fold(&request, &host, &ReportSource::Given("x")).unwrap_err();
    assert_eq!(error.code(), "FORK_UNSUPPORTED", "the host was asked");
}

/// Nobody who did not ask for it gets files written: without an approver every restore is refused.
#[test]
fn without_an_approver_nothing_is_restored() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("w");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "1").unwrap();
    let engine = rwd_engine::open(&root, &scratch.path().join("data")).unwrap().build();
    let point = engine.save(&save()).unwrap().point.id;
    fs::write(root.join("a"), "2").unwrap();
    engine.save(&save()).unwrap();
    let request = RestoreRequest { target: point.to_string(), ..RestoreRequest::default() };
    assert!(matches!(engine.restore(&request), Err(EngineError::NotApproved { declined: false, .. })));
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "2");
}

/// Bad input: a clear error, and nothing is made.
#[test]
fn what_may_not_be_a_workspace_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let refused = |root: &std::path::Path| matches!(rwd_engine::open(root, &data), Err(OpenError::Data(_)));
    assert!(refused("/".as_ref()));
    assert!(refused(&scratch.path().join("not-there")));
    fs::write(scratch.path().join("file"), "").unwrap();
    assert!(refused(&scratch.path().join("file")));
    assert!(refused(scratch.path()), "it holds the data directory");
    assert!(!data.exists());
}

#[test]
fn a_root_that_was_moved_is_not_taken_over_silently() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, data) = (scratch.path().join("w"), scratch.path().join("data"));
    fs::create_dir(&root).unwrap();
    rwd_engine::open(&root, &data).unwrap().build().save(&save()).unwrap();
    let there = scratch.path().join("there");
    fs::rename(&root, &there).unwrap();
    let error = rwd_engine::open(&there, &data).unwrap_err();
    assert!(matches!(&error, OpenError::Moved { before, .. } if before.ends_with("w")), "{error}");
}

/// A root that was replaced is one new incarnation, not another one each time it is opened: else the first points made
/// there could never be restored without being adopted.
#[test]
fn a_replaced_root_is_counted_once() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, data) = (scratch.path().join("w"), scratch.path().join("data"));
    let open = || rwd_engine::open(&root, &data).unwrap().build().place().incarnation;
    fs::create_dir(&root).unwrap();
    let first = open();
    fs::remove_dir(&root).unwrap();
    fs::create_dir(scratch.path().join("other")).unwrap();
    fs::create_dir(&root).unwrap();
    assert_eq!([open(), open()], [first + 1, first + 1]);
}

/// The host's view: turns and tools are recorded as such, and what a turn did is taken back with it.
#[test]
fn a_host_plays_a_turn_and_takes_it_back() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, data) = (scratch.path().join("w"), scratch.path().join("data"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "before").unwrap();
    let engine = rwd_engine::open(&root, &data).unwrap().approver(Arc::new(rwd_engine::Decided)).build();
    let host = rwd_engine::Host::new(engine);
    let mut session = host.session(SessionKey::new("h", "s").unwrap());
    let begun = session.begin_turn(1, Some(4)).unwrap().point;
    assert_eq!((begun.kind, begun.position.map(|at| at.seq.0)), (PointKind::TurnStart, Some(4)));
    fs::write(root.join("a"), "half").unwrap();
    let call = rwd_engine::ToolCall { name: "bash", id: Some("c"), ..rwd_engine::ToolCall::default() };
    let first = session.before_tool(&call).unwrap();
    assert_eq!((first.created, first.point.trigger.as_deref()), (true, Some("bash")));
    assert!(!session.before_tool(&call).unwrap().created, "the same call");
    fs::write(root.join("a"), "after").unwrap();
    assert_eq!(session.end_turn(Some(9)).unwrap().point.turn.map(|turn| turn.0), Some(1));
    assert_eq!(session.preview("t1^").unwrap().plan.overwrite.len(), 1);
    session.rewind("t1^").unwrap();
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "before");
    session.undo().unwrap();
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "after");
}
