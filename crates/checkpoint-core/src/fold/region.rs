//! Which messages a fold replaces (001-10 to 12).

use std::collections::BTreeSet;

use crate::{LogEvent, Seq};

use super::{FoldError, Message, Role, Surface, SurfaceError, SurfaceNode, is_fold_report, report::text_of};

/// Where a region ends at the latest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RegionEnd {
    /// Before the last message of the model, which carries the call that folds. Without one: at the end of the surface.
    #[default]
    BeforeLastAssistant,
    /// Before the message with this call.
    BeforeCall(String),
    /// At the end of the surface: for folds that no call of the model asked for.
    Tail,
}

/// Messages that are next to each other on the surface; never none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Position of the first.
    pub start: Seq,
    /// Position of the last.
    pub end: Seq,
    /// All of them, in the order of the surface.
    pub nodes: Vec<SurfaceNode>,
}

impl Region {
    fn of(nodes: &[SurfaceNode]) -> Option<Self> {
        Some(Self { start: nodes.first()?.seq, end: nodes.last()?.seq, nodes: nodes.to_vec() })
    }

    /// The messages `start..=end` of a surface; `None` when they are no range of it.
    pub fn between(surface: &Surface, start: Seq, end: Seq) -> Option<Self> {
        let (from, to) = (surface.position(start)?, surface.position(end)?);
        surface.nodes.get(from..=to).and_then(Self::of)
    }

    /// True when a selection made again is this one still: same start, end and length (001-13, `CHANGED`).
    pub fn is_same(&self, again: &Self) -> bool {
        (self.start, self.end, self.nodes.len()) == (again.start, again.end, again.nodes.len())
    }

    /// Its messages.
    pub fn messages<'a>(&'a self, events: &'a [LogEvent]) -> impl Iterator<Item = (&'a LogEvent, Message)> {
        messages(&self.nodes, events)
    }

    /// Characters that the model reads in it (001-14).
    pub fn text_chars(&self, events: &[LogEvent]) -> u64 {
        self.messages(events).map(|(_, message)| message.text_chars()).sum()
    }

    /// Positions of all its messages: what the report was made from (001-15).
    pub fn sources(&self) -> Vec<Seq> {
        self.nodes.iter().map(|node| node.seq).collect()
    }
}

fn messages<'a>(nodes: &'a [SurfaceNode], events: &'a [LogEvent]) -> impl Iterator<Item = (&'a LogEvent, Message)> {
    nodes.iter().filter_map(|node| {
        let event = events.get(node.index)?;
        Some((event, Message::of(event)?))
    })
}

/// Selects what is folded from a mark at `anchor` on (001-10 to 12).
///
/// - It begins with the first message that stands for nothing before the anchor. A summary that a compaction made of
///   messages on both sides of the mark stays (001-20): what it says of the time before must not be lost.
/// - When that is the answer to a call from before the mark, exactly this one message stays, so that the pair of the
///   call that marked is left whole. Answers of calls made in parallel with it are folded.
/// - It ends at the latest where `end` says, and so that no call is parted from its answer.
pub fn select_region(
    events: &[LogEvent],
    surface: &Surface,
    anchor: Seq,
    end: &RegionEnd,
) -> Result<Region, FoldError> {
    let empty = |why: &str| FoldError::EmptyRegion { why: why.to_owned() };
    let from = surface.nodes.partition_point(|node| node.origin < anchor);
    let since = surface.nodes.get(from..).unwrap_or_default();
    if since.is_empty() {
        return Err(empty("no message follows the mark"));
    }
    let upto = limit(events, surface, anchor, end).unwrap_or(surface.nodes.len());
    let mut nodes = surface.nodes.get(from..upto).unwrap_or_default();
    if nodes.is_empty() {
        return Err(empty("no message lies between the mark and the call that folds"));
    }
    if let Some((first, rest)) = nodes.split_first()
        && message_at(events, first).is_some_and(|message| message.role == Role::Tool)
    {
        nodes = rest;
    }
    if nodes.is_empty() {
        return Err(empty("only the answer of the call that marked follows the mark"));
    }
    let balanced = balanced_length(events, nodes);
    nodes.get(..balanced).and_then(Region::of).ok_or(FoldError::Unbalanced)
}

fn message_at(events: &[LogEvent], node: &SurfaceNode) -> Option<Message> {
    events.get(node.index).and_then(Message::of)
}

/// Place on the surface that the region does not reach; `None` for its end.
fn limit(events: &[LogEvent], surface: &Surface, anchor: Seq, end: &RegionEnd) -> Option<usize> {
    let carries = |message: &Message| match end {
        RegionEnd::Tail => false,
        RegionEnd::BeforeLastAssistant => !message.is_empty(),
        RegionEnd::BeforeCall(call) => message.calls().any(|id| id == call),
    };
    let call = events
        .iter()
        .rev()
        .filter(|event| &*event.kind == "assistant/message" && event.surface.is_some())
        .find(|event| Message::of(event).is_some_and(|message| carries(&message)))?;
    match surface.position(call.seq) {
        Some(at) => Some(at),
        // Replaced meanwhile by something that stands where it stood, or it lies before the mark altogether.
        None if call.seq >= anchor => None,
        None => Some(0),
    }
}

/// The longest beginning of `nodes` in which every call made has its answer.
fn balanced_length(events: &[LogEvent], nodes: &[SurfaceNode]) -> usize {
    let mut open = BTreeSet::new();
    let mut balanced = 0;
    for (at, node) in nodes.iter().enumerate() {
        if let Some(message) = message_at(events, node) {
            open.extend(message.calls().map(str::to_owned));
            for id in message.results() {
                open.remove(id);
            }
        }
        if open.is_empty() {
            balanced = at + 1;
        }
    }
    balanced
}

/// The report of a fold from a mark at `anchor`, if it is in the log already: what a crash between the report and the
/// stamp of its mark leaves behind (K-15). Gives the region that it replaced, its event and its text.
///
/// `anchor` must be that of the session's newest mark: only then is every report of later messages alone its own.
pub fn find_report(
    events: &[LogEvent],
    surface: &Surface,
    anchor: Seq,
) -> Result<Option<(Region, Seq, String)>, SurfaceError> {
    for replaced in &surface.replaced {
        let Some(event) = events.get(replaced.index).filter(|event| event.seq >= anchor) else { continue };
        let since_mark = replaced.nodes.first().is_some_and(|first| first.origin >= anchor);
        if !since_mark || !is_fold_report(event) {
            continue;
        }
        let sources = event.sources.as_deref().unwrap_or_default();
        let covered = replaced.nodes.iter().all(|node| sources.contains(&node.seq));
        if let (true, Some(region)) = (covered, Region::of(&replaced.nodes)) {
            return Ok(Some((region, event.seq, text_of(event))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::test_log::Log;

    fn select(log: &Log, anchor: Seq) -> Result<(u64, u64, usize), &'static str> {
        select_to(log, anchor, &RegionEnd::BeforeLastAssistant)
    }

    fn select_to(log: &Log, anchor: Seq, end: &RegionEnd) -> Result<(u64, u64, usize), &'static str> {
        let surface = Surface::fold(log.events()).unwrap();
        select_region(log.events(), &surface, anchor, end)
            .map(|region| (region.start.0, region.end.0, region.nodes.len()))
            .map_err(|error| error.code())
    }

    /// `[user, the model marks with call "mark"]`, and the mark is taken while that call runs.
    fn marked() -> (Log, Seq) {
        let mut log = Log::default();
        log.user("find out");
        log.assistant("I mark", &["mark"]);
        let anchor = Seq(log.events().len() as u64);
        log.result("mark", "mark 1");
        (log, anchor)
    }

    #[test]
    fn tm01_the_region_follows_the_anchor_and_leaves_the_call_that_folds() {
        let (mut log, anchor) = marked();
        let first = log.assistant("look", &["a"]);
        let last = log.result("a", "seen");
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Ok((first.0, last.0, 2)));
        assert_eq!(select_to(&log, anchor, &RegionEnd::BeforeCall("fold".into())), Ok((first.0, last.0, 2)));
        // K-14: a mark in the middle of a call made every fold unbalanced.
        let (log, anchor) = marked();
        assert_eq!(select(&log, anchor), Err("EMPTY_REGION"));
    }

    #[test]
    fn tm03_nothing_between_mark_and_call_is_empty() {
        let mut log = Log::default();
        log.user("find out");
        let anchor = Seq(1);
        assert_eq!(select(&log, anchor), Err("EMPTY_REGION"), "nothing after the anchor");
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Err("EMPTY_REGION"));
    }

    #[test]
    fn tm04_an_open_call_is_unbalanced() {
        let (mut log, anchor) = marked();
        log.assistant("look", &["a"]);
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Err("UNBALANCED"));
    }

    #[test]
    fn c001_12_the_end_walks_back_until_no_pair_is_split() {
        let (mut log, anchor) = marked();
        let first = log.assistant("look", &["a"]);
        let last = log.result("a", "seen");
        log.assistant("look again", &["b", "c"]);
        log.result("b", "seen");
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Ok((first.0, last.0, 2)));
    }

    #[test]
    fn tm06_an_orphan_and_then_the_fold_is_empty() {
        let (mut log, anchor) = marked();
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Err("EMPTY_REGION"));
    }

    /// K-14: exploration in parallel with the call that marks was reported as empty.
    #[test]
    fn tm07_what_ran_in_parallel_with_the_mark_is_folded() {
        let mut log = Log::default();
        log.user("find out");
        log.assistant("I mark and look", &["mark", "a", "b"]);
        let anchor = Seq(2);
        log.result("mark", "mark 1");
        let first = log.result("a", "seen");
        let last = log.result("b", "seen");
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Ok((first.0, last.0, 2)));
    }

    #[test]
    fn tm09_without_a_message_of_the_model_it_runs_to_the_end() {
        let mut log = Log::default();
        let first = log.user("one");
        let last = log.user("two");
        assert_eq!(select(&log, Seq(0)), Ok((first.0, last.0, 2)));
    }

    #[test]
    fn a_fold_that_nobody_called_for_runs_to_the_end() {
        let (mut log, anchor) = marked();
        let first = log.assistant("look", &["a"]);
        log.result("a", "seen");
        let last = log.assistant("it is so", &[]);
        assert_eq!(select_to(&log, anchor, &RegionEnd::Tail), Ok((first.0, last.0, 3)));
    }

    #[test]
    fn tm10_a_selection_is_the_same_by_start_end_and_length() {
        let (mut log, anchor) = marked();
        for call in ["a", "b", "c"] {
            log.assistant("look", &[call]);
            log.result(call, "seen");
        }
        log.assistant("I fold", &["fold"]);
        let region = |log: &Log| {
            let surface = Surface::fold(log.events()).unwrap();
            select_region(log.events(), &surface, anchor, &RegionEnd::BeforeLastAssistant).unwrap()
        };
        let before = region(&log);
        let mut noise = log.clone();
        noise.push("session/title", serde_json::json!({}));
        assert!(before.is_same(&region(&noise)));
        let mut other_start = log.clone();
        other_start.replace("compacted", before.start, before.nodes[1].seq);
        assert!(!before.is_same(&region(&other_start)));
        let mut other_length = log.clone();
        other_length.replace("compacted", before.nodes[2].seq, before.nodes[3].seq);
        assert!(!before.is_same(&region(&other_length)));
        let mut other_end = log;
        other_end.assistant("more", &[]);
        assert!(!before.is_same(&Region { end: Seq(99), ..region(&other_end) }));
    }

    #[test]
    fn tm19_an_empty_message_of_the_model_carries_no_call() {
        let (mut log, anchor) = marked();
        let first = log.assistant("look", &["a"]);
        let last = log.result("a", "seen");
        log.assistant("I fold", &["fold"]);
        log.assistant("", &[]);
        assert_eq!(select(&log, anchor), Ok((first.0, last.0, 2)));
    }

    /// The answer from before the mark was pruned after it: its new event is younger than the anchor but stands where
    /// the old one stood. A region by position alone would have reached back over everything in between.
    #[test]
    fn c001_20_what_stands_for_older_messages_stays() {
        let mut log = Log::default();
        log.assistant("look", &["old"]);
        let old = log.result("old", "a long answer");
        let prompt = log.user("find out");
        log.assistant("I mark", &["mark"]);
        let anchor = Seq(4);
        let mark = log.result("mark", "mark 1");
        let first = log.assistant("look", &["a"]);
        let last = log.result("a", "seen");
        log.replace("pruned", old, old);
        log.assistant("I fold", &["fold"]);
        assert_eq!(select(&log, anchor), Ok((first.0, last.0, 2)));

        // A summary of both sides of the mark stays; what remains of the exploration is folded.
        let mut both = log.clone();
        both.replace("summary", prompt, mark);
        assert_eq!(select(&both, anchor), Ok((first.0, last.0, 2)));

        // A summary of explored messages only is folded with the rest.
        let mut inside = log;
        let summary = inside.replace("summary", first, last);
        assert_eq!(select(&inside, anchor), Ok((summary.0, summary.0, 1)));
    }
}
