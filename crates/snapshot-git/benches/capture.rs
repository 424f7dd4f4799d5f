//! The parts of a capture, in process: the walk with nothing changed, with one change, a first capture, and the
//! difference of two snapshots. The tree has 2,000 files of 3 KiB in 200 directories.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a bench makes its own world")]

use std::{collections::BTreeSet, fs, ops::ControlFlow, path::Path, sync::Arc, thread, time::Duration};

use checkpoint_core::{CapturePolicy, CaptureRequest, Captured, NoProgress, SnapshotBackend};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use snapshot_git::{EpochFile, GitSnapshots, Options};

const FILES: usize = 2_000;

fn tree(root: &Path) {
    for number in 0..FILES {
        let dir = root.join(format!("d{}/e{}", number / 200, number / 10 % 20));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("f{number}.rs")), format!("fn number_{number}() {{}}\n").repeat(120)).unwrap();
    }
}

fn open(base: &Path, store: &str) -> GitSnapshots {
    let at = base.join(store);
    fs::create_dir_all(&at).unwrap();
    let options = Options::new(Arc::new(EpochFile::new(at.join("epoch"))));
    GitSnapshots::open(&base.join("work"), &at.join("git"), &at.join("stat.cache"), options).unwrap()
}

fn capture(snapshots: &GitSnapshots) -> Captured {
    let none = BTreeSet::new();
    let request = CaptureRequest {
        base: None,
        held: &BTreeSet::new(),
        not_held: &BTreeSet::new(),
        include: &none,
        temporaries: &[],
        policy: &CapturePolicy::default(),
        write: true,
        watched: false,
        deadline: None,
        progress: &NoProgress,
    };
    snapshots.capture(&request).unwrap()
}

fn captures(bench: &mut Criterion) {
    let base = tempfile::tempdir().unwrap();
    tree(&base.path().join("work"));
    let snapshots = open(base.path(), "kept");
    for _ in 0..2 {
        capture(&snapshots);
        // Older than what is called racy.
        thread::sleep(Duration::from_millis(50));
    }
    let mut group = bench.benchmark_group("capture of 2,000 files");
    group.bench_function("nothing changed", |bench| bench.iter(|| capture(&snapshots)));
    let mut changes = 0;
    group.bench_function("one change", |bench| {
        bench.iter_batched(
            || {
                changes += 1;
                fs::write(base.path().join("work/d3/e7/f670.rs"), format!("// change {changes}\n")).unwrap();
            },
            |()| capture(&snapshots),
            BatchSize::PerIteration,
        );
    });
    let mut stores = 0;
    group.sample_size(10).bench_function("first", |bench| {
        bench.iter_batched(
            || {
                stores += 1;
                open(base.path(), &format!("store{stores}"))
            },
            |snapshots| capture(&snapshots),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn diffs(bench: &mut Criterion) {
    let base = tempfile::tempdir().unwrap();
    tree(&base.path().join("work"));
    let snapshots = open(base.path(), "kept");
    let before = capture(&snapshots).snapshot;
    for number in (0..FILES).step_by(20) {
        let path = format!("work/d{}/e{}/f{number}.rs", number / 200, number / 10 % 20);
        fs::write(base.path().join(path), "changed").unwrap();
    }
    let after = capture(&snapshots).snapshot;
    bench.bench_function("difference of 100 in 2,000 files", |bench| {
        bench.iter(|| {
            let mut changes = 0;
            snapshots
                .diff(&before, &after, &mut |_| {
                    changes += 1;
                    ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(changes, 100);
        });
    });
}

criterion_group!(benches, captures, diffs);
criterion_main!(benches);
