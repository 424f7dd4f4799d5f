//! One line (003-02, K-42).

use std::fmt;

use checkpoint_core::Seq;

use super::{PointsError, time::is_iso};

/// Label of the line that every closed turn of a root session adds.
pub const AUTO_TURN: &str = "auto-turn";
/// Label of the line that a failed turn adds instead.
pub const AUTO_ERROR: &str = "auto-error";

const SEPARATOR: &str = " | ";
const SESSION: &str = "session=";
const SEQ: &str = "seq=";
/// Longest label or note, in characters.
const LONGEST: usize = 500;
/// Largest integer that the harness can name.
const LARGEST_SEQ: u64 = (1 << 53) - 1;

/// One named point, as its line has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// When it was set, as it stands there.
    pub time: String,
    /// The label.
    pub label: String,
    /// The session's id, without its harness.
    pub session: String,
    /// Position of the `turn/end` after which the conversation is cut.
    pub seq: Seq,
    /// A person's words.
    pub note: Option<String>,
}

impl Line {
    /// True for lines that turns add by themselves: they go first when there are too many.
    pub fn is_automatic(&self) -> bool {
        matches!(self.label.as_str(), AUTO_TURN | AUTO_ERROR)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, label, session, seq, note } = self;
        write!(f, "- [{time}] {label}{SEPARATOR}{SESSION}{session}{SEPARATOR}{SEQ}{seq}")?;
        note.as_ref().map_or(Ok(()), |note| write!(f, "{SEPARATOR}{note}"))
    }
}

/// Reads one line without its newline; `None` for everything that is not exactly such a line.
///
/// The parts are looked for from the right. A line in which more than one part looks like a session or a position is
/// none: a label or a note that says `session=…` must not be taken for the real one (K-42).
pub fn parse_line(line: &[u8]) -> Option<Line> {
    let line = std::str::from_utf8(line).ok()?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.chars().any(is_line_break) {
        return None;
    }
    let (time, rest) = line.strip_prefix("- [")?.split_once("] ")?;
    if !is_iso(time) {
        return None;
    }
    let mut parts: Vec<&str> = rest.split(SEPARATOR).collect();
    let mut last = parts.pop()?;
    let mut note = None;
    if !last.starts_with(SEQ) {
        note = Some(last);
        last = parts.pop()?;
    }
    let digits = last.strip_prefix(SEQ)?;
    let seq: u64 = digits.parse().ok().filter(|seq| *seq <= LARGEST_SEQ)?;
    let session = parts.pop()?.strip_prefix(SESSION)?;
    let label = parts.join(SEPARATOR);
    let forged = parts.iter().copied().chain(note).any(is_field);
    let sound = !digits.starts_with('+') && !session.is_empty() && !label.trim().is_empty() && !forged;
    sound.then(|| Line {
        time: time.to_owned(),
        label,
        session: session.to_owned(),
        seq: Seq(seq),
        note: note.map(str::to_owned),
    })
}

fn is_field(part: &str) -> bool {
    part.trim_start().starts_with(SESSION) || part.trim_start().starts_with(SEQ)
}

fn is_line_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A label as it is written, or why it cannot be (K-42).
pub fn check_label(label: &str) -> Result<&str, PointsError> {
    let label = label.trim();
    if label.is_empty() {
        return Err(PointsError::BadText { what: "label", given: String::new(), why: "it is empty" });
    }
    check("label", label)
}

/// A note as it is written, or why it cannot be (K-42).
pub fn check_note(note: &str) -> Result<&str, PointsError> {
    check("note", note.trim())
}

fn check<'a>(what: &'static str, text: &'a str) -> Result<&'a str, PointsError> {
    let why = if text.chars().any(is_line_break) {
        "it holds a line break or another control character"
    } else if text.contains(SEPARATOR) || text.starts_with('|') || text.ends_with('|') {
        "it holds a | that would separate parts of the line"
    } else if is_field(text) {
        "it begins like a session or a position"
    } else if text.chars().count() > LONGEST {
        "it is longer than 500 characters"
    } else {
        return Ok(text);
    };
    let given = text.chars().take(LONGEST).collect();
    Err(PointsError::BadText { what, given, why })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(label: &str, note: Option<&str>) -> Line {
        Line {
            time: "2026-11-30T14:05:00.000Z".into(),
            label: label.into(),
            session: "s1".into(),
            seq: Seq(60),
            note: note.map(Into::into),
        }
    }

    #[test]
    fn tq01_the_exact_format() {
        assert_eq!(line("a b", None).to_string(), "- [2026-11-30T14:05:00.000Z] a b | session=s1 | seq=60");
        let noted = line("a", Some("why not"));
        assert_eq!(noted.to_string(), "- [2026-11-30T14:05:00.000Z] a | session=s1 | seq=60 | why not");
        let noted = line("a|b", Some("c"));
        assert_eq!(parse_line(noted.to_string().as_bytes()), Some(noted.clone()));
        assert_eq!(parse_line(format!("{noted}\r").as_bytes()), Some(noted), "files with CRLF");
    }

    #[test]
    fn tq12_what_is_no_line_is_none() {
        let good = "- [2026-11-30T14:05:00Z] a | session=s | seq=1";
        assert!(parse_line(good.as_bytes()).is_some());
        for bad in [
            "",
            "# Checkpoints",
            "- a | session=s | seq=1",
            "- [yesterday] a | session=s | seq=1",
            " - [2026-11-30T14:05:00Z] a | session=s | seq=1",
            "- [2026-11-30T14:05:00Z] a | session=s",
            "- [2026-11-30T14:05:00Z] a | seq=1",
            "- [2026-11-30T14:05:00Z]  | session=s | seq=1",
            "- [2026-11-30T14:05:00Z] a | session= | seq=1",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=-1",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=+1",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=1.0",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=1e3",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=9007199254740992",
            "- [2026-11-30T14:05:00Z] a | session=s | seq=99999999999999999999",
        ] {
            assert_eq!(parse_line(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_line(b"- [2026-11-30T14:05:00Z] \xff | session=s | seq=1"), None);
    }

    #[test]
    fn k42_nothing_can_be_forged_by_a_label_or_a_note() {
        for bad in ["a | session=x | seq=0", "a\nb", "a\rb", "a\u{2028}b", "| a", "a |", "session=x", " seq=0", "a\0"] {
            assert_eq!(check_label(bad).unwrap_err().code(), "BAD_LABEL", "{bad:?}");
            assert_eq!(check_note(bad).unwrap_err().code(), "BAD_LABEL", "{bad:?}");
        }
        check_label(" ").unwrap_err();
        check_label(&"x".repeat(501)).unwrap_err();
        // Written by somebody else all the same: neither reading of it is taken.
        for forged in [
            "- [2026-11-30T14:05:00Z] a | session=x | seq=0 | session=real | seq=9",
            "- [2026-11-30T14:05:00Z] a | session=real | seq=9 | n | session=x | seq=0",
            "- [2026-11-30T14:05:00Z] a | session=real | seq=9 | session=x",
            "- [2026-11-30T14:05:00Z] session=x | seq=0 | session=real | seq=9",
        ] {
            assert_eq!(parse_line(forged.as_bytes()), None, "{forged}");
        }
        // One reading only: a label of another writer may hold the separator.
        let other = parse_line(b"- [2026-11-30T14:05:00Z] a | b | session=s | seq=9").unwrap();
        assert_eq!(other.label, "a | b");
    }

    proptest! {
        #[test]
        fn what_is_accepted_reads_back(label in ".{0,20}[ |=a-z]{0,8}", note in proptest::option::of("[ |=a-z]{1,12}|.{1,20}")) {
            let Ok(label) = check_label(&label) else { return Ok(()) };
            let note = match note.as_deref().map(check_note) {
                Some(Ok("")) | None => None,
                Some(Ok(note)) => Some(note),
                Some(Err(_)) => return Ok(()),
            };
            let line = line(label, note);
            prop_assert_eq!(parse_line(line.to_string().as_bytes()), Some(line));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _none_or_some = parse_line(&bytes);
        }
    }
}
