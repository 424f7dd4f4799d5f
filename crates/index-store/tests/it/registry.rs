//! Which directory is which workspace.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU8, Ordering},
};

use checkpoint_core::{Timestamp, WorkspaceId};
use index_store::{DataDir, DataError, Identity, Refusal, Registration, Registry, Standing, refusal};

struct Place {
    directory: tempfile::TempDir,
    registry: Registry,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::new(DataDir::new(directory.path().join("data")));
        Self { directory, registry }
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn dir(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(&self) -> PathBuf {
        self.path("data/workspaces.json")
    }
}

fn registration() -> Registration {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    Registration {
        id: WorkspaceId::from_bytes([NEXT.fetch_add(1, Ordering::Relaxed); 16]),
        now: Timestamp(1_700_000_000_000),
        git_common_dir: None,
        home: None,
        force: false,
        as_new: false,
    }
}

/// Makes another directory of the same name: the old one is kept, so that its inode cannot come back.
fn replace(path: &Path) {
    fs::rename(path, path.with_extension("gone")).unwrap();
    fs::create_dir(path).unwrap();
}

#[test]
fn the_nearest_registered_root_is_found() {
    let place = Place::new();
    let (outer, inner) = (place.dir("w"), place.dir("w/packages/app"));
    let deep = place.dir("w/packages/app/src/deep");
    assert_eq!(place.registry.find(&deep).unwrap(), None);
    assert!(!place.path("data").exists(), "looking makes nothing");
    let registered = place.registry.register(&outer, &registration()).unwrap();
    assert_eq!(registered.standing, Standing::New);
    assert_eq!(place.registry.find(&deep).unwrap().unwrap().workspace, registered.workspace);
    let nested = place.registry.register(&inner, &registration()).unwrap();
    assert_eq!(place.registry.find(&deep).unwrap().unwrap().workspace, nested.workspace);
    let found = place.registry.find(&place.path("w/packages")).unwrap().unwrap();
    assert_eq!((found.workspace, found.root, found.standing), (registered.workspace, outer, Standing::Known));
    assert_eq!(place.registry.find(&place.dir("w2")).unwrap(), None);
    assert!(matches!(place.registry.find(&place.path("none")), Err(DataError::Io { .. })));
}

#[test]
fn a_root_is_registered_once_under_any_spelling() {
    let place = Place::new();
    let root = place.dir("w/sub").parent().unwrap().to_owned();
    symlink(&root, place.path("link")).unwrap();
    let first = place.registry.register(&root, &registration()).unwrap();
    let before = fs::read(place.file()).unwrap();
    for spelling in [place.path("link"), root.join("sub/.."), root.join(".")] {
        let again = place.registry.register(&spelling, &registration()).unwrap();
        assert_eq!((again.standing, &again.workspace), (Standing::Known, &first.workspace));
    }
    assert_eq!(fs::read(place.file()).unwrap(), before);
    assert_eq!(place.registry.get(&first.workspace.id).unwrap(), Some(first.workspace));
    fs::write(place.path("file"), b"").unwrap();
    assert!(matches!(
        place.registry.register(&place.path("file"), &registration()),
        Err(DataError::NoDirectory { .. })
    ));
}

#[test]
fn another_directory_under_the_same_path_is_a_new_incarnation() {
    let place = Place::new();
    let root = place.dir("w");
    let first = place.registry.register(&root, &registration()).unwrap().workspace;
    replace(&root);
    let found = place.registry.find(&root).unwrap().unwrap();
    assert_eq!((found.standing, found.workspace.incarnation), (Standing::NewIncarnation, 1));
    let second = place.registry.register(&root, &registration()).unwrap();
    assert_eq!(
        (second.standing, second.workspace.id, second.workspace.incarnation),
        (Standing::NewIncarnation, first.id, 2)
    );
    assert_eq!(place.registry.register(&root, &registration()).unwrap().standing, Standing::Known);
    assert_eq!(place.registry.list().unwrap(), [second.workspace]);
}

#[test]
fn git_coming_and_going_is_no_new_incarnation() {
    let place = Place::new();
    let root = place.dir("w");
    let first = place.registry.register(&root, &registration()).unwrap().workspace;
    for git in [Some(place.dir("w/.git")), None, Some(place.dir("elsewhere/.git"))] {
        let again =
            place.registry.register(&root, &Registration { git_common_dir: git.clone(), ..registration() }).unwrap();
        assert_eq!((again.standing, again.workspace.id, again.workspace.incarnation), (Standing::Known, first.id, 1));
        assert_eq!(place.registry.list().unwrap()[0].git_common_dir, git);
    }
}

#[test]
fn a_root_that_was_moved_is_told_and_adopted() {
    let place = Place::new();
    let (root, moved) = (place.dir("w"), place.path("moved"));
    let first = place.registry.register(&root, &registration()).unwrap().workspace;
    fs::rename(&root, &moved).unwrap();
    let before = fs::read(place.file()).unwrap();
    for found in
        [place.registry.find(&moved).unwrap().unwrap(), place.registry.register(&moved, &registration()).unwrap()]
    {
        assert_eq!((found.standing, &found.workspace, &found.root), (Standing::Moved, &first, &moved));
    }
    assert_eq!(fs::read(place.file()).unwrap(), before);
    let adopted = place.registry.adopt(&moved, &first.id, None).unwrap();
    assert_eq!((adopted.id, &adopted.root, adopted.incarnation), (first.id, &moved, 1));
    assert_eq!(place.registry.find(&moved).unwrap().unwrap().standing, Standing::Known);
    assert!(matches!(place.registry.adopt(&moved, &registration().id, None), Err(DataError::Unknown(_))));
}

#[test]
fn a_moved_root_can_be_a_workspace_of_its_own() {
    let place = Place::new();
    let (root, moved) = (place.dir("w"), place.path("moved"));
    let first = place.registry.register(&root, &registration()).unwrap().workspace;
    fs::rename(&root, &moved).unwrap();
    let own = place.registry.register(&moved, &Registration { as_new: true, ..registration() }).unwrap();
    assert_eq!(own.standing, Standing::New);
    assert_ne!(own.workspace.id, first.id);
    assert_eq!(place.registry.find(&moved).unwrap().unwrap().workspace, own.workspace);
    // Now it has its own points there: the old one cannot take the place.
    match place.registry.adopt(&moved, &first.id, None) {
        Err(DataError::Occupied { by, .. }) => assert_eq!(by, own.workspace.id),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_root_moved_over_another_root_retires_that() {
    let place = Place::new();
    let (root, over) = (place.dir("w"), place.dir("over"));
    let first = place.registry.register(&root, &registration()).unwrap().workspace;
    let second = place.registry.register(&over, &registration()).unwrap().workspace;
    if first.identity.born.is_none() {
        return; // Without birth times the path decides.
    }
    fs::rename(&over, place.path("over.old")).unwrap();
    fs::rename(&root, &over).unwrap();
    let found = place.registry.register(&over, &registration()).unwrap();
    assert_eq!((found.standing, found.workspace.id), (Standing::Moved, first.id));
    place.registry.adopt(&over, &first.id, None).unwrap();
    let listed: Vec<_> = place.registry.list().unwrap().into_iter().map(|workspace| workspace.id).collect();
    assert_eq!(listed, [first.id]);
    let file = fs::read_to_string(place.file()).unwrap();
    assert!(file.contains("retired") && file.contains(&second.id.to_string()));
}

/// A linked worktree that was moved to another file system has nothing left but its repository.
#[test]
fn the_git_common_directory_is_a_hint_where_it_is_unambiguous() {
    let place = Place::new();
    let git = Some(place.dir("repo/.git"));
    let with_git = || Registration { git_common_dir: git.clone(), ..registration() };
    let (one, two, three) = (place.dir("one"), place.dir("two"), place.dir("three"));
    let first = place.registry.register(&one, &with_git()).unwrap().workspace;
    let second = place.registry.register(&two, &with_git()).unwrap();
    assert_eq!(second.standing, Standing::New, "the first root is still there");
    fs::rename(&one, place.path("kept")).unwrap(); // as a copy and a removal do; the inode stays taken
    let found = place.registry.register(&three, &with_git()).unwrap();
    assert_eq!((found.standing, found.workspace.id), (Standing::Moved, first.id));
    assert_eq!(place.registry.register(&three, &registration()).unwrap().standing, Standing::New);
    fs::rename(&two, place.path("kept too")).unwrap();
    let four = place.registry.register(&place.dir("four"), &with_git()).unwrap();
    assert_eq!(four.standing, Standing::New, "two roots are gone: nobody can say which");
    // Another directory than before: its points give no evidence.
    let adopted = place.registry.adopt(&place.dir("five"), &first.id, git.as_deref()).unwrap();
    assert_eq!(adopted.incarnation, 2);
}

#[test]
fn overlapping_roots_come_in_path_order() {
    let place = Place::new();
    for name in ["w/b", "w", "w/a/c", "w/a", "w-2", "x"] {
        place.registry.register(&place.dir(name), &registration()).unwrap();
    }
    let overlapping = |name: &str| -> Vec<PathBuf> {
        let all = place.registry.overlapping(&place.path(name)).unwrap();
        all.iter().map(|workspace| workspace.root.strip_prefix(place.path("")).unwrap().to_owned()).collect()
    };
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(overlapping("w"), paths(&["w", "w/a", "w/a/c", "w/b"]));
    assert_eq!(overlapping("w/a/file/that/is/not"), paths(&["w", "w/a"]));
    assert_eq!(overlapping("w-2"), paths(&["w-2"]));
    assert_eq!(overlapping("y"), paths(&[]));
}

#[test]
fn dangerous_roots_are_refused_unless_forced() {
    let place = Place::new();
    let (data, home) = (DataDir::new(place.path("home/u/.local/share/rwd")), place.dir("home/u"));
    let why = |root: &Path| refusal(root, &data, Some(&home));
    assert_eq!(why(Path::new("/")), Some(Refusal::FileSystemRoot));
    assert_eq!(why(Path::new("/../.")), Some(Refusal::FileSystemRoot));
    assert_eq!(why(&home), Some(Refusal::Home));
    assert_eq!(why(&place.path("home")), Some(Refusal::Home));
    assert_eq!(why(&place.path("home/u/.local")), Some(Refusal::DataDirectory));
    assert_eq!(why(&place.path("home/u/.local/share/rwd")), Some(Refusal::DataDirectory));
    assert_eq!(why(&place.path("home/u/.local/share/rwd/workspaces/x")), Some(Refusal::DataDirectory));
    assert_eq!(why(&place.path("home/u/.local/share/rwd2")), None);
    assert_eq!(why(&place.path("home/u/project")), None);
    symlink(&home, place.path("link")).unwrap();
    assert_eq!(why(&place.path("link")), Some(Refusal::Home));

    let refused = Registration { home: Some(home.clone()), ..registration() };
    match place.registry.register(&home, &refused) {
        Err(DataError::Refused { why: Refusal::Home, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(!place.file().exists());
    let forced = place.registry.register(&home, &Registration { force: true, ..refused }).unwrap();
    assert_eq!(forced.standing, Standing::New);
    // What was forced once needs no force again, whatever becomes of its `.git`.
    for git in [None, Some(place.dir("home/u/.git"))] {
        let again = place
            .registry
            .register(&home, &Registration { home: Some(home.clone()), git_common_dir: git, ..registration() });
        assert_eq!(again.unwrap().standing, Standing::Known);
    }
}

#[test]
fn roots_that_are_not_utf8_work() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"w\xff \n\"");
    let Ok(()) = fs::create_dir(place.path(name)) else {
        return;
    }; // not on every file system
    let registered = place.registry.register(&place.path(name), &registration()).unwrap().workspace;
    assert_eq!(registered.root, place.path(name));
    assert_eq!(place.registry.list().unwrap(), std::slice::from_ref(&registered));
    assert_eq!(place.registry.find(&place.dir(Path::new(name).join("deep"))).unwrap().unwrap().workspace, registered);
}

/// K-43: several at once get one workspace.
#[test]
fn registration_is_atomic() {
    let place = Place::new();
    let (shared, registry) = (place.dir("shared"), &place.registry);
    let ids: Vec<WorkspaceId> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|n| {
                let (own, shared) = (place.dir(format!("w{n}")), &shared);
                scope.spawn(move || {
                    registry.register(&own, &registration()).unwrap();
                    registry.register(shared, &registration()).unwrap().workspace.id
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(place.registry.list().unwrap().len(), 9);
}

#[test]
fn what_a_newer_version_wrote_is_kept_and_damage_is_never_an_empty_list() {
    let place = Place::new();
    let root = place.dir("w");
    let first = place.registry.register(&root, &registration()).unwrap().workspace;
    let text = fs::read_to_string(place.file()).unwrap();
    let newer = text
        .replace("\"format\": \"1.0\"", "\"format\": \"1.9\",\n  \"future\": [1]")
        .replace("\"incarnation\": 1", "\"incarnation\": 1,\n      \"colour\": \"red\"");
    fs::write(place.file(), newer).unwrap();
    replace(&root);
    let second = place.registry.register(&root, &registration()).unwrap().workspace;
    assert_eq!((second.id, second.incarnation), (first.id, 2));
    let text = fs::read_to_string(place.file()).unwrap();
    for kept in ["\"1.9\"", "\"future\"", "\"colour\": \"red\""] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    for (bad, foreign) in
        [("", false), ("{", false), ("{}", false), ("{\"format\":\"1.0\"}", false), ("{\"format\":\"2.0\"}", true)]
    {
        fs::write(place.file(), bad).unwrap();
        let errors = [place.registry.list().unwrap_err(), place.registry.register(&root, &registration()).unwrap_err()];
        for error in errors {
            assert_eq!(matches!(error, DataError::Format { .. }), foreign, "{error:?}");
            assert_eq!(matches!(error, DataError::Damaged { .. }), !foreign, "{error:?}");
        }
        assert_eq!(fs::read_to_string(place.file()).unwrap(), bad);
    }
}

#[test]
fn a_birth_time_tells_directories_apart_that_share_an_inode() {
    let one = Identity { device: 1, inode: 2, born: Some(3) };
    assert!(one.is(&one));
    assert!(!one.is(&Identity { born: Some(4), ..one }));
    assert!(one.is(&Identity { born: None, ..one }));
    assert!(!one.is(&Identity { device: 9, ..one }));
    assert!(!one.is(&Identity { inode: 9, ..one }));
}

/// A workspace with an index: one without has nothing that could be lost.
fn with_points(place: &Place, root: &Path) -> index_store::Workspace {
    let workspace = place.registry.register(root, &registration()).unwrap().workspace;
    let dir = DataDir::new(place.path("data")).workspace(&workspace.id);
    drop(dir.open_index(index_store::IndexOptions::default()).unwrap());
    workspace
}

/// Without its registry a data directory is as good as empty, though every point is there. What each workspace keeps of
/// its own entry is enough to make it again.
#[test]
fn a_lost_registry_is_made_again_from_what_the_workspaces_keep() {
    let place = Place::new();
    let (a, b) = (place.dir("a"), place.dir("b"));
    let (one, two) = (with_points(&place, &a), with_points(&place, &b));
    // Registered and never used: nothing is missed.
    place.registry.register(&place.dir("c"), &registration()).unwrap();
    assert!(place.registry.orphans().unwrap().orphans.is_empty());
    fs::remove_file(place.file()).unwrap();
    assert_eq!(place.registry.find(&a).unwrap(), None);
    replace(&b);
    let found = place.registry.orphans().unwrap();
    assert!(found.damaged.is_none() && found.registered == 0);
    let exact: Vec<_> = found.orphans.iter().map(|orphan| (orphan.id, orphan.exact)).collect();
    assert_eq!(exact, [(one.id, true), (two.id, false)]);
    assert!(!place.file().exists(), "looking changes nothing");

    let done = place.registry.relink().unwrap();
    assert_eq!((done.relinked.len(), done.left.len(), done.set_aside), (2, 0, None));
    let found = place.registry.find(&a).unwrap().unwrap();
    assert_eq!((found.workspace, found.standing), (one, Standing::Known));
    // As if it had never been lost: another directory under the path.
    let found = place.registry.find(&b).unwrap().unwrap();
    assert_eq!((found.workspace.id, found.standing), (two.id, Standing::NewIncarnation));
    assert_eq!(place.registry.adopt(&b, &two.id, None).unwrap().incarnation, 2);
    assert_eq!(place.registry.relink().unwrap(), index_store::Relinked::default());
}

#[test]
fn a_damaged_registry_is_kept_beside_the_new_one_and_a_newer_one_is_left_alone() {
    let place = Place::new();
    let workspace = with_points(&place, &place.dir("a"));
    let sound = fs::read_to_string(place.file()).unwrap();
    let bad_entry = sound.replace("\"device\"", "\"devise\"");
    for bad in ["", "{", "{\"format\":\"1.0\"}", &bad_entry] {
        fs::write(place.file(), bad).unwrap();
        let found = place.registry.orphans().unwrap();
        assert!(matches!(found.damaged, Some(DataError::Damaged { .. })));
        assert_eq!(found.orphans.len(), 1);
        let aside = place.registry.relink().unwrap().set_aside.unwrap();
        assert_eq!(fs::read_to_string(aside).unwrap(), bad);
        assert_eq!(place.registry.list().unwrap(), [workspace.clone()]);
    }
    fs::write(place.file(), "{\"format\":\"2.0\"}").unwrap();
    assert!(matches!(place.registry.orphans(), Err(DataError::Format { .. })));
    assert!(matches!(place.registry.relink(), Err(DataError::Format { .. })));
    assert_eq!(fs::read_to_string(place.file()).unwrap(), "{\"format\":\"2.0\"}");
}

/// A root that is registered while the registry is lost gets its own points back, not a second history beside them.
#[test]
fn registering_finds_the_points_of_the_very_same_directory() {
    let place = Place::new();
    let root = place.dir("a");
    let workspace = with_points(&place, &root);
    fs::remove_file(place.file()).unwrap();
    let found = place.registry.register(&root, &registration()).unwrap();
    assert_eq!((found.workspace, found.standing), (workspace.clone(), Standing::Known));
    // Another directory under the same path has no claim to them.
    fs::remove_file(place.file()).unwrap();
    replace(&root);
    let other = place.registry.register(&root, &registration()).unwrap();
    assert_eq!(other.standing, Standing::New);
    // Both cannot have the path.
    let done = place.registry.relink().unwrap();
    assert_eq!((done.relinked.len(), done.left.len()), (0, 1));
    assert_eq!(done.left[0].workspace.as_ref().map(|left| left.id), Some(workspace.id));
}

#[test]
fn what_a_workspace_keeps_of_its_entry_follows_the_registry_and_keeps_what_is_newer() {
    let place = Place::new();
    let root = place.dir("a");
    let workspace = with_points(&place, &root);
    let kept = place.path(format!("data/workspaces/{}/root.json", workspace.id));
    let newer = fs::read_to_string(&kept).unwrap().replace("\"workspace\": {", "\"workspace\": {\n    \"colour\": 1,");
    fs::write(&kept, newer).unwrap();
    replace(&root);
    place.registry.register(&root, &registration()).unwrap();
    let text = fs::read_to_string(&kept).unwrap();
    assert!(text.contains("\"colour\": 1") && text.contains("\"incarnation\": 2"), "{text}");
    // One that was lost, or that an older version never wrote, comes back with the next registration.
    fs::remove_file(&kept).unwrap();
    place.registry.register(&root, &registration()).unwrap();
    assert!(kept.exists());
    // A directory that cannot say whose it is stays where it is.
    fs::write(&kept, "{").unwrap();
    fs::remove_file(place.file()).unwrap();
    let left = place.registry.relink().unwrap().left;
    assert_eq!((left.len(), left[0].workspace.is_none()), (1, true));
}
