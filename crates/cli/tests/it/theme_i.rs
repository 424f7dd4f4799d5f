//! Contract § 3 theme I, TJ34 and TJ37: the log after a rewind, on logs of DeepSeek Harness, with the validator as the judge.
//!
//! Where the harness goes on in a child, its events are appended as the harness does: through the log store, which
//! refuses what the harness would refuse.

use std::sync::Arc;

use checkpoint_core::fold::{Message, Role, Surface};
use checkpoint_core::{Beat, LogEvent, Seq, SurfaceOp, Turn};
use harness_adapter::event_log::{EventLogStore, JsonlStore};
use serde_json::Value;
use serde_json::value::RawValue;
use testkit::dsh_logs::Encoding;

use crate::conversation::{Now, played};
use crate::dsh_home::{DshHome, rows, six_turns};

fn talked(events: &[LogEvent]) -> DshHome {
    let mut home = DshHome::new();
    home.put("six", events, Encoding::Plain);
    home.sandbox.write("a", "one\n");
    home.sandbox.ok(&["save"]);
    home
}

/// Rewinds the conversation of `session` to `target` and gives the child.
fn rewound(home: &DshHome, session: &str, target: &str) -> String {
    let went = home.sandbox.json(0, &["to", target, "--chat", "--yes", "--session", &format!("dsh:{session}")]);
    went["childSessionId"].as_str().unwrap().to_owned()
}

/// The events, so many positions further on.
fn moved(events: &[LogEvent], by: i64) -> Vec<LogEvent> {
    let further = |seq: Seq| Seq(seq.0.checked_add_signed(by).unwrap());
    let one = |event: &LogEvent| LogEvent {
        seq: further(event.seq),
        sources: event.sources.as_ref().map(|seqs| seqs.iter().map(|seq| further(*seq)).collect()),
        ..event.clone()
    };
    events.iter().map(one).collect()
}

/// The events of a turn of [`six_turns`], as they are there.
fn turn_of(events: &[LogEvent], turn: u32) -> &[LogEvent] {
    let at = |kind: &str| {
        let data = |event: &LogEvent| serde_json::from_str::<Value>(event.data.get()).unwrap()["turn"] == turn;
        events.iter().position(|event| &*event.kind == kind && data(event)).unwrap()
    };
    &events[at("turn/start")..=at("turn/end")]
}

/// The harness takes `session` up again and plays a turn in it.
fn goes_on(home: &DshHome, session: &str, turn: &[LogEvent]) {
    let store = JsonlStore::new(home.path(), Arc::new(Now));
    let resumed = store.resume(session).unwrap();
    assert_eq!((resumed.torn, resumed.closers), (0, 0), "a child is whole");
    let place = |seq: Seq| i64::try_from(seq.0).unwrap();
    let by = place(store.next_seq(session).unwrap()) - place(turn[0].seq);
    for event in moved(turn, by) {
        store.append(session, event).unwrap();
    }
    store.close(session).unwrap();
}

/// The harness loads it, and the validator finds nothing.
fn sound(home: &DshHome, session: &str) {
    let checked = home.sandbox.json(0, &["session", "verify", session]);
    assert_eq!((&checked["loadable"], &checked["strict"]), (&true.into(), &true.into()), "{checked}");
}

/// What the model sees: who speaks, and what.
fn seen(home: &DshHome, session: &str) -> Vec<(Role, String)> {
    let events = home.logs().events(session).unwrap();
    let surface = Surface::fold(&events).unwrap();
    let message = |node: &checkpoint_core::fold::SurfaceNode| Message::of(&events[node.index]).unwrap();
    surface.nodes.iter().map(message).map(|message| (message.role, message.text())).collect()
}

fn prompts(home: &DshHome, session: &str) -> Vec<String> {
    let people = seen(home, session).into_iter().filter(|(role, text)| *role == Role::User && text.starts_with("do "));
    people.map(|(_, text)| text).collect()
}

fn turns(home: &DshHome, session: &str) -> Vec<Beat> {
    let events = home.logs().inspect(session).unwrap();
    events.turns.iter().flat_map(|span| [Beat::TurnStart(span.turn), Beat::TurnEnd(span.turn)]).collect()
}

/// TI09, deviation 2: points, previews, restores and undos leave no event of ours in any log.
#[test]
fn ti09_a_rewind_leaves_no_event_of_its_own_kind_in_any_log() {
    let home = played();
    home.sandbox.ok(&["preview", "t2", "--both"]);
    let went = home.sandbox.json(0, &["to", "t2", "--both", "--exact", "--yes"]);
    home.sandbox.ok(&["undo", "--yes"]);
    home.unchanged();
    let made = home.new_logs();
    assert_eq!(made.len(), 1);
    let kinds: Vec<String> = rows(&made[0])
        .iter()
        .map(|row| serde_json::from_str::<Value>(row).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.iter().all(|kind| !kind.starts_with("checkpoint/") && !kind.starts_with("rewind/")), "{kinds:?}");
    assert_eq!(kinds[102..], ["session/end-seed", "user/message"]);
    sound(&home, went["childSessionId"].as_str().unwrap());
}

/// TI11: on a session of the real host. The turn that was gone back before and all later ones are out of the model's
/// sight; the mark of the cut is no message, and one notice is.
#[test]
fn ti11_the_model_sees_what_was_kept_and_one_notice() {
    let home = DshHome::of("02-edits-3turn");
    home.sandbox.write("a", "one\n");
    home.sandbox.ok(&["save"]);
    let before = seen(&home, "edits3");
    let child = rewound(&home, "edits3", "t2^");
    let after = seen(&home, &child);
    assert!(after.len() < before.len());
    let (notice, kept) = after.split_last().unwrap();
    assert_eq!(kept, &before[..kept.len()]);
    // What is kept is turn 1, to its last word.
    let last = home.logs().events("edits3").unwrap();
    let upto = last.iter().filter(|event| event.seq.0 <= home.end_of("edits3", 1) && event.surface.is_some()).count();
    assert_eq!(kept.len(), upto);
    assert!(notice.0 == Role::User && notice.1.contains("left as they are"), "{notice:?}");
    sound(&home, &child);
}

/// TI12: the next turn takes the place of the one that was gone back before.
#[test]
fn ti12_the_next_turn_after_a_rewind_is_in_order() {
    let events = six_turns();
    let home = talked(&events);
    for turn in 2..=6 {
        let child = rewound(&home, "six", &format!("t{turn}^"));
        goes_on(&home, &child, turn_of(&events, turn));
        sound(&home, &child);
        let wanted = (1..=turn).flat_map(|turn| [Beat::TurnStart(Turn(turn)), Beat::TurnEnd(Turn(turn))]);
        assert_eq!(turns(&home, &child), wanted.collect::<Vec<_>>());
    }
    // A turn that is out of its place would have been found.
    let child = rewound(&home, "six", "t3^");
    goes_on(&home, &child, turn_of(&events, 4));
    assert_eq!(home.sandbox.rwd(&["--json", "session", "verify", &child]).json()["strict"], false);
}

/// TI14: the latest turn is taken back and asked for again: the model sees the request once.
#[test]
fn ti14_the_latest_turn_is_taken_back_and_sent_again() {
    let events = six_turns();
    let home = talked(&events);
    let child = rewound(&home, "six", "t6^");
    let asked = |session: &str| prompts(&home, session).iter().filter(|text| *text == "do part 6").count();
    assert_eq!((asked("six"), asked(&child)), (1, 0));
    goes_on(&home, &child, turn_of(&events, 6));
    assert_eq!(asked(&child), 1);
    sound(&home, &child);
    // And once more, in the child.
    let again = rewound(&home, &child, "t6^");
    assert_eq!(asked(&again), 0);
    goes_on(&home, &again, turn_of(&events, 6));
    assert_eq!(asked(&again), 1);
    sound(&home, &again);
}

/// TI15: other turns follow the rewind; addresses in the child mean those, and its parent keeps its own.
#[test]
fn ti15_new_turns_after_a_rewind_are_the_childs_own() {
    let events = six_turns();
    let home = talked(&events);
    let child = rewound(&home, "six", "t3");
    for (turn, prompt) in [(4, "do something else"), (5, "do more of it")] {
        let mut other = turn_of(&events, turn).to_vec();
        let asked = other.iter_mut().find(|event| &*event.kind == "user/message").unwrap();
        let said = asked.data.get().replace(&format!("do part {turn}"), prompt);
        asked.data = RawValue::from_string(said).unwrap().into();
        goes_on(&home, &child, &other);
        sound(&home, &child);
    }
    let now = ["do part 1", "do part 2", "do part 3", "do something else", "do more of it"];
    assert_eq!(prompts(&home, &child), now);
    let second = rewound(&home, &child, "t4");
    assert_eq!(prompts(&home, &second), now[..4]);
    sound(&home, &second);
    assert_eq!(home.end_of(&second, 4), home.end_of(&child, 4));
    let third = rewound(&home, "six", "t5");
    assert_eq!(prompts(&home, &third).last().unwrap(), "do part 5", "the parent's turn 5");
}

/// TJ34, over the wire: nothing to go back to makes no session, unless one is asked for.
#[test]
fn tj34_where_all_is_already_is_nothing_to_do() {
    let home = played();
    let preview = home.sandbox.json(0, &["preview", "t3"]);
    assert!(preview["cut"].is_null() && preview.get("apply").is_none(), "{preview}");
    assert_eq!(home.sandbox.json(6, &["to", "t3", "--yes"])["status"], "nothing");
    assert!(home.new_logs().is_empty());
    home.sandbox.json(0, &["to", "t3", "--both", "--yes"]);
    assert_eq!(home.new_logs().len(), 1);
}

/// TJ37: what a person says while the model works belongs to the turn that is open: it opens none, and is no place to go
/// back to.
#[test]
fn tj37_only_the_message_that_opens_a_turn_can_be_gone_back_to() {
    let events = six_turns();
    let second = turn_of(&events, 2);
    let at = second.iter().rposition(|event| &*event.kind == "step/start").unwrap();
    let at = usize::try_from(second[0].seq.0).unwrap() + at + 1;
    let said = r#"{"content":[{"type":"text","text":"do it faster"}],"source":{"kind":"user"},"role":"user","id":"m"}"#;
    let steering = LogEvent {
        seq: Seq(at as u64),
        kind: "user/message".into(),
        data: RawValue::from_string(said.to_owned()).unwrap().into(),
        surface: Some(SurfaceOp::Append),
        sources: None,
        ..events[at].clone()
    };
    // Nothing of the summary that comes later: it names positions in its payload.
    let end = usize::try_from(turn_of(&events, 3).last().unwrap().seq.0).unwrap();
    let steered = [&events[..at], &[steering], &moved(&events[at..=end], 1)].concat();
    let home = talked(&steered);
    sound(&home, "six");
    assert_eq!(prompts(&home, "six"), ["do part 1", "do part 2", "do it faster", "do part 3"]);
    let shown = home.logs().inspect("six").unwrap();
    let opened: Vec<_> = shown.turns.iter().map(|span| (span.turn.0, span.prompt.as_deref().unwrap())).collect();
    assert_eq!(opened, [(1, "do part 1"), (2, "do part 2"), (3, "do part 3")]);
    let before = rewound(&home, "six", &format!("seq:{at}"));
    assert_eq!(prompts(&home, &before), ["do part 1"], "the whole turn goes, its beginning too");
    let after = rewound(&home, "six", "t2");
    assert_eq!(prompts(&home, &after), ["do part 1", "do part 2", "do it faster"]);
    let refused = home.sandbox.json(3, &["session", "fork", "six", "--at", &at.to_string()]);
    assert_eq!(refused["error"]["code"], "OPEN_TURN");
    sound(&home, &before);
    sound(&home, &after);
}
