//! What going back costs in process: a preview, a restore and its undo, of 1 and of 200 files among 2,000.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a bench makes its own world")]

use std::{fs, path::Path, sync::Arc};

use checkpoint_core::{Engine, PointKind, RestoreRequest, ReverseRequest, SaveRequest, SessionKey};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const FILES: usize = 2_000;

fn write(root: &Path, number: usize, text: &str) {
    let dir = root.join(format!("d{}/e{}", number / 200, number / 10 % 20));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(format!("f{number}.rs")), text.repeat(100)).unwrap();
}

fn save(engine: &Engine) -> String {
    let request = SaveRequest::of(SessionKey::local(), PointKind::Manual);
    engine.save(&request).unwrap().point.id.to_string()
}

fn restores(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("going back");
    group.sample_size(20);
    for count in [1, 200] {
        let base = tempfile::tempdir().unwrap();
        let (root, data) = (base.path().join("work"), base.path().join("data"));
        (0..FILES).for_each(|number| write(&root, number, "before\n"));
        let engine = rwd_engine::open(&root, &data).unwrap().approver(Arc::new(rwd_engine::Decided)).build();
        let target = save(&engine);
        (0..count).for_each(|number| write(&root, number * (FILES / count), "after\n"));
        save(&engine);
        let request = RestoreRequest { target, ..RestoreRequest::default() };
        group.bench_function(BenchmarkId::new("preview", count), |bench| {
            bench.iter(|| engine.preview(&request).unwrap());
        });
        group.bench_function(BenchmarkId::new("restore and undo", count), |bench| {
            bench.iter(|| {
                engine.restore(&request).unwrap();
                engine.undo(&ReverseRequest::default()).unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, restores);
criterion_main!(benches);
