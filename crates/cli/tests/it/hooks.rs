//! Turns played through `rwd hook`, as agents report them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use testkit::transcripts::{self, Told, id_of, key_of};

use crate::sandbox::{Ran, Sandbox, ended, listed};

/// A session of an agent in a sandbox.
struct Agent<'a> {
    sandbox: &'a Sandbox,
    harness: &'static str,
    base: Value,
}

impl<'a> Agent<'a> {
    fn claude(sandbox: &'a Sandbox) -> Self {
        let base = json!({"session_id": "c-1", "transcript_path": "/nowhere/c-1.jsonl", "cwd": sandbox.work(),
            "permission_mode": "default"});
        Self { sandbox, harness: "claude", base }
    }

    fn codex(sandbox: &'a Sandbox) -> Self {
        let base = json!({"session_id": "x-1", "transcript_path": "/nowhere/rollout-x-1.jsonl", "cwd": sandbox.work(),
            "model": "m"});
        Self { sandbox, harness: "codex", base }
    }

    fn payload(&self, more: Value) -> String {
        merged(self.base.clone(), more).to_string()
    }

    /// One report, which never fails and never says anything on standard error.
    fn tell(&self, more: Value) -> Value {
        let ran = self.ran(more);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        if ran.out.is_empty() { json!({}) } else { serde_json::from_str(&ran.out).unwrap() }
    }

    fn ran(&self, more: Value) -> Ran {
        ended(begin(self.sandbox, &["hook", self.harness], self.payload(more).as_bytes()))
    }

    /// An event of Claude Code or Codex.
    fn event(&self, event: &str, key: &str, more: Value) -> Value {
        let name = if self.harness == "claude" { "prompt_id" } else { "turn_id" };
        self.tell(merged(json!({"hook_event_name": event, name: key}), more))
    }

    fn prompt(&self, key: &str) -> Value {
        self.event("UserPromptSubmit", key, json!({"prompt": "do it"}))
    }

    /// A tool of Claude Code, as a batch of its own.
    fn tool(&self, key: &str, tool: &str, call: &str, play: impl FnOnce(&Sandbox)) {
        let call = json!({"tool_name": tool, "tool_use_id": call, "tool_input": {"command": "x"}});
        assert_eq!(self.event("PreToolUse", key, call.clone()), json!({}));
        play(self.sandbox);
        if self.harness == "claude" {
            assert_eq!(self.event("PostToolBatch", key, json!({"tool_calls": [call]})), json!({}));
        } else {
            assert_eq!(self.event("PostToolUse", key, call), json!({}));
        }
    }

    fn stop(&self, key: &str) -> Value {
        self.event("Stop", key, json!({"background_tasks": []}))
    }
}

/// A run with something on standard input.
fn begin(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> Child {
    let mut command = sandbox.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A hook that needs nothing may be gone already.
    drop(child.stdin.take().unwrap().write_all(input));
    child
}

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "# one\n");
    sandbox.write("src/a.rs", "a\n");
    sandbox.write("src/b.rs", "b\n");
    sandbox.write("old.txt", "old\n");
    sandbox
}

/// Kinds and turns of all points, oldest first.
fn points(sandbox: &Sandbox) -> Vec<String> {
    let log = sandbox.json(0, &["log", "--all"]);
    let mut all: Vec<(i64, String)> = Vec::new();
    for list in ["points", "gaps"] {
        for point in log[list].as_array().unwrap() {
            let turn = point["turn"].as_u64().map_or("-".to_owned(), |turn| turn.to_string());
            let kind = point["kind"].as_str().unwrap_or("gap");
            all.push((point["at"].as_i64().unwrap_or_default(), format!("{kind} {turn}")));
        }
    }
    all.into_iter().map(|(_, word)| word).collect()
}

fn starts(sandbox: &Sandbox) -> usize {
    points(sandbox).iter().filter(|point| point.starts_with("turn-start")).count()
}

/// Story 2 as a real turn: two files edited, one made, one deleted by a shell.
#[test]
fn story_2_a_turn_of_claude_is_taken_back_and_the_model_is_told_once() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    let before = sandbox.tree();
    let told = agent.prompt("p1");
    assert!(told["systemMessage"].as_str().unwrap().contains("is a workspace from now on"), "{told}");
    agent.tool("p1", "Edit", "t1", |s| {
        s.write("src/a.rs", "A\n");
        s.write("src/b.rs", "B\n");
    });
    agent.tool("p1", "Bash", "t2", |s| {
        s.write("new.txt", "new\n");
        s.remove("old.txt");
    });
    assert_eq!(agent.stop("p1"), json!({}));
    let after = sandbox.tree();
    assert_eq!(points(&sandbox), ["turn-start 1", "step 1", "step 1", "turn-end 1"]);
    let went = sandbox.json(0, &["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
    assert_eq!(listed(&went["restored"]), ["old.txt", "src/a.rs", "src/b.rs"]);
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(sandbox.tree(), after);
    sandbox.ok(&["redo", "--yes"]);
    assert_eq!(sandbox.tree(), before);
    // Restored, undone and redone: what counts is what is different.
    let told = agent.prompt("p2");
    let told = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned();
    for part in ["3 paths restored (old.txt, src/a.rs, src/b.rs)", "1 path removed (new.txt)", "read a file again"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    agent.tool("p2", "Write", "t3", |s| s.write("src/a.rs", "AA\n"));
    agent.stop("p2");
    assert_eq!(agent.prompt("p3"), json!({}), "told twice");
    sandbox.ok(&["to", "t2^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
    // What was taken back again is as the model left it.
    sandbox.ok(&["undo", "--yes"]);
    assert_eq!(agent.prompt("p4"), json!({}));
}

/// Story 3 as a real turn of Codex, whose patch through the shell is never reported to have ended.
#[test]
fn story_3_shell_damage_in_a_turn_of_codex_goes_back() {
    let sandbox = project();
    sandbox.write("src/legacy/x y\nz.txt", "odd name\n");
    sandbox.write("src/legacy/empty", "");
    sandbox.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(sandbox.work().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(sandbox.work().join("src/hollow")).unwrap();
    symlink("../README.md", sandbox.work().join("src/legacy/link")).unwrap();
    let before = sandbox.tree();
    let agent = Agent::codex(&sandbox);
    agent.prompt("u1");
    let patch = json!({"tool_name": "Bash", "tool_use_id": "exec-1", "tool_input": {"command": "apply_patch <<EOF"}});
    agent.event("PreToolUse", "u1", patch);
    sandbox.write("src/a.rs", "patched\n");
    agent.tool("u1", "Bash", "exec-2", |s| {
        fs::remove_dir_all(s.work().join("src/legacy")).unwrap();
        fs::remove_dir(s.work().join("src/hollow")).unwrap();
        s.write("run.sh", "rm -rf /\n");
        fs::set_permissions(s.work().join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::rename(s.work().join("src/b.rs"), s.work().join("src/c.rs")).unwrap();
    });
    agent.event("Stop", "u1", json!({"stop_hook_active": false}));
    agent.tell(json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    assert_eq!(points(&sandbox), ["turn-start 1", "mutation 1", "step 1", "turn-end 1"]);
    sandbox.ok(&["to", "t1^", "--files", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
}

/// Story 6: hand edits between turns survive, also under a later turn; the damage of an interrupted turn goes back.
#[test]
fn story_6_hand_edits_survive_and_an_interrupted_turn_is_taken_back() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    agent.prompt("p1");
    agent.tool("p1", "Edit", "t1", |s| s.write("README.md", "# agent\n"));
    agent.stop("p1");
    sandbox.write("README.md", "# by hand\n");
    sandbox.write("notes.md", "mine\n");
    for turn in [1, 2] {
        if turn == 2 {
            agent.prompt("p2");
            agent.tool("p2", "Edit", "t2", |s| s.write("README.md", "# by hand, and agent\n"));
            agent.stop("p2");
        }
        let refused = sandbox.json(3, &["to", "t1^", "--yes"]);
        assert!(refused["error"]["paths"].to_string().contains("README.md"), "{refused}");
    }
    // An interrupt in the middle of a tool: Claude Code tells it by the end of the session, or not at all.
    for told in [true, false] {
        let begun = sandbox.tree();
        agent.prompt(&format!("i-{told}"));
        agent.event(
            "PreToolUse",
            &format!("i-{told}"),
            json!({"tool_name": "Bash", "tool_use_id": format!("b-{told}")}),
        );
        sandbox.write("src/a.rs", format!("half {told}\n"));
        sandbox.remove("src/b.rs");
        if told {
            agent.event("SessionEnd", &format!("i-{told}"), json!({"reason": "other"}));
        }
        let turn = if told { "t3^" } else { "t4^" };
        sandbox.ok(&["to", turn, "--exact", "--yes"]);
        assert_eq!(sandbox.tree(), begun);
    }
}

/// What a real run showed: a sub-agent writes after the main agent's stop, then a prompt comes that nobody wrote.
#[test]
fn a_turn_lasts_as_long_as_its_sub_agents_and_background_tasks() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    let before = sandbox.tree();
    let sub = |more: Value| merged(json!({"agent_id": "a1", "agent_type": "general-purpose"}), more);
    agent.prompt("p1");
    agent.event("PreToolUse", "p1", json!({"tool_name": "Agent", "tool_use_id": "t1"}));
    agent.event("SubagentStart", "p1", sub(json!({})));
    agent.event("PostToolBatch", "p1", json!({"tool_calls": [{"tool_name": "Agent", "tool_use_id": "t1"}]}));
    let call = json!({"tool_name": "Write", "tool_use_id": "t2"});
    agent.event("PreToolUse", "p1", sub(call.clone()));
    agent.event("Stop", "p1", json!({"background_tasks": [{"id": "a1", "status": "running"}]}));
    sandbox.write("helper.txt", "helper\n");
    agent.event("PostToolBatch", "p1", sub(json!({"tool_calls": [call]})));
    agent.event("SubagentStop", "p1", sub(json!({"background_tasks": [{"id": "a1"}]})));
    assert!(!points(&sandbox).iter().any(|point| point.starts_with("turn-end")), "{:?}", points(&sandbox));
    agent.event("UserPromptSubmit", "p9", json!({"prompt": "<task-notification>\n<task-id>a1</task-id>"}));
    agent.tool("p9", "Edit", "t3", |s| s.write("src/a.rs", "from the helper\n"));
    agent.stop("p9");
    assert_eq!((starts(&sandbox), points(&sandbox).last().unwrap().as_str()), (1, "turn-end 1"));
    sandbox.ok(&["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
}

/// A stop that another hook forbids: the same turn goes on, and all of it goes back.
#[test]
fn a_turn_that_goes_on_after_its_end_is_one_turn() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    let before = sandbox.tree();
    agent.prompt("p1");
    agent.tool("p1", "Edit", "t1", |s| s.write("src/a.rs", "one\n"));
    agent.stop("p1");
    agent.tool("p1", "Edit", "t2", |s| s.write("src/b.rs", "two\n"));
    agent.stop("p1");
    let after = sandbox.tree();
    assert_eq!(starts(&sandbox), 1);
    agent.prompt("p2");
    agent.tool("p2", "Edit", "t3", |s| s.write("src/b.rs", "three\n"));
    agent.stop("p2");
    sandbox.ok(&["to", "t1", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), after);
    sandbox.ok(&["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn an_interrupt_of_codex_is_noted_and_takes_no_point() {
    let sandbox = project();
    let agent = Agent::codex(&sandbox);
    let before = sandbox.tree();
    agent.prompt("u1");
    agent.event("PreToolUse", "u1", json!({"tool_name": "Bash", "tool_use_id": "c1"}));
    sandbox.write("src/a.rs", "half\n");
    agent.event("Interrupt", "u1", json!({}));
    agent.tell(json!({"hook_event_name": "SessionEnd", "reason": "other"}));
    assert_eq!(points(&sandbox), ["turn-start 1"]);
    sandbox.ok(&["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
}

/// One turn of each of the others, of which each reports differently; then a second.
#[test]
fn turns_of_the_other_agents_are_taken_back() {
    type Play = fn(&Sandbox, u32) -> Vec<Value>;
    let others: [(&'static str, Play); 4] = [
        ("gemini", |s, n| {
            let event = |name: &str, more: Value| {
                merged(
                    json!({"session_id": "g", "hook_event_name": name, "cwd": s.work(),
                "transcript_path": "/nowhere/session.jsonl", "timestamp": format!("2026-11-30T18:34:3{n}.000Z")}),
                    more,
                )
            };
            let tool = json!({"tool_name": "replace", "tool_input": {"file_path": "a"}});
            vec![
                event("BeforeAgent", json!({"prompt": "do it"})),
                event("BeforeTool", tool.clone()),
                event("AfterTool", tool),
                event("AfterAgent", json!({})),
            ]
        }),
        ("opencode", |s, n| {
            let event = |hook: &str, more: Value| {
                merged(json!({"hook": hook, "directory": s.work(), "sessionID": "ses_1"}), more)
            };
            let tool = json!({"tool": "edit", "callID": format!("call_{n}")});
            vec![
                event("chat.message", json!({"messageID": format!("msg_{n}")})),
                event("tool.execute.before", tool.clone()),
                event("tool.execute.after", tool),
                event("event", json!({"type": "session.idle"})),
            ]
        }),
        ("cursor", |s, n| {
            let event = |name: &str, more: Value| {
                merged(
                    json!({"conversation_id": "q", "generation_id": format!("g{n}"),
                "workspace_roots": [s.work()], "hook_event_name": name, "cursor_version": "3.1"}),
                    more,
                )
            };
            vec![
                event("beforeSubmitPrompt", json!({"prompt": "do it"})),
                event("preToolUse", json!({"tool_name": "Write"})),
                event("afterFileEdit", json!({"file_path": s.work().join("src/a.rs"), "edits": []})),
                event("stop", json!({"status": "completed"})),
            ]
        }),
        ("cline", |s, n| {
            let event = |name: &str, more: Value| {
                merged(
                    json!({"hookName": name, "taskId": "k", "clineVersion": "4.0",
                "timestamp": n, "workspaceRoots": [s.work()]}),
                    more,
                )
            };
            vec![
                event("prompt_submit", json!({})),
                event("tool_call", json!({"tool_call": {"id": format!("i{n}"), "name": "write_to_file"}})),
                event("tool_result", json!({"tool_result": {"id": format!("i{n}"), "name": "write_to_file"}})),
                event("agent_end", json!({})),
            ]
        }),
    ];
    for (agent, play) in others {
        let sandbox = project();
        let mut befores = Vec::new();
        for turn in [1, 2] {
            befores.push(sandbox.tree());
            for (at, payload) in play(&sandbox, turn).into_iter().enumerate() {
                let text = payload.to_string();
                let ran = ended(begin(&sandbox, &["hook", agent], text.as_bytes()));
                assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{agent}: {ran:?}");
                if at == 1 {
                    sandbox.write("src/a.rs", format!("{agent} {turn}\n"));
                    sandbox.write(format!("made-{turn}"), "x");
                }
            }
        }
        let expected = ["turn-start 1", "step 1", "turn-end 1", "turn-start 2", "step 2", "turn-end 2"];
        assert_eq!(points(&sandbox), expected, "{agent}");
        for (turn, before) in ["t2^", "t1^"].into_iter().zip(befores.iter().rev()) {
            sandbox.ok(&["to", turn, "--exact", "--yes"]);
            assert_eq!(&sandbox.tree(), before, "{agent} {turn}");
        }
        let note = play(&sandbox, 3).remove(0).to_string();
        let ran = ended(begin(&sandbox, &["hook", agent], note.as_bytes()));
        assert_eq!(ran.out.contains("src/a.rs"), agent != "cursor", "{agent}: {}", ran.out);
    }
}

fn merged(one: Value, more: Value) -> Value {
    match (one, more) {
        (Value::Object(mut one), Value::Object(more)) => {
            one.extend(more);
            Value::Object(one)
        }
        other => panic!("no objects: {other:?}"),
    }
}

/// A task of opencode has a conversation of its own.
#[test]
fn a_task_of_opencode_works_in_its_parents_turn() {
    let sandbox = project();
    let tell = |more: Value| {
        let payload = merged(json!({"directory": sandbox.work()}), more).to_string();
        let ran = ended(begin(&sandbox, &["hook", "opencode"], payload.as_bytes()));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    };
    tell(json!({"hook": "chat.message", "sessionID": "ses_p", "messageID": "msg_1"}));
    tell(json!({"hook": "tool.execute.before", "sessionID": "ses_p", "callID": "c1", "tool": "task"}));
    tell(json!({"hook": "event", "type": "session.created", "sessionID": "ses_c", "parentID": "ses_p"}));
    tell(json!({"hook": "chat.message", "sessionID": "ses_c", "messageID": "msg_2"}));
    tell(json!({"hook": "tool.execute.before", "sessionID": "ses_c", "callID": "c2", "tool": "write"}));
    sandbox.write("src/a.rs", "task\n");
    tell(json!({"hook": "event", "type": "session.idle", "sessionID": "ses_c"}));
    tell(json!({"hook": "tool.execute.after", "sessionID": "ses_p", "callID": "c1", "tool": "task"}));
    tell(json!({"hook": "event", "type": "session.idle", "sessionID": "ses_p"}));
    let log = sandbox.json(0, &["log", "--all"]);
    let sessions: Vec<&str> =
        log["points"].as_array().unwrap().iter().map(|point| point["session"].as_str().unwrap()).collect();
    assert!(sessions.iter().all(|session| *session == "opencode:ses_p"), "{sessions:?}");
    assert_eq!((starts(&sandbox), points(&sandbox).last().unwrap().as_str()), (1, "turn-end 1"));
}

/// Hooks may be installed twice, and run at the same time.
#[test]
fn reports_that_come_twice_or_together_are_one() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    let together = |payload: Value| {
        let payload = agent.payload(payload);
        let all: Vec<Child> = (0..6).map(|_| begin(&sandbox, &["hook", "claude"], payload.as_bytes())).collect();
        for child in all {
            let ran = ended(child);
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
        }
    };
    together(json!({"hook_event_name": "UserPromptSubmit", "prompt_id": "p1", "prompt": "do it"}));
    let call = json!({"tool_name": "Edit", "tool_use_id": "t1"});
    together(merged(json!({"hook_event_name": "PreToolUse", "prompt_id": "p1"}), call.clone()));
    sandbox.write("src/a.rs", "A\n");
    together(json!({"hook_event_name": "PostToolBatch", "prompt_id": "p1", "tool_calls": [call]}));
    together(json!({"hook_event_name": "Stop", "prompt_id": "p1", "background_tasks": []}));
    together(json!({"hook_event_name": "UserPromptSubmit", "prompt_id": "p1", "prompt": "do it"}));
    assert_eq!(points(&sandbox), ["turn-start 1", "step 1", "turn-end 1"]);
}

/// What is remembered beside the index may be lost at any time.
#[test]
fn a_turn_goes_on_when_what_was_remembered_of_it_is_lost() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    let before = sandbox.tree();
    let lose = || {
        for entry in fs::read_dir(sandbox.store().join("hooks")).unwrap() {
            fs::write(entry.unwrap().path(), "{").unwrap();
        }
    };
    agent.prompt("p1");
    lose();
    agent.prompt("p1");
    lose();
    agent.tool("p1", "Edit", "t1", |s| s.write("src/a.rs", "A\n"));
    lose();
    agent.stop("p1");
    assert_eq!((starts(&sandbox), points(&sandbox).last().unwrap().as_str()), (1, "turn-end 1"));
    lose();
    agent.prompt("p2");
    agent.tool("p2", "Edit", "t2", |s| s.write("src/a.rs", "AA\n"));
    agent.stop("p2");
    assert_eq!(points(&sandbox).last().unwrap(), "turn-end 2");
    sandbox.ok(&["to", "t1^", "--exact", "--yes"]);
    assert_eq!(sandbox.tree(), before);
}

/// A tool that only reads costs nothing: not even the data directory is made.
#[test]
fn what_changes_nothing_leaves_no_trace() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    for event in ["PreToolUse", "PostToolUse"] {
        assert_eq!(agent.event(event, "p1", json!({"tool_name": "Read", "tool_use_id": "r"})), json!({}));
    }
    agent.tell(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    agent.event("PreCompact", "p1", json!({"trigger": "auto"}));
    agent.event("MessageDisplay", "p1", json!({"delta": "x"}));
    agent.stop("p1");
    agent.event("SessionEnd", "p1", json!({}));
    assert!(!sandbox.data().exists());
    // Neither a home directory nor one of the system becomes a workspace.
    for place in [sandbox.home(), "/usr".into(), "/".into()] {
        let payload = json!({"session_id": "s", "prompt_id": "p", "cwd": place, "hook_event_name": "UserPromptSubmit"});
        let mut command = sandbox.command(&["hook", "claude"]);
        command.current_dir(&place).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()));
        let ran = ended(child);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{place:?}");
    }
    assert!(!sandbox.data().join("workspaces").exists());
}

/// Whatever is typed or sent: the code is 0, standard error is empty, what is printed is an answer.
#[test]
fn no_hook_ever_fails() {
    let sandbox = project();
    let prompt = r#"{"session_id":"s","prompt_id":"p","hook_event_name":"UserPromptSubmit","prompt":"x"}"#;
    let lines: [&[&str]; 9] = [
        &["hook"],
        &["hook", "nobody"],
        &["hook", "--bogus"],
        &["hook", "claude", "more", "--and", "more"],
        &["--json", "hook", "claude", "--color", "sometimes"],
        &["--color", "sometimes", "--json", "hook", "claude"],
        &["-C", "/nowhere", "hook", "claude"],
        &["--data-dir", "/dev/null/x", "hook", "gemini"],
        &["--session", "!", "hook", "codex"],
    ];
    let deep = "[".repeat(100_000);
    let inputs = ["", "{", "null", "[]", "\u{0}", "{\"session_id\":{}}", &deep, prompt, "{\"hook\":\"chat.message\"}"];
    for line in lines {
        for input in inputs {
            let ran = ended(begin(&sandbox, line, input.as_bytes()));
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?} {input:.40}: {ran:?}");
            let answer = ran.out.is_empty() || serde_json::from_str::<Value>(&ran.out).is_ok_and(|v| v.is_object());
            assert!(answer && !ran.out.contains("rwd.error"), "{line:?} {input:.40}: {}", ran.out);
        }
    }
    // Without any standard input, and in a directory that is gone.
    let ran = sandbox.rwd(&["hook", "claude"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let gone = sandbox.top().join("gone");
    fs::create_dir(&gone).unwrap();
    let mut command = std::process::Command::new("sh");
    let script =
        format!("rmdir {} && printf '%s' '{prompt}' | {} hook claude", gone.display(), env!("CARGO_BIN_EXE_rwd"));
    command.args(["-c", &script]).current_dir(&gone).env("HOME", sandbox.home());
    let ran = crate::sandbox::ran(&mut command);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    // Help is for people.
    assert!(sandbox.rwd(&["hook", "--help"]).out.contains("cursor"));
}

/// A capture that does not happen is a gap, told once; with `block` the tool does not run.
#[test]
fn a_gap_is_told_once_and_blocks_only_where_that_was_asked_for() {
    let busy = |sandbox: &Sandbox| {
        let lock = fs::OpenOptions::new().read(true).write(true).open(sandbox.store().join("lock")).unwrap();
        lock.lock().unwrap();
        lock
    };
    let sandbox = project().with("RWD_HOOK_DEADLINE_MS", "30");
    let agent = Agent::claude(&sandbox);
    agent.prompt("p1");
    agent.stop("p1");
    let held = busy(&sandbox);
    let told = agent.prompt("p2");
    assert!(told["systemMessage"].as_str().unwrap().contains("not protected in full: "), "{told}");
    assert_eq!(agent.prompt("p3"), json!({}), "told twice");
    // Never captured, so tried again before the tool; the tool runs all the same.
    let call = |id: &str| json!({"tool_name": "Edit", "tool_use_id": id});
    assert_eq!(agent.event("PreToolUse", "p3", call("t1")), json!({}));
    drop(held);
    sandbox.write("src/a.rs", "A\n");
    agent.event("PostToolBatch", "p3", json!({"tool_calls": [call("t1")]}));
    let gaps = sandbox.json(0, &["log", "--all"])["gaps"].to_string();
    assert!(gaps.contains("busy"), "{gaps}");

    let sandbox = project().with("RWD_HOOK_DEADLINE_MS", "30").with("RWD_HOOK_ON_CAPTURE_FAILURE", "block");
    Agent::claude(&sandbox).prompt("p1");
    Agent::codex(&sandbox).prompt("u1");
    let held = busy(&sandbox);
    for agent in [Agent::claude(&sandbox), Agent::codex(&sandbox)] {
        let key = if agent.harness == "claude" { "p1" } else { "u1" };
        // Nothing has changed since the turn's start: its point stands for this tool.
        assert_eq!(agent.event("PreToolUse", key, call("t1")), json!({}));
        let denied = agent.event("PreToolUse", key, call("t2"));
        assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny", "{denied}");
        assert_eq!(agent.event("PreToolUse", key, json!({"tool_name": "Grep", "tool_use_id": "g"})).get("x"), None);
    }
    for (agent, payload, word) in [
        ("gemini", json!({"hook_event_name": "BeforeTool", "tool_name": "replace"}), "\"decision\":\"deny\""),
        (
            "cursor",
            json!({"hook_event_name": "preToolUse", "cursor_version": "3", "tool_name": "Write"}),
            "\"permission\":\"deny\"",
        ),
        ("opencode", json!({"hook": "tool.execute.before", "tool": "edit"}), "\"deny\":\"rwd could not"),
        (
            "cline",
            json!({"hookName": "tool_call", "taskId": "k", "tool_call": {"name": "write_to_file"}}),
            "\"cancel\":true",
        ),
    ] {
        let ran = ended(begin(&sandbox, &["hook", agent], payload.to_string().as_bytes()));
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains(word), "{agent}: {}", ran.out);
    }
    drop(held);
}

/// A store that cannot be written stops nobody, and says so with the prompt.
#[test]
fn a_store_that_cannot_be_used_stops_nobody() {
    let sandbox = project();
    fs::create_dir_all(sandbox.data().parent().unwrap()).unwrap();
    fs::write(sandbox.data(), "in the way").unwrap();
    let agent = Agent::claude(&sandbox);
    let told = agent.prompt("p1");
    assert!(told["systemMessage"].as_str().unwrap().contains("not protected in full"), "{told}");
    agent.tool("p1", "Edit", "t1", |s| s.write("src/a.rs", "A\n"));
    assert_eq!(agent.stop("p1"), json!({}));
    assert_eq!(fs::read_to_string(sandbox.data()).unwrap(), "in the way");
    // A store that breaks in the middle: the index is there, the objects are not.
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    agent.prompt("p1");
    let git = sandbox.store().join("git");
    fs::rename(&git, sandbox.store().join("away")).unwrap();
    fs::write(&git, "in the way").unwrap();
    let call = json!({"tool_name": "Edit", "tool_use_id": "t1"});
    assert_eq!(agent.event("PreToolUse", "p1", call.clone()), json!({}));
    let told = agent.event("PostToolBatch", "p1", json!({"tool_calls": [call]}));
    assert!(told["systemMessage"].as_str().unwrap_or_default().contains("not protected in full"), "{told}");
    // No gap can be recorded there, so that each prompt tells.
    for key in ["p2", "p2"] {
        let told = agent.prompt(key);
        assert!(told["systemMessage"].as_str().unwrap_or_default().contains("not protected in full"), "{told}");
    }
    // Whole again: the turn that could not be begun begins at its first tool.
    fs::remove_file(&git).unwrap();
    fs::rename(sandbox.store().join("away"), &git).unwrap();
    agent.tool("p2", "Edit", "t2", |s| s.write("src/a.rs", "AA\n"));
    agent.stop("p2");
    assert_eq!(points(&sandbox).last().unwrap(), "turn-end 2");
}

/// A malformed setting of the workspace is something an agent can write; one of the user's is told.
#[test]
fn a_malformed_setting_of_the_workspace_does_not_switch_captures_off() {
    let sandbox = project();
    sandbox.write(".rwd.toml", "capture = 7\n");
    let agent = Agent::claude(&sandbox);
    agent.prompt("p1");
    sandbox.remove(".rwd.toml");
    assert_eq!(starts(&sandbox), 1);
    let sandbox = project().with("RWD_LOCK_WAIT_MS", "soon");
    let told = Agent::claude(&sandbox).prompt("p1");
    assert!(told["systemMessage"].as_str().unwrap().contains("lock.wait_ms"), "{told}");
}

/// The number of a turn is that of its prompt in the transcript, wherever rwd came in.
#[test]
fn turns_are_numbered_as_in_the_transcript() {
    let sandbox = project();
    let transcript = sandbox.home().join("c-1.jsonl");
    let row = |n: u32| {
        let parent = if n == 1 { "null".to_owned() } else { format!("\"u{}\"", n - 1) };
        format!(
            r#"{{"type":"user","uuid":"u{n}","parentUuid":{parent},"sessionId":"c-1","promptId":"p{n}","isSidechain":false,"timestamp":"2026-11-30T18:00:00.000Z","cwd":"/srv","message":{{"role":"user","content":"do it"}}}}"#
        ) + "\n"
    };
    fs::write(&transcript, (1..=3).map(row).collect::<String>()).unwrap();
    let mut agent = Agent::claude(&sandbox);
    agent.base["transcript_path"] = transcript.to_str().unwrap().into();
    agent.prompt("p3");
    agent.stop("p3");
    // Not written yet.
    agent.prompt("p4");
    agent.stop("p4");
    assert_eq!(points(&sandbox), ["turn-start 3", "turn-end 3", "turn-start 4", "turn-end 4"]);
    // A path that is no file is not opened.
    let fifo = sandbox.home().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from(0o600)).unwrap();
    agent.base["transcript_path"] = fifo.to_str().unwrap().into();
    agent.prompt("p5");
    assert_eq!(points(&sandbox).last().unwrap(), "turn-start 5");
}

/// The workspace is that of the project, not of wherever the agent went.
#[test]
fn a_directory_that_moves_does_not_move_the_workspace() {
    let sandbox = project();
    let agent = Agent::claude(&sandbox);
    agent.prompt("p1");
    let below = sandbox.work().join("src");
    let payload = agent.payload(json!({"hook_event_name": "UserPromptSubmit", "prompt_id": "p2", "cwd": below}));
    let mut command = sandbox.command(&["hook", "claude"]);
    command.current_dir(&below).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    assert_eq!(ended(child).code, 0);
    assert_eq!(starts(&sandbox), 2);
    // The declared project counts before the current directory.
    let elsewhere = sandbox.top().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = sandbox.command(&["hook", "claude"]);
    command
        .current_dir(&elsewhere)
        .env("CLAUDE_PROJECT_DIR", sandbox.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let payload = agent.payload(json!({"hook_event_name": "UserPromptSubmit", "prompt_id": "p3", "cwd": elsewhere}));
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    assert_eq!(ended(child).code, 0);
    assert_eq!(starts(&sandbox), 3);
    assert!(Path::new(&sandbox.store()).exists());
}

/// The conversation goes back with the files, found by the client's own name of the turn; the child's model and the
/// parent's are each told once.
#[test]
fn a_child_of_a_conversation_is_told_once_what_was_restored() {
    let sandbox = project();
    let id = id_of(1, 7);
    let project = sandbox.home().join(".claude/projects/-work");
    fs::create_dir_all(&project).unwrap();
    let log = project.join(format!("{id}.jsonl"));
    let mut agent = Agent::claude(&sandbox);
    agent.base["session_id"] = id.as_str().into();
    agent.base["transcript_path"] = log.to_str().unwrap().into();
    let cwd = sandbox.work();
    let mut before = Vec::new();
    for turn in 1..=3 {
        before.push(sandbox.tree());
        let turns: Vec<Told> = (1..=turn).map(|n| Told::plain(&format!("ask {n}"))).collect();
        let lines = transcripts::claude(&id, cwd.to_str().unwrap(), &turns);
        let key = key_of(turn);
        agent.prompt(&key);
        fs::write(&log, lines.join("\n") + "\n").unwrap();
        agent.tool(&key, "Edit", &format!("t{turn}"), |s| s.write("src/a.rs", format!("{turn}\n")));
        agent.stop(&key);
    }
    let went = sandbox.json(0, &["to", "t2^", "--both", "--exact", "--yes", "--session", &format!("claude:{id}")]);
    assert_eq!(sandbox.tree(), before[1]);
    let child = went["childSessionId"].as_str().unwrap().to_owned();
    let asked = |agent: &Agent<'_>, key: &str| agent.prompt(key)["hookSpecificOutput"]["additionalContext"].to_string();
    assert!(asked(&agent, "later").contains("1 path restored (src/a.rs)"));
    assert_eq!(asked(&agent, "still later"), "null");
    agent.base["session_id"] = child.as_str().into();
    agent.base["transcript_path"] = project.join(format!("{child}.jsonl")).to_str().unwrap().into();
    assert!(asked(&agent, "c1").contains("1 path restored (src/a.rs)"));
    assert_eq!(asked(&agent, "c2"), "null");
    // The child goes on where it was cut: its first turn of its own is the second.
    let log = sandbox.json(0, &["log", "--all"]);
    let own = |point: &&Value| point["session"] == format!("claude:{child}");
    let first = log["points"].as_array().unwrap().iter().find(own).unwrap().clone();
    assert_eq!((first["kind"].as_str(), first["turn"].as_u64()), (Some("turn-start"), Some(2)), "{first}");
}
