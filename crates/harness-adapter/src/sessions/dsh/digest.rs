//! The digest of a prefix of a log.
//!
//! SHA-256, as 64 lower-case hexadecimal digits, over the line `rwd dsh prefix 1\n` and then, for every event 0..=seq, one
//! line `[TYPE,SEQ,TIME,DATA,SURFACEOP,SOURCES,IGNORABLE]\n`: `TYPE` and `DATA` as they are written in the log; `SEQ` and
//! `TIME` as integers; `SURFACEOP` as `"append"`, `{"op":"replace","start":A,"end":B}` or `null`; `SOURCES` as the list of
//! single positions or `null`; `IGNORABLE` as `true` or `false`. Packed rows count as the events that they stand for. So
//! neither frames nor packing nor the order of a row's keys have a part in it; the bytes of every payload have.

use checkpoint_core::{JsonText, SurfaceOp};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::{
    json::integer,
    rows::{CHUNK, Row, sources},
};

/// A digest on its way.
#[derive(Debug)]
pub(super) struct Prefix(Sha256);

impl Prefix {
    pub(super) fn new() -> Self {
        Self(Sha256::new_with_prefix(b"rwd dsh prefix 1\n"))
    }

    /// Adds the events of a row up to and including position `upto`. `None`: the row is no sound event.
    pub(super) fn add(&mut self, row: &Row<'_>, upto: u64) -> Option<()> {
        match row {
            Row::Event { kind, seq, fields } => {
                let time = integer(fields.time?)?;
                let surface = match fields.surface().transpose().ok()? {
                    None => "null".to_owned(),
                    Some(SurfaceOp::Append) => r#""append""#.to_owned(),
                    Some(SurfaceOp::Replace { start, end }) => {
                        format!(r#"{{"op":"replace","start":{start},"end":{end}}}"#)
                    }
                };
                let sources = match fields.sources {
                    None => "null".to_owned(),
                    Some(raw) => {
                        let list: Vec<String> = sources(raw, *seq, true)?.iter().map(ToString::to_string).collect();
                        format!("[{}]", list.join(","))
                    }
                };
                let kind = JsonText::from(&**kind).to_json();
                self.0.update(format!("[{kind},{seq},{time},"));
                self.0.update(fields.data?.get());
                self.0.update(format!(",{surface},{sources},{}]\n", fields.ignorable.is_some()));
            }
            Row::Packed(packed) => packed.expand(&mut |seq, time, data| {
                if seq <= upto {
                    self.0.update(format!("[\"{CHUNK}\",{seq},{time},{data},null,null,false]\n"));
                }
            }),
        }
        Some(())
    }

    pub(super) fn finish(self) -> String {
        HEXLOWER.encode(&self.0.finalize())
    }
}
