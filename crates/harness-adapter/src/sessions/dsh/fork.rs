//! New logs from old ones: children cut off a session, and repaired copies. Neither touches the log it was made from.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use checkpoint_core::{ClosersCause, JsonText, LogEvent, OpenTurn, Seq, SessionKey, SurfaceOp, Timestamp, Turn, uuid};
use serde_json::value::RawValue;

use super::{
    DshLogs, Encoding, HARNESS, LogError, LogHeader, Torn,
    draft::Draft,
    inspect::turn_data,
    no_event,
    paths::encode_segment,
    read::{self, Log},
    root::{self, Found},
    rows::{self, Row},
    session_log::digest,
    vocabulary::{Names, WRITTEN},
};

/// Where a session is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cut {
    /// Before its first event: the child has a parent and nothing else.
    Empty,
    /// After this event.
    At(Seq),
    /// After its last event (004-31).
    #[default]
    End,
}

/// What a child is made of: the parent's events up to the cut, a `session/end-seed` unless they end in one, and more.
#[derive(Clone, Debug, Default)]
pub struct ChildSpec {
    /// Where the parent is cut.
    pub cut: Cut,
    /// The child's id; `None` makes up `session-<uuid>`.
    pub child: Option<String>,
    /// Moves the cut on over what lies between the turns, up to the event before the next `turn/start`. Without effect on
    /// a cut inside a turn.
    pub extend: bool,
    /// Allows a cut inside a turn, and closes the turn (003-07).
    pub close_open_turn: bool,
    /// Events to add, as the replacement that a fold makes. They get the next positions whatever theirs are; what they
    /// refer to must lie in the prefix.
    pub events: Vec<LogEvent>,
    /// What the child's model is told, as a message at its tail.
    pub notice: Option<String>,
    /// The digest of the parent up to the cut, where the plan knows it: another log is not cut.
    pub prefix: Option<String>,
}

/// A child that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Forked {
    /// Its id.
    pub child: String,
    /// Its log.
    pub path: PathBuf,
    /// How many events it shares with its parent.
    pub seed_length: u64,
    /// The last of them.
    pub boundary: Option<Seq>,
    /// How many events close an open turn.
    pub closers: u64,
    /// How many events it has.
    pub events: u64,
}

/// A repaired copy that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Repaired {
    /// The copy.
    pub path: PathBuf,
    /// How many events it has.
    pub events: u64,
    /// How many of them close an open turn.
    pub closers: u64,
    /// The tail of the original that was left out, but for the events recovered from it.
    pub torn: Option<Torn>,
}

/// Lines that were read once, to be known again.
#[derive(Clone, Default)]
struct Seen {
    lines: u64,
    crc: crc32fast::Hasher,
}

impl Seen {
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.crc.update(line);
        self.crc.update(b"\n");
    }
}

/// Where a first reading stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// In the prefix, or at its end if the log ends too.
    Inside,
    /// Behind a prefix that ends between two rows.
    Behind,
    /// Behind a prefix that ends inside a packed row.
    Split,
}

/// What a first reading of the parent finds out.
struct Prefix {
    /// The last event that is wanted; none is in an empty prefix.
    target: Option<u64>,
    extend: bool,
    /// Follows the open turn in full, for closers.
    follow: Option<(OpenTurn, Names)>,
    open: Option<Turn>,
    /// How far the reading is.
    stage: Stage,
    /// Events in the prefix.
    events: u64,
    /// Before this offset there are whole frames, with so many rows of the prefix and nothing else.
    copy: (u64, u64),
    seen: Seen,
    /// Of the last event of the prefix.
    time: i64,
    ends_seed: bool,
}

impl Prefix {
    fn new(cut: Cut, extend: bool, follow: bool, body: u64) -> Self {
        Self {
            target: match cut {
                Cut::Empty => None,
                Cut::At(seq) => Some(seq.0),
                Cut::End => Some(u64::MAX),
            },
            extend,
            follow: follow.then(Default::default),
            open: None,
            stage: if cut == Cut::Empty { Stage::Behind } else { Stage::Inside },
            events: 0,
            copy: (body, 0),
            seen: Seen::default(),
            time: 0,
            ends_seed: false,
        }
    }

    fn row(&mut self, log: &Path, row: &Row<'_>, line: &[u8], clean: u64) -> Result<(), LogError> {
        let (Some(target), Stage::Inside) = (self.target, self.stage) else { return Ok(()) };
        let (first, count) = (row.first(), row.count());
        let past = first > target;
        if clean != self.copy.0 {
            // The first row of a frame: everything before it can be copied as it is.
            self.copy = (clean, self.seen.lines);
        }
        if past && (!self.extend || self.open.is_some() || row.kind() == "turn/start") {
            self.stage = Stage::Behind;
            return Ok(());
        }
        match row.kind() {
            "turn/start" => self.open = Some(turn_data(row.data()).0),
            "turn/end" => self.open = None,
            _ => {}
        }
        let whole = first + count - 1 <= target || (self.extend && self.open.is_none());
        if whole {
            self.seen.add(line);
            self.time = row.last_time().unwrap_or(self.time);
        }
        self.events = if whole { first + count } else { target + 1 };
        self.ends_seed = row.kind() == "session/end-seed";
        if !whole {
            self.stage = Stage::Split;
        }
        let mut time = self.time;
        let wanted = self.events;
        if !whole || self.follow.is_some() {
            let (mut spare, mut follow) = (Names::default(), self.follow.take());
            let sound = {
                let (open, names) = match &mut follow {
                    Some((open, names)) => (Some(open), names),
                    None => (None, &mut spare),
                };
                let mut open = open;
                row.events(names, &mut |event| {
                    if event.seq.0 < wanted {
                        time = event.time;
                        if let Some(open) = &mut open {
                            open.observe(&event);
                        }
                    }
                })
            };
            self.follow = follow;
            sound.ok_or_else(|| no_event(log, first))?;
        }
        self.time = time;
        Ok(())
    }
}

/// What the child's model is told: a message that the host knows as one of a plugin.
fn notice(seq: u64, time: i64, id: &str, text: &str) -> LogEvent {
    let (id, text) = (JsonText::from(id).to_json(), JsonText::from(text).to_json());
    let data = format!(
        r#"{{"content":[{{"type":"text","text":{text}}}],"source":{{"kind":"plugin","plugin":"rwd","form":"notice"}},"role":"user","id":{id}}}"#
    );
    event(seq, time, "user/message", data, Some(SurfaceOp::Append))
}

fn event(seq: u64, time: i64, kind: &str, data: String, surface: Option<SurfaceOp>) -> LogEvent {
    LogEvent {
        seq: Seq(seq),
        time,
        kind: kind.into(),
        data: RawValue::from_string(data).expect("made of JSON values").into(),
        surface,
        sources: None,
        ignorable: false,
    }
}

/// Writes the rows of the prefix: whole frames as they are, the rest anew.
fn copy_prefix(draft: &mut Draft, log: &Log, prefix: &Prefix) -> Result<(), LogError> {
    let (offset, before) = prefix.copy;
    if offset > log.body {
        draft.raw(&log.file, log.body, offset)?;
    }
    let whole = prefix.seen.lines - before;
    log.again(offset, whole + u64::from(prefix.stage == Stage::Split), &mut |number, line| {
        if number < whole {
            draft.row(line)?;
            return draft.row_end();
        }
        let row = rows::fields(line).and_then(|fields| rows::row(fields, log.header.version));
        let row = row.ok_or_else(|| LogError::Changed { path: log.path.clone() })?;
        copy_part(draft, &row, prefix.events)
    })
}

/// Writes the events of a packed row that lie before event `to`.
fn copy_part(draft: &mut Draft, row: &Row<'_>, to: u64) -> Result<(), LogError> {
    let mut written = Ok(());
    let sound = row.events(&mut Names::default(), &mut |event| {
        if event.seq.0 < to && written.is_ok() {
            written = draft.row(rows::write(&event).as_bytes());
        }
    });
    sound.ok_or_else(|| no_event(&draft.temp(), row.first()))?;
    written
}

/// Reads a new log back under the rules of the host.
fn read_back(path: &Path, encoding: Encoding, line: &[u8], events: u64, seen: &Seen) -> Result<LogHeader, LogError> {
    let mut log = read::open(path, encoding, None)?;
    let mut found = Seen::default();
    let end = log.rows(&mut |_, line, _| {
        if found.lines < seen.lines {
            found.add(line);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let same = log.line == line
        && end.events == events
        && end.torn.is_none()
        && found.lines == seen.lines
        && found.crc.finalize() == seen.crc.clone().finalize();
    match end.into_fault() {
        Some(fault) => Err(fault),
        None if same => Ok(log.header),
        None => Err(LogError::Changed { path: path.to_owned() }),
    }
}

impl DshLogs {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "for callers that gave no clock")]
        let system = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        };
        self.clock.as_ref().map_or_else(system, |clock| clock.now())
    }

    fn random(&self) -> [u8; 16] {
        self.ids.as_ref().map_or_else(
            || {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes).expect("the system has randomness");
                bytes
            },
            |ids| ids.next(),
        )
    }

    /// Makes a child of the session `id`, cut after event `at`, by default its last (004-30 to 33): see
    /// [`DshLogs::write_child`].
    pub fn fork_at(
        &self,
        id: &str,
        at: Option<Seq>,
        child: Option<&str>,
        notice: Option<&str>,
    ) -> Result<Forked, LogError> {
        self.write_child(
            id,
            &ChildSpec {
                cut: at.map_or(Cut::End, Cut::At),
                child: child.map(ToOwned::to_owned),
                notice: notice.map(ToOwned::to_owned),
                ..ChildSpec::default()
            },
        )
    }

    /// Makes a child of the session `parent`, durable on return. Rows of the prefix keep their bytes.
    ///
    /// The order of checks is the contract's: a taken id, a missing parent, a log or folder that the host refuses, an
    /// event that is not there, a turn that is open. An event of an unknown type forbids only cuts behind it.
    ///
    /// # Errors
    ///
    /// After an error there is no child, and nothing else is left behind.
    pub fn write_child(&self, parent: &str, spec: &ChildSpec) -> Result<Forked, LogError> {
        let sessions = self.sessions();
        let child = spec.child.clone().unwrap_or_else(|| format!("session-{}", uuid(self.random())));
        let bad_id = || LogError::BadId { id: child.clone() };
        SessionKey::new(HARNESS, &child).map_err(|_| bad_id())?;
        let child_text = JsonText::from(&*child);
        for folder in root::folders(&sessions, &child_text)? {
            if let Some(path) = root::any_log(&folder)? {
                return Err(LogError::AlreadyExists { id: child, path });
            }
        }
        let (found, log, prefix) = self.open_prefix(parent, spec)?;
        let now = self.now();
        let header = LogHeader {
            version: WRITTEN,
            id: child_text,
            created_at: u64::try_from(now.0).unwrap_or(0),
            cwd: log.header.cwd.clone(),
            parent: Some(log.header.id.clone()),
            seed_length: Some(prefix.events),
            seeded: false,
            subagent: false,
            delegation_depth: 0,
            agent_preset: log.header.agent_preset.clone(),
        };
        let (added, closers) = self.added(spec, &prefix, now);

        let segment = encode_segment(&header.id).ok_or_else(bad_id)?;
        let project = found.dir().parent().unwrap_or(found.dir());
        let mut draft = Draft::of_session(project, &segment, log.encoding, self.random(), &child)?;
        draft.row(header.line().as_bytes())?;
        draft.end_frame()?;
        copy_prefix(&mut draft, &log, &prefix)?;
        for event in &added {
            draft.row(rows::write(event).as_bytes())?;
        }
        draft.sync()?;

        let events = prefix.events + added.len() as u64;
        let (temp, path) = (draft.temp(), draft.path());
        let back = read_back(&temp, log.encoding, header.line().as_bytes(), events, &prefix.seen);
        let wrong = |source: LogError| LogError::ReadBack { source: Box::new(source) };
        let placed = root::Found { path: path.clone(), encoding: log.encoding, version: None };
        root::check_place(&sessions, &placed, &back.map_err(wrong)?).map_err(wrong)?;
        if let (Some(wanted), Some(last)) = (&spec.prefix, prefix.events.checked_sub(1)) {
            let own = digest(&mut read::open(&temp, log.encoding, None)?, last)?;
            if own.as_ref() != Some(wanted) {
                return Err(LogError::OtherPrefix { path: log.path, seq: Seq(last) });
            }
        }
        if !draft.publish()? {
            return Err(LogError::AlreadyExists { id: child, path });
        }
        let boundary = prefix.events.checked_sub(1).map(Seq);
        Ok(Forked { child, path, seed_length: prefix.events, boundary, closers, events })
    }

    /// Says whether [`DshLogs::write_child`] would take the parent as it is, without writing anything.
    ///
    /// # Errors
    ///
    /// What that would say of the log, the folder of logs and the cut.
    pub fn check_child(&self, parent: &str, spec: &ChildSpec) -> Result<(), LogError> {
        self.open_prefix(parent, spec).map(drop)
    }

    /// Opens a parent that the host would load, and reads what a child takes from it.
    fn open_prefix(&self, parent: &str, spec: &ChildSpec) -> Result<(Found, Log, Prefix), LogError> {
        let (found, mut log) = self.open_loadable(parent)?;
        if log.header.version != WRITTEN {
            let version = log.header.version.to_string();
            return Err(LogError::UnsupportedVersion { path: log.path, version, write: true });
        }
        let prefix = first_reading(&mut log, parent, spec)?;
        Ok((found, log, prefix))
    }

    /// The events that follow the prefix, and how many of them close a turn.
    fn added(&self, spec: &ChildSpec, prefix: &Prefix, now: Timestamp) -> (Vec<LogEvent>, u64) {
        let mut added = Vec::new();
        let next = |added: &[LogEvent]| prefix.events + added.len() as u64;
        if prefix.events > 0 && !prefix.ends_seed {
            added.push(event(prefix.events, prefix.time, "session/end-seed", "{}".into(), None));
        }
        let mut closers = 0;
        if let Some((mut open, _)) = prefix.follow.clone() {
            // Version 0 knows no other cause.
            open.skip_to(Seq(next(&added).saturating_sub(1)), prefix.time);
            let closing = open.closers(ClosersCause::Interrupted);
            closers = closing.len() as u64;
            added.extend(closing);
        }
        for extra in &spec.events {
            added.push(LogEvent { seq: Seq(next(&added)), ..extra.clone() });
        }
        if let Some(text) = &spec.notice {
            added.push(notice(next(&added), now.0, &uuid(self.random()), text));
        }
        (added, closers)
    }

    /// Writes a copy of the session's log to `to`, without its torn tail and with its open turn closed: what the host
    /// would make of the log itself when it loads it. The log stays as it is.
    ///
    /// `to` must not exist, and its folder must. Below the sessions folder only the session's own folder will do, under a
    /// name that no log has.
    ///
    /// # Errors
    ///
    /// A log that the host would refuse is not repaired. After an error nothing is left at `to`.
    pub fn repair(&self, id: &str, to: &Path) -> Result<Repaired, LogError> {
        let (found, mut log) = self.open_loadable(id)?;
        if log.header.version != WRITTEN {
            let version = log.header.version.to_string();
            return Err(LogError::UnsupportedVersion { path: log.path, version, write: true });
        }
        self.check_target(to, found.dir())?;
        let spec = ChildSpec { cut: Cut::End, close_open_turn: true, ..ChildSpec::default() };
        let mut torn = None;
        let prefix = read_prefix(&mut log, id, &spec, &mut torn)?;
        let closers = prefix.follow.as_ref().map_or_else(Vec::new, |(open, _)| open.closers(ClosersCause::Interrupted));

        let mut draft = Draft::at(to, log.encoding, self.random())?;
        draft.raw(&log.file, 0, log.body)?;
        copy_prefix(&mut draft, &log, &prefix)?;
        for event in &closers {
            draft.row(rows::write(event).as_bytes())?;
        }
        draft.sync()?;
        let events = prefix.events + closers.len() as u64;
        let back = read_back(&draft.temp(), log.encoding, &log.line, events, &prefix.seen);
        back.map_err(|source| LogError::ReadBack { source: Box::new(source) })?;
        if !draft.publish()? {
            return Err(LogError::BadTarget { path: to.to_owned(), why: "the file exists".into() });
        }
        Ok(Repaired { path: to.to_owned(), events, closers: closers.len() as u64, torn })
    }

    fn check_target(&self, to: &Path, own: &Path) -> Result<(), LogError> {
        let bad = |why: &str| Err(LogError::BadTarget { path: to.to_owned(), why: why.into() });
        if fs::symlink_metadata(to).is_ok() {
            return bad("the file exists");
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().map_err(LogError::io("open", folder))?;
        let name = to.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let below = self.sessions().canonicalize().is_ok_and(|sessions| folder.starts_with(sessions));
        let beside = own.canonicalize().is_ok_and(|own| own == folder);
        if below && (!beside || read::named(name).is_some()) {
            return bad("the host would take it for a log of its own");
        }
        Ok(())
    }
}

/// Reads the parent from end to end and finds the prefix.
fn first_reading(log: &mut Log, id: &str, spec: &ChildSpec) -> Result<Prefix, LogError> {
    read_prefix(log, id, spec, &mut None)
}

fn read_prefix(log: &mut Log, id: &str, spec: &ChildSpec, torn: &mut Option<Torn>) -> Result<Prefix, LogError> {
    let mut prefix = Prefix::new(spec.cut, spec.extend, spec.close_open_turn, log.body);
    let path = log.path.clone();
    let end = log.rows(&mut |row, line, at| {
        prefix.row(&path, row, line, at.clean)?;
        Ok(ControlFlow::Continue(()))
    })?;
    *torn = end.torn;
    if prefix.stage == Stage::Inside && prefix.copy.0 != end.clean {
        prefix.copy = (end.clean, prefix.seen.lines);
    }
    let last = end.events.checked_sub(1).map(Seq);
    if let Some(fault) = end.broken.or(end.bad) {
        return Err(fault);
    }
    match end.unknown {
        Some(LogError::UnknownEvent { seq, .. }) if seq.0 >= prefix.events => {}
        Some(unknown) => return Err(unknown),
        None => {}
    }
    match spec.cut {
        Cut::At(seq) if last.is_none_or(|last| seq > last) => {
            return Err(LogError::InvalidBoundary { id: id.to_owned(), seq, last });
        }
        _ => {}
    }
    if let (Some(turn), false, Some(seq)) = (prefix.open, spec.close_open_turn, prefix.events.checked_sub(1)) {
        return Err(LogError::OpenTurn { id: id.to_owned(), seq: Seq(seq), turn });
    }
    Ok(prefix)
}
