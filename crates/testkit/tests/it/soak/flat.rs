//! What must not grow over a long run: memory, descriptors, the store, and what one capture costs in operations.

use std::fs;

/// One look, between two turns.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sample {
    /// Memory of this process, KiB.
    pub(super) memory: u64,
    /// Its open files.
    pub(super) descriptors: u64,
    /// Operations on store and index for each capture since the last look, in hundredths.
    pub(super) writes: u64,
    /// Rows of the index looked at for each capture since the last look, in hundredths; where they are counted.
    pub(super) rows: u64,
    /// Microseconds of each capture: told, and nothing depends on it.
    pub(super) micros: u64,
    /// Own bytes of the largest store.
    pub(super) bytes: u64,
}

/// Memory in KiB and open files of this process.
pub(super) fn process() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = memory.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    (memory, fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64))
}

/// How much a series grows from the beginning to the end of the part that is looked at, by the straight line that fits
/// it best; and its mean.
#[expect(clippy::cast_precision_loss, reason = "sizes and counts far below 2^52")]
pub(super) fn growth(series: &[u64]) -> (f64, f64) {
    let count = series.len() as f64;
    let mean = series.iter().sum::<u64>() as f64 / count.max(1.0);
    let middle = (count - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (at, value) in series.iter().enumerate() {
        let x = at as f64 - middle;
        above += x * (*value as f64 - mean);
        below += x * x;
    }
    (if below > 0.0 { above / below * (count - 1.0) } else { 0.0 }, mean)
}

/// A bound: the growth over the later two thirds, in parts of the mean and as a number.
struct Bound {
    what: &'static str,
    of: fn(&Sample) -> u64,
    share: f64,
    fixed: f64,
}

const BOUNDS: [Bound; 5] = [
    Bound { what: "memory, KiB", of: |sample| sample.memory, share: 0.15, fixed: 6144.0 },
    Bound { what: "open files", of: |sample| sample.descriptors, share: 0.0, fixed: 6.0 },
    Bound { what: "writes of a capture, 1/100", of: |sample| sample.writes, share: 0.25, fixed: 100.0 },
    Bound { what: "rows of a capture, 1/100", of: |sample| sample.rows, share: 0.35, fixed: 1500.0 },
    Bound { what: "largest store, bytes", of: |sample| sample.bytes, share: 0.35, fixed: 1_048_576.0 },
];

/// Says how each series went; a panic for one that grows. In the first third histories get as long as they may.
pub(super) fn check(samples: &[Sample]) {
    let later = samples.get(samples.len() / 3..).unwrap_or_default();
    let mut wrong = Vec::new();
    for bound in &BOUNDS {
        let series: Vec<u64> = later.iter().map(bound.of).collect();
        let (grown, mean) = growth(&series);
        let may = bound.share * mean + bound.fixed;
        let (least, most) = (series.iter().min().unwrap_or(&0), series.iter().max().unwrap_or(&0));
        println!("soak: {}: mean {mean:.0}, {least} to {most}, growth {grown:.0} of at most {may:.0}", bound.what);
        if grown > may {
            wrong.push(format!("{} grew by {grown:.0}: {series:?}", bound.what));
        }
    }
    let (grown, mean) = growth(&later.iter().map(|sample| sample.micros).collect::<Vec<_>>());
    println!("soak: time of a capture: mean {mean:.0} µs, growth {grown:.0} (told only)");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_leak_is_seen_and_noise_is_not() {
    let noise: Vec<u64> = (0..90).map(|at| 1000 + at * 7919 % 13).collect();
    assert!(growth(&noise).0.abs() < 10.0);
    let leak: Vec<u64> = (0..90).map(|at| 1000 + at * 20).collect();
    assert!((growth(&leak).0 - 89.0 * 20.0).abs() < 1.0);
    assert_eq!(growth(&[]), (0.0, 0.0));
}
