//! A stranger's path: what somebody types who has read the README and nothing else, and what is seen.
//!
//! The snapshots are the transcripts; ids, times and the sandbox's own paths are filtered.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use checkpoint_core::{Batch, IndexOp, LockMode, OpKind, OpState};
use index_store::{DataDir, IndexOptions, Registry};
use serde_json::{Value, json};

use crate::recovery::crashed;
use crate::sandbox::{Sandbox, ended, ran};

/// A project of a person who has Claude Code, and rwd on the search path.
struct Stranger {
    sandbox: Sandbox,
    seen: String,
}

impl Stranger {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let bin = sandbox.top().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["rwd", "claude"] {
            symlink(env!("CARGO_BIN_EXE_rwd"), bin.join(name)).unwrap();
        }
        let sandbox = sandbox.with("PATH", bin.to_str().unwrap());
        for (path, text) in [("README.md", "# demo\n"), ("src/a.rs", "a\n"), ("src/b.rs", "b\n"), ("old.txt", "old\n")]
        {
            sandbox.write(path, text);
        }
        sandbox.write(".gitignore", ".env\nnode_modules\n");
        sandbox.write(".env", "SECRET\n");
        Self { sandbox, seen: String::new() }
    }

    /// Types a line at the top of the project.
    fn types(&mut self, line: &str) -> &mut Self {
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        let mut command = self.sandbox.command(&args);
        self.note(line, &mut command)
    }

    /// Types it in a directory below.
    fn types_in(&mut self, dir: &str, line: &str) -> &mut Self {
        let args: Vec<&str> = line.split_whitespace().skip(1).collect();
        let mut command = self.sandbox.command(&args);
        command.current_dir(self.sandbox.work().join(dir));
        self.note(&format!("cd {dir} && {line}"), &mut command)
    }

    fn note(&mut self, line: &str, command: &mut Command) -> &mut Self {
        let ran = ran(command);
        let code = if ran.code == 0 { String::new() } else { format!("[{}]\n", ran.code) };
        self.seen.extend(["$ ", line, "\n", &ran.out, &ran.err, &code, "\n"]);
        self
    }

    /// A report of Claude Code, which says nothing to the person.
    fn hook(&self, event: &str, turn: u32, more: &Value) {
        let mut payload = json!({"session_id": "5f1c2d3e-1111-4222-8333-abcdefabcdef", "cwd": self.sandbox.work(),
            "transcript_path": "/nowhere/s.jsonl", "permission_mode": "default", "hook_event_name": event,
            "prompt_id": format!("p{turn}")});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut command = self.sandbox.command(&["hook", "claude"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let ran = ended(child);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{event}: {ran:?}");
    }

    /// A turn of Claude Code with one shell command.
    fn turn(&self, turn: u32, play: impl FnOnce(&Sandbox)) {
        let call = json!({"tool_name": "Bash", "tool_use_id": format!("u{turn}"), "tool_input": {"command": "x"}});
        self.hook("UserPromptSubmit", turn, &json!({"prompt": "do it"}));
        self.hook("PreToolUse", turn, &call);
        play(&self.sandbox);
        self.hook("PostToolBatch", turn, &json!({"tool_calls": [call]}));
        self.hook("Stop", turn, &json!({"background_tasks": []}));
    }

    /// Story 2: two files edited, one made, one deleted.
    fn damage(sandbox: &Sandbox) {
        sandbox.write("README.md", "# the agent's\n");
        sandbox.write("src/a.rs", "the agent's\n");
        sandbox.write("src/new.rs", "made\n");
        sandbox.remove("old.txt");
    }

    fn check(&self, name: &str) {
        let top = self.sandbox.top();
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.add_filter(&insta_literal(&top), "[TOP]");
        settings.add_filter(r"\b[0-9a-f]{40}\b", "[PLAN]");
        settings.add_filter(r"\b[0-9a-f]{32}\b", "[FULL-ID]");
        settings.add_filter(
            r"(?:^|\b)(?P<word>point |undo |undo of |diff |newest     |preview |to |from |operation )[0-9a-f]{8}\b",
            "${word}[ID]",
        );
        settings.add_filter(r"(?m)^[0-9a-f]{8}(?P<rest>  \d)", "[ID]${rest}");
        settings.add_filter(r"\b\d\d:\d\d:\d\d\b", "[TIME]");
        settings.add_filter(r"\b\d+ B freed", "[N] B freed");
        settings.bind(|| insta::assert_snapshot!(name, self.seen.trim_end()));
    }
}

/// A path as a pattern.
fn insta_literal(path: &Path) -> String {
    let text = path.to_str().unwrap();
    text.chars().map(|c| if c.is_alphanumeric() || c == '/' { c.to_string() } else { format!("\\{c}") }).collect()
}

/// README, "With an agent": two commands, a turn, the way back and the way back from that (stories 1, 2, 4, 8).
#[test]
fn story_2_with_the_readme_at_hand() {
    let mut me = Stranger::new();
    let before = me.sandbox.tree();
    me.types("rwd").types("rwd init --yes");
    let hooked = me.sandbox.tree();
    me.types("rwd init --yes").types("rwd back");
    me.turn(1, Stranger::damage);
    let after = me.sandbox.tree();
    me.types("rwd").types("rwd status").types("rwd diff").types("rwd diff t1").types("rwd show t1");
    me.types("rwd preview t1^").types("rwd to t1^");
    assert_eq!(me.sandbox.tree(), after, "nothing was confirmed");
    me.types("rwd to t1^ --exact --yes");
    assert_eq!(me.sandbox.tree(), hooked);
    me.types("rwd undo --yes");
    assert_eq!(me.sandbox.tree(), after);
    me.types("rwd undo --yes").types("rwd redo --yes");
    assert_eq!(me.sandbox.tree(), hooked);
    me.types_in("src", "rwd to t1 --yes -- a.rs");
    assert_eq!(
        (me.sandbox.read("src/a.rs"), me.sandbox.read("README.md")),
        ("the agent's\n".into(), "# demo\n".into())
    );
    me.types("rwd back --exact --yes").types("rwd uninstall --yes").types("rwd uninstall --yes");
    assert_eq!(me.sandbox.tree(), before, "rwd left something in the project");
    me.check("readme_path");
}

/// What `rwd uninstall` itself removes does not count as somebody's edit: the way back stays open.
#[test]
fn after_uninstall_the_way_back_is_open() {
    let me = Stranger::new();
    me.sandbox.ok(&["init", "--yes"]);
    me.turn(1, Stranger::damage);
    me.sandbox.ok(&["uninstall", "--yes"]);
    assert!(!me.sandbox.has(".claude"));
    me.sandbox.ok(&["back", "--yes"]);
    assert_eq!((me.sandbox.read("README.md"), me.sandbox.read("old.txt")), ("# demo\n".into(), "old\n".into()));
    me.sandbox.ok(&["undo", "--yes"]);
    assert!(!me.sandbox.has(".claude") && !me.sandbox.has("old.txt"));
}

/// Words of other tools, targets with a letter missing, arguments left out: each answer says what to type instead.
#[test]
fn guesses_are_answered_by_a_command() {
    let mut me = Stranger::new();
    me.types("rwd init --yes --quiet");
    me.turn(1, Stranger::damage);
    for line in [
        "rwd list",
        "rwd rewind",
        "rwd checkpoint",
        "rwd version",
        "rwd bakc",
        "rwd to",
        "rwd show",
        "rwd session show",
        "rwd session list",
        "rwd completions",
        "rwd to 1",
        "rwd to t9",
        "rwd to nonsense",
        "rwd undo 1",
        "rwd undo undo",
        "rwd init --agent foo",
        "rwd run make",
        "rwd purge .env",
        "rwd drop init",
        "rwd to t1^ -- a[1].txt",
        "rwd -C /nowhere",
    ] {
        me.types(line);
    }
    me.check("guesses");
    let json = me.sandbox.json(2, &["list"]);
    assert_eq!(json["error"]["hints"], json!(["to see the timeline: rwd log", "rwd --help"]));
    // The same page, whichever way it is asked for.
    for verb in [&["to"][..], &["session", "list"], &[]] {
        let help = me.sandbox.ok(&[&["help"], verb].concat());
        assert_eq!(help.out, me.sandbox.ok(&[verb, &["--help"]].concat()).out);
    }
    assert_eq!(me.sandbox.rwd(&["help", "nonsense"]).code, 2);
}

/// Story 6: an edit made by hand is named, and the answer says whether it was kept.
#[test]
fn story_6_an_edit_of_ones_own() {
    let mut me = Stranger::new();
    me.types("rwd init --yes --quiet");
    me.turn(1, Stranger::damage);
    me.sandbox.write("README.md", "mine\n");
    me.types("rwd back --yes").types("rwd back --keep-drift --yes");
    assert_eq!((me.sandbox.read("README.md"), me.sandbox.read("src/a.rs")), ("mine\n".into(), "a\n".into()));
    me.types("rwd undo --yes").types("rwd back --overwrite README.md --yes");
    assert_eq!(me.sandbox.read("README.md"), "# demo\n");
    me.types("rwd undo --yes");
    assert_eq!(me.sandbox.read("README.md"), "mine\n");
    me.check("own_edit");
}

/// Two conversations: the timeline names each by a beginning of its id, and what it prints can be typed.
#[test]
fn sessions_are_shown_short_and_work_as_shown() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    for (end, text) in [("aaaa", "two\n"), ("bbbb", "three\n")] {
        sandbox.turn_of(&format!("codex:0199a1b2-c3d4-7{end}-8000-000000000000"), 1, |s| s.write("a", text));
    }
    let log = sandbox.ok(&["log"]).out;
    assert!(log.contains("  codex:0199a1b2-c3d4-7a\n") && log.contains("  codex:0199a1b2-c3d4-7b\n"), "{log}");
    let command = log.lines().last().unwrap().split_once("rwd ").unwrap().1;
    let diff = sandbox.ok(&command.split(' ').collect::<Vec<_>>()).out;
    assert!(diff.starts_with("1 path changed"), "{command}: {diff}");
}

/// An operation that another process is doing needs nobody to recover it; once that process is gone, it does.
#[test]
fn an_operation_under_way_elsewhere_is_not_offered_for_recovery() {
    let sandbox = crashed();
    let data = DataDir::new(sandbox.data());
    let workspace = Registry::new(data.clone()).list().unwrap().remove(0);
    let lock = data.workspace(&workspace.id).lock();
    let held = checkpoint_core::StoreLock::acquire(&lock, LockMode::Exclusive, std::time::Duration::ZERO).unwrap();
    for args in [&["log"][..], &["status"]] {
        let told = sandbox.ok(args).out;
        assert!(told.contains("operation 07070707 is under way in another process"), "{told}");
        assert!(!told.contains("recover"), "{told}");
        assert_eq!(sandbox.json(0, args)["unfinished"], "07".repeat(16));
    }
    drop(held);
    for args in [&["log"][..], &["status"]] {
        assert!(sandbox.ok(args).out.contains("unfinished: rwd recover --finish or rwd recover --back"));
    }
}

/// A purge that was interrupted after its batch is named by the doctor, and `rwd gc` finishes it as it says.
#[test]
fn doctor_names_an_interrupted_purge() {
    let sandbox = Sandbox::new();
    sandbox.write("key", "secret\n");
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    let purged = sandbox.json(0, &["purge", "key", "--yes"]);
    let operations = |sandbox: &Sandbox| {
        let checks = sandbox.json(0, &["doctor"])["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["check"] == "operations").unwrap()
    };
    assert_eq!(operations(&sandbox)["status"], "ok");
    let data = DataDir::new(sandbox.data());
    let workspace = Registry::new(data.clone()).list().unwrap().remove(0);
    let index = data.workspace(&workspace.id).open_index(IndexOptions::default()).unwrap();
    let mut operation = index.operations(&[OpKind::Purge], None).unwrap().remove(0);
    operation.state = OpState::Partial;
    let ops = vec![IndexOp::UpdateOperation { operation: Box::new(operation) }];
    index.apply(&Batch { follows: None, ops }).unwrap();
    drop(index);
    let check = operations(&sandbox);
    assert_eq!((check["status"].clone(), check["hint"].clone()), ("warning".into(), "rwd gc".into()), "{check}");
    let detail = check["detail"].as_str().unwrap();
    assert!(detail.starts_with(&purged["op"].as_str().unwrap()[..8]) && detail.contains("purged key"), "{detail}");
    sandbox.ok(&["gc"]);
    assert_eq!(operations(&sandbox)["status"], "ok");
}
