//! Sessions of opencode: against a stand-in that keeps what the real program was seen to keep, and against programs that
//! fail in every way.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use checkpoint_core::{
    Beat, BoundarySeq, ForkRequest, Seq, SessionError, SessionKey, SessionLog, Turn, boundary_at, boundary_of_turn,
};
use harness_adapter::sessions::opencode::{self, Program, ProgramError, Transfer};
use serde_json::{Value, json};
use testkit::transcripts::id_of;

const PARENT: &str = "ses_dd248075dffeAAAAAAAAAAAAAA";

/// An id of the client's form: the kind, the time, letters.
fn id(kind: &str, at: u64) -> String {
    format!("{kind}_{at:012x}{}", "mR992m5BOhpBJZ")
}

/// How the last turn of a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    Ended,
    Running,
    /// The prompt alone.
    Asked,
}

fn message(at: u64, info: &Value, parts: &[Value]) -> Value {
    let own = id("msg", at);
    let mut info = info.clone();
    info["id"] = json!(own);
    info["sessionID"] = json!(PARENT);
    let parts: Vec<Value> = (1..)
        .zip(parts)
        .map(|(number, part)| {
            let mut part = part.clone();
            part["id"] = json!(id("prt", at + number));
            part["sessionID"] = json!(PARENT);
            part["messageID"] = json!(own);
            part
        })
        .collect();
    json!({ "info": info, "parts": parts })
}

/// A session of `turns` turns, each with a call, as `opencode export` prints it.
fn session(dir: &Path, turns: u64, last: Last) -> Value {
    let mut messages = Vec::new();
    for turn in 1..=turns {
        let at = 0x22db_0000_0000 + turn * 0x10_0000;
        let open = turn == turns && last != Last::Ended;
        let asked = json!({ "type": "text", "text": format!("Do {turn}. \"x\\y\" \u{1F600}") });
        messages.push(message(at, &json!({ "role": "user", "time": { "created": 1_796_063_361_263_u64 } }), &[asked]));
        if open && last == Last::Asked {
            break;
        }
        let call = |status: &str| {
            json!({ "type": "tool", "tool": "write", "callID": format!("call_{turn}"), "state": {
                "status": status, "input": { "filePath": "a.txt", "content": turn.to_string() },
                "output": "Wrote file successfully.", "time": { "start": 1, "end": 2 } } })
        };
        let reply = |finish: Option<&str>| {
            let time = if finish.is_some() { json!({ "created": 1, "completed": 2 }) } else { json!({ "created": 1 }) };
            json!({ "role": "assistant", "parentID": id("msg", at), "cost": 0.1, "finish": finish, "time": time })
        };
        let step = json!({ "type": "step-start", "snapshot": "5a85d4bc" });
        if open {
            messages.push(message(at + 0x1000, &reply(None), &[step, call("running")]));
            break;
        }
        messages.push(message(at + 0x1000, &reply(Some("tool-calls")), &[step.clone(), call("completed")]));
        let end = json!({ "type": "text", "text": format!("done {turn}") });
        messages.push(message(at + 0x2000, &reply(Some("stop")), &[step, end]));
    }
    json!({
        "info": {
            "id": PARENT, "slug": "brave-panda", "projectID": "global", "directory": dir, "title": "Shop",
            "version": "1.18.33", "cost": 0.123_456_789_012_345_68, "time": { "created": 1, "updated": 2 },
            "metadata": { "theirs": [1] }, "share": { "url": "https://example.com/s" },
        },
        "messages": messages,
    })
}

/// Keeps sessions as the real program does: of a message or part whose id is known already nothing is kept, in silence.
#[derive(Debug, Default)]
struct Book {
    sessions: Mutex<BTreeMap<String, Value>>,
    exports: Mutex<usize>,
}

impl Transfer for Book {
    fn export(&self, session: &str) -> Result<Vec<u8>, ProgramError> {
        *self.exports.lock().unwrap() += 1;
        let sessions = self.sessions.lock().unwrap();
        let found = sessions.get(session).ok_or(ProgramError::NoSession)?;
        Ok(serde_json::to_vec_pretty(found).unwrap())
    }

    fn list(&self, within: &Path) -> Result<Vec<u8>, ProgramError> {
        let sessions = self.sessions.lock().unwrap();
        let here = sessions.values().filter(|one| one["info"]["directory"] == json!(within));
        let rows: Vec<Value> = here
            .map(|one| json!({ "id": one["info"]["id"], "directory": within, "updated": one["info"]["time"]["updated"] }))
            .collect();
        Ok(if rows.is_empty() { Vec::new() } else { json!(rows).to_string().into_bytes() })
    }

    fn import(&self, json: &[u8], within: &Path) -> Result<(), ProgramError> {
        assert!(within.is_dir());
        let mut made: Value = serde_json::from_slice(json).unwrap();
        let mut sessions = self.sessions.lock().unwrap();
        let known: String = sessions.values().map(Value::to_string).collect();
        let messages = made["messages"].as_array_mut().unwrap();
        messages.retain(|message| !known.contains(message["info"]["id"].as_str().unwrap()));
        for message in messages {
            let parts = message["parts"].as_array_mut().unwrap();
            parts.retain(|part| !known.contains(part["id"].as_str().unwrap()));
            parts.sort_by_key(|part| part["id"].as_str().unwrap().to_owned());
        }
        sessions.insert(made["info"]["id"].as_str().unwrap().to_owned(), made);
        Ok(())
    }
}

struct World {
    home: tempfile::TempDir,
    book: Arc<Book>,
}

impl World {
    fn new(turns: u64, last: Last) -> Self {
        let home = tempfile::tempdir().unwrap();
        let book = Arc::new(Book::default());
        book.sessions.lock().unwrap().insert(PARENT.to_owned(), session(home.path(), turns, last));
        Self { home, book }
    }

    fn door(&self) -> impl SessionLog {
        opencode::open_with(self.home.path(), Arc::clone(&self.book) as Arc<dyn Transfer>)
    }

    fn get(&self, id: &str) -> Value {
        self.book.sessions.lock().unwrap()[id].clone()
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Value)) {
        change(self.book.sessions.lock().unwrap().get_mut(id).unwrap());
    }
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("opencode", id).unwrap()
}

fn end_of(door: &dyn SessionLog, session: &str, turn: u32) -> Option<BoundarySeq> {
    boundary_of_turn(&door.beats(&key(session), Seq(0)).unwrap(), Turn(turn))
}

fn request(door: &dyn SessionLog, boundary: Option<BoundarySeq>, number: usize) -> ForkRequest {
    let child = door.name_child(&key(PARENT), &id_of(1, number));
    ForkRequest { source: key(PARENT), boundary, child, notice: None }
}

/// Everything said, without ids.
fn said(session: &Value) -> Vec<String> {
    let parts = session["messages"].as_array().unwrap().iter().flat_map(|m| m["parts"].as_array().unwrap());
    parts.map(|part| format!("{} {} {}", part["type"], part["text"], part["state"])).collect()
}

#[test]
fn c004_30_a_child_holds_exactly_the_prefix_at_every_boundary() {
    let world = World::new(3, Last::Ended);
    let before = world.get(PARENT);
    for turn in 1..=3_u32 {
        let door = world.door();
        let request = request(&door, end_of(&door, PARENT, turn), turn as usize);
        door.check_fork(&request.source, request.boundary).unwrap();
        let made = door.fork(&request).unwrap();
        assert_eq!((made.parent.as_ref(), made.seed_length), (Some(&key(PARENT)), u64::from(turn) * 2));
        assert!(!made.subagent && made.cwd == world.home.path());
        assert_eq!(world.get(PARENT), before, "the parent changed");
        let (child, own) = (key(&request.child), world.get(&request.child));
        let beats = door.beats(&child, Seq(0)).unwrap();
        assert_eq!(beats, door.beats(&key(PARENT), Seq(0)).unwrap()[..turn as usize * 2]);
        for (seq, _) in beats {
            let digest = |key| door.prefix_digest(key, seq).unwrap();
            assert_eq!(digest(&child), digest(&key(PARENT)), "t{turn} {seq}");
        }
        let kept = said(&own);
        assert_eq!(kept[..], said(&before)[..kept.len()]);
        assert_eq!(own["messages"].as_array().unwrap().len(), turn as usize * 3);
        // Nothing of the parent's ids is left, but where the child says whose it is.
        let mut nameless = own.clone();
        let made_by = nameless["info"]["metadata"]["rwd"].take();
        assert_eq!(made_by["forkedFrom"], PARENT);
        for old in before["messages"].as_array().unwrap() {
            assert!(!nameless.to_string().contains(old["info"]["id"].as_str().unwrap()));
        }
        assert!(!nameless.to_string().contains(PARENT));
        assert_eq!(own["messages"][1]["info"]["parentID"], own["messages"][0]["info"]["id"]);
        assert_eq!(own["info"]["metadata"]["theirs"], json!([1]));
        assert_eq!((&own["info"]["share"], &own["info"]["title"]), (&Value::Null, &json!("Shop (rwd)")));
        // Points have the parent's keys: the child knows its turns by them.
        let asked = before["messages"][(turn as usize - 1) * 3]["info"]["id"].as_str().unwrap();
        assert_eq!(door.turn_of_anchor(&child, asked).unwrap(), Some(Turn(turn)));
        assert_eq!(door.find_child(&request).unwrap().unwrap(), made);
        assert_eq!(door.fork(&request).unwrap_err().code(), "SESSION_ALREADY_EXISTS");
        let other = ForkRequest { boundary: end_of(&door, PARENT, if turn == 1 { 2 } else { 1 }), ..request };
        assert_eq!(door.find_child(&other).unwrap_err().code(), "SESSION_ALREADY_EXISTS");
    }
}

#[test]
fn a_child_is_cut_again_goes_on_and_may_have_no_turn() {
    let world = World::new(3, Last::Ended);
    let door = world.door();
    let first = request(&door, end_of(&door, PARENT, 2), 1);
    door.fork(&first).unwrap();
    let again =
        ForkRequest { source: key(&first.child), boundary: end_of(&door, &first.child, 1), ..request(&door, None, 2) };
    assert_eq!(door.fork(&again).unwrap().seed_length, 2);
    let asked = world.get(PARENT)["messages"][0]["info"]["id"].as_str().unwrap().to_owned();
    assert_eq!(door.turn_of_anchor(&key(&again.child), &asked).unwrap(), Some(Turn(1)));
    let empty = request(&door, None, 3);
    assert_eq!(door.fork(&empty).unwrap().seed_length, 0);
    assert_eq!(world.get(&empty.child)["messages"], json!([]));
    assert!(door.find_child(&empty).unwrap().is_some());
    // What is said next belongs to the child, and moves nothing.
    let next = message(0x22dc_0000_0000, &json!({ "role": "user" }), &[json!({ "type": "text", "text": "Next." })]);
    world.change(&first.child, |child| child["messages"].as_array_mut().unwrap().push(next));
    let later = world.door();
    let beats = later.beats(&key(&first.child), Seq(0)).unwrap();
    assert_eq!(beats.last(), Some(&(Seq(4), Beat::TurnStart(Turn(3)))));
    assert_eq!(later.find_child(&first).unwrap().unwrap().seed_length, 4);
}

#[test]
fn c004_32_an_open_turn_is_no_boundary_and_one_that_was_broken_off_is_shared() {
    for last in [Last::Running, Last::Asked] {
        let world = World::new(3, last);
        let door = world.door();
        let beats = door.beats(&key(PARENT), Seq(0)).unwrap();
        assert_eq!(beats.last().unwrap().1, Beat::TurnStart(Turn(3)), "{last:?}");
        assert_eq!(boundary_at(&key(PARENT), &beats, Seq(4)).unwrap_err().code(), "OPEN_TURN");
        // The next prompt ends it.
        let next = message(0x22dc_0000_0000, &json!({ "role": "user" }), &[json!({ "type": "text", "text": "Next." })]);
        world.change(PARENT, |session| session["messages"].as_array_mut().unwrap().push(next));
        let door = world.door();
        let request = request(&door, end_of(&door, PARENT, 3), 1);
        assert_eq!(door.fork(&request).unwrap().seed_length, 6, "{last:?}");
    }
}

/// What the client writes in the user's role itself is no turn; a task's session is its parent's; what its own revert took
/// back is gone.
#[test]
fn turns_are_what_somebody_asked() {
    let world = World::new(2, Last::Ended);
    let user = json!({ "role": "user" });
    let shorter = message(0x22dc_0000_0000, &user, &[json!({ "type": "compaction", "auto": true })]);
    let on = message(0x22dc_0100_0000, &user, &[json!({ "type": "text", "synthetic": true, "text": "Go on." })]);
    world.change(PARENT, |session| session["messages"].as_array_mut().unwrap().extend([shorter, on]));
    let turns = |door: &dyn SessionLog| door.beats(&key(PARENT), Seq(0)).unwrap().len();
    assert_eq!(turns(&world.door()), 3, "the second turn goes on");
    let second = world.get(PARENT)["messages"][3]["info"]["id"].clone();
    world.change(PARENT, |session| session["info"]["revert"] = json!({ "messageID": second }));
    let door = world.door();
    assert_eq!(turns(&door), 2);
    let made = request(&door, end_of(&door, PARENT, 1), 1);
    door.fork(&made).unwrap();
    assert_eq!(world.get(&made.child)["info"]["revert"], Value::Null);
    world.change(PARENT, |session| session["info"]["parentID"] = json!("ses_dd248075dffeBBBBBBBBBBBBBB"));
    let head = world.door().header(&key(PARENT)).unwrap();
    assert!(head.subagent && head.parent == Some(key("ses_dd248075dffeBBBBBBBBBBBBBB")));
}

/// The digest is of what was said: not of blanks, times, ids, summaries, or of a call that was broken off.
#[test]
fn the_digest_outlives_what_the_client_works_out_later() {
    let world = World::new(3, Last::Running);
    let digests = |world: &World| {
        let door = world.door();
        (0..5).map(|at| door.prefix_digest(&key(PARENT), Seq(at)).unwrap()).collect::<Vec<_>>()
    };
    let before = digests(&world);
    world.change(PARENT, |session| {
        session["info"]["title"] = json!("Another");
        session["messages"][0]["info"]["summary"] = json!({ "diffs": [] });
        session["messages"][1]["parts"][1]["state"]["time"]["compacted"] = json!(9);
        session["messages"][7]["parts"][1]["state"]["status"] = json!("error");
    });
    assert_eq!(digests(&world), before);
    world.change(PARENT, |session| session["messages"][2]["parts"][1]["text"] = json!("done  1"));
    let after = digests(&world);
    assert_eq!((&after[0], after[1] == before[1]), (&before[0], false));
}

/// A capture and files alone must pay nothing: what costs is said before, and read once.
#[test]
fn one_export_answers_the_questions_of_one_command() {
    let world = World::new(3, Last::Ended);
    let door = world.door();
    assert!(door.is_costly(&key(PARENT)));
    assert!(!door.is_costly(&key("help")) && !door.can_fork(&key("ses_a-b")) && !door.can_fork(&key("x")));
    assert!(door.working_in(world.home.path()).unwrap().is_empty());
    assert_eq!(*world.book.exports.lock().unwrap(), 0);
    for seq in 0..6 {
        assert!(door.can_fork(&key(PARENT)) && door.prefix_digest(&key(PARENT), Seq(seq)).is_ok());
    }
    assert!(!door.is_costly(&key(PARENT)));
    assert_eq!(*world.book.exports.lock().unwrap(), 1);
    // Where opencode never was nobody is asked.
    let nowhere = opencode::open_with(world.home.path().join("none"), Arc::clone(&world.book) as Arc<dyn Transfer>);
    assert!(!nowhere.is_costly(&key(PARENT)) && !nowhere.can_fork(&key(PARENT)));
    assert_eq!(*world.book.exports.lock().unwrap(), 1);
}

type Damage = fn(&mut Value);

#[test]
fn what_is_not_understood_is_refused_and_nothing_is_made() {
    let cases: [(&str, Damage); 6] = [
        ("no messages", |session| session["messages"] = Value::Null),
        ("no parts", |session| session["messages"][0]["parts"] = json!({})),
        ("no id", |session| session["messages"][1]["info"]["id"] = json!(7)),
        ("no part id", |session| session["messages"][1]["parts"][0]["id"] = Value::Null),
        ("another session", |session| session["info"]["id"] = json!("ses_other")),
        ("a list", |session| *session = json!([1])),
    ];
    for (what, damage) in cases {
        let world = World::new(1, Last::Ended);
        world.change(PARENT, damage);
        assert_eq!(world.door().header(&key(PARENT)).unwrap_err().code(), "UNSUPPORTED_FORMAT", "{what}");
    }
    let world = World::new(1, Last::Ended);
    world.change(PARENT, |session| session["messages"][1]["parts"][0]["id"] = json!("prt_short"));
    let door = world.door();
    let request = request(&door, end_of(&door, PARENT, 1), 1);
    assert_eq!(door.fork(&request).unwrap_err().code(), "UNSUPPORTED_FORMAT");
    assert_eq!(world.book.sessions.lock().unwrap().len(), 1);
    let named = ForkRequest { child: "../x".to_owned(), ..request };
    assert_eq!(door.fork(&named).unwrap_err().code(), "FORK_FAILED");
}

/// A program made of a script; `$STORE` is where it finds sessions.
struct Scripted {
    dir: tempfile::TempDir,
}

/// Keeps a session as it comes.
const HONEST: &str = r#"case "$1" in
export) test -f "$STORE/$2.json" || { printf '\033[91mError: \033[0mSession not found: %s\n' "$2" >&2; exit 1; }; cat "$STORE/$2.json" ;;
import) id=$(sed 's/^{"info":{"id":"\([A-Za-z0-9_]*\)".*/\1/;q' "$2"); cat "$2" > "$STORE/$id.json"; pwd > "$STORE/within"; echo "Imported session: $id" ;;
esac"#;

impl Scripted {
    fn new(script: &str) -> Self {
        let made = Self { dir: tempfile::tempdir().unwrap() };
        let text = format!("#!/bin/sh\nSTORE={}\n{script}\n", made.dir.path().display());
        fs::write(made.program(), text).unwrap();
        fs::set_permissions(made.program(), fs::Permissions::from_mode(0o755)).unwrap();
        // The head first, as the script wants it.
        let session = session(made.dir.path(), 3, Last::Ended);
        let info = session["info"].to_string().replacen('{', &format!("{{\"id\":\"{PARENT}\","), 1);
        let text = format!("{{\"info\":{info},\"messages\":{}}}", session["messages"]);
        fs::write(made.dir.path().join(format!("{PARENT}.json")), text).unwrap();
        made
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("opencode")
    }

    fn with(&self, program: PathBuf) -> impl SessionLog + use<> {
        let patience = Duration::from_secs(20);
        let program = Program { program, data: None, patience, most: 1 << 20 };
        opencode::open_with(self.dir.path(), Arc::new(program))
    }

    fn door(&self) -> impl SessionLog + use<> {
        self.with(self.program())
    }
}

/// What goes wrong, in words.
fn fails(door: &dyn SessionLog) -> String {
    assert!(!door.can_fork(&key(PARENT)), "files go back without it");
    let error = door.beats(&key(PARENT), Seq(0)).unwrap_err();
    assert_eq!(error.code(), "FORK_FAILED", "{error}");
    // What cannot be told is no answer: the child may be there.
    let request = ForkRequest {
        source: key(PARENT),
        boundary: None,
        child: "ses_000000000000AAAAAAAAAAAAAA".to_owned(),
        notice: None,
    };
    assert_eq!(door.find_child(&request).unwrap_err().code(), "FORK_FAILED");
    assert_eq!(door.fork(&request).unwrap_err().code(), "FORK_FAILED");
    reasons(&error)
}

fn reasons(error: &SessionError) -> String {
    let mut words = error.to_string();
    let mut at: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(cause) = at {
        words = format!("{words}: {cause}");
        at = cause.source();
    }
    words
}

#[test]
fn a_program_that_does_what_it_says_makes_the_child_where_the_session_works() {
    let world = Scripted::new(HONEST);
    let before = fs::read(world.dir.path().join(format!("{PARENT}.json"))).unwrap();
    let door = world.door();
    let request = request(&door, end_of(&door, PARENT, 2), 1);
    assert!(door.find_child(&request).unwrap().is_none());
    assert_eq!(door.fork(&request).unwrap().seed_length, 4);
    assert_eq!(fs::read(world.dir.path().join(format!("{PARENT}.json"))).unwrap(), before);
    let within = fs::read_to_string(world.dir.path().join("within")).unwrap();
    assert_eq!(Path::new(within.trim()).canonicalize().unwrap(), world.dir.path().canonicalize().unwrap());
    // A number of many digits comes through as it stands there.
    let child = fs::read_to_string(world.dir.path().join(format!("{}.json", request.child))).unwrap();
    let cost = |text: &str| text.split("\"cost\":").nth(1).unwrap().split([',', '}']).next().unwrap().to_owned();
    assert_eq!(cost(&child), cost(str::from_utf8(&before).unwrap()));
    assert_eq!(door.header(&key("ses_00000000")).unwrap_err().code(), "SESSION_NOT_FOUND");
    // Whoever recovers after a crash finds it too.
    assert!(world.door().find_child(&request).unwrap().is_some());
}

#[test]
fn every_failure_of_the_program_is_told_and_makes_nothing() {
    let world = Scripted::new(HONEST);
    let absent = fails(&world.with(world.dir.path().join("nowhere")));
    assert!(absent.contains("OPENCODE_BIN"), "{absent}");
    for (script, words) in [
        ("printf '\\033[91mError: \\033[0mdatabase is locked\\n' >&2; exit 3", "Error: database is locked"),
        ("exit 1", "it said nothing"),
        ("kill -9 $$", "it said nothing"),
        ("exec yes", "it said more than 1048576 bytes"),
    ] {
        let world = Scripted::new(script);
        let told = fails(&world.door());
        assert!(told.contains(words), "{script}: {told}");
    }
    for script in ["echo no JSON", "exit 0", "printf '{\"info\":{}'"] {
        let world = Scripted::new(script);
        assert_eq!(world.door().beats(&key(PARENT), Seq(0)).unwrap_err().code(), "UNSUPPORTED_FORMAT", "{script}");
    }
}

/// It is ended with what it started.
#[test]
fn a_program_that_hangs_is_ended() {
    let world = Scripted::new("sleep 600 & echo $! > \"$STORE/pid\"; wait");
    let program = Program { program: world.program(), data: None, patience: Duration::from_millis(300), most: 1 << 20 };
    let door = opencode::open_with(world.dir.path(), Arc::new(program));
    let told = fails(&door);
    assert!(told.contains("did not end within 300 ms"), "{told}");
    let pid = fs::read_to_string(world.dir.path().join("pid")).unwrap();
    let state = || fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // Gone, or dead and not yet fetched by whoever adopted it.
    while !state().is_empty() && !state().contains(") Z ") {
        std::thread::yield_now();
    }
}

/// "Imported session" is what it says also where it made nothing of the messages, or nothing at all.
#[test]
fn an_import_that_makes_nothing_is_no_success() {
    let empty = r#"printf '{"info":{"id":"%s","directory":"/"},"messages":[]}' "$id" > "$STORE/$id.json""#;
    for kept in ["true", empty] {
        let world = Scripted::new(&HONEST.replace(r#"cat "$2" > "$STORE/$id.json""#, kept));
        let door = world.door();
        let request = request(&door, end_of(&door, PARENT, 2), 1);
        let error = door.fork(&request).unwrap_err();
        assert_eq!(error.code(), "FORK_FAILED", "{kept}");
        assert!(reasons(&error).contains("not written as it was meant"), "{kept}: {}", reasons(&error));
        let found = world.door().find_child(&request);
        assert_eq!(
            found.map_err(|error| error.code()),
            if kept == "true" { Ok(None) } else { Err("SESSION_ALREADY_EXISTS") }
        );
    }
}

#[test]
fn a_directory_that_is_gone_is_told() {
    let world = Scripted::new(HONEST);
    let log = world.dir.path().join(format!("{PARENT}.json"));
    let text = fs::read_to_string(&log).unwrap();
    let here = world.dir.path().to_str().unwrap();
    fs::write(&log, text.replace(here, "/nowhere/at/all")).unwrap();
    let door = world.door();
    let request = request(&door, end_of(&door, PARENT, 1), 1);
    let error = door.fork(&request).unwrap_err();
    assert!(reasons(&error).contains("/nowhere/at/all"), "{}", reasons(&error));
    assert!(door.find_child(&request).unwrap().is_none());
}
