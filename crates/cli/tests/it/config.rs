//! Settings, seen through the program.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn list_get_set() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["config", "set", "capture.untracked_max_bytes", "1 MiB"]);
    assert_eq!(sandbox.ok(&["config", "get", "capture.untracked_max_bytes"]).out, "1048576\n");
    let list = sandbox.ok(&["config", "list", "--origin"]).out;
    assert!(
        list.contains("capture.untracked_max_bytes = 1048576  # ") && list.contains(".config/rwd/config.toml"),
        "{list}"
    );
    assert!(list.contains("restore.guard = \"require\"  # default"), "{list}");
    sandbox.json(2, &["config", "get", "no.such"]);
    sandbox.json(2, &["config", "set", "restore.guard", "maybe"]);
    let json = sandbox.json(0, &["config", "list"]);
    assert_eq!(json["settings"].as_array().unwrap().len(), 23);
}

/// Malformed: refuse, naming key and origin.
#[test]
fn a_malformed_setting_stops_before_anything_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write(".rwd.toml", "[capture]\nexcludes = 3\n");
    let error = sandbox.json(2, &["save"]);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("capture.excludes: ") && message.contains(".rwd.toml"), "{message}");
    // What an agent broke must not keep a person from going back.
    sandbox.json(0, &["to", "latest", "--yes", "--force", "--exact", "--overwrite", ".rwd.toml"]);
    assert!(!sandbox.has(".rwd.toml"));
}

#[test]
fn excludes_of_the_workspace_hold_and_status_shows_them() {
    let sandbox = Sandbox::new();
    sandbox.write(".rwd.toml", "[capture]\nexcludes = [\"*.log\"]\n");
    sandbox.write("a", "one\n");
    sandbox.write("x.log", "noise\n");
    let saved = sandbox.json(0, &["save"]);
    let left: Vec<_> = saved["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["path"].as_str().unwrap(), s["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(left, [("x.log", "ignored-root")]);
    let status = sandbox.json(0, &["status"]);
    assert!(status["config"][0]["origin"].as_str().unwrap().ends_with(".rwd.toml"), "{status}");
    assert_eq!(status["skipped"][0]["reason"], "ignored-root");
}

/// `confirm = plan`: a yes counts only for a plan that was seen.
#[test]
fn confirmation_can_be_made_stricter_by_the_workspace() {
    let sandbox = Sandbox::new();
    sandbox.write(".rwd.toml", "[restore]\nconfirm = \"plan\"\n");
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    let refused = sandbox.json(4, &["to", "latest~1", "--yes"]);
    let plan = refused["error"]["plan"].as_str().unwrap();
    sandbox.json(0, &["to", "latest~1", "--yes", "--plan", plan]);
    assert_eq!(sandbox.read("a"), "one\n");
}

#[test]
fn the_kind_of_index_is_chosen_once() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save", "--index", "json"]);
    assert!(sandbox.store().join("index.jsonl").exists());
    assert_eq!(sandbox.json(2, &["log", "--index", "sqlite"])["error"]["code"], "other-index");
    sandbox.write("a", "two\n");
    sandbox.ok(&["save"]);
    sandbox.ok(&["to", "latest~1", "--yes"]);
    assert_eq!(sandbox.read("a"), "one\n");
    assert_eq!(sandbox.json(0, &["status"])["index"], "json");
}

/// The data directory is its owner's alone from the first byte; doctor puts it right.
#[test]
fn the_data_directory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.ok(&["save"]);
    let open = |sandbox: &Sandbox| crate::sandbox::tree(&sandbox.data()).values().any(|(_, mode, _)| mode & 0o077 != 0);
    assert!(
        !open(&sandbox),
        "{:?}",
        crate::sandbox::tree(&sandbox.data())
            .iter()
            .map(|(n, (_, m, _))| (String::from_utf8_lossy(n).into_owned(), format!("{m:o}")))
            .collect::<Vec<_>>()
    );
    let loose = sandbox.store().join("git");
    fs::set_permissions(&loose, fs::Permissions::from_mode(0o755)).unwrap();
    let found = sandbox.json(0, &["doctor"]);
    let warned = |answer: &serde_json::Value| {
        answer["checks"].as_array().unwrap().iter().find(|c| c["check"] == "data-directory").unwrap()["status"].clone()
    };
    assert_eq!(warned(&found), "warning");
    assert_eq!(warned(&sandbox.json(0, &["doctor", "--fix"])), "fixed");
    assert!(!open(&sandbox));
}

/// Design § 8: turn points beyond the limit go at turn ends, oldest first; names pin.
#[test]
fn retention_runs_at_turn_ends_and_names_pin() {
    let sandbox = Sandbox::new().with("RWD_RETENTION_MAX_TURNS", "4");
    sandbox.write("a", "zero\n");
    sandbox.turn(1, |s| s.write("a", "one\n"));
    sandbox.ok(&["name", "t1^", "first"]);
    for turn in 2..6 {
        sandbox.turn(turn, |s| s.write("a", format!("{turn}\n")));
    }
    let log = sandbox.json(0, &["log"]);
    let left: Vec<_> = log["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["turn"].as_u64().unwrap(), p["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(left.len(), 4, "{left:?}");
    assert_eq!(left[0], (1, "turn-start"));
    assert_eq!(left[3], (5, "turn-end"));
    sandbox.json(9, &["preview", "t2^"]);
    sandbox.json(0, &["gc"]);
    sandbox.json(0, &["verify", "--rehash"]);
    sandbox.json(0, &["to", "first", "--yes"]);
    assert_eq!(sandbox.read("a"), "zero\n");
}
