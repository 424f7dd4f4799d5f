//! A host's view of the engine: what a harness in Rust calls around its turns and tools. The same as `rwd sidecar` offers
//! over a pipe, without the pipe.
//!
//! ```
#![doc = include_str!("../examples/host.rs")]
//! ```

use std::time::Duration;

use checkpoint_core::{
    Engine, EngineError, Outcome, PointKind, Position, Preview, ProcessId, RestoreRequest, ReverseRequest, SaveRequest,
    Saved, Seq, SessionKey, Step, Turn,
};

/// Undo for the sessions of a host in one workspace. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Host {
    engine: Engine,
}

/// A session of a host. Its captures are made one after the other; sessions do not hold each other up.
#[derive(Debug)]
pub struct HostSession {
    engine: Engine,
    key: SessionKey,
    process: Option<ProcessId>,
    turn: Option<Turn>,
}

/// A tool call that may change files.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolCall<'a> {
    /// The tool.
    pub name: &'a str,
    /// The harness's id of the call: the same call is captured once.
    pub id: Option<&'a str>,
    /// The step, from 1.
    pub step: Option<u32>,
    /// Where the conversation is.
    pub position: Option<u64>,
    /// Gives up then and leaves a gap.
    pub deadline: Option<Duration>,
}

impl Host {
    /// Over an engine that was composed with the host's approver, session logs and configuration.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// The engine, for everything else.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A session. A turn that it leaves open counts as interrupted once this process is gone (design § 2).
    pub fn session(&self, key: SessionKey) -> HostSession {
        let process = durable_fs::Process::current().ok();
        let process = process.map(|p| ProcessId { pid: p.pid, started: p.start, boot: p.boot });
        HostSession { engine: self.engine.clone(), key, process, turn: None }
    }
}

fn position(seq: Option<u64>) -> Option<Position> {
    seq.map(|seq| Position { seq: Seq(seq), anchor: None, prefix: None })
}

impl HostSession {
    /// Before the first model request of a turn: the state that `tN^` goes back to. `seq`: the turn's first event.
    ///
    /// # Errors
    /// [`EngineError::Gap`] when no point was made; the turn may go on without it, and the list says so.
    pub fn begin_turn(&mut self, turn: u32, seq: Option<u64>) -> Result<Saved, EngineError> {
        self.turn = Some(Turn(turn));
        self.save(PointKind::TurnStart, |request| SaveRequest { position: position(seq), ..request })
    }

    /// Before a tool that may change files.
    ///
    /// # Errors
    /// As [`HostSession::begin_turn`].
    pub fn before_tool(&self, call: &ToolCall<'_>) -> Result<Saved, EngineError> {
        self.save(PointKind::Mutation, |request| SaveRequest {
            step: call.step.map(Step),
            trigger: Some(call.name.to_owned()),
            call_id: call.id.map(str::to_owned),
            position: position(call.position),
            deadline: call.deadline,
            ..request
        })
    }

    /// After a turn. `seq`: its last event, which must be on the disk: the conversation is cut there.
    ///
    /// # Errors
    /// As [`HostSession::begin_turn`].
    pub fn end_turn(&mut self, seq: Option<u64>) -> Result<Saved, EngineError> {
        let saved = self.save(PointKind::TurnEnd, |request| SaveRequest { position: position(seq), ..request });
        self.turn = None;
        saved
    }

    /// Shows what [`HostSession::rewind`] would do.
    ///
    /// # Errors
    /// Those of [`Engine::preview`].
    pub fn preview(&self, target: &str) -> Result<Preview, EngineError> {
        self.engine.preview(&self.going(target))
    }

    /// Goes back to a point; the engine's approver is asked. The conversation goes back too where its log has a door.
    ///
    /// # Errors
    /// Those of [`Engine::restore`].
    pub fn rewind(&self, target: &str) -> Result<Outcome, EngineError> {
        self.engine.restore(&self.going(target))
    }

    /// Takes the session's last restore back.
    ///
    /// # Errors
    /// Those of [`Engine::undo`].
    pub fn undo(&self) -> Result<Outcome, EngineError> {
        self.engine.undo(&ReverseRequest { session: Some(self.key.clone()), ..ReverseRequest::default() })
    }

    fn going(&self, target: &str) -> RestoreRequest {
        RestoreRequest { session: Some(self.key.clone()), target: target.to_owned(), ..RestoreRequest::default() }
    }

    fn save(&self, kind: PointKind, with: impl FnOnce(SaveRequest) -> SaveRequest) -> Result<Saved, EngineError> {
        let request = SaveRequest {
            turn: self.turn,
            process: self.process.clone().filter(|_| kind == PointKind::TurnStart),
            ..SaveRequest::of(self.key.clone(), kind)
        };
        self.engine.save(&with(request))
    }
}
