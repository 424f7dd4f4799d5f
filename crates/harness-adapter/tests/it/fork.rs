//! Children cut off sessions (004-30 to 33), and what the checklist for a forker asks for.

use std::{fs, path::Path, sync::Arc};

use checkpoint_core::{
    Clock, ForkRequest, IdSource, LogEvent, Seq, SessionKey, SessionLog, SurfaceOp, Timestamp, boundary_at,
};
use harness_adapter::sessions::dsh::{ChildSpec, Cut, DshLogs, row_of};

use crate::world::{Home, PROJECT, decoded, fixture, frames};

/// Stands still.
#[derive(Debug)]
pub(crate) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp(1_796_000_000_000)
    }
    fn sleep(&self, _: std::time::Duration) {}
    fn read_local(&self, _: &str) -> Option<Timestamp> {
        None
    }
}

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct Counter(std::sync::atomic::AtomicU8);

impl IdSource for Counter {
    fn next(&self) -> [u8; 16] {
        [self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed); 16]
    }
}

pub(crate) fn logs(home: &Home) -> DshLogs {
    home.logs().with_clock(Arc::new(Noon)).with_ids(Arc::new(Counter::default()))
}

fn at(seq: u64) -> ChildSpec {
    ChildSpec { cut: Cut::At(Seq(seq)), child: Some("child".into()), ..ChildSpec::default() }
}

/// Rows of a log without its header, and that header.
fn split(path: &Path) -> (String, Vec<String>) {
    let text = decoded(path);
    let mut lines = text.lines().map(ToOwned::to_owned);
    (lines.next().unwrap(), lines.collect())
}

/// The bytes of the prefix are those of the parent, and an end-seed follows with the time of the last of them.
#[test]
fn c004_33_a_child_is_the_parents_prefix_and_an_end_seed() {
    let home = Home::of(&["02-edits-3turn"]);
    let forked = logs(&home).fork_at("edits3", Some(Seq(101)), Some("child"), None).unwrap();
    assert_eq!((forked.seed_length, forked.boundary, forked.closers, forked.events), (102, Some(Seq(101)), 0, 103));
    assert_eq!(home.new_files(), std::slice::from_ref(&forked.path), "nothing else is left");
    let parent = home.sessions().join(PROJECT).join("edits3/session.jsonl.zstd");
    let ((header, mut rows), (_, parents)) = (split(&forked.path), split(&parent));
    assert_eq!(
        header,
        r#"{"type":"session","version":0,"id":"child","createdAt":1796000000000,"cwd":"/home/user/shop","parentSession":"edits3","seedLength":102,"delegationDepth":0}"#
    );
    let last = rows.pop().unwrap();
    assert!(rows.iter().zip(&parents).all(|(own, parents)| own == parents));
    assert!(rows.last().unwrap().starts_with(r#"{"type":"turn/end","seq":101,"#));
    assert_eq!(last, r#"{"type":"session/end-seed","seq":102,"time":1796063287832,"data":{}}"#);
    assert_eq!(home.logs().load("child").unwrap().events, 103);
    assert_eq!(home.logs().host_list().unwrap(), 2);
}

/// The plan knows the digest of what it cuts: a log that is another one by now is not cut, and nothing is left.
#[test]
fn a_log_that_is_another_one_since_the_plan_makes_no_child() {
    let home = Home::of(&["02-edits-3turn"]);
    let logs = logs(&home);
    let key = SessionKey::new("dsh", "edits3").unwrap();
    let planned = logs.prefix_digest(&key, Seq(101)).unwrap();
    let boundary = boundary_at(&key, &logs.beats(&key, Seq(0)).unwrap(), Seq(101)).ok();
    let request = |child: &str| ForkRequest { source: key.clone(), boundary, child: child.into(), notice: None };
    let refused = logs.fork_exactly(&request("child"), &"0".repeat(64)).unwrap_err();
    assert_eq!(refused.code(), "PREFIX_CHANGED", "{refused}");
    assert!(home.new_files().is_empty());
    assert_eq!(logs.fork_exactly(&request("child"), &planned).unwrap().seed_length, 102);
}

/// What the running host made of the same request (case 04), but for its id, its time of creation and the time of its
/// end-seed: the host writes the present time there, the checklist has that of the last event.
#[test]
fn c004_33_children_are_those_of_the_host() {
    let home = Home::of(&["04-fork-live-store/after-fork"]);
    for (seq, hosts) in [(Some(Seq(101)), "fork-live"), (None, "fork-whole")] {
        let child = format!("own-{hosts}");
        let forked = home.logs().fork_at("parent", seq, Some(&child), None).unwrap();
        let rows = |id: &str| home.logs().events(id).unwrap().iter().map(row_of).collect::<Vec<_>>();
        let (own, theirs) = (rows(&child), rows(hosts));
        assert_eq!(own.len(), theirs.len());
        let differing: Vec<usize> = (0..own.len()).filter(|at| own[*at] != theirs[*at]).collect();
        assert_eq!(differing, [own.len() - 1]);
        assert!(own.last().unwrap().starts_with(r#"{"type":"session/end-seed","#));
        let (own, theirs) = (home.logs().inspect(&child).unwrap().header, home.logs().inspect(hosts).unwrap().header);
        assert_eq!((own.cwd, own.parent, own.seed_length), (theirs.cwd, theirs.parent, theirs.seed_length));
        assert_eq!(forked.seed_length, theirs.seed_length.unwrap());
    }
}

#[cfg(unix)]
#[test]
fn children_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::of(&["01-plain-2turn"]);
    let forked = logs(&home).fork_at("plain2", None, None, None).unwrap();
    assert!(forked.child.starts_with("session-") && forked.child.len() == 44, "{}", forked.child);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&forked.path), mode(forked.path.parent().unwrap())), (0o600, 0o700));
}

/// TN25: an empty session, and a cut before the first turn.
#[test]
fn tn25_an_empty_child_has_a_parent_and_no_events() {
    let mut home = Home::of(&[]);
    home.add(&fixture("cases/16-forged/forged/v-headeronly"));
    let forked = logs(&home).fork_at("v-headeronly", None, Some("child"), None).unwrap();
    assert_eq!((forked.seed_length, forked.boundary, forked.events), (0, None, 0));
    assert_eq!(home.logs().load("child").unwrap().events, 0);

    let home = Home::of(&["02-edits-3turn"]);
    let spec = ChildSpec { cut: Cut::Empty, notice: Some("start again".into()), ..at(0) };
    let forked = logs(&home).write_child("edits3", &spec).unwrap();
    assert_eq!((forked.seed_length, forked.events), (0, 1));
    let header = home.logs().load("child").unwrap().header;
    assert_eq!(header.parent.unwrap().to_string(), "edits3");
}

#[test]
fn tn26_the_default_is_the_last_event() {
    let home = Home::of(&["12-plaintext-unpacked"]);
    let forked = logs(&home).fork_at("plain-unpacked", None, Some("child"), None).unwrap();
    assert_eq!(forked.boundary, Some(Seq(49)));
    assert!(forked.path.ends_with("child/session.jsonl"), "the encoding is the parent's");
    assert_eq!(home.logs().load("child").unwrap().events, 51);
}

#[test]
fn tn28_an_open_tail_after_the_cut_does_not_matter() {
    for (case, id, seq) in [("06-killed-mid-stream/before", "killstream", 33), ("15-torn-zstd/before", "torn", 33)] {
        let home = Home::of(&[case]);
        let seen = home.logs().inspect(id).unwrap();
        let boundary = seen.boundaries[0].seq;
        assert!(boundary.0 <= seq + 1 && seen.open_turn.is_some(), "{boundary}");
        logs(&home).fork_at(id, Some(boundary), Some("child"), None).unwrap();
        assert_eq!(home.logs().load("child").unwrap().events, boundary.0 + 2);
        let error = logs(&home).fork_at(id, None, Some("other"), None).unwrap_err();
        assert_eq!(error.code(), "OPEN_TURN");
        assert!(error.to_string().contains("inside turn 2, before its end"), "{error}");
    }
}

/// Completed, aborted and interrupted turns alike, and events between turns.
#[test]
fn tn29_every_end_of_a_turn_is_a_boundary() {
    for (case, id) in [("08-cancelled-by-user", "cancelled"), ("06-killed-mid-stream/after-resume", "killstream")] {
        let home = Home::of(&[case]);
        for (number, boundary) in home.logs().inspect(id).unwrap().boundaries.iter().enumerate() {
            let child = format!("child{number}");
            logs(&home).fork_at(id, Some(boundary.seq), Some(&child), None).unwrap();
            assert!(home.logs().load(&child).is_ok(), "{case} {child} {}", boundary.reason);
        }
    }
    let home = Home::of(&["02-edits-3turn"]);
    for seq in [0, 3, 61] {
        let forked = logs(&home).fork_at("edits3", Some(Seq(seq)), Some(&format!("between{seq}")), None).unwrap();
        assert_eq!(forked.seed_length, seq + 1);
    }
}

/// Every position of a log, in both encodings: a child up to there, or the contract's refusal and nothing left behind.
#[test]
fn tn31_every_position_is_a_child_or_a_refusal() {
    for (case, id) in [("02-edits-3turn", "edits3"), ("11-plaintext-packed", "plain-packed")] {
        let home = Home::of(&[case]);
        let key = SessionKey::new("dsh", id).unwrap();
        let beats = home.logs().beats(&key, Seq(0)).unwrap();
        let mut made = 0;
        for seq in 0..=beats.len() as u64 + 1 {
            let expected = boundary_at(&key, &beats, Seq(seq));
            let child = format!("child-{seq}");
            let before = home.new_files();
            match (home.logs().fork_at(id, Some(Seq(seq)), Some(&child), None), expected) {
                (Ok(forked), Ok(_)) => {
                    made += 1;
                    assert_eq!(forked.seed_length, seq + 1);
                    let child = SessionKey::new("dsh", &child).unwrap();
                    let digests = [&key, &child].map(|key| home.logs().prefix_digest(key, Seq(seq)).unwrap());
                    assert_eq!(digests[0], digests[1]);
                }
                (Err(error), Err(expected)) => {
                    assert_eq!(error.code(), expected.code(), "{seq}");
                    assert_eq!(home.new_files(), before);
                    assert!(!home.sessions().join(PROJECT).join(&child).exists(), "no folder is left");
                }
                (got, expected) => panic!("{seq}: {got:?}, {expected:?}"),
            }
        }
        assert!(made > 4);
    }
    let home = Home::of(&["02-edits-3turn"]);
    let error = logs(&home).fork_at("edits3", Some(Seq(u64::MAX)), None, None).unwrap_err();
    assert_eq!(error.code(), "INVALID_BOUNDARY");
    assert!(error.to_string().contains("its last one is 147"), "{error}");
}

#[test]
fn tn32_a_corrupt_source_is_rejected() {
    let home = Home::of(&["09-two-processes"]);
    assert_eq!(logs(&home).fork_at("shared", Some(Seq(20)), None, None).unwrap_err().code(), "CORRUPT_LOG");
    for variant in ["v-badsum", "v-garbage", "v-nodata", "v-gap"] {
        let mut home = Home::of(&[]);
        home.add(&fixture("cases/16-forged/forged").join(variant));
        assert_eq!(logs(&home).fork_at(variant, Some(Seq(60)), None, None).unwrap_err().code(), "CORRUPT_LOG");
        assert!(home.new_files().is_empty());
    }
}

/// A session that the host refuses for an unknown event goes on in a child that is cut before it.
#[test]
fn tn53_an_unknown_event_forbids_only_cuts_behind_it() {
    let home = Home::of(&["03-unknown-event"]);
    logs(&home).fork_at("noisy", Some(Seq(147)), Some("child"), None).unwrap();
    assert!(home.logs().load("child").is_ok());
    let boundary = home.logs().inspect("noisy").unwrap().boundaries.last().unwrap().seq;
    assert!(boundary.0 > 154);
    assert_eq!(logs(&home).fork_at("noisy", Some(boundary), None, None).unwrap_err().code(), "UNKNOWN_EVENT");
}

#[test]
fn tn37_a_taken_id_is_refused_and_its_log_kept() {
    let mut home = Home::of(&["02-edits-3turn"]);
    home.put("--elsewhere--", "taken", "session.jsonl.zstd", b"anything");
    home.put("--elsewhere--", "newer", "session.v4.jsonl.zstd", b"anything");
    for id in ["edits3", "taken", "newer"] {
        let error = logs(&home).fork_at("edits3", Some(Seq(60)), Some(id), None).unwrap_err();
        assert_eq!(error.code(), "SESSION_ALREADY_EXISTS", "{id}");
        assert!(home.new_files().is_empty());
    }
}

#[test]
fn tn38_a_taken_id_is_told_before_anything_else() {
    let home = Home::of(&["02-edits-3turn"]);
    for (parent, seq) in [("edits3", 9999), ("edits3", 20), ("nobody", 60)] {
        let error = logs(&home).fork_at(parent, Some(Seq(seq)), Some("edits3"), None).unwrap_err();
        assert_eq!(error.code(), "SESSION_ALREADY_EXISTS");
    }
}

/// TN34, TN35: a session that is not there; the difference of detached and stale objects is one of a running host's.
#[test]
fn tn34_a_missing_parent_is_not_found() {
    let home = Home::of(&["02-edits-3turn"]);
    assert_eq!(logs(&home).fork_at("nobody", None, None, None).unwrap_err().code(), "SESSION_NOT_FOUND");
    let mut home = Home::of(&[]);
    home.put(PROJECT, "empty", "notes.txt", b"");
    assert_eq!(logs(&home).fork_at("empty", None, None, None).unwrap_err().code(), "SESSION_NOT_FOUND");
}

#[test]
fn ids_that_no_key_has_are_refused() {
    let home = Home::of(&["02-edits-3turn"]);
    for id in ["", "..", "../x", "a/b", "a b", "-x", &"x".repeat(129)] {
        assert_eq!(logs(&home).fork_at("edits3", Some(Seq(60)), Some(id), None).unwrap_err().code(), "BAD_SESSION_ID");
    }
}

/// A folder without a log is what a crash leaves between its making and the log's: the next try uses it.
#[test]
fn a_folder_without_a_log_is_used() {
    let mut home = Home::of(&["02-edits-3turn"]);
    home.put(PROJECT, "child", "session.jsonl.zstd.0123456789ab.tmp", b"left over");
    logs(&home).fork_at("edits3", Some(Seq(60)), Some("child"), None).unwrap();
    assert!(home.logs().load("child").is_ok());
}

/// A link in the place of the child's folder is not followed.
#[cfg(unix)]
#[test]
fn a_link_in_the_childs_place_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let home = Home::of(&["02-edits-3turn"]);
    std::os::unix::fs::symlink(elsewhere.path(), home.sessions().join(PROJECT).join("child")).unwrap();
    let error = logs(&home).fork_at("edits3", Some(Seq(60)), Some("child"), None).unwrap_err();
    assert_eq!(error.code(), "SESSION_ALREADY_EXISTS");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// A child in a folder that the host refuses as a whole would be of no use.
#[test]
fn a_refused_folder_gets_no_child() {
    for (variant, code) in [("v-plainsuffix", "MIXED_ENCODINGS"), ("v-flat", "FLAT_LAYOUT")] {
        let mut home = Home::of(&["16-forged/parent"]);
        home.add(&fixture("cases/16-forged/forged").join(variant));
        assert_eq!(logs(&home).fork_at("forge-parent", None, None, None).unwrap_err().code(), code);
        assert!(home.new_files().is_empty());
    }
    for (variant, code) in [("v-version1", "UNSUPPORTED_VERSION"), ("v-wrongproj", "MISPLACED_LOG")] {
        let mut home = Home::of(&[]);
        home.add(&fixture("cases/16-forged/forged").join(variant));
        assert_eq!(logs(&home).fork_at(variant, None, None, None).unwrap_err().code(), code);
        assert!(home.new_files().is_empty());
    }
}

/// The notice is the last event, a message that the host's reader accepts, with an id of its own.
#[test]
fn the_notice_stands_at_the_tail() {
    let home = Home::of(&["02-edits-3turn"]);
    let text = "Files were put back: \"read\" before you edit.\n";
    logs(&home).fork_at("edits3", Some(Seq(101)), Some("child"), Some(text)).unwrap();
    let events = home.logs().events("child").unwrap();
    assert_eq!((events.len(), &*events[102].kind), (104, "session/end-seed"));
    assert_eq!(
        row_of(&events[103]),
        r#"{"type":"user/message","seq":103,"time":1796000000000,"data":{"content":[{"type":"text","text":"Files were put back: \"read\" before you edit.\n"}],"source":{"kind":"plugin","plugin":"rwd","form":"notice"},"role":"user","id":"00000000-0000-4000-8000-000000000000"},"surfaceOp":"append"}"#
    );
    assert!(home.logs().load("child").is_ok());
    assert_eq!(home.logs().inspect("child").unwrap().header.seed_length, Some(102), "the notice is the child's own");
}

/// The cut moves on over what lies between two turns only when asked.
#[test]
fn a_cut_can_take_in_what_lies_between_turns() {
    let home = Home::of(&["02-edits-3turn", "03-unknown-event"]);
    let extended = logs(&home).write_child("edits3", &ChildSpec { extend: true, ..at(60) }).unwrap();
    assert_eq!((extended.boundary, extended.seed_length), (Some(Seq(61)), 62), "up to before turn 2");
    let last = ChildSpec { extend: true, child: Some("last".into()), ..at(147) };
    assert_eq!(logs(&home).write_child("edits3", &last).unwrap().boundary, Some(Seq(147)));
    let inside = ChildSpec { extend: true, child: Some("inside".into()), ..at(70) };
    assert_eq!(logs(&home).write_child("edits3", &inside).unwrap_err().code(), "OPEN_TURN");
}

/// A cut inside a packed row, inside an open turn that is closed: the row is written as events up to the cut.
#[test]
fn c003_07_an_open_turn_can_be_closed_in_the_child() {
    let home = Home::of(&["02-edits-3turn"]);
    for seq in 4..60 {
        let child = format!("child{seq}");
        let spec = ChildSpec { close_open_turn: true, child: Some(child.clone()), ..at(seq) };
        let forked = logs(&home).write_child("edits3", &spec).unwrap();
        assert_eq!(forked.seed_length, seq + 1);
        assert!(forked.closers > 0);
        let events = home.logs().events(&child).unwrap();
        let at = usize::try_from(seq).unwrap();
        assert_eq!(&*events[at + 1].kind, "session/end-seed");
        assert_eq!(&*events.last().unwrap().kind, "turn/end");
        assert_eq!(events.len() as u64, seq + 2 + forked.closers);
        assert!(home.logs().load(&child).is_ok(), "{seq}");
        assert_eq!(home.logs().inspect(&child).unwrap().open_turn, None);
    }
}

/// What a fold does: a message takes the place of others (001). A replacement that breaks a rule makes no child.
#[test]
fn children_can_have_events_added() {
    let home = Home::of(&["02-edits-3turn"]);
    let surface: Vec<Seq> =
        home.logs().events("edits3").unwrap().iter().filter(|event| event.surface.is_some()).map(|e| e.seq).collect();
    let upto: Vec<Seq> = surface.into_iter().filter(|seq| seq.0 <= 101).collect();
    let data = r#"{"id":"r","role":"user","source":{"kind":"plugin","plugin":"x"},"content":[{"type":"text","text":"report"}]}"#;
    let report = LogEvent {
        seq: Seq(0),
        time: 5,
        kind: "user/message".into(),
        data: serde_json::value::RawValue::from_string(data.into()).unwrap().into(),
        surface: Some(SurfaceOp::Replace { start: upto[2], end: upto[4] }),
        sources: Some(upto[2..=4].to_vec()),
        ignorable: false,
    };
    let spec = ChildSpec { events: vec![report.clone()], ..at(101) };
    assert_eq!(logs(&home).write_child("edits3", &spec).unwrap().events, 104);
    assert!(home.logs().load("child").is_ok());
}

/// A child that does not read back as the host would read it is taken away again, and its folder with it.
#[test]
fn tn43_a_child_that_fails_leaves_nothing() {
    for (case, id) in [("02-edits-3turn", "edits3"), ("11-plaintext-packed", "plain-packed")] {
        let home = Home::of(&[case]);
        let last = home.logs().events(id).unwrap().pop().unwrap();
        for bad in [
            LogEvent { kind: "x-probe/event".into(), ..last.clone() },
            LogEvent { surface: Some(SurfaceOp::Append), ..last.clone() },
            LogEvent { kind: "user/message".into(), ..last.clone() },
        ] {
            let spec =
                ChildSpec { cut: Cut::End, child: Some("bad".into()), events: vec![bad], ..ChildSpec::default() };
            assert_eq!(logs(&home).write_child(id, &spec).unwrap_err().code(), "READ_BACK_FAILED");
            assert!(!home.sessions().join(PROJECT).join("bad").exists());
            assert!(home.new_files().is_empty());
        }
    }
}

/// A prefix that ends in an end-seed gets no second one.
#[test]
fn an_end_seed_is_not_doubled() {
    let mut home = Home::of(&[]);
    home.add(&fixture("cases/16-forged/forged/v-good"));
    let forked = logs(&home).fork_at("v-good", None, Some("child"), None).unwrap();
    assert_eq!((forked.seed_length, forked.events), (103, 103));
}

/// Whole frames before the cut are the parent's bytes; only the frame with the cut is made anew.
#[test]
fn whole_frames_are_copied_as_they_are() {
    let home = Home::of(&["16-forged/parent"]);
    let parent = fs::read(home.sessions().join(PROJECT).join("forge-parent/session.jsonl.zstd")).unwrap();
    let forked = logs(&home).fork_at("forge-parent", Some(Seq(101)), Some("child"), None).unwrap();
    let child = fs::read(forked.path).unwrap();
    let (parents, own) = (frames(&parent), frames(&child));
    let same = own.iter().skip(1).zip(parents.iter().skip(1)).take_while(|(a, b)| a == b).count();
    assert!(same >= 3 && same + 2 >= own.len(), "{same} of {} frames", own.len());
    for frame in own {
        assert_eq!(frame[4] & 0b100, 0b100, "checksums are on");
    }
}

#[test]
fn the_engine_forks_and_finds_the_child_again() {
    let home = Home::of(&["02-edits-3turn"]);
    let sessions: &dyn SessionLog = &logs(&home);
    let source = SessionKey::new("dsh", "edits3").unwrap();
    let beats = sessions.beats(&source, Seq(0)).unwrap();
    let boundary = |seq| boundary_at(&source, &beats, Seq(seq)).ok();
    let request = ForkRequest {
        source: source.clone(),
        boundary: boundary(60),
        child: "child".into(),
        notice: Some("files were put back".into()),
    };
    assert_eq!(sessions.find_child(&request).unwrap(), None);
    let made = sessions.fork(&request).unwrap();
    assert_eq!((made.parent.as_ref(), made.seed_length), (Some(&source), 61));
    assert_eq!(sessions.find_child(&request).unwrap(), Some(made));
    assert_eq!(sessions.fork(&request).unwrap_err().code(), "SESSION_ALREADY_EXISTS");

    // Another cut, another parent, another content: never success.
    let other = ForkRequest { boundary: boundary(101), ..request.clone() };
    assert_eq!(sessions.find_child(&other).unwrap_err().code(), "SESSION_ALREADY_EXISTS");
    let stranger = ForkRequest { source: SessionKey::new("dsh", "nobody").unwrap(), ..request };
    assert_eq!(sessions.find_child(&stranger).unwrap_err().code(), "SESSION_ALREADY_EXISTS");
    let empty = ForkRequest { source, boundary: None, child: "empty".into(), notice: None };
    sessions.fork(&empty).unwrap();
    assert_eq!(sessions.find_child(&empty).unwrap().unwrap().seed_length, 0);
}

/// The same id, parent and length, and another event in the prefix: what the parent lost and got back after a crash.
#[test]
fn a_child_of_other_events_is_no_child() {
    let whole = Home::of(&["15-torn-plaintext/whole"]);
    let forked = logs(&whole).fork_at("torn", Some(Seq(65)), Some("child"), None).unwrap();
    let mut home = Home::of(&["15-torn-plaintext/after-load"]);
    home.put(PROJECT, "child", "session.jsonl", &fs::read(forked.path).unwrap());
    let source = SessionKey::new("dsh", "torn").unwrap();
    let beats = home.logs().beats(&source, Seq(0)).unwrap();
    let boundary = boundary_at(&source, &beats, Seq(65)).ok();
    let request = ForkRequest { source, boundary, child: "child".into(), notice: None };
    assert_eq!(home.logs().find_child(&request).unwrap_err().code(), "SESSION_ALREADY_EXISTS");
}
