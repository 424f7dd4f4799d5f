//! One request that is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;

/// How often a question looks whether it is wanted still.
const LOOK: Duration = Duration::from_millis(50);

/// What a person said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// Go on.
    Yes,
    /// Anything else.
    No,
    /// Nobody could be asked.
    Nothing,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    pub(super) id: Value,
    client: Arc<Client>,
    cancelled: Arc<AtomicBool>,
}

impl Request {
    pub(super) fn new(id: Value, client: Arc<Client>) -> Self {
        Self { id, client, cancelled: Arc::default() }
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Set once the client does not want it any more, or the server is told to end.
    pub fn cancelled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// Puts a question to whoever sits at the client (`elicitation/create`) and waits for the answer. The question has no
    /// fields: accepting is the yes, and nothing else is.
    pub fn ask(&self, question: &str) -> Said {
        if !self.client.elicits() {
            return Said::Nothing;
        }
        let params = json!({"message": question, "requestedSchema": {"type": "object", "properties": {}}});
        let (reply, id) = self.client.request("elicitation/create", &params);
        let reply = loop {
            match reply.recv_timeout(LOOK) {
                Ok(reply) => break reply,
                Err(RecvTimeoutError::Disconnected) => return Said::Nothing,
                Err(RecvTimeoutError::Timeout) if self.is_cancelled() => {
                    self.client.give_up(&id);
                    let told = json!({"requestId": id, "reason": "the call was cancelled"});
                    self.client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told}));
                    return Said::No;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        match reply {
            Some(said) if said.get("action").and_then(Value::as_str) == Some("accept") && !self.is_cancelled() => {
                Said::Yes
            }
            Some(_) => Said::No,
            // It says that it can ask, and then it cannot.
            None => Said::Nothing,
        }
    }
}
