//! Session logs of Claude Code: `<config>/projects/<project>/<session>.jsonl`.
//!
//! Every line is an object. Rows of the conversation have a `uuid` and name the row before them in `parentUuid`; other rows
//! are the client's own notes and are not copied into a child. A log only grows; a client that goes back goes on from an
//! older row, and the rows between stay.
//!
//! A cut is the number of lines before it. The digest is over type, `uuid` and `message` of the user's and the model's
//! rows, which no client and no child writes anew.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use checkpoint_core::{Beat, Turn};
use data_encoding::HEXLOWER;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{
    child::Child,
    door::{Door, DoorError, Format, Mark, PROMPT_CHARS, Talked, TurnSeen, Upto},
    fields::{Fields, list, quoted},
    lines::{BEGINNING, Ending, Lines, text},
};

/// The name in session keys.
pub const HARNESS: &str = "claude";

/// How a user's row begins that nobody typed.
const SYNTHETIC: [&str; 7] = [
    "<task-notification>",
    "[Request interrupted by user",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-stdout>",
    "<bash-stderr>",
];

/// The logs below a configuration directory.
#[derive(Clone, Debug)]
pub struct Claude {
    config: PathBuf,
}

/// The logs below a configuration directory, which need not be there. Nothing is read now.
pub fn open(config: impl Into<PathBuf>) -> Door<Claude> {
    Door(Claude { config: config.into() })
}

/// `$CLAUDE_CONFIG_DIR`, else `~/.claude`; `None` without a home.
pub fn default_home(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    var("CLAUDE_CONFIG_DIR").or_else(|| Some(var("HOME")?.join(".claude")))
}

/// What a user's row says, when somebody typed it.
fn prompt(row: &Fields<'_>) -> Option<String> {
    let typed = row.text("type")? == "user"
        && !["isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly"].iter().any(|flag| row.is(flag));
    if !typed {
        return None;
    }
    let content = row.object("message")?.get("content")?;
    let said = match list(content) {
        None => text(Some(content))?.into_owned(),
        Some(blocks) => {
            let blocks: Vec<Fields<'_>> = blocks.into_iter().filter_map(Fields::of).collect();
            if blocks.iter().any(|block| block.text("type").as_deref() == Some("tool_result")) {
                return None;
            }
            blocks.iter().find_map(|block| block.text("text")).unwrap_or_default().into_owned()
        }
    };
    let start = said.trim_start();
    (!SYNTHETIC.iter().any(|synthetic| start.starts_with(synthetic))).then_some(said)
}

/// The keys of the prompts in lines of a transcript.
pub(super) fn keys(lines: &mut Lines, transcript: &Path) -> Result<Vec<Option<String>>, DoorError> {
    let mut keys = Vec::new();
    while let Some(line) = lines.next().map_err(DoorError::io("read", transcript))? {
        let Some(row) = Fields::parse(line.text) else { continue };
        if prompt(&row).is_some() {
            keys.push(row.text("promptId").map(Cow::into_owned));
        }
    }
    Ok(keys)
}

/// Does the turn end with this row, as far as the log says?
fn ends(row: &Fields<'_>, message: &RawValue) -> Option<bool> {
    let message = Fields::of(message)?;
    if row.text("type")? == "user" {
        let content = message.get("content")?;
        let stopped = content.get().contains("[Request interrupted by user");
        return Some(stopped && list(content).is_none_or(|blocks| !blocks.iter().any(|block| is_result(block))));
    }
    let calls = list(message.get("content")?).is_some_and(|blocks| {
        blocks.into_iter().filter_map(Fields::of).any(|block| block.text("type").as_deref() == Some("tool_use"))
    });
    let reason = message.text("stop_reason");
    Some(!calls && reason.is_some_and(|reason| reason != "tool_use" && reason != "pause_turn"))
}

fn is_result(block: &RawValue) -> bool {
    Fields::of(block).is_some_and(|block| block.text("type").as_deref() == Some("tool_result"))
}

/// A log on its way through a reader.
struct Reading {
    talked: Talked,
    sum: Sha256,
    /// The turn of every row.
    turn_of: HashMap<String, usize>,
    /// The last turn has ended as far as was read.
    ended: bool,
}

impl Reading {
    fn digest(&self) -> String {
        HEXLOWER.encode(&self.sum.clone().finalize())
    }

    fn end(&self, cut: u64) -> Option<Mark> {
        let turn = u32::try_from(self.talked.turns.len()).unwrap_or(u32::MAX);
        (turn > 0).then(|| Mark { beat: Beat::TurnEnd(Turn(turn)), digest: self.digest(), cut })
    }

    /// The conversation goes on from a turn before the last one: what lies before the next prompt is the end of that one.
    fn back_to(&mut self, turn: usize) {
        let wanted = Beat::TurnEnd(Turn(u32::try_from(turn).unwrap_or(u32::MAX)));
        let known = self.talked.marks.iter().find(|mark| mark.beat == wanted).cloned();
        let start = || Mark { beat: wanted, digest: HEXLOWER.encode(&fresh().finalize()), cut: 0 };
        self.talked.marks.push(known.unwrap_or_else(start));
    }

    fn prompt(&mut self, row: &Fields<'_>, said: &str, number: u64) {
        let last = self.talked.turns.len();
        self.talked.marks.extend(self.end(number - 1));
        let parent = row.text("parentUuid").map(|parent| self.turn_of.get(&*parent).copied());
        match parent {
            Some(Some(turn)) if turn < last => self.back_to(turn),
            None if last > 0 => self.back_to(0),
            _ => {}
        }
        self.sum.update(b"turn\n");
        self.talked.turns.push(TurnSeen {
            key: row.text("promptId").map(Cow::into_owned),
            prompt: Some(said.chars().take(PROMPT_CHARS).collect()),
            at: row.text("timestamp").map(Cow::into_owned),
        });
        let beat = Beat::TurnStart(Turn(u32::try_from(last + 1).unwrap_or(u32::MAX)));
        self.talked.marks.push(Mark { beat, digest: self.digest(), cut: number - 1 });
        self.ended = false;
    }

    fn row(&mut self, row: &Fields<'_>, number: u64) {
        let Some(uuid) = row.text("uuid").filter(|_| in_chain(row)) else { return };
        if let Some(said) = prompt(row) {
            self.prompt(row, &said, number);
        }
        let turn = self.talked.turns.len();
        let kind = row.text("type").unwrap_or_default();
        if let Some(message) = row.get("message").filter(|_| kind == "user" || kind == "assistant") {
            for part in [&*kind, &*uuid, message.get()] {
                self.sum.update(part);
                self.sum.update(b"\n");
            }
            self.ended = ends(row, message).unwrap_or(false);
        } else if row.text("subtype").is_some_and(|kind| kind == "stop_hook_summary" || kind == "turn_duration") {
            self.ended = true;
        }
        if let Some(from) = row.object("forkedFrom").and_then(|from| from.text("sessionId").map(Cow::into_owned)) {
            self.talked.seed_turns = turn;
            self.talked.parent.get_or_insert(from);
        }
        if self.talked.cwd.is_none() {
            self.talked.cwd = row.text("cwd").map(|cwd| PathBuf::from(&*cwd));
        }
        self.turn_of.insert(uuid.into_owned(), turn);
    }
}

/// Of whatever kind a row is: one of a kind that is not known may be what the next one hangs on.
fn in_chain(row: &Fields<'_>) -> bool {
    !row.is("isSidechain") && row.get("uuid").is_some()
}

fn fresh() -> Sha256 {
    Sha256::new_with_prefix(b"rwd claude prefix 1\n")
}

/// Goes through the rows of a log; what is torn off its end is passed over.
fn rows(path: &Path, each: &mut dyn FnMut(&Fields<'_>, u64) -> Result<bool, DoorError>) -> Result<bool, DoorError> {
    let mut lines = Lines::open(path).map_err(DoorError::io("open", path))?;
    rows_of(&mut lines, path, each)
}

fn rows_of(
    lines: &mut Lines,
    path: &Path,
    each: &mut dyn FnMut(&Fields<'_>, u64) -> Result<bool, DoorError>,
) -> Result<bool, DoorError> {
    let mut broken = None;
    while let Some(line) = lines.next().map_err(DoorError::io("read", path))? {
        if let Some(number) = broken {
            return Err(DoorError::corrupt(path, number, "it is no JSON object"));
        }
        if line.ending == Ending::TooLong {
            let why = "it is longer than can be read".to_owned();
            return Err(DoorError::Unsupported { path: path.to_owned(), line: line.number, why });
        }
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        match Fields::parse(line.text) {
            // Whoever appends next would end this line: it is not known yet what it will be.
            Some(_) if line.ending == Ending::Torn => return Ok(true),
            Some(row) if !each(&row, line.number)? => return Ok(false),
            Some(_) => {}
            None => broken = Some(line.number),
        }
    }
    Ok(broken.is_some())
}

/// The turns of a log.
fn talk(path: &Path) -> Result<Talked, DoorError> {
    let talked = Talked { path: path.to_owned(), ..Talked::default() };
    let mut reading = Reading { talked, sum: fresh(), turn_of: HashMap::new(), ended: false };
    let mut last = 0;
    let torn = rows(path, &mut |row, number| {
        reading.row(row, number);
        last = number;
        Ok(true)
    })?;
    let end = reading.end(last);
    let mut talked = reading.talked;
    if reading.ended {
        talked.marks.extend(end);
    } else {
        talked.rest = end;
    }
    talked.torn = torn;
    talked.end_what_is_shared();
    Ok(talked)
}

impl Claude {
    fn projects(&self) -> PathBuf {
        self.config.join("projects")
    }

    fn found(&self, id: &str) -> Result<PathBuf, DoorError> {
        let projects = self.projects();
        let name = format!("{id}.jsonl");
        let mut found = dirs(&projects)?.into_iter().map(|dir| dir.join(&name)).filter(|path| path.is_file());
        let none = || DoorError::NotFound { id: id.to_owned(), below: projects.clone() };
        // Of several the client takes the one of the current directory, which is not known here.
        let first = found.next().ok_or_else(none)?;
        match found.next() {
            None => Ok(first),
            Some(second) => {
                Err(DoorError::corrupt(&second, 0, format!("{} is a log of the same session", first.display())))
            }
        }
    }
}

/// The directories in a directory, by name; none when it is not there.
pub(super) fn dirs(above: &Path) -> Result<Vec<PathBuf>, DoorError> {
    let mut found: Vec<PathBuf> = entries(above)?.into_iter().filter(|path| path.is_dir()).collect();
    found.sort();
    Ok(found)
}

/// What is in a directory; nothing when it is not there.
pub(super) fn entries(dir: &Path) -> Result<Vec<PathBuf>, DoorError> {
    let listing = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        listing => listing.map_err(DoorError::io("list", dir))?,
    };
    let mut paths = Vec::new();
    for entry in listing {
        paths.push(entry.map_err(DoorError::io("list", dir))?.path());
    }
    Ok(paths)
}

/// True for 8-4-4-4-12 lower-case hexadecimal digits.
pub(super) fn is_uuid(id: &str) -> bool {
    let lengths = id.split('-').map(str::len);
    let digits = id.bytes().all(|b| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    digits && lengths.eq([8, 4, 4, 4, 12])
}

impl Format for Claude {
    fn harness(&self) -> &'static str {
        HARNESS
    }

    fn read(&self, id: &str) -> Result<Talked, DoorError> {
        talk(&self.found(id)?)
    }

    fn find(&self, id: &str) -> Result<PathBuf, DoorError> {
        self.found(id)
    }

    /// The client says "No conversation found".
    fn opens_empty(&self) -> bool {
        false
    }

    /// Rows of the conversation before the cut, with the child's id in `sessionId` and where they come from in
    /// `forkedFrom`, as the client's own forks have it.
    fn write(&self, id: &str, log: &Talked, upto: &Upto, child: &str) -> Result<PathBuf, DoorError> {
        let cut = upto.cut;
        let folder = log.path.parent().unwrap_or(&log.path);
        let mut new = Child::begin(folder, &format!("{child}.jsonl"))?;
        rows(&log.path, &mut |row, number| {
            let uuid = row.text("uuid").filter(|_| in_chain(row) && number <= cut);
            if let Some(uuid) = uuid {
                let from = format!(r#"{{"sessionId":{},"messageUuid":{}}}"#, quoted(id), quoted(&uuid));
                new.line(row.with(&[("sessionId", quoted(child)), ("forkedFrom", from)], &[]).as_bytes())?;
            }
            Ok(number < cut)
        })?;
        new.publish(child, |temp| upto.check(&talk(temp)?, temp))
    }

    fn all(&self) -> Result<Vec<(String, PathBuf)>, DoorError> {
        let mut all = Vec::new();
        for project in dirs(&self.projects())? {
            for path in entries(&project)? {
                let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"));
                // Older versions kept the logs of sub-agents beside them.
                if let Some(id) = id.filter(|id| is_uuid(id)) {
                    all.push((id.to_owned(), path.clone()));
                }
            }
        }
        Ok(all)
    }

    fn cwd(&self, log: &Path) -> Option<PathBuf> {
        let mut cwd = None;
        let mut lines = Lines::open_begin(log, BEGINNING).ok()?;
        let read = rows_of(&mut lines, log, &mut |row, _| {
            cwd = row.text("cwd").map(|cwd| PathBuf::from(&*cwd));
            Ok(cwd.is_none())
        });
        read.ok().and(cwd)
    }
}
