//! The tools of 003 over logs in memory and a real file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use checkpoint_core::{Held, PointId, Step, Timestamp, Turn};
use testkit::{Host, MemoryLog};

use super::*;

#[derive(Debug)]
struct At(i64);

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp(self.0)
    }
    fn sleep(&self, _: Duration) {}
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

const NOW: At = At(1_796_063_305_215);

fn key(id: &str) -> SessionKey {
    SessionKey::new("dsh", id).unwrap()
}

fn turn(logs: &MemoryLog, session: &SessionKey, n: u32) -> Seq {
    logs.push(session, Beat::TurnStart(Turn(n)));
    logs.push(session, Beat::StepStart(Turn(n), Step(1)));
    logs.push(session, Beat::TurnEnd(Turn(n)))
}

struct Scene {
    scratch: tempfile::TempDir,
    logs: MemoryLog,
    file: DurablePoints,
}

/// Sessions `a` and `b`, without a turn.
fn scene() -> Scene {
    let scratch = tempfile::tempdir().unwrap();
    let (logs, file) = (MemoryLog::default(), DurablePoints::new(scratch.path()));
    for id in ["a", "b"] {
        logs.start(&key(id));
    }
    Scene { scratch, logs, file }
}

impl Scene {
    fn tools(&self) -> NamedPoints<'_> {
        NamedPoints::new(&self.file, &self.logs, &NOW)
    }
    fn text(&self) -> String {
        std::fs::read_to_string(self.file.path()).unwrap_or_default()
    }
}

#[test]
fn tq01_tq04_a_line_names_the_last_completed_turn_even_while_one_is_open() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    let end = turn(&scene.logs, &key("a"), 2);
    scene.logs.push(&key("a"), Beat::TurnStart(Turn(3)));
    let (line, boundary) = scene.tools().checkpoint(&key("a"), " green ", Some(" all tests pass ")).unwrap();
    assert_eq!((line.seq, boundary.seq()), (end, end));
    let first = "- [2026-11-30T18:28:25.215Z] green | session=a | seq=6 | all tests pass\n";
    assert_eq!(scene.text(), first);
    scene.tools().checkpoint(&key("a"), "again", Some("  ")).unwrap();
    assert_eq!(scene.text(), format!("{first}- [2026-11-30T18:28:25.215Z] again | session=a | seq=6\n"));
}

#[test]
fn tq03_without_a_completed_turn_the_file_is_untouched() {
    let scene = scene();
    scene.logs.push(&key("a"), Beat::TurnStart(Turn(1)));
    assert_eq!(scene.tools().checkpoint(&key("a"), "x", None).unwrap_err().code(), "NO_COMPLETED_TURN");
    assert_eq!(scene.tools().checkpoint(&key("none"), "x", None).unwrap_err().code(), "SESSION_NOT_FOUND");
    turn(&scene.logs, &key("b"), 1);
    assert_eq!(scene.tools().checkpoint(&key("b"), "x | y", None).unwrap_err().code(), "BAD_LABEL");
    assert_eq!(scene.tools().checkpoint(&key("b"), "x", Some("y\nz")).unwrap_err().code(), "BAD_LABEL");
    assert!(!scene.scratch.path().join(".dsh").exists());
}

#[test]
fn tq06_root_sessions_name_every_turn_and_a_failure_of_it_fails_nothing() {
    let scene = scene();
    assert_eq!(scene.tools().turn_closed(&key("a"), TurnClose::Normal, true), None, "no turn, and no panic");
    turn(&scene.logs, &key("a"), 1);
    assert_eq!(scene.tools().turn_closed(&key("a"), TurnClose::Normal, false), None);
    assert_eq!(scene.text(), "");
    scene.tools().turn_closed(&key("a"), TurnClose::Normal, true).unwrap();
    scene.tools().turn_closed(&key("a"), TurnClose::Failed, true).unwrap();
    let labels: Vec<String> = scene.tools().list().unwrap().into_iter().map(|line| line.label).collect();
    assert_eq!(labels, [AUTO_TURN, AUTO_ERROR]);
    std::fs::remove_file(scene.file.path()).unwrap();
    std::fs::create_dir(scene.file.path()).unwrap();
    assert_eq!(scene.tools().turn_closed(&key("a"), TurnClose::Normal, true), None, "the file cannot be written");
}

#[test]
fn tq07_the_limit_lets_automatic_lines_go_first() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    let tools = scene.tools().with_limit(2);
    tools.checkpoint(&key("a"), "one", None).unwrap();
    for _ in 0..5 {
        tools.turn_closed(&key("a"), TurnClose::Normal, true).unwrap();
    }
    tools.checkpoint(&key("a"), "two", None).unwrap();
    let labels = || tools.list().unwrap().into_iter().map(|line| line.label).collect::<Vec<_>>();
    assert_eq!(labels(), ["one", "two"]);
    tools.checkpoint(&key("a"), "three", None).unwrap();
    assert_eq!(labels(), ["two", "three"]);
    assert_eq!(DEFAULT_LIMIT, 200);
}

#[test]
fn tq09_the_newest_line_of_that_label_of_that_session() {
    let scene = scene();
    let first = turn(&scene.logs, &key("a"), 1);
    scene.tools().checkpoint(&key("a"), "x", None).unwrap();
    let second = turn(&scene.logs, &key("a"), 2);
    scene.tools().checkpoint(&key("a"), "x", None).unwrap();
    turn(&scene.logs, &key("b"), 1);
    scene.tools().checkpoint(&key("b"), "x", None).unwrap();
    assert!(first < second);
    let before = scene.logs.tail(&key("a"));
    let (line, child) = scene.tools().rewind(&key("a"), "x", "child", &[]).unwrap();
    assert_eq!((line.seq, child.parent, child.seed_length), (second, Some(key("a")), second.0 + 1));
    assert_eq!(scene.logs.tail(&key("a")), before, "the source is left alone");
}

#[test]
fn tq10_a_label_of_another_session_makes_no_child() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    scene.tools().checkpoint(&key("a"), "x", None).unwrap();
    turn(&scene.logs, &key("b"), 1);
    let sessions = scene.logs.sessions().len();
    assert_eq!(scene.tools().rewind(&key("b"), "x", "c", &[]).unwrap_err().code(), "LABEL_OF_OTHER_SESSION");
    assert_eq!(scene.tools().rewind(&key("b"), "y", "c", &[]).unwrap_err().code(), "LABEL_NOT_FOUND");
    assert_eq!(scene.logs.sessions().len(), sessions);
    scene.logs.host(Host::Refuses);
    assert_eq!(scene.tools().rewind(&key("a"), "x", "c", &[]).unwrap_err().code(), "FORK_FAILED");
}

#[test]
fn tq12_the_list_passes_over_what_is_no_line() {
    let scene = scene();
    let text = "# Mine\n- [2026-11-30T14:05:00Z] good | session=a | seq=3 | n\n- [x] todo\n- good | seq=1\n";
    assert!(scene.file.replace(None, text.as_bytes()).unwrap());
    let list = scene.tools().list().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].label.as_str(), list[0].note.as_deref()), ("good", Some("n")));
    assert_eq!(scene.text(), text);
}

/// The log was replaced or cut since: the position is not there, lies in a turn, or is no end of one.
#[test]
fn k45_a_position_that_is_no_boundary_any_more_is_refused() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    let line = |seq: u64| format!("- [2026-11-30T14:05:00Z] x{seq} | session=a | seq={seq}\n");
    assert!(scene.file.replace(None, [0, 1, 2, 3, 9].map(line).concat().as_bytes()).unwrap());
    let codes =
        [0, 1, 2, 3, 9].map(|n| scene.tools().rewind(&key("a"), &format!("x{n}"), "c", &[]).err().map(|e| e.code()));
    let (invalid, open) = (Some("INVALID_BOUNDARY"), Some("OPEN_TURN"));
    assert_eq!(codes, [invalid, open, open, None, invalid]);
}

/// The log lost its end and used the position again, for another end of a turn: only the digest tells.
#[test]
fn k45_a_position_that_was_used_again_is_refused_where_the_index_has_its_digest() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    let (line, boundary) = scene.tools().checkpoint(&key("a"), "x", None).unwrap();
    let prefix = Some(scene.logs.prefix_digest(&key("a"), boundary.seq()).unwrap());
    let name = |at: i64, prefix: &Option<String>| Name {
        label: line.label.clone(),
        point: PointId::from_bytes([1; 16]),
        session: key("a"),
        boundary: Some(boundary),
        note: None,
        at: Timestamp(at),
        prefix: prefix.clone(),
    };
    let at = NOW.now().0;
    scene.tools().rewind(&key("a"), "x", "same", &[name(at, &prefix)]).unwrap();
    scene.logs.lose(&key("a"), boundary.seq());
    scene.logs.push(&key("a"), Beat::TurnEnd(Turn(1)));
    let refused = scene.tools().rewind(&key("a"), "x", "other", &[name(at, &prefix)]).unwrap_err();
    assert_eq!((refused.code(), scene.logs.sessions().len()), ("PREFIX_CHANGED", 3));
    // A name from before the line was set says nothing of it.
    scene.tools().rewind(&key("a"), "x", "later", &[name(at - 1, &prefix)]).unwrap();
}

/// K-43: two that prune at once lost lines. Every thread opens the file and its lock anew, as processes do.
#[test]
fn tq13_concurrent_appends_lose_nothing() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (root, logs) = (scene.scratch.path(), &scene.logs);
            scope.spawn(move || {
                let file = DurablePoints::new(root);
                let tools = NamedPoints::new(&file, logs, &NOW);
                for n in 0..10 {
                    tools.checkpoint(&key("a"), &format!("w{writer} n{n}"), None).unwrap();
                }
            });
        }
    });
    let mut labels: Vec<String> = scene.tools().list().unwrap().into_iter().map(|line| line.label).collect();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), 40);
}

/// A file that an editor saves, by a new file in its place, whenever it has been read so often.
#[derive(Debug)]
struct Edited(DurablePoints, AtomicUsize);

impl PointsFile for Edited {
    fn lock(&self) -> Result<Box<dyn Held>, PointsFileError> {
        self.0.lock()
    }

    fn read(&self) -> Result<Option<Vec<u8>>, PointsFileError> {
        let read = self.0.read()?;
        if self.1.load(Ordering::SeqCst) > 0 {
            let left = self.1.fetch_sub(1, Ordering::SeqCst);
            let new = self.0.path().with_extension("new");
            let text = [read.as_deref().unwrap_or_default(), format!("mine {left}\n").as_bytes()].concat();
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, self.0.path()).unwrap();
        }
        Ok(read)
    }

    fn replace(&self, before: Option<&[u8]>, bytes: &[u8]) -> Result<bool, PointsFileError> {
        self.0.replace(before, bytes)
    }
}

/// K-43: an editor knows no lock. What it saves while a line is added is kept, and so is the line.
#[test]
fn k43_what_an_editor_saves_meanwhile_is_kept() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    let file = Edited(scene.file.clone(), AtomicUsize::new(3));
    NamedPoints::new(&file, &scene.logs, &NOW).checkpoint(&key("a"), "good", None).unwrap();
    let text = scene.text();
    assert!(text.starts_with("mine 3\nmine 2\nmine 1\n- ["), "{text}");
    // Somebody who never stops is named.
    let file = Edited(scene.file.clone(), AtomicUsize::new(1000));
    let error = NamedPoints::new(&file, &scene.logs, &NOW).checkpoint(&key("a"), "late", None).unwrap_err();
    assert_eq!(error.code(), "busy");
    assert_eq!(scene.tools().list().unwrap().len(), 1);
}

#[test]
fn names_of_the_index_and_lines_of_the_file_are_read_together() {
    let scene = scene();
    turn(&scene.logs, &key("a"), 1);
    let (line, boundary) = scene.tools().checkpoint(&key("a"), "both", None).unwrap();
    let name = |label: &str, boundary, at| Name {
        label: label.into(),
        point: PointId::from_bytes([1; 16]),
        session: key("a"),
        boundary,
        note: Some("n".into()),
        at: Timestamp(at),
        prefix: None,
    };
    let names = [
        name("both", Some(boundary), 1),
        name("only in the index", Some(boundary), 2),
        name("of files alone", None, 3),
    ];
    let merged = merge(std::slice::from_ref(&line), &names);
    assert_eq!(merged.iter().map(|line| line.label.as_str()).collect::<Vec<_>>(), ["only in the index", "both"]);
    assert_eq!(merged[0].seq, boundary.seq());
}
