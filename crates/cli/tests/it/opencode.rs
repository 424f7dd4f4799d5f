//! Conversations of opencode, by a stand-in for its program that keeps sessions as files and counts what it is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, ran};

const PARENT: &str = "ses_dd248075dffeAAAAAAAAAAAAAA";

const PROGRAM: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
store=$XDG_DATA_HOME/opencode
echo "$1" >> "$store/calls"
case "$1" in
export) test -f "$store/$2.json" || { echo "Error: Session not found: $2" >&2; exit 1; }; cat "$store/$2.json" ;;
session) printf '[{"id":"%s","title":"Shop","updated":2,"created":1,"projectId":"global","directory":"%s"}]\n' ses_dd248075dffeAAAAAAAAAAAAAA "$PWD" ;;
import) id=$(sed 's/^{"info":{"id":"\([A-Za-z0-9_]*\)".*/\1/;q' "$2"); cat "$2" > "$store/$id.json"; echo "Imported session: $id" ;;
esac
"#;

/// An id of the client's form.
fn id(kind: &str, at: usize) -> String {
    format!("{kind}_22db{at:08x}mR992m5BOhpBJZ")
}

/// A workspace with two turns of opencode, recorded by its hooks; the third was only asked for.
struct Talk {
    sandbox: Sandbox,
    program: PathBuf,
}

impl Talk {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let program = sandbox.home().join("opencode-program");
        let talk = Self { sandbox, program };
        fs::create_dir_all(talk.store()).unwrap();
        fs::write(&talk.program, PROGRAM).unwrap();
        fs::set_permissions(&talk.program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut messages = Vec::new();
        for turn in 1..=3 {
            let text = |id: String, text: String| json!({ "type": "text", "id": id, "text": text });
            let asked = text(id("prt", turn * 10), format!("ask {turn}"));
            messages.push(json!({ "info": { "id": id("msg", turn * 10), "role": "user" }, "parts": [asked] }));
            if turn < 3 {
                let info = json!({ "id": id("msg", turn * 10 + 1), "role": "assistant", "finish": "stop",
                    "parentID": id("msg", turn * 10), "time": { "created": 1, "completed": 2 } });
                let said = text(id("prt", turn * 10 + 1), format!("done {turn}"));
                messages.push(json!({ "info": info, "parts": [said] }));
            }
        }
        let rest = json!({ "directory": talk.sandbox.work(), "title": "Shop", "time": { "created": 1, "updated": 2 } });
        let info = rest.to_string().replacen('{', &format!("{{\"id\":\"{PARENT}\","), 1);
        let session = format!("{{\"info\":{info},\"messages\":{}}}", Value::from(messages));
        fs::write(talk.store().join(format!("{PARENT}.json")), session).unwrap();

        talk.sandbox.write("a", "0\n");
        talk.sandbox.ok(&["save"]);
        for turn in 1..=3 {
            talk.hook(json!({ "hook": "chat.message", "sessionID": PARENT, "messageID": id("msg", turn * 10) }));
            talk.hook(json!({ "hook": "tool.execute.before", "sessionID": PARENT, "callID": turn.to_string(), "tool": "write" }));
            talk.sandbox.write("a", format!("{turn}\n"));
            talk.hook(json!({ "hook": "tool.execute.after", "sessionID": PARENT, "callID": turn.to_string(), "tool": "write" }));
            if turn < 3 {
                talk.hook(json!({ "hook": "event", "type": "session.idle", "sessionID": PARENT }));
            }
        }
        talk
    }

    fn store(&self) -> PathBuf {
        self.sandbox.home().join(".local/share/opencode")
    }

    /// What the program was asked so far.
    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.store().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn sessions(&self) -> usize {
        let entries = fs::read_dir(self.store()).unwrap().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "json")).count()
    }

    fn rwd_by(&self, program: &str, args: &[&str]) -> Ran {
        ran(self.sandbox.command(args).arg("--json").env("OPENCODE_BIN", program))
    }

    fn json(&self, code: i32, args: &[&str]) -> Value {
        let ran = self.rwd_by(self.program.to_str().unwrap(), args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    }

    fn hook(&self, payload: Value) {
        let mut payload = payload;
        payload["directory"] = json!(self.sandbox.work());
        let file = self.sandbox.home().join("payload.json");
        fs::write(&file, payload.to_string()).unwrap();
        let mut command = self.sandbox.command(&["hook", "opencode"]);
        command.env("OPENCODE_BIN", &self.program).stdin(Stdio::from(fs::File::open(file).unwrap()));
        let ran = ran(&mut command);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    }
}

#[test]
fn files_and_conversation_go_back_and_the_child_counts_on() {
    let talk = Talk::new();
    let session = format!("opencode:{PARENT}");
    let parent = fs::read(talk.store().join(format!("{PARENT}.json"))).unwrap();
    let went = talk.json(0, &["to", "t2^", "--both", "--yes", "--session", &session]);
    assert_eq!(
        (talk.sandbox.read("a").as_str(), went["cut"]["rule"].as_str()),
        ("1\n", Some("end of turn 1")),
        "{went}"
    );
    let child = went["childSessionId"].as_str().unwrap();
    assert_eq!(went["continue"], json!(format!("opencode -s {child}")));
    assert_eq!(fs::read(talk.store().join(format!("{PARENT}.json"))).unwrap(), parent);
    assert_eq!(talk.calls().iter().filter(|call| *call == "import").count(), 1);
    let name = format!("opencode:{child}");
    let shown = talk.json(0, &["session", "show", &name]);
    assert_eq!((&shown["turns"][0]["prompt"], &shown["seedLength"]), (&json!("ask 1"), &json!(2)), "{shown}");
    // No transcript tells its hook how many turns it shares.
    talk.hook(json!({ "hook": "chat.message", "sessionID": child, "messageID": id("msg", 90) }));
    let log = talk.json(0, &["log", "--all"]);
    let points = log["points"].as_array().unwrap();
    let own: Vec<&Value> = points.iter().filter(|point| point["session"] == json!(name)).map(|p| &p["turn"]).collect();
    assert_eq!(own, [&json!(2)], "{log}");
    // The child sees the points of the turn that it shares, by the parent's own name of it.
    let again = talk.json(0, &["to", "t1^", "--both", "--yes", "--session", &name]);
    assert_eq!((talk.sandbox.read("a").as_str(), again["cut"]["rule"].as_str()), ("0\n", Some("empty")), "{again}");
}

/// The program lists the sessions of the project here. A child that `session fork` made is known to the workspace, so that
/// its first turn is numbered after those that it shares.
#[test]
fn sessions_are_listed_by_the_program_and_a_fork_is_remembered() {
    let talk = Talk::new();
    let listed = talk.json(0, &["session", "list", "--harness", "opencode"]);
    let session = format!("opencode:{PARENT}");
    assert_eq!(listed["sessions"][0]["session"], json!(session), "{listed}");
    assert_eq!(listed["sessions"][0]["cwd"], json!(talk.sandbox.work()), "{listed}");
    let forked = talk.json(0, &["session", "fork", &session, "--turn", "2"]);
    let child = forked["child"].as_str().unwrap();
    talk.hook(json!({ "hook": "chat.message", "sessionID": child, "messageID": id("msg", 90) }));
    let log = talk.json(0, &["log", "--session", &format!("opencode:{child}")]);
    let points = log["points"].as_array().unwrap();
    let own = points.iter().filter(|point| point["session"] == json!(format!("opencode:{child}")));
    assert_eq!(own.map(|point| &point["turn"]).collect::<Vec<_>>(), [&json!(3)], "{log}");
    // Whoever names a session is told where it can be cut.
    let named = talk.json(0, &["log", "--session", &session]);
    let second = named["points"].as_array().unwrap().iter().find(|point| point["turn"] == json!(2)).unwrap();
    assert_eq!((&second["cutBefore"], &second["cutAfter"]), (&json!(1), &json!(3)), "{named}");
    let broken = talk.sandbox.home().join("broken");
    fs::write(&broken, "#!/bin/sh\necho '{}'\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    for (program, code) in [("/nowhere/opencode", "FORK_FAILED"), (broken.to_str().unwrap(), "UNSUPPORTED_FORMAT")] {
        let refused = talk.rwd_by(program, &["session", "list", "--harness", "opencode"]);
        let error: Value = serde_json::from_str(&refused.out).unwrap();
        assert_eq!(error["error"]["code"], json!(code), "{refused:?}");
    }
}

/// Starting the program takes seconds: captures, and files alone, never do.
#[test]
fn captures_and_files_alone_never_start_the_program() {
    let talk = Talk::new();
    let session = format!("opencode:{PARENT}");
    let words: [&[&str]; 5] = [
        &["save", "--session", &session],
        &["log", "--all"],
        &["status"],
        &["to", "t2^", "--files", "--yes", "--session", &session],
        &["undo", "--yes"],
    ];
    for args in words {
        talk.json(0, args);
        assert_eq!(talk.calls(), Vec::<String>::new(), "{args:?}");
    }
    assert_eq!(talk.sandbox.read("a"), "3\n");
}

#[test]
fn without_the_program_both_is_refused_and_files_go_back_alone() {
    let talk = Talk::new();
    let session = format!("opencode:{PARENT}");
    let broken = talk.sandbox.home().join("broken");
    fs::write(&broken, "#!/bin/sh\necho 'Error: database is locked' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    for program in ["/nowhere/opencode", broken.to_str().unwrap()] {
        let before = talk.sandbox.tree();
        let refused = talk.rwd_by(program, &["to", "t2^", "--both", "--yes", "--session", &session]);
        let error: Value = serde_json::from_str(&refused.out).unwrap();
        assert_eq!((refused.code, &error["error"]["code"]), (3, &json!("FORK_UNSUPPORTED")), "{refused:?}");
        assert!(error["error"]["hints"].to_string().contains("OPENCODE_BIN"), "{error}");
        assert_eq!(talk.sandbox.tree(), before);
        let shown = talk.rwd_by(program, &["session", "show", &session]);
        assert_ne!(shown.code, 0, "{shown:?}");
        let went = talk.rwd_by(program, &["to", "t2^", "--yes", "--session", &session]);
        let answer: Value = serde_json::from_str(&went.out).unwrap();
        assert_eq!((went.code, &answer["childSessionId"]), (0, &Value::Null), "{went:?}");
        assert_eq!(talk.sandbox.read("a"), "1\n");
        talk.json(0, &["undo", "--yes"]);
    }
    assert_eq!(talk.sessions(), 1);
    assert_eq!(talk.json(9, &["session", "show", "opencode:ses_0"])["error"]["code"], "SESSION_NOT_FOUND");
}

/// An import that says it worked and made nothing: the files are back, the operation waits, and finishing it asks again
/// for the same session.
#[test]
fn an_import_that_makes_nothing_is_finished_later() {
    let talk = Talk::new();
    let session = format!("opencode:{PARENT}");
    let lying = talk.sandbox.home().join("lying");
    fs::write(&lying, PROGRAM.replace(r#"cat "$2" > "$store/$id.json""#, "true")).unwrap();
    fs::set_permissions(&lying, fs::Permissions::from_mode(0o755)).unwrap();
    let args = ["to", "t2^", "--both", "--yes", "--session", &session];
    let failed = talk.rwd_by(lying.to_str().unwrap(), &args);
    let error: Value = serde_json::from_str(&failed.out).unwrap();
    assert_eq!((failed.code, &error["error"]["code"]), (5, &json!("not-forked")), "{failed:?}");
    assert_eq!((talk.sandbox.read("a").as_str(), talk.sessions()), ("1\n", 1));
    talk.json(0, &["recover", "--finish", "--yes"]);
    assert_eq!(talk.sessions(), 2);
}
