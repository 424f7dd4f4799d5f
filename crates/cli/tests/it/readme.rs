//! What the README tells a newcomer to type works as typed.

use testkit::dsh_logs::Encoding;

use crate::dsh_home::DshHome;
use crate::sandbox::{Sandbox, listed};

/// The commands of the block under a heading, without their remarks.
fn commands(heading: &str) -> Vec<String> {
    let text = include_str!("../../../../README.md");
    let section = text.split_once(heading).expect("the heading is there").1;
    let block = section.split_once("```console\n").unwrap().1.split_once("```").unwrap().0;
    let command = |line: &str| line.strip_prefix("$ ").map(|line| line.split("  #").next().unwrap().trim().to_owned());
    block.lines().filter_map(command).collect()
}

/// Words as a shell splits them; the README quotes with `"` alone.
fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (n, part) in command.split('"').enumerate() {
        if n % 2 == 1 { words.push(part) } else { words.extend(part.split_whitespace()) }
    }
    words
}

#[test]
fn first_use() {
    let sandbox = Sandbox::new();
    sandbox.write("kept", "kept\n");
    sandbox.write("src/a", "mine\n");
    let before = sandbox.tree();
    let mut after = None;
    let mut told = Vec::new();
    for command in commands("## First use") {
        match words(&command).as_slice() {
            ["cd", _] => {}
            ["…"] => {
                sandbox.write("src/a", "the agent's\n");
                sandbox.remove("kept");
                after = Some(sandbox.tree());
            }
            ["rwd", args @ ..] => {
                let asks = matches!(args.first(), Some(&("to" | "undo")));
                if asks {
                    // Nobody is there to be asked; nothing else may be in the way.
                    assert_eq!(sandbox.rwd(args).code, 4, "{command}");
                    sandbox.ok(&[args, &["--yes"]].concat());
                } else {
                    sandbox.ok(args);
                }
                match args.first() {
                    Some(&"to") => assert_eq!(sandbox.tree(), before, "{command}"),
                    Some(&"undo") => assert_eq!(Some(sandbox.tree()), after, "{command}"),
                    Some(&"preview") => {
                        let preview = sandbox.json(0, args);
                        assert_eq!(
                            (listed(&preview["overwrite"]), listed(&preview["recreate"])),
                            (vec!["src/a"], vec!["kept"])
                        );
                    }
                    _ => {}
                }
                told.push(args.first().copied().unwrap_or("log").to_owned());
            }
            other => panic!("the README says {other:?}"),
        }
    }
    assert_eq!(told, ["save", "save", "log", "diff", "preview", "to", "undo"]);
}

/// The section on conversations, with a session whose id is `ID` and whose later turns are the exploration.
#[test]
fn conversations() {
    let events = DshHome::of("02-edits-3turn").logs().events("edits3").unwrap();
    let mut home = DshHome::new();
    home.put("ID", &events[..61], Encoding::Zstd);
    home.sandbox.write("a", "one\n");
    home.sandbox.ok(&["save"]);
    let files = home.sandbox.tree();
    let mut children = Vec::new();
    for command in commands("## Conversations") {
        match words(&command).as_slice() {
            ["…"] => {
                children = home.new_logs();
                home.put("ID", &events, Encoding::Zstd);
            }
            ["rwd", args @ ..] => {
                if args.first() == Some(&"to") {
                    assert_eq!(home.sandbox.rwd(args).code, 4, "{command}");
                    home.sandbox.ok(&[args, &["--yes"]].concat());
                } else {
                    home.sandbox.ok(args);
                }
            }
            other => panic!("the README says {other:?}"),
        }
        home.unchanged();
    }
    assert_eq!((children.len(), home.new_logs().len()), (1, 1), "the cut made a session, and the fold one more");
    assert_eq!(home.sandbox.tree(), files);
}

/// Without that second save, the refusal says why.
#[test]
fn without_a_second_save() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "mine\n");
    sandbox.ok(&["save"]);
    sandbox.write("a", "the agent's\n");
    let refused = sandbox.json(3, &["to", "latest", "--yes"]);
    let hint = refused["error"]["hints"][0].as_str().unwrap();
    let rest = hint.strip_prefix("nothing recorded who made these changes: run rwd save first and go to ").unwrap();
    let (id, rest) = rest.split_once(", ").unwrap();
    assert_eq!(rest, "or add --overwrite-drift; undo brings them back");
    sandbox.ok(&["save"]);
    sandbox.ok(&["to", id, "--yes"]);
    assert_eq!(sandbox.read("a"), "mine\n");
    sandbox.turn(1, |s| s.write("a", "the agent's\n"));
    sandbox.write("a", "by hand\n");
    let refused = sandbox.json(3, &["to", "agent/t1^", "--yes"]);
    assert!(!refused.to_string().contains("nothing recorded"), "{refused}");
}

/// The agent is played here by a turn of its own session; what its hooks say is tested with them.
#[test]
fn with_an_agent() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::new();
    let bin = sandbox.top().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["rwd", "claude"] {
        symlink(env!("CARGO_BIN_EXE_rwd"), bin.join(name)).unwrap();
    }
    let sandbox = sandbox.with("PATH", bin.to_str().unwrap());
    sandbox.write("src/a", "mine\n");
    for command in commands("## With an agent") {
        match words(&command).as_slice() {
            ["claude"] => sandbox.turn_of("claude:s", 1, |s| s.write("src/a", "the agent's\n")),
            ["rwd", args @ ..] if args.is_empty() => drop(sandbox.ok(args)),
            ["rwd", args @ ..] => {
                // Each of them asks.
                assert_eq!(sandbox.rwd(args).code, 4, "{command}");
                sandbox.ok(&[args, &["--yes"]].concat());
            }
            other => panic!("no such command: {other:?}"),
        }
        match command.as_str() {
            "rwd init" => assert!(sandbox.has(".claude/settings.local.json")),
            "rwd back" => assert_eq!(sandbox.read("src/a"), "mine\n"),
            "rwd undo" => assert_eq!(sandbox.read("src/a"), "the agent's\n"),
            _ => {}
        }
    }
}
