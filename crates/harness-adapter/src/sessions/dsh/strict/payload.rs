//! What the lifecycle needs of the payloads. Everything else in them is left unread. Strings may hold lone surrogates.

use checkpoint_core::JsonText;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Turn {
    pub turn: u64,
}

#[derive(Deserialize)]
pub(super) struct TurnEnd {
    pub turn: u64,
    pub reason: Kind,
}

#[derive(Deserialize)]
pub(super) struct Kind {
    pub kind: JsonText,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Place {
    pub turn: u64,
    pub step: u64,
}

#[derive(Deserialize)]
pub(super) struct AssistantMessage {
    pub message: AssistantContent,
}

#[derive(Deserialize)]
pub(super) struct AssistantContent {
    pub content: Vec<AssistantBlock>,
}

/// A block of an assistant message; `id`, `name` and `arguments` are there when it asks for a call.
#[derive(Deserialize)]
pub(super) struct AssistantBlock {
    #[serde(rename = "type")]
    pub kind: JsonText,
    pub id: Option<JsonText>,
    pub name: Option<JsonText>,
    pub arguments: Option<JsonText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub call_id: JsonText,
    pub name: JsonText,
    pub arguments: JsonText,
}

#[derive(Deserialize)]
pub(super) struct ToolResult {
    pub message: ResultMessage,
    pub error: Option<ResultError>,
}

/// Format 4 has the call's id and the error flag in the message; the older ones in its source and its only block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultMessage {
    pub id: JsonText,
    pub tool_call_id: Option<JsonText>,
    pub is_error: Option<bool>,
    pub source: Option<ResultSource>,
    pub content: Vec<ResultBlock>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultSource {
    pub call_id: Option<JsonText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultBlock {
    pub tool_call_id: Option<JsonText>,
    pub is_error: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct ResultError {
    pub name: JsonText,
    pub code: JsonText,
}

impl ResultMessage {
    /// The call that it answers; `None` when the message names none, or two.
    pub(super) fn call(&self) -> Option<&JsonText> {
        let source = self.source.as_ref().and_then(|source| source.call_id.as_ref());
        let block = self.content.first().and_then(|block| block.tool_call_id.as_ref());
        let mut named = [self.tool_call_id.as_ref(), source, block].into_iter().flatten();
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
    pub root_call_id: JsonText,
    pub parent_call_id: JsonText,
    pub sub_call_id: JsonText,
    pub name: JsonText,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct UserMessage {
    pub source: MessageSource,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageSource {
    pub kind: JsonText,
    pub plugin: Option<JsonText>,
    pub compaction_id: Option<JsonText>,
    pub source_command_id: Option<JsonText>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Title {
    pub message_seqs: Vec<u64>,
    pub source: Option<Kind>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Command {
    #[serde(rename = "commandId")]
    pub id: JsonText,
    pub kind: Option<JsonText>,
    pub source_event_seq: Option<u64>,
}

/// `compaction/start`, `summary` and `end`. The turn is required but may be null, and is not there on summaries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compaction<'a> {
    #[serde(rename = "compactionId")]
    pub id: JsonText,
    pub source_command_id: Option<JsonText>,
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
pub(super) struct RequestHeader {
    pub header: Header,
}

#[derive(Deserialize)]
pub(super) struct Header {
    pub config: Config,
}

#[derive(Deserialize)]
pub(super) struct Config {
    pub provider: JsonText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Retry {
    #[serde(rename = "retryId")]
    pub id: JsonText,
    pub turn: u64,
    pub step: u64,
    #[serde(rename = "retry")]
    pub number: u64,
    pub provider: JsonText,
    pub policy_key: JsonText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RetryStarted {
    #[serde(rename = "retryId")]
    pub id: JsonText,
    pub turn: u64,
    pub step: u64,
    #[serde(rename = "retry")]
    pub number: u64,
}

#[derive(Deserialize)]
pub(super) struct EndSeed {
    pub inherited: Option<bool>,
}
