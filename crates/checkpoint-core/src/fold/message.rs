//! Messages as the model sees them: what of them is text, and how much.

use std::borrow::Cow;

use serde_json::Value;

use crate::LogEvent;

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A person, or a plugin in a person's place.
    User,
    /// The model.
    Assistant,
    /// A tool that answers a call.
    Tool,
}

/// One part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Block {
    /// Text.
    Text(String),
    /// What the model thought.
    Reasoning(String),
    /// A call that the model made.
    Call {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, as JSON text.
        arguments: String,
    },
    /// The answer to a call.
    Result {
        /// The call's id.
        call: String,
        /// True when the tool failed.
        failed: bool,
        /// What it answered.
        content: Vec<Block>,
    },
    /// A picture or anything else that is no text.
    Other,
}

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
}

impl Message {
    /// Reads the message of an event; `None` when the event is none. Shapes that are not known count as no text.
    pub fn of(event: &LogEvent) -> Option<Self> {
        let role = match &*event.kind {
            "user/message" => Role::User,
            "assistant/message" => Role::Assistant,
            "tool/result" => Role::Tool,
            _ => return None,
        };
        let data = value(event.data.get());
        let message = if role == Role::User { &data } else { data.get("message")? };
        Some(Self { role, blocks: blocks(message.get("content")) })
    }

    /// Characters of all that the model reads: text, reasoning, arguments of calls, answers of tools however deep.
    /// Pictures and the like count nothing (001-14).
    pub fn text_chars(&self) -> u64 {
        chars_of(&self.blocks)
    }

    /// True when it says nothing and calls nothing: what an interrupted model leaves.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| match block {
            Block::Text(text) | Block::Reasoning(text) => text.is_empty(),
            _ => false,
        })
    }

    /// Ids of the calls it makes.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }

    /// Ids of the calls it answers.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Result { call, .. } => Some(call.as_str()),
            _ => None,
        })
    }

    /// The message as plain text, calls and answers in words.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        say(&self.blocks, &mut parts);
        parts.join("\n")
    }
}

/// Characters as the source system counts them: UTF-16 code units.
pub fn char_count(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// Reads JSON of a harness. Strings there are JavaScript's and may hold half of a surrogate pair, where a model's stream
/// was cut; each such half is read as U+FFFD, which has the same length.
pub(super) fn value(json: &str) -> Value {
    serde_json::from_str(&without_halves(json)).unwrap_or(Value::Null)
}

fn without_halves(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut sound = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(next) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += next;
        at += match unit(at) {
            Some(0xd800..0xdc00) if matches!(unit(at + 6), Some(0xdc00..0xe000)) => 12,
            Some(0xd800..0xe000) => {
                sound.push_str(json.get(from..at).unwrap_or_default());
                sound.push_str("\\ufffd");
                from = at + 6;
                6
            }
            // Also of an escaped backslash, so that what follows that is not taken for an escape.
            _ => 2,
        };
    }
    if from == 0 {
        return Cow::Borrowed(json);
    }
    sound.push_str(json.get(from..).unwrap_or_default());
    Cow::Owned(sound)
}

fn chars_of(blocks: &[Block]) -> u64 {
    let chars = |block: &Block| match block {
        Block::Text(text) | Block::Reasoning(text) => char_count(text),
        Block::Call { arguments, .. } => char_count(arguments),
        Block::Result { content, .. } => chars_of(content),
        Block::Other => 0,
    };
    blocks.iter().map(chars).sum()
}

fn say(blocks: &[Block], parts: &mut Vec<String>) {
    for block in blocks {
        match block {
            Block::Text(text) | Block::Reasoning(text) if text.is_empty() => {}
            Block::Text(text) => parts.push(text.clone()),
            Block::Reasoning(text) => parts.push(format!("[thinking] {text}")),
            Block::Call { name, arguments, .. } => parts.push(format!("[call {name}] {arguments}")),
            Block::Result { failed, content, .. } => {
                parts.push(if *failed { "[error]".to_owned() } else { "[result]".to_owned() });
                say(content, parts);
            }
            Block::Other => parts.push("[not text]".to_owned()),
        }
    }
}

fn blocks(content: Option<&Value>) -> Vec<Block> {
    match content {
        Some(Value::String(text)) => vec![Block::Text(text.clone())],
        Some(Value::Array(list)) => list.iter().map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(value: &Value) -> Block {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let read = || match text("type")?.as_str() {
        "text" => Some(Block::Text(text("text")?)),
        "reasoning" => Some(Block::Reasoning(text("text")?)),
        "tool-call" => {
            let arguments = match value.get("arguments")? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some(Block::Call { id: text("id")?, name: text("name").unwrap_or_default(), arguments })
        }
        "tool-result" => Some(Block::Result {
            call: text("toolCallId")?,
            failed: value.get("isError").and_then(Value::as_bool).unwrap_or(false),
            content: blocks(value.get("content")),
        }),
        _ => None,
    };
    read().unwrap_or(Block::Other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::test_log::Log;

    /// K-14: upstream counted no tool text, so that every fold was refused as no smaller.
    #[test]
    fn c001_14_all_that_the_model_reads_counts_and_pictures_do_not() {
        let mut log = Log::default();
        log.assistant_with(serde_json::json!([
            {"type": "reasoning", "text": "abc"},
            {"type": "text", "text": "de"},
            {"type": "tool-call", "id": "c", "name": "read", "arguments": "{\"a\":1}"},
            {"type": "image", "data": "AAAAAAAAAAAA"},
            {"type": "video"}, 7, null,
        ]));
        log.result_with(
            "c",
            serde_json::json!([
                {"type": "text", "text": "fgh"},
                {"type": "tool-result", "toolCallId": "n", "content": [{"type": "text", "text": "ij"}]},
                {"type": "image", "data": "AAAA"},
            ]),
        );
        let chars: Vec<u64> = log.events().iter().map(|e| Message::of(e).unwrap().text_chars()).collect();
        assert_eq!(chars, [3 + 2 + 7, 3 + 2]);
        assert_eq!(char_count("héé😀"), 5, "as the source system counts");
    }

    /// A stream that was cut inside a surrogate pair left half of it; such a message must not vanish from a region.
    #[test]
    fn halves_of_surrogate_pairs_are_read_and_counted() {
        let text = |json: &str| value(json).as_str().map(str::to_owned);
        for (json, read) in [
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ude00b""#, "\u{fffd}b"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\ud83d\ud83d\ude00\uDE00x""#, "\u{fffd}😀\u{fffd}x"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""é\n\u00e9""#, "é\né"),
        ] {
            assert_eq!(text(json).as_deref(), Some(read), "{json}");
        }
        assert_eq!(value("{"), Value::Null);
        let mut log = Log::default();
        log.user("x");
        let mut event = log.events()[0].clone();
        let raw = r#"{"content":[{"type":"text","text":"ab\ud83d"}],"source":{"kind":"user"},"role":"user","id":"u"}"#;
        event.data = serde_json::from_str::<Box<serde_json::value::RawValue>>(raw).unwrap().into();
        assert_eq!(Message::of(&event).unwrap().text_chars(), 3);
    }
}
