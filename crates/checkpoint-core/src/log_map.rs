//! Where the turns and steps of one log begin and end, and where points lie in it (contract 002-05, theme B).
//!
//! Nothing here is stored: a point remembers the turn and step it was made in, and its place in the log is looked up
//! when somebody asks. So a point that was made before its step ended is found as soon as the log shows the end.

use crate::{
    Beat, BoundarySeq, Point, PointKind, Seq, SessionError, SessionKey, Step, Turn, boundary_before, boundary_of_turn,
};

/// One log, by its turns and steps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogMap {
    beats: Vec<(Seq, Beat)>,
}

impl LogMap {
    /// `beats`: the log from its first event on, in order.
    pub const fn new(beats: Vec<(Seq, Beat)>) -> Self {
        Self { beats }
    }

    /// What matters of each event, in order.
    pub fn beats(&self) -> &[(Seq, Beat)] {
        &self.beats
    }

    /// True when the log has an event there.
    pub fn has(&self, at: Seq) -> bool {
        self.beats.binary_search_by_key(&at, |(seq, _)| *seq).is_ok()
    }

    fn first(&self, wanted: Beat) -> Option<Seq> {
        self.beats.iter().find_map(|(seq, beat)| (*beat == wanted).then_some(*seq))
    }

    fn last(&self, wanted: impl Fn(Beat) -> bool) -> Option<Seq> {
        self.beats.iter().rev().find_map(|(seq, beat)| wanted(*beat).then_some(*seq))
    }

    /// The beginning of a turn.
    pub fn turn_start(&self, turn: Turn) -> Option<Seq> {
        self.first(Beat::TurnStart(turn))
    }

    /// The end of a turn; `None` while it is open.
    pub fn turn_end(&self, turn: Turn) -> Option<BoundarySeq> {
        boundary_of_turn(&self.beats, turn)
    }

    /// The cut just before a turn; `None` for an empty child.
    ///
    /// # Errors
    /// [`SessionError::NoTurn`] when the log has no such turn.
    pub fn before_turn(&self, session: &SessionKey, turn: Turn) -> Result<Option<BoundarySeq>, SessionError> {
        let start = self.turn_start(turn).ok_or_else(|| SessionError::NoTurn { session: session.clone(), turn })?;
        Ok(boundary_before(&self.beats, start))
    }

    /// The cut at the end of a turn.
    ///
    /// # Errors
    /// [`SessionError::OpenTurn`] while the turn is open, [`SessionError::NoTurn`] when the log has no such turn.
    pub fn after_turn(&self, session: &SessionKey, turn: Turn) -> Result<BoundarySeq, SessionError> {
        self.turn_end(turn).ok_or_else(|| match self.turn_start(turn) {
            Some(seq) => SessionError::OpenTurn { session: session.clone(), seq, turn },
            None => SessionError::NoTurn { session: session.clone(), turn },
        })
    }

    /// True when nothing follows the cut: a child made there would be the same conversation again.
    ///
    /// Events between turns count: a summary or a message of a plugin changes what the model sees.
    pub fn ends_at(&self, cut: Option<BoundarySeq>) -> bool {
        self.beats.last().map(|(seq, _)| *seq) == cut.map(BoundarySeq::seq)
    }

    /// The turn that is open after event `at`, or between turns the last one that ended.
    pub fn turn_at(&self, at: Seq) -> Option<Turn> {
        let upto = self.beats.partition_point(|(seq, _)| *seq <= at);
        self.beats.iter().take(upto).rev().find_map(|(_, beat)| match beat {
            Beat::TurnStart(turn) | Beat::TurnEnd(turn) => Some(*turn),
            _ => None,
        })
    }

    /// Every turn that began, in order.
    pub fn turns(&self) -> Vec<Turn> {
        let began = |(_, beat): &(Seq, Beat)| match beat {
            Beat::TurnStart(turn) => Some(*turn),
            _ => None,
        };
        self.beats.iter().filter_map(began).collect()
    }

    /// The latest end of a step of that number, whatever its turn.
    pub fn step_end(&self, step: Step) -> Option<Seq> {
        self.last(|beat| matches!(beat, Beat::StepEnd(_, s) if s == step))
    }

    /// Where a point lies: where the conversation was when it was made, else the end of the step or turn that it says it
    /// belongs to. `None` while that has not ended, and for a point that says nothing.
    ///
    /// A position before the point's own turn is the cut that it would have had, not its place: it stands in only until
    /// the log shows the turn.
    pub fn place(&self, point: &Point) -> Option<Seq> {
        let told = point.position.as_ref().map(|position| position.seq);
        match (told, point.turn) {
            (Some(seq), Some(turn)) if self.turn_at(seq) != Some(turn) => self.bound(point, turn).or(Some(seq)),
            (Some(seq), _) => Some(seq),
            (None, Some(turn)) => self.bound(point, turn),
            (None, None) => None,
        }
    }

    /// The place of a point that only names its turn and step.
    fn bound(&self, point: &Point, turn: Turn) -> Option<Seq> {
        match (point.kind, point.step) {
            (PointKind::TurnStart, _) => self.turn_start(turn),
            (PointKind::TurnEnd, _) => self.turn_end(turn).map(BoundarySeq::seq),
            (_, Some(step)) => self.last(|beat| beat == Beat::StepEnd(turn, step)),
            (_, None) => None,
        }
    }

    /// The point at or before `at`: the one that lies furthest on; of several there, the newest.
    ///
    /// Points without a content are passed over.
    pub fn nearest<'a>(&self, points: &'a [Point], at: Seq) -> Option<&'a Point> {
        let placed = points.iter().filter(|p| p.snapshot.is_some()).filter_map(|p| Some((self.place(p)?, p)));
        placed.filter(|(seq, _)| *seq <= at).max_by_key(|(seq, p)| (*seq, p.ord)).map(|(_, p)| p)
    }
}

#[cfg(test)]
#[path = "log_map_tests.rs"]
mod tests;
