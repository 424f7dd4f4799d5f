//! Pieces of text for people: times, sizes, counts, lists.

use std::path::Path;

use checkpoint_core::{PointKind, SessionKey, Timestamp};

use crate::wire::{PathEntry, ReasonEntry};

/// Appends formatted text to a string.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!($out, $($format)*);
    }};
}
pub(crate) use put;

/// `1 file`, `3 files`.
pub(crate) fn count(n: u64, what: &str) -> String {
    if n == 1 {
        return format!("1 {what}");
    }
    let many = what.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o'])).map(|stem| format!("{stem}ies"));
    format!("{n} {}", many.unwrap_or_else(|| format!("{what}s")))
}

/// Bytes, in a unit that keeps it short.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit = 0;
    let mut scaled = bytes;
    while scaled >= 1024 * 1024 && unit + 1 < UNITS.len() {
        scaled /= 1024;
        unit += 1;
    }
    let tenths = scaled * 10 / 1024;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS.get(unit).copied().unwrap_or("TiB"))
}

/// The local time: without the date today.
pub(crate) fn time(at: Timestamp, now: Timestamp) -> String {
    let zoned = |at: Timestamp| {
        jiff::Timestamp::from_millisecond(at.0).ok().map(|t| t.to_zoned_datetime(jiff::tz::TimeZone::system()))
    };
    let (Some(at), Some(now)) = (zoned(at), zoned(now)) else { return "?".to_owned() };
    let format = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    at.strftime(format).to_string()
}

/// The same, to the minute.
pub(crate) fn minute(at: Timestamp, now: Timestamp) -> String {
    let full = time(at, now);
    if full.len() == 8 { full.get(..5).unwrap_or(&full).to_owned() } else { full }
}

/// Beginning of an id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// A session by a beginning of its id that no other of `all` has: it can be typed in place of the whole.
pub(crate) fn session(key: &SessionKey, all: &[SessionKey]) -> String {
    let id = key.id();
    let is_unique = |start: &str| {
        !all.iter().any(|other| other != key && other.harness() == key.harness() && other.id().starts_with(start))
    };
    let beginnings = id.char_indices().skip(SHORTEST).filter_map(|(at, _)| id.get(..at));
    match beginnings.into_iter().find(|start| is_unique(start)) {
        Some(start) if !key.is_local() => format!("{}:{start}", key.harness()),
        _ => key.to_string(),
    }
}

/// Characters of a session's id that are always shown.
const SHORTEST: usize = 12;

/// A kind of point, for people.
pub(crate) const fn kind(kind: PointKind) -> &'static str {
    match kind {
        PointKind::TurnStart => "start",
        PointKind::TurnEnd => "end",
        PointKind::Guard => "guard",
        other => other.name(),
    }
}

/// How many lines a list has before it is cut.
const SHOWN: usize = 12;

/// A list of paths under a heading; nothing for an empty one. They are named from the directory `below` the root.
pub(crate) fn paths(out: &mut String, below: &Path, heading: &str, paths: &[PathEntry]) {
    lines(out, heading, paths.iter().map(|path| path.line_from(below)).collect());
}

/// The same for paths with reasons.
pub(crate) fn reasons(out: &mut String, below: &Path, heading: &str, entries: &[ReasonEntry]) {
    lines(out, heading, entries.iter().map(|entry| entry.line(below)).collect());
}

fn lines(out: &mut String, heading: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let more = lines.len().saturating_sub(SHOWN);
    out.push_str(heading);
    out.push('\n');
    for line in lines.into_iter().take(SHOWN) {
        out.push_str("  ");
        out.push_str(&line);
        out.push('\n');
    }
    if more > 0 {
        put!(out, "  and {more} more\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes() {
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(2, "directory"), "2 directories");
        assert_eq!(count(0, "turn"), "0 turns");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(2 << 30), "2.0 GiB");
    }
}
