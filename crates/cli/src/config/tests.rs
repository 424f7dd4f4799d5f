use super::*;

fn world(home: &Path, vars: &[(&str, &str)]) -> World {
    let mut world = World::of_process();
    world.vars = vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    world.vars.insert("HOME".into(), home.into());
    world
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn origin_of(settings: &Settings, name: &str) -> String {
    settings.all().find(|(key, ..)| *key == name).map(|(.., origin)| origin.to_string()).unwrap()
}

#[test]
fn later_layers_win_and_name_their_origin() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    let user = dir.path().join(".config/rwd/config.toml");
    write(&user, "[capture]\nuntracked_max_bytes = \"1 MiB\"\nexcludes = ['a']\n[retention]\nmax_turns = 7\n");
    write(&root.join(WORKSPACE_FILE), "[capture]\nexcludes = ['b/**']\n");
    let world = world(dir.path(), &[("RWD_RETENTION_MAX_TURNS", "9"), ("RWD_CAPTURE_INCLUDE", "x, y")]);
    let settings = Settings::load(&world, Some(&root), false).unwrap();
    let capture = settings.capture();
    assert_eq!(capture.untracked_max_bytes, 1 << 20);
    assert_eq!(capture.excludes, Some(vec!["b/**".to_owned()]));
    assert_eq!(capture.include, ["x", "y"]);
    assert_eq!(settings.quota().max_turns, 9);
    assert_eq!(origin_of(&settings, "retention.max_turns"), "RWD_RETENTION_MAX_TURNS");
    assert_eq!(origin_of(&settings, "capture.excludes"), root.join(WORKSPACE_FILE).display().to_string());
    assert_eq!(origin_of(&settings, "restore.guard"), "default");
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

/// Design § 9: a workspace file may only make restores stricter; it may not shorten history.
#[test]
fn a_workspace_file_only_makes_things_stricter() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    write(&dir.path().join(".config/rwd/config.toml"), "[restore]\nguard = 'warn'\n");
    let lax =
        "[restore]\nguard = 'off'\nconfirm = 'never'\n[retention]\nmax_turns = 1\n[agent]\nmay_restore = 'allow'\n";
    write(&root.join(WORKSPACE_FILE), lax);
    let settings = Settings::load(&world(dir.path(), &[]), Some(&root), false).unwrap();
    assert_eq!(settings.guard(), GuardMode::Warn);
    assert_eq!(settings.confirm(), Confirm::Ask);
    assert_eq!(settings.quota().max_turns, 500);
    assert_eq!(settings.may_restore(), MayRestore::Ask);
    assert_eq!(settings.warnings.len(), 4);
    write(
        &root.join(WORKSPACE_FILE),
        "[restore]\nguard = 'require'\nconfirm = 'plan'\n[agent]\nmay_restore = 'never'\n",
    );
    let settings = Settings::load(&world(dir.path(), &[]), Some(&root), false).unwrap();
    assert_eq!(
        (settings.guard(), settings.confirm(), settings.may_restore()),
        (GuardMode::Require, Confirm::Plan, MayRestore::Never)
    );
}

/// Design § 7: `RWD_*` variables cannot loosen `agent.*`.
#[test]
fn variables_cannot_loosen_what_agents_may() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::load(&world(dir.path(), &[("RWD_AGENT_MAY_RESTORE", "allow")]), None, false).unwrap();
    assert_eq!(settings.may_restore(), MayRestore::Ask);
    let settings = Settings::load(&world(dir.path(), &[("RWD_AGENT_MAY_RESTORE", "never")]), None, false).unwrap();
    assert_eq!(settings.may_restore(), MayRestore::Never);
}

#[test]
fn malformed_settings_are_refused_with_key_and_origin() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    for (text, key) in [
        ("[capture]\nexcludes = 3\n", "capture.excludes"),
        ("[capture]\nno_such = 3\n", "capture.no_such"),
        ("[restore]\nguard = 'maybe'\n", "restore.guard"),
        ("[retention]\nmax_turns = -1\n", "retention.max_turns"),
        ("[capture\n", "line 1"),
    ] {
        write(&root.join(WORKSPACE_FILE), text);
        let error = Settings::load(&world(dir.path(), &[]), Some(&root), false).unwrap_err().to_string();
        assert!(error.starts_with(key) && error.contains(WORKSPACE_FILE), "{text:?}: {error}");
        let lenient = Settings::load(&world(dir.path(), &[]), Some(&root), true).unwrap();
        assert_eq!(lenient.warnings.len(), 1);
    }
    assert!(Settings::load(&world(dir.path(), &[("RWD_LOCK_WAIT_MS", "soon")]), None, false).is_err());
}

/// The workspace's file is whatever somebody put there: it must not block or be read for ever.
#[test]
fn what_is_no_file_is_left_out_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("w");
    std::fs::create_dir_all(root.join(WORKSPACE_FILE)).unwrap();
    let settings = Settings::load(&world(dir.path(), &[]), Some(&root), false).unwrap();
    assert_eq!(settings.warnings.len(), 1);
}

#[test]
fn the_table_of_keys_is_in_order_and_its_defaults_are_those_of_the_core() {
    assert!(KEYS.is_sorted_by(|one, two| one.name < two.name));
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::load(&world(dir.path(), &[]), None, false).unwrap();
    let (ours, core) = (settings.capture(), CapturePolicy::default());
    assert_eq!(format!("{ours:?}"), format!("{core:?}"));
    assert_eq!(settings.quota(), Quota::default());
    assert!(KEYS.iter().all(|key| !key.about.is_empty()));
}
