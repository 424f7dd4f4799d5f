//! The loop: who is asked what, in which order, and how it ends.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use checkpoint_core::{Clock, ErrorKind, ProcessId, SessionKey, SessionLog};
use serde_json::Value;

use super::call::Call;
use super::host::{Workspace, Workspaces};
use super::live_log::LiveLogs;
use super::peer::Peer;
use super::problem::Failed;
use super::protocol::{Client, Done, Hello, MAX_LINE, METHODS, Message, PROTOCOL, SessionOpen, Shutdown, Welcome};
use super::verbs;
use crate::rpc::envelope::{self, INVALID, Incoming, PARSE, UNKNOWN};
use crate::rpc::lines::{Line, next_line};
use crate::turn_view::TurnView;

/// Sessions that one connection may have open.
const SESSIONS: usize = 1024;
/// Requests that may be under way or wait.
const REQUESTS: usize = 1024;

/// What a sidecar is made of.
#[derive(Debug)]
pub struct Sidecar {
    /// Where workspaces come from.
    pub workspaces: Arc<dyn Workspaces>,
    /// Logs of sessions that are not open.
    pub logs: Arc<dyn SessionLog>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The version that is told.
    pub version: &'static str,
    /// The process that started this one: the harness, unless the client names another.
    pub parent: Option<u32>,
}

/// An open session.
#[derive(Debug)]
pub(super) struct Open {
    /// As the client calls it.
    pub(super) name: String,
    pub(super) key: SessionKey,
    pub(super) dir: PathBuf,
    /// The host's configuration, as it was last told.
    pub(super) host_state: Mutex<Option<String>>,
    /// Where its turns are shown as files (000-04).
    pub(super) view: Option<Arc<TurnView>>,
    /// Up to which place of the index its model knows of files that were put back; at first nothing is known.
    pub(super) seen: Mutex<Option<u64>>,
}

struct Job {
    call: Arc<Call>,
    method: String,
    params: Value,
}

/// Everything that the requests of a connection share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) host: Sidecar,
    pub(super) peer: Arc<Peer>,
    pub(super) logs: Arc<LiveLogs>,
    pub(super) sessions: Mutex<HashMap<String, Arc<Open>>>,
    pub(super) roots: Mutex<HashMap<PathBuf, Arc<dyn Workspace>>>,
    pub(super) process: Mutex<Option<ProcessId>>,
    lanes: Mutex<HashMap<String, Sender<Job>>>,
    running: Mutex<HashMap<String, Arc<Call>>>,
    idle: Condvar,
    greeted: AtomicBool,
    closing: AtomicBool,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Captures and what else must happen in the order in which it was said.
fn is_ordered(method: &str) -> bool {
    let ordered =
        ["session.", "turn.", "step.", "capture", "fork.record", "mark", "completeFold", "point.name", "name.set"];
    ordered.iter().any(|start| method.starts_with(start))
}

impl Sidecar {
    /// Serves one client until it shuts the sidecar down or its end of `input` is closed. What was asked for by then is
    /// finished before this returns.
    ///
    /// After `shutdown` a thread may still wait for `input`; it ends with the process or when `input` does.
    pub fn serve(self, input: Box<dyn BufRead + Send>, output: Box<dyn Write + Send>) {
        let peer = Arc::new(Peer::new(output));
        let state = Arc::new(State {
            logs: Arc::new(LiveLogs::new(Arc::clone(&peer), Arc::clone(&self.logs))),
            process: Mutex::new(self.parent.and_then(process)),
            host: self,
            peer,
            sessions: Mutex::default(),
            roots: Mutex::default(),
            lanes: Mutex::default(),
            running: Mutex::default(),
            idle: Condvar::new(),
            greeted: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        });
        let (ended, end) = channel();
        let reader = Arc::clone(&state);
        let by_end_of_input = ended.clone();
        let spawned = thread::Builder::new().name("rwd-reader".into()).spawn(move || {
            read_all(&reader, input, &ended);
            // Nobody is there any more who could answer a callback.
            reader.peer.leave();
            // Whoever waited may have been told by a shutdown.
            let _told = by_end_of_input.send(());
        });
        match spawned {
            Ok(_) => drop(end.recv()),
            Err(error) => tracing::error!(%error, "no thread"),
        }
        locked(&state.lanes).clear();
        state.wait_until_idle();
    }
}

/// The process of that number, as it is now.
fn process(pid: u32) -> Option<ProcessId> {
    let found = durable_fs::Process::of(pid).ok()?;
    Some(ProcessId { pid: found.pid, started: found.start, boot: found.boot })
}

fn read_all(state: &Arc<State>, mut input: Box<dyn BufRead + Send>, ended: &Sender<()>) {
    loop {
        let line = match next_line(&mut *input, MAX_LINE) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "standard input cannot be read");
                return;
            }
        };
        match line {
            Line::TooLong => {
                let message = "the line is longer than 8 MiB";
                state.peer.fail(&Value::Null, INVALID, message, None);
            }
            Line::Torn => state.peer.fail(&Value::Null, PARSE, "the last line is not ended", None),
            Line::Whole(line) => match envelope::read(&line) {
                Incoming::Answer { id, ended } => state.peer.answered(&id, ended),
                Incoming::Notice { method, params } => state.told(&method, &params),
                Incoming::Bad { id, code, message } => state.peer.fail(&id, code, &message, None),
                Incoming::Request { id, method, params } => {
                    if let Err(failed) = state.take(&id, method, params, ended) {
                        state.fail(&id, &failed);
                    }
                }
            },
        }
    }
}

impl State {
    fn fail(&self, id: &Value, failed: &Failed) {
        self.peer.fail(id, failed.number, &failed.message, failed.problem.as_deref());
    }

    /// A notice: the only one that means something is that a request is given up.
    fn told(&self, method: &str, params: &Value) {
        if method == "$/cancel"
            && let Some(call) = params.get("id").and_then(|id| locked(&self.running).get(&id.to_string()).cloned())
        {
            call.cancel();
        }
    }

    /// Takes a request, or says why not.
    fn take(self: &Arc<Self>, id: &Value, method: String, params: Value, ended: &Sender<()>) -> Result<(), Failed> {
        if method == Hello::METHOD {
            let welcome = self.greet(verbs::read(params)?)?;
            self.peer.answer(id, &welcome);
            return Ok(());
        }
        if !METHODS.contains(&method.as_str()) {
            let message = format!("there is no method {method:?}");
            let failed = Failed::refused("unknown-method", ErrorKind::Usage, message, Some("hello lists the methods"));
            return Err(Failed { number: UNKNOWN, ..failed });
        }
        if !self.greeted.load(Ordering::SeqCst) {
            return Err(Failed::refused("hello-first", ErrorKind::Usage, "the first request must be hello", None));
        }
        if self.closing.load(Ordering::SeqCst) {
            return Err(Failed::refused("shutting-down", ErrorKind::Failure, "the sidecar is shutting down", None));
        }
        if method == Shutdown::METHOD {
            let Shutdown {} = verbs::read(params)?;
            self.closing.store(true, Ordering::SeqCst);
            let (state, id, ended) = (Arc::clone(self), id.clone(), ended.clone());
            // Answers to callbacks must be read meanwhile.
            let waiter = move || {
                state.wait_until_idle();
                state.peer.answer(&id, &Done {});
                let _told = ended.send(());
            };
            thread::Builder::new().spawn(waiter).map_err(|error| Failed::internal(error.to_string()))?;
            return Ok(());
        }
        let name = params.get("session").and_then(Value::as_str).map(str::to_owned);
        let name = name.ok_or_else(|| Failed::params("session must be a string"))?;
        let lane = self.lane(&name, method == SessionOpen::METHOD)?;
        let call = Arc::new(Call::new(id.clone(), Arc::clone(&self.peer)));
        {
            let mut running = locked(&self.running);
            if running.len() >= REQUESTS {
                let hint = Some("wait for answers");
                return Err(Failed::refused("busy", ErrorKind::Busy, "too many requests are under way", hint));
            }
            if running.contains_key(&id.to_string()) {
                return Err(Failed { number: INVALID, ..Failed::params("a request with this id is under way") });
            }
            running.insert(id.to_string(), Arc::clone(&call));
        }
        if let Err(unsent) = lane.send(Job { call, method, params }) {
            self.finished(&unsent.0.call);
            return Err(Failed::internal("the session's worker is gone"));
        }
        Ok(())
    }

    fn greet(&self, hello: Hello) -> Result<Welcome, Failed> {
        if hello.protocol == 0 {
            let hint = format!("this rwd speaks protocol {PROTOCOL}");
            return Err(Failed::refused("protocol", ErrorKind::Usage, "there is no protocol 0", Some(&hint)));
        }
        self.peer.offer(hello.callbacks);
        if let Some(pid) = hello.client.pid {
            let found = process(pid);
            let none = || Failed::params(format!("client.pid: there is no process {pid}"));
            *locked(&self.process) = Some(found.ok_or_else(none)?);
        }
        self.greeted.store(true, Ordering::SeqCst);
        Ok(Welcome {
            protocol: hello.protocol.min(PROTOCOL),
            engine: Client {
                name: "rwd".into(),
                version: Some(self.host.version.into()),
                pid: Some(std::process::id()),
            },
            capabilities: METHODS.iter().map(|&method| method.to_owned()).collect(),
        })
    }

    /// The queue of a session.
    fn lane(self: &Arc<Self>, name: &str, open: bool) -> Result<Sender<Job>, Failed> {
        let mut lanes = locked(&self.lanes);
        if let Some(lane) = lanes.get(name) {
            return Ok(lane.clone());
        }
        if !open {
            return Err(verbs::not_open(name));
        }
        if lanes.len() >= SESSIONS {
            let hint = Some("close some with session.close");
            return Err(Failed::refused("busy", ErrorKind::Busy, "too many sessions are open", hint));
        }
        let (sender, jobs) = channel();
        let state = Arc::clone(self);
        let worker = move || work(&state, &jobs);
        thread::Builder::new()
            .name("rwd-session".into())
            .spawn(worker)
            .map_err(|error| Failed::internal(format!("no thread: {error}")))?;
        lanes.insert(name.to_owned(), sender.clone());
        Ok(sender)
    }

    /// Ends a session's queue once it is empty.
    pub(super) fn end_lane(&self, name: &str) {
        locked(&self.lanes).remove(name);
    }

    fn finished(&self, call: &Call) {
        let mut running = locked(&self.running);
        running.remove(&call.id.to_string());
        if running.is_empty() {
            self.idle.notify_all();
        }
    }

    fn wait_until_idle(&self) {
        let mut running = locked(&self.running);
        while !running.is_empty() {
            running = self.idle.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One session's requests, in order; those that need no order begin in order and go on beside it.
fn work(state: &Arc<State>, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        if is_ordered(&job.method) {
            carry_out(state, job);
            continue;
        }
        let (sender, taken) = channel();
        let beside = Arc::clone(state);
        let spawned = thread::Builder::new().name("rwd-request".into()).spawn(move || {
            if let Ok(job) = taken.recv() {
                carry_out(&beside, job);
            }
        });
        match spawned {
            Ok(_) => drop(sender.send(job)),
            Err(_) => carry_out(state, job),
        }
    }
}

fn carry_out(state: &Arc<State>, job: Job) {
    let Job { call, method, params } = job;
    let ended = if call.is_cancelled() {
        Err(Failed::interrupted())
    } else {
        // A fault in one request must not end the others.
        catch_unwind(AssertUnwindSafe(|| verbs::handle(state, &call, &method, params)))
            .unwrap_or_else(|_| Err(Failed::internal(format!("{method} failed inside"))))
    };
    match ended {
        Ok(result) => state.peer.answer(&call.id, &result),
        Err(failed) => state.fail(&call.id, &failed),
    }
    for job in call.take_later() {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!(%method, "what follows the answer failed inside");
        }
    }
    state.finished(&call);
}
