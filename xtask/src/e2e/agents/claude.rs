//! Claude Code.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::{Client, disk::only_entry};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

pub(super) const CLIENT: Client = Client {
    name: "claude",
    packages: &[("@anthropic-ai/claude-code", "2.1.332")],
    prepare: |world| {
        let settings = json!({
            "permissions": { "allow": ["Bash", "Write", "Edit", "Read"], "defaultMode": "acceptEdits" },
            "includeCoAuthoredBy": false,
        });
        world.write_home(".claude/settings.json", &format!("{settings:#}\n"))
    },
    environment: |world| {
        let off = ["AUTOUPDATER", "TELEMETRY", "ERROR_REPORTING", "BUG_COMMAND"];
        let mut all = off.map(|what| (format!("DISABLE_{what}"), "1".to_owned())).to_vec();
        all.extend([
            ("ANTHROPIC_BASE_URL".to_owned(), format!("http://127.0.0.1:{}", world.model.port())),
            ("ANTHROPIC_API_KEY".to_owned(), "false-key".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC".to_owned(), "1".to_owned()),
        ]);
        all
    },
    init: &[],
    begin: |prompt| ["-p", "--session-id", SESSION, prompt].map(str::to_owned).to_vec(),
    resume: |session, prompt| ["--resume", session, "-p", prompt].map(str::to_owned).to_vec(),
    continues: |session| format!("claude --resume {session}"),
    session: |_, _| Ok(SESSION.to_owned()),
    record: |world, session| {
        let project = only_entry(&world.home.join(".claude/projects"))?;
        Ok(fs::read(project.join(format!("{session}.jsonl")))?)
    },
    takes_empty: false,
    works_on: true,
    mcp: Some((&["mcp", "add", "rwd", "--", "rwd", "mcp"], &["mcp", "get", "rwd"])),
    interrupts: &[Signal::INT, Signal::KILL],
    habit: |_| Ok(()),
};
