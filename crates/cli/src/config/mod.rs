//! Settings in layers (design § 9): defaults, the machine's file, the user's, the workspace's, `RWD_*`.

mod edit;
mod keys;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use checkpoint_core::{CapturePolicy, FilesWhere, GuardMode, Nested, Quota};

pub(crate) use edit::set;
pub(crate) use keys::{KEYS, Key, Value, key};

use crate::args::IndexChoice;
use crate::error::CliError;
use crate::world::World;

/// The workspace's own file, at its root.
pub(crate) const WORKSPACE_FILE: &str = ".rwd.toml";
/// Larger files are no settings.
const MAX_FILE: u64 = 1 << 20;

/// Where a setting comes from; later ones win.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Default,
    Machine(PathBuf),
    User(PathBuf),
    Workspace(PathBuf),
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.pad("default"),
            Self::Machine(path) | Self::User(path) | Self::Workspace(path) => f.pad(&path.to_string_lossy()),
            Self::Variable(name) => f.pad(name),
        }
    }
}

/// Whether confirmation is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Confirm {
    /// Not at all.
    Never,
    /// Unless `--yes` was given.
    Ask,
    /// `--yes` counts only together with `--plan ID`.
    Plan,
}

/// What an agent's process may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum MayRestore {
    /// The same as a person.
    Allow,
    /// A person must say yes, on a terminal.
    Ask,
    /// Nothing.
    Never,
}

impl MayRestore {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }
}

/// All settings, with their origins.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, (Value, Origin)>,
    /// What could not be read or was not allowed.
    pub(crate) warnings: Vec<String>,
}

impl Settings {
    /// Reads all layers. `root`: of the workspace, where one is known. `lenient`: leave a malformed workspace file out.
    pub(crate) fn load(world: &World, root: Option<&Path>, lenient: bool) -> Result<Self, CliError> {
        let mut settings = Self { values: BTreeMap::new(), warnings: Vec::new() };
        for key in KEYS {
            settings.values.insert(key.name, ((key.default)(), Origin::Default));
        }
        let machine = PathBuf::from("/etc/rwd/config.toml");
        settings.file(&machine, &Origin::Machine(machine.clone()))?;
        if let Some(user) = user_file(world) {
            settings.file(&user, &Origin::User(user.clone()))?;
        }
        if let Some(root) = root {
            let file = root.join(WORKSPACE_FILE);
            match settings.file(&file, &Origin::Workspace(file.clone())) {
                Err(error @ CliError::Config { .. }) if lenient => {
                    settings.warnings.push(format!("{} is left out: {error}", file.display()));
                }
                other => other?,
            }
        }
        settings.variables(world)?;
        Ok(settings)
    }

    fn file(&mut self, path: &Path, origin: &Origin) -> Result<(), CliError> {
        let text = match read(path) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(error) => {
                // Unreadable is the machine's state, not the user's mistake: go on without it, and say so.
                self.warnings.push(format!("{} cannot be read and is left out: {error}", path.display()));
                return Ok(());
            }
        };
        let mut new = Vec::new();
        for (name, value) in flatten(&text, origin)? {
            let known = key(&name).ok_or_else(|| bad(&name, "there is no such setting", origin))?;
            new.push((known, known.read(&value).map_err(|why| bad(&name, &why, origin))?));
        }
        for (key, value) in new {
            self.put(key, value, origin);
        }
        Ok(())
    }

    fn variables(&mut self, world: &World) -> Result<(), CliError> {
        for key in KEYS {
            let name = key.variable();
            let Some(text) = world.var(&name) else { continue };
            let origin = Origin::Variable(name.clone());
            let text = text.to_str().ok_or_else(|| bad(key.name, "it is not UTF-8", &origin))?;
            let value = key.read_text(text).map_err(|why| bad(key.name, &why, &origin))?;
            self.put(key, value, &origin);
        }
        Ok(())
    }

    /// Lays a value over the one so far, where its origin may do that.
    fn put(&mut self, key: &'static Key, value: Value, origin: &Origin) {
        let allowed = match origin {
            Origin::Workspace(_) => key.workspace.admits(key, self.value(key.name), &value),
            // What an agent starts has the environment the agent gave it.
            Origin::Variable(_) if key.name.starts_with("agent.") || key.name == "hook.on_capture_failure" => {
                keys::Trust::Stricter.admits(key, self.value(key.name), &value)
            }
            _ => true,
        };
        if allowed {
            self.values.insert(key.name, (value, origin.clone()));
        } else if self.value(key.name) != Some(&value) {
            self.warnings
                .push(format!("{} = {value} is not taken from {origin}: it may only make things stricter", key.name));
        }
    }

    /// The same, once its warnings were told.
    pub(crate) fn told(mut self) -> Self {
        self.warnings.clear();
        self
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name).map(|(value, _)| value)
    }

    /// Every setting in order of name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &Value, &Origin)> {
        self.values.iter().map(|(name, (value, origin))| (*name, value, origin))
    }

    fn int(&self, name: &str) -> u64 {
        match self.value(name) {
            Some(Value::Int(n)) => *n,
            _ => 0,
        }
    }

    fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        match self.value(name) {
            Some(Value::List(list)) => Some(list.clone()),
            _ => None,
        }
    }

    pub(crate) fn capture(&self) -> CapturePolicy {
        CapturePolicy {
            untracked_max_bytes: self.int("capture.untracked_max_bytes"),
            excludes: self.list("capture.excludes"),
            include: self.list("capture.include").unwrap_or_default(),
            nested: match self.text("capture.nested") {
                "contents" => Some(Nested::Contents),
                "boundary" => Some(Nested::Boundary),
                _ => None,
            },
            verify_by_hash: self.value("capture.verify_by_hash") == Some(&Value::Bool(true)),
            seed_from_git: self.value("capture.seed_from_git") != Some(&Value::Bool(false)),
            watch: self.value("capture.watch") == Some(&Value::Bool(true)),
            store_max_bytes: self.int("capture.store_max_bytes"),
            over_budget: false,
            free_space_floor: self.int("capture.free_space_floor"),
        }
    }

    pub(crate) fn quota(&self) -> Quota {
        let count = |name| u32::try_from(self.int(name)).unwrap_or(u32::MAX);
        Quota {
            max_turns: count("retention.max_turns"),
            max_checkpoints: count("retention.max_checkpoints"),
            max_gaps: count("retention.max_gaps"),
            max_bytes: self.int("retention.max_bytes"),
            on_turn_end: self.value("retention.on_turn_end") != Some(&Value::Bool(false)),
            ..Quota::default()
        }
    }

    pub(crate) fn guard(&self) -> GuardMode {
        match self.text("restore.guard") {
            "warn" => GuardMode::Warn,
            "off" => GuardMode::Off,
            _ => GuardMode::Require,
        }
    }

    pub(crate) fn files(&self) -> FilesWhere {
        match self.text("restore.files") {
            "git-only" => FilesWhere::GitOnly,
            _ => FilesWhere::Everywhere,
        }
    }

    pub(crate) fn confirm(&self) -> Confirm {
        match self.text("restore.confirm") {
            "never" => Confirm::Never,
            "plan" => Confirm::Plan,
            _ => Confirm::Ask,
        }
    }

    pub(crate) fn may_restore(&self) -> MayRestore {
        match self.text("agent.may_restore") {
            "allow" => MayRestore::Allow,
            "never" => MayRestore::Never,
            _ => MayRestore::Ask,
        }
    }

    pub(crate) fn index(&self) -> Option<IndexChoice> {
        match self.text("index.kind") {
            "json" => Some(IndexChoice::Json),
            "sqlite" => Some(IndexChoice::Sqlite),
            _ => None,
        }
    }

    pub(crate) fn run_interval(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.int("run.interval_ms"))
    }

    /// How long an agent waits for a capture inside a turn.
    pub(crate) fn hook_deadline(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.int("hook.deadline_ms"))
    }

    /// True when a tool may not run without its point.
    pub(crate) fn blocks(&self) -> bool {
        self.text("hook.on_capture_failure") == "block"
    }

    /// Waits no longer than this for another process.
    pub(crate) fn hurry(&mut self, wait: std::time::Duration) {
        let wait = wait.min(self.lock_wait());
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.values.insert("lock.wait_ms", (Value::Int(wait), Origin::Default));
    }

    pub(crate) fn lock_wait(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.int("lock.wait_ms"))
    }
}

fn bad(key: &str, why: &str, origin: &Origin) -> CliError {
    CliError::Config { key: key.to_owned(), why: why.to_owned(), origin: origin.to_string() }
}

/// The user's own file.
pub(crate) fn user_file(world: &World) -> Option<PathBuf> {
    let absolute = |name| world.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let dir = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(dir.join("rwd/config.toml"))
}

/// The text of a file; `None` where there is none. Anything but a regular file of a sensible size is an error: the
/// workspace's file is whatever an agent put there.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    use std::io::{Error, ErrorKind, Read};
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error),
    };
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(Error::other("it is no regular file"));
    }
    if facts.len() > MAX_FILE {
        return Err(Error::other("it is too large"));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// All values of a file under their full names.
fn flatten(text: &str, origin: &Origin) -> Result<Vec<(String, toml::Value)>, CliError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map(|span| text.get(..span.start).unwrap_or_default().lines().count().max(1));
        let line = at.map_or_else(|| "the file".to_owned(), |line| format!("line {line}"));
        bad(&line, error.message(), origin)
    })?;
    let mut flat = Vec::new();
    let mut left: Vec<(String, toml::Value)> = table.into_iter().collect();
    while let Some((name, value)) = left.pop() {
        match value {
            toml::Value::Table(inner) => {
                left.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            value => flat.push((name, value)),
        }
    }
    flat.sort_by(|one, two| one.0.cmp(&two.0));
    Ok(flat)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write files")]
mod tests;
