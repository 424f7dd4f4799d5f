//! Logs of clients that grow, are swapped or lie where nothing can be written while the program goes back in them. What was
//! there keeps its bytes; a child holds exactly the prefix or is not there; files alone always go back.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::doors::{CLIENTS, Talk};
use crate::sandbox::ran;

fn log_of(talk: &Talk) -> PathBuf {
    let shown = talk.sandbox.json(0, &["session", "show", &talk.session()]);
    shown["path"]["path"].as_str().unwrap().into()
}

fn text_of(talk: &Talk, answer: &Value) -> String {
    let path = answer["childPath"]["path"].as_str().unwrap_or_else(|| panic!("{}: {answer}", talk.client));
    fs::read_to_string(path).unwrap()
}

/// A client at work writes half a line at a time.
#[test]
fn a_log_that_grows_while_files_and_conversation_go_back() {
    for client in CLIENTS {
        let talk = Talk::new(client);
        let log = log_of(&talk);
        let before = fs::read(&log).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    for part in ["{\"type\":\"note\",\"text\":\"", "later\"", "}\n"] {
                        file.write_all(part.as_bytes()).unwrap();
                        std::thread::yield_now();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            });
            let went = talk.sandbox.rwd(&[
                "to",
                "t3^",
                "--both",
                "--yes",
                "--overwrite-drift",
                "--json",
                "--session",
                &talk.session(),
            ]);
            stop.store(true, Ordering::Relaxed);
            assert_eq!(went.code, 0, "{client}: {went:?}");
            let answer: Value = serde_json::from_str(&went.out).unwrap();
            let child = text_of(&talk, &answer);
            assert!(child.contains("change it") && !child.contains("spoil it") && !child.contains("later"), "{client}");
        });
        assert!(fs::read(&log).unwrap().starts_with(&before), "{client}");
        assert_eq!(talk.sandbox.read("a"), "2\n", "{client}");
    }
}

/// Somebody swaps the log for another one again and again: a child is never of the other one, and where none is made the
/// files can still be finished, or go back alone.
#[test]
fn a_log_that_is_swapped_while_files_and_conversation_go_back() {
    for client in CLIENTS {
        let talk = Talk::new(client);
        let (log, session) = (log_of(&talk), talk.session());
        let good = fs::read_to_string(&log).unwrap();
        let forged = good.replace("change it", "forged it");
        assert_ne!(forged, good, "{client}");
        let spare = talk.sandbox.top().join("spare");
        for _ in 0..4 {
            let stop = AtomicBool::new(false);
            let went = std::thread::scope(|scope| {
                scope.spawn(|| {
                    for text in [&forged, &good].into_iter().cycle() {
                        fs::write(&spare, text).unwrap();
                        fs::rename(&spare, &log).unwrap();
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        std::thread::sleep(std::time::Duration::from_millis(3));
                    }
                });
                let to = ["to", "t3^", "--both", "--yes", "--overwrite-drift", "--json", "--session", &session];
                let went = talk.sandbox.rwd(&to);
                stop.store(true, Ordering::Relaxed);
                went
            });
            fs::write(&log, &good).unwrap();
            let answer: Value = serde_json::from_str(&went.out).unwrap_or_else(|_| panic!("{client}: {went:?}"));
            match went.code {
                0 => assert!(!text_of(&talk, &answer).contains("forged"), "{client}"),
                3 => assert_eq!(answer["error"]["code"], "PREFIX_CHANGED", "{client}: {answer}"),
                5 => {
                    assert_eq!(answer["error"]["code"], "not-forked", "{client}: {answer}");
                    talk.sandbox.rwd(&["recover", "--finish", "--yes"]);
                }
                _ => panic!("{client}: {went:?}"),
            }
            talk.sandbox.write("a", "spoilt\n");
        }
        for (path, facts) in talk.logs() {
            let name = String::from_utf8_lossy(&path).into_owned();
            let text = fs::read(talk.dir().join(&name)).unwrap_or_default();
            assert!(facts.0 == 'd' || !String::from_utf8_lossy(&text).contains("forged"), "{client}: {name}");
            assert!(!name.ends_with("rwd-tmp"), "{client}: {name}");
        }
        talk.sandbox.ok(&["to", "t2^", "--files", "--yes", "--overwrite-drift", "--session", &session]);
        assert_eq!(talk.sandbox.read("a"), "1\n", "{client}");
    }
}

/// There is no room for the child: files are back, nothing half-written is left, and with room the same child is made.
#[test]
fn a_child_that_does_not_fit_is_finished_when_there_is_room() {
    for client in CLIENTS {
        let talk = Talk::begun_by(client, &"a long one ".repeat(1 << 20));
        let program = env!("CARGO_BIN_EXE_rwd");
        let session = talk.session();
        // The signal would end the process; a full disk is an error. At most 3 MiB or 6 MiB in one file: shells count in
        // blocks of 512 or of 1024 bytes.
        let script = format!(
            "trap '' XFSZ; ulimit -f 6144; exec '{program}' to t3^ --both --yes --overwrite-drift --json --session {session}"
        );
        let mut shell = talk.sandbox.command(&[]);
        let environment: Vec<_> = shell.get_envs().map(|(n, v)| (n.to_owned(), v.map(ToOwned::to_owned))).collect();
        shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script]).env_clear().current_dir(talk.sandbox.work());
        shell.envs(environment.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let went = ran(&mut shell);
        let answer: Value = serde_json::from_str(&went.out).unwrap_or_else(|_| panic!("{client}: {went:?}"));
        assert_eq!((went.code, &answer["error"]["code"]), (5, &Value::from("not-forked")), "{client}: {answer}");
        assert!(talk.made().is_empty(), "{client}: {:?}", talk.made());
        assert_eq!(talk.sandbox.read("a"), "2\n", "{client}");
        talk.sandbox.json(0, &["recover", "--finish", "--yes"]);
        assert_eq!(talk.made().len(), 1, "{client}");
    }
}

/// Names that lead elsewhere are no sessions.
#[test]
fn ids_that_are_paths_name_nothing() {
    for client in CLIENTS {
        let talk = Talk::new(client);
        let outside = talk.sandbox.home().join(format!(".{client}/outside.jsonl"));
        fs::write(&outside, "{}\n").unwrap();
        for id in ["../outside", "../../outside", "/etc/passwd", "..", "x/../outside", "-x", "x\ny", "\u{e9}"] {
            for words in
                [vec!["session", "show", id, "--harness", client], vec!["session", "fork", id, "--harness", client]]
            {
                let refused = talk.sandbox.rwd(&words);
                assert!([2, 9].contains(&refused.code), "{client} {words:?}: {refused:?}");
                assert!(!refused.err.contains("panicked"), "{refused:?}");
            }
            let refused = talk.sandbox.rwd(&["to", "t1", "--chat", "--yes", "--session", &format!("{client}:{id}")]);
            assert!([2, 3, 9].contains(&refused.code), "{client} {id:?}: {refused:?}");
        }
    }
}

/// The log says that it works elsewhere: its points are here, so this is where it goes back.
#[test]
fn a_log_of_another_directory_goes_back_where_its_points_are() {
    for client in ["claude", "codex"] {
        let mut talk = Talk::new(client);
        let log = log_of(&talk);
        let text = fs::read_to_string(&log).unwrap();
        fs::write(&log, text.replace(talk.sandbox.work().to_str().unwrap(), "/nowhere/else")).unwrap();
        talk.first = talk.logs();
        let session = talk.session();
        // Nobody guesses that it is meant.
        assert_ne!(talk.sandbox.rwd(&["-C", "/", "to", "t1", "--chat", "--yes"]).code, 0);
        let went = talk.sandbox.json(0, &["to", "t3^", "--both", "--yes", "--overwrite-drift", "--session", &session]);
        assert!(went["continue"].as_str().unwrap().starts_with(client), "{went}");
        assert_eq!((talk.sandbox.read("a"), talk.made().len()), ("2\n".into(), 1), "{client}");
    }
}
