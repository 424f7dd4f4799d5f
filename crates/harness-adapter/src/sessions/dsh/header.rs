//! The first line of a log.

use std::{fmt::Write as _, path::Path};

use checkpoint_core::JsonText;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    error::LogError,
    json::{integer, is_text, natural, present, text},
    vocabulary::{NEWEST, WRITTEN},
};

/// The head of a log, as it was written. Keys that are not known are passed over.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogHeader {
    /// Version of the format: 0, 2, 3 or 4.
    pub version: u64,
    /// The session's id.
    pub id: JsonText,
    /// UTC milliseconds.
    pub created_at: u64,
    /// The directory it works in.
    pub cwd: Option<JsonText>,
    /// The session it was forked from.
    pub parent: Option<JsonText>,
    /// How many of the parent's events it shares. From version 2 on the log marks the cut itself: see
    /// [`LogHeader::seeded`].
    pub seed_length: Option<u64>,
    /// From version 2 on: true when a seed came from a parent.
    pub seeded: bool,
    /// True for a subagent's session.
    pub subagent: bool,
    /// How deep it was delegated.
    pub delegation_depth: u64,
    /// The preset of its agent.
    pub agent_preset: Option<JsonText>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(borrow, default, rename = "type", deserialize_with = "present")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    created_at: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    cwd: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    parent_session: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    seed_length: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    is_seeded: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    origin: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    delegation_depth: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    agent_preset: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    sandbox_mode: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    approval_policy: Option<&'a RawValue>,
}

fn optional(raw: Option<&RawValue>, key: &str) -> Result<Option<JsonText>, String> {
    raw.map(|raw| text(raw).ok_or_else(|| format!("{key} is not a string"))).transpose()
}

/// Reads the header of the log at `path`; `named` is the version in the file's name.
///
/// The order of checks is the host's: the version before the shape, so that a newer log is told from a damaged one.
pub(super) fn parse(path: &Path, line: &[u8], named: Option<u64>) -> Result<LogHeader, LogError> {
    let no_header = |why: String| LogError::NoHeader { path: path.to_owned(), why };
    let line = std::str::from_utf8(line).map_err(|_| no_header("it is not UTF-8".into()))?;
    let raw: Raw<'_> = serde_json::from_str(line).map_err(|error| no_header(error.to_string()))?;
    // A log without a number in its name is one of version 0, or of a version that had no other name.
    let expected = named.unwrap_or(WRITTEN);
    let version = match raw.version {
        Some(version) if integer(version) == i64::try_from(expected).ok() => expected,
        Some(version) if version.get().starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) => {
            let version = version.get().to_owned();
            return Err(LogError::UnsupportedVersion { path: path.to_owned(), version, write: false });
        }
        _ => return Err(no_header("it has no version".into())),
    };
    if version > NEWEST || version == 1 {
        let version = version.to_string();
        return Err(LogError::UnsupportedVersion { path: path.to_owned(), version, write: false });
    }
    if !raw.kind.is_some_and(|kind| is_text(kind, "session")) {
        return Err(no_header("its type is not \"session\"".into()));
    }
    let count = |raw: Option<&RawValue>, key: &str| {
        raw.and_then(natural).ok_or_else(|| no_header(format!("{key} is missing or no count")))
    };
    let id = optional(raw.id, "id").map_err(no_header)?.filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| no_header("id is missing or empty".into()))?;
    if raw.origin.is_some_and(|origin| !is_text(origin, "subagent")) {
        return Err(no_header("origin is not \"subagent\"".into()));
    }
    let header = LogHeader {
        version,
        id,
        created_at: count(raw.created_at, "createdAt")?,
        cwd: optional(raw.cwd, "cwd").map_err(no_header)?,
        parent: optional(raw.parent_session, "parentSession").map_err(no_header)?,
        seed_length: raw.seed_length.map(|raw| count(Some(raw), "seedLength")).transpose()?,
        seeded: raw.is_seeded.is_some_and(|seeded| seeded.get() == "true"),
        subagent: raw.origin.is_some(),
        delegation_depth: count(raw.delegation_depth, "delegationDepth")?,
        agent_preset: optional(raw.agent_preset, "agentPreset").map_err(no_header)?,
    };
    if raw.sandbox_mode.is_some() || raw.approval_policy.is_some() {
        return Err(LogError::RetiredHeader { path: path.to_owned() });
    }
    Ok(header)
}

/// What a list can say of a log that cannot be read: its own words, unchecked.
pub(super) fn glance(line: &[u8]) -> Option<LogHeader> {
    let raw: Raw<'_> = serde_json::from_slice(line).ok()?;
    Some(LogHeader {
        version: raw.version.and_then(natural)?,
        id: raw.id.and_then(text)?,
        created_at: raw.created_at.and_then(natural).unwrap_or(0),
        cwd: raw.cwd.and_then(text),
        parent: raw.parent_session.and_then(text),
        seed_length: raw.seed_length.and_then(natural),
        seeded: raw.is_seeded.is_some_and(|seeded| seeded.get() == "true"),
        subagent: raw.origin.is_some(),
        delegation_depth: raw.delegation_depth.and_then(natural).unwrap_or(0),
        agent_preset: raw.agent_preset.and_then(text),
    })
}

impl LogHeader {
    /// The line of a version 0 log, with its end, keys in the host's order.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            r#"{{"type":"session","version":{WRITTEN},"id":{},"createdAt":{}"#,
            self.id.to_json(),
            self.created_at
        );
        let mut push = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                // Writing to a text cannot fail.
                let _ = write!(line, r#","{key}":{value}"#);
            }
        };
        push("cwd", self.cwd.as_ref().map(JsonText::to_json));
        push("parentSession", self.parent.as_ref().map(JsonText::to_json));
        push("seedLength", self.seed_length.map(|length| length.to_string()));
        push("origin", self.subagent.then(|| r#""subagent""#.to_owned()));
        push("delegationDepth", Some(self.delegation_depth.to_string()));
        push("agentPreset", self.agent_preset.as_ref().map(JsonText::to_json));
        line.push_str("}\n");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, named: Option<u64>) -> Result<LogHeader, &'static str> {
        parse(Path::new("log"), line.as_bytes(), named).map_err(|error| error.code())
    }

    const GOOD: &str = r#"{"type":"session","version":0,"id":"a","createdAt":5,"cwd":"/w","delegationDepth":0}"#;

    #[test]
    fn headers_are_written_as_the_host_writes_them() {
        assert_eq!(read(GOOD, None).unwrap().line(), format!("{GOOD}\n"));
    }

    #[test]
    fn tn52_a_newer_header_is_unsupported_not_corrupt() {
        assert_eq!(read(r#"{"version":5}"#, None), Err("UNSUPPORTED_VERSION"));
        assert_eq!(read(r#"{"version":1,"type":"x"}"#, None), Err("UNSUPPORTED_VERSION"));
        assert_eq!(read(&GOOD.replace(":0,\"id\"", ":5,\"id\""), Some(5)), Err("UNSUPPORTED_VERSION"));
        assert_eq!(read(GOOD, Some(4)), Err("UNSUPPORTED_VERSION"), "name and header must agree");
        let v4 = r#"{"type":"session","version":4,"id":"a","createdAt":5,"isSeeded":true,"delegationDepth":0}"#;
        assert!(read(v4, Some(4)).unwrap().seeded);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for bad in ["", "5", "[]", "{}", r#"{"version":"0"}"#, r#"{"version":0}"#, "{\"version\":0"] {
            assert_eq!(read(bad, None), Err("NO_HEADER"), "{bad}");
        }
        for (from, to) in [
            ("\"a\"", "\"\""),
            ("\"a\"", "7"),
            (":5", ":-5"),
            (":5", ":5.5"),
            ("h\":0", "h\":-0"),
            ("\"cwd\":\"/w\"", "\"cwd\":null"),
            ("\"cwd\":\"/w\"", "\"origin\":\"x\""),
            ("\"cwd\":\"/w\"", "\"agentPreset\":1"),
        ] {
            assert_eq!(read(&GOOD.replace(from, to), None), Err("NO_HEADER"), "{from} -> {to}");
        }
        assert_eq!(read(&GOOD.replace("cwd", "sandboxMode"), None), Err("RETIRED_HEADER"));
    }
}
