//! `rwd init` and `rwd uninstall`, with an empty home and agents that are empty files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::Value;

use crate::sandbox::{Ran, Sandbox, ran, tree};

/// A world where these agents are installed, and rwd on the search path.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    bin: PathBuf,
}

impl World {
    pub(crate) fn new(agents: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let bin = sandbox.top().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_rwd"), bin.join("rwd")).unwrap();
        for agent in agents {
            program(&bin.join(agent));
        }
        let sandbox = sandbox.with("PATH", bin.to_str().unwrap());
        sandbox.write("a", "one\n");
        Self { sandbox, bin }
    }

    fn claude(&self) -> PathBuf {
        self.sandbox.work().join(".claude/settings.local.json")
    }

    fn home(&self, path: &str) -> PathBuf {
        self.sandbox.home().join(path)
    }

    fn init(&self) -> Value {
        self.sandbox.json(0, &["init", "--yes"])
    }

    fn check(&self, name: &str) -> Vec<Value> {
        let told: Value = serde_json::from_str(&self.sandbox.rwd(&["--json", "doctor"]).out).unwrap();
        let checks = told["checks"].as_array().unwrap().clone();
        checks.into_iter().filter(|check| check["check"] == name).collect()
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(path: &Path) {
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn statuses(answer: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |agent: &Value| (text(&agent["agent"]), text(&agent["scope"]), text(&agent["status"]));
    answer["agents"].as_array().unwrap().iter().map(of).collect()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "e");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Story 1: two commands in a repository with changes; git sees nothing of it, and nothing in `.git` changes.
#[test]
fn story_1_two_commands_and_git_sees_nothing() {
    let world = World::new(&["claude", "codex", "gemini", "opencode"]);
    let work = world.sandbox.work();
    git(&work, &["init", "-q"]);
    world.sandbox.write("b", "b\n");
    world.sandbox.write(".gitignore", "ignored\n");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "x"]);
    world.sandbox.write("a", "dirty\n");
    world.sandbox.write("b", "dirty\n");
    world.sandbox.write("c", "new\n");
    world.sandbox.write("ignored", "left out\n");
    let status = git(&work, &["status", "--porcelain"]);
    let refs = git(&work, &["for-each-ref"]);
    let inside = tree(&work.join(".git"));
    let told = world.sandbox.ok(&["init", "--yes"]);
    let log = world.sandbox.ok(&[]);
    assert_eq!(tree(&work.join(".git")), inside, "something was written into .git");
    assert_eq!(git(&work, &["status", "--porcelain"]), status);
    assert_eq!(git(&work, &["for-each-ref"]), refs);
    for agent in ["claude", "codex", "gemini", "opencode"] {
        assert!(told.out.contains(agent), "{}", told.out);
    }
    assert!(told.out.contains("ignored  (ignored)"), "{}", told.out);
    assert!(told.out.contains("called init"), "{}", told.out);
    assert!(log.out.contains("init"), "{}", log.out);
    assert!(told.out.contains("settings.local.json  (ignored)"), "a restore could take the hooks away: {}", told.out);
    // The first point can be gone back to.
    world.sandbox.write("a", "later\n");
    world.sandbox.ok(&["to", "init", "--yes", "--overwrite-drift"]);
    assert_eq!(world.sandbox.read("a"), "dirty\n");
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert!(!world.sandbox.has(".claude") && !world.home(".gemini").exists());
}

#[test]
fn a_second_call_changes_nothing_and_makes_no_second_point() {
    let world = World::new(&["claude", "codex", "gemini", "opencode", "cursor-agent", "cline"]);
    let first = world.init();
    assert_eq!(first["agents"].as_array().unwrap().len(), 6);
    assert!(first["files"].as_array().unwrap().iter().all(|file| file["action"] == "create"));
    assert_eq!(first["point"]["created"], true);
    let (work, home) = (world.sandbox.tree(), tree(&world.home("")));
    let points = world.sandbox.json(0, &["log"])["points"].clone();
    let second = world.init();
    assert_eq!(second["files"], serde_json::json!([]));
    assert!(statuses(&second).iter().all(|(.., status)| status == "present"), "{second}");
    assert_eq!(second["point"]["created"], false);
    assert_eq!(second["point"]["id"], first["point"]["id"]);
    assert_eq!(world.sandbox.tree(), work);
    let but_data = |tree: crate::sandbox::Tree| {
        tree.into_iter().filter(|(path, _)| !path.starts_with(b".local")).collect::<Vec<_>>()
    };
    assert_eq!(but_data(tree(&world.home(""))), but_data(home));
    assert_eq!(world.sandbox.json(0, &["log"])["points"], points);
    // Nothing to confirm, so nobody is asked.
    world.sandbox.ok(&["init"]);
}

#[test]
fn a_dry_run_shows_what_it_would_add_and_writes_nothing() {
    let world = World::new(&["claude", "codex"]);
    put(&world.home(".codex/hooks.json"), "{\n  \"hooks\": {}\n}\n");
    let (work, home) = (world.sandbox.tree(), tree(&world.home("")));
    let told = world.sandbox.ok(&["init", "--dry-run"]);
    assert!(told.out.contains("+++ ") && told.out.contains("+    \"UserPromptSubmit\": ["), "{}", told.out);
    assert!(told.out.contains("nothing was changed"), "{}", told.out);
    let answer = world.sandbox.json(0, &["init", "--dry-run"]);
    assert_eq!((&answer["dryRun"], &answer["point"]), (&true.into(), &Value::Null));
    assert_eq!(world.sandbox.tree(), work);
    assert_eq!(tree(&world.home("")), home);
}

#[test]
fn without_a_yes_nothing_is_written() {
    let world = World::new(&["claude"]);
    let home = tree(&world.home(""));
    let refused = world.sandbox.rwd(&["init"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    // Enough to say yes to, and the way to every line of it.
    for part in [
        "settings.local.json (claude): ",
        "hooks that come: UserPromptSubmit, PreToolUse",
        "each runs: ",
        "rwd init --dry-run",
        "rwd init --yes",
    ] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(refused.err.lines().count() < 15, "{}", refused.err);
    assert!(!world.claude().exists());
    assert_eq!(tree(&world.home("")), home);
}

#[test]
fn without_an_agent_there_is_a_point_and_a_way_to_go_on() {
    let world = World::new(&[]);
    let told = world.sandbox.ok(&["init"]);
    assert!(told.out.contains("no agent was found") && told.out.contains("rwd run -- CMD"), "{}", told.out);
    assert_eq!(world.sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 1);
    // One that is named is set up all the same.
    let answer = world.sandbox.json(0, &["init", "--yes", "--agent", "gemini"]);
    assert_eq!(answer["agents"][0]["found"], Value::Null);
    assert!(world.home(".gemini/settings.json").exists());
}

/// What people keep in their settings stays as it is: comments, order, indentation, line ends, hooks of others.
#[test]
fn settings_of_all_looks_keep_their_bytes_and_come_back_whole() {
    for before in [
        "{}",
        "{}\n",
        "",
        "// mine\n{\n\t\"model\": \"x\", // fast\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] },\n\t\t],\n\t},\n}",
        "{\r\n    \"permissions\": { \"allow\": [] },\r\n    \"hooks\": { \"Other\": [] }\r\n}\r\n",
        "\u{feff}{\"a\":1,\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"check\"}]}]}}",
    ] {
        let world = World::new(&["claude"]);
        put(&world.claude(), before);
        fs::set_permissions(world.claude(), fs::Permissions::from_mode(0o640)).unwrap();
        let work = world.sandbox.tree();
        let answer = world.init();
        let after = read(&world.claude());
        assert_eq!(after.matches("rwd hook claude").count(), 8, "{after}");
        let mut rest = after.chars();
        if !before.is_empty() {
            assert!(before.trim_end().chars().all(|c| rest.any(|other| c == other)), "{before}\n->\n{after}");
        }
        assert_eq!(fs::metadata(world.claude()).unwrap().permissions().mode() & 0o777, 0o640);
        let backup = answer["files"][0]["backup"]["path"].as_str().unwrap();
        assert_eq!(read(Path::new(backup)), before);
        world.init();
        assert_eq!(read(&world.claude()), after);
        let gone = world.sandbox.json(0, &["uninstall", "--yes"]);
        assert_eq!(statuses(&gone), [("claude".into(), "local".into(), "removed".into())]);
        assert_eq!(world.sandbox.tree(), work, "{before}");
        assert_eq!(world.sandbox.rwd(&["uninstall", "--yes"]).code, 6);
    }
}

#[test]
fn what_changed_meanwhile_stays_and_only_our_entries_go() {
    let world = World::new(&["claude", "gemini"]);
    put(&world.home(".gemini/settings.json"), "{\n  \"ui\": 1\n}\n");
    world.init();
    let changed = read(&world.claude()).replacen("{\n", "{\n  \"model\": \"x\",\n", 1);
    fs::write(world.claude(), changed).unwrap();
    let gemini = read(&world.home(".gemini/settings.json")).replace("\"ui\": 1", "\"ui\": 2");
    fs::write(world.home(".gemini/settings.json"), gemini).unwrap();
    world.sandbox.json(0, &["uninstall", "--yes"]);
    assert_eq!(read(&world.claude()), "{\n  \"model\": \"x\"\n}\n");
    assert_eq!(read(&world.home(".gemini/settings.json")), "{\n  \"ui\": 2\n}\n");
}

/// The list of what was done may be lost: our entries are known by what they run.
#[test]
fn uninstall_works_without_the_data_directory() {
    let world = World::new(&["claude", "codex", "cline", "opencode"]);
    let before = "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"command\": \"mine\"}]}]\n  }\n}\n";
    put(&world.claude(), before);
    world.init();
    fs::remove_dir_all(world.sandbox.data()).unwrap();
    world.sandbox.json(0, &["uninstall", "--yes"]);
    assert_eq!(read(&world.claude()), before);
    assert!(!world.home(".config/opencode/plugin/rwd.js").exists());
    assert!(!world.home(".cline/hooks/PreToolUse").exists());
    assert!(!world.home(".codex/hooks.json").exists());
}

/// Without the list of what was done: a file that holds nothing but ours goes, with what hid it, what trusted it, and the
/// directory that was made for it; one that held something keeps it.
#[test]
fn uninstall_without_a_receipt_is_as_exact_as_with_one() {
    for before in [None, Some("{\n  \"model\": \"x\"\n}\n"), Some("{\"hooks\": {\"Stop\": [{\"hooks\": []}]}}")] {
        let world = World::new(&["claude", "codex", "gemini"]);
        if let Some(before) = before {
            put(&world.claude(), before);
            put(&world.home(".gemini/settings.json"), before);
        }
        put(&world.home(".codex/config.toml"), "model = \"x\"\n");
        let (work, home) = (world.sandbox.tree(), tree(&world.home("")));
        world.sandbox.json(0, &["init", "--yes", "--trust-codex"]);
        assert!(read(&world.home(".codex/config.toml")).contains("trusted_hash"));
        fs::remove_dir_all(world.sandbox.data()).unwrap();
        world.sandbox.json(0, &["uninstall", "--yes"]);
        assert_eq!(world.sandbox.tree(), work, "{before:?}");
        let mut now = tree(&world.home(""));
        now.retain(|path, _| !path.starts_with(b".local"));
        let mut then = home;
        then.retain(|path, _| !path.starts_with(b".local"));
        assert_eq!(now, then, "{before:?}");
    }
}

/// What a killed process leaves beside settings: what is known to be elsewhere goes, anything else stays and is named.
#[test]
fn what_was_left_beside_settings_is_swept_when_it_is_nowhere_needed() {
    let world = World::new(&["claude"]);
    let before = "{\n  \"model\": \"x\"\n}\n";
    put(&world.claude(), before);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let beside = |name: &str| world.claude().with_file_name(name);
    let (empty, old, new) = (format!(".rwd-{dead}-0.tmp"), format!(".rwd-{dead}-1.tmp"), format!(".rwd-{dead}-2.tmp"));
    let (theirs, alive, other) = (format!(".rwd-{dead}-3.tmp"), ".rwd-1-0.tmp".to_owned(), ".rwd-x-0.tmp".to_owned());
    let planned = world.sandbox.json(0, &["init", "--dry-run"]);
    assert_eq!(planned["files"].as_array().unwrap().len(), 1);
    for (name, text) in
        [(&empty, ""), (&old, before), (&theirs, "{\"only\": \"here\"}"), (&alive, before), (&other, before)]
    {
        put(&beside(name), text);
    }
    let checked = world.check("settings");
    assert!(checked[0].to_string().contains(&empty) && !checked[0].to_string().contains(&alive), "{checked:?}");
    let told = world.init();
    assert!(told["warnings"].to_string().contains(&theirs), "{told}");
    let there = |name: &str| beside(name).exists();
    assert_eq!([&empty, &old, &theirs, &alive, &other].map(|name| there(name)), [false, false, true, true, true]);
    // A part of what was to be written, when nothing is to be changed any more.
    put(&beside(&new), &read(&world.claude())[..40]);
    world.init();
    assert!(!there(&new));
    put(&beside(&new), &before[..9]);
    world.sandbox.json(0, &["uninstall", "--yes"]);
    assert!(!there(&new) && there(&theirs) && read(&world.claude()) == before);
}

/// Killed between the file and its directory: the next call takes the directory.
#[test]
fn directories_that_a_killed_uninstall_left_go_with_the_next() {
    let world = World::new(&["claude", "opencode"]);
    let work = world.sandbox.tree();
    world.init();
    let plugin = world.home(".config/opencode/plugin/rwd.js");
    for file in [world.claude(), world.claude().with_file_name(".gitignore"), plugin.clone()] {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(world.sandbox.rwd(&["uninstall", "--yes"]).code, 6);
    assert_eq!(world.sandbox.tree(), work);
    assert!(!plugin.parent().unwrap().exists());
}

#[test]
fn what_is_half_removed_is_repaired_and_doctor_says_so() {
    let world = World::new(&["claude"]);
    world.init();
    assert_eq!(world.check("claude")[0]["status"], "ok");
    let mut half: Value = serde_json::from_str(&read(&world.claude())).unwrap();
    half["hooks"].as_object_mut().unwrap().remove("Stop");
    half["hooks"]["PreToolUse"][0]["hooks"][0]["async"] = true.into();
    fs::write(world.claude(), half.to_string()).unwrap();
    let check = &world.check("claude")[0];
    assert_eq!(check["status"], "warning", "{check}");
    assert!(check["detail"].as_str().unwrap().contains("Stop"), "{check}");
    assert!(check["hint"].as_str().unwrap().contains("rwd init --agent claude"), "{check}");
    assert_eq!(statuses(&world.init())[0].2, "repaired");
    assert_eq!(world.check("claude")[0]["status"], "ok");
    // A file that was made by us goes, also after that.
    let dry = world.sandbox.json(0, &["uninstall", "--dry-run"]);
    assert_eq!(dry["files"].as_array().unwrap().iter().filter(|file| file["action"] == "remove").count(), 2, "{dry}");
    // A program that is gone makes hooks that do nothing.
    fs::remove_file(world.bin.join("rwd")).unwrap();
    let check = &world.check("claude")[0];
    assert!(check["detail"].as_str().unwrap().contains("rwd is not on PATH"), "{check}");
    // Named by its path then.
    assert_eq!(statuses(&world.init())[0].2, "repaired");
    assert!(read(&world.claude()).contains(&format!("command -v {}", env!("CARGO_BIN_EXE_rwd"))));
    assert_eq!(world.check("claude")[0]["status"], "ok");
}

/// Everything is looked at before anything is written: one bad file stops all.
#[test]
fn what_cannot_be_understood_or_replaced_is_refused_and_nothing_is_written() {
    type Spoil = fn(&Path);
    let cases: [(&str, &str, Spoil); 12] = [
        ("bad-settings", ":2: ", |p| put(p, "{\n oops }")),
        ("bad-settings", ":3: \"hooks\" stands there twice", |p| put(p, "{\n\"hooks\": {},\n\"hooks\": {}}")),
        ("bad-settings", ":1: the file must be an object", |p| put(p, "[]")),
        ("bad-settings", ":2: \"hooks.BeforeTool\" must be a list", |p| {
            put(p, "{\"hooks\": {\n\"BeforeTool\": 1}}");
        }),
        ("settings-in-the-way", "is read-only", |p| {
            put(p, "{}");
            fs::set_permissions(p, fs::Permissions::from_mode(0o444)).unwrap();
        }),
        ("settings-in-the-way", "is no regular file", |p| fs::create_dir_all(p).unwrap()),
        ("settings-in-the-way", "leads nowhere", |p| {
            fs::create_dir_all(p.parent().unwrap()).unwrap();
            symlink("gone", p).unwrap();
        }),
        ("settings-in-the-way", "no directory", |p| fs::write(p.parent().unwrap(), "").unwrap()),
        ("settings-in-the-way", "no text", |p| {
            put(p, "");
            fs::write(p, b"{\"a\": \"\xff\"}").unwrap();
        }),
        ("settings-in-the-way", "too large", |p| put(p, &" ".repeat(5 << 20))),
        ("settings-in-the-way", "is no regular file", |p| {
            fs::create_dir_all(p.parent().unwrap()).unwrap();
            assert!(Command::new("mkfifo").arg(p).status().unwrap().success());
        }),
        ("bad-settings", "nested too deep", |p| put(p, &"[".repeat(100_000))),
    ];
    for (code, what, spoil) in cases {
        let world = World::new(&["claude", "gemini"]);
        let settings = world.home(".gemini/settings.json");
        spoil(&settings);
        let facts = settings.symlink_metadata().ok().map(|facts| (facts.len(), facts.permissions().mode()));
        let error = world.sandbox.json(3, &["init", "--yes"])["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(what) && message.contains(".gemini"), "{message}");
        assert!(error["hints"][0].as_str().unwrap().contains("--agent"), "{error}");
        assert!(!world.claude().exists() && !world.sandbox.data().exists(), "{what}: something was written");
        assert_eq!(settings.symlink_metadata().ok().map(|facts| (facts.len(), facts.permissions().mode())), facts);
        // The others can be set up.
        world.sandbox.ok(&["init", "--yes", "--agent", "claude"]);
        world.sandbox.ok(&["uninstall", "--yes"]);
    }
}

/// Whoever keeps settings as links into a collection keeps them so; a project may not lead out of itself.
#[test]
fn a_link_of_the_user_is_written_through_and_one_of_the_project_may_not_lead_out() {
    let world = World::new(&["claude", "gemini"]);
    let real = world.home("dotfiles/gemini.json");
    put(&real, "{\"a\": 1}\n");
    fs::create_dir(world.home(".gemini")).unwrap();
    symlink("../dotfiles/gemini.json", world.home(".gemini/settings.json")).unwrap();
    world.init();
    assert!(world.home(".gemini/settings.json").is_symlink());
    assert!(read(&real).contains("rwd hook gemini"));
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert_eq!(read(&real), "{\"a\": 1}\n");
    assert!(world.home(".gemini/settings.json").is_symlink());

    let outside = world.home("outside.json");
    put(&outside, "{}\n");
    fs::create_dir_all(world.sandbox.work().join(".claude")).unwrap();
    symlink(&outside, world.claude()).unwrap();
    let error = world.sandbox.json(3, &["init", "--yes"]);
    assert_eq!(error["error"]["code"], "settings-in-the-way");
    fs::remove_file(world.claude()).unwrap();
    fs::remove_dir(world.sandbox.work().join(".claude")).unwrap();
    symlink(world.home("dotfiles"), world.sandbox.work().join(".claude")).unwrap();
    assert_eq!(world.sandbox.json(3, &["init", "--yes"])["error"]["code"], "settings-in-the-way");
    assert_eq!((read(&outside).as_str(), world.home("dotfiles/settings.local.json").exists()), ("{}\n", false));
}

#[test]
fn a_script_of_somebody_else_stays() {
    let world = World::new(&["cline"]);
    let theirs = world.home(".cline/hooks/PreToolUse");
    put(&theirs, "#!/bin/sh\nmine\n");
    let error = world.sandbox.json(3, &["init", "--yes"]);
    assert_eq!(error["error"]["code"], "settings-in-the-way");
    assert!(!world.home(".cline/hooks/PostToolUse").exists());
    fs::remove_file(&theirs).unwrap();
    world.init();
    assert_eq!(fs::metadata(&theirs).unwrap().permissions().mode() & 0o111, 0o111);
    assert_eq!(world.check("cline")[0]["status"], "ok");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(world.check("cline")[0]["detail"].as_str().unwrap().contains("may not be run"));
    assert_eq!(statuses(&world.init())[0].2, "repaired");
    assert_eq!(fs::metadata(&theirs).unwrap().permissions().mode() & 0o111, 0o111);
    fs::remove_file(world.home(".cline/hooks/TaskError")).unwrap();
    assert_eq!(world.check("cline")[0]["status"], "warning");
    fs::write(&theirs, "#!/bin/sh\nmine\n").unwrap();
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert_eq!(read(&theirs), "#!/bin/sh\nmine\n");
    assert!(!world.home(".cline/hooks/PostToolUse").exists());
}

#[test]
fn scopes_say_whose_settings_are_used_and_one_is_enough() {
    let world = World::new(&["claude", "codex"]);
    let local = world.init();
    assert_eq!(statuses(&local)[0].1, "local");
    assert_eq!(statuses(&local)[1].1, "user");
    assert!(local["agents"][1]["notes"][0].as_str().unwrap().contains("your own are used"), "{local}");
    world.sandbox.ok(&["uninstall", "--yes"]);
    let user = world.sandbox.json(0, &["init", "--yes", "--scope", "user"]);
    assert_eq!(statuses(&user)[0].1, "user");
    assert!(world.home(".claude/settings.json").exists() && !world.claude().exists());
    // What is there for every directory need not be there twice.
    assert_eq!(statuses(&world.init())[0], ("claude".into(), "user".into(), "present".into()));
    assert!(!world.claude().exists());
    let project = world.sandbox.json(0, &["init", "--yes", "--scope", "project", "--agent", "codex"]);
    assert!(world.sandbox.has(".codex/hooks.json"), "{project}");
    // One scope can go alone.
    world.sandbox.ok(&["uninstall", "--yes", "--scope", "project"]);
    assert!(!world.sandbox.has(".codex") && world.home(".codex/hooks.json").exists());
}

#[test]
fn codex_hooks_are_trusted_only_on_the_users_word() {
    let world = World::new(&["codex"]);
    let config = world.home(".codex/config.toml");
    put(&config, "model = \"x\" # mine\r\n");
    let first = world.init();
    assert!(first["agents"][0]["notes"].to_string().contains("/hooks"), "{first}");
    assert_eq!(read(&config), "model = \"x\" # mine\r\n");
    assert!(world.check("codex")[0]["detail"].as_str().unwrap().contains("not trusted"));
    let agent = ran(world.sandbox.command(&["--json", "init", "--yes", "--trust-codex"]).env("CLAUDECODE", "1"));
    assert_eq!((agent.code, &agent.json()["error"]["code"]), (4, &"agent-refused".into()));
    let trusted = world.sandbox.json(0, &["init", "--yes", "--trust-codex"]);
    assert!(!trusted["agents"][0]["notes"].to_string().contains("/hooks"), "{trusted}");
    assert_eq!(read(&config).matches("trusted_hash = \"sha256:").count(), 8);
    assert_eq!(world.check("codex")[0]["status"], "ok");
    assert_eq!(world.sandbox.json(0, &["init", "--yes", "--trust-codex"])["files"], serde_json::json!([]));
    let changed = read(&world.home(".codex/hooks.json")).replacen("\"timeout\": 20", "\"timeout\": 21", 1);
    fs::write(world.home(".codex/hooks.json"), changed).unwrap();
    assert!(world.check("codex")[0]["detail"].as_str().unwrap().contains("changed since"));
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert_eq!(read(&config), "model = \"x\" # mine\r\n");
    assert!(!world.home(".codex/hooks.json").exists());
}

/// An agent may be told to set rwd up, not to take it out.
#[test]
fn an_agent_may_not_uninstall() {
    let world = World::new(&["claude"]);
    let as_agent = |args: &[&str]| -> Ran { ran(world.sandbox.command(args).env("CLAUDECODE", "1")) };
    assert_eq!(as_agent(&["init", "--yes"]).code, 0);
    assert_eq!(as_agent(&["uninstall", "--yes"]).code, 4);
    assert!(world.claude().exists());
    assert_eq!(as_agent(&["uninstall", "--dry-run"]).code, 0);
    assert!(world.claude().exists());
}

#[test]
fn a_write_that_fails_takes_the_others_back() {
    let world = World::new(&["claude", "gemini"]);
    // Backups cannot be kept: a file has the directory's name.
    fs::create_dir_all(world.sandbox.data()).unwrap();
    fs::write(world.sandbox.data().join("install"), "").unwrap();
    let failed = world.sandbox.rwd(&["init", "--yes"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(!world.claude().exists() && !world.home(".gemini").exists());
}

/// The last of several writes fails: what was written before it is as it was.
#[test]
fn a_write_that_fails_last_takes_the_others_back() {
    let world = World::new(&["claude", "codex"]);
    // A directory in which nothing can be made, not even by root.
    let world = World { sandbox: world.sandbox.with("CODEX_HOME", "/proc/none"), ..world };
    put(&world.home(".claude/settings.json"), "{}\n");
    let (work, claude) = (world.sandbox.tree(), tree(&world.home(".claude")));
    for scope in ["local", "user"] {
        let failed = world.sandbox.rwd(&["init", "--yes", "--scope", scope]);
        assert_eq!(failed.code, 1, "{failed:?}");
        assert!(failed.err.contains("/proc/none"), "{}", failed.err);
        assert_eq!((world.sandbox.tree(), tree(&world.home(".claude"))), (work.clone(), claude.clone()));
    }
    assert_eq!(world.sandbox.rwd(&["uninstall", "--yes"]).code, 6);
}

/// What version 1.0 wrote is understood, also when a newer 1.x added to it, and what it added is kept.
#[test]
fn a_receipt_of_version_1_0_is_understood() {
    let world = World::new(&["gemini"]);
    let settings = world.home(".gemini/settings.json");
    let fixture =
        |name: &str| read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/install-1.0").join(name));
    put(&settings, &fixture("after.json"));
    let receipt = world.sandbox.data().join("install/receipt.json");
    let text = fixture("receipt.json").replace("@SETTINGS@", settings.to_str().unwrap());
    let mut newer: Value = serde_json::from_str(&text).unwrap();
    let backup = newer["files"][settings.to_str().unwrap()]["backup"].as_str().unwrap().to_owned();
    newer["format"] = "1.7".into();
    newer["more"] = 1.into();
    newer["files"]["/elsewhere"] = serde_json::json!({ "scope": "user", "more": 2 });
    put(&receipt, &newer.to_string());
    put(&receipt.parent().unwrap().join("backups").join(backup), &fixture("before.json"));
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert_eq!(read(&settings), fixture("before.json"));
    let after: Value = serde_json::from_str(&read(&receipt)).unwrap();
    assert_eq!(
        (&after["format"], &after["more"], &after["files"]["/elsewhere"]["more"]),
        (&"1.7".into(), &1.into(), &2.into())
    );
    // Another major version is not touched.
    put(&receipt, "{\"format\": \"2.0\"}");
    assert_eq!(world.sandbox.json(8, &["init", "--yes"])["error"]["code"], "newer-store");
    assert_eq!(read(&settings), fixture("before.json"));
}

/// Whoever comes second finds the files changed, and takes nothing back that is not its own.
#[test]
fn several_at_once_leave_what_one_would() {
    let world = World::new(&["claude", "codex", "gemini", "opencode", "cline"]);
    let work = world.sandbox.tree();
    for _ in 0..3 {
        let start = || world.sandbox.command(&["--json", "init", "--yes"]).stdout(Stdio::piped()).spawn().unwrap();
        let all: Vec<_> = std::iter::repeat_with(start).take(4).collect();
        let codes: Vec<i32> = all.into_iter().map(|child| crate::sandbox::ended(child).code).collect();
        assert!(codes.contains(&0) && codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
        let after = world.init();
        assert!(statuses(&after).iter().all(|(.., status)| status == "present"), "{after}");
        world.sandbox.ok(&["uninstall", "--yes"]);
        assert_eq!(world.sandbox.tree(), work);
    }
}

/// Killed between the writes and the end: the receipt was there first, so the file that was made goes again.
#[test]
fn what_a_killed_init_left_can_be_taken_out_whole() {
    let world = World::new(&["claude"]);
    let work = world.sandbox.tree();
    world.init();
    // The state of a crash after the first of two writes: one file is there, the other is not.
    fs::remove_file(world.sandbox.work().join(".claude/.gitignore")).unwrap();
    assert_eq!(statuses(&world.init())[0].2, "present");
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert_eq!(world.sandbox.tree(), work);
}

/// Cloned anew: the first point of what was there before is none of what is there now.
#[test]
fn a_directory_that_was_replaced_gets_a_first_point_of_its_own() {
    let world = World::new(&[]);
    let first = world.init();
    fs::rename(world.sandbox.work(), world.sandbox.top().join("aside")).unwrap();
    world.sandbox.write("a", "another\n");
    let second = world.init();
    assert_eq!(second["point"]["created"], true, "{second}");
    assert!(second["warnings"].to_string().contains("init-1"), "{second}");
    world.sandbox.write("a", "later\n");
    world.sandbox.ok(&["to", "init", "--overwrite-drift", "--yes"]);
    assert_eq!(world.sandbox.read("a"), "another\n");
    let names: Vec<Value> = world.sandbox.json(0, &["log", "--named"])["points"].as_array().unwrap().clone();
    let of = |id: &Value| names.iter().find(|point| point["id"] == *id).unwrap()["names"].to_string();
    assert!(of(&first["point"]["id"]).contains("init-1"), "{names:?}");
    assert_eq!(world.init()["point"]["id"], second["point"]["id"]);
}

#[test]
fn points_stay_unless_their_removal_is_asked_for() {
    let world = World::new(&["claude"]);
    world.init();
    world.sandbox.ok(&["uninstall", "--yes"]);
    assert_eq!(world.sandbox.json(0, &["log"])["points"].as_array().unwrap().len(), 1);
    world.init();
    assert_eq!(world.sandbox.rwd(&["uninstall", "--purge-data"]).code, 4);
    assert!(world.claude().exists());
    let gone = world.sandbox.json(0, &["uninstall", "--purge-data", "--yes"]);
    assert_eq!(gone["dropped"], 1);
    assert_eq!(world.sandbox.json(0, &["log"])["points"], serde_json::json!([]));
}

/// Story 8: a subfolder of a repository is the workspace; what lies beside it is no business of a restore.
#[test]
fn story_8_a_subfolder_is_a_workspace_of_its_own() {
    let world = World::new(&["claude"]);
    let work = world.sandbox.work();
    git(&work, &["init", "-q"]);
    world.sandbox.write("packages/app/x", "one\n");
    world.sandbox.write("packages/server/y", "one\n");
    let answer = world.sandbox.json(0, &["-C", "packages/app", "init", "--yes"]);
    assert!(answer["root"]["path"].as_str().unwrap().ends_with("/packages/app"));
    assert!(world.sandbox.has("packages/app/.claude/settings.local.json"));
    world.sandbox.write("packages/app/x", "two\n");
    world.sandbox.write("packages/server/y", "by hand\n");
    world.sandbox.ok(&["-C", "packages/app", "to", "init", "--exact", "--overwrite-drift", "--yes"]);
    assert_eq!(world.sandbox.read("packages/app/x"), "one\n");
    assert_eq!(world.sandbox.read("packages/server/y"), "by hand\n");
    // The hooks are not what a restore takes away, also where it removes what is new.
    assert!(world.sandbox.has("packages/app/.claude/settings.local.json"));
    assert!(git(&work, &["status", "--porcelain", "-uall"]).lines().all(|line| !line.contains(".claude")));
}

/// No restore takes the hooks away, with git or without: else the next turn would not be captured.
#[test]
fn a_restore_to_before_leaves_the_hooks() {
    let world = World::new(&["claude"]);
    world.sandbox.ok(&["save"]);
    world.init();
    let hooks = read(&world.claude());
    world.sandbox.write("a", "two\n");
    world.sandbox.ok(&["to", "latest~1", "--exact", "--overwrite-drift", "--yes"]);
    assert_eq!((world.sandbox.read("a").as_str(), read(&world.claude())), ("one\n", hooks));
}

#[test]
fn uninstall_names_the_hooks_of_other_workspaces() {
    let world = World::new(&["claude"]);
    world.sandbox.write("one/x", "");
    world.sandbox.write("two/x", "");
    for dir in ["one", "two"] {
        world.sandbox.ok(&["-C", dir, "init", "--yes"]);
    }
    let gone = world.sandbox.json(0, &["-C", "one", "uninstall", "--yes"]);
    assert_eq!(gone["warnings"].as_array().unwrap().len(), 1, "{gone}");
    assert!(gone["warnings"].to_string().contains("two/.claude/settings.local.json"), "{gone}");
    let gone = world.sandbox.json(0, &["-C", "two", "uninstall", "--yes"]);
    assert_eq!(gone["warnings"], serde_json::json!([]));
}

#[test]
fn a_root_that_may_not_be_a_workspace_is_refused_before_anything() {
    let world = World::new(&["claude"]);
    let refused = ran(world.sandbox.command(&["--json", "init", "--yes"]).current_dir(world.home("")));
    assert_eq!((refused.code, &refused.json()["error"]["code"]), (2, &"refused-root".into()));
    assert!(!world.home(".claude").exists() && !world.sandbox.data().exists());
}

/// A hook whose program is gone ends with 0 and says nothing: some agents refuse every prompt otherwise.
#[test]
fn a_hook_without_its_program_ends_with_0() {
    let world = World::new(&["gemini"]);
    world.init();
    let settings: Value = serde_json::from_str(&read(&world.home(".gemini/settings.json"))).unwrap();
    let command = settings["hooks"]["BeforeAgent"][0]["hooks"][0]["command"].as_str().unwrap();
    let output = Command::new("/bin/sh").args(["-c", command]).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0), "{output:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Through the real binary: init then uninstall is as before, whatever the settings hold.
    #[test]
    fn init_then_uninstall_is_as_before(
        unit in prop::sample::select(vec!["", " ", "  ", "\t"]),
        line_end in prop::sample::select(vec!["", "\n", "\r\n"]),
        keys in prop::collection::vec("[a-z]{1,4}", 0..3),
        events in prop::sample::subsequence(vec!["Stop", "PreToolUse", "Notification"], 0..=3),
        comment in any::<bool>(),
    ) {
        let mut members: Vec<String> = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            members.push(format!("\"{key}{n}\": {{\"x\": [1, null, \"\\u00e9\"]}}"));
        }
        let other = "[{\"hooks\": [{\"type\": \"command\", \"command\": \"other\"}]}]";
        if !events.is_empty() {
            let list: Vec<String> = events.iter().map(|event| format!("\"{event}\": {other}")).collect();
            members.push(format!("\"hooks\": {{{}}}", list.join(", ")));
        }
        let comment = if comment && !line_end.is_empty() { format!(" // kept{line_end}") } else { String::new() };
        let body = members.iter().map(|member| format!("{line_end}{unit}{member}")).collect::<Vec<_>>().join(",");
        let before = format!("{{{body}{comment}{line_end}}}{line_end}");
        let world = World::new(&["claude"]);
        put(&world.claude(), &before);
        world.init();
        let after = read(&world.claude());
        prop_assert_eq!(after.matches("rwd hook claude").count(), 8);
        prop_assert_eq!(after.matches("\"other\"").count(), events.len());
        prop_assert_eq!(&world.init()["files"], &serde_json::json!([]));
        world.sandbox.ok(&["uninstall", "--yes"]);
        prop_assert_eq!(read(&world.claude()), before);
    }
}
