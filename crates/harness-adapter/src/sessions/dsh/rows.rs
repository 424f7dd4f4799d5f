//! The rows of a log: one event each, or a run of streamed pieces that was packed into one row.

use std::{borrow::Cow, fmt};

use checkpoint_core::{JsonText, LogEvent, Seq, SurfaceOp};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    json::{integer, is_string, natural, present},
    vocabulary::Names,
};

/// The type that packed rows stand for.
pub(super) const CHUNK: &str = "assistant/chunk";

/// The fields of a row, unread. Of a key that occurs twice the last one counts, as in JavaScript.
#[derive(Default, Debug)]
pub(super) struct Fields<'a> {
    kind: Option<&'a RawValue>,
    seq: Option<&'a RawValue>,
    pub(super) time: Option<&'a RawValue>,
    pub(super) data: Option<&'a RawValue>,
    pub(super) surface: Option<&'a RawValue>,
    pub(super) sources: Option<&'a RawValue>,
    pub(super) ignorable: Option<&'a RawValue>,
    seq0: Option<&'a RawValue>,
    time0: Option<&'a RawValue>,
    /// True when there is a key that no row has.
    other: bool,
    /// Of the format that the row is read as.
    version: u64,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Type,
    Seq,
    Time,
    Data,
    SurfaceOp,
    SourceEventSeqs,
    Ignorable,
    Seq0,
    Time0,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Row;
        impl<'de> Visitor<'de> for Row {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut row = Fields::default();
                while let Some(key) = map.next_key::<Key>()? {
                    let field = match key {
                        Key::Type => &mut row.kind,
                        Key::Seq => &mut row.seq,
                        Key::Time => &mut row.time,
                        Key::Data => &mut row.data,
                        Key::SurfaceOp => &mut row.surface,
                        Key::SourceEventSeqs => &mut row.sources,
                        Key::Ignorable => &mut row.ignorable,
                        Key::Seq0 => &mut row.seq0,
                        Key::Time0 => &mut row.time0,
                        Key::Other => {
                            row.other = true;
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *field = Some(map.next_value()?);
                }
                Ok(row)
            }
        }
        deserializer.deserialize_map(Row)
    }
}

impl<'a> Fields<'a> {
    /// The row's type, unescaped.
    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        let text = self.kind?.get();
        let inner = text.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            return Some(Cow::Owned(JsonText::from_json(text)?.to_string()));
        }
        Some(Cow::Borrowed(inner))
    }

    /// What the event does to the surface; `None` where it does not say.
    pub(super) fn surface(&self) -> Option<Result<SurfaceOp, ()>> {
        self.surface.map(|raw| surface(raw, self.version))
    }

    /// True when a key is there that no event has.
    pub(super) fn has_strange_key(&self) -> bool {
        self.other || self.seq0.is_some() || self.time0.is_some()
    }
}

/// The fields of a line; `None` when it is no JSON object.
pub(super) fn fields(line: &[u8]) -> Option<Fields<'_>> {
    serde_json::from_str(std::str::from_utf8(line).ok()?).ok()
}

/// False when the line cannot be the row of a `turn/end`, told without reading it.
pub(super) fn may_end_turn(line: &[u8]) -> bool {
    let name = b"turn/end";
    // With an escape the name may be spelt in other ways.
    line.len() > name.len() && (line.contains(&b'\\') || line.windows(name.len()).any(|part| part == name))
}

/// What a row stands for.
#[derive(Debug)]
pub(super) enum Row<'a> {
    /// One event.
    Event { kind: Cow<'a, str>, seq: u64, fields: Fields<'a> },
    /// Several.
    Packed(Packed<'a>),
}

/// Which pieces a packed row holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece {
    Text,
    Reasoning,
    ToolCall,
}

/// A packed row.
#[derive(Debug)]
pub(super) struct Packed<'a> {
    piece: Piece,
    seq: u64,
    time: i64,
    turn: &'a RawValue,
    step: &'a RawValue,
    index: &'a RawValue,
    gaps: Vec<i64>,
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedData<'a> {
    #[serde(borrow)]
    turn: &'a RawValue,
    #[serde(borrow)]
    step: &'a RawValue,
    #[serde(borrow)]
    index: &'a RawValue,
    #[serde(borrow)]
    dt: Vec<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    texts: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    args: Option<Vec<&'a RawValue>>,
}

/// Reads a row; `None` when it is none, which makes the line one that cannot be read.
pub(super) fn row(mut fields: Fields<'_>, version: u64) -> Option<Row<'_>> {
    fields.version = version;
    let kind = fields.kind()?;
    let piece = match &*kind {
        "text-chunks" => Piece::Text,
        "reasoning-chunks" => Piece::Reasoning,
        "tool-call-chunks" => Piece::ToolCall,
        _ => return Some(Row::Event { seq: natural(fields.seq?)?, kind, fields }),
    };
    if version == 0 { packed(&fields, piece).map(Row::Packed) } else { None }
}

fn packed<'a>(fields: &Fields<'a>, piece: Piece) -> Option<Packed<'a>> {
    let strange = [fields.seq, fields.time, fields.surface, fields.sources, fields.ignorable];
    if fields.other || strange.iter().any(Option::is_some) {
        return None;
    }
    let data: PackedData<'a> = serde_json::from_str(fields.data?.get()).ok()?;
    let (parts, others) = if piece == Piece::ToolCall { (data.args, data.texts) } else { (data.texts, data.args) };
    let parts = parts?;
    let gaps: Vec<i64> = data.dt.iter().map(|gap| integer(gap)).collect::<Option<_>>()?;
    let called = data.id.is_some_and(is_string) && data.name.is_none_or(is_string);
    let fits = if piece == Piece::ToolCall { called } else { data.id.is_none() && data.name.is_none() };
    let sound = fits
        && others.is_none()
        && !parts.is_empty()
        && gaps.len() + 1 == parts.len()
        && parts.iter().all(|part| is_string(part))
        && [data.turn, data.step, data.index].into_iter().all(|number| natural(number).is_some());
    let (seq, time) = (natural(fields.seq0?)?, integer(fields.time0?)?);
    sound.then_some(Packed {
        piece,
        seq,
        time,
        turn: data.turn,
        step: data.step,
        index: data.index,
        gaps,
        id: data.id,
        name: data.name,
        parts,
    })
}

impl Packed<'_> {
    /// Calls back for every event that the row stands for, in order: position, time, payload.
    pub(super) fn expand(&self, each: &mut dyn FnMut(u64, i64, &str)) {
        let Self { turn, step, index, .. } = self;
        let mut time = self.time;
        for (place, part) in self.parts.iter().enumerate() {
            if let Some(gap) = place.checked_sub(1).and_then(|before| self.gaps.get(before)) {
                time = time.saturating_add(*gap);
            }
            let chunk = match self.piece {
                Piece::Text => format!(r#""text-delta","index":{index},"text":{part}"#),
                Piece::Reasoning => format!(r#""reasoning-delta","index":{index},"text":{part}"#),
                Piece::ToolCall => {
                    let field = |key: &str, value: Option<&RawValue>| {
                        value.map(|value| format!(r#","{key}":{value}"#)).unwrap_or_default()
                    };
                    let (id, name) = (field("id", self.id), field("name", self.name));
                    format!(r#""tool-call-delta","index":{index}{id}{name},"argumentsDelta":{part}"#)
                }
            };
            let data = format!(r#"{{"turn":{turn},"step":{step},"chunk":{{"type":{chunk}}}}}"#);
            each(self.seq + place as u64, time, &data);
        }
    }
}

impl Row<'_> {
    /// Position of the row's first event.
    pub(super) fn first(&self) -> u64 {
        match self {
            Self::Event { seq, .. } => *seq,
            Self::Packed(packed) => packed.seq,
        }
    }

    /// How many events it stands for.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Event { .. } => 1,
            Self::Packed(packed) => packed.parts.len() as u64,
        }
    }

    /// The type of its events.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Event { kind, .. } => kind,
            Self::Packed(_) => CHUNK,
        }
    }

    /// The time of its last event.
    pub(super) fn last_time(&self) -> Option<i64> {
        match self {
            Self::Event { fields, .. } => fields.time.and_then(integer),
            Self::Packed(packed) => Some(packed.gaps.iter().fold(packed.time, |time, gap| time.saturating_add(*gap))),
        }
    }

    /// The payload, if the row is one event's.
    pub(super) fn data(&self) -> Option<&RawValue> {
        match self {
            Self::Event { fields, .. } => fields.data,
            Self::Packed(_) => None,
        }
    }

    /// Calls back for every event. `None` when the row is no sound event.
    pub(super) fn events(&self, names: &mut Names, each: &mut dyn FnMut(LogEvent)) -> Option<()> {
        match self {
            Self::Event { kind, seq, fields } => each(LogEvent {
                seq: Seq(*seq),
                time: integer(fields.time?)?,
                kind: names.get(kind),
                data: fields.data?.to_owned().into(),
                surface: fields.surface().transpose().ok()?,
                sources: fields.sources.map(|raw| sources(raw, *seq, true).ok_or(())).transpose().ok()?,
                ignorable: fields.ignorable.is_some(),
            }),
            Self::Packed(packed) => {
                let kind = names.get(CHUNK);
                packed.expand(&mut |seq, time, data| {
                    each(LogEvent {
                        seq: Seq(seq),
                        time,
                        kind: kind.clone(),
                        data: RawValue::from_string(data.to_owned()).expect("made of JSON values").into(),
                        surface: None,
                        sources: None,
                        ignorable: false,
                    });
                });
            }
        }
        Some(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaceOp<'a> {
    #[serde(borrow)]
    op: &'a RawValue,
    #[serde(borrow)]
    start: &'a RawValue,
    #[serde(borrow)]
    end: &'a RawValue,
}

/// The same from version 3 on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReplaceSeqs<'a> {
    #[serde(borrow)]
    op: &'a RawValue,
    #[serde(borrow)]
    start_seq: &'a RawValue,
    #[serde(borrow)]
    end_seq: &'a RawValue,
}

/// What an event does to the surface, in a log of this version. From 3 on the ends of a replacement have other names; the
/// older ones are read there as well, for nothing else could be meant and no such log is ever written here.
fn surface(raw: &RawValue, version: u64) -> Result<SurfaceOp, ()> {
    if super::json::is_text(raw, "append") {
        return Ok(SurfaceOp::Append);
    }
    let (op, start, end) = match serde_json::from_str::<ReplaceOp<'_>>(raw.get()) {
        Ok(ReplaceOp { op, start, end }) => (op, start, end),
        Err(_) if version >= 3 => {
            let read: ReplaceSeqs<'_> = serde_json::from_str(raw.get()).map_err(drop)?;
            (read.op, read.start_seq, read.end_seq)
        }
        Err(_) => return Err(()),
    };
    if !super::json::is_text(op, "replace") {
        return Err(());
    }
    let at = |raw| natural(raw).map(Seq).ok_or(());
    Ok(SurfaceOp::Replace { start: at(start)?, end: at(end)? })
}

/// The events that event `seq` was made from: each earlier than it and named once. From version 2 on a run may be written
/// as a pair of its first and last.
pub(super) fn sources(raw: &RawValue, seq: u64, pairs: bool) -> Option<Vec<Seq>> {
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
    let mut sources = Vec::with_capacity(items.len());
    for item in items {
        if pairs && item.get().starts_with('[') {
            let [first, last] = serde_json::from_str::<[&RawValue; 2]>(item.get()).ok()?;
            let (first, last) = (natural(first)?, natural(last)?);
            // Each is named once, so that there are fewer of them than events before.
            if last >= seq || first >= last || sources.len() as u64 + (last - first) >= seq {
                return None;
            }
            sources.extend((first..=last).map(Seq));
        } else {
            sources.push(natural(item).map(Seq)?);
        }
    }
    if sources.iter().any(|source| source.0 >= seq) {
        return None;
    }
    if !sources.is_sorted_by(|a, b| a < b) {
        let mut sorted = sources.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
    }
    Some(sources)
}

/// An event as a row, with its end. The keys are in the host's order: what an event was made from before what it does.
pub(super) fn write(event: &LogEvent) -> String {
    let kind = JsonText::from(&*event.kind).to_json();
    let surface = match event.surface {
        None => String::new(),
        Some(SurfaceOp::Append) => r#","surfaceOp":"append""#.to_owned(),
        Some(SurfaceOp::Replace { start, end }) => {
            format!(r#","surfaceOp":{{"op":"replace","start":{start},"end":{end}}}"#)
        }
    };
    let sources = event.sources.as_ref().map(|sources| {
        let list: Vec<String> = sources.iter().map(Seq::to_string).collect();
        format!(r#","sourceEventSeqs":[{}]"#, list.join(","))
    });
    let (sources, ignorable) = (sources.unwrap_or_default(), if event.ignorable { r#","ignorable":true"# } else { "" });
    let LogEvent { seq, time, data, .. } = event;
    format!(r#"{{"type":{kind},"seq":{seq},"time":{time},"data":{data}{sources}{surface}{ignorable}}}"#) + "\n"
}
