//! What must hold for any bytes in the files that the command line reads, one function for each target. The fuzz targets
//! call them with what libfuzzer makes up, a test of `rwd` with every file of the corpora and small changes of each.

use std::{
    fs,
    io::{self, Cursor, Write},
    path::Path,
    sync::{Arc, Mutex},
};

use checkpoint_core::NoSessions;
use serde_json::Value;

/// Settings, those of the user and those of a workspace.
pub(crate) fn config(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    for file in ["work/.rwd.toml", "home/.config/rwd/config.toml"] {
        put(dir.path(), "work/file", b"content");
        put(dir.path(), file, data);
        answered(dir.path(), &["config", "list"]);
        answered(dir.path(), &["save", "--dry-run"]);
        assert_eq!(fs::read(dir.path().join(file)).expect("it is still there"), data, "reading changes nothing");
        fs::remove_file(dir.path().join(file)).expect("it can go");
    }
}

/// What was put into which of the agents' settings. Nothing is taken out: only what would be is told.
pub(crate) fn receipt(data: &[u8]) {
    reads("install/receipt.json", data, &[&["uninstall", "--dry-run"], &["init", "--dry-run", "--agent", "claude"]]);
}

/// The registry of workspaces.
pub(crate) fn registry(data: &[u8]) {
    reads("workspaces.json", data, &[&["status"], &["log"], &["doctor"]]);
}

fn reads(file: &str, data: &[u8], commands: &[&[&str]]) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let file = format!("home/.local/share/rwd/{file}");
    put(dir.path(), "work/file", b"content");
    put(dir.path(), &file, data);
    for command in commands {
        answered(dir.path(), command);
    }
    assert_eq!(fs::read(dir.path().join(file)).expect("it is still there"), data, "reading changes nothing");
}

fn put(dir: &Path, file: &str, data: &[u8]) {
    let file = dir.join(file);
    fs::create_dir_all(file.parent().expect("it is in a directory")).expect("a directory");
    fs::write(file, data).expect("a file");
}

/// Runs a command: it answers with one JSON value and a code of ours.
fn answered(dir: &Path, args: &[&str]) {
    let (out, err) = (Kept::default(), Kept::default());
    let mut world = rwd::World::of_process();
    world.args = ["rwd", "--json"].iter().chain(args).map(Into::into).collect();
    world.vars = [("HOME".into(), dir.join("home").into()), ("GIT_CONFIG_NOSYSTEM".into(), "1".into())].into();
    world.cwd = Some(dir.join("work"));
    world.stdin = Box::new(Cursor::new(Vec::new()));
    (world.stdout, world.stderr) = (Box::new(out.clone()), Box::new(err.clone()));
    (world.can_ask, world.stdout_is_terminal, world.stderr_is_terminal) = (false, false, false);
    world.sessions = Arc::new(NoSessions);
    let code = rwd::run(world);
    assert!(code <= rwd::exit::BUSY, "{args:?}: exit {code}");
    let answer = out.0.lock().expect("nobody panicked").clone();
    let parsed = serde_json::from_slice::<Value>(&answer);
    assert!(parsed.is_ok(), "{args:?}: {code} {:?} {:?}", String::from_utf8_lossy(&answer), err.0.lock());
}

#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
