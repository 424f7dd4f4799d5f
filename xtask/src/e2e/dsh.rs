//! DeepSeek Harness: a real session edits files over three turns, rwd takes it back offline, the real host goes on with
//! the child, and the model gets exactly the prefix.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use super::{install::Node, model::Model};
use crate::{
    Result,
    process::{Running, command},
    repo,
};

const PACKAGE: &str = "@deepseek-ai/dsh";
/// The release whose log format is proven.
const VERSION: &str = "0.1.0-rc.8";
/// Newer releases of these are admitted by the host's ranges and stop it from starting.
const OVERRIDES: &[(&str, &str)] = &[
    ("@deepseek-ai/cordis", "4.0.1"),
    ("@deepseek-ai/cordis-plugin-loader", "1.0.2"),
    ("@deepseek-ai/cordis-plugin-hmr", "1.0.16"),
    ("@deepseek-ai/cordis-plugin-include", "1.0.6"),
    ("@deepseek-ai/cordis-plugin-timer", "1.1.3"),
    ("@deepseek-ai/cordis-plugin-group", "1.0.1"),
];
/// One process of the host with a few turns.
const PATIENCE: Duration = Duration::from_mins(4);
const SESSION: &str = "session-e2e";
/// The turn, counted from 0, before which an exploration is marked.
const MARKED_BEFORE: usize = 1;

/// What the prompts of the parent's turns say, apart from the script for the model.
const PROMPTS: [&str; 3] = ["First, create files.", "Second, edit one.", "Third, tidy up."];

/// Runs the scenario in an empty scratch directory.
pub(super) fn run(rwd: &Path, scratch: &Path) -> Result {
    let stage = Stage::set(rwd, scratch)?;
    let states = stage.play_three_turns()?;
    println!("three turns played; {} requests reached the model", stage.requests()?.len());
    let parent = stage.log_of(SESSION)?;
    let untouched = fs::read(&parent)?;

    let (child, begun) = stage.rewind_both(&states[2])?;
    stage.host_goes_on(&child, begun)?;
    println!("the host went on with the child {child}");

    stage.rwd_json(&["undo", "--yes"])?;
    expect(stage.files()? == states[3], "undo did not bring the third turn's files back")?;
    expect(fs::read(&parent)? == untouched, "the parent's log was changed")?;
    stage.empty_child_is_loaded(&states[0])?;
    stage.rwd_json(&["undo", "--yes"])?;
    expect(fs::read(&parent)? == untouched, "the parent's log was changed")?;
    let loaded = stage.host(&json!([{ "op": "load", "id": SESSION }, { "op": "list" }]))?;
    expect(loaded[1]["ids"].as_array().is_some_and(|ids| ids.len() == 3), "the host does not list all three sessions")?;
    println!("restore undone; the parent still loads: {} events", loaded[0]["events"]);
    stage.exploration_is_folded()?;
    expect(fs::read(&parent)? == untouched, "the parent's log was changed")?;
    println!("the host went on with a report in the place of turns 2 and 3");
    super::plugin::run(rwd, &stage.node, &stage.modules, PACKAGE, scratch)
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

struct Stage {
    rwd: PathBuf,
    node: Node,
    modules: PathBuf,
    scratch: PathBuf,
    workspace: PathBuf,
    dsh_home: PathBuf,
    patch: PathBuf,
    model: Model,
}

impl Stage {
    fn set(rwd: &Path, scratch: &Path) -> Result<Self> {
        let node = Node::install()?;
        let modules = node.add(PACKAGE, VERSION, OVERRIDES)?;
        let assets = repo::root().join("xtask/e2e/dsh");
        let (workspace, dsh_home) = (scratch.join("shop"), scratch.join("dsh"));
        for dir in ["shop/src", "dsh", "plugin"] {
            fs::create_dir_all(scratch.join(dir))?;
        }
        super::write(&workspace.join("README.md"), "# shop\n")?;
        super::write(&workspace.join("src/price.txt"), "apple 3\npear 4\n")?;
        // The plugin resolves the host's own packages through the directory it lies in.
        let plugin = scratch.join("plugin/driver.mjs");
        super::write(&plugin, &fs::read_to_string(assets.join("driver.mjs"))?)?;
        std::os::unix::fs::symlink(modules.join(".pnpm/node_modules"), scratch.join("plugin/node_modules"))?;
        let patch = scratch.join("patch.yml");
        let row = format!(
            "- id: headless-startup\n  disabled: true\n- id: headless-runner\n  disabled: true\n- insert:\n    - id: e2e-driver\n      name: file://{}\n",
            plugin.display()
        );
        super::write(&patch, &row)?;
        let log = scratch.join("requests.jsonl");
        let model = Model::start(&node, &assets.join("mock.mjs"), &log, &[])?;
        let (rwd, scratch) = (rwd.to_owned(), scratch.to_owned());
        Ok(Self { rwd, node, modules, scratch, workspace, dsh_home, patch, model })
    }

    /// Three turns with points around each, as an integration makes them. The files before the first and after each.
    fn play_three_turns(&self) -> Result<Vec<Files>> {
        let scripts = [
            json!([
                { "think": "Two files.", "say": "Creating. ", "call": [
                    ["write", { "file_path": "src/app.txt", "content": "line one\nline two\n" }],
                    ["write", { "file_path": "notes.md", "content": "# notes\n" }]] },
                { "call": [["bash", { "command": "cat src/app.txt", "description": "Show it" }]] },
                { "say": "First turn done." }]),
            json!([
                { "call": [["read", { "file_path": "src/app.txt" }]] },
                { "call": [["edit", { "file_path": "src/app.txt", "old_string": "line two", "new_string": "line 2" }]] },
                { "say": "Second turn done." }]),
            json!([
                { "call": [["bash", { "command": "rm notes.md && mkdir d && echo x > d/x.txt && sed -i s/apple/fig/ src/price.txt", "description": "Tidy" }]] },
                { "say": "Third turn done." }]),
        ];
        let mut states = vec![self.files()?];
        let mut begun = false;
        for (at, script) in scripts.iter().enumerate() {
            let turn = (at + 1).to_string();
            let rwd = |args: &[&str]| {
                let data = self.scratch.join("data");
                let session = format!("dsh:{SESSION}");
                let mut argv = vec![self.rwd.to_string_lossy(), "--data-dir".into(), data.to_string_lossy()];
                argv.extend(["--session", &session, "--json"].iter().chain(args).map(|arg| (*arg).into()));
                json!({ "op": "run", "argv": argv })
            };
            let save = |kind: &str| rwd(&["save", "--turn", &turn, "--kind", kind]);
            let open = if begun { "resume" } else { "create" };
            begun = true;
            let said = format!("{} <<<{script}>>>", PROMPTS[at]);
            let mut plan = vec![json!({ "op": open, "id": SESSION }), save("turn-start")];
            if at == MARKED_BEFORE {
                plan.push(rwd(&["mark", "Try an edit"]));
            }
            plan.extend([json!({ "op": "turn", "id": SESSION, "text": said }), save("turn-end")]);
            let done = self.host(&json!(plan))?;
            let played = done.iter().find(|answer| answer["op"] == "turn").unwrap_or(&Value::Null);
            expect(played["reason"] == "completed", &format!("turn {turn} ended as {played}"))?;
            states.push(self.files()?);
        }
        expect(states.windows(2).all(|pair| pair[0] != pair[1]), "a turn left the files as they were")?;
        Ok(states)
    }

    /// Both halves to the end of turn 2. The child, and how many requests the model has had.
    fn rewind_both(&self, wanted: &Files) -> Result<(String, usize)> {
        let address = format!("dsh:{SESSION}/t2");
        let done = self.rwd_json(&["to", &address, "--both", "--exact", "--yes"])?;
        expect(done["status"] == "restored", &format!("not restored: {done}"))?;
        expect(&self.files()? == wanted, "the files are not those after turn 2")?;
        let child = done["childSessionId"].as_str().ok_or("no child")?.to_owned();
        let told = self.rwd_json(&["session", "verify", &child, "--home", &self.dsh_home.to_string_lossy()])?;
        expect(told["loadable"] == true, &format!("our own reader refuses the child: {told}"))?;
        Ok((child, self.requests()?.len()))
    }

    /// The host resumes the child; the model gets the prefix up to turn 2, the notice and the new prompt, nothing else.
    fn host_goes_on(&self, child: &str, begun: usize) -> Result {
        let said = "Go on. <<<[{\"say\":\"Going on.\"}]>>>";
        let done = self.host(&json!([
            { "op": "load", "id": child },
            { "op": "resume", "id": child },
            { "op": "turn", "id": child, "text": said },
            { "op": "list" },
        ]))?;
        expect(done[2]["reason"] == "completed", &format!("the child's turn ended as {}", done[2]))?;
        let requests = self.requests()?;
        let third = requests[..begun].iter().find(|r| holds(r, PROMPTS[2])).ok_or("no request of turn 3")?;
        let cut = third.iter().position(|m| text(m).contains(PROMPTS[2])).ok_or("no prompt of turn 3")?;
        let prefix = &third[..cut];
        let first = requests.get(begun).ok_or("the child's turn made no request")?;
        for (at, message) in prefix.iter().enumerate() {
            let got = first.get(at).unwrap_or(&Value::Null);
            expect(got == message, &format!("message {at} differs:\n  parent {message}\n  child  {got}"))?;
        }
        let rest = &first[prefix.len()..];
        let notices = rest.iter().filter(|m| text(m).contains("rwd")).count();
        expect(notices == 1, &format!("the notice is there {notices} times: {rest:?}"))?;
        expect(rest.iter().any(|m| text(m).contains("Go on.")), "the new prompt is missing")?;
        expect(rest.iter().all(|m| m["role"] == "user"), &format!("more than notice and prompt: {rest:?}"))?;
        expect(!holds(first, PROMPTS[2]), "the model still sees turn 3")
    }

    /// Before the first turn there is no conversation: an empty child that the host takes too.
    fn empty_child_is_loaded(&self, wanted: &Files) -> Result {
        let begun = self.requests()?.len();
        let done = self.rwd_json(&["to", &format!("dsh:{SESSION}/t1^"), "--both", "--exact", "--yes"])?;
        expect(&self.files()? == wanted, "the files are not those before turn 1")?;
        let child = done["childSessionId"].as_str().ok_or("no child")?;
        let said = "Anew. <<<[{\"say\":\"Anew.\"}]>>>";
        let played =
            self.host(&json!([{ "op": "resume", "id": child }, { "op": "turn", "id": child, "text": said }]))?;
        expect(played[1]["reason"] == "completed", &format!("the empty child's turn ended as {}", played[1]))?;
        let requests = self.requests()?;
        let first = requests.get(begun).ok_or("the empty child's turn made no request")?;
        expect(PROMPTS.iter().all(|prompt| !holds(first, prompt)), "the empty child remembers a turn")
    }

    /// 001: what followed the mark becomes a report, in a child that the host takes.
    fn exploration_is_folded(&self) -> Result {
        let begun = self.requests()?.len();
        let done = self.rwd_json(&["fold", "--session", &format!("dsh:{SESSION}"), "--extract"])?;
        let child = done["childSessionId"].as_str().ok_or_else(|| format!("no child: {done}"))?;
        let said = "And then. <<<[{\"say\":\"And then.\"}]>>>";
        let played =
            self.host(&json!([{ "op": "resume", "id": child }, { "op": "turn", "id": child, "text": said }]))?;
        expect(played[1]["reason"] == "completed", &format!("the folded child's turn ended as {}", played[1]))?;
        let requests = self.requests()?;
        let first = requests.get(begun).ok_or("the folded child's turn made no request")?;
        expect(holds(first, PROMPTS[0]), "the folded child lost the turn before the mark")?;
        expect(!holds(first, PROMPTS[1]) && !holds(first, PROMPTS[2]), "the folded child still has what was folded")?;
        let reports =
            first.iter().filter(|m| text(m).contains("src/app.txt") && text(m).contains("Try an edit")).count();
        expect(reports == 1, &format!("the report is there {reports} times: {first:?}"))
    }

    /// Plays operations in one process of the host; an operation with an error is a failure.
    fn host(&self, plan: &Value) -> Result<Vec<Value>> {
        let file = self.scratch.join("plan.json");
        super::write(&file, &plan.to_string())?;
        let (said, complained) = (self.scratch.join("host.out"), self.scratch.join("host.err"));
        let mut host = self.node.command("node")?;
        host.arg(self.modules.join(PACKAGE).join("lib/bin.js"))
            .args(["--profile", "headless", "--patch"])
            .arg(&self.patch);
        host.current_dir(&self.workspace)
            .env("HOME", self.node.home())
            .env("DSH_HOME", &self.dsh_home)
            .env("DSH_TELEMETRY_DISABLED", "1")
            .env("DSH_PERMISSION_MODE", "danger-full-access")
            .env("DEEPSEEK_BASE_URL", format!("http://127.0.0.1:{}/v1", self.model.port()))
            .env("DEEPSEEK_API_KEY", "none")
            .env("DRIVER_PLAN", &file)
            .env("TZ", "UTC")
            .stdout(File::create(&said)?)
            .stderr(File::create(&complained)?);
        let end = Running::start(&mut host, PATIENCE, None)?.wait()?;
        let lines = fs::read_to_string(&said)?;
        let answers: Vec<Value> = lines
            .lines()
            .filter(|line| line.starts_with("{\"op\""))
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let failed = answers.iter().find(|answer| !answer["error"].is_null());
        if let Some(why) = end.failure().or_else(|| failed.map(ToString::to_string)) {
            return Err(format!("the host: {why}\n{}", fs::read_to_string(&complained)?).into());
        }
        let asked = plan.as_array().map_or(0, Vec::len);
        expect(answers.len() == asked, &format!("{} of {asked} operations were answered", answers.len()))?;
        Ok(answers)
    }

    /// Runs rwd in the workspace, offline as far as the host goes, and reads its answer.
    fn rwd_json(&self, args: &[&str]) -> Result<Value> {
        let mut rwd = command(&self.rwd);
        rwd.current_dir(&self.workspace).env("DSH_HOME", &self.dsh_home).env("HOME", self.node.home());
        let output = rwd.arg("--data-dir").arg(self.scratch.join("data")).args(args).arg("--json").output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let code = output.status.code().unwrap_or_default();
            return Err(format!(
                "rwd {} ended with {code}: {said}{}",
                args.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )
            .into());
        }
        Ok(serde_json::from_str(&said)?)
    }

    /// Messages of every request of a turn that the model has got.
    fn requests(&self) -> Result<Vec<Vec<Value>>> {
        self.model.turns("messages")
    }

    fn log_of(&self, session: &str) -> Result<PathBuf> {
        let projects = fs::read_dir(self.dsh_home.join("sessions"))?;
        let logs = projects.flatten().map(|project| project.path().join(session).join("session.jsonl.zstd"));
        logs.into_iter().find(|log| log.exists()).ok_or_else(|| "the host wrote no log".into())
    }

    /// Every file of the workspace with its bytes.
    fn files(&self) -> Result<Files> {
        let mut files = Files::new();
        let mut left = vec![self.workspace.clone()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir)? {
                let path = entry?.path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    files.insert(path.strip_prefix(&self.workspace)?.to_owned(), fs::read(&path)?);
                }
            }
        }
        Ok(files)
    }
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
