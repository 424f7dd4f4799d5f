//! From a report to captures.

use std::time::{Duration, Instant};

use checkpoint_core::{EngineError, PointKind, PointQuery, Position, SaveRequest, SessionKey, Step, Turn};
use harness_adapter::hooks::answer::{Answer, reaches_model, reaches_user};
use harness_adapter::hooks::number::number;
use harness_adapter::hooks::state::{OpenTurn, SessionState};
use harness_adapter::hooks::turns::{Action, Capture, step};
use harness_adapter::hooks::{Agent, HookEvent, What};
use harness_adapter::sessions::expected_position;
use harness_adapter::told;
use index_store::Standing;

use super::store::{self, Kept};
use super::{place, process};
use crate::approve::Consent;
use crate::compose::{self, Located, Opened};
use crate::config::Settings;
use crate::error::{CliError, one_line};
use crate::run::Run;
use crate::verbs::{asker, save};

/// At the start and the end of a turn, and for the first capture, an agent waits longer: without these points a turn
/// cannot be taken back.
const TURN: u32 = 4;
const FIRST: Duration = Duration::from_secs(15);
/// A capture is not even tried with less.
const LEAST: Duration = Duration::from_millis(100);
/// Points after which a turn's end lets retention run.
const SWEEP_AFTER: u32 = 256;

/// What came of a report.
#[derive(Debug, Default)]
pub(super) struct Reaction {
    /// To be said.
    pub(super) answer: Answer,
    /// To be tidied once it was said: the index after a turn, with `true` all of it.
    tidy: Option<(Box<Opened>, bool)>,
}

impl Reaction {
    /// What nobody should wait for.
    pub(super) fn afterwards(self) {
        match self.tidy {
            Some((opened, true)) => {
                save::retain(&opened);
                store::sweep(opened.located.dir.path());
            }
            Some((opened, false)) => crate::verbs::tidy_up(&opened),
            None => {}
        }
    }
}

/// One report at work.
struct Hooked<'a> {
    run: &'a Run,
    event: HookEvent,
    begun: Instant,
    located: Located,
    settings: Settings,
    opened: Option<Opened>,
    /// Why a capture did not happen.
    missed: Option<String>,
    /// Not even the gap could be recorded.
    unrecorded: bool,
}

/// Does what follows from a report. Nothing that fails goes further than the answer.
pub(super) fn react(run: &Run, event: &HookEvent, begun: Instant) -> Reaction {
    let located = match place::locate(run, event) {
        Ok(Some(located)) => located,
        Ok(None) => return Reaction::default(),
        // There is no place to remember that it was told: only prompts carry it.
        Err(error) => return unplaced(event, &error),
    };
    let root = located.root().to_owned();
    // A malformed file of the workspace is something an agent can write: it may not switch captures off.
    let settings = match Settings::load(&run.world, Some(&root), true) {
        Ok(settings) => settings,
        Err(error) => return unplaced(event, &error),
    };
    let mut hooked =
        Hooked { run, event: event.clone(), begun, located, settings, opened: None, missed: None, unrecorded: false };
    let mut reaction = Reaction::default();
    if let Err(error) = hooked.work(&mut reaction) {
        tracing::warn!(%error, "the report could not be followed");
        hooked.missed.get_or_insert_with(|| one_line(&error));
        if matches!(event.what, What::Prompt { .. }) {
            reaction.answer.user = hooked.missed.as_deref().map(unprotected);
        }
    }
    if let (Some(why), true, true) =
        (&hooked.missed, hooked.settings.blocks(), matches!(hooked.event.what, What::BeforeTool(_)))
    {
        reaction.answer.deny = Some(format!(
            "rwd could not keep the state before this tool ({why}), and hook.on_capture_failure is block: nothing was \
             run. `rwd status` tells more"
        ));
    }
    reaction
}

fn unplaced(event: &HookEvent, error: &CliError) -> Reaction {
    tracing::warn!(%error, "no workspace");
    let user = matches!(event.what, What::Prompt { .. }).then(|| unprotected(&one_line(error)));
    Reaction { answer: Answer { user, ..Answer::default() }, tidy: None }
}

fn unprotected(why: &str) -> String {
    format!("rwd: this turn is not protected in full: {why}. `rwd status` tells more")
}

fn starts_turn(action: &Action) -> bool {
    matches!(action, Action::Save(capture) if capture.kind == PointKind::TurnStart)
}

/// Where the conversation is: the log may not show the turn yet, so that its place is expected and its name is certain.
fn position(state: &SessionState, capture: &Capture) -> Option<Position> {
    let anchor = state.anchor.clone()?;
    let seq = expected_position(Turn(capture.turn), capture.kind == PointKind::TurnEnd);
    Some(Position { seq, anchor: Some(anchor), prefix: None })
}

impl Hooked<'_> {
    fn work(&mut self, reaction: &mut Reaction) -> Result<(), CliError> {
        let dir = self.located.dir.path().to_owned();
        let budget = self.budget();
        self.settings.hurry(budget);
        // A conversation that was made for a task says whose it is only once.
        if let Some(parent) = self.event.parent.clone() {
            let mut kept = Kept::open(&dir, &self.event.session_key(), budget)?;
            kept.state.child_of = Some(parent.clone());
            kept.keep()?;
            self.event.subagent = self.event.session.replace(parent);
        }
        let mut kept = Kept::open(&dir, &self.event.session_key(), budget)?;
        if let Some(parent) = kept.state.child_of.take() {
            drop(kept);
            self.event = self.event.clone().of_subagent(&parent);
            if self.event.is_idle() {
                return Ok(());
            }
            kept = Kept::open(&dir, &self.event.session_key(), budget)?;
        }
        let session = self.event.session_key();
        let before = kept.state.clone();
        if kept.fresh {
            self.learn(&mut kept.state, &session)?;
        }
        let event = self.event.clone();
        let mut actions = step(&mut kept.state, &event, &mut |state, key| {
            // A child that no transcript tells of goes on where it was cut.
            let shared = if state.last_turn == 0 && event.transcript.is_none() { self.shared(&session) } else { 0 };
            shared + number(&event, key, state)
        });
        let retain = actions.last() == Some(&Action::Retain);
        actions.retain(|action| *action != Action::Retain);
        let starts = actions.iter().any(starts_turn);
        let ended = before.turn.is_some() && kept.state.turn.is_none();
        if !actions.is_empty() {
            if let Err(error) = self.open() {
                self.unrecorded = true;
                self.missed = Some(one_line(&error));
            } else {
                self.perform(&mut kept.state, &session, actions, &mut reaction.answer)?;
            }
        }
        if self.unrecorded {
            // As if it had not been reported: a turn that nothing is known of begins at its next tool.
            let open = before.turn.clone().filter(|_| !starts);
            kept.state = SessionState { turn: open, ..before.clone() };
        }
        self.tell(&mut kept.state, &mut reaction.answer);
        let over = retain && kept.state.unswept > 0;
        let many = kept.state.unswept >= SWEEP_AFTER && kept.state.turn.is_none();
        if (over || many) && self.open().is_ok() {
            kept.state.unswept = 0;
            reaction.tidy = self.opened.take().map(|opened| (Box::new(opened), true));
        } else if ended {
            reaction.tidy = self.opened.take().map(|opened| (Box::new(opened), false));
        }
        if kept.state != before
            && let Err(error) = kept.keep()
        {
            tracing::warn!(%error, "what is known of the session is lost");
        }
        Ok(())
    }

    /// How long the agent may wait.
    fn budget(&self) -> Duration {
        let within = self.settings.hook_deadline();
        match self.event.what {
            What::BeforeTool(_) | What::AfterTool(_) | What::BatchEnd(_) => within,
            _ => within * TURN,
        }
    }

    fn open(&mut self) -> Result<&Opened, CliError> {
        if self.opened.is_none() {
            let settings = self.settings.clone().told();
            let asker = &|_: &Settings, _: &[String]| Ok(asker(self.run, Consent::Nobody));
            self.opened = Some(compose::open(self.run, self.located.clone(), settings, asker)?);
        }
        self.opened.as_ref().ok_or_else(|| CliError::usage("usage", "nothing was opened"))
    }

    /// What the index says of a session of which nothing is known here: its state may have been lost.
    fn learn(&mut self, state: &mut SessionState, session: &SessionKey) -> Result<(), CliError> {
        if self.located.dir.index_kind()?.is_none() {
            return Ok(());
        }
        let index = std::sync::Arc::clone(&self.open()?.index);
        let known = index.sessions()?.into_iter().find(|known| known.key == *session);
        let Some(status) = known.and_then(|known| known.turn) else { return Ok(()) };
        state.last_turn = status.turn.0;
        if status.ended.is_none() && status.closed.is_none() && !status.interrupted {
            let number = status.turn.0;
            state.turn = Some(OpenTurn { number, dirty: true, loose: true, ..OpenTurn::default() });
        }
        let starts = PointQuery {
            sessions: vec![session.clone()],
            kinds: vec![PointKind::TurnStart],
            newest_first: true,
            limit: Some(64),
            ..PointQuery::default()
        };
        for point in index.points(&starts)?.into_iter().rev() {
            if let (Some(call), Some(turn)) = (&point.call_id, point.turn) {
                state.remember(call, turn.0);
            }
            state.anchor = point.position.and_then(|position| position.anchor);
        }
        let newest =
            PointQuery { sessions: vec![session.clone()], newest_first: true, limit: Some(1), ..PointQuery::default() };
        state.seen = index.points(&newest)?.pop().map(|point| point.ord.0);
        Ok(())
    }

    /// How many turns a session has from the one that it was cut from; a turn is two positions (see [`position`]).
    fn shared(&mut self, session: &SessionKey) -> u32 {
        let known = self.open().and_then(|opened| Ok(opened.index.sessions()?));
        let known = known.inspect_err(|error| tracing::warn!(%error, "turns are counted from the first"));
        let own = known.unwrap_or_default().into_iter().find(|known| known.key == *session);
        let seed = own.filter(|own| own.parent.is_some()).and_then(|own| own.seed_length).unwrap_or(0);
        u32::try_from(seed.div_ceil(2)).unwrap_or(0)
    }

    fn perform(
        &mut self,
        state: &mut SessionState,
        session: &SessionKey,
        actions: Vec<Action>,
        answer: &mut Answer,
    ) -> Result<(), CliError> {
        let index = std::sync::Arc::clone(&self.open()?.index);
        let begins = actions.iter().any(starts_turn);
        let seen = match state.seen {
            Some(seen) => seen,
            None => told::seen_at_first(&*index, session)?,
        };
        state.seen = Some(seen);
        for action in actions {
            self.act(state, session, action)?;
        }
        if begins && matches!(self.event.what, What::Prompt { .. }) {
            if reaches_model(&self.event) {
                answer.model = told::since(&*index, seen, session)?;
            }
            state.seen = Some(index.newest()?.0);
        }
        Ok(())
    }

    fn act(&mut self, state: &mut SessionState, session: &SessionKey, action: Action) -> Result<(), CliError> {
        let ended = match action {
            Action::Save(capture) => {
                let starts = capture.kind == PointKind::TurnStart;
                let position = position(state, &capture);
                let saved = self.save(session, capture, position);
                let unrecorded = matches!(
                    saved.as_ref().err().and_then(CliError::engine),
                    Some(EngineError::Gap { point: None, .. })
                );
                self.unrecorded |= starts && unrecorded;
                if saved.is_ok() {
                    state.unswept = state.unswept.saturating_add(1);
                } else {
                    state.missed();
                }
                saved
            }
            Action::Interrupt => match self.open()?.engine.interrupt(session) {
                Ok(_) | Err(EngineError::Nothing { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Action::Reopen(turn) => self.open()?.engine.reopen(session, Turn(turn)).map(drop).map_err(Into::into),
            Action::Retain => Ok(()),
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "not done");
            self.missed.get_or_insert_with(|| one_line(&error));
        }
        Ok(())
    }

    fn save(&mut self, session: &SessionKey, capture: Capture, position: Option<Position>) -> Result<(), CliError> {
        let process = (capture.kind == PointKind::TurnStart).then(|| process::of_harness(&self.event)).flatten();
        let (budget, spent) = (self.budget(), self.begun.elapsed());
        let opened = self.open()?;
        let first = opened.index.newest()?.0 == 0;
        let deadline = if first { FIRST.max(budget) } else { budget }.saturating_sub(spent).max(LEAST);
        let request = SaveRequest {
            turn: Some(Turn(capture.turn)),
            step: capture.step.map(Step),
            trigger: capture.trigger,
            call_id: capture.call,
            position,
            process,
            deadline: Some(deadline),
            ..SaveRequest::of(session.clone(), capture.kind)
        };
        match opened.engine.save(&request) {
            Ok(_) => Ok(()),
            // The end of a turn that a later start has closed: that record stands for it.
            Err(EngineError::Gap { source, .. }) if matches!(*source, EngineError::Nothing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What the user is told, once a session; with each prompt, where not even a gap can be recorded.
    fn tell(&self, state: &mut SessionState, answer: &mut Answer) {
        let mut news: Vec<String> = state.pending.take().into_iter().collect();
        // Where only the model could be told, it need not be.
        let speaks = matches!(self.event.agent, Agent::Claude | Agent::Codex | Agent::Gemini);
        if self.located.standing == Standing::New && speaks {
            news.push(format!("rwd: {} is a workspace from now on", self.located.root().display()));
        }
        // What no gap tells of has to be said each time.
        let again = self.unrecorded && matches!(self.event.what, What::Prompt { .. });
        if let Some(why) = self.missed.as_deref().filter(|_| again || !state.gap_told) {
            state.gap_told = true;
            news.push(unprotected(why));
        }
        if !self.event.problems.is_empty() && !state.problems_told {
            state.problems_told = true;
            let problems: Vec<String> = self.event.problems.iter().take(8).map(ToString::to_string).collect();
            let (agent, name) = (self.event.agent.name(), &self.event.name);
            news.push(format!("rwd: {agent}'s report {name} was not understood in full: {}", problems.join(", ")));
        }
        if news.is_empty() {
            return;
        }
        let text = news.join("\n");
        if reaches_user(&self.event) {
            answer.user = Some(text);
        } else {
            state.pending = Some(text);
        }
    }
}
