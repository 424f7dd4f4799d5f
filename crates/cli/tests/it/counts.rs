//! What a capture costs, in calls that the system counts: gates that no busy machine moves. Without a tracer, as where
//! `strace` is not installed or not allowed, there is nothing to judge by.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::sandbox::Sandbox;

const FILES: usize = 120;

/// Calls by which files are looked at, opened, written and made durable.
const TRACED: &str = "trace=?open,?openat,?openat2,?stat,?lstat,?fstat,?newfstatat,?fstatat64,?statx,?write,?pwrite64,\
                      ?writev,?pwritev,?rename,?renameat,?renameat2,?fsync,?fdatasync,?syncfs,?sync,?sync_file_range,?msync";

/// One call, as it began: where a thread was interrupted its result is on another line.
struct Call {
    name: String,
    line: String,
}

impl Call {
    fn is_sync(&self) -> bool {
        self.name.contains("sync")
    }
    fn is_stat(&self) -> bool {
        self.name.contains("stat")
    }
    fn is_write(&self) -> bool {
        self.name.contains("write") || self.name.contains("rename")
    }
    /// The name that the call was given.
    fn given(&self) -> &str {
        self.line.split('"').nth(1).unwrap_or_default()
    }
    /// The path of the directory that the name is looked up in.
    fn within(&self) -> &str {
        self.line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(path, _)| path)
    }
}

/// Runs a command that must succeed and lists what it called; `None` where nothing can be traced.
fn calls(sandbox: &Sandbox, args: &[&str]) -> Option<Vec<Call>> {
    let log = sandbox.top().join("trace");
    let plain = sandbox.command(args);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-y", "-s", "4096", "-e", TRACED, "-o"]).arg(&log).arg(plain.get_program()).args(args);
    traced.current_dir(sandbox.work()).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if !traced.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    let call = |line: &str| {
        let call = line.split_once(' ')?.1.trim_start();
        let name = call.split_once('(')?.0;
        (!call.starts_with('<')).then(|| Call { name: name.to_owned(), line: call.to_owned() })
    };
    Some(text.lines().filter_map(call).collect())
}

/// A workspace with files in directories at several depths, ignore rules, and a first point; all of it settled.
fn world(git: bool) -> Sandbox {
    let sandbox = Sandbox::new();
    for n in 0..FILES {
        sandbox.write(format!("d{}/e{}/f{n}", n % 5, n % 2), format!("content {n}"));
    }
    sandbox.write("deep/er/than/most/file", "zero");
    sandbox.write(".gitignore", "*.log\n");
    sandbox.write("d1/x.log", "ignored");
    if git {
        let init =
            Command::new("git").args(["init", "-q"]).current_dir(sandbox.work()).env("HOME", sandbox.home()).status();
        drop(init);
    }
    pause();
    sandbox.ok(&["save"]);
    pause();
    // What was too young to be trusted is looked at once more.
    sandbox.ok(&["save"]);
    sandbox.write("deep/er/than/most/file", "one");
    pause();
    sandbox.ok(&["save"]);
    pause();
    sandbox.ok(&["save"]);
    sandbox
}

/// Stamps younger than this are not trusted (design, racy rule).
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(60));
}

/// Files of the workspace that were opened, and how often each name in it was stated.
fn looks(sandbox: &Sandbox, calls: &[Call]) -> (Vec<String>, BTreeMap<String, u32>) {
    let work = sandbox.work();
    let (mut opened, mut stated) = (Vec::new(), BTreeMap::new());
    for call in calls {
        let path = Path::new(call.within()).join(call.given());
        let Ok(below) = path.strip_prefix(&work) else { continue };
        let below = below.to_str().unwrap().to_owned();
        if below.is_empty() || call.given().is_empty() || below.starts_with(".git/") {
            continue;
        }
        if call.is_stat() {
            *stated.entry(below).or_default() += 1;
        } else if call.name.starts_with("open") && !call.line.contains("O_DIRECTORY") {
            opened.push(below);
        }
    }
    (opened, stated)
}

fn count(calls: &[Call], is: impl Fn(&Call) -> bool) -> usize {
    calls.iter().filter(|call| is(call)).count()
}

/// Where nothing changed: each file is stated once and none is opened, nothing is written but what SQLite shares between
/// processes in memory, and nothing but the pack directory is synced.
#[test]
fn an_unchanged_workspace_costs_one_look_a_file() {
    for git in [false, true] {
        let sandbox = world(git);
        let Some(calls) = calls(&sandbox, &["-q", "save"]) else { return };
        let (opened, stated) = looks(&sandbox, &calls);
        let allowed = |name: &&String| !matches!(name.as_str(), ".rwd.toml" | ".gitignore" | ".rwdignore" | ".git");
        assert_eq!(opened.iter().filter(allowed).collect::<Vec<_>>(), Vec::<&String>::new());
        let files = stated.iter().filter(|(name, _)| name.contains("/f"));
        assert_eq!(files.map(|(_, n)| *n).collect::<Vec<_>>(), vec![1; FILES + 1]);
        let written = calls.iter().filter(|call| call.is_write() && !call.within().ends_with("-shm"));
        let written: Vec<_> = written.filter(|call| call.within().starts_with('/')).map(|call| &call.line).collect();
        let ours = written.iter().filter(|line| line.contains(sandbox.data().to_str().unwrap()));
        assert_eq!(ours.collect::<Vec<_>>(), Vec::<&&String>::new());
        assert!(count(&calls, Call::is_sync) <= 1);
    }
}

/// One change: that file is opened and no other, and what is durable costs four syncs: the pack, its directory, and two
/// of SQLite in a new process.
#[test]
fn one_change_costs_one_open_and_four_syncs() {
    let sandbox = world(true);
    sandbox.write("deep/er/than/most/file", "two");
    pause();
    let Some(calls) = calls(&sandbox, &["-q", "save"]) else { return };
    let (opened, stated) = looks(&sandbox, &calls);
    let read: Vec<_> = opened.iter().filter(|name| name.contains("/f")).collect();
    assert_eq!(read, ["deep/er/than/most/file"]);
    let most =
        stated.iter().filter(|(name, _)| name.contains("/f") && !name.starts_with("deep")).map(|(_, n)| *n).max();
    assert_eq!(most, Some(1));
    let synced: Vec<_> = calls.iter().filter(|call| call.is_sync()).map(|call| call.within().to_owned()).collect();
    assert!(synced.len() <= 4, "{synced:?}");
    assert_eq!(count(&calls, |call| call.name == "syncfs" || call.name == "sync"), 0);
    // One pack and one index, whatever changed.
    let renamed = count(&calls, |call| call.name.starts_with("rename") && call.line.contains("/objects/pack/pack-"));
    assert_eq!(renamed, 2);
}

/// The first capture of a clean git worktree reads no file, and compresses nothing but trees: what git has is linked.
#[test]
fn a_first_capture_of_a_clean_worktree_reads_and_compresses_no_file() {
    let sandbox = Sandbox::new();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=u", "-c", "user.email=u@example.invalid", "-c", "gc.auto=0"]).args(args);
        git.current_dir(sandbox.work()).env("HOME", sandbox.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        git.status().is_ok_and(|status| status.success())
    };
    for n in 0..FILES {
        sandbox.write(format!("d{}/e{}/f{n}", n % 5, n % 2), format!("content {n}\n").repeat(40));
    }
    pause();
    if ![&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "c"], &["repack", "-adq"]].into_iter().all(git) {
        return;
    }
    let Some(calls) = calls(&sandbox, &["-q", "save"]) else { return };
    let (opened, stated) = looks(&sandbox, &calls);
    assert!(!opened.iter().any(|name| name.contains("/f")), "{opened:?}");
    let files = stated.iter().filter(|(name, _)| name.contains("/f"));
    assert_eq!(files.map(|(_, n)| *n).collect::<Vec<_>>(), vec![1; FILES]);
    let packs = std::fs::read_dir(sandbox.store().join("git/objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let own = packs.filter(|path| {
        path.extension().is_some_and(|end| end == "pack") && !path.to_str().unwrap().contains("pack-seed-")
    });
    let counts = own.map(|pack| std::fs::read(pack).unwrap()[8..12].try_into().map(u32::from_be_bytes).unwrap());
    // Sixteen directories, and the root's meta tree with its blob.
    assert_eq!(counts.collect::<Vec<_>>(), [18]);
    // The pack, its index, our pack, the directory, a new index of points, and what registers the workspace.
    let synced: Vec<_> = calls.iter().filter(|call| call.is_sync()).map(|call| &call.line).collect();
    let in_store = synced.iter().filter(|line| line.contains("/objects/pack"));
    assert_eq!(in_store.count(), 4, "{synced:?}");
}

/// A turn point of an unchanged workspace writes its record and no object.
#[test]
fn a_turn_of_nothing_costs_its_record() {
    let sandbox = world(false);
    let args = ["-q", "save", "--session", "agent", "--turn", "1", "--kind", "turn-start"];
    let Some(calls) = calls(&sandbox, &args) else { return };
    assert_eq!(count(&calls, |call| call.line.contains("/objects/pack/") && call.is_write()), 0);
    assert!(count(&calls, Call::is_sync) <= 3);
    let (opened, _) = looks(&sandbox, &calls);
    assert!(!opened.iter().any(|name| name.contains("/f")), "{opened:?}");
}

/// What seventy captures of one small change leave: few files, no temporary, and every point whole.
#[test]
fn seventy_captures_leave_few_packs() {
    let sandbox = world(false);
    let packs = sandbox.store().join("git/objects/pack");
    let most = |bound: usize| {
        let names: Vec<_> = std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let of = |end: &str| names.iter().filter(|name| name.to_str().unwrap().ends_with(end)).count();
        assert!(of(".pack") <= bound && of(".pack") == of(".idx"), "{names:?}");
        assert_eq!(names.len(), 2 * of(".pack"), "{names:?}");
        of(".pack")
    };
    let mut fewest = usize::MAX;
    for n in 0..70 {
        sandbox.write("deep/er/than/most/file", format!("change {n}"));
        sandbox.ok(&["-q", "save"]);
        fewest = most(33).min(if n > 40 { fewest } else { usize::MAX });
    }
    let points = sandbox.json(0, &["log"])["points"].as_array().unwrap().len();
    assert!(points >= 70);
    assert!(fewest < 33);
    sandbox.ok(&["verify", "--rehash"]);
}

/// Going back over many files: what each costs beside the walk of the guard. A directory is opened by one call however deep
/// it lies, once for each of check, draft, exchange and reading back; the file that is read is the one whose attributes
/// are taken over; directories are synced once for all.
#[test]
fn restoring_a_file_costs_few_looks_and_one_sync() {
    let sandbox = world(true);
    for n in 0..FILES {
        sandbox.write(format!("d{}/e{}/f{n}", n % 5, n % 2), format!("rewritten {n}"));
    }
    pause();
    sandbox.ok(&["save"]);
    let Some(walk) = calls(&sandbox, &["-q", "save"]) else { return };
    let Some(calls) = calls(&sandbox, &["-q", "to", "latest~1", "--yes"]) else { return };
    let files = u32::try_from(FILES).unwrap();
    let each = |is: fn(&Call) -> bool| {
        let beside = count(&calls, is).saturating_sub(count(&walk, is));
        f64::from(u32::try_from(beside).unwrap()) / f64::from(files)
    };
    assert_eq!(std::fs::read(sandbox.work().join("d1/e1/f1")).unwrap(), b"content 1");
    let (stats, opens) = (each(Call::is_stat), each(|call| call.name.starts_with("open")));
    let (syncs, renames) = (each(Call::is_sync), each(|call| call.name.starts_with("rename")));
    assert!(stats < 23.5 && opens < 10.5, "{stats:.2} stats, {opens:.2} opens a file");
    assert!(syncs < 1.25 && renames < 2.1, "{syncs:.2} syncs, {renames:.2} renames a file");
}

/// What a restore has read back is not read again by the next capture, but for files that were hardly older than the look
/// at them.
#[test]
fn the_capture_after_a_restore_reads_few_files() {
    let sandbox = world(true);
    for n in 0..FILES {
        sandbox.write(format!("d{}/e{}/f{n}", n % 5, n % 2), format!("rewritten {n}"));
    }
    pause();
    sandbox.ok(&["save"]);
    // Traced, it takes long enough for most of what it writes to come to rest.
    if calls(&sandbox, &["-q", "to", "latest~1", "--yes"]).is_none() {
        return;
    }
    pause();
    let Some(first) = calls(&sandbox, &["-q", "save"]) else { return };
    let read = looks(&sandbox, &first).0.iter().filter(|name| name.contains("/f")).count();
    assert!(read < FILES / 2, "{read} of {FILES} files were read again");
    let Some(second) = calls(&sandbox, &["-q", "save"]) else { return };
    let asks = |calls: &[Call]| count(calls, |call| call.line.contains("restored.cache"));
    assert!(asks(&first) > 0);
    assert_eq!(asks(&second), 0, "it is looked for only where something is not known");
}
