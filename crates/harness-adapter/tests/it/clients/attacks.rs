//! Logs that are replaced, grow, are forged or lie where nothing can be made while a child is cut: the parent keeps every
//! byte, and the child holds exactly the prefix or does not exist.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use checkpoint_core::{BoundarySeq, ForkRequest, Seq, SessionError, Turn, boundary_of_turn};
use serde_json::{Value, json};
use testkit::transcripts::{self, Told, id_of};

use super::forks::{CLIENTS, World, said, three, tree};

/// The same turns, in other words.
fn other_words() -> Vec<Told> {
    let mut turns = three();
    for turn in &mut turns {
        turn.prompt.insert_str(0, "forged ");
    }
    turns
}

fn lines_of(world: &World, turns: &[Told]) -> Vec<String> {
    match world.client {
        "claude" => transcripts::claude(&world.parent, "/home/user/shop", turns),
        "codex" => transcripts::codex(&world.parent, "/home/user/shop", turns),
        _ => transcripts::gemini(&world.parent, turns, &[2]),
    }
}

fn text_of(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

fn prefix(world: &World, boundary: Option<BoundarySeq>) -> String {
    world.door().prefix_digest(&world.source(), boundary.unwrap().seq()).unwrap()
}

/// A client that was killed in a turn leaves it without an end; the next prompt ends it. The child's last turn is that
/// one, and its log cannot say that it ended.
#[test]
fn c004_30_a_child_that_ends_in_a_broken_off_turn_is_known_again() {
    for client in CLIENTS {
        let mut turns = three();
        turns[1].ended = false;
        let world = World::new(client, &turns);
        let before = fs::read(world.log()).unwrap();
        let door = world.door();
        let request = world.request(world.end_of(2), 1);
        let made = door.fork(&request).unwrap();
        assert_eq!(made.seed_length, 4, "{client}");
        assert_eq!(door.find_child(&request).unwrap(), Some(made), "{client}");
        // It can be cut again, at the end of that turn too.
        let child = world.key(&request.child);
        let beats = door.beats(&child, Seq(0)).unwrap();
        let boundary = boundary_of_turn(&beats, Turn(2));
        assert!(boundary.is_some(), "{client}: {beats:?}");
        let again =
            ForkRequest { source: child.clone(), boundary, child: door.name_child(&child, &id_of(2, 2)), notice: None };
        assert_eq!(door.fork(&again).unwrap().seed_length, 4, "{client}");
        assert!(door.find_child(&again).unwrap().is_some(), "{client}");
        assert_eq!(fs::read(world.log()).unwrap(), before, "{client}");
    }
}

/// Between the plan and the fork the log becomes another one: by a rename, in place, by a link, or it is gone.
#[test]
fn a_log_that_is_another_one_since_the_plan_makes_no_child() {
    for client in CLIENTS {
        for how in ["rename", "rewrite", "link", "shorter", "gone"] {
            let world = World::new(client, &three());
            let request = world.request(world.end_of(2), 1);
            let planned = prefix(&world, request.boundary);
            let forged = text_of(&lines_of(&world, &other_words()));
            let log = world.log();
            match how {
                "rename" => {
                    let new = world.home.path().join("new");
                    fs::write(&new, &forged).unwrap();
                    fs::rename(new, &log).unwrap();
                }
                "rewrite" => fs::write(&log, &forged).unwrap(),
                "link" => {
                    let new = world.home.path().join("elsewhere");
                    fs::write(&new, &forged).unwrap();
                    fs::remove_file(&log).unwrap();
                    std::os::unix::fs::symlink(new, &log).unwrap();
                }
                "shorter" => fs::write(&log, text_of(&world.lines()[..2])).unwrap(),
                _ => fs::remove_file(&log).unwrap(),
            }
            let before = tree(world.home.path());
            let code = world.door().fork_exactly(&request, &planned).unwrap_err().code();
            let wanted = match how {
                "gone" => "SESSION_NOT_FOUND",
                _ => "PREFIX_CHANGED",
            };
            assert_eq!(code, wanted, "{client} {how}");
            assert_eq!(tree(world.home.path()), before, "{client} {how}");
        }
    }
}

/// Somebody swaps the log for another one over and over while children are cut.
#[test]
fn a_log_that_is_swapped_again_and_again_gives_whole_children_or_none() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let boundary = world.end_of(2);
        let planned = prefix(&world, boundary);
        let texts = [text_of(&world.lines()), text_of(&lines_of(&world, &other_words()))];
        let (log, spare) = (world.log(), world.home.path().join("spare"));
        let stop = AtomicBool::new(false);
        let mut made = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for text in texts.iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    fs::write(&spare, text).unwrap();
                    fs::rename(&spare, &log).unwrap();
                }
            });
            for number in 1..40 {
                let request = world.request(boundary, number);
                match world.door().fork_exactly(&request, &planned) {
                    Ok(header) => {
                        assert_eq!(header.seed_length, 4, "{client}");
                        made.push(request.child);
                    }
                    Err(SessionError::PrefixChanged { .. } | SessionError::Harness { .. }) => {}
                    Err(other) => panic!("{client}: {other}"),
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        drop(fs::remove_file(&spare));
        fs::write(&log, &texts[0]).unwrap();
        let files = tree(log.ancestors().nth(if client == "codex" { 4 } else { 1 }).unwrap());
        assert_eq!(files.len(), made.len() + 1, "{client}: something else was left");
        for child in made {
            let digest = world.door().prefix_digest(&world.key(&child), Seq(3)).unwrap();
            assert_eq!(digest, planned, "{client}");
            assert!(!format!("{:?}", world.rows(&child)).contains("forged"), "{client}");
        }
    }
}

/// The client goes on writing, half a line at a time.
#[test]
fn a_log_that_grows_while_it_is_cut_is_cut_where_it_was_meant() {
    for client in CLIENTS {
        let mut turns = three();
        turns.extend((4..30).map(|n| Told::plain(&format!("later {n}"))));
        let world = World::new(client, &three());
        let all = text_of(&lines_of(&world, &turns));
        let (log, length) = (world.log(), fs::metadata(world.log()).unwrap().len());
        let boundary = world.end_of(3);
        let planned = prefix(&world, boundary);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
                for part in all.as_bytes()[usize::try_from(length).unwrap()..].chunks(97) {
                    file.write_all(part).unwrap();
                }
            });
            for number in 1..20 {
                let request = world.request(boundary, number);
                let header = world.door().fork_exactly(&request, &planned).unwrap();
                assert_eq!(header.seed_length, 6, "{client}");
                assert!(!format!("{:?}", world.rows(&request.child)).contains("later"), "{client}");
                assert_eq!(world.door().find_child(&request).unwrap(), Some(header), "{client}");
            }
        });
        assert_eq!(fs::read_to_string(&log).unwrap(), all, "{client}");
    }
}

/// JavaScript cuts a text in the middle of a character and writes half of it as an escape: it is a prompt all the same.
#[test]
fn a_prompt_with_half_a_character_counts() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let lines: Vec<String> =
            world.lines().iter().map(|line| line.replace("\"second\"", "\"second \\ud83d\"")).collect();
        assert_ne!(lines, world.lines());
        world.write(&lines);
        let request = world.request(world.end_of(2), 1);
        assert_eq!(world.door().fork(&request).unwrap().seed_length, 4, "{client}");
        let path = world.door().location(&world.key(&request.child)).unwrap();
        let child = fs::read_to_string(path).unwrap();
        assert!(child.contains("\\ud83d") && child.contains("done 2") && !child.contains("third"), "{client}");
    }
}

/// Line ends of another system, a mark at the beginning, empty blocks after a crash.
#[test]
fn bytes_that_no_client_writes_are_passed_over_or_refused() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let whole = text_of(&world.lines());
        let planned = prefix(&world, world.end_of(2));
        fs::write(world.log(), whole.replace('\n', "\r\n")).unwrap();
        let request = world.request(world.end_of(2), 1);
        world.door().fork_exactly(&request, &planned).unwrap();
        assert!(world.door().find_child(&request).unwrap().is_some(), "{client}");
        let middle = whole.match_indices('\n').nth(4).unwrap().0 + 1;
        let zeros = [&whole.as_bytes()[..middle], &[0; 4096], b"\n", &whole.as_bytes()[middle..]].concat();
        for bytes in [[b"\xef\xbb\xbf", whole.as_bytes()].concat(), zeros] {
            fs::write(world.log(), &bytes).unwrap();
            let before = tree(world.home.path());
            let error = world.door().fork_exactly(&world.request(request.boundary, 2), &planned).unwrap_err();
            assert_eq!(
                error.code(),
                if client == "gemini" && bytes[0] == 0xef { "SESSION_NOT_FOUND" } else { "CORRUPT_LOG" },
                "{client}"
            );
            assert_eq!(tree(world.home.path()), before, "{client}");
        }
    }
}

/// Rows that name one another in a circle, or twice: nobody follows them for ever, and what is copied is what stood there.
#[test]
fn links_that_lead_nowhere_or_around_are_copied_and_not_followed() {
    let world = World::new("claude", &three());
    let mut rows: Vec<Value> = world.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let chain: Vec<usize> = (0..rows.len()).filter(|at| rows[*at]["uuid"].is_string()).collect();
    let (first, third) = (rows[chain[0]]["uuid"].clone(), rows[chain[2]]["uuid"].clone());
    rows[chain[0]]["parentUuid"] = third;
    rows[chain[1]]["uuid"] = first.clone();
    rows[chain[1]]["parentUuid"] = first;
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    world.write(&lines);
    let request = world.request(world.end_of(2), 1);
    assert_eq!(world.door().fork(&request).unwrap().seed_length, 4);
    let own = said("claude", &world.rows(&request.child));
    assert_eq!(own[..], said("claude", &rows)[..own.len()]);
}

/// A row of a kind that only a newer client knows may be what the next one hangs on.
#[test]
fn rows_of_a_kind_that_is_not_known_are_kept_where_they_are_part_of_the_conversation() {
    let world = World::new("claude", &three());
    let mut rows: Vec<Value> = world.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = rows.iter().position(|row| row["type"] == "attachment").unwrap();
    rows[at]["type"] = json!("of-tomorrow");
    world.write(&rows.iter().map(Value::to_string).collect::<Vec<_>>());
    let request = world.request(world.end_of(1), 1);
    world.door().fork(&request).unwrap();
    let own = said("claude", &world.rows(&request.child));
    assert_eq!(own[..], said("claude", &rows)[..own.len()]);
}

/// Formats that only newer clients know: nobody guesses what they hold.
#[test]
fn a_newer_format_is_refused_and_nothing_is_written() {
    for (client, from, to) in [
        ("codex", "\"history_mode\":\"paginated\"", "\"history_mode\":\"elsewhere\""),
        ("gemini", "{\"$set\":{\"lastUpdated\"", "{\"$move\":{\"lastUpdated\""),
    ] {
        let world = World::new(client, &three());
        let boundary = world.end_of(1);
        let lines: Vec<String> = world.lines().iter().map(|line| line.replacen(from, to, 1)).collect();
        assert_ne!(lines, world.lines(), "{client}");
        world.write(&lines);
        let before = tree(world.home.path());
        assert_eq!(
            world.door().fork(&world.request(boundary, 1)).unwrap_err().code(),
            "UNSUPPORTED_FORMAT",
            "{client}"
        );
        assert_eq!(tree(world.home.path()), before, "{client}");
        // Hooks count turns all the same.
        assert_eq!(harness_adapter::sessions::turn_keys(client, &world.log()).unwrap().len(), 3, "{client}");
    }
}

/// A process that is killed while it writes a child leaves a name that no client lists; the next child takes it away.
#[test]
fn what_a_killed_fork_left_is_swept_once_it_is_old() {
    let world = World::new("claude", &three());
    let beside = |name: &str| world.log().with_file_name(name);
    for (name, hours) in [(".00112233445566ff.rwd-tmp", 2), (".00112233445566aa.rwd-tmp", 0), (".notes.rwd-tmp", 2)] {
        let file = fs::File::create(beside(name)).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - std::time::Duration::from_hours(hours)).unwrap();
    }
    world.door().fork(&world.request(world.end_of(1), 1)).unwrap();
    let there = |name: &str| beside(name).exists();
    assert!(!there(".00112233445566ff.rwd-tmp") && there(".00112233445566aa.rwd-tmp") && there(".notes.rwd-tmp"));
}

/// The child's name is taken, by whatever it is: it stays what it was.
#[test]
fn a_name_that_is_taken_is_not_taken_over() {
    for client in ["claude", "codex"] {
        for kind in ["directory", "link", "file"] {
            let world = World::new(client, &three());
            let request = world.request(world.end_of(1), 1);
            let at: PathBuf = match client {
                "claude" => world.log().with_file_name(format!("{}.jsonl", request.child)),
                _ => world.log().with_file_name(format!("rollout-2026-03-01T10-00-00-{}.jsonl", request.child)),
            };
            match kind {
                "directory" => fs::create_dir(&at).unwrap(),
                "link" => std::os::unix::fs::symlink("/nowhere", &at).unwrap(),
                _ => fs::write(&at, "{}\n").unwrap(),
            }
            let before = fs::read_dir(at.parent().unwrap()).unwrap().count();
            let error = world.door().fork(&request).unwrap_err();
            assert_eq!(error.code(), "SESSION_ALREADY_EXISTS", "{client} {kind}: {error}");
            assert!(at.symlink_metadata().is_ok(), "{client} {kind}");
            assert_eq!(fs::read_dir(at.parent().unwrap()).unwrap().count(), before, "{client} {kind}");
        }
    }
}

/// A folder in which nothing can be made is said before anything is touched.
#[test]
fn a_folder_that_is_none_is_refused_beforehand() {
    let world = World::new("codex", &three());
    let request = world.request(world.end_of(1), 1);
    let door = world.door();
    door.check_fork(&request.source, request.boundary).unwrap();
    let made = door.fork(&request).unwrap();
    let day = door.location(&made.key).unwrap().parent().unwrap().to_owned();
    fs::remove_dir_all(&day).unwrap();
    fs::write(&day, "").unwrap();
    let before = tree(world.home.path());
    assert_eq!(door.check_fork(&request.source, request.boundary).unwrap_err().code(), "FORK_FAILED");
    assert_eq!(door.fork(&world.request(request.boundary, 2)).unwrap_err().code(), "FORK_FAILED");
    assert_eq!(tree(world.home.path()), before);
}
