//! What the host's reader checks of every event: its envelope, the shape of messages, and the surface.
//!
//! The *surface* is the list of messages that the model sees. An event of a message type appends to it or takes the place
//! of some of its nodes. Only positions are kept of it, and for results of tools a digest of what may not change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use checkpoint_core::{Seq, SurfaceOp};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{
    json::{integer, is_full_string, is_text, present, text},
    rows::{Fields, Row, sources},
    vocabulary::kind,
};

/// Why the host refuses an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Its type is not known and it is not marked as ignorable.
    Unknown,
    /// It breaks a rule.
    Bad(&'static str),
}

type Checked<T> = Result<T, &'static str>;

/// A message on the surface.
#[derive(Debug)]
struct Node {
    seq: u64,
    /// Of a tool's result: everything but the content of its block.
    fixed: Option<[u8; 8]>,
}

/// Checks events one after the other.
///
/// A message has its own position on the surface until it replaces others: then it takes the place of the first of them.
/// So places stay in order, and every one is found without a search through all.
#[derive(Debug)]
pub(super) struct Checker {
    version: u64,
    nodes: BTreeMap<u64, Node>,
    /// Places of messages that took one of another.
    moved: HashMap<u64, u64>,
}

/// A message; unknown keys are normal.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    role: &'a RawValue,
    #[serde(borrow)]
    source: Source<'a>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow)]
    kind: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "present")]
    provider: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "callId", deserialize_with = "present")]
    call: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Holds<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

/// The same, its message unread.
#[derive(Deserialize)]
struct Holder<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct ResultBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a RawValue,
    #[serde(borrow, rename = "toolCallId")]
    call: &'a RawValue,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct RequestHeader<'a> {
    #[serde(borrow)]
    header: Request<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    config: Config<'a>,
    #[serde(borrow, default, deserialize_with = "present")]
    adapter_defaults: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(borrow)]
    provider: &'a RawValue,
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow, default, deserialize_with = "present")]
    reasoning_effort: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AdapterDefaults<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    reasoning_effort: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
}

fn ensure(sound: bool, why: &'static str) -> Checked<()> {
    if sound { Ok(()) } else { Err(why) }
}

fn full(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(is_full_string)
}

impl Checker {
    pub(super) fn new(version: u64) -> Self {
        Self { version, nodes: BTreeMap::new(), moved: HashMap::new() }
    }

    /// Checks the next row.
    ///
    /// Of versions 2 to 4, which were read in sources and not tried, only types and envelopes are checked: an event that
    /// passes can be handed over as one.
    pub(super) fn check(&mut self, row: &Row<'_>) -> Result<(), Fault> {
        // The events of a packed row have the plain envelope and are no messages.
        let Row::Event { kind: name, seq, fields } = row else { return Ok(()) };
        let known = kind(name, self.version);
        if known.is_none() && fields.ignorable.is_none_or(|flag| flag.get() != "true") {
            return Err(Fault::Unknown);
        }
        let eligible = known.is_some_and(|kind| kind.surface);
        self.event(name, *seq, fields, eligible).map_err(Fault::Bad)
    }

    fn event(&mut self, name: &str, seq: u64, fields: &Fields<'_>, eligible: bool) -> Checked<()> {
        ensure(!name.is_empty() && !fields.has_strange_key(), "the event has a key that no event has")?;
        ensure(fields.time.and_then(integer).is_some(), "time is missing or no integer")?;
        ensure(fields.ignorable.is_none_or(|flag| flag.get() == "true"), "ignorable may only be true")?;
        let data = fields.data.ok_or("data is missing")?;
        let bad_surface = "surfaceOp is neither append nor a replacement";
        let bad_sources = "sourceEventSeqs are not different earlier events";
        if self.version != 0 {
            ensure(fields.surface().is_none_or(|op| op.is_ok()), bad_surface)?;
            return ensure(fields.sources.is_none_or(|raw| sources(raw, seq, true).is_some()), bad_sources);
        }
        if !eligible {
            ensure(fields.surface.is_none(), "only messages may have a surfaceOp")?;
            ensure(fields.sources.is_none(), "only messages may have sourceEventSeqs")?;
            return if name == "request/header" { request_header(data) } else { Ok(()) };
        }
        let op = fields.surface().ok_or("a message needs a surfaceOp")?;
        let op = op.map_err(|()| bad_surface)?;
        let from = fields.sources.map(|raw| sources(raw, seq, false).ok_or(bad_sources)).transpose()?;
        let may_be_empty = name == "assistant/message";
        ensure(from.as_ref().is_none_or(|from| may_be_empty || !from.is_empty()), "sourceEventSeqs are empty")?;
        let fixed = message(name, data)?;
        self.fold(seq, op, from.as_deref().unwrap_or_default(), fixed)
    }

    fn fold(&mut self, seq: u64, op: SurfaceOp, from: &[Seq], fixed: Option<[u8; 8]>) -> Checked<()> {
        let new = Node { seq, fixed };
        let SurfaceOp::Replace { start, end } = op else {
            self.nodes.insert(seq, new);
            return Ok(());
        };
        let place = |seq: Seq| {
            let place = self.moved.get(&seq.0).copied().unwrap_or(seq.0);
            let there = self.nodes.get(&place).is_some_and(|node| node.seq == seq.0);
            if there { Ok(place) } else { Err("no message is there to replace") }
        };
        let (start, end) = (place(start)?, place(end)?);
        // A range that ends right before its start would be an empty one, not an error.
        ensure(start <= end, "the replacement ends before it starts")?;
        let replaced: Vec<(u64, u64)> = self.nodes.range(start..=end).map(|(place, node)| (*place, node.seq)).collect();
        let named: BTreeSet<u64> = from.iter().map(|seq| seq.0).collect();
        ensure(replaced.iter().all(|(_, seq)| named.contains(seq)), "sourceEventSeqs lack a replaced message")?;
        if fixed.is_some() {
            let same = start == end && self.nodes.get(&start).is_some_and(|node| node.fixed == fixed);
            ensure(same, "a tool's result may only take the place of itself, with other content")?;
        }
        for (place, seq) in replaced {
            self.nodes.remove(&place);
            self.moved.remove(&seq);
        }
        self.nodes.insert(start, new);
        self.moved.insert(seq, start);
        Ok(())
    }
}

/// Checks a message; of a tool's result gives the digest of what may not change.
fn message(name: &str, data: &RawValue) -> Checked<Option<[u8; 8]>> {
    let shape = "the message has not the shape of one";
    let message = if name == "user/message" {
        serde_json::from_str::<Message<'_>>(data.get()).map_err(|_| shape)?
    } else {
        serde_json::from_str::<Holds<'_>>(data.get()).map_err(|_| shape)?.message
    };
    ensure(is_full_string(message.id), "the message has no id")?;
    let role = if name == "assistant/message" { "assistant" } else { "user" };
    ensure(is_text(message.role, role), "the message has another role than its type")?;
    let source = &message.source;
    ensure(is_full_string(source.kind), "the message's source has no kind")?;
    match name {
        "assistant/message" => {
            let model = is_text(source.kind, "model") && full(source.provider) && full(source.model);
            ensure(model, "the message's source is not a model")?;
            Ok(None)
        }
        "tool/result" => {
            let call = source.call.filter(|call| is_full_string(call) && is_text(source.kind, "tool"));
            let call = call.ok_or("the message's source is not a call")?;
            let [block] = *message.content else { return Err("a tool's result has not exactly one block") };
            let read: ResultBlock<'_> =
                serde_json::from_str(block.get()).map_err(|_| "the block is no tool's result")?;
            let sound = is_text(read.kind, "tool-result") && read.content.get().starts_with('[');
            ensure(sound, "the block is no tool's result")?;
            ensure(
                text(read.call).is_some() && text(read.call) == text(call),
                "the message has two different call ids",
            )?;
            Ok(Some(fixed(data, block)?))
        }
        _ => Ok(None),
    }
}

/// A digest of everything in a result but the content of its block. Values are compared as they are written.
fn fixed(data: &RawValue, block: &RawValue) -> Checked<[u8; 8]> {
    let mut digest = Sha256::new();
    let mut add = |object: &RawValue, without: &str| -> Checked<()> {
        let unread = "the message has not the shape of one";
        let map: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).map_err(|_| unread)?;
        for (key, value) in map.into_iter().filter(|(key, _)| key != without) {
            digest.update(key);
            digest.update([0]);
            digest.update(value.get());
            digest.update([0]);
        }
        digest.update([0]);
        Ok(())
    };
    let holder: Holder<'_> = serde_json::from_str(data.get()).map_err(|_| "the message has not the shape of one")?;
    add(data, "message")?;
    add(holder.message, "content")?;
    add(block, "content")?;
    let whole: [u8; 32] = digest.finalize().into();
    Ok(*whole.first_chunk().expect("8 are fewer than 32"))
}

fn request_header(data: &RawValue) -> Checked<()> {
    let shape = "the request header has not the shape of one";
    let read: RequestHeader<'_> = serde_json::from_str(data.get()).map_err(|_| shape)?;
    ensure(read.reason.is_none_or(|reason| !is_text(reason, "fallback")), "the request header is of a retired kind")?;
    let config = &read.header.config;
    let named = is_full_string(config.provider) && is_full_string(config.model);
    ensure(named, "the request header names no provider or model")?;
    ensure(config.reasoning_effort.is_none_or(is_full_string), "reasoningEffort is no text")?;
    let Some(defaults) = read.header.adapter_defaults else { return Ok(()) };
    let wrong = "adapterDefaults has not the shape of one";
    let defaults: AdapterDefaults<'_> = serde_json::from_str(defaults.get()).map_err(|_| wrong)?;
    let sound = |flag: Option<&RawValue>, value: Option<&RawValue>| {
        flag.is_none_or(|flag| flag.get() == "true" && value.is_some())
    };
    let both =
        sound(defaults.reasoning_effort, config.reasoning_effort) && sound(defaults.max_tokens, config.max_tokens);
    ensure(both, "adapterDefaults names what config lacks")
}
