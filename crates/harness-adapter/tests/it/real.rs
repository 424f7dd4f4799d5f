//! Logs as the host left them.

use std::{fs, ops::ControlFlow};

use checkpoint_core::{Beat, Seq, SessionKey, SessionLog, Turn};
use harness_adapter::sessions::dsh::{DshLogs, row_of};
use serde::Deserialize;

use crate::world::{Home, PROJECT, decoded, fixture};

/// Cases with one session each: how many events, which turns are closed, whether the host loads it.
const CASES: &[(&str, &str, u64, &[u32], bool)] = &[
    ("01-plain-2turn", "plain2", 50, &[1, 2], true),
    ("02-edits-3turn", "edits3", 148, &[1, 2, 3], true),
    ("03-unknown-event", "noisy", 181, &[1, 2, 3, 4, 5], false),
    ("06-killed-mid-stream/before", "killstream", 45, &[1], true),
    ("06-killed-mid-stream/after-resume", "killstream", 62, &[1, 2, 3], true),
    ("08-cancelled-by-user", "cancelled", 47, &[1, 2, 3], true),
    ("11-plaintext-packed", "plain-packed", 50, &[1, 2], true),
    ("12-plaintext-unpacked", "plain-unpacked", 50, &[1, 2], true),
    ("13-oneshot-tool-errors", "session-95fce520-38f8-4d96-ae5a-f4978bc95560", 0, &[1], true),
    ("14-hook-order", "hooks", 63, &[1], true),
    ("15-torn-plaintext/whole", "torn", 66, &[1, 2], true),
    ("15-torn-plaintext/before", "torn", 65, &[1], true),
    ("15-torn-plaintext/after-load", "torn", 66, &[1, 2], true),
    ("15-torn-plaintext/after-resume", "torn", 81, &[1, 2, 3], true),
    ("15-torn-zstd/whole", "torn", 66, &[1, 2], true),
    ("15-torn-zstd/before", "torn", 56, &[1], true),
    ("15-torn-zstd/after-load", "torn", 58, &[1, 2], true),
    ("15-torn-zstd/after-resume", "torn", 0, &[1, 2, 3], true),
    ("16-forged/parent", "forge-parent", 0, &[1, 2, 3], true),
];

#[test]
fn real_logs_are_read_to_their_end() {
    for (case, id, events, turns, loadable) in CASES {
        let home = Home::of(&[case]);
        let seen = home.logs().inspect(id).unwrap();
        if *events > 0 {
            assert_eq!(seen.events, *events, "{case}");
        }
        let closed: Vec<u32> = seen.boundaries.iter().map(|boundary| boundary.turn.0).collect();
        assert_eq!(&closed, turns, "{case}");
        assert_eq!(seen.loadable, *loadable, "{case}: {:?}", seen.problems);
        assert_eq!(home.logs().load(id).is_ok(), *loadable, "{case}");
        assert_eq!(home.logs().host_list().unwrap(), home.logs().list().unwrap().len());
    }
}

#[test]
fn tn53_an_unknown_event_refuses_the_log_and_can_be_read_past() {
    let home = Home::of(&["03-unknown-event"]);
    let error = home.logs().load("noisy").unwrap_err();
    assert_eq!(error.code(), "UNKNOWN_EVENT");
    assert!(error.to_string().contains("event 154 has the type \"x-probe/event\""), "{error}");
    let seen = home.logs().inspect("noisy").unwrap();
    assert_eq!((seen.problems.len(), seen.problems[0].seq), (1, Some(Seq(154))));
    assert_eq!(home.logs().events("noisy").unwrap().len(), 181);
}

#[test]
fn tn47_a_gap_before_a_committed_end_is_corrupt() {
    let home = Home::of(&["09-two-processes"]);
    let error = home.logs().load("shared").unwrap_err();
    assert_eq!(error.code(), "CORRUPT_LOG");
    assert!(error.to_string().contains("at row 38: expected event 37, got 22"), "{error}");
    let key = SessionKey::new("dsh", "shared").unwrap();
    assert_eq!(home.logs().beats(&key, Seq(0)).unwrap_err().code(), "CORRUPT_LOG");
    let mut before = 0;
    let failed = home.logs().for_each_event("shared", &mut |_| {
        before += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((failed.unwrap_err().code(), before), ("CORRUPT_LOG", 37));
}

#[test]
fn tn41_torn_tails_are_reported_and_never_cut() {
    for (case, id, offset, bytes, recovered, open) in [
        ("15-torn-plaintext/before", "torn", 22693, 81, 0, Some(2)),
        ("15-torn-zstd/before", "torn", 8577, 466, 0, Some(2)),
    ] {
        let home = Home::of(&[case]);
        let seen = home.logs().inspect(id).unwrap();
        let torn = seen.torn.unwrap();
        assert_eq!(seen.open_turn.map(|turn| turn.0), open, "{case}");
        let file = fs::metadata(&seen.path).unwrap().len();
        assert_eq!(torn.offset + torn.bytes, file, "{case}");
        assert_eq!((torn.offset, torn.bytes, torn.recovered), (offset, bytes, recovered), "{case}");
    }
    // Killed in mid-stream: what is on disk is whole, and a turn is open.
    let home = Home::of(&["06-killed-mid-stream/before"]);
    let seen = home.logs().inspect("killstream").unwrap();
    assert_eq!((seen.torn, seen.open_turn), (None, Some(Turn(2))));
}

/// The rows that the host packed, and the keys inside payloads, come back as they were.
#[test]
fn tn40_payloads_keep_their_bytes() {
    #[derive(Deserialize)]
    struct Row<'a> {
        seq: Option<u64>,
        #[serde(borrow)]
        data: &'a serde_json::value::RawValue,
    }
    for case in ["01-plain-2turn", "12-plaintext-unpacked", "14-hook-order"] {
        let home = Home::of(&[case]);
        for entry in home.logs().list().unwrap() {
            let events = home.logs().events(&entry.id).unwrap();
            let mut checked = 0;
            for line in decoded(&entry.path).lines().skip(1) {
                let row: Row<'_> = serde_json::from_str(line).unwrap();
                if let Some(seq) = row.seq {
                    assert_eq!(events[usize::try_from(seq).unwrap()].data.get(), row.data.get());
                    checked += 1;
                }
            }
            assert!(checked > 20);
        }
    }
    // Without packing every row is an event, and its bytes are those of ours.
    let home = Home::of(&["12-plaintext-unpacked"]);
    let rows: Vec<String> = home.logs().events("plain-unpacked").unwrap().iter().map(row_of).collect();
    let text = decoded(&home.logs().inspect("plain-unpacked").unwrap().path);
    assert!(text.contains(r#","sourceEventSeqs":["#), "the order of keys shows");
    assert_eq!(rows, text.lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn turns_have_prompts_and_reasons() {
    let home = Home::of(&["08-cancelled-by-user"]);
    let seen = home.logs().inspect("cancelled").unwrap();
    let reasons: Vec<Option<&str>> = seen.turns.iter().map(|turn| turn.reason.as_deref()).collect();
    assert_eq!(reasons.len(), 3);
    assert!(reasons.contains(&Some("aborted")) && reasons.contains(&Some("completed")), "{reasons:?}");
    assert!(seen.turns.iter().all(|turn| turn.prompt.as_ref().is_some_and(|text| text.chars().count() <= 80)));
    assert_eq!(seen.boundaries.last().unwrap().seq, seen.turns.last().unwrap().end.unwrap());
}

#[test]
fn beats_follow_the_log() {
    let home = Home::of(&["02-edits-3turn"]);
    let key = SessionKey::new("dsh", "edits3").unwrap();
    let logs: &dyn SessionLog = &home.logs();
    let beats = logs.beats(&key, Seq(0)).unwrap();
    assert_eq!(beats.len(), 148);
    assert!(beats.iter().enumerate().all(|(at, (seq, _))| seq.0 == at as u64), "packed rows count one by one");
    assert_eq!(beats[4].1, Beat::TurnStart(Turn(1)));
    assert_eq!(beats[60].1, Beat::TurnEnd(Turn(1)));
    assert_eq!(logs.beats(&key, Seq(18)).unwrap(), beats[18..], "from the middle of a packed row");
    assert!(logs.can_fork(&key));
    assert_eq!(logs.header(&key).unwrap().cwd.to_str(), Some("/home/user/shop"));
    let missing = SessionKey::new("dsh", "nobody").unwrap();
    assert_eq!(logs.beats(&missing, Seq(0)).unwrap_err().code(), "SESSION_NOT_FOUND");
    assert!(!logs.can_fork(&missing));
}

/// A prefix has one digest, however it is stored: the host's own forks share it with their parent.
#[test]
fn digests_do_not_depend_on_frames_and_packing() {
    let home = Home::of(&["04-fork-live-store/after-resume", "21-external-restore-and-external-child"]);
    let digest = |id: &str, seq: u64| home.logs().prefix_digest(&SessionKey::new("dsh", id).unwrap(), Seq(seq));
    assert_eq!(digest("parent", 101).unwrap(), digest("fork-live", 101).unwrap());
    assert_eq!(digest("parent", 147).unwrap(), digest("fork-whole", 147).unwrap());
    assert_ne!(digest("parent", 102).unwrap(), digest("fork-live", 102).unwrap());
    assert_eq!(digest("obs", 59).unwrap(), digest("ext-child", 59).unwrap());
    assert_eq!(digest("parent", 148).unwrap_err().code(), "INVALID_BOUNDARY");

    let mut forged = Home::of(&["16-forged/parent"]);
    for variant in ["v-good", "v-unpacked", "v-manyframes"] {
        forged.add(&fixture("cases/16-forged/forged").join(variant));
    }
    let digest =
        |id: &str, seq: u64| forged.logs().prefix_digest(&SessionKey::new("dsh", id).unwrap(), Seq(seq)).unwrap();
    for seq in [0, 17, 50, 101] {
        for variant in ["v-good", "v-unpacked", "v-manyframes"] {
            assert_eq!(digest(variant, seq), digest("forge-parent", seq), "{variant} {seq}");
        }
    }
}

/// After a crash a position can come back with another event: its digest tells.
#[test]
fn a_position_that_came_back_has_another_digest() {
    let key = SessionKey::new("dsh", "torn").unwrap();
    let whole = Home::of(&["15-torn-plaintext/whole"]);
    let after = Home::of(&["15-torn-plaintext/after-load"]);
    let digest = |home: &Home, seq: u64| home.logs().prefix_digest(&key, Seq(seq)).unwrap();
    assert_eq!(digest(&whole, 64), digest(&after, 64));
    assert_ne!(digest(&whole, 65), digest(&after, 65), "completed, and interrupted");
}

/// TN50: a log without events.
#[test]
fn tn50_a_header_alone_is_a_session() {
    let mut home = Home::of(&[]);
    home.add(&fixture("cases/16-forged/forged/v-headeronly"));
    assert_eq!(home.logs().load("v-headeronly").unwrap().events, 0);
    assert!(home.logs().events("v-headeronly").unwrap().is_empty());
    assert!(home.logs().list().unwrap()[0].path.starts_with(home.sessions().join(PROJECT)));
}

#[test]
fn homes_are_found_as_the_host_finds_them() {
    let home = |vars: &[(&str, &str)]| {
        let vars: Vec<(String, String)> = vars.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        DshLogs::default_home(|name| vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
            .map(|path| path.to_str().unwrap().to_owned())
    };
    assert_eq!(home(&[("HOME", "/h")]).unwrap(), "/h/.dsh");
    assert_eq!(home(&[("HOME", "/h"), ("DSH_HOME", "  ")]).unwrap(), "/h/.dsh");
    assert_eq!(home(&[("HOME", "/h"), ("DSH_HOME", "~/d")]).unwrap(), "/h/d");
    assert_eq!(home(&[("HOME", "/h"), ("DSH_HOME", "~")]).unwrap(), "/h");
    assert_eq!(home(&[("DSH_HOME", "/d")]).unwrap(), "/d");
    assert_eq!(home(&[]), None);
}
