//! Session logs of Gemini CLI: `<home>/.gemini/tmp/<project>/chats/session-<time>-<id8>.jsonl`.
//!
//! The file is a journal and not the conversation: a head, messages (one of an `id` that is there replaces it),
//! `{"$set": …}` which changes the head and may replace all messages, `{"$rewindTo": id}` which drops a message and those
//! after it. Every resume writes a second head and all messages anew, with other times and in another shape. So the journal
//! is replayed, and a child is the replayed messages.
//!
//! A cut is a number of messages. The digest is over `id` and text of prompts and of the model's messages, which stay when
//! a session is resumed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use checkpoint_core::{Beat, Timestamp, Turn};
use data_encoding::HEXLOWER;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{
    child::{Child, now},
    claude::{dirs, entries},
    door::{Door, DoorError, Format, Mark, PROMPT_CHARS, Talked, TurnSeen, Upto},
    fields::{Fields, list, quoted},
    lines::{BEGINNING, Ending, Lines, text},
};
use crate::named_points::iso;

/// The name in session keys.
pub const HARNESS: &str = "gemini";

/// The logs below a configuration directory.
#[derive(Clone, Debug)]
pub struct Gemini {
    config: PathBuf,
}

/// The logs below a configuration directory, which need not be there. Nothing is read now.
pub fn open(config: impl Into<PathBuf>) -> Door<Gemini> {
    Door(Gemini { config: config.into() })
}

/// `$GEMINI_CLI_HOME/.gemini`, else `~/.gemini`; `None` without a home.
pub fn default_home(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    Some(var("GEMINI_CLI_HOME").or_else(|| var("HOME"))?.join(".gemini"))
}

/// What a row of the journal can do besides adding a message.
const DOES: [&str; 2] = ["$set", "$rewindTo"];

/// A message, as it is written.
#[derive(Clone, Debug)]
struct Message {
    id: String,
    json: Box<str>,
}

/// A journal that was replayed.
#[derive(Debug, Default)]
struct Replayed {
    session: Option<String>,
    /// Members of the head that a child has too.
    project: Option<String>,
    kind: Option<String>,
    parent: Option<String>,
    seed: usize,
    messages: Vec<Message>,
    /// Where each message is: a journal names the same one many times.
    places: HashMap<String, usize>,
    torn: bool,
}

/// The texts of a message's content, one after the other.
fn text_of(content: &RawValue) -> Option<String> {
    match list(content) {
        None => text(Some(content)).map(Cow::into_owned),
        Some(parts) => {
            let texts = parts.into_iter().filter_map(|part| Some(Fields::of(part)?.text("text")?.into_owned()));
            Some(texts.collect())
        }
    }
}

fn has_part(content: &RawValue, name: &str) -> bool {
    let parts = list(content).unwrap_or_default();
    parts.into_iter().filter_map(Fields::of).any(|part| part.get(name).is_some())
}

/// What a message says, when somebody typed it.
fn prompt(message: &Fields<'_>) -> Option<String> {
    let content = message.get("content").filter(|_| message.text("type").as_deref() == Some("user"))?;
    let said = text_of(content)?;
    let synthetic = has_part(content, "functionResponse") || said.contains("<session_context>");
    (!synthetic).then_some(said)
}

impl Replayed {
    fn message(raw: &str) -> Option<Message> {
        let fields = Fields::parse(raw.as_bytes())?;
        fields.get("type")?;
        Some(Message { id: fields.text("id")?.into_owned(), json: raw.into() })
    }

    fn head(&mut self, fields: &Fields<'_>) {
        let text = |name: &str| fields.text(name).map(Cow::into_owned);
        self.session = text("sessionId").or(self.session.take());
        self.project = text("projectHash").or(self.project.take());
        self.kind = text("kind").or(self.kind.take());
        if let Some(from) = fields.object("forkedFrom") {
            self.parent = from.text("sessionId").map(Cow::into_owned);
            self.seed = from.get("turns").and_then(|turns| turns.get().parse().ok()).unwrap_or(0);
        }
    }

    fn row(&mut self, row: &Fields<'_>, raw: &str) {
        if let Some(set) = row.object("$set") {
            if let Some(messages) = set.get("messages").and_then(list) {
                self.messages = messages.into_iter().filter_map(|raw| Self::message(raw.get())).collect();
                self.places.clear();
                for (message, at) in self.messages.iter().zip(0..) {
                    self.places.entry(message.id.clone()).or_insert(at);
                }
            }
            self.head(&set);
        } else if let Some(to) = row.text("$rewindTo") {
            // The client drops everything where it does not know the message.
            let at = self.places.get(&*to).copied().unwrap_or(0);
            self.messages.truncate(at);
            self.places.retain(|_, place| *place < at);
        } else if let Some(message) = Self::message(raw) {
            if let Some(known) = self.places.get(&message.id).and_then(|at| self.messages.get_mut(*at)) {
                *known = message;
            } else {
                self.places.insert(message.id.clone(), self.messages.len());
                self.messages.push(message);
            }
        } else if row.get("sessionId").is_some() {
            self.head(row);
        }
    }
}

/// Replays a journal. What is torn off its end is passed over; with `strict`, anything else that is broken is an error.
fn replay(path: &Path, strict: bool) -> Result<Replayed, DoorError> {
    let mut lines = Lines::open(path).map_err(DoorError::io("open", path))?;
    replay_lines(&mut lines, path, strict)
}

fn replay_lines(lines: &mut Lines, path: &Path, strict: bool) -> Result<Replayed, DoorError> {
    let mut replayed = Replayed::default();
    let mut broken = None;
    while let Some(line) = lines.next().map_err(DoorError::io("read", path))? {
        if let Some(broken) = broken.filter(|_| strict) {
            return Err(DoorError::corrupt(path, broken, "it is no JSON object"));
        }
        if line.ending == Ending::TooLong {
            let why = "it is longer than can be read".to_owned();
            return Err(DoorError::Unsupported { path: path.to_owned(), line: line.number, why });
        }
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let whole = str::from_utf8(line.text).ok().and_then(|raw| Some((Fields::parse(line.text)?, raw)));
        match whole {
            Some((row, raw)) => {
                if line.ending == Ending::Torn && strict {
                    replayed.torn = true;
                    break;
                }
                // What it does to the messages before it is not known.
                if let Some(name) =
                    row.names().find(|name| name.starts_with('$') && !DOES.contains(name)).filter(|_| strict)
                {
                    let why = format!("{name} is not understood");
                    return Err(DoorError::Unsupported { path: path.to_owned(), line: line.number, why });
                }
                replayed.row(&row, raw);
            }
            None => broken = Some(line.number),
        }
    }
    replayed.torn |= broken.is_some();
    Ok(replayed)
}

/// The keys of the prompts in lines of a transcript.
pub(super) fn keys(lines: &mut Lines, transcript: &Path) -> Result<Vec<Option<String>>, DoorError> {
    let replayed = replay_lines(lines, transcript, false)?;
    let prompts = replayed
        .messages
        .into_iter()
        .filter(|message| Fields::parse(message.json.as_bytes()).is_some_and(|fields| prompt(&fields).is_some()));
    Ok(prompts.map(|message| Some(message.id)).collect())
}

fn talk(path: &Path, replayed: &Replayed) -> Talked {
    let mut talked = Talked {
        path: path.to_owned(),
        cwd: cwd_of(path),
        parent: replayed.parent.clone(),
        subagent: replayed.kind.as_deref() == Some("subagent"),
        seed_turns: replayed.seed,
        torn: replayed.torn,
        ..Talked::default()
    };
    let mut sum = Sha256::new_with_prefix(b"rwd gemini prefix 1\n");
    let digest = |sum: &Sha256| HEXLOWER.encode(&sum.clone().finalize());
    let turn = |number: usize| Turn(u32::try_from(number).unwrap_or(u32::MAX));
    let mut ended = false;
    for (message, at) in replayed.messages.iter().zip(0..) {
        let Some(fields) = Fields::parse(message.json.as_bytes()) else { continue };
        let kind = fields.text("type").unwrap_or_default();
        let said = prompt(&fields);
        if let Some(said) = &said {
            if !talked.turns.is_empty() {
                let beat = Beat::TurnEnd(turn(talked.turns.len()));
                talked.marks.push(Mark { beat, digest: digest(&sum), cut: at });
            }
            talked.turns.push(TurnSeen {
                key: Some(message.id.clone()),
                prompt: Some(said.chars().take(PROMPT_CHARS).collect()),
                at: fields.text("timestamp").map(Cow::into_owned),
            });
            sum.update(b"turn\n");
            let beat = Beat::TurnStart(turn(talked.turns.len()));
            talked.marks.push(Mark { beat, digest: digest(&sum), cut: at });
            ended = false;
        }
        let calls = fields.get("toolCalls").and_then(list).is_some_and(|calls| !calls.is_empty())
            || fields.get("content").is_some_and(|content| has_part(content, "functionCall"));
        if said.is_some() || kind == "gemini" {
            let text = said.or_else(|| text_of(fields.get("content")?)).unwrap_or_default();
            // Lengths, so that no text can look like two.
            sum.update(format!("{kind} {} {}\n", message.id, text.len()));
            sum.update(text);
            sum.update(b"\n");
        }
        match &*kind {
            "gemini" => ended = !calls,
            "user" => ended = false,
            // Remarks of the client: they end nothing and begin nothing.
            _ => {}
        }
    }
    if !talked.turns.is_empty() {
        let beat = Beat::TurnEnd(turn(talked.turns.len()));
        let end = Mark { beat, digest: digest(&sum), cut: replayed.messages.len() as u64 };
        if ended { talked.marks.push(end) } else { talked.rest = Some(end) }
    }
    talked.end_what_is_shared();
    talked
}

/// What the client wrote beside the folder of logs.
fn cwd_of(path: &Path) -> Option<PathBuf> {
    let project = path.parent()?.parent()?;
    let mut lines = Lines::open(&project.join(".project_root")).ok()?;
    let line = lines.next().ok()??;
    let root = str::from_utf8(line.text).ok()?.trim_end_matches('\r');
    (!root.is_empty()).then(|| PathBuf::from(root))
}

/// How the name of a child's file ends.
fn tail(id: &str) -> &str {
    id.get(id.len().saturating_sub(8)..).unwrap_or(id)
}

/// The session of a log, from its first line.
fn id_of(path: &Path) -> Option<String> {
    let mut lines = Lines::open_begin(path, BEGINNING).ok()?;
    let line = lines.next().ok()??;
    Some(Fields::parse(line.text)?.text("sessionId")?.into_owned())
}

impl Gemini {
    /// The logs that may be of a session: by the beginning of its id, or all of them.
    fn logs(&self, id: Option<&str>) -> Result<Vec<PathBuf>, DoorError> {
        let ends = id.map(|id| [format!("-{}.jsonl", id.get(..8).unwrap_or(id)), format!("-{}.jsonl", tail(id))]);
        let mut logs = Vec::new();
        for project in dirs(&self.config.join("tmp"))? {
            for path in entries(&project.join("chats"))? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let fits = ends.as_ref().map_or_else(
                    || path.extension().is_some_and(|extension| extension == "jsonl"),
                    |ends| ends.iter().any(|end| name.ends_with(end.as_str())),
                );
                if fits && name.starts_with("session-") {
                    logs.push(path);
                }
            }
        }
        logs.sort();
        Ok(logs)
    }

    /// The log of a session. When a session is resumed the client begins a second file for it, with the preamble alone,
    /// and goes on in the first: what has no prompt is passed over where there are several.
    fn found(&self, id: &str) -> Result<PathBuf, DoorError> {
        let mut found: Vec<PathBuf> =
            self.logs(Some(id))?.into_iter().filter(|path| id_of(path).as_deref() == Some(id)).collect();
        if found.len() > 1 {
            let told = |path: &PathBuf| {
                Lines::open(path).is_ok_and(|mut lines| keys(&mut lines, path).is_ok_and(|keys| !keys.is_empty()))
            };
            let (with, without): (Vec<_>, Vec<_>) = found.into_iter().partition(told);
            found = if with.is_empty() { without.into_iter().take(1).collect() } else { with };
        }
        let mut found = found.into_iter();
        let none = || DoorError::NotFound { id: id.to_owned(), below: self.config.join("tmp") };
        let first = found.next().ok_or_else(none)?;
        match found.next() {
            None => Ok(first),
            Some(second) => {
                Err(DoorError::corrupt(&second, 0, format!("{} is a log of the same session", first.display())))
            }
        }
    }
}

impl Format for Gemini {
    fn harness(&self) -> &'static str {
        HARNESS
    }

    fn read(&self, id: &str) -> Result<Talked, DoorError> {
        let path = self.found(id)?;
        let replayed = replay(&path, true)?;
        if replayed.session.as_deref() != Some(id) {
            return Err(DoorError::corrupt(&path, 0, "it goes over into another session"));
        }
        Ok(talk(&path, &replayed))
    }

    fn find(&self, id: &str) -> Result<PathBuf, DoorError> {
        self.found(id)
    }

    /// The client says "session not found".
    fn opens_empty(&self) -> bool {
        false
    }

    /// A head, and the messages before the cut as they are. It starts now, so that the client's list shows it first.
    ///
    /// The name ends in the end of the id, where the client's own names have its beginning: a resume leaves a second file
    /// with the client's name, and the client's next start removes that as an empty session, with every file whose name
    /// ends alike.
    fn write(&self, id: &str, log: &Talked, upto: &Upto, child: &str) -> Result<PathBuf, DoorError> {
        let cut = upto.cut;
        let replayed = replay(&log.path, true)?;
        let time = iso(Timestamp(now().0));
        let folder = log.path.parent().unwrap_or(&log.path);
        let stamp = time.get(..16).unwrap_or(&time).replace(':', "-");
        let mut new = Child::begin(folder, &format!("session-{stamp}-{}.jsonl", tail(child)))?;
        let turns = log.marks.iter().filter(|mark| matches!(mark.beat, Beat::TurnStart(_)) && mark.cut < cut).count();
        let project =
            replayed.project.as_deref().map_or_else(String::new, |hash| format!(r#""projectHash":{},"#, quoted(hash)));
        new.line(
            format!(
                r#"{{"sessionId":{},{project}"startTime":"{time}","lastUpdated":"{time}","kind":"main","forkedFrom":{{"sessionId":{},"turns":{turns}}}}}"#,
                quoted(child),
                quoted(id),
            )
            .as_bytes(),
        )?;
        let kept = usize::try_from(cut).unwrap_or(usize::MAX);
        if replayed.messages.len() < kept {
            return Err(DoorError::ReadBack { path: folder.to_owned() });
        }
        for message in replayed.messages.iter().take(kept) {
            // A value out of one line holds no line feed: it is the one of the journal.
            new.line(message.json.as_bytes())?;
        }
        new.publish(child, |temp| upto.check(&talk(temp, &replay(temp, true)?), temp))
    }

    fn all(&self) -> Result<Vec<(String, PathBuf)>, DoorError> {
        let mut all: BTreeMap<String, PathBuf> = BTreeMap::new();
        for path in self.logs(None)? {
            let Some(id) = id_of(&path) else { continue };
            // Of several files of a session the longest is not the one that a resume began.
            let length = |path: &Path| path.metadata().map_or(0, |facts| facts.len());
            match all.get_mut(&id) {
                Some(known) if length(known) >= length(&path) => {}
                Some(known) => *known = path,
                None => drop(all.insert(id, path)),
            }
        }
        Ok(all.into_iter().collect())
    }

    fn cwd(&self, log: &Path) -> Option<PathBuf> {
        cwd_of(log)
    }
}
