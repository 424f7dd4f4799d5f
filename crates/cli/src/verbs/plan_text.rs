//! Plans and outcomes as answers and as text.

use std::path::Path;

use checkpoint_core::{
    Cut, GuardMode, IntentState, OpKind, Operation, Outcome, Preview, RestorePolicy, SessionKey, Status,
};

use crate::error::{Facts, blocked_hints, recover_hints, undecided_hints};
use crate::run::Run;
use crate::text::{self, put};
use crate::wire;

const fn scope_word(preview: &Preview) -> &'static str {
    match (preview.files, preview.cut.is_some()) {
        (true, true) => "both",
        (true, false) => "files",
        (false, _) => "chat",
    }
}

/// The plan, as the answer has it.
///
/// A command is offered only where it would do something: a plan that would be refused comes with what to decide.
pub(super) fn preview_answer(
    run: &Run,
    preview: &Preview,
    policy: &RestorePolicy,
    facts: &Facts,
    unfinished: Option<&super::OpenOperation>,
) -> wire::Preview {
    let plan = &preview.plan;
    let to = run.typed.as_verb("preview", "to");
    let lenient = policy.skip_blocked || policy.guard == GuardMode::Warn;
    let decisions = if let Some(open) = unfinished {
        // What somebody is at work on is nobody else's to settle.
        if open.busy {
            vec![open.line(run)]
        } else {
            recover_hints(&run.typed, open.intent.state == IntentState::Forking)
        }
    } else if !plan.undecided.is_empty() {
        undecided_hints(preview, &to, facts)
    } else if !plan.blocked.is_empty() && !lenient {
        blocked_hints(&plan.blocked, &to)
    } else {
        Vec::new()
    };
    let something = !plan.is_empty() || preview.cut.is_some();
    let apply = (decisions.is_empty() && something).then(|| to.with(&["--plan", &preview.plan_id, "--yes"]));
    let unfinished = super::operation_of(unfinished.map(|open| &open.intent));
    wire::Preview { apply, decisions, unfinished, ..shape(preview) }
}

fn shape(preview: &Preview) -> wire::Preview {
    let plan = &preview.plan;
    wire::Preview {
        plan: preview.plan_id.clone(),
        target: preview.target.as_ref().map(|point| point.id.to_string()),
        reverses: preview.reverses.map(|op| op.to_string()),
        session: preview.session.to_string(),
        overwrite: wire::paths(&plan.overwrite),
        recreate: wire::paths(&plan.recreate),
        mode: wire::paths(&plan.mode),
        remove: wire::paths(&plan.remove),
        unchanged: plan.unchanged,
        kept_new: wire::paths(&plan.kept_new),
        hand_made: wire::paths(&plan.hand_made),
        uncaptured: wire::paths(&plan.uncaptured),
        foreign: wire::paths(&plan.foreign),
        blocked: wire::blocked(&plan.blocked),
        uncovered: wire::skipped(&plan.uncovered),
        undecided: wire::paths(&plan.undecided),
        cut: preview.cut.as_ref().map(cut_entry),
        scope: scope_word(preview),
        notes: preview.notes.clone(),
        apply: None,
        decisions: Vec::new(),
        unfinished: None,
    }
}

/// Where the conversation is cut, in words that follow "at".
fn place(rule: &str) -> &str {
    if rule == "empty" { "its beginning" } else { rule }
}

fn cut_entry(cut: &Cut) -> wire::CutEntry {
    wire::CutEntry {
        seq: cut.boundary.map(|boundary| boundary.seq().0),
        rule: cut.rule.clone(),
        session: cut.session.to_string(),
    }
}

/// The plan as a person at a terminal sees it before saying yes.
pub(crate) fn preview_text(preview: &Preview, below: &Path) -> String {
    plan_text(&shape(preview), below)
}

/// The plan, as text; paths are named from the directory `below` the root.
pub(super) fn plan_text(plan: &wire::Preview, below: &Path) -> String {
    let mut out = String::new();
    let mut counts = Vec::new();
    for (list, word) in [
        (&plan.overwrite, "overwrite"),
        (&plan.recreate, "recreate"),
        (&plan.mode, "change mode of"),
        (&plan.remove, "remove"),
    ] {
        if !list.is_empty() {
            counts.push(format!("{word} {}", list.len()));
        }
    }
    if plan.scope == "chat" {
        counts.push("only the conversation".to_owned());
    } else {
        counts.push(format!("{} unchanged", plan.unchanged));
    }
    let goal = match (&plan.target, &plan.reverses) {
        (_, Some(op)) => format!("take operation {} back", text::short(op)),
        (Some(point), None) => format!("to point {}", text::short(point)),
        (None, None) => format!("session {}", plan.session),
    };
    put!(out, "{goal}: {}\n", counts.join(", "));
    text::paths(&mut out, below, "overwrite:", &plan.overwrite);
    text::paths(&mut out, below, "recreate:", &plan.recreate);
    text::paths(&mut out, below, "change mode:", &plan.mode);
    text::paths(&mut out, below, "remove:", &plan.remove);
    text::paths(&mut out, below, "changed by hand since:", &plan.hand_made);
    text::paths(&mut out, below, "changed by another session since:", &plan.foreign);
    text::paths(&mut out, below, "changed after the turn's last point:", &plan.uncaptured);
    text::reasons(&mut out, below, "cannot be restored:", &plan.blocked);
    text::reasons(&mut out, below, "not covered by that point, left alone:", &plan.uncovered);
    kept(&mut out, plan.kept_new.len());
    if let Some(cut) = &plan.cut {
        put!(out, "conversation {}: cut at {}\n", cut.session, place(&cut.rule));
    }
    for note in &plan.notes {
        put!(out, "{}\n", wire::shown(note));
    }
    if !plan.undecided.is_empty() {
        put!(
            out,
            "{} a decision: --keep-drift, --overwrite PATH, --overwrite-drift or --with-others\n",
            needs(plan.undecided.len())
        );
    }
    out
}

fn needs(count: usize) -> String {
    if count == 1 { "1 path needs".to_owned() } else { format!("{count} paths need") }
}

fn kept(out: &mut String, count: usize) {
    if count > 0 {
        put!(
            out,
            "{} kept; --exact removes {}\n",
            text::count(count as u64, "new file"),
            if count == 1 { "it" } else { "them" }
        );
    }
}

/// What was done, as the answer has it.
pub(super) fn restored(run: &Run, outcome: &Outcome, done: Option<&Operation>) -> wire::Restored {
    let plan = &outcome.plan;
    let undo = outcome.operation.map(|op| run.typed.other(&["undo", &op.short()]));
    let cut = outcome.cut.as_ref();
    let child = outcome.child.as_deref();
    let key = cut.zip(child).and_then(|(cut, child)| SessionKey::new(cut.session.harness(), child).ok());
    wire::Restored {
        op: outcome.operation.map(|op| op.to_string()),
        status: status_word(outcome.status),
        target: outcome.target.as_ref().map(|point| point.id.to_string()),
        reverses: done.and_then(|op| op.reverses).map(|op| op.to_string()),
        restored: wire::paths(&outcome.restored),
        removed: wire::paths(&outcome.removed),
        unchanged: plan.unchanged,
        kept_new: wire::paths(&plan.kept_new),
        hand_made: wire::paths(&plan.hand_made),
        foreign: wire::paths(&plan.foreign),
        uncaptured: wire::paths(&plan.uncaptured),
        blocked: wire::blocked(&plan.blocked),
        uncovered: wire::skipped(&plan.uncovered),
        guard: outcome.guard.map(|point| point.to_string()),
        child_session_id: outcome.child.clone(),
        child_path: key.as_ref().and_then(|key| run.world.sessions.location(key)).map(|path| wire::absolute(&path)),
        context_only: outcome.context_only,
        cut: cut.map(cut_entry),
        undo,
        go_on: key.as_ref().and_then(|key| go_on(key.harness(), key.id())),
        stored: wire::stored(&outcome.stored),
        notes: outcome.notes.clone(),
    }
}

pub(super) const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Restored => "restored",
        Status::Partial => "partial",
        Status::Nothing => "nothing",
    }
}

/// The command that goes on in a child session. DeepSeek Harness has none that every installation knows: there a session
/// is opened from the host's own list.
pub(super) fn go_on(harness: &str, child: &str) -> Option<String> {
    let words: &[&str] = match harness {
        "claude" => &["claude", "--resume"],
        "codex" => &["codex", "resume"],
        "gemini" => &["gemini", "-r"],
        "opencode" => &["opencode", "-s"],
        _ => return None,
    };
    Some(format!("{} {}", words.join(" "), crate::error::quote(child)))
}

/// What was done, as text: counts first, the next command last.
pub(super) fn outcome_text(run: &Run, answer: &wire::Restored, outcome: &Outcome, done: Option<&Operation>) -> String {
    let below = run.out.below();
    let mut out = String::new();
    let seen = outcome.status == Status::Restored && run.out.has_agreed();
    let kind = done.map(|op| op.kind);
    let what = match kind {
        Some(OpKind::Undo) => "undo of ",
        // What is taken back is an undo.
        Some(OpKind::Redo) => "redo: takes back undo ",
        _ => "",
    };
    if let Some(reversed) = answer.reverses.as_deref().filter(|_| !what.is_empty()) {
        put!(out, "{what}{}\n", text::short(reversed));
    }
    if outcome.status == Status::Nothing {
        out.push_str("nothing to do: the workspace is like that already\n");
    } else if outcome.context_only {
        let rule = answer.cut.as_ref().map(|cut| format!(" at {}", place(&cut.rule))).unwrap_or_default();
        put!(out, "the conversation was cut{rule}; files stay as they are\n");
    } else {
        let total = text::count((answer.restored.len() + answer.removed.len()) as u64, "file");
        let split = format!("{} restored, {} removed", answer.restored.len(), answer.removed.len());
        let partly = if outcome.status == Status::Partial { ", not all of it" } else { "" };
        put!(out, "{total}{partly}: {split}\n");
        // Whoever was asked has just read the same names.
        if !seen {
            text::paths(&mut out, below, "restored:", &answer.restored);
            text::paths(&mut out, below, "removed:", &answer.removed);
        }
        if let Some(cut) = answer.cut.as_ref().filter(|_| answer.child_session_id.is_some()) {
            put!(out, "conversation {}: cut at {}\n", cut.session, place(&cut.rule));
        }
    }
    let written = |path: &&wire::PathEntry| answer.restored.contains(path) || answer.removed.contains(path);
    let (over, kept_edits): (Vec<_>, Vec<_>) = answer.hand_made.iter().partition(written);
    let owned = |paths: Vec<&wire::PathEntry>| paths.into_iter().cloned().collect::<Vec<_>>();
    text::paths(&mut out, below, "changed by hand, kept as it is:", &owned(kept_edits));
    text::paths(&mut out, below, "changed by hand, and overwritten:", &owned(over));
    text::paths(&mut out, below, "changed by another session:", &answer.foreign);
    text::reasons(&mut out, below, "not restored:", &answer.blocked);
    text::reasons(&mut out, below, "not covered by that point, left alone:", &answer.uncovered);
    kept(&mut out, answer.kept_new.len());
    for entry in &answer.stored {
        put!(out, "{}\n", entry.line(&run.typed));
    }
    for note in &answer.notes {
        put!(out, "{}\n", wire::shown(note));
    }
    if let Some(go_on) = &answer.go_on {
        put!(out, "to go on: {go_on}\n");
    } else if let Some(child) = &answer.child_session_id {
        put!(out, "to go on, open this session in its harness: {child}\n");
        if let Some(path) = &answer.child_path {
            put!(out, "its log: {}\n", path.line());
        }
    }
    match (&answer.undo, kind) {
        (Some(_), Some(OpKind::Undo)) => put!(out, "to bring it back: {}\n", run.typed.other(&["redo"])),
        // No file changed, and the session before is as it was: there is nothing to undo.
        (Some(_), _) if outcome.context_only => {
            if let Some(cut) = &answer.cut {
                put!(out, "{} stays as it is\n", cut.session);
            }
        }
        (Some(undo), _) => put!(out, "to take it back: {undo}\n"),
        (None, _) => {}
    }
    out
}
