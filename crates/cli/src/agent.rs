//! Is this a process of an agent? (design § 7, last paragraph)

use crate::world::World;

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

/// Names of harnesses whose environment this process has.
pub(crate) fn surrounding(world: &World) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (mark, harness) in MARKS {
        let marks = |name: &str| fits(name, mark) && !SETTINGS.iter().any(|setting| fits(name, setting));
        let set = world.vars.iter().any(|(name, value)| !value.is_empty() && name.to_str().is_some_and(marks));
        if set && !found.contains(harness) {
            found.push(harness);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_set_for_themselves_is_no_mark() {
        let found = |names: &[&str]| {
            let mut world = World::of_process();
            world.vars = names.iter().map(|name| ((*name).into(), "1".into())).collect();
            surrounding(&world)
        };
        assert!(
            found(&[
                "CODEX_HOME",
                "CODEX_MANAGED_BY_NPM",
                "CLAUDE_CODE_USE_BEDROCK",
                "OPENCODE_CONFIG",
                "CURSOR_TRACE_ID"
            ])
            .is_empty()
        );
        assert_eq!(
            found(&["CODEX_SANDBOX", "CODEX_HOME", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"]),
            ["claude", "codex"]
        );
    }
}
