//! What the validator says of generated sessions, sound ones and ones with a mistake.

use std::collections::BTreeSet;

use checkpoint_core::{ClosersCause, LogEvent, open_turn_closers};
use proptest::prelude::*;
use testkit::dsh_logs::{Answer, Between, Call, Fault, Session, Step, Turn, TurnEnd, build, events, places, sessions};

use super::*;

/// Small, since three of these run on every build; raise it to look for more.
const CASES: u32 = 96;

fn problems(events: &[LogEvent]) -> Vec<Problem> {
    let mut strict = Strict::new();
    for event in events {
        strict.take(event);
    }
    strict.finish()
}

fn broken(events: &[LogEvent]) -> Vec<Problem> {
    problems(events).into_iter().filter(|problem| problem.severity == Severity::Broken).collect()
}

/// A session in which every mistake can be made.
fn full() -> Session {
    let pieces = |text: &str| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>();
    let call = |nested, answer| Call { pieces: pieces("{\"command\": \"ls -l\" }"), nested, answer };
    let calls = vec![call(3, Answer::Fine), call(0, Answer::Failed), call(0, Answer::NeverStarted)];
    let step = |parallel, retries| Step {
        reasoning: pieces("let me think about it"),
        text: pieces("I look at it now"),
        retries,
        calls: calls.clone(),
        parallel,
        prune: true,
    };
    let turn = |header, compaction| Turn {
        prompt: "do it".to_owned(),
        context: true,
        header,
        todos: Some(2),
        compaction,
        steps: vec![step(false, 1), step(true, 3), Step { text: pieces("all done"), ..Step::default() }],
        end: TurnEnd::Completed,
    };
    let between = vec![
        Between::Title(false),
        Between::TitleRequest,
        Between::Command(true),
        Between::Command(false),
        Between::Queued("later".to_owned()),
        Between::Goal,
        Between::Notice("files were restored".to_owned()),
        Between::Foreign,
        Between::Compact(3),
        Between::Crash,
        Between::Resume,
    ];
    let turns = vec![turn(true, None), turn(false, Some(4)), turn(true, None)];
    Session {
        between: vec![Vec::new(), between, Vec::new(), vec![Between::Title(true)]],
        turns,
        ticks: vec![3, -2, 900],
    }
}

#[test]
fn each_mistake_breaks_its_rule_and_no_other() {
    let session = full();
    assert_eq!(problems(&events(&session)), []);
    let places = places(&session);
    for fault in Fault::ALL {
        let occasions = places.get(fault).copied().unwrap_or_default();
        assert!(occasions > 0, "{fault:?} cannot be made");
        for nth in (0..occasions).step_by((occasions / 12).max(1)) {
            let built = build(&session, Some((*fault, nth)));
            let found = broken(&built.events);
            assert!(!found.is_empty(), "{fault:?} {nth} is not noticed");
            assert!(found.iter().all(|problem| problem.code == fault.code()), "{fault:?} {nth}: {found:?}");
            let wrong = built.wrong.unwrap();
            assert!(found[0].seq.is_some_and(|seq| seq >= wrong), "{fault:?} {nth} at {wrong}: {found:?}");
        }
    }
}

#[test]
fn every_rule_has_a_mistake_that_breaks_it() {
    let broken: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.code()).collect();
    let left: Vec<_> =
        Rule::ALL.iter().filter(|rule| rule.severity() == Severity::Broken && !broken.contains(rule.code())).collect();
    assert_eq!(left, [&Rule::MoreProblems]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn whatever_a_host_writes_is_sound(session in sessions()) {
        prop_assert_eq!(problems(&events(&session)), []);
    }

    #[test]
    fn every_prefix_is_at_most_open(session in sessions(), cut in any::<prop::sample::Index>()) {
        let events = events(&session);
        let cut = cut.index(events.len());
        prop_assert_eq!(broken(&events[..cut]), []);
        // A turn is open exactly when the last word about turns is a start.
        let last = events[..cut].iter().rev().find(|event| event.kind.starts_with("turn/"));
        let open = problems(&events[..cut]).iter().any(|problem| problem.code == "open-turn");
        prop_assert_eq!(open, last.is_some_and(|event| &*event.kind == "turn/start"));
    }

    #[test]
    fn c004_11_what_a_repair_appends_closes_whatever_was_open(session in sessions(), cut in any::<prop::sample::Index>()) {
        let events = events(&session);
        let cut = cut.index(events.len());
        for cause in [ClosersCause::Interrupted, ClosersCause::Forked] {
            let mut repaired = events[..cut].to_vec();
            repaired.extend(open_turn_closers(&repaired, cause));
            let left: BTreeSet<_> = problems(&repaired).iter().map(|problem| problem.code).collect();
            let known = BTreeSet::from(["open-command", "open-compaction"]);
            prop_assert!(left.is_subset(&known), "{:?}: {:?}", cause, left);
            // The session is taken up again: what ran in its earlier life is over.
            let mut taken_up = repaired.clone();
            taken_up.push(LogEvent {
                seq: Seq(repaired.len() as u64),
                kind: "session/end-seed".into(),
                data: serde_json::value::RawValue::from_string("{}".to_owned()).unwrap().into(),
                surface: None,
                sources: None,
                ignorable: false,
                time: 0,
            });
            prop_assert_eq!(problems(&taken_up), []);
        }
    }

    #[test]
    fn one_mistake_anywhere_is_found(session in sessions(), which in any::<prop::sample::Index>(), nth in any::<prop::sample::Index>()) {
        let places: Vec<_> = places(&session).into_iter().collect();
        let (fault, occasions) = places[which.index(places.len())];
        let built = build(&session, Some((fault, nth.index(occasions))));
        let found = broken(&built.events);
        prop_assert!(found.first().is_some_and(|problem| problem.code == fault.code()), "{:?}: {:?}", fault, found);
    }
}
