//! The rules of the lifecycle, in one table: code, class, meaning.

/// Whether a problem is a mistake in what was written, or only something that has not ended yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Something was begun and has no end by the end of the log: a session that still runs, or one that was interrupted
    /// and not repaired yet. What the host appends on its next load closes turns, steps and calls.
    Open,
    /// No later event can make it right.
    Broken,
}

macro_rules! rules {
    ($($name:ident $code:literal $severity:ident $meaning:literal)*) => {
        /// One rule. Codes are stable; new ones may be added.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $meaning] $name,)*
        }

        impl Rule {
            /// All rules, in the order in which this page explains them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in answers and scripts, in kebab case.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Broken or merely open.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// What it asks for when it is broken, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

rules! {
    SeqGap "seq-gap" Broken "Events are numbered 0, 1, 2, … without gaps."
    Malformed "malformed" Broken "A payload holds what its type must carry, in the shape that the host writes."

    TurnNumber "turn-number" Broken "The first turn is 1, and each further one is one more, over forks and resumes too."
    TurnInTurn "turn-in-turn" Broken "A turn starts only when the one before has ended."
    TurnEndUnopened "turn-end-unopened" Broken "A turn/end names the turn that is open."
    TurnEndInStep "turn-end-in-step" Broken "A turn ends only when its last step has ended."
    OutsideTurn "outside-turn" Broken "What belongs to a turn stands between its start and its end."
    StepNumber "step-number" Broken "Steps count from 1 in every turn."
    StepInStep "step-in-step" Broken "A step starts only when the one before has ended."
    OutsideStep "outside-step" Broken "What belongs to a step stands inside it and names the open turn and step."

    RepeatedCall "repeated-call" Broken "An assistant message asks for no call that is open already."
    UnknownCall "unknown-call" Broken "Calls and results belong to a call that an assistant message of the open step asked for."
    CallMismatch "call-mismatch" Broken "A tool/call has the name and the arguments that the assistant message gave."
    CallTwice "call-twice" Broken "A call is begun once."
    ResultBeforeCall "result-before-call" Broken "A result follows its tool/call, unless it says that the call never started."
    ResultCitation "result-citation" Broken "A result cites the tool/call that it answers."
    AnsweredTwice "answered-twice" Broken "A call has one result."
    UnansweredCall "unanswered-call" Broken "Every call that was asked for has a result before its step ends."

    DispatchPlace "dispatch-place" Broken "A nested call runs inside a call that has begun and has no result yet, and names its parent there."
    DispatchTwice "dispatch-twice" Broken "A nested call starts once and settles once."
    DispatchMismatch "dispatch-mismatch" Broken "A nested call settles under the ids, the name and the arguments with which it started."
    DispatchUnsettled "dispatch-unsettled" Broken "Nested calls settle before the call that they belong to has its result."

    SurfaceOp "surface-op" Broken "Messages say what they do to the surface, and nothing else does."
    SurfaceNode "surface-node" Broken "A replacement names the first and the last of consecutive messages of the current surface."
    SurfaceSources "surface-sources" Broken "Sources are distinct earlier events, and hold every message that is replaced."
    SurfaceResult "surface-result" Broken "A result replaces exactly one result, of the same call."
    SystemHead "system-head" Broken "A system message heads the surface, and only another one replaces it."

    TitleSources "title-sources" Broken "A title cites distinct earlier messages of the user, and none exactly when the user gave it."

    RepeatedCommand "repeated-command" Broken "A command has an id of its own."
    UnknownCommand "unknown-command" Broken "A command/done answers a command that runs."
    CommandSource "command-source" Broken "A command that succeeded may cite an earlier event that is no command's."

    CompactionOverlap "compaction-overlap" Broken "A compaction starts only when the one before has ended."
    CompactionTurn "compaction-turn" Broken "A compaction names the turn that is open, or none between turns."
    CompactionMismatch "compaction-mismatch" Broken "What belongs to a compaction has the ids of the one that is open."
    CompactionSummary "compaction-summary" Broken "A compaction that succeeded has one summary."
    CompactionRange "compaction-range" Broken "A summary or a prune names a piece of the current surface exactly."
    CompactionCrossesTurn "compaction-crosses-turn" Broken "No turn starts or ends while a compaction runs."

    RetryPlace "retry-place" Broken "A retry names the current turn and step."
    RetryProvider "retry-provider" Broken "A retry names the provider of the request that failed."
    RetrySequence "retry-sequence" Broken "The retries of one policy in one step count from 1."
    RetryId "retry-id" Broken "The retries of one policy in one step share an id that no others have."
    RetryStarted "retry-started" Broken "A retry that starts was scheduled in the same turn and step, and starts once."

    EndSeed "end-seed" Broken "A session/end-seed is empty or says that what precedes it was inherited."

    MoreProblems "more-problems" Broken "There are more problems than are listed."

    OpenTurn "open-turn" Open "The last turn has no end yet."
    OpenStep "open-step" Open "The last step has no end yet."
    OpenCall "open-call" Open "A call of the last step has no result yet."
    OpenDispatch "open-dispatch" Open "A nested call has not settled yet."
    OpenCommand "open-command" Open "A command has not reported that it is done."
    OpenCompaction "open-compaction" Open "A compaction has not ended yet."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_lists_every_rule_as_it_is() {
        let page = include_str!("../../../../../../docs/session-rules.md");
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let due = Rule::ALL.iter().map(|rule| {
            let class = if rule.severity() == Severity::Open { "open" } else { "broken" };
            format!("| `{}` | {class} | {} |", rule.code(), rule.meaning())
        });
        assert_eq!(rows, due.collect::<Vec<_>>());
    }

    #[test]
    fn codes_are_distinct_and_written_alike() {
        let codes: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.code()).collect();
        assert_eq!(codes.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            assert!(rule.code().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{rule:?}");
            assert!(rule.meaning().ends_with('.'), "{rule:?}");
            assert_eq!(rule.severity() == Severity::Open, rule.code().starts_with("open-"), "{rule:?}");
        }
    }
}
