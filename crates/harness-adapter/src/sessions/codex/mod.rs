//! Session logs of Codex: `<home>/sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`.
//!
//! The first line is the head (`session_meta`); every other line is an event or an item of the conversation. A log only
//! grows. A fork that Codex makes itself holds no copy of what it shares: its head points into another log
//! (`history_base`), which is read as if it stood there. A thread that was taken back has a second, newer file of the same
//! kind. A turn begins with the event `task_started`, which bears the key that hooks call `turn_id`.
//!
//! A cut is the number of lines before it, those of the base included and heads but the first left out. The digest is over
//! the payloads of the conversation's items, which neither a fork nor a child writes anew.

mod files;

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use checkpoint_core::{Beat, Timestamp, Turn};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use self::files::{File, Rollout, day, latest, rollouts};
use super::{
    child::{Child, now},
    claude::is_uuid,
    door::{Door, DoorError, Format, Mark, PROMPT_CHARS, Talked, TurnSeen, Upto},
    fields::{Fields, list, quoted},
    lines::Lines,
};
use crate::named_points::iso;

/// The name in session keys.
pub const HARNESS: &str = "codex";

/// Where what was said is in the log itself, or in one that its head points to. Another mode may keep it elsewhere.
const MODES: [&str; 2] = ["legacy", "paginated"];

/// The logs below a home directory.
#[derive(Clone, Debug)]
pub struct Codex {
    home: PathBuf,
}

/// The logs below a home directory, which need not be there. Nothing is read now.
pub fn open(home: impl Into<PathBuf>) -> Door<Codex> {
    Door(Codex { home: home.into() })
}

/// `$CODEX_HOME`, else `~/.codex`; `None` without a home.
pub fn default_home(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    var("CODEX_HOME").or_else(|| Some(var("HOME")?.join(".codex")))
}

/// Items that the model is shown, or that change what it is shown.
fn is_said(kind: &str, event: &str) -> bool {
    matches!(kind, "response_item" | "compacted") || (kind == "event_msg" && event == "thread_rolled_back")
}

fn begins(event: &str) -> bool {
    matches!(event, "task_started" | "turn_started")
}

fn ended(event: &str) -> bool {
    matches!(event, "task_complete" | "turn_complete" | "turn_aborted")
}

/// What a user's item says; `None` for what the client adds to the conversation itself.
fn said(payload: &Fields<'_>) -> Option<String> {
    if payload.text("type")? != "message" || payload.text("role")? != "user" {
        return None;
    }
    let blocks = list(payload.get("content")?)?;
    let text = Fields::of(blocks.first()?)?.text("text")?.into_owned();
    (!text.trim_start().starts_with('<')).then_some(text)
}

fn turn(number: usize) -> Turn {
    Turn(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The turns of a log: `each` is told of every row with its number.
fn talk(rollout: &Rollout) -> Result<Talked, DoorError> {
    let head = &rollout.head;
    let mut talked = Talked {
        path: rollout.path.clone(),
        cwd: head.cwd.clone(),
        parent: head.parent.clone(),
        subagent: head.subagent,
        ..Talked::default()
    };
    let mut sum = Sha256::new_with_prefix(b"rwd codex prefix 1\n");
    let (mut open, mut last) = (false, 1);
    talked.torn = rollout.rows(&mut |row, number| {
        let digest = |sum: &Sha256| HEXLOWER.encode(&sum.clone().finalize());
        let kind = row.text("type").unwrap_or_default();
        let Some(payload) = row.get("payload") else { return Ok(true) };
        last = number;
        // Only these need to be looked into.
        if !matches!(&*kind, "event_msg" | "response_item" | "compacted") {
            return Ok(true);
        }
        let fields = Fields::of(payload).unwrap_or_default();
        let event = fields.text("type").unwrap_or_default();
        if kind == "event_msg" && begins(&event) {
            if !talked.turns.is_empty() {
                let beat = Beat::TurnEnd(turn(talked.turns.len()));
                talked.marks.push(Mark { beat, digest: digest(&sum), cut: number - 1 });
            }
            let key = fields.text("turn_id").map(Cow::into_owned);
            let at = row.text("timestamp").map(Cow::into_owned);
            talked.turns.push(TurnSeen { key, prompt: None, at });
            sum.update(b"turn\n");
            let beat = Beat::TurnStart(turn(talked.turns.len()));
            talked.marks.push(Mark { beat, digest: digest(&sum), cut: number - 1 });
            open = true;
        } else if kind == "event_msg" && ended(&event) {
            open = false;
        } else if kind == "response_item"
            && let Some(last) = talked.turns.last_mut().filter(|last| last.prompt.is_none())
        {
            last.prompt = said(&fields).map(|said| said.chars().take(PROMPT_CHARS).collect());
        }
        if is_said(&kind, &event) {
            sum.update(&*kind);
            sum.update(b"\n");
            sum.update(payload.get());
            sum.update(b"\n");
        }
        Ok(true)
    })?;
    if !talked.turns.is_empty() {
        let beat = Beat::TurnEnd(turn(talked.turns.len()));
        let end = Mark { beat, digest: HEXLOWER.encode(&sum.finalize()), cut: last };
        if open { talked.rest = Some(end) } else { talked.marks.push(end) }
    }
    Ok(talked)
}

/// The keys of the prompts of a transcript. A sub-agent's has none.
pub(super) fn keys(transcript: &Path) -> Result<Vec<Option<String>>, DoorError> {
    let rollout = Rollout::open(sessions_of(transcript), transcript)?;
    if rollout.head.subagent {
        return Ok(Vec::new());
    }
    let mut keys = Vec::new();
    rollout.lenient(&mut |row| add_key(row, &mut keys))?;
    Ok(keys)
}

/// Adds the key of the turn that a row begins, if it begins one.
fn add_key(row: &Fields<'_>, keys: &mut Vec<Option<String>>) {
    if row.text("type").as_deref() == Some("event_msg")
        && let Some(payload) = row.object("payload")
        && payload.text("type").is_some_and(|event| begins(&event))
    {
        keys.push(payload.text("turn_id").map(Cow::into_owned));
    }
}

/// The keys of the prompts in lines of a transcript, without those of a log that it goes on from.
pub(super) fn keys_in(lines: &mut Lines, transcript: &Path) -> Result<Vec<Option<String>>, DoorError> {
    if files::head(transcript)?.subagent {
        return Ok(Vec::new());
    }
    let mut keys = Vec::new();
    while let Some(line) = lines.next().map_err(DoorError::io("read", transcript))? {
        if let Some(row) = Fields::parse(line.text) {
            add_key(&row, &mut keys);
        }
    }
    Ok(keys)
}

/// The folder that holds all logs, from one of them.
fn sessions_of(transcript: &Path) -> &Path {
    let sessions = transcript.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "sessions"));
    sessions.or_else(|| transcript.parent()).unwrap_or(transcript)
}

/// How many bytes of other logs a log goes on from, as their heads say.
pub(super) fn before(transcript: &Path) -> Result<u64, DoorError> {
    files::before(sessions_of(transcript), transcript)
}

/// When an id was made, where it is a version 7 UUID: milliseconds since 1970.
fn made_at(id: &str) -> Option<i64> {
    let digits: String = id.chars().filter(|digit| *digit != '-').collect();
    if !is_uuid(id) || digits.get(12..13)? != "7" {
        return None;
    }
    i64::from_str_radix(digits.get(..12)?, 16).ok()
}

impl Codex {
    fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    fn found(&self, id: &str) -> Result<File, DoorError> {
        let sessions = self.sessions();
        latest(&sessions, id)?.ok_or_else(|| DoorError::NotFound { id: id.to_owned(), below: sessions })
    }

    fn rollout(&self, id: &str) -> Result<Rollout, DoorError> {
        let rollout = Rollout::open(&self.sessions(), &self.found(id)?.path)?;
        if let Some(mode) = rollout.head.mode.as_deref().filter(|mode| !MODES.contains(mode)) {
            let why = format!("how it keeps what was said is not known: history_mode {mode:?}");
            return Err(DoorError::Unsupported { path: rollout.path, line: 1, why });
        }
        match &rollout.head.id {
            Some(own) if own == id => Ok(rollout),
            own => {
                let own = own.as_deref().unwrap_or("none");
                Err(DoorError::corrupt(&rollout.path, 1, format!("it is named for thread {id} and says {own}")))
            }
        }
    }

    /// How many turns a fork has from its parent: those the parent has too; where that is gone, those that began before
    /// the fork was made.
    fn seed_turns(&self, id: &str, talked: &Talked) -> usize {
        let Some(parent) = talked.parent.as_ref().filter(|_| !talked.subagent) else { return 0 };
        let keys = self.rollout(parent).and_then(|parent| talk(&parent));
        if let Ok(parent) = keys {
            let known =
                |turn: &TurnSeen| turn.key.is_some() && parent.turns.iter().any(|theirs| theirs.key == turn.key);
            return talked.turns.iter().take_while(|turn| known(turn)).count();
        }
        let Some(made) = made_at(id).map(|made| iso(Timestamp(made))) else { return 0 };
        talked.turns.iter().take_while(|turn| turn.at.as_ref().is_some_and(|at| *at < made)).count()
    }
}

impl Format for Codex {
    fn harness(&self) -> &'static str {
        HARNESS
    }

    fn read(&self, id: &str) -> Result<Talked, DoorError> {
        let mut talked = talk(&self.rollout(id)?)?;
        talked.seed_turns = self.seed_turns(id, &talked);
        talked.end_what_is_shared();
        Ok(talked)
    }

    fn find(&self, id: &str) -> Result<PathBuf, DoorError> {
        self.found(id).map(|file| file.path)
    }

    /// A head alone is resumed.
    fn opens_empty(&self) -> bool {
        true
    }

    /// Version 7, as the client's own: the time in front, the rest from the UUID.
    fn name(&self, uuid: &str) -> String {
        let mut digits: Vec<char> = uuid.chars().filter(|digit| *digit != '-').collect();
        let made = format!("{:012x}7", now().0);
        for (digit, made) in digits.iter_mut().zip(made.chars()) {
            *digit = made;
        }
        let mut id = String::new();
        for (at, digit) in digits.into_iter().enumerate() {
            if matches!(at, 8 | 12 | 16 | 20) {
                id.push('-');
            }
            id.push(digit);
        }
        id
    }

    /// Below it, in the folder of the day.
    fn folder(&self, _: &Talked) -> Option<PathBuf> {
        Some(day(&self.sessions(), &iso(Timestamp(now().0))))
    }

    /// A full copy, so that the child outlives its parent: the head with the child's id, without what points into another
    /// log; then the rows before the cut, with the child's id where the client names the thread beside what was said.
    fn write(&self, id: &str, _: &Talked, upto: &Upto, child: &str) -> Result<PathBuf, DoorError> {
        let rollout = self.rollout(id)?;
        let time = iso(Timestamp(now().0));
        let folder = day(&self.sessions(), &time);
        durable_fs::create_private_dirs(&folder).map_err(|error| {
            let source = std::io::Error::new(error.kind(), error);
            DoorError::io("create", &folder)(source)
        })?;
        let stamp = time.get(..19).unwrap_or(&time).replace(':', "-");
        let mut new = Child::begin(&folder, &format!("rollout-{stamp}-{child}.jsonl"))?;
        let mut ordinal = 0;
        let renumber = rollout.has_base();
        let old = rollout.ids();
        rollout.rows(&mut |row, number| {
            if number > 1 && number > upto.cut {
                return Ok(false);
            }
            let kind = row.text("type").unwrap_or_default();
            let mut changed = Vec::new();
            if renumber && row.get("ordinal").is_some() {
                changed.push(("ordinal", ordinal.to_string()));
            }
            ordinal += 1;
            let payload = row.object("payload");
            if number == 1 {
                let payload =
                    payload.unwrap_or_default().without("history_base").without("forked_from_ordinal_exclusive");
                let ids = [("id", quoted(child)), ("session_id", quoted(child)), ("forked_from_id", quoted(id))];
                changed.push(("payload", payload.with(&ids, &["session_id"])));
            } else if let (false, Some(payload)) = (matches!(&*kind, "response_item" | "compacted"), payload) {
                let names = ["thread_id", "session_id"];
                let ids: Vec<(&str, String)> = names
                    .into_iter()
                    .filter(|name| payload.text(name).is_some_and(|known| old.contains(&&*known)))
                    .map(|name| (name, quoted(child)))
                    .collect();
                if !ids.is_empty() {
                    changed.push(("payload", payload.with(&ids, &names)));
                }
            }
            new.line(row.with(&changed, &["ordinal"]).as_bytes())?;
            Ok(true)
        })?;
        new.publish(child, |temp| upto.check(&talk(&Rollout::open(&self.sessions(), temp)?)?, temp))
    }

    fn all(&self) -> Result<Vec<(String, PathBuf)>, DoorError> {
        let mut all: Vec<(String, PathBuf)> = Vec::new();
        for file in rollouts(&self.sessions())? {
            // Of the files of a thread the newest counts: they come in that order.
            match all.iter_mut().find(|(id, _)| *id == file.thread) {
                Some(known) => known.1 = file.path,
                None => all.push((file.thread, file.path)),
            }
        }
        Ok(all)
    }

    fn cwd(&self, log: &Path) -> Option<PathBuf> {
        let head = files::head(log).ok()?;
        head.cwd.filter(|_| !head.subagent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_children_say_when_they_were_made() {
        let codex = Codex { home: PathBuf::new() };
        let id = codex.name("0f0e0d0c-0b0a-4f08-8706-050403020100");
        assert!(is_uuid(&id) && id.ends_with("f08-8706-050403020100"), "{id}");
        assert!(made_at(&id).is_some_and(|made| made > 1_700_000_000_000), "{id}");
        assert_eq!(made_at("0f0e0d0c-0b0a-4f08-8706-050403020100"), None);
        assert_eq!(made_at("é"), None);
    }

    #[test]
    fn only_what_was_typed_is_a_prompt() {
        let said_of = |json: &str| said(&Fields::parse(json.as_bytes()).unwrap());
        let typed = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#;
        assert_eq!(said_of(typed).as_deref(), Some("go"));
        assert_eq!(said_of(&typed.replace("go", "<environment_context>")), None);
        assert_eq!(said_of(&typed.replace("user", "developer")), None);
    }
}
