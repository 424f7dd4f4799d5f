//! What every point held, kept where rwd never looks: one small file for each point, one line for each path.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use checkpoint_core::PointId;

use crate::scan::{Entry, Scan};

/// Digests by path.
pub(super) type Truth = BTreeMap<String, String>;

/// The rule of these workspaces ignores it.
pub(super) fn is_ignored(path: &[u8]) -> bool {
    path.ends_with(b".log")
}

/// What a scan says, without what is ignored.
pub(super) fn truth(scan: &Scan) -> Truth {
    let covered = scan.iter().filter(|(path, _)| !is_ignored(path));
    covered.map(|(path, entry)| (String::from_utf8_lossy(path).into_owned(), digest(entry))).collect()
}

fn digest(entry: &Entry) -> String {
    match entry {
        Entry::File { mode, bytes } => format!("file {mode:o} {}", testkit::blob_id(bytes)),
        Entry::Link(to) => format!("link {}", String::from_utf8_lossy(to)),
        // A directory that the restore did not make keeps its mode.
        Entry::Dir(_) => "dir".to_owned(),
        Entry::Fifo(mode) => format!("fifo {mode:o}"),
        Entry::Other => "other".to_owned(),
    }
}

pub(super) struct Oracle(pub(super) PathBuf);

impl Oracle {
    fn file(&self, point: &PointId) -> PathBuf {
        self.0.join(point.to_string())
    }

    /// What the point holds; what was said of it before must be the same.
    pub(super) fn note(&self, point: &PointId, truth: &Truth) {
        if let Some(before) = self.get(point) {
            assert_eq!(&before, truth, "point {point} was made for two states");
            return;
        }
        let mut text = String::new();
        for (path, digest) in truth {
            writeln!(text, "{path}\t{digest}").unwrap();
        }
        fs::write(self.file(point), text).unwrap();
    }

    pub(super) fn get(&self, point: &PointId) -> Option<Truth> {
        let text = fs::read_to_string(self.file(point)).ok()?;
        let pair = |line: &str| line.split_once('\t').map(|(path, digest)| (path.to_owned(), digest.to_owned()));
        Some(text.lines().filter_map(pair).collect())
    }

    /// Forgets points that are no more.
    pub(super) fn keep(&self, points: &BTreeSet<String>) {
        for entry in fs::read_dir(&self.0).unwrap() {
            let entry = entry.unwrap();
            if !points.contains(&*entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}
