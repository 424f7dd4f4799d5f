//! The host's configuration: kept with each point, restored only on request (contract 002-35, 002-39).

use crate::{BoxError, EngineError, HostKept, ObjectId, Point, PointId, SnapshotError};

use super::Engine;
use super::restore::Goal;

/// What became of a configuration that was to be restored.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// For people.
    pub(super) notes: Vec<String>,
    /// Why it was not restored.
    pub(super) failed: Option<BoxError>,
}

impl Engine {
    /// Stores the present configuration and gives its blob. A host that fails costs the point its configuration only.
    ///
    /// `before`: that of the record before. The same one again costs no write.
    pub(super) fn keep_host_state(&self, before: Option<ObjectId>) -> Result<Option<ObjectId>, SnapshotError> {
        let Some(host) = &self.parts.host else { return Ok(None) };
        let state = match host.save() {
            Ok(Some(state)) => state,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, "the host's configuration was not kept");
                return Ok(None);
            }
        };
        let (len, snapshots) = (state.len() as u64, &self.parts.snapshots);
        let id = snapshots.hash_blob(len, &mut &*state)?;
        // What a record names is durable already.
        if before == Some(id) { Ok(Some(id)) } else { snapshots.put_blob(len, &mut &*state).map(Some) }
    }

    /// The configuration that goes with where an order goes.
    pub(super) fn host_state_of(&self, goal: &Goal) -> Result<ObjectId, EngineError> {
        let kept = |point: &Point| {
            let none = || EngineError::NotRestorable {
                point: point.id,
                path: None,
                why: "no configuration was kept with it".to_owned(),
            };
            point.host_state.ok_or_else(none)
        };
        match goal {
            Goal::Point(point) => kept(point),
            Goal::Reverse(operation) => {
                let guard = operation.guard.map(|id| self.parts.index.point(&id)).transpose()?.flatten();
                kept(&guard.ok_or(EngineError::Expired { operation: operation.id })?)
            }
            Goal::Chat => Err(EngineError::Nothing {
                why: "a configuration belongs to a point, and no point is meant".to_owned(),
                hint: None,
            }),
        }
    }

    /// Brings a configuration back, if one is asked for.
    pub(super) fn configure(&self, state: Option<ObjectId>) -> Configured {
        let mut done = Configured::default();
        let Some(state) = state else { return done };
        let restored = self.read_whole(&state).and_then(|bytes| match &self.parts.host {
            Some(host) => host.restore(&bytes),
            None => Err("nothing here can restore a configuration".into()),
        });
        match restored {
            Ok(HostKept::Durable) => done.notes.push("the host's configuration was restored".to_owned()),
            Ok(HostKept::ThisProcess) => {
                let note = "the host's configuration was restored for the running host only: it is not durable";
                done.notes.push(note.to_owned());
            }
            Err(error) => {
                done.notes.push(format!("the host's configuration was not restored: {error}"));
                done.failed = Some(error);
            }
        }
        done
    }

    /// Puts the configuration back that a guard kept: as far as it goes.
    pub(super) fn unconfigure(&self, asked: Option<ObjectId>, guard: &PointId) -> Result<Vec<String>, EngineError> {
        if asked.is_none() {
            return Ok(Vec::new());
        }
        let before = self.parts.index.point(guard)?.and_then(|point| point.host_state);
        Ok(self.configure(before).notes)
    }

    fn read_whole(&self, id: &ObjectId) -> Result<Vec<u8>, BoxError> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut self.parts.snapshots.open_blob(id)?, &mut bytes)?;
        Ok(bytes)
    }
}
