//! Is this a process of an agent? (design § 7, last paragraph)

use crate::world::World;

/// Variables that harnesses set for what they run, with the harness's name. A trailing `*` stands for any ending.
const MARKS: &[(&str, &str)] = &[
    ("CLAUDECODE", "claude"),
    ("CLAUDE_CODE_ENTRYPOINT", "claude"),
    ("CLAUDE_CODE_*", "claude"),
    ("CODEX_*", "codex"),
    ("GEMINI_CLI", "gemini"),
    ("OPENCODE", "opencode"),
    ("OPENCODE_*", "opencode"),
    ("CURSOR_AGENT", "cursor"),
    ("CURSOR_TRACE_ID", "cursor"),
    ("CLINE_ACTIVE", "cline"),
    ("CRUSH", "crush"),
    ("DSH_SESSION_ID", "dsh"),
    ("DSH_SESSION", "dsh"),
];

/// Names of harnesses whose environment this process has.
pub(crate) fn surrounding(world: &World) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (mark, harness) in MARKS {
        let set = match mark.strip_suffix('*') {
            Some(start) => world.vars.keys().any(|name| name.to_str().is_some_and(|name| name.starts_with(start))),
            None => world.var(mark).is_some(),
        };
        if set && !found.contains(harness) {
            found.push(harness);
        }
    }
    found
}
