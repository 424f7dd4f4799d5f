//! The long run: a simulated month of sessions on five workspaces, with retention, collections, crashes, faults of the
//! disk, killed processes, and restores to random points that are checked against what was noted outside.
//!
//! `cargo xtask soak` sets how long: `RWD_SOAK_TURNS`, `RWD_SOAK_SESSIONS`, `RWD_SOAK_SEED`, `RWD_SOAK_MINUTES`.

mod child;
mod flat;
mod oracle;
mod place;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::world::Kind;
use flat::Sample;
use place::Place;

/// Own bytes that a store may have.
const BUDGET: u64 = 8 << 20;

const DAYS: u32 = 30;
const DAY_MS: i64 = 24 * 3600 * 1000;

/// Numbers that are the same in every run of a seed.
struct Dice(u64);

impl Dice {
    /// Below `sides`, which is not 0.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % sides
    }

    fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll(sides as u64)).unwrap()
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Issue 6, part 7.
#[test]
fn a_month_of_sessions() {
    let (turns, sessions) = (number("RWD_SOAK_TURNS", 300), number("RWD_SOAK_SESSIONS", 20));
    let (seed, minutes) = (number("RWD_SOAK_SEED", 1), number("RWD_SOAK_MINUTES", 600));
    let (begun, limit) = (Instant::now(), Duration::from_mins(minutes));
    let oracles = tempfile::tempdir().unwrap();
    let kinds = [
        ("one", Kind::Sqlite),
        ("two", Kind::Json),
        ("three", Kind::Sqlite),
        ("four", Kind::Memory),
        ("five", Kind::Sqlite),
    ];
    let each = u32::try_from((turns / sessions).max(1)).unwrap();
    let mut places: Vec<Place> = kinds
        .into_iter()
        .zip(0..)
        .map(|((name, kind), n)| Place::new(name, kind, seed.wrapping_mul(31) + n, each, oracles.path()))
        .collect();
    let mut dice = Dice(seed);
    let (mut done, mut looked, mut day, mut samples) = (0_u64, 0, 0, Vec::new());
    let mut rows = 0;
    while done < turns && begun.elapsed() < limit {
        let at = dice.below(places.len());
        let place = &mut places[at];
        let before = place.world.memory.visited().unwrap();
        let went = u64::from(place.turn());
        rows += place.world.memory.visited().unwrap() - before;
        done += went;
        match dice.roll(100) {
            0..=7 => place.restore(),
            8..=9 => place.crash(),
            10..=11 => place.fault(),
            12 if place.kind != Kind::Memory => place.kill(),
            _ => {}
        }
        place.budget();
        for place in &places {
            place
                .world
                .clock
                .turn(i64::from(DAYS) * DAY_MS / i64::try_from(turns).unwrap() * i64::try_from(went).unwrap());
        }
        if done * u64::from(DAYS) / turns > day {
            day = done * u64::from(DAYS) / turns;
            for place in &mut places {
                place.day(day.is_multiple_of(7));
            }
        }
        if done * 100 / turns > looked {
            looked = done * 100 / turns;
            samples.push(look(&mut places, &mut rows));
        }
    }
    println!(
        "soak: {done} of {turns} turns, {day} of {DAYS} days, {:.1} minutes",
        begun.elapsed().as_secs_f64() / 60.0
    );
    let most = usize::try_from((turns / 100).clamp(6, 60)).unwrap();
    let restored: usize = places.iter_mut().map(|place| place.finish(most)).sum();
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    for place in &places {
        for (what, count) in &place.counts {
            *totals.entry(what.clone()).or_default() += count;
        }
    }
    println!(
        "soak: {} sessions in {} workspaces",
        places.iter().map(|place| place.sessions).sum::<u32>(),
        places.len()
    );
    for (what, count) in &totals {
        println!("soak: {what}: {count}");
    }
    println!("soak: in the end {restored} points restored to the byte");
    let peak = places.iter().map(|place| place.peak).max().unwrap_or(0);
    println!("soak: largest store {peak} bytes, of {BUDGET} that it may have");
    // A short run says nothing of growth: its histories are not as long as they may get.
    if done >= 3000 {
        flat::check(&samples);
    }
    println!("soak: nothing lost");
}

/// What has become of things since the last look.
fn look(places: &mut [Place], rows: &mut u64) -> Sample {
    let (memory, descriptors) = flat::process();
    let mut sample = Sample { memory, descriptors, ..Sample::default() };
    let (mut captures, mut writes, mut micros, mut of_memory) = (0, 0, 0, 0);
    for place in places {
        captures += place.captures;
        writes += place.writes;
        micros += place.micros;
        of_memory += if place.kind == Kind::Memory { place.captures } else { 0 };
        (place.captures, place.writes, place.micros) = (0, 0, 0);
        sample.bytes = sample.bytes.max(place.world.engine.snapshots().usage().unwrap().own_bytes);
    }
    sample.writes = writes * 100 / captures.max(1);
    sample.micros = micros / captures.max(1);
    sample.rows = *rows * 100 / of_memory.max(1);
    *rows = 0;
    sample
}
