//! `rwd import`: what an older plugin recorded comes in as points and marks.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use checkpoint_core::{
    ImportItem, ImportMark, ImportRequest, ItemOutcome, Mark, Position, SessionKey, SnapshotError, StateSource, Step,
    Timestamp, Turn,
};
use harness_adapter::older::{self, Problem, Provider};
use harness_adapter::sessions::dsh;
use snapshot_git::OtherObjects;

use crate::args::{ImportArgs, ImportKind};
use crate::compose::Opened;
use crate::error::CliError;
use crate::run::Run;
use crate::text::{self, put};
use crate::wire::{self, shown};
use crate::{exit, world};

/// The session of copies that no record tells of.
const UNKNOWN: &str = "unknown";

/// A state that was found, with what reads it.
struct Candidate {
    key: String,
    session: SessionKey,
    turn: Option<Turn>,
    step: Option<Step>,
    position: Option<Position>,
    at: Timestamp,
    note: Option<String>,
    trigger: Option<String>,
    changed: u64,
    coarse_modes: bool,
    /// What the store calls it.
    name: String,
    source: Box<dyn StateSource>,
}

/// What a store came to.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    marks: Vec<Mark>,
    skipped: Vec<wire::ImportSkipped>,
    without_files: u64,
    elsewhere: u64,
}

/// Whose records count here.
struct Wanted<'a> {
    run: &'a Run,
    root: PathBuf,
    only: Option<SessionKey>,
    known: BTreeMap<SessionKey, bool>,
}

pub(crate) fn import(run: &Run, args: &ImportArgs) -> Result<u8, CliError> {
    let opened = super::open(run)?;
    let path = place(run, args)?;
    let mut wanted = Wanted {
        run,
        root: opened.located.root().to_owned(),
        only: run.global.session.as_deref().map(session).transpose()?,
        known: BTreeMap::new(),
    };
    let from = match &args.path {
        Some(_) => format!("{} at {}", args.from.name(), path.display()),
        None => args.from.name().to_owned(),
    };
    let done = args.once && opened.engine.has_imported(&from)?;
    let found = match args.from {
        _ if done => Found::default(),
        ImportKind::DshCheckpoint => turns(run, &path, &mut wanted)?,
        ImportKind::DshCheckpointRewind => rewinds(&path, &mut wanted),
        ImportKind::ToolCheckpoint => marks(&opened, &path, &mut wanted)?,
    };
    run.stop.listen();
    let request = ImportRequest {
        from,
        session: wanted.only.clone().unwrap_or_else(SessionKey::local),
        items: found.candidates.iter().map(item).collect(),
        marks: found.marks.iter().map(|mark| ImportMark { mark: mark.clone() }).collect(),
        dry_run: args.dry_run,
    };
    let imported = opened.engine.import(&request)?;
    let mut answer = wire::Imported {
        from: args.from.name().to_owned(),
        path: path.to_string_lossy().into_owned(),
        dry_run: args.dry_run,
        op: imported.operation.map(|op| op.to_string()),
        points: Vec::new(),
        marks: Vec::new(),
        skipped: found.skipped,
        without_files: found.without_files,
        elsewhere: found.elsewhere,
    };
    for (candidate, outcome) in found.candidates.iter().zip(imported.items) {
        let (id, new, files) = match outcome {
            ItemOutcome::Imported { point, assembled } => (Some(point.to_string()), true, Some(assembled.files)),
            ItemOutcome::Would { files } => (None, true, Some(files)),
            ItemOutcome::Already { point } => (Some(point.to_string()), false, None),
            ItemOutcome::Refused { why } => {
                answer.skipped.push(refused(candidate, &why));
                continue;
            }
        };
        answer.points.push(wire::ImportedPoint {
            id,
            new,
            session: candidate.session.to_string(),
            turn: candidate.turn.map(|turn| turn.0),
            step: candidate.step.map(|step| step.0),
            at: candidate.at.0,
            note: candidate.note.clone(),
            source: candidate.name.clone(),
            files,
        });
    }
    for (mark, placed) in found.marks.iter().zip(imported.marks) {
        answer.marks.push(wire::ImportedMark {
            id: placed.id,
            was: mark.id,
            new: placed.new,
            session: mark.session.to_string(),
            folded: mark.folded.is_some(),
        });
    }
    tell(run, &answer)?;
    super::tidy_up(&opened);
    let new = answer.points.iter().any(|point| point.new) || answer.marks.iter().any(|mark| mark.new);
    Ok(match (answer.skipped.is_empty(), new) {
        (false, _) => exit::PARTIAL,
        (true, true) => exit::OK,
        (true, false) => exit::NOTHING,
    })
}

/// Where the store is: as it was said, else in its default place.
fn place(run: &Run, args: &ImportArgs) -> Result<PathBuf, CliError> {
    if let Some(path) = &args.path {
        let path = run.absolute(path)?;
        return match path.metadata() {
            Ok(facts) if facts.is_dir() || args.from == ImportKind::ToolCheckpoint => Ok(path),
            Ok(_) => Err(CliError::usage("no-directory", format!("{} is no directory", path.display()))),
            Err(error) => Err(CliError::usage("no-directory", format!("{} cannot be read: {error}", path.display()))),
        };
    }
    let home = world::dsh_home(&run.world.vars);
    let home = home.ok_or_else(|| CliError::usage("no-directory", "there is no home directory: say --path"))?;
    Ok(match args.from {
        ImportKind::DshCheckpoint => home.join("checkpoint"),
        ImportKind::DshCheckpointRewind => home.join("dsh-checkpoint-rewind"),
        ImportKind::ToolCheckpoint => home.join("storages/checkpoint.json"),
    })
}

/// The session that `--session` names: all these stores are of DeepSeek Harness.
fn session(text: &str) -> Result<SessionKey, CliError> {
    let id = text.strip_prefix("dsh:").unwrap_or(text);
    SessionKey::new(dsh::HARNESS, id).map_err(|error| CliError::usage("bad-session", error.to_string()))
}

impl Wanted<'_> {
    /// True when the session worked in this very directory, by its log; where there is no log, when it was named.
    fn session(&mut self, key: &SessionKey) -> bool {
        if self.only.as_ref().is_some_and(|only| only != key) {
            return false;
        }
        if let Some(here) = self.known.get(key) {
            return *here;
        }
        let here = match self.run.world.sessions.header(key) {
            Ok(header) => self.is_root(&header.cwd),
            Err(_) => self.only.is_some(),
        };
        self.known.insert(key.clone(), here);
        here
    }

    /// True when a record of this session and this directory counts.
    fn record(&self, key: &SessionKey, cwd: &Path) -> bool {
        self.only.as_ref().is_none_or(|only| only == key) && self.is_root(cwd)
    }

    fn is_root(&self, dir: &Path) -> bool {
        dir == self.root || dir.canonicalize().is_ok_and(|dir| dir == self.root)
    }
}

fn item(candidate: &Candidate) -> ImportItem<'_> {
    ImportItem {
        key: candidate.key.clone(),
        session: candidate.session.clone(),
        turn: candidate.turn,
        step: candidate.step,
        position: candidate.position.clone(),
        at: candidate.at,
        note: candidate.note.clone(),
        trigger: candidate.trigger.clone(),
        changed: candidate.changed,
        coarse_modes: candidate.coarse_modes,
        source: &*candidate.source,
    }
}

/// `dsh-checkpoint`.
fn turns(run: &Run, path: &Path, wanted: &mut Wanted<'_>) -> Result<Found, CliError> {
    let mut found = Found::default();
    // rwd writes a view in the form of this store, in the same place.
    let data = crate::compose::data_dir(run)?.path().to_owned();
    let ours = data.canonicalize().unwrap_or(data);
    let is_ours = |objects: &Path| objects.canonicalize().is_ok_and(|objects| objects.starts_with(&ours));
    let stores = match older::turn_stores(path, &is_ours) {
        Ok((stores, problems)) => {
            found.unreadable(problems);
            stores
        }
        Err(problem) => {
            found.unreadable(vec![problem]);
            Vec::new()
        }
    };
    for store in stores {
        if !wanted.session(&store.session) {
            found.elsewhere += store.turns.len() as u64;
            continue;
        }
        found.unreadable(store.problems);
        let objects = OtherObjects::open(&store.objects);
        for turn in store.turns {
            let Some(tree) = turn.tree else {
                found.without_files += 1;
                continue;
            };
            let name = format!("turn {} of {}", turn.turn, store.session);
            let state = match &objects {
                Ok(objects) => objects.state(&tree),
                Err(error) => {
                    Err(SnapshotError::Other { what: "its objects cannot be read", source: told(error).into() })
                }
            };
            match state {
                Ok(state) => found.candidates.push(Candidate {
                    key: format!("dsh-checkpoint/{}/{}/{}", store.session.id(), turn.turn, tree.to_ascii_lowercase()),
                    session: store.session.clone(),
                    turn: Some(turn.turn),
                    step: None,
                    position: None,
                    at: turn.at,
                    note: None,
                    trigger: None,
                    changed: turn.changed,
                    coarse_modes: true,
                    name: tree,
                    source: Box::new(state),
                }),
                Err(error) => found.skipped.push(skipped(name, &error)),
            }
        }
    }
    found.candidates.sort_by_key(|candidate| candidate.at);
    Ok(found)
}

/// `dsh-checkpoint-rewind`.
fn rewinds(path: &Path, wanted: &mut Wanted<'_>) -> Found {
    let mut found = Found::default();
    let records = match older::rewind_records(path) {
        Ok((records, problems)) => {
            found.unreadable(problems);
            records
        }
        Err(problem) => {
            found.unreadable(vec![problem]);
            Vec::new()
        }
    };
    let objects = OtherObjects::of_workspace(&wanted.root);
    let dir = older::workspace_dir(&wanted.root);
    let mut recorded = Vec::new();
    for record in records {
        recorded.push(record.reference.to_ascii_lowercase());
        if !wanted.record(&record.session, &record.cwd) {
            found.elsewhere += 1;
            continue;
        }
        let name = format!("record {}", record.id);
        let source: Result<Box<dyn StateSource>, SnapshotError> = match record.provider {
            Provider::Git => match &objects {
                Ok(Some(objects)) => objects.state(&record.reference).map(|state| Box::new(state) as Box<_>),
                Ok(None) => Err(gone("the workspace is no git repository any more")),
                Err(error) => {
                    Err(SnapshotError::Other { what: "the repository cannot be read", source: told(error).into() })
                }
            },
            Provider::Copy => {
                // The directory goes by the workspace as the plugin knew it.
                let own = older::workspace_dir(&record.cwd);
                older::copied_state(path, &own, &record.reference).map(|state| Box::new(state) as Box<_>)
            }
        };
        match source {
            Ok(source) => found.candidates.push(Candidate {
                key: format!("dsh-checkpoint-rewind/{}", record.id),
                session: record.session,
                turn: record.turn,
                step: record.step,
                position: record.seq.map(|seq| Position { seq, anchor: None, prefix: None }),
                at: record.at,
                note: record.note,
                trigger: record.trigger,
                changed: record.files,
                coarse_modes: record.provider == Provider::Git,
                name: record.reference,
                source,
            }),
            Err(error) => found.skipped.push(skipped(name, &error)),
        }
    }
    // Copies are worth having also where the medium with their records is lost: only whose they are is not known.
    let unknown =
        SessionKey::new(dsh::HARNESS, UNKNOWN).ok().filter(|key| wanted.only.as_ref().is_none_or(|only| only == key));
    if let Some(key) = unknown {
        found.orphans(path, &dir, &recorded, &key);
    }
    found.candidates.sort_by_key(|candidate| candidate.at);
    found
}

/// `tool-checkpoint`.
fn marks(opened: &Opened, path: &Path, wanted: &mut Wanted<'_>) -> Result<Found, CliError> {
    let mut found = Found::default();
    let here: Vec<SessionKey> = opened.index.sessions()?.into_iter().map(|session| session.key).collect();
    let files = [path.to_owned(), path.join("checkpoint.json"), path.join("storages/checkpoint.json")];
    for file in files.into_iter().filter(|file| !file.is_dir()) {
        let (all, problems) = match older::marks(&file) {
            Ok(None) => continue,
            Ok(Some(found)) => found,
            Err(problem) => {
                found.unreadable(vec![problem]);
                break;
            }
        };
        found.unreadable(problems);
        for mark in all {
            let known = here.contains(&mark.session) && wanted.only.as_ref().is_none_or(|only| *only == mark.session);
            if !known && !wanted.session(&mark.session) {
                found.elsewhere += 1;
                continue;
            }
            found.marks.push(Mark {
                id: mark.id,
                session: mark.session,
                log_length: mark.log_length,
                turn: mark.turn,
                objective: mark.objective,
                folded: mark.folded,
                at: mark.at,
            });
        }
        break;
    }
    Ok(found)
}

impl Found {
    fn unreadable(&mut self, problems: Vec<Problem>) {
        self.skipped.extend(problems.into_iter().map(|problem| wire::ImportSkipped {
            record: problem.what,
            reason: "unreadable".to_owned(),
            message: problem.why,
        }));
    }

    fn orphans(&mut self, path: &Path, dir: &str, recorded: &[String], session: &SessionKey) {
        let ids = match older::copied_ids(path, dir) {
            Ok(ids) => ids,
            Err(problem) => return self.unreadable(vec![problem]),
        };
        for id in ids.into_iter().filter(|id| !recorded.contains(&id.to_ascii_lowercase())) {
            let Ok(state) = older::copied_state(path, dir, &id) else { continue };
            self.candidates.push(Candidate {
                key: format!("dsh-checkpoint-rewind/copy/{}", id.to_ascii_lowercase()),
                session: session.clone(),
                turn: None,
                step: None,
                position: None,
                at: Timestamp(state.newest_ms()),
                note: Some("its record is lost: session, turn and time are not known".to_owned()),
                trigger: None,
                changed: 0,
                coarse_modes: false,
                name: id,
                source: Box::new(state),
            });
        }
    }
}

fn gone(why: &'static str) -> SnapshotError {
    SnapshotError::Other { what: "its content is not there any more", source: why.into() }
}

fn refused(candidate: &Candidate, why: &SnapshotError) -> wire::ImportSkipped {
    let of = &candidate.session;
    let record = match (candidate.turn, candidate.step) {
        (Some(turn), Some(step)) => format!("{}, turn {turn}, step {step} of {of}", candidate.name),
        (Some(turn), None) => format!("{}, turn {turn} of {of}", candidate.name),
        _ => format!("{} of {of}", candidate.name),
    };
    skipped(record, why)
}

fn skipped(record: String, why: &SnapshotError) -> wire::ImportSkipped {
    let reason = match why {
        SnapshotError::Missing { .. } => "missing",
        SnapshotError::Damaged { .. } => "damaged",
        SnapshotError::NoSpace { .. } => "no-space",
        _ => "refused",
    };
    wire::ImportSkipped { record, reason: reason.to_owned(), message: told(why) }
}

/// An error with its causes.
fn told(error: &dyn StdError) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

fn tell(run: &Run, answer: &wire::Imported) -> Result<(), CliError> {
    run.out.answer(answer, |answer| {
        let mut out = String::new();
        let count = |n: usize, what| text::count(n as u64, what);
        let new = answer.points.iter().filter(|point| point.new).count();
        let new_marks = answer.marks.iter().filter(|mark| mark.new).count();
        let would = if answer.dry_run { "would come in" } else { "imported" };
        if new == 0 && new_marks == 0 {
            put!(out, "nothing new in {}\n", shown(&answer.path));
        }
        if new > 0 {
            put!(out, "{} {would} from {}\n", count(new, "point"), answer.from);
        }
        for point in answer.points.iter().filter(|point| point.new) {
            let id = point.id.as_deref().map_or_else(String::new, |id| format!("{}  ", text::short(id)));
            let turn = point.turn.map_or_else(String::new, |turn| format!("  turn {turn}"));
            let step = point.step.map_or_else(String::new, |step| format!(" step {step}"));
            let note = point.note.as_ref().map_or_else(String::new, |note| format!("  {}", shown(note)));
            let files = text::count(point.files.unwrap_or(0), "file");
            put!(out, "  {id}{}{turn}{step}  {files}{note}\n", point.session);
        }
        if new_marks > 0 {
            put!(out, "{} {would}\n", count(new_marks, "mark"));
        }
        for mark in answer.marks.iter().filter(|mark| mark.new) {
            let was = if mark.id == mark.was { String::new() } else { format!(", there {}", mark.was) };
            put!(out, "  mark {}{was}  {}\n", mark.id, mark.session);
        }
        let old = answer.points.len() - new + answer.marks.len() - new_marks;
        if old > 0 {
            put!(out, "{} came in before\n", count(old, "record"));
        }
        for skipped in &answer.skipped {
            put!(out, "left out, {}: {}: {}\n", skipped.reason, shown(&skipped.record), shown(&skipped.message));
        }
        if answer.without_files > 0 {
            put!(
                out,
                "{} without files: the plugin kept none outside git\n",
                text::count(answer.without_files, "record")
            );
        }
        if answer.elsewhere > 0 {
            let count = text::count(answer.elsewhere, "record");
            put!(out, "{count} of other workspaces, or of sessions without a log; --session ID takes one of those\n");
        }
        if let (false, Some(id)) = (answer.dry_run, answer.points.iter().rev().find_map(|point| point.id.as_deref())) {
            put!(out, "to look at the newest: {}\n", run.typed.other(&["preview", text::short(id)]));
        }
        out
    })
}
