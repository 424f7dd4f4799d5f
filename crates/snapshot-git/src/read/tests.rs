//! Snapshots made from a model of a workspace, asked and collected.
#![expect(clippy::disallowed_methods, reason = "tests damage files and ask plain git")]

use std::{collections::BTreeMap, fs, ops::ControlFlow, sync::Mutex};

use checkpoint_core::{
    Change, GcReport, LiveObjects, Mode, NoProgress, PathState, Progress, RelPath, SkipReason, Snapshot, SnapshotError,
    VerifyLevel,
};
use gix::{
    ObjectId,
    objs::{Kind, tree},
};
use proptest::prelude::*;

use super::*;
use crate::{
    meta::{BLOB, DIR_PREFIX, DirMeta, ModeClass},
    store::{
        Batch, Store,
        tests::{blob, files, git, git_is_content, noise, put, read_blob, store, write_tree},
        to_core, to_gix,
    },
};

/// What a model workspace has at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Is {
    File(Vec<u8>, u16),
    Link(Vec<u8>),
    Fifo(u16),
    Dir(u16),
    Skipped(SkipReason),
}

/// A workspace: every path has its directories. Ordered as paths are.
pub(super) type Model = BTreeMap<RelPath, Is>;

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn model(entries: &[(&str, Is)]) -> Model {
    let mut model = Model::new();
    for (name, is) in entries {
        for dir in path(name).ancestors() {
            model.entry(dir).or_insert(Is::Dir(0o755));
        }
        model.insert(path(name), is.clone());
    }
    model
}

/// A workspace of one file, with the directories above it.
pub(super) fn one_file(name: &str, body: &[u8]) -> Model {
    model(&[(name, Is::File(body.to_vec(), 0o644))])
}

fn file(body: &str) -> Is {
    Is::File(body.as_bytes().to_vec(), 0o644)
}

fn expected(is: &Is) -> PathState {
    match is {
        Is::File(body, mode) => PathState::File { blob: to_core(&blob(body)), mode: Mode(*mode) },
        Is::Link(text) => PathState::Link { blob: to_core(&blob(text)) },
        Is::Fifo(mode) => PathState::Fifo { mode: Mode(*mode) },
        Is::Dir(mode) => PathState::Dir { mode: Mode(*mode) },
        Is::Skipped(_) => PathState::Absent,
    }
}

/// Writes a model as a capture would.
pub(super) fn save(store: &Store, model: &Model) -> Snapshot {
    let batch = store.batch(true);
    let (tree, meta) = save_dir(&batch, model, None);
    let empty = write_tree(Vec::new());
    let mut worker = batch.worker();
    worker.add(Kind::Tree, empty.0, &empty.1).unwrap();
    drop(worker);
    batch.finish().unwrap();
    Snapshot { tree: to_core(&tree.unwrap_or(empty.0)), meta: to_core(&meta.unwrap_or(empty.0)) }
}

fn save_dir(batch: &Batch<'_>, model: &Model, dir: Option<&RelPath>) -> (Option<ObjectId>, Option<ObjectId>) {
    let mut worker = batch.worker();
    let (mut entries, mut metas, mut bits) = (Vec::new(), Vec::new(), Vec::new());
    let mut meta = DirMeta::default();
    for (path, is) in model.iter().filter(|(p, _)| p.parent().as_ref() == dir) {
        let name = path.name().to_vec();
        let mut entry = |kind: tree::EntryKind, oid| {
            entries.push(tree::Entry { mode: kind.into(), filename: name.clone().into(), oid });
        };
        match is {
            Is::File(body, mode) => {
                worker.add(Kind::Blob, blob(body), body).unwrap();
                let executable = Mode(*mode).is_executable();
                entry(if executable { tree::EntryKind::BlobExecutable } else { tree::EntryKind::Blob }, blob(body));
                bits.push((
                    name.clone(),
                    if executable { ModeClass::Executable } else { ModeClass::File },
                    Mode(*mode),
                ));
            }
            Is::Link(text) => {
                worker.add(Kind::Blob, blob(text), text).unwrap();
                entry(tree::EntryKind::Link, blob(text));
            }
            Is::Fifo(mode) => drop(meta.fifos.insert(name.clone(), Mode(*mode))),
            Is::Skipped(reason) => drop(meta.skipped.insert(name.clone(), *reason)),
            Is::Dir(mode) => {
                let (tree, below) = save_dir(batch, model, Some(path));
                match tree {
                    Some(id) => entry(tree::EntryKind::Tree, id),
                    None => meta.empty.push(name.clone()),
                }
                if let Some(id) = below {
                    let filename = [&[DIR_PREFIX], &name[..]].concat().into();
                    metas.push(tree::Entry { mode: tree::EntryKind::Tree.into(), filename, oid: id });
                }
                bits.push((name.clone(), ModeClass::Dir, Mode(*mode)));
            }
        }
    }
    meta.set_modes(bits.iter().map(|(name, class, mode)| (&name[..], *class, *mode)));
    if let Some(body) = meta.encode() {
        worker.add(Kind::Blob, blob(&body), &body).unwrap();
        metas.push(tree::Entry { mode: tree::EntryKind::Blob.into(), filename: BLOB.into(), oid: blob(&body) });
    }
    let mut tree = |entries: Vec<tree::Entry>| {
        (!entries.is_empty()).then(|| {
            let (id, body) = write_tree(entries);
            worker.add(Kind::Tree, id, &body).unwrap();
            id
        })
    };
    (tree(entries), tree(metas))
}

fn listed(store: &Store, snapshot: &Snapshot, under: Option<&RelPath>) -> Vec<(RelPath, PathState)> {
    let mut all = Vec::new();
    list(store, snapshot, under, &mut |path, state| {
        all.push((path, state));
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

fn changes(store: &Store, before: &Snapshot, after: &Snapshot) -> Vec<Change> {
    let mut all = Vec::new();
    diff(store, before, after, &mut |change| {
        all.push(change);
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

/// What the contract says, computed from the models.
fn expected_changes(before: &Model, after: &Model) -> Vec<Change> {
    let paths: std::collections::BTreeSet<&RelPath> = before.keys().chain(after.keys()).collect();
    let state = |model: &Model, path| model.get(path).map_or(PathState::Absent, expected);
    paths
        .into_iter()
        .map(|path| Change { path: path.clone(), before: state(before, path), after: state(after, path) })
        .filter(|c| c.before != c.after && !(c.before.is_dir() && c.after.is_dir()))
        .collect()
}

pub(super) fn check_reads(store: &Store, model: &Model, snapshot: &Snapshot) {
    let visible = || model.iter().filter(|(_, is)| !matches!(is, Is::Skipped(_)));
    let all: Vec<_> = visible().map(|(path, is)| (path.clone(), expected(is))).collect();
    assert_eq!(listed(store, snapshot, None), all);
    let descent = Descent::default();
    for (path, is) in model {
        let below: Vec<_> = all.iter().filter(|(p, _)| p.is_below(path)).cloned().collect();
        assert_eq!(listed(store, snapshot, Some(path)), below);
        let skip = matches!(is, Is::Skipped(_));
        assert_eq!(
            state(store, &descent, snapshot, path).unwrap(),
            if skip { PathState::Opaque } else { expected(is) }
        );
        let inside = path.join(b"inside").unwrap();
        if !model.contains_key(&inside) {
            assert_eq!(
                state(store, &descent, snapshot, &inside).unwrap(),
                if skip { PathState::Opaque } else { PathState::Absent }
            );
        }
    }
    // Whatever was asked before, the answer is the same.
    for path in model.keys().rev() {
        let alone = state(store, &Descent::default(), snapshot, path).unwrap();
        assert_eq!(state(store, &descent, snapshot, path).unwrap(), alone);
    }
    let skips: Vec<_> = model
        .iter()
        .filter_map(|(path, is)| match is {
            Is::Skipped(reason) => Some((path.clone(), *reason)),
            _ => None,
        })
        .collect();
    assert_eq!(skipped(store, snapshot).unwrap().into_iter().map(|s| (s.path, s.reason)).collect::<Vec<_>>(), skips);
    for level in [VerifyLevel::Reachable, VerifyLevel::Rehash] {
        verify(store, snapshot, level).unwrap();
    }
}

fn sample() -> Model {
    model(&[
        ("a-b", file("sorts after what a holds, before in a git tree")),
        ("a/b", file("one")),
        ("a/b.c", Is::File(b"script".to_vec(), 0o755)),
        ("a/deep/er/file", Is::File(b"private".to_vec(), 0o600)),
        ("a/fifo", Is::Fifo(0o620)),
        ("a.b", Is::Link(b"/nowhere".to_vec())),
        ("empty/in/empty", Is::Dir(0o700)),
        ("only-fifo/f", Is::Fifo(0o644)),
        ("only-skipped/s", Is::Skipped(SkipReason::Special)),
        ("node_modules", Is::Skipped(SkipReason::IgnoredRoot)),
        ("secret/.env", Is::Skipped(SkipReason::TooLarge)),
        ("secret/x", file("")),
        ("meta", file("a file of that name")),
        ("+meta/meta", file("and one more")),
    ])
}

#[test]
fn a_snapshot_reads_back_as_it_was_captured() {
    let (_top, store) = store();
    let model = sample();
    let snapshot = save(&store, &model);
    check_reads(&store, &model, &snapshot);
    assert_eq!(listed(&store, &snapshot, Some(&path("a/b"))), []);
    assert_eq!(listed(&store, &snapshot, Some(&path("nothing"))), []);
    git_is_content(&store);
    if let Some(text) = git(store.dir(), &["ls-tree", "-r", &snapshot.tree.to_string()]) {
        let count = model.values().filter(|is| matches!(is, Is::File(..) | Is::Link(_))).count();
        assert_eq!(text.lines().count(), count);
        assert!(text.lines().any(|l| l.starts_with("120000") && l.ends_with("a.b")), "{text}");
    }
    let nothing = save(&store, &Model::new());
    check_reads(&store, &Model::new(), &nothing);
    assert_eq!(changes(&store, &nothing, &snapshot), expected_changes(&Model::new(), &model));
    assert_eq!(changes(&store, &snapshot, &nothing), expected_changes(&model, &Model::new()));
}

#[test]
fn a_git_directory_may_be_named_among_the_skipped_only() {
    let (_top, store) = store();
    let mut meta = DirMeta::default();
    meta.skipped.insert(b".git".to_vec(), SkipReason::NestedRepo);
    let body = meta.encode().unwrap();
    let (id, tree) =
        write_tree(vec![tree::Entry { mode: tree::EntryKind::Blob.into(), filename: BLOB.into(), oid: blob(&body) }]);
    let empty = write_tree(Vec::new());
    let hostile =
        write_tree(vec![tree::Entry { mode: tree::EntryKind::Blob.into(), filename: ".GIT".into(), oid: blob(b"") }]);
    let batch = store.batch(true);
    let mut worker = batch.worker();
    worker.add(Kind::Blob, blob(&body), &body).unwrap();
    for (id, body) in [(id, &tree), (empty.0, &empty.1), (hostile.0, &hostile.1)] {
        worker.add(Kind::Tree, id, body).unwrap();
    }
    drop(worker);
    batch.finish().unwrap();
    let snapshot = Snapshot { tree: to_core(&empty.0), meta: to_core(&id) };
    let skips = skipped(&store, &snapshot).unwrap();
    assert_eq!(skips[0].path.as_bytes(), b".git");
    let tampered = Snapshot { tree: to_core(&hostile.0), meta: to_core(&empty.0) };
    let refused = list(&store, &tampered, None, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(SnapshotError::Damaged { id, .. }) if id == tampered.tree));
}

#[test]
fn a_change_of_kind_is_one_change_and_what_a_directory_held_follows() {
    let (_top, store) = store();
    let dir = model(&[("x/inner/f", file("f")), ("x/p", Is::Fifo(0o600)), ("x.y", file("z"))]);
    for other in [file("now a file"), Is::Link(b"t".to_vec()), Is::Fifo(0o600), Is::Skipped(SkipReason::Unreadable)] {
        let leaf = model(&[("x", other), ("x.y", file("z"))]);
        let (a, b) = (save(&store, &dir), save(&store, &leaf));
        let forth = changes(&store, &a, &b);
        assert_eq!(forth, expected_changes(&dir, &leaf));
        assert_eq!(forth.iter().map(|c| c.path.to_lossy()).collect::<Vec<_>>(), ["x", "x/inner", "x/inner/f", "x/p"]);
        assert!(forth[1..].iter().all(|c| c.after.is_absent()));
        assert_eq!(changes(&store, &b, &a), forth.iter().map(Change::inverse).collect::<Vec<_>>());
    }
}

/// Many directories that differ are looked into several at a time: the changes still come in path order, and a visit still
/// ends it where it wants.
#[test]
fn many_directories_are_compared_in_path_order() {
    let (_top, store) = store();
    let (mut one, mut two) = (Model::new(), Model::new());
    for n in 0..600 {
        let names = [format!("d{n}/deep/f"), format!("d{n}/g"), format!("d{n}"), format!("e{n}"), format!("d{n}.x/y")];
        let [deep, g, dir, e, dotted] = names.map(|name| path(&name));
        for model in [&mut one, &mut two] {
            for dir in deep.ancestors().chain(dotted.ancestors()) {
                model.insert(dir, Is::Dir(0o755));
            }
            model.insert(deep.clone(), file("same"));
            model.insert(dotted.clone(), file("same"));
        }
        match n % 5 {
            0 => drop(two.insert(g, file("new"))),
            1 => drop(one.insert(e, file("gone"))),
            2 => drop(two.insert(deep, file("other"))),
            3 => {
                two.retain(|path, _| !path.is_at_or_below(&dir));
                two.insert(dir, file("a file now"));
            }
            _ => {}
        }
    }
    let (a, b) = (save(&store, &one), save(&store, &two));
    let all = expected_changes(&one, &two);
    assert!(all.len() > 600);
    assert_eq!(changes(&store, &a, &b), all);
    for end in [1, 2, 77, 255, 256, 257, 600, all.len()] {
        let mut some = Vec::new();
        let visit = &mut |change| {
            some.push(change);
            if some.len() == end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        diff(&store, &a, &b, visit).unwrap();
        assert_eq!(some, all[..end], "{end}");
    }
}

#[test]
fn equal_subtrees_are_not_read() {
    let empty_store = store;
    let (_top, store) = store();
    let mut one = model(&[("same/deep/f", file("f")), ("other/g", file("g"))]);
    let a = save(&store, &one);
    one.insert(path("other/g"), file("changed"));
    let b = save(&store, &one);
    // Without the pack that only `same` needs, the diff still works.
    let (_top2, partial) = empty_store();
    let batch = partial.batch(true);
    let mut worker = batch.worker();
    for id in [a.tree, a.meta, b.tree, b.meta] {
        let body = store.read(&to_gix(&id), Kind::Tree).unwrap();
        worker.add(Kind::Tree, to_gix(&id), &body).unwrap();
    }
    for snapshot in [&a, &b] {
        for (name, _, id) in node::entries(&store, &to_gix(&snapshot.tree)).unwrap() {
            if name == b"other" {
                worker.add(Kind::Tree, id, &store.read(&id, Kind::Tree).unwrap()).unwrap();
            }
        }
    }
    drop(worker);
    batch.finish().unwrap();
    assert_eq!(changes(&partial, &a, &b).len(), 1);
    assert!(matches!(verify(&partial, &a, VerifyLevel::Reachable), Err(SnapshotError::Missing { .. })));
}

#[test]
fn a_visitor_stops_a_walk() {
    let (_top, store) = store();
    let model = sample();
    let (a, b) = (save(&store, &Model::new()), save(&store, &model));
    for n in 1..6 {
        let (mut listed, mut changed) = (0, 0);
        let until = |count: &mut i32| {
            *count += 1;
            if *count == n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        list(&store, &b, None, &mut |_, _| until(&mut listed)).unwrap();
        diff(&store, &a, &b, &mut |_| until(&mut changed)).unwrap();
        assert_eq!((listed, changed), (n, n));
    }
}

#[test]
fn verify_names_what_is_missing_or_damaged() {
    let (_top, store) = store();
    let body = noise(9, 3000);
    let model = model(&[("a/f", Is::File(body.clone(), 0o644)), ("b", file("b"))]);
    let snapshot = save(&store, &model);
    let pack = files(&store, "pack").remove(0);
    let good = fs::read(&pack).unwrap();
    let at = good.windows(64).position(|w| w == &body[100..164]).expect("stored as it is");
    let mut bad = good.clone();
    bad[at] ^= 1;
    fs::write(&pack, &bad).unwrap();
    let opened = Store::open(store.dir()).unwrap();
    verify(&opened, &snapshot, VerifyLevel::Reachable).unwrap();
    let id = to_core(&blob(&body));
    assert!(
        matches!(verify(&opened, &snapshot, VerifyLevel::Rehash), Err(SnapshotError::Damaged { id: found, .. }) if found == id)
    );
    fs::remove_file(&pack).unwrap();
    fs::remove_file(pack.with_extension("idx")).unwrap();
    let opened = Store::open(store.dir()).unwrap();
    let lost = verify(&opened, &snapshot, VerifyLevel::Reachable);
    assert!(matches!(lost, Err(SnapshotError::Missing { id }) if id == snapshot.tree));
}

#[test]
fn usage_agrees_with_the_disk_and_tells_links_apart() {
    let (top, store) = store();
    save(&store, &sample());
    let before = usage(&store).unwrap();
    assert_eq!(before.shared_bytes, 0);
    if let Ok(out) = std::process::Command::new("du").args(["-s", "-B1"]).arg(store.dir()).output()
        && out.status.success()
    {
        let said = String::from_utf8_lossy(&out.stdout).split_whitespace().next().unwrap().parse::<u64>().unwrap();
        assert_eq!(before.own_bytes, said);
    }
    let pack = files(&store, "pack").remove(0);
    fs::hard_link(&pack, top.path().join("elsewhere")).unwrap();
    let after = usage(&store).unwrap();
    assert!(after.shared_bytes > 0);
    assert_eq!(after.own_bytes + after.shared_bytes, before.own_bytes);
}

// ---- garbage collection

fn collect(store: &Store, live: &[Snapshot], dry: bool) -> GcReport {
    let live = LiveObjects { snapshots: live.to_vec(), blobs: Vec::new() };
    gc(store, &live, dry, &NoProgress, &|| Ok(())).unwrap()
}

fn bytes(store: &Store) -> u64 {
    let all = [files(store, "pack"), files(store, "idx"), files(store, "tmp")].concat();
    all.iter().map(|p| p.metadata().unwrap().len()).sum()
}

#[test]
fn what_is_dead_goes_and_what_lives_stays_as_the_dry_run_said() {
    let (_top, store) = store();
    let mut models = Vec::new();
    for k in 0..6 {
        let mut model = sample();
        model.insert(path("a/b"), Is::File(noise(k, 5000), 0o644));
        model.insert(path(&format!("new-{k}")), Is::File(noise(100 + k, 9000), 0o640));
        let snapshot = save(&store, &model);
        models.push((model, snapshot));
    }
    fs::write(store.pack_dir().join("tmp-1-2-3.pack"), b"PACK half of one").unwrap();
    let live: Vec<_> = [1, 4].iter().map(|k| models[*k].1).collect();
    let before = bytes(&store);
    let names = files(&store, "pack");
    let dry = collect(&store, &live, true);
    assert_eq!((files(&store, "pack"), bytes(&store)), (names, before), "a dry run writes nothing");
    let bumps = Mutex::new(0);
    let done = gc(&store, &LiveObjects { snapshots: live.clone(), blobs: vec![] }, false, &NoProgress, &|| {
        *bumps.lock().unwrap() += 1;
        assert!(bytes(&store) >= before, "the epoch moves before the first removal (F19)");
        Ok(())
    })
    .unwrap();
    assert_eq!(done, dry);
    assert_eq!(*bumps.lock().unwrap(), 1);
    assert_eq!((done.freed_bytes, done.swept), (before - bytes(&store), 1));
    assert!(done.dropped >= 16, "{done:?}");
    for k in [1, 4] {
        check_reads(&store, &models[k].0, &models[k].1);
        check_reads(&Store::open(store.dir()).unwrap(), &models[k].0, &models[k].1);
    }
    assert!(!store.contains(&blob(&noise(100, 9000))) && store.contains(&blob(&noise(101, 9000))));
    assert!(verify(&store, &models[0].1, VerifyLevel::Reachable).is_err());
    git_is_content(&store);
    let syncs = store.syncs();
    let again = collect(&store, &live, false);
    assert_eq!((again.kept, again.dropped, again.freed_bytes, again.swept), (done.kept, 0, 0, 0));
    assert_eq!(store.syncs(), syncs, "nothing to do costs no sync");
}

#[test]
fn single_blobs_stay_and_the_last_snapshot_takes_everything_with_it() {
    let (_top, store) = store();
    put(&store, &[b"a plan", b"garbage"]);
    let snapshot = save(&store, &sample());
    let live = LiveObjects { snapshots: vec![snapshot], blobs: vec![to_core(&blob(b"a plan"))] };
    let report = gc(&store, &live, false, &NoProgress, &|| Ok(())).unwrap();
    assert_eq!(report.dropped, 2, "the garbage and the empty tree");
    assert_eq!(read_blob(&store, &blob(b"a plan")).unwrap(), b"a plan");
    collect(&store, &[], false);
    assert_eq!((files(&store, "pack").len(), files(&store, "idx").len()), (0, 0));
}

#[test]
fn sixty_packs_become_few_and_every_point_survives() {
    let (_top, store) = store();
    let mut points = Vec::new();
    for k in 0..60 {
        let model = model(&[("d/e/f", Is::File(noise(k, 200), 0o644)), ("g", file("same"))]);
        points.push((save(&store, &model), model));
    }
    assert_eq!(files(&store, "pack").len(), 60);
    let live: Vec<_> = points.iter().map(|(s, _)| *s).collect();
    let dry = collect(&store, &live, true);
    assert_eq!(collect(&store, &live, false), dry);
    assert_eq!((dry.dropped, files(&store, "pack").len()), (0, 1));
    for (snapshot, model) in &points {
        check_reads(&store, model, snapshot);
    }
    git_is_content(&store);
}

#[test]
fn a_missing_tree_stops_a_collection_before_it_touches_anything() {
    let (_top, store) = store();
    let snapshot = save(&store, &sample());
    put(&store, &[b"garbage"]);
    let unknown = Snapshot { tree: to_core(&blob(b"nowhere")), meta: snapshot.meta };
    let names = files(&store, "pack");
    let live = LiveObjects { snapshots: vec![snapshot, unknown], blobs: vec![] };
    let refused = gc(&store, &live, false, &NoProgress, &|| panic!("nothing is removed"));
    assert!(matches!(refused, Err(SnapshotError::Missing { .. })));
    assert_eq!(files(&store, "pack"), names);
}

/// Two captures at once can store an object twice. When one copy rots, collecting must keep the other.
#[test]
fn of_two_copies_the_sound_one_stays() {
    for rotten in 0..2 {
        let (_top, store) = store();
        let other = Store::open(store.dir()).unwrap();
        other.packs().unwrap();
        let body = noise(5, 4000);
        let one = save(&store, &model(&[("f", Is::File(body.clone(), 0o644)), ("one", file("1"))]));
        let two = save(&other, &model(&[("f", Is::File(body.clone(), 0o644)), ("two", file("2"))]));
        assert_eq!(files(&store, "pack").len(), 2);
        let pack = &files(&store, "pack")[rotten];
        let mut bytes = fs::read(pack).unwrap();
        let at = bytes.windows(64).position(|w| w == &body[100..164]).expect("stored as it is");
        bytes[at] ^= 1;
        fs::write(pack, bytes).unwrap();
        let store = Store::open(store.dir()).unwrap();
        collect(&store, &[one, two], false);
        for snapshot in [one, two] {
            verify(&store, &snapshot, VerifyLevel::Rehash).unwrap();
        }
        collect(&store, &[one], false);
        verify(&store, &one, VerifyLevel::Rehash).unwrap();
    }
}

#[test]
fn a_damaged_blob_is_not_thrown_away() {
    let (_top, store) = store();
    let body = noise(6, 4000);
    let live = save(&store, &model(&[("f", Is::File(body.clone(), 0o644)), ("g", file("g"))]));
    let dead = model(&[("f", Is::File(body.clone(), 0o644)), ("h", file("dead"))]);
    collect(&store, &[live, save(&store, &dead)], false);
    let pack = files(&store, "pack")
        .into_iter()
        .find(|p| fs::read(p).unwrap().windows(64).any(|w| w == &body[100..164]))
        .unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(64).position(|w| w == &body[100..164]).unwrap();
    bytes[at] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let store = Store::open(store.dir()).unwrap();
    collect(&store, &[live], false);
    let id = to_core(&blob(&body));
    assert!(
        matches!(verify(&store, &live, VerifyLevel::Rehash), Err(SnapshotError::Damaged { id: found, .. }) if found == id)
    );
    assert_eq!(read_blob(&store, &blob(b"g")).unwrap(), b"g");
}

/// A torn pack: what of it lives is copied out before it is swept.
#[test]
fn a_torn_pack_is_emptied_before_it_is_swept() {
    let (_top, store) = store();
    let bodies: Vec<Vec<u8>> = (0..20u64).map(|k| noise(k, 1000)).collect();
    put(&store, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let pack = files(&store, "pack").remove(0);
    let whole = fs::read(&pack).unwrap();
    fs::write(&pack, &whole[..whole.len() / 2]).unwrap();
    fs::remove_file(pack.with_extension("idx")).unwrap();
    let store = Store::open(store.dir()).unwrap();
    let live = |k: usize| LiveObjects { snapshots: vec![], blobs: vec![to_core(&blob(&bodies[k]))] };
    gc(&store, &live(19), false, &NoProgress, &|| Ok(())).unwrap();
    assert!(pack.exists(), "an object that lives may be in it: left for a repair");
    let report = gc(&store, &live(3), false, &NoProgress, &|| Ok(())).unwrap();
    assert_eq!((report.kept, report.swept), (1, 1));
    assert!(!pack.exists());
    assert_eq!(read_blob(&store, &blob(&bodies[3])).unwrap(), bodies[3]);
    assert!(store.contains(&blob(&bodies[3])));
    git_is_content(&store);
}

#[test]
fn linked_packs_are_a_bridge_that_a_collection_takes_down() {
    let (top, theirs) = store();
    put(&theirs, &[b"live", b"dead"]);
    let mine = Store::open(&top.path().join("mine")).unwrap();
    for file in [files(&theirs, "pack"), files(&theirs, "idx")].concat() {
        fs::hard_link(&file, mine.pack_dir().join(file.file_name().unwrap())).unwrap();
    }
    mine.refresh().unwrap();
    assert!(mine.contains(&blob(b"live")));
    let both = [to_core(&blob(b"live")), to_core(&blob(b"dead"))];
    for live in [&both[..], &both[..1]] {
        let live = LiveObjects { snapshots: vec![], blobs: live.to_vec() };
        gc(&mine, &live, false, &NoProgress, &|| Ok(())).unwrap();
        assert_eq!(usage(&mine).unwrap().shared_bytes, 0);
        assert_eq!(read_blob(&mine, &blob(b"live")).unwrap(), b"live");
    }
    assert!(!mine.contains(&blob(b"dead")));
    assert_eq!(read_blob(&theirs, &blob(b"dead")).unwrap(), b"dead");
    git_is_content(&mine);
    git_is_content(&theirs);
}

/// Every step of a collection fails in turn: each live point is whole afterwards, and the next collection finishes.
#[test]
fn a_stop_at_every_step_of_a_collection_loses_nothing() {
    let make = |store: &Store| {
        let mut points = Vec::new();
        for k in 0..4 {
            let model = model(&[("f", Is::File(noise(k, 900), 0o644)), ("g", Is::File(noise(k / 2, 800), 0o600))]);
            points.push((save(store, &model), model));
        }
        fs::write(store.pack_dir().join("tmp-9"), b"x").unwrap();
        points
    };
    let run = |store: &Store, live: &[Snapshot]| {
        let live = LiveObjects { snapshots: live.to_vec(), blobs: vec![] };
        gc(store, &live, false, &NoProgress, &|| {
            store.ops().write_at(&tempfile::tempfile().unwrap(), b"e", 0).map_err(crate::store::at(store.dir()))
        })
    };
    let (_top, whole) = store();
    let points = make(&whole);
    whole.ops().fail_from(0);
    run(&whole, &[points[0].0, points[3].0]).unwrap();
    let steps = whole.ops().steps();
    assert!(steps > 12, "{steps}");
    for n in 1..=steps {
        let (_top, store) = store();
        let points = make(&store);
        let live = [points[0].0, points[3].0];
        store.ops().fail_from(n);
        run(&store, &live).unwrap_err();
        store.ops().fail_from(0);
        let after = Store::open(store.dir()).unwrap();
        for k in [0, 3] {
            check_reads(&after, &points[k].1, &points[k].0);
        }
        run(&after, &live).unwrap();
        for k in [0, 3] {
            check_reads(&after, &points[k].1, &points[k].0);
        }
        assert!(files(&after, "tmp").is_empty());
        git_is_content(&after);
    }
}

#[test]
fn a_collection_can_be_interrupted() {
    struct Stop(u32, Mutex<u32>);
    impl Progress for Stop {
        fn tick(&self, _: &'static str, _: u64, _: Option<u64>) -> ControlFlow<()> {
            let mut ticks = self.1.lock().unwrap();
            *ticks += 1;
            if *ticks > self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let (_top, store) = store();
    let live = save(&store, &sample());
    put(&store, &[b"dead"]);
    let roots = LiveObjects { snapshots: vec![live], blobs: vec![] };
    let stopped = gc(&store, &roots, false, &Stop(0, Mutex::default()), &|| Ok(()));
    assert!(matches!(stopped, Err(SnapshotError::Interrupted)));
    verify(&store, &live, VerifyLevel::Rehash).unwrap();
    collect(&store, &[live], false);
    assert!(!store.contains(&blob(b"dead")));
}

mod damage {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]
        /// Whatever is flipped or cut in packs and indexes: what could be read before a collection can be read after it,
        /// and nothing panics.
        #[test]
        fn a_collection_never_takes_what_could_still_be_read(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u8..), 0..5),
            cut in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
            gone in prop::option::of(any::<prop::sample::Index>()),
            boot in any::<bool>(),
        ) {
            let (_top, store) = store();
            let stale = Store::open(store.dir()).unwrap();
            stale.packs().unwrap();
            let bodies: Vec<Vec<u8>> = (0..24).map(|k| noise(k, 100 + 40 * usize::try_from(k).unwrap())).collect();
            let refs: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
            put(&store, &refs[..10]);
            put(&store, &refs[10..20]);
            put(&stale, &refs[8..12]);
            put(&store, &refs[20..]);
            let point = save(&store, &sample());
            let all = [files(&store, "pack"), files(&store, "idx")].concat();
            for (which, at, mask) in flips {
                let mut bytes = fs::read(which.get(&all)).unwrap();
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
                fs::write(which.get(&all), bytes).unwrap();
            }
            if let Some((which, at)) = cut {
                let bytes = fs::read(which.get(&all)).unwrap();
                fs::write(which.get(&all), &bytes[..at.index(bytes.len())]).unwrap();
            }
            if let Some(which) = gone {
                fs::remove_file(which.get(&files(&store, "idx"))).unwrap();
            }
            if boot {
                fs::write(store.dir().join("boot"), "another\n").unwrap();
            }
            let opened = Store::open(store.dir()).unwrap();
            let live: Vec<ObjectId> = refs.iter().step_by(2).map(|b| blob(b)).collect();
            let readable = |store: &Store| live.iter().filter(|id| read_blob(store, id).is_ok()).copied().collect::<Vec<_>>();
            let whole = |store: &Store| verify(store, &point, VerifyLevel::Rehash).is_ok();
            let (before, point_before) = (readable(&opened), whole(&opened));
            let roots = LiveObjects { snapshots: vec![point], blobs: live.iter().map(to_core).collect() };
            let dry = gc(&opened, &roots, true, &NoProgress, &|| Ok(()));
            let done = gc(&opened, &roots, false, &NoProgress, &|| Ok(()));
            prop_assert!(dry.is_ok() == done.is_ok(), "{:?} {:?}", dry, done);
            for store in [&opened, &Store::open(opened.dir()).unwrap()] {
                let after = readable(store);
                let lost: Vec<_> = before.iter().filter(|id| !after.contains(id)).map(|id| (id, read_blob(store, id))).collect();
                prop_assert!(lost.is_empty(), "{:?} after {:?}", lost, done);
                prop_assert!(!point_before || whole(store), "{:?} after {:?}", verify(store, &point, VerifyLevel::Rehash), done);
            }
            if let (Ok(_), Ok(again)) = (done, gc(&opened, &roots, false, &NoProgress, &|| Ok(()))) {
                prop_assert!(!point_before || again.kept > 0);
            }
        }
    }
}

// ---- any workspace

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "a-", "a.b", "a0", "b", "meta", "+meta", "\u{e9}", "Z"])
}

fn is() -> impl Strategy<Value = Is> {
    let mode = prop::sample::select(vec![0o644, 0o600, 0o755, 0o700, 0o664, 0o4755]);
    prop_oneof![
        4 => (prop::collection::vec(0u8..3, 0..3), mode).prop_map(|(body, mode)| Is::File(body, mode)),
        1 => prop::sample::select(vec!["x", "y"]).prop_map(|t| Is::Link(t.as_bytes().to_vec())),
        1 => prop::sample::select(vec![0o644, 0o600]).prop_map(Is::Fifo),
        2 => prop::sample::select(vec![0o755, 0o700]).prop_map(Is::Dir),
        1 => prop::sample::select(vec![SkipReason::TooLarge, SkipReason::Special]).prop_map(Is::Skipped),
    ]
}

fn any_model() -> impl Strategy<Value = Model> {
    prop::collection::vec((prop::collection::vec(name(), 1..4), is()), 0..12).prop_map(|entries| {
        let mut model = Model::new();
        for (names, is) in entries {
            let path = path(&names.join("/"));
            let blocked = path.ancestors().any(|p| model.get(&p).is_some_and(|is| !matches!(is, Is::Dir(_))));
            if blocked || model.keys().any(|p| p.is_at_or_below(&path)) {
                continue;
            }
            for dir in path.ancestors() {
                model.entry(dir).or_insert(Is::Dir(0o755));
            }
            model.insert(path, is);
        }
        model
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]
    #[test]
    fn any_workspace_reads_back_and_any_two_differ_as_their_models_do(one in any_model(), two in any_model()) {
        let (_top, store) = store();
        let (a, b) = (save(&store, &one), save(&store, &two));
        check_reads(&store, &one, &a);
        check_reads(&store, &two, &b);
        prop_assert_eq!(changes(&store, &a, &b), expected_changes(&one, &two));
        prop_assert_eq!(changes(&store, &b, &a), expected_changes(&two, &one));
        prop_assert_eq!(changes(&store, &a, &a), vec![]);
        collect(&store, &[b], false);
        check_reads(&store, &two, &b);
    }
}

#[path = "purge_tests.rs"]
mod purge;
