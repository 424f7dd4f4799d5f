//! What others may see: modes at every moment, and words in logs and errors (issue 6, part 5).

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sandbox::{Sandbox, ran};

/// Entries below `dir` that somebody else may read, write or enter. What goes meanwhile does not count.
fn open_to_others(dir: &Path, seen: &AtomicU64, found: &mut Vec<(PathBuf, u32)>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Ok(facts) = entry.path().symlink_metadata() else { continue };
        seen.fetch_add(1, Ordering::Relaxed);
        if facts.mode() & 0o077 != 0 {
            found.push((entry.path(), facts.mode() & 0o7777));
        }
        if facts.is_dir() {
            open_to_others(&entry.path(), seen, found);
        }
    }
}

/// Owner-only from the first byte, whatever the umask: somebody looks all the time while commands run.
#[test]
fn nothing_is_ever_open_to_others_under_umask_0() {
    for index in ["sqlite", "json"] {
        let sandbox = Sandbox::new().with("RWD_INDEX_KIND", index);
        let run = |args: &[&str]| {
            let mut command = std::process::Command::new("sh");
            let program = sandbox.command(args);
            command.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(program.get_program()).args(args);
            command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).current_dir(sandbox.work());
            let done = ran(command.stdin(Stdio::null()));
            assert_eq!(done.code, 0, "{args:?}: {done:?}");
        };
        let (over, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let found = std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let mut found = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    open_to_others(&sandbox.data(), &seen, &mut found);
                }
                open_to_others(&sandbox.data(), &seen, &mut found);
                found
            });
            for n in 0..4 {
                sandbox.write("a", format!("content {n}"));
                sandbox.write("key", format!("key {n}"));
                run(&["save"]);
            }
            run(&["to", "latest~2", "--yes"]);
            run(&["undo", "--yes"]);
            run(&["name", "latest", "label"]);
            run(&["purge", "key", "--yes"]);
            run(&["gc"]);
            over.store(true, Ordering::Relaxed);
            looking.join().unwrap()
        });
        assert!(found.is_empty(), "{index}: {found:?}");
        assert!(seen.load(Ordering::Relaxed) > 50, "nobody looked");
    }
}

/// Content is for points alone: the most talkative log and every error hold none of it.
#[test]
fn no_content_in_logs_or_errors() {
    let word = "correct-horse-battery";
    let sandbox = Sandbox::new();
    sandbox.write("key", format!("{word} one"));
    sandbox.write(".env", format!("{word} ignored"));
    sandbox.write(".rwdignore", ".env\n");
    let quiet = |args: &[&str]| {
        let done = ran(sandbox.command(args).env("RWD_LOG", "trace"));
        assert!(!done.out.contains(word) && !done.err.contains(word), "{args:?}: {done:?}");
        done
    };
    quiet(&["-vv", "save", "--name", "first"]);
    sandbox.write("key", format!("{word} two"));
    for args in [
        &["-vv", "preview", "first"][..],
        &["-vv", "to", "first"],
        &["-vv", "to", "first", "--yes", "--overwrite-drift"],
        &["-vv", "--json", "undo", "--yes"],
        &["-vv", "log", "--all"],
        &["-vv", "diff", "first", "--name-only"],
        &["-vv", "status"],
        &["-vv", "verify", "--rehash"],
        &["-vv", "purge", "key", "--dry-run"],
    ] {
        quiet(args);
    }
    // Damage in the middle of the content is told by ids and paths.
    for entry in std::fs::read_dir(sandbox.store().join("git/objects/pack")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension() == Some(OsStr::new("pack")) {
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.len() / 2;
            bytes[at] ^= 0x55;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    for args in [
        &["-vv", "verify", "--rehash"][..],
        &["-vv", "to", "first", "--yes", "--overwrite-drift"],
        &["-vv", "--json", "show", "first", "."],
        &["-vv", "gc"],
        &["-vv", "doctor"],
    ] {
        quiet(args);
    }
}
