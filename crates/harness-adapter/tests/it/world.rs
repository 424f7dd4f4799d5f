//! Homes made of recorded logs, which no test may change.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use harness_adapter::sessions::dsh::DshLogs;
use sha2::{Digest, Sha256};

/// The project directory of every recorded log.
pub(crate) const PROJECT: &str = "--home-user-shop--";

pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dsh").join(path)
}

/// A home in a temporary directory. Dropping it fails the test when a file that was there at first has changed.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    first: BTreeMap<PathBuf, String>,
}

impl Home {
    /// A home with these cases' `sessions` folders.
    pub(crate) fn of(cases: &[&str]) -> Self {
        let mut home = Self { dir: tempfile::tempdir().unwrap(), first: BTreeMap::new() };
        fs::create_dir_all(home.sessions()).unwrap();
        for case in cases {
            copy_tree(&fixture("cases").join(case).join("sessions"), &home.sessions());
        }
        home.settle();
        home
    }

    /// Adds everything below `folder` to the sessions.
    pub(crate) fn add(&mut self, folder: &Path) {
        copy_tree(folder, &self.sessions());
        self.settle();
    }

    /// Writes a log.
    pub(crate) fn put(&mut self, project: &str, session: &str, name: &str, bytes: &[u8]) -> PathBuf {
        let folder = self.sessions().join(project).join(session);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
        self.settle();
        folder.join(name)
    }

    /// From here on everything that is there must stay as it is.
    fn settle(&mut self) {
        self.first = hashes(&self.sessions());
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.dir.path().join("sessions")
    }

    pub(crate) fn logs(&self) -> DshLogs {
        DshLogs::open(self.path())
    }

    /// Files that were not there at first, below `sessions`.
    pub(crate) fn new_files(&self) -> Vec<PathBuf> {
        hashes(&self.sessions()).into_keys().filter(|path| !self.first.contains_key(path)).collect()
    }

    fn check(&self) {
        let now = hashes(&self.sessions());
        for (path, hash) in &self.first {
            assert_eq!(now.get(path), Some(hash), "{} was changed", path.display());
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn hashes(below: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![below.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(fs::read(&path).unwrap()));
                found.insert(path, hash);
            }
        }
    }
    found
}

/// The decoded text of a log.
pub(crate) fn decoded(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|end| end == "zstd") {
        String::from_utf8(zstd::decode_all(&*bytes).unwrap()).unwrap()
    } else {
        String::from_utf8(bytes).unwrap()
    }
}

/// The frames of a compressed log, cut at their beginnings. Good for logs whose data never holds a frame's first bytes.
pub(crate) fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&magic)).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts.iter().zip(ends).map(|(start, end)| &bytes[*start..end]).collect()
}
