//! The failure matrix of contract 002-37, row by row, over one conversation of two turns.
//!
//! Two rows have no counterpart: providers are not registered but composed, and a storage domain that is not there is an
//! index that does not open, which is the command line's test.

use checkpoint_core::{
    Decision, DriftPolicy, EngineError, ErrorKind, GuardMode, RelPath, RestorePolicy, RestoreRequest,
};
use testkit::Host;

use crate::fork::{both, key, talked_in};
use crate::world::{World, path};

/// What a row says of the world afterwards.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the contract's table")]
struct Ends {
    /// Code and kind of the error; `None` for success.
    error: Option<(&'static str, ErrorKind)>,
    files: bool,
    config: bool,
    child: bool,
    /// The guard is named, in the answer or the error.
    guard: bool,
}

const NOTHING: Ends = Ends { error: None, files: false, config: false, child: false, guard: false };

fn refused(code: &'static str, kind: ErrorKind) -> Ends {
    Ends { error: Some((code, kind)), ..NOTHING }
}

/// Turn 1 leaves `v1` and configuration `one`, turn 2 `v2` and `two`.
fn world() -> World {
    let world = World::plain();
    world.host.set("one");
    let world = talked_in(world);
    world.host.set("two");
    world.save();
    world
}

fn wanted() -> RestoreRequest {
    RestoreRequest { config: true, ..both("h:s/t2^") }
}

fn with(policy: RestorePolicy) -> RestoreRequest {
    RestoreRequest { policy, ..wanted() }
}

type Arrange = fn(&World) -> RestoreRequest;

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn c002_37_failure_matrix() {
    let rows: Vec<(&str, Arrange, Ends)> = vec![
        ("bad syntax", |_| both("step 0"), refused("bad-target", ErrorKind::Usage)),
        ("unknown", |_| both("ffffffff"), refused("not-found", ErrorKind::NotFound)),
        (
            "ambiguous",
            |world| {
                let other = checkpoint_core::SessionKey::parse("g:s").unwrap();
                world
                    .engine
                    .save(&checkpoint_core::SaveRequest::of(other, checkpoint_core::PointKind::Manual))
                    .unwrap();
                both("t1")
            },
            refused("ambiguous", ErrorKind::NotFound),
        ),
        (
            "unknown path",
            |_| with(RestorePolicy { selection: vec![path("nowhere")], ..RestorePolicy::default() }),
            refused("unknown-path", ErrorKind::NotFound),
        ),
        (
            "impact computation throws",
            |world| {
                // The store is gone: nothing can be compared.
                let git = world.base().join("store/git/objects");
                std::fs::rename(&git, git.with_extension("away")).unwrap();
                wanted()
            },
            refused("io", ErrorKind::Failure),
        ),
        (
            "confirm: no",
            |world| {
                world.approver.says(Decision::Rejected);
                wanted()
            },
            refused("declined", ErrorKind::Confirmation),
        ),
        (
            "confirm: nobody there",
            |world| {
                world.approver.says(Decision::Unavailable);
                wanted()
            },
            refused("confirmation-needed", ErrorKind::Confirmation),
        ),
        (
            "guard fails, require",
            |world| {
                socket(world);
                wanted()
            },
            refused("blocked", ErrorKind::Decision),
        ),
        (
            "guard fails, warn",
            |world| {
                socket(world);
                // What cannot be guarded stays; with a part left out the conversation is forked only when asked for.
                with(RestorePolicy {
                    guard: GuardMode::Warn,
                    drift: DriftPolicy::Overwrite,
                    ..RestorePolicy::default()
                })
            },
            Ends { error: None, files: false, config: true, child: true, guard: true },
        ),
        (
            "no configuration was kept",
            |world| {
                world.host.set("");
                let point =
                    world.engine.save(&checkpoint_core::SaveRequest::of(key(), checkpoint_core::PointKind::Manual));
                RestoreRequest { config: true, ..both(&point.unwrap().point.id.to_string()) }
            },
            refused("not-restorable", ErrorKind::Damaged),
        ),
        (
            "workspace restore throws",
            |world| {
                // One path only: several are written at a time, and which is first is not said.
                let target = world.at("a");
                world.trap.set(2, move || std::fs::write(target, "typed").unwrap());
                wanted()
            },
            Ends { guard: true, ..refused("changed-meanwhile", ErrorKind::Decision) },
        ),
        (
            "config restore throws",
            |world| {
                world.host.fail(true);
                wanted()
            },
            Ends {
                error: Some(("CONFIG_RESTORE_FAILED", ErrorKind::Partial)),
                files: true,
                config: false,
                child: true,
                guard: true,
            },
        ),
        (
            "session replay throws",
            |world| {
                world.sessions.host(Host::Refuses);
                wanted()
            },
            Ends {
                error: Some(("not-forked", ErrorKind::Partial)),
                files: true,
                config: true,
                child: false,
                guard: true,
            },
        ),
        (
            "config and session throw",
            |world| {
                world.host.fail(true);
                world.sessions.host(Host::Refuses);
                wanted()
            },
            Ends {
                error: Some(("not-forked", ErrorKind::Partial)),
                files: true,
                config: false,
                child: false,
                guard: true,
            },
        ),
        ("no boundary", |_| both("h:s/t3"), refused("not-found", ErrorKind::NotFound)),
        ("all ok", |_| wanted(), Ends { error: None, files: true, config: true, child: true, guard: true }),
    ];
    for (stage, arrange, ends) in rows {
        let world = world();
        let source = world.sessions.tail(&key());
        let request = arrange(&world);
        let before = world.scan();
        let ended = world.engine.restore(&request);
        let (error, guard) = match &ended {
            Ok(done) => (None, done.guard),
            Err(error) => (Some((error.code(), error.kind())), error.guard()),
        };
        assert_eq!(error, ends.error, "{stage}: {ended:?}");
        assert_eq!(guard.is_some(), ends.guard, "{stage}: guard");
        if ends.files {
            assert_eq!(world.read("a"), "v1", "{stage}");
        } else if !stage.contains("workspace") {
            assert_eq!(world.scan(), before, "{stage}: files");
        }
        assert_eq!(world.host.get().1 > 0, ends.config, "{stage}: configuration");
        assert_eq!(world.sessions.sessions().len(), if ends.child { 2 } else { 1 }, "{stage}: child");
        assert_eq!(world.sessions.tail(&key()), source, "{stage}: the source is never modified");
    }
}

/// A socket stands where a file must go: nothing can keep what it is.
fn socket(world: &World) {
    world.remove("a");
    drop(std::os::unix::net::UnixListener::bind(world.at("a")).unwrap());
}

/// TJ24, row "workspace restore throws": everything is as it was, but for what somebody else wrote meanwhile.
#[test]
fn tj24_c002_37_a_restore_that_fails_is_put_back_whole() {
    let world = world();
    for name in ["x", "y", "z"] {
        world.write(name, "new");
    }
    let target = world.at("a");
    world.trap.set(2, move || std::fs::write(target, "typed").unwrap());
    let policy = RestorePolicy { drift: DriftPolicy::Overwrite, ..RestorePolicy::default() };
    let Err(EngineError::Changed { path, .. }) = world.engine.restore(&with(policy)) else { panic!("it went through") };
    assert_eq!((RelPath::to_lossy(&path), world.read("a")), ("a".into(), "typed".into()));
    assert_eq!(world.host.get(), ("two".into(), 0));
    assert_eq!(world.sessions.sessions().len(), 1);
}

/// 002-35, 002-39: the configuration goes back only when asked for, undo takes it back, and recovery brings it too.
#[test]
fn c002_39_the_configuration_goes_with_the_files_when_asked() {
    let mut world = world();
    world.engine.restore(&both("h:s/t2^")).unwrap();
    assert_eq!(world.host.get(), ("two".into(), 0), "not asked for");
    world.engine.undo(&crate::world::undo()).unwrap();
    let done = world.engine.restore(&wanted()).unwrap();
    assert_eq!(world.host.get().0, "one");
    assert!(done.notes.iter().any(|note| note.contains("configuration was restored")));
    let undo = checkpoint_core::ReverseRequest { config: true, ..crate::world::undo() };
    world.engine.undo(&undo).unwrap();
    assert_eq!((world.read("a").as_str(), world.host.get().0.as_str()), ("v2", "two"));
    // Nothing that a point keeps is garbage.
    world.engine.gc(false).unwrap();
    // The host dies in the middle; whoever finishes the operation finishes this too.
    world.trap.set(4, || std::panic::resume_unwind(Box::new("killed")));
    let engine = world.engine.clone();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.restore(&wanted()))).is_err());
    world.trap.disarm();
    world.reopen();
    world.engine.recover(checkpoint_core::Recovery::Finish).unwrap();
    assert_eq!((world.read("a").as_str(), world.host.get().0.as_str()), ("v1", "one"));
}
