//! What a writer of logs asks before it writes: would the reader take this?

use std::path::{Path, PathBuf};

use checkpoint_core::{JsonText, LogEvent};
use serde_json::value::RawValue;

use super::{
    check::{Checker, Fault},
    error::{LogError, Place},
    header::LogHeader,
    root, rows,
    vocabulary::WRITTEN,
};

/// Checks the events of one log, in order, and writes their rows.
#[derive(Debug)]
pub(crate) struct Admission(Checker);

impl Admission {
    pub(crate) fn new() -> Self {
        Self(Checker::new(WRITTEN))
    }

    /// The row of the next event, with its end, if the reader of this format takes it. After an error the event counts
    /// for nothing.
    pub(crate) fn row(&mut self, path: &Path, event: &LogEvent) -> Result<String, LogError> {
        let row = rows::write(&on_one_line(event));
        let place = Place::Event(event.seq);
        let read = rows::fields(row.trim_end().as_bytes()).and_then(|fields| rows::row(fields, WRITTEN));
        let read = read.ok_or_else(|| LogError::corrupt(path, place, "the event cannot be read back as one"))?;
        match self.0.check(&read) {
            Ok(()) => {}
            Err(Fault::Unknown) => {
                let (kind, seq) = (event.kind.to_string(), event.seq);
                return Err(LogError::UnknownEvent { path: path.to_owned(), seq, kind });
            }
            Err(Fault::Bad(why)) => return Err(LogError::corrupt(path, place, why)),
        }
        Ok(row)
    }
}

/// Between the tokens of JSON a line break is but white space, and would end the row.
fn on_one_line(event: &LogEvent) -> LogEvent {
    let text = event.data.get();
    if !text.contains(['\n', '\r']) {
        return event.clone();
    }
    let flat = text.replace(['\n', '\r'], " ");
    let data = RawValue::from_string(flat).map_or_else(|_| event.data.clone(), Into::into);
    LogEvent { data, ..event.clone() }
}

/// Where the log of a session with this header lies.
pub(crate) fn folder_of(sessions: &Path, header: &LogHeader) -> Option<PathBuf> {
    root::place(sessions, header)
}

/// A folder that the session has already, below whatever project.
pub(crate) fn taken(sessions: &Path, id: &JsonText) -> Result<Option<PathBuf>, LogError> {
    for folder in root::folders(sessions, id)? {
        if let Some(log) = root::any_log(&folder)? {
            return Ok(Some(log));
        }
    }
    Ok(None)
}

/// The first line of a log, with its end.
pub(crate) fn header_line(header: &LogHeader) -> String {
    header.line()
}

/// A header of the version that is written.
pub(crate) fn new_header(id: &str, created_at: u64) -> LogHeader {
    LogHeader {
        version: WRITTEN,
        id: id.into(),
        created_at,
        cwd: None,
        parent: None,
        seed_length: None,
        seeded: false,
        subagent: false,
        delegation_depth: 0,
        agent_preset: None,
    }
}
