//! What `opencode export` prints: `{info, messages: [{info, parts: […]}]}`.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use checkpoint_core::{Beat, Turn};
use data_encoding::HEXLOWER;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::super::{
    door::{DoorError, Mark, PROMPT_CHARS, Talked, TurnSeen},
    fields::{Fields, list},
};

/// A message with its parts.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) raw: Fields<'a>,
    pub(super) info: Fields<'a>,
    pub(super) parts: Vec<Fields<'a>>,
    pub(super) id: String,
    role: String,
}

/// A session.
#[derive(Debug)]
pub(super) struct Export<'a> {
    pub(super) info: Fields<'a>,
    pub(super) messages: Vec<Message<'a>>,
    /// Where rwd made it from another: whose child it is, and the keys of the turns that it shares.
    origin: Option<(String, Vec<String>)>,
}

/// Under this name a child's metadata says what rwd made it from.
pub(super) const MADE_BY: &str = "rwd";

/// Parts that hold nothing that was said.
const SILENT: [&str; 5] = ["step-start", "step-finish", "patch", "snapshot", "retry"];
/// Members of a part that were said; the others are ids, times and what the client works out.
const SAID: [&str; 12] = [
    "text",
    "synthetic",
    "ignored",
    "tool",
    "callID",
    "url",
    "mime",
    "filename",
    "prompt",
    "description",
    "agent",
    "name",
];

/// JSON without the blanks between its tokens.
fn compact(raw: &RawValue) -> String {
    let (mut out, mut inside, mut escaped) = (String::with_capacity(raw.get().len()), false, false);
    for c in raw.get().chars() {
        match c {
            ' ' | '\n' | '\r' | '\t' if !inside => continue,
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
    }
    out
}

impl<'a> Message<'a> {
    fn parse(raw: &'a RawValue) -> Option<Self> {
        let raw = Fields::of(raw)?;
        let info = raw.object("info")?;
        let parts = list(raw.get("parts")?)?.into_iter().map(Fields::of).collect::<Option<Vec<_>>>()?;
        let (id, role) = (info.text("id")?.into_owned(), info.text("role")?.into_owned());
        parts.iter().all(|part| part.text("id").is_some()).then_some(Self { raw, info, parts, id, role })
    }

    /// What a message says, when somebody asked it. The client writes messages of the user's role itself: after it made
    /// the conversation shorter, and to go on after a task.
    fn prompt(&self) -> Option<String> {
        let kinds = || self.parts.iter().map(|part| part.text("type").unwrap_or_default());
        let asked = self.role == "user"
            && !kinds().any(|kind| kind == "compaction")
            && (self.parts.is_empty() || self.parts.iter().any(|part| !part.is("synthetic")));
        let texts = self.parts.iter().filter(|part| !part.is("synthetic")).filter_map(|part| part.text("text"));
        asked.then(|| texts.collect::<Vec<Cow<'_, str>>>().join("\n"))
    }

    /// The model's last word of a turn, as far as it can be seen from it.
    fn ends(&self) -> bool {
        if self.role != "assistant" {
            return false;
        }
        let open = self
            .parts
            .iter()
            .filter_map(|part| part.object("state"))
            .any(|state| matches!(state.text("status").as_deref(), Some("pending" | "running")));
        let completed = self.info.object("time").is_some_and(|time| time.get("completed").is_some());
        let finish = self.info.text("finish");
        completed && !open && finish.is_some_and(|finish| !matches!(&*finish, "tool-calls" | "unknown"))
            || self.info.object("error").is_some()
    }

    fn digest(&self, sum: &mut Sha256) {
        // Lengths, so that no text can look like two.
        let mut said = |name: &str, text: &str| {
            sum.update(format!("{name} {}\n", text.len()));
            sum.update(text);
            sum.update(b"\n");
        };
        said("role", &self.role);
        for part in &self.parts {
            let kind = part.text("type").unwrap_or_default();
            if SILENT.contains(&&*kind) {
                continue;
            }
            said("part", &kind);
            for name in SAID {
                if let Some(value) = part.get(name) {
                    said(name, &compact(value));
                }
            }
            let Some(state) = part.object("state") else { continue };
            if let Some(input) = state.get("input") {
                said("input", &compact(input));
            }
            // What is not over yet, or was broken off, is told in another way later.
            if let Some(output) = state.get("output").filter(|_| state.text("status").as_deref() == Some("completed")) {
                said("output", &compact(output));
            }
        }
    }
}

impl<'a> Export<'a> {
    /// Reads what `opencode export` of `id` printed; `path` is named in errors.
    pub(super) fn parse(text: &'a [u8], id: &str, path: &Path) -> Result<Self, DoorError> {
        let refuse = |why: &str| DoorError::Unsupported {
            path: path.to_owned(),
            line: 0,
            why: format!("opencode export {id}: {why}"),
        };
        let whole = Fields::parse(text).ok_or_else(|| refuse("it is no JSON object"))?;
        let info = whole.object("info").ok_or_else(|| refuse("it has no info"))?;
        if info.text("id").as_deref() != Some(id) {
            return Err(refuse("it is of another session"));
        }
        let rows = whole.get("messages").and_then(list).ok_or_else(|| refuse("it has no list of messages"))?;
        let mut messages = Vec::with_capacity(rows.len());
        for (raw, number) in rows.into_iter().zip(1..) {
            let message = Message::parse(raw);
            messages.push(message.ok_or_else(|| refuse(&format!("message {number} is no message with parts")))?);
        }
        // What its own "revert" took back is still there until the next prompt, and is no part of the conversation.
        if let Some(from) = info.object("revert").and_then(|revert| revert.text("messageID").map(Cow::into_owned)) {
            let at = messages.iter().position(|message| message.id == from);
            messages.truncate(at.unwrap_or(messages.len()));
        }
        let origin = info.object("metadata").and_then(|metadata| metadata.object(MADE_BY)).and_then(|made| {
            let keys = list(made.get("turns")?)?.into_iter().map(|key| serde_json::from_str(key.get()).ok());
            Some((made.text("forkedFrom")?.into_owned(), keys.collect::<Option<Vec<String>>>()?))
        });
        Ok(Self { info, messages, origin })
    }

    /// Its turns. A cut is a number of messages.
    pub(super) fn talk(&self, path: &Path) -> Talked {
        let (parent, keys) = match &self.origin {
            Some((parent, keys)) => (Some(parent.clone()), &**keys),
            None => (None, &[][..]),
        };
        let task = self.info.text("parentID").map(Cow::into_owned);
        let mut talked = Talked {
            path: path.to_owned(),
            cwd: self.info.text("directory").map(|dir| PathBuf::from(&*dir)),
            subagent: task.is_some(),
            parent: task.or(parent),
            seed_turns: keys.len(),
            ..Talked::default()
        };
        let mut sum = Sha256::new_with_prefix(b"rwd opencode prefix 1\n");
        let digest = |sum: &Sha256| HEXLOWER.encode(&sum.clone().finalize());
        let turn = |number: usize| Turn(u32::try_from(number).unwrap_or(u32::MAX));
        let mut ended = false;
        for (message, at) in self.messages.iter().zip(0..) {
            if let Some(said) = message.prompt() {
                let number = talked.turns.len();
                if number > 0 {
                    talked.marks.push(Mark { beat: Beat::TurnEnd(turn(number)), digest: digest(&sum), cut: at });
                }
                // A turn that it shares with its parent is known by the parent's key: this is what points have.
                let key = keys.get(number).cloned().unwrap_or_else(|| message.id.clone());
                let time =
                    message.info.object("time").and_then(|time| time.get("created").map(|at| at.get().to_owned()));
                let prompt = Some(said.chars().take(PROMPT_CHARS).collect());
                talked.turns.push(TurnSeen { key: Some(key), prompt, at: time });
                sum.update(b"turn\n");
                let beat = Beat::TurnStart(turn(number + 1));
                talked.marks.push(Mark { beat, digest: digest(&sum), cut: at });
            }
            message.digest(&mut sum);
            ended = message.ends();
        }
        if !talked.turns.is_empty() {
            let beat = Beat::TurnEnd(turn(talked.turns.len()));
            let end = Mark { beat, digest: digest(&sum), cut: self.messages.len() as u64 };
            if ended { talked.marks.push(end) } else { talked.rest = Some(end) }
        }
        talked.end_what_is_shared();
        talked
    }
}
