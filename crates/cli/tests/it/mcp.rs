//! `rwd mcp` from outside (design § 10): what an agent's model and its client see. Without the feature, that it says so.

use crate::sandbox::Sandbox;

#[cfg(not(feature = "mcp"))]
#[test]
fn a_build_without_mcp_says_how_to_get_it() {
    let ran = Sandbox::new().rwd(&["mcp"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("built without MCP") && ran.err.contains("--features mcp"), "{ran:?}");
    assert!(ran.out.is_empty(), "{ran:?}");
}

#[cfg(feature = "mcp")]
mod served {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdin, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::Sandbox;
    use crate::schema;

    /// Longer than anything takes that does not hang.
    const PATIENCE: Duration = Duration::from_mins(1);

    /// What a person does with a question.
    type Reply = Box<dyn Fn(&str) -> Value>;

    struct Client {
        child: Child,
        stdin: Option<ChildStdin>,
        lines: Receiver<String>,
        next: u64,
        reply: Option<Reply>,
        /// Questions that were put.
        asked: Vec<String>,
    }

    impl Client {
        fn start(sandbox: &Sandbox, reply: Option<Reply>) -> Self {
            Self::start_with(sandbox, &["mcp"], reply)
        }

        fn start_with(sandbox: &Sandbox, args: &[&str], reply: Option<Reply>) -> Self {
            let mut command = sandbox.command(args);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
            let mut child = command.spawn().unwrap();
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
            let (sender, lines) = channel();
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines() {
                    if line.map_or(true, |line| sender.send(line).is_err()) {
                        break;
                    }
                }
            });
            let capabilities = if reply.is_some() { json!({"elicitation": {}}) } else { json!({}) };
            let mut client = Self { child, stdin, lines, next: 0, reply, asked: Vec::new() };
            let greeting = client.request(
                "initialize",
                &json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "0"}}),
            );
            assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
            assert_eq!(greeting["result"]["serverInfo"]["name"], "rwd");
            client.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
            client
        }

        fn raw(&mut self, line: &[u8]) {
            let stdin = self.stdin.as_mut().unwrap();
            stdin.write_all(line).unwrap();
            stdin.flush().unwrap();
        }

        fn message(&self) -> Value {
            serde_json::from_str(&self.lines.recv_timeout(PATIENCE).expect("a line")).unwrap()
        }

        fn request(&mut self, method: &str, params: &Value) -> Value {
            self.next += 1;
            let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
            self.raw((message.to_string() + "\n").as_bytes());
            loop {
                let message = self.message();
                if message["method"] == "elicitation/create" {
                    let question = message["params"]["message"].as_str().unwrap().to_owned();
                    assert_eq!(message["params"]["requestedSchema"]["type"], "object");
                    let result = self.reply.as_ref().expect("nobody said that people can be asked")(&question);
                    self.asked.push(question);
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    self.raw((answer.to_string() + "\n").as_bytes());
                } else if message["id"] == self.next {
                    return message;
                }
            }
        }

        /// A call that must go well; what it answers is as the tool said it would be.
        fn ok(&mut self, tool: &str, arguments: &Value) -> Value {
            let result = self.call(tool, arguments);
            assert_eq!(result["isError"], false, "{tool}: {result}");
            assert!(!result["content"][0]["text"].as_str().unwrap().is_empty(), "{tool}");
            schema::check(&result["structuredContent"]);
            result
        }

        fn call(&mut self, tool: &str, arguments: &Value) -> Value {
            self.request("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
        }

        /// The code of the failure that a call must end with.
        fn code(&mut self, tool: &str, arguments: &Value) -> String {
            let result = self.call(tool, arguments);
            assert_eq!(result["isError"], true, "{tool}: {result}");
            assert!(result.get("structuredContent").is_none(), "{result}");
            let code = result["_meta"]["rwd/error"]["code"].as_str().unwrap().to_owned();
            let told = result["content"][0]["text"].as_str().unwrap();
            assert!(told.contains("error: ") && told.ends_with(&format!("code: {code}")), "{told}");
            code
        }

        fn end(mut self) -> Option<i32> {
            drop(self.stdin.take());
            self.child.wait().unwrap().code()
        }
    }

    fn action(action: &'static str) -> Reply {
        Box::new(move |_| json!({"action": action, "content": {}}))
    }

    /// A turn that wrote `a` and left `b`.
    fn played() -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.write("a", "one\n");
        sandbox.turn(1, |sandbox| {
            sandbox.write("a", "two\n");
            sandbox.write("b", "new\n");
        });
        sandbox
    }

    #[test]
    fn every_tool_is_told_with_what_it_takes_gives_and_risks() {
        let sandbox = Sandbox::new();
        let mut client = Client::start(&sandbox, None);
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["list", "diff", "preview", "restore", "undo", "save", "name", "mark"]);
        let page = include_str!("../../../../docs/mcp.md");
        for tool in &tools {
            let hints = &tool["annotations"];
            let risky = ["restore", "undo"].contains(&tool["name"].as_str().unwrap());
            let reads = ["list", "diff", "preview"].contains(&tool["name"].as_str().unwrap());
            assert_eq!((&hints["destructiveHint"], &hints["readOnlyHint"]), (&json!(risky), &json!(reads)), "{tool}");
            assert_eq!(hints["openWorldHint"], false);
            assert!(hints["idempotentHint"].is_boolean());
            assert_eq!(
                (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
                (&json!("object"), &json!("object"))
            );
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            assert!(page.contains(&format!("| `{}` |", tool["name"].as_str().unwrap())), "{tool} is not on the page");
            for argument in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
                assert!(page.contains(&format!("`{argument}`")), "{argument} is not on the page");
            }
        }
        assert_eq!(client.end(), Some(0));
    }

    #[test]
    fn looking_needs_nobody() {
        let sandbox = played();
        let before = sandbox.tree();
        let mut client = Client::start(&sandbox, None);
        let listed = client.ok("list", &json!({"limit": 2}));
        assert_eq!(listed["structuredContent"]["points"].as_array().unwrap().len(), 2);
        let id = listed["structuredContent"]["points"][0]["id"].as_str().unwrap().to_owned();
        let patch = client.ok("diff", &json!({"form": "patch", "paths": ["a"]}));
        assert!(patch["content"][0]["text"].as_str().unwrap().contains("+two"), "{patch}");
        assert_eq!(patch["structuredContent"]["changes"].as_array().unwrap().len(), 1);
        let preview = client.ok("preview", &json!({"target": "t1^", "exact": true, "scope": "files"}));
        assert_eq!(preview["structuredContent"]["remove"][0]["path"], "b");
        let timeline = client.request("resources/read", &json!({"uri": "rwd://timeline"}));
        let text = timeline["result"]["contents"][0]["text"].as_str().unwrap();
        schema::check(&serde_json::from_str(text).unwrap());
        let point = client.request("resources/read", &json!({"uri": format!("rwd://point/{id}")}));
        let point: Value = serde_json::from_str(point["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
        schema::check(&point);
        for nowhere in ["rwd://point/--help", "rwd://point/00000000000000000000000000000000", "file:///etc/passwd", ""]
        {
            let answer = client.request("resources/read", &json!({"uri": nowhere}));
            assert_eq!(answer["error"]["code"], -32002, "{nowhere}");
        }
        assert_eq!(client.request("resources/list", &json!({}))["result"]["resources"][0]["uri"], "rwd://timeline");
        assert_eq!(sandbox.tree(), before);
        assert_eq!(client.end(), Some(0));
    }

    #[test]
    fn points_are_made_and_named() {
        let sandbox = played();
        let mut client = Client::start(&sandbox, None);
        sandbox.write("a", "three\n");
        let saved = client.ok("save", &json!({"note": "-before", "name": "first"}));
        assert_eq!(saved["structuredContent"]["created"], true);
        let id = &saved["structuredContent"]["id"];
        client.ok("name", &json!({"target": id, "label": "second"}));
        let named = client.ok("list", &json!({"named": true}));
        assert_eq!(named["structuredContent"]["points"][0]["names"], json!(["first", "second"]));
        assert_eq!(named["structuredContent"]["points"][0]["note"], "-before");
        assert_eq!(client.code("mark", &json!({"objective": "x"})), "SESSION_NOT_FOUND");
        assert_eq!(client.code("name", &json!({"target": "--yes", "label": "x"})), "bad-argument");
        assert_eq!(client.code("preview", &json!({"target": "nothing"})), "not-found");
        assert_eq!(client.code("restore", &json!({"target": "t1^", "force": true})), "bad-argument");
    }

    #[test]
    fn a_restore_and_its_undo_are_asked_for_with_the_plan() {
        let sandbox = played();
        let before = sandbox.tree();
        let mut client = Client::start(&sandbox, Some(action("accept")));
        let done = client.ok("restore", &json!({"target": "t1^", "exact": true, "scope": "files"}));
        assert_eq!((sandbox.read("a").as_str(), sandbox.has("b")), ("one\n", false));
        assert_eq!(done["structuredContent"]["status"], "restored");
        assert!(client.asked[0].contains("overwrite 1") && client.asked[0].contains('b'), "{:?}", client.asked);
        // Nothing to do is an answer, and nobody is asked about it.
        client.ok("restore", &json!({"target": "t1^", "exact": true, "scope": "files"}));
        assert_eq!(client.asked.len(), 1);
        client.ok("undo", &json!({}));
        assert_eq!(client.asked.len(), 2);
        assert_eq!(sandbox.tree(), before);
        assert_eq!(client.end(), Some(0));
    }

    #[test]
    fn without_a_yes_nothing_is_written() {
        for (reply, code) in [
            (Some(action("decline")), "declined"),
            (Some(action("cancel")), "declined"),
            (Some(action("later")), "declined"),
            (None, "agent-refused"),
        ] {
            let sandbox = played();
            let before = sandbox.tree();
            let asks = reply.is_some();
            let mut client = Client::start(&sandbox, reply);
            assert_eq!(client.code("restore", &json!({"target": "t1^", "scope": "files"})), code);
            assert_eq!(client.asked.len(), usize::from(asks));
            assert_eq!(sandbox.tree(), before);
            assert_eq!(client.end(), Some(0));
            // A person can do it, as the hint says.
            sandbox.ok(&["to", "t1^", "--yes"]);
            let mut client = Client::start(&sandbox, None);
            assert_eq!(client.code("undo", &json!({})), "agent-refused");
            assert_eq!(sandbox.read("a"), "one\n");
        }
    }

    /// Design § 7: the user's own settings decide what a model may do by itself; those of a workspace cannot loosen it.
    #[test]
    fn only_the_users_own_settings_do_without_a_person() {
        let config = |sandbox: &Sandbox, text: &str| {
            let dir = sandbox.home().join(".config/rwd");
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("config.toml"), text).unwrap();
        };
        let restore = json!({"target": "t1^", "scope": "files"});

        let sandbox = played();
        sandbox.write(".rwd.toml", "[agent]\nmay_restore = 'allow'\n[restore]\nconfirm = 'never'\n");
        config(&sandbox, "[restore]\nconfirm = 'never'\n");
        let mut client = Client::start(&sandbox, None);
        assert_eq!(client.code("restore", &restore), "agent-refused");
        assert_eq!(sandbox.read("a"), "two\n");

        config(&sandbox, "[agent]\nmay_restore = 'never'\n");
        let mut client = Client::start(&sandbox, Some(action("accept")));
        assert_eq!(client.code("restore", &restore), "agent-refused");
        assert!(client.asked.is_empty());
        assert_eq!(sandbox.read("a"), "two\n");

        config(&sandbox, "[agent]\nmay_restore = 'allow'\n");
        let mut client = Client::start(&sandbox, None);
        client.ok("restore", &restore);
        assert_eq!(sandbox.read("a"), "one\n");
    }

    #[test]
    fn hand_made_changes_are_not_overwritten_by_a_guess() {
        let sandbox = played();
        sandbox.write("a", "by hand\n");
        let mut client = Client::start(&sandbox, Some(action("accept")));
        assert_eq!(client.code("restore", &json!({"target": "t1^", "scope": "files"})), "decision-needed");
        assert!(client.asked.is_empty());
        client.ok("restore", &json!({"target": "t1^", "scope": "files", "drift": "overwrite"}));
        assert_eq!(sandbox.read("a"), "one\n");
    }

    #[test]
    fn garbage_is_answered_and_the_next_line_is_served() {
        let sandbox = played();
        let mut client = Client::start(&sandbox, None);
        for (line, code) in [
            (&b"{"[..], -32700),
            (b"\xff\xfe", -32700),
            (b"[]", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":7}", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{}}", -32602),
            (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"purge\"}}", -32602),
            (b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"prompts/list\"}", -32601),
        ] {
            client.raw(&[line, b"\n"].concat());
            assert_eq!(client.message()["error"]["code"], code, "{}", String::from_utf8_lossy(line));
        }
        // A message to nobody, and an answer to nothing, are passed over.
        client.raw(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"rwd-9\",\"result\":{}}\n");
        client.ok("list", &json!({}));
        assert_eq!(client.end(), Some(0));
    }

    #[test]
    fn a_client_that_leaves_while_somebody_is_asked_leaves_everything_as_it_is() {
        let sandbox = played();
        let before = sandbox.tree();
        let mut client = Client::start(&sandbox, Some(action("accept")));
        let call = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call",
            "params": {"name": "restore", "arguments": {"target": "t1^", "scope": "files"}}});
        client.raw((call.to_string() + "\n").as_bytes());
        assert_eq!(client.message()["method"], "elicitation/create");
        drop(client.stdin.take());
        let answer = client.message();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(77), &json!(true)));
        assert_eq!(client.end(), Some(0));
        assert_eq!(sandbox.tree(), before);
        sandbox.ok(&["verify"]);
    }

    #[test]
    fn a_signal_ends_an_idle_server_and_one_that_asks() {
        for asks in [false, true] {
            let sandbox = played();
            let before = sandbox.tree();
            let mut client = Client::start(&sandbox, Some(action("accept")));
            if asks {
                let call = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call",
                    "params": {"name": "restore", "arguments": {"target": "t1^", "scope": "files"}}});
                client.raw((call.to_string() + "\n").as_bytes());
                assert_eq!(client.message()["method"], "elicitation/create");
            }
            let id = client.child.id().to_string();
            assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
            assert_eq!(client.child.wait().unwrap().code(), Some(0));
            assert_eq!(sandbox.tree(), before);
        }
    }

    #[test]
    fn the_flags_it_was_started_with_hold_for_every_call() {
        let sandbox = played();
        let (work, data) = (sandbox.work(), sandbox.data());
        let args = ["-C", work.to_str().unwrap(), "--data-dir", data.to_str().unwrap(), "--session", "agent", "mcp"];
        let mut client = Client::start_with(&sandbox, &args, None);
        let preview = client.ok("preview", &json!({"target": "t1^"}));
        assert!(preview["structuredContent"]["session"].as_str().unwrap().ends_with("agent"), "{preview}");
        assert_eq!(client.code("preview", &json!({"target": "t1^", "session": "another"})), "not-found");
    }
}
