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
///
/// # Errors
/// [`Mistake`] where `config` is no TOML.
pub fn trust_state(config: &str, entry: &TrustEntry) -> Result<Trust, Mistake> {
    let table = read(config)?;
    Ok(match stored(&table, &entry.key) {
        None => Trust::Untrusted,
        Some(hash) if hash == entry.hash => Trust::Trusted,
        Some(_) => Trust::Modified,
    })
}

/// Where an entry's table stands among the lines of `config.toml`.
struct Place {
    /// Its header, with the blank line in front of it.
    from: usize,
    /// The line of the hash.
    hash: usize,
    /// Nothing else is in the table.
    alone: bool,
}

fn place(lines: &[&str], entry: &TrustEntry) -> Option<Place> {
    let header = entry.header();
    let at = lines.iter().position(|line| line.trim() == header)?;
    let body = lines.iter().skip(at + 1).take_while(|line| !line.trim_start().starts_with('['));
    let body: Vec<&str> = body.map(|line| line.trim()).collect();
    let hash = body.iter().position(|line| line.starts_with("trusted_hash"))?;
    let others = body.iter().filter(|line| !line.is_empty()).count();
    let blank = at.checked_sub(1).filter(|above| lines.get(*above).is_some_and(|line| line.trim().is_empty()));
    Some(Place { from: blank.unwrap_or(at), hash: at + 1 + hash, alone: others == 1 && hash == 0 })
}

/// `config.toml` as it is, apart from what it says of these hooks.
fn without(mut table: toml::Table, entries: &[TrustEntry]) -> toml::Table {
    let Some(hooks) = table.get_mut("hooks").and_then(toml::Value::as_table_mut) else { return table };
    if let Some(state) = hooks.get_mut("state").and_then(toml::Value::as_table_mut) {
        for entry in entries {
            if let Some(of) = state.get_mut(&entry.key).and_then(toml::Value::as_table_mut) {
                of.remove("trusted_hash");
            }
            if state.get(&entry.key).and_then(toml::Value::as_table).is_some_and(toml::Table::is_empty) {
                state.remove(&entry.key);
            }
        }
        if state.is_empty() {
            hooks.remove("state");
        }
    }
    if hooks.is_empty() {
        table.remove("hooks");
    }
    table
}

/// Refuses an edit that changed anything else.
fn checked(before: &toml::Table, text: String, entries: &[TrustEntry]) -> Result<String, Mistake> {
    let same = |after| without(after, entries) == without(before.clone(), entries);
    if read(&text).is_ok_and(same) {
        return Ok(text);
    }
    Err(unchangeable())
}

fn unchangeable() -> Mistake {
    let what = "what it says of hooks cannot be changed by line: say it in Codex, under /hooks";
    Mistake { line: 1, what: what.to_owned() }
}

/// `config.toml` with these hooks trusted.
///
/// # Errors
/// [`Mistake`] where `config` is no TOML, or the edit would change anything else.
pub fn with_trust(config: &str, entries: &[TrustEntry]) -> Result<String, Mistake> {
    let before = read(config)?;
    let line_end = if config.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = config.to_owned();
    for entry in entries {
        if stored(&before, &entry.key) == Some(entry.hash.as_str()) {
            continue;
        }
        let hash = format!("trusted_hash = \"{}\"{line_end}", entry.hash);
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        if let Some(line) = place(&lines, entry).and_then(|place| lines.get_mut(place.hash)) {
            *line = &hash;
            text = lines.concat();
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(line_end);
        }
        let blank = if text.is_empty() { "" } else { line_end };
        let header = entry.header();
        text.extend([blank, &header, line_end, &hash]);
    }
    let text = checked(&before, text, entries)?;
    let after = read(&text)?;
    let all = entries.iter().all(|entry| stored(&after, &entry.key) == Some(entry.hash.as_str()));
    if all { Ok(text) } else { Err(unchangeable()) }
}

/// `config.toml` without what it says of these hooks, where that stands in a table of its own.
///
/// # Errors
/// [`Mistake`] where `config` is no TOML, or the edit would change anything else.
pub fn without_trust(config: &str, entries: &[TrustEntry]) -> Result<String, Mistake> {
    let before = read(config)?;
    let mut lines: Vec<&str> = config.split_inclusive('\n').collect();
    for entry in entries {
        if let Some(place) = place(&lines, entry) {
            let range = if place.alone { place.from..=place.hash } else { place.hash..=place.hash };
            lines.drain(range);
        }
    }
    checked(&before, lines.concat(), entries)
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
        let command = super::super::hook_command("rwd", super::super::Agent::Codex).unwrap();
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

    /// Codex keeps more in a hook's table: taking the hash out must not hand that to another table.
    #[test]
    fn what_else_is_in_the_table_stays_in_it() {
        let entry = entry();
        let one = std::slice::from_ref(&entry);
        for (before, after) in [
            ("a = 1\n[H]\nenabled = false\ntrusted_hash = \"x\"\n[b]\n", "a = 1\n[H]\nenabled = false\n[b]\n"),
            ("[H]\ntrusted_hash = \"x\" # ok\n# why\nenabled = false\n", "[H]\n# why\nenabled = false\n"),
            ("[H]\ntrusted_hash = \"x\"\n\n[b]\nc = 1\n", "\n[b]\nc = 1\n"),
        ] {
            let (before, after) = (before.replace("[H]", &entry.header()), after.replace("[H]", &entry.header()));
            assert_eq!(without_trust(&before, one).unwrap(), after);
            let trusted = with_trust(&before, one).unwrap();
            assert_eq!(trust_state(&trusted, &entry), Ok(Trust::Trusted));
            assert_eq!(trusted.matches("trusted_hash").count(), 1);
        }
    }

    #[test]
    fn a_file_that_takes_no_more_tables_is_refused() {
        for before in ["hooks = { state = {} }\n", "a = [\n", "x = 1\nx = 2\n"] {
            assert!(with_trust(before, &[entry()]).is_err(), "{before}");
        }
        assert_eq!(with_trust("a = 1\nb =\n", &[entry()]).unwrap_err().line, 2);
    }
}
