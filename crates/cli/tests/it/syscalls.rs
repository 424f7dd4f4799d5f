//! Every call by which the real program changes anything, gone wrong: the process is killed at it, or it fails because
//! the disk is full or broken. `strace` counts the calls of a command and then strikes each in turn.
//!
//! This goes below every seam of ours: `SQLite`'s own writes and syncs, the standard library's, the allocator's files.
//! Afterwards: what is open is settled, forward and back in turn; files, settings and logs are each as before or as
//! after; every point is there and rehashed; the same command again does what it should have done; nothing is left behind.
//!
//! `cargo xtask crash-matrix --syscalls` strikes all of them; without `RWD_SYSCALLS=full` a few dozen, spread evenly.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::dsh_home::{DshHome, six_turns};
use crate::sandbox::{Ran, Sandbox, Tree, ended, tree};
use crate::{doors, import, init};

/// Calls that change something on a disk. Where a machine lacks one there is a `?`.
const CHANGES: [&str; 30] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "syncfs",
    "?rename",
    "?renameat",
    "renameat2",
    "?unlink",
    "unlinkat",
    "?rmdir",
    "?mkdir",
    "mkdirat",
    "?link",
    "linkat",
    "?symlink",
    "symlinkat",
    "?truncate",
    "ftruncate",
    "fallocate",
    "?chmod",
    "fchmod",
    "fchmodat",
    "utimensat",
    "copy_file_range",
    "sendfile",
    "?mknodat",
];

/// How a call goes wrong.
const WAYS: [&str; 3] = ["signal=KILL", "error=ENOSPC", "error=EIO"];

/// A world to do something in.
enum Scene {
    Plain(Sandbox),
    Import(import::World),
    Talk(doors::Talk),
    Dsh(DshHome),
    Init(init::World),
}

impl Scene {
    fn sandbox(&self) -> &Sandbox {
        match self {
            Self::Plain(sandbox) => sandbox,
            Self::Import(world) => &world.sandbox,
            Self::Talk(talk) => &talk.sandbox,
            Self::Dsh(home) => &home.sandbox,
            Self::Init(world) => &world.sandbox,
        }
    }
}

/// What may be different between what is there and what was there before or should be there after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// All of it together.
    Whole,
    /// Each file for itself: agents' settings.
    File,
    /// Nothing that was there changes; a new log may be there, whole.
    NewLog,
}

struct Deed {
    name: &'static str,
    scene: fn() -> Option<Scene>,
    args: &'static [&'static str],
    unit: Unit,
    /// Points may be gone.
    drops: bool,
    /// What the program reads.
    input: Option<&'static str>,
}

const DECIDED: [&str; 3] = ["--yes", "--overwrite-drift", "--with-others"];

fn two_states() -> Sandbox {
    let sandbox = Sandbox::new();
    for n in 0..8 {
        sandbox.write(format!("d{}/f{n}", n % 3), format!("one {n}"));
    }
    sandbox.ok(&["save", "--session", "agent", "--turn", "1", "--kind", "turn-start", "--name", "one"]);
    for n in (0..8).step_by(2) {
        sandbox.write(format!("d{}/f{n}", n % 3), format!("two {n}"));
    }
    sandbox.remove("d1/f1");
    sandbox.write("d9/new", "new");
    sandbox.ok(&["save", "--session", "agent", "--turn", "1", "--kind", "turn-end", "--name", "two"]);
    sandbox
}

#[expect(clippy::unnecessary_wraps, reason = "a scene may need a program that is not there")]
fn plain(play: impl FnOnce(&Sandbox)) -> Option<Scene> {
    let sandbox = two_states();
    play(&sandbox);
    Some(Scene::Plain(sandbox))
}

fn to_one(sandbox: &Sandbox) {
    sandbox.ok(&[&["to", "one", "--exact"][..], &DECIDED].concat());
}

#[expect(clippy::unnecessary_wraps, reason = "a scene may need a program that is not there")]
fn talk(client: &'static str) -> Option<Scene> {
    Some(Scene::Talk(doors::Talk::new(client)))
}

fn agents() -> init::World {
    let world = init::World::new(&["claude", "codex", "gemini", "opencode"]);
    let settings = world.sandbox.work().join(".claude/settings.local.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, "{\n  // mine\n  \"model\": \"x\"\n}\n").unwrap();
    world
}

const PROMPT: &str = r#"{"hook_event_name":"UserPromptSubmit","session_id":"s-1","prompt":"go"}"#;
const FORK: &[&str] = &["to", "t3^", "--both", "--yes", "--overwrite-drift"];
const TO_ONE: &[&str] = &["to", "one", "--exact", "--yes", "--overwrite-drift", "--with-others"];

const PLAIN: Deed = Deed { name: "", scene: || None, args: &[], unit: Unit::Whole, drops: false, input: None };

const DEEDS: [Deed; 17] = [
    Deed {
        name: "first-save",
        scene: || {
            let sandbox = Sandbox::new();
            sandbox.write("a", "content");
            Some(Scene::Plain(sandbox))
        },
        args: &["save"],
        ..PLAIN
    },
    Deed { name: "save", scene: || plain(|s| s.write("d0/f0", "three")), args: &["save"], ..PLAIN },
    Deed {
        name: "hook",
        scene: || plain(|s| s.write("d0/f0", "three")),
        args: &["hook", "claude"],
        input: Some(PROMPT),
        ..PLAIN
    },
    Deed { name: "restore", scene: || plain(|_| ()), args: TO_ONE, ..PLAIN },
    Deed {
        name: "undo",
        scene: || plain(to_one),
        args: &["undo", "--yes", "--overwrite-drift", "--with-others"],
        ..PLAIN
    },
    Deed { name: "name", scene: || plain(|_| ()), args: &["name", "latest", "third"], ..PLAIN },
    Deed {
        name: "gc",
        scene: || {
            plain(|s| {
                s.write("d0/f0", "to drop");
                s.ok(&["save"]);
                s.ok(&["drop", "latest", "--yes"]);
            })
        },
        args: &["gc"],
        ..PLAIN
    },
    Deed {
        name: "drop",
        scene: || {
            plain(|s| {
                s.write("d0/f0", "to drop");
                s.ok(&["save"]);
            })
        },
        args: &["drop", "latest", "--yes"],
        drops: true,
        ..PLAIN
    },
    Deed {
        name: "purge",
        scene: || {
            plain(|s| {
                s.write("d0/key", "hush");
                s.ok(&["save"]);
                s.remove("d0/key");
            })
        },
        args: &["purge", "d0/key", "--yes"],
        ..PLAIN
    },
    Deed { name: "recover", scene: || plain(interrupted), args: &["recover", "--finish"], ..PLAIN },
    Deed {
        name: "import",
        scene: || import::importable().map(Scene::Import),
        args: &["import", "--from", "dsh-checkpoint", "--session", "dsh:s-one"],
        ..PLAIN
    },
    Deed { name: "init", scene: || Some(Scene::Init(agents())), args: &["init", "--yes"], unit: Unit::File, ..PLAIN },
    Deed {
        name: "uninstall",
        scene: || {
            let world = agents();
            world.sandbox.ok(&["init", "--yes"]);
            Some(Scene::Init(world))
        },
        args: &["uninstall", "--yes"],
        unit: Unit::File,
        ..PLAIN
    },
    Deed { name: "fork-claude", scene: || talk("claude"), args: FORK, unit: Unit::NewLog, ..PLAIN },
    Deed { name: "fork-codex", scene: || talk("codex"), args: FORK, unit: Unit::NewLog, ..PLAIN },
    Deed { name: "fork-gemini", scene: || talk("gemini"), args: FORK, unit: Unit::NewLog, ..PLAIN },
    Deed {
        name: "fork-dsh",
        scene: || {
            let mut home = DshHome::new();
            home.put("six", &six_turns(), testkit::dsh_logs::Encoding::Zstd);
            home.sandbox.write("a", "one\n");
            home.sandbox.ok(&["save"]);
            Some(Scene::Dsh(home))
        },
        args: &["to", "t3", "--chat", "--yes"],
        unit: Unit::NewLog,
        ..PLAIN
    },
];

/// A restore is killed in the middle of its writing.
fn interrupted(sandbox: &Sandbox) {
    for n in 1.. {
        let strike = format!("renameat2:signal=KILL:when={n}");
        assert!(struck(sandbox, TO_ONE, None, &strike).code != 0, "no operation was left open");
        if sandbox.json(0, &["status"])["unfinished"].is_string() {
            return;
        }
    }
}

/// Runs the program under strace with more arguments of it.
fn traced(sandbox: &Sandbox, args: &[&str], input: Option<&str>, more: &[&str]) -> Ran {
    let plain = sandbox.command(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-qqq"]).args(more).arg(plain.get_program()).args(args);
    command.current_dir(sandbox.work()).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // strace itself has to be found, and the agents' programs too.
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if let Some((_, Some(own))) = plain.get_envs().find(|(name, _)| *name == "PATH") {
        path = [own, std::ffi::OsStr::new(":"), &path].into_iter().collect();
    }
    command.env("PATH", path);
    if let Some(text) = input {
        let file = sandbox.top().join("input");
        fs::write(&file, text).unwrap();
        command.stdin(fs::File::open(file).unwrap());
    }
    ended(command.spawn().unwrap())
}

/// Runs it with one call going wrong.
fn struck(sandbox: &Sandbox, args: &[&str], input: Option<&str>, strike: &str) -> Ran {
    let call = strike.split(':').next().unwrap();
    let (trace, inject) = (format!("trace={call}"), format!("inject={strike}"));
    traced(sandbox, args, input, &["-o", "/dev/null", "-e", &trace, "-e", &inject])
}

/// How often each call is made that changes something, by name.
fn counted(sandbox: &Sandbox, deed: &Deed) -> BTreeMap<String, u64> {
    let log = sandbox.top().join("trace");
    let trace = format!("trace={}", CHANGES.join(","));
    let ran = traced(sandbox, deed.args, deed.input, &["-o", log.to_str().unwrap(), "-e", &trace]);
    assert_eq!(ran.code, 0, "{}: {ran:?}", deed.name);
    let mut counts = BTreeMap::new();
    // Each thread counts its own calls, and so does what strikes them: the most of any thread.
    let mut of_thread: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((name, _)) = call.trim_start().split_once('(') else { continue };
        if name.starts_with('<') {
            continue;
        }
        let count = of_thread.entry((thread.to_owned(), name.to_owned())).or_default();
        *count += 1;
        let most: &mut u64 = counts.entry(name.to_owned()).or_default();
        *most = (*most).max(*count);
    }
    fs::remove_file(log).unwrap();
    counts
}

/// A name that is none of the user's: what is on its way to its own name.
fn is_temporary(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.starts_with(b".rwd-")
        || name.ends_with(b".rwd-tmp")
        || (name.starts_with(b"session") && name.ends_with(b".tmp"))
}

/// What a killed process may leave, as documented: beside settings it may be the only place of somebody's content, and
/// drafts of logs have names that every reader passes over.
fn may_stay(path: &[u8]) -> bool {
    let temporary = is_temporary(path);
    let settings =
        [&b"/.claude/"[..], b"/.codex/", b"/.gemini/", b"/.config/", b"/sessions/", b"/chats/", b"/projects/"];
    temporary && settings.iter().any(|part| path.windows(part.len()).any(|window| window == *part))
}

/// All that belongs to the user: the workspace, settings and logs, without what rwd keeps for itself.
fn outside(sandbox: &Sandbox) -> Tree {
    let mut all = tree(&sandbox.top());
    let own = b"home/.local";
    all.retain(|path, facts| {
        let is_ours = path.starts_with(own) || path == b"input" || path == b"trace" || is_temporary(path);
        // Directories that were made for settings are told apart by what is in them.
        !is_ours && facts.0 != 'd'
    });
    all
}

fn copy(from: &Path, to: &Path) {
    let from = from.join(".");
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// A copy of a world that can be put back as often as it is needed.
struct Template(PathBuf);

impl Template {
    fn of(sandbox: &Sandbox, dir: &Path) -> Self {
        copy(&sandbox.top(), dir);
        Self(dir.to_owned())
    }

    /// Puts it back. The directories at the top stay: a workspace is known by its root.
    fn put_back(&self, sandbox: &Sandbox) {
        for part in fs::read_dir(sandbox.top()).unwrap() {
            let part = part.unwrap().path();
            if !part.is_dir() {
                fs::remove_file(&part).unwrap();
                continue;
            }
            for entry in fs::read_dir(&part).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    fs::remove_dir_all(&path).unwrap();
                } else {
                    fs::remove_file(&path).unwrap();
                }
            }
        }
        copy(&self.0, &sandbox.top());
    }
}

fn ids(sandbox: &Sandbox) -> BTreeSet<String> {
    let ran = sandbox.rwd(&["--json", "log", "--all"]);
    if ran.code != 0 {
        return BTreeSet::new();
    }
    ran.json()["points"].as_array().unwrap().iter().map(|point| point["id"].as_str().unwrap().to_owned()).collect()
}

/// Everything that must hold after a strike.
fn check(deed: &Deed, sandbox: &Sandbox, here: &str, at: u64, first: &(Tree, BTreeSet<String>), after: &Tree) {
    let (before, points) = first;
    let status = sandbox.rwd(&["--json", "status"]);
    // A first command that was struck may have made no workspace.
    let is_known = status.code != 10;
    if is_known {
        assert_eq!(status.code, 0, "{here}: {status:?}");
        if status.json()["unfinished"].is_string() {
            let way = if at.is_multiple_of(2) { "--finish" } else { "--back" };
            let mut settled = sandbox.rwd(&["recover", way]);
            if settled.code == 3 && settled.err.contains("can only be finished") {
                // There may be a child that believes in the new files.
                assert!(deed.unit == Unit::NewLog && way == "--back", "{here}: {settled:?}");
                settled = sandbox.rwd(&["recover", "--finish"]);
            }
            assert!(matches!(settled.code, 0 | 6), "{here}: recover {way}: {settled:?}");
        }
        assert_eq!(sandbox.json(0, &["status"])["unfinished"], Value::Null, "{here}");
        let left = ids(sandbox);
        assert!(deed.drops || left.is_superset(points), "{here}: points are gone");
        assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], serde_json::json!([]), "{here}");
    }
    compare(deed, here, before, after, &outside(sandbox), sandbox);
    // The same again, undisturbed.
    let mut again = sandbox.command(deed.args);
    if deed.input.is_some() {
        again.stdin(fs::File::open(sandbox.top().join("input")).unwrap());
    }
    let again = crate::sandbox::ran(&mut again);
    assert!(matches!(again.code, 0 | 6 | 9), "{here}: again: {again:?}");
    age(&sandbox.top().join("home/.local"));
    let collected = sandbox.rwd(&["gc"]);
    assert!(matches!(collected.code, 0 | 10), "{here}: {collected:?}");
    let litter = tree(&sandbox.top()).into_keys();
    let litter = litter.filter(|path| is_temporary(path) || path.windows(8).any(|part| part == b"pack/tmp"));
    let litter: Vec<_> =
        litter.filter(|path| !may_stay(path)).map(|p| String::from_utf8_lossy(&p).into_owned()).collect();
    assert_eq!(litter, Vec::<String>::new(), "{here}: left behind");
    assert_eq!(sandbox.json(0, &["verify", "--rehash"])["damaged"], serde_json::json!([]), "{here}: after gc");
    if deed.name == "init" {
        sandbox.ok(&["uninstall", "--yes"]);
        let now = outside(sandbox);
        assert_eq!(differing(&now, before), Vec::<String>::new(), "{here}: init was not taken back to the byte");
    }
}

fn compare(deed: &Deed, here: &str, before: &Tree, after: &Tree, now: &Tree, sandbox: &Sandbox) {
    match deed.unit {
        Unit::Whole => {
            let (old, new) = (differing(now, before), differing(now, after));
            assert!(old.is_empty() || new.is_empty(), "{here}: half done: {old:?} {new:?}");
        }
        Unit::File => {
            for path in before.keys().chain(after.keys()).chain(now.keys()) {
                let one = now.get(path);
                let shown = String::from_utf8_lossy(path);
                assert!(one == before.get(path) || one == after.get(path), "{here}: {shown} is neither");
            }
        }
        Unit::NewLog => {
            let in_work = |path: &&Vec<u8>| path.starts_with(b"work/");
            let half = |other: &Tree| {
                let keys = other.keys().chain(now.keys()).filter(in_work);
                keys.into_iter().any(|path| other.get(path) != now.get(path))
            };
            assert!(!half(before) || !half(after), "{here}: files are half done");
            for (path, facts) in before.iter().filter(|(path, _)| !path.starts_with(b"work/")) {
                assert_eq!(now.get(path), Some(facts), "{here}: {} changed", String::from_utf8_lossy(path));
            }
            let new: Vec<_> =
                now.keys().filter(|path| !path.starts_with(b"work/") && !before.contains_key(*path)).collect();
            let names: Vec<_> = new.iter().map(|path| String::from_utf8_lossy(path)).collect();
            assert!(new.len() <= 1, "{here}: {names:?}");
            // What is there is a whole session.
            for path in new {
                let name = String::from_utf8_lossy(path).into_owned();
                if let Some(folder) = name.strip_suffix("/session.jsonl.zstd") {
                    let id = folder.rsplit('/').next().unwrap();
                    assert_eq!(sandbox.json(0, &["session", "verify", id])["loadable"], true, "{here}");
                    continue;
                }
                let lines = |tree: &Tree, path: &[u8]| tree[path].2.split(|byte| *byte == b'\n').count();
                let wanted = after.keys().find(|other| !other.starts_with(b"work/") && !before.contains_key(*other));
                assert_eq!(lines(now, path), lines(after, wanted.unwrap()), "{here}: {name}");
                assert!(now[path].2.ends_with(b"\n"), "{here}: {name}");
            }
        }
    }
}

/// Makes what is left behind old enough to be nobody's.
fn age(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            age(&path);
        } else if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".rwd-")) {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
    }
}

fn differing(one: &Tree, other: &Tree) -> Vec<String> {
    let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let differ = keys.into_iter().filter(|path| one.get(*path) != other.get(*path));
    differ.map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

/// Strikes of all deeds, or in the short form so many of each deed and way.
fn strikes(deed: &Deed) -> u64 {
    let full = std::env::var("RWD_SYSCALLS").is_ok_and(|value| value == "full");
    let scene = (deed.scene)().unwrap_or_else(|| panic!("{}: git is not there", deed.name));
    let sandbox = scene.sandbox();
    if let Some(text) = deed.input {
        fs::write(sandbox.top().join("input"), text).unwrap();
    }
    let kept = tempfile::tempdir().unwrap();
    let template = Template::of(sandbox, kept.path());
    let before = (outside(sandbox), ids(sandbox));
    let counts = counted(sandbox, deed);
    let after = outside(sandbox);
    let mut all = Vec::new();
    for (n, way) in WAYS.into_iter().enumerate() {
        for (call, count) in &counts {
            all.extend((1..=*count).map(|at| (n, way, call.clone(), at)));
        }
    }
    let step = if full { 1 } else { (all.len() / 4).max(1) };
    let mut done = 0;
    for (number, (_, way, call, at)) in all.into_iter().enumerate().skip(step / 2).step_by(step) {
        template.put_back(sandbox);
        let here = format!("{}: {call} {at}, {way}", deed.name);
        let ran = struck(sandbox, deed.args, deed.input, &format!("{call}:{way}:when={at}"));
        assert!(ran.code != 101 && !ran.err.contains("panicked"), "{here}: {ran:?}");
        if deed.name == "hook" && way != "signal=KILL" {
            assert_eq!(ran.code, 0, "{here}: an agent was disturbed: {ran:?}");
        }
        check(deed, sandbox, &here, number as u64, &before, &after);
        done += 1;
    }
    println!("syscalls {}: {} calls that change something, {done} strikes", deed.name, counts.values().sum::<u64>());
    done
}

/// Issue 6, part 1, below every seam.
#[test]
fn every_system_call_of_the_program_goes_wrong() {
    let mut probe = Command::new("strace");
    let probe = probe.args(["-o", "/dev/null", "true"]).stdin(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("RWD_SYSCALLS").is_none(), "strace is not there, or may not trace");
        println!("SKIPPED: strace is not there, or may not trace");
        return;
    }
    let only = std::env::var("RWD_SYSCALLS_ONLY").ok();
    let deeds = DEEDS.iter().filter(|deed| only.as_ref().is_none_or(|only| deed.name == only));
    let total: u64 = deeds.map(strikes).sum();
    println!("syscalls: {total} strikes, nothing lost");
}
