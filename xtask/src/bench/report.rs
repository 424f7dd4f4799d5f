//! Minima, ratios and targets, as a table and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::subject::{Measured, Subject};

/// A target of `docs/performance.md`: what was reached, and the bound that must be.
struct Target {
    what: &'static str,
    got: f64,
    bound: f64,
    unit: &'static str,
    /// True where more is better.
    at_least: bool,
}

impl Target {
    fn reached(&self) -> bool {
        if self.at_least { self.got >= self.bound } else { self.got <= self.bound }
    }
}

impl Measured<'_> {
    fn min(&self, subject: Subject) -> Option<f64> {
        self.costs.get(&subject)?.iter().map(|cost| cost.wall_ms).min_by(f64::total_cmp)
    }

    fn peak_mb(&self, subject: Subject) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "kilobytes of memory")]
        self.costs.get(&subject)?.iter().map(|cost| cost.peak_kb).max().map(|peak| peak as f64 / 1024.0)
    }

    /// Targets that this tree is big enough for.
    fn targets(&self) -> Vec<Target> {
        #[expect(clippy::cast_precision_loss, reason = "a number of files")]
        let files = self.tree.files as f64;
        let mut out = Vec::new();
        let mut at_most = |what, got: Option<f64>, bound: Option<f64>, unit| {
            if let (Some(got), Some(bound)) = (got, bound) {
                out.push(Target { what, got, bound, unit, at_least: false });
            }
        };
        let limit = self.min(Subject::Limit);
        // Of huge files the yardstick knows only that they are there.
        let limit_of_one = limit.filter(|_| !self.tree.huge);
        let nothing = if files >= 60_000.0 { limit } else { limit.map(|limit| 1.3 * limit + 3.0) };
        at_most("nothing changed", self.min(Subject::Nothing), nothing, "ms");
        at_most("one change, durable", self.min(Subject::One), limit_of_one.map(|limit| 1.05 * limit + 6.0), "ms");
        at_most(
            "restore of one file",
            self.min(Subject::RestoreOne),
            self.min(Subject::One).map(|one| one + 10.0),
            "ms",
        );
        at_most(
            "restore of 1,000 files",
            self.min(Subject::RestoreMany),
            self.min(Subject::Nothing).map(|it| it + 250.0),
            "ms",
        );
        at_most("peak memory, nothing changed", self.peak_mb(Subject::Nothing), Some(10.0 + 12.0 * files / 1e5), "MB");
        at_most("peak memory, first capture", self.peak_mb(Subject::First), Some(80.0 + 20.0 * files / 1e5), "MB");
        at_most("peak memory, seeded", self.peak_mb(Subject::FirstSeeded), Some(80.0 + 20.0 * files / 1e5), "MB");
        at_most(
            "first capture, seeded",
            self.min(Subject::FirstSeeded),
            limit_of_one.map(|limit| 2.5 * limit).filter(|_| files >= 60_000.0),
            "ms",
        );
        at_most("rwd --version", self.min(Subject::Version), Some(5.0), "ms");
        at_most("hook with nothing to do", self.min(Subject::HookNothing), limit.map(|limit| limit + 20.0), "ms");
        at_most(
            "sidecar capture, one change",
            self.min(Subject::SidecarOne).filter(|_| !self.tree.huge),
            Some(15.0),
            "ms",
        );
        let syncs = |subject| {
            #[expect(clippy::cast_precision_loss, reason = "a handful")]
            self.counts.get(&subject).and_then(|counts| counts.get("sync")).map(|count| *count as f64)
        };
        at_most("syncs, nothing changed", syncs(Subject::Nothing), Some(4.0), "");
        at_most("syncs, one change", syncs(Subject::One), Some(4.0), "");
        let mut faster = |what, ours: Option<f64>, theirs: Option<f64>, bound| {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                out.push(Target { what, got: theirs / ours, bound, unit: "x", at_least: true });
            }
        };
        if files >= 100_000.0 {
            faster("faster than git, nothing changed", self.min(Subject::Nothing), self.min(Subject::GitNothing), 1.9);
            faster("faster than git, one change", self.min(Subject::One), self.min(Subject::GitOne), 2.2);
        }
        let first = if self.tree.huge { 6.0 } else { 8.0 };
        faster("faster than git, first capture", self.min(Subject::First), self.min(Subject::GitFirst), first);
        out
    }
}

/// The figures of one tree for people.
pub(crate) fn table(measured: &Measured<'_>) -> String {
    let tree = measured.tree;
    let mut out = format!(
        "\n{}: {} ({} files, {} directories, {} MB)\n\n| | min ms | median ms | p95 ms | / LIMIT | cpu ms | peak MB |\n|-|-|-|-|-|-|-|\n",
        tree.name,
        tree.kind,
        tree.files,
        tree.dirs,
        tree.bytes / 1_000_000
    );
    let limit = measured.min(Subject::Limit).unwrap_or(f64::NAN);
    for (&subject, costs) in &measured.costs {
        let min = measured.min(subject).unwrap_or(f64::NAN);
        let mut walls: Vec<_> = costs.iter().map(|cost| cost.wall_ms).collect();
        walls.sort_by(f64::total_cmp);
        let cpu = costs.iter().map(|cost| cost.cpu_ms).min_by(f64::total_cmp).unwrap_or(f64::NAN);
        line(
            &mut out,
            format_args!(
                "| {} | {min:.1} | {:.1} | {:.1} | {:.2} | {cpu:.1} | {:.1} |",
                subject.label(),
                walls[walls.len() / 2],
                walls[(walls.len() * 95).div_ceil(100) - 1],
                min / limit,
                measured.peak_mb(subject).unwrap_or(f64::NAN)
            ),
        );
    }
    for (subject, counts) in &measured.counts {
        let counts: Vec<_> = counts.iter().map(|(group, count)| format!("{count} {group}")).collect();
        line(&mut out, format_args!("\ncalls of {}: {}", subject.label(), counts.join(", ")));
    }
    for (subject, bytes) in &measured.store_bytes {
        line(&mut out, format_args!("\nstore after {}: {:.1} MB", subject.label(), mega(*bytes)));
    }
    out.push_str("\n| target | got | must | |\n|-|-|-|-|\n");
    for target in measured.targets() {
        let sign = if target.at_least { "≥" } else { "≤" };
        let verdict = if target.reached() { "reached" } else { "**missed**" };
        line(
            &mut out,
            format_args!(
                "| {} | {:.1} {3} | {sign} {:.1} {3} | {verdict} |",
                target.what, target.got, target.bound, target.unit
            ),
        );
    }
    for note in &measured.notes {
        line(&mut out, format_args!("\nnote: {note}"));
    }
    out
}

/// The figures of one tree for programs: every run, not only the minima.
pub(crate) fn json(measured: &Measured<'_>) -> Value {
    let subjects: Vec<_> = measured
        .costs
        .iter()
        .map(|(subject, costs)| {
            json!({
                "subject": format!("{subject:?}"),
                "label": subject.label(),
                "minMs": measured.min(*subject),
                "peakMb": measured.peak_mb(*subject),
                "wallMs": costs.iter().map(|cost| cost.wall_ms).collect::<Vec<_>>(),
                "cpuMs": costs.iter().map(|cost| cost.cpu_ms).collect::<Vec<_>>(),
                "calls": measured.counts.get(subject),
                "storeBytes": measured.store_bytes.get(subject),
            })
        })
        .collect();
    let targets: Vec<_> = measured
        .targets()
        .iter()
        .map(|target| {
            json!({
                "what": target.what, "got": target.got, "bound": target.bound, "unit": target.unit,
                "atLeast": target.at_least, "reached": target.reached(),
            })
        })
        .collect();
    json!({
        "name": measured.tree.name,
        "kind": measured.tree.kind,
        "files": measured.tree.files,
        "dirs": measured.tree.dirs,
        "bytes": measured.tree.bytes,
        "subjects": subjects,
        "targets": targets,
        "notes": measured.notes,
    })
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes everything");
}

fn mega(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a size on disk")]
    let bytes = bytes as f64;
    bytes / 1e6
}
