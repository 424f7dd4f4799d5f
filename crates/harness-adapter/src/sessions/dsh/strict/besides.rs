//! What happens beside the calls: retries, commands, compactions, titles.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use checkpoint_core::{JsonText, LogEvent, Seq};

use super::{Problems, Rule, payload, surface::Surface};

/// Eight bytes that stand for an id which is over, so that its reuse is noticed without keeping it.
pub(super) fn hash(id: &JsonText) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// Retries of failed model requests: `llm/retry` schedules one, `llm/retry-started` begins it.
#[derive(Debug, Default)]
pub(super) struct Retries {
    provider: Option<JsonText>,
    /// The newest retry of each policy of the open turn.
    chains: BTreeMap<Chain, (JsonText, u64)>,
    /// Those of the open turn by their chain's id and number: the step, and whether they started.
    scheduled: BTreeMap<(JsonText, u64), (u64, bool)>,
    used: HashSet<u64>,
}

/// Step, provider, policy.
type Chain = (u64, JsonText, JsonText);

impl Retries {
    /// A request names its provider.
    pub(super) fn request(&mut self, event: &LogEvent, problems: &mut Problems) {
        if let Some(data) = problems.read::<payload::RequestHeader>(event) {
            self.provider = Some(data.header.config.provider);
        }
    }

    /// A retry is scheduled. `turn` and `step`: the current ones; the last step when none is open.
    pub(super) fn schedule(&mut self, event: &LogEvent, turn: Option<u64>, step: u64, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Retry>(event) else { return };
        if turn != Some(data.turn) || step != data.step {
            let message = format!("the retry names turn {}, step {}", data.turn, data.step);
            problems.add(Rule::RetryPlace, event.seq, message);
            return;
        }
        if self.provider.as_ref() != Some(&data.provider) {
            let before = self.provider.as_ref().map_or_else(|| "nobody".to_owned(), JsonText::to_string);
            let message = format!("the retry is for \"{}\", the request before went to {before}", data.provider);
            problems.add(Rule::RetryProvider, event.seq, message);
        }
        let chain = (data.step, data.provider, data.policy_key);
        let prior = self.chains.get(&chain);
        let due = prior.map_or(1, |(_, number)| number.saturating_add(1));
        if data.number != due {
            problems.add(Rule::RetrySequence, event.seq, format!("retry {} where {due} is due", data.number));
        }
        let own = prior.map_or_else(|| !self.used.contains(&hash(&data.id)), |(id, _)| *id == data.id);
        if !own || data.id.is_empty() {
            let message = format!("retry id \"{}\" does not belong to this policy and step", data.id);
            problems.add(Rule::RetryId, event.seq, message);
        }
        self.used.insert(hash(&data.id));
        self.scheduled.insert((data.id.clone(), data.number), (data.step, false));
        self.chains.insert(chain, (data.id, data.number));
    }

    /// A retry starts.
    pub(super) fn start(&mut self, event: &LogEvent, turn: Option<u64>, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::RetryStarted>(event) else { return };
        let place = (turn, Some(data.step));
        let key = (data.id, data.number);
        match self.scheduled.get_mut(&key) {
            Some((step, started)) if !*started && place == (Some(data.turn), Some(*step)) => *started = true,
            _ => {
                let message = format!("retry {} of \"{}\" is not due here", key.1, key.0);
                problems.add(Rule::RetryStarted, event.seq, message);
            }
        }
    }

    /// The turn is over.
    pub(super) fn close(&mut self) {
        self.chains.clear();
        self.scheduled.clear();
    }
}

/// Commands that a user typed.
#[derive(Debug, Default)]
pub(super) struct Commands {
    open: BTreeMap<JsonText, Seq>,
    used: HashSet<u64>,
    /// Where commands ran and were done, in order.
    events: Vec<Seq>,
}

impl Commands {
    pub(super) fn run(&mut self, event: &LogEvent, problems: &mut Problems) {
        self.events.push(event.seq);
        let Some(data) = problems.read::<payload::Command>(event) else { return };
        if data.id.is_empty() || !self.used.insert(hash(&data.id)) {
            problems.add(Rule::RepeatedCommand, event.seq, format!("command \"{}\" ran before", data.id));
        }
        self.open.insert(data.id, event.seq);
    }

    pub(super) fn done(&mut self, event: &LogEvent, problems: &mut Problems) {
        self.events.push(event.seq);
        let Some(data) = problems.read::<payload::Command>(event) else { return };
        if self.open.remove(&data.id).is_none() {
            problems.add(Rule::UnknownCommand, event.seq, format!("command \"{}\" does not run", data.id));
        }
        let Some(source) = data.source_event_seq else { return };
        let wrong = source >= event.seq.0 || self.events.binary_search(&Seq(source)).is_ok();
        if wrong || data.kind.is_none_or(|kind| kind != *"success") {
            problems.add(Rule::CommandSource, event.seq, format!("a command's outcome cites event {source}"));
        }
    }

    /// What ran in an earlier life of the session will not report any more.
    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    pub(super) fn finish(self, problems: &mut Problems) {
        for (id, at) in self.open {
            problems.add(Rule::OpenCommand, at, format!("command \"{id}\" has not reported that it is done"));
        }
    }
}

/// Summaries that take the place of messages.
#[derive(Debug, Default)]
pub(super) struct Compactions {
    open: Option<Compaction>,
}

#[derive(Debug)]
struct Compaction {
    id: JsonText,
    command: Option<JsonText>,
    turn: Option<u64>,
    at: Seq,
    summarised: bool,
    /// Where a turn began or ended meanwhile. It only counts when no end of a seed follows: then the compaction was one
    /// of an earlier life, which a repair ended without it.
    crossed: Option<Seq>,
    /// Where a repair closed the turn meanwhile; that alone says that the compaction will not go on.
    repaired: Option<Seq>,
}

impl Compactions {
    pub(super) fn start(&mut self, event: &LogEvent, turn: Option<u64>, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Compaction>(event) else { return };
        if let Some(open) = &self.open {
            let message = format!("compaction \"{}\" runs since {}", open.id, open.at);
            problems.add(Rule::CompactionOverlap, event.seq, message);
            self.over(problems);
        }
        if data.turn != turn {
            problems.add(Rule::CompactionTurn, event.seq, format!("the compaction names turn {}", name(data.turn)));
        }
        self.open = Some(Compaction {
            id: data.id,
            command: data.source_command_id,
            turn: data.turn,
            at: event.seq,
            summarised: false,
            crossed: None,
            repaired: None,
        });
    }

    pub(super) fn summary(&mut self, event: &LogEvent, turn: Option<u64>, surface: &Surface, problems: &mut Problems) {
        Self::span(event, surface, problems);
        let Some(data) = problems.read::<payload::Compaction>(event) else { return };
        let Some(open) = self.owner(event, &data.id, data.source_command_id.as_ref(), problems) else {
            return;
        };
        if open.turn != turn {
            problems.add(
                Rule::CompactionTurn,
                event.seq,
                format!("the compaction belongs to turn {}", name(open.turn)),
            );
        }
        if open.summarised {
            problems.add(Rule::CompactionSummary, event.seq, "the compaction has a summary already".to_owned());
        }
        open.summarised = true;
    }

    pub(super) fn end(&mut self, event: &LogEvent, turn: Option<u64>, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Compaction>(event) else { return };
        let Some(open) = self.owner(event, &data.id, data.source_command_id.as_ref(), problems) else {
            return;
        };
        let crossed = open.crossed.or(open.repaired).is_some();
        if data.turn != open.turn || open.turn != turn && !crossed {
            problems.add(
                Rule::CompactionTurn,
                event.seq,
                format!("the compaction belongs to turn {}", name(open.turn)),
            );
        }
        if data.error.is_none() && !open.summarised {
            problems.add(Rule::CompactionSummary, event.seq, "the compaction ends without a summary".to_owned());
        }
        self.over(problems);
    }

    /// A summary or a prune says which messages it is about.
    pub(super) fn span(event: &LogEvent, surface: &Surface, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Span>(event) else { return };
        let (start, end) = (data.shadowed_range.start, data.shadowed_range.end);
        if !surface.is_exactly(Seq(start), Seq(end), &data.shadowed_seqs) {
            let message = format!("messages {start} to {end} are not on the surface as listed");
            problems.add(Rule::CompactionRange, event.seq, message);
        }
    }

    /// A message takes the place of others on behalf of a compaction.
    pub(super) fn checkpoint(&mut self, event: &LogEvent, source: &payload::MessageSource, problems: &mut Problems) {
        let ours = source.kind == *"compact-checkpoint"
            || source.kind == *"plugin" && source.plugin.as_ref().is_some_and(|plugin| *plugin == *"compact");
        if ours {
            let id = source.compaction_id.clone().unwrap_or_default();
            self.owner(event, &id, source.source_command_id.as_ref(), problems);
        }
    }

    fn owner(
        &mut self,
        event: &LogEvent,
        id: &JsonText,
        command: Option<&JsonText>,
        problems: &mut Problems,
    ) -> Option<&mut Compaction> {
        let open = self.open.as_mut().filter(|open| open.id == *id && open.command.as_ref() == command);
        if open.is_none() {
            problems.add(Rule::CompactionMismatch, event.seq, format!("compaction \"{id}\" does not run"));
        }
        open
    }

    /// A turn begins or ends; `by_repair`: a repair ended it.
    pub(super) fn crossed(&mut self, at: Seq, by_repair: bool) {
        if let Some(open) = &mut self.open {
            let place = if by_repair { &mut open.repaired } else { &mut open.crossed };
            place.get_or_insert(at);
        }
    }

    /// What ran in an earlier life of the session is over.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// The open one is over.
    fn over(&mut self, problems: &mut Problems) {
        let Some(open) = self.open.take() else { return };
        if let Some(at) = open.crossed.or(open.repaired) {
            let message = format!("compaction \"{}\" runs since {}", open.id, open.at);
            problems.add(Rule::CompactionCrossesTurn, at, message);
        }
    }

    pub(super) fn finish(mut self, problems: &mut Problems) {
        match &self.open {
            Some(open) if open.crossed.is_none() => {
                problems.add(Rule::OpenCompaction, open.at, format!("compaction \"{}\" has not ended", open.id));
            }
            _ => self.over(problems),
        }
    }
}

fn name(turn: Option<u64>) -> String {
    turn.map_or_else(|| "none".to_owned(), |turn| turn.to_string())
}

/// Titles, and the requests for them.
#[derive(Debug, Default)]
pub(super) struct Titles {
    /// The messages that people wrote, in order.
    human: Vec<u64>,
}

impl Titles {
    pub(super) fn message(&mut self, at: Seq, source: &payload::MessageSource) {
        if source.kind == *"user" {
            self.human.push(at.0);
        }
    }

    pub(super) fn title(&self, event: &LogEvent, problems: &mut Problems) {
        let Some(data) = problems.read::<payload::Title>(event) else { return };
        let given =
            &*event.kind == "session/title" && data.source.as_ref().is_some_and(|source| source.kind == *"user");
        if data.message_seqs.is_empty() != given {
            let message = if given { "a title that the user gave cites messages" } else { "no message is cited" };
            problems.add(Rule::TitleSources, event.seq, message.to_owned());
        }
        let mut seqs = data.message_seqs;
        seqs.sort_unstable();
        if let Some([twice, _]) = seqs.array_windows().find(|[a, b]| a == b) {
            problems.add(Rule::TitleSources, event.seq, format!("message {twice} is cited twice"));
        }
        if let Some(seq) = seqs.iter().find(|seq| self.human.binary_search(seq).is_err()) {
            problems.add(Rule::TitleSources, event.seq, format!("event {seq} is no message of the user before this"));
        }
    }
}
