//! `rwd mcp`: verbs of the command line as tools for an agent's model.
//!
//! A call is a run of the command line inside this process, so that a tool cannot do what its verb would not: the same
//! settings, fences and locks, the same answers. Only who says yes differs ([`Person`]).

mod tools;

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use checkpoint_core::{Approver, Decision, Preview};
use harness_adapter::mcp::{Answer, Desk, Document, Request, Resource, Said, Server, Tool};
use serde_json::{Map, Value};

use super::plan_text::preview_text;
use super::sidecar::{Shared, quiet_world};
use crate::args::IndexChoice;
use crate::error::CliError;
use crate::exit;
use crate::lasting;
use crate::output::Words;
use crate::run::{Hosted, Run, hosted};
use crate::signals::Stop;
use crate::text::put;

/// What the model is told about all tools together.
const INSTRUCTIONS: &str = "rwd keeps points of this workspace and can take files, and where it can the conversation, \
    back to one. Look first: `list`, `diff`, `preview`. `restore` and `undo` are put to the person before anything is \
    written, and everything they write can be undone. Flags in hints are those of the command line; the arguments here \
    have the same names.";

/// Text for the model is no longer, in bytes; programs get everything.
const MAX_TEXT: usize = 20_000;
/// Nor is a question to a person.
const MAX_QUESTION: usize = 4_000;

pub(crate) fn mcp(run: &Run) -> Result<u8, CliError> {
    lasting::start_with_limits(&run.world);
    run.stop.listen();
    let (input, output) = run.out.take_pipes();
    let stop = run.stop.clone();
    let server = Server {
        desk: Arc::new(Verbs { base: base(run)?, run: quiet_run(run) }),
        version: env!("CARGO_PKG_VERSION"),
        instructions: INSTRUCTIONS,
        stopped: Box::new(move || stop.is_asked()),
    };
    server.serve(input, output);
    Ok(exit::OK)
}

/// What every call begins with: the flags that this process was started with.
fn base(run: &Run) -> Result<Vec<OsString>, CliError> {
    let mut base: Vec<OsString> = vec!["rwd".into()];
    if let Some(dir) = &run.global.dir {
        base.extend(["-C".into(), run.absolute(dir)?.into_os_string()]);
    }
    if let Some(dir) = &run.global.data_dir {
        base.extend(["--data-dir".into(), run.absolute(dir)?.into_os_string()]);
    }
    if let Some(index) = run.global.index {
        let name = match index {
            IndexChoice::Sqlite => "sqlite",
            IndexChoice::Json => "json",
        };
        base.push(format!("--index={name}").into());
    }
    Ok(base)
}

/// What calls share of the surroundings.
#[derive(Debug)]
struct Surroundings {
    world: std::sync::Mutex<crate::world::World>,
    session: Option<String>,
}

fn quiet_run(run: &Run) -> Surroundings {
    Surroundings { world: quiet_world(run).into(), session: run.global.session.clone() }
}

/// The tools.
#[derive(Debug)]
struct Verbs {
    base: Vec<OsString>,
    run: Surroundings,
}

/// How a call ended.
struct Ended {
    code: u8,
    answer: Value,
    text: String,
}

impl Verbs {
    /// Runs a verb. `args` never holds what could be taken for a flag by mistake ([`tools::Tooled::argv`]).
    fn verb(&self, args: Vec<OsString>, session: Option<String>, request: &Arc<Request>) -> Ended {
        let (out, err, words) = (Shared::default(), Shared::default(), Words::default());
        let mut world = {
            let shared = self.run.world.lock().unwrap_or_else(PoisonError::into_inner);
            crate::world::World {
                args: self.base.clone(),
                vars: shared.vars.clone(),
                cwd: shared.cwd.clone(),
                stdin: Box::new(std::io::empty()),
                stdout: Box::new(out.clone()),
                stderr: Box::new(err.clone()),
                can_ask: false,
                stdout_is_terminal: false,
                stderr_is_terminal: false,
                sessions: Arc::clone(&shared.sessions),
                own_process: false,
            }
        };
        if let Some(session) = session.or_else(|| self.run.session.clone()) {
            world.args.push(format!("--session={session}").into());
        }
        world.args.extend(args);
        let given = Hosted {
            approver: Arc::new(Person { request: Arc::clone(request) }),
            stop: Stop::told_by(request.cancelled()),
            words: Arc::clone(&words),
        };
        let code = hosted(world, given);
        let mut text = String::from_utf8_lossy(&err.taken()).into_owned();
        text.push_str(&words.lock().unwrap_or_else(PoisonError::into_inner));
        Ended { code, answer: serde_json::from_slice(&out.taken()).unwrap_or_default(), text }
    }
}

/// Whoever sits at the client, asked with the plan before them.
#[derive(Debug)]
struct Person {
    request: Arc<Request>,
}

impl Approver for Person {
    fn decide(&self, preview: &Preview) -> Decision {
        let plan = preview_text(preview, Path::new(""));
        let question =
            format!("The agent wants to restore files with rwd. Nothing is written before you accept.\n\n{plan}");
        match self.request.ask(shortened(question, MAX_QUESTION, "more is shown by `rwd preview`").trim_end()) {
            Said::Yes => Decision::Approved,
            Said::No => Decision::Rejected,
            Said::Nothing => Decision::Unavailable,
        }
    }
}

/// The beginning of a long text, in whole lines where there are any.
fn shortened(mut text: String, max: usize, rest: &str) -> String {
    if text.len() > max {
        let end = text.floor_char_boundary(max);
        let end = text.get(..end).and_then(|kept| kept.rfind('\n')).map_or(end, |at| at + 1);
        text.truncate(end);
        put!(text, "… cut here: {rest}\n");
    }
    text
}

impl Desk for Verbs {
    fn tools(&self) -> Vec<Tool> {
        tools::TOOLS.iter().map(tools::Tooled::listed).collect()
    }

    fn call(&self, name: &str, arguments: Map<String, Value>, request: &Arc<Request>) -> Answer {
        let Some(tool) = tools::TOOLS.iter().find(|tool| tool.name == name) else {
            return Answer { text: format!("there is no tool {name}"), error: Some(Value::Null), ..Answer::default() };
        };
        let (argv, session) = match tool.argv(&arguments) {
            Ok(argv) => argv,
            Err(message) => {
                let error = serde_json::json!({"code": "bad-argument", "message": message});
                return Answer {
                    text: format!("error: {message}\ncode: bad-argument"),
                    structured: None,
                    error: Some(error),
                };
            }
        };
        let Ended { code, mut answer, text } = self.verb(argv, session, request);
        // Nothing to do is an answer, and so is something done in part.
        let failed = !matches!(code, exit::OK | exit::NOTHING | exit::PARTIAL) || answer.get("error").is_some();
        let error = failed.then(|| answer.get_mut("error").map(Value::take).unwrap_or_default());
        let mut text = if text.trim().is_empty() { answer.to_string() } else { text };
        if let Some(code) = error.as_ref().and_then(|error| error.get("code")?.as_str()) {
            text = format!("{}\ncode: {code}", text.trim_end());
        }
        if let Some(patch) = answer.get("patch").and_then(Value::as_str) {
            text.push_str(patch);
        }
        let text = shortened(text, MAX_TEXT, "ask for fewer paths, or see the structured answer");
        Answer { text: text.trim_end().to_owned(), structured: (!failed).then_some(answer), error }
    }

    fn resources(&self) -> (Vec<Resource>, Vec<Resource>) {
        let timeline = Resource {
            uri: "rwd://timeline",
            name: "timeline",
            about: "Points and operations of this workspace, the newest first, as `rwd log --json` gives them.",
        };
        let point = Resource {
            uri: "rwd://point/{id}",
            name: "point",
            about: "One point with the paths it changed, as `rwd show --json` gives it.",
        };
        (vec![timeline], vec![point])
    }

    fn read(&self, uri: &str, request: &Arc<Request>) -> Option<Document> {
        let args = match uri.strip_prefix("rwd://")? {
            "timeline" => vec!["log".into()],
            point => {
                let id = point.strip_prefix("point/")?;
                // An id, and none of the other ways to name a point: what an address means does not change.
                if id.len() < 8 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return None;
                }
                vec!["show".into(), id.into()]
            }
        };
        let ended = self.verb(args, None, request);
        (ended.code == exit::OK).then(|| Document { text: ended.answer.to_string() })
    }
}
