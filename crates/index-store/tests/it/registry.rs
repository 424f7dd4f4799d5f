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
