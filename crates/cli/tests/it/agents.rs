//! What a process of an agent may do (design § 7, last paragraph).

use std::fs;

use crate::sandbox::{Ran, Sandbox, ran};

fn with_agent() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one\n");
    sandbox.turn_of("claude:one", 1, |s| s.write("a", "two\n"));
    sandbox
}

fn as_agent(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut all = vec!["--json"];
    all.extend(args);
    ran(sandbox.command(&all).env("CLAUDECODE", "1").env("RWD_AGENT_MAY_RESTORE", "allow"))
}

#[test]
fn an_agents_yes_does_not_count_by_default() {
    let sandbox = with_agent();
    for args in [
        &["to", "t1^", "--yes"][..],
        &["back", "--yes"],
        &["drop", "--all", "--yes"],
        &["gc"],
        &["purge", "a", "--yes"],
    ] {
        let refused = as_agent(&sandbox, args);
        assert_eq!(refused.code, 4, "{args:?}: {refused:?}");
        assert_eq!(refused.json()["error"]["code"], "agent-refused");
    }
    assert_eq!(sandbox.read("a"), "two\n");
    let hint = as_agent(&sandbox, &["to", "t1^", "--yes"]).json();
    assert!(hint["error"]["hints"][0].as_str().unwrap().contains("to t1^ --plan "), "{hint}");
    // Looking and saving are always allowed.
    for args in [&["log"][..], &["preview", "t1^"], &["save"], &["gc", "--dry-run"], &["status"]] {
        assert_eq!(as_agent(&sandbox, args).code, 0, "{args:?}");
    }
    // The same command by a person.
    sandbox.json(0, &["to", "t1^", "--yes"]);
}

#[test]
fn another_harness_or_one_without_a_session_here_is_nobody_special() {
    let sandbox = with_agent();
    let other = ran(sandbox.command(&["to", "t1^", "--yes"]).env("GEMINI_CLI", "1"));
    assert_eq!(other.code, 0, "{other:?}");
}

#[test]
fn the_user_may_allow_or_forbid_it() {
    let sandbox = with_agent();
    sandbox.ok(&["config", "set", "agent.may_restore", "never"]);
    assert_eq!(as_agent(&sandbox, &["to", "t1^", "--yes"]).code, 4);
    sandbox.ok(&["config", "set", "agent.may_restore", "allow"]);
    // Its own way to that setting is closed.
    assert_eq!(as_agent(&sandbox, &["config", "set", "agent.may_restore", "allow"]).code, 4);
    assert_eq!(as_agent(&sandbox, &["drop", "--all", "--yes"]).code, 4);
    assert_eq!(as_agent(&sandbox, &["to", "t1^", "--yes"]).code, 0);
    // The workspace's file may forbid what the user allows, not the reverse.
    fs::write(sandbox.work().join(".rwd.toml"), "[agent]\nmay_restore = \"never\"\n").unwrap();
    assert_eq!(as_agent(&sandbox, &["undo", "--yes"]).code, 4);
}
