//! What a crash left: forward or back, both exact (design § 7).

use crate::{
    Batch, Change, EngineError, EngineEvent, FsError, Intent, IntentState, LockMode, OpState, Operation, Outcome, Plan,
    Recovery, RelPath, Status, Temporaries,
};

use super::transaction::{Rest, end_of_files, settled};
use super::{Engine, Locked};

impl Engine {
    /// The open transaction, if any.
    pub fn unfinished(&self) -> Result<Option<Intent>, EngineError> {
        Ok(self.parts.index.open_intent()?)
    }

    /// Finishes the open transaction or takes it back. This call is the decision; nothing is asked.
    pub fn recover(&self, how: Recovery) -> Result<Outcome, EngineError> {
        let locked = self.lock(LockMode::Exclusive)?;
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
        let give_up = how == Recovery::FinishFiles;
        match (intent.state, how) {
            (IntentState::Forking, _) => {
                drop(locked);
                self.fork_and_close(&intent, outcome(&operation, &intent, &changes, &[], Rest::default()), give_up)
            }
            (_, Recovery::Finish | Recovery::FinishFiles) => {
                self.go_forward(&intent, operation, &changes, locked, give_up)
            }
            (_, Recovery::Back) => self.go_back(&intent, &operation, &changes),
        }
    }

    fn go_forward(
        &self,
        intent: &Intent,
        mut operation: Operation,
        changes: &[Change],
        locked: Locked,
        give_up: bool,
    ) -> Result<Outcome, EngineError> {
        let steps: Vec<(usize, Change)> = changes.iter().cloned().enumerate().collect();
        let gone = self.settle_and_run(&operation, changes, &steps)?;
        let mut overtaken = self.overtaken(changes)?;
        overtaken.extend(gone.left.iter().cloned());
        let configured = self.configure(intent.host_state);
        let whole = overtaken.is_empty() && configured.failed.is_none() && operation.state != OpState::Partial;
        operation.state = if whole { OpState::Done } else { OpState::Partial };
        operation.stored.extend(gone.stored.iter().cloned());
        let mut ops = self.closing_ops(&operation, &overtaken)?;
        ops.push(end_of_files(intent));
        self.parts.index.apply(&Batch { follows: None, ops })?;
        drop(locked);
        let mut outcome = outcome(&operation, intent, changes, &overtaken, gone);
        outcome.notes.extend(configured.notes);
        if configured.failed.is_some() {
            outcome.status = Status::Partial;
        }
        if intent.fork.is_some() {
            outcome = self.fork_and_close(intent, outcome, give_up)?;
        } else {
            self.tell(&EngineEvent::Ended { operation: operation.id, state: operation.state });
        }
        settled(outcome, configured.failed)
    }

    fn go_back(&self, intent: &Intent, operation: &Operation, changes: &[Change]) -> Result<Outcome, EngineError> {
        let steps: Vec<(usize, Change)> =
            changes.iter().map(Change::inverse).enumerate().collect::<Vec<_>>().into_iter().rev().collect();
        let gone = self.settle_and_run(operation, changes, &steps)?;
        let configured = self.unconfigure(intent.host_state, &intent.guard)?;
        self.close_rolled_back(operation, &gone.stored)?;
        let mut result = outcome(operation, intent, changes, &gone.left.clone(), gone);
        let rest = if result.notes.is_empty() { "everything" } else { "everything else" };
        result.notes.push(format!("{rest} is as it was before the operation"));
        result.notes.extend(configured);
        result.removed.clear();
        Ok(result)
    }

    /// Settles the temporaries of every change, then takes the steps. What was stored for others is kept, whatever else
    /// goes wrong.
    fn settle_and_run(
        &self,
        operation: &Operation,
        changes: &[Change],
        steps: &[(usize, Change)],
    ) -> Result<Rest, EngineError> {
        let mut gone = Rest::default();
        let done = self.settle_all(&operation.id, changes, &mut gone);
        let done = done.and_then(|()| self.run(&operation.id, steps, &mut gone));
        if done.is_err() {
            self.keep_stored(operation, &gone.stored)?;
        }
        done.map(|()| gone)
    }

    fn settle_all(&self, operation: &crate::OpId, changes: &[Change], gone: &mut Rest) -> Result<(), EngineError> {
        let temporaries = Temporaries(*operation);
        for (n, change) in changes.iter().enumerate() {
            let settled = self.parts.files.settle(change, &temporaries, n, &*self.parts.snapshots)?;
            gone.stored.extend(settled.stored.map(|blob| (change.path.clone(), blob)));
        }
        Ok(())
    }

    /// Applies what is not applied yet; a path that holds somebody else's bytes is left to them.
    fn run(&self, operation: &crate::OpId, steps: &[(usize, Change)], gone: &mut Rest) -> Result<(), EngineError> {
        let temporaries = Temporaries(*operation);
        for (n, change) in steps {
            match self.parts.files.apply(change, &temporaries, *n, &*self.parts.snapshots) {
                Ok(()) => {}
                // A directory that is closed last has its final mode already.
                Err(FsError::Changed { found, .. }) if found.is_dir() && change.after.is_dir() => {}
                // Or was never made.
                Err(FsError::Changed { found, .. })
                    if found.is_absent() && change.before.is_dir() && change.after.is_dir() => {}
                Err(error) => gone.leave(change, error)?,
            }
        }
        let touched: Vec<RelPath> = steps.iter().map(|(_, change)| change.path.clone()).collect();
        self.parts.files.sync(&touched)?;
        Ok(())
    }
}

fn outcome(operation: &Operation, intent: &Intent, changes: &[Change], left: &[RelPath], gone: Rest) -> Outcome {
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
        cut: None,
        child: None,
        context_only: changes.is_empty() && intent.fork.is_some(),
        notes: left.iter().map(|path| format!("{path} was changed by somebody else and left alone")).collect(),
        stored: gone.stored,
    }
}
