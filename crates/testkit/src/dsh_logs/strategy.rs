//! Random sessions and files.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{Answer, Between, Call, Encoding, Layout, Session, Step, Turn, TurnEnd};

/// Sessions of a few turns: enough for every kind of event, small enough to shrink well.
pub fn sessions() -> impl Strategy<Value = Session> {
    let between = vec(vec(between(), 0..3), 0..5);
    (between, vec(turn(), 0..4), vec(-3..2000_i16, 0..4)).prop_map(|(between, turns, ticks)| Session {
        between,
        turns,
        ticks,
    })
}

/// Every way to write events into a file.
pub fn layouts() -> impl Strategy<Value = Layout> {
    let encoding = select(vec![Encoding::Zstd, Encoding::Plain]);
    let batches = prop_oneof![Just(Vec::new()), Just(vec![1]), vec(1..9_u8, 1..5)];
    (encoding, any::<bool>(), batches).prop_map(|(encoding, packed, batches)| Layout { encoding, packed, batches })
}

fn text() -> impl Strategy<Value = String> {
    // What escapes, what does not, what is longer as UTF-16, and nothing at all.
    let parts = vec!["", "a", "\"", "\\", "\n", "\u{1}", "\u{7f}", "\u{2028}", "ä", "日本", "\u{1f600}", "{\"seq\":1}"];
    prop_oneof![4 => select(parts).prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..6)
}

fn turn() -> impl Strategy<Value = Turn> {
    let end = select(vec![
        TurnEnd::Completed,
        TurnEnd::Completed,
        TurnEnd::Aborted,
        TurnEnd::Blocked,
        TurnEnd::Error,
        TurnEnd::MaxTokens,
        TurnEnd::Interrupted,
    ]);
    let few = || option::weighted(0.3, 0..6_u8);
    let flag = any::<bool>;
    (text(), flag(), flag(), few(), few(), vec(step(), 0..4), end).prop_map(
        |(prompt, context, header, todos, compaction, steps, end)| Turn {
            prompt,
            context,
            header,
            todos,
            compaction,
            steps,
            end,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let retries = prop_oneof![3 => Just(0), 1 => 1..4_u8];
    (pieces(), pieces(), retries, vec(call(), 0..3), any::<bool>(), any::<bool>()).prop_map(
        |(reasoning, text, retries, calls, parallel, prune)| Step { reasoning, text, retries, calls, parallel, prune },
    )
}

fn call() -> impl Strategy<Value = Call> {
    let answer = select(vec![Answer::Fine, Answer::Fine, Answer::Failed, Answer::NeverStarted]);
    let nested = prop_oneof![2 => Just(0), 1 => 1..4_u8];
    (pieces(), nested, answer).prop_map(|(pieces, nested, answer)| Call { pieces, nested, answer })
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        any::<bool>().prop_map(Between::Title),
        Just(Between::TitleRequest),
        any::<bool>().prop_map(Between::Command),
        (0..6_u8).prop_map(Between::Compact),
        text().prop_map(Between::Queued),
        Just(Between::Goal),
        Just(Between::Resume),
        Just(Between::Crash),
        text().prop_map(Between::Notice),
        Just(Between::Foreign),
    ]
}
