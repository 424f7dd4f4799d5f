//! What the lifecycle's validator says of the logs that the host wrote, and of those that it accepted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use harness_adapter::sessions::dsh::{
    DshLogs,
    strict::{Severity, Strict},
};

use crate::world::fixture;

/// `(code, seq)` of everything that is wrong or open, by the rows that can be read.
fn found(path: &Path) -> Vec<(&'static str, Severity, Option<u64>)> {
    let mut strict = Strict::new();
    // Where a log cannot be followed further, what came before is checked.
    drop(DshLogs::for_each_event_of_file(path, &mut |event| {
        strict.take(event);
        std::ops::ControlFlow::Continue(())
    }));
    strict.finish().into_iter().map(|problem| (problem.code, problem.severity, problem.seq)).collect()
}

fn logs(below: &Path, list: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            logs(&path, list);
        } else if name == "session.jsonl" || name == "session.jsonl.zstd" {
            list.push(path);
        }
    }
}

#[test]
fn whatever_the_host_wrote_and_loads_is_at_most_open() {
    let mut list = Vec::new();
    logs(&fixture("cases"), &mut list);
    list.retain(|path| !path.components().any(|part| part.as_os_str() == "forged"));
    let mut sound = 0;
    for path in &list {
        let seen = DshLogs::inspect_file(path).unwrap();
        let found = found(path);
        if seen.loadable {
            assert!(found.iter().all(|(_, severity, _)| *severity == Severity::Open), "{}: {found:?}", path.display());
            assert_eq!(seen.open_turn.is_some(), found.iter().any(|(code, ..)| *code == "open-turn"), "{found:?}");
            sound += usize::from(found.is_empty());
        }
    }
    assert!(sound > 20, "{sound} of {} logs ended in order", list.len());
}

#[test]
fn what_a_crash_left_open_is_named_at_its_start() {
    let of = |case: &str| {
        let mut list = Vec::new();
        logs(&fixture("cases").join(case), &mut list);
        let found = found(&list[0]);
        found.into_iter().map(|(code, _, seq)| (code, seq.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(of("06-killed-mid-stream/before"), [("open-turn", 35), ("open-step", 37)]);
    assert_eq!(of("06-killed-mid-stream/after-resume"), []);
    assert_eq!(of("15-torn-zstd/before"), [("open-turn", 35), ("open-step", 55)]);
    assert_eq!(of("15-torn-zstd/after-load"), []);
    assert_eq!(of("15-torn-plaintext/before"), [("open-turn", 35)]);
    assert_eq!(of("03-unknown-event"), [("open-turn", 179)], "it does not load, but its turns are in order");
}

/// The variants that the host accepted are sound, and so is one that it refuses for its container or its header.
#[test]
fn forged_logs_are_judged_by_what_happened_in_them() {
    let verdicts = fs::read_to_string(fixture("cases/16-forged/VERDICTS.tsv")).unwrap();
    let mut checked = 0;
    for line in verdicts.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let (variant, loaded) = (fields[0], fields[1] == "ok");
        let mut list = Vec::new();
        if fixture("cases/16-forged/forged").join(variant).is_dir() {
            logs(&fixture("cases/16-forged/forged").join(variant), &mut list);
        }
        for path in list {
            let broken: Vec<_> =
                found(&path).into_iter().filter(|(_, severity, _)| *severity == Severity::Broken).collect();
            let due: &[&str] = match variant {
                "v-callid-mismatch" => &["malformed", "unanswered-call"],
                "v-nosurfaceop" | "v-surfaceop-elsewhere" => &["surface-op"],
                _ => &[],
            };
            let codes: Vec<_> = broken.iter().map(|(code, ..)| *code).collect();
            assert_eq!(codes, due, "{variant}");
            assert!(!loaded || codes.is_empty(), "{variant}");
            checked += 1;
        }
    }
    assert!(checked > 25, "{checked}");
}
