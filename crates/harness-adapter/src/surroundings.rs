//! Marks that harnesses leave in the environment of what they run.

/// Variables that harnesses set for what they run, with the harness's name. A trailing `*` stands for any ending.
///
/// Variables that people set for themselves, or that an editor sets in its own terminal, are not among them: a person
/// must not be taken for an agent.
const MARKS: &[(&str, &str)] = &[
    ("CLAUDECODE", "claude"),
    ("CLAUDE_CODE_ENTRYPOINT", "claude"),
    ("CODEX_*", "codex"),
    ("GEMINI_CLI", "gemini"),
    ("OPENCODE", "opencode"),
    ("CURSOR_AGENT", "cursor"),
    ("CLINE_ACTIVE", "cline"),
    ("CRUSH", "crush"),
    ("CRUSH_SESSION_ID", "crush"),
    ("DSH_SESSION_ID", "dsh"),
];

/// Settings of people, or of an installation, that look like marks.
const SETTINGS: &[&str] = &["CODEX_HOME", "CODEX_SQLITE_HOME", "CODEX_API_KEY", "CODEX_MANAGED_*", "CODEX_INTERNAL_*"];

fn fits(name: &str, mark: &str) -> bool {
    mark.strip_suffix('*').map_or(name == mark, |start| name.starts_with(start))
}

/// Names of the harnesses that these variables, by name and only those that are not empty, are marks of.
pub fn surrounding<'a>(vars: impl IntoIterator<Item = &'a str>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in vars {
        if SETTINGS.iter().any(|setting| fits(name, setting)) {
            continue;
        }
        let marked = MARKS.iter().filter(|(mark, _)| fits(name, mark)).map(|(_, harness)| *harness);
        found.extend(marked);
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_set_for_themselves_is_no_mark() {
        let own =
            ["CODEX_HOME", "CODEX_MANAGED_BY_NPM", "CLAUDE_CODE_USE_BEDROCK", "OPENCODE_CONFIG", "CURSOR_TRACE_ID"];
        assert!(surrounding(own).is_empty());
        let inside = ["CODEX_SANDBOX", "CODEX_HOME", "CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE"];
        assert_eq!(surrounding(inside), ["claude", "codex"]);
    }
}
