//! The stat cache's racy rule: a file is written, captured, written again, captured again; the file system's clock has
//! granules, and an editor may put sizes and modification times back, but not the change time (design §§ 4, 5).

use super::{Model, Step};

/// What the cache has of the file: its stamp, its size, its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    changed: u8,
    modified: u8,
    size: u8,
    content: u8,
}

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// The file as it is.
    file: Entry,
    granule: u8,
    cache: Option<Entry>,
    /// A capture that has looked at the file and not yet read it: what it saw, and when.
    looked: Option<(Entry, u8)>,
    /// A capture that has read it: what it saw, when, and what it read.
    read: Option<(Entry, u8, u8)>,
    writes: u8,
    captures: u8,
}

/// The rules and the bounds.
#[derive(Clone, Copy, Debug)]
pub struct Cache {
    /// What was changed in the granule in which it was looked at is not remembered.
    pub racy: bool,
    /// The change time is compared, which nobody can set.
    pub change_time: bool,
    /// What was read counts only if the file looks afterwards as it did before.
    pub look_again: bool,
    /// Writes, and captures.
    pub writes: u8,
    /// Captures.
    pub captures: u8,
}

impl Default for Cache {
    fn default() -> Self {
        Self { racy: true, change_time: true, look_again: true, writes: 3, captures: 3 }
    }
}

/// The record holds another content than the file.
pub const STALE: &str = "a capture believes a cache that is out of date";
/// The record holds what the file had before it was written under the capture, and the cache believes it.
pub const TORN: &str = "a capture remembers a content under the stamp of another";

impl Cache {
    /// True when the cache stands for the file.
    fn fits(self, cached: Entry, file: Entry) -> bool {
        cached.size == file.size
            && cached.modified == file.modified
            && (!self.change_time || cached.changed == file.changed)
    }
}

impl Model for Cache {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let file = Entry { changed: 0, modified: 0, size: 1, content: 0 };
        vec![State { file, granule: 0, cache: None, looked: None, read: None, writes: 0, captures: 0 }]
    }

    fn steps(&self, state: &State) -> Vec<Step<State>> {
        let mut steps = Vec::new();
        let mut push = |label, state, fault| steps.push(Step { label, state, fault });
        if state.granule < 3 {
            push("the clock goes on", State { granule: state.granule + 1, ..*state }, None);
        }
        if state.writes < self.writes {
            let (writes, content, changed) = (state.writes + 1, state.writes + 1, state.granule);
            for size in [1, 2] {
                let file = Entry { changed, modified: state.granule, size, content };
                push("somebody writes the file", State { file, writes, ..*state }, None);
            }
            let file = Entry { changed, content, ..state.file };
            push("somebody writes it and puts its time back", State { file, writes, ..*state }, None);
        }
        match (state.looked, state.read) {
            (None, None) if state.captures < self.captures => {
                let captures = state.captures + 1;
                match state.cache {
                    Some(cached) if self.fits(cached, state.file) => {
                        let fault = (cached.content != state.file.content).then_some(STALE);
                        push("a capture believes its cache", State { captures, ..*state }, fault);
                    }
                    _ => push(
                        "a capture looks at the file",
                        State { looked: Some((state.file, state.granule)), captures, ..*state },
                        None,
                    ),
                }
            }
            (Some((looked, when)), None) => {
                let next = State { looked: None, read: Some((looked, when, state.file.content)), ..*state };
                push("a capture reads the file", next, None);
            }
            (_, Some((looked, when, content))) => {
                let mut next = State { read: None, ..*state };
                let same = self.fits(looked, state.file);
                let label = if self.look_again && !same {
                    "a capture sees that the file changed, and leaves it out"
                } else {
                    // Changed in the granule in which it was looked at, it may change again and look the same.
                    let settled = looked.changed < when;
                    if !self.racy || settled {
                        let stamp = if self.look_again { looked } else { state.file };
                        next.cache = Some(Entry { content, ..stamp });
                    }
                    "a capture records what it read"
                };
                let torn = !self.look_again && next.cache.is_some_and(|c| c.content != state.file.content);
                push(label, next, torn.then_some(TORN));
            }
            _ => {}
        }
        steps
    }
}
