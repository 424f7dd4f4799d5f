//! Sessions of Claude Code, Codex and Gemini CLI: files and conversation go back together, in logs that the clients wrote
//! themselves (made up here in their shapes).

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use testkit::transcripts::{self, Told, id_of};

use crate::sandbox::{Sandbox, Tree, tree};

const CLIENTS: [&str; 3] = ["claude", "codex", "gemini"];

/// A workspace with two turns of a client, each with its points; the third turn is said and has none.
pub(crate) struct Talk {
    pub(crate) sandbox: Sandbox,
    client: &'static str,
    first: Tree,
}

impl Talk {
    pub(crate) fn new(client: &'static str) -> Self {
        let sandbox = Sandbox::new();
        let id = id_of(1, 7);
        let cwd = sandbox.work();
        let cwd = cwd.to_str().unwrap();
        let turns: Vec<Told> = ["make it", "change it", "spoil it"].into_iter().map(Told::plain).collect();
        let home = sandbox.home();
        let (path, lines) = match client {
            "claude" => {
                (home.join(format!(".claude/projects/-work/{id}.jsonl")), transcripts::claude(&id, cwd, &turns))
            }
            "codex" => (
                home.join(format!(".codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-{id}.jsonl")),
                transcripts::codex(&id, cwd, &turns),
            ),
            _ => {
                let chats = home.join(".gemini/tmp/work/chats");
                fs::create_dir_all(&chats).unwrap();
                fs::write(home.join(".gemini/tmp/work/.project_root"), cwd).unwrap();
                let name = format!("session-2026-03-01T10-00-{}.jsonl", &id[..8]);
                (chats.join(name), transcripts::gemini(&id, &turns, &[3]))
            }
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let session = format!("{client}:{id}");
        for (turn, content) in ["0\n", "1\n", "2\n"].into_iter().enumerate() {
            sandbox.write("a", content);
            let turn = (turn + 1).to_string();
            sandbox.ok(&["save", "--session", &session, "--turn", &turn, "--kind", "turn-start"]);
        }
        sandbox.write("a", "spoilt\n");
        let talk = Self { sandbox, client, first: Tree::new() };
        let first = talk.logs();
        Self { first, ..talk }
    }

    fn dir(&self) -> PathBuf {
        self.sandbox.home().join(format!(".{}", self.client))
    }

    fn logs(&self) -> Tree {
        tree(&self.dir())
    }

    pub(crate) fn session(&self) -> String {
        format!("{}:{}", self.client, id_of(1, 7))
    }

    /// What was there is as it was; the names of what is new.
    fn made(&self) -> Vec<String> {
        let now = self.logs();
        for (path, facts) in &self.first {
            assert_eq!(now.get(path), Some(facts), "{}", String::from_utf8_lossy(path));
        }
        let new = now.iter().filter(|(path, facts)| facts.0 != 'd' && !self.first.contains_key(*path));
        new.map(|(path, _)| String::from_utf8_lossy(path).into_owned()).collect()
    }
}

#[test]
fn files_and_conversation_go_back_to_the_beginning_of_a_turn() {
    for client in CLIENTS {
        let talk = Talk::new(client);
        let session = talk.session();
        let went = talk.sandbox.json(0, &["to", "t3^", "--both", "--yes", "--overwrite-drift", "--session", &session]);
        assert_eq!(talk.sandbox.read("a"), "2\n", "{client}");
        let child = went["childSessionId"].as_str().unwrap();
        assert_eq!(went["cut"]["rule"], "end of turn 2", "{client}");
        let go_on = match client {
            "claude" => format!("claude --resume {child}"),
            "codex" => format!("codex resume {child}"),
            _ => format!("gemini -r {child}"),
        };
        assert_eq!(went["continue"], Value::from(go_on), "{client}");
        let made = talk.made();
        assert_eq!(made.len(), 1, "{client}: {made:?}");
        assert!(went["childPath"]["path"].as_str().unwrap().ends_with(&made[0]), "{client}");
        let shown = talk.sandbox.json(0, &["session", "show", &format!("{client}:{child}")]);
        let prompts: Vec<&str> =
            shown["turns"].as_array().unwrap().iter().map(|turn| turn["prompt"].as_str().unwrap()).collect();
        assert_eq!(prompts, ["make it", "change it"], "{client}");
        assert_eq!((&shown["parent"], &shown["seedLength"]), (&Value::from(id_of(1, 7)), &Value::from(4)), "{client}");
        // The child sees the points of the turns that it shares.
        let again = talk
            .sandbox
            .json(0, &["to", "t2^", "--both", "--yes", "--overwrite-drift", "--session", &format!("{client}:{child}")]);
        assert_eq!((talk.sandbox.read("a"), again["cut"]["rule"].as_str()), ("1\n".into(), Some("end of turn 1")));
    }
}

#[test]
fn before_the_first_prompt_only_codex_has_a_conversation() {
    for client in CLIENTS {
        let talk = Talk::new(client);
        let session = talk.session();
        let both = ["to", "t1^", "--both", "--yes", "--overwrite-drift", "--session", &session];
        if client == "codex" {
            assert_eq!(talk.sandbox.json(0, &both)["cut"]["rule"], "empty");
        } else {
            let before = talk.sandbox.tree();
            let refused = talk.sandbox.json(3, &both);
            assert_eq!(refused["error"]["code"], "NOTHING_LEFT", "{client}");
            assert!(refused.to_string().contains("fresh session"), "{refused}");
            assert_eq!((talk.sandbox.tree(), talk.made().len()), (before, 0), "{client}");
            // Asked for neither half alone, files go back, and it is said why the conversation does not.
            let went = talk.sandbox.json(0, &["to", "t1^", "--yes", "--overwrite-drift", "--session", &session]);
            assert_eq!((&went["childSessionId"], talk.made().len()), (&Value::Null, 0), "{client}");
            assert!(went["notes"].to_string().contains("fresh session"), "{went}");
        }
        assert_eq!(talk.sandbox.read("a"), "0\n", "{client}");
    }
}

#[test]
fn a_log_that_is_damaged_stops_the_conversation_and_not_the_files() {
    for client in CLIENTS {
        let mut talk = Talk::new(client);
        let log =
            talk.sandbox.json(0, &["session", "show", &talk.session()])["path"]["path"].as_str().unwrap().to_owned();
        let mut bytes = fs::read(&log).unwrap();
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        bytes.splice(second..second, *b"{\"type\":\n");
        fs::write(&log, bytes).unwrap();
        talk.first = talk.logs();
        let session = talk.session();
        let before = talk.sandbox.tree();
        let both = ["to", "t2^", "--both", "--yes", "--overwrite-drift", "--session", &session];
        assert_eq!(talk.sandbox.json(3, &both)["error"]["code"], "CORRUPT_LOG", "{client}");
        assert_eq!((talk.sandbox.tree(), talk.made().len()), (before, 0), "{client}");
        talk.sandbox.ok(&["to", "t2^", "--files", "--yes", "--overwrite-drift", "--session", &session]);
        assert_eq!(talk.sandbox.read("a"), "1\n", "{client}");
        assert!(talk.made().is_empty());
        let checked = talk.sandbox.json(8, &["session", "verify", &session]);
        assert_eq!(checked["problems"][0]["code"], "CORRUPT_LOG", "{client}");
    }
}

#[test]
fn sessions_of_clients_are_listed_shown_and_forked() {
    for client in CLIENTS {
        let talk = Talk::new(client);
        let listed = talk.sandbox.json(0, &["session", "list", "--harness", client]);
        assert_eq!(listed["sessions"][0]["session"], Value::from(talk.session()), "{client}");
        assert_eq!(listed["sessions"][0]["cwd"], Value::from(talk.sandbox.work().to_str().unwrap()), "{client}");
        let places = talk.sandbox.json(0, &["session", "boundaries", &talk.session()]);
        let seqs: Vec<_> = places["boundaries"].as_array().unwrap().iter().map(|at| at["seq"].clone()).collect();
        assert_eq!(seqs, [1, 3, 5], "{client}");
        // By a beginning of its id, and by home.
        let home = talk.dir();
        let short = &id_of(1, 7)[..9];
        let named = ["session", "fork", short, "--harness", client, "--turn", "1", "--home", home.to_str().unwrap()];
        let forked = talk.sandbox.json(0, &named);
        assert_eq!(forked["seedLength"], 2, "{client}");
        assert_eq!(talk.made().len(), 1, "{client}");
        let refuse = |code: i32, args: &[&str], word: &str| {
            let refused = talk.sandbox.json(code, args);
            assert_eq!(refused["error"]["code"], word, "{client} {args:?}: {refused}");
        };
        let session = talk.session();
        refuse(3, &["session", "fork", &session, "--turn", "9"], "INVALID_BOUNDARY");
        refuse(3, &["session", "fork", &session, "--at", "2"], "OPEN_TURN");
        refuse(3, &["session", "fork", &session, "--child", &id_of(1, 7)], "SESSION_ALREADY_EXISTS");
        refuse(9, &["session", "show", &format!("{client}:nobody")], "SESSION_NOT_FOUND");
        refuse(3, &["session", "repair", &session], "NO_REPAIR");
        assert_eq!(talk.made().len(), 1, "{client}");
        talk.sandbox.ok(&["session", "verify", &session]);
        talk.sandbox.ok(&["session", "show", &session]);
        talk.sandbox.ok(&["session", "list", "--harness", client]);
        talk.sandbox.ok(&["session", "boundaries", &session]);
    }
}

/// A turn that is open cannot be shared: its client may be at work.
#[test]
fn c004_32_a_turn_at_work_is_refused() {
    let talk = Talk::new("claude");
    let log = talk.sandbox.json(0, &["session", "show", &talk.session()])["path"]["path"].as_str().unwrap().to_owned();
    let text = fs::read_to_string(&log).unwrap();
    let row = r#"{"type":"user","uuid":"x","parentUuid":null,"message":{"role":"user","content":"and more"}}"#;
    fs::write(&log, format!("{text}{row}\n")).unwrap();
    let refused = talk.sandbox.json(3, &["to", "t4", "--chat", "--yes", "--session", &talk.session()]);
    assert_eq!(refused["error"]["code"], "OPEN_TURN");
}
