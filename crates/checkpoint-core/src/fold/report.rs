//! The report: its language, its instruction, the event that puts it in the place of what it reports on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{LogEvent, Mark, Seq, SessionKey, SurfaceOp, Timestamp};

use super::{Block, Message, Region};

/// Source of every report: `{"kind":"plugin","plugin":"rewind"}` (001-15).
pub const REPORT_PLUGIN: &str = "rewind";

/// Language of a report (001-16).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportLanguage {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl ReportLanguage {
    /// Reads `en` or `zh`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "en" => Some(Self::En),
            "zh" => Some(Self::Zh),
            _ => None,
        }
    }

    /// Headings of the five sections, in order.
    pub const fn sections(self) -> [&'static str; 5] {
        match self {
            Self::En => {
                ["Findings", "Files and Artifacts", "Decisions", "Unresolved Questions", "Recommended Next Step"]
            }
            Self::Zh => ["发现", "文件与产物", "决策", "未决问题", "建议的下一步"],
        }
    }
}

/// What stands in a section that has nothing to say, in either language.
pub(super) const NONE: &str = "(none)";

/// What the model is asked after the region's messages.
pub fn instruction(language: ReportLanguage, objective: Option<&str>) -> String {
    let headings: Vec<String> = language.sections().iter().map(|section| format!("## {section}")).collect();
    let headings = headings.join("\n");
    let objective = objective.map(str::trim).filter(|text| !text.is_empty());
    match language {
        ReportLanguage::En => {
            let aim = objective.map_or(String::new(), |text| format!("The exploration was for: {text}\n\n"));
            format!(
                "{aim}Write a report of the exploration in the messages above. It will stand in their place, and \
                 whoever goes on will see nothing of them but this report. Do not call tools. Write Markdown with \
                 exactly these five sections, in this order:\n\n{headings}\n\nKeep paths, commands and identifiers \
                 exactly as they were. State only what the messages show. Write {NONE} in a section that has nothing \
                 to say. Be much shorter than the messages."
            )
        }
        ReportLanguage::Zh => {
            let aim = objective.map_or(String::new(), |text| format!("本次探索的目的：{text}\n\n"));
            format!(
                "{aim}请为以上消息中的探索写一份报告。报告将取代这些消息，之后的工作只能看到这份报告。不要调用工具。\
                 使用 Markdown，且只包含以下五个小节，顺序不变：\n\n{headings}\n\n路径、命令和标识符须原样保留。\
                 只陈述消息中出现的内容。没有内容的小节写 {NONE}。篇幅须远小于原消息。"
            )
        }
    }
}

#[derive(Deserialize)]
struct Sourced {
    source: Source,
}

#[derive(Serialize, Deserialize)]
struct Source {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
}

/// True for the report of a fold: a message of the plugin `rewind` that replaced something (TM37).
pub fn is_fold_report(event: &LogEvent) -> bool {
    &*event.kind == "user/message"
        && matches!(event.surface, Some(SurfaceOp::Replace { .. }))
        && event
            .read::<Sourced>()
            .is_ok_and(|data| data.source.kind == "plugin" && data.source.plugin.as_deref() == Some(REPORT_PLUGIN))
}

/// The text blocks of a report's event.
pub(super) fn text_of(event: &LogEvent) -> String {
    let blocks = Message::of(event).map(|message| message.blocks).unwrap_or_default();
    let texts = blocks.into_iter().filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A report on its way into a log.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The session.
    pub session: SessionKey,
    /// The mark it folds from.
    pub mark: u64,
    /// First message it replaces.
    pub start: Seq,
    /// Last message it replaces.
    pub end: Seq,
    /// Every message it replaces.
    pub sources: Vec<Seq>,
    /// The text.
    pub report: String,
    /// The message's id; holds the mark's number.
    pub message_id: String,
    /// Now.
    pub time: Timestamp,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// In the order of keys in which the host writes messages.
#[derive(Serialize)]
struct Body<'a> {
    content: [Text<'a>; 1],
    source: Source,
    role: &'static str,
    id: &'a str,
}

impl Replacement {
    pub(crate) fn new(
        session: &SessionKey,
        mark: u64,
        region: &Region,
        report: String,
        unique: [u8; 16],
        time: Timestamp,
    ) -> Self {
        let unique = data_encoding::HEXLOWER.encode(&unique);
        Self {
            session: session.clone(),
            mark,
            start: region.start,
            end: region.end,
            sources: region.sources(),
            report,
            message_id: format!("rewind-report-{mark}-{unique}"),
            time,
        }
    }

    /// Reads the report of `mark` back from its event; `None` for every other event.
    pub fn of_event(mark: &Mark, event: &LogEvent) -> Option<Self> {
        let Some(SurfaceOp::Replace { start, end }) = event.surface else { return None };
        let message_id = is_fold_report(event).then(|| event.read::<Identified>().ok())??.id;
        Some(Self {
            session: mark.session.clone(),
            mark: mark.id,
            start,
            end,
            sources: event.sources.clone().unwrap_or_default(),
            report: text_of(event),
            message_id,
            time: Timestamp(event.time),
        })
    }

    /// The message, as the payload of a `user/message`.
    pub fn payload(&self) -> Result<Arc<RawValue>, serde_json::Error> {
        LogEvent::payload(&Body {
            content: [Text { r#type: "text", text: &self.report }],
            source: Source { kind: "plugin".to_owned(), plugin: Some(REPORT_PLUGIN.to_owned()) },
            role: "user",
            id: &self.message_id,
        })
    }

    /// The event, at position `seq`: the one thing that a fold appends (001-15).
    pub fn event(&self, seq: Seq) -> Result<LogEvent, serde_json::Error> {
        Ok(LogEvent {
            seq,
            time: self.time.0,
            kind: "user/message".into(),
            data: self.payload()?,
            surface: Some(SurfaceOp::Replace { start: self.start, end: self.end }),
            sources: Some(self.sources.clone()),
            ignorable: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::test_log::Log;
    use serde_json::json;

    #[test]
    fn c001_16_the_instruction_asks_for_five_sections_in_order() {
        for language in [ReportLanguage::En, ReportLanguage::Zh] {
            let text = instruction(language, Some(" where is it "));
            let places: Vec<usize> =
                language.sections().iter().map(|section| text.find(&format!("## {section}")).unwrap()).collect();
            assert!(places.is_sorted(), "{text}");
            assert!(text.contains(NONE) && text.contains("where is it"));
            assert_eq!(text.matches("## ").count(), 5);
        }
        assert!(!instruction(ReportLanguage::En, Some("  ")).contains("was for"));
        assert_eq!(ReportLanguage::parse("zh"), Some(ReportLanguage::Zh));
        assert_eq!(ReportLanguage::parse("de"), None);
    }

    #[test]
    fn tm37_only_a_replacement_by_the_plugin_is_a_report() {
        let mut log = Log::default();
        let a = log.user("a");
        let region = Region { start: a, end: a, nodes: Vec::new() };
        let made = Replacement::new(&SessionKey::local(), 7, &region, "short".into(), [0; 16], Timestamp(5));
        let event = made.event(Seq(1)).unwrap();
        assert!(is_fold_report(&event));
        assert_eq!(text_of(&event), "short");
        assert_eq!(
            event.data.get(),
            "{\"content\":[{\"type\":\"text\",\"text\":\"short\"}],\"source\":{\"kind\":\"plugin\",\"plugin\":\
             \"rewind\"},\"role\":\"user\",\"id\":\"rewind-report-7-00000000000000000000000000000000\"}"
        );
        let mark = Mark {
            id: 7,
            session: SessionKey::local(),
            log_length: 0,
            turn: None,
            objective: None,
            folded: None,
            at: Timestamp(0),
        };
        let read = Replacement::of_event(&mark, &event).unwrap();
        assert_eq!((read.message_id, read.report, read.start), (made.message_id, "short".to_owned(), a));
        assert!(!is_fold_report(&LogEvent { surface: Some(SurfaceOp::Append), ..event.clone() }));
        for source in [json!({"kind": "user"}), json!({"kind": "plugin", "plugin": "other"}), json!({"kind": "plugin"})]
        {
            let data = LogEvent::payload(&json!({"content": [], "source": source})).unwrap();
            assert!(!is_fold_report(&LogEvent { data, ..event.clone() }), "{source}");
        }
    }
}
