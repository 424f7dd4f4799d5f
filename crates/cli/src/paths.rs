//! Paths of the command line: literal, relative to the current directory, inside the workspace.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use checkpoint_core::RelPath;

use crate::args::PathArgs;
use crate::error::CliError;

/// Reads paths relative to a directory and finds them in a workspace.
#[derive(Debug)]
pub(crate) struct Paths<'a> {
    /// The workspace's root, canonical.
    pub(crate) root: &'a Path,
    /// What relative paths are relative to.
    pub(crate) base: &'a Path,
}

impl Paths<'_> {
    /// The path in the workspace. Not a single byte of it is a pattern; links are not followed, except that the
    /// directory it starts from is canonical.
    pub(crate) fn find(&self, given: &OsStr) -> Result<RelPath, CliError> {
        let outside = |why: &str| CliError::OutsidePath { given: PathBuf::from(given), why: why.to_owned() };
        if given.is_empty() {
            return Err(outside("is no path"));
        }
        let typed = Path::new(given);
        let whole = if typed.is_absolute() { self.canonical_start(typed) } else { self.base.join(typed) };
        let plain = normal(&whole).ok_or_else(|| outside("lies outside the workspace"))?;
        let inside = plain.strip_prefix(self.root).map_err(|_| outside("lies outside the workspace"))?;
        if inside.as_os_str().is_empty() {
            return Err(outside("is the whole workspace: leave it out"));
        }
        RelPath::new(inside.as_os_str().as_bytes().to_vec()).map_err(|error| outside(error.why))
    }

    /// An absolute path may reach the root through a link; what lies below the root is taken as typed.
    fn canonical_start(&self, typed: &Path) -> PathBuf {
        for above in typed.ancestors().skip(1) {
            if above.canonicalize().is_ok_and(|known| known == self.root) {
                let rest = typed.strip_prefix(above).unwrap_or(typed);
                return self.root.join(rest);
            }
        }
        typed.to_owned()
    }

    /// All paths that the flags name.
    pub(crate) fn all(&self, args: &PathArgs, stdin: &mut dyn Read) -> Result<Vec<RelPath>, CliError> {
        let mut given = args.paths.clone();
        if let Some(file) = &args.paths_from {
            given.extend(listed(file, args.nul, stdin)?);
        }
        let mut found = given.iter().map(|path| self.find(path)).collect::<Result<Vec<_>, _>>()?;
        if found.is_empty() && args.paths_from.is_some() {
            // An empty list must not come to mean everything.
            return Err(CliError::usage("no-paths", "the list of paths is empty"));
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

fn listed(file: &Path, nul: bool, stdin: &mut dyn Read) -> Result<Vec<OsString>, CliError> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        stdin.read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(file).map(|content| bytes = content)
    };
    read.map_err(|source| CliError::failure(format!("cannot read {}", file.display()), source))?;
    let end = if nul { 0 } else { b'\n' };
    let lines = bytes.split(|byte| *byte == end).filter(|line| !line.is_empty());
    Ok(lines.map(|line| OsString::from_vec(line.to_vec())).collect())
}

/// A path below the root as it is named from the directory `below` the root.
pub(crate) fn relative(below: &Path, there: &Path) -> PathBuf {
    let shared = below.components().zip(there.components()).take_while(|(a, b)| a == b).count();
    let mut relative = PathBuf::new();
    relative.extend(below.components().skip(shared).map(|_| Component::ParentDir));
    relative.extend(there.components().skip(shared));
    if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative }
}

/// Without `.` and `..`, read as text; `None` where it leaves the file system.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(given: &str) -> Result<String, String> {
        let paths = Paths { root: Path::new("/w"), base: Path::new("/w/sub") };
        paths.find(OsStr::new(given)).map(|path| path.to_lossy()).map_err(|error| error.to_string())
    }

    /// Deviation 11: literal paths, never patterns.
    #[test]
    fn relative_to_the_current_directory_and_literal() {
        assert_eq!(find("a[1].txt").unwrap(), "sub/a[1].txt");
        assert_eq!(find("../x/*").unwrap(), "x/*");
        assert_eq!(find("./-a/../b").unwrap(), "sub/b");
        assert_eq!(find("/w/c").unwrap(), "c");
    }

    #[test]
    fn outside_is_refused() {
        for bad in ["../..", "../../x", "/etc/passwd", "/wx", "", "..", "../.git/config", "/"] {
            assert!(find(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lists_end_with_line_or_nul() {
        let paths = Paths { root: Path::new("/w"), base: Path::new("/w") };
        let args = |nul| PathArgs { paths: vec![], paths_from: Some("-".into()), nul };
        let read = |nul, mut text: &[u8]| {
            paths.all(&args(nul), &mut text).unwrap().iter().map(RelPath::to_lossy).collect::<Vec<_>>()
        };
        assert_eq!(read(false, b"b\na\n"), ["a", "b"]);
        assert_eq!(read(true, b"a\nb\0c"), ["a\nb", "c"]);
        assert!(paths.all(&args(false), &mut b"\n".as_slice()).is_err());
    }
}
