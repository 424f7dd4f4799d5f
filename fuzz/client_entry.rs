//! What must hold for any bytes from agents, their clients and hosts, one function for each target. The fuzz targets call
//! them with what libfuzzer makes up, a test of `harness-adapter` with every file of the corpora and small changes of each.

use std::{
    fs,
    io::{self, Cursor, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use checkpoint_core::{
    Clock, ErrorKind, ForkRequest, NoSessions, Seq, SessionError, SessionKey, SessionLog, Timestamp, boundary_at,
};
use harness_adapter::{
    hooks,
    install::{self, Agent},
    older,
    sessions::{claude, codex, gemini, turn_keys},
    sidecar::{Failure, Sidecar, Workspace, Workspaces},
};
use serde_json::Value;

/// What a host writes into the sidecar: every line that comes back is one JSON value, and none tells of a fault of ours.
pub(crate) fn rpc(data: &[u8]) {
    let out = Kept::default();
    let sidecar = Sidecar {
        workspaces: Arc::new(Nowhere),
        logs: Arc::new(NoSessions),
        clock: Arc::new(Stopped),
        version: "0",
        parent: None,
    };
    sidecar.serve(Box::new(Cursor::new(data.to_vec())), Box::new(out.clone()));
    let bytes = out.0.lock().expect("nobody panicked").clone();
    let text = String::from_utf8(bytes).expect("answers are text");
    for line in text.lines() {
        let answer: Value = serde_json::from_str(line).expect("an answer is a line of JSON");
        let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
        for answer in answers {
            assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
            assert_ne!(answer["error"]["code"], -32603, "a fault of ours: {answer}");
        }
    }
}

/// What an agent hands to a hook.
pub(crate) fn hook(data: &[u8]) {
    for agent in Agent::ALL {
        let event = hooks::parse(Some(agent), &|_| None, data);
        assert_eq!(event, hooks::parse(Some(agent), &|_| None, data), "a payload always says the same");
        let key = event.session_key();
        assert_eq!(SessionKey::parse(&key.to_string()).as_ref(), Ok(&key), "every session has a key");
        let answer = hooks::answer::render(&event, &hooks::answer::Answer::default());
        assert!(answer.is_empty() || serde_json::from_str::<Value>(&answer).is_ok(), "{answer}");
        drop(event.clone().of_subagent("parent").session_key());
        let _ = event.is_idle();
    }
    let text = String::from_utf8_lossy(data);
    let mended = hooks::mend(&text);
    assert_eq!(hooks::mend(&mended), mended, "what is mended stays");
    if let Some(state) = hooks::state::SessionState::read(data) {
        assert_eq!(hooks::state::SessionState::read(&state.write()), Some(state), "a state is read as it was written");
    }
}

/// An agent's settings: hooks go in once, and come out without anything else going.
pub(crate) fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for agent in Agent::ALL {
        let command = install::hook_command("/usr/bin/rwd", agent).expect("a plain path");
        let usable: install::Usable<'_> = &|program| program == "/usr/bin/rwd";
        let Ok(before) = install::inspect(agent, text, "/hooks.json") else {
            assert!(install::install(agent, text, &command, usable).is_err(), "what cannot be read is not changed");
            continue;
        };
        let Ok(with) = install::install(agent, text, &command, usable) else { continue };
        let after = install::inspect(agent, &with, "/hooks.json").expect("what we write can be read");
        assert!(after.missing.is_empty(), "{agent:?}: {:?}", after.missing);
        assert_eq!(install::install(agent, &with, &command, usable).as_ref(), Ok(&with), "{agent:?}: once is enough");
        let (without, _) = install::uninstall(agent, &with).expect("what we write can be taken out");
        let left = install::inspect(agent, &without, "/hooks.json").expect("and can be read");
        assert!(left.present.is_empty(), "{agent:?}: {left:?}");
        if before.present.is_empty() {
            // Lines and blanks may differ, what it says may not; empty hooks say nothing.
            let (was, is) = (meaning(text), meaning(&without));
            assert!(was.is_none() || is.is_none() || was == is, "{agent:?}: {was:?} became {is:?}");
        }
        let trusted = install::with_trust(text, &after.trust);
        if let Ok(trusted) = trusted {
            for entry in &after.trust {
                assert_eq!(install::trust_state(&trusted, entry), Ok(install::Trust::Trusted));
            }
            drop(install::without_trust(&trusted, &after.trust));
        }
    }
    let _ = install::hooks_are_off(text);
    drop((install::is_our_script(text), install::program_of_script(text)));
}

/// What plain JSON says, apart from hooks and a version, which come and go with ours.
fn meaning(text: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let object = value.as_object_mut()?;
    if object
        .get("hooks")
        .and_then(Value::as_object)
        .is_some_and(|hooks| hooks.values().all(|list| list.as_array().is_some_and(Vec::is_empty)))
    {
        object.remove("hooks");
    }
    object.remove("version");
    Some(value)
}

const ID: &str = "019c0000-0000-7000-8000-000000000001";
const CHILD: &str = "019c0000-0000-7000-8000-000000000002";

/// The log of a client: whatever it says, it is not changed, and a child that is made of it can be read.
pub(crate) fn transcript(data: &[u8]) {
    for client in ["claude", "codex", "gemini"] {
        let home = tempfile::tempdir().expect("a scratch directory");
        let log: PathBuf = home.path().join(match client {
            "claude" => format!("projects/-w/{ID}.jsonl"),
            "codex" => format!("sessions/2026/03/01/rollout-2026-03-01T10-00-00-{ID}.jsonl"),
            _ => format!("tmp/w/chats/session-2026-03-01T10-00-{}.jsonl", &ID[..8]),
        });
        fs::create_dir_all(log.parent().expect("it is in a directory")).expect("a home");
        if client == "gemini" {
            fs::write(home.path().join("tmp/w/.project_root"), "/w").expect("a file");
        }
        fs::write(&log, data).expect("a log");
        let door: Box<dyn SessionLog> = match client {
            "claude" => Box::new(claude::open(home.path())),
            "codex" => Box::new(codex::open(home.path())),
            _ => Box::new(gemini::open(home.path())),
        };
        conversation(client, &*door, &log, data);
    }
}

fn conversation(client: &str, door: &dyn SessionLog, log: &Path, data: &[u8]) {
    let key = SessionKey::new(client, ID).expect("a key");
    drop((turn_keys(client, log), door.header(&key), door.working_in(Path::new("/w"))));
    let beats = match door.beats(&key, Seq(0)) {
        Ok(beats) => beats,
        Err(SessionError::Harness { .. }) => Vec::new(),
        Err(error) => {
            assert!(!error.code().is_empty());
            Vec::new()
        }
    };
    assert!(beats.windows(2).all(|pair| pair[0].0 < pair[1].0), "{client}: positions grow");
    let ends = beats.iter().filter_map(|(seq, _)| boundary_at(&key, &beats, *seq).ok());
    for boundary in ends.take(2) {
        drop(door.prefix_digest(&key, boundary.seq()));
        let request = ForkRequest {
            source: key.clone(),
            boundary: Some(boundary),
            child: door.name_child(&key, CHILD),
            notice: None,
        };
        let could = door.check_fork(&key, request.boundary).is_ok();
        if let Ok(made) = door.fork(&request) {
            assert!(could, "{client}: what was refused was made");
            let child = SessionKey::new(client, &request.child).expect("a key");
            let own = door.beats(&child, Seq(0)).expect("a child can be read");
            assert_eq!(own[..], beats[..own.len()], "{client}: a child is a beginning of its parent");
            assert_eq!(door.find_child(&request).expect("it is found"), Some(made));
            fs::remove_file(door.location(&child).expect("it is somewhere")).expect("it can go");
        }
    }
    assert_eq!(fs::read(log).expect("it is still there"), data, "{client}: a log is never modified");
}

/// A file of marks that another program left.
pub(crate) fn marks(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    // What lies beside the directory is looked at too.
    let snapshots = dir.path().join("snapshots");
    let path = snapshots.join("marks.json");
    fs::create_dir(&snapshots).expect("a directory");
    fs::write(&path, data).expect("a file");
    drop(older::marks(&path));
    if let Ok((records, problems)) = older::rewind_records(&snapshots) {
        assert!(records.len() + problems.len() <= data.len() + 1, "there are never more than there is room for");
    }
    assert_eq!(fs::read(&path).expect("it is still there"), data, "reading changes nothing");
}

/// Opens nothing.
#[derive(Debug)]
struct Nowhere;

impl Workspaces for Nowhere {
    fn open(&self, _: &Path, _: bool) -> Result<Arc<dyn Workspace>, Failure> {
        Err(Failure {
            code: "no-directory".into(),
            kind: ErrorKind::Usage,
            message: "nowhere".into(),
            hints: Vec::new(),
            causes: Vec::new(),
        })
    }

    fn logs(&self, _: &str, _: Option<&Path>) -> Option<Arc<dyn SessionLog>> {
        None
    }
}

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
    fn sleep(&self, _: std::time::Duration) {}
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
