//! From events to the bytes of a file.

use std::{fmt::Write as _, io::Write as _};

use checkpoint_core::{LogEvent, SurfaceOp};
use serde::Deserialize;

use super::build::quoted;

/// How a file holds its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// One zstd frame for the header, one for each batch, with checksums.
    Zstd,
    /// Lines.
    Plain,
}

/// How events become a file.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Frames or lines.
    pub encoding: Encoding,
    /// Whether runs of chunks become one row.
    pub packed: bool,
    /// Events in a batch, in turn and over again; none is a batch of nothing. Empty: all in one.
    pub batches: Vec<u8>,
}

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The session.
    pub id: String,
    /// Where it worked.
    pub cwd: String,
    /// UTC milliseconds.
    pub created_at: i64,
    /// The session that it was forked from, and how many events came from there.
    pub parent: Option<(String, u64)>,
}

/// The header's line, with its end.
pub fn header(header: &Header) -> String {
    let mut line = format!(
        r#"{{"type":"session","version":0,"id":{},"createdAt":{},"cwd":{}"#,
        quoted(&header.id),
        header.created_at,
        quoted(&header.cwd)
    );
    if let Some((parent, length)) = &header.parent {
        write!(line, r#","parentSession":{},"seedLength":{length}"#, quoted(parent)).unwrap();
    }
    line.push_str(",\"delegationDepth\":0}\n");
    line
}

/// One event as a row of its own, without the line's end.
pub fn row(event: &LogEvent) -> String {
    let mut row = format!(
        r#"{{"type":{},"seq":{},"time":{},"data":{}"#,
        quoted(&event.kind),
        event.seq,
        event.time,
        event.data.get()
    );
    if let Some(sources) = &event.sources {
        let sources: Vec<_> = sources.iter().map(ToString::to_string).collect();
        write!(row, r#","sourceEventSeqs":[{}]"#, sources.join(",")).unwrap();
    }
    match event.surface {
        None => {}
        Some(SurfaceOp::Append) => row.push_str(r#","surfaceOp":"append""#),
        Some(SurfaceOp::Replace { start, end }) => {
            write!(row, r#","surfaceOp":{{"op":"replace","start":{start},"end":{end}}}"#).unwrap();
        }
    }
    if event.ignorable {
        row.push_str(r#","ignorable":true"#);
    }
    row.push('}');
    row
}

/// The rows of one batch. `packed`: runs of three and more chunks that differ in their text alone become one.
pub fn rows(events: &[LogEvent], packed: bool) -> Vec<String> {
    let mut rows = Vec::new();
    let mut at = 0;
    while let Some(event) = events.get(at) {
        if let Some((chunk, texts)) = run(&events[at..]).filter(|(_, texts)| packed && texts.len() >= 3) {
            rows.push(packed_row(&events[at..at + texts.len()], &chunk, &texts));
            at += texts.len();
        } else {
            rows.push(row(event));
            at += 1;
        }
    }
    rows
}

/// The frames of a file, or its pieces when it has lines: first the header, then the batches.
pub fn frames(head: &Header, events: &[LogEvent], layout: &Layout) -> Vec<Vec<u8>> {
    let mut pieces = vec![header(head)];
    let mut rest = events;
    let mut sizes = layout.batches.iter().map(|size| usize::from(*size)).cycle();
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(rest.len()).clamp(1, rest.len());
        let (batch, later) = rest.split_at(size);
        pieces.push(rows(batch, layout.packed).into_iter().flat_map(|row| [row, "\n".to_owned()]).collect());
        rest = later;
    }
    let pieces = pieces.into_iter().map(String::into_bytes);
    match layout.encoding {
        Encoding::Plain => pieces.collect(),
        Encoding::Zstd => pieces.map(|piece| frame(&piece)).collect(),
    }
}

/// A file.
pub fn file(head: &Header, events: &[LogEvent], layout: &Layout) -> Vec<u8> {
    frames(head, events, layout).concat()
}

/// A frame as the host writes it: a checksum, and no content size.
fn frame(content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[derive(PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chunk {
    turn: u64,
    step: u64,
    #[serde(rename = "chunk")]
    delta: Delta,
}

#[derive(PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta {
    #[serde(rename = "type")]
    kind: String,
    index: u64,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(rename = "argumentsDelta")]
    arguments: Option<String>,
}

impl Chunk {
    /// The chunk without its text, and the text; `None` for what never goes into a run.
    fn of(event: &LogEvent) -> Option<(Self, String)> {
        if event.surface.is_some() || event.sources.is_some() || event.ignorable || &*event.kind != "assistant/chunk" {
            return None;
        }
        let mut chunk: Self = event.read().ok()?;
        let text = chunk.delta.text.take().or(chunk.delta.arguments.take())?;
        chunk.delta.kind.ends_with("-delta").then_some((chunk, text))
    }
}

/// The chunks at the start of `events` that can go into one row: what they share, and their texts.
fn run(events: &[LogEvent]) -> Option<(Chunk, Vec<String>)> {
    let (first, text) = Chunk::of(events.first()?)?;
    let mut texts = vec![text];
    for pair in events.windows(2) {
        match Chunk::of(&pair[1]) {
            Some((chunk, text)) if chunk == first && pair[0].seq.0 + 1 == pair[1].seq.0 => texts.push(text),
            _ => break,
        }
    }
    Some((first, texts))
}

fn packed_row(events: &[LogEvent], chunk: &Chunk, texts: &[String]) -> String {
    let first = &events[0];
    let gaps: Vec<_> = events.windows(2).map(|pair| (pair[1].time - pair[0].time).to_string()).collect();
    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
    let delta = &chunk.delta;
    let (kind, list) = match delta.kind.as_str() {
        "text-delta" => ("text-chunks", "texts"),
        "reasoning-delta" => ("reasoning-chunks", "texts"),
        _ => ("tool-call-chunks", "args"),
    };
    let field = |name: &str, value: &Option<String>| {
        value.as_ref().map_or_else(String::new, |value| format!(r#","{name}":{}"#, quoted(value)))
    };
    let call = field("id", &delta.id) + &field("name", &delta.name);
    format!(
        r#"{{"type":"{kind}","seq0":{},"time0":{},"data":{{"turn":{},"step":{},"index":{},"dt":[{}]{call},"{list}":[{}]}}}}"#,
        first.seq,
        first.time,
        chunk.turn,
        chunk.step,
        delta.index,
        gaps.join(","),
        texts.join(",")
    )
}
