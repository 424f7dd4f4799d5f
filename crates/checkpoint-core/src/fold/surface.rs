//! The surface of a log: the messages that the model sees (format notes, "Event rows").

use crate::{LogEvent, Seq, SurfaceOp, Turn};

/// One message on the surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SurfaceNode {
    /// Position of its event.
    pub seq: Seq,
    /// Where the event is in the slice that was folded.
    pub index: usize,
    /// The oldest message that it stands for: its own position, or that of the first one it replaced, however often.
    ///
    /// Along the surface these only grow, while positions of replacements do not.
    pub origin: Seq,
}

/// One replacement in the course of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replaced {
    /// Where the replacing event is in the slice.
    pub index: usize,
    /// What it took the place of, in order; never empty.
    pub nodes: Vec<SurfaceNode>,
}

/// The surface at the end of a log, and every replacement on the way there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Surface {
    /// The messages, in the order in which the model sees them.
    pub nodes: Vec<SurfaceNode>,
    /// The replacements, in the order of the log.
    pub replaced: Vec<Replaced>,
}

/// A replacement names messages that are not on the surface.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("event {seq} replaces {start}..{end}, which is no range of the surface there")]
pub struct SurfaceError {
    /// The event.
    pub seq: Seq,
    /// First message it names.
    pub start: Seq,
    /// Last message it names.
    pub end: Seq,
}

impl Surface {
    /// Plays the surface operations of a log, from its first event on.
    ///
    /// # Errors
    /// Both ends of a replacement must be on the surface, the first not after the last.
    pub fn fold(events: &[LogEvent]) -> Result<Self, SurfaceError> {
        let mut surface = Self::default();
        for (index, event) in events.iter().enumerate() {
            match event.surface {
                None => {}
                Some(SurfaceOp::Append) => {
                    surface.nodes.push(SurfaceNode { seq: event.seq, index, origin: event.seq });
                }
                Some(SurfaceOp::Replace { start, end }) => {
                    let bad = || SurfaceError { seq: event.seq, start, end };
                    let from = surface.position(start).ok_or_else(bad)?;
                    let to = surface.position(end).filter(|to| *to >= from).ok_or_else(bad)?;
                    let origin = surface.nodes.get(from).ok_or_else(bad)?.origin;
                    let node = SurfaceNode { seq: event.seq, index, origin };
                    let nodes = surface.nodes.splice(from..=to, [node]).collect();
                    surface.replaced.push(Replaced { index, nodes });
                }
            }
        }
        Ok(surface)
    }

    /// Where on the surface the message of event `seq` is. Replacements name recent messages, so it looks from the end.
    pub fn position(&self, seq: Seq) -> Option<usize> {
        self.nodes.iter().rposition(|node| node.seq == seq)
    }
}

/// Length of a log: the position that the next event will get, and so the anchor of a mark made now (001-03).
pub fn log_length(events: &[LogEvent]) -> u64 {
    events.last().map_or(0, |event| event.seq.0 + 1)
}

/// The turn that is open at the end of a log; `None` when the session is idle (001-04).
pub fn open_turn(events: &[LogEvent]) -> Option<Turn> {
    #[derive(serde::Deserialize)]
    struct Turned {
        turn: u32,
    }
    let last = events.iter().rev().find(|event| matches!(&*event.kind, "turn/start" | "turn/end"))?;
    let started = &*last.kind == "turn/start";
    started.then(|| last.read::<Turned>().ok()).flatten().map(|turned| Turn(turned.turn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::test_log::Log;

    #[test]
    fn replacements_keep_the_place_and_the_origin_of_what_they_replace() {
        let mut log = Log::default();
        let [a, b, c] = [log.user("a"), log.user("b"), log.user("c")];
        let summary = log.replace("b and c", b, c);
        let surface = Surface::fold(log.events()).unwrap();
        assert_eq!(surface.nodes.iter().map(|node| node.seq).collect::<Vec<_>>(), [a, summary]);
        assert_eq!(surface.nodes[1].origin, b);
        assert_eq!(surface.replaced[0].nodes.len(), 2);
        // Twice replaced: still the oldest.
        let again = log.replace("shorter", summary, summary);
        let surface = Surface::fold(log.events()).unwrap();
        assert_eq!((surface.nodes[1].seq, surface.nodes[1].origin), (again, b));
    }

    #[test]
    fn a_replacement_of_what_is_not_there_is_an_error_that_names_it() {
        let mut log = Log::default();
        let [a, b] = [log.user("a"), log.user("b")];
        for (start, end) in [(b, a), (Seq(9), b), (a, Seq(9))] {
            let mut bad = log.clone();
            let seq = bad.replace("x", start, end);
            assert_eq!(Surface::fold(bad.events()).unwrap_err(), SurfaceError { seq, start, end });
        }
    }

    #[test]
    fn c001_03_04_the_anchor_is_the_length_and_an_idle_session_has_no_turn() {
        let mut log = Log::default();
        assert_eq!((log_length(log.events()), open_turn(log.events())), (0, None));
        log.push("turn/start", serde_json::json!({"turn": 3}));
        log.user("hello");
        assert_eq!((log_length(log.events()), open_turn(log.events())), (2, Some(Turn(3))));
        log.push("turn/end", serde_json::json!({"turn": 3, "reason": {"kind": "completed"}}));
        assert_eq!(open_turn(log.events()), None);
    }
}
