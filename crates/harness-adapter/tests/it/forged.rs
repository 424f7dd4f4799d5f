//! Logs that break one rule each, and what the host's reader said of them.

use std::{fs, path::Path};

use crate::world::{Home, PROJECT, fixture};

struct Verdict {
    variant: String,
    load: String,
    list: String,
    said: String,
}

fn verdicts() -> Vec<Verdict> {
    let table = fs::read_to_string(fixture("cases/16-forged/VERDICTS.tsv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [variant, load, _, list, _, said] = cells[..] else { panic!("{line}") };
        Verdict { variant: variant.into(), load: load.into(), list: list.into(), said: said.into() }
    };
    table.lines().skip(1).map(row).collect()
}

/// A home with the parent and this variant, as when the host was asked.
fn home(variant: &str) -> Home {
    let mut home = Home::of(&["16-forged/parent"]);
    let forged = fixture("cases/16-forged/forged").join(variant);
    if variant == "v-emptydir" {
        fs::create_dir_all(home.sessions().join(PROJECT).join(variant)).unwrap();
    } else {
        home.add(&forged);
    }
    home
}

/// Every row of the table: `load` and `list` come out as the host says, with the position it names.
#[test]
fn c004_20_forged_logs_get_the_hosts_verdict() {
    let verdicts = verdicts();
    assert_eq!(verdicts.len(), 36);
    for verdict in verdicts {
        let variant = &verdict.variant;
        let home = home(variant);
        let load = home.logs().load(variant);
        assert_eq!(load.is_ok(), verdict.load == "ok", "{variant}: {load:?}");
        let list = home.logs().host_list();
        assert_eq!(list.is_ok(), verdict.list == "ok", "{variant}: {list:?}");
        if let Ok(summary) = load {
            let tail = verdict.said.split(" | ").next().unwrap();
            let seq = tail.rsplit(' ').next().and_then(|event| event.split(':').next()).unwrap();
            assert_eq!(summary.events, seq.parse::<u64>().map_or(0, |seq| seq + 1), "{variant}");
            assert_eq!(summary.torn.is_some(), variant == "v-torn");
            assert!(home.logs().inspect(variant).unwrap().loadable);
        } else if let Ok(inspection) = home.logs().inspect(variant) {
            assert!(!inspection.loadable && !inspection.problems.is_empty(), "{variant}");
        }
    }
}

/// Codes and places of what is refused.
#[test]
fn refusals_say_what_and_where() {
    for (variant, code, place) in [
        ("v-badsum", "CORRUPT_LOG", "at byte 146"),
        ("v-callid-mismatch", "CORRUPT_LOG", "at event 32"),
        ("v-dupid", "DUPLICATE_SESSION", "--elsewhere--"),
        ("v-dupseq", "CORRUPT_LOG", "in a whole frame"),
        ("v-emptydir", "SESSION_NOT_FOUND", "v-emptydir"),
        ("v-extrakey", "CORRUPT_LOG", "at event 102"),
        ("v-flat", "FLAT_LAYOUT", "v-flat.jsonl.zstd"),
        ("v-floattime", "CORRUPT_LOG", "at event 102"),
        ("v-gap", "CORRUPT_LOG", "at row 82: expected event 100, got 101"),
        ("v-garbage", "CORRUPT_LOG", "at byte 7193"),
        ("v-nodata", "CORRUPT_LOG", "at event 102"),
        ("v-nodepth", "NO_HEADER", "delegationDepth"),
        ("v-nonl", "CORRUPT_LOG", "in a whole frame"),
        ("v-nosurfaceop", "CORRUPT_LOG", "at event 7"),
        ("v-oneframe", "CORRUPT_LOG", "first frame is not exactly one header line"),
        ("v-plainsuffix", "MIXED_ENCODINGS", "v-plainsuffix"),
        ("v-retired", "RETIRED_HEADER", "retired"),
        ("v-surfaceop-elsewhere", "CORRUPT_LOG", "at event 4"),
        ("v-unknown", "UNKNOWN_EVENT", "event 103 has the type \"checkpoint/mark\""),
        ("v-version1", "UNSUPPORTED_VERSION", "log format 1"),
        ("v-wrongproj", "MISPLACED_LOG", "--elsewhere--"),
    ] {
        let home = home(variant);
        let error = home.logs().load(variant).unwrap_err();
        assert_eq!(error.code(), code, "{variant}: {error}");
        assert!(error.to_string().contains(place), "{variant}: {error}");
        assert!(!error.advice().is_empty());
    }
}

/// Unlike the host's, our list goes on: every variant is shown with its problem, beside the sound parent.
#[test]
fn lists_show_what_the_host_fails_at() {
    for verdict in verdicts().iter().filter(|verdict| !["v-emptydir", "v-flat"].contains(&&*verdict.variant)) {
        let home = home(&verdict.variant);
        let list = home.logs().list().unwrap();
        let entry = list.iter().find(|entry| entry.id == verdict.variant).unwrap();
        let parent = list.iter().find(|entry| entry.id == "forge-parent").unwrap();
        assert!(parent.problem.is_none() && parent.key.is_some());
        let header_fault = ["v-dupid", "v-nodepth", "v-oneframe", "v-retired", "v-version1", "v-wrongproj"]
            .contains(&&*verdict.variant);
        assert_eq!(entry.problem.is_some(), header_fault, "{}: {:?}", verdict.variant, entry.problem);
    }
}

/// A folder that links to the one a header belongs to is that folder.
#[cfg(unix)]
#[test]
fn real_path_aliases_are_one_place() {
    let real = tempfile::tempdir().unwrap();
    let home = Home::of(&[]);
    let log = fixture("cases/16-forged/parent/sessions").join(PROJECT).join("forge-parent");
    let to = real.path().join("forge-parent");
    fs::create_dir(&to).unwrap();
    fs::copy(log.join("session.jsonl.zstd"), to.join("session.jsonl.zstd")).unwrap();
    std::os::unix::fs::symlink(real.path(), home.sessions().join(PROJECT)).unwrap();
    assert!(home.logs().load("forge-parent").is_ok());
    assert!(Path::new(&home.logs().list().unwrap()[0].path).exists());
}
