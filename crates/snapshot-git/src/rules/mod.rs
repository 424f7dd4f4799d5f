//! Which paths the ignore rules leave out.
//!
//! From strongest to weakest: include globs, `.rwdignore` files (the deepest first), the configuration's globs,
//! `.gitignore` files (the deepest first), the repository's `info/exclude`, the user's excludes file. Within a file the
//! last matching line decides. The rules see paths relative to the top of the user's repository, since a subfolder
//! may be captured and the files above it count.

mod cover;
mod glob;
mod sources;
mod tracked;

use std::sync::{Arc, OnceLock};

use checkpoint_core::ObjectId;
use gix::{
    bstr::{BStr, ByteSlice},
    glob::{Pattern, pattern::Case, wildmatch},
};

pub(crate) use cover::{BaseNames, Cover};
pub use glob::Globs;
pub(crate) use sources::{Sources, file_key, ignored_at};
pub(crate) use tracked::Tracked;

/// Identifies a set of rules.
pub(crate) type Digest = [u8; 16];

/// Names of the rule files, weaker first.
pub(crate) const GITIGNORE: &[u8] = b".gitignore";
pub(crate) const RWDIGNORE: &[u8] = b".rwdignore";

/// Larger rule files are not read.
pub(crate) const MAX_RULE_FILE: u64 = 4 << 20;

/// Hashes parts with their lengths, so that no two lists of parts look the same.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut out = [0; 16];
    // A collision attack against a digest of rules: a value that is never equal to a stored one, as zero is not.
    if let Ok(id) = hasher.try_finalize() {
        out.copy_from_slice(&id.as_slice()[..16]);
    }
    out
}

/// The lines of one rule file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns(Vec<Pattern>);

impl Patterns {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self(gix::ignore::parse(bytes, false).map(|(pattern, _, _)| pattern).collect())
    }

    /// What the file says of a path relative to its own directory: ignored, kept, or nothing.
    fn decide(&self, path: &[u8], is_dir: bool, case: Case) -> Option<bool> {
        let name_at = path.rfind_byte(b'/').map(|at| at + 1);
        let hit = self.0.iter().rev().find(|pattern| {
            let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
            pattern.matches_repo_relative_path(BStr::new(path), name_at, Some(is_dir), case, mode)
        })?;
        Some(!hit.is_negative())
    }
}

/// One rule file; its lines are read when somebody first asks.
#[derive(Debug)]
pub(crate) struct RuleFile {
    /// Id of its content as a blob.
    pub(crate) id: ObjectId,
    /// Its path from the root, where it lies below.
    pub(crate) path: Vec<u8>,
    patterns: OnceLock<Patterns>,
}

impl RuleFile {
    /// A file whose content is at hand.
    pub(crate) fn read(id: ObjectId, content: &[u8]) -> Arc<Self> {
        Arc::new(Self { id, path: Vec::new(), patterns: OnceLock::from(Patterns::parse(content)) })
    }

    /// A file whose content is a blob of the store.
    pub(crate) fn stored(id: ObjectId, path: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { id, path, patterns: OnceLock::new() })
    }
}

/// Reads the content of rule files that have not been read yet.
pub(crate) trait Blobs {
    /// The content; an empty one when it cannot be had, after the failure has been noted.
    fn rule_file(&self, file: &RuleFile) -> Vec<u8>;
}

/// The rule files of one directory, on top of those above it.
#[derive(Debug)]
pub(crate) struct Level {
    above: Option<Arc<Level>>,
    /// Length of the directory's path from the repository's top, with the slash after it.
    base: usize,
    git: Option<Arc<RuleFile>>,
    rwd: Option<Arc<RuleFile>>,
    /// Of all rules in force here.
    pub(crate) digest: Digest,
}

impl Level {
    /// The level where only the rules of the whole workspace count.
    pub(crate) fn bottom(digest: Digest) -> Arc<Self> {
        Arc::new(Self { above: None, base: 0, git: None, rwd: None, digest })
    }

    /// The level of a directory below; the same one when the directory has no rule file.
    pub(crate) fn enter(
        self: &Arc<Self>,
        base: usize,
        git: Option<Arc<RuleFile>>,
        rwd: Option<Arc<RuleFile>>,
    ) -> Arc<Self> {
        if git.is_none() && rwd.is_none() {
            return self.clone();
        }
        let id = |file: &Option<Arc<RuleFile>>| file.as_ref().map(|f| *f.id.as_bytes()).unwrap_or_default();
        let digest = digest([&self.digest[..], &base.to_le_bytes(), &id(&git), &id(&rwd)]);
        Arc::new(Self { above: Some(self.clone()), base, git, rwd, digest })
    }

    fn decide(
        &self,
        pick: impl Fn(&Self) -> Option<&Arc<RuleFile>>,
        path: &[u8],
        is_dir: bool,
        case: Case,
        blobs: &dyn Blobs,
    ) -> Option<bool> {
        let mut level = Some(self);
        while let Some(here) = level {
            if let Some(file) = pick(here) {
                let patterns = file.patterns.get_or_init(|| Patterns::parse(&blobs.rule_file(file)));
                let verdict = path.get(here.base..).and_then(|rest| patterns.decide(rest, is_dir, case));
                if verdict.is_some() {
                    return verdict;
                }
            }
            level = here.above.as_deref();
        }
        None
    }
}

/// The rules of a whole workspace.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Path of the root from the repository's top, with a slash at the end; empty at the top and outside git.
    pub(crate) above: Vec<u8>,
    /// How patterns compare letters.
    pub(crate) case: Case,
    /// The configuration's globs.
    pub(crate) excludes: Globs,
    /// Globs that win against every rule.
    pub(crate) include: Globs,
    /// `info/exclude` and the excludes file, stronger first.
    pub(crate) globals: Vec<Patterns>,
}

impl Rules {
    /// Is this path left out by a rule? Directories above it are asked by whoever walks down.
    ///
    /// `full` is the path from the repository's top.
    pub(crate) fn ignored(&self, level: &Level, full: &[u8], is_dir: bool, blobs: &dyn Blobs) -> bool {
        let path = full.get(self.above.len()..).unwrap_or_default();
        if self.included(path) {
            return false;
        }
        if let Some(verdict) = level.decide(|l| l.rwd.as_ref(), full, is_dir, self.case, blobs) {
            return verdict;
        }
        if self.excludes.matches(path) {
            return true;
        }
        let git = level.decide(|l| l.git.as_ref(), full, is_dir, self.case, blobs);
        git.or_else(|| self.globals.iter().find_map(|g| g.decide(full, is_dir, self.case))).unwrap_or(false)
    }

    /// Does an include glob name this path? (Or an ancestor: the walker remembers that.)
    pub(crate) fn included(&self, path: &[u8]) -> bool {
        !self.include.is_empty() && self.include.matches(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoBlobs;
    impl Blobs for NoBlobs {
        fn rule_file(&self, _: &RuleFile) -> Vec<u8> {
            panic!("everything is at hand")
        }
    }

    fn rules(excludes: &[&str], include: &[&str], globals: &str) -> Rules {
        let globs = |list: &[&str]| Globs::new(&list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        Rules {
            above: b"pkg/".to_vec(),
            case: Case::Sensitive,
            excludes: globs(excludes),
            include: globs(include),
            globals: vec![Patterns::parse(globals.as_bytes())],
        }
    }

    fn file(text: &str) -> Arc<RuleFile> {
        RuleFile::read(ObjectId::from_bytes([1; 20]), text.as_bytes())
    }

    #[test]
    fn the_stronger_source_decides() {
        let rules = rules(&["*.tmp"], &["keep.tmp"], "*.glob\n");
        let top = Level::bottom([0; 16]).enter(0, Some(file("*.o\n/pkg/only\nx/\n")), None);
        let sub = top.enter(4, Some(file("!a.o\n!b.glob\n!c.tmp\n*.y\n")), Some(file("!w.tmp\nsecret\n!v.y\n")));
        let ignored = |path: &str, is_dir| rules.ignored(&sub, path.as_bytes(), is_dir, &NoBlobs);
        assert!(ignored("pkg/z.o", false));
        assert!(!ignored("pkg/a.o", false), "a deeper .gitignore re-includes");
        assert!(ignored("pkg/a.glob", false));
        assert!(!ignored("pkg/b.glob", false), "a .gitignore beats the excludes file");
        assert!(ignored("pkg/c.tmp", false), "a glob of the configuration beats a .gitignore");
        assert!(!ignored("pkg/w.tmp", false), "a .rwdignore beats the configuration");
        assert!(!ignored("pkg/keep.tmp", false), "an include glob beats all");
        assert!(ignored("pkg/secret", false));
        assert!(ignored("pkg/only", false), "anchored above the root");
        assert!(ignored("pkg/x", true));
        assert!(!ignored("pkg/x", false), "a pattern for directories leaves files alone");
        assert!(!ignored("pkg/v.y", false));
    }

    #[test]
    fn digests_tell_rules_apart() {
        let bottom = Level::bottom([0; 16]);
        let a = bottom.enter(0, Some(file("a")), None);
        assert_ne!(a.digest, bottom.digest);
        assert_ne!(a.digest, bottom.enter(0, None, Some(file("a"))).digest);
        assert_ne!(a.digest, bottom.enter(1, Some(file("a")), None).digest);
        assert_eq!(a.digest, a.enter(9, None, None).digest);
        assert_ne!(digest([&b"ab"[..], b"c"]), digest([&b"a"[..], b"bc"]));
    }
}
