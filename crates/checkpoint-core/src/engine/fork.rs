//! The conversation's half of an operation: the child that the host is asked for (design § 7 step 8).

use crate::{
    Batch, BoundarySeq, Cut, EngineError, EngineEvent, ForkRequest, IndexError, IndexOp, Intent, OpId, OpState,
    Operation, Outcome, PointId, Session, SessionError, SessionHeader, SessionKey, Status, uuid,
};

use super::Engine;
use super::notice::{Done, notice};
use super::restore::{Draft, Goal, Order};

impl Engine {
    /// An id for the child, chosen before anything is asked of the host: made of a version 4 UUID.
    pub(super) fn child_id(&self, cut: &Cut) -> String {
        self.parts.sessions.name_child(&cut.session, &uuid(self.parts.ids.next()))
    }

    /// The conversation's half: call with the locks released, the host's own hooks want to capture while it makes the
    /// child (model F22); the intent keeps writers out.
    ///
    /// When the host says no the files stay and the intent stays: `recover --finish` asks again for the same child. When
    /// no answer can ever be another, or with `give_up`, the operation is closed as it is, so that it does not stand in
    /// everybody's way.
    pub(super) fn fork_and_close(
        &self,
        intent: &Intent,
        mut outcome: Outcome,
        give_up: bool,
    ) -> Result<Outcome, EngineError> {
        let close = IndexOp::CloseIntent { operation: intent.operation };
        if let Some(request) = &intent.fork {
            if let Err(source) = self.fork(intent, request) {
                outcome.status = Status::Partial;
                let closed = give_up || source.is_final();
                if closed {
                    let mut ops = Vec::new();
                    if let Some(operation) = self.parts.index.operation(&intent.operation)? {
                        let left = Operation { state: OpState::Partial, child: None, ..operation };
                        ops.push(IndexOp::UpdateOperation { operation: Box::new(left) });
                    }
                    ops.push(close);
                    self.close(&intent.operation, ops)?;
                }
                return Err(EngineError::NotForked { outcome: Box::new(outcome), closed, source });
            }
            outcome.child = Some(request.child.clone());
        }
        self.close(&intent.operation, vec![close])?;
        Ok(outcome)
    }

    /// Records the end of a fork. No lock is held here: somebody else may have recovered the operation and come first;
    /// then their record stands.
    fn close(&self, operation: &OpId, ops: Vec<IndexOp>) -> Result<(), EngineError> {
        match self.parts.index.apply(&Batch { follows: None, ops }) {
            Err(error @ IndexError::Misfit { .. }) => match self.parts.index.open_intent()? {
                Some(open) if open.operation == *operation => Err(error.into()),
                _ => Ok(()),
            },
            applied => {
                applied?;
                if let Some(closed) = self.parts.index.operation(operation)? {
                    self.tell(&EngineEvent::Ended { operation: closed.id, state: closed.state });
                }
                Ok(())
            }
        }
    }

    /// Asks for the child, unless it is there already. A log that was rewritten since the cut was chosen is not forked.
    fn fork(&self, intent: &Intent, request: &ForkRequest) -> Result<(), SessionError> {
        if !self.has_child(intent, request)? {
            self.refuse_rewritten(&request.source, request.boundary, intent.prefix.as_ref())?;
            let made = match &intent.prefix {
                Some(prefix) => self.parts.sessions.fork_exactly(request, prefix),
                None => self.parts.sessions.fork(request),
            };
            match made {
                // Whoever recovers the operation at the same time asks for the same child.
                Err(SessionError::AlreadyExists(_)) if self.has_child(intent, request)? => {}
                made => drop(made?),
            }
        }
        let child = SessionKey::new(request.source.harness(), &request.child);
        if let Ok(key) = child {
            let session = Session {
                key,
                parent: Some(request.source.clone()),
                seed_length: Some(request.boundary.map_or(0, |b: BoundarySeq| b.seq().0 + 1)),
                subagent_of: None,
                turn: None,
                seen: self.parts.clock.now(),
            };
            if let Err(error) = self.register_session(session) {
                tracing::warn!(%error, "the child session could not be registered");
            }
        }
        Ok(())
    }

    /// True when the child is there. What it shares is compared with the digest of the intent where its source cannot
    /// tell any more: a crash may have taken the end of that log after the child was made (K-45).
    fn has_child(&self, intent: &Intent, request: &ForkRequest) -> Result<bool, SessionError> {
        let refused = match self.parts.sessions.find_child(request) {
            Ok(found) => return Ok(found.is_some()),
            Err(refused) => refused,
        };
        let (Some(boundary), Some(prefix)) = (request.boundary, &intent.prefix) else { return Err(refused) };
        let Ok(child) = SessionKey::new(request.source.harness(), &request.child) else { return Err(refused) };
        let ours = |header: &SessionHeader| {
            header.parent.as_ref() == Some(&request.source) && header.seed_length == boundary.seq().0 + 1
        };
        let same = self.parts.sessions.header(&child).is_ok_and(|header| ours(&header))
            && self.parts.sessions.prefix_digest(&child, boundary.seq()).is_ok_and(|own| own == *prefix);
        if same { Ok(true) } else { Err(refused) }
    }
}

/// What the host is asked for; nothing when only files go back.
pub(super) fn fork_request(
    order: &Order,
    draft: &Draft,
    operation: OpId,
    guard: PointId,
    child: &str,
) -> Option<ForkRequest> {
    let cut = order.cut.as_ref()?;
    let plan = &draft.preview.plan;
    // A restore that leaves something out does not pretend to the model that it did not (design § 7, "Blocked").
    if !plan.blocked.is_empty() && !order.fork_anyway {
        return None;
    }
    let goal = match &order.goal {
        Goal::Point(point) => format!("to point {}", point.id.short()),
        Goal::Reverse(reversed) => format!("to before operation {}", reversed.id.short()),
        Goal::Chat => String::new(),
    };
    let done = Done { operation, guard, cut, plan, files: draft.preview.files, goal: &goal };
    Some(ForkRequest {
        source: cut.session.clone(),
        boundary: cut.boundary,
        child: child.to_owned(),
        notice: Some(notice(&done)),
    })
}
