//! Mistakes, one for each rule of the lifecycle or more.

macro_rules! faults {
    ($($name:ident $code:literal $what:literal)*) => {
        /// One mistake in an otherwise sound log.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Fault {
            $(#[doc = $what] $name,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code of the rule that it breaks.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

faults! {
    SeqSkipped "seq-gap" "A seq is left out."
    NoTurnNumber "malformed" "A turn starts without its number."
    TurnSkipped "turn-number" "A turn has the number after the next."
    TurnEndMissing "turn-in-turn" "A turn is not ended before the next one starts."
    TurnEndTwice "turn-end-unopened" "A turn ends twice."
    StepEndMissing "turn-end-in-step" "A turn ends in its last step."
    HeaderOutside "outside-turn" "A request's header is logged between turns."
    StepOutside "outside-turn" "A step starts between turns."
    StepSkipped "step-number" "A step has the number after the next."
    StepInStep "step-in-step" "A step is not ended before the next one starts."
    ChunkOutside "outside-step" "A chunk comes after the end of its step."
    ChunkOfOtherStep "outside-step" "A chunk names another step."
    StepEndTwice "outside-step" "A step ends twice."
    AskedTwice "repeated-call" "A message asks twice for the same call."
    CallUnknown "unknown-call" "A call begins that nobody asked for."
    ResultUnknown "unknown-call" "A call has a result that nobody asked for."
    CallDiffers "call-mismatch" "A call begins with other arguments."
    CallTwice "call-twice" "A call begins twice."
    CallMissing "result-before-call" "A result is there without its call."
    CitationMissing "result-citation" "A result cites nothing."
    ResultTwice "answered-twice" "A call has two results."
    ResultMissing "unanswered-call" "A call has no result."
    NestedElsewhere "dispatch-place" "A nested call names a parent that is none."
    NestedStartTwice "dispatch-twice" "A nested call starts twice."
    NestedEndTwice "dispatch-twice" "A nested call settles twice."
    NestedDiffers "dispatch-mismatch" "A nested call settles under another name."
    NestedEndMissing "dispatch-unsettled" "A nested call never settles."
    OpMissing "surface-op" "A message does not say what it does."
    OpElsewhere "surface-op" "An event that is no message says what it does."
    ReplacesNothing "surface-node" "A message replaces one that is not there."
    SourceTwice "surface-sources" "A source is named twice."
    SourceLater "surface-sources" "A source is not earlier."
    ReplacedUncited "surface-sources" "A message that is replaced is not among the sources."
    ResultReplacesPrompt "surface-result" "A result replaces a message of the user."
    LateSystem "system-head" "A system message comes after others."
    TitleFromNothing "title-sources" "A title of a program cites no message."
    TitleFromPlugin "title-sources" "A title cites a message that no human wrote."
    CommandTwice "repeated-command" "Two commands have one id."
    CommandUnknown "unknown-command" "A command is done that did not run."
    CommandCitesItself "command-source" "A command's outcome cites the command."
    CompactionTwice "compaction-overlap" "A compaction starts in another."
    CompactionElsewhere "compaction-turn" "A compaction names another turn."
    CompactionDiffers "compaction-mismatch" "A compaction's end has another id."
    SummaryMissing "compaction-summary" "A compaction ends well without a summary."
    SummaryDiffers "compaction-range" "A summary leaves out a message of its range."
    CompactionEndMissing "compaction-crosses-turn" "A compaction goes on over the end of its turn."
    RetryElsewhere "retry-place" "A retry names another step."
    RetryOfOther "retry-provider" "A retry names another provider."
    RetrySkipped "retry-sequence" "A retry has the number after the next."
    RetryRenamed "retry-id" "A later retry has an id of its own."
    RetryUnscheduled "retry-started" "A retry starts that was not scheduled."
    RetryStartedTwice "retry-started" "A retry starts twice."
    SeedOfNothing "end-seed" "An end of a seed says that nothing was inherited."
}
