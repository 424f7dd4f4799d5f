//! What the lifecycle needs of the payloads. Everything else in them is left unread.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Turn {
    pub turn: u64,
}

#[derive(Deserialize)]
pub(super) struct TurnEnd<'a> {
    pub turn: u64,
    #[serde(borrow)]
    pub reason: Kind<'a>,
}

#[derive(Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    pub turn: u64,
    pub step: u64,
}

#[derive(Deserialize)]
pub(super) struct AssistantMessage<'a> {
    #[serde(borrow)]
    pub message: AssistantContent<'a>,
}

#[derive(Deserialize)]
pub(super) struct AssistantContent<'a> {
    #[serde(borrow)]
    pub content: Vec<AssistantBlock<'a>>,
}

/// A block of an assistant message; `id`, `name` and `arguments` are there when it asks for a call.
#[derive(Deserialize)]
pub(super) struct AssistantBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub arguments: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub arguments: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct ToolResult<'a> {
    #[serde(borrow)]
    pub message: ResultMessage<'a>,
    #[serde(borrow)]
    pub error: Option<ResultError<'a>>,
}

/// Format 4 has the call's id and the error flag in the message; the older ones in its source and its only block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultMessage<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub tool_call_id: Option<Cow<'a, str>>,
    pub is_error: Option<bool>,
    #[serde(borrow)]
    pub source: Option<ResultSource<'a>>,
    #[serde(borrow)]
    pub content: Vec<ResultBlock<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultSource<'a> {
    #[serde(borrow)]
    pub call_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultBlock<'a> {
    #[serde(borrow)]
    pub tool_call_id: Option<Cow<'a, str>>,
    pub is_error: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct ResultError<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub code: Cow<'a, str>,
}

impl ResultMessage<'_> {
    /// The call that it answers; `None` when the message names none, or two.
    pub(super) fn call(&self) -> Option<&str> {
        let source = self.source.as_ref().and_then(|source| source.call_id.as_deref());
        let block = self.content.first().and_then(|block| block.tool_call_id.as_deref());
        let mut named = [self.tool_call_id.as_deref(), source, block].into_iter().flatten();
        let first = named.next().filter(|id| !id.is_empty())?;
        named.all(|id| id == first).then_some(first)
    }

    pub(super) fn failed(&self) -> bool {
        self.is_error.or(self.content.first().and_then(|block| block.is_error)) == Some(true)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dispatch<'a> {
    #[serde(borrow)]
    pub root_call_id: Cow<'a, str>,
    #[serde(borrow)]
    pub parent_call_id: Cow<'a, str>,
    #[serde(borrow)]
    pub sub_call_id: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct UserMessage<'a> {
    #[serde(borrow)]
    pub source: MessageSource<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageSource<'a> {
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub plugin: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub compaction_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub source_command_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Title<'a> {
    pub message_seqs: Vec<u64>,
    #[serde(borrow)]
    pub source: Option<Kind<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Command<'a> {
    #[serde(borrow, rename = "commandId")]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub kind: Option<Cow<'a, str>>,
    pub source_event_seq: Option<u64>,
}

/// `compaction/start`, `summary` and `end`. The turn is required but may be null, and is not there on summaries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compaction<'a> {
    #[serde(borrow, rename = "compactionId")]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub source_command_id: Option<Cow<'a, str>>,
    pub turn: Option<u64>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub shadowed_range: Range,
    pub shadowed_seqs: Vec<u64>,
}

#[derive(Deserialize)]
pub(super) struct Range {
    pub start: u64,
    pub end: u64,
}

#[derive(Deserialize)]
pub(super) struct RequestHeader<'a> {
    #[serde(borrow)]
    pub header: Header<'a>,
}

#[derive(Deserialize)]
pub(super) struct Header<'a> {
    #[serde(borrow)]
    pub config: Config<'a>,
}

#[derive(Deserialize)]
pub(super) struct Config<'a> {
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Retry<'a> {
    #[serde(borrow, rename = "retryId")]
    pub id: Cow<'a, str>,
    pub turn: u64,
    pub step: u64,
    #[serde(rename = "retry")]
    pub number: u64,
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    #[serde(borrow)]
    pub policy_key: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetryStarted<'a> {
    #[serde(borrow, rename = "retryId")]
    pub id: Cow<'a, str>,
    pub turn: u64,
    pub step: u64,
    #[serde(rename = "retry")]
    pub number: u64,
}

#[derive(Deserialize)]
pub(super) struct EndSeed {
    pub inherited: Option<bool>,
}
