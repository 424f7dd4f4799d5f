//! What a record and a list cost in a SQLite index of 10,000 points.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs, reason = "a bench makes its own world")]

use checkpoint_core::{IndexStore as _, PointKind, PointQuery};
use criterion::{Criterion, criterion_group, criterion_main};
use index_store::{SqliteIndex, SqliteOptions};
use testkit::index_suite::build::{Scene, touch};

const POINTS: u64 = 10_000;

fn records(bench: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let index = SqliteIndex::create(&dir.path().join("index.db"), SqliteOptions::default()).unwrap();
    let mut scene = Scene::new(&index);
    for number in 0..POINTS {
        let path = format!("d{}/f{number}", number % 100);
        scene.put(PointKind::Manual, vec![touch(&path, &["claude:one"])]);
    }
    let mut group = bench.benchmark_group("an index of 10,000 points");
    group.sample_size(20);
    group.bench_function("record", |bench| {
        bench.iter(|| scene.put(PointKind::Manual, vec![touch("d1/f1", &["claude:one"])]));
    });
    let newest = PointQuery { newest_first: true, limit: Some(20), ..PointQuery::default() };
    group.bench_function("newest 20", |bench| bench.iter(|| assert_eq!(index.points(&newest).unwrap().len(), 20)));
    group.finish();
}

criterion_group!(benches, records);
criterion_main!(benches);
