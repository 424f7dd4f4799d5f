//! Where things stand in a JSON text, comments and trailing commas allowed: every value with the bytes it takes, so that
//! an edit touches those and no others.
//!
//! Settings files of harnesses are read by JavaScript and Rust programs of which some take comments (JSONC). This reader
//! takes what any of them takes, and says where it stops.

use std::ops::Range;

/// Settings nest a few levels; deeper is somebody's attack on the stack.
const MAX_DEPTH: usize = 64;

/// Why a text cannot be edited.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// A value and the bytes it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Bool(bool),
    /// A number or null.
    Other,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) key: String,
    /// Where the key begins.
    pub(crate) at: usize,
    pub(crate) value: Node,
}

impl Node {
    /// The member of that name. Two of one name are a mistake: readers disagree on which one counts.
    pub(crate) fn get<'a>(&'a self, text: &str, key: &str) -> Result<Option<&'a Node>, Mistake> {
        let Kind::Object(members) = &self.kind else { return Ok(None) };
        let mut found = members.iter().filter(|member| member.key == key);
        let first = found.next();
        match found.next() {
            Some(second) => Err(mistake(text, second.at, format!("{key:?} stands there twice"))),
            None => Ok(first.map(|member| &member.value)),
        }
    }

    pub(crate) const fn as_text(&self) -> Option<&String> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Elements of an array, or values of an object.
    pub(crate) fn children(&self) -> Vec<&Node> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|member| &member.value).collect(),
            Kind::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Where child `n` begins, its key included.
    pub(crate) fn child_start(&self, n: usize) -> Option<usize> {
        match &self.kind {
            Kind::Object(members) => members.get(n).map(|member| member.at),
            Kind::Array(items) => items.get(n).map(|item| item.span.start),
            _ => None,
        }
    }
}

/// A mistake at a byte of the text.
pub(crate) fn mistake(text: &str, at: usize, what: impl Into<String>) -> Mistake {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    // A count of lines of a settings file.
    #[expect(clippy::naive_bytecount, reason = "a settings file is small")]
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    Mistake { line, what: what.into() }
}

/// Reads the one value of a text. `None` when there is nothing but white space.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Mistake> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    if text.get(reader.at..).unwrap_or_default().trim().is_empty() {
        return Ok(None);
    }
    reader.gap()?;
    let node = reader.value(0)?;
    reader.gap()?;
    if reader.at < text.len() {
        return Err(reader.wrong("something follows the end of the JSON value"));
    }
    Ok(Some(node))
}

/// The end of white space and comments from `at` on, and whether a comma was passed when `comma` asks for one.
pub(crate) fn skip(text: &str, at: usize) -> usize {
    let mut reader = Reader { text, at };
    // The text was read before: its comments end.
    match reader.gap() {
        Ok(()) => reader.at,
        Err(_) => at,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: impl Into<String>) -> Mistake {
        mistake(self.text, self.at, what)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// White space and comments.
    fn gap(&mut self) -> Result<(), Mistake> {
        loop {
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").ok_or_else(|| self.wrong("a comment does not end"))?;
                self.at += end + 4;
            } else if matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Mistake> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => self.word()?,
            Some(_) => return Err(self.wrong("this is not JSON")),
            None => return Err(self.wrong("the file ends in the middle of a value")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Mistake> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.gap()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                None => return Err(self.wrong("the file ends in the middle of an object")),
                Some(_) => return Err(self.wrong("a name in quotes is expected here")),
            }
            let at = self.at;
            let key = self.string()?;
            self.gap()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong(format!("a colon is missing after {key:?}")));
            }
            self.at += 1;
            self.gap()?;
            let value = self.value(depth + 1)?;
            members.push(Member { key, at, value });
            if !self.comma(b'}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Mistake> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.gap()?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.value(depth + 1)?);
            if !self.comma(b']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Kind::Array(items))
    }

    /// Passes a comma; false at the closing bracket, which is left.
    fn comma(&mut self, close: u8) -> Result<bool, Mistake> {
        self.gap()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => Ok(false),
            Some(_) => Err(self.wrong("a comma is missing")),
            None => Err(self.wrong("the file ends in the middle of a value")),
        }
    }

    fn string(&mut self) -> Result<String, Mistake> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(b'\n') | None => return Err(self.wrong("a text does not end on its line")),
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        // The library knows escapes, surrogates and control characters.
        serde_json::from_str(quoted).map_err(|_| mistake(self.text, start, "a text holds what JSON does not allow"))
    }

    fn word(&mut self) -> Result<Kind, Mistake> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let kind = match serde_json::from_str::<serde_json::Value>(word) {
            Ok(serde_json::Value::Bool(value)) => Kind::Bool(value),
            Ok(serde_json::Value::Null | serde_json::Value::Number(_)) => Kind::Other,
            _ => return Err(self.wrong(format!("{word:?} is no JSON value"))),
        };
        self.at += end;
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_trailing_commas_and_a_mark_in_front_are_read() {
        let text = "\u{feff}// one\n{ /* two */ \"a\": [1, \"x\\u00e9\",], // three\n \"b\": null, }\n";
        let node = parse(text).unwrap().unwrap();
        let a = node.get(text, "a").unwrap().unwrap();
        assert_eq!(a.children().get(1).and_then(|n| n.as_text()).map(String::as_str), Some("xé"));
        assert_eq!(text.get(a.span.clone()), Some("[1, \"x\\u00e9\",]"));
        assert_eq!(parse(" \n").unwrap(), None);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        for (text, line) in [
            ("{\n\"a\": 1\n\"b\": 2}", 3),
            ("{\n\"a\" 1}", 2),
            ("{\"a\": [1, 2", 1),
            ("{\"a\": \"x\n\"}", 1),
            ("{}\n{}", 2),
            ("{\n/* x", 2),
            ("{'a': 1}", 1),
            ("{\"a\": nope}", 1),
            ("{\"a\": 01}", 1),
            ("// only\n", 2),
            ("{\"a\": \"\\x\"}", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).unwrap_err().what.contains("deep"));
    }

    #[test]
    fn a_name_that_stands_there_twice_is_a_mistake_only_where_it_is_asked_for() {
        let text = "{\n\"a\": 1,\n\"a\": 2, \"b\": 3}";
        let node = parse(text).unwrap().unwrap();
        assert_eq!(node.get(text, "a").unwrap_err().line, 3);
        assert!(node.get(text, "b").unwrap().is_some());
    }
}
