//! Which paths an attribute may give a filter or an encoding: there git's id need not be that of the bytes on disk.
//!
//! This errs on one side only. A line that mentions such an attribute counts, whatever it says and whether or not
//! another line overrides it, and a pattern that is more than a name or an ending counts for everything below.

use std::{
    fs,
    io::{self, Read},
    ops::Range,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use gix::bstr::ByteSlice;

use crate::user_repo::{UserConfig, UserRepo};

const NAME: &[u8] = b".gitattributes";
/// git reads no attribute file that is bigger.
const BIGGEST: u64 = 100 << 20;

/// What conversions may touch.
#[derive(Debug, Default)]
pub(super) struct Conversions(Vec<Rule>);

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    /// From the repository's top, with a slash at the end, or empty.
    dir: Vec<u8>,
    names: Names,
}

#[derive(Debug, PartialEq, Eq)]
enum Names {
    All,
    /// Files with this name.
    Exact(Vec<u8>),
    /// Files whose name ends so.
    Ending(Vec<u8>),
}

impl Conversions {
    /// Reads every source of attributes that counts for the entries `all`. `None` when one cannot be told.
    pub(super) fn gather(
        index: &gix::index::File,
        all: &Range<usize>,
        repo: &UserRepo,
        user: &UserConfig,
    ) -> Option<Self> {
        let mut found = Self::default();
        for path in user.attributes_files(repo)? {
            found.add(&path, b"", false)?;
        }
        let tracked = |full: &[u8]| index.entry_by_path(full.as_bstr()).is_some();
        for (dir, full) in repo.directories_above() {
            found.add(&dir.join(".gitattributes"), &full, tracked(&[&full[..], NAME].concat()))?;
        }
        for entry in index.entries().get(all.clone())? {
            let path = entry.path(index).as_bytes();
            let Some(dir) = path.strip_suffix(NAME).filter(|dir| dir.is_empty() || dir.ends_with(b"/")) else {
                continue;
            };
            let on_disk = repo.top.join(path.to_path().ok()?);
            found.add(&on_disk, dir, true)?;
        }
        Some(found)
    }

    /// Adds the rules of one file for the directory `dir`. Where a file that must be there cannot be read, everything
    /// below counts; a file that is simply not there says nothing.
    fn add(&mut self, path: &Path, dir: &[u8], must: bool) -> Option<()> {
        match read(path) {
            Ok(text) => self.0.extend(rules(&text, dir)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must => {}
            Err(_) => self.0.push(Rule { dir: dir.to_vec(), names: Names::All }),
        }
        // A rule for everything needs no other.
        (!self.0.iter().any(|rule| rule.dir.is_empty() && rule.names == Names::All)).then_some(())
    }

    /// True when no conversion touches anything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// May a conversion touch this path, from the repository's top?
    pub(super) fn may_touch(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let ends = |ending: &[u8]| {
            name.len().checked_sub(ending.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(ending))
        };
        self.0.iter().any(|rule| {
            path.starts_with(&rule.dir)
                && match &rule.names {
                    Names::All => true,
                    Names::Exact(exact) => name.eq_ignore_ascii_case(exact),
                    Names::Ending(ending) => ends(ending),
                }
        })
    }
}

/// A link is no attribute file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = fs::File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() || facts.len() > BIGGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = Vec::new();
    file.take(BIGGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// The lines that may give a filter or an encoding.
fn rules(text: &[u8], dir: &[u8]) -> Vec<Rule> {
    let counts = |line: &&[u8]| line.contains_str("filter") || line.contains_str("encoding");
    text.lines()
        .map(<[u8]>::trim_ascii)
        .filter(counts)
        .filter(|line| !line.starts_with(b"#"))
        .map(|line| {
            let pattern = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            // A macro works wherever its name is used, in other files too.
            if pattern.starts_with(b"[attr]") {
                return Rule { dir: Vec::new(), names: Names::All };
            }
            let plain = |part: &[u8]| !part.is_empty() && !part.iter().any(|byte| b"*?[]\\/\"!".contains(byte));
            let names = match pattern.strip_prefix(b"*") {
                Some(ending) if plain(ending) => Names::Ending(ending.to_vec()),
                _ if plain(pattern) => Names::Exact(pattern.to_vec()),
                _ => Names::All,
            };
            Rule { dir: dir.to_vec(), names }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(text: &str, dir: &str, path: &str) -> bool {
        Conversions(rules(text.as_bytes(), dir.as_bytes())).may_touch(path.as_bytes())
    }

    #[test]
    fn a_line_that_may_name_a_filter_counts_for_its_names_and_in_doubt_for_all() {
        for (text, dir, path, touches) in [
            ("", "", "a.bin", false),
            ("*.bin text eol=crlf ident", "", "a.bin", false),
            ("# *.bin filter=lfs", "", "a.bin", false),
            ("*.bin filter=lfs diff=lfs", "", "x/a.bin", true),
            ("*.bin filter=lfs diff=lfs", "", "x/A.BIN", true),
            ("*.bin filter=lfs diff=lfs", "", "x/a.txt", false),
            ("*.bin -filter", "", "a.bin", true),
            ("*.bin\tfilter=lfs\r\n*.txt text\r\n", "", "a.bin", true),
            ("data working-tree-encoding=UTF-16", "sub/", "sub/x/data", true),
            ("data working-tree-encoding=UTF-16", "sub/", "sub/x/data2", false),
            ("data working-tree-encoding=UTF-16", "sub/", "data", false),
            ("*.b?n filter=x", "", "any", true),
            ("/a/*.bin filter=x", "", "any", true),
            ("\"a b\" filter=x", "sub/", "sub/any", true),
            ("\"a b\" filter=x", "sub/", "any", false),
            ("[attr]big filter=lfs\n*.bin big", "sub/", "any", true),
            ("* filter=x", "", "any", true),
        ] {
            assert_eq!(touched(text, dir, path), touches, "{text:?} in {dir:?} for {path:?}");
        }
    }
}
