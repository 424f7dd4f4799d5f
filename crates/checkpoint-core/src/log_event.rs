//! One event of a session log, as far as cutting, closing and folding need it. Payloads stay raw text: what rwd does not
//! know goes through it byte for byte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Seq;

/// What an event does to the messages that the model sees (the *surface*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SurfaceOp {
    /// Adds a message at the end.
    Append,
    /// Takes the place of the messages `start..=end`, by their positions.
    Replace {
        /// Position of the first message replaced.
        start: Seq,
        /// Position of the last one.
        end: Seq,
    },
}

/// One event.
#[derive(Clone, Debug)]
pub struct LogEvent {
    /// Its place in the log: 0, 1, 2, … without gaps.
    pub seq: Seq,
    /// UTC milliseconds; need not increase.
    pub time: i64,
    /// Its type, as `turn/start`.
    pub kind: Arc<str>,
    /// Its payload, as it was written.
    pub data: Arc<RawValue>,
    /// For messages: what it does to the surface.
    pub surface: Option<SurfaceOp>,
    /// Earlier events that it was made from; `None` where the log does not say.
    pub sources: Option<Vec<Seq>>,
    /// True when a reader that does not know the type may skip it.
    pub ignorable: bool,
}

impl LogEvent {
    /// Reads the payload, or as much of it as `T` asks for.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.data.get())
    }

    /// A payload made of fields in the order of their declaration.
    pub fn payload(data: &impl Serialize) -> Result<Arc<RawValue>, serde_json::Error> {
        Ok(serde_json::value::to_raw_value(data)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Turned {
        turn: u32,
    }

    #[test]
    fn payloads_keep_their_text() {
        let text = r#"{ "turn":1,"x": 1e2 }"#;
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        let event = LogEvent {
            seq: Seq(0),
            time: 0,
            kind: "turn/start".into(),
            data: raw.into(),
            surface: None,
            sources: None,
            ignorable: false,
        };
        assert_eq!(event.read::<Turned>().unwrap().turn, 1);
        assert_eq!(event.data.get(), text);
    }
}
