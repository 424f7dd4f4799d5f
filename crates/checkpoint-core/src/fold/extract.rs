//! A report without a model: what the log itself says of the exploration, and that it was made this way.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{LogEvent, Mark};

use super::{Block, FoldError, Message, Region, ReportLanguage, char_count, message::value, report::NONE};

/// How much is told: characters of the last text, entries of each list, characters of an entry. The first that is
/// shorter than the region is taken.
const LEVELS: [(usize, usize, usize); 5] =
    [(4000, 200, 400), (1500, 50, 200), (500, 20, 120), (160, 8, 80), (0, 3, 60)];

/// What was found in a region.
#[derive(Debug, Default)]
struct Facts {
    said: Option<String>,
    commands: Vec<String>,
    written: Vec<String>,
    read: Vec<String>,
    failed: Vec<String>,
}

/// Words around the facts.
struct Words {
    heading: &'static str,
    purpose: &'static str,
    said: &'static str,
    commands: &'static str,
    written: &'static str,
    read: &'static str,
    failed: &'static str,
    more: &'static str,
}

const EN: Words = Words {
    heading: "Extracted from the log without a model: what was done, not what it means.",
    purpose: "Purpose",
    said: "Said last",
    commands: "Commands run",
    written: "Written",
    read: "Read",
    failed: "Failed calls",
    more: "more",
};

const ZH: Words = Words {
    heading: "未经模型，直接从日志提取：只说明做了什么，不说明其含义。",
    purpose: "目的",
    said: "最后的陈述",
    commands: "执行的命令",
    written: "写入",
    read: "读取",
    failed: "失败的调用",
    more: "其余",
};

/// Makes a report of a region from the log alone: paths touched (arguments of writes and edits, recorded
/// differences), commands run, errors, the last text. Five sections as any report (001-16), under a heading that says
/// how it was made.
///
/// # Errors
/// [`FoldError::Shrink`] where the region is so small that even the shortest such report is not shorter.
pub fn extract(
    events: &[LogEvent],
    region: &Region,
    mark: &Mark,
    language: ReportLanguage,
) -> Result<String, FoldError> {
    let facts = collect(events, region);
    let room = region.text_chars(events);
    let mut shortest = 0;
    for level in LEVELS {
        let report = compose(&facts, mark.objective.as_deref(), language, level);
        shortest = char_count(&report);
        if room == 0 || shortest < room {
            return Ok(report);
        }
    }
    Err(FoldError::Shrink { report: shortest, region: room })
}

fn collect(events: &[LogEvent], region: &Region) -> Facts {
    let mut calls: BTreeMap<String, (String, Value)> = BTreeMap::new();
    let last = region.nodes.iter().map(|node| node.index).max().unwrap_or(0);
    let spoken = events.iter().take(last + 1).filter(|event| &*event.kind == "assistant/message");
    for block in spoken.filter_map(Message::of).flat_map(|message| message.blocks) {
        if let Block::Call { id, name, arguments } = block {
            calls.insert(id, (name, value(&arguments)));
        }
    }
    let mut facts = Facts::default();
    for (event, message) in region.messages(events) {
        let diffs = changed_paths(event);
        for block in message.blocks {
            match block {
                Block::Text(text) if &*event.kind == "assistant/message" && !text.trim().is_empty() => {
                    facts.said = Some(text.trim().to_owned());
                }
                Block::Result { call, failed, content } => {
                    let (name, arguments) = calls.get(&call).cloned().unwrap_or_default();
                    facts.answer(&name, &arguments, failed.then(|| first_line(&content)), &diffs);
                }
                _ => {}
            }
        }
    }
    facts
}

impl Facts {
    fn answer(&mut self, name: &str, arguments: &Value, error: Option<String>, diffs: &[String]) {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let path = ["file_path", "filePath", "path", "notebook_path"].into_iter().find_map(text);
        if let (None, Some(command)) = (path, text("command")) {
            add(&mut self.commands, command);
        }
        if let Some(error) = error {
            let of = path.or(text("command")).map_or(String::new(), |of| format!(" {of}"));
            self.failed.push(format!("{name}{of}: {error}"));
            return;
        }
        let writes = ["content", "new_string", "new_str", "old_string", "edits", "patch", "file_text"];
        if let Some(path) = path {
            let wrote = writes.iter().any(|key| arguments.get(*key).is_some());
            add(if wrote { &mut self.written } else { &mut self.read }, path);
        }
        for path in diffs {
            // The recorded difference names the same file relative to the workspace.
            let below = format!("/{path}");
            if !self.written.iter().any(|known| known == path || known.ends_with(&below)) {
                self.written.push(path.clone());
            }
        }
    }
}

fn add(list: &mut Vec<String>, text: &str) {
    if !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

/// Paths of the differences that a tool recorded.
fn changed_paths(event: &LogEvent) -> Vec<String> {
    let data = value(event.data.get());
    let diffs = data.get("meta").and_then(|meta| meta.get("diffs")?.as_array().cloned());
    let path = |diff: &Value| diff.get("path").and_then(Value::as_str).map(str::to_owned);
    diffs.unwrap_or_default().iter().filter_map(path).collect()
}

fn first_line(content: &[Block]) -> String {
    let text = content.iter().find_map(|block| match block {
        Block::Text(text) => text.lines().map(str::trim).find(|line| !line.is_empty()),
        _ => None,
    });
    text.unwrap_or(NONE).to_owned()
}

fn compose(
    facts: &Facts,
    objective: Option<&str>,
    language: ReportLanguage,
    (text, items, line): (usize, usize, usize),
) -> String {
    let words = match language {
        ReportLanguage::En => EN,
        ReportLanguage::Zh => ZH,
    };
    let list = |title: &str, entries: &[String]| -> Option<String> {
        let mut lines = vec![format!("{title}:")];
        lines.extend(entries.iter().take(items).map(|entry| format!("- {}", one_line(entry, line))));
        if entries.len() > items {
            lines.push(format!("- ({} {})", words.more, entries.len() - items));
        }
        (!entries.is_empty()).then(|| lines.join("\n"))
    };
    let purpose = objective.map(|objective| format!("{}: {}", words.purpose, one_line(objective, line)));
    let said = facts.said.as_deref().filter(|_| text > 0).map(|said| format!("{}: {}", words.said, cut(said, text)));
    let bodies: [Vec<Option<String>>; 5] = [
        vec![purpose, said, list(words.commands, &facts.commands)],
        vec![list(words.written, &facts.written), list(words.read, &facts.read)],
        vec![],
        vec![list(words.failed, &facts.failed)],
        vec![],
    ];
    let mut parts = vec![format!("> {}\n", words.heading)];
    for (section, body) in language.sections().iter().zip(bodies) {
        let body: Vec<String> = body.into_iter().flatten().collect();
        let body = if body.is_empty() { NONE.to_owned() } else { body.join("\n") };
        parts.push(format!("## {section}\n{body}\n"));
    }
    parts.join("\n")
}

fn one_line(text: &str, most: usize) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::test_log::Log;
    use crate::fold::{RegionEnd, Surface, select_region};
    use crate::{Seq, SessionKey, Timestamp};
    use serde_json::json;

    fn mark() -> Mark {
        Mark {
            id: 1,
            session: SessionKey::local(),
            log_length: 0,
            turn: None,
            objective: Some("find the\nfault".into()),
            folded: None,
            at: Timestamp(0),
        }
    }

    fn explored(padding: usize) -> Log {
        let mut log = Log::default();
        let calls = [
            ("r", "read", json!({"file_path": "/w/src/a.rs"})),
            ("w", "write", json!({"file_path": "/w/src/b.rs", "content": "x".repeat(padding)})),
            ("e", "edit", json!({"file_path": "c.rs", "old_string": "a", "new_string": "b"})),
            ("s", "bash", json!({"command": "cargo test\n--all"})),
        ];
        let blocks: Vec<Value> = calls
            .iter()
            .map(|(id, name, args)| json!({"type": "tool-call", "id": id, "name": name, "arguments": args.to_string()}))
            .collect();
        log.assistant_with(Value::Array(blocks));
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        log.result_event("r", text(&"y".repeat(padding)), false, json!({}));
        log.result_event("w", text("ok"), false, json!({"diffs": [{"path": "src/b.rs"}, {"path": "gen/d.rs"}]}));
        log.result_event("e", text("Error: read it first"), true, json!({}));
        log.result_event("s", text("ok"), false, json!({}));
        log.assistant("It is in a.rs.", &[]);
        log
    }

    fn report(log: &Log, language: ReportLanguage) -> Result<String, FoldError> {
        let surface = Surface::fold(log.events()).unwrap();
        let region = select_region(log.events(), &surface, Seq(0), &RegionEnd::Tail).unwrap();
        extract(log.events(), &region, &mark(), language)
    }

    #[test]
    fn c001_16_an_extract_says_what_it_is_and_has_the_five_sections() {
        let text = report(&explored(2000), ReportLanguage::En).unwrap();
        assert_eq!(
            text,
            "> Extracted from the log without a model: what was done, not what it means.\n\n\
             ## Findings\nPurpose: find the fault\nSaid last: It is in a.rs.\nCommands run:\n- cargo test --all\n\n\
             ## Files and Artifacts\nWritten:\n- /w/src/b.rs\n- gen/d.rs\nRead:\n- /w/src/a.rs\n\n\
             ## Decisions\n(none)\n\n\
             ## Unresolved Questions\nFailed calls:\n- edit c.rs: Error: read it first\n\n\
             ## Recommended Next Step\n(none)\n"
        );
        let zh = report(&explored(2000), ReportLanguage::Zh).unwrap();
        let places: Vec<usize> =
            ReportLanguage::Zh.sections().iter().map(|section| zh.find(&format!("## {section}")).unwrap()).collect();
        assert!(places.is_sorted() && zh.contains("/w/src/b.rs"), "{zh}");
    }

    #[test]
    fn c001_14_an_extract_gets_shorter_until_it_fits_or_says_that_it_cannot() {
        let mut log = Log::default();
        log.assistant(&"long ".repeat(400), &[]);
        let text = report(&log, ReportLanguage::En).unwrap();
        assert!(char_count(&text) < 2000 && text.contains("Said last: long long"), "{text}");
        let mut small = Log::default();
        small.assistant("short", &[]);
        assert_eq!(report(&small, ReportLanguage::En).unwrap_err().code(), "SHRINK");
    }
}
