//! The folder of logs: `<home>/sessions/<project>/<session>/session.jsonl[.zstd]`, and what the host refuses about it.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use checkpoint_core::JsonText;

use super::{
    container::Encoding,
    error::LogError,
    header::LogHeader,
    paths::{NO_CWD, encode_segment, project_key},
    read::{self, Log},
};

/// A log in its folder.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) encoding: Encoding,
    /// The version in its name.
    pub(super) version: Option<u64>,
}

impl Found {
    pub(super) fn open(&self) -> Result<Log, LogError> {
        read::open(&self.path, self.encoding, self.version)
    }

    /// Makes the log and its names durable: whoever made it may have crashed before that.
    pub(super) fn sync(&self) -> Result<(), LogError> {
        let file = fs::File::open(&self.path).and_then(|file| file.sync_all());
        file.map_err(LogError::io("sync", &self.path))?;
        for dir in self.path.ancestors().skip(1).take(2) {
            durable_fs::sync_dir(dir).map_err(|error| LogError::io("sync", dir)(error.source))?;
        }
        Ok(())
    }

    /// The session's folder.
    pub(super) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// The logs of a folder, in the order of their paths.
#[derive(Debug, Default)]
pub(super) struct Root {
    pub(super) found: Vec<Found>,
    /// Why the host refuses every session.
    pub(super) fault: Option<LogError>,
}

/// The entries of a directory by name; none when it is not there, or is a link that leads nowhere.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let listing = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        // Links in a circle: one of them would hide every session.
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied && leads_nowhere(dir) => return Ok(Vec::new()),
        listing => listing.map_err(LogError::io("list", dir))?,
    };
    let mut paths = Vec::new();
    for entry in listing {
        paths.push(entry.map_err(LogError::io("list", dir))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn leads_nowhere(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink()) && path.canonicalize().is_err()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// The logs in a session's folder.
fn logs(dir: &Path) -> Result<Vec<Found>, LogError> {
    let mut logs = Vec::new();
    for path in entries(dir)? {
        if let Some((version, encoding)) = read::named(name(&path)) {
            logs.push(Found { path, encoding, version });
        }
    }
    Ok(logs)
}

/// Of several generations of a log the newest counts.
fn newest(logs: Vec<Found>) -> Option<Found> {
    logs.into_iter().max_by_key(|found| found.version)
}

/// Reads the whole folder.
pub(super) fn scan(sessions: &Path) -> Result<Root, LogError> {
    let mut root = Root::default();
    let (mut zstd, mut plain, mut flat) = (None, None, None);
    for project in entries(sessions)? {
        for session in entries(&project)? {
            let text = name(&session);
            let suffixed = [Encoding::Zstd, Encoding::Plain].iter().any(|encoding| text.ends_with(encoding.suffix()));
            if suffixed && session.is_file() {
                flat.get_or_insert(session);
                continue;
            }
            let logs = logs(&session)?;
            for log in &logs {
                let seen = if log.encoding == Encoding::Zstd { &mut zstd } else { &mut plain };
                seen.get_or_insert_with(|| log.path.clone());
            }
            root.found.extend(newest(logs));
        }
    }
    root.fault = match (flat, zstd, plain) {
        (Some(path), ..) => Some(LogError::FlatLayout { path }),
        (None, Some(first), Some(second)) => Some(LogError::MixedEncodings { first, second }),
        _ => None,
    };
    Ok(root)
}

/// Every folder that the session `id` has or would have, one per project, if it is there.
pub(super) fn folders(sessions: &Path, id: &JsonText) -> Result<Vec<PathBuf>, LogError> {
    let bad = || LogError::BadId { id: id.to_string() };
    let segment = encode_segment(id).ok_or_else(bad)?;
    let mut folders = Vec::new();
    for project in entries(sessions)? {
        let folder = project.join(&segment);
        if fs::symlink_metadata(&folder).is_ok() {
            folders.push(folder);
        }
    }
    Ok(folders)
}

/// The one log of the session `id`.
pub(super) fn find(sessions: &Path, id: &JsonText) -> Result<Found, LogError> {
    let mut found = Vec::new();
    for folder in folders(sessions, id)? {
        found.extend(newest(logs(&folder)?));
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (None, _) => Err(LogError::NotFound { id: id.to_string(), sessions: sessions.to_owned() }),
        (Some(found), None) => Ok(found),
        (Some(first), Some(second)) => {
            Err(LogError::Duplicate { id: id.to_string(), first: first.path, second: second.path })
        }
    }
}

/// Any log in this folder.
pub(super) fn any_log(folder: &Path) -> Result<Option<PathBuf>, LogError> {
    Ok(logs(folder)?.into_iter().next().map(|found| found.path))
}

/// The folder that a header belongs to.
pub(super) fn place(sessions: &Path, header: &LogHeader) -> Option<PathBuf> {
    let project = match &header.cwd {
        Some(cwd) => project_key(cwd)?,
        None => NO_CWD.to_owned(),
    };
    Some(sessions.join(project).join(encode_segment(&header.id)?))
}

/// Fails when the log's folder is not the one its header belongs to. Different names of one folder are one.
pub(super) fn check_place(sessions: &Path, found: &Found, header: &LogHeader) -> Result<(), LogError> {
    let expected = place(sessions, header).unwrap_or_default();
    let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if found.dir() == expected || same(found.dir(), &expected) {
        return Ok(());
    }
    Err(LogError::Misplaced { path: found.path.clone(), expected })
}
