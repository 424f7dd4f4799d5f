//! What grows with the number of points, and what must not.

use checkpoint_core::{
    Batch, Beat, CapturePolicy, IndexOp, LockMode, Point, PointId, PointKind, PointQuery, SaveRequest, Session,
    SessionKey, StoreLock, Timestamp, Turn,
};

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

/// A history of `n` more points of other sessions.
fn lengthen(world: &World, n: u32) {
    let index = world.engine.index();
    let like =
        index.points(&PointQuery { newest_first: true, limit: Some(1), ..PointQuery::default() }).unwrap().remove(0);
    for k in 1..=n {
        let mut id = [77; 16];
        id[..8].copy_from_slice(&u64::from(k).wrapping_mul(0x2545_f491_4f6c_dd1d).to_be_bytes());
        let session = format!("claude:other-{}", k % 7);
        let point = Point {
            ord: index.newest().unwrap().next(),
            id: PointId::from_bytes(id),
            session: SessionKey::parse(&session).unwrap(),
            turn: Some(Turn(k)),
            kind: PointKind::TurnEnd,
            ..like.clone()
        };
        let ops = vec![IndexOp::PutPoint { point: Box::new(point), interval: vec![] }];
        index.apply(&Batch { follows: None, ops }).unwrap();
    }
}

/// Rows of the index that captures, and what a list shows, look at after `n` points.
fn rows(n: u32) -> Vec<(&'static str, u64)> {
    let world = World::plain();
    world.write("a", "0");
    world.save();
    lengthen(&world, n);
    let mut costs = Vec::new();
    let mut cost = |what, act: &dyn Fn()| {
        let before = world.memory.visited().unwrap();
        act();
        costs.push((what, world.memory.visited().unwrap() - before));
    };
    let event = |kind, call: &str| {
        let call_id = Some(call.to_owned()).filter(|call| !call.is_empty());
        let session = SessionKey::parse("claude:here").unwrap();
        world.engine.save(&SaveRequest { call_id, turn: Some(Turn(1)), ..SaveRequest::of(session, kind) }).unwrap();
        world.engine.prune_is_due(kind == PointKind::TurnEnd).unwrap();
    };
    cost("manual", &|| {
        world.write("a", "1");
        world.save();
    });
    cost("turn start", &|| event(PointKind::TurnStart, "start"));
    cost("mutation", &|| {
        world.write("a", "2");
        event(PointKind::Mutation, "call 1");
    });
    cost("the same again", &|| event(PointKind::Mutation, "call 1"));
    cost("nothing changed", &|| event(PointKind::Mutation, "call 2"));
    cost("turn end", &|| event(PointKind::TurnEnd, "end"));
    let newest = PointQuery { newest_first: true, limit: Some(20), ..PointQuery::default() };
    cost("list of twenty", &|| drop(world.engine.index().points(&newest).unwrap()));
    cost("unprotected", &|| drop(world.engine.unprotected().unwrap()));
    cost("preview of the latest", &|| drop(world.engine.preview(&exactly("local/latest~0")).unwrap()));
    cost("preview of a turn", &|| drop(world.engine.preview(&exactly("claude:here/t1^")).unwrap()));
    cost("end of a turn", &|| drop(world.engine.find(None, "claude:here/t1").unwrap()));
    costs
}

/// However long the history is, a capture looks at a bounded number of rows (what grows is one in 256, and stops there),
/// and so does a preview of something of late.
#[test]
fn captures_previews_and_short_lists_cost_the_same_after_ten_thousand_points() {
    let (short, long) = (rows(600), rows(10_000));
    for ((what, few), (_, many)) in short.iter().zip(&long) {
        let sample = 2 * 10_000 / 256;
        assert!(*many <= few + 2 * sample, "{what}: {few} rows after 600 points, {many} after 10,000");
        assert!(*many < 500, "{what}: {many} rows");
    }
}

/// Rows that a turn looks at, and rows and heads of logs that a preview does, in a workspace of `n` older sessions.
fn beside_sessions(n: u32) -> [u64; 3] {
    let world = World::plain();
    world.write("a", "0");
    world.save();
    let index = world.engine.index();
    for k in 0..n {
        let key = SessionKey::parse(&format!("claude:old-{k}")).unwrap();
        world.sessions.start(&key);
        let session =
            Session { key, parent: None, seed_length: None, subagent_of: None, turn: None, seen: Timestamp(1) };
        index.apply(&Batch { follows: None, ops: vec![IndexOp::PutSession { session: Box::new(session) }] }).unwrap();
    }
    let here = SessionKey::parse("claude:here").unwrap();
    world.sessions.start(&here);
    for beat in [Beat::TurnStart(Turn(1)), Beat::TurnEnd(Turn(1))] {
        world.sessions.push(&here, beat);
    }
    let looked = || world.memory.visited().unwrap();
    let before = looked();
    for (kind, text) in [(PointKind::TurnStart, "1"), (PointKind::Mutation, "2"), (PointKind::TurnEnd, "3")] {
        world.write("a", text);
        world.engine.save(&SaveRequest { turn: Some(Turn(1)), ..SaveRequest::of(here.clone(), kind) }).unwrap();
    }
    let (between, heads) = (looked(), world.sessions.heads_read());
    world.engine.preview(&exactly("claude:here/t1^")).unwrap();
    [between - before, looked() - between, world.sessions.heads_read() - heads]
}

/// Each command reads the sessions once or twice, a row each; no log of a session that has nothing to do with it is read.
#[test]
fn a_thousand_sessions_cost_a_row_each_and_no_log() {
    let (few, many) = (beside_sessions(10), beside_sessions(1000));
    let more = 990;
    assert!(many[0] <= few[0] + 3 * more, "three captures: {} rows, then {}", few[0], many[0]);
    assert!(many[1] <= few[1] + 4 * more, "a preview: {} rows, then {}", few[1], many[1]);
    assert_eq!(many[2], few[2], "heads of logs that a preview reads");
}
