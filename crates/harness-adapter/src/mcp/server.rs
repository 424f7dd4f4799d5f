//! The loop: what comes in is answered, in the protocol's words.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client::{Client, locked};
use super::desk::{Answer, Desk, Resource, Tool};
use super::request::Request;
use crate::rpc::envelope::{self, INTERNAL, INVALID, Incoming, PARAMS, PARSE, UNKNOWN};
use crate::rpc::lines::{Line, next_line};

/// Revisions of the protocol that are spoken, the newest first.
pub const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision with several messages on one line.
const WITH_BATCHES: &str = "2025-03-26";
/// The first revision with structured answers.
const STRUCTURED: &str = "2025-06-18";
/// No such resource.
const NO_RESOURCE: i64 = -32002;
/// The longest line, in bytes.
const MAX_LINE: usize = 8 << 20;
/// Requests that may wait.
const WAITING: usize = 256;
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// A server for one client.
pub struct Server {
    /// What carries tools out.
    pub desk: Arc<dyn Desk>,
    /// The version that is told.
    pub version: &'static str,
    /// What the model is told about all tools together.
    pub instructions: &'static str,
    /// True once the process is asked to end: what runs is cancelled.
    pub stopped: Box<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("desk", &self.desk).finish_non_exhaustive()
    }
}

/// Where an answer goes: on a line of its own, or among those of the line its request came in.
#[derive(Debug, Clone)]
struct Out {
    client: Arc<Client>,
    batch: Option<Arc<Batch>>,
}

#[derive(Debug)]
struct Batch {
    left: AtomicUsize,
    answers: Mutex<Vec<Value>>,
}

impl Out {
    fn send(&self, message: Value) {
        let Some(batch) = &self.batch else {
            self.client.send(&message);
            return;
        };
        locked(&batch.answers).push(message);
        self.done(batch);
    }

    /// One message of a line is done with.
    fn done(&self, batch: &Batch) {
        if batch.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let answers = std::mem::take(&mut *locked(&batch.answers));
            if !answers.is_empty() {
                self.client.send(&Value::Array(answers));
            }
        }
    }

    /// Nothing is to be said.
    fn silent(&self) {
        if let Some(batch) = &self.batch {
            self.done(batch);
        }
    }

    fn answer(&self, id: &Value, result: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        // A client need not read lines of any length: what it would pass over must not look like silence.
        if message.to_string().len() > MAX_LINE {
            return self.fail(id, INTERNAL, "the answer is longer than 8 MiB: ask for less");
        }
        self.send(message);
    }

    fn fail(&self, id: &Value, code: i64, message: &str) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }
}

struct Job {
    request: Arc<Request>,
    out: Out,
    method: String,
    params: Value,
}

struct State {
    server: Server,
    client: Arc<Client>,
    version: OnceLock<&'static str>,
    running: Mutex<HashMap<String, Arc<Request>>>,
    closing: AtomicBool,
}

impl Server {
    /// Serves one client until the end of `input`, or until [`Server::stopped`]. What was asked for by then is finished
    /// before this returns; nobody is left to say yes to anything.
    pub fn serve(self, input: Box<dyn BufRead + Send>, output: Box<dyn Write + Send>) {
        let client = Arc::new(Client::new(output));
        let state = Arc::new(State {
            server: self,
            client,
            version: OnceLock::new(),
            running: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let (jobs, queue) = channel();
        let (ended, end) = channel::<()>();
        let reader = Arc::clone(&state);
        let read = thread::Builder::new().name("rwd-reader".into()).spawn(move || {
            read_all(&reader, input, &jobs);
            reader.client.leave();
        });
        let worker = Arc::clone(&state);
        let work = thread::Builder::new().name("rwd-tools".into()).spawn(move || {
            work(&worker, &queue);
            drop(ended);
        });
        if let Some(error) = read.err().or(work.err()) {
            tracing::error!(%error, "no thread");
            return;
        }
        while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(LOOK) {
            if (state.server.stopped)() && !state.closing.swap(true, Ordering::SeqCst) {
                state.client.leave();
                let running: Vec<_> = locked(&state.running).values().cloned().collect();
                for request in &running {
                    request.cancel();
                }
                if running.is_empty() {
                    break;
                }
            } else if state.closing.load(Ordering::SeqCst) && locked(&state.running).is_empty() {
                break;
            }
        }
    }
}

fn read_all(state: &Arc<State>, mut input: Box<dyn BufRead + Send>, jobs: &Sender<Job>) {
    let alone = Out { client: Arc::clone(&state.client), batch: None };
    loop {
        let line = match next_line(&mut *input, MAX_LINE) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "the client cannot be read");
                break;
            }
        };
        if state.closing.load(Ordering::SeqCst) {
            break;
        }
        match line {
            Line::TooLong => alone.fail(&Value::Null, INVALID, "the line is longer than 8 MiB"),
            Line::Torn => break,
            Line::Whole(line) => {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                match batch(state, &line) {
                    Some(messages) if messages.is_empty() => {
                        alone.fail(&Value::Null, INVALID, "an empty list of messages");
                    }
                    Some(messages) => {
                        let left = AtomicUsize::new(messages.len());
                        let batch = Some(Arc::new(Batch { left, answers: Mutex::default() }));
                        let out = Out { batch, ..alone.clone() };
                        for message in messages {
                            take(state, &out, jobs, message.to_string().as_bytes());
                        }
                    }
                    None => take(state, &alone, jobs, &line),
                }
            }
        }
    }
}

/// The messages of a line with several, where the revision has such lines.
fn batch(state: &State, line: &[u8]) -> Option<Vec<Value>> {
    let several = state.version.get() == Some(&WITH_BATCHES) && line.trim_ascii_start().first() == Some(&b'[');
    several.then(|| serde_json::from_slice(line).ok()).flatten()
}

fn take(state: &Arc<State>, out: &Out, jobs: &Sender<Job>, line: &[u8]) {
    match envelope::read(line) {
        Incoming::Bad { id, code, message } => {
            debug_assert!(code == PARSE || code == INVALID, "{code}");
            out.fail(&id, code, &message);
        }
        Incoming::Answer { id, ended } => {
            state.client.answered(&id, ended.ok());
            out.silent();
        }
        Incoming::Notice { method, params } => {
            if method == "notifications/cancelled"
                && let Some(request) =
                    params.get("requestId").and_then(|id| locked(&state.running).get(&id.to_string()).cloned())
            {
                request.cancel();
            }
            out.silent();
        }
        Incoming::Request { id, method, params } => asked(state, out, jobs, &id, method, params),
    }
}

/// What can be said at once is; the rest is put in line.
fn asked(state: &Arc<State>, out: &Out, jobs: &Sender<Job>, id: &Value, method: String, params: Value) {
    if method == "ping" {
        return out.answer(id, &json!({}));
    }
    if method == "initialize" {
        return initialize(state, out, id, &params);
    }
    let Some(version) = state.version.get() else {
        return out.fail(id, INVALID, &format!("{method} before initialize"));
    };
    match method.as_str() {
        "tools/list" => {
            let tools: Vec<Value> = state.server.desk.tools().iter().map(|tool| listed(tool, version)).collect();
            out.answer(id, &json!({ "tools": tools }));
        }
        "resources/list" => {
            let all: Vec<Value> = state.server.desk.resources().0.iter().map(|it| resource(it, "uri")).collect();
            out.answer(id, &json!({ "resources": all }));
        }
        "resources/templates/list" => {
            let all: Vec<Value> =
                state.server.desk.resources().1.iter().map(|it| resource(it, "uriTemplate")).collect();
            out.answer(id, &json!({ "resourceTemplates": all }));
        }
        "tools/call" | "resources/read" => {
            let request = Arc::new(Request::new(id.clone(), Arc::clone(&state.client)));
            {
                let mut running = locked(&state.running);
                if running.len() >= WAITING {
                    return out.fail(id, INVALID, "too many requests wait");
                }
                if running.contains_key(&id.to_string()) {
                    return out.fail(id, INVALID, "a request of that id is under way");
                }
                running.insert(id.to_string(), Arc::clone(&request));
            }
            if jobs.send(Job { request, out: out.clone(), method, params }).is_err() {
                out.fail(id, INTERNAL, "the server ends");
            }
        }
        _ => out.fail(id, UNKNOWN, &format!("there is no method {method}")),
    }
}

fn initialize(state: &State, out: &Out, id: &Value, params: &Value) {
    let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
        return out.fail(id, PARAMS, "protocolVersion must be a string");
    };
    // A revision that is not spoken is answered with the newest that is: the client decides whether it stays.
    let version = VERSIONS.iter().find(|version| **version == wanted).copied().unwrap_or(VERSIONS[0]);
    if state.version.set(version).is_err() {
        return out.fail(id, INVALID, "initialize was there already");
    }
    // Without a mode named, forms are meant.
    let elicitation = params.get("capabilities").and_then(|all| all.get("elicitation")).and_then(Value::as_object);
    state.client.may_elicit(elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form")));
    let mut info = json!({"name": "rwd", "version": state.server.version});
    if version >= STRUCTURED
        && let Some(info) = info.as_object_mut()
    {
        info.insert("title".into(), "rwd: undo for coding agents".into());
    }
    out.answer(
        id,
        &json!({
            "protocolVersion": version,
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": info,
            "instructions": state.server.instructions,
        }),
    );
}

fn listed(tool: &Tool, version: &str) -> Value {
    let mut listed = json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": tool.input,
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.reads_only,
            "destructiveHint": tool.destroys,
            "idempotentHint": tool.repeatable,
            "openWorldHint": false,
        },
    });
    if version >= STRUCTURED
        && let Some(fields) = listed.as_object_mut()
    {
        fields.insert("title".into(), tool.title.into());
        fields.insert("outputSchema".into(), tool.output.clone());
    }
    listed
}

fn resource(resource: &Resource, address: &str) -> Value {
    let mut fields = Map::new();
    fields.insert(address.to_owned(), resource.uri.into());
    fields.insert("name".into(), resource.name.into());
    fields.insert("description".into(), resource.about.into());
    fields.insert("mimeType".into(), "application/json".into());
    fields.into()
}

fn work(state: &Arc<State>, queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        // A fault in one call must not end the others.
        if !job.request.is_cancelled() && !state.closing.load(Ordering::SeqCst) {
            let done = catch_unwind(AssertUnwindSafe(|| carry_out(state, &job)));
            // What was cancelled is not answered: nobody waits.
            if job.request.is_cancelled() {
                job.out.silent();
            } else {
                match done.unwrap_or_else(|_| Err((INTERNAL, format!("{} failed inside", job.method)))) {
                    Ok(result) => job.out.answer(&job.request.id, &result),
                    Err((code, message)) => job.out.fail(&job.request.id, code, &message),
                }
            }
        } else {
            job.out.silent();
        }
        locked(&state.running).remove(&job.request.id.to_string());
    }
}

fn carry_out(state: &State, job: &Job) -> Result<Value, (i64, String)> {
    let text = |field: &str| {
        let text = job.params.get(field).and_then(Value::as_str);
        text.ok_or_else(|| (PARAMS, format!("{field} must be a string")))
    };
    if job.method == "resources/read" {
        let uri = text("uri")?;
        let found = state.server.desk.read(uri, &job.request);
        let found = found.ok_or_else(|| (NO_RESOURCE, format!("there is no resource {uri}")))?;
        return Ok(json!({"contents": [{"uri": uri, "mimeType": "application/json", "text": found.text}]}));
    }
    let name = text("name")?;
    if !state.server.desk.tools().iter().any(|tool| tool.name == name) {
        return Err((PARAMS, format!("there is no tool {name}")));
    }
    let arguments = match job.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err((PARAMS, "arguments must be an object".to_owned())),
    };
    let answer = state.server.desk.call(name, arguments, &job.request);
    Ok(told(answer, state.version.get().copied().unwrap_or_default()))
}

fn told(answer: Answer, version: &str) -> Value {
    let failed = answer.error.is_some();
    let mut told = json!({"content": [{"type": "text", "text": answer.text}], "isError": failed});
    if let Some(fields) = told.as_object_mut() {
        if let Some(structured) = answer.structured.filter(|_| version >= STRUCTURED && !failed) {
            fields.insert("structuredContent".into(), structured);
        }
        if let Some(error) = answer.error {
            fields.insert("_meta".into(), json!({ "rwd/error": error }));
        }
    }
    told
}
