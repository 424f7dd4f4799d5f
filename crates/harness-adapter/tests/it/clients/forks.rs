//! Children of made-up sessions: exactly the prefix, ids of their own, and a parent that is byte for byte as it was.

use std::fs;
use std::path::{Path, PathBuf};

use checkpoint_core::{
    Beat, BoundarySeq, ForkRequest, Seq, SessionError, SessionKey, SessionLog, Turn, boundary_at, boundary_of_turn,
};
use harness_adapter::sessions::{claude, codex, gemini, turn_keys};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::transcripts::{self, Told, id_of, key_of};

pub(super) const CLIENTS: [&str; 3] = ["claude", "codex", "gemini"];

/// A home with one session.
pub(super) struct World {
    pub(super) home: tempfile::TempDir,
    pub(super) client: &'static str,
    pub(super) parent: String,
}

impl World {
    pub(super) fn new(client: &'static str, turns: &[Told]) -> Self {
        let world = Self { home: tempfile::tempdir().unwrap(), client, parent: id_of(1, 7) };
        let lines = match client {
            "claude" => transcripts::claude(&world.parent, "/home/user/shop", turns),
            "codex" => transcripts::codex(&world.parent, "/home/user/shop", turns),
            _ => transcripts::gemini(&world.parent, turns, &[2]),
        };
        fs::create_dir_all(world.log().parent().unwrap()).unwrap();
        if client == "gemini" {
            fs::write(world.home.path().join("tmp/shop/.project_root"), "/home/user/shop").unwrap();
        }
        world.write(&lines);
        world
    }

    pub(super) fn log(&self) -> PathBuf {
        let id = &self.parent;
        self.home.path().join(match self.client {
            "claude" => format!("projects/-home-user-shop/{id}.jsonl"),
            "codex" => format!("sessions/2026/03/01/rollout-2026-03-01T10-00-00-{id}.jsonl"),
            _ => format!("tmp/shop/chats/session-2026-03-01T10-00-{}.jsonl", &id[..8]),
        })
    }

    pub(super) fn write(&self, lines: &[String]) {
        fs::write(self.log(), lines.join("\n") + "\n").unwrap();
    }

    pub(super) fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.log()).unwrap().lines().map(str::to_owned).collect()
    }

    pub(super) fn door(&self) -> Box<dyn SessionLog> {
        match self.client {
            "claude" => Box::new(claude::open(self.home.path())),
            "codex" => Box::new(codex::open(self.home.path())),
            _ => Box::new(gemini::open(self.home.path())),
        }
    }

    pub(super) fn key(&self, id: &str) -> SessionKey {
        SessionKey::new(self.client, id).unwrap()
    }

    pub(super) fn source(&self) -> SessionKey {
        self.key(&self.parent)
    }

    pub(super) fn request(&self, boundary: Option<BoundarySeq>, child: usize) -> ForkRequest {
        let child = self.door().name_child(&self.source(), &id_of(2, child));
        ForkRequest { source: self.source(), boundary, child, notice: Some("not written".into()) }
    }

    pub(super) fn end_of(&self, turn: u32) -> Option<BoundarySeq> {
        boundary_of_turn(&self.door().beats(&self.source(), Seq(0)).unwrap(), Turn(turn))
    }

    pub(super) fn rows(&self, child: &str) -> Vec<Value> {
        let path = self.door().location(&self.key(child)).unwrap();
        fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Every file below a directory with its bytes.
pub(super) fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { todo.push(path) } else { all.push((path.clone(), fs::read(path).unwrap())) }
        }
    }
    all.sort();
    all
}

pub(super) fn three() -> Vec<Told> {
    vec![
        Told { batches: vec![1, 2], ..Told::plain("first \"quoted\" é") },
        Told { batches: vec![3], ..Told::plain("second") },
        Told::plain("third"),
    ]
}

/// What the model is shown of a row, without what belongs to the file it stands in.
pub(super) fn said(client: &str, rows: &[Value]) -> Vec<Value> {
    let rows = rows.iter();
    match client {
        "claude" => rows
            .filter(|row| row["uuid"].is_string())
            .map(|row| json!([row["uuid"], row["parentUuid"], row["message"], row["attachment"]]))
            .collect(),
        "codex" => rows.filter(|row| row["type"] == "response_item").map(|row| row["payload"].clone()).collect(),
        _ => rows.filter(|row| row["type"].is_string()).cloned().collect(),
    }
}

#[test]
fn c004_30_a_child_holds_exactly_the_prefix_at_every_boundary() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let before = fs::read(world.log()).unwrap();
        let door = world.door();
        for turn in 1..=3 {
            let end = world.end_of(turn).unwrap();
            let request = world.request(Some(end), turn as usize);
            door.check_fork(&request.source, request.boundary).unwrap();
            let made = door.fork(&request).unwrap();
            assert_eq!(made.parent, Some(world.source()), "{client} t{turn}");
            assert_eq!(made.seed_length, u64::from(turn) * 2, "{client} t{turn}");
            assert_eq!(fs::read(world.log()).unwrap(), before, "{client}: the parent changed");
            // The same conversation, by what each log says and by the digest.
            let child = world.key(&request.child);
            let beats = door.beats(&child, Seq(0)).unwrap();
            assert_eq!(beats, door.beats(&world.source(), Seq(0)).unwrap()[..turn as usize * 2], "{client} t{turn}");
            for (seq, _) in beats {
                let digest = |key| door.prefix_digest(key, seq).unwrap();
                assert_eq!(digest(&child), digest(&world.source()), "{client} t{turn} {seq}");
            }
            let keys = turn_keys(client, &door.location(&child).unwrap()).unwrap();
            assert_eq!(keys.iter().map(|key| key.turn.0).max(), Some(turn));
            let own = said(client, &world.rows(&request.child));
            if client != "gemini" {
                let parent: Vec<Value> = world.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
                let parent = said(client, &parent);
                assert_eq!(own[..], parent[..own.len()], "{client} t{turn}");
            }
            let all = own.iter().map(Value::to_string).collect::<String>();
            for other in 1..=3u32 {
                let answer = format!("done {other}");
                assert_eq!(all.contains(&answer), other <= turn, "{client} t{turn}: {answer}");
            }
            // Asked again it is the same child; asked for as another one it is taken.
            assert_eq!(door.find_child(&request).unwrap().unwrap(), made);
            assert_eq!(door.fork(&request).unwrap_err().code(), "SESSION_ALREADY_EXISTS");
            let other = ForkRequest { boundary: world.end_of(if turn == 1 { 2 } else { 1 }), ..request };
            assert_eq!(door.find_child(&other).unwrap_err().code(), "SESSION_ALREADY_EXISTS", "{client} t{turn}");
        }
    }
}

#[test]
fn ids_in_the_child_are_its_own() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let request = world.request(world.end_of(2), 1);
        world.door().fork(&request).unwrap();
        let rows = world.rows(&request.child);
        for row in &rows {
            for name in ["sessionId", "thread_id", "session_id"] {
                for place in [row, &row["payload"]] {
                    assert_ne!(place[name], json!(world.parent), "{client}: {row}");
                }
            }
        }
        match client {
            "claude" => {
                assert!(rows.iter().all(|row| row["sessionId"] == json!(request.child)), "own notes are left out");
                assert!(rows.iter().all(|row| row["forkedFrom"]["sessionId"] == json!(world.parent)));
            }
            "codex" => {
                let head = &rows[0]["payload"];
                assert_eq!((&head["id"], &head["forked_from_id"]), (&json!(request.child), &json!(world.parent)));
                assert_eq!(&request.child[14..15], "7");
                let ordinals: Vec<_> = rows.iter().map(|row| row["ordinal"].as_u64().unwrap()).collect();
                assert!(ordinals.is_sorted());
            }
            _ => assert_eq!(rows[0]["sessionId"], json!(request.child)),
        }
        let path = world.door().location(&world.key(&request.child)).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match client {
            "claude" => assert_eq!(name, format!("{}.jsonl", request.child)),
            "codex" => assert!(name.starts_with("rollout-") && name.ends_with(&format!("-{}.jsonl", request.child))),
            // Not the beginning of the id: see the writer.
            _ => assert!(name.starts_with("session-") && name.ends_with(&format!("-{}.jsonl", &request.child[28..]))),
        }
    }
}

#[test]
fn a_child_is_cut_again_and_its_parent_may_be_gone() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let door = world.door();
        let first = world.request(world.end_of(2), 1);
        door.fork(&first).unwrap();
        fs::remove_file(world.log()).unwrap();
        let source = world.key(&first.child);
        let boundary = boundary_of_turn(&door.beats(&source, Seq(0)).unwrap(), Turn(1));
        let again = ForkRequest {
            source: source.clone(),
            boundary,
            child: door.name_child(&source, &id_of(2, 2)),
            notice: None,
        };
        let made = door.fork(&again).unwrap();
        assert_eq!((made.parent, made.seed_length), (Some(source.clone()), 2), "{client}");
        // What the first child shares is known without its parent; only ids of version 7 say it for Codex.
        assert_eq!(door.header(&source).unwrap().seed_length, 4, "{client}");
    }
}

#[test]
fn nothing_before_the_first_prompt_is_a_child_of_codex_alone() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let before = tree(world.home.path());
        let request = world.request(None, 1);
        let checked = world.door().check_fork(&request.source, None);
        if client == "codex" {
            checked.unwrap();
            assert_eq!(world.door().fork(&request).unwrap().seed_length, 0);
            assert_eq!(world.rows(&request.child).len(), 1);
            assert!(world.door().find_child(&request).unwrap().is_some());
        } else {
            assert_eq!(checked.unwrap_err().code(), "NOTHING_LEFT");
            assert_eq!(world.door().fork(&request).unwrap_err().code(), "NOTHING_LEFT");
            assert_eq!(tree(world.home.path()), before);
        }
    }
}

#[test]
fn c004_32_a_turn_that_is_open_cannot_be_shared_but_those_before_it_can() {
    for client in CLIENTS {
        let mut turns = three();
        turns[2].ended = false;
        let world = World::new(client, &turns);
        let beats = world.door().beats(&world.source(), Seq(0)).unwrap();
        assert_eq!(beats.last().unwrap().1, Beat::TurnStart(Turn(3)), "{client}");
        let at = boundary_at(&world.source(), &beats, Seq(4)).unwrap_err();
        assert_eq!(at.code(), "OPEN_TURN");
        world.door().fork(&world.request(world.end_of(2), 1)).unwrap();
    }
}

#[test]
fn a_torn_end_is_left_out_and_the_rest_can_be_cut() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        for torn in [
            "{\"type\":\"user\",\"mess",
            "\0\0\0\0",
            "{\"type\":\"user\",\"uuid\":\"x\",\"message\":{\"content\":\"new\"}}",
        ] {
            let mut bytes = fs::read(world.log()).unwrap();
            let length = bytes.len();
            bytes.extend_from_slice(torn.as_bytes());
            fs::write(world.log(), &bytes).unwrap();
            let request = world.request(world.end_of(3), torn.len());
            let made = world.door().fork(&request).unwrap();
            assert_eq!(made.seed_length, 6, "{client}");
            assert_eq!(fs::read(world.log()).unwrap(), bytes);
            bytes.truncate(length);
            fs::write(world.log(), &bytes).unwrap();
        }
    }
}

#[test]
fn damage_is_refused_with_a_code_and_nothing_is_written() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let good = world.lines();
        let check = |lines: &[String], code: &str| {
            world.write(lines);
            let before = tree(world.home.path());
            let door = world.door();
            let error = door.beats(&world.source(), Seq(0)).unwrap_err();
            assert_eq!(error.code(), code, "{client}: {error}");
            assert_eq!(door.check_fork(&world.source(), None).unwrap_err().code(), code, "{client}");
            assert_eq!(door.fork(&world.request(None, 1)).unwrap_err().code(), code, "{client}");
            assert_eq!(tree(world.home.path()), before, "{client}");
        };
        for broken in ["{\"type\":", "[]", "7", "\"x\"", "{} {}"] {
            let mut lines = good.clone();
            lines.insert(3, broken.to_owned());
            check(&lines, "CORRUPT_LOG");
        }
        match client {
            "codex" => {
                let mut lines = good.clone();
                lines[0] = lines[0].replace(&world.parent, &id_of(9, 9));
                check(&lines, "CORRUPT_LOG");
                check(&good[1..], "CORRUPT_LOG");
                check(&[], "CORRUPT_LOG");
                lines[0] = good[0].replace("\"history_mode\"", "\"history_base\":{\"thread\":1},\"history_mode\"");
                check(&lines, "UNSUPPORTED_FORMAT");
            }
            "gemini" => {
                let mut lines = good.clone();
                lines.push(format!(r#"{{"$set":{{"sessionId":"{}"}}}}"#, id_of(9, 9)));
                check(&lines, "CORRUPT_LOG");
            }
            _ => {}
        }
        world.write(&good);
        world.door().fork(&world.request(world.end_of(1), 5)).unwrap();
    }
}

#[test]
fn bad_ids_of_children_and_other_harnesses_are_refused() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let before = tree(world.home.path());
        let door = world.door();
        for child in ["x", "..", "a/b", "", "ABCDEF00-0000-4000-8000-000000000000"] {
            let request = ForkRequest { child: child.to_owned(), ..world.request(world.end_of(1), 1) };
            assert!(door.fork(&request).is_err(), "{client} {child:?}");
        }
        let other = SessionKey::parse(&format!("dsh:{}", world.parent)).unwrap();
        assert!(!door.can_fork(&other));
        assert!(matches!(door.header(&other), Err(SessionError::NotFound(_))));
        assert!(matches!(door.header(&world.key("none")), Err(SessionError::NotFound(_))));
        assert_eq!(door.location(&other), None);
        assert_eq!(tree(world.home.path()), before);
    }
}

#[test]
fn sessions_are_found_by_their_directory() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let here = world.door().working_in(Path::new("/home/user/shop")).unwrap();
        assert_eq!(here.iter().map(|resident| resident.key.clone()).collect::<Vec<_>>(), [world.source()], "{client}");
        assert!(world.door().working_in(Path::new("/home/user")).unwrap().is_empty());
        let away = match client {
            "claude" => World::door(&World { home: tempfile::tempdir().unwrap(), ..World::new(client, &three()) }),
            _ => continue,
        };
        assert!(away.working_in(Path::new("/home/user/shop")).unwrap().is_empty());
    }
}

#[test]
fn the_client_s_own_key_says_which_turn_it_is() {
    for client in CLIENTS {
        let world = World::new(client, &three());
        let turn = |anchor: &str| world.door().turn_of_anchor(&world.source(), anchor).unwrap();
        assert_eq!((turn(&key_of(2)), turn("nobody")), (Some(Turn(2)), None), "{client}");
    }
}

/// Claude Code goes back inside a log: what lies before the next prompt is where it went back to.
#[test]
fn claude_went_back_inside_its_log() {
    let mut world = World::new("claude", &three());
    let mut lines = world.lines();
    let rows: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let second = rows.iter().find(|row| row["message"]["content"] == "second").unwrap();
    let mut again = second.clone();
    again["uuid"] = json!(id_of(0xdd, 1));
    again["promptId"] = json!(key_of(4));
    again["message"]["content"] = json!("second, anew");
    lines.push(again.to_string());
    world.write(&lines);
    let door = world.door();
    let beats = door.beats(&world.source(), Seq(0)).unwrap();
    let start = beats.iter().find(|(_, beat)| *beat == Beat::TurnStart(Turn(4))).unwrap().0;
    let before = checkpoint_core::boundary_before(&beats, start).unwrap();
    let request = world.request(Some(before), 1);
    let made = door.fork(&request).unwrap();
    assert_eq!(made.seed_length, 2);
    let all = world.rows(&request.child).iter().map(Value::to_string).collect::<String>();
    assert!(all.contains("done 1") && !all.contains("second"), "{all}");
    // The abandoned turns can still be gone back to.
    let third = world.request(world.end_of(3), 2);
    assert_eq!(door.fork(&third).unwrap().seed_length, 6);
    world.parent.clear();
}

/// A fork that Codex makes itself holds a pointer into its parent.
#[test]
fn a_codex_fork_by_reference_is_read_and_copied_whole() {
    let world = World::new("codex", &three());
    let lines = world.lines();
    let kept = lines.iter().position(|line| line.contains("task_complete")).unwrap() + 1;
    let bytes: usize = lines[..kept].iter().map(|line| line.len() + 1).sum();
    let (child, folder) = (id_of(3, 1), world.log().parent().unwrap().to_owned());
    let head = json!({"timestamp":"2026-03-02T00:00:00.000Z","ordinal":kept,"type":"session_meta","payload":{"id":child,"session_id":child,
        "forked_from_id":world.parent,"forked_from_ordinal_exclusive":kept,"cwd":"/home/user/shop","history_mode":"paginated",
        "history_base":{"thread_id":world.parent,"end_ordinal_exclusive":kept,"end_byte_offset":bytes}}});
    let more = transcripts::codex(&child, "/home/user/shop", &[Told::plain("of the fork")]);
    let mut own = vec![head.to_string()];
    own.extend(more[1..].iter().map(|line| line.replace(&key_of(1), &key_of(9))));
    let path = folder.join(format!("rollout-2026-03-02T00-00-00-{child}.jsonl"));
    fs::write(&path, own.join("\n") + "\n").unwrap();
    let door = world.door();
    let key = world.key(&child);
    let keys: Vec<_> = turn_keys("codex", &path).unwrap().into_iter().map(|key| key.key.unwrap()).collect();
    assert_eq!(keys, [key_of(1), key_of(9)]);
    assert_eq!(door.header(&key).unwrap().seed_length, 2);
    let beats = door.beats(&key, Seq(0)).unwrap();
    let boundary = boundary_of_turn(&beats, Turn(2));
    let request =
        ForkRequest { source: key.clone(), boundary, child: door.name_child(&key, &id_of(2, 1)), notice: None };
    door.fork(&request).unwrap();
    let rows = world.rows(&request.child);
    assert!(rows[0]["payload"].get("history_base").is_none());
    let ordinals: Vec<_> = rows.iter().map(|row| row["ordinal"].as_u64().unwrap()).collect();
    assert_eq!(ordinals, (0..rows.len() as u64).collect::<Vec<_>>());
    let all = rows.iter().map(Value::to_string).collect::<String>();
    assert!(all.contains("done 1") && all.contains("of the fork") && !all.contains("second"));
    // What it points to is gone, or another log by now.
    let whole = fs::read(world.log()).unwrap();
    fs::write(world.log(), [b"{}\n", &whole[..]].concat()).unwrap();
    assert_eq!(door.beats(&key, Seq(0)).unwrap_err().code(), "CORRUPT_LOG");
    fs::remove_file(world.log()).unwrap();
    let error = door.check_fork(&key, None).unwrap_err();
    assert_eq!(error.code(), "CORRUPT_LOG");
}

#[test]
fn a_codex_log_that_points_to_itself_is_refused() {
    let world = World::new("codex", &three());
    let mut lines = world.lines();
    let base = format!(
        r#""history_base":{{"thread_id":"{}","end_ordinal_exclusive":1,"end_byte_offset":9}},"history_mode""#,
        world.parent
    );
    lines[0] = lines[0].replace("\"history_mode\"", &base);
    world.write(&lines);
    assert_eq!(world.door().beats(&world.source(), Seq(0)).unwrap_err().code(), "CORRUPT_LOG");
}

/// After it was taken back a thread of Codex has a second file, which goes on from the first.
#[test]
fn the_newest_file_of_a_codex_thread_counts() {
    let world = World::new("codex", &three());
    let lines = world.lines();
    let kept = lines.iter().position(|line| line.contains("task_complete")).unwrap() + 1;
    let bytes: usize = lines[..kept].iter().map(|line| line.len() + 1).sum();
    let id = &world.parent;
    let head = json!({"timestamp":"x","ordinal":kept,"type":"session_meta","payload":{"id":id,"cwd":"/home/user/shop","history_mode":"paginated",
        "history_base":{"thread_id":id,"end_ordinal_exclusive":kept,"end_byte_offset":bytes}}});
    let path = world.log().with_file_name(format!("rollout-2026-03-03T00-00-00-{id}_{}.jsonl", id_of(4, 4)));
    fs::write(&path, format!("{head}\n")).unwrap();
    assert_eq!(world.door().location(&world.source()), Some(path));
    assert_eq!(world.door().beats(&world.source(), Seq(0)).unwrap().len(), 2);
}

/// A resume of Gemini CLI begins a second file, with the preamble alone, and goes on in the first.
#[test]
fn a_gemini_session_may_have_a_second_file_without_prompts() {
    let world = World::new("gemini", &three());
    let stub = world.log().with_file_name(format!("session-2026-03-02T10-00-{}.jsonl", &world.parent[..8]));
    fs::write(&stub, world.lines()[..2].join("\n") + "\n").unwrap();
    let door = world.door();
    assert_eq!(door.location(&world.source()), Some(world.log()));
    assert_eq!(door.working_in(Path::new("/home/user/shop")).unwrap().len(), 1);
    door.fork(&world.request(world.end_of(1), 1)).unwrap();
    // Two with prompts: nobody can tell which one is meant.
    fs::copy(world.log(), &stub).unwrap();
    assert_eq!(door.header(&world.source()).unwrap_err().code(), "CORRUPT_LOG");
    assert_eq!(door.working_in(Path::new("/home/user/shop")).unwrap().len(), 2, "the child and its parent");
}

fn told() -> impl Strategy<Value = Told> {
    ("[a-z\"\\\\é<]{1,12}", proptest::collection::vec(1..4usize, 0..3)).prop_map(|(prompt, batches)| Told {
        prompt: format!("p {prompt}"),
        batches,
        ended: true,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_session_is_cut_at_any_turn(turns in proptest::collection::vec(told(), 1..5), at in 0..5usize, junk in proptest::collection::vec(any::<u8>(), 0..30), place in any::<prop::sample::Index>()) {
        for client in CLIENTS {
            let world = World::new(client, &turns);
            let turn = u32::try_from(at % turns.len()).unwrap() + 1;
            let before = fs::read(world.log()).unwrap();
            let request = world.request(world.end_of(turn), 1);
            let made = world.door().fork(&request).unwrap();
            prop_assert_eq!(made.seed_length, u64::from(turn) * 2);
            prop_assert_eq!(&fs::read(world.log()).unwrap(), &before);
            // Damage anywhere is an error or a shorter log, never a panic, and never a change of the log.
            let mut bytes = before;
            let place = place.index(bytes.len() + 1);
            bytes.splice(place..place, junk.iter().copied());
            fs::write(world.log(), &bytes).unwrap();
            let door = world.door();
            if let Ok(beats) = door.beats(&world.source(), Seq(0))
                && let Some((seq, _)) = beats.iter().rev().find(|(_, beat)| matches!(beat, Beat::TurnEnd(_)))
            {
                let boundary = boundary_at(&world.source(), &beats, *seq).ok();
                drop(door.fork(&world.request(boundary, 2)));
            }
            prop_assert_eq!(fs::read(world.log()).unwrap(), bytes);
        }
    }
}
