//! What grows with the number of points, and what must not.

use checkpoint_core::{CapturePolicy, LockMode, PointQuery, SaveRequest, StoreLock};

use crate::world::{Kind, World, exactly};

fn packs(world: &World) -> usize {
    let dir = world.base().join("store/git/objects/pack");
    std::fs::read_dir(dir)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack"))
        .count()
}

/// Small captures are joined after the answer, never while anybody else works on the workspace, and every point is
/// restored from what they became.
#[test]
fn packs_stay_few_and_points_whole() {
    let world = World::new(Kind::Sqlite, false, CapturePolicy::default());
    let mut made = Vec::new();
    for n in 0..60 {
        world.write("a/b/c/d/f", &format!("content {n}"));
        made.push(world.save().point);
        let waits = n == 40;
        let busy = waits.then(|| world.lock.acquire(LockMode::Shared, std::time::Duration::ZERO).unwrap());
        let went = world.engine.consolidate().unwrap();
        drop(busy);
        assert!(!waits || went == 0);
        assert!(packs(&world) <= 50, "{}", packs(&world));
    }
    assert!(packs(&world) < 34, "{}", packs(&world));
    for n in [0, 17, 33, 59] {
        world.engine.restore(&exactly(made[n].id)).unwrap();
        assert_eq!(world.read("a/b/c/d/f"), format!("content {n}"));
    }
    assert!(world.engine.verify(checkpoint_core::VerifyLevel::Rehash).unwrap().damaged.is_empty());
    assert_eq!(world.engine.index().points(&PointQuery::default()).unwrap().len(), 60 + 4);
    // Nor beside somebody who has the workspace for himself.
    let _held = world.lock.acquire(LockMode::Exclusive, std::time::Duration::ZERO).unwrap();
    assert_eq!(world.engine.consolidate().unwrap(), 0);
    assert!(world.engine.save(&SaveRequest::manual()).is_err());
}
