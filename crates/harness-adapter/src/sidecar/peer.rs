//! The other end of the pipe: answers, notices and requests to it.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::protocol::{MAX_LINE, Message, Problem};
use crate::rpc::envelope::INTERNAL;

/// How often a waiting request looks whether it is wanted still.
const LOOK: Duration = Duration::from_millis(50);

type Ended = Result<Value, (String, Value)>;

/// Why a request to the client has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// It does not answer such requests.
    #[error("the client does not answer {0}")]
    NotOffered(&'static str),
    /// It is gone.
    #[error("the client is gone")]
    Gone,
    /// The request that this one belongs to was given up.
    #[error("interrupted")]
    Cancelled,
    /// It said no.
    #[error("{message}")]
    Refused { code: String, message: String },
    /// It said something else.
    #[error("the answer to {method} does not fit: {why}")]
    Misfit { method: &'static str, why: String },
}

/// One client.
pub(super) struct Peer {
    out: Mutex<Box<dyn Write + Send>>,
    gone: AtomicBool,
    next: AtomicU64,
    pending: Mutex<HashMap<String, Sender<Ended>>>,
    offered: RwLock<Vec<String>>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("gone", &self.gone).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self {
            out: Mutex::new(out),
            gone: AtomicBool::new(false),
            next: AtomicU64::new(1),
            pending: Mutex::default(),
            offered: RwLock::default(),
        }
    }

    /// The callbacks that the client answers.
    pub(super) fn offer(&self, callbacks: Vec<String>) {
        *self.offered.write().unwrap_or_else(PoisonError::into_inner) = callbacks;
    }

    pub(super) fn offers<M: Message>(&self) -> bool {
        let offered = self.offered.read().unwrap_or_else(PoisonError::into_inner);
        offered.iter().any(|method| method == M::METHOD)
    }

    /// Nothing more comes from it: whoever waits for an answer gets none.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
        locked(&self.pending).clear();
    }

    /// Writes a line. A client that does not read any more is gone; what runs goes on.
    fn send(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let mut out = locked(&self.out);
        if let Err(error) = out.write_all(&line).and_then(|()| out.flush()) {
            tracing::debug!(%error, "the client does not read");
            drop(out);
            self.leave();
        }
    }

    pub(super) fn answer(&self, id: &Value, result: &impl Serialize) {
        let result = serde_json::to_value(result);
        let message = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => return self.fail(id, INTERNAL, &error.to_string(), None),
        };
        // A client keeps to the same limit: what it would pass over must not look like silence.
        if message.to_string().len() > MAX_LINE {
            let problem = Problem {
                code: "answer-too-large".into(),
                kind: "failure".into(),
                hints: vec!["ask for less: with limit, or for fewer paths".into()],
                ..Problem::default()
            };
            return self.fail(id, crate::rpc::envelope::REFUSED, "the answer is longer than 8 MiB", Some(&problem));
        }
        self.send(&message);
    }

    pub(super) fn fail(&self, id: &Value, code: i64, message: &str, data: Option<&Problem>) {
        let mut error = json!({"code": code, "message": message});
        if let (Some(data), Some(fields)) =
            (data.and_then(|data| serde_json::to_value(data).ok()), error.as_object_mut())
        {
            fields.insert("data".into(), data);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    pub(super) fn tell<M: Message>(&self, notice: &M) {
        if let Ok(params) = serde_json::to_value(notice) {
            self.send(&json!({"jsonrpc": "2.0", "method": M::METHOD, "params": params}));
        }
    }

    /// Asks the client and waits, as long as `wanted` says so.
    pub(super) fn call<M: Message>(&self, params: &M, wanted: &dyn Fn() -> bool) -> Result<M::Answer, CallError> {
        if !self.offers::<M>() {
            return Err(CallError::NotOffered(M::METHOD));
        }
        let misfit = |error: serde_json::Error| CallError::Misfit { method: M::METHOD, why: error.to_string() };
        let params = serde_json::to_value(params).map_err(misfit)?;
        let id = format!("rwd-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = channel();
        locked(&self.pending).insert(id.clone(), sender);
        // Said before the entry was there, it would not have been seen.
        if self.gone.load(Ordering::SeqCst) {
            locked(&self.pending).remove(&id);
            return Err(CallError::Gone);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": M::METHOD, "params": params}));
        let ended = loop {
            match receiver.recv_timeout(LOOK) {
                Ok(ended) => break ended,
                Err(RecvTimeoutError::Disconnected) => return Err(CallError::Gone),
                Err(RecvTimeoutError::Timeout) if !wanted() => {
                    locked(&self.pending).remove(&id);
                    self.tell(&super::protocol::Cancel { id: json!(id) });
                    return Err(CallError::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        match ended {
            Ok(result) => serde_json::from_value(result).map_err(misfit),
            Err((message, data)) => {
                let code = data.get("code").and_then(Value::as_str).unwrap_or_default().to_owned();
                Err(CallError::Refused { code, message })
            }
        }
    }

    /// An answer of the client.
    pub(super) fn answered(&self, id: &Value, ended: Ended) {
        let waiting = id.as_str().and_then(|id| locked(&self.pending).remove(id));
        if let Some(sender) = waiting {
            // Whoever asked may have gone.
            drop(sender.send(ended));
        } else {
            tracing::debug!(%id, "an answer to nothing");
        }
    }
}
