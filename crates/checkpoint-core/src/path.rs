//! Workspace-relative paths.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A path relative to the workspace root: slash-separated bytes, any encoding.
///
/// Constructed only by [`RelPath::new`], so that a record or an argument can never leave the workspace: no empty, `.`
/// or `..` component, not absolute, no NUL, at most 255 bytes a component. Components that spell `.git` are refused
/// too, except through [`RelPath::new_unreserved`], which only the skipped list uses.
///
/// Ordered by bytes with `/` first, which is the order of a depth-first walk: a directory comes right before all that
/// lies below it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RelPath(Box<[u8]>);

/// Why bytes are no workspace path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid path {:?}: {why}", String::from_utf8_lossy(.given))]
pub struct PathError {
    /// The bytes that were given.
    pub given: Vec<u8>,
    /// The rule they break.
    pub why: &'static str,
}

impl RelPath {
    /// Validates `bytes`.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, PathError> {
        let path = Self::new_unreserved(bytes)?;
        if path.components().any(is_git_name) {
            return Err(PathError { given: path.0.into_vec(), why: "names a .git directory" });
        }
        Ok(path)
    }

    /// Like [`RelPath::new`], but `.git` may be named. Never written to.
    pub fn new_unreserved(bytes: impl Into<Vec<u8>>) -> Result<Self, PathError> {
        let bytes = bytes.into();
        let why = if bytes.is_empty() {
            Some("empty")
        } else if bytes.first() == Some(&b'/') {
            Some("absolute")
        } else if bytes.contains(&0) {
            Some("holds a NUL byte")
        } else {
            bytes.split(|&b| b == b'/').find_map(|part| match part {
                b"" => Some("has an empty component"),
                b"." | b".." => Some("has a `.` or `..` component"),
                _ if part.len() > 255 => Some("has a component of more than 255 bytes"),
                _ => None,
            })
        };
        match why {
            Some(why) => Err(PathError { given: bytes, why }),
            None => Ok(Self(bytes.into())),
        }
    }

    /// The bytes, components separated by `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The components, outermost first.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/')
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|&b| b == b'/').next().unwrap_or(&self.0)
    }

    /// The directory that holds this path; `None` for a path at the root.
    pub fn parent(&self) -> Option<Self> {
        let at = self.0.iter().rposition(|&b| b == b'/')?;
        self.0.get(..at).map(|dir| Self(dir.into()))
    }

    /// All directories that hold this path, nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// This path with one more component.
    pub fn join(&self, name: &[u8]) -> Result<Self, PathError> {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self::new(bytes)
    }

    /// True when `self` is `dir` or lies below it.
    pub fn is_at_or_below(&self, dir: &Self) -> bool {
        self == dir || self.is_below(dir)
    }

    /// True when `self` lies below `dir`.
    pub fn is_below(&self, dir: &Self) -> bool {
        self.0.strip_prefix(&*dir.0).is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// How many components it has.
    pub fn depth(&self) -> usize {
        self.components().count()
    }

    /// The path as text, invalid bytes as U+FFFD.
    pub fn to_lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// True for names that some file system takes for `.git`: any case; trailing dots and blanks, a stream (`:`) or a backslash
/// behind it, the short name, as NTFS has it; code points that HFS+, APFS or a directory of ext4 or f2fs that folds case
/// ignore anywhere in it. A superset of what git and gix refuse in a tree.
pub fn is_git_name(name: &[u8]) -> bool {
    if name.len() < 4 {
        return false;
    }
    let plain: Vec<u8> = if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        let text = String::from_utf8_lossy(name);
        text.chars().filter(|c| !is_ignorable(*c)).collect::<String>().to_ascii_lowercase().into_bytes()
    };
    let rest = plain.strip_prefix(b".git").or_else(|| plain.strip_prefix(b"git~1"));
    let behind = rest.and_then(|rest| rest.iter().find(|b| !matches!(b, b'.' | b' ')));
    rest.is_some() && matches!(behind, None | Some(b':' | b'\\'))
}

/// Default ignorable code points of Unicode, which file systems that fold names leave out.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

impl Ord for RelPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // `/` sorts before every other byte, so that a directory is followed by what it holds.
        let same = self.0.iter().zip(&other.0).take_while(|(a, b)| a == b).count();
        let rank = |path: &Self| path.0.get(same).map(|b| if *b == b'/' { 0u16 } else { u16::from(*b) + 1 });
        rank(self).cmp(&rank(other))
    }
}

impl PartialOrd for RelPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_lossy())
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_lossy())
    }
}

/// Stored as text; bytes that are not UTF-8 as NUL and base64, which no path can begin with.
impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => to.serialize_str(text),
            Err(_) => to.serialize_str(&format!("\0{}", data_encoding::BASE64.encode(&self.0))),
        }
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = match text.strip_prefix('\0') {
            Some(coded) => data_encoding::BASE64.decode(coded.as_bytes()).map_err(de::Error::custom)?,
            None => text.into_bytes(),
        };
        Self::new_unreserved(bytes).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn refuses_what_leaves_the_workspace_or_names_git() {
        for bad in [
            "",
            "/",
            "/a",
            "a//b",
            "a/",
            ".",
            "a/./b",
            "..",
            "a/../b",
            "a\0b",
            ".git",
            "a/.GIT/x",
            ".git.",
            "GIT~1",
            ".g\u{200c}it",
            // Found missing: a stream or a backslash behind blanks and behind the short name; what ext4 ignores.
            ".git :x",
            ".git. .::$INDEX_ALLOCATION",
            "git~1::$INDEX_ALLOCATION",
            "GIT~1 .",
            "a/.git\\config",
            ".g\u{200b}it",
            "\u{2060}.git",
            ".git\u{fe0f}",
            "g\u{ad}it~1",
        ] {
            assert!(RelPath::new(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(RelPath::new(vec![b'x'; 256]).is_err());
        for good in
            ["a", "v1..v2.diff", ".github", ".gitignore", "a/..b", "git", " ", ".git-x", "git~10", "git~2", ".git.x"]
        {
            path(good); // K-31: components are validated, not substrings
        }
    }

    #[test]
    fn a_directory_sorts_right_before_what_it_holds() {
        let mut all = [path("a-b"), path("a/b"), path("a"), path("a.b"), path("a/b/c")];
        all.sort();
        assert_eq!(all.map(|p| p.to_lossy()), ["a", "a/b", "a/b/c", "a-b", "a.b"]);
    }

    #[test]
    fn relations() {
        assert!(path("a/b").is_below(&path("a")));
        assert!(!path("ab").is_below(&path("a")));
        assert!(path("a").is_at_or_below(&path("a")));
        assert_eq!(path("a/b/c").ancestors().map(|p| p.to_lossy()).collect::<Vec<_>>(), ["a/b", "a"]);
        assert_eq!(path("a/b/c").name(), b"c");
    }

    #[test]
    fn stored_form_keeps_bytes_that_are_not_utf8() {
        let odd = RelPath::new(b"a/\xff\xfe".to_vec()).unwrap();
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(serde_json::from_str::<RelPath>(&json).unwrap(), odd);
        assert!(serde_json::from_str::<RelPath>("\"../x\"").is_err());
    }
}
