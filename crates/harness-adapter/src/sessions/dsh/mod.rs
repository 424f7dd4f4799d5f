//! Session logs of DeepSeek Harness: read, checked, cut and repaired without the host, and never modified.
//!
//! Version 0 of the format was tried against the host's own reader and is read and written; versions 2 to 4 are read by
//! their documents; anything else is refused.

mod admit;
mod check;
mod container;
mod digest;
mod draft;
mod error;
mod fold;
mod fork;
mod header;
mod inspect;
mod json;
mod paths;
mod read;
mod root;
mod rows;
mod session_log;
pub mod strict;
mod vocabulary;

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use checkpoint_core::{Clock, IdSource, JsonText, LogEvent, Seq, SessionKey};

pub(crate) use self::admit::{Admission, folder_of, header_line, new_header, taken};
pub use self::{
    container::Encoding,
    error::{LogError, Place},
    fold::ChildFolds,
    fork::{ChildSpec, Cut, Forked, Repaired},
    header::LogHeader,
    inspect::{Boundary, Inspection, Problem, SessionSummary, TurnSpan},
    paths::{encode_segment, project_key},
    read::Torn,
};
use self::{
    read::{End, Log},
    root::Found,
    vocabulary::Names,
};

/// The harness part of the keys of these sessions.
pub const HARNESS: &str = "dsh";

/// The session logs below one home of DeepSeek Harness.
#[derive(Clone, Debug)]
pub struct DshLogs {
    home: PathBuf,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn IdSource>>,
}

/// How a log ended that was read event by event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Its head.
    pub header: LogHeader,
    /// How many events were read.
    pub events: u64,
    /// What a crash left at its end.
    pub torn: Option<Torn>,
    /// Why the host would refuse it all the same.
    pub problems: Vec<Problem>,
}

impl DshLogs {
    /// The logs below `home`, the directory that holds `sessions/`. Nothing is read yet.
    pub fn open(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), clock: None, ids: None }
    }

    /// Takes the time of new logs from `clock` instead of the system.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes the ids of new sessions and messages from `ids` instead of the system's randomness.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Where the host keeps its home: `DSH_HOME` if it is not blank, else `~/.dsh`; a leading `~` is the directory `HOME`
    /// names. `None` when `HOME` is needed and not there.
    pub fn default_home(var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let home = || var("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let given = var("DSH_HOME").filter(|given| !given.trim().is_empty());
        let Some(given) = given else { return Some(home()?.join(".dsh")) };
        match given.strip_prefix('~') {
            Some("") => home(),
            Some(rest) if rest.starts_with('/') => Some(home()?.join(rest.trim_start_matches('/'))),
            _ => Some(PathBuf::from(given)),
        }
    }

    /// The folder of logs.
    pub fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    fn find(&self, id: &str) -> Result<Found, LogError> {
        root::find(&self.sessions(), &id.into())
    }

    /// Every session below the home, in the order of paths, from the first line of each log alone. What the host would
    /// pass over or fail at is listed with its problem; a folder that is not there has no sessions.
    pub fn list(&self) -> Result<Vec<SessionSummary>, LogError> {
        let sessions = self.sessions();
        let root = root::scan(&sessions)?;
        let (mut list, mut ids): (Vec<SessionSummary>, Vec<JsonText>) = (Vec::new(), Vec::new());
        for found in &root.found {
            let line = read::open_head(&found.path, found.encoding).map(|(_, _, line, _)| line);
            let header = match &line {
                Ok(line) => header::parse(&found.path, line, found.version),
                Err(error) => Err(LogError::NoHeader { path: found.path.clone(), why: error.to_string() }),
            };
            let problem = match (&line, &header) {
                (Err(error), _) | (Ok(_), Err(error)) => Some(Problem::from(error)),
                (Ok(_), Ok(header)) => root::check_place(&sessions, found, header).err().as_ref().map(Problem::from),
            };
            let glance = header.ok().or_else(|| header::glance(line.as_deref().ok()?));
            let entry = summary(found, glance.as_ref(), problem);
            // As it stands in the log: two ids may be shown as the same text.
            ids.push(glance.map_or_else(|| entry.id.as_str().into(), |header| header.id));
            list.push(entry);
        }
        let mut paths: BTreeMap<&JsonText, Vec<PathBuf>> = BTreeMap::new();
        for (entry, id) in list.iter().zip(&ids) {
            paths.entry(id).or_default().push(entry.path.clone());
        }
        for (entry, id) in list.iter_mut().zip(&ids).filter(|(entry, _)| entry.problem.is_none()) {
            if let Some([first, second, ..]) = paths.get(id).map(Vec::as_slice) {
                let (id, first, second) = (entry.id.clone(), first.clone(), second.clone());
                entry.problem = Some(Problem::from(&LogError::Duplicate { id, first, second }));
            }
        }
        Ok(list)
    }

    /// What the host's own list of all sessions says: how many there are, or why it fails. It fails as a whole for many a
    /// fault of a single log; what is no session at all it passes over.
    pub fn host_list(&self) -> Result<usize, LogError> {
        let sessions = self.sessions();
        let root = root::scan(&sessions)?;
        if let Some(fault) = root.fault {
            return Err(fault);
        }
        let mut seen: BTreeMap<JsonText, PathBuf> = BTreeMap::new();
        let mut count = 0;
        for found in &root.found {
            match found.open() {
                Ok(log) => {
                    root::check_place(&sessions, found, &log.header)?;
                    if let Some(first) = seen.insert(log.header.id.clone(), found.path.clone()) {
                        let (id, second) = (log.header.id.to_string(), found.path.clone());
                        return Err(LogError::Duplicate { id, first, second });
                    }
                    count += 1;
                }
                Err(LogError::UnsupportedVersion { .. }) => count += 1,
                Err(error) if error.breaks_list() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(count)
    }

    /// What the host's loader says of a session: `Ok` when it would load it. Unlike the host, nothing is repaired: a torn
    /// tail is only reported.
    ///
    /// # Errors
    ///
    /// The fault that the host would name, or a fault of the whole folder.
    pub fn load(&self, id: &str) -> Result<Summary, LogError> {
        let (_, mut log) = self.open_loadable(id)?;
        let header = log.header.clone();
        let end = log.rows(&mut |_, _, _| Ok(ControlFlow::Continue(())))?;
        let (events, torn) = (end.events, end.torn);
        match end.into_fault() {
            Some(fault) => Err(fault),
            None => Ok(Summary { header, events, torn, problems: Vec::new() }),
        }
    }

    /// The log of a session in a folder that the host does not refuse as a whole.
    fn open_loadable(&self, id: &str) -> Result<(Found, Log), LogError> {
        if let Some(fault) = root::scan(&self.sessions())?.fault {
            return Err(fault);
        }
        let found = self.find(id)?;
        let log = found.open()?;
        root::check_place(&self.sessions(), &found, &log.header)?;
        Ok((found, log))
    }

    /// Reads a session's log to its end and tells what is in it.
    ///
    /// # Errors
    ///
    /// When there is no such session, its header cannot be read, or the system fails. What is wrong further on is among
    /// the problems.
    pub fn inspect(&self, id: &str) -> Result<Inspection, LogError> {
        let found = self.find(id)?;
        let mut inspection = inspect::inspect(&mut found.open()?)?;
        let sessions = self.sessions();
        let faults = [root::scan(&sessions)?.fault, root::check_place(&sessions, &found, &inspection.header).err()];
        for fault in faults.into_iter().flatten() {
            inspection.problems.push(Problem::from(&fault));
            inspection.loadable = false;
        }
        Ok(inspection)
    }

    /// The same for a log anywhere, whatever the folder around it. What the name does not tell is found in the file: a
    /// log is compressed if it begins like a frame.
    pub fn inspect_file(path: &Path) -> Result<Inspection, LogError> {
        inspect::inspect(&mut Self::open_file(path)?)
    }

    /// Opens a log anywhere.
    fn open_file(path: &Path) -> Result<Log, LogError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (version, encoding) = match read::named(name) {
            Some(known) => known,
            None => (None, container::guess(path)?),
        };
        read::open(path, encoding, version)
    }

    /// Calls `visit` for every event of a session, packed ones expanded, until it breaks off. One event at a time is in
    /// memory.
    ///
    /// # Errors
    ///
    /// When the log can be followed no further, after the events before that place; not for faults that only the host
    /// minds, which are among the problems. A frame's checksum comes after its rows: what was handed over before an error
    /// may be part of the damage.
    pub fn for_each_event(
        &self,
        id: &str,
        visit: &mut dyn FnMut(&LogEvent) -> ControlFlow<()>,
    ) -> Result<Summary, LogError> {
        Self::each_event(&mut self.find(id)?.open()?, visit)
    }

    /// The same for a log anywhere, see [`DshLogs::inspect_file`].
    pub fn for_each_event_of_file(
        path: &Path,
        visit: &mut dyn FnMut(&LogEvent) -> ControlFlow<()>,
    ) -> Result<Summary, LogError> {
        Self::each_event(&mut Self::open_file(path)?, visit)
    }

    fn each_event(log: &mut Log, visit: &mut dyn FnMut(&LogEvent) -> ControlFlow<()>) -> Result<Summary, LogError> {
        let mut names = Names::default();
        let path = log.path.clone();
        let end = log.rows(&mut |row, _, _| {
            let mut flow = ControlFlow::Continue(());
            let sound = row.events(&mut names, &mut |event| {
                if flow.is_continue() {
                    flow = visit(&event);
                }
            });
            sound.ok_or_else(|| no_event(&path, row.first()))?;
            Ok(flow)
        })?;
        let header = log.header.clone();
        let End { events, torn, broken, unknown, bad, .. } = end;
        if let Some(error) = broken {
            return Err(error);
        }
        let problems = [unknown, bad].iter().flatten().map(Problem::from).collect();
        Ok(Summary { header, events, torn, problems })
    }

    /// Every event of a session, packed ones expanded.
    pub fn events(&self, id: &str) -> Result<Vec<LogEvent>, LogError> {
        let mut events = Vec::new();
        self.for_each_event(id, &mut |event| {
            events.push(event.clone());
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }

    /// The events of a log anywhere, see [`DshLogs::inspect_file`].
    pub fn events_of_file(path: &Path) -> Result<Vec<LogEvent>, LogError> {
        let mut events = Vec::new();
        Self::for_each_event_of_file(path, &mut |event| {
            events.push(event.clone());
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }
}

/// An event as a row of a log, without its end: the keys in the host's order.
pub fn row_of(event: &LogEvent) -> String {
    let mut row = rows::write(event);
    row.truncate(row.len() - 1);
    row
}

/// A row in the place of an event that is none.
fn no_event(path: &Path, seq: u64) -> LogError {
    LogError::corrupt(path, Place::Event(Seq(seq)), "the row is no event: a field is missing or has the wrong type")
}

fn summary(found: &Found, header: Option<&LogHeader>, problem: Option<Problem>) -> SessionSummary {
    let folder = || found.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let id = header.map_or_else(folder, |header| header.id.to_string());
    let text = |text: Option<&JsonText>| text.map(JsonText::to_string);
    SessionSummary {
        key: header.and_then(|header| SessionKey::new(HARNESS, &header.id.to_text()?).ok()),
        id,
        path: found.path.clone(),
        encoding: found.encoding,
        version: header.map_or(0, |header| header.version),
        created_at: header.map_or(0, |header| header.created_at),
        cwd: text(header.and_then(|header| header.cwd.as_ref())),
        parent: text(header.and_then(|header| header.parent.as_ref())),
        seed_length: header.and_then(|header| header.seed_length),
        subagent: header.is_some_and(|header| header.subagent),
        problem,
    }
}
