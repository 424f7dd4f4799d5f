//! What an agent waits for: a hook's whole process, and one request to a sidecar that stays.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    save,
    subject::{Cost, Setting},
};
use crate::{Result, process::command};

/// The session that is played.
const SESSION: &str = "5e551011-0000-4000-8000-00000000be4c";

/// A report of Claude Code, as its hooks hand it over.
fn report(root: &Path, event: &str, more: &Value) -> Value {
    let mut report = json!({
        "session_id": SESSION,
        "transcript_path": "/nowhere/transcript.jsonl",
        "cwd": root,
        "prompt_id": "bench-prompt",
        "hook_event_name": event,
    });
    if let (Some(report), Some(more)) = (report.as_object_mut(), more.as_object()) {
        report.extend(more.clone());
    }
    report
}

/// What a hook is told.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// A person's prompt: the turn begins.
    Prompt,
    /// A tool that only reads is about to run.
    Reads,
    /// A tool that may change files is about to run.
    Changes,
}

/// Writes a report to a file, for standard input. No two are the same call.
pub(crate) fn payload(setting: &Setting<'_>, told: Told) -> Result<std::path::PathBuf> {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let call = format!("toolu_{}", CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let root = &setting.tree.root;
    let told = match told {
        Told::Prompt => report(root, "UserPromptSubmit", &json!({ "prompt": "bench" })),
        Told::Reads => report(
            root,
            "PreToolUse",
            &json!({ "tool_name": "Read", "tool_input": { "file_path": "x" }, "tool_use_id": call }),
        ),
        Told::Changes => report(
            root,
            "PreToolUse",
            &json!({ "tool_name": "Bash", "tool_input": { "command": "make" }, "tool_use_id": call }),
        ),
    };
    let path = setting.scratch.join("payload.json");
    save(&path, format!("{told}\n"))?;
    Ok(path)
}

/// A sidecar that is kept running.
pub(crate) struct Sidecar {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    next: u64,
}

impl Sidecar {
    /// Starts it and opens a session with an open turn.
    pub(crate) fn start(setting: &Setting<'_>) -> Result<Self> {
        let mut rwd = command(setting.rwd);
        rwd.arg("--data-dir").arg(setting.sidecar_data()).arg("sidecar").current_dir(setting.scratch);
        rwd.env("XDG_CONFIG_HOME", setting.config());
        let mut child = rwd.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("no output of the sidecar")?);
        let requests = child.stdin.take();
        let mut sidecar = Self { child, requests, answers, next: 1 };
        sidecar.ask("hello", &json!({ "protocol": 1, "client": { "name": "bench" } }))?;
        sidecar.ask(
            "session.open",
            &json!({ "session": "bench", "harness": "bench", "roots": [setting.tree.root], "log": "none" }),
        )?;
        // The first walk says what is to be watched, the second begins with the watches in place.
        sidecar.ask("turn.begin", &json!({ "session": "bench", "turn": 1 }))?;
        sidecar.capture()?;
        Ok(sidecar)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        let requests = self.requests.as_mut().ok_or("the sidecar is closed")?;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(requests, "{line}")?;
        requests.flush()?;
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(format!("the sidecar ended at {method}").into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                return match answer.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(answer["result"].clone()),
                };
            }
        }
    }

    /// One capture before a tool, from the request to its answer.
    pub(crate) fn capture(&mut self) -> Result<Cost> {
        let call = format!("call_{}", self.next);
        let params = json!({ "session": "bench", "kind": "mutation", "turn": 1, "trigger": "bash", "callId": call });
        let begun = Instant::now();
        let answer = self.ask("capture", &params)?;
        let wall = begun.elapsed();
        if !answer["gap"].is_null() {
            return Err(format!("the capture became a gap: {}", answer["gap"]).into());
        }
        Ok(Cost { wall_ms: wall.as_secs_f64() * 1e3, cpu_ms: 0.0, peak_kb: self.peak_kb() })
    }

    /// The most memory that the process had.
    fn peak_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    }
}

impl Drop for Sidecar {
    /// The end of its input ends it; what hangs is killed.
    fn drop(&mut self) {
        drop(self.requests.take());
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
