//! The user's repository, read only: where it is, which paths it tracks, what it has checked out, its ignore rules.
//!
//! Nothing here writes, and nothing runs a program: hooks, filters and monitors of the repository are never looked at.

use std::{
    env,
    hash::{DefaultHasher, Hasher},
    io::{self, Read, Seek, SeekFrom},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use checkpoint_core::{BoxError, Head};
use durable_fs::{open_regular, read_regular};
use gix::config::{
    File as Config, Source,
    file::{Metadata, includes, init},
};

/// Bytes of a configuration file; more are no settings.
const LARGEST_CONFIG: u64 = 16 << 20;
/// Bytes of what names one thing: `HEAD`, a ref, `commondir`, a file called `.git`.
const LARGEST_POINTER: u64 = 64 << 10;
/// Bytes of `packed-refs`: a million of them.
const LARGEST_REFS: u64 = 128 << 20;
/// Bytes of an index: twenty million files.
const LARGEST_INDEX: u64 = 2 << 30;

/// Where the user's own git settings lie. Only `core.excludesFile` is read from them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserConfig {
    /// Configuration files, weaker first.
    pub files: Vec<PathBuf>,
    /// The excludes file where no setting names another.
    pub default_excludes: Option<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

impl UserConfig {
    /// No settings at all: for tests and other closed worlds.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// As git finds them: the system's file, then `$GIT_CONFIG_GLOBAL` or else `$XDG_CONFIG_HOME/git/config` and
    /// `~/.gitconfig`.
    #[must_use]
    pub fn from_env() -> Self {
        let var = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = var("HOME");
        let xdg = var("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|h| h.join(".config")));
        let no_system =
            env::var("GIT_CONFIG_NOSYSTEM").is_ok_and(|v| !matches!(v.as_str(), "" | "0" | "false" | "no" | "off"));
        let mut files = Vec::new();
        if !no_system {
            files.push(var("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into()));
        }
        if let Some(file) = env::var_os("GIT_CONFIG_GLOBAL") {
            files.extend(Some(PathBuf::from(file)).filter(|f| !f.as_os_str().is_empty()));
        } else {
            files.extend(xdg.as_ref().map(|x| x.join("git/config")));
            files.extend(home.as_ref().map(|h| h.join(".gitconfig")));
        }
        Self { files, default_excludes: xdg.map(|x| x.join("git/ignore")), home }
    }

    /// The excludes file that counts for this repository, or outside any.
    pub(crate) fn excludes_file(&self, repo: Option<&UserRepo>, warnings: &mut Vec<String>) -> Option<PathBuf> {
        let local = repo.map(UserRepo::config_files).unwrap_or_default();
        for file in local.iter().rev().chain(self.files.iter().rev()) {
            let Some(config) = self.read(file, repo, warnings) else { continue };
            let Some(value) = config.path("core.excludesFile") else { continue };
            if value.is_empty() {
                return None;
            }
            let context = gix::config::path::interpolate::Context {
                home_dir: self.home.as_deref(),
                home_for_user: Some(gix::config::path::interpolate::home_for_user),
                ..Default::default()
            };
            match value.interpolate(context) {
                Ok(path) => return Some(repo.map_or_else(|| path.clone(), |r| r.top.join(&path))),
                Err(error) => {
                    warnings.push(format!("core.excludesFile in {} does not count: {error:#}", file.display()));
                }
            }
        }
        self.default_excludes.clone()
    }

    /// Every file that may give attributes to all paths of the repository, whether it exists or not. `None` when a
    /// setting cannot be read, so that there may be one more.
    pub(crate) fn attributes_files(&self, repo: &UserRepo) -> Option<Vec<PathBuf>> {
        let mut warnings = Vec::new();
        let mut found = vec![repo.common_dir.join("info/attributes"), repo.git_dir.join("info/attributes")];
        // The system's own, and the user's where no setting names another.
        let beside = |path: &PathBuf, name| path.parent().map(|dir| dir.join(name));
        found.extend(self.files.iter().filter_map(|file| beside(file, "gitattributes")));
        found.extend(self.default_excludes.iter().filter_map(|file| beside(file, "attributes")));
        for file in repo.config_files().iter().chain(&self.files) {
            let Some(config) = self.read(file, Some(repo), &mut warnings) else { continue };
            for value in config.strings("core.attributesFile").unwrap_or_default() {
                let context = gix::config::path::interpolate::Context {
                    home_dir: self.home.as_deref(),
                    home_for_user: Some(gix::config::path::interpolate::home_for_user),
                    ..Default::default()
                };
                let path = gix::config::Path::from(value).interpolate(context).ok()?;
                found.push(repo.top.join(path));
            }
        }
        warnings.is_empty().then_some(found)
    }

    /// Reads one configuration file with what it includes. Absent is silent; unreadable or malformed is a warning.
    fn read(&self, file: &Path, repo: Option<&UserRepo>, warnings: &mut Vec<String>) -> Option<Config> {
        // `GIT_CONFIG_GLOBAL=/dev/null` is how settings are switched off.
        if file == Path::new("/dev/null") {
            return None;
        }
        let mut bytes = match read_regular(file, LARGEST_CONFIG) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return None;
            }
            Err(error) => {
                warnings.push(format!("cannot read {}: {error}; its settings do not count", file.display()));
                return None;
            }
        };
        let branch = repo.and_then(|r| r.head_text().ok()).and_then(|head| {
            let name = head.strip_prefix("ref: ")?.trim_end();
            gix::refs::FullName::try_from(name).ok()
        });
        let includes = includes::Options {
            max_depth: 10,
            err_on_max_depth_exceeded: false,
            err_on_missing_config_path: false,
            interpolate: gix::config::path::interpolate::Context {
                home_dir: self.home.as_deref(),
                home_for_user: Some(gix::config::path::interpolate::home_for_user),
                ..Default::default()
            },
            conditional: includes::conditional::Context {
                git_dir: repo.map(|r| r.git_dir.as_path()),
                branch_name: branch.as_ref().map(AsRef::as_ref),
            },
            ..includes::Options::no_follow()
        };
        let meta = Metadata { path: Some(file.to_owned()), ..Metadata::from(Source::User) };
        let plain = bytes.clone();
        let options = init::Options { includes, lossy: true, ignore_io_errors: true };
        let alone =
            |meta| Config::from_bytes_no_includes(&plain, meta, init::Options { lossy: true, ..Default::default() });
        let followed = match self.strange_include(&plain, file, 10) {
            None => Config::from_bytes_owned(&mut bytes, meta.clone(), options).or_else(|_| alone(meta)),
            Some(strange) => {
                let strange = strange.display();
                warnings.push(format!("{} includes {strange}, which is no file: no include counts", file.display()));
                alone(meta)
            }
        };
        // What a condition or an include makes unreadable must not hide the file's own settings.
        followed
            .inspect_err(|error| {
                warnings.push(format!("cannot read {}: {error:#}; its settings do not count", file.display()));
            })
            .ok()
    }

    /// Something that a configuration includes, whatever its conditions say, and that may not be opened in the plain way:
    /// a FIFO would wait for ever, a device may have no end.
    fn strange_include(&self, text: &[u8], file: &Path, depth: u8) -> Option<PathBuf> {
        let meta = Metadata::from(Source::User);
        let options = init::Options { lossy: true, ..Default::default() };
        let config = Config::from_bytes_no_includes(text, meta, options).ok().filter(|_| depth > 0)?;
        let context = gix::config::path::interpolate::Context {
            home_dir: self.home.as_deref(),
            home_for_user: Some(gix::config::path::interpolate::home_for_user),
            ..Default::default()
        };
        let sections = config.sections().filter(|section| {
            let name = section.header().name();
            name.eq_ignore_ascii_case(b"include") || name.eq_ignore_ascii_case(b"includeIf")
        });
        let paths = sections.flat_map(|section| section.body().values("path"));
        let mut paths = paths.filter_map(|path| gix::config::Path::from(path).interpolate(context).ok());
        paths.find_map(|path| {
            let path = file.parent()?.join(path);
            match read_regular(&path, LARGEST_CONFIG) {
                Ok(text) => self.strange_include(&text, &path, depth - 1),
                Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge) => {
                    Some(path)
                }
                Err(_) => None,
            }
        })
    }
}

/// What the repository's configuration decides for a capture.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) excludes_file: Option<PathBuf>,
    pub(crate) ignore_case: bool,
}

/// The repository that the root lies in.
#[derive(Clone, Debug)]
pub(crate) struct UserRepo {
    /// Top of the worktree.
    pub(crate) top: PathBuf,
    /// `.git`, or a linked worktree's own part of it.
    pub(crate) git_dir: PathBuf,
    /// The part that all worktrees share.
    pub(crate) common_dir: PathBuf,
    /// Path of the root from `top`, with a slash at the end; empty when they are the same.
    pub(crate) above: Vec<u8>,
}

impl UserRepo {
    /// Looks for a repository at `root`, which is canonical, and above.
    pub(crate) fn discover(root: &Path) -> Option<Self> {
        root.ancestors().find_map(|top| {
            let git_dir = git_dir(&top.join(".git"))?;
            let common_dir = match read_regular(&git_dir.join("commondir"), LARGEST_POINTER) {
                Ok(text) => git_dir.join(path_of(text.trim_ascii_end())),
                Err(_) => git_dir.clone(),
            };
            let mut above = root.strip_prefix(top).ok()?.as_os_str().as_bytes().to_vec();
            if !above.is_empty() {
                above.push(b'/');
            }
            Some(Self { top: top.to_owned(), git_dir, common_dir, above })
        })
    }

    /// The directories from the worktree's top down to the one above the root, each with its path from the top.
    pub(crate) fn directories_above(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut out = Vec::new();
        let mut len = 0;
        for part in self.above.split_inclusive(|&b| b == b'/') {
            out.push((self.top.join(path_of(&self.above[..len])), self.above[..len].to_vec()));
            len += part.len();
        }
        out
    }

    fn config_files(&self) -> Vec<PathBuf> {
        vec![self.common_dir.join("config"), self.git_dir.join("config.worktree")]
    }

    /// Reads the settings that count; what cannot be read is named in `warnings`.
    pub(crate) fn settings(&self, user: &UserConfig, warnings: &mut Vec<String>) -> Settings {
        let mut quiet = Vec::new();
        let file = self.common_dir.join("config");
        // Rules that match less leave out less: nothing is lost by a setting that makes no sense, but it is said.
        let ignore_case = match user.read(&file, Some(self), &mut quiet).map(|own| own.boolean("core.ignoreCase")) {
            Some(Ok(value)) => value.unwrap_or(false),
            Some(Err(error)) => {
                warnings.push(format!("core.ignoreCase in {} does not count: {error:#}", file.display()));
                false
            }
            None => false,
        };
        Settings { excludes_file: user.excludes_file(Some(self), warnings), ignore_case }
    }

    fn object_hash(&self) -> gix::hash::Kind {
        let own = UserConfig::none().read(&self.common_dir.join("config"), Some(self), &mut Vec::new());
        match own.and_then(|c| c.string("extensions.objectFormat")) {
            Some(name) if name.eq_ignore_ascii_case(b"sha256") => gix::hash::Kind::Sha256,
            _ => gix::hash::Kind::Sha1,
        }
    }

    /// True when the configuration says nothing that could change what index and objects mean: known extensions only.
    pub(crate) fn is_plain(&self) -> bool {
        const KNOWN: [&str; 8] = [
            "objectformat",
            "worktreeconfig",
            "noop",
            "noop-v1",
            "preciousobjects",
            "partialclone",
            "refstorage",
            "relativeworktrees",
        ];
        let mut warnings = Vec::new();
        let Some(config) = UserConfig::none().read(&self.common_dir.join("config"), Some(self), &mut warnings) else {
            return false;
        };
        let version = config.integer("core.repositoryformatversion");
        let mut names = config
            .sections_by_name("extensions")
            .into_iter()
            .flatten()
            .flat_map(|section| section.body().value_names().collect::<Vec<_>>());
        warnings.is_empty()
            && matches!(version, Ok(None | Some(0 | 1)))
            && names.all(|name| KNOWN.contains(&&*name.to_ascii_lowercase()))
            && self.object_hash() == gix::hash::Kind::Sha1
    }

    /// True when a part of the index may lie in another file.
    pub(crate) fn has_shared_index(&self) -> bool {
        let is_shared = |entry: io::Result<std::fs::DirEntry>| {
            entry.map_or(true, |entry| entry.file_name().as_bytes().starts_with(b"sharedindex."))
        };
        std::fs::read_dir(&self.git_dir).map_or(true, |mut names| names.any(is_shared))
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// Reads the index as it is; a lock that is held does not matter. `None` when there is none yet.
    pub(crate) fn read_index(&self) -> Result<Option<gix::index::File>, BoxError> {
        let path = self.index_path();
        // A truncated index is refused by length before anything interprets it.
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        if open_regular(&path)?.metadata()?.len() > LARGEST_INDEX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
        }
        let index = gix::index::File::at(path, self.object_hash(), false, gix::index::decode::Options::default());
        Ok(Some(index.map_err(|error| format!("{error:#}"))?))
    }

    /// Identifies the index file by stamps and trailing checksum; 0 when it changed after `young`.
    pub(crate) fn index_digest(&self, young: i64) -> u64 {
        let read = || -> io::Result<u64> {
            let mut file = open_regular(&self.index_path())?;
            let meta = file.metadata()?;
            let nanos = |secs: i64, nanos: i64| secs.saturating_mul(1_000_000_000).saturating_add(nanos);
            let mtime = nanos(meta.mtime(), meta.mtime_nsec());
            let ctime = nanos(meta.ctime(), meta.ctime_nsec());
            let mut trailer = Vec::new();
            file.seek(SeekFrom::Start(meta.len().saturating_sub(20)))?;
            file.take(20).read_to_end(&mut trailer)?;
            if mtime.max(ctime) >= young {
                return Ok(0);
            }
            let mut hasher = DefaultHasher::new();
            for number in [mtime.cast_unsigned(), ctime.cast_unsigned(), meta.len(), meta.ino(), meta.dev()] {
                hasher.write_u64(number);
            }
            hasher.write(&trailer);
            Ok(hasher.finish().max(2))
        };
        // No index: nothing is tracked, and that is as good an answer as any.
        read().unwrap_or(1)
    }

    fn head_text(&self) -> io::Result<String> {
        let path = self.git_dir.join("HEAD");
        // HEAD may be a symbolic link to the branch, as very old versions made it.
        if let Ok(target) = std::fs::read_link(&path) {
            return Ok(format!("ref: {}", target.display()));
        }
        Ok(String::from_utf8_lossy(&read_regular(&path, LARGEST_POINTER)?).into_owned())
    }

    /// What is checked out, as far as it can be read.
    pub(crate) fn head(&self) -> Head {
        let text = self.head_text().unwrap_or_default();
        let mut head = Head { in_progress: self.in_progress().map(str::to_owned), ..Head::default() };
        match text.strip_prefix("ref: ") {
            Some(name) => {
                let name = name.trim_end();
                // With reftable, HEAD is a stub that names no branch.
                if name != "refs/heads/.invalid" {
                    head.branch = Some(name.to_owned());
                    head.commit = self.resolve(name, 5);
                }
            }
            None => head.commit = is_hex(text.trim_end()).then(|| text.trim_end().to_owned()),
        }
        head
    }

    fn resolve(&self, name: &str, depth: u8) -> Option<String> {
        // The name comes from a file: it may not lead out of the directory of refs.
        if depth == 0 || !name.starts_with("refs/") || name.split('/').any(|part| part.is_empty() || part == "..") {
            return None;
        }
        for dir in [&self.git_dir, &self.common_dir] {
            if let Some(text) = text_of(&dir.join(name), LARGEST_POINTER) {
                let text = text.trim_end();
                return match text.strip_prefix("ref: ") {
                    Some(next) => self.resolve(next, depth - 1),
                    None => is_hex(text).then(|| text.to_owned()),
                };
            }
        }
        let packed = text_of(&self.common_dir.join("packed-refs"), LARGEST_REFS)?;
        let (id, _) = packed.lines().filter_map(|line| line.split_once(' ')).find(|(_, given)| *given == name)?;
        is_hex(id).then(|| id.to_owned())
    }

    fn in_progress(&self) -> Option<&'static str> {
        [
            ("rebase-merge", "rebase"),
            ("rebase-apply/applying", "am"),
            ("rebase-apply", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("BISECT_LOG", "bisect"),
        ]
        .iter()
        .find(|(file, _)| self.git_dir.join(file).exists())
        .map(|(_, what)| *what)
    }
}

/// The text of a file; `None` where there is none that could be what git means.
fn text_of(path: &Path, most: u64) -> Option<String> {
    String::from_utf8(read_regular(path, most).ok()?).ok()
}

fn is_hex(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The git common directory of a canonical root, canonical, where it lies in a worktree.
#[must_use]
pub fn git_common_dir(root: &Path) -> Option<PathBuf> {
    UserRepo::discover(root)?.common_dir.canonicalize().ok()
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// The directory that a `.git` means: itself, or the one that a file names.
fn git_dir(dot_git: &Path) -> Option<PathBuf> {
    let meta = std::fs::metadata(dot_git).ok()?;
    let dir = if meta.is_dir() {
        dot_git.to_owned()
    } else if meta.is_file() {
        let text = read_regular(dot_git, LARGEST_POINTER).ok()?;
        let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
        dot_git.parent()?.join(path_of(target))
    } else {
        return None;
    };
    std::fs::symlink_metadata(dir.join("HEAD")).is_ok().then_some(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(dir: &Path) -> UserRepo {
        let git = dir.join(".git");
        std::fs::create_dir_all(git.join("refs/heads")).unwrap();
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        UserRepo::discover(dir).unwrap()
    }

    #[test]
    fn a_directory_that_is_merely_called_dot_git_is_no_repository() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("a");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        assert!(UserRepo::discover(&root).is_none_or(|r| r.top != root));
        std::fs::write(root.join(".git/HEAD"), "").unwrap();
        assert_eq!(UserRepo::discover(&root).unwrap().top, root);
        std::fs::create_dir_all(root.join("x/y")).unwrap();
        let sub = UserRepo::discover(&root.join("x/y")).unwrap();
        assert_eq!((sub.top.as_path(), &sub.above[..]), (root.as_path(), &b"x/y/"[..]));
        let prefixes: Vec<_> = sub.directories_above().into_iter().map(|(_, p)| p).collect();
        assert_eq!(prefixes, [b"".to_vec(), b"x/".to_vec()]);
    }

    #[test]
    fn head_is_read_from_loose_and_packed_refs() {
        let dir = tempfile::tempdir().unwrap();
        let repo = repo(dir.path());
        let id = "0123456789012345678901234567890123456789";
        assert_eq!(repo.head(), Head { branch: Some("refs/heads/main".into()), ..Head::default() });
        std::fs::write(repo.git_dir.join("packed-refs"), format!("# pack-refs\n{id} refs/heads/main\n")).unwrap();
        assert_eq!(repo.head().commit.as_deref(), Some(id));
        let loose = id.replace('0', "f");
        std::fs::write(repo.git_dir.join("refs/heads/main"), format!("{loose}\n")).unwrap();
        assert_eq!(repo.head().commit, Some(loose));
        std::fs::write(repo.git_dir.join("HEAD"), format!("{id}\n")).unwrap();
        std::fs::write(repo.git_dir.join("MERGE_HEAD"), "").unwrap();
        assert_eq!(repo.head(), Head { branch: None, commit: Some(id.into()), in_progress: Some("merge".into()) });
        std::fs::write(repo.git_dir.join("HEAD"), "ref: ../../etc/passwd\n").unwrap();
        assert_eq!(repo.head().commit, None);
    }

    #[test]
    fn te43_a_setting_that_is_no_boolean_is_said_and_not_taken_for_absent() {
        let dir = tempfile::tempdir().unwrap();
        let repo = repo(dir.path());
        for (value, read, said) in [("true", true, 0), ("no", false, 0), ("perhaps", false, 1), ("", false, 0)] {
            std::fs::write(repo.git_dir.join("config"), format!("[core]\n\tignoreCase = {value}\n")).unwrap();
            let mut warnings = Vec::new();
            let settings = repo.settings(&UserConfig::none(), &mut warnings);
            assert_eq!((settings.ignore_case, warnings.len()), (read, said), "{value}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.contains("core.ignoreCase")), "{warnings:?}");
        }
    }

    #[test]
    fn the_excludes_file_comes_from_the_strongest_setting() {
        let dir = tempfile::tempdir().unwrap();
        let repo = repo(dir.path());
        let weak = dir.path().join("weak");
        let strong = dir.path().join("strong");
        let user = UserConfig {
            files: vec![weak.clone(), strong.clone()],
            default_excludes: Some("/default".into()),
            home: Some("/home/me".into()),
        };
        let ask = |user: &UserConfig| {
            let mut warnings = Vec::new();
            (user.excludes_file(Some(&repo), &mut warnings), warnings.len())
        };
        assert_eq!(ask(&user), (Some("/default".into()), 0));
        std::fs::write(&weak, "[core]\n\texcludesFile = ~/weak\n").unwrap();
        assert_eq!(ask(&user), (Some("/home/me/weak".into()), 0));
        std::fs::write(&strong, "[core\nbroken").unwrap();
        assert_eq!(ask(&user), (Some("/home/me/weak".into()), 1)); // malformed: a warning, go on
        let other = dir.path().join("other");
        std::fs::write(&other, "[core]\n\texcludesFile = /from/include\n").unwrap();
        std::fs::write(&strong, format!("[include]\n\tpath = {}\n", other.display())).unwrap();
        assert_eq!(ask(&user), (Some("/from/include".into()), 0));
        std::fs::write(repo.git_dir.join("config"), "[core]\n\texcludesFile = local\n").unwrap();
        assert_eq!(ask(&user), (Some(dir.path().join("local")), 0));
    }

    /// FIFOs and endless files in every place of a repository that is looked at: nobody waits, nothing of it counts.
    #[test]
    fn nothing_in_a_repository_is_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let places =
            [".git/config", ".git/HEAD", ".git/commondir", ".git/index", ".git/packed-refs", ".git/refs/heads/main"];
        for (n, place) in places.iter().enumerate() {
            for huge in [false, true] {
                let root = root.join(format!("{n}{huge}"));
                let repo = repo(&root);
                let at = root.join(place);
                drop(std::fs::remove_file(&at));
                if huge {
                    std::fs::File::create(&at).unwrap().set_len(1 << 40).unwrap();
                } else {
                    let dir = durable_fs::Dir::open_root(at.parent().unwrap()).unwrap();
                    dir.create_fifo(at.file_name().unwrap().as_bytes()).unwrap();
                }
                let mut warnings = Vec::new();
                let found = UserRepo::discover(&root).unwrap();
                found.settings(&UserConfig::none(), &mut warnings);
                assert!(!found.is_plain(), "{place}");
                assert_eq!(found.head().commit, None, "{place}");
                assert_eq!(found.read_index().is_err(), *place == ".git/index", "{place}");
                found.index_digest(i64::MAX);
                assert_eq!(warnings.is_empty(), *place != ".git/config", "{place}: {warnings:?}");
                drop(repo);
            }
        }
    }

    /// What a configuration includes, at any depth and whatever its condition, and the user's own settings.
    #[test]
    fn an_include_that_is_no_file_is_said_and_the_rest_counts() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let repo = repo(&root);
        let dir = durable_fs::Dir::open_root(&root).unwrap();
        dir.create_fifo(b"fifo").unwrap();
        std::fs::write(root.join("between"), "[includeIf \"onbranch:none\"]\n\tpath = fifo\n").unwrap();
        for target in ["fifo", "between", "/dev/zero"] {
            let target = root.join(target);
            let text = format!("[core]\n\tignoreCase = true\n[include]\n\tpath = {}\n", target.display());
            std::fs::write(repo.git_dir.join("config"), text).unwrap();
            let mut warnings = Vec::new();
            assert!(repo.settings(&UserConfig::none(), &mut warnings).ignore_case);
            assert!(warnings.iter().any(|warning| warning.contains("no include counts")), "{warnings:?}");
        }
        std::fs::write(repo.git_dir.join("config"), "").unwrap();
        let mut warnings = Vec::new();
        let off = UserConfig { files: vec!["/dev/null".into()], ..UserConfig::none() };
        repo.settings(&off, &mut warnings);
        assert_eq!(warnings, Vec::<String>::new(), "how settings are switched off");
    }
}
