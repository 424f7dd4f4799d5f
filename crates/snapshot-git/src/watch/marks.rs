//! What a watcher told, as directories to look at.

use std::collections::BTreeSet;

use checkpoint_core::is_git_name;

use super::{Event, Writing, is_at_or_below, join};
use crate::rules::{GITIGNORE, RWDIGNORE};

/// More directories than this are not worth a hint.
const MOST: usize = 4096;

/// Where something changed since a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// Directories with entries that came, went or changed.
    dirty: BTreeSet<Vec<u8>>,
    /// Directories of which nothing is known, nor of what is below.
    deep: BTreeSet<Vec<u8>>,
    /// Files that were written to and not closed since.
    open: BTreeSet<Vec<u8>>,
    /// No hint can be given until a walk.
    pub(super) doubt: bool,
    /// Something was not told: which directory is watched under which path is not known any more.
    pub(super) lost: bool,
}

impl Marks {
    pub(super) fn note(&mut self, event: Event) {
        match event {
            Event::Entry { dir, name, writing } => {
                // Rules decide about more than their own directory.
                self.doubt |= is_git_name(&name) || decides(&name);
                match writing {
                    Writing::Open => drop(self.open.insert(join(&dir, &name))),
                    Writing::Closed => drop(self.open.remove(&join(&dir, &name))),
                    Writing::Unsaid => {}
                }
                self.dirty.insert(dir);
            }
            Event::Came(path) | Event::Went(path) => {
                self.doubt |= path.rsplit(|&b| b == b'/').next().is_some_and(is_git_name);
                self.dirty.insert(parent(&path).to_vec());
                self.unknown(path);
            }
            Event::Touched(path) => {
                self.dirty.insert(parent(&path).to_vec());
                self.dirty.insert(path);
            }
            Event::Lost => (self.doubt, self.lost) = (true, true),
        }
        if self.dirty.len().max(self.deep.len()).max(self.open.len()) > MOST {
            self.doubt = true;
            self.dirty.clear();
            self.deep.clear();
            self.open.clear();
        }
    }

    /// Nothing is known of a directory and what is below.
    pub(super) fn unknown(&mut self, dir: Vec<u8>) {
        self.deep.insert(dir);
    }

    /// Begins anew at a walk that looks everywhere: only who is writing is still known.
    pub(super) fn looked_everywhere(&mut self) {
        *self = Self { open: std::mem::take(&mut self.open), ..Self::default() };
    }

    /// What there is to look at now. Begins anew but for what stays unknown.
    pub(super) fn take(&mut self) -> Hint {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.extend(self.open.iter().map(|path| parent(path).to_vec()));
        Hint { dirty, deep: self.deep.clone() }
    }

    /// A capture that went by the hint came to nothing.
    pub(super) fn put_back(&mut self, hint: Hint) {
        self.dirty.extend(hint.dirty);
    }
}

fn decides(name: &[u8]) -> bool {
    [GITIGNORE, RWDIGNORE, b".rwd.toml"].iter().any(|rules| name.eq_ignore_ascii_case(rules))
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&b| b == b'/').map_or(&[], |at| &path[..at])
}

/// What a capture looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hint {
    dirty: BTreeSet<Vec<u8>>,
    deep: BTreeSet<Vec<u8>>,
}

/// What is to be done with a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// Nothing changed at or below it.
    Skip,
    /// Something did below it; its own entries are what they were.
    Through,
    /// Its entries are to be looked at; below it as each is marked.
    Look,
    /// All of it, and all below.
    All,
}

impl Hint {
    pub(crate) fn at(&self, dir: &[u8]) -> Visit {
        let unknown = self.deep.contains(dir)
            || self.deep.contains(&[][..])
            || dir.iter().enumerate().any(|(at, &b)| b == b'/' && self.deep.contains(&dir[..at]));
        if unknown {
            Visit::All
        } else if self.dirty.contains(dir) {
            Visit::Look
        } else if has_below(&self.dirty, dir) || has_below(&self.deep, dir) {
            Visit::Through
        } else {
            Visit::Skip
        }
    }

    /// True for a path whose state is not the one that was known: its directory is looked at, or nothing of it is known.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        matches!(self.at(parent(path)), Visit::Look | Visit::All)
            || self.deep.iter().any(|dir| is_at_or_below(path, dir))
    }
}

fn has_below(dirs: &BTreeSet<Vec<u8>>, dir: &[u8]) -> bool {
    if dir.is_empty() {
        return !dirs.is_empty();
    }
    let first = [dir, b"/"].concat();
    dirs.range(first.clone()..).next().is_some_and(|path| path.starts_with(&first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(dir: &str, name: &str, writing: Writing) -> Event {
        Event::Entry { dir: dir.into(), name: name.into(), writing }
    }

    #[test]
    fn marks_say_where_to_look() {
        let mut marks = Marks::default();
        marks.note(entry("a/b", "f", Writing::Unsaid));
        marks.note(Event::Came(b"a/new".to_vec()));
        let hint = marks.take();
        let at = |dir: &str| hint.at(dir.as_bytes());
        assert_eq!([at(""), at("a"), at("a/b"), at("a/b/c")], [Visit::Through, Visit::Look, Visit::Look, Visit::Skip]);
        assert_eq!(
            [at("a/new"), at("a/new/x/y"), at("a/newer"), at("a-b")],
            [Visit::All, Visit::All, Visit::Skip, Visit::Skip]
        );
        assert!(hint.covers(b"a/b/f") && hint.covers(b"a/new/x/f") && !hint.covers(b"a/b/c/f") && !marks.doubt);
        // What is new stays unknown until a walk; the rest is looked at once.
        let hint = marks.take();
        assert_eq!([hint.at(b"a/b"), hint.at(b"a/new"), hint.at(b"a")], [Visit::Skip, Visit::All, Visit::Through]);
        marks.looked_everywhere();
        assert_eq!(marks.take().at(b""), Visit::Skip);
    }

    #[test]
    fn a_file_that_is_written_to_is_looked_at_until_it_is_closed() {
        let mut marks = Marks::default();
        marks.note(entry("a", "f", Writing::Open));
        for _ in 0..3 {
            assert_eq!(marks.take().at(b"a"), Visit::Look);
            marks.looked_everywhere();
        }
        marks.note(entry("a", "f", Writing::Closed));
        assert_eq!(marks.take().at(b"a"), Visit::Look);
        assert_eq!(marks.take().at(b"a"), Visit::Skip);
    }

    #[test]
    fn rules_repositories_losses_and_storms_are_doubt() {
        for name in [".gitignore", ".rwdignore", ".rwd.toml", ".GITIGNORE", ".git", ".Git"] {
            let mut marks = Marks::default();
            marks.note(entry("a", name, Writing::Unsaid));
            assert!(marks.doubt, "{name}");
        }
        for event in [Event::Lost, Event::Came(b"a/.git".to_vec()), Event::Went(b".git".to_vec())] {
            let mut marks = Marks::default();
            marks.note(event);
            assert!(marks.doubt);
        }
        let mut marks = Marks::default();
        for n in 0..=MOST {
            marks.note(entry(&format!("d{n}"), "f", Writing::Unsaid));
        }
        assert!(marks.doubt);
        marks.looked_everywhere();
        assert!(!marks.doubt);
    }
}
