//! Adds to and removes from a JSON text, all other bytes as they were: comments, order, indentation, line ends.
//!
//! What is added looks like what stands around it. Removing what was added gives the text back; only the white space
//! inside brackets that were empty is not remembered.

use super::jsonc::{Node, skip};

/// A value to write, its members in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Json {
    Object(Vec<(&'static str, Json)>),
    Array(Vec<Json>),
    Text(String),
    Number(u64),
}

/// How a text is laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Style {
    line_end: &'static str,
    unit: String,
}

impl Style {
    fn of(text: &str, root: &Node) -> Self {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let unit = root.child_start(0).map(|at| indent_at(text, at)).filter(|unit| !unit.is_empty());
        Self { line_end, unit: unit.unwrap_or("  ").to_owned() }
    }
}

/// White space before the first thing on the line of `at`, if `at` is that thing.
fn indent_at(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.get(line..).unwrap_or_default();
    if line.trim().is_empty() { line } else { "" }
}

/// White space at the beginning of the line of `at`.
fn line_indent(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..).unwrap_or_default();
    let width = line.find(|c: char| c != ' ' && c != '\t').unwrap_or(0);
    line.get(..width).unwrap_or_default()
}

impl Json {
    /// As text; `indent`: of the line it begins on, or `None` for all on one line.
    fn write(&self, style: &Style, indent: Option<&str>) -> String {
        let inner = indent.map(|indent| format!("{indent}{}", style.unit));
        let parts: Vec<String> = match self {
            Self::Text(text) => return serde_json::Value::from(text.as_str()).to_string(),
            Self::Number(number) => return number.to_string(),
            Self::Object(members) => {
                let member =
                    |(key, value): &(&str, Self)| format!("\"{key}\": {}", value.write(style, inner.as_deref()));
                members.iter().map(member).collect()
            }
            Self::Array(items) => items.iter().map(|item| item.write(style, inner.as_deref())).collect(),
        };
        let (open, close) = if matches!(self, Self::Object(_)) { ('{', '}') } else { ('[', ']') };
        match (indent, inner) {
            (Some(indent), Some(inner)) => {
                let line_end = style.line_end;
                let body = parts.join(&format!(",{line_end}{inner}"));
                format!("{open}{line_end}{inner}{body}{line_end}{indent}{close}")
            }
            _ => format!("{open}{}{close}", parts.join(", ")),
        }
    }

    /// A whole file.
    pub(crate) fn file(&self) -> String {
        self.write(&Style { line_end: "\n", unit: "  ".to_owned() }, Some("")) + "\n"
    }
}

/// The text with one more member, or element where `key` is `None`, at the end of `into`, which is an object or an array
/// of it.
pub(crate) fn insert(text: &str, root: &Node, into: &Node, key: Option<&str>, value: &Json) -> String {
    let style = Style::of(text, root);
    let inside = text.get(into.span.clone()).unwrap_or_default();
    let children = into.children();
    let close = into.span.end.saturating_sub(1);
    let base = line_indent(text, into.span.start);
    let written = |indent: Option<&str>| {
        let value = value.write(&style, indent);
        key.map_or_else(|| value.clone(), |key| format!("{}: {value}", serde_json::Value::from(key)))
    };
    let Some(last) = children.last() else {
        // Comments may stand in it.
        let kept = text.get(..close).unwrap_or_default().trim_end().len();
        let indent = format!("{base}{}", style.unit);
        let line_end = style.line_end;
        let gap = text.get(kept..close).unwrap_or_default();
        let end = if gap.contains('\n') { gap.to_owned() } else { format!("{line_end}{base}") };
        return spliced(text, &[(kept..close, format!("{line_end}{indent}{}{end}", written(Some(&indent))))]);
    };
    // Past a comma that ends the list already.
    let comma = skip(text, last.span.end);
    let trailing = text.as_bytes().get(comma) == Some(&b',');
    let after = if trailing { comma + 1 } else { last.span.end };
    let kept = text.get(..close).unwrap_or_default().trim_end().len().max(after);
    let (comma_before, comma_after) = if trailing { ("", ",") } else { (",", "") };
    let new = if inside.contains('\n') {
        let indent = into.child_start(children.len() - 1).map(|at| indent_at(text, at)).unwrap_or_default();
        let indent = if indent.is_empty() { format!("{base}{}", style.unit) } else { indent.to_owned() };
        format!("{}{indent}{}{comma_after}", style.line_end, written(Some(&indent)))
    } else {
        format!(" {}{comma_after}", written(None))
    };
    spliced(text, &[(last.span.end..last.span.end, comma_before.to_owned()), (kept..kept, new)])
}

/// The text without child `n` of `from`.
pub(crate) fn remove(text: &str, from: &Node, n: usize) -> String {
    let children = from.children();
    let (Some(child), Some(start)) = (children.get(n), from.child_start(n)) else { return text.to_owned() };
    if children.len() == 1 {
        let inner = from.span.start + 1..from.span.end.saturating_sub(1);
        let before = text.get(inner.start..start).unwrap_or_default();
        let after = text.get(child.span.end..inner.end).unwrap_or_default();
        if before.trim().is_empty() && after.trim_matches([' ', '\t', '\r', '\n', ',']).is_empty() {
            return spliced(text, &[(inner, String::new())]);
        }
    }
    let after = n.checked_sub(1).and_then(|n| children.get(n)).map_or(from.span.start + 1, |child| child.span.end);
    let comma = skip(text, child.span.end);
    let follows = text.as_bytes().get(comma) == Some(&b',');
    let end = if follows { comma..comma + 1 } else { child.span.end..child.span.end };
    let rest = text.get(child.span.end..end.start).into_iter().chain(text.get(end.end..));
    let ends_line = rest.flat_map(str::chars).find(|c| ![' ', '\t', '\r'].contains(c)) == Some('\n');
    // White space in front goes too, but a comment that ends with its line must still end.
    let mut begin = text.get(..start).unwrap_or_default().trim_end().len().max(after);
    if !ends_line && in_line_comment(text, after, begin) {
        begin = text.get(begin..start).and_then(|gap| gap.find('\n')).map_or(start, |line| begin + line + 1);
    }
    if follows || n == 0 {
        return spliced(text, &[(begin..child.span.end, String::new()), (end, String::new())]);
    }
    let comma = skip(text, after);
    spliced(text, &[(comma..comma + 1, String::new()), (begin.max(comma + 1)..child.span.end, String::new())])
}

/// True when `to` lies in, or at the end of, a comment that ends with its line. From `from` on there are only white
/// space, comments and a comma.
fn in_line_comment(text: &str, from: usize, to: usize) -> bool {
    let mut at = from;
    while at < to {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            if at >= to {
                return true;
            }
        } else if let Some(comment) = rest.strip_prefix("/*") {
            at += comment.find("*/").map_or(rest.len(), |end| end + 4);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    false
}

/// The text with another value in the place of one.
pub(crate) fn replace(text: &str, node: &Node, value: &str) -> String {
    spliced(text, &[(node.span.clone(), value.to_owned())])
}

/// The text with its ranges, which follow each other, replaced.
fn spliced(text: &str, edits: &[(std::ops::Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (range, new) in edits {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(new);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::super::jsonc::parse;
    use super::*;

    fn added(text: &str) -> String {
        let root = parse(text).unwrap().unwrap();
        insert(text, &root, &root, Some("k"), &Json::Array(vec![Json::Object(vec![("n", Json::Number(1))])]))
    }

    #[test]
    fn what_is_added_looks_like_what_stands_around_it() {
        assert_eq!(added("{}"), "{\n  \"k\": [\n    {\n      \"n\": 1\n    }\n  ]\n}");
        assert_eq!(added("{\"a\":1}\n"), "{\"a\":1, \"k\": [{\"n\": 1}]}\n");
        assert_eq!(
            added("{\r\n\t\"a\": 1 // one\r\n\t// two\r\n}"),
            "{\r\n\t\"a\": 1, // one\r\n\t// two\r\n\t\"k\": [\r\n\t\t{\r\n\t\t\t\"n\": 1\r\n\t\t}\r\n\t]\r\n}"
        );
        assert_eq!(
            added("{\n    \"a\": 1, /* x */\n}"),
            "{\n    \"a\": 1, /* x */\n    \"k\": [\n        {\n            \"n\": 1\n        }\n    ],\n}"
        );
        assert_eq!(added("{ // why\n}"), "{ // why\n  \"k\": [\n    {\n      \"n\": 1\n    }\n  ]\n}");
    }

    #[test]
    fn what_was_added_can_be_removed_and_the_rest_is_as_before() {
        for text in [
            "{}",
            "{\"a\":1}\n",
            "{\r\n\t\"a\": 1 // one\r\n\t// two\r\n}",
            "{\n    \"a\": 1, /* x */\n}",
            "{\"a\": 1, /* c */ \"b\": {\"k\": 2}}",
            "// head\n{\n  \"a\": {\n    \"b\": [1, 2],\n  },\n}\n// tail",
        ] {
            let with = added(text);
            let root = parse(&with).unwrap().unwrap();
            assert_eq!(remove(&with, &root, root.children().len() - 1), text, "{with}");
        }
    }

    #[test]
    fn one_in_the_middle_takes_its_own_comma_along() {
        let text = "[1, /* a */ 2 /* b */, 3]";
        let root = parse(text).unwrap().unwrap();
        assert_eq!(remove(text, &root, 1), "[1, /* a */ /* b */ 3]");
        assert_eq!(remove(text, &root, 0), "[ /* a */ 2 /* b */, 3]");
        assert_eq!(remove(text, &root, 2), "[1, /* a */ 2 /* b */]");
    }

    /// A comment that ends with its line would swallow what follows when its line end went with what is removed.
    #[test]
    fn a_comment_that_ends_with_its_line_still_ends() {
        for (text, n, left) in [
            ("[1, // a\n2/* b */]", 1, "[1 // a\n/* b */]"),
            ("[ // a\n1, 2]", 0, "[ // a\n 2]"),
            ("[1, // a\n2, 3]", 1, "[1, // a\n 3]"),
            ("[1, // a\r\n  2\r\n]", 1, "[1 // a\r\n]"),
            ("[\"http://x\",\n2]", 1, "[\"http://x\"]"),
        ] {
            let root = parse(text).unwrap().unwrap();
            assert_eq!(remove(text, &root, n), left);
        }
    }
}
