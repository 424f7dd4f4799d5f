//! Which captures follow from what a harness reports: a pure state machine over one session (design § 11).
//!
//! A turn begins with a person's prompt and ends when the agent stopped and nothing that it began works any more. What
//! real harnesses do not report, or report twice, late or in another order, shapes the rules:
//!
//! - a prompt is known by its key: the same key makes no second turn;
//! - a stop with tasks in the background or with sub-agents at work is none; a prompt that nobody wrote, and a stop
//!   that another hook forbids, take the same turn up again;
//! - an interrupt may be reported or not: the next turn's start closes a turn that has no end;
//! - a tool may run in a turn whose prompt was not seen: that turn begins there, before the tool;
//! - an end may be missing for a call that began: then more is captured, never less.

use checkpoint_core::PointKind;

use super::state::{OpenTurn, SessionState, push};
use super::{Agent, Effect, HookEvent, Tool, What};

/// So many sub-agents at work are remembered.
const AGENTS: usize = 256;

/// A capture to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// What for.
    pub kind: PointKind,
    /// The turn's number.
    pub turn: u32,
    /// The step's number, from 1.
    pub step: Option<u32>,
    /// The tool or event that caused it.
    pub trigger: Option<String>,
    /// What makes it recognisable when it is asked for again.
    pub call: Option<String>,
}

/// What is to be done, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Capture.
    Save(Capture),
    /// Mark the open turn as interrupted.
    Interrupt,
    /// The turn of this number, which had ended, goes on.
    Reopen(u32),
    /// Nobody waits any more: retention may run.
    Retain,
}

/// Takes an event in. `number` gives the number of the turn that begins with a prompt of that key; it is asked at most
/// once, and only when a turn begins.
pub fn step(
    state: &mut SessionState,
    event: &HookEvent,
    number: &mut dyn FnMut(&SessionState, Option<&str>) -> u32,
) -> Vec<Action> {
    if event.is_idle() {
        return Vec::new();
    }
    match &event.what {
        What::Prompt { .. } if event.subagent.is_some() => Vec::new(),
        What::Prompt { key, once, synthetic } => {
            prompt(state, event, (key.as_deref(), once.as_deref(), *synthetic), number)
        }
        What::BeforeTool(tool) => before_tool(state, event, tool, number),
        What::AfterTool(tool) => after_tool(state, event, tool),
        What::BatchEnd(tools) => batch_end(state, event, tools),
        What::Stop { waiting } => stop(state, event, *waiting),
        What::SubagentStart => {
            if let (Some(turn), Some(agent)) = (&mut state.turn, who(event))
                && !turn.agents.contains(&agent)
            {
                push(&mut turn.agents, agent, AGENTS);
            }
            Vec::new()
        }
        What::SubagentStop => subagent_stop(state, event),
        What::Interrupt if of_another_turn(state, event) => Vec::new(),
        What::Interrupt => interrupt(state),
        What::SessionEnd => {
            let stopped = state.turn.as_ref().is_some_and(|turn| turn.stopped);
            let mut actions = if stopped { end(state) } else { interrupt(state) };
            actions.push(Action::Retain);
            actions
        }
        What::SessionStart | What::Compact | What::Other => Vec::new(),
    }
}

/// The sub-agent of an event; where it has a conversation of its own, that.
fn who(event: &HookEvent) -> Option<String> {
    event.subagent.clone().or_else(|| event.parent.is_some().then(|| event.session.clone())?)
}

/// True when the event says that it belongs to another turn than the open one.
fn of_another_turn(state: &SessionState, event: &HookEvent) -> bool {
    let (Some(turn), Some(key)) = (&state.turn, &event.key) else { return false };
    state.turn_of(key).is_some_and(|known| known != turn.number)
}

fn prompt(
    state: &mut SessionState,
    event: &HookEvent,
    (key, once, synthetic): (Option<&str>, Option<&str>, bool),
    number: &mut dyn FnMut(&SessionState, Option<&str>) -> u32,
) -> Vec<Action> {
    let id = key.or(once);
    if id.is_some_and(|id| state.turn_of(id).is_some()) {
        return Vec::new();
    }
    if !synthetic {
        return begin(state, key, id, number);
    }
    // The first thing that is heard of a session: no turn is known that it could belong to.
    if state.last_turn == 0 {
        return Vec::new();
    }
    if let Some(id) = id {
        state.remember(id, state.last_turn);
    }
    match &mut state.turn {
        Some(turn) => {
            (turn.stopped, turn.waiting) = (false, false);
            Vec::new()
        }
        None => reopen(state, event),
    }
}

fn begin(
    state: &mut SessionState,
    key: Option<&str>,
    id: Option<&str>,
    number: &mut dyn FnMut(&SessionState, Option<&str>) -> u32,
) -> Vec<Action> {
    let number = number(state, key).max(1);
    if let Some(id) = id {
        state.remember(id, number);
    }
    state.turn = Some(OpenTurn { number, ..OpenTurn::default() });
    (state.last_turn, state.last_step) = (number, 0);
    state.anchor = key.map(str::to_owned);
    let call = id.map(str::to_owned);
    vec![Action::Save(Capture { kind: PointKind::TurnStart, turn: number, step: None, trigger: None, call })]
}

/// The newest turn goes on. What was changed between its end and now is none of its work, so that is captured first.
fn reopen(state: &mut SessionState, event: &HookEvent) -> Vec<Action> {
    let number = state.last_turn;
    state.turn = Some(OpenTurn { number, ..OpenTurn::default() });
    let trigger = Some(event.name.clone());
    let between = Capture { kind: PointKind::Auto, turn: number, step: None, trigger, call: None };
    vec![Action::Save(between), Action::Reopen(number)]
}

fn before_tool(
    state: &mut SessionState,
    event: &HookEvent,
    tool: &Tool,
    number: &mut dyn FnMut(&SessionState, Option<&str>) -> u32,
) -> Vec<Action> {
    let mut actions = Vec::new();
    if state.turn.is_none() {
        let known = event.key.as_deref().is_some_and(|key| state.turn_of(key).is_some());
        actions = if state.last_turn > 0 && (known || event.subagent.is_some()) {
            reopen(state, event)
        } else {
            let key = event.key.clone().filter(|_| event.subagent.is_none());
            begin(state, key.as_deref(), key.as_deref(), number)
        };
    } else if let (Some(key), None) = (&event.key, &event.subagent)
        && state.turn_of(key).is_none()
    {
        // Another prompt's key in an open turn: a prompt that nobody reported, or one that nobody wrote.
        state.remember(key, state.last_turn);
    }
    let step = state.last_step + 1;
    let Some(turn) = &mut state.turn else { return actions };
    if !turn.begin(tool.call.as_deref()) {
        return actions;
    }
    if event.subagent.is_none() {
        (turn.stopped, turn.waiting) = (false, false);
    }
    let old = turn.dirty || turn.loose;
    turn.dirty = true;
    // A shell of Codex may be polled later, and what was sent to the background works on.
    turn.loose |= tool.background || (event.agent == Agent::Codex && tool.effect == Effect::Runs);
    if actions.is_empty() && old {
        actions.push(Action::Save(Capture {
            kind: PointKind::Mutation,
            turn: turn.number,
            step: Some(step),
            trigger: Some(tool.name.clone()),
            call: tool.call.clone(),
        }));
    }
    actions
}

fn after_tool(state: &mut SessionState, event: &HookEvent, tool: &Tool) -> Vec<Action> {
    if event.agent == Agent::Claude {
        // The batch's end follows at once.
        if let Some(turn) = &mut state.turn {
            turn.dirty = true;
            turn.loose |= tool.background;
        }
        return Vec::new();
    }
    ended(state, event, tool, tool.call.as_deref().as_slice())
}

fn batch_end(state: &mut SessionState, event: &HookEvent, tools: &[Tool]) -> Vec<Action> {
    let mut mutating = tools.iter().filter(|tool| tool.mutates());
    let Some(first) = mutating.next() else { return Vec::new() };
    let calls: Vec<&str> = tools.iter().filter_map(|tool| tool.call.as_deref()).collect();
    ended(state, event, first, &calls)
}

/// Calls ended: so does a step.
fn ended(state: &mut SessionState, event: &HookEvent, tool: &Tool, calls: &[&str]) -> Vec<Action> {
    if of_another_turn(state, event) {
        return Vec::new();
    }
    let Some(turn) = &mut state.turn else { return Vec::new() };
    if !turn.end(calls) {
        return Vec::new();
    }
    turn.dirty = !turn.running.is_empty();
    state.last_step += 1;
    vec![Action::Save(Capture {
        kind: PointKind::Step,
        turn: turn.number,
        step: Some(state.last_step),
        trigger: Some(tool.name.clone()),
        call: tool.call.clone(),
    })]
}

fn stop(state: &mut SessionState, event: &HookEvent, waiting: bool) -> Vec<Action> {
    if of_another_turn(state, event) {
        return Vec::new();
    }
    let Some(turn) = &mut state.turn else { return Vec::new() };
    let again = std::mem::replace(&mut turn.stopped, true);
    turn.waiting = waiting;
    if !waiting && turn.agents.is_empty() {
        return end(state);
    }
    let dirty = std::mem::replace(&mut turn.dirty, true) && !again;
    let trigger = Some(event.name.clone());
    let held = Capture { kind: PointKind::Auto, turn: turn.number, step: None, trigger, call: None };
    if dirty { vec![Action::Save(held)] } else { Vec::new() }
}

fn subagent_stop(state: &mut SessionState, event: &HookEvent) -> Vec<Action> {
    let (Some(turn), Some(agent)) = (&mut state.turn, who(event)) else { return Vec::new() };
    let known = turn.agents.len();
    turn.agents.retain(|other| *other != agent);
    let last = turn.agents.is_empty() && known > 0;
    if last && turn.stopped && !turn.waiting { end(state) } else { Vec::new() }
}

fn end(state: &mut SessionState) -> Vec<Action> {
    let Some(turn) = state.turn.take() else { return Vec::new() };
    let end = Capture { kind: PointKind::TurnEnd, turn: turn.number, step: None, trigger: None, call: None };
    vec![Action::Save(end)]
}

fn interrupt(state: &mut SessionState) -> Vec<Action> {
    state.turn.take().map(|_| Action::Interrupt).into_iter().collect()
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
