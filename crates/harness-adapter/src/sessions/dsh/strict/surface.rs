//! The messages that the model sees, by position: what may be replaced by what.

use std::collections::{BTreeMap, HashMap};

use checkpoint_core::{LogEvent, Seq, SurfaceOp};

use super::{Problems, Rule};

/// What the surface must remember of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// A result, with a hash of its call's id.
    Result(u64),
    /// A system message.
    System,
    /// Any other.
    Other,
}

/// The surface. A message keeps its own seq as its position until it replaces others; then it takes the position of the
/// first of them, so positions stay in order without renumbering.
#[derive(Debug, Default)]
pub(super) struct Surface {
    nodes: BTreeMap<u64, (Seq, Node)>,
    moved: HashMap<Seq, u64>,
    head: Option<Seq>,
}

impl Surface {
    /// Takes a message in. `node`: what it is.
    pub(super) fn take(&mut self, event: &LogEvent, node: Node, problems: &mut Problems) {
        let Some(op) = event.surface else {
            problems.add(Rule::SurfaceOp, event.seq, format!("this {} does not say what it does", event.kind));
            return;
        };
        let sources = check_sources(event, problems);
        if node == Node::System && !self.nodes.is_empty() && self.head.is_none() {
            problems.add(Rule::SystemHead, event.seq, "a system message comes after other messages".to_owned());
        }
        match op {
            SurfaceOp::Append => {
                if node == Node::System && self.nodes.is_empty() {
                    self.head = Some(event.seq);
                }
                self.nodes.insert(event.seq.0, (event.seq, node));
            }
            SurfaceOp::Replace { start, end } => self.replace(event, node, (start, end), &sources, problems),
        }
    }

    /// `sources` in order.
    fn replace(
        &mut self,
        event: &LogEvent,
        node: Node,
        (start, end): (Seq, Seq),
        sources: &[Seq],
        problems: &mut Problems,
    ) {
        let Some((first, last)) = self.span(start, end) else {
            let message = format!("messages {start} to {end} are no piece of the current surface");
            problems.add(Rule::SurfaceNode, event.seq, message);
            return;
        };
        let replaced: Vec<_> = self.nodes.range(first..=last).map(|(at, (seq, node))| (*at, *seq, *node)).collect();
        if let Some((_, missing, _)) = replaced.iter().find(|(_, seq, _)| sources.binary_search(seq).is_err()) {
            let message = format!("message {missing} is replaced but is not among the sources");
            problems.add(Rule::SurfaceSources, event.seq, message);
        }
        if matches!(node, Node::Result(_)) && !matches!(replaced.as_slice(), [(_, _, old)] if *old == node) {
            let message = format!("this result replaces messages {start} to {end}");
            problems.add(Rule::SurfaceResult, event.seq, message);
        }
        if let Some(head) = self.head.filter(|head| replaced.iter().any(|(_, seq, _)| seq == head)) {
            if node == Node::System && replaced.len() == 1 {
                self.head = Some(event.seq);
            } else {
                problems.add(Rule::SystemHead, event.seq, format!("system message {head} is replaced"));
                self.head = None;
            }
        }
        for (at, seq, _) in replaced {
            self.nodes.remove(&at);
            self.moved.remove(&seq);
        }
        self.nodes.insert(first, (event.seq, node));
        self.moved.insert(event.seq, first);
    }

    /// Whether `seqs` are exactly the messages from `start` to `end`, without the system message.
    pub(super) fn is_exactly(&self, start: Seq, end: Seq, seqs: &[u64]) -> bool {
        let Some((first, last)) = self.span(start, end) else { return false };
        let there = self.nodes.range(first..=last).map(|(_, (seq, _))| seq.0);
        there.eq(seqs.iter().copied()) && !self.head.is_some_and(|head| seqs.contains(&head.0))
    }

    /// The positions of the messages `start` and `end`, when both are on the surface and in order.
    fn span(&self, start: Seq, end: Seq) -> Option<(u64, u64)> {
        let position = |seq: Seq| {
            let at = self.moved.get(&seq).copied().unwrap_or(seq.0);
            self.nodes.get(&at).filter(|(there, _)| *there == seq).map(|_| at)
        };
        let (first, last) = (position(start)?, position(end)?);
        (first <= last).then_some((first, last))
    }
}

/// Sources are distinct, earlier, and only of an assistant message none. Gives them in order.
fn check_sources(event: &LogEvent, problems: &mut Problems) -> Vec<Seq> {
    let Some(sources) = &event.sources else { return Vec::new() };
    let mut sorted = sources.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let wrong = if sorted.len() != sources.len() {
        Some("an event is named twice among the sources")
    } else if sorted.last().is_some_and(|last| *last >= event.seq) {
        Some("a source is not earlier")
    } else if sorted.is_empty() && &*event.kind != "assistant/message" {
        Some("the list of sources is empty")
    } else {
        None
    };
    if let Some(wrong) = wrong {
        problems.add(Rule::SurfaceSources, event.seq, wrong.to_owned());
    }
    sorted
}
