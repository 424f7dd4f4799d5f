//! Tolerant reading: a field of the wrong type is noted and left out, never an error.

use std::cell::RefCell;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::tools::{Effect, effect};
use super::{Agent, HookEvent, Problem, Tool, What};

/// Longer names and ids are cut: they are stored with points.
const LONGEST: usize = 100;
/// So many paths of one call are kept.
const PATHS: usize = 64;

/// The payload as JSON, if it is any.
pub(super) fn value(payload: &[u8]) -> (Option<Value>, Vec<Problem>) {
    let problem = |why| vec![Problem { field: "payload".to_owned(), why }];
    // Some shells put a mark of the encoding before what they hand on.
    let payload = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
    if payload.iter().all(u8::is_ascii_whitespace) {
        return (None, problem("is empty"));
    }
    match serde_json::from_slice(payload) {
        Ok(value) => (Some(value), Vec::new()),
        Err(_) => match serde_json::from_str(&mend(&String::from_utf8_lossy(payload))) {
            Ok(value) => (Some(value), Vec::new()),
            Err(_) => (None, problem("is no JSON")),
        },
    }
}

/// The same JSON with the escapes of lone surrogates replaced: JavaScript writes them where a text was cut in the middle
/// of a character, and they would make the whole payload unreadable.
pub fn mend(text: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        out.push_str(text.get(at..escape).unwrap_or_default());
        let (kept, length) = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(unit(escape + 6), Some(0xdc00..=0xdfff)) => (true, 12),
            Some(0xd800..=0xdfff) => (false, 6),
            Some(_) => (true, 6),
            // An escaped character of one or more bytes.
            None => (true, 1 + text.get(escape + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)),
        };
        out.push_str(if kept { text.get(escape..escape + length).unwrap_or_default() } else { "\\ufffd" });
        at = escape + length;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// An object of a payload.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    map: &'a Map<String, Value>,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(map: &'a Map<String, Value>, problems: Vec<Problem>) -> Self {
        Self { map, problems: RefCell::new(problems) }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// A text, and nothing said about it.
    pub(super) fn peek(&self, name: &str) -> Option<&'a str> {
        self.map.get(name).and_then(Value::as_str)
    }

    fn wrong(&self, name: &str, why: &'static str) {
        let problem = Problem { field: short(name), why };
        let mut problems = self.problems.borrow_mut();
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// The first of these fields that is a text with something in it.
    pub(super) fn text(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| match self.map.get(*name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.as_str()).filter(|text| !text.is_empty()),
            Some(_) => {
                self.wrong(name, "is no text");
                None
            }
        })
    }

    /// An id: kept short, on one line.
    pub(super) fn id(&self, names: &[&str]) -> Option<String> {
        self.text(names).map(short)
    }

    pub(super) fn path(&self, names: &[&str]) -> Option<PathBuf> {
        self.text(names).map(PathBuf::from)
    }

    /// The first path of a list.
    pub(super) fn first_path(&self, name: &str) -> Option<PathBuf> {
        self.list(name).iter().find_map(Value::as_str).map(PathBuf::from)
    }

    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.whole(name).and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn whole(&self, name: &str) -> Option<u64> {
        self.map.get(name).and_then(Value::as_u64)
    }

    pub(super) fn list(&self, name: &str) -> &'a [Value] {
        match self.map.get(name) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.wrong(name, "is no list");
                &[]
            }
        }
    }

    /// An object inside; an empty one where there is none.
    pub(super) fn inner(&self, name: &str) -> Reader<'a> {
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        let map = match self.map.get(name) {
            Some(Value::Object(map)) => map,
            None | Some(Value::Null) => &EMPTY,
            Some(_) => {
                self.wrong(name, "is no object");
                &EMPTY
            }
        };
        Reader::new(map, Vec::new())
    }

    /// A call, with its name in one of `names`, its id in one of `ids`, its input in one of `inputs`.
    pub(super) fn tool(&self, agent: Agent, names: &[&str], ids: &[&str], inputs: &[&str]) -> Tool {
        let name = self.text(names);
        if name.is_none() {
            self.wrong(names.first().copied().unwrap_or("tool_name"), "is missing");
        }
        let input = inputs.iter().find(|input| self.has(input)).map(|input| self.inner(input));
        let name = short(name.unwrap_or("unknown"));
        Tool {
            call: self.id(ids),
            effect: effect(agent, &name),
            background: input
                .as_ref()
                .is_some_and(|input| input.map.get("run_in_background") == Some(&Value::Bool(true))),
            paths: input.map(|input| input.paths()).unwrap_or_default(),
            name,
        }
    }

    /// Paths that a tool's input names.
    fn paths(&self) -> Vec<PathBuf> {
        const FIELDS: [&str; 6] = ["file_path", "filePath", "notebook_path", "path", "absolute_path", "target_file"];
        const MARKS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
        let mut paths: Vec<PathBuf> = FIELDS.iter().filter_map(|field| self.peek(field)).map(PathBuf::from).collect();
        let patch = ["command", "input", "patch"].iter().find_map(|field| self.peek(field)).unwrap_or_default();
        if patch.starts_with("*** Begin Patch") {
            let named = patch.lines().filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)));
            paths.extend(named.map(PathBuf::from));
        }
        paths.truncate(PATHS);
        paths
    }
}

impl HookEvent {
    /// An event of which nothing is known but its name.
    pub(super) fn blank(agent: Agent, name: &str) -> Self {
        Self {
            agent,
            name: short(name),
            harness: agent.name(),
            session: None,
            parent: None,
            subagent: None,
            key: None,
            cwd: None,
            project: None,
            transcript: None,
            pid: None,
            what: What::Other,
            problems: Vec::new(),
        }
    }
}

impl Tool {
    /// True when files may be different after it.
    pub fn mutates(&self) -> bool {
        self.effect != Effect::Reads
    }
}

/// On one line, and not longer than what is kept.
pub(super) fn short(text: &str) -> String {
    text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
