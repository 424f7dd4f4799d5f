//! The first capture of a git worktree: what the user's index and packs know, and every way in which they may be wrong.
//!
//! What a point holds is compared with a capture that believes nothing. To see what is believed, an index is made to lie:
//! a filter that keeps the size has made other content of a file, and nothing says so any more. That is the one lie that
//! nothing in git disproves, so where it is *not* told on, the shortcut was not taken.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{FileExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use checkpoint_core::{
    BlobStore, CapturePolicy, Captured, LiveObjects, NoProgress, PathState, Removal, SnapshotBackend, SnapshotError,
    VerifyLevel,
};
use snapshot_git::{EpochFile, Fault, Faults, GitSnapshots, Options};

use crate::world::{Ask, World, capture_with, path, run_git};

fn text(name: &str) -> String {
    let lines: Vec<String> = (0..400).map(|line| format!("{line} of {name}\n")).collect();
    lines.concat()
}

const NAMES: [&str; 5] = ["a", "b.txt", "d/c", "d/e/f", "d/e/g"];

/// A repository at rest: committed, packed, its files older than the index by more than the racy window.
fn packed() -> Option<World> {
    let world = World::git()?;
    for name in NAMES {
        world.put(name, text(name));
    }
    symlink("b.txt", world.abs("link")).unwrap();
    pack(&world);
    Some(world)
}

fn pack(world: &World) {
    World::settle();
    world.run_git(&["add", "-A"]).unwrap();
    world.run_git(&["commit", "-q", "--allow-empty", "-m", "c"]).unwrap();
    world.run_git(&["repack", "-adfq"]).unwrap();
}

/// A repository at rest whose index has other content for `d/c` than the file.
fn lying() -> Option<World> {
    let world = packed()?;
    world.run_git(&["config", "filter.rot.clean", "tr a-z b-za"])?;
    fs::write(world.abs(".git/info/attributes"), "d/c filter=rot\n").unwrap();
    world.put("d/c", text("d/C"));
    pack(&world);
    fs::remove_file(world.abs(".git/info/attributes")).unwrap();
    Some(world)
}

fn all_packs(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|ending| ending == "pack")).collect()
}

/// The packs that were taken over, and those that the captures have written.
fn packs(world: &World) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let is_seeded = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("pack-seed-");
    all_packs(&world.store().join("objects/pack")).into_iter().partition(is_seeded)
}

fn theirs(world: &World) -> PathBuf {
    all_packs(&world.abs(".git/objects/pack")).pop().unwrap()
}

/// Contents of files that the captures have written themselves.
fn own_blobs(world: &World) -> usize {
    let store = world.store();
    let is_meta = |line: &&str| {
        let id = line.split_whitespace().next().unwrap();
        let args = ["--git-dir", store.to_str().unwrap(), "cat-file", "blob", id];
        run_git(world.dir.path(), &args, &[]).unwrap().starts_with("rwd meta ")
    };
    let blobs = |pack: &PathBuf| {
        let list = run_git(world.dir.path(), &["verify-pack", "-v", pack.to_str().unwrap()], &[]).unwrap();
        let blobs = list.lines().filter(|line| line.split_whitespace().nth(1) == Some("blob"));
        blobs.filter(|line| !is_meta(line)).count()
    };
    packs(world).1.iter().map(blobs).sum()
}

/// What a capture that believes nothing finds.
fn unseeded(world: &World) -> Captured {
    let dir = tempfile::tempdir().unwrap();
    let epoch = Arc::new(EpochFile::new(dir.path().join("epoch")));
    let options = Options { epoch, ..world.options.clone() };
    let backend = GitSnapshots::open(&world.root, &dir.path().join("git"), &dir.path().join("c"), options).unwrap();
    let policy = CapturePolicy { seed_from_git: false, ..world.ask.policy.clone() };
    capture_with(&backend, &Ask { policy, ..world.ask.clone() })
}

fn is_right(world: &World, captured: &Captured) {
    let expected = unseeded(world);
    assert_eq!((captured.snapshot, &captured.skipped), (expected.snapshot, &expected.skipped));
    world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
}

fn content(world: &World, captured: &Captured, name: &str) -> Result<String, SnapshotError> {
    let PathState::File { blob, .. } = world.backend.state(&captured.snapshot, &path(name))? else {
        panic!("{name} is no file")
    };
    let mut out = String::new();
    let read = std::io::Read::read_to_string(&mut world.backend.open_blob(&blob)?, &mut out);
    read.map_err(|error| SnapshotError::Other { what: "reading", source: error.into() })?;
    Ok(out)
}

#[test]
fn nothing_of_a_clean_worktree_is_compressed_or_stored_again() {
    let Some(mut world) = packed() else { return };
    let captured = world.capture_next();
    assert_eq!((packs(&world).0.len(), own_blobs(&world)), (1, 0));
    is_right(&world, &captured);
    // And the next capture knows it all by the cache.
    World::settle();
    world.reopen();
    let again = world.capture_next();
    assert_eq!((again.snapshot, again.new_bytes), (captured.snapshot, 0));
    run_git(&world.root, &["--git-dir", world.store().to_str().unwrap(), "fsck", "--full", "--strict"], &[]).unwrap();
}

/// Everything the user's git may do to its own packs, and worse, leaves the point whole.
#[test]
fn a_point_outlives_what_it_was_seeded_from() {
    for act in [&["gc", "--prune=now", "-q"][..], &["repack", "-adfq"], &[]] {
        let Some(mut world) = packed() else { return };
        let captured = world.capture_next();
        world.put("a", "other");
        if act.is_empty() {
            fs::remove_dir_all(world.abs(".git")).unwrap();
        } else {
            pack(&world);
            world.run_git(&["update-ref", "-d", "HEAD"]).unwrap();
            world.run_git(&["reflog", "expire", "--expire=now", "--all"]).unwrap();
            world.run_git(act).unwrap();
        }
        world.reopen();
        world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
        for name in NAMES {
            assert_eq!(content(&world, &captured, name).unwrap(), text(name));
        }
    }
}

/// The lie is told on here, so the tests below would see it: an index with nothing to say against it is believed.
#[test]
fn an_index_that_nothing_speaks_against_is_believed() {
    let Some(world) = lying() else { return };
    let captured = world.capture();
    assert_ne!(captured.snapshot, unseeded(&world).snapshot);
    assert_eq!(content(&world, &captured, "d/c").unwrap().len(), text("d/C").len());
}

#[test]
fn nothing_is_believed_that_something_speaks_against() {
    type Trap = (&'static str, fn(&mut World));
    let traps: [Trap; 19] = [
        ("switched off", |world| world.ask.policy.seed_from_git = false),
        ("every file shall be read", |world| world.ask.policy.verify_by_hash = true),
        ("assume-unchanged", |world| drop(world.run_git(&["update-index", "--assume-unchanged", "d/c"]))),
        ("skip-worktree", |world| drop(world.run_git(&["update-index", "--skip-worktree", "d/c"]))),
        ("split index", |world| drop(world.run_git(&["update-index", "--split-index"]))),
        ("an unknown extension", |world| drop(world.run_git(&["config", "extensions.strange", "true"]))),
        ("a newer repository", |world| drop(world.run_git(&["config", "core.repositoryFormatVersion", "9"]))),
        ("attributes beside it, untracked", |world| world.put("d/.gitattributes", "c filter=rot\n")),
        ("attributes above it, untracked", |world| world.put(".gitattributes", "d/* filter=rot\n")),
        ("attributes of the repository", |world| {
            fs::write(world.abs(".git/info/attributes"), "c working-tree-encoding=x\n").unwrap();
        }),
        ("attributes that a setting names", |world| {
            fs::write(world.dir.path().join("attributes"), "* filter=rot\n").unwrap();
            let file = world.dir.path().join("attributes");
            world.run_git(&["config", "core.attributesFile", file.to_str().unwrap()]).unwrap();
        }),
        ("attributes of the user", |world| {
            fs::create_dir(world.dir.path().join("git-config")).unwrap();
            fs::write(world.dir.path().join("git-config/attributes"), "c filter=rot\n").unwrap();
            world.options.config.default_excludes = Some(world.dir.path().join("git-config/ignore"));
            world.reopen();
        }),
        ("attributes of the system", |world| {
            fs::write(world.dir.path().join("gitattributes"), "[attr]odd filter=rot\nc odd\n").unwrap();
            world.options.config.files = vec![world.dir.path().join("gitconfig")];
            world.reopen();
        }),
        ("an index from just after the file", |world| {
            let facts = fs::metadata(world.abs("d/c")).unwrap();
            let index = fs::File::open(world.abs(".git/index")).unwrap();
            index.set_modified(facts.modified().unwrap() + std::time::Duration::from_millis(5)).unwrap();
        }),
        ("an index from the future", |world| {
            let index = fs::File::open(world.abs(".git/index")).unwrap();
            index.set_modified(std::time::SystemTime::now() + std::time::Duration::from_hours(1)).unwrap();
        }),
        ("a pack of a partial clone", |world| fs::write(theirs(world).with_extension("promisor"), "").unwrap()),
        ("a pack that others may write", |world| {
            fs::set_permissions(theirs(world), fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("a pack without an index", |world| fs::remove_file(theirs(world).with_extension("idx")).unwrap()),
        ("a torn index", |world| {
            let all = fs::read(world.abs(".git/index")).unwrap();
            fs::write(world.abs(".git/index"), &all[..all.len() - 30]).unwrap();
        }),
    ];
    for (what, set) in traps {
        let Some(mut world) = lying() else { return };
        set(&mut world);
        let captured = world.capture();
        let expected = unseeded(&world);
        assert_eq!(captured.snapshot, expected.snapshot, "{what}");
        world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
        assert_eq!(content(&world, &captured, "d/c").unwrap(), text("d/C"), "{what}");
    }
}

/// One byte of the pack, anywhere, or of its index: it is not taken over at all.
#[test]
fn a_damaged_pack_is_not_taken_over() {
    let Some(world) = lying() else { return };
    let pack = theirs(&world);
    for file in [pack.clone(), pack.with_extension("idx")] {
        let whole = fs::read(&file).unwrap();
        for at in (8..whole.len()).step_by(whole.len() / 97 + 1).chain([whole.len() - 1]) {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            // A new file: git never writes into one, and a link to it must not change.
            fs::remove_file(&file).unwrap();
            fs::write(&file, &bad).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
            let mut world = World::at(tempfile::tempdir().unwrap(), world.root.clone());
            world.ask.policy.free_space_floor = 0;
            let captured = world.capture();
            assert_eq!(packs(&world).0, [""; 0].map(PathBuf::from), "byte {at} of {}", file.display());
            is_right(&world, &captured);
        }
        fs::remove_file(&file).unwrap();
        fs::write(&file, &whole).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    }
}

/// Written into after it was linked, which git never does: what is damaged is told, and never handed out.
#[test]
fn a_pack_that_changes_under_the_link_never_gives_other_bytes() {
    let Some(world) = packed() else { return };
    let captured = world.capture();
    let pack = theirs(&world);
    let len = fs::metadata(&pack).unwrap().len();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o644)).unwrap();
    let file = fs::File::options().read(true).write(true).open(&pack).unwrap();
    for at in (12..len - 20).step_by(usize::try_from(len / 61).unwrap() + 1) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x04], at).unwrap();
        let told = world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).is_err();
        for name in NAMES {
            match content(&world, &captured, name) {
                Ok(read) => assert_eq!(read, text(name), "byte {at}"),
                Err(error) => assert!(told, "byte {at}: {error}"),
            }
        }
        assert!(!world.backend.verify_store().unwrap().is_empty(), "byte {at}");
        file.write_all_at(&byte, at).unwrap();
    }
    world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap();
}

/// An index of a pack whose every checksum holds, but that has the ids of two files of one size changed over.
#[test]
fn a_forged_pack_index_never_makes_a_restore_write_other_bytes() {
    let Some(world) = World::git() else { return };
    world.put("one", "1".repeat(50));
    world.put("two", "2".repeat(50));
    world.put("three", text("three"));
    pack(&world);
    let idx = theirs(&world).with_extension("idx");
    let mut bytes = fs::read(&idx).unwrap();
    let count = usize::try_from(u32::from_be_bytes(bytes[8 + 1020..8 + 1024].try_into().unwrap())).unwrap();
    let ids: Vec<Vec<u8>> = (0..count).map(|n| bytes[1032 + 20 * n..1052 + 20 * n].to_vec()).collect();
    let place = |name: &str| {
        let id = world.run_git(&["rev-parse", &format!("HEAD:{name}")]).unwrap();
        let id = checkpoint_core::ObjectId::parse(&id).unwrap();
        ids.iter().position(|other| other[..] == id.as_bytes()[..]).unwrap()
    };
    let (one, two) = (place("one"), place("two"));
    for table in [1032 + 20 * count, 1032 + 24 * count] {
        for byte in 0..4 {
            bytes.swap(table + 4 * one + byte, table + 4 * two + byte);
        }
    }
    let end = bytes.len() - 20;
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&bytes[..end]);
    bytes[end..].copy_from_slice(hasher.try_finalize().unwrap().as_slice());
    fs::remove_file(&idx).unwrap();
    fs::write(&idx, &bytes).unwrap();
    let captured = world.capture();
    assert_eq!(packs(&world).0.len(), 1, "the forgery is good");
    assert_eq!(captured.snapshot.tree, unseeded(&world).snapshot.tree);
    for name in ["one", "two"] {
        let error = content(&world, &captured, name).unwrap_err();
        assert!(matches!(error, SnapshotError::Damaged { .. }), "{error}");
        let PathState::File { blob, .. } = world.backend.state(&captured.snapshot, &path(name)).unwrap() else {
            panic!()
        };
        assert!(matches!(world.backend.check_blob(&blob), Err(SnapshotError::Damaged { .. })));
    }
    world.backend.verify(&captured.snapshot, VerifyLevel::Rehash).unwrap_err();
}

/// What happens to files between git and us: each is a change that the point has to show.
#[test]
fn a_file_that_is_not_what_git_hashed_is_read() {
    type Change = (&'static str, fn(&World));
    let changes: [Change; 6] = [
        ("edited, its times put back", |world| {
            let times = fs::metadata(world.abs("a")).unwrap();
            world.put("a", text("A"));
            let file = fs::File::open(world.abs("a")).unwrap();
            let times =
                fs::FileTimes::new().set_modified(times.modified().unwrap()).set_accessed(times.accessed().unwrap());
            file.set_times(times).unwrap();
        }),
        ("replaced by another of the same size and times", |world| {
            let modified = fs::metadata(world.abs("a")).unwrap().modified().unwrap();
            world.put("new", text("A"));
            fs::File::open(world.abs("new")).unwrap().set_modified(modified).unwrap();
            fs::rename(world.abs("new"), world.abs("a")).unwrap();
        }),
        ("its mode, which git was told to ignore", |world| {
            world.run_git(&["config", "core.fileMode", "false"]).unwrap();
            world.chmod("a", 0o755);
        }),
        ("a link that became a file with its text", |world| {
            fs::remove_file(world.abs("link")).unwrap();
            world.put("link", "b.txt");
        }),
        ("gone", |world| fs::remove_file(world.abs("d/e/f")).unwrap()),
        ("intended to be added, and a conflict", |world| {
            world.put("new", text("new"));
            world.run_git(&["add", "-N", "new"]).unwrap();
            world.run_git(&["checkout", "-q", "-b", "other"]).unwrap();
            for (branch, what) in [("other", "mine\n"), ("main", "yours\n")] {
                world.run_git(&["checkout", "-q", branch]).unwrap();
                world.put("a", what);
                world.run_git(&["commit", "-q", "-m", "x", "a"]).unwrap();
            }
            let merge =
                std::process::Command::new("git").current_dir(&world.root).args(["merge", "-q", "other"]).output();
            assert!(!merge.unwrap().status.success());
        }),
    ];
    for (what, change) in changes {
        let Some(world) = packed() else { return };
        change(&world);
        World::settle();
        let captured = world.capture();
        assert_eq!(packs(&world).0.len(), 1, "{what}");
        is_right(&world, &captured);
    }
}

/// Conversions that are not filters show in the size, with and without the attribute, and a file without anything to
/// convert is believed.
#[test]
fn line_endings_and_ident_are_told_by_the_size() {
    for (attributes, config) in
        [("* text=auto\n", ""), ("*.txt text eol=crlf ident\n", ""), ("", "true"), ("", "input")]
    {
        let Some(world) = World::git() else { return };
        if !config.is_empty() {
            world.run_git(&["config", "core.autocrlf", config]).unwrap();
        }
        if !attributes.is_empty() {
            world.put(".gitattributes", attributes);
        }
        world.put("plain.txt", text("plain"));
        world.put("crlf.txt", text("crlf").replace('\n', "\r\n"));
        world.put("id.txt", "$Id: 0123456789012345678901234567890123456789 $\n");
        pack(&world);
        let captured = world.capture();
        is_right(&world, &captured);
        let expanded = usize::from(attributes.contains("ident"));
        assert_eq!(own_blobs(&world), 1 + expanded, "{attributes:?} {config:?}");
        // With the attribute gone the index still has what it made.
        if !attributes.is_empty() {
            let again = World::at(tempfile::tempdir().unwrap(), world.root.clone());
            fs::remove_file(world.abs(".gitattributes")).unwrap();
            is_right(&again, &again.capture());
        }
    }
}

#[test]
fn repositories_of_every_kind_are_captured_as_they_are() {
    let Some(world) = packed() else { return };
    let at = |name: &str| world.dir.path().join(name);
    let clone = |name: &str, args: &[&str]| {
        let url = format!("file://{}", world.root.display());
        let all = [&["clone", "-q"][..], args, &[&url, name]].concat();
        run_git(world.dir.path(), &all, &[]).unwrap();
        at(name)
    };
    world.run_git(&["config", "uploadpack.allowFilter", "true"]).unwrap();
    world.run_git(&["worktree", "add", "-q", "--detach", "../linked"]).unwrap();
    run_git(world.dir.path(), &["clone", "-q", "--shared", world.root.to_str().unwrap(), "shared"], &[]).unwrap();
    let separate = clone("separate", &["--separate-git-dir", at("elsewhere.git").to_str().unwrap()]);
    let sparse = clone("sparse", &[]);
    run_git(&sparse, &["sparse-checkout", "set", "--cone", "--sparse-index", "d/e"], &[]).unwrap();
    let kinds = [
        ("a linked worktree", at("linked"), 1),
        ("borrowed objects", at("shared"), 0),
        ("a shallow clone", clone("shallow", &["--depth=1"]), 1),
        ("a partial clone", clone("partial", &["--filter=blob:none"]), 0),
        ("a git directory elsewhere", separate, 1),
        ("a sparse index", sparse, 1),
    ];
    World::settle();
    for (what, root, linked) in kinds {
        if what != "borrowed objects" && what != "a partial clone" {
            run_git(&root, &["update-index", "-q", "--refresh"], &[]).unwrap();
        }
        let world = World::at(tempfile::tempdir_in(world.dir.path()).unwrap(), root);
        let captured = world.capture();
        assert_eq!(packs(&world).0.len(), linked, "{what}");
        is_right(&world, &captured);
    }
}

#[test]
fn a_sha256_repository_is_not_seeded_and_a_submodule_is_left_alone() {
    let world = World::new();
    let Some(_) = world.run_git(&["init", "-q", "--object-format=sha256"]) else { return };
    world.put("a", text("a"));
    pack(&world);
    let captured = world.capture();
    assert!(packs(&world).0.is_empty());
    is_right(&world, &captured);
    let Some(world) = packed() else { return };
    let url = world.root.to_str().unwrap().to_owned();
    world.run_git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]).unwrap();
    pack(&world);
    let captured = world.capture();
    assert_eq!(packs(&world).0.len(), 1);
    is_right(&world, &captured);
}

#[test]
fn a_workspace_below_the_top_takes_what_is_its_own() {
    let Some(outer) = lying() else { return };
    outer.put("big", (0..9000).map(|n: u32| n.wrapping_mul(2_654_435_761).to_string()).collect::<String>());
    // The pack is bigger than what lies below the root: it is not worth keeping.
    pack(&outer);
    let world = World::at(tempfile::tempdir().unwrap(), outer.abs("d"));
    let captured = world.capture();
    assert!(packs(&world).0.is_empty());
    is_right(&world, &captured);
    let Some(outer) = packed() else { return };
    let world = World::at(tempfile::tempdir().unwrap(), outer.abs("d"));
    let captured = world.capture();
    assert_eq!((packs(&world).0.len(), own_blobs(&world)), (1, 0));
    is_right(&world, &captured);
    // Attributes above the root count, tracked or not.
    let Some(outer) = lying() else { return };
    outer.put(".gitattributes", "d/* filter=rot\n");
    let world = World::at(tempfile::tempdir().unwrap(), outer.abs("d"));
    is_right(&world, &world.capture());
}

/// What rules leave out is in no tree of the point, tracked or not.
#[test]
fn what_is_never_captured_is_not_captured_because_git_has_it() {
    let Some(world) = World::git() else { return };
    for name in [".dsh/memory/secret", "a"] {
        world.put(name, text(name));
    }
    pack(&world);
    let captured = world.capture();
    assert_eq!(packs(&world).0.len(), 1);
    assert_eq!(world.files(&captured.snapshot), ["a"]);
}

#[test]
fn a_collection_takes_the_bridge_down_and_a_purge_removes_what_came_over_it() {
    let Some(mut world) = packed() else { return };
    let old = world.run_git(&["rev-parse", "HEAD:a"]).unwrap();
    world.put("a", text("other"));
    let captured = world.capture_next();
    let old = checkpoint_core::ObjectId::parse(&old).unwrap();
    assert!(world.backend.has_blob(&old).unwrap(), "it came with the pack");
    let collect = |world: &World, captured: &checkpoint_core::Snapshot| {
        let live = LiveObjects { snapshots: vec![*captured], blobs: vec![] };
        world.backend.gc(&live, false, &NoProgress).unwrap();
        world.backend.verify(captured, VerifyLevel::Rehash).unwrap();
    };
    collect(&world, &captured.snapshot);
    assert!(packs(&world).0.is_empty() && !world.backend.has_blob(&old).unwrap());
    assert_eq!(world.backend.usage().unwrap().shared_bytes, 0);
    let removal = Removal { picks: &|path| path.as_bytes() == b"d/c", blobs: &BTreeSet::new() };
    let PathState::File { blob, .. } = world.backend.state(&captured.snapshot, &path("d/c")).unwrap() else { panic!() };
    let purged = world.backend.without(&[captured.snapshot], &removal).unwrap();
    collect(&world, &purged[0]);
    assert!(!world.backend.has_blob(&blob).unwrap());
    // Not even a store that holds nothing takes anything over again: it would be back.
    world.backend.gc(&LiveObjects { snapshots: vec![], blobs: vec![] }, false, &NoProgress).unwrap();
    fs::remove_file(world.abs("d/c")).unwrap();
    fs::remove_file(world.cache()).unwrap();
    world.reopen();
    world.ask.base = None;
    is_right(&world, &world.capture());
    assert!(packs(&world).0.is_empty() && !world.backend.has_blob(&blob).unwrap());
}

/// Purged before any collection: the pack goes with what it held.
#[test]
fn a_purge_of_seeded_content_leaves_no_copy_in_the_store() {
    let Some(mut world) = packed() else { return };
    let captured = world.capture_next();
    let PathState::File { blob, .. } = world.backend.state(&captured.snapshot, &path("d/c")).unwrap() else { panic!() };
    let removal = Removal { picks: &|path| path.as_bytes() == b"d/c", blobs: &BTreeSet::new() };
    let purged = world.backend.without(&[captured.snapshot], &removal).unwrap();
    let live = LiveObjects { snapshots: purged.clone(), blobs: vec![] };
    world.backend.gc(&live, false, &NoProgress).unwrap();
    world.backend.verify(&purged[0], VerifyLevel::Rehash).unwrap();
    assert!(packs(&world).0.is_empty() && !world.backend.has_blob(&blob).unwrap());
    for name in NAMES.into_iter().filter(|name| *name != "d/c") {
        assert!(matches!(world.backend.state(&purged[0], &path(name)).unwrap(), PathState::File { .. }));
    }
}

/// Fails the `n`-th operation on the store.
#[derive(Debug)]
struct Nth(AtomicU32, u32);

impl Faults for Nth {
    fn before(&self, _: &'static str) -> Fault {
        let now = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if now == self.1 { Fault::Fail(std::io::Error::other("stopped by the test")) } else { Fault::None }
    }
}

/// Each operation on the store fails in turn: the capture is right or there is none, and the next is right.
#[test]
fn a_failure_at_every_step_costs_time_at_most() {
    let Some(outer) = packed() else { return };
    outer.put("untracked", "x");
    for n in 1.. {
        let mut world = World::at(tempfile::tempdir().unwrap(), outer.root.clone());
        let faults = Arc::new(Nth(AtomicU32::new(0), n));
        world.options.faults = Some(faults.clone());
        world.reopen();
        let first = world.try_capture();
        world.options.faults = None;
        world.reopen();
        if let Ok(captured) = &first {
            is_right(&world, captured);
        }
        is_right(&world, &world.capture());
        if faults.0.load(Ordering::Relaxed) < n {
            assert!(n > 8, "{n}");
            return;
        }
    }
}

/// The user's git packs anew and prunes all the while: every capture is right, whichever packs it met.
#[test]
fn a_repository_that_is_packed_meanwhile_changes_no_point() {
    let Some(outer) = packed() else { return };
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                let args = [&["repack", "-adfq"][..], &["repack", "-Adq"], &["gc", "--prune=now", "-q"]][n % 3];
                outer
                    .run_git(&["-c", "repack.writeBitmaps=false", "commit", "-q", "--allow-empty", "-m", "x"])
                    .unwrap();
                outer.run_git(args).unwrap();
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..12 {
            let world = World::at(tempfile::tempdir().unwrap(), outer.root.clone());
            let captured = world.capture();
            is_right(&world, &captured);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Two first captures at once: both are whole.
#[test]
fn two_first_captures_at_once_link_the_same_packs() {
    let Some(world) = packed() else { return };
    let other = {
        let options = world.options.clone();
        GitSnapshots::open(&world.root, &world.store(), &world.cache(), options).unwrap()
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| world.capture());
        let two = capture_with(&other, &world.ask);
        let one = one.join().unwrap();
        assert_eq!(one.snapshot, two.snapshot);
        is_right(&world, &one);
    });
    assert_eq!(packs(&world).0.len(), 1);
}
