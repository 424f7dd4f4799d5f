//! What is refused, and that nothing is written then.

use std::{
    fs,
    os::unix::{fs::symlink, process::CommandExt},
    path::Path,
    process::Command,
    sync::Arc,
};

use checkpoint_core::{Change, FsError, Mode, PathState, RelPath, Settled, WorkspaceFs};
use testkit::MemoryBlobs;
use workspace_fs::{NoCrash, Options, RealWorkspace, Support};

use crate::scratch::{NAMES, Scratch, Script, Thing, rel, set_mode, until_killed};

const FILE: Thing = Thing::File("new", 0o644);

#[test]
fn no_write_passes_through_a_link() {
    let scratch = Scratch::new();
    scratch.put("outside", Thing::Dir(0o755));
    scratch.put("outside/file", Thing::File("outside", 0o644));
    scratch.put("work", Thing::Dir(0o755));
    symlink("../outside", scratch.at("work/link")).unwrap();
    let workspace = RealWorkspace::open(&scratch.at("work")).unwrap();
    for path in ["link/file", "link/new"] {
        let change = scratch.change(path, Thing::Nothing, FILE);
        assert!(matches!(workspace.check(&change), Err(FsError::ThroughLink { .. })));
        let refused = workspace.apply(&change, &NAMES, 0, &scratch.blobs);
        assert!(matches!(refused, Err(FsError::ThroughLink { .. })), "{refused:?}");
    }
    let overwrite = scratch.change("link/file", Thing::File("outside", 0o644), FILE);
    let refused = workspace.apply(&overwrite, &NAMES, 0, &scratch.blobs);
    assert!(matches!(refused, Err(FsError::Changed { found: PathState::Absent, .. })), "{refused:?}");
    assert_eq!(workspace.settle(&overwrite, &NAMES, 0, &scratch.blobs).unwrap(), Settled::default());
    assert_eq!(fs::read_to_string(scratch.at("outside/file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(scratch.at("outside")).unwrap().count(), 1);
}

#[test]
fn reserved_places_are_known_by_spelling_and_by_identity() {
    let scratch = Scratch::new();
    for dir in [".git", "data", "plain"] {
        scratch.put(dir, Thing::Dir(0o755));
    }
    let options = Options { reserved: vec![scratch.at("data"), scratch.at("none")], ..Options::default() };
    let workspace = RealWorkspace::with_options(scratch.root(), options).unwrap();
    fs::rename(scratch.at("data"), scratch.at("moved")).unwrap();
    fs::rename(scratch.at(".git"), scratch.at("disguise")).unwrap();
    for path in ["moved", "moved/x", "disguise/config", ".git/config", "sub/.GIT/x", "git~1"] {
        let change = Change {
            path: RelPath::new_unreserved(path).unwrap(),
            before: PathState::Absent,
            after: scratch.state(FILE),
        };
        let refused = workspace.check(&change);
        assert!(matches!(refused, Err(FsError::Reserved { .. })), "{path}: {refused:?}");
        let refused = workspace.apply(&change, &NAMES, 0, &scratch.blobs);
        assert!(matches!(refused, Err(FsError::Reserved { .. })), "{path}: {refused:?}");
    }
    workspace.apply(&scratch.change("plain/x", Thing::Nothing, FILE), &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(scratch.tree().len(), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn other_mounts_are_refused() {
    // Nothing is written: /proc is a mount of its own wherever there is one.
    if !Path::new("/proc/self").exists() {
        return;
    }
    let scratch = Scratch::new();
    let workspace = RealWorkspace::open(Path::new("/")).unwrap();
    let inside = scratch.change("proc/none", Thing::Nothing, FILE);
    assert!(matches!(workspace.check(&inside), Err(FsError::OtherMount { .. })));
    assert!(matches!(workspace.apply(&inside, &NAMES, 0, &scratch.blobs), Err(FsError::OtherMount { .. })));
    let before = workspace.observe(&rel("proc"), &scratch.blobs).unwrap();
    let itself = Change { path: rel("proc"), before, after: scratch.state(FILE) };
    let refused = workspace.check(&itself);
    assert!(matches!(refused, Err(FsError::OtherMount { .. })), "{refused:?}");
    assert!(matches!(workspace.apply(&itself, &NAMES, 0, &scratch.blobs), Err(FsError::OtherMount { .. })));
}

#[test]
fn what_a_capture_does_not_describe_is_neither_written_nor_removed() {
    let scratch = Scratch::new();
    let _socket = std::os::unix::net::UnixListener::bind(scratch.at("p")).unwrap();
    let workspace = scratch.open();
    let mut change = scratch.change("p", Thing::Nothing, FILE);
    assert!(matches!(workspace.apply(&change, &NAMES, 0, &scratch.blobs), Err(FsError::Changed { .. })));
    change.before = PathState::Opaque;
    for change in [change.inverse(), change] {
        assert!(workspace.check(&change).is_err());
        assert!(workspace.apply(&change, &NAMES, 0, &scratch.blobs).is_err());
    }
    assert_eq!(scratch.observe("p"), PathState::Opaque);
}

/// A directory with content stands under the exchange name, and the path is taken: it can be neither stored as a blob
/// nor removed.
#[test]
fn a_directory_that_cannot_be_put_back_is_kept_beside_the_path_and_named() {
    let scratch = Scratch::new();
    let change = scratch.change("p", Thing::Dir(0o755), FILE);
    scratch.put("p", Thing::File("somebody's", 0o644));
    let swap = String::from_utf8(NAMES.exchange(3)).unwrap();
    scratch.put(&swap, Thing::Dir(0o755));
    scratch.put(&format!("{swap}/child"), Thing::File("precious", 0o644));
    let named = match scratch.open().settle(&change, &NAMES, 3, &scratch.blobs) {
        Err(FsError::Other { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(fs::read_to_string(scratch.at(&named).join("child")).unwrap(), "precious");
    assert_eq!(scratch.open().settle(&change, &NAMES, 3, &scratch.blobs).unwrap(), Settled::default());
    scratch.assert_tidy(&named);
    assert_eq!(fs::read_to_string(scratch.at("p")).unwrap(), "somebody's");
}

/// A temporary that nobody settled is in the way, not overwritten: it may hold a user's bytes.
#[test]
fn a_finished_temporary_of_before_is_not_overwritten() {
    for (before, after) in [(Thing::File("old", 0o644), FILE), (Thing::File("old", 0o644), Thing::Nothing)] {
        for support in [Support::Auto, Support::Never] {
            let scratch = Scratch::new();
            scratch.put("p", before);
            let swap = String::from_utf8(NAMES.exchange(0)).unwrap();
            scratch.put(&swap, Thing::File("precious", 0o644));
            let change = scratch.change("p", before, after);
            drop(scratch.open_with(support, Arc::new(NoCrash)).apply(&change, &NAMES, 0, &scratch.blobs));
            assert_eq!(fs::read_to_string(scratch.at(&swap)).unwrap(), "precious");
            scratch.open().settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
            scratch.assert_kept("precious", &support);
            scratch.assert_tidy(&support);
        }
    }
}

/// Runs one test of this binary again in another process; `None` where that cannot be done here.
pub(crate) fn again(test: &str, root: &Path, command: &mut Command) -> Option<()> {
    let output = command.args(["--exact", test, "--ignored", "--quiet"]).env("SCRATCH", root).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
    Some(())
}

/// Somebody without privileges, in a directory of theirs with things of others in it.
#[test]
fn what_needs_privileges_is_refused_before_anything_is_written() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = Scratch::new();
    set_mode(scratch.root(), 0o777);
    scratch.put("foreign", Thing::File("x", 0o644));
    scratch.put("secret", Thing::File("x", 0o600));
    for (dir, mode) in [("closed", 0o755), ("sticky", 0o1777)] {
        scratch.put(dir, Thing::Dir(mode));
        scratch.put(&format!("{dir}/file"), Thing::File("x", 0o644));
    }
    let tree = scratch.tree();
    let exe = std::env::current_exe().unwrap();
    // Nobody may not reach the test binary or the scratch directory everywhere.
    let reachable = Command::new("test").arg("-x").arg(&exe).uid(65_534).gid(65_534).status();
    if !reachable.is_ok_and(|status| status.success()) {
        return;
    }
    again("guards::as_nobody", scratch.root(), Command::new(exe).uid(65_534).gid(65_534)).unwrap();
    assert_eq!(scratch.tree(), tree);
}

#[test]
#[ignore = "started by what_needs_privileges_is_refused_before_anything_is_written"]
fn as_nobody() {
    let Some(root) = std::env::var_os("SCRATCH") else {
        return;
    };
    let blobs = MemoryBlobs::default();
    let workspace = RealWorkspace::open(Path::new(&root)).unwrap();
    let file = |text: &str, mode| PathState::File { blob: blobs.put(text.as_bytes()), mode: Mode(mode) };
    let change = |path: &str, after| Change { path: rel(path), before: file("x", 0o644), after };

    assert_eq!(workspace.observe(&rel("secret"), &blobs).unwrap(), PathState::Opaque);
    // Its owner could not be kept; its mode is not ours to set.
    for after in [file("y", 0o644), file("x", 0o600)] {
        let change = change("foreign", after);
        assert!(matches!(workspace.check(&change), Err(FsError::Metadata { .. })));
    }
    let refused = workspace.apply(&change("foreign", file("y", 0o644)), &NAMES, 0, &blobs);
    assert!(matches!(refused, Err(FsError::Metadata { .. })), "{refused:?}");
    for path in ["closed/file", "sticky/file"] {
        for after in [file("y", 0o644), PathState::Absent] {
            let change = change(path, after);
            assert!(matches!(workspace.check(&change), Err(FsError::Io { .. })), "{path}");
            assert!(workspace.apply(&change, &NAMES, 0, &blobs).is_err(), "{path}");
        }
    }
    // Removing somebody else's file from a directory of one's own is allowed, and undone by recreating it as one's own.
    workspace.check(&change("foreign", PathState::Absent)).unwrap();
}

/// A full disk and an overlay, where a process may make its own mounts.
#[test]
fn a_full_disk_and_a_lower_layer() {
    let scratch = Scratch::new();
    let setup = "set -e; cd \"$SCRATCH\"; mkdir small over lower upper work
        mkdir lower/dir lower/kept poor; echo -n x > lower/file
        for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do mkdir lower/d$n; done
        mount -t tmpfs -o size=64k none small
        mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work none over
        mkdir upper2 work2
        mount -t overlay -o lowerdir=lower,upperdir=upper2,workdir=work2 none poor
        exec \"$0\" \"$@\"";
    let can = Command::new("unshare").args(["-rm", "sh", "-c", setup, "true"]).env("SCRATCH", scratch.root()).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return;
    }
    let scratch = Scratch::new();
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", setup]).arg(std::env::current_exe().unwrap());
    again("guards::with_mounts", scratch.root(), &mut command).unwrap();
}

#[test]
#[ignore = "started by a_full_disk_and_a_lower_layer"]
fn with_mounts() {
    let Some(root) = std::env::var_os("SCRATCH") else {
        return;
    };
    let root = Path::new(&root);
    let blobs = MemoryBlobs::default();
    let file = |text: &str| PathState::File { blob: blobs.put(text.as_bytes()), mode: Mode(0o644) };
    let state = |workspace: &RealWorkspace, path: &str| workspace.observe(&rel(path), &blobs).unwrap();

    let small = RealWorkspace::open(&root.join("small")).unwrap();
    fs::write(root.join("small/p"), "x").unwrap();
    set_mode(&root.join("small/p"), 0o644);
    let change = Change { path: rel("p"), before: file("x"), after: file(&"y".repeat(200_000)) };
    match small.apply(&change, &NAMES, 0, &blobs) {
        Err(FsError::Io { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(state(&small, "p"), change.before);
    assert_eq!(fs::read_dir(root.join("small")).unwrap().count(), 1);

    let whole = RealWorkspace::open(root).unwrap();
    let across = Change { path: rel("small/p"), before: file("x"), after: PathState::Absent };
    assert!(matches!(whole.check(&across), Err(FsError::OtherMount { .. })));

    // A directory of a lower layer cannot be renamed, hence not exchanged; an empty one can be removed.
    let over = RealWorkspace::open(&root.join("over")).unwrap();
    for (path, after) in [("dir", file("new")), ("kept", PathState::Absent), ("file", state(&over, "dir"))] {
        let change = Change { path: rel(path), before: state(&over, path), after };
        over.apply(&change, &NAMES, 0, &blobs).unwrap();
        assert_eq!(state(&over, path), after, "{path}");
        over.apply(&change.inverse(), &NAMES, 0, &blobs).unwrap();
        assert_eq!(state(&over, path), change.before, "{path}");
    }
    assert!(over.can_exchange());

    // Killed at every step of the way round.
    for (step, forward) in (0..20).map(|n| (n / 2, n % 2 == 0)) {
        let path = format!("d{}", step * 2 + usize::from(forward));
        let change = Change { path: rel(&path), before: state(&over, &path), after: file("new") };
        let script = Script::new().crash_at(Some(step));
        let options = Options { crash: Arc::new(script), ..Options::default() };
        let killed = RealWorkspace::with_options(&root.join("over"), options).unwrap();
        drop(until_killed(|| killed.apply(&change, &NAMES, 0, &blobs)));
        assert_eq!(over.settle(&change, &NAMES, 0, &blobs).unwrap(), Settled::default());
        let next = if forward { change } else { change.inverse() };
        over.apply(&next, &NAMES, 0, &blobs).unwrap();
        assert_eq!(state(&over, &path), next.after, "{step} {forward}");
    }
    let left = fs::read_dir(root.join("over")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.as_encoded_bytes().starts_with(b".rwd")));

    // Where a directory cannot be made to hide one of a lower layer, that is said, and the path is as it was.
    let poor = RealWorkspace::open(&root.join("poor")).unwrap();
    let change = Change { path: rel("dir"), before: state(&poor, "dir"), after: file("new") };
    poor.apply(&change, &NAMES, 0, &blobs).unwrap();
    match poor.apply(&change.inverse(), &NAMES, 0, &blobs) {
        Ok(()) => assert_eq!(state(&poor, "dir"), change.before),
        Err(FsError::Layer { .. }) => assert_eq!(state(&poor, "dir"), change.after),
        other => panic!("{other:?}"),
    }
}
