//! What is run: the yardstick, rwd and git, each as a process of its own.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use super::{
    Tools,
    agent::{Sidecar, Told, payload},
    discard,
    peer::{self, Act, PEERS},
    save,
    tree::Tree,
};
use crate::{
    Result,
    process::{Running, command},
};

/// The longest that one run may take.
const LIMIT: Duration = Duration::from_mins(10);
/// Rounds in which slow subjects take part.
const SLOW_ROUNDS: u32 = 3;
/// Files from which on the slowest of all take part in one round.
const MANY: u64 = 60_000;

/// Everything a subject needs.
pub(crate) struct Setting<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) tools: &'a Tools,
    pub(crate) rwd: &'a Path,
    /// Emptied after the workload.
    pub(crate) scratch: &'a Path,
}

/// What one run cost.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    pub(crate) peak_kb: u64,
}

/// All that was measured on one tree.
pub(crate) struct Measured<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) costs: BTreeMap<Subject, Vec<Cost>>,
    /// System calls of one run, by group of calls.
    pub(crate) counts: BTreeMap<Subject, BTreeMap<&'static str, u64>>,
    /// Own bytes of the store after a first capture.
    pub(crate) store_bytes: BTreeMap<Subject, u64>,
    /// What could not be measured, and why.
    pub(crate) notes: Vec<String>,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Subject {
    /// List and stat everything.
    Limit,
    /// `rwd save` with nothing changed.
    Nothing,
    /// `rwd save` after one file changed.
    One,
    /// `rwd save` into an empty data directory, with every file read and compressed.
    First,
    /// The same with what the user's index and packs know.
    FirstSeeded,
    /// `rwd to` that restores one file.
    RestoreOne,
    /// `rwd to` that restores up to a thousand files.
    RestoreMany,
    /// `rwd --version`: what starting costs.
    Version,
    /// `rwd hook` before a tool that only reads.
    HookRead,
    /// `rwd hook` before a tool that may change files, nothing changed since the last capture.
    HookNothing,
    /// The same after one file changed.
    HookOne,
    /// A capture by a sidecar that is running, nothing changed.
    SidecarNothing,
    /// The same after one file changed.
    SidecarOne,
    /// `git add -A` and `write-tree` into a private store that borrows the user's objects; nothing changed.
    GitNothing,
    /// The same after one file changed.
    GitOne,
    /// The same with an index made anew, so that everything is hashed again.
    GitRehash,
    /// `git add -A` and `write-tree` into an empty store.
    GitFirst,
    /// `git status -uall` in the user's repository.
    GitStatus,
    /// `git stash create` after one file changed; misses untracked files.
    GitStash,
    /// `gix status`, as a program of its own.
    GixStatus,
    /// What another tool runs.
    Peer(&'static str, Act),
}

impl Subject {
    /// As the table calls it.
    pub(crate) fn label(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Limit => "LIMIT",
            Self::Nothing => "rwd save, nothing changed",
            Self::One => "rwd save, one change",
            Self::First => "rwd save, first capture",
            Self::FirstSeeded => "rwd save, first capture, seeded",
            Self::RestoreOne => "rwd to, one file",
            Self::RestoreMany => "rwd to, 1,000 files",
            Self::Version => "rwd --version",
            Self::HookRead => "rwd hook, a tool that reads",
            Self::HookNothing => "rwd hook, nothing changed",
            Self::HookOne => "rwd hook, one change",
            Self::SidecarNothing => "sidecar capture, nothing changed",
            Self::SidecarOne => "sidecar capture, one change",
            Self::GitNothing => "git add + write-tree, nothing changed",
            Self::GitOne => "git add + write-tree, one change",
            Self::GitRehash => "git add + write-tree, new index",
            Self::GitFirst => "git add + write-tree, empty store",
            Self::GitStatus => "git status -uall",
            Self::GitStash => "git stash create, one change",
            Self::GixStatus => "gix status",
            Self::Peer(name, act) => return Cow::Owned(format!("{name}, {}", act.label())),
        })
    }

    /// In how many of `runs` rounds it takes part.
    fn rounds(self, runs: u32, tree: &Tree) -> u32 {
        match self {
            Self::Peer(_, Act::First | Act::Restore) | Self::GitFirst | Self::GitRehash
                if tree.files >= MANY || tree.huge =>
            {
                runs.min(1)
            }
            Self::First
            | Self::FirstSeeded
            | Self::RestoreOne
            | Self::RestoreMany
            | Self::GitRehash
            | Self::GitFirst
            | Self::Peer(..) => runs.min(SLOW_ROUNDS),
            _ => runs,
        }
    }

    const fn is_rwd(self) -> bool {
        !matches!(
            self,
            Self::Limit
                | Self::GitNothing
                | Self::GitOne
                | Self::GitRehash
                | Self::GitFirst
                | Self::GitStatus
                | Self::GitStash
                | Self::GixStatus
                | Self::Peer(..)
        )
    }
}

/// Runs every subject in its rounds; `with_git`: git and gix as well, `with_peers`: the other tools as well.
pub(crate) fn measure<'a>(setting: &Setting<'a>, runs: u32, with_git: bool, with_peers: bool) -> Result<Measured<'a>> {
    let mut measured = Measured {
        tree: setting.tree,
        costs: BTreeMap::new(),
        counts: BTreeMap::new(),
        store_bytes: BTreeMap::new(),
        notes: Vec::new(),
    };
    let mut subjects = subjects(setting, with_git);
    if let Err(error) = prime(setting, with_git) {
        measured.notes.push(format!("rwd is left out: {error}"));
        subjects.retain(|subject| !subject.is_rwd());
    }
    if with_peers && setting.tree.git {
        subjects.extend(peers(setting, &mut measured.notes)?);
    }
    let mut sidecar = None;
    for round in 0..runs {
        for subject in subjects.clone() {
            if round >= subject.rounds(runs, setting.tree) || !subjects.contains(&subject) {
                continue;
            }
            eprintln!("{} {}/{runs}: {}", setting.tree.name, round + 1, subject.label());
            match (one(setting, subject, &mut sidecar), subject) {
                (Ok(cost), _) => measured.costs.entry(subject).or_default().push(cost),
                // Another tool that fails is news about it, not about us.
                (Err(error), Subject::Peer(name, act)) => {
                    measured.notes.push(format!("{name} is left out from \"{}\" on: {error}", act.label()));
                    subjects.retain(|subject| !matches!(subject, Subject::Peer(other, _) if *other == name));
                }
                (Err(error), _) => return Err(error),
            }
            if let Some(store) = setting.store_of(subject) {
                measured.store_bytes.insert(subject, size(&store)?);
            }
        }
    }
    for subject in [Subject::Nothing, Subject::One, Subject::First, Subject::FirstSeeded] {
        if subjects.contains(&subject)
            && let Some(counts) = count_calls(setting, subject)?
        {
            measured.counts.insert(subject, counts);
        }
    }
    Ok(measured)
}

/// What is measured on this tree, but for other tools.
fn subjects(setting: &Setting<'_>, with_git: bool) -> Vec<Subject> {
    let mut subjects = vec![Subject::Limit, Subject::Nothing, Subject::One];
    if !setting.tree.huge {
        subjects.extend([Subject::Version, Subject::HookRead, Subject::HookNothing, Subject::HookOne]);
        subjects.extend([Subject::SidecarNothing, Subject::SidecarOne]);
    }
    if with_git {
        subjects.extend([Subject::GitNothing, Subject::GitOne]);
        if setting.tree.git {
            subjects.extend([Subject::GitStatus, Subject::GitStash, Subject::GitRehash]);
            subjects.extend(setting.tools.gix_status.as_ref().map(|_| Subject::GixStatus));
        }
    }
    if !setting.tree.huge {
        subjects.extend([Subject::RestoreOne, Subject::RestoreMany]);
    }
    subjects.push(Subject::First);
    if setting.tree.git {
        subjects.push(Subject::FirstSeeded);
    }
    if with_git {
        subjects.push(Subject::GitFirst);
    }
    subjects
}

/// The other tools that take this tree; why one does not goes to the notes.
fn peers(setting: &Setting<'_>, notes: &mut Vec<String>) -> Result<Vec<Subject>> {
    peer::prepare(setting)?;
    let mut subjects = Vec::new();
    for &name in PEERS {
        match peer::begin(setting, name) {
            Ok(()) => {
                subjects.extend([Act::Nothing, Act::One, Act::Restore, Act::First].map(|act| Subject::Peer(name, act)));
            }
            Err(error) => notes.push(format!("{name} is left out: {error}")),
        }
    }
    Ok(subjects)
}

impl Setting<'_> {
    fn data(&self) -> PathBuf {
        self.scratch.join("data")
    }

    /// That of hooks: a restore beside an open turn waits for it.
    pub(crate) fn agent_data(&self) -> PathBuf {
        self.scratch.join("data-agent")
    }

    /// That of the sidecar: a point by anybody else makes it walk.
    pub(crate) fn sidecar_data(&self) -> PathBuf {
        self.scratch.join("data-sidecar")
    }

    /// The settings of whoever runs this are not what is measured.
    pub(crate) fn config(&self) -> PathBuf {
        self.scratch.join("config")
    }

    fn fresh_data(&self) -> PathBuf {
        self.scratch.join("data-first")
    }

    fn private(&self) -> PathBuf {
        self.scratch.join("private.git")
    }

    fn fresh_private(&self) -> PathBuf {
        self.scratch.join("first.git")
    }

    /// The store a first capture has filled.
    fn store_of(&self, subject: Subject) -> Option<PathBuf> {
        match subject {
            Subject::First | Subject::FirstSeeded => Some(self.fresh_data()),
            Subject::GitFirst => Some(self.fresh_private().join("objects")),
            _ => None,
        }
    }

    fn rwd(&self, data: &Path, args: &[&str]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![self.rwd.into(), "-C".into(), (&self.tree.root).into()];
        all.extend(["--data-dir".into(), data.into(), "--json".into(), "--no-input".into()]);
        all.extend(args.iter().map(OsString::from));
        all
    }

    fn hook(&self) -> Vec<OsString> {
        let data = self.agent_data();
        let mut all: Vec<OsString> = vec![self.rwd.into(), "--data-dir".into(), data.into()];
        all.extend(["hook", "claude"].map(OsString::from));
        all
    }

    /// Appends a line that was never there before.
    fn touch(&self, path: &Path) -> Result {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut file = OpenOptions::new().append(true).open(self.tree.root.join(path))?;
        writeln!(file, "// change {number} of {}", std::process::id())?;
        Ok(())
    }
}

/// First captures into the stores that the later runs share.
fn prime(setting: &Setting<'_>, with_git: bool) -> Result {
    if with_git {
        private(&setting.private(), setting)?;
        let index = setting.tree.root.join(".git/index");
        if index.exists() {
            save(&setting.private().join("index"), fs::read(index)?)?;
        }
        run(setting, &git_argv(&setting.private()))?;
    }
    if setting.tree.huge {
        // By default what git does not know is left out from 2 MiB on.
        let rwd = setting.config().join("rwd");
        fs::create_dir_all(&rwd)?;
        let sixteen = 16_u64 << 30;
        let text = format!(
            "[capture]\nuntracked_max_bytes = {sixteen}\nstore_max_bytes = {sixteen}\n[retention]\nmax_bytes = {sixteen}\n"
        );
        save(&rwd.join("config.toml"), text)?;
    }
    // The second capture finds nothing racy any more.
    for _ in 0..2 {
        for data in [setting.data(), setting.agent_data(), setting.sidecar_data()] {
            run(setting, &setting.rwd(&data, &["save"]))?;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    if setting.tree.huge {
        return Ok(());
    }
    // A hook ends well whatever happens: that it captures shows in the log.
    hook(setting, Told::Prompt)?;
    let (program, rest) = (setting.rwd, &setting.rwd(&setting.agent_data(), &["log", "-n", "1"])[1..]);
    let mut log = command(program);
    let told = log.args(rest).current_dir(&setting.tree.root).env("XDG_CONFIG_HOME", setting.config()).output()?;
    let log: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    match log["points"][0]["kind"].as_str() {
        Some("turn-start") => Ok(()),
        other => Err(format!("the hook began no turn: the newest point is {other:?}").into()),
    }
}

/// A private git directory that borrows the user's objects, if there are any.
fn private(dir: &Path, setting: &Setting<'_>) -> Result {
    discard(dir)?;
    let made = command("git").args(["init", "-q", "--bare"]).arg(dir).stdout(Stdio::null()).status()?;
    if !made.success() {
        return Err("git init failed".into());
    }
    let user = setting.tree.root.join(".git/objects");
    if user.is_dir() && dir != setting.fresh_private() {
        let mut line = user.into_os_string();
        line.push("\n");
        save(&dir.join("objects/info/alternates"), line.as_encoded_bytes())?;
    }
    Ok(())
}

fn git_argv(dir: &Path) -> Vec<OsString> {
    let script = "export GIT_DIR=\"$1\" GIT_WORK_TREE=. GIT_INDEX_FILE=\"$1/index\"
        git -c core.bare=false -c gc.auto=0 -c maintenance.auto=false -c core.fsync=none add -A && git -c core.bare=false write-tree";
    ["sh", "-c", script, "sh"].iter().map(OsString::from).chain([dir.into()]).collect()
}

/// Prepares and runs `subject` once. What prepares is not measured.
fn one(setting: &Setting<'_>, subject: Subject, sidecar: &mut Option<Sidecar>) -> Result<Cost> {
    let told = match subject {
        Subject::HookRead => Told::Reads,
        Subject::HookNothing | Subject::HookOne => Told::Changes,
        Subject::SidecarNothing | Subject::SidecarOne => {
            let sidecar = match sidecar {
                Some(sidecar) => sidecar,
                None => sidecar.insert(Sidecar::start(setting)?),
            };
            // What other subjects changed meanwhile is its past.
            sidecar.capture()?;
            if subject == Subject::SidecarOne {
                setting.touch(&setting.tree.some[setting.tree.some.len() / 2])?;
            }
            std::thread::sleep(Duration::from_millis(50));
            return sidecar.capture();
        }
        Subject::Peer(name, act) => return peer::one(setting, name, act),
        _ => return run_with(setting, &argv(setting, subject)?, None, settings(subject)),
    };
    settled(setting, subject == Subject::HookOne)?;
    hook(setting, told)
}

/// Variables that a subject is run with.
const fn settings(subject: Subject) -> &'static [(&'static str, &'static str)] {
    match subject {
        Subject::First => &[("RWD_CAPTURE_SEED_FROM_GIT", "false")],
        _ => &[],
    }
}

/// Everything captured, then perhaps one change, older than what is called racy.
fn settled(setting: &Setting<'_>, change: bool) -> Result {
    run(setting, &setting.rwd(&setting.agent_data(), &["save"]))?;
    if change {
        setting.touch(&setting.tree.some[setting.tree.some.len() / 2])?;
    }
    std::thread::sleep(Duration::from_millis(50));
    Ok(())
}

/// One report to `rwd hook claude`, as a process.
fn hook(setting: &Setting<'_>, told: Told) -> Result<Cost> {
    let argv = setting.hook();
    run_with(setting, &argv, Some(&payload(setting, told)?), &[])
}

fn argv(setting: &Setting<'_>, subject: Subject) -> Result<Vec<OsString>> {
    let first = &setting.tree.some[setting.tree.some.len() / 2];
    let save = |data: &Path| setting.rwd(data, &["save"]);
    Ok(match subject {
        Subject::Limit => vec![(&setting.tools.limit).into(), (&setting.tree.root).into(), "2".into()],
        Subject::Nothing => {
            // Records what other subjects changed, so that nothing is left to find.
            run(setting, &save(&setting.data()))?;
            std::thread::sleep(Duration::from_millis(50));
            save(&setting.data())
        }
        Subject::One => {
            run(setting, &save(&setting.data()))?;
            setting.touch(first)?;
            std::thread::sleep(Duration::from_millis(50));
            save(&setting.data())
        }
        Subject::Version => vec![setting.rwd.into(), "--version".into()],
        Subject::HookRead | Subject::HookNothing | Subject::HookOne => setting.hook(),
        Subject::SidecarNothing | Subject::SidecarOne => return Err("a sidecar is no single run".into()),
        Subject::Peer(..) => return Err("another tool is no single run".into()),
        Subject::GixStatus => vec![setting.tools.gix_status.clone().ok_or("gix status was not built")?.into()],
        Subject::First => {
            discard(&setting.fresh_data())?;
            save(&setting.fresh_data())
        }
        Subject::FirstSeeded => {
            // What other subjects restored is as it was committed, but for its stamps: a user's git knows that soon.
            std::thread::sleep(Duration::from_millis(50));
            let mut refresh = command("git");
            refresh.args(["update-index", "-q", "--refresh"]).current_dir(&setting.tree.root).status()?;
            discard(&setting.fresh_data())?;
            save(&setting.fresh_data())
        }
        Subject::RestoreOne | Subject::RestoreMany => {
            let point = point(setting, &save(&setting.data()))?;
            let count = if subject == Subject::RestoreOne { 1 } else { setting.tree.some.len() };
            for path in setting.tree.some.iter().take(count) {
                setting.touch(path)?;
            }
            // Recorded, so that the changes are not taken for somebody's later edits.
            run(setting, &save(&setting.data()))?;
            setting.rwd(&setting.data(), &["to", &point, "--files", "--yes", "--overwrite-drift"])
        }
        Subject::GitNothing | Subject::GitOne => {
            run(setting, &git_argv(&setting.private()))?;
            if subject == Subject::GitOne {
                setting.touch(first)?;
            }
            git_argv(&setting.private())
        }
        Subject::GitRehash => {
            let dir = setting.scratch.join("rehash.git");
            private(&dir, setting)?;
            git_argv(&dir)
        }
        Subject::GitFirst => {
            private(&setting.fresh_private(), setting)?;
            git_argv(&setting.fresh_private())
        }
        Subject::GitStatus => ["git", "status", "--porcelain", "-uall"].map(OsString::from).to_vec(),
        Subject::GitStash => {
            setting.touch(first)?;
            ["git", "-c", "user.name=u", "-c", "user.email=u@example.invalid", "stash", "create"]
                .map(OsString::from)
                .to_vec()
        }
    })
}

/// The point a `save` made or found.
fn point(setting: &Setting<'_>, argv: &[OsString]) -> Result<String> {
    let (program, rest) = argv.split_first().ok_or("an empty command")?;
    let mut save = command(program);
    let done = save.args(rest).current_dir(&setting.tree.root).env("XDG_CONFIG_HOME", setting.config()).output()?;
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout)?;
    Ok(answer["id"].as_str().ok_or("save names no point")?.to_owned())
}

/// Runs a command in the tree and says what it cost; an error when it fails.
pub(crate) fn run(setting: &Setting<'_>, argv: &[OsString]) -> Result<Cost> {
    run_with(setting, argv, None, &[])
}

/// The same with a file as standard input and more variables.
fn run_with(
    setting: &Setting<'_>,
    argv: &[OsString],
    input: Option<&Path>,
    variables: &[(&str, &str)],
) -> Result<Cost> {
    let out = setting.scratch.join("cost");
    let errors = tempfile::tempfile_in(setting.scratch)?;
    let mut measured = command(&setting.tools.measure);
    measured.arg(&out).args(argv).current_dir(&setting.tree.root).env("GIT_OPTIONAL_LOCKS", "0");
    measured.env("XDG_CONFIG_HOME", setting.config()).envs(variables.iter().copied());
    measured.stdout(Stdio::null()).stderr(errors.try_clone()?);
    if let Some(input) = input {
        measured.stdin(fs::File::open(input)?);
    }
    if let Some(how) = Running::start(&mut measured, LIMIT, None)?.wait()?.failure() {
        return Err(format!("{} cannot be run: {how}", argv[0].to_string_lossy()).into());
    }
    let line = fs::read_to_string(&out)?;
    let figures: Vec<i64> = line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
    let [wall, user, system, peak, code] = figures[..] else { return Err("a cost has five figures".into()) };
    if code != 0 {
        return Err(format!("{} ended with {code}: {}", shown(argv), last_words(errors)).into());
    }
    #[expect(clippy::cast_precision_loss, reason = "figures far below 2^52")]
    Ok(Cost {
        wall_ms: wall as f64 / 1e6,
        cpu_ms: (user + system) as f64 / 1e3,
        peak_kb: u64::try_from(peak).unwrap_or_default(),
    })
}

fn last_words(mut file: fs::File) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut text = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut text));
    match read {
        Ok(_) => String::from_utf8_lossy(&text).trim().lines().last().unwrap_or("no word").to_owned(),
        Err(error) => error.to_string(),
    }
}

fn shown(argv: &[OsString]) -> String {
    argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Groups of system calls that a target speaks of.
const CALLS: &[(&str, &[&str])] = &[
    ("sync", &["fsync", "fdatasync", "syncfs", "sync", "sync_file_range", "msync"]),
    ("stat", &["statx", "newfstatat", "lstat", "stat"]),
    ("open", &["openat", "open", "openat2"]),
    ("write", &["write", "pwrite64", "writev", "pwritev"]),
    ("rename", &["rename", "renameat", "renameat2"]),
];

/// Runs `subject` once more under strace, if there is one, and counts its calls.
fn count_calls(setting: &Setting<'_>, subject: Subject) -> Result<Option<BTreeMap<&'static str, u64>>> {
    if command("strace").arg("-V").output().is_err() {
        return Ok(None);
    }
    let log = setting.scratch.join("calls");
    let names: Vec<_> = CALLS.iter().flat_map(|(_, names)| *names).copied().collect();
    // A question mark: not every call exists on every machine.
    let filter = names.iter().map(|name| format!("?{name}")).collect::<Vec<_>>().join(",");
    let argv = argv(setting, subject)?;
    let mut traced = command("strace");
    traced.args(["-f", "-qq", "-e", &format!("trace={filter}"), "-o"]).arg(&log).args(&argv);
    traced
        .current_dir(&setting.tree.root)
        .env("XDG_CONFIG_HOME", setting.config())
        .envs(settings(subject).iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if Running::start(&mut traced, LIMIT, None)?.wait()?.failure().is_some() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let mut counts: BTreeMap<&'static str, u64> = CALLS.iter().map(|(group, _)| (*group, 0)).collect();
    for line in text.lines().filter(|line| !line.contains("resumed>")) {
        let call = line.split_whitespace().nth(1).and_then(|word| word.split('(').next()).unwrap_or_default();
        if let Some((group, _)) = CALLS.iter().find(|(_, names)| names.contains(&call)) {
            *counts.entry(group).or_default() += 1;
        }
    }
    Ok(Some(counts))
}

/// Bytes that files below `dir` take on disk, hard links to others' files left out.
fn size(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let (mut bytes, mut left) = (0, vec![dir.to_owned()]);
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let facts = entry.metadata()?;
            if facts.is_dir() {
                left.push(entry.path());
            } else if facts.nlink() == 1 && entry.file_name() != OsStr::new("lock") {
                bytes += facts.blocks() * 512;
            }
        }
    }
    Ok(bytes)
}
