//! Children of generated logs, at every place where one can be cut (TN14–TN23, 004-30 to 33).

use std::{collections::BTreeMap, fs, path::PathBuf};

use checkpoint_core::{LogEvent, Seq, SessionKey, SessionLog};
use harness_adapter::sessions::dsh::{
    ChildSpec, Cut, DshLogs, encode_segment, project_key,
    strict::{Problem, Severity, Strict},
};
use proptest::{prelude::*, sample::Index};
use testkit::dsh_logs::{Encoding, Header, Layout, Session, events, file, layouts, sessions};

/// Few, since each writes and syncs many files; raise it to look for more.
const CASES: u32 = 12;
const CWD: &str = "/home/user/shop";

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) }
}

/// A home with one log, and all of its bytes to compare with.
struct Scene {
    home: tempfile::TempDir,
    events: Vec<LogEvent>,
    log: PathBuf,
    bytes: Vec<u8>,
}

impl Scene {
    fn new(session: &Session, layout: &Layout, cut: Option<Index>) -> Self {
        let mut events = events(session);
        if let Some(cut) = cut {
            events.truncate(cut.index(events.len() + 1));
        }
        let home = tempfile::tempdir().unwrap();
        let (project, segment) = (project_key(&CWD.into()).unwrap(), encode_segment(&"parent".into()).unwrap());
        let folder = home.path().join("sessions").join(project).join(segment);
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join(match layout.encoding {
            Encoding::Zstd => "session.jsonl.zstd",
            Encoding::Plain => "session.jsonl",
        });
        let head = Header { id: "parent".to_owned(), cwd: CWD.to_owned(), created_at: 7, parent: None };
        let bytes = file(&head, &events, layout);
        fs::write(&log, &bytes).unwrap();
        Self { home, events, log, bytes }
    }

    fn logs(&self) -> DshLogs {
        DshLogs::open(self.home.path())
    }

    /// The ends of turns, and after which events a turn is open.
    fn turns(&self) -> (Vec<u64>, Vec<bool>) {
        let (mut ends, mut open, mut turn) = (Vec::new(), Vec::new(), false);
        for event in &self.events {
            match &*event.kind {
                "turn/start" => turn = true,
                "turn/end" => {
                    turn = false;
                    ends.push(event.seq.0);
                }
                _ => {}
            }
            open.push(turn);
        }
        (ends, open)
    }

    /// Everything below the home.
    fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(at: &std::path::Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    into.insert(path.clone(), Vec::new());
                    walk(&path, into);
                } else {
                    into.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(self.home.path(), &mut all);
        all
    }
}

fn strict(events: &[LogEvent]) -> Vec<Problem> {
    let mut strict = Strict::new();
    for event in events {
        strict.take(event);
    }
    strict.finish()
}

fn texts(events: &[LogEvent]) -> Vec<String> {
    let text = |event: &LogEvent| {
        let LogEvent { seq, time, kind, data, surface, sources, ignorable } = event;
        format!("{seq} {time} {kind} {data} {surface:?} {sources:?} {ignorable}")
    };
    events.iter().map(text).collect()
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("dsh", id).unwrap()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn tn20_children_share_the_prefix_at_every_boundary(session in sessions(), layout in layouts()) {
        let scene = Scene::new(&session, &layout, None);
        let logs = scene.logs();
        for end in scene.turns().0 {
            let id = format!("child-{end}");
            let forked = logs.fork_at("parent", Some(Seq(end)), Some(&id), None).unwrap();
            let length = usize::try_from(end).unwrap() + 1;
            prop_assert_eq!((forked.seed_length, forked.closers), (end + 1, 0));
            let child = logs.events(&id).unwrap();
            prop_assert_eq!(texts(&child[..length]), texts(&scene.events[..length]));
            prop_assert_eq!(child.len(), length + 1);
            prop_assert_eq!((&*child[length].kind, child[length].seq.0), ("session/end-seed", end + 1));
            prop_assert_eq!(strict(&child), []);
            let seen = logs.inspect(&id).unwrap();
            prop_assert!(seen.loadable, "{:?}", seen.problems);
            let head = logs.header(&key(&id)).unwrap();
            prop_assert_eq!((head.parent, head.seed_length), (Some(key("parent")), end + 1));
            let digest = |id: &str| logs.prefix_digest(&key(id), Seq(end)).unwrap();
            prop_assert_eq!(digest(&id), digest("parent"));

            // A child of the child, as far as it goes.
            let id = format!("grandchild-{end}");
            let forked = logs.fork_at(&format!("child-{end}"), None, Some(&id), Some("files were restored")).unwrap();
            prop_assert_eq!(forked.seed_length, end + 2);
            let child = logs.events(&id).unwrap();
            prop_assert_eq!(texts(&child[..length]), texts(&scene.events[..length]));
            prop_assert_eq!(strict(&child), []);
            prop_assert!(logs.inspect(&id).unwrap().loadable);
        }
        prop_assert_eq!(logs.host_list().unwrap(), 1 + 2 * scene.turns().0.len());
        prop_assert_eq!(fs::read(&scene.log).unwrap(), scene.bytes);
    }

    #[test]
    fn a_cut_inside_a_turn_is_refused_or_closed(session in sessions(), layout in layouts(), at in any::<Index>()) {
        let scene = Scene::new(&session, &layout, None);
        let logs = scene.logs();
        let open = scene.turns().1;
        let at = at.index(open.len());
        let (seq, before) = (Seq(at as u64), scene.all());
        let forked = logs.fork_at("parent", Some(seq), Some("plain"), None);
        prop_assert_eq!(forked.is_ok(), !open[at]);
        if let Err(error) = forked {
            prop_assert_eq!(error.code(), "OPEN_TURN");
            prop_assert_eq!(scene.all(), before, "nothing was written");
        }
        let beyond = logs.fork_at("parent", Some(Seq(open.len() as u64)), Some("beyond"), None);
        prop_assert_eq!(beyond.unwrap_err().code(), "INVALID_BOUNDARY");

        let (cut, child) = (Cut::At(seq), Some("closed".to_owned()));
        let spec = ChildSpec { cut, child, close_open_turn: true, notice: Some("back".to_owned()), ..ChildSpec::default() };
        let forked = logs.write_child("parent", &spec).unwrap();
        prop_assert_eq!(forked.closers > 0, open[at]);
        let child = logs.events("closed").unwrap();
        prop_assert_eq!(texts(&child[..=at]), texts(&scene.events[..=at]));
        prop_assert_eq!(strict(&child), []);
        prop_assert!(logs.inspect("closed").unwrap().loadable);
        prop_assert_eq!(fs::read(&scene.log).unwrap(), scene.bytes);
    }

    #[test]
    fn a_log_with_an_open_tail_is_closed_in_a_copy(session in sessions(), layout in layouts(), cut in any::<Index>()) {
        let scene = Scene::new(&session, &layout, Some(cut));
        let logs = scene.logs();
        let copy = scene.home.path().join("copy.jsonl");
        let repaired = logs.repair("parent", &copy).unwrap();
        let open = scene.turns().1.last().copied().unwrap_or(false);
        prop_assert_eq!(repaired.closers > 0, open);
        let read = DshLogs::events_of_file(&copy).unwrap();
        prop_assert_eq!(texts(&read[..scene.events.len()]), texts(&scene.events));
        // The host forgets an interrupted command or compaction when it takes the session up, not when it repairs.
        let left: Vec<_> = strict(&read);
        let known = ["open-command", "open-compaction"];
        prop_assert!(left.iter().all(|it| it.severity == Severity::Open && known.contains(&it.code)), "{:?}", left);
        prop_assert!(DshLogs::inspect_file(&copy).unwrap().loadable);
        prop_assert_eq!(fs::read(&scene.log).unwrap(), scene.bytes);
    }

    #[test]
    fn a_prefix_has_one_digest_however_it_is_stored(session in sessions(), one in layouts(), two in layouts(), at in any::<Index>()) {
        let (one, two) = (Scene::new(&session, &one, None), Scene::new(&session, &two, None));
        let at = Seq(at.index(one.events.len()) as u64);
        let digest = |scene: &Scene| scene.logs().prefix_digest(&key("parent"), at).unwrap();
        prop_assert_eq!(digest(&one), digest(&two));
    }
}
