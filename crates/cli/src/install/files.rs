//! Reads and changes files of other programs: all of them, or none.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use harness_adapter::install::{Agent, Scope};

use super::receipt::{Entry, Receipt, digest};
use crate::error::CliError;
use crate::exit;

/// Settings are small; more is something else.
const MAX_BYTES: u64 = 4 << 20;

/// A file as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// Where it really is: settings that are a link into somebody's collection stay a link.
    pub(crate) real: PathBuf,
    /// `None` when there is nothing.
    pub(crate) text: Option<String>,
}

/// What is done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Create,
    Change,
    Remove,
}

impl Action {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Remove => "remove",
        }
    }
}

/// A change to one file.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) agent: Agent,
    pub(crate) scope: Scope,
    /// As it is named.
    pub(crate) path: PathBuf,
    pub(crate) before: Read,
    /// `None`: the file goes.
    pub(crate) after: Option<String>,
    pub(crate) executable: bool,
    /// What the receipt says of the file afterwards; `None`: it is forgotten.
    pub(crate) keep: bool,
}

impl Change {
    pub(crate) const fn action(&self) -> Action {
        match (&self.before.text, &self.after) {
            (_, None) => Action::Remove,
            (None, _) => Action::Create,
            (Some(_), Some(_)) => Action::Change,
        }
    }

    /// What changes, line by line.
    pub(crate) fn diff(&self) -> String {
        let (before, after) =
            (self.before.text.as_deref().unwrap_or_default(), self.after.as_deref().unwrap_or_default());
        let name = self.path.display().to_string();
        let none = "/dev/null".to_owned();
        let old = if self.before.text.is_some() { name.clone() } else { none.clone() };
        let new = if self.after.is_some() { name } else { none };
        similar::TextDiff::from_lines(before, after).unified_diff().context_radius(2).header(&old, &new).to_string()
    }
}

/// Something stands in the way: nothing is written.
pub(crate) fn in_the_way(path: &Path, why: &str, hint: &str) -> CliError {
    CliError::Coded {
        code: "settings-in-the-way",
        message: format!("{} {why}", path.display()),
        hints: vec![hint.to_owned()],
        exit: exit::DECISION,
    }
}

/// Reads a settings file, and refuses one that could not be replaced afterwards. `fence`: a directory that it may not
/// lead out of.
pub(crate) fn read(path: &Path, fence: Option<&Path>) -> Result<Read, CliError> {
    const OTHER: &str = "put that right, or name the agents to go on with: --agent NAME";
    let refuse = |why: &str| Err(in_the_way(path, why, OTHER));
    let failed = |source: std::io::Error| CliError::failure(format!("cannot read {}", path.display()), source);
    let fenced = |real: &Path| fence.is_none_or(|fence| real.starts_with(fence));
    let facts = match path.symlink_metadata() {
        Ok(facts) => facts,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let Some(real) = settled(path) else { return refuse("lies below something that is no directory") };
            if !fenced(&real) {
                return refuse("lies behind a link that leads out of the workspace");
            }
            return Ok(Read { real, text: None });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return refuse("lies below something that is no directory");
        }
        Err(error) => return Err(failed(error)),
    };
    let Ok(real) = path.canonicalize() else {
        return refuse(if facts.is_symlink() { "is a link that leads nowhere" } else { "cannot be reached" });
    };
    if !fenced(&real) {
        return refuse("is a link that leads out of the workspace");
    }
    let facts = real.metadata().map_err(failed)?;
    if !facts.is_file() {
        return refuse("is no regular file");
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return refuse("belongs to another user");
    }
    if facts.permissions().mode() & 0o200 == 0 {
        return refuse("is read-only");
    }
    if facts.len() > MAX_BYTES {
        return refuse("is too large for settings");
    }
    let bytes = fs::read(&real).map_err(failed)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Read { real, text: Some(text) }),
        Err(_) => refuse("is no text in UTF-8"),
    }
}

/// The path that a file which is not there would have, with what is there of it resolved.
fn settled(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    for above in parent.ancestors() {
        match above.symlink_metadata() {
            Ok(_) => {
                let real = above.canonicalize().ok().filter(|real| real.is_dir())?;
                return Some(real.join(path.strip_prefix(above).ok()?));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}

/// Makes all changes, or takes back those that were made. Each file's earlier content is kept first, and the receipt
/// says what is about to be done, so that it is known after a crash as well; gives where the contents are kept.
pub(crate) fn apply(changes: &[Change], receipt: &mut Receipt) -> Result<Vec<Option<PathBuf>>, CliError> {
    let mut backups = Vec::new();
    for change in changes {
        let text = change.before.text.as_ref();
        backups.push(text.map(|text| receipt.back_up(&change.before.real, text)).transpose()?);
    }
    let earlier = receipt.clone_content();
    for (change, backup) in changes.iter().zip(&backups) {
        if let (true, Some(after)) = (change.keep, &change.after) {
            let name = backup.as_ref().and_then(|path| path.file_name());
            let parents = change.before.real.ancestors().skip(1).take_while(|dir| !dir.exists()).count();
            receipt.put(
                &change.before.real,
                Entry {
                    agent: change.agent.name().to_owned(),
                    scope: change.scope.name().to_owned(),
                    before: change.before.text.as_deref().map(digest),
                    after: digest(after),
                    backup: name.map(|name| name.to_string_lossy().into_owned()),
                    dirs: u32::try_from(parents).unwrap_or(u32::MAX),
                    created: change.before.text.is_none(),
                },
            );
        }
    }
    receipt.save()?;
    let mut done: Vec<(&Change, Traces)> = Vec::new();
    for change in changes {
        let mut traces = Traces::default();
        let result = one(change, &mut traces);
        done.push((change, traces));
        if let Err(error) = result {
            let error = taken_back(error, &done);
            receipt.set_content(earlier);
            // A receipt of what did not happen does no harm: the files are as they were.
            drop(receipt.save());
            return Err(error);
        }
    }
    // Before they are forgotten: the next call finds what a crash leaves of this. Where nothing is known of a file that was
    // wholly ours, so was the directory it was alone in.
    for change in changes.iter().filter(|change| change.after.is_none()) {
        let real = &change.before.real;
        remove_dirs(real, receipt.get(real).map_or(1, |entry| entry.dirs));
    }
    for change in changes.iter().filter(|change| !change.keep || change.after.is_none()) {
        receipt.forget(&change.before.real);
    }
    // What is gone may be remembered: nothing of ours is found there any more.
    drop(receipt.save());
    Ok(backups)
}

/// Removes the `made` directories around a file that is gone, while nothing is in them.
pub(crate) fn remove_dirs(file: &Path, made: u32) {
    for dir in file.ancestors().skip(1).take(made as usize) {
        if fs::remove_dir(dir).is_err() {
            return;
        }
    }
}

/// What a change has left so far.
#[derive(Default)]
struct Traces {
    /// Directories that had to be made.
    dirs: Vec<PathBuf>,
    /// The file is written or gone.
    written: bool,
}

/// Undoes changes, the newest first. What cannot be undone is named in the error.
fn taken_back(error: CliError, done: &[(&Change, Traces)]) -> CliError {
    let mut left = Vec::new();
    for (change, traces) in done.iter().rev() {
        // What stands there and is not from us stays: somebody else wrote since.
        let undone = if traces.written {
            put(&change.before.real, change.after.as_ref(), change.before.text.as_ref()).map(drop)
        } else {
            Ok(())
        };
        if undone.is_err() {
            left.push(change.path.display().to_string());
        }
        for dir in traces.dirs.iter().rev() {
            // One that somebody else uses by now stays.
            drop(fs::remove_dir(dir));
        }
    }
    if left.is_empty() {
        return error;
    }
    CliError::failure(format!("{} could not be put back as before", left.join(", ")), Box::new(error))
}

/// Writes or removes the file, unless somebody else changed it since it was read, until the very last moment.
fn swapped(change: &Change, traces: &mut Traces) -> Result<(), CliError> {
    // A failure can come after the change.
    traces.written = true;
    traces.written = put(&change.before.real, change.before.text.as_ref(), change.after.as_ref())?;
    if traces.written { Ok(()) } else { Err(meanwhile(change)) }
}

fn put(real: &Path, from: Option<&String>, to: Option<&String>) -> Result<bool, CliError> {
    durable_fs::replace_if(real, from.map(String::as_bytes), to.map(String::as_bytes))
        .map_err(|source| CliError::failure(format!("cannot change {}", real.display()), source))
}

fn meanwhile(change: &Change) -> CliError {
    CliError::Coded {
        code: "changed-meanwhile",
        message: format!("{} was changed meanwhile: nothing was written", change.path.display()),
        hints: vec!["look again, with the same command".to_owned()],
        exit: exit::DECISION,
    }
}

/// Makes one change.
fn one(change: &Change, traces: &mut Traces) -> Result<(), CliError> {
    let real = &change.before.real;
    let failed = |source: std::io::Error| CliError::failure(format!("cannot change {}", change.path.display()), source);
    let now = match fs::read(real) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if now.as_deref() != change.before.text.as_deref().map(str::as_bytes) {
        return Err(meanwhile(change));
    }
    if change.after.is_none() {
        return swapped(change, traces);
    }
    let parent = real.parent().unwrap_or_else(|| Path::new("/"));
    let missing: Vec<&Path> = parent.ancestors().take_while(|dir| !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match fs::create_dir(dir) {
            // Somebody else was faster: it is theirs.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            made => made.map_err(failed)?,
        }
        traces.dirs.push(dir.to_owned());
    }
    swapped(change, traces)?;
    if change.executable {
        // As for a new program: whoever may read it may run it.
        let bits = real.metadata().map_err(failed)?.permissions().mode();
        fs::set_permissions(real, fs::Permissions::from_mode(bits | (bits & 0o444) >> 2)).map_err(failed)?;
    }
    Ok(())
}
