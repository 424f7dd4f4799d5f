//! What can be told of a log to people and to the command line.

use std::{ops::ControlFlow, path::PathBuf};

use checkpoint_core::{Seq, SessionKey, Turn};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    container::Encoding,
    error::{LogError, Place},
    header::LogHeader,
    json::{integer, text},
    read::{Log, Torn},
    rows::Row,
};

/// Something wrong with a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The stable code, see [`LogError::code`].
    pub code: &'static str,
    /// The event it is about.
    pub seq: Option<Seq>,
    /// What and where.
    pub message: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl From<&LogError> for Problem {
    fn from(error: &LogError) -> Self {
        let seq = match error {
            LogError::UnknownEvent { seq, .. } | LogError::Corrupt { place: Place::Event(seq), .. } => Some(*seq),
            _ => None,
        };
        Self { code: error.code(), seq, message: error.to_string(), advice: error.advice() }
    }
}

/// One line of a list of sessions, from the first line of each log alone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The id; a lone surrogate is shown as U+FFFD.
    pub id: String,
    /// The key that points and commands use. `None`: the id has characters that no key has, so that the session can be
    /// looked at here and is out of reach for everything else.
    pub key: Option<SessionKey>,
    /// The log.
    pub path: PathBuf,
    /// How it is stored.
    pub encoding: Encoding,
    /// Version of the format.
    pub version: u64,
    /// UTC milliseconds.
    pub created_at: u64,
    /// The directory it works in.
    pub cwd: Option<String>,
    /// The session it was forked from.
    pub parent: Option<String>,
    /// How many of the parent's events it shares.
    pub seed_length: Option<u64>,
    /// True for a subagent's session.
    pub subagent: bool,
    /// What keeps the host from reading it, as far as the first line shows.
    pub problem: Option<Problem>,
}

/// A turn of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TurnSpan {
    /// Its number.
    pub turn: Turn,
    /// Its `turn/start`.
    pub start: Seq,
    /// Its `turn/end`; `None` while it is open.
    pub end: Option<Seq>,
    /// How it ended, as `completed` or `aborted`.
    pub reason: Option<String>,
    /// When it began, in UTC milliseconds.
    pub at: i64,
    /// The beginning of the first message of a person in it, on one line.
    pub prompt: Option<String>,
}

/// A place where the session can be cut: the end of a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Boundary {
    /// The last event that a child cut here shares.
    pub seq: Seq,
    /// The turn that ends there.
    pub turn: Turn,
    /// How it ended.
    pub reason: String,
    /// When, in UTC milliseconds.
    pub at: i64,
}

/// Everything that a look at a log tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Its head.
    pub header: LogHeader,
    /// The log.
    pub path: PathBuf,
    /// Version of the format.
    pub version: u64,
    /// How it is stored.
    pub encoding: Encoding,
    /// How many events it has, up to where it can be read.
    pub events: u64,
    /// Its turns, in order.
    pub turns: Vec<TurnSpan>,
    /// Where it can be cut.
    pub boundaries: Vec<Boundary>,
    /// What a crash left at its end.
    pub torn: Option<Torn>,
    /// The last turn, if it is open.
    pub open_turn: Option<Turn>,
    /// Why the host refuses it, or its folder.
    pub problems: Vec<Problem>,
    /// True when the host's own reader would load it. Of versions 2 to 4, which are read by their documents and were not
    /// tried, true means that nothing wrong was found.
    pub loadable: bool,
}

#[derive(Deserialize)]
struct TurnData<'a> {
    #[serde(borrow)]
    turn: &'a RawValue,
    #[serde(borrow)]
    reason: Option<Reason<'a>>,
}

#[derive(Deserialize)]
struct Reason<'a> {
    #[serde(borrow)]
    kind: &'a RawValue,
}

/// The number of a turn and how it ended, of the payload of a `turn/start` or `turn/end`. A number that no turn can have
/// counts as 0: the turn is there all the same.
pub(super) fn turn_data(data: Option<&RawValue>) -> (Turn, Option<String>) {
    let read = data.and_then(|data| serde_json::from_str::<TurnData<'_>>(data.get()).ok());
    let Some(read) = read else { return (Turn(0), None) };
    let turn = integer(read.turn).and_then(|turn| u32::try_from(turn).ok()).unwrap_or(0);
    (Turn(turn), read.reason.and_then(|reason| text(reason.kind)).map(|kind| kind.to_string()))
}

#[derive(Deserialize)]
struct Prompt<'a> {
    #[serde(borrow)]
    source: Reason<'a>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

/// Characters of a prompt that a list shows.
const EXCERPT: usize = 80;

/// The beginning of a person's message.
fn prompt(data: Option<&RawValue>) -> Option<String> {
    let read: Prompt<'_> = serde_json::from_str(data?.get()).ok()?;
    if !super::json::is_text(read.source.kind, "user") {
        return None;
    }
    let block = read.content.iter().find_map(|block| serde_json::from_str::<Block<'_>>(block.get()).ok())?;
    let text = text(block.text)?.to_string();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() > EXCERPT {
            break;
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.extend(word.chars().take(EXCERPT + 1));
    }
    if line.chars().count() > EXCERPT {
        line = line.chars().take(EXCERPT - 1).collect();
        line.push('…');
    }
    Some(line)
}

/// Reads a log to its end.
pub(super) fn inspect(log: &mut Log) -> Result<Inspection, LogError> {
    let mut turns: Vec<TurnSpan> = Vec::new();
    let mut boundaries = Vec::new();
    let mut open = false;
    let end = log.rows(&mut |row: &Row<'_>, _, _| {
        let (seq, at) = (Seq(row.first()), row.last_time().unwrap_or(0));
        match row.kind() {
            "turn/start" => {
                let (turn, _) = turn_data(row.data());
                turns.push(TurnSpan { turn, start: seq, end: None, reason: None, at, prompt: None });
                open = true;
            }
            "turn/end" => {
                let (turn, reason) = turn_data(row.data());
                if let Some(span) = turns.last_mut().filter(|_| open) {
                    (span.end, span.reason) = (Some(seq), reason.clone());
                }
                boundaries.push(Boundary { seq, turn, reason: reason.unwrap_or_default(), at });
                open = false;
            }
            "user/message" if open => {
                if let Some(span) = turns.last_mut().filter(|span| span.prompt.is_none()) {
                    span.prompt = prompt(row.data());
                }
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let problems: Vec<Problem> =
        [&end.broken, &end.unknown, &end.bad].into_iter().flatten().map(Problem::from).collect();
    Ok(Inspection {
        header: log.header.clone(),
        path: log.path.clone(),
        version: log.header.version,
        encoding: log.encoding,
        events: end.events,
        open_turn: turns.last().filter(|_| open).map(|span| span.turn),
        turns,
        boundaries,
        torn: end.torn,
        loadable: problems.is_empty(),
        problems,
    })
}
