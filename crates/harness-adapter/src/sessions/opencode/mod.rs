//! Sessions of opencode, which keeps them in a database that only its own program may write: they are read by `opencode
//! export` and made by `opencode import`.
//!
//! Each takes seconds, so what was read is kept for a moment, and nothing is read for a capture or for files alone. Only a
//! session that another export shows is believed to be there: `import` says "Imported" also where it made nothing of the
//! messages.
//!
//! A cut is a number of messages. The digest is over what was said and called, without ids and times.

mod child;
mod export;
mod program;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use checkpoint_core::{Beat, Timestamp};
use serde_json::value::RawValue;

pub use self::program::{Program, ProgramError, Transfer};
use self::{
    child::{Order, compose, session_id},
    export::Export,
};
use super::{
    child::{now, sync},
    door::{Door, DoorError, Format, Listed, Talked, Upto},
    fields::Fields,
};

/// The name in session keys.
pub const HARNESS: &str = "opencode";

/// The database below the home.
const DATABASE: &str = "opencode.db";

/// So long what was read counts: over the few questions that one command asks, not over somebody who thinks.
const FRESH: Duration = Duration::from_secs(10);

/// What an export was.
type Told = Result<Arc<[u8]>, ProgramError>;

/// The sessions below a data directory.
#[derive(Debug)]
pub struct Opencode {
    home: PathBuf,
    transfer: Arc<dyn Transfer>,
    told: Mutex<BTreeMap<String, (Instant, Told)>>,
}

/// The sessions below a data directory, `…/opencode`, which need not be there. Nothing is run now.
pub fn open(home: impl Into<PathBuf>) -> Door<Opencode> {
    let home = home.into();
    let own = home.file_name().is_some_and(|name| name == "opencode");
    let data = home.parent().filter(|_| own).map(Path::to_owned);
    open_with(home, Arc::new(Program { data, ..Program::of_environment() }))
}

/// The same with something else than the program.
pub fn open_with(home: impl Into<PathBuf>, transfer: Arc<dyn Transfer>) -> Door<Opencode> {
    Door(Opencode { home: home.into(), transfer, told: Mutex::default() })
}

/// `$XDG_DATA_HOME/opencode`, else `~/.local/share/opencode`; `None` without a home.
pub fn default_home(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let data = var("XDG_DATA_HOME").or_else(|| Some(var("HOME")?.join(".local/share")));
    Some(data?.join("opencode"))
}

/// An id of a session, and nothing that a program could take for something else.
fn is_id(id: &str) -> bool {
    let rest = id.strip_prefix("ses_").unwrap_or_default();
    (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl Opencode {
    fn database(&self) -> PathBuf {
        self.home.join(DATABASE)
    }

    fn told(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Instant, Told)>> {
        // What was read stays right, whatever its reader died of.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, id: &str) -> Option<Told> {
        let told = self.told();
        let (at, told) = told.get(id)?;
        (at.elapsed() < FRESH).then(|| told.clone())
    }

    fn export(&self, id: &str) -> Result<Arc<[u8]>, DoorError> {
        // Where opencode never was, or no session can have that name, nobody is asked.
        let told = if !is_id(id) || !self.home.is_dir() {
            Err(ProgramError::NoSession)
        } else if let Some(known) = self.known(id) {
            known
        } else {
            let told: Told = self.transfer.export(id).map(Into::into);
            self.told().insert(id.to_owned(), (Instant::now(), told.clone()));
            told
        };
        told.map_err(|error| match error {
            ProgramError::NoSession => DoorError::NotFound { id: id.to_owned(), below: self.home.clone() },
            error => DoorError::Program { source: error },
        })
    }

    fn forget(&self, id: &str) {
        self.told().remove(id);
    }
}

impl Format for Opencode {
    fn harness(&self) -> &'static str {
        HARNESS
    }

    fn read(&self, id: &str) -> Result<Talked, DoorError> {
        let (text, path) = (self.export(id)?, self.database());
        Ok(Export::parse(&text, id, &path)?.talk(&path))
    }

    /// A program that is not there or fails is told to the log, and is no door: files go back without it.
    fn has(&self, id: &str) -> bool {
        match self.export(id) {
            Ok(_) => true,
            Err(DoorError::NotFound { .. }) => false,
            Err(error) => {
                tracing::warn!(%error, id, "the conversation cannot be read");
                false
            }
        }
    }

    fn is_there(&self, id: &str) -> Result<bool, DoorError> {
        match self.export(id) {
            Ok(_) => Ok(true),
            Err(DoorError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_costly(&self, id: &str) -> bool {
        is_id(id) && self.home.is_dir() && self.known(id).is_none()
    }

    /// The database, which holds them all.
    fn find(&self, _: &str) -> Result<PathBuf, DoorError> {
        Ok(self.database())
    }

    fn opens_empty(&self) -> bool {
        true
    }

    fn check_id(&self, id: &str) -> Result<(), DoorError> {
        let why = "they are ses_ and letters and digits";
        if is_id(id) { Ok(()) } else { Err(DoorError::BadId { id: id.to_owned(), why }) }
    }

    fn name(&self, uuid: &str) -> String {
        let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).collect();
        session_id(now(), u128::from_str_radix(&digits, 16).unwrap_or(0))
    }

    fn folder(&self, _: &Talked) -> Option<PathBuf> {
        None
    }

    /// Imports the messages before the cut, and asks for the new session: it must have every message and every part.
    fn write(&self, id: &str, log: &Talked, upto: &Upto, child: &str) -> Result<PathBuf, DoorError> {
        let cut = upto.cut;
        let path = self.database();
        let text = self.export(id)?;
        let export = Export::parse(&text, id, &path)?;
        let there = |talked: &Talked| talked.marks.iter().find(|mark| mark.cut == cut).map(|mark| mark.digest.clone());
        let shifted = || DoorError::ReadBack { path: path.clone() };
        if there(&export.talk(&path)) != there(log) {
            return Err(shifted());
        }
        let starts = |mark: &&super::door::Mark| matches!(mark.beat, Beat::TurnStart(_)) && mark.cut < cut;
        let turns = log.marks.iter().filter(starts).count();
        let keys: Vec<String> = log.turns.iter().take(turns).filter_map(|turn| turn.key.clone()).collect();
        let kept = usize::try_from(cut).unwrap_or(usize::MAX);
        let order = Order { parent: id, child, cut: kept, keys: &keys, now: now() };
        let (json, wanted) = compose(&export, &order, &path)?;
        let within = log.cwd.clone().unwrap_or_default();
        if !within.is_dir() {
            let why = format!("the directory of session {id:?} is gone: {}", within.display());
            return Err(DoorError::Program { source: ProgramError::Failed(why) });
        }
        self.forget(child);
        let imported = self.transfer.import(json.as_bytes(), &within);
        self.forget(child);
        imported.map_err(|error| DoorError::Program { source: error })?;
        let made = match self.export(child) {
            Err(DoorError::NotFound { .. }) => return Err(shifted()),
            made => made?,
        };
        let made = Export::parse(&made, child, &path)?;
        let ids = made.messages.iter().flat_map(|message| {
            let parts = message.parts.iter().filter_map(|part| Some(part.text("id")?.into_owned()));
            std::iter::once(message.id.clone()).chain(parts.collect::<Vec<_>>())
        });
        if ids.collect::<Vec<_>>() != wanted {
            return Err(shifted());
        }
        upto.check(&made.talk(&path), &path)?;
        Ok(path)
    }

    /// The database, and the log of it that holds what was written last.
    fn sync(&self, path: &Path) -> Result<(), DoorError> {
        for file in [path.with_extension("db-wal"), path.to_owned()] {
            if file.exists() {
                sync(&file)?;
            }
        }
        Ok(())
    }

    /// The program lists only those of one project: nothing is said.
    fn all(&self) -> Result<Vec<(String, PathBuf)>, DoorError> {
        Ok(Vec::new())
    }

    fn cwd(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    /// Those of the project that has the directory: the program tells no others.
    fn listed(&self, within: &Path) -> Result<Vec<Listed>, DoorError> {
        if !self.home.is_dir() {
            return Ok(Vec::new());
        }
        let told = self.transfer.list(within).map_err(|error| DoorError::Program { source: error })?;
        // It says nothing at all where there is none.
        let rows: Option<Vec<&RawValue>> =
            if told.trim_ascii().is_empty() { Some(Vec::new()) } else { serde_json::from_slice(&told).ok() };
        let number = |fields: &Fields<'_>, name: &str| fields.get(name)?.get().parse().ok().map(Timestamp);
        let one = |raw: &RawValue| {
            let fields = Fields::of(raw)?;
            let id = fields.text("id").filter(|id| is_id(id))?.into_owned();
            let cwd = fields.text("directory").map(|dir| PathBuf::from(&*dir));
            Some(Listed { id, path: self.database(), cwd, written: number(&fields, "updated") })
        };
        let listed = rows.and_then(|rows| rows.into_iter().map(one).collect::<Option<Vec<_>>>());
        listed.ok_or_else(|| DoorError::Unsupported {
            path: self.database(),
            line: 0,
            why: "opencode session list: it is no list of sessions".to_owned(),
        })
    }
}
