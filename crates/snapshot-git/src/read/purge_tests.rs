//! Snapshots without some of what they held.

use super::*;

/// What a purge must come to: the paths that go are listed as purged, directories stay, everything else is as it was.
fn purged(model: &Model, picks: &dyn Fn(&RelPath) -> bool, bodies: &[&[u8]]) -> Model {
    let goes = |path: &RelPath, is: &Is| {
        let content = matches!(is, Is::File(body, _) | Is::Link(body) if bodies.contains(&&body[..]));
        !matches!(is, Is::Skipped(_)) && (picks(path) || content)
    };
    let mut new = Model::new();
    for (path, is) in model {
        if path.ancestors().any(|dir| model.get(&dir).is_some_and(|is| goes(&dir, is))) {
            continue;
        }
        let is = if goes(path, is) { Is::Skipped(SkipReason::Purged) } else { is.clone() };
        new.insert(path.clone(), is);
    }
    new
}

/// True when the bytes are in the store, whatever names them: every pack is read through.
fn is_stored(store: &Store, body: &[u8]) -> bool {
    let fresh = Store::open(store.dir()).unwrap();
    let packs = fresh.packs().unwrap();
    packs.iter().any(|pack| {
        pack.idx().entries().unwrap().iter().any(|entry| {
            let mut content = pack.entry(entry.offset, None).unwrap();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut content, &mut bytes).unwrap();
            bytes.windows(body.len()).any(|window| window == body)
        })
    })
}

#[test]
fn a_purge_takes_paths_and_content_and_leaves_the_rest() {
    let (_top, store) = store();
    let secret = b"the secret, word by word".to_vec();
    let mut models = Vec::new();
    for k in 0..3u64 {
        let mut model = sample();
        for (name, is) in [
            ("keys/one", Is::File(secret.clone(), 0o600)),
            ("deep/er/copy", Is::File(secret.clone(), 0o755)),
            ("deep/er/other", Is::File(noise(k, 300), 0o640)),
            ("alone/link", Is::Link(secret.clone())),
            ("gone/all/of/it", Is::File(b"below".to_vec(), 0o644)),
            ("gone/pipe", Is::Fifo(0o600)),
            ("gone/empty", Is::Dir(0o700)),
            ("here/skipped", Is::Skipped(SkipReason::IgnoredRoot)),
        ] {
            for dir in path(name).ancestors() {
                model.entry(dir).or_insert(Is::Dir(0o750));
            }
            model.insert(path(name), is);
        }
        if k == 0 {
            model.retain(|path, _| !path.to_lossy().starts_with("keys"));
        }
        let snapshot = save(&store, &model);
        models.push((model, snapshot));
    }
    let untouched = sample();
    models.push((untouched.clone(), save(&store, &untouched)));
    let picks = |path: &RelPath| path.to_lossy().starts_with("gone") || path.to_lossy() == "keys/one";
    let blobs = [to_core(&blob(&secret))].into();
    let removal = checkpoint_core::Removal { picks: &picks, blobs: &blobs };
    let all: Vec<Snapshot> = models.iter().map(|(_, snapshot)| *snapshot).collect();
    let found: Vec<_> = find(&store, &all, &removal).into_iter().map(Result::unwrap).collect();
    let names = |at: usize| found[at].iter().map(|(path, _)| path.to_lossy()).collect::<Vec<_>>();
    let below = ["gone", "gone/all", "gone/all/of", "gone/all/of/it", "gone/empty", "gone/pipe"];
    let without_key: Vec<_> = ["alone/link", "deep/er/copy"].iter().chain(&below).map(ToString::to_string).collect();
    assert_eq!(names(0), without_key);
    assert_eq!(names(1), [&without_key[..], &["keys/one".to_owned()]].concat());
    assert!(found[3].is_empty());
    let new = without(&store, &all, &removal).unwrap();
    assert_eq!(new[3], all[3], "what holds none of it stays what it is");
    let live = LiveObjects { snapshots: new.clone(), blobs: vec![] };
    gc(&store, &live, false, &NoProgress, &|| Ok(())).unwrap();
    for ((model, _), snapshot) in models.iter().zip(&new) {
        let wanted = purged(model, &picks, &[&secret]);
        check_reads(&store, &wanted, snapshot);
        verify(&store, snapshot, VerifyLevel::Rehash).unwrap();
    }
    assert!(!is_stored(&store, &secret) && !is_stored(&store, b"below"));
    assert!(is_stored(&store, &noise(1, 300)));
    git_is_content(&store);
    // A second time there is nothing left to do.
    assert!(find(&store, &new, &removal).into_iter().all(|found| found.unwrap().is_empty()));
    assert_eq!(without(&store, &new, &removal).unwrap(), new);
}

/// Rules that go leave out everything from then on: they must not turn into evidence that something was absent.
#[test]
fn purged_rules_leave_out_everything() {
    let (_top, store) = store();
    let snapshot =
        save(&store, &model(&[("sub/.gitignore", file("secret-name\n")), ("sub/x", file("x")), ("y", file("y"))]));
    let picks = |path: &RelPath| path.name() == b".gitignore";
    let removal = checkpoint_core::Removal { picks: &picks, blobs: &std::collections::BTreeSet::new() };
    let new = without(&store, &[snapshot], &removal).unwrap()[0];
    let asked = [path("sub/secret-name"), path("sub/new"), path("new")];
    assert_eq!(crate::rules::ignored_at(&store, &snapshot, &asked).unwrap(), [true, false, false]);
    assert_eq!(crate::rules::ignored_at(&store, &new, &asked).unwrap(), [true, true, false]);
}

/// Stopped at any write, the store is what it was, or has new objects that nobody needs yet.
#[test]
fn a_purge_stopped_at_any_step_loses_nothing() {
    let snapshot_of =
        |store: &Store| save(store, &model(&[("a/secret", file("hush")), ("a/b", file("b")), ("c", file("hush"))]));
    let picks = |path: &RelPath| path.name() == b"secret";
    let steps = {
        let (_top, store) = store();
        let snapshot = snapshot_of(&store);
        let blobs = [to_core(&blob(b"hush"))].into();
        store.ops().fail_from(0);
        without(&store, &[snapshot], &checkpoint_core::Removal { picks: &picks, blobs: &blobs }).unwrap();
        store.ops().steps()
    };
    assert!(steps >= 4, "{steps}");
    for at in 1..=steps {
        let (_top, store) = store();
        let snapshot = snapshot_of(&store);
        let blobs = [to_core(&blob(b"hush"))].into();
        store.ops().fail_from(at);
        let removal = checkpoint_core::Removal { picks: &picks, blobs: &blobs };
        without(&store, &[snapshot], &removal).unwrap_err();
        let reopened = Store::open(store.dir()).unwrap();
        verify(&reopened, &snapshot, VerifyLevel::Rehash).unwrap();
        let new = without(&reopened, &[snapshot], &removal).unwrap();
        verify(&reopened, &new[0], VerifyLevel::Rehash).unwrap();
    }
}
