//! Codex runs a hook only after its user has trusted it, by a hash of what it is; an untrusted one is left out without a
//! word in `codex exec`. The hashes stand in `config.toml`, one table a hook:
//!
//! ```toml
//! [hooks.state."<path of hooks.json>:pre_tool_use:0:0"]
//! trusted_hash = "sha256:…"
//! ```
//!
//! The hash is taken over one line of JSON with sorted keys (measured with 0.171.0). Trust is a safety review of the
//! user's: it is computed to tell its state, and written only where the user says so.
//!
//! Tables are added at the end of the file and removed as whole tables, so that every other byte stays; what comes of it
//! is read again and compared before it counts.

use sha2::{Digest, Sha256};

use super::Mistake;
use super::jsonc;

/// One hook, as Codex names and hashes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustEntry {
    /// `<hooks.json>:<event>:<group>:<hook>`.
    pub key: String,
    /// `sha256:…` of what the hook is now.
    pub hash: String,
}

/// What Codex thinks of a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// It runs.
    Trusted,
    /// It was never reviewed: it does not run.
    Untrusted,
    /// It was changed since: it does not run.
    Modified,
}

impl TrustEntry {
    /// `hooks_json`: the path of the file as Codex has it; `group` and `hook`: places in the event's lists, from 0;
    /// `timeout`: seconds, 600 where the hook names none.
    pub(crate) fn new(
        hooks_json: &str,
        event: &str,
        at: (usize, usize),
        command: &str,
        matcher: Option<&str>,
        timeout: u64,
    ) -> Self {
        let timeout = limit(event).map_or(timeout, |limit| timeout.min(limit));
        let event = snake(event);
        let mut text = format!(
            "{{\"event_name\":\"{event}\",\"hooks\":[{{\"async\":false,\"command\":{},\"timeout\":{timeout},\"type\":\"command\"}}]",
            serde_json::Value::from(command)
        );
        if let Some(matcher) = matcher {
            text.push_str(",\"matcher\":");
            text.push_str(&serde_json::Value::from(matcher).to_string());
        }
        text.push('}');
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
        Self { key: format!("{hooks_json}:{event}:{}:{}", at.0, at.1), hash: format!("sha256:{digest}") }
    }

    fn header(&self) -> String {
        format!("[hooks.state.{}]", serde_json::Value::from(self.key.as_str()))
    }
}

/// The most seconds that Codex gives a hook of this event, where there is such a limit: a longer one is cut, with a
/// warning, before the hash is taken.
pub(crate) fn limit(event: &str) -> Option<u64> {
    ["SessionEnd", "Interrupt"].contains(&event).then_some(3)
}

/// `PreToolUse` as `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut out = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn read(text: &str) -> Result<toml::Table, Mistake> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    plain.parse::<toml::Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        jsonc::mistake(plain, at, error.message().to_owned())
    })
}

fn stored<'a>(table: &'a toml::Table, key: &str) -> Option<&'a str> {
    table.get("hooks")?.get("state")?.get(key)?.get("trusted_hash")?.as_str()
}

/// True when `config.toml` turns all hooks off. One that cannot be read says nothing.
pub fn hooks_are_off(config: &str) -> bool {
    let Ok(table) = read(config) else { return false };
    let features = table.get("features");
    let says = |name: &str| features.and_then(|features| features.get(name)).and_then(toml::Value::as_bool);
    says("hooks").or_else(|| says("codex_hooks")) == Some(false)
}

/// What `config.toml` says of a hook.
pub fn trust_state(config: &str, entry: &TrustEntry) -> Result<Trust, Mistake> {
    let table = read(config)?;
    Ok(match stored(&table, &entry.key) {
        None => Trust::Untrusted,
        Some(hash) if hash == entry.hash => Trust::Trusted,
        Some(_) => Trust::Modified,
    })
}

/// The lines of `config.toml` that make an entry's table, with the blank line in front of it.
fn table_lines(lines: &[&str], entry: &TrustEntry) -> Option<std::ops::Range<usize>> {
    let header = entry.header();
    let start = lines.iter().position(|line| line.trim() == header)?;
    let body = lines.iter().skip(start + 1).take_while(|line| line.trim().starts_with("trusted_hash")).count();
    let start =
        if start > 0 && lines.get(start - 1).is_some_and(|line| line.trim().is_empty()) { start - 1 } else { start };
    Some(start..lines.iter().position(|line| line.trim() == header)? + 1 + body)
}

/// `config.toml` with these hooks trusted.
pub fn with_trust(config: &str, entries: &[TrustEntry]) -> Result<String, Mistake> {
    read(config)?;
    let line_end = if config.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = config.to_owned();
    for entry in entries {
        let state = trust_state(&text, entry)?;
        if state == Trust::Trusted {
            continue;
        }
        if state == Trust::Modified {
            text = without_trust(&text, std::slice::from_ref(entry))?;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(line_end);
        }
        let blank = if text.is_empty() { "" } else { line_end };
        let header = entry.header();
        text.extend([blank, &header, line_end, "trusted_hash = \"", &entry.hash, "\"", line_end]);
    }
    let cannot =
        || Mistake { line: 1, what: "trust cannot be added at its end: say it in Codex, under /hooks".to_owned() };
    let after = read(&text).map_err(|_| cannot())?;
    let all = entries.iter().all(|entry| stored(&after, &entry.key) == Some(entry.hash.as_str()));
    if all { Ok(text) } else { Err(cannot()) }
}

/// `config.toml` without what it says of these hooks, where that stands in a table of its own.
pub fn without_trust(config: &str, entries: &[TrustEntry]) -> Result<String, Mistake> {
    read(config)?;
    let mut lines: Vec<&str> = config.split_inclusive('\n').collect();
    for entry in entries {
        if let Some(range) = table_lines(&lines, entry) {
            lines.drain(range);
        }
    }
    let text = lines.concat();
    read(&text).map(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> TrustEntry {
        TrustEntry::new("/h/.codex/hooks.json", "PreToolUse", (0, 1), "true", Some("Bash"), 600)
    }

    /// The digest was taken with `sha256sum` over the line that the module's head describes.
    #[test]
    fn the_hash_is_that_of_one_line_with_sorted_keys() {
        let entry = entry();
        assert_eq!(entry.key, "/h/.codex/hooks.json:pre_tool_use:0:1");
        assert_eq!(entry.hash, "sha256:39057ebd30cc98418da09c661f1ff844e076ba83820ea7f8a14b085993f1a440");
        let without = TrustEntry::new("/h", "Stop", (0, 0), "say \"x\"", None, 20);
        assert_eq!(without.hash, "sha256:5eda50fa9518ecb14dd0c6fe185d2fc82e0562190ef7958cf740c65590debb9b");
    }

    #[test]
    fn trust_is_added_at_the_end_changed_in_its_table_and_removed_with_it() {
        for before in [
            "",
            "model = \"x\" # mine\r\n[a]\r\nb = 1\r\n",
            "model = \"x\"\n",
            "[hooks.state.\"/o:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
        ] {
            let entry = entry();
            assert_eq!(trust_state(before, &entry), Ok(Trust::Untrusted));
            let with = with_trust(before, std::slice::from_ref(&entry)).unwrap();
            assert!(with.starts_with(before), "{with}");
            assert_eq!(trust_state(&with, &entry), Ok(Trust::Trusted));
            assert_eq!(with_trust(&with, std::slice::from_ref(&entry)).unwrap(), with);
            assert_eq!(without_trust(&with, std::slice::from_ref(&entry)).unwrap(), before);
            let changed = with.replace(&entry.hash, "sha256:00");
            assert_eq!(trust_state(&changed, &entry), Ok(Trust::Modified));
            assert_eq!(
                trust_state(&with_trust(&changed, std::slice::from_ref(&entry)).unwrap(), &entry),
                Ok(Trust::Trusted)
            );
        }
    }

    /// What `hooks/list` of Codex 0.171.0 gave as `currentHash` for the hooks that `rwd init` writes.
    #[test]
    fn the_hashes_are_those_that_codex_gave() {
        let command = super::super::hook_command("rwd", "codex").unwrap();
        let hash = |event, timeout| TrustEntry::new("/h", event, (0, 0), &command, None, timeout).hash;
        let tool = "sha256:2de836e3e52f6b432d341e45e4b5e702101bd9c68326293881dd4bf9c3c85f6f";
        let end = "sha256:d1f96395264833ddaa1c5b7a4dd0672bba4475974b764851efd5ea524313a3d4";
        assert_eq!((hash("PreToolUse", 20).as_str(), hash("SessionEnd", 20).as_str()), (tool, end));
        assert_eq!(hash("SessionEnd", 3), end);
    }

    #[test]
    fn hooks_can_be_turned_off_under_two_names() {
        assert!(hooks_are_off("[features]\nhooks = false\n") && hooks_are_off("features.codex_hooks = false\n"));
        assert!(
            !hooks_are_off("[features]\nhooks = true\ncodex_hooks = false\n")
                && !hooks_are_off("")
                && !hooks_are_off("[")
        );
    }

    #[test]
    fn a_file_that_takes_no_more_tables_is_refused() {
        for before in ["hooks = { state = {} }\n", "a = [\n", "x = 1\nx = 2\n"] {
            assert!(with_trust(before, &[entry()]).is_err(), "{before}");
        }
        assert_eq!(with_trust("a = 1\nb =\n", &[entry()]).unwrap_err().line, 2);
    }
}
