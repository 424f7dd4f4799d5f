//! opencode.

use rustix::process::Signal;
use serde_json::json;

use super::Client;

/// opencode asks npm for this beside every plugin, and waits more than a minute for it where there is no network.
const PLUGIN_API: (&str, &str) = ("@opencode-ai/plugin", "1.18.33");

pub(super) const CLIENT: Client = Client {
    name: "opencode",
    packages: &[("opencode-ai", "1.18.33"), PLUGIN_API],
    prepare: |world| {
        let settings = json!({
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": false, "share": "disabled",
            "model": "scripted/scripted", "small_model": "scripted/scripted",
            "permission": { "edit": "allow", "bash": "allow", "webfetch": "deny" },
            "provider": { "scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "scripted",
                "options": { "baseURL": format!("http://127.0.0.1:{}/v1", world.model.port()), "apiKey": "false-key" },
                "models": { "scripted": { "name": "scripted", "limit": { "context": 200_000, "output": 8000 } } },
            } },
        });
        world.write_home(".config/opencode/opencode.json", &format!("{settings:#}\n"))?;
        world.link_package(PLUGIN_API, ".config/opencode")
    },
    environment: |_| {
        ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE"]
            .map(|what| (format!("OPENCODE_DISABLE_{what}"), "1".to_owned()))
            .to_vec()
    },
    init: &[],
    begin: |prompt| ["run", "--format", "json", prompt].map(str::to_owned).to_vec(),
    resume: |session, prompt| ["run", "--format", "json", "-s", session, prompt].map(str::to_owned).to_vec(),
    continues: |session| format!("opencode -s {session}"),
    session: |_, said| {
        let at = said.find("ses_").ok_or("no session was named")?;
        Ok(said[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
    },
    record: |world, session| world.client_says("export", &["export", session]),
    takes_empty: true,
    works_on: false,
    mcp: None,
    interrupts: &[Signal::KILL],
    habit: |_| Ok(()),
};
