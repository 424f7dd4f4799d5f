//! Budgets, deadlines, interruption.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use checkpoint_core::{Progress, SnapshotBackend, SnapshotError, VerifyLevel};

use crate::world::{World, skipped};

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(len)
    .collect()
}

#[test]
fn near_the_budget_the_largest_new_files_are_left_out() {
    let mut world = World::new();
    world.ask.policy.untracked_max_bytes = u64::MAX;
    world.put("old", noise(1, 300 << 10));
    world.capture_next();
    let own = world.backend.usage().unwrap().own_bytes;
    world.put("small", noise(2, 2 << 10));
    world.put("middle", noise(3, 100 << 10));
    world.put("large", noise(4, 400 << 10));
    world.put("huge", noise(5, 9 << 20));
    world.ask.policy.store_max_bytes = own + (450 << 10);
    let captured = world.capture_next();
    assert_eq!(skipped(&captured), ["huge budget", "large budget"]);
    assert_eq!(world.files(&captured.snapshot), ["middle", "old", "small"]);
    world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
    assert!(world.backend.usage().unwrap().own_bytes <= own + (450 << 10));
    // With room again they are captured.
    world.ask.policy.store_max_bytes = 1 << 30;
    let captured = world.capture_next();
    assert!(captured.skipped.is_empty());
    world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
}

#[test]
fn when_not_even_small_files_fit_there_is_no_space() {
    let mut world = World::new();
    world.put("f", "x");
    world.capture_next();
    world.put("g", "y");
    world.ask.policy.store_max_bytes = 1;
    assert!(matches!(world.try_capture(), Err(SnapshotError::NoSpace { .. })));
    world.ask.policy.store_max_bytes = 1 << 30;
    world.ask.policy.free_space_floor = u64::MAX;
    assert!(matches!(world.try_capture(), Err(SnapshotError::NoSpace { .. })));
    // Where nothing is new, nothing is needed.
    std::fs::remove_file(world.abs("g")).unwrap();
    world.capture();
}

#[test]
fn a_deadline_ends_the_walk() {
    let mut world = World::new();
    world.put("f", "x");
    world.ask.deadline = Some(Duration::ZERO);
    assert!(matches!(world.try_capture(), Err(SnapshotError::Deadline)));
    world.ask.deadline = Some(Duration::from_mins(10));
    world.capture();
    let leftovers = std::fs::read_dir(world.store().join("objects/pack")).unwrap();
    assert!(leftovers.flatten().all(|e| e.file_name().to_string_lossy().starts_with("pack-")));
}

#[test]
fn progress_is_told_and_may_stop() {
    struct Count(AtomicU64, bool);
    impl Progress for Count {
        fn tick(&self, what: &'static str, done: u64, _: Option<u64>) -> ControlFlow<()> {
            assert_eq!(what, "files");
            self.0.fetch_max(done, Ordering::SeqCst);
            if self.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let world = World::new();
    for n in 0..1500 {
        world.put(&format!("d{}/{n}", n % 5), "x");
    }
    let count = Count(AtomicU64::new(0), false);
    world.try_capture_with(&count).unwrap();
    assert!(count.0.load(Ordering::SeqCst) >= 512);
    assert!(matches!(world.try_capture_with(&Count(AtomicU64::new(0), true)), Err(SnapshotError::Interrupted)));
}

#[test]
fn files_that_vanish_or_change_while_they_are_read_harm_nobody() {
    let world = World::new();
    for n in 0..400 {
        world.put(&format!("d{}/{n}", n % 5), "x");
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0u64;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                let file = world.abs(&format!("d{}/busy{}", n % 5, n % 7));
                match n % 4 {
                    0 => drop(std::fs::remove_file(&file)),
                    1 => drop(std::fs::write(&file, noise(n, usize::try_from(n % 5000).unwrap()))),
                    2 => drop(std::fs::create_dir(world.abs(&format!("d{}/flip", n % 5)))),
                    _ => drop(std::fs::remove_dir(world.abs(&format!("d{}/flip", n % 5)))),
                }
            }
        });
        for _ in 0..30 {
            let captured = world.capture();
            assert!(captured.files >= 400);
            world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    World::settle();
    let calm = world.capture();
    assert!(calm.live.is_empty() && calm.skipped.is_empty());
}
