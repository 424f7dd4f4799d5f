//! Globs of the configuration, with the semantics of contract 002-27.

/// A list of globs; a path is covered when one of them matches it or a directory above it.
///
/// `*` and `?` stay within a name, `**` stands for any number of names. A glob without a slash is matched against names
/// at any depth, one with a slash from the root on.
#[derive(Clone, Debug, Default)]
pub struct Globs(Vec<Glob>);

#[derive(Clone, Debug)]
struct Glob {
    segments: Vec<Segment>,
    /// Matched from the root on; otherwise against single names at any depth.
    anchored: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Segment {
    /// `**`: any number of names, none included.
    Any,
    /// One name; `*` and `?` stay within it.
    Name(Box<[u8]>),
}

impl Globs {
    /// Parses patterns. Empty ones are dropped; `\` counts as `/`; there is no negation.
    pub fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().filter_map(|text| Glob::parse(text)).collect())
    }

    /// True without any pattern: then nothing matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when a glob matches this very path; whoever walks down asks for each directory on the way.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        self.0.iter().any(|glob| glob.matches(path))
    }

    /// True when a glob matches this path, a workspace path with slashes, or a directory above it.
    pub fn covers(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        slashes.map(|(at, _)| &path[..at]).chain([path]).any(|path| self.matches(path))
    }

    /// True when a glob could match something below this directory.
    pub(crate) fn may_match_below(&self, dir: &[u8]) -> bool {
        self.0.iter().any(|glob| !glob.anchored || glob.run(dir).iter().take(glob.segments.len()).any(|&on| on))
    }
}

impl Glob {
    fn parse(text: &str) -> Option<Self> {
        let text = text.replace('\\', "/");
        let segments: Vec<Segment> = text
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| if part == "**" { Segment::Any } else { Segment::Name(part.as_bytes().into()) })
            .collect();
        (!segments.is_empty()).then(|| Self { anchored: text.contains('/'), segments })
    }

    fn matches(&self, path: &[u8]) -> bool {
        if self.anchored {
            return self.run(path).last() == Some(&true);
        }
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
        match self.segments.first() {
            Some(Segment::Name(pattern)) => name_matches(pattern, name),
            _ => true,
        }
    }

    /// Feeds the path's names to the segments. Position `n` of the answer: the first `n` segments can have eaten all
    /// of the path.
    fn run(&self, path: &[u8]) -> Vec<bool> {
        let n = self.segments.len();
        let mut on = vec![false; n + 1];
        on[0] = true;
        let spread = |on: &mut Vec<bool>| {
            for at in 0..n {
                if on[at] && self.segments[at] == Segment::Any {
                    on[at + 1] = true;
                }
            }
        };
        spread(&mut on);
        for name in path.split(|&b| b == b'/').filter(|part| !part.is_empty()) {
            let mut next = vec![false; n + 1];
            for at in 0..n {
                if !on[at] {
                    continue;
                }
                match &self.segments[at] {
                    Segment::Any => next[at] = true,
                    Segment::Name(pattern) => next[at + 1] |= name_matches(pattern, name),
                }
            }
            spread(&mut next);
            on = next;
        }
        on
    }
}

/// `*` is any run of characters, `?` one character; everything else is itself.
fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to go back to: after the latest star, and the first byte that it has not eaten yet.
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, n));
                continue;
            }
            Some(b'?') => {
                p += 1;
                n += char_len(&name[n..]);
                continue;
            }
            Some(&b) if b == name[n] => {
                p += 1;
                n += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, eaten)) = retry else { return false };
        p = after;
        n = eaten + char_len(&name[eaten..]);
        retry = Some((after, n));
    }
    pattern[p..].iter().all(|&b| b == b'*')
}

/// Length of the first character; a byte that begins none counts alone.
fn char_len(bytes: &[u8]) -> usize {
    let len = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if bytes.get(..len).is_some_and(|c| std::str::from_utf8(c).is_ok()) { len } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a walk asks: the path or a directory above it.
    fn covers(pattern: &str, path: &str) -> bool {
        let globs = Globs::new(&[pattern.to_owned()]);
        globs.covers(path.as_bytes())
    }

    #[test]
    fn contract_002_27() {
        for (pattern, path, wanted) in [
            ("node_modules", "node_modules", true),
            ("node_modules", "a/b/node_modules/c", true),
            ("node_modules", "node_modules2", false),
            ("*.log", "a/b.log", true),
            ("*.log", "a/b.logs", false),
            ("?.txt", "a.txt", true),
            ("?.txt", "ä.txt", true),
            ("?.txt", "ab.txt", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/*.rs", "x/src/a.rs", false),
            ("src/**/b.rs", "src/b.rs", true),
            ("src/**/b.rs", "src/x/y/b.rs", true),
            ("**/gen", "gen", true),
            ("**/gen", "a/b/gen/x", true),
            ("build/**", "build", true),
            ("build/**", "build/x/y", true),
            ("build/**", "a/build/x", false),
            ("/dist", "dist/x", true),
            ("/dist", "a/dist", false),
            ("a\\b", "a/b", true),
            ("!x", "!x", true),
            ("!x", "x", false),
            ("[ab]", "a", false),
            ("[ab]", "[ab]", true),
            ("", "x", false),
            ("A", "a", false),
            ("a*b*c", "aXbYbZc", true),
            ("**", "anything/at/all", true),
        ] {
            assert_eq!(covers(pattern, path), wanted, "{pattern} on {path}");
        }
    }

    #[test]
    fn tells_where_a_match_could_lie() {
        let below = |pattern: &str, dir: &str| Globs::new(&[pattern.to_owned()]).may_match_below(dir.as_bytes());
        assert!(below("target/keep/x", "target"));
        assert!(below("target/keep/x", "target/keep"));
        assert!(!below("target/keep/x", "target/other"));
        assert!(!below("target/keep/x", "src"));
        assert!(below("**/x", "a/b"));
        assert!(below(".env", "a/b"));
    }
}
