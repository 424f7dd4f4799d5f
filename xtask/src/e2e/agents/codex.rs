//! Codex.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::{Client, World, disk::files_below};
use crate::Result;

const FREE: &str = "--dangerously-bypass-approvals-and-sandbox";

pub(super) const CLIENT: Client = Client {
    name: "codex",
    packages: &[("@openai/codex", "0.171.0")],
    prepare: |world| {
        let (port, shop) = (world.model.port(), world.shop.display());
        // A model of this name gets the tools exec_command and apply_patch; one that is not known gets no apply_patch.
        let settings = format!(
            r#"# Settings of the scripted model
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[analytics]
enabled = false

[feedback]
enabled = false

[projects."{shop}"]
trust_level = "trusted"
"#
        );
        world.write_home(".codex/config.toml", &settings)
    },
    environment: |_| vec![("SCRIPTED_KEY".to_owned(), "false-key".to_owned())],
    // Hooks that are not trusted are left out without a word.
    init: &["--trust-codex"],
    begin: |prompt| ["exec", FREE, "--json", prompt].map(str::to_owned).to_vec(),
    resume: |session, prompt| ["exec", "resume", FREE, "--json", session, prompt].map(str::to_owned).to_vec(),
    continues: |session| format!("codex resume {session}"),
    session: |_, said| {
        let started = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut ids = started.filter_map(|event| event["thread_id"].as_str().map(str::to_owned));
        ids.next().ok_or_else(|| "no thread was started".into())
    },
    record: |world, session| Ok(fs::read(rollout(world, session)?)?),
    takes_empty: true,
    works_on: false,
    mcp: Some((&["mcp", "add", "rwd", "--", "rwd", "mcp"], &["mcp", "get", "rwd"])),
    interrupts: &[Signal::INT, Signal::KILL],
    habit: |_| Ok(()),
};

fn rollout(world: &World, session: &str) -> Result<std::path::PathBuf> {
    let all = files_below(&world.home.join(".codex/sessions"))?;
    let end = format!("{session}.jsonl");
    all.into_iter().find(|path| path.to_string_lossy().ends_with(&end)).ok_or_else(|| "no rollout".into())
}
