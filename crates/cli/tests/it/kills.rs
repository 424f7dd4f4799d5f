//! Real processes: killed at any moment, and many at once.
//!
//! When a process is killed, and who comes first, depends on the machine; what must hold afterwards does not.
//! `cargo xtask crash-matrix --kills N` sets `RWD_KILLS`; without it 60 are made.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::dice::Dice;
use crate::sandbox::{Ran, Sandbox, Tree, ran};

/// Two named states, both made by a turn of an agent.
fn two_states() -> (Sandbox, BTreeMap<&'static str, Tree>) {
    let sandbox = Sandbox::new();
    for n in 0..24 {
        sandbox.write(format!("d{}/f{n}", n % 4), format!("one {n}"));
    }
    sandbox.ok(&["save", "--session", "agent", "--turn", "1", "--kind", "turn-start", "--name", "one"]);
    let mut trees = BTreeMap::from([("one", sandbox.tree())]);
    for n in (0..24).step_by(2) {
        sandbox.write(format!("d{}/f{n}", n % 4), format!("two {n}"));
    }
    sandbox.remove("d1/f5");
    sandbox.write("d9/new", "new");
    sandbox.ok(&["save", "--session", "agent", "--turn", "1", "--kind", "turn-end", "--name", "two"]);
    trees.insert("two", sandbox.tree());
    (sandbox, trees)
}

const DECIDED: [&str; 4] = ["--exact", "--yes", "--overwrite-drift", "--with-others"];

fn to(target: &str) -> Vec<&str> {
    [&["to", target], &DECIDED[..]].concat()
}

/// Runs a command and kills it, all of it, after so long.
fn kill(sandbox: &Sandbox, args: &[&str], after: Duration) {
    let mut child = sandbox.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    drop(child.kill());
    child.wait().unwrap();
}

/// Issue 6, part 1: `kill -9` anywhere in a save, a restore, an undo, a collection, a purge, a name or a drop.
#[test]
fn killed_at_any_moment_nothing_is_lost() {
    let kills = std::env::var("RWD_KILLS").map_or(60, |count| count.parse::<u64>().unwrap());
    let (sandbox, trees) = two_states();
    let begun = Instant::now();
    sandbox.ok(&to("one"));
    let whole = u64::try_from(begun.elapsed().as_micros()).unwrap().max(2_000);
    let mut dice = Dice::new(7);
    let mut open = 0;
    for round in 0..kills {
        let before = sandbox.tree();
        let secret = format!("secret {round}");
        let mut allowed = vec![before.clone()];
        let args: Vec<&str> = match round % 7 {
            0 | 4 => {
                let target = if before == trees["one"] { "two" } else { "one" };
                allowed.push(trees[target].clone());
                to(target)
            }
            1 => {
                sandbox.write("d0/f0", format!("by hand {round}"));
                allowed = vec![sandbox.tree()];
                vec!["save"]
            }
            2 => vec!["gc"],
            3 => {
                sandbox.write("d0/key", &secret);
                sandbox.ok(&["save"]);
                sandbox.remove("d0/key");
                vec!["purge", "d0/key", "--yes"]
            }
            5 => vec!["name", "latest", "third"],
            _ => {
                sandbox.write("d0/f0", format!("to drop {round}"));
                sandbox.ok(&["save"]);
                allowed = vec![sandbox.tree()];
                vec!["drop", "latest", "--yes"]
            }
        };
        // A restore is at work on files in the last part of its life.
        let least = if args[0] == "to" { whole / 3 } else { 0 };
        kill(&sandbox, &args, Duration::from_micros(least + dice.roll(whole)));
        if sandbox.json(0, &["status"])["unfinished"].is_string() {
            open += 1;
            let way = if round.is_multiple_of(2) { "--finish" } else { "--back" };
            // The recovery is killed too, then it is done.
            kill(&sandbox, &["recover", way], Duration::from_micros(dice.roll(whole)));
            let settled = sandbox.rwd(&["recover", way]);
            assert!(matches!(settled.code, 0 | 5 | 6), "round {round}: {settled:?}");
        }
        let now = sandbox.tree();
        assert!(allowed.contains(&now), "round {round}: {args:?} left something else");
        if args[0] == "purge" {
            let again = sandbox.rwd(&args);
            assert!(matches!(again.code, 0 | 6), "round {round}: {again:?}");
            assert_eq!(sandbox.json(6, &["purge", "d0/key", "--dry-run"])["pending"], false, "round {round}");
        }
        let deep = round % 10 == 9 || round + 1 == kills;
        let level: &[&str] = if deep { &["verify", "--rehash"] } else { &["verify"] };
        assert_eq!(sandbox.json(0, level)["damaged"], serde_json::json!([]), "round {round}");
    }
    for name in ["one", "two"] {
        let went = sandbox.rwd(&to(name));
        assert!(matches!(went.code, 0 | 6), "{went:?}");
        assert_eq!(sandbox.tree(), trees[name]);
    }
    sandbox.ok(&["gc"]);
    let packs = sandbox.store().join("git/objects/pack");
    let litter = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().starts_with("tmp");
    assert!(!std::fs::read_dir(packs).unwrap().any(|entry| litter(&entry.unwrap().path())));
    println!("kills: {kills}, {open} with an operation open, nothing lost");
}

/// What a process of the crowd did last, as its answer says.
fn crowd(sandbox: &Sandbox, seed: u64, rounds: u64) -> Vec<(Vec<&'static str>, Ran)> {
    let mut dice = Dice::new(seed);
    let mut all = Vec::new();
    for _ in 0..rounds {
        let args: Vec<&'static str> = match dice.roll(8) {
            0..=2 => vec!["save", "--session", if seed.is_multiple_of(2) { "s0" } else { "s1" }],
            3 | 4 => to("one"),
            5 => to("two"),
            6 => vec!["undo", "--yes", "--overwrite-drift", "--with-others"],
            _ => vec!["gc"],
        };
        let mut whole = vec!["--json"];
        whole.extend(&args);
        let ran = ran(&mut sandbox.command(&whole));
        all.push((args, ran));
    }
    all
}

/// Issue 6, part 3: eight processes save, restore, undo and collect at once; some serial order explains it all.
#[test]
fn many_processes_at_once_are_some_serial_order() {
    let (sandbox, trees) = two_states();
    let rounds = std::env::var("RWD_KILLS").map_or(6, |count| count.parse::<u64>().unwrap() / 10);
    let ids: Vec<String> = sandbox.json(0, &["log", "--all"])["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["tree"].as_str().unwrap().to_owned())
        .collect();
    let done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8u64)
            .map(|n| {
                let sandbox = &sandbox;
                scope.spawn(move || crowd(sandbox, n + 1, rounds))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut saved = Vec::new();
    for (args, ran) in &done {
        // Decisions, nothing to do and a busy workspace are answers; anything else is a fault.
        assert!(matches!(ran.code, 0 | 3 | 6 | 11), "{args:?}: {ran:?}");
        if ran.code == 0 && args[0] == "save" {
            let answer = ran.json();
            // Every capture saw one of the two states whole, never a half of a restore.
            assert!(ids.iter().any(|tree| *tree == answer["tree"]), "{answer}");
            saved.push(answer["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(sandbox.json(0, &["status"])["unfinished"], Value::Null);
    let log = sandbox.json(0, &["log", "--all", "--ops"]);
    let points = sandbox.json(0, &["log", "--all"]);
    let known: Vec<&str> = points["points"].as_array().unwrap().iter().map(|p| p["id"].as_str().unwrap()).collect();
    assert!(saved.iter().all(|id| known.contains(&&**id)), "a point that was answered is gone");
    // The operations, in the order of the log, explain what is there now.
    let names: BTreeMap<String, &str> = points["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|point| Some((point["id"].as_str()?.to_owned(), point["names"][0].as_str()?)))
        .map(|(id, name)| (id, if name == "one" { "one" } else { "two" }))
        .collect();
    let mut now = "two";
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    for op in log["operations"].as_array().unwrap() {
        if op["state"] != "done" {
            assert_eq!(op["state"], "rolled-back", "{op}");
            continue;
        }
        let next = match op["kind"].as_str().unwrap() {
            "restore" => names[op["target"].as_str().unwrap()],
            _ => before[op["reverses"].as_str().unwrap()],
        };
        before.insert(op["id"].as_str().unwrap(), now);
        now = next;
    }
    assert_eq!(sandbox.tree(), trees[now], "no serial order explains it");
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], serde_json::json!([]));
    println!("writers: 8 processes, {} commands, explained by the order of the log", done.len());
}

/// Issue 6, part 3: what collects, drops and takes out works beside those who save and go back. No collection takes what
/// somebody else is about to rely on: every point that is listed is whole, and the files are those of some point.
#[test]
fn collecting_pruning_and_purging_beside_writers_leave_every_point_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("shared", "0");
    sandbox.ok(&["config", "set", "retention.max_turns", "6"]);
    sandbox.ok(&["save", "--name", "first"]);
    let rounds = std::env::var("RWD_KILLS").map_or(5, |count| count.parse::<u64>().unwrap() / 10);
    let work = |n: u64| {
        let mut dice = Dice::new(n + 100);
        let (session, secret) = (format!("s{}", n % 3), format!("secret-{n}"));
        for round in 0..rounds {
            // Each writes files of its own, so that whatever is there is of some moment.
            sandbox.write(format!("own-{n}"), format!("{n} in round {round}"));
            sandbox.write(&secret, format!("password {n} {round}"));
            let glob = format!("/{secret}");
            let args: Vec<&str> = match dice.roll(8) {
                0..=3 => vec!["save", "--session", &session],
                4 => vec!["gc"],
                5 => vec!["purge", "--match", &glob, "--yes"],
                6 => to("first"),
                _ => vec!["undo", "--yes", "--overwrite-drift", "--with-others"],
            };
            let whole = [&["--json"][..], &args].concat();
            let ran = ran(&mut sandbox.command(&whole));
            // Somebody writes all the time: what was planned may have changed, and that is an answer.
            assert!(matches!(ran.code, 0 | 2 | 3 | 4 | 6 | 11), "{args:?}: {ran:?}");
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let work = &work;
                scope.spawn(move || work(n))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(sandbox.json(0, &["status"])["unfinished"], Value::Null);
    sandbox.ok(&["save"]);
    sandbox.ok(&["gc"]);
    let verified = sandbox.json(0, &["verify", "--rehash"]);
    assert_eq!((&verified["damaged"], &verified["store"]), (&serde_json::json!([]), &serde_json::json!([])));
    let points = sandbox.json(0, &["log", "--all"]);
    for point in points["points"].as_array().unwrap() {
        assert_eq!(point["restorable"], true, "{point}");
        let went = sandbox.rwd(&["to", point["id"].as_str().unwrap(), "--yes", "--overwrite-drift", "--with-others"]);
        // Restored, or there already.
        assert!(matches!(went.code, 0 | 6), "{went:?}");
    }
    // Nobody is at work now, so a secret goes for good.
    sandbox.ok(&["purge", "--match", "/secret-*", "--yes"]);
    for point in sandbox.json(0, &["log", "--all"])["points"].as_array().unwrap() {
        let shown = sandbox.rwd(&["diff", point["id"].as_str().unwrap(), "--json"]);
        assert!(!shown.out.contains("password"), "{shown:?}");
    }
    assert!(sandbox.json(0, &["verify", "--rehash"])["damaged"].as_array().unwrap().is_empty());
}
