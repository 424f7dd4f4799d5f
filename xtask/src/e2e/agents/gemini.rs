//! Gemini CLI.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Client, World, disk::files_below};
use crate::Result;

const SESSION: &str = "66666666-6666-4666-8666-666666666666";
const MODEL: &str = "gemini-2.5-flash";

pub(super) const CLIENT: Client = Client {
    name: "gemini",
    packages: &[("@google/gemini-cli", "0.61.0")],
    prepare: |world| {
        let settings = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
            // Their older names are replaced in the file at the first start.
            "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
            "model": { "name": MODEL },
        });
        begin_in_a_young_minute();
        world.write_home(".gemini/settings.json", &format!("{settings:#}\n"))
    },
    environment: |world| {
        let url = format!("http://127.0.0.1:{}", world.model.port());
        [
            ("GEMINI_API_KEY", "false-key"),
            ("GOOGLE_GEMINI_BASE_URL", &url),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("NO_BROWSER", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    },
    init: &[],
    begin: |prompt| ["-y", "-m", MODEL, "--session-id", SESSION, "-p", prompt].map(str::to_owned).to_vec(),
    resume: |session, prompt| ["-y", "-m", MODEL, "-r", session, "-p", prompt].map(str::to_owned).to_vec(),
    continues: |session| format!("gemini -r {session}"),
    session: |_, _| Ok(SESSION.to_owned()),
    record: |world, session| {
        // The name holds the beginning of the id, and the time.
        let all = files_below(&world.home.join(".gemini/tmp"))?;
        let end = format!("-{}.jsonl", session.get(..8).unwrap_or(session));
        let log = all.into_iter().find(|path| path.to_string_lossy().ends_with(&end));
        Ok(fs::read(log.ok_or("no chat log")?)?)
    },
    takes_empty: false,
    works_on: false,
    mcp: Some((&["mcp", "add", "rwd", "rwd", "mcp"], &["mcp", "list"])),
    interrupts: &[Signal::KILL],
    habit: blocked_by_any_failure,
};

/// A resume in another minute leaves a second file of the session, and the client's next start removes that with the log of
/// the session itself (docs/conversation-doors.md): the three turns of the parent are played in one minute.
fn begin_in_a_young_minute() {
    #[expect(clippy::disallowed_methods, reason = "the client names its files by the minute of this clock")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let second = since.as_secs() % 60;
    if second > 15 {
        std::thread::sleep(std::time::Duration::from_secs(61 - second));
    }
}

/// A hook that ends with 2 or more and has a word to say, if only its shell's, keeps the prompt from the model. So ours
/// always end with 0.
fn blocked_by_any_failure(world: &World) -> Result {
    let path = world.home.join(".gemini/settings.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path)?)?;
    settings["hooks"] = json!({ "BeforeAgent": [{ "hooks": [{ "type": "command", "command": "rwd-that-is-not-there hook gemini" }] }] });
    world.write_home(".gemini/settings.json", &settings.to_string())?;
    let asked = world.model.turns("talk")?.len();
    world.turn("blocked", &(CLIENT.resume)("latest", "Anything. #t5"))?;
    let more = world.model.turns("talk")?.len() - asked;
    if more == 0 {
        Ok(())
    } else {
        Err("a hook without its program no longer blocks: the wrapper around ours may go".into())
    }
}
