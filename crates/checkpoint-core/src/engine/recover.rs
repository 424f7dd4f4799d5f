//! What a crash left: forward or back, both exact (design § 7).

use crate::{
    Batch, Change, EngineError, FsError, IndexOp, Intent, IntentState, LockMode, ObjectId, OpState, Operation, Outcome,
    Plan, Recovery, RelPath, Status, Temporaries,
};

use super::Engine;

/// What going over the planned paths found.
#[derive(Default)]
struct Gone {
    left: Vec<RelPath>,
    stored: Vec<(RelPath, ObjectId)>,
}

impl Engine {
    /// The open transaction, if any.
    pub fn unfinished(&self) -> Result<Option<Intent>, EngineError> {
        Ok(self.parts.index.open_intent()?)
    }

    /// Finishes the open transaction or takes it back. This call is the decision; nothing is asked.
    pub fn recover(&self, how: Recovery) -> Result<Outcome, EngineError> {
        let _locked = self.lock(LockMode::Exclusive)?;
        let nothing = || EngineError::Nothing { why: "no operation is unfinished".to_owned(), hint: None };
        let intent = self.parts.index.open_intent()?.ok_or_else(nothing)?;
        let lost = || crate::IndexError::Damaged {
            what: "an intent without its operation".to_owned(),
            source: "not found".into(),
        };
        let operation = self.parts.index.operation(&intent.operation)?.ok_or_else(lost)?;
        if intent.state == IntentState::Forking && how == Recovery::Back {
            return Err(EngineError::OnlyForward { operation: operation.id });
        }
        let changes = self.read_plan(&intent.plan)?;
        match (intent.state, how) {
            (IntentState::Forking, _) => self.finish_fork(&intent, &operation, &changes),
            (_, Recovery::Finish) => self.go_forward(&intent, operation, &changes),
            (_, Recovery::Back) => self.go_back(&intent, &operation, &changes),
        }
    }

    fn go_forward(
        &self,
        intent: &Intent,
        mut operation: Operation,
        changes: &[Change],
    ) -> Result<Outcome, EngineError> {
        let mut gone = self.settle_all(&intent.operation, changes)?;
        let steps: Vec<(usize, Change)> = changes.iter().cloned().enumerate().collect();
        self.run(&intent.operation, &steps, &mut gone)?;
        let mut overtaken = self.overtaken(changes)?;
        overtaken.extend(gone.left.iter().cloned());
        operation.state =
            if overtaken.is_empty() && operation.state != OpState::Partial { OpState::Done } else { OpState::Partial };
        operation.stored.extend(gone.stored.iter().cloned());
        let mut ops = self.closing_ops(&operation, &overtaken)?;
        ops.push(match &intent.fork {
            None => IndexOp::CloseIntent { operation: operation.id },
            Some(_) => IndexOp::AdvanceIntent { operation: operation.id, from: intent.state, to: IntentState::Forking },
        });
        self.parts.index.apply(&Batch { follows: None, ops })?;
        let mut outcome = outcome(&operation, intent, changes, &overtaken, gone);
        if intent.fork.is_some() {
            outcome.child = self.finish_fork(intent, &operation, changes)?.child;
        }
        Ok(outcome)
    }

    fn finish_fork(&self, intent: &Intent, operation: &Operation, changes: &[Change]) -> Result<Outcome, EngineError> {
        let mut outcome = outcome(operation, intent, changes, &[], Gone::default());
        if let Some(request) = &intent.fork {
            if let Err(source) = self.fork(request) {
                outcome.status = Status::Partial;
                return Err(EngineError::NotForked { outcome: Box::new(outcome), source });
            }
            outcome.child = Some(request.child.clone());
        }
        self.parts
            .index
            .apply(&Batch { follows: None, ops: vec![IndexOp::CloseIntent { operation: operation.id }] })?;
        Ok(outcome)
    }

    fn go_back(&self, intent: &Intent, operation: &Operation, changes: &[Change]) -> Result<Outcome, EngineError> {
        let mut gone = self.settle_all(&intent.operation, changes)?;
        let steps: Vec<(usize, Change)> =
            changes.iter().map(Change::inverse).enumerate().collect::<Vec<_>>().into_iter().rev().collect();
        self.run(&intent.operation, &steps, &mut gone)?;
        self.close_rolled_back(operation, &gone.stored)?;
        let mut result = outcome(operation, intent, changes, &gone.left.clone(), gone);
        let rest = if result.notes.is_empty() { "everything" } else { "everything else" };
        result.notes.push(format!("{rest} is as it was before the operation"));
        result.removed.clear();
        Ok(result)
    }

    /// Settles the temporaries of every change before anything is applied.
    fn settle_all(&self, operation: &crate::OpId, changes: &[Change]) -> Result<Gone, EngineError> {
        let temporaries = Temporaries(*operation);
        let mut gone = Gone::default();
        for (n, change) in changes.iter().enumerate() {
            let settled = self.parts.files.settle(change, &temporaries, n, &*self.parts.snapshots)?;
            gone.stored.extend(settled.stored.map(|blob| (change.path.clone(), blob)));
        }
        Ok(gone)
    }

    /// Applies what is not applied yet; a path that holds somebody else's bytes is left to them.
    fn run(&self, operation: &crate::OpId, steps: &[(usize, Change)], gone: &mut Gone) -> Result<(), EngineError> {
        let temporaries = Temporaries(*operation);
        for (n, change) in steps {
            match self.parts.files.apply(change, &temporaries, *n, &*self.parts.snapshots) {
                Ok(()) => {}
                // A directory that is closed last has its final mode already.
                Err(FsError::Changed { found, .. }) if found.is_dir() && change.after.is_dir() => {}
                Err(FsError::Changed { path, stored, .. }) => {
                    gone.stored.extend(stored.map(|blob| (path.clone(), blob)));
                    gone.left.push(path);
                }
                Err(FsError::NotEmpty { path } | FsError::ThroughLink { path }) => gone.left.push(path),
                Err(error) => return Err(error.into()),
            }
        }
        let touched: Vec<RelPath> = steps.iter().map(|(_, change)| change.path.clone()).collect();
        self.parts.files.sync(&touched)?;
        Ok(())
    }
}

fn outcome(operation: &Operation, intent: &Intent, changes: &[Change], left: &[RelPath], gone: Gone) -> Outcome {
    let mine = |c: &&Change| !left.contains(&c.path) && !c.before.is_dir() && !c.after.is_dir();
    let list = |removed: bool| {
        changes.iter().filter(mine).filter(|c| c.after.is_absent() == removed).map(|c| c.path.clone()).collect()
    };
    Outcome {
        operation: Some(operation.id),
        status: if left.is_empty() { Status::Restored } else { Status::Partial },
        plan: Plan { changes: changes.to_vec(), ..Plan::default() },
        restored: list(false),
        removed: list(true),
        guard: Some(intent.guard),
        target: None,
        child: None,
        context_only: false,
        notes: left.iter().map(|path| format!("{path} was changed by somebody else and left alone")).collect(),
        stored: gone.stored,
    }
}
