//! Marks and folds (001): where an exploration begins, and putting its report in its place, exactly once.

use crate::fold::{
    Explored, FoldError, FoldHost, FoldOutcome, FoldRequest, Folded, Region, Replacement, ReportSource, Surface,
    char_count, extract, find_report, select_region, summarise,
};
use crate::{Batch, EngineError, IndexError, IndexOp, LockError, Mark, Seq, SessionKey, Turn};

use super::Engine;

/// New marks are numbered again this often when somebody else takes the number first.
const ATTEMPTS: usize = 16;

impl Engine {
    /// Sets a mark in a session whose log has `log_length` events: everything from there on is what will be folded
    /// (001-01 to 05). Durable on return. `turn` is the open turn, `None` when the session is idle.
    ///
    /// Numbers count up over the whole workspace from 1 and are never given twice, by whatever process (001-02). The
    /// mark is in our index, never in the session's log.
    pub fn mark(
        &self,
        session: &SessionKey,
        log_length: u64,
        turn: Option<Turn>,
        objective: Option<String>,
    ) -> Result<Mark, EngineError> {
        let objective = objective.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        for _ in 0..ATTEMPTS {
            let mark = Mark {
                id: self.parts.index.newest_mark()? + 1,
                session: session.clone(),
                log_length,
                turn,
                objective: objective.clone(),
                folded: None,
                at: self.parts.clock.now(),
            };
            let batch = Batch { follows: None, ops: vec![IndexOp::NewMark { mark: mark.clone() }] };
            match self.parts.index.apply(&batch) {
                Ok(_) => return Ok(mark),
                // Somebody else took the number.
                Err(IndexError::Misfit { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(EngineError::Lock(LockError::Busy))
    }

    /// The newest mark of a session, folded or not (001-06).
    pub fn latest_mark(&self, session: &SessionKey) -> Result<Option<Mark>, EngineError> {
        Ok(self.parts.index.marks(session)?.pop())
    }

    /// True when the newest mark of a session waits to be folded (001-06).
    pub fn has_active(&self, session: &SessionKey) -> Result<bool, EngineError> {
        Ok(self.latest_mark(session)?.is_some_and(|mark| mark.folded.is_none()))
    }

    /// Stamps a mark as folded. Completing one that is not the newest leaves the session active; completing one again
    /// changes nothing (001-06).
    pub fn complete_fold(&self, session: &SessionKey, id: u64) -> Result<Mark, EngineError> {
        let mut tried = false;
        loop {
            let marks = self.parts.index.marks(session)?;
            let Some(mark) = marks.iter().find(|mark| mark.id == id) else {
                return Err(EngineError::NotFound {
                    given: format!("mark {id} of session {session}"),
                    choices: marks.iter().rev().take(10).map(|mark| mark.id.to_string()).collect(),
                });
            };
            if mark.folded.is_some() {
                return Ok(mark.clone());
            }
            let stamped = Mark { folded: Some(self.parts.clock.now()), ..mark.clone() };
            let ops = vec![IndexOp::PutMark { mark: stamped.clone() }];
            match self.parts.index.apply(&Batch { follows: None, ops }) {
                Ok(_) => return Ok(stamped),
                // Somebody else stamped it since we looked: theirs stands.
                Err(IndexError::Misfit { .. }) if !tried => tried = true,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Folds what followed the session's newest mark into a report (001-09 to 20).
    ///
    /// One fold per session at a time. The report is put into the log once per mark: where an earlier call came as far
    /// as that but not to the stamp, this one only stamps (K-15). A folded mark is refused ever after (001-19).
    ///
    /// # Errors
    /// Before the report is in the log nothing is written, and the mark stays active.
    pub fn fold(
        &self,
        request: &FoldRequest,
        host: &dyn FoldHost,
        source: &ReportSource<'_>,
    ) -> Result<FoldOutcome, FoldError> {
        let session = &request.session;
        let _held = self.parts.folds.try_hold(session).map_err(|error| match error {
            LockError::Busy => FoldError::InProgress { session: session.clone() },
            failed => failed.into(),
        })?;
        let mark = self.active_mark(session)?;
        if let Some((report, replacement)) = host.find_put(&mark)? {
            let events = host.events(session)?;
            let region = Region::between(&Surface::fold(&events)?, replacement.start, replacement.end);
            let region = region.ok_or(FoldError::Changed)?;
            return self.settle(&mark, &region, &replacement.report, &events, report);
        }
        let events = host.events(session)?;
        let surface = Surface::fold(&events)?;
        let anchor = Seq(mark.log_length);
        if let Some((region, report, text)) = find_report(&events, &surface, anchor)? {
            return self.settle(&mark, &region, &text, &events, report);
        }
        let region = select_region(&events, &surface, anchor, &request.end)?;
        let stop = || if request.cancel.is_cancelled() { Err(FoldError::Aborted) } else { Ok(()) };
        stop()?;
        let report = match source {
            ReportSource::Given(text) => (*text).to_owned(),
            ReportSource::Extract => extract(&events, &region, &mark, request.language)?,
            ReportSource::Model { summariser, config, agent } => {
                let of = Explored { events: &events, region: &region, mark: &mark, language: request.language };
                summarise(*summariser, config, *agent, &of, &request.cancel)?
            }
        };
        stop()?;
        if report.trim().is_empty() {
            return Err(FoldError::NoReport { attempts: 0, finish: None, output_tokens: None, reasoning_tokens: None });
        }
        let (report_chars, folded_chars) = (char_count(&report), region.text_chars(&events));
        if folded_chars > 0 && report_chars >= folded_chars {
            return Err(FoldError::Shrink { report: report_chars, region: folded_chars });
        }
        self.commit(&mark, &region, report, request, host)
    }

    /// Selects again, puts the report into the log, stamps the mark: nothing of ours in between (001-15).
    fn commit(
        &self,
        mark: &Mark,
        region: &Region,
        report: String,
        request: &FoldRequest,
        host: &dyn FoldHost,
    ) -> Result<FoldOutcome, FoldError> {
        let events = host.events(&mark.session)?;
        let surface = Surface::fold(&events)?;
        let again = select_region(&events, &surface, Seq(mark.log_length), &request.end);
        if !again.is_ok_and(|again| region.is_same(&again)) {
            return Err(FoldError::Changed);
        }
        let newest = self.active_mark(&mark.session)?;
        if newest.id != mark.id {
            return Err(FoldError::Changed);
        }
        let unique = self.parts.ids.next();
        let replacement = Replacement::new(&mark.session, mark.id, region, report, unique, self.parts.clock.now());
        let at = host.put_report(mark, &replacement)?;
        let outcome = self.settle(mark, region, &replacement.report, &events, at)?;
        Ok(FoldOutcome { recovered: false, ..outcome })
    }

    /// Stamps the mark of a report that is in the log.
    fn settle(
        &self,
        mark: &Mark,
        region: &Region,
        text: &str,
        events: &[crate::LogEvent],
        report: Seq,
    ) -> Result<FoldOutcome, FoldError> {
        self.complete_fold(&mark.session, mark.id)
            .map_err(|source| FoldError::Unstamped { mark: mark.id, source: Box::new(source) })?;
        let folded = Folded {
            mark_id: mark.id,
            folded_nodes: region.nodes.len() as u64,
            start: region.start,
            end: region.end,
            folded_chars: region.text_chars(events),
            report_chars: char_count(text),
        };
        Ok(FoldOutcome { folded, report, recovered: true })
    }

    fn active_mark(&self, session: &SessionKey) -> Result<Mark, FoldError> {
        let mark = self.latest_mark(session)?.ok_or_else(|| FoldError::NoCheckpoint { session: session.clone() })?;
        if mark.folded.is_some() {
            return Err(FoldError::EmptyRegion { why: format!("mark {} is folded already", mark.id) });
        }
        Ok(mark)
    }
}
