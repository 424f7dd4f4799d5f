//! `rwd du`, `gc` and `verify`.

use std::collections::BTreeMap;
use std::path::Path;

use checkpoint_core::{Clock as _, PointQuery, VerifyLevel};
use rwd_engine::SystemClock;

use crate::args::{GcArgs, VerifyArgs};
use crate::compose::Opened;
use crate::error::CliError;
use crate::run::Run;
use crate::text::put;
use crate::wire;
use crate::{exit, text};

pub(crate) fn du(run: &Run) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let usage = opened.snapshots.usage()?;
    let mut by_kind: BTreeMap<&'static str, (u64, u64)> = BTreeMap::new();
    let mut points = 0;
    for point in opened.index.points(&PointQuery { restorable: true, ..PointQuery::default() })? {
        let entry = by_kind.entry(point.kind.name()).or_default();
        entry.0 += 1;
        entry.1 += point.new_bytes;
        points += 1;
    }
    let answer = wire::Du {
        own_bytes: usage.own_bytes + beside_store(&opened),
        shared_bytes: usage.shared_bytes,
        points,
        by_kind: by_kind
            .into_iter()
            .map(|(kind, (points, new_bytes))| wire::KindUse { kind, points, new_bytes })
            .collect(),
    };
    run.out.answer(&answer, |answer| {
        let mut out = format!("{} in {}", text::size(answer.own_bytes), text::count(answer.points, "point"));
        if answer.shared_bytes > 0 {
            put!(out, ", {} more shared with the repository", text::size(answer.shared_bytes));
        }
        out.push('\n');
        for kind in &answer.by_kind {
            put!(out, "  {:<11} {:>6}  {:>10}\n", kind.kind, kind.points, text::size(kind.new_bytes));
        }
        put!(out, "to free what nothing needs: {}\n", run.typed.other(&["gc"]));
        out
    })?;
    Ok(exit::OK)
}

/// What the workspace's data take besides the object store, as the disk counts it.
fn beside_store(opened: &Opened) -> u64 {
    let store = opened.located.dir.git();
    own_bytes(opened.located.dir.path(), &store)
}

fn own_bytes(dir: &Path, except: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let blocks = |path: &Path| path.symlink_metadata().map_or(0, |facts| facts.blocks() * 512);
    let mut total = blocks(dir);
    for entry in entries.flatten() {
        let path = entry.path();
        if path == except {
            continue;
        }
        total += if path.is_dir() && !path.is_symlink() { own_bytes(&path, except) } else { blocks(&path) };
    }
    total
}

/// Removes what killed processes left beside the files of the data directory; how many. A failure takes nothing back.
fn leftovers(opened: &Opened) -> u64 {
    let now = SystemClock.now();
    let swept = [opened.located.data.sweep(now), opened.located.dir.sweep(now)].into_iter().map(|swept| {
        swept.unwrap_or_else(|error| {
            tracing::warn!(%error, "what killed processes left was not removed");
            0
        })
    });
    swept.sum()
}

pub(crate) fn gc(run: &Run, args: &GcArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    if !args.dry_run {
        super::refuse_agent(run, &opened, "collect garbage")?;
        run.stop.listen();
    }
    let unfinished = super::unfinished(run, &opened)?;
    let mut dropped = Vec::new();
    if !args.dry_run {
        dropped = opened.engine.prune(opened.snapshots.usage()?.own_bytes)?;
    }
    let mut report = opened.engine.gc(args.dry_run)?;
    if !args.dry_run {
        report.swept += leftovers(&opened);
    }
    let answer = wire::Gc {
        dry_run: args.dry_run,
        dropped_points: dropped.iter().map(ToString::to_string).collect(),
        kept_objects: report.kept,
        dropped_objects: report.dropped,
        freed_bytes: report.freed_bytes,
        swept: report.swept,
        unfinished: super::operation_of(unfinished.as_ref()),
    };
    let ended = run.out.answer(&answer, |answer| {
        let would = if answer.dry_run { "would be " } else { "" };
        let mut out = format!(
            "{} {would}freed: {} dropped, {} kept\n",
            text::size(answer.freed_bytes),
            text::count(answer.dropped_objects, "object"),
            answer.kept_objects
        );
        if !answer.dropped_points.is_empty() {
            put!(out, "{} beyond the limits removed\n", text::count(answer.dropped_points.len() as u64, "point"));
        }
        out
    });
    super::tidy_up(&opened);
    ended?;
    Ok(exit::OK)
}

pub(crate) fn verify(run: &Run, args: &VerifyArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let level = if args.rehash { VerifyLevel::Rehash } else { VerifyLevel::Reachable };
    let verified = opened.engine.verify(level)?;
    let damaged = verified
        .damaged
        .iter()
        .map(|d| wire::DamageEntry { id: d.point.to_string(), reason: d.reason.clone() })
        .collect();
    let deep = run.typed.other(&["verify", "--rehash"]);
    let mut store = verified.store;
    if args.rehash && !opened.located.registry.is_kept(&opened.located.workspace) {
        store.push("root.json: it says another thing of this workspace than workspaces.json".to_owned());
    }
    let answer = wire::Verified { checkpoints: verified.checkpoints, damaged, store, rehashed: args.rehash };
    let gc = run.typed.other(&["gc"]);
    run.out.answer(&answer, |answer| {
        let mut out =
            format!("{} checked, {} damaged\n", text::count(answer.checkpoints, "point"), answer.damaged.len());
        for damage in &answer.damaged {
            put!(out, "  {}  {}\n", text::short(&damage.id), damage.reason);
        }
        for changed in &answer.store {
            put!(out, "  {changed}\n");
        }
        if answer.damaged.is_empty() && !answer.store.is_empty() {
            put!(out, "no point is hit; {gc} moves what points need out of damaged packs\n");
        }
        let which = if answer.damaged.is_empty() { "these points" } else { "the others" };
        // What was looked at, and no more: a byte that was not read may be wrong.
        if answer.rehashed {
            put!(out, "every byte of {which} was read and is as recorded\n");
        } else {
            put!(out, "nothing that {which} need is missing; to read every byte: {deep}\n");
        }
        out
    })?;
    Ok(if answer.damaged.is_empty() && answer.store.is_empty() { exit::OK } else { exit::DAMAGED })
}
