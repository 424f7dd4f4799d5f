//! Where the rules come from, and how a snapshot keeps those that lie outside its tree.
//!
//! In the root's meta (`DirMeta::rules`), by name:
//!
//! | name | content |
//! |--|--|
//! | `format` | `1` |
//! | `above` | path of the root from the repository's top, with a slash at the end |
//! | `case` | `fold` where the repository ignores case |
//! | `excludes`, `include` | globs, as a JSON array |
//! | `info-exclude`, `excludes-file` | the files' content |
//! | `untracked-max-bytes`, `nested` | limits, for information |
//! | `file:PATH` | a rule file that the tree does not hold; PATH from the repository's top |

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

use checkpoint_core::{CapturePolicy, Nested, ObjectId, RelPath, Snapshot, SnapshotError};
use gix::{glob::pattern::Case, objs::Kind};

use super::{
    Blobs, Digest, GITIGNORE, Globs, Level, MAX_RULE_FILE, Patterns, RWDIGNORE, RuleFile, Rules, cover, digest,
};
use crate::{
    read::root_meta,
    store::{Store, object_id, to_core, to_gix},
    user_repo::{UserConfig, UserRepo},
};

/// Left out outside git unless the configuration says otherwise (design § 5).
const DEFAULT_EXCLUDES: [&str; 5] = ["node_modules", ".git", ".dsh", "dist", "build"];

/// All rules that do not lie in the tree itself.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) rules: Rules,
    /// The level right above the root's own rule files.
    pub(crate) level: Arc<Level>,
    /// What the root's meta keeps of them.
    pub(crate) stored: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What to do with nested repositories.
    pub(crate) nested: Nested,
}

/// The name under which a rule file outside the tree is kept.
pub(crate) fn file_key(path_from_top: &[u8]) -> Vec<u8> {
    [b"file:", path_from_top].concat()
}

impl Sources {
    /// Reads what lies outside the workspace. What cannot be read counts as absent and is named in `warnings`.
    ///
    /// `extra` goes into the digest: other settings that decide what is left out.
    pub(crate) fn gather(
        policy: &CapturePolicy,
        repo: Option<&UserRepo>,
        config: &UserConfig,
        extra: &[u8],
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut stored = BTreeMap::new();
        let mut put = |key: &[u8], value: Vec<u8>| stored.insert(key.to_vec(), value);
        let defaults = || DEFAULT_EXCLUDES.iter().map(ToString::to_string).collect();
        let excludes: Vec<String> =
            policy.excludes.clone().unwrap_or_else(|| if repo.is_some() { Vec::new() } else { defaults() });
        let nested = policy.nested.unwrap_or(if repo.is_some() { Nested::Boundary } else { Nested::Contents });
        put(b"format", b"1".to_vec());
        put(b"excludes", json(&excludes));
        put(b"include", json(&policy.include));
        put(b"untracked-max-bytes", policy.untracked_max_bytes.to_string().into());
        put(b"nested", if nested == Nested::Boundary { b"boundary".to_vec() } else { b"contents".to_vec() });
        let settings = repo.map(|r| r.settings(config, warnings)).unwrap_or_default();
        if settings.ignore_case {
            put(b"case", b"fold".to_vec());
        }
        let excludes_file = match repo {
            Some(_) => settings.excludes_file,
            None => config.excludes_file(None, warnings),
        };
        if let Some(content) = excludes_file.and_then(|path| read_outside(&path, warnings)) {
            put(b"excludes-file", content);
        }
        if let Some(repo) = repo {
            if let Some(content) = read_outside(&repo.common_dir.join("info/exclude"), warnings) {
                put(b"info-exclude", content);
            }
            if !repo.above.is_empty() {
                put(b"above", repo.above.clone());
            }
            for (dir, prefix) in repo.directories_above() {
                for name in [GITIGNORE, RWDIGNORE] {
                    // A rule file that is a link does not count, as in git.
                    let path = dir.join(std::str::from_utf8(name).unwrap_or_default());
                    if std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_file())
                        && let Some(content) = read_outside(&path, warnings)
                    {
                        put(&file_key(&[&prefix[..], name].concat()), content);
                    }
                }
            }
        }
        let fixed = stored.iter().flat_map(|(key, value)| [&key[..], &value[..]]);
        let bottom = digest(fixed.chain([extra]));
        let (rules, level) = build(&stored, bottom);
        Self { rules, level, stored, nested }
    }
}

fn json(list: &[String]) -> Vec<u8> {
    serde_json::to_vec(list).unwrap_or_default()
}

/// Reads a file that need not be there.
fn read_outside(path: &Path, warnings: &mut Vec<String>) -> Option<Vec<u8>> {
    if path == Path::new("/dev/null") {
        return None;
    }
    match durable_fs::read_regular(path, MAX_RULE_FILE) {
        Ok(content) => Some(content),
        Err(error) => {
            let absent = matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory);
            if !absent {
                warnings.push(format!("cannot read {}: {error}; its ignore rules do not count", path.display()));
            }
            None
        }
    }
}

/// Makes rules of what a snapshot keeps, and the level above the root.
fn build(stored: &BTreeMap<Vec<u8>, Vec<u8>>, bottom: Digest) -> (Rules, Arc<Level>) {
    let get = |key: &[u8]| stored.get(key).cloned().unwrap_or_default();
    let globs = |key: &[u8]| Globs::new(&serde_json::from_slice::<Vec<String>>(&get(key)).unwrap_or_default());
    let above = get(b"above");
    let rules = Rules {
        case: if get(b"case") == b"fold" { Case::Fold } else { Case::Sensitive },
        excludes: globs(b"excludes"),
        include: globs(b"include"),
        globals: [&b"info-exclude"[..], b"excludes-file"]
            .iter()
            .filter_map(|key| stored.get(*key))
            .map(|content| Patterns::parse(content))
            .collect(),
        above: above.clone(),
    };
    let mut level = Level::bottom(bottom);
    let mut base = 0;
    for part in above.split_inclusive(|&b| b == b'/') {
        let file = |name: &[u8]| kept_file(stored, &above[..base], name);
        level = level.enter(base, file(GITIGNORE), file(RWDIGNORE));
        base += part.len();
    }
    (rules, level)
}

fn kept_file(stored: &BTreeMap<Vec<u8>, Vec<u8>>, dir: &[u8], name: &[u8]) -> Option<Arc<RuleFile>> {
    let content = stored.get(&file_key(&[dir, name].concat()))?;
    Some(RuleFile::read(to_core(&object_id(Kind::Blob, content).ok()?), content))
}

/// Reads from the store alone, and remembers the first failure: rules that cannot be read are no evidence.
struct FromStore<'s> {
    store: &'s Store,
    failure: RefCell<Option<SnapshotError>>,
}

impl Blobs for FromStore<'_> {
    fn rule_file(&self, file: &RuleFile) -> Vec<u8> {
        self.store.read(&to_gix(&file.id), Kind::Blob).unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            Vec::new()
        })
    }
}

/// For each path: would the rules of that snapshot have left it out? Answered from the snapshot alone.
///
/// What a path would be is not known where the snapshot does not hold it: it counts as ignored when it would be as
/// a file or as a directory. Reserved paths count as ignored, because they were never captured.
pub(crate) fn ignored_at(store: &Store, snapshot: &Snapshot, paths: &[RelPath]) -> Result<Vec<bool>, SnapshotError> {
    let root = root_meta(store, snapshot)?;
    let (rules, level) = build(&root.rules, [0; 16]);
    let mut known = Known { store, rules: &rules, stored: &root.rules, dirs: HashMap::new() };
    known.dirs.insert(Vec::new(), Arc::new(known.directory(&level, &[], Some(snapshot.tree), false, false)?));
    paths.iter().map(|path| known.ask(path)).collect()
}

struct Known<'s> {
    store: &'s Store,
    rules: &'s Rules,
    stored: &'s BTreeMap<Vec<u8>, Vec<u8>>,
    dirs: HashMap<Vec<u8>, Arc<KnownDir>>,
}

/// A directory on the way to a path.
struct KnownDir {
    level: Arc<Level>,
    trees: HashMap<Vec<u8>, ObjectId>,
    ignored: bool,
    included: bool,
}

impl Known<'_> {
    fn directory(
        &self,
        above: &Arc<Level>,
        path: &[u8],
        tree: Option<ObjectId>,
        ignored: bool,
        included: bool,
    ) -> Result<KnownDir, SnapshotError> {
        let entries = tree.map(|id| cover::tree_entries(self.store, &id)).transpose()?.unwrap_or_default();
        let mut full = [&self.rules.above[..], path].concat();
        if !path.is_empty() {
            full.push(b'/');
        }
        let file = |name: &[u8]| {
            let held =
                entries.iter().find(|e| e.name == name && e.is_file()).map(|e| RuleFile::stored(e.id, Vec::new()));
            held.or_else(|| kept_file(self.stored, &full, name))
        };
        let level = above.enter(full.len(), file(GITIGNORE), file(RWDIGNORE));
        let trees = entries.into_iter().filter(cover::TreeEntry::is_tree).map(|e| (e.name, e.id)).collect();
        Ok(KnownDir { level, trees, ignored, included })
    }

    fn ask(&mut self, path: &RelPath) -> Result<bool, SnapshotError> {
        let bytes = path.as_bytes();
        if is_reserved_everywhere(bytes) {
            return Ok(true);
        }
        let blobs = FromStore { store: self.store, failure: RefCell::default() };
        let mut dir = self.dirs[&Vec::new()].clone();
        for (at, _) in bytes.iter().enumerate().filter(|(_, b)| **b == b'/') {
            let here = &bytes[..at];
            if !self.dirs.contains_key(here) {
                let included = dir.included || self.rules.included(here);
                let full = [&self.rules.above[..], here].concat();
                let ignored = !included && (dir.ignored || self.rules.ignored(&dir.level, &full, true, &blobs));
                let name = here.rsplit(|&b| b == b'/').next().unwrap_or(here);
                let next = self.directory(&dir.level, here, dir.trees.get(name).copied(), ignored, included)?;
                self.dirs.insert(here.to_vec(), Arc::new(next));
            }
            dir = self.dirs[here].clone();
        }
        let full = [&self.rules.above[..], bytes].concat();
        let by_rule = |is_dir| self.rules.ignored(&dir.level, &full, is_dir, &blobs);
        let ignored = !dir.included && !self.rules.included(bytes) && (dir.ignored || by_rule(false) || by_rule(true));
        blobs.failure.into_inner().map_or(Ok(ignored), Err)
    }
}

/// `.dsh/memory` belongs to the harness and to rwd, which writes through to it (design § 5).
pub(crate) fn is_reserved_everywhere(path: &[u8]) -> bool {
    path.strip_prefix(b".dsh/memory").is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
