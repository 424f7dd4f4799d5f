//! The plugin of DeepSeek Harness: checked and tested, packed, installed by the host's own `plugin add`, and driven in the
//! real host by a scripted model (contract 000, 001, 002, 003).

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use super::{install::Node, model::Model};
use crate::{
    Result,
    package::{self, NODE_TYPES, TYPESCRIPT, Wanted},
    process::{Running, quiet},
    repo,
};

/// One process of the host, or one run of the checker.
const PATIENCE: Duration = Duration::from_mins(4);

/// Everything about the plugin, for a host that is installed in `modules`.
pub(super) fn run(rwd: &Path, node: &Node, modules: &Path, host: &str, scratch: &Path) -> Result {
    check(node, modules, scratch)?;
    // As from the registry, but for the place: the plugin brings the program for this machine along.
    let program = package::platform(node, rwd, scratch)?;
    let tarball = package::plugin(node, scratch, &Wanted::Archive(&program))?;
    let stage = Stage::set(rwd, node, modules, host, scratch, &tarball)?;
    stage.turns_go_back_in_a_git_worktree()?;
    println!("000: turns go back in a git worktree, and come back in another process");
    stage.only_the_conversation_goes_back_elsewhere()?;
    println!("000: outside git only the conversation goes back");
    stage.points_are_rewound_by_command()?;
    println!("002: list, preview, refusal, rewind, guard");
    stage.explorations_are_folded_and_boundaries_named()?;
    println!("001 and 003: folded in place; named and forked");
    stage.records_of_an_older_plugin_come_in()?;
    println!("TJ16: an older plugin's record is listed beside new ones, and its store stays as it is");
    stage.the_program_comes_with_the_plugin()?;
    println!("without RWD_BIN the program of this platform's package is found");
    stage.without_the_program_it_says_so()?;
    println!("without rwd the conversation goes back, and the reason is said");
    Ok(())
}

/// What must hold before anything is packed: the types, the host's too, and the unit tests.
fn check(node: &Node, hosts: &Path, scratch: &Path) -> Result {
    let sources = repo::root().join("integrations/dsh");
    let compiler = node.add("typescript", TYPESCRIPT, &[])?.join("typescript/bin/tsc");
    let types = node.add("@types/node", NODE_TYPES, &[])?.join("@types");
    // The host's own types, for the test that compares ours with them.
    let known = hosts.join(".pnpm/node_modules/@deepseek-ai/*/lib/types/index.d.ts");
    let options = json!({ "typeRoots": [types], "noEmit": true, "declaration": false, "declarationMap": false,
        "sourceMap": false, "rootDir": sources, "paths": { "@deepseek-ai/*": [known] } });
    let include = [sources.join("src"), sources.join("test")];
    let text = json!({ "extends": sources.join("tsconfig.json"), "compilerOptions": options, "include": include });
    let config = scratch.join("check.json");
    super::write(&config, &text.to_string())?;
    finish(node.command("node")?.arg(compiler).arg("-p").arg(config), "tsc --noEmit")?;
    println!("plugin: types hold, the host's too");
    let mut tests = node.command("node")?;
    tests.args(["--test", "--test-reporter=dot", "test/*.test.ts"]).current_dir(&sources);
    finish(&mut tests, "node --test")?;
    println!("plugin: unit tests passed");
    Ok(())
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

struct Stage<'a> {
    rwd: &'a Path,
    node: &'a Node,
    /// The host's program.
    host: PathBuf,
    scratch: &'a Path,
    dsh_home: PathBuf,
    patch: PathBuf,
    model: Model,
}

impl<'a> Stage<'a> {
    fn set(
        rwd: &'a Path,
        node: &'a Node,
        modules: &Path,
        host: &str,
        scratch: &'a Path,
        tarball: &Path,
    ) -> Result<Self> {
        let assets = repo::root().join("xtask/e2e/dsh");
        let dsh_home = scratch.join("plugged");
        let beside = scratch.join("plugin-driver");
        for dir in [&dsh_home, &beside] {
            fs::create_dir_all(dir)?;
        }
        let driver = beside.join("driver.mjs");
        copy(&assets.join("driver.mjs"), &driver)?;
        symlink(modules.join(".pnpm/node_modules"), beside.join("node_modules"))?;
        let patch = scratch.join("plugin-patch.yml");
        let rows = format!(
            "- id: headless-startup\n  disabled: true\n- id: headless-runner\n  disabled: true\n\
             - id: rwd\n  config:\n    dataDir: {}\n\
             - insert:\n    - id: e2e-driver\n      name: file://{}\n",
            scratch.join("plugin-data").display(),
            driver.display()
        );
        super::write(&patch, &rows)?;
        let model = Model::start(node, &assets.join("mock.mjs"), &scratch.join("plugin-requests.jsonl"), &[])?;
        let stage = Self { rwd, node, host: modules.join(host).join("lib/bin.js"), scratch, dsh_home, patch, model };
        let mut add = stage.program()?;
        add.args(["plugin", "--profile", "headless", "add"]).arg(tarball);
        finish(add.current_dir(scratch), "plugin add")?;
        Ok(stage)
    }

    fn program(&self) -> Result<std::process::Command> {
        let mut host = self.node.command("node")?;
        host.arg(&self.host)
            .env("HOME", self.node.home())
            .env("DSH_HOME", &self.dsh_home)
            .env("DSH_TELEMETRY_DISABLED", "1")
            .env("CI", "true");
        Ok(host)
    }

    fn workspace(&self, name: &str, git: bool) -> Result<PathBuf> {
        let dir = self.scratch.join(name);
        fs::create_dir_all(dir.join("src"))?;
        super::write(&dir.join("README.md"), "# shop\n")?;
        super::write(&dir.join("src/price.txt"), "apple 3\npear 4\n")?;
        if git {
            for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "Begin"]] {
                let named = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
                quiet("git", &[&named, args].concat(), &dir)?;
            }
        }
        Ok(dir)
    }

    /// 000: two turns; in the third the model lists and restores. In another process the restore is taken back.
    fn turns_go_back_in_a_git_worktree(&self) -> Result {
        let shop = self.workspace("git-shop", true)?;
        let id = "session-turns";
        self.play(
            &shop,
            &[
                json!({ "op": "create", "id": id }),
                turn(id, "First.", &[write("src/app.txt", "one\n"), write("notes.md", "# n\n")]),
            ],
        )?;
        let first = files(&shop)?;
        // The process ended with its turn: what follows a turn's end was done all the same.
        let lines = fs::read_to_string(shop.join(".dsh/memory/checkpoints.md")).unwrap_or_default();
        expect(
            lines.contains("] auto-turn | session=session-turns"),
            "the end of the last turn was lost with the host",
        )?;
        self.play(
            &shop,
            &[
                json!({ "op": "resume", "id": id }),
                turn(id, "Second.", &[bash("rm notes.md && echo x > new.txt && sed -i s/apple/fig/ src/price.txt")]),
            ],
        )?;
        let log = self.log_of(id)?;
        let begun = self.model.turns("messages")?.len();
        let restore = turn(
            id,
            "Third.",
            &[
                bash("echo 3 > third.txt"),
                json!({ "call": [["checkpoint_list", {}]] }),
                json!({ "call": [["checkpoint_restore", { "turn": 9 }]] }),
                json!({ "call": [["checkpoint_restore", { "turn": 1 }]] }),
            ],
        );
        let third = self.play(&shop, &[json!({ "op": "resume", "id": id }), restore, json!({ "op": "list" })])?;
        expect(files(&shop)? == first, "the files are not those after turn 1")?;
        let said = self.answers_since(begun)?;
        let listed =
            said.iter().find(|text| text.starts_with("checkpoints:")).ok_or("no list was read by the model")?;
        expect(listed.contains("turn 1 (2 files), turn 2 (3 files)"), &format!("the list is {listed:?}"))?;
        expect(said.iter().any(|text| text.contains("there is no turn 9; available: 1, 2")), "turn 9 was not refused")?;
        let restored = said.iter().find(|text| text.contains("conversation continues in")).ok_or("no restore")?;
        expect(restored.contains(r#"undo with checkpoint_restore {"turn": -1}"#), &format!("it said {restored:?}"))?;
        let ids = third.last().and_then(|answer| answer["ids"].as_array()).cloned().unwrap_or_default();
        expect(ids.len() == 2, &format!("there should be one child: {ids:?}"))?;
        let child = ids.iter().filter_map(Value::as_str).find(|other| *other != id).ok_or("no child")?.to_owned();

        let before = fs::read(&log)?;
        let begun = self.model.turns("messages")?.len();
        self.play(&shop, &[json!({ "op": "resume", "id": child }), turn(&child, "Go on.", &[])])?;
        let requests = self.model.turns("messages")?;
        let seen = requests.get(begun).ok_or("the child made no request")?;
        expect(holds(seen, "First.") && !holds(seen, "Second."), "the child's conversation is not that of turn 1")?;
        expect(
            seen.iter().filter(|message| text(message).contains("[rwd]")).count() == 1,
            "the child is not told once",
        )?;
        expect(fs::read(&log)? == before, "the parent's log was changed by its child")?;

        let undone = self.play(&shop, &[json!({ "op": "resume", "id": id }), line(id, "/checkpoint -1")])?;
        expect(undone[1]["kind"] == "success", &format!("not undone: {}", undone[1]))?;
        let now = files(&shop)?;
        expect(
            now.contains_key(Path::new("third.txt")) && now.contains_key(Path::new("new.txt")),
            "the undo is not complete",
        )?;
        expect(!now.contains_key(Path::new("notes.md")), "a file of turn 1 is still there")?;
        self.still_loads(&shop, &[id, &child])
    }

    /// 000-16, and a turn that ends with the process has its point all the same.
    fn only_the_conversation_goes_back_elsewhere(&self) -> Result {
        let shop = self.workspace("plain-shop", false)?;
        let id = "session-plain";
        self.play(&shop, &[json!({ "op": "create", "id": id }), turn(id, "First.", &[write("a.txt", "one\n")])])?;
        self.play(&shop, &[json!({ "op": "resume", "id": id }), turn(id, "Second.", &[bash("echo two > a.txt")])])?;
        let before = files(&shop)?;
        let begun = self.model.turns("messages")?.len();
        let third = turn(
            id,
            "Third.",
            &[json!({ "call": [["checkpoint_list", {}]] }), json!({ "call": [["checkpoint_restore", { "turn": 1 }]] })],
        );
        let done = self.play(&shop, &[json!({ "op": "resume", "id": id }), third, json!({ "op": "list" })])?;
        expect(files(&shop)? == before, "a file was changed")?;
        let said = self.answers_since(begun)?;
        expect(said.iter().any(|text| text.contains("not a git worktree")), "the list does not say why")?;
        expect(
            said.iter().any(|text| text.starts_with("files left as they are; conversation continues in")),
            "no child",
        )?;
        let ids = done.last().and_then(|answer| answer["ids"].as_array()).map_or(0, Vec::len);
        expect(ids == 4, &format!("{ids} sessions are listed"))
    }

    /// 002's assembled flow.
    fn points_are_rewound_by_command(&self) -> Result {
        let shop = self.workspace("rewind-shop", true)?;
        let id = "session-rewind";
        let done = self.play(
            &shop,
            &[
                json!({ "op": "create", "id": id }),
                turn(id, "First.", &[write("src/app.txt", "one\n")]),
                turn(id, "Second.", &[bash("echo two > src/app.txt && echo n > new.txt")]),
                line(id, "/rewind"),
                line(id, "/rewind nonsense"),
                line(id, "/rewind preview turn 1"),
                line(id, "/rewind turn 1"),
            ],
        )?;
        let listed = done[3]["text"].as_str().unwrap_or_default();
        expect(
            listed.starts_with("rewind: ") && listed.contains("(git)") && listed.contains("turn 2"),
            &format!("the list is {listed:?}"),
        )?;
        expect(done[4]["kind"] == "error", "an unknown point was not refused")?;
        let preview = done[5]["text"].as_str().unwrap_or_default();
        expect(preview.contains("src/app.txt") && preview.contains("new.txt"), &format!("the preview is {preview:?}"))?;
        expect(
            done[6]["text"].as_str().unwrap_or_default().starts_with("REWIND_DENIED"),
            &format!("nobody was there: {}", done[6]),
        )?;
        let now = files(&shop)?;
        expect(
            now.get(Path::new("src/app.txt")).is_some_and(|content| content == b"two\n"),
            "a preview or a refusal wrote",
        )?;

        let rewound = self.play(
            &shop,
            &[
                json!({ "op": "resume", "id": id }),
                json!({ "op": "answer", "label": "Cancel" }),
                line(id, "/rewind turn 1"),
                json!({ "op": "answer", "label": "Rewind" }),
                line(id, "/rewind turn 1"),
            ],
        )?;
        expect(rewound[2]["text"].as_str().unwrap_or_default().starts_with("REWIND_DENIED"), "a no was no no")?;
        let said = rewound[4]["text"].as_str().unwrap_or_default();
        expect(rewound[4]["kind"] == "success", &format!("not rewound: {}", rewound[4]))?;
        expect(said.contains("session: forked into ") && said.contains("new.txt"), &format!("it said {said:?}"))?;
        let now = files(&shop)?;
        expect(now.get(Path::new("src/app.txt")).is_some_and(|content| content == b"one\n"), "the file is not back")?;
        expect(now.contains_key(Path::new("new.txt")), "a new file is gone")?;
        let guard = said.rsplit_once("undo with \"").and_then(|(_, rest)| rest.split('"').next()).ok_or("no guard")?;

        let back = self.play(
            &shop,
            &[
                json!({ "op": "resume", "id": id }),
                json!({ "op": "answer", "label": "Rewind" }),
                line(id, &guard.replace("/rewind ", "/rewind workspace ")),
            ],
        )?;
        expect(back[2]["kind"] == "success", &format!("the guard does not go back: {}", back[2]))?;
        let now = files(&shop)?;
        expect(
            now.get(Path::new("src/app.txt")).is_some_and(|content| content == b"two\n"),
            "the guard's bytes are not back",
        )?;
        self.still_loads(&shop, &[id])
    }

    /// TJ16: at the first mount what 002's plugin recorded comes in, once.
    fn records_of_an_older_plugin_come_in(&self) -> Result {
        let shop = self.workspace("older-shop", true)?;
        let id = "session-older";
        let head = String::from_utf8(quiet("git", &["rev-parse", "HEAD"], &shop)?)?;
        let record = json!({
            "id": "00000000-0000-4000-8000-00000000000a", "sessionId": id, "cwd": shop, "seq": 3, "time": 1_760_000_000_000_i64,
            "provider": "git", "triggerTool": "write", "turn": 1, "step": 1, "files": 1, "bytes": 12, "ref": head.trim(),
        });
        let store = self.dsh_home.join("storages");
        fs::create_dir_all(&store)?;
        let medium = store.join("rewind.json");
        super::write(&medium, &json!({ "version": 1, "tables": { "records": [record] } }).to_string())?;
        let before = fs::read(&medium)?;
        let first = self.play(
            &shop,
            &[
                json!({ "op": "create", "id": id }),
                turn(id, "First.", &[bash("echo plum 9 > src/price.txt")]),
                line(id, "/rewind"),
            ],
        )?;
        let listed = first[2]["text"].as_str().unwrap_or_default();
        let kinds = |kind: &str| listed.matches(kind).count();
        expect(
            kinds("[import]") == 1 && kinds("[mutation]") == 1,
            &format!("the older record is not listed beside the new one: {listed:?}"),
        )?;
        let imported = listed.lines().find(|line| line.contains("[import]")).unwrap_or_default();
        let imported = imported.trim_start_matches('#').split(' ').next().unwrap_or_default().to_owned();
        let again = self.play(
            &shop,
            &[
                json!({ "op": "resume", "id": id }),
                line(id, "/rewind"),
                json!({ "op": "answer", "label": "Rewind everything" }),
                line(id, &format!("/rewind workspace {imported}")),
            ],
        )?;
        let listed = again[1]["text"].as_str().unwrap_or_default();
        expect(listed.matches("[import]").count() == 1, &format!("it came in twice: {listed:?}"))?;
        expect(again[3]["kind"] == "success", &format!("not rewound: {}", again[3]))?;
        let now = files(&shop)?;
        expect(
            now.get(Path::new("src/price.txt")).is_some_and(|content| content == b"apple 3\npear 4\n"),
            "the older record's content is not back",
        )?;
        expect(fs::read(&medium)? == before, "the older store was written to")?;
        fs::remove_file(&medium)?;
        self.still_loads(&shop, &[id])
    }

    /// Who installs the plugin needs nothing else.
    fn the_program_comes_with_the_plugin(&self) -> Result {
        let shop = self.workspace("packed-shop", true)?;
        let id = "session-packed";
        let plan = [
            json!({ "op": "create", "id": id }),
            turn(id, "First.", &[write("a.txt", "one\n")]),
            turn(id, "Second.", &[write("a.txt", "two\n")]),
            line(id, "/checkpoint 1"),
        ];
        let done = self.play_with(None, &shop, &plan)?;
        expect(done[3]["kind"] == "success", &format!("not restored: {}", done[3]))?;
        let now = files(&shop)?;
        expect(now.get(Path::new("a.txt")).is_some_and(|content| content == b"one\n"), "the file is not back")
    }

    /// 001 and 003, once each.
    fn explorations_are_folded_and_boundaries_named(&self) -> Result {
        let shop = self.workspace("marked-shop", true)?;
        let id = "session-marks";
        let begun = self.model.turns("messages")?.len();
        let done = self.play(
            &shop,
            &[
                json!({ "op": "create", "id": id }),
                turn(
                    id,
                    "Look.",
                    &[
                        json!({ "call": [["checkpoint", { "objective": "find it" }]] }),
                        bash("seq 1 400"),
                        json!({ "call": [["rewind", {}]] }),
                        json!({ "say": "Folded." }),
                    ],
                ),
                turn(
                    id,
                    "Name.",
                    &[
                        json!({ "call": [["agent_checkpoint", { "label": "good", "note": "before" }]] }),
                        json!({ "call": [["agent_checkpoint_list", {}]] }),
                        json!({ "call": [["agent_rewind", { "sessionId": id, "label": "good" }]] }),
                    ],
                ),
                json!({ "op": "list" }),
            ],
        )?;
        let said = self.answers_since(begun)?;
        expect(said.iter().any(|text| text.starts_with("folded 2 nodes")), &format!("nothing was folded: {said:?}"))?;
        let requests = self.model.turns("messages")?;
        expect(requests.last().is_some_and(|seen| !holds(seen, "399")), "the exploration is still there")?;
        expect(said.iter().any(|text| text.contains("good | session=session-marks | seq=")), "the name is not listed")?;
        expect(said.iter().any(|text| text.starts_with("forked into ")), "no fork at the name")?;
        let lines = fs::read_to_string(shop.join(".dsh/memory/checkpoints.md"))?;
        expect(
            lines.contains("] good | session=session-marks | seq=") && lines.contains(" | before"),
            &format!("the file has {lines:?}"),
        )?;
        expect(lines.contains("] auto-turn | session=session-marks"), "no automatic line")?;
        expect(done.last().is_some_and(|answer| answer["ids"].to_string().contains(id)), "the session is not listed")?;
        self.still_loads(&shop, &[id])
    }

    /// No program: conversation only, and why.
    fn without_the_program_it_says_so(&self) -> Result {
        let shop = self.workspace("bare-shop", true)?;
        let id = "session-bare";
        let missing = self.scratch.join("no-such-rwd");
        let done = self.play_with(
            Some(&missing),
            &shop,
            &[
                json!({ "op": "create", "id": id }),
                turn(id, "First.", &[write("a.txt", "one\n")]),
                turn(id, "Second.", &[write("b.txt", "two\n")]),
                line(id, "/checkpoint 1"),
                line(id, "/rewind"),
            ],
        )?;
        let said = done[3]["text"].as_str().unwrap_or_default();
        expect(
            done[3]["kind"] == "success" && said.contains("conversation continues in"),
            &format!("it said {said:?}"),
        )?;
        expect(said.contains("RWD_BIN names"), &format!("the reason is missing: {said:?}"))?;
        expect(
            done[4]["text"].as_str().unwrap_or_default().contains("RWD_BIN names"),
            &format!("/rewind said {}", done[4]),
        )?;
        expect(files(&shop)?.contains_key(Path::new("b.txt")), "a file was taken away")
    }

    fn still_loads(&self, workspace: &Path, ids: &[&str]) -> Result {
        let plan: Vec<Value> = ids.iter().map(|id| json!({ "op": "load", "id": id })).collect();
        self.play(workspace, &plan).map(drop)
    }

    fn play(&self, workspace: &Path, plan: &[Value]) -> Result<Vec<Value>> {
        self.play_with(Some(self.rwd), workspace, plan)
    }

    /// Plays operations in one process of the host; an operation with an error is a failure. `rwd`: what `RWD_BIN` says.
    fn play_with(&self, rwd: Option<&Path>, workspace: &Path, plan: &[Value]) -> Result<Vec<Value>> {
        let file = self.scratch.join("plugin-plan.json");
        super::write(&file, &Value::from(plan).to_string())?;
        let (said, complained) = (self.scratch.join("plugin.out"), self.scratch.join("plugin.err"));
        let mut host = self.program()?;
        host.args(["--profile", "headless", "--patch"]).arg(&self.patch);
        host.current_dir(workspace)
            .env("DSH_PERMISSION_MODE", "danger-full-access")
            .env("DEEPSEEK_BASE_URL", format!("http://127.0.0.1:{}/v1", self.model.port()))
            .env("DEEPSEEK_API_KEY", "none")
            .env("DRIVER_PLAN", &file)
            .env("TZ", "UTC")
            .stdout(File::create(&said)?)
            .stderr(File::create(&complained)?);
        if let Some(rwd) = rwd {
            host.env("RWD_BIN", rwd);
        }
        let end = Running::start(&mut host, PATIENCE, None)?.wait()?;
        let lines = fs::read_to_string(&said)?;
        let answers: Vec<Value> = lines
            .lines()
            .filter(|line| line.starts_with("{\"op\""))
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let wrong = answers
            .iter()
            .find(|answer| !answer["error"].is_null() || (answer["op"] == "turn" && answer["reason"] != "completed"));
        if let Some(why) = end.failure().or_else(|| wrong.map(ToString::to_string)) {
            return Err(format!("the host: {why}\n{}", fs::read_to_string(&complained)?).into());
        }
        expect(answers.len() == plan.len(), &format!("{} of {} operations were answered", answers.len(), plan.len()))?;
        Ok(answers)
    }

    /// What tools answered in the requests from `begun` on, each text once.
    fn answers_since(&self, begun: usize) -> Result<Vec<String>> {
        let mut said: Vec<String> = Vec::new();
        for message in self.model.turns("messages")?.iter().skip(begun).flatten() {
            let text = text(message);
            if message["role"] == "tool" && !said.contains(&text) {
                said.push(text);
            }
        }
        Ok(said)
    }

    fn log_of(&self, session: &str) -> Result<PathBuf> {
        let projects = fs::read_dir(self.dsh_home.join("sessions"))?;
        let logs = projects.flatten().map(|project| project.path().join(session).join("session.jsonl.zstd"));
        logs.into_iter().find(|log| log.exists()).ok_or_else(|| "the host wrote no log".into())
    }
}

/// One turn whose model plays the script.
fn turn(id: &str, said: &str, script: &[Value]) -> Value {
    let mut script = script.to_vec();
    script.push(json!({ "say": "Done." }));
    json!({ "op": "turn", "id": id, "text": format!("{said} <<<{}>>>", Value::from(script)) })
}

fn line(id: &str, text: &str) -> Value {
    json!({ "op": "command", "id": id, "line": text })
}

fn write(path: &str, content: &str) -> Value {
    json!({ "call": [["write", { "file_path": path, "content": content }]] })
}

fn bash(text: &str) -> Value {
    json!({ "call": [["bash", { "command": text, "description": "Change" }]] })
}

/// Every file but git's, with its bytes, and without the lines that 003 keeps in the workspace.
fn files(workspace: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut left = vec![workspace.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.ends_with(".git") || path.ends_with(".dsh") {
                continue;
            }
            if path.is_dir() {
                left.push(path);
            } else {
                files.insert(path.strip_prefix(workspace)?.to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

fn finish(command: &mut std::process::Command, what: &str) -> Result {
    match Running::start(command, PATIENCE, None)?.wait()?.failure() {
        None => Ok(()),
        Some(why) => Err(format!("{what}: {why}").into()),
    }
}

#[expect(clippy::disallowed_methods, reason = "scratch files, where nothing needs to be durable")]
fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {}: {error}", from.display()).into())
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn holds(messages: &[Value], words: &str) -> bool {
    messages.iter().any(|message| text(message).contains(words))
}

fn expect(holds: bool, otherwise: &str) -> Result {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
