//! The other end of the pipe.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// Result of a request to the client; `None` for an error.
pub(super) type Reply = Option<Value>;

/// One client.
pub(super) struct Client {
    out: Mutex<Box<dyn Write + Send>>,
    gone: AtomicBool,
    /// People can be asked through it.
    elicits: AtomicBool,
    next: AtomicU64,
    pending: Mutex<HashMap<String, Sender<Reply>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("gone", &self.gone).finish_non_exhaustive()
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self {
            out: Mutex::new(out),
            gone: AtomicBool::new(false),
            elicits: AtomicBool::new(false),
            next: AtomicU64::new(1),
            pending: Mutex::default(),
        }
    }

    pub(super) fn elicits(&self) -> bool {
        self.elicits.load(Ordering::SeqCst) && !self.gone.load(Ordering::SeqCst)
    }

    pub(super) fn may_elicit(&self, may: bool) {
        self.elicits.store(may, Ordering::SeqCst);
    }

    /// Nothing more comes from it: whoever waits for an answer gets none.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
        locked(&self.pending).clear();
    }

    /// Writes a line. False when the client does not read any more.
    pub(super) fn send(&self, message: &Value) -> bool {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let mut out = locked(&self.out);
        let sent = out.write_all(&line).and_then(|()| out.flush());
        drop(out);
        if let Err(error) = &sent {
            tracing::debug!(%error, "the client does not read");
            self.leave();
        }
        sent.is_ok()
    }

    /// Sends a request; where its answer will come, and its id.
    pub(super) fn request(&self, method: &str, params: &Value) -> (Receiver<Reply>, String) {
        let id = format!("rwd-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = channel();
        locked(&self.pending).insert(id.clone(), sender);
        // Said before the entry was there, it would not have been seen.
        if self.gone.load(Ordering::SeqCst) {
            self.give_up(&id);
        } else {
            self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
        (receiver, id)
    }

    /// Waits no longer for an answer.
    pub(super) fn give_up(&self, id: &str) {
        locked(&self.pending).remove(id);
    }

    /// An answer of the client.
    pub(super) fn answered(&self, id: &Value, reply: Reply) {
        let waiting = id.as_str().and_then(|id| locked(&self.pending).remove(id));
        if let Some(sender) = waiting {
            // Whoever asked may have gone.
            drop(sender.send(reply));
        } else {
            tracing::debug!(%id, "an answer to nothing");
        }
    }
}
